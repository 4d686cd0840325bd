"""The files of a folder at a remote of rclone, as RemoteFiles (remote/files.py), by its remote control (`rclone rcd`).

A file is put under a temporary name and renamed: at some remotes an unfinished file is seen. rclone renames over a file of
the new name, so that is looked up first.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Unpack
from urllib.parse import quote, urlencode

import msgspec

from ipfsmem.errors import ProviderRefused, ProviderUnavailable
from ipfsmem_providers.http.answer import Answer
from ipfsmem_providers.http.client import Http, RequestOptions
from ipfsmem_providers.http.policy import SLOWEST, Timeouts
from ipfsmem_providers.packs.object_store import FileInfo, Head
from ipfsmem_providers.rclone.address import RcloneAddress
from ipfsmem_providers.rclone.errors import INSTALL_HINT, explain, is_missing
from ipfsmem_providers.rclone.program import OLDEST, USER, RcloneServer
from ipfsmem_providers.remote.files import Listing
from ipfsmem_providers.remote.object_store import STORE_NAMES, TEMPORARY
from ipfsmem_providers.remote.placing import PathEntry, PlacedFiles

#: Maximum bytes and files of a listing, and its seconds when nobody else waits for it.
_LISTING_MAX: Final = 64 * 1024 * 1024
_FILES_MAX: Final = 100_000
_LISTING_SECONDS: Final = 600.0
#: Seconds of one sync for reading packs without a usable index when there are other providers.
_SCAN_SECONDS: Final = 60.0
#: Answers with an error of the remote; rclone has repeated the request by then.
_FAILED: Final = frozenset((400, 403, 404, 416, 500, 503))
_TWINS_HINT: Final = "Merge them: rclone dedupe --dedupe-mode skip REMOTE:PATH. Then sync again."
_CREATE_HINT: Final = "Create it: rclone mkdir REMOTE:PATH. Or correct the address."


class _Item(msgspec.Struct, frozen=True):
    """A file or folder, as rclone lists it."""

    name: str = msgspec.field(name="Name")
    size: int = msgspec.field(name="Size", default=-1)
    modified: str = msgspec.field(name="ModTime", default="")
    is_folder: bool = msgspec.field(name="IsDir", default=False)


class _Listed(msgspec.Struct, frozen=True):
    items: list[_Item] | None = msgspec.field(name="list", default=None)


class _Stat(msgspec.Struct, frozen=True):
    item: _Item | None = None


class _Failure(msgspec.Struct, frozen=True):
    error: str = ""


class _Info(msgspec.Struct, frozen=True):
    features: dict[str, Any] = msgspec.field(name="Features", default_factory=dict)


class _Remote(msgspec.Struct, frozen=True):
    type: str = ""
    remote: str = ""


class _Version(msgspec.Struct, frozen=True):
    version: str = ""
    decomposed: list[int] = []


class RcloneFiles(PlacedFiles):
    """One folder at one remote."""

    parts_max = 1
    gap = 64 * 1024

    def __init__(
        self,
        address: RcloneAddress,
        program: str,
        settings: Mapping[str, Any],
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`program`: the path of rclone. `settings["create"]`: make a missing folder. `now`: seconds since 1970 UTC."""
        self.where = f"rclone:{address.shown}"
        self._fs = address.shown
        self._create = bool(settings.get("create"))
        self._now = now
        self._server = RcloneServer(self.where, program)
        account = base64.b64encode(f"{USER}:{self._server.password}".encode()).decode()
        self._http = Http(
            self.where,
            auth={"Authorization": f"Basic {account}"},
            secrets=[self._server.password],
            settings=settings,
        )
        self._stall = (settings.get("timeouts") or Timeouts()).stall
        self.scan_seconds: float | None = None if self._http.listing_seconds is None else _SCAN_SECONDS
        self.monotonic = self._http.timing.now
        #: The URL at which the version of rclone was checked.
        self._checked = ""
        #: Whether rclone's remembered folders are dropped, and folders of one name looked for, before the next list.
        self._stale = True
        self._stored = False
        #: Folders of a vault that were seen with files: one that is gone then is not an empty one.
        self._seen: set[str] = set()

    def forget(self) -> None:
        """Have the next list look for folders again."""
        self._stale = True

    async def list_folder(self, folder: str) -> Listing:
        """See `RemoteFiles`."""
        if self._stale:
            await self._call("fscache/clear", "look for folders", {})
            await self._refuse_twins()
            self._stale = False
        answer = await self._call(
            "operations/list",
            f"list {folder}",
            {"fs": self._fs, "remote": folder, "opt": {"noMimeType": True}},
            max_bytes=_LISTING_MAX,
            total=self._http.listing_seconds or _LISTING_SECONDS,
        )
        if answer is None:
            await self._check_missing(folder)
            return Listing({}, frozenset())
        items = answer.decode(_Listed).items or []
        if len(items) > _FILES_MAX:
            raise ProviderRefused(f"{self.where} lists more than {_FILES_MAX:,} files in {folder}")
        files: dict[str, FileInfo] = {}
        others: set[str] = set()
        for item in items:
            if item.is_folder or item.size < 0:
                others.add(item.name)
            elif "/" not in item.name:
                files[item.name] = FileInfo(
                    item.size, self._milliseconds(item.modified), (item.modified, item.size)
                )
        if files:
            self._seen.add(folder)
        return Listing(files, frozenset(others) - files.keys())

    def _milliseconds(self, date: str) -> int:
        """Return a date in milliseconds; a file without one is new, so that it is not removed."""
        with contextlib.suppress(ValueError, OverflowError):
            return int(datetime.fromisoformat(date).timestamp() * 1000)
        return int(self._now() * 1000)

    async def _refuse_twins(self) -> None:
        """Raise ProviderRefused for two folders of one name, which some remotes hold: devices would use one of them each."""
        answer = await self._call("operations/fsinfo", "ask for the features", {"fs": self._fs})
        if answer is None or not answer.decode(_Info).features.get("DuplicateFiles"):
            return
        payload = {"fs": self._fs, "remote": "", "opt": {"noMimeType": True, "noModTime": True}}
        answer = await self._call("operations/list", "list the folder", payload, max_bytes=_LISTING_MAX)
        items = [] if answer is None else answer.decode(_Listed).items or []
        names = [item.name for item in items if item.is_folder]
        if twin := next((name for name in STORE_NAMES if names.count(name) > 1), ""):
            raise ProviderRefused(
                f"{self.where} has two folders {twin}, of which a device sees one", hint=_TWINS_HINT
            )

    async def _refuse_cache(self, url: str) -> None:
        """Raise ProviderRefused for a remote that answers from a cache of its own, also behind an alias or a cipher."""
        name = self._fs.partition(":")[0]
        for _ in range(2):
            answer = await self._request(
                f"{url}config/get", json={"name": name}, allow=_FAILED, what="ask for the kind of the remote"
            )  # fmt: skip
            kind = _Remote() if answer.status in _FAILED else answer.decode(_Remote)
            if kind.type == "cache":
                raise ProviderRefused(
                    f"{self.where}: the remote {name} is of type cache, which hides newer files of other devices",
                    hint="Use the remote that it caches.",
                )
            name, mark, _ = kind.remote.partition(":")
            if not mark or not name:
                return

    async def _check_missing(self, folder: str) -> None:
        """Raise unless `folder` merely was not created yet in a folder that is there."""
        if folder in self._seen:
            raise ProviderUnavailable(f"{self.where}: folder {folder} is gone", hint="Sync again in a while.")
        if self._create:
            return
        payload = {"fs": self._fs, "remote": "", "opt": {"noMimeType": True, "noModTime": True}}
        if await self._call("operations/list", "list the folder", payload, max_bytes=_LISTING_MAX) is None:
            raise ProviderUnavailable(f"{self.where}: the folder is not there", hint=_CREATE_HINT)

    async def read(self, path: str, start: int, end: int) -> Head:
        """See `RemoteFiles`."""
        url = f"{await self._url()}{quote(f'[{self._fs}]')}/{quote(path)}"
        most = self._http.listing_seconds
        async with self._http.stream(
            "GET",
            url,
            headers={"Range": f"bytes={start}-{end - 1}"},
            allow=_FAILED,
            max_bytes=end - start,
            total=None if most is None else most + (end - start) / SLOWEST,
            what=f"read {path}",
        ) as answer:
            total = answer.headers.get("Content-Range", "").rpartition("/")[2]
            if answer.status in _FAILED and not (answer.status == 416 and total.isdecimal()):
                self._failure(await answer.start(65536), path)
            if not total.isdecimal() or answer.status not in (206, 416):
                raise ProviderUnavailable(f"{self.where} answered {answer.status} without a part of {path}")
            size = int(total)
            if start >= size:
                return Head(b"", size)
            data = await answer.read()
        if len(data) != min(end, size) - start:
            raise ProviderUnavailable(
                f"{self.where} answered with {len(data)} of {end - start} bytes of {path}"
            )
        return Head(data, size)

    async def read_parts(self, path: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """See `RemoteFiles`."""
        return [(await self.read(path, *span)).data for span in spans]

    async def put(self, path: str, data: bytes, *, named_by_content: bool = False) -> None:
        """See `RemoteFiles`."""
        folder, _, _ = path.partition("/")
        temporary = f"{folder}/{TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"
        if not self._stored and not self._seen:  # rclone creates what is missing, also of a misspelt address
            await self._check_missing(folder)
        try:
            await self._store(temporary, data)
            await self._place(temporary, path, data, named_by_content)
            if not self._stored:  # two devices may have created the folder at once
                await self._refuse_twins()
                self._stored = True
        except BaseException:  # also when the call is cancelled
            # It would stay for a day, as after a crash.
            await self._tidy(lambda: self.delete(temporary))
            raise

    async def _store(self, path: str, data: bytes) -> None:
        folder, _, name = path.partition("/")
        edge = secrets.token_hex(16)
        head = f'--{edge}\r\nContent-Disposition: form-data; name="file0"; filename="{name}"\r\nContent-Type: application/octet-stream\r\n\r\n'
        answer = await self._request(
            f"{await self._url()}operations/uploadfile?{urlencode({'fs': self._fs, 'remote': folder}, quote_via=quote)}",
            body=b"".join((head.encode(), data, f"\r\n--{edge}--\r\n".encode())),
            headers={"Content-Type": f"multipart/form-data; boundary={edge}"},
            allow=_FAILED,
            what=f"store {path}",
        )
        if answer.status in _FAILED:
            self._failure(answer, path)

    async def _write_new(self, path: str, data: bytes) -> None:
        """See `PlacedFiles`."""
        await self._store(path, data)

    async def _move(self, path: str, new: str, size: int | None = None) -> bool:
        """See `PlacedFiles`."""
        if await self._entry(new) is not None:
            if await self._entry(path) is None:
                raise FileNotFoundError(path)
            return False
        payload = {"srcFs": self._fs, "srcRemote": path, "dstFs": self._fs, "dstRemote": new}
        # A remote that cannot rename gets a copy of it.
        stall = self._stall + (size or 0) / SLOWEST
        if await self._call("operations/movefile", f"rename {path}", payload, stall=stall) is None:
            raise FileNotFoundError(path)
        return True

    async def flush(self, folder: str) -> None:
        """See `RemoteFiles`. The remote decides."""

    async def delete(self, path: str, *, once: bool = False) -> None:
        """See `RemoteFiles`. No request is repeated."""
        entry = await self._entry(path)
        if entry is not None and entry.is_folder:
            raise IsADirectoryError(f"{path} is a folder")
        payload = {"fs": self._fs, "remote": path}
        if entry is None or await self._call("operations/deletefile", f"delete {path}", payload) is None:
            raise FileNotFoundError(path)

    async def set_aside(self, path: str) -> None:
        """See `RemoteFiles`."""
        entry = await self._entry(path)
        if entry is None or not entry.is_folder:
            return
        base = self._fs if self._fs.endswith((":", "/")) else f"{self._fs}/"
        folder, _, name = path.partition("/")
        aside = f"{folder}/{name.replace('.', '-')}.aside-{secrets.token_hex(4)}"
        payload = {"srcFs": base + path, "dstFs": base + aside, "createEmptySrcDirs": True}
        await self._call("sync/move", f"rename {path}", {**payload, "deleteEmptySrcDirs": True})

    async def close(self) -> None:
        """See `RemoteFiles`."""
        await self._http.close()
        await asyncio.to_thread(self._server.close)

    # -- requests ------------------------------------------------------------------------------------------------

    async def _entry(self, path: str) -> PathEntry | None:
        """See `PlacedFiles`."""
        answer = await self._call("operations/stat", f"find {path}", {"fs": self._fs, "remote": path})
        item = None if answer is None else answer.decode(_Stat).item
        if item is None:
            return None
        modified = self._milliseconds(item.modified) if item.modified else None
        return PathEntry(item.is_folder or item.size < 0, item.size, modified)

    async def _call(
        self,
        command: str,
        what: str,
        payload: Mapping[str, object],
        *,
        max_bytes: int = 1 << 20,
        total: float | None = None,
        stall: float | None = None,
    ) -> Answer | None:
        """Return the answer of a command; None when what it names is not there. Raises ProviderError."""
        url = await self._url()
        answer = await self._request(
            f"{url}{command}", json=payload, allow=_FAILED, max_bytes=max_bytes, total=total, stall=stall, what=what
        )  # fmt: skip
        if answer.status not in _FAILED:
            return answer
        with contextlib.suppress(FileNotFoundError):
            self._failure(answer, what)
        return None

    async def _request(self, url: str, **options: Unpack[RequestOptions]) -> Answer:
        """Send a request. Raises the reason why rclone ended, if it did: an unusable configuration is noticed by the first one."""
        try:
            return await self._http.request("POST", url, **options)
        except ProviderUnavailable:
            if not (stderr := await asyncio.to_thread(self._server.last_words)):
                raise
        raise explain(self.where, stderr)

    def _failure(self, answer: Answer, path: str) -> None:
        """Raise the error for an answer: FileNotFoundError, ProviderError."""
        text = answer.decode(_Failure).error
        if is_missing(text):
            raise FileNotFoundError(path)
        raise explain(self.where, self._http.redact(text))

    async def _url(self) -> str:
        """Return the URL of rclone, which is started first, and of which the version is checked."""
        url = await asyncio.to_thread(self._server.url)
        if self._checked != url:
            self._http.trust(url)
            answer = await self._http.request(
                "POST", f"{url}core/version", json={}, what="ask for the version"
            )
            version = answer.decode(_Version)
            if tuple(version.decomposed[:2]) < OLDEST:
                raise ProviderRefused(f"rclone {version.version[:20]} is too old", hint=INSTALL_HINT)
            await self._refuse_cache(url)
            self._checked = url
        return url
