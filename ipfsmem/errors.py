"""The exceptions of ipfsmem: one tree, each class with an exit code and a hint for the next step.

The class docstring is the heading in docs/reference/errors.md, `hint` the advice under the message. Code raises the most specific
class with a message that says what happened and to what. Nothing here imports anything of ours.

    IpfsmemError
     ├ UsageError                  the call is wrong
     │  └ ClosedError
     ├ ConfigError                 settings, home or mode are wrong
     │  └ OtherKindError
     ├ NotFoundError               no such memory, vault or root
     ├ ConcurrencyError            locked by another process, or changed since it was read
     │  ├ LockedError
     │  └ ChangedError
     ├ IncompleteError             done, or to be done, with a part only
     ├ DeclinedError               a person answered a question with no
     ├ FormatError                 bytes that are not what they should be
     │  ├ LimitError
     │  ├ KeyNameError
     │  ├ BlockError
     │  └ DamagedError
     ├ SealError                   keys, signatures, sealed objects
     │  ├ OpenError
     │  ├ PassphraseError
     │  ├ SignerError
     │  ├ WrongWalletError
     │  ├ SignatureError
     │  └ MembershipError
     │     └ NotPublishedError
     ├ StorageError                this device's disk
     ├ PublicError                 what would become public
     │  └ SecretsError
     └ ProviderError               a provider, gateway or peer
        ├ ProviderUnavailable
        │  └ UnreadError
        ├ ProviderRefused
        ├ NoVaultError
        └ MissingError
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class IpfsmemError(Exception):
    """Unclassified error"""

    exit_code = 1
    hint = ""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        if hint is not None:
            self.hint = hint

    @property
    def kind(self) -> str:
        """Return the name of its class in the tree above; a subclass of another module has the name of its base class there."""
        return next(one.__name__ for one in type(self).__mro__ if one.__module__ == __name__)

    def diagnostics(self) -> str:
        """Return the message and, on a line of its own, the hint."""
        return f"{self}\n{self.hint}" if self.hint else str(self)


class UsageError(IpfsmemError):
    """The call is invalid"""

    exit_code = 2


class ClosedError(UsageError):
    """The vault is closed"""

    hint = "Open it again (in Python: Memory.load)."


class ConfigError(IpfsmemError):
    """The settings, home directory or mode are invalid"""

    exit_code = 3


class OtherKindError(ConfigError):
    """The vault is public where an encrypted one was expected, or vice versa"""


class NotFoundError(IpfsmemError):
    """No such memory, vault, published version or file"""

    exit_code = 4


class ConcurrencyError(IpfsmemError):
    """A concurrent operation came first"""

    exit_code = 5


class LockedError(ConcurrencyError):
    """Another process holds the lock of the vault"""

    hint = "Wait for the other ipfsmem process to finish, or stop it; its process id is in the message."


class ChangedError(ConcurrencyError):
    """The memory changed since it was read"""

    exit_code = 6
    hint = "Read it again, then write with its new hash."


class IncompleteError(IpfsmemError):
    """The operation is incomplete"""

    exit_code = 7
    hint = "To accept this: --partial (in Python: partial=True), with --overwrite to replace a written file. Or fix it first: ipfsmem conflicts, ipfsmem sync."


class DeclinedError(IpfsmemError):
    """Declined at a prompt; nothing was changed"""

    exit_code = 8


class FormatError(IpfsmemError):
    """The data is invalid"""

    exit_code = 10


class LimitError(FormatError):
    """Larger than the format allows"""

    exit_code = 11


class KeyNameError(FormatError):
    """Not a valid memory key"""

    exit_code = 12
    hint = "A key is 1 to 64 characters of a-z, 0-9, _ and -, starting with a letter or digit, for instance feedback_tone."


class BlockError(FormatError):
    """A block does not match its hash"""

    exit_code = 13
    hint = "The provider or the disk changed the data, which was not used. Fetch it from another provider."


class DamagedError(FormatError):
    """A part of a published version cannot be read"""

    exit_code = 14
    hint = "Nothing here changed. Run on a device that has everything: ipfsmem sync. To restore the readable part: ipfsmem vault repair."


class SealError(IpfsmemError):
    """Cryptographic error"""

    exit_code = 20


class OpenError(SealError):
    """Encrypted data could not be opened"""

    exit_code = 21

    def __init__(
        self, message: str = "something encrypted could not be opened", *, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)


class PassphraseError(SealError):
    """Wrong or missing passphrase"""

    exit_code = 22
    hint = "Enter it at the prompt, or pass it in IPFSMEM_PASSPHRASE or with --passphrase-fd (in Python: passphrase=)."


class SignerError(SealError):
    """This signer cannot be used to derive keys"""

    exit_code = 23
    hint = "Use a wallet with deterministic signatures, or create the vault without a wallet and keep its recovery phrase."


class WrongWalletError(SealError):
    """This wallet does not own this vault"""

    exit_code = 24
    hint = "Use the wallet that created the vault, or its recovery phrase: on a device with the vault, ipfsmem member admit --words; on a new one, ipfsmem recover."


class SignatureError(SealError):
    """A signature does not verify"""

    exit_code = 25


class MembershipError(SealError):
    """Not a member, revoked, or not allowed to do this"""

    exit_code = 26


class NotPublishedError(MembershipError):
    """The versions of others were merged, but this device could not publish"""

    exit_code = 27
    hint = "The notice has the reason and the next step, usually: ipfsmem member admit."


class StorageError(IpfsmemError):
    """The disk of this device failed"""

    exit_code = 30
    hint = "Everything acknowledged is on disk. Free space or check the permissions, then try again."


class PublicError(IpfsmemError):
    """Permanent publication in public is not confirmed yet"""

    exit_code = 31
    hint = "Confirm once with: ipfsmem sync --yes-public (in Python: sync(public_ok=True)). Or use mode encrypted-ipfs."


class SecretsError(PublicError):
    """A suspected secret would become public"""

    exit_code = 32


class ProviderError(IpfsmemError):
    """A provider, gateway or peer failed"""

    exit_code = 40
    #: Whether a retry of the same call cannot succeed.
    permanent = True
    #: Blocks by CID that were read before it failed (ipfsmem.provider.contract, `get_blocks`).
    blocks: Mapping[Any, bytes] = {}
    #: Pins that were read before it failed (ipfsmem.provider.contract, `pins`).
    pins: Sequence[Any] = ()
    #: Names of objects that a bucket listed before it failed.
    listed: Sequence[str] = ()
    #: Seconds of the pause that the provider requested; None if it requested none.
    again_after: float | None = None

    def in_a_line(self) -> str:
        """Return the message, with the hint if a retry cannot succeed, as one line of a report about several providers."""
        return f"{self}. {self.hint}" if self.permanent and self.hint else str(self)


class ProviderUnavailable(ProviderError):
    """The provider cannot be reached now"""

    exit_code = 41
    permanent = False
    hint = "Your memories are safe on this device; the next sync publishes them."


class UnreadError(ProviderUnavailable):
    """Data at a provider could not be read now, so newer texts may be missing"""

    exit_code = 45
    hint = "The readable part is here. When the provider answers again, run: ipfsmem sync."


class ProviderRefused(ProviderError):
    """The provider refused"""

    exit_code = 42


class NoVaultError(ProviderError):
    """No vault for this wallet was found"""

    exit_code = 43
    hint = "Check the wallet, the vault name and the provider. Create a new vault with: ipfsmem init."

    def __init__(self, message: str, *, hint: str | None = None, doubt: str = "") -> None:
        """`doubt`: why a vault may exist all the same; "" if the provider was read completely."""
        super().__init__(message, hint=hint)
        self.doubt = doubt


class MissingError(ProviderError):
    """Live data is missing at a provider"""

    exit_code = 44
    hint = "Sync a device that has it. List the missing blocks: ipfsmem provider check. Upload them again: ipfsmem provider check --repair."

    def __init__(self, message: str, *, missing: list[bytes] | None = None, hint: str | None = None) -> None:
        """`missing`: SHA-256 digests of the missing blocks that are known."""
        super().__init__(message, hint=hint)
        self.missing = missing or []
