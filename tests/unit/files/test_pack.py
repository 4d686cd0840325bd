"""Packing a folder: the same CIDs as in memory, a reproducible CAR, and clear errors."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.content.car import read_car
from ipfsmem.content.reader import Reader, drive, from_mapping
from ipfsmem.errors import FormatError, NotFoundError, StorageError, UsageError
from ipfsmem.files import pack as pack_module
from ipfsmem.files.pack import pack_tree
from tests.interop import trees

VECTORS = {vector["name"]: vector for vector in trees.load()["trees"]}
SMALL = [
    "empty_file",
    "empty_folder",
    "small_file",
    "chunk_exact",
    "chunk_plus_one",
    "nested",
    "unicode_names",
]


@pytest.mark.parametrize("name", [*SMALL, "hamt_nested"])
def test_packed_folders_have_the_cids_of_the_vectors(name: str, tmp_path: Path) -> None:
    vector: dict[str, Any] = VECTORS[name]
    trees.write(vector, tmp_path / "t")
    out = io.BytesIO()
    packed = pack_tree(tmp_path / "t", out)
    files = {path: data for path, data in trees.files(vector).items() if data is not None}
    assert str(packed.root) == vector["cid"] == str(pack_tree(str(tmp_path / "t")).root)
    assert packed.files == len(files)
    assert packed.size == sum(len(data) for data in files.values())
    assert packed.car_size == len(out.getvalue())
    car = read_car(out.getvalue())
    assert car.roots == (packed.root,)
    blocks = list(car)
    assert len(dict(blocks)) == len(blocks), "each block once"
    assert drive(Reader().read_tree(packed.root), from_mapping(dict(blocks))) == files


def test_packing_a_tree_is_reproducible(tmp_path: Path) -> None:
    cars = []
    for at in ("a", "b"):
        # Written in another order, so that the folder lists them differently.
        names = [f"{n}.md" for n in range(50)]
        for name in names if at == "a" else reversed(names):
            (tmp_path / at / "sub").mkdir(parents=True, exist_ok=True)
            (tmp_path / at / "sub" / name).write_text(name)
        out = io.BytesIO()
        pack_tree(tmp_path / at, out)
        cars.append(out.getvalue())
    assert cars[0] == cars[1]
    contents = [block.decode() for cid, block in read_car(cars[0]) if cid.codec == 0x55]
    assert contents == sorted(names), "in the order of names, whatever the disk lists"


def test_packing_to_a_pipe_writes_the_same_car(tmp_path: Path) -> None:
    trees.write(VECTORS["nested"], tmp_path / "t")
    expected = io.BytesIO()
    pack_tree(tmp_path / "t", expected)

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.data = b""

        def writable(self) -> bool:
            return True

        def write(self, data: Any, /) -> int:
            self.data += bytes(data)
            return len(data)

    pipe = Pipe()
    packed = pack_tree(tmp_path / "t", pipe)  # type: ignore[arg-type]
    assert pipe.data == expected.getvalue() and packed.car_size == len(pipe.data)


def test_car_is_written_at_the_current_file_position(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    out = io.BytesIO(b"before")
    out.seek(6)
    pack_tree(tmp_path / "f", out)
    out.write(b"after")
    assert out.getvalue().startswith(b"before") and out.getvalue().endswith(b"after")
    assert len(list(read_car(out.getvalue()[6:-5]))) == 1


def test_missing_path_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "no", tmp_path / "f" / "below"):
        (tmp_path / "f").write_text("")
        with pytest.raises(NotFoundError, match="no file or folder"):
            pack_tree(path)


def test_symbolic_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t" / "sub").mkdir(parents=True)
    (tmp_path / "target").write_text("secret")
    (tmp_path / "t" / "sub" / "link").symlink_to(tmp_path / "target")
    with pytest.raises(UsageError, match="sub/link is a symbolic link"):
        pack_tree(tmp_path / "t")
    with pytest.raises(UsageError, match="symbolic link"):
        pack_tree(tmp_path / "t" / "sub" / "link")
    (tmp_path / "t" / "sub" / "link").unlink()
    (tmp_path / "t" / "sub" / "link").symlink_to(tmp_path / "t")
    with pytest.raises(UsageError, match="symbolic link"):
        pack_tree(tmp_path / "t")


def test_pipes_are_refused_without_hanging(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        pack_tree(tmp_path)
    with pytest.raises(UsageError, match="neither"):
        pack_tree(tmp_path / "pipe")


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS refuses such names itself")
def test_names_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.md")).write_text("")
    with pytest.raises(FormatError, match=r"bad\\xff.md is not valid UTF-8"):
        pack_tree(tmp_path)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_file_that_disappears_while_packing_is_named(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("a")
    if what == "file":
        (tmp_path / "b").write_text("b")
    else:
        (tmp_path / "b").mkdir()
    real = pack_module._Packer._file

    def file(self: Any, path: bytes) -> tuple[bytes, int]:
        gone = tmp_path / "b"
        if gone.is_dir():
            gone.rmdir()
        elif gone.exists():
            gone.unlink()
        return real(self, path)

    monkeypatch.setattr(pack_module._Packer, "_file", file)
    with pytest.raises(StorageError, match="b vanished while"):
        pack_tree(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0)
    with pytest.raises(StorageError, match="secret cannot be read"):
        pack_tree(tmp_path)


def test_file_replaced_by_a_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "f").write_text("x")
    (tmp_path / "secret").write_text("secret")
    real = pack_module._Packer._file

    def file(self: Any, path: bytes) -> tuple[bytes, int]:
        (tmp_path / "t" / "f").unlink()
        (tmp_path / "t" / "f").symlink_to(tmp_path / "secret")
        return real(self, path)

    monkeypatch.setattr(pack_module._Packer, "_file", file)
    with pytest.raises(StorageError, match="f cannot be read"):
        pack_tree(tmp_path / "t")


def test_car_file_itself_is_not_packed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    with (tmp_path / "out.car").open("wb") as out, pytest.raises(UsageError, match=r"out\.car is the CAR"):
        pack_tree(tmp_path, out)


def test_deeply_nested_folders_are_packed(tmp_path: Path) -> None:
    """Deeper than the recursion limit."""
    code = (
        "import os, sys\n"
        "from ipfsmem.files.pack import pack_tree\n"
        "sys.setrecursionlimit(150)\n"
        "for _ in range(400):\n    os.mkdir('d'); os.chdir('d')\n"
        "open('f', 'w').close()\n"
        "os.chdir(sys.argv[1])\n"
        "print(pack_tree('.').folders)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "401"


@pytest.mark.parametrize("room", [0, 60, 10_000])
def test_full_disk_is_reported(room: int, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(bytes(20_000))

    class Full(io.BytesIO):
        def write(self, data: Any, /) -> int:
            if self.tell() + len(data) > room:
                raise OSError(28, "No space left on device")
            return super().write(data)

    out = Full()
    with pytest.raises(StorageError, match="CAR could not be written: No space left"):
        pack_tree(tmp_path, out)
    with pytest.raises(FormatError):
        read_car(out.getvalue())


def test_failed_packing_leaves_no_valid_car(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a").write_text("a")
    (tmp_path / "t" / "b").symlink_to("a")
    out = io.BytesIO()
    with pytest.raises(UsageError):
        pack_tree(tmp_path / "t", out)
    with pytest.raises(FormatError):
        read_car(out.getvalue())
