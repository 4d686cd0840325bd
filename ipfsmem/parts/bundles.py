"""`memory.bundles`: export and import of bundles: JSON blob, folder, zip, CAR, HTML."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from ipfsmem.bundle.blob import write_blob
from ipfsmem.causal.cards import is_forgotten
from ipfsmem.content.cid import CID
from ipfsmem.device.atomic_files import storage_errors
from ipfsmem.device.namespaces import memories_in
from ipfsmem.device.scopes import known_scopes, live_scopes, own_scopes
from ipfsmem.errors import IncompleteError, NotFoundError, UsageError
from ipfsmem.exchange import okf
from ipfsmem.exchange.importing import Importer, Taken, gather
from ipfsmem.exchange.places import NO_FILE, one_file, open_place
from ipfsmem.exchange.programs import reader
from ipfsmem.files.exporting import (
    SESSIONS_HINT,
    Everything,
    LeftOut,
    everything,
    export_folder,
    export_plain_car,
    export_zip,
    is_memory_file,
    tree_of,
    whole,
)
from ipfsmem.memories.import_scopes import assign
from ipfsmem.memories.importing import Imported, Strategy, import_files, read_given, read_path
from ipfsmem.memories.memory_records import place_of
from ipfsmem.memories.sessions_here import named_sessions_here
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.vault_handle import VaultHandle
from ipfsmem.parts.versions import is_unpublished, published_root
from ipfsmem.published.history import export_car
from ipfsmem.results import Exported
from ipfsmem.wording import count

#: What a published version lacks, and what to do about that.
NOT_PUBLISHED = "writes since the last sync"
PUBLISH_HINT = "Publish them: ipfsmem sync. Then export again. Or accept it with --partial (in Python: partial=True). --overwrite replaces a file that was written."
#: Scopes that a hint names.
_NAMED = 5


class Unpublished(msgspec.Struct, frozen=True, kw_only=True):
    """Data on this device that no published version has. `new`: written since the last sync."""

    new: bool
    #: The sessions that are kept on this device only.
    sessions: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.new or bool(self.sessions)

    def __str__(self) -> str:
        left = LeftOut(sessions=self.sessions)
        return " and ".join(filter(None, (NOT_PUBLISHED if self.new else "", str(left))))

    @property
    def hint(self) -> str:
        """Next step."""
        return PUBLISH_HINT if self.new else SESSIONS_HINT


class MemoryBundles(MemoryPart):
    """Export and import of all scopes, or of the chosen one."""

    def __init__(self, opened: VaultHandle, chosen: str | None) -> None:
        """`chosen`: the scope to export or import; None: all scopes."""
        super().__init__(opened)
        self._chosen = chosen
        self._memories = opened.memories.in_scope(chosen or "")

    def _everything(self) -> Everything:
        """Return all data of this scope."""
        self._open.ingest_edits()
        return everything(self._memories)

    def whole(self) -> tuple[list[Everything], LeftOut]:
        """Return the parts of a complete export, of all scopes or the chosen one, and what it omits."""
        if self._chosen is None:
            self._open.ingest_edits()
            parts, left = whole(self._memories)
        else:
            self._check_scope()
            found = self._everything()
            parts, left = [found], found.without_missing()
        return parts, msgspec.structs.replace(
            left, lost=self._replica.lost, sessions=self._sessions_here(self._chosen)
        )

    def _sessions_here(self, scope: str | None) -> tuple[str, ...]:
        """Return the names of sessions stored only on this device, of the chosen scope or all."""
        with self._replica.reading():
            found = named_sessions_here(self._replica, scope)
        return tuple(place_of(one, session) for one, session in found)

    def _check_scope(self) -> None:
        """Raise NotFoundError if the chosen scope is empty."""
        if not (scope := self._memories.scope):
            return
        found = self._open.scopes.get(scope)
        if found is None or found.forgotten:
            raise NotFoundError(
                f"the scope {scope} is forgotten" if found else f"there is no scope {scope}",
                hint=f"Restore it with: ipfsmem scope restore {scope}"
                if found
                else "List them with: ipfsmem scope list",
            )

    def left_out(self) -> LeftOut:
        """What a blob omits: conflict copies, texts that are not on this device or not UTF-8, sessions stored only on this device, and, unless
        one scope was chosen (`scope`), all scopes except the unnamed one."""
        return self._left_out_of(self._everything())

    def _left_out_of(self, found: Everything) -> LeftOut:
        left = msgspec.structs.replace(
            found.without_copies(),
            lost=self._replica.lost,
            no_text=found.no_text(),
            sessions=self._sessions_here(found.scope),
        )
        if self._chosen is not None:
            return left
        with self._replica.reading():
            return msgspec.structs.replace(left, scopes=tuple(live_scopes(self._replica.store)))

    def export(self, *, partial: bool = False) -> bytes:
        """Return one scope as a `memory/0.1` blob: the unnamed scope, or the chosen one. Pending texts stay pending where the blob is
        imported.

        Raises IncompleteError, which names them, if parts are omitted (see `left_out`), unless `partial` is given.
        """
        if self._chosen is not None:
            self._check_scope()
        found = self._everything()
        self._left_out_of(found).refuse(partial)
        others = [(key, data) for key, data in found.others() if is_memory_file(data)]
        return write_blob(_memory_files(found), found.events, found.index, others)

    def export_published(self, out: BinaryIO, root: str | None = None) -> CID:
        """Write a published version (None: the last one) with all its blocks to a CAR file, encrypted as published. Return its CID.

        Raises NotFoundError if nothing was published, or a block is not on this device.
        """
        cid = published_root(self._replica, root)
        with self._replica.reading():
            export_car(self._replica, cid, out)
        return cid

    def export_html(self, out: BinaryIO, *, partial: bool = False) -> CID:
        """Write the version published last to one HTML file, encrypted as published. Any browser opens it with the recovery phrase, a
        wallet or its key file. Return its CID.

        Raises UsageError for a vault that is not encrypted, NotFoundError as `export_published` and if the page was not built,
        IncompleteError, before anything is written, for unpublished changes, unless `partial` is given.
        """
        from ipfsmem.files.rescue_page import read_shell, write_rescue_page

        vault = self._replica.config.vault
        if not self._open.mode.sealed or vault is None:
            raise UsageError(
                f"a memory in mode {self._open.mode} needs nothing that opens it",
                hint="As files that any program reads: ipfsmem export --zip FILE",
            )
        shell = read_shell()
        cid = published_root(self._replica, None)
        if (lacks := self.unpublished()) and not partial:
            raise IncompleteError(f"the export would be incomplete; omitted: {lacks}", hint=lacks.hint)
        with self._replica.reading():
            write_rescue_page(
                out,
                shell,
                lambda car: export_car(self._replica, cid, car),
                vault=vault.name,
                key_number=vault.key_number,
                saved=self._replica.world.today().isoformat(),
            )
        return cid

    def unpublished(self) -> Unpublished:
        """Return the data that no published version has."""
        return Unpublished(new=is_unpublished(self._replica), sessions=self._sessions_here(None))

    def export_folder(self, folder: str | Path, *, partial: bool = False) -> Exported:
        """Write all scopes, or the chosen one, as plain files to a new or empty folder.

        The unnamed scope goes to `memory/`, each other one to `scopes/<scope>/memory/`, with conflict copies and texts that a
        deletion left (format section 1.6). `import_` reads it. Raises UsageError if the folder is not empty; IncompleteError,
        before anything is written, if texts are not on this device, unless `partial` is given.
        """
        parts, left = self.whole()
        left.refuse(partial)
        return Exported(files=export_folder(Path(folder), tree_of(parts)), left_out=left)

    def export_zip(self, out: BinaryIO, *, partial: bool = False) -> Exported:
        """Write a zip file, as `export_folder`. Raises IncompleteError before anything is written."""
        parts, left = self.whole()
        left.refuse(partial)
        return Exported(files=export_zip(out, tree_of(parts)), left_out=left)

    def export_car(self, out: BinaryIO, *, partial: bool = False) -> Exported:
        """Write a CAR file, as `export_folder`; IPFS programs compute the same root. Raises IncompleteError before anything is written."""
        parts, left = self.whole()
        left.refuse(partial)
        files = tree_of(parts)
        return Exported(files=len(files), left_out=left, root=str(export_plain_car(out, files)))

    def import_(
        self,
        source: bytes | str | Path,
        *,
        strategy: Strategy = "merge",
        prune: bool = False,
        foreign: bool = False,
        maps: Mapping[str, str] | None = None,
        same: bool = False,
        whole: bool = False,
        dry_run: bool = False,
    ) -> Imported:
        """Import a `memory/0.1` blob (bytes or JSON text), or a folder, zip, CAR or file (Path). A second import changes nothing.

        `merge`: existing texts stay visible, and differing texts become conflict alternatives; `replace`: imported texts replace
        the visible ones, and with `prune` memories that the import lacks are deleted. `foreign`: the texts come from another vault
        or a chat export, and are pending until they are approved.

        Each scope is imported into the scope of its name, which must be new, or into the one given in `maps`
        ({"theirs": "ours"}, "" for the unnamed scope). `same`: a backup of this vault, so equal names mean the same scope.
        A chosen scope accepts only an import without further scopes. Raises UsageError for an impossible map, before
        anything is written.

        The import is read and checked before anything is written. `whole`: raise IncompleteError and write nothing if a part cannot be
        imported. `dry_run`: write nothing, and return what would be imported.
        """
        if isinstance(source, Path):
            self._refuse_home(source)
            parts = read_path(source)
        else:
            parts = read_given(source)
        if same and foreign:
            raise UsageError("a backup of this vault is not foreign: give one of both")
        into = self._assigned(parts, maps or {}, same)
        self._open.scan()
        result = import_files(
            self._memories,
            parts,
            into=into,
            strategy=strategy,
            prune=prune,
            foreign=foreign,
            whole=whole,
            dry_run=dry_run,
        )
        if not dry_run:
            self._open.render()
            self._open.changed()
        return result

    def _refuse_home(self, path: Path) -> None:
        """Raise UsageError for a folder that is or contains the home of ipfsmem, whose files are not memories and may be of deleted
        ones."""
        with storage_errors(path, "read"):
            if path.is_symlink() or not path.is_dir():
                return
            held, here = memories_in(path), self._replica.folder
            if not held and here is not None and path.resolve() in here.resolve().parents:
                held = f"the vaults of this device, in {here.parent}"
        if held:
            raise UsageError(
                f"{path} holds {held}, whose files are not imported; name the folder of the memory files, "
                "or export the vault and import the export"
            )

    def import_from(
        self,
        program: str,
        source: bytes | str | Path,
        *,
        strategy: Strategy = "merge",
        foreign: bool = False,
        maps: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> Taken:
        """Import the memory of another program: `program` names its form, `source` its location or its bytes.

        What was imported once is not imported again, even if it was edited or deleted here since, unless `replace` is given. Texts
        extracted from conversations are pending, and with `foreign` all texts are. With `dry_run` nothing is written. Raises
        UsageError for an unknown program, FormatError for another form.
        """
        if strategy not in ("merge", "replace"):
            raise UsageError(f"unknown import strategy {strategy!r}", hint="merge or replace.")
        read = reader(program)
        if isinstance(source, bytes):
            place, found = "", gather(read(one_file(NO_FILE, source)), program)
        else:
            path = Path(source)
            self._refuse_home(path)
            place = str(path.absolute())
            with open_place(path) as files:
                found = gather(read(files), program)
                found.problems += files.said
        if self._chosen is not None and len(found.scopes) <= 1 and not maps:
            into = dict.fromkeys(found.scopes, self._open.scopes.target(self._memories.scope))
        else:
            into = self._assigned(found.scopes or {""}, maps or {}, self._chosen is None)
        made = sorted(scope for scope in found.scopes if scope and scope not in (maps or {}))
        if made and self._replica.config.mode.public and not dry_run:
            raise UsageError(
                f"the names of {count(len(made), 'scope')} would be published in the clear, and are made of the paths of folders",
                hint=f"Say for each what it is called, as in --map {made[0]}=NAME (in Python: maps=). They are: {', '.join(made[:_NAMED])}"
                + (" and more, which a dry run lists." if len(made) > _NAMED else "."),
            )
        self._open.scan()
        importer = Importer(
            self._memories, program, into=into, place=place, strategy=strategy, foreign=foreign
        )
        if dry_run:
            return importer.preview(found)
        taken = importer.import_all(found)
        self._open.render()
        self._open.changed()
        return taken

    def export_okf(self, folder: str | Path, *, partial: bool = False) -> Exported:
        """Write one scope, the unnamed or the chosen one, as a bundle of the Open Knowledge Format 0.2 to a new or empty folder. Raises as
        `export` and `export_folder`."""
        if self._chosen is not None:
            self._check_scope()
        found = self._everything()
        left = self._left_out_of(found)
        if others := tuple(key for key, _ in found.others()):
            left = msgspec.structs.replace(left, copies=(*left.copies, *others))
        left.refuse(partial)
        files = export_folder(Path(folder), okf.write_bundle(_memory_files(found), found.events))
        return Exported(files=files, left_out=left)

    def _assigned(self, parts: Collection[str], maps: Mapping[str, str], same: bool) -> dict[str, str]:
        """Return the target of each scope of an import. Raises as `assign`."""
        if self._chosen is not None:
            if len(parts) > 1 or maps or same:
                raise UsageError(
                    "what has several scopes cannot be put into one"
                    if len(parts) > 1
                    else "into one scope, nothing is left to map",
                    hint="Leave the scope out (--scope, IPFSMEM_SCOPE), and say where each goes: --map THEIRS=OURS (in Python: maps=).",
                )
            maps = {"": self._open.scopes.target(self._memories.scope)}
        with self._replica.reading():
            known, own = known_scopes(self._replica.store), own_scopes(self._replica)
        forgotten = {scope for scope, card in known.items() if is_forgotten(card)}
        return assign(parts, maps, live=known.keys() - forgotten, own=own, forgotten=forgotten, same=same)


def _memory_files(found: Everything) -> dict[str, bytes]:
    """Return the visible memory files. Skip texts that are not memory files, so that one program's bytes do not prevent an export."""
    return {key: data for key, data in found.files.items() if is_memory_file(data)}
