"""Pins in an object store: roots listed under names. Each pin is a small file, or a line of a list of many.

    pins/<cid>.<16 hex of SHA-256(name)>.json      {"cid","created","name","v":1}
    pins/<sha256 of the file>.pins                 such objects, a line each, sorted

A list is immutable: to remove pins from it, a list of the others is written, then the old one is removed. So a crash
leaves a pin too many, never one too few. With concurrent writers, one may restore a pin that the other removed. A device
that merges files lists its list again around each removal, and restores what it removed after the list was gone: only a
crash in between can lose a pin that another device removed and made again meanwhile.

File names show what may be pinned even when unreadable: a single pin's name contains its root, and a list's name means
that there are roots known only to it. So a link or folder with the name of a pin is that pin, and one with the name of
a list is an unreadable list, and nothing is collected; other names have no effect.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from ipfsmem import canonical
from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.errors import FormatError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import Pin
from ipfsmem_providers.packs.blocking_work import heartbeat
from ipfsmem_providers.packs.object_store import FileInfo, Head, ObjectStore

PIN_LIST: Final = ".pins"
SINGLE: Final = ".json"
#: When there are more files than this, the smallest are merged into one list until half as many are left.
MAX_FILES: Final = 64
_PIN_MAX: Final = 4096
#: Characters of a pin's name.
_NAME_MAX: Final = 255
#: Maximum bytes of a list made by merging; one of more than twice this is not read.
_LIST_MAX: Final = 8 * 1024 * 1024
#: Bytes that are read of a list; one that has as many is too large.
LIST_READ_MAX: Final = 2 * _LIST_MAX + 1
_HEX: Final = frozenset("0123456789abcdef")
#: Seconds after which a list in memory is read again: its file may be listed and unreadable by now.
_KNOWN_SECONDS: Final = 86_400.0
#: Attempts to read lists of which one is gone when it is opened: another device merges just now.
_ATTEMPTS: Final = 4
#: A list's whole name, also inside another one: `.<name>.icloud`, `.syncthing.<name>.tmp` and the like
#: represent a list in transit or elsewhere. A conflict copy's name contains only the hash.
_LIST_NAME: Final = re.compile(r"(?<![0-9a-f])([0-9a-f]{64})\.pins")
#: Names that systems and sync programs put next to a file: attributes, and conflict copies, whose original
#: keeps its name.
NO_STAND_IN: Final = re.compile(r"^\._|:|conflict", re.IGNORECASE)
#: A hidden file (hidden.py) and its own name.
_HIDDEN_FILE: Final = re.compile(r"\.(?:hidden-[0-9a-f]{16}|new)-(.+)", re.DOTALL)
#: A single pin's root and the hash of its name. Programs insert text before the suffix, and around the name.
_SINGLE_NAME: Final = re.compile(r"(?<![0-9A-Za-z])([0-9A-Za-z]+)\.(?:[0-9a-f]{16}(?![0-9a-f])|[^/]*json$)")


class _PinFile(msgspec.Struct, forbid_unknown_fields=True):
    cid: str
    created: int
    name: str
    v: int


class _PinList(NamedTuple):
    """A list: the time (ms) of each (CID, name), its pins by name, and whether its file is as it was written."""

    pins: dict[tuple[str, str], int]
    by_name: dict[str, list[Pin]]
    intact: bool


class PackPins:
    """The pins of one location; `now` returns milliseconds since 1970 UTC. Methods block."""

    def __init__(
        self, store: ObjectStore, now: Callable[[], int], elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        """`elapsed` returns seconds, only differences count. It should go on while the machine is suspended."""
        self.store = store
        self._now, self._elapsed = now, elapsed
        self._lists: dict[str, _PinList] = {}
        #: When lists were read, by `elapsed`.
        self._since: dict[str, float] = {}
        #: Lists that are there and damaged, so that not all of their pins are known.
        self.unread: set[str] = set()
        #: The files that the last `add` listed.
        self.listed: Mapping[str, FileInfo] = {}

    def add(self, root: CID, name: str) -> Pin:
        """List `root` under `name`. A pin that exists keeps its time."""
        self.listed = files = self.store.files(self._prefix(name))
        if (present := self._stored(files, root, name)) is not None:
            return present
        pin = self._pin(root, name, self._now())
        if pin.handle in self.store.not_files(self._prefix(name)):
            self._put_list({(str(root), name): pin.created}, name)
        else:
            self.store.write(pin.handle, _line(str(root), name, pin.created))
        if len(files) >= MAX_FILES:
            with contextlib.suppress(
                OSError, ProviderError
            ):  # the pin is durable; merging can wait for another day
                self._merge(name)
        return pin

    def named(self, name: str) -> list[Pin]:
        """Return the pins under a name, newest first. A pin whose file is damaged, or is not a file, is known
        by its name; other files are passed over."""
        prefix = self._prefix(name)
        files, read = self._listed(prefix, is_list)
        odd = self.store.not_files(prefix)
        pins: dict[CID, Pin] = {}
        lists = read.values()
        for pin in (
            *self._single_pins(files, name, damaged=True),
            *self._odd_pins(odd, name),
            *(pin for each in lists for pin in each.by_name.get(name, ())),
        ):
            if pin.cid not in pins or pin.created < pins[pin.cid].created:
                pins[pin.cid] = pin
        damaged = {file for file, each in read.items() if not each.intact}
        self.unread = {file for file in self.unread if not file.startswith(prefix)} | damaged
        self.unread.update(filter(is_list, odd))
        self.unread.update(self._stand_ins(name, read, pins))
        return sorted(pins.values(), key=lambda pin: (-pin.created, pin.handle))

    def _stand_ins(self, name: str, lists: Mapping[str, _PinList], roots: Collection[CID]) -> set[str]:
        """Return placeholders of sync programs for absent lists, and absent pins under `name`."""
        intact = {_hash_named(file) for file, each in lists.items() if each.intact}
        there = {
            file
            for file in self.store.containing(PIN_LIST)
            if not is_list(file) and (listed := _list_named(file)) and listed not in intact
        }
        for file in self.store.containing(f".{tag_of(name)}{SINGLE}"):
            if not is_single(file) and not NO_STAND_IN.search(file) and (root := _root_named(file)):
                there |= set() if root in roots else {file}
        return there

    def remove(self, pins: Iterable[Pin]) -> None:
        """Remove these pins, also from hidden files: a sweep would restore them."""
        roots_by_name: dict[str, set[CID]] = {}
        for pin in pins:
            roots_by_name.setdefault(pin.name, set()).add(pin.cid)
        for name, roots in roots_by_name.items():
            files = self.store.files(self._prefix(name))
            odd = self.store.not_files(self._prefix(name))
            own = {file for root in roots for file in self._files_of(root, name, files)}
            for file in (*(file for file in files if own_name(file) in own), *own):
                with contextlib.suppress(FileNotFoundError):
                    self.store.set_aside(file) if file in odd else self.store.unlink(file)
            keys = {(str(root), name) for root in roots}
            lists = [file for file in files if is_list(file) or is_list(own_name(file))]
            for file, pin_list in self._read_lists(lists).items():
                # A damaged list is left as it is: a new one would lack its pins that cannot be read.
                if pin_list.intact and not keys.isdisjoint(pin_list.pins):
                    stays = self._put_list(
                        {key: at for key, at in pin_list.pins.items() if key not in keys}, name
                    )
                    if stays and not self._holds(stays):
                        raise self._not_stored(stays)
                    listed = _hash_named(file)
                    for gone in (*(one for one in lists if one != file and _hash_named(one) == listed), file):
                        with contextlib.suppress(FileNotFoundError):
                            self.store.unlink(gone)
        self.store.flush()

    def roots(self) -> set[CID]:
        """Return every root that is pinned under any name. ProviderRefused when there is the name of a list
        and the list cannot be read, as its pins cannot be known then."""
        files, lists = self._listed("", lambda file: PIN_LIST in file)
        there = [*files, *self.store.not_files()]
        cids = {root for file in there if (root := _root_named(file)) is not None}
        # The readable part of a sync program's copy, complete or not, protects its roots.
        cids.update(pin.cid for each in lists.values() for pins in each.by_name.values() for pin in pins)
        whole = {_hash_named(file) for file, each in lists.items() if each.intact}
        for file in sorted(there):
            listed = _list_named(file)
            if listed and listed not in whole:
                raise ProviderRefused(
                    f"{self.store}/{file} is damaged or cannot be read, so the pins are unknown; nothing was removed",
                    hint="Let the folder's sync program download that file. If it cannot, remove that file, link or folder, then sync all devices, so that each pins its root again. Older versions that only this list keeps are lost.",
                )
        return cids

    # -- what a file is called -----------------------------------------------------------------------------------

    def _prefix(self, name: str) -> str:
        """Return the prefix of the files that may hold a pin under `name`."""
        return ""

    def _pin(self, root: CID, name: str, created: int) -> Pin:
        """Return a pin; its handle is its own file."""
        return Pin(root, name, f"{root}.{tag_of(name)}{SINGLE}", created)

    def _files_of(self, root: CID, name: str, files: Collection[str]) -> list[str]:
        """Return the names of the files that hold this pin alone; they need not exist. Built here, as a pin's
        handle could be any path."""
        return [self._pin(root, name, 0).handle]

    def _single_pins(self, files: Iterable[str], name: str, *, damaged: bool = False) -> list[Pin]:
        """Return the pins under `name` with their own file among `files`.

        A file is valid only for the root and name in its file name. `damaged`: include unreadable ones, as
        made now.
        """
        own = [file for file in files if file.endswith(f".{tag_of(name)}{SINGLE}") and is_single(file)]
        pins = []
        for file, head in self._heads(own, _PIN_MAX + 1).items():
            heartbeat()
            read = _parsed(head.data) if head is not None and head.size <= _PIN_MAX else None
            if read is None and damaged:
                root = _root_named(file)
                if root is not None:
                    pins.append(Pin(root, name, file, self._now()))
            elif read is not None and read.name == name:
                pin = self._pin(parse_cid(read.cid), name, read.created)
                if pin.handle == file:
                    pins.append(pin)
        return pins

    def _odd_pins(self, odd: Iterable[str], name: str) -> list[Pin]:
        """Return the pins under `name` whose files are links, folders and the like."""
        pins = []
        for file in odd:
            root = _root_named(file) if is_single(file) else None
            if root is not None and file in self._files_of(root, name, [file]):
                pins.append(Pin(root, name, file, self._now()))
        return pins

    # -- lists ---------------------------------------------------------------------------------------------------

    def _merge(self, name: str) -> None:
        """Merge the smallest files into one list, and remove them when that is written."""
        files = self.store.files(self._prefix(name))
        ours = sorted((info.size, file) for file, info in files.items() if is_pin(file))
        pins: dict[tuple[str, str], int] = {}
        merged: dict[str, Mapping[tuple[str, str], int]] = {}
        total = 0
        for size, file in ours:
            if len(ours) - len(merged) < MAX_FILES // 2 or total + size > _LIST_MAX:
                break
            new = self._pins_in(file, name)
            if new is None:
                continue
            for key, at in new.items():
                pins[key] = min(at, pins.get(key, at))
            merged[file] = new
            total += size
        if len(merged) < 2:
            return
        stays = self._put_list(pins, name)
        if stays and not self._holds(stays):  # a server that says that it stored a file may not have
            raise self._not_stored(stays)
        merged.pop(stays, None)
        removed: Mapping[tuple[str, str], int] = {}
        for file in (*merged, ""):
            if stays and stays not in self.store.files(self._prefix(name)):
                # Another device removed pins from it since, and may have made the one of the last file again.
                self._put_list(dict(removed), name)
                return
            if file:
                removed = merged[file]
                with contextlib.suppress(FileNotFoundError):
                    self.store.unlink(file)
        self.store.flush()

    def _not_stored(self, file: str) -> ProviderUnavailable:
        return ProviderUnavailable(
            f"{self.store} did not store pin list {file} as it was sent", hint="Sync again."
        )

    def _pins_in(self, file: str, name: str) -> Mapping[tuple[str, str], int] | None:
        """Return the pins in a file and their times; None when it is not as it was written. `name`: the one
        under which they may be."""
        if is_list(file):
            pin_list = self._read_lists([file]).get(file)
            return pin_list.pins if pin_list is not None and pin_list.intact else None
        data = self.store.read(file, _PIN_MAX)
        heartbeat()
        read = _parsed(data) if data is not None else None
        if read is None or self._pin(parse_cid(read.cid), read.name, read.created).handle != file:
            return None
        return {(read.cid, read.name): read.created}

    def _put_list(self, pins: dict[tuple[str, str], int], name: str) -> str:
        """Write a list unless empty; return its file. `name` matters if each name has its own lists."""
        if not pins:
            return ""
        data = b"\n".join(sorted(_line(cid, of, at) for (cid, of), at in pins.items())) + b"\n"
        file = f"{self._prefix(name)}{hashlib.sha256(data).hexdigest()}{PIN_LIST}"
        self.store.write(file, data)
        self._keep(file, self._list_of(pins, intact=True))
        return file

    def _stored(self, files: Collection[str], root: CID, name: str) -> Pin | None:
        """Return a pin that a file holds now. A cached pin proves nothing about its file."""
        # Read first, so that a store that caches small files need not read it again.
        own = [file for file in self._files_of(root, name, files) if file in files and self._holds(file)]
        for pin in self._single_pins(own, name):
            return pin
        for file, pin_list in self._read_lists(filter(is_list, files)).items():
            created = pin_list.pins.get((str(root), name))
            if created is not None and self._holds(file):
                return self._pin(root, name, created)
        return None

    def _holds(self, file: str) -> bool:
        """Return whether a file holds now the pins that its name stands for; one that does not is not cached any more."""
        with contextlib.suppress(OSError), self.store.open_file(file, buffered=True) as stream:
            if holds_pins(file, stream.read(LIST_READ_MAX)):
                return True
        self.forget([file])
        return False

    def known(self) -> list[str]:
        """Return the files whose content is in memory."""
        return [*self._lists]

    def forget(self, files: Iterable[str]) -> None:
        """Read these lists again when they are needed."""
        for file in files:
            self._lists.pop(file, None)
            self._since.pop(file, None)

    def _keep(self, file: str, pin_list: _PinList) -> None:
        self._lists[file], self._since[file] = pin_list, self._elapsed()

    def _read_lists(self, files: Iterable[str]) -> dict[str, _PinList]:
        """Return these lists by file, without vanished ones. Each is read once a day, since its name is its hash."""
        lists = list(files)
        now = self._elapsed()
        self.forget(
            file for file, since in self._since.copy().items() if not 0 <= now - since < _KNOWN_SECONDS
        )
        lists_by_file = {file: known for file in lists if (known := self._lists.get(file)) is not None}
        unread = [file for file in lists if file not in lists_by_file]
        for file, head in self._heads(unread, LIST_READ_MAX).items():
            heartbeat()
            pins: dict[tuple[str, str], int] = {}
            whole = True  # a line of another form may keep a root that nothing else names
            for line in head.data.splitlines() if head is not None and head.size < LIST_READ_MAX else ():
                pin = _parsed(line)
                if pin is not None:
                    key = pin.cid, pin.name
                    pins[key] = min(pin.created, pins.get(key, pin.created))
                whole = whole and (pin is not None or not line)
            intact = whole and head is not None and hashlib.sha256(head.data).hexdigest() == _hash_named(file)
            lists_by_file[file] = self._list_of(pins, intact=intact)
            if intact:
                self._keep(file, lists_by_file[file])
        return lists_by_file

    def _listed(
        self, prefix: str, is_wanted: Callable[[str], bool]
    ) -> tuple[Mapping[str, FileInfo], dict[str, _PinList]]:
        """Return the files, and the lists, chosen by `is_wanted`. One that is gone when it is opened was
        merged into another one, so the files are listed again; one that stays in the list and cannot be
        opened is damaged."""
        for _ in range(_ATTEMPTS):
            files = self.store.files(prefix)
            lists = [file for file in files if is_wanted(file)]
            try:
                read = self._read_lists(lists)
            except ProviderError as error:
                error.listed = tuple(files)
                raise
            if len(read) == len(lists):
                break
            self.store.refresh()
        return files, {file: read.get(file) or self._list_of({}, intact=False) for file in lists}

    def _heads(self, files: list[str], length: int) -> Mapping[str, Head | None]:
        """Return the first bytes of the existing files; None for one that this user may not read, which does
        not hide the others."""
        try:
            return self.store.heads(files, length) if files else {}
        except PermissionError:
            heads: dict[str, Head | None] = {}
            for file in files:
                try:
                    heads |= self.store.heads([file], length)
                except PermissionError:
                    heads[file] = None
            return heads

    def _list_of(self, pins: dict[tuple[str, str], int], *, intact: bool) -> _PinList:
        by_name: dict[str, list[Pin]] = {}
        for (cid, name), created in pins.items():
            by_name.setdefault(name, []).append(self._pin(parse_cid(cid), name, created))
        return _PinList(pins, by_name, intact)


def _line(cid: str, name: str, created: int) -> bytes:
    return canonical.encode({"cid": cid, "created": created, "name": name, "v": 1})


def own_name(file: str) -> str:
    """Return the own name of a hidden file, also of one that an earlier version hid; "" for another file."""
    match = _HIDDEN_FILE.fullmatch(file)
    return match[1] if match is not None else ""


def _parsed(data: bytes) -> _PinFile | None:
    try:
        read = read_json(data, type=_PinFile)
        if read.v != 1 or not 0 <= read.created <= canonical.MAX_INT or len(read.name) > _NAME_MAX:
            return None
        return _PinFile(str(parse_cid(read.cid)), read.created, read.name, read.v)
    except (msgspec.DecodeError, UnicodeDecodeError, FormatError):
        return None


def holds_pins(file: str, data: bytes) -> bool:
    """Return whether bytes are those of a pin or a list of pins with this file name."""
    if is_list(file):
        return hashlib.sha256(data).hexdigest() == _hash_named(file)
    pin = _parsed(data) if is_single(file) and len(data) <= _PIN_MAX else None
    return pin is not None and file == f"{pin.cid}.{tag_of(pin.name)}{SINGLE}"


def _root_named(file: str) -> CID | None:
    """Return the root of a single pin by its file name, or by a sync program's variant of it."""
    base = file.rpartition("/")[2]
    match = None if base.startswith("._") else _SINGLE_NAME.search(base)
    try:
        return parse_cid(match[1]) if match is not None else None
    except FormatError:
        return None


def _list_named(file: str) -> str:
    """Return the hash of the list that a file is by name, or is a placeholder for; "" for any other, such as
    a conflict copy."""
    base = file.rpartition("/")[2]
    match = None if NO_STAND_IN.search(base) else _LIST_NAME.search(base)
    return match[1] if match is not None else ""


def _hash_named(file: str) -> str:
    """Return the hash in the name of a list, or of a copy of one."""
    return _list_named(file) or file.rpartition("/")[2][:64]


@functools.lru_cache(maxsize=1024)
def tag_of(name: str) -> str:
    """Return the tag of a pin's name in file names."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def is_list(file: str) -> bool:
    """Return whether a file has the name of a list."""
    stem = file.rpartition("/")[2]
    return len(stem) == 64 + len(PIN_LIST) and stem.endswith(PIN_LIST) and _HEX.issuperset(stem[:64])


def is_single(file: str) -> bool:
    """Return whether a file has the name of a single pin's file."""
    parts = file.split(".")
    return len(parts) == 3 and file.endswith(SINGLE) and 0 < len(parts[1]) <= 16 and _HEX.issuperset(parts[1])


def is_pin(file: str) -> bool:
    """Return whether a file has the name of a single pin's file or of a list."""
    return is_list(file) or is_single(file)
