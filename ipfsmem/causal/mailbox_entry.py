"""Encode and verify mailbox entries: signed batches of writes by an agent key for a full device (format section 5.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from ipfsmem import canonical
from ipfsmem.bundle.keys import is_scope
from ipfsmem.bundle.memory_file import MAX_FILE, parse_memory, render_memory
from ipfsmem.bundle.session_parts import is_part, is_part_key
from ipfsmem.bundle.timeline import event_line, parse_line
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import MemoryName, memory_name
from ipfsmem.causal.value import FOREIGN, FORGOTTEN, LIVE, MAX_BASES, MAX_VALUES, split_dot
from ipfsmem.errors import FormatError, LimitError, OpenError, SignatureError
from ipfsmem.lazy_pattern import lazy_pattern
from ipfsmem.seal.objects import MAILBOX_ENTRY, Sealer
from ipfsmem.seal.primitives import SIGNATURE_BYTES, Signer25519, verify

#: The kind of an op that writes an event of a timeline; the other kinds are those of a value.
EVENT: Final = "event"
#: Maximum ops of an entry, elements of an op's `sees`, and bytes of the JSON (format section 8).
MAX_OPS: Final = 1024
MAX_SEES: Final = 256
MAX_JSON: Final = 1_032_188 - SIGNATURE_BYTES
#: Maximum bytes of an entry that repeats the earlier ops of its start (one process of an agent).
CUMULATIVE: Final = 64 * 1024
#: Maximum bytes of a session part (format section 8).
MAX_PART: Final = 512 * 1024
#: Greatest entry number: the label of a small object has at most 64 characters.
MAX_ENTRY_NUMBER: Final = 9_999_999_999
#: Prefix of sessions and event types that are reserved for ipfsmem.
_RESERVED: Final = "ipfsmem-"

_DOMAIN: Final = b"ipfsmem/v1/mailbox-entry\0"
_MAX_DEPTH: Final = 6

_ID = lazy_pattern(r"[0-9a-f]{16}")
_HEX32 = lazy_pattern(r"[0-9a-f]{32}")
_HASH = lazy_pattern(r"[0-9a-f]{64}")
_ESCAPE = lazy_pattern(rb"\\(?:(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)")
_EVENT_ID = lazy_pattern(r"([0-9a-f]{32})-(0|[1-9][0-9]{0,15})")
_NAME = lazy_pattern(r"([0-9a-f]{16})\.([0-9a-f]{32})\.(0|[1-9][0-9]{0,9})\.([0-9a-f]{64})")


class SeenOp(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, order=True):
    """A pending op that the writer of another op was shown: its agent, id, clock value and body.

    `id` is the result of `op_id`; `body` the SHA-256 of the text, "" for FORGOTTEN.
    """

    agent: str
    id: str
    h: str
    body: str


# Fields in the order of canonical JSON.
class MailboxOp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One write of an agent.

    `e`: the vault entry that it writes: a memory for LIVE and FORGOTTEN, `t` or `t/<scope>` for an EVENT. `text`: the
    text or the event's line. `b`, `h` and `author` are as in a value. `dots` (each with its value's clock) and
    `sees`: the writes that the op replaces, all shown to its writer.
    """

    b: tuple[str, ...] = ()
    dots: tuple[tuple[str, str], ...] = ()
    e: str
    h: str
    kind: str
    author: str = msgspec.field(name="of", default="")
    sees: tuple[SeenOp, ...] = ()
    text: str | None = None

    @property
    def body(self) -> str | None:
        """SHA-256 of the text in hex; None for FORGOTTEN."""
        return None if self.text is None else sha256(self.text.encode()).hexdigest()

    @property
    def scope(self) -> str:
        """The scope that the op writes to; "" is the default scope."""
        parts = self.e.split("/")
        return parts[1] if len(parts) == (2 if self.kind == EVENT else 3) else ""


# Fields in the order of canonical JSON.
class MailboxEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JSON of a mailbox entry.

    `agent`: id of the agent's key. `ek`: id of the epoch key that seals the entry. `i`: number of the entry in its
    start, from 0. `repeats`: SHA-256 of each earlier entry of this start whose ops it repeats. `start`: 16 random
    bytes that identify the writing process. `vault`: the vault tag. All but `i` are in hex.
    """

    agent: str
    ek: str
    i: int
    ops: tuple[MailboxOp, ...]
    repeats: tuple[str, ...]
    start: str
    v: int = 1
    vault: str


class EntryName(NamedTuple):
    """The name of a stored entry in the box of its agent (section 7.8): the label `<agent>.<start>.<i>` and its SHA-256."""

    agent: str
    start: str
    i: int
    sha: str

    def __str__(self) -> str:
        return f"{self.agent}.{self.start}.{self.i}.{self.sha}"


class StoredEntry(msgspec.Struct, frozen=True):
    """An entry with verified form and signature. The SHA-256 of its stored bytes identifies it."""

    entry: MailboxEntry
    sha: str


class AgentOp(msgspec.Struct, frozen=True, dict=True):
    """An op and the agent that signed it."""

    agent: str
    op: MailboxOp

    @cached_property
    def id(self) -> str:
        """The SHA-256 of the op's content: see `op_id`."""
        return op_id(self.op)

    @cached_property
    def mark(self) -> str:
        """The name of this op in markers: see `op_mark`."""
        return op_mark(self.agent, self.op.e, self.id)

    @property
    def order(self) -> tuple[str, str]:
        """The sort key of admission, ascending."""
        return (self.op.h, self.mark)

    def as_seen(self) -> SeenOp:
        """Return the reference by which a later op names this op."""
        return SeenOp(self.agent, self.id, self.op.h, self.op.body or "")


class _SessionLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a session part that an agent may write."""

    at: int
    item: dict[str, Any]
    n: int = 0


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(MailboxEntry).decode
_decode_line = msgspec.json.Decoder(_SessionLine).decode


def op_id(op: MailboxOp) -> str:
    """Return the SHA-256 of an op's content. Equal ops in two entries are one op; a changed text makes another op."""
    return sha256(b"ipfsmem/v1/mailbox-id\0" + _encode(op)).hexdigest()


def op_mark(agent: str, e: str, of: str) -> str:
    """Return the mark, 32 hex digits, by which markers name the op with the id `of`.

    The mark binds the agent and the entry `e` that the op writes. So an op whose `sees` names another agent's op
    supersedes it only in the entry that both write.
    """
    text = canonical.encode([agent, e, of])
    return sha256(b"ipfsmem/v1/mailbox-op\0" + text).hexdigest()[:32]


def start_id(agent: str, start: str) -> str:
    """Return the 32 hex digits that name a start in the ids of its events. The first 16 are the `dev` of its session
    parts.

    They are derived from the agent's id, so that an agent cannot choose those of a device or another agent.
    """
    text = canonical.encode([agent, start])
    return sha256(b"ipfsmem/v1/mailbox-start\0" + text).hexdigest()[:32]


def parse_entry_name(name: str) -> EntryName:
    """Parse the name of a stored entry. Raises FormatError."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise FormatError(f"{name[:120]!r} is not the name of a mailbox entry")
    return EntryName(found[1], found[2], int(found[3]), found[4])


def ops_of(stored: StoredEntry) -> Iterator[AgentOp]:
    """Yield the ops of an entry, repeated ones included."""
    return (AgentOp(stored.entry.agent, op) for op in stored.entry.ops)


def with_repeats(
    last: StoredEntry | None, new: Iterable[MailboxOp]
) -> tuple[tuple[MailboxOp, ...], tuple[str, ...]]:
    """Return `ops` and `repeats` of the next entry of a start: all ops of `last` if they fit into 64 KiB, and the new
    ops.

    The ops of `last` are repeated all or not at all, so that a reader needs only the newest entry of each run.
    """
    ops = tuple(new)
    if last is None:
        return ops, ()
    both = (*last.entry.ops, *ops)
    repeats = tuple(sorted({*last.entry.repeats, last.sha}))
    if len(both) > MAX_OPS or len(_encode((both, repeats))) > CUMULATIVE:
        return ops, ()
    return both, repeats


def names_to_read(
    listed: Iterable[EntryName],
    read: Iterable[StoredEntry],
    broken: Collection[EntryName] = (),
    *,
    repeated: bool = False,
) -> list[EntryName]:
    """Return the listed entries that are neither read nor in `broken` (absent or refused), newest of each start
    first.

    The caller reads the first name and calls again; a start that was never copied costs one read per 64 KiB. Entries
    that a later entry of the same start repeats are omitted unless `repeated`. A device reads these too before
    admission, since only an entry that was read is marked as done and may be deleted.
    """
    names = set(listed)
    of_sha = {name.sha: name for name in names}
    known: set[EntryName] = set(broken)
    for stored in read:
        entry = stored.entry
        known.add(EntryName(entry.agent, entry.start, entry.i, stored.sha))
        if not repeated:
            known.update(
                name
                for name in map(of_sha.get, entry.repeats)
                if name and name.i < entry.i and name[:2] == (entry.agent, entry.start)
            )
    return sorted(names - known, key=lambda name: (name.agent, name.start, -name.i, name.sha))


def sign_entry(signer: Signer25519, entry: MailboxEntry) -> bytes:
    """Return the payload of an entry, signature and JSON. Raises FormatError or LimitError if the entry is invalid."""
    try:
        text = _encode(entry)
    except UnicodeEncodeError:
        raise FormatError("a mailbox entry holds text that is not Unicode (a lone surrogate)") from None
    _check(entry, len(text))
    return signer.sign(_DOMAIN + text) + text


def seal_entry(sealer: Sealer, entry: MailboxEntry, payload: bytes) -> bytes:
    """Return the stored bytes of a payload made by `sign_entry`. Raises LimitError."""
    return sealer.seal(MAILBOX_ENTRY, entry_context(entry.agent, entry.start, entry.i), payload)


def entry_context(agent: str, start: str, i: int) -> str:
    """Return the context of a sealed entry (format section 3)."""
    return f"{agent}/{start}/{i}"


def open_entry(
    name: EntryName, data: bytes, sealers: Iterable[Sealer], public: bytes, vault: bytes
) -> StoredEntry:
    """Open and verify the bytes stored under `name`; `public` is the agent's Ed25519 key.

    Raises FormatError or LimitError if the bytes do not match the name or violate the format, OpenError if no key
    opens them, SignatureError if the agent did not sign them.
    """
    sha = sha256(data).hexdigest()
    if sha != name.sha:
        raise FormatError("the bytes of a mailbox entry do not have the hash in its name")
    for sealer in sealers:
        try:
            payload = sealer.open(MAILBOX_ENTRY, entry_context(name.agent, name.start, name.i), data)
        except OpenError:
            continue
        return StoredEntry(_verified(payload, name, sealer.epoch_key.id, public, vault), sha)
    raise OpenError("a mailbox entry is sealed under a key that this device does not hold")


def _verified(payload: bytes, name: EntryName, ek: str, public: bytes, vault: bytes) -> MailboxEntry:
    signature, text = payload[:SIGNATURE_BYTES], payload[SIGNATURE_BYTES:]
    if not verify(public, _DOMAIN + text, signature):
        raise SignatureError("a mailbox entry is not signed by its agent")
    entry = parse_mailbox_entry(text)
    if (entry.agent, entry.start, entry.i) != (name.agent, name.start, name.i):
        raise FormatError("a mailbox entry is of another agent or place than its name")
    if entry.ek != ek or entry.vault != vault.hex():
        raise FormatError("a mailbox entry names another vault or epoch key than the one it is sealed for")
    return entry


def parse_mailbox_entry(data: bytes) -> MailboxEntry:
    """Parse the JSON of an entry. Raises FormatError, LimitError."""
    if len(data) > MAX_JSON:
        raise LimitError(f"a mailbox entry has {len(data)} bytes, at most {MAX_JSON} are allowed")
    canonical.check_depth(data, "a mailbox entry", _MAX_DEPTH)
    try:
        entry = _decode(data)
        same = _encode(entry) == data
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise FormatError(f"a mailbox entry is malformed: {error}") from None
    if not same:
        raise FormatError("a mailbox entry is not canonical JSON")
    _check(entry, len(data))
    return entry


def _check(entry: MailboxEntry, size: int) -> None:
    if size > MAX_JSON:
        raise LimitError(f"a mailbox entry has {size} bytes, at most {MAX_JSON} are allowed")
    sound = (
        entry.v == 1
        and _ID.fullmatch(entry.agent)
        and _ID.fullmatch(entry.ek)
        and 0 <= entry.i <= MAX_ENTRY_NUMBER
        and list(entry.repeats) == sorted(set(entry.repeats))
        and all(map(_HASH.fullmatch, entry.repeats))
        and _HEX32.fullmatch(entry.start)
        and _HEX32.fullmatch(entry.vault)
    )
    if not sound:
        raise FormatError("a field of a mailbox entry is malformed")
    if not entry.ops or len(entry.ops) > MAX_OPS:
        raise LimitError(f"a mailbox entry has 1-{MAX_OPS} ops, this has {len(entry.ops)}")
    writer = start_id(entry.agent, entry.start)
    for n, op in enumerate(entry.ops):
        if fault := "of is the agent itself" if op.author == entry.agent else _fault(op, writer):
            raise FormatError(f"op {n} of a mailbox entry: {fault}")


def _fault(op: MailboxOp, writer: str) -> str | None:
    if not _ID.fullmatch(op.h):
        return "h is not 16 hex digits"
    if op.author and op.author != FOREIGN and not _ID.fullmatch(op.author):
        return "of is neither a device id nor foreign"
    if len(op.b) > MAX_BASES or len(set(op.b)) < len(op.b) or not all(map(_HEX32.fullmatch, op.b)):
        return f"b is not a list of at most {MAX_BASES} different hashes of 32 hex digits"
    if fault := _replaced_fault(op):
        return fault
    if op.kind == EVENT:
        return _event_fault(op, writer)
    name = memory_name(op.e)
    if name is None:
        return "e is not the name of a memory"
    if is_part_key(name.key) and not name.key.rpartition("-")[0].endswith(f"-{writer[:16]}"):
        return "a session's part is of another start"
    if op.kind == FORGOTTEN:
        return (
            "a wish to forget has a text, an author or bases"
            if op.text is not None or op.author or op.b
            else None
        )
    if op.kind != LIVE:
        return "the kind is unknown"
    if op.text is None:
        return "the text is missing"
    data = op.text.encode()
    if len(data) > MAX_FILE:
        return f"a text has {len(data)} bytes, at most {MAX_FILE} are allowed"
    return _part_fault(name, data, hlc_ms(op.h)) if is_part_key(name.key) else None


def _replaced_fault(op: MailboxOp) -> str | None:
    if len(op.dots) > MAX_VALUES or len(op.sees) > MAX_SEES:
        return f"more than {MAX_VALUES} dots or {MAX_SEES} ops are replaced"
    if list(op.dots) != sorted(set(op.dots)) or list(op.sees) != sorted(set(op.sees)):
        return "dots or sees are not sorted, or hold a repeat"
    for dot, h in op.dots:
        split_dot(dot)
        if not _ID.fullmatch(h):
            return "a dot in dots has no clock"
    for seen in op.sees:
        good = (
            _ID.fullmatch(seen.agent)
            and _HASH.fullmatch(seen.id)
            and _ID.fullmatch(seen.h)
            and (not seen.body or _HASH.fullmatch(seen.body))
        )
        if not good:
            return "an op in sees is malformed"
    return None


def _event_fault(op: MailboxOp, writer: str) -> str | None:
    if op.b or op.dots or op.sees or op.author:
        return "an event replaces nothing, and is of its agent"
    if op.e != "t" and not (op.e.startswith("t/") and is_scope(op.e[2:])):
        return "e is not the name of a timeline"
    line = (op.text or "").encode()
    event = parse_line(line)
    if event_line(event) != line:
        return "the text is not the line of an event"
    found = _EVENT_ID.fullmatch(str(event["id"]))
    if found is None or found[1] != writer:
        return "the id of an event is not of its start"
    if str(event["type"]).startswith(_RESERVED):
        return "an event has a type of ipfsmem"
    return None


def _part_fault(name: MemoryName, data: bytes, until: int) -> str | None:
    """Return the fault of a session part, else None. Its lines may not be later than `until` (milliseconds since
    1970)."""
    if len(data) > MAX_PART:
        return f"a session's part has {len(data)} bytes, at most {MAX_PART} are allowed"
    file = parse_memory(data)
    if not is_part(name.key, file) or file.session.startswith(_RESERVED):
        return "e and text are not of one session that an agent may write"
    if render_memory(file) != data:
        return "a session's part is not in its one form"
    for line in file.body.removesuffix("\n").split("\n"):
        try:
            read = _decode_line(_plain(line.encode()))
        except (msgspec.DecodeError, FormatError, RecursionError):
            return "a line of a session's part is not an item"
        if not (0 <= read.at <= until and 0 <= read.n <= canonical.MAX_INT):
            return "a line of a session's part has a number out of range, or is later than its op"
        # Fields that only an import or an approval by a device may set.
        if "ipfsmem" in read.item:
            return "a line of a session's part is not an item of an agent"
    return None


def _plain(line: bytes) -> bytes:
    canonical.check_depth(line, "a line of a session", 512)
    # The format allows an escaped lone surrogate, which the decoder refuses.
    return _ESCAPE.sub(lambda found: b"\\u0041" if found[1] else found[0], line) if b"\\u" in line else line
