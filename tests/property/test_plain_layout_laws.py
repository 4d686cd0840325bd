"""A published root of mode `ipfs` is the same whether it was patched from cached state or built from
scratch."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipfsmem.bundle.index import IndexItem, item_of, render_index
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.bundle.timeline import event_line
from ipfsmem.content import unixfs
from ipfsmem.content.cid import CID
from ipfsmem.content.fetch import drive
from ipfsmem.content.reader import Reader
from ipfsmem.content.tree import build_tree
from ipfsmem.device.events import Timeline
from ipfsmem.device.root_folders import state_folder
from ipfsmem.device.writing import writing
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.scopes import Scopes
from ipfsmem.memory import Memory
from ipfsmem.published import plain_hamt, plain_layout
from ipfsmem.published.layout import PlainLayout
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.effort import cases

WALLET = Unlock(RawKeySigner(b"\x07" * 32))
REMEMBERED = ("shown/", "flat/", "base/")
SCOPES = ("o", "s", "key_1")

numbers = st.integers(0, 30)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), numbers, st.integers(0, 3)),
        st.tuples(st.just("many"), numbers, st.integers(0, 3)),
        st.tuples(st.just("beside"), numbers, st.integers(4, 6)),
        st.tuples(st.just("forget"), numbers, st.just(0)),
        st.tuples(st.just("note"), numbers, st.just(0)),
        st.tuples(st.just("scoped"), numbers, st.integers(0, 3)),
        st.tuples(st.just("scoped many"), numbers, st.integers(0, 3)),
        st.tuples(st.just("scoped note"), numbers, st.just(0)),
        st.tuples(st.just("scoped beside"), numbers, st.integers(4, 6)),
        st.tuples(st.just("scope forgotten"), numbers, st.just(0)),
        st.tuples(st.just("build"), numbers, st.just(0)),
        st.tuples(st.just("reopen"), numbers, st.just(0)),
        st.tuples(st.just("damage"), numbers, st.integers(0, 1)),
    ),
    max_size=10,
)


def text(n: int, version: int) -> bytes:
    kind = ("user", "feedback", "nobody knows", "")[(n + version) % 4]
    return b"---\nname: Name %d\ndescription: of %d\ntype: %b\n---\n\ntext %d\n" % (
        n,
        version,
        kind.encode(),
        n,
    )


class Plain:
    """One device, and its layout with its cache."""

    def __init__(self, base: Path) -> None:
        self.memory = Memory.create("x", "ipfs", public_ok=True, unlock=WALLET, home=base)
        self.replica = self.memory.replica
        self.reopen()

    def reopen(self) -> None:
        """Restrict it to what a new process knows: its rows."""
        self.memories = MemoryStore(self.replica)

    def build(self) -> CID:
        with self.replica.transaction():
            self.replica.store.checkpoint(folders=True)
            return PlainLayout(self.memories).build(self.replica, b"head", b"ring")

    def step(self, kind: str, n: int, m: int) -> None:
        key = f"key_{n}"
        if kind == "write":
            self.memories.write(key, text(n, m))
        elif kind == "many":
            for i in range(n + 40):
                self.memories.write(f"key_{i}", text(i, m))
        elif kind == "beside":
            self.memory.bundles.import_(
                b'{"format":"memory/0.1","files":{"%b.md":%b}}' % (key.encode(), as_json(text(n, m)))
            )
        elif kind == "forget":
            self.memories.forget(key)
        elif kind == "note":
            self.memory.note("counted", n=n)
        elif kind == "build":
            self.build()
        elif kind.startswith("scope"):
            self.scope_step(kind, SCOPES[n % 3], n, m)
        elif kind == "reopen":
            self.reopen()
        else:
            self.damage(n, m)

    def scope_step(self, kind: str, scope: str, n: int, m: int) -> None:
        """Do the same in a scope; restore it first if forgotten."""
        scopes, memories = Scopes(self.replica), self.memories.in_scope(scope)
        known = scopes.get(scope)
        if kind == "scope forgotten":
            if known is not None and not known.forgotten:
                scopes.forget(scope)
            return
        if known is not None and known.forgotten:
            scopes.restore(scope)
        if kind == "scoped":
            memories.write(f"key_{n}", text(n, m))
        elif kind == "scoped many":
            for i in range(n % 7 + 12):
                memories.write(f"key_{i}", text(i, m))
        elif kind == "scoped beside":
            with writing(self.replica) as change:
                change.write_alternative(memories.name(f"key_{n}"), text(n, m))
        else:
            Timeline(self.replica, scope).note("counted", {"n": n})

    def damage(self, n: int, m: int) -> None:
        """Lose one cached row, or flip a bit of it; or lose a block below the flat folder."""
        with self.replica.transaction():
            run = self.replica.db.connection
            found = [row[0] for row in run.execute("SELECT name FROM meta WHERE name > 'a' ORDER BY name")]
            rows = [name for name in found if name.startswith(REMEMBERED)]
            if rows and m:
                run.execute("UPDATE meta SET value=value||x'00' WHERE name=?", (rows[n % len(rows)],))
            elif rows:
                run.execute("DELETE FROM meta WHERE name=?", (rows[n % len(rows)],))

    def forget_all(self) -> None:
        with self.replica.transaction():
            for prefix in REMEMBERED:
                self.replica.db.connection.execute(
                    "DELETE FROM meta WHERE name >= ? AND name < ?", (prefix, prefix[:-1] + "0")
                )
            self.replica.db.connection.execute("DELETE FROM folders WHERE path >= 'p' AND path < 'q'")
            # Its shards are no longer here either.
            state_folder(self.replica.db, self.replica.codec.extension, None)
        self.reopen()

    def check(self) -> None:
        patched = self.build()
        files = self.read(patched)
        self.forget_all()
        assert self.build() == patched
        # The folder is what any other writer of UnixFS would make of these files.
        assert build_tree(files).cid == patched
        bodies = {data for path, data in files.items() if "/.ipfsmem/o/" in path}
        seen = {data for path, data in files.items() if "/.ipfsmem/" not in path}
        assert not bodies & seen
        with self.replica.reading():
            for name, entry in self.replica.store.entries():
                for value in entry.values():
                    data = self.replica.store.body(name, value)
                    assert data is None or data in bodies | seen
        self.check_scopes({p: d for p, d in files.items() if p.startswith("scopes/")})
        texts = {
            path.removeprefix("memory/"): data
            for path, data in files.items()
            if path.startswith("memory/") and "/.ipfsmem/" not in path
        }
        index = texts.pop("MEMORY.md").decode()
        for name in [name for name in texts if name.startswith("timeline/")]:
            del texts[name]
        copies = {file: item.key for item in self.memory.conflicts() for file in item.files}
        shown = {name: data for name, data in texts.items() if name not in copies}
        assert shown == {f"{key}.md": data for key, data in self.memory.files().items()}
        assert index == render_index(
            [item(name.removesuffix(".md"), data) for name, data in shown.items()],
            [item(copies[name], data, name) for name, data in texts.items() if name in copies],
        )
        assert index == self.memories.index() == self.memory.index()

    def check_scopes(self, files: dict[str, bytes]) -> None:
        """Check that each scope is a base of its own, whose MEMORY.md names nothing of another; a
        forgotten one has no folder."""
        live = {scope.token for scope in Scopes(self.replica).listing()}
        assert {path.split("/")[1] for path in files} == live
        for scope in live:
            memories = self.memories.in_scope(scope)
            base = f"scopes/{scope}/memory/"
            mine = {path.removeprefix(base): data for path, data in files.items() if path.startswith(base)}
            assert mine.pop("MEMORY.md").decode() == memories.index()
            days = [mine.pop(name) for name in sorted(mine) if name.startswith("timeline/")]
            assert b"".join(days) == b"".join(
                event_line(event) + b"\n" for event in Timeline(self.replica, scope).events()
            )
            copies = {file for item in memories.conflicts() for file in item.files}
            with self.replica.reading():
                shown = {f"{view.key}.md": view.data for _, view in memories.views() if view.data is not None}
            assert {name: data for name, data in mine.items() if name not in copies} == shown
            assert copies <= mine.keys()

    def read(self, root: CID) -> dict[str, bytes]:
        blocks = self.replica.db
        return drive(
            Reader().read_tree(root),
            lambda cids: {cid: data for cid in cids if (data := blocks.block(cid.digest)) is not None},
        )


def as_json(data: bytes) -> bytes:
    import json

    return json.dumps(data.decode()).encode()


def item(key: str, data: bytes, file: str | None = None) -> IndexItem:
    header = parse_memory(data)
    return item_of(key, header, file)


@pytest.fixture
def small_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make HAMTs from a dozen files on."""
    monkeypatch.setattr(unixfs, "SHARD_ABOVE", 700)
    monkeypatch.setattr(plain_hamt, "SHARD_ABOVE", 700)
    monkeypatch.setattr(plain_layout, "SHARD_ABOVE", 700)


@pytest.mark.usefixtures("small_folders")
@settings(
    max_examples=cases(10, 125), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps)
def test_patched_root_equals_a_rebuilt_one(script: list[tuple[Any, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as base:
        plain = Plain(Path(base))
        with plain.memory:
            for step in script:
                plain.step(*step)
            plain.check()


@pytest.mark.usefixtures("small_folders")
def test_lost_shards_are_rebuilt(tmp_path: Path) -> None:
    plain = Plain(tmp_path)
    with plain.memory:
        plain.step("many", 30, 1)
        root = plain.build()
        files = plain.read(root)
        with plain.replica.transaction():
            run = plain.replica.db.connection
            kept = {bytes(row[0]) for row in run.execute("SELECT digest FROM objects")}
            kept |= {bytes(row[0]) for row in run.execute("SELECT file FROM nodes")}
            for (digest,) in run.execute("SELECT digest FROM blocks").fetchall():
                if digest not in kept:
                    run.execute("DELETE FROM blocks WHERE digest=?", (digest,))
            state_folder(plain.replica.db, plain.replica.codec.extension, None)
        assert plain.build() == root
        assert plain.read(root) == files


def test_one_change_reads_the_texts_of_one_leaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Plain(tmp_path)
    with plain.memory:
        for n in range(400):
            plain.memories.write(f"key_{n}", text(n, 0))
        plain.build()
        plain.memories.write("key_7", text(7, 1))
        plain.reopen()
        read: list[str] = []
        real = plain.replica.store.body
        monkeypatch.setattr(
            plain.replica.store, "body", lambda name, value: (read.append(name), real(name, value))[1]
        )
        plain.build()
        assert "m/key_7" in read and len(read) <= 64


def test_changed_layout_code_rebuilds_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Plain(tmp_path)
    with plain.memory:
        plain.memories.write("one", text(1, 1))
        before = plain.build()
        monkeypatch.setattr("ipfsmem.memories.overview._code", lambda: b"another version")
        monkeypatch.setattr("ipfsmem.bundle.index.index_line", lambda item: ("Project", "- a line\n"))
        plain.reopen()
        root = plain.build()
        assert root != before
        assert plain.read(root)["memory/MEMORY.md"] == b"# Agent Memory\n\n## Project\n- a line\n"


def test_text_fetched_later_gets_its_index_line(tmp_path: Path) -> None:
    plain = Plain(tmp_path)
    with plain.memory:
        plain.memories.write("one", text(1, 1))
        plain.memories.write("two", text(2, 1))
        plain.build()
        (value,) = plain.replica.store.entry("m/one").values()
        assert value.loc is not None
        digest = bytes.fromhex(value.loc.sha)
        plain.forget_all()
        with plain.replica.transaction():
            plain.replica.db.connection.execute("DELETE FROM blocks WHERE digest=?", (digest,))
        plain.build()
        assert "- [one](one.md) — not fetched" in plain.memories.index()
        with plain.replica.transaction():
            plain.replica.db.add_blocks([(digest, text(1, 1))])
        assert "- [Name 1](one.md) — of 1" in plain.memories.index()
        plain.reopen()
        assert "- [Name 1](one.md) — of 1" in plain.read(plain.build())["memory/MEMORY.md"].decode()
