"""Every writing operation replaces only what its caller's token covers (the fourth rule).

One vault with plain files, texts of another device at any moment, and callers with readings of any age.
The values of all entries are compared before and after each operation. A refused operation changes
nothing."""

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
#: Errors of refused operations, which must change nothing.
REFUSED = (ChangedError, LimitError, NotFoundError, UsageError)


class World:
    """A vault, and the readings of its callers."""

    def __init__(self, base: Path) -> None:
        self.lab = Lab(base)
        self.memory = self.lab.start()
        self.count = 0
        #: Everything that anybody was ever shown, with its key.
        self.held: list[tuple[str, MemoryRecord | Conflict]] = []
        #: The dots in each file, as of its last write.
        self.rendered: dict[str, set[str]] = {}

    def text(self) -> str:
        self.count += 1
        return f"text {self.count}\n\nline {self.count}"

    def state(self) -> dict[str, Entry]:
        store = self.memory.replica.store
        with self.memory.replica.reading():
            return {key: store.entry(f"m/{key}") for key in KEYS}

    def shown(self, key: str) -> tuple[set[str], MemoryFile]:
        """Return the shown dots and text."""
        with self.memory.replica.reading():
            view = self.memory._memories.view(key)
        return set(view.dots), parse_memory(view.data) if view.data is not None else MemoryFile()

    def law(self, key: str, token: set[str], operation: Callable[[], object]) -> bool:
        """Run an operation whose caller was shown `token`; return False if refused."""
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
        """Record the dots in the files: none where a file is outdated."""
        for key in KEYS:
            file = self.lab.dir / f"{key}.md"
            with self.memory.replica.reading():
                view = self.memory._memories.view(key)
            if file.exists() and file.read_bytes() == view.data:
                self.rendered[key] = set(view.dots)

    def caller(self, key: str, pick: int) -> tuple[Seen | None, set[str], MemoryFile | None]:
        """Return a caller's token, its dots, and its text if the caller has one."""
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
        # A reading's token alone still refers to the text that was read.
        return item.token, set(item.token), text if isinstance(item, MemoryRecord) else None

    # -- actions ------------------------------------------------------------------------------------------------------

    def look(self, key: str) -> None:
        reading = self.memory.read(key)
        if reading is not None:
            self.held.append((key, reading))
        self.held += [(item.key, item) for item in self.memory.conflicts() if item.key == key]

    def arrives(self, key: str, pick: int) -> None:
        """Join a text of another device that has seen some of the present ones; the files are not updated
        yet."""
        entry = self.state()[key]
        dots = tuple(dot for i, dot in enumerate(sorted(entry)) if (pick >> i) & 1)
        try:
            self.lab.remote(key, (self.text() + "\n").encode(), dots)
        except LimitError:
            return

    def overtaken(self, key: str, pick: int, parts: int) -> None:
        """A user reads, another device replaces some of it, and then the user writes a part."""
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
        """Write any part; the rest comes from the token's text."""
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
        """Without a token a forget covers everything that this device knows."""
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
        """An undo removes what the last change added."""
        last = self._last()
        if last is not None:
            self.law(last[0], set(last[1]), self.memory.undo)

    def _last(self) -> tuple[str, tuple[str, ...]] | None:
        from ipfsmem.device.last_change import last_change

        found = last_change(self.memory.replica)
        return (found.name[2:], found.came) if found is not None else None

    def take_in(self, key: str, pick: int) -> None:
        """Import: `merge` replaces nothing, `replace` what is shown; the second of two texts for a key
        replaces nothing."""
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
        """Approve a text of others: what is shown and that text are replaced, nothing else."""
        with self.memory.replica.reading():
            view = self.memory._memories.view(key)
        others = list(view.others)
        chosen = others[pick % len(others)] if others else None
        token = set(view.dots) | (set(chosen.dots) if chosen is not None else set())
        file = chosen.file if chosen is not None else None
        self.law(key, token, lambda: self.memory.approve(key, alternative=file))

    def foreign(self, key: str, pick: int) -> None:
        """Import a foreign text: it replaces nothing, or what is shown if requested."""
        blob = json.dumps({"version": "memory/0.1", "files": {f"{key}.md": self.text()}, "timeline": []})
        self.law(key, set(), lambda: self.memory.bundles.import_(blob, foreign=True))

    def prune(self, key: str, pick: int) -> None:
        """Prune: shown texts that an import lacks are removed, unseen ones stay."""
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
        """A program edits a possibly outdated file. Unseen text is merged, or stays."""
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
    """The fault, reintroduced: the omitted parts of a write come from the text shown at that moment."""

    def mutant(self: MemoryStore, here: EntryContext, seen: Seen | None) -> WriteBasis:
        return WriteBasis(here.view.data, before(self, here, seen).dots)

    return mutant


def replaces_what_is_shown_now(before: Any) -> Any:
    """A related fault: the text is the one that was read, but the present text is replaced."""

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
