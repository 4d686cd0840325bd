"""A value out of bounds is refused in every interface with an error that names the parameter or the value, and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ipfsmem.http.running import running
from ipfsmem.memory import Memory
from tests.support.api_lab import AUTH, Lab
from tests.support.cli_lab import Cli
from tests.support.operation_bounds import FREE, bad_values, names_of, parameters
from tests.support.operation_rows import FACES, ROWS, Op
from tests.support.operation_world import NAME, Answer, by_cli, by_http, by_python, by_tool, state, world


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vault that no test may change."""
    made = tmp_path_factory.mktemp("bounds") / "home"
    world(made)
    return made


@pytest.fixture(scope="module")
def before(home: Path) -> str:
    return state(home)


def invalid_calls(op: Op, face: str, memory: Memory) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each parameter with each of its values out of bounds, and the arguments of the call."""
    for name in parameters(op, face, memory):
        given = {one: value for one, value in op.call(face).items() if one not in names_of(op, face, name)}
        for what, value in bad_values(op, face, name):
            yield name, what, {**given, name: value}


def fault_of(op: Op, face: str, name: str, what: str, given: Mapping[str, Any], answer: Answer) -> str:
    """Return the fault of an answer, "" for none."""
    said, value = answer.said.lower(), given[name]
    value = str(value[0] if isinstance(value, list) else value)
    if answer.broken:
        return f"{name} ({what}) ended with an unexpected error: {answer.said[:200]}"
    if answer.ok:
        return f"{name} ({what}) was accepted"
    known = [one.lower().strip("-") for one in names_of(op, face, name)]
    shown = value[:20].lower() in said or ascii(value[:20])[1:-1].lower() in said.replace("\\\\", "\\")
    if any(one in said for one in known) or shown:
        return ""
    return f"{name} ({what}) is not named: {answer.said[:200]}"


def test_every_parameter_has_bounds_or_is_free(home: Path) -> None:
    with Memory.load(NAME, home=home) as memory:
        unknown = {
            (face, name)
            for op in ROWS
            for face in op.faces
            for name in parameters(op, face, memory)
            if not bad_values(op, face, name) and name not in FREE
        }
    assert not unknown


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("part", range(4))
def test_out_of_bounds_value_is_refused_and_changes_nothing(
    face: str, part: int, home: Path, before: str
) -> None:
    rows = [op for op in ROWS if face in op.faces][part::4]
    with Memory.load(NAME, home=home) as memory:
        asked = [(op, *one) for op in rows for one in invalid_calls(op, face, memory)]
    wrong = []
    for op, name, what, given, answer in _answered(face, home, asked):
        if found := fault_of(op, face, name, what, given, answer):
            wrong.append(f"{op.name}: {found}")
    assert not wrong, "\n".join(wrong)
    assert state(home) == before


def _answered(
    face: str, home: Path, asked: list[tuple[Op, str, str, dict[str, Any]]]
) -> list[tuple[Op, str, str, dict[str, Any], Answer]]:
    if face == "http":
        found: list[Answer] = []

        async def ask() -> None:
            lab = Lab(home, NAME, open_memory=lambda: Memory.load(NAME, home=home))
            try:
                async with running(lab.api.app()) as url, aiohttp.ClientSession(url, headers=AUTH) as client:
                    for op, _, _, given in asked:
                        found.append(await by_http(client, op, given, home=home))
            finally:
                for one in lab.served:
                    one.close()

        asyncio.run(ask())
        return [(*one, answer) for one, answer in zip(asked, found, strict=True)]
    if face == "cli":
        with pytest.MonkeyPatch.context() as patch:
            cli = Cli(home, patch)
            return [(*one, by_cli(cli, one[0], one[3])) for one in asked]
    with Memory.load(NAME, home=home) as memory:
        call = by_python if face == "python" else by_tool
        return [(*one, call(memory, one[0], one[3])) for one in asked]
