"""The plain reader, written from docs/FORMAT.md alone, reads the vectors as expected and mutated inputs as
this package does.

A difference is a fault of this package or an unclear rule. `python -m bench.soak parsers` compares more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.effort import cases
from tests.support.parsers import plain_differences
from tests.support.plain import texts, views

VECTORS = Path(__file__).parents[3] / "fixtures" / "vectors"


def rows(file: str, part: str) -> list[Any]:
    found: list[Any] = json.loads((VECTORS / f"{file}.json").read_text("utf-8"))[part]
    return found


def test_plain_reader_on_mutated_inputs_agrees_with_the_package() -> None:
    assert plain_differences(seed=4711, count=cases(3_000, 60_000))[:3] == []


def test_plain_reader_reads_memory_files_as_in_the_vectors() -> None:
    judged = 0
    for row in rows("memory_file", "read"):
        try:
            file = texts.read_file(row["file"].encode())
        except texts.NotJudged:
            continue
        judged += 1
        assert [[list(one) for one in file.fields.items()], file.body] == [row["fields"], row["body"]], row
        assert texts.render_file(file) == row["rendered"], row
    assert judged > 120
    for row in rows("memory_file", "render"):
        assert texts.render_file(texts.File(dict(row["fields"]), row["body"])) == row["file"], row
    for row in rows("memory_file", "bad"):
        with pytest.raises(texts.Refused):
            texts.read_file(bytes.fromhex(row["file_hex"]))
    for row in rows("memory_file", "sizes"):
        data = b"".join(text.encode() * times for text, times in row["parts"])
        if row["error"] is None:
            texts.read_file(data)
        else:
            with pytest.raises(texts.Refused):
                texts.read_file(data)


def test_plain_reader_reads_timelines_as_in_the_vectors() -> None:
    for row in rows("timeline", "parse"):
        (event,) = texts.read_lines(bytes.fromhex(row["line_hex"]), "2026-04-15")
        assert texts.event_line(event) == row["event_line"], row
    for row in rows("timeline", "lines"):
        assert texts.event_line(row["event"]) == row["line"]
        assert texts.foreign_id(row["event"]) == row["foreign_id"]
    assert [texts.normal_ts(row["ts"]) for row in rows("timeline", "instants")] == [
        row["normal"] for row in rows("timeline", "instants")
    ]
    assert [text for text in rows("timeline", "bad_instants") if texts.normal_ts(text) is not None] == []
    for row in rows("timeline", "own_ids"):
        assert texts.own_id(row["id"]) == (None if row["device"] is None else (row["device"], row["n"])), row


def test_plain_reader_names_keys_as_in_the_vectors() -> None:
    assert [key for key in rows("keys", "valid") if not texts.is_key(key)] == []
    assert [key for key in rows("keys", "invalid") if texts.is_key(key)] == []
    assert [key for key in rows("keys", "scopes") if not texts.is_scope(key)] == []
    assert [key for key in rows("keys", "no_scopes") if texts.is_scope(key)] == []
    for row in rows("keys", "foreign"):
        assert texts.foreign_key(row["name"]) == (row["key"], row["origin_name"]), row
    for row in rows("keys", "conflict_names"):
        assert texts.conflict_name(row["name"]) == (row["key"] and (row["key"], row["hash"])), row
    for row in rows("value_key", "keys"):
        free = "".join(text * times for text, times in row["parts"])
        if row["key"] is None:
            with pytest.raises(texts.Refused):
                texts.value_key(free)
        else:
            assert texts.value_key(free) == row["key"], row


def test_plain_reader_reads_names_and_cards_as_in_the_vectors() -> None:
    for row in rows("scopes", "names"):
        name = texts.entry_name(row["name"])
        assert (name.kind, name.scope, name.ctx) == (
            row["kind"][0].replace("s", "t"),
            row["scope"],
            row["ctx"],
        ), row
    for refused in rows("scopes", "refused_names"):
        with pytest.raises(texts.Refused):
            texts.entry_name(refused)
    for row in rows("scopes", "cards"):
        assert texts.read_card(row["json"].encode()) == json.loads(row["json"])
    for row in rows("scopes", "refused_cards"):
        with pytest.raises(texts.Refused):
            texts.read_card(row["json"].encode())


def test_plain_reader_merges_as_in_the_vectors() -> None:
    for row in rows("merge3", "lines"):
        merged = views.merge_lines(list(row["base"]), list(row["a"]), list(row["b"]))
        assert (None if merged is None else "".join(merged)) == row["merged"], row
    for row in rows("merge3", "fields"):
        fields = views.merge_fields(dict(row["base"]), dict(row["a"]), dict(row["b"]))
        assert (None if fields is None else [list(one) for one in fields.items()]) == row["merged"], row


def test_plain_reader_views_alternatives_as_in_the_vectors() -> None:
    for row in rows("view", "views"):
        said: dict[str, str] = json.loads((VECTORS / "view.json").read_text("utf-8"))["texts"]
        here = {body: said[body].encode() for body in row["at_hand"]}

        def body_of(body: str, here: dict[str, bytes] = here) -> bytes | None:
            return next((data for one, data in here.items() if one.startswith(body)), None)

        seen = views.view(row["entry"], body_of)
        assert (seen.data and seen.data.decode(), seen.merged, seen.forgotten) == (
            row["shown"],
            row["merged"],
            row["forgotten"],
        ), row
        assert [list(one) for one in views.copies("tone", seen.conflicts)] == [
            [one["file"], one["body"]] for one in row["conflicts"]
        ], row
        assert seen.hidden == [one["body"] for one in row["hidden"]], row
        assert seen.not_fetched == row["not_fetched"], row
