"""A first read from other hosts takes a few answers, not one per block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web as http
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.http import serving
from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from tests.servers.threaded import serve
from tests.support.web_lab import PEER_TOKEN, WALLET, root_of, web_client, words_of


def test_memory_shown_before_storing_is_replaced_by_an_edit_made_then(url: str, memory: Memory) -> None:
    with web_client() as client:
        how = {"words": words_of(memory), "token": PEER_TOKEN, "early": True}
        assert client.open_early("reader", url, **how) == ["tone"]
        web = client.device("reader")
        assert web.read("tone")["body"] == "Be quick." and web.conflicts() == []
        web.sync()
    root_of(memory)
    tone = memory.read("tone")
    assert tone is not None and tone.file.body == "Be quick." and tone.file.tags == ("style", "voice")


def test_vault_of_many_texts_is_read_as_one_tree_from_a_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    @http.middleware
    async def counting(request: http.Request, handler: Any) -> http.StreamResponse:
        asked.append(request.path)
        answer: http.StreamResponse = await handler(request)
        return answer

    def keeper() -> http.Application:
        app = serving.app(DirectoryProvider(tmp_path / "kept"), token=PEER_TOKEN)
        app.middlewares.append(counting)
        return app

    (tmp_path / "kept").mkdir()
    monkeypatch.setenv("PEER_TOKEN", PEER_TOKEN)
    home = Home(folder=tmp_path / "home", label="python")
    with serve(keeper) as url:
        memory = Memory.create(
            "many", "encrypted-ipfs", provider=f"peer:{url}", unlock=WALLET, passphrase=False, home=home
        )
        with memory, web_client() as client:
            for n in range(100):
                memory.write(f"text-{n}", f"Text {n}.")
            root_of(memory)
            asked.clear()
            web = client.open("reader", url, words=words_of(memory), at=[f"gateway:{url}", f"routing:{url}"])
            assert len(web.list()) == 100
    assert len([path for path in asked if path.startswith("/ipfs/")]) < 20, asked
