"""Earlier revisions in the browser client: history, restore and conflicts, as in Python."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import pytest

from ipfsmem.memory import Memory
from tests.support.web_lab import PEER_TOKEN, Client, ClientError, WebDevice, by_wallet, root_of, web_client


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with web_client() as started:
        yield started


def device(client: Client, name: str, url: str) -> WebDevice:
    return client.open(name, url, **by_wallet(), token=PEER_TOKEN)


def test_history_equals_that_of_python_and_a_text_is_restored(
    client: Client, url: str, memory: Memory
) -> None:
    web = device(client, "historian", url)
    texts = [f"Version {n}" for n in range(4)]
    roots = []
    for text in texts:
        web.write("plan", text)
        roots.append(web.sync()["root"])
        root_of(memory)
    web.sync()
    here, there = web.history("plan"), memory.history("plan")
    assert [(one["sha256"], one["now"], one["size"], one["own"]) for one in here["versions"]] == [
        (one.sha256, one.now, one.size, one.own) for one in there.versions
    ]
    assert [one["now"] for one in here["versions"]] == ["shown", "", "", ""] and here["gone"] == 0
    oldest = here["versions"][-1]
    assert web.past("plan", {"text": oldest["sha256"][:10]}).endswith("Version 0\n")
    # Only the text its caller was shown is replaced.
    seen = web.read("plan")["seen"]
    with pytest.raises(ClientError, match="changed since it was read"):
        web.restore("plan", {"text": oldest["sha256"]}, {"seen": "0" * 16})
    with pytest.raises(ClientError, match="it has a text now"):
        web.restore("plan", {"text": oldest["sha256"]}, {"seen": []})
    back = web.restore("plan", {"text": oldest["sha256"]}, {"seen": seen})
    assert back["body"] == "Version 0" and sha256(back["text"].encode()).hexdigest() == oldest["sha256"]
    assert web.restore("plan", {"root": roots[2]})["body"] == "Version 2"
    assert web.sync()["root"] == root_of(memory)
    reading = memory.read("plan")
    assert reading is not None and reading.file.body == "Version 2"
    for wrong, said in (({"text": "abc"}, "at least 8"), ({"text": "0" * 12}, "has no text"), ({"root": "bafy"}, "prefix of"), ({"root": "x"}, "no version")):  # fmt: skip
        with pytest.raises(ClientError, match=said):
            web.restore("plan", wrong)
    with pytest.raises(ClientError, match="no text of nothing"):
        web.history("nothing")


def test_forgotten_memory_is_restored_from_its_history(client: Client, url: str, memory: Memory) -> None:
    web = device(client, "regretful", url)
    web.write("lost", "Still needed.")
    web.sync()
    web.forget("lost")
    web.sync()
    gone, text = web.history("lost")["versions"]
    assert (gone["sha256"], gone["now"], text["now"]) == (None, "shown", "")
    assert web.restore("lost", {"text": text["sha256"]}, {"seen": []})["body"] == "Still needed."
    assert web.sync()["root"] == root_of(memory)
    reading = memory.read("lost")
    assert reading is not None and reading.file.body == "Still needed."


def test_conflict_is_resolved_by_shown_texts_and_later_texts_remain(
    client: Client, url: str, memory: Memory
) -> None:
    one, two = device(client, "one", url), device(client, "two", url)
    for web, text in ((one, "Red"), (two, "Blue")):
        web.write("colour", text)
    one.sync()
    two.sync()
    one.sync()
    [unsettled] = one.conflicts()
    shown = unsettled["shown"]["body"]
    # A third text arrives before the choice: it stays as an alternative.
    memory.write("colour", "Green")
    root_of(memory)
    one.sync()
    assert one.resolve("colour", None, {"seen": unsettled})["body"] in (shown, "Green")
    [left] = one.conflicts()
    assert {left["shown"]["body"], *(copy["body"] for copy in left["copies"])} == {shown, "Green"}
    # The digits of the shown text suffice as a token.
    assert one.resolve("colour", "All of them\n", {"seen": left["seen"]})["body"] == "All of them"
    assert one.conflicts() == []
    with pytest.raises(ClientError, match="changed since it was read"):
        one.resolve("colour", "Late\n", {"seen": left["seen"]})
    one.sync()
    assert root_of(memory) == one.sync()["root"] and not memory.conflicts()


def test_redirected_scope_is_read_after_its_target_and_written_there(
    client: Client, url: str, memory: Memory
) -> None:
    memory.scope("old").write("rule", "From the old one.")
    memory.scope("old").write("rest", "Rest.")
    memory.scope("new").write("rest", "New rest.")
    memory.scopes.redirect("old", "new")
    root_of(memory)
    web = device(client, "mover", url)
    assert (web.read("rule", {"scope": "new"})["scope"], web.read("rest", {"scope": "new"})["scope"]) == (
        "old",
        "new",
    )
    assert [(one["key"], one["scope"]) for one in web.list({"scope": "new"})] == [
        ("rest", "new"),
        ("rule", "old"),
    ]
    assert web.write("more", "Goes on.", {"scope": "old"})["scope"] == "new"
    # An omitted field keeps the value of the text below, and the write goes here.
    made = web.write("rule", None, {"scope": "new", "description": "A rule"})
    assert (made["scope"], made["body"]) == ("new", "From the old one.")
    assert web.sync()["root"] == root_of(memory)
    here = memory.scope("new").read("rule")
    assert here is not None and here.file.body == "From the old one." and here.scope == "new"
