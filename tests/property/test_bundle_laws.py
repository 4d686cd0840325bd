"""Laws of the bundle: nothing gets lost, one normal form, no text becomes structure."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem import wordlist
from ipfsmem.bundle import header, keys, secret_kinds, secrets, timeline
from ipfsmem.bundle.blob import read_blob, write_blob
from ipfsmem.bundle.index import IndexItem, cap_index, render_index
from ipfsmem.bundle.memory_file import MemoryFile, parse_fields, parse_memory, render_memory
from ipfsmem.errors import FormatError, IpfsmemError, LimitError
from tests.support.effort import cases

SPICE = "-?:,[]{}#&*!|>'\"%@` \n\r\t\\\x00\x85\u2028\ufeffaé🙂"
text = st.one_of(st.text(max_size=40), st.text(st.sampled_from(SPICE), max_size=20))
names = st.one_of(st.sampled_from(header.KNOWN), text, st.just("metadata"), st.just("comment"))
fields = st.dictionaries(names, text, max_size=6)
lines = st.sampled_from(
    [
        "---",
        "--- ",
        "name: X",
        "a: 'b'",
        'a: "b',
        "metadata:",
        "  type: user",
        "  - x",
        "- y",
        "# c",
        "",
        " ",
        "x",
        "a: >",
        "tags:",
        "\ufeff",
        "a: [",
        "? b",
        "&a b: c",
        "---\r",
    ]
)
documents = st.tuples(st.lists(lines, max_size=9), st.sampled_from(["\n", "\r\n"])).map(
    lambda d: d[1].join(d[0])
)
quick = settings(max_examples=cases(50, 750), deadline=None)


def normal(memory: MemoryFile) -> MemoryFile:
    kept = {name: value for name, value in memory.fields.items() if value}
    if "tags" in kept:
        kept["tags"] = header.render_tags(header.parse_tags(kept["tags"]))
    return MemoryFile({k: v for k, v in kept.items() if v}, memory.body.rstrip("\n"))


@quick
@given(fields, text)
def test_rendered_memory_parses_to_its_normal_form(values, body):
    memory = MemoryFile(values, body)
    data = render_memory(memory)
    assert parse_memory(data) == normal(memory)
    assert render_memory(parse_memory(data)) == data
    assert parse_fields(data).fields == normal(memory).fields


@quick
@given(text, text)
def test_text_never_becomes_header_structure(description, body):
    data = render_memory(MemoryFile({"name": "N", "description": description, "type": "user"}, body))
    memory = parse_memory(data)
    assert set(memory.fields) <= {"name", "description", "type"}
    assert (memory.description, memory.type, memory.body) == (description, "user", body.rstrip("\n"))
    assert data.split(b"\n---\n")[0].count(b"\n") == (3 if description else 2)


@quick
@given(st.one_of(documents, text, st.builds("{}\n{}".format, documents, text)))
def test_any_document_has_one_normal_form(document):
    data = document.encode()
    memory = parse_memory(data)
    assert parse_fields(data).fields == memory.fields
    once = render_memory(memory)
    assert parse_memory(once) == normal(memory)
    assert render_memory(parse_memory(once)) == once
    if not memory.fields:
        said = document.removeprefix("\ufeff")
        assert said.rstrip("\n") == memory.body or said.startswith("---")


@quick
@given(st.binary(max_size=60))
def test_random_bytes_are_read_or_refused(data):
    for read in (parse_memory, read_blob, timeline.parse_lines):
        try:
            read(data)
        except IpfsmemError:
            pass


@quick
@given(st.lists(text, max_size=5))
def test_tags_round_trip(items):
    trimmed = tuple(i for i in (item.strip(" \t\r") for item in items) if i)
    assert header.parse_tags(header.render_tags(items)) == trimmed


@quick
@given(st.text(max_size=80))
def test_any_name_becomes_a_key(name):
    key, origin = keys.key_of_foreign_name(name)
    assert keys.is_key(key)
    assert origin == (None if name == f"{key}.md" else name)


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-1e15, 1e15)
    | st.text(max_size=8)
)
values = st.recursive(
    scalars,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v, max_size=3),
    max_leaves=6,
)
events = st.builds(
    lambda rest, moment, kind, n: {
        **rest, "ts": moment.isoformat(), "type": kind, "id": timeline.own_id("00aabbccddeeff11", n)
    },
    st.dictionaries(st.text(max_size=6), values, max_size=4),
    st.datetimes(),
    st.text(max_size=6),
    st.integers(1, 5),
)  # fmt: skip
event_lists = st.lists(events, max_size=5)


@quick
@given(events)
def test_event_round_trips(event):
    line = timeline.event_line(event)
    assert b"\n" not in line
    (again,) = timeline.parse_lines(line + b"\n")
    assert timeline.event_line(again) == line
    assert json.loads(line) == json.loads(json.dumps(event))
    assert timeline.foreign_id(again) == timeline.foreign_id(event)


def shown(found):
    return [timeline.event_line(e) for e in found]


@quick
@given(event_lists, event_lists, event_lists)
def test_union_is_a_join(a, b, c):
    union = timeline.union
    assert shown(union(a, b)) == shown(union(b, a)) == shown(union(b + a))
    assert shown(union(union(a, b), c)) == shown(union(a, union(b, c)))
    assert shown(union(a, a)) == shown(union(a)) == shown(union(union(a)))
    bodies = {timeline.foreign_id(e) for e in a + b}
    assert {timeline.foreign_id(e) for e in union(a, b)} == bodies


file_sets = st.dictionaries(
    st.from_regex(r"[a-z0-9][a-z0-9_-]{0,5}", fullmatch=True).filter(keys.is_key), text, max_size=4
)


@quick
@given(file_sets, event_lists, text)
def test_export_file_round_trips(files, found, index):
    data = {key: value.encode() for key, value in files.items()}
    written = write_blob(data, found, index)
    blob = read_blob(written)
    assert (blob.files, blob.index, blob.more, blob.problems) == (data, index, (), ())
    assert write_blob(blob.files, blob.events, blob.index) == written
    json.loads(written)


@quick
@given(st.dictionaries(st.text(max_size=12), text, max_size=5))
def test_foreign_files_keep_their_text(files):
    blob = read_blob(json.dumps({"files": files}).encode())
    assert not blob.problems
    left_out = {n for n in files if n == "MEMORY.md" or keys.split_conflict_name(n)}
    assert len(blob.files) + len(blob.more) == len(files) - len(left_out)
    for name, value in files.items():
        if name not in left_out:
            key, origin = keys.key_of_foreign_name(name)
            ours = parse_memory(blob.files[key])
            assert ours.body == parse_memory(value.encode()).body
            assert ours.origin_name == (origin or ours.origin_name)


items = st.builds(
    IndexItem,
    st.from_regex(r"[a-z0-9]{1,3}", fullmatch=True).filter(keys.is_key),
    text, text, st.sampled_from(["user", "feedback", "project", "reference", "", "x"]),
)  # fmt: skip


@quick
@given(st.lists(items, max_size=12), st.integers(3, 30), st.integers(60, 500))
def test_index_has_one_line_per_memory_and_respects_its_limits(found, max_lines, max_bytes):
    whole = render_index(found)
    assert sum(line.startswith("- [") for line in whole.splitlines()) == len(found)
    assert len(whole.splitlines()) == whole.count("\n")
    capped = cap_index(whole, [i.key for i in found], max_lines, max_bytes)
    assert capped.count("\n") <= max_lines and len(capped.encode()) <= max_bytes
    assert {x for x in capped.split("\n") if x.startswith("- [")} <= set(whole.split("\n"))


@quick
@given(st.text(max_size=200))
def test_redaction_leaves_no_finding(value):
    for found in secrets.find_secrets(value):
        assert 0 <= found.start < found.end <= len(value)
    assert secrets.find_secrets(secrets.redact(value)) == []


@quick
@given(st.text(min_size=1, max_size=10), st.integers(3000, 6000))
def test_header_limit_raises_our_error(char, count):
    try:
        data = render_memory(MemoryFile({"name": char * count}))
    except LimitError:
        return
    except FormatError:
        raise
    assert len(data) <= 4096 + 8


#: Pieces of hints, tokens and phrases, whole and cut, and separators.
PIECES = st.one_of(
    st.sampled_from([hint for _, hints, _ in secret_kinds.SHAPES for hint in hints]),
    st.sampled_from([prefix for _, prefixes, _, _ in secret_kinds.PREFIXES for prefix in prefixes]),
    st.sampled_from(
        ["zoo", "act", "abandon", "winner", "of", "notaword", "zoo " * 11, "act," * 5, "zoo 1. " * 6]
    ),
    st.sampled_from(
        [
            "k9#mQ2v&Lp",
            "password for prod ==> Ab3!",
            "密码是",
            "\u017fecret: a1b2c3",
            "\u212aey is ",
            "| password |\n",
            "ABCDEFGHIJ234567",
            "aB3" * 12,
            "a" * 31,
            "0f" * 32,
            "password=x1" + "y" * 8,
            "private key: ",
            "my pin for the LED: 47",
            "key: ",
            "4711",
        ]
    ),
    st.sampled_from(
        [" ", "\n", ", ", "-", "_", ":", "/", ".", "\u017f", "\u212a", "\u0130", "\ud800", " " * 9]
    ),
    st.text(st.sampled_from("aekpsxyzJAKIG-_:/. \n1é"), max_size=50),
)


@given(st.lists(PIECES, max_size=40).map("".join))
@settings(max_examples=cases(300, 20_000))
def test_fast_secret_scan_equals_the_full_scan(text):
    found = secrets.find_secrets(text)
    sought = {*secrets._HINTS, *secrets._STEMS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            secrets._SOUGHT,
            "found",
            lambda lower, words: {each for each in sought if each in lower},
        )
        patch.setattr(secrets, "_runs", lambda raw: [(0, len(raw))])
        patch.setattr(secrets, "_BY_LENGTH", [(0, 0, "", number) for *_, number in secrets._BY_LENGTH])
        patch.setattr(secrets, "_LEAST_DIGITS", (0,) * len(secrets._SHAPES))
        patch.setattr(secrets, "_NEEDED", {})
        patch.setattr(secrets, "_LONG_RUN", 0)
        patch.setattr(secrets, "_has_card_groups", lambda raw: True)
        patch.setattr(secrets, "_twelve_list_words", rows_of_list_words)
        assert secrets.find_secrets(text) == found


def rows_of_list_words(words):
    """Return all consecutive list words, however few."""
    ends = [n for n, word in enumerate(words) if word.decode() not in wordlist.word_indexes()]
    return [range(a + 1, b) for a, b in pairwise([-1, *ends, len(words)])]


@given(
    st.lists(st.sampled_from(["of", "notaword", "1.", "-", "is", "zebra-crossing"]), max_size=30),
    st.lists(st.sampled_from(sorted(wordlist.word_indexes(), key=len)[:100]), min_size=12, max_size=12),
    st.sampled_from([" ", "\n", ". 1) ", "        "]),
    st.integers(0, 60),
)
def test_twelve_list_words_in_a_row_are_found_anywhere(before, words, between, spaces):
    """With the shortest words of the list."""
    row = (" " * spaces + " ".join(before) + " " + between.join(words)).encode()
    for raw in (row, row + b" of", between.join(words).encode()):
        assert secrets._twelve_list_words(raw.translate(secrets._AS_WORDS).split())
