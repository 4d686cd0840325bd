"""What a new passphrase must be, so that whoever holds the file cannot simply try all of them.

A plain rule that can be said in one sentence, not an estimate: characters that only repeat or go on from the one before
(`aaaa`, `1234`, `abcd`) count once, and eight must count. One that is in use already is never judged: it opens or does not.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from ipfsmem.errors import PassphraseError
from ipfsmem.seal.primitives import normalised_passphrase

#: So many characters must count.
MIN_CHARACTERS: Final = 8
RULE: Final = (
    f"A passphrase has at least {MIN_CHARACTERS} characters, of which those that only repeat or count on from the one before (aaa, "
    "123) count once. Four or five words that do not belong together are easy to keep."
)
#: What is tried first, whatever its length.
_COMMONEST: Final = frozenset(
    [
        "password",
        "passwort",
        "password1",
        "password123",
        "passphrase",
        "qwertyuiop",
        "qwerty123",
        "1q2w3e4r",
        "1q2w3e4r5t",
        "iloveyou",
        "letmein1",
        "administrator",
        "changeme",
        "changeme123",
        "p@ssw0rd",
        "passw0rd",
        "sunshine",
        "princess",
        "football",
        "baseball",
        "superman",
        "trustno1",
    ]
)


def counting_characters(passphrase: str) -> int:
    """How many of its characters count."""
    text = normalised_passphrase(passphrase).decode()
    return 1 + sum(abs(ord(one) - ord(next_)) > 1 for one, next_ in pairwise(text))


def require_strong(passphrase: str, what: str = "the passphrase") -> None:
    """Refuse a new passphrase that is too easy. Raises PassphraseError; never repeats it."""
    if normalised_passphrase(passphrase).decode().casefold().strip() in _COMMONEST:
        raise PassphraseError(f"{what} is one of those that are tried first", hint=RULE)
    found = counting_characters(passphrase)
    if found < MIN_CHARACTERS:
        raise PassphraseError(
            f"{what} is too short: {found} of its characters count, {MIN_CHARACTERS} must", hint=RULE
        )
