"""Runs dreams, automatic clean-ups of the memories of one scope: gathers the input, applies and undoes the proposal.

A dream only proposes changes (`dream/`). A proposal is applied in one transaction: a step is applied whole, and only if every
memory that it is based on is unchanged. Texts of others, memories with conflicts and parts of sessions are never changed.

Memories are removed, not forgotten, so a concurrent text of another device stays. The memory that is kept in place of a duplicate
is written again: if another device concurrently removes that memory in favour of the duplicate, both stay.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterable
from datetime import date, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from ipfsmem.bundle.header_edit import render_over
from ipfsmem.bundle.index_block import INDEX_KEY
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.bundle.session_parts import is_part
from ipfsmem.bundle.timeline import MAX_LINE
from ipfsmem.canonical import encode
from ipfsmem.causal.authorship import author_of_copy
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import memory_name, segment_name
from ipfsmem.causal.value import LIVE
from ipfsmem.causal.view import KeyView
from ipfsmem.device.bulk import no_collection
from ipfsmem.device.dreams import (
    ChangedMemory,
    Dreamt,
    Proposed,
    dreams,
    drop_proposal,
    forget_dream,
    keep_proposal,
    kept_proposal,
    note_dream,
)
from ipfsmem.device.events import Timeline
from ipfsmem.device.last_change import note_irrevocable
from ipfsmem.device.writing import Writing, writing
from ipfsmem.dream.proposal import Note, Proposal, Step
from ipfsmem.dream.tidying import Progress, doubtful, tidy
from ipfsmem.errors import FormatError, IncompleteError, NotFoundError
from ipfsmem.memories.duplicates import pairs_by_meaning
from ipfsmem.memories.memories import MemoryStore, check_body
from ipfsmem.memories.priority import day_of, priority_factors
from ipfsmem.wording import count

#: The author of a proposal that was made without a model.
RULES = "rules"
#: Bytes of an event's line besides its content: its time, type and id.
_EVENT_BYTES = 256
#: The types of the events that record a dream, and its undo.
DREAM, DREAM_UNDONE = "dream", "dream_undone"

_DAY_MS, _EPOCH = 86_400_000, date(1970, 1, 1)
#: Maximum days after the epoch within the calendar.
_MAX_DAYS = (date.max - _EPOCH).days

#: Returns the proposal for some notes.
Dreamer = Callable[[list[Note], Progress], Proposal]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of applying a proposal. `id` is "" if nothing was applied; then no event records it."""

    id: str
    scope: str
    #: Keys with another text, and keys of memories that were removed.
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    #: Reasons of skipped steps: the memories that they are based on changed.
    skipped: tuple[str, ...] = ()
    #: Reasons of steps that wait until a person applies the proposal.
    waiting: tuple[str, ...] = ()
    #: The exit code of the command: 0 if nothing was skipped.
    exit_code: int = 0


class Undoing(msgspec.Struct, frozen=True, kw_only=True):
    """The result of undoing a dream."""

    id: str
    scope: str
    #: Keys that show the same text as before the dream.
    back: tuple[str, ...]
    #: Keys that stay unchanged: those written since, and those whose earlier text is no longer stored.
    changed: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    #: The exit code of the command: 0 if all texts are back.
    exit_code: int = 0


class DreamInput(NamedTuple):
    """The input of a dream: the memories, the write token of each, and the other keys that links may refer to."""

    notes: list[Note]
    seen: dict[str, tuple[str, ...]]
    elsewhere: set[str]


class Dreams:
    """The dreams of one scope of a replica."""

    def __init__(self, memories: MemoryStore) -> None:
        self._memories = memories
        self._replica = memories.replica

    # -- proposing -------------------------------------------------------------------------------------------------

    def propose(
        self,
        dreamer: Dreamer | None = None,
        *,
        by: str = RULES,
        among: Container[str] | None = None,
        progress: Progress = lambda phase: None,
    ) -> Proposed:
        """Run a dream over all memories and store its proposal in place of the last one of this scope. Changes no memory."""
        gathered = self.gathered(among)
        if dreamer is None:
            keys = sorted(gathered.seen)
            pairs = pairs_by_meaning([self._memories], keys, dict.fromkeys(keys, self._memories.scope))
            with no_collection():
                proposal = tidy(
                    gathered.notes,
                    elsewhere=gathered.elsewhere,
                    index_key=INDEX_KEY,
                    meant=pairs,
                    progress=progress,
                )
        else:
            proposal = dreamer(gathered.notes, progress)
        return self.keep(proposal, gathered, by)

    def keep(
        self, proposal: Proposal, gathered: DreamInput, by: str, *, tokens: int = 0, refused: int = 0
    ) -> Proposed:
        """Store a proposal for the gathered memories in place of the last one."""
        keys = {key for step in proposal.steps for key in step.keys}
        proposed = Proposed(
            id=self._replica.environment.random(6).hex(),
            scope=self._memories.scope,
            at=self._replica.environment.now(),
            by=by,
            steps=proposal.steps,
            found=proposal.found,
            looked_at=proposal.looked_at,
            left=proposal.left,
            seen={key: gathered.seen.get(key, ()) for key in sorted(keys)},
            tokens=tokens,
            refused=refused,
        )
        with self._replica.transaction():
            keep_proposal(self._replica, proposed)
        return proposed

    def proposed(self) -> Proposed | None:
        """Return the open proposal of this scope, if any."""
        with self._replica.reading():
            return kept_proposal(self._replica, self._memories.scope)

    def gathered(self, among: Container[str] | None = None) -> DreamInput:
        """Return the input of a dream: the person's own memories without open conflicts. `among`: the scopes whose keys links may refer to,
        for a caller with access to these scopes only; None: all scopes."""
        memories, today = self._memories, self._replica.environment.today()
        fading = memories.fading  # reading this property reads the settings file
        notes: list[Note] = []
        seen: dict[str, tuple[str, ...]] = {}
        with self._replica.reading(), no_collection():
            names = (memory_name(name) for name in self._replica.store.names())
            elsewhere = {
                one.key for one in names if one is not None and (among is None or one.scope in among)
            }
            days = set[int]()
            for entry, view in memories.views():
                days.update(hlc_ms(value.h) // _DAY_MS for value in entry.values())
                if view.data is None or view.dot is None or not _is_settled(view):
                    continue
                with contextlib.suppress(FormatError):
                    file = parse_memory(view.data)
                    if is_part(view.key, file):
                        continue
                    factors = priority_factors(file, hlc_ms(entry[view.dot].h))
                    value, expired = factors.priority(today, fading=fading), factors.expired(today)
                    notes.append(Note(key=view.key, file=file, priority=value, expired=expired))
                    seen[view.key] = view.dots
            if any(note.expired for note in notes):
                notes = self._doubted(notes, days)
            return DreamInput(notes, seen, elsewhere - seen.keys() | self._unread(seen))

    def _doubted(self, notes: list[Note], written: set[int]) -> list[Note]:
        """Return the notes, with an expired one marked doubtful if a long time without writes suggests that the clock is wrong.
        `written`: the days since 1970 on which memories of this scope were written."""
        days = {_EPOCH + timedelta(days=one) for one in written if 0 < one < _MAX_DAYS}
        segment_days = [one.day for one in map(segment_name, self._replica.store.names()) if one is not None]
        days.update(filter(None, map(day_of, [*segment_days, *(note.file.created for note in notes)])))
        today = self._replica.environment.today()
        return [_doubted(note, days, today) if note.expired else note for note in notes]

    def _unread(self, seen: Iterable[str]) -> set[str]:
        """Return the shown keys of this scope that are not in the input: links may refer to them."""
        seen_keys = frozenset(seen)
        return {view.key for _, view in self._memories.views() if view.key not in seen_keys and view.dots}

    # -- applying -----------------------------------------------------------------------------------------------------

    def do(self, proposed: Proposed, *, asked: bool = True) -> Outcome:
        """Apply the steps of a proposal whose memories are unchanged since the dream; one event records it. `asked`: whether a
        person saw the proposal; otherwise the steps that need a person stay proposed.

        Raises NotFoundError for a forgotten scope, LimitError, StorageError; nothing is changed then.
        """
        replica, scope = self._replica, self._memories.scope
        done: list[ChangedMemory] = []
        skipped: list[str] = []
        waiting = tuple(step for step in proposed.steps if step.asks and not asked)
        with writing(replica) as change:
            for step in proposed.steps:
                if step in waiting:
                    continue
                bodies = (
                    self._bodies(change, step) if self._still_holds(change, step, proposed.seen) else None
                )
                if bodies is not None:
                    done += self._do(change, step, proposed.seen, bodies)
                else:
                    skipped.append(step.why)
            if done:
                dreamt = Dreamt(proposed.id, scope, replica.environment.now(), proposed.by, tuple(done))
                Timeline(replica, scope).note_in(
                    change, DREAM, _event_data(dreamt, len(skipped), _cost(proposed))
                )
                note_dream(replica, dreamt)
                note_irrevocable(replica, f"a dream changed {count(len(done), 'memory', 'memories')}")
            if (stored := kept_proposal(replica, scope)) is not None and stored.id == proposed.id:
                drop_proposal(replica, scope)
                if waiting:
                    keep_proposal(replica, msgspec.structs.replace(proposed, steps=waiting))
        return Outcome(
            id=proposed.id if done else "",
            scope=scope,
            written=tuple(_key(one.name) for one in done if one.what == "written"),
            removed=tuple(_key(one.name) for one in done if one.what == "removed"),
            skipped=tuple(skipped),
            waiting=tuple(step.why for step in waiting),
            exit_code=IncompleteError.exit_code if skipped else 0,
        )

    def _still_holds(self, change: Writing, step: Step, seen: dict[str, tuple[str, ...]]) -> bool:
        for key in step.keys:
            view = self._memories.view(key, change.entry(self._memories.name(key)), change.body)
            if set(view.dots) != set(seen.get(key, ())) or not (_is_settled(view) or not view.dots):
                return False
        return True

    def _bodies(self, change: Writing, step: Step) -> dict[str, bytes] | None:
        """Apply a step's changes to the current texts; returns the new texts, None if one would lose a part of a header."""
        bodies = {}
        for one in step.changes:
            if one.text is None:
                continue
            data = self._memories.view(one.key, change.entry(self._memories.name(one.key)), change.body).data
            text = one.text.encode()
            try:
                bodies[one.key] = render_over(data, parse_memory(text)) if data is not None else text
            except FormatError:
                return None
        return bodies

    def _do(
        self, change: Writing, step: Step, seen: dict[str, tuple[str, ...]], bodies: dict[str, bytes]
    ) -> list[ChangedMemory]:
        done = []
        for one in step.changes:
            name, body = self._memories.checked_name(one.key), None
            before = change.entry(name)
            if one.text is None:
                change.remove(name, tuple(before))
            else:
                body = bodies[one.key]
                check_body(one.key, body)
                change.put(name, body, seen[one.key])
            gone = {dot: value for dot, value in before.items() if dot not in change.entry(name)}
            done.append(
                ChangedMemory(name, gone, None if body is None else sha256(body).hexdigest(), step.keys)
            )
        for key in {*step.reads} - {one.key for one in step.changes}:
            self._write_again(change, key, seen[key])
        return done

    def _write_again(self, change: Writing, key: str, seen: tuple[str, ...]) -> None:
        data = self._memories.view(key, change.entry(self._memories.name(key)), change.body).data
        if data is not None:
            change.put(self._memories.name(key), data, seen)

    # -- undoing ---------------------------------------------------------------------------------------------------

    def kept(self) -> list[Dreamt]:
        """Return the dreams of this scope that can be undone on this device, newest first."""
        with self._replica.reading():
            return [one for one in dreams(self._replica) if one.scope == self._memories.scope]

    def undo(self, id: str | None = None) -> Undoing:
        """Restore the texts that a dream replaced, except for memories that were written since; by default of the last dream. One
        event records the undo.

        Raises NotFoundError if this device has no such dream.
        """
        replica, scope = self._replica, self._memories.scope
        back: list[str] = []
        changed: list[str] = []
        lost: list[str] = []
        with writing(replica) as change:
            dreamt = next(
                (one for one in dreams(replica) if one.scope == scope and id in (None, one.id)), None
            )
            if dreamt is None:
                raise NotFoundError(
                    "there is no dream to undo on this device"
                    if id is None
                    else f"there is no dream {id} to undo on this device",
                    hint="List the dreams: ipfsmem dream list. List the revisions of a memory: ipfsmem history KEY.",
                )
            for one in dreamt.done:
                group = changed
                if {value.body for value in change.entry(one.name).values()} == (
                    {one.body} if one.body else set()
                ):
                    group = back if self._put_back(change, one) else lost
                group.append(_key(one.name))
            forget_dream(replica, dreamt.id)
            if back:
                data = {"dream": dreamt.id, "back": len(back), "changed": len(changed), "lost": len(lost)}
                Timeline(replica, scope).note_in(change, DREAM_UNDONE, data)
                note_irrevocable(replica, "a dream was undone")
        return Undoing(
            id=dreamt.id,
            scope=scope,
            back=tuple(back),
            changed=tuple(changed),
            lost=tuple(lost),
            exit_code=IncompleteError.exit_code if changed or lost else 0,
        )

    def _put_back(self, change: Writing, done: ChangedMemory) -> bool:
        """Restore the texts before a change; False if one is no longer stored."""
        store, mine = self._replica.store, self._replica.is_mine
        here = tuple(change.entry(done.name))
        texts = {dot: value for dot, value in done.gone.items() if value.kind == LIVE}
        bodies = {dot: store.body(done.name, value) for dot, value in texts.items()}
        if any(body is None for body in bodies.values()):
            return False
        for dot, value in texts.items():
            of = author_of_copy(dot, value, mine)
            change.put(done.name, bodies[dot] or b"", here, of=of, promoted=not of)
        if not texts:  # the dream made it
            change.remove(done.name, here)
        return True


def _doubted(note: Note, days: set[date], today: date) -> Note:
    ended = day_of(note.file.expires)
    gap = None if ended is None else doubtful(ended, days, today)
    if gap is None:
        return note
    why = f"decide whether that day is complete: nothing was written from {gap.before} to {gap.after}"
    return msgspec.structs.replace(note, expired=False, doubtful=why)


def _is_settled(view: KeyView) -> bool:
    """Return whether one own text is shown, without a conflict or a pending text."""
    return view.own and not (view.conflicts or view.hidden or view.others or view.merged or view.forgotten)


def _event_data(dreamt: Dreamt, skipped: int, cost: dict[str, Any]) -> dict[str, Any]:
    """Return the event's data: for each memory the hash of its new text, and the hashes of the replaced texts by dot. If the line
    is short enough, it also records which memories were changed or used together: after one of them is forgotten, no device
    restores the others."""
    data = {
        "dream": dreamt.id,
        "by": dreamt.by,
        "skipped": skipped,
        **{
            kind: [
                {
                    "key": _key(one.name),
                    **({"text": one.body} if one.body else {}),
                    "replaced": {
                        dot: value.body for dot, value in one.gone.items() if value.body is not None
                    },
                }
                for one in dreamt.done
                if one.what == kind
            ]
            for kind in ("written", "removed")
        },
        **cost,
    }
    together = list(dict.fromkeys(one.together for one in dreamt.done if len(one.together) > 1))
    whole = {**data, "together": [list(keys) for keys in together]}
    return whole if len(encode(whole)) < MAX_LINE - _EVENT_BYTES else data


def _cost(proposed: Proposed) -> dict[str, Any]:
    """Return the cost of the model, None if no model was asked."""
    return {"tokens": proposed.tokens, "refused": proposed.refused} if proposed.by != RULES else {}


def _key(name: str) -> str:
    memory = memory_name(name)
    return memory.key if memory is not None else name
