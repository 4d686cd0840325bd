"""The parsers on mutated inputs: differences between Python, TypeScript and the plain reader of the tests."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

#: Inputs per Node process.
BATCH = 20_000


def run(seed: int, count: int, seconds: float) -> int:
    """Compare `count` inputs, or for `seconds`; each batch has the next seed. Returns 1 if one was parsed
    differently."""
    os.environ["IPFSMEM_REQUIRE_COUNTERPARTS"] = "1"
    from tests.interop.counterparts import built_web
    from tests.support.parsers import PIECES, differences

    node = shutil.which("node")
    if node is None:
        print("node is not installed")
        return 1
    program, begin, done, found = built_web() / "parsers.js", time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        while (not count or done < count) and (not seconds or time.monotonic() - begin < seconds):
            batch = min(BATCH, count - done) if count else BATCH
            for one in differences(node, program, Path(scratch), seed, batch, (None, PIECES)):
                found += 1
                print(
                    f"{one.parser} {one.given!r}\n  python     {one.python!r}\n  typescript {one.typescript!r}\n  plain      {one.plain!r}"
                )
            done, seed = done + batch, seed + 1
            print(f"{done:,} inputs, {found} differences, {time.monotonic() - begin:.0f} s", flush=True)
    return int(found > 0)
