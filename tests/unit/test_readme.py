"""Commands and code of README.md work."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from ipfsmem.memory import Memory
from ipfsmem.wallet.signers import create_keystore

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text("utf-8")


def block(marker: str) -> str:
    """Return the code block after `<!-- test: marker -->`."""
    match = re.search(rf"<!-- test: {marker} -->\n```\w+\n(.*?)```", TEXT, re.S)
    assert match, f"README has no block {marker}"
    return match[1]


def test_python_example_of_the_readme_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    create_keystore(tmp_path / "wallet.json", "passphrase of the wallet", bytes(31) + b"\x11", scrypt_n=2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPFSMEM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IPFSMEM_CONFIG", os.devnull)
    code = block("python").replace("/media/stick", str(stick))
    for _ in range(2):  # the second time the memory already exists
        exec(compile(code, "README.md", "exec"), {})
        shown = capsys.readouterr().out
        assert shown.startswith("wants direct critique\n# Agent Memory\n")
        assert re.search(r"^bafy\w+ \d+$", shown, re.M)
    with Memory.load("alex", passphrase="passphrase of this device") as memory:
        assert [event["type"] for event in memory.timeline.read()] == ["played_clip", "played_clip"]


@pytest.mark.skipif(os.name == "nt", reason="it takes a terminal of POSIX")
def test_first_steps_print_the_documented_output(tmp_path: Path) -> None:
    """`...` stands for varying parts; a comment changes the machine."""
    import pty

    stick = tmp_path / "stick"
    stick.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("IPFSMEM_")}
    environment |= {"NO_COLOR": "1", "HOME": str(tmp_path), "IPFSMEM_PASSPHRASE": "a long sentence"}
    environment |= {"IPFSMEM_CONFIG": os.devnull, "TERM": "dumb", "IPFSMEM_EMBEDDINGS": "off"}
    machine, run = 1, 0
    for command, wanted in steps(block("session")):
        if command.startswith("# on another machine"):
            machine += 1
            continue
        words = [*shlex.split(command.replace("/media/stick", str(stick)))]
        assert words.pop(0) == "ipfsmem"
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "ipfsmem.cli", *words], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=theirs,
            stderr=theirs, env={**environment, "IPFSMEM_HOME": str(tmp_path / f"home{machine}")},
        )  # fmt: skip
        os.close(theirs)
        shown = read_all(ours)
        assert process.wait(60) == 0, shown
        pattern = re.escape("\n".join(wanted)).replace(r"\.\.\.", r"[\s\S]*?")
        assert re.fullmatch(pattern + r"\s*", shown), f"{command}\n{shown}"
        run += 1
    assert machine == 2 and run == 5


def steps(console: str) -> list[tuple[str, list[str]]]:
    """Yield commands, and comments that begin a line, with the lines below each."""
    found: list[tuple[str, list[str]]] = []
    for line in console.splitlines():
        if line.startswith(("$ ", "#")):
            found.append((line.removeprefix("$ "), []))
        elif line:
            found[-1][1].append(line)
    return found


def read_all(terminal: int) -> str:
    """Return the final content of a terminal: a rewritten line shows the last text."""
    seen = b""
    while True:
        try:
            piece = os.read(terminal, 65_536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(terminal)
    lines = [line.removesuffix("\r").rpartition("\r")[2] for line in seen.decode().split("\n")]
    return "\n".join(lines)


def test_picture_shows_the_first_steps() -> None:
    spec = spec_from_file_location("make_picture", ROOT / "docs" / "make_picture.py")
    assert spec is not None and spec.loader is not None
    maker = module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert "](docs/terminal.svg)" in TEXT
    assert (ROOT / "docs" / "terminal.svg").read_text("utf-8") == maker.text(), (
        "run: python docs/make_picture.py"
    )
    assert all(len(line) <= maker.COLUMNS for line in maker.session().splitlines())


def test_figures_of_the_readme_are_measured_ones() -> None:
    measured = (ROOT / "bench" / "RESULTS.md").read_text("utf-8").splitlines()
    rows = TEXT.split("Compared with encrypting backup tools")[1].split("\n\n")[1].splitlines()
    assert len(rows) == 7 and [row for row in rows if row not in measured] == []


def test_readme_stays_below_200_lines() -> None:
    assert len(TEXT.splitlines()) < 200


def test_readme_does_not_name_an_unpublished_package() -> None:
    assert "It is not on PyPI yet" in TEXT
    assert not re.search(r"(pip|uv tool|pipx) install (-q )?ipfsmem", TEXT)


def test_ci_script_runs_the_two_commands_of_the_readme() -> None:
    """Each is one line; one shows the program and one tests it."""
    blocks = re.findall(r"<!-- test: command -->\n```bash\n(.*?)```", TEXT, re.S)
    assert [len(block.splitlines()) for block in blocks] == [1, 1]
    assert blocks[0].endswith("ipfsmem demo\n") and blocks[1].endswith("-m pytest\n")
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert (
        r"<!-- test: command -->\n```bash\n(.*?)```" in script
        and "pip install -q -e '.[test]' &&" not in script
    )


def test_documents_name_only_offered_commands() -> None:
    from ipfsmem.cli.app import SHORT

    for document in (
        ROOT / "README.md",
        ROOT / "SECURITY.md",
        *sorted((ROOT / "docs" / "internals" / "security").glob("*.md")),
        ROOT / "docs" / "internals" / "architecture.md",
    ):
        for command in re.findall(r"`(?:uv run )?ipfsmem ([a-z]+)", document.read_text("utf-8")):
            assert command in SHORT, f"{document.name} names {command}"
