"""A clock that was years ahead for one write is reported on both sides, corrected by a person, and nothing
is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.causal.clock import hlc_ms
from ipfsmem.device.replica import Environment
from ipfsmem.errors import UsageError
from ipfsmem.memory import Memory
from ipfsmem.ring import operations
from ipfsmem.testing.clock import SeededRandom
from ipfsmem.vault.home import Home
from tests.support.device_lab import ROOT, Lab, all_texts, body, kinds, same

YEARS = 10 * 365 * 86_400_000


class Clocks(Lab):
    """Devices whose clocks are off by `off` milliseconds."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.off: dict[str, int] = {}

    def environment(self, name: str) -> Environment:
        self._runs[name] = self._runs.get(name, 0) + 1
        return Environment(
            lambda: self.clock.ms + self.off.get(name, 0), SeededRandom(f"{name} {self._runs[name]}")
        )


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Clocks]:
    made = Clocks(tmp_path)
    yield made
    made.close()


def findings(memory: Memory, code: str) -> list[str]:
    return [f"{found.text} {found.hint}" for found in memory.check() if found.code == code]


def once_in_2036(lab: Clocks) -> tuple[Memory, Memory, Memory]:
    a, b, c = lab.three()
    lab.off["a"] = YEARS
    a.write("x", "in 2035")
    lab.off["a"] = 0
    lab.settle(a, b, c)
    return a, b, c


def test_clock_findings_are_correct_on_both_sides(lab: Clocks) -> None:
    a, b, c = once_in_2036(lab)
    b.write("y", "now")
    lab.settle(a, b, c)
    (said,) = findings(a, "clock")
    assert "2035-12" in said and "2026-01-01" in said and "--clock-is-right" in said
    assert "fit the clock" in said and "behind" not in said
    for other in (b, c):
        assert not findings(other, "clock")
        (said,) = findings(other, "clock-of")
        assert (
            said.startswith(f"texts of a ({a.device}) are dated up to 2035-12")
            and "ipfsmem vault check" in said
        )
    assert not findings(a, "clock-of")


def test_clock_that_is_behind_is_reported(lab: Clocks) -> None:
    """On that device alone both cases look the same; writes of others decide."""
    a, b, c = lab.three()
    for memory in (a, b, c):
        memory.write(f"k{memory.device[:4]}", "text")
    lab.settle(a, b, c)
    lab.off["a"] = -YEARS
    (said,) = findings(a, "clock")
    assert "this machine's clock is behind" in said and "Set it" in said and "clock-is-right" not in said
    lab.off["a"] = -30 * 60_000
    (said,) = findings(a, "clock")
    assert "one of them is wrong" in said and "clock-is-right" not in said
    lab.off["a"] = 0
    assert not findings(a, "clock")


def test_clock_ahead_is_corrected_and_ties_are_fair_again(lab: Clocks) -> None:
    a, b, c = once_in_2036(lab)
    assert abs(a.maintenance.trust_clock().clock_back_ms - YEARS) < 60_000
    assert not findings(a, "clock")
    with pytest.raises(UsageError):
        a.maintenance.trust_clock()
    a.write("tone", "a, first")
    lab.clock.advance(3_600)
    c.write("tone", "c, an hour later")
    lab.settle(a, b, c)
    same(a, b, c)
    assert body(b, "tone") == "c, an hour later" and {"a, first", "c, an hour later", "in 2035"} <= all_texts(
        b
    )
    # A text written then is replaced like any other, by a writer that has seen it.
    c.write("x", "over it")
    lab.settle(a, b, c)
    same(a, b, c)
    assert body(a, "x") == "over it" and "in 2035" not in all_texts(a)
    for other in (b, c):
        assert not findings(other, "clock-of")


def test_text_dated_in_the_future_is_kept_as_an_alternative(lab: Clocks) -> None:
    a, b, c = lab.three()
    lab.off["a"] = YEARS
    a.write("x", "in 2035")
    lab.off["a"] = 0
    a.maintenance.trust_clock()
    c.write("x", "of c, who had not seen it")
    lab.settle(a, b, c)
    same(a, b, c)
    assert {"in 2035", "of c, who had not seen it"} <= all_texts(b) and len(b.conflicts()) == 1


def test_corrected_clock_is_not_a_fork_and_survives_a_restart(lab: Clocks) -> None:
    """Commit numbers continue while the clock goes back."""
    a, b, c = once_in_2036(lab)
    a.maintenance.trust_clock()
    a.close()
    a = lab.open("a")
    assert hlc_ms(a.replica.store.frame.hlc) < lab.clock.ms + 60_000
    for n in range(3):
        a.write("y", f"text {n}")
        lab.clock.advance(4_000)
        for memory in (a, b, c):
            report = lab.sync(memory)
            assert not kinds(report) & {"equivocation", "stale", "fork-joined", "identity"}
    # A new device reads the roots of before and after together.
    d = lab.restore("d")
    assert d.restored is not None and not kinds(d.restored) & {"equivocation", "stale"}
    assert body(d, "y") == "text 2" and body(d, "x") == "in 2035"
    # Others advance their clocks by at most five minutes.
    assert hlc_ms(a.replica.store.frame.hlc) < lab.clock.ms + 6 * 60_000


def test_new_enrolment_is_valid_after_a_clock_correction(lab: Clocks) -> None:
    """Of several enrolments the one with the greatest `since` is valid."""
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    lab.off["a"] = YEARS
    a.write("x", "in 2035")
    enrol(a, b, "reader")
    lab.off["a"] = 0
    assert a.replica.ring is not None and a.replica.ring.view.members[b.device].role == "reader"
    a.maintenance.trust_clock()
    enrol(a, b, "writer")
    assert a.replica.ring.view.members[b.device].role == "writer"
    b.write("y", "may write again")
    lab.settle(a, b)
    assert body(a, "y") == "may write again"


def enrol(a: Memory, b: Memory, role: str) -> None:
    with a.replica.transaction():
        ring = a.replica.ring
        assert ring is not None
        known = b.replica.device
        device = operations.Enrollee(
            known.sign_public,
            known.box_public,
            "b",
            operations.possession(known.signer, ring.vault, box=known.box_public),
        )
        since = a.replica.store.frame.hlc
        a.replica.set_ring(operations.enrol(ring, ROOT.admin, device, role, since=since))  # type: ignore[arg-type]


def test_single_device_cannot_tell_which_clock_is_right(lab: Clocks) -> None:
    lone = Memory.create("n", "local", home=Home(folder=lab.home("l"), environment=lab.environment("l")))
    lab.off["l"] = YEARS
    lone.write("x", "text")
    lab.off["l"] = 0
    (said,) = findings(lone, "clock")
    assert "--clock-is-right" in said and "Otherwise set it" in said and "fit the clock" not in said
    lone.maintenance.trust_clock()
    assert not findings(lone, "clock")
    lone.write("x", "later")
    assert body(lone, "x") == "later"
    asyncio.run(lone.aclose())


def test_dates_beyond_the_calendar_are_reported(lab: Clocks) -> None:
    lab.off["l"] = 2**47
    lone = Memory.create("n", "local", home=Home(folder=lab.home("l"), environment=lab.environment("l")))
    lone.write("x", "text")
    lab.off["l"] = 0
    assert "9999" in findings(lone, "clock")[0] or "6" in findings(lone, "clock")[0]
    lone.close()
