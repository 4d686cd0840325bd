"""A change of one field or of the body leaves every other byte of a header unchanged, or is refused."""

import json
from pathlib import Path

import pytest

from ipfsmem.bundle.front_matter import front_matter, is_unclosed
from ipfsmem.bundle.header_edit import edit_memory, refuse_over_unclosed, render_over
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory
from ipfsmem.errors import FormatError, LimitError

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures/vectors/memory_file.json").read_text("utf-8"))


@pytest.mark.parametrize("case", VECTORS["edit"], ids=lambda case: case["about"])
def test_header_edit_equals_the_vectors(case):
    def edited():
        return edit_memory(
            case["file"].encode(), dict(case["changes"]), case["body"], stamps=dict(case["stamps"])
        ).decode()

    if case["edited"] is None:
        with pytest.raises(FormatError):
            edited()
    else:
        assert edited() == case["edited"]


@pytest.mark.parametrize("case", VECTORS["unclosed"], ids=lambda case: case["about"])
def test_unclosed_header_is_recognised_and_kept(case):
    text = case["text"]
    assert is_unclosed(text) is case["unclosed"]
    refuse_over_unclosed(text.encode(), text)
    if case["unclosed"]:
        with pytest.raises(FormatError, match="no closing line"):
            refuse_over_unclosed(text.encode(), "A new text.")
    else:
        refuse_over_unclosed(text.encode(), "A new text.")


def test_edit_of_a_header_beyond_the_limit_is_refused():
    full = b"---\nname: " + b"a" * 4080 + b"\nx:\n---\n\nb\n"
    with pytest.raises(LimitError):
        edit_memory(full, {"description": "d" * 20})
    # Dates that were not requested are omitted instead.
    assert edit_memory(full, {}, "new", stamps={"updated": "2026-01-01"}) == full.replace(
        b"\n\nb", b"\n\nnew"
    )


def test_render_over_writes_only_differing_fields():
    data = b"---\n# kept\nname: A\nstatus: a\nstatus: b\n---\n\nbody\n"
    made = parse_memory(data).with_fields({"name": "B"}, "other")
    assert render_over(data, made) == b"---\n# kept\nname: B\nstatus: a\nstatus: b\n---\n\nother\n"
    assert render_over(data, parse_memory(data)) == data
    assert render_over(None, MemoryFile({"name": "A"}, "b")) == b"---\nname: A\n---\n\nb\n"


def test_spaces_after_an_opening_mark_are_read_in_linear_time():
    # Two overlapping patterns once took half an hour for half a million of them.
    assert (
        front_matter("---" + " " * 500_000 + "x\na: b\n---\nbody") == "---" + " " * 500_000 + "x\na: b\n---\n"
    )
    assert front_matter("---" + " " * 500_000 + "1") == ""
