"""Laws of editing other programs' settings: adding and removing an entry restores every byte, and nothing
but the entry differs."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ipfsmem.agents import block_edits, edits, json_edits
from ipfsmem.agents.edits import ConfigEntry, Table
from ipfsmem.agents.json_edits import APPEND
from ipfsmem.agents.json_text import read, value_of
from ipfsmem.errors import FormatError
from tests.support.effort import cases

many = settings(max_examples=cases(60, 4000), deadline=None)

NAMES = ("mcpServers", "hooks", "SessionStart", "ipfsmem", "other", "a b", 'q"\\', "é", "//x", "/*")
names = st.sampled_from(NAMES)
plain = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**20), st.sampled_from([1.5, -2e30]),
    st.text(max_size=6), st.sampled_from(["// no comment", "/* none */", ",}", "\u2028", "🙂", "\ud800"]),
)  # fmt: skip
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
spaces = st.sampled_from(
    ["", "", " ", "  ", "\n", "\n  ", "\n\t", "\r\n  ", " // c\n", "/* c */", " /* c\n c */ "]
)


@st.composite
def written(draw: st.DrawFn, value: Any, *, loose: bool = True) -> str:
    """Return a value as a person may write it: any space, comments, a trailing comma."""
    space = spaces if loose else st.sampled_from(["", " ", "\n", "\n    "])
    if isinstance(value, dict | list) and draw(st.booleans()):
        return json.dumps(
            value, indent=draw(st.sampled_from([None, 2, 4, "\t"])), ensure_ascii=draw(st.booleans())
        )
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=True)
    items = value.items() if isinstance(value, dict) else [(None, each) for each in value]
    parts = []
    for key, each in items:
        name = "" if key is None else json.dumps(key) + draw(space) + ":" + draw(space)
        parts.append(draw(space) + name + draw(written(each, loose=loose)) + draw(space))
    last = "," + draw(space) if parts and loose and draw(st.booleans()) else ""
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + (",".join(parts) or draw(space)) + last + closing


@st.composite
def documents(draw: st.DrawFn, *, loose: bool = True) -> str:
    value = draw(st.dictionaries(names, values, max_size=5))
    space = spaces if loose else st.just("")
    return (
        draw(space)
        + draw(written(value, loose=loose))
        + draw(space)
        + draw(st.sampled_from(["", "\n", "\r\n"]))
    )


paths = st.sampled_from(
    [
        ("mcpServers", "ipfsmem"),
        ("ipfsmem",),
        ("hooks", "SessionStart", APPEND),
        ("other", APPEND),
        ("a b", "é", "x"),
    ]
)
entries = st.sampled_from(
    [{"command": "/bin/x", "args": ["mcp", "--sync"], "env": {}}, {"hooks": [{"type": "command"}]}, []]
)


def dumped(text: str) -> str:
    node = read(text)
    assert node is not None
    return json.dumps(value_of(node))


def test_written_json_equals_that_of_a_strict_reader() -> None:
    @many
    @given(documents(loose=False))
    def check(text: str) -> None:
        assert dumped(text) == json.dumps(json.loads(text))

    check()


def test_added_and_removed_entry_restores_the_text() -> None:
    """Also without the copy."""

    @many
    @given(st.one_of(documents(), spaces, st.just("")), paths, entries)
    def check(text: str, path: tuple[str, ...], value: Any) -> None:
        try:
            edited, added = json_edits.add(text, path, value)
        except FormatError:
            return
        assert json_edits.remove(edited, added) == text
        before = read(text)
        expected = {} if before is None else value_of(before)
        place = expected
        for step in path[:-1]:
            if place.get(step) is None:  # a section that is null is an empty one
                place[step] = [] if path[-1] == APPEND and step == path[-2] else {}
            place = place[step]
        if path[-1] == APPEND:
            place.append(value)
        else:
            place[path[-1]] = value
        assert dumped(edited) == json.dumps(expected)

    check()


def test_several_added_and_removed_entries_restore_the_text() -> None:
    wanted = (
        ConfigEntry(path=("mcpServers", "ipfsmem"), value={"command": "x"}),
        ConfigEntry(
            path=("hooks", "SessionStart", APPEND), value={"hooks": [{"command": "hook a"}]}, mark="hook a"
        ),
        ConfigEntry(path=("hooks", "Stop", APPEND), value={"command": "hook b"}, mark="hook b"),
    )

    @many
    @given(documents(), st.booleans())
    def check(text: str, marked: bool) -> None:
        try:
            data = ("\ufeff" * marked + text).encode()
        except UnicodeEncodeError:
            return
        try:
            if any(True for _ in edits.standing(data, wanted, "p")):
                return
            edited, done = edits.apply(data, wanted, "p")
        except FormatError:
            return
        assert edits.undo(edited, done) == data
        assert [one.same for one in edits.standing(edited, wanted, "p")] == [True, True, True]
        again, _ = edits.apply(edited, wanted, "p")
        assert again == edited

    check()


def test_entries_added_by_other_programs_meanwhile_remain() -> None:
    """Between connecting and disconnecting the program adds, changes and removes what is its own."""

    @many
    @given(documents(), paths, entries, names, values, st.booleans())
    def check(text: str, path: tuple[str, ...], value: Any, name: str, other: Any, behind: bool) -> None:
        assume(name not in path)
        try:
            edited, added = json_edits.add(text, path, value)
            there = json_edits.find(edited, (*path[:-1], name)) if path[-1] != APPEND else ...
            if path[-1] == APPEND:
                later, _ = json_edits.add(edited, path, other)
            elif there is not ... and not isinstance(there, type(json_edits.msgspec.UNSET)):
                return
            else:
                later, _ = json_edits.add(edited, (*path[:-1], name), other)
        except FormatError:
            return
        if path[-1] == APPEND and other == value:
            return
        left = json_edits.remove(later, added)
        wanted = json_edits.find(later, path[:-1]) if path[:-1] else json.loads(dumped(later))
        if path[-1] == APPEND:
            wanted = list(wanted)
            wanted.remove(value)
        else:
            del wanted[path[-1]]
        found = json_edits.find(left, path[:-1]) if path[:-1] else json.loads(dumped(left))
        assert json.dumps(found) == json.dumps(wanted)
        for mark in ("// c", "/* c"):
            assert left.count(mark) == later.count(mark)

    check()


# -- TOML -----------------------------------------------------------------------------------------------------------------

toml_lines = st.sampled_from(
    ['model = "x"', "# a comment", "", "[profiles.p]", "a = 1", "[mcp_servers.other]", 'command = "y"', "[[hooks.Stop]]",
     "[mcp_servers]", "k = 'it''s'", 's = """\n[not.a.table]\n"""', "[tui]", "notifications = true"]
)  # fmt: skip
TABLE = ("mcp_servers", "ipfsmem")
BODY = '[mcp_servers.ipfsmem]\ncommand = "/bin/x"\nargs = ["mcp"]'


@st.composite
def tomls(draw: st.DrawFn) -> str:
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = end.join(draw(st.lists(toml_lines, max_size=8))) + draw(st.sampled_from(["", end]))
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    return text


def test_added_and_removed_block_restores_the_toml() -> None:
    @many
    @given(tomls())
    def check(text: str) -> None:
        try:
            edited, block = block_edits.add(text, BODY, "codex", TABLE)
        except FormatError:
            return
        assert block_edits.remove(edited, block) == text
        data, done = edits.apply(text.encode(), (Table(body=BODY, table=TABLE),), "codex")
        assert data == edited.encode() and edits.undo(data, done) == text.encode()
        said = tomllib.loads(edited)
        assert said["mcp_servers"].pop("ipfsmem") == {"command": "/bin/x", "args": ["mcp"]}
        if not said["mcp_servers"]:
            del said["mcp_servers"]
        before = tomllib.loads(text)
        if not before.get("mcp_servers", True):
            del before["mcp_servers"]
        assert said == before

    check()


def test_block_is_removed_from_an_extended_toml() -> None:
    @many
    @given(tomls(), tomls())
    def check(text: str, later: str) -> None:
        try:
            edited, block = block_edits.add(text, BODY, "codex", TABLE)
            with_more = edited + later
            both = tomllib.loads(with_more)
            left = block_edits.remove(with_more, block)
        except (FormatError, tomllib.TOMLDecodeError):
            return
        both["mcp_servers"].pop("ipfsmem")
        assert {k: v for k, v in tomllib.loads(left).items() if v} == {k: v for k, v in both.items() if v}

    check()
