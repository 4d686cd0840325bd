"""Whose word a text is: a reader's own, or others' (format section 5.2).

A value is a reader's own when its signer, and whoever `of` names, are of the reader's person; else it is others'. There are
these two levels and no more. Nothing here says who is of which person: that comes in as a function of an id. It changes
neither view, digest nor root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ipfsmem.causal.value import FOREIGN, Entry, Value
from ipfsmem.causal.view import in_view_order

#: Whether a device id is of the reader's person. False for an id of which nothing is known.
IsMine = Callable[[str], bool]


def is_own(dot: str, of: str, mine: IsMine) -> bool:
    """Whether a value with this dot and this `of` is the word of the reader's own person."""
    return mine(dot[:16]) and (not of or (of != FOREIGN and mine(of)))


def of_when_copied(dot: str, value: Value, mine: IsMine) -> str:
    """The `of` under which this value goes on when it is signed anew or copied; "" when it is the writer's own word.

    Whoever signs others' texts cannot check an `of` that names the signer's own person: then the text's signer is named.
    """
    if value.of and (value.of == FOREIGN or not mine(value.of)):
        return value.of
    return "" if mine(dot[:16]) else dot[:16]


def of_when_replacing(entry: Entry, replaces: Iterable[str], body: str, mine: IsMine) -> str:
    """The `of` of a new text with the hash `body` that replaces these dots: that of the first text of others among them,
    in view order. "" when there is none, or when an own value here has the same body: of equal bodies own wins.
    """
    own = {value.body for dot, value in entry.items() if is_own(dot, value.of, mine)}
    if body in own:
        return ""
    gone = {dot: entry[dot] for dot in replaces if dot in entry}
    named = {id(value): dot for dot, value in gone.items()}
    for value in in_view_order(gone, gone):
        if value.body is not None and value.body not in own:
            return of_when_copied(named[id(value)], value, mine)
    return ""
