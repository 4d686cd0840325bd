"""The graph of entities: neighbours, shortest paths, surroundings, and search by words.

A traversal visits each entity once, and at most as many as its limit.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Final, NamedTuple

import msgspec

from ipfsmem.bundle.links import folded
from ipfsmem.graph.entity import Entity, Out
from ipfsmem.recall.terms import fold, split

#: Maximum entities in one answer, and maximum depth.
MOST: Final = 1_000
MAX_DEPTH: Final = 20


class Relation(NamedTuple):
    """A relation between two existing memories, by key."""

    begin: str
    type: str
    end: str


class GraphImage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The stored form of a graph; `Graph.of_image` restores it."""

    named: dict[str, list[str]]
    said: dict[str, set[str]]
    entities: dict[str, msgspec.Raw]


_pack = msgspec.msgpack.Encoder().encode
_entity = msgspec.msgpack.Decoder(Entity).decode


class _Unread(MutableMapping[str, Entity]):
    """Entities by key, each decoded on access, because a traversal visits few of them."""

    def __init__(self, packed: Mapping[str, msgspec.Raw]) -> None:
        self._packed = dict[str, msgspec.Raw | None](packed)
        self._read: dict[str, Entity] = {}

    def packed(self, key: str) -> msgspec.Raw | None:
        """Return the stored form of an entity; None for one that was added since."""
        return self._packed[key]

    def __getitem__(self, key: str) -> Entity:
        entity = self._read.get(key)
        if entity is None:
            packed = self._packed[key]
            assert packed is not None
            entity = self._read[key] = _entity(packed)
        return entity

    def __setitem__(self, key: str, one: Entity) -> None:
        self._packed[key] = None
        self._read[key] = one

    def __delitem__(self, key: str) -> None:
        del self._packed[key]
        self._read.pop(key, None)

    def __contains__(self, key: object) -> bool:
        return key in self._packed

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


class Graph:
    """Entities by key, with their relations in both directions. It is changed one entity at a time."""

    def __init__(self, entities: Iterable[Entity] = ()) -> None:
        self.entities: MutableMapping[str, Entity] = {}
        #: The keys of the entities with a name, in order: a name refers to the first.
        self._named: dict[str, list[str]] = {}
        #: The entities that use a name or a key as the target of a relation.
        self._said: dict[str, set[str]] = {}
        #: The folded text of each entity that was searched.
        self._texts: dict[str, str] = {}
        for one in entities:
            self.put(one)

    @classmethod
    def of_image(cls, image: GraphImage) -> Graph:
        """Restore the graph of an image. Its entities are decoded on access."""
        made = cls()
        made.entities = _Unread(image.entities)
        made._named, made._said = image.named, image.said
        return made

    def image(self) -> GraphImage:
        """Return the stored form of the graph."""
        unread = self.entities if isinstance(self.entities, _Unread) else None
        packed = {
            key: (unread.packed(key) if unread is not None else None)
            or msgspec.Raw(_pack(self.entities[key]))
            for key in self.entities
        }
        named_by = {name: who for name, who in self._said.items() if who}
        return GraphImage({name: keys for name, keys in self._named.items() if keys}, named_by, packed)

    def put(self, one: Entity) -> None:
        """Add an entity, replacing the one with its key."""
        self.drop(one.key)
        self.entities[one.key] = one
        insort(self._named.setdefault(folded(one.name), []), one.key)
        for out in one.out:
            self._said.setdefault(folded(out.to), set()).add(one.key)

    def drop(self, key: str) -> None:
        """Remove an entity, if it exists."""
        old = self.entities.pop(key, None)
        self._texts.pop(key, None)
        if old is None:
            return
        same = self._named[folded(old.name)]
        del same[bisect_left(same, key)]
        for out in old.out:
            self._said.get(folded(out.to), set()).discard(key)

    def find(self, name: str) -> str | None:
        """Return the key for a key or a name; of several entities with the name, the least key."""
        if name in self.entities:
            return name
        return next(iter(self._named.get(folded(name), ())), None)

    def named(self, name: str) -> list[str]:
        """Return the keys of all entities with this key or name, that of `find` first."""
        by_key = [name] if name in self.entities else []
        return list(dict.fromkeys([*by_key, *self._named.get(folded(name), ())]))

    def called(self, key: str) -> str:
        """Return the name of an entity if `find` resolves it to this entity, else its key."""
        name = self.entities[key].name
        return name if self.find(name) == key else key

    def out(self, key: str) -> list[Relation]:
        """Return the relations from an entity to existing ones."""
        relations = (self._relation(key, out) for out in self.entities[key].out)
        return [one for one in relations if one is not None]

    def into(self, key: str) -> list[Relation]:
        """Return the relations that end at an entity."""
        name = folded(self.entities[key].name)
        who = self._said.get(folded(key), set())
        if self._named[name][0] == key:  # otherwise the name refers to another entity
            who = who | self._said.get(name, set())
        return [
            relation
            for begin in sorted(who)
            for relation in (self._relation(begin, out) for out in self.entities[begin].out)
            if relation is not None and relation.end == key
        ]

    def relations(self, keys: Iterable[str] | None = None) -> list[Relation]:
        """Return all relations; with `keys` those among these entities."""
        wanted = None if keys is None else set(keys)
        return [
            one
            for key in sorted(self.entities if wanted is None else wanted)
            for one in self.out(key)
            if wanted is None or one.end in wanted
        ]

    def touching(self, keys: Iterable[str]) -> Iterator[Relation]:
        """Yield the relations that begin or end at one of these entities, each once."""
        met = set[Relation]()
        for key in keys:
            for one in (*self.out(key), *self.into(key)):
                if one not in met:
                    met.add(one)
                    yield one

    def neighbours(self, key: str) -> list[str]:
        """Return the entities related to one, in either direction."""
        return list(
            dict.fromkeys([*(one.end for one in self.out(key)), *(one.begin for one in self.into(key))])
        )

    def path(self, begin: str, end: str) -> list[Relation] | None:
        """Return the relations of a shortest path from one entity to another, in any direction, or None."""
        if begin == end:
            return []
        # Search from both ends, always extending the smaller frontier by a whole level.
        sides: tuple[_Walk, _Walk] = ({begin: None}, {end: None})
        edges, lengths = ([begin], [end]), ({begin: 0}, {end: 0})
        while edges[0] and edges[1]:
            side = 0 if len(edges[0]) <= len(edges[1]) else 1
            met, following = [], []
            for here in edges[side]:
                for one in (*self.out(here), *self.into(here)):
                    there = one.end if one.begin == here else one.begin
                    if there in sides[side]:
                        continue
                    sides[side][there] = one
                    lengths[side][there] = lengths[side][here] + 1
                    following.append(there)
                    if there in sides[1 - side]:
                        met.append(there)
            if met:
                middle = min(met, key=lambda key: (lengths[0][key] + lengths[1][key], key))
                return [*_way(sides[0], middle)[::-1], *_way(sides[1], middle)]
            edges[side][:] = following
        return None

    def around(self, key: str, depth: int, most: int = MOST) -> tuple[list[str], bool]:
        """Return the entities at most `depth` relations away, nearest first, and whether there were more than `most`."""
        keys, met, edge = [key], {key}, [key]
        for _ in range(depth):
            following = []
            for here in edge:
                for there in self.neighbours(here):
                    if there in met:
                        continue
                    if len(keys) >= most:
                        return keys, True
                    met.add(there)
                    keys.append(there)
                    following.append(there)
            edge = following
        return keys, False

    def search(self, query: str, most: int = MOST) -> list[str]:
        """Return the entities whose name, kind or observations contain a query verbatim, or all its words."""
        words, phrase = split(query), " ".join(fold(query).split())
        keys = []
        for key in sorted(self.entities) if phrase else ():
            text = self._texts.get(key) or self._text(key)
            if phrase in text or (words and all(word in text for word in words)):
                keys.append(key)
                if len(keys) >= most:
                    break
        return keys

    def _text(self, key: str) -> str:
        one = self.entities[key]
        text = fold(" ".join((key, one.name, one.kind, *one.observations)))
        return self._texts.setdefault(key, " ".join(text.split()))

    def _relation(self, begin: str, out: Out) -> Relation | None:
        end = self.find(out.to)
        return None if end is None else Relation(begin, out.type, end)


#: The relation by which a traversal reached each entity; None for the start.
_Walk = dict[str, Relation | None]


def _way(walk: _Walk, here: str) -> list[Relation]:
    """Return the relations from an entity back to the start of the traversal."""
    way = []
    while (one := walk[here]) is not None:
        way.append(one)
        here = one.begin if one.end == here else one.end
    return way
