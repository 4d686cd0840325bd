"""A table that decodes entries on access equals one that is decoded at once."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.errors import FormatError
from ipfsmem.memories.decoded_later import DecodedLater


class Said(msgspec.Struct, frozen=True, array_like=True):
    text: str
    times: int = 0


keys = st.sampled_from("abcde")
changes = st.one_of(
    st.tuples(st.just("set"), keys, st.integers(0, 9)),
    st.tuples(st.sampled_from(["get", "pop", "items", "values"]), keys, st.just(0)),
)


def raw(table: dict[str, Said]) -> dict[str, msgspec.Raw]:
    return {key: msgspec.Raw(msgspec.msgpack.encode(one)) for key, one in table.items()}


@given(st.dictionaries(keys, st.builds(Said, st.text(max_size=3), st.integers(0, 9))), st.lists(changes))
def test_lazily_decoded_table_equals_an_eager_one(
    table: dict[str, Said], steps: list[tuple[str, str, int]]
) -> None:
    later = DecodedLater(Said, raw(table))
    for what, key, number in steps:
        if what == "set":
            table[key] = later[key] = Said("new", number)
        elif what == "get":
            assert later.get(key) == table.get(key) and (key in later) == (key in table)
        elif what == "pop":
            assert later.pop(key, None) == table.pop(key, None)
        else:
            assert list(getattr(later, what)()) == list(getattr(table, what)())
        assert list(later) == list(table) and len(later) == len(table)
    stored = msgspec.msgpack.encode(later.stored())
    assert msgspec.msgpack.decode(stored, type=dict[str, Said]) == table
    assert later == table


def test_entry_of_wrong_type_is_a_format_error_with_rebuild_hint() -> None:
    later = DecodedLater(Said, {"a": msgspec.Raw(msgspec.msgpack.encode(7))})
    with pytest.raises(FormatError, match="the saved index is damaged: a Said") as failed:
        later["a"]
    assert failed.value.hint == "Rebuild it: ipfsmem index rebuild"
