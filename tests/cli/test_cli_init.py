"""`ipfsmem init`: what is made, what is brought back, what is refused, and what is never made by mistake."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli_lab import KEY, OTHER_KEY, Cli, pipe


def test_local(bare: Cli) -> None:
    said = bare.ok("init", "--mode", "local", "--json").json
    assert (said["mode"], said["restored"], said["recovery_words"], said["root"]) == (
        "local",
        False,
        None,
        None,
    )
    assert bare.ok("status", "--json").json["mode"] == "local"
    bare.fails(3, "init", "--mode", "local")


def test_an_encrypted_memory_is_published_with_its_words(bare: Cli, stick: Path) -> None:
    result = bare.ok("init", "--unprotected-keys", "--json", key=KEY)
    said = result.json
    assert said["address"] == "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" and not said["restored"]
    assert said["vault_tag"] == "3973bff87388964db243992eeb7c6506"
    assert len(said["recovery_words"]) == 24 and said["warnings"] and said["root"].startswith("bafy")
    assert list((stick / "names").iterdir())


def test_the_same_wallet_elsewhere_gets_its_memory_back(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    other = Cli(tmp_path / "other", monkeypatch)
    said = other.ok("init", "--unprotected-keys", key=KEY).out
    assert "It is back: 1 memory, 0 events." in said
    assert other.ok("read", "tone").out == sealed.ok("read", "tone").out


def test_another_wallet_gets_a_memory_of_its_own(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    other = Cli(tmp_path / "other", monkeypatch)
    assert "this wallet had none there" in other.ok("init", "--unprotected-keys", key=OTHER_KEY).out
    assert other.ok("list").out == ""


@pytest.mark.parametrize("provider", ["no/such/kind", "nonsense:", "/nonexistent/folder"])
def test_nothing_is_made_when_the_provider_cannot_be_asked(bare: Cli, provider: str) -> None:
    result = bare("init", "--unprotected-keys", "--provider", provider, key=KEY)
    assert result.code in (3, 41) and "Traceback" not in result.err and result.out == ""
    assert not bare.home.exists() or not list(bare.home.iterdir())


def test_a_damaged_provider_never_leads_to_a_second_memory(
    sealed: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pack in (stick / "packs").glob("*.car"):
        pack.write_bytes(pack.read_bytes()[:-10])
    for index in (stick / "packs").glob("*.idx"):
        index.unlink()
    other = Cli(tmp_path / "other", monkeypatch)
    result = other("init", "--unprotected-keys", key=KEY)
    assert result.code not in (0, 43), result
    assert not other.home.exists() or not list(other.home.iterdir())


def test_choices_that_do_not_fit(bare: Cli, stick: Path) -> None:
    bare.fails(2, "init")
    bare.fails(2, "init", "--no-wallet", "--no-recovery", "--unprotected-keys")
    bare.fails(2, "init", "--no-wallet", "--new-wallet", "--unprotected-keys")
    bare.fails(2, "init", "--mode", "local", key=KEY)
    bare.fails(2, "init", "--memory-dir", "x", "--no-wallet")
    bare.fails(2, "init", "--mode", "none")
    assert not bare.home.exists()


def test_without_a_provider_nobody_can_know(bare: Cli) -> None:
    assert "--provider" in bare.fails(3, "init", "--unprotected-keys", key=KEY).err


def test_keys_are_not_left_open_by_mistake(bare: Cli, stick: Path) -> None:
    result = bare.fails(2, "init", key=KEY)
    assert "passphrase" in result.err and not bare.home.exists()


def test_a_raw_key_needs_a_word_of_its_own(bare: Cli, stick: Path) -> None:
    bare.fails(2, "init", "--unprotected-keys", "--raw-key-fd", str(pipe(KEY)))
    result = bare("init", "--unprotected-keys", "--raw-key-fd", str(pipe("not a key")), "--i-know-raw-keys")
    assert result.code == 10 and "not a key" not in result.err


def test_a_seed_phrase(bare: Cli, stick: Path) -> None:
    words = "test test test test test test test test test test test junk"
    said = bare.ok("init", "--unprotected-keys", "--json", "--mnemonic-fd", str(pipe(words + "\n"))).json
    assert said["address"] == "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
    bad = bare("init", "-n", "other", "--unprotected-keys", "--mnemonic-fd", str(pipe("test junk")))
    assert bad.code == 10 and "junk" not in bad.err


def test_a_vault_without_a_wallet(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = bare.ok("init", "--unprotected-keys", "--no-wallet", "--json").json
    assert said["address"] is None and len(said["recovery_words"]) == 24
    bare.ok("write", "tone", "--body", "direct")
    bare.ok("sync")
    other = Cli(tmp_path / "other", monkeypatch)
    other.ok("recover", "--unprotected-keys", stdin=" ".join(said["recovery_words"]).encode())
    assert other.ok("read", "tone", "--body").out == "direct\n"


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wallets that open in milliseconds."""
    from ipfsmem.seal import signers

    slow = signers.create_keystore
    monkeypatch.setattr(signers, "create_keystore", lambda *given: slow(*given, scrypt_n=1024))


@pytest.mark.usefixtures("cheap")
def test_a_new_wallet_and_its_passphrases(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keystore = tmp_path / "my wallet.json"
    device, wallet = pipe("device secret\n"), pipe("wallet secret\n")
    said = bare.ok(
        "init", "--new-wallet", str(keystore), "--passphrase-fd", str(device), "--wallet-passphrase-fd", str(wallet), "--json",
    ).json  # fmt: skip
    assert said["keystore"] == str(keystore) and keystore.stat().st_mode & 0o077 == 0
    assert json.loads(keystore.read_text())["version"] == 3
    bare.fails(22, "list")
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "wrong")
    bare.fails(22, "list")
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "device secret")
    bare.ok("write", "tone", "--body", "x")
    # the wallet alone, on another device, with its own passphrase
    other = Cli(tmp_path / "other", monkeypatch)
    other.fails(22, "init", "--wallet", str(keystore))
    monkeypatch.setenv("IPFSMEM_WALLET_PASSPHRASE", "wallet secret")
    other.ok("init", "--wallet", str(keystore))
    # an existing file is never overwritten
    again = bare("init", "-n", "second", "--new-wallet", str(keystore))
    assert again.code == 30 and "not overwritten" in again.err
    other.fails(30, "init", "-n", "third", "--wallet", str(tmp_path / "missing.json"))


@pytest.mark.usefixtures("cheap")
def test_one_passphrase_serves_both(bare: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "one")
    said = bare.ok("init", "--new-wallet", "--json").json
    assert said["keystore"] == str(bare.home / "wallet.json")
    bare.ok("sync", "--wallet", said["keystore"])


def test_a_signature_passphrase_makes_another_vault(bare: Cli, stick: Path) -> None:
    fd = pipe("pepper")
    said = bare.ok("init", "--unprotected-keys", "--json", "--signature-passphrase-fd", str(fd), key=KEY).json
    assert said["vault_tag"] != "3973bff87388964db243992eeb7c6506"


def test_it_says_who_can_read(bare: Cli, stick: Path) -> None:
    assert "Who can read it: your devices" in bare.ok("init", "--unprotected-keys", key=KEY).err
    assert "Who can read it: everyone" in bare.ok("init", "-n", "open", "--mode", "ipfs", key=OTHER_KEY).err


def test_on_a_terminal_it_asks_and_has_words_typed_back(tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ipfsmem.cli", "init", "--no-wallet", "--provider", str(stick), "--home", str(tmp_path / "h")],
        stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "NO_COLOR": "1"}, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    seen = ""

    def until(what: str) -> str:
        nonlocal seen
        give_up = time.monotonic() + 30
        while what not in seen:
            assert select.select([ours], [], [], give_up - time.monotonic())[0], seen
            seen += os.read(ours, 4096).decode()
        before, _, seen = seen.partition(what)
        return before

    def answer(text: str) -> None:
        os.write(ours, (text + "\n").encode())

    until("Passphrase for this device: ")
    answer("secret")
    until("The same again: ")
    answer("different")
    until("They differ")
    until("Passphrase for this device: ")
    answer("secret")
    until("The same again: ")
    answer("secret")
    sheet = until("Word ")
    words = dict(re.findall(r"(\d+) ([a-z]+)", sheet))
    assert len(words) == 24
    number = until(": ")
    answer("wrong")
    until("That is another word")
    for turn in range(3):
        if turn:
            until("Word ")
            number = until(": ")
        else:
            until(": ")
        answer(words[number])
    until("Right. Keep them safe.")
    until("Made a new memory")
    assert "secret" not in sheet
    while True:
        try:
            if not os.read(ours, 4096):
                break
        except OSError:
            break
    assert process.wait(30) == 0
    os.close(ours)
