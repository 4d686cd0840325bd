"""Concurrent calls of one token delay other tokens by one call, tested by the order of events."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from typing import Any

import pytest

from ipfsmem.api.turns import TooManyCalls, Turns
from ipfsmem.in_thread import in_thread


async def settle() -> None:
    """Let all tasks run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


def order_of(*calls: str) -> str:
    """Return the order in which calls get their turns while the first one runs."""
    done: list[str] = []

    async def call(turns: Turns, caller: str) -> None:
        async with turns.of(caller):
            await settle()
            done.append(caller)

    async def main() -> None:
        turns = Turns()
        await asyncio.gather(*(call(turns, caller) for caller in calls))

    asyncio.run(main())
    return "".join(done)


@pytest.mark.parametrize(
    ("calls", "turns"),
    [
        ("aaaaab", "abaaaa"),
        ("aaaabbc", "abacbaa"),
        ("aaabab", "ababaa"),
        ("abc", "abc"),
        ("aaa", "aaa"),
    ],
)
def test_callers_take_turns(calls: str, turns: str) -> None:
    assert order_of(*calls) == turns


def test_caller_with_many_calls_is_refused_and_others_are_not() -> None:
    async def main() -> None:
        turns, go = Turns(), asyncio.Event()

        async def call(caller: str) -> None:
            async with turns.of(caller, most=3):
                await go.wait()

        running = [asyncio.ensure_future(call("a")) for _ in range(3)]
        await settle()
        with pytest.raises(TooManyCalls):
            await call("a")
        other = asyncio.ensure_future(call("b"))
        await settle()
        go.set()
        await asyncio.gather(*running, other)
        await call("a")  # there is room again

    asyncio.run(main())


@pytest.mark.parametrize("granted", [False, True])
def test_cancelled_call_releases_its_turn(granted: bool) -> None:
    async def main() -> None:
        turns, go = Turns(), asyncio.Event()

        async def call() -> None:
            async with turns.of("a"):
                await go.wait()

        first, second = asyncio.ensure_future(call()), asyncio.ensure_future(call())
        await settle()
        if granted:
            # The first call ends, and its turn goes to the second one, which is cancelled before it runs.
            go.set()
            first.add_done_callback(lambda _: second.cancel())
            await asyncio.wait([first])
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        go.set()
        await asyncio.gather(first, return_exceptions=True)
        async with asyncio.timeout(60):
            await call()

    asyncio.run(main())


def test_failed_work_in_a_thread_is_freed_at_once() -> None:
    class Body:
        pass

    async def play() -> Any:
        body = Body()
        held = weakref.ref(body)

        def work(of: Body = body) -> None:
            raise ValueError(id(of))

        with contextlib.suppress(ValueError):
            await in_thread(work)
        del work, body
        return held

    gc.disable()
    try:
        assert asyncio.run(play())() is None
    finally:
        gc.enable()
