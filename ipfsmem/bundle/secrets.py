"""A look for secrets in text before it is remembered, published or shown to a model.

Finds well-known key formats, PEM blocks, JWTs, recovery words, assigned passwords and long random tokens. It answers
with kinds and line numbers, never with the secret. It is a safety net with holes: silence proves nothing.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path

import msgspec


class Finding(msgspec.Struct, frozen=True, order=True):
    """Where something secret seems to stand: `line` from 1, and character offsets into the text."""

    line: int
    start: int
    end: int
    kind: str

    def __str__(self) -> str:
        """Line and kind; never the secret."""
        return f"line {self.line}: {self.kind}"


_PATTERNS = (
    (
        "private key (PEM)",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----(?:[^-]|-(?!----)){0,20000}(?:-----END[^\n]*)?",
    ),
    ("JWT", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("AWS access key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})"),
    ("GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("OpenAI key", r"\bsk-(?!ant-)(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,}"),
    ("Stripe key", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("Google API key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("npm token", r"\bnpm_[A-Za-z0-9]{36}"),
    ("PyPI token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("SendGrid key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("age secret key", r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    ("password in a URL", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,100}:[^\s/@]{3,200}@"),
    (
        "private key (hex)",
        r"(?i)\b(?:private|secret|priv|signing)[ _-]?key\b[^\n0-9a-f]{0,12}(?:0x)?[0-9a-f]{64}\b",
    ),
    (
        "assigned secret",
        r"(?i)\b(?:password|passwd|passphrase|pwd|secret|api[ _-]?key|access[ _-]?token|auth[ _-]?token)\b[\"']?"
        r"[ \t]*[:=][ \t]*[\"']?(?=[^\s\"']*[0-9!$%^&*+/=_-])[^\s\"',;]{8,200}",
    ),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)
_TOKEN = re.compile(r"[A-Za-z0-9+/_=-]{32,512}")
_WORD = re.compile(r"[A-Za-z]+")
# Words of one phrase stand this close: numbers, list marks, commas, line ends between them.
_GAP = re.compile(r"[^A-Za-z]{1,8}")
_MIN_ENTROPY = 4.2  # bits a character; English and paths stay below, random base64 of 32 characters above


def scan(text: str) -> list[Finding]:
    """All findings in the order of the text; overlapping ones are one, named after the more telling pattern."""
    spans: list[tuple[int, int, str]] = []
    for kind, pattern in _COMPILED:
        _add(spans, ((m.start(), m.end(), kind) for m in pattern.finditer(text)))
    _add(spans, _phrases(text))
    _add(spans, _tokens(text))
    return sorted(Finding(text.count("\n", 0, s) + 1, s, e, kind) for s, e, kind in spans)


def redact(text: str) -> str:
    """`text` with each finding replaced by `[removed: <kind>]`."""
    parts: list[str] = []
    at = 0
    for found in scan(text):
        parts += [text[at : found.start], f"[removed: {found.kind}]"]
        at = found.end
    return "".join(parts) + text[at:]


def _add(spans: list[tuple[int, int, str]], found: object) -> None:
    for start, end, kind in found:  # type: ignore[attr-defined]
        if not any(start < e and s < end for s, e, _ in spans):
            spans.append((start, end, kind))


@lru_cache(maxsize=1)
def _bip39() -> dict[str, int]:
    """The English BIP-39 list that the wallet library ships; read as a file, for importing that takes a second."""
    spec = importlib.util.find_spec("eth_account")
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).parent / "hdaccount" / "wordlist" / "english.txt"
    try:
        return {word: n for n, word in enumerate(path.read_text("utf-8").split())}
    except OSError:
        return {}


def _phrases(text: str) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    run: list[tuple[int, int, int]] = []
    words = _bip39()
    for match in _WORD.finditer(text):
        number = words.get(match[0].lower())
        if number is None or (run and not _GAP.fullmatch(text, run[-1][1], match.start())):
            found += _phrases_in(run)
            run = []
        if number is not None:
            run.append((match.start(), match.end(), number))
    return found + _phrases_in(run)


def _phrases_in(run: list[tuple[int, int, int]]) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
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


def _tokens(text: str) -> list[tuple[int, int, str]]:
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
