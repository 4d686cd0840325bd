"""Advise on a new memory: likely secrets, and faults that make it hard to find. Nothing is refused."""

from __future__ import annotations

from typing import Final

from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.bundle.secrets import find_secrets
from ipfsmem.lazy_pattern import lazy_pattern

#: Minimum characters of a useful description, and maximum characters of a text about one subject.
SHORTEST: Final = 12
LONGEST: Final = 12_000
#: Advice shown once per vault, since many users omit descriptions on purpose.
WEAK_DESCRIPTION: Final = (
    "The description is missing or too short: add one sentence that says when this memory is useful."
)
_DATE: Final = lazy_pattern(
    r"(?<!\d)(?:19|20)\d\d[-_]?(?:0[1-9]|1[0-2])(?:[-_]?(?:0[1-9]|[12]\d|3[01]))?(?!\d)"
)


def secret_in(text: str) -> list[str]:
    """Return a sentence with the kinds of likely secrets in a text; "" if there are none."""
    secrets = find_secrets(text)
    if not secrets:
        return []
    kinds = ", ".join(dict.fromkeys(one.kind for one in secrets))
    return [f"The text appears to contain a secret ({kinds}): remove the secret."]


def shortcomings(key: str, file: MemoryFile) -> list[str]:
    """Return advice on a memory, one sentence each, most important first."""
    advice = secret_in("\n".join((file.name, file.description, file.body)))
    description = " ".join(file.description.split())
    if len(description) < SHORTEST or description.casefold() in (file.name.casefold(), key):
        advice.append(WEAK_DESCRIPTION)
    if ("19" in key or "20" in key) and _DATE.search(key):
        advice.append(
            "The key contains a date: name the subject in the key and the day in the text, so that the next text replaces this one."
        )
    if len(file.body) > LONGEST:
        advice.append("The text is long: write one subject per memory.")
    return advice
