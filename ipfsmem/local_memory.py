"""`LocalMemory`: everything that people, programs and models do with a memory on this device.

Synchronous, and never touches a network. It holds no logic of formats, keys or joins: it puts the rooms below together
and speaks one language for Python, the command line and all other faces. Making, opening and syncing is `Memory`.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Self

import msgspec

from ipfsmem.bundle.blob import read_blob, write_blob
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.bundle.program_events import check_kind
from ipfsmem.causal.clock import hlc_ms, put_right
from ipfsmem.causal.entries import entry_place, memory_name
from ipfsmem.causal.value import decode_entry
from ipfsmem.config import VaultConfig
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.doctor import Finding, examine, passphrase_protected
from ipfsmem.errors import NotFoundError, StorageError, UsageError
from ipfsmem.opening import VAULT_MODES
from ipfsmem.replica.events import Timeline
from ipfsmem.replica.replica import Replica
from ipfsmem.replica.scopes import live_scopes
from ipfsmem.replica.store import Frame
from ipfsmem.seal.authority import Person
from ipfsmem.storage.exporting import Everything, LeftOut, everything, export_folder
from ipfsmem.storage.forgetting import erase
from ipfsmem.storage.importing import Imported, Strategy, import_files
from ipfsmem.storage.late import late_values
from ipfsmem.storage.memories import Listed, Memories
from ipfsmem.storage.readings import Reading, Seen, Unsettled
from ipfsmem.storage.scopes import Restored, Scope, Scopes
from ipfsmem.storage.undoing import Undone, undo
from ipfsmem.storage.working_copies import PLAIN_MODES, FolderFacts, WorkingCopies
from ipfsmem.sync.collection import superseded
from ipfsmem.sync.forwarding import waiting, words_of_move
from ipfsmem.sync.history import Change, DiffLine, LogEntry, changes, export_car, find_root, log, open_past
from ipfsmem.sync.names import oldest_put, what_is_forgotten
from ipfsmem.sync.presence import Presence, described
from ipfsmem.sync.provider import Provider
from ipfsmem.sync.revoked import words_of_revoked
from ipfsmem.sync.unready import Unready
from ipfsmem.versions import History, find_text, history, read_past

#: So many roots that could go are worth a word in `status`.
TELL_SUPERSEDED = 50

list_ = list  # `LocalMemory.list` hides the builtin inside the class


class Status(msgspec.Struct, frozen=True):
    """What a person asks a memory first."""

    namespace: str
    mode: str
    folder: str | None
    device: str
    memories: int
    events: int
    conflicts: int
    not_fetched: int
    unpublished: bool
    root: str | None
    providers: list_[str]
    vault: VaultConfig | None
    members: list[str]
    #: What a person should know about the plain files: left alone, missing, not there.
    notices: list[str] = []
    #: Where the plain files are.
    files: list_[FolderFacts] = []
    #: When the name record was put that waits longest to be put again (milliseconds); None when none was.
    names_put: int | None = None
    #: What is known of the copy at each provider that something is published at.
    presence: list_[Presence] = []


class ExportedFolder(msgspec.Struct, frozen=True):
    """How many files were written, and what was left out."""

    files: int
    left_out: LeftOut


class Late(msgspec.Struct, frozen=True):
    """Something that a revoked member wrote after what was accepted when it was revoked (format section 4).

    `place` is a memory's key or `timeline/<day>`, `member` an id, `dot` the value.
    """

    place: str
    member: str
    dot: str


class LocalMemory:
    """One agent's memory on this device, open. Made and opened by `Memory`."""

    def __init__(self, namespace: str, replica: Replica) -> None:
        """Use `create` or `load`."""
        self.namespace = namespace
        self.replica = replica
        #: The 24 recovery words of a vault made just now; shown once, kept nowhere.
        self.recovery_words: list[str] | None = None
        self._providers: list_[Provider] = []
        self._memories = Memories(replica)
        self._timeline = Timeline(replica)
        #: The plain files of modes `local` and `ipfs`.
        self._files: WorkingCopies | None = None
        if replica.folder is not None and self.mode in PLAIN_MODES:
            self._files = WorkingCopies(replica, self._memories, self._timeline)
        #: Whether this is one scope of a memory that somebody else opened and closes.
        self._borrowed = False

    def scope(self, token: str) -> Self:
        """The memories and events of one scope (format section 5.1; "" is the nameless one), with the same methods.

        It is made by its first write. It lives as long as this memory, and closing it closes nothing. What is about the
        whole vault (sync, members, providers) is this memory's. Raises KeyNameError.
        """
        part = copy.copy(self)
        part._memories = self._memories.in_scope(token)
        part._timeline = Timeline(self.replica, token)
        part._borrowed = True
        return part

    def scopes(self, *, forgotten: bool = False) -> list_[Scope]:
        """The scopes of this vault by token; with `forgotten` those that are forgotten instead."""
        return Scopes(self.replica).listing(forgotten=forgotten)

    def title_scope(self, token: str, title: str) -> Scope:
        """What people call a scope; its token never changes. Raises NotFoundError, FormatError."""
        made = Scopes(self.replica).change(token, title=title)
        self._changed()
        return made

    def forget_scope(self, token: str, *, reason: str = "") -> int:
        """Forget a scope on every device: its memories, its timeline, its title. How many memories went. Raises
        NotFoundError.
        """
        self.scan()
        gone = Scopes(self.replica).forget(token, reason=reason)
        self.render()
        self._changed()
        return gone

    def restore_scope(self, token: str, root: str | None = None) -> Restored:
        """Make a forgotten scope writable again, with its texts and events as `root` has them, a published root that is kept
        here; without one it starts empty. Raises NotFoundError.
        """
        past = None
        if root is not None:
            with self.replica.reading():
                tree = open_past(self.replica, find_root(self.replica, root)).tree
                past = [(name, decode_entry(name, text)) for name, text in tree.items()]
        back = Scopes(self.replica).restore(token, past)
        self.render()
        self._changed()
        return back

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
    def mode(self) -> str:
        """`none`, `local`, `ipfs` or `encrypted-ipfs`."""
        return self.replica.config.mode

    @property
    def device(self) -> str:
        """The id under which this device writes."""
        return self.replica.device.id

    def status(self) -> Status:
        """Counts and state, local."""
        self._look()
        shown, not_fetched = self._memories.counts(everywhere=True)
        root = self.replica.db.get_meta("root")
        forgotten = what_is_forgotten(self.replica, self._providers) if self.mode in VAULT_MODES else ""
        return Status(
            self.namespace,
            self.mode,
            str(self.replica.folder) if self.replica.folder else None,
            self.device,
            shown,
            sum(len(events) for events in self._all_events()),
            len(self._memories.conflicts_everywhere()),
            not_fetched,
            self.mode in VAULT_MODES and self._unpublished(),
            root.decode() if root else None,
            list_(self.replica.config.providers) or [provider.name for provider in self._providers],
            self.replica.config.vault,
            [f"{p.id} {p.role} {p.label}" for p in self.members()],
            [
                *(self._files.notices() if self._files is not None else []),
                *self._late_notices(),
                *self._revoked_notices(),
                *([forgotten] if forgotten else []),
                *([words_of_move(self.replica, move)] if (move := waiting(self.replica)) is not None else []),
                *self._superseded(),
            ],
            self.folders(),
            oldest_put(self.replica, self._providers),
            self._presence(),
        )

    def _presence(self) -> list_[Presence]:
        if self.mode not in VAULT_MODES:
            return []
        return [
            described(self.replica, provider)
            for provider in self._providers
            if not isinstance(provider, Unready) and (provider.capabilities.put or provider.capabilities.pin)
        ]

    def _all_events(self) -> Iterator[list_[dict[str, Any]]]:
        with self.replica.reading():
            scopes = ["", *live_scopes(self.replica.store)]
        return (Timeline(self.replica, scope).events() for scope in scopes)

    def _superseded(self) -> list_[str]:
        found = superseded(self.replica) if self.mode in VAULT_MODES else 0
        if found < TELL_SUPERSEDED:
            return []
        return [
            f"{found:,} superseded roots take up room here and at the provider: let go of them with ipfsmem gc, or once a day by themselves: ipfsmem gc --daily"
        ]

    def is_revoked(self) -> bool:
        """Whether this device was revoked, as far as it knows."""
        ring = self.replica.ring
        return ring is not None and ring.view.is_out(self.device)

    def _let_go_when_revoked(self) -> None:
        """A revoked device's folders are nobody's working copies any more; their files stay (format section 6)."""
        if self._files is not None and self.is_revoked():
            for facts in self.folders():
                with contextlib.suppress(StorageError):  # it stays attached, and `status` says why
                    self._files.detach(facts.path)

    def _revoked_notices(self) -> list_[str]:
        return [words_of_revoked(self.replica)] if self.is_revoked() else []

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
            return [Late(*found) for found in late_values(self.replica.store, ring.view.cutoffs)]

    def _unpublished(self) -> bool:
        with self.replica.reading():  # another process may have written
            frame = self.replica.store.frame
        mine = frame.seen.get(self.device)
        return (
            frame.ctx.get(self.device, 0) > (mine.n if mine else 0)
            or self.replica.db.get_meta("root") is None
            or self.replica.db.get_meta("sending") == b"1"
        )

    def members(self) -> list_[Person]:
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
            return self._changed_text(shown, body, {**named, **(fields or {})})

        named = {
            "name": name,
            "description": description,
            "type": type,
            "tags": None if tags is None else "[" + ", ".join(tags) + "]" if list(tags) else "",
        }
        return self._written(key, made, seen, if_match)

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
    ) -> Reading:
        if if_match is not None or isinstance(seen, str):
            # An edit of the file that was not taken in yet is compared too. Without it, it was seen by nobody: it stays
            # out of the way until the write is done, and then is merged or kept beside.
            self._take(key)
        written = self._memories.write(key, data, seen=seen, if_match=if_match)
        self._show(key)
        return written

    def read(self, key: str, *, root: str | None = None) -> Reading | None:
        """One memory as it is shown, None when there is none; its token goes to the write that has seen it.

        `root`: as a published root shows it that is kept here (its CID, or the beginning); NotFoundError when it does not.
        """
        if root is not None:
            return read_past(self._memories, key, root)
        self._take(key)
        return self._memories.read(key)

    def read_conflict(self, key: str, file: str) -> Reading:
        """A conflict copy of a memory."""
        self._take(key)
        return self._memories.read_conflict(key, file)

    def list(self) -> list_[Listed]:
        """All memories, ordered by key, headers only."""
        self._look()
        return self._memories.listing()

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
        if not self._memories.forget(key, seen=seen, if_match=if_match):
            return False
        if self._files is not None:
            self._files.forget(key, self._memories.scope)
        self._changed()
        # Nothing is noted in a scope that is forgotten, where texts that others wrote meanwhile may still go.
        with self.replica.reading():
            where = {"scope": self._memories.scope} if self._memories.forgotten() else {}
        noted = self.scope("") if where else self
        noted.note("forgot", **where, key=key, **({"reason": reason} if reason else {}))
        if self.mode == "local":
            erase(self.replica, self._memories, key)
        return True

    def conflicts(self) -> list_[Unsettled]:
        """Memories with texts that are not shown, by key: what is shown, the copies, and the token for `resolve`."""
        self._look()
        return self._memories.conflicts()

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
        event = self._timeline.note(kind, data)
        if self._files is not None:
            self._files.show_day(event["ts"][:10], self._timeline.scope)
        self._changed()
        return event

    def timeline(self, days: tuple[str, str] | None = None) -> list_[dict[str, Any]]:
        """All events of all devices in order; `days` limits to UTC days from the first to the last."""
        self._look()
        return self._timeline.events(days)

    # -- in and out ------------------------------------------------------------------------------------------

    def _everything(self) -> Everything:
        self._look()
        return everything(self._memories, self._timeline)

    def left_out(self) -> LeftOut:
        """What a blob of this memory cannot carry: conflict copies, and what is not on this device."""
        return self._everything().without_copies()

    def export(self, *, partial: bool = False) -> bytes:
        """The whole memory as a `memory/0.1` blob, which holds no conflict copies. Texts of others that nobody promoted go
        along as theirs, and come in as theirs elsewhere.

        Raises IncompleteError, naming them, when something is left out; `partial` agrees to that (see `left_out`).
        """
        found = self._everything()
        found.without_copies().refuse(partial)
        return write_blob(found.files, found.events, self.index(), found.others())

    def export_car(self, out: BinaryIO, root: str | None = None) -> CID:
        """Write a published root (None: the last one) with all its blocks as a CAR; its CID. Sealed as it was published.

        Raises NotFoundError when nothing was published, or a block of it is not on this device.
        """
        cid = self._published(root)
        with self.replica.reading():
            export_car(self.replica, cid, out)
        return cid

    def export_folder(self, folder: str | Path, *, partial: bool = False) -> ExportedFolder:
        """Write everything as plain files to a new or empty folder, conflict copies too.

        Raises StorageError when something is in the folder; IncompleteError, before anything is written, when texts
        that are not fetched or stand behind a forget would be left out. `partial` agrees to that.
        """
        found = self._everything()
        left = found.without_hidden()
        left.refuse(partial)
        return ExportedFolder(export_folder(Path(folder), found.texts(), found.events, self.index()), left)

    def _published(self, root: str | None) -> CID:
        if root is not None:
            return find_root(self.replica, root)
        known = self.replica.db.get_meta("root")
        if known is None and self.mode not in VAULT_MODES:
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
    ) -> Imported:
        """Import a `memory/0.1` blob (bytes or JSON text) or a folder or file (Path). Twice is as good as once.

        `merge`: what is here wins in the view and the incoming text stays beside it; `replace`: incoming supersedes
        what is shown now, and with `prune` memories that it lacks are forgotten. `foreign`: the texts are others' word,
        because they come from another vault or a chat export; they stand where agents look only after `promote`.
        """
        if isinstance(source, Path):
            from ipfsmem.storage.importing import read_path

            blob = read_path(source)
        else:
            blob = read_blob(source.encode() if isinstance(source, str) else source)
        self.scan()
        result = import_files(
            self._memories, self._timeline, blob, strategy=strategy, prune=prune, foreign=foreign
        )
        self.render()
        self._changed()
        return result

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
                after = self.replica.store.checkpoint(folders=self.mode in VAULT_MODES)
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
        return examine(self.replica, self._memories, passphrase_protected(self.replica.folder))

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

    def restore_files(self) -> int:
        """Write plain files again that are missing, instead of taking that for deletes. Returns how many."""
        return self._files.restore_files() if self._files is not None else 0

    def attach(
        self,
        folder: str | Path,
        *,
        scope: str | None = None,
        take_over: bool = False,
        timeline: bool = False,
    ) -> FolderFacts:
        """Make a folder a working copy of a scope (None: the nameless one): what is in it is taken in, what it lacks is
        written, and so it stays. It belongs to that scope alone; a scope may have several folders.

        `take_over`: the folder is marked as another memory's, or lies on another disk now, and should be this one's.
        `timeline`: write `timeline/` into it although it stood there before. Raises UsageError for what cannot be one (a mode
        that keeps no plain files, another memory's folder), StorageError; then nothing was changed.
        """
        made = self._plain_files().attach(folder, scope=scope or "", take_over=take_over, timeline=timeline)
        self._changed()
        return made

    def detach(self, folder: str | Path, *, gone: bool = False) -> list_[str]:
        """Let go of a working copy; every file in it stays as it is. Names of files that came out of what was set aside.

        `gone`: the folder is not there and will not be again. Raises NotFoundError, StorageError when something would be lost.
        """
        brought = self._plain_files().detach(folder, gone=gone)
        self._changed()
        return brought

    def folders(self) -> list_[FolderFacts]:
        """The working copies of this memory on this device, and how they are."""
        return self._files.folders() if self._files is not None else []

    def pause_folder(self, folder: str | Path) -> None:
        """Take nothing in from a working copy and write nothing to it, until `accept_folder` or `put_back_folder`."""
        self._plain_files().pause(folder)

    def accept_folder(self, folder: str | Path) -> None:
        """What stands in a paused working copy counts: all of it is taken for edits. Raises NotFoundError, StorageError."""
        self._plain_files().accept(folder)
        self._changed()

    def put_back_folder(self, folder: str | Path) -> int:
        """What is remembered counts: it is written into every file of a working copy. How many files held something else.

        A text that was never remembered is kept beside, as a conflict copy. Raises NotFoundError, StorageError.
        """
        count = self._plain_files().put_back(folder)
        self._changed()
        return count

    def _plain_files(self) -> WorkingCopies:
        if self._files is None:
            raise UsageError(
                f"a memory in mode {self.mode} keeps no plain files on the disk",
                hint="Write some out with: ipfsmem export --dir DIR.",
            )
        return self._files

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
