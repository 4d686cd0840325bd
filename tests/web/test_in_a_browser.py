"""The client in Chromium and Firefox: its keys, store, locks and worker, with a vault shared with Python."""

from __future__ import annotations

import asyncio

import pytest

from ipfsmem.memory import Memory
from tests.support.browser_lab import played, playing
from tests.support.browsers import BROWSERS
from tests.support.effort import cases
from tests.support.web_lab import PEER_TOKEN, WALLET, WALLET_KEY, root_of, words_of

#: The words of 32 zero bytes.
WORDS_OF_NOTHING = " ".join(["abandon"] * 23 + ["art"])

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("name", BROWSERS)]


def test_wallet_opens_vault_and_browser_seals_it_under_unreadable_keys(
    name: str, url: str, memory: Memory
) -> None:
    at = {"at": f"peer:{url}", "token": PEER_TOKEN}
    said, again, refused = played(
        name,
        [
            ("wallet", {**at, "key": WALLET_KEY, "words": WORDS_OF_NOTHING}),
            ("again", {**at}),
            ("hedged", {"key": WALLET_KEY}),
        ],
    )
    assert "no vault that this key signed for" in said["wrong"] and said["kept"] is False
    assert said["before"].startswith("Be direct.")
    assert root_of(memory) == said["published"]
    here = memory.read("from_browser")
    assert here is not None and here.file.body == "Written in a browser."
    # The page was reloaded.
    assert again == {
        "text": "Written in a browser.", "exports": [False, False, False], "seen": False, "locked": "locked", "local": 0,
    }  # fmt: skip
    assert "signs one text in different ways" in refused


def test_two_tabs_write_concurrently_without_loss(name: str, url: str, memory: Memory) -> None:
    n = cases(30, 300)
    asked = {"at": f"peer:{url}", "token": PEER_TOKEN, "words": words_of(memory), "n": n}
    [said] = played(name, [("tabs", asked)])
    assert (said["ones"], said["twos"]) == (n, n) and said["heard"] > 0
    root_of(memory)
    assert len(memory.list()) == 2 * n + 1


def test_page_uses_the_client_in_a_worker(name: str, url: str, memory: Memory) -> None:
    asked: dict[str, str | int] = {"at": f"peer:{url}", "token": PEER_TOKEN, "words": words_of(memory)}
    [said] = played(name, [("worker", asked)])
    assert (said["listed"], said["told"], said["root"]) == (["from_worker"], True, root_of(memory))
    assert said["failed"][0] == "usage"


def test_python_and_browser_merge_edits_until_the_browser_is_removed(
    name: str, url: str, memory: Memory
) -> None:
    at: dict[str, str | int] = {"at": f"peer:{url}", "token": PEER_TOKEN, "words": words_of(memory)}
    with playing(name) as play:
        play("edits", {**at, "key": "new", "text": "Be direct.\nAlways.\nAnd brief, mostly."})
        memory.write("tone", "Be direct, please.\nAlways.\nAnd brief.")  # concurrently, of the same text
        root_of(memory)
        assert play("syncs", at)["merged"] is True
        here = root_of(memory)
        there = play("syncs", at)
        assert (there["root"], there["body"]) == (here, "Be direct, please.\nAlways.\nAnd brief, mostly.")
        reading = memory.read("tone")
        assert reading is not None and reading.file.body == there["body"] and "browser" in there["labels"]
        print(f"{name}: Python ends on {here}, the browser on {there['root']}")
        memory.unlock(WALLET)
        asyncio.run(memory.members.revoke(there["device"]))
        play("edits", {**at, "key": "", "text": "Too late."})
        refused = play("syncs", at)
        assert refused["root"] is None and "was removed" in refused["said"]
        root_of(memory)
        last = memory.read("tone")
        assert last is not None and last.file.body == there["body"]
