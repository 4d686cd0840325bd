"""Entries with vectors that are followed step by step equal those of a full scan."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ipfsmem.device.state import StateMark
from ipfsmem.device.writing import writing
from ipfsmem.memories.kept_vectors import follow_at_once
from ipfsmem.memories.living import GroupReading, Living
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memory import Memory

KINDS = frozenset({"event", "message"})


def brought_up(living: Living, memory: Memory) -> Living:
    """Return a `Living` that has read everything."""
    with memory.replica.reading():
        follow_at_once(living)
        for group in living.unread(KINDS):
            steps = living.read(group)
            try:
                while True:
                    next(steps)
            except StopIteration as end:
                living.store(GroupReading(*end.value))
    return living


def change(memory: Memory, rng: random.Random, number: int) -> None:
    """Make one change of any kind."""
    part = memory if rng.random() < 0.6 else memory.scope("work")
    session, key = f"talk{rng.randrange(3)}", f"note{rng.randrange(6)}"
    match rng.randrange(7):
        case 0 | 1:
            said = [{"role": "user", "content": f"word {number} {n}"} for n in range(rng.randrange(1, 4))]
            part.sessions.add(session, said)
        case 2:
            part.note("note", text=f"event {number}")
        case 3:
            part.write(key, f"text {number}")
        case 4:
            if any(one.key == key for one in part.list()):
                part.forget(key)
        case 5:
            part.sessions.pop(session)
        case _:
            part.sessions.forget(session)


@pytest.mark.parametrize("seed", range(4))
def test_incrementally_tracked_texts_equal_a_full_scan(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    with Memory.create("m", "local", home=tmp_path) as memory:
        memory.scope("work").write("first", "A text")
        memories = MemoryStore(memory.replica)
        living, kept = Living(memories), set[bytes]()
        for number in range(25):
            change(memory, rng, number)
            if rng.random() < 0.2:
                with memory.replica.transaction():
                    memory.replica.store.checkpoint(folders=False)
            if rng.random() < 0.6:
                brought_up(living, memory)
                kept |= {*living.files, *(key for one in living.spoken.values() for key in one.each())}
        brought_up(living, memory)
        anew = brought_up(Living(memories), memory)
        # Another process continues with what the one before had read.
        taken = brought_up(Living(memories, living.spoken.values()), memory)
        assert living.files == anew.files == taken.files
        assert living.spoken == anew.spoken == taken.spoken
        assert living.entries == anew.entries == taken.entries
        gone = living.pop_removed()
        assert all(living.has(key) != (key in gone or key[:8] in gone or key[8:] in gone) for key in kept)
        memory.scopes.forget("work")
        brought_up(living, memory)
        assert {one.place.scope for one in living.files.values()} <= {""}
        assert {group.scope for group in living.spoken} <= {""}


def test_changes_read_node_by_node_are_complete(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory:
        with writing(memory.replica) as written:
            memories = MemoryStore(memory.replica)
            for number in range(200):
                memories.write_in(written, f"note{number}", b"A text")
        with memory.replica.transaction():
            memory.replica.store.checkpoint(folders=False)
        memory.write("last", "Another text")
        with memory.replica.reading():
            store, mark, texts, steps = memory.replica.store, StateMark(), dict[str, bytes](), 0
            while True:
                since = store.changes_since(mark, 1)
                texts |= since.texts
                mark, steps = since.mark, steps + 1
                if since.whole:
                    break
            assert texts == store.changes_since(StateMark()).texts == dict(store.texts())
            assert mark == store.mark() and steps > 1
            assert not store.changes_since(mark, 1).prefixes
