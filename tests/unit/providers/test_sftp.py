"""The sftp provider with an OpenSSH server and with a hostile one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.http.policy import ONCE, Retry, Timeouts, Timing
from ipfsmem_providers.packs import pins
from ipfsmem_providers.packs.store import GOING, Packs
from ipfsmem_providers.remote.provider import RemotePacks
from ipfsmem_providers.sftp import SftpProvider, channel, files, packets
from ipfsmem_providers.sftp.address import parse
from ipfsmem_providers.sftp.channel import Channel, ConnectionLost
from ipfsmem_providers.sftp.errors import explain

from ipfsmem.content.cid import ipns_name
from ipfsmem.content.tree import BuiltTree, build_tree
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import Provider, lasting_spec, shown_spec
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.servers import hostile_sftp
from tests.support.cli_lab import KEY, Cli
from tests.support.device_lab import load
from tests.support.hints import Refused
from tests.support.patience import PATIENCE
from tests.support.processes import is_running
from tests.unit.providers.sftp_lab import SftpFolder, SshConnection, sftp

DAY = 86_400
WALLET = Unlock(RawKeySigner(bytes(31) + b"\x2f"))
TREE = build_tree({"a.md": b"one", "sub/b.md": b"two" * 300})
OTHER = build_tree({"c.md": b"three"})
SEED = b"\x0b" * 32
NAME = ipns_name(Signer25519(SEED).public)
RECORD = ipns_record.make_record(SEED, f"/ipfs/{TREE.cid}", 3, 2_500_000_000_000_000_000)
QUICK = Retry(first=0.01, most=0.02)
#: A server without OpenSSH's extensions.
PLAIN = "internal-sftp -P posix-rename,fsync"


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(body)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[SftpFolder]:
    with sftp(tmp_path) as made:
        yield made


@pytest.fixture(params=["internal-sftp", PLAIN], ids=["OpenSSH", "no extensions"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SftpFolder]:
    with sftp(tmp_path, subsystem=request.param) as made:
        yield made


async def published(provider: Provider, tree: BuiltTree = TREE) -> None:
    await provider.put_car(tree.cid, tree.blocks, name="n")
    await provider.pin(tree.cid, "n")


async def held(provider: Provider, tree: BuiltTree = TREE) -> bool:
    """Return whether a tree is stored completely and pinned."""
    found = await provider.get_blocks([cid for cid, _ in tree.blocks])
    return found == dict(tree.blocks) and tree.cid in {pin.cid for pin in await provider.pins("n")}


def test_each_call_is_logged_with_its_outcome(at: SftpFolder, caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        provider = at.open()
        await published(provider)
        await provider.close()

    with caplog.at_level("DEBUG", logger="ipfsmem.providers"):
        run(body())
    prefix = f"{at.open().name} write packs/"
    assert any(line.startswith(prefix) and ".car: done in " in line for line in caplog.messages)


# -- addresses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("host/memory", "host/memory"),
        (" me@host:2222//srv//my memory/ ", "me@host:2222//srv/my memory"),
        ("[::1]:22/memory", "[::1]:22/memory"),
        ("my_nas/a/b@c:d", "my_nas/a/b@c:d"),
    ],
)
def test_address_has_one_form(text: str, shown: str) -> None:
    assert parse(text).shown == shown == parse(shown).shown
    assert lasting_spec(f"sftp:{text}") == f"sftp:{shown}" == shown_spec(f"sftp:{shown}")


@pytest.mark.parametrize(
    "text",
    [
        "", "host", "host/", "host//", "//host/x", "host/a/../b", "host/./x", "host/~/x", "host:0/x", "host:65536/x", "host:x/x",
        "-oProxyCommand=secret/x", "me@-oProxyCommand=secret/x", "-l@host/x", "host -oProxyCommand=secret/x", "ho$(secret)st/x",
        "me;secret@host/x", "%h@host/x", "host/x\n-oProxyCommand=secret", "host/x\rsecret", "host/a'secret", 'host/a"secret', "host/`secret`",
        "host/a\\secret", "host/a?secret", "host/a#secret", "me:secret@host/x", "me:sec@ret@host/x", "sftp://me:secret@host/x", "host-/x", "host/\x00secret", "host/\u202esecret",
    ],
)  # fmt: skip
def test_hostile_address_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        SftpProvider(text)
    assert "secret" not in f"{raised.value} {raised.value.hint}"
    assert "me:secret" not in shown_spec(f"sftp:{text}")


def test_ssh_command_is_not_interactive_and_ends_its_options() -> None:
    command = files.ssh_command(parse("me@host:2222/x"), 15.0)
    assert command[-7:] == ["2222", "-l", "me", "-s", "--", "host", "sftp"]
    assert {"-oBatchMode=yes", "-oLogLevel=INFO", "-oTunnel=no"} < {*command} and not [
        one for one in command if "HostKey" in one
    ]


def test_missing_ssh_program_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with Refused(
        "Install OpenSSH: on Debian and Ubuntu the package openssh-client, on Windows the optional feature OpenSSH Client."
    ):
        SftpProvider("host/x")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ssh").write_text("#!/bin/sh\n")
    (tmp_path / "ssh").chmod(0o700)
    monkeypatch.setenv("PATH", ".")
    with pytest.raises(
        ConfigError, match="not installed"
    ):  # a program in the working directory may be somebody else's
        SftpProvider("host/x")
    monkeypatch.setenv("PATH", str(tmp_path))
    SftpProvider("host/x")


# -- the folder --------------------------------------------------------------------------------------------------------


def test_devices_share_a_folder_on_a_disk_and_at_a_server(either: SftpFolder, tmp_path: Path) -> None:
    a = load(tmp_path, "a", [either.open()], wallet=WALLET)
    a.write("note", "from a")
    asyncio.run(a.sync())
    b = load(tmp_path, "b", [either.mounted()], wallet=WALLET)
    assert b.read("note").file.body == "from a"  # type: ignore[union-attr]
    for turn in range(2):
        b.write("note", f"from b {turn}")
        b.write(f"b{turn}", "also from b")
        asyncio.run(b.sync())
        asyncio.run(a.sync())
        assert a.read("note").file.body == f"from b {turn}"  # type: ignore[union-attr]
        a.write("note", f"from a {turn}")
        asyncio.run(a.sync())
        asyncio.run(b.sync())
        assert b.read("note").file.body == f"from a {turn}"  # type: ignore[union-attr]
    assert a.status().root == b.status().root
    assert not asyncio.run(a.sync()).blocks_sent
    assert either.connection.hits == 1  # one session for all syncs of a process
    assert not list(either.folder.rglob(".[nh]*-*"))


def test_commands_use_a_folder_at_a_server(
    at: SftpFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = f"sftp:{at.address}"
    device = Cli(tmp_path / "home", monkeypatch)
    assert "full" in device.ok("provider", "test", spec).out
    device.ok("init", "--unprotected-keys", "--provider", spec, key=KEY)
    device.ok("write", "kettle", "--body", "the kettle is blue")
    device.ok("sync")
    device.ok("provider", "check", "--full")
    other = at.folder.with_name("other")
    other.mkdir()
    device.ok("vault", "move", f"{spec.rpartition('/')[0]}/other")
    assert "the kettle" in Cli(tmp_path / "home", monkeypatch).ok("recall", "kettle").out
    assert list((other / "packs").glob("*.car"))
    at.connection.does("echo 'Host key verification failed.' >&2; exit 255")
    told = device("sync")
    assert told.code == 42 and "known_hosts" in told.err + told.out


def test_concurrent_writers_lose_nothing(either: SftpFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers over the network and on the disk merge packs and pins."""
    for kind in (RemotePacks, Packs):
        monkeypatch.setattr(kind, "max_packs", 4)
    monkeypatch.setattr(pins, "MAX_FILES", 6)

    async def write(number: int, provider: Provider) -> list[BuiltTree]:
        trees = [build_tree({"a.md": f"{number} {turn}".encode() * 99}) for turn in range(5)]
        for tree in trees:
            await published(provider, tree)
        await provider.close()
        return trees

    async def body() -> None:
        await published(either.mounted(), build_tree({"first": b""}))
        writers = [either.open(), either.open(), either.mounted()]
        done = await asyncio.gather(*(write(number, one) for number, one in enumerate(writers)))
        for provider in (either.open(), either.mounted()):
            for tree in (tree for trees in done for tree in trees):
                assert await held(provider, tree)
            await provider.close()

    run(body())


def test_connection_lost_at_any_request_loses_no_acknowledged_data(
    either: SftpFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [0]
    request = Channel.request

    def counted(self: Channel, kind: int, body: bytes) -> Any:
        left[0] -= 1
        if left[0] == 0:
            self.kill()
        return request(self, kind, body)

    monkeypatch.setattr(Channel, "request", counted)

    async def body() -> None:
        here = either.mounted()
        trees, step, ended = [TREE], 0, False
        await published(here)
        while not ended:
            step += 3
            tree = build_tree({"a.md": f"lost at {step}".encode(), "sub/b.md": f"also at {step}".encode()})
            trees.append(tree)
            left[0] = step
            provider = either.open({"retry": ONCE})
            with contextlib.suppress(ProviderUnavailable):
                await published(provider, tree)
            left[0], ended = 0, left[0] > 0
            pinned = {pin.cid for pin in await here.pins("n")}
            for one in trees:
                assert await held(here, one) if one.cid in pinned else one is tree
            await published(provider, tree)
            assert await held(provider, tree)
            await provider.close()
        assert len(trees) > 5

    run(body())


def test_interrupted_upload_is_invisible_and_repeated(either: SftpFolder) -> None:
    large = build_tree({"large": os.urandom(300_000)})
    either.connection.does(
        f'rm {shlex.quote(str(either.server.folder / "illness"))}; dd bs=1 count=100000 status=none | well "$@"; exit 255'
    )

    async def body() -> None:
        provider = either.open({"retry": ONCE})
        with pytest.raises(ConnectionLost):
            await published(provider, large)
        assert not list((either.folder / "packs").glob("[!.]*.car"))
        await published(provider, large)
        assert await held(provider, large) and await held(either.mounted(), large)
        assert not list(either.folder.rglob(".[nh]*-*"))
        await provider.close()
        either.connection.does(
            f'rm {shlex.quote(str(either.server.folder / "illness"))}; dd bs=1 count=100000 status=none | well "$@"; exit 255'
        )
        provider = either.open({"retry": QUICK})
        await published(provider, other := build_tree({"large": os.urandom(300_000)}))
        assert await held(provider, other) and not list(either.folder.rglob(".[nh]*-*"))
        await provider.close()

    run(body())


def test_cancelled_upload_leaves_no_file(at: SftpFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        provider = at.open()
        await published(provider, OTHER)
        before = sorted(at.folder.rglob("*"))
        begun = asyncio.Event()

        async def silent(*_: Any) -> None:
            begun.set()
            await asyncio.sleep(3600)

        with monkeypatch.context() as patch:
            patch.setattr(files.SftpFiles, "_replace", silent)
            task = asyncio.ensure_future(published(provider))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert sorted(at.folder.rglob("*")) == before
        await published(provider)
        assert await held(provider)
        await provider.close()

    run(body())


def test_recently_stored_pack_is_replaced_only_atomically(either: SftpFolder) -> None:
    async def body() -> None:
        provider = either.open()
        await published(provider)
        [pack] = (either.folder / "packs").glob("*.car")
        before = pack.stat().st_ino
        await published(either.open())
        assert (pack.stat().st_ino == before) == (either.subsystem == PLAIN)
        assert not list(either.folder.rglob(".[nh]*-*"))
        _age(either)
        old = pack.stat().st_mtime
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        assert pack.stat().st_mtime > old  # a new date, so that it is not removed as old
        pack.write_bytes(b"damaged")
        await published(either.open())
        assert await held(either.open()) and not list(either.folder.rglob(".[nh]*-*"))
        await provider.close()

    run(body())


def test_truncated_pack_is_sent_again_within_the_hour(either: SftpFolder) -> None:
    """As after a power failure of a server that flushes nothing: the size is right."""

    async def body() -> None:
        provider = either.open()
        await published(provider)
        [pack] = (either.folder / "packs").glob("*.car")
        pack.write_bytes(bytes(pack.stat().st_size))
        other = either.open()
        assert not await held(other)
        assert await other.missing_blocks()
        await other.put_car(TREE.cid, TREE.blocks, name="n")
        assert await held(other) and await held(either.mounted()) and not await other.missing_blocks()
        assert not list(either.folder.rglob("*.lost")) and not list(either.folder.rglob(".[nh]*-*"))
        await provider.close()
        await other.close()

    run(body())


def test_file_and_its_name_are_flushed(at: SftpFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = _recorded(monkeypatch)

    async def body() -> None:
        remote = at.open()._remote
        await remote.put("packs/one", b"1")
        await remote.flush("packs")
        await remote.close()

    run(body())
    extended = [(request[4:11], reply) for kind, request, reply in sent if kind == packets.EXTENDED]
    ok = (packets.STATUS, packets.OK)
    assert extended == [
        (name, ok) for name in (b"fsync@o", b"fsync@o", b"posix-r", b"fsync@o")
    ]  # the folder, the file, packs
    sent.clear()
    run(published(at.open()))
    [placed] = [
        n
        for n, (kind, request, _) in enumerate(sent)
        if kind == packets.EXTENDED and request.endswith(b".car")
    ]
    after = [request for kind, request, _ in sent[placed:] if kind in (packets.OPEN, packets.EXTENDED)]
    assert after[1].startswith(packets.text(f"{at.folder}/packs")) and b"fsync@" in after[2]


def test_server_that_rejects_flushes_is_not_asked_again(at: SftpFolder) -> None:
    async def body() -> None:
        provider = at.open({"retry": QUICK})
        remote = provider._remote  # type: ignore[attr-defined]
        ask, asked = remote._all, []
        folders = {
            packets.opening(str(path), packets.FOR_READING)
            for path in (at.folder, *(at.folder / name for name in ("packs", "pins", "names")))
        }

        async def dropping(channel: Any, requests: Any, more: int = 0) -> Any:
            requests = list(requests)
            if any(kind == packets.OPEN and body in folders for kind, body in requests):
                asked.append(requests)
                channel.kill()
            return await ask(channel, requests, more)

        remote._all = dropping
        await published(provider)
        assert len(asked) == remote._lost_flushes == 2
        remote._all = ask
        assert await held(provider)
        await provider.close()

    run(body())


def _recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bytes, tuple[int, int]]]:
    """Record the requests from now on, with type and code of each reply."""
    sent: list[tuple[int, bytes, tuple[int, int]]] = []
    request = Channel.request

    def recording(self: Channel, kind: int, body: bytes) -> Any:
        future = request(self, kind, body)
        reply = future.result(PATIENCE)
        sent.append((kind, body, (reply.kind, int.from_bytes(reply.body[:4], "big"))))
        return future

    monkeypatch.setattr(Channel, "request", recording)
    return sent


def test_folder_created_by_another_device_during_a_write_is_used(
    either: SftpFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        remote = either.open()._remote
        write = remote._write

        async def overtaken(*given: Any) -> None:
            monkeypatch.undo()
            try:
                await write(*given)
            finally:
                (either.folder / "packs").mkdir(parents=True)

        monkeypatch.setattr(remote, "_write", overtaken)
        await remote.put("packs/one", b"1")
        assert (await remote.read("packs/one", 0, 9)).data == b"1"

    run(body())


def test_rename_replaces_no_file_and_a_folder_blocks_no_upload(either: SftpFolder) -> None:
    async def body() -> None:
        remote = either.open()._remote
        await remote.put("packs/one", b"1")
        await remote.put("packs/two", b"22")
        with pytest.raises(FileExistsError):
            await remote.move("packs/one", "packs/two")
        with pytest.raises(FileNotFoundError):
            await remote.move("packs/none", "packs/two")
        assert (await remote.read("packs/two", 0, 9)).data == b"22"
        (either.folder / "packs" / "three.car").mkdir()
        (either.folder / "packs" / "three.car" / "theirs").write_bytes(b"3")
        with pytest.raises(OSError, match="three"):
            await remote.delete("packs/three.car")
        with pytest.raises(OSError, match="three"):
            await remote.read("packs/three.car", 0, 9)
        await remote.put("packs/three.car", b"ours")
        [aside] = (either.folder / "packs").glob("three-car.aside-*")
        assert (aside / "theirs").read_bytes() == b"3"
        (either.folder / "packs" / "link").symlink_to("/etc/passwd")
        (either.folder / "packs" / os.fsdecode(b"\xff")).write_bytes(b"")
        listing = await remote.list_folder("packs")
        assert set(listing.files) == {"one", "two", "three.car"}
        assert listing.others == {"link", aside.name}
        assert listing.files["two"].size == 2
        await remote.put("packs/two", b"new")
        assert (await remote.read("packs/two", 0, 9)) == (b"new", 3)
        assert (await remote.read("packs/two", 1, 2)) == (b"e", 3) and (
            await remote.read("packs/two", 5, 9)
        ) == (b"", 3)
        await remote.close()

    run(body())


def test_missing_folder_is_reported_and_not_created(at: SftpFolder) -> None:
    at.folder.rmdir()

    async def body() -> None:
        for work in (lambda p: p.pins("n"), published):
            with pytest.raises(ProviderUnavailable, match="is not there") as raised:
                await work(at.open())
            assert "Create the folder" in raised.value.hint
        assert not at.folder.exists()
        provider = at.open({"create": True})
        await published(provider)
        assert await held(provider)
        await provider.close()
        (at.folder / "packs").rename(at.folder / "gone")
        again = at.open()
        await again.listing()
        (at.folder / "gone").rename(at.folder / "packs")
        await again.listing()
        (at.folder / "packs").rename(at.folder / "gone")
        with pytest.raises(ProviderUnavailable, match="is gone"):  # not an empty one
            await again.listing()
        await again.close()

    run(body())


@pytest.mark.parametrize("kind", ["link to nothing", "link to itself", "file"])
def test_unreadable_folder_is_not_treated_as_empty(at: SftpFolder, kind: str) -> None:
    packs = at.folder / "packs"
    if kind == "file":
        packs.write_bytes(b"")
    else:
        packs.symlink_to(packs if "itself" in kind else at.folder / "unmounted")

    async def body() -> None:
        provider = at.open({"retry": ONCE})
        with Refused("Mend the link or the file of that name at the server."):
            await provider.listing()
        await provider.close()

    run(body())


def test_large_file_is_read_in_parts(at: SftpFolder) -> None:
    data = os.urandom(700_001)
    (at.folder / "packs").mkdir()
    (at.folder / "packs" / "large").write_bytes(data)

    async def body() -> None:
        remote = at.open()._remote
        assert await remote.read("packs/large", 0, 24 * 1024 * 1024) == (data, len(data))
        assert await remote.read("packs/large", 99, 600_000) == (data[99:600_000], len(data))
        await remote.close()

    run(body())


def test_parts_of_a_file_share_one_handle(at: SftpFolder) -> None:
    data = os.urandom(700_001)
    (at.folder / "packs").mkdir()
    (at.folder / "packs" / "large").write_bytes(data)
    spans = [
        (0, 1),
        (99, 300_000),
        (300_001, 300_002),
        (600_000, 700_001),
        (700_000, 800_000),
        (900_000, 900_001),
    ]

    async def body() -> None:
        remote: Any = at.open()._remote
        await remote.list_folder("packs")
        before = remote._channel.requests
        assert await remote.read_parts("packs/large", spans) == [data[start:end] for start, end in spans]
        assert remote._channel.requests - before == 3 + sum(
            -(-(min(end, len(data)) - start) // packets.CHUNK) for start, end in spans[:5]
        )  # and OPEN, FSTAT, CLOSE
        assert await remote.read_parts("packs/large", spans[1:2]) == [data[99:300_000]]
        with pytest.raises(FileNotFoundError):
            await remote.read_parts("packs/gone", spans)
        with pytest.raises(OSError):
            await remote.read_parts("packs", spans)
        await remote.close()

    run(body())


def test_idle_sync_needs_few_requests(at: SftpFolder) -> None:
    async def body() -> None:
        await published(first := at.open())
        await first.put_name(NAME, RECORD)
        await first.close()
        provider = at.open()
        costs, cache = [], b""
        for _ in range(2):
            channel = provider._remote._channel  # type: ignore[attr-defined]
            before = (channel.requests, channel.sent + channel.received) if channel else (0, 0)
            provider.begin_snapshot(cache)
            asked = (provider.get_name(NAME), provider.pins("n"), provider.pins("m"), provider.listing())
            record, found, _, _ = await asyncio.gather(*asked)
            assert record == RECORD and [pin.cid for pin in found] == [TREE.cid]
            cache = provider.end_snapshot()
            channel = provider._remote._channel  # type: ignore[attr-defined]
            costs.append((channel.requests - before[0], channel.sent + channel.received - before[1]))
        assert costs[1][0] <= 3 * 4 and costs[1][1] < 4_000  # a list of each folder
        assert costs[0][1] < 15_000
        await provider.close()
        later = at.open()  # in another process
        later.begin_snapshot(cache)
        asked = (later.get_name(NAME), later.pins("n"), later.pins("m"), later.listing())
        record, found, _, _ = await asyncio.gather(*asked)
        assert record == RECORD and [pin.cid for pin in found] == [TREE.cid]
        channel = later._remote._channel  # type: ignore[attr-defined]
        assert channel is not None and channel.requests <= 3 * 4
        await later.close()

    run(body())


# -- collection --------------------------------------------------------------------------------------------------------


def _age(at: SftpFolder) -> None:
    """Age all files by two days, by the server's clock."""
    for path in at.folder.rglob("*"):
        if path.is_file():
            then = path.stat().st_mtime - 2 * DAY
            os.utime(path, (then, then))


def test_space_is_freed_by_the_servers_clock(either: SftpFolder) -> None:
    async def body() -> None:
        provider = either.open()
        await published(provider)
        await published(provider, OTHER)
        await provider.unpin(next(pin for pin in await provider.pins("n") if pin.cid == OTHER.cid))
        ahead = SftpProvider(either.address, clock=lambda: time.time_ns() + 30 * DAY * 10**9)
        assert await ahead.collect() == 0  # by its own clock the packs are old
        _age(either)
        await ahead.collect()
        for mark in (either.folder / "packs").glob(f"*{GOING}"):
            mark.write_text('{"since":1}')
        _age(either)
        assert await ahead.collect() > 0
        assert await either.mounted().has([OTHER.cid]) == set() and await held(either.mounted())
        await provider.close()
        await ahead.close()

    run(body())


@pytest.mark.parametrize("mounted", [True, False])
def test_hidden_pack_of_a_killed_collection_is_restored(either: SftpFolder, mounted: bool) -> None:
    async def body() -> None:
        await published(either.mounted())
        [pack] = (either.folder / "packs").glob("*.car")
        pack.rename(pack.with_name(f".new-{pack.name}"))
        _age(either)
        provider = either.mounted() if mounted else either.open()
        await provider.collect()
        assert await held(provider)
        await provider.close()

    run(body())


async def _due_pack(at: SftpFolder) -> Path:
    """A pack that nothing needs and that was marked a day ago."""
    provider = at.mounted()
    await published(provider)
    await published(provider, OTHER)
    await provider.unpin(next(pin for pin in await provider.pins("n") if pin.cid == OTHER.cid))
    _age(at)
    await provider.collect()
    [mark] = (at.folder / "packs").glob(f"*{GOING}")
    mark.write_text('{"since":1}')
    _age(at)
    return mark.with_suffix(".car")


def test_pack_is_hidden_by_one_atomic_rename(at: SftpFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the server could remove a name that another device has reused."""

    async def body() -> None:
        pack = await _due_pack(at)
        sent = _recorded(monkeypatch)
        provider = at.open()
        assert await provider.collect() > 0 and not pack.exists()
        renamed = [
            kind
            for kind, request, _ in sent
            if kind in (packets.RENAME, packets.EXTENDED) and b"/.hidden-" in request
        ]
        assert renamed == [packets.EXTENDED]
        await provider.close()

    run(body())


def test_hidden_pack_is_not_replaced_by_another(either: SftpFolder) -> None:
    async def body() -> None:
        pack = await _due_pack(either)
        hidden = pack.with_name(f".new-{pack.name}")
        hidden.write_bytes(b"of another collection")
        remote = either.open()._remote
        with pytest.raises(FileExistsError):
            await remote.hide(f"packs/{pack.name}", f"packs/{hidden.name}")
        assert hidden.read_bytes() == b"of another collection" and pack.exists()
        await remote.close()

    run(body())


def test_rename_that_hides_a_pack_is_not_sent_again(at: SftpFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lost connection carries it out late, on a pack that another device put meanwhile."""
    request = Channel.request
    asked: list[bytes] = []

    async def body() -> None:
        pack = await _due_pack(at)

        def lost(self: Channel, kind: int, body: bytes) -> Any:
            if kind == packets.EXTENDED and b"/.hidden-" in body:
                asked.append(body)
                self.kill()
                raise ConnectionLost("cut")
            return request(self, kind, body)

        monkeypatch.setattr(Channel, "request", lost)
        provider = at.open({"retry": QUICK})
        with pytest.raises(ProviderUnavailable, match=r"while .* was renamed"):
            await provider.collect()
        assert len(asked) == 1 and pack.exists()
        await provider.close()

    run(body())


def test_restored_pack_survives_a_late_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lost connection hides the new pack after its upload was acknowledged."""
    request = Channel.request
    asked: list[bytes] = []

    async def body(at: SftpFolder) -> None:
        provider = at.open({"retry": QUICK})
        await published(provider)
        [pack] = (at.folder / "packs").glob("*.car")
        os.utime(pack, (time.time() - 2 * 86_400,) * 2)

        def lost(self: Channel, kind: int, body: bytes) -> Any:
            if kind == packets.RENAME and b"/.hidden-" in body.partition(pack.name.encode())[2]:
                asked.append(body)
                if len(asked) == 1:
                    self.kill()
                    raise ConnectionLost("cut")
            return request(self, kind, body)

        monkeypatch.setattr(Channel, "request", lost)
        await published(provider)
        names = [body[-len(pack.name) - 25 :] for body in asked]
        assert len(set(names)) == len(names) == 2
        # OpenSSH carries out RENAME as a link, which fails when the name exists.
        assert pack.with_name(names[0].decode()).read_bytes() == pack.read_bytes()
        await published(provider, OTHER)
        assert pack.with_name(names[0].decode()).exists() and await held(provider)
        await provider.close()

    with sftp(tmp_path, subsystem=PLAIN) as at:
        run(body(at))


def test_removal_of_a_hidden_pack_is_sent_once(either: SftpFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is lost while another collection hides a pack that was stored again."""
    request = Channel.request
    removals = 0

    async def body() -> None:
        pack = await _due_pack(either)
        data = pack.read_bytes()
        hidden: list[Path] = []

        def lost(self: Channel, kind: int, body: bytes) -> Any:
            nonlocal removals
            future = request(self, kind, body)
            if kind == packets.REMOVE and b"/.hidden-" in body:
                removals += 1
                future.result(PATIENCE)
                hidden.append(pack.with_name(body.rpartition(b"/")[2].decode()))
                hidden[0].write_bytes(data)
                self.kill()
                raise ConnectionLost("cut")
            return future

        monkeypatch.setattr(Channel, "request", lost)
        provider = either.open({"retry": QUICK})
        with pytest.raises(ProviderUnavailable):
            await provider.collect()
        assert removals == 1 and hidden[0].read_bytes() == data
        await provider.close()

    run(body())


@pytest.mark.parametrize("mounted", [True, False])
def test_hidden_pack_without_a_mark_is_restored_by_the_next_upload(either: SftpFolder, mounted: bool) -> None:
    async def body() -> None:
        await published(either.mounted())
        [pack] = (either.folder / "packs").glob("*.car")
        pack.rename(pack.with_name(f".new-{pack.name}"))
        _age(either)
        provider = either.mounted() if mounted else either.open()
        await published(provider, OTHER)
        assert await held(provider) and not list(either.folder.rglob(".[nh]*-*"))
        await provider.close()

    run(body())


# -- the connection ----------------------------------------------------------------------------------------------------


async def _asked(at: SftpFolder, **settings: Any) -> None:
    provider = at.open(settings)
    await provider.pins("n")
    await provider.close()


def _told(at: SftpFolder, match: str) -> str:
    """Return the hint of a refusal."""
    with pytest.raises(ProviderRefused, match=match) as raised:
        run(_asked(at))
    return raised.value.hint


def test_unknown_host_key_is_explained_without_a_prompt(at: SftpFolder) -> None:
    (at.server.folder / "known_hosts").write_text("")
    assert "~/.ssh/known_hosts" in _told(at, "ssh key is not known")
    assert (at.server.folder / "known_hosts").read_text() == ""


def test_changed_host_key_is_explained(at: SftpFolder) -> None:
    key = (at.server.folder / "user.pub").read_text()
    (at.server.folder / "known_hosts").write_text(f"[127.0.0.1]:{at.server.port} {key}")
    assert "ssh-keygen -R" in _told(at, "another ssh key than it had before")


def test_refused_login_is_explained(at: SftpFolder) -> None:
    (at.server.folder / "authorized").write_text("")
    assert "ssh-add" in _told(at, "refuses the login")


def test_unreadable_configuration_is_explained(at: SftpFolder) -> None:
    with at.server.config.open("a") as file:
        file.write("NoSuchOption yes\n")
    assert "~/.ssh/config" in _told(at, "cannot read its configuration")


def test_text_of_a_startup_file_is_explained(at: SftpFolder) -> None:
    at.connection.does('echo Welcome; well "$@"; exit')
    with Refused(
        "Let the startup files of the shell there, such as ~/.bashrc, print nothing in sessions without a terminal."
    ):
        run(_asked(at))
    at.connection.does("")
    run(_asked(at))


def test_other_failure_of_ssh_is_quoted(at: SftpFolder) -> None:
    at.connection.does("echo 'no such thing' >&2; exit 1")
    with Refused("Try again, or run: ssh HOST"):
        run(_asked(at, retry=ONCE))
    at.connection.does("")
    run(_asked(at))


def test_host_without_sftp_is_explained(at: SftpFolder) -> None:
    at.connection.does('set -- $(echo "$@" | sed "s/sftp$/none/"); well "$@"; exit')
    assert "subsystem sftp" in _told(at, "offers no SFTP")


def test_stopped_server_is_retried_and_reported(at: SftpFolder) -> None:
    at.server.stop()

    async def body() -> None:
        with pytest.raises(ProviderUnavailable, match="does not answer"):
            await at.open({"retry": Retry(attempts=2, first=0.01, most=0.02)}).pins("n")

    run(body())
    assert at.connection.hits == 2


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("ssh: Could not resolve hostname x: Name or service not known", "cannot be resolved"),
        ("ssh: connect to host x port 22: Connection timed out", "does not answer"),
        ("\x1b[2J" + "x" * 9_999, "ssh program ended"),
        ("", "no message"),
    ],
)
def test_message_of_ssh_is_quoted_within_a_line(said: str, text: str) -> None:
    told = explain("sftp:host/x", said)
    assert text in str(told) and isinstance(told, ProviderUnavailable)
    assert len(str(told)) < 300 and "\x1b" not in str(told)


def test_warning_about_an_address_key_is_not_a_changed_host_key() -> None:
    warning = "Warning: the ED25519 host key for 'x' differs from the key for the IP address '192.0.2.1'\n"
    assert "refuses the login" in str(
        explain("sftp:host/x", f"{warning}me@x: Permission denied (publickey).")
    )
    changed = "Host key for x has changed and you have requested strict checking."
    assert "another ssh key" in str(explain("sftp:host/x", changed))


def test_ssh_receives_no_secrets_of_other_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (
        "IPFSMEM_KEY",
        "GIT_TOKEN",
        "PEER_TOKEN",
        "WEBDAV_PASSWORD",
        "PINATA_JWT",
        "FILEBASE_SECRET",
        "KUBO_RPC_AUTH",
    )
    for name in (*names, "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "value")
    assert "SSH_AUTH_SOCK" in channel._environment() and not {*names} & channel._environment().keys()


def test_verbose_ssh_program_does_not_stall(at: SftpFolder) -> None:
    at.connection.does("head -c 1000000 /dev/zero | tr '\\0' x >&2")

    async def body() -> None:
        provider = at.open()
        await published(provider)
        assert await held(provider)
        await provider.close()

    run(body())


def test_closed_idle_connection_is_reopened(at: SftpFolder) -> None:
    async def body() -> None:
        provider = at.open()
        await published(provider)
        channel = provider._remote._channel  # type: ignore[attr-defined]
        os.killpg(channel._process.pid, signal.SIGKILL)
        await asyncio.wait_for(asyncio.wrap_future(channel.ended), PATIENCE)
        assert await held(provider)
        await provider.close()

    run(body())
    assert at.connection.hits == 2


def test_silently_dead_idle_connection_is_reopened(at: SftpFolder) -> None:
    now = [0.0]

    async def body() -> None:
        timing = Timing(now=lambda: time.monotonic() + now[0])
        provider = at.open({"timing": timing, "timeouts": Timeouts(stall=2.0), "retry": QUICK})
        await published(provider)
        os.killpg(provider._remote._channel._process.pid, signal.SIGSTOP)  # type: ignore[attr-defined]
        now[0] += 3600
        assert await held(provider)
        await provider.close()

    run(body())
    assert at.connection.hits == 2


_HOLDING = """
import asyncio, sys
from ipfsmem_providers.sftp import SftpProvider
async def hold():
    provider = SftpProvider(sys.argv[1])
    await provider.pins("n")
    print(provider._remote._channel._process.pid, flush=True)
    await asyncio.sleep(3600)
asyncio.run(hold())
"""


def test_session_ends_with_its_process(at: SftpFolder) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDING, at.address], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        ssh = int(process.stdout.readline())
        process.kill()
    _until_gone(ssh)


def test_session_of_an_unclosed_provider_ends(at: SftpFolder) -> None:
    async def body() -> int:
        provider = at.open()
        await provider.pins("n")
        return int(provider._remote._channel._process.pid)  # type: ignore[attr-defined]

    _until_gone(asyncio.run(body()))


def _until_gone(pid: int) -> None:
    ends = time.monotonic() + PATIENCE
    while is_running(pid):
        assert time.monotonic() < ends, f"{pid} still runs"
        time.sleep(0.02)


# -- hostile servers ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshConnection]:
    """A program `ssh` that connects to no server."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "bin").mkdir()
    program = folder / "bin" / "ssh"
    program.write_text(f"#!/bin/sh\n. {shlex.quote(str(folder / 'illness'))}\n")
    program.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(folder / "bin"), prepend=":")
        yield SshConnection(folder)


def _lies(hostile: SshConnection, kind: str) -> Any:
    server = shlex.join([sys.executable, "-S", "-E", hostile_sftp.__file__, kind])
    hostile.does(f"exec {server}")
    return SftpProvider("host/x", {"retry": ONCE})._remote


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("endless list", "too large"),
        ("empty names", "SFTP protocol"),
        ("more names than sent", "SFTP protocol"),
        ("long name", "SFTP protocol"),
        ("many attributes", "SFTP protocol"),
        ("wrong number", "SFTP protocol"),
        ("wrong type", "SFTP protocol"),
        ("no names but no end", "SFTP protocol"),
        ("huge packet", "SFTP protocol"),
        ("empty packet", "SFTP protocol"),
        ("end", "connection ended"),
        ("old version", "version 2"),
        ("escapes", "did not list"),
        ("no permission", "denied permission to list packs"),
        ("vanishes", "not listed to its end"),
    ],
)
def test_false_list_is_an_error(
    hostile: SshConnection, kind: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_FILES_MAX", 5_000)
    remote = _lies(hostile, kind)

    async def body() -> None:
        with pytest.raises((ProviderError, PermissionError), match=text) as raised:
            await remote.list_folder("packs")
        assert "\x1b" not in str(raised.value) and len(str(raised.value)) < 400
        await remote.close()

    run(body())


def test_full_disk_is_reported(hostile: SshConnection) -> None:
    with Refused("Check the free space and the permissions of the folder there."):
        run(_listed(_lies(hostile, "escapes")))
    run(_listed(_lies(hostile, "well")))


def test_folder_with_unreadable_entries_is_reported(hostile: SshConnection) -> None:
    """OpenSSH omits them silently."""
    provider = SftpProvider("host/x", {"retry": ONCE})
    _lies(hostile, "no permission")
    with Refused("Give this user permission to read and write the folder."):
        run(_asking(provider))


def test_folder_removed_while_it_is_listed_is_reported(hostile: SshConnection) -> None:
    """OpenSSH omits the rest silently."""
    provider = SftpProvider("host/x", {"retry": ONCE})
    _lies(hostile, "gone meanwhile")
    with pytest.raises(ProviderUnavailable, match="is there and cannot be listed"):
        run(_asking(provider))


async def _asking(provider: Provider) -> None:
    await provider.pins("n")


async def _listed(remote: Any) -> None:
    await remote.list_folder("packs")
    await remote.close()


@pytest.mark.parametrize(
    ("kind", "text"), [("more than asked", "SFTP protocol"), ("empty data", "answered with")]
)
def test_false_data_is_an_error(hostile: SshConnection, kind: str, text: str) -> None:
    remote = _lies(hostile, kind)

    async def body() -> None:
        with pytest.raises(ProviderError, match=text):
            await remote.read("packs/one", 0, 100_000)
        with pytest.raises(ProviderError, match=text):
            await remote.read_parts("packs/one", [(0, 100_000), (200_000, 300_000)])
        await remote.close()

    run(body())


def test_unspecific_server_failure_is_resolved_by_a_lookup(hostile: SshConnection) -> None:
    remote = _lies(hostile, "vague")

    async def body() -> None:
        assert await remote.list_folder("packs") == ({}, frozenset())
        await remote.put("packs/one", b"one")  # it creates the folder
        with pytest.raises(FileNotFoundError):
            await remote.delete("packs/gone")
        await remote.close()

    run(body())


class _Moving:
    """A connection that delivers replies to other calls first."""

    under_way = received = 0
    lost = None

    def __init__(self, drip: int, future: Future[packets.Reply]) -> None:
        self._drip, self._future, self._moved, self.is_killed = drip, future, 0, False

    @property
    def moved(self) -> int:
        self._moved += self._drip
        if self._moved > 8 * self._drip and not self._future.done():
            self._future.set_result(packets.Reply(packets.STATUS, bytes(4)))
        return self._moved

    def kill(self) -> None:
        self.is_killed = True


def test_awaited_reply_does_not_time_out_while_others_arrive() -> None:
    remote: Any = SftpProvider("host/x", {"timeouts": Timeouts(stall=0.01, drip=100)})._remote

    async def body() -> None:
        remote._heard = remote.monotonic()
        reply: Future[packets.Reply] = Future()
        moving: Any = _Moving(100, reply)
        assert await remote._reply(moving, reply, 0) == (packets.STATUS, bytes(4)) and not moving.is_killed
        dripping: Any = _Moving(99, Future())
        with pytest.raises(ProviderUnavailable, match="did not answer within"):
            await remote._reply(dripping, dripping._future, 0)
        assert dripping.is_killed

    run(body())


def test_call_may_exceed_its_limit_while_the_connection_is_fast() -> None:
    """A call also waits for the replies to concurrent calls on the same connection."""
    remote: Any = SftpProvider("host/x")._remote

    async def body() -> None:
        reply: Future[packets.Reply] = Future()
        moving: Any = _Moving(1024, reply)

        async def work(_: object) -> packets.Reply:
            return await asyncio.wrap_future(reply)

        assert await remote._bounded(moving, work, 0.01) == (packets.STATUS, bytes(4))
        slow: Any = _Moving(1, Future())

        async def forever(_: object) -> None:
            await asyncio.Event().wait()

        with pytest.raises(ProviderUnavailable, match="did not answer within"):
            await remote._bounded(slow, forever, 0.01)
        assert slow.is_killed and not moving.is_killed

    run(body())


def test_slow_byte_stream_ends_at_the_limit_of_a_call(
    hostile: SshConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_CALL_SECONDS", 0.3)
    monkeypatch.setattr(files, "SLOWEST", 1 << 30)
    remote = _lies(hostile, "drip")

    async def body() -> None:
        with pytest.raises(ProviderUnavailable, match="did not answer within"):
            await remote.read("packs/one", 0, 24 * 1024 * 1024)
        await remote.close()

    run(body())


def test_file_that_claims_any_size_is_read_to_the_asked_end(hostile: SshConnection) -> None:
    remote = _lies(hostile, "well")

    async def body() -> None:
        assert await remote.read("packs/one", 5, 100_005) == (bytes(100_000), hostile_sftp.ENDLESS)
        with pytest.raises(ProviderUnavailable, match=r"stored \d+ of 3 bytes"):
            await remote.put("packs/one", b"one")
        await remote.close()

    run(body())


def test_missing_attributes_are_accepted() -> None:
    whole = packets.Cursor(
        bytes.fromhex("0000000f 0000000000000009 00000001 00000002 000081a4 00000003 00000004")
    )
    assert whole.attributes() == (9, 4, 0o100644) and whole.is_at_end
    none = packets.Cursor(bytes(4)).attributes()
    assert not none.is_file and not none.is_folder and none.modified is None


def test_waiting_calls_share_one_refusal(hostile: SshConnection) -> None:
    """A refusing host is asked once by concurrent calls."""
    counted = shlex.quote(str(Path(hostile._script).with_name("count")))
    hostile.does(f"echo >> {counted}; sleep 0.2; echo 'Permission denied (publickey).' >&2; exit 255")

    async def body() -> None:
        remote = SftpProvider("host/x")._remote
        failed = await asyncio.gather(
            *(remote.list_folder("packs") for _ in range(8)), return_exceptions=True
        )
        assert all(isinstance(one, ProviderRefused) for one in failed)
        await remote.close()

    run(body())
    assert len(Path(hostile._script).with_name("count").read_bytes()) == 1
