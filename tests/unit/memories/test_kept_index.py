"""The search index saved for the next process gives the same answers as one built from the texts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.bundle.index_block import INDEX_KEY
from ipfsmem.causal.value import Entry
from ipfsmem.device import atomic_files, recall_image
from ipfsmem.device.state import StateStore
from ipfsmem.errors import StorageError
from ipfsmem.memories import context, search_index
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.search_index import indexes_of
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from ipfsmem.recall.ranking import Document, Index
from tests.support.device_lab import Lab
from tests.support.effort import cases
from tests.support.hints import hinted

SCOPES = ("", "work", "home")
STACKS: tuple[tuple[str, ...], ...] = ((), ("work",), ("home", "work"))
WORDS = ("tea", "milk", "sugar", "rain", "configuration")


@pytest.fixture(autouse=True)
def each_change_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "_FEW", 0)
    monkeypatch.setattr(search_index, "_STALE", 1)


def images(home: Path) -> list[Path]:
    return sorted(home.rglob("recall*.image"))


def answers(memory: Memory) -> list[Any]:
    """Return everything that a reader sees of it, in each stack."""
    found: list[Any] = []
    for tokens in STACKS:
        stack = memory.stack(*tokens)
        for layout in ("index", "full"):
            block = stack.context("tea milk", layout=layout, max_tokens=20_000)  # type: ignore[arg-type]
            found.append((block.text, block.listed, block.left_out, block.shown))
        for word in (*WORDS, "confi", "tea rain", "zebra"):
            for only in ({}, {"type": "user"}, {"tag": "x"}):
                result = stack.recall(word, limit=50, explain=True, **only)  # type: ignore[arg-type]
                hits = [
                    (
                        hit.scope,
                        hit.key,
                        hit.fields,
                        hit.body,
                        hit.seen,
                        hit.score,
                        hit.parts,
                        hit.words,
                        hit.hides,
                    )
                    for hit in result.hits
                ]
                found.append((tokens, word, hits, result.searched, result.not_fetched))
        for kind in ("event", "message", "all"):
            for word in ("tea", "milk rain"):
                result = stack.recall(word, limit=50, explain=True, kind=kind)
                found.append((kind, [(hit.key, hit.score) for hit in result.hits], result.searched))
                found.append(
                    [
                        (hit.scope, hit.at, hit.type, hit.session, hit.text, hit.score, hit.parts)
                        for hit in result.moments
                    ]
                )
    return found


step = st.one_of(
    st.tuples(
        st.sampled_from(SCOPES),
        st.sampled_from("abcdef"),
        st.sampled_from(WORDS),
        st.sampled_from(("user", "project")),
    ),
    st.tuples(st.sampled_from(SCOPES), st.sampled_from("abcdef")),
    st.tuples(st.sampled_from(SCOPES), st.sampled_from(("note", "say", "unsay")), st.sampled_from(WORDS)),
    st.sampled_from(["open again", "ask", "next day"]),
)


def blocks(memory: Memory) -> list[Any]:
    """Return the blocks at the start of a session, in each stack and with room for all, some or one."""
    return [
        (layout, tokens, room, memory.stack(*tokens).context(layout=layout, max_tokens=room))  # type: ignore[arg-type]
        for layout in ("index", "full")
        for tokens in STACKS
        for room in (200, 250, 20_000)
    ]


@settings(max_examples=cases(6, 60), deadline=None)
@given(st.data(), st.sampled_from(["local", "encrypted-ipfs"]))
def test_answers_are_the_same_with_and_without_a_saved_index(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, mode: str
) -> None:
    lab = Lab(tmp_path_factory.mktemp("lab"))
    home = lab.home("a")
    try:
        memory = lab.create("a") if mode == "encrypted-ipfs" else lab_local(lab)
        for n, one in enumerate(data.draw(st.lists(step, max_size=14))):
            if one == "ask":
                answers(memory)
            elif one == "next day":
                lab.clock.advance(timedelta(days=40).total_seconds())
            elif one == "open again":
                memory = reopened(lab, memory, mode)
            elif len(one) == 4:
                scope, key, word, kind = one
                there = memory.scope(scope) if scope else memory
                fields = {"decay": "30d"} if n % 3 == 0 else {}
                there.write(key, f"{word} {n}", type=kind, tags=["x"] if n % 2 else [], fields=fields)
            elif len(one) == 3:
                scope, what, word = one
                there = memory.scope(scope) if scope else memory
                if what == "note":
                    there.note(word, about=[f"{word} and milk {n}"])
                elif what == "say":
                    there.sessions.add(f"talk of {n % 2}", [{"role": "user", "content": f"{word} {n}"}])
                else:
                    there.sessions.forget("talk of 0")
            else:
                scope, key = one
                (memory.scope(scope) if scope else memory).forget(key)
        answers(memory)
        memory = reopened(lab, memory, mode)
        kept_blocks, kept = blocks(memory), answers(memory)
        memory.close()
        for path in images(home):
            path.unlink()
        memory = reopened(lab, memory, mode)
        assert blocks(memory) == kept_blocks
        assert answers(memory) == kept
    finally:
        lab.close()


def lab_local(lab: Lab) -> Memory:
    return lab._keep("a", Memory.load("a", "local", home=lab.home("a")))


def reopened(lab: Lab, memory: Memory, mode: str) -> Memory:
    memory.close()
    return lab.open("a") if mode == "encrypted-ipfs" else lab_local(lab)


def test_recall_in_the_next_process_reads_only_the_shown_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.load("alex", "local", home=tmp_path) as memory:
        for n in range(40):
            memory.write(f"k{n}", f"tea {'rain' if n == 7 else 'milk'}")
        memory.recall("tea")
    (image,) = images(tmp_path)
    read: list[str] = []
    production = search_index.shown_of
    monkeypatch.setattr(search_index, "shown_of", lambda *of: read.append(of[1]) or production(*of))
    with Memory.load("alex", "local", home=tmp_path) as memory:
        assert [hit.key for hit in memory.recall("rain").hits] == ["k7"] and read == []
        assert memory.context().listed == 40 and read == []
        memory.write("k8", "rain")
        assert {hit.key for hit in memory.recall("rain").hits} == {"k7", "k8"} and read == ["k8"]
    assert images(tmp_path) == [image]


@pytest.mark.parametrize("asked", [{}, {"kind": "all"}, {"type": "user"}])
def test_first_recall_opens_each_text_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    lists = "- [MEMORY](MEMORY.md)\n- [k1](k1.md)\n- [green](green.md)\n"
    with Memory.load("alex", "local", home=tmp_path) as memory:
        for n in range(5):
            memory.write(f"k{n}", f"tea {n}", type="user")
        memory.write(INDEX_KEY, f"Words of tea.\n\n{lists}", type="user")
        memory.note("note", text="tea at noon")
        memory.sessions.add("talk", [{"role": "user", "content": "more tea"}])
    read: list[str] = []
    production = search_index.shown_of
    monkeypatch.setattr(search_index, "shown_of", lambda *of: read.append(of[1]) or production(*of))
    with Memory.load("alex", "local", home=tmp_path) as memory:
        answer = memory.recall("tea green", **asked)
        assert len(answer.hits) == 6 and (asked.get("kind") is None or "noon" in str(answer))
        of_memories = [key for key in read if not key.startswith("session")]
        assert sorted(of_memories) == sorted([INDEX_KEY, *(f"k{n}" for n in range(5))])
    with Memory.load("alex", "local", home=tmp_path) as memory:  # the words as if reread
        memory.recall("tea", type="reference")
        assert memory.recall("tea green", **asked) == answer


def test_programs_of_two_versions_on_one_vault_do_not_reread_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    production = search_index.shown_of
    monkeypatch.setattr(search_index, "shown_of", lambda *of: read.append(of[1]) or production(*of))
    with Memory.load("alex", "local", home=tmp_path) as memory:
        for n in range(5):
            memory.write(f"k{n}", "tea")
    for _ in range(2):
        read.clear()
        for version in (1, 2):
            monkeypatch.setattr(recall_image, "VERSION", version)
            monkeypatch.setattr(search_index, "VERSION", version)
            with Memory.load("alex", "local", home=tmp_path) as memory:
                assert len(memory.recall("tea").hits) == 5
    assert read == []


@pytest.mark.parametrize("damage", ["torn", "garbled", "of another memory", "rest of another form"])
def test_unusable_saved_index_is_rebuilt(tmp_path: Path, damage: str) -> None:
    for name in ("alex", "other"):
        with Memory.load(name, "local", home=tmp_path) as memory:
            memory.write("k", f"tea of {name}")
            memory.recall("tea")
    mine, others = images(tmp_path)
    data = mine.read_bytes()
    if damage == "torn":
        mine.write_bytes(data[:-3])
    elif damage == "garbled":
        mine.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])
    elif damage == "of another memory":
        mine.write_bytes(others.read_bytes())
    else:
        with Memory.load("alex", "local", home=tmp_path) as memory:
            kept = recall_image.load_image(memory.replica)
            assert kept is not None
            recall_image.save_image(
                memory.replica, recall_image.RecallImage(kept.state, b"\x93\x01", kept.index)
            )
    with Memory.load("alex", "local", home=tmp_path) as memory:
        assert [hit.body for hit in memory.recall("tea").hits] == ["tea of alex"]
        assert "k.md" in memory.context().text


def test_damaged_word_index_is_rebuilt_from_the_texts(tmp_path: Path) -> None:
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea")
        memory.recall("tea")
        kept = recall_image.load_image(memory.replica)
        memory.close()
    with Memory.load("alex", "local", home=tmp_path) as memory:
        kept = recall_image.load_image(memory.replica)
        assert kept is not None
        recall_image.save_image(memory.replica, recall_image.RecallImage(kept.state, kept.rest, b"no index"))
        assert [hit.key for hit in memory.recall("tea").hits] == ["k"]


def test_forgotten_text_is_in_no_saved_index(tmp_path: Path) -> None:
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea with zebrax")
        memory.write("other", "tea")
        memory.recall("tea")
    with Memory.load("alex", "local", home=tmp_path) as memory:
        before = recall_image.load_image(memory.replica)
        assert before is not None and b"zebrax" in bytes(before.index)  # else the test would pass trivially
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.forget("k")
        assert images(tmp_path) == []
        assert [hit.key for hit in memory.recall("tea").hits] == ["other"]
    with Memory.load("alex", "local", home=tmp_path) as memory:
        kept = recall_image.load_image(memory.replica)
        assert kept is not None and b"zebrax" not in bytes(kept.index) + kept.rest


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_forgotten_text_is_in_no_temporary_index_of_a_killed_process(tmp_path: Path) -> None:
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea with zebrax")
        memory.write("other", "tea")
    child = os.fork()
    if child == 0:  # pragma: no cover - it is killed
        with Memory.load("alex", home=tmp_path) as memory:
            memory.recall("tea")
            atomic_files.retry_while_held_open = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    folder = tmp_path / "alex"
    assert [path for path in folder.iterdir() if path.name.startswith(".recall-v")]
    with Memory.load("alex", home=tmp_path) as memory:
        memory.forget("k")
    assert [path.name for path in folder.iterdir() if path.suffix == ".tmp"] == []


def test_saved_index_of_a_sealed_vault_is_sealed(lab: Lab) -> None:
    memory = lab.create("a")
    memory.scope("zebrascope").write("zebrakey", "tea with zebraword", name="Zebraname")
    for tokens in ((), ("zebrascope",)):
        memory.stack(*tokens).recall("tea")
    memory.close()
    assert len(images(lab.home("a"))) == 2
    for path in lab.home("a").rglob("*"):
        assert "zebra" not in path.name
        assert not path.is_file() or b"zebra" not in path.read_bytes().lower()


def test_indexes_of_the_last_four_stacks_are_saved(tmp_path: Path) -> None:
    with Memory.load("alex", "local", home=tmp_path) as memory:
        for n in range(7):
            memory.scope(f"s{n}").write("k", "tea")
    for n in range(7):
        with Memory.load("alex", "local", home=tmp_path) as memory:
            assert len(memory.stack(f"s{n}").recall("tea").hits) == 1
    assert len(images(tmp_path)) == 4


def test_small_vault_saves_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea")
        memory.recall("tea")
    assert images(tmp_path) == []


def test_collection_deletes_the_saved_index(lab: Lab) -> None:
    memory = lab.create("a")
    memory.write("k", "tea")
    memory.recall("tea")
    memory.close()
    assert images(lab.home("a"))
    memory = lab.open("a")
    lab.sync(memory)
    asyncio.run(memory.maintenance.gc())
    assert images(lab.home("a")) == []


def test_index_status_is_shown_and_reindex_rebuilds(tmp_path: Path) -> None:
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea")
        assert not memory.maintenance.index_status().kept
        made = memory.maintenance.reindex()
        assert (made.kept, made.memories, made.behind, made.files, made.problem) == (True, 1, 0, 1, "")
        assert made.bytes == images(tmp_path)[0].stat().st_size
        memory.write("other", "tea")
        memory.scope("work").write("k", "tea")
        assert memory.maintenance.index_status().behind == 1
        images(tmp_path)[0].write_bytes(b"x")
        assert "is unusable" in memory.maintenance.index_status().problem
        assert memory.maintenance.reindex().memories == 2
        assert {hit.key for hit in memory.recall("tea").hits} == {"k", "other"}


def test_vault_in_mode_none_saves_no_index() -> None:
    with Memory.load("alex", "none") as memory:
        memory.write("k", "tea")
        assert not memory.maintenance.reindex().kept


@pytest.mark.parametrize("forgets", ["this process", "another process"])
def test_saved_index_omits_texts_forgotten_since_it_was_built(tmp_path: Path, forgets: str) -> None:
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea with zebrax")
        memory.write("other", "tea")
        memory.recall("tea")
        if forgets == "this process":
            memory.forget("k")
        else:
            with Memory.load("alex", "local", home=tmp_path) as beside:
                beside.forget("k")
    with Memory.load("alex", "local", home=tmp_path) as memory:
        kept = recall_image.load_image(memory.replica)
        assert kept is None or b"zebrax" not in bytes(kept.index) + kept.rest
        assert [hit.key for hit in memory.recall("tea").hits] == ["other"]


def test_index_is_saved_after_forgetting_however_little_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "_STALE", 50)
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea with zebrax")
        memory.write("other", "tea")
        memory.maintenance.reindex()
        (image,) = images(tmp_path)
        saved = image.read_bytes()
        memory.forget("k")
    image.write_bytes(saved)  # as left by a process that saved it a moment later
    with Memory.load("alex", "local", home=tmp_path) as memory:
        assert [hit.key for hit in memory.recall("tea").hits] == ["other"]
    with Memory.load("alex", "local", home=tmp_path) as memory:
        kept = recall_image.load_image(memory.replica)
        assert kept is not None and b"zebrax" not in bytes(kept.index) + kept.rest


def test_index_of_few_memories_is_saved_without_text_forgotten_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "_FEW", 100)
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea with zebrax")
        memory.write("other", "tea")
        search_index.make_index([memory._open.memories], "memory")
        (image,) = images(tmp_path)
        saved = image.read_bytes()
        memory.forget("k")
    image.write_bytes(saved)  # as left by a process that saved it a moment later
    with Memory.load("alex", "local", home=tmp_path) as memory:
        assert [hit.key for hit in memory.recall("tea").hits] == ["other"]
    with Memory.load("alex", "local", home=tmp_path) as memory:
        kept = recall_image.load_image(memory.replica)
        assert kept is not None and b"zebrax" not in bytes(kept.index) + kept.rest


def test_failed_refresh_leaves_no_change_partly_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in this process nor in the saved index."""
    shown_of, failed = search_index.shown_of, list[str]()

    def fails_once(part: MemoryStore, key: str, entry: Entry) -> Any:
        if not failed:
            failed.append(key)
            raise StorageError("the disk does not answer")
        return shown_of(part, key, entry)

    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("first", "tea")
        memory.recall("tea", kind="all")
        memory.write("second", "tea with milk")
        memory.write("third", "tea with sugar")
        monkeypatch.setattr(search_index, "shown_of", fails_once)
        with pytest.raises(StorageError):
            memory.readiness()
        assert failed
        found = {hit.key for hit in memory.recall("tea", kind="all").hits}
    with Memory.load("alex", "local", home=tmp_path) as memory:
        again = {hit.key for hit in memory.recall("tea", kind="all").hits}
    assert found == again == {"first", "second", "third"}


def test_damaged_word_index_is_saved_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "_STALE", 50)
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea")
        memory.maintenance.reindex()
        kept = recall_image.load_image(memory.replica)
        assert kept is not None
        recall_image.save_image(memory.replica, recall_image.RecallImage(kept.state, kept.rest, b"no index"))
    with Memory.load("alex", "local", home=tmp_path) as memory:
        assert [hit.key for hit in memory.recall("tea").hits] == ["k"]
    with Memory.load("alex", "local", home=tmp_path) as memory:
        anew = recall_image.load_image(memory.replica)
        assert anew is not None and anew.index == kept.index


def test_saved_index_that_differs_from_the_texts_is_detected_and_rebuilt(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory:
        for number, word in enumerate(WORDS):
            memory.write(f"k{number}", f"{word} and {word}", tags=["x"])
        memory.recall("tea")
    with Memory.load("m", home=tmp_path) as memory:
        memory.write("k1", "milk, written since")
        memory.write("k9", "new")
        assert [(one.level, one.code) for one in memory.check() if one.code == "index"] == [("ok", "index")]
        image = recall_image.load_image(memory.replica)
        assert image is not None
        index = Index.from_image(image.index)
        index.remove("k0")
        index.add(Document("k0", "coffee and coffee", ""))
        recall_image.save_image(
            memory.replica, recall_image.RecallImage(image.state, image.rest, index.image())
        )
        memory.replica.db.check_order()
        indexes_of(memory._open.memories).clear()
        assert memory.recall("coffee").hits, "the wrong index was not used, so nothing is shown here"
        (finding,) = [one for one in memory.check() if one.code == "index"]
        assert finding.level == "error" and finding.text.endswith("1 text: k0"), finding
        hinted("Rebuild it: ipfsmem index rebuild", finding.hint)
        memory.maintenance.reindex()
        assert [one.level for one in memory.check() if one.code == "index"] == ["ok"]
        assert not memory.recall("coffee").hits


@pytest.mark.parametrize("events", [0, 1])
def test_context_with_a_saved_index_does_not_read_every_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: int
) -> None:
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("tea", "Tea with milk.")
        for _ in range(events):
            memory.note("said", text="Tea with milk and rain.")
        assert memory.context("tea milk", layout="ranked").said == events
    monkeypatch.setattr(StateStore, "names", None)  # they are spread over the tree
    with Memory.load("alex", home=tmp_path) as memory:
        block = memory.context("tea milk", layout="ranked")
        assert (block.shown, block.said) == (("tea",), events)


@pytest.mark.parametrize("of", ["", "work"])
@pytest.mark.parametrize("what", ["event", "message"])
def test_index_knows_whether_its_scopes_have_events_or_messages(tmp_path: Path, of: str, what: str) -> None:
    seen = []

    def look() -> None:
        with Memory.load("alex", "local", home=tmp_path) as memory:
            for tokens in STACKS:
                stack = memory.stack(*tokens)
                stack.recall("tea")  # so that there is an index
                seen.append((stack.scopes, search_index.has_moments(stack._view().sources())))
        assert len(images(tmp_path)) == len(STACKS)

    with Memory.load("alex", "local", home=tmp_path) as memory:
        for scope in SCOPES:
            there = memory.scope(scope) if scope else memory
            there.write("session-is-a-name", "tea")
            there.write("session-tea-0123456789abcdef-1-x", "tea")
    look()
    assert not any(has for _, has in seen), "a name alone makes no message"
    with Memory.load("alex", home=tmp_path) as memory:
        there = memory.scope(of) if of else memory
        if what == "event":
            there.note("said", text="Tea.")
        else:
            there.sessions.add("talk", [{"role": "user", "content": "Tea."}])
    seen.clear()
    look()
    assert [has for _, has in seen] == [of in scopes for scopes, _ in seen]


def test_session_context_is_equal_with_and_without_a_saved_index(tmp_path: Path) -> None:
    files = {f"k{n:04}.md": f"---\ntype: reference\n---\n\ntext {n}\n" for n in range(1_010)}
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("rule", "first of all", type="reference", fields={"important": "true"})
        memory.write("told", "Tea.", type="user", fields={"category": "preference"})
        memory.bundles.import_(json.dumps({"version": "memory/0.1", "files": files}))
        work = memory.scope("work")
        memory.write("same", "everybody's", type="user")
        work.write("same", "of work", type="user")
        work.hidden.add(["same"])
        work.sessions.add("talk", [{"role": "user", "content": "tea"}])
        work.write("was", "so once", type="feedback", fields={"expires": "2020-01-01"})
    with Memory.load("alex", home=tmp_path) as memory:
        without = blocks(memory)
        for tokens in STACKS:
            memory.stack(*tokens).recall("tea")
    assert images(tmp_path)
    with Memory.load("alex", home=tmp_path) as memory:
        kept = blocks(memory)
    assert without == kept
    small = kept[0][-1]
    assert "(rule.md)" in small.text and "- [preference] Tea." in small.text


headers = st.fixed_dictionaries(
    {"type": st.sampled_from(("user", "feedback", "project", "reference"))},
    optional={
        "important": st.just("true"),
        "category": st.sampled_from(("restriction", "preference", "concept")),
        "expires": st.sampled_from(("2020-01-01", "2099-01-01")),
        "decay": st.just("30d"),
        "confidence": st.just("0.5"),
    },
)
doing = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(SCOPES), st.sampled_from("abcdef"), headers),
    st.tuples(st.sampled_from(("forget", "hide")), st.sampled_from(SCOPES), st.sampled_from("abcdef")),
    st.tuples(st.just("pending"), st.sampled_from("abcdef"), headers),
    st.tuples(st.sampled_from(("say", "unsay", "note")), st.sampled_from(SCOPES)),
    st.just(("index",)),
)


def do(memory: Memory, n: int, one: tuple[Any, ...]) -> None:
    """Run one drawn step."""
    what, *of = one
    if what == "index":
        look(memory, "all")
        return
    there = memory.scope(of[0]) if what != "pending" and of[0] else memory
    if what == "write":
        fields = dict(of[2])
        there.write(of[1], f"tea {n}", type=fields.pop("type"), fields=fields)
    elif what == "pending":
        head = "".join(f"{name}: {value}\n" for name, value in of[1].items())
        text = f"---\n{head}---\n\ntea of others {n}\n"
        blob = json.dumps({"version": "memory/0.1", "files": {f"{of[0]}.md": text}})
        memory.bundles.import_(blob, foreign=True)
    elif what == "say":
        there.sessions.add("talk", [{"role": "user", "content": f"tea {n}"}])
    elif what == "unsay":
        there.sessions.forget("talk")
    elif what == "note":
        there.note("said", text=f"tea {n}")
    elif there.read(of[1]) is not None:
        there.forget(of[1]) if what == "forget" else there.hidden.add([of[1]])


def look(memory: Memory, kind: Any) -> None:
    for tokens in STACKS:
        memory.stack(*tokens).recall("tea", kind=kind)


@settings(max_examples=cases(6, 60), deadline=None)
@given(
    before=st.lists(doing, max_size=16),
    after=st.lists(doing, max_size=4),
    mode=st.sampled_from(["local", "encrypted-ipfs"]),
)
def test_session_start_block_is_the_same_with_any_index_or_none(
    tmp_path_factory: pytest.TempPathFactory, before: list[Any], after: list[Any], mode: ModeName
) -> None:
    home = tmp_path_factory.mktemp("home")

    def opened() -> Memory:
        return Memory.load("alex", home=home)

    Memory.create(
        "alex", "local" if mode == "local" else "encrypted-ipfs", passphrase=False, home=home
    ).close()
    with opened() as memory:
        for n, one in enumerate(before):
            do(memory, n, one)
        look(memory, "all")  # held, and kept when this closes
    with opened() as memory:
        look(memory, "all")
        for n, one in enumerate(after, len(before)):
            do(memory, n, one)
        found = {"all held": blocks(memory)}
    with opened() as memory:
        found["all kept, maybe of earlier"] = blocks(memory)
        look(memory, "memory")
        found["both held"] = blocks(memory)
    with opened() as memory:
        found["both kept"] = blocks(memory)
    remove(home)
    with opened() as memory:
        found["none"] = blocks(memory)
        look(memory, "all")
    with opened() as memory:
        found["all kept"] = blocks(memory)
    remove(home)
    with opened() as memory:
        look(memory, "memory")
    with opened() as memory:
        found["memory kept"] = blocks(memory)
    assert [name for name, one in found.items() if one != found["none"]] == []


def remove(home: Path) -> None:
    for path in images(home):
        path.unlink()


def test_session_start_reads_no_header_with_a_full_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.load("alex", "local", home=tmp_path) as memory:
        for n in range(40):
            fields = {"category": "preference"} if n == 3 else {}
            memory.write(f"k{n:02}", "tea", type="reference", fields=fields)
        memory.sessions.add("talk", [{"role": "user", "content": "tea"}])
        memory.recall("tea", kind="all")
    opened: list[str] = []
    shown, line = search_index.shown_of, context._line
    monkeypatch.setattr(search_index, "shown_of", lambda *of: opened.append(of[1]) or shown(*of))
    monkeypatch.setattr(context, "_line", lambda *of: opened.append(of[1]) or line(*of))
    with Memory.load("alex", home=tmp_path) as memory:
        block = memory.context()
    assert (block.listed, opened) == (40, ["k03"]) and "- [preference] tea" in block.text


def test_index_loaded_for_memories_alone_is_not_ready_for_words(tmp_path: Path) -> None:
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea with milk", type="user")
        memory.sessions.add("talk", [{"role": "user", "content": "tea"}])
        memory.recall("tea", kind="all")
    with Memory.load("alex", home=tmp_path) as memory:
        assert memory.context().listed == 1
        parts = memory.stack()._view().sources()
        assert not search_index.is_ready(parts, "memory", 0) and search_index.is_ready(parts, "all", 0)
        assert [hit.key for hit in memory.recall("milk").hits] == ["k"]
        assert search_index.is_ready(parts, "memory", 0)


def test_session_start_with_saved_index_loads_no_words_until_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea with milk", type="user")
        memory.recall("tea")
    whole: list[bool] = []
    load = recall_image.load_image

    def seen(*of: Any, first: bool = False, **how: Any) -> Any:
        whole.append(not first)
        return load(*of, first=first, **how)

    monkeypatch.setattr(search_index, "load_image", seen)
    with Memory.load("alex", home=tmp_path) as memory:
        assert memory.context().listed == 1
        assert not any(whole)
        assert [hit.key for hit in memory.recall("milk").hits] == ["k"]
        assert whole.count(True) == 1


@pytest.mark.parametrize("replaced", [False, True])
def test_recall_after_session_start_finds_changes_of_another_process(tmp_path: Path, replaced: bool) -> None:
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea with milk", type="user")
        memory.write("gone", "tea with zebrax", type="user")
        memory.recall("tea")
    with Memory.load("alex", home=tmp_path) as memory:
        assert memory.context().listed == 2  # opens the index without its words
        with Memory.load("alex", home=tmp_path) as beside:
            beside.write("new", "tea with lemon", type="user")
            beside.forget("gone")
            if replaced:
                beside.maintenance.reindex()
        assert memory.context().listed == 2
        assert [hit.key for hit in memory.recall("lemon").hits] == ["new"]
        assert [hit.key for hit in memory.recall("milk").hits] == ["k"]
        assert memory.recall("zebrax").hits == ()
    with Memory.load("alex", home=tmp_path) as memory:
        kept = recall_image.load_image(memory.replica)
        assert kept is None or b"zebrax" not in bytes(kept.index) + kept.rest


def test_session_start_lists_equal_priorities_newest_first_in_both_ways(
    tmp_path: Path,
) -> None:
    """Memories of equal priority keep the order of writing, also those written after the index was stored."""
    heads = [{}, {"decay": "30d"}, {"decay": "never"}, {"confidence": "1"}]
    with Memory.load("alex", "local", home=tmp_path) as memory:
        for n in range(60):
            memory.write(f"k{n:02}", "tea", type="reference", fields=heads[n % 4])
        memory.recall("tea")
    with Memory.load("alex", home=tmp_path) as memory:
        kept = memory.context(max_tokens=300)
        for n in range(60, 64):
            memory.write(f"k{n:02}", "tea", type="reference", fields=heads[n % 4])
        memory.forget("k59")
        later = memory.context(max_tokens=300)
    remove(tmp_path)
    with Memory.load("alex", home=tmp_path) as memory:
        assert memory.context(max_tokens=300) == later
    assert 0 < later.listed < 63 and "(k63.md)" in later.text and "(k00.md)" not in later.text
    assert 0 < kept.listed < 60 and "(k59.md)" in kept.text and "(k00.md)" not in kept.text


def test_session_without_index_of_many_memories_lists_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook that read all of them would exceed its time and print nothing."""
    monkeypatch.setattr(context, "_MAX_UNINDEXED", 3)
    with Memory.load("alex", "local", home=tmp_path) as memory:
        for n in range(40):
            memory.write(f"k{n:02}", "tea", type="reference", fields={"important": "true"} if n < 20 else {})
    opened: list[str] = []
    production = context._line
    monkeypatch.setattr(context, "_line", lambda *of: opened.append(of[1]) or production(*of))
    with Memory.load("alex", home=tmp_path) as memory:
        small = memory.context(max_tokens=200)
        assert "(k39.md)" in small.text and "(k00.md)" not in small.text and len(opened) < 40
        assert (small.listed + small.left_out, memory.context(max_tokens=20_000).listed) == (40, 40)
