"""What tests of unlocked keys share: the two places where halves are held, as the system shows them."""

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
    """What lies in our part of the runtime directory."""
    return sorted((Path(os.environ["XDG_RUNTIME_DIR"]) / "ipfsmem").glob("*"))


@functools.cache
def name_of(folder: Path) -> str:
    """What the halves of a memory are called, as long as it was in this place."""
    return _name(folder)


def held_keys(folder: Path) -> list[str]:
    """The keys of a memory that the kernel has for this user, as it lists them; not those that were revoked (R) or have expired,
    which nobody can read any more and which go when the kernel comes to it (`/proc/sys/kernel/keys/gc_delay`)."""
    lines = [line.split(maxsplit=2) for line in Path("/proc/keys").read_text().splitlines()]
    return [
        rest
        for _, flags, rest in lines
        if f" ipfsmem:{name_of(folder)}" in rest and "R" not in flags and " expd " not in rest
    ]
