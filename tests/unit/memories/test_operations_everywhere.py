"""Properties of every operation in every interface: it is in the table, a run is recorded, and the fields
are the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ipfsmem.api.serving import ROUTES
from ipfsmem.device.operations import Operation
from ipfsmem.mcp.greetings import prepared
from tests.support.operation_fields import differences
from tests.support.operation_fields import recorded as known_differences
from tests.support.operation_rows import (
    COMMANDS_WITHOUT,
    NOT_THERE,
    ROWS,
    Op,
)
from tests.support.operation_world import Answer, commands, recorded, run, world

#: The name of an interface in the list of operations.
RECORDED_AS = {"python": "python", "cli": "cli", "http": "http", "tool": "mcp"}
#: Operations that create what their argument names.
MAKE = ("write", "value set", "session add", "session create", "graph add")
CALLS = [pytest.param(op, face, id=f"{op.name} by {face}") for op in ROWS for face in op.faces]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world that no test changes."""
    made = tmp_path_factory.mktemp("world") / "home"
    world(made)
    return made


@pytest.fixture(scope="module")
def recorded_in_world(tmp_path_factory: pytest.TempPathFactory) -> int:
    """The number of operations that each new world has recorded."""
    made = tmp_path_factory.mktemp("new") / "home"
    world(made)
    return len(recorded(made))


def test_every_declared_operation_has_one_row() -> None:
    without = [name for names in COMMANDS_WITHOUT.values() for name in names]
    for face, declared in (
        ("cli", [name for name in commands() if name not in without]),
        ("http", [route.name for route in ROUTES]),
        ("tool", list(prepared()["tools"])),
    ):
        rows = Counter(op.named(face) for op in ROWS if op.named(face))
        assert sorted(rows) == sorted(declared), face
        assert set(rows.values()) == {1}, face
    assert set(without) <= commands().keys()


def entries_of(
    home: Path, op: Op, face: str, given: dict[str, object], before: int
) -> tuple[Answer, list[Operation]]:
    """Return the answer of an interface, and the recorded operations after the `before` oldest, newest
    first."""
    answer = run(op, face, home, given)
    assert not answer.broken, answer
    entries = recorded(home, before)
    assert {(one.operation, one.face) for one in entries} <= {(op.noted, RECORDED_AS[face])}, entries
    return answer, entries


@pytest.mark.parametrize("op", ROWS, ids=[op.name for op in ROWS])
def test_run_is_recorded_and_answers_the_known_fields(op: Op, tmp_path: Path, recorded_in_world: int) -> None:
    answers = {}
    for face in op.faces:
        world(tmp_path / face)
        answers[face], entries = entries_of(tmp_path / face, op, face, op.call(face), recorded_in_world)
        done = answers[face].ok and answers[face].values not in (False, None)
        if not op.noted:
            assert not entries
        else:
            assert (entries[0].outcome == "") == done, (face, answers[face], entries)
    assert differences(answers) == known_differences().get(op.name, {})


def naming(op: Op, face: str) -> str:
    """Return the parameter that must name something existing; "" for none."""
    given = op.call(face)
    if not op.noted or op.name in MAKE:
        return ""
    return next((one for one in NOT_THERE if isinstance(given.get(one), type(NOT_THERE[one]))), "")


@pytest.mark.parametrize(("op", "face"), [one for one in CALLS if naming(*one.values)])
def test_run_that_fails_is_never_recorded_as_done(op: Op, face: str, home: Path) -> None:
    name = naming(op, face)
    answer, entries = entries_of(
        home, op, face, {**op.call(face), name: NOT_THERE[name]}, len(recorded(home))
    )
    if not answer.ok or answer.values is False:
        assert all(one.outcome for one in entries), (answer, entries)
        assert entries, answer
