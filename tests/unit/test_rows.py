"""docs/internals/rows.md lists every feature of the four compared memory systems once, with its status.

Every call and test that it names exists."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import click
import pytest

from ipfsmem.cli.app import group
from ipfsmem.compat.programs import definitions
from ipfsmem.config import VARIABLES
from ipfsmem.memory import Memory
from ipfsmem.open_vault.conversation import Conversation
from ipfsmem.setting_list import all_settings

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "internals" / "rows.md").read_text("utf-8")
ROWS = re.findall(
    r"^\| ([IRAL])(\d+) \| (.+?) \| (.+?) \| (works|differs|not) \| (.*?) \| (.*?) \|$", TEXT, re.M
)
#: The number of rows of each system.
ROW_COUNTS = {"I": 18, "R": 26, "A": 26, "L": 32}


def test_every_row_is_listed_once_in_order() -> None:
    assert [(letter, int(number)) for letter, number, *_ in ROWS] == [
        (letter, number) for letter, count in ROW_COUNTS.items() for number in range(1, count + 1)
    ]


def test_supported_row_names_a_test_and_every_test_exists() -> None:
    for letter, number, _, _, state, differs, named in ROWS:
        tests = re.findall(r"`([^`]+)`", named)
        assert bool(tests) == (state != "not"), letter + number
        assert differs or state == "works", letter + number
        for one in tests:
            file, _, name = one.partition("::")
            path = ROOT / "tests" / file
            assert path.exists(), one
            assert not name or re.search(rf"^(async )?def {name}\(", path.read_text("utf-8"), re.M), one


def test_summary_table_matches_the_rows() -> None:
    counted = Counter((letter, state) for letter, _, _, _, state, _, _ in ROWS)
    summary = re.findall(r"^\| \w+ \(([IRAL])\) \| (\d+) \| (\d+) \| (\d+) \|$", TEXT, re.M)
    assert summary == [(letter, *(str(counted[letter, state]) for state in ("works", "differs", "not"))) for letter in ROW_COUNTS]  # fmt: skip


def test_every_row_quotes_its_document_or_is_marked_as_absent_there() -> None:
    for letter, number, quotation, *_ in ROWS:
        quotes = re.sub("“[^“”]+”", "", quotation)
        assert not quotes.strip() or quotes.startswith("*not in its document:* "), letter + number


def routes() -> list[str]:
    """Return each `METHOD path` of the HTTP interface."""
    from ipfsmem.api.document import document
    from ipfsmem.api.serving import ROUTES as SERVED

    paths = document(SERVED)["paths"]
    return [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]


def command(words: list[str]) -> click.Command | None:
    """Return the command that `words` begins with, or None. For `add|list`, look up `add`."""
    found: click.Command | None = group
    context = click.Context(group)
    while isinstance(found, click.Group) and words:
        found = found.get_command(context, words.pop(0).split("|")[0])
    return None if isinstance(found, click.Group) and found is not group and words else found


def is_command(call: str) -> bool:
    """Return whether a command line names an existing command, subcommands, options and choices."""
    words = call.removeprefix("ipfsmem ").split()
    options = [word for word in words if word.startswith("-")]
    names = words[: words.index(options[0])] if options else list(words)
    for alternative in names[-1].split("|") if names else ():
        found = command([*names[:-1], alternative])
        if found is None:
            return False
    found = command(list(names)) if names else group
    if found is None:
        return False
    known = {name: one for one in (*found.params, *group.params) for name in one.opts}
    for place, word in enumerate(words):
        if word.startswith("-"):
            one = known.get(word)
            next_word = words[place + 1] if place + 1 < len(words) else "--"
            has_choice_value = (
                one is not None and isinstance(one.type, click.Choice) and not next_word.startswith("-")
            )
            if one is None or (has_choice_value and next_word not in one.type.choices):
                return False
    return True


def is_there(call: str, cell: str) -> bool:
    """Return whether the target of a row exists: a command, setting, variable, route, tool, or Python
    name."""
    if call in all_settings() or call in VARIABLES.values() or call in ("IPFSMEM_HOME", "IPFSMEM_VAULT"):
        return True
    if re.match("(GET|POST|PUT|DELETE) ", call):
        # A row names this path because it does not exist: requests to it answer 404.
        return call in routes() or call == "GET /api/memory/kg"
    if owner := re.match(r"(Memory|conversation\(\.\.\.\))\.(\w+)", call):
        return hasattr(Memory if owner[1] == "Memory" else Conversation, owner[2])
    if adapter := re.match(r"adapters\.(\w+)\.(\w+)", call):
        tree = ast.parse((ROOT / "ipfsmem" / "adapters" / f"{adapter[1]}.py").read_text("utf-8"))
        return adapter[2] in {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}
    if tool := re.match(r"(\w+)\(", call):
        programs = re.findall(r"mcp --as (\w+)", cell)
        return any(one.name == tool[1] for program in programs for one in definitions(program))
    return is_command(call)


def test_every_call_of_a_row_exists() -> None:
    for letter, number, _, cell, *_ in ROWS:
        for call in re.findall("`([^`]+)`", cell):
            assert is_there(call.replace("\\|", "|"), cell), (letter + number, call)


@pytest.mark.parametrize(
    "call",
    ["session clear", "nothing", "write --nothing", "serve mcp --as nobody", "facts.nothing", "Memory.nothing", "nothing(x)", "value set|nothing", "conversation(...).nothing()"],
)  # fmt: skip
def test_nonexistent_call_is_detected(call: str) -> None:
    assert not is_there(call, "`mcp --as librefang`")
