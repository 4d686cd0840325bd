"""Python and the browser client share one vault over a peer: each receives the other's writes, and all end
with one root."""

from __future__ import annotations

import asyncio
import base64
import io
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web as http
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.content.car import read_car
from ipfsmem.content.cid import parse_cid
from ipfsmem.content.limits import OWN_LIMITS
from ipfsmem.http import serving
from ipfsmem.memory import Memory
from tests.servers.threaded import serve
from tests.support.web_lab import (
    PEER_TOKEN,
    WALLET,
    Client,
    ClientError,
    by_wallet,
    lacking,
    largest_block,
    root_of,
    web_client,
    words_of,
)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with web_client() as started:
        yield started


def test_client_with_the_phrase_converges_with_python(client: Client, url: str, memory: Memory) -> None:
    web = client.open("phone", url, words=words_of(memory), token=PEER_TOKEN)
    tone = web.read("tone")
    assert (tone["body"], tone["fields"]["type"], tone["label"]) == (
        "Be direct.\nAlways.\nAnd brief.",
        "feedback",
        "python",
    )
    assert web.read("deploy", {"scope": "shop"})["body"] == "Ask before you deploy."
    assert [event["type"] for event in web.timeline()] == ["waved"]

    web.write("editor", "They write in vi.", {"name": "Editor", "type": "user", "tags": ["tools"]})
    web.write("price", "Cents, never floats.", {"scope": "shop"})
    web.note("clicked", {"where": "page"})
    sent = web.sync()
    assert (sent["published"], sent["notices"]) == (True, [])
    # The other device's version is complete, also where this one removed its blocks.
    again = web.sync()
    assert (again["published"], again["notices"], again["root"]) == (False, [], sent["root"])
    root = root_of(memory)

    here = memory.read("editor")
    assert (
        here is not None and here.file.body == "They write in vi." and here.file.fields["tags"] == "[tools]"
    )
    there = memory.scope("shop").read("price")
    assert there is not None and there.file.body == "Cents, never floats."
    assert {str(event["type"]) for event in memory.timeline.read()} >= {"waved", "clicked"}
    assert web.sync()["root"] == root
    members = {one["id"]: one for one in web.members()}
    assert {one["label"] for one in members.values()} >= {"python", "phone"}
    # Devices with a known version here, as in Python; the words and the wallet publish nothing.
    heard = {one["id"]: one["heard"] for one in members.values() if one["heard"] is not None}
    assert heard.keys() == {one.id for one in memory.members.list() if one.heard is not None} & members.keys()
    assert {members[id]["label"] for id in heard} == {"python", "phone"}
    assert all(abs(time.time() * 1000 - at) < 600_000 for at in heard.values())


def test_wallet_opens_the_vault(client: Client, url: str, memory: Memory) -> None:
    web = client.open("wallet", url, **by_wallet(), token=PEER_TOKEN)
    assert web.read("tone")["body"].startswith("Be direct.")
    assert web.sync()["root"] == root_of(memory)


def test_concurrent_edits_of_one_memory_are_merged(client: Client, url: str, memory: Memory) -> None:
    web = client.open("tablet", url, words=words_of(memory), token=PEER_TOKEN)
    root_of(memory)
    web.sync()
    web.write("tone", "Be direct.\nAlways.\nAnd brief, mostly.")  # another line than Python's: merged
    memory.write("tone", "Be direct, please.\nAlways.\nAnd brief.")
    web.write("menu", "Soup")  # the same key with other texts: both remain
    memory.write("menu", "Salad")
    web.sync()
    root_of(memory)
    merged = "Be direct, please.\nAlways.\nAnd brief, mostly."
    assert web.sync()["root"] == root_of(memory)
    assert web.read("tone")["body"] == merged
    reading = memory.read("tone")
    assert reading is not None and reading.file.body == merged and reading.merged

    [unsettled] = web.conflicts()
    texts = {unsettled["shown"]["body"], *(copy["body"] for copy in unsettled["copies"])}
    assert (unsettled["key"], texts) == ("menu", {"Soup", "Salad"})
    web.resolve("menu", "Soup and salad\n", {"seen": unsettled["token"]})
    web.sync()
    assert root_of(memory) == web.sync()["root"]
    settled = memory.read("menu")
    assert settled is not None and settled.file.body == "Soup and salad" and not memory.conflicts()


def test_memory_forgotten_by_one_is_forgotten_for_the_other(client: Client, url: str, memory: Memory) -> None:
    web = client.open("clock", url, words=words_of(memory), token=PEER_TOKEN)
    assert web.forget("tone", {"reason": "asked to"}) is True
    web.sync()
    root_of(memory)
    assert memory.read("tone") is None
    assert not memory.forget("deploy") and memory.scope("shop").forget("deploy")
    root_of(memory)
    web.sync()
    assert web.read("deploy", {"scope": "shop"}) is None and web.list({"scope": None}) == []


def many(web: Any, start: int) -> None:
    for n in range(start, start + 5):
        web.write(f"note_{n}", f"Text {n}")


def test_two_tabs_of_one_device_write_in_turns_without_loss(client: Client, url: str, memory: Memory) -> None:
    one = client.open("tab one", url, words=words_of(memory), token=PEER_TOKEN)
    two = client.open("tab two", url, on="tab one", token=PEER_TOKEN)
    many(one, 0)
    many(two, 5)
    many(one, 10)
    two.sync()
    root_of(memory)
    assert {f"note_{n}" for n in range(15)} <= {item.key for item in memory.list()}


def test_device_without_the_wallet_is_admitted_by_its_public_keys(
    client: Client, url: str, memory: Memory
) -> None:
    words = words_of(memory)
    first = client.open("desk", url, words=words, token=PEER_TOKEN)
    how = {"url": url, "token": PEER_TOKEN, "pointer": first.pointer()}
    shown = client.ask({"do": "open", "as": "guest", "label": "guest", "request": True, **how})
    assert client.ask({"do": "readRequest", "as": "desk", "with": [shown["text"]]}) == {
        "label": "guest", "words": shown["words"],
    }  # fmt: skip
    assert len(shown["words"]) == 6
    with pytest.raises(ClientError, match="not a member yet"):
        client.open("guest", **how)
    client.ask({"do": "admit", "as": "desk", "text": shown["text"], "words": words})
    guest = client.open("guest", **how)
    guest.write("tone", "Be brief.")
    guest.sync()
    root_of(memory)
    here = memory.read("tone")
    assert here is not None and here.file.body == "Be brief."
    assert "guest" in {one.label for one in memory.members.list()}


def test_change_of_members_that_no_provider_accepted_is_unpublished(
    client: Client, url: str, memory: Memory
) -> None:
    words = words_of(memory)
    web = client.open("desk", url, words=words, token=PEER_TOKEN)
    web.sync()
    assert web.status()["unpublished"] is False
    client.ask({"do": "use", "as": "desk", "url": url, "token": "not the token of this server"})
    how = {"url": url, "token": PEER_TOKEN, "pointer": web.pointer()}
    shown = client.ask({"do": "open", "as": "guest", "label": "guest", "request": True, **how})
    client.ask({"do": "admit", "as": "desk", "text": shown["text"], "words": words})
    assert web.status()["unpublished"] is True
    client.ask({"do": "use", "as": "desk", "url": url, "token": PEER_TOKEN})
    web.sync()
    assert web.status()["unpublished"] is False


def test_removed_device_cannot_write(client: Client, url: str, memory: Memory) -> None:
    web = client.open("lost", url, words=words_of(memory), token=PEER_TOKEN)
    root_of(memory)
    [lost] = [one["id"] for one in web.members() if one["thisDevice"]]
    memory.unlock(WALLET)
    asyncio.run(memory.members.revoke(lost))
    web.write("late", "Too late.")
    with pytest.raises(ClientError, match="was removed"):
        web.sync()
    root_of(memory)
    assert memory.read("late") is None


def test_imported_older_text_becomes_an_alternative(client: Client, url: str, memory: Memory) -> None:
    web = client.open("importer", url, words=words_of(memory), token=PEER_TOKEN)
    blob = web.export()
    again = web.take(blob)
    assert (again["added"], again["kept"]) == (0, 0)
    changed = blob.replace("Be direct.", "Be kind.")
    assert web.take(changed)["kept"] == 1
    assert web.read("tone")["body"].startswith("Be direct.")
    [unsettled] = web.conflicts()
    assert [copy["body"][:8] for copy in unsettled["copies"]] == ["Be kind."]
    web.sync()
    assert root_of(memory) == web.sync()["root"]
    assert [one.key for one in memory.conflicts()] == ["tone"]


def test_head_is_found_by_phrase_alone_through_gateway_and_router(
    client: Client, url: str, memory: Memory
) -> None:
    at = [f"gateway:{url}", f"routing:{url}"]
    before = client.open("before", url, words=words_of(memory), token=PEER_TOKEN)
    web = client.open("reader", url, words=words_of(memory), at=at)
    assert web.read("tone")["body"].startswith("Be direct.")
    web.write("later", "It goes out later.")
    written = web.changes()
    web.outbox()
    assert web.changes() > written
    report = web.sync()
    assert [one["kind"] for one in report["notices"]] == ["not-sent", "not-announced"]
    assert not report["published"]
    # A sync without changes changes nothing: otherwise a loop that syncs on each change would never end.
    synced = web.changes()
    again = web.sync()
    assert (again["root"], again["notices"], web.changes()) == (report["root"], report["notices"], synced)
    made = client.ask({"do": "outbox", "as": "reader"})
    car = read_car(io.BytesIO(base64.b64decode(made["car"])), OWN_LIMITS)
    blocks = dict(car)
    assert parse_cid(made["root"]) in blocks and made["root"] == report["root"]
    client.ask({"do": "use", "as": "reader", "url": url, "token": PEER_TOKEN})
    sent = web.sync()
    assert (sent["published"], sent["notices"]) == (True, [])
    # Earlier devices learn of the device without the wallet: its unsent statement is sent now.
    before.sync()
    assert "reader" in {one["label"] for one in before.members()}
    assert before.read("later")["body"] == "It goes out later."
    root_of(memory)
    assert web.sync()["root"] == root_of(memory)
    here = memory.read("later")
    assert here is not None and here.file.body == "It goes out later."


def test_shared_folder_written_by_python_is_read(
    client: Client, url: str, memory: Memory, tmp_path: Path
) -> None:
    memory.write("tone", "Be kind.")
    root_of(memory)
    web = client.open("stick", url, **by_wallet(), at=[f"folder:{tmp_path / 'kept'}"])
    assert web.read("tone")["body"] == "Be kind."
    assert web.read("deploy", {"scope": "shop"})["body"] == "Ask before you deploy."


@pytest.mark.slow
def test_device_overtaken_before_its_announcement_explains_what_is_needed(
    client: Client, url: str, memory: Memory
) -> None:
    """Two more devices were admitted meanwhile, so the wallet must update its name again."""
    root = by_wallet()
    before = client.open("early", url, **root, token=PEER_TOKEN)
    late = client.open("late", url, **root, at=[f"gateway:{url}", f"routing:{url}"])
    for name in ("second", "third"):
        client.open(name, url, **root, token=PEER_TOKEN)
    client.ask({"do": "use", "as": "late", "url": url, "token": PEER_TOKEN})
    [notice] = late.sync()["notices"]
    assert notice["kind"] == "not-announced" and "once more with the wallet" in notice["text"]
    again = client.open("late again", url, on="late", **root, token=PEER_TOKEN)
    assert again.sync()["notices"] == []
    before.sync()
    assert {"late", "second", "third"} <= {one["label"] for one in before.members()}


def test_text_missing_at_its_provider_is_requested_again_then_published(
    client: Client, tmp_path: Path, memory: Memory
) -> None:
    """Another provider takes what the client publishes."""
    text = Random(0).randbytes(4000).hex()
    memory.write("long", text)
    root_of(memory)
    hidden: set[str] = set()

    other = tmp_path / "other"
    other.mkdir()
    with (
        serve(lambda: lacking(tmp_path / "kept", hidden)) as first,
        serve(lambda: serving.app(DirectoryProvider(other), token=PEER_TOKEN)) as second,
    ):
        root = by_wallet()
        client.open("probe", first, **root, at=[f"gateway:{first}", f"routing:{first}"])
        hidden.add(largest_block(client.device("probe")))

        at = [f"gateway:{first}", f"routing:{first}", f"peer:{second}"]
        web = client.open("laptop", first, **root, at=at, token=PEER_TOKEN)
        with pytest.raises(ClientError, match="not fetched yet"):
            web.read("long")
        assert "missing" in {one["kind"] for one in web.sync()["notices"]}
        hidden.clear()
        assert "missing" not in {one["kind"] for one in web.sync()["notices"]}
        assert web.read("long")["body"] == text
        from_second = client.open("from second", second, **root, token=PEER_TOKEN)
        assert from_second.read("long")["body"] == text


def test_provider_that_serves_other_bytes_is_not_trusted(client: Client, memory: Memory) -> None:
    """A gateway that answers each block with another one, and a name with a page."""

    async def lie(request: http.Request) -> http.Response:
        if request.path.startswith("/ipfs/"):
            return http.Response(body=b"something else", content_type="application/vnd.ipld.raw")
        return http.Response(text="<html>Please log in</html>", content_type="text/html")

    def portal() -> http.Application:
        app = http.Application()
        app.router.add_get("/{rest:.*}", lie)
        return app

    with (
        serve(portal) as at,
        pytest.raises(ClientError, match="none of the providers that store names responded"),
    ):
        client.open("fooled", at, words=words_of(memory), at=[f"gateway:{at}", f"routing:{at}"])


def test_phone_edit_of_a_foreign_header_keeps_it_on_the_laptop(
    client: Client, url: str, memory: Memory
) -> None:
    headers = {
        "mixed": b"---\nname: Tone\ntype: feedback\ntags: [style]\n---\r\n",
        "claude": b"---\nname: rule\nmetadata:\n  type: user\n  originSessionId:\n  note: said: ask\n---\n\n",
        "toml": b"+++\ntitle = 'A'\n+++\n\n",
    }
    for key, header in headers.items():
        memory.write_text(key, header + b"old\n")
    root_of(memory)
    web = client.open("pocket", url, words=words_of(memory), token=PEER_TOKEN)
    web.sync()
    for key in headers:
        web.write(key, "new")
    web.sync()
    root_of(memory)
    for key, header in headers.items():
        found = memory.read(key)
        assert found is not None
        lines = iter(found.data.splitlines())
        assert all(line in lines for line in header.splitlines())
        assert found.data.endswith(b"new\n") and b"old" not in found.data


def test_phone_body_does_not_replace_a_header_without_its_end(
    client: Client, url: str, memory: Memory
) -> None:
    memory.write_text("tone", b"---\nname: Tone\nA text.\n")
    root_of(memory)
    web = client.open("careful", url, words=words_of(memory), token=PEER_TOKEN)
    with pytest.raises(ClientError, match="has no closing line"):
        web.write("tone", "A new text.")
    assert web.read("tone")["text"] == "---\nname: Tone\nA text.\n"
    web.write("tone", "---\nname: Tone\nA longer text.\n")
    web.writeText("tone", "---\nname: Tone\n---\n\nA text.\n")
    assert web.write("tone", "Newer.")["text"].endswith("---\n\nNewer.\n")
