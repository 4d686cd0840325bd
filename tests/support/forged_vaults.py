"""Forged vaults: whole published vaults with false data, made from a seed, that every reader must read alike.

Rings with statements by anybody, commits and states of honest and dishonest devices, and roots that a
provider without keys altered. All bytes are written by docs/FORMAT.md, not by this program, so that any
rule can be broken. `python -m tests.support.forged_vaults` writes those of `KEPT` to
fixtures/vectors/forged_vaults.json."""

from __future__ import annotations

import base64
import copy
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from ipfsmem.canonical import b64, encode
from ipfsmem.causal.value import Loc, Value, dot, sign_seen, sign_value
from ipfsmem.content.car import car_bytes
from ipfsmem.content.cid import CID, ipns_name, parse_cid, raw_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.tree import build_tree
from ipfsmem.published.ipns_record import make_record
from ipfsmem.ring.keyring import slot_text
from ipfsmem.ring.statements import Role, Statement, envelope
from ipfsmem.seal.objects import (
    CARD,
    COMMIT,
    MEMORY,
    RING_BODY,
    SEGMENT,
    STATE_NODE,
    EpochKey,
    Sealer,
)
from ipfsmem.sync.names import pin_name
from ipfsmem.wallet.recovery_words import to_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.interop.counterparts import built_web, need_program, run
from tests.support.plain import vault as plain
from tests.support.plain.texts import NotJudged
from tests.support.ring_lab import (
    OWNER,
    PLAIN,
    RECOVERY,
    RECOVERY_KEYS,
    ROOT,
    ROOT_KEYS,
    VAULT,
    Party,
    ek_of,
    fixed_box,
    party,
    says_epoch,
    says_genesis,
    says_heir,
    says_member,
    says_revoked,
    second_wallet,
)
from tests.support.vault_reading import read_case

FILE = Path(__file__).parents[2] / "fixtures" / "vectors" / "forged_vaults.json"
NOW = 1_777_000_000_000
DAY_MS = 86_400_000
LATER_KEYS = RootKeys.from_recovery(b"\x21" * 32)
LATER = Party("later words", LATER_KEYS.admin_seed, LATER_KEYS.box_secret, LATER_KEYS.head_public, "words")
ADMIN, STRANGER = second_wallet("admin"), party("stranger")
DEVICES = [party(f"device {n}") for n in range(4)]
READER, HEIR = party("reader"), party("heir")
EVERYBODY = [ROOT, RECOVERY, LATER, ADMIN, *DEVICES, READER, HEIR, STRANGER]
#: Epoch keys by number: those of honest epochs, and one that no epoch names.
KEYS = [ek_of(1, 1), ek_of(2, 2), ek_of(3, 3), ek_of(2, 9)]
MEMORIES = ["m/tone", "m/role", "m/lake", "m/api/style", "m/gone/style"]
CARDS = ["c/api", "c/gone"]
OPENED_BY: dict[str, dict[str, Any]] = {
    "the root": {"secret": "03" * 64},
    "the recovery words": {"words": " ".join(to_words(b"\x02" * 32))},
    "later words": {"words": " ".join(to_words(b"\x21" * 32))},
}
Json = dict[str, Any]


def resigned(st: Statement, by: Party, change: Callable[[Json], object], tag: bytes = VAULT) -> Json:
    """Return a statement with something changed, valid or not, with a valid signature."""
    body = json.loads(st.payload)
    change(body)
    payload = encode(body)
    signature = by.signer.sign(b"ipfsmem/v1/statement\0" + tag + payload)
    return {"k": b64(payload), "s": b64(signature)}


def nodes_of(entries: Mapping[str, bytes], *, most: int = 64, prefix: str = "") -> dict[str, bytes]:
    """Return the nodes of a state by prefix (section 6.1); a `most` other than 64 makes a tree that no
    rule allows."""
    size = sum(len(encode(name)) + 1 + len(text) for name, text in entries.items())
    if len(entries) <= 1 or (len(entries) <= most and size <= 48 * 1024) or len(prefix) == 16:
        inside = b",".join(encode(name) + b":" + entries[name] for name in sorted(entries))
        return {prefix: b'{"e":{' + inside + b"}}"}
    found: dict[str, bytes] = {}
    children: dict[str, str] = {}
    for digit in "0123456789abcdef":
        there = {
            name: text
            for name, text in entries.items()
            if sha256(name.encode()).hexdigest()[len(prefix)] == digit
        }
        if there:
            found |= nodes_of(there, most=most, prefix=prefix + digit)
            children[digit] = sha256(found[prefix + digit]).hexdigest()
    return {**found, prefix: encode({"n": children})}


def sealed_as(name: str) -> tuple[int, str]:
    """Return type and context of the objects of an entry."""
    kind, _, rest = name.partition("/")
    return {"m": (MEMORY, rest), "t": (SEGMENT, rest)}.get(kind, (CARD, rest))


@dataclass
class Replica:
    """The data of one device: entries as JSON values by dot, the counters of others that it has seen, and
    its last commits."""

    who: Party
    entries: dict[str, dict[str, Json]] = field(default_factory=dict)
    ctx: dict[str, int] = field(default_factory=dict)
    n: int = 0
    c: int = 0
    prev: list[str] = field(default_factory=list)
    ms: int = NOW - 20 * DAY_MS


class Forge:
    """One sealed vault with dishonest members and its provider; everything follows from the seed."""

    kind = "sealed"
    tag = VAULT

    def __init__(self, seed: int | str) -> None:
        self.random = Random(seed)
        self.blocks: dict[CID, bytes] = {}
        self.names: dict[str, bytes] = {}
        self.roots: list[tuple[Party, str]] = []
        self.objects: dict[str, bytes] = {}
        self.replicas = {one.id: Replica(one) for one in (*DEVICES, READER, HEIR, STRANGER, ADMIN)}
        self.pairs: dict[tuple[str, int], str] = {}
        self.done: list[str] = []
        self.lies = LIES
        self._honest()

    # -- the ring ------------------------------------------------------------------------------------------------

    def _honest(self) -> None:
        """Make the statements of an honest vault: roots, an admin, later words, devices of both, an epoch
        for all."""
        pick = self.random.choice
        self.base = [
            says_genesis(ROOT, RECOVERY, vault=self.tag),
            self.member(ROOT, ROOT, "admin"),
            self.member(RECOVERY, RECOVERY, "admin"),
            self.member(ROOT, ADMIN, "admin", person=pick([OWNER, "12" * 8])),
            self.member(ROOT, LATER, "admin"),
        ]
        enrolments = [
            self.member(ROOT, DEVICES[0]),
            self.member(pick([ROOT, ADMIN]), DEVICES[1], person=pick([OWNER, "12" * 8])),
            self.member(LATER, DEVICES[2]),
            self.member(pick([ROOT, ADMIN, LATER]), READER, "reader"),
        ]
        self.base += enrolments
        if self.random.random() < 0.3:
            self.base.append(says_heir(DEVICES[0], HEIR, enrolments[0].hash, vault=self.tag))
        self.people = [ADMIN, LATER, *DEVICES[:3], READER]
        self.base.append(self._epoch(ROOT, KEYS[0], self.people, []))
        self.more: list[Statement] = []
        for _ in range(self.random.randrange(5)):
            self.more += self._something()

    def member(self, by: Party, who: Party, role: Role = "writer", **more: Any) -> Statement:
        """An enrolment in this vault."""
        return says_member(by, who, role, vault=self.tag, **more)

    def _epoch(
        self, by: Party, key: EpochKey, given: Iterable[Party], gone: Iterable[Party], **more: Any
    ) -> Statement:
        served = [ROOT, RECOVERY, *given]
        slots = [fixed_box(slot_text(key, VAULT), one.box) for one in served]
        return says_epoch(by, key, given, gone, slots=slots, **more)

    def _something(self) -> list[Statement]:
        """Make a further statement of somebody, allowed or not."""
        pick, random = self.random.choice, self.random
        by = pick([ROOT, ROOT, RECOVERY, ADMIN, LATER, DEVICES[0], STRANGER])
        who = pick([*self.people, self.people[2], LATER, HEIR, RECOVERY])
        stays = [one for one in self.people if one is not who]
        kind = random.randrange(6)
        if kind <= 1:
            keep = [st.hash for st in self.base if st.body.by == who.key and random.random() < 0.6]
            heirs = [HEIR] if random.random() < 0.3 else []
            person, rank = pick([OWNER, OWNER, "12" * 8]), random.randrange(2)
            said = says_revoked(
                by,
                who,
                keep=keep,
                n=random.randrange(3),
                heirs=heirs,
                person=person,
                rank=rank,
                zeros=True,
                vault=self.tag,
            )
            others = [KEYS[0].id] if random.random() < 0.8 else []
            if random.random() < 0.7:
                key, gone = pick(KEYS[1:3]), [] if who is RECOVERY else [who]
                return [said, self._epoch(by, key, stays, gone, old=others)]
            return [said]
        if kind == 2:
            person = pick([OWNER, "12" * 8])
            role: Role = pick(["writer", "reader", "admin"])
            return [self.member(by, pick([*DEVICES, HEIR]), role, since=random.randrange(4), person=person)]
        if kind == 3:
            base = pick([st for st in self.base if st.body.t == "member"])
            signer = next(one for one in EVERYBODY if one.key == base.body.sign)  # type: ignore[union-attr]
            heir = pick([one for one in (HEIR, DEVICES[3]) if one.key != signer.key])
            return [says_heir(signer, heir, base.hash, vault=self.tag)]
        if kind == 4:
            return [
                self._epoch(
                    by, pick(KEYS[:3]), stays, [], while_={pick([ADMIN, LATER]): [who]}, old=[KEYS[0].id]
                )
            ]
        return [self._epoch(by, pick(KEYS[:3]), self.people, [], old=[one.id for one in KEYS[:2]])]

    def any_epoch(self) -> Json:
        """An epoch for everybody, signed for this vault."""
        said = self._epoch(ROOT, KEYS[0], self.people, [])
        return resigned(said, ROOT, lambda body: None, self.tag)

    def ring_file(self, statements: Iterable[Statement], key: EpochKey, more: Iterable[Json] = ()) -> bytes:
        """Return a keyring.json of exactly these statements, not reduced, sealed under this key."""
        shown, hidden = self._ring_parts(statements, more)
        others = sorted((one.epoch, one.id, b64(one.key)) for one in self._given(key))
        body = encode({"eks": [[epoch, text] for epoch, _, text in others], "st": hidden})
        return encode({"body": self.ring_body(body, key), "open": shown, "v": 1, "vault": self.tag.hex()})

    def ring_body(self, body: bytes, key: EpochKey) -> Any:
        """Return the sealed body of a ring as stored in keyring.json."""
        return b64(Sealer(key, self.tag).seal(RING_BODY, b"", body))

    def opened_body(self, body: Any, key: EpochKey) -> Json:
        """Return the plaintext of `ring_body`."""
        found: Json = json.loads(Sealer(key, self.tag).open(RING_BODY, b"", _unb64(body)))
        return found

    def _ring_parts(
        self, statements: Iterable[Statement], more: Iterable[Json]
    ) -> tuple[list[Json], list[Json]]:
        """Return the envelopes of the open part and of the body, in order."""
        found = {st.hash: st for st in statements}
        envelopes = {digest: _json_of(st) for digest, st in found.items()}
        public = {digest for digest, st in found.items() if st.public}
        for one in more:
            digest = sha256(_unb64(one["k"])).hexdigest()
            envelopes[digest] = one
            body = json.loads(_unb64(one["k"]))
            if body["t"] in ("genesis", "epoch") or body.get("role") == "admin":
                public.add(digest)
        shown = [envelopes[digest] for digest in sorted(envelopes) if digest in public]
        hidden = [envelopes[digest] for digest in sorted(envelopes) if digest not in public]
        return shown, hidden

    def _given(self, key: EpochKey) -> list[EpochKey]:
        return [one for one in KEYS if one != key and self.random.random() < 0.8]

    # -- states --------------------------------------------------------------------------------------------------

    def value(self, at: Replica, name: str, n: int, text: bytes | None, key: EpochKey, **more: Any) -> Json:
        """Return a signed value for the dot (device, n) and store its object; text None: a request to
        forget."""
        at.ms += self.random.randrange(DAY_MS)
        if text is None:
            made = Value(b=(), body=None, h=f"{at.ms:012x}0000", kind="forgotten")
        else:
            ek, stored = self.stored(name, text, key)
            digest = sha256(stored).hexdigest()
            self.objects[digest] = stored
            made = Value(
                b=(),
                body=sha256(text).hexdigest(),
                h=f"{at.ms:012x}0000",
                kind="live",
                loc=Loc(ek, digest, len(stored)),
                **more,
            )
        signed = sign_value(at.who.signer, name, dot(at.who.id, n), made, self.tag)
        found: Json = json.loads(encode(signed))
        return found

    def stored(self, name: str, text: bytes, key: EpochKey) -> tuple[str, bytes]:
        """Return the key of the object of a text, and its bytes."""
        kind, ctx = sealed_as(name)
        return key.id, Sealer(key, self.tag).seal(kind, ctx, text)

    def text(self, name: str) -> bytes | None:
        """Return a text for an entry of this name."""
        pick = self.random.choice
        if name.startswith("c/"):
            if name == "c/gone" and self.random.random() < 0.5:
                return None
            ids = [["id", f"{self.random.randrange(5):032x}"]] if self.random.random() < 0.5 else []
            return encode({"ids": ids, "into": pick([None, "api"]), "kind": "user", "title": "T", "v": 1})
        if name.startswith("t/"):
            ts = f"2026-01-0{self.random.randrange(1, 4)}T10:00:00Z"
            lines = [f'{{"ts":"{ts}","type":"said","n":{self.random.randrange(3)}}}', "not an event"]
            return ("\n".join(lines[: self.random.randrange(1, 3)]) + "\n").encode()
        if self.random.random() < 0.1:
            return None
        return f"{pick(['one', 'two', 'three'])}\n\nline {self.random.randrange(4)}\n".encode()

    def write(self, at: Replica) -> None:
        """Write one honest value, or delete an entry."""
        pick = self.random.choice
        segment = f"t/2026-01-0{self.random.randrange(1, 3)}/{at.who.id}/0"
        name = pick([*MEMORIES, *MEMORIES, *CARDS, segment, segment.replace("t/", "t/gone/")])
        held = at.entries.get(name, {})
        if held and self.random.random() < 0.1:
            del at.entries[name]
            return
        text = self.text(name)
        if text is None and name.startswith("t/"):
            return
        at.n += 1
        under = dot(at.who.id, at.n)
        made = self.value(at, name, at.n, text, pick(KEYS[:2]))
        stay = [other for other in held if not name.startswith("t/") and self.random.random() < 0.3]
        own = [other for other in stay if other.startswith(at.who.id)]
        kept = {other: held[other] for other in stay if other not in own[3:]}
        at.entries[name] = {**kept, under: made}
        at.ctx[at.who.id] = at.n

    def meet(self, at: Replica, other: Replica) -> None:
        """Join the other one's data into `at`."""
        for name in sorted({*at.entries, *other.entries}):
            mine, theirs = at.entries.get(name, {}), other.entries.get(name, {})
            both = {
                under: value
                for under, value in {**theirs, **mine}.items()
                if (under in mine and under in theirs)
                or _n(under) > (at.ctx if under in theirs else other.ctx).get(under[:16], 0)
            }
            at.entries[name] = both
            if not both:
                del at.entries[name]
        for dev, n in other.ctx.items():
            at.ctx[dev] = max(n, at.ctx.get(dev, 0))
        at.prev = sorted({*at.prev, *other.prev})
        at.ms = max(at.ms, other.ms)

    def pair(self, dev: Party, n: int) -> list[Any]:
        """Return the signed pair of a device at n."""
        seen = sign_seen(
            dev.signer,
            self.tag,
            dev.id,
            n,
            self.pairs.setdefault((dev.id, n), self.random.randbytes(8).hex()),
        )
        return [seen.n, seen.r, seen.s]

    # -- roots ---------------------------------------------------------------------------------------------------

    def publish(self, at: Replica, *, lies: bool) -> None:
        """Publish one root of a device, honest or with a lie."""
        random, pick = self.random, self.random.choice
        key = pick([KEYS[0], KEYS[0], KEYS[1], *KEYS])
        said = [st for st in self.more if random.random() < 0.5]
        name = pick(sorted(self.lies)) if lies else ""
        if lies:
            self.done.append(f"{at.who.name}: {name}")
        self.publish_with(at, key, said, self.lies.get(name))

    def publish_with(
        self,
        at: Replica,
        key: EpochKey,
        said: list[Statement],
        lie: Callable[[Forge, Replica, _Draft], None] | None,
    ) -> None:
        """Publish a root of a device under this key, whose ring also has this statement."""
        at.c += 1
        state = copy.deepcopy(at.entries)
        ctx = {one.id: self.pair(one, at.ctx[one.id]) for one in EVERYBODY if at.ctx.get(one.id)}
        commit: Json = {
            "c": at.c,
            "ctx": ctx,
            "dev": at.who.id,
            "ek": self.commit_key(key),
            "h": f"{at.ms:012x}0000",
            "prev": at.prev[:],
            "v": 1,
            "vault": self.tag.hex(),
        }
        draft = _Draft(state, commit, key, said, [], 64, {})
        if lie is not None:
            lie(self, at, draft)
        keyring = draft.files.get("keyring.json") or self.ring_file(
            [*self.base, *draft.said], draft.key, draft.raw
        )
        nodes = nodes_of(
            {name: encode(entry) for name, entry in draft.state.items()}, most=draft.most_in_leaf
        )
        final = {"ring": sha256(keyring).hexdigest(), "state": sha256(nodes[""]).hexdigest(), **draft.commit}
        text = encode(final)
        signature = at.who.signer.sign(b"ipfsmem/v1/commit\0" + text)
        files = {
            "keyring.json": keyring,
            **self.layout(draft, signature, text, nodes),
            **{f"o/{sha[:40]}": self.objects[sha] for sha in _objects(draft.state) if sha in self.objects},
            **draft.files,
        }
        at.prev = [sha256(text).hexdigest()]
        placed = self.placed({path: data for path, data in files.items() if data}, draft)
        for change in draft.after:
            change(self, placed)
        self._stand(at.who, placed)

    def commit_key(self, key: EpochKey) -> str:
        """Return what a commit under this key contains."""
        return key.id

    def layout(
        self, draft: _Draft, signature: bytes, text: bytes, nodes: Mapping[str, bytes]
    ) -> dict[str, bytes]:
        """Return the commit and the state of a root by their paths in a sealed root."""
        sealer = Sealer(draft.key, self.tag)
        return {
            "head.ipm": sealer.seal(COMMIT, b"", signature + text),
            **{
                f"s/{'/'.join(prefix) or 'top'}.ipm": sealer.seal(STATE_NODE, prefix, node)
                for prefix, node in nodes.items()
            },
        }

    def placed(self, files: dict[str, bytes], draft: _Draft) -> dict[str, bytes]:
        """Return the files of a root by the paths of this kind of vault."""
        return files

    def _stand(self, who: Party, files: Mapping[str, bytes]) -> None:
        made = build_tree(dict(files))
        self.blocks.update(made.blocks)
        self.roots.append((who, str(made.cid)))

    # -- the whole -----------------------------------------------------------------------------------------------

    def case(self, name: str) -> tuple[Json, str]:
        """Return a case of whole vaults without `expect`, and its blocks as CAR."""
        random, pick = self.random, self.random.choice
        makers = [self.replicas[one.id] for one in DEVICES[:3]]
        if random.random() < 0.3:
            makers.append(self.replicas[pick([READER, HEIR, STRANGER, ADMIN, DEVICES[3]]).id])
        for _ in range(random.randrange(2, 7)):
            at = pick(makers)
            if len(makers) > 1 and random.random() < 0.5:
                self.meet(at, pick([one for one in makers if one is not at]))
            for _ in range(random.randrange(4)):
                self.write(at)
            self.publish(at, lies=random.random() < 0.35)
        anchors = {ROOT_KEYS: "the root", RECOVERY_KEYS: "the recovery words", LATER_KEYS: "later words"}
        opened_by = pick(["the root"] * 6 + list(anchors.values()))
        pins: dict[str, list[str]] = {}
        listed = self.listed()
        if random.random() < 0.3:
            random.shuffle(listed)
        if random.random() < 0.8:
            pins[pin_name(ROOT_KEYS.head_public)] = [root for root in listed if random.random() < 0.9]
        if random.random() < 0.6 or opened_by != "the root":
            self._anchor()
        if random.random() < 0.6:
            for who, root in self.roots:
                if random.random() < 0.8:
                    record = make_record(who.seed, f"/ipfs/{root}", 1 + len(self.names), _until())
                    self.names[ipns_name(who.signer.public)] = record
        without, instead = self._damage()
        tops = [root for _, root in self.roots]
        car = car_bytes([next(iter(self.blocks))], self.blocks.items())
        return {
            "car": name,
            "instead": instead,
            "kind": self.kind,
            "name": name,
            "names": {one: b64(record) for one, record in sorted(self.names.items())},
            "now": NOW,
            "opened_by": OPENED_BY[opened_by],
            "pins": pins,
            "why": f"{len(tops)} roots; {'; '.join(self.done) or 'no lie'}",
            "without": without,
        }, b64(car)

    def listed(self) -> list[str]:
        """Return the roots in the vault's list, newest first."""
        return [root for _, root in reversed(self.roots)]

    def _anchor(self) -> None:
        """Return the record of the vault's anchor and those that it leads to."""
        said = [st for st in self.more if self.random.random() < 0.5]
        made = build_tree({"keyring.json": self.ring_file([*self.base, *said], KEYS[0])})
        self.blocks.update(made.blocks)
        self.names[ipns_name(ROOT_KEYS.head_public)] = make_record(
            ROOT_KEYS.head_seed, f"/ipfs/{made.cid}", 1, _until()
        )
        for one in (RECOVERY_KEYS, LATER_KEYS):
            leads = f"/ipns/{ipns_name(ROOT_KEYS.head_public)}"
            self.names[ipns_name(one.head_public)] = make_record(one.head_seed, leads, 1, _until())

    def _damage(self) -> tuple[list[str], dict[str, str]]:
        """Remove and replace some blocks."""
        random = self.random
        if random.random() < 0.6:
            return [], {}
        all_ = sorted(map(str, self.blocks))
        lost = random.sample(all_, min(len(all_), random.randrange(1, 4)))
        flipped = lost.pop() if random.random() < 0.3 else None
        if flipped is None:
            return sorted(lost), {}
        data = next(data for cid, data in self.blocks.items() if str(cid) == flipped)
        return sorted(lost), {flipped: b64(data[:-1] + bytes([data[-1] ^ 1]))}


@dataclass
class _Draft:
    """A root before it is signed, which a lie changes. `raw`: further envelopes; `files` replace regular
    ones; `after`: changes to the files by their final paths, after signing."""

    state: dict[str, dict[str, Json]]
    commit: Json
    key: EpochKey
    said: list[Statement]
    raw: list[Json]
    most_in_leaf: int
    files: dict[str, bytes]
    after: list[Callable[[Forge, dict[str, bytes]], object]] = field(default_factory=list)


def _n(under: str) -> int:
    return int(under[17:])


def _unb64(text: str) -> bytes:
    from ipfsmem.canonical import unb64

    return unb64(text, "it")


def _until() -> int:
    return (NOW + 365 * DAY_MS) * 1_000_000


def _objects(state: Mapping[str, Mapping[str, Json]]) -> list[str]:
    found = {
        value[one][1]
        for entry in state.values()
        for value in entry.values()
        for one in ("loc", "base")
        if isinstance(value.get(one), list) and len(value[one]) == 3
    }
    return sorted(one for one in found if isinstance(one, str))


def _some_value(forge: Forge, draft: _Draft) -> tuple[str, str, Json] | None:
    there = [
        (name, under, value)
        for name, entry in sorted(draft.state.items())
        for under, value in sorted(entry.items())
    ]
    return forge.random.choice(there) if there else None


def _changed_value(change: Callable[[Forge, Json], object]) -> Callable[[Forge, Replica, _Draft], None]:
    """Make a lie that changes one value of a state under its old signature."""

    def lie(forge: Forge, at: Replica, draft: _Draft) -> None:
        found = _some_value(forge, draft)
        if found is not None:
            change(forge, found[2])

    return lie


def _signed_value(name: str, **fields: Any) -> Callable[[Forge, Replica, _Draft], None]:
    """Make a lie with a value of the liar's own with these fields, validly signed."""

    def lie(forge: Forge, at: Replica, draft: _Draft) -> None:
        n = at.n + 1
        value = forge.value(at, name, n, b"a text of a liar\n", KEYS[0])
        value = {part: one for part, one in (value | fields).items() if one != "left out"}
        said: Json = {one: value[one] for one in ("b", "body", "h", "kind", "of") if one in value}
        message: Json = {**said, "dot": dot(at.who.id, n), "e": name, "vault": forge.tag.hex()}
        value["s"] = b64(at.who.signer.sign(b"ipfsmem/v1/value\0" + encode(message)))
        draft.state.setdefault(name, {})[dot(at.who.id, n)] = value
        draft.commit["ctx"][at.who.id] = forge.pair(at.who, n)
        at.n = n

    return lie


def _commit(**fields: Any) -> Callable[[Forge, Replica, _Draft], None]:
    return lambda forge, at, draft: draft.commit.update(fields)


def _pair(change: Callable[[Forge, list[Any]], object]) -> Callable[[Forge, Replica, _Draft], None]:
    def lie(forge: Forge, at: Replica, draft: _Draft) -> None:
        if draft.commit["ctx"]:
            change(forge, draft.commit["ctx"][forge.random.choice(sorted(draft.commit["ctx"]))])

    return lie


def _statement(
    kind: str, change: Callable[[Forge, Json], object]
) -> Callable[[Forge, Replica, _Draft], None]:
    """Make a lie with a changed, validly signed statement of this kind in the liar's ring."""

    def lie(forge: Forge, at: Replica, draft: _Draft) -> None:
        there = [st for st in (*forge.base, *forge.more) if st.body.t == kind]
        if kind == "revoke":
            there.append(says_revoked(ROOT, DEVICES[3], n={DEVICES[3].id: 0}, zeros=True, vault=forge.tag))
        st = forge.random.choice(there)
        by = next(one for one in EVERYBODY if one.key == st.body.by)
        draft.raw.append(resigned(st, by, lambda body: change(forge, body), forge.tag))

    return lie


def _stranger(uncovered: bool, signed: bool) -> Callable[[Forge, Replica, _Draft], None]:
    """Make a lie with values of an id that no ring knows."""

    def lie(forge: Forge, at: Replica, draft: _Draft) -> None:
        other = forge.replicas[STRANGER.id]
        n = other.n + 1
        value = forge.value(other, "m/tone", n + 2 * uncovered, b"by a stranger\n", KEYS[0])
        draft.state.setdefault("m/tone", {})[dot(STRANGER.id, n + 2 * uncovered)] = value
        by = STRANGER if signed else at.who
        r = "ab" * 8
        draft.commit["ctx"][STRANGER.id] = json.loads(
            encode(sign_seen(by.signer, forge.tag, STRANGER.id, n, r))
        )

    return lie


def _two_entries(forge: Forge, at: Replica, draft: _Draft) -> None:
    found = _some_value(forge, draft)
    if found is not None:
        draft.state.setdefault("m/second-place", {})[found[1]] = copy.deepcopy(found[2])


def _five_dots(forge: Forge, at: Replica, draft: _Draft) -> None:
    for n in range(at.n + 1, at.n + 6):
        value = forge.value(at, "m/five", n, f"text {n}\n".encode(), KEYS[0])
        draft.state.setdefault("m/five", {})[dot(at.who.id, n)] = value
    at.n += 5
    draft.commit["ctx"][at.who.id] = forge.pair(at.who, at.n)


def _uncovered(forge: Forge, at: Replica, draft: _Draft) -> None:
    found = _some_value(forge, draft)
    if found is not None:
        draft.commit["ctx"].pop(found[1][:16], None)


def _went_back(forge: Forge, at: Replica, draft: _Draft) -> None:
    at.c = max(1, at.c - forge.random.randrange(1, 3))
    draft.commit["c"] = at.c
    draft.commit["prev"] = []
    at.ms += forge.random.randrange(DAY_MS)
    draft.commit["h"] = f"{at.ms:012x}0000"


def _second_copy(forge: Forge, at: Replica, draft: _Draft) -> None:
    """Write another text, or another random number, under a counter that others have seen."""
    if at.n == 0:
        return
    if forge.random.random() < 0.5:
        draft.commit["ctx"][at.who.id] = json.loads(
            encode(sign_seen(at.who.signer, forge.tag, at.who.id, at.n, forge.random.randbytes(8).hex()))
        )
    else:
        value = forge.value(at, "m/tone", at.n, b"by another copy\n", KEYS[0])
        draft.state["m/tone"] = {dot(at.who.id, at.n): value}


def _body_under_other_key(forge: Forge, at: Replica, draft: _Draft) -> None:
    name = forge.random.choice(MEMORIES)
    at.n += 1
    value = forge.value(at, name, at.n, b"under another key\n", forge.random.choice(KEYS[1:]))
    draft.state.setdefault(name, {})[dot(at.who.id, at.n)] = value
    draft.commit["ctx"][at.who.id] = forge.pair(at.who, at.n)
    at.ctx[at.who.id] = at.n


def _segment(forge: Forge, at: Replica, draft: _Draft) -> None:
    lines = forge.random.sample(RAW_LINES, 4)
    name = f"t/2026-01-01/{at.who.id}/{forge.random.randrange(3)}"
    at.n += 1
    text = ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
    draft.state[name] = {dot(at.who.id, at.n): forge.value(at, name, at.n, text, KEYS[0])}
    draft.commit["ctx"][at.who.id] = forge.pair(at.who, at.n)


RAW_LINES = [
    '\ufeff{"ts":"2026-01-01T10:00:00Z","type":"bom"}',
    '{"ts":"2026-01-01T10:00:00Z","ts":"2026-01-02T10:00:00Z","type":"twice"}',
    '{"ts":"2026-01-01T10:00:00Z","type":"own form","id":"0000000000000001-01"}',
    '{"ts":"2026-01-01T10:00:00Z","type":"of another","id":"0000000000000001-1"}',
    '{"ts":"2026-01-01 10:00:00.1234567891Z","type":"fine"}',
    '{"ts":"2026-01-01","type":"t","n":1e400}',
    '{"ts":"2026-01-01","type":"t","n":-0}',
    '{"ts":"2026-01-01","type":"t","n":1.0}',
    '{"ts":"2026-01-01","type":"","id":"x"}',
    '{"ts":"2026-01-01","type":"t","x":"\\ud800"}',
    "  ",
    "{}",
    "null",
    '{"type":"no ts","id":"y"}',
    '{"ts":"2026-01-01T10:00:00Z","type":5}',
]


def _files(**files: bytes) -> Callable[[Forge, Replica, _Draft], None]:
    def lie(forge: Forge, at: Replica, draft: _Draft) -> None:
        draft.files.update({name.replace("_", "."): data for name, data in files.items()})

    return lie


def _keyring(change: Callable[[Forge, Json], object]) -> Callable[[Forge, Replica, _Draft], None]:
    """Make a lie with a keyring.json of another form, which the commit names."""

    def lie(forge: Forge, at: Replica, draft: _Draft) -> None:
        file = json.loads(forge.ring_file([*forge.base, *draft.said], draft.key))
        change(forge, file)
        draft.files["keyring.json"] = encode(file)

    return lie


def _ring_body(change: Callable[[Forge, Json], object]) -> Callable[[Forge, Replica, _Draft], None]:
    """Make a lie with a body of the ring of another form, validly sealed."""

    def lie(forge: Forge, at: Replica, draft: _Draft) -> None:
        file = json.loads(forge.ring_file([*forge.base, *draft.said], draft.key))
        body = forge.opened_body(file["body"], draft.key)
        change(forge, body)
        file["body"] = forge.ring_body(encode(body), draft.key)
        draft.files["keyring.json"] = encode(file)

    return lie


def _pick(*values: Any) -> Callable[[Forge], Any]:
    return lambda forge: forge.random.choice(values)


def _json_of(st: Statement) -> Json:
    """Return the envelope of a statement as stored in a ring."""
    return {"k": envelope(st).k, "s": envelope(st).s}


def _set(name: str, *values: Any) -> Callable[[Forge, Json], object]:
    return lambda forge, body: body.__setitem__(name, forge.random.choice(values))


LIES: dict[str, Callable[[Forge, Replica, _Draft], None]] = {
    "an entry without values": lambda forge, at, draft: draft.state.__setitem__("m/empty", {}),
    "a value with another clock than was signed": _changed_value(_set("h", "f" * 16, "0" * 16)),
    "a value with another body than was signed": _changed_value(_set("body", "0" * 64)),
    "a location of another key": _changed_value(
        lambda forge, value: value.get("loc") and value["loc"].__setitem__(0, _pick("", "0" * 16)(forge))
    ),
    "a location of another size": _changed_value(
        lambda forge, value: value.get("loc") and value["loc"].__setitem__(2, _pick(0, 1, 1 << 20, -1)(forge))
    ),
    "a location of nothing": _changed_value(
        lambda forge, value: value.get("loc") and value["loc"].__setitem__(1, "0" * 64)
    ),
    "a value with an unknown field": _changed_value(_set("x", 1)),
    "a value without a location": _changed_value(lambda forge, value: value.pop("loc", None)),
    "a value without a signature": _changed_value(lambda forge, value: value.pop("s", None)),
    "a value with a base beside no list": _changed_value(
        lambda forge, value: value.__setitem__("base", ["", "0" * 64, 1])
    ),
    "a text whose first author is its own device": lambda forge, at, draft: _signed_value(
        "m/lie", of=at.who.id
    )(forge, at, draft),
    "a text whose first author is somebody": lambda forge, at, draft: _signed_value(
        "m/lie", of=forge.random.choice(["foreign", *(one.id for one in EVERYBODY if one is not at.who)])
    )(forge, at, draft),
    "a text with bases": _signed_value("m/tone", b=["0" * 32, "1" * 32], base=["0" * 16, "0" * 64, 5]),
    "a text with a base twice": _signed_value("m/tone", b=["0" * 32, "0" * 32]),
    "a text with five bases": _signed_value("m/tone", b=[f"{n:032x}" for n in range(5)]),
    "a card with bases": _signed_value("c/api", b=["0" * 32]),
    "an entry of no kind": _signed_value("x/lie"),
    "an entry with a reserved key": _signed_value("m/memory"),
    "an entry in a scope of a reserved name": _signed_value("m/timeline/tone"),
    "a segment of another device": _signed_value("t/2026-01-01/0000000000000000/0"),
    "a segment of a day that never was": lambda forge, at, draft: _signed_value(
        f"t/2026-02-30/{at.who.id}/0"
    )(forge, at, draft),
    "a segment with a number of another form": lambda forge, at, draft: _signed_value(
        f"t/2026-01-01/{at.who.id}/00"
    )(forge, at, draft),
    "a card that is none": _signed_value("c/api"),
    "a forgotten text with a body": _signed_value("m/lie", kind="forgotten"),
    "a live text without a body": _signed_value("m/lie", body=None),
    "a forgotten text with a location": _signed_value("m/lie", kind="forgotten", body=None),
    "a forgotten text": _signed_value("m/tone", kind="forgotten", body=None, loc="left out"),
    "a value of an unknown kind": _signed_value("m/lie", kind="dead"),
    "a dot in two entries": _two_entries,
    "five dots of one device": _five_dots,
    "a dot that no counter covers": _uncovered,
    "values of a stranger": _stranger(False, True),
    "values of a stranger that no counter covers": _stranger(True, True),
    "a counter of a stranger that it did not sign": _stranger(False, False),
    "a counter of 0": _pair(lambda forge, pair: pair.__setitem__(0, 0)),
    "a counter that its device did not sign": _pair(lambda forge, pair: pair.__setitem__(0, pair[0] + 1)),
    "a random number of another length": _pair(lambda forge, pair: pair.__setitem__(1, "ab")),
    "a lower number and a later clock": _went_back,
    "two copies of one device": _second_copy,
    "a commit of number 0": _commit(c=0),
    "a commit with the greatest number": _commit(c=2**53 - 1),
    "a commit far in the future": _commit(h="ffffffffffff0000"),
    "a commit without a past": _commit(prev=[]),
    "a commit with a past that is not sorted": _commit(prev=["1" * 64, "0" * 64]),
    "a commit of a device that nobody knows": _commit(dev="0" * 16),
    "a commit of another vault": _commit(vault="0" * 32),
    "a commit of another version": _commit(v=2),
    "a commit with another key than it is under": _commit(ek="0" * 16),
    "a commit with no key": _commit(ek=""),
    "a commit with an unknown field": _commit(x=1),
    "a commit that names another ring": _commit(ring="0" * 64),
    "a commit that names another state": _commit(state="0" * 64),
    "a tree that no rule makes": lambda forge, at, draft: setattr(draft, "most_in_leaf", 1),
    "a text under another key": _body_under_other_key,
    "a segment with lines that are no events": _segment,
    "a root without a commit": _files(head_ipm=b""),
    "a root whose commit does not open": _files(head_ipm=b"not a commit"),
    "a root whose ring is none": _files(keyring_json=b"{}"),
    "a root with something beside it": _files(readme_txt=b"hello"),
    "a ring under a key that nobody was given": lambda forge, at, draft: setattr(draft, "key", KEYS[3]),
    "a ring of another version": _keyring(_set("v", 2)),
    "a ring of another vault": _keyring(_set("vault", "0" * 32)),
    "a ring out of order": _keyring(lambda forge, file: file["open"].reverse()),
    "a ring with a statement twice": _keyring(lambda forge, file: file["open"].append(file["open"][-1])),
    "a ring without a genesis": _keyring(
        lambda forge, file: file.__setitem__(
            "open", [one for one in file["open"] if b'"genesis"' not in _unb64(one["k"])]
        )
    ),
    "a ring with a wrong signature": _keyring(
        lambda forge, file: file["open"][0].__setitem__("s", b64(bytes(64)))
    ),
    "a body with keys out of order": _ring_body(lambda forge, body: body["eks"].reverse()),
    "a body with a key twice": _ring_body(lambda forge, body: body.__setitem__("eks", body["eks"] * 2)),
    "a body with an epoch of 0": _ring_body(lambda forge, body: body["eks"].insert(0, [0, b64(bytes(32))])),
    "a body with a key of another length": _ring_body(
        lambda forge, body: body["eks"].insert(0, [1, b64(bytes(31))])
    ),
    "a body with an unknown field": _ring_body(lambda forge, body: body.__setitem__("x", 1)),
    "a body with a statement of the open part": _ring_body(
        lambda forge, body: body["st"].append(_json_of(says_genesis(ROOT, vault=forge.tag)))
    ),
    "a genesis with other roots": _statement("genesis", _set("roots", [], [ROOT.key], [ROOT.key, ROOT.key])),
    "a member of another kind": _statement("member", _set("kind", "phone", "", None)),
    "a member of another role": _statement("member", _set("role", "owner", "admin", None)),
    "a member with a strange label": _statement("member", _set("label", "", "a\u202eb", "x" * 129, "é" * 64)),
    "a member with another id": _statement("member", _set("id", "0" * 16)),
    "a member with a null that is none": _statement("member", _set("was", "0" * 16)),
    "a member under nothing": _statement("member", _set("under", None, "0" * 64)),
    "a member whose box key is of small order": _statement("member", _set("box", "0" * 64)),
    "a member of a person of another form": _statement("member", _set("person", "", "0" * 15, None)),
    "a member since a time of another form": _statement("member", _set("since", "", "f" * 16, "F" * 16)),
    "a member that did not agree": _statement("member", _set("own", b64(bytes(64)), "")),
    "a member with an unknown field": _statement("member", _set("x", 1)),
    "an epoch of another number": _statement("epoch", _set("epoch", 0, 2**32, 65_600, "1")),
    "an epoch for nobody": _statement("epoch", _set("for", [], ["0" * 16])),
    "an epoch against roots": _statement("epoch", _set("not", [ROOT.id], [READER.id], ["z"])),
    "an epoch with a strange while": _statement(
        "epoch", _set("while", {}, {ADMIN.id: []}, {ADMIN.id: [READER.id]}, {"z": [READER.id]}, None)
    ),
    "an epoch with other old keys": _statement(
        "epoch", _set("old", [], ["0" * 16], sorted(one.id for one in KEYS), ["1" * 16, "0" * 16])
    ),
    "an epoch in the name of others": _statement("epoch", _set("of", [ADMIN.id], [ROOT.id], [LATER.id])),
    "an epoch with slots of another length": _statement("epoch", _set("slots", [], [b64(bytes(103))])),
    "a revoke with strange counters": _statement(
        "revoke", _set("n", {}, {READER.id: 0}, {READER.id: 2**53 - 1}, {READER.id: -1}, {"z": 1}, None)
    ),
    "a revoke with a counter below 0": _statement("revoke", _set("n", {READER.id: -1})),
    "a revoke of another rank": _statement("revoke", _set("rank", 0, 1, 2, -1, None)),
    "a revoke of another key": _statement(
        "revoke", _set("sign", RECOVERY.key, DEVICES[0].key, LATER.key, "0" * 64)
    ),
    "a revoke with other heirs": _statement("revoke", _set("heirs", [], [HEIR.key], ["0" * 64])),
    "a revoke with another anchor": _statement("revoke", _set("anchor", None, HEIR.key, "")),
    "a revoke of another person": _statement("revoke", _set("person", OWNER, "12" * 8, "")),
    "a revoke that keeps what is none": _statement("revoke", _set("keep", [], ["0" * 64], ["z"])),
    "a statement of no kind": _statement("member", _set("t", "other")),
}


#: Paths of the files for devices in a root of mode `ipfs`.
INSIDE = "memory/.ipfsmem/"
#: Lies about keys that a plain vault does not have.
OF_KEYS = {
    "a body with a key twice",
    "a body with keys out of order",
    "a commit with no key",
    "a ring under a key that nobody was given",
    "a text under another key",
    *(name for name in LIES if name.startswith("an epoch ")),
}


class PlainForge(Forge):
    """One vault of mode `ipfs`, which anybody can read, with dishonest members and its provider."""

    kind = "plain"
    tag = PLAIN

    def __init__(self, seed: int | str) -> None:
        super().__init__(seed)
        self.lies = {name: lie for name, lie in LIES.items() if name not in OF_KEYS} | PLAIN_LIES
        self.beside = Forge(f"beside {seed}")

    def _ring_parts(
        self, statements: Iterable[Statement], more: Iterable[Json]
    ) -> tuple[list[Json], list[Json]]:
        return super()._ring_parts((st for st in statements if st.body.t != "epoch"), more)

    def _given(self, key: EpochKey) -> list[EpochKey]:
        return []

    def ring_body(self, body: bytes, key: EpochKey) -> Any:
        return json.loads(body)

    def opened_body(self, body: Any, key: EpochKey) -> Json:
        return dict(body)

    def stored(self, name: str, text: bytes, key: EpochKey) -> tuple[str, bytes]:
        return "", text

    def commit_key(self, key: EpochKey) -> str:
        return ""

    def layout(
        self, draft: _Draft, signature: bytes, text: bytes, nodes: Mapping[str, bytes]
    ) -> dict[str, bytes]:
        return {
            "head.ipm": encode({"k": b64(text), "s": b64(signature)}),
            **{f"s/{'/'.join(prefix) or 'top'}.ipm": node for prefix, node in nodes.items()},
        }

    def placed(self, files: dict[str, bytes], draft: _Draft) -> dict[str, bytes]:
        found = {"memory/MEMORY.md": b"# Agent Memory\n"}
        for path, data in files.items():
            own = path.startswith(("s/", "o/")) or path in ("keyring.json", "head.ipm")
            last = path.replace("head.ipm", "commit.json").replace(".ipm", ".json")
            found[INSIDE + last if own else path] = data
        for name, entry in draft.state.items():
            for value in entry.values() if name.startswith("m/") and len(entry) == 1 else ():
                for sha in _objects({name: {"": value}}):
                    data = found.pop(f"{INSIDE}o/{sha[:40]}", b"")
                    *scope, key = name.split("/")[1:]
                    if data:
                        found[f"{'scopes/' + scope[0] + '/' if scope else ''}memory/{key}.md"] = data
        return found

    def listed(self) -> list[str]:
        """Sometimes add a root of the wallet's sealed vault, as a provider could."""
        listed = super().listed()
        if self.random.random() < 0.15:
            listed.insert(self.random.randrange(len(listed) + 1), self.sealed_root())
        return listed

    def sealed_root(self) -> str:
        """Return a root of the sealed vault of the same wallet."""
        at = self.beside.replicas[DEVICES[0].id]
        self.beside.write(at)
        self.beside.publish_with(at, KEYS[0], [], None)
        self.blocks.update(self.beside.blocks)
        return self.beside.roots[-1][1]

    def sealed_ring(self) -> bytes:
        """Return the ring of the sealed vault of the same wallet."""
        return self.beside.ring_file(self.beside.base, KEYS[0])


Placed = dict[str, bytes]


def _of_plain(change: Callable[[PlainForge, _Draft], object]) -> Callable[[Forge, Replica, _Draft], None]:
    def lie(forge: Forge, at: Replica, draft: _Draft) -> None:
        assert isinstance(forge, PlainForge)
        change(forge, draft)

    return lie


def _after(change: Callable[[PlainForge, Placed], object]) -> Callable[[Forge, Replica, _Draft], None]:
    """Make a lie that changes the files of a plain root after signing."""

    def done(forge: Forge, files: Placed) -> None:
        assert isinstance(forge, PlainForge)
        change(forge, files)

    return lambda forge, at, draft: draft.after.append(done)


def _rewritten(path: str, change: Callable[[bytes], bytes]) -> Callable[[Forge, Replica, _Draft], None]:
    """Make a lie that replaces the bytes of a file of a plain root."""
    return _after(lambda forge, files: files.__setitem__(INSIDE + path, change(files[INSIDE + path])))


def _commit_file(**fields: Any) -> Callable[[Forge, Replica, _Draft], None]:
    """Make a lie with a commit.json with these fields."""
    return _rewritten("commit.json", lambda data: encode(json.loads(data) | fields))


def _as_sealed(forge: PlainForge, files: Placed) -> None:
    """Put all files for devices where a sealed root has them."""
    inside = {path: data for path, data in files.items() if path.startswith(INSIDE)}
    files.clear()
    for path, data in inside.items():
        files[path.removeprefix(INSIDE).replace("commit.json", "head.ipm")] = data
    for path in [one for one in files if one.startswith("s/")]:
        files[path.replace(".json", ".ipm")] = files.pop(path)


def _as_file(forge: PlainForge, files: Placed) -> None:
    """Put a file in place of a folder."""
    files.clear()
    files["memory"] = b"not a folder\n"


def _other_texts(forge: PlainForge, files: Placed) -> None:
    """Replace the text of every file that people read."""
    for path in files:
        if path.endswith(".md"):
            files[path] = b"by somebody without a key\n"


def _sorted_in(envelopes: list[Json], more: Json) -> None:
    envelopes.append(more)
    envelopes.sort(key=lambda one: sha256(_unb64(one["k"])).hexdigest())


#: Lies in a vault of mode `ipfs` only.
PLAIN_LIES: dict[str, Callable[[Forge, Replica, _Draft], None]] = {
    "a commit with a key": _commit(ek=KEYS[0].id),
    "a commit with a key of no form": _commit(ek="0"),
    "a commit file with another field": _commit_file(x=1),
    "a commit file with a short signature": _commit_file(s=b64(bytes(63))),
    "a commit file with a signature of nobody": _commit_file(s=b64(bytes(64))),
    "a commit file without text": _commit_file(k=""),
    "a commit file with a list": _commit_file(k=[]),
    "a commit file in another form": _rewritten("commit.json", lambda data: data + b"\n"),
    "a commit file that is sealed": _rewritten(
        "commit.json", lambda data: Sealer(KEYS[0], PLAIN).seal(COMMIT, b"", data)
    ),
    "a node in another form": _rewritten("s/top.json", lambda data: data + b"\n"),
    "a node that is sealed": _rewritten(
        "s/top.json", lambda data: Sealer(KEYS[0], PLAIN).seal(STATE_NODE, b"", data)
    ),
    "a location of a key that is": _changed_value(
        lambda forge, value: value.get("loc") and value["loc"].__setitem__(0, KEYS[0].id)
    ),
    "other texts in the files of bases": _after(_other_texts),
    "no files of bases": _after(
        lambda forge, files: [
            files.pop(path) for path in list(files) if path.endswith(".md") and path != "memory/MEMORY.md"
        ]
    ),
    "no objects": _after(
        lambda forge, files: [files.pop(path) for path in list(files) if path.startswith(f"{INSIDE}o/")]
    ),
    "a root in the form of a sealed one": _after(_as_sealed),
    "a root whose memory is a file": _after(_as_file),
    "a ring at the top too": _after(
        lambda forge, files: files.__setitem__("keyring.json", files[f"{INSIDE}keyring.json"])
    ),
    "a ring at the top alone": _after(
        lambda forge, files: files.__setitem__("keyring.json", files.pop(f"{INSIDE}keyring.json"))
    ),
    "the ring of the sealed vault at the top": _after(
        lambda forge, files: files.__setitem__("keyring.json", forge.sealed_ring())
    ),
    "the ring of the sealed vault": _of_plain(
        lambda forge, draft: draft.files.__setitem__("keyring.json", forge.sealed_ring())
    ),
    "a ring with an epoch": _of_plain(lambda forge, draft: draft.raw.append(forge.any_epoch())),
    "a body with an epoch": _ring_body(lambda forge, body: _sorted_in(body["st"], forge.any_epoch())),
    "a body with a key": _ring_body(lambda forge, body: body["eks"].append([1, b64(KEYS[0].key)])),
    "a body without keys": _ring_body(lambda forge, body: body.pop("eks")),
    "a body without statements": _ring_body(lambda forge, body: body["st"].clear()),
    "a body out of order": _ring_body(lambda forge, body: body["st"].reverse()),
    "a body that is sealed": _keyring(
        lambda forge, file: file.__setitem__(
            "body", b64(Sealer(KEYS[0], PLAIN).seal(RING_BODY, b"", encode(file["body"])))
        )
    ),
    "a body that is another thing": _keyring(
        lambda forge, file: file.__setitem__("body", forge.random.choice([[], None, {}, "", 1]))
    ),
    "a body in the open part": _keyring(
        lambda forge, file: _sorted_in(file["open"], file["body"]["st"].pop())
    ),
}


def forged(seeds: Iterable[int | str], kind: type[Forge] = Forge) -> Json:
    """Return a file of whole vaults without `expect`."""
    cases: list[Json] = []
    cars: dict[str, str] = {}
    for seed in seeds:
        case, car = kind(seed).case(f"{'' if kind is Forge else 'plain '}seed {seed}")
        cases.append(case)
        cars[case["name"]] = car
    return {"cars": cars, "cases": cases}


def seen_by_client(file: Json, folder: Path) -> list[Json]:
    """Return what the browser client reads from all cases of a file, in one process."""
    path = folder / "vaults.json"
    path.write_text(json.dumps(file), "utf-8")
    lines = run([need_program("node"), built_web() / "readings.js", path]).splitlines()
    return [json.loads(line) for line in lines]


def differences(file: Json, folder: Path) -> list[str]:
    """Return the cases in which the two implementations differ, and how."""
    found = []
    for case, theirs in zip(file["cases"], seen_by_client(file, folder), strict=True):
        ours = seen_by_python(case, file["cars"])
        if ours != theirs or "fault" in ours:
            parts = sorted(part for part in {*ours, *theirs} if ours.get(part) != theirs.get(part))
            told = "; ".join(f"{part}: {ours.get(part)} and {theirs.get(part)}" for part in parts)
            found.append(f"{case['name']} ({case['why']}): {told or ours}"[:2000])
    return found


def plain_differences(file: Json) -> list[str]:
    """Return the cases in which the plain reader and this program differ, and how."""
    found = []
    for case in file["cases"]:
        try:
            read = json.loads(json.dumps(plain.read_case(case, file["cars"])))
        except NotJudged:
            continue
        ours = json.loads(json.dumps(seen_by_python(case, file["cars"])))
        if ours != read:
            parts = sorted(part for part in {*ours, *read} if ours.get(part) != read.get(part))
            told = "; ".join(f"{part}: {ours.get(part)} and {read.get(part)}" for part in parts)
            found.append(f"{case['name']} ({case['why']}), plain reader: {told}"[:2000])
    return found


def seen_by_python(case: Json, cars: dict[str, str]) -> Json:
    """Return what this program reads from a case; for an unknown error its class. The places of a root's
    files are not compared."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return without_places(read_case(case, cars, Path(folder) / "reader"))
        except Exception as error:
            return {"fault": f"{type(error).__name__}: {error}"}


def without_places(seen: Json) -> Json:
    """Return what is read of a vault without the places of a root's files, which nobody signs."""
    return {name: value for name, value in seen.items() if name != "by_rule"}


#: Prefix of the names of cases in mode `ipfs`.
PLAIN_CASE = "plain: "


class Kept:
    """A small vault for the vectors: two devices of the wallet; the root of the second one is under test."""

    def __init__(self, name: str) -> None:
        """`name`: of the case; in mode `ipfs` it begins with `PLAIN_CASE`."""
        self.forge = forge = (PlainForge if name.startswith(PLAIN_CASE) else Forge)(name)
        forge.base = [
            says_genesis(ROOT, RECOVERY, vault=forge.tag),
            forge.member(ROOT, ROOT, "admin"),
            forge.member(RECOVERY, RECOVERY, "admin"),
            forge.member(ROOT, ADMIN, "admin"),
            forge.member(ROOT, DEVICES[0]),
            forge.member(ROOT, DEVICES[1]),
        ]
        forge.people = [ADMIN, DEVICES[0], DEVICES[1]]
        forge.base.append(forge._epoch(ROOT, KEYS[0], forge.people, []))
        forge.more = []
        self.first, self.second = (forge.replicas[one.id] for one in DEVICES[:2])
        self.write(self.first, "m/tone", b"one\n")
        self.publish(self.first)
        forge.meet(self.second, self.first)
        self.write(self.second, "m/lake", b"two\n")

    def write(self, at: Replica, name: str, text: bytes | None, key: EpochKey = KEYS[0]) -> None:
        """Write a text of a device that replaces all others."""
        at.n += 1
        at.entries[name] = {dot(at.who.id, at.n): self.forge.value(at, name, at.n, text, key)}
        at.ctx[at.who.id] = at.n

    def publish(
        self,
        at: Replica,
        lie: Callable[[Forge, Replica, _Draft], None] | None = None,
        key: EpochKey = KEYS[0],
    ) -> str:
        """Publish a root of a device with a ring of all the forge's statements."""
        self.forge.publish_with(at, key, self.forge.more[:], lie)
        return self.forge.roots[-1][1]

    def lie(self, name: str) -> Callable[[Forge, Replica, _Draft], None]:
        """Return the lie after which a case is named."""
        return self.forge.lies[name.removeprefix(PLAIN_CASE)]

    def case(
        self,
        name: str,
        why: str,
        *,
        named: bool = False,
        listed: Iterable[str] | None = None,
        without: Iterable[CID] = (),
        instead: Mapping[str, bytes] | None = None,
        opened_by: str = "the root",
    ) -> tuple[Json, str]:
        """Return the case: roots in a pin list, newest first, or each device's last root under its name."""
        forge = self.forge
        if named:
            for who, root in forge.roots:
                forge.names[ipns_name(who.signer.public)] = make_record(
                    who.seed, f"/ipfs/{root}", 1, _until()
                )
        pins = [root for _, root in reversed(forge.roots)] if listed is None else list(listed)
        return {
            "car": name,
            "instead": {cid: b64(data) for cid, data in (instead or {}).items()},
            "kind": forge.kind,
            "name": name,
            "names": {one: b64(record) for one, record in sorted(forge.names.items())},
            "now": NOW,
            "opened_by": OPENED_BY[opened_by],
            "pins": {pin_name(ROOT_KEYS.head_public): pins} if pins else {},
            "why": why,
            "without": sorted(map(str, without)),
        }, b64(car_bytes([next(iter(forge.blocks))], forge.blocks.items()))


#: Lies of `LIES` that are stored as vectors, with the rule that each shows.
KEPT_LIES: dict[str, str] = {
    "an entry without values": "Section 5: it says nothing and is read over; no program writes one.",
    "a location of another key": "Section 5: the form allows an empty key or one that nobody knows; the text is not fetched.",
    "a location of another size": "Section 5: the object at a location has that size, or the text is not fetched; a size below 0 is malformed.",
    "a value with an unknown field": "Section 6: unknown fields are malformed, so the head is refused.",
    "a text whose first author is its own device": "Section 5: `of` never names the dot's own device.",
    "a text with a base twice": "Section 5: the list `b` has no repeats.",
    "a card with bases": "Section 5: only memories have a `b`.",
    "a segment of a day that never was": "Section 5: the day in the name of an entry is a real date.",
    "a card that is none": "Section 5.1: a sibling that is no card is passed over; the head is in order.",
    "a forgotten text with a body": "Section 5: a forgotten value has no body.",
    "a dot in two entries": "Section 5: one dot in two entries of one state.",
    "five dots of one device": "Section 8: at most four values of one device in one entry.",
    "a dot that no counter covers": "Section 5: `ctx` covers every dot of its state.",
    "values of a stranger": "Section 7: what a head says of ids without a key is left out: joined in part.",
    "values of a stranger that no counter covers": "Section 7: left out whatever it is, so its own counter is not asked about it.",
    "a counter of a stranger that it did not sign": "Section 7: left out, signed or not.",
    "a counter of 0": "Section 5: a counter in `ctx` is 1 to 2^53-1; another one is malformed, also of an id without a key.",
    "a counter that its device did not sign": "Section 7: every pair of an id with a key is signed by it.",
    "a commit of number 0": "Section 6: `c` counts from 1.",
    "a commit far in the future": "Section 7: no clock decides; the head is joined.",
    "a commit with no key": "Section 6: `ek` is the id of the key that the commit is under.",
    "a tree that no rule makes": "Section 6.1: refused, not damaged.",
    "a segment with lines that are no events": "Section 1.4: which lines are raw events.",
    "a root without a commit": "Section 7: a ring alone is no head; it is passed over.",
    "a root whose commit does not open": "Section 7: refused, and no damage: no commit was verified.",
    "a root whose ring is none": "Section 7: refused.",
    "a ring under a key that nobody was given": "Section 4: a ring is opened with a key that its own open part names.",
    "a body with an unknown field": "Section 4: malformed, so the whole ring is refused.",
    "a body with keys out of order": "Section 4: malformed.",
    "a member with a null that is none": "Section 4: an enrolment has no `was`.",
    "an epoch for nobody": "Section 4: `for` may be empty or without roots; then the key never seals.",
    "an epoch with a strange while": "Section 4: no list in `while` is empty.",
    "a revoke with a counter below 0": "Section 4: a counter in `n` is 0 to 2^53-1.",
    "a revoke of another rank": "Section 4: `rank` is 0 or 1.",
    "a revoke of another key": "Section 4: a root's revoke of a root stays and says nothing.",
    "plain: a root without a commit": "Section 7: a ring alone is no head, also below `memory`; it is passed over.",
    "plain: a root whose memory is a file": "Section 7: no ring stands there: refused.",
    "plain: a root in the form of a sealed one": "Section 6: with its ring at the top it is a sealed one, and no head of a plain vault: refused.",
    "plain: a ring at the top too": "Section 6: with a ring at the top it is no plain root, so the commit below `memory` is not looked at: a ring alone.",
    "plain: a ring at the top alone": "Section 6: the same.",
    "plain: the ring of the sealed vault at the top": "Section 2.3: a ring of another vault: refused.",
    "plain: the ring of the sealed vault": "Section 2.3: the same below `memory`.",
    "plain: a ring with an epoch": "Section 4: no epochs in a plain vault; the ring is refused.",
    "plain: a body with an epoch": "Section 4: nor in the body.",
    "plain: a body with a key": "Section 4: `eks` is empty.",
    "plain: a body that is sealed": "Section 4: a body of the other form than the tag says.",
    "plain: a body in the open part": "Section 4: a statement in the wrong part.",
    "plain: a commit with a key": "Section 6: `ek` is empty in plain mode.",
    "plain: a commit file with another field": "Section 6: `k` and `s`, nothing else.",
    "plain: a commit file in another form": "Section 6: canonical JSON.",
    "plain: a commit file with a signature of nobody": "Section 6: its device signed the JSON.",
    "plain: a node in another form": "Section 7.1: a node with another hash than its parent names is damage.",
    "plain: a location of a key that is": "Section 6: the key of a location is empty in plain mode; the text is not fetched.",
    "plain: other texts in the files of bases": "Section 6: files that people read are signed by nobody; texts are found by their hash.",
    "plain: a value with an unknown field": "Section 6: unknown fields are malformed, so the head is refused.",
    "plain: a counter that its device did not sign": "Section 7: every pair of an id with a key is signed by it.",
}

#: Those of them that change no result, as their rules require.
WITHOUT_EFFECT = {
    "an entry without values",
    "a commit far in the future",
    "an epoch for nobody",
    "a revoke of another key",
}


def _ring_alone(kept: Kept) -> dict[str, Any]:
    kept.forge.roots.clear()
    kept.forge._anchor()
    return {"listed": []}


#: The lie in each vault of a single root, by the name of the vault.
ALONE = {
    "a root without a commit, alone": "a root without a commit",
    "a root whose commit does not open, alone": "a root whose commit does not open",
    "a root whose ring is none, alone": "a root whose ring is none",
    "a refused state, alone": "a counter that its device did not sign",
    "a body with an unknown field, alone": "a body with an unknown field",
    "plain: a root without a commit, alone": "a root without a commit",
    "plain: a body with an unknown field, alone": "a body with an unknown field",
    "plain: a body with a key, alone": "a body with a key",
}


def root_alone(name: str, lies: Mapping[str, str] = ALONE) -> Callable[[Kept], dict[str, Any]]:
    """Return a vault of one root: with its lie, or honest if `lies` has none."""

    def made(kept: Kept) -> dict[str, Any]:
        root = kept.publish(kept.second, kept.lie(lies[name]) if name in lies else None)
        return {"listed": [root]}

    return made


def _empty_state(kept: Kept) -> dict[str, Any]:
    at = kept.forge.replicas[DEVICES[1].id]
    at.entries, at.ctx = {}, {}
    root = kept.publish(at)
    lost = [cid for cid, data in kept.forge.blocks.items() if str(cid) in _under(kept.forge, root, "s")]
    return {"listed": [root], "without": lost}


def _other_bytes(kept: Kept) -> dict[str, Any]:
    """One name leads to an empty state, another to a root whose first block has other bytes."""
    _, whole = kept.forge.roots[-1]
    kept.second.entries, kept.second.ctx, kept.second.prev = {}, {}, []
    _named(kept, whole, kept.publish(kept.second))
    data = kept.forge.blocks[parse_cid(whole)]
    return {"listed": [], "instead": {whole: data[:-1] + bytes([data[-1] ^ 1])}}


def _empty_state_of_two(kept: Kept) -> dict[str, Any]:
    """A root that is joined first, and one with an empty state whose folder of nodes is missing."""
    at = kept.forge.replicas[DEVICES[1].id]
    at.entries, at.ctx, at.prev = {}, {}, []
    # Under another key than the sealing one: a reader may have that node from its own writes.
    kept.forge.more.append(kept.forge._epoch(ROOT, KEYS[1], kept.forge.people, []))
    root = kept.publish(at)
    lost = _folder(kept.forge, root, "s")
    kept.forge.names[ipns_name(DEVICES[0].signer.public)] = make_record(
        DEVICES[0].seed, f"/ipfs/{kept.forge.roots[0][1]}", 1, _until()
    )
    kept.forge.names[ipns_name(DEVICES[1].signer.public)] = make_record(
        DEVICES[1].seed, f"/ipfs/{root}", 1, _until()
    )
    return {
        "without": [lost, *(cid for cid in kept.forge.blocks if str(cid) in _under(kept.forge, root, "s"))]
    }


def _lost_in_one(kept: Kept) -> dict[str, Any]:
    same = kept.publish(kept.second)
    at = kept.forge.replicas[ADMIN.id]
    kept.forge.meet(at, kept.second)
    kept.forge.more.append(kept.forge._epoch(ROOT, KEYS[1], kept.forge.people, []))
    at.prev.clear()  # a root that names the first one is read before it
    at.ms = kept.second.ms + 1
    other = kept.publish(at, key=KEYS[1])  # another key: the same node under another CID
    lost = _under(kept.forge, other, "s") - _under(kept.forge, same, "s")
    return {"listed": [other, same], "without": [cid for cid in kept.forge.blocks if str(cid) in lost]}


def _folder(forge: Forge, root: str, folder: str) -> CID:
    """Return the CID of a folder of a root."""
    links = {link.name: link.cid for link in decode_node(forge.blocks[parse_cid(root)]).links}
    return links[folder]


def _under(forge: Forge, root: str, folder: str) -> set[str]:
    """Return the CIDs of the files in a folder of a root."""
    return {str(link.cid) for link in decode_node(forge.blocks[_folder(forge, root, folder)]).links}


def _revoked_first(kept: Kept) -> dict[str, Any]:
    """The root of a device that continued after its revocation is first in the list."""
    kept.publish(kept.second)
    gone = DEVICES[1]
    said = says_revoked(ROOT, gone, n=1, vault=kept.forge.tag)
    key = KEYS[1]
    kept.forge.more = [said, kept.forge._epoch(ROOT, key, [ADMIN, DEVICES[0]], [gone], old=[KEYS[0].id])]
    kept.forge.meet(kept.first, kept.second)
    after = kept.publish(kept.first, key=key)
    kept.forge.more = []
    kept.write(kept.second, "m/late", b"after the revoke\n")
    late = kept.publish(kept.second)
    return {"listed": [late, after]}


def _enrolled_elsewhere(kept: Kept) -> dict[str, Any]:
    """A device that only another root's ring enrols, and that is first in the list."""
    new = kept.forge.replicas[DEVICES[2].id]
    kept.forge.meet(new, kept.second)
    kept.write(new, "m/new", b"by a new device\n")
    early = kept.publish(new)
    kept.forge.more = [kept.forge.member(ROOT, DEVICES[2])]
    later = kept.publish(kept.second)
    return {"listed": [early, later]}


def _went_back_root(kept: Kept) -> dict[str, Any]:
    kept.publish(kept.second)
    kept.write(kept.second, "m/lake", b"three\n")
    newest = kept.publish(kept.second)
    kept.second.c = 0
    kept.second.prev = []
    kept.write(kept.second, "m/role", b"by a copy that went back\n")
    copy_ = kept.publish(kept.second)
    return {"listed": [copy_, newest]}


def _dropped_key(kept: Kept) -> dict[str, Any]:
    """Later words made two keys; a root that had not seen them revoked the words and kept no epoch."""
    kept.forge.base.append(says_member(ROOT, LATER, "admin"))
    people = [ADMIN, LATER, *DEVICES[:2]]
    names = [KEYS[0].id]
    rotations = [
        kept.forge._epoch(LATER, KEYS[1], people, [], old=names),
        kept.forge._epoch(LATER, KEYS[2], people, [], old=[*names, KEYS[1].id]),
    ]
    kept.forge.more = rotations
    kept.write(kept.second, "m/lake", b"under the first of these keys\n", KEYS[1])
    second = kept.publish(kept.second, key=KEYS[2])
    kept.forge.more = [says_revoked(ROOT, LATER)]
    first = kept.publish(kept.first)
    return {"listed": [first, second]}


def _ring_without_keys(under: EpochKey) -> Callable[[Forge, Replica, _Draft], None]:
    """A ring whose body is sealed under this key and holds no other key."""

    def lie(forge: Forge, at: Replica, draft: _Draft) -> None:
        bare = _Draft(draft.state, draft.commit, under, draft.said, draft.raw, draft.most_in_leaf, {})
        _ring_body(lambda forge, body: body.__setitem__("eks", []))(forge, at, bare)
        draft.files |= bare.files

    return lie


def _ring_with_key(key: EpochKey) -> Callable[[Forge, Replica, _Draft], None]:
    """A ring whose body holds this key and no other."""
    return _ring_body(lambda forge, body: body.__setitem__("eks", [[key.epoch, b64(key.key)]]))


def _slots_of_an_admin(ring: EpochKey, commit: EpochKey, text: EpochKey) -> Callable[[Kept], dict[str, Any]]:
    """An admin's slots hold two keys that no body has."""

    def made(kept: Kept) -> dict[str, Any]:
        forge, names = kept.forge, [KEYS[0].id]
        forge.more = [forge._epoch(ADMIN, key, forge.people, [], old=names) for key in KEYS[1:3]]
        kept.write(kept.second, "m/lake", b"under a key of an admin\n", text)
        return {"listed": [kept.publish(kept.second, _ring_without_keys(ring), key=commit)]}

    return made


def _two_locations(kept: Kept) -> dict[str, Any]:
    """One card on two devices concurrently; one of them has lost its object."""
    text = encode({"ids": [], "into": None, "kind": "user", "title": "T", "v": 1})
    kept.write(kept.first, "c/api", text, KEYS[0])
    card = kept.forge.value(kept.second, "c/api", kept.second.n + 1, text, KEYS[3])
    kept.second.n += 1
    kept.second.ctx[kept.second.who.id] = kept.second.n
    kept.second.entries["c/api"] = {dot(kept.second.who.id, kept.second.n): card}
    lost = card["loc"][1]
    kept.publish(kept.first)
    kept.publish(kept.second)
    return {"without": [raw_cid(bytes.fromhex(lost))]}


def _forgotten_scope(kept: Kept) -> dict[str, Any]:
    at = kept.second
    kept.write(at, "c/gone", None)
    kept.write(at, "m/gone/style", b"of a scope that is forgotten\n")
    kept.write(at, f"t/gone/2026-01-01/{at.who.id}/0", b'{"ts":"2026-01-01","type":"said"}\n')
    kept.publish(at)
    return {}


def _named_and_listed(kept: Kept) -> dict[str, Any]:
    """Each device's last root under its name, and older ones in the list: those with covered counters are
    the past."""
    for n in range(3):
        kept.write(kept.second, "m/lake", f"text {n}\n".encode())
        kept.publish(kept.second)
    kept.forge._anchor()
    return {"named": True}


def _unknown_key_of_the_wallet(kept: Kept) -> dict[str, Any]:
    kept.forge.base.append(says_member(ROOT, LATER, "admin"))
    kept.forge.base.append(kept.forge._epoch(ROOT, KEYS[0], [*kept.forge.people, LATER], []))
    kept.forge._anchor()
    kept.forge.more = [
        says_revoked(ROOT, LATER),
        kept.forge._epoch(ROOT, KEYS[1], kept.forge.people, [LATER], old=[KEYS[0].id]),
    ]
    kept.publish(kept.second, key=KEYS[1])
    return {"opened_by": "later words"}


def _revokes_its_maker(kept: Kept) -> dict[str, Any]:
    """A root with a ring that revokes its own maker; the other root does not have that revocation."""
    first = kept.forge.roots[-1][1]
    kept.forge.more = [says_revoked(ROOT, DEVICES[1], n=1, vault=kept.forge.tag)]
    return {"listed": [kept.publish(kept.second), first]}


def _lost_file_of_a_base(kept: Kept) -> dict[str, Any]:
    """The newest root, of which a file that people read is missing."""
    root = kept.publish(kept.second)
    (lost,) = kept.second.entries["m/lake"].values()
    return {"listed": [root], "without": [raw_cid(bytes.fromhex(lost["loc"][1]))]}


def _named(kept: Kept, *roots: str) -> None:
    """Let the names of the anchor and of the makers lead to these roots."""
    kept.forge._anchor()
    for who, root in kept.forge.roots:
        if root in roots:
            kept.forge.names[ipns_name(who.signer.public)] = make_record(
                who.seed, f"/ipfs/{root}", 1, _until()
            )


def _lost_commit(path: str) -> Callable[[Kept], dict[str, Any]]:
    """One root in a list whose commit, the file at this path, is missing."""

    def made(kept: Kept) -> dict[str, Any]:
        root = kept.publish(kept.second)
        lost = parse_cid(root)
        for part in path.split("/"):
            lost = _folder(kept.forge, str(lost), part)
        return {"listed": [root], "without": [lost]}

    return made


def _lost_ring_and_commit(kept: Kept) -> dict[str, Any]:
    """The words' name leads through the vault's name to a missing ring; the one root in the vault's list
    has no commit."""
    root = kept.publish(kept.second)
    before = set(kept.forge.blocks)
    kept.forge._anchor()
    lost = [cid for cid in kept.forge.blocks if cid not in before]
    return {
        "listed": [root],
        "without": [*lost, _folder(kept.forge, root, "head.ipm")],
        "opened_by": "the recovery words",
    }


def _held_by_two(kept: Kept) -> dict[str, Any]:
    """A root whose state is missing, and two that hold it: the state of one of them is missing too."""
    at = kept.forge.replicas[ADMIN.id]
    kept.forge.meet(at, kept.first)
    at.ms = kept.second.ms + DAY_MS
    kept.write(at, "m/role", b"by an admin\n")
    first, damaged = kept.forge.roots[-1][1], kept.publish(kept.second)
    whole = kept.publish(at)
    _named(kept, first, damaged, whole)
    lost = _under(kept.forge, damaged, "s") | _under(kept.forge, first, "s")
    return {"listed": [], "without": [cid for cid in kept.forge.blocks if str(cid) in lost]}


def _beside_one_in_part(kept: Kept) -> dict[str, Any]:
    """A listed root of three weeks ago, and a name that leads to a root from which something is left out."""
    old = kept.forge.roots[-1][1]
    kept.second.prev = []
    part = kept.publish(kept.second, LIES["values of a stranger that no counter covers"])
    _named(kept, part)
    return {"listed": [old]}


def _held_through_the_list(kept: Kept) -> dict[str, Any]:
    """A name leads to a root with a refused state; a listed root holds it, and is held by a root of a
    name."""
    refused = kept.publish(kept.second, LIES["an entry with a reserved key"])
    kept.write(kept.second, "m/lake", b"three\n")
    between = kept.publish(kept.second)
    kept.forge.meet(kept.first, kept.second)
    last = kept.publish(kept.first)
    _named(kept, refused, last)
    return {"listed": [between]}


def _held_through_one_that_does_not_cover(kept: Kept) -> dict[str, Any]:
    """A root with a refused state; the next one names it and has smaller counters, the last one has
    greater ones again."""

    def lesser(forge: Forge, at: Replica, draft: _Draft) -> None:
        draft.state.clear()
        draft.commit["ctx"].clear()

    refused = kept.publish(kept.second, kept.forge.lies["an entry with a reserved key"])
    between = kept.publish(kept.second, lesser)
    return {"listed": [kept.publish(kept.second), between, refused]}


def _revoked_and_lost(kept: Kept) -> dict[str, Any]:
    """Later words are revoked, and no root can be read whole."""
    kept.forge.base.append(says_member(ROOT, LATER, "admin"))
    kept.forge.base.append(kept.forge._epoch(ROOT, KEYS[0], [*kept.forge.people, LATER], []))
    kept.forge._anchor()
    kept.forge.more = [kept.forge._epoch(ROOT, KEYS[1], kept.forge.people, [LATER], old=[KEYS[0].id])]
    root = kept.publish(kept.second)
    lost = _under(kept.forge, root, "s")
    return {
        "listed": [root],
        "opened_by": "later words",
        "without": [cid for cid in kept.forge.blocks if str(cid) in lost],
    }


def _replaced_by_none(kept: Kept) -> dict[str, Any]:
    """A root signs an epoch that replaces the current one and is dropped itself: it still excludes a
    member."""
    people = kept.forge.people
    wrong = kept.forge._epoch(ROOT, KEYS[1], people, people[:1], old=[KEYS[0].id])
    kept.forge.more = [wrong]
    return {"listed": [kept.publish(kept.second, key=KEYS[1])]}


def _twice_and_lost(kept: Kept) -> dict[str, Any]:
    """One text in two values of a device; its object is missing."""
    text = b"said twice\n"
    kept.write(kept.second, "m/role", text)
    entry = kept.second.entries["m/role"]
    kept.write(kept.second, "m/role", text)
    kept.second.entries["m/role"] |= entry
    lost = [raw_cid(bytes.fromhex(one["loc"][1])) for one in entry.values()]
    return {"listed": [kept.publish(kept.second)], "without": lost}


def _named_by_another_ring(kept: Kept) -> dict[str, Any]:
    """A text under a key that its root's ring has and does not name; another root's ring names it and does
    not have it."""
    kept.write(kept.second, "m/role", b"under a key that another ring names\n", KEYS[1])
    has = kept.publish(kept.second, _ring_with_key(KEYS[1]))
    kept.forge.more = [kept.forge._epoch(ROOT, KEYS[0], kept.forge.people, [], old=[KEYS[1].id])]
    kept.write(kept.first, "m/tone", b"two\n")
    names = kept.publish(kept.first, _ring_without_keys(KEYS[0]))
    return {"listed": [has, names]}


def _lost_record(kept: Kept, *, lost: bool = True, said: Iterable[Statement] = ()) -> list[CID]:
    """Return records of the anchors, which lead to a ring; without the blocks of that ring if `lost`."""
    before, more = set(kept.forge.blocks), kept.forge.more
    kept.forge.more = [*said]
    kept.forge._anchor()
    kept.forge.more = more
    return [cid for cid in kept.forge.blocks if cid not in before] if lost else []


def _with_later_words(kept: Kept) -> None:
    """Make later words an admin whom the wallet enrolled, and give them the first key."""
    kept.forge.base.append(kept.forge.member(ROOT, LATER, "admin"))
    kept.forge.people.append(LATER)
    kept.forge.base.append(kept.forge._epoch(ROOT, KEYS[0], kept.forge.people, []))


def _revoked_words_and_lost_ring(verified: int) -> Callable[[Kept], dict[str, Any]]:
    """The record of revoked words leads to a missing ring. One of two listed roots has a commit that
    verifies: `verified` is its index."""

    def made(kept: Kept) -> dict[str, Any]:
        _with_later_words(kept)
        lost = _lost_record(kept)
        kept.forge.more = [says_revoked(ROOT, LATER, vault=kept.forge.tag)]
        good = kept.publish(kept.first)
        bad = kept.publish(kept.second, LIES["a commit of number 0"])
        roots = [good, bad] if verified == 0 else [bad, good]
        return {"listed": roots, "without": lost, "opened_by": "later words"}

    return made


def _shut_to_revoked_words(kept: Kept) -> dict[str, Any]:
    """The record of revoked words leads to a missing ring, and the one listed root is sealed under a key
    that they were not given."""
    _with_later_words(kept)
    lost = _lost_record(kept)
    people = [one for one in kept.forge.people if one is not LATER]
    kept.forge.base.pop()
    kept.forge.base.remove(next(st for st in kept.forge.base if st.body.t == "epoch"))
    kept.forge.more = [
        says_revoked(ROOT, LATER),
        kept.forge._epoch(ROOT, KEYS[1], people, [LATER], old=[KEYS[0].id]),
    ]
    root = kept.publish(kept.second, key=KEYS[1])
    return {"listed": [root], "without": lost, "opened_by": "later words"}


def _malformed_ring_of_the_record(beside: bool) -> Callable[[Kept], dict[str, Any]]:
    """The record leads to a ring with a malformed body; the list has a whole or an empty root."""

    def made(kept: Kept) -> dict[str, Any]:
        forge = kept.forge
        whole = kept.publish(kept.second)
        file = json.loads(forge.ring_file(forge.base, KEYS[0]))
        body = forge.opened_body(file["body"], KEYS[0])
        file["body"] = forge.ring_body(encode({**body, "x": 1}), KEYS[0])
        tree = build_tree({"keyring.json": encode(file)})
        forge.blocks.update(tree.blocks)
        forge.names[ipns_name(ROOT_KEYS.head_public)] = make_record(
            ROOT_KEYS.head_seed, f"/ipfs/{tree.cid}", 1, _until()
        )
        return {"listed": [whole] if beside else []}

    return made


def _body_that_is_not_base64url(kept: Kept) -> dict[str, Any]:
    """One root whose ring has a sealed body that is not base64url."""
    lie = _keyring(lambda forge, file: file.__setitem__("body", "*"))
    return {"listed": [kept.publish(kept.second, lie)]}


def _malformed_ring_beside_a_lost_one(kept: Kept) -> dict[str, Any]:
    """The words' name leads through the vault's name to a missing ring; the ring of the one listed root
    has a malformed body."""
    root = kept.publish(kept.second, kept.forge.lies["a body with an unknown field"])
    return {"listed": [root], "without": _lost_record(kept), "opened_by": "the recovery words"}


def _lost_commit_of_a_malformed_ring(kept: Kept) -> dict[str, Any]:
    """One device's name leads to an empty state, another's to a root without its commit, whose ring is
    malformed."""
    root = kept.publish(kept.second, kept.forge.lies["a body with an unknown field"])
    kept.first.entries, kept.first.ctx, kept.first.prev = {}, {}, []
    _named(kept, root, kept.publish(kept.first))
    lost = parse_cid(root)
    for part in ("head.ipm",) if kept.forge.kind == "sealed" else ("memory", ".ipfsmem", "commit.json"):
        lost = _folder(kept.forge, str(lost), part)
    return {"listed": [], "without": [lost]}


def _restored_with_its_provider(
    lie: str | None = None, *, given_up: bool
) -> Callable[[Kept], dict[str, Any]]:
    """A device publishes twice, and a copy of its earlier state once, later: the counter of the first
    covers the copy's text."""

    def made(kept: Kept) -> dict[str, Any]:
        enrolment = next(st for st in kept.forge.base if getattr(st.body, "sign", "") == DEVICES[1].key)
        if given_up:
            kept.forge.more = [says_heir(DEVICES[1], HEIR, enrolment.hash, vault=kept.forge.tag)]
        kept.publish(kept.second)
        at = kept.second
        copied = replace(at, entries=copy.deepcopy(at.entries), ctx={**at.ctx}, prev=[*at.prev])
        for _ in range(2):
            kept.write(at, "m/role", b"by the device\n")
            newest = kept.publish(at)
        copied.ms = at.ms
        kept.write(copied, "m/lost", b"by its copy\n")
        return {"listed": [kept.publish(copied, kept.forge.lies[lie] if lie else None), newest]}

    return made


def _name_in_another_base(kept: Kept) -> dict[str, Any]:
    """The words' record names the vault's anchor in base32."""
    root = kept.publish(kept.second)
    kept.forge._anchor()
    name = base64.b32encode(bytes(parse_cid(ipns_name(ROOT_KEYS.head_public)))).decode().rstrip("=").lower()
    kept.forge.names[ipns_name(RECOVERY_KEYS.head_public)] = make_record(
        RECOVERY_KEYS.head_seed, f"/ipns/b{name}", 1, _until()
    )
    return {"listed": [root], "opened_by": "the recovery words"}


def _part_beside_a_lost_one(kept: Kept) -> dict[str, Any]:
    """A name leads to a root from which something is left out, another to one whose ring is missing."""
    part = kept.publish(kept.second, LIES["values of a stranger that no counter covers"])
    kept.write(kept.first, "m/tone", b"two\n")
    other = kept.publish(kept.first, _ring_with_key(KEYS[1]))
    _named(kept, part, other)
    return {"listed": [], "without": [_folder(kept.forge, other, "keyring.json")]}


def _revoked_by_each_other(kept: Kept) -> dict[str, Any]:
    """Two roots each have the wallet's revocation of the other's device; a third root is of a device that
    is not revoked."""
    forge = kept.forge
    third = forge.replicas[DEVICES[2].id]
    forge.base.append(forge.member(ROOT, DEVICES[2]))
    forge.meet(third, kept.first)
    roots = []
    for at, gone in ((kept.first, DEVICES[1]), (kept.second, DEVICES[0]), (third, None)):
        forge.more = [] if gone is None else [says_revoked(ROOT, gone, vault=forge.tag)]
        kept.write(at, f"m/by-{at.who.id}", b"of one of three\n")
        roots.append(kept.publish(at))
    return {"listed": roots}


def _lead(forge: Forge, who: Party, root: str) -> None:
    """Let the name of a device lead to a root."""
    forge.names[ipns_name(who.signer.public)] = make_record(who.seed, f"/ipfs/{root}", 1, _until())


def _names_before_lists(kept: Kept) -> dict[str, Any]:
    """One device's root enrols another, whose name leads to the revocation of a third; only a list shows
    the third one's root, which revokes the second."""
    forge, second = kept.forge, kept.forge.replicas[DEVICES[2].id]
    forge._anchor()
    enrolment = forge.member(ROOT, DEVICES[2])
    forge.meet(second, kept.first)
    roots = []
    for at, said in (
        (kept.first, [enrolment]),
        (second, [enrolment, says_revoked(ROOT, DEVICES[1], vault=forge.tag)]),
        (kept.second, [says_revoked(ROOT, DEVICES[2], vault=forge.tag)]),
    ):
        forge.more = said
        kept.write(at, f"m/by-{at.who.id}", b"of one of three\n")
        roots.append(kept.publish(at))
    _lead(forge, DEVICES[0], roots[0])
    _lead(forge, DEVICES[2], roots[1])
    return {"listed": roots[2:]}


def _named_root_before_lists(kept: Kept) -> dict[str, Any]:
    """A device's name leads to a root of a device that only the third round enrols; it revokes a device
    whose root only a list shows, and that root revokes its maker."""
    forge = kept.forge
    late, middle = (forge.replicas[one.id] for one in (DEVICES[3], DEVICES[2]))
    forge._anchor()
    enrolled, enrols = forge.member(ROOT, DEVICES[2]), forge.member(ROOT, DEVICES[3])
    said = {
        late.who.id: [says_revoked(ROOT, DEVICES[1], vault=forge.tag)],
        kept.first.who.id: [enrolled],
        middle.who.id: [enrolled, enrols],
        kept.second.who.id: [says_revoked(ROOT, DEVICES[3], vault=forge.tag)],
    }
    roots = {}
    for at in (late, kept.first, middle, kept.second):
        forge.more = said[at.who.id]
        kept.write(at, f"m/by-{at.who.id}", b"of one of four\n")
        roots[at.who.id] = kept.publish(at)
    _lead(forge, ADMIN, roots[late.who.id])
    _lead(forge, DEVICES[0], roots[kept.first.who.id])
    _lead(forge, DEVICES[2], roots[middle.who.id])
    return {"listed": [roots[kept.second.who.id]]}


KEPT_SHAPES: dict[str, tuple[Callable[[Kept], dict[str, Any]], str]] = {
    "a ring and no head": (
        _ring_alone,
        "Section 9: an anchor leads to a ring and nobody published a head: an empty memory.",
    ),
    "a root without a commit, alone": (
        root_alone("a root without a commit, alone"),
        "Section 9: nothing names that ring, so there is no memory.",
    ),
    "a root whose commit does not open, alone": (
        root_alone("a root whose commit does not open, alone"),
        "Section 9: damaged: it may be a true head.",
    ),
    "a root whose ring is none, alone": (
        root_alone("a root whose ring is none, alone"),
        "Section 9: nothing there is of this vault.",
    ),
    "a refused state, alone": (
        root_alone("a refused state, alone"),
        "Section 9: where roots stand and none is joined, nothing is shown.",
    ),
    "an empty state whose node is lost": (
        _empty_state,
        "Section 7.1: everybody knows the node of the empty state, so nothing is lost.",
    ),
    "an empty state whose folder is lost, beside another root": (
        _empty_state_of_two,
        "Section 7.1: the same, whatever was joined before: that node is not read, so no folder is needed for it.",
    ),
    "a node that another root has": (
        _lost_in_one,
        "Section 7.1: a node that what was joined has at its place is no damage where it is lost.",
    ),
    "a revoked device's root first": (
        _revoked_first,
        "Section 9: every root is judged by what all rings say, whatever was read first.",
    ),
    "a root whose maker another ring enrols": (_enrolled_elsewhere, "Section 9: the same, the other way."),
    "a lower number and a later clock": (
        _went_back_root,
        "Section 5: another copy of its device made it: held.",
    ),
    "texts under keys that a revoke dropped": (
        _dropped_key,
        "Section 4: a root is read with the keys that its own ring names, and so are its texts.",
    ),
    "a text under a newer key that only an admin's slot gives": (
        _slots_of_an_admin(KEYS[1], KEYS[1], KEYS[2]),
        "Section 4: of slots that no root signed a ring gives the key that opens its body, whatever was tried before.",
    ),
    "a text under an older key that only an admin's slot gives": (
        _slots_of_an_admin(KEYS[2], KEYS[2], KEYS[1]),
        "Section 4: the same, the other way.",
    ),
    "a commit under a key that only an admin's slot gives": (
        _slots_of_an_admin(KEYS[0], KEYS[1], KEYS[2]),
        "Section 4: a commit is read with the keys of all slots in its own ring, and texts with the one that it is under.",
    ),
    "a text under a key that another root's ring names": (
        _named_by_another_ring,
        "Section 4: names are those of the joined ring, whichever ring brings the key.",
    ),
    "a revoked key, and no root that can be read whole": (
        _revoked_and_lost,
        "Section 9: what is joined is judged by the ring first: revoked.",
    ),
    "an epoch that is dropped and would replace another": (
        _replaced_by_none,
        "Section 4: what (e) drops replaces nothing, so the key of the other one is still named.",
    ),
    "two values with one text, which is lost": (
        _twice_and_lost,
        "Section 5: both are not fetched, the later one first.",
    ),
    "a card of which one sibling's object is lost": (
        _two_locations,
        "Section 5: of siblings with one body any location will do.",
    ),
    "events of a forgotten scope": (
        _forgotten_scope,
        "Section 5.1: they are not shown; texts stand under their keys.",
    ),
    "roots of the past beside names": (
        _named_and_listed,
        "Section 7: of the list what joined commits name is not read.",
    ),
    "words that were revoked": (
        _unknown_key_of_the_wallet,
        "Section 9: a key that the joined ring does not have as an admin opens nothing.",
    ),
    "a ring that revokes its own maker": (
        _revokes_its_maker,
        "Section 7: a commit is judged by what is known joined with its own ring, so it is refused.",
    ),
    "a root that two hold, of which one is damaged": (
        _held_by_two,
        "Section 7: what a joined head holds is joined already, whatever else holds it.",
    ),
    "a root whose commit is lost, alone": (
        _lost_commit("head.ipm"),
        "Section 9: damaged: its ring says which vault it is.",
    ),
    "plain: a root whose commit is lost, alone": (
        _lost_commit("memory/.ipfsmem/commit.json"),
        "Section 9: the same.",
    ),
    "a root whose commit is lost, beside a name of a lost ring": (
        _lost_ring_and_commit,
        "Section 9: the same for another key: the list of the last name is looked at.",
    ),
    "a name that leads to other bytes, beside an empty state": (
        _other_bytes,
        "Section 7.1: bytes with another hash are not that block, so the target of a device's name cannot be read.",
    ),
    "an old root beside one joined in part": (
        _beside_one_in_part,
        "Section 7: of the list what is covered and a week old is not read once something was joined whole.",
    ),
    "a root held through one of the list": (
        _held_through_the_list,
        "Section 7: heads of names are joined first, and hold each other through heads of names alone.",
    ),
    "plain: a ring that revokes its own maker": (_revokes_its_maker, "Section 7: the same."),
    "plain: a file of a base is lost": (
        _lost_file_of_a_base,
        "Section 6.1: a body may stand in a file that people read; where that is lost, the text is not fetched.",
    ),
    "plain: a revoked device's root first": (
        _revoked_first,
        "Section 9: every root is judged by what all rings say; no epoch says it in a plain vault.",
    ),
    "plain: a root whose maker another ring enrols": (
        _enrolled_elsewhere,
        "Section 9: the same, the other way.",
    ),
    "plain: a root without a commit, alone": (
        root_alone("plain: a root without a commit, alone"),
        "Section 9: nothing names that ring, so there is no memory.",
    ),
    "a body with an unknown field, alone": (
        root_alone("a body with an unknown field, alone"),
        "Section 9: damaged: the open part of its ring is in order and says which vault it is.",
    ),
    "words that were revoked, beside a name of a lost ring": (
        _revoked_words_and_lost_ring(0),
        "Section 9: revoked: one listed root verifies, and its ring does not have this key as an admin.",
    ),
    "words that were revoked, beside a name of a lost ring and a refused root": (
        _revoked_words_and_lost_ring(1),
        "Section 9: the same in another order.",
    ),
    "roots under a key that the words were not given, beside a name of a lost ring": (
        _shut_to_revoked_words,
        "Section 9: damaged: a root of this vault is listed, and none verifies.",
    ),
    "a name of a ring with a malformed body": (
        _malformed_ring_of_the_record(beside=False),
        "Section 9: a malformed ring is as good as a lost one.",
    ),
    "a name of a ring with a malformed body, beside a root": (
        _malformed_ring_of_the_record(beside=True),
        "Section 9: the list is looked at as well.",
    ),
    "a root joined in part, beside a name of a lost ring": (
        _part_beside_a_lost_one,
        "Section 7.1: a root that was joined in part brings the memory back too.",
    ),
    "two devices that were revoked at each other": (
        _revoked_by_each_other,
        "Section 9: all roots of a round are judged by the ring before it, so both revokes are learned.",
    ),
    "plain: two devices that were revoked at each other": (
        _revoked_by_each_other,
        "Section 9: the same.",
    ),
    "a name behind a name, and a list that contradicts it": (
        _names_before_lists,
        "Section 9: names are read until a round brings nothing new, and only then the list.",
    ),
    "plain: a name behind a name, and a list that contradicts it": (
        _names_before_lists,
        "Section 9: the same.",
    ),
    "a named root that a later round enrols, and a list": (
        _named_root_before_lists,
        "Section 9: every round judges all roots of names, also those that an earlier one refused.",
    ),
    "a record that leads to a name in another base": (
        _name_in_another_base,
        "Section 7: the CID of a name may be written in any base.",
    ),
    "plain: words that were revoked, beside a name of a lost ring": (
        _revoked_words_and_lost_ring(0),
        "Section 9: the same.",
    ),
    "a root held through one that does not cover it": (
        _held_through_one_that_does_not_cover,
        "Section 7: on the way from a joined head to one that it holds each covers the next, so this one is read: refused.",
    ),
    "a body that is not base64url, alone": (
        _body_that_is_not_base64url,
        "Section 9: damaged: the contents of the body are not of the open part.",
    ),
    "plain: a body with an unknown field, alone": (
        root_alone("plain: a body with an unknown field, alone"),
        "Section 9: the same.",
    ),
    "plain: a body with a key, alone": (
        root_alone("plain: a body with a key, alone"),
        "Section 9: the same.",
    ),
    "a ring with a malformed body, beside a name of a lost ring": (
        _malformed_ring_beside_a_lost_one,
        "Section 9: damaged: a root of this vault is listed, and none verifies.",
    ),
    "plain: a ring with a malformed body, beside a name of a lost ring": (
        _malformed_ring_beside_a_lost_one,
        "Section 9: the same.",
    ),
    "a name of a malformed ring whose commit is lost, beside an empty state": (
        _lost_commit_of_a_malformed_ring,
        "Section 7.1: the target of a device's name cannot be read, whatever its ring is.",
    ),
    "plain: a name of a malformed ring whose commit is lost, beside an empty state": (
        _lost_commit_of_a_malformed_ring,
        "Section 7.1: the same.",
    ),
    "another copy of a device whose id is given up": (
        _restored_with_its_provider(given_up=True),
        "Section 5: held for a reader that does not write the texts of both copies: a counter of one covers a text of the other.",
    ),
    "plain: another copy of a device whose id is given up": (
        _restored_with_its_provider(given_up=True),
        "Section 5: the same.",
    ),
    "another copy of a device with a refused state": (
        _restored_with_its_provider("an entry with a reserved key", given_up=False),
        "Section 9: of two verdicts the first that applies: refused, not held.",
    ),
}

ABOUT = (
    "Whole vaults of liars, in the form of vaults.json but for `by_rule`: each has one root, ring or key that is not as it should be. "
    "`why` names the rule. They are made without any device: `python -m tests.support.forged_vaults`."
)


def kept_cases() -> tuple[list[Json], dict[str, str]]:
    """Return the vectors without `expect`, and their blocks."""
    cases: list[Json] = []
    cars: dict[str, str] = {}

    def add(case: Json, car: str) -> None:
        cars[case["car"]] = car
        cases.append(case)

    for name, why in KEPT_LIES.items():
        small = Kept(name)
        small.publish(small.second, small.lie(name))
        add(*small.case(name, why))
    for name, (shape, why) in KEPT_SHAPES.items():
        small = Kept(name)
        options = shape(small)
        add(*small.case(name, why, **options))
    return cases, cars


def kept() -> Json:
    """Return the file of vectors."""
    cases, cars = kept_cases()
    seen = [{**case, "expect": seen_by_python(case, cars)} for case in cases]
    return {"about": ABOUT, "cars": cars, "cases": seen}


if __name__ == "__main__":
    FILE.write_text(json.dumps(kept(), indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
