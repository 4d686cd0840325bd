"""A vault closes providers that it opened and leaves given ones open."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.errors import ConfigError, NoVaultError, ProviderRefused, UsageError
from ipfsmem.http import blocks as serving
from ipfsmem.memory import Memory
from ipfsmem.provider import opening
from ipfsmem.provider.contract import Capabilities, lasting_spec
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.testing.simulator import FULL
from tests.servers.threaded import serve
from tests.support.device_lab import ROOT

TOKEN = "a token for tests"


class Opener:
    """Replaces `open_provider`: every spec is a connection to one cloud; those in `without_token` cannot
    be opened."""

    def __init__(self) -> None:
        self.cloud = SimCloud()
        self.made: list[SimProvider] = []
        self.without_token: set[str] = set()
        self.capabilities: dict[str, Capabilities] = {}

    def __call__(self, spec: str, settings: Mapping[str, Any]) -> SimProvider:
        if spec in self.without_token:
            raise ConfigError(f"the token of {spec} is not set", hint=f"Set the token of {spec}.")
        can = self.capabilities.get(spec, FULL)
        self.made.append(SimProvider(self.cloud, name=spec, capabilities=can))
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
        "m", "encrypted-ipfs", provider=[*providers], unlock=ROOT, passphrase=False, home=home
    )


def test_opened_providers_are_closed_and_given_ones_are_not(opener: Opener, tmp_path: Path) -> None:
    theirs = SimProvider(opener.cloud, name="theirs")
    memory = create(tmp_path, "one", theirs, "two")
    asyncio.run(memory.sync())
    assert opener.still_open() == ["one", "two"]
    memory.close()
    assert opener.still_open() == [] and not theirs.closed
    memory.close()


def test_open_provider_is_reused(opener: Opener, tmp_path: Path) -> None:
    memory = create(tmp_path, "one")
    for _ in range(5):
        asyncio.run(memory.sync("two"))
        memory.providers.list()
    assert len(opener.made) == 2
    memory.providers.add("three")
    memory.providers.remove("one")
    memory.close()
    assert opener.still_open() == []


def test_other_settings_open_another(opener: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "settings.toml"
    settings.touch(mode=0o600)
    monkeypatch.setenv("IPFSMEM_CONFIG", str(settings))
    pool = opening.ProviderPool()
    settings.write_text('[providers.directory]\ncreate = "yes"\n')
    first = pool.open(["one"])
    assert pool.open(["one"]) == first
    settings.write_text('[providers.directory]\ncreate = "no"\n')
    assert pool.open(["one"]) != first
    pool.close()
    assert opener.still_open() == []


def without_token(opener: Opener, home: Path, ready: Capabilities = FULL) -> Memory:
    """A vault published at two providers, reopened without the token of `hidden`."""
    opener.capabilities["open"] = ready
    memory = create(home, "open", "hidden")
    asyncio.run(memory.sync())
    memory.close()
    opener.without_token = {"hidden"}
    return Memory.load("m", home=home)


PROBLEM = "hidden cannot be used: the token of hidden is not set"


def test_provider_that_cannot_be_opened_is_a_value_with_its_reason(opener: Opener) -> None:
    opener.without_token = {"hidden"}
    theirs = SimProvider(name="theirs")
    pool = opening.ProviderPool()
    found = pool.open(["one", "hidden", theirs])
    assert [provider.name for provider in found.open] == ["one", "theirs"]
    hidden = opening.NotOpened("hidden", "the token of hidden is not set", "Set the token of hidden.")
    assert found.not_opened == [hidden] and found.each[1] == hidden and found.each[2] is theirs
    assert (str(hidden.error()), hidden.error().hint) == (PROBLEM, hidden.hint)
    with pytest.raises(ConfigError, match="the token of hidden is not set") as caught:
        pool.open_all(["one", "hidden"])
    assert caught.value.hint == hidden.hint
    assert pool.open_again(found) == found
    opener.without_token = set()
    again = pool.open_again(found)
    assert [provider.name for provider in again.open] == ["one", "hidden", "theirs"]
    assert (again.each[0], again.each[2]) == (found.each[0], theirs) and pool.open_again(again) is again
    pool.close()


@pytest.mark.parametrize("names", [True, False], ids=["names", "lists only"])
def test_unopened_provider_is_named_and_does_not_block_a_sync(
    opener: Opener, tmp_path: Path, names: bool
) -> None:
    memory = without_token(opener, tmp_path, msgspec.structs.replace(FULL, names=names))
    memory.write("tone", "direct")
    report = asyncio.run(memory.sync())
    assert report.published and (report.not_placed, report.exit_code) == (["hidden"], 7)
    assert [n.text for n in report.notices if n.kind == "not-opened"] == [
        f"{PROBLEM}. Set the token of hidden."
    ]
    assert "channel-down" not in {notice.kind for notice in report.notices}
    assert (
        not memory.status().unpublished and f"{PROBLEM}. Set the token of hidden." in memory.status().notices
    )
    other, hidden = memory.providers.list()
    assert (other.problem, hidden.problem) == ("", "the token of hidden is not set")
    assert (hidden.spec, hidden.can) == ("hidden", "") and hidden.root not in (None, other.root)
    assert not any(value is True for value in msgspec.structs.asdict(hidden.capabilities).values())
    checked = {one.provider: one for one in asyncio.run(memory.providers.check())}
    assert (checked["open"].state, checked["hidden"].state) == ("ok", "unchecked")
    assert PROBLEM in checked["hidden"].text
    assert PROBLEM in asyncio.run(memory.maintenance.gc()).problems["hidden"]
    memory.close()


def test_pin_lists_are_read_where_only_an_unopened_provider_keeps_names(
    opener: Opener, tmp_path: Path
) -> None:
    memory = without_token(opener, tmp_path, msgspec.structs.replace(FULL, names=False))
    asyncio.run(memory.sync())
    assert [made for made in opener.made if made.name == "open"][-1].calls.count("pins") > 0
    memory.close()


def test_sync_with_no_usable_provider_says_so(opener: Opener, tmp_path: Path) -> None:
    memory = without_token(opener, tmp_path)
    memory.providers.remove("open")
    for work in (memory.sync, memory.maintenance.gc):
        with pytest.raises(ProviderRefused) as caught:
            asyncio.run(work())
        assert (str(caught.value), caught.value.hint) == (PROBLEM, "Set the token of hidden.")
    (checked,) = asyncio.run(memory.providers.check())
    assert (checked.state, PROBLEM in checked.text) == ("unchecked", True)
    memory.close()


def test_provider_that_opens_later_is_used_by_the_next_sync(opener: Opener, tmp_path: Path) -> None:
    """As after a token was added to the settings of a running program."""
    memory = without_token(opener, tmp_path)
    memory.write("tone", "direct")
    assert asyncio.run(memory.sync()).not_placed == ["hidden"]
    opener.without_token = set()
    report = asyncio.run(memory.sync())
    assert (report.not_placed, report.exit_code, [*memory.status().notices]) == ([], 0, [])
    assert {one.root for one in memory.providers.list()} == {report.root}
    count = len(opener.made)
    asyncio.run(memory.sync())
    assert len(opener.made) == count
    memory.close()
    assert opener.still_open() == []


def test_provider_move_names_the_unopened_one_that_got_no_forwarding(opener: Opener, tmp_path: Path) -> None:
    memory = without_token(opener, tmp_path)
    moved = asyncio.run(memory.providers.move("new")).moved
    assert (moved.forwarding_at, moved.no_forwarding_at) == (["open"], ["hidden"])
    assert [one.spec for one in memory.providers.list()] == ["new"]
    memory.close()


def test_providers_are_closed_inside_a_running_loop(opener: Opener, tmp_path: Path) -> None:
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


def test_current_event_loop_of_the_caller_is_kept(opener: Opener, tmp_path: Path) -> None:
    """Programs use it again after `close`."""
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


def test_providers_are_closed_after_a_failure(opener: Opener, tmp_path: Path) -> None:
    with pytest.raises(NoVaultError):
        asyncio.run(Memory.recover("m", provider="one", unlock=ROOT, passphrase=False, home=tmp_path))
    assert opener.still_open() == []
    memory = create(tmp_path, "two")
    with pytest.raises(ConfigError):
        Memory.load("m", "local", home=tmp_path)
    with pytest.raises(UsageError):
        asyncio.run(Memory.open_foreign("what is this", provider="three"))
    asyncio.run(memory.providers.test("four"))
    assert opener.still_open() == ["two"]
    memory.close()
    assert opener.still_open() == []


#: Programs that exit with the event loop still running for a moment.
PROGRAMS = {
    "a loop for each call": """
memory = Memory.load("m", "encrypted-ipfs", **HOW)
memory.write("tone", "direct", description=WHEN)
asyncio.run(memory.sync())
asyncio.run(memory.sync())
memory.close()
del memory
gc.collect()
""",
    "one loop, close": """
async def main():
    memory = Memory.load("m", "encrypted-ipfs", **HOW)
    memory.write("tone", "direct", description=WHEN)
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
            memory.write("tone", "direct", description=WHEN)
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
WHEN = "The tone that the user wants in an answer"
HOW = dict(provider="peer:" + sys.argv[1], unlock=RootKeys.from_random(b"\\x03" * 64, "default", 1), create=True,
           passphrase=False, home=sys.argv[2])
"""


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_no_http_connection_is_left_open(program: str, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    with serve(lambda: serving.app(DirectoryProvider(tmp_path / "store"), token=TOKEN)) as url:
        done = subprocess.run(
            [sys.executable, "-W", "error::ResourceWarning", "-c", _BEGIN + program, url, str(tmp_path / "home")],
            capture_output=True, text=True, timeout=60,
            env={"PEER_TOKEN": TOKEN, "PATH": "", "IPFSMEM_CONFIG": os.devnull},
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_relative_path_through_a_link_is_resolved_as_by_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk" / "box").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "box")
    monkeypatch.chdir(tmp_path)
    assert lasting_spec("./link/../other") == str(tmp_path / "disk" / "other")
    assert lasting_spec("./link") == str(tmp_path / "link")


def test_stored_provider_spec_does_not_depend_on_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stick").mkdir()
    (tmp_path / "pinata").mkdir()
    for spec in (
        *("stick", "./stick", "stick/", "directory:stick", f"directory:{tmp_path}/stick/"),
        *("./stick/../stick", "./gone/../pinata/.././stick", f"directory:{tmp_path}/pinata/../stick"),
    ):
        assert lasting_spec(spec) == str(tmp_path / "stick")
    assert lasting_spec("./gone") == str(tmp_path / "gone") and not lasting_spec("~/x").startswith("~")
    for spec in ("pinata", "kubo:http://127.0.0.1:5001", "nonsense", "directory:", "", "gateway:https://a"):
        assert lasting_spec(spec) == spec
