"""Section 4 of docs/FORMAT.md: the key ring, its statements and their evaluation."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tests.support.plain.blocks import signed_by
from tests.support.plain.sealed import (
    RING,
    EpochKey,
    epoch_key,
    is_box_key,
    is_proper_key,
    open_object,
    open_slot,
    vault_tag,
)
from tests.support.plain.texts import Refused, canonical, is_label, rfc8785

MOST = 2**53 - 1


def unb64(text: object) -> bytes:
    """Decode base64url without padding, in its one form."""
    if not isinstance(text, str) or not re.fullmatch(r"[A-Za-z0-9_-]*", text):
        raise Refused("no base64url")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) if len(text) % 4 != 1 else b""
    if base64.urlsafe_b64encode(data).rstrip(b"=").decode() != text:
        raise Refused("no base64url")
    return data


def member_id(key: str) -> str:
    return sha256(bytes.fromhex(key)).hexdigest()[:16]


def is_hex(value: object, digits: int) -> bool:
    return isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", value) is not None


def _is_id(value: object) -> bool:
    return is_hex(value, 16)


def is_whole(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def is_list(value: object, one: Callable[[Any], bool], most: int | None = None) -> bool:
    """Return whether a value is a sorted list of texts without duplicates."""
    return (
        isinstance(value, list)
        and (most is None or len(value) <= most)
        and all(map(one, value))
        and value == sorted(set(value))
    )


def _is_slot(value: object) -> bool:
    try:
        return len(unb64(value)) == 104
    except Refused:
        return False


def _is_while(value: object) -> bool:
    return isinstance(value, dict) and all(
        _is_id(admin) and is_list(ids, _is_id) and ids for admin, ids in value.items()
    )


def _is_counters(value: object) -> bool:
    return isinstance(value, dict) and all(_is_id(dev) and is_whole(n, 0, MOST) for dev, n in value.items())


_KEY_OR_NULL: Callable[[Any], bool] = lambda value: value is None or is_proper_key(value)  # noqa: E731
_HASH: Callable[[Any], bool] = lambda value: is_hex(value, 64)  # noqa: E731
_FIELDS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "genesis": {
        "roots": lambda value: (
            isinstance(value, list)
            and len(value) in (1, 2)
            and all(map(is_proper_key, value))
            and len(set(value)) == len(value)
        )
    },
    "member": {
        "anchor": _KEY_OR_NULL,
        "box": is_box_key,
        "by": is_proper_key,
        "heir_of": _KEY_OR_NULL,
        "id": _is_id,
        "kind": lambda value: value in ("device", "agent", "wallet", "words"),
        "label": is_label,
        "own": lambda value: len(unb64(value)) == 64,
        "person": _is_id,
        "role": lambda value: value in ("admin", "writer", "reader"),
        "sign": is_proper_key,
        "since": _is_id,
        "under": lambda value: value is None or is_hex(value, 64),
        "was": lambda value: value is None or _is_id(value),
    },
    "epoch": {
        "by": is_proper_key,
        "ek": _is_id,
        "epoch": lambda value: is_whole(value, 1, 2**32 - 1),
        "for": lambda value: is_list(value, _is_id),
        "not": lambda value: is_list(value, _is_id),
        "of": lambda value: is_list(value, _is_id),
        "old": lambda value: is_list(value, _is_id),
        "slots": lambda value: is_list(value, _is_slot),
        "while": _is_while,
    },
    "revoke": {
        "anchor": _KEY_OR_NULL,
        "at": _is_id,
        "by": is_proper_key,
        "heirs": lambda value: is_list(value, is_proper_key),
        "keep": lambda value: is_list(value, _HASH, 256),
        "n": _is_counters,
        "person": _is_id,
        "rank": lambda value: is_whole(value, 0, 1),
        "sign": is_proper_key,
    },
}


@dataclass(frozen=True)
class Statement:
    """One signed statement."""

    hash: str
    said: dict[str, Any]
    signature: bytes

    @property
    def kind(self) -> str:
        return str(self.said["t"])

    @property
    def by(self) -> str:
        return member_id(self.said["roots"][0] if self.kind == "genesis" else self.said["by"])

    @property
    def about(self) -> str:
        """Return the id of the key that a member statement or a revoke is about."""
        return member_id(self.said["sign"])

    @property
    def is_heir(self) -> bool:
        return self.kind == "member" and self.said["heir_of"] is not None

    @property
    def gone(self) -> set[str]:
        return {*self.said["not"], *(one for ids in self.said["while"].values() for one in ids)}


def read_statement(given: Any, tag: bytes) -> Statement:
    if not isinstance(given, dict) or set(given) != {"k", "s"}:
        raise Refused("no statement")
    payload, signature = unb64(given["k"]), unb64(given["s"])
    said = canonical(payload)
    kind = said.get("t") if isinstance(said, dict) else None
    fields = _FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None or set(said) != {*fields, "t", "v"} or not is_whole(said["v"], 1, 1):
        raise Refused("not the fields of a statement")
    if not all(is_right(said[name]) for name, is_right in fields.items()):
        raise Refused("a value outside the grammar")
    signer = said["roots"][0] if kind == "genesis" else said["by"]
    if not signed_by(bytes.fromhex(signer), signature, b"ipfsmem/v1/statement\0" + tag + payload):
        raise Refused("a wrong signature")
    if kind == "member":
        _check_member(said, tag)
    return Statement(sha256(payload).hexdigest(), said, signature)


def _check_member(said: dict[str, Any], tag: bytes) -> None:
    heir = (said["heir_of"], said["under"], said["was"])
    if said["id"] != member_id(said["sign"]):
        raise Refused("the id of another key")
    if heir != (None, None, None):
        right = said["heir_of"] == said["by"] and None not in heir and said["sign"] != said["by"]
        if (
            not right
            or said["anchor"] is not None
            or said["role"] == "admin"
            or said["kind"] not in ("device", "agent")
        ):
            raise Refused("no successor")
    bound = {name: said[name] for name in ("anchor", "box", "heir_of", "sign")}
    message = b"ipfsmem/v1/possession\0" + tag + rfc8785(bound).encode()
    if not signed_by(bytes.fromhex(said["sign"]), unb64(said["own"]), message):
        raise Refused("a proof of possession that does not hold")


@dataclass
class Ring:
    """Statements, and the keys that are known under names."""

    tag: bytes
    statements: dict[str, Statement] = field(default_factory=dict)
    keys: dict[str, EpochKey] = field(default_factory=dict)
    slots: dict[str, EpochKey] = field(default_factory=dict)  # from slots in its open part
    opened: bool = True

    def of(self, kind: str) -> list[Statement]:
        return [st for st in self.statements.values() if st.kind == kind]

    @property
    def roots(self) -> set[str]:
        return {member_id(key) for st in self.of("genesis") for key in st.said["roots"]}

    @property
    def names(self) -> set[str]:
        return {name for st in self.of("epoch") for name in (st.said["ek"], *st.said["old"])}


class BadBody(Refused):
    """A malformed body; `ring`: the open part, as for a ring that no key opens."""

    def __init__(self, why: str, ring: Ring) -> None:
        super().__init__(why)
        self.ring = ring


def read_ring(data: bytes, kind: str, box: bytes, secret: bytes, known: Iterable[EpochKey] = ()) -> Ring:
    """Return the ring of a keyring.json. Where no key opens its body, only the open part is read."""
    if len(data) > 1 << 20:
        raise Refused("a ring over 1 MiB")
    file = canonical(data)
    if (
        not isinstance(file, dict)
        or set(file) != {"body", "open", "v", "vault"}
        or not is_whole(file["v"], 1, 1)
    ):
        raise Refused("not the fields of a ring")
    if not is_hex(file["vault"], 32) or not isinstance(file["open"], list):
        raise Refused("not a ring")
    tag = bytes.fromhex(file["vault"])
    if not isinstance(file["body"], str if kind == "sealed" else dict):
        raise Refused("a ring of the other kind")
    statements = [read_statement(one, tag) for one in file["open"]]
    for st in statements:
        admin = st.kind == "member" and st.said["role"] == "admin"
        if not (st.kind == "genesis" or admin or (st.kind == "epoch" and kind == "sealed")):
            raise Refused("a statement in the wrong part")
    _check_order(statements)
    firsts = {st.said["roots"][0] for st in statements if st.kind == "genesis"}
    if len(firsts) != 1 or vault_tag(bytes.fromhex(*firsts), kind) != tag:
        raise Refused("no genesis of this vault")
    ring = Ring(tag, {st.hash: st for st in statements})
    ring.slots = {one.id: one for one in _slots(statements, tag, box, secret)}
    keys: dict[str, EpochKey] = {}
    try:
        if kind == "sealed":
            given = {st.said["ek"] for st in ring.of("epoch")}
            bag = {**{one.id: one for one in known if one.id in given}, **ring.slots}
            payload, sealing = _opened(unb64(file["body"]), tag, bag.values())
            if payload is None:
                ring.opened = False
                return ring
            closed, rest = _read_body(canonical(payload), tag)
            # The key that opens it, and only those slots that a root signed: other slots are in the body.
            by_roots = {st.said["ek"] for st in ring.of("epoch") if st.by in ring.roots}
            keys = {
                name: one
                for name, one in bag.items()
                if one == sealing or (name in by_roots and name in ring.slots)
            }
        else:
            closed, rest = _read_body(file["body"], tag)
            if rest:
                raise Refused("keys in a plain ring")
    except Refused as error:
        raise BadBody(str(error), Ring(tag, dict(ring.statements), opened=False)) from None
    ring.statements |= {st.hash: st for st in closed}
    # Keys may be named by any ring; a join drops those that none names.
    ring.keys = keys | {one.id: one for one in rest}
    return ring


def _read_body(body: Any, tag: bytes) -> tuple[list[Statement], list[EpochKey]]:
    """Return the statements and the keys in the body of a ring."""
    if (
        not isinstance(body, dict)
        or set(body) != {"eks", "st"}
        or not all(isinstance(body[one], list) for one in body)
    ):
        raise Refused("not the fields of a body")
    closed = [read_statement(one, tag) for one in body["st"]]
    for st in closed:
        if not (st.kind == "revoke" or (st.kind == "member" and st.said["role"] != "admin")):
            raise Refused("a statement in the wrong part")
    _check_order(closed)
    return closed, _eks(body["eks"], tag)


def _check_order(statements: list[Statement]) -> None:
    if [st.hash for st in statements] != sorted({st.hash for st in statements}):
        raise Refused("statements out of order, or one twice")


def _slots(statements: list[Statement], tag: bytes, box: bytes, secret: bytes) -> list[EpochKey]:
    found = []
    for st in statements:
        for slot in st.said["slots"] if st.kind == "epoch" else ():
            ek = open_slot(unb64(slot), tag, box, secret)
            if ek is not None and (ek.id, ek.epoch) == (st.said["ek"], st.said["epoch"]):
                found.append(ek)
    return found


def _opened(sealed: bytes, tag: bytes, keys: Iterable[EpochKey]) -> tuple[bytes | None, EpochKey | None]:
    for ek in sorted(keys, reverse=True):
        try:
            return open_object(sealed, tag, ek, RING, ""), ek
        except Refused:
            continue
    return None, None


def _eks(given: list[Any], tag: bytes) -> list[EpochKey]:
    found = []
    for pair in given:
        if not isinstance(pair, list) or len(pair) != 2 or not is_whole(pair[0], 1, 2**32 - 1):
            raise Refused("no epoch key")
        key = unb64(pair[1])
        if len(key) != 32:
            raise Refused("a key of another length")
        found.append(epoch_key(tag, pair[0], key))
    order = [(one.epoch, one.id, one.key) for one in found]
    if order != sorted(set(order)):
        raise Refused("keys out of order, or one twice")
    return found


# -- join ------------------------------------------------------------------------------------------------------------------


def join(ours: Ring, theirs: Ring) -> Ring:
    """Return the union of two rings without dropped statements."""
    made = Ring(ours.tag, dict(ours.statements), {**ours.keys, **theirs.keys})
    for name, st in theirs.statements.items():
        held = made.statements.get(name)
        if held is None or st.signature < held.signature:
            made.statements[name] = st
    _drop(made)
    made.keys = {name: one for name, one in made.keys.items() if name in made.names}
    return made


def _drop(ring: Ring) -> None:
    while True:
        # A statement that is dropped for itself replaces nothing.
        goes = set(_dropped(ring)) or set(_outdone(ring))
        if not goes:
            return
        for name in goes:
            del ring.statements[name]


def _dropped(ring: Ring) -> Iterable[str]:
    roots = ring.roots
    revokes = [st for st in ring.of("revoke") if st.by in roots]
    revoked = {st.about for st in revokes}
    kept_by: dict[str, set[str]] = {}
    for st in revokes:
        keep = set(st.said["keep"])
        kept_by[st.about] = kept_by.get(st.about, keep) & keep
    members = ring.of("member")
    enrolments = {st.hash: st for st in members if not st.is_heir}
    admins = {st.about for st in enrolments.values() if st.by in roots and st.said["role"] == "admin"}
    for st in ring.statements.values():
        if st.kind == "genesis":
            continue
        stays = st.by not in revoked or st.by in roots or st.hash in kept_by[st.by]
        if st.is_heir:  # (a), (c): requires an enrolment of its signer that the ring keeps
            rests_on = enrolments.get(st.said["under"])
            if rests_on is None or rests_on.about != st.by or st.by in roots or st.about in roots:
                yield st.hash
            continue
        speaks = st.by in roots or st.by in admins or (st.by in revoked and st.hash in kept_by[st.by])
        if not stays or not speaks:  # (a), (b)
            yield st.hash
        elif st.kind == "member":
            if (
                (st.said["role"] == "admin" and st.by not in roots)
                or (st.about in roots and st.by != st.about)
                or (st.about in revoked and st.about not in roots)
            ):
                yield st.hash
        elif st.kind == "revoke" and st.about in roots and st.by not in roots:
            yield st.hash
        elif st.kind == "epoch":
            for_, gone = set(st.said["for"]), st.gone
            ended = any(one in revoked - roots and not kept_by[one] for one in st.said["of"])
            if for_ & gone or st.by in gone or ended:  # (e), (f)
                yield st.hash
    for name in enrolments:  # (d)
        heirs = sorted(st.hash for st in members if st.is_heir and st.said["under"] == name)
        yield from heirs[8:]


def _outdone(ring: Ring) -> Iterable[str]:
    roots = ring.roots
    revokes = [st for st in ring.of("revoke") if st.by in roots]
    epochs = ring.of("epoch")
    for st in epochs:  # (g)
        for other in epochs:
            outdone = other.hash != st.hash and other.by in roots and _outdoes(other, st)
            if outdone and not (st.by in roots and _outdoes(st, other) and st.hash < other.hash):
                yield st.hash
    for st in revokes:  # (h)
        if any(_replaces(other, st) for other in revokes if other.about == st.about):
            yield st.hash


def _outdoes(one: Statement, other: Statement) -> bool:
    a, b = one.said, other.said
    in_while = all(
        dev in a["not"] or dev in a["while"].get(admin, ()) or admin in a["not"]
        for admin, devs in b["while"].items()
        for dev in devs
    )
    return (
        (a["epoch"], a["ek"]) >= (b["epoch"], b["ek"])
        and set(b["not"]) <= set(a["not"])
        and in_while
        and set(b["for"]) <= {*a["for"], *one.gone}
        and set(b["old"]) <= {*a["old"]}
        and (b["ek"] == a["ek"] or b["ek"] in a["old"])
        and set(a["of"]) <= {*b["of"], other.by}
    )


def _replaces(one: Statement, other: Statement) -> bool:
    a, b = one.said, other.said
    return (
        set(a["keep"]) < set(b["keep"])
        and all(n <= b["n"].get(dev, 0) for dev, n in a["n"].items())
        and set(b["heirs"]) <= set(a["heirs"])
        and b["anchor"] in (None, a["anchor"])
        and a["person"] == b["person"]
        and a["rank"] <= b["rank"]
    )


# -- evaluation ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Member:
    id: str
    role: str
    label: str
    sign: str
    anchor: str | None
    family: str
    by_root: bool


class Evaluation:
    """What a ring means: members, persons, keys that verify, who is asked to be without."""

    def __init__(self, ring: Ring) -> None:
        """-"""
        self.ring = ring
        self.roots = ring.roots
        self.root_revokes = [
            st for st in ring.of("revoke") if st.by in self.roots and st.about not in self.roots
        ]
        self.revoked = {st.about for st in self.root_revokes}
        enrolments = [st for st in ring.of("member") if not st.is_heir]
        self.admins = {
            st.about for st in enrolments if st.by in self.roots and st.said["role"] == "admin"
        } | self.roots
        self.counting_revokes = [
            *self.root_revokes,
            *(st for st in ring.of("revoke") if st.by not in self.roots and st.about not in self.admins),
        ]
        self.heirs = self._heirs()
        self.family = self._families()
        self.out = {st.about for st in self.counting_revokes}
        self.first = member_id(next(iter(ring.of("genesis"))).said["roots"][0])
        self.keys = {st.about: st.said["sign"] for st in ring.of("member")}
        for st in ring.of("revoke"):
            if st.by in self.roots:
                self.keys |= {st.about: st.said["sign"], **{member_id(key): key for key in st.said["heirs"]}}
        for st in ring.of("genesis"):
            self.keys |= {member_id(key): key for key in st.said["roots"]}
        self.best = self._best(enrolments)
        self.members = self._members()
        self.persons = self._persons(enrolments)

    def _families(self) -> dict[str, str]:
        """Return the family of each id that is neither enrolled nor revoked."""
        ring = self.ring
        themselves = {st.about for st in ring.statements.values() if st.kind == "revoke"}
        themselves |= {st.about for st in ring.of("member") if not st.is_heir}
        found: dict[str, str] = {}
        for st in self.heirs:
            found.setdefault(st.about, st.by)
        for st in sorted(self.root_revokes, key=lambda st: st.about):
            for key in st.said["heirs"]:
                found.setdefault(member_id(key), st.about)
        for st in sorted(ring.of("member"), key=lambda st: (st.said["by"], st.hash)):
            if st.is_heir:
                found.setdefault(st.about, st.by)
        return {dev: head for dev, head in found.items() if dev not in themselves}

    def _heirs(self) -> list[Statement]:
        """Return the accepted successors: of several that make one id a successor, the least (`by`, hash)."""
        ring = self.ring
        enrolled = {st.about: st for st in ring.of("member") if not st.is_heir}
        by_hash = {st.hash: st for st in enrolled.values()} | {
            st.hash: st for st in ring.of("member") if not st.is_heir
        }
        found: dict[str, Statement] = {}
        for st in sorted(ring.of("member"), key=lambda st: (st.said["by"], st.hash)):
            if not st.is_heir or st.about in enrolled or st.about in {one.about for one in ring.of("revoke")}:
                continue
            under = by_hash.get(st.said["under"])
            if under is None or under.said["box"] != st.said["box"]:
                continue
            found.setdefault(st.about, st)
        return list(found.values())

    def _best(self, enrolments: list[Statement]) -> dict[str, Statement]:
        found: dict[str, Statement] = {}
        for st in sorted(enrolments, key=lambda st: (st.by in self.roots, st.said["since"], st.hash)):
            found[st.about] = st
        return found

    def _members(self) -> dict[str, Member]:
        made = {}
        for dev, st in self.best.items():
            if dev in self.out and dev not in self.roots:
                continue
            role = "admin" if dev in self.admins else st.said["role"]
            said = st.said
            made[dev] = Member(
                dev, role, said["label"], said["sign"], said["anchor"], dev, st.by in self.roots
            )
        for st in self.heirs:
            head = made.get(st.by)
            if head is None or st.by in self.roots:
                continue
            rank = ("reader", "writer", "admin")
            role = min(st.said["role"], head.role, key=rank.index)
            made[st.about] = Member(
                st.about, role, st.said["label"], st.said["sign"], None, st.by, head.by_root
            )
        return made

    def _persons(self, enrolments: list[Statement]) -> dict[str, str | None]:
        given = {}
        for st in enrolments:
            if st.by in self.roots:
                given.setdefault(st.said["person"], set()).add(st.about)
        persons: dict[str, str | None] = {}
        for dev, st in self.best.items():
            person = st.said["person"]
            owners = given.get(person, set())
            said = {one.said["person"] for one in self.root_revokes if one.about == st.by}
            right = (
                st.by in self.roots
                or not owners - {dev}
                or st.by in owners
                or person == min(said, default=None)
            )
            persons[dev] = person if right else None
        for dev in self.revoked:
            persons[dev] = min(st.said["person"] for st in self.root_revokes if st.about == dev)
        for dev, head in self.family.items():
            persons[dev] = persons.get(head)
        return persons

    @property
    def asked(self) -> set[str]:
        """Return who must not get a key: those out for good, and those whom admins removed."""
        good = {*self.revoked}
        by_others: dict[str, set[str]] = {}
        for st in self.ring.of("epoch"):
            if st.by in self.roots:
                good |= set(st.said["not"])
        revokers: dict[str, set[str]] = {}
        for st in self.counting_revokes:
            if st.by not in self.roots:
                revokers.setdefault(st.about, set()).add(st.by)
        first: dict[str, set[str]] = {}
        for st in self.ring.of("epoch"):
            if st.by in self.roots:
                for admin, ids in st.said["while"].items():
                    for one in ids if admin not in self.revoked else ():
                        first.setdefault(one, set()).add(admin)
            else:
                for one in st.said["not"]:
                    first.setdefault(one, set()).add(st.by)
                for admin, ids in st.said["while"].items():
                    for one in ids if admin not in self.revoked else ():
                        by_others.setdefault(one, set()).add(st.by)
        put_out = {*revokers, *first, *by_others} - self.admins
        return (good | put_out) - self.roots

    def is_of(self, dev: str, ids: set[str]) -> bool:
        return dev in ids or self.family.get(dev) in ids

    def may_write(self, dev: str) -> bool:
        one = self.members.get(dev)
        return one is not None and one.role in ("admin", "writer")
