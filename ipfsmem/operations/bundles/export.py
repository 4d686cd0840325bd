"""The operations that export: one scope as a JSON file, all scopes as plain files, a published version as it is encrypted."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, Literal

from msgspec import Meta

from ipfsmem.errors import IncompleteError, UsageError
from ipfsmem.operation import Files, Http, View, operation

if TYPE_CHECKING:
    from ipfsmem.operations.bundles.content import Exported, VersionExported

LATE = dict.fromkeys(("Exported", "VersionExported"), "ipfsmem.operations.bundles.content")

Partial = Annotated[bool, Meta(description="Accept an export without some texts.")]
Out = Annotated[BinaryIO, Meta(description="The open file that receives it.")]
Folder = Annotated[str | Path, Meta(description="The folder to write, new or empty.", min_length=1)]
_INCOMPLETE: Final = "IncompleteError: texts would be omitted; nothing was written."
_NO_SCOPE: Final = "NotFoundError: there is no such scope."
_NOT_EMPTY: Final = "UsageError: the folder is not empty, or a symbolic link."
_NOTHING: Final = "NotFoundError: nothing was published, or a block is not on this device."


@operation(
    summary="Export the vault or one scope as a file",
    right="read",
    about="part",
    raises=(_INCOMPLETE, _NO_SCOPE),
    audit="export",
    command="",
    http="POST /v1/export",
    ingests=False,
    file=Files(
        "format",
        {
            "blob": ("application/json", "memory.json"),
            "zip": ("application/zip", "memory.zip"),
            "car": ("application/vnd.ipld.car", "memory.car"),
        },
    ),
)
def export(
    view: View,
    *,
    format: Annotated[
        Literal["blob", "zip", "car"],
        Meta(
            description="Kind of file: JSON of one scope (memory/0.1), or zip or CAR of all scopes with conflict copies."
        ),
        Http(default="zip"),
    ] = "blob",
    partial: Partial = False,
) -> bytes:
    """Return an export as bytes.

    The format `blob` has one scope, the named one or else the default scope, without conflict copies. `zip` and `car`
    have all scopes, or the named one. Pending texts stay pending where the export is imported.
    """
    if format != "blob":
        out = BytesIO()
        (export_zip if format == "zip" else export_car).work(view, out, partial=partial)
        return out.getvalue()
    from ipfsmem.bundle.blob import write_blob
    from ipfsmem.files.exporting import is_memory_file
    from ipfsmem.operations.bundles.content import everything_in, left_out_of, memory_files

    contents = everything_in(view)
    left_out_of(view, contents).refuse(partial)
    others = [(key, data) for key, data in contents.others() if is_memory_file(data)]
    return write_blob(memory_files(contents), contents.events, contents.index, others)


@operation(
    summary="Export the vault or one scope to a zip file",
    right="read",
    about="part",
    raises=(_INCOMPLETE, _NO_SCOPE),
    audit="export",
    command="",
)
def export_zip(view: View, out: Out, *, partial: Partial = False) -> Exported:
    """Write all scopes, or the named one, to a zip file with the files of `export_folder`."""
    from ipfsmem.files import exporting
    from ipfsmem.operations.bundles.content import Exported, whole_of

    parts, left_out = whole_of(view)
    left_out.refuse(partial)
    return Exported(files=exporting.export_zip(out, exporting.tree_of(parts)), left_out=left_out)


@operation(
    summary="Export the vault or one scope to a CAR file",
    right="read",
    about="part",
    raises=(_INCOMPLETE, _NO_SCOPE),
    audit="export",
    command="",
)
def export_car(view: View, out: Out, *, partial: Partial = False) -> Exported:
    """Write all scopes, or the named one, to a CAR file with the files of `export_folder`.

    IPFS programs compute the same root CID for these files.
    """
    from ipfsmem.files import exporting
    from ipfsmem.operations.bundles.content import Exported, whole_of

    parts, left_out = whole_of(view)
    left_out.refuse(partial)
    files = exporting.tree_of(parts)
    return Exported(files=len(files), left_out=left_out, root=str(exporting.export_plain_car(out, files)))


@operation(
    summary="Export the vault or one scope to a folder",
    right="read",
    about="part",
    raises=(_NOT_EMPTY, _INCOMPLETE, _NO_SCOPE),
    audit="export",
    command="",
)
def export_folder(view: View, folder: Folder, *, partial: Partial = False) -> Exported:
    """Write all scopes, or the named one, as plain files to a new or empty folder.

    The default scope goes to `memory/`, each other one to `scopes/<scope>/memory/`, with conflict copies and texts that
    a deletion left (format section 1.6). An import reads it.
    """
    from ipfsmem.files import exporting
    from ipfsmem.operations.bundles.content import Exported, whole_of

    parts, left_out = whole_of(view)
    left_out.refuse(partial)
    return Exported(files=exporting.export_folder(Path(folder), exporting.tree_of(parts)), left_out=left_out)


@operation(
    summary="Export one scope in the Open Knowledge Format",
    right="read",
    about="part",
    raises=(_NOT_EMPTY, _INCOMPLETE, _NO_SCOPE),
    audit="export",
    command="",
)
def export_okf(view: View, folder: Folder, *, partial: Partial = False) -> Exported:
    """Write one scope, the named one or else the default scope, as a bundle of the Open Knowledge Format 0.2."""
    from msgspec.structs import replace

    from ipfsmem.exchange import okf
    from ipfsmem.files import exporting
    from ipfsmem.operations.bundles.content import Exported, everything_in, left_out_of, memory_files

    contents = everything_in(view)
    left_out = left_out_of(view, contents)
    if others := tuple(key for key, _ in contents.others()):
        left_out = replace(left_out, copies=(*left_out.copies, *others))
    left_out.refuse(partial)
    bundle = okf.write_bundle(memory_files(contents), contents.events)
    return Exported(files=exporting.export_folder(Path(folder), bundle), left_out=left_out)


@operation(
    summary="Export one scope in another program's format",
    right="read",
    about="part",
    raises=(_NO_SCOPE,),
    audit="export",
    command="",
)
def export_for(
    view: View,
    program: Annotated[
        Literal["initrunner", "initrunner-typed", "infraware"],
        Meta(description="The program whose import reads it."),
    ],
) -> bytes:
    """Return your own memories of one scope, the named one or else the default scope, oldest first, as JSON.

    Pending texts, conflict copies and events are omitted.
    """
    from ipfsmem.exchange.program_forms import in_form
    from ipfsmem.operations.bundles.content import refuse_missing_scope
    from ipfsmem.operations.list import list_
    from ipfsmem.operations.read import read

    refuse_missing_scope(view)
    records = (read.work(view, one.key, counts=False) for one in list_.work(view) if one.own and one.fetched)
    return in_form([one for one in records if one is not None], program)


@operation(
    summary="Export a published version, encrypted",
    right="read",
    about="memory",
    raises=(_NOTHING,),
    audit="export",
    command="",
)
def export_published(
    view: View,
    out: Out,
    root: Annotated[
        str | None, Meta(description="The version; without it, the version published last.")
    ] = None,
) -> VersionExported:
    """Write a published version with all its blocks to a CAR file, encrypted as published."""
    from ipfsmem.open_vault.versions import published_root
    from ipfsmem.operations.bundles.content import VersionExported
    from ipfsmem.published.history import export_car

    replica = view.opened.replica
    cid = published_root(replica, root)
    with replica.reading():
        export_car(replica, cid, out)
    return VersionExported(root=str(cid))


@operation(
    summary="Export the last published version as an encrypted page",
    right="read",
    about="memory",
    raises=(
        "UsageError: the vault is not encrypted.",
        _NOTHING,
        "NotFoundError: the page was not built.",
        "IncompleteError: changes are not published; nothing was written.",
    ),
    audit="export",
    command="",
)
def export_html(view: View, out: Out, *, partial: Partial = False) -> VersionExported:
    """Write the version published last to one HTML file, encrypted as published.

    Any browser opens it with the recovery phrase, a wallet or its key file.
    """
    from ipfsmem.files.rescue_page import read_shell, write_rescue_page
    from ipfsmem.open_vault.versions import published_root
    from ipfsmem.operations.bundles.content import VersionExported, unpublished
    from ipfsmem.published.history import export_car

    opened, replica = view.opened, view.opened.replica
    vault = replica.config.vault
    if not opened.mode.sealed or vault is None:
        raise UsageError(
            f"a memory in mode {opened.mode} needs nothing that opens it",
            hint="As files that any program reads: ipfsmem export --zip FILE",
        )
    shell = read_shell()
    cid = published_root(replica, None)
    if (lacks := unpublished(view)) and not partial:
        raise IncompleteError(f"the export would be incomplete; omitted: {lacks}", hint=lacks.hint)
    with replica.reading():
        write_rescue_page(
            out,
            shell,
            lambda car: export_car(replica, cid, car),
            vault=vault.name,
            key_number=vault.key_number,
            saved=replica.environment.today().isoformat(),
        )
    return VersionExported(root=str(cid))
