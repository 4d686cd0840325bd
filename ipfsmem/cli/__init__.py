"""The command line: one command a file (`<name>_cmd.py`), no logic of its own. `main` is what `ipfsmem` starts.

Nothing is imported here, so that the start of the program costs what its command needs and no more.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the answer is the exit code. `arguments` without the program's name, else those it was given."""
    from ipfsmem.cli.app import run

    return run(arguments)
