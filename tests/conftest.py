"""Profiles of hypothesis: `dev` (the default) keeps a run short, `ci` looks for minutes; HYPOTHESIS_PROFILE chooses."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_ANY = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("dev", deadline=None, suppress_health_check=_ANY)
settings.register_profile("ci", deadline=None, max_examples=1000, suppress_health_check=_ANY, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
