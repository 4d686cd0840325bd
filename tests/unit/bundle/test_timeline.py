"""Timeline events against the shared vectors."""

import json
from itertools import permutations
from pathlib import Path

import pytest

from ipfsmem.bundle import timeline
from ipfsmem.errors import FormatError, LimitError
from ipfsmem.memories.event_search import ms_of
from ipfsmem.wording import local_day, zone_of

FIXTURES = Path(__file__).parents[3] / "fixtures"
VECTORS = json.loads((FIXTURES / "vectors/timeline.json").read_text("utf-8"))
DEVICE = "00aabbccddeeff11"
EVENT = {"ts": "2026-04-14T12:03:12.000Z", "type": "t", "id": f"{DEVICE}-1"}


@pytest.mark.parametrize("case", VECTORS["lines"])
def test_event_line_equals_the_vectors(case):
    line = timeline.event_line(case["event"])
    assert line.decode() == case["line"]
    assert timeline.foreign_id(case["event"]) == case["foreign_id"]
    again = timeline.parse_line(line)
    assert timeline.event_line(again) == line
    assert list(again)[:3] == ["ts", "type", "id"]


@pytest.mark.parametrize("case", VECTORS["bad_events"], ids=lambda c: c["about"])
def test_invalid_events_are_refused(case):
    with pytest.raises(FormatError):
        timeline.event_line(case["event"])


@pytest.mark.parametrize("case", VECTORS["parse"])
def test_lines_are_parsed_as_in_the_vectors(case):
    (event,) = timeline.parse_lines(bytes.fromhex(case["line_hex"]), "2026-04-15")
    assert timeline.event_line(event).decode() == case["event_line"]


@pytest.mark.parametrize("case", VECTORS["instants"], ids=lambda c: c["ts"])
def test_timestamps_are_normalised(case):
    assert timeline.normal_ts(case["ts"]) == case["normal"]
    assert timeline.day_of(case["ts"]) == case["day"]


@pytest.mark.parametrize("ts", VECTORS["bad_instants"])
def test_invalid_timestamps_are_refused(ts):
    with pytest.raises(FormatError):
        timeline.day_of(ts)


@pytest.mark.parametrize("case", VECTORS["own_ids"], ids=lambda c: c["id"])
def test_own_event_ids_are_split_and_joined(case):
    split = timeline.split_own_id(case["id"])
    assert (split or (None, None)) == (case["device"], case["n"])
    if split:
        assert timeline.own_id(*split) == case["id"]


@pytest.mark.parametrize(("device", "n"), [("x", 1), (DEVICE, 0), (DEVICE, -1), (DEVICE, 2**53)])
def test_invalid_own_event_ids_are_refused(device, n):
    with pytest.raises(FormatError):
        timeline.own_id(device, n)


@pytest.mark.parametrize("case", VECTORS["unions"])
def test_union_of_events_equals_the_vectors_in_any_order(case):
    for sources in permutations(case["sources"]):
        assert [timeline.event_line(e).decode() for e in timeline.union(*sources)] == case["lines"]


def test_union_distinguishes_true_from_one():
    events = timeline.union([{**EVENT, "k": True}], [{**EVENT, "k": 1}])
    assert sorted(repr(e["k"]) for e in events) == ["1", "True"]


@pytest.mark.parametrize(
    "event", [5, None, {}, {"id": "a"}, {"id": []}, {"ts": 1, "id": "a"}, {"ts": "x", "id": "a"}]
)
def test_union_of_invalid_events_is_refused(event):
    with pytest.raises(FormatError):
        timeline.union([event])


def test_event_line_length_is_limited():
    room = timeline.MAX_LINE - len(timeline.event_line({**EVENT, "x": ""}))
    assert len(timeline.event_line({**EVENT, "x": "a" * room})) == timeline.MAX_LINE
    with pytest.raises(LimitError):
        timeline.event_line({**EVENT, "x": "a" * (room + 1)})


def cycle():
    loop: list = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        2**53,
        -(2**53),
        1e300,
        b"x",
        object(),
        {1: 2},
        "\ud800",
        {"\ud800": 1},
        {1, 2},
        cycle(),
    ],
)
def test_values_without_a_canonical_form_are_refused(value):
    with pytest.raises(FormatError):
        timeline.event_line({**EVENT, "x": value})
    with pytest.raises(FormatError):
        timeline.event_line({**EVENT, "x": {"y": [value]}})


def test_lines_of_a_file_are_read():
    data = b"\xef\xbb\xbf" + timeline.event_line(EVENT) + b"\r\n\n  \nbroken\n" + timeline.event_line(EVENT)
    events = timeline.parse_lines(data, "2026-04-14")
    assert [e["type"] for e in events] == ["t", "raw", "t"]
    assert events[1]["raw"] == "broken"
    assert timeline.parse_lines(b"") == []
    assert timeline.parse_line(b"x")["ts"] == timeline.NO_TIME


def test_deeply_nested_line_is_one_raw_line():
    for line in (b"[" * 100_000, b'{"a":' * 100_000):
        (event,) = timeline.parse_lines(line)
        assert event["type"] == "raw" and event["raw"] == line.decode()


def test_number_with_thousands_of_digits_is_one_raw_line():
    line = b'{"ts":"2026-04-14T12:03:12.000Z","type":"t","n":%b}' % (b"9" * 5000)
    event = timeline.parse_line(line, "2026-04-15")
    assert (event["type"], event["ts"]) == ("raw", EVENT["ts"])
    assert event["raw"] == line.decode()


def test_raw_lines_are_read_the_same_twice():
    (event,) = timeline.parse_lines(b"not json", "2026-04-14")
    (again,) = timeline.parse_lines(timeline.event_line(event))
    assert again == event
    assert timeline.foreign_id(event) == event["id"]


def test_as_foreign_replaces_the_own_id():
    event = timeline.as_foreign({"k": 1, **EVENT})
    assert event["id"] == timeline.foreign_id(EVENT | {"k": 1}) != EVENT["id"]
    assert timeline.as_foreign(event) == event


def test_three_ws_timeline_is_read():
    data = (FIXTURES / "three-ws/local/timeline.jsonl").read_bytes()
    events = timeline.parse_lines(data)
    theirs = [json.loads(line) for line in data.splitlines()]
    assert [{k: v for k, v in e.items() if k != "id"} for e in events] == theirs
    bundle = FIXTURES / "three-ws/ipfs/bundle/memory/timeline/2026-04-14.jsonl"
    assert timeline.union(events, timeline.parse_lines(bundle.read_bytes())) == events
    assert {timeline.day_of(e["ts"]) for e in events} == {"2026-04-14"}


def test_stack_shows_an_event_of_equal_id_and_line_once():
    """An event is identified by scope and id."""
    first = {"ts": "2026-04-14T12:00:00.000Z", "type": "a", "id": "0" * 16 + "-1"}
    other = {**first, "type": "b"}
    later = {"ts": "2026-04-14T12:00:00.001Z", "type": "c", "id": "x"}
    assert timeline.union_of_scopes([later, first], [first], [other]) == [first, other, later]
    assert timeline.union_of_scopes() == []


@pytest.mark.parametrize("row", VECTORS["local_days"], ids=lambda row: f"{row['zone']} {row['ts']}")
def test_day_of_an_event_is_that_of_the_readers_time_zone(row: dict[str, str]) -> None:
    day = local_day(ms_of(row["ts"], ""), zone_of(row["zone"]))
    assert day is not None and day.isoformat() == row["day"]
