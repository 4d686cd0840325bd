"""Pins on a shelf: which root is listed under which name, one small file each, and many together in a list.

    pins/<cid>.<16 hex of SHA-256(name)>.json      {"cid","created","name","v":1}
    pins/<sha256 of the file>.pins                 such objects, a line each, sorted

A list is never changed: without some of its pins it is written anew, and the old one goes when the new one is in its
place, so a crash leaves a pin too many and never one too few. Two devices that write at once can bring a pin back that
one of them took away; neither can lose one. Nothing here knows blocks.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from ipfsmem import canonical
from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.errors import FormatError, ProviderError, ProviderRefused
from ipfsmem.provider.contract import Pin
from ipfsmem_providers.packs.blocking_work import beat
from ipfsmem_providers.packs.shelf import Shelf

LIST: Final = ".pins"
ONE: Final = ".json"
#: More files than this, and the smallest are put into one list until half as many are left.
MAX_FILES: Final = 64
_PIN_MAX: Final = 4096
#: A list grows no longer by merging, and is not read beyond twice this, in bytes.
_LIST_MAX: Final = 8 * 1024 * 1024
_HEX: Final = frozenset("0123456789abcdef")


class _PinFile(msgspec.Struct, forbid_unknown_fields=True):
    cid: str
    created: int
    name: str
    v: int


class _List(NamedTuple):
    """What a list holds: the time of each (CID, name), and its pins by name; whether it is as it was written."""

    pins: dict[tuple[str, str], int]
    by_name: dict[str, list[Pin]]
    intact: bool


class Pins:
    """The pins of one place; `now` gives milliseconds since 1970 UTC. Methods block."""

    def __init__(self, shelf: Shelf, now: Callable[[], int]) -> None:
        self.shelf = shelf
        self._now = now
        self._lists: dict[str, _List] = {}

    def add(self, root: CID, name: str) -> Pin:
        """List `root` under `name`; a pin that is there keeps its time."""
        files = self.shelf.look(self._start(name))
        own = self._ones(self._files_of(root, name, files), name)
        for known in own or self._in_lists(files, root, name):
            return known
        pin = self._pin(root, name, self._now())
        self.shelf.write(pin.handle, _line(str(root), name, pin.created))
        if len(files) >= MAX_FILES:
            with contextlib.suppress(
                OSError, ProviderError
            ):  # the pin is safe; the rest can be done another day
                self._merge(name)
        return pin

    def named(self, name: str) -> list[Pin]:
        """Pins with this name, newest first. Files that are no pins are passed over."""
        files = self.shelf.look(self._start(name))
        found: dict[CID, Pin] = {}
        lists = self._read_lists(filter(is_list, files)).values()
        for pin in (*self._ones(files, name), *(pin for each in lists for pin in each.by_name.get(name, ()))):
            if pin.cid not in found or pin.created < found[pin.cid].created:
                found[pin.cid] = pin
        return sorted(found.values(), key=lambda pin: (-pin.created, pin.handle))

    def remove(self, pins: Iterable[Pin]) -> None:
        """Take these entries off."""
        gone: dict[str, set[CID]] = {}
        for pin in pins:
            gone.setdefault(pin.name, set()).add(pin.cid)
        for name, roots in gone.items():
            files = self.shelf.look(self._start(name))
            for root in roots:
                for file in self._files_of(root, name, files):
                    with contextlib.suppress(FileNotFoundError):
                        self.shelf.unlink(file)
            keys = {(str(root), name) for root in roots}
            for file, known in self._read_lists(filter(is_list, files)).items():
                # A damaged list stays as it is: written anew it would be without the pins that cannot be read of it.
                if known.intact and not keys.isdisjoint(known.pins):
                    self._put_list({key: at for key, at in known.pins.items() if key not in keys}, name)
                    with contextlib.suppress(FileNotFoundError):
                        self.shelf.unlink(file)
        self.shelf.flush()

    def roots(self) -> set[CID]:
        """Every root that is listed under any name. Raises ProviderRefused when a list is damaged: nobody can say then."""
        found: set[CID] = set()
        files = self.shelf.look()
        lists = self._read_lists([file for file in files if LIST in file])
        for file in files:
            if file.endswith(ONE):
                # A pin file that cannot be read, such as the copy that a sync program made of it, still keeps its root.
                with contextlib.suppress(FormatError):
                    found.add(parse_cid(file.rpartition("/")[2].partition(".")[0]))
            elif file in lists:
                known = lists[file]
                if is_list(file) and not known.intact:
                    raise ProviderRefused(
                        f"{self.shelf}/{file} is damaged, so it is not known what is pinned; nothing was removed",
                        hint="Remove that file, then sync all devices, so that each pins its root again. Older versions that only it "
                        "lists are not kept any more.",
                    )
                found.update(pin.cid for pins in known.by_name.values() for pin in pins)
        return found

    # -- what a file is called -----------------------------------------------------------------------------------

    def _start(self, name: str) -> str:
        """What the files begin with in which a pin under `name` may stand."""
        return ""

    def _pin(self, root: CID, name: str, created: int) -> Pin:
        """A pin, and the file that is its own."""
        return Pin(root, name, f"{root}.{tag_of(name)}{ONE}", created)

    def _files_of(self, root: CID, name: str, files: Collection[str]) -> list[str]:
        """The files that hold this pin alone, if they are there. Built, not taken from its handle, which could be any path."""
        return [self._pin(root, name, 0).handle]

    def _ones(self, files: Iterable[str], name: str) -> list[Pin]:
        """The pins under `name` that have a file of their own among these. One stands under its own name only: no file
        speaks for another root."""
        own = [file for file in files if file.endswith(f".{tag_of(name)}{ONE}") and is_one(file)]
        found = []
        for file, start in self.shelf.starts(own, _PIN_MAX + 1).items():
            beat()
            read = _parsed(start.data) if start.size <= _PIN_MAX else None
            if read is not None and read.name == name:
                pin = self._pin(parse_cid(read.cid), name, read.created)
                if pin.handle == file:
                    found.append(pin)
        return found

    # -- lists ---------------------------------------------------------------------------------------------------

    def _merge(self, name: str) -> None:
        """Put the smallest files into one list; each goes when that is in its place."""
        files = self.shelf.look(self._start(name))
        ours = sorted((seen.size, file) for file, seen in files.items() if is_list(file) or is_one(file))
        pins: dict[tuple[str, str], int] = {}
        merged: list[str] = []
        total = 0
        for size, file in ours:
            if len(ours) - len(merged) < MAX_FILES // 2 or total + size > _LIST_MAX:
                break
            new = self._held(file, name)
            if new is None:
                continue
            for key, at in new.items():
                pins[key] = min(at, pins.get(key, at))
            merged.append(file)
            total += size
        if len(merged) < 2:
            return
        stays = self._put_list(pins, name)
        for file in merged:
            if file != stays:
                with contextlib.suppress(FileNotFoundError):
                    self.shelf.unlink(file)
        self.shelf.flush()

    def _held(self, file: str, name: str) -> Mapping[tuple[str, str], int] | None:
        """The pins in a file of ours, where those of `name` may stand; None when it is not as it was written."""
        if is_list(file):
            known = self._read_lists([file])[file]
            return known.pins if known.intact else None
        data = self.shelf.read(file, _PIN_MAX)
        beat()
        read = _parsed(data) if data is not None else None
        if read is None or self._pin(parse_cid(read.cid), read.name, read.created).handle != file:
            return None
        return {(read.cid, read.name): read.created}

    def _put_list(self, pins: dict[tuple[str, str], int], name: str) -> str:
        """Write a list, unless it would be empty; its file. `name`: where names have their own lists, whose it is."""
        if not pins:
            return ""
        data = b"\n".join(sorted(_line(cid, of, at) for (cid, of), at in pins.items())) + b"\n"
        file = f"{self._start(name)}{hashlib.sha256(data).hexdigest()}{LIST}"
        self.shelf.write(file, data)
        self._lists[file] = self._list_of(pins, intact=True)
        return file

    def _in_lists(self, files: Iterable[str], root: CID, name: str) -> Iterable[Pin]:
        for known in self._read_lists(filter(is_list, files)).values():
            created = known.pins.get((str(root), name))
            if created is not None:
                yield self._pin(root, name, created)

    def _read_lists(self, files: Iterable[str]) -> dict[str, _List]:
        """These lists; each is read once, as its name says what is in it."""
        lists = list(files)
        found = {file: self._lists[file] for file in lists if file in self._lists}
        unread = [file for file in lists if file not in found]
        for file, start in self.shelf.starts(unread, 2 * _LIST_MAX + 1).items() if unread else ():
            beat()
            pins = {}
            for line in start.data.splitlines() if start.size <= 2 * _LIST_MAX else ():
                pin = _parsed(line)
                if pin is not None:
                    pins[pin.cid, pin.name] = pin.created
            intact = hashlib.sha256(start.data).hexdigest() == file.rpartition("/")[2][:64]
            found[file] = self._list_of(pins, intact=intact)
            if intact:
                self._lists[file] = found[file]
        for file in unread:
            # Gone meanwhile, so that another one stands in its place, or nothing that can be read.
            if file not in found:
                found[file] = self._list_of({}, intact=file not in self.shelf.look())
        return found

    def _list_of(self, pins: dict[tuple[str, str], int], *, intact: bool) -> _List:
        by_name: dict[str, list[Pin]] = {}
        for (cid, name), created in pins.items():
            by_name.setdefault(name, []).append(self._pin(parse_cid(cid), name, created))
        return _List(pins, by_name, intact)


def _line(cid: str, name: str, created: int) -> bytes:
    return canonical.encode({"cid": cid, "created": created, "name": name, "v": 1})


def _parsed(data: bytes) -> _PinFile | None:
    try:
        read = read_json(data, type=_PinFile)
        return _PinFile(str(parse_cid(read.cid)), read.created, read.name, read.v)
    except (msgspec.DecodeError, UnicodeDecodeError, FormatError):
        return None


@functools.lru_cache(maxsize=1024)
def tag_of(name: str) -> str:
    """What stands for a name in that of a file."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def is_list(file: str) -> bool:
    """Whether a file is called as a list of ours is."""
    stem = file.rpartition("/")[2]
    return len(stem) == 64 + len(LIST) and stem.endswith(LIST) and _HEX.issuperset(stem[:64])


def is_one(file: str) -> bool:
    """Whether a file is called as one of a single pin is."""
    parts = file.split(".")
    return len(parts) == 3 and file.endswith(ONE) and 0 < len(parts[1]) <= 16 and _HEX.issuperset(parts[1])
