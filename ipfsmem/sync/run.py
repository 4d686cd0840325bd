"""What the parts of one sync share: the replica, the providers and what was asked of them, and what was said so far.

It holds; it decides nothing. What a step found out is not here but in the value that it returns (`steps`). Everything in it
lives for one sync only.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipfsmem.content.cid import CID
from ipfsmem.device.replica import Replica
from ipfsmem.errors import IpfsmemError, NotFoundError
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
    """One sync. `root` is the unlocked wallet or recovery key, None in everyday use. `named_root` is the CID of a published root that a person
    wrote down, where names and lists are lost (format section 7); it is verified like any other. `not_opened` are providers of
    the memory that take no part for want of a token or the like."""

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
        #: Those of `providers` that are bounded in time, and what the run is to them; None where each is waited for.
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
        """What a refused block adds to an error that it caused."""
        if isinstance(error, NotFoundError) and self.fetcher.refused:
            return "; " + next(iter(self.fetcher.refused.values()))
        return ""

    def anchors(self) -> set[bytes]:
        """The anchor keys of the vault and of all members that have one."""
        ring = self.replica.ring
        return {self.anchor, *(ring.view.anchors() if ring is not None else ())}
