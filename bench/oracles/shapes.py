"""The shapes of every interface: the `--json` output of each command, each help text, the HTTP document, the
tools.

A shape has the keys and types of a JSON value without its values, so that two runs record the same shape."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from ipfsmem.api.document import document
from ipfsmem.api.serving import ROUTES
from ipfsmem.cli.app import group
from ipfsmem.mcp.greetings import prepared
from ipfsmem.memory import Memory
from ipfsmem.tools import toolset
from tests.support.outcomes import ROWS, Place, Row

#: Keys that are a path, a CID or a digest, which differ from run to run.
_RANDOM = re.compile(r"[/:]|^baf|^[0-9a-f]{8,}$")


def shape(value: Any) -> Any:
    """Keys and types of a JSON value. The items of a list are merged into one shape, in which a key that some lack ends in `?`."""
    if isinstance(value, dict):
        named = {key: shape(item) for key, item in sorted(value.items()) if not _RANDOM.search(key)}
        others = [shape(item) for key, item in value.items() if _RANDOM.search(key)]
        return named | ({"*": _joined(others)} if others else {})
    if isinstance(value, list):
        return [_joined([shape(item) for item in value])] if value else []
    return type(value).__name__


def _joined(shapes: list[Any]) -> Any:
    """Merge several shapes into one."""
    distinct = [one for n, one in enumerate(shapes) if one not in shapes[:n]]
    if len(distinct) == 1:
        return distinct[0]
    if all(isinstance(one, dict) for one in distinct):
        keys = sorted({key for one in distinct for key in one})
        return {
            key + ("" if all(key in one for one in distinct) else "?"): _joined(
                [one[key] for one in distinct if key in one]
            )
            for key in keys
        }
    return " | ".join(sorted(one if isinstance(one, str) else json.dumps(one) for one in distinct))


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that is not a group, by its words."""
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(below, (*path, name))


def _answer(row: Row, base: Path) -> dict[str, Any]:
    """The exit code of an outcome, and the shape of the `--json` output of its command."""
    with pytest.MonkeyPatch.context() as patch:
        for name, said in (("COLUMNS", "100"), ("IPFSMEM_EMBEDDINGS", "off"), ("HOME", str(base / "user"))):
            patch.setenv(name, said)
        place = Place(base, patch, row.mode)
        place.ok(*row.before)
        if row.prepare is not None:
            row.prepare(place)
        words, stdin = [*row.run.split(" < ", 1), ""][:2]
        ending = next((one for one in (" KEY", " OTHER") if words.endswith(one)), "")
        words = f"{words.removesuffix(ending)} --json{ending}"
        done = place.run(f"{words} < {stdin}" if stdin else words)
    printed: list[Any] = []
    for text in (done.out, done.err):
        try:
            printed.append(shape(json.loads(text)) if text.strip() else None)
        except ValueError:
            printed.append("text")
    return {"code": done.code, "out": printed[0], "err": printed[1]}


def commands() -> dict[str, Any]:
    """The shapes of the `--json` output of every command in every outcome of the table of outcomes."""
    takes_json = {
        words for words, command in leaves(group) if any("--json" in one.opts for one in command.params)
    }
    rows = [row for row in ROWS if row.command in takes_json]
    found: dict[str, Any] = {}
    for n, row in enumerate(rows, 1):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as base:
            found[f"{row.command}: {row.outcome}"] = _answer(row, Path(base))
        if sys.stderr.isatty():
            print(f"\r{n} of {len(rows)} outcomes", end="", file=sys.stderr)
    return found


def helps() -> dict[str, list[str]]:
    """The help of each command, by line."""
    os.environ["COLUMNS"] = "100"
    return {
        words: command.get_help(click.Context(command, info_name=f"ipfsmem {words}")).splitlines()
        for words, command in leaves(group)
    }


def tools() -> dict[str, Any]:
    """Descriptions and schemas of each tool, and the resources, prompts and instructions of the MCP server."""
    with tempfile.TemporaryDirectory() as home, Memory.create("oracle", "local", home=Path(home)) as memory:
        offered = {
            one.name: {
                "title": one.title,
                "description": one.description,
                "parameters": one.parameters,
                "returns": one.returns,
                "read_only": one.read_only,
                "destructive": one.destructive,
                "idempotent": one.idempotent,
            }
            for one in toolset(memory, ["all"])
        }
    greeting = prepared()
    return {
        "tools": offered,
        **{name: greeting[name] for name in ("initialize", "prompts", "templates", "sets")},
    }


def routes() -> dict[str, Any]:
    """The OpenAPI document."""
    return dict(document(ROUTES))
