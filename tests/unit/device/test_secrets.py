"""Identity and files of a device; an encrypted vault leaves no plain text on the disk."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from ipfsmem.device.identity import (
    KEY_FILE,
    load_device,
    new_device,
    open_row,
    place,
    save_device,
    seal_row,
)
from ipfsmem.device.tables import meta
from ipfsmem.errors import (
    FormatError,
    KeyNameError,
    LimitError,
    OpenError,
    PassphraseError,
    SignerError,
    StorageError,
    WrongWalletError,
)
from ipfsmem.memory import Memory
from ipfsmem.testing.clock import SeededRandom
from ipfsmem.vault.home import Home
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.root_keys import RootKeys
from tests.unit.device.replica_lab import ROOT, make, reopen

CANARIES = ("zebrakey", "Wombat name", "quokka body", "axolotl event", "narwhaltag", "kakapo description")


def test_device_file_is_private_and_restores_the_device(tmp_path: Path) -> None:
    """With and without a passphrase."""
    random = SeededRandom("device")
    device = new_device(random)
    for passphrase in (None, "pass ü"):
        save_device(tmp_path, device, passphrase, random)
        assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
        assert load_device(tmp_path, passphrase) == device
    with pytest.raises(PassphraseError):
        load_device(tmp_path, "wrong")
    with pytest.raises(PassphraseError):
        load_device(tmp_path, None)
    for secret in (device.sign_seed, device.box_secret, device.row_key):
        assert secret not in (tmp_path / KEY_FILE).read_bytes()
        assert secret.hex() not in repr(device) + str(device)
    with pytest.raises(StorageError, match="missing"):
        load_device(tmp_path / "elsewhere", None)


def test_successor_has_another_id_and_the_same_box_and_row_keys() -> None:
    random = SeededRandom("device")
    device = new_device(random)
    after = device.successor(random)
    assert device.id != after.id and len(after.id) == 16
    assert (after.box_public, after.row_key) == (device.box_public, device.row_key)


@pytest.mark.parametrize("cut", [0, 1, 24, 39, 40])
def test_damaged_rows_do_not_open(cut: int) -> None:
    """A row that was cut, changed or written by another device is an OpenError."""
    key, other = bytes(32), bytes([1]) * 32
    stored = seal_row(key, b"row", bytes(24))
    assert open_row(key, stored) == b"row"
    with pytest.raises(OpenError):
        open_row(key, stored[:cut])
    with pytest.raises(OpenError):
        open_row(other, stored)
    changed = bytearray(stored)
    changed[cut] ^= 1
    with pytest.raises(OpenError):
        open_row(key, bytes(changed))


def test_copied_local_vault_gets_another_id(tmp_path: Path) -> None:
    replica = make(tmp_path / "n")
    old = replica.device.id
    assert not replica.was_moved()
    replica = reopen(replica)
    assert replica.device.id == old
    replica.close()
    shutil.copytree(tmp_path / "n", tmp_path / "copy")
    assert place(tmp_path / "n" / "state.db") != place(tmp_path / "copy" / "state.db")
    from ipfsmem.vault.opening import open_replica
    from tests.unit.device.replica_lab import world

    ids = set()
    for _ in range(2):
        copy = open_replica(tmp_path / "copy", None, world("copy"))
        ids.add(copy.device.id)
        copy.close()
    assert len(ids) == 1 and old not in ids


def test_failed_transaction_leaves_no_ring(tmp_path: Path) -> None:
    from ipfsmem.ring.keyring import Ring

    replica = make(tmp_path / "n", "encrypted-ipfs")
    ring = replica.ring
    assert isinstance(ring, Ring)
    with replica.transaction():
        meta.forget(replica.db.connection, [meta.RING])
    replica.ring, replica._ring_dump = None, b""
    with pytest.raises(ZeroDivisionError), replica.transaction():
        replica.set_ring(ring)
        raise ZeroDivisionError
    with replica.reading():
        assert replica.ring is None
    with replica.transaction():
        replica.set_ring(ring)
    replica = reopen(replica)
    assert replica.ring is not None
    replica.close()


def test_encrypted_vault_leaves_no_plain_text_on_disk_or_provider(tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    home = tmp_path / "home"
    seen: set[str] = set()

    def look() -> None:
        for path in (*home.rglob("*"), *stick.rglob("*")):
            if not path.is_file():
                continue
            seen.add(path.name)
            data = path.read_bytes()
            for canary in (*CANARIES, "correct horse"):
                for form in (canary.encode(), canary.encode("utf-16-le"), canary.encode().hex().encode()):
                    assert form.lower() not in data.lower(), (path, canary)
                assert canary not in path.name
            for secret in secrets:
                assert secret not in data and secret.hex().encode() not in data, path

    memory = Memory.create(
        "n",
        "encrypted-ipfs",
        provider=str(stick),
        unlock=ROOT,
        passphrase="correct horse",
        home=Home(folder=home, label="lab"),
    )
    device = memory.replica.device
    secrets = [device.sign_seed, device.box_secret, device.row_key, ROOT.admin_seed, ROOT.head_seed]
    assert memory.replica.ring is not None
    secrets += [key.key for key in memory.replica.ring.keys]
    look()
    memory.write(
        "zebrakey", "quokka body\n" * 20, name="Wombat name", description="kakapo description",
        type="user", tags=["narwhaltag"],
    )  # fmt: skip
    memory.note("axolotl event", detail="quokka body")
    look()
    asyncio.run(memory.sync())
    look()
    memory.write("zebrakey", "quokka body again")
    memory.forget("zebrakey", reason="axolotl event")
    memory.list(), memory.index(), memory.status(), memory.check()
    look()
    memory.close()
    look()
    assert {"state.db", "state.db-wal", KEY_FILE, "ipfsmem.json"} <= seen


@pytest.mark.parametrize(
    ("key", "data", "error"),
    [
        ("a/b", b"x\n", KeyNameError),
        ("../x", b"x\n", KeyNameError),
        ("memory", b"x\n", KeyNameError),
        ("", b"x\n", KeyNameError),
        ("ok", b"\xff\xfe\n", FormatError),
        ("ok", b"---\nname: \xff\n---\n", FormatError),
        ("ok", b"---\nname: " + b"x" * 5000 + b"\n---\n\nbody\n", LimitError),
        ("ok", b"x" * (960 * 1024 + 1), LimitError),
    ],
)
def test_invalid_texts_are_refused_with_one_line(
    tmp_path: Path, key: str, data: bytes, error: type[Exception]
) -> None:
    with Memory.create("n", "local", home=tmp_path) as memory:
        with pytest.raises(error) as caught:
            memory.write_text(key, data)
        assert "\n" not in str(caught.value)
        assert memory.files() == {}
        memory.write_text("ok", b"fine\n")
        assert memory.files() == {"ok": b"fine\n"}


def test_import_names_omitted_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that disappears while it is read."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "good.md").write_text("good\n")
    (source / "binary.md").write_bytes(b"\xff\xfe\x00")
    (source / "large.md").write_bytes(b"x" * (960 * 1024 + 1))
    (source / "header.md").write_text("---\nname: " + "x" * 5000 + "\n---\n\nbody\n")
    (source / "gone.md").write_text("gone\n")
    (source / "link.md").symlink_to(source / "good.md")
    from ipfsmem.memories import containers

    real = containers.read_file

    def read(path: Path | str, limit: int, *, within: int | None = None) -> bytes | None:
        if Path(path).name == "gone.md":
            (source / "gone.md").unlink(missing_ok=True)
        return real(path, limit, within=within)

    monkeypatch.setattr(containers, "read_file", read)
    with Memory.create("n", "local", home=tmp_path / "home") as memory:
        result = memory.bundles.import_(source)
        assert memory.files() == {"good": b"good\n"}
        said = " | ".join(result.problems)
        for name in ("binary", "large", "header", "gone", "link"):
            assert name in said, (name, said)
        assert all("\n" not in problem for problem in result.problems)


class _Wobbly:
    """A wallet whose signatures are all valid and all different, like those of threshold signers."""

    def __init__(self) -> None:
        from ipfsmem.wallet.signers import RawKeySigner

        self.address = RawKeySigner(bytes(31) + b"\x05").address
        self.nonce = 1000

    def sign_message(self, message: bytes) -> bytes:
        from eth_account.messages import defunct_hash_message
        from eth_keys.backends.native.jacobian import fast_multiply
        from eth_keys.constants import SECPK1_G, SECPK1_N

        self.nonce += 1
        x, y = fast_multiply(SECPK1_G, self.nonce)
        z = int.from_bytes(defunct_hash_message(message), "big")
        s, v = pow(self.nonce, -1, SECPK1_N) * (z + x * 5) % SECPK1_N, y % 2
        if s > SECPK1_N // 2:
            s, v = SECPK1_N - s, 1 - v
        return x.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([27 + v])


def test_unsuitable_wallets_are_refused(tmp_path: Path) -> None:
    """A signer that is not deterministic creates nothing; another wallet opens nothing."""
    with pytest.raises(SignerError, match=r"differ|twice|same"):
        Memory.create("n", "encrypted-ipfs", unlock=Unlock(_Wobbly()), passphrase=False, home=tmp_path)  # type: ignore[arg-type]
    assert list(tmp_path.rglob("*")) == []
    with Memory.create("n", "encrypted-ipfs", unlock=ROOT, passphrase=False, home=tmp_path) as memory:
        memory.write("a", "text")
        with pytest.raises(WrongWalletError):
            memory.unlock(RootKeys.from_random(b"\x01" * 64, "default", 1))
        assert not memory.unlocked or memory._syncing.root is ROOT
        assert memory.files().keys() == {"a"}
