"""A move leaves a forwarding record at the old provider, which is followed after a person agrees."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.bundle.program_events import MOVED
from ipfsmem.content.cid import CID
from ipfsmem.device.events import Timeline
from ipfsmem.device.replica import Environment
from ipfsmem.device.writing import writing
from ipfsmem.errors import (
    ConfigError,
    IncompleteError,
    NotFoundError,
    ProviderRefused,
    ProviderUnavailable,
    UsageError,
)
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from ipfsmem.operations.provider_moves import shown
from ipfsmem.sync.report import SyncReport
from ipfsmem.testing import MockClock, SeededRandom
from ipfsmem.vault.home import Home
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.hints import hinted

WALLET = RootKeys.from_random(b"\x03" * 64, "default", 1)


class Homes:
    """Devices of one vault, on real folders named by path."""

    def __init__(self, folder: Path, mode: ModeName = "encrypted-ipfs") -> None:
        self.folder, self.mode = folder, mode
        self.clock = MockClock()
        for place in ("p", "q"):
            (folder / place).mkdir()
        self.p, self.q = str(folder / "p"), str(folder / "q")

    def create(self, name: str) -> Memory:
        return Memory.create("m", self.mode, provider=self.p, unlock=WALLET, **self._given(name))  # type: ignore[arg-type]

    def restore(self, name: str, provider: str | None = None) -> Memory:
        memory = asyncio.run(
            Memory.recover(
                "m", mode=self.mode, provider=provider or self.p, unlock=WALLET, **self._given(name)
            )  # type: ignore[arg-type]
        )
        memory.lock()
        return memory

    def _given(self, name: str) -> dict[str, object]:
        return {
            "passphrase": False,
            "public_ok": True,
            "home": Home(
                folder=self.folder / name,
                label=name,
                environment=Environment(lambda: self.clock.ms, SeededRandom(name)),
            ),
        }

    def sync(self, memory: Memory) -> SyncReport:
        self.clock.advance(1)
        return asyncio.run(memory.sync())

    def pair(self) -> tuple[Memory, Memory]:
        a = self.create("a")
        a.write("tone", "x")
        self.sync(a)
        c = self.restore("c")
        self.sync(a)
        self.sync(c)
        return a, c


@pytest.fixture
def homes(tmp_path: Path) -> Homes:
    return Homes(tmp_path)


def told(report: SyncReport) -> str:
    return "\n".join(notice.text for notice in report.notices if notice.kind == "moved")


def test_move_is_announced_at_the_old_provider_and_followed(homes: Homes) -> None:
    a, c = homes.pair()
    moved = asyncio.run(a.providers.move(homes.q)).moved
    assert len(moved.forwarding_at) == 1 and homes.p in moved.forwarding_at[0] and not moved.no_forwarding_at
    a.write("k", "after the move")
    homes.sync(a)
    c.write("k2", "at the old provider")
    report = homes.sync(c)
    assert homes.q in told(report) and "a (" in told(report) and "provider follow" in told(report)
    assert any("provider follow" in notice for notice in c.status().notices)
    assert c.read("k") is None and [*c.replica.config.providers] == [homes.p], "nothing is followed unasked"
    report = asyncio.run(c.providers.follow()).report
    assert [*c.replica.config.providers] == [homes.q] and c.read("k") is not None
    homes.sync(a)
    assert a.read("k2") is not None
    assert not told(homes.sync(c)) and not any("follow" in notice for notice in c.status().notices)
    # The mover itself, and new devices at the new provider, get no notice.
    assert not told(homes.sync(a))
    e = homes.restore("e", homes.q)
    assert e.restored is not None and not told(e.restored)


def test_follow_keeps_the_old_provider_if_the_new_one_refuses_uploads(
    homes: Homes, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, c = homes.pair()
    asyncio.run(a.providers.move(homes.q))
    homes.sync(c)
    c.write("k", "written here")
    put = DirectoryProvider.put_car

    async def refuse(self: DirectoryProvider, *args: Any, **more: Any) -> Any:
        if self.name.endswith("/q"):
            raise ProviderRefused("that folder takes no more")
        return await put(self, *args, **more)

    with monkeypatch.context() as patched:
        patched.setattr(DirectoryProvider, "put_car", refuse)
        with pytest.raises(IncompleteError, match="that folder takes no more") as caught:
            asyncio.run(c.providers.follow())
    assert [*c.replica.config.providers] == [homes.p] and c.providers.moved() is not None
    hinted("When it accepts uploads again: ipfsmem provider follow", caught.value.hint)
    asyncio.run(c.providers.follow())
    assert [*c.replica.config.providers] == [homes.q]


def test_late_visitor_of_the_old_provider_is_forwarded(homes: Homes) -> None:
    a, _ = homes.pair()
    asyncio.run(a.providers.move(homes.q))
    e = homes.restore("e")
    assert e.restored is not None and homes.q in told(e.restored)
    e.write("k", "here")
    asyncio.run(e.providers.follow())
    homes.sync(a)
    assert a.read("k") is not None


def test_declined_move_is_not_shown_again_but_the_next_one_is(homes: Homes) -> None:
    a, c = homes.pair()
    asyncio.run(a.providers.move(homes.q))
    assert told(homes.sync(c))
    with pytest.raises(UsageError, match="decline excludes spec"):
        asyncio.run(c.providers.follow(homes.q, decline=True))
    assert told(homes.sync(c))
    stayed = asyncio.run(c.providers.follow(decline=True))
    assert stayed.report is None and [*stayed.providers] == [homes.p]
    assert not told(homes.sync(c)) and c.providers.moved() is None
    with pytest.raises(NotFoundError):
        asyncio.run(c.providers.follow())
    third = homes.folder / "r"
    third.mkdir()
    asyncio.run(a.sync(provider=[homes.p, homes.q]))
    asyncio.run(a.providers.move(str(third), source=homes.q))
    homes.sync(a)
    assert str(third) in told(homes.sync(c))


def test_follow_to_a_provider_without_the_vault_is_refused(homes: Homes) -> None:
    """The address in a forwarding record may differ on this machine."""
    a, c = homes.pair()
    asyncio.run(a.providers.move(homes.q))
    homes.sync(c)
    empty = homes.folder / "empty"
    empty.mkdir()
    with pytest.raises(NotFoundError, match="lists no version of this vault"):
        asyncio.run(c.providers.follow(str(empty)))
    assert not list(empty.glob("**/*.car")), "nothing was sent there"
    (homes.folder / "q").rename(homes.folder / "elsewhere")
    with pytest.raises(ProviderUnavailable) as caught:
        asyncio.run(c.providers.follow())
    assert "provider follow SPEC" in caught.value.hint
    with pytest.raises(ConfigError):
        asyncio.run(c.providers.follow("no-such-kind:x"))
    assert [*c.replica.config.providers] == [homes.p] and c.providers.moved() is not None
    asyncio.run(c.providers.follow(str(homes.folder / "elsewhere")))
    assert [*c.replica.config.providers] == [str(homes.folder / "elsewhere")]


def test_one_of_several_providers_is_replaced(homes: Homes) -> None:
    a, c = homes.pair()
    third = homes.folder / "r"
    third.mkdir()
    for memory in (a, c):
        memory.providers.add(str(third))
        homes.sync(memory)
    asyncio.run(a.providers.move(homes.q, source=homes.p))
    assert homes.q in told(homes.sync(c))
    asyncio.run(c.providers.follow())
    assert [*c.replica.config.providers] == [str(third), homes.q]


def test_old_provider_that_refuses_the_record_is_named(homes: Homes) -> None:
    class Full(DirectoryProvider):
        full = False

        async def put_car(self, root: CID, blocks: object, *, name: str) -> CID:
            if self.full:
                raise ProviderUnavailable("the disk is full")
            return await super().put_car(root, blocks, name=name)  # type: ignore[arg-type]

    a, _ = homes.pair()
    old = Full(Path(homes.p))
    a.providers.use([old])
    a.write("k", "text")
    old.full = True
    moved = asyncio.run(a.providers.move(homes.q)).moved
    assert moved.no_forwarding_at == [old.name] and not moved.forwarding_at
    assert homes.restore("e", homes.q).read("k") is not None


def test_record_of_a_device_revoked_since_is_not_shown(homes: Homes) -> None:
    a, c = homes.pair()
    asyncio.run(a.providers.move(homes.q))
    homes.sync(c)
    assert c.providers.moved() is not None
    c.unlock(WALLET)
    asyncio.run(c.members.revoke(a.device))
    assert c.providers.moved() is None


def test_forwarding_events_are_written_only_by_the_program(homes: Homes) -> None:
    a, c = homes.pair()
    with pytest.raises(UsageError, match="the program's own"):
        a.note(MOVED, to="evil:x", **{"from": [homes.p]})
    # Imported events have new ids, which are ignored.
    blob = (
        '{"files":{},"timeline":[{"ts":"2026-01-02T00:00:00.000Z","type":"ipfsmem-moved","id":"'
        f'{c.device}-1","from":["{homes.p}"],"to":"evil:x"}}]}}'
    )
    a.bundles.import_(blob)
    homes.sync(a)
    assert not told(homes.sync(c)) and c.providers.moved() is None and len(c.timeline.read()) == 1
    # Events that a writer puts into its own segment under another device's id are ignored too.
    b = homes.restore("b")
    event = {
        "ts": "2026-01-03T00:00:00.000Z",
        "type": MOVED,
        "id": f"{c.device}-1",
        "from": [homes.p],
        "to": "evil:x",
    }
    with writing(a.replica) as change:
        Timeline(a.replica).add_lines(change, [event])
    homes.sync(a)
    assert not told(homes.sync(b)) and b.providers.moved() is None and len(b.timeline.read()) == 2


def test_public_vault_publishes_no_local_path(tmp_path: Path) -> None:
    homes = Homes(tmp_path, "ipfs")
    a, c = homes.pair()
    asyncio.run(a.providers.move(homes.q))
    (event,) = [event for event in a.timeline.read() if event["type"] == MOVED]
    assert (event["from"], event["to"]) == (["directory"], "directory")
    assert "provider follow" in told(homes.sync(c))
    asyncio.run(c.providers.follow(homes.q))
    assert [*c.replica.config.providers] == [homes.q] and c.providers.moved() is None


@pytest.mark.parametrize(
    "given", ["a-secret-token", "https://other.example=of-another https://host.example=a-secret-token"]
)
def test_token_in_an_address_is_in_no_event(
    homes: Homes, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("PEER_TOKEN", given)
    a, _ = homes.pair()
    for spec in (
        "peer:https://user:pass@host.example/x?token=a-secret-token",
        "peer:https://host.example/a-secret-token",
    ):
        named = shown(a._view(), spec)
        assert "a-secret-token" not in named and "pass" not in named and "host.example" in named
