"""Every command and option that a text of the package names exists, and works where the text is shown.

The first test reads all texts (tests/support/hints.py); the others create a situation and run the printed
hint unchanged."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ipfsmem.cli.app import VERBS, find_command
from tests.support.cli_lab import KEY, Cli, Result
from tests.support.hints import FILLED, WHOLE, Told, texts, told

#: Words after "ipfsmem" that make it the name in a sentence, not a command.
PROSE = {"process", "memory", "program", "again", "folder", "itself"}


def commands() -> Iterator[Told]:
    return (one for one in told() if one.command.split()[0] not in PROSE)


def words_of(text: str) -> list[str]:
    """Return the words of a command without those of the sentence around it."""
    name, *rest = text.split()
    words = [name]
    if name in VERBS and rest:
        words.append(rest.pop(0))
    for word in rest:
        if (
            word.islower()
            and not word.startswith("-")
            and not word[0].isdigit()
            and not words[-1].startswith("--")
        ):
            break
        words.append(word)
    return words


@pytest.mark.xdist_group("texts")
def test_commands_named_in_texts_exist_with_their_options() -> None:
    """One test, because it parses the whole package."""
    every = list(commands())
    assert len(every) > 250
    assert [one for one in every if not exists(one)] == []


def exists(one: Told) -> bool:
    """Return whether this command exists and accepts these words."""
    words = words_of(one.command)
    if words[0] == "VALUE":
        return True
    command = find_command(words.pop(0))
    if isinstance(command, click.Group) and words:
        command = command.get_command(click.Context(command), words.pop(0))
    if command is None:
        return False
    shorter = words[:-1] if words[-1:] == [FILLED] else words  # further options may follow
    return accepts_words(command, words) or accepts_words(command, shorter)


def accepts_words(command: click.Command, words: list[str]) -> bool:
    """Return whether these options exist and are complete, and there are not too many arguments."""
    try:
        _, left, _ = command.make_parser(click.Context(command)).parse_args(list(words))
    except click.UsageError:
        return False
    return left == []


@pytest.mark.xdist_group("texts")
def test_texts_do_not_refer_to_documents_that_are_not_installed() -> None:
    """An installed package has no docs/reference/errors.md."""
    assert [(where, text) for where, text in texts() if "docs/" in text] == []


@pytest.mark.xdist_group("texts")
def test_python_message_names_more_than_a_flag() -> None:
    """Outside the command line a flag alone helps only some callers; a whole command helps all. (Errors of
    `api/calls.py` put their flags after a command, which tests/unit/api/test_access.py runs. `git/` and
    `rclone/` have options of those programs.)"""
    bare = re.compile(r"(?<![\w-])--[a-z]")
    flags = [
        (where, text)
        for where, text in texts()
        if not where.startswith(("ipfsmem/cli/", "ipfsmem/http/", "ipfsmem/api/calls.py", "ipfsmem/vault/sheet.py", "ipfsmem/agents/", "providers/ipfsmem_providers/git/", "providers/ipfsmem_providers/rclone/"))
        and bare.search(text) and not WHOLE.search(text) and "in Python" not in text and not text.startswith(("--allow ", "Create one for"))
    ]  # fmt: skip
    assert flags == []


# -- situations ----------------------------------------------------------------------------------------------------


def run_as_printed(device: Cli, text: str, **fill: str) -> Result:
    """Run the first command that a text names unchanged; `fill` replaces words in capitals."""
    found = re.search(r"ipfsmem ([^\n]*?)(?:[.,;]? *(?:$|\n|, or | \(|\. [A-Z]))", text)
    assert found, text
    words = [fill.get(word, word) for word in shlex.split(found[1])]
    return device.ok(*words)


def forgotten_and_edited(one: Cli, two: Cli) -> None:
    one.ok("write", "gone", "--body", "old")
    one.ok("sync")
    two.ok("sync")
    one.ok("forget", "gone")
    two.ok("write", "gone", "--body", "edited meanwhile")
    for device in (one, two, one):
        device.ok("sync")


@pytest.mark.parametrize("way", range(3), ids=["as printed", "alternative", "file"])
def test_printed_commands_resolve_a_forgotten_and_edited_text(
    sealed: Cli, second: Cli, tmp_path: Path, way: int
) -> None:
    forgotten_and_edited(sealed, second)
    listed = sealed.ok("conflicts").out
    assert "gone" in listed
    shown = sealed.ok("conflicts", "gone").out
    told = re.search(
        r"Resolve it: (ipfsmem resolve gone --seen \w+) (--keep), or (--alternative \S+), or (--file) PATH",
        shown,
    )
    assert told, shown
    own = tmp_path / "own.md"
    own.write_text("in other words\n")
    run_as_printed(sealed, f"{told[1]} {(told[2], told[3], f'--file {own}')[way]}")
    assert sealed.ok("conflicts", "--json").json["conflicts"] == []
    if way == 0:
        sealed.fails(4, "read", "gone")
    else:
        assert ("edited meanwhile", "in other words")[way - 1] in sealed.ok("read", "gone").out


@pytest.mark.parametrize("key", ["user:theme", "-x", "two words", "it's"])
def test_deleted_value_is_restored_by_the_printed_command(cli: Cli, key: str) -> None:
    cli.ok("value", "set", "--scope", "site", "--", key, "dark")
    printed = cli.ok("value", "delete", "--scope", "site", "--", key).out
    run_as_printed(cli, printed)
    assert cli.ok("value", "get", "--scope", "site", "--", key).out == "dark\n"


def test_hint_after_a_mistyped_key_names_the_similar_memory(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "x")
    assert "tone" in run_as_printed(cli, cli.fails(4, "read", "tune").err).out


def test_hint_without_a_vault_suggests_init(bare: Cli) -> None:
    told = bare.fails(4, "list").err
    assert "Create one with: ipfsmem init." in told
    bare.ok("init", "--mode", "local")
    bare.ok("list")


def test_hint_after_a_lost_pack_restores_it_from_another_device(sealed: Cli, second: Cli, stick: Path, tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    second.ok("write", "tone", "--body", "direct")
    second.ok("sync")
    for pack in (stick / "packs").iterdir():
        pack.unlink()
    third = Cli(tmp_path / "third", monkeypatch)
    refused = third("init", "--unprotected-keys", key=KEY)
    assert refused.code == 40 and "member admit" not in refused.err
    assert "first sync a device that has it" in refused.err
    second.ok("sync")
    third.ok("init", "--unprotected-keys", key=KEY)
    assert "direct" in third.ok("read", "tone").out


def test_hint_about_a_suspected_secret_publishes_it(bare: Cli, stick: Path) -> None:
    bare.ok("init", "--mode", "ipfs", key=KEY)
    bare.ok("write", "note", "--body", "password: hunter2hunter2 AKIAIOSFODNN7EXAMPLE")
    refused = bare("sync", "--yes-public")
    assert refused.code != 0 and "ipfsmem sync --allow" in refused.err
    run_as_printed(bare, refused.err)


def test_init_of_public_vault_with_secret_names_secret_not_consent(
    bare: Cli, stick: Path, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "aws.md").write_text("AKIAIOSFODNN7EXAMPLE password: hunter2hunter2\n")
    made = bare("init", "--mode", "ipfs", "--yes-public", "--memory-dir", str(tmp_path / "plain"), key=KEY)
    assert made.code == 32 and "Recovery phrase" in made.out and "--yes-public" not in made.err
    run_as_printed(bare, made.err[made.err.index("Remove it") :])
    assert "no unpublished changes" in bare.ok("status").out


def test_hint_about_consent_publishes_a_public_vault(bare: Cli, stick: Path) -> None:
    bare.ok("init", "--mode", "ipfs", key=KEY)
    bare.ok("write", "note", "--body", "x")
    refused = bare("sync")
    assert refused.code != 0
    run_as_printed(bare, refused.err)
    assert "no unpublished changes" in bare.ok("status").out


def test_hint_about_a_conflict_in_status_shows_the_conflict(clash: tuple[Cli, Cli]) -> None:
    one, two = clash
    two.ok("write", "tone", "--body", "again from the second")
    two.ok("sync")
    said = [device.ok("status").out for device in clash]
    told = next(text for text in said if "ipfsmem conflicts" in text)
    assert "tone" in run_as_printed(one, re.sub(r"[()]", "\n", told)).out
