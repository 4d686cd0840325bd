"""Devices for the tests of the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.cli_lab import KEY, Cli


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("IPFSMEM_") and name != "IPFSMEM_EMBEDDINGS":
            monkeypatch.delenv(name)
    monkeypatch.setenv("IPFSMEM_CONFIG", os.devnull)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A device with nothing on it."""
    return Cli(tmp_path / "home", monkeypatch)


@pytest.fixture
def cli(bare: Cli) -> Cli:
    """A device with an empty local memory."""
    bare.ok("init", "--mode", "local")
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
    """A device with an encrypted memory of a raw-key wallet, published."""
    bare.ok("init", "--unprotected-keys", "--label", "first", key=KEY)
    return bare


@pytest.fixture
def second(sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Another device of the same wallet."""
    other = Cli(tmp_path / "second", monkeypatch)
    other.ok("init", "--unprotected-keys", "--label", "second", key=KEY)
    return other


@pytest.fixture
def clash(sealed: Cli, second: Cli) -> tuple[Cli, Cli]:
    """Two devices that both see a conflict in `tone`."""
    sealed.ok("write", "tone", "--body", "old")
    sealed.ok("sync")
    second.ok("sync")
    sealed.ok("write", "tone", "--body", "from the first")
    second.ok("write", "tone", "--body", "from the second")
    for device in (sealed, second, sealed):
        device.ok("sync")
    return sealed, second
