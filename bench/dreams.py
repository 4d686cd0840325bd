"""Dreams: time and memory of a proposal over a whole vault."""

from __future__ import annotations

import resource
import time

from bench.context import Context
from bench.process import VAULT_NAME, unlock

#: Budget over 10,000 memories.
BUDGET = 10.0


def dreams(ctx: Context) -> None:
    """Measure a dry run over the corpus, in which each tenth memory is duplicated."""
    from ipfsmem.memory import Memory

    home = ctx.fresh("dreams")
    with Memory.create(VAULT_NAME, "encrypted-ipfs", unlock=unlock(), passphrase=False, home=home) as memory:
        memory.bundles.import_(ctx.folder.parent)
        for number, text in enumerate(list(ctx.files.values())[::10]):
            memory.write(f"twin_{number}", text.decode("utf-8", "replace"))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        found = memory.dreams.propose()
        took = time.perf_counter() - started
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    changes = sum(len(step.changes) for step in found.steps) + found.left
    ctx.add(
        "dream, dry run",
        took,
        runs=1,
        budget_seconds=BUDGET if ctx.size <= 10_000 else None,
        note=f"{found.looked_at:,} memories; {changes:,} changes found; peak memory grew by {more} MiB",
    )
