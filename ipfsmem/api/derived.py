"""Derive the routes of the declared operations: path, right, parameters, request body and response."""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from ipfsmem.api.calls import NO_SEEN, Call, Download, Parameter, Refused, Reply
from ipfsmem.api.routes import MOST, Route, reached
from ipfsmem.bundle.keys import check_scope
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.operation import Document, Operation, Put, is_absent
from ipfsmem.operation import Parameter as Declared
from ipfsmem.operations import INDEX, load

#: Methods whose arguments are in the body.
_WITH_BODY: Final = ("POST", "PUT")
#: Between two paragraphs of a description.
_PARAGRAPH: Final = "\n\n"
#: The subject of a route, unless it is a scope.
_ABOUT: Final[Mapping[str, Literal["caller", "part", "whole"]]] = {
    "part": "part",
    "memory": "whole",
    "user": "whole",
    "scopes": "caller",
}
#: The type of content and the end of the file name of each format of a document.
_FORMATS: Final = {
    "markdown": ("text/markdown", "md"),
    "json": ("application/json", "json"),
    "csv": ("text/csv", "csv"),
    "graphml": ("application/graphml+xml", "graphml"),
    "mermaid": ("text/vnd.mermaid", "mmd"),
    "html": ("text/html", "html"),
}


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of an operation in the body of a request; unknown ones are refused."""


def route_of(op: Operation[..., Any]) -> Route:
    """The route of an operation."""
    method, path = op.declared.http.split()
    about, reaches, query = op.declared.about, op.declared.reaches, query_of(op)
    precondition, upload = _precondition(op), _upload(op)
    is_document = issubclass(op.answer, Document)
    requires_new = precondition is not None and bool(precondition.http.new)
    may_be_new = requires_new or issubclass(op.answer, Put)
    return Route(
        method.lower(),
        path,
        op.name.replace(".", "_"),
        upload.file.summary if upload and upload.file else op.declared.summary,
        functools.partial(_work, op),
        bytes if is_document else op.answer,
        right=op.declared.right,
        about=_ABOUT.get(about, "whole" if reaches == "all" else "scope"),
        body=bytes if upload else _body_type(op) if _in_body(op) else None,
        query=(*_scopes_asked(op), *(one.name for one in query)),
        writes=op.declared.right != "read" and method != "GET",
        onward=reaches == "named",
        beside=op.declared.beside,
        everybody=op.declared.everybody,
        statuses=("200", "201") if may_be_new else (str(op.declared.status),),
        seen=precondition is not None,
        new=requires_new,
        needs=tuple(one.name for one in query if one.required),
        tagged=_is_tagged(op),
        gives=_content_types(op),
        description=f"{upload.file.about}\n\n{op.doc.partition(_PARAGRAPH)[2]}"
        if upload and upload.file
        else op.doc,
        own={one.name: _parameter(one) for one in query},
        most=upload.file.most if upload and upload.file else MOST,
    )


def _is_tagged(op: Operation[..., Any]) -> bool:
    """Whether the answer has the version of one text, which becomes its ETag."""
    return any(vars(one).get("__annotations__", {}).get("seen") in ("str", str) for one in op.answer.__mro__)


def _scopes_asked(op: Operation[..., Any]) -> tuple[str, ...]:
    """The parameters of the query that name scopes, beside `scope` of a route that is about one."""
    if op.declared.about == "stack":
        return ("stack",)
    return ("scope",) if op.declared.reaches == "all" else ()


def routes() -> tuple[Route, ...]:
    """The routes of all operations that have one."""
    return tuple(route_of(op) for op in map(load, INDEX) if op.declared.http)


def _content_types(op: Operation[..., Any]) -> tuple[str, ...]:
    """The content types of its responses."""
    if op.declared.file is not None:
        return tuple(kind for kind, _ in op.declared.file.kinds.values())
    is_document = issubclass(op.answer, Document)
    formats = typing.get_args(typing.get_type_hints(op.answer)["format"]) if is_document else ("json",)
    return tuple(_FORMATS[one][0] for one in formats)


def query_of(op: Operation[..., Any]) -> list[Declared]:
    """The arguments in the query."""
    in_body = {one.name for one in _in_body(op)}
    return [one for one in _outside_path(op) if one.name not in in_body and one.file is None]


def _in_body(op: Operation[..., Any]) -> list[Declared]:
    """The arguments in the body."""
    has_body = op.declared.http.split()[0] in _WITH_BODY and _upload(op) is None
    return [one for one in _outside_path(op) if has_body and not one.http.query]


def _upload(op: Operation[..., Any]) -> Declared | None:
    """The argument that is the body, byte for byte."""
    return next((one for one in op.parameters("http") if one.file is not None), None)


def _precondition(op: Operation[..., Any]) -> Declared | None:
    """The argument in a header."""
    return next((one for one in op.parameters("http") if one.http.etag), None)


def _outside_path(op: Operation[..., Any]) -> list[Declared]:
    """The arguments in the query or body."""
    path = op.declared.http
    return [one for one in op.parameters("http") if f"{{{one.name}}}" not in path and not one.http.etag]


def _body_type(op: Operation[..., Any]) -> type[msgspec.Struct]:
    fields = [
        (one.name, one.annotated()) if one.is_required_in_http else (one.name, one.annotated(), _default(one))
        for one in _in_body(op)
    ]
    name = "".join(word.title() for word in op.name.replace("_", ".").split("."))
    body_type = msgspec.defstruct(
        f"{name}Body",
        fields,
        bases=(Body,),
        module=__name__,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    body_type.__doc__ = f"The arguments of {op.name}."
    return body_type


def _default(one: Declared) -> Any:
    return one.default if one.http.default is None else one.http.default


def _parameter(one: Declared) -> Parameter:
    """An argument in the query."""
    schema = msgspec.json.schema(one.annotated())
    schema = next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)
    schema.pop("description", None)
    if _default(one) not in (None, "", ()) and not one.required:
        schema["default"] = _default(one)

    def read(text: str) -> Any:
        if not text and one.optional and one.type is not int and not one.http.empty:
            return None
        if one.type is int:
            if not text.isascii() or not text.removeprefix("-").isdecimal() or len(text) > 9:
                raise UsageError(f"must be {one.least}-{one.most} (got {text[:20]!a})")
            return int(text)
        if one.type is float:
            try:
                return float(text)
            except ValueError:
                raise UsageError(f"must be {one.least}-{one.most} (got {text[:20]!a})") from None
        if one.type is bool and text not in ("true", "false"):
            raise UsageError(f"must be true or false (got {text[:20]!a})")
        return text == "true" if one.type is bool else text

    return Parameter(schema, read, one.description)


def _admit(call: Call, arguments: dict[str, Any], parameters: Iterable[Declared]) -> None:
    """Raises Refused if the caller's token is not for the scopes that an argument adds."""
    for one in parameters:
        value = arguments[one.name]
        if not one.http.reaches or value in (None, False):
            continue
        if one.http.reaches == "all":
            call.caller.require_all_scopes()
        else:
            scope = check_scope(value) if value else ""
            alone = one.http.reaches == "itself"
            call.caller.require_scopes([scope] if alone else reached(call.whole, scope))


def _work(op: Operation[..., Any], call: Call) -> Any:
    source = call.whole.stack(*call.stack) if call.stack else call.memory
    upload = _upload(op)
    if upload is not None:
        body = {upload.name: call.body}
    else:
        body = {} if call.body is None else msgspec.structs.asdict(call.body)
    values = {"scope": call.scope or None, **({"key": call.key} if call.key else {}), **call.query, **body}
    arguments = {one.name: values.get(one.name, _default(one)) for one in op.parameters("http")}
    _admit(call, arguments, op.parameters("http"))
    if any(one.http.shown and arguments[one.name] is None for one in op.parameters("http")):
        raise Refused(NO_SEEN)
    status, precondition = op.declared.status, _precondition(op)
    if precondition is not None:
        if call.seen or not precondition.http.new:
            arguments[precondition.name] = call.seen
        else:
            arguments[precondition.http.new], status = "", 201
    view = source._view()
    # An operation that runs beside others has an opening of the memory of its own.
    if op.declared.ingests and not op.declared.beside:
        view.remembered = call.remembered()
    assert not op.is_coroutine, "the server syncs in a thread of its own"
    result = op.run(view, arguments, "http")
    if op.declared.absent and is_absent(result):
        raise NotFoundError(op.declared.absent.format(**arguments))
    if isinstance(result, Document):
        kind, suffix = _FORMATS[result.format]
        return Download(
            result.text.encode(), kind, f"{op.name.rpartition('.')[0].removesuffix('s')}.{suffix}"
        )
    if op.declared.file is not None:
        return Download(result, *op.declared.file.kinds[arguments[op.declared.file.by]])
    if isinstance(result, Put) and result.created:
        status = 201
    return Reply(op.answered(result), status, result.seen if _is_tagged(op) else "")
