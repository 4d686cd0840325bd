"""Beginning a memory: which choices fit together, a new wallet for it, whether the wallet's memory is brought back or a new one is
made, and what is said when a part of that failed.

Whoever calls this asks, shows and agrees, and passes in what came of that; here is only decided and raised. Nothing is
made before what it needs is known to work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from ipfsmem.device.atomic_files import make_directory
from ipfsmem.errors import (
    ConfigError,
    DamagedError,
    IpfsmemError,
    NoVaultError,
    ProviderError,
    ProviderUnavailable,
    PublicError,
    SecretsError,
    UsageError,
)
from ipfsmem.mode import Mode

if TYPE_CHECKING:
    from ipfsmem.sync.report import SyncReport
    from ipfsmem.wallet.signers import RawKeySigner

#: Whose a memory is to be: a wallet's that there is, a new wallet's, or nobody's but this device's and its words'.
Owner = Literal["wallet", "new wallet", "no wallet"]


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody chose for a memory that is to be on this device."""

    mode: Mode
    #: Every way in which it was said whose it is.
    owners: tuple[Owner, ...]
    #: Whether it is said where it is kept.
    provider: bool
    #: Whether recovery words are to be made.
    recovery: bool
    #: Whether a published version of it is named, to be brought back.
    root: bool

    def check(self) -> None:
        """Refuse choices that do not fit together. Raises UsageError, and ConfigError where a provider is missing."""
        if self.mode.published:
            self._check_published()
        elif self.provider:
            raise UsageError(
                f"a memory in mode {self.mode} is not published, so it takes no provider",
                hint="Leave --provider away. One that is published: --mode encrypted-ipfs (in Python: provider=, mode=)",
            )
        elif self.owners:
            raise UsageError(f"a {self.mode} memory has no wallet")
        if self.root and "wallet" not in self.owners:
            raise UsageError(
                "a version that is named brings a wallet's memory back: name the wallet",
                hint="--wallet FILE or --mnemonic. With its recovery words: ipfsmem recover --root VERSION",
            )

    def _check_published(self) -> None:
        if len(self.owners) > 1:
            raise UsageError("choose one: a wallet that there is, a new one, or none")
        if not self.owners:
            raise UsageError(
                "choose a key for this memory",
                hint="--new-wallet (recommended), --wallet FILE, --mnemonic, or --no-wallet (in Python: owners=).",
            )
        if "no wallet" not in self.owners:
            if not self.provider:
                raise ConfigError(
                    "no provider is set, so nobody can say whether this wallet has a memory already",
                    hint="Say where it is kept: --provider FOLDER (or pinata, kubo, ...), or set IPFSMEM_PROVIDER (in Python: provider=).",
                )
        elif not self.recovery:
            raise UsageError(
                "without a wallet and without recovery words nothing could ever bring this memory back"
            )


def make_wallet(file: Path, passphrase: str, random: Callable[[int], bytes]) -> RawKeySigner:
    """A new wallet: its keystore file, under a passphrase, and what signs with it.

    Raises StorageError for a file that is there or cannot be made, PassphraseError.
    """
    from ipfsmem.wallet.signers import RawKeySigner, create_keystore

    key = random(32)
    signer = RawKeySigner(key)
    make_directory(file.parent)
    create_keystore(file, passphrase, key)
    return signer


@contextlib.contextmanager
def saying_nothing_was_made() -> Iterator[None]:
    """A block in which a memory is looked for and brought back: a provider's error in it also says that nothing was made on
    this device."""
    try:
        yield
    except NoVaultError:
        raise
    except ProviderError as error:
        advice = (
            "Try again when the provider can be reached."
            if error.hint == ProviderUnavailable.hint
            else error.hint
        )
        error.hint = f"Nothing was made on this device. {advice}".rstrip()
        raise


def no_memory_error(error: NoVaultError) -> NoVaultError:
    """The error where no memory of the wallet was found and nobody asked for a new one: a second memory of one wallet is never made
    by mistake. `error.doubt` says why there may be one all the same."""
    error.hint = (
        "Nothing was made on this device. Check the wallet, the vault name and the provider, or ask one that holds it; "
        "to make a new memory all the same: --create (in Python: Memory.create)."
    )
    return error


async def publish_new_memory(publish: Awaitable[SyncReport]) -> SyncReport:
    """The first sync of a memory that was made just now: what keeps it from being published says that the memory is here.

    Raises PublicError as it is: then nobody has agreed yet that it becomes public.
    """
    try:
        return await publish
    except IpfsmemError as error:
        if isinstance(error, PublicError) and not isinstance(error, SecretsError):
            raise
        error.args = (f"the memory is made on this device, but not published yet: {error}",)
        if isinstance(error, ProviderUnavailable):
            error.hint = "When the provider can be reached: ipfsmem sync."
        elif not isinstance(error, SecretsError):  # its hint ends with that command
            error.hint = f"{error.hint} Then publish it with: ipfsmem sync.".lstrip()
        raise


def incomplete_restore_error(restored: SyncReport | None) -> DamagedError | None:
    """What to raise in the end when a memory came back in part; None when it is whole, or was not brought back."""
    if restored is None or not restored.damaged:
        return None
    heads = "1 published state" if restored.damaged == 1 else f"{restored.damaged:,} published states"
    return DamagedError(f"a part is back: {heads} cannot be read whole")


def restored_exit_code(report: SyncReport | None) -> int:
    """What a command ends with after the sync that brought a memory back: 0, or the code of what was out of reach or of texts
    that could not be had, for nobody looks a second time by themselves."""
    return report.exit_code if report is not None and (report.unread or report.not_fetched) else 0
