"""Which memory a file of a working copy stands for, by its name and by what is known of it (format section 1.1)."""

from __future__ import annotations

from ipfsmem.bundle.keys import INDEX_FILE, key_of_foreign_name, split_conflict_name
from ipfsmem.bundle.memory_file import MAX_FILE
from ipfsmem.device.tables.renders import FileRow
from ipfsmem.errors import FormatError
from ipfsmem.files.folder import TIMELINE

#: Longest timeline file that is read.
MAX_TIMELINE = 256 * 1024 * 1024


def longest(file: str) -> int:
    """Bytes above which a file of this name is left alone."""
    return MAX_TIMELINE if file == INDEX_FILE or file.startswith(TIMELINE + "/") else MAX_FILE


def name_of(file: str) -> tuple[str, str | None]:
    """Key of a file, and its foreign name when it has one. Raises FormatError for a name that is not Unicode."""
    try:
        file.encode()
    except UnicodeEncodeError:
        raise FormatError("its name is not Unicode text") from None
    copy = split_conflict_name(file)
    return (copy.key, None) if copy is not None else key_of_foreign_name(file)


def key_of_row(row: FileRow | None, key: str) -> str:
    """The key of a file: that of its row where it has one, for the name alone may not tell."""
    return key if row is None or row.key is None else row.key
