"""Reads and writes a memory file as an entity of the graph: its name, kind, observations and relations.

Every memory is an entity; those created as entities have the tag `entity` and their kind as category. In the text a list item is an
observation, `- works at [[acme]]` or, below a line `Relations:`, `- works at: Acme` is a relation, and any other `[[link]]` one of
the type `links_to`. A link contains a key, or the name of an entity.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from threading import Lock
from typing import Final

import msgspec

from ipfsmem.bundle.header import render_tags
from ipfsmem.bundle.keys import is_key, key_of_foreign_name
from ipfsmem.bundle.links import links, target_of
from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.errors import UsageError
from ipfsmem.lazy_pattern import lazy_pattern

#: The tag of created entities, and the default relation of a link.
TAG: Final = "entity"
#: The source of entities that an import created without that tag.
_IMPORTED: Final = "mcp-memory:"
LINK: Final = "links_to"
#: Characters around the type of a relation that are not part of it.
BLANKS: Final = " *_`"
#: Maximum characters of a name, of a relation's type and of an observation; maximum links of one text.
MAX_NAME: Final = 200
MAX_TYPE: Final = 64
MAX_OBSERVATION: Final = 2_000
MAX_LINKS: Final = 1_000

_SECTION = "Relations:"
_item = lazy_pattern(r"^[-*] +(?P<said>\S.*)$")
_related = lazy_pattern(r"^(?P<type>[^:\[\]]{1,64}): *(?P<to>\S.*)$")
_typed = lazy_pattern(r"^(?P<type>[^:\[\]]{1,64}?):? *\[\[(?P<to>[^\[\]\n]{1,200})\]\]\.?$")


class Out(msgspec.Struct, frozen=True):
    """A relation in a text: its type, and the key or name of its target."""

    type: str
    to: str


class Entity(msgspec.Struct, frozen=True):
    """One memory in the graph."""

    key: str
    name: str
    kind: str
    observations: tuple[str, ...]
    out: tuple[Out, ...]
    #: Whether it was created as an entity.
    made: bool


class _Said:
    """The observations and relations parsed so far."""

    __slots__ = ("below", "observations", "out")

    def __init__(self) -> None:
        self.observations: list[str] = []
        self.out: dict[Out, None] = {}
        self.below = False

    def copy(self) -> _Said:
        """Return a copy to continue with."""
        other = _Said()
        other.observations, other.out, other.below = self.observations.copy(), self.out.copy(), self.below
        return other

    def read(self, lines: Iterable[str]) -> None:
        """Parse further lines."""
        for line in lines:
            if line.strip() == _SECTION:
                self.below = True
                continue
            item = _item.match(line)
            if item is not None:
                text = item["said"].strip()
                if (typed := _typed.match(text)) or (self.below and (typed := _related.match(text))):
                    self.out[Out(relation_type(typed["type"]), target_of(typed["to"]))] = None
                    continue
                self.observations.append(text)
            elif line.strip():
                self.below = False
            for link in links(line):
                self.out[Out(LINK, link.to)] = None


#: Cache of the long texts that were parsed last: a text that extends one of them is parsed from its end on.
_READ: OrderedDict[str, _Said] = OrderedDict()
_LONG, _MOST_READ = 10_000, 8
_reading = Lock()


def _said_in(body: str) -> _Said:
    """Parse the lines of a text."""
    if len(body) < _LONG:
        said = _Said()
        said.read(body.split("\n"))
        return said
    with _reading:
        known = _READ.get(body)
        if known is None:
            before = next((one for one in reversed(_READ) if body.startswith(one + "\n")), None)
            known = _Said() if before is None else _READ[before].copy()
            known.read((body if before is None else body[len(before) + 1 :]).split("\n"))
            _READ[body] = known
            while len(_READ) > _MOST_READ:
                _READ.popitem(last=False)
        _READ.move_to_end(body)
        return known


def entity_of(key: str, file: MemoryFile) -> Entity:
    """Return a memory file as an entity."""
    said = _said_in(file.body)
    kind = file.fields.get("category", "") or file.type
    out = tuple(islice(said.out, MAX_LINKS))
    return Entity(key, file.name or key, kind, tuple(said.observations), out, is_made(file))


def is_made(file: MemoryFile) -> bool:
    """Return whether a memory was created as an entity, not written as a text."""
    return TAG in file.tags or file.source.startswith(_IMPORTED)


def entity_file(
    old: MemoryFile, name: str, kind: str, observations: Iterable[str], out: Iterable[Out]
) -> MemoryFile:
    """Return the memory file of an entity with this content."""
    lines = [f"- {one}" for one in observations]
    related = [f"- {one.type}: [[{one.to}]]" for one in out]
    body = "\n".join([*lines, *(["", _SECTION, "", *related] if related else [])]).strip("\n")
    tags = list(dict.fromkeys((*old.tags, TAG)))
    fields = {"name": name, "type": old.type or "reference", "category": kind, "tags": render_tags(tags)}
    return old.with_fields(fields, body)


def entity_key(name: str) -> str:
    """Return the key of a new entity: its name in lower case with `_` for blanks, if that is valid. Raises UsageError."""
    if not name.strip() or len(name) > MAX_NAME or not name.isprintable() or set("[]") & set(name):
        raise UsageError(
            f"an entity name has 1 to {MAX_NAME} printable characters without [ and ], and {name[:60]!a} is not"
        )
    plain = re.sub(r"\s+", "_", name.strip().lower())
    return plain if is_key(plain) else key_of_foreign_name(name.strip()).key


def relation_type(text: str) -> str:
    """Return a relation's type in canonical form: lower case, `_` for blanks."""
    return "_".join(text.strip(BLANKS).lower().split())[:MAX_TYPE] or LINK


def observation(said: str) -> str:
    """Normalise an observation to one line. Raises UsageError for an empty or too long one."""
    text = " ".join(said.split())
    if not text or len(text) > MAX_OBSERVATION:
        raise UsageError(f"an observation has 1 to {MAX_OBSERVATION:,} characters")
    return text
