"""Common duties of hosted services, tested with simulations of Pinata (three ways) and Filebase (two ways)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any

import pytest

from ipfsmem.content.cid import raw_cid
from ipfsmem.errors import ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import Block, Capabilities, Pin, Provider, same_root
from tests.unit.providers.services_lab import FILES, KINDS, Account, account, files_under, tree

UPLOAD = {
    "pinata-car": ("POST", "/v3/files$"), "pinata-free": ("POST", "/v3/files$"),
    "pinata-legacy": ("POST", "/pinning/pinFileToIPFS"), "filebase-s3": ("PUT", r"\.car$"),
    "filebase-rpc": ("POST", "/dag/import"),
}  # fmt: skip
LIST = {
    "pinata-car": "/v3/files/public$", "pinata-free": "/v3/files/public$", "pinata-legacy": "/data/pinList",
    "filebase-s3": "/memories$", "filebase-rpc": "/v1/ipfs/pins",
}  # fmt: skip


@pytest.fixture(params=KINDS)
def at(request: pytest.FixtureRequest) -> Iterator[Account]:
    with account(request.param) as made:
        yield made


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(body)


async def publish(provider: Provider, made: Any, name: str = "ipfsmem-one") -> Any:
    """Publish as the sync does."""
    answered = same_root(made.cid, await provider.put_car(made.cid, iter(made.blocks), name=name), provider)
    if provider.capabilities.pin:
        assert (await provider.pin(answered, name)).cid == answered
    return answered


def fails(account: Account, body: Coroutine[Any, Any, Any]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        asyncio.run(body)
    shown = str(caught.value) + repr(caught.value) + str(caught.value.hint)
    assert not any(secret in shown for secret in account.secrets)
    return caught.value


def test_service_is_a_provider(at: Account) -> None:
    provider = at.open()
    assert isinstance(provider, Provider)
    assert isinstance(provider.capabilities, Capabilities)
    assert provider.capabilities.keeps_root == (at.kind not in ("pinata-free", "pinata-legacy"))
    assert not provider.capabilities.has and not provider.capabilities.names
    assert not any(secret in provider.name for secret in at.secrets)


def test_empty_account_returns_empty_answers(at: Account) -> None:
    async def body() -> None:
        provider = at.open()
        made = tree()
        assert await provider.pins("ipfsmem-0") == []
        assert await provider.get_blocks([made.cid]) == {}
        try:
            assert [block async for block in provider.get_dag(made.cid)] == []
        except ProviderRefused as error:  # a dedicated gateway does not say more
            assert "403" in str(error) and at.server.rooted
        await provider.unpin(Pin(made.cid, "ipfsmem-0", "nothing", 0))
        for refused in (provider.has([made.cid]), provider.put_name("k51", b""), provider.get_name("k51")):
            with pytest.raises(ProviderRefused):
                await refused
        await provider.close()
        await provider.close()

    run(body())


def test_stored_tree_is_read_on_another_device(at: Account) -> None:
    async def body() -> None:
        made = tree()
        root = await publish(at.open(), made)
        assert (root == made.cid) == at.open().capabilities.keeps_root
        other = at.open()
        [pin] = await other.pins("ipfsmem-one")
        assert pin.cid == root and pin.handle and pin.created > 1_700_000_000_000
        assert await files_under(other, pin.cid) == FILES
        blocks = [block async for block in at.open().get_dag(root)]
        assert blocks[0][0] == root
        if root == made.cid:
            assert dict(blocks) == dict(made.blocks)

    run(body())


def test_repeated_upload_changes_nothing(at: Account) -> None:
    async def body() -> None:
        made = tree()
        roots = {await publish(at.open(), made) for _ in range(3)}
        assert len(roots) == 1
        assert [pin.cid for pin in await at.open().pins("ipfsmem-one")] == list(roots)

    run(body())


def test_pins_are_listed_and_removed_by_name(at: Account) -> None:
    async def body() -> None:
        one, two = at.open(), at.open()
        first = await publish(one, tree())
        second = await publish(two, tree(head_ipm=b"second"))
        third = await publish(one, tree(head_ipm=b"third"), "ipfsmem-two")
        assert [pin.cid for pin in await two.pins("ipfsmem-one")] == [second, first]
        assert [pin.cid for pin in await one.pins("ipfsmem-two")] == [third]
        assert await one.pins("ipfsmem") == await one.pins("ipfsmem-on") == []
        old = (await one.pins("ipfsmem-one"))[-1]
        await two.unpin(old)
        await one.unpin(old)
        assert [pin.cid for pin in await one.pins("ipfsmem-one")] == [second]
        assert [pin.cid for pin in await one.pins("ipfsmem-two")] == [third]
        assert (await files_under(two, second))["head.ipm"] == b"second"
        if one.capabilities.pin:
            pin = await at.open().pin(second, "ipfsmem-one")
            assert [pin] == await two.pins("ipfsmem-one")

    run(body())


def test_wrong_block_is_refused_before_anything_is_sent(at: Account) -> None:
    cid = raw_cid(b"\x01" * 32)
    error = fails(at, at.open().put_car(cid, [(cid, b"wrong")], name="n"))
    assert isinstance(error, ProviderRefused) and str(cid) in str(error)
    assert at.server.seen == []


def test_exception_of_a_block_iterator_is_raised_unchanged(at: Account) -> None:
    made = tree()

    def broken() -> Iterable[Block]:
        yield made.blocks[0]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(at.open().put_car(made.cid, broken(), name="n"))
    assert at.server.seen == []


def test_blocks_are_read_on_the_callers_thread(at: Account) -> None:
    threads = set()

    def blocks() -> Iterable[Block]:
        for block in tree().blocks:
            threads.add(threading.get_ident())
            yield block

    asyncio.run(at.open().put_car(tree().cid, blocks(), name="n"))
    assert threads == {threading.get_ident()}


def test_tree_of_one_block_is_stored(at: Account) -> None:
    async def body() -> None:
        provider = at.open()
        leaf = tree().blocks[0]
        assert await provider.put_car(leaf[0], [leaf], name="n") == leaf[0]
        assert await provider.get_blocks([leaf[0], leaf[0]]) == {leaf[0]: leaf[1]}

    run(body())


def test_concurrent_devices_publish_to_one_account(at: Account) -> None:
    async def body() -> None:
        trees = [tree(head_ipm=b"device %d" % number) for number in range(4)]
        roots = await asyncio.gather(*(publish(at.open(), made) for made in trees))
        assert {pin.cid for pin in await at.open().pins("ipfsmem-one")} == set(roots)

    run(body())


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413])
def test_refusals_are_not_retried(at: Account, status: int) -> None:
    method, path = UPLOAD[at.kind]
    at.server.faults.answer(
        method, path, status, '{"error":{"reason":"NO","details":"not this way"}}', times=-1
    )
    if at.kind == "pinata-free" and status in (402, 403):  # it means a plan without CARs
        at.settings["pinata_upload"] = "folder"
        at.server.faults.clear()
        at.server.faults.answer(
            "POST",
            "/pinning/pinFileToIPFS",
            status,
            '{"error":{"reason":"NO","details":"not this way"}}',
            times=-1,
        )
    error = fails(at, at.open().put_car(tree().cid, tree().blocks, name="n"))
    assert isinstance(error, ProviderRefused) and (error.hint or status in (400, 404))
    assert at.server.faults.hits == 1
    assert "not this way" in str(error) or status == 401
    at.server.faults.answer("GET", LIST[at.kind], status, times=-1)
    assert isinstance(fails(at, at.open().pins("n")), ProviderRefused)


def test_requested_pause_is_respected(at: Account) -> None:
    method, path = UPLOAD[at.kind]
    at.server.faults.answer(method, path, 429, "slow down", Retry_After="7")
    asyncio.run(publish(at.open(), tree()))
    assert any(7 <= pause <= 8 for pause in at.work.pauses)
    at.server.faults.answer("GET", LIST[at.kind], 429, Retry_After="3600", times=-1)
    error = fails(at, at.open().pins("ipfsmem-one"))
    assert isinstance(error, ProviderUnavailable) and "3600" in str(error)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_outages_are_retried_and_reported(at: Account, status: int) -> None:
    method, path = UPLOAD[at.kind]
    at.server.faults.answer(method, path, status, times=2)
    asyncio.run(publish(at.open(), tree()))
    at.server.faults.answer("*", "", status, "<html><title>Bad day</title>", kind="text/html", times=-1)
    for body in (
        at.open().put_car(tree().cid, tree(head_ipm=b"x").blocks, name="n"), at.open().pins("n"),
        at.open().unpin(Pin(tree().cid, "n", "x", 0)),
    ):  # fmt: skip
        error = fails(at, body)
        assert isinstance(error, ProviderUnavailable) and f" {status} " in str(error)


def test_connection_lost_during_an_upload_is_retried(at: Account) -> None:
    method, path = UPLOAD[at.kind]
    at.server.faults.reset(method, path, after=200_000, times=2)

    async def body() -> None:
        root = await publish(at.open(), tree())
        assert await files_under(at.open(), root) == FILES
        assert len(await at.open().pins("ipfsmem-one")) == 1

    run(body())


def test_unexpected_page_is_an_error(at: Account) -> None:
    at.server.faults.answer(
        "GET", LIST[at.kind], 200, "<html>Welcome to the hotel", kind="text/html", times=-1
    )
    assert not isinstance(fails(at, at.open().pins("ipfsmem-one")), NotImplementedError)


def test_wrong_bytes_of_a_gateway_are_not_returned(at: Account) -> None:
    async def body() -> None:
        root = await publish(at.open(), tree())
        at.server.faults.answer(
            "GET", "/ipfs/", 200, "something else", kind="application/vnd.ipld.raw", times=-1
        )
        with pytest.raises(ProviderRefused, match="other bytes"):
            await at.open().get_blocks([root])

    run(body())
