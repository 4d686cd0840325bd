"""What `connect` writes into the file of a program, as one edit, and taking exactly that out again.

An edit is made of entries of a JSON text and of tables of a TOML text. Everything here is a function of bytes: a file that is not
there is None. Which file, and when it is written, is `connecting.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ipfsmem.agents import block_edits, json_edits
from ipfsmem.agents.block_edits import Block
from ipfsmem.agents.json_edits import APPEND, Added
from ipfsmem.errors import FormatError

_MARK = "\ufeff"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry that a JSON file is to have. `mark`: words by which an item of an array is known to be ours."""

    path: tuple[str, ...]
    value: Any
    mark: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table that a TOML file is to have, in a marked block, and the lines of it."""

    table: tuple[str, ...]
    body: str


Wanted = Entry | Table


class Done(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was added by one edit: one of the two."""

    entry: Added | None = None
    block: Block | None = None


class Standing(msgspec.Struct, frozen=True):
    """Something of ours, or of the name that ours has, that stands in a file already."""

    wanted: Wanted
    done: Done
    same: bool

    @property
    def name(self) -> str:
        """What it is called, for people."""
        path = self.wanted.path if isinstance(self.wanted, Entry) else self.wanted.table
        return ".".join(step for step in path if step != APPEND)


def standing(data: bytes | None, wanted: Sequence[Wanted], program: str) -> Iterator[Standing]:
    """What of `wanted` is in a file already, whoever wrote it. Raises FormatError for a file that cannot be read."""
    _, text = _text(data)
    for one in wanted:
        if isinstance(one, Table):
            yield from _standing_block(text, one, program)
        elif one.path[-1] == APPEND:
            items = json_edits.find(text, one.path[:-1])
            if items is msgspec.UNSET:
                continue
            if not isinstance(items, list):
                raise FormatError(f"{'.'.join(one.path[:-1])} is not an array")
            for item in items:
                if _holds(item, one.mark):
                    yield Standing(one, _known(one.path, item), item == one.value)
        else:
            value = json_edits.find(text, one.path)
            if value is not msgspec.UNSET:
                yield Standing(one, _known(one.path, value), value == one.value)


def apply(
    data: bytes | None, wanted: Sequence[Wanted], program: str, seed: str = ""
) -> tuple[bytes, tuple[Done, ...]]:
    """The file with everything that is wanted and not there yet. `seed`: what a new file begins with. Raises FormatError."""
    before, text = _text(data)
    text = text or seed
    there = {id(one.wanted): one.done for one in standing(data, wanted, program)}
    done: list[Done] = []
    for one in wanted:
        if id(one) in there:
            done.append(there[id(one)])
        elif isinstance(one, Table):
            text, block = block_edits.add(text, one.body, program, one.table)
            done.append(Done(block=block))
        else:
            text, entry = json_edits.add(text, one.path, one.value)
            done.append(Done(entry=entry))
    return before + text.encode(), tuple(done)


def undo(data: bytes, done: Sequence[Done]) -> bytes:
    """The file without what was added, whatever else was changed in it since. Raises FormatError."""
    before, text = _text(data)
    for one in reversed(done):
        if one.entry is not None:
            text = json_edits.remove(text, one.entry)
        elif one.block is not None:
            text = block_edits.remove(text, one.block)
    return before + text.encode()


def changed_since(data: bytes, done: Sequence[Done]) -> Iterator[str]:
    """The names of what was added that says something else now."""
    _, text = _text(data)
    for one in done:
        if one.entry is not None and one.entry.path[-1] != APPEND:
            value = json_edits.find(text, one.entry.path)
            if value is not msgspec.UNSET and value != one.entry.value:
                yield ".".join(one.entry.path)
        elif one.block is not None:
            held = block_edits.table_in(text, one.block.table)
            if held is not None and held != block_edits.table_in(one.block.body, one.block.table):
                yield _name(one)


def missing(data: bytes | None, done: Sequence[Done]) -> list[str]:
    """The names of what was added that is not there any more as it was written. Raises FormatError."""
    if data is None:
        return [_name(one) for one in done]
    return [
        _name(one) for one in done if undo(data, (one,)) == data or _name(one) in changed_since(data, (one,))
    ]


def as_it_stands(data: bytes, one: Done) -> Done:
    """The same with the value that stands there now, for one that may be taken out although it was edited."""
    if one.entry is None or one.entry.path[-1] == APPEND:
        return one
    _, text = _text(data)
    value = json_edits.find(text, one.entry.path)
    return one if value is msgspec.UNSET else Done(entry=msgspec.structs.replace(one.entry, value=value))


def is_empty(data: bytes, seed: str) -> bool:
    """Whether nothing is in a file but what we would begin it with."""
    _, text = _text(data)
    return text.strip() in ("", "{}", seed.strip())


def _text(data: bytes | None) -> tuple[bytes, str]:
    """The byte order mark, if there is one, and the text. Raises FormatError."""
    try:
        text = (data or b"").decode()
    except UnicodeDecodeError:
        raise FormatError("it is no UTF-8 text") from None
    mark = _MARK if text.startswith(_MARK) else ""
    return mark.encode(), text[len(mark) :]


def _name(one: Done) -> str:
    if one.entry is not None:
        return ".".join(step for step in one.entry.path if step != APPEND)
    if one.block is not None:
        return ".".join(one.block.table)
    return ""


def _known(path: tuple[str, ...], value: Any) -> Done:
    there = len(path) - (
        2 if path[-1] == APPEND else 1
    )  # an array in which nothing else is goes with the item
    return Done(entry=Added(path=path, value=value, there=there, lead="", tail=""))


def _holds(value: Any, mark: str) -> bool:
    """Whether some text in a value has the mark in it."""
    if isinstance(value, str):
        return bool(mark) and mark in value
    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, list) and any(_holds(each, mark) for each in value)


def _standing_block(text: str, wanted: Table, program: str) -> Iterator[Standing]:
    held = block_edits.table_in(text, wanted.table)
    if held is not None:
        block = Block(body=wanted.body, lead="", program=program, table=wanted.table)
        same = held == block_edits.table_in(wanted.body, wanted.table)
        yield Standing(wanted, Done(block=block), same)
