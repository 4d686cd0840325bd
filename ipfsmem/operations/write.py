"""The operation `write`: create a memory, or replace its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from msgspec import Meta

from ipfsmem.bundle.memory_file import ENTRY_TYPES, TYPES
from ipfsmem.errors import UsageError
from ipfsmem.memories.memory_records import MemoryRecord, Seen
from ipfsmem.operation import Cli, Except, ForModels, Http, Key, Stored, View, operation

#: Maximum characters of a text that a model writes.
MAX_BODY = 900_000


@operation(
    summary="Write a memory",
    right="write",
    about="target",
    raises=(
        "ChangedError: the memory is not as `seen` or `if_match` says; nothing was written.",
        "KeyNameError: `key` is invalid.",
        "UsageError: a field has an invalid value, or only some parts of a pending text were given; nothing was written.",
        "FormatError: the replaced text is not a memory file, so it has no fields to keep.",
        "LimitError: the text is too long.",
    ),
    http="PUT /v1/memories/{key}",
    tool="remember",
    title="Remember: save a memory",
    for_models="Save or update one memory, kept across conversations and devices. A new key creates one. To replace a text, pass the seen "
    "value of the answer that showed all of it.",
    less_for_models="The model knows the text that it passed, and each word costs tokens.",
    idempotent=True,
)
def write(
    view: View,
    key: Key,
    body: Annotated[
        str | None,
        Stored(),
        Meta(description="The text."),
        Cli(option=True),
        ForModels("Full text in Markdown; omit to change only fields.", most=MAX_BODY),
    ] = None,
    *,
    name: Annotated[
        str | None, Stored(), Meta(description="Name for people."), ForModels("Short title.", most=200)
    ] = None,
    description: Annotated[
        str | None,
        Stored(),
        Meta(description="One line for lists and the index."),
        ForModels("One line: when this memory is useful.", most=500),
    ] = None,
    type: Annotated[
        str | None,
        Meta(description="Type of its content."),
        Cli(words=TYPES),
        Http(type=Literal[("", *TYPES, *ENTRY_TYPES)]),
        ForModels(
            "user: about the person; feedback: how they want things done; project: state, decisions; reference: where things are.",
            words=TYPES,
        ),
    ] = None,
    tags: Annotated[
        Iterable[Annotated[str, Stored()]] | None,
        Meta(description="Its tags."),
        Cli("tag", help="Tag; repeatable."),
        ForModels("Search terms.", most=32, each=64),
    ] = None,
    fields: Annotated[
        Mapping[str, str] | None,
        Meta(description="Further fields of its header; an empty value removes one."),
        Except(("cli", "mcp")),
    ] = None,
    text: Annotated[
        bytes | str | None,
        Stored(),
        Meta(description="The whole file, header and all, instead of all other parts."),
        Http(type=str),
        Except(("cli", "mcp")),
    ] = None,
    seen: Annotated[
        Seen | None,
        Meta(description="Replace only this text: a MemoryRecord, its `token` or its `seen`."),
        Http(etag=True, new="if_match"),
        Except(("cli", "mcp")),
    ] = None,
    if_match: Annotated[
        str | None,
        Meta(
            description="Write only if the text has this SHA-256; empty: only if the memory does not exist."
        ),
        Cli(metavar="SHA256", help="Write only if the text has this SHA-256."),
        Except(("http", "mcp")),
    ] = None,
) -> MemoryRecord:
    """Write a memory. It is durable on this device when this returns.

    Omitted parts are unchanged. An empty value removes a field. The field `updated` is set to today.
    """
    from ipfsmem.memories.memories import LONG
    from ipfsmem.operations.writing import changed_text, write_text

    parts = (body, name, description, type, tags, fields)
    if text is not None:
        if any(one is not None for one in parts):
            raise UsageError("text cannot be combined with body, name or other fields")
        data = text.encode() if isinstance(text, str) else text
        return write_text(view.opened, view.scope, key, data, seen=seen, if_match=if_match)
    from ipfsmem.memories.write_request import check_values

    header = {"type": type, **(fields or {})}
    check_values(header)
    listed = None if tags is None else f"[{', '.join(each)}]" if (each := [*tags]) else ""
    header = {"name": name, "description": description, "type": type, "tags": listed}
    header |= fields or {}
    return write_text(
        view.opened,
        view.scope,
        key,
        lambda there, shown: changed_text(there, key, shown, body, header),
        seen=seen,
        if_match=if_match,
        long=body is None or len(body) > LONG,
    )
