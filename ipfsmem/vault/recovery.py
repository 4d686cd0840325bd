"""Create further recovery phrases after `init`, enrol them in the ring, and verify that they find the vault.

The phrase of `init` is a root of the vault. A later one is an admin enrolled by a root, with its own anchor, like a
second wallet (format section 4): it restores the vault in the same ways and, unlike a root, can be revoked. No phrase
is kept or shown here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from ipfsmem.content.cid import ipns_name
from ipfsmem.device.replica import Environment, Replica
from ipfsmem.errors import IpfsmemError, MembershipError
from ipfsmem.provider.contract import Provider
from ipfsmem.ring import operations
from ipfsmem.ring.keyring import Ring
from ipfsmem.ring.statements import member_id
from ipfsmem.sync.names import ANCHOR_LIFE_MS, Names
from ipfsmem.sync.report import Notice, Notices, SyncReport
from ipfsmem.vault.creating import scratch_replica
from ipfsmem.vault.finding import find_vault
from ipfsmem.vault.owner import revoked_owner_error
from ipfsmem.wallet.root_keys import RootKeys

#: Prefix of the label of later phrases; a date follows. The field `kind` tells what they are.
LABEL: Final = "recovery words"
#: Sync notices after which not all providers may show what was published.
_NOT_EVERYWHERE: Final = {
    "provider-down",
    "provider-refused",
    "channel-down",
    "not-opened",
    "cannot-publish",
    "not-a-writer",
}


class Words(msgspec.Struct, frozen=True):
    """A valid recovery phrase, as described by the ring. `root`: that of `init`, which nobody can revoke."""

    id: str
    label: str
    root: bool


class NewWords(msgspec.Struct, frozen=True):
    """24 new words, shown once and never stored; `id` and `label` are their member's.

    `older`: all phrases that were valid before and still are. `problem`: why the new one may not be published
    everywhere; empty when it is: then a search with only these words found the vault.
    """

    id: str
    label: str
    words: list[str]
    older: list[Words]
    problem: str
    report: SyncReport | None

    def __repr__(self) -> str:
        return f"NewWords({self.id!r}, {self.label!r}, {len(self.words)} words)"


def words_of(ring: Ring | None) -> list[Words]:
    """Return the valid recovery phrases in the ring, that of `init` first, then by date."""
    if ring is None:
        return []
    view = ring.view
    people = [p for p in view.members.values() if p.kind == "words" and p.role == "admin"]
    people.sort(key=lambda person: (person.id not in view.rights.root_ids, person.since, person.id))
    return [Words(p.id, p.label, p.id in view.rights.root_ids) for p in people]


def refuse_who_cannot_enrol(ring: Ring | None, root: RootKeys) -> None:
    """Refuse keys that cannot enrol an admin, before anything is created. Raises MembershipError, WrongWalletError."""
    if ring is None or root.admin_public in ring.view.roots:
        return
    me = member_id(root.admin_public)
    if me in ring.view.revoked | ring.view.must_exclude:
        raise revoked_owner_error(root)
    who = "this recovery phrase" if root.kind == "recovery" else "this wallet"
    if not ring.view.may_administer(me):
        raise MembershipError(
            f"{who} does not belong to this vault",
            hint="Check the wallet, or each word of the recovery phrase.",
        )
    raise MembershipError(
        f"a new recovery phrase requires a first key of this vault, and {who} came later",
        hint="Use the wallet that created it, the recovery phrase shown at init, or the device of a vault without a wallet.",
    )


def enrol_words(replica: Replica, root: RootKeys, words: RootKeys) -> str:
    """Enrol a recovery key and sign the anchor from it to the one that `root` moves (one transaction). Return
    its label."""
    with replica.transaction():
        ring = replica.ring
        assert ring is not None
        made_at = datetime.fromtimestamp(replica.environment.now() / 1000, UTC)
        label = f"{LABEL} of {made_at:%Y-%m-%d %H:%M} UTC"
        public = operations.enrollee_of(
            words.admin, words.box_public, label, ring.vault, kind="words", anchor=words.head_public
        )
        since = replica.store.frame.hlc
        replica.set_ring(operations.enrol(ring, root.admin, public, "admin", since=since))
        names = Names(replica, (), Notices())
        leads = f"/ipns/{ipns_name(root.head_public)}"
        names.sign(words.head_seed, words.head_public, leads, ANCHOR_LIFE_MS)
        names.keep()
    return label


async def why_words_may_fail(
    words: RootKeys,
    vault: str,
    providers: Sequence[Provider],
    notices: Iterable[Notice],
    environment: Environment,
    *,
    sealed: bool,
) -> str:
    """Search for the vault like a new device, with only these words; return why that may fail, or ""."""
    for notice in notices:
        if notice.kind in _NOT_EVERYWHERE:
            return notice.text
    scratch = scratch_replica(environment)
    try:
        config = await find_vault(words, providers, scratch, sealed=sealed)
    except IpfsmemError as error:
        return f"a search with only the new recovery phrase did not find the vault: {error}"
    finally:
        scratch.close()
    return "" if config.tag == vault else f"the new recovery phrase leads to vault {config.tag}"
