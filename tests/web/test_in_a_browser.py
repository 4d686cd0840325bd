"""The client in Chromium: its keys, its store, its locks and its worker, with a memory that Python shares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.memory import Memory
from tests.support.browser_lab import Pages, pages
from tests.support.effort import cases
from tests.support.web_lab import PEER_TOKEN, WALLET_KEY, root_of, words_of

pytestmark = pytest.mark.slow


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Pages]:
    with pages(tmp_path / "profile") as opened:
        yield opened


def test_a_wallet_opens_it_and_the_browser_keeps_it_sealed_under_keys_that_no_script_reads(
    browser: Pages, url: str, memory: Memory
) -> None:
    at = f"peer:{url}"
    said = browser.play("wallet", at=at, token=PEER_TOKEN, key=WALLET_KEY)
    assert said["before"].startswith("Be direct.")
    assert root_of(memory) == said["published"]
    here = memory.read("from_browser")
    assert here is not None and here.file.body == "Written in a browser."
    # The browser is started anew.
    again = browser.play("again", at=at, token=PEER_TOKEN)
    assert again == {
        "text": "Written in a browser.", "exports": [False, False, False], "seen": False, "locked": "locked", "local": 0,
    }  # fmt: skip
    refused = browser.play("hedged", key=WALLET_KEY)
    assert "signs one text in different ways" in refused


def test_two_tabs_write_at_once_and_lose_nothing(browser: Pages, url: str, memory: Memory) -> None:
    n = cases(30, 300)
    said = browser.play("tabs", at=f"peer:{url}", token=PEER_TOKEN, words=words_of(memory), n=n)
    assert (said["ones"], said["twos"]) == (n, n) and said["heard"] > 0
    root_of(memory)
    assert len(memory.list()) == 2 * n + 1


def test_a_page_asks_a_worker(browser: Pages, url: str, memory: Memory) -> None:
    said = browser.play("worker", at=f"peer:{url}", token=PEER_TOKEN, words=words_of(memory))
    assert (said["listed"], said["told"], said["root"]) == (["from_worker"], True, root_of(memory))
    assert said["failed"][0] == "usage"
