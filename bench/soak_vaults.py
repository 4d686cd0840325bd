"""Forged vaults that this program, the browser client and the plain reader have to see alike: `python -m bench.soak vaults`.

Each seed makes a sealed vault and one of mode `ipfs`. Prints each difference with its seed: `tests.support.forged_vaults.Forge(seed)`
makes the sealed vault again, `PlainForge(seed)` the other.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

#: Seeds per Node process, of one kind of vault.
_BATCH = 25


def run(seed: int, count: int, seconds: float) -> int:
    """Compare the vaults of `count` seeds from `seed` on. Returns 1 if any was seen differently."""
    from tests.support.forged_vaults import Forge, PlainForge, differences, forged, plain_differences

    started, done, differ = time.monotonic(), 0, 0
    while (not count or done < count) and (not seconds or time.monotonic() - started < seconds):
        size = min(_BATCH, count - done) if count else _BATCH
        found: list[str] = []
        for kind in (Forge, PlainForge):
            file = forged(range(seed + done, seed + done + size), kind)
            with tempfile.TemporaryDirectory() as folder:
                found += [*differences(file, Path(folder)), *plain_differences(file)]
        done, differ = done + size, differ + len(found)
        for line in found:
            print(line)
        print(
            f"{done} sealed and {done} plain vaults in {time.monotonic() - started:.0f} s, {differ} seen differently",
            flush=True,
        )
    return 1 if differ else 0
