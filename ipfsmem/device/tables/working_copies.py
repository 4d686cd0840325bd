"""The table `copies`: the linked folders of this vault.

In a sealed vault everything about their location and content is sealed in the column `lines`.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from ipfsmem.device.connection import Connection, damaged, typed
from ipfsmem.device.tables.row_cipher import RowCipher
from ipfsmem.errors import OpenError

#: The reason of a pause that a person requested.
BY_HAND = "you asked for it"
#: A pause of the folder of a project: texts written there may belong to another project.
REPLACED = "another project lies where its project was connected"


class LinkedFolder(msgspec.Struct, frozen=True, array_like=True):
    """A linked folder: it belongs to one scope of this vault."""

    #: 32 hex digits, also in the folder's marker.
    id: str
    #: Absolute; "" for `memory/` next to the database, which moves with it.
    path: str
    scope: str
    #: Of the folder: another inode at the same path is another folder. None until it was created.
    inode: int | None
    #: Whether `timeline/` is written there.
    timeline: bool
    #: The key of the code in the names of files set aside.
    secret: bytes
    #: SHA-256 of the `.git/HEAD` under which the files were last read; empty if absent.
    head: bytes = b""
    #: Why the folder is neither read nor written; empty while it is not paused.
    paused: str = ""
    #: The index lines that were last written to MEMORY.md, where others write that file too.
    lines: bytes = b""
    #: The state that the files show.
    in_step: bytes = b""
    #: Times and numbers of recent deletes, as JSON.
    vanished: bytes = b""

    @property
    def shared_index(self) -> bool:
        """Whether other programs write MEMORY.md too: in every folder except our own."""
        return bool(self.path)


#: The table has a column for each field, and no other.
_COLUMNS = ", ".join(LinkedFolder.__struct_fields__)
#: Stored in place of the inode of a folder that was not created yet.
_NOT_MADE = -1


class _SealedFields(msgspec.Struct, array_like=True):
    """The fields that are sealed in a sealed memory."""

    path: str
    scope: str
    secret: bytes
    head: bytes
    paused: str
    lines: bytes
    vanished: bytes


@functools.cache
def _rows() -> msgspec.msgpack.Decoder[_SealedFields]:
    """Return the decoder, created on first use: most vaults have no linked folder."""
    return msgspec.msgpack.Decoder(_SealedFields)


class Copies:
    """The table of linked folders. Writes must be inside a transaction."""

    def __init__(self, db: Connection, cover: RowCipher | None = None) -> None:
        """`cover`: the cipher of the rows in a sealed vault, else None."""
        self._db = db
        self._cover = cover
        #: The last opened content of each row: an index may have many lines, and each read of a memory needs the row.
        self._opened: dict[str, tuple[bytes, _SealedFields]] = {}

    def all(self) -> list[LinkedFolder]:
        """Return every linked folder of this vault on this device, our own folder first."""
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM copies").fetchall()  # noqa: S608
        return sorted((self._read(row) for row in rows), key=lambda copy: copy.path)

    def get(self, id: str) -> LinkedFolder | None:
        """Return one of them."""
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM copies WHERE id=?",  # noqa: S608
            (id,),
        ).fetchone()
        return None if row is None else self._read(row)

    def _read(self, row: Any) -> LinkedFolder:
        fields = dict(zip(LinkedFolder.__struct_fields__, row, strict=True))
        fields["timeline"] = bool(fields["timeline"])
        if fields["inode"] == _NOT_MADE:
            fields["inode"] = None
        if self._cover is not None:
            fields |= msgspec.structs.asdict(self._open(self._cover, fields["id"], fields["lines"]))
        return typed(self._db, list(fields.values()), LinkedFolder)

    def _open(self, cover: RowCipher, id: str, stored: bytes) -> _SealedFields:
        cached = self._opened.get(id)
        if cached is None or cached[0] != stored:
            try:
                cached = stored, _rows().decode(cover.open_row(stored))
            except (OpenError, msgspec.DecodeError, TypeError):
                raise damaged(self._db.path, "the row of a linked folder cannot be read") from None
            self._opened[id] = cached
        return cached[1]

    def put(self, copy: LinkedFolder) -> None:
        """Store a row."""
        stored = copy if copy.inode is not None else msgspec.structs.replace(copy, inode=_NOT_MADE)
        if self._cover is not None:
            hidden = _SealedFields(**{name: getattr(copy, name) for name in _SealedFields.__struct_fields__})
            nothing = _SealedFields(
                "", "", b"", b"", "", self._cover.seal_row(msgspec.msgpack.encode(hidden)), b""
            )
            stored = msgspec.structs.replace(stored, **msgspec.structs.asdict(nothing))
        values = msgspec.structs.astuple(stored)
        marks = ",".join("?" * len(values))
        self._db.execute(f"INSERT OR REPLACE INTO copies ({_COLUMNS}) VALUES ({marks})", values)  # noqa: S608

    def change(self, id: str, **fields: Any) -> None:
        """Change some fields of a row."""
        if self._cover is not None and not fields.keys().isdisjoint(_SealedFields.__struct_fields__):
            row = self.get(id)
            if row is not None:
                self.put(msgspec.structs.replace(row, **fields))
            return
        names = ", ".join(f"{name}=?" for name in fields)
        self._db.execute(f"UPDATE copies SET {names} WHERE id=?", (*fields.values(), id))  # noqa: S608

    def drop(self, id: str) -> None:
        """Forget a linked folder and everything known about it."""
        from ipfsmem.device.tables import tracked_files

        tracked_files.forget_copy(self._db, id)
        self._db.execute("DELETE FROM copies WHERE id=?", (id,))
