"""Members named by a text: a full id, otherwise the beginning of one and labels together (`ring/labels.py`)."""

from __future__ import annotations

import pytest

from ipfsmem.ring.labels import families_named
from ipfsmem.ring.operations import add_successor
from tests.support.ring_lab import hlc, new_ring, party

LAPTOP, PHONE, GUEST = party("laptop"), party("phone"), party("guest")

LABELS = {"aa11": "phone", "aa22": "laptop", "bb33": "phone", "cc44": "aa", "dd55": "aa11", "ee66": ""}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("laptop", {"aa22"}),
        ("phone", {"aa11", "bb33"}),
        ("aa11", {"aa11"}),  # a full id, although it is a label of dd55
        ("aa", {"aa11", "aa22", "cc44"}),  # the prefix of two ids, and a label
        ("bb", {"bb33"}),
        ("aa11f", set()),
        ("", set()),  # although the label of ee66 is empty, and every id begins so
        ("Phone", set()),
    ],
)
def test_text_names_members_by_id_or_label(text: str, named: set[str]) -> None:
    assert families_named(None, text, LABELS) == named


def test_all_ids_of_a_device_are_one_member() -> None:
    ring = add_successor(new_ring(LAPTOP), LAPTOP.signer, GUEST.signer, LAPTOP.id, since=hlc(6))
    labels = {LAPTOP.id: "desk", GUEST.id: "desk", PHONE.id: "phone"}
    for text in ("desk", LAPTOP.id, GUEST.id):
        assert families_named(ring, text, labels) == {LAPTOP.id}
    assert families_named(ring, "phone", labels) == {PHONE.id}
