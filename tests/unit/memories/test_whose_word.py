"""Owner of a text (format section 5.2), on real devices of two persons."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipfsmem.causal.value import FOREIGN, LIVE, Value, dot
from ipfsmem.device.collection import collect
from ipfsmem.device.tables import held_texts
from ipfsmem.device.texts_of_others import keep_own
from ipfsmem.device.writing import writing
from ipfsmem.errors import IncompleteError, NotFoundError, UsageError
from ipfsmem.memories import recall
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from ipfsmem.sync.identity import adopt_orphans
from tests.support.device_lab import ROOT, Lab, all_texts, body, delete, of_another, text_of, texts

TEXT = b"---\nname: Role\n---\n\nlikes tea\n"


def two(lab: Lab) -> tuple[Memory, Memory]:
    """Return devices of two persons."""
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    of_another(a, b)
    lab.settle(a, b)
    assert not a.replica.is_mine(b.device) and not b.replica.is_mine(a.device)
    return a, b


def of(memory: Memory, key: str) -> set[str]:
    with memory.replica.reading():
        return {value.author for value in memory.replica.store.entry(f"m/{key}").values()}


def test_partial_write_adopts_no_pending_text(lab: Lab) -> None:
    """Omitted fields come from the shown text, which is not the user's own."""
    a = lab.create("a")
    a.bundles.import_(
        json.dumps({"version": "memory/0.1", "files": {"role.md": TEXT.decode()}, "timeline": []}),
        foreign=True,
    )
    with pytest.raises(UsageError, match="is pending"):
        a.write("role", description="tea")
    assert body(a, "role") == "likes tea"
    a.write("role", "likes coffee", description="coffee")
    assert texts(a) == {"role": {"likes tea", "likes coffee"}}


def test_header_write_through_redirect_to_pending_text_is_refused(lab: Lab) -> None:
    a = lab.create("a")
    a.scopes.make("store")
    store = a.scope("store")
    store.bundles.import_(
        json.dumps({"version": "memory/0.1", "files": {"role.md": TEXT.decode()}, "timeline": []}),
        foreign=True,
    )
    a.scopes.make("shop")
    a.scopes.redirect("shop", "store")
    with pytest.raises(UsageError, match="is pending"):
        a.scope("shop").write("role", description="tea")
    assert texts(a, "store") == {"role": {"likes tea"}} and not texts(a, "shop")


def test_pending_text_is_read_and_listed_but_not_in_the_index(lab: Lab) -> None:
    a, b = two(lab)
    b.write("role", "likes tea", name="Role of b", description="tea")
    lab.settle(a, b)
    reading = a.read("role")
    assert reading is not None and not reading.own
    assert [(item.key, item.own) for item in a.list()] == [("role", False)]
    assert "role" not in a.index() and "tea" not in a.index()
    assert "Role of b" in b.index()
    (found,) = a.conflicts()
    assert found.key == "role" and found.shown is not None and not found.shown.own and not found.copies
    assert not b.conflicts()


def test_pending_text_rewritten_by_an_agent_stays_pending(lab: Lab) -> None:
    """Also under another key, after a deletion, and with the token of its reading."""
    a, b = two(lab)
    b.write_text("role", TEXT)
    lab.settle(a, b)
    reading = a.read("role")
    assert reading is not None
    a.write_text("copied", reading.data)
    assert of(a, "copied") == {b.device} and "copied" not in a.index()
    a.write("role", "likes tea very much", seen=reading)
    assert of(a, "role") == {b.device}
    assert delete(b, "role")
    lab.settle(a, b)
    a.write_text("later", TEXT)
    assert of(a, "later") == {b.device}
    lab.settle(a, b)
    # For b it is signed by a stranger; a text with the same bytes of its own is b's.
    assert b.read("later").own is False
    b.write_text("mine", TEXT)
    assert b.read("mine").own is False
    with writing(b.replica) as change:
        change.put("m/own", TEXT, (), promoted=True)
    b.write_text("again", TEXT)
    assert of(b, "again") == {""} and b.read("again").own


def test_new_text_is_added_next_to_a_pending_one_of_the_same_key(lab: Lab) -> None:
    a, b = two(lab)
    b.write("role", "of b")
    lab.settle(a, b)
    a.write("role", "of a", name="A")
    assert body(a, "role") == "of a" and "[A](role.md)" in a.index()
    (found,) = a.conflicts()
    assert [copy.reading.own for copy in found.copies] == [False]
    lab.settle(a, b)
    assert body(b, "role") == "of b"


def test_merge_of_one_foreign_line_makes_the_file_pending(lab: Lab) -> None:
    a, b = two(lab)
    with writing(a.replica) as change:
        change.put("m/list", b"one\ntwo\nthree\n", ())
    lab.settle(a, b)
    seen = b.read("list")
    assert seen is not None
    a.write_text("list", b"ONE\ntwo\nthree\n")
    b.write_text("list", b"one\ntwo\nTHREE\n", seen=seen)
    lab.settle(a, b)
    assert a.read("list").data == b"ONE\ntwo\nthree\n"
    assert MemoryStore(a.replica).whole_view("list").data == b"ONE\ntwo\nTHREE\n"
    (found,) = a.conflicts()
    assert a.read("list", alternative=found.files[0]).data == b"one\ntwo\nTHREE\n"
    # An edit of the present text replaces only that.
    a.write_text("list", b"ONE!\ntwo\nthree\n")
    assert a.read("list").own and a.read("list").data == b"ONE!\ntwo\nthree\n"
    assert MemoryStore(a.replica).whole_view("list").data == b"ONE!\ntwo\nTHREE\n"
    assert a.approve("list") and a.read("list").data == b"one\ntwo\nTHREE\n"
    assert not a.conflicts()


def test_own_text_replaced_by_another_person_stays_shown(lab: Lab) -> None:
    """Otherwise any edit would hide a memory from everybody else's agents."""
    a, b = two(lab)
    with writing(a.replica) as change:
        change.put("m/list", b"one\ntwo\nthree\n", ())
        change.put("m/gone", b"to be deleted\n", ())
    lab.settle(a, b)
    b.write_text("list", b"one\ntwo\nTHREE\n", seen=b.read("list"))
    delete(b, "gone", seen=b.read("gone").token)
    lab.settle(a, b)
    assert a.read("list").own and a.read("list").data == b"one\ntwo\nthree\n"
    assert "(list.md)" in a.index() and a.read("gone") is None
    assert [item.key for item in a.list() if item.own] == ["list"]
    (found,) = a.conflicts()
    assert found.key == "list" and a.read("list", alternative=found.files[0]).data == b"one\ntwo\nTHREE\n"
    with a.replica.transaction():
        a.replica.store.checkpoint(folders=True)
        collect(a.replica.store, (), dry_run=False)
    assert a.read("list").data == b"one\ntwo\nthree\n"
    # An edit starts from it and merges with the other person's edit.
    a.write_text("list", b"ONE\ntwo\nthree\n")
    assert a.read("list").own and a.read("list").data == b"ONE\ntwo\nthree\n"
    assert MemoryStore(a.replica).whole_view("list").data == b"ONE\ntwo\nTHREE\n"
    # A text of a that b replaced belongs to neither person alone.
    lab.settle(a, b)
    assert b.read("list").data == b"ONE\ntwo\nTHREE\n" and not b.read("list").own


def test_text_forgotten_elsewhere_concurrently_stays_and_is_listed(lab: Lab) -> None:
    a, b = two(lab)
    with writing(a.replica) as change:
        change.put("m/role", b"one\n", ())
    lab.settle(a, b)
    a.write_text("role", b"two\n")
    b.forget("role")
    lab.settle(a, b)
    assert a.read("role").data == b"two\n" and MemoryStore(a.replica).whole_view("role").forgotten
    (found,) = a.conflicts()
    assert a.resolve("role", keep=True, seen=found).shown.data == b"two\n"
    assert not a.conflicts() and not MemoryStore(a.replica).whole_view("role").forgotten


def test_approve_makes_a_text_the_users_own(lab: Lab) -> None:
    """Only this operation writes without `author`; it replaces only the shown text."""
    a, b = two(lab)
    b.write_text("role", TEXT)
    lab.settle(a, b)
    assert a.approve("role") and a.read("role").own and a.read("role").data == TEXT and of(a, "role") == {""}
    assert "[Role](role.md)" in a.index() and not a.conflicts()
    assert a.approve("role") and a.read("role").own  # nothing to do
    with pytest.raises(NotFoundError):
        a.approve("nothing")
    with pytest.raises(NotFoundError, match="has no pending text"):
        a.approve("role", alternative="role.conflict-00000000.md")


def test_foreign_text_is_foreign_on_all_own_devices(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    with writing(a.replica) as change:
        change.put("m/said", b"in a chat\n", (), of="foreign")
        change.write_alternative("m/heard", b"elsewhere\n", of="foreign")
    lab.settle(a, b)
    for memory in (a, b):
        assert "said" not in memory.index() and not memory.read("said").own and not memory.read("heard").own
    b.write_text("said", b"in a chat\n", seen=b.read("said"))
    b.write_text("copy", b"in a chat\n")
    assert of(b, "copy") == {"foreign"}


def test_digest_of_a_state_is_the_same_for_every_person(lab: Lab) -> None:
    a, b = two(lab)
    a.write("x", "1")
    b.write("x", "2")
    lab.settle(a, b)
    digests = set()
    for memory in (a, b):
        with memory.replica.transaction():
            digests.add(memory.replica.store.checkpoint(folders=True).digest)
    assert len(digests) == 1
    assert asyncio.run(a.sync()) and a.status().root == b.status().root
    whole = [MemoryStore(memory.replica).whole_view("x") for memory in (a, b)]
    assert whole[0] == whole[1]


def test_owner_of_a_text_may_become_known_later(lab: Lab) -> None:
    """A text received before its ring counts as pending from then on."""
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    b.write_text("role", TEXT)
    lab.settle(a, b)
    assert a.read("role").own and "role" in a.index()
    of_another(a, b)
    lab.settle(a, b)
    assert not a.read("role").own and "role" not in a.index()
    delete(b, "role")
    lab.settle(a, b)
    a.write_text("copy", TEXT)
    assert of(a, "copy") == {b.device}


def test_restored_device_recognises_texts_of_its_own_person(lab: Lab) -> None:
    a, b = two(lab)
    a.write_text("mine", b"of a\n")
    b.write_text("theirs", b"of b\n")
    lab.settle(a, b)
    c = lab.restore("c")
    lab.settle(a, b, c)
    assert {item.key: item.own for item in c.list()} == {"mine": True, "theirs": False}
    c.write_text("again", b"of a\n")
    c.write_text("taken", b"of b\n")
    assert of(c, "again") == {""} and of(c, "taken") == {b.device}


def test_adopted_text_of_a_revoked_stranger_stays_pending(lab: Lab) -> None:
    """It is listed, but not shown."""
    a, b = two(lab)
    b.write_text("role", TEXT)
    lab.settle(a, b)
    stranger = b.device
    a.unlock(ROOT)
    asyncio.run(a.members.revoke(stranger))
    with a.replica.transaction():
        adopt_orphans(a.replica, {stranger}, unsure=False)
    assert of(a, "role") == {stranger}
    with a.replica.reading():
        assert {dot[:16] for dot in a.replica.store.entry("m/role")} == {a.device}
    assert not a.read("role").own and "role" not in a.index()
    lab.sync(a)
    c = lab.restore("c")
    assert not c.read("role").own


# -- transfers between vaults -----------------------------------------------------------------------------------------


def _mixed(lab: Lab) -> Memory:
    """A device with an own text, a foreign one, a foreign one next to an own one, a promoted foreign one,
    and a text behind a forget."""
    a, b = two(lab)
    b.write("role", "of b", name="Role of b")
    b.write("plan", "plan of b")
    b.write("gone", "gone of b")
    b.write("good", "good of b")
    lab.settle(a, b)
    a.approve("good")
    a.write("tone", "of a")
    a.write("plan", "plan of a")
    a.forget("gone")
    b.write("gone", "gone of b, again")
    lab.settle(a, b)
    assert all_texts(a) == {"of a", "of b", "plan of a", "plan of b", "good of b", "gone of b, again"}
    return a


def _whose(memory: Memory) -> dict[str, set[str]]:
    """Return the reader's own texts, and the others."""
    found: dict[str, set[str]] = {"own": set(), "others": set()}
    with memory.replica.reading():
        for key, entry in memory.replica.store.memories():
            for dot, value in entry.items():
                data = memory.replica.store.body(f"m/{key}", value)
                if data is not None:
                    own = memory._memories.is_own(dot, value.author)
                    found["own" if own else "others"].add(text_of(data))
    return found


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
def test_fork_leaves_pending_texts_pending(lab: Lab, tmp_path: Path, mode: ModeName) -> None:
    a = _mixed(lab)
    more = {} if mode == "local" else {"passphrase": False, "recovery": False}
    with a.fork("copy", mode=mode, home=tmp_path / "f", **more) as copy:
        assert _whose(copy) == _whose(a)
        assert copy.index() == a.index() and "Role of b" not in copy.index()
        assert copy.files() == a.files() and texts(copy) == texts(a)
        assert [(i.key, i.forgotten) for i in copy.conflicts()] == [
            (i.key, i.forgotten) for i in a.conflicts()
        ]


def test_export_marks_pending_texts_and_an_import_respects_it(lab: Lab, tmp_path: Path) -> None:
    a = _mixed(lab)
    with pytest.raises(IncompleteError, match="1 conflict copy"):
        a.bundles.export()  # the text behind the forget
    exported = a.bundles.export(partial=True)
    assert json.loads(exported)["files"].keys() == {"good.md", "plan.md", "tone.md"}
    a.bundles.export_folder(tmp_path / "out", partial=True)
    assert {p.name for p in (tmp_path / "out" / "memory").glob("*.md")} == {
        "MEMORY.md",
        "good.md",
        "plan.md",
        "tone.md",
    }
    for source in (exported, tmp_path / "out"):
        with Memory.create("z", "local", home=tmp_path / str(type(source))) as z:
            z.write("role", "of z")
            done = z.bundles.import_(source)
            assert (done.added, done.kept_beside, done.problems) == (3, 2, ())
            assert _whose(z) == {
                "own": {"of z", "of a", "plan of a", "good of b"},
                # A folder can store a text behind a forget, an export file cannot.
                "others": {"of b", "plan of b", *(["gone of b, again"] if source != exported else [])},
            }
            assert z.read("gone") is None
            assert z.bundles.import_(source).unchanged == 5
            # Replacing everything with it does not make a foreign text the shown one.
            z.bundles.import_(source, strategy="replace")
            assert body(z, "role") == "of z"


def test_fork_of_an_opened_bundle_has_pending_texts(lab: Lab, tmp_path: Path) -> None:
    blob = tmp_path / "blob.json"
    blob.write_text(json.dumps({"files": {"role.md": "---\nname: R\n---\n\nof a stranger"}}), "utf-8")
    (tmp_path / "there").mkdir()
    provider = str(tmp_path / "there")
    with Memory.create(
        "p", "ipfs", home=tmp_path / "p", provider=provider, public_ok=True, recovery=False
    ) as p:
        p.bundles.import_(blob)
        root = asyncio.run(p.sync()).root
    assert root is not None
    with asyncio.run(Memory.open_foreign(root, provider=provider)) as opened:
        assert opened.files().keys() == {"role"}
        with opened.fork("copy", home=tmp_path / "f") as copy:
            assert _whose(copy) == {"own": set(), "others": {"of a stranger"}}


def test_fork_names_texts_over_the_limit(lab: Lab, tmp_path: Path) -> None:
    """A new vault has one device, which may store four texts of one key."""
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    for memory in (a, b):
        for n in range(3):
            memory._memories.restore("tone", f"{memory.device} {n}".encode(), seen=())
    lab.settle(a, b)
    assert len(a.conflicts()[0].copies) == 5
    with pytest.raises(IncompleteError, match="5 conflict copies"):
        a.fork("copy", home=tmp_path / "f")
    assert not (tmp_path / "f").exists()
    with a.fork("copy", home=tmp_path / "f", partial=True) as copy:
        assert len(copy.conflicts()[0].copies) == 3
    for memory in (a, b):
        reading = memory.read("tone")
        memory.forget("tone", seen=reading)
    lab.settle(a, b)
    with a.fork("again", home=tmp_path / "f", partial=True) as copy:
        assert copy.files() == {} and copy.conflicts()[0].forgotten


def test_hit_replaced_by_a_pending_text_is_not_delivered(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may forget and sync between the search and the read."""
    a, b = two(lab)
    a.write("role", "Otters like rain.")
    lab.settle(a, b)
    search = recall.search

    def then_written_by_b(*given: Any, **named: Any) -> recall.Matches:
        found = search(*given, **named)
        a.forget("role")
        lab.settle(a, b)
        b.write("role", "Otters like snow.")
        lab.settle(a, b)
        return found

    monkeypatch.setattr(recall, "search", then_written_by_b)
    assert "snow" not in a.context("otters like", layout="ranked").text
    reading = a.read("role")
    assert reading is not None and not reading.own and "snow" in reading.file.body


def test_kept_own_text_is_dropped_once_an_own_text_is_there_again(lab: Lab) -> None:
    replica = lab.create("a").replica
    db, (first, second) = replica.db.connection, (dot(replica.device.id, n) for n in (1, 2))
    value = Value(b=(), body="0" * 64, h="0" * 16, kind=LIVE)
    own, foreign = {first: value}, {second: msgspec.structs.replace(value, author=FOREIGN)}
    with replica.transaction():
        keep_own(replica, {"m/list": own}, {"m/list": foreign})
        assert len(held_texts.all_kept(db)) == 1
        keep_own(replica, {"m/list": foreign}, {"m/list": own})
        assert not held_texts.all_kept(db)
