"""The operations on linked folders, whose plain files other programs edit, too: list, attach, preview, detach, pause, resume."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from ipfsmem.answer import Answer
from ipfsmem.device.tables.working_copies import BY_HAND
from ipfsmem.errors import IncompleteError, UsageError
from ipfsmem.operation import Cli, Except, Items, View, operation

if TYPE_CHECKING:
    from ipfsmem.files.working_copies import FolderFacts, FolderPreview, WorkingCopies

#: Types of results, imported when an interface shows them.
LATE = {"FolderFacts": "ipfsmem.files.working_copies", "FolderPreview": "ipfsmem.files.working_copies"}

#: A folder to link, or a linked one.
Folder = Annotated[str | Path, Meta(description="The folder."), Cli(metavar="DIR", path=True)]
OfScope = Annotated[
    str | None,
    Meta(description="Scope of the folder (default: the unnamed scope)."),
    Cli(metavar="NAME"),
]
TakeOver = Annotated[
    bool,
    Meta(description="Link the folder even if it is marked as another vault's or is now on another disk."),
]


class FolderList(Items["FolderFacts"], frozen=True, kw_only=True):
    """The linked folders of a vault on this device. It is a sequence of its `folders`."""

    folders: tuple[FolderFacts, ...]


class FolderDetached(Answer, frozen=True, kw_only=True):
    """A folder that was unlinked. `brought_out`: files restored from the set-aside area; `left_alone`: files whose last edits were not
    imported, each with the reason."""

    path: str
    detached: bool = True
    brought_out: list[str]
    left_alone: list[str]

    def raise_if_incomplete(self) -> None:
        """Raise IncompleteError if a last edit was not imported."""
        if self.left_alone:
            raise IncompleteError(
                "the folder is unlinked, but these edits were not imported: " + "; ".join(self.left_alone),
                hint="The files stay as they are: fix them, then link the folder again or import them.",
            )


class FolderPaused(Answer, frozen=True, kw_only=True):
    """A linked folder that is paused: nothing is read from it or written to it."""

    path: str
    paused: bool = True


class FolderResumed(Answer, frozen=True, kw_only=True):
    """A linked folder that is synced again. `kept`: the side whose texts were kept; `put_back`: number of files rewritten from the
    vault."""

    path: str
    kept: Literal["folder", "vault"]
    put_back: int


def copies_of(view: View) -> WorkingCopies:
    """Return the linked folders. Raises UsageError for a vault without plain files."""
    copies = view.opened.files
    if copies is None:
        raise UsageError(f"a vault in mode {view.opened.mode} has no plain files on disk")
    return copies


@operation(
    name="folders.list",
    summary="List the linked folders",
    right="read",
    about="memory",
    command="folder list",
)
def list_(view: View) -> FolderList:
    """List the linked folders with their scope, number of files and state (ok, paused, missing)."""
    copies = view.opened.files
    return FolderList(folders=tuple(copies.folders()) if copies is not None else ())


@operation(
    name="folders.attach",
    summary="Link a folder",
    right="admin",
    about="memory",
    raises=(
        "UsageError: an unsuitable folder, or a vault in mode none; nothing was changed then.",
        "KeyNameError: `scope` is invalid.",
        "StorageError: the folder cannot be read or written.",
    ),
    audit="attach",
    command="folder attach",
    idempotent=True,
)
def attach(
    view: View,
    folder: Folder,
    *,
    scope: OfScope = None,
    take_over: TakeOver = False,
    timeline: Annotated[bool, Meta(description="Also write timeline/, even if it existed before.")] = False,
) -> FolderFacts:
    """Link `folder` to this vault. Anyone who can read this disk can read its files, in every mode.

    ipfsmem imports the files of `folder` as memories and writes the missing memories as files; existing
    files keep their names and bytes. In MEMORY.md, it writes only to one marked block. A folder belongs
    to one scope; a scope can have several folders. A missing folder is created if its parent exists.
    """
    folder_facts = copies_of(view).attach(folder, scope=scope or "", take_over=take_over, timeline=timeline)
    view.opened.changed()
    return folder_facts


@operation(
    name="folders.preview",
    summary="Show what linking a folder would do",
    right="read",
    about="memory",
    raises=("UsageError, KeyNameError, StorageError: as of `folders.attach`.",),
    command="",
)
def preview(
    view: View, folder: Folder, *, scope: OfScope = None, take_over: TakeOver = False
) -> FolderPreview:
    """Show which files of a folder `folders.attach` would import, and how many memories it would write there. Changes nothing."""
    return copies_of(view).preview(folder, scope=scope or "", take_over=take_over)


@operation(
    name="folders.detach",
    summary="Unlink a folder; its files stay",
    right="admin",
    about="memory",
    raises=(
        "NotFoundError: it is not a linked folder of the vault.",
        "StorageError: texts that were set aside would be lost, or the folder does not exist.",
    ),
    audit="detach",
    command="folder detach",
)
def detach(
    view: View,
    folder: Folder,
    *,
    gone: Annotated[bool, Meta(description="Unlink the folder although it does not exist.")] = False,
) -> FolderDetached:
    """Unlink `folder`. Its files stay as they are and are no longer synced.

    Recent edits are read first. A text that was set aside and could not be read becomes a conflict copy.
    """
    done = copies_of(view).detach(folder, gone=gone)
    view.opened.changed()
    return FolderDetached(path=str(folder), brought_out=done.brought_out, left_alone=done.left_alone)


@operation(
    name="folders.pause",
    summary="Pause a linked folder",
    right="admin",
    about="memory",
    raises=("NotFoundError: it is not a linked folder of the vault.",),
    audit="folders pause",
    command="folder pause",
    idempotent=True,
)
def pause(
    view: View,
    folder: Folder,
    *,
    why: Annotated[str, Meta(description="Reason, shown in the list."), Except(("cli",))] = BY_HAND,
) -> FolderPaused:
    """Stop syncing `folder` until it is resumed, for example before a checkout, a search and replace or a restore."""
    copies_of(view).pause(folder, why)
    return FolderPaused(path=str(folder))


@operation(
    name="folders.resume",
    summary="Resume a paused folder, keeping its texts or the vault's",
    right="admin",
    about="memory",
    raises=(
        "NotFoundError: it is not a linked folder of the vault.",
        "StorageError: the folder does not exist, or a file in it could not be written.",
        "IncompleteError: a file could not be imported; the others were.",
    ),
    audit="folders resume",
    command="folder resume",
)
def resume(
    view: View,
    folder: Folder,
    *,
    keep: Annotated[Literal["folder", "vault"], Meta(description="Side to keep where they differ.")],
) -> FolderResumed:
    """Resume syncing a paused folder.

    With `keep` folder, each of its files becomes an edit, even one with an older text; missing files
    follow the usual rule for deletions. With `keep` vault, the memories overwrite every file and
    restore missing ones, and an unknown text becomes a conflict copy.
    """
    copies, restored = copies_of(view), 0
    if keep == "vault":
        restored = copies.put_back(folder)
        view.opened.changed()
    else:
        try:
            copies.accept(folder)
        finally:
            view.opened.changed()
    return FolderResumed(path=str(folder), kept=keep, put_back=restored)
