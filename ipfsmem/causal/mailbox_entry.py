"""Encode and verify mailbox entries: signed batches of writes by an agent key for a full device (format section 5.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from ipfsmem import canonical
from ipfsmem.bundle.keys import is_scope
from ipfsmem.bundle.memory_file import MAX_FILE, parse_memory, render_memory
from ipfsmem.bundle.session_parts import is_part, is_part_key
from ipfsmem.bundle.timeline import event_line, parse_line, split_own_id
from ipfsmem.causal.entries import memory_name
from ipfsmem.causal.value import FOREIGN, FORGOTTEN, LIVE, MAX_BASES, MAX_VALUES, split_dot
from ipfsmem.errors import FormatError, LimitError, OpenError, SignatureError
from ipfsmem.lazy_pattern import lazy_pattern
from ipfsmem.seal.objects import MAILBOX_ENTRY, Sealer
from ipfsmem.seal.primitives import SIGNATURE_BYTES, Signer25519, verify

#: Kinds of an op in addition to those of a value: an event of a timeline, lines of a session part.
EVENT: Final = "event"
LINES: Final = "lines"
#: Maximum ops of an entry, elements of an op's `sees`, and bytes of the JSON (format section 8).
MAX_OPS: Final = 1024
MAX_SEES: Final = 256
MAX_JSON: Final = 1_032_188 - SIGNATURE_BYTES
#: Maximum bytes of an entry that repeats the earlier ops of its start (one process of an agent).
CUMULATIVE: Final = 64 * 1024
#: Maximum bytes of a session part (format section 8).
MAX_PART: Final = 512 * 1024
#: Greatest part number in an op: the admitting device may need the following numbers.
MAX_PART_NUMBER: Final = 99_999
#: Greatest entry number: the label of a small object has at most 64 characters.
MAX_ENTRY_NUMBER: Final = 9_999_999_999

_DOMAIN: Final = b"ipfsmem/v1/mailbox-entry\0"
_MAX_DEPTH: Final = 6

_ID = lazy_pattern(r"[0-9a-f]{16}")
_HEX32 = lazy_pattern(r"[0-9a-f]{32}")
_HASH = lazy_pattern(r"[0-9a-f]{64}")
_ESCAPE = lazy_pattern(rb"\\(?:(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)")
_NAME = lazy_pattern(r"([0-9a-f]{16})\.([0-9a-f]{32})\.(0|[1-9][0-9]{0,9})\.([0-9a-f]{64})")


class OpPlace(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, order=True):
    """The entry that first contained an op (SHA-256 of the stored bytes), and the op's index among its new ops."""

    sha: str
    n: int


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

    `e`: the vault entry that the op writes: a memory for LIVE and FORGOTTEN, a session part for LINES, and `t` or
    `t/<scope>` for an EVENT. `text`: the text, the part with the new lines only, or the event's line. `b`, `h` and
    `author` are as in a value. `dots` and `sees`: the writes that the op replaces, all shown to its writer. `first`:
    None in the mailbox entry in which the op is new.
    """

    b: tuple[str, ...] = ()
    dots: tuple[str, ...] = ()
    e: str
    first: OpPlace | None = None
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
    start, from 0. `prev`: SHA-256 of the preceding entry. `ring`: SHA-256 of the keyring.json that the writer read.
    `start`: 16 random bytes that identify the writing process. `vault`: the vault tag. All but `i` are in hex.
    """

    agent: str
    ek: str
    i: int
    ops: tuple[MailboxOp, ...]
    prev: str | None
    ring: str
    start: str
    v: int = 1
    vault: str


class EntryName(NamedTuple):
    """The name of a stored entry in its vault's mailbox (section 7.8): the label `<agent>.<start>.<i>` and the
    SHA-256."""

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


class PlacedOp(msgspec.Struct, frozen=True, dict=True):
    """An op with its agent and start, and the entry that first contained it."""

    agent: str
    start: str
    place: OpPlace
    op: MailboxOp

    @cached_property
    def id(self) -> str:
        """The SHA-256 of place and content: see `op_id`."""
        return op_id(self.start, self.place, self.op)

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


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(MailboxEntry).decode


class LineNumbers(msgspec.Struct, frozen=True):
    """The numbers of a line of a session part. Lines with equal numbers are the same item, or the same piece of one."""

    at: int
    n: int = 0
    piece: tuple[int, int] | None = None
    gone: tuple[int, str, int] | None = None


class _NewLine(LineNumbers, frozen=True):
    """A line that an agent adds."""

    item: object = None


_decode_line = msgspec.json.Decoder(LineNumbers).decode
_decode_new_line = msgspec.json.Decoder(_NewLine).decode


def line_numbers(line: bytes) -> LineNumbers:
    """Return the numbers of a line.

    Raises DecodeError or RecursionError if the line is not an object with these fields, FormatError if nested too
    deep.
    """
    return _decode_line(_plain(line))


def _plain(line: bytes) -> bytes:
    canonical.check_depth(line, "a line of a session", 512)
    # The format allows an escaped lone surrogate, which the decoder refuses.
    return _ESCAPE.sub(lambda found: b"\\u0041" if found[1] else found[0], line) if b"\\u" in line else line


def op_id(start: str, place: OpPlace, op: MailboxOp) -> str:
    """Return the SHA-256 of an op's place and content. A repeat with changed content is therefore another op."""
    content = _encode(msgspec.structs.replace(op, first=place))
    return sha256(b"ipfsmem/v1/mailbox-id\0" + start.encode() + b"\0" + content).hexdigest()


def op_mark(agent: str, e: str, of: str) -> str:
    """Return the mark, 32 hex digits, by which markers name the op with the id `of`.

    The mark binds the agent and the entry `e` that the op writes. So an op whose `sees` names another agent's op
    supersedes it only in the entry that both write.
    """
    text = canonical.encode([agent, e, of])
    return sha256(b"ipfsmem/v1/mailbox-op\0" + text).hexdigest()[:32]


def parse_entry_name(name: str) -> EntryName:
    """Parse the name of a stored entry. Raises FormatError."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise FormatError(f"{name[:120]!r} is not the name of a mailbox entry")
    return EntryName(found[1], found[2], int(found[3]), found[4])


def ops_of(stored: StoredEntry) -> Iterator[PlacedOp]:
    """Yield the ops of an entry, repeated ones included, each with its place."""
    entry, new = stored.entry, 0
    for op in entry.ops:
        if op.first is None:
            yield PlacedOp(entry.agent, entry.start, OpPlace(stored.sha, new), op)
            new += 1
        else:
            yield PlacedOp(entry.agent, entry.start, op.first, op)


def repeated_ops(last: StoredEntry | None, new: Iterable[MailboxOp]) -> tuple[MailboxOp, ...]:
    """Return the ops of the next entry of a start: those of `last` if all ops fit into 64 KiB, then the new ops.

    The ops of `last` are repeated all or not at all, so that a reader needs only the newest entry of each run.
    """
    ops = tuple(new)
    if last is None:
        return ops
    earlier = tuple(msgspec.structs.replace(each.op, first=each.place) for each in ops_of(last))
    if len(earlier) + len(ops) > MAX_OPS or len(_encode((*earlier, *ops))) > CUMULATIVE:
        return ops
    return (*earlier, *ops)


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
            of = {op.first.sha for op in entry.ops if op.first is not None}
            known.update(
                name
                for name in map(of_sha.get, of)
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
        and _HASH.fullmatch(entry.ring)
        and _HEX32.fullmatch(entry.start)
        and _HEX32.fullmatch(entry.vault)
        and ((entry.i == 0) if entry.prev is None else (entry.i > 0 and _HASH.fullmatch(entry.prev)))
    )
    if not sound:
        raise FormatError("a field of a mailbox entry is malformed")
    if not entry.ops or len(entry.ops) > MAX_OPS:
        raise LimitError(f"a mailbox entry has 1-{MAX_OPS} ops, this has {len(entry.ops)}")
    new = [op.first is None for op in entry.ops]
    if not new[-1] or new != sorted(new):
        raise FormatError("the new ops of a mailbox entry do not follow the repeated ones")
    places = [op.first for op in entry.ops if op.first is not None]
    if len(set(places)) < len(places):
        raise FormatError("a mailbox entry repeats an op twice")
    for n, op in enumerate(entry.ops):
        fault = _fault(op) or (_start_fault(entry.start, op) if op.kind == LINES else None)
        if fault:
            raise FormatError(f"op {n} of a mailbox entry: {fault}")


def _fault(op: MailboxOp) -> str | None:
    if not _ID.fullmatch(op.h):
        return "h is not 16 hex digits"
    if op.first is not None and not (_HASH.fullmatch(op.first.sha) and 0 <= op.first.n < MAX_OPS):
        return "first is malformed"
    if op.author and op.author != FOREIGN and not _ID.fullmatch(op.author):
        return "of is neither a device id nor foreign"
    if len(op.b) > MAX_BASES or len(set(op.b)) < len(op.b) or not all(map(_HEX32.fullmatch, op.b)):
        return f"b is not a list of at most {MAX_BASES} different hashes of 32 hex digits"
    if fault := _replaced_fault(op):
        return fault
    if op.kind != LIVE and op.b:
        return "only a text has bases"
    if op.kind in (EVENT, LINES) and (op.dots or op.sees):
        return "an event or a session's line replaces nothing"
    if op.kind in (FORGOTTEN, EVENT) and op.author:
        return "only a text is of somebody"
    if op.kind == FORGOTTEN:
        if op.text is not None:
            return "a wish to forget has a text"
        return None if memory_name(op.e) else "e is not the name of a memory"
    if op.text is None:
        return "the text is missing"
    return {LIVE: _text_fault, EVENT: _event_fault, LINES: _lines_fault}.get(op.kind, _unknown)(op.e, op.text)


def _unknown(e: str, text: str) -> str:
    return "the kind is unknown"


def _replaced_fault(op: MailboxOp) -> str | None:
    if len(op.dots) > MAX_VALUES or len(op.sees) > MAX_SEES:
        return f"more than {MAX_VALUES} dots or {MAX_SEES} ops are replaced"
    if list(op.dots) != sorted(set(op.dots)) or list(op.sees) != sorted(set(op.sees)):
        return "dots or sees are not sorted, or hold a repeat"
    for dot in op.dots:
        split_dot(dot)
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


def _text_fault(e: str, text: str) -> str | None:
    name = memory_name(e)
    if name is None:
        return "e is not the name of a memory"
    data = text.encode()
    if len(data) > MAX_FILE:
        return f"a text has {len(data)} bytes, at most {MAX_FILE} are allowed"
    if is_part_key(name.key) and is_part(name.key, parse_memory(data)):
        return "a session's part is not written as a text"
    return None


def _event_fault(e: str, text: str) -> str | None:
    if e != "t" and not (e.startswith("t/") and is_scope(e[2:])):
        return "e is not the name of a timeline"
    line = text.encode()
    event = parse_line(line)
    if event_line(event) != line:
        return "the text is not the line of an event"
    if split_own_id(event["id"]) is not None:
        return "an event has the id of a device's own event"
    if str(event["type"]).startswith("ipfsmem-"):
        return "an event has a type of ipfsmem"
    return None


def _lines_fault(e: str, text: str) -> str | None:
    name = memory_name(e)
    data = text.encode()
    if len(data) > MAX_PART:
        return f"a session's part has {len(data)} bytes, at most {MAX_PART} are allowed"
    file = parse_memory(data)
    if name is None or not is_part(name.key, file):
        return "e and text are not of a session's part"
    if int(name.key.rpartition("-")[2]) > MAX_PART_NUMBER:
        return f"the number of a session's part is more than {MAX_PART_NUMBER}"
    if render_memory(file) != data:
        return "a session's part is not in its one form"
    try:
        lines = [_decode_new_line(_plain(line.encode())) for line in file.body.removesuffix("\n").split("\n")]
    except (msgspec.DecodeError, FormatError, RecursionError):
        return "a line of a session's part is malformed"
    if any(not (0 <= line.at <= canonical.MAX_INT and 0 <= line.n <= canonical.MAX_INT) for line in lines):
        return "a line of a session's part has a number out of range"
    if any(line.gone is not None or line.piece is not None or _has_marks(line.item) for line in lines):
        return "a line of a session's part is not an item of an agent"
    return None


def _has_marks(item: object) -> bool:
    """Tell whether an item has fields that only an import or an approval by a device may set."""
    return isinstance(item, dict) and "ipfsmem" in item


def _start_fault(start: str, op: MailboxOp) -> str | None:
    if op.e.rpartition("-")[0].endswith(f"-{start[:16]}"):
        return None
    return "a session's part is of another start"
