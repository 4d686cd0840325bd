"""A vault with its scopes as a tree of plain files, and back (format section 1.6): names and bytes only, no disk.

The default scope is in `memory/`, every other scope in `scopes/<scope>/memory/`, as in a published plain root, so that the loader
of other programs reads each folder. Texts of others are in a subfolder `others/`. Data without a Markdown form (a scope's card, the
keys of forgotten memories) is in a `scope.json` next to the scope's `memory/`. Files that a stranger adds to such a tree are
reported and left out; no name in the tree is used as a path on this disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from ipfsmem.bundle.blob import Blob
from ipfsmem.bundle.header_edit import edit_memory
from ipfsmem.bundle.keys import INDEX_FILE, is_key, is_scope, key_of_foreign_name, split_conflict_name
from ipfsmem.bundle.memory_file import MAX_FILE
from ipfsmem.bundle.origin_name import with_origin
from ipfsmem.bundle.sync_conflicts import base_of_conflict
from ipfsmem.bundle.timeline import (
    Event,
    day_of,
    day_of_file,
    event_line,
    is_too_long,
    lines_of,
    parse_line,
    too_long_text,
    union,
)
from ipfsmem.causal.cards import MAX_SCOPES, Card, split_card
from ipfsmem.errors import FormatError, IpfsmemError, LimitError

#: Subfolder of a scope's folder for the texts of others (format section 1.5).
OTHERS = "others"
#: The file next to a scope's `memory/`; maximum bytes of the file and of a whole tree, maximum names in a tree (format section 8).
SCOPE_FILE = "scope.json"
MAX_SCOPE_FILE = 16 * 1024 * 1024
MAX_BYTES = 512 * 1024 * 1024
MAX_NAMES = 250_000
#: Maximum number of different timeline lines in a tree, and in a stranger's that is opened by CID; of keys that its `scope.json`
#: files list as forgotten.
MAX_EVENTS = 500_000
MAX_STRANGER_EVENTS = 100_000
MAX_FORGOTTEN = 500_000

#: Reads a file by name up to a number of bytes; None if it disappeared meanwhile.
ReadFile = Callable[[str, int], bytes | None]


class BundleScope(msgspec.Struct, frozen=True):
    """One scope of a bundle. `card` None: missing or unreadable."""

    blob: Blob
    card: Card | None = None
    #: Descriptions of the files next to the memories that are not notes.
    skipped: tuple[str, ...] = ()


class Room:
    """The remaining quota of a tree: bytes, different timeline lines, forgotten keys. Bytes are counted after decompression, once
    for each link to a file."""

    def __init__(self, most_events: int = MAX_EVENTS) -> None:
        self._bytes = MAX_BYTES
        self._most_events = self._events = most_events
        self._forgotten = MAX_FORGOTTEN

    def take(self, *, size: int = 0, forgotten: int = 0) -> None:
        """Use some of the quota. Raises LimitError if it is exhausted."""
        self._bytes -= size
        self._forgotten -= forgotten
        if self._bytes < 0:
            raise LimitError(f"there are more than {MAX_BYTES:,} bytes in it")
        if self._forgotten < 0:
            raise LimitError(f"more than {MAX_FORGOTTEN:,} keys are called forgotten in it")

    def events(self, days: Iterable[tuple[str, bytes]], problems: list[str]) -> Iterator[Event]:
        """Yield the events in timeline files, given by name; equal lines of a day once. Problems are appended to `problems`."""
        seen: dict[str | None, set[bytes]] = {}
        for name, text in days:
            day = day_of_file(name)
            lines_of_day = seen.setdefault(day, set())
            long = 0
            for line in lines_of(text):
                if line in lines_of_day:
                    continue
                lines_of_day.add(line)
                self._events -= 1
                if self._events < 0:
                    raise LimitError(
                        f"there are more than {self._most_events:,} different lines in its timelines"
                    )
                if is_too_long(line):
                    long += 1
                else:
                    yield parse_line(line, day)
            if long:
                problems.append(f"{too_long_text(long)} of {_shown(name)} was left out")


class _ScopeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of `scope.json`. `forgotten`: keys whose texts a forget hides."""

    card: Card | None = None
    forgotten: tuple[str, ...] = ()
    v: Literal[1] = 1


class _ReadBeside(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`scope.json` with the card not decoded yet: an invalid card is left out, the forgotten keys are still used."""

    card: msgspec.Raw = msgspec.Raw(b"null")
    forgotten: tuple[str, ...] = ()
    v: Literal[1] = 1


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(_ReadBeside).decode
_decode_card = msgspec.json.Decoder(Card | None).decode


# -- writing -----------------------------------------------------------------------------------------------------------


def base_files(
    scope: str,
    texts: Mapping[str, bytes],
    events: Iterable[Mapping[str, object]],
    index: str,
    *,
    card: Card | None,
    forgotten: Iterable[str],
) -> dict[str, bytes]:
    """Return the files of one scope by their path in the tree; `texts` are by file name."""
    top = f"scopes/{scope}/" if scope else ""
    days: dict[str, list[bytes]] = {}
    for event in events:
        days.setdefault(day_of(str(event["ts"])), []).append(event_line(dict(event)) + b"\n")
    files = {f"{top}memory/{name}": data for name, data in texts.items()}
    files[f"{top}memory/{INDEX_FILE}"] = index.encode()
    files.update({f"{top}memory/timeline/{day}.jsonl": b"".join(lines) for day, lines in days.items()})
    beside = _ScopeFile(card=card, forgotten=tuple(sorted(forgotten)))
    if beside != _ScopeFile():
        files[top + SCOPE_FILE] = _encode(beside) + b"\n"
    return files


# -- reading ------------------------------------------------------------------------------------------------------------


def read_tree(
    names: Iterable[str], read: ReadFile, problems_before: Iterable[str] = (), texts: tuple[str, ...] = ()
) -> dict[str, BundleScope]:
    """Return the scopes of a tree by token, always including the default scope "".

    A tree without `memory/` and without `scopes/<scope>/memory/` is one scope. Problems are in the blobs, with `problems_before` in
    that of the default scope. `texts`: further extensions of memories, whose key is the whole file name. Raises LimitError.
    """
    listed = sorted(names)
    if len(listed) > MAX_NAMES:
        raise LimitError(f"there are more than {MAX_NAMES:,} files in it")
    whole = any(name.startswith("memory/") or _base(name) is not None for name in listed)
    problems: dict[str, list[str]] = {"": [*problems_before]}
    files: dict[str, list[tuple[str, str]]] = {"": []}
    beside: dict[str, str] = {}
    for name in listed:
        if any(part.startswith(".") for part in name.split("/")):
            continue
        if not whole:
            files[""].append((name, name))
        elif name.startswith("memory/"):
            files[""].append((name.removeprefix("memory/"), name))
        elif name == SCOPE_FILE:
            beside[""] = name
        elif name.startswith("scopes/"):
            _sort_in(name, files, beside, problems)
    files.update({scope: [] for scope in beside if scope not in files})
    if len(files) > MAX_SCOPES + 1:
        raise LimitError(f"there are {len(files) - 1:,} scopes in it, at most {MAX_SCOPES:,} are allowed")
    room = Room()
    return {
        scope: _part(scope, inside, beside.get(scope), read, room, problems.get(scope, []), (".md", *texts))
        for scope, inside in sorted(files.items())
    }


def _base(name: str) -> tuple[str, str] | None:
    """Split the path of a file in `scopes/<folder>/memory/` into (folder, relative name); None for any other path."""
    parts = name.split("/", 3)
    if len(parts) == 4 and parts[0] == "scopes" and parts[2] == "memory":
        return parts[1], parts[3]
    return None


def _sort_in(
    name: str,
    files: dict[str, list[tuple[str, str]]],
    beside: dict[str, str],
    problems: dict[str, list[str]],
) -> None:
    base = _base(name)
    scope = name.split("/")[1] if base is None else base[0]
    if base is None and name != f"scopes/{scope}/{SCOPE_FILE}":
        return
    if not is_scope(scope):
        problem = f"the folder scopes/{ascii(scope)[1:-1][:120]} was left out: it is not a valid scope"
        if problem not in problems[""][-1:]:
            problems[""].append(problem)
    elif base is None:
        beside[scope] = name
    else:
        files.setdefault(scope, []).append((base[1], name))


def _part(
    scope: str,
    inside: list[tuple[str, str]],
    beside: str | None,
    read: ReadFile,
    room: Room,
    problems: list[str],
    endings: tuple[str, ...],
) -> BundleScope:
    """Read one scope, within the remaining quota."""
    texts: list[tuple[str, bytes]] = []
    days: list[tuple[str, bytes]] = []
    unread: set[str] = set()
    prefix = f"{scope}/" if scope else ""
    for relative, name in inside:
        ending = relative.lower()
        if not ending.endswith((".jsonl", *endings)) or relative == INDEX_FILE:
            continue
        try:
            data = read(name, MAX_BYTES if ending.endswith(".jsonl") else MAX_FILE)
        except IpfsmemError as error:
            problems.append(f"{prefix}{_shown(relative)} was left out: {error}")
            unread.add(_key_in(relative))
            continue
        room.take(size=len(data or b""))
        if data is None:
            problems.append(f"{prefix}{_shown(relative)} was left out: it disappeared while being read")
            unread.add(_key_in(relative))
        elif ending.endswith(".jsonl"):
            days.append((relative, data))
        else:
            texts.append((relative, data))
    problems_here: list[str] = []
    blob = collect_files(texts, days, problems_here, room)
    problems += [prefix + one for one in problems_here]
    scope_file = _read_beside(beside, read, room, problems)
    return BundleScope(
        msgspec.structs.replace(
            blob,
            problems=tuple(problems),
            forgotten=frozenset(key for key in scope_file.forgotten if is_key(key)),
            unread=frozenset(unread),
        ),
        scope_file.card,
    )


def _key_in(relative: str) -> str:
    """Return the key in the name of a memory's file or of a conflict copy. For any other file the result is not the key of any
    memory."""
    copy = split_conflict_name(relative)
    return copy[0] if copy is not None else (base_of_conflict(relative) or relative).removesuffix(".md")


def _read_beside(name: str | None, read: ReadFile, room: Room, problems: list[str]) -> _ScopeFile:
    if name is None:
        return _ScopeFile()
    try:
        data = read(name, MAX_SCOPE_FILE)
    except IpfsmemError as error:
        problems.append(f"{_shown(name)} was not read: {error}")
        return _ScopeFile()
    # The quota is used before decoding: each list item except the first follows a comma.
    room.take(size=len(data or b""), forgotten=0 if data is None else data.count(b","))
    try:
        wire = _decode(data) if data is not None else _ReadBeside()
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        problems.append(f"{_shown(name)} was not read: {error}")
        return _ScopeFile()
    try:
        card = _decode_card(wire.card)
        if card is not None:
            ids = [one for part in split_card(card) for one in part.ids]
            card = msgspec.structs.replace(card, ids=tuple(ids))
    except (msgspec.DecodeError, UnicodeError, RecursionError, FormatError) as error:
        problems.append(f"the card in {_shown(name)} was left out: {error}")
        card = None
    return _ScopeFile(card=card, forgotten=wire.forgotten)


def collect_files(
    texts: list[tuple[str, bytes]],
    days: list[tuple[str, bytes]],
    problems: list[str],
    room: Room | None = None,
) -> Blob:
    """Make a bundle of memories and timeline files, each given as (file name, text). MEMORY.md is left out, a conflict copy is a
    further text of its key, and a file in `others/` is a text of others. Appends to `problems`, uses `room`. Raises LimitError."""
    files: dict[str, bytes] = {}
    more: list[tuple[str, bytes]] = []
    others: list[tuple[str, bytes]] = []
    renamed: list[tuple[str, bytes]] = []
    copies: list[tuple[str, bytes]] = []
    for name, data in texts:
        if name == INDEX_FILE:
            continue
        copy = split_conflict_name(name.removeprefix(f"{OTHERS}/"))
        if copy is not None:
            (copies if "/" not in name else others).append((copy[0], data))
            continue
        base = base_of_conflict(name)
        try:
            key, origin = key_of_foreign_name(name if base is None else base)
            if base is not None:
                copies.append((key, with_origin(data, origin)))
            elif origin is None:
                files[key] = data
            else:
                renamed.append((key, edit_memory(data, {"origin_name": origin})))
        except FormatError as error:
            problems.append(f"{name} was left out: {error}")
    for key, data in (*renamed, *copies):
        if files.setdefault(key, data) != data:
            more.append((key, data))
    events = union((room or Room()).events(days, problems))
    return Blob(files, events, "", tuple(more), tuple(problems), others=tuple(others))


def _shown(name: str) -> str:
    return name if name.isascii() and name.isprintable() else ascii(name)[1:-1]
