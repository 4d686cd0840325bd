"""The statements of a module, for tests that read the source: to look at every expression too takes twice the time of parsing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_HOLDERS = ast.stmt | ast.excepthandler | ast.match_case


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Every statement below `tree`, in no certain order: those that `ast.walk` yields."""
    todo = [tree]
    while todo:
        for _, value in ast.iter_fields(todo.pop()):
            for one in value if isinstance(value, list) else ():
                if isinstance(one, _HOLDERS):
                    todo.append(one)
                    if isinstance(one, ast.stmt):
                        yield one
