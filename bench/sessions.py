"""Conversations: the waiting time of an agent when a turn is saved, and when a session is resumed, listed
and searched."""

from __future__ import annotations

import time
from statistics import median as middle
from typing import Any

from bench.context import Context
from bench.measure import fsync_once, median
from bench.process import VAULT_NAME, unlock

#: More sessions take minutes to create, with the same result.
_MOST = 1_000
_TURNS = 10
#: Budgets of one turn without its fsync, and of resuming.
TURN_BUDGET = 0.003
RESUME_BUDGET = 0.02


def sessions(ctx: Context) -> None:
    """Measure as many sessions as the size, up to a thousand, of ten turns each, in an encrypted vault."""
    from ipfsmem.memory import Memory

    if ctx.size > _MOST:
        return
    home = ctx.fresh("sessions")
    with Memory.create(VAULT_NAME, "encrypted-ipfs", unlock=unlock(), passphrase=False, home=home) as memory:
        words = [text.decode("utf-8", "replace")[-200:] for text in list(ctx.files.values())[:_TURNS]]
        for number in range(ctx.size):
            memory.sessions.add(f"s{number}", [one for at in range(_TURNS) for one in _turn(at, words)])
        chat = memory.sessions.conversation("s0")
        history: list[Any] = [*chat.resume()]
        disk, own = [], []
        for number in range(60):
            history = [*chat.trim(history), *_turn(number, words)]
            started = time.perf_counter()
            fsync_once(home, b"x" * 400)
            disk.append(time.perf_counter() - started)
            started = time.perf_counter()
            if chat.save(history).added != 2:
                raise RuntimeError("a turn was not saved")
            own.append(time.perf_counter() - started)
        one = middle(disk)
        ctx.add(
            "save a turn",
            middle(own),
            runs=60,
            budget_seconds=one + TURN_BUDGET,
            note="the budget is one fsync and 3 ms",
        )
        memory.sessions.add("long", [said for at in range(1_000) for said in _turn(at, words)])
        long, last = memory.sessions.conversation("long"), list[Any]()
        long.save(last := long.resume())
        own.clear()
        for number in range(20):
            last = [*long.trim(last), *_turn(number, words)]
            started = time.perf_counter()
            long.save(last)
            own.append(time.perf_counter() - started)
        ctx.add("save a turn to a 1,000-turn session", middle(own), runs=20)
        runs = ctx.runs(9)
        ctx.add(
            "resume",
            median(lambda: memory.sessions.resume("s0"), runs),
            runs=runs,
            budget_seconds=RESUME_BUDGET,
        )
        ctx.add("list all sessions", median(memory.sessions.list, 5), runs=5)
        ctx.add("search all sessions", median(lambda: memory.sessions.search("station line"), 3), runs=3)


def _turn(number: int, words: list[str]) -> list[dict[str, str]]:
    text = words[number % len(words)]
    return [
        {"role": "user", "content": f"Turn {number}. {text}"},
        {"role": "assistant", "content": f"Answer {number}. {text}"},
    ]
