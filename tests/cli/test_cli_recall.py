"""`ipfsmem recall`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ipfsmem.recall.ranking import WEIGHTS
from tests.servers.embeddings import EmbeddingsServer
from tests.servers.threaded import serve
from tests.support.cli_lab import Cli


def test_score_parts_of_recall_add_up(cli: Cli) -> None:
    cli.ok("write", "music", "--body", "Plays the viola and the cello.", "--type", "user", "--tag", "home")
    cli.ok("write", "tea", "--body", "Green tea in the morning, and never a viola.")
    cli.ok("write", "work", "--body", "Builds bridges.")
    (first, second) = cli.ok("recall", "who plays the viola?", "--explain", "--json").json["hits"]
    assert (first["key"], second["key"]) == ("music", "tea")
    for hit in (first, second):
        assert hit["score"] == pytest.approx(sum(hit["parts"].values()))
    assert first["words"] == ["plays", "viola"] and second["words"] == ["viola"]
    assert cli.ok("recall", "viola", "--json").json["hits"][0]["parts"] is None
    rows = [line.split() for line in cli.ok("recall", "plays", "--explain").out.splitlines()]
    numbers = {row[0]: float(row[1]) for row in rows if len(row) == 2 and row[1][-4:-3] == "."}
    score = numbers.pop("score")
    assert score > 10 and round(sum(numbers.values()), 3) == score


def test_recall_filters_results_and_marks_overrides_in_a_stack(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "direct")
    cli.ok("write", "tone", "--body", "direct and formal", "--scope", "work")
    found = cli.ok("recall", "direct", "--stack", "work", "--json").json
    assert [(hit["scope"], hit["hides"]) for hit in found["hits"]] == [("work", [""])]
    assert "overrides the memory in the default scope" in cli.ok("recall", "direct", "--stack", "work").out
    assert cli.ok("recall", "direct", "--category", "none").out == ""
    writer = cli.ok("recall", "direct", "--json").json["hits"][0]["by"]
    assert len(cli.ok("recall", "direct", "--by", writer, "--json").json["hits"]) == 1


def test_recall_by_an_unknown_writer_names_the_writers(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "direct")
    writer = cli.ok("recall", "direct", "--json").json["hits"][0]["by"]
    refused = cli("recall", "direct", "--by", "Mallory")
    assert refused.code == 2 and "nobody who wrote here is called 'Mallory'" in refused.err
    assert f"Writers: {writer}." in refused.err
    assert len(cli.ok("recall", "direct", "--by", writer, "--json").json["hits"]) == 1


def test_recall_applies_threshold_and_reasons_of_a_configured_model(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "named.toml"
    settings.write_text('[embeddings]\nprovider = "off"\n')
    monkeypatch.setenv("IPFSMEM_CONFIG", str(settings))
    monkeypatch.delenv("IPFSMEM_EMBEDDINGS")
    cli.ok("write", "drinks", "--body", "An espresso machine stands in the kitchen")
    cli.ok("write", "travel", "--body", "The train to Lisbon leaves at nine")
    refused = cli("recall", "espresso", "--threshold", "0.3")
    assert refused.code == 2 and "none is set" in refused.err and "[embeddings]" in refused.err
    assert cli("recall", "espresso", "--threshold", "2").code == 2
    with serve(EmbeddingsServer().app) as address:
        settings.write_text(f'[embeddings]\nmodel = "hashed-words"\nbase_url = "{address}/v1"\n')
        first = cli.ok("recall", "espresso")
        assert "indexing this vault" in first.err and "on this machine" in first.err
        # The command let the batch finish, so that the next one has vectors.
        found = cli.ok("recall", "expresso machines", "--threshold", "0.25", "--explain", "--json").json
        assert [hit["key"] for hit in found["hits"]] == ["drinks"] and found["ranking"] == "words and meaning"
        assert found["hits"][0]["parts"]["meaning"] > 0
        assert "  meaning " in cli.ok("recall", "expresso", "--explain").out
        assert "uses words and the model hashed-words" in cli.ok("status").out
    down = cli("recall", "espresso", "--threshold", "0.25")
    assert down.code not in (0, 2) and "embeddings" in down.err
    words = cli.ok("recall", "espresso")
    assert "drinks" in words.out and "recall ranks by words only" in words.err


def test_recall_without_hits_says_so(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "direct")
    nothing = cli.ok("recall", "zeppelin")
    assert nothing.out == "" and "nothing found: 1 memory searched" in nothing.err
    assert "nothing found" not in cli.ok("recall", "direct").err
    assert cli.ok("recall", "zeppelin", "--json").json["hits"] == []


def test_explain_shows_score_parts_of_hits_and_misses(sealed: Cli) -> None:
    sealed.ok("write", "music", "--body", "She plays the cello on Tuesdays.", "--tag", "cello")
    sealed.ok("write", "shop", "--body", "The cello shop lies at pier 7.")
    sealed.ok("write", "boat", "--body", "The boat is blue.")
    said = sealed.ok("explain", "shop", "cello", "tuesday").out
    assert (
        said.startswith("shop is number 2 of 2 hits, 3 memories searched.\n")
        and "second column is music" in said
    )
    assert "It contains cello.\nIt does not contain tuesday.\n" in said
    first = sealed.ok("explain", "music", "cello", "tuesday", "--json").json
    (hit, _) = sealed.ok("recall", "cello", "tuesday", "--explain", "--json").json["hits"]
    assert (first["place"], first["score"], first["parts"]) == (1, hit["score"], hit["parts"])
    assert abs(sum(first["parts"].values()) - first["score"]) < 1e-9 and first["before"] == ""
    assert "not found: it contains none of the words" in sealed.ok("explain", "boat", "cello").out
    sealed.ok("session", "add", "chat", stdin=b'{"role": "user", "content": "cello"}')
    (part,) = (one["key"] for one in sealed.ok("recall", "cello", "--type", "session", "--json").json["hits"])
    assert "it is part of a session" in sealed.ok("explain", part, "cello").out
    sealed.ok("write", "shop", "--body", "Our shop.", "--scope", "work")
    there = sealed.ok("explain", "shop", "shop", "--stack", "work", "--json").json
    assert (there["scope"], there["hides"], there["place"]) == ("work", [""], 1)


def test_recall_weights_come_from_the_settings(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("write", "plain", "--body", "The boat boat boat.")
    cli.ok("write", "said", "--body", "Of a boat.", "--type", "feedback")
    settings = tmp_path / "settings.toml"
    monkeypatch.setenv("IPFSMEM_CONFIG", str(settings))

    def order() -> list[str]:
        return [one["key"] for one in cli.ok("recall", "boat", "--json").json["hits"]]

    settings.write_text("[recall]\nweights = { salience = 0 }\n")
    assert order() == ["plain", "said"]
    assert "salience" not in cli.ok("explain", "said", "boat").out
    settings.write_text("[recall]\nweights = { salience = 50 }\n")
    assert order() == ["said", "plain"]
    for bad in (
        "weights = { colour = 1 }",
        "weights = { words = -1 }",
        "weights = { words = 1e9 }",
        "half_life_days = 0",
    ):
        settings.write_text(f"[recall]\n{bad}\n")
        assert cli.fails(3, "recall", "boat").err
    settings.write_text("[recall]\nweights = { colour = 1 }\n")
    (named,) = re.findall(r"Its parts are (.*)\.", cli.fails(3, "explain", "said", "boat").err)
    for part in named.split(", "):
        settings.write_text(f"[recall]\nweights = {{ {part} = 1 }}\n")
        assert len(order()) == 2


def test_documented_score_parts_are_those_of_the_ranking() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (-?[\d.]+) \|", page, re.M)
    assert {name: float(weight) for name, weight in rows} == WEIGHTS


def test_recall_finds_events_and_messages_on_request(cli: Cli) -> None:
    cli.ok("write", "boat", "--body", "The boat is called Argo.")
    cli.ok("timeline", "add", "decision", "text=We sail to Lisbon")
    cli.ok("session", "add", "standup", stdin=b'{"role": "assistant", "content": "To Lisbon, as Ann said."}')
    nothing = cli("recall", "Lisbon")
    assert nothing.out == "" and "--kind all" in nothing.err
    event = cli.ok("recall", "Lisbon", "--kind", "event").out
    assert event.startswith("event decision  ") and event.endswith("  text=We sail to Lisbon\n")
    message = cli.ok("recall", "Lisbon", "--kind", "message", "--explain").out
    assert message.startswith("session standup  ") and "the assistant says" in message
    assert "has lisbon" in message and message.endswith("  To Lisbon, as Ann said.\n")
    found = cli.ok("recall", "the boat sails to Lisbon", "--kind", "all", "--json").json
    assert [hit["key"] for hit in found["hits"]] == ["boat"]
    assert {one["kind"] for one in found["moments"]} == {"event", "message"} and found["searched"] == 3
    assert cli.ok("recall", "Lisbon", "--kind", "event", "--type", "decision", "--json").json["moments"]
    refused = cli("recall", "Lisbon", "--type", "decision")
    assert refused.code == 2 and "unknown memory type 'decision'" in refused.err
