"""Laws of recall: the same query has the same answer whatever happened before, and fewer hits are a prefix
of more."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.memory import Memory
from ipfsmem.operations.recall import Recalled, RecallHit
from ipfsmem.recall import ranking
from tests.support.effort import cases

WORDS = ("boiler", "flat", "roof", "tea", "garden", "harbour", "may", "leaks")
KINDS = ("memory", "event", "message", "all")
ARRAYS = [False, pytest.param(True, marks=pytest.mark.skipif(not find_spec("numpy"), reason="needs NumPy"))]

said = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
memories = st.lists(st.tuples(said, st.sampled_from(["", "0.4", "2020-01-01"])), max_size=8)
questions = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
asked_of = st.tuples(
    questions, st.sampled_from(KINDS), st.sampled_from([1, 2, 3, 5, 10, 100]), st.sampled_from(["", "work"])
)


def in_order(found: Recalled) -> list[tuple[Any, ...]]:
    """Return all hits in order, each with its explanation."""
    return [
        (
            (hit.scope, hit.key) if isinstance(hit, RecallHit) else (hit.kind, hit.text),
            hit.score,
            tuple(sorted((hit.parts or {}).items())),
        )
        for hit in found.in_order()
    ]


def made(own: list[tuple[str, str]], others: list[str], noted: list[str], told: list[str]) -> Memory:
    memory = Memory.load("alex", "none")
    for n, (text, more) in enumerate(own):
        there = memory.scope("work") if n % 3 == 2 else memory
        fields = {"confidence": more, "decay": "30d"} if more == "0.4" else {"expires": more} if more else {}
        there.write(f"own{n}", text, type="user", fields=fields)
    if own:
        memory.hidden.add(["own0"])
    if others:
        files = {f"theirs{n}.md": text for n, text in enumerate(others)}
        memory.bundles.import_(
            json.dumps({"version": "memory/0.1", "files": files, "timeline": []}), foreign=True
        )
    for text in noted:
        memory.note("note", text=text)
    if told:
        memory.sessions.add("talk", [{"role": "user", "content": text} for text in told])
    return memory


@pytest.mark.parametrize("arrays", ARRAYS)
@settings(max_examples=cases(10, 150), deadline=None)
@given(
    own=memories,
    others=st.lists(said, max_size=3),
    noted=st.lists(said, max_size=5),
    told=st.lists(said, max_size=5),
    asked=st.lists(asked_of, min_size=2, max_size=4),
)
def test_recall_is_deterministic_and_few_hits_begin_many(
    arrays: bool,
    own: list[tuple[str, str]],
    others: list[str],
    noted: list[str],
    told: list[str],
    asked: list[tuple[str, str, int, str]],
) -> None:
    memory = made(own, others, noted, told)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "_by_arrays", lambda index: arrays)
        plain_or_not: Callable[[Any], bool] = lambda index: not arrays  # noqa: E731

        def answer(question: str, kind: str, limit: int, scope: str) -> list[tuple[Any, ...]]:
            there: Any = memory.scope(scope) if scope else memory
            return in_order(there.recall(question, kind=kind, limit=limit, explain=True))

        first = [answer(*one) for one in asked]
        for one in range(len(own)):
            memory.read(f"own{one}")
        for question, *_ in asked:
            memory.context(question, layout="ranked")
        assert [answer(*one) for one in asked] == first
        if find_spec("numpy"):
            patch.setattr(ranking, "_by_arrays", plain_or_not)
            assert [answer(*one) for one in asked] == first
        for (question, kind, limit, scope), found in zip(asked, first, strict=True):
            assert answer(question, kind, 100, scope)[:limit] == found
            assert not any("own0" in hit[0] for hit in found)
            assert in_order(
                memory.recall(queries=[question, question], kind=kind, limit=limit, explain=True)
            ) == (  # type: ignore[arg-type]
                answer(question, kind, limit, "")
            )
        several = [one[0] for one in asked]
        for kind in KINDS:
            many = in_order(memory.recall(queries=several, kind=kind, limit=100, explain=True))
            for limit in (1, 3, 10):
                few = in_order(memory.recall(queries=several, kind=kind, limit=limit, explain=True))
                assert few == many[:limit]
            other = in_order(memory.recall(several[-1], queries=several[::-1], kind=kind, limit=100))
            assert [hit[:2] for hit in other] == [hit[:2] for hit in many]
            assert not any("own0" in hit[0] for hit in many)
    memory.close()
