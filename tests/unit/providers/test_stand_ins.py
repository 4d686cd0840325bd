"""The stand-ins of hosted services are as strict as the documentation: tests/servers/README.md, row by row.

These tests cover the rows that no provider's own test covers. They use no provider of ours: a request as
documented, and the documented answer."""

from __future__ import annotations

import ast
import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ipfsmem.content.car import car_bytes, header, section
from ipfsmem.content.cid import ipns_name, raw_cid
from ipfsmem.errors import ProviderRefused
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519
from tests.servers import pinata
from tests.servers.kubo import FakeKubo
from tests.servers.threaded import serve
from tests.unit.providers.services_lab import Account, account, tree

TESTS = Path(__file__).parents[2]
TEXT = (TESTS / "servers" / "README.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and not line.startswith(("| clause", "| ---"))
]


@cache
def functions(path: Path) -> frozenset[str]:
    """Names of the test functions of a module."""
    return frozenset(
        node.name
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    )


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:40] for row in ROWS])
def test_each_clause_has_a_source_and_a_test(row: list[str]) -> None:
    clause, source, stand_in, tests = row
    assert clause and stand_in and re.search(r"\d|–|the same", source), row
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", tests)
    assert named and len(named) == tests.count("::"), row
    for file, function in named:
        path = TESTS.parent / file if "/" in file else Path(__file__).parent / file
        assert function in functions(path), f"{file} has no {function}"


def test_each_simulated_service_has_a_page() -> None:
    assert len(ROWS) > 35
    for service in ("Pinata", "Filebase", "Kubo", "Pinning Service API", "w3up"):
        assert re.search(rf"^## {service}", TEXT, re.M), service


def ask(method: str, url: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> tuple[int, str]:
    """Return status and text of one plain request."""

    async def body() -> tuple[int, str]:
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.request(method, url, **more) as answer,
        ):
            return answer.status, await answer.text()

    return asyncio.run(body())


def form(*files: tuple[str, bytes], **fields: str) -> aiohttp.FormData:
    made = aiohttp.FormData()
    for name, value in fields.items():
        made.add_field(name, value)
    for name, data in files:
        made.add_field("file", data, filename=name)
    return made


# -- Pinata ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def at() -> Iterator[Account]:
    with account("pinata-car") as made:
        yield made


def upload(at: Account, data: aiohttp.FormData, **headers: str) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {pinata.ADMIN_KEY}", **headers}
    return ask("POST", f"{at.url}/v3/files", headers=headers, data=data)


def test_simulated_pinata_upload_is_private_by_default(at: Account) -> None:
    status, text = upload(at, form(("a.txt", b"a"), name="n"))
    assert (status, json.loads(text)["data"]["network"]) == (200, "private")
    listed = ask("GET", f"{at.url}/v3/files/public", headers={"Authorization": f"Bearer {pinata.V3_KEY}"})
    assert json.loads(listed[1])["data"]["files"] == []


def test_simulated_pinata_accepts_cars_on_paid_plans(at: Account) -> None:
    good = car_bytes([tree().cid], tree().blocks)
    two = header([tree().cid, raw_cid(bytes(32))]) + b"".join(section(*block) for block in tree().blocks)
    assert upload(at, form(("a.car", good), network="public", car="true"))[0] == 200
    assert upload(at, form(("a.car", good), network="private", car="true"))[0] == 400
    assert upload(at, form(("a.car", two), network="public", car="true"))[0] == 400
    assert upload(at, form(("a.car", good[:-1]), network="public", car="true"))[0] == 400
    at.server.paid = False
    assert upload(at, form(("a.car", good), network="public", car="true"))[0] == 403


def test_simulated_pinata_limits_request_sizes(at: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (pinata.REQUEST_MAX, pinata.PATCH_MAX) == (100_000_000, 52_428_801)
    monkeypatch.setattr(pinata, "REQUEST_MAX", 1000)
    monkeypatch.setattr(pinata, "PATCH_MAX", 1000)
    assert upload(at, form(("a.txt", bytes(2000))))[0] == 413
    headers = {
        "Authorization": f"Bearer {pinata.V3_KEY}",
        "Upload-Length": "2000",
        "Upload-Metadata": "filename YQ==",
    }
    assert ask("POST", f"{at.url}/v3/files", headers=headers)[0] == 201
    [number] = at.server.uploads
    piece = {**headers, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
    assert ask("PATCH", f"{at.url}/v3/files/tus/{number}", headers=piece, data=bytes(1001))[0] == 413
    assert ask("PATCH", f"{at.url}/v3/files/tus/{number}", headers=piece, data=bytes(1000))[0] == 204


def test_simulated_pinata_limits_keyvalues(at: Account) -> None:
    for bad in ({"a": 1}, {"a": {}}, [1], {str(n): "x" for n in range(11)}):
        assert upload(at, form(("a.txt", b"a"), keyvalues=json.dumps(bad)))[0] == 400, bad
    assert upload(at, form(("a.txt", b"a"), keyvalues=json.dumps({str(n): "x" for n in range(10)})))[0] == 200


# -- Filebase --------------------------------------------------------------------------------------------------------


def test_simulated_filebase_refuses_a_wrong_clock() -> None:
    """More than a quarter of an hour."""
    with account("filebase-s3") as at:
        for ahead, taken in ((-3 * 3600, False), (3 * 3600, False), (600, True)):
            at.server.ahead = ahead
            if taken:
                assert asyncio.run(at.open().pins("n")) == []
                continue
            with pytest.raises(ProviderRefused, match="clock") as caught:
                asyncio.run(at.open().pins("n"))
            assert "Set the clock" in str(caught.value.hint)


class Sent:
    """Bytes that claim to be a CAR, as the provider sends one."""

    content_type = "application/vnd.ipld.car"

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.sha256 = hashlib.sha256(data).digest()

    async def pieces(self) -> AsyncIterator[bytes]:
        yield self.data


def test_simulated_filebase_reads_cars_strictly() -> None:
    with account("filebase-s3") as at:
        bucket: Any = at.open()._bucket  # type: ignore[attr-defined]
        cid, data = tree().blocks[0]
        for bad in (
            b"no car",
            car_bytes([cid], tree().blocks)[:-3],
            header([cid]) + section(cid, data + b"x"),
        ):
            with pytest.raises(ProviderRefused, match="InvalidCar"):
                asyncio.run(bucket.put(cid, Sent(bad), "n"))
        assert at.server.cids == {}


@pytest.mark.parametrize("wish", [
    {}, {"cid": 7}, {"cid": "no cid"}, [], {"cid": str(tree().cid), "name": "x" * 256},
    {"cid": str(tree().cid), "origins": ["/a"] * 2}, {"cid": str(tree().cid), "origins": [f"/{n}" for n in range(21)]},
    {"cid": str(tree().cid), "meta": {"a": 1}},
])  # fmt: skip
def test_simulated_pinning_service_refuses_invalid_requests(wish: Any) -> None:
    with account("filebase-rpc") as at:
        token = at.open()._https[1]._auth  # type: ignore[attr-defined]
        pins = f"{at.url}/v1/ipfs/pins"
        assert ask("POST", pins, headers=token, json=wish)[0] == 400
        assert at.server.pins == {}
        for query in ("limit=0", "limit=1001", "limit=x", "status=done", "match=some", "name=" + "x" * 256, "page=2",
                      "cid=" + ",".join(["a"] * 11)):  # fmt: skip
            assert ask("GET", f"{pins}?{query}", headers=token)[0] == 400, query


# -- Kubo ------------------------------------------------------------------------------------------------------------

NAME = ipns_name(Signer25519(b"\x07" * 32).public)


@pytest.fixture
def kubo() -> FakeKubo:
    return FakeKubo()


@pytest.fixture
def rpc(kubo: FakeKubo) -> Iterator[str]:
    with serve(kubo.app) as url:
        yield f"{url}/api/v0"


def test_simulated_kubo_accepts_only_posts_of_programs(rpc: str) -> None:
    assert ask("GET", f"{rpc}/version")[0] == 405
    for name in ("Origin", "Referer"):
        assert ask("POST", f"{rpc}/version", headers={name: "http://page.example"})[0] == 403
    assert ask("POST", f"{rpc}/version")[0] == 200


def test_simulated_kubo_fails_like_kubo(rpc: str) -> None:
    assert ask("POST", f"{rpc}/no/such/command")[0] == 404
    status, text = ask("POST", f"{rpc}/pin/rm?arg={tree().cid}")
    assert status == 500 and json.loads(text) == {
        "Message": "not pinned or pinned indirectly", "Code": 0, "Type": "error",
    }  # fmt: skip


def test_simulated_kubo_verifies_records(rpc: str, kubo: FakeKubo) -> None:
    def put(record: bytes) -> tuple[int, str]:
        return ask("POST", f"{rpc}/name/put?arg={NAME}", data=form(("record", record)))

    def record(sequence: int, seed: bytes = b"\x07" * 32) -> bytes:
        return ipns_record.make_record(seed, "/ipfs/bafkqaaa", sequence, 2_000_000_000_000_000_000)

    assert put(record(5))[0] == put(record(5))[0] == 200  # the same record again refreshes it
    for bad, words in ((record(4), "existing IPNS record has sequence 5 >= new record sequence 4"), (b"", "empty"),
                       (record(6, b"\x08" * 32), "signature verification failed"), (bytes(10_241), "maximum size")):  # fmt: skip
        status, text = put(bad)
        assert status == 500 and words in json.loads(text)["Message"]
    assert kubo.records == kubo.network == {NAME: record(5)}


def test_simulated_kubo_respects_a_timeout(rpc: str, kubo: FakeKubo) -> None:
    kubo.delay = 5.0
    status, text = ask("POST", f"{rpc}/name/get?arg={NAME}&timeout=1s")
    assert status == 500 and "deadline exceeded" in text
    assert "not found" in ask("POST", f"{rpc}/name/get?arg={NAME}&offline=true")[1]  # and asks nobody
