"""Writers that race for one branch and are killed at any moment: `python -m bench.soak git`.

Two and five processes publish to one bare repository, half of them from one cache repository; each is killed
after a time drawn from the seed, and begun again. In the end a new device must read every publish that was
acknowledged, and `git fsck` finds nothing. Then half as many publishes follow one another, through squashes: the
growth at both ends is printed, the copy on the device keeps no more than the host does and is small again when many
objects in it are an hour old, and a device that slept meanwhile must read them all, also after the host collected what is
unreachable.
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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipfsmem_providers.git import GitProvider

#: Minimum and maximum seconds after the start at which a writer is killed.
_LIVES = (0.2, 1.5)
#: Number of publishes after which the history is replaced while writers race, and in a short form.
_SQUASH = "8"
#: Minimum number of consecutive publishes; from this number on the history is replaced as in use.
_LEAST, _AS_IN_USE = 20, 500
#: Maximum size of the copy on a device relative to the host's repository (once aged: to its files), and a
#: constant.
_COPIES, _MORE = 2, 4 * 1024 * 1024
#: Seconds after which nothing retains an unreachable object in the copy, and a margin.
_AGE = 2 * 3600


def run(seed: int, count: int, seconds: float) -> int:
    """Race until `count` publishes were acknowledged or `seconds` are over, at least once with two and
    once with five writers. Returns 1 if a publish was lost."""
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
        print(f"lost: {lost}; fsck: {fsck.returncode}", flush=True)
        held = asyncio.run(_grows(folder, max(_LEAST, count // 2), seconds))
    return 0 if held and not lost and not fsck.returncode else 1


def _race(folder: Path, chance: random.Random, *, writers: int, turn: int) -> int:
    """Let writers publish; return how many were killed."""
    least, most = _LIVES
    most += min(turn, 20) / 2  # a slow machine makes progress, too
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
            with contextlib.suppress(json.JSONDecodeError):  # the last line of a killed writer
                found.append(json.loads(line))
    return found


async def _lost(folder: Path) -> int:
    from ipfsmem_providers.git import GitProvider

    reader = GitProvider(str(folder / "memory.git"), {"git_cache": folder / "reader"})
    return await _missing(reader, _acknowledged(folder))


async def _missing(reader: GitProvider, acknowledged: list[list[str]]) -> int:
    """Return how many publishes a device cannot read."""
    from ipfsmem.content.cid import parse_cid

    reader.begin_snapshot(b"")
    pinned = {str(pin.cid) for pin in await reader.pins("soak")}
    lost = 0
    for root, *blocks in acknowledged:
        cids = {parse_cid(block) for block in blocks}
        there = await reader.get_blocks(sorted(cids, key=str))
        lost += root not in pinned or there.keys() != cids
    reader.end_snapshot()
    await reader.close()
    return lost


async def _grows(folder: Path, publishes: int, seconds: float) -> bool:
    """Publish repeatedly, and print how both ends grow; return whether the copy stayed small and nothing
    was lost."""
    from ipfsmem_providers.git import GitProvider
    from ipfsmem_providers.git.provider import SQUASH

    remote, started = folder / "growing.git", time.monotonic()
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
    squash = _SQUASH if publishes < _AS_IN_USE else str(SQUASH)
    writer = GitProvider(str(remote), {"git_cache": folder / "writer", "git_squash": squash})
    sleeper = GitProvider(str(remote), {"git_cache": folder / "sleeper"})
    acknowledged = [await _publish(writer)]
    await sleeper.pins("soak")
    slept, held = _bytes_of(folder / "sleeper"), True
    while len(acknowledged) < publishes and (not seconds or time.monotonic() - started < seconds):
        acknowledged.append(await _publish(writer))
        if len(acknowledged) % max(1, publishes // 10) == 0:
            files = _bytes_of_files(remote)
            copy, repository = _bytes_of(folder / "writer"), _bytes_of(remote)
            held = held and copy <= _COPIES * repository + _MORE
            print(
                f"{len(acknowledged)} publishes, {writer.repository.squashes} squashes: files {files:,}, "
                f"repository {repository:,}, copy {copy:,} bytes, {time.monotonic() - started:.0f} s",
                flush=True,
            )
    squashes = writer.repository.squashes
    _age(folder / "writer")
    repacks = writer.repository._is_untidy()  # few objects remain unchanged
    acknowledged.append(await _publish(writer))
    files, copy = _bytes_of_files(remote), _bytes_of(folder / "writer")
    print(f"two hours later: files {files:,}, copy {copy:,} bytes, repacked: {repacks}", flush=True)
    held = held and (not repacks or copy <= _COPIES * files + _MORE)
    await writer.close()
    lost = await _missing(sleeper, acknowledged)
    received = _bytes_of(folder / "sleeper") - slept
    print(f"slept through {squashes} squashes: its copy grew by {received:,} bytes; lost: {lost}", flush=True)
    subprocess.run(["git", "-C", remote, "gc", "-q", "--prune=now"], check=True)
    late = GitProvider(str(remote), {"git_cache": folder / "late"})
    lost_late = await _missing(late, acknowledged)
    files = _bytes_of_files(remote)
    print(
        f"collected at the host: files {files:,}, repository {_bytes_of(remote):,} bytes; lost: {lost_late}",
        flush=True,
    )
    return held and squashes > 0 and not lost and not lost_late


def _bytes_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _age(folder: Path) -> None:
    for path in folder.rglob("*"):
        os.utime(path, (at := time.time() - _AGE, at))


def _bytes_of_files(remote: Path) -> int:
    listed = subprocess.run(
        ["git", "-C", remote, "ls-tree", "-r", "-l", "refs/heads/ipfsmem"], capture_output=True, text=True, check=True
    )  # fmt: skip
    return sum(int(line.split()[3]) for line in listed.stdout.splitlines())


async def _publish(provider: GitProvider) -> list[str]:
    """Publish something new in one commit; return its root and its blocks."""
    from ipfsmem.content.tree import build_tree

    made = build_tree({"a.ipm": os.urandom(3000), "common.ipm": b"c" * 700})
    provider.begin_group()
    try:
        await provider.put_car(made.cid, made.blocks, name="soak")
        await provider.pin(made.cid, "soak")
        await provider.commit_group()
    except BaseException:
        provider.discard_group()
        raise
    return [str(made.cid), *(str(cid) for cid, _ in made.blocks)]


async def _write(folder: Path, cache: str) -> None:
    """Publish until killed; record each acknowledged publish."""
    from ipfsmem_providers.git import GitProvider

    from ipfsmem.errors import ProviderUnavailable

    provider = GitProvider(str(folder / "memory.git"), {"git_cache": folder / cache, "git_squash": _SQUASH})
    notes = (folder / f"acknowledged-{os.getpid()}-{time.time_ns()}").open("a")
    print("ready", flush=True)
    while True:
        try:
            made = await _publish(provider)
        except ProviderUnavailable as error:
            if not any(word in str(error) for word in ("made again", "pushed first", "may need")):
                raise
            continue
        notes.write(json.dumps(made) + "\n")
        notes.flush()


if __name__ == "__main__":
    asyncio.run(_write(Path(sys.argv[1]), sys.argv[2]))
