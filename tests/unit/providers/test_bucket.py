"""A bucket's address, its credentials, and the messages for its server's errors."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import hashlib
import itertools
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from ipfsmem_providers.bucket import BucketProvider
from ipfsmem_providers.bucket import address as bucket_address
from ipfsmem_providers.bucket import gate as bucket_gate
from ipfsmem_providers.bucket import layout as bucket_layout
from ipfsmem_providers.bucket import objects as bucket_objects
from ipfsmem_providers.bucket.address import Address, Patience, credentials, parse, store
from ipfsmem_providers.bucket.errors import NoAnswer, gate_error
from ipfsmem_providers.bucket.gate import DRIPPING, Gate
from ipfsmem_providers.http.policy import ONCE, Retry, Timeouts

from ipfsmem.content.cid import raw_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import open_provider
from tests.servers import s3
from tests.servers.threaded import own_certificate, serve
from tests.support.hints import Refused
from tests.support.patience import PATIENCE
from tests.support.ports import free_port
from tests.unit.provider.test_contract import NAME, record
from tests.unit.providers.bucket_lab import Bucket, bucket

TREE = build_tree({"a": b"one", "b/c": b"two" * 999})
KEYS = {"aws_access_key_id": "AKIDEXAMPLE1234", "aws_secret_access_key": "a-secret-that-nobody-may-see"}
CID = raw_cid(bytes(32))
QUICK = Retry(attempts=4, first=0.01, most=0.02)


@pytest.fixture
def at() -> Iterator[Bucket]:
    with bucket() as made:
        yield made


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*(name for groups in bucket_address._KEYS.values() for group in groups for name in group),):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)


def asks(at: Bucket, what: str = "pins", *given: Any, **settings: Any) -> Any:
    """Make one call with a new provider."""

    async def ask() -> Any:
        provider = at.open(**{"retry": ONCE, **settings})
        try:
            return await getattr(provider, what)(*(given or ("m",)))
        finally:
            await provider.close()

    return asyncio.run(ask())


def says(at: Bucket, status: int, code: str, text: str = "") -> None:
    """Set the answer of the server from now on."""
    at.server.faults.clear()
    body = f"<Error><Code>{code}</Code><Message>{text}</Message></Error>"
    at.server.faults.answer("*", ".*", status, body, times=-1, kind="application/xml")


# -- addresses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rest", "address"),
    [
        ("s3://my-bucket", Address("s3", "my-bucket", "", "")),
        ("s3://my.bucket/a/b.c/", Address("s3", "my.bucket", "a/b.c", "")),
        ("gs://my_bucket/x", Address("gs", "my_bucket", "x", "")),
        ("az://box/x", Address("az", "box", "x", "")),
        ("https://S3.Example.com:9000/box/x", Address("s3", "box", "x", "https://s3.example.com:9000")),
        ("http://127.0.0.1:9000/box", Address("s3", "box", "", "http://127.0.0.1:9000")),
        (
            "https://me.blob.core.windows.net/box/x",
            Address("az", "box", "x", "https://me.blob.core.windows.net"),
        ),
    ],
)
def test_bucket_address_is_parsed_and_printed(rest: str, address: Address) -> None:
    assert parse(rest) == address
    assert parse(str(address)) == address


@pytest.mark.parametrize(
    "rest",
    [
        "", "my-bucket", "s3:my-bucket", "s3://", "s3://a", "s3://me:secret@box", "s3://box?key=secret", "s3://box#x", "ftp://box",
        "https://host", "https://host/", "https://me:secret@host/box", "https://host:0/box", "https://host:x/box",
        "s3://box:80/x", "http://me.blob.core.windows.net/box", "https://me.blob.core.windows.net:443/box", "https://[::1/box", "s3://bo x", "s3://../etc",
    ],
)  # fmt: skip
def test_invalid_bucket_address_is_refused(rest: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_provider(f"bucket:{rest}", KEYS)
    assert "secret" not in caught.value.diagnostics()


def test_invalid_bucket_settings_are_refused_with_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    with Refused(
        "For instance bucket:s3://my-bucket/memories, bucket:https://s3.example.com/my-bucket/memories, bucket:gs://my-bucket "
        "or bucket:az://my-container."
    ):
        open_provider("bucket:")
    with Refused("Use letters, digits, dots, hyphens and underscores between the slashes."):
        open_provider("bucket:s3://box/with space", KEYS)
    with Refused(
        "Set them in the environment, by the names of the vendor's own toolsVALUE. BUCKET_CREDENTIALS=instance asks the cloud that this machine runs in."
    ):
        open_provider("bucket:s3://box")
    with pytest.raises(ConfigError, match="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set"):
        open_provider("bucket:s3://box", {"aws_access_key_id": "half of it"})
    with pytest.raises(ConfigError, match="GOOGLE_APPLICATION_CREDENTIALS is not set"):
        open_provider("bucket:gs://box")
    with Refused("Write bucket:https://<storage account>VALUE/VALUE, or set AZURE_STORAGE_ACCOUNT_NAME."):
        open_provider("bucket:az://box", {"azure_storage_account_key": "bm90aGluZw=="})
    key = {"azure_storage_account_key": "bm90aGluZw=="}
    assert open_provider("bucket:https://me.blob.core.windows.net/box", key).name.endswith("/box")
    with Refused("Look at the variables of the environment that begin with VALUE."):
        open_provider("bucket:gs://box", {"google_service_account_key": "no JSON, and a secret"})
    for name, value in KEYS.items():
        monkeypatch.setenv(name.upper(), value)
    assert open_provider("bucket:s3://box/x").name == "bucket:s3://box/x"
    with pytest.raises(ConfigError, match="BUCKET_CREDENTIALS"):
        credentials(parse("s3://box"), {"bucket_credentials": "somewhere"})


def test_region_is_taken_from_the_host_name() -> None:
    patience = Patience(1, 1, 1)
    for host, region in (
        ("https://s3.us-west-004.backblazeb2.com", "us-west-004"),
        ("https://s3.eu-central-1.wasabisys.com", "eu-central-1"),
        ("https://account.r2.cloudflarestorage.com", "auto"),
        ("http://127.0.0.1:9000", "us-east-1"),
        ("https://minio.example.com", "us-east-1"),
    ):
        made = store(parse(f"{host}/box"), KEYS, patience)
        assert made.config.get("region", "us-east-1") == region, host
    assert (
        store(parse("s3://box"), {**KEYS, "bucket_region": "ap-south-1"}, patience).config["region"]
        == "ap-south-1"
    )


def test_missing_obstore_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['obstore'] = None\n"
        "import importlib.util; find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'obstore' else find(name, *more)\n"
        "from ipfsmem.provider.contract import open_provider\n"
        "try: open_provider('bucket:s3://box', {'aws_access_key_id': 'x', 'aws_secret_access_key': 'y'})\n"
        "except Exception as error: print(type(error).__name__, error.hint)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "ConfigError Install it: pip install 'ipfsmem[bucket]'.\n"


def test_obstore_is_imported_when_a_bucket_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_address.importlib.util, "find_spec", lambda name: None)
    with Refused("Install it: pip install 'ipfsmem[bucket]'."):
        open_provider("bucket:s3://box", KEYS)
    code = "import sys, ipfsmem_providers.bucket.provider; print('obstore' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"


# -- messages ---------------------------------------------------------------------------------------------------------


def test_bucket_server_errors_have_hints_that_help(at: Bucket) -> None:
    with Refused("Create it in the vendor's console, or correct the name of the bucket or its server."):
        BucketNamed(at, "nobody-made-this").asks()
    with Refused("Check the credentials in the environment, and that they are for this endpoint."):
        asks(at, aws_secret_access_key="wrong")
    with Refused("Check the credentials in the environment, and that they are for this endpoint."):
        asks(at, aws_access_key_id="WRONG")
    at.server.ahead = 3600.0
    with Refused("Set this device's clock: it may be off by at most 15 minutes."):
        asks(at)
    at.server.ahead = 0.0
    says(
        at,
        301,
        "PermanentRedirect",
        "The bucket you are attempting to access must be addressed using another endpoint.",
    )
    with Refused("Set AWS_REGION (or BUCKET_REGION) to the bucket's region, for instance eu-central-1."):
        asks(at)
    says(at, 400, "AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong; expecting 'eu-west-1'")
    with Refused("Set AWS_REGION (or BUCKET_REGION) to the bucket's region, for instance eu-central-1."):
        asks(at)
    says(at, 403, "AccessDenied", "Access Denied")
    with Refused(
        "The key needs to read, write, list and delete objects in this bucket. Without permission to list, some servers answer the same for a missing bucket."
    ):
        asks(at)
    says(at, 403, "QuotaExceeded", "full")
    with Refused("Free space there, or raise its quota."):
        asks(at)
    at.server.faults.clear()
    assert asks(at) == []


class BucketNamed:
    """The same server's bucket of another name."""

    def __init__(self, at: Bucket, name: str) -> None:
        self.provider = BucketProvider(f"{at.url}/{name}", {**at.settings, "retry": ONCE})

    def asks(self) -> Any:
        return asyncio.run(self.provider.pins("m"))


def test_unreachable_bucket_server_is_reported(at: Bucket) -> None:
    provider = BucketProvider(f"http://127.0.0.1:{free_port()}/box", {**KEYS, "retry": ONCE})
    with Refused("Check that this device is online, and that the server's name is correct."):
        asyncio.run(provider.pins("m"))
    assert asks(at) == []


def test_bucket_errors_contain_no_secret(at: Bucket) -> None:
    for status in (400, 401, 403, 404, 409, 418, 500, 503):
        says(at, status, "Odd", f"You sent {s3.SECRET} and {s3.KEY}, https://h/x?a=b&sig=0123456789abcdef")
        with pytest.raises(ProviderError) as caught:
            asks(at)
        told = repr(caught.value) + caught.value.diagnostics()
        for name, secret in (("secret", s3.SECRET), ("key", s3.KEY), ("signature", "0123456789abcdef")):
            assert secret not in told, (status, name, told)
    assert s3.SECRET not in at.open().name + repr(at.open())


def test_transient_bucket_errors_are_retried(at: Bucket) -> None:
    for status in (500, 503, 429):
        at.server.faults.answer("*", ".*", status, "", times=2)
        assert asks(at, retry=QUICK) == []
    at.server.faults.answer("*", ".*", 503, "", times=-1)
    with pytest.raises(ProviderUnavailable):
        asks(at)


def test_bucket_changed_during_a_read_asks_to_sync_again(at: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = at.open()

    def gone(*_: Any) -> Any:
        raise FileNotFoundError("taken away at this moment")

    with monkeypatch.context() as patch:
        patch.setattr(provider._packs, "has", gone)
        with Refused("Sync again."):
            asyncio.run(provider.has([CID]))
    assert asyncio.run(provider.has([CID])) == set()


# -- packs -------------------------------------------------------------------------------------------------------------


def test_interrupted_large_upload_keeps_its_finished_packs(
    at: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next upload sends only the rest."""
    monkeypatch.setattr(BucketProvider, "pack_bytes", 100_000)
    files = {f"{n}": bytes([n]) * 40_000 for n in range(12)}
    tree = build_tree(files)
    left = [4]

    def stops(blocks: Any) -> Any:
        for block in blocks:
            if len(block[1]) > 30_000:
                left[0] -= 1
            if left[0] < 0:
                raise ZeroDivisionError
            yield block

    with pytest.raises(ZeroDivisionError):
        asyncio.run(at.open().put_car(tree.cid, stops(tree.blocks), name="m"))
    there = asyncio.run(at.open().has([cid for cid, _ in tree.blocks]))
    assert 0 < len(there) < len(tree.blocks)
    rest = [block for block in tree.blocks if block[0] not in there]
    asyncio.run(at.open().put_car(tree.cid, rest, name="m"))
    blocks = dict(tree.blocks)
    assert asyncio.run(at.open().get_blocks(list(blocks))) == blocks
    assert sum(key.endswith(".car") for key in at.server.objects) >= 4


def test_small_packs_are_merged_and_large_ones_kept(at: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    from ipfsmem_providers.bucket.layout import BucketPacks

    monkeypatch.setattr(BucketPacks, "max_packs", 6)
    monkeypatch.setattr(BucketPacks, "large_bytes", 50_000)
    everything = {}
    for n in range(30):
        tree = build_tree({"x": bytes([n]) * (80_000 if n % 10 == 0 else 400)})
        asyncio.run(at.open().put_car(tree.cid, tree.blocks, name="m"))
        everything |= dict(tree.blocks)
    sizes = [len(body) for key, (body, _, _) in at.server.objects.items() if key.endswith(".car")]
    assert sum(size > 50_000 for size in sizes) == 3 and len(sizes) <= 10
    assert sorted(key[:-4] for key in at.server.objects if key.endswith(".car")) == sorted(
        key[:-4] for key in at.server.objects if key.endswith(".idx")
    )
    assert asyncio.run(at.open().get_blocks(list(everything))) == everything


def test_damaged_pack_returns_other_blocks_and_lost_ones_are_resent(at: Bucket) -> None:
    blocks = [(cid, data) for cid, data in build_tree({f"{n}": bytes([n]) * 3_000 for n in range(5)}).blocks]
    asyncio.run(at.open().put_car(blocks[0][0], blocks, name="m"))
    [key] = [key for key in at.server.objects if key.endswith(".car")]
    body, when, about = at.server.objects[key]
    hit = body.index(bytes([3]) * 100)
    at.server.objects[key] = (body[:hit] + b"!" + body[hit + 1 :], when, about)
    [lost] = [cid for cid, data in blocks if data == bytes([3]) * 3_000]
    cids = [cid for cid, _ in blocks]
    assert asyncio.run(at.open().get_blocks(cids)).keys() == set(cids) - {lost}
    other = at.open()
    assert asyncio.run(other.has(cids)) == set(cids) - {lost}
    assert [cid.digest for cid in asyncio.run(other.missing_blocks())] == [lost.digest]
    asyncio.run(other.put_car(lost, [block for block in blocks if block[0] == lost], name="m"))
    assert asyncio.run(at.open().get_blocks(cids)) == dict(blocks)
    assert asyncio.run(at.open().missing_blocks()) == []


@pytest.mark.parametrize("little", [0, 1 << 20])
def test_page_of_a_proxy_does_not_mark_a_pack_as_damaged(
    at: Bucket, monkeypatch: pytest.MonkeyPatch, little: int
) -> None:
    monkeypatch.setattr(bucket_layout, "_LITTLE", little)
    asyncio.run(at.open().put_car(TREE.cid, TREE.blocks, name="m"))
    before = dict(at.server.objects)
    provider = at.open(retry=QUICK)
    at.server.faults.answer("GET", r"\.car$", 200, "<html>log in first</html>", times=-1, kind="text/html")
    for _ in range(2):
        with pytest.raises(ProviderError):
            asyncio.run(provider.get_blocks([cid for cid, _ in TREE.blocks]))
    at.server.faults.clear()
    assert at.server.objects == before
    assert asyncio.run(provider.get_blocks([cid for cid, _ in TREE.blocks])) == dict(TREE.blocks)
    assert asyncio.run(at.open().get_blocks([cid for cid, _ in TREE.blocks])) == dict(TREE.blocks)


def test_range_past_the_end_of_an_object_is_short(at: Bucket) -> None:
    """As for a file in a folder. Servers answer 416 only to a range that starts there."""
    objects = at.open(retry=ONCE).objects
    objects.put("a", b"0123456789")
    objects.put("empty", b"")
    assert objects.ranges("a", [(2, 5), (8, 20), (10, 12), (50, 60)]) == [b"234", b"89", b"", b""]
    assert objects.ranges("a", [(10, 12)]) == [b""] == objects.ranges("empty", [(0, 4)])
    assert objects.head("empty", 4) is None and objects.head("none", 4) is None
    with pytest.raises(FileNotFoundError):
        objects.ranges("none", [(50, 60)])


@pytest.mark.parametrize("what", ["head", "ranges", "read"])
def test_endless_object_is_read_to_its_limit(at: Bucket, what: str) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        headers = {"ETag": '"x"', "Last-Modified": "Sun, 01 Nov 2026 00:00:00 GMT"}
        asked = request.headers.get("Range", "")[len("bytes=") :]
        if asked:
            headers["Content-Range"] = f"bytes {asked}/5000"
        answer = web.StreamResponse(status=206 if asked else 200, headers=headers)
        answer.content_length = 256 << 20
        await answer.prepare(request)
        for _ in range(256):
            await answer.write(b"x" * (1 << 20))
            sent += 1
        return answer

    objects = at.open(retry=ONCE).objects
    at.server.faults.add("GET", ".*", endless, -1)
    if what == "head":
        assert objects.head("a", 1_000) == (b"x" * 1_000, 5_000)
    elif what == "ranges":
        assert objects.ranges("a", [(0, 10), (20, 25)]) == [b"x" * 10, b"x" * 5]
    else:
        with pytest.raises(FileNotFoundError):
            objects.read("a")
    assert sent < 128


@pytest.mark.parametrize(
    "date", ["9999-12-31T23:59:59Z", "+10000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "then"]
)
@pytest.mark.parametrize("size", ["18446744073709551615", "18446744073709551616", "-1"])
def test_list_with_values_out_of_range_is_refused(at: Bucket, date: str, size: str) -> None:
    rows = "".join(
        f"<Contents><Key>mem/packs/{name}</Key><LastModified>{date}</LastModified><Size>{size}</Size></Contents>"
        for name in ("0" * 64 + ".car", "0" * 64 + ".idx", "1" * 64 + ".car")
    )
    body = f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
    at.server.faults.answer("GET", r"/memories/?$", 200, body, times=-1, kind="application/xml")
    for what, given in (("pins", "m"), ("has", [CID]), ("get_blocks", [CID])):
        with contextlib.suppress(ProviderError):
            assert not asks(at, what, given)


def _trust_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make obstore accept the certificate of a server of these tests."""
    from obstore.store import S3Store

    def trusting(bucket: str, *, client_options: dict[str, Any], **options: Any) -> S3Store:
        return S3Store(
            bucket, client_options={**client_options, "allow_invalid_certificates": True}, **options
        )

    monkeypatch.setattr("obstore.store.S3Store", trusting)


def test_https_request_follows_no_redirect_to_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def of_this_network() -> web.Application:
        async def answer(request: web.Request) -> web.Response:
            asked.append(request.path)
            return web.Response(text="for this network only")

        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        return app

    _trust_all(monkeypatch)
    with serve(of_this_network) as inside, serve(lambda: leads_to(inside), own_certificate(tmp_path)) as url:
        objects = BucketProvider(f"{url}/memories/mem", {**KEYS, "retry": ONCE}).objects
        with pytest.raises(ProviderError, match="failed to read an object"):
            objects.read("a")
    assert asked == []


@pytest.mark.parametrize("length", [2_000, 70_000, 1 << 20])
def test_list_of_names_longer_than_a_store_has_is_refused(at: Bucket, length: int) -> None:
    """obstore panics at such a request."""
    key = f"mem/names/{NAME}/{'n' * length}"
    row = f"<Contents><Key>{key}</Key><LastModified>2026-11-01T00:00:00Z</LastModified><Size>9</Size></Contents>"
    body = f"<ListBucketResult><IsTruncated>false</IsTruncated>{row}</ListBucketResult>"
    at.server.faults.answer("GET", r"/memories/?$", 200, body, times=-1, kind="application/xml")
    with pytest.raises(ProviderRefused, match="lists an object whose name is too long"):
        asks(at, "get_name", NAME)


def test_panic_of_obstore_becomes_a_provider_error(at: Bucket) -> None:
    with pytest.raises(ProviderRefused, match="no request can be made to read an object"):
        at.open().objects.read("n" * (1 << 20))


def test_redirect_to_another_host_receives_no_session_token(
    at: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """obstore follows redirects and drops only the headers that it knows to be secret."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-session-token-of-the-tests")
    asked: list[str] = []

    def elsewhere() -> web.Application:
        async def answer(request: web.Request) -> web.Response:
            asked.append(str(request.headers))
            return web.Response(text="taken")

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        return app

    with serve(elsewhere) as other:
        place = other.replace("127.0.0.1", "localhost")
        with serve(lambda: leads_to(place)) as url:
            objects = BucketProvider(f"{url}/memories/mem", {**KEYS, "retry": ONCE}).objects
            with pytest.raises(ProviderRefused, match="redirects to another host"):
                objects.read("a")
            with Refused("Name the host and port that have the bucket, and its region (BUCKET_REGION)."):
                objects.list("packs")
            with pytest.raises(ProviderRefused, match="refused to store an object"):
                objects.put("a", b"x")
    assert asked == []
    assert asks(at) == []


@pytest.mark.parametrize("status", [200, 400, 503])
@pytest.mark.parametrize("what", ["list", "put"])
def test_endless_answer_of_a_bucket_is_cut(status: int, what: str) -> None:
    sent: list[int] = []

    def endless() -> web.Application:
        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(status=status, headers={"ETag": '"x"'})
            await response.prepare(request)
            with contextlib.suppress(ConnectionError):
                while sum(sent) < 1 << 30:
                    await response.write(b"<a>" * 20_000)
                    sent.append(60_000)
            return response

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        return app

    with serve(endless) as url:
        objects = BucketProvider(f"{url}/memories/mem", {**KEYS, "retry": ONCE}).objects
        if what == "put" and status == 200:
            objects.put("a", b"x")  # nobody reads its body
        else:
            with pytest.raises(ProviderRefused, match="sent an endless answer when asked to"):
                objects.list("packs") if what == "list" else objects.put("a", b"x")
    assert sum(sent) < 64 << 20


class Timers:
    """Replaces Timer: a timer fires when it is called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[Callable[[], None]] = []
        monkeypatch.setattr(bucket_objects, "Timer", self._timer)

    def _timer(self, seconds: float, call: Callable[..., None], given: list[Any]) -> Any:
        self.calls.append(lambda: call(*given))
        return SimpleNamespace(start=lambda: None, cancel=lambda: None, daemon=False)


def test_list_of_empty_pages_next_to_other_providers_ends(
    at: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """obstore skips empty pages internally, which would block its thread."""
    timers = Timers(monkeypatch)
    asked = itertools.count(1)

    async def page(_: web.Request) -> web.StreamResponse:
        number = next(asked)
        if number == 3 and timers.calls:
            timers.calls[-1]()
        token = f"<NextContinuationToken>{number}</NextContinuationToken>" if number < 20 else ""
        text = f"<ListBucketResult><IsTruncated>{'true' if token else 'false'}</IsTruncated>{token}</ListBucketResult>"
        return web.Response(text=text, content_type="application/xml")

    at.server.faults.add("GET", ".*", page, -1)
    objects = at.open(company=True, retry=ONCE).objects
    with pytest.raises(ProviderUnavailable, match="its answer comes too slowly"):
        objects.list("packs")
    assert next(asked) < 20 and not objects._gate.is_interrupted


def test_late_timer_of_a_list_ends_no_other_request(at: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    timers = Timers(monkeypatch)
    objects = at.open(company=True).objects
    objects.put("packs/1", b"x")
    assert [*objects.list("packs")] == ["1"] and len(timers.calls) == 2
    for late in timers.calls:
        late()
    assert [*objects.list("packs")] == ["1"] and not objects._gate.is_interrupted


def test_list_of_a_bucket_alone_has_no_timer(at: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    timers = Timers(monkeypatch)
    assert at.open().objects.list("packs") == {} and timers.calls == []


def test_slow_byte_stream_of_a_bucket_is_aborted(at: Bucket) -> None:
    """For obstore each byte is progress."""
    ended = threading.Event()

    def dripping() -> web.Application:
        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            with contextlib.suppress(ConnectionError):
                while not ended.is_set():
                    await response.write(b" ")
                    await asyncio.sleep(0.02)
            return response

        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        return app

    gate = Gate((), 1 << 30, {}, stall=0.2, drip=1024)
    timer = threading.Timer(PATIENCE, ended.set)
    timer.start()
    with serve(dripping) as url:
        where = urlsplit(gate.url)
        secret = base64.b64encode(f"{where.username}:{where.password}".encode()).decode()
        with socket.create_connection((where.hostname, where.port)) as client:
            client.sendall(
                f"GET {url}/ HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic {secret}\r\n\r\n".encode()
            )
            with contextlib.suppress(ConnectionError):
                while client.recv(1_000):
                    pass
        given_up = not ended.is_set()
        ended.set()
    timer.cancel()
    gate.close()
    assert given_up and gate.problems[DRIPPING] == 1
    limits = Timeouts(stall=7.5, drip=99)
    used = at.open(timeouts=limits).objects._gate
    assert (used.stall, used.drip) == (7.5, 99)
    assert isinstance(gate_error(DRIPPING, "bucket:x", "list objects"), NoAnswer)


def test_unclosed_bucket_ends_its_gate_thread() -> None:
    """Each thread holds three descriptors."""

    def gates() -> set[threading.Thread]:
        # Not their idents: the system reuses that of an ended thread.
        return {thread for thread in threading.enumerate() if thread.name == "ipfsmem-gate"}

    before = gates()
    provider = open_provider("bucket:http://127.0.0.1:9/notes", KEYS)
    mine = gates() - before
    assert len(mine) == 1
    del provider
    gc.collect()
    end = time.monotonic() + PATIENCE
    while mine & gates() and time.monotonic() < end:
        time.sleep(0.01)
    assert not mine & gates()


def test_idle_connection_of_a_bucket_is_not_counted_as_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server ends TLS with a few bytes, a minute after the last answer."""
    ahead = [0.0]
    monkeypatch.setattr(bucket_gate._Loop, "time", lambda _: time.monotonic() + ahead[0])
    idle = threading.Event()
    with socket.create_server(("127.0.0.1", free_port())) as listening:
        listening.settimeout(PATIENCE)

        def answer() -> None:
            there, _ = listening.accept()
            with there:
                there.recv(1_000)
                there.sendall(b"answer")
                idle.wait(PATIENCE)
                there.sendall(b"end")
                there.recv(1_000)

        server = threading.Thread(target=answer)
        server.start()
        gate = Gate((), 1 << 30, {}, stall=60.0, drip=1024)
        where = urlsplit(gate.url)
        secret = base64.b64encode(f"{where.username}:{where.password}".encode()).decode()
        to = f"127.0.0.1:{listening.getsockname()[1]}"
        with socket.create_connection((where.hostname, where.port)) as client:
            client.settimeout(PATIENCE)
            client.sendall(f"CONNECT {to} HTTP/1.1\r\nProxy-Authorization: Basic {secret}\r\n\r\n".encode())
            client.recv(1_000)
            client.sendall(b"a request")
            assert client.recv(1_000) == b"answer"
            ahead[0] = 100.0
            idle.set()
            assert client.recv(1_000) == b"end"
        server.join(PATIENCE)
        gate.close()
    assert gate.problems[DRIPPING] == 0


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_bucket_behind_a_proxy_of_the_environment_is_used(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = Gate((), 1 << 30, {})
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    _trust_all(monkeypatch)
    server = s3.SmallS3(signed=False)
    with serve(server.bucket_app, own_certificate(tmp_path) if scheme == "https" else None) as url:
        objects = BucketProvider(f"{url}/memories/mem", KEYS).objects
        for number in range(3):
            objects.put(f"packs/{number}", bytes([number]) * (3 << 20))
        assert set(objects.list("packs")) == {"0", "1", "2"}
        assert objects.read("packs/2") == b"\x02" * (3 << 20)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        objects = BucketProvider(f"{url}/memories/mem", KEYS).objects
        through = proxy.requests
        assert objects.read("packs/1") == b"\x01" * (3 << 20)
    assert through > 0 and proxy.requests == through


def test_redirect_behind_a_proxy_receives_no_session_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-session-token-of-the-tests")
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    asked: list[str] = []

    def proxy() -> web.Application:
        async def answer(request: web.Request) -> web.Response:
            asked.append(request.raw_path)
            return web.Response(status=302, headers={"Location": "http://elsewhere.example/secrets"})

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        return app

    with serve(proxy) as url:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, url)
        objects = BucketProvider("http://bucket.example/memories/mem", {**KEYS, "retry": ONCE}).objects
        with pytest.raises(ProviderRefused, match="redirects to another host"):
            objects.read("a")
    assert [urlsplit(one).hostname for one in asked] == ["bucket.example"]


@contextlib.contextmanager
def behind_tls(url: str, tls: ssl.SSLContext) -> Iterator[str]:
    """Return an https URL for a server at an http URL."""
    where = urlsplit(url)
    ready = threading.Event()
    state: list[Any] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(1 << 16):
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        down, up = await asyncio.open_connection(where.hostname, where.port)
        await asyncio.gather(pump(reader, up), pump(down, writer))

    async def main() -> None:
        server = await asyncio.start_server(connection, "127.0.0.1", 0, ssl=tls)
        stop = asyncio.Event()
        state.extend((asyncio.get_running_loop(), stop, server.sockets[0].getsockname()[1]))
        ready.set()
        await stop.wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        yield f"https://{where.username}:{where.password}@127.0.0.1:{state[2]}"
    finally:
        state[0].call_soon_threadsafe(state[1].set)
        thread.join(PATIENCE)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_bucket_behind_an_https_proxy_of_the_environment_is_used(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = Gate((), 1 << 30, {})
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    monkeypatch.setattr(ssl, "create_default_context", lambda: trusting)
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    _trust_all(monkeypatch)
    tls = own_certificate(tmp_path)
    server = s3.SmallS3(signed=False)
    with (
        behind_tls(proxy.url, tls) as secure,
        serve(server.bucket_app, tls if scheme == "https" else None) as url,
    ):
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, secure)
        objects = BucketProvider(f"{url}/memories/mem", KEYS).objects
        objects.put("packs/1", b"x" * (3 << 20))
        assert objects.read("packs/1") == b"x" * (3 << 20)
        assert objects._gate.requests > 0
        objects.close()
    assert proxy.requests > 0
    proxy.close()


def test_bucket_with_socks_proxy_in_environment_is_requested_directly(
    at: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"socks5h://127.0.0.1:{free_port()}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    objects = at.open().objects
    assert objects.list("packs") == {}
    assert objects._gate.requests > 0


@pytest.mark.parametrize("end", ["closes", "resets"])
def test_upload_refusal_keeps_its_reason_when_server_closes_connection(end: str) -> None:
    """The server answers after it received the head, and does not read the body."""
    body = b"<Error><Code>QuotaExceeded</Code><Message>the account is full</Message></Error>"
    head = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)

    def answers(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                got = b""
                while b"\r\n\r\n" not in got:
                    got += client.recv(1_000)
                client.sendall(head + body)
                if end == "resets":
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answers, args=(listener,), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        objects = BucketProvider(f"{url}/memories/mem", {**KEYS, "retry": ONCE}).objects
        for _ in range(5):
            with pytest.raises(ProviderRefused, match=r"has no space left \(QuotaExceeded: the account"):
                objects.put("a", b"x" * (8 << 20))
        listener.shutdown(socket.SHUT_RDWR)


def test_redirect_to_another_port_receives_no_session_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-session-token-of-the-tests")
    asked: list[str] = []

    def elsewhere() -> web.Application:
        async def answer(request: web.Request) -> web.Response:
            asked.append(str(request.headers))
            return web.Response(text="taken")

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        return app

    with serve(elsewhere) as other, serve(lambda: leads_to(other)) as url:
        objects = BucketProvider(f"{url}/memories/mem", {**KEYS, "retry": ONCE}).objects
        with pytest.raises(ProviderRefused, match="redirects to another host or port"):
            objects.read("a")
    assert asked == []


def test_bucket_gate_refuses_a_client_without_its_secret(at: Bucket) -> None:
    gate = at.open().objects._gate
    where = urlsplit(gate.url)
    with socket.create_connection((where.hostname, where.port)) as stranger:
        stranger.sendall(f"GET {at.url}/memories/x HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert stranger.recv(100) == b""


def test_closed_bucket_leaves_no_thread_behind(at: Bucket, caplog: pytest.LogCaptureFixture) -> None:
    """Each bucket that stays open holds a thread, a port and sockets, until a long program runs out of
    files."""

    def gates() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "ipfsmem-gate"}

    others = gates()
    provider = at.open()
    for _ in range(2):  # it may be used again
        assert asyncio.run(provider.pins(NAME)) == []
        ours = gates() - others
        assert len(ours) == 1
        asyncio.run(provider.close())
        asyncio.run(provider.close())
        for thread in ours:
            thread.join(PATIENCE)
        assert gates() <= others
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_foreign_requests_to_the_gate_change_no_answer() -> None:
    def missing() -> web.Application:
        def knock() -> None:
            where = urlsplit(objects._gate.url)
            with socket.create_connection((where.hostname or "", where.port or 0)) as stranger:
                stranger.sendall(b"GET http://elsewhere.example/ HTTP/1.1\r\nHost: x\r\n\r\n")
                assert stranger.recv(100) == b""

        async def answer(request: web.Request) -> web.Response:
            await asyncio.to_thread(knock)
            return web.Response(status=404)

        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        return app

    with serve(missing) as url:
        objects = BucketProvider(f"{url}/memories/mem", {**KEYS, "retry": ONCE}).objects
        assert objects.head("a", 10) is None
        with pytest.raises(FileNotFoundError):
            objects.read("a")


@pytest.mark.parametrize(("excluded", "used"), [("10.0.0.0/8, 127.0.0.0/8", False), ("10.0.0.0/8,x", True)])
def test_bucket_host_in_no_proxy_is_requested_directly(
    excluded: str, used: bool, at: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, excluded)
    if used:
        with pytest.raises(ProviderUnavailable, match="no connection"):
            asks(at)
    else:
        assert asks(at) == []


def test_host_of_a_bucket_in_another_spelling_is_the_same_host() -> None:
    objects = BucketProvider(
        f"http://[0:0:0:0:0:0:0:1]:{free_port()}/memories/mem", {**KEYS, "retry": ONCE}
    ).objects
    with pytest.raises(ProviderUnavailable, match="no connection"):
        objects.read("a")


def test_blocked_loopback_server_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(asyncio.SelectorEventLoop, "create_server", refuse)
    with pytest.raises(ConfigError, match="allows no connection to itself"):
        BucketProvider("https://s3.example/memories/mem", KEYS)


def test_invalid_endpoint_of_another_aws_service_is_ignored(
    at: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://[x")
    assert asks(at) == []


def leads_to(place: str) -> web.Application:
    """A server that answers everything with a redirect."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": f"{place}/secrets"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    return app


def test_status_416_without_a_range_is_a_server_error(at: Bucket) -> None:
    objects = at.open(retry=ONCE).objects
    says(at, 416, "InvalidRange")
    with pytest.raises(ProviderRefused, match="refused to read an object"):
        objects.read("a")
    with pytest.raises(ProviderRefused, match="refused to list objects"):
        objects.list("")


@pytest.mark.parametrize("which", ["index", "list of pins", "record"])
def test_empty_object_hides_no_other_object(which: str, at: Bucket) -> None:
    """Servers refuse a range request for an empty object."""
    asyncio.run(at.open().put_car(TREE.cid, TREE.blocks, name="m"))
    pinned = asyncio.run(at.open().pin(TREE.cid, "m"))
    signed = record(1)
    asyncio.run(at.open().put_name(NAME, signed))
    [pack] = [key for key in at.server.objects if key.endswith(".car")]
    key = {
        "index": pack.replace(".car", ".idx"),
        "list of pins": f"{pinned.handle.partition('/')[0]}/{'a' * 64}.pins",
        "record": f"{NAME}/{'a' * 64}",
    }[which]
    folder = {"index": "", "list of pins": "mem/pins/", "record": "mem/names/"}[which]
    at.server.objects[folder + key] = (b"", *at.server.objects[pack][1:])
    assert asks(at) == [pinned]
    assert asks(at, "get_name", NAME) == signed
    assert asks(at, "get_blocks", [cid for cid, _ in TREE.blocks]) == dict(TREE.blocks)


def test_empty_block_is_read_alone(at: Bucket) -> None:
    tree = build_tree({"a": b"one", "empty": b"", "z": b"two" * 9_999})
    asyncio.run(at.open().put_car(tree.cid, tree.blocks, name="m"))
    empty = raw_cid(hashlib.sha256(b"").digest())
    assert asyncio.run(at.open().get_blocks([empty])) == {empty: b""}


def test_truncated_object_list_is_an_error(at: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a collection would delete what the missing part needs."""
    for n in range(3):
        tree = build_tree({"x": bytes([n])})
        asyncio.run(at.open().put_car(tree.cid, tree.blocks, name="m"))
        asyncio.run(at.open().pin(tree.cid, name="m"))
    monkeypatch.setattr(bucket_objects, "_LIST_MAX", 2)
    with pytest.raises(ProviderError, match="more than 2 objects"):
        asks(at)
    with pytest.raises(ProviderError, match="more than 2 objects"):
        asyncio.run(at.open().collect())


def test_merged_packs_stay_below_the_size_limit(at: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("large_bytes", 30_000), ("merge_bytes", 50_000)):
        monkeypatch.setattr(bucket_layout.BucketPacks, name, value)
    trees = [build_tree({"needed": bytes([n]) * 40_000, "other": bytes([n, 1]) * 15_000}) for n in range(3)]
    for tree in trees:
        asyncio.run(at.open().put_car(tree.cid, tree.blocks, name="m"))
        (kept,) = (cid for cid, body in tree.blocks if len(body) == 40_000)
        asyncio.run(at.open().pin(kept, name="kept"))
    before = dict(at.server.objects)
    for key, (body, _, said) in before.items():
        at.server.objects[key] = (body, "2020-01-01T00:00:00.000Z", said)
    asyncio.run(at.open().collect())
    new = {
        key: body
        for key, (body, _, _) in at.server.objects.items()
        if key not in before and key.endswith(".car")
    }
    assert len(new) == 3 and max(map(len, new.values())) < 50_000
