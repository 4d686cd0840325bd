"""Every text of the package that tells somebody to run a command: where it stands and what it tells to run.

Read from the source, so that a hint that is added later is in the list without anybody's adding it.
"""

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
#: Stands for what is filled in when the text is shown.
FILLED = "VALUE"
#: A whole command in a text.
WHOLE = re.compile(
    r"\bipfsmem((?: (?:[a-z][a-z-]*(?:\.[a-z]+)*\b(?!=)|--?[a-z][a-z-]*|\d+[smh]\b|[A-Z][A-Z_:]*\b|'[^']*'|VALUE|\{\w+\}|-(?=\s|$)|\.\.\.))+)"
)
#: What a call named of the memory that it was about (ipfsmem/cli/hint_commands.py).
_FLAGS = r"(?:(?:--vault|-n|--home) (?:'[^']*'|\\S+) )*"


class Told(NamedTuple):
    """A command that some text tells to run."""

    where: str
    text: str
    command: str


class Hint(NamedTuple):
    """A hint as it stands in the source, what is filled in as VALUE."""

    where: str
    text: str


@functools.cache
def _read() -> tuple[tuple[tuple[str, str], ...], list[Hint]]:
    """The texts and the hints of the package, which is parsed once a process. Tests that ask run in one worker: `xdist_group("texts")`."""
    found: list[tuple[str, str]] = []
    places: dict[str, str] = {}
    for path in sorted([*(ROOT / "ipfsmem").rglob("*.py"), *(ROOT / "providers").rglob("*.py")]):
        source, name = path.read_text("utf-8"), str(path.relative_to(ROOT))
        tree = ast.parse(source)
        nodes = list(ast.walk(tree))
        # names of tokens and patterns, shown to nobody; calls, which tests/cli/test_cli_help.py parses
        if path.name not in ("secret_kinds.py", "examples.py"):
            found += ((f"{name}:{line}", text) for line, text in _texts(nodes))
        # else nothing of what is looked for can stand in it
        if any(word in source for word in ("hint", "HINT", *_PLACES)):
            for line, text in _hints(tree, nodes):
                places.setdefault(text, f"{name}:{line}")
    return tuple(found), [Hint(where, text) for text, where in places.items()]


def texts() -> tuple[tuple[str, str], ...]:
    """Each text of the package with its place, what is filled in as VALUE, docstrings left out."""
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
    """The commands in them."""
    for where, text in texts():
        for match in WHOLE.finditer(text):
            yield Told(where, text, match[1].strip())


def _has_doc(node: ast.AST) -> bool:
    return isinstance(
        node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    ) and isinstance(ast.get_docstring(node, clean=False), str)


#: Calls that take a hint without its name, and at which place.
_PLACES = {"Finding": 3, "needed": 2}


def pattern(text: str) -> str:
    """What a hint of the source looks like where it is printed, its commands with the flags that the call was given."""
    words = re.sub(r"(VALUE|\\\{\w+\\\})+", lambda _: ".*", re.escape(" ".join(text.split())))
    scope = r"(?: --scope \\S+)?"
    return re.sub(r"\bipfsmem\\ ([a-z]+)((?:\\ [a-z-]+)?)", rf"ipfsmem {_FLAGS}\1{scope}\2{scope}", words)


def hinted(text: str, printed: str) -> None:
    """See that this hint is printed, on the command line without its part for Python. `followed` counts it: a test that says so
    carries the hint out next."""
    line = " ".join(printed.split())
    assert re.search(pattern(text), line) or re.search(pattern(without_python(text)), line), (text, printed)


class Refused:
    """`with Refused(hint):` sees that what is done in it is refused with this hint; counted like `hinted`."""

    def __init__(self, hint: str) -> None:
        self.hint = hint

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        assert isinstance(error, IpfsmemError), error
        hinted(self.hint, error.hint)
        return True


def followed() -> dict[str, str]:
    """The hints that stand in a call of `hinted` or `Refused` in some test, and in which file."""
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
    """Every text that is given to an error (or a finding of `check`) as its hint, each text once.

    Found are `hint=` in calls, the attribute `hint`, what is assigned to `error.hint`, the fourth field of a `Finding`,
    what is said where a setting of a provider is `needed`, and module constants whose name says HINT or that any of these names.
    """
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
    """Expressions that become a hint."""
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
    """The texts that an expression can be."""
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
