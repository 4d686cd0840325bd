"""The vectors of entries that one model made: kept as bytes, compared with the vector of a question.

Each number is one signed byte, scaled by the largest of its vector: that loses nothing that ranking sees. All vectors are of one
model and one length; there is no way to add another's. With NumPy, where it is installed, all are compared; without, of many
only those exactly whose signs agree best with the question's, the others by how many signs agree.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from math import cos, isfinite, pi, sqrt
from operator import mul
from typing import Any

import msgspec

from ipfsmem.errors import FormatError
from ipfsmem.recall.embedder import EmbedderIdentity

#: Bytes of an entry's id.
ID_SIZE = 16
#: Numbers that a vector may have.
MAX_DIMENSION = 4096
_VERSION = 1
#: Without NumPy: of more vectors than these only so many are compared number by number.
_EXACT = 400
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
        self._ready: _Ready | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: bytes) -> bool:
        return id in self._rows

    @property
    def ids(self) -> Collection[bytes]:
        """Of which entries there are vectors."""
        return self._rows.keys()

    def add(self, vectors: Mapping[bytes, Sequence[float]]) -> None:
        """Add vectors, or put them in the place of those before. Raises FormatError, and adds none, when one has another length
        than those that are there, or is none that has a direction."""
        made = {}
        dimension = self.dimension
        for id, vector in vectors.items():
            if len(id) != ID_SIZE:
                raise FormatError(f"the id of an entry has {ID_SIZE} bytes, not {len(id)}")
            dimension = dimension or len(vector)
            if len(vector) != dimension or not 0 < dimension <= MAX_DIMENSION:
                raise FormatError(f"a vector has {len(vector)} numbers, the others have {dimension}")
            made[id] = quantised(vector)
        if made:
            self.dimension = dimension
            self._rows.update(made)
            self._ready = None

    def keep(self, ids: Collection[bytes]) -> bool:
        """Erase the vectors of all other entries; whether there were some."""
        gone = self._rows.keys() - set(ids)
        for id in gone:
            del self._rows[id]
        if gone:
            self._ready = None
        return bool(gone)

    def take(self, other: Vectors) -> None:
        """Add the vectors of another store of the same model and length that are not here; none of any other."""
        if other.identity == self.identity and self.dimension in (0, other.dimension):
            self.dimension = other.dimension
            self._rows = {**other._rows, **self._rows}
            self._ready = None

    def cosines(self, question: Sequence[float]) -> dict[bytes, float]:
        """How similar each entry is to a question, from -1 to 1. Raises FormatError for a vector of another length."""
        if not self._rows:
            return {}
        if len(question) != self.dimension:
            raise FormatError(f"a vector has {len(question)} numbers, those kept have {self.dimension}")
        asked = quantised(question)
        if self._ready is None:
            self._ready = _Ready(self._rows)
        return self._ready.cosines(asked)

    def dump(self) -> bytes:
        """All of it as bytes."""
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
    def restore(cls, data: bytes) -> Vectors:
        """What `dump` gave. Raises FormatError for anything else."""
        try:
            stored = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise FormatError("these are no vectors") from None
        count, odd = divmod(len(stored.ids), ID_SIZE)
        length = stored.dimension
        fits = stored.version == _VERSION and not odd and 0 <= length <= MAX_DIMENSION
        if not fits or count * length != len(stored.vectors) or bool(count) != bool(length):
            raise FormatError("these vectors are of another version")
        made = cls(stored.identity)
        made.dimension = length
        made._rows = {
            stored.ids[at * ID_SIZE : (at + 1) * ID_SIZE]: stored.vectors[at * length : (at + 1) * length]
            for at in range(count)
        }
        return made


def quantised(vector: Sequence[float]) -> bytes:
    """A vector as signed bytes; its length is lost, its direction stays. Raises FormatError where it has none."""
    top = max(map(abs, vector), default=0.0) if all(map(isfinite, vector)) else 0.0
    if not 0 < top < 1e30 or 127 / top == float("inf"):
        raise FormatError("a vector is of numbers that are not finite, or all 0")
    scale = 127 / top
    return array("b", [round(value * scale) for value in vector]).tobytes()


class _Ready:
    """Vectors laid out for comparing."""

    def __init__(self, rows: Mapping[bytes, bytes]) -> None:
        self._ids = list(rows)
        self._rows = list(rows.values())
        self._matrix: Any = None
        self._lengths: Any = None
        self._bits: list[int] = []
        try:
            import numpy
        except ImportError:
            if len(self._rows) > _EXACT:
                self._bits = [int(row.translate(_signs), 2) for row in self._rows]
            return
        flat = numpy.frombuffer(b"".join(self._rows), dtype=numpy.int8)
        self._matrix = flat.reshape(len(self._rows), -1).astype(numpy.float32)
        # A row of a damaged file may be all 0: it is like nothing.
        self._lengths = numpy.maximum(numpy.linalg.norm(self._matrix, axis=1), 1.0)

    def cosines(self, asked: bytes) -> dict[bytes, float]:
        if self._matrix is not None:
            import numpy

            question = numpy.frombuffer(asked, dtype=numpy.int8).astype(numpy.float32)
            products = self._matrix @ question / (self._lengths * numpy.linalg.norm(question))
            return dict(zip(self._ids, numpy.clip(products, -1, 1).tolist(), strict=True))
        numbers = array("b", asked).tolist()
        length = sqrt(sum(map(mul, numbers, numbers)))
        if not self._bits:
            return {id: _cosine(row, numbers, length) for id, row in zip(self._ids, self._rows, strict=True)}
        sign = int(asked.translate(_signs), 2)
        apart = [(sign ^ bits).bit_count() for bits in self._bits]
        near = sorted(range(len(apart)), key=apart.__getitem__)[:_EXACT]
        like = [cos(pi * many / len(asked)) for many in range(len(asked) + 1)]
        found = {id: like[many] for id, many in zip(self._ids, apart, strict=True)}
        for at in near:
            found[self._ids[at]] = _cosine(self._rows[at], numbers, length)
        return found


def _cosine(row: bytes, asked: list[int], length: float) -> float:
    numbers = array("b", row)
    own = sqrt(sum(map(mul, numbers, numbers)))
    product = sum(map(mul, numbers, asked))
    return max(-1.0, min(1.0, product / (own * length))) if own else 0.0
