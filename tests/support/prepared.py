"""Vaults that many tests start from: each kind is created once per run with user commands, then copied.

Creating one takes a tenth of a second or more, copying it a hundredth of that. A copy names its own paths,
and its device does not detect a copy. tests/cli/test_cli_init.py tests the creation itself."""

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

#: The parts of each kind of vault: a first device (`home`), for some a second one, and a stick for those that
#: publish.
FIRST, SECOND, STICK = "home", "second", "stick"
_LABELS = {FIRST: "first", SECOND: "second"}
_made: dict[str, Path] = {}


def local(home: Path) -> None:
    """Create a vault in mode `local`."""
    _copy("local", {FIRST: home}, lambda cli: cli(FIRST).ok("init", "--mode", "local"))


def public(home: Path, stick: Path) -> None:
    """Create an unpublished vault in mode `ipfs` of a raw-key wallet, with the folder `stick` as its
    provider."""
    _copy(
        "ipfs", {FIRST: home, STICK: stick},
        lambda cli: cli(FIRST).ok("init", "--mode", "ipfs", "--unprotected-keys", key=KEY),
    )  # fmt: skip


def sealed(home: Path, stick: Path) -> None:
    """Create an encrypted vault of a raw-key wallet, published to the folder `stick`."""
    _copy("sealed", {FIRST: home, STICK: stick}, lambda cli: _enrol(cli, FIRST))


def two(first: Path, second: Path, stick: Path) -> None:
    """Create the encrypted vault on two devices. The first does not know of the second yet."""
    _copy(
        "two", {FIRST: first, SECOND: second, STICK: stick},
        lambda cli: (_enrol(cli, FIRST), _enrol(cli, SECOND)),
    )  # fmt: skip


def clash(first: Path, second: Path, stick: Path) -> None:
    """Create the vault on two devices that both see a conflict in `tone`."""
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
    """Adjust the paths and the recorded place of a copied vault."""
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
