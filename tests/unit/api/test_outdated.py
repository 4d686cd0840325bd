"""Answers that may be older than the files of a linked folder, over HTTP and to a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.tools import toolset
from tests.support.api_lab import Client, asked, good, opener

#: What a file holds that is not UTF-8.
SPOILED = b"\xff\xfe\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "notes"
    made.mkdir()
    (made / "role.md").write_bytes(b"firmware\n")
    (made / "tone.md").write_bytes(b"calm\n")
    return made


def test_answers_over_http_say_that_a_file_could_not_be_read(tmp_path: Path, folder: Path) -> None:
    async def ask(client: Client) -> None:
        for path in ("/v1/memories/role", "/v1/memories/tone", "/v1/memories"):
            assert "outdated" not in (await good(client.get(path)))[0]
        (folder / "role.md").write_bytes(SPOILED)
        (said,) = (await good(client.get("/v1/memories/role")))[0]["outdated"]
        assert "may be older than its file" in said and "role" not in said and str(folder) not in said
        assert "outdated" not in (await good(client.get("/v1/memories/tone")))[0]
        (said,) = (await good(client.get("/v1/memories")))[0]["outdated"]
        assert "1 file of linked folders" in said
        found, _ = await good(client.post("/v1/recall", json={"query": "firmware"}))
        assert found["outdated"] == [said]
        (folder / "role.md").write_bytes(b"drivers\n")
        assert "outdated" not in (await good(client.get("/v1/memories/role")))[0]

    memory = opener(tmp_path / "home")()
    memory.folders.attach(folder)
    memory.close()
    asked(tmp_path / "home", ask)


def test_a_model_is_told_that_a_file_could_not_be_read(tmp_path: Path, folder: Path) -> None:
    memory = opener(tmp_path / "home")()
    memory.folders.attach(folder)
    tools = {tool.name: tool for tool in toolset(memory)}

    def text(name: str, **arguments: str) -> str:
        return tools[name].call(**arguments).text

    assert "(Note:" not in text("read_memory", key="role")
    (folder / "role.md").write_bytes(SPOILED)
    assert "(Note: this memory may be older than its file" in text("read_memory", key="role")
    assert "(Note:" not in text("read_memory", key="tone")
    memory.folders.scan()
    for answer in (text("list_memories"), text("recall", query="calm")):
        assert "(Note: memories may be older than 1 file of linked folders" in answer
        assert str(folder) not in answer
    folder.rename(tmp_path / "away")
    memory.folders.scan()
    assert "a linked folder is not read" in text("read_memory", key="tone")
    memory.close()
