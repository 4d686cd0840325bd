"""What asking a model about a question came to. Apart from `meaning.py`, which asks: who goes by words alone does not load that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from ipfsmem.errors import IpfsmemError

if TYPE_CHECKING:
    from ipfsmem.recall.vectors import Comparable

NOT_NAMED_HINT: Final = 'pip install "ipfsmem[semantic]" brings one that runs here. Or name one under [embeddings] in the settings file, for instance provider = "ollama"; model and base_url can stand there too.'


class Asked(msgspec.Struct, frozen=True):
    """The vectors that a question is to be compared with, None where it goes by words alone, and its own; and what a person should
    know, "" for nothing."""

    vectors: Comparable | None
    notice: str
    #: Why nothing could be asked: it is raised for whoever cannot do without. None also where no model is named.
    problem: IpfsmemError | None = None
    #: Whether the user named a model, or installed one.
    named: bool = True
    #: How much of the weight of meaning the model is to have for this question, 0 to 1.
    share: float = 1.0
    question: Sequence[float] | bytes = ()
    #: A cosine below which a text has nothing to do with it.
    unrelated: float = -1.0
