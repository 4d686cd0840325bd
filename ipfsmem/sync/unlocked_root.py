"""What a sync does with an unlocked root, and only with one: enrol this device, give keys to who lacks them, move the anchor.

Format sections 4 and 7. What admins said of others stays their word: that becomes a root's by a person who names it, and by
nothing else.
"""

from __future__ import annotations

from ipfsmem.device.texts_of_others import settle_persons
from ipfsmem.errors import LimitError, MembershipError, NoVaultError
from ipfsmem.ring import operations
from ipfsmem.ring.keyring import Ring
from ipfsmem.sync.anchors import move_anchor
from ipfsmem.sync.revoke_notices import way_back
from ipfsmem.sync.run import Run
from ipfsmem.sync.steps import Joined
from ipfsmem.wallet.root_keys import RootKeys


def administer(run: Run, joined: Joined) -> Ring | None:
    """Do that, where a root is unlocked; the ring that anchors lead to from now on, None where that is not known.

    Raises NoVaultError where an unlocked root has no ring, MembershipError where it revoked this device.
    """
    if run.root is None:
        return joined.found.anchored
    replica, root = run.replica, run.root
    if replica.ring is None:
        raise NoVaultError(f"no memory of this wallet, or of these words, was found at {run.where}")
    with replica.transaction():
        ring = replica.ring
        if not ring.plain:
            ring = operations.give_key(ring, root.admin, replica.world.random(32))
        view, me = ring.view, replica.device.id
        # Whom an admin put out comes back when what the admin said is ended; publishing says so until then.
        put_out_by_admin = view.family_of(me) in view.put_out_by
        if me not in view.members and not put_out_by_admin:
            if view.is_out(me):
                raise MembershipError(f"this device ({me}) was revoked, for good", hint=way_back(replica))
            if any(person.box == replica.device.box_public for person in view.members.values()):
                # Another copy of this device goes on with the old one; what it opened stays in the ring.
                replica.set_device(replica.device.with_box(replica.world.random))
            ring = _enrol_itself(run, root, ring)
        replica.set_ring(ring)
        move_anchor(run, joined, root)
        run.names.keep()
        settle_persons(replica)
    return replica.ring


def _enrol_itself(run: Run, root: RootKeys, ring: Ring) -> Ring:
    """The ring with this device in it. Where there is no room the ring stays as it is, and that is said: the device can read all the
    same, and a revoke makes room."""
    replica = run.replica
    device = replica.device
    public = operations.enrollee_of(device.signer, device.box_public, replica.config.label, ring.vault)
    try:
        ring = operations.enrol(ring, root.admin, public, "writer", since=replica.store.frame.hlc)
    except LimitError as error:
        run.notices.say(
            "not-enrolled",
            f"this device can read the memory and cannot publish, for there is no room for it: {error}. Make room with the "
            "wallet, or the words of init: ipfsmem member list, ipfsmem member revoke ID",
        )
        return ring
    replica.set_enrolled(device)
    run.notices.say(
        "enrolled", f"this device belongs to the memory now, as {replica.config.label or replica.device.id}"
    )
    return ring
