"""Makes passphrases cheap to check in files that tests write, except where the cost is under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ipfsmem.seal.secret_file import protect
from ipfsmem.wallet.signers import create_keystore

#: The defaults of the package.
FULL: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (function, dict(function.__kwdefaults__ or {})) for function in (protect, create_keystore)
]


def make_cheap() -> None:
    """From now on in this process: minimal Argon2id and scrypt costs, unless a caller chooses them."""
    protect.__kwdefaults__ = {**FULL[0][1], "memory_kib": 64, "passes": 1}
    create_keystore.__kwdefaults__ = {**FULL[1][1], "scrypt_n": 2}


def make_full() -> None:
    """Restore the defaults of the package."""
    for function, defaults in FULL:
        function.__kwdefaults__ = dict(defaults)  # type: ignore[attr-defined]


@contextmanager
def at_full_cost() -> Iterator[None]:
    """Use the defaults of the package within the block."""
    make_full()
    try:
        yield
    finally:
        make_cheap()
