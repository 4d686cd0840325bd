"""Wallets on the command line: the options that name one, and its signer.

Only an encrypted keystore file needs no confirmation; a seed phrase is typed or read from a descriptor, a raw key needs an
explicit flag. Nothing is stored here, and no argument is secret.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.options import WholeNumber
from ipfsmem.errors import FormatError, PassphraseError, UsageError
from ipfsmem.wallet.message import MAX_KEY_NUMBER

if TYPE_CHECKING:
    from ipfsmem.cli.context import CommandContext
    from ipfsmem.memory import Memory
    from ipfsmem.vault.owner import Unlock
    from ipfsmem.wallet.message import WalletSigner
    from ipfsmem.wallet.root_keys import RootKeys


#: Attempts at the passphrase of a keystore file before the last one.
_TRIES = 2


class Wallet(NamedTuple):
    """The wallet options."""

    keystore: str | None
    passphrase_fd: int | None
    mnemonic: bool
    mnemonic_fd: int | None
    account_path: str
    raw_key_fd: int | None
    raw_keys_known: bool
    vault: str | None
    key_number: int | None
    signature_passphrase: bool
    signature_passphrase_fd: int | None

    @property
    def named(self) -> bool:
        """Tell whether a wallet was named."""
        return bool(
            self.keystore or self.mnemonic or self.mnemonic_fd is not None or self.raw_key_fd is not None
        )

    def unlock(self, device_passphrase: str | None = None) -> Unlock:
        """Return the wallet, ready to sign. The device's passphrase may also be the keystore's.

        Raises UsageError unless exactly one wallet is named, PassphraseError, FormatError, StorageError.
        """
        ways = [self.keystore, self.mnemonic or self.mnemonic_fd is not None, self.raw_key_fd is not None]
        if sum(map(bool, ways)) != 1:
            raise UsageError("give exactly one of --wallet FILE, --mnemonic and --raw-key-fd N")
        return self.unlock_with(self._signer(device_passphrase))

    def unlock_with(self, signer: WalletSigner, signature_passphrase: str | None = None) -> Unlock:
        """Return the same with an existing signer, and the signature passphrase if it was entered already."""
        from ipfsmem.vault.owner import Unlock

        signature_passphrase = signature_passphrase or self.given_signature_passphrase()
        return Unlock(signer, self.vault, self.key_number, signature_passphrase)

    def _signer(self, device_passphrase: str | None) -> WalletSigner:
        from ipfsmem.wallet.signers import KeystoreSigner, MnemonicSigner, RawKeySigner

        if self.keystore:
            own = secret_input.from_fd_or_environment(self.passphrase_fd, "IPFSMEM_WALLET_PASSPHRASE")
            typed = self.keystore_passphrase(device_passphrase)
            for _ in range(0 if own or not secret_input.can_ask() else _TRIES):
                try:
                    return KeystoreSigner(self.keystore, typed)
                except PassphraseError as error:
                    # After a typing error the earlier input is kept; a person who chose another passphrase for this device is
                    # asked for the wallet's own.
                    if typed != device_passphrase:
                        click.echo(f"{error}. Try again.", err=True)
                typed = self.keystore_passphrase(None)
            return KeystoreSigner(self.keystore, typed)
        if self.raw_key_fd is not None:
            if not self.raw_keys_known:
                raise UsageError(
                    "a raw private key is an unprotected wallet",
                    hint="Add --i-know-raw-keys to --raw-key-fd, or use a keystore file: --wallet.",
                )
            return RawKeySigner(read_raw_key(secret_input.from_descriptor(self.raw_key_fd)))
        words = secret_input.from_fd_or_environment(self.mnemonic_fd, "IPFSMEM_MNEMONIC") or secret_input.ask(
            "seed phrase", otherwise=secret_input.other_ways("IPFSMEM_MNEMONIC", "--mnemonic-fd")
        )
        return MnemonicSigner(words, self.account_path)

    def keystore_passphrase(self, device_passphrase: str | None, *, new: bool = False) -> str:
        """Return the passphrase of the keystore file."""
        passphrase = (
            secret_input.from_fd_or_environment(self.passphrase_fd, "IPFSMEM_WALLET_PASSPHRASE")
            or device_passphrase
        )
        if passphrase is not None:
            return passphrase
        prompt = "passphrase for the new wallet" if new else f"passphrase of the wallet {self.keystore}"
        return secret_input.ask(
            prompt,
            twice=new,
            otherwise=secret_input.other_ways("IPFSMEM_WALLET_PASSPHRASE", "--wallet-passphrase-fd"),
        )

    def given_signature_passphrase(self) -> str | None:
        """Return the passphrase in the text that the wallet signs; None unless requested."""
        if self.signature_passphrase_fd is None and not self.signature_passphrase:
            return None
        passphrase = secret_input.from_fd_or_environment(
            self.signature_passphrase_fd, "IPFSMEM_SIGNATURE_PASSPHRASE"
        )
        return passphrase or secret_input.ask(
            "signature passphrase",
            otherwise=secret_input.other_ways("IPFSMEM_SIGNATURE_PASSPHRASE", "--signature-passphrase-fd"),
        )


def read_raw_key(text: str) -> bytes:
    """Return a private key from hex. The error does not repeat it."""
    digits = text.strip().removeprefix("0x")
    try:
        key = bytes.fromhex(digits)
    except ValueError:
        key = b""
    if len(key) != 32 or len(digits) != 64:
        raise FormatError("this is not a private key: 64 hex digits expected")
    return key


def wallet_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a wallet, passed on as one `wallet`."""

    @functools.wraps(function)
    def run(*args: Any, **values: Any) -> None:
        wallet = Wallet(
            values.pop("wallet"),
            values.pop("wallet_passphrase_fd"),
            values.pop("mnemonic"),
            values.pop("mnemonic_fd"),
            values.pop("account_path"),
            values.pop("raw_key_fd"),
            values.pop("i_know_raw_keys"),
            values.pop("wallet_vault"),
            values.pop("key_number"),
            values.pop("signature_passphrase"),
            values.pop("signature_passphrase_fd"),
        )
        function(*args, wallet=wallet, **values)

    return _hidden(run, _OPTIONS)


def _hidden(function: Callable[..., None], options: list[_Option]) -> Callable[..., None]:
    """Add options that only `ipfsmem help wallets` shows; `cli_command` mentions them in the command's help."""
    for option in reversed(options):
        function = option(function)
        function.__click_params__[-1].hidden = True  # type: ignore[attr-defined]
    function.takes_wallet = True  # type: ignore[attr-defined]
    return function


def shown_options() -> list[tuple[str, str]]:
    """Return the options that name a wallet or a recovery phrase, each with its help."""

    def named(**_: object) -> None:
        pass

    for option in reversed([*_OPTIONS, *_PHRASE_OPTIONS]):
        option(named)
    parameters: list[click.Option] = named.__click_params__  # type: ignore[attr-defined]
    context = click.Context(click.Command("wallets"))
    return [record for one in reversed(parameters) if (record := one.get_help_record(context))]


def default_keystore(home: Path) -> Path:
    """Return the default path of a new wallet's keystore file."""
    return home / "wallet.json"


_NOBODY = "this requires the wallet or the recovery phrase"
_WHO = "--wallet FILE, --mnemonic, or --words."
_Option = Callable[[Callable[..., None]], Callable[..., None]]
_OPTIONS: list[_Option] = [
    click.option(
        "--wallet", metavar="FILE", help="The wallet: an encrypted keystore file (Web3 secret storage)."
    ),
    click.option(
        "--wallet-passphrase-fd",
        type=WholeNumber(0),
        metavar="N",
        help="Read its passphrase from file descriptor N (or IPFSMEM_WALLET_PASSPHRASE; else the device's own).",
    ),
    click.option(
        "--mnemonic", is_flag=True, help="The wallet: a seed phrase, typed in (or IPFSMEM_MNEMONIC)."
    ),
    click.option(
        "--mnemonic-fd", type=WholeNumber(0), metavar="N", help="Read the seed phrase from file descriptor N."
    ),
    click.option(
        "--account-path",
        default="m/44'/60'/0'/0/0",
        metavar="PATH",
        show_default=True,
        help="Account of the seed phrase.",
    ),
    click.option(
        "--raw-key-fd",
        type=WholeNumber(0),
        metavar="N",
        help="The wallet: read a private key in hex from file descriptor N.",
    ),
    click.option("--i-know-raw-keys", is_flag=True, help="Required with --raw-key-fd."),
    click.option(
        "--wallet-vault",
        metavar="NAME",
        help="Name of the vault in the wallet (default: its own; for a new one `default` if it is the first on this "
        "device, else the name in --vault).",
    ),
    click.option(
        "--key-number",
        type=WholeNumber(1, MAX_KEY_NUMBER),
        metavar="N",
        help="Key number of the vault (default: its own, else 1).",
    ),
    click.option(
        "--signature-passphrase",
        is_flag=True,
        help="The vault's keys also need a passphrase, typed in (or IPFSMEM_SIGNATURE_PASSPHRASE).",
    ),
    click.option(
        "--signature-passphrase-fd",
        type=WholeNumber(0),
        metavar="N",
        help="Read that passphrase from file descriptor N.",
    ),
]


_PHRASE_OPTIONS: list[_Option] = [
    click.option("--words", is_flag=True, help="Use the recovery phrase instead of a wallet, typed in."),
    click.option(
        "--words-fd",
        type=WholeNumber(0),
        metavar="N",
        help="Read the recovery phrase from file descriptor N.",
    ),
]


def recovery_root(words_fd: int | None) -> RootKeys:
    """Return the root keys of a recovery phrase: from a descriptor, typed, or from standard input."""
    import sys

    from ipfsmem.wallet.recovery_words import from_words
    from ipfsmem.wallet.root_keys import RootKeys

    if words_fd is not None:
        return RootKeys.from_recovery(from_words(secret_input.from_descriptor(words_fd)))
    if secret_input.can_ask():
        from ipfsmem.cli.words_prompt import ask_words

        return RootKeys.from_recovery(ask_words())
    return RootKeys.from_recovery(from_words(sys.stdin.read(secret_input.MAX_SECRET)))


def root_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a wallet or a recovery phrase, for an owner's work. Passed on as `wallet`, `words` and `words_fd`."""
    return wallet_options(_hidden(function, _PHRASE_OPTIONS))


@contextlib.contextmanager
def as_owner(context: CommandContext, values: dict[str, Any]) -> Iterator[Memory]:
    """Yield the memory, open with its owner's keys: those of `root_options`, else those stored on this device.

    `values` also has `provider`. Raises UsageError if none is named and none is stored.
    """
    from ipfsmem.vault.owner import keeps_root

    names_wallet = values["wallet"].named or values["words"] or values["words_fd"] is not None
    who = None
    if names_wallet:
        who = owner(
            values["wallet"], values["words"], values["words_fd"], context.passphrase_from_fd_or_environment()
        )
    with contextlib.ExitStack() as open_memories:
        memory = open_memories.enter_context(context.memory(provider=values["provider"], unlock=who))
        if memory.replica.config.vault is None:
            raise UsageError(f"a vault in mode {memory.mode} has no members and no keys")
        if not names_wallet:
            if not keeps_root(memory.replica):
                raise UsageError(_NOBODY, hint=_WHO)
            if memory.replica.lock_watch is not None:
                # Keys cached by `ipfsmem unlock` do not open a root: that needs the passphrase.
                open_memories.close()
                memory = open_memories.enter_context(
                    context.memory(provider=values["provider"], passphrase_itself=True)
                )
            memory.unlock()
        yield memory


def owner(
    wallet: Wallet, words: bool, words_fd: int | None, device_passphrase: str | None
) -> Unlock | RootKeys:
    """Return the owner named by `root_options`. Raises UsageError for none or two."""
    if (words or words_fd is not None) and wallet.named:
        raise UsageError("a wallet and the recovery phrase exclude each other")
    if words or words_fd is not None:
        return recovery_root(words_fd)
    if not wallet.named:
        raise UsageError(_NOBODY, hint=_WHO)
    return wallet.unlock(device_passphrase)
