"""Provider settings: one table for each kind in the settings file only."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ipfsmem import config
from ipfsmem.errors import ConfigError
from ipfsmem.memory import Memory
from ipfsmem.testing import SimProvider
from tests.unit.published.test_plain_layout import WALLET

FILE = """
vault = "alex"

[providers.pinata]
pinata_jwt = "s3cret-token"

[providers.directory]
create = true
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(FILE)
    monkeypatch.setenv("IPFSMEM_CONFIG", str(path))
    return path


def test_each_provider_kind_has_its_own_table(file: Path) -> None:
    known = config.settings()
    assert known.vault == "alex"
    assert known.of_provider("pinata") == known.of_provider("pinata:x") == {"pinata_jwt": "s3cret-token"}
    for folder in ("/media/stick", "./stick", "directory:/media/stick", "stick"):
        assert known.of_provider(folder) == {"create": True}
    assert known.of_provider("kubo:http://127.0.0.1:5001") == {}


def test_provider_tokens_are_not_shown(file: Path) -> None:
    assert "s3cret" not in repr(config.settings())


def test_environment_variables_do_not_replace_tables(file: Path) -> None:
    known = config.settings({"IPFSMEM_PROVIDERS": "x", "IPFSMEM_LABEL": "here"}, file)
    assert known.label == "here" and known.of_provider("pinata")


def test_provider_table_of_wrong_type_is_an_error(file: Path) -> None:
    file.write_text('[providers]\npinata = "token"\n')
    with pytest.raises(ConfigError, match="providers"):
        config.settings()


def test_provider_settings_reach_the_provider_and_not_the_vault(file: Path, tmp_path: Path) -> None:
    stick = tmp_path / "stick"  # created because the table says so
    with Memory.create(
        "x", provider=str(stick), mode="encrypted-ipfs", unlock=WALLET, passphrase=False, home=tmp_path / "a"
    ) as memory:
        asyncio.run(memory.sync())
        assert (stick / "packs").is_dir()
        assert b"create" not in (tmp_path / "a" / "x" / "ipfsmem.json").read_bytes()


def test_provider_settings_are_passed_by_every_way_of_opening(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipfsmem.provider import opening

    given: list[tuple[str, dict[str, Any]]] = []

    def opener(spec: str, settings: Mapping[str, Any] | None = None) -> SimProvider:
        chosen = dict(settings or {})
        # Providers already in use, and whether there are any.
        assert callable(chosen.pop("beside")) and isinstance(chosen.pop("company"), bool)
        assert chosen.pop("home") == tmp_path
        given.append((spec, chosen))
        return SimProvider()

    monkeypatch.setattr(opening, "open_provider", opener)
    pinata = ("pinata", {"pinata_jwt": "s3cret-token"})
    memory = Memory.create("x", "encrypted-ipfs", provider="pinata", passphrase=False, home=tmp_path)
    memory.providers.add("directory:/stick")
    asyncio.run(memory.providers.test("pinata"))
    assert [one.spec for one in memory.providers.list()] == ["pinata", "/stick"]
    memory.close()
    with Memory.load("x", home=tmp_path) as again:
        assert len(given) == 3  # local reads and writes open none
        assert [one.spec for one in again.providers.list()] == ["pinata", "/stick"]
    directory = ("/stick", {"create": True})  # stored and opened as the folder that it is
    # An open provider is reused; a provider test, and a reloaded vault, open their own.
    assert given == [pinata, directory, pinata, pinata, directory]


@pytest.mark.parametrize("value", ["[" * 3000 + "]" * 3000, "9" * 5000], ids=["nested", "digits"])
def test_unparsable_settings_file_is_named(value: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f"home = {value}\n")
    with pytest.raises(ConfigError, match=r"settings\.toml cannot be used"):
        config.settings({}, file)
