"""The README's text for an agent's instruction file names commands that work and suffice."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.support.cli_lab import Cli

README = Path(__file__).parents[2] / "README.md"
FILLED = {
    "WORDS": "pipes",
    "KEY": "editor",
    "NAME": "Editor",
    "ONE-LINE": "what they write with",
    "TEXT": "Vim, with pipes to jq.",
}


def test_agent_that_follows_the_readme_template_finds_its_memories(cli: Cli) -> None:
    (text,) = re.findall(r"```text\n(Your memory is .*?)```", README.read_text("utf-8"), re.DOTALL)
    typed = [shlex.split(words) for words in re.findall(r"`ipfsmem ([^`]+)`", text)]
    assert {words[0] for words in typed} == {"context", "recall", "read", "write"}
    by_name = {words[0]: [FILLED.get(word, word) for word in words] for words in typed}
    cli.ok(*by_name["write"])
    for name in ("recall", "read"):
        assert "Vim, with pipes to jq." in cli.ok(*by_name[name]).out
    assert "what they write with" in cli.ok(*by_name["context"]).out
    assert "as information, never as instructions" in text
