"""The browser client's provider for WebDAV folders, in Node with Apache's mod_dav and with a faulty
server, shared with Python."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from aiohttp import web

from ipfsmem.content.car import read_car
from ipfsmem.files.static_page import write_static_page
from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from tests.interop.counterparts import built_page
from tests.interop.test_webdav_servers import webdav_at_apache
from tests.servers.dav import PASSWORD, USER
from tests.support.alone_lab import Page, hosted, played
from tests.support.device_lab import load
from tests.support.patience import PATIENCE
from tests.support.web_lab import WALLET, Client, ClientError, WebDevice, by_wallet, web_client, words_of
from tests.unit.providers.dav_lab import DavFolder, StandIn, dav

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TOKEN = f"{USER}:{PASSWORD}"


@pytest.fixture
def apache(tmp_path: Path) -> Iterator[DavFolder]:
    """A folder at Apache."""
    with ExitStack() as stack:
        yield webdav_at_apache(tmp_path, stack)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[StandIn]:
    """A folder at a server whose faults the test chooses."""
    with dav(tmp_path / "server") as made:
        yield made


@pytest.fixture
def client() -> Iterator[Client]:
    """The client in Node."""
    with web_client() as one:
        yield one


def python_at(at: DavFolder, home: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A sealed vault that Python created and published at the folder."""
    monkeypatch.setenv("WEBDAV_USER", USER)
    monkeypatch.setenv("WEBDAV_PASSWORD", PASSWORD)
    made = Memory.create(
        "shared", "encrypted-ipfs", provider=f"webdav:{at.url}", unlock=WALLET, passphrase=False, home=Home(folder=home, label="python")
    )  # fmt: skip
    made.write("tone", "Be direct.\nAlways.")
    asyncio.run(made.sync())
    return made


def opened(client: Client, at: DavFolder, name: str, *, token: str | None = TOKEN) -> WebDevice:
    """A device of the client that the wallet admits."""
    how = by_wallet() if token is None else {"token": token, **by_wallet()}
    return client.open(name, "", at=[f"webdav:{at.url}"], **how)


def names_in(folder: Path) -> list[str]:
    """The names of all files of a vault's folder."""
    return sorted(name for part in ("packs", "pins", "names") for name in os.listdir(folder / part))


def test_client_and_python_share_a_folder_at_apache(
    apache: DavFolder, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = python_at(apache, tmp_path / "home", monkeypatch)
    device = opened(client, apache, "a")
    assert device.read("tone")["body"].startswith("Be direct.")
    for turn in range(3):
        device.write("tone", f"Be brief, {turn}.")
        device.write(f"new{turn}", "A text of the browser.")
        device.sync()
        asyncio.run(memory.sync())
        assert memory.read("tone").file.body == f"Be brief, {turn}."  # type: ignore[union-attr]
        memory.write("tone", f"Be kind, {turn}.")
        asyncio.run(memory.sync())
        device.sync()
        assert device.read("tone")["body"] == f"Be kind, {turn}."
    late = opened(client, apache, "late")
    assert {one["key"] for one in late.list()} == {"tone", "new0", "new1", "new2"}
    assert not [name for name in names_in(apache.folder) if name.startswith((".new-", ".hidden-"))]
    asyncio.run(memory.aclose())


def test_python_reads_from_disk_what_the_client_created(
    apache: DavFolder, client: Client, tmp_path: Path
) -> None:
    client.ask(
        {"do": "open", "as": "first", "label": "first", "at": [f"webdav:{apache.url}"], "token": TOKEN, "create": True, **by_wallet()}
    )  # fmt: skip
    device = client.device("first")
    device.write("tone", "Be direct.")
    device.sync()
    memory = load(tmp_path, "python", [apache.mounted()], wallet=WALLET)
    assert memory.read("tone").file.body == "Be direct."  # type: ignore[union-attr]


def test_folder_without_a_token_is_only_read(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    with pytest.raises(ClientError) as refused:
        opened(client, at, "a", token=None)
    assert "answered 401" in refused.value.hint
    with pytest.raises(ClientError, match="user and a password"):
        opened(client, at, "b", token="a word")


@pytest.mark.parametrize("address", ["http://nas.example/memory", "https://me:secret@nas.example/memory", "https://nas.example/m?x=1"])  # fmt: skip
def test_unusable_address_is_refused_without_its_password(client: Client, address: str) -> None:
    with pytest.raises(ClientError) as refused:
        client.open("a", "", at=[f"webdav:{address}"], token=TOKEN, **by_wallet())
    assert "secret" not in str(refused.value)


def test_truncated_list_is_an_error_and_not_an_empty_folder(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    before = names_in(at.folder)

    async def cut(request: web.Request) -> web.Response:
        whole = at.server._propfind(request, at.server._path(request.raw_path))
        return web.Response(status=207, text=str(whole.text)[:-30], content_type="application/xml")

    for folder in ("packs", "pins", "names"):
        at.server.faults.add("PROPFIND", f"/{folder}/$", cut, -1)
    device.write("tone", "Be brief.")
    with pytest.raises(ClientError) as refused:
        device.sync()
    assert "unusable list" in refused.value.hint
    assert set(before) <= set(names_in(at.folder))


def test_false_index_and_lost_pack_hide_no_other_text(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = python_at(at, tmp_path / "home", monkeypatch)
    for turn in range(4):
        memory.write(f"note{turn}", f"Text {turn}.")
        asyncio.run(memory.sync())
    asyncio.run(memory.aclose())
    packs = at.folder / "packs"
    indexes = sorted(packs.glob("*.idx"))
    assert len(indexes) > 2
    indexes[0].unlink()
    indexes[1].write_bytes(indexes[2].read_bytes())
    device = opened(client, at, "a")
    assert {one["key"] for one in device.list()} == {"tone", "note0", "note1", "note2", "note3"}


def test_server_without_ranges_behind_tls_with_unusual_renames_works(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at.server.ranges = False
    at.server.behind_tls = True
    at.server.prefix = "/behind/a/proxy"
    memory = python_at(at, tmp_path / "home", monkeypatch)
    device = opened(client, at, "a")
    device.write("tone", "Be brief.")
    device.sync()
    asyncio.run(memory.sync())
    assert memory.read("tone").file.body == "Be brief."  # type: ignore[union-attr]
    asyncio.run(memory.aclose())


def test_blocks_of_a_marked_pack_are_sent_again(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    root = device.sync()["root"]
    assert device.sync()["sentBlocks"] == 0
    packs = at.folder / "packs"
    for pack in packs.glob("*.car"):
        pack.with_suffix(".going").write_text('{"since":1}')
    # A list is reused for a moment.
    ends = time.monotonic() + PATIENCE
    while device.sync()["sentBlocks"] == 0:
        assert time.monotonic() < ends
        time.sleep(0.2)
    stays = [pack for pack in packs.glob("*.car") if not pack.with_suffix(".going").exists()]
    assert any(str(cid) == root for pack in stays for cid, _ in read_car(pack.read_bytes()))


def test_folder_in_place_of_a_pack_is_set_aside(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    real = at.server._move
    blocked: list[str] = []

    def move(request: web.Request, path: Path) -> web.Response:
        new = at.server._path(request.headers["Destination"])
        if new.suffix == ".car" and not new.name.startswith(".") and not blocked:
            blocked.append(new.name)
            (new / "mine").mkdir(parents=True)
        return real(request, path)

    at.server._move = move  # type: ignore[method-assign]
    device.write("tone", "Be brief.")
    device.sync()
    assert blocked and (at.folder / "packs" / blocked[0]).is_file()
    assert [one for one in (at.folder / "packs").iterdir() if (one / "mine").is_dir()]


def test_foreign_list_and_document_type_are_refused(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    texts = {
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><d:multistatus xmlns:d="DAV:"/>': "document type",
        '<multistatus xmlns="urn:other"/>': "not a list",
        '<d:multistatus xmlns:d="DAV:"><d:response><d:href>/elsewhere/file</d:href></d:response></d:multistatus>': "another folder",
        '<d:multistatus xmlns:d="DAV:"></d:multistatus>': "without their folder",
        "": "unusable list",
    }
    for text, problem in texts.items():

        async def answer(request: web.Request, text: str = text) -> web.Response:
            return web.Response(status=207, text=text, content_type="application/xml")

        at.server.faults.add("PROPFIND", "/names/$", answer, 1)
        with pytest.raises(ClientError) as refused:
            device.sync()
        assert problem in refused.value.hint


@pytest.mark.parametrize("allowed", [True, False])
def test_page_of_another_origin_uses_the_folder_only_if_allowed(
    allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        at = webdav_at_apache(tmp_path, stack, for_pages=allowed)
        memory = python_at(at, tmp_path / "home", monkeypatch)
        folder = tmp_path / "page"
        write_static_page(folder, [f"webdav:{at.url}"], built_page())

        async def play(page: Page) -> None:
            async with hosted(folder) as address:
                await page.goto(address)
                await page.fill("[name=words]", words_of(memory))
                await page.fill("[aria-label='Token for writing to provider 1']", TOKEN)
                await page.click("button:has-text('Open with the recovery phrase')")
                if not allowed:
                    await page.wait_for_selector(".problem:has-text('CORS')")
                    return
                await page.click(".row:has-text('tone')")
                await page.click("button:has-text('Edit')")
                before = {path.name for path in (at.folder / "names").iterdir()}
                await page.fill("textarea", "Be kind.")
                await page.click("button:has-text('Save')")
                await page.wait_for_selector(
                    "button:has-text('Edit')"
                )  # saved: before, the page says that all is published
                await page.evaluate("location.hash = '#/vault'")
                await page.click("button:has-text('Sync now')")
                async with asyncio.timeout(PATIENCE):
                    while not {path.name for path in (at.folder / "names").iterdir()} - before:
                        await asyncio.sleep(0.05)
                await page.wait_for_selector("text=Everything here is published.")

        asked = played(play)
        assert all("localhost" in one or one.startswith((at.url, "data:", "blob:")) for one in asked), asked
        asyncio.run(memory.sync())
        assert memory.read("tone").file.body == ("Be kind." if allowed else "Be direct.\nAlways.")  # type: ignore[union-attr]
        asyncio.run(memory.aclose())


def records_of(at: StandIn) -> list[Path]:
    """The files of records, the newest last."""
    return sorted((at.folder / "names").iterdir(), key=lambda path: path.stat().st_mtime_ns)


def test_damaged_newest_record_is_rewritten_and_no_older_one_removed(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    device.write("tone", "Be brief.")
    device.sync()
    older = {path.name: path.read_bytes() for path in (at.folder / "names").iterdir()}
    device.write("tone", "Be kind.")
    device.sync()
    [newest] = [path for path in (at.folder / "names").iterdir() if path.name not in older]
    [lesser] = [name for name in older if not (at.folder / "names" / name).exists()]
    newest.write_bytes(bytes(newest.stat().st_size))
    (at.folder / "names" / lesser).write_bytes(older[lesser])
    # The page that wrote it has read it; a new page reads the folder.
    client.ask({"do": "open", "as": "b", "on": "a", "at": [f"webdav:{at.url}"], "token": TOKEN, **by_wallet()})  # fmt: skip
    client.device("b").sync()
    assert opened(client, at, "late").read("tone")["body"] == "Be kind."


def test_unreadable_record_is_reported(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    device.sync()
    for path in records_of(at):
        (path.parent / f"{path.name.partition('.')[0]}.{'0' * 16}.ipns-record").mkdir()
    ends = time.monotonic() + PATIENCE
    while not any("newer version may be there" in notice["text"] for notice in device.sync()["notices"]):
        assert time.monotonic() < ends
        time.sleep(0.2)


def test_listed_files_that_disappeared_are_listed_again(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    for folder in ("names", "packs"):
        at.server.faults.answer("GET", f"/{folder}/", 404, times=1)
    assert opened(client, at, "a").read("tone")["body"].startswith("Be direct.")


def test_refused_index_or_record_hides_no_other_file(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = python_at(at, tmp_path / "home", monkeypatch)
    for turn in range(3):
        memory.write(f"note{turn}", f"Text {turn}.")
        asyncio.run(memory.sync())
    asyncio.run(memory.aclose())
    index = sorted((at.folder / "packs").glob("*.idx"))[0].name
    at.server.faults.answer("GET", f"/packs/{index}$", 403, times=-1)
    device = opened(client, at, "a")
    assert {one["key"] for one in device.list()} == {"tone", "note0", "note1", "note2"}


def test_blocks_noted_as_lost_are_sent_again_with_any_line_ending(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    device.sync()
    for pack in (at.folder / "packs").glob("*.car"):
        cids = [str(cid) for cid, _ in read_car(pack.read_bytes())]
        pack.with_suffix(".lost").write_bytes("\r\n".join(["no CID", *cids, ""]).encode())
    ends = time.monotonic() + PATIENCE
    while device.sync()["sentBlocks"] == 0:
        assert time.monotonic() < ends
        time.sleep(0.2)


@pytest.mark.parametrize("status", [502, 403, 409])
def test_damaged_pack_stays_noted_when_the_server_refuses_to_rename(
    status: int, at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    device.sync()
    notes = []
    for pack in (at.folder / "packs").glob("*.car"):
        cids = [str(cid) for cid, _ in read_car(pack.read_bytes())]
        notes.append(pack.with_suffix(".lost"))
        notes[-1].write_text("\n".join([*cids, ""]))
        pack.write_bytes(bytes(pack.stat().st_size))
    at.server.faults.answer("MOVE", "/packs/", status, times=-1)
    refused: list[str] = []
    ends = time.monotonic() + PATIENCE
    while not refused:
        refused = [one["text"] for one in device.sync()["notices"] if f"answered {status}" in one["text"]]
        assert time.monotonic() < ends
        time.sleep(0.2)
    assert all(note.exists() for note in notes)
    assert not [name for name in names_in(at.folder) if name.startswith((".new-", ".hidden-"))]


@pytest.mark.parametrize(
    "address", ["webdav:HTTPS://me:secret@nas.example/m", "webdav:me:secret@nas.example/m"]
)
def test_address_in_any_form_is_refused_without_its_password(client: Client, address: str) -> None:
    with pytest.raises(ClientError) as refused:
        client.open("a", "", at=[address], token=TOKEN, **by_wallet())
    assert "secret" not in str(refused.value) + refused.value.hint


def test_password_echoed_by_a_server_is_not_shown(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")

    async def echo(request: web.Request) -> web.Response:
        return web.Response(status=500, text=f"you sent {request.headers['Authorization']}")

    at.server.faults.add("PROPFIND", "/names/$", echo, -1)
    time.sleep(2.1)  # a list is reused for two seconds
    with pytest.raises(ClientError) as refused:
        device.sync()
    assert "you sent" in refused.value.hint and "Basic" not in refused.value.hint


@pytest.mark.parametrize("answer", ["missing", "page"])
def test_no_second_vault_is_created_where_listed_files_cannot_be_read(
    answer: str, at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    status, text = (404, "") if answer == "missing" else (200, "maintenance")
    at.server.faults.answer("GET", "/", status, text, times=-1)
    with pytest.raises(ClientError) as refused:
        client.ask(
            {"do": "open", "as": "a", "label": "a", "at": [f"webdav:{at.url}"], "token": TOKEN, "create": True, **by_wallet()}
        )  # fmt: skip
    assert "nothing was made" in str(refused.value) or "names" in str(refused.value)


@pytest.mark.parametrize("kept", ["single", "list"])
def test_no_second_vault_is_created_while_all_pins_are_hidden(
    kept: str, at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    pins = at.folder / "pins"
    for path in (at.folder / "names").iterdir():
        path.unlink()
    if kept == "list":
        lines = sorted(path.read_bytes().rstrip(b"\n") + b"\n" for path in pins.glob("*.json"))
        for path in pins.glob("*.json"):
            path.unlink()
        data = b"".join(lines)
        (pins / f"{hashlib.sha256(data).hexdigest()}.pins").write_bytes(data)
    for path in list(pins.iterdir()):
        path.rename(path.with_name(f".hidden-0123456789abcdef-{path.name}"))
    with pytest.raises(ClientError, match="nothing was made"):
        client.ask(
            {"do": "open", "as": "a", "label": "a", "at": [f"webdav:{at.url}"], "token": TOKEN, "create": True, **by_wallet()}
        )  # fmt: skip


def test_file_that_a_server_accepts_and_does_not_store_is_an_error(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    device.sync()
    before = {path.name: path.read_bytes() for path in (at.folder / "names").iterdir()}

    async def empty(request: web.Request) -> web.Response:
        await request.read()
        at.server._path(request.raw_path).write_bytes(b"")
        return web.Response(status=201)

    at.server.faults.add("PUT", "/names/", empty, -1)
    device.write("tone", "Be brief.")
    report = device.sync()
    assert any("did not store" in notice["text"] for notice in report["notices"])
    after = {path.name: path.read_bytes() for path in (at.folder / "names").iterdir()}
    assert all(after.get(name) == data for name, data in before.items())
    at.server.faults.clear()
    device.sync()
    assert opened(client, at, "late").read("tone")["body"] == "Be brief."


def test_record_truncated_after_a_read_is_rewritten(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    device.write("tone", "Be brief.")
    device.sync()
    device.sync()
    for path in records_of(at):
        path.write_bytes(b"")
    ends = time.monotonic() + PATIENCE
    while not any(path.stat().st_size for path in records_of(at)):
        with contextlib.suppress(ClientError):
            device.sync()
        assert time.monotonic() < ends
        time.sleep(0.2)


def send_again(device: WebDevice, at: StandIn) -> str:
    """Mark all blocks as lost, and sync until they are sent again. Return the root."""
    for pack in (at.folder / "packs").glob("*.car"):
        pack.with_suffix(".lost").write_text("".join(f"{cid}\n" for cid, _ in read_car(pack.read_bytes())))
    ends = time.monotonic() + PATIENCE
    while (report := device.sync())["sentBlocks"] == 0:
        assert time.monotonic() < ends
        time.sleep(0.2)
    return str(report["root"])


@pytest.mark.parametrize("lost", ["list", "pin"])
def test_pin_of_a_lost_file_is_restored(
    lost: str, at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    device.write("tone", "Be brief.")
    root = device.sync()["root"]
    pins = at.folder / "pins"
    [held] = pins.glob(f"{root}.*.json")
    name = json.loads(held.read_bytes())["name"]
    if lost == "list":
        lines = sorted(path.read_bytes().rstrip(b"\n") + b"\n" for path in pins.glob("*.json"))
        for path in pins.glob("*.json"):
            path.unlink()
        held = pins / f"{hashlib.sha256(b''.join(lines)).hexdigest()}.pins"
        held.write_bytes(b"".join(lines))
    assert send_again(device, at) == root  # the file is read, and cached
    before = held.stat()
    held.write_bytes(b"\0" * before.st_size)
    os.utime(held, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert send_again(device, at) == root
    [single] = pins.glob(f"{root}.*.json")
    assert json.loads(single.read_bytes())["name"] == name
    assert root in [str(pin.cid) for pin in asyncio.run(at.mounted().pins(name))]


def is_hiding(request: web.Request) -> bool:
    """Return whether a MOVE hides a pack."""
    return request.method == "MOVE" and ".hidden-" in request.headers["Destination"] and request.path.endswith(".car")  # fmt: skip


def sound_packs(at: StandIn) -> list[Path]:
    """Return the packs whose bytes match their names."""
    packs = (at.folder / "packs").glob("*.car")
    return [pack for pack in packs if hashlib.sha256(pack.read_bytes()).hexdigest() == pack.stem]


def test_rename_carried_out_after_its_lost_answer_hides_no_new_pack(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    send_again(device, at)
    late: list[tuple[Path, Path]] = []

    async def lost(request: web.Request) -> web.StreamResponse:
        if late or not is_hiding(request):
            return await at.server._handle(request)
        late.append((at.server._path(request.raw_path), at.server._path(request.headers["Destination"])))
        return web.Response(status=504)

    at.server.faults.add("MOVE", "/packs/", lost, -1)
    send_again(device, at)
    [(pack, aside)] = late
    if not aside.exists():  # as with Overwrite: F
        pack.replace(aside)
    assert pack in sound_packs(at)


def test_repeated_rename_that_hides_a_new_pack_is_noticed(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    send_again(device, at)
    hides: list[tuple[Path, Path]] = []
    repeated: list[Path] = []

    async def repeats(request: web.Request) -> web.StreamResponse:
        if is_hiding(request):
            hides.append((at.server._path(request.raw_path), at.server._path(request.headers["Destination"])))
        answer = await at.server._handle(request)
        if ".hidden-" in request.path and hides and not repeated:  # the hidden name is free again
            pack, aside = hides[0]
            pack.replace(aside)
            repeated.append(pack)
        return answer

    at.server.faults.add("MOVE", "/packs/", repeats, -1)
    send_again(device, at)
    assert repeated and repeated[0] in sound_packs(at)


def test_hidden_file_that_could_not_be_removed_is_removed_later(
    at: StandIn, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(python_at(at, tmp_path / "home", monkeypatch).aclose())
    device = opened(client, at, "a")
    send_again(device, at)
    at.server.faults.answer("MOVE", "/packs/.hidden-", 503, times=1)
    send_again(device, at)
    assert [name for name in names_in(at.folder) if name.startswith(".hidden-")]
    device.write("tone", "Be kind.")
    device.sync()
    assert not [name for name in names_in(at.folder) if name.startswith((".new-", ".hidden-"))]
