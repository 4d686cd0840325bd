"""Chooses the number of drawn cases by HYPOTHESIS_PROFILE.

`dev` (the default) draws few cases, `ci` many more; both draw the same cases in every run. `explore` draws
five times as many as `ci`, different ones each time, and prints how to repeat a failure: for a night, and
before a release."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import product
from typing import Any

from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
#: Whether this run may take minutes.
THOROUGH = PROFILE != "dev"

_ANY = [HealthCheck.too_slow, HealthCheck.data_too_large]


def load() -> None:
    """Register the profiles and choose one. Call before any test module is imported: their settings build
    on it."""
    settings.register_profile(
        "dev", deadline=None, max_examples=40, derandomize=True, suppress_health_check=_ANY
    )
    settings.register_profile(
        "ci", deadline=None, max_examples=200, derandomize=True, suppress_health_check=_ANY
    )
    settings.register_profile(
        "explore", deadline=None, max_examples=1000, suppress_health_check=_ANY, print_blob=True
    )
    settings.load_profile(PROFILE)
    if PROFILE != "explore":
        # Hypothesis also draws constants of the modules imported so far; these differ between workers, so no
        # later run would repeat a failure.
        from hypothesis.internal.conjecture import providers

        providers._get_local_constants = lambda: providers._local_constants


def cases(few: int, many: int) -> int:
    """Return the number of cases of a test whose cases cost more or less than usual: `few` in a short run,
    `many` in the longest, and in a thorough run a fifth of `many`, or the mean of both where a fifth is at
    most `few`."""
    thorough = many // 5 if many > 5 * few else (few + many) // 2
    return {"dev": few, "explore": many}.get(PROFILE, thorough)


def longest(few: int, many: int) -> int:
    """Return the maximum number of steps of a drawn history: `many` only in the longest run, because long
    histories find little more."""
    return many if PROFILE == "explore" else few


def every(other: int) -> int:
    """Return the stride over the calls or moments at which a test injects a failure: 1 in a thorough run,
    `other` in a short one."""
    return 1 if THOROUGH else other


def each_once(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return the cases of a test over a product: all in a thorough run; in a short one each value of the
    longest axis once, with values of the other axes that change from case to case, so that each occurs at
    least once.

    For axes whose values are distinguished in few places each, so that a fault in one value shows with any
    value of the others."""
    values = [list(axis) for axis in axes]
    if THOROUGH:
        return list(product(*values))
    first = max(range(len(values)), key=lambda axis: len(values[axis]))
    strides, stride = [], 1
    for axis, found in enumerate(values):
        strides.append(1 if axis == first else stride)
        stride *= 1 if axis == first else len(found)
    count = max(stride, len(values[first]))
    return [
        tuple(found[number // step % len(found)] for found, step in zip(values, strides, strict=True))
        for number in range(count)
    ]
