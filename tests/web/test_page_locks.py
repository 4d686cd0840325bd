"""The page of `ipfsmem ui` while a vault is locked and unlocked: no missed event or answer leaves it closed
or outdated.

Requires Node, Chromium and the package playwright."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.errors import PassphraseError
from ipfsmem.holding import Holder
from ipfsmem.memory import Memory
from tests.support.api_lab import opener
from tests.support.page_lab import Shown, looked_at
from tests.support.patience import PATIENCE

pytestmark = [pytest.mark.interop, pytest.mark.slow]

LOCKED = ".shut h1:has-text('Locked')"
REFUSED = '{"kind": "PassphraseError", "detail": "it is locked", "hint": ""}'


class Keys:
    """The keys of one vault: opening it while they are locked is refused."""

    def __init__(self, open_memory: Callable[[], Memory]) -> None:
        self.locked = False
        self._open = open_memory

    def open_memory(self) -> Memory:
        if self.locked:
            raise PassphraseError("it is locked")
        return self._open()

    async def lock(self, shown: Shown, yes: bool, vault: int = 0) -> None:
        """Lock or unlock it."""
        served = shown.lab.served[vault]
        async with served._turns.of():
            self.locked = yes
            served.holder.close()


class Held:
    """Requests of a page that are held back from the server until they are released."""

    def __init__(self) -> None:
        self._released = asyncio.Event()
        self._came = asyncio.Event()

    async def keep(self, route: Any) -> None:
        """Handle one of them."""
        self._came.set()
        await self._released.wait()
        await route.continue_()

    async def came(self) -> None:
        """Wait for the first one."""
        async with asyncio.timeout(PATIENCE):
            await self._came.wait()

    def release(self) -> None:
        """Release them and all later ones."""
        self._released.set()


@contextlib.asynccontextmanager
async def held(page: Any, path: str) -> AsyncIterator[Held]:
    """Hold back the requests for a path; release them at the end at the latest."""
    requests = Held()
    await page.route(f"**/v1/{path}*", requests.keep)
    try:
        yield requests
    finally:
        requests.release()


def once(**answer: Any) -> Callable[[Any], Awaitable[None]]:
    """A route that answers the first request this way, and passes later ones on."""
    left = [answer]

    async def handle(route: Any) -> None:
        if left:
            await route.fulfill(**left.pop())
        else:
            await route.continue_()

    return handle


def test_vault_unlocked_before_the_page_listens_is_shown(tmp_path: Path) -> None:
    keys = Keys(opener(tmp_path))
    with opener(tmp_path)() as memory:
        memory.write("tone", "Be brief.", name="Tone")

    async def look(shown: Shown) -> None:
        page = shown.page
        await page.wait_for_selector(".row")
        async with held(page, "changes"):
            await keys.lock(shown, True)
            await page.wait_for_selector(LOCKED)
            await keys.lock(shown, False)
        await page.wait_for_selector(".row:has-text('Tone')")

    looked_at(tmp_path, look, open_memory=keys.open_memory)


def test_page_with_a_refused_request_retries_until_it_knows_the_lock(tmp_path: Path) -> None:
    keys = Keys(opener(tmp_path))
    with opener(tmp_path)() as memory:
        memory.write("tone", "Be brief.", name="Tone")

    async def look(shown: Shown) -> None:
        page = shown.page
        await page.wait_for_selector(".row")
        await page.route("**/v1/vaults*", once(status=500, body="{}"))
        await keys.lock(shown, True)
        await page.wait_for_selector(LOCKED)
        await page.route("**/v1/vaults*", once(status=503, body="{}"))
        await keys.lock(shown, False)
        await page.wait_for_selector(".row:has-text('Tone')")

    looked_at(tmp_path, look, open_memory=keys.open_memory)


def test_lock_too_short_for_an_event_does_not_close_the_page(tmp_path: Path) -> None:
    with opener(tmp_path)() as memory:
        memory.write("tone", "Be brief.", name="Tone")

    async def look(shown: Shown) -> None:
        page = shown.page
        await page.wait_for_selector(".row")
        await page.route("**/v1/memories/tone*", once(status=423, body=REFUSED))
        await page.click(".row:has-text('Tone')")
        await page.wait_for_selector(".memory > .prose:has-text('Be brief.')")

    looked_at(tmp_path, look)


def test_write_between_the_first_request_and_the_first_event_is_shown(tmp_path: Path) -> None:
    with opener(tmp_path)() as memory:
        memory.write("tone", "Be brief.", name="Tone")

    async def look(shown: Shown) -> None:
        page = await shown.page.context.new_page()
        async with held(page, "changes") as requests:
            await page.goto(shown.link())
            await page.wait_for_selector(".row:has-text('Tone')")
            await requests.came()
            with opener(tmp_path)() as other:
                other.write("new", "Written elsewhere.", name="From elsewhere")
            # The listening page already has it, so the event of this write is over.
            await shown.page.wait_for_selector(".row:has-text('From elsewhere')")
        await page.wait_for_selector(".row:has-text('From elsewhere')")

    looked_at(tmp_path, look)


def test_save_during_a_lock_request_goes_to_the_chosen_vault(tmp_path: Path) -> None:
    keys = Keys(opener(tmp_path, "n"))
    for name in ("m", "n"):
        with opener(tmp_path, name)() as memory:
            memory.write("tone", f"Of {name}.", name=f"Tone of {name}")

    async def look(shown: Shown) -> None:
        page = shown.page
        shown.lab.served[1].holder = Holder(keys.open_memory)
        await page.select_option("header select[aria-label='Memory']", "n")
        await page.wait_for_selector(".row:has-text('Tone of n')")
        await page.click("button:has-text('New')")
        await page.fill(".editor input", "For n alone")
        await page.fill("textarea", "A secret of n.")
        async with held(page, "vaults") as requests:
            await keys.lock(shown, True, vault=1)
            await requests.came()
            await page.click("button:has-text('Save')")
            await page.wait_for_selector(LOCKED)
        await keys.lock(shown, False, vault=1)
        await page.click("button:has-text('Save')")
        await page.wait_for_selector(".memory > .prose:has-text('A secret of n.')")
        with opener(tmp_path)() as other, opener(tmp_path, "n")() as chosen:
            assert [one.key for one in other.list()] == ["tone"]
            assert len(chosen.list()) == 2

    looked_at(tmp_path, look, names=("m", "n"))
