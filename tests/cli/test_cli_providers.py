"""`ipfsmem providers`."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cli_lab import KEY, Cli


def test_two_providers_and_back(sealed: Cli, stick: Path, tmp_path: Path) -> None:
    usb = tmp_path / "usb"
    usb.mkdir()
    sealed.ok("providers", "add", str(usb))
    first, second = sealed.ok("providers", "list", "--json").json
    assert (first["spec"], first["kind"], second["spec"]) == (str(stick), "directory", str(usb))
    assert first["capabilities"]["partial_car"] and not first["capabilities"]["dag"]
    assert first["root"] and first["at"] > 0 and second["root"] is None
    sealed.ok("write", "tone", "--body", "direct")
    root = sealed.ok("sync", "--json").json["root"]
    assert [one["root"] for one in sealed.ok("providers", "list", "--json").json] == [root, root]
    assert list((usb / "packs").glob("*.car"))
    assert str(usb) not in sealed.ok("providers", "remove", str(usb)).out
    (line,) = sealed.ok("providers", "list").out.splitlines()
    kind, spec, can, last, when = line.split("\t")
    assert (kind, spec) == ("directory", str(stick)) and "names" in can.split() and "dag" not in can.split()
    assert last[:6] == root[:6] and when.startswith("20")
    sealed.fails(3, "providers", "remove", str(usb))
    sealed.fails(3, "providers", "add", "nonsense")


def test_moved_the_wallet_finds_it_at_the_new_place(
    sealed: Cli, stick: Path, tmp_path: Path, monkeypatch: object
) -> None:
    usb = tmp_path / "usb"
    usb.mkdir()
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    moved = sealed.ok("providers", "move", str(usb), "--json").json
    assert (
        moved["providers"] == [str(usb)]
        and moved["moved"]["checked"] > 0
        and not moved["moved"]["incomplete"]
    )
    shutil.rmtree(stick)
    other = Cli(tmp_path / "other", sealed._monkeypatch)
    other.ok("init", "--unprotected-keys", "--provider", str(usb), key=KEY)
    assert other.ok("read", "tone", "--body").out == "direct\n"


def test_a_move_from_where_it_never_was_is_refused(sealed: Cli, stick: Path, tmp_path: Path) -> None:
    usb = tmp_path / "usb"
    usb.mkdir()
    found = sealed.fails(3, "providers", "move", str(usb), "--from", "/no/such")
    assert "/no/such is not a provider" in found.err and str(stick) in found.err
    sealed.fails(2, "providers", "move", str(stick), "--from", str(stick))
    assert [one["spec"] for one in sealed.ok("providers", "list", "--json").json] == [str(stick)]
    assert not list(usb.iterdir())


def test_trying_one_out_needs_no_memory(bare: Cli, tmp_path: Path) -> None:
    assert bare.ok("providers", "test", str(tmp_path)).out.count("✓") >= 6
    assert not bare.home.exists()


def test_trying_one_out(sealed: Cli, tmp_path: Path) -> None:
    usb = tmp_path / "usb"
    usb.mkdir()
    found = sealed.ok("providers", "test", str(usb), "--json").json
    assert found["failed"] == 0 and {"ok"} >= {s["outcome"] for s in found["steps"]} - {"cannot"}
    assert "✓" in sealed.ok("providers", "test", str(usb)).out
    assert sealed("providers", "test", str(tmp_path / "not-there")).code in (40, 41)
