"""The browser client's area of small objects, in Node: at a peer and in a WebDAV folder, shared with
Python's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.http import blocks as serving
from ipfsmem.provider.contract import Provider, small_area
from ipfsmem.provider.small_objects import small_box, small_name
from tests.servers.dav import PASSWORD, USER
from tests.servers.threaded import serve
from tests.support.web_lab import Client, ClientError, web_client
from tests.unit.providers.dav_lab import dav

pytestmark = [pytest.mark.interop, pytest.mark.slow]

BOX, OTHER = small_box(b"a" * 32), small_box(b"b" * 32)
TOKEN = "open sesame 12"


def put(provider: Provider, name: str, data: bytes) -> None:
    area = small_area(provider)
    assert area is not None
    asyncio.run(area.put_small(name, data))


def read(provider: Provider, *boxes: str) -> dict[str, bytes]:
    area = small_area(provider)
    assert area is not None

    async def body() -> dict[str, bytes]:
        return await area.get_small([*await area.list_small(boxes)])

    return asyncio.run(body())


def shares(client: Client, at: str, token: str, folder: Path) -> None:
    """Check that Python reads the client's objects in the folder, and vice versa, and that both skip
    damage."""
    there = DirectoryProvider(folder, {"create": True})
    mine, theirs = small_name(BOX, "python.1", b"of python"), small_name(OTHER, "python.2", b"of python")
    put(there, mine, b"of python")
    put(there, theirs, b"of python")
    damaged = folder / "small" / small_name(BOX, "damaged", b"x").replace("/", ".", 1)
    damaged.write_bytes(b"y")

    def asked(**more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = client.ask({"do": "small", "at": at, "token": token, "boxes": [BOX], **more})
        return answer

    answer = asked(put=[[BOX, "client.1", "of the client"], [BOX, "client.1", "of the client"]])
    own = answer["names"][0]
    assert own == small_name(BOX, "client.1", b"of the client")
    assert answer["got"] == {mine: "of python", own: "of the client"}
    assert (
        answer["listed"]
        == {
            mine: 9,
            own: 13,
            small_name(BOX, "damaged", b"x"): 1,
        }
        and theirs not in answer["listed"]
    )
    assert read(there, BOX, OTHER) == {mine: b"of python", own: b"of the client", theirs: b"of python"}
    assert asked(boxes=[BOX, OTHER], remove=[own, own])["got"] == {mine: "of python", theirs: "of python"}
    assert own not in read(there, BOX)
    for wrong in ({"boxes": ["../packs"]}, {"remove": ["../../etc/passwd"]}, {"put": [[BOX, "", "x"]]}):
        with pytest.raises(ClientError):
            asked(**wrong)


def test_client_shares_small_objects_with_python_at_a_peer(tmp_path: Path) -> None:
    with web_client() as client:
        store = DirectoryProvider(tmp_path, {"create": True})
        with serve(lambda: serving.app(store, token=TOKEN)) as url:
            shares(client, f"peer:{url}", TOKEN, tmp_path)


def test_client_shares_small_objects_with_python_in_a_webdav_folder(tmp_path: Path) -> None:
    with web_client() as client, dav(tmp_path) as at:
        shares(client, f"webdav:{at.url}", f"{USER}:{PASSWORD}", at.folder)
