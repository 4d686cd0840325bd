"""Errors, hints, notices, progress and the texts of the page use the field's nouns, and no phrase that
`test_document_words.py` bans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hints import texts
from tests.unit.test_document_words import BANNED, REPLACED

#: Instructions to models, whose wording is measured, and texts in the words of other programs.
APART = (
    "ipfsmem/bundle/fence.py", "ipfsmem/compat/", "ipfsmem/dream/asking.py", "ipfsmem/exchange/readers/", "ipfsmem/operations/sessions/summaries.py",
    "ipfsmem/sessions/notices.py", "ipfsmem/tools/peers.py", "ipfsmem/tools/toolset.py",
)  # fmt: skip
#: Plain phrases that contain a banned one.
ALLOWED = (
    "Say what is wrong first.",  # an example of a memory's text
    "and --namespace name", "vault_name=VALUE",  # a name in the code
    "the setting namespace was renamed to vault",  # the earlier name
    "Rename `namespace` in VALUE to `vault`.",
    "showed all of it",  # to models
    "rewrote the whole of it",  # a memory of the demo
    "a namespace is a tuple of texts",  # LangGraph's word
)  # fmt: skip
#: Phrases of earlier messages, with their replacements.
REWORDED = {
    r"\b(?:asks?|asked) to be left alone\b|\bwas left alone\b": "accepts no requests, was not changed",
    r"\bno provider '": "unknown provider",
    r"\btaken? away\b": "delete",
    r"\bwill not do\b": "cannot be used",
    r"\bnobody (?:knows|can tell)\b": "unknown",
    r"\bis forgotten yet\b": "was deleted yet",
    r"\bthere was no room\b": "too many, too long",
    r"\bfor ever\b|, for good\b": "permanently",
}
WEB = Path(__file__).parents[2] / "web" / "src"
#: The literals of TypeScript, and the text between the tags of a template.
LITERAL = re.compile(r"""'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`|>([^<>{}`]*)<""")
PHRASES = {re.compile(phrase, re.I if phrase.islower() else 0): instead for phrase, instead in {**BANNED, **REPLACED, **REWORDED}.items()}  # fmt: skip


def stumbles(text: str) -> list[str]:
    """The banned phrases of a message, each with its surroundings and the words to use instead."""
    for allowed in ALLOWED:
        text = text.replace(allowed, "")
    return [
        f"{text[max(0, found.start() - 40) : found.end() + 40]!r}: {instead}"
        for phrase, instead in PHRASES.items()
        for found in phrase.finditer(text)
    ]


def page_texts() -> Iterator[tuple[str, str]]:
    """Return the texts of the browser client and its page with their files, without code and the fence,
    which is for models."""
    for path in sorted(WEB.rglob("*.ts")):
        code = re.sub(r"^\s*(//|\*|/\*).*$|/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.M)
        for found in LITERAL.finditer(code):
            text = re.sub(
                r"\$\{[^{}]*\}|<[^<>]*>", " ", next(group for group in found.groups() if group is not None)
            )
            if (
                path.name != "fence.ts"
                and len(text.split()) >= 3
                and not re.search(r"=>|html|\$\{|const ", text)
            ):
                yield path.relative_to(WEB).as_posix(), text


@pytest.mark.xdist_group("texts")  # in one worker: reading all texts takes two seconds
def test_message_has_no_banned_phrase() -> None:
    found = {
        where: said
        for where, text in texts()
        if len(text.split()) >= 3 and not where.startswith(APART) and (said := stumbles(text))
    }
    assert found == {}


def test_page_text_has_no_banned_phrase() -> None:
    read = list(page_texts())
    assert len(read) > 400
    assert [(where, said) for where, text in read if (said := stumbles(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "x asked to be left alone until 12:00", "no provider 'nowhere'", "2 memories taken away",
        "the delegation will not do", "nobody knows the name x", "kept for ever", "a file that is none", "is no list",
    ],
)  # fmt: skip
def test_banned_phrase_of_a_message_is_found(text: str) -> None:
    assert stumbles(text)
