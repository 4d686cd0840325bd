"""`ipfsmem service`: a vault that cannot sync gets no service, and each vault has its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.agents import command_line
from ipfsmem.errors import ConfigError
from ipfsmem.memory import Memory
from tests.support.cli_lab import KEY, Cli
from tests.support.hints import hinted


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "settings"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("PATH", str(tmp_path))  # no service manager is called
    return folder


def test_service_for_a_vault_that_cannot_sync_is_refused(bare: Cli, stick: Path, settings: Path) -> None:
    """This is detected without a key."""
    bare.ok("init", "-n", "plain", "--mode", "local")
    hinted(
        "Create a vault in mode encrypted-ipfs or ipfs: ipfsmem init.",
        bare.fails(2, "service", "install", "-n", "plain").err,
    )
    bare.ok("init", "-n", "shared", "--mode", "ipfs", "--unprotected-keys", key=KEY)
    hinted(
        "Publish it once: ipfsmem sync.",
        bare.fails(2, "service", "install", "-n", "shared").err,
    )
    with Memory.create("alone", "encrypted-ipfs", passphrase=False, home=bare.home):
        pass
    hinted(
        "Add one: ipfsmem provider add PROVIDER.",
        bare.fails(2, "service", "install", "-n", "alone").err,
    )
    assert not settings.exists()
    bare.ok("sync", "-n", "shared", "--yes-public")
    assert "ExecStart" in bare.ok("service", "install", "-n", "shared", "--dry-run").out


def test_service_install_refuses_a_command_that_does_not_run(
    bare: Cli, stick: Path, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare.ok("init", "--no-wallet", "--unprotected-keys")
    monkeypatch.setattr(command_line, "program_words", lambda environment: ("/no/such/ipfsmem",))
    assert bare.fails(ConfigError.exit_code, "service", "install")
    assert not settings.exists()


def test_service_name_does_not_depend_on_variables_of_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("IPFSMEM_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    usual = command_line.usual_home()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data of this shell"))
    assert command_line.usual_home() == usual
