"""Add and remove a foreign file name in a text's header without touching another byte (format section 1.1)."""

from __future__ import annotations

from ipfsmem.bundle import header
from ipfsmem.bundle.memory_file import parse_memory, render_memory
from ipfsmem.errors import FormatError


def with_origin(data: bytes, origin: str | None) -> bytes:
    """Return the memory text of a file: its bytes with its foreign name as a header line (format section 1.1)."""
    if origin is None:
        return data
    file = parse_memory(data)
    if file.origin_name == origin:
        return data
    expected = file.with_fields({"origin_name": origin})
    line = header.write_header({"origin_name": origin}).encode()
    start, cut, rest = data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    if start.rstrip() == b"---" and file.fields:
        edited = start + cut + (line[:-1] + b"\r\n" if start.endswith(b"\r") else line) + rest
    else:
        edited = b"---\n" + line + b"---\n\n" + data.removeprefix(b"\xef\xbb\xbf")
    try:
        again = parse_memory(edited)
    except FormatError:
        return data
    if again.fields == expected.fields and again.body == expected.body:
        return edited
    if not file.fields:  # normal form: at most an empty header is lost
        return render_memory(expected)
    # If no line can be added to the header, the text stays unchanged below a new header.
    return b"---\n" + line + b"---\n\n" + data


def without_origin(text: bytes, origin: str) -> bytes:
    """Return the file of a memory text: its bytes without the header line that `with_origin` added."""
    line = header.write_header({"origin_name": origin}).encode()
    if text.startswith(b"---\n" + line + b"---\n\n"):
        bare = text[len(b"---\n" + line + b"---\n\n") :]
    elif text.startswith(b"---\n" + line + b"---\n") and not text[len(b"---\n" + line + b"---\n") :]:
        bare = b""
    else:
        crlf = text.startswith(b"---\r\n" + line[:-1] + b"\r\n")
        start, separator, rest = text.partition(b"\n" + (line[:-1] + b"\r\n" if crlf else line))
        bare = (
            start + b"\n" + rest
            if separator and (start.rstrip() == b"---" or start.startswith(b"---\n"))
            else text
        )
    return bare if with_origin(bare, origin) == text else text
