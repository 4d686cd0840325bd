"""Untrusted answers cost little and stop nobody: long texts, invalid addresses, nested indexes."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest
from ipfsmem_providers import psa_client
from ipfsmem_providers.gateways import Gateways
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.http.errors import Redactor, reason_of
from yarl import URL

from ipfsmem.content.cid import raw_cid
from ipfsmem.errors import ProviderRefused
from tests.support.costs import cost


@pytest.mark.parametrize(
    "part",
    ["?token", "?tokentoken", "&a=b", "-eyJaaaa", "eyJaaaaaaaa.", "Bearer ", "http://a", "http://a@"],
)
def test_redaction_time_is_linear_in_the_length(part: str) -> None:
    """Growth is measured, not seconds."""
    redact = Redactor(["a-secret"])
    small, large = (part * (size // len(part)) for size in (20_000, 160_000))
    assert cost(lambda: redact(large)) < 8 * 3 * max(cost(lambda: redact(small)), 0.001)


@pytest.mark.parametrize(
    "part", ["<", "<title>", "<script", "<script>", "</script>", "<style>a", "<a b='", "<Code>"]
)
def test_parsing_time_of_an_error_page_is_linear_in_the_length(part: str) -> None:
    small, large = (b"<" + part.encode() * (size // len(part)) for size in (8_000, 64_000))
    assert cost(lambda: reason_of(large)) < 8 * 3 * max(cost(lambda: reason_of(small)), 0.001)


@pytest.mark.parametrize(
    "page",
    [
        lambda text: text.encode(),
        lambda text: b'{"error": {"reason": "X", "details": "' + text.encode() + b'"}}',
        lambda text: b'{"error": "' + text.encode() + b'", "message": "no"}',
        lambda text: b"<Error><Code>X</Code><Message>" + text.encode() + b"</Message></Error>",
        lambda text: b"<html><body>" + text.encode() + b"</body></html>",
    ],
)
def test_token_at_the_cut_of_a_reason_is_redacted_whole(page: Callable[[str], bytes]) -> None:
    token = "Zq8-token-that-nobody-may-see-1234567890"
    redact = Redactor([token])
    for before in range(255, 302):
        reason = str(reason_of(page("x" * before + token), redact))
        assert len(reason) <= 620 and not any(token[:n] in reason for n in range(4, len(token) + 1)), before


def test_token_at_the_cut_of_an_address_or_a_pin_status_is_redacted() -> None:
    token = "Zq8-token-that-nobody-may-see-1234567890"
    http = Http("service", trusted=["https://a.example"], auth={"Authorization": f"Bearer {token}"})
    for before in range(440, 520):
        with pytest.raises(ProviderRefused) as caught:
            http._redirect(
                http._request("POST", "https://a.example/", {}, whole=True),
                _Redirect({"Location": "https://b.example/" + "x" * before + token}, 302),  # type: ignore[arg-type]
                URL("https://a.example/"), {}, 0,
            )  # fmt: skip
        assert not any(token[:n] in str(caught.value) for n in range(4, len(token) + 1))
        found = psa_client._why({"error": "x" * (before - 200) + token}, http.redact)
        assert not any(token[:n] in found for n in range(4, len(token) + 1))


class _Redirect(NamedTuple):
    headers: dict[str, str]
    status: int


def test_reasons_of_error_pages_and_addresses_are_shown() -> None:
    page = b"<html><head><style>p {}</style><script>var x = '<b>';</script></head><body><p>no such <b>root</b></p></body>"
    assert reason_of(page).text == "no such root"
    assert reason_of(b"<html><title>502 Bad Gateway</title>x").text == "502 Bad Gateway"
    told = Redactor()("https://h/x?a=b&X-Amz-Signature=abc123&sig=1&key=2&monkey=3#f?token=t")
    assert (
        told
        == "https://h/x?a=b&X-Amz-Signature=[redacted]&sig=[redacted]&key=[redacted]&monkey=3#f?token=[redacted]"
    )
    assert Redactor()("-eyJabcdefgh.abcd.x eyJabc.de") == "-[redacted] eyJabc.de"


LOCATIONS = [
    b"/a\x7f",
    b"/a\x01",
    b"http://[::1",
    b"//\xff\xfe/",
    b"http://\xe2\x80\xae.x/",
    b"http://a..b/",
    b"http://" + b"a" * 300 + b".com/",
    b"http://x:99999/",
    b"http://x:0/",
    b"http://xn--/",
    b"",
]


@pytest.mark.parametrize("location", LOCATIONS, ids=repr)
def test_gateway_with_an_invalid_redirect_does_not_stop_the_others(location: bytes) -> None:
    async def bad(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def good(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.ipld.raw\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
        )
        await writer.drain()
        writer.close()

    async def run() -> None:
        servers = [await asyncio.start_server(each, "127.0.0.1", 0) for each in (bad, good)]
        ports = [server.sockets[0].getsockname()[1] for server in servers]
        gateways = Gateways(",".join(f"http://127.0.0.1:{port}" for port in ports))
        cid = raw_cid(hashlib.sha256(b"ok").digest())
        try:
            assert await gateways.get_blocks([cid]) == {cid: b"ok"}
        finally:
            await gateways.close()
            for server in servers:
                server.close()

    asyncio.run(run())


def test_deeply_nested_index_is_refused() -> None:
    """Also with a raised recursion limit."""
    code = """
import hashlib, sys
from ipfsmem.content.car import car_bytes
from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.errors import FormatError
from ipfsmem_providers.web3storage import dag_cbor
from ipfsmem_providers.web3storage.shards import INDEX, read_index
def block(data):
    return CID(1, 0x71, b"\\x12\\x20" + hashlib.sha256(data).digest()), data
deep = block(b"\\x82\\x41a" + b"\\x81" * 200_000 + b"\\x00")
root = block(dag_cbor.encode({INDEX: {"content": raw_cid(bytes(32)), "shards": [deep[0]]}}))
sys.setrecursionlimit(100_000)
try:
    read_index(car_bytes([root[0]], [deep, root]))
except FormatError:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "refused", done.stderr[-500:]
