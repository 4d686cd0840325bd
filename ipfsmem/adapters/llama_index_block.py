"""The class behind `llama_index.memory_block`: the interface of a memory block of the package `llama-index-core`, over the
context.

It subclasses a class of that package, so only this module imports it at the top; it is imported when a block is made.
"""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory.memory import BaseMemoryBlock

from ipfsmem.in_thread import in_thread
from ipfsmem.memories.context_layouts import LEAST_TOKENS, TOKEN_BYTES
from ipfsmem.memory import Memory

#: Maximum characters of the last message that are used as the query.
_QUERY = 2_000
#: Maximum recent blocks that can still be shortened.
_CHATS = 64


class IpfsmemBlock(BaseMemoryBlock[str]):
    """The context of a vault as a memory block."""

    _memory: Memory = PrivateAttr()
    _max_tokens: int = PrivateAttr()
    _session: str | None = PrivateAttr()
    #: The queries of the latest blocks, by their text: several chats may share this one.
    _asked: dict[str, str] = PrivateAttr(default_factory=dict)

    def on(self, memory: Memory, max_tokens: int, session: str | None) -> IpfsmemBlock:
        self._memory, self._max_tokens, self._session = memory, max_tokens, session
        return self

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """Return the context for the user's last message."""
        contents = [one.content or "" for one in messages or () if one.role == "user"]
        query = contents[-1][-_QUERY:] if contents else ""
        block = await in_thread(lambda: self._context(query, self._max_tokens))
        self._asked[block] = query
        while len(self._asked) > _CHATS:
            self._asked.pop(next(iter(self._asked)), None)
        return block

    def _context(self, query: str, max_tokens: int) -> str:
        return self._memory.context(query or None, max_tokens=max_tokens).text

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Keep messages in the session, if there is one."""
        if (session := self._session) is not None:
            items = [one.model_dump(mode="json", exclude_none=True) for one in messages]
            await in_thread(lambda: self._memory.sessions.add(session, items))

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return a shorter, complete context; None if there is no room for any."""
        room = -(-len(content.encode()) // TOKEN_BYTES) - tokens_to_truncate
        if room < LEAST_TOKENS:
            return None
        return await in_thread(lambda: self._context(self._asked.get(content, ""), room)) or None
