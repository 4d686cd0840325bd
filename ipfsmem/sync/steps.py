"""What one step of a sync hands on to the next: frozen, so that nothing is changed behind the back of whoever holds it.

Nothing here decides or does anything.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ipfsmem.content.cid import CID
from ipfsmem.provider.outages import UnreadRoots
from ipfsmem.published.root_verification import Head
from ipfsmem.ring.keyring import Ring
from ipfsmem.sync.changes import Kinds


class Found(msgspec.Struct, frozen=True):
    """What stands at the providers of a memory, as far as it could be read and verified."""

    #: Verified heads by root.
    heads: Mapping[CID, Head] = {}
    #: Whether this device knew no ring when the sync began.
    fresh: bool = False
    #: Every root that was opened, whatever came of it.
    opened: frozenset[CID] = frozenset()
    #: Roots of which parts are missing, so that they cannot be opened.
    in_part: frozenset[CID] = frozenset()
    #: Those of them that a name leads to: the name's signature says that they are heads.
    unread: frozenset[CID] = frozenset()
    #: Those that a name leads to and that cannot be opened, or are malformed: what their devices published last is not here.
    unusable: frozenset[CID] = frozenset()
    #: Roots that a name or a list showed and that were not used, for what they are and not for an outage.
    refused: frozenset[CID] = frozenset()
    #: Roots that an earlier sync could not join whole, and that an outage hides in this one.
    later: frozenset[CID] = frozenset()
    #: What stands somewhere and could not be read, for a provider was down.
    outages: UnreadRoots = msgspec.field(default_factory=UnreadRoots)
    #: Whether all pin lists were read.
    lists_read: bool = False
    #: Roots that only a pin list beside names showed.
    listed: frozenset[CID] = frozenset()
    #: Roots with a ring alone that an anchor names, and those that no anchor has named (yet).
    ring_roots: frozenset[CID] = frozenset()
    headless: frozenset[CID] = frozenset()
    #: What anchors show of the ring; None when none could be read.
    anchored: Ring | None = None
    #: Heads that an earlier sync verified and held, and the device that has two copies.
    held: Mapping[CID, str] = {}
    #: Whether another device's head, or the anchor, has this device in its ring.
    known_elsewhere: bool = False


class Admitted(msgspec.Struct, frozen=True):
    """What was found, and which of its heads another copy of a device made."""

    found: Found
    #: Verified heads that another copy of their device made: their numbers go back while their clock goes on.
    copies: frozenset[CID] = frozenset()
    #: A head that another copy of this device made, when there is one.
    stranger: Head | None = None


class Joined(msgspec.Struct, frozen=True):
    """What is in the state now, and what changed by that."""

    #: All that was found, older roots included.
    found: Found = Found()
    #: The heads of which all content is joined.
    heads: Mapping[CID, Head] = {}
    #: Verified heads of which a part cannot be read: never joined, and read on request only.
    damaged: Mapping[CID, Head] = {}
    #: Roots that were not used, for what they are and not for an outage.
    refused: frozenset[CID] = frozenset()
    #: Roots that a name leads to, of which parts are missing, and that no earlier sync joined: they may hold something new.
    lost: frozenset[CID] = frozenset()
    #: What stands somewhere and could not be read, for a provider was down; and providers that did not say what they have.
    outages: UnreadRoots = msgspec.field(default_factory=UnreadRoots)
    silent: frozenset[str] = frozenset()
    #: Which memories were added, changed and removed, and how many entries of which scope.
    kinds: Kinds = {}
    changed_in: Mapping[str, int] = {}
    #: The devices whose changes these were, as their person calls them, and how many of the heads were news.
    sources: tuple[str, ...] = ()
    heads_joined: int = 0
    #: Texts that could not be had, and such as found no room.
    not_fetched: int = 0
    left_out: int = 0
    #: Whether this device took a new id, for its state had been restored or copied.
    new_identity: bool = False
    #: Whether others know this device under its present id.
    known_elsewhere: bool = False
    #: Why nothing may be published; empty when it may.
    unsure: str = ""

    @property
    def with_content(self) -> set[CID]:
        """The heads that were joined and hold anything: one of a memory that nobody had written in yet says of no older root that it
        stands in it."""
        return {root for root, head in self.heads.items() if head.commit.commit.ctx}

    @property
    def unreadable(self) -> int:
        """When no head with any content could be joined whole: how many roots may hold what is missing, else 0. Those are the roots
        that cannot be read; and where no head was joined at all also those that were refused, for one may be a true head under a
        folder that somebody else made."""
        if self.with_content:
            return 0
        refused = () if self.heads else self.refused
        return len({*self.damaged, *self.found.unread, *refused, *self.outages.roots})


class Published(msgspec.Struct, frozen=True):
    """What this device's name points at now, and how that came."""

    #: None when nothing was ever published, or nothing could be.
    root: CID | None = None
    #: Whether this sync made a new commit, or took over another device's root that says the same.
    new: bool = False
    adopted: bool = False
    #: Why nothing could be published: `revoked`, `not-a-writer`, `cannot-publish`; empty when it could.
    blocked: str = ""
