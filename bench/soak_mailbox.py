"""The mailbox of a vault in random histories of full devices and agents' processes: nothing that was acknowledged may be lost."""

from __future__ import annotations

import time
from collections import Counter

#: Plays between two progress lines.
EVERY = 200


def run(seed: int, count: int, seconds: float) -> int:
    """Play `count` histories, or for `seconds`, from this seed on; an interrupted run continues from the
    seed it printed last. Returns 1 if one lost a write."""
    from tests.support.mailbox_lab import judge, play

    begin, totals, failed, first, done = time.process_time(), Counter[str](), 0, seed, 0
    while (not count or done < count) and (not seconds or time.process_time() - begin < seconds):
        world = play(seed)
        try:
            judge(world)
        except AssertionError as error:
            failed += 1
            print(f"seed {seed}: {error}", flush=True)
        totals.update(world.counts)
        seed, done = seed + 1, done + 1
        if not done % EVERY or done == count:
            facts = ", ".join(f"{number:,} {name}" for name, number in totals.items())
            spent = time.process_time() - begin
            print(
                f"seeds {first} to {seed - 1}: {failed} failed; {facts}; {spent:.0f} s of processor time",
                flush=True,
            )
    return int(failed > 0)
