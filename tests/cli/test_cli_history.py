"""`ipfsmem history`, `read --root`, `restore` and `undo`."""

from __future__ import annotations

import msgspec
import pytest

from ipfsmem.memory import Memory
from tests.support.cli_lab import Cli


def _versions(cli: Cli) -> list[dict[str, object]]:
    found = cli.ok("history", "tone", "--json").json["versions"]
    assert isinstance(found, list)
    return found


def test_earlier_revision_is_listed_read_and_restored(sealed: Cli) -> None:
    sealed.ok("write", "tone", "--body", "first")
    sealed.ok("sync")
    before = sealed.ok("read", "tone").out_bytes
    sealed.ok("write", "tone", "--body", "second")
    new, old = _versions(sealed)
    assert (new["now"], new["root"], old["now"], old["label"]) == ("shown", None, "", "first")
    rows = [line.split("\t") for line in sealed.ok("history", "tone").out.splitlines()]
    assert [row[2] for row in rows] == [new["sha256"], old["sha256"]] and rows[1][5] == old["root"]
    assert sealed.ok("read", "tone", "--root", str(old["root"])).out_bytes == before
    assert sealed.ok("read", "tone", "--root", str(old["root"])[:20], "--body").out == "first\n"
    assert sealed.ok("restore", "tone", "--root", str(old["root"])).out.strip() == old["sha256"]
    assert sealed.ok("read", "tone").out_bytes == before
    sealed.ok("undo")
    assert sealed.ok("read", "tone", "--body").out == "second\n"
    sealed.ok("restore", "tone", "--text", str(old["sha256"])[:10])
    assert sealed.ok("read", "tone").out_bytes == before


def test_undo_restores_a_forgotten_memory(sealed: Cli) -> None:
    sealed.ok("write", "tone", "--body", "first")
    sealed.ok("forget", "tone")
    assert "forgotten" in sealed.ok("history", "tone").out
    assert sealed.ok("undo", "--json").json["undone"] == "forget"
    assert sealed.ok("read", "tone", "--body").out == "first\n"
    said = sealed.ok("undo").out
    assert said.startswith("Undone: undo of tone, ") and "the memory no longer exists" in said


def test_undo_reports_a_shown_merge(sealed: Cli, second: Cli) -> None:
    for cli, text in ((sealed, "a\nb\nc\nd\ne"), (second, "")):
        if text:
            cli.ok("write", "poem", "--body", text)
        cli.ok("sync")
    sealed.ok("write", "poem", "--body", "A\nb\nc\nd\ne")
    second.ok("write", "poem", "--body", "a\nb\nc\nd\nE")
    for cli in (sealed, second, sealed):
        cli.ok("sync")
    assert sealed.ok("read", "poem", "--body").out == "A\nb\nc\nd\nE\n"
    sealed.ok("forget", "poem")
    assert sealed.ok("undo").out.endswith("; it shows a merge of concurrent edits.\n")
    assert sealed.ok("undo", "--json").json["merged"] is False
    assert sealed.ok("undo", "--json").json["merged"] is True


def test_invalid_history_call_is_refused_in_one_line(sealed: Cli) -> None:
    sealed.ok("write", "tone", "--body", "first")
    sealed.ok("sync")
    root = str(_versions(sealed)[0]["root"])
    sealed.fails(4, "history", "nothing")
    sealed.fails(12, "history", "Not a Key")
    sealed.fails(2, "restore", "tone")
    sealed.fails(2, "restore", "tone", "--text", "abc")
    sealed.fails(4, "restore", "tone", "--text", "0" * 64)
    sealed.fails(4, "restore", "other", "--root", root)
    sealed.fails(4, "restore", "tone", "--root", "bafynothing")
    sealed.fails(6, "restore", "tone", "--root", root, "--seen", "0" * 16)
    sealed.fails(2, "read", "tone", "--root", root, "--alternative", "x.md")
    sealed.fails(4, "read", "tone", "--root", "bafynothing")
    sealed.fails(4, "read", "other", "--root", root)


def test_local_vault_keeps_no_history(cli: Cli) -> None:
    cli.fails(4, "undo")
    cli.ok("write", "tone", "--body", "first")
    cli.fails(4, "read", "tone", "--root", "bafy")
    assert [row["now"] for row in _versions(cli)] == ["shown"]


def test_text_with_a_date_out_of_range_is_listed(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "first")
    with Memory.load(home=cli.home) as memory, memory.replica.transaction():
        store = memory.replica.store
        late = {dot: msgspec.structs.replace(v, h="f" * 16) for dot, v in store.entry("m/tone").items()}
        store.apply({"m/tone": late}, store.frame)
    assert "after the year 9999" in cli.ok("history", "tone").out


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (("scope", "forget", "work", "--yes"), "the scope work was forgotten"),
        (("import", "-"), "an import"),
        (("import", "-", "--strategy", "replace", "--prune"), "an import"),
    ],
)
def test_undo_refuses_when_the_last_operation_cannot_be_undone(
    cli: Cli, last: tuple[str, ...], said: str
) -> None:
    """It must not undo an earlier write instead."""
    blob = b'{"version":"memory/0.1","files":{"music.md":"x"}}'
    cli.ok("write", "style", "--scope", "work", "--body", "x")
    cli.ok("write", "tone", "--body", "kept")
    cli.ok(*last, stdin=blob)
    shown = cli.ok("list").out
    for _ in range(2):
        assert f"the last operation on this device cannot be: {said}" in cli.fails(4, "undo").err
    assert cli.ok("list").out == shown
    cli.ok("scope", "make", "other")
    cli.ok("write", "tone", "--body", "again")
    cli.ok("write", "tone", "--body", "and again")
    cli.ok("undo")
    assert cli.ok("read", "tone", "--body").out == "again\n"


def test_unchanged_import_is_skipped_by_undo(cli: Cli) -> None:
    blob = b'{"version":"memory/0.1","files":{"music.md":"x"}}'
    cli.ok("import", "-", stdin=blob)
    cli.ok("write", "tone", "--body", "x")
    cli.ok("import", "-", stdin=blob)
    cli.ok("undo")
    cli.fails(4, "read", "tone")


def test_undo_of_a_local_forget_says_that_the_text_is_deleted(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "x")
    cli.ok("forget", "tone")
    assert "tone was forgotten, and its text left the disk" in cli.fails(4, "undo").err
