"""What a guess at a passphrase costs in the files that tests write: next to nothing, but where the cost is what is tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ipfsmem.seal.secret_file import protect
from ipfsmem.wallet.signers import create_keystore

#: The defaults of the package, as they stand in it.
FULL: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (function, dict(function.__kwdefaults__ or {})) for function in (protect, create_keystore)
]


def make_cheap() -> None:
    """From now on, in this process: Argon2id and scrypt at their least, unless a caller says how much."""
    protect.__kwdefaults__ = {**FULL[0][1], "memory_kib": 64, "passes": 1}
    create_keystore.__kwdefaults__ = {**FULL[1][1], "scrypt_n": 2}


def make_full() -> None:
    """The defaults of the package again."""
    for function, defaults in FULL:
        function.__kwdefaults__ = dict(defaults)  # type: ignore[attr-defined]


@contextmanager
def at_full_cost() -> Iterator[None]:
    """The defaults of the package for a while."""
    make_full()
    try:
        yield
    finally:
        make_cheap()
