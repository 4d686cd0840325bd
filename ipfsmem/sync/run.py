"""What the parts of one sync share: the replica, the providers and what was asked of them, and what was said so far.

It holds; it decides nothing. What a step found out is not here but in the value that it returns (`steps`). Everything in it
lives for one sync only.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Final

from ipfsmem.content.cid import CID
from ipfsmem.device.lock import file_lock_async
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import garbled, heads, meta, placed
from ipfsmem.errors import IpfsmemError, NotFoundError
from ipfsmem.provider.contract import Provider
from ipfsmem.provider.opening import NotOpened
from ipfsmem.ring.statements import member_id
from ipfsmem.sync.fetch import Fetcher
from ipfsmem.sync.names import Names
from ipfsmem.sync.publish import recount_now
from ipfsmem.sync.report import Notices, Progress
from ipfsmem.wallet.root_keys import RootKeys

#: So many seconds a sync waits for another program that syncs the same memory; for one of its own it waits to the end.
WAIT_FOR_OTHERS: Final = 60.0
#: Values that say what was seen, put and asked for, and when, and what stands there in the place of one that the disk changed:
#: more is read, put or asked for again. Of what was signed with a root only what stands at no provider cannot be had again, and
#: that is said.
NOTES: Final[dict[str, bytes | None]] = {
    **dict.fromkeys(
        (
            meta.ANCHOR_PINS,
            meta.ANCHOR_BEHIND,
            meta.ASKED_FOR,
            meta.COLLECTED,
            meta.COMMIT,
            meta.GONE_LATELY,
            meta.GUARD_PINS,
            meta.LISTS,
        )
    ),
    **dict.fromkeys((meta.MOVED_ANSWERED, meta.NAMES, meta.PUT, meta.ROOT, meta.SECRET_RULES, meta.SIGNED)),
    **dict.fromkeys((meta.TOLD, meta.WHOLE)),
    **dict.fromkeys((meta.LACKING, meta.SENDING), b"1"),
    meta.COUNTED: b"0",
}


class Sending:
    """What was sent in one sync, and who did not take it. It counts; it sends nothing."""

    def __init__(self) -> None:
        #: What each provider took, by its name: that is there, and is not asked for again before it is read.
        self.taken: dict[str, set[CID]] = {}
        #: Providers that did not take a root: no name is put there that leads to it.
        self.without: set[str] = set()
        #: Providers that did not take what was published, in the order in which they did not.
        self.not_placed: list[str] = []
        self.blocks = self.bytes = 0
        #: Blocks that live and are missing at providers, after what could be sent again was.
        self.missing = 0

    def count(self, blocks: int, size: int) -> None:
        """So many blocks, of so many bytes together, were sent."""
        self.blocks += blocks
        self.bytes += size


class Run:
    """One sync. `root` is the unlocked wallet or recovery key, None in everyday use. `given` is a published root that a person
    wrote down, where names and lists are lost (format section 7); it is verified like any other. `not_opened` are providers of
    the memory that take no part for want of a token or the like."""

    def __init__(
        self,
        replica: Replica,
        providers: Sequence[Provider],
        root: RootKeys | None,
        progress: Progress,
        *,
        given: CID | None = None,
        not_opened: Sequence[NotOpened] = (),
    ) -> None:
        assert replica.config.vault is not None and replica.vault_tag is not None
        self.replica = replica
        self.notices = Notices()
        self._drop_garbled()
        self.providers = providers
        self.not_opened = not_opened
        self.where = " and ".join(provider.name for provider in providers)
        self.root = root
        self.given = given
        if root is not None:
            replica.enroller = member_id(root.admin_public)
        self.progress = progress
        self.sending = Sending()
        self.vault = replica.vault_tag
        self.anchor = bytes.fromhex(replica.config.vault.anchor)
        self.names = Names(replica, providers, self.notices)
        self.fetcher = Fetcher(replica.db, providers)

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
        async with file_lock_async(self.replica.folder / "sync.lock", wait=WAIT_FOR_OTHERS):
            yield

    def _drop_garbled(self) -> None:
        """Forget rows that the disk changed into something else than rows of their kind, which ended every sync: roots are known
        again and placed again, and objects are counted again, by this one."""
        replica, db = self.replica, self.replica.db.connection
        if strange := garbled.tables(db):
            with replica.transaction():
                garbled.forget(db, strange)
                if "objects" in strange:
                    recount_now(replica.db)
        if any(meta.is_changed(db, name) for name in NOTES):
            with replica.transaction():
                # Another process may have put a sound one there meanwhile.
                changed = [name for name in NOTES if meta.is_changed(db, name)]
                for name in changed:
                    instead = NOTES[name]
                    if instead is None:
                        meta.forget(db, [name])
                    else:
                        replica.db.set_meta(name, instead)
            if meta.NAMES in changed:
                self.notices.say(
                    "names-damaged",
                    "what this device had signed so that the memory is found by its wallet and its recovery words was damaged on the "
                    "disk. What stands at a provider is still good. If nothing was published since the words were made, make new ones: "
                    "ipfsmem keys words",
                )
        bad_heads, bad_places = heads.garbled(db), placed.garbled(db)
        if bad_heads or bad_places:
            with replica.transaction():
                heads.forget_garbled(db, bad_heads)
                placed.forget_garbled(db, bad_places)
