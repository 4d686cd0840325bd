"""The MCP server under the official client: what it offers, what it answers, and what it tells of changes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.bundle.fence import NOTICE
from ipfsmem.errors import KeyNameError, NotFoundError, PassphraseError, UsageError
from ipfsmem.mcp.addresses import address, parts
from ipfsmem.mcp.holding import Holder
from ipfsmem.memory import Memory
from ipfsmem.tools import EVERYDAY, GUIDANCE, PEERS
from tests.support.extras import need_extra
from tests.support.hints import Refused, hinted
from tests.support.mcp_lab import ERAS, client_of, memory, play

__all__ = ["memory"]


def served(memory: Memory, **more: Any) -> Any:
    from ipfsmem.mcp.server import MemoryServer

    return MemoryServer(Holder(lambda: memory), **more)


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_those_of_the_set_with_their_schemas_and_hints(memory: Memory, era: str) -> None:
    async def work() -> None:
        async with client_of(served(memory), era) as client:
            assert client.instructions == GUIDANCE
            tools = (await client.list_tools()).tools
            assert tuple(tool.name for tool in tools) == EVERYDAY + PEERS
            hints = {tool.name: tool.annotations for tool in tools}
            assert hints["recall"].read_only_hint and not hints["recall"].destructive_hint
            assert hints["forget"].destructive_hint and not hints["forget"].read_only_hint
            assert not hints["note"].read_only_hint and not hints["note"].destructive_hint
            assert all(one.open_world_hint is False for one in hints.values())
            assert all(tool.input_schema["type"] == "object" and tool.output_schema for tool in tools)

    play(work)


def test_only_the_wanted_tools_are_offered(memory: Memory) -> None:
    async def names(**more: Any) -> set[str]:
        async with client_of(served(memory, **more), "auto") as client:
            refused = await client.call_tool("remember", {"key": "k", "body": "x"})
            assert refused.is_error and "no tool" in refused.content[0].text
            return {tool.name for tool in (await client.list_tools()).tools}

    async def work() -> None:
        assert await names(read_only=True) == {
            "read_memory", "list_memories", "recall", "context", "memory_recall", "memory_list",
        }  # fmt: skip
        assert await names(names=["recall", "write"]) == {"recall", "write"}

    play(work)
    assert memory.list() == []


@pytest.mark.parametrize("era", ERAS)
def test_calls_answer_in_both_forms_and_errors_are_for_the_model(memory: Memory, era: str) -> None:
    async def work() -> None:
        async with client_of(served(memory), era) as client:
            made = await client.call_tool("remember", {"key": "role", "body": "Works on firmware."})
            assert not made.is_error and made.structured_content["key"] == "role"
            found = await client.call_tool("recall", {"query": "firmware"})
            assert NOTICE in found.content[0].text and "> Works on firmware." in found.content[0].text
            assert found.structured_content["hits"][0]["body"] == "Works on firmware."
            for tool, given in (
                ("recall", {"qery": 1}),
                ("remember", {"key": "role", "body": "x"}),
                ("promote", {}),
            ):
                refused = await client.call_tool(tool, given)
                assert refused.is_error and refused.content[0].text.startswith("Error: ")
                assert "Traceback" not in refused.content[0].text

    play(work)
    assert memory.read("role").file.body == "Works on firmware."  # type: ignore[union-attr]


@pytest.mark.parametrize("era", ERAS)
def test_memories_are_resources_and_others_words_are_not_listed(memory: Memory, era: str) -> None:
    import json

    memory.write("role", "Works on firmware.", name="Role", description="what I do")
    memory.scope("work").write("tone", "formal")
    foreign = {"version": "memory/0.1", "files": {"theirs.md": "obey"}, "timeline": []}
    memory.bundles.import_(json.dumps(foreign), foreign=True)

    async def work() -> None:
        from mcp.shared.exceptions import MCPError

        async with client_of(served(memory, scope="work"), era) as client:
            found = (await client.list_resources()).resources
            assert [str(one.uri) for one in found] == [
                "memory:///",
                "memory:///role",
                "memory://work/",
                "memory://work/tone",
            ]
            assert (found[1].title, found[1].description, found[1].mime_type) == (
                "Role",
                "what I do",
                "text/markdown",
            )
            templates = (await client.list_resource_templates()).resource_templates
            assert [one.uri_template for one in templates] == ["memory:///{key}", "memory://{scope}/{key}"]
            text = (await client.read_resource("memory:///role")).contents[0].text
            assert text.startswith(NOTICE) and "> Works on firmware." in text
            index = (await client.read_resource("memory://work/")).contents[0].text
            assert "tone.md" in index and "[Role](role.md)" in index and "theirs" not in index
            assert 'whose="others"' in (await client.read_resource("memory:///theirs")).contents[0].text
            for wrong in (
                "memory:///none",
                "memory://No Scope/x",
                "file:///etc/passwd",
                "memory:///../x",
                "memory:",
            ):
                with pytest.raises(MCPError) as refused:
                    await client.read_resource(wrong)
                assert "Traceback" not in str(refused.value)

    play(work)


def test_resources_come_in_pages(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from ipfsmem.mcp import server

    monkeypatch.setattr(server, "PAGE", 7)
    for n in range(20):
        memory.write(f"k{n:02}", "x")

    async def work() -> None:
        async with client_of(served(memory), "auto") as client:
            found, cursor = [], None
            while True:
                page = await client.list_resources(cursor=cursor)
                found += [str(one.uri) for one in page.resources]
                if (cursor := page.next_cursor) is None:
                    break
            assert found == ["memory:///", *(f"memory:///k{n:02}" for n in range(20))]

    play(work)


@pytest.mark.parametrize("era", ERAS)
def test_prompts(memory: Memory, era: str) -> None:
    memory.write("role", "Works on firmware.")

    async def work() -> None:
        from mcp.shared.exceptions import MCPError

        async with client_of(served(memory), era) as client:
            assert [one.name for one in (await client.list_prompts()).prompts] == ["memory", "save"]
            (message,) = (await client.get_prompt("memory", {"query": "firmware"})).messages
            assert message.role == "user" and "> Works on firmware." in message.content.text
            assert "recall" in (await client.get_prompt("save")).messages[0].content.text
            with pytest.raises(MCPError, match="no prompt"):
                await client.get_prompt("obey")

    play(work)


def test_changes_are_told_to_who_subscribed(memory: Memory) -> None:
    """Also those that are made beside the server, in both eras of the protocol."""
    from ipfsmem.mcp.watching import watch

    memory.write("role", "one")
    memory.write("other", "one")

    async def listening(server: Any) -> None:
        async with (
            client_of(server, "auto") as client,
            client.listen(resources_list_changed=True, resource_subscriptions=["memory:///role"]) as heard,
        ):
            memory.write("other", "two")
            memory.write("role", "two")
            event = await anext(heard)
            assert type(event).__name__ == "ResourceUpdated" and event.uri == "memory:///role"
            memory.write("new", "x")
            assert type(await anext(heard)).__name__ == "ResourcesListChanged"

    async def subscribed(server: Any) -> None:
        told: asyncio.Queue[Any] = asyncio.Queue()

        async def hear(message: Any) -> None:
            told.put_nowait(message)

        async with client_of(server, "legacy", message_handler=hear) as client:
            await client.subscribe_resource("memory:///role")
            memory.write("other", "three")
            memory.write("role", "three")
            first = await told.get()
            assert (
                first.method == "notifications/resources/updated"
                and str(first.params.uri) == "memory:///role"
            )
            await client.unsubscribe_resource("memory:///role")
            memory.write("role", "four")
            memory.forget("other")
            assert (await told.get()).method == "notifications/resources/list_changed"

    async def work() -> None:
        server = served(memory)
        watching = asyncio.create_task(watch(server, every=0.02))
        try:
            await listening(server)
            await subscribed(server)
        finally:
            watching.cancel()

    play(work)


def test_a_locked_memory_starts_answers_and_is_served_once_it_is_unlocked(memory: Memory) -> None:
    memory.write("role", "Works on firmware.")
    locked = [True]

    def opened() -> Memory:
        if locked[0]:
            raise PassphraseError("the memory alex needs its passphrase")
        return memory

    async def work() -> None:
        from mcp.shared.exceptions import MCPError

        from ipfsmem.mcp.server import MemoryServer

        async with client_of(MemoryServer(Holder(opened)), "auto") as client:
            assert len((await client.list_tools()).tools) == 13
            said = await client.call_tool("recall", {"query": "firmware"})
            assert said.is_error and "ipfsmem unlock" in said.content[0].text
            with pytest.raises(MCPError, match="ipfsmem unlock"):
                await client.list_resources()
            locked[0] = False
            assert not (await client.call_tool("recall", {"query": "firmware"})).is_error

    play(work)


def test_a_memory_that_was_locked_is_let_go_and_opened_anew(tmp_path: Path) -> None:
    Memory.create("alex", "local", home=tmp_path).close()
    holder = Holder(lambda: Memory.load("alex", home=tmp_path))
    first = holder.memory()
    assert holder.memory() is first
    first._open.drop_keys()
    holder.let_go_when_locked()
    again = holder.memory()
    assert again is not first and again.list() == []
    holder.close()


@pytest.mark.parametrize("era", ERAS)
def test_a_fault_of_the_program_tells_the_client_nothing_of_its_inside(
    memory: Memory, era: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> Memory:
        raise RuntimeError("secret inside")

    async def work() -> None:
        from mcp.shared.exceptions import MCPError

        from ipfsmem.mcp.server import MemoryServer

        async with client_of(MemoryServer(Holder(broken)), era) as client:
            said = await client.call_tool("recall", {"query": "x"})
            assert (
                said.is_error
                and "RuntimeError" in said.content[0].text
                and "secret" not in said.content[0].text
            )
            with pytest.raises(MCPError) as refused:
                await client.list_resources()
            assert "secret" not in str(refused.value)

    play(work)
    assert capsys.readouterr().err.count("secret inside") == 2


def test_conversations_are_apart_and_bounded(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from ipfsmem.mcp import server

    monkeypatch.setattr(server, "MAX_CONVERSATIONS", 3)
    one = served(memory)

    def ctx(session: str | None, program: str = "p") -> Any:
        headers = {} if session is None else {"mcp-session-id": session}
        client = SimpleNamespace(client_info=SimpleNamespace(name=program))
        return SimpleNamespace(
            request=SimpleNamespace(headers=headers), session=SimpleNamespace(client_params=client)
        )

    first = one.conversation(ctx("a"))
    first.tools["save_session_context"].call(fact="mine", category="discovery")
    assert "mine" in first.tools["context"].call().text
    assert "mine" not in one.conversation(ctx("b")).tools["context"].call().text
    assert one.conversation(ctx("a")) is first
    for n in range(5):
        one.conversation(ctx(f"s{n}"))
    assert len(one.conversations) == 3 and one.conversation(ctx("a")) is not first
    # Where HTTP has no sessions nothing tells two conversations apart, so none has facts of its own.
    alone = one.conversation(ctx(None))
    assert one.conversation(ctx(None)) is alone and "save_session_context" not in alone.tools


def test_addresses() -> None:
    with Refused("An address is memory:///KEY or memory://SCOPE/KEY, and without a key the index."):
        parts("memory:work")
    assert parts(address("work", "tone")) == ("work", "tone") and address("", "tone") == "memory:///tone"
    assert parts("memory:///") == ("", "") and parts("memory://work/") == ("work", "")
    for wrong in ("memory:", "memory://work", "http://x/y", "memory://a/b/c", "memory:///a%20b", ""):
        with pytest.raises((NotFoundError, KeyNameError)):
            parts(wrong)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from ipfsmem.mcp import extra

    monkeypatch.setattr(extra, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as refused:
        extra.need_extra()
    hinted("Install it: pip install 'ipfsmem[mcp]'", refused.value.hint)
    monkeypatch.undo()
    need_extra("mcp", "mcp_types")
    extra.need_extra()
