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
    if argv[:1] in (["read"], ["write"]):
        from ipfsmem.cli.direct import direct_call, run_direct

        direct = direct_call(argv)
        if direct is not None:
            return run_direct(direct, argv, ends=arguments is None)
    from ipfsmem.cli.light_imports import load_click

    load_click()
    from ipfsmem.cli.app import run

    return run(argv, ends=arguments is None)


def flush_output() -> None:
    """Write what is left of the output. An error was reported before, if possible."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # Python would print it again, and exit with a code of its own
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def exit_at_once(code: int) -> None:
    """End a program that only read, unless another thread or a profiler runs: Python would free the data first, object by object."""
    if "threading" not in sys.modules or sys.getprofile() is not None or sys.gettrace() is not None:
        return
    import threading

    if threading.active_count() == 1:
        os._exit(code)
