"""Reading the settings file table by table gives the same settings as reading it whole."""

from __future__ import annotations

import json
import tomllib
from typing import Any, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem import config
from ipfsmem.config import Settings, read_settings

VALUES = st.sampled_from(
    [True, False, 0, 1, 2.5, -1, 200_001, "", "on", "off", "oldest", [], ["a"], {}, {"a": 1}]
)
TABLES = [name for name, kind in get_type_hints(Settings).items() if "Settings" in str(kind)]


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """Return a settings file with valid and invalid values."""
    said = draw(
        st.dictionaries(st.sampled_from([*Settings.__struct_fields__, "nothing"]), VALUES, max_size=3)
    )
    for name in draw(st.lists(st.sampled_from(TABLES), max_size=4)):
        fields = [*msgspec.structs.asdict(config._TYPES[name]()), "other"]
        said[name] = draw(st.dictionaries(st.sampled_from(fields), VALUES, max_size=3))
    return said


def as_toml(said: Any) -> str:
    """Return a value as inline TOML."""
    if isinstance(said, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {as_toml(one)}" for name, one in said.items()) + "}"
    return json.dumps(said)


@given(tables())
def test_settings_read_by_table_equal_the_whole_file(said: dict[str, Any]) -> None:
    text = "".join(f"{name} = {as_toml(value)}\n" for name, value in said.items())
    try:
        whole = msgspec.convert(tomllib.loads(text), Settings)
    except (msgspec.ValidationError, ValueError) as wrong:
        with pytest.raises(type(wrong)) as raised:
            read_settings(text)
        assert str(raised.value) == str(wrong)
    else:
        assert read_settings(text) == whole


def test_every_setting_is_read_with_its_type() -> None:
    plain = {"home", "vault", "provider", "label", "compress"}
    expected = {name: kind for name, kind in get_type_hints(Settings).items() if name not in plain}
    known = {name: kind for name, kind in config._TYPES.items() if name not in plain}
    assert config._TYPES.keys() == set(Settings.__struct_fields__)
    assert {name: kind | None for name, kind in known.items()} == {
        name: kind | None for name, kind in expected.items()
    }
