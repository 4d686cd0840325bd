"""`ipfsmem serve peer` in real processes: vaults and IPFS tools use it, writes require the token, Ctrl-C ends it."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ipfsmem.content.tree import build_tree
from ipfsmem.device.replica import Environment
from ipfsmem.errors import ProviderRefused, ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Provider, open_provider
from ipfsmem.vault.home import Home
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.cli_lab import Cli
from tests.support.patience import PATIENCE

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x0b"))
TOKEN = "a token of enough length"
TREE = build_tree({"a.md": b"one", "b.md": b"two"})
SERVE = [sys.executable, "-m", "ipfsmem.cli", "serve", "peer"]
NOBODY = 65534


#: Runs `ipfsmem` and repeats its signal while its event loop is closing.
TWICE = """
import asyncio, os, signal, sys
from ipfsmem.cli import main
close = asyncio.selector_events.BaseSelectorEventLoop.close
def closed(loop):
    close(loop)
    os.kill(os.getpid(), signal.SIGTERM)
asyncio.selector_events.BaseSelectorEventLoop.close = closed
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_second_signal_during_shutdown_prints_nothing(tmp_path: Path) -> None:
    """`timeout` sends its signal twice."""
    arguments = ["serve", "peer", str(tmp_path / "kept"), "--create", "--port", "0"]
    server = subprocess.Popen(
        [sys.executable, "-c", TWICE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None and "serving" in server.stdout.readline()
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=60)
        assert (server.returncode, errors) == (0, "")
    finally:
        server.kill()


@contextlib.contextmanager
def served(
    folder: Path, *more: str, token: str = TOKEN, before: tuple[str, ...] = (), stop: int = signal.SIGINT
) -> Iterator[str]:
    """Start a real `ipfsmem serve peer`, yield its URL, and check that it exits cleanly."""
    server = subprocess.Popen(
        [*before, *SERVE, str(folder), "--port", "0", "--json", *more],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "IPFSMEM_SERVE_TOKEN": token},
    )  # fmt: skip
    try:
        assert server.stdout is not None
        said = json.loads(server.stdout.readline())
        assert said["psa"] == (f"{said['url']}/psa" if token else None)
        yield said["url"]
        server.send_signal(stop)
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.wait()


def peer(url: str, token: str = TOKEN) -> Provider:
    return open_provider(f"peer:{url}", {"peer_token": token})


def service(url: str) -> Provider:
    settings = {
        "pinning_service_token": TOKEN, "pinning_service_patience": "0", "pinning_service_gateway": url,
    }  # fmt: skip
    return open_provider(f"pinning_service:{url}/psa", settings)


def device(home: Path, *providers: Provider, environment: Environment | None = None) -> Memory:
    return Memory.load("m", "encrypted-ipfs", provider=providers, unlock=WALLET, passphrase=False, home=Home(folder=home, environment=environment or Environment()), create=True)  # fmt: skip


def ask(
    url: str, path: str, method: str = "GET", body: Any = None, token: str = TOKEN, **headers: str
) -> tuple[int, Any]:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    shown = {"Authorization": f"Bearer {token}"} if token else {}
    data = json.dumps(body).encode() if body is not None else None
    connection.request(method, path, body=data, headers={**shown, **headers})
    answer = connection.getresponse()
    read = answer.read()
    connection.close()
    return answer.status, json.loads(read) if read else None


def pin_names(folder: Path) -> list[str]:
    return sorted(json.loads(file.read_bytes())["name"] for file in folder.glob("pins/*.json"))


def pinned_roots(folder: Path, under: str) -> set[str]:
    """Return the roots of pins whose name begins with `under`; "" selects those not made over the pinning
    service."""
    pins = [json.loads(file.read_bytes()) for file in folder.glob("pins/*.json")]
    return {pin["cid"] for pin in pins if pin["name"].startswith("psa:") == bool(under)}


def test_two_devices_sync_through_a_served_folder(tmp_path: Path) -> None:
    with served(tmp_path / "kept", "--create") as url:
        a = device(tmp_path / "a", peer(url))
        a.write("k", "through the served folder")
        asyncio.run(a.sync())
        b = device(tmp_path / "b", peer(url))
        assert b.read("k").file.body == "through the served folder"  # type: ignore[union-attr]


def test_car_uploaded_to_peer_is_pinned_and_unpinned_by_any_tool(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with served(kept, "--create") as url:

        async def pinned() -> None:
            store, tool = peer(url), service(url)
            with pytest.raises(ProviderUnavailable, match="still fetching"):
                await tool.pin(TREE.cid, "mine")
            await store.put_car(TREE.cid, TREE.blocks, name="mine")
            pin = await tool.pin(TREE.cid, "mine")
            assert [found.cid for found in await tool.pins("mine")] == [TREE.cid]
            assert pin_names(kept) == ["psa:mine"]
            assert await tool.get_blocks([TREE.cid]) == {TREE.cid: dict(TREE.blocks)[TREE.cid]}
            # A tool must not remove a device's own pin of the same root and name.
            await store.pin(TREE.cid, "mine")
            await tool.unpin(pin)
            assert await tool.pins("mine") == []
            assert pin_names(kept) == ["mine"]
            await store.close(), await tool.close()

        asyncio.run(pinned())


def test_pin_requests_outlive_the_server_and_are_seen_by_another_one(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    wish = {"cid": str(TREE.cid), "name": "first", "meta": {"app": "x"}}
    with served(kept, "--create", stop=signal.SIGTERM) as url:
        status, made = ask(url, "/psa/pins", "POST", wish)
        assert (status, made["status"]) == (202, "queued")
    asyncio.run(open_provider(f"directory:{kept}").put_car(TREE.cid, TREE.blocks, name="n"))
    with served(kept) as one, served(kept) as two:
        for url in (one, two):
            status, again = ask(url, f"/psa/pins/{made['requestid']}")
            assert status == 200 and again["status"] == "pinned" and again["pin"] == wish
            assert again["created"] == made["created"]
        assert pin_names(kept) == ["psa:first"]
        assert ask(one, "/psa/pins", "POST", {"cid": str(TREE.cid), "name": "second"})[0] == 202
        assert ask(two, "/psa/pins")[1]["count"] == 2
        assert ask(two, f"/psa/pins/{made['requestid']}", "DELETE")[0] == 202
        assert ask(one, f"/psa/pins/{made['requestid']}")[0] == 404
        assert ask(one, "/psa/pins")[1]["count"] == 1
        assert pin_names(kept) == ["psa:second"]


def test_invalid_pin_requests_are_refused(tmp_path: Path) -> None:
    with served(tmp_path / "kept", "--create") as url:
        cbor = "bafyreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
        status, answer = ask(url, "/psa/pins", "POST", {"cid": cbor})
        assert status == 400 and "neither raw nor dag-pb" in answer["error"]["details"]
        for bad in ("../x", "..%2Fx", "0" * 31, "x" * 32, "%00"):
            assert ask(url, f"/psa/pins/{bad}")[0] == 404
        assert ask(url, "/psa/pins", "POST", {"cid": str(TREE.cid), "meta": {"x": "y" * 300_000}})[0] == 413
        assert ask(url, "/psa/pins")[1]["count"] == 0


def test_vault_and_pinning_service_share_a_peer(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with served(kept, "--create") as url:
        days = [0]
        world = Environment(lambda: int(time.time() * 1000) + days[0] * 86_400_000, os.urandom)
        a = device(tmp_path / "a", peer(url), service(url), environment=world)
        for n in range(3):
            a.write("k", f"text {n}")
            asyncio.run(a.sync())
        roots = pinned_roots(kept, "")
        assert len(roots) >= 3 and pinned_roots(kept, "psa:") >= roots, "what the peer took is pinned as well"
        days[0] = 3
        done = asyncio.run(a.maintenance.gc(keep_roots=1, keep_days=1))
        assert not done.problems and set(done.freed) == {f"peer:{url}"}
        left = pinned_roots(kept, "")
        assert left < roots and pinned_roots(kept, "psa:") & roots == left
        b = device(tmp_path / "b", service(url), peer(url))
        assert b.read("k").file.body == "text 2"  # type: ignore[union-attr]


def test_folder_is_served_twice_and_used_directly_at_the_same_time(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    with served(kept) as one, served(kept) as two:
        ways = [peer(one), peer(two), open_provider(f"directory:{kept}")]
        first = device(tmp_path / "0", ways[0])
        asyncio.run(first.sync())
        devices = [first, *(device(tmp_path / str(n), way) for n, way in enumerate(ways[1:], 1))]

        async def all_at_once() -> None:
            await asyncio.gather(*(each.sync() for each in devices))

        for turn in range(3):
            for number, each in enumerate(devices):
                each.write(f"k{number}", f"turn {turn}")
            asyncio.run(all_at_once())
        for _ in range(2):
            for each in devices:
                asyncio.run(each.sync())
        keys = {f"k{number}": "turn 2" for number in range(3)}
        for each in devices:
            assert {key: each.read(key).file.body for key in keys} == keys  # type: ignore[union-attr]


def test_peer_requires_the_token_for_pins_and_writes(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with served(kept, "--create", token=f"  {TOKEN}\n") as url:
        assert ask(url, "/psa/pins")[0] == 200, "what ends a line in a file is no part of a token"
        for path in ("/psa/pins", "/psa/", "/psa/x"):
            assert ask(url, path, token="")[0] == 401
            assert ask(url, path, token=TOKEN + "x")[0] == 401
            assert ask(url, path, Host="evil.example")[0] == 421
        assert ask(url, "/collect", "POST", token="")[0] == 401
        assert ask(url, "/pins?name=psa:photos", token="")[0] == 401, (
            "names that people choose can be guessed"
        )
        assert ask(url, "/pins?name=psa:photos")[0] == 200 == ask(url, "/pins?name=photos", token="")[0]
        assert ask(url, f"/ipfs/{TREE.cid}?format=raw", Host="evil.example")[0] == 421
        with pytest.raises(ProviderRefused, match="401"):
            asyncio.run(peer(url, "another token").put_car(TREE.cid, TREE.blocks, name="n"))
    with served(kept, token="") as url:
        for path in ("/psa", "/psa/pins", "/psa/pins/x"):
            assert ask(url, path)[0] == 403
        assert ask(url, "/collect", "POST")[0] == 403
    assert not (kept / "packs").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
def test_serving_other_machines_requires_a_host_name(bare: Cli, tmp_path: Path, host: str) -> None:
    said = bare.fails(3, "serve", "peer", str(tmp_path / "kept"), "--create", "--host", host, "--port", "0")
    assert host in said.err and f"--host {host} --name HOST" in said.err
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("port", "why"),
    [
        ("70000", "must be 0-65535 (got 70000)"),
        ("-1", "must be 0-65535 (got -1)"),
        ("http", "must be a whole number, 0-65535 (got 'http')"),
    ],
)
def test_invalid_port_is_refused_with_its_range(bare: Cli, tmp_path: Path, port: str, why: str) -> None:
    said = bare.fails(2, "serve", "peer", str(tmp_path), "--port", port).err
    assert why in said and "0-65535" in said and "range" not in said


@pytest.mark.skipif(os.name == "nt", reason="other rights there")
def test_read_only_folder_is_served_for_reading(tmp_path: Path) -> None:
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root may write everywhere, and there is no setpriv")
    other = f"--reuid={NOBODY} --regid={NOBODY} --clear-groups".split()
    before = ("setpriv", *other) if os.geteuid() == 0 else ()
    with tempfile.TemporaryDirectory() as name:
        kept = Path(name)
        asyncio.run(open_provider(f"directory:{kept}").put_car(TREE.cid, TREE.blocks, name="n"))
        for path in (kept / "packs", kept):
            path.chmod(0o555)
        try:
            with served(kept, before=before) as url:
                assert asyncio.run(peer(url).get_blocks([TREE.cid]))
                status, answer = ask(url, "/pins", "POST", {"cid": str(TREE.cid), "name": "n"})
                assert status == 503 and "no permission" in answer["error"]["details"]
                status, answer = ask(url, "/psa/pins", "POST", {"cid": str(TREE.cid)})
                assert status == 507 and "permission denied" in answer["error"]["details"]
                assert ask(url, "/psa/pins?status=queued")[1]["count"] == 0
        finally:
            kept.chmod(0o755)
            (kept / "packs").chmod(0o755)


def test_ctrl_c_during_an_upload_leaves_no_partial_file(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with served(kept, "--create") as url:
        place = urlsplit(url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        connection.putrequest("POST", f"/car?root={TREE.cid}&name=n")
        connection.putheader("Authorization", f"Bearer {TOKEN}")
        connection.putheader("Content-Length", "100000")
        connection.endheaders(b"half of it")
        assert ask(url, "/pins?name=n")[0] == 200
    connection.close()
    assert not list(kept.rglob("*"))


def test_peer_token_is_shown_once_and_never_on_the_command_line(tmp_path: Path) -> None:
    """Command lines are visible to every user in the process list."""
    shown = set()
    for n, how in enumerate((["--new-token"], ["--new-token"], ["--token-fd", "0"])):
        server = subprocess.Popen(
            [*SERVE, str(tmp_path / "kept"), "--create", "--port", "0", "--json", *how],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "IPFSMEM_SERVE_TOKEN": ""},
        )  # fmt: skip
        try:
            assert server.stdin is not None and server.stdout is not None
            server.stdin.write(f"{TOKEN}\n")
            server.stdin.close()
            said = json.loads(server.stdout.readline())
            token = said.get("token", TOKEN)
            shown.add(token)
            assert said["writes"] and ("token" in said) == (n < 2) and len(token) >= 16
            command = Path(f"/proc/{server.pid}/cmdline")
            assert not command.exists() or token.encode() not in command.read_bytes()
            for given, allowed in ((token, True), ("another token of nobody", False)):
                store = peer(said["url"], given)
                try:
                    asyncio.run(store.put_car(TREE.cid, TREE.blocks, name="n"))
                    assert allowed
                except ProviderRefused:
                    assert not allowed
        finally:
            server.kill()
            server.wait()
    assert len(shown) == 3


def test_invalid_serve_calls_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for folder, more, said in (
            (".", ["--token-fd", "0"], "at least 16 characters"),
            (".", ["--token-fd", "0", "--new-token"], "exclude each other"),
            (".", ["--token", "a long random text"], "No such option"),
            (".", ["--host", "0.0.0.0"], "can be reached from other machines"),
            (".", ["--port", str(taken.getsockname()[1])], "another program uses it"),
            ("stick", [], "there is no folder"),
            ("file", ["--create"], "is not a folder"),
        ):
            done = subprocess.run(
                [*SERVE, str(tmp_path / folder), *([] if "--port" in more else ["--port", "0"]), *more],
                capture_output=True, text=True, timeout=PATIENCE, check=False, input=f"{'x' * 15}\n",
            )  # fmt: skip
            assert done.returncode not in (0, 70) and said in done.stderr, done.stderr
            assert len(done.stderr.splitlines()) <= 2
