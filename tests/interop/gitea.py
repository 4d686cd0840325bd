"""Gitea on this machine for the duration of a test: an account, its tokens, repositories and rules."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE
from tests.support.ports import free_port

USER = "me"
_PASSWORD = "a password of these tests"


class Gitea:
    """A running server with one account."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder, self._port = program, folder, free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._config = folder / "app.ini"
        # A build without embedded files has them in the folder of the program.
        files = Path(program).resolve().parent
        static = f"STATIC_ROOT_PATH = {files}\n" if (files / "templates").is_dir() else ""
        self._config.write_text(
            f"I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = {str(os.geteuid() == 0).lower()}\nWORK_PATH = {folder}\n"
            f"[server]\nHTTP_ADDR = 127.0.0.1\nHTTP_PORT = {self._port}\nROOT_URL = {self.url}/\nDISABLE_SSH = true\n"
            f"OFFLINE_MODE = true\n{static}[database]\nDB_TYPE = sqlite3\nPATH = {folder}/gitea.db\n"
            "[security]\nINSTALL_LOCK = true\n[log]\nLEVEL = Warn\n[indexer]\nREPO_INDEXER_ENABLED = false\n"
        )
        self.token = ""

    def start(self) -> subprocess.Popen[bytes]:
        """Start the server with its account and wait until it answers."""
        self._run("migrate")
        self._run("admin", "user", "create", f"--username={USER}", f"--password={_PASSWORD}", "--email=me@example.org", "--must-change-password=false")  # fmt: skip
        self.token = self.new_token("all")
        with (self._folder / "log").open("wb") as log:
            server = subprocess.Popen([self._program, "web", f"--config={self._config}"], stdout=log, stderr=log, env=self._environment())  # fmt: skip
        ends = time.monotonic() + PATIENCE
        while True:
            try:
                self.ask("GET", "version")
            except OSError:
                assert time.monotonic() < ends and server.poll() is None, (self._folder / "log").read_text()
                time.sleep(0.1)
            else:
                return server

    def new_token(self, scopes: str) -> str:
        """Create a token of the account."""
        return self._run("admin", "user", "generate-access-token", f"--username={USER}", f"--scopes={scopes}", f"--token-name=token{time.monotonic_ns()}", "--raw").split()[-1]  # fmt: skip

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Call its API."""
        request = urllib.request.Request(
            f"{self.url}/api/v1/{path}", json.dumps(body).encode() if body is not None else None, method=method,
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"null")

    def repository(self, name: str) -> str:
        """Return the URL of a new, empty, private repository."""
        self.ask("POST", "user/repos", {"name": name, "private": True})
        return f"{self.url}/{USER}/{name}.git"

    def protect(self, name: str, branch: str, **rules: Any) -> None:
        """Forbid force pushes to a branch, and more by `rules`."""
        self.ask("POST", f"repos/{USER}/{name}/branch_protections", {"rule_name": branch, "enable_push": True, **rules})  # fmt: skip

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self._folder), "USER": os.environ.get("USER", "root")}

    def _run(self, *args: str) -> str:
        done = subprocess.run(
            [self._program, "--config", self._config, *args], capture_output=True, text=True, check=False,
            env=self._environment(), cwd=self._folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()


@contextlib.contextmanager
def gitea(folder: Path) -> Iterator[Gitea]:
    """A running server; the test is skipped without the program `gitea`, which takes minutes to build."""
    program = shutil.which("gitea")
    if program is None:
        pytest.skip("gitea is not installed")
    made = Gitea(program, folder)
    server = made.start()
    try:
        yield made
    finally:
        server.terminate()
        server.wait(PATIENCE)
