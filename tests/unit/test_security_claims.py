"""The promises of SECURITY.md about a provider, a thief and a former member, end to end with real devices.

Most rows of the table name unit tests; these are the rows that only a whole vault can show."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.causal.value import LIVE, Loc, Value, dot, sign_seen, sign_value
from ipfsmem.content.cid import CID, ipns_name
from ipfsmem.device.state import StateHeader
from ipfsmem.errors import NotFoundError, NoVaultError, ProviderUnavailable, UsageError, WrongWalletError
from ipfsmem.memory import Memory
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.sync.report import SyncReport
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.vault.home import Home
from ipfsmem.wallet.root_keys import RootKeys

ROOT = RootKeys.from_random(b"\x05" * 64, "default", 1)
STRANGER = RootKeys.from_random(b"\x06" * 64, "default", 1)
CANARIES = (b"zanzibar", b"Quillfeather", b"canarykey", b"marmalade")


class Place:
    """A home for several devices with one common provider."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cloud = SimCloud()
        self.providers: dict[str, SimProvider] = {}

    def load(self, name: str, root: RootKeys = ROOT) -> Memory:
        """Return the device of this name with its root locked; create or restore it if missing."""
        provider = self.providers.setdefault(name, SimProvider(self.cloud))
        memory = Memory.load(
            "m",
            "encrypted-ipfs",
            provider=provider,
            unlock=root,
            passphrase=False,
            home=Home(folder=self.folder / name, label=name),
            create=True,
        )
        memory.lock()
        return memory

    def sync(self, memory: Memory) -> SyncReport:
        return asyncio.run(memory.sync())

    def names(self) -> list[str]:
        return [*self.cloud.names]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def text_of(memory: Memory, key: str) -> str:
    reading = memory.read(key)
    assert reading is not None
    return reading.file.body


def kinds(report: SyncReport) -> list[str]:
    return [notice.kind for notice in report.notices]


def last_root(memory: Memory) -> CID:
    from ipfsmem.content.cid import parse_cid

    root = memory.status().root
    assert root is not None
    return parse_cid(root)


def test_no_plaintext_is_uploaded_or_on_the_disk(place: Place) -> None:
    a = place.load("a")
    a.write("canarykey", "zanzibar and more", name="Quillfeather", type="user")
    a.note("ate", what="marmalade")
    place.sync(a)
    a.write("canarykey", "zanzibar again")  # stays in the journal
    a.forget("canarykey", reason="marmalade")
    a.close()
    for canary in CANARIES:
        assert not place.providers["a"].saw(canary)
        assert not any(canary in block for block in place.cloud.blocks.values())
    files = [path for path in (place.folder / "a").rglob("*") if path.is_file()]
    assert len(files) > 2
    for path in files:
        data = path.read_bytes()
        assert not [c for c in CANARIES if c in data], path


@pytest.mark.parametrize("bit", [0, 77, 4001])
def test_changed_block_is_refused_named_and_fetched_later(place: Place, bit: int) -> None:
    a = place.load("a")
    for i in range(3):
        a.write(f"k{i}", f"text {i}")
    place.sync(a)
    b = place.load("b")
    assert text_of(b, "k1") == "text 1"
    a.write("k1", "a newer text")
    a.write("k2", "another newer text")
    place.sync(a)
    (value,) = a.replica.store.entry("m/k1").values()
    assert value.loc is not None
    cid = next(c for c in place.cloud.blocks if c.digest.hex() == value.loc.sha)
    place.providers["b"].faults.flip[cid] = bit
    report = place.sync(b)
    assert "bad-block" in kinds(report) and str(cid) in str(report.notices)
    assert text_of(b, "k2") == "another newer text"
    with pytest.raises(NotFoundError, match="not fetched"):
        b.read("k1")
    place.providers["b"].faults.flip.clear()
    place.sync(b)
    assert text_of(b, "k1") == "a newer text"


def test_changed_commit_or_ring_is_refused_and_nothing_is_joined(place: Place) -> None:
    a = place.load("a")
    a.write("k", "text")
    place.sync(a)
    b = place.load("b")
    before = b.files()
    a.write("k", "newer")
    place.sync(a)
    root = last_root(a)
    provider = place.providers["b"]
    for cid in place.cloud.tree(root)[:4]:
        provider.faults.flip = {cid: 9}
        place.sync(b)
        assert b.files() in (before, a.files())
    provider.faults.flip = {}
    place.sync(b)
    assert b.files() == a.files()


def test_old_head_is_reported_and_reverts_nothing(place: Place) -> None:
    a = place.load("a")
    place.sync(a)
    b = place.load("b")
    shown = 0
    name = ipns_name(a.replica.device.sign_public)
    for text in ("one", "two", "three"):
        a.write("k", text)
        place.sync(a)
        place.sync(b)
        shown = shown or len(place.cloud.names[name]) - 1
    place.providers["b"].faults.old_record[name] = shown
    with b.replica.transaction():  # as on a device without a record of its own
        b.replica.db.set_meta("names", b'{"records":{}}')
    report = place.sync(b)
    assert "stale" in kinds(report)
    assert text_of(b, "k") == "three"


def test_unavailable_provider_blocks_no_local_use(place: Place) -> None:
    a = place.load("a")
    a.write("k", "kept here")
    place.sync(a)
    place.providers["a"].faults.offline = True
    a.write("k", "written while it was away")
    with pytest.raises(ProviderUnavailable):
        place.sync(a)
    assert text_of(a, "k") == "written while it was away"
    place.cloud.blocks.clear()
    place.cloud.names.clear()
    place.cloud.pins.clear()
    place.providers["a"].faults.offline = False
    place.sync(a)
    assert text_of(a, "k") == "written while it was away"


def test_another_wallet_finds_and_opens_nothing(place: Place) -> None:
    a = place.load("a")
    a.write("k", "text")
    place.sync(a)
    provider = SimProvider(place.cloud)
    with pytest.raises(NoVaultError):
        asyncio.run(
            Memory.recover("m", provider=provider, unlock=STRANGER, passphrase=False, home=place.folder / "x")
        )
    assert not (place.folder / "x" / "m" / "ipfsmem.json").exists()
    with pytest.raises(WrongWalletError):
        a.unlock(STRANGER)


def test_revoked_device_reaches_nobody_and_reads_nothing_new(place: Place) -> None:
    a = place.load("a")
    a.write("k", "before")
    place.sync(a)
    thief = place.load("thief")
    assert text_of(thief, "k") == "before"
    a.unlock(ROOT)
    asyncio.run(a.members.revoke(thief.device))
    a.write("k", "after")
    a.write("secret", "sealed under the new key")
    place.sync(a)

    thief.write("k", "by the thief")
    report = place.sync(thief)
    assert not report.published
    assert thief.read("secret") is None
    place.sync(a)
    assert text_of(a, "k") == "after"
    assert "by the thief" not in str([a.read(k) for k in ("k", "secret")])
    # It can still open what it had: no key that it holds opens the new text.
    (value,) = a.replica.store.entry("m/secret").values()
    assert value.loc is not None and thief.replica.ring is not None
    assert value.loc.ek not in thief.replica.ring.view.eks


def _forge(memory: Memory, signer: Signer25519, device: str) -> None:
    """Put a value under another device's name among its own, as a dishonest member would."""
    replica = memory.replica
    vault = replica.vault_tag
    assert vault is not None
    with replica.transaction():
        ek, stored = replica.codec.seal_body("m/forged", b"never said\n")
        from hashlib import sha256

        digest = sha256(stored)
        value = Value(
            b=(),
            body=sha256(b"never said\n").hexdigest(),
            h=replica.store.frame.hlc,
            kind=LIVE,
            loc=Loc(ek, digest.hexdigest(), len(stored)),
        )
        frame = replica.store.frame
        n = frame.ctx.get(device, 0) + 1
        name = dot(device, n)
        signed = sign_value(signer, "m/forged", name, value, vault)
        seen = {**frame.seen, device: sign_seen(signer, vault, device, n, "0102030405060708")}
        replica.store.apply(
            {"m/forged": {name: signed}},
            StateHeader({**frame.ctx, device: n}, seen, frame.hlc),
            [(digest.digest(), stored)],
        )


def test_member_cannot_write_in_anothers_name(place: Place) -> None:
    a = place.load("a")
    a.write("k", "text")
    place.sync(a)
    mallory, b = place.load("mallory"), place.load("b")
    _forge(mallory, mallory.replica.device.signer, a.device)
    place.sync(mallory)
    for victim in (a, b):
        report = place.sync(victim)
        assert "head-refused" in kinds(report)
        assert victim.read("forged") is None
        assert text_of(victim, "k") == "text"


def test_keys_and_texts_are_absent_from_repr(place: Place) -> None:
    a = place.load("a")
    a.unlock(ROOT)
    assert a.replica.ring is not None and a._syncing.root is not None
    secrets = [
        *(ek.key for ek in a.replica.ring.keys),
        a.replica.device.sign_seed,
        a.replica.device.box_secret,
        a.replica.device.row_key,
        ROOT.admin_seed,
        ROOT.box_secret,
        ROOT.head_seed,
    ]
    shown = " ".join(
        map(repr, (a.replica.ring, a.replica.ring.keys, a.replica.device, a._syncing.root, a.status()))
    )
    for secret in secrets:
        assert secret.hex() not in shown and repr(secret)[2:-1] not in shown


def test_encrypted_vault_requires_a_passphrase_or_consent(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="passphrase"):
        Memory.create("m", "encrypted-ipfs", unlock=ROOT, home=tmp_path)
    assert not (tmp_path / "m").exists()


def test_key_files_are_private(place: Place) -> None:
    a = place.load("a")
    folder = a.replica.folder
    assert folder is not None
    assert folder.stat().st_mode & 0o077 == 0
    for name in ("device.key", "state.db", "ipfsmem.json"):
        assert (folder / name).stat().st_mode & 0o077 == 0, name
