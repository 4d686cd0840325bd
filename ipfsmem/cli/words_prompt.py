"""The recovery phrase on a terminal: shown without breaking a word, and typed in so that one typing error does not lose the
others.

No word is stored here. They are typed without echo, except a single one that is corrected.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.app import output_is_closed
from ipfsmem.cli.printing import clean, style
from ipfsmem.errors import FormatError, PassphraseError, StorageError, UsageError

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

#: Words per line when they are shown: with number and space at most 60 columns.
_TO_A_LINE = 4


def require_output(output: str) -> None:
    """Raise UsageError if standard output is closed, before anything is created. `output`: text that is shown only once."""
    if output_is_closed():
        raise UsageError(f"standard output is closed, so nobody would see {output}: nothing was created")


@contextlib.contextmanager
def words_unprinted(outcome: str) -> Iterator[None]:
    """Raise StorageError if the words printed inside could not be written whole; the message begins with `outcome`."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        from ipfsmem.device.atomic_files import reason

        raise StorageError(
            f"{outcome}, but its words could not be shown, as standard output cannot be written ({reason(error)}). "
            "Create a new one: ipfsmem key phrase"
        ) from None


def show_words(words: list[str], memory: Memory) -> None:
    """Show a new recovery phrase once and, on a terminal, ask for some of its words. `status` warns until they are confirmed."""
    if secret_input.can_ask():
        memory.members.note_words(confirmed=False)
    click.echo(style("Recovery phrase", bold=True) + ": write it down. It is shown only now.")
    click.echo("Anyone who has it can read and change this vault without a wallet.\n")
    click.echo(sheet(words))
    click.echo("")
    if not secret_input.can_ask():
        return
    for number in sorted(secrets.SystemRandom().sample(range(1, len(words) + 1), 3)):
        while click.prompt(f"Word {number}", err=True).strip().lower() != words[number - 1]:
            click.echo("This is a different word. Try again.", err=True)
    memory.members.note_words(confirmed=True)
    click.echo("Right. Keep them safe.\n", err=True)


def sheet(words: list[str]) -> str:
    """Return the words in rows, with their numbers, within the width of a terminal."""
    rows = (list(enumerate(words[at : at + _TO_A_LINE], at + 1)) for at in range(0, len(words), _TO_A_LINE))
    return "\n".join("  " + "".join(f"{n:>3} {word:<10}" for n, word in row).rstrip() for row in rows)


def ask_words() -> bytes:
    """Prompt for the 24 words, on any number of lines; an unknown word is named and typed again. Raises PassphraseError if the
    person gives up."""
    from ipfsmem.wallet.recovery_words import WORD_COUNT, from_words

    click.echo(
        f"Recovery phrase: {WORD_COUNT} words, on one or several lines. They are not shown while you type.",
        err=True,
    )
    words: list[str] = []
    while len(words) < WORD_COUNT:
        prompt = "Words" if not words else f"Words {len(words) + 1} to {WORD_COUNT}"
        entry = _hidden(prompt)
        if len(words) + len(entry) > WORD_COUNT:
            click.echo(f"That makes {len(words) + len(entry)} words. Enter this line again.", err=True)
            continue
        words += _mended(entry, len(words) + 1)
    while True:
        try:
            return from_words(" ".join(words))
        except FormatError:
            _mend_one(words)


def _hidden(prompt: str) -> list[str]:
    text: str = click.prompt(prompt, hide_input=True, err=True, default="", show_default=False)
    if not text.strip():
        raise PassphraseError("the recovery phrase: no input", hint="")
    # Words are shown with numbers, which may have been typed, too.
    return [word for word in text.lower().split() if not word.rstrip(".").isdigit()]


def _mended(words: list[str], start: int) -> list[str]:
    """Return the words with every unknown one typed again."""
    from ipfsmem.wallet.recovery_words import first_unknown_word

    corrected = list(words)
    while (slip := first_unknown_word(corrected, start)) is not None:
        click.echo(clean(f"{str(slip)[0].upper()}{str(slip)[1:]}."), err=True)
        corrected[slip.position - start] = _one(slip.position, slip.near)
    return corrected


def _one(number: int, near: str = "") -> str:
    word: str = click.prompt(f"Word {number}", err=True, default=near or None)
    return word.strip().lower()


def _mend_one(words: list[str]) -> None:
    """Ask for one word again after a wrong checksum: all words are in the list, but one is wrong, or two are swapped."""
    from ipfsmem.wallet.recovery_words import WORD_COUNT

    click.echo(
        "All words are in the list, but the checksum is wrong: a word is wrong, or two are swapped.",
        err=True,
    )
    answer = click.prompt(
        "Word number to retype, `show` to list them, or Enter to cancel",
        err=True,
        default="",
        show_default=False,
    ).strip()
    if not answer:
        raise PassphraseError("the recovery phrase has a wrong checksum, and nothing was restored", hint="")
    if answer.lower() == "show":
        click.echo(sheet(words), err=True)
    elif answer.isdigit() and 1 <= int(answer) <= WORD_COUNT:
        number = int(answer)
        words[number - 1 : number] = _mended([_one(number)], number)
    else:
        click.echo(f"A number from 1 to {WORD_COUNT}.", err=True)
