"""The graph in the browser client equals that of Python for the same vault, whoever wrote it, and after
updates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ipfsmem.memory import Memory
from tests.support.web_lab import PEER_TOKEN, Client, ClientError, WebDevice, by_wallet, root_of, web_client


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with web_client() as started:
        yield started


def of_python(memory: Memory, entity: str = "", depth: int = 1, limit: int = 1_000) -> Any:
    graph = memory.graph
    return plain(graph.around(entity or None, depth, limit=limit))


def plain(found: Any) -> Any:
    """Return Python's result as JSON."""
    return json.loads(msgspec.json.encode(found))


def both(web: WebDevice, memory: Memory) -> None:
    """Sync until neither has anything new."""
    web.sync()
    root_of(memory)
    web.sync()


def test_graph_of_a_redirected_scope_equals_that_of_python(client: Client, url: str, memory: Memory) -> None:
    sub, top = memory.scope("sub"), memory.scope("top")
    sub.graph.add("Ada", "person", ["old"])
    sub.graph.add("Acme", "company")
    sub.graph.relate("Ada", "works at", "Acme")
    top.graph.add("Ada", "person", ["new"])
    top.graph.add("Bob", "person")
    memory.scopes.redirect("sub", "top")
    memory.scope("sub").graph.relate("Bob", "knows", "Acme")
    root_of(memory)
    web = client.open("led", url, **by_wallet(), token=PEER_TOKEN)
    for scope in ("sub", "top"):
        graph, at = memory.scope(scope).graph, {"scope": scope}
        assert [one.name for one in graph.list()] == ["Acme", "Ada", "Bob"]
        assert web.entities(at) == plain(graph.list().entities)
        assert web.graph({**at, "entity": "bob", "depth": 2}) == plain(graph.around("bob", 2))


def test_browser_graph_equals_that_of_python_and_follows_writes(
    client: Client, url: str, memory: Memory
) -> None:
    for name, kind in (("Ada", "person"), ("Acme", "company"), ("Oslo", "city")):
        memory.graph.add(name, kind, [f"{name} is a {kind}"])
    for begin, type, end in (("Ada", "works_at", "Acme"), ("Acme", "is_in", "Oslo"), ("Oslo", "has", "Ada")):
        memory.graph.relate(begin, type, end)
    memory.write("note", "About [[Oslo]].")
    memory.values.set("of ada", "Likes [[Oslo]].")
    memory.sessions.add("chat", [{"role": "user", "content": "of [[Ada]]"}])
    memory.scope("shop").write("till", "Like [[deploy]].")
    root_of(memory)
    web = client.open("walker", url, **by_wallet(), token=PEER_TOKEN)
    assert web.entities() == plain(memory.graph.list().entities)
    assert [one["key"] for one in web.entities()] == ["acme", "ada", "note", "oslo"]
    assert web.entities({"words": "person"}) == plain(memory.graph.search("person").entities)
    assert [one["key"] for one in web.entities({"kind": "city"})] == ["oslo"]
    for how in ({}, {"entity": "ADA"}, {"entity": "note", "depth": 20}, {"entity": "oslo", "depth": 3, "limit": 2}):  # fmt: skip
        assert web.graph(how) == of_python(memory, **how)
    assert [one["key"] for one in web.graph({"scope": "shop"})["nodes"]] == ["deploy", "till"]

    # Entities that the browser writes are in both graphs, and forgotten ones in neither.
    web.write("fjord", "- is at [[Oslo]]", {"name": "Fjord", "type": "reference"})
    web.forget("note")
    both(web, memory)
    assert {"begin": "fjord", "type": "is_at", "end": "oslo"} in web.graph({"entity": "Oslo"})["edges"]
    assert web.graph() == of_python(memory)
    assert "note" not in [one["key"] for one in web.entities()]

    # Foreign texts are included once a user approves them.
    memory.bundles.import_('{"files": {}, "others": {"x.md": "Leads to [[Ada]]."}}')
    assert memory.pending()
    both(web, memory)
    before = web.graph()
    assert before == of_python(memory) and "x" not in [one["key"] for one in before["nodes"]]
    web.approve("x", "")
    both(web, memory)
    assert web.graph() == of_python(memory) != before

    for wrong, said in (({"entity": "nobody"}, "no entity"), ({"entity": "ada", "depth": 21}, "0 to 20"), ({"limit": 0}, "1 to 1000")):  # fmt: skip
        with pytest.raises(ClientError, match=said):
            web.graph(wrong)
