"""The two places where halves of unlocked keys are held, as the system shows them."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

from ipfsmem.device.kernel_keyring import has_kernel_keyring
from ipfsmem.device.unlocked import _name

PASSPHRASE = "correct horse battery"
needs_kernel_keyring = pytest.mark.skipif(
    not has_kernel_keyring() and not os.environ.get("IPFSMEM_REQUIRE_COUNTERPARTS"),
    reason="no keyring of the kernel here (not Linux, or a container forbids it)",
)


def runtime_files() -> list[Path]:
    """Return the files in our part of the runtime directory."""
    return sorted((Path(os.environ["XDG_RUNTIME_DIR"]) / "ipfsmem").glob("*"))


@functools.cache
def name_of(folder: Path) -> str:
    """Return the name of a vault's halves, for its current place."""
    return _name(folder)


def held_keys(folder: Path) -> list[str]:
    """Return the keys of a vault that the kernel lists for this user, without revoked (R) and expired
    ones, which are unreadable and removed later (`/proc/sys/kernel/keys/gc_delay`)."""
    lines = [line.split(maxsplit=2) for line in Path("/proc/keys").read_text().splitlines()]
    return [
        rest
        for _, flags, rest in lines
        if f" ipfsmem:{name_of(folder)}" in rest and "R" not in flags and " expd " not in rest
    ]
