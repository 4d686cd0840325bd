"""The `git` provider: a branch of a private git repository, by the `git` program.

    git:https://github.com/me/memory.git        branch `ipfsmem`; credential helpers as git has them, or GIT_TOKEN
    git:git@host:me/memory.git#other            another branch; #refs/ipfsmem/main for a ref that no page shows
    git:/media/stick/memory.git                 a bare repository at a path
    git:origin                                  a remote of the repository here; stored as its address, with refs/ipfsmem/main

The files lie in the tree of one commit, as in a shared folder (packs/provider.py). A publish is one commit on the last
one, and its push is a compare-and-swap: who loses a race fetches, puts the same files into the newer tree and pushes
again, which is right because files are named by their content and never change. After `SQUASH` commits, one without a
parent replaces them, if the host allows it. Other branches are never changed, and a branch with other files is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from ipfsmem.content.cid import CID
from ipfsmem.errors import (
    ConcurrencyError,
    IpfsmemError,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    StorageError,
)
from ipfsmem.provider.contract import Block, Capabilities
from ipfsmem_providers.git.address import EXAMPLES, GitAddress, parse
from ipfsmem_providers.git.errors import RULES_HINT, is_damage, is_of_device
from ipfsmem_providers.git.object_store import (
    BranchChanges,
    BranchView,
    GitCollector,
    GitPacks,
    PackState,
    default_cache,
    object_stores,
    pack_states,
)
from ipfsmem_providers.git.program import GitProgram, LocalFailure
from ipfsmem_providers.git.remotes import address_of, require_address, warning
from ipfsmem_providers.git.repository import BranchTree, CacheRepository, LostRace
from ipfsmem_providers.http.policy import Timeouts, in_company
from ipfsmem_providers.packs.blocking_work import BlockingWork, heartbeat, is_cancelled
from ipfsmem_providers.packs.collection import Collector
from ipfsmem_providers.packs.names import NameRecords
from ipfsmem_providers.packs.pins import PackPins
from ipfsmem_providers.packs.provider import PackedStore
from ipfsmem_providers.packs.small_files import SmallFiles
from ipfsmem_providers.packs.store import PackWriter
from ipfsmem_providers.settings import seconds

T = TypeVar("T")
#: Commits after which the history is replaced by one.
SQUASH: Final = 128
#: Lost races after which a write fails, and the longest wait in seconds before an attempt.
_ATTEMPTS: Final = 40
#: Pushes that were rejected although the branch did not change, after which the host is considered to refuse them.
_SAME: Final = 4
_LONGEST: Final = 2.0


class _Group:
    """The writes of one group; `over` once it was committed or discarded, also for tasks that still refer to it."""

    def __init__(self) -> None:
        self.changes = BranchChanges()
        self.looked = self.over = False
        #: The packs that this task was shown: their blocks are left out of the changes.
        self.shown: dict[str, PackState] = {}


class GitProvider(PackedStore):
    """A branch as a provider. See ipfsmem.provider.contract for the methods."""

    pack_bytes = 16 * 1024 * 1024
    step_seconds = 300.0

    def __init__(
        self,
        rest: str,
        settings: Mapping[str, Any] | None = None,
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """`rest`: the address. `settings["git_cache"]`: the folder of the cache repository. No network access.

        Raises ConfigError for an unusable address, a remote's name (see `lasting`), and without the git program.
        """
        options = settings or {}
        require_address(rest)
        self._address = parse(rest)
        stall, push_stall = _stalls(options)
        token = _token(self._address, options)
        git = GitProgram(
            self._address, self.name, token=token, stall=stall, push_stall=push_stall, heartbeat=self._moved
        )
        cache = Path(options["git_cache"]) if options.get("git_cache") else default_cache(options.get("home"))
        key = hashlib.sha256("\n".join(self._address[:2]).encode()).hexdigest()[:24]
        self.repository = CacheRepository(cache / key, self._address, git, self.name)
        self._squash = int(seconds(options, "git_squash", SQUASH))
        self._thread = threading.local()
        self._lock = threading.Lock()
        self._progress = 0
        self._tree: BranchTree | None = None
        #: Whether `_tree` is used until the snapshot ends; and why it could not be read in this snapshot.
        self._in_snapshot = self._is_read = False
        self._failed: ProviderError | None = None
        #: The packs of the snapshot, including this device's changes.
        self._shown: dict[str, PackState] = {}
        self._group: ContextVar[_Group | None] = ContextVar("group", default=None)
        packs, pins, names, small = object_stores(self._view, self.repository, self.name)
        super().__init__(
            GitPacks(packs),
            PackPins(pins, lambda: clock() // 1_000_000, lambda: clock() / 1e9),
            NameRecords(names),
            SmallFiles(small),
            BlockingWork(self.name, stall * 1.5 + 2.0),
            clock,
        )

    @staticmethod
    def lasting(rest: str) -> str:
        """Return the address independent of the working directory. Raises ConfigError for an unusable one."""
        return address_of(rest).shown

    @staticmethod
    def warning(rest: str) -> str:
        """Return a warning for a repository with other content; "" for a branch of an address. Raises ConfigError."""
        return warning(rest)

    @staticmethod
    def require_address(rest: str) -> None:
        """Raise ConfigError for the name of a remote, which only `lasting` looks up."""
        require_address(rest)

    @property
    def name(self) -> str:
        """Return `git:` and the address."""
        return f"git:{self._address.shown}"

    @property
    def capabilities(self) -> Capabilities:
        """Return all capabilities of packs, except `raw`: reads are answered by the copy on this device."""
        return msgspec.structs.replace(super().capabilities, raw=False)

    # -- snapshots and groups --------------------------------------------------------------------------------------

    def begin_snapshot(self, cache: bytes) -> None:
        """Read the branch once. Pushes notice what others pushed meanwhile, so writes keep the snapshot."""
        self._in_snapshot, self._is_read, self._failed, self._shown = True, False, None, {}

    def end_snapshot(self) -> bytes:
        """Read the branch for each call again."""
        self._in_snapshot = self._is_read = False
        self._failed, self._shown = None, {}
        return b""

    async def settle(self) -> list[str]:
        """See `Settling`: report that the host forbids replacing the history, if this was just found."""
        forbidden, self.repository.newly_forbidden = self.repository.newly_forbidden, False
        return (
            ["the host refused a forced push, so the history stays and the repository grows"]
            if forbidden
            else []
        )

    async def try_host(self) -> str:
        """See `HostTrial`: replace the history by one commit with the same files."""
        return await self._blocking.run(self._try_force)

    def _try_force(self) -> str:
        with self._alone(), self._named_errors():
            for attempt in range(_ATTEMPTS):
                try:
                    tree = self._look(again=attempt > 0)
                    if not tree.head:
                        return "forced push not tried: the branch does not exist"
                    self._tree, allowed = self.repository.try_force(tree)
                except LostRace:
                    self._pause(attempt)
                    continue
                self.repository.newly_forbidden = False
                return f"forced push {'allowed' if allowed else 'refused: the history stays and the repository grows'}"
            raise self._busy()

    def begin_group(self) -> None:
        """See `GroupCommit`."""
        self._group.set(_Group())

    async def commit_group(self) -> None:
        """Push the group's writes as one commit."""
        group = self._open_group()
        if group is not None:
            group.over = True
            if group.changes:
                await self._blocking.run(partial(self._commit, group.changes, group.shown))

    def discard_group(self) -> None:
        """Drop the group's writes."""
        group = self._open_group()
        if group is not None:
            group.over = True

    def _open_group(self) -> _Group | None:
        group = self._group.get()
        return None if group is None or group.over else group

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Store packs, in one commit however many they are."""
        if self._open_group() is not None:
            return await super().put_car(root, blocks, name=name)
        self.begin_group()
        try:
            answered = await super().put_car(root, blocks, name=name)
        except BaseException:
            self.discard_group()
            raise
        await self.commit_group()
        return answered

    async def collect(self) -> int:
        """See `PackedStore.collect`; a commit of its own."""
        if self._open_group() is not None:
            raise ProviderUnavailable(f"{self.name} collects between publishes only")
        return await super().collect()

    # -- steps -----------------------------------------------------------------------------------------------------

    async def _run(
        self, work: Callable[..., T], *args: object, more: float = 0.0, snapshot: bool = False
    ) -> T:
        """Do blocking work in a thread, as one step or as a part of this task's group."""
        step = partial(self._step, self._open_group(), snapshot, partial(work, *args))
        return await self._blocking.run(step, more=more)

    def _step(self, group: _Group | None, reads: bool, work: Callable[[], T]) -> T:
        with self._alone(), self._named_errors():
            if group is not None:
                tree = self._look(held=group.looked)
                group.looked = True
                _add(group.shown, tree)
                return self._seen(tree, group.changes, work)
            tree, same = self._look(), 0
            for attempt in range(_ATTEMPTS):
                changes = BranchChanges()
                result = self._seen(tree, changes, work)
                if not changes:
                    return result
                try:
                    self._push(changes, same)
                except LostRace as lost:
                    tree, same = self._after(lost, attempt, same)
                    continue
                except ProviderError:
                    if not reads:  # a read records the damage that it found, if it may write
                        raise
                return result
            raise self._busy()

    def _commit(self, changes: BranchChanges, shown: dict[str, PackState]) -> None:
        with self._alone(), self._named_errors():
            tree, same = self._look(held=True), 0
            for attempt in range(_ATTEMPTS):
                now = pack_states(tree)
                if any(now.get(name) != state for name, state in {**shown, **self._shown}.items()):
                    raise ProviderUnavailable(
                        f"{self.name}: another device removed blocks that this publish may need",
                        hint="Sync again.",
                    )
                try:
                    self._push(changes, same)
                except LostRace as lost:
                    tree, same = self._after(lost, attempt, same)
                else:
                    return
            raise self._busy()

    def _push(self, changes: BranchChanges, same: int) -> None:
        """Push. `same`: number of consecutive pushes that were rejected although the branch did not change, as some hosts do for a
        forbidden squash."""
        assert self._tree is not None
        before = pack_states(self._tree)
        self._tree = self.repository.push(
            self._tree,
            changes.puts,
            changes.removals(self._tree),
            squash_at=self._squash if same < 2 else sys.maxsize,
        )
        after = pack_states(self._tree)
        for name in before.keys() & self._shown.keys():  # this device knows its own changes
            if name not in after:
                del self._shown[name]
            elif after[name] != before[name] == self._shown[name]:
                self._shown[name] = after[name]

    def _after(self, lost: LostRace, attempt: int, same: int) -> tuple[BranchTree, int]:
        """Return the branch after a lost race, and how often in a row it had not changed. Raises ProviderRefused when it never does."""
        assert self._tree is not None
        before = self._tree.head
        self._pause(attempt)
        tree = self._look(again=True)
        same = same + 1 if tree.head == before else 0
        if same == _SAME and lost.locked:
            lock = f"{self._address.ref}.lock"
            if self._address.kind == "file":
                lock = str(Path(self._address.url, lock))
            raise ProviderUnavailable(
                f"{self.name}: a git program uses the branch there, or was interrupted",
                hint=f"If no git program runs there, remove {lock}",
            )
        if same == _SAME:
            raise ProviderRefused(
                f"{self.name} refused the new commit, and no other device pushed one ({lost})",
                hint=RULES_HINT,
            )
        return tree, same

    def _look(self, *, again: bool = False, held: bool = False) -> BranchTree:
        """Return the branch of the snapshot, or the current one; with `held` the one read last."""
        if self._failed is not None:
            raise self._failed
        if self._tree is None or again or not (held or (self._in_snapshot and self._is_read)):
            try:
                self._tree = self.repository.fetch(self._tree)
            except ProviderError as error:
                self._failed = error if self._in_snapshot else None
                raise
            self._is_read = True
        if self._in_snapshot:
            _add(self._shown, self._tree)
        return self._tree

    def _seen(self, tree: BranchTree, changes: BranchChanges, work: Callable[[], T]) -> T:
        self._thread.view = BranchView(tree, changes)
        try:
            return work()
        finally:
            self._thread.view = None

    def _view(self) -> BranchView:
        view: BranchView | None = getattr(self._thread, "view", None)
        assert view is not None, "outside of a step"
        return view

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock. Waiting threads report progress as long as the working one does."""
        seen = -1
        while not self._lock.acquire(timeout=0.5):
            if is_cancelled():
                raise ProviderUnavailable(f"{self.name}: cancelled")
            if self._progress != seen:
                seen = self._progress
                heartbeat()
        try:
            yield
        finally:
            self._progress += 1
            self._lock.release()

    def _moved(self) -> None:
        self._progress += 1
        heartbeat()

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except LocalFailure as error:
            self._tree = None
            replaced = self._replaced(error)
            if replaced:
                raise ProviderUnavailable(
                    f"{self.name}: its copy on this device was damaged and is made again ({error})",
                    hint="Sync again.",
                ) from error
            if replaced is False and error.connected and is_damage(str(error)):
                raise ProviderUnavailable(
                    f"{self.name}: the repository there is damaged ({error})",
                    hint="Copy the repository first. Then run in it: git fsck",
                ) from error
            raise ProviderUnavailable(
                f"{self.name}: its copy in {self.repository.folder} does not work: {error}; it may be deleted",
                hint="Free space there, and let this user write there."
                if is_of_device(str(error))
                else "Sync again.",
            ) from error
        except (StorageError, ConcurrencyError) as error:
            raise ProviderUnavailable(
                f"{self.name}: its copy in {self.repository.folder} cannot be locked: {error}",
                hint="Free space there, and let this user write there.",
            ) from error
        except FileNotFoundError:
            raise ProviderUnavailable(f"{self.name} changed while it was read", hint="Sync again.") from None
        except OSError as error:
            raise ProviderUnavailable(
                f"{self.name}: its copy in {self.repository.folder} does not work: {error.strerror or error}",
                hint="Free space there, and let this user write there.",
            ) from error

    def _replaced(self, failure: LocalFailure) -> bool | None:
        """Return whether the copy was damaged and was removed; None if that cannot be determined."""
        with contextlib.suppress(IpfsmemError, OSError, LocalFailure):
            return self.repository.replace(failure)
        return None

    def _pause(self, attempt: int) -> None:
        heartbeat()
        if is_cancelled():
            raise ProviderUnavailable(f"{self.name}: cancelled")
        time.sleep(random.uniform(0, min(_LONGEST, 0.05 * 1.5**attempt)))  # noqa: S311 - no secret

    def _busy(self) -> ProviderUnavailable:
        return ProviderUnavailable(
            f"{self.name}: other devices pushed first, {_ATTEMPTS} times", hint="Sync again."
        )

    def _finish(self, writer: PackWriter) -> None:
        """Place a pack and merge small ones. Marked packs are removed by `collect`, in a commit of its own."""
        self._packs.place(writer)
        with contextlib.suppress(OSError, ProviderError):
            self._packs.compact(self._packs.inventory())

    def _checked(self, work: Callable[..., T], *args: object) -> T:
        return work(*args)

    def _collector(self, now: int) -> Collector:
        return GitCollector(self._packs, now)


def _add(shown: dict[str, PackState], tree: BranchTree) -> None:
    """Add the packs of a tree that were not shown before."""
    for name, state in pack_states(tree).items():
        shown.setdefault(name, state)


def _token(address: GitAddress, settings: Mapping[str, Any]) -> str:
    """Return the token for the address; empty without one, when git's credential helpers have it."""
    if address.kind not in ("https", "http") or not (
        settings.get("git_token") or os.environ.get("GIT_TOKEN")
    ):
        return ""
    from ipfsmem_providers.http.tokens import token_for

    return token_for(settings, "GIT_TOKEN", address.url, kind="git", url_of=lambda rest: parse(rest).url)


def _stalls(settings: Mapping[str, Any]) -> tuple[float, float]:
    """Return the seconds without progress after which a fetch and a push are ended. A push gets more, because its data is stored
    nowhere else."""
    alone = settings.get("timeouts") or Timeouts()
    limits = in_company(alone) if settings.get("company") else alone
    return float(settings.get("stall") or limits.stall), float(settings.get("stall") or alone.stall)


__all__ = ["EXAMPLES", "SQUASH", "GitProvider"]
