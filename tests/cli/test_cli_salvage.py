"""`ipfsmem vault repair`, and the report of `recover` on a vault that cannot be read whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ipfsmem.causal.value import Value
from ipfsmem.cli.vault_repair_cmd import _picked
from ipfsmem.memory import Memory
from ipfsmem.sync.salvage import Loose, Salvageable
from tests.support.cli_lab import KEY, Cli, Result
from tests.support.damage_lab import damage, damage_root, node_blocks
from tests.support.hints import hinted


def partly(device: Cli, *arguments: str) -> Result:
    """Check that a command did what it could and reports a loss by its exit code."""
    result = device(*arguments)
    assert result.code == 14 and "Traceback" not in result.err, result
    return result


@pytest.fixture
def damaged(sealed: Cli, stick: Path, tmp_path: Path) -> Callable[[str], None]:
    """A published vault of 70 texts; the returned function damages one of its nodes."""
    source = tmp_path / "notes"
    source.mkdir()
    for n in range(70):
        (source / f"memory{n}.md").write_text(f"text {n}\n")
    sealed.ok("import", str(source))
    sealed.ok("sync")

    def act(which: str) -> None:
        blocks = node_blocks(sealed)
        path = "s/top.ipm" if which == "top" else sorted(path for path in blocks if path != "s/top.ipm")[0]
        damage(stick, blocks[path])

    return act


def test_picking_all_salvageable_texts_picks_every_piece() -> None:
    """Pieces of one day by several devices have the same name in the list."""
    value = Value(b=(), body="0" * 64, h="0", kind="t")
    pieces = [
        Loose(f"t/2026-01-01/{device}/{n}", "1", value) for device in ("a" * 16, "b" * 16) for n in (0, 1)
    ]
    found = Salvageable((), (), tuple(pieces), (), 0)
    names = {one.name for one in pieces}
    assert _picked(found, ("all",)) == _picked(found, ("timeline/2026-01-01",)) == names


def test_repair_of_an_undamaged_vault_says_so(sealed: Cli) -> None:
    assert "Nothing is damaged" in sealed.ok("vault", "repair").out
    assert sealed.ok("vault", "repair", "--dry-run", "--json").json["found"]["heads"] == []


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_repair_without_one_provider_exits_with_7(
    sealed: Cli, monkeypatch: pytest.MonkeyPatch, dry: list[str]
) -> None:
    monkeypatch.setenv("PINATA_JWT", "a.token.of-somebody")
    sealed.ok("provider", "add", "pinata")
    monkeypatch.delenv("PINATA_JWT")
    done = sealed("vault", "repair", *dry)
    assert done.code == 7 and "PINATA_JWT is not set" in done.out


def test_repair_does_not_call_an_absent_provider_complete(
    sealed: Cli, second: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINATA_JWT", "a.token.of-somebody")
    sealed.ok("provider", "add", "pinata")
    monkeypatch.delenv("PINATA_JWT")
    second.ok("write", "tone", "--body", "x")
    second.ok("sync")
    damage_root(second, stick)
    done = sealed("vault", "repair")
    assert done.code == 45 and "Nothing is damaged" not in done.out and "could not be read" in done.out


def test_repair_does_not_call_an_unreadable_vault_complete(
    sealed: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The root of another device is lost."""
    sealed.ok("sync")
    other = Cli(tmp_path / "second", monkeypatch)
    other.ok("recover", "--unprotected-keys", key=KEY)
    sealed.ok("sync")
    other.ok("write", "tone", "--body", "x")
    other.ok("sync")
    damage_root(other, stick)
    assert sealed("sync").code == 14
    assert "cannot be opened" in sealed.fails(14, "vault", "repair").err
    other.ok("sync")
    other.ok("provider", "check", "--repair")
    sealed.ok("sync")
    assert "Nothing is damaged" in sealed.ok("vault", "repair").out


def test_repair_names_unreadable_versions_next_to_readable_ones(
    damaged: Callable[[str], None], sealed: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    third = Cli(tmp_path / "third", monkeypatch)
    third.ok("recover", "--unprotected-keys", key=KEY)
    sealed.ok("sync")
    third.ok("write", "tone", "--body", "x")
    third.ok("sync")
    damage_root(third, stick)
    damaged("leaf")
    other = Cli(tmp_path / "second", monkeypatch)
    other("recover", "--damaged", "--unprotected-keys", key=KEY)
    looked = partly(other, "vault", "repair", "--dry-run")
    assert "1 version more cannot be opened at all" in looked.err and "not used" in looked.out
    done = partly(other, "vault", "repair")
    assert "1 version more cannot be opened at all" in done.err


def test_recover_of_a_damaged_vault_fails_and_suggests_salvage(
    damaged: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged("leaf")
    other = Cli(tmp_path / "second", monkeypatch)
    failed = other.fails(14, "recover", "--unprotected-keys", key=KEY)
    assert "cannot be read" in failed.err and "ipfsmem recover --damaged" in failed.err
    other.fails(4, "list")
    assert (
        "Partly restored: 0 memories" in other.ok("recover", "--damaged", "--unprotected-keys", key=KEY).out
    )
    look = partly(other, "vault", "repair", "--dry-run")
    assert "would be restored" in look.out and other.ok("list", "--json").json["memories"] == []
    done = partly(other, "vault", "repair", "--json").json
    assert done["done"]["back"] and done["sync"]["published"] and done["found"]["lost"] == 1
    back = len(other.ok("list", "--json").json["memories"])
    assert 0 < back < 70


def test_salvaged_text_without_room_returns_after_a_merge(
    damaged: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged("leaf")
    other = Cli(tmp_path / "second", monkeypatch)
    other.ok("recover", "--damaged", "--unprotected-keys", key=KEY)
    with Memory.load(home=other.home) as memory:
        for key in range(10):
            for text in range(4):
                memory.write(f"memory{key}", f"own {text}", seen=())
    told = partly(other, "vault", "repair")
    hinted("Merge those first (ipfsmem conflicts), then: ipfsmem vault repair", told.err)
    assert "the memory has four texts" in told.out
    for item in other.ok("conflicts", "--json").json["conflicts"]:
        other.ok("resolve", item["key"], "--seen", item["seen"], "--keep")
    done = partly(other, "vault", "repair", "--json").json["done"]
    assert done["crowded"] == [] and {key.removeprefix("m/memory") for key in done["back"]} <= set(
        "0123456789"
    )
    assert done["back"] and other.ok("conflicts", "--json").json["conflicts"]


def test_signed_only_text_is_salvaged_when_picked(
    damaged: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged("top")
    other = Cli(tmp_path / "second", monkeypatch)
    other.ok("recover", "--damaged", "--unprotected-keys", key=KEY)
    look = partly(other, "vault", "repair", "--dry-run")
    assert "signed only       memory7 " in look.out and "--pick NAME" in look.out
    assert "is not in the list to pick from" in other.fails(4, "vault", "repair", "--pick", "nothing").err
    partly(other, "vault", "repair", "--pick", "memory7")
    assert other.ok("read", "memory7", "--body").out == "text 7\n"
    partly(other, "vault", "repair", "--pick", "all")
    assert len(other.ok("list", "--json").json["memories"]) == 70


def test_recover_names_code_of_unreadable_newer_version_listed_first(
    sealed: Cli, second: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed.ok("write", "old", "--body", "of before")
    sealed.ok("sync")
    second.ok("sync")
    sealed.ok("write", "newest", "--body", "of now")
    sealed.ok("sync")
    damage_root(sealed, stick)
    third = Cli(tmp_path / "third", monkeypatch)
    back = third("init", "--unprotected-keys", "--label", "third", key=KEY)
    assert back.code == 14 and "not used: " in back.out
    assert "old" in third.ok("list").out
    assert third("sync").code == 14
    sealed.ok("write", "after", "--body", "it")
    sealed.ok("sync")
    third.ok("sync")
    assert "newest" in third.ok("list").out
