"""Context of one sync: the replica, the providers and requests to them, and notices.

The context exists for one sync. The results of a step are in its return value (`steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ipfsmem.causal.mailbox_admission import AgentRights
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

#: Returns what each agent of a vault may write, by its id.
RightsOfAgents = Callable[[Replica], Mapping[str, AgentRights]]


def no_agents(replica: Replica) -> Mapping[str, AgentRights]:
    """Return no rights: a sync that admits nothing."""
    return {}


class Sending:
    """A record of what one sync sent, and of the providers that did not accept it."""

    def __init__(self) -> None:
        #: Blocks that each provider accepted, by provider; later requests need not ask for these.
        self.taken: dict[str, set[CID]] = {}
        #: Providers that did not accept a root. Names that lead to it are not put there.
        self.without: set[str] = set()
        #: Providers that did not accept the published version, in order of failure.
        self.not_placed: list[str] = []
        self.blocks = self.bytes = 0
        #: Live blocks missing at providers after resending.
        self.missing = 0

    def count(self, blocks: int, size: int) -> None:
        """Count sent blocks and their total bytes."""
        self.blocks += blocks
        self.bytes += size


class SyncContext:
    """One sync. `root`: the unlocked wallet or recovery key; usually None.

    `named_root`: the CID of a published root that the user noted, for the case that names and lists are lost (format
    section 7); it is verified like any other. `not_opened`: providers of the vault that cannot be opened, for example
    without a token. `rights_of_agents`: returns what each agent with a card of this device's person may write, by the
    state after the join (format section 5.3).
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
        rights_of_agents: RightsOfAgents = no_agents,
        company: Company | None = None,
    ) -> None:
        assert replica.config.vault is not None and replica.vault_tag is not None
        self.replica = replica
        self.notices = notices
        #: `providers` with time limits; None if the sync waits for every provider.
        self.company = company
        self.providers = providers
        self.not_opened = not_opened
        self.where = " and ".join(provider.name for provider in providers)
        self.root = root
        self.named_root = named_root
        self.rights_of_agents = rights_of_agents
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
        """Return the explanation of an error that a refused block caused, to be appended to its message."""
        if isinstance(error, NotFoundError) and self.fetcher.refused:
            return "; " + next(iter(self.fetcher.refused.values()))
        return ""

    def no_ring_error(self) -> NoVaultError:
        """Return the error for a known vault of which this sync found no version."""
        doubt = "it was found there, and is not shown any more"
        return NoVaultError(
            f"no vault for this wallet or recovery phrase was read at {self.where}, but the search was incomplete: {doubt}",
            doubt=doubt,
        )

    def anchors(self) -> set[bytes]:
        """Return the anchor keys of the vault and of its members."""
        ring = self.replica.ring
        return {self.anchor, *(ring.view.anchors() if ring is not None else ())}
