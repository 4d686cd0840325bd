"""Scan text for secrets before it is stored, published or shown to a model.

The rules are data in `bundle.secret_kinds`. A finding has a kind and a line number, never the secret. The scan does
not detect all secrets.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import filterfalse, pairwise
from typing import Any

import msgspec

from ipfsmem.bundle.secret_kinds import (
    AFTER_PURPOSE,
    BEFORE_NAME,
    CAPITALS,
    CIRCUIT_PARTS,
    CIRCUIT_PINS,
    HASH_BEFORE,
    HEX,
    KEY_OTHERS,
    KEY_OWNERS,
    METHODS,
    NAME_TAILS,
    PASSWORD_NAMES,
    PHRASE_WORDS,
    PLACEHOLDER_WORDS,
    PREFIXES,
    PUBLIC_BEFORE,
    PUBLIC_WORDS,
    SECRET_NAMES,
    SENTENCE,
    SENTENCE_WORDS,
    SHAPES,
    SPOKEN_NAMES,
    TOKEN_NAMES,
)

_Span = tuple[int, int, str]


class SecretFinding(msgspec.Struct, frozen=True, order=True):
    """The position of a likely secret: `line` from 1, and character offsets into the text."""

    line: int
    start: int
    end: int
    kind: str

    def __str__(self) -> str:
        """Return line and kind, never the secret."""
        return f"line {self.line}: {self.kind}"


class _Lazy:
    """A pattern compiled on first use: most texts need few patterns, and compiling all takes longer than scanning."""

    def __init__(self, pattern: str | Callable[[], str]) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._pattern if isinstance(self._pattern, str) else self._pattern())
        # Later accesses find the compiled pattern's methods as attributes.
        self.search, self.match, self.fullmatch = compiled.search, compiled.match, compiled.fullmatch
        self.finditer, self.findall = compiled.finditer, compiled.findall
        return getattr(compiled, name)


def find_secrets(text: str) -> list[SecretFinding]:
    """Return all findings in text order. Overlapping findings are merged under the more specific rule."""
    seen, places = _visible(text)
    spans: list[_Span] = []  # sorted, without overlaps
    raw = seen.encode("latin-1", "replace")  # one byte per character
    lower = _lower(seen)
    words = raw.translate(_AS_WORDS).split()
    if seen.isascii() or not ("\u0130" in seen or "\u212a" in seen):
        present = _SOUGHT.found(lower, words)
    else:  # letters whose lower case is ASCII
        present = _SOUGHT.found(lower, lower.encode("latin-1", "replace").translate(_AS_WORDS).split())
    digits = len(raw.translate(None, _NO_DIGITS))
    runs = _runs(raw)
    last = runs[-1][1] if runs else 0
    if runs:
        _add(spans, _find_prefixed(seen, runs))
        runs = [run for run in runs if run[1] - run[0] >= _LONG_RUN]
    if present or runs:
        _add(spans, _find_shapes(seen, raw, lower, present, runs, digits))
        if stems := present & _STEMS:
            offsets = _places(lower, stems)
            _add(spans, _assigned(seen, offsets))
            _add(spans, _find_spoken(seen, offsets, last))
            if "\n" in seen:
                _add(spans, _columns(seen, offsets))
    if digits:
        _add(spans, _strong_words(seen, raw))
        if digits >= _CARD_DIGITS and _has_card_groups(raw):
            _add(spans, [(m.start(), m.end(), "card number") for m in _CARD.finditer(seen) if _is_card(m[0])])
    if listed := _twelve_list_words(words):
        _add(spans, _phrases(seen, words, listed))
    if runs:
        _add(spans, _tokens(seen, runs))
    if places is not None:
        spans = [(places[start], places[end - 1] + 1, kind) for start, end, kind in spans]
    findings = []
    line, at = 1, 0
    for start, end, kind in spans:
        line += text.count("\n", at, start)
        at = start
        findings.append(SecretFinding(line, start, end, kind))
    return findings


def redact(text: str) -> str:
    """Replace each finding in `text` by `[removed: <kind>]`."""
    parts: list[str] = []
    at = 0
    for finding in find_secrets(text):
        parts += [text[at : finding.start], f"[removed: {finding.kind}]"]
        at = finding.end
    return "".join(parts) + text[at:]


def _add(spans: list[_Span], new: Iterable[_Span]) -> None:
    for span in new:
        at = bisect_left(spans, span)
        after_previous = at == 0 or spans[at - 1][1] <= span[0]
        if after_previous and (at == len(spans) or span[1] <= spans[at][0]):
            spans.insert(at, span)


# -- recovery phrases --------------------------------------------------------------------------------------------

_WORD = _Lazy(r"[A-Za-z]+")
# Text allowed between words of a phrase: numbers, list marks, commas, line ends.
_GAP = _Lazy(r"[^A-Za-z]{1,8}")
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
#: Letters in lower case, everything else a space.
_AS_WORDS = bytes(byte | 0x20 if byte in _LETTERS else 0x20 for byte in range(256))
_FOUR = b"\1" * 4


def _twelve_list_words(words: list[bytes]) -> list[range]:
    """Return the ranges of twelve or more consecutive words of the BIP-39 list, with any separators.

    Fast for prose: a run of twelve includes one word at every twelfth position, and four at every third.
    """
    if len(words) < 12:
        return []
    word_bits = _known_words()
    if word_bits.keys().isdisjoint(words[11::12]) or _FOUR not in bytes(
        map(word_bits.__contains__, words[2::3])
    ):
        return []
    return [range(*m.span()) for m in re.finditer(rb"\x01{12,}", bytes(map(word_bits.__contains__, words)))]


@cache
def _known_words() -> dict[bytes, int]:
    from ipfsmem.wordlist import word_indexes  # imported late: needed for twelve words or more

    return {word.encode(): number for word, number in word_indexes().items()}


def _phrases(text: str, words: list[bytes], listed: list[range]) -> list[_Span]:
    phrase_spans: list[_Span] = []
    word_bits = _known_words()
    spans = [match.span() for match in _WORD.finditer(text)]  # of the same words
    for places in listed:
        run: list[tuple[int, int, int]] = []
        for place in places:
            start, end = spans[place]
            if run and not _GAP.fullmatch(text, run[-1][1], start):
                phrase_spans += _phrases_in(text, run)
                run = []
            run.append((start, end, word_bits[words[place]]))
        phrase_spans += _phrases_in(text, run)
    return phrase_spans


#: Text before a recovery phrase that identifies it even if its checksum is wrong.
_PHRASE_NAME = _Lazy(
    r"(?i)(?:seed|mnemonic|(?:recovery|secret|backup) phrase|wallet|metamask|ledger|助记词|助記詞|сид|мнемоник|фраз|semilla|frase|wiederherstellung)[^\n]{0,40}(?:[:：=\n>—–-]|[ ]is)\s{0,4}[^A-Za-z\n]{0,4}$|(?:助记词|助記詞|сид\S{0,5}|фраз\S{0,5})[ ]{0,2}[^A-Za-z\n]{0,4}$"
)
_PHRASE_SIZES = frozenset((12, 15, 18, 20, 21, 24, 25, 33))


def _is_named_phrase(text: str, run: list[tuple[int, int, int]], at: int) -> bool:
    """Tell whether a run of words has a recovery phrase's length, and a name before it or no text around it."""
    if len(run) - at not in _PHRASE_SIZES or len({number for _, _, number in run[at:]}) < 10:
        return False
    start, end = run[at][0], run[-1][1]
    if _PHRASE_NAME.search(text, max(0, start - 80), start):
        return True
    before, after = text[text.rfind("\n", 0, start) + 1 : start], text[end:].partition("\n")[0]
    return not before.strip(" \"'`*>-") and not after.strip(" \"'`*.") and "\n" not in text[start:end]


def _phrases_in(text: str, run: list[tuple[int, int, int]]) -> list[_Span]:
    spans: list[_Span] = []
    start = next((at for at in range(len(run) - 11) if _is_named_phrase(text, run, at)), None)
    if start is not None:
        return [(run[start][0], run[-1][1], f"recovery phrase ({len(run) - start} words)")]
    numbers = [number for _, _, number in run]
    begin = [(size, _phrase_starts(numbers, size)) for size in (24, 21, 18, 15, 12)]
    at = 0
    while at + 12 <= len(run):
        size = next((size for size, starts in begin if at in starts), 0)
        if size:
            spans.append((run[at][0], run[at + size - 1][1], f"recovery phrase ({size} words)"))
        at += size or 1
    return spans


def _phrase_starts(numbers: list[int], size: int) -> set[int]:
    """Return the positions at which `size` word numbers are a BIP-39 phrase with a valid checksum."""
    check = size // 3
    length, mask, most = size * 4 // 3, (1 << size * 11) - 1, (1 << check) - 1
    starts: set[int] = set()
    value = 0
    for end, number in enumerate(numbers, 1):
        value = (value << 11 | number) & mask
        if end >= size:
            entropy = (value >> check).to_bytes(length, "big")
            if hashlib.sha256(entropy).digest()[0] >> (8 - check) == value & most:
                starts.add(end - size)
    return starts


#: Invisible characters and full-width forms of ASCII, which users may copy with a token.
_INVISIBLE = _Lazy("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_FULL_WIDTH = range(0xFF01, 0xFF5F)
_DISGUISED = _Lazy("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff\uff01-\uff5e]")


def _visible(text: str) -> tuple[str, list[int] | None]:
    """Return the text without invisible characters and full-width forms, and the position of each character in
    `text`; None if positions are equal."""
    if text.isascii() or not _DISGUISED.search(text):
        return text, None
    places = [n for n, char in enumerate(text) if not _INVISIBLE.match(char)]
    return "".join(
        chr(ord(text[n]) - 0xFEE0) if ord(text[n]) in _FULL_WIDTH else text[n] for n in places
    ), places


# -- tokens with a service's prefix ------------------------------------------------------------------------------


def _trie(words: list[str]) -> str:
    """Return a pattern that matches any of some words and reads each character once."""
    if words == [""]:
        return ""
    heads = sorted({word[0] for word in words if word})
    parts = [re.escape(head) + _trie([word[1:] for word in words if word[:1] == head]) for head in heads]
    return f"(?:{'|'.join(parts)}){'?' if '' in words else ''}"


_KNOWN = {prefix: (kind, rest, least) for kind, prefixes, rest, least in PREFIXES for prefix in prefixes}
_RESTS = {rest: _Lazy(f"[{rest}]{{1,4000}}+") for _, _, rest, _ in PREFIXES}


class _Prefixes:
    """Finds the first token prefix in a text that is not inside a word; the longest, if several match there."""

    #: Number of searches by single prefixes, before one pattern of all prefixes is compiled. The pattern is faster,
    #: but compiling takes 15 ms, a seventh of a command that writes one text.
    _MAX_SINGLE_SEARCHES = 400
    #: Maximum characters of a run that is searched by single prefixes.
    _MAX_SINGLE_RUN = 4_000
    _HEAD = 2

    def __init__(self, prefixes: Iterable[str]) -> None:
        self._by_head: dict[str, list[str]] = {}
        for prefix in sorted(prefixes, key=len, reverse=True):
            self._by_head.setdefault(prefix[: self._HEAD], []).append(prefix)
        firsts = "".join(sorted({head[0] for head in self._by_head}))
        self._first = _Lazy(f"(?<![A-Za-z0-9])[{re.escape(firsts)}]")
        self._all = _Lazy(lambda: f"(?<![A-Za-z0-9])(?:{_trie(sorted(prefixes))})")
        self._searches = 0

    def find(self, text: str, at: int, end: int) -> tuple[int, int] | None:
        """Return start and end of the first prefix in `text[at:end]`, or None."""
        self._searches += 1
        if self._searches > self._MAX_SINGLE_SEARCHES or end - at > self._MAX_SINGLE_RUN:
            match = self._all.search(text, at, end)
            return match.span() if match else None
        for match in self._first.finditer(text, at, end):
            start = match.start()
            for prefix in self._by_head.get(text[start : start + self._HEAD], ()):
                if text.startswith(prefix, start, end):
                    return start, start + len(prefix)
        return None


_PREFIXES = _Prefixes(_KNOWN)
#: Minimum length of a prefix that identifies a token; after a shorter prefix, the rest must look random.
_MIN_DISTINCTIVE_PREFIX = 6


def _find_prefixed(text: str, runs: list[tuple[int, int]]) -> Iterator[_Span]:
    for start, end in runs:
        yield from _find_prefixed_in(text, start, end)


def _find_prefixed_in(text: str, at: int, end: int) -> Iterator[_Span]:
    while (span := _PREFIXES.find(text, at, end)) is not None:
        start, at = span
        prefix = text[start:at]
        kind, alphabet, least = _KNOWN[prefix]
        rest = _RESTS[alphabet].match(text, at)
        if rest is None or len(rest[0]) < least or len(set(rest[0])) < 5:
            continue
        if (
            len(prefix) < _MIN_DISTINCTIVE_PREFIX
            and alphabet not in (CAPITALS, HEX)
            and (_is_wordy(rest[0]) or not (re.search("[0-9]", rest[0]) or _changes_case(rest[0])))
        ):
            continue
        if "EXAMPLE" in rest[0] or _has_placeholder_word(rest[0]):
            continue
        at = rest.end()
        yield start, at, kind


# -- shapes ----------------------------------------------------------------------------------------------------

#: Patterns (`SHAPES`) that need a long run of token characters: its minimum length, the maximum number of characters
#: of the match before the run, and a text that the run must contain.
_LONG = {
    "Discord token": (57, 0, "."),
    "private key (hex)": (64, 80, ""),
    "private key (WIF)": (51, 0, ""),
    "Terraform token": (60, 0, ".atlasv1."),
    "Stellar secret key": (56, 0, "S"),
    "recovery key": (29, 0, "-"),
    "JWT": (24, 0, "eyJ"),
    "OpenAI key": (24, 0, "sk-"),
    "Telegram bot token": (43, 0, ":AA"),
    "Mailchimp key": (36, 0, "-us"),
    "Asana token": (50, 0, "/1"),
    "Azure client secret": (37, 0, "Q~"),
    "token in a URL": (24, 0, "://"),
}
#: Patterns that span lines; the others are searched in the lines of their hints.
_MANY_LINES = frozenset(
    {"private key (PEM)", "private key (PuTTY)", "private key (numbers)", "private key (JWK)"}
)
#: Patterns that begin in the line of their hint, and the number of characters beyond that line that they can include.
_REACHING = {"recovery code": 160, "password in netrc": 300}
#: Minimum number of digits in a match of these patterns.
_DIGITS = {
    "private key (numbers)": 64,
    "password of a network": 8,
    "PIN": 4,
    "code of a door or a card": 3,
    "recovery code": 1,
}
_SHAPES = tuple((kind, _Lazy(pattern)) for kind, _, pattern in SHAPES)
_LEAST_DIGITS = tuple(_DIGITS.get(kind, 0) for kind, _, _ in SHAPES)
#: Words of which one must be in the searched part of a text, since the hints of these patterns are common.
_NEEDED: dict[str, tuple[str, ...]] = {
    "code of a door or a card": (
        "code", "comb", "cvv", "cvc", "puk", "tan", "код", "digo", "码", "锁", "コード", "番号"
    )
}  # fmt: skip


def _by_hint() -> dict[str, tuple[int, ...]]:
    """Map each hint to the indexes of the patterns with that hint."""
    numbers: dict[str, list[int]] = {}
    for number, (_, hints, _) in enumerate(SHAPES):
        for hint in dict.fromkeys(map(str.lower, hints)):
            numbers.setdefault(hint, []).append(number)
    return {hint: tuple(numbers[hint]) for hint in sorted(numbers)}


_HINTS: dict[str, tuple[int, ...]] = _by_hint()
#: The patterns without hints, shortest required run first: the fields of `_LONG`, and the index in `SHAPES`.
_BY_LENGTH = sorted((*_LONG[kind], number) for number, (kind, hints, _) in enumerate(SHAPES) if not hints)
_TOKEN_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_=-.%$:~"
#: Token characters as one byte, everything else as another.
_AS_TOKENS = bytes(0x31 if byte in _TOKEN_BYTES else 0x20 for byte in range(256))
_SHORT_RUN, _LONG_RUN = 15, 24
#: Number of digits of the shortest card number.
_CARD_DIGITS = 15
_NO_DIGITS = bytes(byte for byte in range(256) if byte not in b"0123456789")


def _runs(raw: bytes) -> list[tuple[int, int]]:
    """Return the runs of token characters that are at least as long as the shortest token."""
    marks = raw.translate(_AS_TOKENS)
    least = b"1" * _SHORT_RUN
    runs = []
    start = marks.find(least)
    while start >= 0:
        end = marks.find(b" ", start)
        end = end if end >= 0 else len(marks)
        runs.append((start, end))
        start = marks.find(least, end)
    return runs


def _windows(
    kind: str,
    hints: list[str],
    lower: str,
    lines: dict[str, set[tuple[int, int]]],
) -> list[tuple[int, int]]:
    """Return the parts of a text in which a pattern with hints can match: lines with a hint (cached in `lines`), or
    all."""
    if kind in _MANY_LINES:
        return [(0, len(lower))]
    for hint in hints:
        if hint not in lines:
            lines[hint] = _lines_with(lower, hint)
    windows = sorted(lines[hints[0]] if len(hints) == 1 else set().union(*(lines[hint] for hint in hints)))
    reach = _REACHING.get(kind, 0)
    return [(start, end + reach) for start, end in windows] if reach else windows


def _lines_with(lower: str, hint: str) -> set[tuple[int, int]]:
    lines = set()
    at = lower.find(hint)
    while at >= 0:
        end = lower.find("\n", at + len(hint) - 1)
        end = end if end >= 0 else len(lower)
        lines.add((lower.rfind("\n", 0, at + 1) + 1, end))
        at = lower.find(hint, max(end, at + 1))
    return lines


def _find_shapes(
    text: str, raw: bytes, lower: str, present: set[str], runs: list[tuple[int, int]], digits: int
) -> Iterator[_Span]:
    """Yield the matches of the patterns, in the order of `SHAPES`."""
    lines: dict[str, set[tuple[int, int]]] = {}
    at_runs = _windows_at_runs(text, runs) if runs else {}
    hinted: dict[int, list[str]] = {}
    for hint in _HINTS.keys() & present:
        for number in _HINTS[hint]:
            if digits >= _LEAST_DIGITS[number]:
                hinted.setdefault(number, []).append(hint)
    for number in sorted((*at_runs, *hinted)):
        kind, pattern = _SHAPES[number]
        least, needed = _LEAST_DIGITS[number], _NEEDED.get(kind)
        for start, end in at_runs.get(number) or _windows(kind, hinted[number], lower, lines):
            if least and len(raw[start:end].translate(None, _NO_DIGITS)) < least:
                continue
            if needed is not None and not any(part in lower[start:end] for part in needed):
                continue
            for m in pattern.finditer(text, start, end):
                if _is_finding(m):
                    yield m.start(), m.end(), kind


def _windows_at_runs(text: str, runs: list[tuple[int, int]]) -> dict[int, list[tuple[int, int]]]:
    """Return the parts of a text in which patterns without hints can match: at long enough runs with the required
    text."""
    windows: dict[int, list[tuple[int, int]]] = {}
    for start, end in runs:
        for least, before, mark, number in _BY_LENGTH:
            if least > end - start:
                break
            if text.find(mark, start, end) >= 0:
                windows.setdefault(number, []).append((max(0, start - before), end + 1))
    return windows


# -- hints in a text ---------------------------------------------------------------------------------------------

_NOT_ASCII = _Lazy("[^\x00-\x7f]")


class _HintSearch:
    """Finds the hints and stems in the words of a text. Results are cached by word, since texts share most words.

    A hint of up to three letters must be a whole word; longer hints and stems may be part of a word.
    """

    _MOST_WORDS, _LONGEST_WORD = 20_000, 24
    #: Number of words searched by single roots, before one pattern of all roots is compiled. The pattern is faster,
    #: but compiling takes longer than scanning a short text.
    _MAX_SINGLE_SEARCHES = 400

    def __init__(self, hints: Iterable[str], stems: Iterable[str]) -> None:
        self._by_root: dict[bytes, list[str]] = {}
        self._by_word: dict[bytes, list[str]] = {}
        self._by_char: dict[str, list[str]] = {}
        parts = set(stems)
        for text in parts.union(hints):
            is_plain = text.isascii() and text.isalpha() and text.islower()
            root = (text if is_plain else max(re.findall("[a-z]+", text), key=len, default="")).encode()
            other = None if text.isascii() else _NOT_ASCII.search(text)
            if other is not None or not root:
                self._by_char.setdefault(other[0] if other else min(text.strip(":"), default=""), []).append(
                    text
                )
            elif len(root) > 3 or text in parts:
                self._by_root.setdefault(root, []).append(text)
            else:
                self._by_word.setdefault(root, []).append(text)
        self._ascii_chars = tuple(filter(str.isascii, self._by_char))
        self._root = _Lazy(lambda: _trie(sorted(map(bytes.decode, self._by_root))))
        self._searches = 0
        self._words_without: set[bytes] = set()
        self._words_with: dict[bytes, tuple[frozenset[str], frozenset[str]]] = {}

    def found(self, lower: str, words: list[bytes]) -> set[str]:
        """Return the hints and stems in a lower-case text; `words`: its words of ASCII letters."""
        texts: set[str] = set()
        candidates: set[str] = set()
        for word in filterfalse(self._words_without.__contains__, words):
            sure, rest = self._words_with.get(word) or self._find_in_word(word)
            texts |= sure
            candidates |= rest
        for char in self._ascii_chars if lower.isascii() else self._by_char:
            if char in lower:
                candidates.update(self._by_char[char])
        return texts.union([text for text in candidates if text in lower]) if candidates else texts

    def _find_in_word(self, word: bytes) -> tuple[frozenset[str], frozenset[str]]:
        """Return the hints and stems that are in a word, and those of which only a part is; cached."""
        matches: set[str] = set()
        self._searches += 1
        if self._searches <= self._MAX_SINGLE_SEARCHES or self._root.search(word.decode()):
            matches.update(text for root, texts in self._by_root.items() if root in word for text in texts)
        sure = frozenset(text for text in matches if text.encode() in word)
        matches.update(self._by_word.get(word, ()))
        parts = sure, frozenset(matches - sure)
        if len(self._words_without) + len(self._words_with) >= self._MOST_WORDS:
            self._words_without, self._words_with = set(), {}
        if len(word) <= self._LONGEST_WORD:
            if matches:
                self._words_with[word] = parts
            else:
                self._words_without.add(word)
        return parts


#: Maps digits to one byte, separators of digit groups to another, everything else to a third.
_AS_GROUPS = bytes(0x31 if byte in b"0123456789" else 0x32 if byte in b" -" else 0x20 for byte in range(256))


def _has_card_groups(raw: bytes) -> bool:
    """Tell whether digits are grouped as on a card. A fast test that excludes most texts."""
    marks = raw.translate(_AS_GROUPS)
    return b"1111211112111121111" in marks or b"11112111111211111" in marks


_CARD = _Lazy(
    r"(?<![0-9-])(?:(?:4[0-9]{3}|5[1-5][0-9]{2}|2[2-7][0-9]{2}|6011|65[0-9]{2})(?:[ -][0-9]{4}){3}|3[47][0-9]{2}[ -][0-9]{6}[ -][0-9]{5})(?![0-9-])"
)


def _is_finding(match: re.Match[str]) -> bool:
    """Tell whether a match is a finding, by the rule for the named group of its pattern."""
    groups = match.re.groupindex
    if "is" in groups:
        return match["is"] is not None
    if "value" in groups:
        return not _is_placeholder(match["value"])
    if "basic" in groups:
        return _is_basic(match["basic"])
    if "strong" in groups:
        return _is_strong(match["strong"])
    if "token" in groups:
        return _is_token(match["token"])
    if "hook" in groups:
        return sum(map(str.isdigit, match["hook"])) >= 4
    if "mixed" in groups:
        return _is_strong(match["mixed"]) or _is_mixed(match["mixed"])
    if "words" in groups:
        return _is_phrase(match["words"])
    return True


def _is_basic(text: str) -> bool:
    """Tell whether a text is base64 of a name and a password."""
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return False
    name, colon, word = plain.partition(":")
    return bool(name and colon and word) and plain.isprintable() and not _is_placeholder(word)


_SPOKEN_NAME = _Lazy(lambda: f"(?i)(?<![A-Za-z]){_trie(sorted({*PASSWORD_NAMES, *SPOKEN_NAMES}))}")
_SPOKEN = _Lazy(SENTENCE)
_FOR_WHAT = _Lazy(AFTER_PURPOSE)
_SAID_BEFORE = _Lazy(BEFORE_NAME)
#: A password before its name in parentheses, also in the last cell of a row.
_NAMED_AFTER = _Lazy(r"(?<![^\s\"'`(])(?P<word>[^\s\"'`|]{7,100})(?P<edge>[ \t|\"'`*]{1,8})\($")
_LINKING_WORD = _Lazy(" (?:as|is|ist|als|—) ")
_SPOKEN_TOKENS = ("key", "token", "secret", *TOKEN_NAMES)


def _find_spoken(text: str, places: list[int], last: int) -> Iterator[_Span]:
    """Yield the passwords and tokens stated in sentences. `last`: the end of the last run of token characters."""
    for at in places:
        name = _SPOKEN_NAME.match(text, at)
        if name is None or (at >= last and name[0].lower().endswith(_SPOKEN_TOKENS)):
            continue
        if name[0].lower() == "key" and _is_other_key(text, at):
            continue
        if name[0].lower() in PASSWORD_NAMES and _LINKING_WORD.search(text, max(0, at - 40), at):
            before = _SAID_BEFORE.search(text, max(0, at - 150), at)
            if before is not None and _is_strong(before["strong"]):
                yield before.start(), name.end(), "password in a sentence"
        if text[at - 1 : at] == "(" and text[name.end() : name.end() + 1] == ")":
            label = _NAMED_AFTER.search(text, max(0, at - 150), at)
            if label is not None and (_is_bare if "|" in label["edge"] else _is_strong)(label["word"]):
                yield label.start(), name.end(), "password in a sentence"
        match = _SPOKEN.match(text, name.end())
        if match is None:
            match = _FOR_WHAT.match(text, name.end())
            if match is not None and (
                _is_bare(match["bare"]) if name[0].lower() in PASSWORD_NAMES else _is_token(match["bare"])
            ):
                yield at, match.end(), "password in a sentence"
            continue
        if match["spoken"] and match["spoken"][0] in "?+-" and _is_in_expansion(text, at):
            continue
        if name[0] in ("pin", "Pin") and _is_of_circuit(text, at, text[name.end() : match.start("spoken")]):
            continue
        if (
            _is_spoken(name[0], match["spoken"])
            if match["spoken"]
            else _is_spoken_phrase(name[0], match["phrase"])
        ):
            yield at, match.end(), "password in a sentence"


def _lower(text: str) -> str:
    """Return the text in lower case with unchanged positions."""
    lower = text.lower()
    return (
        lower
        if len(lower) == len(text)
        else "".join(low if len(low := char.lower()) == 1 else char for char in text)
    )


def _places(lower: str, stems: set[str]) -> list[int]:
    """Return the offsets of all `stems` in a text, in order."""
    offsets = []
    for stem in stems:
        at = lower.find(stem)
        while at >= 0:
            offsets.append(at)
            at = lower.find(stem, at + 1)
    return sorted(set(offsets))


def _is_spoken(name: str, word: str) -> bool:
    """Tell whether a word that a sentence states after `name` looks like a password, PIN or token."""
    word = re.split("[，。、；」]", word.rstrip(".,;:)\"'`"))[0]
    if name.lower() in _NUMBER_NAMES and word[:8].isdecimal() and 4 <= len(word) <= 8:
        return True
    if name.lower().startswith(("pin", "暗証番号")) or (name.lower() == "passcode" and word.isdecimal()):
        return word.isdecimal() and 4 <= len(word) <= 8
    if name.lower().endswith(_SPOKEN_TOKENS):
        return _is_token(word)
    if (
        len(word) < 6
        or re.match(METHODS, word)
        or re.match(r"[/~$<{@]|[a-z]+://|[\w.+-]+@[\w-]+\.[\w.]+$", word)
        or _is_placeholder(word)
    ):
        return False
    letter = any(map(str.isalpha, word))
    return (
        (letter and (any(map(str.isdigit, word)) or bool(re.search(r"[!#$%^&*+?=](?!$)", word))))
        or _is_mix_of_letters(word)
        or (word.count("-") >= 3 and word[-1] != "-" and _is_phrase(word))
    )


#: Names of passwords that are often numbers, in languages without spaces between words.
_NUMBER_NAMES = frozenset({"密码", "密碼", "口令", "パスワード", "비밀번호", "암호"})


#: Words between a pin's purpose and its number.
_VERBS = frozenset({"is", "was", "to", "ist", "war", "es", "est", "now"})


def _is_of_circuit(text: str, at: int, sentence: str) -> bool:
    """Tell whether a "pin" is that of a circuit, by the word before it or the last word of `sentence`, which follows
    it.

    Called for lower case and title case only: a secret number is mostly written PIN.
    """
    before = _WORD_BEFORE.search(text, max(0, at - 30), at)
    words = [word for word in re.findall("[a-z][a-z0-9]*", sentence.lower()) if word not in _VERBS]
    is_pin = before is not None and before[1].lower() in CIRCUIT_PINS
    return is_pin or bool(words and words[-1] in CIRCUIT_PARTS)


def _is_spoken_phrase(name: str, phrase: str) -> bool:
    return not name.lower().endswith(_SPOKEN_TOKENS) and _is_quoted_phrase(phrase)


_WORD_BEFORE = _Lazy(r"([A-Za-z0-9]+)[ _-]$")


def _is_other_key(text: str, at: int) -> bool:
    """Tell whether the word before `key` rules out a secret, or is missing."""
    before = _WORD_BEFORE.search(text, max(0, at - 30), at)
    return before is None or before[1].lower() in KEY_OTHERS


def _is_bare(word: str) -> bool:
    """Tell whether a word looks like a password in a context where a name is possible too."""
    return _is_strong(word) or (_is_mixed(word) and sum(map(str.isdigit, word)) >= 3)


def _words_of(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def _is_phrase(text: str) -> bool:
    """Tell whether words look like a passphrase and not like a sentence."""
    words = _words_of(text)
    return (
        not (PHRASE_WORDS.intersection(words) or SENTENCE_WORDS.intersection(words)) and len(set(words)) > 2
    )


def _is_quoted_phrase(text: str) -> bool:
    """Tell whether quoted words after a password's name are a password: with a number, or neither sentence nor label."""
    words = _words_of(text)
    if PHRASE_WORDS.intersection(words) or not 2 <= len(words) <= 12 or re.search(r"[{}<>$%]|\.{3}|…", text):
        return False
    if any(map(str.isdigit, text)) and text[0] != " ":
        return any(map(str.isalpha, text)) and not re.match(METHODS, text)
    return not SENTENCE_WORDS.intersection(words) and (len(words) >= 4 or (text.isascii() and text.islower()))


def _is_mixed(word: str) -> bool:
    """Tell whether a word has letters and some digits, like a simple password."""
    word = word.rstrip(".,;:)\"'`|*")
    if not 7 <= len(word) <= 60 or _is_placeholder(word) or re.match(METHODS, word):
        return False
    if not re.fullmatch(r"[A-Za-z0-9!#$%&*?@_.+-]+", word) or re.search(
        r"@\w|\.[a-z]+$|^[0-9]+[a-z]{1,3}$", word
    ):
        return False
    digits = sum(map(str.isdigit, word))
    return digits >= 2 and sum(map(str.isalpha, word)) >= 3 and not re.search(r"[a-z]-[0-9]|-[a-z]+-", word)


def _is_strong(word: str) -> bool:
    """Tell whether a word looks like a password in any context: upper and lower case with digits or punctuation."""
    word = word.rstrip(".,;:)\"'`|*")
    if (
        not 8 <= len(word) <= 100
        or _is_placeholder(word)
        or re.match(METHODS, word)
        or re.search(r"://|\(|->|\.\w+$", word)
    ):
        return False
    if not all(re.search(kind, word) for kind in ("[a-z]", "[A-Z]", r"[0-9!#$%^&*+?=]")):
        return False
    if re.search("[0-9]", word) and re.search("[!#$%^&*?]", word):
        return True
    inner = re.search(r"[0-9!#$%^&*+?=][^0-9]*[A-Za-z]", word)
    return inner is not None and not _is_camel(word)


def _is_camel(word: str) -> bool:
    """Tell whether a text consists of words, like a name in code: `oauth2Client`, `base64Encode`."""
    return sum(len(piece) for piece in _PIECE.findall(word)) >= 0.75 * len(word)


def _is_token(word: str) -> bool:
    """Tell whether a word looks like a service token in any context."""
    word = word.rstrip(".,;:)\"'`|*")
    if _is_placeholder(word) or word[:2] == "0x":
        return False
    if re.fullmatch(r"[0-9a-f]{32,128}", word):
        return len(set(word)) > 5
    if not re.fullmatch(r"[A-Za-z0-9_+/=-]{16,500}", word) or _is_wordy(word):
        return False
    kinds = all(re.search(kind, word) for kind in ("[0-9].*[0-9].*[0-9]", "[a-z]", "[A-Z]"))
    return kinds and not _is_camel(word)


def _is_card(text: str) -> bool:
    """Tell whether digits end with their Luhn check digit (ISO/IEC 7812-1)."""
    digits = [int(char) for char in reversed(text) if char.isdigit()]
    doubled = (2 * digit - 9 * (digit > 4) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


# -- assigned secrets ------------------------------------------------------------------------------------------

_ENDINGS = sorted(
    (*SECRET_NAMES, "key", "keys", "pass", "pw", "pat", "auth"), key=lambda word: (-len(word), word)
)


def _stems(names: Iterable[str]) -> Iterator[str]:
    """Yield the names that have no other name as a prefix."""
    last = ""
    for name in sorted(names):
        if not last or not name.startswith(last):
            last = name
            yield name


#: Prefixes of all names of secrets. Searching for these is faster than matching the patterns.
_STEMS = frozenset(_stems({*_ENDINGS, *SPOKEN_NAMES, *PASSWORD_NAMES}))
_SOUGHT = _HintSearch(_HINTS, _STEMS)


_ASSIGNED = _Lazy(
    lambda: (
        rf"(?i)(?P<end>{_trie(_ENDINGS)})(?P<tail>(?:[_.-]?(?:{'|'.join(sorted(NAME_TAILS, key=len, reverse=True))})\b){{0,2}})"
        r"(?P<close>[\"'`\])*]{0,4})[ \t]{0,8}(?P<sign>[:：][*_]{0,3}[ \t]{0,4}\r?\n[ \t>*-]{0,12}(?=[^\s]{0,60}[0-9!#$%^&*+?=])|=>|:=|->|→|[:=>|：–—]|\((?=[\"'])"
        r"|(?:[ ][\w:.-]{1,40}=\"[^\"\n]{0,100}\"){1,3}>|\{\s{0,20}(?:\w{1,20}[ ]{0,10}=[^\n]{0,80}\n\s{0,20}){0,3}default\s{0,8}=|(?<=[\"']),|(?<=[\"'])[ ]value[ ]?=|[ ]value=(?=[\"'])|\n[ ]{1,20}[\"']?value[\"']?:|</(?:key|name)>\s{0,20}<(?:string|value)>"
        r"|(?<=[ ])-(?=[ ])|(?<=[ \t])(?:(?P<level>[0-9])[ ])?(?!value)(?=[^\s]{0,60}[0-9!#$%^&*+?=]))\*{0,3}[ \t]{0,8}"
        r"(?:[brun]{0,2}[\"'`“「](?P<inner>[^\"'`”」\n]{4,400})[\"'`”」]|(?<=>)(?P<xml>[^<\n]{4,200})(?=</)|(?P<quote>[brun]{0,2}[\"'`“「])?(?P<value>[^\s\"'`,;<>”」]{4,400}))"
    )
)
#: The start of a shell expansion. In it, `:?` and `:+` precede a message or another text, and `:-` a default.
_EXPANSION = _Lazy(r"\$\{\w*$")
#: The words before a name, in reversed text.
_REVERSED_OWNERS = _Lazy(r"[A-Za-z0-9_.-]{0,60}(?:[ ][A-Za-z0-9_.-]{1,40}){0,2}")
_CASED_WORD = _Lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORDS = ("pass", "pw", *PASSWORD_NAMES)
_STRONG_SIGNS = frozenset((":", "=", ":=", "=>", "", "："))
#: Names with these endings need an owner before them, since they are ordinary words.
_SHORT_NAMES = frozenset({"key", "keys", "pass", "pw", "pat", "auth"})
_OWNED = KEY_OWNERS | {"db", "database", "smtp", "imap", "mail", "ftp", "git", "github", "gitlab", "basic", "user", "rpc", "http", "proxy"}  # fmt: skip


def _assigned(text: str, places: list[int]) -> Iterator[_Span]:
    end = 0
    for at in places:
        match = _ASSIGNED.match(text, at) if at >= end else None
        if match is not None and _is_secret_name(text, match) and _is_secret_value(text, match):
            end = match.end()
            yield at, end, "assigned secret"


def _is_secret_name(text: str, match: re.Match[str]) -> bool:
    """Tell whether the name that ends with `match` is that of a secret, in any case style."""
    words_before = _owners_before(text, match.start())
    owned, _, own = words_before.rpartition(" ")
    words = [word.lower() for word in _CASED_WORD.findall(own + match["end"] + match["tail"])]
    end = match["end"].lower()
    if not end.isascii():
        return True
    # Excludes "monkey" and "compass": the ending must begin a word, follow a mark, be in capitals or be long.
    starts = not own or not own[-1].isalnum() or (match["end"][0].isupper() and not own[-1].isupper())
    if not starts and not (len(end) >= 5 and own.isalpha()):
        return False
    if PUBLIC_WORDS.intersection(words):
        return False
    if end not in _SHORT_NAMES or (
        end in ("pass", "pw")
        and match["sign"] in _STRONG_SIGNS
        and (_is_strong_or_mixed(match) or _is_simple(match))
    ):
        return True
    spoken = [word.lower() for word in _CASED_WORD.findall(owned)][-1:]
    owners = KEY_OWNERS if end.startswith("key") else _OWNED
    if owners.intersection(words[:-1] or spoken) or owners.intersection(spoken):
        return True
    others = words[:-1] or spoken
    return (
        end == "key"
        and bool(others)
        and not KEY_OTHERS.intersection(others)
        and _is_token(_assigned_value(match))
    )


def _owners_before(text: str, at: int) -> str:
    """Return the text before a name that belongs to the name: the start of its word, or one or two words, even across
    a line break."""
    start = max(0, at - 130)
    match = _REVERSED_OWNERS.match(text[start : at - (text[at - 1 : at] == "\n")][::-1])
    return match[0][::-1] if match is not None else ""


def _assigned_value(match: re.Match[str]) -> str:
    """Return the assigned value."""
    return str(match["inner"] or match["xml"] or match["value"])


def _is_simple(match: re.Match[str]) -> bool:
    return (
        match["sign"] in (":", "=")
        and re.fullmatch("[a-z]{5,}[0-9]{1,4}!?", _assigned_value(match)) is not None
        and not _is_placeholder(_assigned_value(match))
    )


def _is_strong_or_mixed(match: re.Match[str]) -> bool:
    """Tell whether an assigned value looks like a password in any context, or like a simple one that ends its line."""
    value = _assigned_value(match)
    after = match.string[match.end() : match.end() + 1]
    return _is_strong(value) or ((match["value"] is None or after in "\r\n,;<") and _is_mixed(value))


def _is_secret_value(text: str, match: re.Match[str]) -> bool:
    """Tell whether an assigned value looks like a secret and not like a word, reference or placeholder."""
    value = _assigned_value(match).rstrip(")]}.:")
    if value[:1] in ("?", "+", "-") and _is_in_expansion(text, match.start()):
        if value[0] != "-":
            return False
        value = value[1:]
    password = match["end"].lower().startswith(_PASSWORDS)
    quoted = match["value"] is None or match["quote"] is not None
    if " " in value:
        return password and match["sign"] != "," and _is_quoted_phrase(value)
    if (
        match["sign"] in ("", "|")
        or match["level"]
        or ("\n" in match["sign"] and "value" not in match["sign"])
    ):
        # after a space, a table cell's edge or a line break, the value must look like a secret without its name
        return _is_strong_or_mixed(match) if password else _is_token(value)
    if match["sign"] == "," and not quoted:
        return False
    if len(value) < (6 if password else 8) or _is_placeholder(value) or re.match(METHODS, value):
        return False
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    if (
        not quoted
        and re.fullmatch(r"[a-z]+(?:[A-Z][a-z]+)+[0-9]?|\w+\.\w+\.\w[\w.]*", value)
        and _is_wordy(value)
    ):
        return False  # the name of a variable
    if not password:
        return not _is_wordy(value) and (digits or _changes_case(value))
    if letters and (digits or bool(re.search(r"[!$%^&*+#?~=]", value))):
        return (
            not re.fullmatch(r"[a-z]+(?:[-_./][a-z]+)*[-_]?v?[0-9]", value)
            or "-" not in value
            or len(value) < 24
        )
    if not letters:
        return digits and len(value) >= 6 and len(set(value)) > 1
    alone = match.end() == len(text) or text[match.end()] in "\r\n\"'`,;<" or quoted
    if match["sign"] == "=" and text[match.start("value") - 1] == "=" and _is_mix_of_letters(value):
        return True
    return alone and (
        (value.isalpha() and len(value) >= 16)
        or value.count("-") >= 3
        or _changes_case(value)
        or _is_jumbled(value)
    )


def _is_in_expansion(text: str, at: int) -> bool:
    """Tell whether the name at this offset is that of a variable in `${NAME:-default}`."""
    return _EXPANSION.search(text, max(0, at - 64), at) is not None


def _is_jumbled(value: str) -> bool:
    """Tell whether letters are not words: few capitals begin words, there is no vowel, or consonants form a long
    sequence."""
    if not (value.isascii() and value.isalpha() and len(value) >= 8):
        return False
    pieces = sum(len(piece) for piece in _PIECE.findall(value))
    return (
        pieces < 0.5 * len(value)
        or re.search("(?i)^[^aeiouy]+$|[bcdfghjklmnpqrtvwxz]{6,}", value) is not None
    )


def _is_mix_of_letters(value: str) -> bool:
    """Tell whether upper and lower case letters alternate as in no word and no name in code."""
    mixed = value.isalpha() and not (value.islower() or value.isupper() or value.istitle())
    return mixed and (_is_jumbled(value) or _changes_case(value))


def _is_placeholder(value: str) -> bool:
    """Tell whether a value is a placeholder: a reference, an expression, an example word, a mask."""
    if re.match(
        r"[<{\[(@|>]|\$[({A-Za-z_]|%(?:[({]|[A-Za-z_]\w*%|[sdv]$)|!(?:vault|ref|env|secret)|(?:env|vault|op|aws-sm|ref\+\w+|file|secretref|keyring|keychain|bw)[:/]"
        r"|ENC\[|arn:|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|[A-Za-z_]\w*\[|[A-Za-z_][\w.]*\(|[A-Za-z_]+(?:\.[A-Za-z_]+)+(?:_?[0-9]{1,3})?(?:$|[\[(])|os\.|process\.|(?:/|\./|~/)[\w.-]+/",
        value,
    ):
        return True
    if len(set(value)) <= 3 or "EXAMPLE" in value or re.search(r"[*•]{3}|\.{3}|…|[xX]{4}|_{3}|-{3}", value):
        return True
    return _has_placeholder_word(value)


def _has_placeholder_word(value: str) -> bool:
    """Tell whether more than half of the letters are placeholder words."""
    words = [word.lower() for word in _CASED_WORD.findall(value) if not word.isdecimal()]
    placeholder_letters = sum(len(word) for word in words if word in PLACEHOLDER_WORDS)
    whole = sum(map(len, words))
    return whole > 0 and 2 * placeholder_letters > whole and len(value) <= 2 * whole


_BASE32 = _Lazy(r"(?=[A-Z]*[2-7])[A-Z2-7]{16,}=*")
_PIECE = _Lazy(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")
#: Sequences of letters that do not occur in words.
_NOT_IN_WORDS = _Lazy(r"(?i)^[^aeiouy]{5,}$|[bcdfghjklmnpqrtvwxz]{5,}|[jqvxz]{2}|(.)\1\1")
_PART = "(?:[A-Za-z][a-z]*|[A-Z]+|v?[0-9]{1,4})"
_BETWEEN = "[-_./:@+=]"
_PARTS = _Lazy(f"{_BETWEEN}*{_PART}(?:{_BETWEEN}+{_PART})+{_BETWEEN}*")


def _is_wordy(value: str) -> bool:
    """Tell whether a text consists of words, numbers and marks, like names, slugs and paths."""
    if _BASE32.fullmatch(value):
        return False
    if _PARTS.fullmatch(value):
        return True
    digits = sum(map(str.isdigit, value))
    pieces = sum(len(piece) for piece in _PIECE.findall(value) if not _NOT_IN_WORDS.search(piece))
    return pieces >= 0.6 * len(value) and digits <= 0.15 * len(value) and not _changes_case(value)


#: Minimum changes of case per letter in random text: random text has about 0.5, names of many short words have 0.36.
_MIN_RANDOM_CHANGES = 0.42


def _changes_case(value: str) -> bool:
    """Tell whether letters change case as often as in random text."""
    letters = [char.isupper() for char in value if char.isalpha()]
    changes = sum(a != b for a, b in pairwise(letters))
    return len(letters) >= 12 and changes >= _MIN_RANDOM_CHANGES * len(letters)


# -- strong passwords without a name -----------------------------------------------------------------------------

_MARKS = b"!#$%^&*?@+~"
#: Maps letters and digits to one byte, the marks of passwords to another, dash and underscore to a third.
_AS_MARKED = bytes(
    0x31
    if chr(byte).isalnum() and byte < 128
    else 0x32
    if byte in _MARKS
    else 0x33
    if byte in b"-_"
    else 0x20
    for byte in range(256)
)
_AROUND = frozenset(" \t\r\n\"'`「“”」|,;()[]<>。，；、：")


def _strong_words(text: str, raw: bytes) -> Iterator[_Span]:
    """Yield words of 8 to 40 upper and lower case letters, digits and marks, which prose and code hardly contain."""
    marks = raw.translate(_AS_MARKED)
    at = marks.find(b"121")
    while at >= 0:
        start, end = marks.rfind(b" ", 0, at) + 1, marks.find(b" ", at)
        end = end if end >= 0 else len(marks)
        if (
            8 <= end - start <= 40
            and _stands_alone(text, start, end)
            and _is_strong_word(text[start:end])
            and not _PUBLIC.search(text, max(0, start - 40), start)
            and not _is_in_url(text, start)
        ):
            yield start, end, "password"
        at = marks.find(b"121", end)


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Tell whether a word is delimited as in prose, is a value, or follows a user name."""
    after = text[end : end + 2]
    if (
        after
        and after[0] not in _AROUND
        and not (after[0] in ".:" and (len(after) == 1 or after[1].isspace()))
        and after[0].isascii()
    ):
        return False
    if start == 0 or text[start - 1] in _AROUND or not text[start - 1].isascii():
        return True
    return (
        text[start - 1] in ":=/>"
        and re.search(r"(?:^|[\s,;|(\"'`])[a-zA-Z0-9_.@-]{1,40}[:=/>]$", text[max(0, start - 60) : start])
        is not None
    )


def _is_strong_word(word: str) -> bool:
    if (
        not all(re.search(kind, word) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
        or _is_placeholder(word)
        or re.match(METHODS, word)
    ):
        return False
    plain = re.sub(
        r"%[0-9A-F]{2}|#[0-9A-Fa-f]{3,8}$|^[a-z][\w-]{2,}@(?=\w{4})|^[^+]*(?:\+[^+]*)+$(?<=.{17})", "", word
    )
    pieces = sum(len(piece) for piece in _PIECE.findall(word) if not _NOT_IN_WORDS.search(piece))
    return re.search(r"[A-Za-z0-9][!#$%^&*?@+~][A-Za-z0-9]", plain) is not None and pieces < 0.5 * len(word)


# -- columns of a table ------------------------------------------------------------------------------------------

_COLUMN = _Lazy(
    lambda: (
        f"(?i)(?:{_trie(sorted({*PASSWORD_NAMES, 'secret', 'token', 'api key', 'apikey', 'api_key', 'pass', 'pw', 'pin'}))})"
        r"[ \t\"*`]{0,4}(?P<edge>[|,;\t]|\r?\n|$)"
    )
)
_MAX_ROWS = 200


def _columns(text: str, places: list[int]) -> Iterator[_Span]:
    """Yield the cells below a heading that names a secret, in Markdown, CSV or between tabs."""
    last = -1
    for at in places:
        match = _COLUMN.match(text, at) if at > last else None
        if match is None:
            continue
        line = text.rfind("\n", 0, at) + 1
        last = stop = len(text) if (stop := text.find("\n", at)) < 0 else stop
        heading = text[line:stop] if stop - line <= 400 else ""
        mark = next((mark for mark in "|\t;," if mark in heading), None)
        if mark is None or (mark in ",;" and mark + " " in heading):
            continue
        number = text.count(mark, line, at)
        headings = [cell.strip(' \t\r"*`') for cell in heading.split(mark)]
        if max(map(len, headings)) > 30 or not _COLUMN.search(headings[number]):
            continue
        for _ in range(_MAX_ROWS):
            start, stop = stop + 1, text.find("\n", stop + 1)
            stop = stop if stop >= 0 else len(text)
            cells = text[start:stop].split(mark)
            if len(cells) != len(headings) or start > len(text):
                break
            last = start  # rows are not searched for headings
            cell = cells[number].strip(" \t\r\"'*`")
            first = start + sum(len(before) + 1 for before in cells[:number]) + cells[number].find(cell)
            if (
                len(cell) >= 7
                and " " not in cell
                and any(map(str.isdigit, cell))
                and (_is_strong(cell) or _is_mixed(cell) or _is_token(cell))
            ):
                yield first, first + len(cell), "secret in a table"


# -- long tokens without a name ----------------------------------------------------------------------------------

_LONG_TOKEN = _Lazy(r"[A-Za-z0-9+/_-]{32,512}+={0,2}")
_HEX_KEY = _Lazy(r"(?<![0-9A-Za-z])0x[0-9a-fA-F]{64}(?![0-9a-zA-Z])")
_PUBLIC_BLOCK = _Lazy(r"-----BEGIN (?![A-Z ]{0,40}PRIVATE)[A-Z0-9 ]{1,40}-----(?:[^-]|-(?!----)){0,20000}")
_PUBLIC = _Lazy(PUBLIC_BEFORE)
_HASH = _Lazy(HASH_BEFORE)
#: CIDs, peer ids and addresses in base 58.
_ADDRESS = _Lazy(
    r"(?:Qm|12D3KooW|16Uiu2HA|z[a-z2]?)?[1-9A-HJ-NP-Za-km-z]{43,48}|[13][1-9A-HJ-NP-Za-km-z]{25,34}"
)
#: Public keys, hashes, and service keys meant for web pages.
_PUBLIC_TOKEN = _Lazy(r"AAAA|sha[0-9]{1,3}-|[xyztu]pub|p[hk]c?[_-](?:live_|test_|lf-)?")
_MIN_ENTROPY = 4.2  # bits per character: more than English and paths, less than 32 random characters


def _tokens(text: str, runs: list[tuple[int, int]]) -> Iterator[_Span]:
    if not runs:
        return
    public = [m.span() for m in _PUBLIC_BLOCK.finditer(text)] if "-----BEGIN" in text else []
    hexes = (run for run in runs if text.find("0x", *run) >= 0)
    for match in (match for start, end in hexes for match in _HEX_KEY.finditer(text, start, end + 1)):
        start = match.start()
        if (
            len(set(match[0])) > 6
            and not _HASH.search(text, max(0, start - 60), start)
            and not _is_in_url(text, start)
        ):
            yield start, match.end(), "private key (hex)"
    for match in (match for start, end in runs for match in _LONG_TOKEN.finditer(text, start, end)):
        start = match.start()
        if (
            _is_random(match[0])
            and not _PUBLIC.search(text, max(0, start - 40), start)
            and not _is_in_url(text, start)
            and not any(first <= start < last for first, last in public)
        ):
            yield start, match.end(), "random token"


def _is_in_url(text: str, at: int) -> bool:
    """Tell whether a position is inside a URL."""
    near = text[max(0, at - 300) : at]
    return "://" in near[max(near.rfind(blank) for blank in " \n\t\"'<(") + 1 :]


def _is_random(token: str) -> bool:
    if _PUBLIC_TOKEN.match(token) or _is_wordy(token) or _ADDRESS.fullmatch(token):
        return False  # public SSH key, hash, name, CID or address
    kinds = (
        any(c.islower() for c in token) + any(c.isupper() for c in token) + any(c.isdigit() for c in token)
    )
    if kinds < 3:
        return False
    size = len(token)
    return -sum(n / size * math.log2(n / size) for n in Counter(token).values()) >= _MIN_ENTROPY
