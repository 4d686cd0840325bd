"""An unquoted value is the same text for another YAML reader."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from ipfsmem.bundle.header import read_yaml, render_tags, write_header, yaml_mapping
from ipfsmem.errors import FormatError
from tests.support.parsers import TYPED, VALUES


@pytest.mark.parametrize("text", sorted({*TYPED, *VALUES} - {""}))
def test_text_as_value_name_and_tag_is_the_same_for_pyyaml(text):
    fields = {"name": text, "tags": render_tags([text, "other"]), "x": text, text: "value"}
    found = yaml.safe_load(write_header(fields))
    tags = [tag for tag in (text.strip(" \t\r"), "other") if tag]
    assert found == {"name": text, "tags": tags, "x": text, **{text: "value"}}


def test_fields_with_a_type_of_their_own_stay_unquoted():
    fields = {"created": "2026-01-02", "important": "true", "confidence": "0.85", "decay": "30d"}
    assert write_header(fields) == "created: 2026-01-02\ndecay: 30d\nimportant: true\nconfidence: 0.85\n"


def test_invalid_date_is_quoted_for_strict_yaml_readers():
    assert yaml.safe_load(write_header({"created": "2026-13-45"})) == {"created": "2026-13-45"}


#: Pieces of YAML, above all those that libyaml and PyYAML's own loader read differently.
_PIECES = (
    "a", "b", "x y", "1", "é", "tags", "metadata", "k: v\n", "k:\n  - a\n", ": ", ":", ":\t", "- ", "-\t", "- - ", "? ", "?", "\t", "\t", " ",
    "  ", "\n", "\n  ", "\n- ", "\n\t", "\n \t", "\n\n", ",", ", ", ",\t", "[", "]", "{", "}", "[]", "{a: b}", '"', "'", '"q"', "'q'", "#", " #",
    "\t#", " # c\n", "|", ">", "|\n", "|\t\n", ">-\n  ", "|2\n", "&", "*", "!", "%", "~", "...", "---", "\\",
)  # fmt: skip


def _said(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except FormatError:
        return None


@pytest.mark.skipif(not hasattr(yaml, "CBaseLoader"), reason="this Python's PyYAML has no libyaml")
@given(st.lists(st.sampled_from(_PIECES), max_size=14).map("".join), st.sampled_from(["", "k: v\n"]))
@example("name:\tTea", "")
@example("name\t: Tea\t# a comment", "")
@example("a: two\twords\n  and\tmore", "")
@example("tags:\t[a,\tb\t]\nx: |\t\n  text\tof it\n", "")
@example("a: b\n\tc: d", "k: v\n")
def test_header_is_read_the_same_without_libyaml(text: str, before: str) -> None:
    def mapping(one: str) -> Any:
        return yaml_mapping(one, lambda event: (event.value, event.style or ""))

    for read in (read_yaml, mapping):
        with_it = _said(read, before + text)
        with mock.patch.object(yaml, "CBaseLoader", None):
            assert _said(read, before + text) == with_it
