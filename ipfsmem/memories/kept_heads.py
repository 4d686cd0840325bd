"""The headers of a scope's texts, stored for the next process by the hash of each text, so that a list need not open ten thousand
texts.

A header belongs to the text with this hash, whatever became of the memory. The file is next to the index of recall, sealed in the
same way, and removed with it (`device/recall_image`).
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

#: The state that its file records.
_STATE: Final = b"heads %d" % VERSION
#: Number of new headers after which it is stored again.
NEW: Final = 200

_decode = msgspec.msgpack.Decoder(dict[str, dict[str, str]]).decode


def load_heads(replica: Replica, scope: str) -> dict[str, MemoryFile]:
    """Return the stored headers by the SHA-256 of their texts; empty if there are none, or they do not fit."""
    image = load_image(replica, scope, kind="heads")
    if image is None or image.state != _STATE:
        return {}
    try:
        fields_of = _decode(image.rest)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return {sha: MemoryFile(fields) for sha, fields in fields_of.items()}


def save_heads(replica: Replica, scope: str, heads: Mapping[str, MemoryFile], mark: StateMark) -> bool:
    """Keep these of the texts of a state in the place of those before (not inside `reading`). Gives whether they are: not where there is
    no place for them, or another process changed the state since; a list is right without."""
    rest = msgspec.msgpack.encode({sha: file.fields for sha, file in heads.items()})
    image = RecallImage(_STATE, memoryview(rest), memoryview(b""))
    with contextlib.suppress(IpfsmemError):
        return save_image(replica, image, scope, kind="heads", holds=lambda: replica.store.is_at(mark))
    return False
