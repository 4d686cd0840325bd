"""What the scanner skips finds nothing: the same is found where every rule looks everywhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.bundle import secrets
from ipfsmem.bundle.secrets import find_secrets
from tests.support import secret_corpus


def found_plainly(text: str) -> list[tuple[int, int, str]]:
    """As `find_secrets`, without a look at what the text holds before."""
    seen, places = secrets._visible(text)
    raw, whole = seen.encode("latin-1", "replace"), [(0, len(seen))]
    lines = [(0, 0)]
    for line in seen.split("\n"):
        lines.append((lines[-1][1] + (len(lines) > 1), lines[-1][1] + (len(lines) > 1) + len(line)))
    spans: list[tuple[int, int, str]] = []
    secrets._add(spans, secrets._prefixed(seen, whole))
    for (kind, hints, _), (_, pattern) in zip(secrets.SHAPES, secrets._SHAPES, strict=True):
        reach = secrets._REACHING.get(kind, 0)
        everywhere = kind in secrets._MANY_LINES or not hints
        for start, end in whole if everywhere else lines[1:]:
            matches = pattern.finditer(seen, start, end + reach)
            secrets._add(spans, [(*m.span(), kind) for m in matches if secrets._is_finding(m)])
    at = list(range(len(seen)))
    secrets._add(spans, secrets._assigned(seen, at))
    secrets._add(spans, secrets._spoken(seen, at, len(seen)))
    secrets._add(spans, secrets._columns(seen, at))
    secrets._add(spans, secrets._strong_words(seen, raw))
    cards = secrets._CARD.finditer(seen)
    secrets._add(spans, [(*m.span(), "card number") for m in cards if secrets._is_card(m[0])])
    words, known = [word.lower().encode() for word in secrets._WORD.findall(seen)], secrets._known_words()
    begins = [n for n in range(len(words) + 1) if n == 0 or words[n - 1] not in known]
    in_a_row = [range(a, b - 1) for a, b in zip(begins, [*begins[1:], len(words) + 1], strict=True)]
    secrets._add(spans, secrets._phrases(seen, words, in_a_row))
    secrets._add(spans, secrets._tokens(seen, whole))
    if places is not None:
        spans = [(places[start], places[end - 1] + 1, kind) for start, end, kind in spans]
    return spans


TEXTS = [text for seed in range(2) for draw in (secret_corpus.secrets, secret_corpus.harmless) for text in draw(seed).values()]  # fmt: skip
PIECES = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(sorted({word for text in TEXTS for word in text.split()})),
    st.sampled_from(["abandon " * 11 + "about", "pin", "PIN 4711", "key: ", "--", "\n", "|", "\u212a", "\u0130", "４７１１"]),
)  # fmt: skip
CUT = st.tuples(PIECES, st.integers(0, 40), st.integers(0, 60)).map(
    lambda cut: cut[0][cut[1] : cut[1] + cut[2]]
)


@given(st.lists(st.one_of(PIECES, CUT), max_size=8), st.sampled_from(["", " ", ", ", "\n", ": "]))
def test_what_is_skipped_holds_no_secret(pieces: list[str], between: str) -> None:
    text = between.join(pieces)
    assert [(one.start, one.end, one.kind) for one in find_secrets(text)] == found_plainly(text)


def test_texts_of_the_corpus_hold_the_same_with_every_rule_everywhere() -> None:
    for text in TEXTS:
        assert [(one.start, one.end, one.kind) for one in find_secrets(text)] == found_plainly(text), text
