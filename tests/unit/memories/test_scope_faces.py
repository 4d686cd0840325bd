"""Scopes in Python: stacks, redirects, counts, sync reports and invalid input in every mode."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.cli.sync_cmd import paragraph
from ipfsmem.device.state import StateStore
from ipfsmem.errors import (
    ChangedError,
    FormatError,
    IpfsmemError,
    KeyNameError,
    LimitError,
    NotFoundError,
    UsageError,
)
from ipfsmem.files.exporting import export_zip
from ipfsmem.memories.bundle_tree import base_files
from ipfsmem.memories.scopes import Scopes
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from ipfsmem.open_vault.scopes import MemoryScopes
from tests.support.device_lab import Lab, delete
from tests.support.scope_lab import blob, everything_in, said_in


@pytest.fixture(params=["none", "local", "ipfs", "encrypted-ipfs"])
def memory(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Memory]:
    mode: ModeName = request.param
    options: dict[str, Any] = {"passphrase": False} if mode == "encrypted-ipfs" else {}
    if mode == "none":
        made = Memory.load(mode="none")
    else:
        made = Memory.create("m", mode, home=tmp_path / "home", recovery=False, **options)
    with made:
        yield made


def test_every_mode_has_scopes(memory: Memory, tmp_path: Path) -> None:
    """Also the mode `none`."""
    memory.write("tone", "everybody's")
    memory.scope("work").write("tone", "the project's", description="d")
    assert isinstance(memory.scopes, MemoryScopes)
    memory.scopes.make("alex", title="Alex", kind="user")
    memory.scope("alex").write("likes", "tea")
    memory.scope("work").note("waved")
    memory.note("waved")
    stack = memory.stack("work", "alex")
    assert stack.scopes == ["work", "alex", ""]
    assert [(item.key, item.scope) for item in stack.list()] == [("likes", "alex"), ("tone", "work")]
    found = stack.read("likes")
    assert found is not None and (found.scope, found.file.body) == ("alex", "tea")
    assert [*stack.timeline.read().scopes] == ["work", ""]
    assert memory.stack("alex", "work").scopes == ["alex", "work", ""] and memory.stack().scopes == [""]
    counts = {one.scope: (one.memories, one.events) for one in memory.status().scopes}
    assert counts == {"": (1, 1), "alex": (1, 0), "work": (1, 1)}
    before = everything_in(memory)
    out = io.BytesIO()
    memory.bundles.export_zip(out)
    (tmp_path / "all.zip").write_bytes(out.getvalue())
    with Memory.load(mode="none") as other:
        other.bundles.import_(tmp_path / "all.zip")
        assert everything_in(other) == before
    memory.scopes.forget("alex")
    assert memory.scopes.names() == ["work"]
    assert memory.stack("work", "alex").read("likes") is None
    memory.scopes.restore("alex")
    assert memory.scope("alex").list().memories == ()


def test_redirected_scope_is_read_below_its_target(memory: Memory) -> None:
    """Nothing moves, and a partial write does not hide the text below behind an empty one."""
    memory.scope("tmp").write("tone", "old", description="d")
    memory.scope("tmp").write("only", "there")
    memory.scopes.make("api")
    memory.scopes.redirect("tmp", "api")
    api, tmp = memory.scope("api"), memory.scope("tmp")
    read = api.read("tone")
    assert read is not None and read.scope == "tmp"
    assert [(item.key, item.scope) for item in api.list()] == [("only", "tmp"), ("tone", "tmp")]
    with pytest.raises(ChangedError):
        api.write("tone", "new", if_match="")
    with pytest.raises(ChangedError):
        api.write("tone", "new", seen="0" * 16)
    with pytest.raises(ChangedError):
        api.write("tone", "new", seen=("0" * 16 + "-1",))
    for given in (read, read.seen, read.token, None):
        made = tmp.write("tone", description="better", seen=given)
        assert (made.scope, made.file.body) == ("api", "old")
        assert memory._memories.in_scope("tmp").read("tone") is not None
        delete(memory, "tone", "api")
    made = tmp.write("tone", "new", if_match=read.sha256)
    assert made.scope == "api" and tmp.note("waved") in api.timeline.read()
    assert api.index().count("](tone.md)") == 1 and "only" not in api.index()
    assert api.forget("tone") and api.read("tone") is None and tmp.read("tone") is None
    assert api.forget("only") and not api.forget("only")
    tmp.bundles.import_(blob({"taken.md": "in\n"}))
    assert [item.scope for item in tmp.list()] == [] and said_in(api, "taken") == "in"
    memory.scopes.redirect("tmp", None)
    assert tmp.write("tone", "apart").scope == "tmp" and api.read("tone") is None


def test_pending_text_of_a_lower_scope_is_not_adopted_by_an_edit(memory: Memory) -> None:
    """Format section 5.2."""
    memory.scope("tmp").bundles.import_(blob({"tone.md": "of others\n"}), foreign=True)
    memory.scopes.make("api")
    memory.scopes.redirect("tmp", "api")
    api = memory.scope("api")
    read = api.read("tone")
    assert read is not None and not read.own
    with pytest.raises(UsageError, match="is pending"):
        api.write("tone", description="mine now")
    copied = api.write_text("tone", read.data)
    assert not copied.own and copied.scope == "api"


def test_changed_scope_card_applies_at_once(lab: Lab) -> None:
    """A redirect from another device applies with the sync that receives it."""
    a = lab.create("a")
    a.scope("tmp").write("tone", "t")
    a.scopes.make("api")
    b = lab.restore("b") if lab.sync(a) else a
    part = b.scope("api")
    assert part.read("tone") is None
    a.scopes.redirect("tmp", "api")
    lab.settle(a, b)
    assert said_in(part, "tone") == "t"
    a.scopes.forget("tmp")
    lab.settle(a, b)
    assert part.read("tone") is None


def test_sync_reports_the_scopes_that_changed(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    a.write("self", "s")
    for key in ("one", "two"):
        a.scope("work").write(key, "w")
    lab.sync(a)
    report = lab.sync(b)
    assert report.changed_in == {"": 1, "work": 3}  # two memories, and the card of the scope
    assert report.entries_changed == 4
    assert "4 changes (3 in work, 1 in none) from " in paragraph(report)
    a.write("self", "again")
    lab.sync(a)
    assert "(" not in paragraph(lab.sync(b)).split(" from ")[0]
    assert [(one.scope, one.memories) for one in b.status().scopes] == [("", 1), ("work", 2)]


def test_foreign_bundle_hides_no_text_of_other_own_devices(lab: Lab, tmp_path: Path) -> None:
    """A forget of a key unknown to this device would hide what another own device wrote."""
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    b.write("tone", "of b, not synced yet")
    for number, texts in enumerate(({}, {"tone.conflict-00000000.md": b"bait\n"})):
        files = base_files("", texts, [], "", card=None, forgotten=["tone", "music"])
        with (tmp_path / f"{number}.zip").open("wb") as out:
            export_zip(out, files)
        done = a.bundles.import_(tmp_path / f"{number}.zip", foreign=True)
        assert done.added == 0 and len(done.problems) == len(texts)
        assert a.bundles.import_(tmp_path / f"{number}.zip", foreign=True).problems == done.problems
    lab.settle(a, b)
    assert said_in(a, "tone") == said_in(b, "tone") == "of b, not synced yet"
    assert not a.conflicts()


LONG = "x" * 65
ODD = ["Work", "a b", "../x", "a/b", "-x", "_x", "", "x\n", "x\0", "wörk", "ｗork", LONG, "2026-04-14", "timeline", "all", "memory", "con"]  # fmt: skip


@pytest.mark.parametrize("bad", ODD)
def test_invalid_scope_is_refused_everywhere_and_nothing_is_written(tmp_path: Path, bad: str) -> None:
    """The empty scope is accepted only where the default scope is meant."""
    with Memory.create("m", "local", home=tmp_path / "home") as memory:
        memory.scopes.make("work")
        before = memory.replica.store.frame, sorted(memory.replica.store.names())
        calls = [
            lambda: memory.scopes.make(bad),
            lambda: memory.scopes.redirect("work", bad),
            lambda: memory.scopes.redirect(bad, "work"),
            lambda: memory.scopes.title(bad, "t"),
            lambda: memory.scopes.forget(bad),
            lambda: memory.scopes.restore(bad),
            lambda: memory.scopes.get(bad),
        ]
        if bad:
            calls += [
                lambda: memory.scope(bad),
                lambda: memory.stack(bad),
                lambda: memory.stack("work", bad),
                lambda: memory.folders.attach(tmp_path, scope=bad),
                lambda: memory.bundles.import_(blob({"a.md": "x"}), maps={"": bad}),
                lambda: memory.bundles.import_(blob({"a.md": "x"}), maps={bad: "work"}),
            ]
        for number, call in enumerate(calls):
            with pytest.raises((KeyNameError, UsageError, NotFoundError)) as refused:
                call()
            assert bad == "" or "\n" not in str(refused.value), number
        assert (memory.replica.store.frame, sorted(memory.replica.store.names())) == before


@pytest.mark.parametrize("title", ["", "x" * 129, "a\x00b", "a\nb", "a\x9bb", "\ud800"])
def test_invalid_scope_title_is_refused(tmp_path: Path, title: str) -> None:
    with Memory.create("m", "local", home=tmp_path / "home") as memory:
        for call in (
            lambda: memory.scopes.make("work", title=title),
            lambda: memory.scopes.title("o", title),
        ):
            memory.scope("o").write("k", "v")
            with pytest.raises(UsageError if title == "\ud800" else (FormatError, LimitError)):
                call()
        assert memory.scopes.get("work") is None and memory.scopes.list()[0].title == "o"


def test_invalid_calls_on_an_existing_scope_are_refused(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path / "home") as memory:
        memory.scopes.make("a")
        memory.scopes.make("b")
        memory.scope("gone").write("k", "v")
        memory.scopes.forget("gone")
        wrong: list[tuple[type[IpfsmemError], Any]] = [
            (UsageError, lambda: memory.scopes.make("a")),
            (NotFoundError, lambda: memory.scopes.make("gone")),
            (UsageError, lambda: memory.scopes.redirect("a", "a")),
            (NotFoundError, lambda: memory.scopes.redirect("a", "gone")),
            (NotFoundError, lambda: memory.scopes.redirect("gone", "a")),
            (NotFoundError, lambda: memory.scopes.redirect("a", "never")),
            (NotFoundError, lambda: memory.scopes.forget("gone")),
            (NotFoundError, lambda: memory.scopes.restore("a")),
            (NotFoundError, lambda: memory.scopes.restore("gone", "bafybeinothing")),
            (NotFoundError, lambda: memory.scope("gone").write("k", "v")),
            (NotFoundError, lambda: memory.scope("gone").note("waved")),
            (NotFoundError, lambda: memory.scope("gone").bundles.import_(blob({"k.md": "v"}))),
        ]
        for error, call in wrong:
            with pytest.raises(error):
                call()
        memory.scopes.redirect("a", "b")
        with pytest.raises(UsageError):
            memory.scopes.redirect("b", "a")
        assert (
            Scopes(memory.replica).stack("b") == ["b", "a"] and memory.scope("a").write("k", "v").scope == "b"
        )


@pytest.mark.slow
def test_thousands_of_scopes_do_not_slow_a_read(tmp_path: Path) -> None:
    """Redirects are not resolved again for each read."""
    import time

    with Memory.create("m", "local", home=tmp_path / "home") as memory:
        files = {f"scopes/s{i}/memory/k.md": b"%d\n" % i for i in range(1500)}
        with (tmp_path / "many.zip").open("wb") as out:
            export_zip(out, files)
        memory.bundles.import_(tmp_path / "many.zip")
        part = memory.scope("s7")
        part.read("k")
        spent = []
        for handle in (part, memory):
            started = time.process_time()
            for _ in range(200):
                handle.read("k")
            spent.append(time.process_time() - started)
        assert spent[0] < 4 * spent[1] + 0.1, spent


def test_scope_list_scans_entries_once_for_any_number_of_redirects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: dict[int, list[int]] = {}
    texts = StateStore.texts

    def counted(store: StateStore, *, readable: bool = False) -> Iterator[tuple[str, bytes]]:
        seen[0] += 1
        return texts(store, readable=readable)

    monkeypatch.setattr(StateStore, "texts", counted)
    for many in (3, 24):
        with Memory.load(mode="none") as memory:
            memory.scope("one").write("own", "text")
            for n in range(many):
                part = memory.scope(f"s{n:02}")
                part.write(f"k{n}", f"text {n}")
                part.note("waved")
                memory.scopes.redirect(f"s{n:02}", "one")
            one, looks[many] = memory.scope("one"), []
            for asks in (one.list, one.timeline.read, memory.stack("one").list):
                seen = [0]
                assert len(asks()) >= many
                looks[many] += seen
    assert looks[3] == looks[24]
