"""A peer and its server: refused requests, the forms of answers, and false answers detected by the client."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from aiohttp import web
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.peer import PeerProvider

from ipfsmem.content.car import car_bytes, header, read_car, section
from ipfsmem.content.cid import CID, parse_cid, raw_cid
from ipfsmem.content.limits import Limits
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ConfigError, ProviderRefused, ProviderUnavailable
from ipfsmem.http import blocks as serving
from ipfsmem.loopback import LOCAL_HOSTS, host_of, is_loopback
from ipfsmem.provider.contract import open_provider
from ipfsmem.provider.small_objects import small_name
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.testing.simulator import FULL
from tests.servers.clockwork import Clockwork
from tests.servers.threaded import serve
from tests.support.provider_lab import run

TOKEN = "open sesame 12"
TREE = build_tree({"a.md": b"one", "sub/b.md": b"two", "big.bin": bytes(3 << 20)})
BLOCKS = dict(TREE.blocks)
MANY = build_tree({f"many/entry_{n:06d}": b"x" for n in range(5000)})


def raw(data: bytes) -> tuple[CID, bytes]:
    return raw_cid(hashlib.sha256(data).digest()), data


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def error(self) -> str:
        found: str = json.loads(self.body)["error"]["reason"]
        return found


def ask(url: str, path: str, method: str = "GET", body: Any = None, **headers: str) -> Answer:
    parts = urlsplit(url)
    assert parts.hostname
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    shown = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    connection.request(method, path, body=body, headers=shown)
    try:
        return Answer(connection.getresponse())
    finally:
        connection.close()


@pytest.fixture
def cloud() -> SimCloud:
    cloud = SimCloud()
    cloud.blocks.update(BLOCKS)
    cloud.blocks.update(MANY.blocks)
    return cloud


@pytest.fixture
def url(cloud: SimCloud) -> Iterator[str]:
    with serve(lambda: serving.app(SimProvider(cloud), token=TOKEN, car_max=1 << 20)) as url:
        yield url


AUTH = {"Authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "[::2]:1", "localhost.x"]
)
def test_request_with_a_foreign_host_name_is_refused(url: str, host: str) -> None:
    answer = ask(url, f"/ipfs/{TREE.cid}?format=raw", Host=host)
    assert answer.status == 421 and answer.error == "WRONG_HOST"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:99", "LOCALHOST", "[::1]:4880", "localhost."])
def test_loopback_host_names_are_accepted(url: str, host: str) -> None:
    assert ask(url, f"/ipfs/{TREE.cid}?format=raw", Host=host).status == 200


def test_configured_host_name_is_accepted(cloud: SimCloud) -> None:
    with serve(lambda: serving.app(SimProvider(cloud), hosts=frozenset({"Memory.example"}))) as url:
        assert ask(url, f"/ipfs/{TREE.cid}?format=raw", Host="memory.example:8080").status == 200
        assert ask(url, f"/ipfs/{TREE.cid}?format=raw").status == 421


WRITES = [
    ("POST", f"/car?root={TREE.cid}&name=n"), ("POST", "/pins"), ("DELETE", f"/pins?cid={TREE.cid}&name=n"),
    ("PUT", "/routing/v1/ipns/k51qzi5uqu5dl2hq2hm5m29sdq1lum0kb0lmyqsowicmrmxzxywwgxhy6ymrdv"),
    ("POST", "/unpin"), ("POST", "/collect"), ("GET", "/listing"), ("PUT", f"/small/{'0' * 16}/a.{'0' * 64}"),
    ("POST", "/small/remove"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), WRITES)
@pytest.mark.parametrize(
    "given", [None, "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer é"]
)
def test_writes_require_the_token(
    url: str, cloud: SimCloud, method: str, path: str, given: str | None
) -> None:
    before = len(cloud.blocks)
    headers = {} if given is None else {"Authorization": given}
    answer = ask(url, path, method, b"x", **headers)
    assert answer.status == 401 and TOKEN.encode() not in answer.body
    assert len(cloud.blocks) == before and cloud.pins == []


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_server_without_a_token_refuses_writes(cloud: SimCloud, method: str, path: str) -> None:
    with serve(lambda: serving.app(SimProvider(cloud))) as url:
        assert ask(url, path, method, b"x", Authorization="Bearer ").status == 403


def test_raw_blocks_are_served(url: str) -> None:
    for asked in (
        ask(url, f"/ipfs/{TREE.cid}?format=raw"),
        ask(url, f"/ipfs/{TREE.cid}", Accept="text/html, application/vnd.ipld.raw;q=0.9"),
        ask(url, f"/ipfs/{TREE.cid}?format=raw", Accept="application/vnd.ipld.car"),
    ):
        assert (asked.status, asked.body) == (200, BLOCKS[TREE.cid])
        assert asked.headers["Content-Type"] == "application/vnd.ipld.raw"
        assert asked.headers["Etag"] == f'"{TREE.cid}.raw"' and "immutable" in asked.headers["Cache-Control"]
        assert asked.headers["X-Content-Type-Options"] == "nosniff"
        assert asked.headers["Access-Control-Allow-Origin"] == "*"
    head = ask(url, f"/ipfs/{TREE.cid}?format=raw", "HEAD")
    assert (head.status, head.body) == (200, b"") and int(head.headers["Content-Length"]) == len(
        BLOCKS[TREE.cid]
    )
    assert ask(url, f"/ipfs/{TREE.cid}?format=raw", If_None_Match=f'"{TREE.cid}.raw"').status == 304
    assert ask(url, "/ipfs/bafkqaaa?format=raw").body == b""  # the probe of the gateway specification


def test_missing_or_unserved_content_is_answered_by_its_status(url: str) -> None:
    missing = raw(b"missing")[0]
    assert ask(url, f"/ipfs/{missing}?format=raw").status == 404
    assert ask(url, f"/ipfs/{missing}?format=car").status == 404
    assert ask(url, f"/ipfs/{missing}?format=raw", Cache_Control="only-if-cached").status == 412
    assert ask(url, f"/ipfs/{TREE.cid}?format=raw", Cache_Control="only-if-cached").status == 200
    assert ask(url, f"/ipfs/{TREE.cid}").status == 400  # neither format nor Accept
    assert ask(url, f"/ipfs/{TREE.cid}?format=html").status == 406
    assert ask(url, "/ipfs/nonsense?format=raw").status == 400
    assert ask(url, f"/ipfs/{TREE.cid}?format=car&dag-scope=x").status == 400
    assert ask(url, f"/ipfs/{TREE.cid}/a.md?format=raw").status == 400
    assert ask(url, "/ipns/nonsense?format=ipns-record").status == 400
    assert ask(url, "/ipns/k51qzi5uqu5dl2hq2hm5m29sdq1lum0kb0lmyqsowicmrmxzxywwgxhy6ymrdv").status == 400
    assert ask(url, "/pins").status == 400 and ask(url, "/").status == 404
    wrong = ask(url, "/car")
    assert (wrong.status, wrong.error) == (405, "METHOD_NOT_ALLOWED")


def cids(url: str, root: CID, scope: str) -> list[CID]:
    answer = ask(url, f"/ipfs/{root}?format=car&dag-scope={scope}")
    assert answer.headers["Content-Type"].startswith("application/vnd.ipld.car")
    reader = read_car(answer.body)
    assert reader.roots == (root,)
    return [cid for cid, _ in reader]


def cut_short(url: str, root: CID) -> list[CID]:
    """Return the blocks of a tree that cannot be sent completely: the answer breaks off."""
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(url, f"/ipfs/{root}?format=car")
    return [cid for cid, _ in read_car(caught.value.partial)]


def test_cars_of_each_scope_have_their_blocks(url: str) -> None:
    everything = cids(url, TREE.cid, "all")
    assert set(everything) == set(BLOCKS) and len(everything) == len(BLOCKS) and everything[0] == TREE.cid
    assert cids(url, TREE.cid, "block") == cids(url, TREE.cid, "entity") == [TREE.cid]
    big = next(
        cid
        for cid, data in BLOCKS.items()
        if cid.codec == 0x70
        and len(data) < 200
        and cid not in (TREE.cid,)
        and len(cids(url, cid, "entity")) > 1
    )
    assert len(cids(url, big, "entity")) >= 2  # a file includes its chunks
    shard = next(link for link in MANY.blocks if link[0] != MANY.cid and len(link[1]) > 5000)[0]
    many = cids(url, MANY.cid, "all")
    assert set(many) == {cid for cid, _ in MANY.blocks} and shard in many


def test_entity_of_a_sharded_folder_has_its_shards(url: str) -> None:
    from ipfsmem.content.dagpb import decode_node

    [link] = decode_node(dict(MANY.blocks)[MANY.cid]).links
    entity = cids(url, link.cid, "entity")
    assert len(entity) > 100 and all(cid.codec == 0x70 for cid in entity)


def test_damaged_blocks_are_not_served(cloud: SimCloud) -> None:
    store = SimProvider(cloud)
    leaf = next(cid for cid in BLOCKS if cid.codec == 0x55)
    store.faults.instead = {leaf: b"other"}
    with serve(lambda: serving.app(store)) as url:
        assert ask(url, f"/ipfs/{leaf}?format=raw").status == 404
        assert leaf not in cut_short(url, TREE.cid)
        store.faults.offline = True
        answer = ask(url, f"/ipfs/{leaf}?format=raw")
        assert answer.status == 503 and answer.error == "ProviderUnavailable"


def test_invalid_car_is_refused_completely(url: str, cloud: SimCloud) -> None:
    good, other = raw(b"good"), raw(b"other")
    head = header([good[0]])
    before = dict(cloud.blocks)
    path = f"/car?root={good[0]}&name=n"
    for body in (
        b"", b"nonsense", head[:-3], head + section(*good)[:-1], head + section(*good) + section(other[0], b"not it"),
        head + section(*good) + b"\0", head + section(*good) + b"\x81\x00",
    ):  # fmt: skip
        assert ask(url, path, "POST", body, **AUTH).status == 400
    assert ask(url, path, "POST", car_bytes([good[0]], [good, raw(bytes(1 << 20))]), **AUTH).status == 413
    assert ask(url, "/car?root=nonsense", "POST", head, **AUTH).status == 400
    assert cloud.blocks == before
    answer = ask(url, path, "POST", car_bytes([good[0]], [good]), **AUTH)
    assert json.loads(answer.body) == {"root": str(good[0])} and good[0] in cloud.blocks


def test_car_of_unknown_length_is_bounded(url: str) -> None:
    def endless() -> Iterator[bytes]:
        yield header([TREE.cid])
        for n in range(64):
            yield section(*raw(n.to_bytes(4, "big") * 16384))

    assert ask(url, f"/car?root={TREE.cid}", "POST", endless(), **AUTH).status == 413


def test_lists_of_cids_are_bounded(url: str) -> None:
    for path in ("/has", "/blocks"):
        assert ask(url, path, "POST", {"cids": [str(TREE.cid)] * 10_001}).status == 413
        assert ask(url, path, "POST", b"[" * 5000).status == 400
        assert ask(url, path, "POST", {"cids": ["nonsense"]}).status == 400
        assert ask(url, path, "POST", {"other": 1}).status == 400
        assert ask(url, path, "POST", b" " * (3 << 20)).status == 413


def test_loopback_hosts_are_recognised() -> None:
    assert host_of("[::1]:80") == "[::1]" and host_of("A.b:1") == "a.b" and host_of("") == ""
    assert host_of("[::1].evil.example") not in LOCAL_HOSTS
    assert is_loopback("127.0.0.5") and is_loopback("::1") and is_loopback("localhost")
    assert not is_loopback("0.0.0.0") and not is_loopback("example.com")


# -- the client ----------------------------------------------------------------------------------------------------


def lying(answers: dict[str, web.Response]) -> Any:
    async def handle(request: web.Request) -> web.Response:
        given = answers[f"{request.method} /{request.path.split('/')[1]}"]
        return web.Response(status=given.status, body=given.body, headers=given.headers)

    def make() -> web.Application:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", handle)
        return app

    return make


def test_false_answers_of_a_peer_are_detected() -> None:
    wanted, other = raw(b"wanted"), raw(b"other")
    pin = {"cid": str(wanted[0]), "name": "another", "handle": "h", "created": 1}
    answers = {
        "POST /has": web.json_response({"cids": [str(other[0]), "nonsense"]}),
        "POST /blocks": web.Response(body=car_bytes([], [other, wanted])),
        "POST /car": web.json_response({"root": "nonsense"}),
        "GET /pins": web.json_response({"pins": [pin]}),
        "POST /pins": web.json_response({"pins": []}),
    }
    with serve(lying(answers)) as url:
        provider = PeerProvider(url, {"timing": Clockwork().timing})
        assert run(provider, provider.has([wanted[0]])) == set()
        assert run(provider, provider.get_blocks([wanted[0]])) == dict(
            [wanted]
        )  # the other block was not requested
        with pytest.raises(ProviderRefused, match="invalid CID"):
            run(provider, provider.put_car(wanted[0], [wanted], name="n"))
        assert run(provider, provider.pins("mine")) == []
        with pytest.raises(ProviderUnavailable, match="unexpected"):
            run(provider, provider.pin(wanted[0], "n"))
        answers["POST /blocks"] = web.Response(body=header([]) + section(wanted[0], b"not it"))
        with pytest.raises(ProviderRefused, match="bad CAR"):
            run(provider, provider.get_blocks([wanted[0]]))
        answers["POST /blocks"] = web.Response(body=header([]) + section(*wanted)[:-1])
        with pytest.raises(ProviderRefused, match="bad CAR"):
            run(provider, provider.get_blocks([wanted[0]]))


def test_wrong_token_is_explained(url: str) -> None:
    provider = PeerProvider(url, {"peer_token": "not the one"})
    block = raw(b"x")
    with pytest.raises(ProviderRefused, match="401") as caught:
        run(provider, provider.put_car(block[0], [block], name="n"))
    assert "not the one" not in str(caught.value) and "token" in caught.value.hint


def test_served_tree_is_bounded(cloud: SimCloud) -> None:
    with serve(lambda: serving.app(SimProvider(cloud), limits=Limits(blocks=3))) as url:
        assert len(cut_short(url, TREE.cid)) == 3


def test_peer_provider_is_opened_by_its_address(tmp_path: Path) -> None:
    assert open_provider("peer:http://127.0.0.1:4880/").name == "peer:http://127.0.0.1:4880"
    assert open_provider("peer", {"peer_url": "https://x"}).name == "peer:https://x"
    for spec in ("peer", "peer:x", "peer:ftp://x"):
        with pytest.raises(ConfigError):
            open_provider(spec)


def test_whole_tree_is_stored_and_read_through_a_peer(tmp_path: Path) -> None:
    async def body(provider: PeerProvider) -> None:
        assert await provider.put_car(MANY.cid, iter(MANY.blocks), name="n") == MANY.cid
        tree = [block async for block in provider.get_dag(MANY.cid)]
        assert dict(tree) == dict(MANY.blocks) and len(tree) == len(dict(MANY.blocks))
        wanted = [cid for cid, _ in MANY.blocks]
        assert await provider.get_blocks(wanted) == dict(MANY.blocks)
        assert await provider.has(wanted) == set(wanted)
        assert [block async for block in provider.get_dag(parse_cid(str(raw(b"no")[0])))] == []

    with serve(lambda: serving.app(DirectoryProvider(tmp_path), token=TOKEN)) as url:
        provider = PeerProvider(url, {"peer_token": TOKEN})
        run(provider, body(provider))


def test_store_without_small_objects_differs_from_an_empty_box() -> None:
    plain = SimProvider(SimCloud(), capabilities=msgspec.structs.replace(FULL, small=False))

    async def body(url: str) -> None:
        provider = PeerProvider(url, {"peer_token": TOKEN})
        data = b"small"
        name = small_name("0" * 16, "a", data)
        for call in (
            provider.put_small(name, data),
            provider.list_small(["0" * 16]),
            provider.get_small([name]),
            provider.remove_small([name]),
        ):
            with pytest.raises(ProviderRefused):
                await call
        await provider.close()

    with serve(lambda: serving.app(plain, token=TOKEN)) as url:
        asyncio.run(body(url))


def test_small_objects_of_a_lying_peer_are_left_out() -> None:
    class Lying(SimProvider):
        async def list_small(self, boxes: Collection[str]) -> dict[str, int]:
            return {"../etc/passwd": 1, **await super().list_small(["0" * 16])}

        async def get_small(self, names: Sequence[str]) -> dict[str, bytes]:
            return dict.fromkeys(names, b"other") | {small_name("1" * 16, "x", b"more"): b"more"}

    async def body(url: str) -> None:
        provider = PeerProvider(url, {"peer_token": TOKEN})
        name = small_name("0" * 16, "a", b"small")
        await provider.put_small(name, b"small")
        assert await provider.list_small(["1" * 16]) == {}
        assert await provider.list_small(["0" * 16]) == {name: 5}
        with pytest.raises(ProviderRefused, match="bad CAR"):
            await provider.get_small([name])
        await provider.close()

    with serve(lambda: serving.app(Lying(SimCloud()), token=TOKEN)) as url:
        asyncio.run(body(url))
