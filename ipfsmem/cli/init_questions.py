"""What `ipfsmem init` asks for on a terminal when it was not told: who may read the memory, where it is kept, whose it is.

Only questions and answers: nothing is made, opened or tried here, so that Ctrl-C at any of them leaves nothing behind. Never
used where nobody can answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from ipfsmem.cli.wallets import Wallet
from ipfsmem.mode import Mode

_READERS = (
    (Mode.ENCRYPTED_IPFS, "only you: encrypted, here and wherever it is kept (recommended)"),
    (Mode.LOCAL, "whoever reads this disk: plain Markdown files here, published nowhere"),
    (Mode.IPFS, "everyone: plain files, published in the clear, for good"),
)
_KEYS = (
    ("new", "a new wallet: a key file, made now, under a passphrase; no coins, no account (recommended)"),
    ("file", "a wallet that I have: its keystore file"),
    ("phrase", "a wallet that I have: its seed phrase"),
    ("words", "no wallet: 24 words on paper, which are made now"),
)


#: A folder is offered by itself; the others only read, or only find.
_NOT_OFFERED = {"directory", "gateway", "routing"}


@dataclass(frozen=True)
class Choice:
    """What is chosen so far; `None` and empty stand for what nobody has said."""

    mode: Mode | None
    provider: tuple[str, ...] | str
    new_wallet: str | None
    no_wallet: bool
    wallet: Wallet

    @property
    def keyed(self) -> bool:
        """Whether it is said whose the memory is."""
        return self.wallet.named or self.new_wallet is not None or self.no_wallet


def complete(chosen: Choice, keystore: Path) -> Choice:
    """Ask for what is missing. `keystore` is where a new wallet's file is put unless another place is named."""
    if chosen.mode is None and not chosen.keyed:
        chosen = replace(chosen, mode=Mode(_one_of("Who may read this memory?", _READERS)))
    if chosen.mode is not None and not chosen.mode.published:
        return chosen
    if not chosen.provider and not chosen.no_wallet:
        chosen = replace(chosen, provider=(_place(),))
    if not chosen.keyed:
        chosen = _key(chosen, keystore)
    return chosen


def _key(chosen: Choice, keystore: Path) -> Choice:
    answer = _one_of("What shows on another device that it is yours?", _KEYS)
    if answer == "new":
        while True:
            file = _text("File of the new wallet", str(keystore))
            if not Path(file).expanduser().exists():
                return replace(chosen, new_wallet=file)
            click.echo(f"{file} is there already. Name another one.", err=True)
    if answer == "file":
        while True:
            file = str(Path(_text("Keystore file")).expanduser())
            if Path(file).is_file():
                return replace(chosen, wallet=chosen.wallet._replace(keystore=file))
            click.echo(f"There is no file {file}.", err=True)
    if answer == "phrase":
        return replace(chosen, wallet=chosen.wallet._replace(mnemonic=True))
    return replace(chosen, no_wallet=True)


def _place() -> str:
    """A folder that is there, or a provider of a kind that is installed."""
    from importlib.metadata import entry_points

    kinds = sorted({point.name for point in entry_points(group="ipfsmem.providers")} - _NOT_OFFERED)
    click.echo(
        "Where is it kept, so that your other devices find it? A folder that they can reach (a stick, a network\n"
        f"share, a synced folder), or a service: {', '.join(kinds)}.",
        err=True,
    )
    while True:
        place = _text("Place")
        if place.partition(":")[0] in kinds:
            return place
        if Path(place).expanduser().is_dir():
            return str(Path(place).expanduser())
        click.echo(f"There is no folder {place}. Make it first, or name another place.", err=True)


def _one_of(question: str, answers: Sequence[tuple[str, str]]) -> str:
    click.echo(question, err=True)
    for number, (_, text) in enumerate(answers, 1):
        click.echo(f"  {number}  {text}", err=True)
    number = click.prompt("Number", type=click.IntRange(1, len(answers)), default=1, err=True)
    return answers[number - 1][0]


def _text(question: str, default: str | None = None) -> str:
    answer: str = click.prompt(question, default=default, err=True)
    return answer.strip()
