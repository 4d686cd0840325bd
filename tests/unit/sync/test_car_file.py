"""A sync imports a version saved as a CAR of the same vault, and refuses any other file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.errors import FormatError, StorageError
from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys


def create_vault(tmp_path: Path, name: str) -> Memory:
    home = Home(folder=tmp_path / f"home-{name}", label=name)
    stick = tmp_path / f"stick-{name}"
    stick.mkdir(exist_ok=True)
    return Memory.create(name, "encrypted-ipfs", provider=str(stick), passphrase=False, home=home)


def test_car_of_another_vault_or_an_invalid_file_is_refused(tmp_path: Path) -> None:
    with create_vault(tmp_path, "one") as one, create_vault(tmp_path, "two") as two:
        one.write("tone", "Be direct.")
        two.write("secret", "From another vault.")
        for memory in (one, two):
            asyncio.run(memory.sync())
        car = tmp_path / "two.car"
        with car.open("wb") as out:
            two.bundles.export_published(out)
        one.write("later", "Published all the same.")
        report = asyncio.run(one.sync(car=car))
        assert one.read("secret") is None and not one.status().unpublished
        assert report.published and report.blocks_sent and report.exit_code == 10
        texts = [notice.text for notice in report.notices]
        assert f"this sync merged nothing from the file {car}" in texts and any(
            "was not used" in text for text in texts
        )
        (tmp_path / "invalid.car").write_bytes(b"not a CAR")
        with pytest.raises(FormatError):
            asyncio.run(one.sync(car=tmp_path / "invalid.car"))
        with pytest.raises(StorageError, match="cannot be read"):
            asyncio.run(one.sync(car=tmp_path / "missing.car"))


def test_car_of_a_device_on_another_provider_is_merged(tmp_path: Path) -> None:
    with create_vault(tmp_path, "one") as one:
        one.write("tone", "Be direct.")
        asyncio.run(one.sync())
        words = one.recovery_words
        assert words is not None
        other = tmp_path / "copy"
        other.mkdir()
        home = Home(folder=tmp_path / "second", label="second")
        recovering = Memory.recover(
            "one",
            provider=str(tmp_path / "stick-one"),
            unlock=RootKeys.from_recovery(from_words(" ".join(words))),
            passphrase=False,
            home=home,
        )
        with asyncio.run(recovering) as second:
            second.write("later", "Published only to another provider.")
            asyncio.run(second.sync(provider=str(other)))
            car = tmp_path / "saved.car"
            with car.open("wb") as out:
                second.bundles.export_published(out)
        asyncio.run(one.sync())
        assert one.read("later") is None
        report = asyncio.run(one.sync(car=str(car)))
        here = one.read("later")
        assert (
            report.exit_code == 0
            and here is not None
            and here.file.body == "Published only to another provider."
        )
