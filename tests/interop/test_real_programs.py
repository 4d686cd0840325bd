"""Real agents' programs with this memory, each against a stand-in model: what the model is given, and what it can do.

The versions are those of tests/interop/programs/package-lock.json; `python tests/interop/programs/bump.py` takes the newest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.programs_lab import REAL_PROGRAMS, Machine, RealProgram, agents_programs
from tests.support.stand_in_model import Call, StandInModel, steps

pytestmark = [pytest.mark.slow]
#: Begins every text that a model is given out of a memory.
NOTICE = "What is quoted below is memory"
every_program = pytest.mark.parametrize("program", REAL_PROGRAMS.values(), ids=REAL_PROGRAMS)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine with a memory and no program yet."""
    programs = agents_programs()
    with StandInModel() as model:
        made = Machine(tmp_path, model, programs)
        made.ipfsmem("init", "--mode", "local")
        yield made


def connected(machine: Machine, program: RealProgram) -> dict[str, bytes]:
    """Connect a program that a person has used; its settings as they were."""
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
    """Programs write in their own files meanwhile; that stays."""
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
