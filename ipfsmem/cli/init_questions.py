"""The options of `ipfsmem init`, and its questions on a terminal for missing ones.

Only questions and answers: nothing is created, opened or tested here, so that Ctrl-C at any of them leaves nothing behind.
Never used without a terminal.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import click

from ipfsmem.cli.new_memory import MemoryRequest
from ipfsmem.cli.printing import clean
from ipfsmem.cli.storage_offers import Computer, StorageOffer, storage_offers
from ipfsmem.config import expanded
from ipfsmem.mode import Mode
from ipfsmem.vault.beginning import Choices, Owner

T = TypeVar("T")

_READERS = (
    (Mode.ENCRYPTED_IPFS, "only you: encrypted, here and at the provider (recommended)"),
    (Mode.LOCAL, "whoever can read this disk: plain Markdown files, never published"),
    (Mode.IPFS, "everyone: plain files, published unencrypted, permanently"),
)
_KEYS = (
    ("new", "a new wallet: a key file with a passphrase; no coins, no account (recommended)"),
    ("file", "my wallet: its keystore file"),
    ("phrase", "my wallet: its seed phrase"),
    ("words", "no wallet: only a new recovery phrase of 24 words, on paper"),
)

#: A name of a bucket, or of a repository, perhaps with groups.
_ANSWER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
#: Kinds of providers that are not offered: a folder is offered separately, the others only read, or only find.
_NOT_OFFERED = {"directory", "gateway", "routing"}


@dataclass(frozen=True, kw_only=True)
class InitRequest(MemoryRequest):
    """The options of `init`, and the answers to these questions."""

    #: The file of a wallet to create; empty for the default path, None for no new wallet.
    new_wallet: str | None
    no_wallet: bool
    no_recovery: bool
    create: bool
    #: The folder to create for its blocks, in one that exists.
    new_folder: Path | None = None

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Return every named way to own the vault."""
        ways: dict[Owner, bool] = {
            "wallet": self.wallet.named,
            "new wallet": self.new_wallet is not None,
            "no wallet": self.no_wallet,
        }
        return tuple(owner for owner, chosen in ways.items() if chosen)

    def check(self) -> None:
        """Raise UsageError for incompatible choices, ConfigError if a provider is missing."""
        Choices(
            mode=self.kind,
            owners=self.owners,
            provider=bool(self.where),
            recovery=not self.no_recovery,
            root=self.root is not None,
        ).check()


def ask_for_the_rest(request: InitRequest, keystore: Path) -> InitRequest:
    """Ask for missing options. `keystore`: default path of a new wallet's file."""
    if request.mode is None and not request.owners:
        request = replace(request, mode=_one_of("Who may read this vault?", _READERS))
    if not request.kind.published:
        return request
    if not request.where and not request.no_wallet:
        place, new_folder = _place(_offers())
        request = replace(request, provider=(place,), new_folder=new_folder)
    return request if request.owners else _ask_for_owner(request, keystore)


def _ask_for_owner(request: InitRequest, keystore: Path) -> InitRequest:
    answer = _one_of("How do your other devices open this vault?", _KEYS)
    if answer == "new":
        while True:
            file = _text("File of the new wallet", str(keystore))
            if not expanded(file).exists():
                return replace(request, new_wallet=file)
            click.echo(f"{file} exists already. Name another one.", err=True)
    if answer == "file":
        while True:
            file = str(expanded(_text("Keystore file")))
            if Path(file).is_file():
                return replace(request, wallet=request.wallet._replace(keystore=file))
            click.echo(f"There is no file {file}.", err=True)
    if answer == "phrase":
        return replace(request, wallet=request.wallet._replace(mnemonic=True))
    return replace(request, no_wallet=True)


def _offers() -> list[StorageOffer]:
    """Return the storage that this computer offers; empty without a home or current folder."""
    try:
        home, folder = Path.home(), Path.cwd()
    except (OSError, RuntimeError):
        return []
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8", "replace")
    except OSError:
        mounts = ""
    return storage_offers(
        Computer(
            home,
            folder,
            os.environ,
            mounts,
            lambda name: shutil.which(name) is not None,
            lambda name: find_spec(name) is not None,
        )
    )


def _place(offers: Sequence[StorageOffer]) -> tuple[str, Path | None]:
    """Ask for one of the offers, an existing folder, or a provider of an installed kind. Return its spec, and the folder to
    create for it."""
    from importlib.metadata import entry_points

    kinds = sorted({point.name for point in entry_points(group="ipfsmem.providers")} - _NOT_OFFERED)
    click.echo("Where should the vault be stored?", err=True)
    for number, offer in enumerate(offers, 1):
        click.echo(f"  {number}  {clean(offer.text)}", err=True)
    click.echo(
        f"{'Or a' if offers else 'A'} folder that your other devices can reach (a USB stick, a network share, a synced\n"
        f"folder), or a service: {', '.join(kinds)}.",
        err=True,
    )
    while True:
        place = _text("Provider")
        if place.isdecimal() and 0 < int(place) <= len(offers):
            return _accepted(offers[int(place) - 1])
        if place.partition(":")[0] in kinds:
            return place, None
        if expanded(place).is_dir():
            return str(expanded(place)), None
        click.echo(f"There is no folder {place}. Create it first, or name another one.", err=True)


def _accepted(offer: StorageOffer) -> tuple[str, Path | None]:
    """Return the spec of an offer, and the folder to create for it."""
    if offer.is_folder:
        return offer.spec, Path(offer.spec)
    while True:
        answer = _text(offer.asks).strip("/").removesuffix(".git")
        if _ANSWER.fullmatch(answer) and ".." not in answer:
            return offer.spec.format(answer), None
        click.echo(
            f"{clean(answer)} cannot be a name here. Use letters, digits, - and /.",
            err=True,
        )


def _one_of(question: str, answers: Sequence[tuple[T, str]]) -> T:
    click.echo(question, err=True)
    for number, (_, text) in enumerate(answers, 1):
        click.echo(f"  {number}  {text}", err=True)
    chosen: int = click.prompt("Number", type=click.IntRange(1, len(answers)), default=1, err=True)
    return answers[chosen - 1][0]


def _text(question: str, default: str | None = None) -> str:
    answer: str = click.prompt(question, default=default, err=True)
    return answer.strip()
