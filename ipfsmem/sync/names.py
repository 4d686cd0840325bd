"""Name records of one vault: who has which name, what each points at, and moving the ones we may sign.

Names are found through channels that are trusted with nothing: a record counts when its signature does. An expired
record still points somewhere: what it leads to is verified by itself, so it is followed and said to be old.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from hashlib import sha256

import msgspec

from ipfsmem.content.cid import CID, ipns_name
from ipfsmem.errors import FormatError, IpfsmemError, LimitError, ProviderError, SignatureError
from ipfsmem.replica.replica import Replica
from ipfsmem.sync.ipns import Record, make_record, order, split_value, verify_record
from ipfsmem.sync.provider import Provider
from ipfsmem.sync.report import SyncReport

ANCHOR_LIFE_MS = 10 * 365 * 86_400_000
DEVICE_LIFE_MS = 365 * 86_400_000


def pin_name(anchor_public: bytes) -> str:
    """The one name under which all roots of a vault are pinned (format section 7)."""
    return "ipfsmem-" + sha256(b"ipfsmem/v1/pin\0" + anchor_public).hexdigest()[:16]


class _Kept(msgspec.Struct):
    """Records worth putting again: those of anchors, which devices cannot sign."""

    records: dict[str, bytes]


class Names:
    """Reads and moves names through one provider, and remembers the greatest record of each."""

    def __init__(self, replica: Replica, providers: Sequence[Provider], report: SyncReport) -> None:
        """Without providers records are only made and kept, to be put later."""
        self._replica = replica
        self._channels = [provider for provider in providers if provider.capabilities.names]
        self._report = report
        kept = replica.db.get_meta("names")
        self._records: dict[str, bytes] = msgspec.json.decode(kept, type=_Kept).records if kept else {}
        self._there: dict[tuple[str, str], bytes | None] = {}

    async def read(self, name: str) -> Record | None:
        """The greatest valid record of a name: the provider's, or the one kept here."""
        best = self._verified(name, self._records.get(name))
        failures: list[ProviderError] = []
        for channel in self._channels:
            try:
                encoded = await channel.get_name(name)
            except ProviderError as error:
                failures.append(error)
                continue
            self._there[channel.name, name] = encoded
            found = self._verified(name, encoded)
            if found and (best is None or order(found) > order(best)):
                best = found
        if failures:
            if len(failures) == len(self._channels):
                raise failures[0]
            self._report.say("channel-down", f"a name could not be read everywhere: {failures[0]}")
        if best is not None:
            self._records[name] = best.encoded
            if best.validity < self._replica.world.now() * 1_000_000:
                self._report.say(
                    "expired", f"the record of {name} has run out; what it points at was still used"
                )
        return best

    def _verified(self, name: str, encoded: bytes | None) -> Record | None:
        if encoded is None:
            return None
        try:
            return verify_record(name, encoded)
        except (FormatError, SignatureError, LimitError) as error:
            self._report.say("bad-record", f"a record for {name} was refused: {error}")
            return None

    def known(self, name: str) -> Record | None:
        """The greatest record of a name that was read or made so far."""
        return self._verified(name, self._records.get(name))

    def sign(self, seed: bytes, public: bytes, value: str, life_ms: int, *, instead: bool = False) -> str:
        """Make a record that follows the greatest one known; returns the name. `put` brings it out.

        `instead`: it lasts longer under the same sequence number, so it replaces the record that was read and no later one.
        """
        name = ipns_name(public)
        known = self.known(name)
        sequence = known.sequence + (not instead) if known else 1
        until = (self._replica.world.now() + life_ms) * 1_000_000
        if instead and known:
            until = max(until, known.validity + 1)
        self._records[name] = make_record(seed, value, sequence, until)
        return name

    def differs(self, name: str) -> bool:
        """Whether some channel holds another record of a name than the greatest one known, or none."""
        return any(
            self._there.get((channel.name, name)) != self._records.get(name) for channel in self._channels
        )

    async def put(self, names: list[str]) -> None:
        """Bring out the records of these names wherever another one is, or none. One channel that takes it suffices."""
        for name in names:
            record = self._records.get(name)
            if record is None:
                continue
            behind = [c for c in self._channels if self._there.get((c.name, name)) != record]
            failures: list[ProviderError] = []
            for channel in behind:
                try:
                    await channel.put_name(name, record)
                except ProviderError as error:
                    failures.append(error)
                    continue
                self._there[channel.name, name] = record
            if failures:
                if len(failures) == len(self._channels):
                    raise failures[0]
                self._report.say("channel-down", f"a name could not be put everywhere: {failures[0]}")

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
        self._replica.db.set_meta("names", msgspec.json.encode(_Kept(self._records)))


def target(record: Record) -> CID | str:
    """The root that a record points at, or the name that it refers to."""
    try:
        return split_value(record.value)
    except IpfsmemError as error:
        raise FormatError(f"a name points at something that is not a root: {error}") from None
