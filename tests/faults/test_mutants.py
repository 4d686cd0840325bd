"""Faults that no test finds: the short form of `python -m bench.soak mutants`, and its classification of
faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.mutating import Mutant, drawn, mutants, mutated
from bench.soak_mutants import run, try_faults

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads /proc, which only Linux has"
)

MODULE = '''
"""Documentation."""

from __future__ import annotations

LIMIT = 3


def allowed(count: int, names: "list[str]") -> bool:
    """Whether so many are allowed."""
    if count < LIMIT:
        names.append("one")
    if not names:
        raise ValueError("no names: add one")
    return count < LIMIT
'''


def made(tmp_path: Path, text: str) -> list[Mutant]:
    (tmp_path / "module.py").write_text(text)
    return mutants(tmp_path, ["module.py"])


def test_mutants_of_a_function_are_named_with_operator_and_place(tmp_path: Path) -> None:
    assert [(one.function, one.operator, one.before, one.same) for one in made(tmp_path, MODULE)] == [
        ("(module)", "add one", "3", 0),
        ("allowed", "another comparison", "count < LIMIT", 0),
        ("allowed", "negate the condition", "count < LIMIT", 0),
        ("allowed", "remove the statement", 'names.append("one")', 0),
        ("allowed", "another text", '"one"', 0),
        ("allowed", "remove not", "not names", 0),
        ("allowed", "remove the statement", 'raise ValueError("no names: add one")', 0),
        ("allowed", "return None", "return count < LIMIT", 0),
        ("allowed", "another comparison", "count < LIMIT", 1),
    ]


def test_docstrings_annotations_and_messages_make_no_mutant(tmp_path: Path) -> None:
    other = MODULE.replace("Whether so many are", "If that many are").replace("list[str]", "list[int]")
    assert {one.name for one in made(tmp_path, other)} == {one.name for one in made(tmp_path, MODULE)}
    assert not any(one.before in ('"no names: add one"', '"list[str]"') for one in made(tmp_path, MODULE))


def test_each_mutant_changes_the_code_but_not_the_file(tmp_path: Path) -> None:
    answers = set()
    for one in made(tmp_path, MODULE):
        space: dict[str, object] = {}
        exec(mutated(MODULE, "module.py", one.place), space)
        answers.add(mutated(MODULE, "module.py", one.place))
    assert len(answers) == 9 and compile(MODULE, "module.py", "exec", dont_inherit=True) not in answers
    assert (tmp_path / "module.py").read_text() == MODULE


def test_code_added_elsewhere_hardly_changes_the_draw(tmp_path: Path) -> None:
    before = {one.name for one in drawn(made(tmp_path, MODULE), 1, 6)}
    more = "\n\ndef other(count):\n    return count + 1\n"
    after = {one.name for one in drawn(made(tmp_path, MODULE.replace("LIMIT = 3", f"LIMIT = 3{more}")), 1, 6)}
    assert len(before - after) <= 3  # `other` has three
    assert {one.name for one in drawn(made(tmp_path, MODULE), 2, 6)} != before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "state"), [("hlc(7) == '%016x' % (7 << 16)", "killed"), ("hlc(7)", "survived")]
)
def test_planted_fault_survives_tests_without_assertions(tmp_path: Path, check: str, state: str) -> None:
    file = tmp_path / "test_of_a_trial.py"
    statement = f"assert {check}" if state == "killed" else check
    file.write_text(
        f"from ipfsmem.causal.clock import hlc\n\ndef test_of_a_trial() -> None:\n    {statement}\n"
    )

    (trial,) = try_faults(
        1, 1, 0.0, packages=["causal/clock.py"], tests=[str(file)],
        choose=lambda one: (one.function, one.operator) == ("hlc", "return None"),
    )  # fmt: skip
    assert (trial.state, trial.cold) == (state, state == "survived"), trial


@pytest.mark.slow
def test_drawn_faults_of_the_causal_package_are_found() -> None:
    assert run(1, count=8, seconds=40.0) == 0


def test_files_with_groups_are_collected_without_xdist(tmp_path: Path) -> None:
    test = tmp_path / "test_group.py"
    test.write_text("import pytest\n\n@pytest.mark.xdist_group('a')\ndef test_one():\n    pass\n")
    settings = Path(__file__).parents[2] / "pyproject.toml"
    off = ("-p", "no:xdist", "-p", "no:cacheprovider", "--collect-only")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", str(settings), *off, str(test)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
