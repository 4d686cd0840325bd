"""Encodes an index as bytes, with the terms of the entries but without their texts.

Every part is checked before use, so that no number is out of range; postings are checked on first access (`Postings.occurrences`).
Wrong numbers within the range cannot be detected. The bytes are not encrypted: callers seal them.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from datetime import date
from operator import le
from typing import Literal, NamedTuple, TypeVar

import msgspec

from ipfsmem.errors import FormatError
from ipfsmem.recall.flat_postings import Flat, Numbers, Terms

#: Increase it when `terms` changes, because terms are stored; also increase `VERSION` of `device.recall_image`.
_VERSION = 4
#: Characters beyond which the penalty for length does not grow.
LONGEST = 20_000
#: All flags of an entry.
ALL_MARKS = 31


class ImageError(FormatError, ValueError):
    """The bytes are not an image of an index that this program can read."""


class Columns(NamedTuple):
    """The data of each entry, by its number; number 0 is unused."""

    #: The day as by `date.toordinal`, 0 for none.
    days: array[int]
    #: Characters, at most `LONGEST`.
    sizes: array[int]
    marks: array[int]
    salience: array[float]
    #: The number of its group, 0 for an entry without a group.
    groups: array[int]


class State(msgspec.Struct, frozen=True):
    """The content of an index, without derived caches."""

    #: Ids by entry number; "" at number 0.
    ids: list[str]
    #: Names by group number; "" at number 0.
    group_names: list[str]
    columns: Columns
    words: Flat
    #: Number of terms of each entry, by entry number.
    lengths: array[int]
    headers: Flat
    header_lengths: array[int]
    #: The passages of entries with several, by passage number: the entry of each, and its characters.
    passages: Flat
    passage_lengths: array[int]
    owners: array[int]
    passage_sizes: array[int]


class _Rows(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    #: As in `Terms`.
    terms: str
    begins: memoryview
    starts: memoryview
    numbers: memoryview
    counts: memoryview
    lengths: memoryview


class _Image(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: int
    ids: list[str]
    group_names: list[str]
    days: memoryview
    sizes: memoryview
    marks: memoryview
    salience: memoryview
    groups: memoryview
    words: _Rows
    headers: _Rows
    passages: _Rows
    owners: memoryview
    passage_sizes: memoryview


_Numbers = TypeVar("_Numbers", bound="array[int] | array[float]")
_decode = msgspec.msgpack.Decoder(_Image).decode
_encode = msgspec.msgpack.Encoder().encode


def write(state: State) -> bytes:
    """Encode the state as bytes."""
    columns = state.columns
    return _encode(
        _Image(
            _VERSION,
            state.ids,
            state.group_names,
            _bytes(columns.days),
            _bytes(columns.sizes),
            _bytes(columns.marks),
            _bytes(columns.salience),
            _bytes(columns.groups),
            _rows(state.words, state.lengths),
            _rows(state.headers, state.header_lengths),
            _rows(state.passages, state.passage_lengths),
            _bytes(state.owners),
            _bytes(state.passage_sizes),
        )
    )


def read(data: bytes | memoryview) -> State:
    """Decode a state, whose rows remain views of these bytes. Raises ImageError for any other bytes than those of `write`."""
    try:
        image = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ImageError(f"the image of an index is damaged: {error}") from None
    _check(image.version == _VERSION, "version")
    entries = len(image.ids)
    for names in (image.ids, image.group_names):
        _check(len(names) > 0 and not names[0] and "" not in names[1:], "names")
        _check(len(set(names)) == len(names), "names")
    columns = Columns(
        _array("I", image.days, entries, most=date.max.toordinal()),
        _array("H", image.sizes, entries, most=LONGEST),
        _array("B", image.marks, entries, most=ALL_MARKS),
        _array_of(array("d"), image.salience, entries),
        _array("I", image.groups, entries, most=len(image.group_names) - 1),
    )
    _check(not any(column[0] for column in columns), "first entry")
    words, lengths = _flat(image.words, entries)
    headers, header_lengths = _flat(image.headers, entries)
    owners = _array_of(array("I"), image.owners, len(image.owners) // 4)
    _check(len(owners) > 0 and owners[0] == 0 and all(owners[1:]), "passages")
    _check(max(owners) < entries and all(map(le, owners, owners[1:])), "passages")
    sizes = _array("H", image.passage_sizes, len(owners), most=LONGEST)
    passages, passage_lengths = _flat(image.passages, len(owners))
    return State(
        image.ids,
        image.group_names,
        columns,
        words,
        lengths,
        headers,
        header_lengths,
        passages,
        passage_lengths,
        owners,
        sizes,
    )


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ImageError(f"the image of an index is damaged: its {what}")


def _bytes(numbers: array[int] | array[float]) -> memoryview:
    return memoryview(_little(numbers[:] if sys.byteorder == "big" else numbers).tobytes())


def _little(numbers: _Numbers) -> _Numbers:
    """Convert numbers to little-endian byte order."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _array_of(numbers: _Numbers, data: memoryview, size: int) -> _Numbers:
    _check(len(data) == size * numbers.itemsize, "columns")
    numbers.frombytes(data)
    return _little(numbers)


def _array(
    code: Literal["B", "H", "I"], data: memoryview, size: int, *, most: int | None = None
) -> array[int]:
    numbers = _array_of(array(code), data, size)
    _check(most is None or max(numbers, default=0) <= most, "columns")
    return numbers


def _view(code: Literal["H", "I"], data: memoryview, size: int) -> Numbers:
    """Return a view of the numbers in the bytes, because copying them into an array takes longer than a query."""
    if sys.byteorder == "big" or not size:
        return _array(code, data, size)
    _check(len(data) == size * array(code).itemsize, "columns")
    return data.cast(code)


def _small(entries: int) -> Literal["H", "I"]:
    """Return the array type code for entry numbers."""
    return "H" if entries <= 1 << 16 else "I"


def _rows(flat: Flat, lengths: array[int]) -> _Rows:
    """Encode postings with one byte per count; greater counts follow in four bytes each."""
    if isinstance(flat.counts, memoryview):
        counts = flat.counts.tobytes()
        many = array("I", [255]) * counts.count(255)
    else:
        many = array("I", (count for count in flat.counts if count >= 255))
        counts = bytes([min(count, 255) for count in flat.counts] if many else list(flat.counts))
    terms = Terms.of(flat.places)
    return _Rows(
        terms.text,
        _bytes(array("I", terms.begins)),
        _packed("I", flat.starts),
        _packed(_small(len(lengths)), flat.numbers),
        memoryview(counts + _bytes(many)),
        _bytes(lengths),
    )


def _packed(code: Literal["H", "I"], numbers: Numbers) -> memoryview:
    """Return numbers as bytes, without copying if they are a view of this type."""
    same = isinstance(numbers, memoryview) and numbers.format == code
    return _bytes(array(code, numbers.tobytes() if same else numbers.tolist()))


def _flat(rows: _Rows, entries: int) -> tuple[Flat, array[int]]:
    small = _small(entries)
    size = len(rows.numbers) // array(small).itemsize
    begins = _view("I", rows.begins, len(rows.begins) // 4)
    _check(len(begins) > 0 and begins[0] == 0 and begins[-1] == len(rows.terms) - 1, "terms")
    starts = _view("I", rows.starts, len(begins))
    lengths = _array("I", rows.lengths, entries)
    _check(starts[0] == 0 and starts[-1] == size, "rows")
    _check(lengths[0] == 0, "lengths")
    return Flat(
        Terms(rows.terms, begins), starts, _view(small, rows.numbers, size), _counts(rows.counts, size)
    ), lengths


def _counts(data: memoryview, size: int) -> Sequence[int]:
    _check(len(data) >= size, "counts")
    counts = data[:size]
    if len(data) == size:
        return counts
    greater = counts.tobytes().count(255)
    great = iter(_array("I", data[size:], greater))
    return array("I", [next(great) if count == 255 else count for count in counts])
