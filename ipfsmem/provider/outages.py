"""Published roots that a sync could not read because a provider was down: newer texts may be missing.

Format section 7, "An outage is no answer". Holds the notes of one sync; calls no provider and writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ipfsmem.content.cid import CID
from ipfsmem.errors import ProviderError, UnreadError

_HINT = "Try again when the provider answers. To restore the readable part now: ipfsmem recover --damaged"


class UnreadRoots:
    """Roots in names and pin lists that no provider could serve, and providers that did not list their roots."""

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

    def after(self, unread: Mapping[CID, ProviderError], known: Collection[CID]) -> UnreadRoots:
        """Return a copy plus the `unread` roots of names, minus the `known` roots: read elsewhere, or in an
        earlier sync."""
        later = UnreadRoots()
        later.silent, later.unread_lists = {**self.silent}, {**self.unread_lists}
        later._why, later._newer = {**self._why}, {root: [*lists] for root, lists in self._newer.items()}
        for root, why in unread.items():
            later.note(root, why)
        for root in later._why.keys() & set(known):
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

    def refuse(self, joined: Collection[CID], where: str) -> None:
        """Raise UnreadError when texts newer than the `joined` roots may be missing, or when nothing was
        joined and a pin list was unreadable: the user would take the vault for empty, or complete. `where`:
        the providers' names."""
        if not joined and self.unread_lists:
            name, why = next(iter(self.unread_lists.items()))
            raise UnreadError(
                f"no text of this vault was found at {where}, and its texts at {name} cannot be read now: {why}",
                hint=_HINT,
            )
        newest = self.newest(joined)
        if newest:
            what = "a version" if len(newest) == 1 else f"{len(newest)} versions"
            raise UnreadError(
                f"{what} of this vault, newer than the readable ones at {where}, cannot be read now, so newer texts would "
                f"be missing: {self._why[newest[0]]}",
                hint=_HINT,
            )
