"""Patterns compiled on first use behave like compiled ones."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import ipfsmem
from ipfsmem.lazy_pattern import lazy_pattern

WORD = r"(?P<word>[a-z]+)"
TEXT = "one, TWO, three"


@pytest.mark.parametrize("flags", [0, re.IGNORECASE])
def test_lazy_pattern_equals_a_compiled_one(flags: int) -> None:
    lazy, compiled = lazy_pattern(WORD, flags), re.compile(WORD, flags)
    assert lazy.findall(TEXT) == compiled.findall(TEXT)
    assert lazy.sub("x", TEXT) == compiled.sub("x", TEXT)
    assert lazy.subn("x", TEXT) == compiled.subn("x", TEXT)
    assert lazy.split(TEXT) == compiled.split(TEXT)
    assert [one.span() for one in lazy.finditer(TEXT)] == [one.span() for one in compiled.finditer(TEXT)]
    assert (lazy.fullmatch(TEXT) is None) == (compiled.fullmatch(TEXT) is None)
    for method in ("search", "match"):
        assert getattr(lazy, method)(TEXT)["word"] == getattr(compiled, method)(TEXT)["word"]
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (WORD, compiled.flags, compiled.groupindex)


def test_lazy_pattern_is_compiled_once_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    compiled = re.compile(b"[0-9]+")
    lazy = lazy_pattern(lambda: made.append("text") or b"[0-9]+")
    monkeypatch.setattr(re, "compile", lambda text, flags: made.append("pattern") or compiled)
    assert made == []
    assert lazy.search(b"a 12") is not None
    assert lazy.findall(b"1 2") == [b"1", b"2"]
    assert made == ["text", "pattern"]


def test_lazy_patterns_are_not_compiled_on_import() -> None:
    found = []
    for path in sorted(Path(ipfsmem.__file__).parent.rglob("*.py")):
        source = path.read_text("utf-8")
        # To parse all of the package takes a second and more.
        for node in ast.walk(ast.parse(source)) if "lazy_pattern" in source else ():
            made = node.value if isinstance(node, ast.Attribute) else None
            if isinstance(made, ast.Call) and getattr(made.func, "id", "") == "lazy_pattern":
                found.append(f"{path.name}:{node.lineno}")
    assert found == [], "a method of the pattern compiles it: keep the pattern, and call its method"
