"""One item for all rows of a table, in the workers of a run on all cores.

A third of the suite are rows of tests that need nothing but their row, most of them done in less time than pytest takes for an
item: to make it in each worker, to set it up, to send its report. In such a run, a test whose arguments are all parameters and
that uses no fixture of its own is one item, which runs each row and names those that fail. Named files and single tests, `-k`
and `-n 0` have an item for each row as ever.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

#: Under this name a report tells the ids of the rows that passed, and of those that were skipped.
PASSED, SKIPPED = "rows that passed", "rows that were skipped"
#: Marks that hold for all rows alike.
_OF_ALL_ROWS: Final = {"parametrize", "xdist_group", "interop", "slow"}


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str) -> Generator[None, object, object]:
    """Put one item in the place of the rows."""
    made = yield
    if isinstance(collector, pytest.Module) and isinstance(made, list) and _are_rows(made):
        return [Table.from_parent(collector, name=name, rows=made)]
    return made


class Table(pytest.Function):
    """A test function with all its rows."""

    def __init__(self, *, rows: Sequence[pytest.Function], **options: Any) -> None:
        self._rows = rows

        def table() -> None:
            """The rows are run by `runtest`."""

        table.__dict__["pytestmark"] = [mark for mark in rows[0].own_markers if mark.name != "parametrize"]
        super().__init__(callobj=table, **options)

    def runtest(self) -> None:
        """Run each row, also after one that failed. Raises the first error, with a note that names the rows."""
        failed: list[tuple[str, BaseException]] = []
        skipped: list[tuple[str, BaseException]] = []
        passed: list[str] = []
        for row in self._rows:
            call: Callable[..., object] = row.obj
            try:
                call(**row.callspec.params)
            except pytest.skip.Exception as reason:
                skipped.append((row.nodeid, reason))
            except (Exception, pytest.fail.Exception) as error:
                failed.append((row.nodeid, error))
            else:
                passed.append(row.nodeid)
        self.user_properties += [(PASSED, passed), (SKIPPED, [row for row, _ in skipped])]
        if failed:
            error = failed[0][1]
            error.add_note("failed: " + ", ".join(row for row, _ in failed))
            raise error
        if skipped and not passed:
            raise skipped[0][1]

    def reportinfo(self) -> tuple[Path | str, int | None, str]:
        """The place of the function."""
        path, line, _ = self._rows[0].reportinfo()
        return Path(path), line, self.name


def passed_rows(report: pytest.TestReport) -> list[str]:
    """The ids of the tests of which a report says that they passed: the rows of a table, or the item itself."""
    for name, rows in report.user_properties:
        if name == PASSED:
            assert isinstance(rows, list)
            return rows
    return [report.nodeid]


def skipped_rows(report: pytest.TestReport) -> list[str]:
    """The ids of the rows that were skipped in a table of which others passed."""
    found = dict(report.user_properties) if report.when == "call" and report.passed else {}
    rows = found.get(SKIPPED, [])
    assert isinstance(rows, list)
    return rows


def _are_rows(items: Sequence[object]) -> bool:
    """Whether these are rows of a test that needs nothing but its row."""
    first = items[0] if len(items) > 1 else None
    if not isinstance(first, pytest.Function) or not hasattr(first, "callspec"):
        return False
    names: set[str] = set()
    for mark in first.iter_markers():
        if mark.name not in _OF_ALL_ROWS or mark.kwargs.get("indirect"):
            return False
        if mark.name == "parametrize":
            given = mark.kwargs["argnames"] if "argnames" in mark.kwargs else mark.args[0]
            names.update(one.strip() for one in (given.split(",") if isinstance(given, str) else given))
    return (
        names == first.callspec.params.keys()
        and not getattr(first.obj, "is_hypothesis_test", False)
        and not inspect.iscoroutinefunction(first.obj)
        and inspect.signature(first.obj).parameters.keys() <= names
        and all(_is_of_more(first, name) for name in first.fixturenames if name not in names)
        and not any(item.callspec.marks for item in items if isinstance(item, pytest.Function))
    )


def _is_of_more(item: pytest.Function, fixture: str) -> bool:
    """Whether a fixture is made for more than one test: rows can share it."""
    made = item._fixtureinfo.name2fixturedefs.get(fixture, ())
    return all(one.scope in ("session", "package", "module") for one in made)
