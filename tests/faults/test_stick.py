"""A provider's folder that disappears, is replaced or is changed during a sync: the local vault is never
affected."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.errors import IpfsmemError, NoVaultError, ProviderError, ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.wallet.root_keys import RootKeys
from tests.faults.fault_lab import (
    VAULT_NAME,
    Lab,
    assert_sound,
    closing,
    converge,
    stay_in_place,
    sync,
    texts,
)
from tests.support import effort


@pytest.fixture(autouse=True)
def _place(monkeypatch: pytest.MonkeyPatch) -> None:
    stay_in_place(monkeypatch)


class Vanishing:
    """A folder provider that runs `go` before its call number `left`."""

    def __init__(self, folder: Path, left: int, go: Callable[[], object]) -> None:
        self._real = DirectoryProvider(folder)
        self.left = left
        self._go = go

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left == -1:
                self._go()
            return await found(*args, **kwargs)

        return call


def test_folder_that_disappears_at_any_call_loses_nothing(tmp_path: Path) -> None:
    base = Lab(tmp_path / "base")
    with closing(base.create("a")) as (a,):
        a.write("first", "word")
        sync(a)
        with closing(base.restore("b")) as (b,):
            b.write("of-b", "b")
            sync(b)
        a.write("second", "of a")
        a.note("walked")
    number = 0
    while True:
        lab = base.copy(tmp_path / f"trial-{number}")
        away = lab.folder / "away"
        provider = Vanishing(lab.stick, number, lambda lab=lab, away=away: lab.stick.rename(away))  # type: ignore[misc]
        with closing(Memory.load(VAULT_NAME, provider=provider, home=lab.home("a"))) as (a,):  # type: ignore[arg-type]
            failed = False
            try:
                sync(a)
            except ProviderUnavailable as error:
                failed = True
                assert "stick" in str(error) and "\n" not in str(error)
            assert {"first", "second"} <= texts(a).keys()
            assert_sound(a)
            a.write("offline", "still writable")
        gone = away.exists()
        if gone:
            away.rename(lab.stick)
        if gone and not failed:  # calls after the names may fail: everything was read
            with closing(lab.open("b")) as (b,):
                sync(b)
                assert texts(b).keys() == {"first", "second", "of-b"} and len(b.timeline.read()) == 1
        with closing(lab.open("a"), lab.open("b")) as (a, b):
            converge(a, b)
            assert texts(b) == {
                "first": {"word"}, "second": {"of a"}, "of-b": {"b"}, "offline": {"still writable"}
            }  # fmt: skip
            assert len(b.timeline.read()) == 1
        shutil.rmtree(lab.folder)
        assert gone or not failed
        if not gone:
            break
        number += effort.every(2)
    assert number > 5


def test_restore_from_a_folder_that_vanishes(tmp_path: Path) -> None:
    base = Lab(tmp_path / "base")
    with closing(base.create("a")) as (a,):
        a.write("first", "word")
        sync(a)
    number = 0
    while True:
        lab = base.copy(tmp_path / f"trial-{number}")
        provider = Vanishing(lab.stick, number, lambda lab=lab: lab.stick.rename(lab.folder / "away"))  # type: ignore[misc]
        try:
            c = lab.restore("c", provider)
        except ProviderError as error:
            assert "\n" not in str(error)
            assert not (lab.home("c") / VAULT_NAME).exists()
            (lab.folder / "away").rename(lab.stick)
            c = lab.restore("c")
        with closing(c):
            assert texts(c) == {"first": {"word"}}
        number += effort.every(2)
        if provider.left >= 0:
            break
    assert number > 5


def test_folder_of_another_vault(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    with closing(lab.create("a")) as (a,):
        a.write("first", "word")
        sync(a)
        other = RootKeys.from_random(b"\x09" * 64, "default", 1)
        with pytest.raises(NoVaultError):
            Memory.load(VAULT_NAME, "encrypted-ipfs", provider=str(lab.stick), unlock=other, passphrase=False, home=lab.home("z"))  # fmt: skip
        assert not (lab.home("z") / VAULT_NAME).exists()
        z = Memory.create(VAULT_NAME, "encrypted-ipfs", provider=str(lab.stick), unlock=other, passphrase=False, home=lab.home("z"))  # fmt: skip
        with closing(z):
            z.write("theirs", "text")
            assert sync(z).notices == []
            assert texts(z) == {"theirs": {"text"}}
            assert sync(a).notices == []
            assert texts(a) == {"first": {"word"}}
    with closing(lab.restore("b")) as (b,):
        assert texts(b) == {"first": {"word"}}


def test_names_of_another_vault_are_refused(tmp_path: Path) -> None:
    lab, other = Lab(tmp_path / "one"), Lab(tmp_path / "two")
    with closing(lab.create("a")) as (a,):
        a.write("first", "word")
        sync(a)
        other.stick.mkdir(parents=True)
        z = Memory.create(VAULT_NAME, "encrypted-ipfs", provider=str(other.stick), unlock=RootKeys.from_random(b"\x09" * 64, "default", 1), passphrase=False, home=other.home("z"))  # fmt: skip
        with closing(z):
            z.write("theirs", "text")
            sync(z)
        shutil.copytree(other.stick / "packs", lab.stick / "packs", dirs_exist_ok=True)
        theirs = sorted((other.stick / "names").iterdir())
        for ours, record in zip(sorted((lab.stick / "names").iterdir()), theirs * 9, strict=False):
            ours.write_bytes(record.read_bytes())
        a.write("second", "word")
        sync(a)
        assert texts(a) == {"first": {"word"}, "second": {"word"}}
    with closing(lab.restore("b")) as (b,):
        assert texts(b) == {"first": {"word"}, "second": {"word"}}


@pytest.mark.parametrize("what", ["packs", "names", "pins"])
@pytest.mark.parametrize("how", ["flip", "cut", "empty", "remove"])
def test_damaged_folder_never_gives_wrong_texts(tmp_path: Path, what: str, how: str) -> None:
    base = Lab(tmp_path / "base")
    with closing(base.create("a")) as (a,):
        for i in range(8):
            a.write(f"k{i}", f"text {i}")
        sync(a)
        a.write("k1", "changed")
        sync(a)
        right = texts(a)
    draw = random.Random(f"{what} {how}")
    for number in range(3 if how in ("flip", "cut") else 1):  # the others are the same each time
        lab = base.copy(tmp_path / f"trial-{number}")
        for path in sorted((lab.stick / what).iterdir()):
            data = bytearray(path.read_bytes())
            if how == "remove":
                path.unlink()
                continue
            if how == "flip" and data:
                for _ in range(3):
                    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            elif how == "cut":
                del data[draw.randrange(len(data) + 1) :]
            else:
                data.clear()
            path.chmod(0o600)
            path.write_bytes(data)
        try:
            with closing(lab.restore("c", create=False)) as (c,):
                held = texts(c)
                assert all(held[key] <= right[key] for key in held)
                assert held.keys() == right.keys() or any(not item.fetched for item in c.list())
        except IpfsmemError as error:
            assert "\n" not in str(error)
        with closing(lab.open("a")) as (a,):
            a.write("later", "text")
            try:
                sync(a)
            except ProviderError as error:
                assert "\n" not in str(error)
            assert texts(a) == {**right, "later": {"text"}}
            assert_sound(a)
        shutil.rmtree(lab.folder)


def test_truncated_block_is_named(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    with closing(lab.create("a")) as (a,):
        a.write("first", "word")
        sync(a)

    class Cutting(DirectoryProvider):
        async def get_blocks(self, cids: Any) -> Any:
            return {cid: data[:-1] for cid, data in (await super().get_blocks(cids)).items()}

    # Also if a new vault may be created: one exists, and an empty one would replace its anchor.
    with pytest.raises(ProviderError, match="does not match its CID") as caught:
        lab.restore("b", Cutting(lab.stick), create=True)
    assert not isinstance(caught.value, NoVaultError)
    assert not (lab.home("b") / VAULT_NAME).exists()
