"""Check the user's choices for a new or restored vault, create its wallet, and explain failed steps.

The caller prompts and passes the answers. Nothing is created before its prerequisites are known to work.
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

#: The owner of a new vault: an existing wallet, a new wallet, or only this device and its recovery phrase.
Owner = Literal["wallet", "new wallet", "no wallet"]


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """The user's choices for a vault on this device."""

    mode: Mode
    #: Every owner that the user named.
    owners: tuple[Owner, ...]
    #: Whether a provider was named.
    provider: bool
    #: Whether to make a recovery phrase.
    recovery: bool
    #: Whether a published version to restore was named.
    root: bool

    def check(self) -> None:
        """Refuse contradictory choices. Raises UsageError, and ConfigError if a provider is missing."""
        if self.mode.published:
            self._check_published()
        elif self.provider:
            raise UsageError(
                f"a vault in mode {self.mode} is never published, so it accepts no provider",
                hint="Omit --provider. For a published vault: --mode encrypted-ipfs (in Python: provider=, mode=)",
            )
        elif self.owners:
            raise UsageError(f"a vault in mode {self.mode} has no wallet")
        if self.root and "wallet" not in self.owners:
            raise UsageError(
                "restoring a named version requires the wallet",
                hint="--wallet FILE or --mnemonic. With its recovery phrase: ipfsmem recover --root VERSION",
            )

    def _check_published(self) -> None:
        if len(self.owners) > 1:
            raise UsageError("choose an owner: an existing wallet, a new one, or none")
        if not self.owners:
            raise UsageError(
                "choose an owner for this vault",
                hint="--new-wallet (recommended), --wallet FILE, --mnemonic, or --no-wallet (in Python: owners=).",
            )
        if "no wallet" not in self.owners:
            if not self.provider:
                raise ConfigError(
                    "no provider is set, so it is unknown whether this wallet has a vault",
                    hint="Name the provider: --provider FOLDER (or pinata, kubo, ...), or set IPFSMEM_PROVIDER (in Python: provider=).",
                )
        elif not self.recovery:
            raise UsageError("without a wallet or a recovery phrase nothing could restore this vault")


def make_wallet(file: Path, passphrase: str, random: Callable[[int], bytes]) -> RawKeySigner:
    """Make a new wallet: write its keystore file, under a passphrase, and return its signer.

    Raises StorageError for a file that exists or cannot be written, PassphraseError.
    """
    from ipfsmem.wallet.signers import RawKeySigner, create_keystore

    key = random(32)
    signer = RawKeySigner(key)
    make_directory(file.parent)
    create_keystore(file, passphrase, key)
    return signer


@contextlib.contextmanager
def explaining_nothing_was_made() -> Iterator[None]:
    """Wrap a search and restore: a provider's error also says that nothing was made on this device."""
    try:
        yield
    except NoVaultError:
        raise
    except ProviderError as error:
        advice = (
            "Try again when the provider can be reached."
            if error.hint == ProviderUnavailable.hint
            else error.hint.replace("Sync again", "Try again")  # there is no vault to sync
        )
        error.hint = f"Nothing was created on this device. {advice}".rstrip()
        raise


def no_memory_error(error: NoVaultError) -> NoVaultError:
    """Complete the error for a wallet without a vault, when no new one was requested: a second vault is never
    made by accident.

    `error.doubt` says why there may be a vault nevertheless.
    """
    error.hint = (
        "Nothing was created on this device. Check the wallet, the vault name and the provider, or ask one that holds it; "
        "to create a new vault anyway: --create (in Python: Memory.create)."
    )
    return error


async def publish_new_memory(publish: Awaitable[SyncReport]) -> SyncReport:
    """Run the first sync of a new vault; its errors say that the vault exists on this device.

    Raises PublicError unchanged: the user has not yet agreed to publish in the clear.
    """
    try:
        return await publish
    except IpfsmemError as error:
        if isinstance(error, PublicError) and not isinstance(error, SecretsError):
            raise
        error.args = (f"the vault is created on this device, but not published yet: {error}",)
        if isinstance(error, ProviderUnavailable):
            error.hint = "When the provider can be reached: ipfsmem sync."
        elif not isinstance(error, SecretsError):  # its hint ends with that command
            error.hint = f"{error.hint} Then publish it with: ipfsmem sync.".lstrip()
        raise


def incomplete_restore_error(restored: SyncReport | None) -> DamagedError | None:
    """Return the error for a partial restore; None if complete, or nothing was restored."""
    if restored is None or not restored.damaged:
        return None
    heads = "1 published state" if restored.damaged == 1 else f"{restored.damaged:,} published states"
    return DamagedError(f"restored in part: {heads} cannot be read completely")


def restored_exit_code(report: SyncReport | None) -> int:
    """Return the exit code after the sync of a restore: 0, or that of unreachable or missing texts, since
    users rarely check again."""
    return report.exit_code if report is not None and (report.unread or report.not_fetched) else 0
