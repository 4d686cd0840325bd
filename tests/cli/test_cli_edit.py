"""`ipfsmem edit`: the editor opens the shown text, and no typed text is lost."""

from __future__ import annotations

import re
import shlex
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from ipfsmem.cli import edit_cmd
from tests.support.cli_lab import Cli


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the editor's temporary files."""
    folder = tmp_path / "editing"
    folder.mkdir()
    monkeypatch.setattr(edit_cmd, "_IN_MEMORY", folder)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    return folder


def set_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, *words: str) -> None:
    """Set an editor that runs this code on the file at `path`."""
    script = tmp_path / "an editor.py"
    script.write_text(
        f"import pathlib, sys\npath = pathlib.Path(sys.argv[-1])\ntext = path.read_text()\n{code}\n"
    )
    monkeypatch.setenv("EDITOR", shlex.join([sys.executable, str(script), *words]))


def test_edit_writes_the_saved_text_and_deletes_the_temporary_file(
    cli: Cli, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("write", "tone", "--description", "how", "--body", "Say what is right first.")
    mode = tmp_path / "mode"
    set_editor(
        monkeypatch, tmp_path,
        "path.write_text(text.replace('right', 'wrong').replace('how', 'order'))\n"
        f"pathlib.Path({str(mode)!r}).write_text(f'{{path.parent.stat().st_mode}} {{path.name}}')",
    )  # fmt: skip
    assert cli.ok("edit", "tone").out.startswith("tone is written: ")
    text = cli.ok("read", "tone").out
    assert "Say what is wrong first." in text and "description: order" in text
    bits, name = mode.read_text().split()
    assert name == "tone.md" and stat.S_IMODE(int(bits)) == 0o700
    assert list(place.iterdir()) == []


def test_edit_without_a_change_writes_nothing(
    cli: Cli, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("write", "tone", "--body", "x")
    before = cli.ok("history", "tone", "--json").json
    set_editor(monkeypatch, tmp_path, "")
    assert cli.ok("edit", "tone").out == "tone is unchanged\n"
    assert cli.ok("edit", "tone", "--json").json["sha256"] == cli.ok("read", "tone", "--json").json["sha256"]
    assert cli.ok("history", "tone", "--json").json == before and list(place.iterdir()) == []


def test_edit_of_a_memory_that_changed_meanwhile_keeps_both_texts(
    cli: Cli, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("write", "tone", "--body", "old")
    set_editor(
        monkeypatch, tmp_path,
        "import subprocess\npath.write_text(text.replace('old', 'mine'))\n"
        "subprocess.run([sys.executable, '-m', 'ipfsmem', 'write', 'tone', '--body', 'theirs', '--home', sys.argv[1]], check=True)",
        str(cli.home),
    )  # fmt: skip
    refused = cli("edit", "tone")
    assert refused.code == 6 and "theirs" in cli.ok("read", "tone").out
    kept = re.search(r"your text: ipfsmem (write tone --whole --file (\S+))$", refused.err, re.MULTILINE)
    assert kept is not None and "mine" in Path(kept[2]).read_text()
    cli.ok(*shlex.split(kept[1]))
    assert "mine" in cli.ok("read", "tone").out


@pytest.mark.parametrize("code", ["raise SystemExit(1)", "path.unlink()", "path.write_text(' \\n')"])
def test_edit_without_a_saved_text_changes_nothing(
    cli: Cli, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    cli.ok("write", "tone", "--body", "x")
    set_editor(monkeypatch, tmp_path, code)
    assert "nothing was written" in cli.fails(2, "edit", "tone").err
    assert cli.ok("read", "tone", "--body").out == "x\n" and list(place.iterdir()) == []


def test_text_of_an_editor_that_failed_after_saving_is_kept(
    cli: Cli, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("write", "tone", "--body", "x")
    set_editor(monkeypatch, tmp_path, "path.write_text(text + 'saved')\nraise SystemExit(1)")
    told = cli.fails(2, "edit", "tone").err
    assert "--file" in told and "kept in memory, until the next restart." in told
    assert ["saved" in file.read_text() for file in place.glob("*/tone.md")] == [True]


def test_edit_without_an_editor_or_a_terminal_is_refused(cli: Cli, place: Path) -> None:
    cli.ok("write", "tone", "--body", "x")
    assert "no editor is set" in cli.fails(2, "edit", "tone").err


def test_edit_names_the_scope_that_has_the_memory(
    cli: Cli, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("write", "tone", "--body", "old", "--scope", "work")
    set_editor(monkeypatch, tmp_path, "path.write_text(text.replace('old', 'new'))")
    assert "ipfsmem edit tone --scope work" in cli.fails(4, "edit", "tone").err
    cli.ok("edit", "tone", "--scope", "work")
    assert "new" in cli.ok("read", "tone", "--scope", "work").out


def test_edit_without_a_memory_file_system_uses_a_folder(
    cli: Cli, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_cmd, "_IN_MEMORY", tmp_path / "none")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    cli.ok("write", "tone", "--body", "old")
    set_editor(
        monkeypatch, tmp_path, f"assert path.parent.parent == pathlib.Path({str(place)!r})\npath.write_text(text.replace('old', 'new'))"
    )  # fmt: skip
    cli.ok("edit", "tone")
    assert "new" in cli.ok("read", "tone").out and list(place.iterdir()) == []
    set_editor(monkeypatch, tmp_path, "path.write_text(text + 'saved')\nraise SystemExit(1)")
    assert "Your text is kept. Read tone" in cli.fails(2, "edit", "tone").err


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("code", "", "--wait"),
        ("code.cmd", "-n", "-n --wait"),
        ("subl", "-w", "-w"),
        ("cursor", "--wait", "--wait"),
        ("kate", "", "--block"),
        ("gvim", "--nofork", "--nofork"),
        ("pycharm.exe", "", "--wait"),
        ("vim", "", ""),
    ],
)
def test_gui_editor_is_started_with_its_wait_option(
    cli: Cli, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, given: str, told: str
) -> None:
    """Without it the editor returns before the text is saved."""
    cli.ok("write", "tone", "--body", "old")
    program = tmp_path / name
    program.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\npath = pathlib.Path(sys.argv[-1])\n"
        f"pathlib.Path({str(tmp_path / 'told')!r}).write_text(' '.join(sys.argv[1:-1]))\n"
        "path.write_text(path.read_text().replace('old', 'new'))\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("EDITOR", f"{shlex.quote(str(program))} {given}".strip())
    assert cli.ok("edit", "tone").out.startswith("tone is written: ")
    assert (tmp_path / "told").read_text() == told
