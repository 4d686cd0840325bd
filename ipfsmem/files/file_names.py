"""Determine the memory of a file in a linked folder by its name and row, and the file name of a memory (format 1.1)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from ipfsmem.bundle.keys import (
    INDEX_FILE,
    RESERVED,
    key_of_foreign_name,
    key_of_spelling,
    split_conflict_name,
)
from ipfsmem.bundle.memory_file import MAX_FILE, parse_fields
from ipfsmem.bundle.sync_conflicts import base_of_conflict
from ipfsmem.device.tables.tracked_files import fold
from ipfsmem.errors import FormatError
from ipfsmem.files.folder import TIMELINE
from ipfsmem.invisible_characters import INVISIBLE
from ipfsmem.lazy_pattern import lazy_pattern

#: Maximum bytes of a timeline file that is read.
MAX_TIMELINE = 256 * 1024 * 1024
#: A key made of a foreign name ends in digits of its hash.
_FOREIGN_KEY: Final = lazy_pattern(r".+-[0-9a-f]{8}")
#: Bytes of a file name that every disk accepts.
_LONGEST_NAME: Final = 240
_NOWHERE: Final = frozenset("/\\\0")
_NOT_ON_WINDOWS: Final = frozenset('<>:"|?*')


def longest(file: str) -> int:
    """Return the maximum bytes of a file with this name; longer files are not read."""
    return MAX_TIMELINE if file == INDEX_FILE or file.startswith(TIMELINE + "/") else MAX_FILE


def name_of(file: str, row_key: str | None = None) -> tuple[str, str | None]:
    """Return the key of a file, and its foreign name if it has one; of a conflict copy those of its original. `row_key`: the key
    in its row. Raises FormatError for a name that is not Unicode."""
    try:
        file.encode()
    except UnicodeEncodeError:
        raise FormatError("its name is not Unicode text") from None
    copy = split_conflict_name(file)
    if copy is not None:
        return copy.key, None
    if row_key is not None and (spelled := key_of_spelling(file)).key == row_key:
        return spelled
    own = key_of_foreign_name(file)
    base = base_of_conflict(file)
    # A file known before its name was understood stays the memory that it is.
    return own if base is None or own.key == row_key else key_of_foreign_name(base)


def is_copy_of(file: str, key: str) -> bool:
    """Return whether a file is a conflict copy of the memory `key`: ours, or of a program that syncs folders."""
    return split_conflict_name(file) is not None or name_of(file, key)[0] != key_of_foreign_name(file).key


def copies_last(files: Iterable[str]) -> list[str]:
    """Sort conflict copies of sync programs after their originals."""
    return sorted(files, key=lambda file: base_of_conflict(file) is not None)


def rendered_name(key: str, text: bytes) -> str:
    """Return the name for a new file of a memory: its foreign name, if valid for a folder; else its key."""
    if _FOREIGN_KEY.fullmatch(key) is None:
        return f"{key}.md"
    try:
        origin = parse_fields(text).origin_name
        derived = (
            key_of_foreign_name(origin) if key_of_spelling(origin).key != key else key_of_spelling(origin)
        )
    except FormatError:
        return f"{key}.md"
    return origin if derived == (key, origin) and _is_file_name(origin) else f"{key}.md"


def _is_file_name(name: str) -> bool:
    """Return whether this untrusted name is a valid name of a memory file on this disk."""
    return (
        name[-3:].lower() == ".md"
        and not name.startswith((".", "~$"))
        and not set(name) & _NOWHERE
        and not (
            os.name == "nt"
            and (set(name) & _NOT_ON_WINDOWS or name.split(".")[0].rstrip().lower() in RESERVED)
        )
        and fold(name) != fold(INDEX_FILE)
        and split_conflict_name(name) is None
        and base_of_conflict(name) is None
        and len(name.encode()) <= _LONGEST_NAME
        and name.isprintable()
        and INVISIBLE.search(name) is None
    )
