"""`ipfsmem format inspect`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.content.car import read_car
from tests.support.cli_lab import KEY, OTHER_KEY, Cli


@pytest.fixture
def published(sealed: Cli) -> tuple[Cli, Path]:
    """A device, and the CAR of its published version."""
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("timeline", "add", "waved")
    sealed.ok("sync")
    car = sealed.home.parent / "root.car"
    sealed.ok("export", "--car", str(car))
    return sealed, car


def test_inspect_without_keys_shows_public_fields(published: tuple[Cli, Path]) -> None:
    cli, car = published
    found = cli.ok("format", "inspect", str(car), "--json").json
    root = found["root"]
    assert root["kind"] == "sealed memory" and root["keyring"]["vault"] == "3973bff87388964db243992eeb7c6506"
    assert root["keyring"]["members"] is None and "commit" not in root and "state" not in root
    assert "tone" not in cli.ok("format", "inspect", str(car)).out


@pytest.mark.parametrize("way", ["vault_name", "wallet"])
def test_inspect_with_key_shows_sealed_fields(published: tuple[Cli, Path], way: str) -> None:
    cli, car = published
    found = cli.ok(
        "format",
        "inspect",
        str(car),
        "--json",
        *(["-n", "default"] if way == "vault_name" else []),
        key=KEY if way == "wallet" else "",
    ).json
    root = found["root"]
    assert {m["label"] for m in root["keyring"]["members"]} == {"first", "wallet", "recovery words"}
    assert (
        root["commit"]["signature"] == "holds"
        and root["commit"]["device"] == cli.ok("status", "--json").json["device"]
    )
    assert [m["key"] for m in root["state"]["memories"]] == ["tone"] and root["state"][
        "timeline_segments"
    ] == 1


def test_inspect_with_a_foreign_key_shows_no_sealed_fields(published: tuple[Cli, Path]) -> None:
    cli, car = published
    found = cli.ok("format", "inspect", str(car), "--json", key=OTHER_KEY).json
    assert found["root"]["keyring"]["members"] is None and "state" not in found["root"]


def test_inspect_recognises_each_kind_of_file(
    published: tuple[Cli, Path], stick: Path, tmp_path: Path
) -> None:
    cli, car = published
    kinds: dict[str, int] = {}
    texts = []
    with car.open("rb") as file:
        for number, (_, data) in enumerate(read_car(file)):
            path = tmp_path / f"block{number}"
            path.write_bytes(data)
            if data[:4] != b"IPM1" and data[:1] != b"{":
                continue
            open_ = cli.ok("format", "inspect", str(path), "--json", "-n", "default").json
            closed = cli.ok("format", "inspect", str(path), "--json").json
            assert "text" not in closed and "type" not in closed
            kinds[open_.get("type", open_["kind"])] = kinds.get(open_.get("type", open_["kind"]), 0) + 1
            texts.append(open_.get("text", ""))
    assert kinds == {"key ring": 1, "commit": 1, "memory": 1, "timeline segment": 1, "state node": 1}
    assert any("direct" in text for text in texts)
    for record in (stick / "names").iterdir():
        found = cli.ok("format", "inspect", str(record), "--json").json
        assert (
            found["kind"] == "name record"
            and found["signature"] == "holds"
            and found["value"][:4] in ("/ipf", "/ipn")
        )


def test_inspect_of_a_provider_folder_lists_roots_and_names(published: tuple[Cli, Path], stick: Path) -> None:
    cli, _ = published
    closed = cli.ok("format", "inspect", str(stick), "--json").json
    assert {r["kind"] for r in closed["roots"]} == {"sealed memory", "anchor (a ring alone)"}
    assert not any("device" in r for r in closed["roots"]) and len(closed["names"]) >= 2
    opened = cli.ok("format", "inspect", str(stick), "--json", "-n", "default").json
    assert {r.get("number") for r in opened["roots"] if r["kind"] == "sealed memory"} == {1, 2}


def test_inspect_shows_a_plain_vault_and_an_export(bare: Cli, stick: Path, tmp_path: Path) -> None:
    bare.ok("init", "--mode", "ipfs", "--yes-public", "--unprotected-keys", key=KEY)
    bare.ok("write", "tone", "--body", "direct")
    bare.ok("sync")
    bare.ok("export", "--car", str(tmp_path / "plain.car"))
    found = bare.ok("format", "inspect", str(tmp_path / "plain.car"), "--json").json["root"]
    assert found["kind"] == "plain memory" and [m["key"] for m in found["state"]["memories"]] == ["tone"]
    assert found["commit"]["signature"] == "holds"
    bare.ok("export", "--out", str(tmp_path / "blob.json"))
    assert [
        m["key"] for m in bare.ok("format", "inspect", str(tmp_path / "blob.json"), "--json").json["memories"]
    ] == ["tone"]


def test_inspect_refuses_damaged_files(published: tuple[Cli, Path], tmp_path: Path) -> None:
    cli, car = published
    data = bytearray(car.read_bytes())
    data[-20] ^= 1
    (tmp_path / "flipped.car").write_bytes(data)
    cli.fails(13, "format", "inspect", str(tmp_path / "flipped.car"))
    (tmp_path / "cut.car").write_bytes(data[: len(data) // 2])
    assert cli("format", "inspect", str(tmp_path / "cut.car")).code in (10, 13)
    for name, content in (
        ("noise", b"\x00\xff" * 40),
        ("json", b'{"a":1}'),
        ("empty", b""),
        ("half", b'{"v":1,"vault'),
    ):
        (tmp_path / name).write_bytes(content)
        cli.fails(10, "format", "inspect", str(tmp_path / name))
    cli.fails(4, "format", "inspect", str(tmp_path / "missing"))
    (tmp_path / "folder").mkdir()
    cli.fails(2, "format", "inspect", str(tmp_path / "folder"))
    (tmp_path / "ring.json").write_bytes(b'{"body":"","open":[],"v":9,"vault":"00"}')
    assert cli("format", "inspect", str(tmp_path / "ring.json")).code in (10, 25)
