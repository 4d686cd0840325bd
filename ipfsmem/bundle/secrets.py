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

import msgspec

from ipfsmem.wordlist import places

_Span = tuple[int, int, str]


class Finding(msgspec.Struct, frozen=True, order=True):
    """Where something secret seems to stand: `line` from 1, and character offsets into the text."""

    line: int
    start: int
    end: int
    kind: str

    def __str__(self) -> str:
        """Line and kind; never the secret."""
        return f"line {self.line}: {self.kind}"


# (kind, texts of which one must stand in the lower-case text, pattern); the more telling patterns come first.
_PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "private key (PEM)",
        ("-----begin ",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----"
        r"(?:[^-]|-(?!----)){0,20000}(?:-----END[^\n]{0,80})?",
    ),
    ("JWT", ("eyj",), r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("AWS access key", ("akia", "asia"), r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    (
        "GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})",
    ),
    ("GitLab token", ("glpat-",), r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("Anthropic key", ("sk-ant-",), r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("OpenAI key", ("sk-",), r"\bsk-(?!ant-)(?:proj-|svcacct-)?(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{20,}"),
    ("Stripe key", ("k_live_", "k_test_"), r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("Slack token", ("xox",), r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("Google API key", ("aiza",), r"\bAIza[A-Za-z0-9_-]{35}"),
    ("Hugging Face token", ("hf_",), r"\bhf_[A-Za-z0-9]{30,}"),
    ("npm token", ("npm_",), r"\bnpm_[A-Za-z0-9]{36}"),
    ("PyPI token", ("pypi-",), r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("SendGrid key", ("sg.",), r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("age secret key", ("age-secret-key-",), r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
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
#: Every hint with the place of its pattern, in the order of the patterns: one pass of plain searches clears most texts.
_HINTS = tuple((hint, n) for n, (_, hints, _) in enumerate(_PATTERNS) for hint in hints)
_TOKEN = re.compile(r"[A-Za-z0-9+/_=-]{32,512}")
_WORD = re.compile(r"[A-Za-z]+")
_LOWER_WORD = re.compile(r"[a-z]+")
# Words of one phrase stand this close: numbers, list marks, commas, line ends between them.
_GAP = re.compile(r"[^A-Za-z]{1,8}")
# Twelve words in a row that have the length of recovery words: else there is nothing to look up.
_MAYBE_PHRASE = re.compile(r"\b(?:[A-Za-z]{3,8}+[^A-Za-z]{1,8}+){11}[A-Za-z]{3,8}\b")
_MIN_ENTROPY = 4.2  # bits a character; English and paths stay below, random base64 of 32 characters above


def scan(text: str) -> list[Finding]:
    """All findings in the order of the text; overlapping ones are one, named after the more telling pattern."""
    spans: list[_Span] = []  # sorted, none overlaps another
    lower = text.lower()
    for at in dict.fromkeys([n for hint, n in _HINTS if hint in lower]):
        kind, pattern = _COMPILED[at]
        _add(spans, [(m.start(), m.end(), kind) for m in pattern.finditer(text)])
    if _MAYBE_PHRASE.search(text) and _twelve_in_a_row(lower):
        _add(spans, _phrases(text))
    _add(spans, _tokens(text))
    findings = []
    line, at = 1, 0
    for start, end, kind in spans:
        line += text.count("\n", at, start)
        at = start
        findings.append(Finding(line, start, end, kind))
    return findings


def redact(text: str) -> str:
    """`text` with each finding replaced by `[removed: <kind>]`."""
    parts: list[str] = []
    at = 0
    for found in scan(text):
        parts += [text[at : found.start], f"[removed: {found.kind}]"]
        at = found.end
    return "".join(parts) + text[at:]


def _add(spans: list[_Span], found: list[_Span]) -> None:
    for span in found:
        at = bisect_left(spans, span)
        after_previous = at == 0 or spans[at - 1][1] <= span[0]
        if after_previous and (at == len(spans) or span[1] <= spans[at][0]):
            spans.insert(at, span)


def _twelve_in_a_row(lower: str) -> bool:
    """Whether twelve words that follow each other are of the list, whatever stands between them: a quick no for prose."""
    known = places()
    return "1" * 12 in "".join(["1" if word in known else "0" for word in _LOWER_WORD.findall(lower)])


def _phrases(text: str) -> list[_Span]:
    found: list[_Span] = []
    run: list[tuple[int, int, int]] = []
    words = places()
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
    at = 0
    while at + 12 <= len(run):
        for size in (24, 21, 18, 15, 12):
            if at + size <= len(run) and _checksum_holds([n for _, _, n in run[at : at + size]]):
                found.append((run[at][0], run[at + size - 1][1], f"recovery phrase ({size} words)"))
                at += size - 1
                break
        at += 1
    return found


def _checksum_holds(numbers: list[int]) -> bool:
    """BIP-39: the last 1/33 of the bits are the first bits of the SHA-256 of the others."""
    check = len(numbers) // 3
    value = 0
    for number in numbers:
        value = value << 11 | number
    entropy = (value >> check).to_bytes(len(numbers) * 4 // 3, "big")
    return hashlib.sha256(entropy).digest()[0] >> (8 - check) == value & ((1 << check) - 1)


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
