"""The result of embedding a query, separate from `meaning.py`, which recall by words does not import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from ipfsmem.errors import IpfsmemError

if TYPE_CHECKING:
    from ipfsmem.recall.vectors import Comparable

NOT_NAMED_HINT: Final = 'pip install "ipfsmem[semantic]" installs one that runs here. Or set one under [embeddings] in the settings file, for instance provider = "ollama", with model and base_url.'


class QueryEmbedding(msgspec.Struct, frozen=True):
    """The vectors to compare a query with (None to rank by words only), the query's vector, and a notice for a person ("" for
    none)."""

    vectors: Comparable | None
    notice: str
    #: Why the model could not be asked, for callers that require it; None also without a model.
    problem: IpfsmemError | None = None
    #: Whether a model is configured or installed.
    named: bool = True
    #: The factor of the weight of meaning for this query, 0 to 1.
    share: float = 1.0
    question: Sequence[float] | bytes = ()
    #: The cosine below which a text is unrelated to the query.
    unrelated: float = -1.0
