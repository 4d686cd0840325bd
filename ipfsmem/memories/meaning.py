"""Recall by meaning, where the user installed or named a model: the question's vector beside those of the texts, which are made in the background.

The model is asked a batch of texts at a time, the newest first, only for what has no vector yet; another model starts anew, and
never are two mixed. Whatever the endpoint does, recall goes on by words and says so once; then it is left alone for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from heapq import nlargest
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from ipfsmem.device.state import Frame
from ipfsmem.errors import FormatError, IpfsmemError, ProviderRefused
from ipfsmem.loopback import is_loopback
from ipfsmem.memories.asked import Asked
from ipfsmem.memories.kept_vectors import Live, live, load_vectors, save_vectors, vectors_kept
from ipfsmem.memories.memories import Memories, NotHereError
from ipfsmem.recall.batches import embedded
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
#: Seconds that closing waits for a batch that is under way.
_PATIENCE = 3.0
#: Gives an embedder, one that answers soon for questions (True) or one for batches; None where the user named none.
Opener = Callable[[bool], "Embedder | None"]


class State(NamedTuple):
    """What the model is called, "" for none; how many texts have a vector of it and how many have not; what is wrong, "" for nothing."""

    model: str
    vectors: int
    missing: int
    problem: str


class Meaning:
    """The model of one open memory, and the vectors of its texts."""

    def __init__(self, memories: Memories, alone: AbstractContextManager[bool], opener: Opener) -> None:
        """`alone` is held by the one thread that works with the memory."""
        self._memories = memories
        self._replica = memories.replica
        self._alone = alone
        self._opener = opener
        self._vectors: Vectors | None = None
        #: What the model was called whose vectors were kept before; "" for the same, or none.
        self._before = ""
        self._said: set[str] = set()
        #: Which model failed, until when (milliseconds) it is left alone, and why.
        self._resting: tuple[EmbedderIdentity, int, IpfsmemError] | None = None
        self._thread: threading.Thread | None = None
        self._done: Frame | None = None
        #: Texts that the state names and that cannot be read here.
        self._unreadable: set[bytes] = set()
        #: Texts that the model refuses while it takes others; they are tried again by the next process.
        self._refused: set[bytes] = set()
        self._ended = self._dropped = False
        #: What went wrong in the background and was not said yet.
        self._later = ""

    # -- asked -----------------------------------------------------------------------------------------------

    def ask(self, query: str, *, newest: bool = False) -> Asked:
        """How similar the entries are to a question; not inside `reading`, as it waits for the endpoint, a few seconds at most.
        `newest`: the texts that were written last are given vectors first."""
        try:
            embedder = self._opener(True)
        except IpfsmemError as error:
            return Asked(None, self._once(f"recall goes by words alone: {error}"), error)
        if embedder is None:
            return Asked(None, "", named=False)
        with self._alone:
            vectors = self._known(embedder)
            if newest and self._rests(embedder) is None and self._done != self._replica.store.frame:
                try:
                    self._make(self._opener(False) or embedder)
                except IpfsmemError as error:
                    self._failed(embedder, error)
            self._begin(embedder)
        told = self._told(embedder, vectors)
        if (problem := self._rests(embedder)) is not None:
            return Asked(None, told, problem)
        if not len(vectors):
            return Asked(None, told)
        try:
            made = _run(_closing(embedder, embedder.embed([query[:_CHARACTERS]])))
            with self._alone:
                ready = vectors.comparable()
            ready.nearest(made[0], (), 1.0, 1)  # whether it has their length
            knows = embedder.knows(query[:_CHARACTERS])
            return Asked(ready, told, None, True, knows, made[0], embedder.unrelated)
        except FormatError as error:
            problem = ProviderRefused(
                f"{embedder.identity.version} answers as another model than before: {error}",
                hint="Rebuild all vectors: ipfsmem reindex. Or set model or dimensions under [embeddings] in the settings file.",
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
        vectors = self._known(embedder)
        with self._replica.reading():
            missing = len(live(self._memories).keys() - set(vectors.ids))
        said = f"recall goes by words and by the model {embedder.identity.name}: {where(embedder)}"
        if self._before:
            said += f"; the model before was {self._before}, whose vectors are not used"
        if missing:
            said += f"; {count(missing, 'text')} still without a vector, each recall goes on with them"
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
            return vectors.comparable() if len(vectors) else None

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
            with self._replica.reading():
                there = live(self._memories).keys()
            known = len(there & set(vectors.ids))
            problem = self._rests(embedder)
            return State(
                embedder.identity.name, known, len(there) - known, "" if problem is None else str(problem)
            )

    def complete(self, told: Callable[[int, int], None]) -> str:
        """Make all vectors that are missing while the caller waits; why that could not be, "" when none is missing. `told` hears how
        many there are, and how many are to be."""
        try:
            embedder = self._opener(False)
            if embedder is not None:
                self._start_anew_if_other(embedder)
            while embedder is not None and not self._dropped:
                with self._alone:
                    if not self._make(embedder):
                        break
                    state = self.state()
                told(state.vectors, state.vectors + state.missing)
        except IpfsmemError as error:
            return f"no vectors could be made: {error}"
        return self._refusal() if embedder is not None else ""

    def _make(self, embedder: Embedder) -> bool:
        """Make the vectors of one batch while the caller waits (holding `alone`); whether any was missing."""
        batch = self._batch(embedder, _LARGEST)
        if batch:
            made = _run(_closing(embedder, embedded(embedder, list(batch.values()))))
            self._take(embedder, dict(zip(batch, made, strict=True)))
        return bool(batch)

    def _start_anew_if_other(self, embedder: Embedder) -> None:
        """Leave the vectors that are there where the model of that name answers with another number of dimensions now. What keeps it
        from answering is said by the batch that fails."""
        with self._alone:
            vectors = self._known(embedder)
            if not len(vectors):
                return
            with contextlib.suppress(IpfsmemError):
                made = _run(_closing(embedder, embedder.embed(["dimensions"])))
                if len(made[0]) != vectors.dimension:
                    self._vectors, self._done, self._resting = Vectors(embedder.identity), None, None
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

    # -- the vectors -----------------------------------------------------------------------------------------

    def _known(self, embedder: Embedder) -> Vectors:
        vectors = self._vectors
        if vectors is None or vectors.identity != embedder.identity:
            there, kept = vectors_kept(self._replica), load_vectors(self._replica)
            if there and kept is None:
                self._later = "the kept vectors of texts were damaged, and are made anew"
            if kept is not None and kept.identity == embedder.identity:
                vectors = kept
            else:
                self._before = kept.identity.name if kept is not None else ""
                vectors = Vectors(embedder.identity)
            self._vectors, self._done = vectors, None
            self._refused.clear()
        return vectors

    def _begin(self, embedder: Embedder) -> None:
        """Start the thread where there may be something to do (holding `alone`)."""
        running = self._thread is not None and self._thread.is_alive()
        if not (
            running
            or self._rests(embedder) is not None
            or self._ended
            or self._done == self._replica.store.frame
        ):
            self._thread = threading.Thread(target=self._work, name="ipfsmem-vectors", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        """Make vectors until none is missing."""
        size, embedder = _FIRST, None
        try:
            embedder = self._opener(False)
            while embedder is not None:
                with self._alone:
                    if self._dropped:
                        return
                    batch = self._batch(embedder, size)
                if not batch:
                    return
                made = asyncio.run(_closing(embedder, embedded(embedder, list(batch.values()))))
                with self._alone:
                    self._take(embedder, dict(zip(batch, made, strict=True)))
                    self._later = self._refusal() or self._later
                if self._ended:  # a command ends soon after it began: one batch is made all the same
                    return
                size = min(2 * size, _LARGEST)
        except IpfsmemError as error:
            if not self._dropped:
                if embedder is not None:
                    self._failed(embedder, error)
                self._later = f"no vectors could be made: {error}"

    def _batch(self, embedder: Embedder, size: int) -> dict[bytes, str]:
        """Texts without a vector, the newest first, by id."""
        vectors = self._known(embedder)
        with self._replica.reading():
            frame, there = self._replica.store.frame, live(self._memories)
            if vectors.keep(there):
                save_vectors(self._replica, vectors)
            missing = there.keys() - set(vectors.ids) - self._unreadable - self._refused
            texts = dict[bytes, str]()
            for id in nlargest(size, missing, key=lambda id: (there[id].hlc, id)):
                text = self._text(there[id])
                if text is None:
                    self._unreadable.add(id)
                else:
                    texts[id] = text
            if not missing:
                self._done = frame
                self._unreadable.clear()
            return texts

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
        """Add vectors that were made, unless their texts are gone meanwhile, and keep all; note which texts have none."""
        if self._dropped:
            return
        vectors = self._known(embedder)
        self._refused.update(id for id, vector in made.items() if vector is None)
        vectors.add({id: vector for id, vector in made.items() if vector is not None})
        kept = load_vectors(self._replica)  # another process may have made some too
        if kept is not None:
            vectors.take(kept)
        with self._replica.reading():
            vectors.keep(live(self._memories))
        save_vectors(self._replica, vectors)

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


async def _closing(embedder: Embedder, work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    finally:
        await embedder.close()


def _run(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives, also where an event loop runs in this thread."""
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
