"""Compare the fields of the answers of one operation in each interface; `python -m tests.support.operation_fields` writes the table.

The table has the known differences and shrinks as operations are declared. A text instead of JSON is the field `(text)`.
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.support.operation_rows import ROWS, Op
from tests.support.operation_world import Answer, run, world

FILE: Final = Path(__file__).with_suffix(".json")
#: Fields whose keys are data and not field names.
_NAMES: Final = frozenset(["files", "fields", "data", "retained", "counts", "cost_usd", "labels"])


def fields(value: Any) -> set[str]:
    """Return the names of all fields of an answer: `outer.inner` for nested ones, `[].name` for those of
    list items."""
    return set(_fields(value, ""))


def _fields(value: Any, at: str) -> Iterator[str]:
    if isinstance(value, msgspec.Struct):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        value = dict(zip(value._fields, value, strict=True))
    if isinstance(value, Mapping):
        for name, one in value.items():
            if name == "notice":  # instructions to a model about quoted texts
                continue
            yield f"{at}{name}"
            if name not in _NAMES:
                yield from _fields(one, f"{at}{name}.")
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from _fields(one, at if at else "[].")
    elif not at:
        yield "(nothing)" if value is None else "(text)" if isinstance(value, str | bytes) else "(value)"


def differences(answers: Mapping[str, Answer]) -> dict[str, list[str]]:
    """Return, for each interface whose call succeeded, the fields that another interface has and it lacks."""
    found = {face: fields(answer.values) for face, answer in answers.items() if answer.ok}
    every = set().union(*found.values())
    return {face: sorted(every - names) for face, names in found.items() if every - names}


def recorded() -> dict[str, dict[str, list[str]]]:
    """Return the known differences by operation."""
    table: dict[str, dict[str, list[str]]] = json.loads(FILE.read_text("utf-8"))
    return table


def main() -> None:
    """Write the table."""
    table = {op.name: found for op in ROWS if (found := differences(_answers(op)))}
    FILE.write_text(json.dumps(table, indent=1) + "\n", "utf-8")


def _answers(op: Op) -> dict[str, Answer]:
    found = {}
    for face in op.faces:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            world(home)
            found[face] = run(op, face, home, op.call(face))
    return found


if __name__ == "__main__":
    main()
