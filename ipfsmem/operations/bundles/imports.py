"""The operations that import: exports and files of memories, and the data of other programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta

from ipfsmem.errors import UsageError
from ipfsmem.operation import Cli, Except, FileBody, View, operation

if TYPE_CHECKING:
    from ipfsmem.exchange.importing import Taken
    from ipfsmem.memories.importing import Imported

LATE = {"Taken": "ipfsmem.exchange.importing", "Imported": "ipfsmem.memories.importing"}

#: Maximum bytes of an import over HTTP.
MAX_UPLOAD: Final = 64 * 1024 * 1024
#: Scopes that a hint names.
_NAMED: Final = 5

Replacing = Annotated[
    Literal["merge", "replace"],
    Meta(
        description="merge: keep the texts here, add different ones as conflicts. replace: show the imported texts."
    ),
]
Foreign = Annotated[
    bool,
    Meta(description="The texts are someone else's: import them as pending."),
    Cli(help="The texts are someone else's: import them as pending (see `ipfsmem approve`)."),
]
#: The command has `--map THEIRS=OURS` for it.
Maps = Annotated[
    Mapping[str, str] | None,
    Meta(
        description='The scope here of each scope of the import: {"theirs": "ours"}; "" is the default scope.'
    ),
    Except(("cli", "http")),
]
DryRun = Annotated[bool, Meta(description="List what would be imported without writing it.")]


@operation(
    summary="Import an export, a folder of memory files, or a file",
    right="admin",
    about="part",
    raises=(
        "UsageError: a scope cannot be imported as asked, or the folder is that of a vault.",
        "FormatError: this is not an export.",
        "LimitError: it is too large.",
        "IncompleteError: with `whole`, a part cannot be imported; nothing was written.",
    ),
    audit="import",
    command="import",
    http="POST /v1/import",
    ingests=False,
)
def import_(
    view: View,
    source: Annotated[
        bytes | str | Path,
        Meta(
            description="An export (memory/0.1) as bytes or JSON text, or a Path: a folder, zip, CAR or file."
        ),
        FileBody(
            most=MAX_UPLOAD,
            summary="Import a JSON export",
            about="The body is a JSON export (memory/0.1) of at most 64 MiB. A second import changes nothing.",
        ),
        Except(("cli",)),
    ],
    *,
    strategy: Replacing = "merge",
    prune: Annotated[
        bool,
        Meta(description="With replace: forget memories that the import does not contain."),
        Except(("http",)),
    ] = False,
    foreign: Foreign = False,
    maps: Maps = None,
    same: Annotated[
        bool,
        Meta(description="It is a backup of this vault: match scopes by name."),
        Cli(
            name="from_backup",
            help="PATH is a backup of this vault: match scopes by name, and import everything or nothing.",
        ),
    ] = False,
    whole: Annotated[
        bool,
        Meta(description="Import everything, or nothing if a part cannot be imported."),
        Except(("cli",)),
    ] = False,
    dry_run: DryRun = False,
) -> Imported:
    """Import an export, a folder of memory files, or one file. A second import changes nothing.

    Nothing is lost: if a text differs from yours, both are kept, as a conflict. The import is read and checked
    completely before anything is written.

    Each scope of the import becomes a new scope of the same name, unless it is mapped to an existing
    one. A named scope accepts only an import without further scopes.
    """
    from ipfsmem.memories.importing import import_files, read_given, read_path
    from ipfsmem.operations.bundles.content import assigned, memories_of, refuse_home

    opened = view.opened
    if isinstance(source, Path):
        refuse_home(view, source)
        parts = read_path(source)
    else:
        parts = read_given(source)
    if same and foreign:
        raise UsageError("a backup of this vault is not foreign: give one of both")
    into = assigned(view, parts, maps or {}, same)
    opened.scan()
    result = import_files(
        memories_of(view),
        parts,
        into=into,
        strategy=strategy,
        prune=prune,
        foreign=foreign,
        whole=whole,
        dry_run=dry_run,
    )
    if not dry_run:
        opened.render()
        opened.changed()
    return result


@operation(
    summary="Import the memory of another program",
    right="admin",
    about="part",
    raises=("UsageError: an unknown program.", "FormatError: the data has another form."),
    audit="import",
    command="",
)
def import_from(
    view: View,
    program: Annotated[str, Meta(description="The program that wrote it.")],
    source: Annotated[bytes | str | Path, Meta(description="Its path, or its bytes.")],
    *,
    strategy: Replacing = "merge",
    foreign: Foreign = False,
    maps: Maps = None,
    dry_run: DryRun = False,
) -> Taken:
    """Import the memory of another program.

    What was imported once is not imported again, even if it was edited or deleted here since, unless `strategy` is
    replace. Texts extracted from conversations are pending.
    """
    from ipfsmem.exchange.importing import Importer, gather
    from ipfsmem.exchange.places import NO_FILE, one_file, open_place
    from ipfsmem.exchange.programs import reader
    from ipfsmem.operations.bundles.content import assigned, memories_of, refuse_home
    from ipfsmem.wording import count

    opened = view.opened
    read = reader(program)
    if isinstance(source, bytes):
        place, contents = "", gather(read(one_file(NO_FILE, source)), program)
    else:
        path = Path(source)
        refuse_home(view, path)
        place = str(path.absolute())
        with open_place(path) as files:
            contents = gather(read(files), program)
            contents.problems += files.said
    if view.named is not None and len(contents.scopes) <= 1 and not maps:
        into = dict.fromkeys(contents.scopes, opened.scopes.target(view.named))
    else:
        into = assigned(view, contents.scopes or {""}, maps or {}, view.named is None)
    new_scopes = sorted(scope for scope in contents.scopes if scope and scope not in (maps or {}))
    if new_scopes and opened.mode.public and not dry_run:
        raise UsageError(
            f"the names of {count(len(new_scopes), 'scope')} would be published in the clear, and are made of the paths of folders",
            hint=f"Say for each what it is called, as in --map {new_scopes[0]}=NAME (in Python: maps=). They are: {', '.join(new_scopes[:_NAMED])}"
            + (" and more, which a dry run lists." if len(new_scopes) > _NAMED else "."),
        )
    opened.scan()
    importer = Importer(
        memories_of(view), program, into=into, place=place, strategy=strategy, foreign=foreign
    )
    if dry_run:
        return importer.preview(contents)
    result = importer.import_all(contents)
    opened.render()
    opened.changed()
    return result
