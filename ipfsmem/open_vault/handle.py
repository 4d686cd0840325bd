"""Shared state of one open vault: its replica, memories, linked folders, and listeners for changes.

Nothing here talks to a provider; that is `open_vault.syncing`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar

import msgspec

from ipfsmem.device.replica import Replica
from ipfsmem.errors import ClosedError, ConfigError, IpfsmemError, PassphraseError
from ipfsmem.files.working_copies import WorkingCopies
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.mode import Mode
from ipfsmem.open_vault.audit import report_doubts

if TYPE_CHECKING:
    from ipfsmem.device.access_counts import AccessCounts
    from ipfsmem.device.events import Timeline
    from ipfsmem.device.shown_texts import ShownTexts
    from ipfsmem.memories.meaning import Meaning
    from ipfsmem.memories.memory_records import MemoryRecord
    from ipfsmem.memories.scopes import Scopes
    from ipfsmem.plugins.running import Plugins
    from ipfsmem.recall.embedder import Embedder
    from ipfsmem.recall.ranking import RankingWeights

#: File of `device.access_counts`; that module is loaded only if the file exists.
USES_FILE = "recall.uses"
#: The scopes that the caller may read, redirected ones included; None: all.
_COVERED: Final = ContextVar[frozenset[str] | None]("covered", default=None)
P = ParamSpec("P")
R = TypeVar("R")


def _locked(method: Callable[Concatenate[VaultHandle, P], R]) -> Callable[Concatenate[VaultHandle, P], R]:
    """Make a method exclusive: one thread at a time."""

    @functools.wraps(method)
    def call(self: VaultHandle, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            return method(self, *args, **kwargs)

    return call


def _embedder(question: bool) -> Embedder | None:
    """Open the embedding model: that of the settings, else an installed one. `question`: whether it is for a query. A table
    `[embeddings]` without provider, address and path uses the provider of `[model]`; without that table, no text is sent
    there. Raises ConfigError."""
    from ipfsmem.config import settings

    config = settings()
    embeddings = config.embeddings
    if embeddings is not None and embeddings.provider.lower() == "off":
        return None  # what opens a model is not loaded
    from ipfsmem.provider.contract import open_embedder

    if embeddings is None:
        return open_embedder(None)
    options = msgspec.structs.asdict(embeddings)
    if not (embeddings.provider or embeddings.base_url or embeddings.path) and config.model is not None:
        options["provider"] = config.model.provider
    return open_embedder({**options, "question": question})


def _decay_rate() -> float:
    """Return the share of a confidence that fades each day: the default if the settings are invalid."""
    from ipfsmem.config import FactSettings, settings

    try:
        return settings().facts.decay_rate
    except ConfigError:
        return FactSettings().decay_rate


def _weighed() -> RankingWeights:
    """Return the ranking weights of the settings. Raises ConfigError for unusable weights."""
    from ipfsmem.config import settings
    from ipfsmem.recall.ranking import USUAL, weigh

    try:
        weights = settings().recall
    except ConfigError:
        return USUAL  # recall goes on, and says of the same file why it asks no model
    return weigh(weights.weights, weights.half_life_days)


@contextlib.contextmanager
def reading_only(scopes: frozenset[str] | None) -> Iterator[None]:
    """Limit reads inside the block to these scopes, redirections included; None: all scopes."""
    token = _COVERED.set(scopes)
    try:
        yield
    finally:
        _COVERED.reset(token)


def covered_scopes() -> frozenset[str] | None:
    """Return the scopes that the caller may read; None: all."""
    return _COVERED.get()


class VaultHandle:
    """One vault that is open on this device."""

    def __init__(self, vault_name: str, replica: Replica) -> None:
        self.vault_name = vault_name
        self.replica = replica
        #: The memories of the default scope; `in_scope` returns those of another.
        self.memories = MemoryStore(replica)
        self.memories.read_order = self.read_order
        self._meaning: Meaning | None = None
        #: Whether another process computes missing vectors, because this process ends after one query.
        self.vectors_apart = False
        self.memories.meaning = self.meaning_if_named
        self.memories.weighed = _weighed
        self.memories.decay_rate = _decay_rate
        self._uses: AccessCounts | None = None
        self._plugins: Plugins | None = None
        self.memories.uses = self.uses
        self._timelines: dict[str, Timeline] = {}
        #: The folders of plain files; None if the mode stores none, and after `close`.
        self.files: WorkingCopies | None = None
        if replica.folder is not None and self.mode.on_disk:
            self.files = WorkingCopies(replica, self.memories)
        #: Called after every durable change.
        self.when_changed: Callable[[], None] = lambda: None
        self.closed = False
        #: Why the keys were dropped; "" unless they were locked while the vault was open.
        self.locked = ""
        #: The threads that run a sync; they check the keys themselves, and read between transactions without `lock`.
        self.sync_threads: list[int] = []
        #: Drops keys that are held outside this class.
        self.when_locked: Callable[[], None] = lambda: None

    def uses(self) -> AccessCounts:
        """Return how often memories were used on this device."""
        if self._uses is None:
            from ipfsmem.device.access_counts import AccessCounts  # most calls need none

            self._uses = AccessCounts(self.replica)
        return self._uses

    def used(self, reading: MemoryRecord | None) -> None:
        """Count a read of this text."""
        if reading is not None:
            self.uses().count([(reading.scope, reading.key)])

    @contextlib.contextmanager
    def flush_usage(self, scope: str) -> Iterator[None]:
        """Write, once a day, an event with the use of this scope before today, in the transaction of the block's write."""
        folder, today = self.replica.folder, self.replica.environment.utc_today()
        counted = self._uses is not None or (folder is not None and (folder / USES_FILE).exists())
        counts = self.uses().untold(scope, today) if counted else {}
        if not counts:
            yield
            return
        from ipfsmem.bundle.program_events import USED  # once a day

        with self.replica.transaction():
            yield
            self.timeline(scope).note(USED, {"counts": counts})
        self.uses().tell(scope, counts, today)

    @functools.cached_property
    def shown(self) -> ShownTexts:
        """Return the texts that each session was already given."""
        from ipfsmem.device.shown_texts import ShownTexts  # most calls need none

        return ShownTexts(self.replica)

    @functools.cached_property
    def operations_kept(self) -> int:
        """Return the maximum number of entries of the audit log, as in the settings at the first one."""
        from ipfsmem.config import OperationSettings, settings

        try:
            return settings().operations.kept
        except ConfigError:
            return OperationSettings().kept

    @property
    def mode(self) -> Mode:
        """Return the mode of the vault."""
        return self.replica.config.mode

    @property
    def device(self) -> str:
        """Return the id under which this device writes."""
        return self.replica.device.id

    @property
    def lock(self) -> AbstractContextManager[bool]:
        """Return the reentrant lock of the thread that uses the vault."""
        return self.replica.db.lock

    @property
    def is_revoked(self) -> bool:
        """Tell whether this device knows that it was revoked."""
        ring = self.replica.ring
        return ring is not None and ring.view.is_revoked(self.device)

    def meaning(self) -> Meaning:
        """Return semantic recall."""
        if self._meaning is None:
            from ipfsmem.memories.meaning import Meaning

            self._meaning = Meaning(self.memories, self.lock, _embedder, apart=self.vectors_apart)
        return self._meaning

    @property
    def left_without_vectors(self) -> frozenset[str] | None:
        """Return the kinds of entries, other than memories, that may lack vectors; None without semantic recall."""
        return None if self._meaning is None else self._meaning.left

    def meaning_if_named(self) -> Meaning | None:
        """Do `meaning`; return None, and load nothing, if no model is set or installed."""
        if self._meaning is None:
            with contextlib.suppress(IpfsmemError):  # `Meaning` reports the error
                if _embedder(True) is None:
                    return None
        return self.meaning()

    def end_meaning(self) -> None:
        """Stop computing vectors, and wait briefly for running work. The caller must not hold `lock`."""
        if self._meaning is not None:
            self._meaning.end()

    def plugins(self) -> Plugins | None:
        """Return the plugins that the current settings enable; None without any."""
        from ipfsmem.config import settings

        try:
            config = settings().plugins
        except ConfigError:
            return self._plugins  # other readers of the settings report the error
        with self.lock:
            if self._plugins is not None and self._plugins.settings != config:
                self._plugins.close()
                self._plugins = None
            if self._plugins is None and config.names and not self.closed:
                from ipfsmem.plugins.running import Plugins  # rarely needed

                self._plugins = Plugins(config)
            return self._plugins

    def end_plugins(self) -> None:
        """Stop the plugins, and wait briefly for their last calls. The caller must not hold `lock`."""
        if self._plugins is not None:
            self._plugins.close()

    @functools.cached_property
    def scopes(self) -> Scopes:
        """Return the scopes of this vault."""
        from ipfsmem.memories.scopes import Scopes

        return Scopes(self.replica)

    def read_order(self, scope: str) -> list[str]:
        """Return the scopes to read for one scope, in order of precedence; only those that the caller may read."""
        covered = _COVERED.get()
        scopes = self.scopes.stack(scope) if scope else [""]
        return (
            [one for one in scopes if one in covered] if covered is not None and len(scopes) > 1 else scopes
        )

    def timeline(self, scope: str) -> Timeline:
        """Return the events of one scope."""
        from ipfsmem.device.events import Timeline

        return self._timelines.setdefault(scope, Timeline(self.replica, scope))

    def changed(self) -> None:
        """Report a change on the disk."""
        self.when_changed()

    def refuse_closed(self, action: str) -> None:
        """Raise PassphraseError if the keys were locked, after dropping those of this process, and ClosedError if the vault
        is closed."""
        if not self.closed and (self.locked or not self.still_unlocked()):
            self.drop_keys()
        if self.locked:
            from ipfsmem.device.unlocked import UNLOCK_HINT

            raise PassphraseError(f"{action}: {self.locked}", hint=UNLOCK_HINT)
        if self.closed:
            raise ClosedError(f"{action}: the vault {self.vault_name} is closed")

    def still_unlocked(self) -> bool:
        """Tell whether the keys may be used: opened with the passphrase, or not locked since. Takes microseconds."""
        watch = self.replica.lock_watch
        return watch is None or not watch.why_locked()

    @_locked
    def drop_keys(self) -> None:
        """Close the vault because its keys were locked, and drop every key. Writes nothing, so that it waits for no other
        process: an outdated index is written after the next opening. If a sync runs in another thread, that thread is
        cancelled and calls this: closing a SQLite database that another thread reads would crash the process."""
        if self.closed:
            return
        watch = self.replica.lock_watch
        self.locked = (
            watch.why_locked() if watch is not None else ""
        ) or "the keys of this device were locked again"
        if any(thread != get_ident() for thread in self.sync_threads):
            return  # no other call can read from here on
        self.closed = True
        self.files = None
        try:
            self.when_locked()
        finally:
            try:
                self.replica.close()
            finally:
                self.replica.forget_keys()
                self.memories.caches.clear()
                if self._meaning is not None:
                    self._meaning.drop()
                if self._plugins is not None:
                    self._plugins.close(wait=0)

    # -- plain files -----------------------------------------------------------------------------------------

    @_locked
    def begin_files(self) -> None:
        """Import edits made while the vault was closed, and update the files."""
        if self.files is not None:
            self.files.scan()
            self.files.render_if_needed()

    @_locked
    def give_up_files(self) -> None:
        """Unlink the folders of a vault whose creation failed, so that another vault can link them. Files are kept."""
        if self.files is not None:
            with contextlib.suppress(IpfsmemError):
                for one in self.files.folders():
                    with contextlib.suppress(IpfsmemError):
                        self.files.detach(one.path)

    @_locked
    def scan(self) -> bool:
        """Import edits of plain files; tell whether there were any."""
        has_changes = self.files is not None and self.files.scan()
        if has_changes:
            self.changed()
        return has_changes

    @_locked
    def written_by_others(self) -> bool:
        """Tell whether another process wrote since the last check."""
        return self.replica.store.outdated()

    @_locked
    def folder_paths(self) -> list[Path]:
        """Return the paths of the linked folders that are not paused."""
        return [] if self.files is None else self.files.paths()

    @_locked
    def render_what_changed(self) -> None:
        """Do `render` if a sync or another process changed something since."""
        if self.files is not None:
            self.files.render_if_needed()

    @_locked
    def render(self) -> None:
        """Update the plain files."""
        if self.files is not None:
            self.files.render()

    @_locked
    def ingest_edits(self) -> None:
        """Do `scan`, unless the last one was less than a second ago. Called before lists."""
        if self.files is not None:
            self.files.ingest_edits()
            report_doubts(self.files.doubts)

    @_locked
    def ingest_file(self, key: str, scope: str) -> None:
        """Import edits of one memory's files. Called before it is read or changed."""
        if self.files is not None:
            self.files.ingest_file(key, scope)
            report_doubts(functools.partial(self.files.doubts, key, scope), about_one=True)

    @_locked
    def render_file(self, key: str, scope: str) -> None:
        """Update one memory's files after a change, then report the change."""
        if self.files is not None:
            self.files.render_file(key, scope)
        self.changed()

    @_locked
    def close(self) -> None:
        """Close files and drop secrets."""
        self.closed = True
        if self._meaning is not None:
            self._meaning.drop()
        files, self.files = self.files, None
        try:
            if self.replica.db.replaced():
                return  # the database is another file now: write nothing
            if files is not None:
                files.close()
            self.memories.caches.keep()
            if self._uses is not None:
                self._uses.write()
        finally:
            self.memories.caches.clear()
            self.replica.close()
