"""`ipfsmem scope`, and --scope on the commands about memories and events."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.memory import Memory
from tests.cli_lab import Cli


def test_a_scope_is_made_by_its_first_write_and_keeps_to_itself(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("write", "tone", "--body", "everybody's")
    cli.ok("write", "tone", "--body", "the project's", "--scope", "work")
    cli.ok("note", "deployed", "--scope", "work")
    assert cli.ok("read", "tone", "--body").out == "everybody's\n"
    assert cli.ok("read", "tone", "--body", "--scope", "work").out == "the project's\n"
    assert cli.ok("timeline").out == "" and "deployed" in cli.ok("timeline", "--scope", "work").out
    monkeypatch.setenv("IPFSMEM_SCOPE", "work")
    assert cli.ok("read", "tone", "--body").out == "the project's\n"
    cli.ok("forget", "tone")
    monkeypatch.delenv("IPFSMEM_SCOPE")
    assert cli.ok("read", "tone", "--body").out == "everybody's\n"
    (row,) = cli.ok("scope", "list", "--json").json
    assert (row["scope"], row["memories"]) == ("work", 0)


def test_title_forget_and_restore(sealed: Cli) -> None:
    """Format-next A.7: forgetting a scope says what it does, and asks."""
    sealed.ok("write", "tone", "--body", "the project's", "--scope", "work")
    sealed.ok("note", "deployed", "--scope", "work")
    sealed.ok("sync")
    assert sealed.ok("scope", "title", "work", "The Work").out == "work is called The Work.\n"
    assert "The Work" in sealed.ok("scope", "show", "work").out
    root = sealed.ok("log", "--json").json[0]["root"]
    refused = sealed.fails(2, "scope", "forget", "work")
    assert "1 memory and 1 event" in refused.err
    sealed.ok("scope", "forget", "work", "--yes", "--reason", "done")
    assert sealed.ok("scope", "list").out == ""
    assert [row["scope"] for row in sealed.ok("scope", "list", "--forgotten", "--json").json] == ["work"]
    sealed.fails(4, "write", "new", "--body", "x", "--scope", "work")
    sealed.fails(4, "read", "tone", "--scope", "work")
    assert sealed.ok("scope", "restore", "work", "--root", root, "--json").json["memories"] == 1
    assert sealed.ok("read", "tone", "--body", "--scope", "work").out == "the project's\n"
    assert "deployed" in sealed.ok("timeline", "--scope", "work").out


def test_undo_knows_the_scope(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "one", "--scope", "work")
    cli.ok("write", "tone", "--body", "two", "--scope", "work")
    assert cli.ok("undo", "--json").json["scope"] == "work"
    assert cli.ok("read", "tone", "--body", "--scope", "work").out == "one\n"


@pytest.mark.parametrize("bad", ["2026-04-14", "all", "Not A Scope", "global"])
def test_wrong_names_are_one_line(cli: Cli, bad: str) -> None:
    """Format-next trace: the scope 2026-04-14 is refused."""
    cli.fails(12, "write", "tone", "--body", "x", "--scope", bad)
    cli.fails(12, "scope", "show", bad)
    cli.fails(4, "scope", "show", "nothing")
    cli.fails(4, "scope", "forget", "nothing", "--yes")
    cli.fails(4, "scope", "restore", "nothing")
    cli.fails(4, "scope", "title", "nothing", "Title")


@pytest.mark.parametrize("mode", ["local", "ipfs", "encrypted-ipfs"])
def test_no_read_in_one_scope_shows_a_text_of_another(mode: str, tmp_path: Path) -> None:
    """Every operation that reads, in every mode: the words of another scope are not in its answer."""
    options = {"unprotected_keys": True} if mode == "encrypted-ipfs" else {}
    with Memory.create("m", mode, home=tmp_path, recovery=False, **options) as memory:  # type: ignore[arg-type]
        parts = {
            "": memory,
            "work": memory.scope("work"),
            "o": memory.scope("o"),
            "tone": memory.scope("tone"),
        }
        for token, part in parts.items():
            part.write("tone", f"secret of <{token}>", description=f"line of <{token}>")
            part.write("tone", f"newer secret of <{token}>")
            part.note("event", of=f"<{token}>")
        for token, part in parts.items():
            said = repr(
                (
                    part.read("tone"), part.list(), part.index(), part.files(), part.timeline(), part.conflicts(),
                    part.history("tone"), part.export(), part.left_out(),
                )
            )  # fmt: skip
            assert f"newer secret of <{token}>" in said
            assert not [other for other in parts if other != token and f"<{other}>" in said]
