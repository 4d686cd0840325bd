"""A published version as one HTML file that opens it in any browser, with nothing installed: the built page with the sealed CAR
in it.

It contains no key and no plain text: the blocks are sealed as they were published. It contains the label of the vault and its key
number, which a wallet's message names; they are not secret.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from ipfsmem.content.car import Writable
from ipfsmem.files.built_page import BUILT, RESCUE, STATIC, not_built_error

#: The placeholders of the build, in their order.
_SAVED: Final = b"%IPFSMEM_SAVED%"
_VAULT: Final = b"%IPFSMEM_VAULT%"
_KEY_NUMBER: Final = b"%IPFSMEM_KEY_NUMBER%"
_CAR: Final = b"%IPFSMEM_CAR%"
_LICENCES: Final = b"%IPFSMEM_LICENCES%"


def read_shell(built: Path | None = None) -> bytes:
    """Return the page without a vault, with the licences of its components. Raises NotFoundError if it was not built."""
    built = built or BUILT
    try:
        shell = (built / RESCUE / "rescue.html").read_bytes()
        licences = (built / STATIC / "licences.md").read_bytes()
    except OSError:
        raise not_built_error() from None
    return shell.replace(_LICENCES, licences.replace(b"<", b"&lt;"))


def write_rescue_page(
    out: BinaryIO,
    shell: bytes,
    write_car: Callable[[Writable], object],
    *,
    vault: str,
    key_number: int,
    saved: str,
) -> None:
    """Write the page. `write_car` writes the CAR into its argument; `saved`: the day, as people read it."""
    for mark, text in ((_SAVED, saved), (_VAULT, vault), (_KEY_NUMBER, str(key_number))):
        shell = shell.replace(mark, text.encode())
    before, after = shell.split(_CAR)
    out.write(before)
    packed = _Base64(out)
    write_car(packed)
    packed.end()
    out.write(after)


class _Base64:
    """Writes its input as base64, piece by piece."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._left = b""

    def write(self, data: bytes) -> int:
        whole = self._left + data
        cut = len(whole) - len(whole) % 3
        self._left = whole[cut:]
        self._out.write(base64.b64encode(whole[:cut]))
        return len(data)

    def end(self) -> None:
        self._out.write(base64.b64encode(self._left))
