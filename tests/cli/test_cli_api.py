"""`ipfsmem serve api` in its own process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ipfsmem.cli.ui_cmd import link_in_a_file, open_in_browser
from ipfsmem.memory import Memory
from tests.support.cli_lab import Cli
from tests.support.patience import PATIENCE


@contextlib.contextmanager
def served(cli: Cli, *arguments: str) -> Iterator[dict[str, str]]:
    """Run `ipfsmem serve api`; yield what it prints at first, and check that it prints nothing more."""
    server = subprocess.Popen(
        [sys.executable, "-m", "ipfsmem.cli", "--json", "serve", "api", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "IPFSMEM_HOME": str(cli.home)},
    )
    try:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=PATIENCE)
        assert (server.returncode, out, err) == (0, b"", b"")
    finally:
        if server.poll() is None:
            server.kill()
            server.communicate()


async def answer(api: dict[str, str], path: str) -> tuple[int, Any]:
    """Return the status and the JSON value of a request with the printed token."""
    headers = {"Authorization": f"Bearer {api['token']}"}
    async with aiohttp.ClientSession(api["url"], headers=headers) as client, client.get(path) as got:
        return got.status, await got.json()


def test_serve_api_prints_its_token_once(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "Be brief.")
    with served(cli) as api:
        status, memory = asyncio.run(answer(api, "/v1/memories/tone"))
        assert status == 200 and memory["body"] == "Be brief."
    for path in cli.home.rglob("*"):
        assert not path.is_file() or api["token"].encode() not in path.read_bytes()


def test_api_error_hint_is_a_runnable_command(cli: Cli) -> None:
    """The command of the hint is for the vault and the scope of the request."""
    cli.ok("write", "tone", "--body", "Be brief.")
    cli.ok("init", "-n", "other", "--mode", "local")
    cli.ok("write", "tone", "-n", "other", "--scope", "shop", "--body", "Be brief in the shop.")
    with served(cli, "--also", "other") as api:
        path = f"/v1/memories/tone/history/{'0' * 64}"
        hints = [
            asyncio.run(answer(api, path + query))[1]["hint"] for query in ("", "?vault=other&scope=shop")
        ]
    own, others = (cli.ok(*shlex.split(hint.partition(": ")[2])[1:], "--json").out for hint in hints)
    assert [len(json.loads(one)["versions"]) for one in (own, others)] == [1, 1] and own != others


def test_error_with_non_utf8_path_is_problem_json(tmp_path: Path) -> None:
    home = tmp_path / "odd\udcff"
    try:
        home.mkdir()
    except OSError:
        pytest.skip("this system has no names that are not Unicode")
    Memory.create("default", "local", home=home).close()
    server = subprocess.Popen(
        [sys.executable, "-m", "ipfsmem.cli", "--json", "serve", "api", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "IPFSMEM_HOME": str(home)},
    )
    try:
        assert server.stdout is not None
        said = json.loads(server.stdout.readline())
        (home / "default/state.db").rename(tmp_path / "moved")

        async def ask() -> None:
            headers = {"Authorization": f"Bearer {said['token']}"}
            async with (
                aiohttp.ClientSession(said["url"], headers=headers) as client,
                client.get("/v1/memories/tone") as got,
            ):
                problem = json.loads(await got.read())
                assert got.status == 507 and "state.db" in problem["detail"]

        asyncio.run(ask())
    finally:
        server.kill()
        server.communicate()


def test_ui_access_code_is_not_in_browser_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser opens a private file that redirects to the link and is deleted."""
    link = "http://127.0.0.1:8790/#code=a&<secret>"
    given = tmp_path / "given"
    program = tmp_path / "browser"
    program.write_text(f"""#!{sys.executable}
import sys, urllib.parse, pathlib
path = urllib.parse.unquote(sys.argv[1].removeprefix("file://"))
pathlib.Path({str(given)!r}).write_text(sys.argv[1] + chr(10) + pathlib.Path(path).read_text())
""")
    program.chmod(0o700)
    monkeypatch.setattr(webbrowser, "_tryorder", None)
    monkeypatch.setattr(webbrowser, "_browsers", {})
    monkeypatch.setenv("BROWSER", f"{program} %s")
    folder = tmp_path / "a home"
    folder.mkdir()
    with link_in_a_file(folder, link) as path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        open_in_browser(path)
    argument, _, page = given.read_text().partition("\n")
    assert argument.startswith("file://") and "secret" not in argument and "#" not in argument
    assert "url=http://127.0.0.1:8790/#code=a&amp;&lt;secret&gt;" in page and not list(folder.iterdir())


def test_token_new_is_audited_with_its_interface(cli: Cli) -> None:
    made = cli.ok("token", "new", "--name", "editor", "--json").json["token"]["id"]
    (one,) = cli.ok("vault", "log", "--operations", "--operation", "tokens", "--json").json["operations"]
    assert (one["operation"], one["key"], one["face"], one["outcome"]) == ("tokens new", made, "cli", "")
    assert cli.ok("vault", "log", "--operations").out.count("tokens new") == 1
    cli.fails(2, "vault", "log", "--operation", "tokens")
