"""Fits the texts of plugins into a limit: equal shares, and longer texts cut at a line with a note."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from ipfsmem.bundle.fence import NOTICE, QUOTE, tagged
from ipfsmem.memories.context import ContextBlock, counted_tokens, tokens_of
from ipfsmem.memories.context_layouts import LEAST_TOKENS, TOKEN_BYTES, usual_tokens

#: Minimum bytes shown of a text.
_LEAST: Final = 40
#: The plugins together get a block's size divided by this.
_SHARE: Final = 4
_CUT: Final = "(cut here)"


class PluginText(NamedTuple):
    """The text of one plugin."""

    name: str
    text: str


def labelled(parts: Sequence[PluginText]) -> str:
    """Return the texts of plugins as texts of others, each in a fence with its name, separated by a blank line."""
    return "\n".join(tagged("plugin", {"name": one.name, "whose": "others"}, one.text) for one in parts)


def fitted(parts: Sequence[PluginText], tokens: int, count: Callable[[str], int]) -> str:
    """Return these texts in at most `tokens` tokens, as `count` counts them; "" if there is no room for any."""
    room = tokens * TOKEN_BYTES
    text = _within(parts, room)
    while text and (counted := counted_tokens(count, text)) > tokens:
        room = min(room * 9 // 10, room * tokens // counted)
        text = _within(parts, room)
    return text


def with_plugins(
    built_in: Callable[[int | None], ContextBlock],
    parts: Sequence[PluginText],
    max_tokens: int | None,
    layout: str,
    count: Callable[[str], int] | None,
) -> ContextBlock:
    """Return the block of the built-in memory, which `built_in` makes within a number of tokens, followed by the texts of
    plugins. These get a quarter at most, and nothing if that would leave no room for the built-in one."""
    most = usual_tokens(layout) if max_tokens is None else max_tokens
    count = count or tokens_of
    share = min(most // _SHARE, most - LEAST_TOKENS)
    added = fitted(parts, share, count) if share > 0 else ""
    if not added:
        return built_in(max_tokens)
    block = built_in(most - counted_tokens(count, f"\n{added}"))
    text = f"{block.text}\n{added}" if block.text else f"{NOTICE}\n\n{added}"
    tokens = counted_tokens(count, text)
    # The caller's counter may return more tokens for the whole than for its parts.
    return (
        msgspec.structs.replace(block, text=text, tokens=tokens) if tokens <= most else built_in(max_tokens)
    )


def _within(parts: Sequence[PluginText], room: int) -> str:
    if not parts:
        return ""
    each = [room // len(parts) - len(labelled([PluginText(one.name, _CUT)]).encode()) - 1 for one in parts]
    if min(each) < _LEAST:
        return _within(parts[:-1], room)
    return labelled(
        [PluginText(one.name, _cut(one.text, most)) for one, most in zip(parts, each, strict=True)]
    )


def _cut(text: str, room: int) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        cost = len((QUOTE + line).encode()) + 1
        if cost > room:
            begun = (
                line.encode()[: max(0, room - len(QUOTE) - 1)].decode("utf-8", "ignore") if not lines else ""
            )
            return "\n".join([*lines, *([begun] if begun else []), _CUT])
        lines.append(line)
        room -= cost
    return "\n".join(lines)
