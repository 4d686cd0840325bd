"""The content of an export, what it omits, and the target of each scope of an import."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from ipfsmem.answer import Answer
from ipfsmem.causal.cards import is_forgotten
from ipfsmem.device.atomic_files import storage_errors
from ipfsmem.device.local_vaults import memories_in
from ipfsmem.device.scopes import known_scopes, live_scopes, own_scopes
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.files.exporting import SESSIONS_HINT, Everything, LeftOut, everything, is_memory_file, whole
from ipfsmem.memories.import_scopes import assign
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_records import place_of
from ipfsmem.memories.sessions_here import named_sessions_here
from ipfsmem.open_vault.versions import is_unpublished
from ipfsmem.operation import View

#: What a published version lacks, and what to do about that.
NOT_PUBLISHED = "writes since the last sync"
PUBLISH_HINT = "Publish them: ipfsmem sync. Then export again. Or accept it with --partial (in Python: partial=True). --overwrite replaces a file that was written."


class Exported(Answer, frozen=True, kw_only=True):
    """An export: number of files, what was omitted, and the root CID of a CAR."""

    files: int
    left_out: LeftOut
    root: str | None = None


class VersionExported(Answer, frozen=True, kw_only=True):
    """A published version that was exported: its root CID."""

    root: str


class Unpublished(msgspec.Struct, frozen=True, kw_only=True):
    """Data on this device that no published version has. `new`: written since the last sync."""

    new: bool
    #: The sessions that are kept on this device only.
    sessions: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.new or bool(self.sessions)

    def __str__(self) -> str:
        left_out = LeftOut(sessions=self.sessions)
        return " and ".join(filter(None, (NOT_PUBLISHED if self.new else "", str(left_out))))

    @property
    def hint(self) -> str:
        """Next step."""
        return PUBLISH_HINT if self.new else SESSIONS_HINT


def memories_of(view: View) -> MemoryStore:
    """Return the memories of the named scope, or of the default scope if none is named."""
    return view.opened.memories.in_scope(view.named or "")


def everything_in(view: View) -> Everything:
    """Return all data of one scope. Raises NotFoundError for a named scope that does not exist."""
    refuse_missing_scope(view)
    view.opened.ingest_edits()
    return everything(memories_of(view))


def whole_of(view: View) -> tuple[list[Everything], LeftOut]:
    """Return the parts of a complete export, of all scopes or the named one, and what it omits."""
    opened = view.opened
    if view.named is None:
        opened.ingest_edits()
        parts, left_out = whole(memories_of(view))
    else:
        contents = everything_in(view)
        parts, left_out = [contents], contents.without_missing()
    here = _sessions_here(view, view.named)
    return parts, msgspec.structs.replace(left_out, lost=opened.replica.lost, sessions=here)


def left_out_of(view: View, contents: Everything) -> LeftOut:
    """Return what a blob of this data omits."""
    replica = view.opened.replica
    left_out = msgspec.structs.replace(
        contents.without_copies(),
        lost=replica.lost,
        no_text=contents.no_text(),
        sessions=_sessions_here(view, contents.scope),
    )
    if view.named is not None:
        return left_out
    with replica.reading():
        return msgspec.structs.replace(left_out, scopes=tuple(live_scopes(replica.store)))


def unpublished(view: View) -> Unpublished:
    """Return the data that no published version has."""
    return Unpublished(new=is_unpublished(view.opened.replica), sessions=_sessions_here(view, None))


def memory_files(contents: Everything) -> dict[str, bytes]:
    """Return the visible memory files. Skip texts that are not memory files, so that one program's bytes do not prevent an export."""
    return {key: data for key, data in contents.files.items() if is_memory_file(data)}


def _sessions_here(view: View, scope: str | None) -> tuple[str, ...]:
    """Return the names of sessions stored only on this device, of one scope or all."""
    with view.opened.replica.reading():
        sessions = named_sessions_here(view.opened.replica, scope)
    return tuple(place_of(one, session) for one, session in sessions)


def refuse_missing_scope(view: View) -> None:
    """Raise NotFoundError if the named scope does not exist or is forgotten."""
    if not (scope := view.named):
        return
    card = view.opened.scopes.get(scope)
    if card is None or card.forgotten:
        raise NotFoundError(
            f"the scope {scope} is forgotten" if card else f"there is no scope {scope}",
            hint=f"Restore it with: ipfsmem scope restore {scope}"
            if card
            else "List them with: ipfsmem scope list",
        )


def refuse_home(view: View, path: Path) -> None:
    """Raise UsageError for a folder that is or contains the home of ipfsmem, whose files are not memories and may be of deleted
    ones."""
    with storage_errors(path, "read"):
        if path.is_symlink() or not path.is_dir():
            return
        contents, here = memories_in(path), view.opened.replica.folder
        if not contents and here is not None and path.resolve() in here.resolve().parents:
            contents = f"the vaults of this device, in {here.parent}"
    if contents:
        raise UsageError(
            f"{path} holds {contents}, whose files are not imported; name the folder of the memory files, "
            "or export the vault and import the export"
        )


def assigned(view: View, parts: Collection[str], maps: Mapping[str, str], same: bool) -> dict[str, str]:
    """Return the target of each scope of an import. Raises as `assign`."""
    opened = view.opened
    if view.named is not None:
        if same and view.named and len(parts) == 1:
            raise UsageError(
                f"a backup of this vault goes back to its own scopes, not into {view.named}: scope and same exclude each other",
                hint="Leave the scope out (--scope, IPFSMEM_SCOPE). Or import it as other data, without --from-backup (in Python: same=False).",
            )
        if len(parts) > 1 or maps:
            raise UsageError(
                "an import with several scopes cannot become one scope"
                if len(parts) > 1
                else "into one scope, nothing is left to map",
                hint="Leave the scope out (--scope, IPFSMEM_SCOPE), and say where each goes: --map THEIRS=OURS (in Python: maps=).",
            )
        maps = {"": opened.scopes.target(view.named)}
    with opened.replica.reading():
        cards, own = known_scopes(opened.replica.store), own_scopes(opened.replica)
    forgotten = {scope for scope, card in cards.items() if is_forgotten(card)}
    return assign(parts, maps, live=cards.keys() - forgotten, own=own, forgotten=forgotten, same=same)
