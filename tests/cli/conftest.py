"""Devices for the tests of the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import prepared
from tests.support.cli_lab import Cli


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("IPFSMEM_") and name != "IPFSMEM_EMBEDDINGS":
            monkeypatch.delenv(name)
    monkeypatch.setenv("IPFSMEM_CONFIG", os.devnull)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A device without a vault."""
    return Cli(tmp_path / "home", monkeypatch)


@pytest.fixture
def cli(bare: Cli) -> Cli:
    """A device with an empty local vault."""
    prepared.local(bare.home)
    return bare


@pytest.fixture
def stick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as provider."""
    folder = tmp_path / "stick"
    folder.mkdir()
    monkeypatch.setenv("IPFSMEM_PROVIDER", str(folder))
    return folder


@pytest.fixture
def sealed(bare: Cli, stick: Path) -> Cli:
    """A device with an encrypted, published vault of a raw-key wallet."""
    prepared.sealed(bare.home, stick)
    return bare


@pytest.fixture
def second(sealed: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Another device of the same wallet, still unknown to `sealed`."""
    other = Cli(tmp_path / "second", monkeypatch)
    prepared.two(sealed.home, other.home, stick)
    return other


@pytest.fixture
def clash(sealed: Cli, second: Cli, stick: Path) -> tuple[Cli, Cli]:
    """Two devices that both see a conflict in `tone`."""
    prepared.clash(sealed.home, second.home, stick)
    return sealed, second
