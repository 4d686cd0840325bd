"""Dreams in the browser client: those of another device are shown, and undone where nothing was edited
since, by Python's rules."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.memories.dreams import Outcome
from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from tests.support.web_lab import PEER_TOKEN, WALLET, Client, ClientError, by_wallet, root_of, web_client

TEA = "They drink green tea every morning. They never add sugar."


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with web_client() as started:
        yield started


def dreamt(memory: Memory) -> Outcome:
    """Dream and publish."""
    outcome = memory.dreams.run().outcome
    assert outcome is not None and outcome.id
    root_of(memory)
    return outcome


def body(memory: Memory, key: str) -> str | None:
    found = memory.read(key)
    return None if found is None else found.file.body


def test_dream_of_another_device_is_shown_and_undone_where_unedited(
    client: Client, url: str, memory: Memory
) -> None:
    memory.write("a", TEA)
    memory.write("b", TEA)
    memory.write("c", "See [[a]] and [[b]]")
    root_of(memory)
    web = client.open("waker", url, **by_wallet(), token=PEER_TOKEN)
    assert web.dreams() == []
    done = dreamt(memory)
    assert (done.written, done.removed) == (("c",), ("a",))
    web.sync()
    (one,) = web.dreams()
    assert (one["id"], one["by"], one["label"], one["written"], one["removed"], one["undone"], one["back"]) == (
        done.id, "rules", "python", ["c"], ["a"], False, 2,
    )  # fmt: skip
    # Later edits remain.
    web.write("c", "Not any more.")
    assert web.dreams()[0]["back"] == 1
    undone = web.undoDream(done.id)
    assert undone == {"id": done.id, "scope": "", "back": ["a"], "changed": ["c"], "lost": []}
    assert [(each["undone"], each["back"]) for each in web.dreams()] == [(True, 0)]
    with pytest.raises(ClientError, match="no dream"):
        web.undoDream(done.id)
    web.sync()
    root_of(memory)
    assert body(memory, "a") == TEA and body(memory, "c") == "Not any more."
    said = memory.timeline.read()[-1]
    assert (said["type"], said["dream"], said["back"]) == ("dream_undone", done.id, 1)
    # The dreaming device finds it undone.
    late = memory.dreams.undo(done.id)
    assert late.back == () and set(late.changed) == {"a", "c"}


def test_text_forgotten_after_a_dream_is_restored_on_no_device(
    client: Client, url: str, memory: Memory
) -> None:
    memory.write("a", TEA)
    memory.write("b", TEA)
    memory.write("old", "Gone by.", fields={"expires": "2020-01-01"})
    root_of(memory)
    web = client.open("forgetting", url, **by_wallet(), token=PEER_TOKEN)
    id = dreamt(memory).id
    web.sync()
    (one,) = web.dreams()
    assert (one["removed"], one["back"]) == (["a", "old"], 2)
    web.forget("b")
    assert web.dreams()[0]["back"] == 1
    undone = web.undoDream(id)
    assert (undone["back"], undone["lost"]) == (["old"], ["a"])
    assert web.read("b") is None and web.read("a") is None


def test_invalid_and_foreign_dream_events_are_ignored(client: Client, url: str, memory: Memory) -> None:
    memory.write("a", "Mine.")
    value = next(iter(memory.replica.store.entry("m/a").values()))
    dot = next(iter(memory.replica.store.entry("m/a")))
    good = {"dream": "x", "by": "me", "written": [], "removed": [{"key": "a", "replaced": {dot: value.body}}]}
    for bad in (
        {**good, "dream": 7}, {**good, "removed": []}, {**good, "removed": [{"key": "../a", "replaced": {}}]}, {**good, "removed": [{"key": "a"}]},
        {**good, "removed": [{"key": "a", "replaced": {"x": value.body}}]}, {**good, "written": [{"key": "a", "replaced": {}}]}, {**good, "by": None}, {},
    ):  # fmt: skip
        memory.note("dream", **bad)
    memory.bundles.import_('{"files": {}, "timeline": [{"ts": "2026-01-01", "type": "dream", "dream": "y", "by": "z", "written": [], "removed": [{"key": "a", "replaced": {}}]}]}')  # fmt: skip
    root_of(memory)
    web = client.open("sceptic", url, **by_wallet(), token=PEER_TOKEN)
    assert web.dreams() == []
    with pytest.raises(ClientError, match="no dream"):
        web.undoDream("x")


def test_dream_with_an_unavailable_text_reports_it_as_lost(
    client: Client, url: str, memory: Memory, tmp_path: Path
) -> None:
    other = asyncio.run(
        Memory.recover("shared", provider=f"peer:{url}", unlock=WALLET, passphrase=False, home=Home(folder=tmp_path / "other", label="other"))
    )  # fmt: skip
    other.write("a", TEA)
    other.write("b", TEA)
    # Written and removed by a dream between two versions: no other device ever had the removed text.
    id = dreamt(other).id
    web = client.open("late", url, **by_wallet(), token=PEER_TOKEN)
    assert [(one["label"], one["removed"], one["back"]) for one in web.dreams()] == [("other", ["a"], 0)]
    assert web.undoDream(id)["lost"] == ["a"]
    asyncio.run(other.aclose())
