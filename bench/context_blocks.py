"""The cost of a context block for a query next to many messages, memories or facts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial
from statistics import median as middle
from typing import TYPE_CHECKING

from bench.context import Context
from bench.measure import least_cpu
from bench.process import VAULT_NAME, unlock

if TYPE_CHECKING:
    from ipfsmem.memories.context_layouts import Layout
    from ipfsmem.memory import Memory

#: Maximum number: more take minutes to create.
_MOST = 10_000
#: Number of queries, each of some words of the texts, and messages of a session.
_QUESTIONS, _LONG = 9, 400
#: Budget of a block next to ten thousand.
_BUDGET = 0.01


def context_blocks(ctx: Context) -> None:
    """Measure blocks of three layouts, warm, in an encrypted vault of only messages, only memories, or
    only facts."""
    if ctx.size > _MOST:
        return
    kinds: dict[str, Callable[[Context, Memory, random.Random, list[str]], None]] = {
        "messages": _messages,
        "memories": _memories,
        "facts": _facts,
    }
    from ipfsmem.memory import Memory

    words = " ".join(text.decode() for text in list(ctx.files.values())[:200]).split()
    for kind, fill in kinds.items():
        chance = random.Random(ctx.size)
        home = ctx.fresh(f"blocks-{kind}")
        with Memory.create(
            VAULT_NAME, "encrypted-ipfs", unlock=unlock(), passphrase=False, home=home
        ) as memory:
            fill(ctx, memory, chance, words)
            questions = [" ".join(chance.sample(words, 6)) for _ in range(_QUESTIONS)]
            layouts: tuple[Layout, ...] = ("index", "ranked", "turn")
            for layout in layouts:
                times = [least_cpu(_block(memory, question, layout), ctx.runs(5)) for question in questions]
                ctx.add(
                    f"context, {layout}, with {kind}",
                    middle(times),
                    runs=len(times),
                    budget_seconds=_BUDGET if ctx.size == _MOST else None,
                    note=f"processor time; the slowest of {len(times)} questions: {max(times) * 1000:.1f} ms",
                )


def _block(memory: Memory, question: str, layout: Layout) -> Callable[[], object]:
    """Build a block by words alone: embedding a query costs the model's time."""
    return partial(memory.context, question, layout=layout, by_meaning=False)


def _messages(ctx: Context, memory: Memory, chance: random.Random, words: list[str]) -> None:
    """Write long sessions: short questions, answers of 200 to 8,000 characters."""

    def said(characters: int) -> str:
        text = ""
        while len(text) < characters:
            text += " ".join(chance.choices(words, k=12)) + ". "
        return text[:characters]

    for begin in range(0, ctx.size, _LONG):
        talk = [
            {"role": "user", "content": said(chance.randrange(40, 200))}
            if number % 2 == 0
            else {"role": "assistant", "content": said(int(200 * 40 ** chance.random()))}
            for number in range(min(_LONG, ctx.size - begin))
        ]
        memory.sessions.add(f"talk-{begin}", talk)


def _memories(ctx: Context, memory: Memory, chance: random.Random, words: list[str]) -> None:
    memory.bundles.import_(ctx.folder)


def _facts(ctx: Context, memory: Memory, chance: random.Random, words: list[str]) -> None:
    files = {
        f"fact_{number:016x}.md": "---\nname: Fact\ntype: reference\ncategory: general\n---\n\n"
        f"The user said {' '.join(chance.choices(words, k=8))}\n"
        for number in range(ctx.size)
    }
    memory.bundles.import_(json.dumps({"version": "memory/0.1", "index": "", "files": files, "timeline": []}))
