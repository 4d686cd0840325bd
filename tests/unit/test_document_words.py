"""The documents use the field's nouns, and none of the phrases that a native reader stumbles over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ipfsmem.cli.app import HIDDEN, SHORT, VERBS, find_command

ROOT = Path(__file__).parents[2]
#: Documents written for users and contributors. Generated ones get their words from the code, which other tests read.
DOCUMENTS = (
    "README.md", "CONTRIBUTING.md", "SECURITY.md",
    *(f"docs/guides/{name}.md" for name in ("agents", "storage", "conflicts", "recovery-and-lost-devices", "two-machines", "week")),
    *(f"docs/reference/{name}.md" for name in (
        "agents", "cli", "compatibility", "frameworks", "http", "import", "mcp", "plugins", "providers", "python")),
    "docs/internals/known-issues.md",
    *(f"docs/internals/security/{name}.md" for name in (
        "keys", "metadata", "threats", "threats-content", "threats-devices", "threats-interfaces", "threats-members",
        "threats-providers")),
)  # fmt: skip
#: Each phrase with the words to use instead.
BANNED = {
    r"\bthat is none\b": "an unknown ...",
    r"\bthere is none\b": "no ... exists",
    r"(?<!there )\bis no\b(?! longer\b)": "is not a ...",
    r"\bstands? (?:in|at)\b": "is in",
    r"\b(?:is|are) said\b": "the report says",
    r"\bso many\b": "the number",
    r"\bbelongs? into\b": "must be in",
    r"(?<!front )\bof it\b": "the noun",
    r"\banew\b": "again",
    r"\blets? go of\b": "release",
    r"\b(?:puts?|putting) out\b": "remove",
    r"\blets? in\b|\bletting in\b": "add",
    r"\bbeside\b": "next to, in addition to",
    r"\bby (?:itself|themselves)\b": "automatically",
    r"\bwhat (?:is|are|was|were)\b(?![^.?]*\?)": "the noun",
    r"(?:^(?:[-*] |\d+\. )?|[.;] |\| |\*\* )(?:What|Who)\b[^.?|]*(?:[.|]|$)": "the noun",
}  # fmt: skip

#: Words of earlier versions, with those of the glossary.
REPLACED = {
    r"\bnamespaces?\b": "vault",
    r"\bworking cop(?:y|ies)\b": "linked folder",
    r"\brecovery words\b": "recovery phrase",
    r"\bnameless\b": "default scope",
    r"\bothers' word\b|\bword of others\b|\bcandidates?\b": "pending",
    r"\bpromot(?:e|es|ed|ion)\b": "approve",
}


def prose(text: str) -> Iterator[str]:
    """Paragraphs, list items and rows of a document, without code, headings, addresses, and the options that the code describes."""
    text = re.sub(r"^( *)```.*?^\1```$|<!-- options of .*?<!-- end of ", "", text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->|`[^`]*`|\]\([^)]*\)", "`", text, flags=re.S)
    for paragraph in re.split(r"\n(?=\n|\||#| *[-*] | *\d+\. )", text):
        if (line := " ".join(paragraph.split())) and not line.startswith("#"):
            yield line


def stumbles(text: str) -> list[str]:
    """The banned phrases of a text, each with its surroundings and the words to use instead."""
    return [
        f"{line[max(0, found.start() - 40) : found.end() + 40]!r}: {instead}"
        for line in prose(text)
        for phrase, instead in BANNED.items()
        for found in re.finditer(phrase, line, re.I if phrase.islower() else 0)
    ]


def replaced(text: str) -> list[str]:
    """The words of a text that the glossary replaces, each with the word to use instead."""
    return [
        f"{found[0]}: {instead}"
        for word, instead in REPLACED.items()
        for found in re.finditer(word, text, re.I)
    ]


def test_help_has_no_banned_phrase() -> None:
    commands = [*SHORT, *HIDDEN, *(f"{name} {verb}" for name, verbs in VERBS.items() for verb in verbs)]
    found = {}
    for path in commands:
        command = find_command(*path.split())
        assert command is not None
        context = click.Context(command, info_name=path.split()[-1])
        shown = " ".join(re.sub(r"--[a-z-]+", "", command.get_help(context)).split())
        if said := stumbles(shown) + replaced(shown):
            found[path] = said
    assert found == {}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_has_no_banned_phrase(name: str) -> None:
    assert stumbles((ROOT / name).read_text("utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "Give a name that is none.", "There is none.", "This is no device.", "It stands in the ring.", "That is said.",
        "In so many words.", "It belongs into the file.", "Parts of it.", "It begins anew.", "They let go of it.",
        "A member is put out.", "| row | who lets in others |", "A file lies beside\nthe others.", "It starts by itself.",
        "Read what is published.", "What comes is kept.", "Kept. Who asks is told.", "- item\n- What it has.",
    ],
)  # fmt: skip
def test_banned_phrase_is_found(text: str) -> None:
    assert stumbles(text)


@pytest.mark.parametrize(
    "text",
    ["There is no more.", "A stand-in server.", "What is it?", "## What is promised", "Run `what is`.", "```\nanew\n```", "Put TLS in front of it."],
)  # fmt: skip
def test_phrase_of_the_field_is_allowed(text: str) -> None:
    assert stumbles(text) == []
