"""What the parts of one sync share: the replica, the providers, what was found so far, and the report.

It holds; it decides nothing. Everything in it lives for one sync only.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from ipfsmem.content.cid import CID, is_cid
from ipfsmem.device.lock import directory_lock_async
from ipfsmem.device.replica import Replica
from ipfsmem.errors import IpfsmemError, NotFoundError, ProviderError
from ipfsmem.provider.contract import Provider
from ipfsmem.provider.outages import Unread
from ipfsmem.published.opening import Head
from ipfsmem.ring.keyring import Ring
from ipfsmem.ring.statements import member_id
from ipfsmem.sync.changes import Kinds
from ipfsmem.sync.fetch import Fetcher
from ipfsmem.sync.fork import Adopted
from ipfsmem.sync.names import Names
from ipfsmem.sync.publish import recount_now
from ipfsmem.sync.report import Progress, SyncReport
from ipfsmem.wallet.root_keys import RootKeys

#: Values that say what was seen, put and asked for, and when, and what stands there in the place of one that the disk changed:
#: more is read, put or asked for again. All that cannot be had again is none of them.
NOTES: Final[dict[str, bytes | None]] = {
    **dict.fromkeys(
        (
            "anchor pins",
            "anchor_behind",
            "asked for",
            "collected",
            "commit",
            "gone lately",
            "guard pins",
            "looked at",
        )
    ),
    **dict.fromkeys(("moved answered", "names", "put", "root", "secret rules", "told", "whole")),
    **dict.fromkeys(("lacking", "sending"), b"1"),
    "counted": b"0",
}


class Run:
    """One sync. `root` is the unlocked wallet or recovery key, None in everyday use."""

    def __init__(
        self,
        replica: Replica,
        providers: Sequence[Provider],
        root: RootKeys | None,
        progress: Progress,
    ) -> None:
        assert replica.config.vault is not None and replica.vault_tag is not None
        self.replica = replica
        self._drop_garbled()
        self.providers = providers
        self.where = " and ".join(provider.name for provider in providers)
        self.root = root
        if root is not None:
            replica.enroller = member_id(root.admin_public)
        self.progress = progress
        self.report = SyncReport()
        self.vault = replica.vault_tag
        self.anchor = bytes.fromhex(replica.config.vault.anchor)
        self.names = Names(replica, providers, self.report)
        self.fetcher = Fetcher(replica.db, providers)
        #: Verified heads by root.
        self.heads: dict[CID, Head] = {}
        #: Verified heads of which a part cannot be read: never joined, and read on request only.
        self.damaged: dict[CID, Head] = {}
        #: What is said of each of them, and its details.
        self.why_damaged: dict[CID, tuple[str, str]] = {}
        self.opened: set[CID] = set()
        #: Roots that cannot be opened, for parts of them are not there, and those of them that a name leads to: of these a
        #: signature says that they are a head, wherever they were seen first.
        self.in_part: set[CID] = set()
        self.unread: set[CID] = set()
        #: Roots that a name or a list showed and that were not used, for what they are and not for an outage.
        self.refused: set[CID] = set()
        #: Roots that an earlier sync could not join whole, and that an outage hides in this one.
        self.later: set[CID] = set()
        #: What each provider took in this sync, by its name: that is there, and is not asked for again before it is read.
        self.sent: dict[str, set[CID]] = {}
        #: What stands somewhere and could not be read in this sync, for a provider was down.
        self.unread_now = Unread()
        #: Whether the pin lists were read in this sync.
        self.pins_read = False
        #: Roots with a ring alone that an anchor names, and those that no anchor has named (yet).
        self.ring_roots: set[CID] = set()
        self.headless: set[CID] = set()
        self.anchored: Ring | None = None
        #: Whether this device knew no ring when the sync began, and roots that only a list beside names showed.
        self.fresh = False
        self.listed: set[CID] = set()
        #: Verified heads of another copy of their device: its commits count back while its clock goes on.
        self.copies: set[CID] = set()
        #: Heads that an earlier sync verified and held, and the device that has two copies.
        self.held: dict[CID, str] = {}
        #: Those that this sync holds, by the devices that are waited for, and devices of which two versions were told.
        self.waiting: dict[tuple[str, ...], list[CID]] = {}
        self.doubled: set[str] = set()
        #: What this sync took over, by the kind of notice that says so.
        self.taken_over: dict[str, list[Adopted]] = {}
        #: Which memories were added, changed and removed.
        self.kinds: Kinds = {}
        #: Whether another device's head, or the anchor, has this device in its ring.
        self.known_elsewhere = False
        #: Providers that did not take the root of this sync: no name is put there that leads to it.
        self.without: set[str] = set()
        #: Whether there is reason to ask each provider for every block in this sync.
        self.suspicious = False
        #: Whether that is because anchors lead to less than this device had put there.
        self.doubtful = False
        #: Roots that this device guards, or some other one at a provider.
        self.guards: set[str] = set()
        #: Whether a provider that did not answer may have bodies that are not here; so until they were asked for.
        self.unsure_of_bodies = True
        #: Why nothing may be published in this sync; empty when it may.
        self.unsure = ""

    def put_off(self, root: CID, error: ProviderError) -> None:
        """A head that is known of cannot be read now. It holds nothing up, whoever's doing that is: a later sync reads it."""
        self.opened.discard(root)  # what could be opened of it is not all of it
        self.unread_now.note(root, error)
        self.report.say(
            "channel-down",
            f"version {root} could not be read, so newer texts may be missing: {error}; the next sync tries again",
        )

    def why(self, error: IpfsmemError) -> str:
        """What a refused block adds to an error that it caused."""
        if isinstance(error, NotFoundError) and self.fetcher.refused:
            return "; " + next(iter(self.fetcher.refused.values()))
        return ""

    def anchors(self) -> set[bytes]:
        """The anchor keys of the vault and of all members that have one."""
        ring = self.replica.ring
        return {self.anchor, *(ring.view.anchors() if ring is not None else ())}

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """One sync at a time for a memory; writes go on meanwhile."""
        if self.replica.folder is None:
            yield
            return
        async with directory_lock_async(self.replica.folder / "sync.lock", wait=60.0):
            yield

    def _drop_garbled(self) -> None:
        """Forget rows that the disk changed into something else than rows of their kind, which ended every sync: roots are known
        again and placed again, and objects are counted again, by this one."""
        replica, db = self.replica, self.replica.db.connection
        if strange := replica.db.strange():
            with replica.transaction():
                replica.db.drop_strange(strange)
                if "objects" in strange:
                    recount_now(replica.db)
        if any(map(replica.db.is_changed, NOTES)):
            with replica.transaction():
                for name in filter(replica.db.is_changed, NOTES):
                    instead = NOTES[name]
                    if instead is None:
                        replica.db.drop_meta(name)
                    else:
                        replica.db.set_meta(name, instead)
        # As bytes: what a disk changed may be no text at all.
        heads = [row for row in db.execute("SELECT CAST(root AS BLOB) FROM heads") if not _are_cids(row)]
        rows = db.execute(
            "SELECT CAST(root AS BLOB), CAST(answered AS BLOB), CAST(provider AS BLOB) FROM placed"
        )
        placed = [(root, provider) for root, answered, provider in rows if not _are_cids((root, answered))]
        if heads or placed:
            with replica.transaction():
                db.executemany("DELETE FROM heads WHERE CAST(root AS BLOB)=?", heads)
                db.executemany(
                    "DELETE FROM placed WHERE CAST(root AS BLOB)=? AND CAST(provider AS BLOB)=?", placed
                )


def _are_cids(texts: Iterable[bytes]) -> bool:
    return all(is_cid(text.decode("ascii", "replace")) for text in texts)
