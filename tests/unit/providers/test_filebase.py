"""Filebase: settings, the CID of an uploaded object, signatures, RPC with partial CARs, the gateway alias."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest
from ipfsmem_providers.filebase import FilebaseProvider
from ipfsmem_providers.filebase import signing as s3_signing

from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import open_provider
from tests.servers import filebase
from tests.unit.providers.services_lab import FILES, Account, account, files_under, tree

NAME = "ipfsmem-0123456789abcdef"
KEYS = {"filebase_key": filebase.KEY, "filebase_secret": filebase.SECRET}


@pytest.fixture
def at() -> Iterator[Account]:
    with account("filebase-s3") as made:
        yield made


@pytest.fixture
def rpc() -> Iterator[Account]:
    with account("filebase-rpc") as made:
        yield made


def put(at: Account, **settings: Any) -> Any:
    return asyncio.run(at.open(**settings).put_car(tree().cid, tree().blocks, name=NAME))


def refused(at: Account, kind: type[ProviderError] = ProviderRefused, **settings: Any) -> ProviderError:
    with pytest.raises(kind) as caught:
        put(at, **settings)
    told = str(caught.value) + str(caught.value.hint)
    assert not any(secret in told for secret in at.secrets)
    return caught.value


def test_filebase_settings_are_read_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FILEBASE_KEY", "FILEBASE_SECRET", "FILEBASE_BUCKET"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="FILEBASE_KEY"):
        open_provider("filebase:memories")
    monkeypatch.setenv("FILEBASE_KEY", filebase.KEY)
    with pytest.raises(ConfigError, match="FILEBASE_SECRET"):
        open_provider("filebase:memories")
    monkeypatch.setenv("FILEBASE_SECRET", filebase.SECRET)
    with pytest.raises(ConfigError, match="FILEBASE_BUCKET"):
        open_provider("filebase")
    assert isinstance(open_provider("filebase:memories"), FilebaseProvider)
    monkeypatch.setenv("FILEBASE_BUCKET", "others")
    assert open_provider("filebase").name == "filebase:others"
    for bad in ({"filebase_via": "ftp"}, {"filebase_patience": "-1"}, {"filebase_s3_url": "s3.filebase.com"}):
        with pytest.raises(ConfigError):
            open_provider("filebase:memories", bad)
    with pytest.raises(ConfigError):
        open_provider("filebase:../../etc")


def test_both_documented_filebase_hosts_are_accepted() -> None:
    """A missing CID at the first upload shows a bucket at the wrong host."""
    for host in ("https://s3.filebase.com", "https://s3.filebase.io"):
        assert (
            open_provider("filebase:memories", {**KEYS, "filebase_s3_url": host}).name == "filebase:memories"
        )


def test_missing_signer_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_signing.importlib.util, "find_spec", lambda name: None)
    assert importlib.util.find_spec("botocore") is None
    with pytest.raises(ConfigError) as caught:
        open_provider("filebase:memories", KEYS)
    assert "pip install botocore" in str(caught.value.hint)
    assert open_provider("filebase:memories", {**KEYS, "filebase_via": "rpc"}).name == "filebase:memories"


def test_each_root_is_one_object(at: Account) -> None:
    put(at)
    assert list(at.server.objects) == [f"ipfsmem/{NAME}/{tree().cid}.car"]
    [(_, _, about)] = at.server.objects.values()
    assert about["x-amz-meta-import"] == "car"
    [pin] = asyncio.run(at.open().pins(NAME))
    asyncio.run(at.open().unpin(pin))
    assert at.server.objects == {}


def test_pending_cid_of_an_upload_is_awaited(at: Account) -> None:
    at.server.pending = 4
    assert put(at) == tree().cid
    # Checked at once, then after pauses that double.
    assert at.work.pauses == [0.125, 0.25, 0.5, 1.0]


def test_publish_has_a_fixed_number_of_requests(at: Account) -> None:
    """After the initial list of a sync one PUT; a HEAD precedes it only where an upload may exist."""

    async def body() -> None:
        provider = at.open()
        assert await provider.pins(NAME) == []
        for number in range(2):
            made = tree(head_ipm=b"%d" % number)
            await provider.put_car(made.cid, made.blocks, name=NAME)
        await provider.put_car(made.cid, made.blocks, name=NAME)  # exists: one request and no upload
        assert [line.split()[0] for line in at.server.seen] == ["GET", "PUT", "PUT", "HEAD"]
        at.server.seen.clear()
        made = tree(head_ipm=b"lost")
        at.server.faults.answer("PUT", "car", 500, times=-1)
        with pytest.raises(ProviderUnavailable):
            await provider.put_car(made.cid, made.blocks, name=NAME)
        at.server.faults.clear()
        await provider.put_car(made.cid, made.blocks, name=NAME)
        assert [line.split()[0] for line in at.server.seen] == ["HEAD", "PUT"]

    asyncio.run(body())


@pytest.mark.parametrize("plain", [False, True])
def test_upload_without_a_cid_is_an_error(at: Account, plain: bool) -> None:
    at.server.plain, at.server.pending = plain, 10_000
    error = refused(at, ProviderUnavailable, filebase_patience=30)
    assert "no CID" in str(error) and "s3.filebase.io" in str(error)
    assert 30 <= sum(at.work.pauses) < 60


def test_upload_that_was_imported_late_is_not_resent(at: Account) -> None:
    at.server.pending = 10_000
    refused(at, ProviderUnavailable, filebase_patience=5)
    at.server.looks = dict.fromkeys(at.server.looks, 0)
    assert put(at) == tree().cid
    assert sum(line.startswith("PUT") for line in at.server.seen) == 1


@pytest.mark.parametrize("kind", ["filebase-s3", "filebase-rpc"])
def test_another_root_is_an_error_that_shows_both_roots(kind: str) -> None:
    with account(kind) as at:
        at.server.wrong_root = other = tree(head_ipm=b"other").cid
        error = refused(at)
        assert str(other) in str(error) and str(tree().cid) in str(error)
        assert at.server.objects == {} and asyncio.run(at.open().pins(NAME)) == []


def test_invalid_cid_of_an_upload_is_refused(at: Account) -> None:
    at.server.faults.answer("PUT", "car", 200, x_amz_meta_cid="soon")
    assert "soon" in str(refused(at))


def test_wrong_key_or_bucket_is_refused(at: Account) -> None:
    error = refused(at, filebase_secret="not the secret of anyone")
    assert "HEAD" not in str(error) and "FILEBASE_SECRET" in str(error.hint)
    with pytest.raises(ProviderRefused, match="SignatureDoesNotMatch"):
        asyncio.run(at.open(filebase_secret="not the secret of anyone").pins(NAME))
    with pytest.raises(ProviderRefused, match="unknown bucket nobody"):
        asyncio.run(at.open(rest="nobody").pins(NAME))
    at.server.faults.answer("GET", "/memories", 403, "<Error><Code>RequestTimeTooSkewed</Code></Error>")
    with pytest.raises(ProviderRefused, match="clock"):
        asyncio.run(at.open().pins(NAME))
    at.server.faults.answer("GET", "/memories", 307, Location="https://s3.filebase.io/memories")
    with pytest.raises(ProviderRefused, match="elsewhere"):
        asyncio.run(at.open().pins(NAME))


def test_slow_down_answer_is_retried_later(at: Account) -> None:
    at.server.faults.answer("PUT", "car", 503, "<Error><Code>SlowDown</Code></Error>", times=2)
    assert put(at) == tree().cid
    at.server.faults.answer("PUT", "car", 503, "<Error><Code>SlowDown</Code></Error>", times=-1)
    asyncio.run(at.open().unpin(asyncio.run(at.open().pins(NAME))[0]))
    assert "SlowDown" in str(refused(at, ProviderUnavailable))


def test_pin_list_is_read_page_by_page(at: Account) -> None:
    at.server.page = 2

    async def body() -> None:
        for number in range(5):
            made = tree(head_ipm=b"%d" % number)
            await at.open().put_car(made.cid, made.blocks, name=NAME)
        found = await at.open().pins(NAME)
        assert [pin.cid for pin in found] == [tree(head_ipm=b"%d" % number).cid for number in (4, 3, 2, 1, 0)]

    asyncio.run(body())


@pytest.mark.parametrize("token", ["same", "%d"])
def test_list_that_repeats_a_page_is_unread(at: Account, token: str) -> None:
    row = f"<Contents><Key>ipfsmem/{NAME}/{tree().cid}.car</Key></Contents>"
    for number in range(4):
        mark = f"<NextContinuationToken>{token.replace('%d', str(number))}</NextContinuationToken>"
        text = f"<ListBucketResult>{row}{mark}</ListBucketResult>"
        at.server.faults.answer("GET", "/memories", 200, text, kind="application/xml")
    with pytest.raises(
        ProviderRefused, match="filebase repeats the pages of its list, so the rest is unread"
    ):
        asyncio.run(at.open().pins(NAME))


@pytest.mark.parametrize("text", [
    '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><ListBucketResult>&b;</ListBucketResult>',
    "not xml", "<ListBucketResult><Contents>", "",
])  # fmt: skip
def test_invalid_pin_list_is_refused(at: Account, text: str) -> None:
    at.server.faults.answer("GET", "/memories", 200, text, kind="application/xml")
    with pytest.raises(ProviderRefused, match="list"):
        asyncio.run(at.open().pins(NAME))


def test_invalid_entries_of_a_pin_list_are_ignored(at: Account) -> None:
    good = f"ipfsmem/{NAME}/{tree().cid}.car"
    keys = [
        "",
        "x",
        f"ipfsmem/{NAME}/nocidatallnono.car",
        f"ipfsmem/other/{tree().cid}.car",
        f"{good}/x",
        good,
    ]
    rows = "".join(f"<Contents><Key>{key}</Key><LastModified>never</LastModified></Contents>" for key in keys)
    at.server.faults.answer("GET", "/memories", 200, f"<ListBucketResult>{rows}</ListBucketResult>")
    [pin] = asyncio.run(at.open().pins(NAME))
    assert (pin.cid, pin.handle, pin.created) == (tree().cid, good, 0)


def test_s3_pins_only_by_upload(at: Account) -> None:
    assert not at.open().capabilities.pin
    with pytest.raises(ProviderRefused, match="pins only what it uploads"):
        asyncio.run(at.open().pin(tree().cid, NAME))


def test_rpc_uploads_a_partial_car(rpc: Account) -> None:
    assert not rpc.open().capabilities.partial_car
    provider = rpc.open(filebase_partial="1")
    assert provider.capabilities.partial_car

    async def body() -> None:
        first, second = tree(), tree(head_ipm=b"second")
        new = [block for block in second.blocks if block not in first.blocks]
        with pytest.raises(ProviderRefused, match="could not find"):
            await provider.put_car(second.cid, new, name=NAME)
        await provider.put_car(first.cid, first.blocks, name=NAME)
        await provider.put_car(second.cid, new, name=NAME)
        await provider.pin(second.cid, NAME)
        assert await files_under(rpc.open(), second.cid) == {**FILES, "head.ipm": b"second"}

    asyncio.run(body())


def test_rpc_pin_is_awaited_and_unpinned_completely(rpc: Account) -> None:
    put(rpc)
    pin = asyncio.run(rpc.open().pin(tree().cid, NAME))
    assert rpc.server.node_pins == {tree().cid} and rpc.work.pauses == [0.125]
    other = asyncio.run(rpc.open().pin(tree().cid, "ipfsmem-two"))
    asyncio.run(rpc.open().unpin(other))
    assert rpc.server.node_pins == {tree().cid}  # another name still needs it
    asyncio.run(rpc.open().unpin(pin))
    assert rpc.server.node_pins == set() and rpc.server.pins == {}
    with pytest.raises(ProviderRefused, match="failed"):
        asyncio.run(rpc.open().pin(tree(head_ipm=b"nobody has it").cid, NAME))


def test_publish_by_rpc_has_a_fixed_number_of_requests(rpc: Account) -> None:
    """The import, the list, the request, and two status checks: at once, and after an eighth of a second."""
    put(rpc)
    asyncio.run(rpc.open().pin(tree().cid, NAME))
    assert [line.split()[0] for line in rpc.server.seen] == ["POST", "GET", "POST", "GET", "GET"]
    asyncio.run(rpc.open().pin(tree().cid, NAME))
    assert rpc.server.seen[5:] == ["GET /v1/ipfs/pins"]


def test_rpc_pin_that_never_completes_is_an_error(rpc: Account) -> None:
    put(rpc)
    queued = (
        f'{{"requestid":"7","status":"queued","created":"","pin":{{"cid":"{tree().cid}","name":"{NAME}"}}}}'
    )
    rpc.server.faults.answer("GET", "/v1/ipfs/pins$", 200, '{"count":0,"results":[]}', times=-1)
    rpc.server.faults.answer("POST", "/v1/ipfs/pins$", 202, queued)
    rpc.server.faults.answer("GET", "/v1/ipfs/pins/7$", 200, queued, times=-1)
    with pytest.raises(ProviderUnavailable, match=r"still pinning .* after 30 s"):
        asyncio.run(rpc.open(filebase_patience=30).pin(tree().cid, NAME))
    assert sum(rpc.work.pauses) == 30 and len(rpc.work.pauses) == 9


def test_unreadable_rpc_pins_are_skipped(rpc: Account) -> None:
    good = f'{{"requestid":"1","status":"pinned","created":"2026-11-01T00:00:00Z","pin":{{"cid":"{tree().cid}","name":"{NAME}"}}}}'
    rows = f'{good},{{"requestid":"2","status":"pinned","pin":{{"cid":"no cid","name":"{NAME}"}}}},{{"requestid":3}},"noise"'
    rpc.server.faults.answer("GET", "/v1/ipfs/pins$", 200, f'{{"count":4,"results":[{rows}]}}')
    [pin] = asyncio.run(rpc.open().pins(NAME))
    assert (pin.cid, pin.handle) == (tree().cid, "1")


def test_open_gateway_is_read_by_cids(at: Account) -> None:
    put(at)
    assert asyncio.run(files_under(at.open(), tree().cid)) == FILES
    asked = [line for line in at.server.seen if line.startswith("GET /ipfs/")]
    assert asked and not any("/s/" in line or "format=car" in line for line in asked)


def test_rpc_import_without_a_root_is_an_error(rpc: Account) -> None:
    rpc.server.faults.answer("POST", "import", 200, '\n{"Stats":{}}\nnoise\n')
    assert "without naming a root" in str(refused(rpc, ProviderUnavailable))
    rpc.server.faults.answer("POST", "import", 500, '{"Message":"bad car","Code":0,"Type":"error"}', times=-1)
    assert "bad car" in str(refused(rpc, ProviderUnavailable))


@pytest.mark.parametrize("kind", ["filebase-s3", "filebase-rpc"])
def test_gateway_alias_is_updated_and_receives_no_key(kind: str) -> None:
    with account(kind) as at:
        put(at, filebase_alias="my-memory")
        assert at.server.names["my-memory"]["cid"] == str(tree().cid)
        made = tree(head_ipm=b"2")
        provider = at.open(filebase_alias="my-memory")
        asyncio.run(provider.put_car(made.cid, made.blocks, name=NAME))
        assert at.server.names["my-memory"]["cid"] == str(made.cid)
        assert not any("network_private_key" in name for name in at.server.names.values())
        at.server.faults.answer("*", "/v1/names", 402, times=-1)
        assert put(at, filebase_alias="another") == tree().cid  # an alias is not worth a failed publish
