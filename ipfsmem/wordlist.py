"""The 2048 English words of BIP-39, from the package that ships them, checked by hash.

Read as a data file of eth-account without importing that package (which takes a second). What the words mean is not
decided here.
"""

from __future__ import annotations

import hashlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Final

from ipfsmem.errors import ConfigError

_SHA256: Final = "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"
_FILE: Final = Path("hdaccount", "wordlist", "english.txt")


@cache
def word_list() -> tuple[str, ...]:
    """The 2048 English words of BIP-39. Raises ConfigError when the installed list is missing or another one."""
    spec = importlib.util.find_spec("eth_account")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("the BIP-39 word list is missing: package eth-account is not installed")
    path = Path(spec.submodule_search_locations[0]) / _FILE
    try:
        raw = path.read_bytes().replace(b"\r\n", b"\n")
    except OSError as error:
        raise ConfigError(f"the BIP-39 word list {path} cannot be read: {error.strerror}") from None
    if hashlib.sha256(raw).hexdigest() != _SHA256:
        raise ConfigError(f"the BIP-39 word list {path} is not the English list")
    return tuple(raw.decode("ascii").split())


@cache
def word_indexes() -> dict[str, int]:
    """The index of each word."""
    return {word: index for index, word in enumerate(word_list())}
