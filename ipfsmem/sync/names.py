"""Read, sign and republish the name records of a vault at providers with names.

Providers are not trusted: a valid signature decides. An expired record is reported but still followed, since its
target is verified separately. Networks forget records, so this device records when it put each one where.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    IpnsRecord,
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
#: Interval after which a record is put again: public DHT nodes forget after 48 hours.
PUT_AGAIN_MS = 12 * HOUR_MS
#: Number of concurrent name lookups.
_MAX_LOOKUPS = 16


def pin_name(anchor_public: bytes) -> str:
    """Return the pin name of all roots of a vault (format section 7)."""
    return "ipfsmem-" + sha256(b"ipfsmem/v1/pin\0" + anchor_public).hexdigest()[:16]


def must_put(now: int, *, until: int, same: bool, stays: bool, last: int | None) -> bool:
    """Tell whether a record should be put at a channel now; times in milliseconds.

    `until`: the record's expiry; nobody accepts an expired one. `same`: the channel showed this very record.
    `stays`: the channel keeps records for good (Capabilities.durable), so seeing one there equals putting it.
    `last`: when this device put it there, or None.
    """
    if until <= now:
        return False
    if not same:
        return True
    if last is None:
        return not stays
    return passed(last, now, PUT_AGAIN_MS)


def half_spent(record: IpnsRecord, now: int, life_ms: int) -> bool:
    """Tell whether less than half of a record's life of `life_ms` is left at `now` (milliseconds)."""
    return record.validity - now * 1_000_000 < life_ms * 1_000_000 // 2


def warning_of_forgotten_names(replica: Replica, providers: Sequence[Provider]) -> str:
    """Return the user's warning when no provider durably leads other devices to the newest root (format
    section 7); else ""."""
    leading = [p.capabilities for p in providers if p.capabilities.names or p.capabilities.list]
    if not providers or any(can.durable for can in leading):
        return ""
    if not leading:
        return "no provider here stores names or lists its content, so other devices cannot find the published versions: add one that does, and print the addresses: ipfsmem key sheet"
    at = oldest_put(replica, providers)
    when = "they were not published yet"
    if at is not None:
        when = f"the oldest was published {datetime.fromtimestamp(at // 1000, UTC):%Y-%m-%d %H:%M} UTC"
    return f"networks drop names 48 hours after they were last published ({when}), and no provider here stores names or lists its content: keep `ipfsmem sync --every 1h` running on one device, or add such a provider; a printed sheet leads back to it too: ipfsmem key sheet"


class _StoredRecords(msgspec.Struct):
    """The greatest record of each name."""

    records: dict[str, bytes]


def _last_puts(replica: Replica) -> dict[str, dict[str, int]]:
    """Return channel -> name -> when this device put a record there, or first saw one there; milliseconds."""
    stored = replica.db.get_meta(meta.PUT)
    return msgspec.json.decode(stored, type=dict[str, dict[str, int]]) if stored else {}


def member_names(replica: Replica) -> set[str]:
    """Return the names of all devices in the vault."""
    ring = replica.ring
    return {ipns_name(person.sign) for person in ring.view.members.values()} if ring is not None else set()


def anchor_names(replica: Replica) -> set[str]:
    """Return the names of the vault's anchor and of its members' anchors."""
    vault, ring = replica.config.vault, replica.ring
    own = {bytes.fromhex(vault.anchor)} if vault is not None else set()
    return {ipns_name(public) for public in (*own, *(ring.view.anchors() if ring is not None else ()))}


def oldest_put(replica: Replica, channels: Iterable[Provider]) -> int | None:
    """Return the time of the least recent put at one of `channels` (milliseconds), or None."""
    puts = _last_puts(replica)
    names = member_names(replica) | anchor_names(replica)
    return min(
        (at for c in channels for name, at in puts.get(c.name, {}).items() if name in names), default=None
    )


class Names:
    """Reads and moves names at all providers that keep them, and stores the greatest record of each name."""

    def __init__(self, replica: Replica, providers: Sequence[Provider], notices: Notices) -> None:
        """Without providers, records are only made and stored; a later sync puts them."""
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
        #: Records that a channel refused in this sync, and why: channel, name, record.
        self._failed: dict[tuple[str, str, bytes], ProviderError] = {}
        #: Channels that did not answer a name lookup.
        self.silent: set[str] = set()
        #: Names for which a channel showed an invalid record, or no channel answered.
        self.unread: set[str] = set()
        #: Channels that show no record of a name, or a lesser one than stored here.
        self.behind: set[str] = set()
        self._fresh = replica.ring is None

    async def read(self, name: str) -> IpnsRecord | None:
        """Return the greatest valid record of a name, from the channels and the local store.

        Raises ProviderError if no channel answers, and none has before.
        """
        answers = await asyncio.gather(*(self._ask(channel, name) for channel in self._channels))
        best = verified = self._verified(name, self._records.get(name))
        failures: list[ProviderError] = []
        failed_at = ""  # the channel of the first
        for channel, encoded in zip(self._channels, answers, strict=True):
            if isinstance(encoded, ProviderError):
                self.silent.add(channel.name)
                failures.append(encoded)
                failed_at = failed_at or channel.name
                continue
            self._there[channel.name, name] = encoded
            record = self._verified(name, encoded, channel.name)
            if encoded is not None and record is None:
                self.unread.add(name)
            if verified is not None and (record is None or record_order(record) < record_order(verified)):
                self.behind.add(channel.name)
            if record and (best is None or record_order(record) > record_order(best)):
                best = record
        if failures:
            if len(failures) == len(self._channels):
                if self._fresh or not self._there:
                    raise failures[0]
                self.unread.add(name)
                message = f"a name could not be read, so newer texts may be missing: {failures[0]}; the next sync tries again"
            else:
                message = f"a name could not be read everywhere: {failures[0]}. Versions named only there come with a later sync"
            self._notices.say("channel-down", message, provider=failed_at)
        if best is not None:
            self._records[name] = best.encoded
            if best.has_expired(self._replica.environment.now() * 1_000_000):
                self._notices.say(
                    "expired",
                    "a device has not confirmed its newest version for long; it was used anyway",
                    f"the record of {name} has expired; its version was used anyway",
                )
        return best

    async def read_all(self, names: Sequence[str]) -> list[IpnsRecord | None]:
        """`read` several names concurrently: latencies may be high."""
        records: list[IpnsRecord | None] = []
        for start in range(0, len(names), _MAX_LOOKUPS):
            reads = map(self.read, names[start : start + _MAX_LOOKUPS])
            for answer in await asyncio.gather(*reads, return_exceptions=True):
                if isinstance(answer, BaseException):
                    raise answer
                records.append(answer)
        return records

    async def _ask(self, channel: Provider, name: str) -> bytes | ProviderError | None:
        try:
            return await channel.get_name(name)
        except ProviderError as error:
            return error

    def _verified(self, name: str, encoded: bytes | None, channel: str = "") -> IpnsRecord | None:
        if encoded is None:
            return None
        try:
            return verify_record(name, encoded)
        except (FormatError, SignatureError, LimitError) as error:
            self._notices.say(
                "bad-record",
                f"{channel or 'a provider'} returned a newest version that its device did not sign; it was ignored",
                f"a record for {name} was refused: {error}",
                provider=channel,
            )
            return None

    def tells_of_all(self, channel: str) -> bool:
        """Tell whether a channel showed a record, and for each name none lesser than the one stored here."""
        shown = any(at == channel and encoded is not None for (at, _), encoded in self._there.items())
        return shown and channel not in self.behind and channel not in self.silent

    def shown_by(self, channel: Provider) -> list[IpnsRecord]:
        """Return the valid records shown by this channel so far."""
        records = [(name, encoded) for (at, name), encoded in self._there.items() if at == channel.name]
        return [record for name, encoded in records if (record := self._verified(name, encoded)) is not None]

    def shown(self, channel: str) -> dict[str, bytes | None]:
        """Return the records that a channel showed or accepted so far, by name."""
        return {name: encoded for (at, name), encoded in self._there.items() if at == channel}

    def take_back(self, channel: str, shown: Mapping[str, bytes | None]) -> None:
        """Forget the puts at a channel after `shown`, as it did not store them."""
        for name in self.shown(channel):
            del self._there[channel, name]
        self._there.update({(channel, name): encoded for name, encoded in shown.items()})

    def known(self, name: str) -> IpnsRecord | None:
        """Return the greatest record of a name read or made so far."""
        return self._verified(name, self._records.get(name))

    def offer(self, name: str, encoded: bytes) -> None:
        """Store a record found elsewhere than at a channel, if valid and greater than the known one."""
        best, offered = self.known(name), self._verified(name, encoded)
        if offered is not None and (best is None or record_order(offered) > record_order(best)):
            self._records[name] = encoded

    def sign(self, seed: bytes, public: bytes, value: str, life_ms: int, *, instead: bool = False) -> str:
        """Make a record that follows the greatest known one; return the name. `put` publishes it.

        `instead`: keep the sequence number with a longer life, which replaces the record read but none that
        somebody makes after it. Also done when no sequence number is left.
        """
        name = ipns_name(public)
        record = self.known(name)
        instead = instead or self.used_up(name)
        sequence = record.sequence + (not instead) if record else 1
        until = (self._replica.environment.now() + life_ms) * 1_000_000
        if instead and record:
            until = max(until, record.validity + 1)
            if until > MAX_VALIDITY:
                return name  # no record can follow that one
        self._records[name] = make_record(seed, value, sequence, until)
        return name

    def used_up(self, name: str) -> bool:
        """Tell whether the greatest known record of a name has the last possible sequence number."""
        record = self.known(name)
        return record is not None and record.sequence == MAX_SEQUENCE

    def differs(self, name: str) -> bool:
        """Tell whether some channel holds a record of a name other than the greatest known one, or none."""
        return any(
            self._there.get((channel.name, name)) != self._records.get(name) for channel in self._channels
        )

    async def put(self, names: Iterable[str], *, without: Collection[str] = ()) -> None:
        """Put the records of these names where another or no record is shown, or a put is due.

        `without`: channels (by name) without the records' targets, skipped now. Raises the first failure if no
        channel holds a record afterwards; one suffices.
        """
        channels = [channel for channel in self._channels if channel.name not in without]
        all_names = list(names)
        await side_by_side(self.put_at(channel, all_names) for channel in channels)
        for name in all_names:
            record = self.known(name)
            encoded = record.encoded if record is not None else b""
            failures = [
                (c.name, error)
                for c in channels
                if (error := self._failed.get((c.name, name, encoded))) is not None
            ]
            if failures:
                channel, failure = failures[0]
                if not any(self._there.get((c.name, name)) == encoded for c in self._channels):
                    raise failure
                message = f"a name could not be published everywhere: {failure}"
                self._notices.say("channel-down", message, provider=channel)
        self._remember()

    async def put_for_others(self, names: Iterable[str], *, without: Collection[str] = ()) -> None:
        """Put other devices' records too: those devices may be off for longer than a network remembers.

        A channel that fails is not called again, and nothing is raised.
        """
        all_names = list(names)
        await side_by_side(
            self._put_for_others(channel, all_names)
            for channel in self._channels
            if channel.name not in without
        )
        self._remember()

    async def _put_for_others(self, channel: Provider, names: Sequence[str]) -> None:
        known_here = [name for name in names if (channel.name, name) in self._there]
        try:
            missing = await self._lacking(channel, known_here)
        except ProviderError:
            return
        for name in known_here:
            if name not in missing and await self._put(name, channel) is not None:
                return

    async def _lacking(self, channel: Provider, names: Sequence[str]) -> set[str]:
        """Return those of the names whose records a channel does not show, and whose target root it lacks,
        though it keeps roots."""
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
        """Put the records of these names at one channel now. `put` reports a failure without a second attempt."""
        for name in names:
            await self._put(name, channel)

    async def _put(self, name: str, channel: Provider) -> ProviderError | None:
        """Put one record at one channel if due; return the failure."""
        record = self.known(name)
        if record is None or not self._is_due(channel, name, record):
            return None
        attempt = (channel.name, name, record.encoded)
        if (failed := self._failed.get(attempt)) is not None:
            return failed
        try:
            await channel.put_name(name, record.encoded)
        except ProviderError as error:
            self._failed[attempt] = error
            return error
        self._there[channel.name, name] = record.encoded
        self._note(channel, name)
        return None

    def _is_due(self, channel: Provider, name: str, record: IpnsRecord) -> bool:
        same = self._there.get((channel.name, name)) == record.encoded
        last = self._puts.get(channel.name, {}).get(name)
        stays = channel.capabilities.durable
        now = self._replica.environment.now()
        if same and stays and last is None:
            self._note(channel, name)
        return must_put(now, until=record.validity // 1_000_000, same=same, stays=stays, last=last)

    def _note(self, channel: Provider, name: str) -> None:
        self._puts.setdefault(channel.name, {})[name] = self._replica.environment.now()
        self._noted = True

    def _remember(self) -> None:
        """Store the times of puts, so that they survive a later failure of the sync."""
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
        """Return every root that a known record points at: never unpin these."""
        targets: set[CID] = set()
        for name in self._records:
            record = self.known(name)
            if record is not None:
                with contextlib.suppress(FormatError):
                    leads = target(record)
                    if isinstance(leads, CID):
                        targets.add(leads)
        return targets

    def keep(self) -> None:
        """Store all records (inside a transaction)."""
        self._replica.db.set_meta(meta.NAMES, msgspec.json.encode(_StoredRecords(self._records)))


def target(record: IpnsRecord) -> CID | str:
    """Return a record's target root or name."""
    try:
        return value_target(record.value)
    except IpfsmemError as error:
        raise FormatError(f"a name points to something that is not a version: {error}") from None
