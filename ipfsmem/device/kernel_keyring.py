"""Store small secrets in the user's keyring of the Linux kernel, with an expiry time.

Secrets are in kernel memory only, never in swap, and lost when the machine is switched off. The module uses system
calls, since the existing bindings need libkeyutils and a compiler. Numbers and permission bits are from
`asm/unistd.h` and `linux/keyctl.h` (Linux 6.12), semantics from keyrings(7), add_key(2), keyctl(2).
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Callable
from typing import Any

#: The numbers of add_key and keyctl, by machine.
_NUMBERS = {
    "x86_64": (248, 250),
    "aarch64": (217, 219),
    "riscv64": (217, 219),
    "loongarch64": (217, 219),
    "ppc64le": (269, 271),
    "s390x": (278, 280),
}
_USER_KEYRING = -4
_REVOKE, _SETPERM, _UNLINK, _SEARCH, _READ, _SET_TIMEOUT = 3, 5, 9, 10, 11, 15
#: Possessor: everything. The same user: view, read, write, search, setattr. A service started by the system has another session
#: keyring, does not "possess" this user's keyring, and would otherwise see the key but not read it.
_PERMISSIONS = 0x3F2F0000
#: Error numbers of the kernel for a key that no longer exists.
_MISSING_KEY_ERRORS = frozenset(
    getattr(errno, name)
    for name in ("ENOENT", "ENOKEY", "EKEYEXPIRED", "EKEYREVOKED")
    if hasattr(errno, name)
)
_MAX_SECRET_BYTES = 4096


def has_kernel_keyring() -> bool:
    """Return whether this machine's kernel stores keys for this user: Linux, unless a container forbids the system
    calls."""
    try:
        read("ipfsmem:is-there")
    except OSError:
        return False
    return True


def put(name: str, secret: bytes, seconds: int) -> None:
    """Store a secret for this user under a name, or replace it; the kernel removes it after `seconds`. Raises
    OSError."""
    try:
        key = _call(0, b"user", name.encode(), secret, len(secret), _USER_KEYRING)
        try:
            _keyctl(_SET_TIMEOUT, key, seconds)
            _keyctl(_SETPERM, key, _PERMISSIONS)
        except OSError:
            _keyctl(_UNLINK, key, _USER_KEYRING)
            raise
    except OSError as error:
        if error.errno not in _MISSING_KEY_ERRORS:
            raise
        # Another process removed the key in between. A change of a key that is not in a keyring is refused; then
        # there is nothing to unlink.


def read(name: str) -> bytes | None:
    """Return the secret of a name, None if absent. Raises OSError if the system has no such keyring."""
    import ctypes

    try:
        key = _keyctl(_SEARCH, _USER_KEYRING, b"user", name.encode(), 0)
        buffer = ctypes.create_string_buffer(_MAX_SECRET_BYTES)
        size = _keyctl(_READ, key, buffer, _MAX_SECRET_BYTES)
    except OSError as error:
        if error.errno in _MISSING_KEY_ERRORS:
            return None
        raise
    return buffer.raw[: min(size, _MAX_SECRET_BYTES)]


def remove(name: str) -> bool:
    """Remove a secret; returns whether there was one. Raises OSError."""
    try:
        key = _keyctl(_SEARCH, _USER_KEYRING, b"user", name.encode(), 0)
        _keyctl(_REVOKE, key)  # also invalid for processes that looked it up before
        _keyctl(_UNLINK, key, _USER_KEYRING)
    except OSError as error:
        if error.errno in _MISSING_KEY_ERRORS:
            return False
        raise
    return True


def _keyctl(operation: int, *arguments: Any) -> int:
    return _call(1, operation, *arguments)


def _call(which: int, *arguments: Any) -> int:
    import ctypes

    numbers = _NUMBERS.get(os.uname().machine) if sys.platform == "linux" and sys.maxsize > 1 << 32 else None
    if numbers is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    result = _syscall()(
        *(ctypes.c_long(one) if isinstance(one, int) else one for one in (numbers[which], *arguments))
    )
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result)


@functools.cache
def _syscall() -> Callable[..., int]:
    import ctypes

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return call
