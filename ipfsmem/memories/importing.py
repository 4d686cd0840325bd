"""Imports one scope or all scopes of a bundle from a blob, a folder, a zip, a CAR or a single file; importing it twice has no
further effect.

See format sections 1.5 and 1.6. With `merge`, a text that is neither shown nor a live sibling becomes a sibling; with `replace`, it
supersedes the shown text. Source files are only read, and links are never followed.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import msgspec

from ipfsmem.bundle.blob import Blob, is_blob, read_blob
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.bundle.session_parts import is_part, is_part_key, parts_with_unknown_marks
from ipfsmem.causal.cards import Card, ProjectId, split_card
from ipfsmem.causal.entries import card_entry
from ipfsmem.causal.value import FOREIGN, FORGOTTEN
from ipfsmem.device.atomic_files import read_file, storage_errors
from ipfsmem.device.bulk import no_collection
from ipfsmem.device.events import Timeline
from ipfsmem.device.last_change import note_irrevocable
from ipfsmem.device.scopes import put_card, read_card
from ipfsmem.device.state import StateStore
from ipfsmem.device.writing import Writing, writing
from ipfsmem.errors import FormatError, IncompleteError, IpfsmemError, LimitError, NotFoundError, UsageError
from ipfsmem.memories.bundle_tree import MAX_BYTES, BundleScope, collect_files
from ipfsmem.memories.containers import TEXTS, is_car, is_zip, opened, read_folder, read_plain_car, read_zip
from ipfsmem.memories.memories import MemoryStore, check_body
from ipfsmem.memories.memory_records import readable_file
from ipfsmem.memories.part_guard import check_incoming
from ipfsmem.wording import count

Strategy = Literal["merge", "replace"]
MAX_BLOB = MAX_BYTES

#: Number of texts that are sealed in one batch before they are imported.
_SEAL_BATCH: Final = 1_000
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NO_PRUNING: Final = "Fix it, or import without pruning."


class ImportContents(msgspec.Struct, frozen=True):
    """The content of an import: the numbers of memories, further texts of these (conflict copies, texts hidden by a forget, texts
    of others), forgotten keys, events and scopes, and the latest day in any of them ("" if none has a date)."""

    scopes: int = 0
    memories: int = 0
    further: int = 0
    forgotten: int = 0
    events: int = 0
    newest: str = ""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import, or with `dry_run` its preview, and the content `found`. `problems`: each item that was left out,
    with the reason; `skipped`: names of other files next to the notes.

    `still_others`: texts that the vault has as texts of others, which an import does not approve. `still_forgotten`: texts of
    memories that were forgotten in this vault, which a merge does not restore. `scopes`: the counts by token ("" is the default
    scope) if several scopes were imported. `key`: the key of a single imported text. `exit_code`: 7 if something was left out, else
    0.
    """

    added: int = 0
    replaced: int = 0
    kept_beside: int = 0
    unchanged: int = 0
    still_others: int = 0
    still_forgotten: int = 0
    forgotten: int = 0
    events: int = 0
    problems: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    scopes: dict[str, dict[str, int]] = {}
    key: str = ""
    dry_run: bool = False
    found: ImportContents = ImportContents()
    exit_code: int = 0

    def raise_if_incomplete(self) -> None:
        """Raise IncompleteError if something was left out, or would be."""
        refuse_left_out(self.problems, dry_run=self.dry_run)


def exit_code_of(problems: Sequence[str]) -> int:
    """Return the exit code of an import with these problems."""
    return IncompleteError.exit_code if problems else 0


def refuse_left_out(problems: Sequence[str], *, dry_run: bool = False) -> None:
    """Raise IncompleteError if an import left something out, or with `dry_run` would leave something out."""
    if problems and dry_run:
        raise IncompleteError(
            f"nothing was written, and {count(len(problems), 'record', 'records')} would be left out",
            hint="Fix them, or import without --dry-run: the rest is imported. Or accept it with --partial (in Python: see problems).",
        )
    if problems:
        raise IncompleteError(
            f"the rest was imported, but {count(len(problems), 'record was', 'records were')} left out",
            hint="Fix them and import again: imported records stay. Or accept it with --partial (in Python: see problems).",
        )


def import_files(
    memories: MemoryStore,
    parts: Mapping[str, BundleScope],
    *,
    into: Mapping[str, str] | None = None,
    strategy: Strategy = "merge",
    prune: bool = False,
    foreign: bool = False,
    whole: bool = False,
    dry_run: bool = False,
) -> Imported:
    """Import scopes in one transaction. `whole`: if something would be left out, import nothing and raise IncompleteError.
    `dry_run`: import nothing, and return the result that an import would have.

    `into`: the target scope of each, from `import_scopes.assign` (None: the scope of the same name). `foreign`: import all texts as
    texts of others, from another vault or a chat export (format section 5.2). Raises UsageError, FormatError, NotFoundError.
    """
    if strategy not in ("merge", "replace"):
        raise UsageError(f"strategy is merge or replace, not {strategy!r}")
    if prune and strategy != "replace":
        raise UsageError("prune requires the strategy replace")
    problems = [problem for part in parts.values() for problem in part.blob.problems]
    skipped = tuple(text for part in parts.values() for text in part.skipped)
    if prune and (unread := [*problems, *skipped]):  # a document may be an earlier memory
        raise FormatError(
            f"unreadable records would be forgotten: {unread[0]}",
            hint=_NO_PRUNING,
        )
    if prune and not any(
        blob.more or blob.others or blob.forgotten or not all(map(_is_text_note, blob.files.values()))
        for blob in (part.blob for part in parts.values())
    ):
        raise UsageError(
            "the import has no memories, so every memory here would be forgotten",
            hint=_NO_PRUNING,
        )
    into = {scope: scope for scope in parts} if into is None else into
    done: dict[str, Counter[str]] = {}
    with contextlib.suppress(_RolledBackError), writing(memories.replica) as change, no_collection():
        for scope, part in parts.items():
            there = memories.in_scope(into[scope])
            fresh = there.scope not in change.live_scopes if there.scope else False
            if there.scope:
                _import_card(
                    change, memories.replica.store, there.scope, part, into, strategy, foreign, problems
                )
            taking = _ScopeImport(there, change, strategy, foreign)
            done[there.scope] = taking.import_all(part.blob, problems, prune=prune, fresh=fresh)
        total = sum(done.values(), Counter[str]())
        if whole and problems and not dry_run:
            raise IncompleteError(
                f"nothing was written: {count(len(problems), 'record')} cannot be imported: {problems[0]}",
                hint="Use another backup. Or import the rest with --partial (in Python: whole=False).",
            )
        if dry_run:
            raise _RolledBackError
        if any(total[kind] for kind in ("added", "replaced", "kept_beside", "forgotten")):
            note_irrevocable(memories.replica, "an import")
    scopes = {scope: dict(counts) for scope, counts in done.items()} if len(parts) > 1 else {}
    number = sum(total.values()) - total["events"] - total["forgotten"]
    keys = {key for part in parts.values() for key in part.blob.files} if number == 1 else set()
    return Imported(
        **total,
        problems=tuple(problems),
        skipped=skipped,
        scopes=scopes,
        key=keys.pop() if len(keys) == 1 else "",
        dry_run=dry_run,
        found=_contents_of(parts),
        exit_code=exit_code_of(problems),
    )


def _is_text_note(data: bytes) -> bool:
    """Return whether a text was a plain-text file such as `a.txt`. A path with such files alone is most likely wrong."""
    return readable_file(data).fields.get("origin_name", "").lower().endswith(TEXTS)


class _RolledBackError(Exception):
    """Rolls back a trial import."""


def _contents_of(parts: Mapping[str, BundleScope]) -> ImportContents:
    blobs = [part.blob for part in parts.values()]
    days = [str(event.get("ts", ""))[:10] for blob in blobs for event in blob.events]
    for blob in blobs:
        for data in blob.files.values():
            fields = readable_file(data).fields
            days += [fields.get(name, "")[:10] for name in ("updated", "created")]
    return ImportContents(
        scopes=len(blobs),
        memories=sum(len(blob.files) for blob in blobs),
        further=sum(len(blob.more) + len(blob.others) for blob in blobs),
        forgotten=sum(len(blob.forgotten) for blob in blobs),
        events=sum(len(blob.events) for blob in blobs),
        newest=max(filter(_DAY.fullmatch, days), default=""),
    )


class _ScopeImport:
    """The import of one scope."""

    def __init__(self, memories: MemoryStore, change: Writing, strategy: Strategy, foreign: bool) -> None:
        self._memories = memories
        self._change = change
        self._replace = strategy == "replace"
        self._foreign = foreign

    def import_all(self, blob: Blob, problems: list[str], *, prune: bool, fresh: bool) -> Counter[str]:
        """Import the whole scope; texts left out are appended to `problems`. `fresh`: whether the scope is empty."""
        memories, change = self._memories, self._change
        done: Counter[str] = Counter()
        wrong: list[str] = []
        prefix = f"{memories.scope}/" if memories.scope else ""
        # Forgets come before the texts that they hide, so that no hidden text is shown again. A key of this vault is not forgotten,
        # and no forget from a stranger is imported: it would hide texts of this person's other devices.
        texted = {*blob.files, *(key for key, _ in (*blob.more, *blob.others))}
        for key in sorted(blob.forgotten & texted):
            if self._foreign:
                wrong.append(f"{prefix}{key} was left out: it is forgotten there")
            elif not change.entry(memories.name(key)):
                change.forget(memories.name(key), ())
        refused = blob.forgotten if self._foreign else frozenset()
        of = FOREIGN if self._foreign else ""
        # A second text for a key becomes a sibling with either strategy, because nobody was shown the first.
        texts = [
            (key, data, self._replace and key not in blob.forgotten, of) for key, data in blob.files.items()
        ]
        texts += [(key, data, False, of) for key, data in blob.more]
        # Own texts come first: a text that is both own and of others is own.
        texts += [(key, data, False, FOREIGN) for key, data in blob.others]
        unfit = {
            *blob.unread,
            *(key for key, data, _, whose in texts if not whose and is_unfit_part(key, data)),
        }
        unsure = parts_with_unknown_marks((key for key, _, _, whose in texts if not whose), unfit) - unfit
        for at, (key, data, replaces, whose) in enumerate(texts):
            if not at % _SEAL_BATCH:
                ahead = texts[at : at + _SEAL_BATCH]
                change.seal_ahead(
                    (memories.name(text[0]), text[1]) for text in ahead if text[0] not in refused
                )
            if key in refused:
                continue
            if not whose and is_cut_off(key, data):
                wrong.append(f"{prefix}{key} was left out: its last line is cut off")
                continue
            if key in unsure and not whose:
                wrong.append(f"{prefix}{key} was left out: a later part of its session was")
                continue
            try:
                check_body(key, data)
                if not whose:
                    check_incoming(memories, change, key, data, replaces=replaces)
                done[_import_text(memories, change, key, data, replaces, whose)] += 1
            except IpfsmemError as error:
                wrong.append(f"{prefix}{key} was left out: {error}")
        if prune:
            if wrong:
                raise FormatError(
                    f"records that cannot be imported would be forgotten: {wrong[-1]}", hint=_NO_PRUNING
                )
            for entry, view in list(memories.views()):
                if view.key not in texted and view.data is not None and entry:
                    change.forget(memories.name(view.key), view.dots)
                    done["forgotten"] += 1
        problems += wrong
        timeline = Timeline(memories.replica, memories.scope)
        done["events"] = timeline.add_foreign(change, blob.events, by_content=True, fresh=fresh)
        return done


def is_unfit_part(key: str, data: bytes) -> bool:
    """Return whether a text is a session part that cannot be imported completely."""
    if is_part_key(key):
        try:
            check_body(key, data)
        except IpfsmemError:
            return True
    return is_cut_off(key, data)


def is_cut_off(key: str, data: bytes) -> bool:
    """Return whether a text is a session part whose last line is not JSON, as in a truncated file: the missing lines may have
    marked messages as pending."""
    if not is_part_key(key):
        return False
    try:
        file = parse_memory(data)
        line = file.body.rstrip().rpartition("\n")[2]
        if is_part(key, file) and line:
            json.loads(line, parse_int=str)
    except (FormatError, RecursionError):
        return False
    except ValueError:
        return True
    return False


def _import_card(
    change: Writing,
    store: StateStore,
    scope: str,
    part: BundleScope,
    into: Mapping[str, str],
    strategy: Strategy,
    foreign: bool,
    problems: list[str],
) -> None:
    """Import the card of a scope. An existing card keeps its fields unless `strategy` is "replace" or it has a title only; its ids
    are merged.

    From a stranger, only title and kind of a new scope are imported: an id or a remote would assign folders to the scope, and
    `into` would redirect reads. Raises as `device.scopes.open_scope`.
    """
    name = card_entry(scope)
    entry = change.entry(name)
    change.check_scope(scope)
    if part.card is None:
        return
    into_here = into.get(part.card.into) if part.card.into is not None and not foreign else None
    theirs = msgspec.structs.replace(
        part.card, ids=() if foreign or change.public else part.card.ids, into=into_here or None
    )
    if change.public and part.card.ids and not foreign:
        problems.append(
            f"the project IDs of the scope {scope} were left out: in mode ipfs everything is published, so a card "
            "names no repositories"
        )
    ours = read_card(store, scope, entry) if entry else None
    if ours is None:
        card = theirs
    elif foreign:
        return
    else:
        replaces = strategy == "replace" or ours == Card(title=scope)
        card = msgspec.structs.replace(theirs if replaces else ours, ids=(*ours.ids, *theirs.ids))
    if card == ours:
        return
    try:
        ids: set[ProjectId] = set(ours.ids) if ours is not None else set()
        for one in split_card(card):  # each is added to the existing ones
            ids.update(one.ids)
            put_card(change, scope, msgspec.structs.replace(card, ids=tuple(sorted(ids))))
    except FormatError as error:
        problems.append(f"the card of the scope {scope} was skipped: {error}")


def _import_text(
    memories: MemoryStore, change: Writing, key: str, data: bytes, replace: bool, of: str
) -> str:
    """Import one text; returns the name of the count in `Imported` to increase. Raises LimitError if the key has too many texts."""
    name = memories.name(key)
    entry = change.entry(name)
    if not entry:
        change.put(name, data, (), of=of)
        return "added"
    digest = sha256(data).hexdigest()
    outcome = "unchanged" if of or memories.has_own(entry, digest) else "still_others"
    if not replace and any(value.body == digest for value in entry.values()):
        change.keep_again(entry, data)
        hidden = any(value.kind == FORGOTTEN for value in entry.values())
        return "still_forgotten" if hidden else outcome
    view = memories.view(key, entry, change.body)
    if view.data == data:
        return outcome
    if replace and view.dots:
        change.put(name, data, view.dots, of=of)
        return "replaced"
    change.write_alternative(name, data, of=of or None)
    return "still_forgotten" if view.forgotten else "kept_beside"


def read_given(source: bytes | str) -> dict[str, BundleScope]:
    """Read a blob that a program passed as the default scope. Raises FormatError, and LimitError beyond the maximum size."""
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    if len(data) > MAX_BLOB:
        raise LimitError(f"the import has {len(data):,} bytes, at most {MAX_BLOB:,} are allowed")
    return {"": BundleScope(_export(data, "this"))}


def read_path(path: Path) -> dict[str, BundleScope]:
    """Read the scopes at a path, by token ("" is the default scope): a blob; a folder, a zip or a CAR with memory files of one
    scope or, as `export` writes them, of all scopes; or one memory file. Raises FormatError, LimitError, NotFoundError, UsageError,
    StorageError."""
    with storage_errors(path, "read"):
        if path.is_symlink():
            raise UsageError(f"{path} is a symbolic link", hint="Pass its target instead.")
        if path.is_dir():
            return read_folder(path)
        if not path.exists():
            raise NotFoundError(f"there is nothing at {path}")
        with opened(path) as file:
            head = file.read(16)
    if is_zip(head):
        return read_zip(path)
    if is_car(head):
        return read_plain_car(path)
    if path.suffix.lower() in (".zip", ".car"):  # a damaged file, or one of another format, is not a memory
        raise FormatError(f"{path} is not a readable {path.suffix[1:].lower()} file")
    data = read_file(path, MAX_BLOB) or b""
    if path.suffix == ".json" or data[:1] == b"{":
        return {"": BundleScope(_export(data, str(path)))}
    return {"": BundleScope(collect_files([(path.name, data)], [], []))}


def _export(data: bytes, what: str) -> Blob:
    """Parse a `memory/0.1` blob. Raises FormatError for other JSON instead of importing nothing."""
    blob = read_blob(data, lenient=True)
    if blob == Blob({}, []) and not is_blob(data):
        raise FormatError(
            f"{what} is not an export of a memory",
            hint="For another program's data: ipfsmem import --from NAME.",
        )
    return blob
