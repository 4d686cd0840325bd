"""Finds the names that a name of the tests mentions in its source, directly or indirectly: functions,
classes, constants, modules.

The source is read, not run: a name anywhere counts, also in a decorator or annotation. The result includes
everything that a run would use, except names that are looked up by a text (a module named in a text, as
for `python -m`, is found)."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

#: Packages whose modules are read.
_OURS = re.compile(r"(?:tests|bench)(?:\.\w+)*")


class Name(NamedTuple):
    """A top-level name of a module, or the module as a whole (an empty name)."""

    module: str
    name: str


class _Module(NamedTuple):
    #: Top-level name: the names that its statements mention.
    mentions: dict[str, set[Name]]
    #: Top-level name: the target of its import.
    imported: dict[str, Name]


def reachable(begin: Name) -> set[Name]:
    """Return the names that one mentions, directly and indirectly."""
    seen, todo = set[Name](), [begin]
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += _mentioned(one)
    return seen


def modules_of(names: Iterable[Name]) -> set[str]:
    """The modules of the names."""
    return {one.module for one in names}


def _mentioned(one: Name) -> Iterable[Name]:
    if not _OURS.fullmatch(one.module):
        return ()
    module = _read(one.module)
    if not one.name:
        return set().union(*module.mentions.values(), module.imported.values())
    if one.name in module.imported:
        return (module.imported[one.name], *module.mentions.get(one.name, ()))
    return module.mentions.get(one.name, ())


@functools.cache
def _source(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


@functools.cache
def _read(module: str) -> _Module:
    read = _Module({}, {})
    if (path := _source(module)) is None:
        return read
    parts = [_Part(node) for node in ast.parse(path.read_text("utf-8")).body]
    for part in parts:
        if not isinstance(part.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            read.imported.update(part.bound)
    for part in parts:
        found = set(part.names(module, read.imported))
        for name in part.defined():
            read.mentions.setdefault(name, set()).update(found)
    return read


class _Part:
    """A top-level statement of a module, with everything in it."""

    def __init__(self, node: ast.stmt) -> None:
        self.node = node
        #: The names that its imports bind.
        self.bound: dict[str, Name] = {}
        self._loaded: set[str] = set()
        self._stored: set[str] = set()
        self._attributes: set[tuple[str, str]] = set()
        self._modules: set[str] = set()
        todo: list[ast.AST] = [node]
        while todo:
            one = todo.pop()
            match one:
                case ast.Name(name, ast.Load()):
                    self._loaded.add(name)
                case ast.Name(name):
                    self._stored.add(name)
                case ast.Attribute(ast.Name(name, ast.Load()), attribute):
                    self._attributes.add((name, attribute))
                case ast.Constant(str(text)):
                    if _OURS.fullmatch(text):
                        self._modules.add(text)
                case ast.Import() | ast.ImportFrom():
                    self.bound.update(_bound(one))
                case _:
                    todo += ast.iter_child_nodes(one)

    def defined(self) -> set[str]:
        """Return the names whose value the statement makes or may change."""
        if isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return {self.node.name}
        if isinstance(self.node, ast.Import | ast.ImportFrom):
            return set()
        inner = {one.name for one in ast.walk(self.node) if isinstance(one, ast.FunctionDef | ast.ClassDef)}
        return self._stored | inner or self._loaded | {name for name, _ in self._attributes}

    def names(self, module: str, imported: dict[str, Name]) -> Iterator[Name]:
        """Return what the statement mentions: names of its module, attributes of imported modules, its own
        imports, modules in texts."""
        bound = imported | self.bound
        yield from self.bound.values()
        yield from (Name(text, "") for text in self._modules)
        for name, attribute in self._attributes:
            target = bound.get(name, Name(module, name))
            # For a module only the attribute, else the object.
            yield Name(target.module, attribute) if not target.name else target
        for name in self._loaded:
            yield bound.get(name, Name(module, name))


def _bound(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Name]]:
    """Return which name an import binds to what."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], Name(alias.name, "")
    elif node.module:
        for alias in node.names:
            below = f"{node.module}.{alias.name}"
            is_module = bool(_OURS.fullmatch(below)) and _source(below) is not None
            yield alias.asname or alias.name, Name(below, "") if is_module else Name(node.module, alias.name)
