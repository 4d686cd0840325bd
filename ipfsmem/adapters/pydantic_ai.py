"""A PydanticAI toolset on an ipfsmem vault, and sessions of that package's messages.

    agent = Agent("...", toolsets=[toolset(memory)])
    chat = memory.sessions.conversation("chat-1")
    result = await agent.run("...", message_history=resumed(chat))
    save(chat, result.all_messages())

Names, schemas and answers are those of `ipfsmem.tools`; a refusal reaches the model as a failed result with its message.
Extra: `pydantic-ai`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ipfsmem import tools
from ipfsmem.adapters.extras import extra
from ipfsmem.memory import Memory
from ipfsmem.open_vault.conversation import Conversation, Saved

if TYPE_CHECKING:
    from pydantic_ai import FunctionToolset
    from pydantic_ai.messages import ModelMessage

__all__ = ["resumed", "save", "toolset"]


def toolset(
    memory: Memory | Callable[[], Memory],
    names: Iterable[str] | None = tools.EVERYDAY,
    *,
    scope: str | None = None,
    read_only: bool = False,
) -> FunctionToolset[Any]:
    """Return the tools of `ipfsmem.tools.toolset` for `Agent(toolsets=[...])`, with its guidance as their instructions.

    `names`: which of them (None: all, those of other programs too). Create one for each conversation: it records what the model was
    shown. Raises UsageError for an unknown name, and if the extra `pydantic-ai` is not installed.
    """
    with extra("pydantic-ai"):
        from pydantic_ai import FunctionToolset, Tool, ToolFailed

    def made(one: tools.Tool) -> Tool[Any]:
        def call(**arguments: Any) -> str:
            answer = one.call(**arguments)
            if answer.is_error:
                raise ToolFailed(answer.text)
            return answer.text

        return Tool.from_schema(call, one.name, one.description, one.parameters)

    chosen = tools.toolset(memory, ["all"] if names is None else names, scope=scope, read_only=read_only)
    return FunctionToolset([made(one) for one in chosen], id="ipfsmem", instructions=tools.GUIDANCE)


def resumed(conversation: Conversation, last: int | None = None) -> list[ModelMessage]:
    """Return the messages with which an agent continues, for `message_history`; see `Conversation.resume`.

    A session keeps no system prompt: the one of the running agent precedes the first request, as in a new conversation. Raises
    pydantic's ValidationError if the session holds other items than messages of that package, and UsageError if the extra
    `pydantic-ai` is not installed.
    """
    with extra("pydantic-ai"):
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        from ipfsmem.adapters.pydantic_ai_history import with_current_prompt
    return with_current_prompt(ModelMessagesTypeAdapter.validate_python(conversation.resume(last)))


def save(conversation: Conversation, messages: Sequence[ModelMessage]) -> Saved:
    """Add the new messages of a run (`result.all_messages()`); see `Conversation.save`. Raises UsageError if the extra is not
    installed."""
    with extra("pydantic-ai"):
        from pydantic_ai.messages import ModelMessagesTypeAdapter
    return conversation.save(ModelMessagesTypeAdapter.dump_python(list(messages), mode="json"))
