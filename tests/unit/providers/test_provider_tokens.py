"""A token belongs to one origin and is sent to no other address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.http.tokens import token_for

from ipfsmem.errors import ConfigError, ProviderError
from ipfsmem.http import blocks
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Provider
from ipfsmem.provider.opening import ProviderPool
from tests.servers.threaded import serve

ONE, TWO = "token-of-the-first", "token-of-the-second"
#: The kinds with an address in the spec, the setting of their token, and its value.
KINDS = {
    "peer": ("PEER_TOKEN", "{}"),
    "kubo": ("KUBO_RPC_AUTH", "bearer:{}"),
    "pinning_service": ("PINNING_SERVICE_TOKEN", "{}"),
}


class Listener:
    """A server that answers 404 or redirects, and records the headers it received."""

    def __init__(self) -> None:
        self.shown: set[str] = set()
        self.asked = 0
        self.elsewhere = ""

    def app(self) -> web.Application:
        async def answer(request: web.Request) -> web.Response:
            self.asked += 1
            self.shown.add(str(sorted(request.headers.items())) + str(request.rel_url))
            if self.elsewhere:
                return web.Response(status=307, headers={"Location": self.elsewhere + str(request.rel_url)})
            return web.Response(status=404)

        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", answer)
        return app

    def saw(self, token: str) -> bool:
        return any(token in text for text in self.shown)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[Listener], list[str]]]:
    (tmp_path / "settings.toml").touch(0o600)
    monkeypatch.setenv("IPFSMEM_CONFIG", str(tmp_path / "settings.toml"))
    with ExitStack() as stack:
        listeners = [Listener(), Listener()]
        yield listeners, [stack.enter_context(serve(one.app)) for one in listeners]


def ask_all(providers: list[Provider]) -> None:
    """Make the first calls of a sync."""

    async def main() -> None:
        for provider in providers:
            for work in (provider.pins("x"), provider.get_name("x"), provider.has([])):
                try:
                    await work
                except ProviderError:
                    pass
            await provider.close()

    asyncio.run(main())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["environment", "settings file"])
def test_each_address_receives_only_its_own_token(
    two: tuple[list[Listener], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    how: str,
) -> None:
    """With two peers and one PEER_TOKEN neither may get the other's."""
    listeners, urls = two
    name, form = KINDS[kind]
    if how == "environment":
        monkeypatch.setenv(
            name, " ".join(f"{u}/x={form.format(t)}" for u, t in zip(urls, (ONE, TWO), strict=True))
        )
    else:
        rows = "\n".join(f'"{url}" = "{form.format(t)}"' for url, t in zip(urls, (ONE, TWO), strict=True))
        (tmp_path / "settings.toml").write_text(f"[providers.{kind}.{name.lower()}]\n{rows}\n")
    ask_all(ProviderPool().open_all([f"{kind}:{url}" for url in urls]))
    for listener, own, other in zip(listeners, (ONE, TWO), (TWO, ONE), strict=True):
        assert listener.asked and listener.saw(own) and not listener.saw(other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("when", ["together", "one after the other", "in two memories", "named by a setting"])
def test_one_token_for_two_addresses_is_an_error_with_a_hint(
    two: tuple[list[Listener], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    when: str,
) -> None:
    listeners, urls = two
    name, form = KINDS[kind]
    monkeypatch.setenv(name, form.format(ONE))
    first, second = (f"{kind}:{url}" for url in urls)
    pool = ProviderPool(tmp_path / "home")
    if when == "one after the other":
        pool.open_all([first])
    elif when == "in two memories":
        with Memory.create("a", "ipfs", home=tmp_path / "home") as memory:
            memory.providers.add(first)
    elif when == "named by a setting":
        monkeypatch.setenv({"kubo": "KUBO_RPC_URL"}.get(kind, f"{kind.upper()}_URL"), urls[0])
    with pytest.raises(ConfigError) as caught:
        pool.open_all([first, second] if when == "together" else [second])
    told = f"{caught.value} {caught.value.hint}"
    assert ONE not in told and name in told and all(f"{url}=<its token>" in told for url in urls)
    # A provider in use stays in the list with the reason why it is not open, and receives no token.
    refused = ProviderPool().open([first, second])
    assert not refused.open and all(name in one.problem for one in refused.not_opened)
    assert not any(listener.asked for listener in listeners)
    # The suggested setting works.
    monkeypatch.setenv(name, f"{urls[0]}={form.format(ONE)} {urls[1]}={form.format(TWO)}")
    ask_all(ProviderPool(tmp_path / "home").open_all([first, second]))
    assert listeners[0].saw(ONE) and listeners[1].saw(TWO) and not listeners[1].saw(ONE)


def test_gateway_token_for_two_addresses_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.touch(0o600)
    monkeypatch.setenv("IPFSMEM_CONFIG", str(settings))
    monkeypatch.setenv("PINATA_JWT", "a-jwt")
    monkeypatch.setenv("PINATA_GATEWAY_TOKEN", ONE)
    with pytest.raises(ConfigError, match="PINATA_GATEWAY_TOKEN is one token"):
        ProviderPool().open_all(["pinata:a.example", "pinata:b.example"])
    lists = ["gateway:https://a.example,https://b.example", "gateway:https://c.example"]
    settings.write_text(f'[providers.gateway]\ngateway_token = "{ONE}"\n')
    with pytest.raises(ConfigError, match="gateway_token is one token") as caught:
        ProviderPool().open_all(lists)
    assert "gateway_token_for" in str(caught.value.hint) and ONE not in str(caught.value)
    with settings.open("a") as file:
        file.write('gateway_token_for = "https://b.example"\n')
    ProviderPool().open_all(lists)


def test_token_for_a_path_applies_to_its_whole_origin(
    two: tuple[list[Listener], list[str]],
) -> None:
    settings: dict[str, Any] = {"peer_token": f"{two[1][0]}/psa={ONE}"}
    assert ask(settings, two[1][0]) == ONE and ask(settings, two[1][1]) == ""


def ask(settings: dict[str, Any], url: str) -> str:
    return token_for(settings, "PEER_TOKEN", url, kind="peer", url_of=lambda rest: rest)


@pytest.mark.parametrize(
    "given",
    [
        "https://a.example",
        "https://a.example=",
        "https://=x",
        "https://a.example=secret-one https://a.example:443=secret-two",
        {"a.example": "secret-one"},
        {"https://a.example": ""},
        {"https://[x": "secret-one"},
    ],
)
def test_invalid_token_is_refused_and_not_quoted(given: object) -> None:
    with pytest.raises(ConfigError) as caught:
        ask({"peer_token": given}, "https://a.example")
    assert "PEER_TOKEN" in str(caught.value) and "secret" not in f"{caught.value} {caught.value.hint}"


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_crashes_the_token_parser(token: str, url: str) -> None:
    try:
        found = ask({"peer_token": token}, url)
    except ConfigError:
        return
    assert found in token


@pytest.mark.parametrize("kind", KINDS)
def test_redirect_to_another_address_receives_no_token(
    two: tuple[list[Listener], list[str]], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    listeners, urls = two
    name, form = KINDS[kind]
    listeners[0].elsewhere = urls[1]
    monkeypatch.setenv(name, f"{urls[0]}={form.format(ONE)} {urls[1]}={form.format(TWO)}")
    ask_all(ProviderPool().open_all([f"{kind}:{url}" for url in urls]))
    assert listeners[0].saw(ONE) and not listeners[1].saw(ONE) and not listeners[0].saw(TWO)


def test_two_peers_are_written_each_with_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """End to end: one vault, two peers with a token each."""
    folders = [tmp_path / "x", tmp_path / "y"]
    for folder in folders:
        folder.mkdir()

    def app(folder: Path, token: str) -> Callable[[], web.Application]:
        return lambda: blocks.app(DirectoryProvider(folder), token=token)

    with serve(app(folders[0], ONE)) as a, serve(app(folders[1], TWO)) as b:
        monkeypatch.setenv("PEER_TOKEN", f"{a}={ONE} {b}={TWO}")
        with Memory.create(
            "m", "ipfs", provider=[f"peer:{a}", f"peer:{b}"], home=tmp_path / "h", public_ok=True
        ) as memory:
            memory.write("tone", "direct")
            report = asyncio.run(memory.sync())
    assert report.published and all((folder / "packs").is_dir() for folder in folders)
