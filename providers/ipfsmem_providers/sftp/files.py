"""The files of a folder at an SSH server, as RemoteFiles (remote/files.py).

A file is put under a temporary name, made durable by `fsync@openssh.com` and renamed by `posix-rename@openssh.com`, which
replaces a file at once. A server without that extension renames as WebDAV does (remote/placing.py). Requests about one file
are pipelined. A call whose connection is lost is made again on a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeVar

from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem_providers.http.bounds import Bounds
from ipfsmem_providers.http.per_loop import PerLoop
from ipfsmem_providers.http.policy import SLOWEST
from ipfsmem_providers.packs.object_store import FileInfo, Head
from ipfsmem_providers.remote.files import Listing
from ipfsmem_providers.remote.object_store import TEMPORARY
from ipfsmem_providers.remote.placing import PLACINGS, InDoubt, PathEntry, PlacedFiles
from ipfsmem_providers.request_log import logged
from ipfsmem_providers.sftp import packets
from ipfsmem_providers.sftp.address import EXAMPLES, SftpAddress
from ipfsmem_providers.sftp.channel import Channel, ConnectionLost
from ipfsmem_providers.sftp.errors import INSTALL_HINT
from ipfsmem_providers.sftp.packets import CHUNK, Attributes, BadPacket, Reply

T = TypeVar("T")
#: Requests under way for one call.
_WINDOW: Final = 64
#: Maximum files of a folder, and bytes of its list.
_FILES_MAX: Final = 100_000
_LISTING_MAX: Final = 64 * 1024 * 1024
#: Maximum seconds of a call that reads, even if it progresses and nobody else waits for it.
_CALL_SECONDS: Final = 600.0
#: Seconds of one sync for reading packs without a usable index when there are other providers.
_SCAN_SECONDS: Final = 60.0
#: Seconds for the program to end after its last request.
_ENDING_SECONDS: Final = 2.0
#: Seconds without a request after which a connection may have ended unnoticed.
_IDLE_SECONDS: Final = 15.0
#: Bytes that a server may have to write before a folder is flushed.
_FLUSH_BYTES: Final = 16 * 1024 * 1024
#: A server that ends this many sessions in a row over a flush of a folder is not asked for one again.
_LOST_FLUSHES: Final = 2
#: Status codes for a file that does not exist.
_ABSENT: Final = (packets.NO_SUCH_FILE, packets.NO_SUCH_PATH)
_FSYNC: Final = b"fsync@openssh.com"
_RENAME: Final = b"posix-rename@openssh.com"
_FULL_HINT: Final = "Check the free space and the permissions of the folder there."
_MISSING: Final = "the folder is not there"
_MISSING_HINT: Final = "Create the folder at the server first, or correct the address."


class SftpFiles(PlacedFiles):
    """One folder at one server."""

    parts_max = 2 * _WINDOW
    gap = 8 * 1024  # a request that does not wait for another one costs little

    def __init__(
        self, address: SftpAddress, settings: Mapping[str, Any], *, now: Callable[[], float] = time.time
    ) -> None:
        """`settings["create"]`: make a missing folder. `now`: seconds since 1970 UTC. Nothing is started yet."""
        self.where = f"sftp:{address.shown}"
        self._at = address
        self._create = bool(settings.get("create"))
        self._now = now
        self._bounds = Bounds(settings)
        self.scan_seconds: float | None = None if self._bounds.listing is None else _SCAN_SECONDS
        self.monotonic = self._bounds.timing.now
        self._channel: Channel | None = None
        #: Ends the program of a provider that nobody closed.
        self._end: weakref.finalize[..., Any] | None = None
        self._extensions: frozenset[bytes] = frozenset()
        #: Sessions in a row that ended while a folder was flushed.
        self._lost_flushes = 0
        #: When the host was last heard on this connection.
        self._heard = 0.0
        self._connecting = PerLoop(asyncio.Lock)
        #: Time and reason of the last failed connection; calls that waited for it fail too.
        self._failure: tuple[float, ProviderError] | None = None
        #: Unfinished files of lost connections.
        self._leftovers: list[str] = []
        #: Known folders of a vault: a missing one was removed, and is not merely empty.
        self._seen: set[str] = set()

    # -- RemoteFiles ---------------------------------------------------------------------------------------------

    async def list_folder(self, folder: str) -> Listing:
        """See `RemoteFiles`."""
        for _ in range(2):  # another device may just have created it
            try:
                listing = await self._run(
                    f"list {folder}", lambda channel: self._list(channel, folder), self._longest()
                )
            except (FileNotFoundError, _Failed) as error:
                if not await self._run(f"find {folder}", lambda channel: self._is_there(channel, folder)):
                    await self._check_missing(folder)
                    return Listing({}, frozenset())
                if isinstance(error, _Failed):
                    raise
            else:
                self._seen.add(folder)
                return listing
        raise ProviderUnavailable(
            f"{self.where}: {folder} is there and cannot be listed",
            hint="Mend the link or the file of that name at the server.",
        )

    async def _is_there(self, channel: Channel, path: str) -> bool:
        return self._found(await self._stat(channel, path), path) is not None

    async def _list(self, channel: Channel, folder: str) -> Listing:
        files: dict[str, FileInfo] = {}
        others: set[str] = set()
        count = size = 0
        has_itself = False
        async with self._opened(channel, packets.OPENDIR, packets.text(self._path(folder)), folder) as handle:
            # Two at once: the second one usually meets the end.
            is_over = False
            while not is_over:
                for reply in await self._all(channel, [(packets.READDIR, packets.text(handle))] * 2):
                    if reply.kind == packets.STATUS:
                        code, _ = packets.status(reply)
                        if code == packets.NO_SUCH_FILE:
                            raise ProviderUnavailable(f"{self.where}: {folder} was not listed to its end")
                        if code != packets.EOF:
                            self._check(reply, f"list {folder}", folder)
                            raise BadPacket("a list of no names")
                        is_over = True
                        continue
                    size += len(reply.body)
                    for name, attributes in packets.names(reply):
                        count += 1
                        if count > _FILES_MAX or size > _LISTING_MAX:
                            raise ProviderRefused(f"{self.where} sent a list of files that is too large")
                        has_itself = has_itself or name == b"."
                        self._add(files, others, name, attributes)
        if not has_itself:  # some servers omit unreadable entries, this one included
            reply = await self._one(channel, packets.STAT, packets.text(f"{self._path(folder)}/."))
            if reply.kind == packets.STATUS and packets.status(reply)[0] in _ABSENT:
                # This server has no such name, or the folder went away while it was listed.
                reply = await self._one(channel, packets.STAT, packets.text(self._path(folder)))
            self._check(reply, f"list {folder}", folder)
        return Listing(files, frozenset(others) - files.keys())

    def _add(self, files: dict[str, FileInfo], others: set[str], name: bytes, attributes: Attributes) -> None:
        try:
            text = name.decode()
        except UnicodeDecodeError:
            return  # not needed
        if text in ("", ".", "..") or "/" in text or "\0" in text:
            return
        if attributes.size is None or not attributes.is_file:
            others.add(text)
        elif attributes.modified is None:  # new, so that it is not removed; unknown, so that it is read again
            files[text] = FileInfo(attributes.size, int(self._now() * 1000), object())
        else:
            files[text] = FileInfo(
                attributes.size, attributes.modified * 1000, (attributes.modified, attributes.size)
            )

    async def read(self, path: str, start: int, end: int) -> Head:
        """See `RemoteFiles`."""
        most = self._longest() + (end - start) / SLOWEST
        return await self._run(f"read {path}", lambda channel: self._read(channel, path, start, end), most)

    async def _read(self, channel: Channel, path: str, start: int, end: int) -> Head:
        body = packets.opening(self._path(path), packets.FOR_READING)
        async with self._opened(channel, packets.OPEN, body, path) as handle:
            first = packets.reading(handle, start, min(end - start, CHUNK))
            status, reply = await self._all(
                channel, [(packets.FSTAT, packets.text(handle)), (packets.READ, first)]
            )
            self._check(status, f"read {path}", path)
            attributes = packets.attributes(status)
            if attributes.size is None or not attributes.is_file:
                raise IsADirectoryError(f"{path} is not a file")
            last = min(end, attributes.size)
            data = bytearray(self._data(reply, min(end - start, CHUNK), path))
            while (at := start + len(data)) < last:
                offsets = range(at, last, CHUNK)[: 2 * _WINDOW]
                parts = [(offset, min(CHUNK, last - offset)) for offset in offsets]
                replies = await self._all(
                    channel, [(packets.READ, packets.reading(handle, *span)) for span in parts]
                )
                for (offset, length), part in zip(parts, replies, strict=True):
                    if offset == start + len(data):  # else one before was short
                        data += self._data(part, length, path)
                if start + len(data) == at:
                    raise ProviderUnavailable(
                        f"{self.where} answered with {len(data)} of {last - start} bytes of {path}"
                    )
        return Head(bytes(data[: max(0, last - start)]), attributes.size)

    async def read_parts(self, path: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """See `RemoteFiles`. The file is opened once, and all parts are requested at once."""
        if len(spans) == 1:
            return [(await self.read(path, *spans[0])).data]
        most = self._longest() + sum(end - start for start, end in spans) / SLOWEST
        return await self._run(f"read {path}", lambda channel: self._read_parts(channel, path, spans), most)

    async def _read_parts(self, channel: Channel, path: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        body = packets.opening(self._path(path), packets.FOR_READING)
        parts = [bytearray() for _ in spans]
        async with self._opened(channel, packets.OPEN, body, path) as handle:
            status = await self._one(channel, packets.FSTAT, packets.text(handle))
            self._check(status, f"read {path}", path)
            attributes = packets.attributes(status)
            if attributes.size is None or not attributes.is_file:
                raise IsADirectoryError(f"{path} is not a file")
            size = attributes.size
            expected = sum(min(end, size) - min(start, size) for start, end in spans)
            while batch := [
                (number, at, min(CHUNK, min(end, size) - at))
                for number, (start, end) in enumerate(spans)
                for at in range(start + len(parts[number]), min(end, size), CHUNK)
            ]:
                reads = ((packets.READ, packets.reading(handle, at, length)) for _, at, length in batch)
                replies = await self._all(channel, reads)
                before = sum(map(len, parts))
                for (number, at, length), reply in zip(batch, replies, strict=True):
                    if at == spans[number][0] + len(parts[number]):  # else one before was short
                        parts[number] += self._data(reply, length, path)
                if sum(map(len, parts)) == before:
                    raise ProviderUnavailable(
                        f"{self.where} answered with {before} of {expected} bytes of {path}"
                    )
        return [bytes(part) for part in parts]

    def _data(self, reply: Reply, most: int, path: str) -> bytes:
        if reply.kind == packets.STATUS and packets.status(reply)[0] == packets.EOF:
            return b""
        self._check(reply, f"read {path}", path)
        data = packets.only_text(reply, packets.DATA)
        if len(data) > most:
            raise BadPacket(f"{len(data)} bytes instead of {most}")
        return data

    async def put(self, path: str, data: bytes, *, named_by_content: bool = False) -> None:
        """See `RemoteFiles`."""
        await self._run(f"write {path}", lambda channel: self._put(channel, path, data, named_by_content))

    async def _put(self, channel: Channel, path: str, data: bytes, named_by_content: bool) -> None:
        await self._remove_leftovers(channel)
        folder = path.partition("/")[0]
        temporary = f"{folder}/{TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"
        try:
            try:
                await self._write(channel, temporary, path, data)
            except (FileNotFoundError, _Failed) as error:  # some servers say no more than that it failed
                if not await self._is_there(channel, folder):
                    await self._make(channel, folder)
                elif isinstance(error, _Failed):
                    raise
                # Else another device has just created the folder.
                await self._write(channel, temporary, path, data)
            if _RENAME in self._extensions:
                await self._replace(channel, temporary, path)
            else:
                await self._place(temporary, path, data, named_by_content)
        except BaseException:  # also when the call is cancelled
            # It would stay for a day, as after a crash.
            self._leftovers.append(temporary)
            if channel.lost is None:
                await self._tidy(lambda: self._remove_leftovers(channel))
            raise

    async def _write(self, channel: Channel, temporary: str, path: str, data: bytes) -> None:
        """Write a new file."""
        body = packets.opening(
            self._path(temporary), packets.FOR_WRITING | packets.CREATE | packets.EXCLUSIVE
        )
        what = f"store {path}"
        closings: list[Future[Reply]] = []
        async with self._opened(channel, packets.OPEN, body, path, what, closings) as handle:
            writes = (
                (packets.WRITE, packets.writing(handle, at, data[at : at + CHUNK]))
                for at in range(0, len(data), CHUNK)
            )
            flushes = [(packets.EXTENDED, packets.text(_FSYNC) + packets.text(handle))]
            if _FSYNC not in self._extensions:
                flushes = []
            replies = await self._all(channel, chain(writes, flushes), len(data))
            if flushes and packets.status(replies[-1])[0] == packets.UNSUPPORTED:
                replies.pop()  # the server's disk does not support it
            for reply in replies:
                self._done(reply, what, path)
        for closing in closings:  # some servers learn only now that a disk is full
            self._done(await self._reply(channel, closing, len(data)), what, path)
        attributes = self._found(
            await self._stat(channel, temporary), path
        )  # some servers report the size only now
        if attributes is None or attributes.size != len(data):
            size = attributes.size if attributes is not None else None
            raise ProviderUnavailable(f"{self.where} stored {size or 0} of {len(data)} bytes of {path}")

    async def _write_new(self, path: str, data: bytes) -> None:
        """See `PlacedFiles`. A file that a lost connection put there stays."""
        try:
            await self._run(f"write {path}", lambda channel: self._write(channel, path, path, data))
        except (OSError, ProviderError):
            if await self._entry(path) is None:
                raise

    async def _replace(self, channel: Channel, temporary: str, path: str) -> None:
        """Give a file its name at once, in the place of a file of that name."""
        for _ in range(PLACINGS):
            reply = await self._renamed(channel, temporary, path, replacing=True)
            if packets.status(reply)[0] == packets.OK:
                return
            attributes = self._found(await self._stat(channel, path), path)
            if attributes is None or not attributes.is_folder:
                self._done(reply, f"store {path}", path)
            await self._renamed(channel, path, _aside(path))
        raise self._changed(path)

    async def flush(self, folder: str) -> None:
        """See `RemoteFiles`."""
        await self._run(f"flush {folder}", lambda channel: self._flush(channel, self._path(folder)))

    async def _flush(self, channel: Channel, folder: str) -> None:
        """Flush a folder, if the server supports that."""
        if _FSYNC not in self._extensions or self._lost_flushes >= _LOST_FLUSHES:
            return
        try:
            [reply] = await self._all(
                channel, [(packets.OPEN, packets.opening(folder, packets.FOR_READING))], _FLUSH_BYTES
            )
            if reply.kind == packets.HANDLE:
                handle = packets.text(packets.only_text(reply, packets.HANDLE))
                flushing = packets.EXTENDED, packets.text(_FSYNC) + handle
                await self._all(channel, [flushing, (packets.CLOSE, handle)], _FLUSH_BYTES)
        except ProviderUnavailable:
            self._lost_flushes += 1
            raise
        self._lost_flushes = 0

    async def move(self, path: str, new: str) -> None:
        """See `RemoteFiles`."""
        if not await self._move(path, new):
            raise FileExistsError(f"{new} is there")

    async def hide(self, path: str, hidden: str) -> None:
        """See `RemoteFiles`. OpenSSH carries out RENAME as a link to the file and the removal of its name, and between these a
        new file may have got the name. A request of a lost connection may be carried out late, so it is not sent again: it would
        hide another file under a name that is to be removed."""
        if not await self._move(path, hidden, replacing=True):
            raise FileExistsError(f"{hidden} is there")

    async def _move(self, path: str, new: str, size: int | None = None, *, replacing: bool = False) -> bool:
        """See `PlacedFiles`. `replacing`: at once where the server can, which replaces a file that gets the name `new` meanwhile."""
        lost = False

        async def work(channel: Channel) -> bool:
            nonlocal lost
            is_again, lost = lost, True
            # Some servers rename over a file; the others check once more.
            if self._found(await self._stat(channel, new), new) is not None:
                if self._found(await self._stat(channel, path), path) is not None:
                    return False
                if is_again:
                    return True  # the lost connection did it
                raise FileNotFoundError(path)
            if replacing and is_again:
                raise InDoubt(
                    f"{self.where}: the connection ended while {path} was renamed", hint="Sync again."
                )
            reply = await self._renamed(
                channel, path, new, replacing=replacing and _RENAME in self._extensions
            )
            code, _ = packets.status(reply)
            if (
                code not in (packets.OK, packets.NO_SUCH_FILE)
                and self._found(await self._stat(channel, new), new) is not None
            ):
                return False
            self._done(reply, f"rename {path}", path)
            return True

        return await self._run(f"rename {path}", work)

    async def delete(self, path: str, *, once: bool = False) -> None:
        """See `RemoteFiles`."""
        lost = False

        async def work(channel: Channel) -> None:
            nonlocal lost
            is_again, lost = lost, True
            if once and is_again:
                raise ConnectionLost(
                    f"{self.where}: the connection ended while {path} was deleted", hint="Sync again."
                )
            reply = await self._removed(channel, path)
            if packets.status(reply)[0] != packets.OK:
                attributes = self._found(await self._stat(channel, path), path)
                if attributes is None:
                    if is_again:
                        return
                    raise FileNotFoundError(path)
                if attributes.is_folder:
                    raise IsADirectoryError(f"{path} is a folder")
            self._done(reply, f"delete {path}", path)

        await self._run(f"delete {path}", work)

    async def set_aside(self, path: str) -> None:
        """See `RemoteFiles`."""

        async def work(channel: Channel) -> None:
            attributes = self._found(await self._stat(channel, path), path)
            if attributes is not None and not attributes.is_file:
                self._done(await self._renamed(channel, path, _aside(path)), f"rename {path}", path)

        await self._run(f"rename {path}", work)

    async def close(self) -> None:
        """See `RemoteFiles`."""
        channel, self._channel = self._channel, None
        if channel is None:
            return
        channel.close()
        try:
            async with asyncio.timeout(_ENDING_SECONDS):
                await asyncio.wrap_future(channel.ended)
        except TimeoutError:
            channel.kill()

    async def _entry(self, path: str) -> PathEntry | None:
        """See `PlacedFiles`."""

        async def work(channel: Channel) -> PathEntry | None:
            attributes = self._found(await self._stat(channel, path), path)
            if attributes is None:
                return None
            return PathEntry(not attributes.is_file, attributes.size, _milliseconds(attributes))

        return await self._run(f"find {path}", work)

    # -- folders -------------------------------------------------------------------------------------------------

    async def _check_missing(self, folder: str) -> None:
        """Raise unless `folder` merely was not created yet in a folder that is there."""
        self._check_seen(folder)
        if not self._create and not await self._run(
            "find the folder", lambda channel: self._is_folder(channel, self._at.path)
        ):
            raise ProviderUnavailable(f"{self.where}: {_MISSING}", hint=_MISSING_HINT)

    def _check_seen(self, folder: str) -> None:
        if folder in self._seen:
            raise ProviderUnavailable(f"{self.where}: folder {folder} is gone", hint="Sync again in a while.")

    async def _make(self, channel: Channel, folder: str) -> None:
        """Create `packs` and the like; the folder itself only when that was asked for."""
        self._check_seen(folder)
        if not await self._is_folder(channel, self._at.path):
            if not self._create:
                raise ProviderUnavailable(f"{self.where}: {_MISSING}", hint=_MISSING_HINT)
            names = self._at.path.split("/")
            for count in range(1, len(names) + 1):
                if above := "/".join(names[:count]):
                    await self._made(channel, above)
        await self._made(channel, self._path(folder))
        await self._flush(channel, self._at.path)

    async def _made(self, channel: Channel, path: str) -> None:
        """Create a folder unless it exists."""
        reply = await self._one(channel, packets.MKDIR, packets.making(path))
        if packets.status(reply)[0] != packets.OK and not await self._is_folder(channel, path):
            self._done(reply, f"create {path}", path)

    async def _is_folder(self, channel: Channel, path: str) -> bool:
        reply = await self._one(channel, packets.STAT, packets.text(path))
        attributes = self._found(reply, path)
        return attributes is not None and (attributes.is_folder or attributes.mode is None)

    # -- requests ------------------------------------------------------------------------------------------------

    def _path(self, path: str) -> str:
        return f"{self._at.path}/{path}"

    async def _stat(self, channel: Channel, path: str) -> Reply:
        return await self._one(channel, packets.LSTAT, packets.text(self._path(path)))

    async def _renamed(self, channel: Channel, path: str, new: str, *, replacing: bool = False) -> Reply:
        body = packets.text(self._path(path)) + packets.text(self._path(new))
        if replacing:
            return await self._one(channel, packets.EXTENDED, packets.text(_RENAME) + body)
        return await self._one(channel, packets.RENAME, body)

    async def _removed(self, channel: Channel, path: str) -> Reply:
        return await self._one(channel, packets.REMOVE, packets.text(self._path(path)))

    async def _remove_leftovers(self, channel: Channel) -> None:
        while self._leftovers:
            path = self._leftovers.pop()
            try:
                await self._removed(channel, path)
            except BaseException:
                self._leftovers.append(path)
                raise

    def _found(self, reply: Reply, path: str) -> Attributes | None:
        """Return the attributes in a reply; None when nothing has the path."""
        try:
            self._check(reply, f"find {path}", path)
        except FileNotFoundError:
            return None
        return packets.attributes(reply)

    def _done(self, reply: Reply, what: str, path: str) -> None:
        """Raise unless a reply is a success without data."""
        self._check(reply, what, path)
        if packets.status(reply)[0] != packets.OK:
            raise BadPacket("the end of a file instead of a status")

    def _check(self, reply: Reply, what: str, path: str) -> None:
        """Raise the error for a status that is a failure."""
        if reply.kind != packets.STATUS:
            return
        code, message = packets.status(reply)
        if code in (packets.OK, packets.EOF):
            return
        if code in _ABSENT:
            raise FileNotFoundError(path)
        if code == packets.PERMISSION_DENIED:
            raise PermissionError(f"it denied permission to {what}")
        if code == packets.UNSUPPORTED:
            raise ProviderRefused(f"{self.where} does not support to {what}", hint=EXAMPLES)
        raise _Failed(f"{self.where} did not {what}: {message or f'status {code}'}", hint=_FULL_HINT)

    @contextlib.asynccontextmanager
    async def _opened(
        self,
        channel: Channel,
        kind: int,
        body: bytes,
        path: str,
        what: str = "",
        closings: list[Future[Reply]] | None = None,
    ) -> AsyncIterator[bytes]:
        """Open a file or folder, and close it without waiting for that; the reply will be in `closings`."""
        reply = await self._one(channel, kind, body)
        self._check(reply, what or f"read {path}", path)
        handle = packets.only_text(reply, packets.HANDLE)
        try:
            yield handle
        finally:
            with contextlib.suppress(ProviderError):
                closing = channel.request(packets.CLOSE, packets.text(handle))
                if closings is not None:
                    closings.append(closing)

    async def _one(self, channel: Channel, kind: int, body: bytes) -> Reply:
        [reply] = await self._all(channel, [(kind, body)])
        return reply

    async def _all(
        self, channel: Channel, requests: Iterable[tuple[int, bytes]], more: int = 0
    ) -> list[Reply]:
        """Return the replies to requests, of which many are under way at once, in their order. `more`: bytes that the server may
        have to write before it answers."""
        under_way: deque[Future[Reply]] = deque()
        replies: list[Reply] = []
        ahead = iter(requests)
        try:
            while True:
                for kind, body in islice(ahead, _WINDOW - len(under_way)):
                    under_way.append(channel.request(kind, body))
                if not under_way:
                    break
                replies.append(await self._reply(channel, under_way[0], more))
                under_way.popleft()
        finally:
            for future in under_way:
                future.cancel()
        return replies

    async def _reply(self, channel: Channel, future: Future[Reply], more: int) -> Reply:
        """Wait for a reply as long as anything moves: those to requests of other calls come first."""
        waiting = asyncio.wrap_future(future)
        try:
            while True:
                patience = self._bounds.patience(max(channel.under_way, more))
                began, moved, received = self.monotonic(), channel.moved, channel.received
                if (await asyncio.wait([waiting], timeout=patience))[0]:
                    reply = waiting.result()
                    self._heard = self.monotonic()
                    self._bounds.answer_came(began, self._heard)
                    return reply
                if channel.moved - moved < self._bounds.timeouts.drip:
                    break
                if channel.received > received:
                    self._heard = self.monotonic()
        finally:
            waiting.cancel()
        if began - self._heard > _IDLE_SECONDS:  # the machine was asleep or changed networks
            channel.kill()
            raise ConnectionLost(f"{self.where}: the idle connection does not answer", hint="Sync again.")
        raise self._silent(channel, patience)

    def _silent(self, channel: Channel, seconds: float) -> ProviderUnavailable:
        channel.kill()
        self._bounds.stalled(self._at, seconds)
        return ProviderUnavailable(
            f"{self.where} did not answer within {seconds:.0f} s", hint="Sync again in a while."
        )

    # -- the connection ------------------------------------------------------------------------------------------

    def _longest(self) -> float:
        """Return the seconds of a call that reads, even if it progresses."""
        return self._bounds.listing or _CALL_SECONDS

    async def _run(self, what: str, work: Callable[[Channel], Awaitable[T]], most: float | None = None) -> T:
        """Do `work` on the connection, and again when it is lost or cannot be made. `what`: for the log. `most`: seconds for it,
        even if it progresses; without them only each reply has a limit."""
        attempts = self._bounds.attempts(self._at)
        while True:
            try:
                channel = await self._connected()
                with logged(self.where, what):
                    reply = await self._bounded(channel, work, most)
            except (ConnectionLost, _NotConnected) as error:
                pause = attempts.failed(connecting=isinstance(error, _TimedOut))
                if pause is None:
                    raise
                await self._bounds.timing.sleep(pause)
            else:
                attempts.answered()
                return reply

    async def _bounded(
        self, channel: Channel, work: Callable[[Channel], Awaitable[T]], most: float | None
    ) -> T:
        try:
            if most is None:
                return await work(channel)
            return await self._in_time(channel, work, most)
        except BadPacket as bad:
            error = ProviderUnavailable(f"{self.where} does not follow the SFTP protocol: {bad}")
            channel.kill(error)
            raise error from None

    async def _in_time(self, channel: Channel, work: Callable[[Channel], Awaitable[T]], most: float) -> T:
        """Do `work` within `most` seconds, and longer while the connection, which others share, is as fast as a slow one."""
        task = asyncio.ensure_future(work(channel))
        try:
            while True:
                moved = channel.moved
                if (await asyncio.wait([task], timeout=most))[0]:
                    return await task
                if channel.moved - moved < most * SLOWEST:
                    raise self._silent(channel, most)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # mark the error as retrieved
            del task  # its error holds this frame, and so the provider

    async def _connected(self) -> Channel:
        """Return the connection; make one if there is none."""
        began = self.monotonic()
        async with self._connecting():
            if self._channel is not None and self._channel.lost is None:
                return self._channel
            if self._failure is not None and self._failure[0] >= began:
                raise self._failure[1]
            if self._bounds.rests(self._at):
                raise ProviderUnavailable(f"{self.where}: {self._at.host} did not answer a moment ago")
            try:
                self._channel = await self._connect()
            except ProviderError as error:
                self._failure = self.monotonic(), error
                raise
            return self._channel

    async def _connect(self) -> Channel:
        timeouts = self._bounds.timeouts
        channel = Channel(ssh_command(self._at, timeouts.connect), self.where)
        if self._end is not None:
            self._end.detach()
        self._end = weakref.finalize(self, channel.kill)
        most = timeouts.connect + self._bounds.patience()
        try:
            async with asyncio.timeout(most):
                self._extensions = await asyncio.wrap_future(channel.begun)
                self._heard = self.monotonic()
        except TimeoutError:
            channel.kill()
            raise _TimedOut(
                f"{self.where} did not answer within {most:.0f} s", hint="Sync again in a while."
            ) from None
        except ProviderUnavailable as error:
            raise _NotConnected(str(error), hint=error.hint) from None
        except BaseException:
            channel.kill()
            raise
        return channel


class _Failed(ProviderUnavailable):
    """The server reported a failure without a reason."""


class _NotConnected(ProviderUnavailable):
    """No connection was made, so nothing was done."""


class _TimedOut(_NotConnected):
    """The time to connect ran out, without a refusal."""


def ssh_command(address: SftpAddress, connect_seconds: float) -> list[str]:
    """Return the command. Raises ConfigError without the program; one in the working directory is somebody else's."""
    program = shutil.which("ssh")
    if program is None or not Path(program).is_absolute():
        raise ConfigError("the ssh program is not installed", hint=INSTALL_HINT)
    options = {
        "BatchMode": "yes",
        "ClearAllForwardings": "yes",
        "ConnectTimeout": str(max(1, round(connect_seconds))),
        "ControlMaster": "no",  # a shared connection is used, and none is left behind
        "EscapeChar": "none",
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "LogLevel": "INFO",  # its messages are explained: ERROR omits some reasons, QUIET all
        "PermitLocalCommand": "no",
        "RemoteCommand": "none",
        "RequestTTY": "no",
        "ServerAliveCountMax": "3",
        "ServerAliveInterval": "15",
        "Tunnel": "no",
    }
    return [
        program,
        *(f"-o{name}={value}" for name, value in options.items()),
        *(["-p", str(address.port)] if address.port else []),
        *(["-l", address.user] if address.user else []),
        "-s",
        "--",
        address.host,
        "sftp",
    ]


def _aside(path: str) -> str:
    folder, _, name = path.partition("/")
    return f"{folder}/{name.replace('.', '-')}.aside-{secrets.token_hex(4)}"


def _milliseconds(attributes: Attributes) -> int | None:
    return None if attributes.modified is None else attributes.modified * 1000
