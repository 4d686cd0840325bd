"""A LlamaIndex memory block on an ipfsmem memory, for `llama_index.core.memory.Memory`.

    chat = Memory.from_defaults(session_id="chat-1", memory_blocks=[memory_block(memory)])

What the block gives is `memory.context`: fenced, and matched with what was said last. What falls out of the short-term memory is
kept in a session when one is named, and in nothing else: no fact is made of it. Extra: `llama-index`.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

from ipfsmem.adapters.extras import extra
from ipfsmem.memories.layouts import LEAST_TOKENS, TOKEN_BYTES
from ipfsmem.memory import Memory

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory.memory import BaseMemoryBlock

__all__ = ["memory_block"]

#: Characters of what was said last that memories are matched with.
_QUERY = 2_000
#: Blocks that may still have to be made smaller.
_CHATS = 64


def memory_block(
    memory: Memory,
    *,
    name: str = "ipfsmem",
    max_tokens: int = 2_000,
    priority: int = 1,
    session: str | None = None,
) -> BaseMemoryBlock[str]:
    """A block that gives the model what `memory.context` has for what the user said last, at most `max_tokens` of it.

    `memory`: a memory, or one scope of it. `priority`: 0 is never cut, else blocks of low numbers are cut first. `session`:
    messages that the short-term memory has no room for any more are added to the session of this name (`memory.sessions`);
    None: they are not taken. Raises UsageError when the extra `llama-index` is not installed.
    """
    made: BaseMemoryBlock[str] = _block_class()(
        name=name,
        description="What is remembered of earlier conversations, on all devices of the user.",
        priority=priority,
        accept_short_term_memory=session is not None,
    ).on(memory, max_tokens, session)
    return made


@functools.cache
def _block_class() -> Any:
    """The class, which needs the package."""
    with extra("llama-index"):
        from llama_index.core.bridge.pydantic import PrivateAttr
        from llama_index.core.memory.memory import BaseMemoryBlock

    class IpfsmemBlock(BaseMemoryBlock[str]):
        """The context of a memory."""

        _memory: Memory = PrivateAttr()
        _max_tokens: int = PrivateAttr()
        _session: str | None = PrivateAttr()
        #: What was asked for the blocks that were given last, by their text: several chats may share this one.
        _asked: dict[str, str] = PrivateAttr(default_factory=dict)

        def on(self, memory: Memory, max_tokens: int, session: str | None) -> IpfsmemBlock:
            self._memory, self._max_tokens, self._session = memory, max_tokens, session
            return self

        async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
            """The context for what the user said last."""
            said = [one.content or "" for one in messages or () if one.role == "user"]
            asked = said[-1][-_QUERY:] if said else ""
            given = await asyncio.to_thread(self._context, asked, self._max_tokens)
            self._asked[given] = asked
            while len(self._asked) > _CHATS:
                self._asked.pop(next(iter(self._asked)), None)
            return given

        def _context(self, asked: str, max_tokens: int) -> str:
            return self._memory.context(asked or None, max_tokens=max_tokens).text

        async def _aput(self, messages: list[ChatMessage]) -> None:
            """Keep messages in the session, if there is one."""
            if self._session is not None:
                items = [one.model_dump(mode="json", exclude_none=True) for one in messages]
                await asyncio.to_thread(self._memory.sessions.add, self._session, items)

        async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
            """A smaller context, whole again; None when there is no room for any."""
            room = -(-len(content.encode()) // TOKEN_BYTES) - tokens_to_truncate
            if room < LEAST_TOKENS:
                return None
            return await asyncio.to_thread(self._context, self._asked.get(content, ""), room) or None

    return IpfsmemBlock
