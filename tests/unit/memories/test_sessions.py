"""Sessions: items in order, on several devices at once, in parts of bounded size, and forgotten as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from ipfsmem.adapters.memory_directory import MemoryDirectory
from ipfsmem.bundle.session_parts import session_token
from ipfsmem.errors import ClosedError, LimitError, NotFoundError, UsageError
from ipfsmem.memories.sessions import FULL, MAX_PART
from ipfsmem.memory import Memory
from tests.support.device_lab import Lab, of_another
from tests.support.effort import cases


def _vectors() -> ModuleType:
    spec = spec_from_file_location("make", Path(__file__).with_name("make_session_vectors.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


VECTORS = _vectors()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.load("x", mode="none", home=tmp_path) as opened:
        yield opened


def said(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


def heard(memory: Memory, session: str = "chat", limit: int | None = None) -> list[str]:
    return [item["content"] for item in memory.sessions.items(session, last=limit).items]


def keys(memory: Memory) -> list[str]:
    return [name[2:] for name in memory.replica.store.names() if name.startswith("m/session-")]


def parts(memory: Memory) -> list[bytes]:
    found = [memory.read(key) for key in keys(memory)]
    return [one.data for one in found if one is not None]


def two(lab: Lab) -> tuple[Memory, Memory]:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    return a, b


def test_items_are_added_read_and_popped(memory: Memory) -> None:
    assert heard(memory) == [] and memory.sessions.pop("chat").item is None and memory.sessions.known() == []
    memory.sessions.add("chat", [])
    assert memory.sessions.known() == []
    memory.sessions.add("chat", said("one", "two"))
    memory.sessions.add("chat", said("three"))
    memory.sessions.add("other", said("else"))
    assert heard(memory) == ["one", "two", "three"]
    assert heard(memory, limit=2) == ["two", "three"]
    for limit in (0, -1):
        with pytest.raises(UsageError, match="last must be 1-100000"):
            heard(memory, limit=limit)
    assert heard(memory, limit=10) == ["one", "two", "three"]
    assert [(one.session, one.parts) for one in memory.sessions.known()] == [("other", 1), ("chat", 1)]
    assert memory.sessions.pop("chat").item == {"role": "user", "content": "three"}
    assert b"three" not in b"".join(parts(memory))
    memory.sessions.add("chat", said("four"))
    assert heard(memory) == ["one", "two", "four"] and heard(memory, "other") == ["else"]
    # It is in no list, no index and no scope of its own.
    assert memory.list().memories == () and "ession" not in memory.index() and memory.scopes.names() == []


def test_forgotten_session_is_gone_and_can_be_recreated(memory: Memory) -> None:
    memory.sessions.add("chat", said("one"))
    assert memory.sessions.forget("chat", reason="done") and not memory.sessions.forget("chat")
    assert heard(memory) == [] and memory.sessions.known() == [] and memory.sessions.pop("chat").item is None
    memory.sessions.add("chat", said("again"))
    assert heard(memory) == ["again"] and not memory.conflicts()


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"content": [{"type": "input_text", "text": "Ü\u2028\n---\n"}], "n": 1.5, "big": 2**70, "none": None},
        {"content": "\ud800"},
        {"gone": [1, "x", 2], "at": 5},
        {"content": "x" * 200_001},
        {"content": "日" * 300_000},
        {"content": '"\\' * 150_000},
        {"content": "\x00\x1f" * 60_000},
    ],
)
def test_json_object_of_any_content_round_trips(memory: Memory, item: dict[str, Any]) -> None:
    memory.sessions.add("chat", [item, {"after": True}])
    assert memory.sessions.items("chat").items == [item, {"after": True}]
    assert max(len(data) for data in parts(memory)) <= MAX_PART
    memory.sessions.pop("chat")
    assert memory.sessions.pop("chat").item == item
    assert memory.sessions.items("chat").items == []


def test_session_parts_are_bounded_and_an_addition_changes_one(memory: Memory) -> None:
    for number in range(40):
        memory.sessions.add("chat", said(f"{number:03}" + "x" * 5_000))
    assert [text[:3] for text in heard(memory)] == [f"{number:03}" for number in range(40)]
    sizes = [len(data) for data in parts(memory)]
    assert len(sizes) > 3 and max(sizes) < FULL + 1_000
    before = set(parts(memory))
    memory.sessions.add("chat", said("last"))
    assert len(before - set(parts(memory))) == 1


@pytest.mark.parametrize(
    "item", [7, None, "text", ["list"], {"a": float("nan")}, {"a": {1, 2}}, {"a": b"bytes"}]
)
def test_item_that_is_not_a_json_object_is_refused_and_none_is_added(memory: Memory, item: Any) -> None:
    with pytest.raises(UsageError):
        memory.sessions.add("chat", [{"fine": 1}, item])
    assert memory.sessions.items("chat").items == []


def test_session_names_are_distinct_and_checked(memory: Memory) -> None:
    names = ["chat", "Chat", "chat-1", "chat_1", "a" * 24, "a" * 25, "日本", "../x", "1", "x y", "a" * 256]
    assert len({session_token(name) for name in names}) == len(names)
    for name in names:
        memory.sessions.add(name, said(name))
    assert all(heard(memory, name) == [name] for name in names)
    assert {one.session for one in memory.sessions.list()} == set(names)
    for name in ("", "a\nb", "a" * 257, "\ud800", "\x00"):
        with pytest.raises(
            UsageError, match=r"invalid session name|session is empty|session has 257 characters"
        ):
            memory.sessions.add(name, said("x"))
    with pytest.raises(UsageError):
        memory.sessions.items("chat", last=True)


def test_overlong_item_is_refused(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipfsmem.memories.part_lines.MAX_ITEM", 1_000)
    with pytest.raises(LimitError, match="at most 1,000"):
        memory.sessions.add("chat", said("x" * 1_000))
    assert heard(memory) == []


def test_scope_has_its_own_sessions(memory: Memory) -> None:
    project = memory.scope("project")
    project.sessions.add("chat", said("in the project"))
    assert heard(memory) == [] and heard(project) == ["in the project"]
    assert [one.scope for one in project.sessions.list()] == ["project"]


def test_concurrent_additions_on_two_devices_lose_nothing(lab: Lab) -> None:
    """Items that were added together stay together, in order of time."""
    a, b = two(lab)
    a.sessions.add("chat", said("begin"))
    lab.settle(a, b)
    for turn in range(3):
        for name, one in (("a", a), ("b", b)):
            lab.clock.advance(1)
            one.sessions.add("chat", said(f"{name}{turn} asks", f"{name}{turn} answers"))
    lab.settle(a, b)
    expected = [f"{name}{turn} {word}" for turn in range(3) for name in "ab" for word in ("asks", "answers")]
    assert heard(a) == heard(b) == ["begin", *expected]
    assert not a.conflicts() and not b.conflicts()
    # b removes a's last message, and its own.
    assert [b.sessions.pop("chat").item["content"] for _ in range(3)] == expected[:-4:-1]
    lab.settle(a, b)
    assert heard(a) == heard(b) == ["begin", *expected[:-3]]
    a.sessions.add("chat", said("goes on"))
    assert heard(a)[-1] == "goes on"


def test_clock_that_is_behind_does_not_put_an_answer_before_its_question(lab: Lab) -> None:
    a, b = two(lab)
    lab.skew["b"] = -3600.0
    a.sessions.add("chat", said("question"))
    lab.settle(a, b)
    b.sessions.add("chat", said("answer"))
    lab.settle(a, b)
    assert heard(a) == heard(b) == ["question", "answer"]


def test_forgotten_on_one_device_while_another_adds(lab: Lab) -> None:
    a, b = two(lab)
    a.sessions.add("chat", said("secret of a"))
    b.sessions.add("chat", said("secret of b"))
    lab.settle(a, b)
    assert a.sessions.forget("chat")
    b.sessions.add("new", said("another"))
    lab.settle(a, b)
    assert heard(a) == heard(b) == []
    b.sessions.add("chat", said("again"))
    lab.settle(a, b)
    assert heard(a) == heard(b) == ["again"]


def test_forgotten_messages_do_not_return_with_additions_elsewhere(lab: Lab) -> None:
    """A part is always written as a whole."""
    a, b = two(lab)
    a.sessions.add("chat", said("secret"))
    lab.settle(a, b)
    lab.clock.advance(1)
    assert b.sessions.forget("chat")
    lab.clock.advance(1)
    a.sessions.add("chat", said("later"))
    lab.settle(a, b)
    for one in (a, b):
        assert heard(one) == ["later"]
        assert [(found.session, found.parts) for found in one.sessions.known()] == [("chat", 1)]
    a.sessions.add("chat", said("still"))
    lab.settle(a, b)
    assert heard(a) == heard(b) == ["later", "still"] and not a.conflicts() and not b.conflicts()
    assert b"secret" not in b"".join(parts(a))
    # A forget that has seen everything leaves nothing, and hides nothing that is listed.
    lab.clock.advance(1)
    assert b.sessions.forget("chat") and b.sessions.known() == []
    lab.settle(a, b)
    assert heard(a) == heard(b) == [] and not a.sessions.forget("chat")


def test_message_added_next_to_a_forget_can_be_forgotten(lab: Lab) -> None:
    a, b = two(lab)
    a.sessions.add("chat", said("secret"))
    lab.settle(a, b)
    lab.clock.advance(1)
    assert b.sessions.forget("chat")
    lab.clock.advance(1)
    a.sessions.add("chat", said("later"))
    lab.settle(a, b)
    lab.clock.advance(1)
    assert b.sessions.forget("chat") and heard(b) == []
    lab.settle(a, b)
    assert heard(a) == heard(b) == [] and a.sessions.known() == b.sessions.known() == [] and not a.conflicts()


def test_session_is_forgotten_as_a_whole_with_one_event(memory: Memory) -> None:
    for number in range(6):
        memory.sessions.add("chat", said(f"{number}" + "x" * 9_000))
    assert len(keys(memory)) > 2
    assert memory.sessions.forget("chat", reason="done")
    (event,) = memory.timeline.read()
    assert (event["type"], event["session"], event["reason"]) == ("forgot", "chat", "done")


def test_message_after_the_greatest_possible_time_is_not_lost(memory: Memory) -> None:
    """The time is a bounded whole number."""
    memory.sessions.add("chat", said("one"))
    (key,) = keys(memory)
    reading = memory.read(key)
    assert reading is not None
    memory._open.memories.write(key, reading.data + b'{"at":9007199254740991,"item":{"content":"last"}}\n')
    assert heard(memory) == ["one", "last"]
    with pytest.raises(LimitError, match="last timestamp"):
        memory.sessions.add("chat", said("swallowed"))
    memory.sessions.pop("chat")
    memory.sessions.add("chat", said("two"))
    assert heard(memory) == ["one", "two"]


@pytest.mark.parametrize("seed", range(cases(3, 100)))
def test_random_turns_on_three_devices_converge(lab: Lab, seed: int) -> None:
    random = Random(seed)
    a, b = two(lab)
    devices = [a, b, lab.restore("c")]
    added: list[str] = []
    gone: set[str] = set()
    for turn in range(24):
        which = random.randrange(3)
        one = devices[which]
        action = random.random()
        if action < 0.6:
            texts = [f"{turn}-{which}-{n}" for n in range(random.randint(1, 3))]
            one.sessions.add("chat", said(*texts))
            added += texts
        elif action < 0.8:
            if (item := one.sessions.pop("chat").item) is not None:
                gone.add(item["content"])
        else:
            lab.sync(one)
        if random.random() < 0.5:
            lab.clock.advance(1)
    lab.settle(*devices)
    assert sorted(heard(a)) == sorted(set(added) - gone)
    assert heard(devices[1]) == heard(devices[2]) == heard(a)
    for which in range(3):
        mine = [text for text in added if f"-{which}-" in text and text not in gone]
        assert [text for text in heard(a) if f"-{which}-" in text] == mine
    assert all(not device.conflicts() for device in devices)


def test_many_threads_add_to_one_session(memory: Memory) -> None:
    with ThreadPoolExecutor(50) as threads:
        list(threads.map(lambda n: memory.sessions.add("chat", said(f"{n} a", f"{n} b")), range(50)))
    found = heard(memory)
    assert sorted(found) == sorted(f"{n} {word}" for n in range(50) for word in "ab")
    assert all(found[at].split()[0] == found[at + 1].split()[0] for at in range(0, 100, 2))


def test_two_programs_on_one_device_add_to_one_session(tmp_path: Path) -> None:
    with (
        Memory.load("x", mode="local", home=tmp_path) as one,
        Memory.load("x", mode="local", home=tmp_path) as other,
    ):
        for turn in range(5):
            one.sessions.add("chat", said(f"one {turn}"))
            other.sessions.add("chat", said(f"other {turn}"))
        assert (
            heard(one) == heard(other) == [f"{name} {turn}" for turn in range(5) for name in ("one", "other")]
        )


def test_messages_of_another_member_are_not_part_of_a_session(lab: Lab) -> None:
    a, b = two(lab)
    of_another(a, b)
    lab.settle(a, b)
    b.sessions.add("chat", said("of another person"))
    a.sessions.add("chat", said("mine"))
    lab.settle(a, b)
    assert heard(a) == ["mine"] and heard(b) == ["of another person"]
    assert [one.parts for one in a.sessions.known()] == [1]


def test_invalid_lines_of_others_are_skipped(memory: Memory) -> None:
    memory.sessions.add("chat", said("one"))
    (key,) = keys(memory)
    reading = memory.read(key)
    assert reading is not None
    noise = [
        "no json",
        "7",
        "{}",
        '{"at":"x"}',
        '{"at":1,"piece":[0,2],"text":"{"}',
        "[" * 3000,
        '{"at":1,"item":',
        '{"at":1,"item":{}, "n": "x"}',
        '{"at":1,"item":7}',
        '{"at":-1,"item":{}}',
        '{"at":1,"item":{},"gone":[1,"0011223344556677",0]}',
        '{"at":1,"gone":[1,"someone",0]}',
        '{"at":1,"n":5,"piece":[0,1],"text":"[]"}',
    ]
    memory.write_text(key, reading.data + "\n".join(noise).encode() + b"\n", seen=reading)
    memory.sessions.add("chat", said("two"))
    assert heard(memory) == ["one", "two"]
    assert b"\nno json\n7\n" in parts(memory)[0]
    # A part of another session under this one's key is ignored by both.
    reading = memory.read(key)
    assert reading is not None
    memory.write_text(key, reading.data.replace(b"session: chat", b"session: other"), seen=reading)
    assert heard(memory) == [] and heard(memory, "other") == [] and memory.sessions.known() == []
    memory.sessions.add("chat", said("three"))
    assert heard(memory) == ["three"] and b"session: other" in parts(memory)[0]


def test_missing_part_of_a_session_is_an_error(lab: Lab) -> None:
    a, b = two(lab)
    a.sessions.add("chat", said("one"))
    lab.settle(a, b)
    with b.replica.transaction():
        b.replica.db.connection.execute("DELETE FROM blocks")
    for call in (b.sessions.items, b.sessions.pop, b.sessions.forget):
        with pytest.raises(NotFoundError, match="not fetched"):
            call("chat")
    with pytest.raises(NotFoundError):
        b.sessions.add("chat", said("two"))


def test_closed_memory_is_refused(memory: Memory) -> None:
    memory.close()
    with pytest.raises(ClosedError):
        memory.sessions.items("chat")


def test_session_vectors_equal_the_program(memory: Memory) -> None:
    made = VECTORS.vectors()
    assert json.loads(VECTORS.TARGET.read_text("utf-8")) == json.loads(json.dumps(made))
    for row in made["refused_names"]:
        with pytest.raises(UsageError):
            session_token(row["text"])
    for row in made["sessions"]:
        there = memory.scope(f"s{made['sessions'].index(row)}")
        for part in row["parts"]:
            there.write_text(part["key"], part["file"].encode())
        assert there.sessions.items(row["session"]).items == row["items"], row["name"]


def test_line_with_half_a_surrogate_pair_is_read_and_unchanged(memory: Memory) -> None:
    lines = [
        r'{"at":1,"item":{"role":"user","content":"tea \ud83d, \\ud83d"}}',
        r'{"at":2,"text":"{\"content\":\"one \ud83d","piece":[0,2]}',
        r'{"at":2,"text":"\ude00\"}","piece":[1,2]}',
    ]
    key = f"session-chat-{memory.replica.device.id}-0"
    memory.write_text(key, "\n".join(("---\ntype: session\nsession: chat\n---\n", *lines, "")).encode())
    assert heard(memory) == ["tea \ud83d, \\ud83d", "one \U0001f600"]
    assert [hit.text for hit in memory.sessions.search("tea")] == ["tea \ufffd, \\ud83d"]
    memory.sessions.add("chat", said("after"))
    assert parts(memory)[0].decode().split("\n")[-5:-2] == lines
    assert memory.sessions.pop("chat").item == said("after")[0]
    assert memory.sessions.pop("chat").item == {"content": "one \U0001f600"}
    assert heard(memory) == ["tea \ud83d, \\ud83d"]


def test_item_with_overlong_number_does_not_block_other_items(memory: Memory) -> None:
    lines = [
        '{"at":1,"item":{"role":"user","content":"tea"}}',
        f'{{"at":2,"item":{{"role":"user","content":"bread","n":{"9" * 5_000}}}}}',
    ]
    key = f"session-chat-{memory.replica.device.id}-0"
    memory.write_text(key, "\n".join(("---\ntype: session\nsession: chat\n---\n", *lines, "")).encode())
    assert heard(memory) == ["tea", "bread"]
    assert [hit.text for hit in memory.sessions.search("bread")] == ["bread"]
    memory.sessions.add("chat", said("after"))
    assert heard(memory)[:2] == ["tea", "bread"]


def test_item_nested_too_deep_is_refused_and_other_items_are_read(memory: Memory) -> None:
    def deep(levels: int) -> dict[str, Any]:
        nested: dict[str, Any] = {}
        for _ in range(levels - 2):
            nested = {"in": nested}
        return {"role": "user", "content": f"{levels} levels", "more": nested}

    memory.sessions.add("chat", [deep(511)])
    with pytest.raises(UsageError, match="nested deeper than 511 levels"):
        memory.sessions.add("chat", [deep(512), *said("after")])
    assert heard(memory) == ["511 levels"]
    key = f"session-other-{memory.replica.device.id}-0"
    first = '---\ntype: session\nsession: other\n---\n\n{"at":1,"item":{"role":"user","content":"tea"}}\n'
    for levels in (900, 992, 993, 5_000, 200_000):  # about the recursion limit, and beyond
        line = f'{{"at":2,"item":{{"more":{"[" * levels}{"]" * levels}}}}}\n'
        memory.write_text(key, (first + line).encode())
        assert heard(memory, "other") == ["tea"]


def test_memory_that_only_imitates_a_session_is_a_memory(memory: Memory) -> None:
    memory.write("standup", "Bridges at nine.", type="session")
    memory.write("session-a-0123456789abcdef-0", "Bridges too.", type="session")
    memory.sessions.add("chat", said("Bridges, said in a session"))
    assert [one.key for one in memory.list()] == ["session-a-0123456789abcdef-0", "standup"]
    assert "standup.md" in memory.index() and "session-chat" not in memory.index()
    assert {one.key for one in memory.recall("bridges").hits} == {
        "session-a-0123456789abcdef-0",
        "standup",
    }
    assert "standup" in memory.context().text
    listed = MemoryDirectory(memory).run({"command": "view", "path": "/memories"})
    assert "standup" in listed and "session-chat" not in listed


def test_session_parts_are_not_files_of_a_folder(tmp_path: Path) -> None:
    with Memory.load("x", mode="local", home=tmp_path / "home") as memory:
        memory.folders.attach(tmp_path / "notes")
        memory.write("tone", "Short.")
        memory.sessions.add("chat", said("one"))
        for one in (1, 2):
            memory.sessions.add("chat", said(f"more {one}"))
        memory.write("role", "Tester.")
        found = {path.name for path in tmp_path.rglob("*.md")}
        assert {"tone.md", "role.md"} <= found and not any("session" in name for name in found)
    with Memory.load("x", mode="local", home=tmp_path / "home") as memory:
        assert memory.list() and heard(memory) == ["one", "more 1", "more 2"]
        assert not any("session" in path.name for path in tmp_path.rglob("*.md"))
