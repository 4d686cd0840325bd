"""Derive the routes of the declared operations: path, right, request body and response."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from ipfsmem.api.bodies import Body
from ipfsmem.api.calls import Call
from ipfsmem.api.routes import Route
from ipfsmem.operation import Operation
from ipfsmem.operations import INDEX, load


def route_of(op: Operation[..., Any]) -> Route:
    """The route of an operation."""
    method, path = op.declared.http.split()
    about = op.declared.about
    return Route(
        method.lower(),
        path,
        op.name.replace(".", "_"),
        op.declared.summary,
        functools.partial(_work, op),
        op.result,
        right=op.declared.right,
        about="whole" if about == "memory" else "scope",
        body=_body_type(op),
        query=("stack",) if about == "stack" else (),
        led=about == "target",
        description=op.doc,
    )


def routes() -> tuple[Route, ...]:
    """The routes of all operations that have one."""
    return tuple(route_of(op) for op in map(load, INDEX) if op.declared.http)


def _body_type(op: Operation[..., Any]) -> type[msgspec.Struct]:
    fields = [
        (one.name, one.annotated()) if one.required else (one.name, one.annotated(), one.default)
        for one in op.parameters("http")
    ]
    name = "".join(word.title() for word in op.name.split("."))
    made = msgspec.defstruct(
        f"{name}Body",
        fields,
        bases=(Body,),
        module=__name__,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    made.__doc__ = f"The arguments of {op.name}."
    return made


def _work(op: Operation[..., Any], call: Call) -> Any:
    source = call.whole.stack(*call.stack) if call.stack else call.memory
    return op.run(source._view(), msgspec.structs.asdict(call.body), "http")
