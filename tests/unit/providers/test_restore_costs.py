"""Bytes that a restore receives from packs: close to the stored size, whatever the number of requests."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.packs.spans import grouped
from ipfsmem_providers.sftp.channel import Channel
from ipfsmem_providers.webdav.files import DavFiles

from ipfsmem.provider.contract import Provider
from ipfsmem.sync import join_head
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.device_lab import load
from tests.unit.providers.bucket_lab import bucket
from tests.unit.providers.dav_lab import dav
from tests.unit.providers.sftp_lab import sftp

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x35"))
MEMORIES = 300
#: Texts of a memory are larger than any other block.
TEXT = 2_000

#: Opens the provider again, and returns the bytes received from packs, or from everything.
Store = tuple[Callable[[], Provider], Callable[[], int]]


@contextlib.contextmanager
def at_sftp(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A folder at an OpenSSH server; all bytes of the sessions are counted."""
    channels: list[Channel] = []
    begin = Channel.__init__

    def begun(self: Channel, *args: Any) -> None:
        channels.append(self)
        begin(self, *args)

    patch.setattr(Channel, "__init__", begun)
    with sftp(folder) as at:
        yield at.open, lambda: sum(channel.received for channel in channels)


@contextlib.contextmanager
def at_webdav(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A folder at a WebDAV stand-in; all bytes of its files are counted."""
    received = [0]
    read = DavFiles.read

    async def counted(self: DavFiles, path: str, start: int, end: int) -> Any:
        head = await read(self, path, start, end)
        received[0] += len(head.data)
        return head

    patch.setattr(DavFiles, "read", counted)
    with dav(folder) as at:
        yield at.open, lambda: received[0]


@contextlib.contextmanager
def at_bucket(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A bucket; all bytes of its objects are counted."""
    received = [0]

    def count(direction: str, size: int) -> None:
        received[0] += size if direction == "received" else 0

    with bucket() as at:
        yield lambda: at.open(progress=count), lambda: received[0]


@pytest.mark.parametrize(
    ("store", "times"), [(at_sftp, 1.5), (at_webdav, 2.2), (at_bucket, 1.1)], ids=["sftp", "webdav", "bucket"]
)
def test_restore_receives_few_bytes_more_than_stored(
    store: Callable[[Path, pytest.MonkeyPatch], contextlib.AbstractContextManager[Store]],
    times: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At a WebDAV server each part is a request, so folders between texts are read once more."""
    texts = random.Random(35)
    written = {f"memory{n}": texts.randbytes(TEXT // 2).hex() for n in range(MEMORIES)}
    with store(tmp_path, monkeypatch) as (open_it, received):
        a = load(tmp_path, "a", [open_it()], wallet=WALLET)
        for key, text in written.items():
            a.write(key, text)
        stored = asyncio.run(a.sync()).bytes_sent
        monkeypatch.setattr(join_head, "_PORTION", 16)
        before = received()
        b = load(tmp_path, "b", [open_it()], wallet=WALLET)
        assert {key: b.read(key).file.body for key in written} == written  # type: ignore[union-attr]
        assert stored > MEMORIES * TEXT
        assert received() - before < times * stored


def test_spans_are_grouped_by_number_and_bytes() -> None:
    spans = [(0, 10), (20, 30), (40, 50), (60, 160), (170, 171), (180, 181)]
    assert grouped(spans, 2, 100) == [
        ((0, 10), (20, 30)),
        ((40, 50),),
        ((60, 160),),
        ((170, 171), (180, 181)),
    ]
    assert grouped(spans, 100, 1_000) == [tuple(spans)]
    assert grouped(spans, 1, 1_000) == [(span,) for span in spans]
    assert grouped([], 1, 1) == []
