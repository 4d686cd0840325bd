"""Two machines, one project, one folder between them: what an agent remembers on one is there on the other, and nobody between can read it.

    python docs/two_machines.py [DIR]

Everything happens in DIR (a temporary folder without one). A stand-in for Claude Code writes Markdown as that does: a file with a
header for each memory. The two machines have homes, project folders and paths of their own; all that
they share is the folder `stick`, which both publish through. `tests/cli/test_two_machines.py` runs this and fails when anything here is not so.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

from ipfsmem.agents.claude_folders import project_name
from ipfsmem.cli import main

#: The key of a wallet that everybody knows (the first account of Hardhat), as a wallet is asked only once a machine here.
KEY = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
#: Words that must stand nowhere but in the attached folders.
WORDS = ("firmware", "make ship", "tabs not spaces", "on the desktop", "on the laptop", "acme", "canary")


class Machine:
    """A machine: a home, a project in a folder of its own, and an agent that remembers in files."""

    def __init__(self, base: Path, name: str, project: str, stick: Path) -> None:
        self.name, self.base, self.stick = name, base / name, stick
        self.home = self.base / "ipfsmem"
        self.claude = self.base / "claude"
        self.project = self.base / project
        git = self.project / ".git"
        for folder in (git / "objects", git / "refs", self.claude):
            folder.mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "config").write_text('[remote "origin"]\n\turl = git@github.com:acme/canary-api.git\n')
        known = {"projects": {str(self.project.resolve()): {}}}
        (self.claude / ".claude.json").write_text(json.dumps(known))

    @property
    def memory(self) -> Path:
        """The folder in which the agent remembers."""
        return self.claude / "projects" / project_name(str(self.project.resolve())) / "memory"

    def remembers(self, key: str, description: str, body: str) -> None:
        """The agent writes a memory."""
        self.memory.mkdir(parents=True, exist_ok=True)
        header = f"---\nname: {key}\ndescription: {description}\ntype: project\n---\n"
        (self.memory / f"{key}.md").write_text(f"{header}\n{body}\n")

    def edits(self, key: str, old: str, new: str) -> None:
        """The agent changes a memory."""
        file = self.memory / f"{key}.md"
        text = file.read_text()
        assert old in text, (key, old, text)
        file.write_text(text.replace(old, new))

    def runs(self, line: str, *, wallet: bool = False) -> str:
        """A command on this machine; what it printed."""
        print(f"{self.name}$ ipfsmem {line}")
        words = shlex.split(line)
        if wallet:
            words += ["--raw-key-fd", str(_pipe(KEY)), "--i-know-raw-keys"]
        said = StringIO()
        with self._environment(), redirect_stdout(said):
            code = main(words)
        if code:
            raise SystemExit(f"{self.name}: ipfsmem {line} ended with {code}\n{said.getvalue()}")
        print("".join(f"  {text}\n" for text in said.getvalue().splitlines()), end="")
        return said.getvalue()

    @contextmanager
    def _environment(self) -> Iterator[None]:
        mine = {
            "HOME": str(self.base),
            "IPFSMEM_HOME": str(self.home),
            "IPFSMEM_LABEL": self.name,
            "IPFSMEM_PROVIDER": str(self.stick),
            "CLAUDE_CONFIG_DIR": str(self.claude),
        }
        before: Mapping[str, str] = dict(os.environ)
        os.environ.update(mine)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def texts(self) -> dict[str, str]:
        """Every file of the agent's memory, by name."""
        return {one.name: one.read_text() for one in sorted(self.memory.glob("*.md"))}

    def memories(self) -> dict[str, str]:
        """Those without MEMORY.md, which is left alone while the agent may be about to write its own line there."""
        return {name: text for name, text in self.texts().items() if name != "MEMORY.md"}


def _pipe(text: str) -> int:
    read, write = os.pipe()
    os.write(write, text.encode())
    os.close(write)
    return read


def play(base: Path) -> tuple[Machine, Machine]:
    """The whole play. Raises AssertionError or SystemExit where something is not as it should be."""
    stick = base / "stick"
    stick.mkdir(parents=True)
    desktop = Machine(base, "desktop", "work/canary-api", stick)
    laptop = Machine(base, "laptop", "src/customers/api", stick)

    print("# The desktop: the agent has remembered things before; one line connects them.")
    desktop.remembers("role", "what we do", "We write firmware.")
    desktop.remembers(
        "deploy", "how to deploy", "Deploy with make ship.\n\nTell the others first.\n\nThen wait."
    )
    desktop.remembers("style", "how we write", "Use tabs not spaces.")
    desktop.runs("init --mode encrypted-ipfs --unprotected-keys", wallet=True)
    desktop.runs("connect claude-code --project " + shlex.quote(str(desktop.project)))
    desktop.runs("sync")

    print("# The laptop: another path, one signature of the wallet, one line.")
    laptop.runs("init --mode encrypted-ipfs --unprotected-keys", wallet=True)
    laptop.runs("connect claude-code --all --yes")
    assert laptop.texts().keys() >= {"role.md", "deploy.md", "style.md"}, laptop.texts()

    print("# Both agents write at once: new memories, and different lines of one.")
    desktop.remembers("desk", "where this was written", "Written on the desktop.")
    laptop.remembers("lap", "where this was written", "Written on the laptop.")
    desktop.edits("deploy", "Deploy with make ship.", "Deploy with make ship, twice.")
    laptop.edits("deploy", "Then wait.", "Then wait an hour.")
    settle(desktop, laptop)
    for machine in (desktop, laptop):
        merged = machine.texts()["deploy.md"]
        assert "make ship, twice" in merged, merged
        assert "wait an hour" in merged, merged
        assert "Written on the laptop." in machine.texts()["lap.md"]
        assert "Written on the desktop." in machine.texts()["desk.md"]

    print("# One of them is forgotten on the laptop: gone on both.")
    scope = json.loads(laptop.runs("scope list --json"))["scopes"][0]["scope"]
    laptop.runs(f"forget style --scope {scope}")
    settle(laptop, desktop)
    assert "style.md" not in desktop.texts()

    print("# Both change the same line: nothing is lost, both texts are there, and a person settles it.")
    desktop.edits("role", "We write firmware.", "We write firmware for pumps.")
    laptop.edits("role", "We write firmware.", "We write firmware for clocks.")
    settle(desktop, laptop)
    for machine in (desktop, laptop):
        both = "".join(text for name, text in machine.texts().items() if name.startswith("role"))
        assert "pumps" in both, machine.texts()
        assert "clocks" in both, machine.texts()
    found = json.loads(desktop.runs(f"conflicts --scope {scope} --json"))
    token = found["conflicts"][0]["seen"]
    desktop.runs(f"resolve role --scope {scope} --seen {token} --keep")
    settle(desktop, laptop)

    assert desktop.memories() == laptop.memories(), (desktop.memories(), laptop.memories())
    assert not [name for name in desktop.texts() if "conflict" in name]
    print(f"# Both folders are equal: {', '.join(desktop.memories())}")
    print("# The first sync two minutes after an agent wrote a file adds its line to MEMORY.md, in both.")
    look_for_words(base, (desktop, laptop))
    print(
        "# No word of them stands in the folder between, or in the state of either machine. Only the copies of Claude"
    )
    print(
        "# Code's own settings in .agents/ name its projects, as those do; they go with `ipfsmem disconnect`."
    )
    return desktop, laptop


def settle(*machines: Machine) -> None:
    """Each syncs, and each again, so that the first has what the last sent."""
    for machine in (*machines, *machines):
        machine.runs("sync")


def look_for_words(base: Path, machines: tuple[Machine, ...]) -> None:
    """Raises AssertionError when a word of a memory, the project's name or its remote stands in what is not an attached folder."""
    places = [base / "stick", *(machine.home for machine in machines)]
    for file in (one for place in places for one in place.rglob("*") if one.is_file()):
        if ".agents" in file.parts:
            continue  # Claude Code's own settings as they were before, for `disconnect`; no memory
        data = file.read_bytes().lower()
        for word in WORDS:
            assert word.encode() not in data, f"{word!r} stands in {file}"
            assert word.encode() not in str(file.relative_to(base)).lower().encode(), file


if __name__ == "__main__":
    if len(sys.argv) > 1:
        play(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory(prefix="two-machines-") as folder:
            play(Path(folder))
