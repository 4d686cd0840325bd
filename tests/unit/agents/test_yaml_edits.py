"""Entries in a YAML text: removal restores every layout byte for byte, and unsafe edits are refused."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.agents import yaml_edits
from ipfsmem.agents.yaml_edits import YamlEntry
from ipfsmem.errors import FormatError

PATH = ("extensions", "ipfsmem")
VALUE: dict[str, Any] = {
    "type": "stdio",
    "name": "ipfsmem",
    "enabled": True,
    "cmd": "/Users/Zoë M/a: #b/{x}",
    "args": ["mcp", "--sync"],
    "timeout": 300,
}
WANTED = YamlEntry(path=PATH, value=VALUE)
LISTED = YamlEntry(path=PATH, value={"name": "ipfsmem", "command": "/x", "args": ["mcp"]}, listed=True)
LAYOUTS = {
    "empty": "",
    "comment only": "# nothing yet\n",
    "comment without a line end": "# nothing yet",
    "a document mark": "---\n",
    "braces": "{}\n",
    "braces with a name": '{"GOOSE_MODE": auto}',
    "no extensions": "GOOSE_MODE: auto  # mine\n",
    "no line end": "GOOSE_MODE: auto",
    "extensions without a value": "extensions:\nGOOSE_MODE: auto\n",
    "extensions at the end, without a value": "GOOSE_MODE: auto\nextensions:",
    "extensions with a comment": "extensions: # none yet\n  # soon\nGOOSE_MODE: auto\n",
    "empty extensions": "extensions: {}\nGOOSE_MODE: auto\n",
    "extensions in braces": "extensions: {developer: {type: builtin, name: developer}}\n",
    "braces over two lines": "extensions: {\n  developer: {type: builtin}\n}\nb: 1\n",
    "an indented root": "  extensions:\n      developer:\n        type: builtin\n  b: 1\n",
    "one space": "extensions:\n developer:\n  type: builtin\n",
    "Windows": "a: 1\r\nextensions:\r\n  developer:\r\n    type: builtin\r\n",
    "block text": "extensions:\n  a:\n    description: |+\n      one\n\n      ipfsmem:\n\nb: >-\n  two\n  three\n",
    "anchors": "x: &x {type: builtin}\nextensions: &all\n  a: *x\n  b:\n    <<: *x\nlater: *all\n",
    "a tag": "extensions: !!map\n  a: !mine 1\n",
    "quoted": '"extensions":\n  \'a\': "ipfsmem: 1"\n',
    "our name elsewhere": "ipfsmem:\n  extensions:\n    ipfsmem: 1\n",
    "a list below": "extensions:\n  a:\n    args:\n    - -y\n    - {b: [1]}\nlist:\n- 1\n- 2\n",
}
REFUSED = {
    "no YAML": "a: [\n",
    "a tab": "extensions:\n\ta: 1\n",
    "a list": "- a\n",
    "a text": "hello\n",
    "two documents": "a: 1\n---\nextensions: {}\n",
    "a list of extensions": "extensions: []\n",
    "a text as extensions": "extensions: none\n",
    "twice": "extensions: {}\nb: 1\nextensions: {}\n",
    "an explicit key": "? extensions\n: a: 1\n",
    "an alias": "x: &x {a: 1}\nextensions: *x\n",
    "open text": "a: |\n  text without a line end",
    "control character": "a: \x01\n",
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_yaml_entry_of_any_layout_is_added_and_removed_to_the_byte(text: str) -> None:
    edited, done = yaml_edits.add(text, WANTED)
    assert yaml_edits.find(edited, WANTED) == VALUE
    assert yaml_edits.remove(edited, done) == text
    kept = [line for line in edited.splitlines() if line in text.splitlines()]
    assert "{" in text or kept == text.splitlines()
    assert ("\r" in text) == ("\r" in edited)
    assert "\r" not in text or edited.count("\n") == edited.count("\r\n")


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_yaml_that_cannot_be_edited_safely_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        yaml_edits.add(text, WANTED)


def says(text: str) -> Mapping[str, Any]:
    found = yaml.load(text, Loader=yaml.SafeLoader)
    return {} if found is None else found


PLAIN = {name: text for name, text in LAYOUTS.items() if "tag" not in name}


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
@pytest.mark.parametrize("more", [False, True], ids=["as it was", "with one more"])
def test_yaml_entry_is_removed_after_program_rewrote_the_file(text: str, more: bool) -> None:
    """goose rewrites the whole file: without comments, in its own layout, with its own fields."""
    edited, done = yaml_edits.add(text, WANTED)
    rewritten = dict(says(edited))
    rewritten["extensions"]["ipfsmem"] |= {"enabled": False, "envs": {}, "bundled": None, "args": ["mcp"]}
    if more:
        rewritten["extensions"]["later"] = {"type": "builtin"}
    for flow in (False, True, None):
        written = yaml.dump(rewritten, default_flow_style=flow, sort_keys=False)
        expected = copy.deepcopy(rewritten)
        del expected["extensions"]["ipfsmem"]
        if done.made and not more:
            del expected["extensions"]
        assert says(yaml_edits.remove(written, done)) == expected


def test_yaml_entry_is_removed_without_later_neighbours() -> None:
    edited, done = yaml_edits.add("a: 1\n", WANTED)
    later = edited + "  # theirs\n  later:\n    type: builtin\n"
    assert yaml_edits.remove(later, done) == "a: 1\nextensions:\n  # theirs\n  later:\n    type: builtin\n"


def test_edited_yaml_entry_is_removed_with_its_lines_only() -> None:
    edited, done = yaml_edits.add(LAYOUTS["a list below"], WANTED)
    changed = edited.replace("enabled: true", "enabled: false  # for now")
    assert changed != edited
    assert yaml_edits.remove(changed, done) == LAYOUTS["a list below"]


def test_yaml_entry_referenced_elsewhere_is_not_removed() -> None:
    edited, done = yaml_edits.add("a: 1\n", WANTED)
    text = edited.replace("ipfsmem:\n", "ipfsmem: &ours\n", 1) + "b: *ours\n"
    with pytest.raises(FormatError, match=r"extensions\.ipfsmem"):
        yaml_edits.remove(text, done)
    assert yaml_edits.remove("a: 1\n", done) == "a: 1\n"


LISTS = {
    "empty": "",
    "no list": "name: Mine\n",
    "without a value": "extensions:\nb: 1\n",
    "empty list": "extensions: []\n",
    "in brackets": "extensions: [{name: a, command: b}]\nb: 1\n",
    "brackets over lines": "extensions: [\n  {name: a},\n]\n",
    "braces": "{a: 1}\n",
    "not indented": "extensions:\n- name: a-b\n  args:\n  - -y\n- plain\nb: 1\n",
    "indented": "extensions: # mine\n  # first\n  -   name: a\n      command: b\n\n  - uses: c/d\n",
    "a dash alone": "extensions:\n  -\n    name: a\n",
}


@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("written_anew", [False, True])
def test_yaml_list_item_is_added_and_removed(text: str, written_anew: bool) -> None:
    edited, done = yaml_edits.add(text, LISTED)
    assert yaml_edits.find(edited, LISTED) == LISTED.value
    assert yaml_edits.remove(edited, done) == text
    for flow in (False, True) if written_anew else ():
        left = says(yaml_edits.remove(yaml.dump(says(edited), default_flow_style=flow), done))
        assert {key: value for key, value in left.items() if value} == {
            key: value for key, value in says(text).items() if value
        }


@pytest.mark.parametrize("text", ["extensions: {}\n", "extensions: a\n", "- a\n", "extensions:\n- name: ipfsmem\n- name: ipfsmem\n"])  # fmt: skip
def test_yaml_non_list_or_duplicate_name_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        yaml_edits.add(text, LISTED)


scalars = st.one_of(st.text(max_size=8), st.integers(-5, 5), st.booleans(), st.none())
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=8
)  # fmt: skip


@given(
    outside=st.dictionaries(st.text(max_size=6), values, max_size=3),
    inside=st.none() | st.dictionaries(st.text(max_size=6), values, max_size=3),
    flow=st.sampled_from([True, False, None]),
    words=st.lists(st.text(max_size=12), max_size=3),
)
def test_yaml_entry_in_random_settings_is_added_and_removed(
    outside: dict[str, Any], inside: dict[str, Any] | None, flow: bool | None, words: list[str]
) -> None:
    whole = {key: value for key, value in outside.items() if key != PATH[0]}
    if inside is not None:
        whole[PATH[0]] = {key: value for key, value in inside.items() if key != PATH[1]}
    text = yaml.dump(whole, default_flow_style=flow, allow_unicode=True, sort_keys=False)
    value = {**VALUE, "args": words}
    try:
        edited, done = yaml_edits.add(text, YamlEntry(path=PATH, value=value))
    except FormatError:
        assert inside is None or "? " in text  # an open block of text at the end, a key of its own line
        return
    said = says(text)
    assert says(edited) == {**said, PATH[0]: {**said.get(PATH[0], {}), PATH[1]: value}}
    assert yaml_edits.remove(edited, done) == text
