"""Damages stored data: one byte of a published block, or of a device's database. Contains no tests."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.content.fetch import drive
from ipfsmem.content.reader import Reader
from ipfsmem.memory import Memory
from tests.support.cli_lab import Cli


def node_blocks(device: Cli) -> dict[str, bytes]:
    """Return the stored bytes of the state nodes of the device's last published root, by path."""
    with Memory.load(home=device.home) as memory:
        root = memory.status().root
        assert root is not None
        db = memory.replica.db

        def get(cids: list[CID]) -> dict[CID, bytes]:
            return {cid: data for cid in cids if (data := db.block(cid.digest)) is not None}

        files = drive(Reader().walk(parse_cid(root)), get)
        return {path: get([cid])[cid] for path, cid in files.items() if path.startswith("s/")}


def damage(stick: Path, block: bytes) -> None:
    """Change one byte of every stored copy of a block in the folder."""
    hits = 0
    for pack in (stick / "packs").glob("*.car"):
        data = bytearray(pack.read_bytes())
        at = data.find(block)
        if at >= 0:
            data[at + len(block) // 2] ^= 1
            pack.write_bytes(data)
            hits += 1
    assert hits


def damage_state(device: Cli, stick: Path) -> None:
    """Damage the top node of the state of the device's last published root."""
    damage(stick, node_blocks(device)["s/top.ipm"])


def damage_text(device: Cli, stick: Path, key: str) -> None:
    """Damage the stored text of one memory in the folder."""
    with Memory.load(home=device.home) as memory, memory.replica.reading():
        (value,) = memory.replica.store.entry(f"m/{key}").values()
        stored = memory.replica.db.block(bytes.fromhex(value.loc.sha)) if value.loc is not None else None
    assert stored is not None
    damage(stick, stored)


def damage_root(device: Cli, stick: Path) -> None:
    """Damage the folder block of the device's last published root."""
    with Memory.load(home=device.home) as memory:
        root = memory.status().root
        stored = memory.replica.db.block(parse_cid(root).digest) if root is not None else None
    assert stored is not None
    damage(stick, stored)


def flip(home: Path, query: str, *values: object, at: float = 0.5) -> None:
    """Flip one bit of a stored value. `query` ends with the table and row, for instance "row FROM journal
    WHERE seq=?"; `at`: position in the value, 0 to 1."""
    column, _, where = query.partition(" FROM ")
    table, _, condition = where.partition(" WHERE ")
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db, db:
        (stored,) = db.execute(f"SELECT {query}", values).fetchone()
        data = bytearray(stored)
        data[int(at * (len(data) - 1))] ^= 4
        db.execute(f"UPDATE {table} SET {column}=? WHERE {condition}", (bytes(data), *values))


def flip_value(home: Path, name: str, *, at: float = 0.5) -> None:
    """Flip one bit of a value of `meta`, in every place where it is stored."""
    for place in (name, f"copy of {name}"):
        with contextlib.suppress(TypeError):  # most are stored once
            flip(home, "value FROM meta WHERE name=?", place, at=at)


def change_rows(home: Path, *statements: str) -> None:
    """Change and delete rows of the database."""
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db, db:
        for statement in statements:
            db.execute(statement)
