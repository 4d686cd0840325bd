"""Owner of a device by the key ring: texts of the user's own devices are own, those of other people are not."""

from __future__ import annotations

from ipfsmem.ring import operations
from tests.support.device_lab import ROOT, Lab


def test_devices_of_one_wallet_belong_to_one_person(lab: Lab) -> None:
    a, b, c = lab.three()
    assert all(one.replica.is_mine(other.device) for one in (a, b, c) for other in (a, b, c))
    assert not a.replica.is_mine("00" * 8)
    b.write("tone", "by B")
    lab.settle(a, b, c)
    reading = a.read("tone")
    assert reading is not None and reading.own
    # During a restore a device is not enrolled yet: the available key decides whose it will be.
    fresh = lab.restore("fresh").read("tone")
    assert fresh is not None and fresh.own


def test_device_of_another_wallet_belongs_to_another_person(lab: Lab) -> None:
    a, b, c = lab.three()
    with a.replica.transaction():
        ring = a.replica.ring
        assert ring is not None
        device = c.replica.device
        public = operations.enrollee_of(device.signer, device.box_public, "theirs", ring.vault, kind="agent")
        person = operations.new_person(ring.vault, device.sign_public)
        a.replica.set_ring(
            operations.enrol(ring, ROOT.admin, public, "writer", since="f" * 16, person=person)
        )
    lab.settle(a, b, c)
    c.write("tone", "by somebody else")
    lab.settle(a, b, c)
    assert not b.replica.is_mine(c.device) and not c.replica.is_mine(b.device)
    for memory, own in ((a, False), (b, False), (c, True)):
        assert memory.replica.is_mine(memory.device)
        reading = memory.read("tone")
        assert reading is not None and reading.own == own
