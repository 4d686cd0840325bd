"""Recall and context over memories, messages and events equal Python's in the browser client, on random
vaults."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ipfsmem.bundle.session_parts import session_token
from ipfsmem.device.replica import Environment
from ipfsmem.device.writing import writing
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.sessions import Sessions
from ipfsmem.memory import Memory
from ipfsmem.testing.clock import MockClock, SeededRandom
from ipfsmem.vault.home import Home
from tests.support.effort import THOROUGH, cases
from tests.support.found import found_in
from tests.support.web_lab import PEER_TOKEN, WALLET, ClientError, WebDevice, by_wallet, root_of, web_client

#: Monday, 23 November 2026, at noon UTC.
NOW = 1_795_435_200_000
MINUTE, DAY = 60_000, 86_400_000
#: A device of which only parts of sessions are here.
OTHER = "e" * 16
WORDS = [
    "otter", "otters", "cage", "certificate", "renews", "certbot", "deploy", "deployed", "releases", "Friday", "Ana", "Bob", "the", "green",
    "bicycle", "harbour", "two", "16:30", "C++", "東京の塔", "Straße", "yesterday", "postgres", "pump",
]  # fmt: skip
SCOPES = ["", "shop", "old_shop"]
SESSIONS = ["chat", "standup", "a longer talk"]
QUERIES = [
    "who renews the certificate", "otter", "when was it deployed", "how many otters are in the cage", "green bicycle", "what did Bob say",
    "東京", "last week", "in November 2026", "postgrse", "harbo", "strasse", "nothing of all", "releases on Friday and the pump",
]  # fmt: skip


#: The filters of a query.
HOW: list[dict[str, Any]] = [
    {"queries": ["deployed releases", "who renews the certificate"]}, {"queries": ["東京", "Ana"], "about": "otter"}, {"about": "green bicycle"}, {"by": "Ana"}, {"by": "Bob"}, {"by": "desk"},
    {"by": "assistant"}, {"by": OTHER}, {"when": "last week"}, {"when": "this month", "by": "ana maria"}, {"since": "2026-10-20"}, {"until": "monday"}, {"since": "14d", "until": "yesterday"},
    {"when": "march 2025"}, {"when": "1969"}, {"type": "assistant", "since": "2026-11-01"}, {"by": "nobody"}, {"when": "soon"}, {"since": "2026-11-02", "until": "2026-11-01"},
]  # fmt: skip


def sentence(random: Random, most: int = 9) -> str:
    said = " ".join(random.choices(WORDS, k=random.randint(1, most)))
    return said + random.choice(["", ".", "?", "!"])


def spoken(random: Random) -> str:
    """Return the text of a message: short, a list, long without sentences, or by a named speaker."""
    match random.randint(0, 5):
        case 0:
            return "\n".join(f"{n}. {sentence(random)}" for n in range(random.randint(2, 40)))
        case 1:
            return " ".join(sentence(random, 30) for _ in range(12))
        case 2:
            return f"{random.choice(['Ana', 'Bob', 'Ana Maria'])}: {sentence(random)}"
        case _:
            return sentence(random)


def item(random: Random, now: int, *, cut: float = 0.0) -> dict[str, Any]:
    """Return a message; `cut`: how often it ends in half an emoji."""
    made: dict[str, Any] = {"role": random.choice(["user", "assistant", "assistant", "tool", "system"])}
    made["content"] = spoken(random) + (" \ud83d" if random.random() < cut else "")
    if random.random() < 0.2:
        made["ts"] = random.choice(
            ["2026-11-16T09:00:00Z", "2025-03-01T10:00:00+02:00", "1969-07-20T20:17:00Z", "no time"]
        )
    elif random.random() < 0.1:
        made["created_at"] = (now - 3 * DAY) / random.choice([1, 1000])
    if (named := Random(repr(made))).random() < 0.3:
        made["name"] = named.choice(["Ana", "ana_maria-2", "2nd floor", " Bob\u00a0 Li ", "東" * 70, "", 7])
    if named.random() < 0.2:  # as in a transcript of people, most without a role
        made = {"text" if name == "content" else name: value for name, value in made.items()}
        made["speaker"] = made.pop("name", named.choice(["Cleo", 7]))
        if named.random() < 0.8:
            del made["role"]
    return made


class Drawing:
    """A vault that grows at random, at fixed times."""

    def __init__(self, folder: Path, url: str, seed: int) -> None:
        self.random = Random(seed)
        self.clock = MockClock((NOW - 60 * DAY) * 10**6)
        self._parts: dict[tuple[str, str], list[dict[str, Any]]] = {}
        home = Home(
            folder=folder,
            label="desk",
            environment=Environment(lambda: self.clock.ms, SeededRandom(f"{seed}")),
        )
        self.memory = Memory.create(
            "shared", "encrypted-ipfs", provider=f"peer:{url}", unlock=WALLET, passphrase=False, home=home
        )
        foreign = {
            "guest.md": "The otter of a guest renews nothing.",
            "timeline/2026-11-01.jsonl": '{"ts":"2026-11-01T10:00:00Z","type":"said","text":"Guests deploy the otter."}\n',
        }
        self.memory.bundles.import_(
            json.dumps({"version": "memory/0.1", "files": foreign, "meta": {"scope": ""}}), foreign=True
        )

    def grow(self, steps: int) -> None:
        acts: list[Callable[[], object]] = [
            self.write, self.write, self.note, self.note, self.talk, self.talk, self.talk, self.bring, self.beside, self.fact, self.forget,
        ]  # fmt: skip
        for _ in range(steps):
            self.clock.ns += self.random.choice([0, 0, 1, MINUTE, 90 * MINUTE, DAY]) * 10**6
            self.random.choice(acts)()
        self.memory.scopes.redirect("old_shop", "shop")
        if self.random.random() < 0.5:
            self.approve(self.memory)
        self.talk()
        self.clock.ns = NOW * 10**6

    def part(self) -> tuple[str, Any]:
        scope = self.random.choice(SCOPES)
        return scope, self.memory.scope(scope) if scope else self.memory

    def write(self) -> None:
        fields: dict[str, str] = self.random.choice(
            [
                {},
                {},
                {"important": "yes"},
                {"expires": "2026-11-01"},
                {"expires": "2027-01-01", "category": "work"},
            ]
        )
        key = f"note_{self.random.randint(0, 9)}"
        self.part()[1].write(key, spoken(self.random), description=sentence(self.random), fields=fields)

    def fact(self) -> None:
        self.part()[1].facts.add(sentence(self.random), self.random.choice(["restriction", "work"]))

    def note(self) -> None:
        data: dict[str, Any] = self.random.choice(
            [{"text": sentence(self.random), "speaker": "Bob"}, {"what": sentence(self.random), "10": "x", "2": "otter", "n": 0.00001}, {"text": spoken(self.random)}]
        )  # fmt: skip
        self.part()[1].note(self.random.choice(["said", "decided deploy", "used"]), **data)

    def talk(self) -> None:
        said = [item(self.random, self.clock.ms, cut=0.1) for _ in range(self.random.randint(1, 4))]
        self.part()[1].sessions.add(self.random.choice(SESSIONS), said)

    def bring(self) -> None:
        """Import messages, some of which are approved."""
        scope, part = self.part()
        said = [(self.clock.ms - n, item(self.random, self.clock.ms)) for n in range(3)]
        memories = MemoryStore(self.memory.replica, scope)
        with writing(memories.replica) as change:
            Sessions(memories).add_dated_in(
                change, self.random.choice(SESSIONS), said, source=self.random.choice(["chatgpt", "claude"])
            )
        if self.random.random() < 0.3:
            self.approve(part)

    def approve(self, part: Any) -> None:
        with contextlib.suppress(NotFoundError):
            part.approve(source="chatgpt")

    def beside(self) -> None:
        """Add a message of another device at the same moment."""
        scope, part = self.part()
        name = self.random.choice(SESSIONS)
        lines = self._parts.setdefault((scope, name), [])
        lines.append({"at": self.clock.ms, "n": 0, "item": item(self.random, self.clock.ms, cut=0.3)})
        body = "\n".join({line["at"]: json.dumps(line) for line in lines}.values())
        text = f"---\ntype: session\nsession: {name}\n---\n\n{body}\n"
        part.write_text(f"session-{session_token(name)}-{OTHER}-0", text.encode())

    def forget(self) -> None:
        _, part = self.part()
        match self.random.randint(0, 2):
            case 0:
                part.sessions.pop(self.random.choice(SESSIONS))
            case 1 if self.random.random() < 0.3:
                part.sessions.forget(self.random.choice(SESSIONS))
            case _:
                part.forget(f"note_{self.random.randint(0, 9)}")


def found_by(memory: Any, query: str, **how: Any) -> dict[str, Any]:
    """Return Python's hits in the form of `said_by`."""
    answer = found_in(memory._view().sources(), query, explain=True, **how)
    rows = [
        *((hit.place, "memory", hit.reading.scope, hit.reading.key, hit.score, hit.parts) for hit in answer.hits),
        *(
            (hit.place, hit.moment.kind, hit.moment.scope, [hit.moment.own, hit.moment.device, hit.moment.at, hit.moment.type, hit.moment.session, hit.event or hit.text], hit.score, hit.parts)
            for hit in answer.moments
        ),
    ]  # fmt: skip
    return {"searched": answer.matches.searched, "missing": answer.matches.not_fetched, "rows": sorted(rows)}


def said_by(web: WebDevice, query: str, **how: Any) -> dict[str, Any]:
    """Return the client's hits."""
    answer = web.recall(query, how)
    rows = [
        *((hit["place"], "memory", hit["reading"]["scope"], hit["reading"]["key"], hit["score"], hit["parts"]) for hit in answer["hits"]),
        *(
            (hit["place"], one["kind"], one["scope"], [one["own"], one["device"], one["at"], one["type"], one["session"], one["event"] or one["text"]], hit["score"], hit["parts"])
            for hit in answer["moments"]
            for one in [hit["moment"]]
        ),
    ]  # fmt: skip
    return {"searched": answer["searched"], "missing": answer["notFetched"], "rows": sorted(rows)}


def assert_same(ours: dict[str, Any], theirs: dict[str, Any], what: object) -> None:
    assert (theirs["searched"], theirs["missing"]) == (ours["searched"], ours["missing"]), what
    assert [row[:4] for row in theirs["rows"]] == [row[:4] for row in ours["rows"]], what
    for row, expected in zip(theirs["rows"], ours["rows"], strict=True):
        assert row[4] == pytest.approx(expected[4], abs=1e-9), (what, expected)
        assert row[5] == pytest.approx(expected[5], abs=1e-9), (what, expected)


@pytest.fixture(params=range(cases(2, 8)))
def both(
    request: pytest.FixtureRequest, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Memory, WebDevice]]:
    """A drawn vault in Python, and a browser client that opened it."""
    monkeypatch.setenv("PEER_TOKEN", PEER_TOKEN)
    drawing = Drawing(tmp_path / "home", url, request.param)
    drawing.grow(90)
    with drawing.memory as memory, web_client() as client:
        root_of(memory)
        client.ask({"do": "later", "ms": NOW - time.time_ns() // 10**6})
        yield memory, client.open("reader", url, **by_wallet(), token=PEER_TOKEN)


def test_random_memories_are_found_as_in_python(both: tuple[Memory, WebDevice]) -> None:
    memory, web = both
    found = pending = 0
    for query, kind, scope in product(QUERIES, ["all", "event", "message", "memory"], ["", "shop"]):
        part: Any = memory.scope(scope) if scope else memory
        limit = 200 if len(query) % 2 else 5
        ours = found_by(part, query, kind=kind, limit=limit)
        assert_same(ours, said_by(web, query, kind=kind, limit=limit, scope=scope), (query, kind, scope))
        found += len(ours["rows"])
        pending += sum(row[1] == "message" and not row[3][0] for row in ours["rows"])
    assert found > 100 and pending > 0
    for n, (query, how) in enumerate(product(QUERIES if THOROUGH else QUERIES[::4], HOW)):
        how = {**how, "kind": ("all", "message", "memory", "event")[n % 5 % 4], "limit": (200, 3)[n % 2]}
        try:
            ours = found_by(memory, query, **how)
        except UsageError as refused:
            with pytest.raises(ClientError) as error:
                web.recall(query, how)
            said = str(error.value).replace('"', "'")
            assert said.partition(" ")[0] == str(refused).partition(" ")[0], how
        else:
            assert_same(ours, said_by(web, query, **how), (query, how))
    given = 0
    asked = list(product(QUERIES, ["index", "full", "ranked", "turn"], [None, 300, 9_000], ["", "chat"]))
    for n, (query, layout, size, running) in enumerate(asked if THOROUGH else asked[::5]):
        scope = ("", "shop")[n % 2]
        part = memory.scope(scope) if scope else memory
        how = {"query": query, "layout": layout, "scope": scope, "preview": True, "running": running}
        block = part.context(query, max_tokens=size, layout=layout, preview=True, running=running)
        made = web.context(how if size is None else {**how, "maxTokens": size})
        assert made["text"] == block.text, how
        assert (made["tokens"], made["said"], made["events"]) == (block.tokens, block.said, block.events)
        assert (made["shown"], made["skipped"]) == (list(block.shown), list(block.skipped))
        given += block.said
    assert given > 50


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system sets no zone of one process")
def test_days_of_messages_use_the_time_zone_of_the_reader(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = "America/Los_Angeles"
    monkeypatch.setenv("PEER_TOKEN", PEER_TOKEN)
    try:
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        drawing = Drawing(tmp_path / "home", url, 0)
        drawing.clock.ns = (NOW - 11 * 60 * MINUTE) * 10**6  # Monday in UTC, Sunday in California
        drawing.memory.sessions.add("chat", [{"role": "user", "content": "The otter sleeps."}])
        drawing.clock.ns = NOW * 10**6
        with drawing.memory as memory, web_client(zone) as client:
            root_of(memory)
            client.ask({"do": "later", "ms": NOW - time.time_ns() // 10**6})
            web = client.open("reader", url, **by_wallet(), token=PEER_TOKEN)
            assert [hit.text for hit in memory.sessions.search("yesterday")] == ["The otter sleeps."]
            assert [hit["text"] for hit in web.searchSessions("yesterday")] == ["The otter sleeps."]
            for when, number in (("yesterday", 1), ("sunday", 1), ("today", 0), ("2026-11-22", 1)):
                how: dict[str, Any] = {"kind": "message", "when": when}
                ours = found_by(memory, "otter", **how)
                assert len(ours["rows"]) == number, when
                assert_same(ours, said_by(web, "otter", **how), when)
    finally:
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()
