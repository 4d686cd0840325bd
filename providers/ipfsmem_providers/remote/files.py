"""The transport of a folder on another machine: what object_store.py needs of WebDAV and the like. Protocols only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ipfsmem_providers.packs.object_store import FileInfo, Head


class Listing(NamedTuple):
    """The content of one folder."""

    files: dict[str, FileInfo]
    others: frozenset[str]  #: folders, and other entries that cannot be read


class RemoteFiles(Protocol):
    """Files on another machine. A path is a folder and a name: `packs/<name>`. Safe to call concurrently in one event loop.

    A missing file raises FileNotFoundError, a missing permission PermissionError, anything else ProviderError.
    Each call is bounded in time and in the bytes that it receives.
    """

    #: The spec, without secrets.
    where: str
    #: Seconds of one sync for reading packs without a usable index; None when nobody else waits for it.
    scan_seconds: float | None
    #: Returns seconds, only differences count.
    monotonic: Callable[[], float]

    #: Parts with at most this many bytes between them cost less when they are read as one.
    gap: int
    #: Most parts of one `read_parts`.
    parts_max: int

    async def list_folder(self, folder: str) -> Listing:
        """Return the content of a folder, whole; an absent folder is empty."""

    async def read(self, path: str, start: int, end: int) -> Head:
        """Return the bytes from `start` to before `end`, fewer only at the end of the file, and the size of the file."""

    async def read_parts(self, path: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each span, see `read`."""

    async def put(self, path: str, data: bytes, *, named_by_content: bool = False) -> None:
        """Store a file whole or not at all, replacing a file of that name; an absent folder is created.

        `named_by_content`: where a file cannot be replaced at once, one of that name and size that was put within the hour, and
        that did not lose blocks, stays. Something else of that name is renamed, see `set_aside`.
        """

    async def flush(self, folder: str) -> None:
        """Make the names of files in a folder durable, where the server can."""

    async def move(self, path: str, new: str) -> None:
        """Rename a file within its folder. FileExistsError when the new name is taken."""

    async def hide(self, path: str, hidden: str) -> None:
        """Do `move`, so that a file that is put under `path` meanwhile stays."""

    async def delete(self, path: str, *, once: bool = False) -> None:
        """Remove a file, and nothing but a file. `once`: without a repetition after a lost answer, as another file may have
        the name by then."""

    async def set_aside(self, path: str) -> None:
        """Rename a folder in the place of a file, so that it blocks nobody; nothing is lost."""

    async def close(self) -> None:
        """Close connections. Never fails."""
