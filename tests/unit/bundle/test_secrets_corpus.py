"""Rates of missed secrets and false findings of the secret scanner on texts as people write them."""

from __future__ import annotations

from collections.abc import Callable

from ipfsmem.bundle.secrets import find_secrets, redact
from tests.support import secret_corpus

SEEDS = range(3)


def rate(texts: Callable[[int], dict[str, str]], *, found: bool) -> tuple[float, list[str]]:
    """Return the share of texts with (or without) a finding, and the texts."""
    drawn = [(f"{name} ({seed})", text) for seed in SEEDS for name, text in texts(seed).items()]
    named = [name for name, text in drawn if bool(find_secrets(text)) == found]
    return len(named) / len(drawn), named


def test_corpus_has_at_least_120_texts_of_each_kind() -> None:
    assert len(secret_corpus.secrets(0)) >= 120
    assert len(secret_corpus.harmless(0)) >= 120


def test_fewer_than_5_of_100_secrets_are_missed() -> None:
    missed, names = rate(secret_corpus.secrets, found=False)
    assert missed < 0.05, names


def test_fewer_than_3_of_100_harmless_texts_are_flagged() -> None:
    flagged, names = rate(secret_corpus.harmless, found=True)
    assert flagged < 0.03, names


def test_redacted_text_has_no_finding_left() -> None:
    left = [name for name, text in secret_corpus.secrets(1).items() if find_secrets(redact(text))]
    assert left == []


def test_finding_in_disguised_text_covers_the_characters_of_the_text() -> None:
    token = "gh\u200bp_" + "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j"
    (found,) = find_secrets(f"first\nuse {token} here")
    assert (found.line, redact(f"use {token} here")) == (2, f"use [removed: {found.kind}] here")
