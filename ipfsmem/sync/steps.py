"""Results of the steps of a sync, frozen; and the record of unreadable roots, which discovery fills."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from ipfsmem.content.cid import CID
from ipfsmem.errors import ProviderError, UnreadError
from ipfsmem.published.root_verification import Head
from ipfsmem.ring.keyring import Ring
from ipfsmem.sync.changes import Kinds

_HINT = "Try again when the provider answers. To restore the readable part now: ipfsmem recover --damaged"


class UnreadRoots:
    """Roots in names and pin lists that no provider could serve, and providers that did not list their roots: newer texts
    may be missing (format section 7, "An outage is no answer")."""

    def __init__(self) -> None:
        self._why: dict[CID, ProviderError] = {}
        #: For each unread root, one set per list that shows it: the newer roots before it in that list.
        self._newer: dict[CID, list[frozenset[CID]]] = {}
        #: Providers that did not list their roots, and why.
        self.silent: dict[str, ProviderError] = {}
        #: Providers whose pin list was unreadable, even if other calls worked: an empty name there proves nothing.
        self.unread_lists: dict[str, ProviderError] = {}

    def note(self, root: CID, why: ProviderError) -> None:
        """Note an unreadable root that a name leads to."""
        self._why[root] = why
        self._newer.setdefault(root, []).append(frozenset())

    def note_listed(self, roots: Sequence[CID], failed: Mapping[CID, Exception]) -> None:
        """Note the roots of a pin list (`roots`, newest first) that failed; failures other than an outage are
        ignored."""
        for at, root in enumerate(roots):
            why = failed.get(root)
            if isinstance(why, ProviderError):
                self._why[root] = why
                self._newer.setdefault(root, []).append(frozenset(roots[:at]))

    def after(self, unread: Mapping[CID, ProviderError], roots: Collection[CID]) -> UnreadRoots:
        """Return a copy plus the `unread` roots of names, minus the `roots`: read elsewhere, or in an
        earlier sync."""
        later = UnreadRoots()
        later.silent, later.unread_lists = {**self.silent}, {**self.unread_lists}
        later._why, later._newer = {**self._why}, {root: [*lists] for root, lists in self._newer.items()}
        for root, why in unread.items():
            later.note(root, why)
        for root in later._why.keys() & set(roots):
            del later._why[root], later._newer[root]
        return later

    @property
    def roots(self) -> list[CID]:
        """Return the unread roots."""
        return list(self._why)

    def newest(self, joined: Collection[CID]) -> list[CID]:
        """Return the unread roots that may be newer than the `joined` ones.

        Those have a name that leads to them, or a list without a joined root before them. Devices join before
        they publish, so a root listed after a joined one is most likely contained in it.
        """
        there = set(joined)
        return [root for root in self._why if any(there.isdisjoint(newer) for newer in self._newer[root])]

    def refuse(self, joined: Collection[CID], place: str) -> None:
        """Raise UnreadError when texts newer than the `joined` roots may be missing, or when nothing was
        joined and a pin list was unreadable: the user would take the vault for empty, or complete. `place`:
        the providers' names."""
        if not joined and self.unread_lists:
            name, why = next(iter(self.unread_lists.items()))
            raise UnreadError(
                f"no text of this vault was found at {place}, and its texts at {name} cannot be read now: {why}",
                hint=_HINT,
            )
        newest = self.newest(joined)
        if newest:
            subject = "a version" if len(newest) == 1 else f"{len(newest)} versions"
            raise UnreadError(
                f"{subject} of this vault, newer than the readable ones at {place}, cannot be read now, so newer texts would "
                f"be missing: {self._why[newest[0]]}",
                hint=_HINT,
            )


class DiscoveredHeads(msgspec.Struct, frozen=True):
    """The readable and verified versions at a vault's providers."""

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
    #: Roots that could not be read because a provider was down.
    outages: UnreadRoots = msgspec.field(default_factory=UnreadRoots)
    #: Whether all pin lists were read.
    lists_read: bool = False
    #: Roots shown only by a pin list next to names.
    listed: frozenset[CID] = frozenset()
    #: Ring-only roots that an anchor names, and those that no anchor has named (yet).
    ring_roots: frozenset[CID] = frozenset()
    headless: frozenset[CID] = frozenset()
    #: The ring as shown by anchors; None if none could be read.
    anchored: Ring | None = None
    #: Heads that an earlier sync verified and held, and the device with two copies.
    held: Mapping[CID, str] = {}
    #: Whether another device's head, or the anchor, has this device in its ring.
    known_elsewhere: bool = False


class Admitted(msgspec.Struct, frozen=True):
    """The discovered heads, and those that another copy of a device made."""

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
    #: Roots that could not be read because a provider was down, and providers that did not list their roots.
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

    #: None if nothing was ever published, or nothing could be.
    root: CID | None = None
    #: Whether this sync made a new commit, or adopted another device's equal root.
    new: bool = False
    adopted: bool = False
    #: Why nothing could be published: `revoked`, `not-a-writer`, `cannot-publish`; empty when it could.
    blocked: str = ""
