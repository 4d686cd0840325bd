"""LibreFang's own command line and Python client against `ipfsmem serve api --as librefang`."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.memory import Memory
from tests.interop.counterparts import cached_where_asked, missing, run
from tests.support.api_lab import TOKEN, Client, Lab

VERSION = "2026.10.16"


@pytest.fixture(scope="module")
def installed() -> Path:
    """A folder with both packages."""

    def make(folder: Path) -> None:
        packages = [f"librefang=={VERSION}", f"librefang-sdk=={VERSION}"]
        uv = shutil.which("uv")
        pip = [uv, "pip"] if uv is not None else [sys.executable, "-m", "pip"]
        run([*pip, "install", "--quiet", "--target", folder, *packages])

    try:
        return cached_where_asked("librefang", VERSION, make)
    except (AssertionError, OSError) as error:
        missing(f"librefang could not be installed: {error}")


def played(home: Path, work: Any) -> None:
    """Run `work` in a thread, given the URL of a server of a local vault with the agent `coder`."""
    with Memory.create("m", "local", home=home) as memory:
        memory.scope("coder").values.set("first", "x")

    async def ask(client: Client) -> None:
        await asyncio.to_thread(work, str(client._base_url).rstrip("/"))

    Lab(home, program="librefang").run(ask)


def test_librefang_command_line_stores_values_here(tmp_path: Path, installed: Path) -> None:
    program = installed / "bin" / "librefang"
    if not program.is_file():
        missing("the package has no program for this machine")
    home = tmp_path / ".librefang"
    home.mkdir()

    def work(url: str) -> None:
        address = url.removeprefix("http://")
        about = {"pid": os.getpid(), "listen_addr": address, "started_at": "2026-01-01T00:00:00Z", "version": VERSION, "platform": "linux"}  # fmt: skip
        (home / "daemon.json").write_text(json.dumps(about))
        (home / "config.toml").write_text(f'api_key = "{TOKEN}"\n')
        environment = {"HOME": str(tmp_path), "LIBREFANG_HOME": str(home), "PATH": os.environ["PATH"]}

        def said(*words: str) -> str:
            done = subprocess.run(
                [program, "memory", *words], capture_output=True, text=True, env=environment, timeout=120
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert "Set user:preference:theme" in said("set", "coder", "user:preference:theme", "dark")
        assert said("get", "coder", "user:preference:theme") == "dark\n"
        listed = json.loads(said("list", "coder", "--json"))["kv_pairs"]
        assert {one["key"]: one["value"] for one in listed} == {"first": "x", "user:preference:theme": "dark"}
        assert "Deleted" in said("delete", "coder", "first")

    played(tmp_path / "ipfsmem", work)


def test_librefang_python_client_stores_values_and_memories_here(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(installed))
    client_class = importlib.import_module("librefang").Client

    def work(url: str) -> None:
        client = client_class(url, headers={"Authorization": f"Bearer {TOKEN}"})
        client.memory.set_agent_kv_key("coder", "k:1", value={"a": 1})
        assert client.memory.get_agent_kv_key("coder", "k:1") == {"key": "k:1", "value": {"a": 1}}
        assert client.memory.export_agent_memory("coder")["kv"] == {"first": "x", "k:1": {"a": 1}}
        memories = client.proactive_memory
        memories.memory_add(content="Likes tea", category="preference", agent_id="coder")
        (found,) = memories.memory_search(q="tea")["memories"]
        memories.memory_update(found["id"], content="Likes coffee")
        assert memories.memory_history(found["id"])["versions"][0]["content"] == "Likes tea"
        memories.memory_delete(found["id"])
        assert memories.memory_list()["total"] == 0

    played(tmp_path / "ipfsmem", work)
