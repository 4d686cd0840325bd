"""Laws of changing one setting in the file: it changes that value only, and removing it restores the file."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ipfsmem.config import read_settings
from ipfsmem.errors import FormatError
from ipfsmem.setting_edit import with_value, without_value
from ipfsmem.setting_list import all_settings
from tests.support.effort import cases

SETTINGS = [*all_settings().values()]
#: Lines without a setting, or that only look like one.
NOISE = st.sampled_from(
    ["", "# a comment", "  # resume = 3", "#[sessions]", '# "', "\t", "# [dream] # enabled = true"]
)


@st.composite
def chosen(draw: st.DrawFn) -> tuple[list[str], Any]:
    """Return a setting and a valid value, unless it depends on others."""
    one = draw(st.sampled_from([one for one in SETTINGS if not one.name.endswith("compact_keep")]))
    if one.choices:
        value: Any = draw(st.sampled_from(one.choices))
    elif one.kind is bool:
        value = draw(st.booleans())
    elif one.kind is str:
        value = draw(st.text(st.characters(blacklist_categories=("Cs",)), max_size=12))
    else:
        least, most = one.least or 0, min(one.most or 500, 1_000)
        number = draw(st.floats(least, most) if one.kind is float else st.integers(int(least), int(most)))
        value = max(number, 21) if one.name.endswith("compact_at") else number
    return one.name.split("."), value


@st.composite
def files(draw: st.DrawFn) -> str:
    """Return a settings file as a person may write it: tables in any order, comments, space, either line
    end."""
    text = "\n".join(draw(st.lists(NOISE, max_size=2))) + "\n"
    for way, value in draw(st.lists(chosen(), max_size=6)):
        text = with_value(text, way, value)
        lines = text.removesuffix("\n").split("\n")
        at = draw(st.integers(0, len(lines)))
        lines[at:at] = draw(st.lists(NOISE, max_size=1))
        behind = draw(st.integers(0, len(lines) - 1))
        if lines[behind].strip() and "#" not in lines[behind] and '"' not in lines[behind]:
            lines[behind] += draw(st.sampled_from(["", " # why", "\t#x", "   "]))
        text = "\n".join(lines) + "\n"
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


def flat(table: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Return each value by its full name, so that an empty table is omitted."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        found |= flat(value, f"{before}{name}.") if isinstance(value, dict) else {before + name: value}
    return found


@example("\n", (["home"], "\x85"))
@settings(max_examples=cases(60, 4000), deadline=None)
@given(files(), chosen())
def test_edit_changes_one_value_only(text: str, given_: tuple[list[str], Any]) -> None:
    way, value = given_
    before, name = flat(tomllib.loads(text)), ".".join(way)
    after = with_value(text, way, value)
    assert flat(tomllib.loads(after)) == {**before, name: value}
    assert with_value(after, way, value) == after
    read_settings(after)
    left = without_value(after, way)
    assert flat(tomllib.loads(left)) == {one: each for one, each in before.items() if one != name}
    assert without_value(left, way) == left
    comments = [line for line in text.split("\n") if line.lstrip().startswith("#")]
    assert [line for line in left.split("\n") if line.lstrip().startswith("#")] == comments


@settings(max_examples=cases(100, 4000), deadline=None)
@given(st.text(max_size=60), chosen())
def test_any_file_is_changed_correctly_or_refused(text: str, given_: tuple[list[str], Any]) -> None:
    way, value = given_
    try:
        after = with_value(text, way, value)
    except FormatError:
        return
    assert flat(tomllib.loads(after)) == {**flat(tomllib.loads(text)), ".".join(way): value}
