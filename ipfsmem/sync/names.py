"""Name records of one vault: read at every provider that keeps names, moved where this device may sign, put again in time.

Providers are trusted with nothing: a record counts when its signature does. A record that has run out is still followed, for
what it leads to is verified by itself; that it has run out is said. Networks forget records, so this device remembers when it
put each one where.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256

import msgspec

from ipfsmem.content.cid import CID, ipns_name
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta
from ipfsmem.errors import FormatError, IpfsmemError, LimitError, ProviderError, SignatureError
from ipfsmem.provider.contract import Provider
from ipfsmem.published.ipns_record import (
    MAX_SEQUENCE,
    MAX_VALIDITY,
    Record,
    make_record,
    record_order,
    value_target,
    verify_record,
)
from ipfsmem.sync.company import side_by_side
from ipfsmem.sync.report import Notices
from ipfsmem.sync.times import HOUR_MS, passed

ANCHOR_LIFE_MS = 10 * 365 * 86_400_000
DEVICE_LIFE_MS = 365 * 86_400_000
#: A record is put again so long after it was put last: public DHT nodes forget after 48 hours.
PUT_AGAIN_MS = 12 * HOUR_MS
#: Names asked for side by side.
_AT_ONCE = 16


def pin_name(anchor_public: bytes) -> str:
    """The one name under which all roots of a vault are pinned (format section 7)."""
    return "ipfsmem-" + sha256(b"ipfsmem/v1/pin\0" + anchor_public).hexdigest()[:16]


def must_put(now: int, *, until: int, same: bool, stays: bool, last: int | None) -> bool:
    """Whether a record should be put at a channel now; times in milliseconds.

    `until`: the end of the record's life; nobody takes one that has run out. `same`: the channel showed this very record.
    `stays`: the channel keeps records for good (Capabilities.durable), so to see one there is as good as to put it. `last`: when
    this device put it there, None for never.
    """
    if until <= now:
        return False
    if not same:
        return True
    if last is None:
        return not stays
    return passed(last, now, PUT_AGAIN_MS)


def half_spent(record: Record, now: int, life_ms: int) -> bool:
    """Whether less than half of a life of `life_ms` is left of a record at `now` (milliseconds)."""
    return record.validity - now * 1_000_000 < life_ms * 1_000_000 // 2


def warning_of_forgotten_names(replica: Replica, providers: Sequence[Provider]) -> str:
    """The warning for a person when no provider leads other devices to the newest root for good (format section 7); else empty."""
    leading = [p.capabilities for p in providers if p.capabilities.names or p.capabilities.list]
    if not providers or any(can.durable for can in leading):
        return ""
    if not leading:
        return (
            "no provider here keeps names or lists what it holds, so other devices cannot find what is published: add one "
            "that does, and print what leads there: ipfsmem key sheet"
        )
    at = oldest_put(replica, providers)
    when = "they were not put yet"
    if at is not None:
        when = f"the oldest was put {datetime.fromtimestamp(at // 1000, UTC):%Y-%m-%d %H:%M} UTC"
    return (
        f"networks forget names 48 hours after they were put last ({when}), and no provider here keeps them or lists "
        "what it holds: keep `ipfsmem sync --every 1h` running on one device, or add such a provider; a sheet of paper leads "
        "back to it too: ipfsmem key sheet"
    )


class _StoredRecords(msgspec.Struct):
    """The greatest record of each name."""

    records: dict[str, bytes]


def _last_puts(replica: Replica) -> dict[str, dict[str, int]]:
    """Channel -> name -> when this device put a record there, or saw one there first; milliseconds."""
    stored = replica.db.get_meta(meta.PUT)
    return msgspec.json.decode(stored, type=dict[str, dict[str, int]]) if stored else {}


def member_names(replica: Replica) -> set[str]:
    """The names of all devices that belong to the vault."""
    ring = replica.ring
    return {ipns_name(person.sign) for person in ring.view.members.values()} if ring is not None else set()


def anchor_names(replica: Replica) -> set[str]:
    """The names of the vault's anchor and of those of all members that have one."""
    vault, ring = replica.config.vault, replica.ring
    own = {bytes.fromhex(vault.anchor)} if vault is not None else set()
    return {ipns_name(public) for public in (*own, *(ring.view.anchors() if ring is not None else ()))}


def oldest_put(replica: Replica, channels: Iterable[Provider]) -> int | None:
    """When the record that was put longest ago at one of `channels` was put there (milliseconds); None when none was."""
    puts = _last_puts(replica)
    names = member_names(replica) | anchor_names(replica)
    return min(
        (at for c in channels for name, at in puts.get(c.name, {}).items() if name in names), default=None
    )


class Names:
    """Reads and moves names at all providers that keep them, and remembers the greatest record of each name."""

    def __init__(self, replica: Replica, providers: Sequence[Provider], notices: Notices) -> None:
        """Without providers, records are only made and remembered; a later sync puts them."""
        self._replica = replica
        self._channels = [provider for provider in providers if provider.capabilities.names]
        self._notices = notices
        stored = replica.db.get_meta(meta.NAMES)
        self._records: dict[str, bytes] = (
            msgspec.json.decode(stored, type=_StoredRecords).records if stored else {}
        )
        self._there: dict[tuple[str, str], bytes | None] = {}
        self._puts = _last_puts(replica)
        self._noted = False
        #: Records that a channel did not take in this sync, and why: channel, name, record.
        self._failed: dict[tuple[str, str, bytes], ProviderError] = {}
        #: Channels that did not answer when they were asked for a name.
        self.silent: set[str] = set()
        #: Names of which a channel showed something that is no record of theirs, or of which no channel could say anything.
        self.unread: set[str] = set()
        #: Channels that show none or a lesser record of a name than the one that is remembered here.
        self.behind: set[str] = set()
        self._fresh = replica.ring is None

    async def read(self, name: str) -> Record | None:
        """The greatest valid record of a name, of those that the channels show and the one remembered here. Raises ProviderError when
        no channel answers, and none has before."""
        answers = await asyncio.gather(*(self._ask(channel, name) for channel in self._channels))
        best = known = self._verified(name, self._records.get(name))
        failures: list[ProviderError] = []
        failed_at = ""  # the channel of the first
        for channel, encoded in zip(self._channels, answers, strict=True):
            if isinstance(encoded, ProviderError):
                self.silent.add(channel.name)
                failures.append(encoded)
                failed_at = failed_at or channel.name
                continue
            self._there[channel.name, name] = encoded
            found = self._verified(name, encoded, channel.name)
            if encoded is not None and found is None:
                self.unread.add(name)
            if known is not None and (found is None or record_order(found) < record_order(known)):
                self.behind.add(channel.name)
            if found and (best is None or record_order(found) > record_order(best)):
                best = found
        if failures:
            if len(failures) == len(self._channels):
                if self._fresh or not self._there:
                    raise failures[0]
                self.unread.add(name)
                said = f"a name could not be read, so newer texts may be missing: {failures[0]}; the next sync tries again"
            else:
                said = f"a name could not be read everywhere: {failures[0]}. What only that place shows comes with a later sync"
            self._notices.say("channel-down", said, provider=failed_at)
        if best is not None:
            self._records[name] = best.encoded
            if best.has_expired(self._replica.world.now() * 1_000_000):
                self._notices.say(
                    "expired",
                    "a device did not say for long that its newest version is still that; it was used all the same",
                    f"the record of {name} has run out; what it points at was still used",
                )
        return best

    async def read_all(self, names: Sequence[str]) -> list[Record | None]:
        """`read` of each, many at a time: each answer may be a long way off."""
        found: list[Record | None] = []
        for start in range(0, len(names), _AT_ONCE):
            reads = map(self.read, names[start : start + _AT_ONCE])
            for answer in await asyncio.gather(*reads, return_exceptions=True):
                if isinstance(answer, BaseException):
                    raise answer
                found.append(answer)
        return found

    async def _ask(self, channel: Provider, name: str) -> bytes | ProviderError | None:
        try:
            return await channel.get_name(name)
        except ProviderError as error:
            return error

    def _verified(self, name: str, encoded: bytes | None, channel: str = "") -> Record | None:
        if encoded is None:
            return None
        try:
            return verify_record(name, encoded)
        except (FormatError, SignatureError, LimitError) as error:
            self._notices.say(
                "bad-record",
                f"{channel or 'a provider'} showed a newest version that its device did not sign; that was not used",
                f"a record for {name} was refused: {error}",
                provider=channel,
            )
            return None

    def tells_of_all(self, channel: str) -> bool:
        """Whether a channel showed a record, and of each name none less than the one that is remembered here."""
        shown = any(at == channel and encoded is not None for (at, _), encoded in self._there.items())
        return shown and channel not in self.behind and channel not in self.silent

    def shown_by(self, channel: Provider) -> list[Record]:
        """The valid records that a channel itself has shown so far."""
        records = [(name, encoded) for (at, name), encoded in self._there.items() if at == channel.name]
        return [record for name, encoded in records if (record := self._verified(name, encoded)) is not None]

    def known(self, name: str) -> Record | None:
        """The greatest record of a name that was read or made so far."""
        return self._verified(name, self._records.get(name))

    def offer(self, name: str, encoded: bytes) -> None:
        """Remember a record that was found elsewhere than at a channel, when it is valid and greater than the one known."""
        best, found = self.known(name), self._verified(name, encoded)
        if found is not None and (best is None or record_order(found) > record_order(best)):
            self._records[name] = encoded

    def sign(self, seed: bytes, public: bytes, value: str, life_ms: int, *, instead: bool = False) -> str:
        """Make a record that follows the greatest one known; returns the name. `put` brings it out.

        `instead`: make one with the same sequence number and a longer life, which replaces the record that was read but none that
        somebody makes after it. The same is done where no sequence number is left.
        """
        name = ipns_name(public)
        known = self.known(name)
        instead = instead or self.used_up(name)
        sequence = known.sequence + (not instead) if known else 1
        until = (self._replica.world.now() + life_ms) * 1_000_000
        if instead and known:
            until = max(until, known.validity + 1)
            if until > MAX_VALIDITY:
                return name  # nothing can be said after that record
        self._records[name] = make_record(seed, value, sequence, until)
        return name

    def used_up(self, name: str) -> bool:
        """Whether the greatest record known of a name has the last number that a record can have."""
        known = self.known(name)
        return known is not None and known.sequence == MAX_SEQUENCE

    def differs(self, name: str) -> bool:
        """Whether some channel holds another record of a name than the greatest one known, or none."""
        return any(
            self._there.get((channel.name, name)) != self._records.get(name) for channel in self._channels
        )

    async def put(self, names: Iterable[str], *, without: Collection[str] = ()) -> None:
        """Put the records of these names where another record is shown, or none, or it is time to put it again.

        `without`: channels (by name) that lack what the records lead to, and get none now. Raises the first failure when no channel
        holds a record afterwards; one that does suffices.
        """
        channels = [channel for channel in self._channels if channel.name not in without]
        wanted = list(names)
        await side_by_side(self.put_at(channel, wanted) for channel in channels)
        for name in wanted:
            record = self.known(name)
            put = record.encoded if record is not None else b""
            failures = [
                (c.name, error)
                for c in channels
                if (error := self._failed.get((c.name, name, put))) is not None
            ]
            if failures:
                channel, failure = failures[0]
                if not any(self._there.get((c.name, name)) == put for c in self._channels):
                    raise failure
                said = f"a name could not be put everywhere: {failure}"
                self._notices.say("channel-down", said, provider=channel)
        self._remember()

    async def put_for_others(self, names: Iterable[str], *, without: Collection[str] = ()) -> None:
        """Put the records of other devices' names too: those devices may be off for longer than a network remembers.

        A channel that fails is not asked again, and nothing is raised.
        """
        wanted = list(names)
        await side_by_side(
            self._put_for_others(channel, wanted) for channel in self._channels if channel.name not in without
        )
        self._remember()

    async def _put_for_others(self, channel: Provider, names: Sequence[str]) -> None:
        asked = [name for name in names if (channel.name, name) in self._there]
        try:
            lacking = await self._lacking(channel, asked)
        except ProviderError:
            return
        for name in asked:
            if name not in lacking and await self._put(name, channel) is not None:
                return

    async def _lacking(self, channel: Provider, names: Sequence[str]) -> set[str]:
        """Of these names those whose records a channel does not show, and that lead to a root that it lacks, though it keeps roots."""
        roots: dict[str, CID] = {}
        for name in names:
            record = self.known(name)
            if record is None or self._there.get((channel.name, name)) == record.encoded:
                continue
            with contextlib.suppress(FormatError):
                leads = target(record)
                if isinstance(leads, CID):
                    roots[name] = leads
        if not roots or not (channel.capabilities.put and channel.capabilities.has):
            return set()
        there = await channel.has(set(roots.values()))
        return {name for name, root in roots.items() if root not in there}

    async def put_at(self, channel: Provider, names: Iterable[str]) -> None:
        """Put the records of these names at one channel now. A failure is told by `put`, which asks it no second time."""
        for name in names:
            await self._put(name, channel)

    async def _put(self, name: str, channel: Provider) -> ProviderError | None:
        """Put one record at one channel, where it is due; why that was not taken."""
        record = self.known(name)
        if record is None or not self._is_due(channel, name, record):
            return None
        put = (channel.name, name, record.encoded)
        if (failed := self._failed.get(put)) is not None:
            return failed
        try:
            await channel.put_name(name, record.encoded)
        except ProviderError as error:
            self._failed[put] = error
            return error
        self._there[channel.name, name] = record.encoded
        self._note(channel, name)
        return None

    def _is_due(self, channel: Provider, name: str, record: Record) -> bool:
        same = self._there.get((channel.name, name)) == record.encoded
        last = self._puts.get(channel.name, {}).get(name)
        stays = channel.capabilities.durable
        now = self._replica.world.now()
        if same and stays and last is None:
            self._note(channel, name)
        return must_put(now, until=record.validity // 1_000_000, same=same, stays=stays, last=last)

    def _note(self, channel: Provider, name: str) -> None:
        self._puts.setdefault(channel.name, {})[name] = self._replica.world.now()
        self._noted = True

    def _remember(self) -> None:
        """Write down when records were put, so that it is known also when the sync fails later."""
        if not self._noted:
            return
        self._noted = False
        puts = {
            channel: {name: at for name, at in each.items() if name in self._records}
            for channel, each in self._puts.items()
        }
        with self._replica.transaction():
            self._replica.db.set_meta(meta.PUT, msgspec.json.encode(puts))

    def roots(self) -> set[CID]:
        """Every root that a known record points at: these are never unpinned."""
        found: set[CID] = set()
        for name in self._records:
            record = self.known(name)
            if record is not None:
                with contextlib.suppress(FormatError):
                    leads = target(record)
                    if isinstance(leads, CID):
                        found.add(leads)
        return found

    def keep(self) -> None:
        """Remember all records (inside a transaction)."""
        self._replica.db.set_meta(meta.NAMES, msgspec.json.encode(_StoredRecords(self._records)))


def target(record: Record) -> CID | str:
    """The root that a record points at, or the name that it refers to."""
    try:
        return value_target(record.value)
    except IpfsmemError as error:
        raise FormatError(f"a name points at something that is no version: {error}") from None
