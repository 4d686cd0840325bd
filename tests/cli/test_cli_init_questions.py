"""`ipfsmem init` asks for missing choices on a terminal only; Ctrl-C leaves nothing."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.cli import init_questions
from ipfsmem.cli.storage_offers import StorageOffer
from ipfsmem.wallet.signers import create_keystore
from tests.support.cli_lab import Cli


class Person:
    """Somebody at a terminal who reads and types."""

    def __init__(self, home: Path, *arguments: str, **variables: str) -> None:
        self._ours, theirs = pty.openpty()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("IPFSMEM_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ipfsmem.cli", "init", "--home", str(home), *arguments],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=home.parent, start_new_session=True,
            env={**environment, "NO_COLOR": "1", "IPFSMEM_CONFIG": os.devnull, "HOME": str(home.parent), **variables},
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""

    def until(self, what: str) -> str:
        """Read until this text appears; return the text before it."""
        give_up = time.monotonic() + 60
        while what not in self.seen:
            assert select.select([self._ours], [], [], max(0, give_up - time.monotonic()))[0], self.seen
            self.seen += os.read(self._ours, 4096).decode()
        before, _, self.seen = self.seen.partition(what)
        return before

    def types(self, *answers: tuple[str, str]) -> None:
        """Type answers, each after its question."""
        for question, answer in answers:
            self.until(question)
            os.write(self._ours, (answer + "\n").encode())

    def types_words_back(self) -> None:
        """Confirm the 24 words by typing the requested ones."""
        words = dict(re.findall(r"(\d+) ([a-z]+)", self.until("Word ")))
        for turn in range(3):
            if turn:
                self.until("Word ")
            number = self.until(": ")
            os.write(self._ours, (words[number] + "\n").encode())
        self.until("Right. Keep them safe.")

    def presses_ctrl_c(self) -> None:
        """Press Ctrl-C until it works: `input` ignores it between its question and its wait."""
        for _ in range(60):
            os.killpg(self.process.pid, signal.SIGINT)
            if select.select([self._ours], [], [], 1)[0]:
                break

    def ends(self) -> int:
        """Read the rest; return the exit code."""
        while True:
            try:
                if not os.read(self._ours, 4096):
                    break
            except OSError:
                break
        return self.process.wait(60)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "stick").mkdir()
    yield tmp_path / "home"


PASSPHRASE = (("Passphrase for this device: ", "open sesame 7"), ("Repeat it: ", "open sesame 7"))


def test_init_asks_for_readers_provider_and_owner(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person = Person(home)
    person.types(("Number [1]: ", ""), ("Provider: ", "no/such/folder"))
    person.until("There is no folder no/such/folder.")
    person.types(("Provider: ", str(home.parent / "stick")), ("Number [1]: ", "4"), *PASSPHRASE)
    person.types_words_back()
    person.until("Created a new vault")
    assert person.ends() == 0
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "open sesame 7")
    found = Cli(home, monkeypatch).ok("status", "--json").json
    assert found["mode"] == "encrypted-ipfs" and found["providers"] == [str(home.parent / "stick")]
    assert found["root"] is not None


def test_detected_synced_folder_is_chosen_by_number(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dropbox = home.parent / "Dropbox"
    dropbox.mkdir()
    person = Person(home, HOME=str(home.parent))
    person.types(("Number [1]: ", ""))
    assert f"  1  Dropbox: {dropbox}/ipfsmem" in person.until("Provider: ").replace("\r", "")
    os.write(person._ours, b"1\n")
    person.types(("Number [1]: ", "4"), *PASSPHRASE)
    person.types_words_back()
    person.until("Created a new vault")
    assert person.ends() == 0 and list((dropbox / "ipfsmem").iterdir())
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "open sesame 7")
    assert Cli(home, monkeypatch).ok("status", "--json").json["providers"] == [str(dropbox / "ipfsmem")]


def test_subfolder_created_in_a_synced_folder_is_deleted_without_a_vault(home: Path) -> None:
    (home.parent / "Dropbox").mkdir()
    person = Person(home, HOME=str(home.parent))
    person.types(("Number [1]: ", ""), ("Provider: ", "1"), ("Number [1]: ", "4"))
    person.until(PASSPHRASE[0][0])
    assert (home.parent / "Dropbox/ipfsmem").is_dir()
    person.presses_ctrl_c()
    assert person.ends() == 130
    assert not list((home.parent / "Dropbox").iterdir())


def test_deleted_working_folder_yields_no_storage_offers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert init_questions._offers() == []


@pytest.mark.parametrize("answer", ["memory", "team/memory.git", "/memory/"])
def test_init_asks_for_a_repository_by_name(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    answers = iter(["", "-o", "../x", "a b", "https://x", answer])
    monkeypatch.setattr(init_questions, "_text", lambda question: next(answers))
    offer = StorageOffer("git: one", "git:git@host:anna/{}.git", asks="Repository")
    spec, folder = init_questions._accepted(offer)
    assert spec == f"git:git@host:anna/{answer.strip('/').removesuffix('.git')}.git" and folder is None


@pytest.mark.parametrize("wallet", ["missing.json", "stick"])
def test_init_refuses_unreadable_wallet_file_before_passphrase_prompt(home: Path, wallet: str) -> None:
    person = Person(home, "--wallet", wallet, "--provider", str(home.parent / "stick"))
    assert "assphrase" not in person.until(f"keystore {wallet} cannot be read")
    assert person.ends() == 30 and not home.exists()


def test_init_of_plain_files_asks_one_question(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person = Person(home)
    person.types(("Number [1]: ", "2"))
    person.until("Created a new vault")
    assert person.ends() == 0
    assert Cli(home, monkeypatch).ok("status", "--json").json["mode"] == "local"


def test_init_recommends_a_new_wallet_and_replaces_no_file(home: Path) -> None:
    (home.parent / "w.json").write_text("mine")
    person = Person(home, "--provider", str(home.parent / "stick"))
    person.types(("Number [1]: ", ""), ("Number [1]: ", ""), ("wallet.json]: ", "w.json"))
    person.until("w.json exists already.")
    person.types(("wallet.json]: ", "new.json"), *PASSPHRASE)
    person.types_words_back()
    person.until("keep a copy of this file elsewhere")
    assert person.ends() == 0
    assert (home.parent / "w.json").read_text() == "mine" and (home.parent / "new.json").exists()


@pytest.mark.parametrize("answers", range(3))
def test_ctrl_c_at_any_question_creates_nothing(home: Path, answers: int) -> None:
    person = Person(home)
    questions = [("Number [1]: ", ""), ("Provider: ", str(home.parent / "stick")), ("Number [1]: ", "4")]
    person.types(*questions[:answers])
    person.until(questions[answers][0])
    person.presses_ctrl_c()
    assert person.ends() == 130
    assert not home.exists() and not list((home.parent / "stick").iterdir())


def test_init_asks_only_on_a_terminal_and_only_for_missing_choices(bare: Cli, home: Path) -> None:
    refused = bare.fails(2, "init").err
    assert "choose an owner" in refused and "--new-wallet (recommended)" in refused
    person = Person(home, "--json")
    assert person.ends() == 2  # output is piped, so a program reads it
    person = Person(home, "--mode", "local")
    assert "Number" not in person.until("Created a new vault")
    assert person.ends() == 0


def test_wallet_opens_on_a_second_device_with_another_device_passphrase(home: Path) -> None:
    stick = str(home.parent / "stick")
    create_keystore(home.parent / "w.json", "of the wallet", bytes(31) + b"\x07", scrypt_n=2)
    person = Person(home, "--wallet", "w.json", "--provider", stick)
    asked = "Passphrase of the wallet w.json: "
    person.types(*PASSPHRASE, (asked, "of the walet"))  # a typo, which requires no other answer again
    person.until("the passphrase of keystore w.json is wrong. Try again.")
    person.types((asked, "of the wallet"), ("Create a new one? [Y/n]: ", "y"))
    person.types_words_back()
    assert person.ends() == 0


def test_init_refuses_unusable_service_before_passphrase_prompt(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PINATA_JWT", raising=False)
    person = Person(home)
    person.types(("Number [1]: ", ""), ("Provider: ", "pinata"), ("Number [1]: ", "4"))
    assert "Passphrase" not in person.until("PINATA_JWT is not set")
    assert person.ends() == 3 and not home.exists()


def test_init_interrupted_at_the_phrase_question_reports_the_vault_state(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(home, "--no-wallet", "--provider", str(home.parent / "stick"))
    person.types(*PASSPHRASE)
    person.until("Word ")
    person.presses_ctrl_c()
    person.until("The vault is created, on this device only until: ipfsmem --home")
    assert person.ends() == 130
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "open sesame 7")
    assert "Published" in Cli(home, monkeypatch).ok("sync").out
