"""What makes a memory easy to find and safe to keep, looked for in one that was just written. Advice, and no rule: nothing is refused."""

from __future__ import annotations

import re
from typing import Final

from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.bundle.secrets import find_secrets

#: Characters of a description that says something, and of a text that is still about one subject.
SHORTEST: Final = 12
LONGEST: Final = 12_000
_DATE: Final = re.compile(
    r"(?<!\d)(?:19|20)\d\d[-_]?(?:0[1-9]|1[0-2])(?:[-_]?(?:0[1-9]|[12]\d|3[01]))?(?!\d)"
)


def secret_in(text: str) -> list[str]:
    """The one sentence on what looks like a secret in a text; none where nothing does."""
    secrets = find_secrets(text)
    if not secrets:
        return []
    kinds = ", ".join(dict.fromkeys(one.kind for one in secrets))
    return [f"It looks as if a secret stood in it ({kinds}): take it out; a memory is no place for one."]


def shortcomings(key: str, file: MemoryFile) -> list[str]:
    """What could be better about a memory, a sentence each, in the order of what matters most."""
    found = secret_in("\n".join((file.name, file.description, file.body)))
    said = " ".join(file.description.split())
    if len(said) < SHORTEST or said.casefold() in (file.name.casefold(), key):
        found.append(
            "Its description does not say when it is of use: give one sentence, by which it is found."
        )
    if _DATE.search(key):
        found.append(
            "Its key has a date: name the subject, and say in the text when, so that the next text takes its place."
        )
    if len(file.body) > LONGEST:
        found.append("It is long: one subject a memory, further ones in memories of their own.")
    return found
