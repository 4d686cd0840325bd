"""Which texts this device opened or gave to a model, how often, and on which day last. It changes what fades, and no answer of recall.

Counts are held in memory and now and then added to a table beside the state, without waiting for the disk: `recall.uses`, sealed
where the memory is (`derived_file`). They are lost without harm. What was used before today goes once a day into the timeline, with
the next write of something else.
"""

from __future__ import annotations

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
#: Milliseconds after which what a long-running process counted is written down.
_EVERY = 5_000
#: Memories that one event names at most.
MOST_NAMED = 500

Place = tuple[str, str]


class Use(NamedTuple):
    """How often a memory was used, on which day last (`date.toordinal`), and how often since that was last told; and how often and on
    which day last it had been used before that day."""

    times: int
    day: int
    untold: int = 0
    times_before: int = 0
    day_before: int = 0

    def again(self, times: int, today: int) -> Use:
        """The same after so many more uses today."""
        more = Use(self.times + times, today, self.untold + times, self.times_before, self.day_before)
        return more if self.day == today else more._replace(times_before=self.times, day_before=self.day)


class _Table(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    #: By scope and key.
    uses: list[tuple[str, str, int, int, int]] = []
    #: The day on which it was last told.
    told: int = 0
    #: By scope and key: how often it had been used before the day of its last use, and on which day last.
    before: list[tuple[str, str, int, int]] = []


_decode = msgspec.msgpack.Decoder(_Table).decode


def _known_day(use: Use, today: int) -> Use:
    """The same without a day that is not come yet: a clock that was ahead, and put right, must keep no memory fresh until then."""
    return use if use.day <= today else use._replace(day=0)


class Uses:
    """The uses of one memory, as this device counts them."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._path: Path | None = None if replica.folder is None else replica.folder / _FILE
        self._known: dict[Place, Use] | None = None
        #: The day, the table of which it was made, and what was used before that day.
        self._before: tuple[int, dict[Place, Use], dict[Place, Use]] | None = None
        self._told = 0
        #: Those of this process that are not written down yet, and since when.
        self._new: dict[Place, int] = {}
        self._since = 0

    def of(self, place: Place) -> Use | None:
        """How often a memory was used."""
        use = self._table().get(place)
        return None if use is None else _known_day(use, self._today())

    def all(self) -> Iterator[tuple[Place, Use]]:
        """All that were used."""
        today = self._today()
        for place, use in self._table().items():
            yield place, _known_day(use, today)

    def before_today(self) -> Mapping[Place, Use]:
        """What was used before today, and how often. What orders a list goes by this: it is the same object all day, whoever reads it
        how often, as long as no table of another process is read."""
        table, today = self._table(), self._today()
        known = self._before
        if known is None or known[0] != today or known[1] is not table:
            found = (
                (place, use if use.day != today else Use(use.times_before, use.day_before))
                for place, use in table.items()
            )
            known = (today, table, {place: _known_day(use, today) for place, use in found if use.times})
            self._before = known
        return known[2]

    def count(self, places: Iterable[Place]) -> None:
        """These were used now."""
        if self._replica.read_only:
            return
        today, table = self._today(), self._table()
        for place in places:
            table[place] = table.get(place, Use(0, 0)).again(1, today)
            self._new[place] = self._new.get(place, 0) + 1
        now = self._replica.world.now()
        self._since = self._since or now
        if now - self._since >= _EVERY:
            self.write()

    def write(self) -> None:
        """Add what was counted to the table on the disk. Failing to fails nothing."""
        new, self._new, self._since = self._new, {}, 0
        today = self._today()

        def add(table: dict[Place, Use]) -> None:
            for place, more in new.items():
                table[place] = table.get(place, Use(0, 0)).again(more, today)

        if new and self._path is not None:
            self._change(add)

    def untold(self, scope: str, today: date) -> dict[str, int]:
        """How often memories of a scope were used before today and nobody was told, by key, those used most first; empty when
        something was told today."""
        self._table()
        if self._told == today.toordinal():
            return {}
        counts = [
            (-use.untold, key)
            for (there, key), use in self.all()
            if there == scope and use.untold and use.day < today.toordinal()
        ]
        return {key: -count for count, key in sorted(counts)[:MOST_NAMED]}

    def tell(self, scope: str, keys: Iterable[str], today: date) -> None:
        """Note that these uses were told. What is not there any more is taken out of the table."""
        self.write()
        self._told = today.toordinal()

        def told(table: dict[Place, Use]) -> None:
            for key in keys:
                if (known := table.get((scope, key))) is not None:
                    table[scope, key] = known._replace(untold=0)
            with self._replica.reading():
                raw = self._replica.store.raw
                for there, key in [*table]:
                    if raw(memory_entry(key, there)) is None:
                        del table[there, key]

        self._change(told)

    def _today(self) -> int:
        return self._replica.world.utc_today().toordinal()

    def _table(self) -> dict[Place, Use]:
        if self._known is None:
            self._known, self._told = self._read()
        return self._known

    def _change(self, change: Callable[[dict[Place, Use]], None]) -> None:
        """Change the table as it is on the disk. While somebody else has it, or the disk is full, it stays as it is."""
        if self._path is None:
            change(self._table())
            return
        with contextlib.suppress(IpfsmemError), file_lock(self._path.with_suffix(".lock"), wait=0.1):
            told = self._told
            table, self._told = self._read()
            self._told = max(day if day <= self._today() else 0 for day in (told, self._told))
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
