"""What kind of memory it is, as one value: what is sealed, what leaves this device, what may lie on its disk, and what a
person must have said before it does.

Whoever acts by the mode asks the mode, and compares no text of one (`tests/unit/test_mode.py`). It holds no key and does
nothing itself: `device/codec.py` seals, `published/layout.py` builds what is published.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from ipfsmem.errors import UsageError

#: The modes as people write them, in Python and on the command line.
ModeName = Literal["none", "local", "ipfs", "encrypted-ipfs"]


class Mode(StrEnum):
    """One of the four modes; its text is what stands in `ipfsmem.json`."""

    #: In this process only: gone with it.
    NONE = "none"
    #: Plain, on this disk, published nowhere.
    LOCAL = "local"
    #: Plain here and published in the clear.
    IPFS = "ipfs"
    #: Sealed here and wherever it is published.
    ENCRYPTED_IPFS = "encrypted-ipfs"

    @property
    def on_disk(self) -> bool:
        """Whether anything of it is kept when the process ends."""
        return self is not Mode.NONE

    @property
    def published(self) -> bool:
        """Whether it has a vault: members with keys, and providers that it is published through."""
        return self in (Mode.IPFS, Mode.ENCRYPTED_IPFS)

    @property
    def only_here(self) -> bool:
        """Whether this disk is all that has it: no other device learns of a change, and none can bring a text back."""
        return self.on_disk and not self.published

    @property
    def sealed(self) -> bool:
        """Whether texts and state are sealed, here and where it is published; so this device's keys want a passphrase."""
        return self is Mode.ENCRYPTED_IPFS

    @property
    def public(self) -> bool:
        """Whether what is published can be read by everybody, for good; so somebody has to agree to that first, and what
        looks like a secret stops it."""
        return self.published and not self.sealed

    @property
    def own_folder(self) -> bool:
        """Whether a folder of plain files lies beside it from the start. A sealed one has such a folder only where somebody
        chose one, as whoever reads that disk reads it."""
        return self.on_disk and not self.sealed


def mode_named(name: str) -> Mode:
    """The mode that somebody named. Raises UsageError when there is none of that name."""
    try:
        return Mode(name)
    except ValueError:
        raise UsageError(f"unknown mode {name!r}", hint="local, ipfs or encrypted-ipfs.") from None


def vault_mode(*, sealed: bool) -> Mode:
    """The mode whose vaults are sealed, or the one whose vaults are plain."""
    return next(mode for mode in Mode if mode.published and mode.sealed == sealed)
