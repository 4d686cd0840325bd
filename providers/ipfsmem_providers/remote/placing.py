"""Gives a file that was put under a temporary name its own name, without a rename that overwrites: carried out twice or late,
that would delete what was just stored."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple

from ipfsmem.errors import ProviderError, ProviderUnavailable
from ipfsmem_providers.packs.hidden import hidden_name
from ipfsmem_providers.packs.lost_blocks import LOST
from ipfsmem_providers.packs.object_store import Head

#: A file that was put so shortly before, in milliseconds, needs no new date.
CLOSE_MS: Final = 3_600_000
#: Attempts to give a file its name while other devices change what has it.
PLACINGS: Final = 4
#: Seconds for the removal of an unfinished file.
_TIDY_SECONDS: Final = 10.0


class InDoubt(ProviderUnavailable):
    """A rename may have been carried out, or will be later; it is not sent again."""


class PathEntry(NamedTuple):
    """The state of a path."""

    is_folder: bool  #: or whatever else is not a file
    size: int | None  #: bytes
    modified: int | None  #: milliseconds since 1970 UTC, by the clock of the server


class PlacedFiles(ABC):
    """Files that are put under a temporary name. A path is a folder and a name."""

    where: str

    @abstractmethod
    async def read(self, path: str, start: int, end: int) -> Head:
        """See `RemoteFiles`."""

    @abstractmethod
    async def delete(self, path: str, *, once: bool = False) -> None:
        """See `RemoteFiles`."""

    @abstractmethod
    async def set_aside(self, path: str) -> None:
        """See `RemoteFiles`."""

    @abstractmethod
    async def _entry(self, path: str) -> PathEntry | None:
        """Return what has this path, None without anything."""

    @abstractmethod
    async def _move(self, path: str, new: str, size: int | None = None) -> bool:
        """Rename a file; False when the new name is taken. `size`: bytes of the file, by which it is recognised there."""

    @abstractmethod
    async def _write_new(self, path: str, data: bytes) -> None:
        """Store a file under a name that was made for it."""

    async def move(self, path: str, new: str) -> None:
        """See `RemoteFiles`."""
        if not await self._move(path, new):
            raise FileExistsError(f"{new} is there")

    async def hide(self, path: str, hidden: str) -> None:
        """See `RemoteFiles`. Raises InDoubt where a server may do it later, on a file that is put meanwhile."""
        await self.move(path, hidden)

    async def _place(self, temporary: str, path: str, data: bytes, named_by_content: bool) -> None:
        """Rename a file to the name that it is to have. A file of that name is hidden first, and removed afterwards."""
        folder, _, name = path.partition("/")
        #: As of a collection, so that a file is restored if this device stops; a name for each attempt, as one may be late.
        hidden: list[str] = []
        doubtful: set[str] = set()
        doubt: InDoubt | None = None
        try:
            for _ in range(PLACINGS):
                if await self._move(temporary, path, len(data)):
                    break
                present, new = await self._entry(path), await self._entry(temporary)
                if new is None:  # perhaps an earlier attempt was carried out
                    if present is None or present.is_folder or present.size != len(data):
                        raise self._changed(path)
                    break
                if present is None:
                    continue
                if present.is_folder:
                    await self.set_aside(path)
                elif await self._may_stay(path, present, new, None if named_by_content else data):
                    await self.delete(temporary)
                    break
                else:
                    hidden.append(f"{folder}/{hidden_name(name)}")
                    try:
                        await self.hide(path, hidden[-1])
                    except (FileNotFoundError, FileExistsError):
                        pass  # it may be gone by now
                    except InDoubt as error:
                        doubt = error
                        doubtful.add(hidden[-1])
                        # A server that does it later would hide the new file, so the name is taken from it.
                        await self._write_new(hidden[-1], data)
            else:
                raise doubt or self._changed(path)
            # What was hidden may be the only sound file, and a server that says that it stored a file may not have.
            if hidden and not await self._holds(path, data):
                present = await self._entry(path)
                if present is not None and not present.is_folder and named_by_content:
                    await self._tidy(partial(self.hide, path, f"{folder}/{hidden_name(name)}"))
                raise self._changed(path)
        except BaseException:  # also when the call is cancelled
            for one in reversed(hidden):  # the newest first: an older one may be damaged
                await self._tidy(partial(self._move, one, path))
            raise
        for one in hidden:
            if one not in doubtful:
                with contextlib.suppress(OSError, ProviderError):  # it is in no reader's way
                    await self.delete(one, once=True)
        if hidden and await self._entry(path) is None:  # hidden late, by a lost connection
            for one in reversed(hidden):
                await self._tidy(partial(self._move, one, path))
            if (present := await self._entry(path)) is None or present.size != len(data):
                raise self._changed(path)

    def _changed(self, path: str) -> ProviderUnavailable:
        return ProviderUnavailable(f"{self.where} changed while {path} was stored", hint="Sync again.")

    async def _may_stay(self, path: str, present: PathEntry, new: PathEntry, data: bytes | None) -> bool:
        """Return whether a file makes a new one of the same name needless: one of the same bytes, or without `data` one of the
        same size that was put within the hour and that lost no block."""
        if present.size is None or present.size != new.size:
            return False
        if data is None:
            lost = path.removesuffix(".car") + LOST
            return _is_close(present.modified, new.modified) and await self._entry(lost) is None
        return await self._holds(path, data)

    async def _holds(self, path: str, data: bytes) -> bool:
        """Return whether a file can be read and has these bytes."""
        with contextlib.suppress(OSError):
            return await self.read(path, 0, len(data)) == Head(data, len(data))
        return False

    async def _tidy(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do what only saves a sweep, for a bounded time."""
        with contextlib.suppress(ProviderError, OSError):
            async with asyncio.timeout(_TIDY_SECONDS):
                await work()


def _is_close(present: int | None, new: int | None) -> bool:
    """Return whether a file was put within the hour before another one, by their dates in milliseconds."""
    return present is not None and new is not None and 0 <= new - present <= CLOSE_MS
