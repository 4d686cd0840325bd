"""Dreams over real memories: proposed, applied atomically, undone, and concurrent on several devices without loss."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipfsmem.agents import background_sync
from ipfsmem.agents.background_sync import dream_if_due
from ipfsmem.cli import sync_cmd
from ipfsmem.device.dream_notes import dream_notes, dreaming, is_dreaming, is_to_abort
from ipfsmem.device.dreams import KEPT, ChangedMemory, Dreamt, note_dream, spoken_of
from ipfsmem.device.tables import meta
from ipfsmem.dream.proposal import Change, Proposal, Step
from ipfsmem.errors import IncompleteError, LimitError, LockedError, NotFoundError, StorageError
from ipfsmem.memories.dreams import Dreams
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memory import Memory
from tests.support.device_lab import Lab, all_texts, body, lab_in, of_another, same
from tests.support.effort import cases

TEA = "They drink green tea every morning. They never add sugar."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.load("x", mode="local", home=tmp_path, create=True) as opened:
        yield opened


def keys(memory: Memory) -> list[str]:
    return [one.key for one in memory.list()]


def dream_events(memory: Memory) -> list[dict[str, Any]]:
    return [one for one in memory.timeline.read() if one["type"].startswith("dream")]


def removed_by(memory: Memory) -> tuple[str, ...]:
    outcome = memory.dreams.run().outcome
    assert outcome is not None
    return outcome.removed


def of(*steps: Step) -> Any:
    """Return a dreamer that makes exactly this proposal."""
    return lambda notes, progress: Proposal(steps=steps, looked_at=len(notes))


def test_dream_is_proposed_shown_applied_and_undone(memory: Memory) -> None:
    memory.write("a", TEA)
    memory.write("b", TEA, description="What they drink")
    memory.write("c", "See [[a]], [[a]] and [[b]]")
    phases: list[str] = []
    made = memory.dreams.propose(progress=phases.append)
    assert phases == ["orient", "gather", "consolidate", "prune"]
    assert memory.dreams.proposed() == made and keys(memory) == ["a", "b", "c"] and not dream_events(memory)
    done = memory.dreams.apply(made.id)
    assert (done.written, done.removed, done.skipped) == (("a", "c"), ("b",), ())
    assert keys(memory) == ["a", "c"] and body(memory, "c") == "See [[a]], [[a]] and [[a]]"
    assert memory.dreams.proposed() is None
    (event,) = dream_events(memory)
    assert event["dream"] == made.id == done.id and event["by"] == "rules"
    assert [one["key"] for one in event["removed"]] == ["b"] and len(event["removed"][0]["replaced"]) == 1
    # Another device that undoes it sees which changes belonged together.
    assert [sorted(one) for one in event["together"]] == [["a", "b", "c"]]
    undone = memory.dreams.undo()
    assert (set(undone.back), undone.changed, undone.lost) == ({"a", "b", "c"}, (), ())
    assert keys(memory) == ["a", "b", "c"] and body(memory, "c") == "See [[a]], [[a]] and [[b]]"
    assert dream_events(memory)[-1]["type"] == "dream_undone"
    with pytest.raises(NotFoundError, match="there is no dream to undo"):
        memory.dreams.undo()


def test_step_is_skipped_when_its_source_changed(memory: Memory) -> None:
    for key in ("a", "b"):
        memory.write(key, TEA)
        memory.write(f"{key}_2", f"{TEA} And {key}.", type="project")
        memory.write(f"{key}_3", f"{TEA} And {key}.", type="project")
    made = memory.dreams.propose()
    assert len(made.steps) == 3
    memory.write("a", "They drink coffee now.")
    done = memory.dreams.apply()
    assert done.skipped == ("a contains everything that b says",) or done.skipped == (
        "b contains everything that a says",
    )
    assert body(memory, "a") == "They drink coffee now." and body(memory, "b") == TEA
    assert len(done.removed) == 2
    with pytest.raises(NotFoundError, match="no proposed changes"):
        memory.dreams.apply()


def test_undo_of_a_dream_keeps_later_writes(memory: Memory) -> None:
    for key in ("a", "b"):
        memory.write(key, TEA)
    memory.write("c", "See [[a]] and [[b]]")
    done = memory.dreams.run().outcome
    assert done is not None
    (removed,) = done.removed
    memory.write("c", "Something else")
    undone = memory.dreams.undo()
    assert undone.back == (removed,) and undone.changed == ("c",) and body(memory, "c") == "Something else"
    memory.dreams.run()
    memory.write(removed, "New")
    assert memory.dreams.undo().changed == (removed,) and body(memory, removed) == "New"


def test_dream_undo_texts_are_kept_until_a_replacing_text_is_forgotten(memory: Memory) -> None:
    memory.write("a", TEA)
    memory.write("b", TEA, description="What they drink")
    memory.dreams.run()
    memory.write("x", "Something")
    memory.forget(
        "x"
    )  # in this mode a forgotten text leaves the disk at once, with everything that only it needed
    assert memory.dreams.undo().back == ("a",)
    memory.dreams.run()
    memory.forget("b")
    assert not memory.dreams.list()
    assert memory.replica.folder is not None
    for path in memory.replica.folder.rglob("*"):
        if (
            path.is_file() and path.parent.name != "aside"
        ):  # replaced files in a folder are kept for two minutes
            assert b"green tea" not in path.read_bytes(), path


def test_proposal_is_dropped_when_its_memory_is_forgotten(memory: Memory) -> None:
    memory.write("a", TEA)
    memory.write("b", TEA)
    memory.dreams.propose()
    memory.forget("a")
    assert memory.dreams.proposed() is None


def test_memory_forgotten_elsewhere_leaves_proposals_and_undo_texts(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    here, work, home = said_twice_in(b, "", "work", "home")
    for one, scope in ((here, ""), (work, "work"), (home, "home")):
        one.dreams.run()
        said_twice_in(b, scope)
        one.dreams.propose()
    lab.settle(a, b)
    a.forget("a")
    a.scopes.forget("work")
    lab.settle(a, b)
    for one in (here, work):
        assert one.dreams.proposed() is None and not one.dreams.list()
    assert home.dreams.proposed() is not None and len(home.dreams.list()) == 1


def test_pending_texts_conflicts_and_sessions_are_not_changed(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    of_another(a, b)
    b.write("theirs", TEA)
    a.write("mine", TEA)
    a.sessions.add("chat", [{"role": "user", "content": TEA}])
    lab.settle(a, b)
    made = a.dreams.propose()
    assert made.looked_at == 1 and not made.steps


def test_concurrent_dreams_on_two_devices_lose_no_sentence(lab: Lab) -> None:
    a = lab.create("a")
    a.write("x", TEA)
    a.write("y", TEA)
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    # Each links to the other, so each keeps the other.
    a.write("see_a", "[[x]] [[x]]")
    b.write("see_b", "[[y]] [[y]]")
    assert removed_by(a) == ("y",) and removed_by(b) == ("x",)
    lab.settle(a, b)
    same(a, b)
    assert any(body(a, key) == TEA for key in ("x", "y")) and not a.conflicts()
    b.dreams.run()
    lab.settle(a, b)
    assert sum(body(a, key) == TEA for key in ("x", "y")) == 1


@settings(max_examples=cases(6, 60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_dreams_with_concurrent_writes_lose_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    with lab_in(tmp_path_factory.mktemp("dreams")) as lab:
        a = lab.create("a")
        lab.sync(a)
        b = lab.restore("b")
        lab.settle(a, b)
        key, text = (
            st.sampled_from("uvwx"),
            st.sampled_from(["One is. Two is.", "Two is. One is. Six is.", "[[u]] [[v]]", "[[w]]"]),
        )
        written: set[str] = set()
        for _ in range(data.draw(st.integers(2, 8), "steps")):
            device = data.draw(st.sampled_from([a, b]), "device")
            match data.draw(st.sampled_from(["write", "write", "write", "dream", "undo", "sync"]), "what"):
                case "write":
                    said = data.draw(text)
                    name = data.draw(key)
                    if device.read(name) is None:
                        device.write(name, said)
                        written |= set(said.split(". ")) if "[[" not in said else set()
                case "dream":
                    device.dreams.run()
                case "undo" if device.dreams.list():
                    device.dreams.undo()
                case _:
                    lab.sync(device)
        lab.settle(a, b)
        same(a, b)
        here = " ".join(sorted(all_texts(a)))
        assert all(sentence.rstrip(".") in here for sentence in written)


def test_one_process_dreams_at_a_time_and_another_may_abort_it(memory: Memory, tmp_path: Path) -> None:
    memory.write("a", TEA)
    folder = memory.replica.folder
    assert folder is not None and not memory.dreams.abort()
    with dreaming(folder):
        with pytest.raises(LockedError, match="another process runs a dream"):
            memory.dreams.propose()
        assert memory.dreams.status().under_way and memory.dreams.abort() and is_to_abort(folder)
    assert not memory.dreams.status().under_way and not is_to_abort(folder)

    def aborting(phase: str) -> None:
        if phase == "gather":
            memory.dreams.abort()

    with pytest.raises(IncompleteError, match="aborted before it changed anything"):
        memory.dreams.run(progress=aborting)
    status = memory.dreams.status()
    assert status.failure == "IncompleteError" and status.worked == 0 and not status.under_way
    memory.dreams.run()
    status = memory.dreams.status()
    assert status.failure == "" and status.worked > 0


def test_check_for_a_running_dream_does_not_block_a_dream(tmp_path: Path) -> None:
    ended, told = threading.Event(), list[bool]()

    def looks() -> None:
        while not ended.wait(0.001):
            told.append(is_dreaming(tmp_path))

    with dreaming(tmp_path):
        assert is_dreaming(tmp_path)
    with ThreadPoolExecutor(2) as threads:
        looking = [threads.submit(looks) for _ in range(2)]
        try:
            while len(told) < 300:
                assert not any(told)
            for _ in range(100):
                with dreaming(tmp_path):
                    pass
        finally:
            ended.set()
    assert all(one.exception() is None for one in looking)


def test_automatic_dream_starts_when_it_is_due(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert memory.dreams.status().waits_for == "the settings do not allow it"
    file = tmp_path / "settings.toml"
    file.write_text("[dream]\nenabled = true\nsessions = 1\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    assert memory.dreams.status().waits_for == "it is off for this vault on this device"
    memory.dreams.switch(True)
    assert memory.dreams.status().waits_for == "0 of 1 sessions were written to since the last dream"
    memory.sessions.add("chat", [{"role": "user", "content": "Hello"}])
    assert memory.dreams.status().waits_for == ""
    memory.dreams.run()
    assert memory.dreams.status().waits_for.startswith("the last dream was 0.0 h ago")
    memory.dreams.switch(False)
    assert not memory.dreams.status().chosen


def test_dream_made_with_clock_ahead_does_not_delay_the_next_one(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[dream]\nenabled = true\nsessions = 1\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    memory = lab.create("a")
    memory.dreams.switch(True)
    lab.clock.advance(3650 * 86_400)
    memory.dreams.run()
    lab.clock.advance(-3650 * 86_400)
    memory.sessions.add("chat", [{"role": "user", "content": "Hello"}])
    assert memory.dreams.status().waits_for == ""
    memory.dreams.run_due()
    assert memory.dreams.status().waits_for.startswith("the last dream was 0.0 h ago")


def dreams_when_due(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Settings that let an automatic dream start whenever due."""
    file = tmp_path / "settings.toml"
    file.write_text("[dream]\nenabled = true\nhours = 0\nsessions = 0\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))


def test_clock_ahead_removes_no_text_in_a_dream_without_approval(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dreams_when_due(monkeypatch, tmp_path)
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    ends = (a.replica.environment.today() + timedelta(days=400)).isoformat()
    a.write("lease", "The lease of the boat.", fields={"expires": ends})
    a.write("offer", "Half the price, until yesterday.", fields={"expires": "2020-01-01"})
    a.write("lease_too", "The lease of the boat.", fields={"expires": ends})
    lab.settle(a, b)
    a.dreams.switch(True)
    right = lab.clock.ms
    lab.clock.advance(10 * 365 * 86_400)
    for _ in range(3):  # a time of the wrong clock proves nothing
        lab.clock.advance(86_400)
        a.write("diary", f"Written on {a.replica.environment.today()}")
        a.note("remark", text="still here")
        (run,) = a.dreams.run_due()
        assert run.outcome is not None and {"lease", "lease_too"} & set(keys(a))
    assert a.read("offer") is None, "that was over before anything was written"
    kept = "lease" if a.read("lease") else "lease_too"
    assert len(run.outcome.waiting) == 1 and f"nothing was written from {ends[:2]}" in run.outcome.waiting[0]
    found = a.dreams.proposed()
    assert found is not None and [one.changes[0].key for one in found.steps] == [kept]
    lab.clock.advance(-(lab.clock.ms - right) / 1000)
    lab.settle(a, b)
    assert body(b, kept) == "The lease of the boat.", "nothing was taken away anywhere"
    # With the shown proposal it may be applied.
    assert a.dreams.apply(found.id).removed == (kept,) and a.read(kept) is None


def test_expired_memory_is_removed_by_a_dream_after_later_writes(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dreams_when_due(monkeypatch, tmp_path)
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    a.dreams.switch(True)
    ends = a.replica.environment.today() + timedelta(days=200)
    a.write("lease", "The lease of the boat.", fields={"expires": ends.isoformat()})
    lab.settle(a, b)
    while a.replica.environment.today() <= ends:
        lab.clock.advance(25 * 86_400)
        b.note("remark", text="another device shows that time passes")
        lab.settle(a, b)
    (run,) = a.dreams.run_due()
    assert run.outcome is not None and (run.outcome.removed, run.outcome.waiting) == (("lease",), ())


def test_automatic_dream_covers_every_scope_once_due(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for key in ("a", "b"):
        memory.write(key, TEA)
        memory.scope("work").write(key, TEA)
    dream_if_due(memory)
    assert len(keys(memory)) == 2  # no setting permits it
    memory.dreams.switch(True)
    file = tmp_path / "settings.toml"
    file.write_text("[dream]\nenabled = true\nsessions = 1\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    dream_if_due(memory)
    assert len(keys(memory)) == 2  # no memory was written since
    memory.scope("work").sessions.add("chat", [{"role": "user", "content": "Hello"}])
    dream_if_due(memory)
    assert len(keys(memory)) == len(keys(memory.scope("work"))) == 1
    memory.write("a", TEA)
    memory.write("b", TEA)
    dream_if_due(memory)
    assert len(keys(memory)) == 2  # too soon after the last one
    file.write_text("[dream]\nenabled = maybe\n")
    dream_if_due(memory)  # it does not disturb a running one


def test_dream_gates_are_checked_in_order_at_turn_end_and_a_miss_skips(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Enabled, switched on, hours, sessions, and the lock."""
    file = tmp_path / "settings.toml"
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))

    def turn(settings: str) -> str:
        """Start the automatic runs at the end of an agent's turn; return what is awaited."""
        file.write_text(f"[dream]\n{settings}\n")
        background_sync.run("x", tmp_path, b"{}")
        return memory.dreams.status().waits_for

    for key in ("a", "b"):
        memory.write(key, TEA)
    everything = "enabled = true\nhours = 0\nsessions = 1"
    assert turn("sessions = 0\nhours = 0") == "the settings do not allow it"
    assert turn(everything) == "it is off for this vault on this device"
    memory.dreams.switch(True)
    assert turn(everything) == "0 of 1 sessions were written to since the last dream"
    memory.sessions.add("chat", [{"role": "user", "content": "Hello"}])
    assert memory.replica.folder is not None
    with dreaming(memory.replica.folder):
        assert turn(everything) == "" and len(keys(memory)) == 2, "another one dreams"
    assert turn(everything.replace("sessions = 1", "sessions = 9")).startswith("1 of 9 sessions")
    assert len(keys(memory)) == 2
    assert turn(everything).startswith("0 of 1 sessions") and len(keys(memory)) == 1
    memory.write("c", TEA)
    memory.sessions.add("chat", [{"role": "user", "content": "Hello again"}])
    assert turn(everything.replace("hours = 0", "hours = 24")).startswith("the last dream was 0.0 h ago")
    assert len(keys(memory)) == 2


def test_automatic_dream_starts_without_an_agent_too(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`sync --every`, which a service runs, checks whether one is due."""
    file = tmp_path / "settings.toml"
    file.write_text("[dream]\nenabled = true\nhours = 0\nsessions = 0\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    for key in ("a", "b"):
        memory.write(key, TEA)
    memory.dreams.switch(True)

    async def until_one_dreamed() -> None:
        looking = asyncio.create_task(sync_cmd._dream_when_due(memory, 0.01))
        while not memory.dreams.status().worked:
            await asyncio.sleep(0.01)
        looking.cancel()

    asyncio.run(asyncio.wait_for(until_one_dreamed(), 60))
    assert len(keys(memory)) == 1


def test_failed_or_aborted_dream_keeps_the_time_of_the_last_one(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An automatic dream can be aborted too, and its outcome is reported."""
    file = tmp_path / "settings.toml"
    file.write_text("[dream]\nenabled = true\nhours = 24\nsessions = 0\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    a = lab.create("a")
    a.dreams.switch(True)
    before = a.dreams.status()
    assert (before.worked, before.failed, before.kept) == (0, 0, 0) and not before.under_way
    a.dreams.run()
    worked = a.dreams.status().worked
    assert worked == lab.clock.ms
    lab.clock.advance(25 * 3600)
    gathered = Dreams.gathered

    def aborted(self: Dreams, *given: Any) -> Any:
        assert a.dreams.abort(), "somebody else wishes it"
        return gathered(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Dreams, "gathered", aborted)
        with pytest.raises(IncompleteError, match="aborted"):
            a.dreams.run_due()
    status = a.dreams.status()
    assert (status.worked, status.failed, status.failure) == (worked, lab.clock.ms, "IncompleteError")
    assert a.dreams.status().waits_for == "", "the next may begin as soon"

    def broken(self: Dreams, *given: Any) -> Any:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Dreams, "gathered", broken)
        dream_if_due(a)
    assert a.dreams.status().worked == worked and a.dreams.status().failure == "StorageError"
    lab.clock.advance(1)
    dream_if_due(a)
    status = a.dreams.status()
    assert (status.worked, status.failed, status.failure) == (lab.clock.ms, 0, "")
    assert a.dreams.status().waits_for.startswith("the last dream was 0.0 h ago")


def said_twice_in(memory: Memory, *scopes: str) -> list[Memory]:
    """Write two memories with the same text in each of these scopes."""
    found = [memory.scope(scope) if scope else memory for scope in scopes]
    for one in found:
        one.write("a", TEA)
        one.write("b", TEA)
    return found


def test_each_scope_has_its_own_proposal(memory: Memory) -> None:
    here, work, home = said_twice_in(memory, "", "work", "home")
    made = [one.dreams.propose() for one in (here, work, home)]
    assert [one.dreams.proposed() for one in (here, work, home)] == made
    again = work.dreams.propose()
    assert work.dreams.proposed() == again != made[1] and here.dreams.proposed() == made[0]
    with pytest.raises(NotFoundError, match="no longer exists"):
        work.dreams.apply(made[1].id)
    home.forget("a")
    assert home.dreams.proposed() is None and work.dreams.proposed() == again
    assert here.dreams.apply().id == made[0].id and here.dreams.proposed() is None
    assert work.dreams.proposed() == again and work.dreams.status().changes == 1
    memory.scopes.forget("work")
    memory.scopes.restore("work")
    assert work.dreams.proposed() is None


def test_last_dreams_of_each_scope_can_be_undone(memory: Memory) -> None:
    here, work = said_twice_in(memory, "", "work")
    assert here.dreams.run().outcome is not None
    for _ in range(KEPT + 1):
        said_twice_in(memory, "work")
        work.dreams.run()
    assert len(work.dreams.list()) == KEPT and len(here.dreams.list()) == 1
    assert here.dreams.undo().back


def test_proposal_of_version_with_one_proposal_for_all_scopes_remains(memory: Memory) -> None:
    here, work = said_twice_in(memory, "", "work")
    made = work.dreams.propose()
    replica = memory.replica
    with replica.transaction():
        (name,) = meta.names(replica.db.connection, meta.DREAM_PROPOSED)
        meta.forget(replica.db.connection, [name])
        replica.db.set_meta("dream proposed", replica.codec.seal_row(msgspec.json.encode(made)))
    assert work.dreams.proposed() == made and here.dreams.proposed() is None
    here.dreams.propose()
    assert work.dreams.proposed() == made
    again = work.dreams.propose()
    assert (
        work.dreams.proposed() == again and len(meta.names(replica.db.connection, meta.DREAM_PROPOSED)) == 2
    )
    with replica.transaction():  # so it said that there was none
        replica.db.set_meta("dream proposed", b"")
    assert work.dreams.apply(again.id).id == again.id and work.dreams.proposed() is None


def test_damaged_dreams_do_not_block_forgetting_or_dreaming(memory: Memory) -> None:
    said_twice_in(memory, "")
    memory.dreams.run()
    with memory.replica.transaction():
        memory.replica.db.connection.execute(
            "UPDATE meta SET value = CAST(value || 'x' AS BLOB) WHERE name = 'dreams'"
        )
    assert not memory.dreams.list()
    assert "dreams-damaged" in [one.code for one in memory.check()]
    memory.write("x", "Something")
    memory.forget("x")
    said_twice_in(memory, "")
    memory.dreams.run()
    assert len(memory.dreams.list()) == 1 and memory.dreams.undo().back


def test_damaged_proposal_is_ignored_and_replaced_by_the_next(memory: Memory) -> None:
    memory.write("a", TEA)
    memory.write("b", TEA)
    memory.dreams.propose()
    run = memory.replica.db.connection
    with memory.replica.transaction():
        run.execute("UPDATE meta SET value = CAST(value || 'x' AS BLOB) WHERE name LIKE 'dream proposed%'")
    assert memory.dreams.proposed() is None
    made = memory.dreams.propose()
    assert memory.dreams.proposed() == made and len(meta.names(run, meta.DREAM_PROPOSED)) == 1


@pytest.mark.parametrize("scope", ["", "work"])
def test_dream_covers_one_scope(memory: Memory, scope: str) -> None:
    here, there = said_twice_in(memory, *(("work", "")[:: -1 if not scope else 1]))
    here.dreams.propose()
    assert there.dreams.proposed() is None
    here.dreams.apply()
    assert (len(keys(here)), len(keys(there))) == (1, 2)
    assert len(dream_events(here)) == 1 and not dream_events(there)
    with pytest.raises(NotFoundError):
        there.dreams.undo()
    assert len(here.dreams.undo().back) == 1


def test_dream_too_large_for_one_event_is_applied_and_lists_its_changes(memory: Memory) -> None:
    names = [f"{'k' * 58}{n:06}" for n in range(280)]
    for name in names:
        memory.write(name, "One")
    pairs = zip(names[::2], names[1::2], strict=True)
    steps = [Step(why="x", changes=tuple(Change(key=key, text=None) for key in pair)) for pair in pairs]
    dreams = Dreams(MemoryStore(memory.replica))
    assert len(dreams.do(dreams.propose(of(*steps))).removed) == 280
    (event,) = dream_events(memory)
    assert len(event["removed"]) == 280 and "together" not in event


def test_oversized_proposal_changes_nothing(memory: Memory) -> None:
    memory.write("a", TEA)
    dreams = Dreams(memory._open.memories)
    steps = (
        Step(why="first", changes=(Change(key="a"),)),
        Step(why="second", changes=(Change(key="new", text="x" * 1_000_000),)),
    )
    with pytest.raises(LimitError):
        dreams.do(dreams.propose(of(*steps), by="a model"))
    assert keys(memory) == ["a"] and not dream_events(memory) and not dreams.kept()


def test_memory_made_by_a_dreamer_is_undone(memory: Memory) -> None:
    dreams = Dreams(memory._open.memories)
    dreams.do(dreams.propose(of(Step(why="both in one", changes=(Change(key="new", text="New"),)))))
    assert keys(memory) == ["new"]
    assert memory.dreams.undo().back == ("new",) and keys(memory) == []


def test_damaged_dream_notes_are_ignored(memory: Memory) -> None:
    assert memory.replica.folder is not None
    (memory.replica.folder / "dream.json").write_bytes(b"{")
    assert dream_notes(memory.replica.folder).worked == 0


def test_memories_of_undo_data_are_listed_by_scope(memory: Memory) -> None:
    replica = memory.replica
    with replica.transaction():
        for scope, together in (("", ("a", "b")), ("", ("b", "c")), ("work", ("d",))):
            done = (ChangedMemory("m/a", {}, None, together),)
            note_dream(replica, Dreamt(f"{scope}{together}", scope, 1, "rules", done))
    assert spoken_of(replica) == {"": {"a", "b", "c"}, "work": {"d"}}
