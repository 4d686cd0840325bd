"""The pins of a shared folder: which root is listed under which name, one small file each, and many together in a list.

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
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import msgspec

from ipfsmem import canonical
from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.device.shared_folder import Folder
from ipfsmem.errors import FormatError, ProviderRefused
from ipfsmem.provider.contract import Pin
from ipfsmem_providers.blocking_work import beat

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
    """The pins of one folder; `now` gives milliseconds since 1970 UTC. Methods block and raise OSError."""

    def __init__(self, folder: Folder, now: Callable[[], int]) -> None:
        self.folder = folder
        self._now = now
        self._lists: dict[str, _List] = {}

    def add(self, root: CID, name: str) -> Pin:
        """List `root` under `name`; a pin that is there keeps its time."""
        files = self.folder.sizes()
        handle = handle_of(root, name)
        known = self._one(handle) if handle in files else None
        if known is not None:
            return known
        for created in self._in_lists(files, (str(root), name)):
            return Pin(root, name, handle, created)
        pin = Pin(root, name, handle, self._now())
        self.folder.write(handle, _line(str(root), name, pin.created))
        if len(files) >= MAX_FILES:
            with contextlib.suppress(OSError):  # the pin is safe; the rest can be done another day
                self._merge()
        return pin

    def named(self, name: str) -> list[Pin]:
        """Pins with this name, newest first. Files that are no pins are passed over."""
        files = self.folder.sizes()
        suffix = f".{_tag(name)}{ONE}"
        found: dict[CID, Pin] = {}
        for file in files:
            if file.endswith(suffix):
                pin = self._one(file)
                if pin is not None and pin.name == name:
                    found[pin.cid] = pin
        for file in files:
            if _is_list(file):
                for pin in self._list(file).by_name.get(name, ()):
                    if pin.cid not in found or pin.created < found[pin.cid].created:
                        found[pin.cid] = pin
        return sorted(found.values(), key=lambda pin: (-pin.created, pin.handle))

    def remove(self, pins: Iterable[Pin]) -> None:
        """Take these entries off."""
        gone = {(str(pin.cid), pin.name) for pin in pins}
        for cid, name in gone:
            handle = handle_of(parse_cid(cid), name)  # built, not taken: a handle could be any path
            with contextlib.suppress(FileNotFoundError):
                self.folder.unlink(handle)
        for file in self.folder.sizes():
            known = self._list(file) if _is_list(file) else None
            # A damaged list stays as it is: written anew it would be without the pins that cannot be read of it.
            if known is not None and known.intact and not gone.isdisjoint(known.pins):
                left = {key: at for key, at in known.pins.items() if key not in gone}
                self._put_list(left)
                with contextlib.suppress(FileNotFoundError):
                    self.folder.unlink(file)
        self.folder.flush()

    def roots(self) -> set[CID]:
        """Every root that is listed under any name. Raises ProviderRefused when a list is damaged: nobody can say then."""
        found: set[CID] = set()
        for file in self.folder.sizes():
            if file.endswith(ONE):
                # A pin file that cannot be read, such as the copy that a sync program made of it, still keeps its root.
                with contextlib.suppress(FormatError):
                    found.add(parse_cid(file.partition(".")[0]))
            elif LIST in file:
                known = self._list(file)
                if _is_list(file) and not known.intact:
                    raise ProviderRefused(
                        f"{self.folder.path / file} is damaged, so it is not known what is pinned; nothing was removed",
                        hint="Remove that file, then sync all devices, so that each pins its root again. Older versions that only it "
                        "lists are not kept any more.",
                    )
                found.update(pin.cid for pins in known.by_name.values() for pin in pins)
        return found

    def _merge(self) -> None:
        """Put the smallest files into one list; each goes when that is in its place."""
        files = self.folder.sizes()
        ours = sorted((size, file) for file, size in files.items() if _is_list(file) or _is_one(file))
        pins: dict[tuple[str, str], int] = {}
        merged: list[str] = []
        total = 0
        for size, file in ours:
            if len(ours) - len(merged) < MAX_FILES // 2 or total + size > _LIST_MAX:
                break
            if _is_list(file):
                known = self._list(file)
                if not known.intact:
                    continue
                new = known.pins
            else:
                pin = self._one(file)
                if pin is None:
                    continue
                new = {(str(pin.cid), pin.name): pin.created}
            for key, at in new.items():
                pins[key] = min(at, pins.get(key, at))
            merged.append(file)
            total += size
        if len(merged) < 2:
            return
        stays = self._put_list(pins)
        for file in merged:
            if file != stays:
                with contextlib.suppress(FileNotFoundError):
                    self.folder.unlink(file)
        self.folder.flush()

    def _put_list(self, pins: dict[tuple[str, str], int]) -> str:
        if not pins:
            return ""
        data = b"\n".join(sorted(_line(cid, name, at) for (cid, name), at in pins.items())) + b"\n"
        file = hashlib.sha256(data).hexdigest() + LIST
        self.folder.write(file, data)
        self._lists[file] = _list_of(pins, intact=True)
        return file

    def _in_lists(self, files: Iterable[str], key: tuple[str, str]) -> Iterable[int]:
        for file in files:
            if _is_list(file):
                created = self._list(file).pins.get(key)
                if created is not None:
                    yield created

    def _list(self, file: str) -> _List:
        """A list; read once, as its name says what is in it."""
        known = self._lists.get(file)
        if known is None:
            data = self.folder.read(file, 2 * _LIST_MAX)
            beat()
            if data is None:
                return _list_of({}, intact=file not in self.folder.sizes())
            pins = {}
            for line in data.splitlines():
                pin = _parsed(line)
                if pin is not None:
                    pins[pin.cid, pin.name] = pin.created
            known = _list_of(pins, intact=hashlib.sha256(data).hexdigest() == file[:64])
            if known.intact:
                self._lists[file] = known
        return known

    def _one(self, handle: str) -> Pin | None:
        data = self.folder.read(handle, _PIN_MAX)
        beat()
        read = _parsed(data) if data is not None else None
        if read is None:
            return None
        # A pin stands under its own name only: no file speaks for another root.
        root = parse_cid(read.cid)
        return Pin(root, read.name, handle, read.created) if handle == handle_of(root, read.name) else None


def _list_of(pins: dict[tuple[str, str], int], *, intact: bool) -> _List:
    by_name: dict[str, list[Pin]] = {}
    for (cid, name), created in pins.items():
        handle = f"{cid}.{_tag(name)}{ONE}"
        by_name.setdefault(name, []).append(Pin(parse_cid(cid), name, handle, created))
    return _List(pins, by_name, intact)


def handle_of(root: CID, name: str) -> str:
    """The file of one pin."""
    return f"{root}.{_tag(name)}{ONE}"


def _line(cid: str, name: str, created: int) -> bytes:
    return canonical.encode({"cid": cid, "created": created, "name": name, "v": 1})


def _parsed(data: bytes) -> _PinFile | None:
    try:
        read = read_json(data, type=_PinFile)
        return _PinFile(str(parse_cid(read.cid)), read.created, read.name, read.v)
    except (msgspec.DecodeError, UnicodeDecodeError, FormatError):
        return None


@functools.lru_cache(maxsize=1024)
def _tag(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def _is_list(file: str) -> bool:
    return len(file) == 64 + len(LIST) and file.endswith(LIST) and _HEX.issuperset(file[:64])


def _is_one(file: str) -> bool:
    parts = file.split(".")
    return len(parts) == 3 and file.endswith(ONE) and len(parts[1]) == 16 and _HEX.issuperset(parts[1])
