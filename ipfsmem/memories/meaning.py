"""Recall by meaning, where the user installed or named a model: the question's vector beside those of the texts, which are made in the background.

The model is asked a batch of texts at a time, the newest first, only for what has no vector yet: memories, and once somebody asked for
such entries, also events and messages. In the background the memory is never held for longer than a few milliseconds. Another model
starts anew, and never are two mixed. Whatever the endpoint does, recall goes on by words and says so once; then it is left alone for a while.
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
from ipfsmem.device.state import Frame
from ipfsmem.errors import FormatError, IpfsmemError, ProviderRefused, StorageError
from ipfsmem.loopback import is_loopback
from ipfsmem.memories.asked import Asked
from ipfsmem.memories.kept_vectors import (
    NO_FILE,
    Kept,
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
from ipfsmem.memories.living import Live, Living, Reading, gone_of, strangers_of
from ipfsmem.memories.memories import Memories, NotHereError
from ipfsmem.memories.moment_kinds import Group, Kind
from ipfsmem.recall.batches import embedded, of_question
from ipfsmem.recall.embedder import Embedder, EmbedderIdentity
from ipfsmem.recall.vectors import Comparable, Vectors
from ipfsmem.wording import count

T = TypeVar("T")

#: Texts of the first batch and of the largest.
_FIRST, _LARGEST = 16, 64
#: Characters of a text that are embedded: its header and its beginning.
_CHARACTERS = 4_000
#: Milliseconds for which an endpoint that failed is left alone.
_REST = 60_000
#: Seconds for which the background holds the memory at a time, and leaves it to others in between.
_HELD, _LEFT = 0.004, 0.001
#: Entries of which a list is made in one step.
_LISTED = 2_000
#: Days and sessions that are looked at in one.
_FEW = 50
#: Vectors are kept for the next process after so many times as long as that takes; and how often it is tried while others change things.
_SELDOM, _TRIES = 20, 5
#: Seconds that closing waits for a batch that is under way.
_PATIENCE = 3.0
#: What is given vectors besides memories, by what was asked for.
_ASKED_FOR: dict[Kind, frozenset[str]] = {
    "memory": frozenset(),
    "event": frozenset({"event"}),
    "message": frozenset({"message"}),
    "all": frozenset({"event", "message"}),
}
#: Gives an embedder, one that answers soon for questions (True) or one for batches; None where the user named none.
Opener = Callable[[bool], "Embedder | None"]


class State(NamedTuple):
    """What the model is called, "" for none; how many texts have a vector of it and how many have not; what is wrong, "" for nothing."""

    model: str
    vectors: int
    missing: int
    problem: str


class _Todo:
    """What one thread is about to give vectors."""

    def __init__(self) -> None:
        #: What has none and was not begun, the newest last, by the moment in milliseconds; and for what that was listed.
        self.listed: list[tuple[int, bytes | Group]] = []
        self.listed_for: object = None
        #: Texts of the last day or session that was read, the newest last.
        self.queue: dict[bytes, str] = {}


class Meaning:
    """The model of one open memory, and the vectors of its texts."""

    def __init__(
        self,
        memories: Memories,
        alone: AbstractContextManager[bool],
        opener: Opener,
        *,
        apart: bool = False,
    ) -> None:
        """`alone` is held by the one thread that works with the memory. `apart`: another process makes the vectors; see `left`."""
        self._apart = apart
        #: Where that is so: what may lack vectors besides memories; None where nothing does.
        self.left: frozenset[str] | None = None
        self._memories = memories
        self._replica = memories.replica
        self._alone = alone
        self._opener = opener
        self._vectors: Vectors | None = None
        #: What is there of which vectors are kept.
        self._living = Living(memories)
        #: Of which kinds somebody asked for entries.
        self._kinds = frozenset[str]()
        #: How many vectors are not on the disk, when they were saved last, how long that took, and which file that made.
        self._unsaved, self._saved_at, self._saving_took = 0, float("-inf"), 0.0
        self._stamp: object = None
        #: What the model was called whose vectors were kept before; "" for the same, or none.
        self._before = ""
        self._said: set[str] = set()
        #: Which model failed, until when (milliseconds) it is left alone, and why.
        self._resting: tuple[EmbedderIdentity, int, IpfsmemError] | None = None
        self._thread: threading.Thread | None = None
        #: For which state and which kinds nothing is missing that could be made, and whether nothing at all is.
        self._done: tuple[Frame, frozenset[str]] | None = None
        self._whole = False
        #: Texts that the state names and that cannot be read here.
        self._unreadable: set[bytes] = set()
        #: Texts that the model refuses while it takes others; they are tried again by the next process.
        self._refused: set[bytes] = set()
        self._ended = self._dropped = False
        #: What went wrong in the background and was not said yet.
        self._later = ""

    # -- asked -----------------------------------------------------------------------------------------------

    def ask(
        self,
        query: str,
        *,
        newest: bool = False,
        kind: Kind = "memory",
        worth_it: Callable[[Vectors], bool] | None = None,
    ) -> Asked:
        """How similar the entries are to a question; not inside `reading`, as it waits for the endpoint, a few seconds at most.
        `newest`: the texts that were written last are given vectors first. `kind`: what is looked for has vectors from then on.
        `worth_it`: whether the question is asked though vectors are missing; else the model is neither loaded nor paid for it."""
        try:
            embedder = self._opener(True)
        except IpfsmemError as error:
            return Asked(None, self._once(f"recall goes by words alone: {error}"), error)
        if embedder is None:
            return Asked(None, "", named=False)
        self._load(embedder)
        with self._alone:
            vectors = self._known(embedder)
            self._kinds |= _ASKED_FOR[kind]
            if newest and self._rests(embedder) is None and not self._is_done():
                try:
                    self._make(self._opener(False) or embedder, _Todo())
                except IpfsmemError as error:
                    self._failed(embedder, error)
            self._begin(embedder)
        told = self._told(embedder, vectors)
        if (problem := self._rests(embedder)) is not None:
            return Asked(None, told, problem)
        with self._alone:
            all_made = self._is_done() and self._whole
            if not len(vectors) or (worth_it is not None and not all_made and not worth_it(vectors)):
                return Asked(None, told)
        try:
            made = _run(embedder, of_question(embedder, query[:_CHARACTERS]))
            if isinstance(made, ProviderRefused):
                return Asked(None, self._once(f"this question goes by words alone: {made}") or told, made)
            with self._alone:
                ready = vectors.comparable()
            question = ready.asked(made)
            knows = embedder.knows(query[:_CHARACTERS])
            return Asked(ready, told, None, True, knows, question, embedder.unrelated)
        except FormatError as error:
            problem = ProviderRefused(
                f"{embedder.identity.version} answers as another model than before: {error}",
                hint="Rebuild all vectors: ipfsmem index rebuild. Or set model or dimensions under [embeddings] in the settings file.",
            )
        except IpfsmemError as error:
            problem = error
        self._failed(embedder, problem)
        return Asked(None, self._once(f"recall goes by words alone: {problem}") or told, problem)

    @property
    def named(self) -> bool:
        """Whether a model is configured."""
        try:
            return self._opener(True) is not None
        except IpfsmemError:
            return False

    def notices(self) -> list[str]:
        """What `status` says: which model, where the texts go, how many are to do, what went wrong."""
        try:
            embedder = self._opener(True)
        except IpfsmemError as error:
            return [f"recall goes by words alone: {error}"]
        if embedder is None:
            return []
        with self._alone:
            there, known, unread = self._counted(self._known(embedder))
        missing = count(there - known, "text") if there > known else ""
        of_groups = count(unread, "day or session", "days and sessions") if unread else ""
        said = f"recall goes by words and by the model {embedder.identity.name}: {where(embedder)}"
        if self._before:
            said += f"; the model before was {self._before}, whose vectors are not used"
        if missing or of_groups:
            which = " and those of ".join(filter(None, (missing, of_groups)))
            said += f"; {which} still without a vector, each recall goes on with them"
        return [said]

    def at_hand(self) -> Comparable | None:
        """The vectors that are here, for who asks no question; None where recall goes by words, or there is none yet."""
        try:
            embedder = self._opener(True)
        except IpfsmemError:
            return None
        if embedder is None:
            return None
        with self._alone:
            vectors = self._known(embedder)
            with self._replica.reading():
                self._at_once(self._living.follow())
            found = vectors.of(self._living.files)
            return found if found.at else None

    def state(self) -> State:
        """What is kept for which model, and how much is missing. Raises nothing: what is wrong stands in it."""
        try:
            embedder = self._opener(True)
        except IpfsmemError as error:
            return State("", 0, 0, str(error))
        if embedder is None:
            return State("", 0, 0, "")
        with self._alone:
            vectors = self._known(embedder)
            there, known, _ = self._counted(vectors)
            problem = self._rests(embedder)
            return State(
                embedder.identity.name, known, there - known, "" if problem is None else str(problem)
            )

    def _counted(self, vectors: Vectors) -> tuple[int, int, int]:
        """How many texts there are, as far as they were read; how many of them have a vector; and how many days and sessions are still
        to be read (holding `alone`)."""
        with self._replica.reading():
            self._at_once(self._living.follow())
            there = [*self._living.files]
            for spoken in self._living.spoken.values():
                if spoken.kind in self._kinds:
                    there += spoken.each()
            unread = len(self._living.unread(self._kinds))
        return len(there), sum(id in vectors for id in there), unread

    def complete(self, told: Callable[[int, int], None], kinds: frozenset[str] = frozenset()) -> str:
        """Make all vectors that are missing while the caller waits; why that could not be, "" when none is missing. `told` hears how
        many there are, and how many are to be. `kinds`: what is given vectors from then on, besides memories."""
        self._kinds |= kinds
        try:
            embedder, todo = self._opener(False), _Todo()
            if embedder is not None:
                self._start_anew_if_other(embedder)
            while embedder is not None and not self._dropped:
                with self._alone:
                    if not self._make(embedder, todo):
                        break
                    state = self.state()
                told(state.vectors, state.vectors + state.missing)
        except IpfsmemError as error:
            return f"no vectors could be made: {error}"
        return self._refusal() if embedder is not None else ""

    def _make(self, embedder: Embedder, todo: _Todo) -> bool:
        """Make the vectors of one batch while the caller waits (holding `alone`); whether any was missing."""
        batch = self._batch(embedder, _LARGEST, todo)
        if batch:
            made = _run(embedder, embedded(embedder, list(batch.values())))
            self._take(embedder, dict(zip(batch, made, strict=True)))
        self._save(embedder, at_once=not batch)
        if not batch:
            self._say_whole(embedder)
        return bool(batch)

    def _start_anew_if_other(self, embedder: Embedder) -> None:
        """Leave the vectors that are there where the model of that name answers with another number of dimensions now. What keeps it
        from answering is said by the batch that fails."""
        with self._alone:
            vectors = self._known(embedder)
            if not len(vectors):
                return
            with contextlib.suppress(IpfsmemError):
                made = _run(embedder, embedder.embed(["dimensions"]))
                if len(made[0]) != vectors.dimension:
                    self._vectors, self._done, self._resting = Vectors(embedder.identity), None, None
                    self._stamp = stamp(self._replica, embedder.identity)
                    self._refused.clear()

    # -- ended -----------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Begin no further batch, and wait a little for the one under way. Not while `alone` is held."""
        self._ended = True
        thread = self._thread
        if thread is not None:
            thread.join(_PATIENCE)

    def drop(self) -> None:
        """Let go of all vectors at once: the keys are locked, or the memory is closed."""
        self._ended = self._dropped = True
        self._vectors = None
        self._living = Living(self._memories)

    # -- the vectors -----------------------------------------------------------------------------------------

    def _load(self, embedder: Embedder) -> None:
        """Read what was kept, before the memory is held: of very many that takes a while."""
        vectors = self._vectors
        if (vectors is not None and vectors.identity == embedder.identity) or self._dropped:
            return
        model, whole = embedder.identity, None
        known_by, there = stamp(self._replica, model), vectors_kept(self._replica, model)
        kept = load_kept(self._replica, model)
        if kept is not None:
            living, whole = Living(self._memories, kept.spoken), load_whole(self._replica, model)
        with self._alone:
            if self._vectors is not vectors:
                return
            if there and kept is None:
                self._later = "the kept vectors of texts were damaged, and are made anew"
            if kept is not None:
                self._living, self._kinds = living, self._kinds | {one.kind for one in kept.spoken}
            if kept is not None and kept.vectors.identity == embedder.identity:
                self._vectors, self._stamp = kept.vectors, known_by
            else:
                self._before = kept.vectors.identity.name if kept is not None else ""
                self._vectors, self._stamp = Vectors(embedder.identity), known_by
            # What an earlier version kept is written where it is looked for.
            self._done, self._unsaved = None, len(self._vectors) if known_by == NO_FILE else 0
            self._refused.clear()
            if whole is not None and (whole.identity, whole.file) == (embedder.identity, known_by):
                with self._replica.reading():
                    mark = self._replica.store.mark()
                    if hash_of(mark, strangers_of(self._replica)) == whole.state:
                        self._done, self._whole = (self._replica.store.frame, whole.kinds), True

    def _known(self, embedder: Embedder) -> Vectors:
        self._load(embedder)
        return Vectors(embedder.identity) if self._vectors is None else self._vectors

    def _all(self) -> tuple[Frame, frozenset[str]]:
        """For what all vectors would be made now."""
        return self._replica.store.frame, self._kinds

    def _is_done(self) -> bool:
        """Whether these were made, as far as they can be."""
        return (
            self._done is not None
            and self._done[0] == self._replica.store.frame
            and self._kinds <= self._done[1]
        )

    def _begin(self, embedder: Embedder) -> None:
        """Start the thread where there may be something to do (holding `alone`)."""
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
                    made = _run(embedder, embedded(embedder, list(batch.values())))
                    self._take(embedder, dict(zip(batch, made, strict=True)))
                    self._later = self._refusal() or self._later
                self._save(embedder, at_once=self._ended or not batch)
                if not batch:
                    self._say_whole(embedder)
                if (
                    self._ended or not batch
                ):  # a command ends soon after it began: one batch is made all the same
                    return
                size = min(2 * size, _LARGEST)
        except _DroppedError:
            pass
        except IpfsmemError as error:
            if not self._dropped:
                if embedder is not None:
                    self._failed(embedder, error)
                self._later = f"no vectors could be made: {error}"

    def _in_steps(self, steps: Generator[None, None, T]) -> T:
        """Do some work in steps, each inside `reading`; in the background others have the memory in between."""
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
        """Bring up to date what is there, and let go of the vectors of what is not."""
        vectors, living = self._known(embedder), self._living
        self._in_steps(living.follow())
        for group in living.changed():
            self._read(group)
        with self._alone:
            gone = gone_of(vectors.ids, living.take_gone())
            vectors.drop(gone)
            self._unsaved += len(gone)
        return vectors

    def _read(self, group: Group) -> dict[bytes, str]:
        """The texts of a day or a session, by what their vectors are to be kept by."""
        living = self._living
        reading = Reading(*self._in_steps(living.read(group)))
        with self._alone:
            return living.took(reading)

    def _batch(self, embedder: Embedder, size: int, todo: _Todo) -> dict[bytes, str]:
        """Texts without a vector, the newest first, by what these are to be kept by."""
        with self._alone, self._replica.reading():
            wanted = self._all()
        vectors = self._follow(embedder)
        if todo.listed_for != (wanted, embedder.identity):
            todo.listed = self._in_steps(self._missing(vectors))
            todo.listed_for, todo.queue = (wanted, embedder.identity), {}
        texts = dict[bytes, str]()
        while len(texts) < size:
            if todo.queue:
                id, text = todo.queue.popitem()
                if id not in vectors and id not in self._refused:
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
            self._done = wanted
            self._whole = self._living.all_here and not (self._unreadable or self._refused)
            self._unreadable.clear()
            self._living.try_again()
        return texts

    def _missing(self, vectors: Vectors) -> Generator[None, None, list[tuple[int, bytes | Group]]]:
        """What has no vector: memories, and days and sessions of which an entry has none, the newest last; before all of these
        parts of sessions, which are found as such by hardly anybody."""
        living, without = self._living, self._unreadable | self._refused
        found: list[tuple[int, bytes | Group]] = []
        for number, (id, one) in enumerate(list(living.files.items()), 1):
            if id not in vectors and id not in without:
                found.append((0 if is_part_key(one.place.key) else hlc_ms(one.hlc), id))
            if number % _LISTED == 0:
                yield
        for number, spoken in enumerate(list(living.spoken.values()), 1):
            missing = (key for key in spoken.each() if key not in vectors and key not in without)
            if spoken.kind in self._kinds and next(missing, None) is not None:
                found.append((spoken.newest, spoken.group))
            if number % _FEW == 0 or len(spoken.keys) > _LISTED:
                yield
        unread = living.unread(self._kinds)
        for number, group in enumerate(unread, 1):
            found.append((living.written(group), group))
            if number % _FEW == 0:
                yield
        found.sort(key=lambda one: one[0])
        return found

    def _text(self, one: Live) -> str | None:
        """What is embedded of a memory; None where nothing of it is shown or here."""
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

    def _take(self, embedder: Embedder, made: dict[bytes, list[float] | None]) -> None:
        """Add vectors that were made, unless their texts are gone meanwhile; note which texts have none."""
        vectors = self._follow(embedder)
        with self._alone:
            if self._dropped:
                return
            self._refused.update(id for id, vector in made.items() if vector is None)
            new = {id: vector for id, vector in made.items() if vector is not None and self._living.has(id)}
            vectors.add(new)
            self._unsaved += len(new)

    def _save(self, embedder: Embedder, *, at_once: bool) -> None:
        """Keep what is new, and take in what other processes made; `at_once`: else only when the last time is long ago."""
        begun = time.perf_counter()
        seldom = begun - self._saved_at < _SELDOM * self._saving_took
        if not self._unsaved or (seldom and not at_once):
            return
        for _ in range(_TRIES):
            there, kept = stamp(self._replica, embedder.identity), None
            if there != self._stamp:
                kept = load_kept(self._replica, embedder.identity)
            vectors = self._known(embedder)
            if kept is not None:
                with self._alone:
                    vectors.take(kept.vectors)
                    self._living.adopt(kept.spoken)
            self._follow(embedder)
            with self._alone:
                if kept is not None:
                    vectors.drop([id for id in vectors.ids if not self._living.has(id)])
                now, spoken, mark = vectors.copy(), list(self._living.spoken.values()), self._living.mark
                unsaved = self._unsaved
            ready = prepared(self._replica, Kept(now, spoken))
            if ready is None:
                self._unsaved = 0
                return
            with self._alone, contextlib.ExitStack() as held:
                held.callback(ready.leave)
                if self._dropped:
                    raise _DroppedError
                held.enter_context(saving(self._replica))
                held.enter_context(self._replica.reading())
                if stamp(self._replica, embedder.identity) == there and self._replica.store.mark() == mark:
                    ready.put(durable=False)
                    self._stamp = stamp(self._replica, embedder.identity)
                    self._unsaved -= unsaved
                    remove_left_behind(self._replica, embedder.identity, there[2] / 1e9)
                    break
        self._saved_at = time.perf_counter()
        self._saving_took = self._saved_at - begun

    def _say_whole(self, embedder: Embedder) -> None:
        """Write down for the next process that nothing is missing, where that is so; what cannot be written it finds out itself."""
        with self._alone:
            if self._dropped or self._unsaved or not self._whole:
                return
            with self._replica.reading():
                mark = self._replica.store.mark()
                if self._done != self._all() or mark != self._living.mark:
                    return
                state = hash_of(mark, strangers_of(self._replica))
            if self._stamp == (file := stamp(self._replica, embedder.identity)) != NO_FILE:
                with contextlib.suppress(StorageError):
                    save_whole(self._replica, Whole(embedder.identity, self._kinds, file, state))

    def _refusal(self) -> str:
        """What is said of texts that the model refused; "" where there is none."""
        refused = len(self._refused)
        return f"the model refuses {count(refused, 'text')}, found by words alone" if refused else ""

    def _failed(self, embedder: Embedder, problem: IpfsmemError) -> None:
        """Leave the model alone for a while."""
        self._resting = embedder.identity, self._replica.world.now() + _REST, problem

    def _rests(self, embedder: Embedder) -> IpfsmemError | None:
        """Why the model is left alone now; None when it is not."""
        if self._resting is None or self._resting[0] != embedder.identity:
            return None
        return self._resting[2] if self._replica.world.now() < self._resting[1] else None

    # -- said ------------------------------------------------------------------------------------------------

    def _told(self, embedder: Embedder, vectors: Vectors) -> str:
        said = ""
        if self._later:
            said, self._later = self._once(self._later), ""
        if not said and not len(vectors):
            anew = f" anew, as the model was {self._before} before" if self._before else ""
            said = self._once(
                f"the texts of this memory are being embedded{anew} by the model {embedder.identity.name}, {where(embedder)}; until"
                " then recall goes by words"
            )
        return said

    def _once(self, notice: str) -> str:
        if notice in self._said:
            return ""
        self._said.add(notice)
        return notice


def where(embedder: Embedder) -> str:
    """Where the texts go, in words."""
    if "://" not in embedder.identity.version:
        return "texts and questions stay on this device"
    url = urlsplit(embedder.identity.version)
    if is_loopback(url.hostname or ""):
        return f"texts and questions go to {embedder.identity.version} on this machine"
    open_air = ", UNENCRYPTED on the way" if url.scheme == "http" else ""
    return f"texts and questions LEAVE this device readable for {url.hostname}{open_air}"


class _DroppedError(Exception):
    """The keys are locked, or the memory is closed: nothing more is done."""


async def _closing(embedder: Embedder, work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    finally:
        await embedder.close()


def _run(embedder: Embedder, work: Coroutine[Any, Any, T]) -> T:
    """What an embedder's work gives, also where an event loop runs in this thread. The embedder is closed then."""
    work = _closing(embedder, work)
    if not embedder.waits:
        try:
            work.send(None)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        raise RuntimeError(f"{embedder.identity.name} waits, though it says that it does not")
    import asyncio  # who asks no endpoint does without

    found: list[T] = []
    failed: list[BaseException] = []

    def call() -> None:
        try:
            found.append(asyncio.run(work))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=call, name="ipfsmem-question", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
