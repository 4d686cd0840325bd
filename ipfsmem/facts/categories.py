"""The form of a fact: one line of text, a category, the kind of entry, and its key.

Any word is a valid category; `category_of` normalises it. `CLOSED` is the fixed list of the Infraware terminal agent,
for programs that need a fixed set.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final, Literal

from ipfsmem.bundle.fence import clean_text
from ipfsmem.lazy_pattern import lazy_pattern

#: A fact is a true statement, a procedure describes how something is done, an episode is something that happened.
Kind = Literal["fact", "procedure", "episode"]
#: The closed list, each with its type of memory.
CLOSED: Final = {
    "preference": "feedback",
    "personal_fact": "user",
    "workflow": "project",
    "restriction": "feedback",
    "convention": "project",
}
#: Further categories that programs use, with their types.
_TYPES: Final = {
    **CLOSED,
    "communication_style": "feedback",
    "expertise": "user",
    "work_style": "feedback",
    "project_context": "project",
    "personal_detail": "user",
    "frustration": "feedback",
}
#: The default category.
GENERAL: Final = "general"
#: The tag of an entry that contradicts another one, until a person reviews it.
CONFLICT: Final = "conflict"
#: Maximum characters of a category, and of a fact.
MAX_CATEGORY: Final = 64
MAX_FACT: Final = 2_000

_not_a_word = lazy_pattern(r"[\W_]+")


def sanitised(fact: str) -> str:
    """Normalise a fact to one line: single blanks, no leading dashes; "" if the result is empty."""
    return " ".join(clean_text(fact).split()).lstrip("- ")


def category_of(label: str) -> str:
    """Return a category in canonical form: lower-case letters and digits of any script, `_` for each run of anything else."""
    return _not_a_word.sub("_", label.lower()).strip("_")[:MAX_CATEGORY].rstrip("_") or GENERAL


def type_of(kind: Kind, category: str) -> str:
    """Return the type of the memory file of an entry of this kind and category."""
    return _TYPES.get(category, "reference") if kind == "fact" else kind


def kind_of(type: str, category: str) -> Kind | None:
    """Return the kind of entry of a memory file with this type and category; None if it is not an entry."""
    if type == "procedure":
        return "procedure"
    if type == "episode":
        return "episode"
    return "fact" if category else None


def fact_key(text: str, kind: Kind = "fact") -> str:
    """Return the key of a new entry: the same text is the same memory on every device."""
    return f"{kind}_{sha256(text.encode()).hexdigest()[:16]}"
