"""A case of fixtures/vectors/vaults.json, read by production code as a new device reads it:
`vault_vectors` stores the result, tests compare it. Contains no tests."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any
from unittest import mock

from ipfsmem.bundle.timeline import event_line
from ipfsmem.canonical import unb64
from ipfsmem.causal.cards import write_card
from ipfsmem.causal.value import Entry
from ipfsmem.causal.view import ConflictCopy, KeyView, own_view
from ipfsmem.content.car import read_car
from ipfsmem.content.cid import CID, ipns_name, parse_cid
from ipfsmem.content.fetch import drive
from ipfsmem.content.reader import Reader
from ipfsmem.device.replica import Environment
from ipfsmem.device.scopes import known_scopes, read_card
from ipfsmem.errors import (
    BlockError,
    DamagedError,
    FormatError,
    IpfsmemError,
    MembershipError,
    NotFoundError,
    NoVaultError,
    OtherKindError,
    ProviderError,
    WrongWalletError,
)
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Pin
from ipfsmem.published.ipns_record import parse_record
from ipfsmem.published.root_reader import read_root
from ipfsmem.published.root_verification import open_root
from ipfsmem.ring.statements import member_id
from ipfsmem.sync.names import pin_name, target
from ipfsmem.sync.unjoined_heads import held_heads
from ipfsmem.testing.clock import MockClock, SeededRandom
from ipfsmem.testing.simulator import FULL, SimCloud, SimProvider
from ipfsmem.vault.home import Home
from ipfsmem.wallet.message import key_request, sign_once
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from ipfsmem.wallet.signers import RawKeySigner

#: Reasons for reading nothing: an error of this program, and its word in the vectors.
REFUSALS: list[tuple[type[IpfsmemError], str]] = [
    (OtherKindError, "other kind"),
    (DamagedError, "damaged"),
    (NoVaultError, "none"),
    (MembershipError, "revoked"),
    (WrongWalletError, "revoked"),
    (ProviderError, "unread"),
]


def wallet_keys(private_key: bytes, vault: str, key_number: int) -> RootKeys:
    """Return the root keys of a wallet."""
    signer = RawKeySigner(private_key)
    signature = sign_once(signer, key_request(signer.address, vault, key_number))
    return RootKeys.from_signature(signature, signer.address, vault, key_number)


def paths(provider: SimProvider, root: str) -> set[str]:
    """Return the files of a root by path."""
    blocks = provider.cloud.blocks
    walk = Reader().walk(parse_cid(root))
    return set(drive(walk, lambda wanted: {cid: blocks[cid] for cid in wanted if cid in blocks}))


def keys_of(opened_by: dict[str, Any]) -> RootKeys:
    """Return the root keys of the opener of a case."""
    if "words" in opened_by:
        return RootKeys.from_recovery(from_words(opened_by["words"]))
    if "secret" in opened_by:
        return RootKeys.from_random(bytes.fromhex(opened_by["secret"]), "default", 1)
    wallet = opened_by["wallet"]
    return wallet_keys(bytes.fromhex(wallet["private_key"]), wallet["vault"], wallet["key_number"])


def cloud_of(case: dict[str, Any], cars: dict[str, str]) -> SimCloud:
    """Return the provider of a case, with exactly its data."""
    cloud = SimCloud()
    cloud.blocks = dict(read_car(unb64(cars[case["car"]], "a CAR")))
    for cid in case["without"]:
        del cloud.blocks[parse_cid(cid)]
    for cid, data in case["instead"].items():
        cloud.blocks[parse_cid(cid)] = unb64(data, "a block")
    for name, record in case["names"].items():
        cloud.names[name] = [unb64(record, "a record")]
    for name, roots in case["pins"].items():
        cloud.pins += [
            Pin(parse_cid(root), name, cloud.handle(), case["now"] - n) for n, root in enumerate(roots)
        ]
    return cloud


def read_case(case: dict[str, Any], cars: dict[str, str], home: Path) -> dict[str, Any]:
    """Return what a new device sees: the `expect` of a case."""
    home.mkdir(parents=True, exist_ok=True)
    clock = MockClock(case["now"] * 1_000_000)
    cloud = cloud_of(case, cars)
    keys = keys_of(case["opened_by"])
    blocks = dict(cloud.blocks)
    provider = SimProvider(cloud, clock=clock, random=SeededRandom("reader"), capabilities=FULL)
    try:
        # A device reseals data under a key that no epoch names, and writes for other copies of a device; the
        # expected result is the join of a reader that writes nothing.
        with (
            mock.patch("ipfsmem.sync.commits._seal_pending", lambda replica: None),
            mock.patch("ipfsmem.sync.join_or_hold.is_retired", lambda ring, device: False),
        ):
            memory = asyncio.run(
                Memory.recover(
                    "reader",
                    provider=provider,
                    unlock=keys,
                    mode="ipfs" if case["kind"] == "plain" else "encrypted-ipfs",
                    passphrase=False,
                    home=Home(
                        folder=home,
                        label="reader",
                        environment=Environment(lambda: clock.ms, SeededRandom("reader")),
                    ),
                    memory_dir=home / "files" if case["kind"] == "plain" else None,
                    public_ok=case["kind"] == "plain",
                )
            )
    except IpfsmemError as error:
        for kind, word in REFUSALS:
            if isinstance(error, kind):
                return {"refused": word}
        raise
    try:
        return _seen(memory, keys, provider, blocks, case)
    finally:
        memory.close()


def _seen(
    memory: Memory, keys: RootKeys, provider: SimProvider, blocks: dict[CID, bytes], case: dict[str, Any]
) -> dict[str, Any]:
    replica = memory.replica
    ring, vault = replica.ring, replica.vault_tag
    assert ring is not None and vault is not None and memory.restored is not None
    with replica.transaction():
        digest = replica.store.checkpoint(folders=True).digest.hex()
    with replica.reading():
        scopes = {}
        for token, entry in sorted(known_scopes(replica.store).items()):
            if not entry:
                continue
            card = read_card(replica.store, token, entry)
            scopes[token] = None if card is None else json.loads(write_card(card))
        names = sorted(replica.store.names())
        memories = {name[2:]: _view(memory, name) for name in names if name.startswith("m/")}
        parts = {
            "",
            *(name.split("/")[1] for name in names if name.startswith("t/") and name.count("/") == 4),
        }
    events = {
        scope: [event_line(event).decode() for event in memory.scope(scope).timeline.read()]
        for scope in sorted(parts)
    }
    heads, root = _heads(memory, keys, blocks, _places(memory, case), digest)
    own = memory.restored.root
    return {
        # This device just published the same state: its root has the same files in the same places.
        "by_rule": None if root is None or own is None else _has_same_files(provider, root, own),
        "digest": digest,
        "events": {scope: lines for scope, lines in events.items() if lines},
        "heads": heads,
        "members": {
            one.id: {"label": one.label, "person": ring.view.owners.get(one.id), "role": one.role}
            for one in sorted(ring.view.members.values(), key=lambda one: one.id)
            if one.id != memory.device
        },
        "memories": memories,
        "root": root,
        "scopes": scopes,
        "vault": vault.hex(),
    }


def _has_same_files(provider: SimProvider, root: str, own: str) -> bool:
    try:
        return paths(provider, root) == paths(provider, own)
    except (NotFoundError, BlockError):
        return False


def _view(memory: Memory, name: str) -> dict[str, Any]:
    *scope, key = name.split("/")[1:]
    part = MemoryStore(memory.replica, scope[0] if scope else "")
    entry = memory.replica.store.entry(name)
    shown = _told(part, name, entry, part.whole_view(key, entry))
    own = None
    if not all(part.is_own(dot, value.author) for dot, value in entry.items()):
        view = own_view(key, entry, part.is_own, *part._bodies(key, entry, None))
        own = {
            **_told(part, name, entry, view),
            "others": _copies(part, name, entry, view.others),
            "unheeded": len(view.unheeded),
        }
        if not view.others and not view.unheeded:
            own = None
    return {**shown, "own": own}


def _told(part: MemoryStore, name: str, entry: Entry, view: KeyView) -> dict[str, Any]:
    return {
        "conflicts": _copies(part, name, entry, view.conflicts),
        "forgotten": view.forgotten,
        "hidden": [_text(part, name, entry, one.body) for one in view.hidden],
        "merged": view.merged,
        "not_fetched": list(view.not_fetched),
        "shown": None if view.data is None else view.data.decode(),
    }


def _copies(
    part: MemoryStore, name: str, entry: Entry, copies: tuple[ConflictCopy, ...]
) -> list[dict[str, Any]]:
    return [{"file": one.file, "text": _text(part, name, entry, one.body)} for one in copies]


def _text(part: MemoryStore, name: str, entry: Entry, body: str) -> str | None:
    for value in entry.values():
        if value.body == body and (data := part.replica.store.body(name, value)) is not None:
            return str(data.decode())
    return None


def _places(memory: Memory, case: dict[str, Any]) -> set[str]:
    """Return the roots that may be heads: those of device names, and those of the list of the first root's
    anchor."""
    ring = memory.replica.ring
    assert ring is not None
    view = ring.view
    first = view.members[member_id(view.roots[0])]
    found = set(case["pins"].get(pin_name(first.anchor), ())) if first.anchor else set()
    for one in view.members.values():
        record = case["names"].get(ipns_name(one.sign))
        if one.id == memory.device or not view.may_write(one.id) or record is None:
            continue
        with contextlib.suppress(FormatError):
            leads = target(parse_record(unb64(record, "a record")))
            if isinstance(leads, CID):
                found.add(str(leads))
    return found


def _heads(
    memory: Memory, keys: RootKeys, blocks: dict[CID, bytes], places: set[str], digest: str
) -> tuple[dict[str, str], str | None]:
    """Return the fate of each root that may be a head, and the final common root. A root with a ring alone
    is not a head."""
    replica, report = memory.replica, memory.restored
    ring, vault = replica.ring, replica.vault_tag
    assert ring is not None and vault is not None and report is not None
    rows = {
        row[0]
        for row in replica.db.connection.execute("SELECT root FROM heads WHERE device<>?", (memory.device,))
    }
    held = {str(root) for root in held_heads(replica)}
    told: dict[str, str] = {}
    same = []
    for root in sorted(places):
        kinds = {notice.kind for notice in report.notices if root in notice.detail}
        try:
            files = drive(
                read_root(Reader(), parse_cid(root)),
                lambda wanted: {cid: blocks[cid] for cid in wanted if cid in blocks},
            )
            head = open_root(files, vault, ring, [keys.box_secret]).head
        except IpfsmemError:
            told[root] = "refused: head"
            continue
        if head is None:
            continue
        if root in held:
            told[root] = "held"
        elif "damaged" in kinds:
            told[root] = "damaged"
        elif "head-refused" in kinds:
            told[root] = "refused: state"
        elif "in-part" in kinds:
            told[root] = "joined in part"
        elif root in rows:
            told[root] = "joined"
            commit = head.commit.commit
            ours = {dev: (pair.n, pair.r) for dev, pair in replica.store.frame.seen.items()}
            if commit.state == digest and {dev: (p.n, p.r) for dev, p in commit.ctx.items()} == ours:
                same.append((head.commit.digest, root))
        else:
            told[root] = "past"
    return told, max(same)[1] if same else None
