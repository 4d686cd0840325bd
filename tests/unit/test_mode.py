"""Modes are compared by their properties: no module of the package compares or parses their text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.errors import UsageError
from ipfsmem.mode import Mode, mode_named, vault_mode

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    [*(ROOT / "ipfsmem").rglob("*.py"), *(ROOT / "providers" / "ipfsmem_providers").rglob("*.py")]
)
#: A word of addresses that is also the text of a mode.
ADDRESS = "ipfs"


def compared(source: str) -> Iterator[str]:
    """Return every expression of this source that compares a mode with its text, or with one of the four
    values."""
    if "Mode" not in source and not any(f'"{mode}"' in source for mode in Mode):
        return  # it cannot contain one
    for node in ast.walk(ast.parse(source)):
        sides: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        found = [part for side in sides for part in parts(side)]
        texts = {part.value for part in found if isinstance(part, ast.Constant)} & set(Mode)
        values = [p for p in found if isinstance(p, ast.Attribute) and ast.unparse(p.value).endswith("Mode")]
        if values or texts - {ADDRESS} or (texts and "mode" in ast.unparse(node).lower()):
            yield ast.unparse(node)


def parts(side: ast.expr) -> list[ast.expr]:
    """Return the compared values: the elements of a tuple, list or set, else the expression itself."""
    return side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side]


def test_modules_do_not_compare_mode_texts() -> None:
    others = [path for path in MODULES if path.name != "mode.py"]
    assert {
        str(path.relative_to(ROOT)): found
        for path in others
        if (found := list(compared(path.read_text("utf-8"))))
    } == {}


@pytest.mark.parametrize(
    "source",
    [
        'memory.mode == "local"',
        '"encrypted-ipfs" != chosen',
        'self.mode in ("local", "ipfs")',
        'config.mode != "ipfs"',
        "mode is Mode.LOCAL",
        "one in (Mode.IPFS, Mode.LOCAL)",
        'match chosen:\n    case "none": pass',
    ],
)
def test_comparison_of_a_mode_text_is_found(source: str) -> None:
    assert list(compared(source))


def test_comparison_of_other_values_is_allowed() -> None:
    assert not list(
        compared('space == "ipfs" or scheme in ("ipfs", "ipns") or mode & 0o77 or one != memory.mode')
    )


@pytest.mark.parametrize(
    ("name", "true"),
    [
        ("none", set()),
        ("local", {"on_disk", "only_here", "own_folder"}),
        ("ipfs", {"on_disk", "published", "public", "own_folder"}),
        ("encrypted-ipfs", {"on_disk", "published", "sealed"}),
    ],
)
def test_mode_has_the_declared_properties(name: str, true: set[str]) -> None:
    mode = mode_named(name)
    assert str(mode) == name
    asked = {key for key, value in vars(Mode).items() if isinstance(value, property)}
    assert {key for key in asked if getattr(mode, key)} == true


def test_mode_of_a_vault_follows_from_its_sealing() -> None:
    assert [vault_mode(sealed=sealed) for sealed in (True, False)] == ["encrypted-ipfs", "ipfs"]


def test_unknown_mode_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown mode 'public'"):
        mode_named("public")
