"""Roots that are removed by the rules of format section 7, and no others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.sync.retention import PinnedRoot, judge
from ipfsmem.sync.times import DAY_MS, WEEK_MS

NOW = 1_000 * DAY_MS


def kept(pins: list[PinnedRoot], **options: object) -> dict[str, str]:
    verdicts = judge(pins, NOW, **({"whole": True, "keep_roots": 0, "keep_days": 0} | options))  # type: ignore[arg-type]
    return {v.root: v.why for v in verdicts if v.keep}


OLD = PinnedRoot("old", NOW - 30 * DAY_MS, verified=True)


def test_old_superseded_root_is_removed() -> None:
    assert kept([OLD]) == {}


def test_each_retention_rule_keeps_its_root() -> None:
    for change in (
        {"named": True},
        {"ring": True},
        {"verified": False},
        {"guarded": True},
        {"deletes_since": True},
        {"at": NOW - DAY_MS + 1},
    ):
        pin = PinnedRoot(**({"root": "r", "at": OLD.at, "verified": True} | change))  # type: ignore[arg-type]
        assert kept([pin]), change
    assert kept([OLD], whole=False)


def test_newest_roots_and_weeks_are_kept() -> None:
    pins = [PinnedRoot(str(n), NOW - 2 * DAY_MS - n * DAY_MS, verified=True) for n in range(120)]
    found = kept(pins, keep_roots=5, keep_days=90)
    assert {str(n) for n in range(5)} <= found.keys()
    weeks = {pin.at // WEEK_MS for pin in pins if NOW - pin.at <= 90 * DAY_MS}
    assert {pin.at // WEEK_MS for pin in pins if pin.root in found} == weeks
    assert len(found) <= 5 + len(weeks)


def test_weekly_root_is_kept_per_device() -> None:
    """A writer's dates are its own claim."""
    week = NOW - 3 * WEEK_MS
    honest = [PinnedRoot(f"h{n}", week + n, maker="a", verified=True) for n in range(2)]
    late = [PinnedRoot(f"m{n}", week + 100 + n, maker="m", verified=True) for n in range(2)]
    assert kept([*honest, *late], keep_days=90).keys() == {"h1", "m1"}


pins = st.lists(
    st.builds(
        PinnedRoot,
        root=st.uuids().map(str),
        at=st.integers(0, NOW),
        verified=st.booleans(),
        named=st.booleans(),
        ring=st.booleans(),
        guarded=st.booleans(),
        deletes_since=st.booleans(),
        maker=st.sampled_from("ab"),
    ),
    max_size=60,
)


@given(pins, st.booleans(), st.integers(0, 40), st.integers(0, 200))
def test_root_kept_by_any_rule_is_never_removed(
    found: list[PinnedRoot], whole: bool, roots: int, days: int
) -> None:
    gone = {v.root for v in judge(found, NOW, whole=whole, keep_roots=roots, keep_days=days) if not v.keep}
    for pin in found:
        if pin.root in gone:
            assert whole and pin.verified and not (pin.named or pin.ring or pin.guarded or pin.deletes_since)
            assert NOW - pin.at >= DAY_MS
