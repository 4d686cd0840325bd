"""Memories that many tests begin with: each kind is made once in a run by the commands that a user types, then copied.

To make one takes a tenth of a second and more, most of it signatures of a wallet; to copy it, a hundredth of that. In a copy
everything is as if it had been made there: the paths that it names are its own, and the device does not take itself for a copy.
How memories are made, tests/cli/test_cli_init.py shows.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from ipfsmem.device import identity
from ipfsmem.device.connection import Connection
from ipfsmem.device.tables import meta
from tests.support.cli_lab import KEY, Cli

#: What the memory of a kind is made of: a first device (`home`), for some a second one, and a stick for those that publish.
FIRST, SECOND, STICK = "home", "second", "stick"
_LABELS = {FIRST: "first", SECOND: "second"}
_made: dict[str, Path] = {}


def local(home: Path) -> None:
    """A memory in mode `local`."""
    _copy("local", {FIRST: home}, lambda cli: cli(FIRST).ok("init", "--mode", "local"))


def public(home: Path, stick: Path) -> None:
    """A memory in mode `ipfs` of a raw-key wallet, not yet published, with the folder `stick` as its provider."""
    _copy(
        "ipfs", {FIRST: home, STICK: stick},
        lambda cli: cli(FIRST).ok("init", "--mode", "ipfs", "--unprotected-keys", key=KEY),
    )  # fmt: skip


def sealed(home: Path, stick: Path) -> None:
    """An encrypted memory of a raw-key wallet, published to the folder `stick`."""
    _copy("sealed", {FIRST: home, STICK: stick}, lambda cli: _enrol(cli, FIRST))


def two(first: Path, second: Path, stick: Path) -> None:
    """The same on two devices. The first does not know of the second yet."""
    _copy(
        "two", {FIRST: first, SECOND: second, STICK: stick},
        lambda cli: (_enrol(cli, FIRST), _enrol(cli, SECOND)),
    )  # fmt: skip


def clash(first: Path, second: Path, stick: Path) -> None:
    """The same, and both see a conflict in `tone`."""
    _copy("clash", {FIRST: first, SECOND: second, STICK: stick}, _disagree)


def _disagree(cli: Callable[[str], Cli]) -> None:
    one, other = cli(FIRST), cli(SECOND)
    for name in (FIRST, SECOND):
        _enrol(cli, name)
    one.ok("write", "tone", "--body", "old")
    one.ok("sync")
    other.ok("sync")
    one.ok("write", "tone", "--body", "from the first")
    other.ok("write", "tone", "--body", "from the second")
    for device in (one, other, one):
        device.ok("sync")


def _enrol(cli: Callable[[str], Cli], name: str) -> None:
    cli(name).ok("init", "--unprotected-keys", "--label", _LABELS[name], key=KEY)


def _copy(kind: str, to: Mapping[str, Path], make: Callable[[Callable[[str], Cli]], object]) -> None:
    if kind not in _made:
        base = Path(tempfile.mkdtemp(prefix=f"{kind}-"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("IPFSMEM_CONFIG", os.devnull)
            patch.delenv("IPFSMEM_PROVIDER", raising=False)
            if STICK in to:
                (base / STICK).mkdir()
                patch.setenv("IPFSMEM_PROVIDER", str(base / STICK))
            make(lambda name: Cli(base / name, patch))
        _made[kind] = base
    base = _made[kind]
    for name, target in to.items():
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(base / name, target)
    for name, target in to.items():
        if name != STICK:
            settle(target / "default", {str(base / other): str(path) for other, path in to.items()})


def settle(folder: Path, paths: Mapping[str, str]) -> None:
    """A memory's folder that was copied names its own paths, and knows its place."""
    settings = folder / "ipfsmem.json"
    settings.write_text(_renamed(settings.read_text("utf-8"), paths), "utf-8")
    database = folder / "state.db"
    with closing(Connection(database, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous=OFF")
        db.execute("BEGIN")
        for name, value in list(meta.everything(db)):
            assert value is not None
            text = value.decode("latin-1")
            if text != (renamed := _renamed(text, paths)):
                meta.put(db, name, renamed.encode("latin-1"))
        for table in ("placed", "presence"):
            for (provider,) in db.execute(f"SELECT DISTINCT provider FROM {table}").fetchall():
                db.execute(
                    f"UPDATE {table} SET provider=? WHERE provider=?", (_renamed(provider, paths), provider)
                )
        meta.put(db, meta.PLACE, identity.place(database).encode())
        db.execute("COMMIT")


def _renamed(text: str, paths: Mapping[str, str]) -> str:
    for old, new in paths.items():
        text = text.replace(old, new)
    return text
