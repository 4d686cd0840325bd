"""Watch folders and report changes at once, if the package `watchfiles` (extra `watch`) is installed and supported.

Reports do not tell what changed. On network shares, beyond the system's limits, and without the package nothing is
reported, so callers also poll.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

_log = logging.getLogger("ipfsmem.files")
#: Milliseconds: a burst of changes is reported once, after a pause of the first, at the latest after the second.
_PAUSE, _AT_LATEST = 50, 200
#: Watched names below a linked folder; other subfolders are ignored.
_BELOW = ("timeline",)


class FolderWatcher:
    """Calls `seen` in the running event loop when something in the watched folders may have changed."""

    def __init__(self, seen: Callable[[], None]) -> None:
        self._seen = seen
        self._folders: frozenset[tuple[Path, int]] = frozenset()
        self._stop: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._blind = False

    def look_at(self, folders: Iterable[Path]) -> None:
        """Watch these folders from now on. A missing folder is skipped until a later call finds it."""
        there = frozenset(
            (path, inode)
            for folder in folders
            for path in (folder, *(folder / name for name in _BELOW))
            if (inode := _inode(path))
        )
        if self._blind or there == self._folders:
            return
        self._let_go()
        self._folders = there
        if there:
            self._stop = asyncio.Event()
            self._task = asyncio.get_running_loop().create_task(
                self._watch(sorted(path for path, _ in there), self._stop)
            )

    async def close(self) -> None:
        """Stop watching."""
        task = self._task
        self._let_go()
        if task is not None:
            await asyncio.wait([task])

    def _let_go(self) -> None:
        if self._stop is not None and self._task is not None:
            self._stop.set()
            self._task.cancel()
        self._stop = self._task = None
        self._folders = frozenset()

    async def _watch(self, paths: list[Path], stop: asyncio.Event) -> None:
        try:
            import watchfiles
        except ImportError:
            self._blind = True
            return
        try:
            changes = watchfiles.awatch(
                *paths,
                watch_filter=_is_of_users,
                debounce=_AT_LATEST,
                step=_PAUSE,
                stop_event=stop,
                recursive=False,
                ignore_permission_denied=True,
            )
            async with contextlib.aclosing(changes):
                async for _ in changes:
                    self._seen()
        except FileNotFoundError:
            self._folders = frozenset()  # removed just now: the next `look_at` tries again
        except Exception as error:  # the system's limit of watches is an OSError or one of the package's own
            self._blind = True
            _log.warning(
                "folders are polled every few seconds, because the system does not report changes: %s", error
            )


def _is_of_users(change: object, path: str) -> bool:
    """Return whether a change is a user's: not of this program's own files, nor of files written under another name first."""
    name = Path(path).name
    return not name.startswith(".") and not name.endswith("~")


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino if path.is_dir() else 0
    except OSError:
        return 0
