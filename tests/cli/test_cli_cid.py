"""`ipfsmem format cid`."""

from __future__ import annotations

from pathlib import Path

from ipfsmem.content.car import read_car
from tests.support.cli_lab import Cli, program

#: The CID of "hello\n" as a raw block, as computed by other IPFS programs.
HELLO = "bafkreicysg23kiwv34eg2d7qweipxwosdo2py4ldv42nbauguluen5v6am"


def test_cid_of_files_and_folders_is_that_of_ipfs(bare: Cli, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hello\n")
    assert bare.ok("format", "cid", str(tmp_path / "a")).out == HELLO + "\n"
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_bytes(b"hello\n")
    found = bare.ok("format", "cid", str(folder), "--json").json
    assert (found["files"], found["folders"], found["bytes"], found["car_bytes"]) == (1, 1, 6, None)


def test_car_file_has_the_printed_root_and_the_blocks(bare: Cli, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hello\n")
    car = tmp_path / "out.car"
    said = bare.ok("format", "cid", str(tmp_path / "a"), "--car", str(car), "--json").json
    assert said["car_bytes"] == car.stat().st_size
    with car.open("rb") as file:
        reader = read_car(file)
        assert [str(root) for root in reader.roots] == [HELLO]
        assert [data for _, data in reader] == [b"hello\n"]
    piped = program("format", "cid", str(tmp_path / "a"), "--car", "-")
    assert piped.stdout == car.read_bytes() and piped.stderr.decode().strip() == HELLO


def test_refused_cid_call_leaves_no_car_file(bare: Cli, tmp_path: Path) -> None:
    bare.fails(4, "format", "cid", str(tmp_path / "missing"))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to("a")
    bare.fails(2, "format", "cid", str(folder), "--car", str(tmp_path / "out.car"))
    bare.fails(
        30,
        "format",
        "cid",
        str(tmp_path / "no-settings.toml").replace("no-settings.toml", ""),
        "--car",
        "/nonexistent/x.car",
    )
    assert not list(tmp_path.glob("out.car*"))
