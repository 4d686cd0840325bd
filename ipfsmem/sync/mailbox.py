"""Admit what agent keys left in their mailboxes, and delete what all providers have confirmed as admitted (format section 5.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ipfsmem.bundle.timeline import parse_line
from ipfsmem.canonical import read_json
from ipfsmem.causal.mailbox_admission import (
    Admitting,
    AgentRights,
    OpWrite,
    Waiting,
    admit,
)
from ipfsmem.causal.mailbox_entry import EntryName, StoredEntry, names_to_read, open_entry, parse_entry_name
from ipfsmem.causal.mailbox_markers import Marks, entry_token, marker_name, read_marks, stale_markers
from ipfsmem.causal.value import Entry, Value, decode_entry
from ipfsmem.device.codec import SealedCodec
from ipfsmem.device.events import Timeline
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta
from ipfsmem.device.writing import Writing, writing
from ipfsmem.errors import FormatError, LimitError, OpenError, ProviderError, SignatureError
from ipfsmem.provider.contract import SmallArea, small_area
from ipfsmem.provider.small_objects import SMALL_BATCH, small_box
from ipfsmem.ring.statements import Member
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.report import named
from ipfsmem.sync.steps import Joined, Published
from ipfsmem.sync.times import DAY_MS
from ipfsmem.wording import count

#: Maximum number of entries that one sync reads; the next ones continue.
MAX_READ: Final = 1_000


def agent_ids(replica: Replica) -> list[str]:
    """Return the ids of all agents that the ring names, revoked ones included, sorted."""
    bodies = () if replica.ring is None else (st.body for st in replica.ring.statements)
    members = (body for body in bodies if isinstance(body, Member) and body.kind == "agent")
    return sorted({body.id for body in members})


class Mailbox(msgspec.Struct, frozen=True):
    """The mailboxes of a vault's agents as one sync found them: listed entries by name, each with its providers' small-object areas."""

    anchor: bytes
    listed: Mapping[EntryName, Sequence[SmallArea]] = {}

    def stored_name(self, name: EntryName) -> str:
        """Return the name of an entry's small object."""
        return f"{small_box(self.anchor, name.agent)}/{name}"


async def admit_mailbox(run: SyncContext, joined: Joined, agents: Mapping[str, AgentRights]) -> Mailbox:
    """Write the ops of the entries of `agents` that no marker names, in one transaction with their markers.

    `agents`: the rights of each agent with a card of this device's person, after all heads are joined. A device that may not publish admits nothing. An
    outage of a provider, a malformed entry and a refused op are reported and cost the others nothing.
    """
    replica = run.replica
    if not agents or not _may_admit(replica, joined):
        return Mailbox(run.anchor)
    mailbox = await _list(run, agents)
    marks = _marks(replica)
    if marks.missing:
        run.notices.say(
            "mailbox",
            f"nothing of agents was admitted: {count(len(marks.missing), 'marker')} of admitted writes is not fetched yet",
        )
        return mailbox
    entries = await _read(run, mailbox, marks)
    if not entries:
        return mailbox
    by = Admitting(
        dev=replica.device.id, now_ms=replica.environment.now(), mine=replica.is_mine, rights=agents
    )
    with writing(replica) as change, change.by_session():
        marks = _marks(replica)  # another process may have synced since
        if not marks.missing:
            _tell_of_waiting(run, admit(entries, marks, by, _DeviceStore(change)))
            _drop_stale_markers(change)
    return mailbox


async def collect_mailbox(run: SyncContext, mailbox: Mailbox, published: Published) -> None:
    """Delete the entries whose tokens all providers have confirmed for a day, and note those that they confirm now."""
    replica, now = run.replica, run.replica.environment.now()
    known = _confirmed(replica)
    if not mailbox.listed:
        return
    tokens = _marks(replica).tokens
    done = {name: entry_token(name.sha) for name in mailbox.listed if entry_token(name.sha) in tokens}
    company = run.company
    whole = published.root is not None and not (
        run.not_opened
        or run.sending.not_placed
        or run.sending.without
        or (company is not None and (company.late or company.absent))
    )
    if whole:
        due = [name for name, token in done.items() if now - known.get(token, now) >= DAY_MS]
        await _remove(run, mailbox, due)
    later = {token: min(known.get(token, now), now) for token in done.values() if whole or token in known}
    if later != known:
        _note_confirmed(replica, later)


class _DeviceStore:
    """Writes of an admission into a device's database."""

    def __init__(self, change: Writing) -> None:
        self._change = change
        self._timelines: dict[str, Timeline] = {}

    def entry(self, name: str) -> Entry:
        """Return an entry with the writes so far."""
        return self._change.entry(name)

    def body(self, name: str, value: Value) -> bytes | None:
        """Return the text of a value; None if it is not fetched."""
        return self._change.body(name, value)

    def write(self, write: OpWrite) -> None:
        """Write a value. Raises NotFoundError, LimitError."""
        self._change.put_value(write.name, write.replaces, write.value, write.text)

    def append(self, scope: str, line: bytes) -> None:
        """Append an event. Raises NotFoundError, LimitError."""
        timeline = self._timelines.setdefault(scope, Timeline(self._change.replica, scope))
        timeline.add_lines(self._change, [parse_line(line)])


def _may_admit(replica: Replica, joined: Joined) -> bool:
    ring, device = replica.ring, replica.device.id
    return (
        isinstance(replica.codec, SealedCodec)
        and ring is not None
        and not joined.unsure
        and not ring.view.is_revoked(device)
        and ring.view.may_write(device)
    )


def _drop_stale_markers(change: Writing) -> None:
    replica = change.replica
    device = replica.device.id
    for name in stale_markers(_markers(replica), device):
        change.remove(name, [dot for dot in change.entry(name) if dot[:16] == device])


def _marks(replica: Replica) -> Marks:
    with replica.reading():
        return read_marks(_markers(replica), replica.store.body, replica.is_mine)


def _markers(replica: Replica) -> dict[str, Entry]:
    texts = replica.store.texts()
    return {name: decode_entry(name, text) for name, text in texts if marker_name(name) is not None}


async def _list(run: SyncContext, agents: Mapping[str, AgentRights]) -> Mailbox:
    boxes = {small_box(run.anchor, agent): agent for agent in sorted(agents)}
    order = sorted(boxes)
    listed: dict[EntryName, list[SmallArea]] = {}
    for provider in run.providers:
        area = small_area(provider)
        if area is None:
            continue
        try:
            for start in range(0, len(order), SMALL_BATCH):
                for stored in await area.list_small(order[start : start + SMALL_BATCH]):
                    box, _, label = stored.partition("/")
                    try:
                        name = parse_entry_name(label)
                    except FormatError:
                        continue
                    if boxes.get(box) == name.agent:
                        listed.setdefault(name, []).append(area)
        except ProviderError as error:
            run.notices.failed("writes of agents were not listed", error, provider=provider.name)
    return Mailbox(run.anchor, listed)


async def _read(run: SyncContext, mailbox: Mailbox, marks: Marks) -> list[StoredEntry]:
    """Fetch and open the entries that are not done. What cannot be read or is not an entry is reported."""
    new = [name for name in mailbox.listed if not marks.has_entry(name.sha)]
    wanted = names_to_read(new, [], repeated=True)[:MAX_READ]
    data: dict[EntryName, bytes] = {}
    areas = list(dict.fromkeys(area for name in wanted for area in mailbox.listed[name]))
    for area in areas:
        left = [name for name in wanted if name not in data and area in mailbox.listed[name]]
        for start in range(0, len(left), SMALL_BATCH):
            part = {mailbox.stored_name(name): name for name in left[start : start + SMALL_BATCH]}
            try:
                found = await area.get_small(list(part))
            except ProviderError as error:
                run.notices.failed("writes of agents were not read", error)
                break
            data.update((part[stored], object_) for stored, object_ in found.items() if stored in part)
    entries: list[StoredEntry] = []
    refused = Counter[str]()
    for name in wanted:
        if name not in data:
            continue
        try:
            entries.append(_opened(run, name, data[name]))
        except (FormatError, LimitError, OpenError, SignatureError) as error:
            refused[f"{error} (agent {name.agent})"] += 1
    if refused:
        run.notices.say(
            "mailbox",
            f"{count(sum(refused.values()), 'mailbox entry', 'mailbox entries')} ignored: {named(refused)}",
        )
    return entries


def _opened(run: SyncContext, name: EntryName, data: bytes) -> StoredEntry:
    replica = run.replica
    ring, codec = replica.ring, replica.codec
    public = ring.view.sign_key(name.agent) if ring is not None else None
    if public is None or not isinstance(codec, SealedCodec):
        raise SignatureError("the ring has no key of the agent")
    return open_entry(name, data, codec.all_sealers(), public, run.vault)


def _tell_of_waiting(run: SyncContext, waiting: Sequence[Waiting]) -> None:
    reasons = Counter(each.reason for each in waiting)
    for reason, number in sorted(reasons.items()):
        run.notices.say("mailbox", f"{count(number, 'write')} of agents not admitted: {reason}")


async def _remove(run: SyncContext, mailbox: Mailbox, due: Sequence[EntryName]) -> None:
    areas = list(dict.fromkeys(area for name in due for area in mailbox.listed[name]))
    for area in areas:
        names = [mailbox.stored_name(name) for name in due if area in mailbox.listed[name]]
        try:
            for start in range(0, len(names), SMALL_BATCH):
                await area.remove_small(names[start : start + SMALL_BATCH])
        except ProviderError as error:
            run.notices.failed("admitted writes of agents were not deleted", error)


def _confirmed(replica: Replica) -> dict[str, int]:
    """Return when all providers first confirmed a head with a token, in milliseconds since 1970, by token."""
    stored = replica.db.get_meta(meta.MAILBOX_CONFIRMED)
    read = read_json(stored) if stored else {}
    return {token: at for token, at in read.items() if isinstance(at, int)} if isinstance(read, dict) else {}


def _note_confirmed(replica: Replica, confirmed: Mapping[str, int]) -> None:
    with replica.transaction():
        replica.db.set_meta(meta.MAILBOX_CONFIRMED, msgspec.json.encode(confirmed))
