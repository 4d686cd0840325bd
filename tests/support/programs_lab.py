"""Real agent programs from their registry, each run against a stand-in model with its own home.

tests/interop/programs/package-lock.json fixes their versions. Requests to other hosts go to the stand-in
as a proxy, which refuses them and records the host."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ipfsmem.agents.claude_folders import project_name
from tests.interop.counterparts import missing, need_program, npm_packages, required
from tests.support.stand_in_model import Script, StandInModel

#: Timeout in seconds for one run of a program; runs take three to ten.
PATIENCE = 120
#: Placeholder for the address of the model in a program's settings.
_MODEL: Final = "MODEL"


class Machine:
    """A home with a vault and settings of programs, and one stand-in model."""

    def __init__(self, folder: Path, model: StandInModel, programs: Path) -> None:
        self.home, self.model, self.programs = folder, model, programs
        for name in ("run", "project", "tmp"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "run").chmod(0o700)
        self.project = (folder / "project").resolve()
        self.environment = {
            "HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1",
            "TMPDIR": str(folder / "tmp"), "USER": "somebody", "SHELL": "/bin/sh", "CI": "1",
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "IPFSMEM_PASSPHRASE": "marble otter 99 window", "IPFSMEM_WALLET_PASSPHRASE": "marble otter 99 window",
            "HTTP_PROXY": model.url, "HTTPS_PROXY": model.url, "http_proxy": model.url, "https_proxy": model.url,
            "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
        }  # fmt: skip

    def ipfsmem(self, *arguments: str, stdin: bytes = b"", code: int = 0) -> str:
        """Run ipfsmem here; return its output."""
        done = subprocess.run(
            [sys.executable, "-m", "ipfsmem", *arguments], input=stdin, capture_output=True, timeout=PATIENCE, check=False,
            env=self.environment, cwd=self.project,
        )  # fmt: skip
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout.decode()

    def has(self, program: RealProgram) -> None:
        """Set up a program as if a person had used it and changed its settings."""
        for name, text in program.settings.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace(_MODEL, self.model.url), "utf-8")

    def files(self, program: RealProgram) -> dict[str, bytes]:
        """Return the current content of its settings files."""
        return {name: path.read_bytes() for name in program.settings if (path := self.home / name).exists()}

    def claude_folder(self) -> Path:
        """Return the folder of Claude Code's memories of the project."""
        return self.home / ".claude" / "projects" / project_name(str(self.project)) / "memory"

    def close(self) -> None:
        """End processes that programs left running: a daemon of Cline, a sync of ours."""
        own = b"HOME=" + os.fsencode(self.home) + b"\0"
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if own in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)

    def run(
        self, program: RealProgram, prompt: str, script: Script, *more: str, cwd: Path | None = None
    ) -> str:
        """Run a program once with a prompt while its model follows the script; return its output. `more`:
        arguments after its own. Ends within `PATIENCE`."""
        self.model.begin(script)
        command, variables = program.command(self, prompt)
        process = subprocess.Popen(
            [*command, *more], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd or self.project,
            env={**self.environment, **variables}, start_new_session=True,
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # helper processes that it left running
            process.wait()
        told = (out + err).decode(errors="replace")
        assert not self.model.errors, (self.model.errors, told[-3000:])
        assert self.model.requests, f"{program.package} asked its model nothing: {told[-3000:]}"
        return told


class RealProgram(NamedTuple):
    """A program, and how to run it once without a person."""

    #: Its name in `connect`.
    name: str
    #: Its folder below `node_modules`, and the file to run in it, with Node if it is a script.
    package: str
    file: str
    #: Further command-line arguments, and its environment.
    said: Callable[[Machine, str], tuple[list[str], dict[str, str]]]
    #: Files that `connect` changes, below the home, each with a person's settings.
    settings: Mapping[str, str]
    #: Whether the output of the session-start hook reaches its model.
    takes_context: bool = True

    def command(self, machine: Machine, prompt: str) -> tuple[list[str | Path], dict[str, str]]:
        words, more = self.said(machine, prompt)
        path = machine.programs / self.package / self.file
        start: list[str | Path] = ["node", path] if path.suffix == ".js" else [path]
        return [*start, *words], more


def _claude_code(machine: Machine, prompt: str) -> tuple[list[str], dict[str, str]]:
    words = [
        "-p",
        prompt,
        "--model",
        "claude-sonnet-4-5",
        "--allowedTools",
        "mcp__ipfsmem",
        "Bash",
        "Read",
        "Write",
        "Edit",
    ]
    return words, {
        "ANTHROPIC_BASE_URL": machine.model.url, "ANTHROPIC_API_KEY": "sk-none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
    }  # fmt: skip


def _codex(machine: Machine, prompt: str) -> tuple[list[str], dict[str, str]]:
    provider = f'{{name="s",base_url="{machine.model.url}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}}'
    settings = (
        "model_provider=s",
        f"model_providers.s={provider}",
        "analytics.enabled=false",
        "check_for_update_on_startup=false",
    )
    words = [
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "--dangerously-bypass-hook-trust",
    ]
    for one in settings:
        words += ["-c", one]
    return [*words, "-m", "gpt-5.5", prompt], {"OPENAI_API_KEY": "none"}


def _gemini(machine: Machine, prompt: str) -> tuple[list[str], dict[str, str]]:
    return ["-p", prompt, "-m", "gemini-2.5-pro", "--yolo"], {
        "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": machine.model.url, "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }  # fmt: skip


def _opencode(machine: Machine, prompt: str) -> tuple[list[str], dict[str, str]]:
    options = {"baseURL": f"{machine.model.url}/v1", "apiKey": "none"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": {"tool_call": True}}}
    settings = {"share": "disabled", "autoupdate": False, "provider": {"s": provider}}
    return ["run", "-m", "s/m", prompt], {
        "OPENCODE_CONFIG_CONTENT": json.dumps(settings), "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }  # fmt: skip


def _qwen(machine: Machine, prompt: str) -> tuple[list[str], dict[str, str]]:
    url = f"{machine.model.url}/v1"
    words = [
        "--auth-type",
        "openai",
        "--openai-api-key",
        "none",
        "--openai-base-url",
        url,
        "-m",
        "stand-in",
        "--yolo",
    ]
    return [*words, "-p", prompt], {}


def _copilot(machine: Machine, prompt: str) -> tuple[list[str], dict[str, str]]:
    return ["-p", prompt, "--allow-all-tools", "--no-auto-update"], {
        "COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": f"{machine.model.url}/v1", "COPILOT_MODEL": "stand-in",
        "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_AUTO_UPDATE": "false",
    }  # fmt: skip


def _cline(machine: Machine, prompt: str) -> tuple[list[str], dict[str, str]]:
    named = {
        "provider": "openai-compatible",
        "apiKey": "none",
        "model": "stand-in",
        "baseUrl": f"{machine.model.url}/v1",
    }
    one = {"settings": named, "updatedAt": "2026-11-28T10:00:00.000Z", "tokenSource": "manual"}
    path = machine.home / ".cline/data/settings/providers.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {"openai-compatible": one}}))  # fmt: skip
    return ["-P", "openai-compatible", "-m", "stand-in", "--json", prompt], {}


def _continue(machine: Machine, prompt: str) -> tuple[list[str], dict[str, str]]:
    return ["-p", prompt, "--auto"], {"CONTINUE_TELEMETRY_ENABLED": "0"}


_CLAUDE_FILES: Final = {
    ".claude.json": '{"numStartups": 3, "mcpServers": {"mine": {"command": "true", "args": []}}}\n',
    ".claude/settings.json": '{\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}\n}\n',
}
_GEMINI_FILES: Final = {
    ".gemini/settings.json": json.dumps(
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
        }
    )
}
_CONTINUE_FILE: Final = f"""# mine
name: Mine
version: 1.0.0
schema: v1
models:
  - name: stand-in
    provider: openai
    model: stand-in
    apiKey: none
    apiBase: {_MODEL}/v1
mcpServers: []  # none yet
"""
#: The programs under test, by a name for the test.
REAL_PROGRAMS: Final = {
    "claude-code": RealProgram("claude-code", "claude-code", "claude", _claude_code, _CLAUDE_FILES),
    "claude-code-2.1.197": RealProgram("claude-code", "claude-code-pinned", "claude", _claude_code, _CLAUDE_FILES),
    "codex": RealProgram(
        "codex", "codex", "vendor/x86_64-unknown-linux-musl/bin/codex", _codex, {".codex/config.toml": "hide_agent_reasoning = true\n"}
    ),
    "gemini": RealProgram("gemini", "@google/gemini-cli", "bundle/gemini.js", _gemini, _GEMINI_FILES),
    "opencode": RealProgram(
        "opencode", "opencode-linux-x64-baseline", "bin/opencode", _opencode,
        {".config/opencode/opencode.json": '{"$schema": "https://opencode.ai/config.json"}\n'}, takes_context=False,
    ),
    "qwen-code": RealProgram(
        "qwen-code", "@qwen-code/qwen-code", "cli.js", _qwen,
        {".qwen/settings.json": '{"privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}}\n'},
    ),
    "copilot": RealProgram(
        "copilot", "@github/copilot-linux-x64", "copilot", _copilot, {".copilot/mcp-config.json": '{"mcpServers": {}}\n'},
        takes_context=False,
    ),
    "cline": RealProgram(
        "cline", "@cline/cli-linux-x64", "bin/cline", _cline,
        {".cline/data/settings/cline_mcp_settings.json": '{"mcpServers": {}}\n'}, takes_context=False,
    ),
    "continue": RealProgram(
        "continue", "@continuedev/cli", "dist/cn.js", _continue, {".continue/config.yaml": _CONTINUE_FILE}, takes_context=False
    ),
}  # fmt: skip


def agents_programs() -> Path:
    """Return the folder with the installed programs, or skip the test: they are installed only where
    counterparts are required."""
    if not required():
        missing("real agents' programs are played with IPFSMEM_REQUIRE_COUNTERPARTS=1 only")
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        missing("the lock file of the agents' programs is for Linux on x86-64")
    need_program("node")
    return npm_packages("programs")
