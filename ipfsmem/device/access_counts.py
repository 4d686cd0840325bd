"""Count how often this device showed each memory to a user or model, and record the day of the last use.

The counts determine which memories fade, not the results of recall. They are kept in memory and added to the file
`recall.uses` from time to time, without fsync, sealed if the vault is (`derived_file`); losing the file is harmless.
Once a day, the next write of other data also reports the uses before that day in the timeline.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ipfsmem.causal.entries import memory_entry
from ipfsmem.device.derived_file import DerivedFiles
from ipfsmem.device.lock import file_lock
from ipfsmem.device.replica import Replica
from ipfsmem.errors import FormatError, IpfsmemError

_FILE: Final = "recall.uses"
_FILES: Final = DerivedFiles(b"ipfsmem uses 1", b"ipfsmem/uses")
#: Milliseconds after which a long-running process writes its counts.
_WRITE_INTERVAL_MS = 5_000
#: Maximum number of memories in one event.
MOST_NAMED = 500

Place = tuple[str, str]


class Use(NamedTuple):
    """The uses of a memory: their number, the day of the last (`date.toordinal`), the number of unreported ones, and
    number and last day of the uses before that day."""

    times: int
    day: int
    untold: int = 0
    times_before: int = 0
    day_before: int = 0

    def again(self, times: int, today: int) -> "Use":
        """Return the record after `times` more uses today."""
        more = Use(self.times + times, today, self.untold + times, self.times_before, self.day_before)
        return more if self.day == today else more._replace(times_before=self.times, day_before=self.day)


class _Table(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    #: By scope and key.
    uses: list[tuple[str, str, int, int, int]] = []
    #: The day of the last report.
    told: int = 0
    #: By scope and key: the number of uses before the day of the last one, and the last day of these.
    before: list[tuple[str, str, int, int]] = []


_decode = msgspec.msgpack.Decoder(_Table).decode


def _known_day(use: Use, today: int) -> Use:
    """Return the record, with day 0 if its day is in the future: a clock may have been wrong, and uses must not look
    recent until that day."""
    return use if use.day <= today else use._replace(day=0)


class AccessCounts:
    """The uses of one vault on this device."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._path: Path | None = None if replica.folder is None else replica.folder / _FILE
        self._known: dict[Place, Use] | None = None
        #: Cache of `before_today`: the day, the table that it was computed from, and the result.
        self._before: tuple[int, dict[Place, Use], dict[Place, Use]] | None = None
        self._told = 0
        #: Uses of this process that are not on the disk yet, and the time of the first (ms since 1970 UTC).
        self._new: dict[Place, int] = {}
        self._since = 0

    def of(self, place: Place) -> Use | None:
        """Return the uses of a memory; None if it was never used."""
        use = self._table().get(place)
        return None if use is None else _known_day(use, self._today())

    def all(self) -> Iterator[tuple[Place, Use]]:
        """Yield all used memories with their uses."""
        today = self._today()
        for place, use in self._table().items():
            yield place, _known_day(use, today)

    def before_today(self) -> Mapping[Place, Use]:
        """Return the uses before today, by which lists are ordered.

        The result is the same object all day, unless the table of another process is read.
        """
        table, today = self._table(), self._today()
        cached = self._before
        if cached is None or cached[0] != today or cached[1] is not table:
            earlier_uses = (
                (place, use if use.day != today else Use(use.times_before, use.day_before))
                for place, use in table.items()
            )
            cached = (
                today,
                table,
                {place: _known_day(use, today) for place, use in earlier_uses if use.times},
            )
            self._before = cached
        return cached[2]

    def count(self, places: Iterable[Place]) -> None:
        """Count a use of each of these memories now."""
        if self._replica.read_only:
            return
        today, table = self._today(), self._table()
        for place in places:
            table[place] = table.get(place, Use(0, 0)).again(1, today)
            self._new[place] = self._new.get(place, 0) + 1
        now = self._replica.environment.now()
        self._since = self._since or now
        if now - self._since >= _WRITE_INTERVAL_MS:
            self.write()

    def write(self) -> None:
        """Add the counts to the table on the disk. A failure is ignored."""
        new, self._new, self._since = self._new, {}, 0
        today = self._today()

        def add(table: dict[Place, Use]) -> None:
            for place, more in new.items():
                table[place] = table.get(place, Use(0, 0)).again(more, today)

        if new and self._path is not None:
            self._change(add)

    def untold(self, scope: str, today: date) -> dict[str, int]:
        """Return the number of unreported uses before today by key, most used first; empty after a report today."""
        table, day = self._table(), today.toordinal()
        if self._told == day:
            return {}
        now = self._today()
        counts = [  # runs over all used memories at each write: no function call per memory
            (-use.untold, key)
            for (there, key), use in table.items()
            if use.untold and there == scope and (use.day if use.day <= now else 0) < day
        ]
        return {key: -count for count, key in sorted(counts)[:MOST_NAMED]}

    def tell(self, scope: str, keys: Iterable[str], today: date) -> None:
        """Record that the uses of these memories were reported. Memories that no longer exist are removed from the
        table."""
        self.write()
        self._told = today.toordinal()

        def told(table: dict[Place, Use]) -> None:
            for key in keys:
                if (use := table.get((scope, key))) is not None:
                    table[scope, key] = use._replace(untold=0)
            with self._replica.reading():
                raw = self._replica.store.raw
                for there, key in [*table]:
                    if raw(memory_entry(key, there)) is None:
                        del table[there, key]

        self._change(told)

    def _today(self) -> int:
        return self._replica.environment.utc_today().toordinal()

    def _table(self) -> dict[Place, Use]:
        if self._known is None:
            self._known, self._told = self._read()
        return self._known

    def _change(self, change: Callable[[dict[Place, Use]], None]) -> None:
        """Read the table from the disk, change it and write it. Do nothing if another process has the lock or the
        disk is full."""
        if self._path is None:
            change(self._table())
            return
        with contextlib.suppress(IpfsmemError), file_lock(self._path.with_suffix(".lock"), wait=0.1):
            day_told = self._told
            table, self._told = self._read()
            self._told = max(day if day <= self._today() else 0 for day in (day_told, self._told))
            change(table)
            rows = [(*place, *use[:3]) for place, use in table.items()]
            before = [(*place, *use[3:]) for place, use in table.items() if use.times_before]
            data = msgspec.msgpack.encode(_Table(rows, self._told, before))
            _FILES.save(self._replica, self._path, data, durable=False)
            self._known = table

    def _read(self) -> tuple[dict[Place, Use], int]:
        with contextlib.suppress(IpfsmemError, FormatError, msgspec.DecodeError, UnicodeDecodeError):
            data = _FILES.open(self._replica, self._path)
            if data is not None:
                table = _decode(data)
                before = {(row[0], row[1]): row[2:] for row in table.before}
                return {
                    (row[0], row[1]): Use(*row[2:], *before.get((row[0], row[1]), (0, 0)))
                    for row in table.uses
                }, table.told
        return {}, 0
