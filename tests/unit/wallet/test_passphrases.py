"""The rule for new passphrases."""

from __future__ import annotations

import pytest

from ipfsmem.errors import PassphraseError
from ipfsmem.wallet.passphrases import MIN_CHARACTERS, counting_characters, require_strong


@pytest.mark.parametrize(
    "weak",
    ["x", "brief", "aaaaaaaaaaaaaaaaaaaa", "1234567890123", "abcdefghijkl", "aabbccddeeff", "Password", "qwertyuiop ", "", "９９９９９９９９９９"],
)  # fmt: skip
def test_weak_passphrase_is_refused_and_not_quoted(weak: str) -> None:
    with pytest.raises(PassphraseError) as refused:
        require_strong(weak)
    assert not weak.strip() or weak not in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize(
    "fine", ["open sesame", "correct horse", "kq7!Rw2z", "Überraschung!", "日本語の長い合言葉です"]
)
def test_strong_passphrase_is_accepted(fine: str) -> None:
    require_strong(fine)


def test_repeated_or_sequential_characters_count_once() -> None:
    assert [
        counting_characters(text) for text in ("a", "aaaa", "1234", "4321", "aab", "abz", "a1b2c3d4")
    ] == [
        1,
        1,
        1,
        1,
        1,
        2,
        8,
    ]
    for length in (MIN_CHARACTERS - 1, MIN_CHARACTERS):
        text = "aeiouymnkt"[:length]
        assert counting_characters(text) == length - text.count("mn")
