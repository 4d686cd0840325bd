"""Background sync of a running program: received changes, outages, and failures that need the user."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from ipfsmem.errors import (
    ConfigError,
    ProviderRefused,
    ProviderUnavailable,
    PublicError,
    SecretsError,
    UsageError,
)
from ipfsmem.memory import Memory
from ipfsmem.ring.keyring import Ring
from ipfsmem.sync import engine, schedule
from ipfsmem.sync.background import Attempt
from ipfsmem.sync.report import SyncReport
from tests.support.device_lab import ROOT, Lab, body
from tests.support.patience import PATIENCE


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setattr(schedule, "LEAST_WAIT", 0.001)
    made = Lab(tmp_path)
    yield made
    made.close()


async def until(so: Callable[[], object]) -> None:
    """Run other tasks until a condition is true."""
    async with asyncio.timeout(PATIENCE):
        while not so():
            await asyncio.sleep(0.001)


def run(work: AsyncIterator[None] | object) -> None:
    async def whole() -> None:
        async with asyncio.timeout(PATIENCE):
            await work  # type: ignore[misc]

    asyncio.run(whole())


class Heard(list[Attempt]):
    """Records the calls of `told`."""

    def __call__(self, attempt: Attempt) -> None:
        self.append(attempt)

    def errors(self) -> list[type[Exception]]:
        return [type(attempt.error) for attempt in self if attempt.error is not None]

    def worked(self) -> int:
        return sum(attempt.report is not None for attempt in self)


FAST = {"idle": 0.001, "most": 0.01, "every": 0.005}
#: Only explicit syncs happen within a test.
NEVER = {"idle": 3600.0, "most": 3600.0, "every": None}


def test_writes_of_others_arrive_without_local_writes(lab: Lab) -> None:
    a, b, _ = lab.three()

    async def work() -> None:
        async with b.autosync(**FAST) as memory:  # type: ignore[arg-type]
            assert memory is b
            a.write("tone", "from a")
            await a.sync()
            await until(lambda: body(b, "tone") == "from a")

    run(work())


def test_local_write_is_published_automatically(lab: Lab) -> None:
    a = lab.create("a")
    heard = Heard()

    async def work() -> None:
        async with a.autosync(idle=0.001, most=0.01, every=None, on_attempt=heard):
            a.write("tone", "direct")
            assert a.status().unpublished
            await until(lambda: heard.worked() and not a.status().unpublished)
            count = len(lab.provider("a").calls)
            await asyncio.sleep(0.05)
            assert len(lab.provider("a").calls) == count  # every=None: no request without a write

    run(work())


def test_write_in_another_thread_triggers_a_sync(lab: Lab) -> None:
    a = lab.create("a")

    async def work() -> None:
        async with a.autosync(idle=0.001, most=0.01, every=None):
            await asyncio.to_thread(a.write, "tone", "direct")
            await until(lambda: not a.status().unpublished)

    run(work())


def test_leaving_the_block_publishes_pending_writes(lab: Lab) -> None:
    a = lab.create("a")

    async def work() -> None:
        async with a.autosync(**NEVER):  # type: ignore[arg-type]
            a.write("tone", "direct")
        assert not a.status().unpublished

    run(work())


def test_outage_loses_nothing_and_is_retried(lab: Lab) -> None:
    a = lab.create("a")
    heard = Heard()

    async def work() -> None:
        async with a.autosync(**FAST, on_attempt=heard):  # type: ignore[arg-type]
            await until(heard.worked)
            lab.provider("a").faults.offline = True
            a.write("tone", "written in the dark")
            await until(lambda: len(heard.errors()) >= 3)
            assert body(a, "tone") == "written in the dark" and a.status().unpublished
            a.write("role", "and more")
            lab.provider("a").faults.offline = False
            await until(lambda: not a.status().unpublished)
        assert set(heard.errors()) == {ProviderUnavailable}
        assert all(attempt.passes and attempt.again_in is not None for attempt in heard if attempt.error)

    run(work())
    b = lab.restore("b")
    assert body(b, "tone") == "written in the dark" and body(b, "role") == "and more"


def test_outage_is_retried_also_without_an_interval(lab: Lab) -> None:
    a = lab.create("a")
    heard = Heard()

    async def work() -> None:
        async with a.autosync(idle=0.001, most=0.01, every=None, on_attempt=heard):
            lab.provider("a").faults.offline = True
            a.write("tone", "x")
            await until(heard.errors)
            lab.provider("a").faults.offline = False
            await until(lambda: not a.status().unpublished)

    run(work())


def test_failed_flush_is_retried_automatically(lab: Lab) -> None:
    a = lab.create("a")
    heard = Heard()

    async def work() -> None:
        async with a.autosync(**NEVER, on_attempt=heard):  # type: ignore[arg-type]
            a.write("tone", "x")
            lab.provider("a").faults.offline = True
            # The first wait after a failure is `idle`, an hour here.
            with pytest.raises(ProviderUnavailable):
                await a.flush()
            background = a._syncing.background
            assert background is not None and background._pace.due() is not None
            lab.provider("a").faults.offline = False
            assert await a.flush() is not None
            assert await a.flush() is None

    run(work())


def test_outage_at_the_end_is_raised_with_pending_writes(lab: Lab) -> None:
    a = lab.create("a")

    async def work() -> None:
        async with a.autosync(**FAST):  # type: ignore[arg-type]
            lab.provider("a").faults.offline = True
            a.write("tone", "x")

    with pytest.raises(ProviderUnavailable):
        run(work())
    assert a.status().unpublished
    lab.provider("a").faults.offline = False
    asyncio.run(a.sync())
    assert not a.status().unpublished


def test_outage_at_the_end_is_ignored_without_pending_writes(lab: Lab) -> None:
    a = lab.create("a")
    heard = Heard()

    async def work() -> None:
        async with a.autosync(**FAST, on_attempt=heard):  # type: ignore[arg-type]
            await until(heard.worked)
            lab.provider("a").faults.offline = True
            await until(heard.errors)

    run(work())


def test_autosync_reports_a_refusal_and_raises_it_in_flush_and_at_exit(lab: Lab) -> None:
    a = lab.create("a")
    heard = Heard()

    async def work() -> None:
        async with a.autosync(**FAST, on_attempt=heard):  # type: ignore[arg-type]
            await until(heard.worked)
            lab.provider("a").faults.refuse = True
            await until(lambda: len(heard.errors()) >= 2)  # the task continues
            assert not a.status().unpublished
            with pytest.raises(ProviderRefused):
                await a.flush()

    with pytest.raises(ProviderRefused):
        run(work())
    assert set(heard.errors()) == {ProviderRefused} and not any(a.passes for a in heard)


def test_resolved_refusal_is_not_raised(lab: Lab) -> None:
    a = lab.create("a")
    heard = Heard()

    async def work() -> None:
        async with a.autosync(**FAST, on_attempt=heard):  # type: ignore[arg-type]
            lab.provider("a").faults.refuse = True
            await until(heard.errors)
            lab.provider("a").faults.refuse = False
            before = heard.worked()
            await until(lambda: heard.worked() > before)

    run(work())


def test_autosync_without_callback_logs_refusals_but_no_outage(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    a = lab.create("a")

    async def work() -> None:
        async with a.autosync(**FAST):  # type: ignore[arg-type]
            lab.provider("a").faults.offline = True
            await asyncio.sleep(0.03)
            assert not caplog.records  # an outage needs no attention
            lab.provider("a").faults.offline = False
            lab.provider("a").faults.refuse = True
            await until(lambda: caplog.records)
            lab.provider("a").faults.refuse = False
            await until(lambda: a._syncing.background is not None and a._syncing.background.failure is None)

    with caplog.at_level(logging.WARNING, logger="ipfsmem.sync"):
        run(work())
    assert "ProviderRefused" in caplog.records[0].getMessage()


def test_unexpected_error_is_reported_and_does_not_end_autosync(lab: Lab) -> None:
    """Such as a bug in a provider."""
    a = lab.create("a")
    heard = Heard()
    provider = lab.provider("a")
    real = provider.get_name

    async def broken(name: str) -> bytes | None:
        raise RuntimeError("a bug")

    async def work() -> None:
        async with a.autosync(**FAST, on_attempt=heard):  # type: ignore[arg-type]
            provider.get_name = broken  # type: ignore[method-assign]
            await until(lambda: len(heard.errors()) >= 2)
            with pytest.raises(RuntimeError):
                await a.flush()
            provider.get_name = real  # type: ignore[method-assign]
            a.write("tone", "x")
            await until(lambda: not a.status().unpublished)

    run(work())
    assert set(heard.errors()) == {RuntimeError}


def test_callback_error_is_raised_at_the_end_and_writes_are_published(lab: Lab) -> None:
    a = lab.create("a")

    class Mine(Exception):
        pass

    attempts: list[Attempt] = []

    def told(attempt: Attempt) -> None:
        attempts.append(attempt)
        raise Mine

    async def work() -> None:
        async with a.autosync(**FAST, on_attempt=told):  # type: ignore[arg-type]
            await until(lambda: attempts)
            a.write("tone", "x")

    with pytest.raises(Mine):
        run(work())
    assert not a.status().unpublished


def test_error_of_the_block_is_raised_to_its_caller(lab: Lab) -> None:
    a = lab.create("a")

    async def work(offline: bool) -> None:
        async with a.autosync(**NEVER):  # type: ignore[arg-type]
            a.write("tone", f"{offline}")
            lab.provider("a").faults.offline = offline
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        run(work(False))
    assert not a.status().unpublished
    with pytest.raises(ValueError, match="mine") as caught:
        run(work(True))
    assert "could not be published" in "".join(caught.value.__notes__)


def test_cancelled_block_publishes_pending_writes(lab: Lab) -> None:
    a = lab.create("a")

    async def work() -> None:
        async def block() -> None:
            async with a.autosync(**NEVER):  # type: ignore[arg-type]
                a.write("tone", "x")
                await asyncio.Event().wait()

        task = asyncio.create_task(block())
        await until(lambda: body(a, "tone") == "x")
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert task.cancelled() and not a.status().unpublished

    run(work())


def test_hanging_sync_does_not_delay_the_end_without_pending_writes(lab: Lab) -> None:
    a = lab.create("a")
    asyncio.run(a.sync())
    provider, reached = lab.provider("a"), asyncio.Event()

    async def hangs(name: str) -> bytes | None:
        reached.set()
        await asyncio.Event().wait()
        return None

    async def work() -> None:
        provider.get_name = hangs  # type: ignore[method-assign]
        async with a.autosync(**FAST):  # type: ignore[arg-type]
            await reached.wait()

    run(work())


def test_publishing_sync_is_allowed_to_finish(lab: Lab) -> None:
    a = lab.create("a")
    asyncio.run(a.sync())
    provider, reached, go = lab.provider("a"), asyncio.Event(), asyncio.Event()
    real, uploads = provider.put_car, 0

    async def slow(*args: object, **named: object) -> object:
        nonlocal uploads
        uploads += 1
        reached.set()
        await go.wait()
        return await real(*args, **named)  # type: ignore[arg-type]

    async def work() -> None:
        provider.put_car = slow  # type: ignore[method-assign,assignment]
        async with a.autosync(idle=0.001, most=0.01, every=None):
            a.write("tone", "x")
            await reached.wait()
            asyncio.get_running_loop().call_later(0.01, go.set)

    run(work())
    assert uploads == 1 and not a.status().unpublished


def test_flush_waits_for_a_running_sync_of_its_own_program(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "WAIT_FOR_OTHERS", 0.01)
    a = lab.create("a")
    asyncio.run(a.sync())
    provider, reached, go = lab.provider("a"), asyncio.Event(), asyncio.Event()
    real = provider.put_car

    async def slow(*args: object, **named: object) -> object:
        reached.set()
        await go.wait()
        return await real(*args, **named)  # type: ignore[arg-type]

    async def work() -> None:
        provider.put_car = slow  # type: ignore[method-assign,assignment]
        async with a.autosync(idle=0.001, most=0.01, every=None):
            a.write("tone", "x")
            await reached.wait()
            asyncio.get_running_loop().call_later(0.2, go.set)
            assert await a.flush() is not None
            assert not a.status().unpublished

    run(work())


def test_autosync_that_cannot_publish_is_refused_at_entry(tmp_path: Path) -> None:
    async def enter(memory: Memory, **named: object) -> None:
        async with memory.autosync(**named):  # type: ignore[arg-type]
            raise AssertionError("not reached")

    with (
        Memory.create("l", "local", home=tmp_path) as local,
        pytest.raises(UsageError, match="is never published"),
    ):
        run(enter(local))
    made = Memory.create("e", "encrypted-ipfs", unlock=ROOT, passphrase=False, home=tmp_path)
    with made as nowhere, pytest.raises(ConfigError, match="no provider"):
        run(enter(nowhere))
    (tmp_path / "stick").mkdir()
    public = Memory.create(
        "p", "ipfs", unlock=ROOT, provider=str(tmp_path / "stick"), home=tmp_path / "other"
    )
    with public:
        with pytest.raises(PublicError):
            run(enter(public))
        with pytest.raises(UsageError):
            run(enter(public, public_ok=True, every=0))


def test_second_autosync_of_one_vault_is_refused(lab: Lab) -> None:
    a = lab.create("a")

    async def work() -> None:
        async with a.autosync(**NEVER):  # type: ignore[arg-type]
            with pytest.raises(UsageError, match="already"):
                async with a.autosync(**NEVER):  # type: ignore[arg-type]
                    raise AssertionError("not reached")
            a.write("tone", "the first one goes on")
            assert a._syncing.background is not None
        async with a.autosync(**NEVER):  # type: ignore[arg-type]
            assert not a.status().unpublished

    run(work())


def test_mode_none_accepts_autosync_and_does_nothing() -> None:
    async def work() -> None:
        async with Memory.load(mode="none").autosync(**FAST) as memory:  # type: ignore[arg-type]
            memory.write("tone", "x")
            assert await memory.flush() == SyncReport()

    run(work())


def test_autosync_raises_secrets_error_until_the_memory_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "stick").mkdir()
    memory = Memory.create(
        "p", "ipfs", unlock=ROOT, provider=str(tmp_path / "stick"), public_ok=True, home=tmp_path
    )
    heard, secret = Heard(), "AKIA" + "ABCDEFGHIJKLMNOP"

    async def work(allow: tuple[str, ...] = ()) -> None:
        async with memory.autosync(idle=0.001, most=0.01, every=0.05, allow=allow, on_attempt=heard):
            memory.write("wallet", secret)
            await until(lambda: heard.errors() or heard.worked() > 1)
            with pytest.raises(SecretsError) if not allow else contextlib.nullcontext():
                await memory.flush()

    with memory:
        with pytest.raises(SecretsError):
            run(work())
        assert SecretsError in heard.errors()
        heard.clear()
        run(work(("wallet",)))
        assert heard.errors() == [] and not memory.status().unpublished


@pytest.mark.parametrize("what", ["revoke", "rotate", "new_words"])
def test_member_change_that_failed_is_synced_in_the_background_later(lab: Lab, what: str) -> None:
    """The provider goes down after the local change; another process syncs it."""
    a, b, _ = lab.three()
    a.unlock(ROOT)
    provider = lab.provider("a")
    made = a.replica.set_ring

    def set_ring(ring: Ring) -> None:
        before = a.replica.ring
        made(ring)
        provider.faults.offline = before is None or before.statements != ring.statements

    a.replica.set_ring = set_ring  # type: ignore[method-assign]
    if what == "new_words":
        assert asyncio.run(a.members.new_words()).problem
    else:
        with pytest.raises(ProviderUnavailable):
            asyncio.run(a.members.revoke(b.device) if what == "revoke" else a.members.rotate())
    provider.faults.offline = False
    a.close()
    a = lab.open("a")
    assert a.status().unpublished and a.status().waiting == ["a change of the members"]

    async def block() -> None:
        async with a.autosync(idle=0.001, every=None):
            await until(lambda: not a.status().unpublished)

    run(block())
    assert a.status().waiting == []
