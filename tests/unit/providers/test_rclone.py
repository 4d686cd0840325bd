"""The rclone provider: one folder by rclone and on its disk, the life of the program, its messages, hostile addresses."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from ipfsmem_providers.rclone import RcloneProvider
from ipfsmem_providers.rclone.address import parse
from ipfsmem_providers.rclone.errors import explain

from ipfsmem.content.tree import BuiltTree, build_tree
from ipfsmem.errors import ConfigError, IncompleteError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import Provider, lasting_spec, open_provider, shown_spec
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.servers.threaded import serve
from tests.support.device_lab import load
from tests.support.hints import Refused, hinted
from tests.support.patience import PATIENCE
from tests.unit.providers.rclone_lab import RcloneFolder, configured, rclone

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x2f"))
INSTALL = "Install rclone 1.60 or newer (https://rclone.org/install), and create a remote: rclone config"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[RcloneFolder]:
    with rclone(tmp_path) as made:
        yield made


def tree(text: str) -> BuiltTree:
    return build_tree({"a.ipm": text.encode() * 200, "b.ipm": os.urandom(900)})


async def store(provider: Provider, made: BuiltTree) -> None:
    await provider.put_car(made.cid, made.blocks, name="n")
    await provider.pin(made.cid, "n")


async def holds(provider: Provider, made: BuiltTree) -> bool:
    cids = sorted({cid for cid, _ in made.blocks}, key=str)
    return {pin.cid for pin in await provider.pins("n")} >= {made.cid} and (
        await provider.get_blocks(cids)
    ).keys() == {*cids}


def test_folder_is_shared_by_rclone_and_the_disk(at: RcloneFolder) -> None:
    async def run() -> None:
        here, there = at.mounted(), at.open()
        one, two = tree("one"), tree("two")
        await store(here, one)
        await store(there, two)
        for provider in (here, there, at.open(), at.mounted()):
            assert await holds(provider, one) and await holds(provider, two)
            await provider.close()

    asyncio.run(run())
    assert not list(at.folder.rglob(".[nh]*-*"))


def test_two_devices_share_a_vault(at: RcloneFolder, tmp_path: Path) -> None:
    a = load(tmp_path, "a", [at.open()], wallet=WALLET)
    a.write("note", "from a")
    asyncio.run(a.sync())
    b = load(tmp_path, "b", [at.mounted()], wallet=WALLET)
    assert b.read("note").file.body == "from a"  # type: ignore[union-attr]
    b.write("note", "from b")
    asyncio.run(b.sync())
    asyncio.run(a.sync())
    assert a.read("note").file.body == "from b"  # type: ignore[union-attr]


def test_missing_folder_is_reported_and_not_created(at: RcloneFolder) -> None:
    at.folder.rmdir()
    with pytest.raises(ProviderUnavailable, match="the folder is not there") as raised:
        asyncio.run(at.open().pins("n"))
    hinted("Create it: rclone mkdir REMOTE:PATH. Or correct the address.", raised.value.hint)
    with pytest.raises(ProviderUnavailable, match="the folder is not there"):
        asyncio.run(store(at.open(), tree("one")))
    assert not at.folder.exists()
    subprocess.run(["rclone", "mkdir", at.address], check=True)
    assert asyncio.run(at.open().pins("n")) == []


def test_unknown_remote_is_reported(at: RcloneFolder) -> None:
    with pytest.raises(ProviderRefused, match="rclone has no remote of this name") as raised:
        asyncio.run(RcloneProvider("other:memory").pins("n"))
    assert raised.value.hint == "Choose one of: rclone listremotes. Or create it: rclone config"


def answers(url: str) -> bool:
    """Return whether rclone is running: it refuses requests without its password."""
    try:
        urllib.request.urlopen(urllib.request.Request(f"{url}core/version", method="POST"))
    except urllib.error.HTTPError as error:
        return error.code == 401 and "rclone" in error.headers.get("WWW-Authenticate", "")
    except OSError:
        return False
    return False


def test_program_ends_with_its_process_when_killed(at: RcloneFolder) -> None:
    script = (
        "import asyncio, sys, time\n"
        "from ipfsmem_providers.rclone import RcloneProvider\n"
        "provider = RcloneProvider(sys.argv[1])\n"
        "asyncio.run(provider.pins('n'))\n"
        "print(provider._remote._server.url(), flush=True)\n"
        "time.sleep(3600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, at.address], stdout=subprocess.PIPE)
    assert process.stdout is not None
    url = process.stdout.readline().decode().strip()
    assert answers(url)
    process.kill()
    process.wait()
    process.stdout.close()
    until = time.monotonic() + PATIENCE
    while answers(url):
        assert time.monotonic() < until, "rclone outlives its process"
        time.sleep(0.02)


def test_file_is_replaced_and_a_folder_in_its_place_is_renamed(at: RcloneFolder) -> None:
    async def run() -> None:
        files = at.open()._remote
        await files.put("names/one", b"first")
        await files.put("names/one", b"the second")
        assert (await files.read("names/one", 0, 99)).data == b"the second"
        (at.folder / "names" / "two").mkdir()
        (at.folder / "names" / "two" / "inside").write_bytes(b"kept")
        await files.put("names/two", b"a file")
        assert (await files.list_folder("names")).files.keys() == {"one", "two"}
        with pytest.raises(FileExistsError):
            await files.move("names/one", "names/two")
        with pytest.raises(FileNotFoundError):
            await files.delete("names/three")
        await files.close()

    asyncio.run(run())
    (aside,) = (at.folder / "names").glob("two.aside-*")
    assert (aside / "inside").read_bytes() == b"kept"


def test_program_that_ended_is_started_again(at: RcloneFolder) -> None:
    async def run() -> None:
        provider = at.open()
        made = tree("x")
        await store(provider, made)
        provider._remote._server.close()  # type: ignore[attr-defined]
        assert await holds(provider, made)
        await provider.close()

    asyncio.run(run())


def test_disruptive_rclone_settings_are_ignored(at: RcloneFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RCLONE_DRY_RUN": "true", "RCLONE_EXCLUDE": "*", "RCLONE_LOG_FILE": "/dev/null", "RCLONE_RC_ADDR": "127.0.0.1:1"}.items():  # fmt: skip
        monkeypatch.setenv(name, value)

    async def run() -> None:
        provider, made = at.open(), tree("x")
        await store(provider, made)
        assert await holds(provider, made) and await holds(at.mounted(), made)
        await provider.close()

    asyncio.run(run())


def test_foreign_request_to_the_port_is_refused(at: RcloneFolder) -> None:
    async def run() -> None:
        provider = at.open()
        await provider.pins("n")
        url = provider._remote._server.url()  # type: ignore[attr-defined]
        assert url.startswith("http://127.0.0.1:")
        for path in ("core/version", "%5Bnas:%5D/my%20memory"):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(urllib.request.Request(url + path, method="POST"))
        await provider.close()
        with pytest.raises(OSError):
            urllib.request.urlopen(url)

    asyncio.run(run())


def test_remote_without_safe_removal_merges_and_removes_nothing(at: RcloneFolder) -> None:
    async def run() -> None:
        provider, here = at.open(), at.mounted()
        trees = [tree(str(number)) for number in range(40)]
        for made in trees:
            await provider.put_car(made.cid, made.blocks, name="n")
        await provider.pin(trees[0].cid, "n")
        packs = {path.name for path in (at.folder / "packs").glob("*.car")}
        assert len(packs) == len(trees)
        for path in (at.folder / "packs").iterdir():
            os.utime(path, (1, 1))  # dated by the uploader's clock
        with pytest.raises(ProviderRefused, match=r"[\d,]+ bytes that no version needs were not freed"):
            await provider.collect()
        assert {path.name for path in (at.folder / "packs").glob("*.car")} == packs
        assert not list((at.folder / "packs").glob("*.going"))
        assert await here.collect() > 0  # as a device that mounts the folder does
        marks = list((at.folder / "packs").glob("*.going"))
        for path in marks:
            path.write_text('{"since":1}')
            os.utime(path, (1, 1))
        await provider.put_car(trees[1].cid, trees[1].blocks, name="n")
        assert marks and all(path.with_suffix(".car").exists() for path in marks)
        for provider_ in (provider, here):
            await provider_.close()

    asyncio.run(run())


def test_compact_reports_that_a_remote_cannot_free_space(at: RcloneFolder, tmp_path: Path) -> None:
    a = load(tmp_path, "a", [at.open()], wallet=WALLET)
    a.write("note", "first")
    asyncio.run(a.sync())
    asyncio.run(a.maintenance.compact(only=("versions",))).raise_if_incomplete()  # all packs are needed
    left = tree("of an upload that was never pinned")
    asyncio.run(at.mounted().put_car(left.cid, left.blocks, name="n"))
    for path in (at.folder / "packs").iterdir():
        os.utime(path, (1, 1))
    done = asyncio.run(a.maintenance.compact(only=("versions",)))
    assert done.versions is not None
    assert "were not freed" in done.versions.problems["rclone:nas:my memory"]
    with pytest.raises(IncompleteError, match="some data could not be deleted") as raised:
        done.raise_if_incomplete()
    hinted(
        "They are freed by a device that mounts the folder, and has its path as a provider.",
        raised.value.hint,
    )
    a.close()
    here = load(tmp_path, "b", [at.mounted()], wallet=WALLET)
    asyncio.run(here.sync())
    there = asyncio.run(here.maintenance.compact(only=("versions",)))
    there.raise_if_incomplete()
    assert there.versions is not None and sum(there.versions.freed.values()) > 0
    here.close()


def test_link_in_the_folder_is_reported(at: RcloneFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RCLONE_COPY_LINKS", "true")

    async def run() -> None:
        provider = at.open()
        await store(provider, tree("x"))
        name = f"{'ab' * 32}.pins"
        (at.folder / "pins" / name).symlink_to("/nonexistent/elsewhere")
        await provider.pins("n")
        assert any(name in one for one in provider.unread())
        await provider.close()

    asyncio.run(run())


@pytest.mark.parametrize("lines", ["", "[up]\ntype = alias\nremote = cached:x\n"])
def test_remote_with_a_cache_is_refused(tmp_path: Path, at: RcloneFolder, lines: str) -> None:
    conf = f"[nas]\ntype = local\n[cached]\ntype = cache\nremote = nas:{tmp_path}\n{lines}"
    told = "the remote cached is of type cache, which hides newer files"
    with configured(tmp_path, conf), pytest.raises(ProviderRefused, match=told) as raised:
        asyncio.run(RcloneProvider("up:memory" if lines else "cached:memory").pins("n"))
    hinted("Use the remote that it caches.", raised.value.hint)


def test_duplicate_folder_names_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote like Google Drive, where two devices created a folder at once."""
    folders, cleared = ["packs", "pins"], []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked = await request.json() if request.content_type == "application/json" else {}
        if request.path == "/operations/list":
            return web.json_response({"list": [{"Name": name, "Size": -1, "IsDir": True} for name in folders if not asked["remote"]]})  # fmt: skip
        if request.path == "/fscache/clear":
            cleared.append(asked)
        if request.path in ("/operations/uploadfile", "/operations/movefile"):
            folders.append("pins")
        return web.json_response(
            {
                "/core/version": {"version": "v1.60.1", "decomposed": [1, 60, 1]},
                "/operations/fsinfo": {"Features": {"DuplicateFiles": True}},
                "/operations/stat": {"item": None},
            }.get(request.path, {})
        )

    def app() -> web.Application:
        made = web.Application()
        made.router.add_route("*", "/{tail:.*}", handle)
        return made

    with serve(app) as url:
        fake(tmp_path, monkeypatch, f"echo 'Serving remote control on {url}/' >&2; exec sleep 3600")

        async def run() -> None:
            provider = RcloneProvider("drive:memory")
            assert await provider.pins("n") == []
            with pytest.raises(ProviderRefused, match="has two folders pins, of which a device sees one") as raised:  # fmt: skip
                await provider._remote.put("pins/one", b"x")
            hinted(
                "Merge them: rclone dedupe --dedupe-mode skip REMOTE:PATH. Then sync again.",
                raised.value.hint,
            )
            provider.begin_snapshot(b"")
            with pytest.raises(ProviderRefused, match="has two folders pins"):
                await provider.pins("n")
            assert len(cleared) == 2
            folders[:] = ["packs", "pins"]
            assert await provider.pins("n") == []
            await provider.close()

        asyncio.run(run())


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the child")
@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_program_ends_with_its_supervisor(at: RcloneFolder, ends: signal.Signals) -> None:
    async def run() -> None:
        provider = at.open()
        await provider.pins("n")
        server = provider._remote._server  # type: ignore[attr-defined]
        url = server.url()
        assert answers(url)
        os.kill(server._process.pid, ends)
        until = time.monotonic() + PATIENCE
        while answers(url) or server._process.poll() is None:
            assert time.monotonic() < until, "rclone outlives its keeper"
            await asyncio.sleep(0.02)
        assert await provider.pins("n") == []
        await provider.close()

    asyncio.run(run())


def test_false_answers_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program in place of rclone: more bytes than requested, fewer, others, too many files."""
    part = {"Content-Range": "bytes 0-9/10"}

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.path == "/core/version":
            return web.json_response({"version": "v1.60.1", "decomposed": [1, 60, 1]})
        if request.path in ("/fscache/clear", "/operations/fsinfo"):
            return web.json_response({})
        if request.path == "/operations/list":
            return web.json_response({"list": [{"Name": f"{n}", "Size": 1} for n in range(100_001)]})
        kind = request.path.rpartition("/")[2]
        return {
            "long": lambda: web.Response(status=206, body=b"x" * 11, headers=part),
            "short": lambda: web.Response(status=206, body=b"x" * 9, headers=part),
            "page": lambda: web.Response(text="<html>portal</html>"),
            "odd": lambda: web.Response(status=206, body=b"x" * 10, headers={"Content-Range": "bytes"}),
        }[kind]()

    def app() -> web.Application:
        made = web.Application()
        made.router.add_route("*", "/{tail:.*}", handle)
        return made

    with serve(app) as url:
        fake(tmp_path, monkeypatch, f"echo 'Serving remote control on {url}/' >&2; exec sleep 3600")

        async def run() -> None:
            provider = RcloneProvider("nas:memory")
            files = provider._remote
            for kind in ("long", "short", "page", "odd"):
                with pytest.raises(ProviderError):
                    await files.read(f"packs/{kind}", 0, 10)
            with pytest.raises(ProviderRefused, match="lists more than 100,000 files"):
                await files.list_folder("packs")
            await provider.close()

        asyncio.run(run())


def fake(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put another program of this name in PATH."""
    program = folder / "bin" / "rclone"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


def test_missing_program_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="the rclone program is not installed") as raised:
        open_provider("rclone:nas:memory")
    hinted(
        "Install rclone 1.60 or newer (https://rclone.org/install), and create a remote: rclone config",
        raised.value.hint,
    )


def test_old_program_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, monkeypatch, "echo 'Error: unknown flag: --rc-serve' >&2; exit 1")
    with Refused(INSTALL):
        asyncio.run(RcloneProvider("nas:memory").pins("n"))


def test_program_that_ends_at_once_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, monkeypatch, "echo 'Failed to load config file: odd' >&2; exit 1")
    with pytest.raises(
        ProviderUnavailable, match="rclone failed \\(Failed to load config file: odd\\)"
    ) as raised:
        asyncio.run(RcloneProvider("nas:memory").pins("n"))
    hinted("Try again, or run: rclone lsf REMOTE:PATH", raised.value.hint)


def test_encrypted_configuration_is_reported(tmp_path: Path, at: RcloneFolder) -> None:
    with configured(tmp_path, f"# Encrypted rclone configuration File\n\nRCLONE_ENCRYPT_V0:\n{'A' * 80}\n"), pytest.raises(ProviderRefused, match="rclone's configuration is encrypted") as raised:  # fmt: skip
        asyncio.run(at.open().pins("n"))
    assert raised.value.hint == "Set RCLONE_CONFIG_PASS, or RCLONE_PASSWORD_COMMAND."


@pytest.mark.parametrize(
    ("said", "permanent", "hint"),
    [
        ("couldn't fetch token: invalid_grant", True, "Log in again: rclone config reconnect REMOTE:"),
        ("googleapi: Error 403: storageQuotaExceeded", False, "Free space there."),
        ("too_many_requests/..", False, "Try again, or run: rclone lsf REMOTE:PATH"),
        ("HTTP error 429 (Too Many Requests)", False, "Sync again in a while."),
        ("open /x: permission denied", True, "Check that the account may read and write the folder: rclone lsf REMOTE:PATH"),
        ("https://u:pw@host/ odd\x1b[2J", False, "Try again, or run: rclone lsf REMOTE:PATH"),
        ('Put "http://nas/packs/507403-429.car": dial tcp 10.4.0.3:403: connection refused', False, "Try again, or run: rclone lsf REMOTE:PATH"),
        ("failed to open a/401.car: EOF", False, "Try again, or run: rclone lsf REMOTE:PATH"),
        ("503 Service Unavailable, 507 bytes", False, "Try again, or run: rclone lsf REMOTE:PATH"),
        ('Get "https://h/k?X-Amz-Signature=pw&a=b": EOF', False, "Try again, or run: rclone lsf REMOTE:PATH"),
        ("Put https://u:a/pw@h/k: EOF", False, "Try again, or run: rclone lsf REMOTE:PATH"),
        ('Propfind "https://h/401": 403 Forbidden', True, "Check that the account may read and write the folder: rclone lsf REMOTE:PATH"),
        ('oauth2: "invalid_grant" "Bad Request"', True, "Log in again: rclone config reconnect REMOTE:"),
        ("http 507", False, "Free space there."),
    ],
)  # fmt: skip
def test_message_of_a_remote_has_a_next_step(said: str, permanent: bool, hint: str) -> None:
    error = explain("rclone:r:m", said)
    assert isinstance(error, ProviderRefused) is permanent and error.hint == hint
    assert "pw" not in str(error) and "\x1b" not in str(error)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("drive:memory", "drive:memory"),
        ("my nas:a//b/", "my nas:a/b"),
        ("r:/srv/x/", "r:/srv/x"),
        ("r:", "r:"),
    ],
)
def test_address_has_one_form(text: str, shown: str) -> None:
    assert parse(text).shown == shown
    assert lasting_spec(f"rclone:{text}") == f"rclone:{shown}" == shown_spec(f"rclone:{shown}")


@pytest.mark.parametrize("text", [":webdav,url=http://h,pass=hunter22:x", "r,pass=hunter22:x", "r", "", "-r:x", "r:a/../b", "r:a\nb", "r:a]b", "/tmp:x"])  # fmt: skip
def test_hostile_address_is_refused_without_its_options(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        lasting_spec(f"rclone:{text}")
    assert "hunter22" not in f"{raised.value} {raised.value.hint}"
