"""Small faults in a module's source, made on its syntax tree: the list of possible ones, and the code with
one of them.

Docstrings, annotations, messages and code for type checkers only are left unchanged. No file is changed."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import CodeType, ModuleType

_OTHER_COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OTHER_OPERATION: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
#: Calls whose arguments may be swapped.
_IN_ANY_ORDER = ("max", "min")
#: Calls whose arguments are texts for people.
_MESSAGES = ("warn", "debug", "info", "warning", "error", "print", "cast", "TypeVar", "say", "_bad")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One possible fault. `place` counts the faults of its file, so it changes with the file; `name`
    changes with the function only."""

    file: str
    place: int
    function: str
    operator: str
    before: str
    line: int
    #: Lines of the statement, or of its head, that a test must have run.
    first: int
    last: int
    #: Function and class names from outside to inside, with the line of each as in its code object.
    chain: tuple[tuple[str, int], ...]
    #: Whether it is in a function, not only in a class or a module.
    inside: bool
    same: int

    @property
    def name(self) -> str:
        """Return a name that is the same in every version of the project in which this part of the
        function is the same."""
        return f"{self.file} {self.function} | {self.operator} | {self.before} | {self.same}"


def mutants(root: Path, files: Sequence[str]) -> list[Mutant]:
    """Return every possible fault of these files below `root`."""
    found: list[Mutant] = []
    for file in files:
        source = (root / file).read_text("utf-8")
        lines = source.encode().splitlines()
        seen: Counter[tuple[str, str, str]] = Counter()
        for place, site in enumerate(_Sites(ast.parse(source)).all()):
            before = _segment(lines, site.node)
            function = ".".join(name for name, _ in site.chain) or "(module)"
            key = (function, site.operator, before)
            found.append(
                Mutant(
                    file=file, place=place, function=function, operator=site.operator, before=before, line=site.node.lineno,
                    first=site.first, last=site.last, chain=site.chain, inside=site.inside, same=seen[key],
                )
            )  # fmt: skip
            seen[key] += 1
    return found


def _segment(lines: Sequence[bytes], node: ast.expr | ast.stmt) -> str:
    """Return the source of a node in one line (`ast.get_source_segment` splits the module each time)."""
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    parts = list(lines[first : last + 1])
    parts[-1] = parts[-1][: node.end_col_offset]
    parts[0] = parts[0][node.col_offset :]
    return " ".join(b" ".join(parts).decode("utf-8", "replace").split())[:160]


def drawn(possible: Sequence[Mutant], seed: int, count: int) -> list[Mutant]:
    """Return `count` of them (0: all). Each is drawn independently, so a change elsewhere in the project
    hardly changes the draw."""
    lots = sorted(possible, key=lambda one: sha256(f"{seed} {one.name}".encode()).digest())
    return lots[:count] if count else lots


def mutated(source: str, path: str, place: int) -> CodeType:
    """Compile a module with its fault number `place`. Errors: IndexError if it has fewer."""
    tree = ast.parse(source)
    list(_Sites(tree).all())[place].change()
    made: CodeType = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    return made


def import_mutated(root: Path, mutant: Mutant) -> None:
    """Make later imports of the module return the one with the fault."""
    name = mutant.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    if name in sys.modules:
        raise RuntimeError(f"{name} is imported already")
    sys.meta_path.insert(0, _Finder(name, root / mutant.file, mutant.place))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, path: Path, place: int) -> None:
        self._name, self._path, self._place = name, path, place

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        loader = _Loader(fullname, str(self._path))
        loader.place = self._place
        return importlib.util.spec_from_file_location(fullname, self._path, loader=loader)


class _Loader(importlib.machinery.SourceFileLoader):
    place: int

    def get_code(self, fullname: str) -> CodeType:
        return mutated(Path(self.path).read_text("utf-8"), self.path, self.place)


@dataclass
class _Site:
    node: ast.expr | ast.stmt
    operator: str
    first: int
    last: int
    chain: tuple[tuple[str, int], ...]
    inside: bool
    change: Callable[[], None]


class _Sites:
    """Walks a tree in the order of the source."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._functions: set[tuple[tuple[str, int], ...]] = set()

    def all(self) -> Iterator[_Site]:
        yield from self._block(self._tree, "body", ())

    def _block(self, owner: ast.AST, field: str, chain: tuple[tuple[str, int], ...]) -> Iterator[_Site]:
        block: list[ast.stmt] = getattr(owner, field)
        for index, statement in enumerate(block):
            yield from self._statement(block, index, statement, chain)

    def _statement(
        self, block: list[ast.stmt], index: int, node: ast.stmt, chain: tuple[tuple[str, int], ...]
    ) -> Iterator[_Site]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                line = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                if not isinstance(node, ast.ClassDef):
                    yield from self._defaults(node, chain)
                inner = (*chain, (node.name, line))
                if not isinstance(node, ast.ClassDef):
                    self._functions.add(inner)
                yield from self._block(node, "body", inner)
                return
            case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Global() | ast.Nonlocal():
                return
            case ast.If() if "TYPE_CHECKING" in ast.unparse(node.test):
                return
            case ast.Expr(value=ast.Constant()):
                return  # a docstring, or `...`
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                return
            case ast.Expr() if chain:
                yield self._site(
                    node, node, "remove the statement", chain, _put(block, index, _nothing(node))
                )
            case ast.AugAssign() | ast.Delete() | ast.Raise() | ast.Continue() | ast.Break():
                yield self._site(
                    node, node, "remove the statement", chain, _put(block, index, _nothing(node))
                )
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                none = ast.copy_location(ast.Constant(None), value)
                yield self._site(node, node, "return None", chain, _set(node, "value", none))
            case ast.With() | ast.AsyncWith() if all(one.optional_vars is None for one in node.items):
                within = ast.copy_location(ast.If(ast.Constant(True), node.body, []), node)
                yield self._site(
                    node.items[0].context_expr, node, "remove the with", chain, _put(block, index, within)
                )
        for field, value in ast.iter_fields(node):
            if field == "annotation" or (isinstance(node, ast.Raise) and field == "exc"):
                continue
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield from self._block(node, field, chain)
            elif isinstance(value, list):
                for at, one in enumerate(value):
                    if isinstance(one, ast.ExceptHandler):
                        yield from self._block(one, "body", chain)
                    elif isinstance(one, ast.match_case):
                        if one.guard is not None:
                            yield from self._expression(_set_field(one, "guard"), one.guard, node, chain)
                        yield from self._block(one, "body", chain)
                    elif isinstance(one, ast.withitem):
                        yield from self._expression(
                            _set_field(one, "context_expr"), one.context_expr, node, chain
                        )
                    elif isinstance(one, ast.expr):
                        yield from self._expression(_set_item(value, at), one, node, chain)
            elif isinstance(value, ast.expr):
                yield from self._expression(_set_field(node, field), value, node, chain)

    def _defaults(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, chain: tuple[tuple[str, int], ...]
    ) -> Iterator[_Site]:
        for values in (node.args.defaults, node.args.kw_defaults):
            for at, one in enumerate(values):
                if one is not None:
                    yield from self._expression(_set_item(values, at), one, node, chain)  # type: ignore[arg-type]

    def _expression(
        self,
        put: Callable[[ast.expr], Callable[[], None]],
        node: ast.expr,
        statement: ast.stmt,
        chain: tuple[tuple[str, int], ...],
    ) -> Iterator[_Site]:
        def site(operator: str, change: Callable[[], None]) -> _Site:
            return self._site(node, statement, operator, chain, change)

        def new(made: ast.expr) -> Callable[[], None]:
            return put(ast.copy_location(made, node))

        match node:
            case ast.JoinedStr():
                return
            case ast.Constant(value=bool() as value):
                yield site(f"{value} to {not value}", new(ast.Constant(not value)))
            case ast.Constant(value=int() | float() as value):
                yield site("add one", new(ast.Constant(value + 1)))
            case ast.Constant(value=str() as text) if " " not in text:
                yield site("another text", new(ast.Constant(text + "x")))
            case ast.Constant(value=bytes() as data):
                yield site("another text", new(ast.Constant(data + b"x")))
            case ast.Compare(ops=[operation]):
                made = ast.Compare(node.left, [_OTHER_COMPARISON[type(operation)]()], node.comparators)
                yield site("another comparison", new(made))
            case ast.BoolOp():
                yield site(
                    "and for or, or for and",
                    new(ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)),
                )
            case ast.UnaryOp(op=ast.Not()):
                yield site("remove not", new(node.operand))
            case ast.BinOp() if type(node.op) in _OTHER_OPERATION and not _is_text(node):
                yield site(
                    "another operation",
                    new(ast.BinOp(node.left, _OTHER_OPERATION[type(node.op)](), node.right)),
                )
            case ast.Call(args=[first, second, *rest]) if not any(
                isinstance(one, ast.Starred) for one in node.args
            ) and not _is_message(node):
                if ast.dump(first) != ast.dump(second) and ast.unparse(node.func) not in _IN_ANY_ORDER:
                    yield site(
                        "swap arguments", new(ast.Call(node.func, [second, first, *rest], node.keywords))
                    )
        if (
            isinstance(statement, ast.If | ast.While)
            and node is statement.test
            and not _is_negated_otherwise(node)
        ):
            yield site("negate the condition", new(ast.UnaryOp(ast.Not(), node)))
        if isinstance(node, ast.Call) and _is_message(node):
            return
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                if field == "test" and isinstance(node, ast.IfExp) and not _is_negated_otherwise(value):
                    negated = ast.copy_location(ast.UnaryOp(ast.Not(), value), value)
                    yield self._site(
                        value, statement, "negate the condition", chain, _set(node, "test", negated)
                    )
                yield from self._expression(_set_field(node, field), value, statement, chain)
            elif isinstance(value, list):
                for at, one in enumerate(value):
                    if isinstance(one, ast.expr):
                        yield from self._expression(_set_item(value, at), one, statement, chain)
                    elif isinstance(one, ast.keyword):
                        yield from self._expression(_set_field(one, "value"), one.value, statement, chain)
                    elif isinstance(one, ast.comprehension):
                        yield from self._expression(_set_field(one, "iter"), one.iter, statement, chain)
                        for number, condition in enumerate(one.ifs):
                            if not _is_negated_otherwise(condition):
                                negated = ast.copy_location(ast.UnaryOp(ast.Not(), condition), condition)
                                change = _set_item(one.ifs, number)(negated)
                                yield self._site(condition, statement, "negate the condition", chain, change)
                            yield from self._expression(
                                _set_item(one.ifs, number), condition, statement, chain
                            )

    def _site(
        self,
        node: ast.expr | ast.stmt,
        statement: ast.stmt,
        operator: str,
        chain: tuple[tuple[str, int], ...],
        change: Callable[[], None],
    ) -> _Site:
        body = getattr(statement, "body", None) or getattr(statement, "cases", None)
        if isinstance(body, list):  # the head of a compound statement
            inside = body[0].pattern.lineno if isinstance(body[0], ast.match_case) else body[0].lineno
            last = max(statement.lineno, inside - 1)
        else:
            last = statement.end_lineno or statement.lineno
        return _Site(node, operator, statement.lineno, last, chain, chain in self._functions, change)


def _is_message(node: ast.Call) -> bool:
    return ast.unparse(node.func).rpartition(".")[2] in _MESSAGES


def _is_negated_otherwise(node: ast.expr) -> bool:
    """Return whether another fault of the expression is its negation."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(one, ast.JoinedStr)
        or (isinstance(one, ast.Constant) and isinstance(one.value, str | bytes))
        for one in (node.left, node.right)
    )


def _nothing(node: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Pass(), node)


def _put(block: list[ast.stmt], index: int, made: ast.stmt) -> Callable[[], None]:
    return lambda: block.__setitem__(index, made)


def _set(owner: ast.AST, field: str, made: ast.expr) -> Callable[[], None]:
    return lambda: setattr(owner, field, made)


def _set_field(owner: ast.AST, field: str) -> Callable[[ast.expr], Callable[[], None]]:
    return lambda made: lambda: setattr(owner, field, made)


def _set_item(values: list[ast.expr], at: int) -> Callable[[ast.expr], Callable[[], None]]:
    return lambda made: lambda: values.__setitem__(at, made)
