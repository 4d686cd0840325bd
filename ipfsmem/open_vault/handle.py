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

#: The table of `device.access_counts`, which is loaded where there is one.
USES_FILE = "recall.uses"
#: The scopes that the caller may read where one leads to another; None: all.
_COVERED: Final = ContextVar[frozenset[str] | None]("covered", default=None)
P = ParamSpec("P")
R = TypeVar("R")


def _locked(method: Callable[Concatenate[VaultHandle, P], R]) -> Callable[Concatenate[VaultHandle, P], R]:
    """The same method, in which one thread is at a time."""

    @functools.wraps(method)
    def call(self: VaultHandle, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            return method(self, *args, **kwargs)

    return call


def _embedder(question: bool) -> Embedder | None:
    """The model that the settings name, else the one that is installed. A table `[embeddings]` that names no provider, address or path
    means the provider of `[model]`; without that table no text goes there. Raises ConfigError."""
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
    """The share of a confidence that fades with each day. Settings that cannot be used keep nobody from the memory."""
    from ipfsmem.config import FactSettings, settings

    try:
        return settings().facts.decay_rate
    except ConfigError:
        return FactSettings().decay_rate


def _weighed() -> RankingWeights:
    """What the settings say counts how much in recall. Raises ConfigError for weights that mean nothing."""
    from ipfsmem.config import settings
    from ipfsmem.recall.ranking import USUAL, weigh

    try:
        weights = settings().recall
    except ConfigError:
        return USUAL  # recall goes on, and says of the same file why it asks no model
    return weigh(weights.weights, weights.half_life_days)


@contextlib.contextmanager
def reading_only(scopes: frozenset[str] | None) -> Iterator[None]:
    """What is read inside is of these scopes, wherever one leads; None: of all."""
    token = _COVERED.set(scopes)
    try:
        yield
    finally:
        _COVERED.reset(token)


def covered_scopes() -> frozenset[str] | None:
    """The scopes that the caller covers; None: all."""
    return _COVERED.get()


class VaultHandle:
    """One memory that is open on this device."""

    def __init__(self, namespace: str, replica: Replica) -> None:
        self.namespace = namespace
        self.replica = replica
        #: The texts of the default scope; `in_scope` leads to those of another.
        self.memories = MemoryStore(replica)
        self.memories.read_order = self.read_order
        self._meaning: Meaning | None = None
        #: Whether another process makes the vectors that are missing, as this one ends after one question.
        self.vectors_apart = False
        self.memories.meaning = self.meaning_if_named
        self.memories.weighed = _weighed
        self.memories.decay_rate = _decay_rate
        self._uses: AccessCounts | None = None
        self._plugins: Plugins | None = None
        self.memories.uses = self.uses
        self._timelines: dict[str, Timeline] = {}
        #: The folders of plain files; None where nothing is kept on the disk, and once the memory is closed.
        self.files: WorkingCopies | None = None
        if replica.folder is not None and self.mode.on_disk:
            self.files = WorkingCopies(replica, self.memories)
        #: Called after every change that is on disk.
        self.when_changed: Callable[[], None] = lambda: None
        self.closed = False
        #: Why its keys were dropped, in words; "" unless they were locked while it was open.
        self.locked = ""
        #: How many syncs are under way. They look by themselves whether the keys are locked.
        #: The threads in which a sync is under way: each reads between its transactions, without `lock`.
        self.sync_threads: list[int] = []
        #: What else holds a key lets go of it here.
        self.when_locked: Callable[[], None] = lambda: None

    def uses(self) -> AccessCounts:
        """What was used of it on this device."""
        if self._uses is None:
            from ipfsmem.device.access_counts import AccessCounts  # who reads or writes needs none

            self._uses = AccessCounts(self.replica)
        return self._uses

    def used(self, reading: MemoryRecord | None) -> None:
        """Somebody opened this text."""
        if reading is not None:
            self.uses().count([(reading.scope, reading.key)])

    @contextlib.contextmanager
    def flush_usage(self, scope: str) -> Iterator[None]:
        """While something is written to a scope: once a day an event beside it says what was used of this scope before today."""
        folder, today = self.replica.folder, self.replica.world.utc_today()
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
        """What sessions were shown already."""
        from ipfsmem.device.shown_texts import ShownTexts  # who reads or writes needs none

        return ShownTexts(self.replica)

    @functools.cached_property
    def operations_kept(self) -> int:
        """How many operations stay in the list of what was done here; as the settings said when the first was noted."""
        from ipfsmem.config import OperationSettings, settings

        try:
            return settings().operations.kept
        except ConfigError:
            return OperationSettings().kept

    @property
    def mode(self) -> Mode:
        """What kind of memory it is."""
        return self.replica.config.mode

    @property
    def device(self) -> str:
        """The id under which this device writes."""
        return self.replica.device.id

    @property
    def lock(self) -> AbstractContextManager[bool]:
        """Held by the thread that works here, again and again if it likes: others wait."""
        return self.replica.db.lock

    @property
    def is_revoked(self) -> bool:
        """Whether this device was revoked, as far as it knows."""
        ring = self.replica.ring
        return ring is not None and ring.view.is_revoked(self.device)

    def meaning(self) -> Meaning:
        """Recall by meaning."""
        if self._meaning is None:
            from ipfsmem.memories.meaning import Meaning

            self._meaning = Meaning(self.memories, self.lock, _embedder, apart=self.vectors_apart)
        return self._meaning

    @property
    def left_without_vectors(self) -> frozenset[str] | None:
        """Where vectors are made apart: what may lack them besides memories; None where nothing does."""
        return None if self._meaning is None else self._meaning.left

    def meaning_if_named(self) -> Meaning | None:
        """The same; None where the settings name no model and none is installed: then nothing of it is loaded."""
        if self._meaning is None:
            with contextlib.suppress(IpfsmemError):  # `Meaning` says what is wrong
                if _embedder(True) is None:
                    return None
        return self.meaning()

    def end_meaning(self) -> None:
        """Make no more vectors, and wait a little for those under way. Not while `lock` is held."""
        if self._meaning is not None:
            self._meaning.end()

    def plugins(self) -> Plugins | None:
        """The plugins that the settings switch on, as they are by now; None where there are none."""
        from ipfsmem.config import settings

        try:
            config = settings().plugins
        except ConfigError:
            return self._plugins  # whoever reads the file says what is wrong with it
        with self.lock:
            if self._plugins is not None and self._plugins.settings != config:
                self._plugins.close()
                self._plugins = None
            if self._plugins is None and config.names and not self.closed:
                from ipfsmem.plugins.running import Plugins  # most people have none

                self._plugins = Plugins(config)
            return self._plugins

    def end_plugins(self) -> None:
        """End the plugins, and wait a little for what they were told last. Not while `lock` is held."""
        if self._plugins is not None:
            self._plugins.close()

    @functools.cached_property
    def scopes(self) -> Scopes:
        """The scopes of this vault."""
        from ipfsmem.memories.scopes import Scopes

        return Scopes(self.replica)

    def read_order(self, scope: str) -> list[str]:
        """The scopes that are read for one, in order of precedence, as far as the caller may read them."""
        covered = _COVERED.get()
        scopes = self.scopes.stack(scope) if scope else [""]
        return (
            [one for one in scopes if one in covered] if covered is not None and len(scopes) > 1 else scopes
        )

    def timeline(self, scope: str) -> Timeline:
        """The events of one scope."""
        from ipfsmem.device.events import Timeline

        return self._timelines.setdefault(scope, Timeline(self.replica, scope))

    def changed(self) -> None:
        """Something was changed on the disk."""
        self.when_changed()

    def refuse_closed(self, action: str) -> None:
        """Raises PassphraseError when the keys were locked, which drops those that this process took, and ClosedError when the
        memory is closed."""
        if not self.closed and (self.locked or not self.still_unlocked()):
            self.drop_keys()
        if self.locked:
            from ipfsmem.device.unlocked import UNLOCK_HINT

            raise PassphraseError(f"{action}: {self.locked}", hint=UNLOCK_HINT)
        if self.closed:
            raise ClosedError(f"{action}: the vault {self.namespace} is closed")

    def still_unlocked(self) -> bool:
        """Whether the keys may be used: they came with the passphrase, or they are not locked again. Microseconds."""
        watch = self.replica.lock_watch
        return watch is None or not watch.why_locked()

    @_locked
    def drop_keys(self) -> None:
        """Close the memory because its keys were locked: nothing of it holds one from then on. Waits for no other
        process, so it writes nothing: an index that is behind is written when the memory is opened again. While a sync is under
        way in another thread, that one is cut off and does this: SQLite ends a process that closes what another thread reads."""
        if self.closed:
            return
        watch = self.replica.lock_watch
        self.locked = (
            watch.why_locked() if watch is not None else ""
        ) or "the keys of this device were locked again"
        if any(thread != get_ident() for thread in self.sync_threads):
            return  # nobody else is given anything from here on
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
        """Take in what was edited while nobody had the memory open, and bring the files up to date."""
        if self.files is not None:
            self.files.scan()
            self.files.render_if_needed()

    @_locked
    def give_up_files(self) -> None:
        """Let go of the folders of a memory that is not to be, so that another one may have them; every file stays."""
        if self.files is not None:
            with contextlib.suppress(IpfsmemError):
                for one in self.files.folders():
                    with contextlib.suppress(IpfsmemError):
                        self.files.detach(one.path)

    @_locked
    def scan(self) -> bool:
        """Take in what people and programs edited in the plain files; whether there was something."""
        has_changes = self.files is not None and self.files.scan()
        if has_changes:
            self.changed()
        return has_changes

    @_locked
    def written_by_others(self) -> bool:
        """Whether another process has written since this one last looked."""
        return self.replica.store.outdated()

    @_locked
    def folder_paths(self) -> list[Path]:
        """Where the working copies are that are not paused."""
        return [] if self.files is None else self.files.paths()

    @_locked
    def render_what_changed(self) -> None:
        """`render`, where something was changed since the last time, by a sync or another process."""
        if self.files is not None:
            self.files.render_if_needed()

    @_locked
    def render(self) -> None:
        """Bring the plain files up to date."""
        if self.files is not None:
            self.files.render()

    @_locked
    def ingest_edits(self) -> None:
        """`scan`, unless the last one was less than a second ago: before lists."""
        if self.files is not None:
            self.files.ingest_edits()
            report_doubts(self.files.doubts)

    @_locked
    def ingest_file(self, key: str, scope: str) -> None:
        """Take in edits of one memory's files: before it is read or changed."""
        if self.files is not None:
            self.files.ingest_file(key, scope)
            report_doubts(functools.partial(self.files.doubts, key, scope), about_one=True)

    @_locked
    def render_file(self, key: str, scope: str) -> None:
        """Bring one memory's files up to date after it was changed, then tell whoever waits for changes."""
        if self.files is not None:
            self.files.render_file(key, scope)
        self.changed()

    @_locked
    def close(self) -> None:
        """Let go of files and secrets."""
        self.closed = True
        if self._meaning is not None:
            self._meaning.drop()
        files, self.files = self.files, None
        try:
            if self.replica.db.replaced():
                return  # nothing is read or written there any more
            if files is not None:
                files.close()
            self.memories.caches.keep()
            if self._uses is not None:
                self._uses.write()
        finally:
            self.memories.caches.clear()
            self.replica.close()
