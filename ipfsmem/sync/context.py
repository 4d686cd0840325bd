"""Shared context of one sync: the replica, the providers and requests to them, and notices.

Holds data for one sync only and decides nothing. A step's results are in its return value (`steps`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ipfsmem.content.cid import CID
from ipfsmem.device.replica import Replica
from ipfsmem.errors import IpfsmemError, NotFoundError, NoVaultError
from ipfsmem.provider.contract import Provider
from ipfsmem.provider.opening import NotOpened
from ipfsmem.ring.statements import member_id
from ipfsmem.sync.company import Company
from ipfsmem.sync.fetch import Fetcher
from ipfsmem.sync.names import Names
from ipfsmem.sync.progress import Progress
from ipfsmem.sync.report import Notices
from ipfsmem.wallet.root_keys import RootKeys


class Sending:
    """Record of what one sync sent, and who did not accept it."""

    def __init__(self) -> None:
        #: Blocks that each provider accepted, by provider: not requested again before they are read.
        self.taken: dict[str, set[CID]] = {}
        #: Providers that did not accept a root: no name that leads to it is put there.
        self.without: set[str] = set()
        #: Providers that did not accept what was published, in order of failure.
        self.not_placed: list[str] = []
        self.blocks = self.bytes = 0
        #: Live blocks missing at providers after resending.
        self.missing = 0

    def count(self, blocks: int, size: int) -> None:
        """Count sent blocks and their total bytes."""
        self.blocks += blocks
        self.bytes += size


class SyncContext:
    """One sync. `root`: the unlocked wallet or recovery key, None in everyday use.

    `named_root`: the CID of a published root that the user wrote down, when names and lists are lost (format
    section 7); verified like any other. `not_opened`: providers of the vault that take no part, for want of a
    token or the like.
    """

    def __init__(
        self,
        replica: Replica,
        providers: Sequence[Provider],
        root: RootKeys | None,
        progress: Progress,
        notices: Notices,
        *,
        named_root: CID | None = None,
        not_opened: Sequence[NotOpened] = (),
        company: Company | None = None,
    ) -> None:
        assert replica.config.vault is not None and replica.vault_tag is not None
        self.replica = replica
        self.notices = notices
        #: `providers` with a time limit each; None if the sync waits for every provider.
        self.company = company
        self.providers = providers
        self.not_opened = not_opened
        self.where = " and ".join(provider.name for provider in providers)
        self.root = root
        self.named_root = named_root
        if root is not None:
            replica.enroller = member_id(root.admin_public)
        self.progress = progress
        self.sending = Sending()
        self.vault = replica.vault_tag
        self.anchor = bytes.fromhex(replica.config.vault.anchor)
        self.names = Names(replica, providers, self.notices)
        in_order = providers if company is None else company.in_order()
        self.fetcher = Fetcher(replica.db, in_order, not_opened)

    def why(self, error: IpfsmemError) -> str:
        """Return what a refused block adds to an error that it caused."""
        if isinstance(error, NotFoundError) and self.fetcher.refused:
            return "; " + next(iter(self.fetcher.refused.values()))
        return ""

    def no_ring_error(self) -> NoVaultError:
        """Return the error for a known vault of which this sync found no version."""
        doubt = "it was found there, and is not shown any more"
        return NoVaultError(
            f"no vault of this wallet or recovery phrase was read at {self.where}, but the search was incomplete: {doubt}",
            doubt=doubt,
        )

    def anchors(self) -> set[bytes]:
        """Return the anchor keys of the vault and of its members."""
        ring = self.replica.ring
        return {self.anchor, *(ring.view.anchors() if ring is not None else ())}
