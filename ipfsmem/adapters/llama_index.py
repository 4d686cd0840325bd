"""A LlamaIndex memory block on an ipfsmem vault, for `llama_index.core.memory.Memory`.

    chat = Memory.from_defaults(session_id="chat-1", memory_blocks=[memory_block(memory)])

The block contains `memory.context`: fenced, and matched with the last message. Messages that leave the short-term memory are kept
in a session if one is named, and nowhere else: no facts are extracted. Extra: `llama-index`.
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
    """Return a block that gives the model `memory.context` for the user's last message, at most `max_tokens` tokens.

    `memory`: a vault, or one scope of it. `priority`: 0 is never cut, else blocks of low numbers are cut first. `session`:
    messages that leave the short-term memory are added to the session of this name (`memory.sessions`); None: they are
    dropped. Raises UsageError if the extra `llama-index` is not installed.
    """
    with extra("llama-index"):
        from ipfsmem.adapters.llama_index_block import IpfsmemBlock
    return IpfsmemBlock(
        name=name,
        description="Memories of earlier conversations, from all devices of the user.",
        priority=priority,
        accept_short_term_memory=session is not None,
    ).on(memory, max_tokens, session)
