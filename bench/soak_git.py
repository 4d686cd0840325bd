"""Writers that race for one branch and are killed at any moment: `python -m bench.soak git`.

Two and five processes publish to one bare repository, half of them from one cache repository; each is killed
after a time drawn from the seed, and begun again. In the end a new device must read every publish that was
acknowledged, and `git fsck` finds nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Seconds after which a writer is killed, at least and at most, beyond its start.
_LIVES = (0.2, 1.5)
#: Publishes after which the history is replaced.
_SQUASH = "8"


def run(seed: int, count: int, seconds: float) -> int:
    """Race until `count` publishes were acknowledged or `seconds` are over, at least once with two and once with five writers.

    Returns 1 if a publish was lost."""
    chance, started = random.Random(seed), time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        subprocess.run(["git", "init", "-q", "--bare", folder / "memory.git"], check=True)
        killed, turn = 0, 0
        while turn < 2 or (
            (not count or len(_acknowledged(folder)) < count)
            and (not seconds or time.monotonic() - started < seconds)
        ):
            killed += _race(folder, chance, writers=(2, 5)[turn % 2], turn=turn)
            turn += 1
            print(
                f"{len(_acknowledged(folder))} publishes, {killed} kills, {time.monotonic() - started:.0f} s",
                flush=True,
            )
        lost = asyncio.run(_lost(folder))
        fsck = subprocess.run(
            ["git", "-C", folder / "memory.git", "fsck", "--no-dangling", "--no-progress"], capture_output=True, text=True, check=False
        )  # fmt: skip
    print(f"lost: {lost}; fsck: {fsck.returncode}")
    return 1 if lost or fsck.returncode else 0


def _race(folder: Path, chance: random.Random, *, writers: int, turn: int) -> int:
    """Let writers publish; return how many were killed."""
    least, most = _LIVES
    most += min(turn, 20) / 2  # a slow machine gets further, too
    lives = sorted((chance.uniform(least, most), number) for number in range(writers))
    begun = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.soak_git", str(folder), f"cache{number // 2}"], stdout=subprocess.PIPE, start_new_session=True
        )
        for number in range(writers)
    ]  # fmt: skip
    for process in begun:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    started = time.monotonic()
    for life, number in lives:
        time.sleep(max(0.0, started + life - time.monotonic()))
        begun[number].kill()
    for process in begun:
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    return len(begun)


def _acknowledged(folder: Path) -> list[list[str]]:
    found = []
    for path in folder.glob("acknowledged-*"):
        for line in path.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # the last one, of a writer that was killed
                found.append(json.loads(line))
    return found


async def _lost(folder: Path) -> int:
    from ipfsmem_providers.git import GitProvider

    from ipfsmem.content.cid import parse_cid

    reader = GitProvider(str(folder / "memory.git"), {"git_cache": folder / "reader"})
    reader.begin_snapshot(b"")
    pinned = {str(pin.cid) for pin in await reader.pins("soak")}
    lost = 0
    for root, *blocks in _acknowledged(folder):
        cids = {parse_cid(block) for block in blocks}
        there = await reader.get_blocks(sorted(cids, key=str))
        lost += root not in pinned or there.keys() != cids
    await reader.close()
    return lost


async def _write(folder: Path, cache: str) -> None:
    """Publish until killed; note each publish that was acknowledged."""
    from ipfsmem_providers.git import GitProvider

    from ipfsmem.content.tree import build_tree
    from ipfsmem.errors import ProviderUnavailable

    provider = GitProvider(str(folder / "memory.git"), {"git_cache": folder / cache, "git_squash": _SQUASH})
    notes = (folder / f"acknowledged-{os.getpid()}-{time.time_ns()}").open("a")
    print("ready", flush=True)
    while True:
        made = build_tree({"a.ipm": os.urandom(3000), "common.ipm": b"c" * 700})
        provider.begin_group()
        try:
            await provider.put_car(made.cid, made.blocks, name="soak")
            await provider.pin(made.cid, "soak")
            await provider.commit_group()
        except ProviderUnavailable as error:
            provider.discard_group()
            if not any(word in str(error) for word in ("made again", "pushed first", "may need")):
                raise
            continue
        notes.write(json.dumps([str(made.cid), *(str(cid) for cid, _ in made.blocks)]) + "\n")
        notes.flush()


if __name__ == "__main__":
    asyncio.run(_write(Path(sys.argv[1]), sys.argv[2]))
