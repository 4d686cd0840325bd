"""The providers of one sync, each on its own: what it may cost the others, and the pauses that it asked for.

A sync that has several providers runs at most twice. The first run is hurried: a provider that keeps the others waiting is left
out of it, so the healthy ones hold what was written at once. The second run asks those again, each until its deadline. It trusts
nobody: a provider that is left out is an outage like any other, and the report names it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta
from ipfsmem.errors import IpfsmemError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import (
    Block,
    Capabilities,
    Fetching,
    Pin,
    Provider,
    Settling,
    Unreading,
    told_of_pauses,
)
from ipfsmem.sync.progress import Progress

T = TypeVar("T")
#: Seconds that all providers together wait for one in the hurried run.
HURRY: Final = 0.4
#: Seconds until a provider with others beside it must have answered a small request.
ANSWER: Final = 8.0
#: The same where a network or a service has work to do first: to look a name up, to process an upload.
NETWORK: Final = 25.0
SERVICE: Final = 90.0
#: Seconds in all that one sync waits for the small requests of one provider.
DEADLINE: Final = 60.0
#: Bytes a second that even a slow connection moves, and seconds that a block takes in an answer of many.
_SLOWEST: Final = 64 * 1024
_BLOCK: Final = 0.05
#: Pauses up to so many seconds are waited for by whoever sends the request; a longer one ends the provider's part in the sync, and so does
#: a shorter one after that where others are beside it.
WAITED: Final = 5.0
#: The longest pause that is kept, in seconds: a provider must not keep itself out for good.
LONGEST: Final = 3600.0
#: Seconds between two looks at a call that is under way.
_STEP: Final = 0.05
#: A pin name that nobody pins under.
_NOBODYS: Final = "ipfsmem-nobody"
#: What a provider may offer beside the contract, as coroutines.
_OFFERS: Final = ("collect", "lacking", "unpin_all", "connect", "listing", "read_stored")


def kept_pauses(replica: Replica) -> dict[str, int]:
    """The pauses that providers asked for and that are not over: when each ends, in milliseconds since 1970 UTC."""
    stored, now = replica.db.get_meta(meta.PAUSES), replica.world.now()
    try:
        kept = read_json(stored, type=dict[str, int]) if stored else {}
    except msgspec.DecodeError:
        return {}
    return {name: until for name, until in kept.items() if now < until <= now + LONGEST * 1_000}


def clock_time(milliseconds: int) -> str:
    """A moment for people, to the second."""
    return f"{datetime.fromtimestamp(milliseconds // 1000, UTC):%H:%M:%S} UTC"


async def side_by_side(works: Iterable[Awaitable[T]]) -> list[T]:
    """What these give, done at the same time. All have ended when one has failed, and the first failure is raised then."""
    found = await asyncio.gather(*works, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [one for one in found if not isinstance(one, BaseException)]


class Company:
    """The providers of one sync. `members` stand for them, in their order."""

    def __init__(
        self,
        replica: Replica,
        providers: Sequence[Provider],
        progress: Progress,
        *,
        before: Company | None = None,
    ) -> None:
        """`before`: the company of an earlier step of the same command; who was given up there is asked nothing here."""
        self._replica, self._progress = replica, progress
        told_of_pauses.set(self.say)
        self._pauses = kept_pauses(replica)
        self.members = [Member(self, provider) for provider in providers]
        #: Those that others need not wait for. What only reads, as a file does, is nobody's company.
        self._others = [one for one in self.members if one.is_place]
        self.hurried = False
        for one in self.members:
            if until := self._pauses.get(one.name):
                left = (until - replica.world.now()) // 1000 + 1
                text = f"{one.name} asked to be left alone until {clock_time(until)}, another {left} s"
                one.leave_out(ProviderUnavailable(text), paused_until=until)
        gone = {one.name: one for one in before.missed} if before is not None else {}
        for one in self.members:
            if (was := gone.get(one.name)) is not None and was.gone is not None:
                one.leave_out(was.gone, paused_until=was.paused_until, cause=was.cause)
                if was.paused_until:
                    self._pauses[one.name] = was.paused_until

    @property
    def is_company(self) -> bool:
        """Whether anybody waits for anybody."""
        return len(self._others) > 1

    @property
    def late(self) -> list[Member]:
        """Those that the hurried run left out."""
        return [one for one in self.members if one.late]

    @property
    def missed(self) -> list[Member]:
        """Those that took no part, or not to the end."""
        return [one for one in self.members if one.late or one.gone is not None]

    def in_order(self) -> list[Member]:
        """Those that answered in time first."""
        return sorted(self.members, key=lambda one: one.was_late)

    def begin(self, *, hurried: bool) -> None:
        """Begin a run. Who was late is asked again; who is gone stays so."""
        self.hurried = hurried
        for one in self.members:
            one.was_late |= one.late
            one.late = False

    def be_patient(self) -> None:
        """From here on each works for itself, so nobody is hurried."""
        self.hurried = False

    @contextlib.asynccontextmanager
    async def noticing_the_silent(self) -> AsyncIterator[None]:
        """A block in which those that answer nothing at all are soon given up: each is asked for something that nobody keeps. A name or
        an upload may take a healthy provider far longer."""
        asked = [one for one in self._others if self.is_company and one.capabilities.list]
        looks = [asyncio.ensure_future(one.pins(_NOBODYS)) for one in asked]
        try:
            yield
        finally:
            for look in looks:
                look.cancel()
            await asyncio.gather(*looks, return_exceptions=True)

    def somebody_waits(self, but: Member) -> bool:
        """Whether another provider has nothing to do while this one works."""
        return any(one is not but and one.is_idle for one in self._others)

    def say(self, text: str) -> None:
        """Tell whoever looks on, at once."""
        self._progress(text, 0, 0)

    def pause(self, member: Member, error: ProviderError, seconds: float) -> None:
        """A provider asked to be left alone: it is, in this sync and in those that begin before the pause is over."""
        until = self._replica.world.now() + int(min(max(seconds, 1.0), LONGEST) * 1000)
        text = f"{member.name} asks to be left alone until {clock_time(until)}"
        member.leave_out(ProviderUnavailable(f"{text}: {error}"), paused_until=until, cause=str(error))
        self._pauses[member.name] = until
        self.say(f"{text}; continuing without it")

    def keep_pauses(self) -> None:
        """Remember the pauses that are not over. Outside any transaction."""
        now, kept = self._replica.world.now(), kept_pauses(self._replica)
        wanted = {name: until for name, until in self._pauses.items() if until > now}
        if wanted != kept:
            with self._replica.transaction():
                self._replica.db.set_meta(meta.PAUSES, msgspec.json.encode(wanted))


class Member:
    """One provider of a sync, as its steps see it: the same contract, bounded in time where others are beside it."""

    def __init__(self, company: Company, provider: Provider) -> None:
        self._company, self._provider = company, provider
        can = provider.capabilities
        #: Whether it keeps something, and so can be waited for in vain.
        self.is_place = can.put or can.names or can.pin
        #: Why it is asked nothing more in this sync.
        self.gone: ProviderError | None = None
        #: The same in the provider's own words.
        self.cause = ""
        self.paused_until = 0
        #: Whether the run that is under way goes on without it, and whether an earlier one did.
        self.late = self.was_late = False
        #: The texts of its refusals in this sync.
        self.refusals: set[str] = set()
        self._calls = 0
        self._hurry = self._spent = 0.0
        for name in _OFFERS:
            if hasattr(provider, name):
                setattr(self, name, self._offer(name))
        if isinstance(provider, Fetching):
            setattr(self, "fetchers", provider.fetchers)  # noqa: B010
        if isinstance(provider, Unreading):
            setattr(self, "unread", provider.unread)  # noqa: B010
        if isinstance(provider, Settling):  # it never fails, and bounds itself
            setattr(self, "settle", provider.settle)  # noqa: B010

    @property
    def name(self) -> str:
        """The provider's name."""
        return self._provider.name

    @property
    def capabilities(self) -> Capabilities:
        """What the provider can do."""
        return self._provider.capabilities

    @property
    def is_idle(self) -> bool:
        """Whether it takes part and has nothing to do."""
        return self._calls == 0 and not self.late and self.gone is None

    def leave_out(self, why: ProviderError, *, paused_until: int = 0, cause: str = "") -> None:
        """Ask it nothing more in this sync."""
        self.gone, self.paused_until, self.cause = why, paused_until, cause or str(why)

    # -- the contract ----------------------------------------------------------------------------------------------

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """See `Provider.put_car`. As long as it takes blocks it moves."""
        base = ANSWER if self.capabilities.partial_car else SERVICE
        call = _Call(base)

        def counted() -> Iterator[Block]:
            try:
                for cid, data in blocks:
                    call.moved(base + call.bytes / _SLOWEST, len(data))
                    yield cid, data
            except Exception as error:
                call.source_error = error
                raise

        return await self._ask(lambda: self._provider.put_car(root, counted(), name=name), call)

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """See `Provider.has`."""
        call = _Call(ANSWER + _BLOCK * len(cids))
        return await self._ask(lambda: self._provider.has(cids), call)

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """See `Provider.get_blocks`."""
        call = _Call(ANSWER + _BLOCK * len(cids))
        return await self._ask(lambda: self._provider.get_blocks(cids), call)

    async def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """See `Provider.get_dag`. A tree comes in one answer, which its provider bounds as long as it moves."""
        async with contextlib.aclosing(self._blocks_of(root)) as found:
            async for block in found:
                yield block

    async def _blocks_of(self, root: CID) -> AsyncGenerator[Block, None]:
        source = self._provider.get_dag(root)
        while True:
            try:
                block = await self._ask(lambda: anext(source, None), _Call(SERVICE))
            except BaseException:
                with contextlib.suppress(Exception):
                    await getattr(source, "aclose", _nothing)()
                raise
            if block is None:
                return
            yield block

    async def pin(self, root: CID, name: str) -> Pin:
        """See `Provider.pin`."""
        call = _Call(ANSWER if self.capabilities.partial_car else SERVICE)
        return await self._ask(lambda: self._provider.pin(root, name), call)

    async def pins(self, name: str) -> list[Pin]:
        """See `Provider.pins`."""
        return await self._ask(lambda: self._provider.pins(name), _Call(ANSWER, small=True))

    async def unpin(self, pin: Pin) -> None:
        """See `Provider.unpin`."""
        await self._ask(lambda: self._provider.unpin(pin), _Call(ANSWER, small=True))

    async def put_name(self, name: str, record: bytes) -> None:
        """See `Provider.put_name`."""
        await self._ask(lambda: self._provider.put_name(name, record), self._name_call())

    async def get_name(self, name: str) -> bytes | None:
        """See `Provider.get_name`."""
        return await self._ask(lambda: self._provider.get_name(name), self._name_call())

    async def close(self) -> None:
        """Whoever opened the provider closes it."""

    def _name_call(self) -> _Call:
        return _Call(ANSWER if self.capabilities.durable else NETWORK, small=True)

    def _offer(self, name: str) -> Callable[..., Awaitable[Any]]:
        real = getattr(self._provider, name)

        async def call(*given: Any) -> Any:
            size = len(given[0]) if given else 0
            base = ANSWER if name in ("listing", "lacking", "read_stored") else SERVICE
            return await self._ask(lambda: real(*given), _Call(base + _BLOCK * size))

        return call

    # -- how long it may take --------------------------------------------------------------------------------------

    async def _ask(self, work: Callable[[], Awaitable[T]], call: _Call) -> T:
        self._refuse_missed()
        try:
            return await (self._watched(work, call) if self._company.is_company else work())
        except ProviderError as error:
            # Whoever sent the request has waited for a short pause, and was turned away once more.
            most = 0.0 if self._company.is_company else WAITED
            if (after := error.again_after) is not None and after > most and self.gone is None:
                self._company.pause(self, error, after)
            if isinstance(error, ProviderRefused):
                self.refusals.add(str(error))
            raise
        except Exception as error:
            ours = isinstance(error, IpfsmemError) or error is call.source_error
            if ours or not self._company.is_company:
                raise  # of the blocks that are sent; or nobody else needs this sync
            # Without its message, which may repeat a request with a token.
            text = f"{self.name} failed with an unexpected error: {type(error).__name__}"
            raise ProviderUnavailable(text) from error

    def _refuse_missed(self) -> None:
        if self.gone is not None:
            raise ProviderUnavailable(str(self.gone), hint=self.gone.hint)
        if self.late:
            raise ProviderUnavailable(f"{self.name} has not answered yet")

    async def _watched(self, work: Callable[[], Awaitable[T]], call: _Call) -> T:
        """The outcome of one call, unless it takes too long or the provider is given up meanwhile."""
        task = asyncio.ensure_future(work())
        loop = asyncio.get_running_loop()
        last = loop.time()
        self._calls += 1
        try:
            while True:
                await asyncio.wait([task], timeout=_STEP)
                if task.done():
                    return task.result()
                # What this program itself kept the loop busy with is no fault of the provider.
                last, passed = loop.time(), min(_STEP, loop.time() - last)
                self._count(call, passed)
                self._refuse_missed()
        except asyncio.CancelledError:
            task.cancel()
            while not task.done():  # as the contract says, it leaves nothing half done
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
            raise
        finally:
            self._calls -= 1
            if not task.done():
                task.cancel()
                _LEFT.add(task)
            task.add_done_callback(_forget)

    def _count(self, call: _Call, passed: float) -> None:
        call.waited += passed
        if call.small:
            self._spent += passed / self._calls  # side by side they wait once
        if self._company.hurried and self._company.somebody_waits(self):
            self._hurry += passed / self._calls
            if self._hurry >= HURRY:
                self.late = True
                self._company.say(f"{self.name} has not answered yet; continuing without it")
                return
        if call.waited >= call.limit or self._spent >= DEADLINE:
            took = call.waited if call.waited >= call.limit else self._spent
            self.leave_out(ProviderUnavailable(f"{self.name} did not answer within {took:.0f} s"))
            self._company.say(f"{self.gone}; continuing without it")


class _Call:
    """One call under way: how long it has waited since it last moved, and how long it may; in seconds."""

    def __init__(self, limit: float, *, small: bool = False) -> None:
        self.limit, self.small = limit, small
        self.waited = 0.0
        self.bytes = 0
        #: What the source of the blocks that are sent raised.
        self.source_error: Exception | None = None

    def moved(self, limit: float, size: int) -> None:
        """It took `size` bytes more, and may take so long for what it has."""
        self.waited, self.limit = 0.0, limit
        self.bytes += size


#: Calls that were given up and have not ended yet: an event loop holds its tasks only weakly.
_LEFT: set[asyncio.Future[Any]] = set()


def _forget(task: asyncio.Future[Any]) -> None:
    _LEFT.discard(task)
    if not task.cancelled():
        task.exception()  # asked for, so that the loop does not report it as nobody's


async def _nothing() -> None:
    """Close what has no end."""
