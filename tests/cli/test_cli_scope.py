"""`ipfsmem scope`, and --scope on the commands about memories and events."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.cli import secret_input
from ipfsmem.memory import Memory
from tests.support.cli_lab import Cli


def test_first_write_creates_a_scope_separate_from_others(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.ok("write", "tone", "--body", "everybody's")
    cli.ok("write", "tone", "--body", "the project's", "--scope", "work")
    cli.ok("timeline", "add", "deployed", "--scope", "work")
    assert cli.ok("read", "tone", "--body").out == "everybody's\n"
    assert cli.ok("read", "tone", "--body", "--scope", "work").out == "the project's\n"
    assert (
        cli.ok("timeline", "show").out == ""
        and "deployed" in cli.ok("timeline", "show", "--scope", "work").out
    )
    monkeypatch.setenv("IPFSMEM_SCOPE", "work")
    assert cli.ok("read", "tone", "--body").out == "the project's\n"
    cli.ok("forget", "tone")
    monkeypatch.delenv("IPFSMEM_SCOPE")
    assert cli.ok("read", "tone", "--body").out == "everybody's\n"
    (row,) = cli.ok("scope", "list", "--json").json["scopes"]
    assert (row["scope"], row["memories"]) == ("work", 0)


def test_scope_is_titled_forgotten_and_restored(sealed: Cli) -> None:
    sealed.ok("write", "tone", "--body", "the project's", "--scope", "work")
    sealed.ok("timeline", "add", "deployed", "--scope", "work")
    sealed.ok("sync")
    assert sealed.ok("scope", "title", "work", "The Work").out == "work is now titled The Work.\n"
    assert "The Work" in sealed.ok("scope", "show", "work").out
    root = sealed.ok("vault", "log", "--json").json[0]["root"]
    refused = sealed.fails(2, "scope", "forget", "work")
    assert "1 memory and 1 event" in refused.err
    sealed.ok("scope", "forget", "work", "--yes", "--reason", "done")
    assert sealed.ok("scope", "list").out == ""
    assert [row["scope"] for row in sealed.ok("scope", "list", "--forgotten", "--json").json["scopes"]] == [
        "work"
    ]
    sealed.fails(4, "write", "new", "--body", "x", "--scope", "work")
    sealed.fails(4, "read", "tone", "--scope", "work")
    assert sealed.ok("scope", "restore", "work", "--root", root, "--json").json["memories"] == 1
    assert sealed.ok("read", "tone", "--body", "--scope", "work").out == "the project's\n"
    assert "deployed" in sealed.ok("timeline", "show", "--scope", "work").out


def test_scope_restored_empty_names_the_version_that_fills_it(sealed: Cli) -> None:
    sealed.ok("write", "tone", "--body", "the project's", "--scope", "work")
    sealed.ok("sync")
    root = sealed.ok("vault", "log", "--json").json[0]["root"]
    sealed.ok("scope", "forget", "work", "--yes")
    sealed.ok("sync")
    said = sealed.ok("scope", "restore", "work").out
    assert said.startswith("The scope work is restored, without texts.") and f"--root {root}" in said
    assert "is not forgotten" in sealed.fails(4, "scope", "restore", "work").err
    assert sealed.ok("scope", "restore", "work", "--root", root, "--json").json["memories"] == 1
    assert sealed.ok("read", "tone", "--body", "--scope", "work").out == "the project's\n"
    assert "is not forgotten" in sealed.fails(4, "scope", "restore", "work", "--root", root).err


def test_scope_that_never_held_a_text_is_restored_whole(sealed: Cli) -> None:
    sealed.ok("scope", "make", "work")
    sealed.ok("scope", "forget", "work", "--yes")
    assert sealed.ok("scope", "restore", "work", "--json").json == {
        "scope": "work", "memories": 0, "events": 0, "not_fetched": 0,
    }  # fmt: skip
    sealed.ok("scope", "forget", "work", "--yes")
    assert "is restored, without texts" in sealed.ok("scope", "restore", "work").out


def test_scope_that_was_never_published_is_not_called_restored(sealed: Cli) -> None:
    sealed.ok("write", "tone", "--body", "the project's", "--scope", "work")
    sealed.ok("scope", "forget", "work", "--yes")
    refused = sealed.fails(7, "scope", "restore", "work")
    assert "no version on this device contains them" in refused.err and "--root" not in refused.err
    sealed.ok("scope", "forget", "work", "--yes")
    lost = sealed("scope", "restore", "work", "--json")
    assert (lost.code, lost.json["memories"]) == (7, 0)
    sealed.ok("write", "tone", "--body", "another", "--scope", "work")


def test_scope_forget_counts_unsynced_texts(sealed: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed.ok("write", "tone", "--body", "the project's", "--scope", "work")
    sealed.ok("sync")
    assert "never synced" not in sealed("scope", "forget", "work").err
    sealed.ok("write", "tone", "--body", "changed", "--scope", "work")
    sealed.ok("write", "tea", "--body", "green", "--scope", "work")
    sealed.ok("write", "tea", "--body", "elsewhere", "--scope", "home")
    lost = "(2 memories never synced: they cannot be restored)"
    assert lost in sealed("scope", "forget", "work").err
    with monkeypatch.context() as asked:
        asked.setattr(secret_input, "can_ask", lambda: True)
        assert lost in sealed("scope", "forget", "work", stdin=b"n\n").err
    told = sealed.ok("scope", "forget", "work", "--yes", "--json").json
    assert told == {"scope": "work", "forgotten": 2, "never_synced": 2}


def test_scope_forget_in_a_local_vault_warns_that_it_is_permanent(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "the project's", "--scope", "work")
    assert "(1 memory never synced: it cannot be restored)" in cli.ok("scope", "forget", "work", "--yes").out


def test_undo_reports_the_scope(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "one", "--scope", "work")
    cli.ok("write", "tone", "--body", "two", "--scope", "work")
    assert cli.ok("undo", "--json").json["scope"] == "work"
    assert cli.ok("read", "tone", "--body", "--scope", "work").out == "one\n"


@pytest.mark.parametrize("bad", ["2026-04-14", "all", "Not A Scope", "global"])
def test_invalid_scope_names_are_refused_in_one_line(cli: Cli, bad: str) -> None:
    """The scope 2026-04-14 is refused."""
    cli.fails(12, "write", "tone", "--body", "x", "--scope", bad)
    cli.fails(12, "scope", "show", bad)
    cli.fails(4, "scope", "show", "nothing")
    cli.fails(4, "scope", "forget", "nothing", "--yes")
    cli.fails(4, "scope", "restore", "nothing")
    cli.fails(4, "scope", "title", "nothing", "Title")


@pytest.mark.parametrize("mode", ["local", "ipfs", "encrypted-ipfs"])
def test_no_read_in_one_scope_shows_a_text_of_another(mode: str, tmp_path: Path) -> None:
    options = {"passphrase": False} if mode == "encrypted-ipfs" else {}
    with Memory.create("m", mode, home=tmp_path, recovery=False, **options) as memory:  # type: ignore[arg-type]
        parts = {
            "": memory.scope(""),
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
                    part.read("tone"), part.list(), part.index(), part.files(), part.timeline.read(), part.conflicts(),
                    part.history("tone"), part.bundles.export(), part.bundles.left_out(),
                )
            )  # fmt: skip
            assert f"newer secret of <{token}>" in said
            assert not [other for other in parts if other != token and f"<{other}>" in said]


def test_all_scopes_are_exported_to_and_imported_from_a_zip(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("write", "tone", "--body", "everybody's")
    cli.ok("write", "tone", "--body", "the project's", "--scope", "work")
    cli.ok("scope", "title", "work", "The Work")
    files = str(tmp_path / "all.zip")
    assert cli.ok("export", "--zip", files, "--json").json["files"] == 5
    blob = cli("export", "--json")
    assert blob.code == 7 and "1 scope (work)" in blob.err and "--dir" in blob.err
    assert cli.ok("export", "--scope", "").out == cli("export").out
    monkeypatch.setenv("IPFSMEM_SCOPE", "work")
    assert "the project's" in cli.ok("export").out and "everybody's" not in cli.ok("export").out
    assert cli.ok("export", "--dir", str(tmp_path / "one"), "--json").json["files"] == 3
    cli.fails(2, "export", "--car", str(tmp_path / "x.car"))
    cli.fails(2, "import", files)
    monkeypatch.delenv("IPFSMEM_SCOPE")
    cli.fails(4, "export", "--zip", str(tmp_path / "no.zip"), "--scope", "nothing")
    assert [path.name for path in tmp_path.glob("*no*")] == []
    other = Cli(tmp_path / "other", monkeypatch)
    other.ok("init", "--mode", "local")
    assert "1 in work" in other.ok("import", files).out
    assert other.ok("scope", "list").out == "work\tworkspace\t1\tThe Work\t\n"
    for wrong in (
        [], ["--map", "x=y"], ["--map", "work"], ["--map", "work=a", "--map", "work=b"], ["--map", "work="],
        ["--from-backup", "--foreign"],
    ):  # fmt: skip
        other.fails(2, "import", files, *wrong)
    other.fails(12, "import", files, "--map", "work=Work Two")
    assert other.ok("import", files, "--from-backup", "--json").json["unchanged"] == 2
    assert other.ok("import", files, "--map", "work=two", "--json").json["scopes"]["two"]["added"] == 1
    assert "1 in two, 1 in work" in other.ok("status").out
    counts = other.ok("status", "--json").json["scopes"]
    assert [(one["scope"], one["memories"]) for one in counts] == [("", 1), ("two", 1), ("work", 1)]


def test_stacked_list_shows_the_scope_of_each_text(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "everybody's")
    cli.ok("write", "self", "--body", "me")
    cli.ok("write", "tone", "--body", "the project's", "--scope", "work")
    cli.ok("write", "tone", "--body", "the person's", "--scope", "alex")
    cli.ok("write", "likes", "--body", "tea", "--scope", "alex")
    for token in ("work", "alex"):
        cli.ok("timeline", "add", "waved", f"in={token}", "--scope", token)
    said = cli.ok("read", "likes", "--stack", "work", "--stack", "alex", "--body")
    assert said.out == "tea\n" and said.err == "from the scope alex\n"
    assert cli.ok("read", "tone", "--stack", "alex", "--stack", "work", "--json").json["scope"] == "alex"
    cli.fails(4, "read", "likes", "--stack", "work")
    rows = cli.ok("list", "--stack", "work", "--json").json["memories"]
    assert [(row["key"], row["scope"]) for row in rows] == [("self", ""), ("tone", "work")]
    assert cli.ok("list", "--stack", "work").out.splitlines()[1].endswith("\twork")
    events = cli.ok("timeline", "show", "--stack", "work", "--json").json
    assert events["scopes"] == ["work"] and [one["in"] for one in events["events"]] == ["work"]
    cli.fails(2, "list", "--stack", "work", "--scope", "work")
    cli.fails(2, "read", "tone", "--stack", "work", "--root", "bafy")
    cli.fails(12, "list", "--stack", "Not A Scope")
    cli.fails(4, "list", "--stack", "never")
    cli.ok("scope", "forget", "alex", "--yes")
    cli.fails(4, "list", "--stack", "work", "--stack", "alex")


def test_redirected_scope_reads_and_writes_the_other_scope(cli: Cli) -> None:
    cli.ok("scope", "make", "api", "--title", "The API", "--kind", "agent")
    cli.fails(2, "scope", "make", "api")
    cli.fails(10, "scope", "make", "odd", "--title", "a\x07bell")
    cli.fails(12, "scope", "make", "2026-04-14")
    cli.ok("write", "tone", "--body", "old", "--description", "d", "--scope", "tmp")
    for wrong in (["tmp"], ["tmp", "api", "--remove"], ["tmp", "tmp"]):
        cli.fails(2, "scope", "into", *wrong)
    cli.fails(4, "scope", "into", "tmp", "nothing")
    cli.fails(4, "scope", "into", "nothing", "api")
    cli.fails(12, "scope", "into", "tmp", "Bad One")
    cli.ok("scope", "into", "tmp", "api")
    read = cli.ok("read", "tone", "--scope", "api", "--json").json
    assert (read["body"], read["scope"]) == ("old", "tmp")
    cli.fails(6, "write", "tone", "--body", "x", "--scope", "api", "--new")
    cli.ok("write", "tone", "--description", "better", "--scope", "tmp", "--if-match", read["sha256"])
    now = cli.ok("read", "tone", "--scope", "api", "--json").json
    assert (now["body"], now["fields"]["description"], now["scope"]) == ("old", "better", "api")
    cli.ok("timeline", "add", "moved", "--scope", "tmp")
    assert "moved" in cli.ok("timeline", "show", "--scope", "api").out
    cli.ok("forget", "tone", "--scope", "api")
    cli.fails(4, "read", "tone", "--scope", "api")
    cli.fails(4, "read", "tone", "--scope", "tmp")
    cli.ok("scope", "into", "tmp", "--remove")
    cli.ok("write", "tone", "--body", "apart", "--scope", "tmp")
    cli.fails(4, "read", "tone", "--scope", "api")


def test_scope_title_with_control_or_reordering_marks_is_refused(cli: Cli, tmp_path: Path) -> None:
    bad = "ours\u202e\u2066, really\u200f"
    assert "U+202E" in cli.fails(10, "scope", "make", "work", "--title", bad).err
    cli.ok("scope", "make", "work", "--title", "Ours")
    cli.fails(10, "scope", "title", "work", bad)
    assert cli.ok("scope", "list", "--json").json["scopes"][0]["card"]["title"] == "Ours"


@pytest.mark.parametrize("bad", ["Not A Scope", "all", "../x", "w\u00f6rk"])
def test_invalid_scope_in_the_environment_is_refused_in_one_line(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, bad: str
) -> None:
    monkeypatch.setenv("IPFSMEM_SCOPE", bad)
    for command in (
        ["write", "tone", "--body", "x"], ["read", "tone"], ["list"], ["forget", "tone"], ["history", "tone"], ["timeline", "add", "waved"],
        ["timeline", "show"], ["export"], ["conflicts"], ["approve", "tone"], ["restore", "tone", "--text", "abcdefgh"],
    ):  # fmt: skip
        cli.fails(12, *command)
    cli.ok("list", "--scope", "")
    cli.ok("list", "--stack", "")
    monkeypatch.delenv("IPFSMEM_SCOPE")
    assert cli.ok("list", "--json").json["memories"] == [] and cli.ok("scope", "list", "--json").json == {
        "scopes": []
    }


def test_open_shows_every_scope_of_a_bundle(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "tone", "--body", "everybody's")
    cli.ok("write", "tone", "--body", "the project's", "--scope", "work")
    files = str(tmp_path / "all")
    cli.ok("export", "--dir", files)
    listed = cli.ok("open", files)
    assert "tone" in listed.out and listed.err.endswith("also scopes: work (--scope NAME)\n")
    assert "the project's" in cli.ok("open", files, "tone", "--scope", "work").out
    assert "the project's" not in cli.ok("open", files, "tone").out
    cli.fails(4, "open", files, "--scope", "nothing")
    cli.fails(12, "open", files, "--scope", "No Scope")
    out = str(tmp_path / "one.json")
    assert cli("open", files, "--export", out).code == 7
    cli.ok("open", files, "--export", out, "--overwrite", "--scope", "work")
    assert "the project's" in Path(out).read_text() and "everybody's" not in Path(out).read_text()


def test_write_by_type_chooses_the_scope_of_a_new_memory(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPFSMEM_SCOPE", "shop")
    for kind in ("user", "feedback", "project", "reference"):
        cli.ok("write", kind, "--body", "x", "--type", kind, "--by-type")
    cli.ok("write", "exact", "--body", "x", "--type", "user")
    monkeypatch.delenv("IPFSMEM_SCOPE")
    assert [one["key"] for one in cli.ok("list", "--json").json["memories"]] == ["feedback", "user"]
    assert [one["key"] for one in cli.ok("list", "--scope", "shop", "--json").json["memories"]] == [
        "exact",
        "project",
        "reference",
    ]
    assert (
        "requires the scope of a workspace"
        in cli.fails(2, "write", "a", "--body", "x", "--type", "project", "--by-type").err
    )
    assert (
        "--by-type requires --type"
        in cli.fails(2, "write", "more", "--body", "x", "--by-type", "--scope", "shop").err
    )


def test_read_without_scope_searches_all_but_forget_requires_the_scope(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "direct", "--scope", "shop")
    found = cli.ok("read", "tone", "--body")
    assert found.out == "direct\n" and "from the scope shop" in found.err
    assert cli.ok("read", "tone", "--json").json["scope"] == "shop"
    assert "forget tone --scope shop" in cli.fails(4, "forget", "tone").err
    cli.ok("write", "tone", "--body", "kind", "--scope", "desk")
    assert "several scopes: desk, shop" in cli.fails(2, "read", "tone").err
    cli.fails(4, "read", "tone", "--scope", "other")
    cli.ok("write", "tone", "--body", "everybody's")
    assert cli.ok("read", "tone", "--body").out == "everybody's\n"
