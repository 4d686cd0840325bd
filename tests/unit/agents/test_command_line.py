"""The command by which another program starts ipfsmem."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ipfsmem.agents import command_line


@pytest.mark.skipif(os.name == "nt", reason="a script of POSIX stands for Python")
def test_start_command_runs_nothing_in_the_project_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m ipfsmem` would search the current folder first, which may be a cloned project."""
    alone = _python_alone(tmp_path)
    monkeypatch.setattr(sys, "argv", ["-c"])
    monkeypatch.setattr(sys, "executable", str(alone))
    words = command_line.program_words({"PATH": str(tmp_path)})
    project = tmp_path / "project"
    (project / "ipfsmem").mkdir(parents=True)
    (project / "ipfsmem" / "__init__.py").touch()
    (project / "ipfsmem" / "__main__.py").write_text("print('ipfsmem of the project')\n")
    (project / "click.py").write_text("raise SystemExit('click of the project')\n")
    done = subprocess.run([*words, "--version"], cwd=project, capture_output=True, text=True, check=False)
    assert "of the project" not in done.stdout + done.stderr
    assert done.returncode == 0 and done.stdout.startswith("ipfsmem "), done


@pytest.mark.skipif(os.name == "nt", reason="a script of POSIX stands for Python")
def test_path_entry_inside_the_current_folder_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ipfsmem").write_text("#!/bin/sh\necho ipfsmem of the project\n")
    (tmp_path / "ipfsmem").chmod(0o755)
    (tmp_path / "bin").mkdir()
    alone = _python_alone(tmp_path / "bin")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["-c"])
    monkeypatch.setattr(sys, "executable", str(alone))
    assert command_line.program_words({"PATH": "."}) == (str(alone), "-P", "-m", "ipfsmem")
    assert command_line.program_words({"PATH": str(tmp_path)}) == (str(tmp_path / "ipfsmem"),)


def _python_alone(folder: Path) -> Path:
    """Create a Python without an `ipfsmem` next to it."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return path
