"""Working state of a sync's join: joined, held and dropped heads, and the result for the next step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import heads
from ipfsmem.errors import ProviderError
from ipfsmem.published.root_verification import Head
from ipfsmem.ring.labels import label_and_id
from ipfsmem.sync.changes import Kinds
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.identity import AdoptionResult
from ipfsmem.sync.report import named
from ipfsmem.sync.steps import Admitted, Joined


class JoinWork:
    """The work of one join: its inputs (`run`, `admitted`) and its results."""

    def __init__(self, run: SyncContext, admitted: Admitted) -> None:
        self.run = run
        self.admitted = admitted
        self.found = admitted.found
        self.heads = dict(admitted.found.heads)
        self.refused = set(admitted.found.refused)
        self.known_elsewhere = admitted.found.known_elsewhere
        self.damaged: dict[CID, Head] = {}
        #: Text and detail of the notice for each damaged head.
        self.why_damaged: dict[CID, tuple[str, str]] = {}
        #: Held heads, by the devices whose ids may still be in use.
        self.held: dict[tuple[str, ...], list[CID]] = {}
        #: Adoptions in this sync, by kind of notice.
        self.adopted: dict[str, list[AdoptionResult]] = {}
        #: Whether a provider may still have missing bodies: one was not asked yet, or did not answer.
        self.unsure_of_bodies = True
        self.unsure = ""
        self.new_identity = False
        self.kinds: Kinds = {}
        self.changed_in: Counter[str] = Counter()
        self.sources: list[str] = []
        self.heads_joined = self.not_fetched = self.left_out = 0

    def called(self, devices: Iterable[str]) -> str:
        """Return the user's names of these devices, for one notice."""
        return named(label_and_id(self.run.replica.ring, device) for device in sorted(devices))

    def put_off(self, root: CID, error: ProviderError) -> None:
        """Defer a head that cannot be read now to a later sync. It blocks nothing else."""
        outages = self.found.outages.after({root: error}, ())
        # It was opened only in part.
        opened = self.found.opened - {root}
        self.found = msgspec.structs.replace(self.found, outages=outages, opened=opened)
        self.run.notices.put_off(root, error)

    def joined(self) -> Joined:
        """Return the result for the next step."""
        discovered, run = self.found, self.run
        outages, before = discovered.outages, set[CID]()
        if outages.roots or discovered.unread:
            before = joined_before(run.replica)
            outages = outages.after({}, {*discovered.opened, *discovered.headless, *before})
        unread_lists = {name for name in outages.unread_lists if not run.names.tells_of_all(name)}
        # To a new device, a provider of names alone is not one that stores this vault.
        keeping = {
            p.name for p in run.providers if not discovered.fresh or p.capabilities.put or p.capabilities.pin
        }
        return Joined(
            found=self.found,
            heads=self.heads,
            damaged=self.damaged,
            refused=frozenset(self.refused),
            lost=discovered.unread - before,
            outages=outages,
            silent=frozenset(keeping & {*outages.silent, *run.names.silent, *unread_lists}),
            kinds=self.kinds,
            changed_in=dict(self.changed_in),
            sources=tuple(self.sources),
            heads_joined=self.heads_joined,
            not_fetched=self.not_fetched,
            left_out=self.left_out,
            new_identity=self.new_identity,
            known_elsewhere=self.known_elsewhere,
            unsure=self.unsure,
        )


def joined_before(replica: Replica) -> set[CID]:
    """Return the roots of heads joined in the past, as far as recorded."""
    return {parse_cid(root) for root in heads.roots(replica.db.connection)}
