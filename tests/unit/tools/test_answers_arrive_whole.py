"""Programs truncate long tool answers: no answer is that long, and a partly shown text cannot be replaced."""

from __future__ import annotations

import json
import re

import pytest

from ipfsmem.bundle.fence import clean_text, unquote
from ipfsmem.memory import Memory
from ipfsmem.tools import ToolResult, toolset
from ipfsmem.tools.paging import ANSWER, beginning, page_end, weight
from ipfsmem.tools.tool_context import Session
from tests.support.device_lab import Lab
from tests.support.tools_lab import Model, others

#: Limits of the strictest program: bytes of the answer as JSON, and lines.
BYTES, LINES = 10_000, 256
TEXTS = {
    "lines": "".join(f"Line {n:04d}: the quick brown fox jumps over it.\n" for n in range(2_000)),
    "short lines": "x\n" * 5_000,
    "one line": "word " * 20_000,
    "quotes": '"\\' * 20_000,
    "tabs": "\t\t\n" * 5_000,
    "controls": "\x01\x02" * 10_000,
    "chinese": "记忆" * 15_000,
    "emoji": "🔥\n🧊" * 9_000,
    "joined emoji": "\U0001f469\u200d\U0001f4bb" * 6_000,
    "joined letters": "क्\u200dष" * 5_000,
    "joiners alone": "a\u200d" * 9_000,
    "other line ends": "one\u2028two\x85three\x0b" * 3_000,
    "empty lines": "\n" * 6_000 + "end",
}


@pytest.fixture
def memory() -> Memory:
    return Memory.load("alex", "none")


def arrives_whole(answer: ToolResult) -> ToolResult:
    sent = json.dumps([{"type": "text", "text": answer.text}], ensure_ascii=False)
    assert len(sent.encode()) <= BYTES and answer.text.count("\n") < LINES, answer.text[:300]
    return answer


@pytest.mark.parametrize("kind", TEXTS)
def test_pages_fit_the_limit_and_only_the_last_has_a_token(memory: Memory, kind: str) -> None:
    memory.write("long", TEXTS[kind], name="N" * 300, tags=["a", "b"])
    body = memory.read("long").file.body  # type: ignore[union-attr]
    model, start, shown, pages = Model(memory), 0, "", list[ToolResult]()
    while True:
        pages.append(page := arrives_whole(model("read_memory", key="long", start=start)))
        shown += page.structured["body"]
        if not (start := page.structured["next"]):
            break
    assert shown == clean_text(body) or len(shown) >= len(clean_text(body).strip("\n"))
    assert len(pages) > 1 and all("seen: " not in page.text for page in pages[:-1])
    (seen,) = re.findall(r"^seen: (\w{16})$", pages[-1].text, re.MULTILINE)
    assert not model("remember", key="long", body="short", seen=seen).is_error


@pytest.mark.parametrize("kind", TEXTS)
def test_other_answers_have_no_token_for_a_long_text(memory: Memory, kind: str) -> None:
    text = f"needle {TEXTS[kind]}"
    memory.write("long", text, description="needle " + "d" * 150)
    secret = memory.read("long").seen  # type: ignore[union-attr]
    value = memory.values.set("long", text).seen
    model = Model(memory)
    for answer in (
        model("recall", query="needle", explain=True),
        model("list_memories"),
        model("remember", key="long", body="short"),
        model("remember", key="long", description="other"),
        model("forget", key="long"),
        model("forget", key="long", confirm=secret),
        model("memory_store", key="long", value="short"),
        model("memory_recall", key="long"),
        model("read_memory", key="long"),
        model("list_facts"),
    ):
        arrives_whole(answer)
        for one in (secret, value):
            assert one not in answer.text and one not in json.dumps(answer.structured)
    assert model("memory_store", key="long", value="short").is_error
    assert memory.read("long").file.body.startswith("needle")  # type: ignore[union-attr]


def test_many_hits_share_one_answer(memory: Memory) -> None:
    for n in range(60):
        memory.write(
            f"k{n:02}", f"needle {n}\n" * (400 if n % 3 else 2), description="d" * 180, tags=["t" * 60]
        )
    model = Model(memory)
    for limit in (1, 5, 20, 50):
        found = arrives_whole(model("recall", query="needle", limit=limit, explain=True))
        hits = found.structured["hits"]
        assert hits and all(("(cut here" in hit["body"]) == (hit["seen"] == "") for hit in hits)
        for hit in hits:
            if hit["seen"]:
                body = memory.read(hit["key"]).file.body  # type: ignore[union-attr]
                assert hit["body"] == body and all(line in found.text for line in body.split("\n"))
        left = re.search(r"\((\d+) further match", found.text)
        assert len(hits) + (int(left[1]) if left else 0) == limit


def test_long_lists_are_paged_within_the_limit(memory: Memory) -> None:
    for n in range(90):
        memory.write(f"k{n:03}", "x", name="名" * 300, description="é" * 500)
    model, after, keys = Model(memory), "", list[str]()
    while True:
        page = arrives_whole(model("list_memories", limit=200, cursor=after))
        keys += [one["key"] for one in page.structured["memories"]]
        if not (after := page.structured["next"]):
            break
    assert keys == [f"k{n:03}" for n in range(90)]


def test_truncated_field_is_replaced_only_after_it_was_shown(memory: Memory) -> None:
    memory.write("tone", "direct", description="first " + "d" * 400 + " last")
    model = Model(memory)
    hit = model("recall", query="direct")
    assert hit.structured["hits"][0]["seen"] == "" and "seen of" not in hit.text
    assert model("remember", key="tone", body="direct").structured["seen"] == ""
    read = arrives_whole(model("read_memory", key="tone"))
    assert " last" in read.text and read.structured["seen"]
    memory.write("tone", "direct", description="first " + "d" * 4_000 + " last")
    read = arrives_whole(model("read_memory", key="tone"))
    assert read.structured["seen"] == "" and "only the person can change it" in read.text
    assert model("forget", key="tone").structured["confirm"] == ""


def test_write_answer_has_no_token_for_an_unseen_text(memory: Memory) -> None:
    memory.write("tone", "a text", name="Tone", description="how to talk")
    model = Model(memory)
    for given in ({"name": "Tone"}, {"body": "a text"}, {"body": "a text", "name": "Tone"}):
        kept = model("remember", key="tone", **given)
        assert not kept.is_error and kept.structured["seen"] == "" and "\nseen:" not in kept.text
    whole = model("remember", key="tone", body="a text", name="Tone", description="how to talk")
    assert whole.structured["seen"]
    others(memory, "theirs", "their text")
    beside = model("remember", key="theirs", body="my text")
    assert beside.structured["own"] or beside.structured["seen"] == ""


def test_existing_fact_is_shown_with_its_token(memory: Memory) -> None:
    model = Model(memory)
    long = "Likes green tea from Japan in the morning, before the first meeting"
    model("add_fact", text=long, category="preference")
    for said in (long, "Likes green tea from Japan in the morning"):
        kept = model("add_fact", text=said, category="preference").structured
        if kept["action"] == "kept":
            assert kept["fact"]["seen"] == "" or said == long or long in model("add_fact", text=said).text


def test_long_conflict_is_resolved_only_after_each_text_was_read(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    a.write("tone", "one")
    lab.settle(a, b)
    a.write("tone", "".join(f"a line {n} of the first\n" for n in range(600)))
    b.write("tone", "".join(f"b line {n} of the second\n" for n in range(600)))
    lab.settle(a, b)
    model = Model(a)
    (item,) = a.conflicts()
    shown = arrives_whole(model("resolve_conflict", key="tone"))
    assert shown.structured["seen"] == "" and item.seen not in shown.text
    assert model("resolve_conflict", key="tone", seen=item.seen, body="short").is_error
    for copy in ("", item.files[0]):
        start = 0
        while True:
            page = arrives_whole(
                model("read_memory", key="tone", start=start, **({"alternative": copy} if copy else {}))
            )
            if not (start := page.structured["next"]):
                break
        if not copy:
            assert model("resolve_conflict", key="tone").structured["seen"] == ""
    settled = arrives_whole(model("resolve_conflict", key="tone"))
    done = model("resolve_conflict", key="tone", seen=settled.structured["seen"], body="one text of both")
    assert done.structured["settled"] and not a.conflicts()


def test_pages_read_in_one_conversation_are_unread_in_another(memory: Memory) -> None:
    memory.write("long", TEXTS["lines"])
    one, other = Model(memory, session=Session()), Model(memory, session=Session())
    start = one("read_memory", key="long").structured["next"]
    while start:
        last = other("read_memory", key="long", start=start).structured
        start = last["next"]
    assert last["seen"] == ""


def test_graphs_sessions_and_facts_fit_the_limit(memory: Memory) -> None:
    for n in range(150):
        memory.graph.add(f"entity {n}", "thing", [f"observation {n} {m} " + "x" * 60 for m in range(6)])
        memory.facts.add(f"fact number {n} about subject {n * 7919} " + "y" * 300, f"category{n}")
    for n in range(40):
        memory.sessions.add("talk", [{"role": "user", "content": f"message {n}\n" * 50}])
    model = Model(memory)
    graph = arrives_whole(model("read_graph"))
    assert graph.structured["more"] and "there is more" in graph.text
    arrives_whole(model("search_nodes", query="observation"))
    arrives_whole(model("list_sessions"))
    said = arrives_whole(model("read_session", session="talk", last=200)).text
    assert "message 39" in said and "before these" in said
    cursor, keys = "", list[str]()
    while cursor is not None:
        page = arrives_whole(model("list_facts", cursor=cursor, limit=200))
        keys += [one["key"] for one in page.structured["facts"]]
        cursor = page.structured["next"]
    assert len(keys) == len(set(keys)) >= 100


@pytest.mark.parametrize("kind", TEXTS)
def test_pages_continue_at_the_end_of_the_last_one(kind: str) -> None:
    body, end, ends = TEXTS[kind], 0, list[int]()
    while end < len(body):
        ends.append(end := page_end(body, end, "frame"))
    assert ends == sorted(set(ends)) and ends[-1] == len(body)
    assert page_end("short", 0) == 5 and page_end("", 0) == 0
    for room in (0, 3, 40, 500, ANSWER):
        begun = beginning(body, room)
        assert body.startswith(begun)
        assert (
            not begun
            or weight("".join(f"> {line}\n" for line in clean_text(begun).split("\n"))) <= room + 200
        )


def test_six_tools_are_offered_by_default(memory: Memory) -> None:
    assert len(toolset(memory)) == 6
    assert unquote("> a\n") == "a"
