"""The test suite: the quick selection, no writes outside, and repeatable runs."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import at_length, quick
from tests.support import passed_before, ports
from tests.support.mentions import Name

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
#: An import of the package as ruff formats it: the module, and the names.
IMPORT = re.compile(r"^ *(?:from|import) (ipfsmem[\w.]*)(?: import ([\w, ]+))?", re.M)
#: The name of a test function.
TEST_NAME = re.compile(r"^ *(?:async )?def (test_\w+)", re.M)


def files(prefix: str) -> list[Path]:
    path = TESTS / prefix
    return sorted(path.glob("**/test_*.py")) if prefix.endswith("/") else [path]


@pytest.mark.parametrize("prefix", quick.PATHS)
def test_quick_tests_exist(prefix: str) -> None:
    found = files(prefix)
    assert found and all(path.is_file() for path in found)
    assert all(quick.is_quick(str(path.relative_to(ROOT)) + "::test_x[1]") for path in found)


def test_each_listed_slow_test_is_a_function_of_a_quick_file() -> None:
    for name in sorted(quick.SLOW):
        path, _, function = name.partition("::")
        assert f"def {function}(" in (TESTS / path).read_text("utf-8"), (
            f"run: python -m tests.support.slow_tests ({name})"
        )
        assert path.startswith(quick.PATHS), name


def test_each_listed_long_test_is_a_function_of_the_suite() -> None:
    absent = []
    for name in sorted(at_length.FUNCTIONS):
        path, _, function = name.partition("::")
        if not (TESTS / path).is_file() or f"def {function}(" not in (TESTS / path).read_text("utf-8"):
            absent.append(name)
    assert not absent, "take them from tests/length_tests.txt"


def test_long_tests_are_omitted_only_in_short_runs_of_folders() -> None:
    """`.ci/run` runs them at length; `python -m tests.support.stages` compares its stages."""
    name = sorted(at_length.FUNCTIONS)[0]
    assert at_length.is_long(f"tests/{name}") and at_length.is_long(f"tests/{name}[a-b]")
    assert not at_length.is_long("tests/unit/test_suite.py::test_test_files_do_not_mark_themselves_quick")
    folder, file = str(TESTS / "unit"), str(Path(__file__))
    assert at_length.is_short_run([folder, str(TESTS)], thorough=False)
    assert not at_length.is_short_run([folder], thorough=True)
    assert not at_length.is_short_run([folder, file], thorough=False)
    assert not at_length.is_short_run(
        [f"{file}::test_test_files_do_not_mark_themselves_quick"], thorough=False
    )
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    assert re.search(r"^PYTEST_SKIP_PASSED=.* HYPOTHESIS_PROFILE=ci .*-m pytest --durations=25$", ci, re.M)


def test_test_files_do_not_mark_themselves_quick() -> None:
    """`-m quick` does not read the others (tests/conftest.py)."""
    mark = "mark" + ".quick"
    assert [path.name for path in TESTS.glob("**/test_*.py") if mark in path.read_text("utf-8")] == []


def test_name_of_every_test_has_at_most_70_characters() -> None:
    long = [
        f"{path.relative_to(TESTS)}::{name}"
        for path in sorted(TESTS.glob("**/*.py"))
        for name in TEST_NAME.findall(path.read_text("utf-8"))
        if len(name) > 70
    ]
    assert long == [], "name them test_<subject>_<condition>_<result>"


def test_every_package_has_a_quick_test() -> None:
    """A package is a folder right below `ipfsmem`, as in docs/internals/modules.md; modules next to them
    are reached through `memory` and the commands."""
    rooms = {path.parent.name for path in (ROOT / "ipfsmem").glob("*/__init__.py")} | {"ipfsmem_providers"}
    seen: set[str] = set()
    for path in (path for prefix in quick.PATHS for path in files(prefix)):
        for package, names in IMPORT.findall(path.read_text("utf-8")):
            above, *below = package.split(".")
            seen |= {above, *(below[:1] or names.replace(",", " ").split())}
    assert rooms - seen == set()


def test_home_of_the_user_is_not_used() -> None:
    home, temporary = Path.home(), Path(tempfile.gettempdir())
    told = subprocess.run(
        [sys.executable, "-c", "import pathlib, tempfile; print(pathlib.Path.home()); print(tempfile.gettempdir())"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert told == [str(home), str(temporary)]
    assert home.name.startswith("home") and home.parent == temporary.parent


#: Prints the cases that a test draws.
_DRAWS = """
import os, sys
os.environ["HYPOTHESIS_PROFILE"] = "ci"
from tests.support import effort
effort.load()
from hypothesis import given, strategies as st
@given(st.lists(st.integers(0, 2**32 - 1)))
def draw(numbers): print(numbers)
draw()
"""


def test_drawn_cases_do_not_depend_on_imported_modules() -> None:
    """Otherwise a fault found in CI could not be reproduced."""

    def drawn(before: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", before + _DRAWS], capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout

    alone = drawn("")
    assert len(alone.splitlines()) > 100 and drawn("import ipfsmem.memory, tests.support.device_lab") == alone


def test_free_port_is_free_in_both_address_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that listens on both cannot start on a port that one of them has."""
    taken = ports.free_port()
    free = next(port for port in iter(ports.free_port, 0) if port != taken)
    monkeypatch.setattr(ports, "_FROM", (taken, free))
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        if family in ports.FAMILIES:
            with socket.socket(family) as holder:
                holder.bind((host, taken))
                assert {ports.free_port() for _ in range(20)} == {free}


@pytest.mark.parametrize(
    ("module", "name", "drawn"),
    [
        ("property.test_causal_join", "test_join_is_commutative_associative_idempotent", True),
        ("property.test_causal_join", "test_write_keeps_alternatives_that_were_not_shown", False),
        ("property.test_directory_machine", "TestFolder", True),  # its settings are below it
        ("faults.test_stick", "test_folder_that_disappears_at_any_call_loses_nothing", True),
        ("faults.test_stick", "test_damaged_folder_never_gives_wrong_texts", False),
        (
            "faults.test_kill_words",
            "test_killed_phrase_change_leaves_a_working_phrase",
            True,
        ),  # by a function of fault_lab
        ("cli.test_cli_mcp", "test_thousands_of_queued_calls_are_answered_in_bounded_memory", True),
        ("cli.test_cli_mcp", "test_official_client_works_over_pipes", False),
        ("web.test_talk_found", "both", True),  # a fixture
        (
            "unit.providers.test_contract_of_all",
            "test_concurrent_calls_return_the_same_answers",
            True,
        ),  # by a constant of sick_lab
        ("unit.causal.test_causal_clock", "", False),
    ],
)
def test_tests_with_random_cases_are_recognised(module: str, name: str, drawn: bool) -> None:
    assert passed_before.name_draws(Name(f"tests.{module}", name)) is drawn


def test_every_file_with_random_cases_has_a_recognised_test() -> None:
    of_itself = [
        path
        for path in sorted(TESTS.glob("**/test_*.py"))
        if re.search(
            r"^from (?:hypothesis import|tests\.support(?:\.| import )effort)", path.read_text("utf-8"), re.M
        )
    ]
    assert len(of_itself) > 80
    for path in of_itself:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        names = re.findall(r"^ *(?:async )?(?:def|class) (\w+)|^(\w+) = ", path.read_text("utf-8"), re.M)
        assert any(passed_before.name_draws(Name(module, one or other)) for one, other in names), module


def test_thorough_run_leaves_out_passed_tests_without_draws_or_extras(tmp_path: Path) -> None:
    known = tmp_path / "passed"
    known.write_text("tests/a.py::test_b[c]\ntests/a.py::test_d@browser\n", "utf-8")
    assert {"tests/a.py::test_b[c]", "tests/a.py::test_d"} <= passed_before.read(known)
    meet = passed_before.meets_extras
    assert all((TESTS / name).is_file() and meet(TESTS / name) for name in passed_before.WITH_EXTRAS)
    assert meet(TESTS / "cli/test_light_commands.py") and meet(TESTS / "unit/memories/test_meaning.py")
    assert not meet(TESTS / "unit/causal/test_causal_clock.py")
