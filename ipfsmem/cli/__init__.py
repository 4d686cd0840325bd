"""The command line: one command a file (`<name>_cmd.py`), no logic of its own. `main` is what `ipfsmem` starts.

Nothing is imported here, so that the start of the program costs what its command needs and no more.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence

#: So many objects more than went are made before garbage is looked for. Python's 700 are reached dozens of times while modules are
#: imported, all for nothing: it is a seventh of a read.
_GARBAGE_AT = 50_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the answer is the exit code. `arguments` without the program's name, else those it was given."""
    gc.set_threshold(_GARBAGE_AT)
    atexit.register(
        gc.freeze
    )  # what is left goes with the process: Python would look through it twice on its way out
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["hook"]:
        from ipfsmem.cli.hook_call import plain_call, run_plain

        call = plain_call(given)
        if call is not None:
            code = run_plain(call)
            if (
                arguments is None
            ):  # this is the whole program, which has said all and closed its memory: Python takes 8 ms to end
                os._exit(code)
            return code
    from ipfsmem.cli.app import run

    return run(given, ends=arguments is None)
