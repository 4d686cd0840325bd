"""Recovery phrase on a terminal: shown without broken words, and one wrong word requires no other word
again."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from ipfsmem.cli.words_prompt import sheet
from ipfsmem.wallet.recovery_words import first_unknown_word, to_words
from ipfsmem.wordlist import word_list
from tests.support.cli_lab import Cli


def test_recovery_phrase_is_shown_without_broken_words() -> None:
    """Lines have at most 60 columns."""
    longest = sorted(word_list(), key=len)[-24:]
    lines = sheet(longest).splitlines()
    assert len(lines) == 6 and max(map(len, lines)) <= 60
    assert [word for word in sheet(longest).split() if not word.isdigit()] == longest
    assert [int(word) for word in sheet(longest).split() if word.isdigit()] == list(range(1, 25))


def test_first_wrong_word_is_named() -> None:
    words = to_words(b"\x02" * 32)
    assert first_unknown_word(words) is None
    slip = first_unknown_word([*words[:6], "lettr", "xx"], start=3)
    assert slip is not None and (slip.position, slip.word, slip.near) == (9, "lettr", "letter")


class Terminal:
    """A command on its own terminal in its own process."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ipfsmem.cli", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "NO_COLOR": "1"},
            start_new_session=True,
        )
        os.close(theirs)
        self._seen = ""

    def until(self, what: str) -> str:
        """Return the output before these words."""
        give_up = time.monotonic() + 60
        while what not in self._seen:
            assert select.select([self._ours], [], [], max(0, give_up - time.monotonic()))[0], self._seen
            self._seen += os.read(self._ours, 4096).decode()
        before, _, self._seen = self._seen.partition(what)
        return before

    def answer(self, text: str) -> None:
        os.write(self._ours, (text + "\n").encode())

    def end(self) -> tuple[int, str]:
        """Return the exit code and the last output."""
        while True:
            try:
                more = os.read(self._ours, 4096)
            except OSError:
                break
            if not more:
                break
            self._seen += more.decode()
        code = self._process.wait(60)
        os.close(self._ours)
        return code, self._seen

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def words(bare: Cli, stick: Path) -> list[str]:
    said = bare.ok("init", "--unprotected-keys", "--no-wallet", "--json").json
    bare.ok("write", "tone", "--body", "direct")
    bare.ok("sync")
    found: list[str] = said["recovery_words"]
    return found


@pytest.fixture
def recover(stick: Path, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(
        "recover", "--unprotected-keys", "--provider", str(stick), "--home", str(tmp_path / "other")
    )
    yield terminal
    terminal.stop()


def test_one_wrong_word_is_asked_again_and_the_others_remain(words: list[str], recover: Terminal) -> None:
    slipped = [*words]
    slipped[6] += "x"
    recover.until("Words: ")
    recover.answer(" ".join(f"{n} {word}" for n, word in enumerate(slipped[:12], 1)))
    recover.until(f"Recovery word 7, {slipped[6]!r}, is not in the BIP-39 list")
    recover.until("Word 7")
    recover.until(": ")
    recover.answer("nonsense-again")
    recover.until("Recovery word 7, 'nonsense-again'")
    recover.until("Word 7")
    recover.until(": ")
    recover.answer(words[6])
    recover.until("Words 13 to 24: ")
    recover.answer(" ".join([*words[12:], "abandon"]))
    recover.until("That makes 25 words. Enter this line again.")
    recover.until("Words 13 to 24: ")
    recover.answer(" ".join(words[12:]))
    code, said = recover.end()
    assert code == 0 and "Restored: 1 memory" in said, said
    assert words[12] not in said, "what is typed is not shown"


def test_phrase_with_a_wrong_checksum_is_corrected_word_by_word(words: list[str], recover: Terminal) -> None:
    wrong = [*words]
    wrong[3] = next(
        word for word in word_list() if word != words[3] and not _fits([*words[:3], word, *words[4:]])
    )
    recover.until("Words: ")
    recover.answer(" ".join(wrong))
    recover.until("the checksum is wrong")
    recover.until("or Enter to cancel: ")
    recover.answer("25")
    recover.until("A number from 1 to 24.")
    recover.until("or Enter to cancel: ")
    recover.answer("show")
    recover.until(f"  4 {wrong[3]}")
    recover.until("or Enter to cancel: ")
    recover.answer("4")
    recover.until("Word 4: ")
    recover.answer(words[3])
    code, said = recover.end()
    assert code == 0 and "Restored: 1 memory" in said, said


def test_cancelled_phrase_prompt_creates_nothing(words: list[str], recover: Terminal, tmp_path: Path) -> None:
    recover.until("Words: ")
    recover.answer(" ".join([words[1], words[0], *words[2:]]))
    if not _fits([words[1], words[0], *words[2:]]):
        recover.until("or Enter to cancel: ")
        recover.answer("")
    code, said = recover.end()
    assert code in (22, 43) and "Traceback" not in said
    assert not (tmp_path / "other").exists() or not list((tmp_path / "other").iterdir())


def _fits(words: list[str]) -> bool:
    from ipfsmem.errors import FormatError
    from ipfsmem.wallet.recovery_words import from_words

    try:
        from_words(" ".join(words))
    except FormatError:
        return False
    return True


def test_status_warns_until_the_recovery_phrase_is_confirmed(bare: Cli, stick: Path, tmp_path: Path) -> None:
    home = tmp_path / "closed"
    options = ("--home", str(home))
    init = Terminal("init", "--unprotected-keys", "--no-wallet", "--provider", str(stick), *options)
    init.until("Word ")
    init.stop()
    said = bare.ok("status", *options).out
    assert "the recovery phrase is not confirmed" in said
    again = Terminal("key", "phrase", "--keep-old", *options)
    shown = again.until("Word ")
    listed = shown[shown.index("Recovery phrase") :].split()
    words = {int(number): word for number, word in pairwise(listed) if number.isdigit()}
    for _ in range(3):
        number = int(again.until(": ").strip())
        again.answer(words[number])
        if _ < 2:
            again.until("Word ")
    code, left = again.end()
    assert code == 0, left
    assert "not confirmed" not in bare.ok("status", *options).out
