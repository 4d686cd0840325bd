"""The benchmark makes the same corpora everywhere, and its table shows the measured values."""

from __future__ import annotations

import http.client
import statistics
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bench import context_blocks, local, peers, recall, shares, syncing
from bench import process as bench_process
from bench.context import Context
from bench.corpus import corpus, write_folder
from bench.measure import Row, folder_bytes, process, read_and_hash
from bench.oracles.comparing import differences
from bench.oracles.shapes import shape
from bench.report import markdown, tables
from bench.wire import Wire
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.causal.tree import name_digits
from ipfsmem.memories.memories import check_body
from tests.unit.providers.dav_lab import dav

CORPUS_100 = "2181dd4bc03dbc511a3d0c74cddd5911a20bb1a075a386de68e6c5b897a903a5"


def test_corpus_depends_only_on_size_and_seed(tmp_path: Path) -> None:
    files = corpus(2_000)
    assert files == corpus(2_000) != corpus(2_000, seed=1)
    assert 750 < statistics.median(map(len, files.values())) < 950
    for key, data in files.items():
        check_body(key, data)
        assert parse_memory(data).type in ("user", "feedback", "project", "reference")
    assert len(set(files.values())) == 2_000
    assert read_and_hash(write_folder(files, tmp_path / "m")) == sum(map(len, files.values()))


def test_corpora_are_the_same_on_every_machine() -> None:
    text = b"".join(key.encode() + data for key, data in corpus(100).items())
    assert sha256(text).hexdigest() == CORPUS_100


def test_process_is_timed_and_its_failure_reported() -> None:
    done = process([sys.executable, "-c", "print('out')"])
    assert done.output == b"out\n" and 0 < done.seconds < 60 and 1 < done.rss_mb < 200
    with pytest.raises(RuntimeError, match="ended with 3: why"):
        process([sys.executable, "-c", "import sys; sys.stderr.write('why'); sys.exit(3)"])
    with pytest.raises(RuntimeError, match="127"):
        process(["no-such-program-here"])


def test_table_marks_values_over_budget() -> None:
    rows = [
        Row("read and hash", 100, 0.01, 1.0),
        Row("open", 100, 0.5, 50.0, budget_seconds=0.2, note="a | b"),
        Row("publish one changed memory", 100, 0.03, 3.0, bytes=20_000, blocks=9, budget_bytes=32_768),
        Row("import and first publish", 100, 1.0, 100.0),
        Row("restic: first backup", 100, 2.0, 200.0),
        Row("borg: first backup", 100, None, note="skipped: not installed"),
    ]
    assert [all(row.verdicts()) for row in rows] == [True, False, True, True, True, True]
    text = markdown(rows)
    assert "| open | 500 ms | 50.00 |" in text and "200 ms ✗ | a \\| b |" in text
    assert "19.5 KiB | 9 |" in text and "32.0 KiB ✓" in text
    assert "skipped: not installed" in text and "Compared with encrypting backup tools, 100 files" in text
    assert len(tables(rows)) == 1


@pytest.mark.parametrize(
    "case",
    [local.seal, local.join, local.writes, syncing.exchange, syncing.presence, context_blocks.context_blocks],
    ids=lambda case: case.__name__,
)
def test_bench_cases_run(case: Callable[[Context], None], tmp_path: Path) -> None:
    """They are run in full only rarely."""
    ctx = Context(20, tmp_path, quick=True, say=lambda line: None)
    case(ctx)
    assert len(ctx.rows) > 1 and all(row.seconds for row in ctx.rows)


def test_absent_programs_are_named_in_the_comparison(tmp_path: Path) -> None:
    ctx = Context(20, tmp_path, quick=True, say=lambda line: None)
    peers.peers(ctx)
    ctx.initrunner, ctx.mcp_memory = Path(sys.executable), tmp_path / "none.js"
    peers.peers(ctx)
    said = [row.note for row in ctx.rows if row.seconds is None]
    assert said[:2] == [
        "skipped: --initrunner PYTHON names none",
        "skipped: --mcp-memory FILE names none",
    ]
    assert "initrunner==1.0.0" in said[2] and "none.js is not a program that Node can run" in said[3]


def test_byte_shares_add_up_to_all_bytes(tmp_path: Path) -> None:
    ctx = Context(20, tmp_path, quick=True, say=lambda line: None)
    home, stick = ctx.fresh("home"), ctx.fresh("stick")
    bench_process.main("init", home, str(stick))
    bench_process.main("first", home, str(ctx.folder))
    found = shares._bytes(home, stick)
    assert sum(found.values()) == folder_bytes(stick) and min(found.values()) > 0
    assert found["nonces, tags, lengths"] == 20 * 48


def test_time_shares_are_sampled_in_separate_processes(tmp_path: Path) -> None:
    ctx = Context(20, tmp_path, quick=True, say=lambda line: None)
    shares.shares(ctx)
    said = [row.name for row in ctx.rows]
    for what in ("time of a first run: ", "time of a restore: ", "bytes of a first run: "):
        assert any(name.startswith(what) for name in said), what


def test_time_is_counted_for_the_innermost_named_frame() -> None:
    kinds: list[str] = []

    class Text(str):
        def encode(self, *_: object) -> bytes:  # the tree calls it for its label
            kinds.append(shares._kind(sys._getframe()))
            return b"m/a"

    name_digits(Text("m/a"))
    kinds.append(shares._kind(sys._getframe()))
    assert kinds == ["trees and folders", "the rest"]


def test_recall_is_measured_with_files_and_with_conversations(tmp_path: Path) -> None:
    ctx = Context(60, tmp_path, quick=True, say=lambda line: None)
    recall.recall(ctx)
    names = {row.name: row for row in ctx.rows}
    for what in ("", ", conversations"):
        assert names[f"open the stored index{what}"].bytes
        assert all(
            names[f"{name}{what}"].seconds for name in ("index for recall", "recall, warm", "recall, cold")
        )


def test_shape_of_json_has_keys_and_types_and_no_values() -> None:
    first = {"key": "tone", "score": 0.5, "of": [{"a": 1, "b": None}, {"a": 2}]}
    assert shape(first) == {"key": "str", "score": "float", "of": [{"a": "int", "b?": "NoneType"}]}
    assert shape({"bafyone": 1, "/home/x": 2}) == {"*": "int"}
    assert shape([1, "x"]) == ["int | str"]


def test_oracle_differences_name_what_changed() -> None:
    assert differences("modules", {"read": 88}, {"read": 88}) == []
    assert differences("modules", {"read": 88, "old": 1}, {"read": 91, "new": 2}) == [
        "new: new -> 2",
        "old: 1 -> gone",
        "read: 88 -> 91",
    ]
    changed = differences("help", {"read": ["Show it."]}, {"read": ["Print it."]})
    assert '-  "Show it."' in changed and '+  "Print it."' in changed


def test_oracle_differences_of_measured_parts_are_those_over_a_tenth() -> None:
    before = {"write": {"calls": 700, "statements": 20}, "gone": {"calls": 1}}
    now = {"write": {"calls": 769, "statements": 23}}
    assert differences("work", before, now) == ["gone: calls 1 -> None", "write: statements 20 -> 23"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PROPFIND", "PROPPATCH", "MKCOL", "MOVE"])
def test_relay_counts_each_request_of_webdav(tmp_path: Path, method: str) -> None:
    wire = Wire()
    with dav(tmp_path / "server") as at:
        to = urlsplit(wire.relay(at.url))
        connection = http.client.HTTPConnection(str(to.hostname), to.port)
        for _ in range(2):
            connection.request(method, "/dav", body=b"")
            connection.getresponse().read()
        connection.close()
    assert wire.requests == 2
