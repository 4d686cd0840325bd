"""How long the tests that draw their cases look: HYPOTHESIS_PROFILE chooses.

`dev` (the default) takes a small number of cases; `ci` takes many more. Both take the same cases in every run, so that a
run says the same twice and leaves nothing behind. `explore` takes five times as many as `ci`, other ones each time, and
prints how to repeat one that fails: for a night, and before a release.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import product
from typing import Any

from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
#: Whether this run looks for minutes.
THOROUGH = PROFILE != "dev"

_ANY = [HealthCheck.too_slow, HealthCheck.data_too_large]


def load() -> None:
    """Register the profiles and choose one. Before any test module is imported: their settings build on it."""
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
        # Hypothesis also draws what stands as a constant in the modules imported so far: other ones in each worker, so that what
        # a run found no later run did.
        from hypothesis.internal.conjecture import providers

        providers._get_local_constants = lambda: providers._local_constants


def cases(few: int, many: int) -> int:
    """How many cases a test takes whose cases cost more, or less, than others': `few` in a short run, `many` in the longest, and
    in a thorough one a fifth of these, or halfway between the two where a fifth would be no more than `few`."""
    thorough = many // 5 if many > 5 * few else (few + many) // 2
    return {"dev": few, "explore": many}.get(PROFILE, thorough)


def longest(few: int, many: int) -> int:
    """How many steps a drawn history has at most: longer ones cost more than further ones find, so `many` in the longest run only."""
    return many if PROFILE == "explore" else few


def every(other: int) -> int:
    """The step in which a test walks through calls or moments at which something fails: each of them in a thorough run, in a short
    one every second (`other` is 2), third, and so on."""
    return 1 if THOROUGH else other


def each_once(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The cases of a test that goes over a product: all of it in a thorough run; in a short one each value of the longest axis
    once, beside values of the others that change from case to case, so that each of those comes at least once too.

    For axes whose values are told apart in few places each, so that a fault in one value shows beside any value of the others.
    """
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
