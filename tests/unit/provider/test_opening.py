"""A memory closes the providers that it opened itself, and leaves those alone that were handed in."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.errors import ConfigError, NoVaultError, UsageError
from ipfsmem.http import blocks as serving
from ipfsmem.memory import Memory
from ipfsmem.provider import opening
from ipfsmem.provider.contract import lasting_spec
from ipfsmem.testing import SimCloud, SimProvider
from tests.servers.threaded import serve
from tests.support.device_lab import ROOT

TOKEN = "a token for tests"


class Opener:
    """Stands for `open_provider`: every spec is a connection to one cloud."""

    def __init__(self) -> None:
        self.cloud = SimCloud()
        self.made: list[SimProvider] = []

    def __call__(self, spec: str, settings: Mapping[str, Any]) -> SimProvider:
        self.made.append(SimProvider(self.cloud, name=spec))
        return self.made[-1]

    def still_open(self) -> list[str]:
        return [provider.name for provider in self.made if not provider.closed]


@pytest.fixture
def opener(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Opener]:
    monkeypatch.setenv("IPFSMEM_CONFIG", os.devnull)
    made = Opener()
    monkeypatch.setattr(opening, "open_provider", made)
    yield made


def create(home: Path, *providers: str | SimProvider) -> Memory:
    return Memory.create(
        "m", "encrypted-ipfs", provider=[*providers], unlock=ROOT, unprotected_keys=True, home=home
    )


def test_own_ones_are_closed_and_others_are_not(opener: Opener, tmp_path: Path) -> None:
    theirs = SimProvider(opener.cloud, name="theirs")
    memory = create(tmp_path, "one", theirs, "two")
    asyncio.run(memory.sync())
    assert opener.still_open() == ["one", "two"]
    memory.close()
    assert opener.still_open() == [] and not theirs.closed
    memory.close()


def test_an_open_one_is_used_again(opener: Opener, tmp_path: Path) -> None:
    memory = create(tmp_path, "one")
    for _ in range(5):
        asyncio.run(memory.sync("two"))
        memory.providers()
    assert len(opener.made) == 2
    memory.add_provider("three")
    memory.remove_provider("one")
    memory.close()
    assert opener.still_open() == []


def test_other_settings_open_another(opener: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "settings.toml"
    settings.touch(mode=0o600)
    monkeypatch.setenv("IPFSMEM_CONFIG", str(settings))
    one = opening.Channels()
    settings.write_text('[providers.directory]\ncreate = "yes"\n')
    first = one.open(["one"])
    assert one.open(["one"]) == first
    settings.write_text('[providers.directory]\ncreate = "no"\n')
    assert one.open(["one"]) != first
    one.close()
    assert opener.still_open() == []


def test_in_a_running_loop(opener: Opener, tmp_path: Path) -> None:
    async def work() -> None:
        async with create(tmp_path / "a", "one") as memory:
            await memory.sync()
            assert opener.still_open() == ["one"]
        assert opener.still_open() == []
        other = create(tmp_path / "b", "two")
        other.close()
        await asyncio.sleep(0)
        assert opener.still_open() == []

    asyncio.run(work())


def test_the_loop_of_the_caller_stays_the_current_one(opener: Opener, tmp_path: Path) -> None:
    """Programs with a loop of their own (`run_until_complete`) find it again after `close`."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        memory = create(tmp_path, "one")
        loop.run_until_complete(memory.sync())
        memory.close()
        assert asyncio.get_event_loop() is loop and opener.still_open() == []
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_what_fails_on_the_way_is_closed_too(opener: Opener, tmp_path: Path) -> None:
    with pytest.raises(NoVaultError):
        asyncio.run(Memory.recover("m", provider="one", unlock=ROOT, unprotected_keys=True, home=tmp_path))
    assert opener.still_open() == []
    memory = create(tmp_path, "two")
    with pytest.raises(ConfigError):
        Memory.load("m", "local", home=tmp_path)
    with pytest.raises(UsageError):
        asyncio.run(Memory.open_foreign("what is this", provider="three"))
    asyncio.run(memory.test_provider("four"))
    assert opener.still_open() == ["two"]
    memory.close()
    assert opener.still_open() == []


#: Each ends with the event loop still running for a moment, then with the process.
PROGRAMS = {
    "a loop for each call": """
memory = Memory.load("m", "encrypted-ipfs", **HOW)
memory.write("tone", "direct")
asyncio.run(memory.sync())
asyncio.run(memory.sync())
memory.close()
del memory
gc.collect()
""",
    "one loop, close": """
async def main():
    memory = Memory.load("m", "encrypted-ipfs", **HOW)
    memory.write("tone", "direct")
    await memory.sync()
    memory.close()
    del memory
    await asyncio.sleep(0.05)
    gc.collect()
asyncio.run(main())
""",
    "one loop, async with, autosync": """
async def main():
    async with Memory.load("m", "encrypted-ipfs", **HOW) as memory:
        async with memory.autosync(every=0.01):
            memory.write("tone", "direct")
            await asyncio.sleep(0.05)
    del memory
    gc.collect()
asyncio.run(main())
""",
    "close without waiting": """
async def main():
    memory = Memory.load("m", "encrypted-ipfs", **HOW)
    await memory.sync()
    memory.close()
asyncio.run(main())
""",
    "a loop of one's own": """
loop = asyncio.new_event_loop()
memory = Memory.load("m", "encrypted-ipfs", **HOW)
loop.run_until_complete(memory.sync())
loop.run_until_complete(memory.aclose())
loop.close()
del memory
gc.collect()
""",
}
_BEGIN = """
import asyncio, gc, sys
from ipfsmem import Memory, RootKeys
HOW = dict(provider="peer:" + sys.argv[1], unlock=RootKeys.from_random(b"\\x03" * 64, "default", 1), create=True,
           unprotected_keys=True, home=sys.argv[2])
"""


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_nothing_is_left_open_over_http(program: str, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    with serve(lambda: serving.app(DirectoryProvider(tmp_path / "store"), token=TOKEN)) as url:
        done = subprocess.run(
            [sys.executable, "-W", "error::ResourceWarning", "-c", _BEGIN + program, url, str(tmp_path / "home")],
            capture_output=True, text=True, timeout=60,
            env={"PEER_TOKEN": TOKEN, "PATH": "", "IPFSMEM_CONFIG": os.devnull},
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_written_down_means_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stick").mkdir()
    (tmp_path / "pinata").mkdir()
    for spec in ("stick", "./stick", "stick/", "directory:stick", f"directory:{tmp_path}/stick/"):
        assert lasting_spec(spec) == str(tmp_path / "stick")
    assert lasting_spec("./gone") == str(tmp_path / "gone") and not lasting_spec("~/x").startswith("~")
    for spec in ("pinata", "kubo:http://127.0.0.1:5001", "nonsense", "directory:", "", "gateway:https://a"):
        assert lasting_spec(spec) == spec
