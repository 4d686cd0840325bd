"""Providers of other installed packages are opened, named and listed on the key sheet like ours."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.errors import ConfigError
from ipfsmem.memory import Memory
from ipfsmem.provider import contract
from tests.support.device_lab import ROOT
from tests.support.plugin_lab import plugin_lab

SHED = """
from ipfsmem.testing import SimCloud, SimProvider

CLOUD = SimCloud()

class ShedProvider(SimProvider):
    def __init__(self, rest, settings):
        super().__init__(CLOUD, name=f"shed:{rest}")

    @staticmethod
    def lasting(rest):
        return rest.lower()

    @staticmethod
    def warning(rest):
        return f"{rest} has no roof."

    @staticmethod
    def require_address(rest):
        if not rest:
            raise ValueError("no address")
"""


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`shed` with all functions about an address, `plain` without them, and `torn`, which cannot be
    imported."""
    lab = plugin_lab(tmp_path, monkeypatch)
    group = contract.ENTRY_POINTS
    lab.install("shed", SHED, package="shed_package", value="ShedProvider", group=group)
    plain = SHED.partition("    @staticmethod")[0].replace("shed", "plain").replace("Shed", "Plain")
    lab.install("plain", plain, package="plain_package", value="PlainProvider", group=group)
    lab.install("torn", "raise RuntimeError('no shed today')", package="torn_package", group=group)
    contract._installed.cache_clear()
    yield
    contract._installed.cache_clear()
    for name in ("shed_package", "plain_package", "torn_package"):
        sys.modules.pop(name, None)


def test_address_functions_of_a_package_are_called() -> None:
    assert contract.lasting_spec("shed:Garden") == "shed:garden"
    assert contract.spec_warning("shed:Garden") == "Garden has no roof."
    with pytest.raises(ValueError, match="no address"):
        contract.require_address("shed:")


@pytest.mark.parametrize("spec", ["plain:Garden", "torn:Garden"])
def test_address_of_a_provider_without_functions_is_unchanged(spec: str) -> None:
    assert contract.lasting_spec(spec) == spec and contract.spec_warning(spec) == ""
    contract.require_address(spec)


def test_package_that_cannot_be_imported_is_an_error_with_its_reason() -> None:
    with pytest.raises(ConfigError, match="provider torn cannot be loaded: no shed today"):
        contract.open_provider("torn:Garden")


def test_provider_whose_package_broke_can_be_removed(tmp_path: Path) -> None:
    with Memory.create(
        "m", "encrypted-ipfs", home=tmp_path / "home", provider="shed:garden", unlock=ROOT, passphrase=False
    ) as memory:
        memory.providers.add("plain:yard")
    sys.modules.pop("shed_package", None)
    (tmp_path / "site" / "shed_package.py").write_text(
        "raise RuntimeError('rain')  # and longer than before", "utf-8"
    )
    with Memory.load("m", home=tmp_path / "home") as memory:
        memory.providers.remove("shed:garden")
        assert [one.spec for one in memory.providers.list()] == ["plain:yard"]


def test_settings_of_another_package_are_on_the_sheet_without_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHED_TOKEN", "a-secret-of-the-shed")
    spec = "shed:garden-a-secret-of-the-shed"
    with Memory.create(
        "m", "encrypted-ipfs", home=tmp_path / "home", provider=spec, unlock=ROOT, passphrase=False
    ) as memory:
        asyncio.run(memory.sync())
        (place,) = memory.members.recovery_sheet().providers
    assert (place.settings, place.provider, place.hidden) == (["SHED_TOKEN"], "shed:garden-...", True)
