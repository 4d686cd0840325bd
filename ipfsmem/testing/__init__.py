"""Test doubles: a hostile provider in memory, a manual clock, seeded randomness.

For our own tests and for those of programs that use ipfsmem. Everything is deterministic, nothing touches network, disk or the
real clock. Nothing here is imported by the rest of the package.
"""

from __future__ import annotations

from ipfsmem.testing.clock import MockClock, SeededRandom
from ipfsmem.testing.simulator import Exchange, Faults, SimCloud, SimProvider

__all__ = ["Exchange", "Faults", "MockClock", "SeededRandom", "SimCloud", "SimProvider"]
