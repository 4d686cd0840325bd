"""Decide whether the author of a text is the reader or another person (format section 5.2).

A value is the reader's own when both its signer and the device in `author` belong to the reader's person. Authorship
does not change the view, the digest or the root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ipfsmem.causal.value import FOREIGN, Entry, Value
from ipfsmem.causal.view import in_view_order

#: Tells whether a device id belongs to the reader's person. False for an unknown id.
IsMine = Callable[[str], bool]


def is_own(dot: str, of: str, mine: IsMine) -> bool:
    """Tell whether a value with this dot and this `author` is the reader's own."""
    return mine(dot[:16]) and (not of or (of != FOREIGN and mine(of)))


def author_of_copy(dot: str, value: Value, mine: IsMine) -> str:
    """Return the `author` field for a re-signed copy of this value; "" if the reader's person wrote the value.

    The signer cannot verify an `author` that names the signer's own person, so the copy of such a value names the
    original signer.
    """
    if value.author and (value.author == FOREIGN or not mine(value.author)):
        return value.author
    return "" if mine(dot[:16]) else dot[:16]


def author_of_replacement(entry: Entry, replaces: Iterable[str], body: str, mine: IsMine) -> str:
    """Return the `author` field of a new text with the hash `body` that replaces these dots.

    The author is that of the first foreign text among the dots, in view order; "" if there is no such text, or if the
    reader's own value in the entry has the same body.
    """
    own = {value.body for dot, value in entry.items() if is_own(dot, value.author, mine)}
    if body in own or (len(entry) == 1 and own):
        return ""
    gone = {dot: entry[dot] for dot in replaces if dot in entry}
    named = {id(value): dot for dot, value in gone.items()}
    for value in in_view_order(gone, gone):
        if value.body is not None and value.body not in own:
            return author_of_copy(named[id(value)], value, mine)
    return ""
