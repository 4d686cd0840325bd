"""The webdav provider with a stand-in server: addresses, foreign listings, and folders that others use
too."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import sys
import time
import tracemalloc
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from ipfsmem_providers.directory.files import FolderObjectStore
from ipfsmem_providers.http import bounds
from ipfsmem_providers.http.policy import ONCE, Retry, Timeouts, Timing
from ipfsmem_providers.packs import blocking_work, store
from ipfsmem_providers.packs.blocking_work import BlockingWork
from ipfsmem_providers.packs.spans import cut, joined
from ipfsmem_providers.packs.store import GOING
from ipfsmem_providers.remote import object_store, placing
from ipfsmem_providers.webdav import WebdavProvider, listing
from ipfsmem_providers.webdav import files as dav_files
from ipfsmem_providers.webdav.address import parse
from ipfsmem_providers.webdav.listing import DavEntry, ListingParser, ListingTooLarge, NotAListing

from ipfsmem.content.cid import ipns_name
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import Provider, lasting_spec, told_of_pauses
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.testing import MockClock
from tests.servers.dav import PASSWORD, DavServer
from tests.servers.threaded import serve
from tests.support.hints import Refused, hinted
from tests.support.patience import PATIENCE
from tests.unit.providers.dav_lab import ACCOUNT, StandIn, dav

DAY = 86_400
TREE = build_tree({"a.md": b"one", "sub/b.md": b"two" * 300})
OTHER = build_tree({"c.md": b"three"})
SEED = b"\x09" * 32
NEWLINE = b"\n"
QUICK = Retry(first=0.01, most=0.02)
NAME = ipns_name(Signer25519(SEED).public)
RECORD = ipns_record.make_record(SEED, f"/ipfs/{TREE.cid}", 3, 2_500_000_000_000_000_000)


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(body)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[StandIn]:
    with dav(tmp_path) as made:
        yield made


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use long timeouts, for slow machines."""
    monkeypatch.setattr(bounds, "in_company", lambda _: Timeouts(connect=PATIENCE, stall=PATIENCE))
    monkeypatch.setattr(placing, "_TIDY_SECONDS", PATIENCE)


async def published(provider: Provider, tree: Any = TREE) -> None:
    await provider.put_car(tree.cid, tree.blocks, name="n")
    await provider.pin(tree.cid, "n")


async def held(provider: Provider, tree: Any = TREE) -> bool:
    """Return whether a tree is stored completely and pinned."""
    found = await provider.get_blocks([cid for cid, _ in tree.blocks])
    return found == dict(tree.blocks) and tree.cid in {pin.cid for pin in await provider.pins("n")}


# -- addresses and accounts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://host/dav", "https://host/dav"),
        ("https://HOST:443/a%20b//c/", "https://host/a%20b/c"),
        ("https://host", "https://host/"),
        ("https://host/remote.php/dav/files/me%40x/ü", "https://host/remote.php/dav/files/me@x/%C3%BC"),
        ("http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ("http://localhost/x", "http://localhost/x"),
    ],
)
def test_address_has_one_form(text: str, url: str) -> None:
    assert parse(text).url == url == parse(url).url
    assert lasting_spec(f"webdav:{text}") == f"webdav:{url}" == WebdavProvider(text, ACCOUNT).name


def test_stored_address_needs_no_settings() -> None:
    assert lasting_spec("webdav:http://NAS:80/x/") == "webdav:http://nas/x"
    with pytest.raises(ConfigError) as raised:
        lasting_spec("webdav:https://me:hunter22@host/x")
    assert "hunter22" not in f"{raised.value} {raised.value.hint}"


@pytest.mark.parametrize(
    "text",
    [
        "", "host/dav", "ftp://host/x", "https://", "https:///x", "https://host:0/x", "https://host:99999/x", "https://host/a/../b",
        "https://host/%2e%2e/b", "https://host/a%2fb", "https://host/a%0Ab", "https://host/a\nb", "https://host/%ff", "https://host/x?y",
        "https://host/x#y", "https://me:hunter22@host/x", "https://me@host/x", "http://host/x", "http://10.0.0.1/x", "http://localhost.evil/x",
    ],
)  # fmt: skip
def test_unusable_address_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        WebdavProvider(text, ACCOUNT)
    assert "hunter22" not in f"{raised.value} {raised.value.hint}"


def test_plain_http_in_a_network_must_be_allowed() -> None:
    assert (
        WebdavProvider("http://nas/x", {**ACCOUNT, "webdav_plain_http": "allow"}).name
        == "webdav:http://nas/x"
    )


@pytest.mark.parametrize(
    "given", [{"webdav_user": "me"}, {"webdav_password": "secret words"}, {**ACCOUNT, "webdav_user": "a:b"}]
)
def test_half_an_account_is_refused(given: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="WEBDAV_") as raised:
        WebdavProvider("https://host/x", given)
    assert "secret" not in str(raised.value)


def test_shared_password_for_two_servers_is_refused() -> None:
    beside = {"beside": lambda: ["webdav:https://one/x", "webdav:https://two/x"]}
    with pytest.raises(ConfigError, match="2 addresses"):
        WebdavProvider("https://one/x", {**ACCOUNT, **beside})


def test_wrong_password_is_refused_and_not_repeated(at: StandIn) -> None:
    async def body() -> None:
        provider = at.open({"webdav_password": "hunter22 hunter22"})
        with pytest.raises(ProviderRefused, match="401") as raised:
            await provider.pins("n")
        assert "hunter22" not in f"{raised.value} {raised.value.hint}"
        assert "WEBDAV_PASSWORD" in raised.value.hint

    run(body())


@pytest.mark.parametrize("absolute", [True, False])
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(at: StandIn, tmp_path: Path, status: int, absolute: bool) -> None:
    other = DavServer(tmp_path)
    with serve(other.app) as url:
        target = f"{url}/x" if absolute else "/login"
        at.server.faults.answer("*", ".*", status, times=-1, Location=f"{target}?token=hunter22")

        async def body() -> None:
            provider = at.open({"retry": ONCE})
            for call in (provider.pins("n"), published(provider), provider.has([TREE.cid])):
                with pytest.raises(ProviderRefused, match="redirect") as raised:
                    await call
                assert PASSWORD not in str(raised.value) and "hunter22" not in str(raised.value)
                hinted("Name the address of the WebDAV folder itself. VALUE", raised.value.hint)
            at.server.faults.clear()
            await published(provider)
            await provider.close()

        run(body())
    assert other.requests == {}


# -- listings ----------------------------------------------------------------------------------------------------------


def parsed(text: str, piece: int = 1 << 20) -> list[DavEntry]:
    parser, data = ListingParser(), text.encode()
    for start in range(0, len(data), piece):
        parser.feed(data[start : start + piece])
    return parser.close()


def response(href: str, props: str = "", status: str = "HTTP/1.1 200 OK", more: str = "") -> str:
    return f"<response><href>{href}</href>{more}<propstat><prop>{props}</prop><status>{status}</status></propstat></response>"


def multistatus(*responses: str) -> str:
    return f'<?xml version="1.0"?><multistatus xmlns="DAV:">{"".join(responses)}</multistatus>'


PINS = response("/dav/my%20memory/pins/", "<resourcetype><collection/></resourcetype>")
SIZE = "<getcontentlength>7</getcontentlength>"


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_listing_is_parsed_in_pieces(piece: int) -> None:
    text = multistatus(
        response("http://host:80/a%20b/", "<resourcetype><collection/></resourcetype>"),
        response("/a%20b/f", f'{SIZE}<getetag>"x&amp;y"</getetag><getlastmodified>Sat, 01 Jan 2000 00:00:00 GMT</getlastmodified>'),
        response("/a%20b/g", SIZE, status="HTTP/1.1 404 Not Found", more="<status>HTTP/1.1 423 Locked</status>"),
        response("/a%20b/h", "<owner><href>/else</href><status>x</status></owner><x xmlns='other'>1</x>"),
    )  # fmt: skip
    assert parsed(text, piece) == [
        DavEntry("http://host:80/a%20b/", 200, True, None, "", ""),
        DavEntry("/a%20b/f", 200, False, 7, "Sat, 01 Jan 2000 00:00:00 GMT", '"x&y"'),
        DavEntry("/a%20b/g", 423, False, None, "", ""),
        DavEntry("/a%20b/h", 200, False, None, "", ""),
    ]
    assert [entry.path for entry in parsed(text)] == [("a b",), *(("a b", name) for name in "fgh")]


@pytest.mark.parametrize(
    "text",
    [
        "", "<html><body>Log in</body></html>", multistatus(response("/f"))[:-5], "<multistatus/>", multistatus("<response/>"),
        multistatus(response("http://[x/")),
        '<!DOCTYPE x [<!ENTITY a "b">]><multistatus xmlns="DAV:">&a;</multistatus>',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1/x"><multistatus xmlns="DAV:"/>', "<multistatus xmlns='DAV:'>&nosuch;</multistatus>",
        '<?xml version="1.0" encoding="no-such"?><multistatus xmlns="DAV:"/>',
    ],
)  # fmt: skip
def test_answer_that_is_not_a_listing_is_not_treated_as_empty(text: str) -> None:
    with pytest.raises(NotAListing):
        parsed(text)


def test_listing_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "ENTRIES_MAX", 3)
    assert len(parsed(multistatus(*[response("/f")] * 3))) == 3
    for text in (
        multistatus(*[response("/f")] * 4),
        multistatus(response("/f", "<x>" * 100)),
        multistatus(response("/" + "f" * 5_000)),
        multistatus(f"<x y='{'z' * 3_000_000}'/>"),
    ):
        with pytest.raises(ListingTooLarge):
            parsed(text, 100_000)


def test_deeply_nested_addresses_need_little_memory() -> None:
    text = multistatus(*[response("/ab" * 1_300)] * 20)
    tracemalloc.start()
    try:
        entries = parsed(text)
        assert tracemalloc.get_traced_memory()[0] < 2 * len(text)
    finally:
        tracemalloc.stop()
    assert len(entries) == 20 and len(entries[0].path) == 1_300


def test_slowly_progressing_listing_times_out(at: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dav_files, "_LISTING_SECONDS", 0.1)

    async def drips(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(status=207)
        await answer.prepare(request)
        await answer.write(f'<multistatus xmlns="DAV:">{PINS}'.encode())
        with contextlib.suppress(ConnectionError):
            while True:
                await answer.write(response("/dav/my%20memory/pins/f", SIZE).encode() * 10)
                await asyncio.sleep(0.02)
        return answer

    at.server.faults.add("PROPFIND", "pins", drips, times=-1)

    async def body() -> None:
        provider = at.open({"retry": ONCE})
        with pytest.raises(ProviderUnavailable, match="no progress"):
            await provider.pins("n")
        await provider.close()

    run(body())


@pytest.mark.parametrize(
    ("text", "permanent"),
    [
        (multistatus(response("/elsewhere/"), response("/elsewhere/f", SIZE)), True),
        (multistatus(response("/dav/my%20memory/pins/f", SIZE)), True),
        (multistatus(response("/dav/my%20memory/pins/", more="<status>HTTP/1.1 507 Full</status>")), True),
        (multistatus(response("/dav/my%20memory/pins/", SIZE)), False),
        ("<html>", False),
        ('<!DOCTYPE x><multistatus xmlns="DAV:"/>', False),
    ],
)
def test_false_listing_is_an_error(at: StandIn, text: str, permanent: bool) -> None:
    at.server.faults.answer("PROPFIND", ".*", 207, text, times=-1, kind="application/xml")

    async def body() -> None:
        provider = at.open()
        with pytest.raises(ProviderError) as raised:
            await provider.pins("n")
        assert raised.value.permanent == permanent
        await provider.close()

    run(body())


@pytest.mark.parametrize("aborted", [True, False])
def test_interrupted_listing_is_requested_again(at: StandIn, aborted: bool) -> None:
    """Apache interrupts a listing when a file disappears."""

    async def cut_off(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(status=207)
        await answer.prepare(request)
        await answer.write(f'<multistatus xmlns="DAV:">{PINS}'.encode())
        assert request.transport is not None
        if aborted:
            request.transport.abort()
        return answer

    async def body() -> None:
        await published(at.open())
        at.server.faults.add("PROPFIND", "pins", cut_off, times=3)
        provider = at.open({"retry": QUICK})
        assert [pin.cid for pin in await provider.pins("n")] == [TREE.cid]
        at.server.faults.add("PROPFIND", "pins", cut_off, times=-1)
        at.server.faults.hits = 0
        with pytest.raises(ProviderUnavailable):
            await provider.pins("n")
        assert at.server.faults.hits == QUICK.attempts
        await provider.close()

    run(body())


def test_unusable_name_hides_no_other(at: StandIn) -> None:
    async def body() -> None:
        await published(at.open())
        odd = ("a%5Cb", "a%0Ab", "%ff", "..", ".new-%2f..%2f..%2fx")
        [pin] = (at.folder / "pins").iterdir()
        size = f"<getcontentlength>{pin.stat().st_size}</getcontentlength>"
        listed = [response(f"/dav/my%20memory/pins/{name}", SIZE) for name in odd]
        text = multistatus(PINS, *listed, response(f"/dav/my%20memory/pins/{pin.name}", size))
        at.server.faults.answer("PROPFIND", "pins", 207, text, times=-1, kind="application/xml")
        provider = at.open()
        assert await held(provider)
        assert set(await provider.listing()) == {f"pins/{pin.name}", *await at.mounted().listing()}
        await provider.close()

    run(body())


def test_endless_listing_ends(at: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "ENTRIES_MAX", 1_000)

    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(status=207)
        await answer.prepare(request)
        await answer.write(b'<multistatus xmlns="DAV:">')
        with contextlib.suppress(ConnectionError):
            while True:
                await answer.write(response("/dav/my%20memory/pins/f", SIZE).encode() * 100)
        return answer

    at.server.faults.add("PROPFIND", "pins", endless, times=-1)

    async def body() -> None:
        provider = at.open()
        with pytest.raises(ProviderRefused, match="too large"):
            await provider.pins("n")
        await provider.close()

    run(body())


# -- the folder --------------------------------------------------------------------------------------------------------


def test_folder_is_used_on_a_disk_and_over_the_network_alternately(at: StandIn) -> None:
    async def body() -> None:
        there, here = at.open(), at.mounted()
        for number, provider in enumerate((there, here, there, here)):
            tree = build_tree({f"{number}.md": bytes([number]) * 5_000})
            await published(provider, tree)
            assert await held(there, tree) and await held(here, tree)
            cids = [cid for cid, _ in tree.blocks]
            assert await there.has(cids) == await here.has(cids) == set(cids)
        await there.put_name(NAME, RECORD)
        assert await here.get_name(NAME) == RECORD == await there.get_name(NAME)
        assert await there.listing() == await here.listing()
        await there.unpin_all(await there.pins("n"))
        assert await here.pins("n") == []
        await there.close()

    run(body())
    assert not list(at.folder.rglob(".[nh]*-*"))


@pytest.mark.parametrize("kind", ["prefix", "no ranges", "named packs", "behind TLS"])
def test_servers_with_different_features_are_supported(at: StandIn, kind: str) -> None:
    settings: dict[str, Any] = {}
    if kind == "prefix":
        at.server.prefix = "/behind/a/proxy"
    elif kind == "no ranges":
        at.server.ranges = False
    elif kind == "behind TLS":
        at.server.behind_tls = True
    else:
        at.url = f"{at.url}/packs"
        (at.folder / "packs").mkdir()

    async def body() -> None:
        large = build_tree({"large": bytes(range(256)) * 3_000})
        await published(at.open(settings), large)
        assert await held(at.open(settings), large)

    run(body())


def test_form_of_targets_stays_after_an_outage(at: StandIn) -> None:
    targets = list[str]()

    async def gateway(request: web.Request) -> web.StreamResponse:
        targets.append(request.headers["Destination"])
        return web.Response(status=502)

    async def noted(request: web.Request) -> web.StreamResponse:
        targets.append(request.headers["Destination"])
        return await at.server._handle(request)

    async def body() -> None:
        provider = at.open()
        at.server.faults.add("MOVE", ".*", gateway, times=2)
        with pytest.raises(ProviderUnavailable, match="502"):
            await published(provider)
        at.server.faults.add("MOVE", ".*", noted, times=-1)
        await published(provider)
        await provider.close()

    run(body())
    assert ["://" in target for target in targets[:3]] == [True, False, True]


def test_missing_folder_is_reported_and_not_created(at: StandIn) -> None:
    async def body() -> None:
        at.folder.rmdir()
        for call in (lambda provider: provider.pins("n"), published):
            provider = at.open()
            with Refused("Create the folder at the server first, or correct the address."):
                await call(provider)
            await provider.close()
        assert not at.folder.exists()
        at.folder.mkdir()
        await published(at.open())
        at.url = f"{at.url}/deeper"
        provider = at.open({"create": True})
        await published(provider)
        assert await held(provider)
        await provider.close()
        assert (at.folder / "deeper" / "packs").is_dir()

    run(body())


def test_folder_that_disappears_is_not_treated_as_empty(at: StandIn) -> None:
    async def body() -> None:
        provider = at.open()
        await published(provider)
        await provider.pins("n")
        (at.folder / "pins").rename(at.folder / "elsewhere")
        for call in (provider.pins("n"), provider._remote.put("pins/x", b"")):
            with pytest.raises(ProviderUnavailable, match="gone"):
                await call
        assert not (at.folder / "pins").exists()
        await provider.close()

    run(body())


def test_foreign_folders_are_never_deleted(at: StandIn) -> None:
    """A server deletes and replaces a folder with all that is in it."""

    async def body() -> None:
        await published(at.open())
        [pack] = (at.folder / "packs").glob("*.car")
        pack.rename(pack.with_name("kept"))
        for name in (pack.name, f"{pack.stem}.idx", f"{pack.stem}{GOING}", f"{pack.stem}.lost"):
            path = at.folder / "packs" / name
            path.unlink(missing_ok=True)
            path.mkdir()
            (path / "of others").write_text("precious")
        provider = at.open()
        await published(provider)
        assert await held(provider) and await held(at.mounted())
        await provider.close()

    run(body())
    assert len(list(at.folder.rglob("of others"))) == 4


def test_page_of_a_portal_does_not_damage_a_pack(at: StandIn) -> None:
    async def body() -> None:
        await published(at.open())
        before = {path: path.read_bytes() for path in at.folder.rglob("*") if path.is_file()}
        at.server.faults.answer(
            "GET", "car", 200, "<html>Accept our terms</html>", times=-1, kind="text/html"
        )
        provider = at.open()
        with pytest.raises(ProviderUnavailable):
            await provider.get_blocks([TREE.cid])
        await provider.close()
        assert before == {path: path.read_bytes() for path in at.folder.rglob("*") if path.is_file()}

    run(body())


@pytest.mark.parametrize("folder", ["names", "pins"])
def test_page_of_a_portal_does_not_damage_names_or_pins(at: StandIn, folder: str) -> None:
    """The newest record of a name is old; a damaged one would be deleted."""
    greater = ipns_record.make_record(SEED, f"/ipfs/{TREE.cid}", 5, 2_500_000_000_000_000_000)

    async def body() -> None:
        await published(at.open())
        await at.open().put_name(NAME, greater)
        _age(at)
        before = {path: path.read_bytes() for path in (at.folder / folder).iterdir()}
        page = "<html>Accept our terms</html>"
        at.server.faults.answer("GET", folder, 200, page, times=-1, kind="text/html")
        provider = at.open()
        for call in (provider.put_name(NAME, RECORD), provider.get_name(NAME), provider.pins("n")):
            with contextlib.suppress(ProviderUnavailable):
                await call
        with pytest.raises(ProviderUnavailable, match="another file"):
            await (provider.get_name(NAME) if folder == "names" else provider.pins("n"))
        at.server.faults.clear()
        assert before.items() <= {path: path.read_bytes() for path in (at.folder / folder).iterdir()}.items()
        assert await provider.get_name(NAME) == greater and await held(provider)
        await provider.close()

    run(body())


@pytest.mark.parametrize("folder", ["names", "pins", "packs"])
def test_file_of_another_size_than_listed_hides_no_other(at: StandIn, folder: str) -> None:
    """Some servers list the sizes of encrypted files."""

    async def body() -> None:
        await published(at.open())
        await at.open().put_name(NAME, RECORD)
        before = set((at.folder / "packs").iterdir())
        await published(at.open(), OTHER)
        [wrong] = {
            "names": (at.folder / "names").iterdir(),
            "pins": (at.folder / "pins").glob(f"{OTHER.cid}*"),
            "packs": set((at.folder / "packs").glob("*.car")) - before,
        }[folder]
        if folder == "packs":  # a complete file would be proved by its hash
            wrong.with_suffix(".idx").unlink()
            wrong.write_bytes(wrong.read_bytes()[:-1])
        at.server.sizes[wrong.name] = wrong.stat().st_size + 9
        provider = at.open()
        provider.begin_snapshot(b"")
        found = await provider.get_blocks([cid for cid, _ in (*TREE.blocks, *OTHER.blocks)])
        assert found == dict([*TREE.blocks, *(() if folder == "packs" else OTHER.blocks)])
        pins = {pin.cid for pin in await provider.pins("n")}
        assert pins == ({TREE.cid} if folder == "pins" else {TREE.cid, OTHER.cid})
        assert await provider.get_name(NAME) == (None if folder == "names" else RECORD)
        assert provider.unread() == [wrong.name]
        provider.end_snapshot()
        _age(at)
        with contextlib.nullcontext() if folder == "pins" else pytest.raises(ProviderError, match="nothing"):
            await provider.collect()
        at.server.sizes.clear()
        provider.begin_snapshot(b"")
        assert await held(provider) and await held(provider, OTHER) == (folder != "packs")
        assert await provider.get_name(NAME) == RECORD and provider.unread() == []
        await provider.close()

    run(body())


def test_server_with_wrong_sizes_is_not_treated_as_empty(at: StandIn) -> None:
    async def body() -> None:
        for tree in (TREE, OTHER):
            await published(at.open(), tree)
        at.server.sizes = dict.fromkeys((path.name for path in (at.folder / "pins").iterdir()), 9_999)
        provider = at.open()
        with pytest.raises(ProviderUnavailable, match="another file"):
            await provider.pins("n")
        await provider.close()

    run(body())


def test_file_replaced_after_the_list_is_read(at: StandIn) -> None:
    async def body() -> None:
        await published(at.open())
        [pack] = (at.folder / "packs").glob("*.car")
        lost = pack.with_suffix(".lost")
        lost.write_text(f"{TREE.cid}\n")
        provider = at.open()

        async def replaced(request: web.Request) -> web.StreamResponse:
            lost.write_text(f"{TREE.cid}\n{OTHER.cid}\n")
            return await at.server._handle(request)

        at.server.faults.add("GET", "lost", replaced)
        assert TREE.cid in await provider.missing_blocks()
        await provider.close()

    run(body())


def test_address_without_webdav_is_reported(at: StandIn) -> None:
    at.server.faults.answer("PROPFIND", ".*", 405)
    at.server.faults.answer("PROPFIND", ".*", 200, "<html>", kind="text/html")

    async def body() -> None:
        provider = at.open()
        for kind in (ProviderRefused, ProviderUnavailable):
            with pytest.raises(kind) as raised:
                await provider.pins("n")
            hinted("The address must be that of a WebDAV folder. VALUE", raised.value.hint)
        assert await provider.pins("n") == []
        await provider.close()

    run(body())


def test_refused_access_is_reported(at: StandIn) -> None:
    at.server.faults.answer("PUT", ".*", 403)

    async def body() -> None:
        provider = at.open()
        with Refused("Give this user permission to read and write the folder."):
            await published(provider)
        await published(provider)
        await provider.close()

    run(body())


@pytest.mark.parametrize("status", [403, 423], ids=["apache", "rclone"])
def test_folder_that_another_device_creates_at_once_is_used(at: StandIn, status: int) -> None:

    async def created_meanwhile(request: web.Request) -> web.StreamResponse:
        at.server._path(request.raw_path).mkdir(parents=True)
        return web.Response(status=status)

    async def body() -> None:
        provider = at.open()
        at.server.faults.add("MKCOL", ".*", created_meanwhile)
        await published(provider)
        assert await held(provider) and at.server.faults.hits == 1
        await provider.close()

    run(body())


def test_page_of_a_portal_is_not_a_successful_upload(at: StandIn) -> None:
    page = "<html>Accept our terms</html>"
    for method in ("PUT", "MOVE", "MKCOL", "DELETE"):
        at.server.faults.answer(method, ".*", 200, page, times=-1, kind="text/html")

    async def body() -> None:
        provider = at.open()
        with pytest.raises(ProviderUnavailable):
            await provider.put_car(TREE.cid, TREE.blocks, name="n")
        await provider.close()

    run(body())


def test_unreadable_entry_hides_no_other(at: StandIn) -> None:
    name = "k51x.0123456789abcdef.ipns-record"
    text = response(f"/dav/my%20memory/names/{name}", more="<status>HTTP/1.1 403 Forbidden</status>")

    async def body() -> None:
        provider = at.open()
        await published(provider)
        await provider.put_name(NAME, RECORD)
        [record] = (at.folder / "names").iterdir()
        listed = response(
            f"/dav/my%20memory/names/{record.name}",
            f"<getcontentlength>{record.stat().st_size}</getcontentlength>",
        )
        folder = PINS.replace("pins", "names")
        at.server.faults.answer(
            "PROPFIND", "names", 207, multistatus(folder, text, listed), times=-1, kind="application/xml"
        )
        assert await provider.get_name(NAME) == RECORD
        await provider.close()

    run(body())


def _leave_unanswered(at: StandIn, path: str, *, aborted: bool = True) -> None:
    """Let the server rename a file and then break the connection, or let a proxy answer."""

    async def unanswered(request: web.Request) -> web.StreamResponse:
        at.server._move(request, at.server._path(request.raw_path))
        if not aborted:
            return web.Response(status=504)
        assert request.transport is not None
        request.transport.abort()
        raise ConnectionResetError

    at.server.faults.add("MOVE", path, unanswered)


@pytest.mark.parametrize("deletes_first", [False, True])
def test_rename_without_an_answer_is_recognised(at: StandIn, deletes_first: bool) -> None:
    """The server renamed the file, and the connection broke."""
    at.server.deletes_first = deletes_first
    _leave_unanswered(at, ".*")

    async def body() -> None:
        provider = at.open({"retry": QUICK})
        await published(provider)
        assert await held(provider) and not list(at.folder.rglob(".[nh]*-*"))
        await provider.close()

    run(body())


@pytest.mark.parametrize("deletes_first", [False, True])
@pytest.mark.parametrize("retry", [ONCE, QUICK])
@pytest.mark.parametrize("aborted", [True, False])
@pytest.mark.parametrize("step", [0, 1, 2])
@pytest.mark.parametrize("kept", ["pack", "damaged pack", "damaged list"])
def test_rename_carried_out_without_an_answer_loses_nothing(
    at: StandIn, deletes_first: bool, retry: Retry, aborted: bool, step: int, kept: str
) -> None:
    """Some servers delete the target of a repeated rename before they miss its source. A proxy may answer instead."""
    at.server.deletes_first = deletes_first

    async def body() -> None:
        await published(at.open())
        [file] = at.folder.rglob("*.json" if kept == "damaged list" else "*.car")
        data = file.read_bytes()
        if kept == "damaged list":
            file = file.with_name(f"{hashlib.sha256(data + NEWLINE).hexdigest()}.pins")
            data += NEWLINE
        file.write_bytes(b"damaged" if "damaged" in kept else data)
        _age(at)
        if step:
            at.server.faults.add("MOVE", ".*", at.server._handle, times=step)
        _leave_unanswered(at, ".*", aborted=aborted)
        provider = at.open({"retry": retry})
        lost = retry is ONCE and step != 1  # the hidden name is looked up after a lost answer
        with pytest.raises(ProviderUnavailable) if lost else contextlib.nullcontext():
            path = f"{file.parent.name}/{file.name}"
            await provider._remote.put(path, data, named_by_content="pack" in kept)
        assert at.server.faults.hits == step + 1
        if lost:  # the hidden pack is restored
            FolderObjectStore(at.folder, file.parent.name).sweep(time.time() - DAY)
            assert file.exists() and (kept != "pack" or file.read_bytes() == data)
        else:
            assert file.read_bytes() == data and not list(at.folder.rglob(".[nh]*-*"))
        await provider.close()

    run(body())


@pytest.mark.parametrize("method", ["PUT", "MOVE", "MKCOL"])
def test_full_disk_is_reported_at_once(at: StandIn, method: str) -> None:
    at.server.faults.answer(method, ".*", 507, times=-1)

    async def body() -> None:
        provider = at.open()
        with Refused("Free space there."):
            await published(provider)
        assert at.server.faults.hits == 1
        await provider.close()

    run(body())


@pytest.mark.parametrize(
    ("status", "permanent"), [(403, True), (405, True), (413, True), (423, False), (507, False), (503, False)]
)
def test_failed_upload_leaves_no_file(at: StandIn, patient: None, status: int, permanent: bool) -> None:
    async def partial(request: web.Request) -> web.StreamResponse:
        at.server._path(request.raw_path).write_bytes((await request.read())[:10])
        return web.Response(status=status)

    async def body() -> None:
        provider = at.open({"retry": ONCE})
        await published(provider)
        before = sorted(at.folder.rglob("*"))
        at.server.faults.add("PUT", ".*", partial, times=-1)
        with pytest.raises(ProviderError) as raised:
            await published(provider, OTHER)
        assert raised.value.permanent == permanent
        assert sorted(at.folder.rglob("*")) == before
        await provider.close()

    run(body())


def test_cancelled_upload_leaves_no_file(at: StandIn, patient: None) -> None:
    async def body() -> None:
        provider, begun = at.open(), asyncio.Event()
        loop = asyncio.get_running_loop()

        async def silent(request: web.Request) -> web.StreamResponse:
            loop.call_soon_threadsafe(begun.set)
            await asyncio.sleep(3600)
            raise AssertionError

        at.server.faults.add("MOVE", ".*", silent)
        task = asyncio.ensure_future(published(provider))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not [path for path in at.folder.rglob("*") if path.is_file() and path.suffix != ".idx"]
        assert await provider.has([TREE.cid]) == set()
        await published(provider)
        assert await held(provider)
        await provider.close()

    run(body())


def test_pauses_are_reported_to_the_caller(at: StandIn) -> None:
    at.server.faults.answer("PROPFIND", "pins", 429, Retry_After="1")
    said: list[str] = []

    async def no_time(_: float) -> None:
        pass

    async def body() -> None:
        told_of_pauses.set(said.append)
        provider = at.open({"timing": Timing(sleep=no_time)})
        await provider.pins("n")
        await provider.close()

    run(body())
    assert len(said) == 1 and "429" in said[0]


def test_idle_sync_lists_each_folder_once(at: StandIn) -> None:
    async def body() -> None:
        first = at.open()
        await published(first)
        await first.put_name(NAME, RECORD)
        await first.close()
        provider, cache = at.open(), b""
        for _ in range(2):
            at.server.requests.clear()
            provider.begin_snapshot(cache)
            asked = (provider.get_name(NAME), provider.pins("n"), provider.pins("m"), provider.listing())
            record, pins, _, _ = await asyncio.gather(*asked)
            assert record == RECORD and [pin.cid for pin in pins] == [TREE.cid]
            await provider.missing_blocks()
            cache = provider.end_snapshot()
            assert at.server.requests["PROPFIND"] == 3
        assert at.server.requests == {"PROPFIND": 3}  # cached files are not read again
        await published(first := at.open(), OTHER)
        assert await held(provider, OTHER)
        await first.close()
        await provider.close()

    run(body())


async def _asked(at: StandIn, cache: bytes, clock: MockClock | None = None) -> tuple[bytes, dict[str, int]]:
    """Return the cache after an idle sync of a new process, and its requests."""
    provider = WebdavProvider(at.url, {**at.account}, **({"clock": clock} if clock else {}))
    at.server.requests.clear()
    provider.begin_snapshot(cache)
    assert await provider.get_name(NAME) == RECORD
    assert [pin.cid for pin in await provider.pins("n")] == [TREE.cid]
    cache = provider.end_snapshot()
    await provider.close()
    return cache, dict(at.server.requests)


async def _idle(at: StandIn) -> None:
    first = at.open()
    await published(first)
    await first.put_name(NAME, RECORD)
    await first.close()


def test_idle_sync_of_a_later_process_only_lists(at: StandIn) -> None:
    clock = MockClock()

    async def body() -> None:
        await _idle(at)
        cache, requests = await _asked(at, b"", clock)
        assert requests == {"PROPFIND": 2, "GET": 2}
        for _ in range(2):
            cache, requests = await _asked(at, cache, clock)
            assert requests == {"PROPFIND": 2}
        clock.advance(DAY)
        cache, requests = await _asked(at, cache, clock)
        assert requests == {"PROPFIND": 2, "GET": 2}  # a listed file may have become unreadable
        cache, requests = await _asked(at, cache, clock)
        assert requests == {"PROPFIND": 2}

    run(body())


def test_cached_file_that_changed_is_read_again(at: StandIn) -> None:
    newer = ipns_record.make_record(SEED, f"/ipfs/{TREE.cid}", 4, 2_500_000_000_000_000_000)

    async def body() -> None:
        await _idle(at)
        cache, _ = await _asked(at, b"")
        [pin], [name] = (list((at.folder / folder).iterdir()) for folder in ("pins", "names"))
        for path in (pin, name):
            os.utime(path, (1, 1))
        cache, requests = await _asked(at, cache)
        assert requests == {"PROPFIND": 2, "GET": 2}
        os.utime(name, (2, 2))
        name.write_bytes(b"x" * len(RECORD))
        provider = at.open()
        provider.begin_snapshot(cache)
        assert await provider.get_name(NAME) is None and provider.unread() == [name.name]
        provider.end_snapshot()
        await provider.put_name(NAME, newer)
        later = at.open()
        later.begin_snapshot(cache)
        assert await later.get_name(NAME) == newer
        pin.unlink()
        assert await later.pins("n") == []
        for one in (provider, later):
            await one.close()

    run(body())


NEWER = ipns_record.make_record(SEED, f"/ipfs/{TREE.cid}", 4, 2_500_000_000_000_000_000)


async def _newer_record_lost_in_its_listed_version(at: StandIn) -> bytes:
    """Return the cache of a device that read NEWER, whose bytes are lost; the older RECORD is back."""
    first = at.open()
    first.begin_snapshot(b"")
    await first.put_name(NAME, NEWER)
    assert await first.get_name(NAME) == NEWER
    cache = first.end_snapshot()
    await first.close()
    [file] = (at.folder / "names").iterdir()
    stat = file.stat()
    file.write_bytes(b"\0" * stat.st_size)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    tag = hashlib.sha256(RECORD).hexdigest()[:16]
    (at.folder / "names" / f"{NAME}.{tag}.ipns-record").write_bytes(RECORD)
    return cache


@pytest.mark.parametrize("offered", [NEWER, RECORD])
def test_cached_record_of_a_lost_file_replaces_no_other(at: StandIn, offered: bytes) -> None:
    async def body() -> None:
        cache = await _newer_record_lost_in_its_listed_version(at)
        later = at.open()
        later.begin_snapshot(cache)
        assert await later.get_name(NAME) == NEWER  # cached
        await later.put_name(NAME, offered)
        assert await later.get_name(NAME) == offered
        await later.close()
        there = at.mounted()
        assert await there.get_name(NAME) == offered

    run(body())


def test_pin_of_a_cached_list_that_is_lost_is_added_again(at: StandIn) -> None:
    """Its publish was acknowledged, and no other device found the root."""

    async def body() -> None:
        await published(first := at.open())
        await first.close()
        [single] = (at.folder / "pins").iterdir()
        data = single.read_bytes() + b"\n"
        single.unlink()
        listed = at.folder / "pins" / f"{hashlib.sha256(data).hexdigest()}.pins"
        listed.write_bytes(data)
        reader = at.open()
        reader.begin_snapshot(b"")
        assert [pin.cid for pin in await reader.pins("n")] == [TREE.cid]
        cache = reader.end_snapshot()
        await reader.close()
        stat = listed.stat()
        listed.write_bytes(b"\0" * stat.st_size)
        os.utime(listed, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        later = at.open()
        later.begin_snapshot(cache)
        assert [pin.cid for pin in await later.pins("n")] == [TREE.cid]  # cached
        at.server.requests.clear()
        await later.pin(TREE.cid, "n")
        assert at.server.requests == {"PROPFIND": 1, "GET": 1, "PUT": 1, "MOVE": 1}
        assert [pin.cid for pin in await at.mounted().pins("n")] == [TREE.cid]
        await later.close()

    run(body())


def test_long_process_reads_a_record_again_after_a_day(at: StandIn) -> None:
    clock, slept = MockClock(), [0.0]

    async def body() -> None:
        await _idle(at)
        provider = WebdavProvider(at.url, {**at.account}, clock=clock)
        provider._remote.monotonic = provider._names._elapsed = lambda: time.monotonic() + slept[0]
        provider.begin_snapshot(b"")
        for _ in range(2):
            assert await provider.get_name(NAME) == RECORD
        cache = provider.end_snapshot()
        at.server.requests.clear()
        clock.advance(DAY)  # the adjustable clock
        provider.begin_snapshot(cache)
        for _ in range(2):
            assert await provider.get_name(NAME) == RECORD
        assert at.server.requests == {"PROPFIND": 1, "GET": 1}
        slept[0] = DAY  # the other one
        for _ in range(2):
            assert await provider.get_name(NAME) == RECORD
        assert at.server.requests == {"PROPFIND": 1, "GET": 2}
        await provider.close()

    run(body())


def test_false_file_in_the_cache_is_read_again(at: StandIn) -> None:
    async def body() -> None:
        await _idle(at)
        cached = msgspec.json.decode((await _asked(at, b""))[0])
        other = msgspec.json.decode(msgspec.json.encode(b"another"))
        for folder in ("names", "pins"):
            [name] = cached[folder]
            forged = {**cached, folder: {name: {**cached[folder][name], "data": other}}}
            _, requests = await _asked(at, msgspec.json.encode(forged))
            assert requests == {"PROPFIND": 2, "GET": 1}
        for cache in (b"x", b"[]", b'{"names":[]}', b'{"names":{"a":{"version":[{}],"read":1,"data":""}}}'):
            _, requests = await _asked(at, cache)
            assert requests == {"PROPFIND": 2, "GET": 2}

    run(body())


def test_large_pack_of_a_mounted_folder_is_read_in_parts(
    at: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "WHOLE_MAX", 50_000)
    monkeypatch.setattr(object_store, "_AHEAD", 20_000)
    large = build_tree({"large": bytes(range(256)) * 3_000})

    async def body() -> None:
        await published(at.mounted(), large)
        [index] = (at.folder / "packs").glob("*.idx")
        index.unlink()
        provider = at.open()
        assert await held(provider, large)
        await provider.close()
        assert index.exists()

    run(body())


@pytest.mark.parametrize("bound", ["size", "time", "time of a sole provider"])
def test_endless_pack_hides_no_other(
    at: StandIn, monkeypatch: pytest.MonkeyPatch, patient: None, bound: str
) -> None:
    monkeypatch.setattr(object_store, "WHOLE_MAX", 50_000)
    monkeypatch.setattr(object_store, "_AHEAD", 20_000)
    if bound == "size":
        monkeypatch.setattr(object_store, "FILE_MAX", 100_000)
    large = build_tree({"large": bytes(range(256)) * 3_000})
    clock = [0.0]

    async def slow(request: web.Request) -> web.StreamResponse:
        clock[0] += 25
        return await at.server._handle(request)

    async def body() -> None:
        await published(at.mounted(), large)
        [index] = (at.folder / "packs").glob("*.idx")
        kept = index.read_bytes()
        index.unlink()
        await published(at.mounted())
        at.server.faults.add("GET", "car", slow, times=-1)
        provider = at.open({"company": bound == "time", "timing": Timing(now=lambda: clock[0])})
        provider.begin_snapshot(b"")
        wanted = [cid for tree in (large, TREE) for cid, _ in tree.blocks]
        found = await provider.get_blocks(wanted)
        provider.end_snapshot()
        if bound == "time of a sole provider":
            assert found == dict([*large.blocks, *TREE.blocks]) and provider.unread() == []
        else:
            assert found == dict(TREE.blocks) and provider.unread() == [f"{index.stem}.car"]
            assert at.server.faults.hits < (3 if bound == "size" else 10)
            index.write_bytes(kept)  # then only parts of the pack are read
            provider.begin_snapshot(b"")
            assert await held(provider, large) and provider.unread() == []
        await provider.close()

    run(body())


def test_recently_stored_pack_is_not_replaced(at: StandIn) -> None:
    async def body() -> None:
        await published(at.open())
        [pack] = (at.folder / "packs").glob("*.car")
        before = pack.stat().st_ino, pack.stat().st_mtime_ns
        provider = at.open()
        await published(provider)
        assert (pack.stat().st_ino, pack.stat().st_mtime_ns) == before
        assert not list(at.folder.rglob(".[nh]*-*"))
        _age(at)
        await published(provider)
        assert pack.stat().st_mtime_ns >= before[1]  # a new date, so that it is not removed as old
        pack.write_bytes(b"damaged")
        await published(provider)
        assert await held(provider)
        await provider.close()

    run(body())


def test_truncated_pack_is_sent_again_within_the_hour(at: StandIn) -> None:
    """As after a power failure of the server: the size is right."""

    async def body() -> None:
        await published(at.open())
        [pack] = (at.folder / "packs").glob("*.car")
        pack.write_bytes(bytes(pack.stat().st_size))
        provider = at.open()
        assert not await held(provider) and await provider.missing_blocks()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        assert await held(provider) and await held(at.mounted())
        await provider.close()

    run(body())


def test_removal_of_a_hidden_pack_is_sent_once(at: StandIn) -> None:
    """The answer is lost while another collection hides a pack that was stored again."""

    async def body() -> None:
        await _useless(at)
        _age(at)
        provider = at.open({"retry": QUICK})
        await provider.collect()
        [mark] = (at.folder / "packs").glob(f"*{GOING}")
        hidden: Path | None = None
        _date_marks_back(at)
        _age(at)

        async def lost(request: web.Request) -> web.StreamResponse:
            nonlocal hidden
            hidden = mark.with_name(request.path.rpartition("/")[2])
            hidden.write_bytes(b"put again")
            assert request.transport is not None
            request.transport.abort()
            raise ConnectionResetError

        for method in ("MOVE", "DELETE"):
            at.server.faults.add(method, rf"/\.hidden-[0-9a-f]+-{mark.stem}", lost)
        with pytest.raises(ProviderUnavailable):
            await provider.collect()
        assert hidden is not None and hidden.read_bytes() == b"put again"
        await provider.close()

    run(body())


def test_pack_that_is_being_replaced_is_read(at: StandIn) -> None:
    """A server may delete the old file before it renames the new one."""

    async def body() -> None:
        await published(at.open())
        at.server.faults.answer("GET", "car", 404)
        provider = at.open()
        assert await held(provider)
        await provider.close()
        at.server.faults.answer("GET", "idx|car", 404, times=3)
        provider = at.open()
        assert await provider.has([TREE.cid]) == {TREE.cid}
        assert at.server.faults.hits == 4
        await provider.close()

    run(body())


def test_adjacent_parts_are_joined_up_to_a_limit() -> None:
    data = bytes(range(200))
    for spans, near in (
        ([(0, 4), (4, 8), (8, 12)], [(0, 8), (8, 12)]),
        ([(6, 9), (0, 4), (7, 20)], [(0, 4), (6, 20)]),  # overlapping parts stay together
        ([(0, 20), (2, 4), (21, 22)], [(0, 20), (21, 22)]),
        ([(0, 2), (4, 6), (9, 10)], [(0, 6), (9, 10)]),
    ):
        assert joined(spans, 2, 8) == near
        parts = [data[start:end] for start, end in near]
        assert [cut(near, parts, span) for span in spans] == [data[start:end] for start, end in spans]


def test_each_of_many_requests_is_progress(at: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    beats, noted = list[int](), list[int]()
    monkeypatch.setattr(blocking_work._ThreadWork, "beat", lambda self: beats.append(1))

    async def note(request: web.Request) -> web.StreamResponse:
        noted.append(len(beats))
        return await at.server._handle(request)

    async def body() -> None:
        await published(at.mounted())
        for number in range(12):
            await at.mounted().pin(build_tree({f"{number}": b""}).cid, "n")
        beats.clear()
        at.server.faults.add("GET", "pins", note, times=-1)
        provider = at.open()
        assert len(await provider.pins("n")) == 13 == len(noted) and noted[-1] > 0
        await provider.close()

    run(body())


def test_request_for_parts_reads_no_more_than_its_bound(at: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (store, object_store):
        monkeypatch.setattr(module, "_SPAN", 20_000)
    tree = build_tree({f"{number}": bytes([number]) * 5_000 for number in range(20)})
    asked = list[int]()

    async def note(request: web.Request) -> web.StreamResponse:
        first, _, last = request.headers["Range"].removeprefix("bytes=").partition("-")
        asked.append(int(last) - int(first))
        return await at.server._handle(request)

    async def body() -> None:
        await published(at.mounted(), tree)
        at.server.faults.add("GET", "car", note, times=-1)
        provider = at.open()
        assert await held(provider, tree)
        assert len(asked) >= 4 and max(asked) < 30_000
        await provider.close()

    run(body())


def test_calls_that_move_packs_have_a_doubled_timeout(at: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[float]()
    real = BlockingWork.run

    async def noted(self: BlockingWork, work: Any, *, more: float = 0.0) -> Any:
        given.append(more)
        return await real(self, work, more=more)

    monkeypatch.setattr(BlockingWork, "run", noted)

    async def body() -> None:
        provider = at.open()
        for call in (provider.put_car(TREE.cid, TREE.blocks, name="n"), provider.get_blocks([TREE.cid])):
            given.clear()
            await call
            assert max(given) == provider.step_seconds > 0
        await provider.close()

    run(body())


# -- collection --------------------------------------------------------------------------------------------------------


def _age(at: StandIn) -> None:
    """Age all files by two days, by the server's clock."""
    for path in at.folder.rglob("*"):
        if path.is_file():
            _age_one(path)


def _age_one(path: Path) -> None:
    then = path.stat().st_mtime - 2 * DAY
    os.utime(path, (then, then))


def _date_marks_back(at: StandIn) -> None:
    """Backdate the marks, as a device with a wrong clock does."""
    for mark in (at.folder / "packs").glob(f"*{GOING}"):
        mark.write_text('{"since":1}')


async def _useless(at: StandIn) -> None:
    """Two published trees, one of which is no longer pinned."""
    provider = at.open()
    await published(provider)
    await published(provider, OTHER)
    await provider.unpin(next(pin for pin in await provider.pins("n") if pin.cid == OTHER.cid))
    await provider.close()


def _packs(at: StandIn) -> int:
    return len(list((at.folder / "packs").glob("[!.]*.car")))


def test_space_is_freed_by_the_servers_clock(at: StandIn) -> None:
    async def body() -> None:
        await _useless(at)
        ahead = WebdavProvider(at.url, at.account, clock=lambda: time.time_ns() + 30 * DAY * 10**9)
        assert await ahead.collect() == 0  # by its own clock the packs are old
        _age(at)
        assert await ahead.collect() > 0
        assert await ahead.collect() == 0 and _packs(at) == 2  # marked just now
        assert await at.mounted().has([OTHER.cid]) == set()
        await ahead.close()

    run(body())


def test_pack_is_removed_a_day_after_its_mark(at: StandIn) -> None:
    async def body() -> None:
        await _useless(at)
        _age(at)
        behind = WebdavProvider(at.url, at.account, clock=lambda: time.time_ns() - 9 * DAY * 10**9)
        await behind.collect()
        _date_marks_back(at)
        await behind.collect()
        assert _packs(at) == 2  # its text says that the mark is old, its file date that it is not
        _age(at)
        assert await behind.collect() > 0
        assert _packs(at) == 1 and await held(behind) and await held(at.mounted())
        assert not list((at.folder / "packs").glob(f"*{GOING}"))
        await behind.close()

    run(body())


def test_hidden_pack_is_restored_when_the_pins_cannot_be_read(at: StandIn) -> None:
    async def body() -> None:
        await _useless(at)
        _age(at)
        provider = at.open({"retry": ONCE})
        await provider.collect()
        _date_marks_back(at)
        _age(at)
        at.server.faults.hits = 0

        async def broken(request: web.Request) -> web.StreamResponse:
            return web.Response(status=500)

        async def hidden(request: web.Request) -> web.StreamResponse:
            at.server.faults.add("PROPFIND", "pins", broken, times=1)
            return await at.server._handle(request)

        at.server.faults.add("MOVE", "car", hidden)
        with pytest.raises(ProviderUnavailable):
            await provider.collect()
        assert at.server.faults.hits == 2 and _packs(at) == 2
        await provider.close()

    run(body())


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("retry", [ONCE, Retry(attempts=2, first=0.01, most=0.02)])
def test_pack_hidden_without_an_answer_is_restored_or_removed(
    at: StandIn, pinned: bool, retry: Retry
) -> None:
    async def body() -> None:
        await _useless(at)
        _age(at)
        provider = at.open({"retry": retry})
        await provider.collect()
        _date_marks_back(at)
        _age(at)
        _leave_unanswered(at, "car")
        if pinned:
            other = at.mounted()

            async def pins_first(request: web.Request) -> web.StreamResponse:
                await other.pin(OTHER.cid, "n")
                return await at.server._handle(request)

            at.server.faults.add("PROPFIND", "pins", at.server._handle, times=2)
            at.server.faults.add("PROPFIND", "pins", pins_first)
        await provider.collect()
        assert _packs(at) == (2 if pinned else 1)
        assert not list((at.folder / "packs").glob(".[nh]*-*"))
        assert await held(provider) and (not pinned or await held(provider, OTHER))
        await provider.close()

    run(body())


@pytest.mark.parametrize("deletes_first", [False, True])
def test_pack_restored_by_another_device_is_kept(at: StandIn, deletes_first: bool) -> None:
    """A device that mounts the folder sweeps while a collection over the network looks at the pins."""
    at.server.deletes_first = deletes_first

    async def body() -> None:
        await _useless(at)
        _age(at)
        provider = at.open()
        await provider.collect()
        _date_marks_back(at)
        _age(at)

        async def swept(request: web.Request) -> web.StreamResponse:
            answer = at.server._move(request, at.server._path(request.raw_path))
            FolderObjectStore(at.folder, "packs").sweep(time.time() - DAY)
            return answer

        at.server.faults.add("MOVE", "car", swept)
        await provider.collect()
        assert _packs(at) == 2 and await at.mounted().get_blocks([OTHER.cid])
        await provider.close()

    run(body())


@pytest.mark.parametrize("deletes_first", [False, True])
def test_pack_removed_by_another_collection_is_skipped(at: StandIn, deletes_first: bool) -> None:
    at.server.deletes_first = deletes_first

    async def body() -> None:
        await _useless(at)
        _age(at)
        provider = at.open()
        await provider.collect()
        _date_marks_back(at)
        _age(at)

        async def removed(request: web.Request) -> web.StreamResponse:
            at.server._path(request.raw_path).unlink()
            return await at.server._handle(request)

        at.server.faults.add("MOVE", "car", removed)
        assert await provider.collect() == 0
        assert _packs(at) == 1 and not list((at.folder / "packs").glob(f"*{GOING}"))
        await provider.close()

    run(body())


def test_pack_stored_again_at_the_last_moment_is_kept(at: StandIn) -> None:
    """No pin names it yet."""

    async def body() -> None:
        await _useless(at)
        _age(at)
        provider = at.open()
        await provider.collect()
        _date_marks_back(at)
        _age(at)

        async def put_again(request: web.Request) -> web.StreamResponse:
            os.utime(at.server._path(request.raw_path))
            return await at.server._handle(request)

        at.server.faults.add("MOVE", "car", put_again)
        await provider.collect()
        assert _packs(at) == 2 and await at.mounted().has([OTHER.cid])
        await provider.close()

    run(body())


def test_hidden_pack_is_restored_when_the_collection_is_cancelled(at: StandIn) -> None:
    async def body() -> None:
        await _useless(at)
        _age(at)
        provider, hidden = at.open(), asyncio.Event()
        await provider.collect()
        _date_marks_back(at)
        _age(at)
        loop = asyncio.get_running_loop()

        async def silent(request: web.Request) -> web.StreamResponse:
            loop.call_soon_threadsafe(hidden.set)
            await asyncio.sleep(3600)
            raise AssertionError

        async def hides(request: web.Request) -> web.StreamResponse:
            at.server.faults.add("PROPFIND", "pins", silent)
            return await at.server._handle(request)

        at.server.faults.add("MOVE", "car", hides)
        task = asyncio.ensure_future(provider.collect())
        await hidden.wait()
        assert _packs(at) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert _packs(at) == 2 and not list((at.folder / "packs").glob(".[nh]*-*"))
        await provider.close()

    run(body())


def test_large_pack_of_a_mounted_folder_is_rewritten_in_small_ones(
    at: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipfsmem_providers.remote.provider.RemotePacks.merge_bytes", 50_000)
    files = {f"{number}": bytes([number]) * 10_000 for number in range(30)}
    large, part = build_tree(files), build_tree({name: files[name] for name in list(files)[:20]})

    async def body() -> None:
        here = at.mounted()
        await here.put_car(large.cid, large.blocks, name="n")
        [before] = (at.folder / "packs").glob("*.car")
        new = [block for block in part.blocks if block not in large.blocks]
        await here.put_car(part.cid, new, name="n")
        await here.pin(part.cid, "n")
        _age(at)
        provider = at.open()
        await provider.collect()
        packs = [pack for pack in (at.folder / "packs").glob("*.car") if pack != before]
        assert len(packs) > 4 and max(pack.stat().st_size for pack in packs) < 55_000
        _date_marks_back(at)
        _age(at)
        await provider.collect()
        assert not before.exists() and await held(provider, part) and await held(here, part)
        await provider.close()

    run(body())


def test_hidden_pack_of_a_killed_collection_is_restored(at: StandIn) -> None:
    async def body() -> None:
        await published(at.open())
        _age(at)
        [pack] = (at.folder / "packs").glob("*.car")
        pack.rename(pack.with_name(f".new-{pack.name}"))
        (at.folder / "packs" / ".new-1-2").write_bytes(b"unfinished")
        there = at.folder / "packs" / f"{hashlib.sha256(b'newer').hexdigest()}.car"
        there.write_bytes(b"newer")
        there.with_name(f".new-{there.name}").write_bytes(b"older")
        _age_one(there.with_name(f".new-{there.name}"))
        ahead = WebdavProvider(at.url, at.account, clock=lambda: time.time_ns() + 30 * DAY * 10**9)
        with contextlib.suppress(ProviderRefused):  # the pinned tree is not complete
            await ahead.collect()
        assert (at.folder / "packs" / ".new-1-2").exists()  # it may be written now, by the server's clock
        await published(at.open(), OTHER)
        _age_one(at.folder / "packs" / ".new-1-2")
        await ahead.collect()
        assert await held(ahead)
        assert not list((at.folder / "packs").glob(".[nh]*-*")) and there.read_bytes() == b"newer"
        await ahead.close()

    run(body())


@pytest.mark.parametrize("marked", [True, False])
def test_hidden_last_pack_is_restored(at: StandIn, marked: bool) -> None:
    """No other file is newer."""

    async def body() -> None:
        await published(at.open())
        [pack] = (at.folder / "packs").glob("*.car")
        pack.rename(pack.with_name(f".new-{pack.name}"))
        if marked:
            pack.with_suffix(GOING).write_text('{"since":1}')
        _age(at)
        provider = at.open()
        await provider.collect()
        assert await held(provider) and await held(at.mounted())
        await provider.close()

    run(body())


_KILLED = """
import asyncio, os, sys
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.webdav import WebdavProvider
send = Http._send
async def killed(self, request, *others):
    answer = await send(self, request, *others)
    if request.method == "MOVE" and "car" in request.url.name:
        os._exit(9)
    return answer
Http._send = killed
url, user, password = sys.argv[1:]
asyncio.run(WebdavProvider(url, {"webdav_user": user, "webdav_password": password}).collect())
"""


@pytest.mark.parametrize("mounted", [True, False])
def test_pack_of_a_pinned_tree_that_a_killed_collection_hid_is_restored(at: StandIn, mounted: bool) -> None:
    """The pinning device saw the blocks before the mark."""

    async def body() -> None:
        await _useless(at)
        _age(at)
        provider = at.open()
        await provider.collect()
        _date_marks_back(at)
        _age(at)
        command = [sys.executable, "-c", _KILLED, at.url, *at.account.values()]
        child = await asyncio.create_subprocess_exec(*command)
        assert await child.wait() == 9 and _packs(at) == 1
        await provider.pin(OTHER.cid, "n")
        await (at.mounted() if mounted else provider).collect()
        assert await held(provider) and await held(provider, OTHER)
        assert not list((at.folder / "packs").glob(".[nh]*-*"))
        await provider.close()

    run(body())


def test_hidden_pack_is_restored_by_a_device_that_mounts_the_folder(at: StandIn) -> None:
    async def body() -> None:
        await published(at.open())
        [pack] = (at.folder / "packs").glob("*.car")
        pack.rename(pack.with_name(f".new-{pack.name}"))  # a collection over the network was killed
        there = pack.with_name(f"{hashlib.sha256(b'newer').hexdigest()}.car")
        there.write_bytes(b"newer")
        there.with_name(f".new-{there.name}").write_bytes(b"older")
        pack.with_name(".new-1-2").write_bytes(b"unfinished")
        _age(at)
        await at.mounted().collect()
        assert await held(at.mounted()) and await held(at.open())
        assert not list((at.folder / "packs").glob(".[nh]*-*")) and there.read_bytes() == b"newer"

    run(body())


def test_merged_packs_stay_when_the_server_lost_the_new_one(
    at: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server confirms the upload but stores other bytes."""
    monkeypatch.setattr("ipfsmem_providers.remote.provider.RemotePacks.max_packs", 4)
    trees = [build_tree({f"{number}": bytes([number]) * 500}) for number in range(6)]
    spoilt = list[str]()

    async def spoils(request: web.Request) -> web.StreamResponse:
        file = at.server._path(request.raw_path)
        if file.stat().st_size > 1_200 and request.headers["Destination"].endswith(".car"):
            spoilt.append(file.name)
            file.write_bytes(bytes(file.stat().st_size))
        return await at.server._handle(request)

    async def body() -> None:
        at.server.faults.add("MOVE", ".*", spoils, times=-1)
        provider = at.open()
        for tree in trees:
            await published(provider, tree)
        assert spoilt
        for tree in trees:
            assert await held(provider, tree)
        await provider.close()

    run(body())


def test_future_file_date_does_not_age_other_files(at: StandIn) -> None:
    """The device's clock and a foreign file's date are ahead."""

    async def body() -> None:
        await published(at.open())
        unfinished, other = at.folder / "packs" / ".new-1-2", at.folder / "packs" / "others.txt"
        for path in (unfinished, other):
            path.write_bytes(b"unfinished")
        then = time.time() + 30 * DAY
        os.utime(other, (then, then))
        ahead = WebdavProvider(at.url, at.account, clock=lambda: time.time_ns() + 30 * DAY * 10**9)
        await ahead.collect()
        assert unfinished.exists()
        await ahead.close()

    run(body())


def test_merged_packs_are_read_by_both_kinds_of_access(
    at: StandIn, monkeypatch: pytest.MonkeyPatch, patient: None
) -> None:
    """Also over a slow connection: merges are not bound by a sync's time for packs without an index. Each
    request of a merge has the time that its pack needs."""
    monkeypatch.setattr("ipfsmem_providers.remote.provider.RemotePacks.max_packs", 4)
    clock = [0.0]

    async def slow(request: web.Request) -> web.StreamResponse:
        clock[0] += 25
        assert int(request.headers["Range"].rpartition("-")[2]) < 5_000
        return await at.server._handle(request)

    async def body() -> None:
        at.server.faults.add("GET", "car", slow, times=-1)
        provider = at.open({"company": True, "timing": Timing(now=lambda: clock[0])})
        trees = [build_tree({f"{number}": bytes([number]) * 500}) for number in range(6)]
        for tree in trees:
            await published(provider, tree)
        assert _packs(at) <= 5 and clock[0] > 100 and provider.unread() == []
        for tree in trees:
            assert await held(provider, tree) and await held(at.mounted(), tree)
        await provider.close()

    run(body())


def test_hidden_name_of_a_late_rename_is_occupied(at: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that executes the rename late would hide the new pack."""

    async def body() -> None:
        provider = at.open()
        tree = build_tree({"a.md": b"put again"})
        await provider.put_car(tree.cid, tree.blocks, name="n")
        [pack] = (at.folder / "packs").glob("*.car")
        os.utime(pack, (time.time() - 2 * 86_400,) * 2)
        remote = provider._remote
        request = remote._http.request  # type: ignore[attr-defined]
        asked: list[tuple[str, bool]] = []

        async def lost(method: str, url: str, **how: Any) -> Any:
            target = (how.get("headers") or {}).get("Destination", "")
            if method == "MOVE" and ".hidden-" in target and url.endswith(f"/{pack.name}"):
                asked.append((target.rpartition("/")[2], how["idempotent"]))
                if len(asked) == 1:
                    raise ProviderUnavailable("no answer")
            return await request(method, url, **how)

        with monkeypatch.context() as patch:
            patch.setattr(remote._http, "request", lost)  # type: ignore[attr-defined]
            await provider.put_car(tree.cid, tree.blocks, name="n")
        (first, first_again), (second, second_again) = asked
        assert first != second and not first_again and not second_again
        assert pack.with_name(first).read_bytes() == pack.read_bytes()
        assert not pack.with_name(second).exists()
        await provider.close()

    run(body())


def test_occupying_a_hidden_name_replaces_no_file(at: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        provider = at.open()
        tree = build_tree({"a.md": b"put again"})
        await provider.put_car(tree.cid, tree.blocks, name="n")
        [pack] = (at.folder / "packs").glob("*.car")
        sound = pack.read_bytes()
        pack.write_bytes(b"of an earlier device")
        remote = provider._remote
        request = remote._http.request  # type: ignore[attr-defined]
        late: list[str] = []

        async def lost(method: str, url: str, **how: Any) -> Any:
            target = (how.get("headers") or {}).get("Destination", "").rpartition("/")[2]
            if method == "MOVE" and ".hidden-" in target and not late:
                late.append(target)
                raise ProviderUnavailable("no answer")
            if method == "PUT" and late and pack.exists() and not pack.with_name(late[0]).exists():
                pack.rename(pack.with_name(late[0]))
            return await request(method, url, **how)

        monkeypatch.setattr(remote._http, "request", lost)  # type: ignore[attr-defined]
        await provider.put_car(tree.cid, tree.blocks, name="n")
        assert pack.read_bytes() == sound
        assert pack.with_name(late[0]).read_bytes() == b"of an earlier device"
        assert not list(pack.parent.glob(".new-*"))
        await provider.close()

    run(body())


@pytest.mark.parametrize("kind", ["single", "list"])
def test_pin_of_a_listed_root_reads_its_file_once(at: StandIn, kind: str) -> None:
    async def body() -> None:
        first = at.open()
        tree = build_tree({"a.md": b"pinned"})
        await first.put_car(tree.cid, tree.blocks, name="n")
        await first.pin(tree.cid, "n")
        await first.close()
        if kind == "list":
            [single] = (at.folder / "pins").iterdir()
            data = single.read_bytes() + NEWLINE
            single.unlink()
            single.with_name(f"{hashlib.sha256(data).hexdigest()}.pins").write_bytes(data)
        cache = b""
        for process in range(2):
            provider = at.open()
            provider.begin_snapshot(cache)
            await provider.pins("n")
            at.server.requests.clear()
            await provider.pin(tree.cid, "n")
            assert at.server.requests == {"PROPFIND": 1, "GET": 1}
            cache = provider.end_snapshot()
            await provider.close()
            reader = at.open()
            reader.begin_snapshot(cache)
            at.server.requests.clear()
            assert [pin.cid for pin in await reader.pins("n")] == [tree.cid], process
            assert "GET" not in at.server.requests
            await reader.close()

    run(body())


@pytest.mark.parametrize("comes_back", [True, False])
def test_pack_hidden_by_a_repeated_rename_is_not_counted_as_stored(
    at: StandIn, monkeypatch: pytest.MonkeyPatch, comes_back: bool
) -> None:
    """A proxy repeats the rename as soon as the hidden name is free."""

    async def body() -> None:
        provider = at.open()
        tree = build_tree({"a.md": b"put again"})
        await provider.put_car(tree.cid, tree.blocks, name="n")
        [pack] = (at.folder / "packs").glob("*.car")
        os.utime(pack, (time.time() - 2 * DAY,) * 2)
        remote = provider._remote
        delete = remote.delete

        async def deleted(path: str, *, once: bool = False) -> None:
            await delete(path, once=once)
            if ".hidden-" in path:
                pack.rename(at.folder / path) if comes_back else pack.unlink()

        monkeypatch.setattr(remote, "delete", deleted)
        changed = pytest.raises(ProviderUnavailable, match="changed while")
        with contextlib.nullcontext() if comes_back else changed:
            await provider.put_car(tree.cid, tree.blocks, name="n")
        assert pack.exists() == comes_back
        await provider.close()

    run(body())
