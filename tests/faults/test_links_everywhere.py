"""Where others can create files, no link is followed and no pipe is awaited."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from ipfsmem.device.creation import _holds_memory
from ipfsmem.errors import IpfsmemError, StorageError
from ipfsmem.http.psa_requests import PinRequests
from ipfsmem.memories import containers, importing
from ipfsmem.memory import Memory
from tests.support.cli_lab import Cli

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links and pipes")
T = TypeVar("T")
CIDS = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"


def in_time(work: Callable[[], T], seconds: float = 15) -> T:
    """Return or raise the outcome of `work`; fail if it waits."""
    found: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # passed on
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it waits"
    if errors:
        raise errors[0]
    return found[0]


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_bytes(b"somebody else's")
    return path


@pytest.mark.parametrize("name", ["lock", "sync.lock", "state.db", "device.key", "ipfsmem.json"])
@pytest.mark.parametrize("what", ["link", "link to nothing", "pipe"])
def test_link_or_pipe_in_place_of_a_vault_file_is_refused(
    tmp_path: Path, victim: Path, name: str, what: str
) -> None:
    home = tmp_path / "home"
    with Memory.create("m", "encrypted-ipfs", passphrase=False, home=home) as memory:
        memory.write("tone", "direct")
    path = home / "m" / name
    path.unlink(missing_ok=True)
    plant(path, what, victim)

    def use() -> None:
        with Memory.load("m", home=home) as memory:
            memory.read("tone")
            asyncio.run(memory.sync(str(tmp_path / "nowhere")))

    with pytest.raises(IpfsmemError):
        in_time(use)
    assert victim.read_bytes() == b"somebody else's" and not (tmp_path / "nothing").exists()


def plant(path: Path, what: str, victim: Path) -> None:
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(victim if what == "link" else victim.with_name("nothing"))


@pytest.mark.parametrize("what", ["link", "link to nothing", "pipe"])
def test_link_in_place_of_a_new_database_is_refused(tmp_path: Path, victim: Path, what: str) -> None:
    folder = tmp_path / "home" / "m"
    folder.mkdir(parents=True)
    plant(folder / "state.db", what, victim)
    with pytest.raises(IpfsmemError):
        in_time(lambda: Memory.create("m", "local", home=tmp_path / "home"))
    with pytest.raises(StorageError):
        in_time(lambda: _holds_memory(folder / "state.db"))
    assert victim.read_bytes() == b"somebody else's" and not (tmp_path / "nothing").exists()


def test_link_in_place_of_the_request_folder_is_not_followed(tmp_path: Path, victim: Path) -> None:
    outside, served = tmp_path / "outside", tmp_path / "served"
    outside.mkdir()
    served.mkdir()
    theirs = outside / f"{'0' * 32}.json"
    theirs.write_bytes(b"{}")
    (served / "psa").symlink_to(outside, target_is_directory=True)
    requests = PinRequests(served / "psa")
    for work in (
        lambda: requests.add(CIDS, "n", (), {}, 1),
        lambda: requests.drop("0" * 32),
        lambda: requests.all(),
        lambda: requests.get("0" * 32),
    ):
        with pytest.raises(StorageError, match="link"):
            in_time(work)
    assert [path.name for path in outside.iterdir()] == [theirs.name]
    (served / "psa").unlink()
    made = requests.add(CIDS, "n", (), {}, 1)
    for n, what in enumerate(("link", "pipe")):
        plant(served / "psa" / f"{str(n) * 32}.json", what, victim)
    assert in_time(lambda: PinRequests(served / "psa").all()) == [made]
    assert (served / "psa" / f"{made.id}.json").stat().st_mode & 0o777 == 0o600


def test_folder_replaced_during_an_import_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, private = tmp_path / "folder", tmp_path / "private"
    (folder / "inner").mkdir(parents=True)
    private.mkdir()
    (folder / "inner" / "tone.md").write_text("direct\n")
    (private / "tone.md").write_text("a private text\n")
    real = containers.read_file

    def swapped(path: str, limit: int, **more: int | None) -> bytes | None:
        if not (folder / "inner").is_symlink():
            (folder / "inner").rename(folder / "away")
            (folder / "inner").symlink_to(private, target_is_directory=True)
        return real(path, limit, **more)

    monkeypatch.setattr(containers, "read_file", swapped)
    part = importing.read_path(folder)[""]
    (text,) = part.blob.files.values()
    assert text.endswith(b"\n\ndirect\n")


def test_hostile_provider_folder_is_inspected_safely(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = Cli(tmp_path / "home", monkeypatch)
    folder = tmp_path / "stick"
    for part in ("packs", "pins", "names"):
        (folder / part).mkdir(parents=True)
        for n, what in enumerate(("link", "link to nothing", "pipe")):
            ending = {"packs": "car", "pins": "json", "names": "ipns-record"}[part]
            plant(folder / part / f"{n}.{ending}", what, victim)
    assert in_time(lambda: bare.ok("format", "inspect", str(folder), "--json")).json["packs"] == []
    (folder / "pins" / "0.json").unlink()
    for path in (folder / "pins").iterdir():
        path.unlink()
    (folder / "pins").rmdir()
    (folder / "pins").symlink_to(tmp_path, target_is_directory=True)
    assert in_time(lambda: bare.fails(30, "format", "inspect", str(folder))) is not None
