"""The four storage modes, and their properties: encryption, publication, files on this disk, consent.

Code asks these properties and never compares a mode's text (`tests/unit/test_mode.py`). `device/codec.py` encrypts,
`published/layout.py` builds published versions.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from ipfsmem.errors import UsageError

#: The modes as written in Python and on the command line.
ModeName = Literal["none", "local", "ipfs", "encrypted-ipfs"]


class Mode(StrEnum):
    """One of the four modes; its text is the one in `ipfsmem.json`."""

    #: In the memory of this process only.
    NONE = "none"
    #: Unencrypted on this disk, never published.
    LOCAL = "local"
    #: Unencrypted on this disk and published unencrypted.
    IPFS = "ipfs"
    #: Encrypted on this disk and at providers.
    ENCRYPTED_IPFS = "encrypted-ipfs"

    @property
    def on_disk(self) -> bool:
        """Whether data remains when the process ends."""
        return self is not Mode.NONE

    @property
    def published(self) -> bool:
        """Whether the vault has members with keys, and can be published to providers."""
        return self in (Mode.IPFS, Mode.ENCRYPTED_IPFS)

    @property
    def only_here(self) -> bool:
        """Whether this disk has the only copy."""
        return self.on_disk and not self.published

    @property
    def sealed(self) -> bool:
        """Whether data is encrypted, on this disk and at providers, so that this device's keys need a passphrase."""
        return self is Mode.ENCRYPTED_IPFS

    @property
    def public(self) -> bool:
        """Whether everybody can read published data, permanently: publication needs consent, and a text that looks like a
        secret prevents it."""
        return self.published and not self.sealed

    @property
    def own_folder(self) -> bool:
        """Whether the vault has a folder of plain files from the start. An encrypted one has such a folder only on request,
        as whoever can read the disk can read it."""
        return self.on_disk and not self.sealed


def mode_named(name: str) -> Mode:
    """Return the mode of a name. Raises UsageError for an unknown name."""
    try:
        return Mode(name)
    except ValueError:
        raise UsageError(f"unknown mode {name!r}", hint="local, ipfs or encrypted-ipfs.") from None


def vault_mode(*, sealed: bool) -> Mode:
    """Return the mode of encrypted vaults, or of public ones."""
    return next(mode for mode in Mode if mode.published and mode.sealed == sealed)
