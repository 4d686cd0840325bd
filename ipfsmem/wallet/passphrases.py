"""Check the strength of a new passphrase against guessing by anyone who has the encrypted file.

Characters that repeat or continue the preceding one (`aaaa`, `1234`, `abcd`) count once; at least eight must count.
Passphrases in use are not checked.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from ipfsmem.errors import PassphraseError
from ipfsmem.seal.primitives import normalised_passphrase

#: Minimum result of `counting_characters`.
MIN_CHARACTERS: Final = 8
RULE: Final = f"A passphrase needs at least {MIN_CHARACTERS} characters, not counting repeats and sequences (aaa, 123). Four or five unrelated words are easy to remember."
#: Common passphrases, which attackers try first.
_COMMON_PASSPHRASES: Final = frozenset(
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
    """Return the number of characters that neither repeat nor continue the preceding one."""
    text = normalised_passphrase(passphrase).decode()
    return 1 + sum(abs(ord(one) - ord(next_)) > 1 for one, next_ in pairwise(text))


def require_strong(passphrase: str, what: str = "the passphrase") -> None:
    """Refuse a weak new passphrase. Raises PassphraseError without the passphrase in the message."""
    if normalised_passphrase(passphrase).decode().casefold().strip() in _COMMON_PASSPHRASES:
        raise PassphraseError(f"{what} is a common passphrase", hint=RULE)
    counted = counting_characters(passphrase)
    if counted < MIN_CHARACTERS:
        raise PassphraseError(
            f"{what} is too weak: {counted} of {MIN_CHARACTERS} characters, not counting repeats and sequences",
            hint=RULE,
        )
