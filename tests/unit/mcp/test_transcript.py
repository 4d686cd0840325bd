"""The conversation in docs/reference/mcp.md, word for word, made with the official client. `python -m
tests.unit.mcp.test_transcript` writes it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from ipfsmem.device.replica import Environment
from ipfsmem.memory import Memory
from ipfsmem.testing.clock import SeededRandom
from ipfsmem.tools import EVERYDAY, PEERS
from ipfsmem.tools.toolset import SETS
from ipfsmem.vault.home import Home
from tests.support.extras import need_extra
from tests.support.mcp_lab import client_of

DOCUMENT: Final = Path(__file__).parents[3] / "docs" / "reference" / "mcp.md"
START: Final = "(`tests/unit/mcp/test_transcript.py` plays it and compares).\n"
#: The time of all calls: 2026-11-23, noon UTC.
NOON: Final = 1_795_435_200_000

#: Tool and arguments; "SEEN" is the `seen` or `confirm` of the previous answer.
CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("remember", {"key": "tone", "body": "Direct, and no praise.", "type": "feedback", "name": "Tone", "description": "how to answer"}),
    ("remember", {"key": "tone", "body": "Friendly."}),
    ("remember", {"key": "tone", "body": "Direct and friendly, no praise.", "seen": "SEEN"}),
    ("read_memory", {"key": "tone"}),
    ("save_memory", {"fact": "Prefers tabs", "category": "preference"}),
    ("learn_procedure", {"content": "Run the tests before a release", "category": "release"}),
    ("record_episode", {"content": "Release 2.1 went out late", "category": "release"}),
    ("memory_store", {"key": "ui.theme", "value": "dark"}),
    ("memory_recall", {"key": "ui.theme"}),
    ("memory_list", {}),
    ("memory_delete", {"key": "ui.theme"}),
    ("recall", {"query": "friendly answers", "explain": True}),
    ("list_memories", {"type": "feedback"}),
    ("save_session_context", {"fact": "The build host is arm64", "category": "host_info"}),
    ("context", {"query": "friendly"}),
    ("note", {"type": "decision", "text": "Releases go out on Mondays."}),
    ("resolve_conflict", {}),
    ("forget", {"key": "tone"}),
    ("forget", {"key": "tone", "confirm": "SEEN", "reason": "asked for"}),
    ("recall", {"query": "friendly", "limit": "three"}),
)  # fmt: skip


async def conversation() -> str:
    from ipfsmem.holding import Holder
    from ipfsmem.mcp.server import MemoryServer

    told = []
    with Memory.load(
        "alex", "none", home=Home(environment=Environment(lambda: NOON, SeededRandom("transcript")))
    ) as memory:
        server = MemoryServer(Holder(lambda: memory), names=["everyday,timeline,peers"], structured=True)
        async with client_of(server, "auto") as client:
            seen = ""
            for tool, given in CALLS:
                arguments = {name: seen if value == "SEEN" else value for name, value in given.items()}
                answer = await client.call_tool(tool, arguments)
                values = answer.structured_content
                seen = values.get("seen") or values.get("confirm") or seen
                error = "  (isError)" if answer.is_error else ""
                told.append(f"→ {tool} {json.dumps(arguments)}{error}\n{answer.content[0].text.rstrip()}\n")
    return "```\n" + "\n".join(told) + "```\n"


def test_document_has_the_conversation_word_for_word() -> None:
    need_extra("mcp", "mcp_types")
    made = asyncio.run(conversation())
    assert {tool for tool, _ in CALLS} == {*EVERYDAY, *SETS["timeline"], *PEERS}
    assert DOCUMENT.read_text("utf-8").partition(START)[2].strip() == made.strip()


if __name__ == "__main__":
    before = DOCUMENT.read_text("utf-8").partition(START)[0]
    DOCUMENT.write_text(f"{before}{START}\n{asyncio.run(conversation())}", "utf-8")
