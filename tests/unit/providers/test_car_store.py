"""The CAR store of the simulated services, and the simulated Filebase in front of another S3 server."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import web

from ipfsmem.content.car import car_bytes
from ipfsmem.content.cid import raw_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import FormatError
from tests.servers import filebase
from tests.servers.car_store import CarStore
from tests.servers.threaded import serve
from tests.support.patience import PATIENCE
from tests.unit.providers.services_lab import FILES, account, files_under, tree

WRONG = (raw_cid(b"\x01" * 32), b"other bytes")


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("step", [1_000, 65_536, 10_000_000])
def test_uploaded_car_is_stored_as_its_blocks(strict: bool, step: int) -> None:
    store, made = CarStore(), tree()
    data = car_bytes([made.cid], made.blocks)
    arriving = store.arriving(strict=strict)
    for start in range(0, len(data), step):
        arriving.feed(data[start : start + step])
    assert arriving.keep() == made.cid
    assert bool(store.unread) == (not strict)
    assert made.cid in store and dict(store) == dict(made.blocks) and len(store) == len(dict(made.blocks))
    store.update(dict([WRONG]))
    assert store[WRONG[0]] == WRONG[1] and len(store) == len(dict(made.blocks)) + 1
    assert raw_cid(b"\x02" * 32) not in store


def test_wrong_block_in_a_car_is_refused() -> None:
    store, made = CarStore(), build_tree({"a": b"1", "b": b"2"})
    data = car_bytes([made.cid], [made.blocks[0], WRONG, *made.blocks[1:]])
    with pytest.raises(FormatError):
        store.arriving(strict=True).feed(data)
    late = store.arriving(strict=False)
    late.feed(data)
    assert late.keep() == made.cid
    assert WRONG[0] not in store and made.cid not in store  # nothing from the bad block on
    two = store.arriving(strict=False)
    two.feed(car_bytes([made.cid, made.cid], made.blocks))
    with pytest.raises(FormatError, match="2 roots"):
        two.keep()


def test_upload_is_forwarded_while_it_arrives() -> None:
    kept: list[bytes] = []
    order: list[str] = []

    async def take(request: web.Request) -> web.Response:
        assert request.headers["Content-Length"] and "Transfer-Encoding" not in request.headers
        pieces = []
        async for piece in request.content.iter_any():
            pieces.append(piece)
            order.append("upstream")
        kept.append(b"".join(pieces))
        return web.Response(headers={"ETag": '"x"'})

    def upstream() -> web.Application:
        app = web.Application()
        app.router.add_put("/{tail:.*}", take)
        app.router.add_head("/{tail:.*}", nothing)
        return app

    async def nothing(_: web.Request) -> web.Response:
        return web.Response(status=404)

    made = tree()
    with serve(upstream) as real, account("filebase-s3", real) as at:
        provider = at.open()
        assert asyncio.run(provider.put_car(made.cid, made.blocks, name="ipfsmem-one")) == made.cid
        assert len(kept) == 1 and len(kept[0]) == len(car_bytes([made.cid], made.blocks))
        assert len(at.server.blocks.unread) == 1 and at.server.objects == {}
        assert asyncio.run(files_under(at.open(), made.cid)) == FILES

        async def half_way() -> None:
            """The first half was forwarded before the second half was sent."""
            data = car_bytes([made.cid], made.blocks)
            order.clear()

            async def slowly() -> object:
                yield data[: len(data) // 2]
                async with asyncio.timeout(PATIENCE):
                    while not order:
                        await asyncio.sleep(0.01)
                order.append("second half")
                yield data[len(data) // 2 :]

            headers = {"x-amz-meta-import": "car", "Content-Length": str(len(data))}
            async with (
                aiohttp.ClientSession() as session,
                session.put(f"{at.url}/{filebase.BUCKET}/x.car", data=slowly(), headers=headers) as answer,
            ):
                assert answer.headers["x-amz-meta-cid"] == str(made.cid)
            assert order[0] == "upstream" and "second half" in order

        asyncio.run(half_way())
