"""Results of the plain reader for the inputs of `tests.support.parsers`, in the same form."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.plain import sessions, texts, views

#: Result for inputs that this reader does not read.
UNKNOWN = object()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _memory(given: str) -> Any:
    file = texts.read_file(_bytes(given))
    try:
        rendered = texts.render_file(file)
    except texts.Refused:
        rendered = None
    return [[list(one) for one in file.fields.items()], file.body, rendered]


def _merge(given: list[str]) -> Any:
    merged = views.merge3(*map(_bytes, given))
    return None if merged is None else merged.decode()


def _key(given: str) -> Any:
    copy = texts.conflict_name(given)
    return [texts.is_key(given), texts.is_scope(given), *texts.foreign_key(given), copy and list(copy)]


def _own_id(given: str) -> Any:
    split = texts.own_id(given)
    return split and list(split)


def _session(given: list[str]) -> Any:
    parts = [
        ("00aabbccddeeff11", texts.read_file(f"---\ntype: session\n---\n\n{body}\n".encode()).body)
        for body in given
    ]
    return [[list(place), item] for place, item in sessions.items(parts)]


PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "memory": _memory,
    "render": lambda given: texts.render_file(texts.File(dict(given["fields"]), given["body"])),
    "tags": lambda given: [texts.read_tags(given), texts.write_tags(texts.read_tags(given))],
    "merge": _merge,
    "lines": lambda given: [
        texts.event_line(event) for event in texts.read_lines(_bytes(given[0]), given[1])
    ],
    "instant": texts.normal_ts,
    "own_id": _own_id,
    "key": _key,
    "entry": lambda given: list(texts.entry_name(given)[:3]),
    "card": lambda given: texts.read_card(_bytes(given)),
    "session": _session,
    "canonical": lambda given: texts.canonical(_bytes(given)) is not UNKNOWN,
}


def judged(parser: str, given: Any) -> Any:
    """Return the plain reader's result for an input as a JSON value; UNKNOWN if it does not read such
    inputs."""
    if parser not in PARSERS:
        return UNKNOWN
    try:
        return PARSERS[parser](given)
    except texts.Refused:
        return {"refused": True}
    except texts.NotJudged:
        return UNKNOWN
