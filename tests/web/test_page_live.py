"""One vault in four interfaces: writes by Python, the command line and an agent over MCP appear on the
page automatically, and they read the page's writes."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from ipfsmem.holding import Holder
from tests.support.api_lab import opener
from tests.support.cli_lab import Cli
from tests.support.extras import need_extra
from tests.support.mcp_lab import client_of
from tests.support.page_lab import Shown, looked_at

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_write_on_any_interface_is_seen_on_every_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_extra("mcp", "mcp_types")
    from ipfsmem.mcp.server import MemoryServer

    cli = Cli(tmp_path, monkeypatch)
    with opener(tmp_path)() as memory:
        memory.write("tone", "Be brief.", name="Tone")

    async def look(shown: Shown) -> None:
        page = shown.page

        async def seen(words: str) -> None:
            await page.wait_for_selector(f".memory > .prose:has-text('{words}')")

        async def written(words: str) -> None:
            await page.click("button:has-text('Edit')")
            await page.fill("textarea", words)
            await page.click("button:has-text('Save')")
            await page.wait_for_selector(".editor", state="detached")

        await shown.go("memories/tone", ".memory > .prose")
        server = MemoryServer(Holder(opener(tmp_path)))
        async with client_of(server, "auto") as agent:

            async def read_by_all(words: str) -> None:
                with opener(tmp_path)() as python:
                    reading = python.read("tone")
                    assert reading is not None and words in reading.file.body
                assert words in (await asyncio.to_thread(cli.ok, "read", "tone", "-n", "m")).out
                answer = await agent.call_tool("read_memory", {"key": "tone"})
                assert not answer.is_error and words in answer.content[0].text

            with opener(tmp_path)() as python:
                python.write("tone", "By Python.")
            await seen("By Python.")
            await asyncio.to_thread(cli.ok, "write", "tone", "-n", "m", "--body", "By the command line.")
            await seen("By the command line.")
            read = (await agent.call_tool("read_memory", {"key": "tone"})).content[0].text
            (shown_to_agent,) = re.findall(r"^seen: ([0-9a-f]{16})", read, re.M)
            answer = await agent.call_tool(
                "remember", {"key": "tone", "body": "By an agent.", "seen": shown_to_agent}
            )
            assert not answer.is_error, answer
            await seen("By an agent.")
            await written("By a person.")
            await read_by_all("By a person.")
            # A new memory of each is in the list, and a deleted one leaves it.
            await asyncio.to_thread(cli.ok, "write", "fresh", "-n", "m", "--body", "New.", "--name", "Fresh")
            await page.wait_for_selector(".row:has-text('Fresh')")
            await asyncio.to_thread(cli.ok, "forget", "fresh", "-n", "m")
            await page.wait_for_selector(".row:has-text('Fresh')", state="detached")
            await shown.go("memories/fresh", ".empty:has-text('Not here')")
            await page.click("button:has-text('History')")
            await page.wait_for_selector(".versions li:has-text('Forgotten')")
        server.holder.close()

    looked_at(tmp_path, look)
