"""Store small secrets in the system's keyring (macOS Keychain, Windows Credential Manager, Secret Service, KWallet).

Needs the package `keyring` (the extra `keyring`). Only stores that encrypt and belong to the user are accepted.
`keyring` also finds backends that store nothing, that fail, and that write plain files; these are refused instead of
putting a secret on the disk.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from ipfsmem.errors import StorageError, UsageError

_SERVICE = "ipfsmem"
#: The backends of `keyring` 25 that are a store of the system: module and class.
_ACCEPTED_BACKENDS = frozenset(
    [
        ("keyring.backends.macOS", "Keyring"),
        ("keyring.backends.Windows", "WinVaultKeyring"),
        ("keyring.backends.SecretService", "Keyring"),
        ("keyring.backends.libsecret", "Keyring"),
        ("keyring.backends.kwallet", "DBusKeyring"),
    ]
)


def require_system_keyring() -> None:
    """Raise UsageError if the extra is missing or finds no accepted store."""
    _backend()


def put(name: str, secret: bytes) -> None:
    """Store a secret under a name, replacing one before. Raises UsageError, StorageError."""
    text = base64.b64encode(secret).decode()
    _call_backend(lambda store: store.set_password(_SERVICE, name, text))


def read(name: str) -> bytes | None:
    """Return the secret of a name, None if absent. Raises UsageError, StorageError."""
    text = _call_backend(lambda store: store.get_password(_SERVICE, name))
    if not isinstance(text, str):
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def remove(name: str) -> bool:
    """Remove a secret; returns whether there was one. Raises UsageError, StorageError."""
    if read(name) is None:
        return False
    _call_backend(lambda store: store.delete_password(_SERVICE, name))
    return True


def _call_backend(question: Any) -> Any:
    """Return the answer of the store. Its own errors differ by system; a locked store is one of them."""
    store = _backend()
    try:
        return question(store)
    except Exception as error:
        raise StorageError(
            f"the system's keyring refused: {type(error).__name__}: {error}",
            hint="Unlock it (usually by logging in), then try again.",
        ) from None


def _backend() -> Any:
    try:
        import keyring
    except ImportError:
        raise UsageError(
            "nowhere to cache the keys: there is no kernel's keyring, and the package for the system's is not installed",
            hint="Install it with: pip install 'ipfsmem[keyring]'. Or pass the passphrase in IPFSMEM_PASSPHRASE.",
        ) from None
    try:
        backend: Any = keyring.get_keyring()
        each = backend.backends if type(backend).__module__ == "keyring.backends.chainer" else [backend]
        real = [one for one in each if (type(one).__module__, type(one).__qualname__) in _ACCEPTED_BACKENDS]
    except Exception as error:  # a configured backend that cannot be loaded
        raise UsageError(f"the system's keyring cannot be used: {type(error).__name__}: {error}") from None
    if not real:
        raise UsageError(
            f"the package keyring found no store of this system that keeps secrets, only {type(backend).__module__}",
            hint="Pass the passphrase in IPFSMEM_PASSPHRASE, or start the system's secret store.",
        )
    return real[0]
