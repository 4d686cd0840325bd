"""The answer to a PROPFIND request, parsed piece by piece within bounds. Pure.

An answer with a document type is refused, so no entity is ever declared or expanded.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit
from xml.parsers import expat

#: Maximum number of entries; part of a list must not pass for all of it.
ENTRIES_MAX: Final = 100_000
_DEPTH_MAX: Final = 64
#: Bytes without an element: one that does not end is parsed again with each piece.
_SILENT_MAX: Final = 1024 * 1024
#: Characters of an address, a date and the like.
_TEXT_MAX: Final = 4_096
_ROOT: Final = ("DAV: multistatus",)
_RESPONSE: Final = (*_ROOT, "DAV: response")
_PROPSTAT: Final = (*_RESPONSE, "DAV: propstat")
_PROP: Final = (*_PROPSTAT, "DAV: prop")
_COLLECTION: Final = (*_PROP, "DAV: resourcetype", "DAV: collection")
_TEXTS: Final = frozenset(
    (
        (*_RESPONSE, "DAV: href"),
        (*_RESPONSE, "DAV: status"),
        (*_PROPSTAT, "DAV: status"),
        (*_PROP, "DAV: getcontentlength"),
        (*_PROP, "DAV: getlastmodified"),
        (*_PROP, "DAV: getetag"),
    )
)


class NotAListing(Exception):
    """The answer is not the answer to a PROPFIND request, or a part of one."""


class ListingTooLarge(Exception):
    """The answer exceeds a bound."""


class DavEntry(NamedTuple):
    """One resource."""

    address: str
    status: int  #: 200, or another one that the server reports for this resource
    is_folder: bool
    size: int | None  #: bytes
    modified: str  #: an HTTP date, or ""
    etag: str

    @property
    def path(self) -> tuple[str, ...]:
        """Return the decoded names of its path; an address in parts needs twenty times the memory."""
        return path_of(self.address)


class ListingParser:
    """Collects the entries of an answer: `feed` its pieces, then `close`."""

    def __init__(self) -> None:
        self.entries: list[DavEntry] = []
        self._path: list[str] = []
        self._text: list[str] | None = None
        self._length = 0
        self._silent = 0
        self._fields: dict[str, str] = {}
        self._found: dict[str, str] = {}
        self._props: dict[str, str] = {}
        self._parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters

    def feed(self, piece: bytes) -> None:
        """Parse one piece. Raises NotAListing or ListingTooLarge."""
        self._silent += len(piece)
        self._parse(piece, False)
        if self._silent > _SILENT_MAX:
            raise ListingTooLarge("its XML has a part that is too long")

    def close(self) -> list[DavEntry]:
        """Return all entries. Raises NotAListing when the answer is incomplete."""
        self._parse(b"", True)
        del (
            self._parser
        )  # its handlers refer to this object: its buffers would stay until garbage is collected
        return self.entries

    def _parse(self, piece: bytes, final: bool) -> None:
        try:
            self._parser.Parse(piece, final)
        except (expat.ExpatError, UnicodeError, LookupError, ValueError) as error:
            raise NotAListing(f"its XML cannot be read: {error}") from None

    def _refuse_doctype(self, *_: object) -> None:
        raise NotAListing("its XML has a document type")

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._silent = 0
        self._path.append(name)
        if len(self._path) > _DEPTH_MAX:
            raise ListingTooLarge("its XML is nested too deep")
        path = tuple(self._path)
        if len(path) == 1 and path != _ROOT:
            raise NotAListing("it is not a list")
        if path == _RESPONSE:
            if len(self.entries) >= ENTRIES_MAX:
                raise ListingTooLarge(f"it has more than {ENTRIES_MAX:,} entries")
            self._found = {}
        elif path == _PROPSTAT:
            self._props = {}
        elif path == _COLLECTION:
            self._props["collection"] = "yes"
        elif path in _TEXTS:
            self._text, self._length = [], 0

    def _characters(self, text: str) -> None:
        if self._text is None:
            return
        self._length += len(text)
        if self._length > _TEXT_MAX:
            raise ListingTooLarge("it has a field that is too long")
        self._text.append(text)

    def _end(self, name: str) -> None:
        path = tuple(self._path)
        self._path.pop()
        if path in _TEXTS and self._text is not None:
            text, self._text = "".join(self._text).strip(), None
            fields = self._props if len(path) > len(_RESPONSE) + 1 else self._found
            fields[name.removeprefix("DAV: ")] = text
        elif path == _PROPSTAT:
            if _status(self._props.pop("status", "")) == 200:
                self._found.update({f"prop {key}": value for key, value in self._props.items()})
        elif path == _RESPONSE:
            self.entries.append(_entry(self._found))


def _entry(fields: dict[str, str]) -> DavEntry:
    if not fields.get("href"):
        raise NotAListing("an entry has no address")
    path_of(fields["href"])
    size = fields.get("prop getcontentlength", "")
    return DavEntry(
        fields["href"],
        _status(fields["status"]) if "status" in fields else 200,
        "prop collection" in fields,
        int(size) if size.isascii() and size.isdigit() and len(size) < 19 else None,
        fields.get("prop getlastmodified", ""),
        fields.get("prop getetag", ""),
    )


def path_of(address: str) -> tuple[str, ...]:
    """Return the decoded names of the path of an address. Raises NotAListing."""
    try:
        path = address if address.startswith("/") else urlsplit(address).path
    except ValueError:
        raise NotAListing("an entry has an unusable address") from None
    return tuple(unquote(name) for name in path.partition("?")[0].split("/") if name)


def _status(line: str) -> int:
    """Return the number of a status line such as `HTTP/1.1 200 OK`; 0 when there is none."""
    words = line.split(None, 2)
    return int(words[1]) if len(words) > 1 and words[1].isascii() and words[1].isdigit() else 0
