"""A w3up service that fails, lies or sends junk: `web3storage` reports it, reaches nothing else, and continues."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiohttp import web
from ipfsmem_providers.http.policy import Retry
from ipfsmem_providers.web3storage import Web3Storage, dag_cbor, ucan
from ipfsmem_providers.web3storage.shards import make_index, shard_cid
from ipfsmem_providers.web3storage.ucan import Ability, Signer
from ipfsmem_providers.web3storage.uploads import IndexKind, mark_of, tag_of

from ipfsmem.content.car import car_bytes, header, read_car, section
from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.errors import ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import Block, Pin
from tests.servers.threaded import serve
from tests.support import ucan_lab
from tests.support.hints import Refused

SPACE, SEED = Signer(b"\x07" * 32), b"\x07" * 32
NODE = Signer(b"\x09" * 32)
DID = "did:web:liar.example"
DATA = b"hello"
ROOT = raw_cid(hashlib.sha256(DATA).digest())
OTHER = raw_cid(hashlib.sha256(b"another").digest())

#: The service's answer to one invocation: `out` of the receipt, forked tasks, other blocks.
Result = tuple[dict[str, Any], list[CID], list[Block]]


def made(value: Any) -> Block:
    return ucan._block(value)


def outcome(ran: CID, out: dict[str, Any], forks: list[CID]) -> Block:
    ocm = {"ran": ran, "out": out, "fx": {"fork": forks}, "meta": {}, "iss": NODE.did, "prf": []}
    return made({"ocm": ocm, "sig": NODE.sign(dag_cbor.encode(ocm))})


def message(answers: dict[CID, Result]) -> bytes:
    blocks, report = [], {}
    for cid, (out, forks, more) in answers.items():
        receipt = outcome(cid, out, forks)
        report[str(cid)] = receipt[0]
        blocks += [receipt, *more]
    root = made({ucan.MESSAGE: {"report": report}})
    return car_bytes([root[0]], [*blocks, root])


class Liar:
    """A w3up service with scripted answers."""

    def __init__(self) -> None:
        self.handlers: dict[str, Callable[[Any], Result]] = {}
        self.receipts: dict[str, bytes] = {}
        self.blobs: dict[str, bytes] = {}
        self.body: bytes | None = None
        self.status = 200
        self.asked: list[str] = []
        self.url = ""

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/", self.invoke)
        app.router.add_get("/receipt/{task}", self.receipt)
        app.router.add_route("*", "/blob/{name}", self.blob)
        return app

    async def invoke(self, request: web.Request) -> web.Response:
        body = await request.read()
        if self.body is not None:
            return web.Response(status=self.status, body=self.body)
        car = read_car(body)
        blocks = dict(car)
        execute = dag_cbor.decode(blocks[car.roots[0]])[ucan.MESSAGE]["execute"]
        answers = {}
        for cid in execute:
            ability = ucan.read_token(cid, blocks[cid]).abilities[0]
            self.asked.append(ability.can)
            answers[cid] = self.handlers[ability.can](ability.details)
        return web.Response(body=message(answers))

    async def receipt(self, request: web.Request) -> web.Response:
        found = self.receipts.get(request.match_info["task"])
        return web.Response(status=200 if found else 404, body=found)

    async def blob(self, request: web.Request) -> web.Response:
        if request.method == "PUT":
            await request.read()
            return web.Response()
        found = self.blobs.get(request.match_info["name"])
        return web.Response(status=200 if found is not None else 404, body=found)


@pytest.fixture
def liar() -> Iterator[Liar]:
    service = Liar()
    with serve(service.app) as url:
        service.url = url
        yield service


def provider(liar: Liar, **more: Any) -> Web3Storage:
    settings = {
        "w3up_principal": ucan_lab.format_signer(SPACE, SEED), "w3up_service_did": DID,
        "retry": Retry(attempts=2, first=0.001, most=0.002),
    }  # fmt: skip
    return Web3Storage(liar.url, settings | more)


def fails(call: Callable[[], Any], error: type[ProviderError], words: str = "") -> None:
    async def body() -> None:
        with pytest.raises(error, match=words):
            await call()

    asyncio.run(body())


@pytest.mark.parametrize(
    "body",
    [b"", b"<html><title>Sign in</title></html>", b"{}", os.urandom(5000), message({}), message({})[:-9]],
)
def test_invalid_answers_are_errors(liar: Liar, body: bytes) -> None:
    liar.body = body
    fails(lambda: provider(liar).pins("n"), ProviderUnavailable, "invalid message|no receipt")


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, ProviderRefused), (410, ProviderRefused), (429, ProviderUnavailable), (502, ProviderUnavailable)],
)
def test_each_error_status_has_its_error_class(liar: Liar, status: int, error: type[ProviderError]) -> None:
    liar.body, liar.status = b"no", status
    fails(lambda: provider(liar).pins("n"), error, str(status))


def test_endless_message_is_aborted(liar: Liar) -> None:
    liar.body = b"\x00" * (17 << 20)
    fails(lambda: provider(liar).pins("n"), ProviderRefused, "more than the 16,777,216 bytes")


def listing(*rows: Any, **more: Any) -> Callable[[Any], Result]:
    return lambda _: ({"ok": {"results": list(rows), "size": len(rows), **more}}, [], [])


@pytest.mark.parametrize(
    ("ok", "named"),
    [
        (None, "a page that is not a list"),
        (5, "a page that is not a list"),
        ([], "a page that is not a list"),
        ({}, "a page that is not a list"),
        ({"results": None}, "a page that is not a list"),
        ({"results": 7}, "a page that is not a list"),
        ({"results": [None]}, "None"),
        ({"results": [{"root": "x"}]}, "x"),
        ({"results": [{"shards": []}]}, "without a root"),
        ({"results": [{"root": ROOT, "shards": [5, "x", ROOT], "insertedAt": 7}]}, str(ROOT)),
        ({"results": [{"root": ROOT, "shards": None}]}, str(ROOT)),
        ({"results": [{"root": ROOT, "shards": 5}]}, str(ROOT)),
    ],
)
def test_unreadable_upload_list_entry_is_named_and_skipped(liar: Liar, ok: Any, named: str) -> None:
    good = {"root": OTHER, "shards": [tag_of("n")], "insertedAt": "2026-01-01T00:00:00.000Z"}
    if isinstance(ok, dict) and isinstance(ok.get("results"), list):
        ok = {"results": [*ok["results"], good]}
    liar.handlers["upload/list"] = lambda _: ({"ok": ok}, [], [])
    there = provider(liar)
    found = [pin.cid for pin in asyncio.run(there.pins("n"))]
    assert found == ([OTHER] if isinstance(ok, dict) and isinstance(ok.get("results"), list) else [])
    assert there.unread() == [f"an entry in its pin list (for instance {named})"]


@pytest.mark.parametrize("results", [5, None, [tag_of("n"), 5]])
def test_root_with_unreadable_shards_is_named(liar: Liar, results: Any) -> None:
    rows = [{"root": root, "insertedAt": "2026-01-01T00:00:00.000Z"} for root in (ROOT, OTHER)]
    liar.handlers["upload/list"] = listing(*rows)
    given = {ROOT: results, OTHER: [tag_of("n")]}
    liar.handlers["upload/shard/list"] = lambda details: (
        {"ok": {"results": given[details["root"]]}},
        [],
        [],
    )
    there = provider(liar)
    found = {pin.cid for pin in asyncio.run(there.pins("n"))}
    assert found == ({ROOT, OTHER} if isinstance(results, list) else {OTHER})
    assert there.unread() == [f"an entry in its pin list (for instance {ROOT})"]
    liar.handlers["upload/list"] = listing()
    asyncio.run(there.pins("n"))
    assert there.unread() == []


def test_shard_list_with_an_invalid_cursor_is_unread(liar: Liar) -> None:
    liar.handlers["upload/list"] = listing({"root": ROOT, "insertedAt": "2026-01-01T00:00:00.000Z"})
    liar.handlers["upload/shard/list"] = listing(tag_of("n"), cursor=12)
    fails(lambda: provider(liar).pins("n"), ProviderRefused, "so the rest is unread")


def test_list_that_repeats_a_page_is_unread(liar: Liar) -> None:
    row = {"root": ROOT, "shards": [tag_of("n")], "insertedAt": "2026-01-01T00:00:00.000Z"}
    liar.handlers["upload/list"] = listing(row, cursor="again")
    fails(
        lambda: provider(liar).pins("n"),
        ProviderRefused,
        "repeats the pages of its list, so the rest is unread",
    )
    assert len(liar.asked) == 2


def test_list_that_fails_on_a_later_page_raises_with_the_pins_read(liar: Liar) -> None:
    row = {"root": ROOT, "shards": [tag_of("n")], "insertedAt": "2026-01-01T00:00:00.000Z"}
    liar.handlers["upload/list"] = listing(row, cursor="again")

    async def body() -> None:
        with pytest.raises(ProviderRefused) as caught:
            await provider(liar).pins("n")
        assert [(pin.cid, pin.name) for pin in caught.value.pins] == [(ROOT, "n")]

    asyncio.run(body())


def test_repeated_last_page_after_a_concurrent_upload_is_the_end(liar: Liar) -> None:
    row = {"root": ROOT, "shards": [tag_of("n")], "insertedAt": "2026-01-01T00:00:00.000Z"}
    pages = [listing(row, cursor="1"), listing(row, cursor="2"), listing()]
    liar.handlers["upload/list"] = lambda details: pages.pop(0)(details)

    async def body() -> None:
        (pin,) = await provider(liar).pins("n")
        assert (pin.cid, pin.created) == (ROOT, 1767225600000)

    asyncio.run(body())
    assert pages == []


def test_empty_page_of_uploads_with_a_cursor_is_not_the_end(liar: Liar) -> None:
    row = {"root": ROOT, "shards": [tag_of("n")], "insertedAt": "2026-01-01T00:00:00.000Z"}
    pages = [listing(cursor="1"), listing(cursor="2"), listing(row)]
    liar.handlers["upload/list"] = lambda details: pages.pop(0)(details)
    assert [pin.cid for pin in asyncio.run(provider(liar).pins("n"))] == [ROOT]


def test_empty_page_of_shards_with_a_cursor_is_not_the_end(liar: Liar) -> None:
    liar.handlers["upload/list"] = listing({"root": ROOT, "insertedAt": "2026-01-01T00:00:00.000Z"})
    pages = [listing(cursor="1"), listing(tag_of("n"))]
    liar.handlers["upload/shard/list"] = lambda details: pages.pop(0)(details)
    assert [pin.cid for pin in asyncio.run(provider(liar).pins("n"))] == [ROOT]


def test_upload_list_with_an_invalid_cursor_is_unread(liar: Liar) -> None:
    row = {"root": ROOT, "shards": [tag_of("n")], "insertedAt": "2026-01-01T00:00:00.000Z"}
    liar.handlers["upload/list"] = listing(row, cursor=12)
    fails(lambda: provider(liar).pins("n"), ProviderRefused, "so the rest is unread")


def test_shard_list_that_repeats_a_page_is_unread(liar: Liar) -> None:
    liar.handlers["upload/list"] = listing({"root": ROOT, "insertedAt": "2026-01-01T00:00:00.000Z"})
    liar.handlers["upload/shard/list"] = listing(tag_of("n"), cursor="again")
    fails(lambda: provider(liar).pins("n"), ProviderRefused, "repeats the pages of its list")
    assert liar.asked.count("upload/shard/list") == 2


@pytest.mark.parametrize("listed", [[], [tag_of("another name")]])
def test_root_that_is_accepted_but_not_listed_is_not_pinned(liar: Liar, listed: list[CID]) -> None:
    row = {"root": ROOT, "shards": listed, "insertedAt": "2026-01-01T00:00:00.000Z"}
    liar.handlers["upload/add"] = lambda details: ({"ok": {"root": details["root"], "shards": []}}, [], [])
    liar.handlers["upload/list"] = listing(*([row] if listed else []))
    liar.handlers["upload/get"] = lambda _: (
        ({"ok": row} if listed else {"error": {"name": "UploadNotFound", "message": "m"}}), [], [],
    )  # fmt: skip
    fails(lambda: provider(liar).pin(ROOT, "n"), ProviderUnavailable, "accepted .* but does not list it")


def allocation(url: Any, *, keys: Any = None, tasks: tuple[str, ...] = ("blob/allocate", "http/put", "blob/accept"),
               accepted: dict[str, Any] | None = None) -> Callable[[Any], Result]:  # fmt: skip
    """A service that allocates a blob at `url`."""
    throw_away = Signer(b"\x0a" * 32)
    fact = (
        {"keys": {"id": throw_away.did, "keys": {throw_away.did: dag_keys(b"\x0a" * 32)}}}
        if keys is None
        else keys
    )

    def answer(details: Any) -> Result:
        blocks, forks, by_can = [], [], {}
        for can in tasks:
            facts = [fact] if can == "http/put" else []
            token = ucan.issue(NODE, NODE.did, [Ability(can, NODE.did, details)], expires=None, facts=facts)
            blocks.append(token)
            forks.append(token[0])
            by_can[can] = token[0]
        said = []
        if "blob/allocate" in by_can:
            address = {"url": url, "headers": {"x-amz-checksum-sha256": "x", "Host": "evil", "n": 5}}
            said.append(outcome(by_can["blob/allocate"], {"ok": {"size": 1, "address": address}}, []))
        if accepted is not None:
            said.append(outcome(by_can["blob/accept"], accepted, []))
        for receipt in said:
            conclude = ucan.issue(
                NODE, NODE.did, [Ability("ucan/conclude", NODE.did, {"receipt": receipt[0]})], expires=None
            )
            blocks += [receipt, conclude]
        return {"ok": {}}, forks, blocks

    return answer


def dag_keys(seed: bytes) -> bytes:
    return b"\x80\x26" + seed + b"\xed\x01" + Signer(seed).public


def put(liar: Liar) -> Callable[[], Any]:
    liar.handlers["ucan/conclude"] = lambda _: ({"ok": {}}, [], [])
    return lambda: provider(liar).put_car(ROOT, [(ROOT, DATA)], name="n")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://169.254.169.254/latest/meta-data", "not a public address"),
        ("http://[::1]:8080/x", "not a public address"),
        ("http://10.0.0.7/x", "not a public address"),
        ("https://user:secret@storage.example/x", "user name"),
        ("https://storage.example:22/x", "port 22"),
        ("file:///etc/passwd", "not an http URL"),
    ],
)
def test_blobs_are_not_sent_to_forbidden_addresses(liar: Liar, url: str, words: str) -> None:
    liar.handlers["space/blob/add"] = allocation(url)
    fails(put(liar), ProviderRefused, words)
    assert "upload/add" not in liar.asked


@pytest.mark.parametrize(
    ("handler", "error", "words"),
    [
        (lambda _: ({"ok": {}}, [], []), ProviderUnavailable, "no blob/allocate task"),
        (allocation("x", tasks=("blob/allocate", "http/put")), ProviderUnavailable, "no blob/accept task"),
        (allocation(None), ProviderUnavailable, "no address"),
        (allocation(5), ProviderUnavailable, "no address"),
        (allocation("http://x/", keys={}), ProviderUnavailable, "no key"),
        (allocation("http://x/", keys={"keys": {"keys": {"a": b"short", "b": 7}}}), ProviderUnavailable, "no key"),
        (lambda _: ({"error": "text"}, [], []), ProviderRefused, "text"),
        (lambda _: ({"error": {"name": "AwaitError", "cause": {"name": "Odd", "message": "m"}}}, [], []), ProviderUnavailable, "Odd: m"),
    ],
)  # fmt: skip
def test_mishandled_uploads_are_errors(
    liar: Liar, handler: Callable[[Any], Result], error: type[ProviderError], words: str
) -> None:
    liar.handlers["space/blob/add"] = handler
    fails(put(liar), error, words)
    assert "upload/add" not in liar.asked


def test_internal_error_of_the_service_is_retried(liar: Liar) -> None:
    error = {"name": "HandlerExecutionError", "cause": {"name": "TypeError", "message": "fetch failed"}}
    answers: list[Result] = [({"error": error}, [], []), ({"ok": {"results": [], "size": 0}}, [], [])]
    liar.handlers["upload/list"] = lambda _: answers.pop(0)
    assert asyncio.run(provider(liar).pins("n")) == []
    assert liar.asked == ["upload/list"] * 2


def test_service_with_permanent_internal_errors_is_tried_once_per_call(liar: Liar) -> None:
    error = {"name": "HandlerExecutionError", "cause": {"name": "TypeError", "message": "fetch failed"}}
    liar.handlers["upload/list"] = lambda _: ({"error": error}, [], [])
    sick = provider(liar, retry=Retry(attempts=3, first=0.001, most=0.002))

    async def body() -> None:
        for _ in range(3):
            with pytest.raises(ProviderUnavailable, match="fetch failed"):
                await sick.pins("n")
        liar.handlers["upload/list"] = listing()
        assert await sick.pins("n") == []
        liar.handlers["upload/list"] = lambda _: ({"error": error}, [], [])
        with pytest.raises(ProviderUnavailable, match="fetch failed"):
            await sick.pins("n")

    asyncio.run(body())
    assert len(liar.asked) == 3 + 1 + 1 + 1 + 3


def test_other_service_is_refused_with_a_hint_that_works(liar: Liar) -> None:
    def pins(at: Liar) -> list[Pin]:
        return asyncio.run(provider(at).pins("n"))

    liar.handlers["upload/list"] = lambda _: ({"error": {"name": "HandlerNotFound", "message": "m"}}, [], [])
    with Refused(
        "This service does not store blobs for spaces, or is an older one. Name one that does: web3storage:<its URL>."
    ):
        pins(liar)
    other = Liar()
    other.handlers["upload/list"] = listing()
    with serve(other.app) as url:
        other.url = url
        assert pins(other) == []


def test_provider_works_in_successive_event_loops(liar: Liar) -> None:
    liar.handlers["upload/list"] = listing()
    one = provider(liar)

    async def sync() -> None:
        await asyncio.gather(
            *(one.pins(f"n{n}") for n in range(4)), *(one.get_blocks([ROOT]) for _ in range(4))
        )

    asyncio.run(sync())
    asyncio.run(sync())


def test_service_without_uploads_is_not_asked_again(liar: Liar) -> None:
    liar.handlers["upload/list"] = lambda _: (
        {"error": {"name": "ServiceUnavailable", "message": "m"}},
        [],
        [],
    )
    fails(lambda: provider(liar).pins("n"), ProviderUnavailable, "ServiceUnavailable")
    assert liar.asked == ["upload/list"]


def test_blob_that_is_not_accepted_is_an_error(liar: Liar) -> None:
    error = {"name": "AllocatedMemoryHadNotBeenWrittenTo", "message": "Blob not found"}
    liar.handlers["space/blob/add"] = allocation(f"{liar.url}/blob/x", accepted={"error": error})
    fails(put(liar), ProviderUnavailable, "Blob not found")
    assert "upload/add" not in liar.asked


def stored(liar: Liar, car: bytes, slices: dict[bytes, tuple[int, int]], blob: bytes, location: str) -> None:
    """Make the service list a root, a shard and its index at these locations."""
    digest = hashlib.sha256(car).digest()
    index = make_index(ROOT, {digest: slices})
    index_digest = hashlib.sha256(index.car).digest()
    time = "2026-01-01T00:00:00.000Z"
    liar.handlers["upload/list"] = listing(
        {"root": ROOT, "shards": [shard_cid(digest), tag_of("n")], "insertedAt": time},
        {"root": index.root, "shards": [shard_cid(index_digest)], "insertedAt": time},
    )
    causes = {b"\x12\x20" + digest: made("shard")[0], b"\x12\x20" + index_digest: made("index")[0]}
    liar.handlers["space/blob/get/0/1"] = lambda details: (
        {"ok": {"cause": causes[details["digest"]]}},
        [],
        [],
    )
    for multihash, place in (
        (b"\x12\x20" + digest, location),
        (b"\x12\x20" + index_digest, f"{liar.url}/blob/index"),
    ):
        accept = made(["accept", multihash])[0]
        cause = causes[multihash]
        site = {"site": {"ucan/await": [".out.ok.site", accept]}}
        liar.receipts[str(cause)] = message({cause: ({"ok": site}, [], [])})
        claim = ucan.issue(
            NODE, SPACE.did, [Ability("assert/location", NODE.did, {"location": [place]})], expires=None
        )
        liar.receipts[str(accept)] = message({accept: ({"ok": {"site": claim[0]}}, [], [claim])})
    liar.blobs["index"] = index.car
    liar.blobs["shard"] = blob


SHARD = header([ROOT]) + section(ROOT, DATA)
PLACE = {ROOT.multihash: (len(SHARD) - len(DATA), len(DATA))}


@pytest.mark.parametrize(
    "blob", [SHARD, b"", SHARD[:-1], SHARD[:-1] + b"!", os.urandom(len(SHARD)), SHARD + b"more"]
)
def test_wrong_blocks_are_not_returned(liar: Liar, blob: bytes) -> None:
    stored(liar, SHARD, PLACE, blob, f"{liar.url}/blob/shard")

    async def body() -> None:
        found = await provider(liar).get_blocks([ROOT])
        assert found == ({ROOT: DATA} if blob[: len(SHARD)] == SHARD else {})

    asyncio.run(body())


@pytest.mark.parametrize("more", [b"", b"nonsense", bytes(2 << 20)])
def test_shard_falsely_marked_as_small_is_bounded(liar: Liar, more: bytes) -> None:
    blob = SHARD + more
    stored(liar, blob, PLACE, blob, f"{liar.url}/blob/shard")
    (answer, forks, blocks) = liar.handlers["upload/list"](None)
    answer["ok"]["results"][1]["shards"].append(mark_of(IndexKind.SMALL, hashlib.sha256(blob).digest()))
    liar.handlers["upload/list"] = lambda _: (answer, forks, blocks)

    async def body() -> None:
        reader = provider(liar)
        assert await reader.get_blocks([ROOT]) == {ROOT: DATA}
        assert [item async for item in reader.get_dag(ROOT)] == [(ROOT, DATA)]

    asyncio.run(body())


@pytest.mark.parametrize("place", [(0, 5), (10**12, 5), (3, 10**12), (0, 0)])
def test_index_with_false_offsets_returns_no_blocks(liar: Liar, place: tuple[int, int]) -> None:
    stored(liar, SHARD, {ROOT.multihash: place}, SHARD, f"{liar.url}/blob/shard")

    async def body() -> None:
        assert await provider(liar).get_blocks([ROOT]) == {}

    asyncio.run(body())


def test_index_with_an_oversized_block_is_not_read(liar: Liar) -> None:
    """Blocks have at most 2 MiB, so no memory is reserved for a longer one."""
    shard = SHARD + bytes(16 << 20)
    stored(liar, shard, {ROOT.multihash: (3, 15 << 20)}, shard, f"{liar.url}/blob/shard")
    received: list[int] = []

    def progress(direction: str, size: int) -> None:
        received.append(size if direction == "received" else 0)

    async def body() -> None:
        reader = provider(liar, progress=progress)
        assert await reader.get_blocks([ROOT]) == {}
        assert [item async for item in reader.get_dag(ROOT)] == []

    asyncio.run(body())
    assert sum(received) < 1 << 20


def test_locations_in_a_private_network_are_refused(liar: Liar) -> None:
    stored(liar, SHARD, PLACE, SHARD, "http://192.168.1.1/admin")
    fails(lambda: provider(liar).get_blocks([ROOT]), ProviderRefused, "not a public address")


def test_blob_without_a_known_location_is_absent(liar: Liar) -> None:
    stored(liar, SHARD, PLACE, SHARD, f"{liar.url}/blob/gone")

    async def body() -> None:
        assert await provider(liar).get_blocks([ROOT]) == {}
        liar.receipts.clear()
        assert await provider(liar).get_blocks([ROOT]) == {}

    asyncio.run(body())
