"""Clock values equal the shared vectors, never go back, and follow future clocks by a limited amount."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipfsmem.causal.clock import (
    MAX_AHEAD_MS,
    ZERO,
    corrected_hlc,
    hlc,
    hlc_after_seeing,
    hlc_ms,
    next_hlc,
)
from ipfsmem.errors import FormatError, LimitError

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures/vectors/clock.json").read_text())


def test_clock_values_equal_the_vectors() -> None:
    for case in VECTORS["next"]:
        assert next_hlc(case["last"], case["now_ms"]) == case["result"]
    for case in VECTORS["observed"]:
        assert hlc_after_seeing(case["last"], case["seen"], case["now_ms"]) == case["result"]
    for case in VECTORS["put_right"]:
        assert corrected_hlc(case["last"], case["now_ms"]) == case["result"]
    for text in VECTORS["refused"]:
        with pytest.raises(FormatError, match="clock value"):
            hlc_ms(text)
        with pytest.raises(FormatError):
            next_hlc(text, 0)


def test_clock_value_has_time_and_counter() -> None:
    value = hlc(0x019D8AEE0000, 5)
    assert value == "019d8aee00000005"
    assert hlc_ms(value) == 0x019D8AEE0000
    assert hlc(2**48 - 1, 65535) == "f" * 16
    for ms, counter in ((-1, 0), (2**48, 0), (0, -1), (0, 65536)):
        with pytest.raises(LimitError):
            hlc(ms, counter)


def test_clock_never_goes_back_and_a_full_counter_overflows() -> None:
    assert next_hlc(hlc(1000, 65535), 10) == hlc(1001, 0)
    assert next_hlc(hlc(1001, 0), 10) == hlc(1001, 1)
    assert next_hlc(hlc(1001, 1), 2000) == hlc(2000, 0)
    assert next_hlc(hlc(2000, 0), 0) == hlc(2000, 1)
    with pytest.raises(LimitError):
        next_hlc("f" * 16, 0)


def test_wall_clock_out_of_range_does_not_prevent_a_write() -> None:
    assert next_hlc(ZERO, 2**48) == hlc(2**48 - 1)
    assert next_hlc(ZERO, -5) == hlc(0, 1)


def test_clock_in_the_future_advances_others_by_five_minutes_at_most() -> None:
    ahead = hlc_after_seeing(ZERO, hlc(2**47, 9), 1000)
    assert hlc_ms(ahead) == 1000 + MAX_AHEAD_MS
    assert hlc_after_seeing(ahead, hlc(1500, 3), 1000) == ahead  # in the past by now
    assert next_hlc(hlc_after_seeing(ZERO, hlc(1500, 3), 1000), 1000) == hlc(1500, 4)
