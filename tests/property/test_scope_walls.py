"""No leak between scopes: a text of one scope never appears in another's list, text, index, timeline,
conflicts, history, export, folder, published base or token, on any device, in any order of work.

Each text, event and title has a unique mark, and the model knows the scopes in which a mark may occur:
where it was written, and where a user put it by an import with a map. A redirected scope is read below its
target and nowhere else. A plan is pairs of an action and the seed of its choices."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.content.cid import parse_cid
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.reader import Reader
from ipfsmem.device.events import Timeline
from ipfsmem.errors import ChangedError, LimitError, NotFoundError, UsageError
from ipfsmem.memories.bundle_tree import BundleScope
from ipfsmem.memories.containers import read_zip
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.scopes import Scopes
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from ipfsmem.provider.contract import open_provider
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.effort import cases
from tests.support.scope_lab import blob

ROOT = RootKeys.from_random(b"\x05" * 64, "default", 1)
SCOPES = ("", "work", "o", "tone")
KEYS = ("tone", "work", "plan")
_marks = re.compile(rb"<<(\d+)>>").findall


class Walls:
    """Two devices of one vault on one folder, and the allowed marks."""

    def __init__(self, folder: Path, mode: ModeName) -> None:
        self.folder, self.mode = folder, mode
        self.stick = folder / "stick"
        self.stick.mkdir()
        self.count = 0
        #: By scope the marks that may occur there.
        self.allowed: dict[str, set[int]] = {scope: set() for scope in SCOPES}
        options = {
            "unlock": ROOT,
            "passphrase": False if mode == "encrypted-ipfs" else None,
            "public_ok": mode == "ipfs",
        }
        self.devices: list[Memory] = []
        self.folders: dict[tuple[int, str], Path] = {}
        for number, make in enumerate((Memory.create, Memory.load)):
            if number:
                asyncio.run(self.devices[0].sync())
            more = {"recovery": False} if not number else {}
            self.devices.append(
                make("m", mode, provider=str(self.stick), home=folder / f"home{number}", **options, **more)  # type: ignore[operator]
            )
        if mode == "ipfs":
            for scope in SCOPES:
                self.folders[0, scope] = folder / f"copy-{scope}"
                self.folders[0, scope].mkdir()
                self.devices[0].folders.attach(self.folders[0, scope], scope=scope, timeline=True)

    def close(self) -> None:
        for memory in self.devices:
            memory.close()

    # -- the model -------------------------------------------------------------------------------------------------

    def mark(self, scope: str) -> str:
        self.count += 1
        self.allowed[scope].add(self.count)
        return f"<<{self.count}>>"

    def pick(self, random: Random) -> tuple[Memory, str]:
        return random.choice(self.devices), random.choice(SCOPES)

    def target(self, memory: Memory, scope: str) -> str:
        return Scopes(memory.replica).target(scope)

    # -- actions ------------------------------------------------------------------------------------------------------

    def write(self, random: Random) -> None:
        memory, scope = self.pick(random)
        there = self.target(memory, scope)
        mark, key = self.mark(there), random.choice(KEYS)
        if there != scope or Scopes(memory.replica).stack(there)[1:]:
            # Omitted fields come from the text that a reader of that scope is shown.
            self.allowed[there] |= self.seen_in(memory, there)
        part = memory.scope(scope)
        seen = part.read(key) if random.random() < 0.5 else None
        description = mark if random.random() < 0.3 else None
        made = part.write(
            key, None if description and seen else f"text {mark}", description=description, seen=seen
        )
        assert made.scope == there and mark in made.data.decode()
        assert (shown := memory.scope(there).read(key)) is not None and shown.scope == there

    def seen_in(self, memory: Memory, scope: str) -> set[int]:
        """Return the marks that a reader of a scope may be shown, including redirected scopes."""
        return set().union(*(self.allowed[one] for one in Scopes(memory.replica).stack(scope)))

    def note(self, random: Random) -> None:
        memory, scope = self.pick(random)
        memory.scope(scope).note("said", what=self.mark(self.target(memory, scope)))

    def forget(self, random: Random) -> None:
        memory, scope = self.pick(random)
        reason = self.mark(scope)
        # A redirected scope is forgotten with it; a forgotten scope accepts no events.
        for one in (*Scopes(memory.replica).stack(scope), ""):
            if one or MemoryStore(memory.replica).in_scope(scope).forgotten():
                self.allowed[one].add(self.count)
        memory.scope(scope).forget(random.choice(KEYS), reason=reason)

    def settle(self, random: Random) -> None:
        memory, scope = self.pick(random)
        for item in memory.scope(scope).conflicts()[:1]:
            memory.scope(scope).resolve(item.key, keep=True, seen=item)

    def undo(self, random: Random) -> None:
        self.pick(random)[0].undo()

    def title(self, random: Random) -> None:
        memory, scope = self.pick(random)
        if scope:
            memory.scopes.title(scope, f"title {self.mark(scope)}")

    def beside(self, random: Random) -> None:
        """Write a text of others, and perhaps approve it."""
        memory, scope = self.pick(random)
        key, there = random.choice(KEYS), self.target(memory, scope)
        memory.scope(scope).bundles.import_(
            blob({f"{key}.md": f"of others {self.mark(there)}"}), foreign=True
        )
        if random.random() < 0.5:
            memory.scope(there).approve(key)

    def carry(self, random: Random) -> None:
        """A user moves a scope's contents into another by an export and a map."""
        memory, scope = self.pick(random)
        other, there = self.pick(random)
        if scope and memory.scopes.get(scope) is None:
            return
        place = self.folder / f"{self.count}-{random.random()}.zip"
        with place.open("wb") as out:
            memory.scope(scope).bundles.export_zip(out, partial=True)
        marks = marks_in(place, scope)
        # A promoted or rewritten text keeps its mark.
        self.allowed[there] |= marks
        maps = {scope: there} if scope else {"": there}
        if scope and there == "":
            maps[""] = self.fresh(other)
        with contextlib.suppress(UsageError):
            other.bundles.import_(
                place, maps=maps, foreign=random.random() < 0.5, strategy=random.choice(["merge", "replace"])
            )

    def fresh(self, memory: Memory) -> str:
        """Return an unused scope."""
        self.count += 1
        return f"fresh-{self.count}"

    def forget_scope(self, random: Random) -> None:
        memory, scope = self.pick(random)
        if scope and random.random() < 0.5:
            memory.scopes.forget(scope)

    def restore_scope(self, random: Random) -> None:
        memory, scope = self.pick(random)
        roots = [line.root for line in memory.versions.list()]
        if scope:
            memory.scopes.restore(scope, random.choice([*roots, None]))

    def lead(self, random: Random) -> None:
        memory, scope = self.pick(random)
        if scope:
            into = random.choice([one for one in SCOPES[1:] if one != scope])
            memory.scopes.redirect(scope, into if random.random() < 0.6 else None)

    def strange_token(self, random: Random) -> None:
        """A token of one scope replaces nothing in another, in whatever form it is passed."""
        memory, scope = self.pick(random)
        here, key = MemoryStore(memory.replica).in_scope(scope), random.choice(KEYS)
        reading = here.read(key)
        other = random.choice([one for one in SCOPES if one != scope])
        there = MemoryStore(memory.replica).in_scope(other)
        if reading is None or there.forgotten():
            return
        before = there.conflicts(), there.listing(), there.read(key)
        for seen in (reading, reading.seen):
            with pytest.raises((UsageError, ChangedError)):
                there.write(key, b"never", seen=seen)
            with pytest.raises((UsageError, ChangedError)):
                there.resolve(key, b"never", seen) if there.replica.store.entry(
                    there.name(key)
                ) else there.write(key, b"n", seen=seen)
        assert (there.conflicts(), there.listing(), there.read(key)) == before

    def edit(self, random: Random) -> None:
        """Edit the plain files of a scope, and its MEMORY.md."""
        if not self.folders:
            return
        scope = random.choice(SCOPES)
        memory = self.devices[0]
        file = self.folders[0, scope] / f"{random.choice(KEYS)}.md"
        one = memory.scopes.get(scope) if scope else None
        if one is not None and one.forgotten:
            return
        file.write_text(f"edited {self.mark(scope)}\n")
        memory.folders.scan()

    def sync(self, random: Random) -> None:
        asyncio.run(random.choice(self.devices).sync())

    # -- visible data -------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Check every answer of every scope on every device."""
        for number, memory in enumerate(self.devices):
            scopes = Scopes(memory.replica)
            for scope in SCOPES:
                for what, said in self.answers(memory, scope).items():
                    self.check(scope, what, said, self.allowed[scope])
                below = self.seen_in(memory, scope)
                part = memory.scope(scope)
                read = [part.read(key) for key in KEYS]
                self.check(scope, "stack", repr((read, part.list(), part.timeline.read())), below)
                assert {one.scope for one in read if one is not None} <= set(scopes.stack(scope))
                folder = self.folders.get((number, scope))
                if folder is not None:
                    for path in folder.rglob("*"):
                        if path.is_file():
                            self.check(scope, f"the file {path.name}", path.read_bytes(), self.allowed[scope])
        if self.mode == "ipfs":
            self.look_at_the_root()

    def answers(self, memory: Memory, scope: str) -> dict[str, object]:
        part, exact = memory.scope(scope), MemoryStore(memory.replica).in_scope(scope)
        found: dict[str, object] = {
            "list": exact.listing(sessions=True),
            "texts": [exact.read(key) for key in KEYS],
            "index": part.index(),
            "files": part.files(),
            "timeline": Timeline(memory.replica, scope).events(),
            "conflicts": part.conflicts(),
            "history": [part.history(key) for key in KEYS if memory.replica.store.entry(exact.name(key))],
        }
        one = memory.scopes.get(scope) if scope else None
        if not scope or (one is not None and not one.forgotten):
            out = io.BytesIO()
            part.bundles.export_zip(out, partial=True)
            with tempfile.NamedTemporaryFile(dir=self.folder) as file:
                file.write(out.getvalue())
                file.flush()
                found["export"] = read_zip(Path(file.name))
            found["blob"] = part.bundles.export(partial=True)
            found["left out"] = part.bundles.left_out()
        return found

    def look_at_the_root(self) -> None:
        root = self.devices[0].replica.db.get_meta("root")
        if root is None:
            return
        provider = open_provider(str(self.stick))
        with contextlib.suppress(NotFoundError):  # this root was not sent
            files = asyncio.run(
                drive_async(Reader().read_tree(parse_cid(root.decode())), provider.get_blocks)
            )
            for path, data in files.items():
                if "/.ipfsmem/" not in path:
                    scope = path.split("/")[1] if path.startswith("scopes/") else ""
                    if scope in SCOPES:
                        self.check(scope, f"the published {path}", data, self.allowed[scope])

    def check(self, scope: str, what: str, said: object, allowed: set[int]) -> None:
        text = said if isinstance(said, bytes) else repr(said).encode()
        strange = {int(mark) for mark in _marks(text)} - allowed
        if strange:
            raise AssertionError(f"{what} of the scope {scope!r} shows {sorted(strange)}: {said!r}")


def marks_in(place: Path, scope: str) -> set[int]:
    """Return the marks of one scope of a bundle."""
    parts: dict[str, BundleScope] = read_zip(place)
    return {int(mark) for mark in _marks(repr(parts.get(scope)).encode())}


ACTIONS: dict[str, Callable[[Walls, Random], None]] = {
    name: getattr(Walls, name)
    for name in (
        "write", "note", "forget", "settle", "undo", "title", "beside", "carry", "forget_scope", "restore_scope",
        "lead", "strange_token", "edit", "sync",
    )
}  # fmt: skip
WEIGHTED = [*ACTIONS, *["write"] * 4, *["sync"] * 3, "note", "beside", "carry", "strange_token", "edit"]
plans = st.lists(st.tuples(st.sampled_from(WEIGHTED), st.integers(0, 2**32)), min_size=8, max_size=30)


def play(mode: ModeName, plan: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        walls = Walls(Path(folder), mode)
        try:
            for number, (action, seed) in enumerate(plan):
                # An impossible action (a forgotten scope, a full key) is skipped.
                with contextlib.suppress(NotFoundError, LimitError, ChangedError, UsageError):
                    ACTIONS[action](walls, Random(seed))
                if number % 6 == 5:
                    walls.look()
            for _ in range(2):
                for memory in walls.devices:
                    asyncio.run(memory.sync())
            walls.look()
        finally:
            walls.close()


@pytest.mark.parametrize("mode", ["ipfs", "encrypted-ipfs"])
def test_scopes_never_show_each_others_contents(mode: ModeName) -> None:
    @settings(max_examples=cases(2, 150))
    @given(plan=plans)
    def law(plan: list[tuple[str, int]]) -> None:
        play(mode, plan)

    law()


def test_scope_check_finds_a_planted_leak() -> None:
    with tempfile.TemporaryDirectory() as folder:
        walls = Walls(Path(folder), "ipfs")
        try:
            memory = walls.devices[0]
            for scope in SCOPES:
                memory.scope(scope).write("tone", f"text {walls.mark(scope)}")
            walls.look()
            memory.scope("work").write("plan", "text <<1>>")
            found = set()
            for what, said in walls.answers(memory, "work").items():
                with contextlib.suppress(AssertionError):
                    walls.check("work", what, said, walls.allowed["work"])
                    continue
                found.add(what)
            assert found == {"texts", "files", "export", "blob"}
            with pytest.raises(AssertionError, match="shows"):
                walls.look()
        finally:
            walls.close()
