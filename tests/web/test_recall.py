"""The browser client ranks as Python does: the same hits in the same order, with the same scores and parts."""

from __future__ import annotations

import json

import pytest

from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memory import Memory
from tests.support.found import found_in
from tests.support.web_lab import PEER_TOKEN, ClientError, by_wallet, root_of, web_client, words_of

TEXTS = {
    "deploy_rules": ("Deploying", "Never deploy on Fridays; the releases are deployed by Ana.", "feedback", ["ops"]),
    "coffee": ("Coffee", "Drinks coffee black. Café Müller in the Straße am Fluß is the favourite.", "user", []),
    "database": ("Databases", "Postgres in production, SQLite in tests. Migrations run before releases.", "project", ["db", "ops"]),
    "tokyo": ("東京", "東京タワーの近くに住んでいます。", "user", ["jp"]),
    "cairo": ("Cairo", "والكتاب على الطاولة في القاهرة", "user", []),
    "old_note": ("Old", "Ran a marathon on 3 May 2024 and rationalised relational databases.", "", []),
    "greek": ("Greek", "Ο ΟΔΟΣ της πόλεως, ὀδυσσεύς", "reference", []),
    "hindi": ("Hindi", "मुझे चाय पसंद है, coffee नहीं", "user", []),
    "languages": ("Languages", "The parser is written in C++, the viewer in C#, the driver in C.", "project", []),
    "cat": ("猫", "うちの猫は元気です。", "user", []),
    "editor": ("Editor", "Uses vim; hopping between buffers, sitting and running tests happily.", "user", ["tools"]),
}  # fmt: skip
QUESTIONS = [
    "who deploys releases?", "coffee in the strasse", "cafe muller", "databases and migration", "東京タワー", "كتاب القاهرة",
    "what happened in May 2024", "last week", "οδος", "चाय", "hopped tests", "relational rationalise", "today", "ops db", "fluss",
    "zzz nothing", "postgrse", "cofee", "migrashun", "rela", "deployer", "одос", "databses", "who signs the releases", "gauge of pump 14", "池のある庭", "guests", "written in C++", "C#",
    "c", "¿bases de datos relacionales?", "Migrationen der Datenbank", "Produktion", "猫", "猫は元気", "producción de postgres", "favorito",
]  # fmt: skip


def test_hits_and_scores_equal_those_of_python(url: str, memory: Memory) -> None:
    for key, (name, body, kind, tags) in TEXTS.items():
        memory.write(key, body, name=name, type=kind, tags=tags)
    steps = [
        f"Step {n}: 🧭 open valve {n}, then wait until the gauge of pump {n * 7 % 40} is green."
        for n in range(40)
    ]
    steps[30] = "The releases of the water plant are signed by Tove, who keeps the databases of all valves."
    memory.write("plant", "\n".join(steps), name="Water plant", type="project")
    memory.write("tower", "東京の塔は高いです。" * 100 + "庭に池があります。" * 60, name="塔")
    memory.write("coffee", fields={"important": "yes"})
    memory.write("database", fields={"confidence": "0.5", "decay": "30d"})
    memory.write("old_note", fields={"created": "2024-05-03", "updated": "2024-05-04"})
    # Foreign texts are ranked after own ones, and do not change which own ones are found.
    foreign = {"guest.md": "Guests deploy releases; databses of guests.", "coffee.md": "Tea, not coffee."}
    memory.bundles.import_(json.dumps({"version": "memory/0.1", "files": foreign}), foreign=True)
    root_of(memory)
    with web_client() as client:
        web = client.open("asking", url, words=words_of(memory), token=PEER_TOKEN)
        for question in QUESTIONS:
            ours = found_in([MemoryStore(memory.replica)], question, limit=20, explain=True)
            theirs = web.recall(question, {"limit": 20})
            assert theirs["searched"] == ours.matches.searched
            assert [hit["reading"]["key"] for hit in theirs["hits"]] == [
                hit.reading.key for hit in ours.hits
            ], question
            told = web.recall(question, {"limit": 20, "explain": True})["hits"]
            assert [hit["words"] for hit in told] == [list(hit.words) for hit in ours.hits], question
            assert all(not hit["words"] for hit in theirs["hits"])
            for hit, expected in zip(theirs["hits"], ours.hits, strict=True):
                assert hit["score"] == pytest.approx(expected.score, abs=1e-9), (question, expected)
                assert hit["parts"] == pytest.approx(dict(expected.parts), abs=1e-9), (question, expected)
        found = web.recall("coffee", {"type": "user"})["hits"]
        assert found and {hit["reading"]["fields"]["type"] for hit in found} == {"user"}


def test_why_in_the_browser_equals_why_in_python(url: str, memory: Memory) -> None:
    for key, (name, body, kind, tags) in TEXTS.items():
        memory.write(key, body, name=name, type=kind, tags=tags)
    memory.write("greek", fields={"expires": "2020-01-01"})
    memory.write("cat", fields={"category": "pets"})
    memory.write("coffee", fields={"category": "likes"})
    memory.sessions.add(
        "talk", [{"role": "user", "name": "Ana", "content": "Who deploys the databases at Straße 7?"}]
    )
    memory.note("deploy", text="Ana deploys 東京")
    root_of(memory)
    with web_client() as client:
        web = client.open("why", url, words=words_of(memory), token=PEER_TOKEN)
        for question in (*QUESTIONS[::2], "οδος πολεως", "pets", "databses of Ana"):
            for key in TEXTS:
                ours, theirs = memory.why(key, question), web.why(key, question)
                assert theirs["score"] == pytest.approx(ours.score, abs=1e-9), (key, question)
                assert theirs["parts"] == pytest.approx(dict(ours.parts), abs=1e-9), (key, question)
                assert theirs["beforeParts"] == pytest.approx(dict(ours.before_parts), abs=1e-9)
                assert theirs["reading"]["key"] == ours.key
                for name in ("place", "hits", "searched", "words", "missing", "reason", "before"):
                    expected = getattr(ours, name)
                    expected = list(expected) if isinstance(expected, tuple) else expected
                    assert theirs[name] == expected, (key, question, name)
            ours_all = found_in([MemoryStore(memory.replica)], question, kind="all", limit=50, explain=True)
            all_theirs = web.recall(question, {"kind": "all", "limit": 50, "explain": True})
            assert [hit["words"] for hit in all_theirs["moments"]] == [
                list(hit.words) for hit in ours_all.moments
            ], question
        for category in ("pets", "likes", "none"):
            found = web.recall("coffee 猫 元気 Ana deploys", {"kind": "all", "category": category})
            ours_found = found_in(
                [MemoryStore(memory.replica)], "coffee 猫 元気 Ana deploys", kind="all", category=category
            )
            assert [hit["reading"]["key"] for hit in found["hits"]] == [
                hit.reading.key for hit in ours_found.hits
            ]
            assert found["moments"] == [] == ours_found.moments
            assert found["searched"] == ours_found.matches.searched
        for key, said in (("nobody", "there is no memory nobody"), ("cat", "the query has no words")):
            with pytest.raises(ClientError, match=said):
                web.why(key, "..." if key == "cat" else "cat")
        for threshold, said in ((2, "threshold is -1 to 1, not 2"), (0.5, "a threshold requires a model")):
            with pytest.raises(ClientError, match=said):
                web.recall("cat", {"threshold": threshold})


def test_used_memory_is_counted_and_published_daily_with_a_write(url: str, memory: Memory) -> None:
    memory.write("tea", "They drink tea.")
    root_of(memory)
    with web_client() as client:
        web = client.open("user", url, **by_wallet(), token=PEER_TOKEN)
        before = web.recall("what do they drink")
        web.read("tea")
        web.read("tea", {"counts": False})
        web.context({"query": "what do they drink"})
        web.context({"query": "what do they drink", "preview": True})
        web.write("same_day", "Nothing is told on the day itself.")
        client.ask({"do": "later", "ms": 3 * 86_400_000})
        # Opened memories do not change an answer: the day of the last change is used.
        later = web.recall("what do they drink")["hits"][0]
        assert later["parts"]["recency"] == pytest.approx(0.5 * 0.5 ** (3 / 7))
        assert {**later["parts"], "recency": 0.5} == before["hits"][0]["parts"]
        web.write("later", "Told beside this.")
        web.write("once", "And told once.")
        [told] = [event for event in web.timeline() if event["type"] == "used"]
        assert told["counts"] == {"tea": 2}
        web.sync()
        root_of(memory)
    assert [event["counts"] for event in memory.timeline.read() if event["type"] == "used"] == [{"tea": 2}]
