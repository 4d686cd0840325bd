"""Signed name records on a shelf: one file each, named by the name and by what is in it.

    names/<k51...>.<16 hex of SHA-256(record)>.ipns-record

The greatest record of a name counts, and lesser ones go when it stands, so any number of devices may put records at the
same time. Nothing here knows blocks or pins.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Hashable, Mapping
from typing import Final

from ipfsmem.content.cid import CID
from ipfsmem.errors import FormatError, ProviderError, SealError
from ipfsmem.published import ipns_record
from ipfsmem_providers.packs.blocking_work import beat
from ipfsmem_providers.packs.shelf import Seen, Shelf

#: So often is looked again when what was seen is gone when it is read: somebody puts newer ones at the same time.
_LOOKS: Final = 4
#: So many records are remembered.
_KNOWN_MAX: Final = 1_000


class Records:
    """The records of one place. Methods block."""

    between = "."
    ending = ".ipns-record"
    tag_length = 16

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._known: dict[str, tuple[Hashable, ipns_record.Record]] = {}

    def put(self, name: str, offered: ipns_record.Record) -> None:
        """Keep a record of a canonical name unless a greater one is there; lesser ones go after it is in place."""
        records = self._of(name)
        best = ipns_record.select(records.values())
        if best is None or ipns_record.order(best) < ipns_record.order(offered):
            tag = hashlib.sha256(offered.encoded).hexdigest()[: self.tag_length]
            file = f"{name}{self.between}{tag}{self.ending}"
            self._shelf.write(file, offered.encoded)
            records[file] = offered
        # Only what is less than something that is there is removed, so whoever else puts a record now, the greatest
        # stays.
        best = ipns_record.select(records.values())
        for file, record in records.items():
            if best is not None and ipns_record.order(record) < ipns_record.order(best):
                with contextlib.suppress(OSError, ProviderError):
                    self._shelf.unlink(file)

    def best(self, name: str) -> ipns_record.Record | None:
        """The greatest one of a canonical name."""
        return ipns_record.select(self._of(name).values())

    def roots(self) -> set[CID]:
        """What the records of all names lead to, whoever put them there."""
        found: set[CID] = set()
        for record in self._read(self._shelf.look()).values():
            leads = ipns_record.split_value(record.value)
            if isinstance(leads, CID):
                found.add(leads)
        return found

    def _of(self, name: str) -> dict[str, ipns_record.Record]:
        for _ in range(_LOOKS):
            files = self._shelf.look(f"{name}{self.between}")
            found = self._read(files)
            if found or not files:
                return found
        return {}

    def _read(self, files: Mapping[str, Seen]) -> dict[str, ipns_record.Record]:
        """Those of the files that hold a record of the name in theirs."""
        ours = [file for file in files if file.endswith(self.ending) and self.between in file]
        # One that was read need not be read again before somebody, or the disk, changes it.
        found = {
            file: known[1]
            for file in ours
            if (known := self._known.get(file)) and known[0] == files[file].stamp
        }
        unread = [file for file in ours if file not in found]
        for file, start in self._shelf.starts(unread, ipns_record.MAX_RECORD + 1).items() if unread else ():
            beat()
            if start.size <= ipns_record.MAX_RECORD:
                with contextlib.suppress(FormatError, SealError):
                    name, _, tag = file.removesuffix(self.ending).partition(self.between)
                    found[file] = ipns_record.verify_record(name, start.data)
                    if len(self._known) >= _KNOWN_MAX:
                        self._known.clear()
                    if hashlib.sha256(start.data).hexdigest()[: self.tag_length] == tag:
                        self._known[file] = files[file].stamp, found[file]
        return found
