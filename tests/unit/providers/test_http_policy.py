"""Backoff, Retry-After and rates; reasons from error bodies; redaction of secrets; CARs and forms to send."""

from __future__ import annotations

import asyncio
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipfsmem_providers.http.body import Body, Multipart, SpooledCar
from ipfsmem_providers.http.errors import REDACTED, Reason, Redactor, combined, failure, reason_of
from ipfsmem_providers.http.policy import RateLimiter, Retry, retry_after

from ipfsmem.content.car import car_bytes
from ipfsmem.content.cid import raw_cid
from ipfsmem.errors import ProviderRefused, ProviderUnavailable, UsageError
from tests.servers.clockwork import Clockwork


def test_waits_double_up_to_a_limit() -> None:
    policy = Retry(attempts=8, first=1, most=10)
    assert [policy.wait(n, None, 1.0) for n in range(1, 9)] == [1, 2, 4, 8, 10, 10, 10, None]
    assert policy.wait(2, None, 0.0) == 1  # at random down to half
    assert Retry(attempts=10**6).wait(10**5, None, 1.0) == 20


def test_pause_requested_by_the_service_is_added() -> None:
    policy = Retry(attempts=3, first=1, patience=60)
    assert policy.wait(1, 30, 1.0) == 31
    assert policy.wait(1, 60.5, 1.0) is None
    assert policy.wait(3, 1, 1.0) is None


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None), ("", None), ("0", 0), ("120", 120), (" 5 ", 5), ("-1", None), ("1.5", None), ("soon", None),
        ("9" * 10, 999_999_999), ("9" * 5000, 999_999_999), ("٣", None), ("Thu, 01 Jan 1970 00:02:00 GMT", 20), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Thu, 99 Jan 1970 00:00:00 GMT", None),
    ],
)  # fmt: skip
def test_retry_after_header_is_parsed(header: str | None, expected: float | None) -> None:
    assert retry_after(header, wall=100.0) == expected


def test_token_bucket_releases_requests_in_order() -> None:
    work = Clockwork()
    limiter = RateLimiter(63, burst=3, timing=work.timing)

    async def body() -> list[float]:
        waits = [await limiter.wait() for _ in range(5)]
        work.clock.advance(2)
        return [*waits, await limiter.wait(), await limiter.wait(), await limiter.wait()]

    assert asyncio.run(body()) == [0, 0, 0, 1, 1, 0, 0, 1]


@pytest.mark.parametrize("rate", [1, 5, 7, 30, 60, 250, 500])
def test_requests_per_minute_stay_below_the_limit(rate: int) -> None:
    """Services count the requests of a minute, those of a burst too."""
    work = Clockwork()
    limiter = RateLimiter(rate, timing=work.timing)

    async def body() -> list[float]:
        times = []
        for _ in range(3 * rate):
            await limiter.wait()
            times.append(work.timing.now())
        return times

    times = asyncio.run(body())
    assert all(after - before > 59.999 for before, after in zip(times, times[rate:], strict=False))


def test_token_bucket_can_be_paused() -> None:
    work = Clockwork()
    limiter = RateLimiter(70, burst=10, timing=work.timing)

    async def body() -> float:
        limiter.pause(30)
        return await limiter.wait()

    assert asyncio.run(body()) == 30
    with pytest.raises(UsageError):
        RateLimiter(0)


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b'{"error":{"reason":"INVALID","details":"not so"}}', "INVALID", "not so"),
        (b'{"error":{"reason":"INVALID"}}', "INVALID", ""),
        (b'{"error":"no such plan"}', "", "no such plan"),
        (b'{"error":"BAD","message":"no such plan"}', "BAD", "no such plan"),
        (b'{"message":"text"}', "", "text"),
        (b'{"Message":"block was not found","Code":0,"Type":"error"}', "error", "block was not found"),
        (b'{"code":"ERROR_NO_TOKEN","message":"no token"}', "ERROR_NO_TOKEN", "no token"),
        (b'{"errors":[{"message":"first"},{"message":"second"}]}', "", "first"),
        (b'["just a list"]', "", "just a list"),
        (b"[]", "", ""),
        (b'{"error":{"error":{"error":{"error":{"message":"deep"}}}}}', "", ""),
        (b'{"error":null,"detail":"x"}', "", "x"),
        (b'{"broken', "", '{"broken'),
        (b"[" * 100_000, "", None),
        (b"plain   text\n\x00\x1b[31mwith things", "", "plain text [31mwith things"),
        (b"", "", ""),
        (b"\xff\xfe", "", "��"),
        (b"<Error><Code>NoSuchKey</Code><Message>gone &amp; lost</Message></Error>", "NoSuchKey", "gone & lost"),
        (b"<!DOCTYPE html><html><head><title>502 Bad\nGateway</title></head>x</html>", "", "502 Bad Gateway"),
        (b"<html><script>evil()</script><b>Sorry</b>, &lt;closed&gt;</html>", "", "Sorry , <closed>"),
    ],
)  # fmt: skip
def test_reason_is_extracted_from_an_error_body(body: bytes, code: str, text: str | None) -> None:
    found = reason_of(body)
    assert found.code == code and (text is None or found.text == text)


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_no_error_body_breaks_the_parser(body: bytes) -> None:
    found = reason_of(body)
    assert len(str(found)) <= 700 and "\n" not in str(found)


def test_long_reasons_are_shortened() -> None:
    assert len(reason_of(b"x" * 10_000).text) == 300
    assert str(Reason("A", "b")) == "A: b" and str(Reason("A", "A")) == "A" and str(Reason()) == ""


@pytest.mark.parametrize(
    "text",
    [
        "https://user:hunter22@example.com/x",
        "GET /?token=hunter22&x=1",
        "https://a/?X-Amz-Signature=hunter22",
        "https://a/?a=1;api_key=hunter22#x",
        "authorization: Bearer hunter22abc",
        "Basic hunter22=",
        "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJodW50ZXIyMiJ9.hunter22",
    ],
)
def test_text_like_a_secret_is_redacted(text: str) -> None:
    shown = Redactor()(text)
    assert "hunter22" not in shown and REDACTED in shown


def test_known_secrets_are_redacted_anywhere() -> None:
    redact = Redactor(["s3cr3t-value", "ab"])
    redact.add_headers({"x-pinata-gateway-token": "gateway-token", "Authorization": "Bearer of-bad-news"})
    assert redact("a s3cr3t-value b") == f"a {REDACTED} b"
    assert "of-bad-news" not in redact("body said of-bad-news") and "gateway-token" not in redact(
        "gateway-token"
    )
    assert redact("abab") == "abab"  # too short to redact
    assert redact("https://a/?keyvalues[a]=b&name=c") == "https://a/?keyvalues[a]=b&name=c"


def test_failures_are_classified_and_combined() -> None:
    refused = failure("pinata", 403, Reason("NO_SCOPES_FOUND", ""), what="upload")
    assert isinstance(refused, ProviderRefused) and "scopes" in refused.hint
    assert str(refused) == "pinata answered 403 to upload: NO_SCOPES_FOUND"
    busy = failure("pinata", 429, Reason(), after=7)
    assert isinstance(busy, ProviderUnavailable) and str(busy) == "pinata answered 429 (try again in 7 s)"
    both = combined([refused, busy], "nobody took it")
    assert isinstance(both, ProviderUnavailable) and "403" in str(both) and "429" in str(both)
    assert isinstance(combined([refused, refused]), ProviderRefused)


BLOCKS = [(raw_cid(hashlib.sha256(data).digest()), data) for data in (bytes([i]) * 70_000 for i in range(5))]


def test_spooled_car_equals_the_streamed_car() -> None:
    async def body() -> None:
        root = BLOCKS[0][0]
        with await SpooledCar.write(root, [*BLOCKS, BLOCKS[0]]) as car:
            expected = car_bytes([root], BLOCKS)
            assert isinstance(car, Body) and car.size == len(expected)
            assert car.sha256 == hashlib.sha256(expected).digest()
            for _ in range(2):
                assert b"".join([piece async for piece in car.pieces()]) == expected
            assert b"".join([piece async for piece in car.part(100, 200_000)]) == expected[100:200_100]
            assert b"".join([piece async for piece in car.part(car.size - 1, 10)]) == expected[-1:]

    asyncio.run(body())


def test_wrong_block_is_not_spooled() -> None:
    with pytest.raises(ProviderRefused, match=str(BLOCKS[0][0])):
        asyncio.run(SpooledCar.write(BLOCKS[0][0], [(BLOCKS[0][0], b"other")]))


def test_small_files_of_a_form_are_sent_in_one_piece() -> None:
    form = Multipart("bound")
    for number in range(1_000):
        form.file("file", f"{number}", b"%03d" % number * 100)

    async def pieces(form: Multipart) -> list[bytes]:
        return [piece async for piece in form.pieces()]

    sent = asyncio.run(pieces(form))
    assert len(b"".join(sent)) == form.size
    assert len(sent) == 1 + form.size // 65_536 == 7

    async def with_cars() -> None:
        with await SpooledCar.write(BLOCKS[0][0], BLOCKS) as car:
            sent = await pieces(Multipart("bound").file("file", "a", car).file("file", "b", car))
            assert b"".join(sent).count(car_bytes([BLOCKS[0][0]], BLOCKS)) == 2
            assert max(map(len, sent)) < 400_000  # collected pieces are limited

    asyncio.run(with_cars())


def test_form_is_parsed_by_a_real_server() -> None:
    import email.parser
    import email.policy

    form = (
        Multipart("bound").field("naïve", 'a "b"\r\nc').file("file", 'q"uo\r\nte', b"\x00\xff", "image/png")
    )

    async def whole() -> bytes:
        return b"".join([piece async for piece in form.pieces()])

    data = asyncio.run(whole())
    assert len(data) == form.size
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(
        f"Content-Type: {form.content_type}\r\n\r\n".encode() + data
    )
    text, file = message.iter_parts()
    assert text.get_payload(decode=True) == b'a "b"\r\nc'
    assert file.get_content_type() == "image/png" and file.get_payload(decode=True) == b"\x00\xff"
    assert file.get_filename() == "q%22uo%0D%0Ate"
