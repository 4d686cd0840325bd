"""A sealed vault created by Python, at a peer, for tests of the browser client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.http import serving
from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from tests.interop.counterparts import need_web
from tests.servers.threaded import serve
from tests.support.web_lab import PEER_TOKEN, WALLET, root_of

#: Tests that only read files of this checkout.
WITHOUT_CLIENT = {"test_first_example_has_five_lines_and_all_examples_are_tested"}


@pytest.fixture(autouse=True)
def _built(request: pytest.FixtureRequest) -> None:
    """Skip before any setup: otherwise two hundred tests would create a vault first."""
    if request.node.name not in WITHOUT_CLIENT:
        need_web()


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a peer."""
    kept = tmp_path / "kept"
    kept.mkdir()
    with serve(lambda: serving.app(DirectoryProvider(kept), token=PEER_TOKEN)) as address:
        yield address


@pytest.fixture
def memory(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """A sealed vault that Python created with a wallet and published at the peer."""
    monkeypatch.setenv("PEER_TOKEN", PEER_TOKEN)
    home = Home(folder=tmp_path / "home", label="python")
    made = Memory.create(
        "shared", "encrypted-ipfs", provider=f"peer:{url}", unlock=WALLET, passphrase=False, home=home
    )
    made.write(
        "tone", "Be direct.\nAlways.\nAnd brief.", name="Tone", type="feedback", tags=["style", "voice"]
    )
    made.scope("shop").write("deploy", "Ask before you deploy.")
    made.note("waved", to="all")
    root_of(made)
    yield made
    asyncio.run(made.aclose())
