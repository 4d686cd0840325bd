"""Describe the content of a CAR, keyring, commit, sealed object, name record, blob, or provider's folder.

Shows all that is readable without a key, and the rest with keys, as text, numbers, lists and mappings. Each block and
signature is checked; nothing is written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.causal.entries import entry_context, entry_display_name, segment_name
from ipfsmem.causal.tree import empty_tree
from ipfsmem.causal.value import decode_entry
from ipfsmem.content.car import read_car
from ipfsmem.content.cid import CID, DAG_PB, ipns_name, parse_cid, public_of_ipns_name
from ipfsmem.content.fetch import drive, from_mapping
from ipfsmem.content.reader import Reader
from ipfsmem.device.atomic_files import read_file, storage_errors
from ipfsmem.device.replica import Replica
from ipfsmem.device.shared_folder import SharedFolder
from ipfsmem.errors import FormatError, IpfsmemError, NotFoundError, OpenError, SignatureError, UsageError
from ipfsmem.published.commit import SignedCommit, open_commit, open_plain_commit
from ipfsmem.published.ipns_record import parse_record, verify_record
from ipfsmem.published.root_reader import RootFiles, differences, read_root
from ipfsmem.published.root_verification import open_root
from ipfsmem.ring.keyring import Keyring, Ring, parse_keyring
from ipfsmem.seal.objects import COMMIT, MAGIC, MEMORY, RING_BODY, SEGMENT, STATE_NODE, EpochKey, Sealer

Facts = dict[str, Any]
MAX_SMALL: Final = 4 * 1024 * 1024
#: Packs of a provider's folder are opened up to this many bytes in total; beyond it only sizes are shown.
MAX_FOLDER: Final = 512 * 1024 * 1024
_TYPES: Final = {
    RING_BODY: "ring body",
    COMMIT: "commit",
    MEMORY: "memory",
    SEGMENT: "timeline segment",
    STATE_NODE: "state node",
}


class _Pin(msgspec.Struct, frozen=True):
    cid: str
    name: str
    created: int = 0


class InspectionKeys(msgspec.Struct, frozen=True):
    """Keys to try on sealed data: box secrets for ring slots, epoch keys of one vault, contexts."""

    box_secrets: tuple[bytes, ...] = ()
    eks: tuple[EpochKey, ...] = ()
    vault: bytes | None = None
    contexts: tuple[str, ...] = ()

    @property
    def some(self) -> bool:
        """Tell whether there is any key."""
        return bool(self.box_secrets or self.eks)


def keys_of(replica: Replica, contexts: tuple[str, ...] = ()) -> InspectionKeys:
    """Return a device's keys of its vault; without `contexts`, those of all names it knows."""
    ring = replica.ring
    if not contexts:
        with replica.reading():
            names = [entry_context(name) for name in replica.store.names()]
            prefixes = [node.prefix for node in replica.store.tree.nodes()]
        contexts = (*names, *prefixes)
    eks = ring.keys if ring is not None else ()
    return InspectionKeys((replica.device.box_secret,), eks, replica.vault_tag, contexts)


def inspect(path: Path, keys: InspectionKeys) -> Facts:
    """Return facts about a file or a provider's folder. Raises NotFoundError, FormatError, BlockError, UsageError."""
    with storage_errors(path, "read"):
        if path.is_dir():
            return _provider_folder(path, keys)
        if not path.exists():
            raise NotFoundError(f"{path} does not exist")
        with path.open("rb") as file:
            start = file.read(64)
    if _looks_like_car(start):
        return _car(path, keys)
    data = read_file(path, MAX_SMALL) or b""
    if data[:4] == MAGIC:
        return _sealed(data, keys)
    if data[:1] in (b"{", b"["):
        return _json(data, keys)
    try:
        return _name(data, path.name)
    except FormatError:
        raise FormatError(
            f"{path} is not a CAR, key ring, commit, sealed object, name record or blob",
            hint="Its CID: ipfsmem format cid PATH.",
        ) from None


def _looks_like_car(start: bytes) -> bool:
    return b"eroots" in start[:24] or b"gversion" in start[:64]


# -- CAR -------------------------------------------------------------------------------------------------------


def _car(path: Path, keys: InspectionKeys) -> Facts:
    with storage_errors(path, "read"), path.open("rb") as file:
        reader = read_car(file)
        blocks = dict(reader)
        roots = reader.roots
    facts: Facts = {
        "kind": "CAR",
        "roots": [str(root) for root in roots],
        "blocks": len(blocks),
        "bytes": sum(map(len, blocks.values())),
        "dag_pb_blocks": sum(cid.codec == DAG_PB for cid in blocks),
        "every_block_matches_its_cid": True,
    }
    if roots and roots[0] in blocks:
        facts["root"] = _root(roots[0], blocks, keys)
    return facts


def _root(root: CID, blocks: Mapping[CID, bytes], keys: InspectionKeys) -> Facts:
    get = from_mapping(blocks)
    try:
        files = drive(read_root(Reader(), root), get)
    except IpfsmemError:
        return _folder(root, blocks)
    keyring = parse_keyring(files.keyring)
    facts: Facts = {
        "kind": "plain memory" if files.plain else "sealed memory" if files.head else "anchor (a ring alone)",
        "cid": str(root),
        "keyring": _ring(keyring, keys),
    }
    if files.head is None:
        return facts
    if not files.plain and not keys.some:
        facts["head"] = {"kind": "sealed object", "bytes": len(files.head), "note": "a key opens it"}
        return facts
    try:
        opened = open_root(files, keyring.vault, _known_ring(keyring, keys), list(keys.box_secrets))
    except OpenError as error:
        facts["head"] = {"kind": "sealed object", "bytes": len(files.head), "note": str(error)}
        return facts
    assert opened.head is not None
    facts["commit"] = {**_commit(opened.head.commit), "signature": "holds", "member": "may write"}
    facts["state"] = _state(files, opened.ring, opened.head.commit, blocks)
    return facts


def _known_ring(keyring: Keyring, keys: InspectionKeys) -> Ring | None:
    """Return the caller's keys if they are of this vault."""
    if keyring.vault != keys.vault or not keys.eks:
        return None
    return keyring.unlock(keys.box_secrets, keys.eks).unbounded_ring


def _folder(root: CID, blocks: Mapping[CID, bytes]) -> Facts:
    get = from_mapping(blocks)
    try:
        stat = drive(Reader().stat(root), get)
        if not stat.is_dir:
            return {"kind": "file", "cid": str(root), "bytes": stat.size}
        links = drive(Reader().list_directory(root), get)
    except IpfsmemError as error:
        return {"kind": "unknown", "cid": str(root), "note": str(error)}
    part = (
        {}
        if all(link.cid in blocks for link in links)
        else {"note": "a part: its other blocks are elsewhere"}
    )
    return {
        **part,
        "kind": "folder",
        "cid": str(root),
        "entries": [{"name": link.name, "cid": str(link.cid)} for link in links],
    }


def _state(files: RootFiles, ring: Ring, signed: SignedCommit, blocks: Mapping[CID, bytes]) -> Facts:
    commit = signed.commit

    def opened(prefix: str, stored: bytes) -> bytes:
        if files.plain:
            return stored
        for key in ring.view.eks.get(commit.ek, ()):
            with contextlib.suppress(OpenError):
                return Sealer(key, ring.vault).open(STATE_NODE, prefix, stored)
        raise OpenError

    changed = drive(
        differences(
            files.state,
            ".json" if files.plain else ".ipm",
            empty_tree(),
            bytes.fromhex(commit.state),
            opened,
        ),
        from_mapping(blocks),
    )
    memories, segments = [], 0
    for difference in sorted(changed, key=lambda d: d.name):
        if difference.theirs is None:
            continue
        if segment_name(difference.name) is not None:
            segments += 1
            continue
        entry = decode_entry(difference.name, difference.theirs)
        memories.append(
            {
                "key": entry_display_name(difference.name),
                "values": [
                    {
                        "dot": dot,
                        "kind": value.kind,
                        "written": _hlc(value.h),
                        "sha256": value.body,
                        "stored_bytes": value.loc[2]
                        if isinstance(value.loc, tuple)
                        else value.loc.size
                        if value.loc
                        else 0,
                    }
                    for dot, value in sorted(entry.items())
                ],
            }
        )
    return {"digest": commit.state, "memories": memories, "timeline_segments": segments}


# -- ring, commit, object --------------------------------------------------------------------------------------


def _ring(keyring: Keyring, keys: InspectionKeys) -> Facts:
    facts: Facts = {
        "kind": "key ring",
        "mode": "plain" if keyring.plain else "sealed",
        "vault": keyring.vault.hex(),
        "roots": [root.hex() for root in keyring.roots],
        "epochs": [
            {
                "epoch": body.epoch,
                "ek": body.ek,
                "by": body.by,
                "slots": len(body.slots),
                "for": list(body.for_),
                "not": list(body.not_),
                "while": body.while_,
            }
            for body in keyring.epochs
        ],
    }
    try:
        ring = keyring.unlock(
            keys.box_secrets, keys.eks if keyring.vault == keys.vault else ()
        ).unbounded_ring
    except OpenError as error:
        facts["members"] = None
        facts["note"] = str(error) if keys.some else "the members are sealed: give a wallet or a vault"
        return facts
    view = ring.view
    facts["members"] = [
        {
            "id": p.id,
            "role": p.role,
            "label": p.label,
            "kind": p.kind,
            "family": p.family,
            "by": p.by,
            "device_name": ipns_name(p.sign),
            "anchor": ipns_name(p.anchor) if p.anchor else None,
        }
        for p in sorted(view.members.values(), key=lambda p: (p.rank, p.id))
    ]
    facts["revoked"] = sorted(view.revoked)
    facts["statements"] = len(ring.statements)
    facts["seals"] = view.sealing.id if view.sealing else None
    return facts


def _commit(signed: SignedCommit) -> Facts:
    commit = signed.commit
    return {
        "kind": "commit",
        "commit": signed.digest,
        "device": commit.dev,
        "number": commit.c,
        "written": _hlc(commit.h),
        "vault": commit.vault,
        "ek": commit.ek,
        "prev": commit.prev,
        "ring": commit.ring,
        "state": commit.state,
        "counters": {device: seen.n for device, seen in commit.ctx.items()},
    }


def _sealed(data: bytes, keys: InspectionKeys) -> Facts:
    facts: Facts = {
        "kind": "sealed object",
        "format": "IPM1",
        "bytes": len(data),
        "sha256": sha256(data).hexdigest(),
        "room_for_bytes": max(0, len(data) - 44),
    }
    if not keys.eks or keys.vault is None:
        facts["note"] = "to open it, name its vault with --vault (in Python: keys_of)"
        return facts
    sealers = [Sealer(key, keys.vault) for key in reversed(keys.eks)]
    for sealer in sealers:
        for kind, name in _TYPES.items():
            for ctx in ("",) if kind in (RING_BODY, COMMIT) else keys.contexts:
                try:
                    payload = sealer.open(kind, ctx, data)
                except OpenError:
                    continue
                return {
                    **facts,
                    "type": name,
                    "context": ctx,
                    "ek": sealer.epoch_key.id,
                    **_opened(kind, payload, data, sealers),
                }
    facts["note"] = "no key of this vault opens it in any known context (try --context; in Python: contexts=)"
    return facts


def _opened(kind: int, payload: bytes, data: bytes, sealers: list[Sealer]) -> Facts:
    if kind == COMMIT:
        return {"commit": _commit(open_commit(data, sealers))}
    return {"text": payload.decode("utf-8", "replace")}


def _json(data: bytes, keys: InspectionKeys) -> Facts:
    try:
        value = read_json(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FormatError(f"this is not JSON: {error}") from None
    names = set(value) if isinstance(value, dict) else set()
    if {"body", "open", "vault"} <= names:
        return _ring(parse_keyring(data), keys)
    if names == {"k", "s"}:
        return {
            **_commit(open_plain_commit(data)),
            "note": "a plain commit; its signature needs the ring next to it",
        }
    if "files" in names or "timeline" in names:
        from ipfsmem.bundle.blob import VERSION, read_blob

        blob = read_blob(data)
        return {
            "kind": "blob",
            "version": VERSION,
            "memories": [{"key": key, "bytes": len(text)} for key, text in sorted(blob.files.items())],
            "events": len(blob.events),
            "problems": list(blob.problems),
        }
    if {"crypto", "version"} <= {name.lower() for name in names}:
        return {
            "kind": "wallet keystore",
            "address": str(value.get("address", "")),
            "note": "Web3 secret storage",
        }
    if {"e"} == names or {"n"} == names:
        return _node(data)
    raise FormatError("this JSON is not a key ring, commit, state node, blob or keystore")


def _node(data: bytes) -> Facts:
    value = read_json(data)
    inner = value.get("e") or value.get("n")
    return {
        "kind": "state node",
        "sha256": sha256(data).hexdigest(),
        "leaf": "e" in value,
        "entries": sorted(inner) if isinstance(inner, dict) else [],
    }


# -- names and folders -----------------------------------------------------------------------------------------


def _name(data: bytes, file_name: str) -> Facts:
    record = parse_record(data)
    name = file_name.split(".")[0]
    facts: Facts = {
        "kind": "name record",
        "value": record.value,
        "sequence": record.sequence,
        "valid_until": _ns(record.validity),
        "ttl_seconds": record.ttl // 10**9,
        "bytes": len(data),
    }
    try:
        public_of_ipns_name(name)
    except FormatError:
        return {**facts, "signature": "not checked: the file's name is not the record's"}
    try:
        verify_record(name, data)
    except (SignatureError, FormatError) as error:
        return {**facts, "name": name, "signature": f"invalid: {error}"}
    return {**facts, "name": name, "signature": "holds"}


def _provider_folder(folder: Path, keys: InspectionKeys) -> Facts:
    packs, pins, names = (SharedFolder(folder, part) for part in ("packs", "pins", "names"))
    if not packs.is_there() and not names.is_there():
        raise UsageError(
            f"{folder} is a folder, but not a provider's folder",
            hint="Its CID: ipfsmem format cid PATH. A file in it: inspect that.",
        )
    facts: Facts = {"kind": "provider's folder", "packs": [], "roots": [], "names": []}
    blocks: dict[CID, bytes] = {}
    for name, size in _files(packs, ".car"):
        facts["packs"].append({"file": name, "bytes": size})
        if sum(pack["bytes"] for pack in facts["packs"]) <= MAX_FOLDER:
            with packs.open_file(name, buffered=True) as file:
                blocks.update(read_car(file))
    pinned: dict[str, dict[str, Any]] = {}
    for name, _ in _files(pins, ".json"):
        try:
            pin = read_json(pins.read(name, MAX_SMALL) or b"", type=_Pin)
        except (msgspec.DecodeError, RecursionError):
            continue
        pinned.setdefault(pin.cid, {"cid": pin.cid, "pinned": _ns(pin.created * 10**6), "name": pin.name})
    for cid, pin_facts in sorted(pinned.items(), key=lambda item: str(item[1]["pinned"])):
        facts["roots"].append({**pin_facts, **_brief(cid, blocks, keys)})
    for name, _ in _files(names, ".ipns-record"):
        try:
            facts["names"].append(_name(names.read(name, MAX_SMALL) or b"", name))
        except FormatError as error:
            facts["names"].append({"kind": "not a record", "file": name, "note": str(error)})
    return facts


def _brief(text: str, blocks: Mapping[CID, bytes], keys: InspectionKeys) -> Facts:
    """Summarise a pinned root in a few words."""
    try:
        facts = _root(parse_cid(text), blocks, keys)
    except IpfsmemError as error:
        return {"kind": "damaged", "note": str(error)}
    commit = facts.get("commit") or {}
    return {"kind": facts["kind"], **{k: commit[k] for k in ("device", "number", "written") if k in commit}}


def _files(folder: SharedFolder, suffix: str) -> list[tuple[str, int]]:
    """Return regular files with this suffix and their sizes; anything else in an untrusted folder is skipped."""
    return sorted(folder.sizes(lambda name: name.endswith(suffix)).items())


def _hlc(h: str) -> str:
    if not h.strip("0"):
        return ""  # nothing written yet
    try:
        return (
            datetime.fromtimestamp((int(h, 16) >> 16) / 1000, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z")
        )
    except (ValueError, OverflowError, OSError):
        return h


def _ns(ns: int) -> str:
    try:
        return datetime.fromtimestamp(ns / 1e9, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return str(ns)
