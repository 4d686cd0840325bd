"""Python and the browser client share one memory over a peer: what each writes the other has, and all end on one root."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.http import serving
from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from ipfsmem.wallet.message import key_request
from ipfsmem.wallet.signers import RawKeySigner
from tests.servers.threaded import serve
from tests.support.web_lab import Client, web_client

TOKEN = "a token for tests"
#: The public first account of Hardhat and Anvil.
WALLET = RawKeySigner(bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"))


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with web_client() as started:
        yield started


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    kept = tmp_path / "kept"
    kept.mkdir()
    with serve(lambda: serving.app(DirectoryProvider(kept), token=TOKEN)) as address:
        yield address


@pytest.fixture
def memory(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """A sealed memory that Python made with a wallet, published at the peer."""
    monkeypatch.setenv("PEER_TOKEN", TOKEN)
    made = Memory.create(
        "shared",
        "encrypted-ipfs",
        provider=f"peer:{url}",
        unlock=WALLET,
        passphrase=False,
        home=Home(folder=tmp_path / "home", label="python"),
    )
    made.write(
        "tone", "Be direct.\nAlways.\nAnd brief.", name="Tone", type="feedback", tags=["style", "voice"]
    )
    made.scope("shop").write("deploy", "Ask before you deploy.")
    made.note("waved", to="all")
    root_of(made)
    yield made
    asyncio.run(made.aclose())


def root_of(memory: Memory) -> str:
    """Sync; the root that this device's name leads to."""
    report = asyncio.run(memory.sync())
    assert report.root is not None
    return str(report.root)


def words_of(memory: Memory) -> str:
    assert memory.recovery_words is not None
    return " ".join(memory.recovery_words)


def test_a_client_with_the_words_reads_writes_and_both_end_on_one_root(
    client: Client, url: str, memory: Memory
) -> None:
    web = client.open("phone", url, words=words_of(memory), token=TOKEN)
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
    web.sync()
    root = root_of(memory)

    here = memory.read("editor")
    assert (
        here is not None and here.file.body == "They write in vi." and here.file.fields["tags"] == "[tools]"
    )
    there = memory.scope("shop").read("price")
    assert there is not None and there.file.body == "Cents, never floats."
    assert {str(event["type"]) for event in memory.timeline.read()} >= {"waved", "clicked"}
    assert web.sync()["root"] == root
    assert {one["label"] for one in web.members()} >= {"python", "phone"}


def test_a_wallet_opens_it_too(client: Client, url: str, memory: Memory) -> None:
    address = WALLET.address.hex()
    signed = WALLET.sign_message(key_request(WALLET.address, "default", 1)).hex()
    web = client.open(
        "wallet", url, address=address, vault="default", first=signed, second=signed, token=TOKEN
    )
    assert web.read("tone")["body"].startswith("Be direct.")
    assert web.sync()["root"] == root_of(memory)


def test_both_edit_one_memory_at_once_and_nothing_is_lost(client: Client, url: str, memory: Memory) -> None:
    web = client.open("tablet", url, words=words_of(memory), token=TOKEN)
    root_of(memory)
    web.sync()
    web.write("tone", "Be direct.\nAlways.\nAnd brief, mostly.")  # another line than Python's: merged
    memory.write("tone", "Be direct, please.\nAlways.\nAnd brief.")
    web.write("menu", "Soup")  # the same key with other texts: both stay
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


def test_what_one_forgets_is_gone_for_the_other(client: Client, url: str, memory: Memory) -> None:
    web = client.open("clock", url, words=words_of(memory), token=TOKEN)
    assert web.forget("tone", {"reason": "asked to"}) is True
    web.sync()
    root_of(memory)
    assert memory.read("tone") is None
    assert memory.forget("deploy") is False and memory.scope("shop").forget("deploy") is True
    root_of(memory)
    web.sync()
    assert web.read("deploy", {"scope": "shop"}) is None and web.list({"scope": None}) == []


def many(web: Any, start: int) -> None:
    for n in range(start, start + 5):
        web.write(f"note_{n}", f"Text {n}")


def test_two_tabs_of_one_device_write_in_turns_and_lose_nothing(
    client: Client, url: str, memory: Memory
) -> None:
    one = client.open("tab one", url, words=words_of(memory), token=TOKEN)
    two = client.open("tab two", url, on="tab one", token=TOKEN)
    many(one, 0)
    many(two, 5)
    many(one, 10)
    two.sync()
    root_of(memory)
    assert {f"note_{n}" for n in range(15)} <= {item.key for item in memory.list()}
