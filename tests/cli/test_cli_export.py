"""`ipfsmem export` to an existing file, and characters that a terminal does not show."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from ipfsmem.cli.printing import clean, clean_lines
from tests.support.cli_lab import Cli

POSIX = pytest.mark.skipif(os.name == "nt", reason="links and modes are POSIX's")


def full(_: object) -> None:
    raise OSError(errno.ENOSPC, "no space left")


@pytest.mark.parametrize("form", ["--out", "--zip", "--plain-car", "--car", "--html"])
def test_export_to_a_file_with_content_is_refused(cli: Cli, tmp_path: Path, form: str) -> None:
    cli.ok("write", "tone", "--body", "direct")
    there = tmp_path / "there"
    there.write_bytes(b"the only copy")
    assert "--overwrite" in cli.fails(2, "export", form, str(there)).err
    assert there.read_bytes() == b"the only copy"
    if form not in ("--car", "--html"):  # there is no published version
        cli.ok("export", form, str(there), "--overwrite")
        assert b"the only copy" not in there.read_bytes()
        (tmp_path / "empty").touch()
        cli.ok("export", form, str(tmp_path / "empty"))


@pytest.mark.parametrize("command", ["key sheet --output", "format cid notes --car", "open notes --export"])
def test_other_commands_replace_a_file_only_with_overwrite(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    monkeypatch.chdir(tmp_path)
    notes, there = tmp_path / "notes", tmp_path / "there"
    notes.mkdir()
    (notes / "tone.md").write_text("direct")
    there.write_bytes(b"the only copy")
    assert (
        "Name a new file, or replace it with --overwrite." in sealed.fails(2, *command.split(), "there").err
    )
    assert there.read_bytes() == b"the only copy"
    sealed.ok(*command.split(), "there", "--overwrite")
    assert b"the only copy" not in there.read_bytes()
    assert "--overwrite requires" in sealed.fails(2, *command.split()[:-1], "--overwrite").err
    assert "Create the folder" in sealed.fails(30, *command.split(), "absent/there").err


@POSIX
@pytest.mark.parametrize("form", ["--out", "--zip", "--plain-car"])
def test_export_through_a_dangling_link_is_private_and_atomic(
    cli: Cli, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("write", "tone", "--body", "direct")
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to(real)
    with monkeypatch.context() as patch:
        patch.setattr("ipfsmem.file_durability.flush_to_disk", full)
        cli.fails(30, "export", form, str(link))
    assert not real.exists() and not list(tmp_path.glob(".*.tmp"))
    cli.ok("export", form, str(link))
    assert link.is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o600 and real.stat().st_size > 100


@pytest.mark.parametrize("form", ["--out", "--zip", "--plain-car"])
@pytest.mark.parametrize("more", [(), ("--overwrite",)], ids=["", "overwrite"])
def test_export_replaces_no_file_created_meanwhile(
    cli: Cli, tmp_path: Path, form: str, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("write", "tone", "--body", "direct")
    there = tmp_path / "there"

    def flush(fd: int) -> None:
        there.write_bytes(b"mine")

    monkeypatch.setattr("ipfsmem.file_durability.flush_to_disk", flush)
    done = cli("export", form, str(there), *more)
    if more:
        assert done.code == 0 and there.read_bytes() != b"mine"
    else:
        assert done.code == 2 and "exists already" in done.err and there.read_bytes() == b"mine"
    assert not list(tmp_path.glob(".there*"))


@pytest.mark.parametrize("form", ["--out", "--zip", "--plain-car"])
def test_repeated_export_through_a_link_is_refused_but_the_first_remains(
    cli: Cli, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("write", "tone", "--body", "direct")
    link = os.link

    def link_twice(source: str, target: str) -> None:
        link(source, target)
        raise FileExistsError(errno.EEXIST, "exists")

    monkeypatch.setattr("os.link", link_twice)
    cli.ok("export", form, str(tmp_path / "there"))
    assert (tmp_path / "there").stat().st_size > 100 and not list(tmp_path.glob(".there*"))


@POSIX
def test_folders_inside_an_exported_folder_are_private(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "tone", "--body", "direct", "--scope", "work")
    (tmp_path / "here").mkdir(mode=0o755)
    cli.ok("export", "--dir", str(tmp_path / "here"))
    inside = [path for path in (tmp_path / "here").rglob("*") if path.is_dir()]
    assert tmp_path / "here" / "scopes" / "work" in inside
    assert {stat.S_IMODE(path.stat().st_mode) for path in inside} == {0o700}


@POSIX
def test_export_fills_the_empty_folder_that_a_shell_is_in(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("write", "tone", "--body", "direct")
    for number, form in enumerate(((), ("--to", "okf"))):
        here = tmp_path / f"here{number}"
        here.mkdir(mode=0o755)
        before = here.stat()
        monkeypatch.chdir(here)
        cli.ok("export", "--dir", ".", *form)
        assert here.stat().st_ino == before.st_ino and stat.S_IMODE(here.stat().st_mode) == 0o755
        assert list(Path().rglob("tone.md")) and not list(Path().glob(".export*"))
        assert "not an empty folder" in cli.fails(2, "export", "--dir", ".", *form).err


@POSIX
def test_export_to_a_link_to_a_folder_names_the_link(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "tone", "--body", "direct")
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to(real)
    for _ in range(2):
        said = cli.fails(2, "export", "--dir", str(link)).err
        assert f"{link} is a symbolic link" in said
        real.mkdir(exist_ok=True)
    assert link.is_symlink() and not any(real.iterdir())


@pytest.mark.parametrize("shown", [clean, clean_lines])
def test_invisible_characters_are_replaced_for_a_terminal(shown: object) -> None:
    assert callable(shown)
    for code in (0xAD, 0x34F, 0x115F, 0x200B, 0x2060, 0x3164, 0xFEFF, 0xE0001, 0xE0041, 0xE007F):
        assert shown(f"a{chr(code)}b") == "a\ufffdb", hex(code)
    assert shown("x\U000e0069\U000e0067\U000e006e") == "x\ufffd"
    assert shown("a\u200db\u200c") == "a\ufffdb\ufffd"
    for text in (
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u2764\ufe0f é 日本",
    ):
        assert shown(text) == text
