"""A memory moves from one scope to another in the browser client, by the rules of Python."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import pytest

from ipfsmem.memory import Memory
from tests.support.web_lab import PEER_TOKEN, Client, ClientError, by_wallet, root_of, web_client


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with web_client() as started:
        yield started


def test_own_text_moves_to_another_scope_and_replaces_only_a_shown_text(
    client: Client, url: str, memory: Memory
) -> None:
    memory.write("deploy", "Never on Fridays.")
    root_of(memory)
    web = client.open("mover", url, **by_wallet(), token=PEER_TOKEN)
    shop = {"scope": "shop"}
    with pytest.raises(ClientError, match="has a text already") as refused:
        web.promote("deploy", "", shop)
    assert refused.value.kind == "changed"
    seen = web.read("deploy", shop)["seen"]
    web.write("deploy", "Ask twice.", shop)
    there = sha256(web.read("deploy")["text"].encode()).hexdigest()
    with pytest.raises(ClientError, match="changed since it was read"):
        web.promote("deploy", "", {**shop, "seen": seen, "ifMatch": there})
    with pytest.raises(ClientError, match="changed since it was read"):
        web.promote("deploy", "", {**shop, "ifMatch": "0" * 64})
    assert web.read("deploy")["body"] == "Never on Fridays."
    made = web.promote("deploy", "", {**shop, "ifMatch": there})
    assert (made["scope"], made["body"], web.list(shop)) == ("", "Ask twice.", [])
    assert web.promote("tone", "shop", {"keep": True})["scope"] == "shop"
    web.sync()
    root_of(memory)
    here, kept = memory.read("deploy"), memory.scope("shop").read("tone")
    assert here is not None and here.file.body == "Ask twice."
    assert kept is not None and memory.read("tone") is not None
    assert [one.key for one in memory.scope("shop").list()] == ["tone"]
    said = [one for one in memory.timeline.read() if one["type"] == "promoted"]
    assert [(one["key"], one["from"], one["to"]) for one in said] == [("deploy", "shop", "")]

    memory.bundles.import_('{"files": {}, "others": {"theirs.md": "Trust me."}}')
    root_of(memory)
    web.sync()
    for key, to, why in (("theirs", "shop", "is pending"), ("nothing", "shop", "no memory"), ("tone", "", "already")):  # fmt: skip
        with pytest.raises(ClientError, match=why):
            web.promote(key, to)
    assert web.read("theirs", shop) is None
