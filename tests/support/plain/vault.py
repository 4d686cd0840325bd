"""Sections 5 to 7 and 9 of docs/FORMAT.md: a published vault, read with a key and without earlier state."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tests.support.plain import texts, views
from tests.support.plain.blocks import (
    Missing,
    Nowhere,
    Tree,
    folder_of_one,
    key_of,
    name_of,
    parse_cid,
    raw_cid,
    read_car,
    record_value,
    signed_by,
)
from tests.support.plain.ring import (
    MOST,
    BadBody,
    Evaluation,
    Ring,
    is_hex,
    is_list,
    is_whole,
    join,
    read_ring,
    unb64,
)
from tests.support.plain.sealed import (
    CARD,
    COMMIT,
    MEMORY,
    NODE,
    SEGMENT,
    EpochKey,
    Keys,
    keys_of,
    open_object,
)
from tests.support.plain.texts import NotJudged, Refused, canonical, entry_name, rfc8785

Entries = dict[str, dict[str, views.Value]]
_DAY = 86_400_000
_TYPES = {"m": MEMORY, "t": SEGMENT, "c": CARD}


class Damaged(Exception):
    """A part of a state cannot be read."""


def pin_name(anchor: bytes) -> str:
    return f"ipfsmem-{sha256(b'ipfsmem/v1/pin' + bytes(1) + anchor).hexdigest()[:16]}"


@dataclass
class Head:
    """A root whose commit can be opened."""

    root: str
    tree: Tree
    commit: dict[str, Any]
    digest: str
    ek: EpochKey | None
    keys: dict[str, EpochKey]  # the key of the texts, once verified

    @property
    def counters(self) -> dict[str, int]:
        return {dev: pair[0] for dev, pair in self.commit["ctx"].items()}


@dataclass
class State:
    ctx: dict[str, tuple[int, str]] = field(default_factory=dict)
    entries: Entries = field(default_factory=dict)

    def covers(self, dev: str, n: int) -> bool:
        return self.ctx.get(dev, (0, ""))[0] >= n


class Reader:
    """One case of the vectors of whole vaults."""

    def __init__(self, case: dict[str, Any], cars: Mapping[str, str]) -> None:
        self.kind = "sealed" if case["kind"] == "sealed" else "plain"
        self.case, self.now = case, case["now"]
        self.blocks = read_car(unb64(cars[case["car"]]))
        for cid in case["without"]:
            del self.blocks[parse_cid(cid)]
        for cid, data in case["instead"].items():
            del self.blocks[parse_cid(cid)]
            # A block with other bytes is not a block.
            if sha256(unb64(data)).digest() == parse_cid(cid)[-32:]:
                self.blocks[parse_cid(cid)] = unb64(data)
        self.keys: Keys = keys_of(case["opened_by"])
        self.bag: dict[str, EpochKey] = {}
        self.rings: dict[str, tuple[bytes, Ring]] = {}

    # -- roots, rings, names

    def path(self, name: str) -> str:
        base = "" if self.kind == "sealed" else "memory/.ipfsmem/"
        return base + (name if self.kind == "sealed" else name.replace(".ipm", ".json"))

    def tree(self, root: str) -> Tree:
        return Tree(parse_cid(root), self.blocks)

    def follow(self, name: str, most: int = 8) -> tuple[str | None, list[str]]:
        """Return the root at the end of a name's records, and the names on the way."""
        way: list[str] = []
        while name not in way and len(way) < most:
            if name not in self.case["names"]:
                return None, way
            try:
                value = record_value(name, unb64(self.case["names"][name]))
            except Refused:
                return None, way
            way.append(name)
            if value.startswith("/ipfs/"):
                return value[6:], way
            if not value.startswith("/ipns/"):
                return None, way
            name = name_of(key_of(value[6:]))
        return None, way

    def form(self, root: str) -> str:
        """Return whether a root has the form of a sealed or of a plain one (6)."""
        return "plain" if self.tree(root).cid("keyring.json") is None else "sealed"

    def head_path(self, root: str) -> str:
        """Return the path of the commit in a root of its form."""
        return "head.ipm" if self.form(root) == "sealed" else "memory/.ipfsmem/commit.json"

    def ring_file(self, root: str) -> bytes | None:
        """Return the bytes of a root's ring; None if missing."""
        for path in ("keyring.json", "memory/.ipfsmem/keyring.json"):
            try:
                data = self.tree(root).file(path)
            except (Missing, Refused):
                return None
            if data is not None:
                return data
        return None

    def is_unread(self, root: str) -> bool:
        """Return whether a block on the way to a root's ring or commit is missing."""
        try:
            for path in ("keyring.json", self.path("keyring.json"), self.head_path(root)):
                self.tree(root).file(path)
        except Nowhere:
            return True
        except (Missing, Refused):
            return False
        return False

    def ring_of(self, root: str, known: Iterable[EpochKey] = ()) -> Ring:
        data = self.ring_file(root)
        if data is None:
            raise Refused("no ring")
        return read_ring(data, self.kind, self.keys.box, self.keys.box_secret, known)

    def other_kind(self, root: str) -> bool:
        """Return whether a root belongs to a vault of the other kind."""
        other = "plain" if self.kind == "sealed" else "sealed"
        for path in ("keyring.json", "memory/.ipfsmem/keyring.json"):
            try:
                data = self.tree(root).file(path)
                if data is not None:
                    try:
                        ring = read_ring(data, other, self.keys.box, self.keys.box_secret)
                    except BadBody as error:
                        ring = error.ring
                    return any(st.said["roots"][0] == self.keys.admin.hex() for st in ring.of("genesis"))
            except (Missing, Refused):
                continue
        return False

    # -- commits

    def head(self, root: str, ring: Ring) -> Head | None:
        """Return the verified commit of a root, by the known ring and its own; None for a root with a ring
        alone."""
        tree, data = self.tree(root), self.ring_file(root)
        if data is None:
            raise Refused("no ring")
        own = read_ring(data, self.kind, self.keys.box, self.keys.box_secret, ring.keys.values())
        if own.tag != ring.tag:
            raise Refused("another vault")
        if not own.opened:
            raise Refused("no key opens the ring")
        ring = join(ring, own)
        seen = Evaluation(ring)
        try:
            stored = tree.file(self.head_path(root))
        except Missing as error:
            raise Refused("the commit is nowhere") from error
        if stored is None:
            return None
        if self.form(root) != self.kind:
            raise Refused("a root in the form of the other kind")
        if len(stored) > 384 << 10:
            raise Refused("a commit over 384 KiB")
        # Keys that only its own ring names: of those, what that ring alone would keep.
        named = join(own, own).keys
        keys = {**ring.keys, **named, **own.slots}
        ek, signature, message = self._opened(stored, ring.tag, keys)
        commit = _checked_commit(canonical(message), ring.tag, ek)
        if commit["ring"] != sha256(data).hexdigest():
            raise Refused("another ring")
        dev = commit["dev"]
        sign = seen.members[dev].sign if seen.may_write(dev) else None
        if sign is None or not signed_by(bytes.fromhex(sign), signature, b"ipfsmem/v1/commit\0" + message):
            raise Refused("not by a member who may write")
        for one, pair in commit["ctx"].items():
            _check_pair(one, pair, ring.tag, seen.keys.get(one))
        texts_keys = {**named, **({ek.id: ek} if ek is not None else {})}
        return Head(root, tree, commit, sha256(message).hexdigest(), ek, texts_keys)

    def _opened(
        self, stored: bytes, tag: bytes, keys: Mapping[str, EpochKey]
    ) -> tuple[EpochKey | None, bytes, bytes]:
        if self.kind == "plain":
            pair = canonical(stored)
            if not isinstance(pair, dict) or set(pair) != {"k", "s"}:
                raise Refused("no commit")
            return None, unb64(pair["s"]), unb64(pair["k"])
        for ek in sorted(keys.values(), reverse=True):
            try:
                payload = open_object(stored, tag, ek, COMMIT, "")
            except Refused:
                continue
            return ek, payload[:64], payload[64:]
        raise Refused("no key opens the commit")

    # -- states

    def state(self, head: Head, ring: Ring, seen: Evaluation, ours: Entries) -> tuple[State, bool]:
        """Return the state of a head, and whether all of it is vouched for. Raises Damaged, Refused."""
        entries: Entries = {}
        self._node(head, ring.tag, "", head.commit["state"], entries, ours)
        state, whole = State(), True
        for dev, (n, r, _) in head.commit["ctx"].items():
            if dev in seen.keys:
                state.ctx[dev] = (n, r)
            else:
                whole = False
        dots: set[str] = set()
        for name, entry in entries.items():
            values = _checked_entry(name, entry)
            counts: dict[str, int] = {}
            for dot, value in values.items():
                dev, n = views.split_dot(dot)
                counts[dev] = counts.get(dev, 0) + 1
                if counts[dev] > 4:
                    raise Refused("a fifth dot of one device")
                if dev not in seen.keys and dev in head.counters:
                    continue
                if entry != ours.get(name):  # an entry that equals ours is not read again
                    if dot in dots or head.counters.get(dev, 0) < n:
                        raise Refused("a dot in two entries, or one that is not covered")
                    dots.add(dot)
                said = {one: value[one] for one in ("b", "body", "h", "kind", "of") if one in value}
                message = (
                    b"ipfsmem/v1/value\0"
                    + rfc8785({**said, "dot": dot, "e": name, "vault": ring.tag.hex()}).encode()
                )
                if not signed_by(bytes.fromhex(seen.keys[dev]), unb64(value["s"]), message):
                    raise Refused("a value that its device did not sign")
                state.entries.setdefault(name, {})[dot] = value
        return state, whole

    def _node(
        self, head: Head, tag: bytes, prefix: str, digest: str, entries: Entries, ours: Entries
    ) -> None:
        path = f"s/{'/'.join(prefix)}.ipm" if prefix else "s/top.ipm"
        if digest == sha256(b'{"e":{}}').hexdigest():
            return  # the node of the empty state is always known
        here = {
            name: one for name, one in ours.items() if sha256(name.encode()).hexdigest().startswith(prefix)
        }
        if here and tree_digest(here, prefix) == digest:
            entries |= here  # the joined state has that node
            return
        try:
            stored = head.tree.file(self.path(path))
            if stored is None:
                raise Damaged(path)
            assert self.kind == "plain" or head.ek is not None
            data = stored if head.ek is None else open_object(stored, tag, head.ek, NODE, prefix)
        except (Missing, Refused) as error:
            raise Damaged(path) from error
        if sha256(data).hexdigest() != digest:
            raise Damaged(path)
        node = canonical(data)
        if not isinstance(node, dict) or len(node) != 1:
            raise Refused("no node")
        if "e" in node and isinstance(node["e"], dict):
            here = node["e"]
            if not _is_leaf(here, prefix):
                raise Refused("a leaf that the rule does not make")
        elif "n" in node and isinstance(node["n"], dict) and node["n"]:
            here = {}
            for digit, child in node["n"].items():
                if not is_hex(digit, 1) or not is_hex(child, 64):
                    raise Refused("no inner node")
            found: Entries = {}
            for digit, child in node["n"].items():
                self._node(head, tag, prefix + digit, child, found, ours)
            if _is_leaf(found, prefix):
                raise Refused("an inner node that the rule does not make")
            here = found
        else:
            raise Refused("no node")
        for name, entry in here.items():
            if not sha256(name.encode()).hexdigest().startswith(prefix) or name in entries:
                raise Refused("an entry outside its prefix")
            if not isinstance(entry, dict):
                raise Refused("no entry")
            entries[name] = entry

    # -- objects

    def body(self, name: str, body: str, loc: list[Any]) -> bytes | None:
        """Return the object at a location; None if it does not hold that body."""
        ek_id, digest, size = loc
        stored = self.blocks.get(raw_cid(digest))
        if stored is None or len(stored) != size:
            return None
        if self.kind == "sealed":
            ek = self.bag.get(ek_id)
            try:
                if ek is None:
                    return None
                parsed = entry_name(name)
                stored = open_object(stored, self.tag, ek, _TYPES[parsed.kind], parsed.ctx)
            except Refused:
                return None
        elif ek_id:
            return None
        return stored if sha256(stored).hexdigest().startswith(body) else None

    def text_of(self, name: str, entry: views.Entry, body: str) -> bytes | None:
        """Return the bytes of a body, or of a base by the prefix of its hash."""
        for value in entry.values():
            if value["body"] is not None and value["body"].startswith(body) and "loc" in value:
                found = self.body(name, value["body"], value["loc"])
                if found is not None:
                    return found
        for value in entry.values():
            if value["b"] and value["b"][0] == body and "base" in value:
                found = self.body(name, body, value["base"])
                if found is not None:
                    return found
        return None

    # -- the whole

    def read(self) -> dict[str, Any]:
        try:
            return self._read()
        except _Outcome as outcome:
            return {"refused": str(outcome)}

    def _read(self) -> dict[str, Any]:
        first = self._first_ring()
        self.tag = first.tag
        ring, places = self._joined_ring(first)
        seen = Evaluation(ring)
        mine = sha256(self.keys.admin).hexdigest()[:16]
        member = seen.members.get(mine)
        if member is None or member.role != "admin" or mine in seen.asked:
            raise _Outcome("revoked")
        return self._result(ring, seen, places, mine)

    def _first_ring(self) -> Ring:
        own = name_of(self.keys.head)
        root, way = self.follow(own)
        listed = self.case["pins"].get(pin_name(self.keys.head), [])
        other = lost = False
        if root is not None:
            data = self.ring_file(root)
            lost = data is None
            if data is not None:
                try:
                    ring = read_ring(data, self.kind, self.keys.box, self.keys.box_secret)
                except Refused:
                    other = self.other_kind(root)
                    lost = not other
                else:
                    if not ring.opened:
                        raise _Outcome("revoked")
                    return ring
            elif not way:
                raise _Outcome("none")
        found: list[Ring] = []
        any_ring = False
        lists = [*listed]
        for name in way[-1:] if len(way) > 1 else ():
            lists += self.case["pins"].get(pin_name(key_of(name)), [])
        for one in lists[:128]:
            if (ring := self._anchor_ring(one, own)) is not None:
                if not ring.opened:
                    raise _Outcome("revoked")
                return ring
            try:
                ring = self.ring_of(one)
            except BadBody as error:
                ring = error.ring
            except (Refused, Missing):
                other = other or self.other_kind(one)
                continue
            if not self._is_ours(ring, None if one in listed else key_of(way[-1]).hex()):
                continue
            if not ring.opened:
                any_ring = any_ring or self._has_commit(one)
                continue
            ring = join(ring, ring)
            try:
                head = self.head(one, ring)
            except Refused:
                any_ring = True
                continue
            if head is not None:
                found.append(ring)
        if found:
            return functools.reduce(join, found)
        if any_ring:
            raise _Outcome("damaged")
        if way and lost:
            raise _Outcome("unread")
        raise _Outcome("other kind" if other else "none")

    def _is_ours(self, ring: Ring, anchor: str | None) -> bool:
        """Return whether a listed ring is valid: this key is its first root, or it has this key with its
        anchor and is of the list's anchor."""
        firsts = {st.said["roots"][0] for st in ring.of("genesis")}
        mine = self.keys.admin.hex()
        if anchor is None:
            return firsts == {mine}
        said = {st.said["sign"]: st.said["anchor"] for st in ring.of("member")}
        return said.get(mine) == self.keys.head.hex() and {said.get(first) for first in firsts} == {anchor}

    def _has_commit(self, root: str) -> bool:
        try:
            return self.tree(root).cid(self.head_path(root)) is not None
        except Missing:
            return False

    def _anchor_ring(self, root: str, name: str) -> Ring | None:
        """Return the ring of a root under the pin name of an anchor, which holds the records that lead
        there (7)."""
        try:
            tree = self.tree(root)
            data = tree.file("keyring.json")
            records = {one[:-5]: tree.file(one) for one in tree.names() if one.endswith(".ipns")}
            if data is None or len(records) > 8 or len(records) + 1 != len(tree.names()):
                return None
            while records:
                value = record_value(name, records.pop(name, None) or b"")
                if value == f"/ipfs/{folder_of_one('keyring.json', data)}" and not records:
                    return read_ring(data, self.kind, self.keys.box, self.keys.box_secret)
                name = value.removeprefix("/ipns/")
        except (Refused, Missing):
            pass
        return None

    def _joined_ring(self, ring: Ring) -> tuple[Ring, dict[str, list[str]]]:
        ring = join(ring, ring)
        while True:
            before = (set(ring.statements), set(ring.keys))
            ring = self._with_names(ring)
            places = self._places(Evaluation(ring))
            ring = self._with_all(ring, places["list"])
            if (set(ring.statements), set(ring.keys)) == before:
                return ring, places

    def _with_names(self, ring: Ring) -> Ring:
        """Join a ring with those that names lead to, until a round adds nothing."""
        while True:
            seen = Evaluation(ring)
            before = (set(ring.statements), set(ring.keys))
            places = self._places(seen)
            for one in seen.members.values():
                if one.anchor is not None and (one.id in seen.roots or one.by_root):
                    root, _ = self.follow(name_of(bytes.fromhex(one.anchor)))
                    ring = self._with(ring, ring, root, by_anchor=True)
            ring = self._with_all(ring, places["names"])
            if (set(ring.statements), set(ring.keys)) == before:
                return ring

    def _with_all(self, ring: Ring, roots: list[str]) -> Ring:
        """Join a ring with those of roots, round after round; each round judges all roots by the previous
        ring."""
        while True:
            judge = ring
            for root in roots:
                ring = self._with(ring, judge, root, by_anchor=False)
            if (set(ring.statements), set(ring.keys)) == (set(judge.statements), set(judge.keys)):
                return ring

    def _with(self, ring: Ring, judge: Ring, root: str | None, *, by_anchor: bool) -> Ring:
        """Join a ring with that of a root: of an anchor, or next to a commit that verifies; only the open
        part of one that no key opens."""
        if root is None:
            return ring
        try:
            theirs = self.ring_of(root, judge.keys.values())
            if theirs.tag != ring.tag:
                return ring
            if not theirs.opened:
                return join(ring, Ring(ring.tag, theirs.statements, {}))
            if not by_anchor:
                try:
                    if self.head(root, judge) is None:
                        return ring
                except Refused as error:
                    if str(error) == "no key opens the commit":
                        return join(
                            ring,
                            Ring(ring.tag, {n: s for n, s in theirs.statements.items() if _is_open(s)}, {}),
                        )
                    return ring
            return join(ring, theirs)
        except (Refused, Missing):
            return ring

    def _places(self, seen: Evaluation) -> dict[str, list[str]]:
        named = []
        for one in sorted(seen.members.values(), key=lambda one: one.id):
            if seen.may_write(one.id):
                name = name_of(bytes.fromhex(one.sign))
                root, way = self.follow(name, 1)
                if root is not None and len(way) == 1:
                    named.append(root)
        anchor = seen.members[seen.first].anchor if seen.first in seen.members else None
        listed = self.case["pins"].get(pin_name(bytes.fromhex(anchor)), []) if anchor else []
        return {"names": list(dict.fromkeys(named)), "list": list(dict.fromkeys(listed))[:128]}

    def _result(
        self, ring: Ring, seen: Evaluation, places: dict[str, list[str]], mine: str
    ) -> dict[str, Any]:
        verdicts: dict[str, str] = {}
        heads: dict[str, Head] = {}
        for root in dict.fromkeys([*places["names"], *places["list"]]):
            try:
                head = self.head(root, ring)
            except (Refused, Missing):
                verdicts[root] = "refused: head"
                continue
            if head is not None:
                heads[root] = head
        self.bag = {**ring.keys}
        for head in heads.values():
            self.bag |= head.keys
        groups = [
            [heads[root] for root in places["names"] if root in heads],
            [heads[root] for root in places["list"] if root in heads and root not in places["names"]],
        ]
        joining = _Joining(self, ring, seen, heads, verdicts)
        joining.join_group(groups[0])
        joining.leave_out_the_past(groups[1])
        joining.join_group(groups[1])
        joining.finish()
        state = joining.state
        back = any(head.counters for head in joining.joined)
        bad = {"damaged"} if joining.joined else {"damaged", "refused: state", "refused: head"}
        # The target of a device's name is a head even if it cannot be read.
        unread = any(self.is_unread(root) for root in places["names"])
        if not back and (unread or bad & {*verdicts.values()}):
            raise _Outcome("damaged")
        entries = {name: entry for name, entry in state.entries.items() if entry}
        digest = tree_digest(entries)
        same = [
            (head.digest, root)
            for root, head in heads.items()
            if verdicts.get(root) in ("joined", "joined in part")
            and head.commit["state"] == digest
            and {dev: (n, r) for dev, (n, r, _) in head.commit["ctx"].items()} == state.ctx
        ]
        person = seen.persons.get(mine)
        cards = {
            name[2:]: self._card(name, entry) for name, entry in sorted(entries.items()) if name[0] == "c"
        }
        forgotten = {token for token, card in cards.items() if card is _FORGOTTEN}
        return {
            "digest": digest,
            "events": {
                scope: lines
                for scope, lines in sorted(self._events(entries).items())
                if lines and scope not in forgotten
            },
            "heads": verdicts,
            "members": {
                one.id: {"label": one.label, "person": seen.persons.get(one.id), "role": one.role}
                for one in sorted(seen.members.values(), key=lambda one: one.id)
            },
            "memories": {
                name[2:]: self._memory(name, entry, seen, person)
                for name, entry in sorted(entries.items())
                if name[0] == "m"
            },
            "root": max(same)[1] if same else None,
            "scopes": {token: None if card is _FORGOTTEN else card for token, card in cards.items()},
            "vault": ring.tag.hex(),
        }

    def _card(self, name: str, entry: views.Entry) -> Any:
        if any(value["kind"] == "forgotten" for value in entry.values()):
            return _FORGOTTEN
        order = sorted(
            entry,
            key=lambda dot: (entry[dot]["h"], views.split_dot(dot)[0], entry[dot]["body"]),
            reverse=True,
        )
        cards = []
        for dot in order:
            data = self.text_of(name, entry, entry[dot]["body"])
            try:
                cards.append(texts.read_card(data) if data is not None else None)
            except Refused:
                cards.append(None)
        known = [card for card in cards if card is not None]
        if not known:
            return None
        ids = sorted({tuple(one) for card in known for one in card["ids"]})
        return {**known[0], "ids": [list(one) for one in ids]}

    def _events(self, entries: Entries) -> dict[str, list[str]]:
        scopes: dict[str, list[texts.Event]] = {}
        for name, entry in sorted(entries.items()):
            if name[0] != "t":
                continue
            parsed = entry_name(name)
            for value in entry.values():
                data = self.text_of(name, {"x-0": value}, value["body"])
                for event in texts.read_lines(data or b"", None):
                    claimed = texts.own_id(event["id"])
                    own = (
                        event
                        if claimed is None or claimed[0] == parsed.dev
                        else {**event, "id": texts.foreign_id(event)}
                    )
                    if max(_size(own), _size({**event, "id": texts.foreign_id(event)})) <= 64 << 10:
                        scopes.setdefault(parsed.scope, []).append(own)
        return {scope: _united(events) for scope, events in scopes.items()}

    def _memory(self, name: str, entry: views.Entry, seen: Evaluation, person: str | None) -> dict[str, Any]:
        key = name.rpartition("/")[2]

        def body_of(body: str) -> bytes | None:
            return self.text_of(name, entry, body)

        def is_own(dot: str, of: str | None) -> bool:
            dev = views.split_dot(dot)[0]
            return all(
                seen.persons.get(one) == person and person is not None
                for one in ([dev] if of is None else [dev, of])
            )

        def told(view: views.View) -> dict[str, Any]:
            return {
                "conflicts": listed(view.conflicts),
                "forgotten": view.forgotten,
                "hidden": [text(body) for body in view.hidden],
                "merged": view.merged,
                "not_fetched": view.not_fetched,
                "shown": None if view.data is None else view.data.decode(),
            }

        def text(body: str) -> str | None:
            data = body_of(body)
            return None if data is None else data.decode()

        def listed(bodies: list[str]) -> list[dict[str, Any]]:
            return [{"file": file, "text": text(body)} for file, body in views.copies(key, bodies)]

        shown = told(views.view(entry, body_of))
        own = None
        if not all(is_own(dot, value.get("of")) for dot, value in entry.items()):
            mine = views.own_view(entry, is_own, body_of)
            if mine.others or mine.unheeded:
                own = {**told(mine.view), "others": listed(mine.others), "unheeded": mine.unheeded}
        return {**shown, "own": own}


_FORGOTTEN = object()


class _Outcome(Exception):
    """The reason why nothing is read."""


def _is_open(st: Any) -> bool:
    return st.kind in ("genesis", "epoch") or (st.kind == "member" and st.said["role"] == "admin")


def _size(event: texts.Event) -> int:
    return len(texts.event_line(event).encode())


def _united(events: list[texts.Event]) -> list[str]:
    """Return events as a set: of two different ones with one id, the least line remains."""
    by_id: dict[str, set[str]] = {}
    for event in events:
        by_id.setdefault(event["id"], set()).add(texts.event_line(event))
    found = {one: min(lines) for one, lines in by_id.items()}
    for lines in by_id.values():
        for line in lines - {min(lines)}:
            event = json.loads(line)
            event["id"] = texts.foreign_id(event)
            found.setdefault(event["id"], texts.event_line(event))
    return sorted(
        found.values(), key=lambda line: (texts.instant(json.loads(line)["ts"]), json.loads(line)["id"])
    )


def _checked_commit(commit: Any, tag: bytes, ek: EpochKey | None) -> dict[str, Any]:
    names = {"c", "ctx", "dev", "ek", "h", "prev", "ring", "state", "v", "vault"}
    if not isinstance(commit, dict) or set(commit) != names or not is_whole(commit["v"], 1, 1):
        raise Refused("not the fields of a commit")
    right = (
        is_whole(commit["c"], 1, MOST)
        and isinstance(commit["ctx"], dict)
        and is_hex(commit["dev"], 16)
        and commit["ek"] == ("" if ek is None else ek.id)
        and is_hex(commit["h"], 16)
        and is_list(commit["prev"], lambda one: is_hex(one, 64))
        and is_hex(commit["ring"], 64)
        and is_hex(commit["state"], 64)
        and commit["vault"] == tag.hex()
    )
    if not right:
        raise Refused("a value outside the grammar")
    return commit


def _check_pair(dev: str, pair: Any, tag: bytes, sign: str | None) -> None:
    if not is_hex(dev, 16) or not isinstance(pair, list) or len(pair) != 3:
        raise Refused("no pair")
    n, r, s = pair
    if not is_whole(n, 1, MOST) or not is_hex(r, 16) or len(unb64(s)) != 64:
        raise Refused("no pair")
    message = b"ipfsmem/v1/seen\0" + tag + bytes.fromhex(dev) + n.to_bytes(8, "big") + bytes.fromhex(r)
    if sign is not None and not signed_by(bytes.fromhex(sign), unb64(s), message):
        raise Refused("a pair that its device did not sign")


def _checked_entry(name: str, entry: Any) -> dict[str, views.Value]:
    parsed = entry_name(name)
    for dot, value in entry.items():
        claimed = texts.own_id(dot)
        if claimed is None or not isinstance(value, dict):
            raise Refused("no dot")
        live = value.get("kind") == "live"
        must = {"b", "body", "h", "kind", "s"} | ({"loc"} if live else set())
        if not must <= set(value) <= must | ({"base", "of"} if live else set()):
            raise Refused("not the fields of a value")
        b = value["b"]
        right = (
            (live or value["kind"] == "forgotten")
            and (is_hex(value["body"], 64) if live else value["body"] is None)
            and is_hex(value["h"], 16)
            and len(unb64(value["s"])) == 64
            and isinstance(b, list)
            and len(b) <= 4
            and all(is_hex(one, 32) for one in b)
            and len(set(b)) == len(b)
            and (live or not b)
            and (parsed.kind == "m" or not (b or "of" in value))
            and (parsed.kind != "t" or (live and claimed[0] == parsed.dev))
            and all(_is_location(value[one]) for one in ("loc", "base") if one in value)
            and ("base" not in value or bool(b))
            and ("of" not in value or value["of"] == "foreign" or is_hex(value["of"], 16))
            and value.get("of") != claimed[0]
        )
        if not right:
            raise Refused("a value outside the grammar")
    return dict(entry)


def _is_location(loc: Any) -> bool:
    return (
        isinstance(loc, list)
        and len(loc) == 3
        and (loc[0] == "" or is_hex(loc[0], 16))
        and is_hex(loc[1], 64)
        and is_whole(loc[2], 0, 1 << 20)
    )


def _is_leaf(entries: Mapping[str, Any], prefix: str) -> bool:
    """Return whether the entries under a prefix are one leaf."""
    size = sum(len(f"{rfc8785(name)}:{rfc8785(entry)}".encode()) for name, entry in entries.items())
    return len(entries) <= 1 or (len(entries) <= 64 and size <= 48 << 10) or len(prefix) == 16


def tree_digest(entries: Entries, prefix: str = "") -> str:
    if _is_leaf(entries, prefix):
        return sha256(rfc8785({"e": entries}).encode()).hexdigest()
    parts: dict[str, Entries] = {}
    for name, entry in entries.items():
        parts.setdefault(sha256(name.encode()).hexdigest()[len(prefix)], {})[name] = entry
    children = {digit: tree_digest(part, prefix + digit) for digit, part in parts.items()}
    return sha256(rfc8785({"n": children}).encode()).hexdigest()


class _Joining:
    """Step 4 of section 9: joins heads one after the other."""

    def __init__(
        self, reader: Reader, ring: Ring, seen: Evaluation, heads: dict[str, Head], verdicts: dict[str, str]
    ) -> None:
        self.reader, self.ring, self.seen = reader, ring, seen
        self.heads, self.verdicts = heads, verdicts
        self.state = State()
        self.joined: list[Head] = []
        self.damaged: list[Head] = []

    def holds(self, one: Head, other: Head, among: list[Head]) -> bool:
        """Return whether a head holds another: names it in `prev`, directly or through heads among these,
        and covers it."""
        if one is other or one.digest == other.digest or self.lacks(one):
            return False
        if not self.covers(one, other):
            return False
        reached, todo = set(), [one]
        by_digest = {head.digest: head for head in among}
        while todo:
            here = todo.pop()
            if here.digest in reached:
                continue
            reached.add(here.digest)
            below = [by_digest[digest] for digest in here.commit["prev"] if digest in by_digest]
            todo += [head for head in below if not self.lacks(here) and self.covers(here, head)]
        return other.digest in reached

    def lacks(self, head: Head) -> bool:
        """Return whether a part of a head is left out: it may have come from the heads that it names."""
        return any(dev not in self.seen.keys for dev in head.counters)

    def covers(self, one: Head, other: Head) -> bool:
        """Return whether one head's counters, and where equal its pairs, cover those of another."""
        return one is not other and _covers(
            {dev: (n, r) for dev, (n, r, _) in one.commit["ctx"].items()}, other
        )

    def join_group(self, group: list[Head]) -> None:
        left = [head for head in group if head.root not in self.verdicts]
        while left:
            now = list(left)
            top = [head for head in now if not any(self.holds(other, head, now) for other in now)] or now
            covered = {head.root for head in top if any(self.covers(other, head) for other in top)}
            for head in sorted(top, key=lambda head: (head.root in covered, head.commit["h"], head.digest)):
                if head not in left:
                    continue
                left.remove(head)
                self.join_one(head)
                if self.verdicts[head.root] not in ("joined", "joined in part"):
                    continue
                for other in [one for one in left if one.digest == head.digest or self.holds(head, one, now)]:
                    self.verdicts[other.root] = "joined in part" if self.lacks(other) else "joined"
                    self.joined.append(other)
                    left.remove(other)

    def leave_out_the_past(self, group: list[Head]) -> None:
        if all(map(self.lacks, self.joined)):
            return
        named = {digest for head in self.joined if not self.lacks(head) for digest in head.commit["prev"]}
        for head in group:
            if not self.is_other_copy(head) and not self.lacks(head) and _covers(self.state.ctx, head):
                if head.digest in named:
                    self.verdicts[head.root] = "joined"
                elif int(head.commit["h"][:12], 16) < self.reader.now - 7 * _DAY:
                    self.verdicts[head.root] = "past"

    def join_one(self, head: Head) -> None:
        try:
            state, whole = self.reader.state(head, self.ring, self.seen, self.state.entries)
        except Damaged:
            self.verdicts[head.root] = "damaged"
            self.damaged.append(head)
            return
        except Refused:
            self.verdicts[head.root] = "refused: state"
            return
        if self.is_other_word(state) or self.is_other_copy(head):
            self.verdicts[head.root] = "held"
            return
        self.state = joined(self.state, state, self.better)
        self.joined.append(head)
        self.verdicts[head.root] = "joined" if whole else "joined in part"

    def is_other_word(self, theirs: State) -> bool:
        """Return whether a pair or a dot contradicts the joined state."""
        ours = self.state
        if any(
            dev in ours.ctx and ours.ctx[dev][0] == n and ours.ctx[dev][1] != r
            for dev, (n, r) in theirs.ctx.items()
        ):
            return True
        said = {
            dot: (name, _identity(value))
            for name, entry in ours.entries.items()
            for dot, value in entry.items()
        }
        return any(
            said.get(dot, (name, _identity(value))) != (name, _identity(value))
            for name, entry in theirs.entries.items()
            for dot, value in entry.items()
        )

    def is_other_copy(self, head: Head) -> bool:
        own = [one for one in self.heads.values() if one.commit["dev"] == head.commit["dev"]]
        newest = max(own, key=lambda one: one.commit["c"])
        if head.commit["c"] >= newest.commit["c"] or head.commit["h"] <= newest.commit["h"]:
            return False
        named = {digest for one in self.heads.values() for digest in one.commit["prev"]}
        return head.digest not in named and int(head.commit["h"][:12], 16) < self.reader.now + _DAY

    def better(
        self, name: str, body: str, mine: list[Any] | None, theirs: list[Any] | None
    ) -> list[Any] | None:
        """Return the better of two locations: the one whose object passes, or else the greater."""
        if mine == theirs or theirs is None:
            return mine
        if mine is None:
            return theirs
        good = [loc for loc in (mine, theirs) if self.reader.body(name, body, loc) is not None]
        if len(good) != 2:
            return good[0] if good else mine
        epochs = self.reader.bag
        return max(good, key=lambda loc: (epochs[loc[0]].epoch if loc[0] in epochs else 0, *loc))

    def finish(self) -> None:
        """Do not report a damaged head of the past as damaged."""
        for head in self.damaged:
            covered = not self.lacks(head) and _covers(self.state.ctx, head)
            older = any(head.commit["h"] < one.commit["h"] for one in self.joined)
            if (covered and older) or any(one.digest == head.digest for one in self.joined):
                self.verdicts[head.root] = "past"


def _covers(ctx: Mapping[str, tuple[int, str]], head: Head) -> bool:
    return all(
        dev in ctx and (ctx[dev][0] > n or ctx[dev] == (n, r))
        for dev, (n, r, _) in head.commit["ctx"].items()
    )


def _identity(value: views.Value) -> tuple[Any, ...]:
    return (value["body"], value["h"], value["b"], value["kind"], value.get("of"))


def joined(ours: State, theirs: State, better: Any) -> State:
    """Join two states (section 5, Join)."""
    made = State(dict(ours.ctx))
    for dev, pair in theirs.ctx.items():
        made.ctx[dev] = max(made.ctx.get(dev, pair), pair)
    for name in sorted({*ours.entries, *theirs.entries}):
        mine, other = ours.entries.get(name, {}), theirs.entries.get(name, {})
        entry = {}
        for dot in sorted({*mine, *other}):
            dev, n = views.split_dot(dot)
            if dot in mine and dot in other:
                entry[dot] = _one_value(name, mine[dot], other[dot], better)
            elif dot in mine and not theirs.covers(dev, n):
                entry[dot] = mine[dot]
            elif dot in other and not ours.covers(dev, n):
                entry[dot] = other[dot]
        if len(entry) > 800:
            raise NotJudged("which values have room")
        if entry:
            made.entries[name] = entry
    return made


def _one_value(name: str, mine: views.Value, theirs: views.Value, better: Any) -> views.Value:
    made = {**mine, "s": max(mine["s"], theirs["s"])}
    if mine["kind"] == "live":
        made["loc"] = better(name, mine["body"], mine["loc"], theirs["loc"])
        if mine["b"]:
            base = better(name, mine["b"][0], mine.get("base"), theirs.get("base"))
            made = {one: value for one, value in made.items() if one != "base"} | (
                {"base": base} if base else {}
            )
    return made


def read_case(case: dict[str, Any], cars: Mapping[str, str]) -> dict[str, Any]:
    """Return what a reader of a case sees: its `expect`, without the layout of its root."""
    return Reader(case, cars).read()
