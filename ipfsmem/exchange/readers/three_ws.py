"""three.ws: its export `memory/0.1`, the content of its browser store, its plain bundle, the entries of its runtime store, and
the signed bundle `brain/1`.

The files of the file memory are imported unchanged. Entries of the runtime store and of a brain have ids of their own; an entry with
encrypted content is reported, because only its wallet can decrypt it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ipfsmem.bundle.blob import Blob, read_blob
from ipfsmem.bundle.timeline import day_of_file, is_too_long, lines_of, parse_line, too_long_text
from ipfsmem.errors import FormatError, IpfsmemError
from ipfsmem.exchange.json_input import as_utf8, read_json
from ipfsmem.exchange.lenient import Fields, items_of
from ipfsmem.exchange.places import Files, left_out_notes
from ipfsmem.exchange.records import Happened, ImportRecord, Item, Problem, is_one_of_a_kind, name_of


def read(files: Files) -> Iterator[Item]:
    """Yield the content of every file of a place."""
    yield from left_out_notes(files)
    for name in files.ending(".json", ".md", ".jsonl"):
        last = name.rpartition("/")[2]
        if last in ("MEMORY.md", "manifest.json"):
            continue
        try:
            data = files.read(name)
            if name.lower().endswith(".md"):
                yield ImportRecord(where=name, file=data, file_name=last)
            elif name.lower().endswith(".jsonl"):
                yield from _events(name, data)
            else:
                yield from _json(name, data)
        except IpfsmemError as error:
            if files.single:
                raise
            yield Problem(name, str(error))


def _json(file: str, data: bytes) -> Iterator[Item]:
    value = read_json(data, file)
    if isinstance(value, list):
        for number, entry in enumerate(value, 1):
            yield _entry(f"entry {number} of {file}", entry)
    elif isinstance(value, dict) and ("brain_hash" in value or isinstance(value.get("memories"), list)):
        for number, entry in enumerate(items_of(value.get("memories")), 1):
            yield _entry(f"memory {number} of {file}", entry)
    else:
        yield from _blob(read_blob(as_utf8(data, file), lenient=True), file)


def _blob(blob: Blob, file: str) -> Iterator[Item]:
    for key, text in (*blob.files.items(), *blob.more):
        yield ImportRecord(where=f"{key}.md in {file}", file=text, file_name=f"{key}.md")
    for key, text in blob.others:
        yield ImportRecord(where=f"{key}.md in {file}", file=text, file_name=f"{key}.md", candidate=True)
    for event in blob.events:
        yield Happened({name: value for name, value in event.items() if name != "id"})
    for problem in blob.problems:
        yield Problem(f"a part of {file}", problem, blob.unread)


def _events(file: str, data: bytes) -> Iterator[Item]:
    day = day_of_file(file)
    for line in lines_of(data):
        if is_too_long(line):
            yield Problem(file, f"{too_long_text(1)} is not an event")
        else:
            yield Happened({name: value for name, value in parse_line(line, day).items() if name != "id"})


def _is_full(salience: Any) -> bool:
    return isinstance(salience, int | float) and not isinstance(salience, bool) and salience >= 1


def _entry(place: str, value: Any) -> Item:
    try:
        entry = Fields(value, "content")
        if "content" not in entry.value and entry.value.keys() & {"cipher", "ciphertext", "cid"}:
            raise FormatError("its content is encrypted for a wallet, and not in the file")
        text = entry.body("content", "content")
        if not text.strip():
            raise FormatError("its content is empty")
        ident = entry.text("id")
        return ImportRecord(
            where=place,
            text=text,
            ident=ident,
            unique=is_one_of_a_kind(ident),
            name=name_of(text),
            type=entry.text("type"),
            tags=entry.texts("tags"),
            created=entry.date("createdAt", "created_at"),
            updated=entry.date("updatedAt", "updated_at"),
            source=f"three.ws:{ident}"[:300],
            fields={
                "expires": entry.date("expiresAt", "expires_at"),
                # Its salience is at most 1, and 1 only for important ones.
                "important": "true" if _is_full(entry.value.get("salience")) else "",
            },
            extra=entry.rest(
                {
                    name: entry.value[name]
                    for name in ("context", "salience", "tier", "pinned")
                    if entry.value.get(name)
                }
            ),
        )
    except FormatError as error:
        return Problem(place, str(error))
