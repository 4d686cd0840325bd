"""Isolate the providers of one sync from each other, with time limits and the pauses that they requested.

With several providers, a sync runs at most twice. The first, hurried run omits providers that keep others waiting, so
that healthy providers receive new writes at once. The second run calls the omitted ones again, each until its
deadline. The report treats an omitted provider as an outage.
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
    Collecting,
    Connecting,
    Fetching,
    GroupCommit,
    Listing,
    Pin,
    Provider,
    Raw,
    Repair,
    Settling,
    SmallArea,
    Snapshots,
    Unpinning,
    Unreading,
    told_of_pauses,
)
from ipfsmem.sync.progress import Progress

T = TypeVar("T")
#: Seconds for which all providers together wait for one provider in the hurried run.
HURRY: Final = 0.4
#: Seconds for a small request to a provider when there are others.
ANSWER: Final = 8.0
#: The same for requests that a network or service must process first: a name lookup, an upload.
NETWORK: Final = 25.0
SERVICE: Final = 90.0
#: Total seconds for which one sync waits for the small requests of one provider.
DEADLINE: Final = 60.0
#: Minimum bytes per second of a slow connection, and seconds for a block in an answer with many.
_SLOWEST: Final = 64 * 1024
_BLOCK: Final = 0.05
#: Maximum pause in seconds for which a request waits. A longer pause ends the provider's part in the sync; if there
#: are other providers, so does a second pause.
WAITED: Final = 5.0
#: Maximum pause in seconds that is honoured, so that a provider cannot exclude itself permanently.
LONGEST: Final = 3600.0
#: Seconds between two checks of a running call.
_STEP: Final = 0.05
#: A pin name that is never used, for requests that only test whether a provider responds.
_UNUSED_NAME: Final = "ipfsmem-nobody"
#: Optional coroutine methods of providers: those that answer soon, and all of them.
_QUICK_METHODS: Final = tuple(
    one.__name__
    for one in (
        Listing.listing,
        Repair.missing_blocks,
        Raw.read_stored,
        SmallArea.list_small,
        SmallArea.get_small,
    )
)
_OPTIONAL_METHODS: Final = (
    *_QUICK_METHODS,
    *(
        one.__name__
        for one in (
            Collecting.collect,
            Unpinning.unpin_all,
            Connecting.connect,
            SmallArea.put_small,
            SmallArea.remove_small,
        )
    ),
)


def kept_pauses(replica: Replica) -> dict[str, int]:
    """Return the end of each requested pause that is in effect, by provider, in milliseconds since 1970 UTC."""
    stored, now = replica.db.get_meta(meta.PAUSES), replica.environment.now()
    try:
        pauses = read_json(stored, type=dict[str, int]) if stored else {}
    except msgspec.DecodeError:
        return {}
    return {name: until for name, until in pauses.items() if now < until <= now + LONGEST * 1_000}


def clock_time(milliseconds: int) -> str:
    """Format a time for users, to the second."""
    return f"{datetime.fromtimestamp(milliseconds // 1000, UTC):%H:%M:%S} UTC"


async def side_by_side(works: Iterable[Awaitable[T]]) -> list[T]:
    """Run coroutines concurrently and return all results. If any fails, all are awaited, then the first failure is
    raised."""
    results = await asyncio.gather(*works, return_exceptions=True)
    for one in results:
        if isinstance(one, BaseException):
            raise one
    return [one for one in results if not isinstance(one, BaseException)]


class Company:
    """The providers of one sync. `members` wrap them, in order."""

    def __init__(
        self,
        replica: Replica,
        providers: Sequence[Provider],
        progress: Progress,
        *,
        before: Company | None = None,
    ) -> None:
        """`before`: the company of an earlier step of the same command. Providers that were given up there are not
        called again."""
        self._replica, self._progress = replica, progress
        told_of_pauses.set(self.say)
        self._pauses = kept_pauses(replica)
        self.members = [CompanyMember(self, provider) for provider in providers]
        #: Providers whose waits for each other are limited, without those that are only read, such as a file.
        self._others = [one for one in self.members if one.is_place]
        self.hurried = False
        for one in self.members:
            if until := self._pauses.get(one.name):
                seconds = (until - replica.environment.now()) // 1000 + 1
                text = f"{one.name} accepts no requests until {clock_time(until)}, for another {seconds} s"
                one.leave_out(ProviderUnavailable(text), paused_until=until)
        gone = {one.name: one for one in before.absent} if before is not None else {}
        for one in self.members:
            if (was := gone.get(one.name)) is not None and was.gone is not None:
                one.leave_out(was.gone, paused_until=was.paused_until, cause=was.cause)
                if was.paused_until:
                    self._pauses[one.name] = was.paused_until

    @property
    def is_company(self) -> bool:
        """Tell whether there are several providers, so that one can keep another waiting."""
        return len(self._others) > 1

    @property
    def late(self) -> list[CompanyMember]:
        """Return the providers that the hurried run omitted."""
        return [one for one in self.members if one.late]

    @property
    def absent(self) -> list[CompanyMember]:
        """Return the providers that did not take part to the end."""
        return [one for one in self.members if one.late or one.gone is not None]

    def in_order(self) -> list[CompanyMember]:
        """Return all providers, those that answered in time first."""
        return sorted(self.members, key=lambda one: one.was_late)

    def begin(self, *, hurried: bool) -> None:
        """Begin a run. Late providers are called again, providers that were given up are not."""
        self.hurried = hurried
        for one in self.members:
            one.was_late |= one.late
            one.late = False

    def be_patient(self) -> None:
        """End the hurried run: from now on, each provider has its own deadline."""
        self.hurried = False

    @contextlib.asynccontextmanager
    async def detecting_unresponsive(self) -> AsyncIterator[None]:
        """While the block runs, test providers by a request for a pin name that is never used, and give up
        unresponsive ones.

        A healthy provider may need far longer for a name lookup or upload, so their durations show nothing.
        """
        providers = [one for one in self._others if self.is_company and one.capabilities.list]
        looks = [asyncio.ensure_future(one.pins(_UNUSED_NAME)) for one in providers]
        try:
            yield
        finally:
            for look in looks:
                look.cancel()
            await asyncio.gather(*looks, return_exceptions=True)

    def is_any_idle(self, but: CompanyMember) -> bool:
        """Tell whether a provider other than `but` is idle."""
        return any(one is not but and one.is_idle for one in self._others)

    def say(self, text: str) -> None:
        """Report progress at once."""
        self._progress(text, 0, 0)

    def pause(self, member: CompanyMember, error: ProviderError, seconds: float) -> None:
        """Honour a provider's request for a pause, in this sync and later ones until it ends."""
        until = self._replica.environment.now() + int(min(max(seconds, 1.0), LONGEST) * 1000)
        text = f"{member.name} accepts no requests until {clock_time(until)}"
        member.leave_out(ProviderUnavailable(f"{text}: {error}"), paused_until=until, cause=str(error))
        self._pauses[member.name] = until
        self.say(f"{text}; continuing without it")

    def keep_pauses(self) -> None:
        """Store the pauses still in effect. Outside any transaction."""
        now, stored = self._replica.environment.now(), kept_pauses(self._replica)
        pauses = {name: until for name, until in self._pauses.items() if until > now}
        if pauses != stored:
            with self._replica.transaction():
                self._replica.db.set_meta(meta.PAUSES, msgspec.json.encode(pauses))


class CompanyMember:
    """Wraps one provider of a sync, with time limits if there are other providers."""

    def __init__(self, company: Company, provider: Provider) -> None:
        self._company, self._provider = company, provider
        can = provider.capabilities
        #: Whether it stores data, and so may be waited for.
        self.is_place = can.put or can.names or can.pin
        #: The reason why it is not called again in this sync.
        self.gone: ProviderError | None = None
        #: The same as the provider's own error message.
        self.cause = ""
        self.paused_until = 0
        #: Whether the current run continues without it, and whether an earlier run did.
        self.late = self.was_late = False
        #: The texts of its refusals in this sync.
        self.refusals: set[str] = set()
        self._calls = 0
        #: Bytes passed to `put_car` and not sent before the next group commit.
        self._held_back = 0
        self._hurry = self._spent = 0.0
        for name in _OPTIONAL_METHODS:
            if hasattr(provider, name):
                setattr(self, name, self._offer(name))
        if isinstance(provider, Fetching):
            setattr(self, "fetchers", provider.fetchers)  # noqa: B010
        if isinstance(provider, Unreading):
            setattr(self, "unread", provider.unread)  # noqa: B010
        if isinstance(provider, Snapshots):
            setattr(self, "begin_snapshot", provider.begin_snapshot)  # noqa: B010
            setattr(self, "end_snapshot", provider.end_snapshot)  # noqa: B010
        if isinstance(provider, GroupCommit):
            setattr(self, "begin_group", provider.begin_group)  # noqa: B010
            setattr(self, "commit_group", self._commit_group)  # noqa: B010
            setattr(self, "discard_group", provider.discard_group)  # noqa: B010
        if isinstance(provider, Settling):  # this method never fails and has its own time limit
            setattr(self, "settle", provider.settle)  # noqa: B010

    @property
    def name(self) -> str:
        """Return the provider's name."""
        return self._provider.name

    @property
    def capabilities(self) -> Capabilities:
        """Return the provider's capabilities."""
        return self._provider.capabilities

    @property
    def is_idle(self) -> bool:
        """Tell whether it takes part and is idle."""
        return self._calls == 0 and not self.late and self.gone is None

    def leave_out(self, why: ProviderError, *, paused_until: int = 0, cause: str = "") -> None:
        """Stop calling this provider in this sync."""
        self.gone, self.paused_until, self.cause = why, paused_until, cause or str(why)

    # -- the contract ----------------------------------------------------------------------------------------------

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """See `Provider.put_car`. Reading blocks counts as progress."""
        base = ANSWER if self.capabilities.partial_car else SERVICE
        call = _RunningCall(base)

        def counted() -> Iterator[Block]:
            try:
                for cid, data in blocks:
                    call.moved(base + call.bytes / _SLOWEST, len(data))
                    self._held_back += len(data)
                    yield cid, data
            except Exception as error:
                call.source_error = error
                raise

        return await self._ask(lambda: self._provider.put_car(root, counted(), name=name), call)

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """See `Provider.has`."""
        call = _RunningCall(ANSWER + _BLOCK * len(cids))
        return await self._ask(lambda: self._provider.has(cids), call)

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """See `Provider.get_blocks`."""
        call = _RunningCall(ANSWER + _BLOCK * len(cids))
        return await self._ask(lambda: self._provider.get_blocks(cids), call)

    async def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """See `Provider.get_dag`. The answer is a whole tree; the provider itself limits the time without progress."""
        async with contextlib.aclosing(self._blocks_of(root)) as blocks:
            async for block in blocks:
                yield block

    async def _blocks_of(self, root: CID) -> AsyncGenerator[Block, None]:
        source = self._provider.get_dag(root)
        while True:
            try:
                block = await self._ask(lambda: anext(source, None), _RunningCall(SERVICE))
            except BaseException:
                with contextlib.suppress(Exception):
                    await getattr(source, "aclose", _nothing)()
                raise
            if block is None:
                return
            yield block

    async def pin(self, root: CID, name: str) -> Pin:
        """See `Provider.pin`."""
        call = _RunningCall(ANSWER if self.capabilities.partial_car else SERVICE)
        return await self._ask(lambda: self._provider.pin(root, name), call)

    async def pins(self, name: str) -> list[Pin]:
        """See `Provider.pins`."""
        return await self._ask(lambda: self._provider.pins(name), _RunningCall(ANSWER, small=True))

    async def unpin(self, pin: Pin) -> None:
        """See `Provider.unpin`."""
        await self._ask(lambda: self._provider.unpin(pin), _RunningCall(ANSWER, small=True))

    async def put_name(self, name: str, record: bytes) -> None:
        """See `Provider.put_name`."""
        await self._ask(lambda: self._provider.put_name(name, record), self._name_call())

    async def get_name(self, name: str) -> bytes | None:
        """See `Provider.get_name`."""
        return await self._ask(lambda: self._provider.get_name(name), self._name_call())

    async def close(self) -> None:
        """Do nothing: the opener of the provider closes it."""

    async def _commit_group(self) -> None:
        """See `GroupCommit.commit_group`. All bytes of the group are sent now."""
        assert isinstance(self._provider, GroupCommit)
        call = _RunningCall(SERVICE + self._held_back / _SLOWEST)
        self._held_back = 0
        await self._ask(self._provider.commit_group, call)

    def _name_call(self) -> _RunningCall:
        return _RunningCall(ANSWER if self.capabilities.durable else NETWORK, small=True)

    def _offer(self, name: str) -> Callable[..., Awaitable[Any]]:
        real = getattr(self._provider, name)

        async def call(*arguments: Any) -> Any:
            size = len(arguments[0]) if arguments else 0
            base = ANSWER if name in _QUICK_METHODS else SERVICE
            return await self._ask(lambda: real(*arguments), _RunningCall(base + _BLOCK * size))

        return call

    # -- time limits -----------------------------------------------------------------------------------------------

    async def _ask(self, work: Callable[[], Awaitable[T]], call: _RunningCall) -> T:
        self._refuse_missed()
        try:
            return await (self._watched(work, call) if self._company.is_company else work())
        except ProviderError as error:
            # The caller has already waited for a short pause, and was refused again.
            most = 0.0 if self._company.is_company else WAITED
            if (after := error.again_after) is not None and after > most and self.gone is None:
                self._company.pause(self, error, after)
            if isinstance(error, ProviderRefused):
                self.refusals.add(str(error))
            raise
        except Exception as error:
            ours = isinstance(error, IpfsmemError) or error is call.source_error
            if ours or not self._company.is_company:
                raise  # an error of the source of the blocks; or there is no other provider
            # Without the error's message, which may contain a request with a token.
            text = f"{self.name} failed with an unexpected error: {type(error).__name__}"
            raise ProviderUnavailable(text) from error

    def _refuse_missed(self) -> None:
        if self.gone is not None:
            raise ProviderUnavailable(str(self.gone), hint=self.gone.hint)
        if self.late:
            raise ProviderUnavailable(f"{self.name} has not answered yet")

    async def _watched(self, work: Callable[[], Awaitable[T]], call: _RunningCall) -> T:
        """Return the result of one call. Raises if its time limit passes or the provider is given up meanwhile."""
        task = asyncio.ensure_future(work())
        loop = asyncio.get_running_loop()
        last = loop.time()
        self._calls += 1
        try:
            while True:
                await asyncio.wait([task], timeout=_STEP)
                if task.done():
                    return task.result()
                # Time in which this program blocked the loop is not the provider's fault.
                last, passed = loop.time(), min(_STEP, loop.time() - last)
                self._count(call, passed)
                self._refuse_missed()
        except asyncio.CancelledError:
            task.cancel()
            while not task.done():  # by the contract, a cancelled call leaves nothing half done
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
            raise
        finally:
            self._calls -= 1
            if not task.done():
                task.cancel()
                _LEFT.add(task)
            task.add_done_callback(_forget)

    def _count(self, call: _RunningCall, passed: float) -> None:
        call.waited += passed
        if call.small:
            self._spent += passed / self._calls  # concurrent calls count the same wait once
        if self._company.hurried and self._company.is_any_idle(self):
            self._hurry += passed / self._calls
            if self._hurry >= HURRY:
                self.late = True
                self._company.say(f"{self.name} has not answered yet; continuing without it")
                return
        if call.waited >= call.limit or self._spent >= DEADLINE:
            took = call.waited if call.waited >= call.limit else self._spent
            self.leave_out(ProviderUnavailable(f"{self.name} did not answer within {took:.0f} s"))
            self._company.say(f"{self.gone}; continuing without it")


class _RunningCall:
    """A running call, with the time since its last progress and its limit in seconds."""

    def __init__(self, limit: float, *, small: bool = False) -> None:
        self.limit, self.small = limit, small
        self.waited = 0.0
        self.bytes = 0
        #: The error of the source of the blocks being sent.
        self.source_error: Exception | None = None

    def moved(self, limit: float, size: int) -> None:
        """Note progress of `size` bytes, and set the time limit for processing them."""
        self.waited, self.limit = 0.0, limit
        self.bytes += size


#: Abandoned calls that have not ended: an event loop holds its tasks only weakly.
_LEFT: set[asyncio.Future[Any]] = set()


def _forget(task: asyncio.Future[Any]) -> None:
    _LEFT.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that the loop does not report it as unhandled


async def _nothing() -> None:
    """Close an iterator that has no close method."""
