"""Stores the embeddings of entries as bytes, and compares them with the embedding of a query.

Each number is quantised to a signed byte, scaled by the largest number of its vector. All vectors have the same model and
dimension. In a large store, vectors are preselected by how many signs agree with the query's; without NumPy, only a limited number
is compared exactly.
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
#: Maximum dimension of a vector.
MAX_DIMENSION = 4096
_VERSION = 1
#: Maximum vectors that are compared exactly without NumPy.
_EXACT = 400
#: With NumPy: a store of more vectors than the first number is preselected by signs; the second number is the factor of preselected
#: to requested vectors.
_MANY, _FACTOR = 20_000, 3
#: Rows of erased vectors are kept up to this many times as many rows as vectors.
_SPARE = 1.25
#: Rows per block when all pairs are compared.
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
    """The vectors by the id of their entry (16 bytes). Not thread-safe."""

    def __init__(self, identity: EmbedderIdentity) -> None:
        self.identity = identity
        #: Dimension of the vectors; 0 while there are none.
        self.dimension = 0
        self._rows: dict[bytes, bytes] = {}
        self._ready: Comparable | None = None
        #: Vectors added and erased since `_comparable` was built.
        self._added: dict[bytes, bytes] = {}
        self._erased: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: bytes) -> bool:
        return id in self._rows

    @property
    def ids(self) -> Collection[bytes]:
        """The ids of the entries with a vector."""
        return self._rows.keys()

    def add(self, vectors: Mapping[bytes, Sequence[float]]) -> None:
        """Add or replace vectors. Raises FormatError, and adds none, if one has another dimension than the existing ones, or is
        zero."""
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
        """Add the missing vectors from another store; ignored if it has another model or dimension."""
        if other.identity == self.identity and self.dimension in (0, other.dimension):
            self.dimension = other.dimension
            new = {id: row for id, row in other._rows.items() if id not in self._rows}
            self._note(new, ())
            self._rows.update(new)

    def of(self, ids: Iterable[bytes]) -> Comparable:
        """Return the vectors of some entries, prepared for comparing."""
        return Comparable({id: self._rows[id] for id in ids if id in self._rows})

    def comparable(self) -> Comparable:
        """Return the current vectors, prepared for comparing: the same object until the next change."""
        if self._ready is None or len(self._added) + len(self._erased) > len(self._rows) // 4:
            self._ready = Comparable(self._rows)
        elif self._added or self._erased:
            self._ready = self._ready.changed(self._added, self._erased)
        self._added, self._erased = {}, set()
        return self._ready

    def cosines(self, question: Sequence[float]) -> dict[bytes, float]:
        """Return the cosine of each entry to a query, -1 to 1. Raises FormatError for a vector of another dimension."""
        ready = self.comparable()
        ids = list(ready.at)
        cosines_of = ready.nearest(question, list(ready.at.values()), -1.0, len(ids))
        return {ids[row]: cosine for row, cosine in cosines_of.items()}

    def dump(self) -> bytes:
        """Encode the store as bytes."""
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
    """Quantise a vector to signed bytes, which keeps its direction only. Raises FormatError for a zero vector."""
    top = max(map(abs, vector), default=0.0) if all(map(isfinite, vector)) else 0.0
    if not 0 < top < 1e30 or 127 / top == float("inf"):
        raise FormatError("a vector is of numbers that are not finite, or all 0")
    scale = 127 / top
    return array("b", [round(value * scale) for value in vector]).tobytes()


class Comparable:
    """An immutable snapshot of vectors, prepared for comparing. Thread-safe."""

    def __init__(self, rows: Mapping[bytes, bytes]) -> None:
        #: The row of each entry's vector.
        self.at: Mapping[bytes, int] = {id: row for row, id in enumerate(rows)}
        self._rows = list(rows.values())
        self._bits: list[int] = []
        self._numbers: _Matrix | None = None
        try:
            import numpy  # noqa: F401 whether NumPy is installed
        except ImportError:
            if len(self._rows) > _EXACT:
                self._bits = [int(row.translate(_signs), 2) for row in self._rows]
        else:
            self._numbers = _Matrix(self._rows) if self._rows else None

    def changed(self, added: Mapping[bytes, bytes], erased: Collection[bytes]) -> Comparable:
        """Return a snapshot with some vectors added and others erased. Rows of erased vectors are kept until there are many,
        because a rebuild takes ten times as long."""
        if len(self._rows) + len(added) > _SPARE * (len(self.at) + len(added) - len(erased)):
            there = {id: self._rows[row] for id, row in self.at.items() if id not in erased}
            return Comparable({**there, **added})
        comparable = Comparable({})
        at = {id: row for id, row in self.at.items() if id not in erased} if erased else dict(self.at)
        old, bits = self._rows, self._bits
        if self._numbers is None and erased:  # no matrix is built yet
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
        """Quantise the vector of a query; a quantised vector is unchanged. Raises FormatError for another dimension, or a zero
        vector."""
        if self._rows and len(question) != len(self._rows[0]):
            raise FormatError(f"a vector has {len(question)} numbers, those kept have {len(self._rows[0])}")
        return question if isinstance(question, bytes) else quantised(question)

    def nearest(
        self, question: Sequence[float] | bytes, rows: Sequence[int], least: float, most: int
    ) -> dict[int, float]:
        """Return the up to `most` rows most similar to a query whose cosine (-1 to 1) is at least `least`, as (index in `rows`,
        cosine). A row of -1 has no vector. Raises as `asked`."""
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
        """Return the pairs of distinct rows whose cosine is at least `least`, as (index, index, cosine), in ascending order. Empty
        without NumPy, and for more than 20,000 rows, for which comparing all pairs would take minutes."""
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
    """Vectors as a NumPy matrix. In a large matrix, only the rows whose signs agree best with the query's are compared exactly:
    100,000 vectors have 150 MB, which takes noticeably long to read."""

    def __init__(self, rows: Sequence[bytes], *, signs: bool = False) -> None:
        """`signs`: preselect by signs also in a small matrix."""
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
        # A row of a damaged file may be zero, which is not similar to any vector.
        self._lengths = numpy.maximum(lengths, 1.0)

    def longer(self, rows: Sequence[bytes], added: int) -> _Matrix:
        """Return a matrix with the last `added` of `rows` appended."""
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
        # Not `@`, which uses several threads: on a busy machine these wait for each other longer than one thread computes.
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
    """Return the signs of each row as bits in 64-bit words, one column of words after the other."""
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
