"""Collects every text of the package that names a command to run, with its place in the source.

The list is read from the source, so it includes hints that are added later."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ipfsmem.cli.hint_commands import without_python
from ipfsmem.errors import IpfsmemError

ROOT = Path(__file__).parents[2]
#: Placeholder for values that are filled in when the text is shown.
FILLED = "VALUE"
#: A whole command in a text.
WHOLE = re.compile(
    r"\bipfsmem((?: (?:[a-z][a-z-]*(?:\.[a-z]+)*\b(?!=)|--?[a-z][a-z-]*|\d+[smh]\b|[A-Z][A-Z_:]*\b|'[^']*'|VALUE|\{\w+\}|-(?=\s|$)|\.\.\.))+)"
)
#: Flags of the vault that a call was about (ipfsmem/cli/hint_commands.py).
_FLAGS = r"(?:(?:--vault|-n|--home) (?:'[^']*'|\\S+) )*"


class Told(NamedTuple):
    """A command that a text tells the reader to run."""

    where: str
    text: str
    command: str


class Hint(NamedTuple):
    """A hint in the source; values that are filled in are VALUE."""

    where: str
    text: str


@functools.cache
def _read() -> tuple[tuple[tuple[str, str], ...], list[Hint]]:
    """Return the texts and hints of the package, parsed once per process. Tests that use it run in one
    worker: `xdist_group("texts")`."""
    found: list[tuple[str, str]] = []
    places: dict[str, str] = {}
    for path in sorted([*(ROOT / "ipfsmem").rglob("*.py"), *(ROOT / "providers").rglob("*.py")]):
        source, name = path.read_text("utf-8"), str(path.relative_to(ROOT))
        tree = ast.parse(source)
        nodes = list(ast.walk(tree))
        # names of tokens and patterns are not shown; tests/cli/test_cli_help.py parses calls
        if path.name not in ("secret_kinds.py", "examples.py"):
            found += ((f"{name}:{line}", text) for line, text in _texts(nodes))
        # else no command can occur in it
        if any(word in source for word in ("hint", "HINT", *_PLACES)):
            for line, text in _hints(tree, nodes):
                places.setdefault(text, f"{name}:{line}")
    return tuple(found), [Hint(where, text) for text, where in places.items()]


def texts() -> tuple[tuple[str, str], ...]:
    """Return each text of the package with its place, filled-in values as VALUE, without docstrings."""
    return _read()[0]


def _texts(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    docs = {id(node.body[0].value) for node in nodes if _has_doc(node)}
    parts: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts |= {id(value) for value in node.values}
            made = "".join(v.value if isinstance(v, ast.Constant) else FILLED for v in node.values)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docs
            and id(node) not in parts
        ):
            made = node.value
        else:
            continue
        yield node.lineno, made


def told() -> Iterator[Told]:
    """Return the commands in the texts."""
    for where, text in texts():
        for match in WHOLE.finditer(text):
            yield Told(where, text, match[1].strip())


def _has_doc(node: ast.AST) -> bool:
    return isinstance(
        node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    ) and isinstance(ast.get_docstring(node, clean=False), str)


#: Calls with a hint as a positional argument, and its position.
_PLACES = {"Finding": 3, "required": 2}


def pattern(text: str) -> str:
    """Return a pattern of a hint as printed, with the flags of the call in its commands."""
    words = re.sub(r"(VALUE|\\\{\w+\\\})+", lambda _: ".*", re.escape(" ".join(text.split())))
    scope = r"(?: --scope \\S+)?"
    return re.sub(r"\bipfsmem\\ ([a-z]+)((?:\\ [a-z-]+)?)", rf"ipfsmem {_FLAGS}\1{scope}\2{scope}", words)


def hinted(text: str, printed: str) -> None:
    """Check that this hint is printed, on the command line without its part for Python. `followed` counts
    it: a test that calls this then carries out the hint."""
    line = " ".join(printed.split())
    assert re.search(pattern(text), line) or re.search(pattern(without_python(text)), line), (text, printed)


class Refused:
    """`with Refused(hint):` checks that the block is refused with this hint; counted like `hinted`."""

    def __init__(self, hint: str) -> None:
        self.hint = hint

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        assert isinstance(error, IpfsmemError), error
        hinted(self.hint, error.hint)
        return True


def followed() -> dict[str, str]:
    """Return the hints in calls of `hinted` or `Refused` in tests, with their files."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        source = path.read_text("utf-8")
        if "hinted(" not in source and "Refused(" not in source:
            continue
        tree = ast.parse(source)
        constants = _constants(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("hinted", "Refused"):
                for text in _said(node.args[0], constants):
                    found.setdefault(text, str(path.relative_to(ROOT)))
    return found


def hints() -> list[Hint]:
    """Return every hint of an error (or of a finding of `check`), each text once.

    Sources: `hint=` in calls, the attribute `hint`, assignments to `error.hint`, the fourth field of a
    `Finding`, the text for a `required` setting of a provider, and module constants whose name contains HINT
    or that any of these names."""
    return _read()[1]


def _hints(tree: ast.Module, nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    constants = _constants(tree)
    for node in nodes:
        for given in _given(node):
            for text in _said(given, constants):
                if text.strip(" .;") not in ("", FILLED):
                    yield given.lineno, text


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


def _given(node: ast.AST) -> Iterator[ast.expr]:
    """Return the expressions that become a hint."""
    if isinstance(node, ast.Call):
        yield from (keyword.value for keyword in node.keywords if keyword.arg == "hint")
        place = _PLACES.get(getattr(node.func, "id", ""), len(node.args))
        yield from node.args[place : place + 1]
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            name = getattr(target, "attr", getattr(target, "id", ""))
            if name == "hint" or "HINT" in name:
                yield node.value


def _said(given: ast.expr, constants: dict[str, ast.expr]) -> Iterator[str]:
    """Return the possible texts of an expression."""
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        yield given.value
    elif isinstance(given, ast.JoinedStr):
        yield "".join(str(v.value) if isinstance(v, ast.Constant) else FILLED for v in given.values)
    elif isinstance(given, ast.IfExp):
        yield from _said(given.body, constants)
        yield from _said(given.orelse, constants)
    elif isinstance(given, ast.BoolOp):
        for value in given.values:
            yield from _said(value, constants)
    elif isinstance(given, ast.Name) and given.id in constants:
        yield from _said(constants[given.id], constants)
    elif isinstance(given, ast.Dict):
        for value in given.values:
            yield from _said(value, constants)
    elif isinstance(given, ast.Subscript | ast.Attribute):
        yield from _said(given.value, constants)
    elif isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute):
        yield from _said(given.func.value, constants)
