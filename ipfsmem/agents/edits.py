"""Edits of settings files: add the entries of `connect` in one edit, and remove exactly these.

An edit consists of entries of a JSON text, tables of a TOML text, and entries of a YAML text. All functions map bytes to bytes;
None: a missing file. `connecting.py` chooses and writes the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ipfsmem.agents import block_edits, json_edits, yaml_edits
from ipfsmem.agents.block_edits import Block
from ipfsmem.agents.json_edits import APPEND, Added
from ipfsmem.agents.yaml_edits import Inserted, YamlEntry
from ipfsmem.errors import FormatError

_MARK = "\ufeff"
#: The key of the hooks in a group.
_GROUP = "hooks"


class ConfigEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A wanted entry of a JSON file. `mark`: words that identify an item of an array as ours."""

    path: tuple[str, ...]
    value: Any
    mark: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A wanted table of a TOML file, with its lines, in a marked block."""

    table: tuple[str, ...]
    body: str
    #: Keys that the program writes into it.
    program_keys: tuple[str, ...] = ()


Wanted = ConfigEntry | Table | YamlEntry


class Done(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of adding one entry, in exactly one of these fields."""

    entry: Added | None = None
    block: Block | None = None
    inserted: Inserted | None = None
    mark: str = ""


class Standing(msgspec.Struct, frozen=True):
    """An entry of ours, or of our name, that a file has already."""

    wanted: Wanted
    done: Done
    same: bool

    @property
    def name(self) -> str:
        """Its name for people."""
        return ".".join(step for step in way_of(self.wanted) if step != APPEND)


def way_of(wanted: Wanted) -> tuple[str, ...]:
    """Return its path of names."""
    return wanted.table if isinstance(wanted, Table) else wanted.path


def standing(data: bytes | None, wanted: Sequence[Wanted], program: str) -> Iterator[Standing]:
    """Yield those of `wanted` that a file has already, whoever wrote them. Raises FormatError for an unreadable file."""
    _, text = _text(data)
    for one in wanted:
        if isinstance(one, Table):
            yield from _standing_block(text, one, program)
        elif isinstance(one, YamlEntry):
            yield from _standing_yaml(text, one)
        elif one.path[-1] == APPEND:
            items = _items(text, one.path)
            for way in _ways(items, one.mark):
                yield Standing(one, _known(one), _is_as_written(items, way, one.value))
        else:
            value = json_edits.find(text, one.path)
            if value is not msgspec.UNSET:
                yield Standing(one, _known(one), value == one.value)


def apply(
    data: bytes | None, wanted: Sequence[Wanted], program: str, seed: str = ""
) -> tuple[bytes, tuple[Done, ...]]:
    """Return the file with all missing wanted entries added. `seed`: the initial content of a new file. Raises FormatError."""
    before, text = _text(data)
    text = text or seed
    there = {id(one.wanted): one.done for one in standing(data, wanted, program)}
    done: list[Done] = []
    for one in wanted:
        if id(one) in there:
            done.append(there[id(one)])
        elif isinstance(one, Table):
            text, block = block_edits.add(text, one.body, program, one.table, one.program_keys)
            done.append(Done(block=block))
        elif isinstance(one, YamlEntry):
            text, inserted = yaml_edits.add(text, one)
            done.append(Done(inserted=inserted))
        else:
            text, entry = json_edits.add(text, one.path, one.value)
            done.append(Done(entry=entry, mark=one.mark))
    return before + text.encode(), tuple(done)


def undo(data: bytes, done: Sequence[Done], *, edited: bool = False) -> bytes:
    """Return the file without the additions, whatever else changed since. Items of an array are removed if unchanged; with
    `edited` all with our mark. Other hooks of a group stay. Raises FormatError."""
    before, text = _text(data)
    for one in reversed(done):
        if one.block is not None:
            text = block_edits.remove(text, one.block)
        elif one.inserted is not None:
            text = yaml_edits.remove(text, one.inserted)
        elif one.entry is not None:
            edited_text = json_edits.remove(text, one.entry)
            if one.entry.path[-1] == APPEND and (edited_text == text or edited):
                edited_text = _without_marked(edited_text, one.entry, one.mark, edited)
            text = edited_text
    return before + text.encode()


def changed_since(data: bytes, done: Sequence[Done]) -> Iterator[str]:
    """Yield the names of additions whose values changed."""
    _, text = _text(data)
    for one in done:
        if one.entry is not None and one.entry.path[-1] == APPEND:
            items = _items(text, one.entry.path)
            ways = _ways(items, one.mark)
            if ways and not any(_is_as_written(items, way, one.entry.value) for way in ways):
                yield _name(one)
        elif one.entry is not None:
            value = json_edits.find(text, one.entry.path)
            if value is not msgspec.UNSET and value != one.entry.value:
                yield _name(one)
        elif one.block is not None:
            own_part = _own_part(text, one.block)
            if own_part is not None and own_part != _own_part(one.block.body, one.block):
                yield _name(one)
        elif one.inserted is not None:
            value = yaml_edits.find(text, one.inserted.entry)
            if value is not msgspec.UNSET and not _is_same(value, one.inserted.entry):
                yield _name(one)


def stands(data: bytes, done: Sequence[Done], wanted: Sequence[Wanted]) -> bool:
    """Tell whether exactly the wanted entries were added, and the file has each once and unchanged. Raises FormatError."""
    if sorted(map(repr, wanted_again(done))) != sorted(map(repr, wanted)):
        return False
    standings = [*standing(data, wanted, "")]
    return len(standings) == len(wanted) and all(one.same for one in standings)


def wanted_again(done: Sequence[Done]) -> tuple[Wanted, ...]:
    """Return the wanted entries of these additions."""
    entries: list[Wanted] = []
    for one in done:
        if one.entry is not None:
            entries.append(ConfigEntry(path=one.entry.path, value=one.entry.value, mark=one.mark))
        elif one.block is not None:
            block = one.block
            entries.append(Table(table=block.table, body=block.body, program_keys=block.program_keys))
        elif one.inserted is not None:
            entries.append(one.inserted.entry)
    return tuple(entries)


def with_additions_of_program(data: bytes, wanted: Sequence[Wanted]) -> tuple[Wanted, ...]:
    """Return the wanted entries with the keys that the program added to our tables since. Raises FormatError."""
    _, text = _text(data)
    entries: list[Wanted] = []
    for one in wanted:
        if isinstance(one, YamlEntry):
            entries.append(_with_additions(text, one))
            continue
        table = block_edits.table_in(text, one.table) if isinstance(one, Table) else None
        if isinstance(one, Table) and isinstance(table, dict):
            theirs = {key: table[key] for key in one.program_keys if key in table}
            if theirs:
                body = f"{one.body}\n{block_edits.lines_of(one.table, theirs)}"
                entries.append(msgspec.structs.replace(one, body=body))
                continue
        entries.append(one)
    return tuple(entries)


def missing(data: bytes | None, done: Sequence[Done]) -> list[str]:
    """Return the names of additions that are missing or changed. Raises FormatError."""
    if data is None:
        return [_name(one) for one in done]
    return [
        _name(one) for one in done if undo(data, (one,)) == data or _name(one) in changed_since(data, (one,))
    ]


def written(done: Sequence[Done], seed: str = "") -> Iterator[str]:
    """Yield our plain values, as JSON, and lines of TOML and YAML."""
    values: list[Any] = [one.entry.value for one in done if one.entry is not None]
    values.append(json_edits.find(seed, ()))
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += value.values()
        elif isinstance(value, list):
            values += value
        elif value is not msgspec.UNSET:
            yield json.dumps(value)
    for one in done:
        if one.block is not None:
            yield from block_edits.whole(one.block).splitlines()
        elif one.inserted is not None:
            yield from one.inserted.written.splitlines()


def is_empty(data: bytes, seed: str) -> bool:
    """Tell whether a file has only our initial content, in any layout."""
    _, text = _text(data)
    return "".join(text.split()) in ("", "{}", "".join(seed.split()))


def _text(data: bytes | None) -> tuple[bytes, str]:
    """Return the byte order mark, if any, and the text. Raises FormatError."""
    try:
        text = (data or b"").decode()
    except UnicodeDecodeError:
        raise FormatError("not UTF-8 text; an editor can save it as that") from None
    mark = _MARK if text.startswith(_MARK) else ""
    return mark.encode(), text[len(mark) :]


def _name(one: Done) -> str:
    if one.entry is not None:
        return ".".join(step for step in one.entry.path if step != APPEND)
    if one.block is not None:
        return ".".join(one.block.table)
    return "" if one.inserted is None else ".".join(one.inserted.entry.path)


def _known(one: ConfigEntry) -> Done:
    there = len(one.path) - (
        2 if one.path[-1] == APPEND else 1
    )  # an otherwise empty array is removed with the item
    return Done(entry=Added(path=one.path, value=one.value, there=there, lead="", tail=""), mark=one.mark)


def _items(text: str, path: tuple[str, ...]) -> list[Any]:
    """Return the array at a path with `APPEND` at its end; empty if it is missing. Raises FormatError."""
    items = json_edits.find(text, path[:-1])
    if items is msgspec.UNSET or items is None:
        return []
    if not isinstance(items, list):
        raise FormatError(f"{'.'.join(path[:-1])} is not an array")
    return items


def _ways(items: Sequence[Any], mark: str) -> list[tuple[str | int, ...]]:
    """Return the paths of the hooks with our mark: whole items, groups with no other hook, and hooks within a group."""
    places: list[tuple[str | int, ...]] = []
    for place, item in enumerate(items):
        if _is_marked(item, mark):
            places.append((place,))
            continue
        group = item.get(_GROUP) if isinstance(item, dict) else None
        if isinstance(group, list):
            ours = [at for at, hook in enumerate(group) if _is_marked(hook, mark)]
            if ours and len(ours) == len(group):
                places.append((place,))
            else:
                places += [(place, _GROUP, at) for at in ours]
    return places


def _is_marked(hook: Any, mark: str) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return bool(mark) and isinstance(command, str) and mark in command


def _is_as_written(items: Sequence[Any], way: tuple[str | int, ...], value: Any) -> bool:
    """Tell whether our hook at a path, and its group, are unchanged, apart from others' additions."""
    item = items[int(way[0])]
    if len(way) == 1:
        return bool(item == value)
    if not isinstance(value, dict) or not isinstance(value.get(_GROUP), list):
        return False
    alone = {**item, _GROUP: [item[_GROUP][int(way[2])]]}
    return bool(alone == value)


def _without_marked(text: str, entry: Added, mark: str, edited: bool) -> str:
    """Return the text without our hooks in an array: the unchanged ones, or all."""
    while True:
        items = _items(text, entry.path)
        ways = [way for way in _ways(items, mark) if edited or _is_as_written(items, way, entry.value)]
        if not ways:
            return text
        text = json_edits.remove_at(text, (*entry.path[:-1], *ways[-1]), entry.there)


def _own_part(text: str, block: Table | Block) -> Any:
    """Return a table without the keys that the program writes."""
    table = block_edits.table_in(text, block.table)
    if not isinstance(table, dict):
        return table
    return {key: value for key, value in table.items() if key not in block.program_keys}


def _standing_block(text: str, wanted: Table, program: str) -> Iterator[Standing]:
    own_part = _own_part(text, wanted)
    if own_part is not None:
        block = Block(
            body=wanted.body,
            lead="",
            program=program,
            table=wanted.table,
            program_keys=wanted.program_keys,
        )
        yield Standing(wanted, Done(block=block), own_part == _own_part(wanted.body, wanted))


def _is_same(value: Any, wanted: YamlEntry) -> bool:
    """Tell whether an entry has the wanted value, ignoring the keys that the program writes."""
    theirs, ours = (
        {key: each for key, each in one.items() if key not in wanted.program_keys}
        for one in (value if isinstance(value, dict) else {}, wanted.value)
    )
    return bool(theirs == ours)


def _standing_yaml(text: str, wanted: YamlEntry) -> Iterator[Standing]:
    value = yaml_edits.find(text, wanted)
    if value is not msgspec.UNSET:
        done = Done(inserted=Inserted(entry=wanted, written="", made=False))
        yield Standing(wanted, done, _is_same(value, wanted))


def _with_additions(text: str, wanted: YamlEntry) -> YamlEntry:
    table = yaml_edits.find(text, wanted)
    if not isinstance(table, dict):
        return wanted
    theirs = {key: table[key] for key in wanted.program_keys if key in table}
    return msgspec.structs.replace(wanted, value={**wanted.value, **theirs})
