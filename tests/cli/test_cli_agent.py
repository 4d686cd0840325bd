"""`ipfsmem agent`, and commands in a container: real processes with an agent key, without a home."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.cli.agent_cmd import _show_new
from ipfsmem.cli.context import CommandContext
from ipfsmem.errors import ProviderUnavailable
from ipfsmem.open_vault import by_key
from ipfsmem.operations.agent_keys import NewAgentKey
from ipfsmem.sync.report import Notice, SyncReport
from ipfsmem.wallet.agent_key import AgentKey, KeyProvider, parse_key, render_key
from tests.support import prepared
from tests.support.cli_lab import KEY, Cli
from tests.support.extras import need_extra
from tests.support.patience import PATIENCE


@pytest.fixture
def owner(bare: Cli, stick: Path) -> Cli:
    """A device with an encrypted vault at the folder `stick`."""
    prepared.sealed(bare.home, stick)
    bare.ok("write", "tone", "--description", "How to give feedback", "--body", "Say what is wrong first.")
    bare.ok("sync")
    return bare


@pytest.fixture
def text(owner: Cli) -> str:
    """An agent key."""
    made = owner.ok("agent", "new", "web", "--expires", "2w", key=KEY)
    assert made.out.startswith("IPFSMEM_KEY=ipfsmem_ak1_") and made.out.count("\n") == 1
    return made.out.strip().removeprefix("IPFSMEM_KEY=")


class Container:
    """An empty folder, without a home: only the key is in the environment."""

    def __init__(self, base: Path, text: str, **more: str) -> None:
        self.work = base / "container"
        self.temporary = base / "temporary"
        for folder in (self.work, self.temporary):
            folder.mkdir(exist_ok=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "IPFSMEM_KEY": text,
            "IPFSMEM_EMBEDDINGS": "off",
            "TMPDIR": str(self.temporary),
            **more,
        }

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "ipfsmem", *arguments],
            input=stdin,
            capture_output=True,
            cwd=self.work,
            env=self.environment,
            timeout=PATIENCE,
        )

    def ok(self, *arguments: str, stdin: bytes = b"") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, done
        return done.stdout.decode()

    def left(self) -> list[Path]:
        """What is on its disk."""
        return [*self.work.rglob("*"), *self.temporary.rglob("*")]


def test_commands_in_a_container_read_without_a_home(text: str, tmp_path: Path) -> None:
    container = Container(tmp_path, text)
    assert "Say what is wrong first." in container.ok("read", "tone")
    assert [one["key"] for one in json.loads(container.ok("list", "--json"))["memories"]] == ["tone"]
    assert "tone" in container.ok("recall", "feedback")
    assert "tone" in container.ok("context")
    assert "opened with the agent key web, valid until" in container.ok("status")
    assert json.loads(container.ok("sync", "--json"))["exit_code"] == 0
    assert container.left() == []


def test_notices_of_a_new_key_leave_its_output_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    report = SyncReport(notices=(Notice(kind="revoked", text="the agent key old has expired"),))
    key = NewAgentKey(
        key="ipfsmem_ak1_x",
        id="0" * 16,
        name="web",
        role="reader",
        expires=0,
        opens="everything",
        providers=[],
        credentials=[],
        warnings=[],
        problem="",
        sync=report,
    )
    _show_new(CommandContext(None, None, False, None), key, {})
    shown = capsys.readouterr()
    assert shown.out == "IPFSMEM_KEY=ipfsmem_ak1_x\n"
    assert "the agent key old has expired" in shown.err


def test_container_refuses_writes_and_touches_no_home(
    owner: Cli, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "of somebody"
    (home / "default").mkdir(parents=True)
    (home / "default" / "ipfsmem.json").write_text("not to be read")
    container = Container(tmp_path, text, IPFSMEM_HOME=str(home), HOME=str(home), IPFSMEM_VAULT="default")
    assert "Say what is wrong first." in container.ok("read", "tone")
    for arguments in (["write", "more", "--body", "x"], ["forget", "tone"], ["timeline", "add", "decision"]):
        done = container.run(*arguments)
        assert done.returncode == 2 and b"open for reading only" in done.stderr, (arguments, done)
        assert b"Traceback" not in done.stderr and done.stdout == b""
    done = container.run("read", "tone", "--home", str(tmp_path / "home"))
    assert done.returncode == 2 and b"--home and an agent key" in done.stderr
    for arguments in (["agent", "new", "more"], ["agent", "revoke", "web"]):
        assert container.run(*arguments).returncode == 2
    assert [str(one.relative_to(home)) for one in home.rglob("*")] == ["default", "default/ipfsmem.json"]
    assert (home / "default" / "ipfsmem.json").read_text() == "not to be read" and container.left() == []
    assert "tone" in owner.ok("list").out
    owner.ok("write", "more", "--body", "A device writes.")


def test_revoked_and_expired_keys_end_with_26_and_one_line(owner: Cli, text: str, tmp_path: Path) -> None:
    container = Container(tmp_path, text)
    done = container.run("read", "nothing")
    assert done.returncode == 4
    owner.ok("agent", "revoke", "web", key=KEY)
    for arguments in (["read", "tone"], ["list"], ["status"]):
        done = container.run(*arguments)
        assert done.returncode == 26, done
        assert done.stderr.decode().splitlines()[0] == "ipfsmem: this agent key was revoked"
    assert owner.ok("agent", "list").out.split()[:3] == ["web", "reader", "revoked"]


@pytest.mark.parametrize("wrong", ["ipfsmem_ak1_", "nonsense", "ipfsmem_ak1_" + "Z" * 5000])
@pytest.mark.parametrize(
    "arguments", [["read", "tone"], ["list", "--verbose"], ["serve", "mcp"]], ids=" ".join
)
def test_wrong_key_is_one_line_without_its_text(arguments: list[str], wrong: str, tmp_path: Path) -> None:
    if "mcp" in arguments:
        need_extra("mcp", "mcp")
    container = Container(tmp_path, wrong)
    done = container.run(*arguments)
    assert done.returncode in (10, 11), done
    shown = (done.stdout + done.stderr).decode()
    assert "Traceback" not in shown and (len(wrong) < 20 or wrong[12:24] not in shown)
    assert container.left() == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["vault", "list"], ["unlock"], ["lock"], ["token", "new", "--name", "web"], ["sync", "--every", "1h"], ["serve", "api"],
        ["init"], ["recover"], ["connect", "claude-code"], ["service", "status"], ["--vault", "other", "list"], ["list", "--vault", "other"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_container_refuses_commands_about_a_home(
    owner: Cli, text: str, arguments: list[str], tmp_path: Path
) -> None:
    files = {path: path.read_bytes() for path in owner.home.rglob("*") if path.is_file()}
    done = Container(tmp_path, text, IPFSMEM_HOME=str(owner.home)).run(*arguments)
    assert done.returncode == 2 and b"IPFSMEM_KEY" in done.stderr, done
    assert files == {path: path.read_bytes() for path in owner.home.rglob("*") if path.is_file()}


def test_key_is_not_in_verbose_output(text: str, tmp_path: Path) -> None:
    done = Container(tmp_path, text).run("read", "tone", "--verbose")
    assert done.returncode == 0
    shown = (done.stdout + done.stderr).decode()
    body = text.removeprefix("ipfsmem_ak1_")
    assert not any(body[at : at + 10] in shown for at in range(len(body) - 10))


def test_hook_gives_the_context_at_a_session_start(text: str, tmp_path: Path) -> None:
    container = Container(tmp_path, text)
    said = json.dumps({"session_id": "s", "hook_event_name": "SessionStart", "source": "startup"}).encode()
    printed = container.ok("hook", "session-start", "--program", "claude-code", stdin=said)
    assert "tone" in json.loads(printed)["hookSpecificOutput"]["additionalContext"]
    for event in ("prompt", "stop", "session-end", "pre-compact"):
        assert container.ok("hook", event, "--program", "claude-code", stdin=said) == ""
    broken = Container(tmp_path, text[:-1])
    done = broken.run("hook", "session-start", "--program", "claude-code", stdin=said)
    assert (done.returncode, done.stdout) == (0, b"") and b"checksum" in done.stderr
    assert container.left() == []


def test_mcp_server_in_a_container_offers_reading_tools(text: str, tmp_path: Path) -> None:
    need_extra("mcp", "mcp")
    container = Container(tmp_path, text)
    calls: list[dict[str, Any]] = [
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "read_memory", "arguments": {"key": "tone"}}},
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "ipfsmem", "serve", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=container.work,
        env=container.environment,
    )
    assert process.stdin is not None and process.stdout is not None
    answers: dict[int, dict[str, Any]] = {}
    try:
        for call in calls:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **call}).encode() + b"\n")
            process.stdin.flush()
            while "id" in call and call["id"] not in answers:
                answer = json.loads(process.stdout.readline())
                if "id" in answer:
                    answers[answer["id"]] = answer
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        assert process.stderr is not None
        process.stderr.close()
    tools = {one["name"] for one in answers[2]["result"]["tools"]}
    assert "recall" in tools and not tools & {"remember", "forget"}
    assert "Say what is wrong first." in json.dumps(answers[3]["result"])
    assert container.left() == []


def test_process_killed_while_it_opens_leaves_nothing(text: str, tmp_path: Path) -> None:
    key = parse_key(text)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        silent = KeyProvider(f"peer:http://127.0.0.1:{server.getsockname()[1]}")
        waiting = AgentKey(
            seed=key.seed, root=key.root, anchor=key.anchor, providers=(silent,), least=key.least
        )
        container = Container(tmp_path, render_key(waiting))
        process = subprocess.Popen(
            [sys.executable, "-m", "ipfsmem", "read", "tone"], cwd=container.work, env=container.environment
        )
        try:
            accepted, _ = server.accept()
            with accepted:
                process.send_signal(signal.SIGKILL)
                assert process.wait(PATIENCE) == -signal.SIGKILL
        finally:
            process.kill()
            process.wait()
    assert container.left() == []


def test_new_key_lists_renews_and_answers_in_json(owner: Cli) -> None:
    assert owner.ok("agent", "list", "--json").json["agents"] == []
    made = owner.ok("agent", "new", "ci", "--json", key=KEY).json
    assert parse_key(made["key"]).id == made["id"] and made["problem"] == ""
    assert made["warnings"] and made["credentials"] == []
    listed = owner.ok("agent", "list", "--json").json["agents"]
    assert [(one["name"], one["state"], one["expires"]) for one in listed] == [
        ("ci", "valid", made["expires"])
    ]
    assert "key" not in listed[0]
    owner.ok("agent", "renew", "ci", "--expires", "8w")
    assert owner.ok("agent", "list", "--json").json["agents"][0]["expires"] > made["expires"]
    owner.fails(2, "agent", "new", "ci", key=KEY)


def test_credentials_come_only_from_the_named_file(owner: Cli, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    secret = "s3cret-value-0123456789"
    for content in (
        "",
        "not toml [",
        f'token = "{secret}"',
        f'[providers]\npinata = "{secret}"',
        f'[providers.pinata]\npinata_jwt = ["{secret}"]',
        f'[providers.pinata]\npinata_jwt = "{secret}"',
    ):
        file.write_text(content)
        done = owner.fails(3, "agent", "new", "ci", "--provider-credentials", str(file), key=KEY)
        assert secret not in done.err
    owner.fails(30, "agent", "new", "ci", "--provider-credentials", str(tmp_path / "none"), key=KEY)
    assert owner.ok("agent", "list", "--json").json["agents"] == []


def test_key_that_does_not_open_yet_ends_with_7(owner: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    async def closed(*_: object, **__: object) -> None:
        raise ProviderUnavailable("the provider is closed")

    with monkeypatch.context() as patch:
        patch.setattr(by_key, "open_by_key", closed)
        done = owner("agent", "new", "ci", key=KEY)
    assert done.code == 7 and done.out.startswith("IPFSMEM_KEY=") and "the provider is closed" in done.err
    owner.ok("sync")
    owner.ok("agent", "revoke", "ci", key=KEY)
