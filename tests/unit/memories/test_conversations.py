"""A session in an agent's loop: saved turn by turn, resumed on another device, compacted, without raising
into the agent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.config import SessionSettings
from ipfsmem.errors import ConfigError, UsageError
from ipfsmem.memory import Memory
from ipfsmem.open_vault.conversation import Conversation
from ipfsmem.sessions.compaction import StoredSession, told
from ipfsmem.sessions.messages import read_message
from tests.support.device_lab import Lab
from tests.support.extras import need_extra

SYSTEM = {"role": "system", "content": "Be kind."}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.load("x", mode="none", home=tmp_path) as opened:
        yield opened


def turn(number: object) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"question {number}"},
        {"role": "assistant", "content": f"answer {number}"},
    ]


def words(items: list[dict[str, Any]]) -> list[str]:
    return [read_message(item).text for item in items]


def test_repeated_full_history_saves_each_turn_once(memory: Memory) -> None:
    """System instructions are not saved."""
    chat, history = memory.sessions.conversation("chat"), [SYSTEM]
    for number in range(3):
        history += turn(number)
        assert chat.save(history) == (2, "")
    assert chat.save(history) == (0, "")
    assert memory.sessions.items("chat").items == [*turn(0), *turn(1), *turn(2)]


@pytest.mark.parametrize("resumes", [False, True])
def test_history_of_a_restarted_program_is_stored_once(tmp_path: Path, resumes: bool) -> None:
    history: list[dict[str, Any]] = []
    for number in (*range(15), "again", "again", "again"):
        history += turn(number)
        # A new process for each turn: only stored data is known.
        with Memory.load("x", mode="local", home=tmp_path) as memory:
            chat = memory.sessions.conversation("chat")
            if resumes:
                chat.resume()
            assert chat.save([SYSTEM, *history]) == (2, "")
            assert chat.save(history) == (0, "")
            assert memory.sessions.items("chat").items == history


def test_history_saved_by_two_handles_is_stored_once(memory: Memory) -> None:
    first, second = memory.sessions.conversation("chat"), memory.sessions.conversation("chat")
    history = [*turn("ok"), *turn("ok")]
    assert first.save(history) == (4, "") and second.save(history) == (0, "")
    assert second.save([*history, *turn("ok")]) == (2, "")
    assert words(memory.sessions.items("chat").items) == words(turn("ok")) * 3


def test_same_words_after_a_resume_are_new_messages(memory: Memory) -> None:
    memory.sessions.add("chat", [one for _ in range(15) for one in turn("ok")])
    chat = memory.sessions.conversation("chat")
    assert chat.save([*chat.resume(), *turn("ok")]) == (2, "")
    assert len(memory.sessions.items("chat").items) == 32


def test_resume_returns_the_last_twenty_messages_from_a_request_on(memory: Memory) -> None:
    memory.sessions.add("chat", [SYSTEM, *(one for n in range(15) for one in turn(n)), turn("last")[0]])
    back = memory.sessions.conversation("chat").resume()
    assert words(back) == [text for n in range(6, 15) for text in words(turn(n))] + ["question last"]
    assert (
        len(memory.sessions.resume("chat", last=5).items) == 5
        and words(memory.sessions.resume("chat", last=4).items)[0] == "question 14"
    )
    assert memory.sessions.known()[0].session == "chat" and memory.sessions.resume("nobody").items == []


def test_trimmed_history_has_forty_messages_and_all_are_saved(memory: Memory) -> None:
    chat, history = memory.sessions.conversation("chat"), list[Any]()
    for number in range(60):
        history = [*chat.trim([*history, turn(number)[0]]), turn(number)[1]]
        assert len(history) <= 41 and chat.save(history).added == 2
    assert words(memory.sessions.items("chat").items) == [text for n in range(60) for text in words(turn(n))]


@given(st.lists(st.tuples(st.sampled_from(["yes", "no", "ok"]), st.integers(0, 6)), max_size=12))
def test_equal_messages_are_neither_lost_nor_duplicated(steps: list[tuple[str, int]]) -> None:
    kept: list[Any] = []

    class Kept:
        def add(self, session: str, items: list[Any]) -> None:
            kept.extend(items)

        def kept(self, session: str) -> StoredSession:
            return StoredSession(told([]), [(item, True) for item in kept], frozenset())

    chat = Conversation(Kept(), "chat", SessionSettings(compact=False))  # type: ignore[arg-type]
    history: list[dict[str, Any]] = []
    said = []
    for text, cut in steps:
        new = {"role": "user", "content": text}
        said.append(new)
        history = [*history[min(cut, max(0, len(history) - 6)) :], new]
        chat.save(history)
        # A cut at most as deep as the history is long, before the next turn: what is left still says where it goes on.
    assert kept[-1:] == said[-1:] and len(kept) <= len(said)
    if all(not cut for _, cut in steps):
        assert kept == said


def test_search_by_days_uses_the_given_time_zone(memory: Memory) -> None:
    world = memory.replica.environment
    world.now = lambda: 1_795_905_000_000  # 2026-11-28T22:30Z
    memory.sessions.add("chat", [{"role": "user", "content": "The otter sleeps."}])
    world.now = lambda: 1_795_912_200_000  # 2026-11-29T00:30Z

    def found(query: str, tz: str) -> list[str]:
        return [hit.text for hit in memory.sessions.search(query, tz=tz)]

    assert found("yesterday", "UTC") == ["The otter sleeps."] == found("today", "Asia/Tokyo")
    assert found("yesterday", "Asia/Tokyo") == []
    with pytest.raises(UsageError, match="unknown time zone"):
        found("yesterday", "Nowhere")


def test_session_is_compacted_automatically_and_stays_searchable(memory: Memory) -> None:
    """At 80 messages, all but 20. The original stays, and a resumed session begins with the summary."""
    chat, history = memory.sessions.conversation("chat"), list[Any]()
    for number in range(41):
        history += turn(number)
        chat.save(history)
    (summary, *rest) = memory.sessions.resume("chat", last=40).items
    assert "question 0" in read_message(summary).text and len(rest) == 20
    assert len(memory.sessions.items("chat").items) == 82
    (hit, *_) = memory.sessions.search("question 3")
    assert (hit.session, hit.role, hit.text) == ("chat", "user", "question 3")
    # A program that continues with the summary does not repeat it.
    second = memory.sessions.conversation("chat")
    assert second.save([*second.resume(), *turn("new")]) == (2, "")
    assert words(memory.sessions.items("chat").items)[-2:] == ["question new", "answer new"]
    assert len(memory.sessions.items("chat").items) == 84


def test_call_and_its_answer_are_kept_together(memory: Memory) -> None:
    called = [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "look"}}]},
        *({"role": "tool", "tool_call_id": "c", "content": "42"} for _ in range(30)),
    ]
    memory.sessions.add("chat", [*turn(1), *called])
    assert memory.sessions.compact("chat", now=True)[0].covered == 2
    assert memory.sessions.compact("chat", now=True)[0].covered == 0
    # A turn without an end is covered partly, and its request and its end follow the summary.
    more = [
        {"role": "assistant", "tool_calls": [{"id": "d", "function": {"name": "look"}}]},
        *({"role": "tool", "tool_call_id": "d", "content": "43"} for _ in range(30)),
    ]
    memory.sessions.add("chat", more)
    assert memory.sessions.compact("chat", now=True)[0].covered == 32
    summary, *rest = memory.sessions.resume("chat", last=40).items
    assert rest == [called[0], *more] and "question 1" in read_message(summary).text


def test_failing_custom_summariser_is_reported_and_loses_nothing(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    memory.sessions.add("chat", [one for n in range(30) for one in turn(n)])

    def fails(said: object, room: int) -> str:
        raise OSError("no model answers")

    with pytest.raises(OSError, match="no model"):
        memory.sessions.compact("chat", now=True, summarise=fails)
    assert memory.sessions.told("chat").summary is None
    assert (
        memory.sessions.compact("chat", now=True, summarise=lambda said, room: "x" * 99_999, by="me")[
            0
        ].covered
        == 40
    )
    summary = memory.sessions.told("chat").summary
    assert summary is not None and (len(summary.text), summary.by, summary.messages) == (4_000, "me", 40)
    chat = memory.sessions.conversation("long", summarise=fails)
    with caplog.at_level(logging.WARNING, "ipfsmem.sessions"):
        assert chat.save([one for n in range(50) for one in turn(n)]) == (100, "")
    assert "no model answers" in caplog.text


def test_failed_save_is_not_raised_and_loses_no_message(
    memory: Memory, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next save includes its messages."""
    chat = memory.sessions.conversation("chat")
    chat.save(turn(0))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(memory.sessions, "add", full)
        with caplog.at_level(logging.WARNING, "ipfsmem.sessions"):
            saved = chat.save([*turn(0), *turn(1)])
    assert saved.added == 0 and "No space left" in saved.problem and "No space left" in caplog.text
    assert chat.save([*turn(0), *turn(1), *turn(2)]) == (4, "")
    assert "no JSON object" in chat.save([{"x": object()}]).problem or chat.save([{"x": object()}]).problem
    memory.close()
    assert chat.save([*turn(0), *turn(3)]).problem and chat.resume() == []


def test_sessions_have_titles_names_and_an_order(memory: Memory) -> None:
    name = memory.sessions.create(title="The  boat").session
    assert len(name) == 12 and int(name, 16) >= 0
    assert memory.sessions.told(name).title == "The boat" and memory.sessions.items(name).items == []
    assert memory.sessions.pop(name).item is None and memory.sessions.told(name).title == "The boat"
    memory.sessions.add("second", turn(1))
    assert memory.sessions.list()[0].session == memory.sessions.known()[0].session
    for bad in ("second", ""):
        with pytest.raises(UsageError):
            memory.sessions.create(bad)
    with pytest.raises(UsageError):
        memory.sessions.create(title="a\x1bb")
    with pytest.raises(UsageError):
        memory.sessions.search("  ")


def test_conversation_continues_on_another_device(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    first = a.sessions.conversation("chat")
    first.save([one for n in range(45) for one in turn(n)])
    lab.settle(a, b)
    second = b.sessions.conversation("chat")
    resumed = second.resume()
    assert "question 0" in read_message(resumed[0]).text and words(resumed)[-1] == "answer 44"
    assert second.save([*resumed, *turn("b")]) == (2, "")
    first.save([one for n in [*range(45), "a"] for one in turn(n)])
    lab.settle(a, b)
    assert a.sessions.items("chat").items == b.sessions.items("chat").items
    assert len(a.sessions.items("chat").items) == 94
    # Concurrent compactions: one summary is used, the same on both, and no message is hidden without being in
    # it.
    a.sessions.compact("chat", now=True)
    b.sessions.compact("chat", now=True)
    lab.settle(a, b)
    assert a.sessions.resume("chat").items == b.sessions.resume("chat").items
    assert len(a.sessions.items("chat").items) == 94


def test_pydantic_ai_messages_round_trip(memory: Memory) -> None:
    messages = need_extra("pydantic-ai", "pydantic_ai.messages")
    from ipfsmem.adapters import pydantic_ai as adapter

    history = [
        messages.ModelRequest(
            parts=[messages.SystemPromptPart("Be kind."), messages.UserPromptPart("Where is the boat?")]
        ),
        messages.ModelResponse(
            parts=[messages.TextPart("I look."), messages.ToolCallPart("look", {"at": 7}, "c1")]
        ),
        messages.ModelRequest(parts=[messages.ToolReturnPart("look", {"pier": 7}, "c1")]),
        messages.ModelResponse(parts=[messages.TextPart("At pier 7.")]),
    ]
    chat = memory.sessions.conversation("chat")
    assert adapter.save(chat, history) == (4, "")
    second = memory.sessions.conversation("chat")
    back = adapter.resumed(second)
    assert back[1:] == history[1:] and back[0].parts == history[0].parts[1:]
    more = [*back, messages.ModelRequest(parts=[messages.UserPromptPart("Which colour?")])]
    assert adapter.save(second, more) == (1, "")
    for number in range(50):
        more += [
            messages.ModelRequest(parts=[messages.UserPromptPart(f"And {number}?")]),
            messages.ModelResponse(parts=[messages.TextPart("Blue.")]),
        ]
    assert adapter.save(second, more) == (100, "")
    third = memory.sessions.conversation("chat")
    compacted = adapter.resumed(third)
    assert "Where is the boat?" in compacted[0].parts[0].content
    assert adapter.save(third, [*compacted, more[-1]]) == (1, "")
    assert len(memory.sessions.items("chat").items) == 106


def test_real_pydantic_ai_agent_continues_a_session(memory: Memory) -> None:
    pydantic_ai = need_extra("pydantic-ai", "pydantic_ai")
    from pydantic_ai.models.test import TestModel

    from ipfsmem.adapters import pydantic_ai as adapter

    agent = pydantic_ai.Agent(TestModel(), system_prompt="Be kind.", instructions="Short.")
    chat = memory.sessions.conversation("chat")
    first = agent.run_sync("Where is the boat?", message_history=adapter.resumed(chat))
    assert adapter.save(chat, first.all_messages()) == (2, "")
    again = memory.sessions.conversation("chat")
    second = agent.run_sync("And now?", message_history=adapter.resumed(again))
    assert adapter.save(again, second.all_messages()) == (2, "")
    said = [read_message(item) for item in memory.sessions.items("chat").items]
    assert [one.text for one in said if one.is_request] == ["Where is the boat?", "And now?"]
    assert not any(
        "Be kind" in str(item) or "Short." in str(item) for item in memory.sessions.items("chat").items
    )


def _shown_to_a_model(chat: Conversation, said: str, stream: bool = False, **agent_options: Any) -> list[str]:
    """Run one turn of a resumed and saved agent; return the parts that its model received, with the
    instructions."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    from ipfsmem.adapters import pydantic_ai as adapter

    shown: list[str] = []

    def see(messages: list[Any], info: Any) -> None:
        parts = [part for message in messages for part in message.parts]
        shown[:] = [f"{part.part_kind}: {str(part.content).splitlines()[0]}" for part in parts]
        shown.extend([f"instructions: {info.instructions}"] if info.instructions else [])

    def model(messages: list[Any], info: Any) -> ModelResponse:
        see(messages, info)
        return ModelResponse(parts=[TextPart("ok")])

    async def streamed(messages: list[Any], info: Any) -> Any:
        see(messages, info)
        yield "ok"

    functions = agent_options.pop("functions", [])
    agent = Agent(FunctionModel(model, stream_function=streamed), **agent_options)
    for function in functions:
        agent.system_prompt(function)
    history = adapter.resumed(chat)

    async def run() -> list[Any]:
        if not stream:
            return list((await agent.run(said, message_history=history)).all_messages())
        async with agent.run_stream(said, message_history=history) as result:
            await result.get_output()
            return list(result.all_messages())

    assert adapter.save(chat, asyncio.run(run())) == (2, "")
    return shown


@pytest.mark.parametrize("stream", [False, True])
def test_resumed_pydantic_ai_agent_has_its_current_system_prompt(memory: Memory, stream: bool) -> None:
    need_extra("pydantic-ai", "pydantic_ai.models.function")

    async def asked() -> str:
        await asyncio.sleep(0)
        return "From a function."

    def turn(said: str, **options: Any) -> list[str]:
        return _shown_to_a_model(memory.sessions.conversation("chat"), said, stream, **options)

    assert turn("1", system_prompt="Old role.") == ["system-prompt: Old role.", "user-prompt: 1"]
    before = ["user-prompt: 1", "text: ok"]
    assert turn("2", system_prompt=["New role.", "Kind."], functions=[asked], instructions="Short.") == [
        "system-prompt: New role.", "system-prompt: Kind.", "system-prompt: From a function.",
        *before, "user-prompt: 2", "instructions: Short.",
    ]  # fmt: skip
    # An agent without one gets none, and no part of an earlier one remains.
    assert turn("3") == [*before, "user-prompt: 2", "text: ok", "user-prompt: 3"]
    assert "role" not in str(memory.sessions.items("chat").items)
    assert len(memory.sessions.items("chat").items) == 6


def test_compacted_pydantic_ai_session_keeps_prompt_without_repeats(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_extra("pydantic-ai", "pydantic_ai.models.function")
    file = tmp_path / "config.toml"
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    file.write_text("[sessions]\ncompact_at = 6\ncompact_keep = 2\n")
    for number in range(8):
        # The framework merges the summary with the request after it.
        shown = _shown_to_a_model(memory.sessions.conversation("chat"), str(number), system_prompt="Role.")
        assert shown[0] == "system-prompt: Role." and shown[-1] == f"user-prompt: {number}"
    said = [read_message(item) for item in memory.sessions.items("chat").items]
    assert [one.text for one in said if one.is_request] == [str(number) for number in range(8)]


def test_session_settings_are_applied_and_checked(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    file.write_text("[sessions]\nresume = 4\ncompact_at = 6\ncompact_keep = 2\nsummary = 300\n")
    chat = memory.sessions.conversation("chat")
    chat.save([one for n in range(9) for one in turn(n)])
    assert len(chat.resume()) == 3 and len(memory.sessions.told("chat").after) == 2
    file.write_text("[sessions]\ncompact = false\n")
    quiet = memory.sessions.conversation("quiet")
    quiet.save([one for n in range(99) for one in turn(n)])
    assert memory.sessions.told("quiet").summary is None and memory.sessions.info("quiet").due == 178
    file.write_text("[sessions]\ncompact_tokens = 100\n")
    assert memory.sessions.info("chat").due == 0 and memory.sessions.info("quiet").due > 178
    for bad in (
        "compact_at = 20\ncompact_keep = 20",
        "resume = 0",
        "shown = -1",
        "colour = 1",
        "summary = 5",
    ):
        file.write_text(f"[sessions]\n{bad}\n")
        with pytest.raises(ConfigError):
            memory.sessions.conversation("chat")
