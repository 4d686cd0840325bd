"""Write what is derived from the declared operations: methods, types for TypeScript, tables of the docs. A test compares.

python tools/generate.py [--check]
"""

from __future__ import annotations

import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ipfsmem.operation import JSON, Face, Operation, Parameter
from ipfsmem.operations import INDEX, load

ROOT: Final = Path(__file__).parents[1]
_NOTE: Final = "Written by tools/generate.py from ipfsmem/operations; change those, not this."
AnyOperation = Operation[..., Any]


def operations() -> list[AnyOperation]:
    """Every declared operation, in the order of the docs."""
    return [load(name) for name in INDEX]


# -- Python --------------------------------------------------------------------------------------------------


def methods() -> str:
    """The source of `ipfsmem/methods.py`."""
    imports: dict[str, str] = {"View": "ipfsmem.operation"}
    groups = {"StackMethods": "", "MemoryMethods": "(StackMethods)"}
    bodies = dict.fromkeys(groups, "")
    for op in operations():
        bodies["StackMethods" if op.declared.about == "stack" else "MemoryMethods"] += _method(op, imports)
    bodies["StackMethods"] = _VIEW + bodies["StackMethods"]
    known = "".join(
        f"    from {where} import {name}\n"
        for name, where in sorted(imports.items(), key=lambda one: one[::-1])
    )
    classes = "".join(
        f'\n\nclass {name}{base}:\n    """{_CLASSES[name]}"""\n\n    __slots__ = ()\n{bodies[name]}'
        for name, base in groups.items()
    )
    return (
        f'"""Methods of a memory. {_NOTE}"""\n\n# ruff: noqa\n# fmt: off\nfrom __future__ import annotations\n\n'
        f"from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n{known}{classes}"
    )


_CLASSES: Final = {
    "StackMethods": "What reads one scope, or several as one.",
    "MemoryMethods": "What is about one scope, or all of them.",
}
_VIEW: Final = "\n    if TYPE_CHECKING:\n        def _view(self) -> View: ...\n"


def _method(op: AnyOperation, imports: dict[str, str]) -> str:
    given, named = ["self"], False
    for one in op.parameters("python"):
        if not one.positional and not named:
            given.append("*")
            named = True
        hint = source_of(one.type, imports) + (" | None" if one.optional else "")
        given.append(f"{one.name}: {hint}" + ("" if one.required else f" = {one.default!r}"))
    module, short = op.work.__module__, op.work.__name__
    about = "".join(
        textwrap.fill(f"{one.name}: {one.description}", 110, initial_indent="    ", subsequent_indent=" " * 8)
        + "\n"
        for one in op.parameters("python")
    )
    raises = (
        "\nRaises:\n" + "".join(f"    {one}\n" for one in op.declared.raises) if op.declared.raises else ""
    )
    doc = textwrap.indent(f'"""{op.doc}\n\nArgs:\n{about}{raises}"""', " " * 8)
    asked = ", ".join(f'"{one.name}": {one.name}' for one in op.parameters("python"))
    return (
        f"\n    def {short.rstrip('_')}({', '.join(given)}) -> {source_of(op.result, imports)}:\n{doc}\n"
        f"        from {module} import {short}\n\n        return {short}.run(self._view(), {{{asked}}})\n"
    )


def source_of(hint: Any, imports: dict[str, str]) -> str:
    """A type as it is written; `imports` gets the module of each name."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if hint is types.NoneType:
        return "None"
    if origin is typing.Annotated:
        return source_of(inside[0], imports)
    if origin is typing.Literal:
        imports["Literal"] = "typing"
        return f"Literal[{', '.join(map(repr, inside))}]"
    if origin in (typing.Union, types.UnionType):
        return " | ".join(source_of(one, imports) for one in inside)
    name: str = hint.__name__ if origin is None else origin.__name__
    if (module := (origin or hint).__module__) != "builtins":
        imports[name] = module
    if not inside:
        return name
    return f"{name}[{', '.join('...' if one is Ellipsis else source_of(one, imports) for one in inside)}]"


# -- TypeScript ----------------------------------------------------------------------------------------------


def typescript() -> str:
    """The types of the bodies and answers of the routes: `web/src/operations.d.ts`."""
    from ipfsmem.api.derived import route_of

    routes = {op.name: route_of(op) for op in operations() if op.declared.http}
    bodies = {route.body.__name__: route.body for route in routes.values() if route.body is not None}
    wanted = [*dict.fromkeys([*bodies.values(), *(route.answer for route in routes.values())])]
    _, components = msgspec.json.schema_components(wanted, ref_template="{name}")
    types_of = [_interface(name, schema, sent=name in bodies) for name, schema in components.items()]
    rows = [
        f"  '{name}': {{ method: '{route.method.upper()}', path: '{route.path}', "
        f"body: {route.body.__name__ if route.body else 'undefined'}, answer: {route.answer.__name__} }}"
        for name, route in routes.items()
    ]
    table = (
        "/** The routes of these operations, by name. */\nexport type Operations = {\n"
        + "\n".join(rows)
        + "\n}\n"
    )
    return f"// {_NOTE}\n\n" + "\n\n".join([*types_of, table])


def _interface(name: str, schema: JSON, *, sent: bool) -> str:
    required = schema["required"] if sent else schema["properties"]
    about = f"/** {' '.join(schema['description'].split())} */\n" if "description" in schema else ""
    fields = "\n".join(
        f"  readonly {field}{'' if field in required else '?'}: {_in_typescript(one)}"
        for field, one in schema["properties"].items()
    )
    return f"{about}export type {name} = {{\n{fields}\n}}"


_NAMES: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def _in_typescript(one: Mapping[str, Any]) -> str:
    if "$ref" in one:
        return str(one["$ref"])
    if "enum" in one:
        return " | ".join(repr(value) for value in one["enum"])
    if "anyOf" in one:
        return " | ".join(map(_in_typescript, one["anyOf"]))
    if "prefixItems" in one:
        return f"readonly [{', '.join(map(_in_typescript, one['prefixItems']))}]"
    if one.get("type") == "array":
        item = _in_typescript(one["items"])
        return f"readonly ({item})[]" if " " in item else f"readonly {item}[]"
    if one.get("type") == "object":
        return f"Readonly<Record<string, {_in_typescript(one.get('additionalProperties') or {})}>>"
    return _NAMES.get(one.get("type", ""), "unknown")


# -- docs ----------------------------------------------------------------------------------------------------


def _names(op: AnyOperation, face: Face) -> str:
    return ", ".join(f"`{one.called(face)}`" for one in op.parameters(face))


def http_table(text: str) -> str:
    """docs/HTTP.md with the rows of the derived routes."""
    for op in operations():
        if op.declared.http:
            row = f"| `{op.declared.http}` | {_lowered(op.declared.summary)}: {_names(op, 'http')} |"
            text = _with_row(text, f"| `{op.declared.http}` |", row)
    return text


def mcp_table(text: str) -> str:
    """docs/MCP.md with the rows of the derived tools."""
    for op in operations():
        if op.declared.tool:
            begin = f"| `{op.declared.tool}` | `{op.name}` |"
            text = _with_row(text, begin, f"{begin} {_lowered(op.declared.summary)}: {_names(op, 'mcp')} |")
    return text


def cli_tables(text: str) -> str:
    """docs/CLI.md with the tables of options of the derived commands."""
    for op in operations():
        begin, end = f"<!-- options of {op.name} -->\n", f"<!-- end of the options of {op.name} -->"
        assert text.count(begin) == text.count(end) == 1, op.name
        rows = "".join(
            f"| {_option(one)} | {one.cli.help or one.description} |\n" for one in op.parameters("cli")
        )
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}| option | meaning |\n| --- | --- |\n{rows}{end}{rest.partition(end)[2]}"
    return text


def _option(one: Parameter) -> str:
    value = (
        f" {one.cli.metavar or 'TEXT'}" if not one.cli.words and (one.cli.metavar or one.type is str) else ""
    )
    words = f" {'/'.join(one.words)}" if one.words else ""
    return f"`{one.called('cli')}{value}{words}`"


def _lowered(text: str) -> str:
    return text[0].lower() + text[1:]


def _with_row(text: str, begin: str, row: str) -> str:
    found = re.findall(rf"^{re.escape(begin)}.*$", text, re.MULTILINE)
    assert len(found) == 1, (begin, found)
    return text.replace(found[0], row)


# -- files ---------------------------------------------------------------------------------------------------

_WHOLE: Final[Mapping[str, Callable[[], str]]] = {
    "ipfsmem/methods.py": methods,
    "web/src/operations.d.ts": typescript,
}
_TABLES: Final[Mapping[str, Callable[[str], str]]] = {
    "docs/CLI.md": cli_tables,
    "docs/HTTP.md": http_table,
    "docs/MCP.md": mcp_table,
}


def files() -> Iterator[tuple[Path, str]]:
    """Each file with the text that it should have."""
    for path, make in _WHOLE.items():
        yield ROOT / path, make()
    for path, change in _TABLES.items():
        yield ROOT / path, change((ROOT / path).read_text("utf-8"))


if __name__ == "__main__":
    check, stale = "--check" in sys.argv, []
    for path, text in files():
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(path.relative_to(ROOT).as_posix())
            if not check:
                path.write_text(text, "utf-8")
    print("\n".join(stale))
    sys.exit(1 if check and stale else 0)
