"""Derive a tool from a declared operation, or from a function of its own: its schemas. The text for models is written by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_type_hints

import msgspec

from ipfsmem.bundle.fence import CANDIDATE, NOTICE, clean_text
from ipfsmem.operation import REQUIRED, Operation, Parameter
from ipfsmem.tools.definition import SCOPE, Definition
from ipfsmem.tools.schema import JSON, answer, arguments
from ipfsmem.tools.tool import ToolResult
from ipfsmem.tools.tool_context import ToolContext

if TYPE_CHECKING:
    from ipfsmem.operation import View

R = TypeVar("R")


class RenderedAnswer(NamedTuple):
    """The answer for a model: a text, and the part of the result that it shows. `more`: values about the text, such as the
    position of the next page."""

    text: str
    shown: msgspec.Struct
    more: JSON = {}  # noqa: RUF012


def tool(
    op: Operation[..., R],
    tell: Callable[[ToolContext, R, JSON], RenderedAnswer] | None = None,
    *,
    run: Callable[[ToolContext, JSON], ToolResult] | None = None,
    further: Mapping[str, JSON] = {},
    more: Mapping[str, JSON] = {},
    returns: JSON | None = None,
    ask: Callable[[JSON], JSON] = lambda args: {},
) -> Definition:
    """Return the tool of an operation. `tell` renders the result, given the arguments; `run` replaces it if the tool needs more
    than one call. `further`: arguments of the tool only. `more`: the schemas of further values of the answer. `returns`: the
    schema of an answer that has less than the result; the declaration has the reason (`less_for_models`). `ask`: arguments of the
    operation that follow from `further`."""
    declared = op.declared
    parameters = op.parameters("mcp")
    assert (returns is not None) == bool(declared.less_for_models), op.name

    def call(tool_context: ToolContext, args: JSON) -> ToolResult:
        assert tell is not None
        call_args = {one.name: _argument_of(one, args) for one in parameters}
        result = op.run(_view(op, tool_context, args), {**call_args, **ask(args)}, "mcp")
        return answered(tell(tool_context, result, {**args, **call_args}))

    return Definition(
        name=declared.tool,
        title=declared.title,
        description=declared.for_models,
        parameters=_arguments(parameters, further, scoped=op.is_scoped),
        returns=returns or _returns(op, more),
        run=run or call,
        read_only=declared.right == "read",
        destructive=declared.destructive,
        idempotent=declared.idempotent or declared.right == "read",
    )


def declared_tool(
    *,
    title: str,
    description: str,
    returns: type[msgspec.Struct],
    scoped: bool = True,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = True,
) -> Callable[[Callable[..., ToolResult]], Definition]:
    """Decorator: declare a function as the tool of its name, where the shapes are those of another program and not of an operation.

    The function gets the context, all arguments of the call for the scope that they name, and each declared argument by its name, as
    an operation does. `returns`: the struct of its structured answer. `scoped`: whether a call may name a scope.
    """

    def declare(function: Callable[..., ToolResult]) -> Definition:
        hints, defaults = get_type_hints(function, include_extras=True), function.__kwdefaults__ or {}
        code = function.__code__
        names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        parameters = [Parameter(name, hints[name], defaults.get(name, REQUIRED)) for name in names]

        def call(tool_context: ToolContext, args: JSON) -> ToolResult:
            return function(tool_context, args, **{one.name: _argument_of(one, args) for one in parameters})

        return Definition(
            name=function.__name__,
            title=title,
            description=description,
            parameters=_arguments(parameters, {}, scoped=scoped),
            returns=answer(**_of_struct(returns)["properties"]),
            run=call,
            read_only=read_only,
            destructive=destructive,
            idempotent=idempotent,
        )

    return declare


def told(text: str, values: msgspec.Struct) -> ToolResult:
    """Return the answer of a declared tool, whose texts are clean already."""
    return ToolResult(text, msgspec.to_builtins(values))


def _arguments(parameters: list[Parameter], further: Mapping[str, JSON], *, scoped: bool) -> JSON:
    return arguments(
        *(one.called("mcp") for one in parameters if one.required or one.models.required),
        **{one.called("mcp"): _schema(one) for one in parameters},
        **further,
        **({"scope": SCOPE} if scoped else {}),
    )


def answered(rendered: RenderedAnswer) -> ToolResult:
    """Return the answer of a tool."""
    return ToolResult(rendered.text, {**_values(rendered.shown), **rendered.more})


def _view(op: Operation[..., Any], tool_context: ToolContext, args: JSON) -> View:
    if op.declared.about == "stack":
        return tool_context.memory.stack(tool_context.scope_of(args, must_exist=True))._view()
    return tool_context.there(args)._view()


def _argument_of(one: Parameter, args: Mapping[str, Any]) -> Any:
    return args.get(one.called("mcp"), one.default if one.models.default is None else one.models.default)


def _schema(one: Parameter) -> JSON:
    """Return the JSON Schema of an argument, with the description for models."""
    schema = _inlined(msgspec.json.schema(one.annotated()))
    if "anyOf" in schema:  # an optional argument is omitted, never null
        schema = next(each for each in schema["anyOf"] if each != {"type": "null"})
    schema_made: JSON = {
        "type": schema.pop("type", "string"),
        "description": one.models.description or one.description,
    }
    words = one.models.words or one.words
    schema_made |= {**schema, "description": schema_made["description"]}
    if one.type is Any:  # any JSON
        del schema_made["type"]
    if words:
        schema_made["enum"] = list(words)
        schema_made.pop("maxLength", None)
    default = one.models.default if one.models.default is not None else one.default
    if one.models.most is not None:
        schema_made[_MOST.get(schema_made["type"], "maximum")] = one.models.most
    if one.models.each is not None:
        schema_made["items"]["maxLength"] = one.models.each
    return (
        schema_made
        if one.words or one.required or default in (None, "", ())
        else {**schema_made, "default": default}
    )


_MOST = {"string": "maxLength", "array": "maxItems"}


def _returns(op: Operation[..., Any], more: Mapping[str, JSON]) -> JSON:
    """Return the schema of the structured answer: a notice, the fields of the result, and `more`."""
    schema = _of_struct(op.answer)
    properties = {"notice": {"type": "string"}, **schema["properties"], **more}
    return {**schema, "properties": properties, "required": [*properties]}


def _of_struct(struct: Any) -> JSON:
    """Return the schema of the values of a struct."""
    return _inlined(msgspec.json.schema(struct))


def _inlined(schema: JSON) -> JSON:
    """Return a schema without references, titles and descriptions, in which all fields of an object are required."""
    definitions = schema.get("$defs", {})

    def one(part: Any) -> Any:
        if isinstance(part, list):
            return [one(each) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return one(definitions[part["$ref"].rpartition("/")[2]])
        inlined = {name: one(value) for name, value in part.items() if name not in _LEFT_OUT}
        if "properties" in part:
            inlined["properties"] = {name: one(value) for name, value in part["properties"].items()}
            inlined |= {"required": list(part["properties"]), "additionalProperties": False}
        return inlined

    inlined: JSON = one(schema)
    return inlined


_LEFT_OUT = frozenset(["$defs", "title", "description", "default", "properties"])


def _values(shown: msgspec.Struct) -> JSON:
    """Return a result as JSON values, with all texts cleaned and a notice."""
    values = _cleaned(msgspec.to_builtins(shown))
    return {**values, "notice": f"{NOTICE} {CANDIDATE}" if _has_others(values) else NOTICE}


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(name): _cleaned(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(one) for one in value]
    return round(value, 3) if isinstance(value, float) else value


def _has_others(value: Any) -> bool:
    if isinstance(value, dict):
        return False in (value.get("own"), value.get("summary_own")) or any(map(_has_others, value.values()))
    return isinstance(value, list) and any(map(_has_others, value))
