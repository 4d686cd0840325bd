"""What a head may bring: the greater of what its objects are and what they open to counts (format section 8)."""

from __future__ import annotations

import pytest

from ipfsmem.content.limits import Limits
from ipfsmem.sync import join
from tests.device_lab import Lab, body, lab_in, says

TEXT = "a word and then another one, " * 1_999 + "the last"  # 58 kB, half a kilobyte compressed


@pytest.fixture
def lab(tmp_path):
    with lab_in(tmp_path) as made:
        yield made


def test_small_objects_that_open_to_large_texts_are_counted(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty objects of less than 30 kB together hold 1.7 MB."""
    a, b, _ = lab.three()
    for n in range(30):
        a.write(f"k{n}", f"{n} {TEXT}")
    lab.sync(a)
    monkeypatch.setattr(join, "OWN", Limits(total_bytes=1_000_000))
    report = lab.sync(b)
    assert "at most 250000 and 1000000 are taken" in says(report, "head-refused")
    assert b.read("k0") is None
    monkeypatch.setattr(join, "OWN", Limits(total_bytes=2_000_000))
    assert not says(lab.sync(b), "head-refused")
    assert body(b, "k29") == f"29 {TEXT}"


def test_the_count_and_the_stored_bytes_are_counted(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, _ = lab.three()
    for n in range(10):
        a.write(f"k{n}", f"text {n}")
    lab.sync(a)
    for limits in (Limits(blocks=9), Limits(total_bytes=5_000)):
        monkeypatch.setattr(join, "OWN", limits)
        assert "the head brings 10 objects" in says(lab.sync(b), "head-refused")
    monkeypatch.setattr(join, "OWN", Limits(blocks=10))
    assert not says(lab.sync(b), "head-refused")
    assert body(b, "k9") == "text 9"


def test_ordinary_pulls_open_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handful of objects cannot pass the budget whatever they hold, so a pull costs what it did."""
    a, b, _ = lab.three()
    for n in range(20):
        a.write(f"k{n}", f"{n} {TEXT}")
    lab.sync(a)
    monkeypatch.setattr(join, "read_blocks", lambda *_: pytest.fail("objects were opened"))
    lab.sync(b)
    assert body(b, "k19") == f"19 {TEXT}"
