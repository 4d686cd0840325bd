"""How long a test waits for what must happen. Nothing here is a test.

The bound only ends a hang: it says nothing about how long anything may take, so it is as long as a loaded machine might need.
"""

from typing import Final

#: Seconds after which what a test waits for is taken as lost.
PATIENCE: Final = 60.0
#: The command line as code for `python -c`: a hook takes the time that it needs, where an agent would wait for two seconds.
PATIENT_HOOKS: Final = (
    "import sys; from ipfsmem.agents import hooks; hooks.BOUNDS, hooks._BOUND = {}, 60.0; "
    "from ipfsmem.cli import main; sys.exit(main())"
)
