"""The operations on the files of this device: the index of recall, and reclaiming disk space."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta
from msgspec.structs import replace

from ipfsmem.answer import Answer
from ipfsmem.operation import Cli, Except, View, operation

if TYPE_CHECKING:
    from ipfsmem.device.replica import Replica


class SearchIndexStatus(Answer, frozen=True, kw_only=True):
    """The state of the search index on disk."""

    #: Whether the unnamed scope has an index, its number of memories, and how many changed since.
    kept: bool
    memories: int
    behind: int
    #: Number of memories whose texts are not on this device and cannot be searched.
    not_fetched: int
    #: Number of index files, of all scopes and combinations of scopes, and their total size.
    files: int
    bytes: int
    #: Error of an index or of the model; the next recall rebuilds or retries.
    problem: str
    #: The embedding model, "" for none; number of texts with and without a vector.
    model: str = ""
    vectors: int = 0
    without_vector: int = 0


class Vacuumed(Answer, frozen=True, kw_only=True):
    """The result of compacting database files: bytes of each file before and after, and in total."""

    before: dict[str, int]
    after: dict[str, int]
    freed: int


class Cleaned(Answer, frozen=True, kw_only=True):
    """Leftovers older than `older_than` seconds that were deleted, or with `dry_run` would be: files with their sizes, entries of the
    audit log, and notices of earlier syncs."""

    dry_run: bool
    older_than: float
    files: dict[str, int]
    bytes: int
    operations: int
    notices: int


@operation(
    name="maintenance.index_status",
    summary="Show the size and state of the index",
    right="read",
    about="memory",
    command="index status",
    http="GET /v1/index",
)
def index_status(view: View) -> SearchIndexStatus:
    """Show the size of the index, its memories, and how many changed since. The next recall updates it."""
    from ipfsmem.device.recall_image import image_notice, images
    from ipfsmem.memories.search_index import kept_index

    opened = view.opened
    problem = image_notice(opened.replica)
    sizes = [stat.st_size for _, stat in images(opened.replica)]
    meaning = opened.meaning().state()
    with opened.replica.reading():
        index = kept_index((opened.memories,))
        return SearchIndexStatus(
            kept=index is not None,
            memories=0 if index is None else len(index.held),
            behind=0 if index is None else index.behind((opened.memories,)),
            not_fetched=0 if index is None else len(index.not_fetched),
            files=len(sizes),
            bytes=sum(sizes),
            problem=problem or meaning.problem,
            model=meaning.model,
            vectors=meaning.vectors,
            without_vector=meaning.missing,
        )


@operation(
    name="maintenance.reindex",
    summary="Rebuild the index",
    right="write",
    about="memory",
    raises=("StorageError: the index cannot be stored.",),
    audit="reindex",
    command="index rebuild",
    http="POST /v1/reindex",
    beside=True,
    idempotent=True,
)
def reindex(
    view: View,
    progress: Annotated[
        Callable[[int, int], None] | None,
        Meta(description="Called with the number of texts that have embeddings, and of all."),
        Except(("cli", "http", "mcp")),
    ] = None,
) -> SearchIndexStatus:
    """Rebuild the index that recall searches from all texts, and save it.

    If recall uses a model, texts without an embedding get one, newest first; an interrupted run keeps
    the finished ones.

    This is rarely needed: each recall updates the index and rebuilds a damaged one.
    """
    from ipfsmem.memories.search_index import rebuilt_index

    rebuilt_index((view.opened.memories,))
    problem = view.opened.meaning().complete(progress or (lambda *_: None))
    status = index_status.work(view)
    return replace(status, problem=status.problem or problem)


@operation(
    name="maintenance.vacuum",
    summary="Reclaim disk space",
    right="admin",
    about="memory",
    raises=("StorageError: there is no room for the new files.", "LockedError: another process works here."),
    audit="vacuum",
    command="",
    http="POST /v1/vacuum",
    idempotent=True,
)
def vacuum(view: View) -> Vacuumed:
    """Rewrite the database of this vault without unused room, and the stored embeddings without those of deleted texts.

    No memory changes.
    """
    from ipfsmem.memories.kept_vectors import erase_forgotten

    replica = view.opened.replica
    before = _file_sizes(replica)
    erase_forgotten(view.opened.memories)
    replica.db.compact()
    return _vacuumed(before, _file_sizes(replica))


def could_free(replica: Replica) -> Vacuumed:
    """Return the minimum that `vacuum` would free: the unused pages of the database, and its log."""
    from ipfsmem.device.database_file import DATABASE_FILES

    state, log = DATABASE_FILES[:2]
    before = _file_sizes(replica)
    after = {name: size for name, size in before.items() if name != log}
    if state in after:
        after[state] = max(0, after[state] - replica.db.unused_bytes())
    return _vacuumed(before, after)


def _vacuumed(before: dict[str, int], after: dict[str, int]) -> Vacuumed:
    return Vacuumed(before=before, after=after, freed=sum(before.values()) - sum(after.values()))


def _file_sizes(replica: Replica) -> dict[str, int]:
    """Return the bytes of the files that `vacuum` rewrites, by name."""
    from ipfsmem.device.database_file import DATABASE_FILES
    from ipfsmem.memories.kept_vectors import vector_files

    sizes: dict[str, int] = {}
    if (folder := replica.folder) is not None:
        for path in (*(folder / name for name in DATABASE_FILES[:2]), *vector_files(replica)):
            with contextlib.suppress(OSError):
                sizes[path.name] = path.stat().st_size
    return sizes


@operation(
    name="maintenance.cleanup",
    summary="Delete old, rebuildable data",
    right="admin",
    about="memory",
    raises=("StorageError: a file cannot be deleted.",),
    audit="cleanup",
    command="",
    http="POST /v1/cleanup",
    destructive=True,
)
def cleanup(
    view: View,
    older_than: Annotated[
        float,
        Meta(ge=3_600, le=31_622_400_000, description="Minimum age in seconds of the deleted data."),
        Cli(metavar="SECONDS"),
    ],
    *,
    dry_run: Annotated[bool, Meta(description="Delete nothing; return what would be deleted.")] = False,
) -> Cleaned:
    """Delete data that is rebuilt when needed, or that only records the past.

    These are saved indexes, files left by ended processes, entries of the audit log, and notices of earlier syncs. No text,
    no version and nothing that can be undone is deleted.
    """
    from ipfsmem.device.cleaning import remove_old

    replica = view.opened.replica
    leftovers = remove_old(replica, replica.environment.now() - int(older_than * 1000), dry_run=dry_run)
    return Cleaned(
        dry_run=dry_run,
        older_than=older_than,
        files=leftovers.files,
        bytes=sum(leftovers.files.values()),
        operations=leftovers.operations,
        notices=leftovers.reports,
    )
