"""Write docs/reference/errors.md from the error tree: class docstrings, exit codes, hints. A test compares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ipfsmem.cli import app
from ipfsmem.errors import IpfsmemError
from tests.support.outcomes import table as outcomes

TARGET = Path(__file__).with_name("reference") / "errors.md"
HEAD = """# Errors and exit codes

Written by `docs/make_errors.py` from `ipfsmem/errors.py` and `tests/support/outcomes.py`; edit those instead.

A command that fails prints one line, `ipfsmem: <what failed>: <reason>`, and often a second one
with the next step. With `--json` it prints one object instead. Both go to standard error, so
standard output holds results only:

```json
{"error": {"kind": "NotFoundError", "message": "there is no memory tone", "hint": "...", "exit_code": 4}}
```

In Python the same errors are exceptions, all below `IpfsmemError`; `exit_code`, `hint` and
`diagnostics()` are theirs.

| exit code | kind | meaning | what to do, unless the message says better |
| --- | --- | --- | --- |
| 0 | | done | |
"""
TAIL = f"""| {app.UNEXPECTED} | `Unexpected` | A fault of ipfsmem itself | Run it again with `IPFSMEM_DEBUG=1` for the traceback, and report it. |
| {app.INTERRUPTED} | `Interrupted` | Ctrl-C (143: SIGTERM, 129: the terminal was closed) | Nothing that was acknowledged is lost. |
| {app.BROKEN_PIPE} | | Whoever read the output stopped reading | |

Exit code 1 without an error line means that a check failed: `ipfsmem demo` when a claim was false,
`ipfsmem vault check` when data is lost or cannot be used.

When the vault is created and only its first publish fails, `ipfsmem init` prints its result with
the recovery phrase before the error: 41 or 42 then name the reason, and `ipfsmem sync` publishes
it. When the provider cannot tell whether a vault exists, `init` and `recover` create nothing and
fail.

A command that failed, also in part, never exits with 0. Each row is tested by `tests/cli/test_outcomes.py`:

"""
TREE = """
The tree:

```
"""


def kinds(
    kind: type[IpfsmemError] = IpfsmemError, depth: int = 0
) -> Iterator[tuple[int, type[IpfsmemError]]]:
    """Every class of the tree with its depth, parents first, as they are written."""
    yield depth, kind
    for below in kind.__subclasses__():
        if below.__module__ == IpfsmemError.__module__:
            yield from kinds(below, depth + 1)


def text() -> str:
    """The whole page."""
    rows = sorted(kinds(), key=lambda item: item[1].exit_code)
    table = "".join(
        f"| {kind.exit_code} | `{kind.__name__}` | {(kind.__doc__ or '').strip()} | {kind.hint} |\n"
        for _, kind in rows
    )
    tree = "".join(f"{'  ' * depth}{kind.__name__}\n" for depth, kind in kinds())
    return f"{HEAD}{table}{TAIL}{outcomes()}{TREE}{tree}```\n"


if __name__ == "__main__":
    TARGET.write_text(text(), "utf-8")
