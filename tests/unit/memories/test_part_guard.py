"""No change of a single session part approves imported messages, by any operation on any device."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.bundle.memory_file import MAX_FILE
from ipfsmem.device.state import StateStore
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.memories.importing import is_cut_off
from ipfsmem.memory import Memory
from ipfsmem.sessions.compaction import approved_mark, imported_mark
from ipfsmem.testing import SimCloud, SimProvider
from tests.cli.test_cli_promote import conversation_database
from tests.support.device_lab import load
from tests.unit.memories.test_pending_in_contexts import PENDING, UNLOCK, given, taken_in

REFUSED = "a person's decision"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.create("default", "local", home=tmp_path / "home") as memory:
        yield memory


@pytest.fixture
def published(tmp_path: Path) -> Iterator[Memory]:
    """A vault that keeps earlier revisions."""
    with load(tmp_path, "a", SimProvider(SimCloud()), wallet=UNLOCK) as memory:
        yield memory


def pending(memory: Memory) -> int:
    return len(memory.sessions.told("talk").pending)


def other_part(memory: Memory, key: str, *said: dict[str, object]) -> tuple[str, bytes]:
    """Return key and text of another part of the session of this part, with these lines, dated after all
    of its own."""
    file = memory.files()[key].decode()
    header = file[: file.index("\n---\n", 4) + 5]
    last = max(json.loads(line)["at"] for line in file[len(header) :].splitlines() if line)
    lines = [json.dumps({"at": last + 10 + n, "n": 0} | one) for n, one in enumerate(said)]
    return f"{key.rpartition('-')[0]}-20", "\n".join([header, *lines, ""]).encode()


def approval(key: str) -> dict[str, object]:
    return {"item": approved_mark([(2**53 - 1, key.rsplit("-", 2)[1], 0)])}


def no_mark(memory: Memory, key: str) -> dict[str, object]:
    """Return the line that removes the mark in this part."""
    (mark,) = (json.loads(one) for one in memory.files()[key].decode().splitlines() if '"imported"' in one)
    return {"gone": [mark["at"], key.rsplit("-", 2)[1], mark["n"]]}


def approved_by_person(memory: Memory) -> dict[str, tuple[str, str]]:
    """Approve all messages; return the changed parts with their SHA-256 before ("" for a new one) and
    after."""
    asyncio.run(memory.sync())
    before = {key: reading.sha256 for key in memory.files() if (reading := memory.read(key))}
    memory.approve(source="initrunner")
    asyncio.run(memory.sync())
    after = {key: reading.sha256 for key in memory.files() if (reading := memory.read(key))}
    return {key: (before.get(key, ""), sha) for key, sha in after.items() if before.get(key) != sha}


def without_approval(memory: Memory, changed: dict[str, tuple[str, str]]) -> None:
    """Restore the parts as they were before the approval, which any user may do."""
    for key, (before, _) in changed.items():
        if before:
            memory.restore(key, sha256=before)
        else:
            memory.forget(key)


def test_restored_approval_is_refused_and_cannot_be_undone(published: Memory, tmp_path: Path) -> None:
    taken_in(published, tmp_path / "agent.db")
    changed = approved_by_person(published)
    assert given(published) == {"", "work", "home"} and len(changed) == 1
    without_approval(published, changed)
    assert given(published) == set() and pending(published) == len(PENDING)
    for key, (_, approved) in changed.items():
        with pytest.raises(UsageError, match=REFUSED):
            published.restore(key, sha256=approved)
    with pytest.raises(UsageError, match=REFUSED):
        published.undo()
    assert given(published) == set() and pending(published) == len(PENDING)


def test_restored_text_does_not_remove_the_import_mark(published: Memory, tmp_path: Path) -> None:
    mark = taken_in(published, tmp_path / "agent.db")
    key, text = other_part(published, mark, no_mark(published, mark))
    _, plain = other_part(published, mark)
    changed = approved_by_person(published)
    gone = published.write_text(key, text)  # of approved messages the mark may be removed
    asyncio.run(published.sync())
    published.write_text(key, plain)
    asyncio.run(published.sync())
    without_approval(published, changed)
    with pytest.raises(UsageError, match=REFUSED):
        published.restore(key, sha256=gone.sha256)
    assert given(published) == set() and pending(published) == len(PENDING)


@pytest.mark.parametrize("what", ["approval", "import"])
def test_undo_of_approval_or_import_is_refused(what: str, memory: Memory, tmp_path: Path) -> None:
    memory.write("note", "A text of before")
    taken_in(memory, tmp_path / "agent.db")
    if what == "approval":
        memory.sessions.approve("talk")
    before = pending(memory)
    with pytest.raises(NotFoundError, match="cannot be"):
        memory.undo()
    assert pending(memory) == before


@pytest.mark.parametrize("line", ["approval", "mark gone"])
def test_settled_conflict_does_not_approve(line: str, memory: Memory, tmp_path: Path) -> None:
    mark = taken_in(memory, tmp_path / "agent.db")
    key, plain = other_part(memory, mark)
    memory.write_text(key, plain)
    shown = memory.read(key)
    assert shown is not None
    said = approval(mark) if line == "approval" else no_mark(memory, mark)
    with pytest.raises(UsageError, match=REFUSED):
        memory.resolve(key, other_part(memory, mark, said)[1], seen=shown)
    assert given(memory) == set() and pending(memory) == len(PENDING)


def test_session_part_in_linked_folder_is_refused(tmp_path: Path) -> None:
    """The other files of the folder come in."""
    folder = tmp_path / "notes"
    folder.mkdir()
    with Memory.create("default", "local", home=tmp_path / "home") as memory:
        mark = taken_in(memory, tmp_path / "agent.db")
        key, text = other_part(memory, mark, approval(mark))
        memory.folders.attach(folder)
        (folder / f"{key}.md").write_bytes(text)
        (folder / "plain.md").write_text("A plain note")
        memory.folders.ingest_edits()
        assert given(memory) == set() and pending(memory) == len(PENDING)
        assert memory.read("plain") is not None and memory.read(key) is None
        assert [REFUSED in notice for notice in memory.folders.notices(str(folder))] == [True]


@pytest.mark.parametrize("strategy", ["merge", "replace"])
@pytest.mark.parametrize("line", ["approval", "mark gone"])
def test_imported_part_does_not_approve(line: str, strategy: str, memory: Memory, tmp_path: Path) -> None:
    mark = taken_in(memory, tmp_path / "agent.db")
    said = approval(mark) if line == "approval" else no_mark(memory, mark)
    key, text = other_part(memory, mark, said)
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / f"{key}.md").write_bytes(text)
    (bundle / "plain.md").write_text("A plain note")
    done = memory.bundles.import_(bundle, strategy=strategy)  # type: ignore[arg-type]
    assert [REFUSED in one for one in done.problems] == [True]
    assert memory.read("plain") is not None
    assert given(memory) == set() and pending(memory) == len(PENDING)


def test_approve_of_foreign_session_part_is_refused(memory: Memory, tmp_path: Path) -> None:
    mark = taken_in(memory, tmp_path / "agent.db")
    key, text = other_part(memory, mark, approval(mark))
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / f"{key}.md").write_bytes(text)
    memory.bundles.import_(bundle, foreign=True)
    with pytest.raises(UsageError, match=REFUSED):
        memory.approve(key)
    assert given(memory) == set() and pending(memory) == len(PENDING)


@pytest.mark.parametrize("kind", ["approved", "imported"])
def test_add_of_import_or_approval_mark_is_refused(kind: str, memory: Memory, tmp_path: Path) -> None:
    """It would hide own messages from agents."""
    device = taken_in(memory, tmp_path / "agent.db").rsplit("-", 2)[1]
    mark = (
        approved_mark([(2**53 - 1, device, 0)])
        if kind == "approved"
        else imported_mark("x", device, (0, 0), (2**53 - 1, 0))
    )
    with pytest.raises(UsageError, match="only a person approves" if kind == "approved" else "an import"):
        memory.sessions.add("talk", [mark])
    assert pending(memory) == len(PENDING)


def test_merge_approves_only_what_the_approving_device_saw(tmp_path: Path) -> None:
    """The copy imported on the other device stays pending."""
    provider = SimProvider(SimCloud())
    a, b = (load(tmp_path, name, provider, wallet=UNLOCK) for name in "ab")
    with a, b:
        a.bundles.import_from(
            "initrunner", conversation_database(tmp_path / "a.db", "Otters like rain.", "More.")
        )
        asyncio.run(a.sync())
        b.bundles.import_from(
            "initrunner", conversation_database(tmp_path / "b.db", "Otters like hail.", "More.")
        )
        a.sessions.approve("talk")
        for device in (b, a, b):
            asyncio.run(device.sync())
        for device in (a, b):
            told = device.sessions.told("talk")
            whose = {
                str(one.item["parts"][0]["content"]): one.place not in told.pending for one in told.messages
            }
            assert whose["Otters like rain."] and not whose["Otters like hail."]


def test_concurrent_forget_and_approval_approves_nothing(tmp_path: Path) -> None:
    provider = SimProvider(SimCloud())
    a, b = (load(tmp_path, name, provider, wallet=UNLOCK) for name in "ab")
    with a, b:
        taken_in(a, tmp_path / "a.db")
        for device in (a, b):
            asyncio.run(device.sync())
        a.sessions.approve("talk")
        assert b.sessions.forget("talk")
        for device in (b, a, b):
            asyncio.run(device.sync())
        assert given(a) == given(b) == set()
        assert not a.sessions.items("talk").items and not b.sessions.items("talk").items


def test_part_of_a_forgotten_session_is_not_restored_without_the_mark(
    published: Memory, tmp_path: Path
) -> None:
    mark = taken_in(published, tmp_path / "agent.db")
    asyncio.run(published.sync())
    texts = {key: reading.sha256 for key in published.files() if (reading := published.read(key))}
    others = [key for key in texts if key != mark]
    published.sessions.forget("talk")
    asyncio.run(published.sync())
    for key in others:
        with pytest.raises(UsageError, match="that nobody approved"):
            published.restore(key, sha256=texts[key])
    assert given(published) == set()
    for key in (mark, *others):
        published.restore(key, sha256=texts[key])
    assert given(published) == set() and pending(published) == len(PENDING)


def test_approved_part_of_a_forgotten_session_is_restored(published: Memory, tmp_path: Path) -> None:
    mark = taken_in(published, tmp_path / "agent.db")
    first = next(key for key in published.files() if key.startswith("session-") and key != mark)
    reading = published.read(first)
    assert reading is not None
    approved_by_person(published)
    published.sessions.forget("talk")
    asyncio.run(published.sync())
    published.restore(first, sha256=reading.sha256)
    assert published.sessions.told("talk").messages and not pending(published)


def test_restored_scope_omits_messages_whose_mark_is_missing(
    published: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages of another device in the same session are restored."""
    mark = taken_in(published, tmp_path / "agent.db", "work")
    work = published.scope("work")
    imported, text = len(work.files()), work.files()[mark].decode()
    header = text[: text.index("\n---\n", 4) + 5]
    said = {"at": 1, "item": {"role": "user", "content": "Said on another device."}}
    beside = f"{mark.rsplit('-', 2)[0]}-{'0' * 16}-0"
    work.write_text(beside, f"{header}{json.dumps(said)}\n".encode())
    asyncio.run(published.sync())
    root = published.versions.list()[0].root
    published.scopes.forget("work")
    body = StateStore.body
    with monkeypatch.context() as at_fault:
        at_fault.setattr(
            StateStore, "body", lambda store, name, value: None if mark in name else body(store, name, value)
        )
        restored = published.scopes.restore("work", root)
    assert list(published.scope("work").files()) == [beside] and given(published) == set()
    assert (restored.memories, restored.not_fetched) == (1, imported)


def test_part_that_ends_with_a_long_number_is_complete() -> None:
    key = "session-a-0123456789abcdef-0"
    part = b"---\nname: Talk\ntype: session\nsession: a\n---\n\n" + b'{"item":{"size":' + b"9" * 5000
    assert not is_cut_off(key, part + b"}}\n")
    assert is_cut_off(key, part)


@pytest.mark.parametrize("program", ["", "three-ws"])
@pytest.mark.parametrize(
    "fault", ["too long", "not UTF-8", "cut off", "lone surrogate in a blob", "no text in a blob"]
)
def test_bundle_without_the_marked_part_imports_no_earlier_message(
    fault: str, program: str, memory: Memory, tmp_path: Path
) -> None:
    mark = taken_in(memory, tmp_path / "agent.db")
    later, text = other_part(memory, mark, {"item": {"role": "user", "content": "Said later."}})
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    files = {**memory.files(), later: text}
    for key, data in files.items():
        if key == mark:
            more = b"x" * 2 * MAX_FILE if fault == "too long" else b"\xff"
            data = data.rstrip()[:-3] if fault == "cut off" else data + more
        (bundle / f"{key}.md").write_bytes(data)
    if fault.endswith("blob"):
        spoilt = None if fault.startswith("no text") else "\ud800"
        texts = {f"{key}.md": spoilt if key == mark else data.decode() for key, data in files.items()}
        bundle = tmp_path / "bundle.json"
        bundle.write_text(json.dumps({"version": "memory/0.1", "files": texts}))
    with Memory.create("default", "local", home=tmp_path / "fresh") as fresh:
        done = fresh.bundles.import_from(program, bundle) if program else fresh.bundles.import_(bundle)
        assert given(fresh) == set() and list(fresh.files()) == [later]
        assert len(done.problems) == len(memory.files())
