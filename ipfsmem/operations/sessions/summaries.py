"""Summaries of the earlier part of a session by a model: its input, and the use of its answer.

The model receives the messages, quoted line by line, in pieces of its context length, each with the summary so far. Texts leave the
device that way, so only a configured model is asked. Its answer is used as the text of the summary; it calls no tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from ipfsmem.bundle.fence import NOTICE, clean_text, tagged
from ipfsmem.config import settings
from ipfsmem.dream.chat import ChatModel
from ipfsmem.errors import ConfigError, ProviderRefused
from ipfsmem.in_thread import run_to_end
from ipfsmem.provider.contract import open_chat_model
from ipfsmem.sessions.messages import Message

#: Characters of a piece, of one message in it, and of all that a model is shown of a session: of a longer one the end.
PIECE, MESSAGE, MOST = 40_000, 8_000, 400_000

_INSTRUCTIONS: Final = f"""You summarise the earlier part of a conversation between a user and an AI agent, so that the agent can go on without it.
Keep what was decided, facts, names, numbers, dates, wishes of the user and what is still open. Leave out greetings and what was taken back. Invent nothing, and keep passwords and keys out.
Answer with the summary alone, in the language of the conversation, in at most {{characters}} characters.
{NOTICE}"""


def model_of_the_settings() -> ChatModel:
    """Open the model of the table `[model]`. Raises ConfigError without one."""
    model = settings().model
    if model is None:
        raise ConfigError(
            "no model is named",
            hint='Under [model] in the settings file: provider = "openai", "google" or "ollama", and model.',
        )
    prices = {"input_price", "output_price"}
    options = {name: value for name, value in msgspec.structs.asdict(model).items() if name not in prices}
    return open_chat_model(options)


class ModelSummariser:
    """A summariser that asks a model: a given one, which stays open, else that of the settings, opened for each summary."""

    def __init__(self, model: ChatModel | None = None) -> None:
        """Raises ConfigError if the settings name no model."""
        self._given = model
        #: Tokens of what the models were given, and of what they said, since these were last noted.
        self.given = self.said = 0
        self.name = (model_of_the_settings() if model is None else model).name

    def __call__(self, messages: Sequence[Message], characters: int) -> str:
        """Return a summary with at most this number of characters; blocks the event loop of this thread, if one runs.

        Raises ConfigError, ProviderError; ProviderRefused for an empty answer.
        """
        return run_to_end(self._reply(messages, characters))

    async def _reply(self, messages: Sequence[Message], characters: int) -> str:
        model = model_of_the_settings() if self._given is None else self._given
        try:
            summary = ""
            for piece in _pieces(messages):
                reply = await model.reply(_prompt(piece, summary, characters), ())
                self.given += reply.given
                self.said += reply.said
                summary = clean_text(reply.text).strip()[:characters]
                if not summary:
                    raise ProviderRefused(f"the model {model.name} gave no summary")
            return summary
        finally:
            if self._given is None:
                await model.close()


def _prompt(piece: str, summary: str, characters: int) -> list[dict[str, Any]]:
    before = tagged("summary-so-far", {}, summary) if summary else ""
    return [
        {"role": "system", "content": _INSTRUCTIONS.format(characters=characters)},
        {
            "role": "user",
            "content": f"{before}{tagged('conversation', {}, piece)}Write the summary of all of it.",
        },
    ]


def _pieces(messages: Sequence[Message]) -> Iterator[str]:
    """Return the messages in pieces; tools by name only."""
    lines = []
    room = MOST
    for one in reversed(messages):
        text = one.text if len(one.text) <= MESSAGE else f"{one.text[:MESSAGE]} (cut here)"
        line = f"{one.role}: {text}" + (f" (calls {', '.join(one.tools)})" if one.tools else "")
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    piece: list[str] = []
    size = 0
    for line in reversed(lines):
        if piece and size + len(line) > PIECE:
            yield "\n".join(piece)
            piece, size = [], 0
        piece.append(line)
        size += len(line)
    if piece:
        yield "\n".join(piece)
