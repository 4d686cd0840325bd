"""Pin lists with unreadable entries: the other entries are used, and the unreadable ones are named."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from ipfsmem_providers.peer import PeerProvider

from ipfsmem.errors import ProviderError, ProviderRefused, UnreadError
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Provider, Unreading
from tests.support.device_lab import ROOT, says
from tests.unit.providers.services_lab import account, tree
from tests.unit.providers.sick_lab import bench

CID_TEXT = str(tree().cid)
AT = "2026-11-01T00:00:00Z"


def _v3(name: str) -> str:
    good = {"id": "1", "cid": CID_TEXT, "name": name, "created_at": AT}
    bad = [{**good, "id": "2", "cid": "no cid"}, {**good, "id": 3}, "row", {**good, "id": 4, "name": "other"}]
    return json.dumps({"data": {"files": [good, *bad], "next_page_token": None}})


def _legacy(name: str) -> str:
    good = {"ipfs_pin_hash": CID_TEXT, "date_pinned": AT, "metadata": {"name": name}}
    bad = [{**good, "ipfs_pin_hash": "no cid"}, {**good, "ipfs_pin_hash": 3}, 7, {**good, "ipfs_pin_hash": 4, "metadata": {"name": "other"}}]  # fmt: skip
    return json.dumps({"count": 5, "rows": [good, *bad]})


def _psa(name: str) -> str:
    good = {"requestid": "1", "status": "pinned", "created": AT, "pin": {"cid": CID_TEXT, "name": name}, "delegates": []}  # fmt: skip
    bad = [{**good, "requestid": "2", "pin": {"cid": "no cid", "name": name}}, {**good, "requestid": 3}, None, {**good, "requestid": 4, "pin": {"name": "other"}}]  # fmt: skip
    return json.dumps({"count": 5, "results": [good, *bad]})


def _s3(name: str) -> str:
    def rows(prefix: str) -> str:
        return "".join(f"<Contents><Key>{prefix}{cid}.car</Key><Size>5</Size></Contents>" for cid in (CID_TEXT, "bafynocid1", "bafynocid2", "bafynocid3"))  # fmt: skip

    return f"<ListBucketResult>{rows(f'ipfsmem/{name}/')}</ListBucketResult>"


def _kubo(name: str) -> str:
    cids = (CID_TEXT, "bafynocid1", "bafynocid2", "bafynocid3")
    keys = {cid: {"Type": "recursive", "Name": f"{name}@7"} for cid in cids}
    return json.dumps({"Keys": {**keys, "bafynocid4": {"Type": "recursive", "Name": "other@7"}}})


def _kubo_of_wrong_types(name: str) -> str:
    good = {"Type": "recursive", "Name": f"{name}@7"}
    return json.dumps({"Keys": {CID_TEXT: good, "one": 5, "two": "row", "three": {"Keys": []}}})


def _peer(name: str) -> str:
    good = {"cid": CID_TEXT, "name": name, "handle": "1", "created": 7}
    bad = [{**good, "cid": "no cid"}, {**good, "handle": 2}, "row", {**good, "name": "other", "created": "x"}]
    return json.dumps({"pins": [good, *bad]})


LISTS = [
    ("pinata-car", _v3, "GET", "/v3/files"),
    ("pinata-legacy", _legacy, "GET", "/data/pinList"),
    ("filebase-s3", _s3, "GET", ".*"),
    ("filebase-rpc", _psa, "GET", "/pins"),
    ("pinning_service", _psa, "GET", "/pins"),
    ("kubo", _kubo, "POST", "pin/ls"),
    ("kubo", _kubo_of_wrong_types, "POST", "pin/ls"),
    ("peer", _peer, "GET", "/pins"),
]


@pytest.mark.parametrize(("kind", "listing", "method", "path"), LISTS)
def test_unreadable_pin_list_entries_are_named_and_skipped(
    kind: str, listing: Callable[[str], str], method: str, path: str, tmp_path: Path
) -> None:
    with bench(kind, tmp_path) as at:
        at.faults.answer(method, path, 200, listing("n"), times=1)
        provider = at.open()
        assert [str(pin.cid) for pin in asyncio.run(provider.pins("n"))] == [CID_TEXT]
        assert isinstance(provider, Unreading)
        (told,) = provider.unread()
        assert told.startswith("3 entries in its pin list (for instance ")


def _cut_v3(name: str) -> str:
    good = {"id": "1", "cid": CID_TEXT, "name": name, "created_at": AT}
    return json.dumps({"data": {"files": [good], "next_page_token": "2"}})


def _cut_legacy(name: str) -> str:
    good = {"ipfs_pin_hash": CID_TEXT, "date_pinned": AT, "metadata": {"name": name}}
    return json.dumps({"count": 5, "rows": [good]})


def _cut_psa(name: str) -> str:
    good = {"requestid": "1", "status": "pinned", "created": AT, "pin": {"cid": CID_TEXT, "name": name}, "delegates": []}  # fmt: skip
    return json.dumps({"count": 5, "results": [good]})


def _cut_s3(name: str) -> str:
    row = f"<Contents><Key>ipfsmem/{name}/{CID_TEXT}.car</Key><Size>5</Size></Contents>"
    return f"<ListBucketResult>{row}<NextContinuationToken>2</NextContinuationToken></ListBucketResult>"


def _cut_kubo(name: str) -> str:
    lines = [{"Cid": CID_TEXT, "Name": f"{name}@7"}, {"Message": "datastore closed", "Type": "error"}]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.mark.parametrize("status", [503, 403])
@pytest.mark.parametrize(
    ("kind", "first", "method", "path"),
    [
        ("pinata-car", _cut_v3, "GET", "/v3/files"),
        ("pinata-legacy", _cut_legacy, "GET", "/data/pinList"),
        ("filebase-s3", _cut_s3, "GET", ".*"),
        ("filebase-rpc", _cut_psa, "GET", "/pins"),
        ("pinning_service", _cut_psa, "GET", "/pins"),
        ("kubo", _cut_kubo, "POST", "pin/ls"),
    ],
)
def test_pin_list_failing_on_a_later_page_raises_with_the_pins_read(
    kind: str, first: Callable[[str], str], method: str, path: str, status: int, tmp_path: Path
) -> None:
    with bench(kind, tmp_path) as at:
        at.faults.answer(method, path, 200, first("n"), times=1)
        at.faults.answer(method, path, status, times=-1)
        with pytest.raises(ProviderError) as caught:
            asyncio.run(at.open().pins("n"))
        assert [str(pin.cid) for pin in caught.value.pins] == [CID_TEXT]


def test_sync_with_an_unreadable_entry_of_its_pin_list_is_not_up_to_date(tmp_path: Path) -> None:
    with account("pinata-car") as at, Memory.create("m", "encrypted-ipfs", provider=at.open(), unlock=ROOT, recovery=False, passphrase=False, home=tmp_path / "a") as memory:  # fmt: skip
        memory.write("tone", "Be direct.")
        asyncio.run(memory.sync())
        assert asyncio.run(memory.sync(provider=at.open())).exit_code == 0
        (entry,) = [one for one in at.server.files.values() if one["name"].startswith("ipfsmem")][:1]
        at.server.files["x"] = {**entry, "id": "x", "cid": "no cid"}
        report = asyncio.run(memory.sync(provider=at.open()))
        assert report.exit_code == UnreadError.exit_code
        told = says(report, "record-unread")
        assert "an entry in its pin list (for instance x), which cannot be read" in told
        assert [one.provider for one in report.notices if one.kind == "record-unread"] == ["pinata"]


def test_list_with_empty_pages_between_is_read_to_its_end(tmp_path: Path) -> None:
    row = {"id": "1", "cid": CID_TEXT, "name": "n", "created_at": AT}
    with bench("pinata-car", tmp_path) as at:
        for number in range(5):
            page = {"files": [], "next_page_token": f"{number}"}
            at.faults.answer("GET", "/v3/files", 200, json.dumps({"data": page}))
        at.faults.answer("GET", "/v3/files", 200, json.dumps({"data": {"files": [row]}}))
        assert len(asyncio.run(at.open().pins("n"))) == 1


@pytest.mark.parametrize("count", [5, 1_000_000, 3])
def test_legacy_list_with_a_larger_count_is_used_and_reported(count: int, tmp_path: Path) -> None:
    row = {"ipfs_pin_hash": CID_TEXT, "date_pinned": AT, "metadata": {"name": "n"}}
    with bench("pinata-legacy", tmp_path) as at:
        at.faults.answer("GET", "/data/pinList", 200, json.dumps({"count": count, "rows": [row]}))
        at.faults.answer("GET", "/data/pinList", 200, json.dumps({"count": 2, "rows": []}))
        provider = at.open()
        assert [str(pin.cid) for pin in asyncio.run(provider.pins("n"))] == [CID_TEXT]
        assert isinstance(provider, Unreading)
        assert provider.unread() == [f"{count - 1:,} pins that its list counts and does not show"]


@pytest.mark.parametrize("count", [None, "5", 2.5, [], True, 0, -1])
def test_legacy_list_with_an_invalid_count_is_read(count: object, tmp_path: Path) -> None:
    row = {"ipfs_pin_hash": CID_TEXT, "date_pinned": AT, "metadata": {"name": "n"}}
    with bench("pinata-legacy", tmp_path) as at:
        at.faults.answer("GET", "/data/pinList", 200, json.dumps({"count": count, "rows": [row]}))
        provider = at.open()
        assert len(asyncio.run(provider.pins("n"))) == 1
        assert isinstance(provider, Unreading) and provider.unread() == []


def test_bucket_list_that_ends_early_is_unread(tmp_path: Path) -> None:
    page = _s3("n").replace("<ListBucketResult>", "<ListBucketResult><IsTruncated>true</IsTruncated>")
    with bench("filebase-s3", tmp_path) as at:
        at.faults.answer("GET", ".*", 200, page)
        with pytest.raises(ProviderRefused, match="ends its list before its end, so the rest is unread"):
            asyncio.run(at.open().pins("n"))


def test_damaged_pin_list_behind_a_peer_is_named(tmp_path: Path) -> None:
    with bench("peer", tmp_path) as at:
        provider = at.open()
        assert isinstance(provider, Unreading)
        asyncio.run(_put(provider))
        (tmp_path / "pins" / f"{'0' * 64}.pins").write_bytes(b"damaged")
        assert [str(pin.cid) for pin in asyncio.run(provider.pins("n"))] == [CID_TEXT]
        assert provider.unread() == [f"{'0' * 64}.pins"]


def test_many_unread_lists_of_a_peer_are_reported_in_few_lines(tmp_path: Path) -> None:
    answer = json.dumps({"pins": [], "unread": [f"{n}.pins" for n in range(20_000)]})
    with bench("peer", tmp_path) as at:
        at.faults.answer("GET", "/pins", 200, answer)
        provider = at.open()
        assert asyncio.run(provider.pins("n")) == []
        assert isinstance(provider, Unreading)
        assert provider.unread() == ["0.pins", "1.pins", "2.pins", "19,997 further lists"]


@pytest.mark.parametrize("lacking", [["no cid", 5, None], [CID_TEXT, {}]])
def test_answer_of_a_peer_with_an_invalid_entry_is_used(lacking: list[object], tmp_path: Path) -> None:
    answer = json.dumps({"cids": [CID_TEXT, 7, None, "no cid"], "lacking": lacking})
    with bench("peer", tmp_path) as at:
        at.faults.answer("POST", "/has", 200, answer)
        provider = at.open()
        assert isinstance(provider, PeerProvider)
        assert asyncio.run(provider.has([tree().cid])) == {tree().cid}
        assert asyncio.run(provider.missing_blocks()) == [tree().cid for one in lacking if one == CID_TEXT]


async def _put(provider: Provider) -> None:
    found = tree()
    await provider.put_car(found.cid, found.blocks, name="n")
    await provider.pin(found.cid, "n")


def test_list_with_short_pages_is_read_to_its_end(tmp_path: Path) -> None:
    rows = [{"ipfs_pin_hash": CID_TEXT, "date_pinned": f"2026-11-0{n}T00:00:00Z", "metadata": {"name": "n"}} for n in (3, 2, 1)]  # fmt: skip
    with bench("pinata-legacy", tmp_path) as at:
        for row in rows:
            page = {"count": len(rows), "rows": [row]}
            at.faults.answer("GET", "/data/pinList", 200, json.dumps(page))
        assert len(asyncio.run(at.open().pins("n"))) == 3
