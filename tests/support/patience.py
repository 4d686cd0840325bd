"""Timeout for tests that wait for an event. Contains no tests.

It only ends a hang and does not bound any duration, so it is as long as a loaded machine might need."""

from typing import Final

#: Timeout in seconds for a single wait.
PATIENCE: Final = 60.0
#: The command line as code for `python -c`, without a hook's limit of two seconds.
PATIENT_HOOKS: Final = (
    "import sys; from ipfsmem.agents import hooks; hooks.BOUNDS, hooks._BOUND = {}, 60.0; "
    "from ipfsmem.cli import main; sys.exit(main())"
)
