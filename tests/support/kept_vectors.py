"""Reads the embeddings that a vault stored last, for any model."""

from __future__ import annotations

from pathlib import Path

from ipfsmem.device.replica import Replica
from ipfsmem.memories.kept_vectors import StoredVectors, _opened, vector_files
from ipfsmem.recall.vectors import Vectors


def vectors_file(replica: Replica) -> Path:
    return vector_files(replica)[0]


def load_kept(replica: Replica) -> StoredVectors | None:
    return next((_opened(replica, path, removes=False) for path in vector_files(replica)), None)


def load_vectors(replica: Replica) -> Vectors | None:
    kept = load_kept(replica)
    return None if kept is None else kept.vectors
