"""Devices of one vault whose files are edited by hand, between and during commands: no word is lost, and
after syncs all devices are idle.

Every device is a real vault with real folders, in mode `ipfs` or `encrypted-ipfs` at a simulated provider or
alone in mode `local`. An outside writer writes, adds, renames, deletes, copies and truncates files, also
between any two steps of a write and any two calls of a sync. Commands are killed at any of these steps, or
the disk is full from some write on.

Each text consists of unique words. A word is lost if no text, event or named file has it, and nobody
removed it who had been shown it. A case is a world and a plan, as in `test_devices`."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.errors import ChangedError, LimitError, NotFoundError, ProviderError, StorageError, UsageError
from ipfsmem.files import file_names, folder, scan
from ipfsmem.files.folder import PlainFolder
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from ipfsmem.sync.report import SyncReport
from ipfsmem.testing.simulator import SimProvider
from ipfsmem.vault.home import Home
from tests.support.device_lab import VAULT_NAME, Lab, same, whole_texts
from tests.support.effort import cases, longest

Plan = list[tuple[str, int]]
KEYS = ("tone", "role", "plan")
SCOPES = ("", "", "work")
WORDS = re.compile(rb"<[0-9a-f]{12}>")
#: The steps at which an outside writer may act, or a command be killed.
STEPS = (
    "stage",
    "create",
    "replace",
    "take_away",
    "append",
    "settle",
    "drop_aside",
    "list_files",
    "put_marker",
)
BEGINNING = b"first\n\nmiddle\n\nlast\n"


class Crash(BaseException):
    """The process is gone."""


class FilesLab(Lab):
    """Devices with plain files: a's folder existed before, the others' are next to their state; a sealed
    vault has none there."""

    def __init__(self, folder: Path, mode: ModeName) -> None:
        super().__init__(folder)
        self.mode = mode

    def memory_dir(self, name: str) -> Path | None:
        if name == "a":
            return self.folder / "agent"
        return self.folder / f"files-{name}" if self.mode == "encrypted-ipfs" else None

    @property
    def syncs(self) -> bool:
        return self.mode != "local"

    def channels(self, name: str) -> Any:
        return self.provider(name) if self.syncs else []

    def sync(self, memory: Memory) -> SyncReport:
        """Names of files that were renamed repeatedly look like secrets; they are not."""
        self.clock.advance(1)
        return asyncio.run(memory.sync(allow=[item.key for item in memory.list()]))


class Place:
    """A folder that is or was linked on a device."""

    def __init__(self, who: str, path: Path, scope: str) -> None:
        self.who, self.path, self.scope = who, path, scope

    def there(self) -> bool:
        """Return whether it is at its current place."""
        return self.path.is_dir()

    def files(self) -> list[Path]:
        """Return its memory files and timelines."""
        names = [*self.path.glob("*.md"), *self.path.glob("timeline/*.jsonl")] if self.there() else []
        return sorted(names)


class People:
    """The devices, the folders, and the people and programs that write to them. `aged`: every file counts
    as written long ago, else as just written."""

    def __init__(self, folder: Path, mode: ModeName, *, aged: bool) -> None:
        self.folder, self.aged = folder, aged
        self.lab = FilesLab(folder, mode)
        self.count = 0
        self.words: set[bytes] = set()
        self.held: dict[Path, tuple[bytes, int]] = {}
        self.begun: dict[Path, bytes] = {}
        #: Files that were written since they were opened.
        self.touched: set[Path] = set()
        #: By folder: the words that were written to it from outside.
        self.by_hand: defaultdict[Path, set[bytes]] = defaultdict(set)
        self.places: list[Place] = []
        #: The actions at the next steps of the running command; the steps until it is killed, or the writes
        #: until the disk is full.
        self.due: list[Callable[[], None]] = []
        self.left: int | None = None
        self.room: int | None = None
        agent = folder / "agent"
        agent.mkdir(parents=True)
        for key in KEYS[:2]:
            self.put(agent / f"{key}.md", BEGINNING)
        self.put(agent / "MEMORY.md", b"# Memory\n\n- see tone.md\n")
        self.put(agent / "Notes of Mine.md", BEGINNING)
        a = self.lab.create("a") if self.lab.syncs else self._local()
        self.places.append(Place("a", agent, ""))
        if self.lab.syncs:
            self.lab.sync(a)
            b = self.lab.restore("b")
            where = self.lab.memory_dir("b") or self.lab.home("b") / VAULT_NAME / "memory"
            self.places.append(Place("b", where, ""))
            self.lab.settle(a, b)

    def _local(self) -> Memory:
        lab = self.lab
        memory = Memory.create(
            VAULT_NAME,
            "local",
            home=Home(folder=lab.home("a"), label="a", environment=lab.environment("a")),
            memory_dir=lab.memory_dir("a"),
        )
        return lab._keep("a", memory)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One step of a command: an outside writer may act, and the process may end here."""
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                self.due.clear()
                raise Crash
        if self.due:
            strike, limits = self.due.pop(0), (self.left, self.room)
            self.left = self.room = None  # the writer is another process
            strike()
            self.left, self.room = limits

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Make every call of a folder or a provider a step."""

        def around(real: Any) -> Any:
            def call(*args: Any, **more: Any) -> Any:
                self.step()
                result = real(*args, **more)
                self.step()
                return result

            return call

        enter, write = SimProvider._enter, folder._write_all

        async def entered(provider: SimProvider, *args: Any) -> int:
            self.step()
            return await enter(provider, *args)

        def written(fd: int, data: bytes) -> None:
            if self.room is not None:
                self.room -= 1
                if self.room <= 0:
                    write(fd, data[: len(data) // 2])
                    raise OSError(errno.ENOSPC, "No space left on device")
            write(fd, data)

        with pytest.MonkeyPatch.context() as patch:
            for name in STEPS:
                patch.setattr(PlainFolder, name, around(getattr(PlainFolder, name)))
            patch.setattr(SimProvider, "_enter", entered)
            patch.setattr(folder, "_write_all", written)
            for module in (folder, scan):
                # In one world no file is young, in the other every file is.
                patch.setattr(module, "RACY", -(10**18) if self.aged else 10**18)
            yield

    def run(self, random: Random, who: str, work: Callable[[], None]) -> bool:
        """Run something on a device while others write, or until it is killed; return whether it
        completed."""
        strikes = random.choice((0, 0, 1, 3))
        self.due = [partial(self.strike, who, Random(random.getrandbits(32))) for _ in range(strikes)]
        fate = random.random()
        self.left = random.randint(1, 40) if fate < 0.12 else None
        self.room = random.randint(1, 8) if 0.12 <= fate < 0.2 else None
        try:
            work()
        except Crash:
            self.left = None
            self.lab.devices[who].replica.close()
            self.lab.open(who)
            return False
        except ProviderError:
            return False
        finally:
            self.due, self.left, self.room = [], None, None
        return True

    def strike(self, who: str, random: Random) -> None:
        """Let the outside writer act in the middle of something."""
        what = random.choice(
            (self._edit, self._edit, self._append, self._line, self._rename, self._delete, self._add)
        )
        mine = [place for place in self.places if place.who == who]
        what(random.choice(mine), random)

    # -- choices ------------------------------------------------------------------------------------------------------

    def device(self, random: Random) -> tuple[str, Memory]:
        who = random.choice(sorted(self.lab.devices))
        return who, self.lab.devices[who]

    def part(self, random: Random) -> tuple[str, str, Memory]:
        """Return a device, a key, and one of the device's scopes."""
        who, memory = self.device(random)
        return who, random.choice(KEYS), memory.scope(random.choice(SCOPES))

    def attached(self, place: Place) -> bool:
        return str(place.path) in [facts.path for facts in self.lab.devices[place.who].folders.list()]

    def came(self, place: Place, word: bytes) -> None:
        """Record a word that is in a file now."""
        self.words.add(word)
        self.by_hand[place.path].add(word)

    def word(self) -> bytes:
        self.count += 1
        return b"<" + sha256(b"%d" % self.count).hexdigest()[:12].encode() + b">"

    def grown(self, text: bytes, random: Random) -> tuple[bytes, bytes]:
        """Return a text with a new word in one of its lines, and that word."""
        word, lines = self.word(), text.split(b"\n")
        at = random.randint(0, len(lines))
        if text.startswith(b"---\n"):
            at = len(lines)  # not into its header
        return b"\n".join([*lines[:at], word, *lines[at:]]), word

    def put(self, path: Path, data: bytes) -> None:
        """Write a whole file in place, with a date that no other write has."""
        path.write_bytes(data)
        self.aging(path)

    def aging(self, path: Path) -> None:
        self.count += 1
        stamp = 1_700_000_000_000_000_000 + self.count * 1_000_000
        self.touched.add(path)
        if self.aged:
            with contextlib.suppress(FileNotFoundError):
                os.utime(path, ns=(stamp, stamp))

    def gone(self, data: bytes) -> None:
        """Record that a writer who had seen these words removed them."""
        self.words -= set(WORDS.findall(data))

    # -- the outside writer -------------------------------------------------------------------------------------------

    def _files(self, place: Place, random: Random, kind: str = ".md") -> Path | None:
        found = [path for path in place.files() if path.suffix == kind]
        return random.choice(found) if found else None

    def _read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return b""

    def _edit(self, place: Place, random: Random) -> None:
        """Read a whole file and write it with a new word: in place, or by renaming another file over it."""
        path = self._files(place, random)
        if path is None:
            return
        data, word = self.grown(self._read(path), random)
        self.came(place, word)
        self._save(path, data, random)

    def _save(self, path: Path, data: bytes, random: Random) -> None:
        if random.random() < 0.5:
            self.put(path, data)
        else:
            temporary = path.with_name(f".{path.name}.swap")
            self.put(temporary, data)
            temporary.replace(path)
            self.touched.add(path)

    def _append(self, place: Place, random: Random) -> None:
        path = self._files(place, random)
        if path is None:
            return
        word = self.word()
        self.came(place, word)
        with path.open("ab") as file:
            file.write(b"\n" + word + b"\n")
        self.aging(path)

    def _add(self, place: Place, random: Random) -> None:
        """Add a file, also with a foreign name, or with the name of a memory that is about to be written."""
        if not place.there():
            return
        self.count += 1
        name = random.choice(
            (*KEYS, f"note{self.count}", f"A Note {self.count}", "Tone", f"tone.conflict-{self.count:08x}")
        )
        path = place.path / f"{name}.md"
        if path.exists():
            return
        word = self.word()
        self.came(place, word)
        head = b"---\nname: n\nmetadata:\n  type: user\n---\n\n" if random.random() < 0.3 else b""
        self.put(path, head + BEGINNING + word + b"\n")

    def _delete(self, place: Place, random: Random) -> None:
        path = self._files(place, random)
        if path is not None:
            self.gone(self._read(path))
            path.unlink(missing_ok=True)
            self.touched.add(path)

    def _rename(self, place: Place, random: Random) -> None:
        """Rename a file, also changing only its case; never over an existing file."""
        path = self._files(place, random)
        if path is None or path.name == "MEMORY.md":
            return
        self.count += 1
        name = random.choice(
            (
                path.stem.swapcase(),
                path.stem.capitalize(),
                f"renamed{self.count}",
                f"Named Anew {self.count}",
                random.choice(KEYS),
            )
        )
        target = path.with_name(f"{name}.md")
        if not target.exists():
            with contextlib.suppress(FileNotFoundError):
                path.rename(target)
                self.touched |= {path, target}

    def _half(self, place: Place, random: Random) -> None:
        """Save a truncated file, as on a full disk."""
        path = self._files(place, random)
        if path is None:
            return
        before, word = self._read(path), self.word()
        data = before + word + b"\n"
        kept = data[: random.randint(0, len(data))]
        if word in kept:
            self.came(place, word)
        self.gone(b" ".join(set(WORDS.findall(before)) - set(WORDS.findall(kept))))
        self.put(path, kept)

    def _line(self, place: Place, random: Random) -> None:
        """Append a timeline line, its beginning, or the rest of one."""
        if not place.there():
            return
        folder = place.path / "timeline"
        folder.mkdir(exist_ok=True)
        path = folder / random.choice(("2026-01-01.jsonl", "2026-04-12.jsonl"))
        rest = self.begun.pop(path, None)
        if rest is None:
            word = self.word()
            rest = b'{"ts":"2026-04-12T10:00:00Z","type":"x","w":"' + word + b'"}\n'
            if random.random() < 0.3:
                self.begun[path] = rest[40:]
                rest = rest[:40]
        self.words |= set(WORDS.findall(rest))
        with path.open("ab") as file:
            file.write(rest)
        self.aging(path)

    def _hold(self, place: Place, random: Random) -> None:
        """Open a file in an editor."""
        path = self._files(place, random)
        if path is not None:
            self.held[path] = self._read(path), self.lab.clock.ms
            self.touched.discard(path)

    # -- actions of people --------------------------------------------------------------------------------------------

    def outside(what: Callable[[People, Place, Random], None]) -> Callable[[People, Random], None]:  # type: ignore[misc]  # noqa: N805
        def act(self: People, random: Random) -> None:
            what(self, random.choice(self.places), random)

        return act

    edit, append, add, delete = outside(_edit), outside(_append), outside(_add), outside(_delete)
    rename, half, line, hold = outside(_rename), outside(_half), outside(_line), outside(_hold)

    def save(self, random: Random) -> None:
        """Save a file that was opened, perhaps long ago. Later writes to it are lost, unless it is scanned
        within the minute in which that can be detected and nobody else wrote it by hand."""
        if not self.held:
            return
        path = random.choice(sorted(self.held))
        text, at = self.held.pop(path)
        if not path.parent.is_dir():
            return
        before = self._read(path)
        data, word = self.grown(text, random)
        place = next(place for place in self.places if path.parent == place.path)
        soon = (
            self.attached(place)
            and path not in self.touched
            and path.name != "MEMORY.md"
            and self.lab.clock.ms - at < 50_000
            and random.random() < 0.7
        )
        known = set(WORDS.findall(b" ".join(whole_texts(self.lab.devices[place.who]))))
        self.came(place, word)
        self._save(path, data, random)
        if soon:
            self.lab.devices[place.who].folders.scan()
        lost = set(WORDS.findall(before)) - set(WORDS.findall(data))
        # Another program's text that the writer had overwritten.
        self.words -= lost if not soon else lost - known | lost & self.by_hand[place.path]

    def away(self, random: Random) -> None:
        """Unmount a folder, or mount it again."""
        place = random.choice(self.places)
        off = place.path.with_name(f"{place.path.name}.away")
        if off.exists():
            if place.there():  # a folder was created in its place meanwhile
                for path in [path for path in place.path.rglob("*.md") if ".ipfsmem" not in path.parts]:
                    self.gone(self._read(path))
                shutil.rmtree(place.path)
            off.rename(place.path)
        elif place.there() and self.attached(place) and self.lab.memory_dir(place.who) == place.path:
            place.path.rename(off)

    def copy(self, random: Random) -> None:
        """`cp -r` of a linked folder, to the same device or another one: it is refused until a user takes
        it over."""
        source = random.choice(self.places)
        if not source.there():
            return
        who, memory = self.device(random)
        scope = random.choice(SCOPES)
        self.count += 1
        path = self.folder / f"copy{self.count}"
        shutil.copytree(source.path, path)
        place = Place(who, path, scope)
        if (path / ".ipfsmem" / "marker").exists():
            with pytest.raises(UsageError, match="linked folder"):
                memory.folders.attach(path, scope=scope)
        before = {file: file.read_bytes() for file in place.files()}
        assert {file: file.read_bytes() for file in place.files()} == before
        if len(self.places) < 5:
            self.places.append(place)
            self.run(random, who, lambda: self._attach(place, take_over=True))

    def attach(self, random: Random) -> None:
        """Link a new folder to some scope, or a detached one."""
        who, _ = self.device(random)
        loose = [place for place in self.places if place.who == who and not self.attached(place)]
        if loose and random.random() < 0.5:
            place = random.choice(loose)
        elif len(self.places) < 5:
            self.count += 1
            place = Place(who, self.folder / f"more{self.count}", random.choice(SCOPES))
            self.places.append(place)
        else:
            return
        self.run(random, who, lambda: self._attach(place))

    def _attach(self, place: Place, *, take_over: bool = False) -> None:
        with contextlib.suppress(UsageError, StorageError, LimitError, NotFoundError):
            self.lab.devices[place.who].folders.attach(
                place.path, scope=place.scope or None, take_over=take_over, timeline=True
            )

    def detach(self, random: Random) -> None:
        """Detach a folder, except the first."""
        known = [
            place
            for place in self.places
            if self.attached(place) and place.path.name.startswith(("copy", "more"))
        ]
        if not known:
            return
        place = random.choice(known)

        def work() -> None:
            with contextlib.suppress(NotFoundError, StorageError):
                self.lab.devices[place.who].folders.detach(place.path)

        self.run(random, place.who, work)

    # -- commands -----------------------------------------------------------------------------------------------------

    def write(self, random: Random) -> None:
        """Write the read text and a new word, with the token of the reading."""
        who, key, part = self.part(random)

        def work() -> None:
            with contextlib.suppress(LimitError, NotFoundError, ChangedError):
                reading = part.read(key)
                data, word = self.grown(reading.data if reading else BEGINNING, random)
                part.write_text(key, data, seen=reading if reading else ())
                self.words.add(word)

        self.run(random, who, work)

    def forget(self, random: Random) -> None:
        """Forget every text under this key."""
        who, key, part = self.part(random)
        part.folders.scan()
        with part.replica.reading():
            entry = part._memories.entry(key)
            name = part._memories.name(key)
            bodies = [part.replica.store.body(name, value) for value in entry.values() if value.body]
        gone = {word for data in bodies if data for word in WORDS.findall(data)}
        # Words added to a file since it was read are included: the forget is for everything present.
        for place in self.places:
            if place.who == who:
                for path in place.path.glob("*.md"):
                    with contextlib.suppress(Exception):
                        if file_names.name_of(path.name)[0] == key:
                            gone |= set(WORDS.findall(path.read_bytes()))
        done = False
        with contextlib.suppress(LimitError, NotFoundError):
            done = part.forget(key)
        if done:
            self.words -= gone

    def note(self, random: Random) -> None:
        who, memory = self.device(random)

        def work() -> None:
            word = self.word()
            memory.note("x", w=word.decode())
            self.words.add(word)

        self.run(random, who, work)

    def resolve(self, random: Random) -> None:
        """Resolve a conflict with a text that has all of it."""
        who, _, part = self.part(random)

        def work() -> None:
            for item in part.conflicts():
                parts = [item.shown.data] if item.shown else []
                parts += [copy.reading.data for copy in item.copies if copy.reading]
                lines = dict.fromkeys(line for data in parts for line in data.split(b"\n"))
                with contextlib.suppress(LimitError, NotFoundError, ChangedError):
                    part.resolve(item.key, b"\n".join(lines) + b"\n", seen=item)

        self.run(random, who, work)

    def look(self, random: Random) -> None:
        who, memory = self.device(random)

        def work() -> None:
            memory.folders.scan()
            memory.folders.render()

        self.run(random, who, work)

    def restart(self, random: Random) -> None:
        who, memory = self.device(random)

        def work() -> None:
            memory.close()
            self.lab.open(who)

        self.run(random, who, work)

    def sync(self, random: Random) -> None:
        """Publish and join, perhaps with failing calls."""
        who, memory = self.device(random)
        if not self.lab.syncs:
            return self.look(random)
        provider = self.lab.provider(who)
        if random.random() < 0.25:
            fails = provider.fail_call if random.random() < 0.5 else provider.lose_answer
            fails(random.randint(1, 30))

        def work() -> None:
            self.lab.sync(memory)

        self.run(random, who, work)
        provider.stop_failing()
        return None

    def at_once(self, random: Random) -> None:
        """Both devices sync concurrently."""
        memories = list(self.lab.devices.values())

        async def both() -> None:
            await asyncio.gather(
                *(memory.sync(allow=[one.key for one in memory.list()]) for memory in memories)
            )

        if self.lab.syncs:
            asyncio.run(both())

    def answer(self, random: Random) -> None:
        """A user decides about a paused folder: its files, or the vault's texts, or missing files are
        restored."""
        known = [place for place in self.places if self.attached(place)]
        place = random.choice(known)
        memory = self.lab.devices[place.who]
        how = random.choice(
            (
                lambda path: memory.folders.resume(path, keep="folder"),
                lambda path: memory.folders.resume(path, keep="vault"),
                lambda _: memory.folders.restore_files(),
            )
        )

        def work() -> None:
            with contextlib.suppress(NotFoundError, StorageError):
                how(place.path)

        self.run(random, place.who, work)

    def wait(self, random: Random) -> None:
        self.lab.clock.advance(random.choice((7, 70, 70, 3600, 26 * 3600)))

    # -- the end -------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Mount all folders, scan everything, check that nothing is paused and no file is missing; then
        sync all."""
        for place in self.places:
            off = place.path.with_name(f"{place.path.name}.away")
            if off.exists():
                if place.there():
                    shutil.rmtree(place.path)
                off.rename(place.path)
        memories = self.lab.devices
        for memory in memories.values():
            memory.folders.scan()
        self.lab.clock.advance(61)
        for memory in memories.values():
            memory.folders.scan()
            for facts in memory.folders.list():
                if facts.state == "paused":
                    memory.folders.resume(facts.path, keep="folder")
            memory.folders.restore_files()
            memory.folders.render()
        if self.lab.syncs:
            self.lab.settle(*memories.values(), rounds=16)
        self.lab.clock.advance(61)
        for memory in memories.values():
            for _ in range(3):
                memory.folders.scan()
                memory.folders.render()
        if self.lab.syncs:
            self.lab.settle(*memories.values(), rounds=16)
            same(*memories.values())
        for name in memories:
            self.check(name)
        before = self.stand()
        if self.lab.syncs:
            self.lab.rest(*memories.values())
        for memory in memories.values():
            memory.folders.scan()
            memory.folders.render()
        assert self.stand() == before, "files that nobody touched were changed"

    def stand(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for place in self.places for path in place.files()}

    def check(self, name: str) -> None:
        memory = self.lab.devices[name]
        texts = b"".join(whole_texts(memory)) + repr(memory.timeline.read()).encode()
        texts += b"".join(repr(memory.scope(one).timeline.read()).encode() for one in memory.scopes.names())
        # Files that were skipped and reported keep their words. So do files of a folder that is no longer
        # scanned.
        for place in self.places:
            notices = "\n".join(self.lab.devices[place.who].status().notices)
            for path in place.files():
                if not self.attached(place) or path.name in notices or str(place.path) in notices:
                    texts += path.read_bytes()
            # Words written into a generated MEMORY.md.
            texts += b"".join(path.read_bytes() for path in place.path.glob(".ipfsmem/MEMORY.edited-*"))
        lost = self.words - set(WORDS.findall(texts))
        assert not lost, f"device {name} has lost {sorted(lost)}"
        self.shows(name, memory)

    def shows(self, name: str, memory: Memory) -> None:
        """Check that every shown word is in a file of each folder, except where a notice gives a reason."""
        notices = "\n".join(memory.status().notices)
        for place in self.places:
            if place.who != name or not self.attached(place) or str(place.path) in notices:
                continue
            files = b"".join(path.read_bytes() for path in place.files())
            part = memory.scope(place.scope)
            for item in part.list():
                reading = part.read(item.key)
                if reading is None or item.key in notices:
                    continue
                file = place.path / parse_memory(reading.data).fields.get("origin_name", f"{item.key}.md")
                if not self.aged and file in place.files() and not file.read_bytes():
                    continue  # a file that was emptied a moment ago waits for its writer
                absent = set(WORDS.findall(reading.data)) - set(WORDS.findall(files))
                assert not absent, f"{item.key} is not shown in {place.path}: {sorted(absent)}; {notices}"


ACTIONS: dict[str, Callable[[People, Random], None]] = {
    "edit": People.edit,
    "append": People.append,
    "add": People.add,
    "delete": People.delete,
    "rename": People.rename,
    "half": People.half,
    "line": People.line,
    "hold": People.hold,
    "save": People.save,
    "away": People.away,
    "copy": People.copy,
    "attach": People.attach,
    "detach": People.detach,
    "write": People.write,
    "forget": People.forget,
    "note": People.note,
    "resolve": People.resolve,
    "look": People.look,
    "restart": People.restart,
    "sync": People.sync,
    "at once": People.at_once,
    "answer": People.answer,
    "wait": People.wait,
}
WEIGHTS = {"edit": 4, "rename": 2, "write": 4, "sync": 7, "look": 2, "wait": 2, "hold": 2, "save": 2}
WEIGHED = [name for name in ACTIONS for _ in range(WEIGHTS.get(name, 1))]
WORLDS = ("ipfs", "ipfs aged", "local", "local aged", "encrypted-ipfs", "encrypted-ipfs aged")


def play(folder: Path, world: str, plan: Plan) -> None:
    """Play one case. `world`: a mode, and perhaps "aged"."""
    mode: ModeName = world.split()[0]  # type: ignore[assignment]
    people = People.__new__(People)
    people.due, people.left, people.room, people.aged = [], None, None, "aged" in world
    with people.watched():
        try:
            people.__init__(folder, mode, aged="aged" in world)  # type: ignore[misc]
            for what, number in plan:
                ACTIONS[what](people, Random(number))
            people.finish()
        finally:
            people.lab.close()


@settings(deadline=None, max_examples=cases(6, 300))
@given(
    st.sampled_from(WORLDS),
    st.lists(
        st.tuples(st.sampled_from(WEIGHED), st.integers(0, 2**32 - 1)), min_size=8, max_size=longest(20, 60)
    ),
)
def test_hand_edited_folders_lose_no_word_and_converge(world: str, plan: Plan) -> None:
    folder = Path(tempfile.mkdtemp(prefix="people-"))
    try:
        play(folder, world, plan)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
