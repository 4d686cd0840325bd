"""No operation shows a reader of some scopes another scope's words, names or word frequencies.

The reading operations are taken from the classes and tools, so a new one fails here until it has a row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.errors import IpfsmemError, NotFoundError
from ipfsmem.graph.drawing import FORMATS
from ipfsmem.groups import (
    Dreams,
    Facts,
    Graph,
    Hidden,
    MemoryStack,
    MemoryTimeline,
    Sessions,
    Usage,
    Values,
)
from ipfsmem.memories.event_entries import KINDS
from ipfsmem.memory import Memory
from ipfsmem.methods import MemoryMethods
from ipfsmem.open_vault.handle import reading_only
from ipfsmem.operations.recall import FoundMoment
from ipfsmem.published.versions import History
from ipfsmem.tools import toolset
from tests.support.effort import cases
from tests.support.tools_lab import Model

SCOPES = ("", "work", "home", "agent")
KEYS = tuple("abcd")
WORDS = ("tea", "milk", "sugar", "rain")
TALKS = tuple(f"talk {key}" for key in KEYS)
DOINGS = ("note", "say", "forget", "scope goes", "fact", "value", "entity", "relate", "use", "hide", "dream")


def fares(read: Any, key: str, word: str) -> Any:
    """Return the result of `why` for a key that may exist."""
    try:
        return read.why(key, word)
    except NotFoundError:
        return None


def asked(read: Callable[..., Any], *given: Any) -> Any:
    """Return the answer of an operation; None if it does not exist."""
    try:
        return read(*given)
    except NotFoundError:
        return None


#: Each operation of a stack; the function returns what it shows for all keys and words.
OF_STACK: dict[str, Callable[[MemoryStack], Any]] = {
    "read": lambda stack: [stack.read(key) for key in KEYS],
    "list": lambda stack: stack.list(),
    "recall": lambda stack: [
        *(stack.recall(word, limit=200, explain=True) for word in (*WORDS, "te", "suga")),
        *(stack.recall("tea said", limit=200, explain=True, kind=kind) for kind in KINDS),
    ],
    "duplicates": lambda stack: stack.duplicates(similarity=0.5),
    "why": lambda stack: [fares(stack, key, word) for key in KEYS for word in WORDS],
    "context": lambda stack: [
        stack.context("tea milk", layout=layout, max_tokens=50_000)  # type: ignore[arg-type]
        for layout in ("index", "ranked", "full", "turn")
    ],
    "timeline": lambda stack: [stack.timeline.read(), stack.timeline.days()],
}
#: Operations of one scope.
OF_SCOPE: dict[str, Callable[[Memory], Any]] = {
    "read": lambda texts: [texts.read(key) for key in KEYS],
    "list": lambda texts: texts.list(),
    "recall": lambda texts: [
        *(texts.recall(word, limit=200, explain=True) for word in WORDS),
        *(texts.recall("tea said", limit=200, kind=kind) for kind in KINDS),
    ],
    "duplicates": lambda texts: texts.duplicates(similarity=0.5),
    "why": lambda texts: [fares(texts, key, word) for key in KEYS for word in WORDS],
    "context": lambda texts: [texts.context("tea milk", layout="full", max_tokens=50_000)],
    "index": lambda texts: texts.index(),
    "conflicts": lambda texts: texts.conflicts(),
    "history": lambda texts: [asked(texts.history, key) for key in KEYS],
    "revision": lambda texts: [
        asked(texts.revision, key, str(one.sha256))
        for key in KEYS
        for one in (asked(texts.history, key) or History(key=key, versions=())).versions
        if one.sha256
    ],
    "pending": lambda texts: texts.pending(),
    "files": lambda texts: texts.files(),
}
#: Operations of the parts of one scope that read memories; an unsupported filter is skipped.
OF_PARTS: dict[type, dict[str, Callable[[Any], Any]]] = {
    Facts: {
        "list": lambda facts: facts.list(),
        "get": lambda facts: [facts.get(one.key) for one in facts.list()] + [facts.get(key) for key in KEYS],
        "history": lambda facts: [facts.history(), *(asked(facts.history, key) for key in KEYS)],
    },
    MemoryTimeline: {
        "read": lambda timeline: timeline.read(),
        "days": lambda timeline: timeline.days(),
    },
    Values: {
        "list": lambda values: values.list(),
        "get": lambda values: [values.get(f"value:{key}") for key in KEYS],
        "history": lambda values: [asked(values.history, f"value:{key}") for key in KEYS],
    },
    Hidden: {"list": lambda hidden: hidden.list()},
    Graph: {
        "list": lambda graph: graph.list(),
        "relations": lambda graph: graph.relations(),
        "search": lambda graph: [graph.search(word) for word in (*WORDS, "entity")],
        "query": lambda graph: [asked(graph.query, f"entity {key}") for key in KEYS],
        "get": lambda graph: [graph.get(f"entity {key}") for key in KEYS],
        "path": lambda graph: [asked(graph.path, "entity a", f"entity {key}") for key in KEYS],
        "named": lambda graph: graph.named([*KEYS, *(f"entity {key}" for key in KEYS)]),
        "touching": lambda graph: [
            asked(lambda key: graph.touching([key], limit=50), f"entity {key}") for key in KEYS
        ],
        "called": lambda graph: graph.named(graph.called(one.key for one in graph.list()).values()),
        "around": lambda graph: [graph.around(), *(asked(graph.around, f"entity {key}", 5) for key in KEYS)],
        "drawn": lambda graph: [graph.drawn(format=form) for form in FORMATS],
    },
    Sessions: {
        "list": lambda sessions: sessions.list(),
        "info": lambda sessions: [sessions.info(talk) for talk in TALKS],
        "messages": lambda sessions: [sessions.messages(talk) for talk in TALKS],
        "known": lambda sessions: sessions.known(),
        "items": lambda sessions: [sessions.items(talk) for talk in TALKS],
        "kept": lambda sessions: [sessions.kept(talk) for talk in TALKS],
        "told": lambda sessions: [sessions.told(talk) for talk in TALKS],
        "seen": lambda sessions: [sessions.seen(talk) for talk in TALKS],
        "resume": lambda sessions: [sessions.resume(talk) for talk in TALKS],
        "search": lambda sessions: sessions.search("tea"),
        "export": lambda sessions: [sessions.export(talk) for talk in TALKS],
        "status": lambda sessions: sessions.status(),
    },
    Usage: {
        "list": lambda usage: usage.list(),
        "totals": lambda usage: usage.totals("model"),
        "csv": lambda usage: usage.csv(),
        "budgets": lambda usage: usage.budgets(),
    },
    Dreams: {
        "propose": lambda dreams: dreams.propose(),
        "proposed": lambda dreams: dreams.proposed(),
        "status": lambda dreams: dreams.status(),
        "list": lambda dreams: dreams.list(),
    },
}
#: Operations that change something.
WRITING: dict[type, set[str]] = {
    Facts: {"add", "edit", "delete", "restore", "keep", "keeping"},
    MemoryTimeline: {"add"},
    Values: {"set", "delete", "clear", "sweep", "restore"},
    Hidden: {"add", "bring_back"},
    Graph: {"add", "observe", "unobserve", "relate", "unrelate", "delete"},
    Sessions: {
        "create",
        "conversation",
        "add",
        "pop",
        "compact",
        "approve",
        "forget",
        "model_summariser",
    },
    Usage: {"add"},
    Dreams: {"ask", "apply", "run", "run_due", "undo", "switch", "abort"},
}
#: The part of a memory that has each operation.
PARTS: dict[type, str] = {
    Facts: "facts",
    MemoryTimeline: "timeline",
    Values: "values",
    Hidden: "hidden",
    Graph: "graph",
    Sessions: "sessions",
    Usage: "usage",
    Dreams: "dreams",
}
#: Operations that change something, or only return the current place.
NOT_READING = {
    "sync",
    "status",
    "check",
    "write",
    "forget",
    "resolve",
    "approve",
    "promote",
    "restore",
    "undo",
}
OF_TOOLS: dict[str, list[dict[str, Any]]] = {
    "read_memory": [{"key": key} for key in KEYS],
    "list_memories": [{}],
    "recall": [
        *({"query": word, "limit": 50} for word in WORDS),
        *({"query": "tea said", "limit": 50, "kind": kind} for kind in KINDS),
    ],
    "context": [
        {"query": "tea milk", "layout": layout, "max_tokens": 20_000} for layout in ("full", "ranked")
    ],
    "memory_recall": [{"query": word} for word in WORDS],
    "memory_list": [{}],
    "read_graph": [{}],
    "search_nodes": [{"query": word} for word in (*WORDS, "entity")],
    "open_nodes": [{"names": [f"entity {key}" for key in KEYS]}],
    "knowledge_query": [{"source": f"entity {key}", "max_depth": 5} for key in KEYS],
    "find_path": [{"begin": "entity a", "end": f"entity {key}"} for key in KEYS],
    "list_facts": [{"limit": 200}],
    "fact_history": [{}, *({"key": key} for key in KEYS)],
    "list_sessions": [{}],
    "read_session": [{"session": talk} for talk in TALKS],
    "dream_status": [{}],
    "show_dream": [{}],
    "usage": [{"by": by} for by in ("model", "day")],
}
#: All tools that a model may be offered.
SETS = ("everyday", "timeline", "peers", "graph", "life")

operations = st.lists(
    st.tuples(
        st.sampled_from(SCOPES),
        st.sampled_from(KEYS),
        st.sampled_from((*WORDS, *DOINGS)),
    ),
    max_size=24,
)


def public(owner: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(owner) if not name.startswith("_") and name.islower()}


def test_every_reading_operation_has_a_row() -> None:
    assert public(MemoryStack) == OF_STACK.keys()
    assert ({"index", "files"} | public(MemoryMethods)) - NOT_READING == OF_SCOPE.keys()
    for part, rows in OF_PARTS.items():
        assert public(part) - WRITING[part] == rows.keys(), part
    with Memory.load("alex", "none") as memory:
        assert {tool.name for tool in toolset(memory, SETS, read_only=True)} == OF_TOOLS.keys()


def filled(done: Iterable[tuple[str, str, str]], only: Iterable[str] = SCOPES) -> Memory:
    """A vault in which these steps were done in some scopes. Each text and event has a unique word."""
    memory = Memory.load("alex", "none")
    for n, (scope, key, what) in enumerate(done):
        if scope not in only:
            continue
        if scope in memory.scopes.names(forgotten=True):
            continue  # no text is written there
        there = memory.scope(scope) if scope else memory
        mark = f"zq{SCOPES.index(scope)}n{n}zq"
        if what == "note":
            there.note("said", text=f"tea {mark}")
        elif what == "say":
            there.sessions.add(f"talk {key}", [{"role": "user", "content": f"tea {mark}"}])
        elif what == "forget":
            there.forget(key)
        elif what == "fact":
            there.facts.add(f"tea {mark}", mark)
        elif what == "value":
            there.values.set(f"value:{key}", f"tea {mark}")
        elif what == "entity":
            there.graph.add(f"entity {key}", mark, [f"tea {mark}"])
        elif what == "relate":
            for name in (f"entity {key}", "entity d"):
                there.graph.add(name, mark, [mark])
            there.graph.relate(f"entity {key}", mark, "entity d")
        elif what == "use":
            there.usage.add(model=mark)
        elif what == "hide":
            if there.read(key) is not None:
                there.hidden.add([key], why=mark)
        elif what == "dream":
            for twin in (f"{key}_one", f"{key}_two"):
                there.write(twin, f"Drinks tea with milk, and says {mark}.", type="user")
            there.write(f"{key}_see", f"See [[{key}_one]] and [[{key}_two]] {mark}", type="user")
            there.dreams.propose()
        elif what == "scope goes":
            if scope and memory.scopes.get(scope) is not None:
                memory.scopes.forget(scope)
        else:
            there.write(key, f"{what} {mark}", name=mark, description=mark, tags=[mark], type="user")
    return memory


def marks(value: Any) -> set[int]:
    """Return the scopes whose words occur in a value."""
    text = repr(value)
    return {at for at in range(len(SCOPES)) if f"zq{at}n" in text}


@settings(max_examples=cases(25, 300), deadline=None)
@given(operations, st.lists(st.sampled_from(SCOPES[1:]), max_size=3, unique=True))
def test_stack_shows_nothing_of_another_scope(done: list[tuple[str, str, str]], tokens: list[str]) -> None:
    allowed = {SCOPES.index(scope) for scope in (*tokens, "")}
    with filled(done) as memory:
        for name, call in OF_STACK.items():
            assert marks(call(memory.stack(*tokens))) <= allowed, name
        for scope in tokens:
            for name, read in OF_SCOPE.items():
                try:
                    shown = marks(read(memory.scope(scope)))  # type: ignore[arg-type]
                except NotFoundError:
                    continue  # it is forgotten
                # What a model is given of a scope is followed by the default scope.
                assert shown <= {SCOPES.index(scope), *([0] if name == "context" else [])}, name


@settings(max_examples=cases(15, 200), deadline=None)
@given(operations)
def test_part_of_one_scope_shows_nothing_of_another(done: list[tuple[str, str, str]]) -> None:
    with filled(done) as memory:
        for scope in SCOPES:
            there = memory.scope(scope) if scope else memory
            for part, rows in OF_PARTS.items():
                for name, read in rows.items():
                    shown = marks(asked(read, getattr(there, PARTS[part])))
                    assert shown <= {SCOPES.index(scope)}, (part, name)


@settings(max_examples=cases(15, 150), deadline=None)
@given(operations, st.sampled_from(SCOPES))
def test_tool_shows_nothing_of_another_scope(done: list[tuple[str, str, str]], scope: str) -> None:
    allowed = {SCOPES.index(scope), 0}
    with filled(done) as memory:
        model = Model(memory, names=SETS, scope=scope or None)
        for name, calls in OF_TOOLS.items():
            for arguments in calls:
                try:
                    said = model(name, **arguments)
                except IpfsmemError as error:
                    assert marks(str(error)) <= allowed, name
                else:
                    assert marks((said.text, said.structured)) <= allowed, name


@settings(max_examples=cases(20, 200), deadline=None)
@given(operations, st.lists(st.sampled_from(SCOPES[1:]), max_size=2, unique=True))
def test_hits_and_scores_equal_those_of_a_vault_without_other_scopes(
    done: list[tuple[str, str, str]], tokens: list[str]
) -> None:
    def noted(hit: FoundMoment) -> Any:
        # Events of one millisecond stand in the order of their ids, which another scope's events move on.
        mark = hit.text.rpartition("zq")[0][-6:]
        return hit.kind, hit.scope, mark, hit.score if hit.kind == "message" else 0.0

    # That a scope was forgotten is an event of everybody's.
    goes = any(what == "scope goes" for _, _, what in done)

    def found(memory: Memory) -> list[Any]:
        stack = memory.stack(*tokens)
        hits = [stack.recall(word, limit=50, explain=True) for word in WORDS]
        kinds = ("memory", "message") if goes else ("memory", "message", "event")
        hits += [stack.recall("tea said", limit=50, explain=True, kind=kind) for kind in kinds]
        block = stack.context("tea milk", layout="full", max_tokens=50_000)
        return [
            [[(hit.scope, hit.key, hit.score, hit.parts) for hit in one.hits] for one in hits],
            [sorted(map(noted, one.moments)) for one in hits],
            [(one.searched, one.not_fetched) for one in hits],
            (block.shown, block.skipped, block.listed, block.left_out),
        ]

    with filled(done) as whole, filled(done, (*tokens, "")) as part:
        assert found(whole) == found(part)


def test_tool_rows_show_the_texts_of_their_scope() -> None:
    done = [("work", "a", what) for what in ("entity", "relate", "fact", "use", "say", "dream")]
    with filled(done) as memory:
        model = Model(memory, names=SETS, scope="work")
        for name in OF_TOOLS.keys() - {"read_memory", "list_memories", "recall", "context", "dream_status"}:
            if name.startswith("memory_") or name == "fact_history":
                continue  # there is no value by key and no earlier text
            said = [model(name, **given) for given in OF_TOOLS[name]]
            assert marks([(one.text, one.structured) for one in said]) == {1}, name


@pytest.mark.parametrize("covered", [(), ("work",), ("work", "home"), None])
def test_list_of_scopes_has_only_those_that_the_caller_covers(covered: tuple[str, ...] | None) -> None:
    with filled([(scope, "a", "tea") for scope in SCOPES]) as memory:
        with reading_only(None if covered is None else frozenset(covered)):
            listed = [one.scope for one in memory.scopes.list()]
        assert listed == sorted(SCOPES[1:] if covered is None else covered)


def test_rows_of_parts_show_the_texts_of_their_scope() -> None:
    done = [
        ("work", "a", what)
        for what in ("entity", "relate", "fact", "value", "use", "say", "tea", "hide", "dream")
    ]
    with filled(done) as memory:
        for part, rows in OF_PARTS.items():
            there = getattr(memory.scope("work"), PARTS[part])
            silent = {
                Facts: {"history"},
                Values: {"history"},
                MemoryTimeline: {"days"},
                Sessions: {"known", "latest", "seen", "due", "is_here"},
                Usage: {"budgets"},
                Dreams: rows.keys() - {"propose", "proposed"},
            }
            for name in rows.keys() - silent.get(part, set()):
                assert marks(rows[name](there)) == {1}, (part, name)


@pytest.mark.parametrize("scope", SCOPES[1:])
def test_reading_rows_show_the_texts_of_their_scope(scope: str) -> None:
    """Otherwise the properties above would hold trivially."""
    with filled([(scope, "a", "tea"), ("", "b", "milk"), (scope, "", "note")]) as memory:
        for name in ("read", "list", "recall", "context"):
            assert marks(OF_STACK[name](memory.stack(scope))) == {0, SCOPES.index(scope)}, name
        for name in ("read", "list", "recall", "context", "index", "files"):
            shown = marks(OF_SCOPE[name](memory.scope(scope)))  # type: ignore[arg-type]
            assert shown - {0} == {SCOPES.index(scope)}, name
        assert marks(OF_STACK["timeline"](memory.stack(scope))) == {SCOPES.index(scope)}
    with filled([(scope, "a", "say"), (scope, "", "note")]) as memory:
        for kind in ("event", "message"):
            for other in SCOPES[1:]:
                found = marks(memory.stack(other).recall("tea", kind=kind))
                assert found == ({SCOPES.index(scope)} if other == scope else set())
