"""A case of fixtures/vectors/vaults.json, read by production code as a new device reads it: what `vault_vectors` expects and
the tests compare. Nothing here is a test.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from ipfsmem.bundle.timeline import event_line
from ipfsmem.canonical import unb64
from ipfsmem.causal.cards import write_card
from ipfsmem.causal.value import Entry
from ipfsmem.causal.view import ConflictCopy, KeyView, own_view
from ipfsmem.content.car import read_car
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.content.fetch import drive
from ipfsmem.content.reader import Reader
from ipfsmem.device.replica import World
from ipfsmem.device.scopes import known_scopes, read_card
from ipfsmem.errors import DamagedError, IpfsmemError, NoVaultError, OtherKindError
from ipfsmem.memories.memories import Memories
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Pin
from ipfsmem.published.root_reader import read_root
from ipfsmem.published.root_verification import open_root
from ipfsmem.testing.clock import MockClock, SeededRandom
from ipfsmem.testing.simulator import FULL, SimCloud, SimProvider
from ipfsmem.vault.home import Home
from ipfsmem.wallet.message import key_request, sign_once
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from ipfsmem.wallet.signers import RawKeySigner

#: Why nothing is read: an error of this program, and the word of the vectors.
REFUSALS: list[tuple[type[IpfsmemError], str]] = [
    (OtherKindError, "other kind"),
    (DamagedError, "damaged"),
    (NoVaultError, "none"),
]


def wallet_keys(private_key: bytes, vault: str, key_number: int) -> RootKeys:
    """The root keys of a wallet."""
    signer = RawKeySigner(private_key)
    signature = sign_once(signer, key_request(signer.address, vault, key_number))
    return RootKeys.from_signature(signature, signer.address, vault, key_number)


def paths(provider: SimProvider, root: str) -> set[str]:
    """The files of a root, by path."""
    blocks = provider.cloud.blocks
    walk = Reader().walk(parse_cid(root))
    return set(drive(walk, lambda wanted: {cid: blocks[cid] for cid in wanted if cid in blocks}))


def keys_of(opened_by: dict[str, Any]) -> RootKeys:
    """The root keys of whoever a case is opened by."""
    if "words" in opened_by:
        return RootKeys.from_recovery(from_words(opened_by["words"]))
    if "secret" in opened_by:
        return RootKeys.from_random(bytes.fromhex(opened_by["secret"]), "default", 1)
    wallet = opened_by["wallet"]
    return wallet_keys(bytes.fromhex(wallet["private_key"]), wallet["vault"], wallet["key_number"])


def cloud_of(case: dict[str, Any], cars: dict[str, str]) -> SimCloud:
    """The provider of a case, which has what the case says and nothing else."""
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
    """What a new device sees: the `expect` of a case."""
    home.mkdir(parents=True, exist_ok=True)
    clock = MockClock(case["now"] * 1_000_000)
    cloud = cloud_of(case, cars)
    keys = keys_of(case["opened_by"])
    blocks = dict(cloud.blocks)
    provider = SimProvider(cloud, clock=clock, random=SeededRandom("reader"), capabilities=FULL)
    try:
        memory = asyncio.run(
            Memory.recover(
                "reader",
                provider=provider,
                unlock=keys,
                mode="ipfs" if case["kind"] == "plain" else "encrypted-ipfs",
                passphrase=False,
                home=Home(folder=home, label="reader", world=World(lambda: clock.ms, SeededRandom("reader"))),
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
        return _seen(
            memory, keys, provider, blocks, [root for roots in case["pins"].values() for root in roots]
        )
    finally:
        memory.close()


def _seen(
    memory: Memory, keys: RootKeys, provider: SimProvider, blocks: dict[CID, bytes], listed: list[str]
) -> dict[str, Any]:
    replica = memory.replica
    ring, vault = replica.ring, replica.vault_tag
    assert ring is not None and vault is not None and memory.restored is not None
    with replica.transaction():
        digest = replica.store.checkpoint(folders=True).digest.hex()
    with replica.reading():
        scopes = {}
        for token, entry in sorted(known_scopes(replica.store).items()):
            card = read_card(replica.store, token, entry) if entry else None
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
    heads, root = _heads(memory, keys, blocks, listed, digest)
    own = memory.restored.root
    return {
        # This device published the same state just now: its root has the same files at the same places.
        "by_rule": None if root is None or own is None else paths(provider, root) == paths(provider, own),
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


def _view(memory: Memory, name: str) -> dict[str, Any]:
    *scope, key = name.split("/")[1:]
    part = Memories(memory.replica, scope[0] if scope else "")
    entry = memory.replica.store.entry(name)
    shown = _told(part, name, entry, part.whole_view(key, entry))
    own = None
    if not all(part.is_own(dot, value.of) for dot, value in entry.items()):
        view = own_view(key, entry, part.is_own, *part._bodies(key, entry, None))
        own = {
            **_told(part, name, entry, view),
            "others": _copies(part, name, entry, view.others),
            "unheeded": len(view.unheeded),
        }
        if not view.others and not view.unheeded:
            own = None
    return {**shown, "own": own}


def _told(part: Memories, name: str, entry: Entry, view: KeyView) -> dict[str, Any]:
    return {
        "conflicts": _copies(part, name, entry, view.conflicts),
        "forgotten": view.forgotten,
        "hidden": [_text(part, name, entry, one.body) for one in view.hidden],
        "merged": view.merged,
        "not_fetched": list(view.not_fetched),
        "shown": None if view.data is None else view.data.decode(),
    }


def _copies(
    part: Memories, name: str, entry: Entry, copies: tuple[ConflictCopy, ...]
) -> list[dict[str, Any]]:
    return [{"file": one.file, "text": _text(part, name, entry, one.body)} for one in copies]


def _text(part: Memories, name: str, entry: Entry, body: str) -> str | None:
    for value in entry.values():
        if value.body == body and (data := part.replica.store.body(name, value)) is not None:
            return str(data.decode())
    return None


def _heads(
    memory: Memory, keys: RootKeys, blocks: dict[CID, bytes], listed: list[str], digest: str
) -> tuple[dict[str, str], str | None]:
    """What became of each root that is a head, and the one on which all devices end."""
    replica, report = memory.replica, memory.restored
    ring, vault = replica.ring, replica.vault_tag
    assert ring is not None and vault is not None and report is not None
    said = {notice.detail: notice.kind for notice in report.notices}
    rows = {
        row[0]
        for row in replica.db.connection.execute("SELECT root FROM heads WHERE device<>?", (memory.device,))
    }
    told: dict[str, str] = {}
    same = []
    for root in sorted({*listed, *rows}):
        kinds = {kind for text, kind in said.items() if root in text}
        if "damaged" in kinds:
            told[root] = "damaged"
        elif "head-refused" in kinds:
            told[root] = (
                "refused: state"
                if any("was not joined" in text for text in said if root in text)
                else "refused: head"
            )
        elif "in-part" in kinds:
            told[root] = "joined in part"
        elif root in rows:
            told[root] = "joined"
            files = drive(
                read_root(Reader(), parse_cid(root)), lambda wanted: {cid: blocks[cid] for cid in wanted}
            )
            head = open_root(files, vault, ring, [keys.box_secret]).head
            assert head is not None
            commit = head.commit.commit
            ours = {dev: (pair.n, pair.r) for dev, pair in replica.store.frame.seen.items()}
            if commit.state == digest and {dev: (p.n, p.r) for dev, p in commit.ctx.items()} == ours:
                same.append((head.commit.digest, root))
    return told, max(same)[1] if same else None
