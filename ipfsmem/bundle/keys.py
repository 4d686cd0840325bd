"""Check memory keys and scope tokens, and convert between keys and file names (format section 1.1).

File names are built from checked keys only; external input is never used as a path.
"""

import hashlib
import unicodedata
from typing import NamedTuple

from ipfsmem.errors import FormatError, KeyNameError
from ipfsmem.lazy_pattern import lazy_pattern
from ipfsmem.locations import is_name

INDEX_FILE = "MEMORY.md"
RESERVED = frozenset(
    ["memory", "con", "prn", "aux", "nul"] + [f"{port}{n}" for port in ("com", "lpt") for n in range(10)]
)

#: Names with a meaning on the command line or in the file layout, which are not allowed as scope names.
RESERVED_SCOPES = frozenset(["timeline", "scopes", "all", "global"])

_OTHER = lazy_pattern(r"[^a-z0-9_-]+")
_CONFLICT = lazy_pattern(r"([a-z0-9][a-z0-9_-]{0,63})\.conflict-([0-9a-f]{8})\.md")
_DAY = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CUT = 55
_SCOPE_HINT = (
    "A scope is 1 to 64 characters of a-z, 0-9, _ and -, starting with a letter or digit, for instance my-project; "
    "the title can be changed later, the name cannot."
)


def is_key(s: str) -> bool:
    """Tell whether `s` is a valid memory key: `[a-z0-9][a-z0-9_-]{0,63}` and not reserved."""
    return is_name(s) and s not in RESERVED


def check_key(s: str) -> str:
    """Return `s` if it is a valid key, else raise KeyNameError naming it."""
    if not is_name(s):
        plain = "".join(c for c in unicodedata.normalize("NFKD", s) if not unicodedata.combining(c))
        if is_key(near := _stem(plain, 64)):
            raise KeyNameError(
                f"not a memory key: {_shortened(s)}",
                hint="A key is 1 to 64 characters of a-z, 0-9, _ and -, starting with a letter or digit, "
                f"for instance {near}; the name of a memory may be any text.",
            )
        raise KeyNameError(f"not a memory key: {_shortened(s)}")
    if s in RESERVED:
        raise KeyNameError(f"reserved, so not a memory key: {_shortened(s)}")
    return s


def is_scope(s: str) -> bool:
    """Tell whether `s` is a scope token: a key other than `timeline scopes all global` and not date-like."""
    return is_key(s) and s not in RESERVED_SCOPES and _DAY.fullmatch(s) is None


def check_scope(s: str) -> str:
    """Return `s` if it is a scope token, else raise KeyNameError naming it."""
    if not is_name(s):
        raise KeyNameError(f"not a scope: {_shortened(s)}", hint=_SCOPE_HINT)
    if not is_scope(s):
        why = "a date" if _DAY.fullmatch(s) else "reserved"
        raise KeyNameError(f"{why}, so not a scope: {_shortened(s)}", hint=_SCOPE_HINT)
    return s


def file_name(key: str) -> str:
    """Return `<key>.md` after checking the key."""
    return check_key(key) + ".md"


def conflict_file_name(key: str, body_hash: str) -> str:
    """Return the file name of a conflicting sibling (format section 5); `body_hash` is its SHA-256 in hex."""
    name = f"{check_key(key)}.conflict-{body_hash[:8]}.md"
    if _CONFLICT.fullmatch(name) is None:
        raise FormatError(f"not a SHA-256 in lower-case hex: {_shortened(body_hash)}")
    return name


class ConflictName(NamedTuple):
    """The parts of a conflict copy's name: the key, and the first 8 hex digits of the body's SHA-256."""

    key: str
    digits: str


class ForeignName(NamedTuple):
    """The key of an external file name, and that name; None if the name is `<key>.md`."""

    key: str
    origin: str | None


def split_conflict_name(name: str) -> ConflictName | None:
    """Parse the name of a conflict copy; None for any other name."""
    match = _CONFLICT.fullmatch(name)
    if match is None or match[1] in RESERVED:
        return None
    return ConflictName(match[1], match[2])


def key_of_foreign_name(name: str) -> ForeignName:
    """Return the key of an external file name.

    The key depends only on the name, not on names seen before (format section 1.1). All Unicode normal forms of a
    name have the same key. Raises FormatError if the name is not Unicode text.
    """
    name = unicodedata.normalize("NFC", name)
    if name.endswith(".md") and is_key(name[:-3]):
        return ForeignName(name[:-3], None)
    try:
        digest = hashlib.sha256(name.encode()).hexdigest()
    except UnicodeEncodeError:
        raise FormatError(f"a file name is not Unicode text: {_shortened(name)}") from None
    return ForeignName(f"{_stem(name, _CUT) or 'x'}-{digest[:8]}", name)


def key_of_spelling(name: str) -> ForeignName:
    """Return the key of a file name without Unicode normalisation, under which older versions stored memories."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return ForeignName(f"{_stem(name, _CUT) or 'x'}-{digest[:8]}", name)


def _stem(name: str, most: int) -> str:
    """Return a file name's stem in lower case, with only characters that a key allows."""
    stem = unicodedata.normalize("NFKC", name.removesuffix(".md")).lower()
    return _OTHER.sub("_", stem).lstrip("_-").rstrip("_")[:most]


def _shortened(s: str) -> str:
    return ascii(s if len(s) <= 80 else s[:77] + "...")
