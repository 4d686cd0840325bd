"""Sorts many postings into flat arrays with NumPy, in a twentieth of the time."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ipfsmem.recall.flat_postings import Flat

#: An occurrence is encoded as one number: the position of its term, and in the lower bits the number of its entry.
_BITS = np.uint64(32)
_NUMBER = np.uint64((1 << 32) - 1)


def merged(
    flat: Flat,
    size: int,
    added: Mapping[str, Sequence[int]],
    terms: Sequence[str],
    terms_new: array[int],
    first: int,
    lengths: array[int],
    numbers: Sequence[int] | None,
) -> Flat | None:
    """Merge postings into flat arrays; None if `flat`, whose entries are below `size`, is damaged. `added`: by term, the entry of
    each occurrence. `terms_new`: the terms of the entries from `first` on, by their numbers in `terms`; `lengths`: how many each
    entry has. `numbers`: the new number of each entry, in ascending order, 0 for an entry to omit; None: unchanged."""
    old_terms = list(flat.places)
    names = sorted({*old_terms, *added, *terms})
    place = {name: at for at, name in enumerate(names)}

    def places(some: Sequence[str]) -> Any:
        return np.fromiter(map(place.__getitem__, some), np.uint64, len(some))

    before, often = _integers(flat.numbers), _integers(flat.counts)
    each = np.diff(_integers(flat.starts))
    if len(old_terms) != len(each) or (each < 1).any() or not (often > 0).all():
        return None
    keys = np.repeat(places(old_terms), each) << _BITS | before.astype(np.uint64)
    if not ((keys[1:] > keys[:-1]).all() and (before > 0).all() and (before < size).all()):
        return None
    if not (added or terms_new) and (numbers is None or np.array_equal(numbers, np.arange(len(numbers)))):
        return flat
    if added or terms_new:
        many, rows = list(map(len, added.values())), chain.from_iterable(added.values())
        of = np.repeat(np.arange(first, first + len(lengths), dtype=np.uint64), _integers(lengths))
        new = np.concatenate(
            [
                np.repeat(places(list(added)), many) << _BITS | np.fromiter(rows, np.uint64, sum(many)),
                places(terms)[_integers(terms_new)] << _BITS | of,
            ]
        )
        new.sort()
        begins = np.flatnonzero(np.append(True, new[1:] != new[:-1]))
        keys = np.concatenate([keys, new[begins]])
        often = np.concatenate([often, np.diff(np.append(begins, len(new)))])
        if len(before):
            order = np.argsort(keys, kind="stable")
            keys, often = keys[order], often[order]
    numbers_kept = keys & _NUMBER
    if numbers is not None:
        numbers_kept = np.array(numbers, dtype=np.uint64)[numbers_kept]
        keys, often, numbers_kept = (
            keys[numbers_kept > 0],
            often[numbers_kept > 0],
            numbers_kept[numbers_kept > 0],
        )
    of_term = keys >> _BITS
    begins = np.flatnonzero(np.append(True, of_term[1:] != of_term[:-1])[: len(keys)])
    there = [names[at] for at in of_term[begins].tolist()]
    small = np.uint16 if numbers_kept.max(initial=0) < 1 << 16 else np.uint32
    few = often.max(initial=0) < 1 << 8
    return Flat(
        {term: at for at, term in enumerate(there)},
        _view(np.append(begins, len(keys)), np.uint32),
        _view(numbers_kept, small),
        _view(often, np.uint8) if few else array("I", often.astype(np.uint32).tobytes()),
    )


def _integers(numbers: Any) -> Any:
    return np.array(numbers, dtype=np.int64)


def _view(numbers: Any, form: Any) -> memoryview:
    return memoryview(numbers.astype(form))
