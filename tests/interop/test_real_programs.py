"""Real agent programs with a vault, each with a stand-in model: the model's context, and the tools that it
can call.

The versions are those of tests/interop/programs/package-lock.json; `python tests/interop/programs/bump.py`
updates them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents_lab import repository
from tests.support.programs_lab import REAL_PROGRAMS, Machine, RealProgram, agents_programs
from tests.support.stand_in_model import Call, Script, Seen, StandInModel, Step, found, steps

pytestmark = [pytest.mark.slow]
#: Begins every text of a memory that a model receives.
NOTICE = "What is quoted below is memory"
every_program = pytest.mark.parametrize("program", REAL_PROGRAMS.values(), ids=REAL_PROGRAMS)
#: Programs whose hook gives the model a text.
WITH_HOOKS = {name: program for name, program in REAL_PROGRAMS.items() if program.takes_context}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine with a vault and no program yet."""
    programs = agents_programs()
    with StandInModel() as model:
        made = Machine(tmp_path, model, programs)
        made.ipfsmem("init", "--mode", "local")
        yield made
        made.close()


def connected(machine: Machine, program: RealProgram) -> dict[str, bytes]:
    """Connect a used program; return its previous settings."""
    machine.has(program)
    before = machine.files(program)
    machine.ipfsmem("connect", program.name)
    assert machine.files(program) != before
    return before


@every_program
def test_real_program_recalls_saves_and_is_disconnected(machine: Machine, program: RealProgram) -> None:
    before = connected(machine, program)
    machine.ipfsmem("disconnect", program.name)
    assert machine.files(program) == before
    machine.ipfsmem("connect", program.name)
    machine.ipfsmem("write", "deploy-host", "--name", "Deploy host", "--description", "which machine deploys", "--body", "Deploys run on zebrafish.")  # fmt: skip

    machine.run(
        program,
        "Which machine runs deploys?",
        steps(
            Call("recall", {"query": "which machine deploys"}),
            Call(
                "remember",
                {
                    "key": "tone",
                    "name": "Tone",
                    "description": "how to answer",
                    "body": "Say what is wrong first.",
                },
            ),
        ),
    )
    found, saved = machine.model.results
    assert "Deploys run on zebrafish." in found and NOTICE in found
    assert "tone" in saved
    assert machine.ipfsmem("read", "tone", "--body").strip() == "Say what is wrong first."

    machine.run(program, "How do I answer?", steps())
    assert ("how to answer" in machine.model.text) is program.takes_context
    _only_ours_goes(machine, program)


def _only_ours_goes(machine: Machine, program: RealProgram) -> None:
    """Check that disconnecting removes only our entries; programs write to their own files meanwhile."""
    machine.ipfsmem("disconnect", program.name)
    left = machine.files(program)
    for name, data in left.items():
        assert b"ipfsmem" not in data, name
        if name.endswith(".json"):
            given = json.loads(program.settings[name])
            assert {key: json.loads(data)[key] for key in given} == given
    machine.ipfsmem("connect", program.name)
    machine.ipfsmem("disconnect", program.name)
    assert machine.files(program) == left


LINES = [f"Line {number:04}: the quick brown fox jumps over it." for number in range(800)]


def reads_all_of(key: str, then: str) -> Script:
    """A model that tries to replace a text after its first page, then reads on as told and replaces it."""

    def script(seen: Seen) -> Step:
        done = len(seen.results)
        if done == 0:
            return found(seen, Call("read_memory", {"key": key}))
        if done == 1:
            return found(seen, Call("remember", {"key": key, "body": then}))
        if "is changed" in seen.results[-1] or done > 12:
            return "done"
        pages = [seen.results[0], *seen.results[2:]]
        more = re.findall(r"start=(\d+)", pages[-1])
        if more:
            return found(seen, Call("read_memory", {"key": key, "start": int(more[-1])}))
        token = re.findall(r"seen: ([0-9a-f]{16})", pages[-1])
        return found(seen, Call("remember", {"key": key, "body": then, "seen": token[-1] if token else ""}))

    return script


@every_program
def test_real_program_reads_long_text_of_project_before_replacing_it(
    machine: Machine, program: RealProgram
) -> None:
    machine.has(program)
    (machine.home / ".claude").mkdir(exist_ok=True)
    machine.ipfsmem("connect", "claude-code", "--project", str(machine.project), "--scope", "shop", "--yes")
    machine.ipfsmem("connect", program.name)
    machine.ipfsmem("write", "big", "--scope", "shop", "--name", "Big", "--body", "\n".join(LINES))

    machine.run(program, "Shorten the long text.", reads_all_of("big", "a shorter text"))
    first, refused, *pages = machine.model.results
    assert "seen:" not in first
    assert "nothing was written" in refused
    assert "is changed" in pages[-1]
    assert all(NOTICE in page for page in (first, *pages[:-1]))
    seen = "\n".join((first, *pages[:-1]))
    assert [line for line in LINES if line not in seen] == []
    assert machine.ipfsmem("read", "big", "--scope", "shop", "--body").strip() == "a shorter text"


CLAUDE = {name: one for name, one in REAL_PROGRAMS.items() if one.name == "claude-code"}
every_claude = pytest.mark.parametrize("program", CLAUDE.values(), ids=CLAUDE)


def adopted(machine: Machine, program: RealProgram) -> Path:
    """Claude Code's linked memory folder of the project, with one memory."""
    folder = machine.claude_folder()
    folder.mkdir(parents=True)
    (folder / "build.md").write_text("---\nname: build\ndescription: how it is built\n---\n\nWith make.\n")
    (folder / "MEMORY.md").write_text("- [Build](build.md) — how it is built\n")
    machine.has(program)
    machine.ipfsmem("connect", "claude-code", "--project", str(machine.project), "--scope", "shop", "--yes")
    return folder


def remembers_in_two_steps(folder: Path, key: str, *, pause: float) -> Script:
    """Claude Code's instruction to its model: write a file, then add a line to MEMORY.md."""
    old = "- [Build](build.md) — how it is built"
    text = f"---\nname: {key}\ndescription: about {key}\n---\n\nText of {key}.\n"
    return steps(
        Call("Read", {"file_path": str(folder / "MEMORY.md")}),
        Call("Write", {"file_path": str(folder / f"{key}.md"), "content": text}),
        Call("Bash", {"command": f"sleep {pause}", "description": "think"}),
        Call("Edit", {"file_path": str(folder / "MEMORY.md"), "old_string": old, "new_string": f"{old}\n- [{key}]({key}.md) — its own line"}),
    )  # fmt: skip


@every_claude
def test_claude_code_edits_its_index_while_folder_is_watched(machine: Machine, program: RealProgram) -> None:
    folder = adopted(machine, program)
    # The server that Claude Code starts watches the folder.
    machine.run(program, "Remember how we lint.", remembers_in_two_steps(folder, "lint", pause=3))
    *_, edited = machine.model.results
    assert "has been updated" in edited, machine.model.results
    index = (folder / "MEMORY.md").read_text("utf-8")
    assert index.count("(lint.md)") == 1 and "its own line" in index
    assert "Text of lint." in machine.ipfsmem("read", "lint", "--scope", "shop", "--body")
    assert "its own line" in (folder / "MEMORY.md").read_text("utf-8")


@every_claude
def test_claude_code_is_given_memories_again_after_compaction_only(
    machine: Machine, program: RealProgram
) -> None:
    connected(machine, program)
    machine.ipfsmem("write", "tone", "--name", "Tone", "--description", "how to give feedback", "--body", "Say what is wrong first.")  # fmt: skip
    question = "How should feedback be given, which way?"

    def given() -> tuple[int, int]:
        """Return how often the index and the memory are in the model's context."""
        text = machine.model.requests[-1].text
        return text.count("tone: Tone"), text.count("Say what is wrong first.")

    machine.run(program, question, steps(final="<summary>We spoke.</summary>"))
    assert given() == (1, 1)
    machine.run(program, question, steps(final="<summary>We spoke.</summary>"), "--continue")
    assert given() == (1, 1)
    machine.run(program, "/compact", steps(final="<summary>We spoke.</summary>"), "--continue")
    machine.run(program, question, steps(final="done"), "--continue")
    assert given() == (1, 1)
    assert machine.model.requests[-1].text.count(question) < 3  # the earlier context is gone


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_real_program_reports_locked_memory_and_uses_it_unlocked(
    machine: Machine, tmp_path: Path, name: str
) -> None:
    program = REAL_PROGRAMS[name]
    (tmp_path / "stick").mkdir()
    machine.ipfsmem("init", "-n", "sealed", "--mode", "encrypted-ipfs", "--new-wallet", str(tmp_path / "wallet.json"), "--provider", str(tmp_path / "stick"), "--create")  # fmt: skip
    machine.ipfsmem("write", "tone", "-n", "sealed", "--name", "Tone", "--description", "how to give feedback", "--body", "Say what is wrong first.")  # fmt: skip
    machine.has(program)
    machine.ipfsmem("connect", program.name, "-n", "sealed")
    machine.ipfsmem("lock", "-n", "sealed")
    passphrase = machine.environment.pop("IPFSMEM_PASSPHRASE")

    asks = steps(Call("recall", {"query": "how to give feedback"}))
    machine.run(program, "How should feedback be given, which way?", asks)
    assert "ipfsmem unlock" in machine.model.results[0]
    assert "wrong first" not in machine.model.text

    machine.environment["IPFSMEM_PASSPHRASE"] = passphrase
    machine.ipfsmem("unlock", "-n", "sealed", "--for", "1h")
    del machine.environment["IPFSMEM_PASSPHRASE"]
    machine.run(program, "How should feedback be given, which way?", asks)
    assert "Say what is wrong first." in machine.model.results[0]


def test_claude_code_on_two_machines_appends_to_one_index(tmp_path: Path) -> None:
    programs, program = agents_programs(), REAL_PROGRAMS["claude-code"]
    wallet, stick = str(tmp_path / "wallet.json"), tmp_path / "stick"
    stick.mkdir()
    old = "- [Build](build.md) — how it is built"
    with StandInModel() as model:
        a, b = (Machine(tmp_path / name, model, programs) for name in "ab")
        a.ipfsmem("init", "--new-wallet", wallet, "--provider", str(stick), "--create")
        for one in (a, b):
            repository(one.project)
            one.has(program)
        folder = a.claude_folder()
        folder.mkdir(parents=True)
        (folder / "build.md").write_text(
            "---\nname: build\ndescription: how it is built\n---\n\nWith make.\n"
        )
        (folder / "MEMORY.md").write_text(f"{old}\n")
        a.ipfsmem("connect", "claude-code", "--project", str(a.project), "--yes")
        a.ipfsmem("sync")
        b.ipfsmem("init", "--wallet", wallet, "--provider", str(stick))
        b.ipfsmem("connect", "claude-code", "--project", str(b.project), "--yes")
        b.ipfsmem("sync")
        assert old in (b.claude_folder() / "MEMORY.md").read_text("utf-8")

        for one, key in ((a, "lint"), (b, "docs")):
            one.run(
                program,
                f"Remember how {key} is done.",
                remembers_in_two_steps(one.claude_folder(), key, pause=0.1),
            )
            assert "has been updated" in model.results[-1]
        for one in (a, b, a, b):
            one.ipfsmem("sync")
        for one in (a, b):
            index = (one.claude_folder() / "MEMORY.md").read_text("utf-8")
            assert all(index.count(f"({key}.md)") == 1 for key in ("build", "lint", "docs")), index
            assert not list(one.claude_folder().glob("*.conflict-*"))
            assert json.loads(one.ipfsmem("conflicts", "--json"))["conflicts"] == []
            one.close()


@pytest.mark.parametrize("program", WITH_HOOKS.values(), ids=WITH_HOOKS)
def test_real_program_is_given_what_was_said_in_an_earlier_session(
    machine: Machine, program: RealProgram
) -> None:
    connected(machine, program)
    item = {"role": "user", "content": "The staging database password rotates every Tuesday at nine."}
    machine.ipfsmem("session", "add", "planning", stdin=f"{json.dumps(item)}\n".encode())
    question = "When does the staging database password rotate?"
    machine.run(program, question, steps())
    line = " user: The staging database password rotates every Tuesday at nine."
    given = [seen.text for seen in machine.model.requests if line in seen.text]
    # Two programs escape the `<` before it, and one asks its model again which part of the conversation to
    # keep.
    assert given and all(NOTICE in text and text.count("memory-said") == 2 for text in given)
    if program.name == "claude-code":
        machine.run(program, question, steps(), "--continue")
        assert machine.model.text.count("rotates every Tuesday") == 1  # once per session
