"""Our peer as a trustless gateway, clause by clause: the Trustless Gateway Specification of 2026-03-05, IPIP-412 (orders and
duplicates in CARs), and what the Path Gateway Specification says of headers.

| clause | test |
| --- | --- |
| `GET /ipfs/{cid}[/{path}]`: paths go with CARs, a block goes by its CID | `test_a_path_*`, `test_raw_block_is_served_only_by_its_cid` |
| `HEAD`: as GET, without payload | `test_head_request_has_the_headers_of_get` |
| `Accept`, `format`: either, `format` wins, quality decides; neither is 400, another format 406 | `test_format_follows_query_and_accept_header` |
| `only-if-cached`: 412 | `test_only_if_cached_answers_412_for_missing_content` |
| `dag-scope` | `test_car_scopes_apply_below_a_path`, `test_an_entity_*` |
| `entity-bytes` | `test_entity_bytes_select_the_blocks_of_a_range`, `test_entity_bytes_of_*`, `test_range_is_served_although_other_blocks_are_missing` |
| `car-version`, `car-order`, `car-dups` and the parameters of the type | `test_duplicate_blocks_are_sent_on_request`, `test_unsupported_car_order_or_version_is_refused` |
| 404 for a root, or a path, that is not here | `test_missing_content_is_answered_with_404` |
| a child that is missing ends the stream, and not as if it were whole | `test_a_tree_with_a_hole_*`, `test_a_hole_far_down_*` |
| `Content-Type`, `Content-Disposition`, `filename` | `test_content_disposition_names_the_saved_file` |
| `Content-Location`, and that caches hold formats apart | `test_content_location_names_the_explicit_format` |
| preferences in `Accept`: what cannot be had is passed over for the next | `test_accept_header_preferences_are_ranked` |
| `Etag`, `If-None-Match` | `test_each_form_of_an_answer_has_its_own_etag`, `test_if_none_match_star_applies_to_existing_content` |
| `Accept-Ranges`, `Range` | `test_byte_ranges_of_a_block_are_served` |
| identity CIDs are in no CAR; the probe `bafkqaaa` | `test_identity_cids_are_served_inline` |
| IPNS records: headers, Etag, how long they may be kept | `test_name_records_are_served_with_their_lifetime` |
| pages of other origins: preflight, and headers on errors too | `test_pages_of_other_origins_may_read` |
| symbolic links, DAG-CBOR and DAG-JSON | never stored here: a root is a tree of raw blocks and UnixFS folders and files |
"""

from __future__ import annotations

import hashlib
import http.client
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.content.car import read_car
from ipfsmem.content.cid import CID, ipns_name, parse_cid, raw_cid
from ipfsmem.content.dagpb import TYPE_FILE, BlockLink, UnixFS, decode_node, encode_unixfs
from ipfsmem.content.limits import Limits
from ipfsmem.content.tree import build_tree
from ipfsmem.content.unixfs import directory
from ipfsmem.http import blocks as serving
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.testing import SimCloud, SimProvider
from tests.servers.threaded import serve
from tests.support.content_lab import encode_node, pb_cid
from tests.unit.providers.test_peer import MANY, Answer, ask

SEED = b"\x07" * 32
NAME = ipns_name(Signer25519(SEED).public)
DAY = 86_400_000_000_000


def raw(data: bytes) -> tuple[CID, bytes]:
    return raw_cid(hashlib.sha256(data).digest()), data


def chunked(pieces: list[bytes], inline: bytes = b"") -> tuple[CID, list[tuple[CID, bytes]]]:
    """A file with given chunks, and optionally bytes in its own node before them."""
    leaves = [raw(piece) for piece in pieces]
    sizes = tuple(map(len, pieces))
    message = UnixFS(TYPE_FILE, inline, len(inline) + sum(sizes), sizes)
    block = encode_node([BlockLink("", cid, len(data)) for cid, data in leaves], encode_unixfs(message))
    cid = pb_cid(hashlib.sha256(block).digest())
    return cid, [(cid, block), *leaves]


#: 1026 bytes in chunks of 256, as in the conformance suite.
PIECES = [bytes([n]) * 256 for n in range(4)] + [b"ab"]
FILE, FILE_BLOCKS = chunked(PIECES)
#: The same file twice, once below a folder.
SUB = directory([BlockLink("ascii.txt", raw(b"hello")[0], 5), BlockLink("multi.txt", FILE, 1100)])
TOP = directory(
    [
        BlockLink("again.txt", FILE, 1100),
        BlockLink("one.txt", raw(b"hello")[0], 5),
        BlockLink("subdir", SUB.cid, 1200),
    ]
)
BLOCKS = dict([*TOP.blocks, *SUB.blocks, *FILE_BLOCKS, raw(b"hello")])
LEAVES = [cid for cid, _ in FILE_BLOCKS[1:]]
HELLO = raw(b"hello")[0]


def store(*, without: CID | None = None) -> SimProvider:
    cloud = SimCloud()
    cloud.blocks |= {cid: data for cid, data in {**BLOCKS, **dict(MANY.blocks)}.items() if cid != without}
    return SimProvider(cloud)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(lambda: serving.app(store())) as made:
        yield made


def car(url: str, path: str, **headers: str) -> list[CID]:
    """Return the CIDs of a CAR in order."""
    answer = ask(url, path, **headers)
    assert answer.status == 200 and answer.headers["Content-Type"].startswith(
        "application/vnd.ipld.car; version=1"
    )
    reader = read_car(answer.body)
    return [cid for cid, _ in reader]


# -- paths, formats ------------------------------------------------------------------------------------------------


def test_car_of_a_path_has_the_blocks_along_it(url: str) -> None:
    assert car(url, f"/ipfs/{TOP.cid}/subdir/ascii.txt?format=car") == [TOP.cid, SUB.cid, HELLO]
    assert car(url, f"/ipfs/{TOP.cid}/subdir/multi.txt?format=car") == [TOP.cid, SUB.cid, FILE, *LEAVES]
    assert car(url, f"/ipfs/{TOP.cid}/?format=car&dag-scope=block") == [TOP.cid]
    answer = ask(url, f"/ipfs/{TOP.cid}/subdir/ascii.txt?format=car", "HEAD")
    assert answer.headers["X-Ipfs-Path"] == f"/ipfs/{TOP.cid}/subdir/ascii.txt"
    assert answer.headers["X-Ipfs-Roots"] == f"{TOP.cid},{SUB.cid},{HELLO}"
    assert answer.headers["Ipfs-Uri"] == f"ipfs://{TOP.cid}/subdir/ascii.txt"


def test_car_of_a_path_in_a_sharded_folder_has_the_shards_along_it(url: str) -> None:
    [many] = [link.cid for link in decode_node(dict(MANY.blocks)[MANY.cid]).links]
    got = car(url, f"/ipfs/{many}/entry_000042?format=car")
    assert got[0] == many and got[-1] == raw(b"x")[0] and 2 <= len(got) <= 6
    assert all(cid.codec == 0x70 for cid in got[:-1])


def test_raw_block_is_served_only_by_its_cid(url: str) -> None:
    assert ask(url, f"/ipfs/{TOP.cid}/subdir?format=raw").status == 400
    assert ask(url, f"/ipfs/{TOP.cid}/?format=raw").body == BLOCKS[TOP.cid]


def test_head_request_has_the_headers_of_get(url: str) -> None:
    for path in (f"/ipfs/{TOP.cid}?format=raw", f"/ipfs/{TOP.cid}?format=car", "/ipfs/bafkqaaa?format=raw"):
        given, head = ask(url, path), ask(url, path, "HEAD")
        assert (head.status, head.body) == (200, b"")
        for name in ("Content-Type", "Etag", "X-Ipfs-Roots", "Cache-Control", "Content-Disposition"):
            assert head.headers[name] == given.headers[name], name


RAW, CAR = "application/vnd.ipld.raw", "application/vnd.ipld.car"


@pytest.mark.parametrize(("accept", "query", "given"), [
    (RAW, "", RAW), (CAR, "", CAR), (f"text/html, {RAW}", "", RAW), (f"{RAW};q=0.5, {CAR}", "", CAR),
    (f"{CAR};q=0.2, {RAW};q=0.9", "", RAW), (CAR, "?format=raw", RAW), (RAW, "?format=car", CAR), ("", "?format=raw", RAW),
    ("*/*", "?format=raw", RAW), ("", "", 400), ("*/*", "", 400), ("text/html", "", 406), (RAW, "?format=html", 406),
    ("application/json", "?format=dag-json", 406),
])  # fmt: skip
def test_format_follows_query_and_accept_header(url: str, accept: str, query: str, given: str | int) -> None:
    answer = ask(url, f"/ipfs/{HELLO}{query}", **({"Accept": accept} if accept else {}))
    if isinstance(given, int):
        assert answer.status == given
    else:
        assert (answer.status, answer.headers["Content-Type"].partition(";")[0]) == (200, given)


def test_accept_header_preferences_are_ranked(url: str) -> None:
    """The specification's own example."""
    asked = f"/ipfs/{FILE}"
    for accept, kind in (
        (f"{CAR};order=foo, {CAR};order=dfs;dups=y;q=0.5", f"{CAR}; version=1; order=dfs; dups=y"),
        (f"{CAR};version=2, {CAR};q=0.1", f"{CAR}; version=1; order=dfs; dups=n"),
        (f"{CAR};order=foo, {RAW};q=0.1", RAW),
    ):
        answer = ask(url, asked, Accept=accept)
        assert (answer.status, answer.headers["Content-Type"]) == (200, kind), accept
    assert ask(url, asked, Accept=f"{CAR};order=foo, {CAR};version=2").status == 406
    assert ask(url, asked + "?format=car", Accept=f"{CAR};order=foo, {CAR};dups=y").status == 200


def test_content_location_names_the_explicit_format(url: str) -> None:
    """Without `format` the answer depends on Accept, so caches need the explicit URL."""
    for path, accept, where in (
        (f"/ipfs/{HELLO}", RAW, f"/ipfs/{HELLO}?format=raw"),
        (f"/ipfs/{TOP.cid}/subdir", CAR, f"/ipfs/{TOP.cid}/subdir?format=car"),
        (
            f"/ipfs/{TOP.cid}?dag-scope=block",
            f"{CAR};dups=y",
            f"/ipfs/{TOP.cid}?dag-scope=block&format=car&car-dups=y",
        ),
        (f"/ipfs/{TOP.cid}?format=car&car-dups=n", f"{CAR};dups=y", f"/ipfs/{TOP.cid}?format=car&car-dups=n"),
    ):
        answer = ask(url, path, Accept=accept)
        assert (answer.headers["Content-Location"], answer.headers["Vary"]) == (where, "Accept")
        again = ask(url, where)
        assert (again.body, again.headers["Etag"]) == (answer.body, answer.headers["Etag"])
        assert "Content-Location" not in again.headers


def test_if_none_match_star_applies_to_existing_content(url: str) -> None:
    nowhere = raw(b"nowhere")[0]
    for kind in ("raw", "car"):
        assert ask(url, f"/ipfs/{nowhere}?format={kind}", If_None_Match="*").status == 404
        assert ask(url, f"/ipfs/{FILE}?format={kind}", If_None_Match="*").status == 304


def test_only_if_cached_answers_412_for_missing_content(url: str) -> None:
    nowhere = raw(b"nowhere")[0]
    for kind in ("raw", "car"):
        for method in ("GET", "HEAD"):
            path = f"/ipfs/{nowhere}?format={kind}"
            assert ask(url, path, method, Cache_Control="only-if-cached").status == 412
            assert (
                ask(
                    url, path.replace(str(nowhere), str(TOP.cid)), method, Cache_Control="only-if-cached"
                ).status
                == 200
            )


def test_missing_content_is_answered_with_404(url: str) -> None:
    nowhere = raw(b"nowhere")[0]
    for path in (
        f"/ipfs/{nowhere}?format=raw", f"/ipfs/{nowhere}?format=car", f"/ipfs/{nowhere}/a?format=car",
        f"/ipfs/{TOP.cid}/subdir/nothing?format=car", f"/ipfs/{TOP.cid}/one.txt/below?format=car",
        f"/ipfs/{HELLO}/below?format=car", f"/ipfs/{TOP.cid}/%2e%2e/x?format=car",
    ):  # fmt: skip
        assert ask(url, path).status == 404, path
    assert ask(url, "/ipfs/nonsense?format=car").status == 400


# -- scopes and ranges ---------------------------------------------------------------------------------------------


def test_car_scopes_apply_below_a_path(url: str) -> None:
    at = f"/ipfs/{TOP.cid}/subdir?format=car&dag-scope="
    assert car(url, at + "block") == car(url, at + "entity") == [TOP.cid, SUB.cid]
    assert car(url, at + "all") == [TOP.cid, SUB.cid, HELLO, FILE, *LEAVES]
    file = f"/ipfs/{TOP.cid}/subdir/multi.txt?format=car&dag-scope="
    assert car(url, file + "block") == [TOP.cid, SUB.cid, FILE]
    assert car(url, file + "entity") == car(url, file + "all") == [TOP.cid, SUB.cid, FILE, *LEAVES]
    assert ask(url, at + "x").status == 400


def test_entity_scope_of_a_sharded_folder_has_its_shards(url: str) -> None:
    [many] = [link.cid for link in decode_node(dict(MANY.blocks)[MANY.cid]).links]
    for query in ("&dag-scope=entity", "&dag-scope=entity&entity-bytes=0:*"):
        shards = car(url, f"/ipfs/{many}?format=car{query}")
        assert len(shards) > 100 and raw(b"x")[0] not in shards and all(cid.codec == 0x70 for cid in shards)


@pytest.mark.parametrize(("span", "chunks"), [
    ("0:*", slice(None)), ("0:0", slice(0, 1)), ("512:*", slice(2, None)), ("512:1023", slice(2, 4)),
    ("512:-256", slice(2, 4)), ("-5:*", slice(3, None)), ("-9999:*", slice(None)), ("-9999:-3", slice(0, 4)),
    ("255:256", slice(0, 2)), ("1024:9999", slice(4, None)), ("-2:-1", slice(4, None)), ("600:500", slice(0, 0)),
    ("-1:-2000", slice(0, 0)),
])  # fmt: skip
def test_entity_bytes_select_the_blocks_of_a_range(url: str, span: str, chunks: slice) -> None:
    """An empty range gives the root alone."""
    asked = f"/ipfs/{FILE}?format=car&entity-bytes={span}"
    assert car(url, asked) == car(url, asked + "&dag-scope=entity") == [FILE, *LEAVES[chunks]]


def test_entity_bytes_of_folders_and_invalid_ranges(url: str) -> None:
    at = f"/ipfs/{TOP.cid}?format=car&entity-bytes="
    assert car(url, at + "5:9") == [TOP.cid]  # a folder: the range has no meaning
    assert car(url, f"/ipfs/{HELLO}?format=car&entity-bytes=1:2") == [HELLO]
    for bad in (
        f"/ipfs/{FILE}?format=car&entity-bytes=1026:2000",
        f"/ipfs/{HELLO}?format=car&entity-bytes=5:*",
    ):
        assert ask(url, bad).status == 400
    for bad in ("1", "a:b", "1:2:3", "*:5", ":", "1:", "99999999999999999999:*"):
        assert ask(url, at + bad).status == 400, bad
    assert ask(url, at + "0:*&dag-scope=all").status == 400


def test_entity_bytes_of_nested_and_inline_files() -> None:
    below, blocks = chunked([b"c" * 10, b"d" * 10], inline=b"ab")
    message = UnixFS(TYPE_FILE, b"", 22 + 5, (22, 5))
    last = raw(b"fffff")
    block = encode_node([BlockLink("", below, 100), BlockLink("", last[0], 5)], encode_unixfs(message))
    top = pb_cid(hashlib.sha256(block).digest())
    cloud = SimCloud()
    cloud.blocks |= dict([*blocks, last, (top, block)])
    c, d = (cid for cid, _ in blocks[1:])
    with serve(lambda: serving.app(SimProvider(cloud))) as url:
        for span, wanted in {
            "0:1": [top, below], "1:2": [top, below, c], "12:12": [top, below, d], "11:22": [top, below, c, d, last[0]],
            "22:*": [top, last[0]],
        }.items():  # fmt: skip
            assert car(url, f"/ipfs/{top}?format=car&entity-bytes={span}") == wanted, span


def test_range_is_served_although_other_blocks_are_missing() -> None:
    with serve(lambda: serving.app(store(without=LEAVES[1]))) as url:
        assert car(url, f"/ipfs/{FILE}?format=car&entity-bytes=0:100") == [FILE, LEAVES[0]]
        assert car(url, f"/ipfs/{FILE}?format=car&entity-bytes=512:*") == [FILE, *LEAVES[2:]]


# -- CARs -------------------------------------------------------------------------------------------------------------


def test_duplicate_blocks_are_sent_on_request(url: str) -> None:
    once = [TOP.cid, FILE, *LEAVES, HELLO, SUB.cid]
    twice = [TOP.cid, FILE, *LEAVES, HELLO, SUB.cid, HELLO, FILE, *LEAVES]
    asked = f"/ipfs/{TOP.cid}"
    assert car(url, asked, Accept=f"{CAR}; version=1; order=dfs; dups=n") == once
    assert car(url, asked, Accept=f"{CAR}; version=1; order=dfs; dups=y") == twice
    assert car(url, asked + "?format=car", Accept=f"{CAR};dups=y") == twice
    assert (
        car(url, asked + "?format=car&car-dups=n", Accept=f"{CAR};dups=y") == once
    )  # the query has priority
    for dups in "yn":
        kind = ask(url, asked + f"?format=car&car-dups={dups}").headers["Content-Type"]
        assert kind == f"{CAR}; version=1; order=dfs; dups={dups}"


def test_duplicate_blocks_are_bounded() -> None:
    """Twenty folders, each holding the next one twice: a million blocks to walk, twenty to store."""
    cid = HELLO
    cloud = SimCloud()
    cloud.blocks |= dict([raw(b"hello")])
    for _ in range(20):
        made = directory([BlockLink("a", cid, 1), BlockLink("b", cid, 1)])
        cloud.blocks |= dict(made.blocks)
        cid = made.cid
    with serve(lambda: serving.app(SimProvider(cloud), limits=Limits(blocks=1_000))) as url:
        assert len(car(url, f"/ipfs/{cid}?format=car")) == 21
        with pytest.raises(http.client.IncompleteRead) as caught:
            ask(url, f"/ipfs/{cid}?format=car&car-dups=y")
        assert len(list(read_car(caught.value.partial))) == 1_000


def test_unsupported_car_order_or_version_is_refused(url: str) -> None:
    for good in ("car-order=unk", "car-order=dfs", "car-version=1"):
        assert "order=dfs" in ask(url, f"/ipfs/{TOP.cid}?format=car&{good}").headers["Content-Type"]
    for bad in ("car-order=bfs", "car-version=2", "car-dups=x"):
        assert ask(url, f"/ipfs/{TOP.cid}?format=car&{bad}").status == 406


def test_car_with_a_missing_block_ends_with_an_error() -> None:
    """A complete answer would be cached for a year."""
    with serve(lambda: serving.app(store(without=LEAVES[2]))) as url:
        for query in ("", "&dag-scope=entity", "&car-dups=y"):
            with pytest.raises(http.client.IncompleteRead) as caught:
                ask(url, f"/ipfs/{FILE}?format=car{query}")
            assert [cid for cid, _ in read_car(caught.value.partial)] == [FILE, *LEAVES[:2]]
        assert car(url, f"/ipfs/{FILE}?format=car&dag-scope=block") == [FILE]
        assert ask(url, f"/ipfs/{FILE}?format=car", "HEAD").status == 200


def test_missing_block_deep_in_a_large_tree_ends_with_an_error() -> None:
    """Most of the answer is on its way by then."""
    files = {f"f{n:02}": bytes([n]) * 100_000 for n in range(20)}
    tree = build_tree(files)
    lost = raw(files["f15"])[0]
    cloud = SimCloud()
    cloud.blocks |= {cid: data for cid, data in tree.blocks if cid != lost}
    with serve(lambda: serving.app(SimProvider(cloud))) as url:
        with pytest.raises(http.client.IncompleteRead) as caught:
            ask(url, f"/ipfs/{tree.cid}?format=car")
        assert len(list(read_car(caught.value.partial))) == 1 + 15


def test_identity_cids_are_served_inline(url: str) -> None:
    probe = ask(url, "/ipfs/bafkqaaa?format=raw")
    assert (probe.status, probe.body) == (200, b"")
    reader = read_car(ask(url, "/ipfs/bafkqaaa?format=car").body)
    assert (reader.roots, list(reader)) == ((parse_cid("bafkqaaa"),), [])
    inline = "bafkqaf3imvwgy3zaneqgc3janfxgy2lomvscay3jmqfa"
    assert ask(url, f"/ipfs/{inline}?format=raw").body == parse_cid(inline).digest != b""
    assert car(url, f"/ipfs/{inline}?format=car&car-dups=y") == []


# -- headers -------------------------------------------------------------------------------------------------------


def test_content_disposition_names_the_saved_file(url: str) -> None:
    def said(path: str) -> str:
        answer = ask(url, path)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        return str(answer.headers["Content-Disposition"])

    assert said(f"/ipfs/{HELLO}?format=raw") == f'attachment; filename="{HELLO}.bin"'
    assert said(f"/ipfs/{TOP.cid}/subdir?format=car") == f'attachment; filename="{SUB.cid}.car"'
    assert said(f"/ipfs/{HELLO}?format=raw&filename=foobar.bin") == 'attachment; filename="foobar.bin"'
    assert said(f"/ipfs/{HELLO}?format=raw&filename=test%D1%82%D0%B5%D1%81%D1%82.bin") == (
        "attachment; filename=\"test____.bin\"; filename*=UTF-8''test%D1%82%D0%B5%D1%81%D1%82.bin"
    )
    evil = said(f"/ipfs/{HELLO}?format=raw&filename=a%22%3Bb%0D%0AX-Evil%3A%20y")
    assert evil.startswith('attachment; filename="a_;b__X-Evil: y"')


def test_each_form_of_an_answer_has_its_own_etag(url: str) -> None:
    asked = [
        f"/ipfs/{FILE}?format=raw", f"/ipfs/{FILE}?format=car", f"/ipfs/{FILE}?format=car&dag-scope=block",
        f"/ipfs/{FILE}?format=car&dag-scope=entity", f"/ipfs/{FILE}?format=car&entity-bytes=0:9",
        f"/ipfs/{FILE}?format=car&entity-bytes=0:8", f"/ipfs/{FILE}?format=car&car-dups=y",
        f"/ipfs/{TOP.cid}?format=car", f"/ipfs/{TOP.cid}/subdir?format=car",
    ]  # fmt: skip
    tags = [ask(url, path).headers["Etag"] for path in asked]
    assert len(set(tags)) == len(asked)
    for path, tag in zip(asked, tags, strict=True):
        for given in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
            answer = ask(url, path, If_None_Match=given)
            assert (answer.status, answer.body, answer.headers["Etag"]) == (304, b"", tag), (path, given)
        assert ask(url, path, If_None_Match='"other"').status == 200
    assert all("immutable" in ask(url, path).headers["Cache-Control"] for path in asked)


def test_byte_ranges_of_a_block_are_served(url: str) -> None:
    def part(header: str, **more: str) -> Answer:
        return ask(url, f"/ipfs/{HELLO}?format=raw", Range=header, **more)

    assert ask(url, f"/ipfs/{HELLO}?format=raw").headers["Accept-Ranges"] == "bytes"
    assert ask(url, f"/ipfs/{FILE}?format=car").headers["Accept-Ranges"] == "none"
    for header, body, shown in (
        ("bytes=1-3", b"ell", "1-3/5"), ("bytes=3-", b"lo", "3-4/5"), ("bytes=-2", b"lo", "3-4/5"),
        ("bytes=0-99", b"hello", "0-4/5"), ("bytes=-99", b"hello", "0-4/5"),
    ):  # fmt: skip
        answer = part(header)
        assert (answer.status, answer.body, answer.headers["Content-Range"]) == (206, body, f"bytes {shown}")
    for header in ("bytes=5-", "bytes=9-10", "bytes=-0"):
        assert (part(header).status, part(header).headers["Content-Range"]) == (416, "bytes */5")
    for header in ("bytes=0-1,3-4", "bytes=3-1", "chunks=1-2", "bytes=-"):
        assert (part(header).status, part(header).body) == (200, b"hello")
    assert part("bytes=0-0", If_Range=f'"{HELLO}.raw"').status == 206
    assert part("bytes=0-0", If_Range='"other"').status == 200


def test_name_records_are_served_with_their_lifetime(tmp_path: Path) -> None:
    now = time.time_ns()
    with serve(lambda: serving.app(DirectoryProvider(tmp_path))) as url:
        import asyncio

        for sequence, (life, ttl, wanted) in enumerate([
            (DAY, 300_000_000_000, range(300, 301)), (60_000_000_000, DAY, range(30, 61)), (DAY, 0, range(1)),
        ], 1):  # fmt: skip
            record = ipns_record.make_record(SEED, f"/ipfs/{TOP.cid}", sequence, now + life, ttl_ns=ttl)
            asyncio.run(DirectoryProvider(tmp_path).put_name(NAME, record))
            for path in (f"/ipns/{NAME}?format=ipns-record", f"/routing/v1/ipns/{NAME}"):
                answer = ask(url, path)
                assert (answer.status, answer.body) == (200, record)
                assert answer.headers["Content-Type"] == "application/vnd.ipfs.ipns-record"
                assert answer.headers["Content-Disposition"] == f'attachment; filename="{NAME}.ipns-record"'
                kept = answer.headers["Cache-Control"].removeprefix("public, max-age=")
                assert int(kept) in wanted
                assert ask(url, path, If_None_Match=answer.headers["Etag"]).status == 304
                assert ask(url, path, "HEAD").headers["Etag"] == answer.headers["Etag"]
        accept = {"Accept": "application/vnd.ipfs.ipns-record"}
        assert ask(url, f"/ipns/{NAME}", **accept).body == record
        assert ask(url, f"/ipns/{NAME}?format=raw", **accept).status == 406
        named = ask(url, f"/ipns/{NAME}?format=ipns-record&filename=test%D1%82.ipns-record")
        assert "filename*=UTF-8''test%D1%82.ipns-record" in named.headers["Content-Disposition"]
        other = ipns_name(Signer25519(b"\x08" * 32).public)
        assert ask(url, f"/ipns/{other}?format=ipns-record").status == 404


def test_pages_of_other_origins_may_read(url: str) -> None:
    """Preflights, answers and refusals; not requests that write."""
    nowhere = raw(b"nowhere")[0]
    for method, path, status in (
        ("OPTIONS", f"/ipfs/{TOP.cid}", 204), ("OPTIONS", f"/ipfs/{TOP.cid}/subdir/", 204), ("OPTIONS", f"/ipns/{NAME}", 204),
        ("OPTIONS", f"/routing/v1/ipns/{NAME}", 204), ("GET", f"/ipfs/{TOP.cid}?format=raw", 200),
        ("GET", f"/ipfs/{TOP.cid}?format=car", 200), ("GET", f"/ipfs/{nowhere}?format=raw", 404),
        ("GET", "/ipfs/nonsense?format=raw", 400), ("GET", f"/ipfs/{TOP.cid}", 400), ("GET", f"/ipns/{NAME}", 400),
        ("GET", f"/routing/v1/ipns/{NAME}", 404), ("DELETE", f"/ipfs/{TOP.cid}", 405),
    ):  # fmt: skip
        answer = ask(url, path, method)
        assert answer.status == status, (method, path)
        given = {name: set(answer.headers[f"Access-Control-{name}"].split(", ")) for name in (
            "Allow-Origin", "Allow-Methods", "Allow-Headers", "Expose-Headers"
        )}  # fmt: skip
        assert given["Allow-Origin"] == {"*"} and given["Allow-Methods"] == {"GET", "HEAD", "OPTIONS"}
        assert given["Allow-Headers"] >= {"Content-Type", "Range", "User-Agent", "X-Requested-With"}
        assert given["Expose-Headers"] >= {"Content-Range", "Content-Length", "X-Ipfs-Roots", "Ipfs-Uri"}
    for method, path in (
        ("POST", "/has"),
        ("GET", "/pins?name=n"),
        ("OPTIONS", "/pins"),
        ("OPTIONS", "/car"),
    ):
        assert "Access-Control-Allow-Origin" not in ask(url, path, method).headers


def test_page_of_another_origin_writes_only_with_the_token(tmp_path: Path) -> None:
    before = {"Access-Control-Request-Headers": "content-type, authorization"}
    with serve(lambda: serving.app(DirectoryProvider(tmp_path), token="t" * 20)) as at:
        for path in (
            "/has",
            "/blocks",
            "/car",
            "/pins",
            "/unpin",
            f"/routing/v1/ipns/{NAME}",
            "/small/read",
            "/small/a/b",
        ):
            allowed = ask(at, path, "OPTIONS", **before).headers
            assert "Authorization" in allowed["Access-Control-Allow-Headers"]
            assert {"POST", "PUT"} <= set(allowed["Access-Control-Allow-Methods"].split(", "))
        right = {"Authorization": "Bearer " + "t" * 20}
        assert ask(at, "/pins?name=n", **right).headers["Access-Control-Allow-Origin"] == "*"
        for given in ({}, {"Authorization": "Bearer another"}):
            assert "Access-Control-Allow-Origin" not in ask(at, "/pins?name=n", **given).headers
        # The answer may say that the token is wrong, and nothing else.
        assert (
            ask(at, "/car", "POST", Authorization="Bearer another").headers["Access-Control-Allow-Origin"]
            == "*"
        )
    with serve(lambda: serving.app(DirectoryProvider(tmp_path))) as closed:
        assert ask(closed, "/car", "OPTIONS", **before).status == 405
