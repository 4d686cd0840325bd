"""Decide which published roots may be removed, with the reason for each other root (format section 7, "Unpinning").

Pure, for one provider at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipfsmem.sync.times import DAY_MS, WEEK_MS

#: Number of roots and days kept by default.
KEEP_ROOTS = 30
KEEP_DAYS = 90


class PinnedRoot(msgspec.Struct, frozen=True):
    """One root pinned at a provider, as known to this device.

    `at` is when it was first known (milliseconds since 1970 UTC), `maker` the device that made its commit.
    `verified`: its commit was verified and joined here. `named`: a member's name or an anchor points at it.
    `ring`: it holds only a key ring. `guarded`: it is the last one before a mass delete. `deletes_since`:
    texts were deleted after it, less than a day ago.
    """

    root: str
    at: int
    maker: str = ""
    verified: bool = False
    named: bool = False
    ring: bool = False
    guarded: bool = False
    deletes_since: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """Whether a root stays, and the reason in words."""

    root: str
    keep: bool
    why: str


def judge(
    pinned: Iterable[PinnedRoot],
    now: int,
    *,
    whole: bool,
    keep_roots: int = KEEP_ROOTS,
    keep_days: int = KEEP_DAYS,
) -> list[Verdict]:
    """Return a verdict for each root, newest first.

    `whole`: every object of the joined state is in the root now pinned at this provider; otherwise nothing is
    removed. The newest `keep_roots` stay whatever their age, and one per device and week for `keep_days`: a
    root's time may be its maker's claim, and no device may displace another's.
    """
    roots = sorted(pinned, key=lambda p: (p.at, p.root), reverse=True)
    weekly = _weekly(roots, now, keep_days)
    verdicts: list[Verdict] = []
    counted = 0
    for pin in roots:
        why = _reason(pin, now, whole)
        if not why:
            counted += 1
            if counted <= keep_roots:
                why = f"one of the {keep_roots} newest"
            elif pin.root in weekly:
                why = f"the last of its week, kept for {keep_days} days"
        verdicts.append(Verdict(pin.root, bool(why), why or "a newer version holds all memories"))
    return verdicts


def _reason(pin: PinnedRoot, now: int, whole: bool) -> str:
    if pin.named:
        return "the newest of a device"
    if pin.ring:
        return "new devices start from it: kept forever"
    if not pin.verified:
        return "this device has not verified and merged it"
    if pin.guarded:
        return "the last one before more than a tenth was deleted; if the delete was intended, release it: ipfsmem vault compact --drop-guarded VERSION (in Python: drop_guarded)"
    if pin.deletes_since:
        return "texts were deleted elsewhere since, less than a day ago"
    if now - pin.at < DAY_MS:
        return "less than a day old"
    if not whole:
        return "the version now kept there lacks some memories"
    return ""


def _weekly(roots: list[PinnedRoot], now: int, keep_days: int) -> set[str]:
    """Return the newest root of each device and week not older than `keep_days`; `roots` newest first."""
    newest_of: dict[tuple[str, int], str] = {}
    for pin in roots:
        if pin.verified and now - pin.at <= keep_days * DAY_MS:
            newest_of.setdefault((pin.maker, pin.at // WEEK_MS), pin.root)
    return set(newest_of.values())
