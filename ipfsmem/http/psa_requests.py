"""Stores the pin requests that a peer received: content, time and status.

Requests are stored in memory, or in a folder with one small file each. Files are written atomically, so several servers may use the
folder, and a sync program may copy it.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.device.atomic_files import reason, storage_errors
from ipfsmem.device.shared_folder import SharedFolder
from ipfsmem.errors import FormatError, StorageError

QUEUED: Final = "queued"
PINNED: Final = "pinned"
STATUSES: Final = (QUEUED, "pinning", PINNED, "failed")
#: How a name is compared with the requested one.
MATCHES: Final = ("exact", "iexact", "partial", "ipartial")
_HEX: Final = frozenset("0123456789abcdef")
_FILE_MAX: Final = 1024 * 1024
#: Time of change, size and inode of a file that was read.
_Stamp: TypeAlias = tuple[int, int, int]


class PinRequest(msgspec.Struct, frozen=True):
    """One request. `cid` and `name` are kept as received; `handle` is the store's own once it is pinned."""

    id: str
    cid: str
    name: str
    created: int  #: milliseconds since 1970 UTC; no two requests share one
    status: str
    origins: tuple[str, ...] = ()
    meta: dict[str, str] = {}
    handle: str = ""


class PinFilter(msgspec.Struct, frozen=True):
    """The filter of a list. Empty fields match everything; times are milliseconds, exclusive."""

    cids: frozenset[CID] = frozenset()
    name: str = ""
    match: str = "exact"
    statuses: frozenset[str] = frozenset()
    before: int | None = None
    after: int | None = None
    meta: dict[str, str] = {}

    def matches(self, request: PinRequest, cid: CID) -> bool:
        """Return whether a request, whose CID is `cid`, matches."""
        return (
            (not self.cids or cid.multihash in {wanted.multihash for wanted in self.cids})
            and (not self.name or self._matches_name(request.name))
            and (not self.statuses or request.status in self.statuses)
            and (self.before is None or request.created < self.before)
            and (self.after is None or request.created > self.after)
            and all(request.meta.get(key) == value for key, value in self.meta.items())
        )

    def _matches_name(self, name: str) -> bool:
        mine, theirs = self.name, name
        if self.match.startswith("i"):
            mine, theirs = mine.casefold(), theirs.casefold()
        return mine in theirs if self.match.endswith("partial") else mine == theirs


class PinRequests:
    """All requests, newest first. Not thread-safe; several servers may use the same folder."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` holds a file for each, created with the first; None keeps them in memory. The disk is not touched here."""
        self._folder = None if folder is None else SharedFolder(folder.parent, folder.name, private=True)
        self._known: dict[str, PinRequest] = {}
        self._stamps: dict[str, _Stamp] = {}
        self._newest: int | None = None  #: time of the newest request; None before the first read

    def add(self, cid: str, name: str, origins: Iterable[str], meta: dict[str, str], now: int) -> PinRequest:
        """Add a request. Its time is made one millisecond later than the newest's if necessary, so that pages by time neither
        repeat nor lose one. StorageError if it cannot be stored."""
        if self._newest is None:
            self._newest = max((request.created for request in self.all()), default=0)
        created = max(now, self._newest + 1)
        request = PinRequest(secrets.token_hex(16), cid, name, created, QUEUED, tuple(origins), meta)
        self._keep(request)
        return request

    def change(self, request: PinRequest) -> None:
        """Store a request in its new state, unless it was deleted meanwhile."""
        if self.get(request.id) is not None:
            self._keep(request)

    def get(self, request_id: str) -> PinRequest | None:
        """Return one request."""
        if not _is_id(request_id):
            return None  # it becomes a file's name
        if self._folder is not None:
            self._read(request_id)
        return self._known.get(request_id)

    def drop(self, request_id: str) -> None:
        """Delete a request."""
        self._forget(request_id)
        if self._folder is not None and _is_id(request_id):
            name = f"{request_id}.json"
            with storage_errors(self._folder.path / name, "remove"), contextlib.suppress(FileNotFoundError):
                self._folder.unlink(name)
                self._folder.flush()

    def all(self) -> list[PinRequest]:
        """Return every request, newest first. Invalid files in the folder are skipped."""
        if self._folder is not None:
            self._refresh()
        return sorted(self._known.values(), key=lambda request: (-request.created, request.id))

    def _keep(self, request: PinRequest) -> None:
        if self._folder is None:
            self._known[request.id] = request
            self._newest = max(self._newest or 0, request.created)
            return
        name = f"{request.id}.json"
        with storage_errors(self._folder.path / name, "write"):
            self._folder.write(name, msgspec.json.encode(request))
        self._read(request.id)

    def _refresh(self) -> None:
        assert self._folder is not None
        try:
            names = self._folder.names()
        except OSError as error:
            raise StorageError(f"the pins in {self._folder} cannot be listed: {reason(error)}") from error
        here = {name[:-5] for name in names if name.endswith(".json") and _is_id(name[:-5])}
        for gone in self._known.keys() - here:
            self._forget(gone)
        for request_id in here:
            self._read(request_id)

    def _read(self, request_id: str) -> None:
        """Read one file, unless it is unchanged."""
        assert self._folder is not None
        name = f"{request_id}.json"
        path = self._folder.path / name
        try:
            status = self._folder.lstat(name)
        except FileNotFoundError:
            self._forget(request_id)
            return
        except OSError as error:  # it may exist, so it must not be treated as deleted
            raise StorageError(f"the pin {path} cannot be read: {reason(error)}") from error
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._stamps.get(request_id) == stamp:
            return
        try:
            data = self._folder.read(name, _FILE_MAX)
            request = read_json(data or b"", type=PinRequest)
            if request.id != request_id or request.status not in STATUSES:
                raise FormatError(f"{path} is another request's")
            parse_cid(request.cid)
        except (OSError, FormatError, msgspec.DecodeError, UnicodeDecodeError):
            self._forget(request_id)
            return
        self._known[request_id], self._stamps[request_id] = request, stamp
        if self._newest is not None:
            self._newest = max(self._newest, request.created)

    def _forget(self, request_id: str) -> None:
        self._known.pop(request_id, None)
        self._stamps.pop(request_id, None)


def _is_id(text: str) -> bool:
    return len(text) == 32 and _HEX.issuperset(text)


def instant(ms: int) -> str:
    """Return milliseconds since 1970 as RFC 3339 in UTC."""
    whole, rest = divmod(ms, 1000)
    return f"{datetime.fromtimestamp(whole, UTC).strftime('%Y-%m-%dT%H:%M:%S')}.{rest:03d}Z"
