"""Which published roots one sync could not read because a provider was down: newer texts may be missing.

Format section 7, "An outage is no answer". It holds and judges what one sync noted; it asks no provider and writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ipfsmem.content.cid import CID
from ipfsmem.errors import ProviderError, UnreadError

_HINT = "Try again when the provider answers. What can be read now comes back with: ipfsmem recover --damaged"


class UnreadRoots:
    """Roots that names and pin lists lead to and that no provider could give, and providers that did not say which roots they have."""

    def __init__(self) -> None:
        self._why: dict[CID, ProviderError] = {}
        #: For each unread root one set for each list that shows it: the roots that the list has before it, which are newer.
        self._newer: dict[CID, list[frozenset[CID]]] = {}
        #: Providers that did not say which roots they have, and why.
        self.silent: dict[str, ProviderError] = {}
        #: Providers whose pin list could not be read, though they may have answered otherwise: that a name is empty there proves
        #: nothing.
        self.unread_lists: dict[str, ProviderError] = {}

    def note(self, root: CID, why: ProviderError) -> None:
        """Note a root that a name leads to and that could not be read."""
        self._why[root] = why
        self._newer.setdefault(root, []).append(frozenset())

    def note_listed(self, roots: Sequence[CID], failed: Mapping[CID, Exception]) -> None:
        """Of a pin list (`roots`, newest first) these could not be read; what `failed` otherwise than by an outage is not noted."""
        for at, root in enumerate(roots):
            why = failed.get(root)
            if isinstance(why, ProviderError):
                self._why[root] = why
                self._newer.setdefault(root, []).append(frozenset(roots[:at]))

    def after(self, unread: Mapping[CID, ProviderError], known: Collection[CID]) -> UnreadRoots:
        """A copy with more `unread` roots, which names lead to, and without those that are `known`: read by another way, or in
        an earlier sync."""
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
        """The unread roots."""
        return list(self._why)

    def newest(self, joined: Collection[CID]) -> list[CID]:
        """The unread roots that may hold something newer than the `joined` ones: a name leads to them, or some list shows no joined
        root before them. Devices join before they publish, so what a list shows after a joined root is most likely in that one."""
        there = set(joined)
        return [root for root in self._why if any(there.isdisjoint(newer) for newer in self._newer[root])]

    def refuse(self, joined: Collection[CID], where: str) -> None:
        """Raise UnreadError when newer texts than those of the `joined` roots may be missing, and when nothing was joined while a pin
        list could not be read: else a person would take the memory for empty, or for whole. `where`: the providers' names."""
        if not joined and self.unread_lists:
            name, why = next(iter(self.unread_lists.items()))
            raise UnreadError(
                f"no text of this memory was found at {where}, and what {name} has of it cannot be read now: {why}",
                hint=_HINT,
            )
        newest = self.newest(joined)
        if newest:
            what = "a version" if len(newest) == 1 else f"{len(newest)} versions"
            raise UnreadError(
                f"{what} of this memory, newer than what could be read at {where}, cannot be read now, so newer texts would "
                f"be missing: {self._why[newest[0]]}",
                hint=_HINT,
            )
