"""Texts for people use everyday words; words of the format occur only in its documents, `--json` and
`inspect`.

The table at the end of docs/reference/cli.md lists both. Texts are read from the source, so later ones are
checked too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from ipfsmem.cli.app import SHORT, find_command
from ipfsmem.device.tables import heads, placed, tracked_files
from tests.cli.test_outcomes import leaves
from tests.support.hints import texts

ROOT = Path(__file__).parents[2]
#: Words of the format that are also everyday words in these senses.
COMMON = {"block", "node", "object", "value", "entry", "statements", "join", "enrol", "revoke"}
#: Packages whose texts are about bytes of the format. People see their errors as a reason in words
#: (sync/refusal_reasons.py) and as a notice's detail; `cid` and `inspect` are about such bytes.
OF_THE_FORMAT = (
    "ipfsmem/bundle/", "ipfsmem/causal/", "ipfsmem/content/", "ipfsmem/http/", "ipfsmem/ring/", "ipfsmem/seal/", "ipfsmem/testing/", "ipfsmem/wallet/",
    "ipfsmem/cli/format_cid_cmd.py", "ipfsmem/cli/format_inspect_cmd.py", "ipfsmem/vault/inspection.py", "ipfsmem/published/commit.py",
    "ipfsmem/published/root_verification.py", "ipfsmem/published/ipns_record.py", "ipfsmem/published/ipns_data.py", "ipfsmem/published/root_reader.py", "providers/",
)  # fmt: skip
#: Used for files of the format, by name.
SAID_OF_FILES = {"The IPFS address (root CID) of any file or folder, and its CAR."}
#: Errors about foreign bytes: a sync reports their reason in words and keeps these texts as the detail.
OF_BYTES = {"FormatError", "LimitError", "SignatureError", "OpenError"}


def format_words() -> set[str]:
    """Return the words of the second column of the table."""
    table = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8").split("\n## Words\n")[1]
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|", table, re.M)[2:]
    words = {word for row in rows for phrase in re.split(r"[;,]", row) for word in (phrase.strip(),) if word}
    words = {re.sub(r" \d+$", "", word) for word in words}
    return (words - COMMON) | {
        "ring",
        "keyring",
        "CID",
        "enrolled",
        "seal",
        "seals",
        "multibase",
        "superseded",
    }


def details() -> set[tuple[str, str]]:
    """Return the places of texts that people are not shown: the detail of a notice, and errors about
    foreign bytes."""
    found: set[tuple[str, str]] = set()
    for path in sorted((ROOT / "ipfsmem").rglob("*.py")):
        text = path.read_text("utf-8")
        if not path.is_relative_to(ROOT / "ipfsmem" / "sync") and not re.search(r"\bsay\b|\bdetail\b", text):
            continue  # no such text below it
        for node in ast.walk(ast.parse(text)):
            hidden: list[ast.AST] = []
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "say"
            ):
                hidden += node.args[2:]
            elif isinstance(node, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == "detail" for t in node.targets
            ):
                hidden.append(node.value)
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in OF_BYTES
                and path.is_relative_to(ROOT / "ipfsmem" / "sync")
            ):
                hidden += node.args
            for one in hidden:
                for inner in ast.walk(one):
                    if hasattr(inner, "lineno"):
                        found.add((str(path.relative_to(ROOT)), str(inner.lineno)))
    return found


def shown() -> Iterator[tuple[str, str]]:
    """Return every text of several words that people may see, without options and addresses of documents."""
    hidden = details()
    for where, text in texts():
        path, _, line = where.partition(":")
        if where.startswith(OF_THE_FORMAT) or (path, line) in hidden or text in SAID_OF_FILES:
            continue
        if " " not in text.strip() or re.match(
            r"\s*(SELECT|INSERT|CREATE|DELETE|UPDATE|WITH|PRAGMA)\b|held = ", text
        ):
            continue
        yield where, text


#: The places for secrets of the kernel and the system, and the package for the latter: none of them is a
#: vault's.
_OF_THE_SYSTEM = r"(kernel|system)'s keyring|keyring of the kernel|(package|extra) keyring|ipfsmem\[keyring\]|keyring\.backends\.\w+"


def told(text: str, words: set[str]) -> set[str]:
    """Return the words of the format in a text; options (`--root CID`, `--keep-roots`) and names of other
    programs are allowed."""
    plain = re.sub(rf"--[a-z-]+( CID)?|git commit|another commit was|{_OF_THE_SYSTEM}", "", text)
    return {word for word, pattern in patterns(frozenset(words)) if word in plain and pattern.search(plain)}


@cache
def patterns(words: frozenset[str]) -> list[tuple[str, re.Pattern[str]]]:
    """Return each word with a pattern for its singular and plural."""
    return [(word, re.compile(rf"(?<![\w-]){re.escape(word)}s?(?![\w-])")) for word in words]


def test_list_of_format_words_is_complete() -> None:
    words = format_words()
    assert {
        "head",
        "root",
        "root CID",
        "epoch",
        "ring",
        "anchor",
        "genesis",
        "EK",
        "dot",
        "sibling",
        "blob",
    } <= words
    assert told("the ring has grown since the anchor was signed", words) == {"ring", "anchor"}
    assert told("key 12 of epoch 1 seals", words) == {"epoch", "seal", "seals"}
    assert told("a wiring diagram; --root CID; headings", words) == set()


#: Names of stored rows and columns, which are never printed.
KEPT = {"kept root", "anchor pins", "guard pins", "guarded ", "joined in part"}


@pytest.mark.xdist_group("texts")  # in one worker: reading all texts takes two seconds
def test_messages_use_no_words_of_the_format() -> None:
    words = format_words()
    rows = {table._COLUMNS for table in (heads, placed, tracked_files)}
    assert [
        (where, text, found)
        for where, text in shown()
        if text not in KEPT | rows and (found := told(text, words))
    ] == []


def test_help_texts_use_no_words_of_the_format() -> None:
    """Help texts are docstrings, which `texts` leaves out."""
    words = format_words()
    found = {}
    for name in SHORT:
        command = find_command(name)
        assert command is not None
        for path in {name, *leaves(command, (name,))} if name != "format" else ():
            one = find_command(*path.split())
            assert one is not None
            with click.Context(one, info_name=one.name) as ctx:
                said = told(" ".join(one.get_help(ctx).split()), words)
            if said:
                found[path] = said
    assert found == {}
