"""Work in a thread that waits for coroutines of the event loop, when the loop abandons that work."""

from __future__ import annotations

import asyncio
import threading

import pytest
from ipfsmem_providers.packs.blocking_work import BlockingWork, in_loop

from ipfsmem.errors import ProviderUnavailable
from tests.support.patience import PATIENCE


@pytest.mark.parametrize("finish", [False, True])
@pytest.mark.filterwarnings("error:coroutine .* was never awaited", "error:Exception ignored in. .coroutine")
def test_abandoned_work_starts_nothing_more_in_the_loop(finish: bool) -> None:
    ended, begun = threading.Event(), list[str]()

    async def silent() -> None:
        await asyncio.sleep(3600)

    async def next_one() -> None:
        begun.append("next")

    def work() -> None:
        for one in (silent, next_one):
            with pytest.raises(ProviderUnavailable, match="cancelled"):
                in_loop(one, finish=finish)
        ended.set()

    async def body() -> None:
        with pytest.raises(ProviderUnavailable, match="a share does not answer"):
            await BlockingWork("a share", 0.05).run(work)
        assert await asyncio.to_thread(ended.wait, PATIENCE)

    asyncio.run(body())
    assert not begun


def test_cancelled_work_starts_only_its_cleanup() -> None:
    begun = list[str]()

    async def body() -> None:
        at_work, going_on = asyncio.Event(), asyncio.Event()

        async def waits() -> None:
            at_work.set()
            await going_on.wait()

        async def note(text: str) -> None:
            begun.append(text)

        def work() -> None:
            in_loop(waits, finish=True)
            in_loop(lambda: note("tidies"), finish=True)
            in_loop(lambda: note("goes on"))

        task = asyncio.ensure_future(BlockingWork("a share").run(work))
        await at_work.wait()
        task.cancel()
        await asyncio.sleep(0)
        going_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(body())
    assert begun == ["tidies"]


def test_in_loop_without_a_loop_is_refused() -> None:
    async def never() -> None:
        raise AssertionError

    with pytest.raises(RuntimeError, match="no event loop"):
        in_loop(never)
