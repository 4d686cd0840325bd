"""A look for secrets in text before it is remembered, published or shown to a model.

Finds well-known key formats, PEM blocks, JWTs, recovery words, assigned passwords and long random tokens. It answers
with kinds and line numbers, never with the secret. It is a safety net with holes: silence proves nothing.
"""

from __future__ import annotations

import hashlib
import math
import re
from bisect import bisect_left
from collections import Counter
from functools import cache

import msgspec

from ipfsmem.wordlist import word_indexes

_Span = tuple[int, int, str]


class SecretFinding(msgspec.Struct, frozen=True, order=True):
    """Where something secret seems to stand: `line` from 1, and character offsets into the text."""

    line: int
    start: int
    end: int
    kind: str

    def __str__(self) -> str:
        """Line and kind; never the secret."""
        return f"line {self.line}: {self.kind}"


# (kind, texts of which one must stand in the text, pattern); the more telling patterns come first. Where the pattern is
# (?i) its hints are looked for in the text in lower case. A pattern takes a bounded number of steps from one place, and
# never fails after a long run in which it could begin again: the texts of strangers are looked at.
_PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "private key (PEM)",
        ("-----BEGIN ",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----"
        r"(?:[^-]|-(?!----)){0,20000}(?:-----END[^\n]{0,80})?",
    ),
    # What begins like one and is none is passed over as far as it goes.
    (
        "JWT",
        ("eyJ",),
        r"\beyJ(?:(?P<is>[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+)|[A-Za-z0-9_-]*+)",
    ),
    ("AWS access key", ("AKIA", "ASIA"), r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    (
        "GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})",
    ),
    ("GitLab token", ("glpat-",), r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("Anthropic key", ("sk-ant-",), r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    (
        "OpenAI key",
        ("sk-",),
        r"\bsk-(?!ant-)(?:proj-|svcacct-)?(?=[A-Za-z_-]{0,60}+[0-9])[A-Za-z0-9_-]{20,}+",
    ),
    ("Stripe key", ("k_live_", "k_test_"), r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("Slack token", ("xox",), r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("Google API key", ("AIza",), r"\bAIza[A-Za-z0-9_-]{35}"),
    ("Hugging Face token", ("hf_",), r"\bhf_[A-Za-z0-9]{30,}"),
    ("npm token", ("npm_",), r"\bnpm_[A-Za-z0-9]{36}"),
    ("PyPI token", ("pypi-",), r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("SendGrid key", ("SG.",), r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("age secret key", ("AGE-SECRET-KEY-1",), r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    (
        "password in a URL",
        ("://",),
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,100}:[^\s/@]{3,200}@",
    ),
    (
        "private key (hex)",
        ("key",),
        r"(?i)\b(?:private|secret|priv|signing)[ _-]?key\b[^\n0-9a-f]{0,12}(?:0x)?[0-9a-f]{64}\b",
    ),
    (
        "assigned secret",
        ("pass", "pwd", "secret", "key", "token"),
        r"(?i)\b(?:password|passwd|passphrase|pwd|secret|api[ _-]?key|access[ _-]?token|auth[ _-]?token)\b[\"']?"
        r"[ \t]{0,8}[:=][ \t]{0,8}[\"']?(?=[^\s\"']{0,200}[0-9!$%^&*+/=_-])[^\s\"',;]{8,200}",
    ),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, _, pattern in _PATTERNS)
#: Its 64 digits are a long token, and most texts in which its hint stands have none.
_HEX_KEY = next(n for n, (kind, _, _) in enumerate(_PATTERNS) if kind == "private key (hex)")


def _hints(*, any_case: bool) -> tuple[tuple[str, int], ...]:
    return tuple(
        (hint, n)
        for n, (_, hints, pattern) in enumerate(_PATTERNS)
        for hint in hints
        if pattern.startswith("(?i)") == any_case
    )


#: Letters and marks that are rare in prose, and of which each hint has some; all others are dropped for a first look.
_TELLING = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ-_:/.kpxyz"
_DROPPED = bytes(byte for byte in range(256) if byte not in _TELLING)


def _telling(text: bytes) -> bytes:
    """The telling characters of a text in their order, a tenth of it or so. A hint that stands in the text stands in this too, when it
    is cut down in the same way."""
    return text.translate(None, _DROPPED)


# Hints with the places of their patterns, the exact ones with what stays of them. One pass of plain searches clears most
# texts, and most texts have no underscore, so those that have one are looked for only where one stands.
_ANY_CASE = _hints(any_case=True)
_EXACT = tuple((_telling(hint.encode()), hint, n) for hint, n in _hints(any_case=False))
_UNDERSCORED = tuple(row for row in _EXACT if b"_" in row[0])
_OTHERS = tuple(row for row in _EXACT if b"_" not in row[0])

_TOKEN = re.compile(r"[A-Za-z0-9+/_=-]{32,512}")
_WORD = re.compile(r"[A-Za-z]+")
# Words of one phrase stand this close: numbers, list marks, commas, line ends between them.
_GAP = re.compile(r"[^A-Za-z]{1,8}")
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
#: Letters in lower case, everything else a space.
_AS_WORDS = bytes(byte | 0x20 if byte in _LETTERS else 0x20 for byte in range(256))
#: What may stand in a token as one character, everything else as another.
_AS_TOKENS = bytes(0x31 if byte in _LETTERS or byte in b"0123456789+/_=-" else 0x20 for byte in range(256))
_LONG_TOKEN = b"1" * 32
#: A word of every stretch that is too short for twelve words of the list (three letters and a space each) before it.
_SAMPLED_WORD = re.compile(rb"(?s:.{43})[a-z]*+[^a-z]*+([a-z]*+)")
_TWELVE = b"\1" * 12
_MIN_ENTROPY = 4.2  # bits a character; English and paths stay below, random base64 of 32 characters above


def find_secrets(text: str) -> list[SecretFinding]:
    """All findings in the order of the text; overlapping ones are one, named after the more telling pattern."""
    spans: list[_Span] = []  # sorted, none overlaps another
    raw = text.encode("utf-8", "replace")
    long_token = _LONG_TOKEN in raw.translate(_AS_TOKENS)
    for at in sorted(_hinted(text, raw)):
        kind, pattern = _COMPILED[at]
        if long_token or at != _HEX_KEY:
            _add(spans, [(m.start(), m.end(), kind) for m in pattern.finditer(text) if _is_finding(m)])
    if _has_twelve_list_words(raw):
        _add(spans, _phrases(text))
    if long_token:
        _add(spans, _tokens(text))
    findings = []
    line, at = 1, 0
    for start, end, kind in spans:
        line += text.count("\n", at, start)
        at = start
        findings.append(SecretFinding(line, start, end, kind))
    return findings


def _hinted(text: str, raw: bytes) -> set[int]:
    """The patterns of which a hint stands in the text."""
    lower, telling = text.lower(), _telling(raw)
    found = {n for hint, n in _ANY_CASE if hint in lower}
    found.update([n for part, hint, n in _OTHERS if part in telling and hint in text])
    if b"_" in telling:
        found.update([n for part, hint, n in _UNDERSCORED if part in telling and hint in text])
    return found


def _is_finding(match: re.Match[str]) -> bool:
    """Whether a match is a finding: a pattern with a group `is` also matches what it passes over."""
    return not match.re.groupindex or match["is"] is not None


def redact(text: str) -> str:
    """`text` with each finding replaced by `[removed: <kind>]`."""
    parts: list[str] = []
    at = 0
    for found in find_secrets(text):
        parts += [text[at : found.start], f"[removed: {found.kind}]"]
        at = found.end
    return "".join(parts) + text[at:]


def _add(spans: list[_Span], found: list[_Span]) -> None:
    for span in found:
        at = bisect_left(spans, span)
        after_previous = at == 0 or spans[at - 1][1] <= span[0]
        if after_previous and (at == len(spans) or span[1] <= spans[at][0]):
            spans.insert(at, span)


def _has_twelve_list_words(raw: bytes) -> bool:
    """Whether twelve words in a row are of the list, whatever stands between them: a quick test that prose fails."""
    known = _known_words()
    text = raw.translate(_AS_WORDS)
    if known.isdisjoint(_SAMPLED_WORD.findall(text)):
        return False
    return _TWELVE in bytes(map(known.__contains__, text.split()))


@cache
def _known_words() -> frozenset[bytes]:
    return frozenset(word.encode() for word in word_indexes())


def _phrases(text: str) -> list[_Span]:
    found: list[_Span] = []
    run: list[tuple[int, int, int]] = []
    words = word_indexes()
    for match in _WORD.finditer(text):
        number = words.get(match[0].lower())
        if number is None or (run and not _GAP.fullmatch(text, run[-1][1], match.start())):
            found += _phrases_in(run)
            run = []
        if number is not None:
            run.append((match.start(), match.end(), number))
    return found + _phrases_in(run)


def _phrases_in(run: list[tuple[int, int, int]]) -> list[_Span]:
    found: list[_Span] = []
    numbers = [number for _, _, number in run]
    begin = [(size, _phrase_starts(numbers, size)) for size in (24, 21, 18, 15, 12)]
    at = 0
    while at + 12 <= len(run):
        size = next((size for size, starts in begin if at in starts), 0)
        if size:
            found.append((run[at][0], run[at + size - 1][1], f"recovery phrase ({size} words)"))
        at += size or 1
    return found


def _phrase_starts(numbers: list[int], size: int) -> set[int]:
    """Where `size` numbers begin that are a phrase of BIP-39: the last 1/33 of its bits are the first of the SHA-256 of
    the others."""
    check = size // 3
    length, mask, most = size * 4 // 3, (1 << size * 11) - 1, (1 << check) - 1
    found: set[int] = set()
    value = 0
    for end, number in enumerate(numbers, 1):
        value = (value << 11 | number) & mask
        if end >= size:
            entropy = (value >> check).to_bytes(length, "big")
            if hashlib.sha256(entropy).digest()[0] >> (8 - check) == value & most:
                found.add(end - size)
    return found


def _tokens(text: str) -> list[_Span]:
    return [(m.start(), m.end(), "random token") for m in _TOKEN.finditer(text) if _is_random(m[0])]


def _is_random(token: str) -> bool:
    if token.startswith("Qm") and len(token) == 46:  # a CID
        return False
    kinds = (
        any(c.islower() for c in token) + any(c.isupper() for c in token) + any(c.isdigit() for c in token)
    )
    if kinds < 3:
        return False
    size = len(token)
    return -sum(n / size * math.log2(n / size) for n in Counter(token).values()) >= _MIN_ENTROPY
