"""Answers that may be older than the files of a linked folder, over HTTP and to a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipfsmem.agents.session_text import prompt_text, session_text
from ipfsmem.api.serving import _in_a_header
from ipfsmem.errors import StorageError
from ipfsmem.holding import Holder
from ipfsmem.tools import toolset
from tests.support.api_lab import Client, asked, good, opener
from tests.support.extras import need_extra
from tests.support.mcp_lab import client_of, play

#: File content that is not UTF-8.
SPOILED = b"\xff\xfe\n"
#: The note about all memories.
NOTE = "(Note: memories may be older than 1 file of linked folders, which cannot be read (ipfsmem status).)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "notes"
    made.mkdir()
    (made / "role.md").write_bytes(b"firmware\n")
    (made / "tone.md").write_bytes(b"calm\n")
    return made


def test_http_answers_report_an_unreadable_file(tmp_path: Path, folder: Path) -> None:
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


def test_export_over_http_has_no_notes_of_the_server_in_its_file(tmp_path: Path, folder: Path) -> None:
    async def ask(client: Client) -> None:
        (folder / "role.md").write_bytes(SPOILED)
        assert "outdated" in (await good(client.get("/v1/memories")))[0]
        for form in ("blob", "zip", "car"):
            async with client.post("/v1/export", json={"format": form, "partial": True}) as answer:
                assert answer.status == 200
                (said,) = json.loads(answer.headers["Ipfsmem-Outdated"])
                assert "1 file of linked folders" in said
                if form == "blob":
                    found = await answer.json()
                    assert found.keys() <= {"version", "files", "index", "timeline", "others"}, found.keys()
        (folder / "role.md").write_bytes(b"drivers\n")
        await good(client.get("/v1/memories/role"))  # it imports the edit
        async with client.post("/v1/export", json={"partial": True}) as answer:
            assert answer.status == 200 and "Ipfsmem-Outdated" not in answer.headers

    memory = opener(tmp_path / "home")()
    memory.folders.attach(folder)
    memory.close()
    asked(tmp_path / "home", ask)


def test_note_in_a_header_is_ascii_and_fits_a_line() -> None:
    texts = [f"ä file {number} " + "é" * 300 for number in range(100)]
    said = _in_a_header(texts)
    assert said.isascii() and 1_000 < len(said) <= 4_000
    kept = json.loads(said)
    assert kept == texts[: len(kept)]
    (cut,) = json.loads(_in_a_header(["x" * 9_000]))
    assert cut == "x" * len(cut) and 0 < len(cut) <= 4_000


def test_check_and_settings_answer_although_edits_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise StorageError("no space left on the disk")

    async def ask(client: Client) -> None:
        monkeypatch.setattr("ipfsmem.linked_folders.Folders.ingest_edits", full)
        assert (await client.get("/v1/memories")).status == 507
        checked, _ = await good(client.get("/v1/check"))
        assert checked["findings"] and checked["errors"] == 0
        assert (await good(client.get("/v1/settings")))[0]["settings"]

    opener(tmp_path / "home")().close()
    asked(tmp_path / "home", ask)


def test_tools_report_an_unreadable_file(tmp_path: Path, folder: Path) -> None:
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


def test_hook_reports_an_unreadable_file(tmp_path: Path, folder: Path) -> None:
    home = tmp_path / "home"
    memory = opener(home)()
    memory.folders.attach(folder)
    memory.write(
        "build", "The firmware of the drone is built every night", description="How firmware is built"
    )
    memory.make_ready()
    memory.close()
    prompt = "how is the firmware of the drone built"

    def texts() -> tuple[str, str]:
        begun = session_text("m", home, str(tmp_path), "claude-code", 2_000)
        asked_for = prompt_text("m", home, str(tmp_path), "claude-code", prompt, frozenset())
        return begun.text, asked_for.text

    assert all(text and "(Note:" not in text for text in texts())
    (folder / "role.md").write_bytes(SPOILED)
    for text in texts():
        assert text.endswith(f"{NOTE}\n") and str(folder) not in text
    unrelated = "where do penguins live in winter"
    assert not prompt_text("m", home, str(tmp_path), "claude-code", unrelated, frozenset()).text


def test_resources_and_prompts_report_an_unreadable_file(tmp_path: Path, folder: Path) -> None:
    need_extra("mcp", "mcp_types")
    from ipfsmem.mcp.server import MemoryServer

    memory = opener(tmp_path / "home")()
    memory.folders.attach(folder)
    memory.close()
    served = MemoryServer(Holder(opener(tmp_path / "home")))

    async def work() -> None:
        async def texts() -> list[str]:
            read = [
                (await client.read_resource(one)).contents[0].text for one in ("memory:///role", "memory:///")
            ]
            return [*read, (await client.get_prompt("memory")).messages[0].content.text]

        async with client_of(served, "auto") as client:
            assert not any("(Note:" in text for text in await texts())
            (folder / "role.md").write_bytes(SPOILED)
            one, index, prompt = await texts()
            assert one.endswith(
                "(Note: this memory may be older than its file in a linked folder, which cannot be read (ipfsmem status).)"
            )
            assert index.endswith(NOTE) and prompt.endswith(NOTE)

    play(work)
    served.holder.close()
