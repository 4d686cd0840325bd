"""What README.md tells people to type works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ipfsmem.memory import Memory
from ipfsmem.seal.signers import create_keystore

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text("utf-8")


def block(marker: str) -> str:
    """The code block behind `<!-- test: marker -->`."""
    match = re.search(rf"<!-- test: {marker} -->\n```\w+\n(.*?)```", TEXT, re.S)
    assert match, f"README has no block {marker}"
    return match[1]


def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    create_keystore(tmp_path / "wallet.json", "passphrase of the wallet", bytes(31) + b"\x11", scrypt_n=2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPFSMEM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IPFSMEM_CONFIG", str(tmp_path / "no.toml"))
    code = block("python").replace("/media/stick", str(stick))
    for _ in range(2):  # the second time the memory is there already
        exec(compile(code, "README.md", "exec"), {})
        shown = capsys.readouterr().out
        assert shown.startswith("wants direct critique\n# Agent Memory\n")
        assert re.search(r"^bafy\w+ \d+$", shown, re.M)
    with Memory.load("alex", passphrase="passphrase of this device") as memory:
        assert [event["type"] for event in memory.timeline()] == ["played_clip", "played_clip"]


@pytest.mark.skipif(os.name == "nt", reason="the block is for a POSIX shell")
def test_command_line(tmp_path: Path) -> None:
    code = block("cli")
    for command in sorted(set(re.findall(r"^ipfsmem (\w+)", code, re.M))):
        if find_spec(f"ipfsmem.cli.{command}_cmd") is None:
            pytest.skip(f"the command {command} is not there yet")
    stick = tmp_path / "stick"
    stick.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("IPFSMEM_")}
    environment |= {
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    script = f'ipfsmem() {{ "{sys.executable}" -m ipfsmem.cli "$@"; }}\n' + code.replace(
        "/media/stick", str(stick)
    )
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("wants direct critique") >= 2
    assert (tmp_path / "second" / "default" / "ipfsmem.json").exists()


def test_the_two_commands_are_run_by_the_ci_script() -> None:
    """It takes them from the page as they stand; each is one line, one shows it and one tests it."""
    blocks = re.findall(r"<!-- test: command -->\n```bash\n(.*?)```", TEXT, re.S)
    assert [len(block.splitlines()) for block in blocks] == [1, 1]
    assert blocks[0].endswith("ipfsmem demo\n") and blocks[1].endswith("-m pytest\n")
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert (
        r"<!-- test: command -->\n```bash\n(.*?)```" in script
        and "pip install -q -e '.[test]' &&" not in script
    )


def test_it_names_only_commands_that_are_offered() -> None:
    from ipfsmem.cli.app import SHORT

    for document in (ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "docs" / "ARCHITECTURE.md"):
        for command in re.findall(r"`(?:uv run )?ipfsmem ([a-z]+)", document.read_text("utf-8")):
            assert command in SHORT, f"{document.name} names {command}"
