"""A client of SDK 1.x that prints the answers of the program in its arguments as JSON."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from pydantic import AnyUrl


async def main() -> None:
    told = {}
    heard = asyncio.Queue()

    async def hear(message) -> None:
        heard.put_nowait(message)

    program = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=json.load(sys.stdin))
    async with (
        stdio_client(program) as (read, write),
        ClientSession(read, write, message_handler=hear) as session,
    ):
        told["version"] = (await session.initialize()).protocolVersion
        told["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        made = await session.call_tool("remember", {"key": "made", "body": "by an old client"})
        told["seen"] = made.structuredContent["seen"]
        told["refused"] = (await session.call_tool("remember", {"key": "made", "body": "x"})).isError
        found = await session.call_tool("recall", {"query": "client"})
        told["text"] = found.content[0].text
        told["resources"] = [str(one.uri) for one in (await session.list_resources()).resources]
        told["read"] = (await session.read_resource(AnyUrl("memory:///made"))).contents[0].text
        told["prompts"] = [one.name for one in (await session.list_prompts()).prompts]
        await session.subscribe_resource(AnyUrl("memory:///made"))
        await session.call_tool("remember", {"key": "made", "body": "again", "seen": told["seen"]})
        event = await asyncio.wait_for(heard.get(), 20)
        told["event"] = [event.root.method, str(event.root.params.uri)]
    print(json.dumps(told))


asyncio.run(asyncio.wait_for(main(), 60))
