"""Reports of commands are correct: results, numbers and next steps."""

from __future__ import annotations

import os
import re
import shlex
import zipfile
from pathlib import Path

import pytest

from tests.support.cli_lab import KEY, Cli


def test_forget_in_local_mode_mentions_no_other_devices(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "x")
    assert cli.ok("forget", "tone").out == "tone is forgotten here.\n"
    cli.ok("write", "tone", "--scope", "work", "--body", "x")
    assert (
        cli.ok("scope", "forget", "work", "--yes").out
        == "The scope work is forgotten here with 1 memory (1 memory never synced: it cannot be restored).\n"
    )
    assert cli.ok("scope", "restore", "work").out == "The scope work is restored, without texts.\n"


def test_provider_add_for_a_local_vault_is_refused_with_a_way_to_publish(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "stick").mkdir()
    hint = cli.fails(2, "provider", "add", str(tmp_path / "stick")).err
    assert "mode local is never published" in hint
    cli.ok("write", "tone", "--body", "x")
    cli.ok("init", "-n", "new", "--no-wallet", "--unprotected-keys")
    for step in re.findall(r"ipfsmem (export[^,]*|import[^.]*)", hint):
        cli.ok(*shlex.split(step.replace("NEW", "new").replace("DIR", str(tmp_path / "taken"))))
    assert "tone" in cli.ok("list", "-n", "new").out


def test_empty_file_does_not_resolve_a_conflict(clash: tuple[Cli, Cli]) -> None:
    """An empty file is most often the result of a failed program."""
    first, _ = clash
    seen = first.ok("conflicts", "--json").json["conflicts"][0]["seen"]
    first.fails(2, "resolve", "tone", "--seen", seen, "--file", "-", stdin=b"\n")
    assert first.ok("conflicts").out != ""
    first.ok("resolve", "tone", "--seen", seen, "--keep")
    first.ok("forget", "tone")
    assert first.ok("conflicts").out == first.ok("list").out == ""


def test_value_set_on_two_devices_shows_both(clash: tuple[Cli, Cli]) -> None:
    first, second = clash
    first.ok("value", "set", "theme", "dark")
    second.ok("value", "set", "theme", "light")
    for device in (first, second, first):
        device.ok("sync")
    told = first.ok("value", "get", "theme")
    assert "also: " in told.err and "ipfsmem" in told.err and "conflicts" in told.err
    shown = first.ok("value", "get", "theme", "--json").json
    (beside,) = first.ok("value", "history", "theme", "--json").json["values"]
    assert {shown["value"], beside["value"]} == {"dark", "light"}
    assert len(shown["conflicts"]) == 1 and beside["why"] == "conflict"
    assert f"conflict\t{beside['value']}" in first.ok("value", "history", "theme").out


def test_missing_secret_error_names_the_right_variable(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "four words that differ")
    wallet = str(tmp_path / "wallet.json")
    sealed.ok("init", "-n", "other", "--new-wallet", wallet)
    monkeypatch.setenv("IPFSMEM_WALLET_PASSPHRASE", "not this one at all")
    wrong = sealed.fails(22, "member", "admit", "-n", "other", "--wallet", wallet)
    assert "IPFSMEM_WALLET_PASSPHRASE" in wrong.err and "in IPFSMEM_PASSPHRASE" not in wrong.err
    missing = sealed.fails(22, "key", "passphrase", "-n", "other")
    assert "IPFSMEM_NEW_PASSPHRASE" in missing.err and "in IPFSMEM_PASSPHRASE" not in missing.err
    phrase = sealed.fails(22, "member", "admit", "--mnemonic")
    assert "IPFSMEM_MNEMONIC" in phrase.err and "in IPFSMEM_PASSPHRASE" not in phrase.err


@pytest.mark.parametrize("strategy", [(), ("--strategy", "replace", "--prune")])
def test_import_of_a_folder_without_memories_is_refused(
    cli: Cli, tmp_path: Path, strategy: tuple[str, ...]
) -> None:
    cli.ok("write", "tone", "--body", "x")
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / "shopping.jpg").write_text("milk")
    with zipfile.ZipFile(tmp_path / "wrong.zip", "w") as archive:
        archive.writestr("shopping.jpg", "milk")
    for place in ("wrong", "wrong.zip"):
        assert "there are no memories in" in cli.fails(10, "import", str(tmp_path / place), *strategy).err
    assert "tone" in cli.ok("list").out


def test_import_of_an_empty_export_with_prune_is_refused(cli: Cli, tmp_path: Path) -> None:
    """An empty export is most often the result of a failed program."""
    cli.ok("init", "-n", "none", "--mode", "local")
    cli.ok("export", "-n", "none", "--dir", str(tmp_path / "none"))
    cli.ok("write", "tone", "--body", "x")
    cli.ok("import", str(tmp_path / "none"))
    cli.fails(2, "import", str(tmp_path / "none"), "--strategy", "replace", "--prune")
    cli.fails(2, "import", "-", "--strategy", "replace", "--prune", stdin=b'{"files":{}}')
    assert "tone" in cli.ok("list").out


def test_init_of_a_local_vault_refuses_a_provider(
    bare: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider from the environment is ignored."""
    bare.fails(2, "init", "--mode", "local", "--provider", str(stick))
    bare.ok("init", "--mode", "local")
    monkeypatch.delenv("IPFSMEM_PROVIDER")
    assert str(stick) not in bare.ok("status").out and bare.ok("provider", "list").out == ""


@pytest.mark.parametrize("option", ["--out", "--dir", "--zip", "--plain-car", "--car"])
def test_export_to_an_empty_path_prints_nothing(cli: Cli, option: str) -> None:
    """As with an unset shell variable."""
    cli.ok("write", "tone", "--body", "x")
    cli.fails(2, "export", option, "")


def test_event_without_a_type_is_refused(cli: Cli) -> None:
    cli.fails(2, "timeline", "add", "", "x=1")
    assert cli.ok("timeline", "show").out == ""


def test_redirected_scope_names_the_scope_that_has_its_texts(cli: Cli) -> None:
    cli.ok("write", "tone", "--scope", "work", "--body", "x")
    cli.ok("scope", "make", "job")
    cli.ok("scope", "into", "work", "job")
    assert "The scope work redirects to job" in cli.ok("write", "style", "--scope", "work", "--body", "y").err
    assert "--scope job shows both" in cli("read", "style", "--scope", "work").err
    assert cli.ok("read", "style", "--scope", "job", "--body").out == "y\n"
    assert "1 memory" in cli.fails(2, "scope", "forget", "job").err  # but not those of work, which remain
    cli.ok("scope", "forget", "job", "--yes")
    assert "redirects to job" not in cli.ok("scope", "list").out + cli.ok("list", "--scope", "work").err


def test_scopes_cannot_be_redirected_in_a_circle(cli: Cli) -> None:
    for name in ("a", "b", "c"):
        cli.ok("scope", "make", name)
    cli.ok("scope", "into", "a", "b")
    cli.ok("scope", "into", "b", "c")
    assert "a already redirects to c" in cli.fails(2, "scope", "into", "c", "a").err
    cli.fails(2, "scope", "into", "b", "a")
    cli.ok("scope", "into", "a", "c")
    cli.ok("scope", "into", "a", "--remove")
    cli.ok("scope", "into", "c", "a")


def test_history_of_a_local_vault_says_that_it_has_no_revisions(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "x")
    cli.ok("write", "tone", "--body", "y")
    assert "keeps no revisions" in cli.ok("history", "tone").err


@pytest.mark.parametrize("option", ["--home", "-n"])
def test_empty_vault_name_is_refused(cli: Cli, option: str) -> None:
    cli.fails(2, option, "", "write", "tone", "--body", "x")
    cli.fails(2, "write", "tone", "--body", "x", option, "")
    assert cli.ok("list").out == ""


def test_devices_with_equal_labels_are_shown_with_their_ids(clash: tuple[Cli, Cli]) -> None:
    first, _ = clash
    mine = first.ok("status", "--json").json["device"]
    assert mine not in first.ok("conflicts").out
    first.ok("member", "rename", "second", "first", key=KEY)
    for said in (first.ok("conflicts").out, first.ok("vault", "log").out, first.ok("history", "tone").out):
        assert f"first ({mine})" in said


@pytest.mark.parametrize("call", [("serve", "peer", "", "--port", "0"), ("open", "")])
def test_empty_folder_argument_is_not_the_current_folder(cli: Cli, call: tuple[str, ...]) -> None:
    """As with an unset shell variable."""
    cli.fails(2, *call)


def test_errors_about_values_use_the_terms_of_the_option(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "tone", "--body", "x")
    assert "--root is empty" in cli.fails(2, "read", "tone", "--root", "").err
    assert "standard output" in cli.fails(2, "export", "--dir", "-").err and not Path("-").exists()
    said = cli.fails(2, "export", "--out", str(tmp_path)).err
    assert "is a folder" in said and "space" not in said
    wallet = tmp_path / "wallet.json"
    wallet.write_text('{"version": 3, "crypto": {}}')
    assert "not an export" in cli.fails(10, "import", str(wallet)).err


def test_restore_of_a_scope_from_a_version_without_it_fails(clash: tuple[Cli, Cli]) -> None:
    first, _ = clash
    before = first.ok("vault", "log", "--json").json[0]["root"]
    first.ok("write", "k", "--scope", "work", "--body", "x")
    first.ok("sync")
    first.ok("scope", "forget", "work", "--yes")
    first.ok("sync")
    after = first.ok("vault", "log", "--json").json
    for root in (before, after[0]["root"]):
        assert "nothing of the scope work" in first.fails(4, "scope", "restore", "work", "--root", root).err
    assert "is forgotten" in first.fails(4, "write", "k", "--scope", "work", "--body", "x").err
    assert "1 text" in first.ok("scope", "restore", "work", "--root", after[1]["root"]).out


def test_open_error_quotes_the_source_as_given(cli: Cli) -> None:
    assert "'/no/such/place' is not an IPFS address" in cli.fails(2, "open", "/no/such/place").err


def test_restore_of_an_unknown_scope_says_that_it_is_unknown(cli: Cli) -> None:
    assert "there is no scope nope" in cli.fails(4, "scope", "restore", "nope").err


@pytest.mark.parametrize(
    "what", ["member admit", "member revoke x", "member rename x y", "key phrase", "member rotate"]
)
def test_member_commands_of_a_local_vault_do_not_ask_for_a_wallet(cli: Cli, what: str) -> None:
    said = cli.fails(2, *what.split()).err
    assert "mode local has no members" in said and "--wallet" not in said


def test_error_about_an_invalid_export_does_not_say_blob(cli: Cli) -> None:
    said = cli.fails(10, "import", "-", stdin=b"").err
    assert "the export is not valid JSON" in said and "blob" not in said


def test_import_of_damaged_zip_or_foreign_json_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "cut.zip").write_text("what was left of it")
    (tmp_path / "cut.car").write_text("what was left of it")
    (tmp_path / "other.json").write_text('{"notes": ["milk"]}')
    (tmp_path / "odd.json").write_text('\ufeff{"notes": "\\ud800"}')
    (tmp_path / "none.json").write_text("{}")
    (tmp_path / "long.json").write_text(f'{{"size": {"9" * 5000}}}')
    for name in ("cut.zip", "cut.car"):
        assert f"is not a readable {name[4:]} file" in cli.fails(10, "import", str(tmp_path / name)).err
        cli.fails(10, "import", str(tmp_path / name), "--from-backup")
    for name in ("other.json", "odd.json", "none.json", "long.json"):
        assert "is not an export" in cli.fails(10, "import", "-", stdin=(tmp_path / name).read_bytes()).err
        assert "is not an export of a memory" in cli.fails(10, "import", str(tmp_path / name)).err
    assert cli.ok("list").out == ""


def test_relation_without_a_type_is_refused(cli: Cli) -> None:
    cli.ok("graph", "add", "Acme")
    cli.ok("graph", "add", "Bob")
    for nothing in ("", "  ", "**"):
        assert "a relation requires a type" in cli.fails(2, "graph", "relate", "acme", nothing, "bob").err
    assert cli.ok("graph", "relations").out == ""


def test_write_new_of_an_existing_memory_says_that_it_exists(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "one", "--new")
    refused = cli.fails(6, "write", "tone", "--body", "two", "--new").err
    assert "there is a memory tone already, so nothing was changed" in refused and "hash" not in refused
    assert (
        "there is no memory of that key"
        in cli.fails(6, "write", "new", "--body", "x", "--if-match", "0" * 64).err
    )


def test_history_of_an_unknown_fact_is_an_error(cli: Cli) -> None:
    cli.ok("fact", "add", "They like tea")
    key = cli.ok("fact", "list", "--json").json["facts"][0]["key"]
    assert cli.ok("fact", "history", key).out == ""
    cli.fails(4, "fact", "history", key[:-1])
    cli.ok("fact", "delete", key)
    assert "They like tea" in cli.ok("fact", "history", key).out


def test_mistyped_key_or_command_gets_a_suggestion(cli: Cli) -> None:
    cli.ok("write", "feedback_tone", "--body", "x")
    assert "; perhaps feedback_tone\n" in cli.fails(4, "read", "feedback_tome").err
    assert "; perhaps feedback_tone\n" in cli.fails(4, "read", "feedback_tome", "--stack", "").err
    assert "perhaps" not in cli.fails(4, "read", "something_else").err
    for words in (("dream", "aply"), ("fact", "lst"), ("config", "shw"), ("lst",)):
        assert f"unknown command '{words[-1]}'; did you mean '" in cli.fails(2, *words).err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("My notes: tea & \"coffee\"", "my_notes_tea_coffee"),
        ("Ünïcode 😀", "unicode"),
        ("../etc/passwd", "etc_passwd"),
        ("x" * 70, "x" * 64),
        ("notes.md", "notes"),
        ("Con", "feedback_tone"),
        ("😀", "feedback_tone"),
        ("", "feedback_tone"),
    ],
)  # fmt: skip
def test_error_about_an_invalid_key_suggests_a_valid_one(cli: Cli, given: str, meant: str) -> None:
    refused = cli.fails(12, "write", given, "--body", "x").err
    assert f"for instance {meant}" in refused.splitlines()[1]
    cli.ok("write", meant, "--name", given, "--body", "x")


def test_number_out_of_range_is_refused_with_its_range(cli: Cli) -> None:
    for words in (
        ("fact", "add", "x", "--confidence", "2"),
        ("recall", "x", "--threshold", "nan"),
        ("dream", "duplicates", "--similarity", "x"),
    ):
        assert "must be a number from " in cli.fails(2, *words).err
    assert "from 0 to 1,000,000" in cli.fails(2, "usage", "add", "--model", "m", "--cost", "1e99").err


def test_cost_over_the_limit_is_reported_at_once(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings.toml").write_text("[usage]\nday_usd = 0.01\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(tmp_path / "settings.toml"))
    assert cli.ok("usage", "add", "--model", "m", "--cost", "0.01").err == ""
    said = cli.ok("usage", "add", "--model", "m", "--cost", "0.0023").err
    assert said == "note: 0.0123 USD of this day (UTC) exceeds the limit of 0.01\n"
    assert cli.ok("usage", "add", "--model", "m", "--cost", "0.1", "--json").err == ""


def test_dream_reports_only_its_changes(cli: Cli) -> None:
    for key in ("tea", "drinks"):
        cli.ok("write", key, "--body", "They drink green tea. They never add sugar.")
    assert "removed 1 memory. Undo" in cli.ok("dream").out


def test_operations_of_init_are_audited_as_command_line(sealed: Cli) -> None:
    sealed.ok("init", "-n", "other", "--no-wallet", "--unprotected-keys")
    noted = sealed.ok("vault", "log", "--operations", "-n", "other", "--json").json["operations"]
    assert {(one["operation"], one["face"]) for one in noted} == {("sync", "cli")}


@pytest.mark.parametrize("said", ["1h", "7d", "2w", "today", "Yesterday", "2020-01-01"])
def test_commands_accept_the_same_times(cli: Cli, said: str) -> None:
    cli.ok("write", "tone", "--body", "direct")
    cli.ok("timeline", "add", "went", "to=sea")
    cli.ok("usage", "add", "--model", "m", "--cost", "1")
    assert cli.ok("recall", "direct", "--since", said).out.startswith("tone")
    assert "went" in cli.ok("timeline", "show", "--since", said).out
    assert cli.ok("usage", "show", "--from", said).out.startswith("m\t1")
    assert "write" in cli.ok("vault", "log", "--operations", "--since", said).out


def test_invalid_time_is_refused_with_valid_examples(cli: Cli) -> None:
    cli.ok("timeline", "add", "went")
    for command in (
        "recall x --since",
        "timeline show --since",
        "timeline show --until",
        "usage show --from",
    ):
        refused = cli.fails(2, *command.split(), "soon").err
        for said in ("24h", "7d", "yesterday", "2026-04-14", "2026-04-14T09:30:00Z"):
            # recall also accepts a time range in words, and names some
            assert said in refused or (command.startswith("recall") and "last 3 months" in refused)
            cli.ok(*command.split(), said)
    cli.fails(2, "timeline", "show", "--since", "999999w")
    cli.fails(2, "timeline", "show", "--since", "today", "--until", "yesterday")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_documented_shell_completion_completes_commands(shell: str) -> None:
    from tests.support.cli_lab import program

    variables = {
        **os.environ,
        "COMP_WORDS": "ipfsmem fact hi",
        "COMP_CWORD": "hi" if shell == "fish" else "2",
    }
    source = program(env={**variables, "_IPFSMEM_COMPLETE": f"{shell}_source"})
    assert b"_IPFSMEM_COMPLETE=" in source.stdout and source.returncode == 0
    found = program(env={**variables, "_IPFSMEM_COMPLETE": f"{shell}_complete"})
    assert b"history" in found.stdout and b"list" not in found.stdout
