"""The operation `members.list`: the devices, wallets and recovery phrases with access to a vault."""

from __future__ import annotations

from ipfsmem.answer import Answer
from ipfsmem.operation import Items, View, operation
from ipfsmem.sync.removals import Removal


class Member(Answer, frozen=True, kw_only=True):
    """One id of a member. `family`: first id of its device; `sign`, `box`: public keys in hex."""

    id: str
    role: str
    label: str
    kind: str
    family: str
    this_device: bool
    sign: str
    box: str
    #: Whether it is a member since the vault was created.
    root: bool
    #: When this device first saw its last version; None if it is not known to have published.
    heard: int | None


class SealingKey(Answer, frozen=True, kw_only=True):
    """The current encryption key: its number and its name."""

    epoch: int
    ek: str


class MemberList(Items[Member], frozen=True, kw_only=True):
    """The members of a vault, revoked members, and the current encryption key. `reason`: why there is no key.
    It is a sequence of its `members`."""

    members: tuple[Member, ...]
    revoked: list[str]
    removed: list[Removal]
    seals: SealingKey | None
    reason: str


@operation(
    name="members.list",
    summary="List the members",
    right="read",
    about="memory",
    command="member list",
    http="GET /v1/members",
)
def list_(view: View) -> MemberList:
    """List the members that this device knows: those since the creation of the vault first, then by role and label.

    All ids of a device have the label under which it was added.
    """
    from ipfsmem.device.tables import heads
    from ipfsmem.memories.writers import members_of
    from ipfsmem.sync.removals import removals

    replica = view.opened.replica
    ring, heard = replica.ring, heads.last_seen(replica.db.connection)
    order = {"admin": 0, "writer": 1, "reader": 2}
    members = sorted(members_of(replica), key=lambda one: (one.rank, order[one.role], one.label, one.id))
    roots = ring.view.rights.root_ids if ring is not None else frozenset()
    sealing = ring.view.sealing if ring is not None else None
    return MemberList(
        members=tuple(
            Member(
                id=one.id,
                role=one.role,
                label=one.label,
                kind=one.kind,
                family=one.family,
                this_device=one.id == view.opened.device,
                sign=one.sign.hex(),
                box=one.box.hex(),
                root=one.id in roots,
                heard=heard.get(one.id),
            )
            for one in members
        ),
        revoked=sorted(ring.view.revoked) if ring is not None else [],
        removed=removals(ring),
        seals=SealingKey(epoch=sealing.epoch, ek=sealing.id) if sealing else None,
        reason=ring.view.reason if ring is not None else "",
    )
