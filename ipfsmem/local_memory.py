"""`LocalMemory`: everything that people, programs and models do with a memory on this device.

Synchronous, and never touches a network. It holds no logic of formats, keys or joins: it puts the rooms below together
and speaks one language for Python, the command line and all other faces. Making, opening and syncing is `Memory`.
"""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Self

import msgspec

from ipfsmem.bundle.blob import read_blob, write_blob
from ipfsmem.bundle.keys import check_key, check_scope
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.bundle.program_events import check_kind
from ipfsmem.causal.cards import is_forgotten
from ipfsmem.causal.clock import hlc_ms, put_right
from ipfsmem.causal.entries import SegmentName, entry_place, memory_name, segment_name
from ipfsmem.causal.value import Entry
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.device.events import Timeline, events_of
from ipfsmem.device.replica import Replica
from ipfsmem.device.scopes import known_scopes, live_scopes, own_scopes
from ipfsmem.device.state import Frame
from ipfsmem.device.tables import meta
from ipfsmem.errors import ChangedError, NotFoundError, StorageError, UsageError
from ipfsmem.files.exporting import (
    Everything,
    LeftOut,
    everything,
    export_folder,
    export_plain_car,
    export_zip,
    tree_of,
    whole,
)
from ipfsmem.files.working_copies import WorkingCopies
from ipfsmem.memories.after_revoke import late_values
from ipfsmem.memories.bundle_tree import Part
from ipfsmem.memories.import_scopes import assign
from ipfsmem.memories.importing import Imported, Strategy, import_files
from ipfsmem.memories.memories import LONG, Listed, Memories, NotHereError
from ipfsmem.memories.purge import erase
from ipfsmem.memories.readings import Reading, Seen, Unsettled, place_of
from ipfsmem.memories.scopes import Scopes
from ipfsmem.memories.stacks import Stack
from ipfsmem.memories.undo import Undone, undo
from ipfsmem.mode import Mode
from ipfsmem.parts.folders import MemoryFolders
from ipfsmem.parts.scopes import MemoryScopes
from ipfsmem.provider.opening import Providers
from ipfsmem.published.history import (
    Change,
    DiffLine,
    LogEntry,
    changes,
    export_car,
    find_root,
    log,
    open_past,
)
from ipfsmem.published.versions import History, find_text, history, read_past
from ipfsmem.results import Exported, Late, ScopeCounts, Status
from ipfsmem.ring.authority import RingMember
from ipfsmem.sync.collection import superseded
from ipfsmem.sync.forwarding import waiting, words_of_move
from ipfsmem.sync.lost_objects import miss
from ipfsmem.sync.names import oldest_put, what_is_forgotten
from ipfsmem.sync.presence import Presence, described
from ipfsmem.sync.removals import Removal, removals, removed_by_admins
from ipfsmem.sync.revoke_notices import words_of_revoked
from ipfsmem.vault.doctor import STATE_DAMAGED, Finding, examine, passphrase_protected

#: So many roots that could go are worth a word in `status`.
TELL_SUPERSEDED = 50

list_ = list  # `LocalMemory.list` hides the builtin inside the class


def _from_below(
    found: Reading,
    data: bytes | Callable[[bytes | None], bytes],
    seen: Seen | None,
    if_match: str | None,
    scope: str,
) -> tuple[bytes, str]:
    """The whole text of a write to `scope` where its reader is shown `found`, which stands below it, and what must stand in
    `scope` then: nothing. Raises ChangedError when that is not what was seen, UsageError for parts of others' text.
    """
    matches = (
        found.seen.startswith(seen.lower()) if isinstance(seen, str) else seen in (None, found, found.token)
    )
    if if_match is not None:
        matches = matches and bool(if_match) and found.sha256.startswith(if_match.lower())
    if not matches:
        raise ChangedError(f"{found.key} is not what was read: it shows {place_of(found.scope, found.key)}")
    if isinstance(data, bytes):
        return data, ""
    if not found.own:
        raise UsageError(
            f"{place_of(found.scope, found.key)} is others' word, so no part of it goes into the scope {scope}",
            hint=f"Make it your own first: ipfsmem promote {found.key} --scope {found.scope}",
        )
    return data(found.data), ""


class LocalMemory:
    """One agent's memory on this device, open. Made and opened by `Memory`."""

    def __init__(self, namespace: str, replica: Replica) -> None:
        """Use `create` or `load`."""
        self.namespace = namespace
        self.replica = replica
        #: The 24 recovery words of a vault made just now; shown once, kept nowhere.
        self.recovery_words: list[str] | None = None
        #: Where it is published: open providers, and of the others why not.
        self._places = Providers()
        self._memories = Memories(replica)
        self._timeline = Timeline(replica)
        self._scopes = Scopes(replica)
        #: The scopes of this vault.
        self.scopes = MemoryScopes(
            replica, self._scopes, scan=self.scan, render=self.render, changed=self._changed
        )
        #: The plain files of modes `local` and `ipfs`.
        self._files: WorkingCopies | None = None
        if replica.folder is not None and self.mode.plain_files:
            self._files = WorkingCopies(replica, self._memories, self._timeline)
        #: The working copies of this memory on this device.
        self.folders = MemoryFolders(self.mode, lambda: self._files, changed=self._changed)
        #: Whether this is one scope of a memory that somebody else opened and closes.
        self._borrowed = False

    def scope(self, token: str) -> Self:
        """The memories and events of one scope (format section 5.1; "" is the nameless one), with the same methods.

        It is made by its first write. What turned out to be this scope (`into` on its card) is read below it, and where it
        turned out to be another itself, what is written here goes there; each answer says in which scope it stands. It lives
        as long as this memory, and closing it closes nothing. What is about the whole vault (sync, members, providers) is
        this memory's. Raises KeyNameError.
        """
        part = copy.copy(self)
        part._memories = self._memories.in_scope(token)
        part._timeline = Timeline(self.replica, token)
        part._borrowed = True
        return part

    def stack(self, *tokens: str) -> Stack:
        """Several scopes read as one: these, the first before the next, each with what turned out to be it, and then what
        is everybody's (the nameless scope). Each answer says in which it stands; nothing is written through it. Raises
        KeyNameError.
        """
        self._look()
        named = [
            scope for token in tokens for scope in (self._scopes.stack(check_scope(token)) if token else [])
        ]
        return Stack([self._memories.in_scope(scope) for scope in (*named, "")])

    def _own_stack(self) -> Stack:
        """What is read for this scope."""
        return Stack([self._memories, *self._below()])

    def _below(self) -> list_[Memories]:
        """The scopes that turned out to be this one."""
        scope = self._memories.scope
        return [self._memories.in_scope(below) for below in self._scopes.stack(scope)[1:]] if scope else []

    def _target(self) -> Self:
        """Where a new write meant for this scope goes."""
        scope = self._memories.scope
        there = self._scopes.target(scope) if scope else ""
        return self if there == scope else self.scope(there)

    def close(self) -> None:
        """Let go of files and secrets."""
        if self._borrowed:
            return
        if self._files is not None:
            self._files.close()
            self._files = None
        self.replica.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- facts -----------------------------------------------------------------------------------------------

    @property
    def mode(self) -> Mode:
        """`none`, `local`, `ipfs` or `encrypted-ipfs`, and what that means."""
        return self.replica.config.mode

    @property
    def device(self) -> str:
        """The id under which this device writes."""
        return self.replica.device.id

    def status(self) -> Status:
        """Counts and state, local."""
        self._look()
        counts = self.counts()
        root = self.replica.db.get_meta(meta.ROOT)
        places = self._places
        # What could not be opened may keep names or a list: then nothing is said of what is forgotten.
        told = self.mode.published and not places.not_opened
        forgotten = what_is_forgotten(self.replica, places.open) if told else ""
        return Status(
            namespace=self.namespace,
            mode=self.mode,
            folder=str(self.replica.folder) if self.replica.folder else None,
            device=self.device,
            memories=sum(one.memories for one in counts),
            events=sum(one.events for one in counts),
            conflicts=sum(one.conflicts for one in counts),
            not_fetched=sum(one.not_fetched for one in counts),
            unpublished=self.mode.published and self._unpublished(),
            root=root.decode() if root else None,
            providers=list_(self.replica.config.providers) or [provider.name for provider in places.open],
            vault=self.replica.config.vault,
            members=[f"{p.id} {p.role} {p.label}" for p in self.members()],
            notices=[
                *(self._files.notices() if self._files is not None else []),
                *self._late_notices(),
                *self._revoked_notices(),
                *(one.error().in_a_line() for one in places.not_opened),
                *([forgotten] if forgotten else []),
                *([words_of_move(self.replica, move)] if (move := waiting(self.replica)) is not None else []),
                *self._superseded(),
            ],
            files=self.folders.list(),
            names_put=oldest_put(self.replica, places.open),
            presence=self._presence(),
            scopes=counts if len(counts) > 1 else [],
            removed=self.removed(),
        )

    def counts(self) -> list_[ScopeCounts]:
        """How much is in each scope that is not forgotten, the nameless one first. What is left under conflicts in a forgotten
        one is counted with the conflicts of the nameless one, where its forget stands.
        """
        with self.replica.reading():
            store = self.replica.store
            scopes = ["", *live_scopes(store)]
            segments: dict[str, list_[tuple[SegmentName, Entry]]] = {}
            for name in store.names():
                if (segment := segment_name(name)) is not None:
                    segments.setdefault(segment.scope, []).append((segment, store.entry(name)))
            events = {scope: len(events_of(store, segments.get(scope, []))) for scope in scopes}
        memories = self._memories.counts_everywhere()
        conflicts = Counter(
            scope if scope in events else ""
            for place in self._memories.conflicts_everywhere()
            for scope in (place.rpartition("/")[0],)
        )
        return [
            ScopeCounts(
                scope=scope,
                memories=memories.get(scope, (0, 0))[0],
                events=events[scope],
                conflicts=conflicts[scope],
                not_fetched=memories.get(scope, (0, 0))[1],
            )
            for scope in scopes
        ]

    def _presence(self) -> list_[Presence]:
        if not self.mode.published:
            return []
        return [
            described(self.replica, provider)
            for provider in self._places.open
            if provider.capabilities.put or provider.capabilities.pin
        ]

    def _superseded(self) -> list_[str]:
        found = superseded(self.replica) if self.mode.published else 0
        if found < TELL_SUPERSEDED:
            return []
        return [
            f"{found:,} old versions take up room here and at the provider: let go of them with ipfsmem gc, or once a day by themselves: ipfsmem gc --daily"
        ]

    def is_revoked(self) -> bool:
        """Whether this device was revoked, as far as it knows."""
        ring = self.replica.ring
        return ring is not None and ring.view.is_out(self.device)

    def _let_go_when_revoked(self) -> None:
        """A revoked device's folders are nobody's working copies any more; their files stay (format section 6)."""
        if self._files is not None and self.is_revoked():
            for facts in self.folders.list():
                with contextlib.suppress(StorageError):  # it stays attached, and `status` says why
                    self._files.detach(facts.path)

    def _revoked_notices(self) -> list_[str]:
        """That this device was removed, else whom words or another wallet removed: that can be undone, and says it until a
        person has looked at it."""
        return [words_of_revoked(self.replica)] if self.is_revoked() else removed_by_admins(self.replica.ring)

    def _late_notices(self) -> list_[str]:
        late = self.late_values()
        if not late:
            return []
        members = ", ".join(sorted({value.member for value in late}))
        return [
            f"{len(late)} value{'s' if len(late) > 1 else ''} of revoked {members} came after the revoke: look at "
            "them with ipfsmem conflicts"
        ]

    def late_values(self) -> list_[Late]:
        """What revoked members wrote beyond what was accepted when they were revoked, to be looked at (format 4).

        It stays until somebody writes over it or forgets it.
        """
        ring = self.replica.ring
        if ring is None or not ring.view.cutoffs:
            return []
        with self.replica.reading():
            found = late_values(self.replica.store, ring.view.cutoffs)
        return [Late(place=place, member=member, dot=dot) for place, member, dot in found]

    def _unpublished(self) -> bool:
        with self.replica.reading():  # another process may have written
            frame = self.replica.store.frame
        mine = frame.seen.get(self.device)
        return (
            frame.ctx.get(self.device, 0) > (mine.n if mine else 0)
            or self.replica.db.get_meta(meta.ROOT) is None
            or self.replica.db.get_meta(meta.SENDING) == b"1"
        )

    def removed(self) -> list_[Removal]:
        """Who is out, and by whose word: those whom a root had let in first."""
        return removals(self.replica.ring)

    def members(self) -> list_[RingMember]:
        """Who belongs to this memory, as its key ring says. All ids of a device go by the label of its enrolment."""
        ring = self.replica.ring
        if ring is None:
            return []
        known = ring.view.members
        return [
            msgspec.structs.replace(one, label=known[one.family].label) if one.family in known else one
            for one in known.values()
        ]

    # -- memories --------------------------------------------------------------------------------------------

    def write(
        self,
        key: str,
        body: str | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        type: str | None = None,
        tags: Iterable[str] | None = None,
        fields: Mapping[str, str] | None = None,
        seen: Seen | None = None,
        if_match: str | None = None,
    ) -> Reading:
        """Write a memory, durable when this returns, and what is shown then. `updated` is set to today.

        `seen` is what the caller was shown (a reading, its token, or the token's hash): that is replaced, and what is
        not given comes from it. Without it both are what is shown now. `if_match` refuses (ChangedError) when the text
        shown now does not have this SHA-256, "" when there must be none. Raises what `Memories.write` raises.
        """

        def made(shown: bytes | None) -> bytes:
            if shown is None and body is None:
                self._refuse_parts_of_others(key)
            return self._changed_text(shown, body, {**named, **(fields or {})})

        named = {
            "name": name,
            "description": description,
            "type": type,
            "tags": None if tags is None else "[" + ", ".join(tags) + "]" if list(tags) else "",
        }
        return self._written(key, made, seen, if_match, long=body is None or len(body) > LONG)

    def _refuse_parts_of_others(self, key: str) -> None:
        """A text without what its writer read would come in the way of others' text that is shown."""
        view = self._memories.view(key)
        if view.data is not None and not view.own:
            raise UsageError(
                f"{key} is others' word, so no part of it goes into a text of yours: give the body too, or promote it first"
            )

    def _changed_text(self, shown: bytes | None, body: str | None, given: Mapping[str, str | None]) -> bytes:
        """The text that was shown with what is given put in; what is not given stays."""
        old = parse_memory(shown) if shown is not None else MemoryFile()
        changes = {field: value for field, value in given.items() if value is not None}
        made = old.with_fields(changes, body if body is not None else old.body)
        if made == old and shown is not None:
            return shown
        today = datetime.fromtimestamp(self.replica.world.now() / 1000, UTC).date().isoformat()
        return render_memory(
            made.with_fields({"created": made.created or today, "updated": changes.get("updated", today)})
        )

    def write_text(
        self, key: str, data: bytes, *, seen: Seen | None = None, if_match: str | None = None
    ) -> Reading:
        """Write the whole file, header and all, exactly these bytes."""
        return self._written(key, data, seen, if_match)

    def _written(
        self,
        key: str,
        data: bytes | Callable[[bytes | None], bytes],
        seen: Seen | None,
        if_match: str | None,
        *,
        long: bool = False,
    ) -> Reading:
        there = self._target()
        if if_match is not None or isinstance(seen, str):
            # An edit of the file that was not taken in yet is compared too. Without it, it was seen by nobody: it stays
            # out of the way until the write is done, and then is merged or kept beside.
            there._take(key)
        found = there._shown_below(key, seen)
        if found is not None:
            data, if_match = _from_below(found, data, seen, if_match, there._memories.scope)
            seen = None
        written = there._memories.write(key, data, seen=seen, if_match=if_match, long=long)
        there._show(key)
        return written

    def _shown_below(self, key: str, seen: Seen | None) -> Reading | None:
        """The text that a reader of this scope is shown under a key of which nothing stands here, from below it."""
        below = self._below()
        if isinstance(seen, Reading) and seen.scope != self._memories.scope:
            return seen if seen.scope in [part.scope for part in below] else None
        with self.replica.reading():
            if not below or isinstance(seen, Unsettled) or self._memories.entry(check_key(key)):
                return None
        return Stack(below).read(key)

    def read(self, key: str, *, root: str | None = None) -> Reading | None:
        """One memory as it is shown, None when there is none; its token goes to the write that has seen it.

        `root`: as a published root shows it that is kept here (its CID, or the beginning); NotFoundError when it does not.
        """
        if root is not None:
            return read_past(self._memories, key, root)
        self._take(key)
        with self._asks_for_what_is_not_here():
            return self._own_stack().read(key)

    def read_conflict(self, key: str, file: str) -> Reading:
        """A conflict copy of a memory."""
        self._take(key)
        with self._asks_for_what_is_not_here():
            return self._memories.read_conflict(key, file)

    @contextlib.contextmanager
    def _asks_for_what_is_not_here(self) -> Iterator[None]:
        """A text that turns out not to be here, since the disk lost it perhaps, is asked for by the next sync."""
        try:
            yield
        except NotHereError:
            with contextlib.suppress(StorageError), self.replica.transaction():
                miss(self.replica.db)
            raise

    def list(self) -> list_[Listed]:
        """All memories, ordered by key, headers only."""
        self._look()
        return self._own_stack().list()

    def index(self) -> str:
        """The text of MEMORY.md."""
        self._look()
        return self._memories.index()

    def forget(
        self, key: str, *, reason: str = "", seen: Seen | None = None, if_match: str | None = None
    ) -> bool:
        """Forget a memory on every device, concurrent edits included, and note it. False when there is none.

        With `seen` only what the caller was shown goes; other texts stay behind the forget, under conflicts.
        """
        self._take(key)
        below = self._below()
        if isinstance(seen, Reading) and seen.scope in [part.scope for part in below]:
            return self.scope(seen.scope).forget(key, reason=reason, seen=seen, if_match=if_match)
        lower = [self.scope(part.scope) for part in below] if seen is None and if_match is None else []
        if not self._memories.forget(key, seen=seen, if_match=if_match):
            return sum(part.forget(key, reason=reason) for part in lower) > 0
        for part in lower:
            part.forget(key, reason=reason)
        if self._files is not None:
            self._files.forget(key, self._memories.scope)
        self._changed()
        # Nothing is noted in a scope that is forgotten, where texts that others wrote meanwhile may still go.
        with self.replica.reading():
            where = {"scope": self._memories.scope} if self._memories.forgotten() else {}
        # In the scope in which it stood, wherever new events of that one go.
        timeline = self.scope("")._timeline if where else self._timeline
        self._noted(timeline, "forgot", {**where, "key": key, **({"reason": reason} if reason else {})})
        if self.mode.only_here:
            erase(self.replica, self._memories, key)
        return True

    def conflicts(self, *, everywhere: bool = False) -> list_[Unsettled]:
        """Memories with texts that are not shown, by key: what is shown, the copies, and the token for `resolve`.

        `everywhere`: those of all scopes, as `status` counts them; each says its scope.
        """
        self._look()
        return self._memories.all_conflicts() if everywhere else self._memories.conflicts()

    def resolve(self, key: str, data: bytes | None = None, *, seen: Seen) -> Reading | None:
        """Settle a conflict: `data` replaces what `seen` holds, an item of `conflicts` or its token, and nothing else.

        None keeps what was shown: the text, or the forget (then the answer is None). A text that came meanwhile stays.
        Raises ChangedError, NotFoundError.
        """
        self._take(key)
        written = self._memories.resolve(key, data, seen)
        self._show(key)
        return written

    def promote(self, key: str, *, copy: str | None = None) -> Reading:
        """Make a text of others the word of this person, so that folders, contexts and the agents' index show it.

        `copy`: one of those that `conflicts` names; None when there is only one. A person's act: never to be offered to
        a model, by an API token, an adapter or a folder (format section 5.2). Raises NotFoundError, UsageError.
        """
        self._take(key)
        promoted = self._memories.promote(key, copy)
        self._show(key)
        return promoted

    # -- timeline --------------------------------------------------------------------------------------------

    def note(self, kind: str, /, **data: Any) -> dict[str, Any]:
        """Append an event to the timeline, durable when this returns. Raises UsageError for a type of the program's own."""
        check_kind(kind)
        return self._noted(self._target()._timeline, kind, data)

    def _noted(self, timeline: Timeline, kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
        event = timeline.note(kind, data)
        if self._files is not None:
            self._files.show_day(event["ts"][:10], timeline.scope)
        self._changed()
        return event

    def timeline(self, days: tuple[str, str] | None = None) -> list_[dict[str, Any]]:
        """All events of all devices in order; `days` limits to UTC days from the first to the last."""
        self._look()
        return [noted.event for noted in self._own_stack().timeline(days)]

    # -- in and out ------------------------------------------------------------------------------------------

    def _everything(self) -> Everything:
        """What this scope holds."""
        self._look()
        return everything(self._memories)

    def _whole(self) -> tuple[list_[Everything], LeftOut]:
        """All that goes along in a tree: every scope, or the one that was chosen; and what does not."""
        if not self._borrowed:
            self._look()
            return whole(self._memories)
        self._check_scope()
        found = self._everything()
        return [found], found.without_missing()

    def _check_scope(self) -> None:
        """Raises NotFoundError when there is nothing of the chosen scope."""
        scope = self._memories.scope
        if not scope:
            return
        found = self._scopes.get(scope)
        if found is None or found.forgotten:
            raise NotFoundError(
                f"the scope {scope} is forgotten" if found else f"there is no scope {scope}",
                hint=f"Bring it back with: ipfsmem scope restore {scope}"
                if found
                else "List them with: ipfsmem scope list",
            )

    def left_out(self) -> LeftOut:
        """What a blob of this memory cannot carry: conflict copies, what is not on this device, and, unless one scope was
        chosen (`scope`), all scopes but the nameless one.
        """
        return self._left_out_of(self._everything())

    def _left_out_of(self, found: Everything) -> LeftOut:
        left = found.without_copies()
        if self._borrowed:
            return left
        with self.replica.reading():
            return msgspec.structs.replace(left, scopes=tuple(live_scopes(self.replica.store)))

    def export(self, *, partial: bool = False) -> bytes:
        """One scope as a `memory/0.1` blob, which holds no conflict copies: the nameless one, or the one that was chosen. Texts
        of others that nobody promoted go along as theirs, and come in as theirs elsewhere.

        Raises IncompleteError, naming them, when something is left out; `partial` agrees to that (see `left_out`).
        """
        if self._borrowed:
            self._check_scope()
        found = self._everything()
        self._left_out_of(found).refuse(partial)
        return write_blob(found.files, found.events, found.index, found.others())

    def export_car(self, out: BinaryIO, root: str | None = None) -> CID:
        """Write a published root (None: the last one) with all its blocks as a CAR; its CID. Sealed as it was published.

        Raises NotFoundError when nothing was published, or a block of it is not on this device.
        """
        cid = self._published(root)
        with self.replica.reading():
            export_car(self.replica, cid, out)
        return cid

    def export_folder(self, folder: str | Path, *, partial: bool = False) -> Exported:
        """Write everything, or the one scope that was chosen, as plain files to a new or empty folder.

        The nameless scope stands in `memory/`, each other in `scopes/<scope>/memory/`; conflict copies and what stands
        behind a forget go along (format section 1.6). `import_` takes it. Raises StorageError when something is in the
        folder; IncompleteError, before anything is written, when what is not fetched would be left out. `partial` agrees.
        """
        parts, left = self._whole()
        left.refuse(partial)
        return Exported(files=export_folder(Path(folder), tree_of(parts)), left_out=left)

    def export_zip(self, out: BinaryIO, *, partial: bool = False) -> Exported:
        """The same as a zip. Raises IncompleteError, before anything is written."""
        parts, left = self._whole()
        left.refuse(partial)
        return Exported(files=export_zip(out, tree_of(parts)), left_out=left)

    def export_plain_car(self, out: BinaryIO, *, partial: bool = False) -> Exported:
        """The same as a CAR, whose root any IPFS program computes. Raises IncompleteError, before anything is written."""
        parts, left = self._whole()
        left.refuse(partial)
        files = tree_of(parts)
        return Exported(files=len(files), left_out=left, root=str(export_plain_car(out, files)))

    def _published(self, root: str | None) -> CID:
        if root is not None:
            return find_root(self.replica, root)
        known = self.replica.db.get_meta(meta.ROOT)
        if known is None and not self.mode.published:
            raise NotFoundError(
                f"a memory in mode {self.mode} publishes nothing, so there is no published state of it",
                hint="What it is now: ipfsmem list. Copies to compare with later: ipfsmem export --out FILE.",
            )
        if known is None:
            raise NotFoundError("nothing was published yet", hint="Publish with: ipfsmem sync.")
        return parse_cid(known.decode())

    def files(self) -> dict[str, bytes]:
        """Every memory that is shown, by key."""
        self._look()
        with self.replica.reading():
            return {view.key: view.data for _, view in self._memories.views() if view.data is not None}

    def import_(
        self,
        source: bytes | str | Path,
        *,
        strategy: Strategy = "merge",
        prune: bool = False,
        foreign: bool = False,
        maps: Mapping[str, str] | None = None,
        same: bool = False,
    ) -> Imported:
        """Import a `memory/0.1` blob (bytes or JSON text), or a folder, zip, CAR or file (Path). Twice is as good as once.

        `merge`: what is here wins in the view and the incoming text stays beside it; `replace`: incoming supersedes
        what is shown now, and with `prune` memories that it lacks are forgotten. `foreign`: the texts are others' word,
        because they come from another vault or a chat export; they stand where agents look only after `promote`.

        Of several scopes each comes into the one of its name, which must be new here, or into the one that `maps` says
        ({"theirs": "ours"}, "" the nameless one). `same`: it is a backup of this memory, so equal names mean one scope.
        Into a chosen scope only what has no other scopes comes. Raises UsageError for a map that cannot be, before
        anything is written.
        """
        if isinstance(source, Path):
            from ipfsmem.memories.importing import read_path

            parts = read_path(source)
        else:
            parts = {"": Part(read_blob(source.encode() if isinstance(source, str) else source))}
        if same and foreign:
            raise UsageError("a backup of this memory is not foreign: say one of both")
        into = self._assigned(parts, maps or {}, same)
        self.scan()
        result = import_files(
            self._memories, parts, into=into, strategy=strategy, prune=prune, foreign=foreign
        )
        self.render()
        self._changed()
        return result

    def _assigned(self, parts: dict[str, Part], maps: Mapping[str, str], same: bool) -> dict[str, str]:
        """Where each scope of an import goes. Raises what `assign` raises."""
        if self._borrowed:
            if len(parts) > 1 or maps or same:
                raise UsageError(
                    "what has several scopes cannot be put into one"
                    if len(parts) > 1
                    else "into one scope, nothing is left to map",
                    hint="Leave the scope out (--scope, IPFSMEM_SCOPE), and say where each goes: --map THEIRS=OURS (in Python: maps=).",
                )
            maps = {"": self._target()._memories.scope}
        with self.replica.reading():
            known, own = known_scopes(self.replica.store), own_scopes(self.replica)
        forgotten = {scope for scope, card in known.items() if is_forgotten(card)}
        return assign(parts, maps, live=known.keys() - forgotten, own=own, forgotten=forgotten, same=same)

    # -- past ------------------------------------------------------------------------------------------------

    def log(self) -> list_[LogEntry]:
        """The roots that this device knows, newest first."""
        with self.replica.reading():
            return log(self.replica)

    def history(self, key: str) -> History:
        """Every text of a memory that this device can find, now and in the roots that it keeps, the newest first."""
        self._take(key)
        return history(self._memories, key)

    def restore(
        self, root: str | None, key: str, *, text: str | None = None, seen: Seen | None = None
    ) -> Reading:
        """Bring an older text of a memory back: what `root` shows, or the one whose SHA-256 begins with `text`.

        It replaces what `seen` was shown, else what is shown now (or the forget). Raises NotFoundError, UsageError,
        ChangedError.
        """
        self._take(key)
        data, of = find_text(self._memories, key, root, text)
        written = self._memories.restore(key, data, of, seen=seen)
        self._show(key)
        return written

    def undo(self) -> Undone:
        """Undo the last write, forget, resolve, restore or undo that was made on this device through this program.

        Raises NotFoundError when there is none, ChangedError when the memory was changed since.
        """
        done = undo(self._memories)
        self.scope(done.scope)._show(done.key)
        return done

    def diff(self, root_a: str | None = None, root_b: str | None = None) -> list_[DiffLine]:
        """Memories that differ between two states: `root_a` (None: the root published last) and `root_b` (None: now)."""
        with self.replica.transaction():
            before = open_past(self.replica, self._published(root_a)).tree
            if root_b is None:
                after = self.replica.store.checkpoint(folders=self.mode.published)
            else:
                after = open_past(self.replica, find_root(self.replica, root_b)).tree
            lines = []
            for change in changes(before, after):
                name = memory_name(change.name)
                if name is None:
                    continue
                there = self._memories.in_scope(name.scope)
                old = there.whole_view(name.key, change.before).data
                new = there.whole_view(name.key, change.after).data
                if old != new:
                    kind: Change = "added" if old is None else "removed" if new is None else "changed"
                    lines.append(DiffLine(entry_place(change.name), kind, old, new))
            return lines

    def doctor(self) -> list_[Finding]:
        """Look at everything on this device and say what is wrong and what to do."""
        found = examine(self.replica, self._memories, passphrase_protected(self.replica.folder))
        codes = {finding.code for finding in found}
        if codes & {"not-fetched", STATE_DAMAGED}:
            with self.replica.transaction():
                if "not-fetched" in codes:
                    miss(self.replica.db)
                if STATE_DAMAGED in codes:
                    self.replica.db.set_meta(meta.DAMAGED_STATE, b"1")
        return found

    def trust_clock(self) -> int:
        """Date new writes by this machine's clock again, though this device once wrote far in its future; by how many
        milliseconds it went back. What was written keeps its date, and goes before others' until it is written over.

        Raises UsageError when nothing is more than a day ahead: time catches up with that.
        """
        with self.replica.transaction():
            frame = self.replica.store.frame
            right = put_right(frame.hlc, self.replica.world.now())
            if right is None:
                raise UsageError(
                    "this device's writes are dated at most a day ahead of this machine's clock: nothing has to be put right",
                    hint="If the clock is behind, set it.",
                )
            self.replica.store.apply({}, Frame(frame.ctx, frame.seen, right))
        return hlc_ms(frame.hlc) - hlc_ms(right)

    # -- plain files -----------------------------------------------------------------------------------------

    def scan(self) -> None:
        """Take in what people and programs edited in the plain files (modes `local` and `ipfs`).

        Happens by itself at `load`, `sync` and `import_`, before lists when the last look is over a second old, and for
        the files of one memory before it is read, written or forgotten.
        """
        if self._files is not None and self._files.scan():
            self._changed()

    def render(self) -> None:
        """Bring the plain files up to date (modes `local` and `ipfs`). Writes do it for what they changed."""
        if self._files is not None:
            self._files.render()

    def _open_files(self) -> None:
        if self._files is not None:
            self._files.scan()
            self._files.render_if_needed()

    def _look(self) -> None:
        if self._files is not None:
            self._files.look()

    def _take(self, key: str) -> tuple[str, ...] | None:
        """Take in edits of one memory's files; when there were some, the dots that were shown before."""
        return self._files.take(key, self._memories.scope) if self._files is not None else None

    def _show(self, key: str) -> None:
        """After a write: the files of that memory, then whoever waits for changes."""
        if self._files is not None:
            self._files.show(key, self._memories.scope)
        self._changed()

    def _changed(self) -> None:
        """Called after every change that is on disk."""
