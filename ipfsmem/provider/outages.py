"""What stands somewhere and could not be read in this sync, because a provider was down: newer texts may be missing.

Format section 7, "An outage is no answer". It remembers and judges for one sync; it asks nobody and writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ipfsmem.content.cid import CID
from ipfsmem.errors import ProviderError, UnreadError

_HINT = "Try again when the provider answers. What can be read now comes back with: ipfsmem recover --damaged"


class Unread:
    """Roots that names and lists show and that nobody could give now, and places of which not even that is known."""

    def __init__(self) -> None:
        self._why: dict[CID, ProviderError] = {}
        #: For each of them and each list that shows it, the roots that the list has before it.
        self._newer: dict[CID, list[frozenset[CID]]] = {}
        #: Providers that did not say which roots they have, and why.
        self.silent: dict[str, ProviderError] = {}
        #: Providers whose list could not be read, whatever else they answered: an empty name there proves nothing.
        self.listless: dict[str, ProviderError] = {}

    def note(self, root: CID, why: ProviderError) -> None:
        """A name leads to a root that could not be read."""
        self._why[root] = why
        self._newer.setdefault(root, []).append(frozenset())

    def note_listed(self, roots: Sequence[CID], failed: Mapping[CID, Exception]) -> None:
        """A list, newest first, and what could not be read of it."""
        for at, root in enumerate(roots):
            why = failed.get(root)
            if isinstance(why, ProviderError):
                self._why[root] = why
                self._newer.setdefault(root, []).append(frozenset(roots[:at]))

    def after(self, unread: Mapping[CID, ProviderError], known: Collection[CID]) -> Unread:
        """The same with further roots that names lead to, and without what was read after all, by another way or in an
        earlier sync."""
        later = Unread()
        later.silent, later.listless = {**self.silent}, {**self.listless}
        later._why, later._newer = {**self._why}, {root: [*lists] for root, lists in self._newer.items()}
        for root, why in unread.items():
            later.note(root, why)
        for root in later._why.keys() & set(known):
            del later._why[root], later._newer[root]
        return later

    @property
    def roots(self) -> list[CID]:
        """What is still unread."""
        return list(self._why)

    def newest(self, joined: Collection[CID]) -> list[CID]:
        """Those of which there is no sign that they are the past: some list shows no joined root as newer, or a name leads
        there. Devices join before they publish, so what stands behind a joined root is most likely in it."""
        there = set(joined)
        return [root for root in self._why if any(there.isdisjoint(newer) for newer in self._newer[root])]

    def refuse(self, joined: Collection[CID], where: str) -> None:
        """Raises UnreadError when newer texts than those of the joined roots stand there and could not be read, and when
        nothing was found while a list could not be read: that is no empty memory that is back."""
        if not joined and self.listless:
            name, why = next(iter(self.listless.items()))
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
