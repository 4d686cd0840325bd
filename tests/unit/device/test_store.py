"""The store and the timeline equal plain models after any writes, checkpoints, interruptions and reopening."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipfsmem.bundle.timeline import event_line
from ipfsmem.causal.entries import segment_entry, segment_name
from ipfsmem.causal.tree import build_tree
from ipfsmem.causal.value import Entry, encode_entry, sign_value
from ipfsmem.device.events import SEGMENT, Timeline
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import StateMark
from ipfsmem.device.writing import writing
from ipfsmem.errors import LimitError, StorageError, UsageError
from ipfsmem.testing.clock import MockClock
from tests.unit.device.replica_lab import make, reopen, world

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Cut(Exception):
    """The interruption of a transaction."""


keys = st.sampled_from([f"k{i}" for i in range(6)])
texts = st.sampled_from([b"", b"one\n", b"two\n", "drei ü\n".encode(), b"x" * 3000])
changes = st.lists(st.tuples(st.sampled_from(["put", "beside", "forget", "remove"]), keys, texts), max_size=5)
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["write", "cut", "other"]), changes),
        st.tuples(st.sampled_from(["checkpoint", "folders", "reopen", "cut-checkpoint"]), st.just([])),
    ),
    max_size=18,
)


def perform(replica: Replica, wanted: list[tuple[str, str, bytes]], *, cut: bool = False) -> dict[str, Entry]:
    """Run one transaction of changes; return its entries."""
    made: dict[str, Entry] = {}
    with writing(replica) as change:
        for kind, key, body in wanted:
            name = f"m/{key}"
            entry = change.entry(name)
            if kind == "put":
                change.put(name, body, tuple(entry))
            elif kind == "beside" and len(entry) < 4:
                change.write_alternative(name, body)
            elif kind == "forget":
                change.forget(name, tuple(entry))
            elif kind == "remove":
                change.remove(name, tuple(entry))
            made[name] = change.entry(name)
        if cut:
            raise Cut
    return {name: signed(replica, name, entry) for name, entry in made.items()}


def signed(replica: Replica, name: str, entry: Entry) -> Entry:
    """Check that a stored entry has this device's signatures, made when the transaction ends."""
    if replica.vault_tag is None:
        return entry
    return {
        d: v if v.s else sign_value(replica.device.signer, name, d, v, replica.vault_tag)
        for d, v in entry.items()
    }


Marked = list[tuple[StateMark, dict[str, bytes]]]


def check_changes(replica: Replica, marked: Marked) -> None:
    """Check that a copy as of a mark equals the present state once the later changes are applied; a mark
    is equal only if nothing changed."""
    with replica.reading():
        store, now = replica.store, dict(replica.store.texts())
        for mark, before in marked:
            since = store.changes_since(mark)
            held = {**before, **since.texts}
            for name in since.may_be_gone(before):
                del held[name]
            assert held == now
            assert mark != store.mark() or before == now
        marked.append((store.mark(), now))
        assert dict(store.changes_since(StateMark()).texts) == now


def check(replica: Replica, model: dict[str, Entry]) -> None:
    """Check that the store shows the model, with every text."""
    with replica.reading():
        assert dict(replica.store.entries()) == model
        for name, entry in model.items():
            assert replica.store.entry(name) == entry
            for value in entry.values():
                if value.body is not None:
                    body = replica.store.body(name, value)
                    assert body is not None and sha256(body).hexdigest() == value.body
        assert replica.store.entry("m/never") == {}


@QUICK
@given(steps, st.sampled_from(["local", "encrypted-ipfs"]))
def test_store_equals_its_model(script: list[tuple[str, Any]], mode: str) -> None:
    """After any run of writes, checkpoints, interruptions, another connection's writes and reopening."""
    with tempfile.TemporaryDirectory() as top:
        replica = make(Path(top) / "n", mode)
        model: dict[str, Entry] = {}
        marked: Marked = []
        try:
            for what, wanted in script:
                check_changes(replica, marked)
                if what == "write":
                    model |= perform(replica, wanted)
                elif what == "cut":
                    with pytest.raises(Cut):
                        perform(replica, wanted, cut=True)
                elif what == "other":
                    other = Replica(
                        replica.folder, replica.config, replica.device, replica.codec, replica.environment
                    )
                    model |= perform(other, wanted)
                    other.close()
                elif what == "reopen":
                    replica = reopen(replica)
                elif what == "cut-checkpoint":
                    with contextlib.suppress(Cut), replica.transaction():
                        replica.store.checkpoint(folders=True)
                        raise Cut
                else:
                    with replica.transaction():
                        tree = replica.store.checkpoint(folders=what == "folders")
                    plain = {name: encode_entry(entry) for name, entry in model.items() if entry}
                    assert tree.digest == build_tree(plain).tree.digest
                    assert not replica.store.pending
                model = {name: entry for name, entry in model.items() if entry}
                check(replica, model)
            replica = reopen(replica)
            check(replica, model)
        finally:
            replica.close()


def test_write_counters_only_grow(tmp_path: Path) -> None:
    """An interrupted write consumes no number."""
    replica = make(tmp_path / "n")
    device = replica.device.id
    perform(replica, [("put", "a", b"1"), ("put", "b", b"2")])
    with pytest.raises(Cut):
        perform(replica, [("put", "a", b"3")], cut=True)
    assert replica.store.frame.ctx == {device: 2} or replica.store.outdated()
    replica = reopen(replica)
    perform(replica, [("put", "a", b"4")])
    assert replica.store.frame.ctx == {device: 3}
    assert list(replica.store.entry("m/a")) == [f"{device}-3"]
    replica.close()


def test_failed_commit_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replica = make(tmp_path / "n")
    perform(replica, [("put", "a", b"old")])
    run = replica.db.connection.execute

    def failing(sql: str, *args: Any) -> Any:
        if sql == "COMMIT" and replica.db._depth == 0 and replica.db.connection.in_transaction and armed:
            raise StorageError("the disk is full")
        return run(sql, *args)

    armed = True
    monkeypatch.setattr(replica.db, "connection", _Proxy(replica.db.connection, failing))
    with pytest.raises(StorageError):
        perform(replica, [("put", "a", b"new"), ("put", "b", b"new")])
    armed = False
    with replica.reading():
        (value,) = replica.store.entry("m/a").values()
        assert replica.store.body("m/a", value) == b"old"
        assert replica.store.entry("m/b") == {}
    perform(replica, [("put", "b", b"later")])
    monkeypatch.undo()
    replica = reopen(replica)
    assert set(dict(replica.store.entries())) == {"m/a", "m/b"}
    replica.close()


def test_waiting_thread_does_not_use_a_rolled_back_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = make(tmp_path / "n")
    perform(replica, [("put", "a", b"old")])
    mark = replica.store.mark_outdated
    waiting = threading.Thread(target=perform, args=(replica, [("put", "b", b"other thread")]))

    def as_late_as_can_be() -> None:
        waiting.start()
        waiting.join(0.2)
        mark()

    with monkeypatch.context() as patched:
        patched.setattr(replica.store, "mark_outdated", as_late_as_can_be)
        with pytest.raises(Cut), replica.transaction():
            replica.store.checkpoint(folders=False)
            raise Cut
        waiting.join()
    replica = reopen(replica)
    assert set(dict(replica.store.entries())) == {"m/a", "m/b"}
    replica.close()


class _Proxy:
    def __init__(self, real: Any, execute: Any) -> None:
        self._real, self.execute = real, execute

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM journal WHERE seq=(SELECT max(seq) FROM journal)",
        "DELETE FROM journal WHERE seq=(SELECT min(seq) FROM journal)",
        "UPDATE journal SET seq=seq+100 WHERE seq=(SELECT min(seq) FROM journal)",
        "UPDATE journal SET row=(SELECT row FROM journal ORDER BY seq LIMIT 1)",
        "DELETE FROM meta WHERE name IN ('state', 'copy of state')",
        "DELETE FROM meta WHERE name='journal'",
        "DELETE FROM nodes",
        "UPDATE nodes SET hash=x'00'",
        "DELETE FROM journal",
    ],
)
@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
def test_lost_moved_or_doubled_rows_raise_storage_error(tmp_path: Path, damage: str, mode: str) -> None:
    """An older state must not be shown as the newest."""
    replica = make(tmp_path / "n", mode)
    perform(replica, [("put", "a", b"1"), ("put", "b", b"1")])
    with replica.transaction():
        replica.store.checkpoint(folders=True)
    perform(replica, [("put", "a", b"2")])
    perform(replica, [("put", "a", b"3")])
    replica.db.connection.execute(damage)
    with pytest.raises(StorageError, match="damaged"):
        list(reopen(replica).store.entries())


# -- timeline ------------------------------------------------------------------------------------------------------

notes = st.lists(
    st.one_of(
        st.tuples(st.just("note"), st.integers(0, 3000)),
        st.tuples(st.just("long"), st.integers(8000, 9000)),
        st.tuples(st.sampled_from(["cut", "reopen", "fresh", "day", "checkpoint", "other"]), st.just(0)),
    ),
    max_size=30,
)


def segments(replica: Replica) -> dict[str, bytes]:
    """Return the bytes of every segment by entry name."""
    found: dict[str, bytes] = {}
    with replica.reading():
        for segment, entry in replica.store.segments():
            (value,) = entry.values()
            body = replica.store.body(segment.entry, value)
            assert body is not None
            found[segment.entry] = body
    return found


@QUICK
@given(notes)
def test_events_are_stored_in_bounded_segments(script: list[tuple[str, int]]) -> None:
    """Only the last segment of a day grows; one longer line has its own."""
    clock = MockClock()
    with tempfile.TemporaryDirectory() as top:
        replica = make(Path(top) / "n", where=world(clock=clock))
        timeline = Timeline(replica)
        said: list[dict[str, Any]] = []
        before: dict[str, bytes] = {}
        try:
            for what, size in script:
                clock.advance(1)
                if what in ("note", "long"):
                    said.append(timeline.note("step", {"pad": "p" * size}))
                elif what == "cut":
                    with pytest.raises(Cut), writing(replica) as change:
                        timeline.note_in(change, "never", {"pad": "q" * 5000})
                        timeline.note_in(change, "never", {"pad": "q" * 5000})
                        raise Cut
                elif what == "reopen":
                    replica = reopen(replica)
                    timeline = Timeline(replica)
                elif what == "fresh":
                    timeline = Timeline(replica)
                elif what == "day":
                    clock.advance(86_400)
                elif what == "other":
                    said.append(Timeline(replica).note("other", {}))
                else:
                    with replica.transaction():
                        replica.store.checkpoint(folders=True)
                after = segments(replica)
                for name, text in after.items():
                    assert len(text) <= SEGMENT or text.count(b"\n") == 1
                    assert text.startswith(before.get(name, b""))
                    segment = segment_name(name)
                    assert segment is not None and segment.dev == replica.device.id
                    if text != before.get(name, text):
                        assert segment_entry(segment.day, segment.dev, segment.i + 1) not in before
                assert before.keys() <= after.keys()
                before = after
            assert timeline.events() == said
            ids = [int(event["id"].split("-")[1]) for event in said]
            assert ids == list(range(1, len(said) + 1))
            in_order = sorted(before, key=lambda name: (name[2:12], int(name.rsplit("/", 1)[1])))
            assert b"".join(before[name] for name in in_order) == b"".join(
                event_line(e) + b"\n" for e in said
            )
        finally:
            replica.close()


def test_trimmed_days_are_not_overwritten(tmp_path: Path) -> None:
    replica = make(tmp_path / "n")
    timeline = Timeline(replica)
    for i in range(6):
        timeline.note("step", {"i": i, "pad": "p" * 5000})
    names = sorted(segments(replica))
    assert len(names) == 6
    with writing(replica) as change:
        for name in (names[0], names[1], names[4]):
            change.remove(name, tuple(change.entry(name)))
    kept = segments(replica)
    replica = reopen(replica)
    for i in range(20):
        Timeline(replica).note("later", {"i": i, "pad": "p" * 5000})
    now = segments(replica)
    assert all(now[name].startswith(text) for name, text in kept.items())
    found = [(e["type"], e["i"]) for e in Timeline(replica).events()]
    assert sorted(found) == sorted([("step", i) for i in (2, 3, 5)] + [("later", i) for i in range(20)])
    replica.close()


def test_segments_continue_under_a_new_device_id(tmp_path: Path) -> None:
    """From segment 0 of the day."""
    replica = make(tmp_path / "n")
    timeline = Timeline(replica)
    for i in range(4):
        timeline.note("old", {"i": i, "pad": "p" * 5000})
    with replica.transaction():
        replica.set_device(replica.device.successor(replica.environment.random))
    for i in range(12):
        timeline.note("new", {"i": i, "pad": "p" * 5000})
        if i % 3 == 2:
            replica = reopen(replica)
            timeline = Timeline(replica)
    assert len(timeline.events()) == 16
    mine = [name for name in segments(replica) if replica.device.id in name]
    assert sorted(int(name.rsplit("/", 1)[1]) for name in mine) == list(range(12))
    replica.close()


def test_invalid_events_are_refused_without_a_trace(tmp_path: Path) -> None:
    replica = make(tmp_path / "n")
    timeline = Timeline(replica)
    with pytest.raises(UsageError, match="id"):
        timeline.note("x", {"id": "mine"})
    with pytest.raises(LimitError):
        timeline.note("x", {"pad": "p" * 70_000})
    assert timeline.note("x")["id"] == f"{replica.device.id}-1"
    assert len(timeline.events()) == 1
    replica.close()


def test_foreign_events_are_imported_once(tmp_path: Path) -> None:
    """Their ids are derived from their content."""
    replica = make(tmp_path / "n")
    timeline = Timeline(replica)
    own = timeline.note("own")
    events = [
        {"ts": "2026-01-01T00:00:00.000Z", "type": "far", "n": 1},
        {"ts": "2026-01-01T00:00:00.000Z", "type": "far", "n": 1, "id": f"{replica.device.id}-1000"},
        {"ts": "2026-01-02T00:00:00.000Z", "type": "far", "n": 2},
        own,
    ]
    for expected in (2, 0):
        with writing(replica) as change:
            assert timeline.add_foreign(change, events) == expected
    assert len(timeline.events()) == 3
    assert {name[2:12] for name in segments(replica)} >= {"2026-01-01", "2026-01-02"}
    replica.close()
