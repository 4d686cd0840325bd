"""`ipfsmem hook` as a program runs it: exit code 0, only its answer on standard output, and a background sync that ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ipfsmem.agents import background_start, hooks
from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.hook_call import plain_call
from ipfsmem.device.agent_notes import background_notes, hook_notes
from ipfsmem.device.lock import file_lock
from ipfsmem.memory import Memory
from tests.support.cli_lab import Cli, pipe
from tests.support.patience import PATIENT_HOOKS
from tests.support.unlock_lab import PASSPHRASE


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setattr(background_start, "start", lambda *_, **__: None)
    monkeypatch.setattr(hooks, "BOUNDS", {})  # a loaded machine takes longer than an agent waits
    monkeypatch.setattr(hooks, "_BOUND", 60.0)
    made = Cli(tmp_path / "home", monkeypatch)
    made.ok("init", "--mode", "local")
    made.ok("write", "who", "--body", "Alex works on firmware.", "--description", "who Alex is")
    return made


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["session-start"],
        ["session-start", "--program"],
        ["session-start", "--program", "someone"],
        ["session-start", "--program", "claude-code", "--program", "codex"],
        ["nonsense", "--what", "more"],
        ["stop", "--namespace", ""],
        ["stop", "--namespace", "No Name"],
        ["stop", "--home", "/dev/null"],
        ["stop", "--help"],
        ["background"],
        ["--help"],
    ],
)
def test_every_hook_call_exits_with_0(cli: Cli, words: list[str]) -> None:
    """Exit code 2 would stop Claude Code."""
    done = cli("hook", *words, stdin=b"\xff nonsense")
    assert done.code == 0
    assert "Traceback" not in done.err + done.out
    assert "--help" in words or not done.out or json.loads(done.out)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["stop", "--program"],
        ["stop", "--program", "codex", "--program", "codex"],
        ["stop", "--program=codex"],
        ["stop", "codex", "--program"],
        ["stop", "--namespace", ""],
        ["stop", "--home", "--json"],
        ["stop", "--passphrase-fd", "3"],
        ["nonsense"],
        ["background"],
    ],
)
def test_hook_call_with_unusual_options_uses_the_full_command_line(words: list[str]) -> None:
    assert plain_call(["hook", *words], {}) is None


def test_command_written_by_connect_parses_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checked in order: flag, environment, settings, default."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "IPFSMEM_CONFIG", "IPFSMEM_VAULT", "IPFSMEM_HOME"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "some.toml"
    file.write_text('vault = "work"\nhome = "~/there"\n')
    named = ["--program", "codex", "--namespace", "given", "--home", str(tmp_path / "here")]
    for environment in (
        {},
        {"IPFSMEM_VAULT": "other", "IPFSMEM_HOME": "~/other"},
        {"IPFSMEM_CONFIG": str(file)},
        {"IPFSMEM_CONFIG": str(file), "IPFSMEM_VAULT": "other"},
        {"IPFSMEM_CONFIG": str(file), "IPFSMEM_HOME": str(tmp_path / "other")},
    ):
        for words in (named, named[:4], named[4:], []):
            with monkeypatch.context() as patch:
                for name, value in environment.items():
                    patch.setenv(name, value)
                call = plain_call(["hook", "prompt", *words])
                given = dict(zip(words[::2], words[1::2], strict=True))
                meant = CommandContext(given.get("--namespace"), given.get("--home"), False, None)
                assert call == ("prompt", given.get("--program", ""), meant.vault_name, meant.home)


@pytest.mark.parametrize("said", ["vault = 3", None])
def test_unusable_settings_are_reported_by_the_command_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None
) -> None:
    file = tmp_path / "some.toml"
    if said is not None:
        file.write_text(said)
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    done = cli("hook", "stop", "--program", "codex", stdin=b"{}")
    assert (done.code, done.out) == (0, "") and str(file) in done.err


def test_former_variable_of_the_vault_is_reported(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPFSMEM_NAMESPACE", "other")
    assert plain_call(["hook", "stop", "--program", "codex"]) is None
    done = cli("hook", "stop", "--program", "codex", stdin=b"{}")
    assert (done.code, done.out) == (0, "") and "renamed to IPFSMEM_VAULT" in done.err


def test_hook_that_names_its_vault_ignores_the_former_variable(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPFSMEM_NAMESPACE", "other")
    said = json.dumps({"cwd": str(tmp_path), "session_id": "1"}).encode()
    words = ("hook", "session-start", "--program", "claude-code", "--vault", "default")
    assert plain_call([*words]) is not None
    done = cli.ok(*words, stdin=said)
    assert "who Alex is" in json.loads(done.out)["hookSpecificOutput"]["additionalContext"]
    assert not done.err


def test_hook_prints_only_its_answer(cli: Cli, tmp_path: Path) -> None:
    said = json.dumps({"cwd": str(tmp_path), "session_id": "1"}).encode()
    done = cli.ok("hook", "session-start", "--program", "claude-code", stdin=said)
    assert "who Alex is" in json.loads(done.out)["hookSpecificOutput"]["additionalContext"]
    assert not done.err
    assert cli.ok("hook", "session-start", "--program", "unknown", stdin=said).out == ""


def test_unreadable_home_is_reported_without_a_traceback(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "homes").symlink_to("x" * 300)
    done = cli("hook", "session-start", "--home", str(tmp_path / "homes" / "mine"))
    assert done.code == 0 and "cannot look into" in done.err and "unexpected" not in done.err


def test_interrupted_hook_exits_with_0(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Memory, "load", interrupted)
    assert cli("hook", "session-start", "--program", "claude-code").code == 0


def test_invalid_vault_name_creates_no_file_in_the_project(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    assert cli("hook", "stop", "--namespace", "No Name").code == 0
    assert list(project.iterdir()) == []


def test_hook_passphrase_from_environment_opens_vault_and_background_sync(
    tmp_path: Path,
) -> None:
    """Also with a passphrase from a descriptor, which the sync process does not have."""
    home = tmp_path / "home"
    with Memory.create("default", "encrypted-ipfs", passphrase=PASSPHRASE, home=home) as memory:
        memory.write("who", "x", description="who Alex is")
    plain = {name: value for name, value in os.environ.items() if name != "IPFSMEM_PASSPHRASE"}
    tried = 0
    for more, environment in (([], {"IPFSMEM_PASSPHRASE": PASSPHRASE}), (["--passphrase-fd", "FD"], {})):
        reads = pipe(PASSPHRASE)
        words = ["hook", "session-start", "--program", "claude-code", "--home", str(home), *more]
        done = subprocess.run(
            [sys.executable, "-c", PATIENT_HOOKS, *(str(reads) if word == "FD" else word for word in words)],
            input=json.dumps({"cwd": str(tmp_path), "session_id": "1"}).encode(),
            capture_output=True,
            timeout=60,
            check=False,
            pass_fds=[reads],
            env=plain | environment,
        )
        os.close(reads)
        assert done.returncode == 0 and b"who Alex is" in done.stdout, done
        end = time.monotonic() + 60
        while background_notes(home / "default").worked <= tried and time.monotonic() < end:
            time.sleep(0.02)
        with file_lock(home / "default" / "background.lock", wait=30):
            assert background_notes(home / "default").worked > tried
        tried = background_notes(home / "default").worked
        assert not hook_notes(home / "default").locked


def test_hook_process_starts_a_background_sync_that_ends(tmp_path: Path) -> None:
    home = tmp_path / "a home"
    with Memory.create("default", "local", home=home) as memory:
        memory.write("who", "x")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            PATIENT_HOOKS,
            "hook",
            "stop",
            "--program",
            "claude-code",
            "--home",
            str(home),
        ],
        input=json.dumps({"cwd": str(tmp_path)}).encode(),
        capture_output=True,
        timeout=110,
        check=False,
        env={**os.environ, "IPFSMEM_PASSPHRASE": ""},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    end = time.monotonic() + 60
    while not background_notes(home / "default").worked and time.monotonic() < end:
        time.sleep(0.02)
    with file_lock(home / "default" / "background.lock", wait=30):
        assert background_notes(home / "default").worked
    with Memory.load("default", home=home) as memory:
        assert any(str(tmp_path.resolve()) in notice for notice in memory.status().notices)
