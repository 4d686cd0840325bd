"""No line is lost whatever an outside program, the API and another device do concurrently to the same
memories.

No actor removes a line, so each written line must be in a text of the state or, where a file was skipped or
its folder detached, still in the file. The outside program acts between any two steps of a write, writes
MEMORY.md like any file, and uses the same memories in a second folder that comes and goes. Our process may
die at any change of a folder.

In the second law the outside program only restores earlier files: no word of the state is removed by that."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipfsmem.errors import LimitError
from ipfsmem.mode import ModeName
from tests.support.effort import cases
from tests.support.files_lab import Lab

KEYS = ("log", "tone")
WORDS = re.compile(rb"<[0-9a-f]{12}>")


class Crash(BaseException):
    """Our process is gone."""


class World:
    """All writers, with the texts they hold."""

    def __init__(self, base: Path, mode: ModeName = "local") -> None:
        self.lab = Lab(base, adopt=True, mode=mode)
        self.lab.dir.mkdir(parents=True)
        for key in KEYS:
            (self.lab.dir / f"{key}.md").write_bytes(b"first\n\nmiddle\n\nlast\n")
        (self.lab.dir / "MEMORY.md").write_bytes(b"# Memory\n\n- the log is log.md\n")
        self.lab.start()
        self.second = base / "second"
        self.words: set[bytes] = set()
        #: What the outside program wrote into each file.
        self.own_words: defaultdict[Path, set[bytes]] = defaultdict(set)
        self.held: dict[str, bytes] = {}
        self.read: dict[str, tuple[bytes, tuple[str, ...]]] = {}
        self.seen: dict[str, tuple[bytes, tuple[str, ...]]] = {}
        self.handles: list[Any] = []
        self.due: list[Callable[[], None]] = []
        #: Changes of a folder until our process dies; None: never.
        self.left: int | None = None
        self.hook()

    def hook(self) -> None:
        """Let the outside program act right before and after each change that a write makes."""
        files = self.lab.memory._open.files
        assert files is not None
        for copy in files.all():
            folder: Any = copy.folder
            if not hasattr(folder, "hooked"):
                folder.hooked = True
                for name in ("create", "replace", "take_away", "append", "stage"):
                    setattr(folder, name, self.interrupted(getattr(folder, name)))

    def interrupted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            self.strike()
            self.step()
            result = real(*args, **more)
            self.step()
            self.strike()
            return result

        return call

    def strike(self) -> None:
        if self.due:
            self.due.pop(0)()

    def step(self) -> None:
        """Before or after a change of a folder: our process may end here."""
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Crash

    def act(self, name: str, *arguments: Any) -> None:
        """Do a step; if our process dies in it, start the next one."""
        try:
            getattr(self, name)(*arguments)
        except Crash:
            self.lab.memory.replica.close()
            self.lab.reopen()
            self.hook()

    def crash(self, left: int) -> None:
        """Let our process die after so many changes of a folder, before or after one."""
        self.left = left

    def word(self) -> bytes:
        made = b"<" + hashlib.sha256(b"%d" % len(self.words)).hexdigest()[:12].encode() + b">"
        self.words.add(made)
        return made

    def grown(self, text: bytes, at: int) -> bytes:
        lines = text.split(b"\n")
        place = at % (len(lines) + 1)
        return b"\n".join([*lines[:place], self.word(), *lines[place:]])

    # -- the outside program ------------------------------------------------------------------------------------------

    def path(self, file: str) -> Path:
        return self.second / file[2:] if file.startswith("2/") else self.lab.dir / file

    def is_there(self, file: str) -> bool:
        """Return whether this file is scanned: the second folder comes and goes."""
        return not file.startswith("2/") or (self.second / ".ipfsmem" / "marker").exists()

    def out_read(self, file: str) -> None:
        if not self.is_there(file):
            return
        path = self.path(file)
        self.held[file] = path.read_bytes() if path.exists() else b""

    def out_write(self, file: str, at: int) -> None:
        """Write the whole file from an earlier reading."""
        if not self.is_there(file):
            return
        if file not in self.held:
            self.out_read(file)
        path = self.path(file)
        # Its own program would not have overwritten or dropped its own lines: a text that only it had, and
        # that no scan saw, does not show what its writer had read.
        if self.own_words[path] - set(WORDS.findall(self.held[file])):
            self.out_read(file)
        before = set(self.words)
        self.held[file] = self.grown(self.held[file], at)
        self.own_words[path] |= self.words - before
        if at % 2:
            path.write_bytes(self.held[file])
        else:
            temporary = path.with_name(f".{path.name}.swap")
            temporary.write_bytes(self.held[file])
            # Its own open handles would write into a file that it has just deleted itself.
            gone = path.stat().st_ino if path.exists() else -1
            self.handles = [handle for handle in self.handles if os.fstat(handle.fileno()).st_ino != gone]
            os.replace(temporary, path)

    def out_append(self, file: str) -> None:
        if not self.is_there(file):
            return
        word = self.word()
        self.own_words[self.path(file)].add(word)
        with self.path(file).open("ab") as handle:
            handle.write(b"\n" + word + b"\n")

    def out_open(self, file: str) -> None:
        if self.path(file).exists() and self.is_there(file):
            self.handles.append(self.path(file).open("ab", buffering=0))

    def out_late(self) -> None:
        if self.handles:
            word = self.word()
            with self.handles.pop() as handle:
                self.own_words[Path(handle.name)].add(word)
                handle.write(b"\n" + word + b"\n")

    def out_line(self) -> None:
        folder = self.lab.dir / "timeline"
        folder.mkdir(exist_ok=True)
        word = self.word().decode()
        with (folder / "2026-04-12.jsonl").open("ab") as handle:
            handle.write(f'{{"ts":"2026-04-12T10:00:00Z","type":"x","w":"{word}"}}\n'.encode())

    # -- the others ----------------------------------------------------------------------------------------------------

    def api_read(self, key: str) -> None:
        reading = self.lab.memory.read(key)
        if reading is not None:
            self.read[key] = (reading.data, reading.token)

    def api_write(self, key: str, at: int) -> None:
        if key not in self.read:
            self.api_read(key)
        text, token = self.read.pop(key, (b"", ()))
        made = self.grown(text, at)
        try:
            self.lab.memory.write_text(key, made, seen=token)
        except LimitError:
            self.words -= set(WORDS.findall(made)) - set(WORDS.findall(text))

    def api_note(self) -> None:
        self.lab.memory.note("x", w=self.word().decode())

    def phone_pull(self, key: str) -> None:
        with self.lab.memory.replica.reading():
            view = self.lab.memory._memories.view(key)
        self.seen[key] = (view.data or b"", view.dots)

    def phone_push(self, key: str, at: int) -> None:
        if key not in self.seen:
            self.phone_pull(key)
        text, dots = self.seen.pop(key)
        made = self.grown(text, at)
        try:
            self.lab.remote(key, made, dots)
        except LimitError:
            self.words -= set(WORDS.findall(made)) - set(WORDS.findall(text))
        self.lab.memory.folders.render()

    def attach(self) -> None:
        self.lab.memory.folders.attach(self.second)
        self.hook()

    def detach(self) -> None:
        # Its earlier readings are of another file when it returns; a file that was replaced there and is
        # still open is no longer scanned.
        if self.is_there("2/"):
            self.lab.memory.folders.detach(self.second)
            self.handles = [handle for handle in self.handles if os.fstat(handle.fileno()).st_nlink]
            self.held = {file: data for file, data in self.held.items() if not file.startswith("2/")}

    def look(self) -> None:
        self.lab.look()

    def restart(self) -> None:
        self.lab.again()
        self.hook()

    def wait(self) -> None:
        self.lab.clock.advance(7)

    # -- the law -------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        self.due.clear()
        self.left = None
        for handle in self.handles:
            handle.close()
        for _ in range(3):
            self.lab.look()
        texts = b"".join(self.lab.texts()) + repr(self.lab.memory.timeline.read()).encode()
        notices = "\n".join(self.lab.memory._open.files.notices())  # type: ignore[union-attr]
        for file, data in self.lab.files().items():
            if file in notices:
                texts += data
        if self.second.exists():
            # Files of a detached folder stay unchanged; in a linked one, those that are skipped.
            attached = self.is_there("2/")
            texts += b"".join(
                path.read_bytes()
                for path in self.second.rglob("*")
                if path.is_file() and (not attached or path.name in notices)
            )
        lost = self.words - set(WORDS.findall(texts))
        assert not lost, lost
        before = self.lab.files()
        self.lab.look()
        assert self.lab.files() == before
        self.lab.memory.close()


FILES = st.sampled_from(["log.md", "tone.md", "MEMORY.md", "2/log.md", "2/MEMORY.md"])
AT = st.integers(0, 9)
OUTSIDE = st.one_of(
    st.tuples(st.just("out_read"), FILES),
    st.tuples(st.just("out_write"), FILES, AT),
    st.tuples(st.just("out_append"), FILES),
    st.tuples(st.just("out_open"), FILES),
    st.tuples(st.just("out_late")),
    st.tuples(st.just("out_line")),
)
KEY = st.sampled_from(KEYS)
INSIDE = st.one_of(
    st.tuples(st.just("api_read"), KEY),
    st.tuples(st.just("api_write"), KEY, AT),
    st.tuples(st.just("phone_pull"), KEY),
    st.tuples(st.just("phone_push"), KEY, AT),
    st.tuples(st.just("api_note")),
    st.tuples(st.just("look")),
    st.tuples(st.just("restart")),
    st.tuples(st.just("wait")),
    st.tuples(st.just("attach")),
    st.tuples(st.just("detach")),
    st.tuples(st.just("crash"), st.integers(0, 12)),
)
STEPS = st.lists(st.tuples(st.one_of(INSIDE, OUTSIDE), st.lists(OUTSIDE, max_size=3)), max_size=14)
RUNS = cases(30, 2000)
#: The same in a sealed vault.
SEALED_RUNS = cases(15, 2000)
Steps = list[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]


def run(steps: Steps, mode: ModeName) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), mode)
        for (name, *arguments), strikes in steps:
            world.due = [
                lambda strike=strike: getattr(world, strike[0])(*strike[1:])  # type: ignore[misc]
                for strike in strikes
            ]
            world.act(name, *arguments)
        world.check()


@settings(max_examples=RUNS, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_concurrent_edits_lose_no_line(steps: Steps) -> None:
    run(steps, "local")


@settings(max_examples=SEALED_RUNS, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_concurrent_edits_of_a_sealed_vault_lose_no_line(steps: Steps) -> None:
    run(steps, "encrypted-ipfs")


def test_append_pull_and_whole_file_write_are_merged(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.out_append("tone.md")
    world.out_open("log.md")
    world.api_write("log", 0)
    world.out_late()
    world.due = [lambda: world.out_write("tone.md", 0)]
    world.phone_push("tone", 0)
    world.check()


class Returning(World):
    """A program that only restores earlier files, one at a time or all at once."""

    def __init__(self, base: Path, mode: ModeName) -> None:
        super().__init__(base, mode)
        for n in range(4):
            self.lab.memory.write_text(f"more{n}", b"first %d\n" % n)
        self.past: list[dict[str, bytes]] = []
        self.remember()

    def remember(self) -> None:
        self.past.append({name: data for name, data in self.lab.files().items() if name.endswith(".md")})

    def out_return(self, file: str, when: int) -> None:
        data = self.past[when % len(self.past)].get(file)
        if data is not None:
            (self.lab.dir / file).write_bytes(data)

    def out_checkout(self, when: int) -> None:
        for file, data in self.past[when % len(self.past)].items():
            (self.lab.dir / file).write_bytes(data)

    def out_restore(self) -> None:
        """Restore everything as last written: the checkout was temporary."""
        self.out_checkout(-1)

    def api_write(self, key: str, at: int) -> None:
        super().api_write(key, at)
        self.remember()

    def put_back(self) -> None:
        self.lab.memory.folders.resume(self.lab.dir, keep="vault")
        self.held_by_state()

    def wait(self) -> None:
        self.lab.clock.advance(3)

    def held_by_state(self) -> None:
        lost = self.words - set(WORDS.findall(b"".join(self.lab.texts())))
        assert not lost, lost


RETURNED = st.sampled_from(["log.md", "tone.md", "more0.md", "more1.md", "MEMORY.md"])
RETURNS = st.lists(
    st.one_of(
        st.tuples(st.just("out_return"), RETURNED, AT),
        st.tuples(st.just("out_checkout"), AT),
        st.tuples(st.just("out_restore")),
        st.tuples(st.just("api_write"), st.sampled_from(["log", "tone", "more0", "more1"]), AT),
        st.tuples(st.just("phone_push"), KEY, AT),
        st.tuples(st.just("phone_pull"), KEY),
        st.tuples(st.just("api_read"), KEY),
        st.tuples(st.just("put_back")),
        st.tuples(st.just("look")),
        st.tuples(st.just("restart")),
        st.tuples(st.just("wait")),
    ),
    max_size=16,
)


def put_back_only(steps: list[tuple[Any, ...]], mode: ModeName) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = Returning(Path(folder), mode)
        for name, *arguments in steps:
            getattr(world, name)(*arguments)
            world.held_by_state()
        world.put_back()
        world.lab.look()
        assert world.lab.memory.folders.list()[0].state == "ok"
        before = world.lab.files()
        world.lab.look()
        assert world.lab.files() == before
        world.lab.memory.close()


@settings(max_examples=max(30, RUNS // 2), deadline=None, suppress_health_check=list(HealthCheck))
@given(RETURNS)
def test_restored_old_file_removes_no_word_of_a_local_vault(steps: list[tuple[Any, ...]]) -> None:
    put_back_only(steps, "local")


@settings(max_examples=max(10, SEALED_RUNS // 10), deadline=None, suppress_health_check=list(HealthCheck))
@given(RETURNS)
def test_restored_old_file_removes_no_word_of_a_sealed_vault(steps: list[tuple[Any, ...]]) -> None:
    put_back_only(steps, "encrypted-ipfs")
