"""Semantic recall: compares embeddings of the query and the entries, and computes missing embeddings in the background.

The model gets one batch of texts at a time, newest first, and only texts without a vector: memories, and events and messages once a
search for them was requested. The background thread holds the vault for a few milliseconds at a time. Vectors of two models are
never mixed. If the endpoint fails, recall continues by words, reports it once, and retries after a pause.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from ipfsmem.bundle.session_parts import is_part_key
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.device.state import StateHeader
from ipfsmem.errors import FormatError, IpfsmemError, ProviderRefused, StorageError
from ipfsmem.loopback import is_loopback
from ipfsmem.memories.event_entries import Group, Kind
from ipfsmem.memories.kept_vectors import (
    NO_FILE,
    StoredVectors,
    Whole,
    hash_of,
    load_kept,
    load_whole,
    prepared,
    remove_left_behind,
    save_whole,
    saving,
    stamp,
    vectors_kept,
)
from ipfsmem.memories.living import GroupReading, Live, Living, keys_of_removed, strangers_of
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_reader import NotHereError
from ipfsmem.memories.query_embedding import QueryEmbedding
from ipfsmem.recall.batches import embedded, embedded_query
from ipfsmem.recall.embedder import Embedder, EmbedderIdentity
from ipfsmem.recall.vectors import Comparable, Vectors
from ipfsmem.wording import count

T = TypeVar("T")

#: Texts in the first batch, and maximum texts in a batch.
_FIRST, _LARGEST = 16, 64
#: Maximum characters of a text that are embedded: its header and its beginning.
_MAX_CHARACTERS = 4_000
#: Milliseconds after a failure before the next request to the endpoint.
_RETRY_AFTER_MS = 60_000
#: Milliseconds until texts that were not on this device are looked up again.
_RECHECK_AFTER_MS = 3_600_000
#: Seconds for which the background thread holds the vault at a time, and for which it releases the vault in between.
_LOCK_S, _YIELD_S = 0.004, 0.001
#: Entries listed in one step.
_ENTRIES_PER_STEP = 2_000
#: Days and sessions examined in one step.
_GROUPS_PER_STEP = 50
#: Vectors are saved after this multiple of the duration of the last save; maximum attempts of a save while other processes write.
_SAVE_INTERVAL_FACTOR, _MAX_ATTEMPTS = 20, 5
#: Seconds that closing the vault waits for a batch in progress.
_CLOSE_TIMEOUT_S = 3.0
#: The kinds of entries that are embedded in addition to memories, by the kind of a search.
_EMBEDDED_KINDS: dict[Kind, frozenset[str]] = {
    "memory": frozenset(),
    "event": frozenset({"event"}),
    "message": frozenset({"message"}),
    "all": frozenset({"event", "message"}),
}
#: Returns an embedder, one with short timeouts for questions (True) or one for batches; None if the user named none.
Opener = Callable[[bool], "Embedder | None"]


class EmbeddingState(NamedTuple):
    """The model's name ("" for none), the numbers of texts with and without a vector, and the current problem ("" for none)."""

    model: str
    vectors: int
    missing: int
    problem: str


class _Todo:
    """The texts that a thread has listed for embedding."""

    def __init__(self) -> None:
        #: Entries without a vector that are not embedded yet, by time in milliseconds, newest last; and the state and kinds for
        #: which they were listed.
        self.listed: list[tuple[int, bytes | Group]] = []
        self.listed_for: object = None
        #: Texts of the last day or session that was read, newest last.
        self.queue: dict[bytes, str] = {}


class Meaning:
    """The model of one open vault, and the vectors of its texts."""

    def __init__(
        self,
        memories: MemoryStore,
        lock: AbstractContextManager[bool],
        opener: Opener,
        *,
        apart: bool = False,
    ) -> None:
        """`lock` is held by the thread that works with the vault. `apart`: another process computes the vectors, of the kinds in
        `left`."""
        self._apart = apart
        #: With `apart`: the kinds with missing vectors, in addition to memories; None if no vector is missing.
        self.left: frozenset[str] | None = None
        self._memories = memories
        self._replica = memories.replica
        self._alone = lock
        self._opener = opener
        self._vectors: Vectors | None = None
        #: The existing entries that may have vectors.
        self._living = Living(memories)
        #: The kinds of entries that were requested.
        self._kinds = frozenset[str]()
        #: Number of changes not saved yet, time and duration of the last save, and the stamp of the saved file.
        self._unsaved, self._saved_at, self._saving_took = 0, float("-inf"), 0.0
        self._stamp: object = None
        #: The name of another model whose vectors were stored before; "" if there is none.
        self._before = ""
        self._reported: set[str] = set()
        #: The model that failed, the end of its pause (milliseconds since 1970 UTC), and the error.
        self._backoff: tuple[EmbedderIdentity, int, IpfsmemError] | None = None
        self._thread: threading.Thread | None = None
        #: The state and kinds for which all possible vectors exist, and whether no vector is missing at all.
        self._done: tuple[StateHeader, frozenset[str]] | None = None
        self._complete = False
        #: Texts of the state that cannot be read on this device.
        self._unreadable: set[bytes] = set()
        #: Texts that the model refuses while it accepts others; then those that an earlier process recorded, which only `complete`
        #: tries again.
        self._refused: set[bytes] = set()
        self._refused_before: frozenset[bytes] = frozenset()
        self._ended = self._dropped = False
        #: An error of the background thread that was not reported yet.
        self._deferred_error = ""

    # -- queries -----------------------------------------------------------------------------------------------

    def ask(
        self,
        query: str,
        *,
        newest: bool = False,
        kind: Kind = "memory",
        worth_it: Callable[[Vectors], bool] | None = None,
    ) -> QueryEmbedding:
        """Embed a query, and return it with the vectors to compare. Not inside `reading`, because it waits for the endpoint, at
        most a few seconds. `newest`: embed the latest texts first. `kind`: the kind of the search, which is embedded from then on.
        `worth_it`: decides whether to ask the model although vectors are missing; if not, the model is not loaded and costs
        nothing."""
        try:
            embedder = self._opener(True)
        except IpfsmemError as error:
            return QueryEmbedding(None, self._unless_reported(f"recall ranks by words only: {error}"), error)
        if embedder is None:
            return QueryEmbedding(None, "", named=False)
        self._load(embedder)
        with self._alone:
            vectors = self._vectors_for(embedder)
            self._kinds |= _EMBEDDED_KINDS[kind]
            if newest and self._paused_by(embedder) is None and not self._is_done():
                try:
                    self._make(self._opener(False) or embedder, _Todo())
                except IpfsmemError as error:
                    self._pause(embedder, error)
            self._begin(embedder)
        notice = self._notice(embedder, vectors)
        if (problem := self._paused_by(embedder)) is not None:
            return QueryEmbedding(None, notice, problem)
        with self._alone:
            all_made = self._is_done() and self._complete and not self._refused | self._refused_before
            if not len(vectors) or (worth_it is not None and not all_made and not worth_it(vectors)):
                return QueryEmbedding(None, notice)
        try:
            vector = _run(embedder, embedded_query(embedder, query[:_MAX_CHARACTERS]))
            if isinstance(vector, ProviderRefused):
                return QueryEmbedding(
                    None, self._unless_reported(f"query ranked by words only: {vector}") or notice, vector
                )
            with self._alone:
                ready = vectors.comparable()
            question = ready.asked(vector)
            knows = embedder.knows(query[:_MAX_CHARACTERS])
            return QueryEmbedding(ready, notice, None, True, knows, question, embedder.unrelated)
        except FormatError as error:
            problem = ProviderRefused(
                f"{embedder.identity.version} returns vectors of another model or dimension: {error}",
                hint="Rebuild all vectors: ipfsmem index rebuild. Or set model or dimensions under [embeddings] in the settings file.",
            )
        except IpfsmemError as error:
            problem = error
        self._pause(embedder, problem)
        return QueryEmbedding(
            None, self._unless_reported(f"recall ranks by words only: {problem}") or notice, problem
        )

    @property
    def named(self) -> bool:
        """Whether a model is configured."""
        try:
            return self._opener(True) is not None
        except IpfsmemError:
            return False

    def notices(self) -> list[str]:
        """Return the lines of `status`: the model, where texts are sent, the number of missing vectors, and failures."""
        try:
            embedder = self._opener(True)
        except IpfsmemError as error:
            return [f"recall ranks by words only: {error}"]
        if embedder is None:
            return []
        with self._alone:
            there, embedded_here, unread = self._counted(self._vectors_for(embedder))
            refused = sum(map(self._living.has, self._refused | self._refused_before))
        missing = count(there - embedded_here - refused, "text") if there > embedded_here + refused else ""
        of_groups = count(unread, "day or session", "days and sessions") if unread else ""
        notice = f"recall uses words and the model {embedder.identity.name}: {where(embedder)}"
        if self._before:
            notice += f"; embeddings of the earlier model {self._before} are not used"
        if missing or of_groups:
            which = " and those of ".join(filter(None, (missing, of_groups)))
            notice += f"; {which} not embedded yet; each recall embeds more"
        if refused:
            notice += f"; {self._refusal()}"
        return [notice]

    def at_hand(self) -> Comparable | None:
        """Return the existing vectors, for a caller without a query; None if no model is in use or no vector exists yet."""
        try:
            embedder = self._opener(True)
        except IpfsmemError:
            return None
        if embedder is None:
            return None
        with self._alone:
            vectors = self._vectors_for(embedder)
            with self._replica.reading():
                self._at_once(self._living.follow())
            comparable = vectors.of(self._living.files)
            return comparable if comparable.at else None

    def state(self) -> EmbeddingState:
        """Return the model and the numbers of existing and missing vectors. Raises no error: a problem is in the result."""
        try:
            embedder = self._opener(True)
        except IpfsmemError as error:
            return EmbeddingState("", 0, 0, str(error))
        if embedder is None:
            return EmbeddingState("", 0, 0, "")
        with self._alone:
            vectors = self._vectors_for(embedder)
            there, number, _ = self._counted(vectors)
            problem = self._paused_by(embedder)
            return EmbeddingState(
                embedder.identity.name, number, there - number, "" if problem is None else str(problem)
            )

    def _counted(self, vectors: Vectors) -> tuple[int, int, int]:
        """Return the number of texts that were read, how many of them have a vector, and the number of days and sessions not read
        yet (holding `lock`)."""
        with self._replica.reading():
            self._at_once(self._living.follow())
            there = [*self._living.files]
            for spoken in self._living.spoken.values():
                if spoken.kind in self._kinds:
                    there += spoken.each()
            unread = len(self._living.unread(self._kinds))
        return len(there), sum(id in vectors for id in there), unread

    def complete(
        self,
        report: Callable[[int, int], None],
        kinds: frozenset[str] = frozenset(),
        *,
        again: bool = True,
    ) -> str:
        """Compute all missing vectors while the caller waits; returns the reason of a failure, "" if no vector is missing. `report`
        is called with the numbers of existing and of all vectors. `kinds`: kinds that are embedded from then on, in addition to
        memories. `again`: retry the texts that the model refused in an earlier process."""
        self._kinds |= kinds
        with contextlib.suppress(IpfsmemError):  # the error is returned below
            if again and (other_model := self._opener(True)) is not None:
                self._load(other_model)
                self._refused_before, self._done = frozenset(), None
        try:
            embedder, todo = self._opener(False), _Todo()
            if embedder is not None:
                self._reset_if_other_model(embedder)
            while embedder is not None and not self._dropped:
                with self._alone:
                    if not self._make(embedder, todo):
                        break
                    state = self.state()
                report(state.vectors, state.vectors + state.missing)
        except IpfsmemError as error:
            return f"no embeddings could be computed: {error}"
        return self._refusal() if embedder is not None else ""

    def _make(self, embedder: Embedder, todo: _Todo) -> bool:
        """Compute the vectors of one batch while the caller waits (holding `lock`); returns whether any was missing."""
        batch = self._batch(embedder, _LARGEST, todo)
        if batch:
            vectors = _run(embedder, embedded(embedder, list(batch.values())))
            self._add_vectors(embedder, dict(zip(batch, vectors, strict=True)))
        self._save(embedder, at_once=not batch)
        if not batch:
            self._record_complete(embedder)
        return bool(batch)

    def _reset_if_other_model(self, embedder: Embedder) -> None:
        """Discard the vectors if the model of this name now returns another dimension. Errors of the model are left to the next
        batch, which reports them."""
        with self._alone:
            vectors = self._vectors_for(embedder)
            if not len(vectors):
                return
            with contextlib.suppress(IpfsmemError):
                vectors_made = _run(embedder, embedder.embed(["dimensions"]))
                if len(vectors_made[0]) != vectors.dimension:
                    self._vectors, self._done, self._backoff = Vectors(embedder.identity), None, None
                    self._stamp = stamp(self._replica, embedder.identity)
                    self._refused.clear()
                    self._refused_before = frozenset()

    # -- closing -----------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Start no further batch, and wait briefly for the batch in progress. Not while `lock` is held."""
        self._ended = True
        thread = self._thread
        if thread is not None:
            thread.join(_CLOSE_TIMEOUT_S)

    def drop(self) -> None:
        """Drop all vectors from memory immediately: the keys are locked, or the vault is closed."""
        self._ended = self._dropped = True
        self._vectors = None
        self._living = Living(self._memories)

    # -- the vectors -----------------------------------------------------------------------------------------

    def _load(self, embedder: Embedder) -> None:
        """Load the stored vectors while the vault is not held, because reading many takes long.

        Raises _DroppedError in the background if another model was set meanwhile, whose vectors must not be replaced by the earlier
        model's.
        """
        vectors = self._vectors
        if (vectors is not None and vectors.identity == embedder.identity) or self._dropped:
            return
        if vectors is not None and threading.current_thread() is self._thread:
            raise _DroppedError
        model, whole = embedder.identity, None
        known_by, there = stamp(self._replica, model), vectors_kept(self._replica, model)
        stored = load_kept(self._replica, model)
        if stored is not None:
            living = Living(self._memories, stored.spoken)
        if stored is not None or known_by == NO_FILE:
            whole = load_whole(self._replica, model)
        with self._alone:
            if self._vectors is not vectors:
                return
            if there and stored is None:
                self._deferred_error = "the saved embeddings were damaged, and are computed again"
            if stored is not None:
                self._living, self._kinds = living, self._kinds | {one.kind for one in stored.spoken}
            if stored is not None and stored.vectors.identity == embedder.identity:
                self._vectors, self._stamp = stored.vectors, known_by
            else:
                self._before = stored.vectors.identity.name if stored is not None else ""
                self._vectors, self._stamp = Vectors(embedder.identity), known_by
            # Vectors of an earlier version are stored under the current name.
            self._done, self._unsaved = None, len(self._vectors) if known_by == NO_FILE else 0
            self._refused.clear()
            self._refused_before = frozenset()
            if whole is None or whole.identity != embedder.identity:
                return
            self._refused_before = whole.refused
            now = self._replica.environment.now()
            if whole.file == known_by and (not whole.until or now < whole.until <= now + _RECHECK_AFTER_MS):
                with self._replica.reading():
                    mark = self._replica.store.mark()
                    if hash_of(mark, strangers_of(self._replica)) == whole.state:
                        self._done, self._complete = (self._replica.store.frame, whole.kinds), not whole.until

    def _vectors_for(self, embedder: Embedder) -> Vectors:
        self._load(embedder)
        return Vectors(embedder.identity) if self._vectors is None else self._vectors

    def _target(self) -> tuple[StateHeader, frozenset[str]]:
        """Return the current state and the kinds to embed."""
        return self._replica.store.frame, self._kinds

    def _is_done(self) -> bool:
        """Return whether all possible vectors of the current state exist."""
        return (
            self._done is not None
            and self._done[0] == self._replica.store.frame
            and self._kinds <= self._done[1]
        )

    def _begin(self, embedder: Embedder) -> None:
        """Start the background thread if vectors may be missing (holding `lock`)."""
        running = self._thread is not None and self._thread.is_alive()
        if not (running or self._paused_by(embedder) is not None or self._ended or self._is_done()):
            if self._apart:
                self.left = self._kinds
                return
            self._thread = threading.Thread(target=self._work, name="ipfsmem-vectors", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        """Compute vectors until none is missing."""
        size, embedder, todo = _FIRST, None, _Todo()
        try:
            embedder = self._opener(False)
            while embedder is not None:
                batch = self._batch(embedder, size, todo)
                if batch:
                    vectors = _run(embedder, embedded(embedder, list(batch.values())))
                    self._add_vectors(embedder, dict(zip(batch, vectors, strict=True)))
                    self._deferred_error = self._refusal() or self._deferred_error
                self._save(embedder, at_once=self._ended or not batch)
                if not batch:
                    self._record_complete(embedder)
                if self._ended or not batch:  # a command closes the vault soon: it still embeds one batch
                    return
                size = min(2 * size, _LARGEST)
        except _DroppedError:
            pass
        except IpfsmemError as error:
            if not self._dropped:
                if embedder is not None:
                    self._pause(embedder, error)
                self._deferred_error = f"no embeddings could be computed: {error}"

    def _in_steps(self, steps: Generator[None, None, T]) -> T:
        """Run a generator in steps, each inside `reading`; in the background the vault is released in between."""
        while True:
            with self._alone:
                if self._dropped:
                    raise _DroppedError
                with self._replica.reading():
                    until = time.perf_counter() + _LOCK_S
                    while time.perf_counter() < until:
                        try:
                            next(steps)
                        except StopIteration as end:
                            return end.value  # type: ignore[no-any-return]
            if threading.current_thread() is self._thread and not self._ended:
                time.sleep(_YIELD_S)

    def _at_once(self, steps: Iterable[None]) -> None:
        for _ in steps:
            pass

    def _follow(self, embedder: Embedder) -> Vectors:
        """Follow changes, and drop the vectors of removed entries."""
        vectors, living = self._vectors_for(embedder), self._living
        self._in_steps(living.follow())
        for group in living.changed():
            self._read(group)
        with self._alone:
            gone = keys_of_removed(vectors.ids, living.pop_removed())
            vectors.drop(gone)
            self._unsaved += len(gone)
        return vectors

    def _read(self, group: Group) -> dict[bytes, str]:
        """Return the texts of a day or a session, by the keys of their vectors."""
        living = self._living
        reading = GroupReading(*self._in_steps(living.read(group)))
        with self._alone:
            return living.store(reading)

    def _batch(self, embedder: Embedder, size: int, todo: _Todo) -> dict[bytes, str]:
        """Return the next texts without a vector, newest first, by the keys of their vectors."""
        with self._alone, self._replica.reading():
            every = self._target()
        vectors = self._follow(embedder)
        without = self._refused | self._refused_before
        if todo.listed_for != (every, embedder.identity):
            todo.listed = self._in_steps(self._missing(vectors))
            todo.listed_for, todo.queue = (every, embedder.identity), {}
        texts = dict[bytes, str]()
        while len(texts) < size:
            if todo.queue:
                id, text = todo.queue.popitem()
                if id not in vectors and id not in without:
                    texts[id] = text
                continue
            if not todo.listed:
                break
            _, newest = todo.listed.pop()
            if isinstance(newest, Group):
                todo.queue = self._read(newest)
            elif (one := self._living.files.get(newest)) is not None:
                with self._alone:
                    if self._dropped:
                        raise _DroppedError
                    with self._replica.reading():
                        text_of = self._text(one)
                if text_of is None:
                    self._unreadable.add(newest)
                else:
                    texts[newest] = text_of
        if not texts:
            self._done = every
            self._complete = self._living.all_here and not self._unreadable
            self._unreadable.clear()
            self._living.try_again()
        return texts

    def _missing(self, vectors: Vectors) -> Generator[None, None, list[tuple[int, bytes | Group]]]:
        """List the entries without a vector, newest last: memories, and days and sessions with such an entry. Parts of sessions
        come before all others, to be embedded last, because they are rarely searched."""
        living, without = self._living, self._unreadable | self._refused | self._refused_before
        rows: list[tuple[int, bytes | Group]] = []
        for number, (id, one) in enumerate(list(living.files.items()), 1):
            if id not in vectors and id not in without:
                rows.append((0 if is_part_key(one.place.key) else hlc_ms(one.hlc), id))
            if number % _ENTRIES_PER_STEP == 0:
                yield
        for number, spoken in enumerate(list(living.spoken.values()), 1):
            missing = (key for key in spoken.each() if key not in vectors and key not in without)
            if spoken.kind in self._kinds and next(missing, None) is not None:
                rows.append((spoken.newest, spoken.group))
            if number % _GROUPS_PER_STEP == 0 or len(spoken.keys) > _ENTRIES_PER_STEP:
                yield
        unread = living.unread(self._kinds)
        for number, group in enumerate(unread, 1):
            rows.append((living.written(group), group))
            if number % _GROUPS_PER_STEP == 0:
                yield
        rows.sort(key=lambda one: one[0])
        return rows

    def _text(self, one: Live) -> str | None:
        """Return the text of a memory to embed; None if no text is shown, or it is not on this device."""
        part = self._memories.in_scope(one.place.scope)
        try:
            reading = part.reading_of(one.place.key, self._replica.store.entry(part.name(one.place.key)))
        except NotHereError:
            return None
        if reading is None:
            return None
        file = reading.readable
        header = " ".join(filter(None, (one.place.key, file.name, file.description, *file.tags)))
        return f"{header}\n{file.body}"[:_MAX_CHARACTERS]

    def _add_vectors(self, embedder: Embedder, embeddings: dict[bytes, list[float] | None]) -> None:
        """Add new vectors, unless their texts were removed meanwhile; record the texts that the model refused."""
        vectors = self._follow(embedder)
        with self._alone:
            if self._dropped or self._vectors is not vectors:
                return
            self._refused.update(id for id, vector in embeddings.items() if vector is None)
            new = {
                id: vector for id, vector in embeddings.items() if vector is not None and self._living.has(id)
            }
            vectors.add(new)
            self._unsaved += len(new)

    def _save(self, embedder: Embedder, *, at_once: bool) -> None:
        """Save new vectors, and load those of other processes. `at_once`: save even if the last save was recent."""
        begun = time.perf_counter()
        seldom = begun - self._saved_at < _SAVE_INTERVAL_FACTOR * self._saving_took
        if not self._unsaved or (seldom and not at_once):
            return
        for _ in range(_MAX_ATTEMPTS):
            there, stored = stamp(self._replica, embedder.identity), None
            if there != self._stamp:
                stored = load_kept(self._replica, embedder.identity)
            vectors = self._vectors_for(embedder)
            if stored is not None:
                with self._alone:
                    vectors.take(stored.vectors)
                    self._living.adopt(stored.spoken)
            self._follow(embedder)
            with self._alone:
                if stored is not None:
                    vectors.drop([id for id in vectors.ids if not self._living.has(id)])
                now, spoken, mark = vectors.copy(), list(self._living.spoken.values()), self._living.mark
                unsaved = self._unsaved
            ready = prepared(self._replica, StoredVectors(now, spoken))
            if ready is None:
                self._unsaved = 0
                return
            with self._alone, contextlib.ExitStack() as stack:
                stack.callback(ready.leave)
                if self._dropped or self._vectors is not vectors:
                    raise _DroppedError
                stack.enter_context(saving(self._replica))
                stack.enter_context(self._replica.reading())
                if stamp(self._replica, embedder.identity) == there and self._replica.store.mark() == mark:
                    ready.put(durable=False)
                    self._stamp = stamp(self._replica, embedder.identity)
                    self._unsaved -= unsaved
                    remove_left_behind(self._replica, embedder.identity, there[2] / 1e9)
                    break
        self._saved_at = time.perf_counter()
        self._saving_took = self._saved_at - begun

    def _record_complete(self, embedder: Embedder) -> None:
        """Record for the next process that all possible vectors exist, and which texts the model refuses. If a text is not on this
        device, the record is valid for an hour. If it cannot be written, the next process checks all entries."""
        with self._alone:
            if self._dropped or self._unsaved:
                return
            with self._replica.reading():
                mark = self._replica.store.mark()
                if self._done != self._target() or mark != self._living.mark:
                    return
                state = hash_of(mark, strangers_of(self._replica))
            refused = frozenset(id for id in self._refused | self._refused_before if self._living.has(id))
            until = 0 if self._complete else self._replica.environment.now() + _RECHECK_AFTER_MS
            if self._stamp == (file := stamp(self._replica, embedder.identity)):
                with contextlib.suppress(StorageError):
                    save_whole(
                        self._replica, Whole(embedder.identity, self._kinds, file, state, refused, until)
                    )

    def _refusal(self) -> str:
        """Return the message about texts that the model refused; "" if there are none."""
        refused = len(self._refused | self._refused_before)
        return (
            f"the model rejected {count(refused, 'text')}; recall finds them by words only" if refused else ""
        )

    def _pause(self, embedder: Embedder, problem: IpfsmemError) -> None:
        """Pause requests to the model."""
        self._backoff = embedder.identity, self._replica.environment.now() + _RETRY_AFTER_MS, problem

    def _paused_by(self, embedder: Embedder) -> IpfsmemError | None:
        """Return the error because of which the model is paused; None if it is not."""
        if self._backoff is None or self._backoff[0] != embedder.identity:
            return None
        return self._backoff[2] if self._replica.environment.now() < self._backoff[1] else None

    # -- notices ------------------------------------------------------------------------------------------------

    def _notice(self, embedder: Embedder, vectors: Vectors) -> str:
        notice = ""
        if self._deferred_error:
            notice, self._deferred_error = self._unless_reported(self._deferred_error), ""
        if not notice and not len(vectors):
            again = f", again because the earlier model was {self._before}" if self._before else ""
            notice = self._unless_reported(
                f"indexing this vault with the model {embedder.identity.name}{again}: {where(embedder)}; until it is done, recall ranks by words only"
            )
        return notice

    def _unless_reported(self, notice: str) -> str:
        if notice in self._reported:
            return ""
        self._reported.add(notice)
        return notice


def where(embedder: Embedder) -> str:
    """Return the phrase that says where texts are sent."""
    if "://" not in embedder.identity.version:
        return "texts and questions stay on this device"
    url = urlsplit(embedder.identity.version)
    if is_loopback(url.hostname or ""):
        return f"texts and questions go to {embedder.identity.version} on this machine"
    unsealed = "; the connection is not encrypted" if url.scheme == "http" else ""
    return f"WARNING: texts and queries are sent to {url.hostname}, which can read them{unsealed}"


class _DroppedError(Exception):
    """Stops the background thread: the keys are locked, the vault is closed, or another model was set."""


async def _closing(embedder: Embedder, work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    finally:
        await embedder.close()


def _run(embedder: Embedder, work: Coroutine[Any, Any, T]) -> T:
    """Run an embedder's coroutine, also if an event loop runs in this thread; closes the embedder."""
    work = _closing(embedder, work)
    if not embedder.waits:
        try:
            work.send(None)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        raise RuntimeError(f"{embedder.identity.name} waits, though it says that it does not")
    import asyncio  # needed only to call an endpoint

    results: list[T] = []
    failed: list[BaseException] = []

    def call() -> None:
        try:
            results.append(asyncio.run(work))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=call, name="ipfsmem-question", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return results[0]
