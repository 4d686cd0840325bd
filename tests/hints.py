"""Every text of the package that tells somebody to run a command: where it stands and what it tells to run.

Read from the source, so that a hint that is added later is in the list without anybody's adding it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
#: Stands for what is filled in when the text is shown.
FILLED = "VALUE"
#: A whole command in a text.
WHOLE = re.compile(
    r"\bipfsmem((?: (?:[a-z][a-z-]*\b(?!=)|--?[a-z][a-z-]*|\d+[smh]\b|[A-Z][A-Z_:]*\b|'[^']*'|VALUE|\{\w+\}|-(?=\s|$)|\.\.\.))+)"
)


class Told(NamedTuple):
    """A command that some text tells to run."""

    where: str
    text: str
    command: str


def texts() -> Iterator[tuple[str, str]]:
    """Each text of the package with its place, what is filled in as VALUE, docstrings left out."""
    for path in sorted([*(ROOT / "ipfsmem").rglob("*.py"), *(ROOT / "providers").rglob("*.py")]):
        tree = ast.parse(path.read_text("utf-8"))
        docs = {id(node.body[0].value) for node in ast.walk(tree) if _has_doc(node)}
        parts: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts |= {id(value) for value in node.values}
                made = "".join(v.value if isinstance(v, ast.Constant) else FILLED for v in node.values)
            elif (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in docs | parts
            ):
                made = node.value
            else:
                continue
            yield f"{path.relative_to(ROOT)}:{node.lineno}", made


def told() -> Iterator[Told]:
    """The commands in them."""
    for where, text in texts():
        for match in WHOLE.finditer(text):
            yield Told(where, text, match[1].strip())


def _has_doc(node: ast.AST) -> bool:
    return isinstance(
        node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    ) and isinstance(ast.get_docstring(node), str)
