"""A LlamaIndex memory block on an ipfsmem memory, for `llama_index.core.memory.Memory`.

    chat = Memory.from_defaults(session_id="chat-1", memory_blocks=[memory_block(memory)])

What the block gives is `memory.context`: fenced, and matched with what was said last. What falls out of the short-term memory is
kept in a session when one is named, and in nothing else: no fact is made of it. Extra: `llama-index`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipfsmem.adapters.extras import extra
from ipfsmem.memory import Memory

if TYPE_CHECKING:
    from llama_index.core.memory.memory import BaseMemoryBlock

__all__ = ["memory_block"]


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
    with extra("llama-index"):
        from ipfsmem.adapters.llama_index_block import IpfsmemBlock
    return IpfsmemBlock(
        name=name,
        description="What is remembered of earlier conversations, on all devices of the user.",
        priority=priority,
        accept_short_term_memory=session is not None,
    ).on(memory, max_tokens, session)
