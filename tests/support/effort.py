"""How long the tests that draw their cases look: HYPOTHESIS_PROFILE chooses.

`dev` (the default) takes a small number of cases; `ci` takes many more. Both take the same cases in every run, so that a
run says the same twice and leaves nothing behind. `explore` takes five times as many as `ci`, other ones each time, and
prints how to repeat one that fails: for a night, and before a release.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
#: Whether this run looks for minutes.
THOROUGH = PROFILE != "dev"

_ANY = [HealthCheck.too_slow, HealthCheck.data_too_large]


def load() -> None:
    """Register the profiles and choose one. Before any test module is imported: their settings build on it."""
    settings.register_profile(
        "dev", deadline=None, max_examples=60, derandomize=True, suppress_health_check=_ANY
    )
    settings.register_profile(
        "ci", deadline=None, max_examples=200, derandomize=True, suppress_health_check=_ANY
    )
    settings.register_profile(
        "explore", deadline=None, max_examples=1000, suppress_health_check=_ANY, print_blob=True
    )
    settings.load_profile(PROFILE)


def cases(few: int, many: int) -> int:
    """How many cases a test takes whose cases cost more, or less, than others': `few` in a short run, `many` in the longest."""
    return {"dev": few, "explore": many}.get(PROFILE, max(few, many // 5))
