"""The objects of one bucket under one prefix: put, read, list and delete with obstore, each bounded in time.

Puts are unconditional (some servers ignore conditions) and in one piece; a list request names one key prefix.
Requests are retried a few times; a silent server costs one wait and is then skipped for some minutes, as in
HTTP providers (http/bounds.py). All methods block.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Timer
from typing import Any, Final, TypeAlias, TypeVar, overload

from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused
from ipfsmem_providers.bucket.address import Address, Patience, credentials, places, secrets, server, store
from ipfsmem_providers.bucket.errors import (
    BehindTheEnd,
    NoAnswer,
    NoSuchObject,
    NotAllowed,
    gate_error,
    provider_error,
)
from ipfsmem_providers.bucket.gate import Gate, usable_proxies
from ipfsmem_providers.http.bounds import Bounds
from ipfsmem_providers.http.errors import Redactor
from ipfsmem_providers.packs.blocking_work import heartbeat
from ipfsmem_providers.packs.object_store import FileInfo, Head

T = TypeVar("T")
#: Objects by key.
Listed: TypeAlias = dict[str, FileInfo]
K = TypeVar("K")
#: The largest object that is put, in bytes.
PUT_MAX: Final = 24 * 1024 * 1024
#: Maximum bytes of an answer, with its headers and the overhead of TLS.
_ANSWER_MAX: Final = PUT_MAX + 2 * 1024 * 1024
#: Bytes a second that even a slow connection moves.
_SLOWEST: Final = 64 * 1024
#: Requests at once.
_AT_ONCE: Final = 8
#: Maximum number of objects under one prefix; more are not ours.
_LIST_MAX: Final = 200_000
_PAGE: Final = 1_000
#: Maximum number of objects in one listing of a snapshot; a longer one would cost more than it saves.
_SNAPSHOT_MAX: Final = 2 * _PAGE
#: A listing of all folders for a snapshot may end at this key: `small/`, which may hold any number of objects, sorts after it.
_SNAPSHOT_END: Final = "pins0"
_BEFORE_END: Final = frozenset(("names", "packs", "pins"))
#: Maximum characters of a key with any vendor; obstore panics at much longer ones.
_KEY_MAX: Final = 1_024
#: Bytes of an answer that are passed on at a time.
_PART: Final = 256 * 1024
#: Bodies of up to this many bytes have the shortest time-out; each class of larger ones is four times as large.
_SMALL: Final = 256 * 1024


class Objects:
    """One bucket. Usable from any thread."""

    def __init__(self, address: Address, settings: Mapping[str, Any]) -> None:
        """Set up without network access. ConfigError for unusable credentials or settings."""
        self.where = f"bucket:{address}"
        self._address, self._settings = address, settings
        #: Protocol and URL of the server; "" for AWS.
        self.scheme = address.scheme
        self.server = server(address, settings) or next(
            filter(None, map(os.environ.get, ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))), ""
        )
        self._bounds = Bounds(settings)
        self._now = self._bounds.timing.now
        self._progress: Callable[[str, int], None] | None = settings.get("progress")
        credentials(address, settings)
        self._redact = Redactor(secrets(address, settings))
        limits = self._bounds.timeouts
        self._gate = Gate(
            places(address, settings), _ANSWER_MAX, usable_proxies(), stall=limits.stall, drip=limits.drip
        )
        #: The gate's thread references the gate, so without `close` only this finalizer ends it.
        weakref.finalize(self, self._gate.close)
        self._stores: dict[Patience, Any] = {}
        self._lock = threading.Lock()
        try:
            self._store(self._patience(0))
        except OSError as error:
            raise ConfigError(f"this device allows no connection to itself: {error.strerror}") from None
        #: Requests so far by kind, for reports and tests.
        self.requests: dict[str, int] = {}
        #: Listings of the snapshot by folder, "" for all folders at once; None outside of a snapshot.
        self._snapshot: dict[str, Future[Listed | None]] | None = None
        #: Folders that cannot be listed for a snapshot.
        self._unsuitable: set[str] = set()
        #: Whether the snapshot's listing of all folders ended at _SNAPSHOT_END.
        self._ended = False

    @property
    def light(self) -> float:
        """Return the maximum seconds of a small request, including the pause before it."""
        limits = self._bounds.timeouts
        return limits.stall + limits.connect + self._bounds.retry.most + 1.0

    @property
    def heavy(self) -> float:
        """Return the seconds beyond `light` of a request for the largest object."""
        return PUT_MAX / _SLOWEST

    def close(self) -> None:
        """Close connections and the gate. Later calls open new ones."""
        with self._lock:
            self._stores.clear()
            self._gate.close()

    def begin_snapshot(self) -> None:
        """Answer `list` from one listing, made when first needed."""
        self._snapshot, self._ended = {}, False

    @property
    def in_snapshot(self) -> bool:
        """Return whether `list` may answer from an earlier listing."""
        return self._snapshot is not None

    def drop_snapshot(self) -> bool:
        """List for each call again; tell whether a snapshot was in use."""
        dropped, self._snapshot = self._snapshot, None
        return bool(dropped)

    def put(self, key: str, data: bytes) -> None:
        """Put an object whole, replacing one with the same key."""
        import obstore

        self.drop_snapshot()
        if len(data) > PUT_MAX:
            raise ProviderRefused(f"an object of {len(data)} bytes exceeds the limit of one request")
        self._ask(
            "PUT",
            "store an object",
            lambda at: obstore.put(at, key, data, use_multipart=False),
            size=len(data),
        )
        self._count("sent", len(data))

    def read(self, key: str) -> bytes:
        """Return an object whole. FileNotFoundError if absent, or larger than any object put."""
        import obstore

        def ask(at: Any) -> bytes:
            answer = obstore.get(at, key)
            if answer.meta["size"] > PUT_MAX:
                raise NoSuchObject  # and not one of ours
            return _first(answer, PUT_MAX)

        data = self._get(key, ask)
        self._count("received", len(data))
        return data

    def head(self, key: str, length: int) -> Head | None:
        """Return the first `length` bytes of an object, and its size; None when it is missing or empty."""
        try:
            head = self._part(key, 0, length)
        except (NoSuchObject, BehindTheEnd):
            return None
        self._count("received", len(head.data))
        return head

    def ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return spans of an object (first offset, offset after the last), several requests at once; shorter
        at its end.

        FileNotFoundError if absent.
        """

        def part(span: tuple[int, int]) -> bytes:
            try:
                return self._part(key, *span).data
            except BehindTheEnd:
                return b""

        parts = [data for _, data in self.all_of(spans, part)]
        self._count("received", sum(map(len, parts)))
        return parts

    def _part(self, key: str, start: int, end: int) -> Head:
        """Return the bytes of an object from `start` to before `end`, and its size."""
        import obstore

        def ask(at: Any) -> Head:
            answer = obstore.get(at, key, options={"range": (start, end)})
            return Head(_first(answer, end - start), answer.meta["size"])

        return self._get(key, ask, ranged=True)

    def _get(self, key: str, ask: Callable[[Any], T], *, ranged: bool = False) -> T:
        """Read an object. AWS refuses to read an absent one to a key that may list one prefix only."""
        try:
            return self._ask("GET", "read an object", ask, ranged=ranged)
        except NotAllowed:
            folder, _, name = key.rpartition("/")
            if name in self._list(folder):
                raise
        raise NoSuchObject(f"{self.where} has no such object")

    def all_of(self, keys: Sequence[K], work: Callable[[K], T]) -> Iterator[tuple[K, T]]:
        """Yield the result of `work` for each key, several at once, in the order of the keys."""
        if len(keys) < 2:
            for key in keys:
                yield key, work(key)
            return
        with ThreadPoolExecutor(min(_AT_ONCE, len(keys)), thread_name_prefix="ipfsmem-bucket") as pool:
            for key, result in zip(keys, pool.map(work, keys), strict=True):
                heartbeat()
                yield key, result

    def list(self, folder: str) -> Listed:
        """Return the objects whose keys begin with `folder` and a slash, by the rest of their keys."""
        snapshot = self._snapshot
        if snapshot is None:
            return self._list(folder)
        for parent in ("", folder.partition("/")[0]):
            try:
                listed = self._listed_once(snapshot, parent)
            except ProviderError as error:
                if not error.listed:
                    raise
                self._unsuitable.add(parent)  # it answers, and the failing page may be one of another folder
                listed = None
            if listed is not None and not (not parent and self._ended and folder >= _SNAPSHOT_END):
                start = f"{folder}/".removeprefix(f"{parent}/" if parent else "")
                return {key[len(start) :]: info for key, info in listed.items() if key.startswith(start)}
        return self._list(folder)

    def _listed_once(self, snapshot: dict[str, Future[Listed | None]], folder: str) -> Listed | None:
        """Return the objects in `folder` as of the snapshot; None when it cannot be listed for a snapshot.

        Concurrent callers share one request and its failure.
        """
        if folder in self._unsuitable:
            return None
        with self._lock:
            shared = snapshot.get(folder)
            if shared is None:
                mine = snapshot[folder] = Future[Listed | None]()
        if shared is not None:
            with contextlib.suppress(TimeoutError):
                return shared.result(self.light / 2)
            heartbeat()
            return None
        try:
            listed = self._list(folder, _SNAPSHOT_MAX)
        except ProviderRefused:
            # Another's object with an invalid key, or a permission for single folders only.
            listed = None
        except BaseException as error:
            snapshot.pop(folder, None)
            mine.set_exception(error)
            raise
        if listed is None:
            self._unsuitable.add(folder)
        mine.set_result(listed)
        return listed

    @overload
    def _list(self, folder: str) -> Listed: ...
    @overload
    def _list(self, folder: str, most: int) -> Listed | None: ...
    def _list(self, folder: str, most: int | None = None) -> Listed | None:
        """List a folder; return None when it has more than `most` objects. Of all folders for a snapshot (`most`), those up to
        _SNAPSHOT_END suffice if the keys are sorted."""
        import obstore

        start = len(folder) + 1 if folder else 0
        shown: dict[str, None] = {}

        def ask(at: Any) -> Listed | None:
            with self._bounded_listing() as moved:
                return ask_all(at, moved)

        def ask_all(at: Any, moved: Callable[[], None]) -> Listed | None:
            files: Listed = {}
            is_sorted, last = most is not None and not folder, ""
            for page in obstore.list(at, folder or None, chunk_size=_PAGE):
                heartbeat()
                moved()
                before = len(files)
                for entry in page:
                    if len(entry["path"]) > _KEY_MAX:
                        raise ProviderRefused(f"{self.where} lists an object whose name is too long")
                    changed = int(entry["last_modified"].timestamp() * 1000)
                    stamp = (changed, entry["size"], entry["e_tag"])
                    files[entry["path"][start:]] = FileInfo(entry["size"], changed, stamp)
                shown.update(dict.fromkeys(entry["path"] for entry in page))
                keys = [last, *(entry["path"] for entry in page)]
                is_sorted, last = is_sorted and keys == sorted(keys), keys[-1]
                # Not every server sorts: a whole page in order, after all folders that come first, shows that this one does.
                if is_sorted and len(page) == _PAGE and last >= _SNAPSHOT_END:
                    first = {key: info for key, info in files.items() if key < _SNAPSHOT_END}
                    if {key.partition("/")[0] for key in first} >= _BEFORE_END:
                        self._ended = True
                        return first if most is None or len(first) <= most else None
                if most is not None and len(files) > most:
                    return None
                # A partial list must not be taken for the whole one: blocks that only the rest needs would be removed.
                if len(files) > _LIST_MAX:
                    raise ProviderRefused(f"{self.where}/{folder} has more than {_LIST_MAX:,} objects")
                if page and len(files) == before:
                    raise ProviderRefused(f"{self.where} lists the same objects again and again")
            return files

        try:
            return self._ask("LIST", "list objects", ask)
        except ProviderError as error:
            error.listed = tuple(shown)
            raise

    @contextlib.contextmanager
    def _bounded_listing(self) -> Iterator[Callable[[], None]]:
        """End a listing without entries for too long, if there are other providers; yield a function to call for each page with
        entries.

        obstore skips empty pages automatically and endlessly.
        """
        if self._bounds.listing is None:
            yield lambda: None
            return
        watch = _Watch(self._gate, self._bounds.listing)
        watch.restart()
        try:
            yield watch.restart
        finally:
            watch.end()

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; absent ones are ignored."""
        import obstore

        def ask(at: Any) -> None:
            obstore.delete(at, list(keys) if len(keys) > 1 else keys[0])

        if not keys:
            return
        self.drop_snapshot()
        try:
            self._ask("DELETE", "delete an object", ask)
        except NoSuchObject:
            if len(keys) > 1:  # some servers stop at the first missing one
                for key in keys:
                    self.delete([key])

    def _count(self, direction: str, size: int) -> None:
        if self._progress is not None:
            self._progress(direction, size)

    # -- one request ---------------------------------------------------------------------------------------------

    def _ask(
        self,
        kind: str,
        what: str,
        work: Callable[[Any], T],
        *,
        size: int = 0,
        ranged: bool = False,
    ) -> T:
        attempts = self._bounds.attempts(self.where)
        while True:
            if self._bounds.rests(self.where):
                raise NoAnswer(f"{self.where} did not answer a moment ago, and is skipped for some minutes")
            patience = self._patience(size)
            began = self._now()
            before = self._gate.problems.copy()
            self.requests[kind] = self.requests.get(kind, 0) + 1
            try:
                result = work(self._store(patience))
            except Exception as error:
                failed = self._failed(error, what, ranged)
                if not isinstance(failed, NoSuchObject | BehindTheEnd):  # which the bucket itself answered
                    failed = self._stopped(before, what) or failed
            except BaseException as error:
                if type(error).__name__ != "PanicException":  # obstore's; no subclass of Exception
                    raise
                failed = ProviderRefused(f"{self.where}: no request can be made to {what}")
            else:
                attempts.answered()
                self._bounds.answer_came(began, self._now())
                heartbeat()
                return result
            heartbeat()
            if isinstance(failed, NoAnswer):
                self._bounds.stalled(self.where, self._now() - began)
                raise failed
            if isinstance(failed, NoSuchObject | BehindTheEnd) or failed.permanent:
                attempts.answered()
                raise failed
            pause = attempts.failed()
            if pause is None:
                raise failed
            time.sleep(pause)

    def _stopped(self, before: Counter[str], what: str) -> ProviderError | None:
        """Return the error for what the gate did since `before`, if that may explain a failed request."""
        problems = self._gate.problems - before
        return next((gate_error(problem, self.where, what) for problem in problems), None)

    def _failed(
        self, error: Exception, what: str, ranged: bool
    ) -> ProviderError | NoSuchObject | BehindTheEnd:
        from obstore.exceptions import BaseError

        if isinstance(error, BaseError | OSError):
            return provider_error(error, self.where, what, self._redact, ranged=ranged)
        if type(error) in (ValueError, OverflowError):  # a date or a size that Python has no value for
            return ProviderRefused(f"{self.where} returned an invalid answer when asked to {what}")
        raise error

    def _patience(self, size: int) -> Patience:
        """Return the time-outs of a request with a body of `size` bytes. Sizes are put into few classes, as
        each needs a store of its own."""
        limits = self._bounds.timeouts
        all_of_it = self._bounds.patience() >= limits.stall
        silent = limits.stall if all_of_it else limits.little
        most = _SMALL
        while most < size:
            most *= 4
        upload = most / _SLOWEST if most > _SMALL else 0.0
        connect = min(limits.connect, silent)
        # No byte comes back until the body is sent, so both time-outs include the sending.
        total = silent + (upload if upload else PUT_MAX / _SLOWEST)
        return Patience(connect, silent + upload, total)

    def _store(self, patience: Patience) -> Any:
        with self._lock:
            client = self._stores.get(patience)
            if client is None:
                client = store(self._address, self._settings, patience, self._gate.url)
                self._stores[patience] = client
            return client


class _Watch:
    """Interrupts a gate when `seconds` pass between two calls of `restart`."""

    def __init__(self, gate: Gate, seconds: float) -> None:
        self._gate, self._seconds = gate, seconds
        self._lock = threading.Lock()
        self._timer: Timer | None = None
        #: Only the most recent timer may act: a cancelled one may be running already.
        self._turn = 0
        self._fired = False

    def restart(self) -> None:
        """Start or restart the timer."""
        self._stop()
        self._timer = Timer(self._seconds, self._fire, [self._turn])
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """Stop the timer, and let requests through again."""
        self._stop()
        if self._fired:
            self._gate.resume()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._turn += 1

    def _fire(self, turn: int) -> None:
        with self._lock:
            if turn == self._turn and not self._fired:
                self._fired = True
                self._gate.interrupt()


def _first(answer: Any, most: int) -> bytes:
    """Return the first `most` bytes of an answer: a server may send more than requested."""
    data = bytearray()
    for part in answer.stream(min_chunk_size=_PART):
        data += part
        if len(data) >= most:
            break
    return bytes(data[:most])
