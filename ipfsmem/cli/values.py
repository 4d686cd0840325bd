"""Values from the command line: the text of a file or of standard input, and NAME=VALUE pairs."""

from __future__ import annotations

from pathlib import Path

from ipfsmem.errors import UsageError


def read_text(path: str, label: str) -> bytes:
    """Return the bytes of a file that the user named, `-` for standard input. Raises StorageError, NotFoundError, LimitError."""
    import sys

    from ipfsmem.bundle.memory_file import MAX_FILE
    from ipfsmem.device.atomic_files import storage_errors
    from ipfsmem.errors import LimitError, NotFoundError

    if path == "-":
        data = sys.stdin.buffer.read(MAX_FILE + 1)
    else:
        source = Path(path)
        if not source.exists():
            raise NotFoundError(f"there is no file {path}")
        if source.is_dir():
            raise UsageError(f"{path} is a folder, not a file")
        with storage_errors(source, "read"), source.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise LimitError(f"{label} is longer than {MAX_FILE:,} bytes", hint="Split it into two memories.")
    return data


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Return `name=value` texts as a mapping. Raises UsageError."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} requires NAME=VALUE, not {text!r}")
        if values.setdefault(name, value) != value:
            raise UsageError(f"{option} has {name} twice: {values[name]!r} and {value!r}")
    return values
