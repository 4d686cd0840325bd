"""basic-memory: a project folder of Markdown notes with front matter, in folders of the user's choice.

A note's body stays unchanged, observations and relations included: both are lines of Markdown with the same meaning here. Its
`title` becomes the name, every other field keeps its own. The database next to the notes is an index of them, and not read.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from ipfsmem.bundle.header_edit import edit_memory
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory
from ipfsmem.errors import FormatError, IpfsmemError, LimitError
from ipfsmem.exchange.lenient import utf8_text
from ipfsmem.exchange.places import Files, left_out_notes
from ipfsmem.exchange.records import ImportRecord, Item, Problem, Skipped

_TITLE = re.compile(rb"^title[ \t]*:", re.MULTILINE)


def read(files: Files) -> Iterator[Item]:
    """Yield the notes of a project, each under its path."""
    yield from left_out_notes(files)
    for name in files.ending(".md"):
        try:
            data = files.read(name)
        except IpfsmemError as error:
            yield Problem(name, str(error))
            continue
        if not data.strip():
            yield Skipped("an empty file")
            continue
        try:
            text, note = _note(data)
            title = {} if note.name else {"name": note.fields.get("title", ""), "title": ""}
            source = f"basic-memory:{note.fields.get('permalink', name.removesuffix('.md'))}"[:300]
            # A repeated title would be lost with the first.
            if len(_TITLE.findall(text)) > 1:
                title.pop("title", None)
            with contextlib.suppress(FormatError):  # a header of another program stays unchanged
                text = edit_memory(text, {**title, "source": note.source or source})
        except LimitError:
            text = data
        except FormatError as error:
            yield Problem(name, str(error))
            continue
        yield ImportRecord(where=name, file=text, file_name=name)


def _note(data: bytes) -> tuple[bytes, MemoryFile]:
    """Return a note as text and values. Versions of basic-memory wrote a header of a permalink alone before the note's own: then
    both are the header."""
    text = utf8_text(data)
    note = parse_memory(text)
    if note.fields.keys() <= {"permalink", "source"} and note.body.startswith("---"):
        inner = parse_memory(note.body.encode())
        if inner.fields.keys() & {"title", "name", "type"}:
            more = {name: value for name, value in note.fields.items() if name not in inner.fields}
            return edit_memory(f"{note.body}\n".encode(), more), inner.with_fields(more)
    return text, note
