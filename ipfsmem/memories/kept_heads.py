"""Stores the headers of a scope's texts for the next process, by the hash of each text, so that a list opens only changed texts.

A header belongs to a text, not to a memory, so it stays valid when a memory changes. The file is next to the index of recall,
sealed in the same way, and removed with it (`device/recall_image`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Final

import msgspec

from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.device.recall_image import VERSION, RecallImage, load_image, save_image
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import StateMark
from ipfsmem.errors import IpfsmemError

#: The version of the file's content.
_VERSION: Final = b"heads %d" % VERSION
#: Number of new headers after which the file is written again.
NEW: Final = 200

_decode = msgspec.msgpack.Decoder(dict[str, dict[str, str]]).decode


def load_heads(replica: Replica, scope: str) -> dict[str, MemoryFile]:
    """Return the stored headers by the SHA-256 of their texts; empty if there are none or the file is of another version."""
    image = load_image(replica, scope, kind="heads")
    if image is None or image.state != _VERSION:
        return {}
    try:
        fields_of = _decode(image.rest)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return {sha: MemoryFile(fields) for sha, fields in fields_of.items()}


def save_heads(replica: Replica, scope: str, heads: Mapping[str, MemoryFile], mark: StateMark) -> bool:
    """Replace the stored headers by those of a state's texts (not inside `reading`). Returns whether they were stored; they are not
    if the vault has no folder, or if another process changed the state since `mark`. Lists are correct without them."""
    rest = msgspec.msgpack.encode({sha: file.fields for sha, file in heads.items()})
    image = RecallImage(_VERSION, memoryview(rest), memoryview(b""))
    with contextlib.suppress(IpfsmemError):
        return save_image(replica, image, scope, kind="heads", holds=lambda: replica.store.is_at(mark))
    return False
