"""The first help is short, `help` has the rest, and a wrong or foreign name leads to the right command."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from ipfsmem.cli import app
from ipfsmem.cli.examples import EXAMPLES
from ipfsmem.cli.wallets import root_options
from ipfsmem.errors import ChangedError
from tests.support.cli_lab import Cli


def test_first_help_shows_sixteen_commands_in_three_groups(bare: Cli) -> None:
    text = bare.ok("--help").out
    rows = re.findall(r"^(\w+):\n((?:  .+\n)+)", text, re.MULTILINE)
    assert [title for title, _ in rows] == ["Start", "Memories", "Sync", "Examples", "Options"]
    shown = [line.split()[0] for _, block in rows[:3] for line in block.splitlines()]
    assert shown == [name for commands in app.FIRST.values() for name in commands]
    assert len(shown) == 16 and len(rows[3][1].splitlines()) == 3
    assert text.endswith("More: `ipfsmem help all`\n")
    assert max(map(len, text.splitlines())) <= 80


def test_help_without_a_topic_is_the_first_help(bare: Cli) -> None:
    assert bare.ok("help").out == bare.ok("--help").out


def test_help_all_shows_every_command_with_its_subcommands(bare: Cli) -> None:
    text = " ".join(bare.ok("help", "all").out.split())
    for name, short in app.SHORT.items():
        verbs = f": {', '.join(app.VERBS[name])}" if name in app.VERBS else ""
        assert f" {name} {short}{verbs} " in f" {text} ", name
    assert "hook" not in text.split()


def test_table_of_subcommands_equals_the_registered_commands() -> None:
    groups = {name: app.find_command(name) for name in app.SHORT}
    found = {
        name: {*one.list_commands(click.Context(one))}
        for name, one in groups.items()
        if isinstance(one, click.Group)
    }
    assert found == {name: {*commands} for name, commands in app.VERBS.items()}


def test_summary_of_a_command_is_a_phrase_of_at_most_60_characters() -> None:
    grouped = [text for group in app.GROUPS.values() for _, text in group.values()]
    assert [text for text in (*app.SHORT.values(), *grouped) if len(text) > 60 or text.endswith(".")] == []


@pytest.mark.parametrize(
    "topic",
    [("recall",), ("session",), ("session", "add"), ("member", "admit"), ("vault", "check"), ("hook",)],
)
def test_help_topic_of_a_command_equals_its_help_option(bare: Cli, topic: tuple[str, ...]) -> None:
    shown, its_own = (
        bare.ok(*words).out.replace("-h, ", "").split() for words in (("help", *topic), (*topic, "--help"))
    )
    assert shown == its_own and " ".join(shown).startswith(f"Usage: ipfsmem {' '.join(topic)} ")


@pytest.mark.parametrize("topic", [("reed",), ("read", "tone"), ("session", "adds"), ("all", "of")])
def test_help_about_an_unknown_name_is_an_error(bare: Cli, topic: tuple[str, ...]) -> None:
    bare.fails(2, "help", *topic)


COMMANDS = sorted(
    {f"{name} {verb}" for name, verbs in app.VERBS.items() for verb in verbs}
    | (app.SHORT.keys() - app.VERBS.keys())
)


def test_examples_of_a_command_are_valid_calls_of_it() -> None:
    for path, examples in EXAMPLES.items():
        assert len(examples) <= 3 and max(map(len, examples)) <= 78, path
        for example in examples:
            call = re.sub(r"^.*?(?=ipfsmem )| [<>] \S+$", "", example)
            assert call.startswith(f"ipfsmem {path}"), example
            command = app.find_command(*path.split())
            assert command is not None
            words = shlex.split(call.removeprefix(f"ipfsmem {path}"))
            command.make_context(path, words, parent=click.Context(app.group, info_name="ipfsmem"))


#: Commands that need no vault, or run until they are stopped.
NO_VAULT = re.compile(
    r"(config|disconnect|format|help|plugin|serve|service) ?|(connect|demo|init|key derive|open|provider policy|provider test|recover|ui|vault list|version)$"
)


def test_examples_have_only_options_that_can_be_combined(
    bare: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command whose options are accepted reports a missing vault here."""
    monkeypatch.chdir(tmp_path)
    for file in ("trip.md", "merged.md"):
        Path(file).write_text("A text.\n")
    for path, examples in EXAMPLES.items():
        for example in () if NO_VAULT.match(path) else examples:
            call = re.sub(r"^.*?(?=ipfsmem )| [<>] \S+$", "", example)
            done = bare(*shlex.split(call)[1:], stdin=b"{}")
            assert done.code in (4, 10, 22), (example, done)


def test_examples_of_fact_commands_run_in_order(cli: Cli) -> None:
    for path, examples in EXAMPLES.items():
        for example in examples if path.startswith("fact ") else ():
            cli.ok(*shlex.split(example)[1:])
    assert cli.ok("fact", "list", "--category", "work").out


def test_help_of_a_command_has_its_examples(bare: Cli) -> None:
    for path in COMMANDS:
        shown = bare.ok(*path.split(), "--help").out
        assert "Examples:\n" + "".join(f"  {example}\n" for example in EXAMPLES[path]) in shown, path
    assert EXAMPLES.keys() == {*COMMANDS}


def test_help_wallets_shows_each_option_that_the_commands_accept_and_hide(bare: Cli) -> None:
    @click.command
    @root_options
    def takes_all(**_: object) -> None:
        pass

    text = bare.ok("help", "wallets").out
    hidden = {name for param in takes_all.params for name in param.opts}
    assert hidden and hidden == set(re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE))
    for words in (
        ("init",),
        ("recover",),
        ("sync",),
        ("format", "inspect"),
        ("member", "admit"),
        ("member", "revoke"),
    ):
        shown = bare.ok(*words, "--help").out
        assert "`ipfsmem help wallets`" in shown
        assert not {*re.findall(r"^  (--[a-z-]+)", shown, re.MULTILINE)} & (hidden - {"--words-fd"}), words


def test_help_exit_codes_has_the_code_of_each_error(bare: Cli) -> None:
    rows = dict(re.findall(r"^(\d+) +(.+)$", bare.ok("help", "exit-codes").out, re.MULTILINE))
    assert rows["0"] == "Done" and rows[str(ChangedError.exit_code)] == ChangedError.__doc__
    assert rows[str(app.UNEXPECTED)]


def test_help_as_json_has_the_text(bare: Cli) -> None:
    said = bare.ok("help", "all", "--json").json
    assert said == {"topic": "all", "text": bare.ok("help", "all").out.removesuffix("\n")}


def test_each_new_command_name_is_a_command() -> None:
    for words in app.RENAMED.values():
        path = words.split(" --")[0].split()
        assert app.find_command(*path) is not None, words
    assert [name for name in app.INSTEAD if app.find_command(*name.split()) is not None] == []


@pytest.mark.parametrize(("name", "instead"), app.INSTEAD.items())
def test_command_name_of_another_program_suggests_ours(bare: Cli, name: str, instead: str) -> None:
    said = bare.fails(2, *name.split(), "--nonsense").err.splitlines()
    assert said == [f"ipfsmem: unknown command '{name}'", f"Use: ipfsmem {instead}"]
    bare.ok(*instead.split(" --")[0].split(), "--help")
    assert bare("--json", *name.split()).error["hint"] == f"Use: ipfsmem {instead}"


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (("serve", "/srv/blocks", "--create"), "serve peer"),
        (("serve", "--create", "/srv/blocks"), "serve peer"),
        (("timeline", "--limit", "3"), "timeline show"),
    ],
)
def test_former_command_that_is_now_a_group_suggests_its_new_name(
    bare: Cli, words: tuple[str, ...], instead: str
) -> None:
    assert bare.fails(2, *words).err.splitlines()[1] == f"Use: ipfsmem {instead}"
    assert bare("--json", *words).error["hint"] == f"Use: ipfsmem {instead}"
    bare.ok(*instead.split(), "--help")


def test_mistyped_subcommand_of_a_former_command_suggests_the_help(bare: Cli) -> None:
    said = bare.fails(2, "serve", "apy").err
    assert "did you mean 'api'?" in said and "See: ipfsmem serve --help" in said
    assert "See: ipfsmem vault --help" in bare.fails(2, "vault", "--limit", "3").err


def test_version_command_prints_the_same_as_the_version_option(bare: Cli) -> None:
    assert bare.ok("version").out == bare.ok("--version").out
    assert f"ipfsmem {bare.ok('version', '--json').json['version']}\n" == bare.ok("version").out
