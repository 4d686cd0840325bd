"""The vectors of entries by one model: stored as bytes, compared with the vector of a question.

Each number is one signed byte, scaled by the largest of its vector, which does not affect ranking. All vectors have one model and
one length. With NumPy all are compared, of very many those whose signs agree best with the question's; without it, of many only
these exactly, the others by how many signs agree.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from math import cos, isfinite, pi, sqrt
from operator import mul
from typing import Any

import msgspec

from ipfsmem.errors import FormatError
from ipfsmem.recall.embedder import EmbedderIdentity

#: Bytes of an entry's id.
ID_SIZE = 16
#: Maximum numbers of a vector.
MAX_DIMENSION = 4096
_VERSION = 1
#: Maximum vectors compared number by number without NumPy.
_EXACT = 400
#: With NumPy: above this number vectors are compared by their signs first, and this many times the wanted number then exactly.
_MANY, _FACTOR = 20_000, 3
#: Rows of erased vectors stay while there are at most this many times as many rows as vectors.
_SPARE = 1.25
#: Rows that are compared with all at once when each is compared with each.
_BLOCK = 512
_signs = bytes(b"0"[0] if value < 128 else b"1"[0] for value in range(256))


class _Stored(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: int
    identity: EmbedderIdentity
    dimension: int
    ids: bytes
    vectors: bytes


_decode = msgspec.msgpack.Decoder(_Stored).decode


class Vectors:
    """Vectors by the id of their entry, 16 bytes each. Not for several threads at once."""

    def __init__(self, identity: EmbedderIdentity) -> None:
        self.identity = identity
        #: Numbers in each; 0 while there is none.
        self.dimension = 0
        self._rows: dict[bytes, bytes] = {}
        self._ready: Comparable | None = None
        #: Vectors added and erased since that was made.
        self._added: dict[bytes, bytes] = {}
        self._erased: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: bytes) -> bool:
        return id in self._rows

    @property
    def ids(self) -> Collection[bytes]:
        """The ids of the entries that have vectors."""
        return self._rows.keys()

    def add(self, vectors: Mapping[bytes, Sequence[float]]) -> None:
        """Add or replace vectors. Raises FormatError, and adds none, if one has another length than the existing ones, or no
        direction."""
        rows_new = {}
        dimension = self.dimension
        for id, vector in vectors.items():
            if len(id) != ID_SIZE:
                raise FormatError(f"the id of an entry has {ID_SIZE} bytes, not {len(id)}")
            dimension = dimension or len(vector)
            if len(vector) != dimension or not 0 < dimension <= MAX_DIMENSION:
                raise FormatError(f"a vector has {len(vector)} numbers, the others have {dimension}")
            rows_new[id] = quantised(vector)
        if rows_new:
            self.dimension = dimension
            self._note(rows_new, rows_new.keys() & self._rows.keys())
            self._rows.update(rows_new)

    def keep(self, ids: Collection[bytes]) -> bool:
        """Erase the vectors of all other entries; returns whether there were any."""
        gone = self._rows.keys() - set(ids)
        self.drop(gone)
        return bool(gone)

    def drop(self, ids: Iterable[bytes]) -> None:
        """Erase the vectors of some entries."""
        gone = {id for id in ids if self._rows.pop(id, None) is not None}
        self._note({}, gone)

    def _note(self, added: Mapping[bytes, bytes], erased: Collection[bytes]) -> None:
        for id in erased:
            self._added.pop(id, None)
        self._erased.update(erased)
        self._added.update(added)

    def copy(self) -> Vectors:
        """Return a copy."""
        copies = Vectors(self.identity)
        copies.dimension, copies._rows = self.dimension, dict(self._rows)
        return copies

    def take(self, other: Vectors) -> None:
        """Add the vectors missing here from another store of the same model and length; none of any other."""
        if other.identity == self.identity and self.dimension in (0, other.dimension):
            self.dimension = other.dimension
            new = {id: row for id, row in other._rows.items() if id not in self._rows}
            self._note(new, ())
            self._rows.update(new)

    def of(self, ids: Iterable[bytes]) -> Comparable:
        """Return those of some entries, for comparing."""
        return Comparable({id: self._rows[id] for id in ids if id in self._rows})

    def comparable(self) -> Comparable:
        """Return the current ones for comparing: the same object until something changes."""
        if self._ready is None or len(self._added) + len(self._erased) > len(self._rows) // 4:
            self._ready = Comparable(self._rows)
        elif self._added or self._erased:
            self._ready = self._ready.changed(self._added, self._erased)
        self._added, self._erased = {}, set()
        return self._ready

    def cosines(self, question: Sequence[float]) -> dict[bytes, float]:
        """Return how similar each entry is to a question, from -1 to 1. Raises FormatError for a vector of another length."""
        ready = self.comparable()
        ids = list(ready.at)
        cosines_of = ready.nearest(question, list(ready.at.values()), -1.0, len(ids))
        return {ids[row]: cosine for row, cosine in cosines_of.items()}

    def dump(self) -> bytes:
        """Encode all of it as bytes."""
        return msgspec.msgpack.encode(
            _Stored(
                _VERSION,
                self.identity,
                self.dimension,
                b"".join(self._rows),
                b"".join(self._rows.values()),
            )
        )

    @classmethod
    def restore(cls, data: bytes | bytearray) -> Vectors:
        """Decode the result of `dump`. Raises FormatError for anything else."""
        try:
            stored = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise FormatError("these are no vectors") from None
        count, odd = divmod(len(stored.ids), ID_SIZE)
        length = stored.dimension
        fits = stored.version == _VERSION and not odd and 0 <= length <= MAX_DIMENSION
        if not fits or count * length != len(stored.vectors) or bool(count) != bool(length):
            raise FormatError("these vectors are of another version")
        vectors = cls(stored.identity)
        vectors.dimension = length
        vectors._rows = {
            stored.ids[at * ID_SIZE : (at + 1) * ID_SIZE]: stored.vectors[at * length : (at + 1) * length]
            for at in range(count)
        }
        return vectors


def quantised(vector: Sequence[float]) -> bytes:
    """Return a vector as signed bytes; its length is lost, its direction stays. Raises FormatError if it has none."""
    top = max(map(abs, vector), default=0.0) if all(map(isfinite, vector)) else 0.0
    if not 0 < top < 1e30 or 127 / top == float("inf"):
        raise FormatError("a vector is of numbers that are not finite, or all 0")
    scale = 127 / top
    return array("b", [round(value * scale) for value in vector]).tobytes()


class Comparable:
    """The vectors of one moment, in a form for comparing. Immutable, so usable from several threads at once."""

    def __init__(self, rows: Mapping[bytes, bytes]) -> None:
        #: The row of each entry.
        self.at: Mapping[bytes, int] = {id: row for row, id in enumerate(rows)}
        self._rows = list(rows.values())
        self._bits: list[int] = []
        self._numbers: _Matrix | None = None
        try:
            import numpy  # noqa: F401  whether it is there
        except ImportError:
            if len(self._rows) > _EXACT:
                self._bits = [int(row.translate(_signs), 2) for row in self._rows]
        else:
            self._numbers = _Matrix(self._rows) if self._rows else None

    def changed(self, added: Mapping[bytes, bytes], erased: Collection[bytes]) -> Comparable:
        """Return the same with some more and without others, whose rows stay until there are many: a complete rebuild takes ten
        times as long."""
        if len(self._rows) + len(added) > _SPARE * (len(self.at) + len(added) - len(erased)):
            there = {id: self._rows[row] for id, row in self.at.items() if id not in erased}
            return Comparable({**there, **added})
        comparable = Comparable({})
        at = {id: row for id, row in self.at.items() if id not in erased} if erased else dict(self.at)
        old, bits = self._rows, self._bits
        if self._numbers is None and erased:  # nothing is built yet that would have to be moved
            old, bits = [old[row] for row in at.values()], [bits[row] for row in at.values()] if bits else []
            at = {id: row for row, id in enumerate(at)}
        at.update(zip(added, range(len(old), len(old) + len(added)), strict=True))
        comparable.at, comparable._rows = at, [*old, *added.values()]
        if self._numbers is not None:
            comparable._numbers = self._numbers.longer(comparable._rows, len(added))
        elif len(comparable._rows) > _EXACT:
            comparable._bits = bits + [int(row.translate(_signs), 2) for row in comparable._rows[len(bits) :]]
        return comparable

    def asked(self, question: Sequence[float] | bytes) -> bytes:
        """Return a question's vector in the stored form; a result of this function stays as it is. Raises FormatError for another
        length, or no direction."""
        if self._rows and len(question) != len(self._rows[0]):
            raise FormatError(f"a vector has {len(question)} numbers, those kept have {len(self._rows[0])}")
        return question if isinstance(question, bytes) else quantised(question)

    def nearest(
        self, question: Sequence[float] | bytes, rows: Sequence[int], least: float, most: int
    ) -> dict[int, float]:
        """Return those of some rows (-1 for none) whose cosine to a question, -1 to 1, is at least `least`: the place of each in
        `rows`, and its cosine. At most the `most` most similar. Raises as `asked`."""
        if not self._rows or not rows:
            return {}
        query = self.asked(question)
        if self._numbers is not None:
            return self._numbers.nearest(query, rows, least, most)
        cosines = self._plain(query)
        nearest_of = {
            place: cosines[row] for place, row in enumerate(rows) if row >= 0 and cosines[row] >= least
        }
        if len(nearest_of) > most:
            nearest_of = dict(nlargest(most, nearest_of.items(), key=lambda one: (one[1], -one[0])))
        return nearest_of

    def pairs(self, rows: Sequence[int], least: float) -> list[tuple[int, int, float]]:
        """Return the pairs among some different rows whose cosine is at least `least`: their places, in ascending order, and the
        cosine. Empty without NumPy, or for more than 20,000 rows: comparing each with each would take minutes."""
        if self._numbers is None or len(self._rows) > _MANY:
            return []
        return self._numbers.pairs(rows, least)

    def _plain(self, query: bytes) -> list[float]:
        """Return the cosine of each row, without NumPy."""
        numbers = array("b", query).tolist()
        length = sqrt(sum(map(mul, numbers, numbers)))
        if not self._bits:
            return [_cosine(row, numbers, length) for row in self._rows]
        sign = int(query.translate(_signs), 2)
        apart = [(sign ^ bits).bit_count() for bits in self._bits]
        near = sorted(range(len(apart)), key=apart.__getitem__)[:_EXACT]
        like = [cos(pi * many / len(query)) for many in range(len(query) + 1)]
        cosines = [like[many] for many in apart]
        for row in near:
            cosines[row] = _cosine(self._rows[row], numbers, length)
        return cosines


class _Matrix:
    """Vectors in NumPy. Of very many only those whose signs agree best with the question's are compared number by number: all
    numbers of 100,000 are 150 MB, which takes noticeably long to read."""

    def __init__(self, rows: Sequence[bytes], *, signs: bool = False) -> None:
        """`signs`: also for few."""
        import numpy

        self._bytes = numpy.frombuffer(b"".join(rows), dtype=numpy.int8).reshape(len(rows), -1)
        self._numbers: Any = None
        self._signs: Any = None
        if (signs or len(rows) > _MANY) and hasattr(numpy, "bitwise_count"):
            self._signs = _packed(self._bytes)
            squares = [
                numpy.square(self._bytes[at : at + _MANY], dtype=numpy.int32).sum(axis=1)
                for at in range(0, len(rows), _MANY)
            ]
            lengths = numpy.sqrt(numpy.concatenate(squares).astype(numpy.float32))
        else:
            self._numbers = self._bytes.astype(numpy.float32)
            lengths = numpy.linalg.norm(self._numbers, axis=1)
        # A row of a damaged file may be all 0: it is similar to nothing.
        self._lengths = numpy.maximum(lengths, 1.0)

    def longer(self, rows: Sequence[bytes], added: int) -> _Matrix:
        """Return the same with the last `added` of `rows` appended."""
        if not added:
            return self
        more = _Matrix(rows[-added:], signs=self._signs is not None)
        if self._signs is None and len(rows) > _MANY:
            return _Matrix(rows)
        import numpy

        for name in ("_bytes", "_numbers", "_signs", "_lengths"):
            mine = getattr(self, name)
            if mine is not None:
                both = [mine, getattr(more, name)]
                setattr(more, name, numpy.concatenate(both, axis=1 if name == "_signs" else 0))
        return more

    def nearest(self, query: bytes, rows: Sequence[int], least: float, most: int) -> dict[int, float]:
        import numpy

        question = numpy.frombuffer(query, dtype=numpy.int8).astype(numpy.float32)
        question /= numpy.linalg.norm(question)
        row_numbers = numpy.asarray(rows, dtype=numpy.int64)
        places = numpy.flatnonzero(row_numbers >= 0)
        if self._signs is not None and len(places) > _FACTOR * most:
            sign = _packed(numpy.frombuffer(query, dtype=numpy.int8).reshape(1, -1))
            apart = numpy.zeros(len(self._bytes), dtype=numpy.uint16)
            for mine, its in zip(self._signs, sign, strict=True):
                apart += numpy.bitwise_count(mine ^ its)
            places = places[numpy.argpartition(apart[row_numbers[places]], _FACTOR * most)[: _FACTOR * most]]
            places.sort()
        # Not `@`: that wakes threads for each question, which on a busy machine wait longer for each other than one of them
        # computes.
        if self._numbers is not None:
            products = numpy.einsum("ij,j->i", self._numbers, question)
            cosines = (products / self._lengths)[row_numbers[places]]
        else:
            chosen = row_numbers[places]
            products = numpy.einsum("ij,j->i", self._bytes[chosen].astype(numpy.float32), question)
            cosines = products / self._lengths[chosen]
        cosines = numpy.clip(cosines, -1, 1)
        near = numpy.flatnonzero(cosines >= least)
        if len(near) > most:
            floor = numpy.partition(cosines[near], len(near) - most)[len(near) - most]
            near = numpy.concatenate([near[cosines[near] > floor], near[cosines[near] == floor]])[:most]
        return dict(zip(places[near].tolist(), cosines[near].tolist(), strict=True))

    def pairs(self, rows: Sequence[int], least: float) -> list[tuple[int, int, float]]:
        import numpy

        row_numbers = numpy.asarray(rows, dtype=numpy.int64)
        numbers = self._numbers[row_numbers] / self._lengths[row_numbers, None]
        pairs_found: list[tuple[int, int, float]] = []
        for begin in range(0, len(row_numbers), _BLOCK):
            cosines = numbers[begin : begin + _BLOCK] @ numbers[begin:].T
            for at, other in zip(*numpy.nonzero(cosines >= least), strict=True):
                if other > at:
                    pairs_found.append(
                        (begin + int(at), begin + int(other), min(1.0, float(cosines[at, other])))
                    )
        return pairs_found


def _packed(numbers: Any) -> Any:
    """Return the signs of each row, a bit each, in whole words of 64: first the first word of each row."""
    import numpy

    bits = numpy.packbits(numbers < 0, axis=1)
    short = -bits.shape[1] % 8
    words = numpy.ascontiguousarray(numpy.pad(bits, ((0, 0), (0, short)))).view(numpy.uint64)
    return numpy.ascontiguousarray(words.T)


def _cosine(row: bytes, query: list[int], length: float) -> float:
    numbers = array("b", row)
    own = sqrt(sum(map(mul, numbers, numbers)))
    product = sum(map(mul, numbers, query))
    return max(-1.0, min(1.0, product / (own * length))) if own else 0.0
