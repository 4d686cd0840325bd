"""Write docs/internals/recall.md: what recall answers on the sample memory, to the commands and to an MCP client. A test compares.

The commands are played as in `make_week`; the client is that of the package `mcp`, and speaks over pipes with `ipfsmem serve mcp`, a
program of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from make_week import SAMPLE, Week, play, week

TARGET: Final = Path(__file__).with_name("internals") / "recall.md"
_ASKED: Final = re.compile(r"^client> (.+)$", re.M)


class Asked(Week):
    """The laptop, and a client that asks the server over its memory."""

    page = ""
    _answers: dict[str, str] | None = None

    def run(self, device: str, line: str) -> str:
        if device != "client":
            return super().run(device, line)
        if self._answers is None:
            self._answers = asyncio.run(_session(self.folder / "laptop", _ASKED.findall(self.page)))
        return self._answers[line]


async def _session(home: Path, lines: list[str]) -> dict[str, str]:
    """What the client got for each line, in one session."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR") if name in os.environ}
    surroundings = {
        **kept,
        "HOME": str(home),
        "IPFSMEM_HOME": str(home),
        "IPFSMEM_CONFIG": os.devnull,
        "IPFSMEM_EMBEDDINGS": "off",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "ipfsmem.cli", "serve", "mcp", "--read-only", "--tools", "everyday,context"],
        env=surroundings,
    )
    async with Client(server) as client:
        return {line: await _answer(client, line) for line in lines}


async def _answer(client: Any, line: str) -> str:
    what, _, rest = line.partition(" ")
    if what == "tools":
        return ", ".join(tool.name for tool in (await client.list_tools()).tools) + "\n"
    if what == "resource":
        return "\n".join(one.text for one in (await client.read_resource(rest)).contents)
    name, _, arguments = rest.partition(" ")
    done = await client.call_tool(name, json.loads(arguments))
    said = "\n".join(one.text for one in done.content)
    return ("(refused) " if done.is_error else "") + said


def played(folder: Path, page: str) -> str:
    """The page as it is played in an empty folder."""
    with week(folder) as asked:
        asked.__class__ = Asked
        assert isinstance(asked, Asked)
        asked.page = page
        return play(page, asked)


if __name__ == "__main__":
    assert SAMPLE.is_file()
    with tempfile.TemporaryDirectory() as base:
        TARGET.write_text(played(Path(base), TARGET.read_text("utf-8")), "utf-8")
