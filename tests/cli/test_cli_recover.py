"""`ipfsmem recover`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli_lab import KEY, OTHER_KEY, Cli, pipe
from tests.support.damage_lab import damage_text


def test_recover_needs_only_the_recovery_phrase(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = bare.ok("init", "--unprotected-keys", "--json", key=KEY).json["recovery_words"]
    bare.ok("write", "tone", "--body", "direct")
    bare.ok("timeline", "add", "waved")
    bare.ok("sync")
    for number, give in enumerate(("stdin", "fd")):
        other = Cli(tmp_path / f"other{number}", monkeypatch)
        text = "  ".join(words).upper() + "\n"
        more = ["--words-fd", str(pipe(text))] if give == "fd" else []
        said = other.ok("recover", "--unprotected-keys", *more, stdin=b"" if more else text.encode()).out
        assert f"Restored: {'1 memory' if give == 'stdin' else '2 memories'}, 1 event." in said
        assert other.ok("read", "tone").out == bare.ok("read", "tone").out
        other.ok("write", f"from_{give}", "--body", "x")
        other.ok("sync")
    bare.ok("sync")
    assert [i["key"] for i in bare.ok("list", "--json").json["memories"]] == ["from_fd", "from_stdin", "tone"]


def test_invalid_recovery_phrase_is_refused(bare: Cli, stick: Path) -> None:
    valid = ["abandon"] * 23 + ["art"]
    bare.fails(43, "recover", "--unprotected-keys", stdin=" ".join(valid).encode())
    bare.fails(10, "recover", "--unprotected-keys", stdin=" ".join(valid[:20]).encode())
    bare.fails(10, "recover", "--unprotected-keys", stdin=" ".join([*valid[:23], "zoo"]).encode())
    assert "perhaps" in bare.fails(10, "recover", "--unprotected-keys", stdin=b"abandom").err
    assert not bare.home.exists() or not list(bare.home.iterdir())


def test_recover_onto_an_existing_vault_is_refused(sealed: Cli) -> None:
    sealed.fails(3, "recover", "--unprotected-keys", stdin=b"x")


def test_recover_without_a_provider_is_refused(bare: Cli) -> None:
    words = " ".join(["abandon"] * 23 + ["art"])
    assert "--provider" in bare.fails(3, "recover", "--unprotected-keys", stdin=words.encode()).err


def test_recover_with_an_unavailable_provider_exits_with_an_error(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that only this provider stores may be missing."""
    words = bare.ok("init", "--unprotected-keys", "--json", key=KEY).json["recovery_words"]
    bare.ok("write", "tone", "--body", "direct")
    bare.ok("sync")
    both = ("--provider", str(stick), "--provider", str(tmp_path / "drawer"))
    other = Cli(tmp_path / "other", monkeypatch)
    result = other("recover", "--unprotected-keys", *both, stdin=" ".join(words).encode())
    assert result.code == 45 and "Traceback" not in result.err
    assert "Restored, but newer texts may be missing: 1 memory" in result.out and "ipfsmem sync" in result.out
    assert "direct" in other.ok("read", "tone").out
    (tmp_path / "drawer").mkdir()
    other.ok("sync")


def test_recover_with_an_unavailable_text_exits_with_44(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = bare.ok("init", "--unprotected-keys", "--json", key=KEY).json["recovery_words"]
    bare.ok("write", "tone", "--body", "direct")
    bare.ok("write", "other", "--body", "x")
    bare.ok("sync")
    damage_text(bare, stick, "tone")
    other = Cli(tmp_path / "second", monkeypatch)
    said = other("recover", "--unprotected-keys", stdin=" ".join(words).encode())
    assert said.code == 44 and "1 text could not be fetched" in said.out
    assert other.ok("read", "other", "--body").out == "x\n"
    third = Cli(tmp_path / "third", monkeypatch)("init", "--unprotected-keys", key=KEY)
    assert third.code == 44 and "1 text could not be fetched" in third.out


def test_recover_json_has_the_warnings_for_the_owner(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Cli(tmp_path / "other", monkeypatch)
    other.ok("init", "-n", "bob", "--vault", "bob", "--unprotected-keys", key=KEY)
    bare.ok("init", "-n", "alex", "--passphrase-fd", str(pipe("the first sentence")), key=KEY)
    given = ("--vault", "bob", "--passphrase-fd", str(pipe("another sentence")))
    (warning,) = bare.ok("recover", "-n", "bob", *given, "--json", key=KEY).json["warnings"]
    assert "ipfsmem key vaults --add bob --key-number 1 --vault alex" in warning


@pytest.mark.parametrize("label", ["default", "bob"])
def test_recover_finds_a_vault_by_its_name_in_the_wallet(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: str
) -> None:
    """A wallet calls the first vault of a device `default`, whatever its local name."""
    if label == "bob":
        bare.ok("init", "--unprotected-keys", key=KEY)
    bare.ok("init", "--vault", "bob", "--unprotected-keys", key=KEY)
    bare.ok("write", "tone", "--vault", "bob", "--body", "of bob")
    bare.ok("sync", "--vault", "bob")
    other = Cli(tmp_path / "other", monkeypatch)
    found = other.ok("recover", "--vault", "bob", "--unprotected-keys", "--json", key=KEY).json["status"]
    assert (found["vault_name"], found["vault"]["name"]) == ("bob", label)
    assert other.ok("read", "tone", "--vault", "bob", "--body").out == "of bob\n"


def test_recover_of_unreadable_named_vault_recovers_no_other_vault(
    sealed: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed.ok("write", "tone", "--body", "of the first")
    sealed.ok("sync")
    before = {*stick.rglob("*")}
    sealed.ok("init", "--vault", "work", "--unprotected-keys", key=KEY)
    sealed.ok("sync", "--vault", "work")
    for kind in ("names", "packs"):
        for file in {*(stick / kind).iterdir()} - before:
            file.unlink()
    other = Cli(tmp_path / "other", monkeypatch)
    told = other.fails(43, "recover", "--vault", "work", "--unprotected-keys", key=KEY).err
    assert "--vault work --wallet-vault default" in told and not (other.home / "work").exists()
    given = ("--vault", "work", "--wallet-vault", "default", "--unprotected-keys")
    assert "wallet vault  default" in other.ok("recover", *given, key=KEY).out
    assert other.ok("read", "tone", "--vault", "work", "--body").out == "of the first\n"


@pytest.mark.parametrize("command", ["recover", "init"])
@pytest.mark.parametrize("label", ["default", "work"])
def test_named_version_is_restored_under_another_local_name(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: str, command: str
) -> None:
    """The keys of the vault `work` do not open a version of the vault `default`, or vice versa."""
    bare.ok("init", "--vault", "work", "--wallet-vault", label, "--unprotected-keys", key=KEY)
    bare.ok("write", "tone", "--vault", "work", "--body", f"of {label}")
    version = bare.ok("sync", "--vault", "work", "--json").json["report"]["root"]
    for here in ("nothing", "another wallet"):
        other = Cli(tmp_path / here, monkeypatch)
        if here != "nothing":
            other.ok("init", "--vault", "theirs", "--unprotected-keys", key=OTHER_KEY)
        given = ("--vault", "work", "--unprotected-keys", "--root", version)
        other.ok(command, *given, key=KEY)
        assert other.ok("read", "tone", "--vault", "work", "--body").out == f"of {label}\n"
        assert other.ok("status", "--vault", "work", "--json").json["vault"]["name"] == label


def test_recover_of_a_name_invalid_in_wallets_restores_default(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    other = Cli(tmp_path / "other", monkeypatch)
    other.ok("recover", "--vault", "a_b", "--unprotected-keys", key=KEY)
    assert other.ok("read", "tone", "--vault", "a_b", "--body").out == "direct\n"


def test_recover_with_the_options_of_a_former_sheet_finds_the_same_vault(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then --namespace was the name on a device, and --vault the name in the wallet."""
    bare.ok("init", "-n", "mine", "--vault", "bob", "--unprotected-keys", key=KEY)
    bare.ok("write", "tone", "-n", "mine", "--body", "of bob")
    bare.ok("sync", "--namespace", "mine")
    other = Cli(tmp_path / "other", monkeypatch)
    for words in (("-n", "mine", "--vault", "bob"), ("--vault", "bob")):
        found = other.ok("recover", *words, "--unprotected-keys", "--json", key=KEY).json["status"]
        assert (found["vault_name"], found["vault"]["name"]) == (words[1], "bob")
        assert other.ok("read", "tone", "--vault", words[1], "--body").out == "of bob\n"
        other = Cli(tmp_path / "third", monkeypatch)
    (printed,) = [
        line.strip()
        for line in bare.ok("key", "sheet", "--vault", "mine").out.splitlines()
        if "--wallet FILE" in line
    ]
    assert printed.startswith("ipfsmem recover --vault mine --wallet FILE --wallet-vault bob")
