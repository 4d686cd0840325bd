"""Results that one sync step hands to the next: frozen, so that no holder sees them change."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ipfsmem.content.cid import CID
from ipfsmem.provider.outages import UnreadRoots
from ipfsmem.published.root_verification import Head
from ipfsmem.ring.keyring import Ring
from ipfsmem.sync.changes import Kinds


class DiscoveredHeads(msgspec.Struct, frozen=True):
    """What is at a vault's providers, as far as readable and verified."""

    #: Verified heads by root.
    heads: Mapping[CID, Head] = {}
    #: Whether this device knew no ring when the sync began.
    fresh: bool = False
    #: Every root that was opened, whatever the outcome.
    opened: frozenset[CID] = frozenset()
    #: Roots with missing parts, which cannot be opened.
    in_part: frozenset[CID] = frozenset()
    #: Those of them that a name leads to: its signature says that they are heads.
    unread: frozenset[CID] = frozenset()
    #: Roots of names that cannot be opened, or are malformed: their devices' last publish is missing here.
    unusable: frozenset[CID] = frozenset()
    #: Roots of a name or list that were refused for their content, not because of an outage.
    refused: frozenset[CID] = frozenset()
    #: Roots that an earlier sync could not join whole, and that an outage hides now.
    later: frozenset[CID] = frozenset()
    #: What could not be read because a provider was down.
    outages: UnreadRoots = msgspec.field(default_factory=UnreadRoots)
    #: Whether all pin lists were read.
    lists_read: bool = False
    #: Roots shown only by a pin list next to names.
    listed: frozenset[CID] = frozenset()
    #: Ring-only roots that an anchor names, and those that no anchor has named (yet).
    ring_roots: frozenset[CID] = frozenset()
    headless: frozenset[CID] = frozenset()
    #: The ring as shown by anchors; None when none could be read.
    anchored: Ring | None = None
    #: Heads that an earlier sync verified and held, and the device with two copies.
    held: Mapping[CID, str] = {}
    #: Whether another device's head, or the anchor, has this device in its ring.
    known_elsewhere: bool = False


class Admitted(msgspec.Struct, frozen=True):
    """What was found, and which of its heads another copy of a device made."""

    found: DiscoveredHeads
    #: Verified heads made by another copy of their device: their numbers go back while their clock advances.
    copies: frozenset[CID] = frozenset()
    #: A head made by another copy of this device, if any.
    stranger: Head | None = None


class Joined(msgspec.Struct, frozen=True):
    """The current state, and what changed."""

    #: All that was found, older roots included.
    found: DiscoveredHeads = DiscoveredHeads()
    #: The heads with all content joined.
    heads: Mapping[CID, Head] = {}
    #: Verified heads with an unreadable part: never joined, and read on request only.
    damaged: Mapping[CID, Head] = {}
    #: Roots refused for their content, not because of an outage.
    refused: frozenset[CID] = frozenset()
    #: Roots of names with missing parts that no earlier sync joined: they may hold something new.
    lost: frozenset[CID] = frozenset()
    #: What could not be read because a provider was down; and providers that did not list their roots.
    outages: UnreadRoots = msgspec.field(default_factory=UnreadRoots)
    silent: frozenset[str] = frozenset()
    #: Memories added, changed and removed, and the number of changed entries per scope.
    kinds: Kinds = {}
    changed_in: Mapping[str, int] = {}
    #: The user's names of the devices that changed them, and the number of new heads.
    sources: tuple[str, ...] = ()
    heads_joined: int = 0
    #: Unavailable texts, and texts without room.
    not_fetched: int = 0
    left_out: int = 0
    #: Whether this device took a new id, since its state had been restored or copied.
    new_identity: bool = False
    #: Whether others know this device under its present id.
    known_elsewhere: bool = False
    #: Why nothing may be published; empty when it may.
    unsure: str = ""

    @property
    def with_content(self) -> set[CID]:
        """Return the joined heads with any content: a head of a still empty vault does not show that it
        contains older roots."""
        return {root for root, head in self.heads.items() if head.commit.commit.ctx}

    @property
    def unreadable(self) -> int:
        """Return the number of roots that may hold missing data when no head with content was joined whole, else 0.

        Those are the unreadable roots; and if no head was joined at all also the refused ones, since one may
        be a true head under a folder that someone else made.
        """
        if self.with_content:
            return 0
        refused = () if self.heads else self.refused
        return len({*self.damaged, *self.found.unread, *refused, *self.outages.roots})


class Published(msgspec.Struct, frozen=True):
    """The current target of this device's name, and how it came about."""

    #: None when nothing was ever published, or nothing could be.
    root: CID | None = None
    #: Whether this sync made a new commit, or adopted another device's equal root.
    new: bool = False
    adopted: bool = False
    #: Why nothing could be published: `revoked`, `not-a-writer`, `cannot-publish`; empty when it could.
    blocked: str = ""
