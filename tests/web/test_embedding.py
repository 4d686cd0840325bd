"""The example of web/README.md: an app embeds the client in five lines, and its agent is given what every other agent gets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ipfsmem.memory import Memory
from tests.support.browser_lab import played
from tests.support.web_lab import PEER_TOKEN, WALLET_KEY, root_of

README = Path(__file__).parents[2] / "web" / "README.md"


def lines() -> str:
    """The first example."""
    found = re.search(r"```ts\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_has_five_lines() -> None:
    assert len(lines().splitlines()) == 5


@pytest.mark.slow
def test_the_example_runs_in_a_page_as_it_stands(url: str, memory: Memory) -> None:
    code = lines()
    for written, here in (("./ipfsmem.js", "{library}"), ("https://memory.example.org", url)):
        assert written in code
        code = code.replace(written, here)
    code = f"const token = {PEER_TOKEN!r}\n{code}\nexport {{ memory, prompt }}\n"
    [said] = played("chromium", [("embedded", {"code": code, "key": WALLET_KEY})])
    assert said["prompt"] == memory.context("How should I talk to them?", preview=True).text
    assert root_of(memory) == said["root"]
    here = memory.read("embedded")
    assert here is not None and here.file.body == "Written by an app."
