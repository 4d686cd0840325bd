"""What a fact is called and where it belongs: one line of text, a category, the kind of entry, and the key of it all.

Categories are open: any word is one, in one form. Those of Infraware's terminal are a closed list for programs that want one.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final, Literal

from ipfsmem.bundle.fence import clean_text
from ipfsmem.lazy_pattern import lazy_pattern

#: A fact holds, a procedure says how something is done, an episode is something that happened.
Kind = Literal["fact", "procedure", "episode"]
KINDS: Final[tuple[Kind, ...]] = ("fact", "procedure", "episode")
#: The closed list, each with the type of memory that it becomes.
CLOSED: Final = {
    "preference": "feedback",
    "personal_fact": "user",
    "workflow": "project",
    "restriction": "feedback",
    "convention": "project",
}
#: Categories that programs use besides, with theirs.
_TYPES: Final = {
    **CLOSED,
    "communication_style": "feedback",
    "expertise": "user",
    "work_style": "feedback",
    "project_context": "project",
    "personal_detail": "user",
    "frustration": "feedback",
}
#: The category of what nobody gave one.
GENERAL: Final = "general"
#: The tag of an entry that contradicts another one, until somebody looked at it.
CONFLICT: Final = "conflict"
#: Characters of a category, and of a fact.
MAX_CATEGORY: Final = 64
MAX_FACT: Final = 2_000

_not_a_word = lazy_pattern(r"[\W_]+")


def sanitised(fact: str) -> str:
    """A fact on one line: single blanks, no dashes at its beginning; "" when nothing is left."""
    return " ".join(clean_text(fact).split()).lstrip("- ")


def category_of(said: str) -> str:
    """A category in its one form: lower-case letters and digits of any script, `_` for each run of anything else."""
    return _not_a_word.sub("_", said.lower()).strip("_")[:MAX_CATEGORY].rstrip("_") or GENERAL


def type_of(kind: Kind, category: str) -> str:
    """The type of the memory file that an entry of this kind and category is."""
    return _TYPES.get(category, "reference") if kind == "fact" else kind


def kind_of(type: str, category: str) -> Kind | None:
    """The kind of entry that a memory file with this type and category is; None for one that is no entry."""
    if type == "procedure":
        return "procedure"
    if type == "episode":
        return "episode"
    return "fact" if category else None


def fact_key(text: str, kind: Kind = "fact") -> str:
    """The key of a new entry: the same text is the same memory on every device."""
    return f"{kind}_{sha256(text.encode()).hexdigest()[:16]}"
