"""Import records of another program as memories: plan all of them, then write them in one transaction or only report.

A merge never overwrites existing texts: a text under an existing key becomes an alternative. A text that this device
imported before is not imported again, even if it was edited or deleted since. Records that a reader marks as
candidates are pending texts (format section 5.2), which agents see only after a person approved them. `readers` parse
the formats.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Final, Literal

import msgspec

from ipfsmem import canonical
from ipfsmem.bundle.keys import key_of_foreign_name
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.bundle.secrets import find_secrets
from ipfsmem.bundle.session_parts import parts_with_unknown_marks
from ipfsmem.bundle.sync_conflicts import base_of_conflict
from ipfsmem.bundle.timeline import Event, as_foreign, conversation_of, event_line, foreign_id, too_long_text
from ipfsmem.causal.clock import ZERO
from ipfsmem.causal.entries import memory_name
from ipfsmem.causal.state import write
from ipfsmem.causal.value import FOREIGN, LIVE, Entry, Value, dot
from ipfsmem.device.bulk import no_collection
from ipfsmem.device.events import Timeline
from ipfsmem.device.last_change import note_irrevocable
from ipfsmem.device.writing import Writing, writing
from ipfsmem.errors import FormatError, IpfsmemError, LimitError, UsageError
from ipfsmem.exchange.lenient import date_of
from ipfsmem.exchange.places import NO_FILE
from ipfsmem.exchange.records import (
    MADE_CONVERSATION,
    Conversed,
    Happened,
    ImportRecord,
    Item,
    Skipped,
    made_key,
    mark_of,
    name_of,
    shown,
)
from ipfsmem.exchange.taken_before import ImportedTexts
from ipfsmem.memories.bundle_tree import MAX_EVENTS, MAX_NAMES
from ipfsmem.memories.importing import Strategy, exit_code_of, is_cut_off, refuse_left_out
from ipfsmem.memories.memories import MemoryStore, check_body
from ipfsmem.memories.part_guard import check_incoming
from ipfsmem.memories.sessions import Sessions

#: The result for a record. `renewed`: its text here was imported from the same place before and not edited since, and
#: its program changed it. `still_others`: it exists here as another person's text, and an import does not change the
#: author. `changed_here`: it was imported before, and edited or deleted here. `twice`: the same text occurred twice.
What = Literal[
    "added",
    "renewed",
    "replaced",
    "kept_beside",
    "unchanged",
    "still_others",
    "changed_here",
    "still_forgotten",
    "twice",
]
_WRITTEN: Final = ("added", "renewed", "replaced", "kept_beside")
#: Number of texts that are sealed together before they are written.
_SEAL_BATCH: Final = 1_000
_MARK = re.compile(r"-([0-9a-f]{12})")


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one record. `candidate`: it is a text of others until a person approves it."""

    key: str
    what: What
    candidate: bool
    #: Its place in the input.
    where: str
    scope: str = ""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import from another program, or its preview. `problems`: what was omitted, and why."""

    program: str
    dry_run: bool = False
    #: Records by result, and of the written ones own texts and candidates.
    counts: dict[str, int]
    own: int = 0
    candidates: int = 0
    events: int = 0
    #: Messages of conversations that are new here; a dry run counts all that it read.
    messages: int = 0
    #: Input without anything to remember: reason -> how often.
    skipped: dict[str, int] = {}
    problems: tuple[str, ...] = ()
    #: Changes made by the import: no date of its own.
    notes: tuple[str, ...] = ()
    #: Likely secrets in imported texts: place and kind.
    secrets: tuple[str, ...] = ()
    #: The number of written records by scope; empty if all are in one.
    scopes: dict[str, int] = {}
    #: Each record of a dry run.
    records: tuple[Planned, ...] = ()
    #: Exit code: 7 if something was omitted, else 0.
    exit_code: int = 0

    def raise_if_incomplete(self) -> None:
        """Raise IncompleteError if something was or would be omitted."""
        refuse_left_out(self.problems, dry_run=self.dry_run)


class _Choice(msgspec.Struct, frozen=True):
    """A record to import: the text, and the dots that it replaces."""

    plan: Planned
    data: bytes
    origin: str
    dots: tuple[str, ...] = ()


class ReaderResult(msgspec.Struct):
    """The complete result of a reader."""

    records: list[ImportRecord]
    events: dict[str, list[Event]]
    skipped: Counter[str]
    problems: list[str]
    sessions: list[Conversed] = []
    notes: list[str] = []
    #: Keys of memories that could not be read.
    unread: set[str] = set()

    @property
    def scopes(self) -> set[str]:
        """The scopes with a result."""
        return (
            {one.scope for one in self.records}
            | {one.scope for one in self.sessions}
            | {scope for scope, some in self.events.items() if some}
        )


def gather(items: Iterable[Item], program: str) -> ReaderResult:
    """Read to the end. Raises FormatError if nothing of the program is found, LimitError, and the reader's error for a place of
    another program."""
    result = ReaderResult([], {}, Counter(), [])
    events = 0
    for item in items:
        if isinstance(item, ImportRecord):
            result.records.append(
                msgspec.structs.replace(item, file_name="") if item.file_name == NO_FILE else item
            )
        elif isinstance(item, Happened):
            events += 1
            _add_event(result, item)
        elif isinstance(item, Conversed):
            result.sessions.append(item)
        elif isinstance(item, Skipped):
            result.skipped[item.why] += 1
        else:
            result.problems.append(str(item))
            result.unread |= {*item.keys, item.where.rpartition("/")[2].removesuffix(".md")}
        if len(result.records) + len(result.problems) > MAX_NAMES:
            raise LimitError(f"there are more than {MAX_NAMES:,} records in it")
        if events > MAX_EVENTS:
            raise LimitError(f"there are more than {MAX_EVENTS:,} events in it")
    if not (result.records or events or result.sessions or result.skipped or result.problems):
        raise FormatError(f"there is nothing of {program} in it")
    return result


def _undated(event: Event) -> bytes:
    """Return the event of a conversation without its time and ids."""
    return canonical.encode({k: v for k, v in event.items() if k not in ("ts", "id", "conversation")})


def _add_event(result: ReaderResult, item: Happened) -> None:
    try:
        event = as_foreign(item.event)
        event_line(event)
        result.events.setdefault(item.scope, []).append(event)
        if item.note:
            result.notes.append(item.note)
    except LimitError:
        result.problems.append(f"{too_long_text(1)} of the timeline was left out")
    except (FormatError, KeyError, TypeError, ValueError) as error:
        result.problems.append(f"an event was left out: {error}")


class Importer:
    """Plans and writes the result of a reader; `into` maps its scopes to those here."""

    def __init__(
        self,
        memories: MemoryStore,
        program: str,
        *,
        into: Mapping[str, str],
        place: str = "",
        strategy: Strategy = "merge",
        foreign: bool = False,
    ) -> None:
        """`place`: the source, so that a file changed by its program is recognised; "" for standard input, which may be anything."""
        self._memories = memories
        self._place = place
        self._program = program
        self._into = into
        self._replace = strategy == "replace"
        self._foreign = foreign
        self._public = memories.replica.config.mode.public
        self._secrets: list[str] = []

    def preview(self, contents: ReaderResult) -> Taken:
        """Return a preview of the import; writes nothing."""
        contents = self._of_others(contents)
        problems = list(contents.problems)
        with self._memories.replica.reading(), no_collection():
            self._before = ImportedTexts(self._memories.replica)
            store = self._memories.replica.store
            choices = self._choices(contents, store.entry, store.body, problems)
            choices = self._with_room(choices, store.entry, problems)
            events = 0
            for scope, some in contents.events.items():
                timeline = Timeline(self._memories.replica, self._into[scope])
                here = {foreign_id(event) for event in timeline.events()}
                events += len({event["id"] for event in self._news(timeline, some, problems)} - here)
        messages = sum(len(one.items) for one in contents.sessions)
        return self._report(contents, choices, events, problems, dry_run=True, messages=messages)

    def import_all(self, contents: ReaderResult) -> Taken:
        """Import all of it, completely or not at all. Raises NotFoundError for a forgotten scope, LimitError."""
        contents = self._of_others(contents)
        problems = list(contents.problems)
        replica = self._memories.replica
        written: list[_Choice] = []
        events = messages = 0
        with writing(replica) as change, no_collection():
            # Read inside the transaction: otherwise the marks of a concurrent import would be overwritten.
            self._before = ImportedTexts(replica)
            choices = self._choices(contents, change.entry, change.body, problems)
            for at in range(0, len(choices), _SEAL_BATCH):
                written += self._write(change, choices[at : at + _SEAL_BATCH], problems)
            for scope, some in contents.events.items():
                timeline = Timeline(replica, self._into[scope])
                news = self._news(timeline, some, problems)
                events += timeline.add_foreign(change, news, by_content=True)
            for conversed in contents.sessions:
                messages += self._converse(change, conversed, problems)
            if events or messages or any(choice.plan.what in _WRITTEN for choice in written):
                note_irrevocable(replica, "an import")
            marks = [(one.plan.scope, one.plan.key, one.data, one.origin) for one in written]
            self._before.add(self._program, marks)
        return self._report(contents, written, events, problems, dry_run=False, messages=messages)

    def _of_others(self, contents: ReaderResult) -> ReaderResult:
        """Return the same as texts of others, with an event for each conversation."""
        if not self._foreign:
            return contents
        for one in contents.sessions:
            ended = max((at for at, _ in one.items if at is not None), default=0)
            event = {"session": one.session, "agent": one.agent, "messages": len(one.items)}
            _add_event(
                contents,
                Happened(
                    {"ts": date_of(ended), "type": "conversation", "source": self._program, **event},
                    one.scope,
                ),
            )
        return msgspec.structs.replace(contents, sessions=[])

    def _converse(self, change: Writing, conversed: Conversed, problems: list[str]) -> int:
        """Import the new messages of a conversation and return their number."""
        there = Sessions(self._memories.in_scope(self._into[conversed.scope]))
        try:
            return there.add_dated_in(
                change, conversed.session, conversed.items, conversed.agent, source=self._program
            )
        except IpfsmemError as error:
            problems.append(f"the session {shown(conversed.session)} was left out: {error}")
            return 0

    # -- planning ----------------------------------------------------------------------------------------------

    def _choices(
        self,
        contents: ReaderResult,
        entry_of: Callable[[str], Entry],
        body: Callable[[str, Value], bytes | None],
        problems: list[str],
    ) -> list[_Choice]:
        """Plan each record, without parts of sessions of which a later part cannot be imported: that one may mark their messages as
        pending. Appends to `problems`."""
        unfit = set(contents.unread)
        choices = list(self._plan(contents.records, entry_of, body, problems, unfit))
        own = [one for one in choices if one.plan.what in _WRITTEN and not one.plan.candidate]
        cut_off = {one.plan.key for one in own if is_cut_off(one.plan.key, one.data)}
        unsure = parts_with_unknown_marks((one.plan.key for one in own), unfit | cut_off)
        sure: list[_Choice] = []
        for choice in choices:
            plan = choice.plan
            if plan.key in unsure and plan.what in _WRITTEN and not plan.candidate:
                why = "its last line is cut off" if plan.key in cut_off else "a later part of its session was"
                problems.append(f"{plan.where} was left out: {why}")
            else:
                sure.append(choice)
        return sure

    def _plan(
        self,
        records: list[ImportRecord],
        entry_of: Callable[[str], Entry],
        body: Callable[[str, Value], bytes | None],
        problems: list[str],
        unfit: set[str],
    ) -> Iterator[_Choice]:
        """Yield the plan for each record, in order. Appends to `problems`, and to `unfit` the names of files that cannot be imported."""
        scopes = {scope: self._memories.in_scope(self._into[scope]) for scope in {r.scope for r in records}}
        keys = {scope: self._known_keys(memories.scope) for scope, memories in scopes.items()}
        texts_of: dict[tuple[str, str], list[bytes]] = {}
        # Copies made by sync programs are alternatives to their originals.
        for record in sorted(records, key=lambda one: base_of_conflict(one.file_name) is not None):
            memories = scopes[record.scope]
            try:
                data = self._rendered(record, problems)
                key = self._key(record, data, keys[record.scope], texts_of)
                check_body(key, data)
                self._check_secrets(key, data)
            except IpfsmemError as error:
                problems.append(f"{shown(record.where)} was left out: {error}")
                unfit.add(record.key or record.file_name.removesuffix(".md"))
                continue
            same = texts_of.setdefault((memories.scope, key), [])
            if data in same or (same and not (record.ident or record.file_name)):
                yield self._choice(record, memories, key, data, "twice")
                continue
            beside = bool(same)
            same.append(data)
            name = memories.name(key)
            outcome, dots = self._outcome(memories, record, key, data, entry_of(name), body)
            if beside and outcome in ("added", "replaced", "renewed"):
                outcome, dots = "kept_beside", ()
            yield self._choice(record, memories, key, data, outcome, dots)

    def _rendered(self, record: ImportRecord, problems: list[str]) -> bytes:
        """Return the memory file of a record; if it is too long, without its side fields, which are appended to `problems`."""
        try:
            return record.render()
        except LimitError as error:
            if record.file is not None:
                raise
            data = record.text_alone().render()
            problems.append(f"of {shown(record.where)} only the text came in: {error}")
            return data

    def _choice(
        self,
        record: ImportRecord,
        memories: MemoryStore,
        key: str,
        data: bytes,
        outcome: What,
        dots: tuple[str, ...] = (),
    ) -> _Choice:
        plan = Planned(
            key=key,
            what=outcome,
            candidate=record.candidate or self._foreign,
            where=shown(record.where),
            scope=memories.scope,
        )
        return _Choice(plan, data, self._origin(record), dots)

    def _known_keys(self, scope: str) -> dict[str, str]:
        """Return keys here that end in the mark of a record, by that mark."""
        keys: dict[str, str] = {}
        for name in self._memories.replica.store.names():
            parsed = memory_name(name)
            if parsed is not None and parsed.scope == scope and (mark := _MARK.fullmatch(parsed.key[-13:])):
                keys[mark[1]] = min(parsed.key, keys.get(mark[1], parsed.key))
        return keys

    def _key(
        self,
        record: ImportRecord,
        data: bytes,
        keys_known: dict[str, str],
        texts_of: Mapping[tuple[str, str], list[bytes]],
    ) -> str:
        """Return the key of a record: derived from its file name, else from its id, so that it does not depend on the
        text."""
        if record.key:
            return record.key
        if record.file_name:
            return key_of_foreign_name(base_of_conflict(record.file_name) or record.file_name).key
        text = record.text if record.file is None else str(data, "utf-8", "surrogateescape")
        source = record.ident or f"{record.type}\n{text}"
        key = self._made_key(record, source, keys_known)
        same = texts_of.get((self._into[record.scope], key))
        if record.ident and same and data not in same:  # one id, two texts
            key = self._made_key(record, f"{source}\n{record.text}", keys_known)
        return key

    def _made_key(self, record: ImportRecord, source: str, keys_known: dict[str, str]) -> str:
        mark = mark_of(self._program, source)
        if mark not in keys_known:
            name = record.name or (
                _name_of_file(record.file) if record.file is not None else record.text[:200]
            )
            keys_known[mark] = made_key(self._program, name, source)
        return keys_known[mark]

    def _outcome(
        self,
        memories: MemoryStore,
        record: ImportRecord,
        key: str,
        data: bytes,
        entry: Entry,
        body: Callable[[str, Value], bytes | None],
    ) -> tuple[What, tuple[str, ...]]:
        """Return the plan for a text under this key, and the dots that it replaces."""
        outcome: What
        before = not self._replace and self._before.has(memories.scope, key, data)
        if not entry:
            return ("changed_here" if before else "added"), ()
        view = memories.view(key, entry, body)
        candidate = record.candidate or self._foreign
        digest = sha256(data).hexdigest()
        outcome = "unchanged" if candidate or memories.has_own(entry, digest) else "still_others"
        if view.data == data and not view.forgotten:
            return outcome, ()
        if view.forgotten and (candidate or not self._replace):
            return "still_forgotten", ()
        if not self._replace and any(value.body == digest for value in entry.values()):
            return outcome, ()
        if before:
            return "changed_here", ()
        if view.own is candidate:  # `own` is false for a key with only texts of others
            return "kept_beside", ()
        if self._replace and view.dots:
            return "replaced", view.dots
        if (
            view.data is not None
            and len(entry) == 1
            and (origin := self._origin(record))
            and self._before.has(memories.scope, key, view.data, origin)
        ):
            return "renewed", view.dots
        return "kept_beside", ()

    def _origin(self, record: ImportRecord) -> str:
        """Return the identity by which a later text under a key is a change of an earlier one; "" if there is none."""
        if record.unique:
            return self._program
        return f"{self._program}:{self._place}" if self._place else ""

    def _news(self, timeline: Timeline, events: list[Event], problems: list[str]) -> list[Event]:
        """Return the events to import: one per conversation, however long it grew, and in the clear none with a secret. Appends
        to `problems`."""
        conversations = {conversation_of(event) for event in events} - {None}
        here = timeline.events() if conversations else []
        conversations &= {conversation_of(event) for event in here}
        # Earlier versions imported a conversation without a date and an id with the date that its file had then, and without an id.
        again = {foreign_id(event) for event in events}
        nameless = Counter(
            _undated(event)
            for event in here
            if event["type"] == "conversation"
            and event.get("conversation") == ""
            and foreign_id(event) not in again
        )
        news = []
        for event in events:
            conversation = conversation_of(event)
            if conversation in conversations:
                continue
            if conversation is not None and conversation[1].startswith(MADE_CONVERSATION):
                line = _undated(event)
                if nameless[line]:
                    nameless[line] -= 1
                    continue
            if conversation is not None:
                conversations.add(conversation)
            try:
                self._check_secrets(f"an event of {shown(str(event['ts']))[:10]}", event_line(event))
            except FormatError as error:
                problems.append(f"an event of {shown(str(event['ts']))[:10]} was left out: {error}")
            else:
                news.append(event)
        return news

    def _check_secrets(self, label: str, data: bytes) -> None:
        """Record likely secrets. Raises FormatError in a public vault, whose next sync they would stop."""
        secrets = find_secrets(str(data, "utf-8"))
        if not secrets:
            return
        finding_text = f"{secrets[0].kind} in line {secrets[0].line}"
        if self._public:
            raise FormatError(
                f"it looks like it holds a secret ({finding_text}), and this memory is published in the clear"
            )
        self._secrets.append(f"{label}: {finding_text}")

    # -- writing -----------------------------------------------------------------------------------------------

    def _write(self, change: Writing, choices: list[_Choice], problems: list[str]) -> list[_Choice]:
        """Write these; returns the choices that were written."""
        done: list[_Choice] = []
        new = (one for one in choices if one.plan.what == "added")
        change.seal_ahead((self._name(one.plan), one.data) for one in new)
        for choice in choices:
            plan, of = choice.plan, FOREIGN if choice.plan.candidate else ""
            name = self._name(plan)
            try:
                if plan.what in _WRITTEN and not of:
                    memories = self._memories.in_scope(plan.scope)
                    replaces = plan.what != "kept_beside"
                    check_incoming(memories, change, plan.key, choice.data, replaces=replaces)
                if plan.what == "kept_beside":
                    change.write_alternative(name, choice.data, of=of or None)
                elif plan.what in _WRITTEN:
                    change.put(name, choice.data, choice.dots, of=of)
            except (LimitError, UsageError) as error:
                problems.append(f"{plan.where} was left out: {error}")
                continue
            done.append(choice)
        return done

    def _with_room(
        self, choices: list[_Choice], entry_of: Callable[[str], Entry], problems: list[str]
    ) -> list[_Choice]:
        """Return those that `_write` would have room for: a key holds a few alternatives of one device. Appends to `problems`."""
        fits: list[_Choice] = []
        entries: dict[str, Entry] = {}
        last = self._memories.replica.store.frame.ctx.get(self._memories.replica.device.id, 0)
        for number, choice in enumerate(choices, last + 1):
            if choice.plan.what in _WRITTEN:
                name = self._name(choice.plan)
                entry = entries.get(name) or entry_of(name)
                value = Value(b=(), body=sha256(choice.data).hexdigest(), h=ZERO, kind=LIVE)
                try:
                    new = dot(self._memories.replica.device.id, number)
                    entries[name] = write(entry, choice.dots, new, value)
                except LimitError as error:
                    problems.append(f"{choice.plan.where} was left out: {error}")
                    continue
            fits.append(choice)
        return fits

    def _name(self, plan: Planned) -> str:
        return self._memories.in_scope(plan.scope).name(plan.key)

    def _report(
        self,
        contents: ReaderResult,
        choices: list[_Choice],
        events: int,
        problems: list[str],
        *,
        dry_run: bool,
        messages: int = 0,
    ) -> Taken:
        plans = [choice.plan for choice in choices]
        written = [plan for plan in plans if plan.what in _WRITTEN]
        candidates = sum(plan.candidate for plan in written)
        scopes = Counter(plan.scope for plan in written)
        return Taken(
            program=self._program,
            dry_run=dry_run,
            counts=dict(sorted(Counter(plan.what for plan in plans).items())),
            own=len(written) - candidates,
            candidates=candidates,
            events=events,
            messages=messages,
            skipped=dict(sorted(contents.skipped.items())),
            problems=tuple(problems),
            notes=tuple(contents.notes),
            secrets=tuple(self._secrets),
            scopes=dict(sorted(scopes.items())) if len(contents.scopes) > 1 else {},
            records=tuple(plans) if dry_run else (),
            exit_code=exit_code_of(problems),
        )


def _name_of_file(data: bytes) -> str:
    try:
        file = parse_memory(data)
    except FormatError:
        return ""
    return file.name or name_of(file.body)
