"""The files of a folder at a WebDAV server, as RemoteFiles (remote/files.py).

A file is put under a temporary name and renamed: many servers show a file while it is being written. No MOVE overwrites
anything: one whose answer is lost may be carried out twice, or late. Locks are not used. Neither are conditional requests:
files are named by their content, and not every server honours conditions. A redirect is not followed: it would carry data to
an address that nobody named.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Final

from yarl import URL

from ipfsmem.errors import ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import shown_spec
from ipfsmem_providers.http.answer import Answer
from ipfsmem_providers.http.client import CutOff, Http
from ipfsmem_providers.http.per_loop import PerLoop
from ipfsmem_providers.http.policy import SLOWEST
from ipfsmem_providers.packs.object_store import FileInfo, Head
from ipfsmem_providers.remote.files import Listing
from ipfsmem_providers.remote.object_store import TEMPORARY
from ipfsmem_providers.remote.placing import InDoubt, PathEntry, PlacedFiles
from ipfsmem_providers.webdav.address import EXAMPLES, DavAddress, is_name
from ipfsmem_providers.webdav.listing import DavEntry, ListingParser, ListingTooLarge, NotAListing

#: Bytes behind the requested ones that are received from a server without ranges.
_REST_MAX: Final = 1024 * 1024 * 1024
#: Maximum bytes of a listing.
_LISTING_MAX: Final = 128 * 1024 * 1024
#: Maximum seconds of a listing, even if it progresses and nobody else waits for it.
_LISTING_SECONDS: Final = 600.0
#: Seconds of one sync for reading packs without a usable index when there are other providers.
_SCAN_SECONDS: Final = 60.0
_PROPFIND: Final = (
    b'<?xml version="1.0" encoding="utf-8"?>\n<propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/>'
    b"<getlastmodified/><getetag/></prop></propfind>"
)
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
#: Statuses of a server or proxy that does not know WebDAV at this address.
_NO_DAV: Final = frozenset((405, 501))
#: Statuses of a successful rename.
_MOVED: Final = frozenset((201, 204))
_BAD_GATEWAY: Final = 502
_LOCKED: Final = 423
_FULL: Final = 507
#: Characters of an address of a stranger that an error shows.
_SHOWN: Final = 300
#: Seconds after which a folder that another device creates at the same moment is there.
_CREATED_BY_ANOTHER: Final = 0.2
_MISSING: Final = "the folder is not there"
_MISSING_HINT: Final = "Create the folder at the server first, or correct the address."


class DavFiles(PlacedFiles):
    """One folder at one server."""

    parts_max = 1
    gap = 64 * 1024

    def __init__(
        self,
        address: DavAddress,
        user: str,
        password: str,
        settings: Mapping[str, Any],
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`user`: "" for a server without accounts. `settings["create"]`: make a missing folder. `now`: seconds since 1970 UTC."""
        self.where = f"webdav:{address.url}"
        self._at = address
        self._create = bool(settings.get("create"))
        self._now = now
        auth = {"Authorization": _basic(user, password)} if user else {}
        self._http = Http(
            self.where,
            trusted=[address.origin],
            auth=auth,
            secrets=[password],
            settings=settings,
            auth_setting="WEBDAV_PASSWORD",
        )
        self.scan_seconds: float | None = None if self._http.listing_seconds is None else _SCAN_SECONDS
        self.monotonic = self._http.timing.now
        #: Whether the target of a rename has a host: a server behind a TLS proxy may refuse the scheme that it does not see.
        self._full_target = True
        self._creating = PerLoop(asyncio.Lock)
        #: Folders of a vault that were seen: one that is gone then is not an empty one.
        self._seen: set[str] = set()

    async def list_folder(self, folder: str) -> Listing:
        """See `RemoteFiles`."""
        entries = await self._propfind(self._at.of(folder, folder=True), depth=1)
        if entries is None:
            await self._check_missing(folder)
            return Listing({}, frozenset())
        self._seen.add(folder)
        return self._listing(entries, folder)

    def _listing(self, entries: list[DavEntry], folder: str) -> Listing:
        files: dict[str, FileInfo] = {}
        others: set[str] = set()
        here = False
        for entry in entries:
            path = entry.path
            # A proxy may have changed the path above the folder.
            is_self = path == (*self._at.names, folder)
            is_child = not is_self and len(path) > 1 and path[-2] == folder
            if is_self or (not is_child and path[-1:] == (folder,)):
                here = True
                if entry.status != 200 or not entry.is_folder:
                    raise self._failed(entry.status, f"list {folder}")
            elif not is_child:
                raise ProviderRefused(f"{self.where} lists another folder instead of {folder}", hint=EXAMPLES)
            elif entry.status in (404, 410) or not is_name(path[-1]):
                continue  # removed meanwhile, or of no use here
            elif entry.status != 200 or entry.is_folder or entry.size is None:
                others.add(path[-1])
            else:
                files[path[-1]] = FileInfo(
                    entry.size, self._milliseconds(entry.modified), (entry.etag, entry.modified, entry.size)
                )
        if not here:
            raise ProviderRefused(f"{self.where} lists files without their folder {folder}", hint=EXAMPLES)
        return Listing(files, frozenset(others) - files.keys())

    def _milliseconds(self, date: str) -> int:
        """Return an HTTP date in milliseconds; a file without one is new, so that it is not removed."""
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return int(parsedate_to_datetime(date).timestamp() * 1000)
        return int(self._now() * 1000)

    async def _check_missing(self, folder: str) -> None:
        """Raise unless `folder` merely was not created yet in a folder that is there."""
        self._check_seen(folder)
        if not self._create and await self._propfind(self._at.of(folder=True), depth=0) is None:
            raise ProviderUnavailable(f"{self.where}: {_MISSING}", hint=_MISSING_HINT)

    def _check_seen(self, folder: str) -> None:
        if folder in self._seen:
            raise ProviderUnavailable(f"{self.where}: folder {folder} is gone", hint="Sync again in a while.")

    async def read(self, path: str, start: int, end: int) -> Head:
        """See `RemoteFiles`."""
        async with self._http.stream(
            "GET",
            self._url(path),
            headers={"Range": f"bytes={start}-{end - 1}"},
            allow={403, 404, 405, 410, 416, _LOCKED, *_REDIRECTS},
            max_bytes=end + _REST_MAX,  # a server without ranges sends the whole file
            total=None if (most := self._http.listing_seconds) is None else most + (end - start) / SLOWEST,
            what=f"read {path}",
        ) as answer:
            total = _total(answer.headers.get("Content-Range", ""), start)
            if answer.status == 416:
                return Head(b"", max(0, total))
            if answer.status == 206 and total < 0:
                raise ProviderUnavailable(f"{self.where} answered with other bytes of {path} than requested")
            if answer.status not in (200, 206):
                self._check(await answer.start(65536), f"read {path}", path)
                raise ProviderUnavailable(f"{self.where} answered {answer.status} without {path}")
            skip = 0 if answer.status == 206 else start
            size = total if answer.status == 206 else answer.response.content_length
            data = bytearray()
            passed = 0
            length = end - start
            async for piece in answer:
                passed += len(piece)
                if passed > skip:
                    data += piece[max(0, len(piece) - (passed - skip)) :]
                if len(data) >= length and size is not None:
                    break
                if len(data) > length:
                    del data[length:]
            del data[length:]
        size = passed if size is None else size
        if len(data) != min(length, max(0, size - start)):
            raise ProviderUnavailable(f"{self.where} answered with {len(data)} of {length} bytes of {path}")
        return Head(bytes(data), size)

    async def read_parts(self, path: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """See `RemoteFiles`."""
        return [(await self.read(path, *span)).data for span in spans]

    async def put(self, path: str, data: bytes, *, named_by_content: bool = False) -> None:
        """See `RemoteFiles`."""
        folder, _, name = path.partition("/")
        temporary = self._temporary(path)
        try:
            if await self._store(temporary, data) in (404, 409):
                async with self._creating():  # of the writes that find none at once, the first one creates it
                    await self._make(folder)
                status = await self._store(temporary, data)
                if status in (404, 409):
                    raise self._failed(status, f"store {name}")
            await self._place(temporary, path, data, named_by_content)
        except BaseException:  # also when the call is cancelled
            # It would stay for a day, as after a crash.
            await self._tidy(lambda: self.delete(temporary))
            raise

    async def _store(self, path: str, data: bytes) -> int:
        answer = await self._ask(
            "PUT", path, {404, 409}, body=data, headers={"Content-Type": "application/octet-stream"}
        )
        return answer.status

    async def _write_new(self, path: str, data: bytes) -> None:
        """See `PlacedFiles`. By a rename that overwrites nothing: a file that has the name by now may be the only sound one."""
        temporary = self._temporary(path)
        try:
            status = await self._store(temporary, data)
            if status in (404, 409):
                raise self._failed(status, f"store {path}")
            if await self._move(temporary, path, len(data)):
                return
        except BaseException:
            await self._tidy(lambda: self.delete(temporary))
            raise
        await self._tidy(lambda: self.delete(temporary))

    async def _move(self, path: str, new: str, size: int | None = None, *, once: bool = False) -> bool:
        """See `PlacedFiles`. `once`: it is not sent again."""
        full = self._full_target
        answer = await self._ask_to_move(path, new, full, once)
        if answer.status == _BAD_GATEWAY and not once:
            answer = await self._ask_to_move(path, new, not full, once)
            if answer.status == _BAD_GATEWAY:
                raise self._http.failure(answer, f"rename {path}")
            self._full_target = not full
        elif answer.status == _BAD_GATEWAY:
            raise self._http.failure(answer, f"rename {path}")
        if answer.status == 412:
            return False
        if answer.status in _MOVED:
            return True
        if answer.status == 403 and await self._entry(path) is not None:
            self._check(answer, f"rename {path}", path)
        # Nothing was moved, or an earlier attempt was carried out and not answered; or a portal answered.
        missing = answer.status in (403, 404)
        moved = await self._entry(new) if size is not None or not missing else None
        if moved is None or moved.is_folder or (size is not None and moved.size != size):
            raise FileNotFoundError(path)
        return True

    async def hide(self, path: str, hidden: str) -> None:
        """See `PlacedFiles`."""
        try:
            moved = await self._move(path, hidden, once=True)
        except ProviderUnavailable as error:
            if await self._entry(hidden) is None or await self._entry(path) is not None:
                raise InDoubt(str(error), hint=error.hint) from error
        else:
            if not moved:
                raise FileExistsError(f"{hidden} is there")

    async def _ask_to_move(self, path: str, new: str, full: bool, once: bool) -> Answer:
        """Send a MOVE that overwrites nothing, so it may be sent again."""
        target = self._url(new)
        if not full:
            target = target.removeprefix(self._at.origin)
        headers = {"Destination": target, "Overwrite": "F"}
        return await self._ask(
            "MOVE", path, {403, 404, 412, _BAD_GATEWAY}, headers=headers, idempotent=not once
        )

    async def flush(self, folder: str) -> None:
        """See `RemoteFiles`. The server decides."""

    async def delete(self, path: str, *, once: bool = False) -> None:
        """See `RemoteFiles`. The server removes a folder with all that is in it, so its kind is asked first."""
        entry = await self._entry(path)
        if entry is None:
            raise FileNotFoundError(path)
        if entry.is_folder:
            raise IsADirectoryError(f"{path} is a folder")
        if once:  # a DELETE is repeated below the level of this program, too
            own = self._temporary(path)
            await self._move(path, own, once=True)
            path = own
        await self._ask("DELETE", path, set())

    async def set_aside(self, path: str) -> None:
        """See `RemoteFiles`."""
        folder, _, name = path.partition("/")
        entry = await self._entry(path)
        if entry is not None and entry.is_folder:
            await self._move(path, f"{folder}/{name.replace('.', '-')}.aside-{secrets.token_hex(4)}")

    async def close(self) -> None:
        """See `RemoteFiles`."""
        await self._http.close()

    # -- requests ------------------------------------------------------------------------------------------------

    def _temporary(self, path: str) -> str:
        folder = path.partition("/")[0]
        return f"{folder}/{TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"

    def _url(self, path: str) -> str:
        return self._at.of(*path.split("/"))

    async def _entry(self, path: str) -> PathEntry | None:
        """See `PlacedFiles`."""
        entries = await self._propfind(self._url(path), depth=0)
        if entries is None or (len(entries) == 1 and entries[0].status in (404, 410)):
            return None
        if len(entries) != 1 or entries[0].path[-1:] != (path.rpartition("/")[2],):
            raise ProviderUnavailable(f"{self.where} answered about something else than {path}")
        if entries[0].status != 200:
            raise self._failed(entries[0].status, f"find {path}")
        [entry] = entries
        modified = self._milliseconds(entry.modified) if entry.modified else None
        return PathEntry(entry.is_folder, entry.size, modified)

    async def _propfind(self, url: str, *, depth: int) -> list[DavEntry] | None:
        """Return the entries at a URL; None when there is nothing. Servers cut a list off when a file vanishes meanwhile, so
        it is asked for again."""
        attempts = self._http.attempts_inside()
        while True:
            try:
                entries = await self._propfind_once(url, depth)
            except CutOff:
                if not await self._http.may_again(attempts):
                    raise
            else:
                attempts.answered()
                return entries

    async def _propfind_once(self, url: str, depth: int) -> list[DavEntry] | None:
        problem: ProviderError
        async with self._http.stream(
            "PROPFIND",
            url,
            headers={"Depth": str(depth), "Content-Type": "application/xml; charset=utf-8"},
            body=_PROPFIND,
            idempotent=True,
            allow={404, 410, 403, *_NO_DAV, _LOCKED, *_REDIRECTS},
            max_bytes=_LISTING_MAX,
            total=self._http.listing_seconds or _LISTING_SECONDS,
            what="list files",
        ) as answer:
            if answer.status in (404, 410):
                return None
            if answer.status in (403, *_NO_DAV, _LOCKED, *_REDIRECTS):
                self._check(await answer.start(65536), "list files", "")
            if answer.status != 207:
                raise ProviderUnavailable(
                    f"{self.where} answered {answer.status} without a list of files",
                    hint=f"The address must be that of a WebDAV folder. {EXAMPLES}",
                )
            parser = ListingParser()
            try:
                async for piece in answer:
                    parser.feed(piece)
            except ListingTooLarge as error:
                problem = ProviderRefused(f"{self.where} sent a list of files that is too large: {error}")
            except NotAListing as error:
                problem = ProviderUnavailable(f"{self.where} sent an unusable list of files: {error}")
            else:
                try:
                    return parser.close()
                except NotAListing as error:
                    problem = CutOff(f"{self.where} sent an unusable list of files: {error}")
        raise problem

    async def _ask(
        self,
        method: str,
        path: str,
        allow: set[int],
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        idempotent: bool | None = None,
    ) -> Answer:
        """Send a request about a file. Statuses in `allow` are for the caller."""
        what = {"PUT": "store", "MOVE": "rename", "DELETE": "delete", "MKCOL": "create"}[method]
        answer = await self._http.request(
            method,
            self._url(path),
            body=body,
            headers=headers,
            idempotent=idempotent,
            allow={403, 404, 410, *_NO_DAV, _LOCKED, _FULL, *_REDIRECTS, 207, *allow},
            what=f"{what} {path}",
        )
        if answer.status not in allow:
            self._check(answer, f"{what} {path}", path)
        return answer

    def _check(self, answer: Answer, what: str, path: str) -> None:
        """Raise the error for an answer that is not a success."""
        if answer.status in (404, 410):
            raise FileNotFoundError(path)
        if answer.status == 207:  # a part of it failed
            raise ProviderUnavailable(f"{self.where} could not {what} completely", hint="Sync again.")
        if answer.status in _REDIRECTS:
            target = self._target(answer)
            raise ProviderRefused(
                f"{self.where} answered {answer.status} to {what}: redirect to {target!r} not followed",
                hint=f"Name the address of the WebDAV folder itself. {EXAMPLES}",
            )
        if answer.status in _NO_DAV:
            raise ProviderRefused(
                f"{self.where} does not support WebDAV there: it answered {answer.status} to {what}",
                hint=f"The address must be that of a WebDAV folder. {EXAMPLES}",
            )
        if answer.status == 403 and path:
            raise PermissionError(f"it answered 403 to {what}")
        if answer.status == _LOCKED:
            raise ProviderUnavailable(
                f"{self.where}: a file is locked by another program", hint="Sync again in a while."
            )
        if answer.status == _FULL:
            raise ProviderUnavailable(f"{self.where}: no space left", hint="Free space there.")
        if not 200 <= answer.status < 300:
            raise self._http.failure(answer, what)

    def _target(self, answer: Answer) -> str:
        """Return where a redirect leads, without a query, which may hold a token."""
        location = answer.headers.get("Location", "")
        with contextlib.suppress(ValueError, TypeError):
            location = str(answer.url.join(URL(location, encoded=True)))
        return shown_spec(self._http.redact(location))[:_SHOWN]

    def _failed(self, status: int, what: str) -> ProviderError:
        if status == _FULL:
            return ProviderRefused(f"{self.where} lists only part of the files; too many are there")
        return ProviderUnavailable(f"{self.where} answered {status} when asked to {what}")

    async def _make(self, folder: str) -> None:
        """Create `packs` and the like; the folder itself only when that was asked for."""
        self._check_seen(folder)
        if await self._made(self._at.of(folder, folder=True)):
            return
        if not self._create:
            raise ProviderUnavailable(f"{self.where}: {_MISSING}", hint=_MISSING_HINT)
        missing = []
        for levels in range(len(self._at.names)):
            missing.append(self._at.above(levels, folder=True))
            if await self._made(missing[-1]):
                break
        for url in [*reversed(missing[:-1]), self._at.of(folder, folder=True)]:
            if not await self._made(url):
                raise ProviderUnavailable(f"{self.where} could not be created")

    async def _made(self, url: str) -> bool:
        """Create a folder; tell whether it is there now, which needs the folder above it."""
        for pause in (_CREATED_BY_ANOTHER, 4 * _CREATED_BY_ANOTHER, None):
            answer = await self._http.request(
                "MKCOL",
                url,
                idempotent=True,
                allow={403, 404, 405, 409, _LOCKED, _FULL, *_REDIRECTS},
                what="create a folder",
            )
            # Apache answers 403, and rclone that it is locked, while another request creates the same folder.
            if answer.status not in (403, _LOCKED) or pause is None:
                break
            await self._http.timing.sleep(pause)
        if answer.status in (403, _LOCKED, _FULL, *_REDIRECTS):
            self._check(answer, "create a folder", url.removeprefix(self._at.origin))
        return answer.status not in (404, 409)


def _basic(user: str, password: str) -> str:
    import base64

    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _total(field: str, start: int) -> int:
    """Return the size of the file in a Content-Range that begins at `start`, or that is unsatisfied; -1 for any other."""
    unit, _, rest = field.strip().partition(" ")
    span, _, total = rest.partition("/")
    first = span.partition("-")[0]
    if unit != "bytes" or not total.isascii() or not total.isdigit() or len(total) > 18:
        return -1
    return int(total) if span == "*" or first == str(start) else -1
