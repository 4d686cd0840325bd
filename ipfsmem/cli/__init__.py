"""The command line: one command per file (`<name>_cmd.py`), without logic of its own. `ipfsmem` calls `main`.

Nothing is imported here, so that each start loads only the modules that its command needs.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence

#: Net new objects before Python searches for garbage. Its default of 700 is reached dozens of times during imports, all without
#: garbage: a seventh of a read.
_GARBAGE_AT = 50_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit code. `arguments`: without the program's name; None: those of the process."""
    gc.set_threshold(_GARBAGE_AT)
    atexit.register(gc.freeze)  # Python would search the remaining objects twice at exit
    argv = sys.argv[1:] if arguments is None else list(arguments)
    if argv[:1] == ["hook"]:
        from ipfsmem.cli.hook_call import plain_call, run_plain

        call = plain_call(argv)
        if call is not None:
            code = run_plain(call)
            if arguments is None:  # the program is done and its memory closed; Python takes 8 ms to end
                os._exit(code)
            return code
    from ipfsmem.cli.light_imports import load_click

    load_click()
    from ipfsmem.cli.app import run

    return run(argv, ends=arguments is None)
