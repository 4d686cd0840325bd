"""A scan for secrets in text before it is remembered, published or shown to a model.

The rules are data, in `bundle.secret_kinds`. A finding has a kind and a line number, never the secret. The scan is a safety net with
holes: silence proves nothing.
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
from itertools import pairwise
from typing import Any

import msgspec

from ipfsmem.bundle.secret_kinds import (
    CAPITALS,
    HASH_BEFORE,
    HEX,
    KEY_OWNERS,
    METHODS,
    NAME_TAILS,
    PASSWORD_NAMES,
    PLACEHOLDER_WORDS,
    PREFIXES,
    PUBLIC_BEFORE,
    PUBLIC_WORDS,
    SECRET_NAMES,
    SENTENCE,
    SHAPES,
)
from ipfsmem.wordlist import word_indexes

_Span = tuple[int, int, str]


class SecretFinding(msgspec.Struct, frozen=True, order=True):
    """Where a secret seems to be: `line` from 1, and character offsets into the text."""

    line: int
    start: int
    end: int
    kind: str

    def __str__(self) -> str:
        """Line and kind; never the secret."""
        return f"line {self.line}: {self.kind}"


class _Lazy:
    """A pattern that is compiled when it is first used: most texts need few of them, and compiling all takes longer than scanning."""

    def __init__(self, pattern: str | Callable[[], str]) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        made = re.compile(self._pattern if isinstance(self._pattern, str) else self._pattern())
        # The methods of the compiled one are found as attributes from now on.
        self.search, self.match, self.fullmatch, self.finditer = (
            made.search,
            made.match,
            made.fullmatch,
            made.finditer,
        )
        return getattr(made, name)


def find_secrets(text: str) -> list[SecretFinding]:
    """All findings in the order of the text; overlapping ones are one, named after the more telling rule."""
    seen, places = _visible(text)
    spans: list[_Span] = []  # sorted, none overlaps another
    raw = seen.encode("utf-8", "replace")
    lower = _lower(seen)
    runs = raw.translate(_AS_TOKENS)
    long_run = _LONG_RUN in runs
    if _SHORT_RUN in runs:
        _add(spans, _prefixed(seen))
    for number in sorted({number for hint, number in _HINTS if hint in lower}):
        kind, needs_long, pattern = _SHAPES[number]
        if (long_run or not needs_long) and (number != _NUMBERS or seen.count(",") >= 63):
            _add(spans, [(m.start(), m.end(), kind) for m in pattern.finditer(seen) if _is_finding(m)])
    _add(spans, _spoken(seen, lower, long_run))
    _add(spans, _assigned(seen, lower))
    if len(raw.translate(None, _NO_DIGITS)) >= _CARD_DIGITS:
        _add(spans, [(m.start(), m.end(), "card number") for m in _CARD.finditer(seen) if _is_card(m[0])])
    if _has_twelve_list_words(raw):
        _add(spans, _phrases(seen))
    if long_run:
        _add(spans, _tokens(seen))
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
    """`text` with each finding replaced by `[removed: <kind>]`."""
    parts: list[str] = []
    at = 0
    for found in find_secrets(text):
        parts += [text[at : found.start], f"[removed: {found.kind}]"]
        at = found.end
    return "".join(parts) + text[at:]


def _add(spans: list[_Span], found: Iterable[_Span]) -> None:
    for span in found:
        at = bisect_left(spans, span)
        after_previous = at == 0 or spans[at - 1][1] <= span[0]
        if after_previous and (at == len(spans) or span[1] <= spans[at][0]):
            spans.insert(at, span)


# -- recovery phrases --------------------------------------------------------------------------------------------

_WORD = re.compile(r"[A-Za-z]+")
# Words of one phrase stand this close: numbers, list marks, commas, line ends between them.
_GAP = re.compile(r"[^A-Za-z]{1,8}")
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
#: Letters in lower case, everything else a space.
_AS_WORDS = bytes(byte | 0x20 if byte in _LETTERS else 0x20 for byte in range(256))
#: A word of every stretch that is too short for twelve words of the list (three letters and a space each) before it.
_SAMPLED_WORD = re.compile(rb"(?s:.{43})[a-z]*+[^a-z]*+([a-z]*+)")
_TWELVE = b"\1" * 12


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


#: Characters that no reader sees, and full-width forms of ASCII: a token with some of them is still copied and used.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_FULL_WIDTH = range(0xFF01, 0xFF5F)
_DISGUISED = _Lazy("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff\uff01-\uff5e]")


def _visible(text: str) -> tuple[str, list[int] | None]:
    """The text as a reader sees it in ASCII; with the place of each character in `text`, if that is another one."""
    if text.isascii() or not _DISGUISED.search(text):
        return text, None
    places = [n for n, char in enumerate(text) if not _INVISIBLE.match(char)]
    return "".join(
        chr(ord(text[n]) - 0xFEE0) if ord(text[n]) in _FULL_WIDTH else text[n] for n in places
    ), places


# -- what begins like a token of a service -----------------------------------------------------------------------


def _trie(words: list[str]) -> str:
    """A pattern for any of some words that looks at each character once."""
    if words == [""]:
        return ""
    heads = sorted({word[0] for word in words if word})
    parts = [re.escape(head) + _trie([word[1:] for word in words if word[:1] == head]) for head in heads]
    return f"(?:{'|'.join(parts)}){'?' if '' in words else ''}"


_KNOWN = {prefix: (kind, rest, least) for kind, prefixes, rest, least in PREFIXES for prefix in prefixes}
_RESTS = {rest: _Lazy(f"[{rest}]{{1,4000}}+") for _, _, rest, _ in PREFIXES}
_PREFIX = _Lazy(lambda: f"(?<![A-Za-z0-9])(?:{_trie(sorted(_KNOWN))})")
#: Prefixes that are long enough to be no accident; what follows the others must look random.
_TELLING_PREFIX = 6


def _prefixed(text: str) -> Iterator[_Span]:
    at = 0
    while (match := _PREFIX.search(text, at)) is not None:
        at = match.end()
        kind, alphabet, least = _KNOWN[match[0]]
        rest = _RESTS[alphabet].match(text, at)
        if rest is None or len(rest[0]) < least or len(set(rest[0])) < 5:
            continue
        if (
            len(match[0]) < _TELLING_PREFIX
            and alphabet not in (CAPITALS, HEX)
            and (_is_wordy(rest[0]) or not (re.search("[0-9]", rest[0]) or _changes_case(rest[0])))
        ):
            continue
        if _has_placeholder_word(rest[0]):
            continue
        at = rest.end()
        yield match.start(), at, kind


# -- shapes ----------------------------------------------------------------------------------------------------

#: Shapes that hold a run of at least so many characters of a token; most texts have none.
_LONG = frozenset({"Discord token", "private key (hex)", "private key (WIF)", "Terraform token"})
_SHAPES = tuple((kind, kind in _LONG, _Lazy(pattern)) for kind, _, pattern in SHAPES)
_NUMBERS = next(n for n, (kind, _, _) in enumerate(SHAPES) if kind == "private key (numbers)")
_HINTS = tuple((hint.lower(), n) for n, (_, hints, _) in enumerate(SHAPES) for hint in hints)
_TOKEN_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_=-.%"
#: A character of a token as one byte, everything else as another.
_AS_TOKENS = bytes(0x31 if byte in _TOKEN_BYTES else 0x20 for byte in range(256))
_SHORT_RUN = b"1" * 15
_LONG_RUN = b"1" * 24
_NO_DIGITS = bytes(byte for byte in range(256) if byte not in b"0123456789")
_CARD_DIGITS = 15
_CARD = _Lazy(
    r"(?<![0-9-])(?:(?:4[0-9]{3}|5[1-5][0-9]{2}|2[2-7][0-9]{2}|6011|65[0-9]{2})(?:[ -][0-9]{4}){3}|3[47][0-9]{2}[ -][0-9]{6}[ -][0-9]{5})(?![0-9-])"
)


def _is_finding(match: re.Match[str]) -> bool:
    """Whether a match is a finding: a pattern with a group `is` also matches what it passes over."""
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
    return True


def _is_basic(text: str) -> bool:
    """Whether it is base64 of a name and a password."""
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return False
    name, colon, word = plain.partition(":")
    return bool(name and colon and word) and plain.isprintable() and not _is_placeholder(word)


_SPOKEN = _Lazy(SENTENCE)
_SPOKEN_TOKENS = ("key", "token", "secret")
_SPOKEN_STEMS = (*sorted({name[:4] for name in PASSWORD_NAMES if name.isascii()}), "pin")
_TOKEN_STEMS = ("api", "access", "auth", "secret", "private", "license", "token")
_OTHER_SPOKEN_STEMS = tuple(sorted({name[:4] for name in PASSWORD_NAMES if not name.isascii()}))


def _spoken(text: str, lower: str, tokens: bool) -> Iterator[_Span]:
    stems = _SPOKEN_STEMS
    if tokens:
        stems += _TOKEN_STEMS
    if not text.isascii():
        stems += _OTHER_SPOKEN_STEMS
    for at in _places(lower, stems):
        match = _SPOKEN.match(text, at)
        if match is not None and _is_spoken(match["what"], match["spoken"]):
            yield at, match.end(), "password in a sentence"


def _lower(text: str) -> str:
    """The text in lower case, each character at its place."""
    lower = text.lower()
    return (
        lower
        if len(lower) == len(text)
        else "".join(low if len(low := char.lower()) == 1 else char for char in text)
    )


def _places(lower: str, stems: tuple[str, ...]) -> list[int]:
    """The offsets of any of some texts, in order."""
    found = []
    for stem in stems:
        at = lower.find(stem)
        while at >= 0:
            found.append(at)
            at = lower.find(stem, at + 1)
    return sorted(set(found))


def _is_spoken(what: str, word: str) -> bool:
    """Whether what a sentence calls a password looks like one."""
    word = word.rstrip(".,;:)\"'`")
    if what.lower().startswith(("pin", "暗証番号")) or (what.lower() == "passcode" and word.isdecimal()):
        return word.isdecimal() and 4 <= len(word) <= 8
    if what.lower().endswith(_SPOKEN_TOKENS):
        return _is_token(word)
    if (
        len(word) < 6
        or re.match(METHODS, word)
        or re.match(r"[/~$<{@]|[a-z]+://|[\w.+-]+@[\w-]+\.[\w.]+$", word)
        or _is_placeholder(word)
    ):
        return False
    letter = any(map(str.isalpha, word))
    return letter and (any(map(str.isdigit, word)) or bool(re.search(r"[!#$%^&*+?=](?!$)", word)))


def _is_strong(word: str) -> bool:
    """Whether a word looks like a password in any context: upper and lower case with digits or punctuation."""
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
    """Whether it is made of words, as names in code are: `oauth2Client`, `base64Encode`."""
    return sum(len(piece) for piece in _PIECE.findall(word)) >= 0.75 * len(word)


def _is_token(word: str) -> bool:
    """Whether a word looks like a service token in any context."""
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
    """Whether the digits have Luhn's check digit (ISO/IEC 7812-1)."""
    digits = [int(char) for char in reversed(text) if char.isdigit()]
    doubled = (2 * digit - 9 * (digit > 4) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


# -- assigned secrets ------------------------------------------------------------------------------------------

_ENDINGS = sorted(
    (*SECRET_NAMES, "key", "keys", "pass", "pw", "pat", "auth"), key=lambda word: (-len(word), word)
)
#: How the endings begin: a search for these is quicker than one for the pattern.
_STEMS = tuple(sorted({word[:4] for word in _ENDINGS if word.isascii() and word not in ("keys", "pwd")}))
_OTHER_STEMS = tuple(sorted({word[:4] for word in _ENDINGS if not word.isascii()}))
_ASSIGNED = _Lazy(
    rf"(?i)(?P<end>{'|'.join(_ENDINGS)})(?P<tail>(?:[_.-]?(?:{'|'.join(sorted(NAME_TAILS, key=len, reverse=True))})\b){{0,2}})"
    r"(?P<close>[\"'`\])*]{0,4})[ \t]{0,8}(?P<sign>=>|:=|[:=>|：–—]|(?<=[\"'])(?:,|[ ]value[ ]?=)|\n[ ]{1,20}[\"']?value[\"']?:|</(?:key|name)>\s{0,20}<(?:string|value)>|(?<=[ ])-(?=[ ])|(?<=[ ])(?!value)(?=[^\s]{0,60}[0-9!#$%^&*+?=]))\*{0,3}[ \t]{0,8}(?P<quote>[bru]{0,2}[\"'`])?(?P<value>[^\s\"'`,;<>]{4,400})"
)
_BEFORE = _Lazy(r"(?:[A-Za-z0-9_.-]{1,40}[ ]){0,2}[A-Za-z0-9_.-]{0,60}$")
_CASED_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORDS = ("pass", "pw", *PASSWORD_NAMES)
_STRONG_SIGNS = frozenset((":", "=", ":=", "=>", ""))
#: In lower case names that end in these need a word before them, as they are words of their own.
_SHORT_NAMES = frozenset({"key", "keys", "pass", "pw", "pat", "auth"})
_OWNED = KEY_OWNERS | {"db", "database", "smtp", "imap", "mail", "ftp", "git", "github", "gitlab", "basic", "user", "rpc", "http", "proxy"}  # fmt: skip


def _assigned(text: str, lower: str) -> Iterator[_Span]:
    end = 0
    stems = _STEMS if text.isascii() else _STEMS + _OTHER_STEMS
    for at in _places(lower, stems):
        match = _ASSIGNED.match(text, at) if at >= end else None
        if match is not None and _is_secret_name(text, match) and _is_secret_value(text, match):
            end = match.end()
            yield at, end, "assigned secret"


def _is_secret_name(text: str, match: re.Match[str]) -> bool:
    """Whether the name that ends in `match` is one of a secret, in any case style."""
    before = _BEFORE.search(text, max(0, match.start() - 130), match.start())
    given = before[0] if before else ""
    owned, _, own = given.rpartition(" ")
    words = [word.lower() for word in _CASED_WORD.findall(own + match["end"] + match["tail"])]
    end = match["end"].lower()
    if not end.isascii():
        return True
    # "monkey" and "compass" end so too: the ending begins a word, or stands behind a mark, in all capitals, or is a long one
    starts = not own or not own[-1].isalnum() or (match["end"][0].isupper() and not own[-1].isupper())
    if not starts and not (len(end) >= 5 and own.isalpha()):
        return False
    if PUBLIC_WORDS.intersection(words):
        return False
    if end not in _SHORT_NAMES or (
        end in ("pass", "pw") and match["sign"] in _STRONG_SIGNS and _is_strong(match["value"])
    ):
        return True
    spoken = [word.lower() for word in _CASED_WORD.findall(owned)][-1:]
    owners = KEY_OWNERS if end.startswith("key") else _OWNED
    return bool(owners.intersection(words[:-1] or spoken) or owners.intersection(spoken))


def _is_secret_value(text: str, match: re.Match[str]) -> bool:
    """Whether what is assigned looks like a secret and not like a word, a reference or a placeholder."""
    value = match["value"].rstrip(")]}.:")
    password = match["end"].lower().startswith(_PASSWORDS)
    quoted = match["quote"] is not None
    if match["sign"] in ("", "|"):  # a space or the edge of a table's cell: it must look like one by itself
        return _is_strong(value) if password else _is_token(value)
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
        return False  # a variable
    if not password:
        return not _is_wordy(value) and (digits or _changes_case(value))
    if letters and (digits or bool(re.search(r"[!$%^&*+#?~=]", value))):
        return (
            not re.fullmatch(r"[a-z]+(?:[-_./][a-z]+)*[-_]?v?[0-9]", value)
            or "-" not in value
            or len(value) < 24
        )
    if not letters:
        return digits and len(value) >= 8
    alone = match.end() == len(text) or text[match.end()] in "\r\n\"'`,;<" or quoted
    return alone and ((value.isalpha() and len(value) >= 16) or value.count("-") >= 3 or _changes_case(value))


def _is_placeholder(value: str) -> bool:
    """Whether a value is a placeholder: a reference, an expression, an example word, a mask."""
    if re.match(
        r"[<{\[(@|>]|\$[({A-Za-z_]|%(?:[({]|[A-Za-z_]\w*%|[sdv]$)|!(?:vault|ref|env|secret)|(?:env|vault|op|aws-sm|ref\+\w+|file|secretref|keyring|keychain|bw)[:/]"
        r"|ENC\[|arn:|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|[A-Za-z_][\w.]*\(|[A-Za-z_]+(?:\.[A-Za-z_]+)+(?:_?[0-9]{1,3})?(?:$|[\[(])|os\.|process\.|(?:/|\./|~/)[\w.-]+/",
        value,
    ):
        return True
    if len(set(value)) <= 3 or re.search(r"[*•]{3}|\.{3}|…|[xX]{4}|_{3}|-{3}", value):
        return True
    return _has_placeholder_word(value)


def _has_placeholder_word(value: str) -> bool:
    """Whether example words make up at least half of it."""
    words = [word.lower() for word in _CASED_WORD.findall(value) if not word.isdecimal()]
    known = sum(len(word) for word in words if word in PLACEHOLDER_WORDS)
    whole = sum(map(len, words))
    return whole > 0 and 2 * known > whole and len(value) <= 2 * whole


_BASE32 = _Lazy(r"(?=[A-Z]*[2-7])[A-Z2-7]{16,}=*")
_PIECE = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")
#: Letters that no word has.
_UNSPEAKABLE = _Lazy(r"(?i)^[^aeiouy]{5,}$|[bcdfghjklmnpqrtvwxz]{5,}|[jqvxz]{2}|(.)\1\1")


def _is_wordy(value: str) -> bool:
    """Whether it is made of words, numbers and marks, as names, slugs and paths are."""
    if _BASE32.fullmatch(value):
        return False
    parts = [part for part in re.split(r"[-_./:@+=]", value) if part]
    if len(parts) > 1 and all(re.fullmatch(r"[A-Za-z]?[a-z]*|[A-Z]+|v?[0-9]{1,4}", part) for part in parts):
        return True
    digits = sum(map(str.isdigit, value))
    pieces = sum(len(piece) for piece in _PIECE.findall(value) if not _UNSPEAKABLE.search(piece))
    return pieces >= 0.6 * len(value) and digits <= 0.15 * len(value) and not _changes_case(value)


#: Changes of case a letter: about .5 at random, .36 in names of many short words.
_RANDOM_CHANGES = 0.42


def _changes_case(value: str) -> bool:
    """Whether letters change between upper and lower case as they do at random."""
    letters = [char.isupper() for char in value if char.isalpha()]
    changes = sum(a != b for a, b in pairwise(letters))
    return len(letters) >= 12 and changes >= _RANDOM_CHANGES * len(letters)


# -- long tokens that nothing names ------------------------------------------------------------------------------

_LONG_TOKEN = _Lazy(r"[A-Za-z0-9+/_-]{32,512}+={0,2}")
_HEX_KEY = _Lazy(r"(?<![0-9A-Za-z])0x[0-9a-fA-F]{64}(?![0-9a-zA-Z])")
_PUBLIC_BLOCK = _Lazy(r"-----BEGIN (?![A-Z ]{0,40}PRIVATE)[A-Z0-9 ]{1,40}-----(?:[^-]|-(?!----)){0,20000}")
_PUBLIC = _Lazy(PUBLIC_BEFORE)
_HASH = _Lazy(HASH_BEFORE)
#: CIDs, peer ids and addresses in base 58.
_ADDRESS = _Lazy(r"(?:Qm|12D3KooW|16Uiu2HA)?[1-9A-HJ-NP-Za-km-z]{43,45}|[13][1-9A-HJ-NP-Za-km-z]{25,34}")
#: Public keys, hashes, and the keys of services that are meant for web pages.
_PUBLIC_TOKEN = _Lazy(r"AAAA|sha[0-9]{1,3}-|[xyztu]pub|p[hk]c?[_-](?:live_|test_|lf-)?")
_MIN_ENTROPY = 4.2  # bits a character; English and paths stay below, random base64 of 32 characters above


def _tokens(text: str) -> Iterator[_Span]:
    public = [m.span() for m in _PUBLIC_BLOCK.finditer(text)] if "-----BEGIN" in text else []
    for match in _HEX_KEY.finditer(text):
        start = match.start()
        if not _HASH.search(text, max(0, start - 60), start) and not _is_in_url(text, start):
            yield start, match.end(), "private key (hex)"
    for match in _LONG_TOKEN.finditer(text):
        start = match.start()
        if (
            _is_random(match[0])
            and not _PUBLIC.search(text, max(0, start - 40), start)
            and not _is_in_url(text, start)
            and not any(first <= start < last for first, last in public)
        ):
            yield start, match.end(), "random token"


def _is_in_url(text: str, at: int) -> bool:
    """Whether a place is inside a URL."""
    near = text[max(0, at - 300) : at]
    return "://" in near[max(near.rfind(blank) for blank in " \n\t\"'<(") + 1 :]


def _is_random(token: str) -> bool:
    if _PUBLIC_TOKEN.match(token) or _is_wordy(token) or _ADDRESS.fullmatch(token):
        return False  # a public SSH key, a hash, a name, a CID or an address
    kinds = (
        any(c.islower() for c in token) + any(c.isupper() for c in token) + any(c.isdigit() for c in token)
    )
    if kinds < 3:
        return False
    size = len(token)
    return -sum(n / size * math.log2(n / size) for n in Counter(token).values()) >= _MIN_ENTROPY
