"""The class behind `pydantic_ai.resumed`: a resumed request that shows the system prompt of the agent that runs it.

PydanticAI adds an agent's `system_prompt` only to an empty history, and sessions keep no system prompts, so that a changed one applies at
once. The class belongs to that package, so this module is imported when a history is resumed.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai._run_context import get_current_run_context
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelRequestPart, SystemPromptPart

_LOG = logging.getLogger("ipfsmem.sessions")
#: Marks a part that was added for a run.
_CURRENT = "ipfsmem_current"
#: Maximum seconds of an agent's own functions for its system prompt.
_PATIENCE = 30


class ResumedRequest(ModelRequest):
    """A request that starts with the running agent's system prompt, if the agent has one and the request has none."""

    def _parts(self) -> Sequence[ModelRequestPart]:
        stored: Sequence[ModelRequestPart] = self.__dict__["_stored"]
        if any(isinstance(part, SystemPromptPart) for part in stored):
            return stored
        context = get_current_run_context()
        if context is not None and self.__dict__.get("_run") != (run := (context.run_id, id(context.agent))):
            self.__dict__["_run"] = run
            self.__dict__["_prompt"] = _system_prompt(context)
        prompt = self.__dict__.get("_prompt")
        return [*prompt, *stored] if prompt else stored

    def _set_parts(self, parts: Sequence[ModelRequestPart]) -> None:
        # Copies by the framework hold the prompt that was shown; it is computed for each run.
        self.__dict__["_stored"] = [part for part in parts if not _is_current(part)]

    parts = property(_parts, _set_parts)


def with_current_prompt(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Return the messages, the first request of which shows the current system prompt in each run."""
    for place, message in enumerate(messages):
        if isinstance(message, ModelRequest):
            fields = {name: value for name, value in vars(message).items() if not name.startswith("_")}
            return [*messages[:place], ResumedRequest(**fields), *messages[place + 1 :]]
    return messages


def _system_prompt(context: RunContext[Any]) -> list[SystemPromptPart]:
    """Return the parts of an agent's system prompt. Its functions may be asynchronous and this is called by synchronous code, so
    they run in a thread with a loop of its own."""
    agent = context.agent
    if agent is None:
        return []

    model: Any = context.model

    def resolved() -> list[SystemPromptPart]:
        return asyncio.run(agent.system_prompt_parts(deps=context.deps, model=model, prompt=context.prompt))

    pool = ThreadPoolExecutor(1)
    try:
        parts = pool.submit(contextvars.copy_context().run, resolved).result(_PATIENCE)
    except Exception as error:
        _LOG.warning("the agent's system prompt could not be added to the resumed conversation: %s", error)
        return []
    finally:
        pool.shutdown(wait=False)
    return [replace(part, metadata={**(part.metadata or {}), _CURRENT: True}) for part in parts]


def _is_current(part: ModelRequestPart) -> bool:
    return isinstance(part, SystemPromptPart) and _CURRENT in (part.metadata or {})
