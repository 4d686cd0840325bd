"""Recovery phrases created after `init`: they restore through names alone and pin lists alone until revoked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from ipfsmem.content.cid import CID
from ipfsmem.errors import (
    ConfigError,
    IpfsmemError,
    LimitError,
    MembershipError,
    ProviderError,
    ProviderRefused,
    UsageError,
    WrongWalletError,
)
from ipfsmem.memory import Memory
from ipfsmem.sync.names import pin_name
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.testing.simulator import FULL
from ipfsmem.vault.recovery import NewWords, words_of
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.support import effort
from tests.support.device_lab import body, restore

WALLET = RootKeys.from_random(b"\x03" * 64, "default", 1)
CHANNELS = {
    "names": msgspec.structs.replace(FULL, list=False),
    "pins": msgspec.structs.replace(FULL, names=False),
}


@pytest.fixture(params=["names", "pins"])
def channel(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def at(cloud: SimCloud, channel: str = "names", name: str = "cloud") -> SimProvider:
    return SimProvider(cloud, name=name, capabilities=CHANNELS[channel])


def keys(words: list[str] | None) -> RootKeys:
    assert words is not None
    return RootKeys.from_recovery(from_words(" ".join(words)))


def make(home: Path, provider: SimProvider, mode: str = "encrypted-ipfs", recovery: bool = True) -> Memory:
    memory = Memory.create(
        "m",
        mode,
        provider=provider,
        unlock=WALLET,
        recovery=recovery,
        passphrase=False,
        public_ok=True,
        home=home / "a",
    )
    memory.write("tone", "x")
    asyncio.run(memory.sync())
    return memory


def more(memory: Memory) -> NewWords:
    made = asyncio.run(memory.members.new_words())
    assert made.problem == "" and len(made.words) == 24
    return made


@pytest.mark.parametrize("mode", ["encrypted-ipfs", "ipfs"])
def test_new_phrase_restores_and_both_devices_continue(tmp_path: Path, channel: str, mode: str) -> None:
    cloud = SimCloud()
    a = make(tmp_path, at(cloud, channel), mode)
    made = more(a)
    b = restore(tmp_path, "b", at(cloud, channel), keys(made.words), mode)
    assert body(b, "tone") == "x"
    b.write("role", "by the new words")
    asyncio.run(b.sync())
    asyncio.run(a.sync())
    assert body(a, "role") == "by the new words"
    # The words of init still work, and so do the new ones once more.
    assert body(restore(tmp_path, "c", at(cloud, channel), keys(a.recovery_words), mode), "role")
    assert body(restore(tmp_path, "d", at(cloud, channel), keys(made.words), mode), "role")


def test_vault_created_without_a_phrase_gets_one_later(tmp_path: Path, channel: str) -> None:
    cloud = SimCloud()
    a = make(tmp_path, at(cloud, channel), recovery=False)
    made = more(a)
    assert made.older == []
    assert body(restore(tmp_path, "b", at(cloud, channel), keys(made.words)), "tone") == "x"


@pytest.mark.parametrize("mode", ["encrypted-ipfs", "ipfs"])
@pytest.mark.parametrize("used", [False, True], ids=["never used", "used before"])
def test_restore_with_a_revoked_phrase_says_that_it_was_revoked(
    tmp_path: Path, channel: str, mode: str, used: bool
) -> None:
    cloud = SimCloud()
    a = make(tmp_path, at(cloud, channel), mode)
    old = more(a)
    if used:
        restore(tmp_path, "b", at(cloud, channel), keys(old.words), mode).close()
    new = more(a)
    assert [(one.id, one.root) for one in new.older][1:] == [(old.id, False)]
    asyncio.run(a.members.revoke(old.id))
    assert [one.id for one in words_of(a.replica.ring)][1:] == [new.id]
    with pytest.raises(
        (WrongWalletError, MembershipError), match=r"phrase was revoked|was revoked: this recovery phrase"
    ):
        restore(tmp_path, "c", at(cloud, channel), keys(old.words), mode)
    assert not (tmp_path / "c" / "m").exists() or not list((tmp_path / "c" / "m").glob("*.json"))
    d = restore(tmp_path, "d", at(cloud, channel), keys(new.words), mode)
    assert body(d, "tone") == "x"
    with pytest.raises(WrongWalletError, match="revoked"):
        d.unlock(keys(old.words))
    # A device that the old words enrolled stays.
    if used:
        b = Memory.load("m", provider=at(cloud, channel), home=tmp_path / "b")
        b.write("role", "by b")
        asyncio.run(b.sync())
        asyncio.run(d.sync())
        assert body(d, "role") == "by b"


def test_texts_of_device_stay_own_after_its_phrase_is_revoked(tmp_path: Path, channel: str) -> None:
    cloud = SimCloud()
    a = make(tmp_path, at(cloud, channel))
    first = more(a)
    d = restore(tmp_path / "d", "d", at(cloud, channel), keys(list(first.words)))
    d.lock()
    d.write("lake", "written on d")
    asyncio.run(d.sync())
    asyncio.run(a.sync())
    second = more(a)
    for old in second.older:
        if not old.root:
            asyncio.run(a.members.revoke(old.id))
    asyncio.run(d.sync())
    for memory in (a, d):
        assert body(memory, "lake") == "written on d" and body(memory, "tone") == "x"
        assert "lake" in memory.context().text and "tone" in memory.context().text
        ring = memory.replica.ring
        assert ring is not None and len({ring.view.owners.get(one) for one in ring.view.members}) == 1
        memory.close()


def test_pin_of_a_revoked_phrase_has_the_newest_ring(tmp_path: Path) -> None:
    cloud = SimCloud()
    a = make(tmp_path, at(cloud, "pins"))
    old = more(a)

    def under() -> list[CID]:
        return [pin.cid for pin in cloud.pins if pin.name == pin_name(keys(old.words).head_public)]

    (before,) = under()
    asyncio.run(a.members.revoke(old.id))
    (after,) = under()
    assert after != before
    with pytest.raises(WrongWalletError, match="this recovery phrase was revoked"):
        restore(tmp_path, "b", at(cloud, "pins"), keys(old.words))


def test_phrase_of_init_creates_another_one_without_the_wallet(tmp_path: Path, channel: str) -> None:
    """A phrase cannot move the anchor of the vault; its own anchor leads to the vault."""
    cloud = SimCloud()
    a = make(tmp_path, at(cloud, channel))
    first = keys(a.recovery_words)
    a.close()
    b = restore(tmp_path, "b", at(cloud, channel), first)
    made = more(b)
    assert body(restore(tmp_path, "c", at(cloud, channel), keys(made.words)), "tone") == "x"
    asyncio.run(b.members.revoke(made.id))
    with pytest.raises((WrongWalletError, MembershipError), match="revoked"):
        restore(tmp_path, "d", at(cloud, channel), keys(made.words))


def test_only_a_root_creates_a_recovery_phrase(tmp_path: Path) -> None:
    cloud = SimCloud()
    a = make(tmp_path, at(cloud))
    later = more(a)
    b = restore(tmp_path, "b", at(cloud), keys(later.words))
    provider = b.providers.in_use[0]
    assert isinstance(provider, SimProvider)
    del provider.calls[:]
    with pytest.raises(MembershipError, match="this recovery phrase came later"):
        asyncio.run(b.members.new_words())
    b.unlock(RootKeys.from_recovery(bytes(32)))
    with pytest.raises(MembershipError, match="does not belong to this vault"):
        asyncio.run(b.members.new_words())
    assert not provider.calls
    a.close()
    with pytest.raises(MembershipError, match="wallet or the recovery phrase"):
        asyncio.run(Memory.load("m", provider=at(cloud), home=tmp_path / "a").members.new_words())


def test_recovery_phrase_of_init_is_a_root_and_cannot_be_revoked(tmp_path: Path) -> None:
    a = make(tmp_path, at(SimCloud()))
    made = more(a)
    (first,) = made.older
    assert first.root and first.label == "recovery words"
    with pytest.raises(MembershipError, match="roots cannot be revoked"):
        asyncio.run(a.members.revoke(first.id))


def test_phrase_is_not_created_while_no_provider_answers(tmp_path: Path) -> None:
    provider = at(SimCloud())
    a = make(tmp_path, provider)
    before = a.replica.ring
    provider.faults.offline = True
    with pytest.raises(ProviderError):
        asyncio.run(a.members.new_words())
    assert a.replica.ring == before


def test_permanent_refusal_of_a_phrase_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, full = make(tmp_path, at(SimCloud())), at(SimCloud(), name="full")
    asyncio.run(a.sync([*a.providers.in_use, full]))

    async def refuse(*_: object, **__: object) -> CID:
        raise ProviderRefused("full takes no more")

    monkeypatch.setattr(full, "put_car", refuse)
    made = asyncio.run(a.members.new_words())
    assert "full takes no more" in made.problem


@pytest.mark.parametrize("channels", [("names",), ("pins",), ("names", "pins")], ids="+".join)
def test_failed_call_for_a_phrase_is_reported_and_repeated(tmp_path: Path, channels: tuple[str, ...]) -> None:
    """An error before anything is created, or a phrase that works after the next sync."""
    said = set()
    for call in range(1, 60, effort.every(2)):
        home, clouds = tmp_path / str(call), [SimCloud() for _ in channels]
        providers = [at(c, how, how) for c, how in zip(clouds, channels, strict=True)]
        a = Memory.create(
            "m", "encrypted-ipfs", provider=providers, unlock=WALLET, passphrase=False, home=home / "a"
        )
        asyncio.run(a.sync())
        before = a.replica.ring
        providers[-1].fail_call(call)
        try:
            made = asyncio.run(a.members.new_words())
        except IpfsmemError:
            assert a.replica.ring == before
            said.add("error")
            continue
        finally:
            left = providers[-1].stop_failing()
        if made.problem:
            said.add("problem")
            asyncio.run(a.sync())
        else:
            said.add("fine")
        for number, (cloud, how) in enumerate(zip(clouds, channels, strict=True)):
            restore(home, f"b{number}", at(cloud, how, how), keys(made.words)).close()
        a.close()
        if left:
            break
    else:
        raise AssertionError("it makes more calls than that")
    assert {"problem", "fine"} <= said


def test_full_key_ring_refuses_another_phrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = make(tmp_path, at(SimCloud()))
    before = a.replica.ring
    monkeypatch.setattr("ipfsmem.ring.operations.MAX_FAMILIES", 3)
    with pytest.raises(LimitError):
        asyncio.run(a.members.new_words())
    assert a.replica.ring == before


def test_phrase_for_a_local_or_unpublished_vault_is_refused(tmp_path: Path) -> None:
    local = Memory.create("m", "local", home=tmp_path / "local")
    local.unlock(WALLET)
    with pytest.raises(UsageError, match="no members"):
        asyncio.run(local.members.new_words())
    lone = Memory.create("m", "encrypted-ipfs", unlock=WALLET, passphrase=False, home=tmp_path / "lone")
    with pytest.raises(ConfigError, match="no provider"):
        asyncio.run(lone.members.new_words())
