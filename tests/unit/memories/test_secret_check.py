"""Checks before publishing: consent in mode `ipfs`, and a scan for secrets of new texts only."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from types import ModuleType
from typing import Literal

import pytest

from ipfsmem.bundle import secrets
from ipfsmem.bundle.secrets import SecretFinding
from ipfsmem.causal.entries import memory_entry
from ipfsmem.device.lock import file_lock
from ipfsmem.errors import LockedError, PublicError, SecretsError
from ipfsmem.memories import secret_check
from ipfsmem.memories.memories import EntryContext, WriteBasis
from ipfsmem.memories.memory_records import Seen
from ipfsmem.memory import Memory
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x0b"))
KEY = "AKIA" + "ABCDEFGHIJKLMNOP"
OTHER = "ghp_" + "a1B2c3D4e5" * 4


@pytest.fixture
def cloud() -> SimCloud:
    return SimCloud()


def device(
    tmp_path: Path, cloud: SimCloud, name: str = "a", mode: Literal["ipfs", "encrypted-ipfs"] = "ipfs"
) -> Memory:
    return Memory.load("x", mode, provider=SimProvider(cloud), unlock=WALLET, passphrase=False, home=tmp_path / name, create=True)  # fmt: skip


def sync(memory: Memory, **more: object) -> list[str]:
    report = asyncio.run(memory.sync(**more))  # type: ignore[arg-type]
    return [notice.text for notice in report.notices if notice.kind == "secret"]


def test_public_vault_is_not_published_before_consent(tmp_path: Path, cloud: SimCloud) -> None:
    with device(tmp_path, cloud) as memory:
        memory.write("tone", "direct")
        with pytest.raises(PublicError, match="everyone can read"):
            sync(memory)
        with pytest.raises(PublicError):
            asyncio.run(memory.providers.move(SimProvider(SimCloud())))
        assert not cloud.blocks and not cloud.names and not cloud.pins
        sync(memory, public_ok=True)
        assert cloud.blocks
    with Memory.load("x", provider=SimProvider(cloud), home=tmp_path / "a") as again:
        again.write("more", "text")
        sync(again)  # it is remembered


def test_recovered_public_vault_asks_for_consent_once(tmp_path: Path, cloud: SimCloud) -> None:
    with device(tmp_path, cloud) as memory:
        sync(memory, public_ok=True)
    with device(tmp_path, cloud, "b") as other:
        other.write("tone", "direct")
        with pytest.raises(PublicError, match="everyone can read"):
            sync(other)
        sync(other, public_ok=True)
        sync(other)


def test_encrypted_vault_requires_no_consent(tmp_path: Path, cloud: SimCloud) -> None:
    with device(tmp_path, cloud, mode="encrypted-ipfs") as memory:
        memory.write("tone", "direct")
        assert sync(memory) == []


def test_secret_stops_the_publish_and_is_named_but_not_shown(tmp_path: Path, cloud: SimCloud) -> None:
    with device(tmp_path, cloud) as memory:
        sync(memory, public_ok=True)
        before = len(cloud.pins)
        memory.write("aws_notes", f"how to log in\n\nuse {KEY}\n")
        memory.note("pasted", text=OTHER)
        for _ in range(2):  # it tries again
            with pytest.raises(SecretsError) as caught:
                sync(memory)
            said = caught.value.diagnostics()
            assert "aws_notes line 8: AWS access key" in said and "--allow aws_notes" in said
            assert "timeline/" in said and "(pasted): GitHub token" in said
            assert KEY not in said and OTHER not in said
        assert len(cloud.pins) == before
        assert not any(KEY.encode() in data or OTHER.encode() in data for data in cloud.blocks.values())
        memory.write("aws_notes", "use the key from the vault")
        with pytest.raises(SecretsError) as caught:
            sync(memory)
        assert "aws_notes" not in str(caught.value)
        day = memory.timeline.read()[0]["ts"][:10]
        sync(memory, allow=[f"timeline/{day}"])
        assert any(OTHER.encode() in data for data in cloud.blocks.values())
        assert not any(KEY.encode() in data for data in cloud.blocks.values())


def test_allowed_secret_is_not_reported_again(tmp_path: Path, cloud: SimCloud) -> None:
    with device(tmp_path, cloud) as memory:
        memory.write("doc", f"the example key of the manual is {KEY}")
        sync(memory, public_ok=True, allow=["doc"])
        memory.write("doc", f"the example key of the manual is {KEY}, says the manual")
        sync(memory)
        memory.write("doc", f"the example key of the manual is {KEY}, and mine {OTHER}")
        with pytest.raises(SecretsError, match=r"doc line 6: GitHub token$"):
            sync(memory)


def test_texts_published_by_other_devices_are_not_scanned(tmp_path: Path, cloud: SimCloud) -> None:
    with device(tmp_path, cloud) as a:
        a.write("doc", f"example {KEY}")
        sync(a, public_ok=True, allow=["doc"])
        with device(tmp_path, cloud, "b") as b:
            b.write("mine", "text")
            sync(b, public_ok=True)


def test_joined_text_is_present_though_the_publish_stopped(tmp_path: Path, cloud: SimCloud) -> None:
    with device(tmp_path, cloud) as a:
        sync(a, public_ok=True)
        with device(tmp_path, cloud, "b") as b:
            b.write("from_b", "text")
            sync(b, public_ok=True)
        a.write("doc", KEY)
        with pytest.raises(SecretsError):
            sync(a)
        assert a.read("from_b") is not None
        assert (tmp_path / "a" / "x" / "memory" / "from_b.md").exists()


def test_edited_plain_file_and_import_are_scanned_too(tmp_path: Path, cloud: SimCloud) -> None:
    with device(tmp_path, cloud) as memory:
        memory.bundles.import_(
            b'{"version":"memory/0.1","files":{"old.md":"%s"},"timeline":[]}' % KEY.encode()
        )
        (tmp_path / "a" / "x" / "memory" / "by_hand.md").write_text(f"{OTHER}\n")
        with pytest.raises(SecretsError) as caught:
            sync(memory, public_ok=True)
        assert "old line" in str(caught.value) and "by_hand line 1" in str(caught.value)


def test_encrypted_vault_reports_a_secret_once_and_publishes(tmp_path: Path, cloud: SimCloud) -> None:
    with device(tmp_path, cloud, mode="encrypted-ipfs") as memory:
        memory.write("aws", KEY)
        (said,) = sync(memory)
        assert said.startswith("aws line 6: AWS access key") and KEY not in said
        assert sync(memory) == []
        memory.write("aws", f"{KEY}, still")
        assert sync(memory) == []
        memory.write("aws", f"{KEY} and {OTHER}")
        (said,) = sync(memory)
        assert "GitHub token" in said


def test_text_with_many_secrets_is_reported_in_one_line(tmp_path: Path, cloud: SimCloud) -> None:
    with device(tmp_path, cloud, mode="encrypted-ipfs") as memory:
        memory.write("aws", f"one {KEY}")
        memory.write("keys", "".join(f"key = {KEY[:-4]}{n:04}\n" for n in range(1000, 1300)))
        told = sync(memory)
    assert len(told) == 2
    assert told[0].startswith("aws line ") and "more" not in told[0]
    assert told[1].startswith("keys line ") and "(and 299 more such places in it)" in told[1]


def test_publish_scans_new_texts_only(
    tmp_path: Path, cloud: SimCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def scan(text: str) -> list[secrets.SecretFinding]:
        seen.append(text)
        return []

    monkeypatch.setattr(secrets, "find_secrets", scan)
    for kind in ("ipfs", "encrypted-ipfs"):
        seen.clear()
        with device(tmp_path, SimCloud(), kind, kind) as memory:
            for n in range(20):
                memory.write(f"k{n}", f"text {n}")
            sync(memory, public_ok=True)
            assert len(seen) == 20
            sync(memory)
            memory.write("k3", "other text")
            sync(memory)
            assert len(seen) == 21 and "other text" in seen[-1]


def test_list_of_unscanned_texts_is_sealed(tmp_path: Path, cloud: SimCloud) -> None:
    with device(tmp_path, cloud, mode="encrypted-ipfs") as memory:
        memory.write("a_telling_name", f"the key is {KEY}")
        rows = memory.replica.db.connection.execute("SELECT names FROM unscanned").fetchall()
        assert rows and not any(b"telling" in row[0] for row in rows)
        sync(memory)
        assert not memory.replica.db.connection.execute("SELECT names FROM unscanned").fetchall()
        assert b"telling" not in (tmp_path / "a" / "x" / "state.db").read_bytes()


def test_secret_added_to_an_old_memory_is_found(tmp_path: Path, cloud: SimCloud) -> None:
    with device(tmp_path, cloud) as memory:
        memory.write("old", "nothing in it")
        memory.write("other", "nor here")
        sync(memory, public_ok=True)
    with device(tmp_path, cloud) as memory:
        sync(memory)
        memory.write("old", f"nothing in it, but {KEY}")
        with pytest.raises(SecretsError, match="old line 6: AWS access key"):
            sync(memory)


def test_changed_rules_rescan_a_public_vault(
    tmp_path: Path, cloud: SimCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    found: list[secrets.SecretFinding] = []

    def scan(text: str) -> list[secrets.SecretFinding]:
        looked.append(text.split("\n")[-2].strip())
        return found if "secret" in text else []

    monkeypatch.setattr("ipfsmem.memories.secret_check.secrets.find_secrets", scan)
    with device(tmp_path, cloud) as memory:
        memory.write("old", "the secret of life")
        sync(memory, public_ok=True)
    with device(tmp_path, cloud, "b") as other:
        sync(other, public_ok=True)
        other.write("theirs", "written by somebody else")
        sync(other)
    with device(tmp_path, cloud) as memory:
        looked.clear()
        sync(memory)
        memory.write("new", "some text")
        sync(memory)
        assert looked == ["some text"]
        # The source of a rule has the same name and other contents now.
        monkeypatch.setattr("ipfsmem.memories.secret_check.source_hash", lambda *modules: b"other rules")
        found.append(secrets.SecretFinding(1, 0, 3, "something new"))
        looked.clear()
        memory.write("newer", "more text")
        for _ in range(2):  # a stopped scan starts from the beginning the next time
            with pytest.raises(SecretsError, match="old line 1: something new"):
                sync(memory)
            assert sorted(looked) == ["more text", "some text", "the secret of life"]
            looked.clear()
        sync(memory, allow=["old"])
        looked.clear()
        memory.write("newest", "last text")
        sync(memory)
        assert looked == ["last text"]


def test_source_hash_depends_on_the_modules_and_their_order() -> None:
    from ipfsmem import wordlist
    from ipfsmem.device.source_hash import source_hash

    assert source_hash(secrets) == source_hash(secrets) != source_hash(wordlist)
    assert source_hash(secrets, wordlist) != source_hash(wordlist, secrets)
    module = ModuleType("no_source")
    assert len(source_hash(module)) == 16


@pytest.mark.parametrize("mode", ["ipfs", "encrypted-ipfs"])
def test_scan_does_not_block_other_writers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Literal["ipfs", "encrypted-ipfs"]
) -> None:
    """Texts written meanwhile are scanned too."""
    home = tmp_path / "home"
    memory = Memory.create("m", mode, provider=SimProvider(), passphrase=False, home=home, public_ok=True)
    memory.write("tone", "direct")
    looked: list[str] = []
    free: list[bool] = []
    real = secret_check.secrets.find_secrets

    def scan(text: str) -> list[SecretFinding]:
        looked.append(text)
        try:
            with file_lock(home / "m" / "lock", wait=0):
                free.append(True)
        except LockedError:
            free.append(False)
        if len(looked) == 1:
            with Memory.load("m", home=home) as other:
                other.write("later", f"the token is {OTHER}")
        return real(text)

    monkeypatch.setattr(secret_check.secrets, "find_secrets", scan)
    if mode == "ipfs":
        with pytest.raises(SecretsError, match="later"):
            asyncio.run(memory.sync())
    else:
        assert any("later" in notice.text for notice in asyncio.run(memory.sync()).notices)
    assert len(looked) == 2 and all(free)
    memory.close()


@pytest.mark.parametrize("how", ["new", "whole", "one field", "resolve"])
def test_long_text_is_scanned_before_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A text that changed meanwhile is scanned again."""
    home = tmp_path / "home"
    text = "what is long is looked at\n" * 4_000
    with Memory.create("m", "encrypted-ipfs", provider=SimProvider(), passphrase=False, home=home) as memory:
        memory.write("k", text)
        free: list[bool] = []
        real = secrets.find_secrets

        def scan(looked: str) -> list[SecretFinding]:
            with contextlib.ExitStack() as held:
                try:
                    held.enter_context(file_lock(home / "m" / "lock", wait=0))
                    free.append(True)
                except LockedError:
                    free.append(False)
            return real(looked)

        monkeypatch.setattr(secrets, "find_secrets", scan)
        if how == "new":
            memory.write("other", text)
        elif how == "whole":
            memory.write_text("k", text.encode() + b"more")
        elif how == "one field":
            memory.write("k", description="said")
        else:
            shown = memory.read("k")
            assert shown is not None
            memory.resolve("k", text.encode() + b"settled", seen=shown)
        assert free == [True]
        meanwhile = iter([True])
        made = memory._memories.before

        def before(here: EntryContext, seen: Seen | None) -> WriteBasis:
            found = made(here, seen)
            if next(meanwhile, False):
                with Memory.load("m", home=home) as other:
                    other.write("k", text + f"the token is {OTHER}")
            return found

        monkeypatch.setattr(memory._memories, "before", before)
        free.clear()
        memory.write("k", description="again")
        reading = memory.read("k")
        assert reading is not None and OTHER in reading.data.decode() and free == [True, True, False]
        (value,) = memory.replica.store.entry(memory_entry("k")).values()
        assert value.loc is not None and value.loc.size > len(text)
