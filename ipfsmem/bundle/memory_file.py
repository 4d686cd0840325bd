"""Parse and render a memory file: a header of text fields and a Markdown body (format section 1.2).

`parse_memory` accepts any text without loss; `render_memory` writes the normal form.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ipfsmem.bundle import header
from ipfsmem.bundle.header import MAX_HEADER
from ipfsmem.errors import FormatError, LimitError
from ipfsmem.lazy_pattern import lazy_pattern

__all__ = [
    "ENTRY_TYPES",
    "MAX_FILE",
    "MAX_HEADER",
    "TYPES",
    "MemoryFile",
    "parse_fields",
    "parse_memory",
    "render_memory",
    "split_header",
]

#: Maximum bytes of a memory file, which must fit into one sealed object and block.
MAX_FILE = 960 * 1024
TYPES = ("user", "feedback", "project", "reference")
#: The types of `fact add --kind`.
ENTRY_TYPES = ("procedure", "episode")
DECAYS = ("never", "30d", "90d")

_OPEN = lazy_pattern(rb"(?:\xef\xbb\xbf)?---[ \t]*(\r?)\n")
_CLOSE = lazy_pattern(rb"\n---[ \t\r]*(?:\n|\Z)")


class Marks(msgspec.Struct, frozen=True):
    """The position of a file's header, in bytes."""

    #: Offsets: the first header line, the closing mark, and the line after it.
    lines: int
    closing: int
    rest: int
    #: Whether the file uses CRLF, as its opening mark does.
    crlf: bool


def find_marks(data: bytes) -> Marks | None:
    """Find the two `---` lines of a text that opens with one. `read_lines` decides whether a header is between them."""
    opening = _OPEN.match(data)
    if opening is None:
        return None
    closing = _CLOSE.search(data, opening.end() - 1)
    if closing is None:
        return None
    return Marks(opening.end(), closing.start() + 1, closing.end(), bool(opening[1]))


def header_text(data: bytes, marks: Marks) -> str:
    """Return the lines between the marks without the last line end. Raises FormatError if not UTF-8."""
    try:
        text = str(data[marks.lines : marks.closing], "utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"memory file is not UTF-8: byte {marks.lines + error.start}") from None
    if marks.crlf:
        text = text.replace("\r\n", "\n")
    return text.removesuffix("\n").removesuffix("\r")


def read_lines(data: bytes, marks: Marks) -> dict[str, str] | None:
    """Return the fields between the marks; None if the lines between them are not a header.

    Raises LimitError for a header beyond 4 KiB, FormatError if it is not UTF-8.
    """
    text = header_text(data, marks)
    try:
        return header.read_header(text)
    except LimitError:
        raise
    except FormatError:
        return None


class MemoryFile(msgspec.Struct, frozen=True):
    """A parsed memory file.

    `fields`: in the order read; values are the text as written, so `tags` is the text `[a, b]`. `body`: without a
    final LF; the file has exactly one.
    """

    fields: dict[str, str] = {}
    body: str = ""

    @property
    def name(self) -> str:
        """Display name, or ""."""
        return self.fields.get("name", "")

    @property
    def description(self) -> str:
        """One line for the index, or ""."""
        return self.fields.get("description", "")

    @property
    def type(self) -> str:
        """`user`, `feedback`, `project`, `reference`; any other text as written, or ""."""
        return self.fields.get("type", "")

    @property
    def created(self) -> str:
        """ISO 8601 date or instant as written."""
        return self.fields.get("created", "")

    @property
    def updated(self) -> str:
        """ISO 8601 date or instant as written."""
        return self.fields.get("updated", "")

    @property
    def session(self) -> str:
        """The session that the memory is a part of (`session_parts`), or ""."""
        return self.fields.get("session", "")

    @property
    def source(self) -> str:
        """The origin of the memory."""
        return self.fields.get("source", "")

    @property
    def tags(self) -> tuple[str, ...]:
        """The items of `tags`, trimmed."""
        text = self.fields.get("tags")
        return header.parse_tags(text) if text else ()

    @property
    def important(self) -> bool:
        """True if `important` is `true`, `yes` or `1`."""
        return self.fields.get("important", "").lower() in ("true", "yes", "1")

    @property
    def confidence(self) -> float | None:
        """`confidence` as a number from 0 to 1; None if absent or invalid."""
        try:
            value = float(self.fields["confidence"])
        except (KeyError, ValueError):
            return None
        return value if 0.0 <= value <= 1.0 else None

    @property
    def expires(self) -> str:
        """ISO 8601 date or instant as written."""
        return self.fields.get("expires", "")

    @property
    def origin_name(self) -> str:
        """The foreign file name under which this memory was imported (format section 1.1)."""
        return self.fields.get("origin_name", "")

    def with_fields(self, changes: Mapping[str, str], body: str | None = None) -> MemoryFile:
        """Return a copy with some fields set (or removed, if the new value is empty) and optionally another body."""
        fields = {**self.fields, **changes}
        filled = {name: value for name, value in fields.items() if value}
        return MemoryFile(filled, self.body if body is None else body)


def parse_memory(data: bytes) -> MemoryFile:
    """Parse a memory file leniently, without loss.

    A text without a readable header is all body. Raises LimitError beyond 960 KiB or for a header beyond 4 KiB,
    FormatError if the bytes are not UTF-8.
    """
    return parse_marked(data)[0]


def parse_marked(data: bytes) -> tuple[MemoryFile, Marks | None]:
    """Parse as `parse_memory` does, and also return the position of the header, or None."""
    text = _decoded(data)
    marks = find_marks(data)
    fields = read_lines(data, marks) if marks is not None else None
    if marks is None or fields is None:
        return MemoryFile({}, text.removeprefix("\ufeff").rstrip("\n")), None
    rest = str(data[marks.rest :], "utf-8")
    if marks.crlf:
        rest = rest.replace("\r\n", "\n")
    return MemoryFile(fields, rest.removeprefix("\n").rstrip("\n")), marks


def has_header(data: bytes) -> bool:
    """Tell whether a text opens with a header and is therefore a whole file, not a body."""
    try:
        memory = parse_memory(data)
    except FormatError as error:
        return isinstance(error, LimitError) and data.startswith((b"---", b"\xef\xbb\xbf---"))
    # `render_memory` writes an empty header only if the body alone would be misread.
    return bool(memory.fields) or (data == render_memory(memory) and data.startswith(b"---\n---\n\n"))


def render_memory(memory: MemoryFile) -> bytes:
    """Return the normal form: known fields in order, LF, one blank line, one LF at the end of a non-empty body.

    Raises LimitError beyond the limits, FormatError for text that is not Unicode.
    """
    lines = header.write_header(memory.fields)
    body = memory.body.rstrip("\n")
    if lines:
        text = f"---\n{lines}---\n\n{body}\n" if body else f"---\n{lines}---\n"
    elif body.startswith(("---", "\ufeff")):
        # After an empty header, the start of the body cannot be taken for a header or stripped as a BOM.
        text = f"---\n---\n\n{body}\n"
    else:
        text = f"{body}\n" if body else ""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise FormatError("a memory holds text that is not Unicode (a lone surrogate)") from None
    if len(data) > MAX_FILE:
        raise LimitError(f"memory file has {len(data)} bytes, at most {MAX_FILE} are allowed")
    return data


def parse_fields(data: bytes) -> MemoryFile:
    """Parse only the fields and leave the body empty: for lists, which do not need the bodies.

    The fields are those of `parse_memory`. A body that is not UTF-8 is not detected.
    """
    marks = find_marks(data)
    return MemoryFile((read_lines(data, marks) if marks is not None else None) or {}, "")


def _decoded(data: bytes) -> str:
    if len(data) > MAX_FILE:
        raise LimitError(f"memory file has {len(data)} bytes, at most {MAX_FILE} are allowed")
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"memory file is not UTF-8: byte {error.start}") from None


def split_header(data: bytes) -> tuple[str, str] | None:
    """Split a text with two marks into header lines and the text after the closing line; CRLF becomes LF.

    Raises FormatError if the text is not UTF-8.
    """
    marks = find_marks(data)
    if marks is None:
        return None
    rest = _decoded(data[marks.rest :])
    return header_text(data, marks), rest.replace("\r\n", "\n") if marks.crlf else rest
