"""List the published roots known to this device, open old states, and compare them.

Every root contains a whole state. All functions read local blocks only; nothing is fetched, joined or written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from ipfsmem.causal.tree import Difference, StateTree, diff, open_tree
from ipfsmem.causal.value import Entry, decode_entry
from ipfsmem.content.car import Writable, write_car
from ipfsmem.content.cid import CID, DAG_PB, parse_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.fetch import drive
from ipfsmem.content.reader import Reader
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import heads
from ipfsmem.errors import IpfsmemError, NotFoundError, UsageError
from ipfsmem.published.commit import Commit
from ipfsmem.published.root_reader import node_reader, read_root
from ipfsmem.published.root_verification import open_root


class LogEntry(msgspec.Struct, frozen=True):
    """One published state that this device made, joined or adopted.

    `c`: the number of the commit at its device. `commit`: the commit's SHA-256. `own`: whether this device made it.
    """

    root: str
    device: str
    c: int
    at_ms: int
    commit: str
    own: bool


def published_log(replica: Replica) -> list[LogEntry]:
    """Return every root known to this device, newest first; `at_ms`: when it was first seen here (ms since
    1970 UTC)."""
    return [
        LogEntry(row.root, row.device, row.number, row.seen, row.digest, row.device == replica.device.id)
        for row in heads.newest_first(replica.db.connection)
    ]


class PastState(msgspec.Struct, frozen=True):
    """An older state: its commit and its tree."""

    root: CID
    commit: Commit
    tree: StateTree


def open_past(replica: Replica, cid: CID) -> PastState:
    """Open a published root from local blocks.

    Raises NotFoundError if it, or a part of it, is not kept here.
    """
    vault = replica.vault_tag
    if vault is None:
        raise UsageError(f"a memory in mode {replica.config.mode} has no published versions")

    def blocks(cids: list[CID]) -> dict[CID, bytes]:
        stored = {c: replica.db.block(c.digest) for c in cids}
        return {c: data for c, data in stored.items() if data is not None}

    try:
        files = drive(read_root(Reader(), cid), blocks)
    except NotFoundError as error:
        raise NotFoundError(f"version {cid} is not kept on this device: {error}") from None
    opened = open_root(files, vault, replica.ring, [replica.device.box_secret])
    if opened.head is None:
        raise NotFoundError(f"{cid} holds a list of members and no memory")
    if opened.head.state is None:
        raise NotFoundError(f"version {cid} is not kept on this device: it holds no state")
    commit, codec = opened.head.commit.commit, replica.codec
    read = node_reader(Reader(), opened.head.state, codec.extension)

    def load(prefix: str, digest: bytes) -> bytes:
        return codec.open_node(prefix, commit.ek, drive(read(prefix), blocks))

    return PastState(cid, commit, open_tree(bytes.fromhex(commit.state), load))


def find_root(replica: Replica, text: str) -> CID:
    """Find a root by its CID, or by a CID prefix in the log. Raises UsageError, NotFoundError."""
    if not text:
        raise UsageError("no version is named", hint="See: ipfsmem vault log.")
    roots = [entry.root for entry in published_log(replica) if entry.root.startswith(text)]
    if len(roots) == 1:
        return parse_cid(roots[0])
    if len(roots) > 1:
        raise UsageError(f"{text} is a prefix of {len(roots)} known versions", hint="Pass a longer prefix.")
    try:
        return parse_cid(text)
    except IpfsmemError:
        raise NotFoundError(
            f"no version {text} is known on this device", hint="See: ipfsmem vault log."
        ) from None


class EntryChange(msgspec.Struct, frozen=True):
    """One entry that differs between two states."""

    name: str
    before: Entry
    after: Entry


def entry_changes(before: StateTree, after: StateTree) -> list[EntryChange]:
    """Return the entries in which two states differ, sorted by name."""

    def entry(difference: Difference, text: bytes | None) -> Entry:
        return {} if text is None else decode_entry(difference.name, text)

    return sorted(
        (EntryChange(d.name, entry(d, d.mine), entry(d, d.theirs)) for d in diff(before, after)),
        key=lambda c: c.name,
    )


#: The change of a memory from one state to another.
ChangeKind = Literal["added", "changed", "removed"]


def export_car(replica: Replica, root: CID, out: Writable) -> int:
    """Write every block of a published root as a CAR v1; return the number of bytes written.

    Raises NotFoundError if a block is not on this device: such a CAR would not restore the vault.
    """

    def blocks() -> Iterator[tuple[CID, bytes]]:
        stack, seen = [root], {root}
        while stack:
            cid = stack.pop()
            data = replica.db.block(cid.digest)
            if data is None:
                raise NotFoundError(
                    f"part {cid} of version {root} is not on this device", hint="Run: ipfsmem sync."
                )
            yield cid, data
            if cid.codec == DAG_PB:
                fresh = [link.cid for link in decode_node(data).links if link.cid not in seen]
                seen.update(fresh)
                stack += reversed(fresh)

    return write_car(out, [root], blocks())
