"""Yields the statements of a module, for tests that read the source; visiting every expression would take
twice as long as parsing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_HOLDERS = ast.stmt | ast.excepthandler | ast.match_case


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield every statement below `tree` in any order: those of `ast.walk`."""
    todo = [tree]
    while todo:
        for _, value in ast.iter_fields(todo.pop()):
            for one in value if isinstance(value, list) else ():
                if isinstance(one, _HOLDERS):
                    todo.append(one)
                    if isinstance(one, ast.stmt):
                        yield one
