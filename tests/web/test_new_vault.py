"""A vault created by the browser client: Python restores it with the wallet or the recovery phrase; browser and
Python reach the same root."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from aiohttp import web
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.http import serving
from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.servers.threaded import serve
from tests.support.web_lab import PEER_TOKEN, WALLET, Client, ClientError, by_wallet, root_of, web_client


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with web_client() as started:
        yield started


def keys_of(words: str) -> RootKeys:
    return RootKeys.from_recovery(from_words(words))


@contextlib.contextmanager
def restored_vault(url: str, folder: Path, unlock: object) -> Iterator[Memory]:
    """Restore the vault on a new Python device with only one of its keys."""
    home = Home(folder=folder, label=folder.name)
    how = {"provider": f"peer:{url}", "unlock": unlock, "passphrase": False, "home": home}
    found = asyncio.run(Memory.recover(folder.name, **how))  # type: ignore[arg-type]
    try:
        yield found
    finally:
        asyncio.run(found.aclose())


def test_vault_created_by_a_browser_opens_in_python_by_wallet_and_phrase(
    client: Client, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEER_TOKEN", PEER_TOKEN)
    created = client.ask({"do": "open", "as": "first", "label": "first", "url": url, "token": PEER_TOKEN, "create": True, "recovery": True, **by_wallet()})  # fmt: skip
    browser = client.device("first")
    browser.write("tone", "Be direct.", {"type": "feedback"})
    browser.sync()
    assert {(one["label"], one["kind"], one["role"]) for one in browser.members()} == {
        ("wallet", "wallet", "admin"), ("recovery words", "words", "admin"), ("first", "device", "writer"),
    }  # fmt: skip
    with restored_vault(url, tmp_path / "by-wallet", WALLET) as mine:
        reading = mine.read("tone")
        assert reading is not None and reading.file.body == "Be direct."
        mine.write("tone", "Be direct, and kind.", type="feedback")
        root = root_of(mine)
        assert browser.sync()["root"] == root_of(mine) and root
        assert browser.read("tone")["body"] == "Be direct, and kind."
    with restored_vault(url, tmp_path / "by-words", keys_of(created["words"])) as restored:
        reading = restored.read("tone")
        assert reading is not None and reading.file.body == "Be direct, and kind."
    # No second vault of one wallet is created by mistake.
    with pytest.raises(ClientError, match="has a vault there already"):
        client.ask({"do": "open", "as": "second", "label": "second", "url": url, "token": PEER_TOKEN, "create": True, **by_wallet()})  # fmt: skip


@pytest.mark.parametrize(
    "pins", [{"pins": [], "unread": ["x.pins"]}, {"pins": ["rubbish"]}, {}], ids=["gap", "entry", "none"]
)
def test_no_vault_is_created_after_a_partly_unreadable_pin_list(
    client: Client, tmp_path: Path, pins: dict[str, object]
) -> None:
    @web.middleware
    async def with_faulty_pin_list(request: web.Request, handler: Any) -> web.StreamResponse:
        if request.method == "GET" and request.path == "/pins":
            return web.json_response(pins)
        answer: web.StreamResponse = await handler(request)
        return answer

    def app() -> web.Application:
        application = serving.app(DirectoryProvider(tmp_path), token=PEER_TOKEN)
        application.middlewares.append(with_faulty_pin_list)
        return application

    with serve(app) as url, pytest.raises(ClientError, match="may hold the vault of this wallet"):
        client.ask({"do": "open", "as": "gap", "label": "gap", "url": url, "token": PEER_TOKEN, "create": True, **by_wallet()})  # fmt: skip


def test_vault_without_wallet_opens_by_phrase(
    client: Client, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEER_TOKEN", PEER_TOKEN)
    how = {"do": "open", "label": "alone", "url": url, "token": PEER_TOKEN, "create": True}
    created = client.ask({**how, "as": "alone", "recovery": True})
    browser = client.device("alone")
    browser.write("place", "Only here.")
    browser.sync()
    other = client.open("other", url, words=created["words"], token=PEER_TOKEN)
    assert other.read("place")["body"] == "Only here."
    with restored_vault(url, tmp_path / "words", keys_of(created["words"])) as mine:
        assert mine.read("place") is not None


def test_new_vault_needs_a_key_that_can_restore_it(client: Client, url: str) -> None:
    how = {"do": "open", "label": "alone", "url": url, "token": PEER_TOKEN, "create": True}
    created = client.ask({**how, "as": "recoverable", "recovery": True})
    with pytest.raises(ClientError, match="nothing could restore"):
        client.ask({**how, "as": "nobody"})
    with pytest.raises(ClientError, match="cannot be the first key"):
        client.ask({**how, "as": "words first", "words": created["words"]})


def test_no_vault_is_created_if_a_provider_may_hold_the_wallets_vault(client: Client, url: str) -> None:
    how = {"do": "open", "label": "alone", "url": url, "token": PEER_TOKEN, "create": True}
    with pytest.raises(ClientError, match="none of the providers that store names responded"):
        client.ask({**how, "as": "offline", "url": "http://127.0.0.1:9", **by_wallet()})
    with pytest.raises(ClientError, match="may have a vault already"):
        client.ask({**how, "as": "reader", "at": [f"gateway:{url}"], **by_wallet()})


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12"])
def test_memory_is_dated_by_the_local_day_of_its_writer(zone: str) -> None:
    # These zones are 26 hours apart, so at least one of them is on a different date from UTC.
    with web_client(zone) as client:
        days = {datetime.now(ZoneInfo(zone)).date().isoformat()}
        client.ask({"do": "open", "as": "first", "label": "first", "at": [], "create": True, "recovery": True})  # fmt: skip
        fields = client.device("first").write("tone", "Be direct.")["fields"]
        days.add(datetime.now(ZoneInfo(zone)).date().isoformat())
        assert {fields["created"], fields["updated"]} <= days
