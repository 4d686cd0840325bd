"""Do the sync tasks of an unlocked root: enrol this device, share keys, move the anchor (format sections 4, 7).

Statements of admins about others stay theirs: they become a root's only when the user names the member.
"""

from __future__ import annotations

from ipfsmem.device.texts_of_others import reassign_authors
from ipfsmem.errors import LimitError, MembershipError
from ipfsmem.ring import operations
from ipfsmem.ring.keyring import Ring
from ipfsmem.sync.agent_cards import revoke_expired
from ipfsmem.sync.anchors import move_anchor
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.revoke_notices import way_back
from ipfsmem.sync.steps import Joined
from ipfsmem.wallet.root_keys import RootKeys


def administer(run: SyncContext, joined: Joined) -> Ring | None:
    """Do these tasks if a root is unlocked; return the ring that anchors lead to from now on, None if unknown.

    Raises NoVaultError for an unlocked root without a ring, MembershipError if it revoked this device.
    """
    if run.root is None:
        return joined.found.anchored
    replica, root = run.replica, run.root
    if replica.ring is None:
        raise run.no_ring_error()
    with replica.transaction():
        ring = replica.ring
        if not ring.plain:
            ring = operations.give_key(ring, root.admin, replica.environment.random(32))
            ring, expired = revoke_expired(replica, ring, root)
            for name in expired:
                run.notices.say("revoked", f"the agent key {name} has expired, and is revoked")
        view, me = ring.view, replica.device.id
        # A member removed by an admin returns when the admin's statement ends; until then publishing says so.
        revoked_by_admin = view.family_of(me) in view.revoked_by
        if me not in view.members and not revoked_by_admin:
            if view.is_revoked(me):
                raise MembershipError(f"this device ({me}) was revoked permanently", hint=way_back(replica))
            if any(person.box == replica.device.box_public for person in view.members.values()):
                # Another copy of this device keeps the old one; what it opened stays in the ring.
                replica.set_device(replica.device.with_box(replica.environment.random))
            ring = _enrol_itself(run, root, ring)
        replica.set_ring(ring)
        move_anchor(run, joined, root)
        run.names.keep()
        reassign_authors(replica)
    return replica.ring


def _enrol_itself(run: SyncContext, root: RootKeys, ring: Ring) -> Ring:
    """Return the ring with this device enrolled, or unchanged with a notice if full.

    The device can read nevertheless, and a revoke makes room.
    """
    replica = run.replica
    device = replica.device
    public = operations.enrollee_of(device.signer, device.box_public, replica.config.label, ring.vault)
    try:
        ring = operations.enrol(ring, root.admin, public, "writer", since=replica.store.frame.hlc)
    except LimitError as error:
        run.notices.say(
            "not-enrolled",
            f"this device can read the vault but not publish, as the list of members is full: {error}. Revoke members with the wallet or the recovery phrase of init: ipfsmem member list, ipfsmem member revoke ID",
        )
        return ring
    replica.set_enrolled(device)
    run.notices.say(
        "enrolled",
        f"this device is now a member of the vault, as {replica.config.label or replica.device.id}",
    )
    return ring
