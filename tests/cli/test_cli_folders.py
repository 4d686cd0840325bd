"""`ipfsmem folder attach`, `detach` and `folders`."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from ipfsmem.files.surroundings import git_head, remarks
from tests.support.cli_lab import KEY, Cli, Result


def test_folder_is_attached_synced_and_detached(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "agent"
    place.mkdir()
    (place / "role.md").write_text("firmware\n")
    said = cli.ok("folder", "attach", str(place))
    assert said.out == f"{place} is now a linked folder: 1 file.\n"
    assert cli.ok("read", "role", "--body").out == "firmware\n"
    listed = cli.ok("folder", "list", "--json").json["folders"]
    assert [(one["path"], one["state"], one["files"]) for one in listed][1] == (str(place), "ok", 1)
    (place / "tone.md").write_text("direct\n")
    assert {one["key"] for one in cli.ok("list", "--json").json["memories"]} == {"role", "tone"}
    assert cli.ok("folder", "detach", str(place)).out.startswith(f"{place} is unlinked")
    assert sorted(path.name for path in place.iterdir()) == ["MEMORY.md", "role.md", "tone.md"]
    cli.fails(2, "folder", "attach", str(place / "role.md"))
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "latin.md").write_bytes(b"caf\xe9")
    (place / "link.md").symlink_to("role.md")
    done = cli("folder", "attach", str(tmp_path / "second"), "--scope", "second")
    said = done.out + done.err
    assert done.code == 7
    assert "latin.md was skipped" in said and "link.md" not in said  # link.md is in the other folder
    (tmp_path / "second" / "latin.md").unlink()
    cli.ok("folder", "detach", str(tmp_path / "second"))
    (place / "link.md").unlink()
    assert cli("folder", "detach", str(place)).code == 4


def test_status_shows_the_path_of_the_files(cli: Cli, tmp_path: Path) -> None:
    """`status` shows where the files are."""
    own = cli.home / "default" / "memory"
    assert f"files     {own}\n" in cli.ok("status").out
    cli.ok("folder", "attach", str(tmp_path / "work"), "--scope", "work", "--json")
    said = cli.ok("status")
    assert f"files     {tmp_path / 'work'}  (scope work)\n" in said.out
    assert [one["scope"] for one in cli.ok("status", "--json").json["files"]] == ["", "work"]
    cli.ok("folder", "pause", str(tmp_path / "work"))
    assert "(paused: ipfsmem folder list)" in cli.ok("status").out
    assert "you asked for it" in cli.ok("folder", "list").out


def test_diff_of_a_local_vault_says_that_it_is_never_published(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "direct")
    failed = cli("vault", "diff")
    assert failed.code != 0 and "is never published" in failed.err and "sync" not in failed.err


def test_folder_of_another_vault_requires_take_over(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "agent"
    cli.ok("folder", "attach", str(place))
    cli.ok("init", "-n", "other", "--mode", "local")
    refused = cli.fails(2, "folder", "attach", str(place), "-n", "other")
    assert f"ipfsmem --vault other folder attach {place} --take-over" in refused.err
    cli.ok("folder", "attach", str(place), "-n", "other", "--take-over")
    assert "another vault" in cli.ok("status").out


def test_folder_with_rolled_back_files_is_accepted_or_restored(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "agent"
    cli.ok("folder", "attach", str(place))
    for word in ("old", "new"):
        for n in range(5):
            cli.ok("write", f"m{n}", "--body", word)
        if word == "old":
            before = {path.name: path.read_bytes() for path in place.glob("m*.md")}
    for name, data in before.items():
        (place / name).write_bytes(data)
    said = cli.ok("status").out
    assert (
        f"ipfsmem folder resume --keep folder {place}" in said
        and f"ipfsmem folder resume --keep vault {place}" in said
    )
    assert cli.ok("read", "m1", "--body").out == "new\n"
    assert "5 files restored" in cli.ok("folder", "resume", "--keep", "vault", str(place)).out
    assert all(b"new" in (place / name).read_bytes() for name in before)
    for name, data in before.items():
        (place / name).write_bytes(data)
    cli.ok("status")
    assert cli.ok("folder", "resume", "--keep", "folder", str(place), "--json").json == {
        "path": str(place),
        "kept": "folder",
        "put_back": 0,
    }
    assert cli.ok("read", "m1", "--body").out == "old\n"


def test_forget_warns_about_swap_files_trash_and_backups(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "direct")
    assert "swap file, the trash and backups" in cli.ok("forget", "tone").err


READERS = "whoever can read this disk"


def test_sealed_vault_has_no_folder_unless_one_is_attached(sealed: Cli, tmp_path: Path) -> None:
    assert (
        sealed.ok("folder", "list", "--json").json == {"folders": []}
        and READERS not in sealed.ok("status").out
    )
    said = sealed.ok("folder", "attach", str(tmp_path / "there"))
    assert READERS in said.out and str(tmp_path / "there") in said.out
    sealed.ok("write", "tone", "--body", "direct")
    assert "direct" in (tmp_path / "there" / "tone.md").read_text()
    status = sealed.ok("status").out
    assert f"files      {tmp_path / 'there'}\n" in status and f"; the files below: {READERS}\n" in status
    sealed.ok("folder", "detach", str(tmp_path / "there"))
    assert READERS not in sealed.ok("status").out and "direct" in (tmp_path / "there" / "tone.md").read_text()


def test_init_of_a_sealed_vault_with_a_folder_names_its_readers(
    bare: Cli, stick: Path, tmp_path: Path
) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    (mine / "role.md").write_text("firmware\n")
    said = bare.ok("init", "--unprotected-keys", "--memory-dir", str(mine), key=KEY)
    assert f"{READERS} can read the files in {mine}" in said.out
    assert bare.ok("read", "role", "--body").out == "firmware\n"
    bare.ok("sync")
    other = Cli(tmp_path / "second", bare._monkeypatch)
    back = other.ok("recover", "--unprotected-keys", "--memory-dir", str(theirs), key=KEY)
    assert f"{READERS} can read the files in {theirs}" in back.out
    assert (theirs / "role.md").read_text() == "firmware\n"


@pytest.mark.parametrize("command", ["init", "recover"])
def test_folder_of_a_repository_is_not_imported_without_consent(
    command: str, bare: Cli, stick: Path, tmp_path: Path
) -> None:
    if command == "recover":
        bare.ok("init", "--unprotected-keys", key=KEY)
    sources = tmp_path / "sources"
    (sources / ".git").mkdir(parents=True)
    (sources / "notes.md").write_text("a source\n")
    cli = Cli(tmp_path / "second", bare._monkeypatch)
    refused = cli.fails(2, command, "--unprotected-keys", "--memory-dir", str(sources), key=KEY)
    assert "1 file would become memories, so nothing was changed" in refused.err
    assert sorted(path.name for path in sources.iterdir()) == [".git", "notes.md"]
    assert not list((tmp_path / "second").rglob("state.db"))


def test_init_warns_about_a_folder_in_a_synced_folder(bare: Cli, tmp_path: Path) -> None:
    place = tmp_path / "Dropbox" / "notes"
    place.mkdir(parents=True)
    said = bare.ok("init", "--mode", "local", "--memory-dir", str(place))
    assert "note: " in said.out and "Dropbox" in said.out
    assert any(
        "Dropbox" in text for text in bare.ok("folder", "list", "--json").json["folders"][0]["remarks"]
    )


def moved_away(cli: Cli, place: Path) -> str:
    place.rename(place.with_name("elsewhere"))
    return "is not there (is it mounted?)"


def without_its_row(cli: Cli, place: Path) -> str:
    """Change the id of the folder's row on disk: the folder then looks like one of another vault."""
    with contextlib.closing(sqlite3.connect(cli.home / "default" / "state.db")) as db, db:
        (changed,) = db.execute("SELECT id FROM copies ORDER BY path DESC LIMIT 1").fetchone()
        flipped = ("1" if changed[0] == "0" else "0") + changed[1:]
        db.execute("UPDATE copies SET id=? WHERE id=?", (flipped, changed))
    return "is the linked folder of another vault now; it was not read or written"


def paused_by_itself(cli: Cli, place: Path) -> str:
    (place / ".git").mkdir()
    (place / ".git" / "HEAD").write_text("a" * 40)
    cli.ok("status")
    (place / ".git" / "HEAD").write_text("b" * 40)
    return "is paused: another commit was checked out"


@pytest.mark.parametrize("what", [moved_away, without_its_row, paused_by_itself])
def test_read_write_and_sync_warn_about_folder_not_ingested(
    what: Callable[[Cli, Path], str], sealed: Cli, tmp_path: Path
) -> None:
    place = tmp_path / "agent"
    place.mkdir()
    (place / "role.md").write_text("firmware\n")
    sealed.ok("folder", "attach", str(place))
    said = what(sealed, place)
    if place.exists():
        (place / "role.md").write_text("kernels\n")
    read = sealed.ok("read", "role", "--body")
    assert read.out == "firmware\n" and f"note: {place} {said}" in read.err
    for command in (
        ("write", "tone", "--body", "direct"),
        ("list",),
        ("recall", "firmware"),
        ("timeline", "add", "x"),
    ):
        assert f"note: {place} {said}" in sealed.ok(*command).err
    missed = sealed("read", "none")
    assert missed.code == 4 and said in missed.err
    synced = sealed("sync")
    assert synced.code == 7 and said in synced.out and said not in synced.err
    reported = sealed("sync", "--json").json["report"]["notices"]
    assert [one["kind"] for one in reported] == ["folder"] and said in reported[0]["text"]


def test_paused_folder_prints_no_warnings(cli: Cli, tmp_path: Path) -> None:
    cli.ok("folder", "attach", str(tmp_path / "agent"))
    cli.ok("folder", "pause", str(tmp_path / "agent"))
    said = cli.ok("write", "tone", "--description", "how to answer a question", "--body", "direct")
    assert said.err == ""


def test_unreadable_folder_does_not_block_commands(cli: Cli, tmp_path: Path) -> None:
    """A hanging mount or a folder of another user raises other errors than a missing one."""
    above = tmp_path / "above"
    place = above / "agent"
    place.mkdir(parents=True)
    (place / "role.md").write_text("firmware\n")
    cli.ok("folder", "attach", str(place))
    above.rename(tmp_path / "elsewhere")
    above.symlink_to("x" * 300)  # the system refuses access, also for root
    said = f"cannot look into {place}: "
    for command in (
        ("read", "role", "--body"),
        ("write", "tone", "--body", "direct"),
        ("list",),
        ("export",),
    ):
        assert said in cli.ok(*command).err
    assert said in cli.ok("status").out and said in cli.ok("folder", "list").out
    assert said in cli("folder", "resume", "--keep", "folder", str(place)).err
    assert "--gone" in cli.fails(30, "folder", "detach", str(place)).err
    cli.ok("folder", "attach", str(tmp_path / "another"))
    cli.ok("folder", "detach", str(place), "--gone")
    assert cli.ok("read", "role", "--body").err == ""


def test_stale_file_is_named_by_the_command_that_could_not_update_it(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "agent"
    cli.ok("folder", "attach", str(place))
    cli.ok("write", "role", "--body", "firmware")
    asides = place / ".ipfsmem" / "aside"
    asides.rmdir()
    asides.write_text("in the way of what is set aside")
    for command in (("forget", "role"), ("list",)):
        assert f"note: {place}: role.md could not be updated: " in cli.ok(*command).err
    assert (place / "role.md").exists()
    asides.unlink()
    assert cli.ok("list").err == "" and not (place / "role.md").exists()


def test_unreadable_folder_has_no_remarks(tmp_path: Path) -> None:
    place = tmp_path / ("x" * 200) / "agent"
    place.mkdir(parents=True)
    (place / ".git").symlink_to("y" * 300)
    (place / ".stfolder").symlink_to("y" * 300)
    assert remarks(place) == [] and git_head(place) == b""


def test_sync_with_files_it_could_not_import_exits_with_7(sealed: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "fine.md").write_text("Fine.\n")
    sealed.ok("folder", "attach", str(folder))
    sealed.ok("sync")

    def incomplete(*command: str) -> Result:
        done = sealed(*command)
        assert done.code == 7 and not done.err, done
        return done

    (folder / "long.md").write_text("word " * 200_000)
    (folder / "binary.md").write_bytes(b"\0\xff\xfe")
    (folder / "notes.bin").write_bytes(b"\0")  # nobody takes it for a memory
    done = incomplete("sync")
    assert "long.md was skipped" in done.out and "binary.md was skipped" in done.out
    assert "notes.bin" not in done.out
    report = incomplete("sync", "--json").json["report"]
    assert report["not_taken_in"] == 2
    (folder / "long.md").write_text("short\n")
    (folder / "binary.md").unlink()
    sealed.ok("sync")
    folder.rename(tmp_path / "away")
    assert "is not there" in incomplete("sync").out
    sealed.ok("folder", "pause", str(folder))
    sealed.ok("sync")


def test_attach_dry_run_previews_and_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "secret", "--body", "a private memory")
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "one.md").write_text("First.\n")
    said = cli.ok("folder", "attach", str(folder), "--dry-run").out
    assert "files that become memories: 1\n    one.md" in said
    assert "memories written here as files: 1" in said
    assert [path.name for path in folder.iterdir()] == ["one.md"]
    assert "one" not in cli.ok("list").out


def incomplete(cli: Cli, *arguments: str) -> Result:
    """Check that a command did what it could and ends with 7."""
    done = cli(*arguments)
    assert done.code == 7, done
    return done


def test_attach_and_its_dry_run_name_files_that_are_skipped(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.md", "b.txt", "c.org", "picture.png", ".hidden.txt", "sub/d.md"):
        (folder / name).write_text("x\n")
    named = "not read, as only .md files of the folder itself are: b.txt, c.org, sub/\n"
    assert named in cli.ok("folder", "attach", str(folder), "--dry-run").out
    planned = cli.ok("folder", "attach", str(folder), "--dry-run", "--json").json
    assert planned["unread"] == ["b.txt", "c.org", "sub/"]
    made = cli.ok("folder", "attach", str(folder), "--yes").out
    assert named in made and "subfolders" not in made


def test_attach_and_its_dry_run_name_the_same_skipped_files(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "one.md").write_text("First.\n")
    (folder / "latin.md").write_bytes(b"caf\xe9\n")
    (folder / "long.md").write_text("y" * (961 * 1024))
    (folder / "caf\u00e9.md").write_text("One form.\n")
    (folder / "cafe\u0301.md").write_text("Another form.\n")
    (folder / "link.md").symlink_to("one.md")
    there = len(list(folder.glob("caf*.md")))  # some disks show one file under both names
    shown = incomplete(cli, "folder", "attach", str(folder), "--dry-run")
    assert "files that become memories: 2\n" in shown.out
    assert f"files that are skipped: {1 + there}\n" in shown.out
    assert "latin.md was skipped" in shown.out and "link.md" not in shown.out
    planned = incomplete(cli, "folder", "attach", str(folder), "--dry-run", "--json").json
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []
    made = incomplete(cli, "folder", "attach", str(folder), "--yes")
    assert "is now a linked folder: 2 files" in made.out
    assert "latin.md was skipped" in made.err and "the folder is linked" in made.err
    assert len(cli.ok("list", "--json").json["memories"]) == len(planned["taken"])
    (folder / "latin.md").write_text("Latin.\n")
    assert cli.ok("read", "latin", "--body").out == "Latin.\n"


@pytest.mark.parametrize("command", ["init", "recover"])
def test_new_vault_with_skipped_files_exits_with_7(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "one.md").write_text("First.\n")
    (folder / "latin.md").write_bytes(b"caf\xe9\n")
    device = bare
    if command == "recover":
        bare.ok("init", "--unprotected-keys", key=KEY)
        bare.ok("sync")
        device = Cli(tmp_path / "second", monkeypatch)
    made = device(command, "--unprotected-keys", "--memory-dir", str(folder), key=KEY)
    assert made.code == 7 and "latin.md was skipped" in made.err, made
    assert device.ok("read", "one", "--body").out == "First.\n"


def test_commands_warn_that_a_memory_may_be_older_than_its_file(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "one.md").write_text("First.\n")
    cli.ok("folder", "attach", str(folder), "--yes")
    (folder / "one.md").write_bytes(b"\xff\xfe")
    for command in (("read", "one"), ("list",), ("list", "--json"), ("recall", "First")):
        assert "one.md was skipped" in cli.ok(*command).err
    (folder / "one.md").write_text("Second.\n")
    done = cli.ok("read", "one", "--body")
    assert done.out == "Second.\n" and done.err == ""
    (folder / "one.md").write_bytes(b"\xff\xfe")
    gone = incomplete(cli, "folder", "detach", str(folder))
    assert "is unlinked" in gone.out and "one.md was skipped" in gone.err
    assert cli.fails(4, "folder", "detach", str(folder))
    (folder / "one.md").write_text("Second.\n\nThird.\n")
    cli.ok("folder", "attach", str(folder), "--yes")
    assert "Third." in cli.ok("read", "one", "--body").out + cli.ok("conflicts", "one").out


def test_attach_of_a_git_repository_without_a_terminal_needs_yes(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    (folder / "README.md").write_text("# A project\n")
    refused = cli.fails(2, "folder", "attach", str(folder))
    assert "is in the git repository" in refused.err
    assert sorted(path.name for path in folder.iterdir()) == [".git", "README.md"]
    cli.ok("folder", "attach", str(folder), "--yes")
    assert "readme" in cli.ok("list").out.lower()


@pytest.mark.skipif(os.name != "posix", reason="names of POSIX folders")
def test_attach_refuses_system_folders(cli: Cli) -> None:
    refused = cli.fails(2, "folder", "attach", "/etc", "--yes")
    assert "contains files of programs and other people" in refused.err
