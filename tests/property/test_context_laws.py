"""Laws of lazy reading: a context block equals one that reads everything, and a message that is read alone
equals that of its whole session."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.device.writing import writing
from ipfsmem.memories import sessions
from ipfsmem.memories.context_talk import ContextLine, Said, Sought, least_bytes, shortened
from ipfsmem.memories.event_search import Reader, read_again, read_groups
from ipfsmem.memories.search_index import indexes_of
from ipfsmem.memories.sessions import Sessions
from ipfsmem.memory import Memory
from tests.support.device_lab import lab_in
from tests.support.effort import cases

WORDS = (
    "boiler",
    "flat",
    "roof",
    "tea",
    "Straße",
    "港",
    "leaks.",
    "C++",
    "x" * 700,
    "é" * 400,
    "\n\n",
    "Why? ",
)

short = st.lists(st.sampled_from(WORDS[:8]), min_size=1, max_size=8).map(" ".join)
long = st.builds(
    lambda said, times: " ".join(said * times),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=9),
    st.integers(1, 60),
)
said = st.one_of(short, long)
questions = st.lists(st.sampled_from(WORDS[:5]), min_size=1, max_size=4).map(" ".join)


@settings(max_examples=cases(30, 500), deadline=None)
@given(text=said, question=questions, asked=short, most=st.integers(60, 600))
def test_shortened_text_has_at_least_the_predicted_bytes(
    text: str, question: str, asked: str, most: int
) -> None:
    made = shortened(text, Sought.of(question), most, lambda: asked)
    assert least_bytes(text, most) <= len(made.encode())


def _eager(self: Said, room: int) -> ContextLine | None:
    return self._line


@settings(max_examples=cases(6, 75), deadline=None)
@given(
    told=st.lists(said, min_size=1, max_size=25),
    noted=st.lists(short, max_size=4),
    kept=st.lists(said, max_size=6),
    facts=st.lists(short, max_size=4),
    asked=st.lists(
        st.tuples(questions, st.sampled_from(["index", "ranked", "turn", "full"]), st.integers(200, 1_500)),
        min_size=1,
        max_size=3,
    ),
)
def test_lazily_read_context_equals_a_fully_read_one(
    told: list[str],
    noted: list[str],
    kept: list[str],
    facts: list[str],
    asked: list[tuple[str, Any, int]],
) -> None:
    with Memory.load("alex", "none") as memory:
        for n, text in enumerate(kept):
            memory.write(f"kept{n}", text.strip() or "nothing")
        for text in facts:
            memory.facts.add(text)
        for text in noted:
            memory.note("note", text=text)
        for begin in range(0, len(told), 6):
            memory.sessions.add(
                f"talk{begin}",
                [
                    {"role": ("user", "assistant")[n % 2], "content": one}
                    for n, one in enumerate(told[begin : begin + 6])
                ],
            )
        for question, layout, tokens in asked:
            how = {"layout": layout, "max_tokens": tokens, "by_meaning": False, "preview": True}
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Said, "line", _eager)
                whole = memory.context(question, **how)
            # The first reads what it does not know yet, the second knows the sizes of what the first read.
            assert memory.context(question, **how) == memory.context(question, **how) == whole


steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "import", "pop", "approve", "other", "sync"]), st.integers(1, 5)
    ),
    min_size=2,
    max_size=9,
)


@settings(max_examples=cases(3, 30), deadline=None)
@given(steps=steps)
def test_message_read_alone_equals_that_of_its_whole_session(
    steps: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with lab_in(tmp_path_factory.mktemp("lab")) as lab, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sessions, "FULL", 300)
        a = lab.create("a")
        lab.sync(a)
        b = lab.restore("b")
        lab.settle(a, b)
        for number, (what, many) in enumerate(steps):
            device = b if what == "other" else a
            here = device._open.memories.in_scope("")
            talk = [
                {"role": "user", "content": f"{what} {number}.{n} " + "waves " * 9 * n} for n in range(many)
            ]
            if what in ("add", "other"):
                device.sessions.add("talk", talk)
            elif what == "import":
                with writing(here.replica) as change:
                    Sessions(here).add_dated_in(
                        change, "talk", [(n, one) for n, one in enumerate(talk)], source="p"
                    )
            elif what == "approve":
                with writing(here.replica) as change:
                    Sessions(here).approve_in(change, "p")
            elif what == "pop":
                for _ in range(many):
                    device.sessions.pop("talk")
            else:
                lab.settle(a, b)
            for one in (a, b):
                one.recall("waves", kind="all", limit=200)
        lab.settle(a, b)
        for device in (a, b):
            found = device.recall("waves", kind="all", limit=200)
            here = device._open.memories.in_scope("")
            indexes_of(here).clear()  # and what was read with them
            assert device.recall("waves", kind="all", limit=200) == found
            (index,) = (one for one in indexes_of(here).values() if one.kind == "all")
            groups = {one.group for one in index.moments.values()}
            with here.replica.reading():
                whole = {one.id: one for _, there, _ in read_groups([here], sorted(groups)) for one in there}
                assert {id: one.moment for id, one in whole.items()} == index.moments
                reader = Reader([here], index.pieces, index.parts_read)
                for id, one in whole.items():
                    assert read_again([here], {id: one.moment}) == reader.read({id: one.moment}) == {id: one}
                assert read_again([here], index.moments) == whole
