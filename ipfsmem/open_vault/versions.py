"""`memory.versions`: the published versions of a vault, and their differences."""

from __future__ import annotations

from ipfsmem.causal.entries import entry_display_name, memory_name
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta
from ipfsmem.errors import IpfsmemError, NotFoundError
from ipfsmem.memories.writers import members_of
from ipfsmem.open_vault.method_group import MethodGroup
from ipfsmem.published.history import (
    ChangeKind,
    entry_changes,
    find_root,
    open_past,
    published_log,
)
from ipfsmem.results import Difference, PublishedVersion, shown_text

list_ = list  # `MemoryVersions.list` hides the builtin inside the class


class MemoryVersions(MethodGroup):
    """The published versions that this device knows."""

    def list(self) -> list_[PublishedVersion]:
        """Return the roots that this device knows, newest first."""
        with self._replica.reading():
            entries = published_log(self._replica)
        labels = self._labels()
        return [PublishedVersion.of(entry, labels) for entry in entries]

    def _labels(self) -> dict[str, str]:
        return {one.id: one.label for one in members_of(self._replica)}

    def diff(self, root_a: str | None = None, root_b: str | None = None) -> list_[Difference]:
        """Return the memories that differ between `root_a` (None: the root published last) and `root_b` (None: now)."""
        with self._replica.transaction():
            before = open_past(self._replica, published_root(self._replica, root_a)).tree
            if root_b is None:
                after = self._replica.store.checkpoint(folders=self._open.mode.published)
            else:
                after = open_past(self._replica, find_root(self._replica, root_b)).tree
            lines = []
            for change in entry_changes(before, after):
                name = memory_name(change.name)
                if name is None:
                    continue
                there = self._open.memories.in_scope(name.scope)
                old = there.whole_view(name.key, change.before).data
                new = there.whole_view(name.key, change.after).data
                if old != new:
                    kind: ChangeKind = "added" if old is None else "removed" if new is None else "changed"
                    lines.append(
                        Difference(
                            key=entry_display_name(change.name),
                            change=kind,
                            before=shown_text(old),
                            after=shown_text(new),
                        )
                    )
            return lines


def is_unpublished(replica: Replica) -> bool:
    """Tell whether a local change is in no published version, or an upload is incomplete."""
    with replica.reading():  # another process may have written
        frame = replica.store.frame
    device = replica.device.id
    mine = frame.seen.get(device)
    return (
        frame.ctx.get(device, 0) > (mine.n if mine else 0)
        or replica.db.get_meta(meta.ROOT) is None
        or replica.db.get_meta(meta.SENDING) == b"1"
    )


def unpublished_kinds(replica: Replica) -> list[str]:
    """Return the kinds of unpublished changes, in words; empty where a sync would publish nothing."""
    if replica.as_agent:
        return []
    return [
        *(["changes"] if is_unpublished(replica) else []),
        *(["a change of the members"] if are_members_unpublished(replica, unsure=False) else []),
    ]


def are_members_unpublished(replica: Replica, *, unsure: bool = True) -> bool:
    """Tell whether the last published version has another key ring than this device, which may publish its own.

    `unsure`: the answer if that version is not on this device.
    """
    from ipfsmem.content.fetch import drive
    from ipfsmem.content.reader import Reader
    from ipfsmem.published.root_reader import read_root
    from ipfsmem.ring.authority import PLAIN_REASON

    def blocks(cids: list[CID]) -> dict[CID, bytes]:
        data_of = {cid: replica.db.block(cid.digest) for cid in cids}
        return {cid: data for cid, data in data_of.items() if data is not None}

    with replica.reading():
        root, ring = replica.db.get_meta(meta.ROOT), replica.ring
        if root is None or ring is None or ring.view.reason not in ("", PLAIN_REASON):
            return False
        if ring.view.is_revoked(replica.device.id) or not ring.view.may_write(replica.device.id):
            return False
        try:
            files = drive(read_root(Reader(), parse_cid(root.decode()), ring_alone=True), blocks)
        except IpfsmemError:
            return unsure
        return not ring.equals_file(files.keyring)


def published_root(replica: Replica, root: str | None) -> CID:
    """Return the address of a version that this device knows by its address `root` or a prefix; None: the one published
    last.

    Raises NotFoundError.
    """
    if root is not None:
        return find_root(replica, root)
    mode = replica.config.mode
    stored = replica.db.get_meta(meta.ROOT)
    if stored is None and not mode.published:
        raise NotFoundError(
            f"a vault in mode {mode} is never published",
            hint="The current memories: ipfsmem list. Copies to compare with later: ipfsmem export --out FILE.",
        )
    if stored is None:
        raise NotFoundError("nothing was published yet", hint="Publish it: ipfsmem sync.")
    return parse_cid(stored.decode())
