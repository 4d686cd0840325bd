"""Of every operation that writes: what it replaces was in the token of its caller, all else stays (the fourth rule).

One memory with plain files, texts of another device that come at any moment, and callers who hold readings of any age.
Before and after each operation the values of all entries are compared. An operation that is refused changes nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ipfsmem.bundle.memory_file import MemoryFile, parse_memory
from ipfsmem.causal.value import Entry
from ipfsmem.errors import ChangedError, LimitError, NotFoundError, UsageError
from ipfsmem.memories.memories import EntryContext, MemoryStore, WriteBasis
from ipfsmem.memories.memory_records import Conflict, MemoryRecord, Seen
from tests.support.effort import cases
from tests.support.files_lab import Lab

KEYS = ("log", "tone")
#: What may be refused, and then must leave no trace.
REFUSED = (ChangedError, LimitError, NotFoundError, UsageError)


class World:
    """A memory, and what its callers have in hand."""

    def __init__(self, base: Path) -> None:
        self.lab = Lab(base)
        self.memory = self.lab.start()
        self.count = 0
        #: Everything that anybody was ever shown, with its key.
        self.held: list[tuple[str, MemoryRecord | Conflict]] = []
        #: The dots that stand in each file, as of its last rendering.
        self.rendered: dict[str, set[str]] = {}

    def text(self) -> str:
        self.count += 1
        return f"text {self.count}\n\nline {self.count}"

    def state(self) -> dict[str, Entry]:
        store = self.memory.replica.store
        with self.memory.replica.reading():
            return {key: store.entry(f"m/{key}") for key in KEYS}

    def shown(self, key: str) -> tuple[set[str], MemoryFile]:
        """The dots that are shown now, and the text."""
        with self.memory.replica.reading():
            view = self.memory._memories.view(key)
        return set(view.dots), parse_memory(view.data) if view.data is not None else MemoryFile()

    def law(self, key: str, token: set[str], operation: Callable[[], object]) -> bool:
        """Run an operation whose caller was shown `token`; false when it was refused."""
        before = self.state()
        try:
            operation()
        except REFUSED:
            assert self.state() == before, "what was refused left a trace"
            return False
        after = self.state()
        for one in KEYS:
            gone = before[one].keys() - after[one].keys()
            assert gone <= (token if one == key else set()), (
                f"{one}: replaced, and never shown: {gone - token}"
            )
            for dot in before[one].keys() & after[one].keys():
                assert after[one][dot] == before[one][dot]
        return True

    def note_files(self) -> None:
        """Which dots stand in the files now: nothing where a file is older than what is shown."""
        for key in KEYS:
            file = self.lab.dir / f"{key}.md"
            with self.memory.replica.reading():
                view = self.memory._memories.view(key)
            if file.exists() and file.read_bytes() == view.data:
                self.rendered[key] = set(view.dots)

    def caller(self, key: str, pick: int) -> tuple[Seen | None, set[str], MemoryFile | None]:
        """What a caller says it has seen, the dots of it, and its text where the caller was given one."""
        held = [item for at, item in self.held if at == key][-8:]
        if not held or pick % 5 == 0:
            return None, *self.shown(key)
        item = held[pick % len(held)]
        if pick % 3 == 0:
            return item.seen, set(item.token), None
        reading = item if isinstance(item, MemoryRecord) else item.shown
        text = reading.file if reading is not None else None
        if pick % 3 == 1:
            return item, set(item.token), text
        # Behind the bare token of a reading stands the text that was read.
        return item.token, set(item.token), text if isinstance(item, MemoryRecord) else None

    # -- what happens --------------------------------------------------------------------------------------------------

    def look(self, key: str) -> None:
        reading = self.memory.read(key)
        if reading is not None:
            self.held.append((key, reading))
        self.held += [(item.key, item) for item in self.memory.conflicts() if item.key == key]

    def arrives(self, key: str, pick: int) -> None:
        """A text of another device, which has seen some of what is here; the files are not brought up to date yet."""
        entry = self.state()[key]
        dots = tuple(dot for i, dot in enumerate(sorted(entry)) if (pick >> i) & 1)
        try:
            self.lab.remote(key, (self.text() + "\n").encode(), dots)
        except LimitError:
            return

    def overtaken(self, key: str, pick: int, parts: int) -> None:
        """Somebody reads, another device replaces some of that, and then the reader writes a part."""
        reading = self.memory.read(key)
        self.arrives(key, pick)
        if reading is not None:
            seen: Seen = reading.token if pick & 1 else reading
            self.write(key, pick, parts, (seen, set(reading.token), reading.file))

    def write(
        self,
        key: str,
        pick: int,
        parts: int,
        caller: tuple[Seen | None, set[str], MemoryFile | None] | None = None,
    ) -> None:
        """Any part given, the rest from the text behind the token."""
        seen, token, text = caller or self.caller(key, pick)
        given: dict[str, Any] = {}
        if parts & 1:
            given["body"] = self.text()
        if parts & 2:
            given["description"] = f"described {self.count}"
        if parts & 4:
            given["tags"] = [f"tag{self.count}"]
        if not given:
            return
        before = set(self.state()[key])
        if not self.law(key, token, lambda: self.memory.write(key, **given, seen=seen)) or text is None:
            return
        for dot, value in self.state()[key].items():
            data = self.memory.replica.store.body(f"m/{key}", value)
            if dot not in before and data is not None:
                made = parse_memory(data)
                assert made.body == given.get("body", text.body)
                assert made.description == given.get("description", text.description)
                assert list(made.tags) == list(given.get("tags", text.tags))

    def write_text(self, key: str, pick: int) -> None:
        seen, token, _ = self.caller(key, pick)
        self.law(key, token, lambda: self.memory.write_text(key, self.text().encode(), seen=seen))

    def resolve(self, key: str, pick: int) -> None:
        seen, token, _ = self.caller(key, pick)
        data = self.text().encode() if pick & 1 else None
        if seen is not None:
            self.law(key, token, lambda: self.memory.resolve(key, data, seen=seen, keep=data is None))

    def forget(self, key: str, pick: int) -> None:
        """Without a token the wish is about everything that this device knows."""
        seen, token, _ = self.caller(key, pick)
        if seen is None:
            token = set(self.state()[key])
        self.law(key, token, lambda: self.memory.forget(key, seen=seen))

    def restore(self, key: str, pick: int) -> None:
        seen, token, _ = self.caller(key, pick)
        known = [v.sha256 for v in self._versions(key) if v.sha256 is not None and v.size is not None]
        if known:
            text = known[pick % len(known)]
            self.law(key, token, lambda: self.memory.restore(key, sha256=text, seen=seen))

    def _versions(self, key: str) -> list[Any]:
        return self.memory.history(key).versions if self.state()[key] else []

    def undo(self) -> None:
        """What it takes away is what the last change put there."""
        last = self._last()
        if last is not None:
            self.law(last[0], set(last[1]), self.memory.undo)

    def _last(self) -> tuple[str, tuple[str, ...]] | None:
        from ipfsmem.device.last_change import last_change

        found = last_change(self.memory.replica)
        return (found.name[2:], found.came) if found is not None else None

    def take_in(self, key: str, pick: int) -> None:
        """An import: `merge` replaces nothing, `replace` what is shown; of two texts for a key the second nothing."""
        known = [
            data.decode()
            for value in self.state()[key].values()
            if (data := self.memory.replica.store.body(f"m/{key}", value)) is not None
        ]
        text = known[pick % len(known)] if known and pick & 2 else self.text()
        files = {f"{key}.md": text, f"{key}.conflict-00000000.md": self.text()}
        blob = json.dumps({"version": "memory/0.1", "files": files, "timeline": []})
        replace = bool(pick & 1)
        token = self.shown(key)[0] if replace else set()
        done: list[Any] = []
        self.law(
            key,
            token,
            lambda: done.append(
                self.memory.bundles.import_(blob, strategy="replace" if replace else "merge")
            ),
        )
        if not done[0].problems:
            assert {data.encode() for data in files.values()} <= self.lab.texts()

    def promote(self, key: str, pick: int) -> None:
        """A text of others becomes one's own: what is shown and that text go, nothing else."""
        with self.memory.replica.reading():
            view = self.memory._memories.view(key)
        others = list(view.others)
        chosen = others[pick % len(others)] if others else None
        token = set(view.dots) | (set(chosen.dots) if chosen is not None else set())
        file = chosen.file if chosen is not None else None
        self.law(key, token, lambda: self.memory.approve(key, alternative=file))

    def foreign(self, key: str, pick: int) -> None:
        """What somebody else wrote comes in: it replaces nothing, or what is shown where that was asked for."""
        blob = json.dumps({"version": "memory/0.1", "files": {f"{key}.md": self.text()}, "timeline": []})
        self.law(key, set(), lambda: self.memory.bundles.import_(blob, foreign=True))

    def prune(self, key: str, pick: int) -> None:
        """Of what an import lacks the shown texts go, and texts that nobody was shown stay."""
        other = next(one for one in KEYS if one != key)
        shown = {one: self.shown(one)[0] for one in KEYS}
        before = self.state()
        blob = json.dumps({"version": "memory/0.1", "files": {f"{other}.md": self.text()}, "timeline": []})
        try:
            self.memory.bundles.import_(blob, strategy="replace", prune=True)
        except REFUSED:
            assert self.state() == before
            return
        after = self.state()
        for one in KEYS:
            assert before[one].keys() - after[one].keys() <= shown[one]

    def edit(self, key: str, pick: int) -> None:
        """A program edits a file that may be older than the state. What it had not shown is merged, or stays."""
        file = self.lab.dir / f"{key}.md"
        if not file.exists():
            return
        stood, unseen = self.rendered.get(key, set()), self.state()[key]
        file.write_bytes(
            file.read_bytes() + f"edited {self.count}\n".encode() if pick & 1 else self.text().encode()
        )
        self.lab.clock.advance(120)
        before = self.state()
        self.lab.look()
        after = self.state()
        for dot in before[key].keys() - after[key].keys() - stood:
            data = self.memory.replica.store.body(f"m/{key}", unseen[dot])
            now = b"".join(self.lab.texts())
            assert data is not None and all(line in now for line in data.split(b"\n"))
        for dot in before[key].keys() & after[key].keys():
            assert after[key][dot] == before[key][dot]

    def render(self) -> None:
        self.lab.look()


KEY = st.sampled_from([*KEYS, *["tone"] * 5])
PICK = st.integers(0, 63)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("look"), KEY),
        st.tuples(st.just("arrives"), KEY, PICK),
        st.tuples(st.just("arrives"), KEY, st.just(0)),
        st.tuples(st.just("write"), KEY, PICK, st.integers(1, 7)),
        st.tuples(st.just("overtaken"), KEY, PICK, st.integers(1, 7)),
        st.tuples(st.just("write_text"), KEY, PICK),
        st.tuples(st.just("resolve"), KEY, PICK),
        st.tuples(st.just("forget"), KEY, PICK),
        st.tuples(st.just("restore"), KEY, PICK),
        st.tuples(st.just("take_in"), KEY, PICK),
        st.tuples(st.just("edit"), KEY, PICK),
        st.tuples(st.just("promote"), KEY, PICK),
        st.tuples(st.just("foreign"), KEY, PICK),
        st.tuples(st.just("prune"), KEY, PICK),
        st.tuples(st.just("undo")),
        st.tuples(st.just("render")),
    ),
    min_size=12,
    max_size=30,
)


def play(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            for name, *arguments in steps:
                world.lab.clock.advance(1)
                getattr(world, name)(*arguments)
                world.note_files()
                world.look("tone")
        finally:
            world.memory.close()


@settings(max_examples=cases(40, 2000), deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_replaced_text_was_shown_to_its_writer(steps: list[tuple[Any, ...]]) -> None:
    """Over every operation that writes."""
    play(steps)


def from_what_is_shown_now(before: Any) -> Any:
    """The fault, made again: the omitted parts of a write come from the text shown at that moment."""

    def mutant(self: MemoryStore, here: EntryContext, seen: Seen | None) -> WriteBasis:
        return WriteBasis(here.view.data, before(self, here, seen).dots)

    return mutant


def replaces_what_is_shown_now(before: Any) -> Any:
    """Its sister: the text is the one that was read, and what goes is what stands there now."""

    def mutant(self: MemoryStore, here: EntryContext, seen: Seen | None) -> WriteBasis:
        return WriteBasis(before(self, here, seen).data, here.view.dots)

    return mutant


@pytest.mark.parametrize("mutant", [from_what_is_shown_now, replaces_what_is_shown_now])
def test_short_run_finds_planted_faults(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryStore, "before", mutant(MemoryStore.before))

    @settings(max_examples=40, deadline=None, derandomize=True, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck), database=None)  # fmt: skip
    @given(STEPS)
    def short(steps: list[tuple[Any, ...]]) -> None:
        play(steps)

    with pytest.raises(AssertionError):
        short()
