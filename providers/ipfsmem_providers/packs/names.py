"""Signed name records (IPNS) in an object store: one file each, named by the IPNS name and the record's hash.

    names/<k51...>.<16 hex of SHA-256(record)>.ipns-record

The greatest record of a name wins, and lesser ones are removed only after it was written, so any number of
devices may put records concurrently.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Final

from ipfsmem.content.cid import CID
from ipfsmem.errors import FormatError, ProviderError, SealError
from ipfsmem.published import ipns_record
from ipfsmem_providers.packs.blocking_work import heartbeat
from ipfsmem_providers.packs.object_store import FileInfo, Head, ObjectStore
from ipfsmem_providers.packs.pins import NO_STAND_IN

#: Attempts to read the records of a name when those that were listed are gone: another device puts newer ones just now.
_ATTEMPTS: Final = 4
#: Maximum number of records kept in memory.
_KNOWN_MAX: Final = 1_000
#: An unreadable file may still be being copied for this long, in milliseconds.
_PATIENCE_MS: Final = 86_400_000
#: Seconds after which a record in memory is read again: its file may be listed and unreadable by now.
_KNOWN_SECONDS: Final = 86_400.0


class NameRecords:
    """The name records of one location. Methods block."""

    separator = "."
    ending = ".ipns-record"
    tag_length = 16

    def __init__(self, store: ObjectStore, elapsed: Callable[[], float] = time.monotonic) -> None:
        """`elapsed` returns seconds, only differences count."""
        self._store, self._elapsed = store, elapsed
        self._known: dict[str, tuple[Hashable, ipns_record.IpnsRecord]] = {}
        #: When records were read, by `elapsed`.
        self._since: dict[str, float] = {}
        #: Files of names that were asked for, which are listed and hold no record that can be read.
        self.unread: set[str] = set()

    def holds_record(self, file: str, data: bytes) -> bool:
        """Return whether bytes are those of a record with this file name; the signature is not checked."""
        tag = file.removesuffix(self.ending).rpartition(self.separator)[2]
        return len(tag) == self.tag_length and hashlib.sha256(data).hexdigest().startswith(tag)

    def put(self, name: str, offered: ipns_record.IpnsRecord) -> None:
        """Keep a record of a canonical name unless a greater one is there; then remove the lesser ones."""
        records = self._of(name)
        best = self._stored(records, offered)
        if best is None:
            tag = hashlib.sha256(offered.encoded).hexdigest()[: self.tag_length]
            file = f"{name}{self.separator}{tag}{self.ending}"
            self._store.write(file, offered.encoded)
            records[file] = best = offered
        # Only records lesser than an existing one are removed, so the greatest stays, whoever else puts one now.
        for file, record in records.items():
            if ipns_record.record_order(record) < ipns_record.record_order(best):
                with contextlib.suppress(OSError, ProviderError):
                    self._store.unlink(file)
        self._remove_old_garbage(name)
        for file in self._odd(f"{name}{self.separator}"):
            with contextlib.suppress(OSError, ProviderError):
                self._store.set_aside(file)

    def known(self) -> list[str]:
        """Return the files whose content is in memory."""
        return [*self._known]

    def forget(self, files: Iterable[str]) -> None:
        """Read these files again when they are asked for."""
        for file in files:
            self._known.pop(file, None)
            self._since.pop(file, None)

    def _stored(
        self, records: dict[str, ipns_record.IpnsRecord], offered: ipns_record.IpnsRecord
    ) -> ipns_record.IpnsRecord | None:
        """Return the greatest record that is not lesser than `offered` and that its file holds now; remove those that their
        files do not hold. A cached record proves nothing about its file."""
        least = ipns_record.record_order(offered)
        while records:
            file, best = max(records.items(), key=lambda one: ipns_record.record_order(one[1]))
            if ipns_record.record_order(best) < least:
                return None
            with (
                contextlib.suppress(FileNotFoundError, PermissionError),
                self._store.open_file(file) as stream,
            ):
                if stream.read(ipns_record.MAX_RECORD + 1) == best.encoded:
                    return best
            del records[file]
            self.forget([file])
        return None

    def _remove_old_garbage(self, name: str) -> None:
        """Remove files that have not been a record of this name for a day. One still being copied may become one."""
        files = self._store.files(f"{name}{self.separator}")
        garbage = [file for file in self.unread & files.keys() if file.endswith(self.ending)]
        newest = max((info.modified for info in files.values()), default=0)
        for file in self._heads(garbage):  # not files that only another user may read
            if files[file].modified < newest - _PATIENCE_MS:
                with contextlib.suppress(OSError, ProviderError):
                    self._store.unlink(file)

    def best(self, name: str) -> ipns_record.IpnsRecord | None:
        """Return the greatest record of a canonical name, None without one."""
        return ipns_record.newest_record(self._of(name).values())

    def roots(self) -> set[CID]:
        """Return the roots in the records of all names, whoever put them there."""
        targets: set[CID] = set()
        for record in self._read(self._store.files()).values():
            leads = ipns_record.value_target(record.value)
            if isinstance(leads, CID):
                targets.add(leads)
        return targets

    def _of(self, name: str) -> dict[str, ipns_record.IpnsRecord]:
        prefix = f"{name}{self.separator}"
        records: dict[str, ipns_record.IpnsRecord] = {}
        missing: set[str] = set()
        for _ in range(_ATTEMPTS):
            files = self._store.files(prefix)
            records = self._read(files)
            # Files replaced by another device between list and read are not listed again.
            before, missing = missing, {file for file in files if file.endswith(self.ending)} - records.keys()
            if missing <= before:
                break
            self._store.refresh()
        now = (missing & before) | self._odd(prefix) | self._stand_ins(name, records)
        self.unread = {file for file in self.unread if prefix not in file} | now
        return records

    def _odd(self, prefix: str) -> set[str]:
        """Return folders and links with the names of records."""
        return {file for file in self._store.not_files(prefix) if file.endswith(self.ending)}

    def _stand_ins(self, name: str, records: Collection[str]) -> set[str]:
        """Return placeholders of sync programs for absent records of a name: `.<file>.icloud`,
        `<file>.nextcloud` and the like."""
        prefix = f"{name}{self.separator}"
        there: set[str] = set()
        for entry in self._store.containing(prefix):
            start, ending, rest = entry.partition(self.ending)
            if ending and not NO_STAND_IN.search(entry) and (rest or not entry.startswith(prefix)):
                record = f"{start[start.index(prefix) :]}{ending}"
                there |= set() if record in records else {entry}
        return there

    def _read(self, files: Mapping[str, FileInfo]) -> dict[str, ipns_record.IpnsRecord]:
        """Return the valid records in these files: each must be signed by the name that its file is called after."""
        ours = [file for file in files if file.endswith(self.ending) and self.separator in file]
        records = {file: record for file in ours if (record := self._of_cache(file, files[file])) is not None}
        unread = [file for file in ours if file not in records]
        for file, head in self._heads(unread).items():
            heartbeat()
            if head.size <= ipns_record.MAX_RECORD:
                with contextlib.suppress(FormatError, SealError):
                    name, _, tag = file.removesuffix(self.ending).partition(self.separator)
                    records[file] = ipns_record.verify_record(name, head.data)
                    if len(self._known) >= _KNOWN_MAX:
                        self.forget([*self._known])
                    if hashlib.sha256(head.data).hexdigest()[: self.tag_length] == tag:
                        self._known[file] = files[file].version, records[file]
                        self._since[file] = self._elapsed()
        return records

    def _of_cache(self, file: str, info: FileInfo) -> ipns_record.IpnsRecord | None:
        """Return the record that this version of a file was found to hold."""
        entry = self._known.get(file)
        if entry is None or entry[0] != info.version:
            return None
        since = self._since.setdefault(file, self._elapsed())
        return entry[1] if self._elapsed() - since < _KNOWN_SECONDS else None

    def _heads(self, files: Sequence[str]) -> dict[str, Head]:
        """Return the first bytes of these files. An unreadable one does not hide the others."""
        length = ipns_record.MAX_RECORD + 1
        try:
            return self._store.heads(files, length) if files else {}
        except PermissionError:
            heads: dict[str, Head] = {}
            for file in files:
                with contextlib.suppress(PermissionError):
                    heads |= self._store.heads([file], length)
            return heads
