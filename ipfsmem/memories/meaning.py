"""Recall by meaning, if the user installed or named a model: compares vectors of the question and the texts, which are made in
the background.

The model gets a batch of texts at a time, newest first, only those without a vector: memories, and events and messages once
somebody asked for them. In the background the vault is never held for longer than a few milliseconds. Vectors of two models are
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
from ipfsmem.memories.living import GroupReading, Live, Living, gone_of, strangers_of
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_reader import NotHereError
from ipfsmem.memories.query_embedding import QueryEmbedding
from ipfsmem.recall.batches import embedded, of_question
from ipfsmem.recall.embedder import Embedder, EmbedderIdentity
from ipfsmem.recall.vectors import Comparable, Vectors
from ipfsmem.wording import count

T = TypeVar("T")

#: Texts of the first batch and of the largest.
_FIRST, _LARGEST = 16, 64
#: Characters of a text that are embedded: its header and its beginning.
_CHARACTERS = 4_000
#: Milliseconds without requests after an endpoint failed.
_REST = 60_000
#: Milliseconds until texts that are not on this device are looked for again.
_AGAIN = 3_600_000
#: Seconds for which the background holds the vault at a time, and for which it releases it in between.
_HELD, _LEFT = 0.004, 0.001
#: Entries listed in one step.
_LISTED = 2_000
#: Days and sessions examined in one step.
_FEW = 50
#: Vectors are stored after this many times the duration of a save; and maximum attempts while others change things.
_SELDOM, _TRIES = 20, 5
#: Seconds that closing waits for a batch in progress.
_PATIENCE = 3.0
#: The kinds of entries that get vectors besides memories, by the kind requested.
_ASKED_FOR: dict[Kind, frozenset[str]] = {
    "memory": frozenset(),
    "event": frozenset({"event"}),
    "message": frozenset({"message"}),
    "all": frozenset({"event", "message"}),
}
#: Returns an embedder, one with short timeouts for questions (True) or one for batches; None if the user named none.
Opener = Callable[[bool], "Embedder | None"]


class EmbeddingState(NamedTuple):
    """The model's name, "" for none; the numbers of texts with and without its vector; the problem, "" for none."""

    model: str
    vectors: int
    missing: int
    problem: str


class _Todo:
    """The texts that one thread is about to embed."""

    def __init__(self) -> None:
        #: Entries without a vector that were not begun, newest last, by time in milliseconds; and the state and kinds of this
        #: list.
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
        """`lock` is held by the one thread that works with the vault. `apart`: another process makes the vectors; see `left`."""
        self._apart = apart
        #: With `apart`: the kinds that may lack vectors besides memories; None if nothing does.
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
        #: Number of vectors not on the disk, time and duration of the last save, and the file that it made.
        self._unsaved, self._saved_at, self._saving_took = 0, float("-inf"), 0.0
        self._stamp: object = None
        #: The name of the model whose vectors were stored before; "" for the same, or none.
        self._before = ""
        self._said: set[str] = set()
        #: The model that failed, until when (milliseconds) it is not asked, and why.
        self._resting: tuple[EmbedderIdentity, int, IpfsmemError] | None = None
        self._thread: threading.Thread | None = None
        #: The state and kinds for which all possible vectors were made, and whether none is missing at all.
        self._done: tuple[StateHeader, frozenset[str]] | None = None
        self._whole = False
        #: Texts that the state names and that cannot be read here.
        self._unreadable: set[bytes] = set()
        #: Texts that the model refuses while it accepts others; those that an earlier process recorded are tried again by
        #: `complete` alone.
        self._refused: set[bytes] = set()
        self._refused_before: frozenset[bytes] = frozenset()
        self._ended = self._dropped = False
        #: An error in the background that was not reported yet.
        self._later = ""

    # -- asked -----------------------------------------------------------------------------------------------

    def ask(
        self,
        query: str,
        *,
        newest: bool = False,
        kind: Kind = "memory",
        worth_it: Callable[[Vectors], bool] | None = None,
    ) -> QueryEmbedding:
        """Return how similar the entries are to a question; not inside `reading`, as it waits for the endpoint, a few seconds at
        most. `newest`: embed the latest texts first. `kind`: the kind searched, which gets vectors from then on. `worth_it`:
        whether to ask although vectors are missing; otherwise the model is neither loaded nor paid for."""
        try:
            embedder = self._opener(True)
        except IpfsmemError as error:
            return QueryEmbedding(None, self._once(f"recall ranks by words only: {error}"), error)
        if embedder is None:
            return QueryEmbedding(None, "", named=False)
        self._load(embedder)
        with self._alone:
            vectors = self._vectors_for(embedder)
            self._kinds |= _ASKED_FOR[kind]
            if newest and self._rests(embedder) is None and not self._is_done():
                try:
                    self._make(self._opener(False) or embedder, _Todo())
                except IpfsmemError as error:
                    self._failed(embedder, error)
            self._begin(embedder)
        notice = self._notice(embedder, vectors)
        if (problem := self._rests(embedder)) is not None:
            return QueryEmbedding(None, notice, problem)
        with self._alone:
            all_made = self._is_done() and self._whole and not self._refused | self._refused_before
            if not len(vectors) or (worth_it is not None and not all_made and not worth_it(vectors)):
                return QueryEmbedding(None, notice)
        try:
            vector = _run(embedder, of_question(embedder, query[:_CHARACTERS]))
            if isinstance(vector, ProviderRefused):
                return QueryEmbedding(
                    None, self._once(f"query ranked by words only: {vector}") or notice, vector
                )
            with self._alone:
                ready = vectors.comparable()
            question = ready.asked(vector)
            knows = embedder.knows(query[:_CHARACTERS])
            return QueryEmbedding(ready, notice, None, True, knows, question, embedder.unrelated)
        except FormatError as error:
            problem = ProviderRefused(
                f"{embedder.identity.version} returns vectors of another model or dimension: {error}",
                hint="Rebuild all vectors: ipfsmem index rebuild. Or set model or dimensions under [embeddings] in the settings file.",
            )
        except IpfsmemError as error:
            problem = error
        self._failed(embedder, problem)
        return QueryEmbedding(None, self._once(f"recall ranks by words only: {problem}") or notice, problem)

    @property
    def named(self) -> bool:
        """Whether a model is configured."""
        try:
            return self._opener(True) is not None
        except IpfsmemError:
            return False

    def notices(self) -> list[str]:
        """Return the lines of `status`: the model, where the texts go, how many are left, what failed."""
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
        """Return the existing vectors for a caller without a question; None if recall goes by words, or there is none yet."""
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
        """Return the vectors' model and how many are missing. Raises nothing: a problem is in the result."""
        try:
            embedder = self._opener(True)
        except IpfsmemError as error:
            return EmbeddingState("", 0, 0, str(error))
        if embedder is None:
            return EmbeddingState("", 0, 0, "")
        with self._alone:
            vectors = self._vectors_for(embedder)
            there, number, _ = self._counted(vectors)
            problem = self._rests(embedder)
            return EmbeddingState(
                embedder.identity.name, number, there - number, "" if problem is None else str(problem)
            )

    def _counted(self, vectors: Vectors) -> tuple[int, int, int]:
        """Return how many texts there are, as far as they were read; how many of them have a vector; and how many days and
        sessions are still to be read (holding `lock`)."""
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
        """Make all missing vectors while the caller waits; returns why that failed, "" if none is missing. `report` is called with
        the numbers made and wanted. `kinds`: kinds besides memories that get vectors from then on. `again`: also of texts that the
        model refused in an earlier process."""
        self._kinds |= kinds
        with contextlib.suppress(IpfsmemError):  # reported below
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
        """Make the vectors of one batch while the caller waits (holding `lock`); returns whether any was missing."""
        batch = self._batch(embedder, _LARGEST, todo)
        if batch:
            vectors = _run(embedder, embedded(embedder, list(batch.values())))
            self._take(embedder, dict(zip(batch, vectors, strict=True)))
        self._save(embedder, at_once=not batch)
        if not batch:
            self._say_whole(embedder)
        return bool(batch)

    def _reset_if_other_model(self, embedder: Embedder) -> None:
        """Discard the vectors if the model of that name now answers with another dimension. Errors of the model are reported by
        the batch that fails."""
        with self._alone:
            vectors = self._vectors_for(embedder)
            if not len(vectors):
                return
            with contextlib.suppress(IpfsmemError):
                vectors_made = _run(embedder, embedder.embed(["dimensions"]))
                if len(vectors_made[0]) != vectors.dimension:
                    self._vectors, self._done, self._resting = Vectors(embedder.identity), None, None
                    self._stamp = stamp(self._replica, embedder.identity)
                    self._refused.clear()
                    self._refused_before = frozenset()

    # -- ended -----------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Start no further batch, and wait briefly for the one in progress. Not while `lock` is held."""
        self._ended = True
        thread = self._thread
        if thread is not None:
            thread.join(_PATIENCE)

    def drop(self) -> None:
        """Drop all vectors at once: the keys are locked, or the vault is closed."""
        self._ended = self._dropped = True
        self._vectors = None
        self._living = Living(self._memories)

    # -- the vectors -----------------------------------------------------------------------------------------

    def _load(self, embedder: Embedder) -> None:
        """Read the stored vectors before the vault is held: many of them take a while.

        Raises _DroppedError in the background if another model was set: its vectors are not replaced by those of the model before.
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
                self._later = "the saved embeddings were damaged, and are computed again"
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
            now = self._replica.world.now()
            if whole.file == known_by and (not whole.until or now < whole.until <= now + _AGAIN):
                with self._replica.reading():
                    mark = self._replica.store.mark()
                    if hash_of(mark, strangers_of(self._replica)) == whole.state:
                        self._done, self._whole = (self._replica.store.frame, whole.kinds), not whole.until

    def _vectors_for(self, embedder: Embedder) -> Vectors:
        self._load(embedder)
        return Vectors(embedder.identity) if self._vectors is None else self._vectors

    def _all(self) -> tuple[StateHeader, frozenset[str]]:
        """Return the state and kinds for which all vectors would be made now."""
        return self._replica.store.frame, self._kinds

    def _is_done(self) -> bool:
        """Return whether these were made, as far as possible."""
        return (
            self._done is not None
            and self._done[0] == self._replica.store.frame
            and self._kinds <= self._done[1]
        )

    def _begin(self, embedder: Embedder) -> None:
        """Start the thread if there may be something to do (holding `lock`)."""
        running = self._thread is not None and self._thread.is_alive()
        if not (running or self._rests(embedder) is not None or self._ended or self._is_done()):
            if self._apart:
                self.left = self._kinds
                return
            self._thread = threading.Thread(target=self._work, name="ipfsmem-vectors", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        """Make vectors until none is missing."""
        size, embedder, todo = _FIRST, None, _Todo()
        try:
            embedder = self._opener(False)
            while embedder is not None:
                batch = self._batch(embedder, size, todo)
                if batch:
                    vectors = _run(embedder, embedded(embedder, list(batch.values())))
                    self._take(embedder, dict(zip(batch, vectors, strict=True)))
                    self._later = self._refusal() or self._later
                self._save(embedder, at_once=self._ended or not batch)
                if not batch:
                    self._say_whole(embedder)
                if self._ended or not batch:  # a command ends soon after it began: one batch is still made
                    return
                size = min(2 * size, _LARGEST)
        except _DroppedError:
            pass
        except IpfsmemError as error:
            if not self._dropped:
                if embedder is not None:
                    self._failed(embedder, error)
                self._later = f"no embeddings could be computed: {error}"

    def _in_steps(self, steps: Generator[None, None, T]) -> T:
        """Run some work in steps, each inside `reading`; in the background others get the vault in between."""
        while True:
            with self._alone:
                if self._dropped:
                    raise _DroppedError
                with self._replica.reading():
                    until = time.perf_counter() + _HELD
                    while time.perf_counter() < until:
                        try:
                            next(steps)
                        except StopIteration as end:
                            return end.value  # type: ignore[no-any-return]
            if threading.current_thread() is self._thread and not self._ended:
                time.sleep(_LEFT)

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
            gone = gone_of(vectors.ids, living.take_gone())
            vectors.drop(gone)
            self._unsaved += len(gone)
        return vectors

    def _read(self, group: Group) -> dict[bytes, str]:
        """Return the texts of a day or a session, by the keys of their vectors."""
        living = self._living
        reading = GroupReading(*self._in_steps(living.read(group)))
        with self._alone:
            return living.took(reading)

    def _batch(self, embedder: Embedder, size: int, todo: _Todo) -> dict[bytes, str]:
        """Return texts without a vector, newest first, by the keys of their vectors."""
        with self._alone, self._replica.reading():
            every = self._all()
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
            self._whole = self._living.all_here and not self._unreadable
            self._unreadable.clear()
            self._living.try_again()
        return texts

    def _missing(self, vectors: Vectors) -> Generator[None, None, list[tuple[int, bytes | Group]]]:
        """List the entries without a vector, newest last: memories, and days and sessions with such an entry; parts of sessions
        before all of these, as hardly anybody searches them."""
        living, without = self._living, self._unreadable | self._refused | self._refused_before
        rows: list[tuple[int, bytes | Group]] = []
        for number, (id, one) in enumerate(list(living.files.items()), 1):
            if id not in vectors and id not in without:
                rows.append((0 if is_part_key(one.place.key) else hlc_ms(one.hlc), id))
            if number % _LISTED == 0:
                yield
        for number, spoken in enumerate(list(living.spoken.values()), 1):
            missing = (key for key in spoken.each() if key not in vectors and key not in without)
            if spoken.kind in self._kinds and next(missing, None) is not None:
                rows.append((spoken.newest, spoken.group))
            if number % _FEW == 0 or len(spoken.keys) > _LISTED:
                yield
        unread = living.unread(self._kinds)
        for number, group in enumerate(unread, 1):
            rows.append((living.written(group), group))
            if number % _FEW == 0:
                yield
        rows.sort(key=lambda one: one[0])
        return rows

    def _text(self, one: Live) -> str | None:
        """Return the embedded text of a memory; None if it shows none, or not on this device."""
        part = self._memories.in_scope(one.place.scope)
        try:
            reading = part.reading_of(one.place.key, self._replica.store.entry(part.name(one.place.key)))
        except NotHereError:
            return None
        if reading is None:
            return None
        file = reading.readable
        header = " ".join(filter(None, (one.place.key, file.name, file.description, *file.tags)))
        return f"{header}\n{file.body}"[:_CHARACTERS]

    def _take(self, embedder: Embedder, embeddings: dict[bytes, list[float] | None]) -> None:
        """Add the vectors made, unless their texts were removed meanwhile; record texts without a vector."""
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
        """Store new vectors, and load those of other processes; `at_once`: otherwise only if the last save is long ago."""
        begun = time.perf_counter()
        seldom = begun - self._saved_at < _SELDOM * self._saving_took
        if not self._unsaved or (seldom and not at_once):
            return
        for _ in range(_TRIES):
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

    def _say_whole(self, embedder: Embedder) -> None:
        """Record for the next process that all possible vectors are made, and which texts the model refuses. Where a text is not on
        this device, the record is valid for an hour. If it cannot be written, that process checks itself."""
        with self._alone:
            if self._dropped or self._unsaved:
                return
            with self._replica.reading():
                mark = self._replica.store.mark()
                if self._done != self._all() or mark != self._living.mark:
                    return
                state = hash_of(mark, strangers_of(self._replica))
            refused = frozenset(id for id in self._refused | self._refused_before if self._living.has(id))
            until = 0 if self._whole else self._replica.world.now() + _AGAIN
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

    def _failed(self, embedder: Embedder, problem: IpfsmemError) -> None:
        """Do not ask the model for a while."""
        self._resting = embedder.identity, self._replica.world.now() + _REST, problem

    def _rests(self, embedder: Embedder) -> IpfsmemError | None:
        """Return why the model is not asked now; None if it is."""
        if self._resting is None or self._resting[0] != embedder.identity:
            return None
        return self._resting[2] if self._replica.world.now() < self._resting[1] else None

    # -- said ------------------------------------------------------------------------------------------------

    def _notice(self, embedder: Embedder, vectors: Vectors) -> str:
        notice = ""
        if self._later:
            notice, self._later = self._once(self._later), ""
        if not notice and not len(vectors):
            again = f", again because the earlier model was {self._before}" if self._before else ""
            notice = self._once(
                f"indexing this vault with the model {embedder.identity.name}{again}: {where(embedder)}; until it is done, recall ranks by words only"
            )
        return notice

    def _once(self, notice: str) -> str:
        if notice in self._said:
            return ""
        self._said.add(notice)
        return notice


def where(embedder: Embedder) -> str:
    """Return where the texts go, in words."""
    if "://" not in embedder.identity.version:
        return "texts and questions stay on this device"
    url = urlsplit(embedder.identity.version)
    if is_loopback(url.hostname or ""):
        return f"texts and questions go to {embedder.identity.version} on this machine"
    unsealed = "; the connection is not encrypted" if url.scheme == "http" else ""
    return f"WARNING: texts and queries are sent to {url.hostname}, which can read them{unsealed}"


class _DroppedError(Exception):
    """The keys are locked, the vault is closed, or another model was set: stop."""


async def _closing(embedder: Embedder, work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    finally:
        await embedder.close()


def _run(embedder: Embedder, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of an embedder's coroutine, also if an event loop runs in this thread. Closes the embedder."""
    work = _closing(embedder, work)
    if not embedder.waits:
        try:
            work.send(None)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        raise RuntimeError(f"{embedder.identity.name} waits, though it says that it does not")
    import asyncio  # only needed to ask an endpoint

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
