"""Edits of linked folders during background sync: seen at once with the extra `watch`, by regular scans without it."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.files import watching
from ipfsmem.memory import Memory
from ipfsmem.open_vault import folder_watching
from ipfsmem.sync.background import Attempt
from tests.support.extras import need_extra
from tests.support.patience import PATIENCE


class Kept:
    """A vault with a linked folder and a local provider, kept in sync; records the sync reports."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.base, self.folder, self.attempts = base, base / "plain", list[Attempt]()
        (base / "stick").mkdir()
        self.folder.mkdir()
        self.memory = Memory.create(
            "default", "encrypted-ipfs", provider=str(base / "stick"), passphrase=False, home=base / "home"
        )
        self.memory.folders.attach(self.folder)

    def run(self, work: Callable[[], Any]) -> None:
        async def main() -> None:
            async with self.memory.autosync(idle=60, every=None, on_attempt=self.attempts.append):
                await asyncio.sleep(0.3)  # the watcher starts in a thread
                await work()

        try:
            asyncio.run(main())
        finally:
            self.memory.close()

    def has(self, key: str) -> bool:
        """Return whether the vault has it, without scanning the folder."""
        return f"m/{key}" in [str(name) for name in self.memory.replica.store.names()]


async def wait_until(what: Callable[[], object]) -> None:
    """Wait until the condition is true."""
    ends = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < ends, what
        await asyncio.sleep(0.02)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    return Kept(tmp_path, monkeypatch)


def test_watched_edit_is_stored_and_published_at_once(kept: Kept) -> None:
    """Also an edit by rename; writes of this program cause no sync."""
    need_extra("watch", "watchfiles")

    async def work() -> None:
        (kept.folder / "tone.md").write_text("Short answers.\n")
        await wait_until(lambda: kept.has("tone"))
        await wait_until(lambda: len(kept.attempts) == 1)
        aside = kept.folder / ".music.md.swp"
        aside.write_text("Bach.\n")
        aside.rename(kept.folder / "music.md")
        await wait_until(lambda: kept.has("music"))
        await wait_until(lambda: len(kept.attempts) == 2)
        await asyncio.sleep(1.0)
        assert len(kept.attempts) == 2, "MEMORY.md was written meanwhile, by this program"
        assert all(one.error is None for one in kept.attempts), kept.attempts

    kept.run(work)


def test_many_edits_cause_few_syncs(kept: Kept) -> None:
    need_extra("watch", "watchfiles")

    async def work() -> None:
        for n in range(300):
            (kept.folder / f"note_{n % 60}.md").write_text(f"Text {n}.\n")
            if n % 10 == 0:
                await asyncio.sleep(0.005)
        await wait_until(lambda: all(kept.has(f"note_{n}") for n in range(60)))
        await wait_until(lambda: kept.attempts and not kept.memory._syncing.unpublished())
        assert len(kept.attempts) < 10

    kept.run(work)


def test_folder_that_disappears_and_returns_is_watched_again(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next scan finds its return; then it is watched again."""
    need_extra("watch", "watchfiles")
    monkeypatch.setattr(folder_watching, "POLL", 0.3)

    async def work() -> None:
        (kept.folder / "tone.md").write_text("Short answers.\n")
        await wait_until(lambda: kept.has("tone"))
        kept.folder.rename(kept.base / "elsewhere")
        await asyncio.sleep(1.0)
        assert kept.has("tone"), "a folder that is not there forgets nothing"
        (kept.base / "elsewhere").rename(kept.folder)
        await asyncio.sleep(1.0)
        (kept.folder / "music.md").write_text("Bach.\n")
        await wait_until(lambda: kept.has("music"))

    kept.run(work)


@pytest.mark.parametrize("why", ["no package", "the system's limit"])
def test_folder_without_change_events_is_scanned_regularly(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, why: str
) -> None:
    """A refusal by the system is reported once."""
    monkeypatch.setattr(folder_watching, "POLL", 0.3)
    if why == "no package":
        monkeypatch.setitem(sys.modules, "watchfiles", None)
    else:
        watchfiles = need_extra("watch", "watchfiles")

        def refuse(*paths: Path, **options: object) -> None:
            raise OSError(28, "OS file watch limit reached")

        monkeypatch.setattr(watchfiles, "awatch", refuse)
    assert folder_watching.POLL == 0.3

    async def work() -> None:
        for key in ("tone", "music"):
            (kept.folder / f"{key}.md").write_text("A text.\n")
            await wait_until(lambda key=key: kept.has(key))

    with caplog.at_level(logging.WARNING):
        kept.run(work)
    said = [one for one in caplog.records if "does not report changes" in one.message]
    assert len(said) == (why != "no package")


def test_scan_interval_without_the_extra_is_five_seconds() -> None:
    assert folder_watching.POLL == 5.0


def test_edit_while_the_keys_are_locked_does_not_busy_loop(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, looks = kept.memory._open, list[int]()

    class Told(watching.FolderWatcher):
        """A watcher that always reports changes."""

        def look_at(self, folders: Iterable[Path]) -> None:
            self._seen()

    def locked() -> bool:
        looks.append(1)
        assert len(looks) < 100, "it looks without end"
        return False

    monkeypatch.setattr(folder_watching, "FolderWatcher", Told)
    monkeypatch.setattr(opened, "still_unlocked", locked)

    async def main() -> None:
        async with folder_watching.watched_folders(opened, lambda: None):
            await wait_until(lambda: looks)
            await asyncio.sleep(0.35)

    asyncio.run(main())
    kept.memory.close()
    assert len(looks) < 20


def test_edit_during_shutdown_does_not_delay_it(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, eyes, late = kept.memory._open, list[watching.FolderWatcher](), list[int]()

    class Told(watching.FolderWatcher):
        """A watcher that reports changes on demand."""

        def __init__(self, seen: Callable[[], None]) -> None:
            super().__init__(seen)
            eyes.append(self)

        def look_at(self, folders: Iterable[Path]) -> None:
            pass

    monkeypatch.setattr(folder_watching, "FolderWatcher", Told)

    async def main(turns: int) -> None:
        left = False

        def unlocked() -> bool:
            if left:
                late.append(turns)
                raise SystemError("it looked although it had been told to end")  # else it would never end
            return True

        monkeypatch.setattr(opened, "still_unlocked", unlocked)
        async with folder_watching.watched_folders(opened, lambda: None):
            await asyncio.sleep(0.05)
            eyes[-1]._seen()
            for _ in range(turns):
                await asyncio.sleep(0)
            left = True

    for turns in range(6):
        asyncio.run(main(turns))
    kept.memory.close()
    assert late == []


def test_only_user_files_trigger_a_scan() -> None:
    for name, seen in (
        ("tone.md", True),
        ("MEMORY.md", True),
        (".ipfsmem", False),
        (".tone.md.swp", False),
        ("tone.md~", False),
    ):
        assert watching._is_of_users(None, f"/x/{name}") == seen
