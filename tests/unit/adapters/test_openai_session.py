"""The session for the OpenAI Agents SDK returns the same items as the SDK's SQLite session, and two devices
can share it.

Source of the cases: openai/openai-agents-python, tests/memory/test_session.py at commit
063581f55d08951b5684008ef12408261bd25377 and tests/memory/test_session_limit.py at
4ab9228b2b489b140bda1659914e713f2fa3cddd. Omitted are cases about SQLite (connections of threads, file
locks), about code other than sessions, and about `SessionSettings` alone."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ipfsmem.adapters.openai_agents import MemorySession, session
from ipfsmem.errors import ClosedError, UsageError
from ipfsmem.memory import Memory
from tests.support.cancelling import ended_when_cancelled
from tests.support.device_lab import Lab
from tests.support.extras import need_extra

#: One worker for all tests: importing the package takes seconds.
pytestmark = pytest.mark.xdist_group("openai-agents")
#: Creates the session of a name, with settings.
Make = Callable[..., Any]
#: Runs an agent with an input, a model answer and a session; returns the model's input.
Run = Callable[..., Awaitable[Any]]


@pytest.fixture(scope="module")
def agents() -> ModuleType:
    return need_extra("openai-agents", "agents")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.load("x", mode="none", home=tmp_path) as opened:
        yield opened


def user(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


async def basic(make: Make, run: Run) -> Any:
    one = make("test_session_123")
    return [
        await run("What city is the Golden Gate Bridge in?", "San Francisco", session=one),
        await run("What state is it in?", "California", session=one),
        await one.get_items(),
    ]


async def different_sessions(make: Make, run: Run) -> Any:
    one, other = make("session_1"), make("session_2")
    seen = [
        await run("I like cats", "I like cats", session=one),
        await run("I like dogs", "I like dogs", session=other),
        await run("What did I say I like?", "Yes, you mentioned cats", session=one),
    ]
    return [*seen, await one.get_items(), await other.get_items()]


async def list_input_is_appended(make: Make, run: Run) -> Any:
    one = make("list")
    await one.add_items([*user("Earlier message"), {"role": "assistant", "content": "Saved reply"}])
    return [await run(user("Test message"), "This should run", session=one), await one.get_items()]


async def input_by_a_callback(make: Make, run: Run) -> Any:
    from agents import RunConfig

    def only_users(history: list[Any], new: list[Any]) -> list[Any]:
        return [item for item in history if item["role"] == "user"] + new

    one = make("callback")
    await one.add_items(
        [*user("Hello there."), {"role": "assistant", "content": "Hi, I'm here to assist you."}]
    )
    how = RunConfig(session_input_callback=only_users, tracing_disabled=True)
    return [
        await run(user("What your name?"), "An answer", session=one, run_config=how),
        await one.get_items(),
    ]


def limited(limit: int | None, *, of_session: int | None = None) -> Any:
    async def scenario(make: Make, run: Run) -> Any:
        from agents import RunConfig
        from agents.memory import SessionSettings

        one = make("limit", SessionSettings(limit=of_session)) if of_session is not None else make("limit")
        for number in range(1, 4):
            await run(f"Message {number}", f"Reply {number}", session=one)
        how = RunConfig(session_settings=SessionSettings(limit=limit), tracing_disabled=True)
        return [await run("Message 4", "Reply 4", session=one, run_config=how), await one.get_items()]

    return scenario


SCENARIOS = {
    "basic": basic,
    "different sessions": different_sessions,
    "list input": list_input_is_appended,
    "callback": input_by_a_callback,
    "limit 2": limited(2),
    "limit 0": limited(0),
    "limit none": limited(None),
    "limit beyond": limited(100),
    "limit of the session": limited(None, of_session=3),
    "limit of the run before that of the session": limited(2, of_session=100),
}


@pytest.mark.parametrize("method", ["run", "run_sync", "run_streamed"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_runs_see_the_same_items_as_with_the_packages_session(
    agents: ModuleType, memory: Memory, tmp_path: Path, name: str, method: str
) -> None:
    from agents import SQLiteSession

    scenario, opened = SCENARIOS[name], []

    def theirs(key: str, settings: Any = None) -> Any:
        opened.append(SQLiteSession(key, tmp_path / "theirs.db", session_settings=settings))
        return opened[-1]

    try:
        expected = asyncio.run(scenario(theirs, _runner(method)))
    finally:
        for one in opened:
            one.close()
    found = asyncio.run(
        scenario(lambda key, settings=None: session(memory, key, session_settings=settings), _runner(method))
    )
    assert found == expected
    assert len(expected[-1]) >= 2


def _runner(method: str) -> Run:
    """Return one way to run an agent whose model gives scripted answers."""
    from agents import Agent, Runner
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import (
        Response,
        ResponseCompletedEvent,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class Scripted(Model):
        given: Any = None
        says = ""

        def _output(self, given: Any) -> list[Any]:
            self.given = given
            text = ResponseOutputText(text=self.says, type="output_text", annotations=[])
            return [
                ResponseOutputMessage(
                    id="1", type="message", role="assistant", status="completed", content=[text]
                )
            ]

        async def get_response(self, *, input: Any, **more: Any) -> ModelResponse:
            return ModelResponse(self._output(input), Usage(), None)

        async def stream_response(self, system: Any, input: Any, *rest: Any, **more: Any) -> Any:
            made = Response(
                id="1", created_at=0, model="scripted", object="response", output=self._output(input),
                tool_choice="none", tools=[], parallel_tool_calls=False,
            )  # fmt: skip
            yield ResponseCompletedEvent(type="response.completed", response=made, sequence_number=0)

    model = Scripted()
    agent = Agent(name="test", model=model)

    async def run(asked: Any, says: str, **how: Any) -> Any:
        from agents import RunConfig

        how.setdefault("run_config", RunConfig(tracing_disabled=True))
        model.says = says
        if method == "run":
            result: Any = await Runner.run(agent, asked, **how)
        elif method == "run_sync":
            result = await asyncio.to_thread(_in_its_own_loop, agent, asked, how)
        else:
            result = Runner.run_streamed(agent, asked, **how)
            async for _ in result.stream_events():
                pass
        assert result.final_output == says
        return model.given

    return run


def _in_its_own_loop(agent: Any, asked: Any, how: dict[str, Any]) -> Any:
    from agents import Runner

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return Runner.run_sync(agent, asked, **how)
    finally:
        loop.close()


# -- the session itself, with and without the package ---------------------------------------------------------------


def contents(items: list[Any]) -> list[str]:
    return [item["content"] for item in items]


def test_items_are_added_and_popped_one_by_one(memory: Memory) -> None:
    async def use() -> None:
        one, other = session(memory, "one"), session(memory, "other")
        assert await one.pop_item() is None and await one.get_items() == []
        await one.add_items([])
        await one.add_items(user("Hello"))
        await one.add_items([{"role": "assistant", "content": "Hi there!"}, *user("How are you?")])
        await other.add_items(user("こんにちは", "😊👍", "Привет", "Robert'); DROP TABLE students;--"))
        assert contents(await one.get_items()) == ["Hello", "Hi there!", "How are you?"]
        for limit, expected in ((2, 2), (10, 3), (0, 0), (-1, 0), (None, 3)):
            assert len(await one.get_items(limit)) == expected
        assert await one.pop_item() == user("How are you?")[0]
        assert contents(await one.get_items()) == ["Hello", "Hi there!"]
        assert contents(await other.get_items(limit=2)) == ["Привет", "Robert'); DROP TABLE students;--"]
        await one.clear_session()
        assert await one.get_items() == [] and len(await other.get_items()) == 4
        await one.add_items(user("again"))
        assert contents(await session(memory, "one").get_items()) == ["again"]

    asyncio.run(use())


def test_session_implements_the_sdk_protocol(agents: ModuleType, memory: Memory) -> None:
    from agents.memory import Session, SessionSettings

    one = session(memory, "one", session_settings={"limit": 2})
    assert isinstance(one, Session) and one.session_id == "one"
    assert one.session_settings == SessionSettings(limit=2)

    async def use() -> None:
        await one.add_items(user("1", "2", "3"))
        assert contents(await one.get_items()) == ["2", "3"]
        assert contents(await one.get_items(limit=1)) == ["3"]

    asyncio.run(use())


def test_settings_by_name_require_the_package(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agents.memory", None)
    with pytest.raises(UsageError, match="needs the extra openai-agents"):
        session(memory, "one", session_settings={"limit": 2})
    assert session(memory, "one").session_settings is None
    with pytest.raises(UsageError, match="invalid session name"):
        session(memory, "")


def test_session_works_in_event_loops_of_threads_and_fifty_tasks(memory: Memory) -> None:
    one = session(memory, "one")

    def in_a_thread(number: int) -> None:
        asyncio.run(one.add_items(user(f"thread {number}")))

    with ThreadPoolExecutor(5) as threads:
        list(threads.map(in_a_thread, range(10)))

    async def at_once() -> list[Any]:
        await asyncio.gather(*(one.add_items(user(f"task {number}")) for number in range(50)))
        return await one.get_items()

    expected = [f"thread {number}" for number in range(10)] + [f"task {number}" for number in range(50)]
    assert sorted(contents(asyncio.run(at_once()))) == sorted(expected)


def test_cancelled_addition_is_complete_or_not_started(memory: Memory) -> None:
    async def use() -> None:
        one = session(memory, "one")
        await ended_when_cancelled(memory, one.add_items(user("kept")))
        assert contents(await one.get_items()) == ["kept"]

    asyncio.run(use())


def test_conversation_continues_on_another_device(lab: Lab) -> None:
    a = lab.create("a")
    asyncio.run(session(a.scope("bot"), "chat").add_items(user("from the laptop")))
    lab.sync(a)
    b = lab.restore("b")
    there: MemorySession = session(b.scope("bot"), "chat")
    assert contents(asyncio.run(there.get_items())) == ["from the laptop"]
    asyncio.run(there.add_items(user("from the phone")))
    lab.settle(a, b)
    assert contents(asyncio.run(session(a.scope("bot"), "chat").get_items())) == [
        "from the laptop",
        "from the phone",
    ]
    asyncio.run(there.clear_session())
    lab.settle(a, b)
    assert asyncio.run(session(a.scope("bot"), "chat").get_items()) == []


def test_closed_memory_is_refused(memory: Memory) -> None:
    one = session(memory, "one")
    memory.close()
    with pytest.raises(ClosedError):
        asyncio.run(one.get_items())
