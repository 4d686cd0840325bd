"""A vault is found by its key's signatures, has the requested mode, and is never created by mistake next to another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem import canonical
from ipfsmem.content.cid import CID, ipns_name, parse_cid, raw_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import (
    ConfigError,
    IpfsmemError,
    NoVaultError,
    OtherKindError,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    PublicError,
    UnreadError,
)
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from ipfsmem.provider.contract import Block, Pin, Provider, with_blocks
from ipfsmem.published.ipns_record import verify_record
from ipfsmem.sync.names import pin_name, target
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.testing.simulator import FULL
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys

WALLET = RootKeys.from_random(b"\x03" * 64, "default", 1)
LISTS = msgspec.structs.replace(FULL, names=False)  # like Pinata, Filebase
NAMES = msgspec.structs.replace(FULL, list=False)


def create(home: Path, provider: Provider | str, mode: ModeName = "encrypted-ipfs") -> Memory:
    memory = Memory.create(
        "m", mode, provider=provider, unlock=WALLET, passphrase=False, public_ok=True, home=home
    )
    memory.write("plans", "an old plan")
    asyncio.run(memory.sync())
    return memory


def restore(
    home: Path,
    provider: Provider | str | list[Provider | str],
    mode: ModeName = "encrypted-ipfs",
    key: RootKeys = WALLET,
    **more: bool,
) -> Memory:
    return asyncio.run(
        Memory.recover("m", mode=mode, provider=provider, unlock=key, passphrase=False, home=home, **more)
    )


def words_of(memory: Memory) -> RootKeys:
    return RootKeys.from_recovery(from_words(" ".join(memory.recovery_words or ())))


def bare_root(cloud: SimCloud) -> CID:
    """Return a root that a provider without a key makes of a stored ring: the public genesis statement in
    a plain ring."""
    for block in list(cloud.blocks.values()):
        if block.startswith(b'{"body":'):
            file = msgspec.json.decode(block)
            first = [one for one in file["open"] if b'"t":"genesis"' in canonical.unb64(one["k"], "")]
            plain = {"body": {"eks": [], "st": []}, "open": first, "v": 1, "vault": file["vault"]}
            tree = build_tree({"keyring.json": canonical.encode(plain)})
            cloud.blocks.update(tree.blocks)
            return tree.cid
    raise AssertionError("no ring in the cloud")


def nothing_here(home: Path) -> bool:
    return not home.exists() or not [path for path in home.rglob("*") if path.is_file()]


class Withholding(SimProvider):
    """Withholds the anchor's record, and lists one root of its own."""

    evil: CID

    async def get_name(self, name: str) -> bytes | None:
        return None if name == ipns_name(WALLET.head_public) else await super().get_name(name)

    async def pins(self, name: str) -> list[Pin]:
        return [Pin(self.evil, name, "x", 10**15)]


def test_provider_that_hides_the_keys_creates_no_public_vault(tmp_path: Path) -> None:
    cloud = SimCloud()
    create(tmp_path / "a", SimProvider(cloud)).close()
    before = {name: [*records] for name, records in cloud.names.items()}
    liar = Withholding(cloud)
    liar.evil = bare_root(cloud)
    for create_too in (False, True):
        with pytest.raises(NoVaultError, match=r"encrypted-ipfs.*of the plain vault") as caught:
            Memory.load(
                "m",
                "encrypted-ipfs",
                provider=liar,
                unlock=WALLET,
                passphrase=False,
                home=tmp_path / "b",
                create=create_too,
            )
        assert caught.value.doubt
    assert nothing_here(tmp_path / "b")
    assert cloud.names == before and not [call for call in liar.calls if call.startswith("put")]


def test_false_public_ring_among_true_roots_is_ignored(tmp_path: Path) -> None:
    """The false ring is the newest entry of the list."""
    cloud = SimCloud()
    create(tmp_path / "a", SimProvider(cloud, capabilities=LISTS)).close()
    evil = bare_root(cloud)
    cloud.pins.append(Pin(evil, pin_name(WALLET.head_public), cloud.handle(), 2**50))
    fresh = restore(tmp_path / "b", SimProvider(cloud, capabilities=LISTS))
    assert fresh.mode == "encrypted-ipfs" and not fresh.replica.config.public
    assert fresh.replica.ring is not None and not fresh.replica.ring.plain
    fresh.write("diary", "CANARY, a private thought")
    assert asyncio.run(fresh.sync()).published
    assert not any(b"CANARY" in block for block in cloud.blocks.values())
    assert fresh.read("plans") is not None


@pytest.mark.parametrize("channel", [FULL, LISTS, NAMES], ids=["all", "lists", "names"])
@pytest.mark.parametrize("made", ["encrypted-ipfs", "ipfs"])
def test_wrong_mode_is_refused_and_the_error_names_both(
    tmp_path: Path, made: ModeName, channel: object
) -> None:
    """A vault of the other mode is named and never opened."""
    cloud = SimCloud()
    asked: ModeName = "ipfs" if made == "encrypted-ipfs" else "encrypted-ipfs"
    a = create(tmp_path / "a", SimProvider(cloud, capabilities=channel), made)  # type: ignore[arg-type]
    words = words_of(a)
    a.close()
    before = {name: [*records] for name, records in cloud.names.items()}
    for key in (WALLET, words):
        provider = SimProvider(cloud, capabilities=channel)  # type: ignore[arg-type]
        with pytest.raises(OtherKindError) as caught:
            restore(tmp_path / "b", provider, asked, key)
        assert "mode encrypted-ipfs" in str(caught.value) and "mode ipfs" in str(caught.value)
        assert nothing_here(tmp_path / "b")
        assert not [call for call in provider.calls if call.startswith("put") or call == "pin"]
    assert cloud.names == before
    assert restore(tmp_path / "c", SimProvider(cloud, capabilities=channel), made, public_ok=True).read(
        "plans"
    )  # type: ignore[arg-type]


def test_restored_public_vault_requires_consent_before_publishing(tmp_path: Path) -> None:
    """Consent is given on each device."""
    cloud = SimCloud()
    create(tmp_path / "a", SimProvider(cloud), "ipfs").close()
    provider = SimProvider(cloud)
    b = restore(tmp_path / "b", provider, "ipfs")
    assert b.read("plans") is not None and not b.replica.config.public
    assert not [call for call in provider.calls if call in ("put_car", "pin", "put_name")]
    b.write("more", "text")
    with pytest.raises(PublicError):
        asyncio.run(b.sync())
    b.lock()
    # Enrolled while the key was available: later consent needs no wallet.
    assert asyncio.run(b.sync(public_ok=True)).published
    assert restore(tmp_path / "c", SimProvider(cloud), "ipfs", public_ok=True).read("more") is not None


class Unreadable(SimProvider):
    """A service that lists pins while its gateway serves nothing (404, 403, 504): `missing` or `down`."""

    how = "missing"

    async def get_blocks(self, cids: Iterable[CID]) -> dict[CID, bytes]:  # type: ignore[override]
        if self.how == "down":
            raise ProviderUnavailable("the gateway answered 504")
        return {}


@pytest.mark.parametrize("how", ["missing", "down"])
def test_unreadable_list_is_not_treated_as_empty(tmp_path: Path, how: str) -> None:
    """Answers 404, 403 or 504 of a gateway lead to no second vault."""
    cloud = SimCloud()
    a = create(tmp_path / "a", SimProvider(cloud, capabilities=LISTS))
    provider = Unreadable(cloud, capabilities=LISTS)
    provider.how = how
    with pytest.raises(NoVaultError if how == "missing" else ProviderUnavailable) as caught:
        Memory.load(
            "m",
            "encrypted-ipfs",
            provider=provider,
            unlock=WALLET,
            passphrase=False,
            home=tmp_path / "b",
            create=True,
        )
    if how == "missing":
        assert "lists" in caught.value.doubt  # type: ignore[attr-defined]
    assert nothing_here(tmp_path / "b")
    a.write("later", "text")
    assert asyncio.run(a.sync()).published


class Gappy(SimProvider):
    """A provider whose list skips entries that it names as unread."""

    gaps: tuple[str, ...] = ("an entry in its pin list (for instance 7)",)

    async def pins(self, name: str) -> list[Pin]:
        return []

    def unread(self) -> list[str]:
        return [*self.gaps]


def test_list_with_gaps_is_a_doubt_and_makes_no_second_vault(tmp_path: Path) -> None:
    cloud = SimCloud()
    a = create(tmp_path / "a", SimProvider(cloud, capabilities=LISTS))
    gappy = Gappy(cloud, capabilities=LISTS)
    empty = SimProvider(SimCloud(), capabilities=LISTS)
    for providers in ([gappy], [empty, gappy]):
        with pytest.raises(NoVaultError, match=r"incomplete: .*holds an entry in its pin list") as caught:
            Memory.load(
                "m", "encrypted-ipfs", provider=providers, unlock=WALLET, passphrase=False, home=tmp_path / "b", create=True,
            )  # fmt: skip
        assert "an entry in its pin list (for instance 7), which cannot be read" in caught.value.doubt
    gappy.gaps = tuple(f"entry {number}" for number in range(5_000))
    with pytest.raises(NoVaultError) as caught:
        restore(tmp_path / "b", gappy)
    assert "holds 4,997 more that cannot be read" in caught.value.doubt
    assert nothing_here(tmp_path / "b")
    a.close()


class Fickle(SimProvider):
    """A provider that lists its pins once, and none afterwards."""

    asked = 0

    async def pins(self, name: str) -> list[Pin]:
        self.asked += name == pin_name(WALLET.head_public)
        return await super().pins(name) if self.asked == 1 else []


def test_vault_listed_only_once_is_a_doubt(tmp_path: Path) -> None:
    cloud = SimCloud()
    create(tmp_path / "a", SimProvider(cloud, capabilities=LISTS)).close()
    with pytest.raises(NoVaultError, match="the search was incomplete") as caught:
        Memory.load(
            "m", "encrypted-ipfs", provider=Fickle(cloud, capabilities=LISTS), unlock=WALLET, passphrase=False, home=tmp_path / "b", create=True,
        )  # fmt: skip
    assert caught.value.doubt and nothing_here(tmp_path / "b")


def test_vault_is_found_in_a_list_with_gaps(tmp_path: Path) -> None:
    cloud = SimCloud()

    class Skipping(Gappy):
        async def pins(self, name: str) -> list[Pin]:
            return await SimProvider.pins(self, name)

    create(tmp_path / "a", SimProvider(cloud, capabilities=LISTS)).close()
    assert restore(tmp_path / "b", Skipping(cloud, capabilities=LISTS)).read("plans") is not None


def test_failing_list_of_the_main_anchor_hides_no_other_providers_list(tmp_path: Path) -> None:
    """The record of the recovery phrase leads to the vault's, and that one to a lost ring, which lists still show."""
    cloud = SimCloud()
    memory = create(tmp_path / "a", SimProvider(cloud))
    words = words_of(memory)
    memory.close()
    anchor = ipns_name(WALLET.head_public)
    root = target(verify_record(anchor, cloud.names[anchor][-1]))
    assert isinstance(root, CID) and cloud.blocks.pop(root)

    class NoList(SimProvider):
        async def pins(self, name: str) -> list[Pin]:
            raise ProviderUnavailable("the list ended with 503")

    providers = [NoList(cloud, name="no list"), SimProvider(cloud, name="other")]
    assert restore(tmp_path / "b", [*providers], key=words).read("plans") is not None


def test_silent_provider_without_lists_is_not_proof_of_absence(tmp_path: Path) -> None:
    cloud = SimCloud()
    mute = msgspec.structs.replace(FULL, names=False, list=False)
    forgetful = msgspec.structs.replace(FULL, list=False, durable=False)
    for capabilities in (mute, forgetful):
        with pytest.raises(NoVaultError) as caught:
            restore(tmp_path / "b", SimProvider(cloud, capabilities=capabilities))
        assert caught.value.doubt
    gateway = SimProvider(SimCloud(), capabilities=msgspec.structs.replace(mute, put=False, pin=False))
    with pytest.raises(NoVaultError) as caught:
        restore(tmp_path / "b", [SimProvider(cloud), gateway])
    assert not caught.value.doubt, "what takes nothing and is only read beside it says nothing against it"
    for capabilities in (FULL, LISTS, NAMES):
        with pytest.raises(NoVaultError) as caught:
            restore(tmp_path / "b", SimProvider(cloud, capabilities=capabilities))
        assert not caught.value.doubt
    down = SimProvider(SimCloud(), name="down")
    down.faults.offline = True
    with pytest.raises(IpfsmemError) as caught:
        restore(tmp_path / "b", [SimProvider(cloud), down])
    assert not isinstance(caught.value, NoVaultError) or caught.value.doubt


@pytest.mark.parametrize("how", ["unavailable", "refused", "nothing to upload to"])
def test_readable_vault_is_recovered_from_a_write_protected_provider(tmp_path: Path, how: str) -> None:
    """The enrolment is published later, without the phrase."""
    stick = tmp_path / "stick"
    stick.mkdir()
    words = words_of(create(tmp_path / "a", str(stick)))

    class ReadOnly(DirectoryProvider):
        async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
            raise self._no()

        async def pin(self, root: CID, name: str) -> Pin:
            raise self._no()

        async def put_name(self, name: str, record: bytes) -> None:
            raise self._no()

        def _no(self) -> IpfsmemError:
            full = ProviderUnavailable("the disk is full")
            return (
                full if how == "unavailable" else ProviderRefused("the disk is read-only", hint="Mount it.")
            )

        @property
        def capabilities(self):  # type: ignore[no-untyped-def]
            can = super().capabilities
            return (
                can if how != "nothing to upload to" else msgspec.structs.replace(can, put=False, pin=False)
            )

    b = restore(tmp_path / "b", ReadOnly(stick), key=words)
    assert b.read("plans") is not None
    assert b.restored is not None
    (notice,) = [notice for notice in b.restored.notices if notice.kind == "not-published"]
    assert "ipfsmem sync" in notice.text
    b.write("since", "text")
    device = b.device
    b.close()
    b = Memory.load("m", provider=str(stick), home=tmp_path / "b")
    assert b.device == device and asyncio.run(b.sync()).published
    assert restore(tmp_path / "c", str(stick)).read("since") is not None


def test_provider_is_opened_before_a_vault_is_created(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown provider"):
        Memory.create("m", "encrypted-ipfs", provider="typo", unlock=WALLET, passphrase=False, home=tmp_path)
    with pytest.raises(ConfigError, match="unknown provider"):
        Memory.create("m", "local", provider="typo", home=tmp_path)
    assert nothing_here(tmp_path)


def test_old_record_of_a_lost_version_hides_no_newer_list_entry(tmp_path: Path) -> None:
    cloud = SimCloud()
    provider = SimProvider(cloud)
    memory = create(tmp_path / "a", provider)
    memory.write("plans", "a newer plan")
    asyncio.run(memory.sync())
    memory.close()
    anchor = ipns_name(WALLET.head_public)
    root = target(verify_record(anchor, cloud.names[anchor][0]))
    assert isinstance(root, CID) and cloud.blocks.pop(root)
    back = restore(tmp_path / "b", provider)
    assert b"a newer plan" in back.read("plans").data
    back.close()
    # If the list shows no newer entry, the old words are evidence: a vault exists, and no empty one is
    # created.
    cloud.names[anchor] = cloud.names[anchor][:1]
    cloud.pins.clear()
    with pytest.raises(ProviderError, match="its start version cannot be read there"):
        restore(tmp_path / "c", provider)
    assert nothing_here(tmp_path / "c")


def test_recovery_phrase_is_not_blocked_by_an_old_record(tmp_path: Path) -> None:
    """The record of the phrase leads to the vault's record, whose ring is lost. Roots of other vaults are ignored."""
    cloud = SimCloud()
    provider = SimProvider(cloud)
    memory = create(tmp_path / "a", provider)
    words = words_of(memory)
    memory.close()
    stranger = RootKeys.from_random(b"\x05" * 64, "default", 1)
    other = Memory.create(
        "m",
        "encrypted-ipfs",
        provider=provider,
        unlock=stranger,
        recovery=False,
        passphrase=False,
        home=tmp_path / "x",
    )
    asyncio.run(other.sync())
    planted = other.status().root
    other.close()
    assert planted is not None
    cloud.pins.append(Pin(parse_cid(planted), pin_name(WALLET.head_public), "planted", 10**15))
    anchor = ipns_name(WALLET.head_public)
    root = target(verify_record(anchor, cloud.names[anchor][-1]))
    assert isinstance(root, CID) and cloud.blocks.pop(root)
    back = restore(tmp_path / "b", provider, key=words)
    assert b"an old plan" in back.read("plans").data
    back.close()


class Stalling(SimProvider):
    """A provider that currently cannot serve one block."""

    stalled: CID

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        found = await super().get_blocks([cid for cid in cids if cid != self.stalled])
        if self.stalled in cids:
            raise with_blocks(ProviderUnavailable("the provider does not answer now"), found)
        return found


def test_root_with_an_unavailable_commit_hides_no_older_one(tmp_path: Path) -> None:
    cloud = SimCloud()
    memory = create(tmp_path / "a", SimProvider(cloud))
    words = words_of(memory)
    memory.close()
    anchor = ipns_name(WALLET.head_public)
    root = target(verify_record(anchor, cloud.names[anchor][-1]))
    assert isinstance(root, CID) and cloud.blocks.pop(root)
    ring = next(block for block in cloud.blocks.values() if block.startswith(b'{"body":'))
    file = msgspec.json.decode(ring)
    shut = {**file, "body": canonical.b64(bytes(len(canonical.unb64(file["body"], ""))))}
    planted = build_tree({"keyring.json": canonical.encode(shut), "head.ipm": b"a commit"})
    cloud.blocks.update(planted.blocks)
    cloud.pins.append(Pin(planted.cid, pin_name(WALLET.head_public), "planted", 10**15))
    provider = Stalling(cloud)
    provider.stalled = raw_cid(sha256(b"a commit").digest())
    with pytest.raises(UnreadError, match="newer than the readable ones"):
        restore(tmp_path / "b", provider, key=words)
    back = restore(tmp_path / "c", provider, key=words, damaged_ok=True)
    assert b"an old plan" in back.read("plans").data
    back.close()
