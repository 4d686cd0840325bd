"""`ipfsmem export` and `ipfsmem import`."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from ipfsmem.cli import main
from tests.support.cli_lab import Cli

SAMPLE = Path(__file__).parents[2] / "ipfsmem" / "data" / "sample.json"


def test_sample_is_exported_as_it_was_imported(cli: Cli, tmp_path: Path) -> None:
    said = cli.ok("import", str(SAMPLE), "--json").json
    assert (said["added"], said["events"], said["problems"]) == (204, 510, [])
    out = tmp_path / "out.json"
    cli.ok("export", "--out", str(out))
    before, after = json.loads(SAMPLE.read_text("utf-8")), json.loads(out.read_text("utf-8"))
    assert after["files"] == before["files"] and after["timeline"] == before["timeline"]
    assert cli.ok("export").out_bytes == out.read_bytes()
    again = cli.ok("import", str(out), "--json").json
    assert (again["added"], again["unchanged"], again["events"]) == (0, 204, 0)


def test_folder_is_exported_and_imported(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.ok("write", "tone", "--body", "direct", "--type", "feedback", "--name", "Tone")
    cli.ok("timeline", "add", "waved")
    folder = tmp_path / "plain"
    assert cli.ok("export", "--dir", str(folder), "--json").json["files"] == 3
    assert (folder / "memory" / "tone.md").read_bytes() == cli.ok("read", "tone").out_bytes
    assert "(tone.md)" in (folder / "memory" / "MEMORY.md").read_text()
    assert len(list((folder / "memory" / "timeline").glob("*.jsonl"))) == 1
    assert (folder / "memory" / "tone.md").stat().st_mode & 0o077 == 0
    other = Cli(tmp_path / "other", monkeypatch)
    other.ok("init", "--mode", "local")
    other.ok("import", str(folder))
    assert other.ok("read", "tone").out == cli.ok("read", "tone").out
    assert [e["type"] for e in other.ok("timeline", "show", "--json").json["events"]] == ["waved"]


def test_export_does_not_overwrite_files(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x")
    cli.fails(2, "export", "--dir", str(tmp_path / "full"))
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine"]
    (tmp_path / "empty").mkdir()
    cli.ok("export", "--dir", str(tmp_path / "empty"))


def test_conflict_copies_are_exported(clash: tuple[Cli, Cli], tmp_path: Path) -> None:
    said = clash[0].ok("export", "--dir", str(tmp_path / "plain"))
    assert said.err == ""
    names = sorted(p.name for p in (tmp_path / "plain" / "memory").glob("*.md"))
    assert names[0] == "MEMORY.md" and names[1].startswith("tone.conflict-") and names[2] == "tone.md"
    assert "## Needs attention" in (tmp_path / "plain" / "memory" / "MEMORY.md").read_text()


def test_export_writes_a_car_of_the_published_root(sealed: Cli, tmp_path: Path) -> None:
    sealed.ok("write", "secret_plan", "--body", "buy a lighthouse")
    root = sealed.ok("sync", "--json").json["report"]["root"]
    car = tmp_path / "out.car"
    assert sealed.ok("export", "--car", str(car), "--json").json["root"] == root
    assert b"lighthouse" not in car.read_bytes() and b"secret_plan" not in car.read_bytes()
    found = sealed.ok("format", "inspect", str(car), "--json").json
    assert found["root"]["kind"] == "sealed memory" and found["roots"] == [root]
    sealed.fails(4, "export", "--car", str(tmp_path / "no.car"), "--root", "bafynothing")
    assert not (tmp_path / "no.car").exists() and len(list(tmp_path.glob("no.car*"))) == 0


def test_merge_keeps_both_and_replace_supersedes(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "mine")
    theirs = json.dumps(
        {"version": "memory/0.1", "files": {"tone.md": "theirs\n", "new.md": "new\n"}}
    ).encode()
    assert cli.ok("import", "-", "--json", stdin=theirs).json["kept_beside"] == 1
    assert cli.ok("read", "tone", "--body").out == "mine\n"
    assert "theirs" in cli.ok("conflicts", "tone").out
    cli.ok("resolve", "tone", "--keep", "--seen", cli.ok("conflicts", "--json").json["conflicts"][0]["seen"])
    cli.ok("write", "extra", "--body", "x")
    said = cli.ok("import", "-", "--strategy", "replace", "--prune", "--json", stdin=theirs).json
    assert said["forgotten"] == 1
    assert cli.ok("read", "tone").out == "theirs\n"
    cli.fails(2, "import", "-", "--prune", stdin=theirs)


def test_import_skips_and_names_files_that_are_not_memories(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "good.md").write_text("good\n")
    (folder / "latin.md").write_bytes(b"\xff\xfe")
    (folder / "long.md").write_bytes(b"x" * (960 * 1024 + 1))
    (folder / "Foreign Name.md").write_text("kept\n")
    done = cli("import", str(folder), "--json")
    assert done.code == 7 and "2 records were left out" in json.loads(done.err)["error"]["message"]
    said = done.json
    assert said["added"] == 2 and len(said["problems"]) == 2
    assert {"latin", "long"} == {p.split(".")[0].split()[0] for p in said["problems"]}
    assert cli("import", str(folder)).code == 7
    assert "left out: " in cli.ok("import", str(folder), "--partial").out


@pytest.mark.parametrize("more", [(), ("--dry-run",)], ids=["written", "dry run"])
@pytest.mark.parametrize("source", [(), ("--from", "claude-code")], ids=["export", "program"])
def test_exit_code_in_the_result_of_an_import_is_that_of_the_command(
    cli: Cli, tmp_path: Path, source: tuple[str, ...], more: tuple[str, ...]
) -> None:
    folder = tmp_path / "memory" if source else tmp_path / "mixed"
    folder.mkdir()
    (folder / "good.md").write_text("good\n")
    (folder / "latin.md").write_bytes(b"\x00\xff\x01")
    for partial, code in (((), 7), (("--partial",), 0)):
        done = cli("import", str(folder), "--json", *source, *more, *partial)
        assert (done.code, done.json["exit_code"]) == (code, code)
        assert done.json["problems"]


def test_note_on_a_redirected_scope_is_printed_with_an_incomplete_import(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "tone", "--body", "calm", "--scope", "aa")
    cli.ok("write", "tone", "--body", "calm", "--scope", "bb")
    cli.ok("scope", "into", "aa", "bb")
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "good.md").write_text("good\n")
    (folder / "latin.md").write_bytes(b"\xff\xfe")
    done = cli("import", str(folder), "--scope", "aa")
    assert done.code == 7 and "note: The scope aa redirects to bb" in done.err


@pytest.mark.parametrize("form", [("--as", "initrunner"), ()], ids=["program", "JSON"])
def test_failed_export_of_a_missing_scope_is_recorded(
    cli: Cli, tmp_path: Path, form: tuple[str, ...]
) -> None:
    cli.ok("write", "tone", "--body", "calm", "--scope", "gone")
    cli.ok("scope", "forget", "gone", "--yes")
    for to in ((), ("--out", str(tmp_path / "x.json"))):
        cli.fails(4, "export", "--scope", "gone", *form, *to)
    rows = cli.ok("vault", "log", "--operations", "--json").json["operations"]
    found = [(one["scope"], one["outcome"]) for one in rows if one["operation"] == "export"]
    assert found == [("gone", "NotFoundError")] * 2
    assert not (tmp_path / "x.json").exists()


def test_export_of_a_redirected_scope_names_the_scopes_that_it_lacks(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "first", "--body", "of aa", "--scope", "aa")
    cli.ok("write", "second", "--body", "of bb", "--scope", "bb")
    cli.ok("scope", "into", "aa", "bb")
    cli.ok("write", "third", "--body", "written to aa", "--scope", "aa")
    for form in ((), ("--zip", str(tmp_path / "zip")), ("--dir", str(tmp_path / "dir"))):
        arguments = ["export", *form, *(["--overwrite"] if form[:1] == ("--zip",) else [])]
        assert "include aa, which is redirected to bb" in cli.ok(*arguments, "--scope", "bb").err
        shutil.rmtree(tmp_path / "dir", ignore_errors=True)
        assert "later writes, which are in bb" in cli.ok(*arguments, "--scope", "aa").err
    done = cli.ok("export", "--as", "initrunner", "--scope", "bb")
    assert "of aa" in done.out and "of bb" in done.out and "note" not in done.err


def test_invalid_sources_and_targets_are_refused(cli: Cli, tmp_path: Path) -> None:
    cli.fails(4, "import", str(tmp_path / "missing"))
    cli.fails(10, "import", "-", stdin=b"not json")
    cli.fails(10, "import", "-", stdin=b'{"version":"memory/9.9","files":{}}')
    (tmp_path / "link").symlink_to(tmp_path)
    cli.fails(2, "import", str(tmp_path / "link"))
    cli.fails(2, "export", "--out", "a", "--dir", "b")
    cli.fails(2, "export", "--root", "bafy")
    cli.fails(30, "export", "--out", str(tmp_path / "no" / "such" / "folder" / "file"))
    assert main is not None


def test_export_names_left_out_conflicts_and_has_its_own_exit_code(
    clash: tuple[Cli, Cli], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Omitting conflict copies requires consent; they are counted and named."""
    first, _ = clash
    out = tmp_path / "out.json"
    done = first("export", "--out", str(out))
    (copy,) = first.ok("conflicts", "--json").json["conflicts"][0]["copies"]
    assert done.code == 7 and copy["file"] in done.err and "1 conflict copy" in done.err
    assert json.loads(out.read_text())["files"].keys() == {"tone.md"}
    piped = first("export")
    assert piped.code == 7 and piped.out_bytes == out.read_bytes()
    fine = first.ok("export", "--out", str(out), "--partial", "--overwrite")
    assert copy["file"] in fine.err
    first.ok("export", "--dir", str(tmp_path / "plain"))
    other = Cli(tmp_path / "other", monkeypatch)
    other.ok("init", "--mode", "local")
    assert other.ok("import", str(tmp_path / "plain"), "--json").json["kept_beside"] == 1
    assert (
        other.ok("conflicts", "--json").json["conflicts"][0]["copies"][0]["reading"]["text"]
        == copy["reading"]["text"]
    )


def test_import_reports_memories_that_stay_forgotten(cli: Cli) -> None:
    """An import without a visible change says so, and how to show those memories."""
    cli.ok("write", "s", "--body", "the text")
    backup = cli.ok("export").out_bytes
    cli.ok("forget", "s")
    assert (
        "1 still forgotten here (--strategy replace restores them)" in cli.ok("import", "-", stdin=backup).out
    )
    cli.ok("import", "-", "--strategy", "replace", stdin=backup)
    assert cli.ok("read", "s", "--body").out == "the text\n"


@pytest.mark.parametrize("form", ["--zip", "--plain-car", "--dir"])
def test_export_file_is_private_and_flushed_to_disk(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    cli.ok("write", "tone", "--body", "direct")
    real, flushed = os.fsync, set()

    def noted(fd: int) -> None:
        flushed.add(os.fstat(fd).st_ino)
        real(fd)

    monkeypatch.setattr(os, "fsync", noted)
    out = tmp_path / "out"
    cli.ok("export", form, str(out))
    made = [out, *out.rglob("*")]
    assert {path.stat().st_ino for path in (*made, out.parent)} <= flushed
    assert all(path.stat().st_mode & 0o077 == 0 for path in made)
