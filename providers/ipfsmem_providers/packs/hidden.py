"""Names of hidden files: a pack or another file that is about to be removed or replaced, out of the sight of readers.

Each hidden name is used once. A removal that a lost session or a sleeping device carries out late finds nothing, and not what
another device hid meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
import secrets
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cache
from typing import BinaryIO, Final, Protocol, cast

from ipfsmem.device.shared_folder import TEMPORARY
from ipfsmem.errors import FormatError, ProviderError
from ipfsmem.provider.small_objects import SMALL_MAX
from ipfsmem_providers.packs.blocking_work import heartbeat
from ipfsmem_providers.packs.index import scan
from ipfsmem_providers.packs.object_store import FileInfo, PassedOver
from ipfsmem_providers.packs.pins import LIST_READ_MAX, NO_STAND_IN, holds_pins, is_pin, own_name
from ipfsmem_providers.packs.small_files import holds_small, is_small_file
from ipfsmem_providers.packs.store import is_pack

#: The prefix of hidden files.
HIDDEN: Final = ".hidden-"
_HIDDEN_NAME: Final = re.compile(r"\.hidden-[0-9a-f]{16}-(.+)", re.DOTALL)
#: Most leftovers that one sweep of a folder removes or restores. Anybody can leave many; the next sweep does more.
SWEPT_MAX: Final = 32
_PIECE: Final = 1024 * 1024


class SweptStore(Protocol):
    """A folder of which leftovers are removed. Methods block; a missing file raises FileNotFoundError."""

    def files(self) -> dict[str, FileInfo]:
        """Return the files."""

    def containing(self, part: str) -> frozenset[str]:
        """Return every name that contains `part`, also those of links, folders and placeholders of sync programs."""

    def open_listed(self, name: str, size: int) -> BinaryIO:
        """Return a reader of a file that is listed with `size` bytes."""

    def hide(self, name: str, hidden: str) -> None:
        """Rename a file out of sight."""

    def restore(self, hidden: str, name: str) -> None:
        """Give a hidden file its name again. FileExistsError when that is taken."""

    def discard(self, name: str) -> None:
        """Remove a hidden or unfinished file."""


def hidden_name(name: str) -> str:
    """Return a new name to hide a file under."""
    return f"{HIDDEN}{secrets.token_hex(8)}-{name}"


def hidden_file(name: str) -> str:
    """Return the own name of a hidden pack, pin or small object; "" for any other file. Earlier versions hid a pack as `.new-<name>`."""
    own = own_name(name)
    return own if is_pack(own) or is_pin(own) or is_small_file(own) else ""


def is_hidden_pack(name: str) -> bool:
    """Return whether a file is a pack that a collection or a device that put it again hid."""
    return is_pack(hidden_file(name))


def is_hidden(name: str) -> bool:
    """Return whether a file is a hidden one."""
    return _HIDDEN_NAME.fullmatch(name) is not None or hidden_file(name) != ""


def is_leftover(name: str) -> bool:
    """Return whether a file is an unfinished or hidden one; it may be in use."""
    return name.startswith(TEMPORARY) or _HIDDEN_NAME.fullmatch(name) is not None


def leftovers(modified: Mapping[str, float], oldest: float) -> list[tuple[str, str]]:
    """Return unfinished and hidden files that were last changed before `oldest`, each with the name that it is to have again, ""
    if it is to be removed.

    `modified` and `oldest` have one unit and one clock. Of hidden files of one name the newest comes first:
    an older one may be the damaged file that it replaced.
    """
    old = [name for name, at in modified.items() if at < oldest and is_leftover(name)]
    return [(name, hidden_file(name)) for name in sorted(old, key=lambda name: (-modified[name], name))]


def settled_by(name: str, files: Mapping[str, FileInfo]) -> tuple[str, Hashable, Hashable]:
    """Return what decides on a hidden file: it, and the file of its name."""
    own = files.get(hidden_file(name))
    return name, files[name].version, own.version if own is not None else None


def sweep_leftovers(store: SweptStore, oldest: float, passed_over: PassedOver | None = None) -> None:
    """Remove or restore leftovers that were last changed before `oldest` (milliseconds since 1970 UTC), at most SWEPT_MAX; see
    `leftovers`. A hidden file that cannot be settled is passed over by later sweeps with the same `passed_over`, and costs the
    others nothing.

    A hidden file may be the only sound one, as a server may have stored the other in part, or may be the part itself. So
    each is read: the most sound one takes a free name, a sound one that of a damaged file, and a hidden one is removed only
    when the file of its name is sound. An unfinished file may be the sound one, too.
    """
    files = store.files()
    hidden: dict[str, list[str]] = {}
    for name, own in leftovers({name: info.modified for name, info in files.items()}, oldest):
        hidden.setdefault(own, []).append(name)
    unfinished = hidden.pop("", [])
    passed = PassedOver() if passed_over is None else passed_over
    every = store.containing("")
    groups = []
    for own, names in hidden.items():
        new = [name for name in names if settled_by(name, files) not in passed]
        if own not in files and _stands_elsewhere(own, every):
            passed.update(settled_by(name, files) for name in new)
            continue
        read, some = files[own].size if own in files else 0, list[str]()
        for name in new:
            if read + files[name].size > passed.limit:
                if not some:
                    passed.add(settled_by(name, files))  # the next collection does it
            elif len(some) < SWEPT_MAX:
                some.append(name)
                read += files[name].size
        if some:
            groups.append((read, own, some))
    budget, compared = SWEPT_MAX, 0
    uploads = cache(
        lambda: _whole_packs(store, {name: files[name].size for name in unfinished}, passed.limit)
    )
    for read, own, names in _shuffled(groups):
        if budget <= 0:
            break
        if compared + read > passed.limit:
            continue
        names = names[:budget]
        try:
            unsettled = _settle(store, own, names, files, uploads)
            if own not in files or not is_pack(own):  # of two packs each may have blocks that the other lacks
                passed.worthless.update(settled_by(name, files) for name in unsettled)
        except (OSError, ProviderError):
            unsettled = names
        passed.update(settled_by(name, files) for name in unsettled)
        budget, compared = budget - len(names), compared + read
    for name in unfinished[: max(budget, 1)]:
        with contextlib.suppress(OSError, ProviderError):
            store.discard(name)


def _shuffled(groups: Sequence[tuple[int, str, list[str]]]) -> list[tuple[int, str, list[str]]]:
    """Return the groups in random order: each process would try the same ones that cannot be settled."""
    return secrets.SystemRandom().sample(groups, len(groups))


def _stands_elsewhere(own: str, every: Collection[str]) -> bool:
    """Return whether something else than a file has this name, or a sync program has not brought the file yet."""
    return any(
        own in name and hidden_file(name) != own and (name == own or not NO_STAND_IN.search(name))
        for name in every
    )


def _settle(
    store: SweptStore,
    own: str,
    hidden: Sequence[str],
    files: Mapping[str, FileInfo],
    uploads: Callable[[], Mapping[str, str]],
) -> Sequence[str]:
    """Give a sound file its own name, without one the most sound of the hidden ones if the name is free, and remove the hidden
    ones if it is sound: a damaged one may hold blocks that the others lack. `hidden`: the newest first. `uploads` returns
    unfinished packs by own name. Returns those that stay."""
    best, most, failure = "", 0.0, None
    for name in (own, *hidden) if own in files else hidden:
        try:
            sound = _soundness(store, name, own, files[name].size)
        except (OSError, ProviderError) as error:
            if name == own:
                raise
            failure = error
            continue
        if sound > most:
            best, most = name, sound
        if most == math.inf:
            break
    if most < math.inf and is_pack(own) and own in uploads():
        best, most = uploads()[own], math.inf
    if failure is not None and not best:
        raise failure
    if best and best != own and (own not in files or most == math.inf):
        _restore(store, own, best, files)
    if most < math.inf:
        return hidden
    for name in hidden:
        if name != best:
            with contextlib.suppress(FileNotFoundError):
                store.discard(name)
    return ()


def _whole_packs(store: SweptStore, sizes: Mapping[str, int], limit: float) -> dict[str, str]:
    """Return unfinished files by the name that they have as packs; of files with more than `limit` bytes none is read."""
    packs: dict[str, str] = {}
    for name, size in sorted(sizes.items(), key=lambda item: item[1]):
        if (limit := limit - size) < 0:
            break
        with contextlib.suppress(OSError, ProviderError), store.open_listed(name, size) as file:
            digest = hashlib.sha256()
            while piece := file.read(_PIECE):
                digest.update(piece)
                heartbeat()
            packs[f"{digest.hexdigest()}.car"] = name
    return packs


def _restore(store: SweptStore, own: str, best: str, files: Mapping[str, FileInfo]) -> None:
    if own not in files:
        store.restore(best, own)
        return
    now = store.files()
    if best not in now or now.get(own) != files[own]:
        raise FileNotFoundError(f"{own} was changed by another device")
    aside = hidden_name(own)
    store.hide(own, aside)
    try:
        store.restore(best, own)
    except BaseException:
        with contextlib.suppress(OSError, ProviderError):
            store.restore(aside, own)
        raise


def _soundness(store: SweptStore, name: str, own: str, size: int) -> float:
    """Return how sound the bytes of a file are as those of `own`: infinity if they are, else the bytes of sound blocks."""
    with store.open_listed(name, size) as file:
        if is_small_file(own):
            return math.inf if holds_small(own, file.read(SMALL_MAX + 1)) else 0
        if not is_pack(own):
            return math.inf if holds_pins(own, file.read(LIST_READ_MAX)) else 0
        hashed, sound = _Hashed(file), 0
        with contextlib.suppress(FormatError):
            for section in scan(cast("BinaryIO", hashed)):
                sound += len(section.data) if section.sound else 0
        while hashed.read(_PIECE):
            heartbeat()
        return math.inf if hashed.digest.hexdigest() == own[:64] else sound


class _Hashed:
    """A file that is scanned and hashed in one pass."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.digest.update(data)
        return data

    def seek(self, offset: int, _whence: int) -> int:
        """Skip bytes, which are part of the hash."""
        self.read(offset)
        return self.tell()

    def tell(self) -> int:
        return self._file.tell()
