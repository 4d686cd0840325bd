"""An expired name, as after a year without its device, is followed, and its age is reported."""

from __future__ import annotations

from ipfsmem.content.cid import ipns_name
from ipfsmem.sync.names import DEVICE_LIFE_MS
from tests.support.device_lab import Lab, kinds, says, texts


def test_expired_record_is_used_and_reported(lab: Lab) -> None:
    a, b, _ = lab.three()
    a.write("k", "the last words of this device")
    assert "expired" not in kinds(lab.sync(a))
    lab.clock.advance(DEVICE_LIFE_MS / 1000 + 3600)
    report = lab.sync(b)
    assert texts(b)["k"] == texts(a)["k"]
    assert ipns_name(a.replica.device.sign_public) in says(report, "expired")
