"""What can be brought back from states of which only a part can be read (format section 7.1).

A damaged head is one whose commit was verified and some of whose nodes nobody can read. It is never joined: its ctx covers
what stood in the lost nodes too, so joining it would delete that everywhere. What its readable nodes prove is worked out
here as changes that the salvaging device then makes in its own name. Pure: nothing here reads a node, signs or publishes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ipfsmem.causal.authorship import IsMine
from ipfsmem.causal.own_copies import unsigned_copies
from ipfsmem.causal.state import Ctx, covers, delete, write
from ipfsmem.causal.tree import name_digits
from ipfsmem.causal.value import Entry, Value, hash32
from ipfsmem.causal.value import dot as make_dot
from ipfsmem.errors import LimitError


class DamagedHead(msgspec.Struct, frozen=True):
    """What can be read of one damaged head.

    `differs` holds every entry of a proved leaf that is not as in the base, `{}` for one that provably is not there.
    `lost` are the prefixes below which nothing is proved. Everywhere else the head holds what the base holds.
    """

    ctx: Ctx
    differs: Mapping[str, Entry]
    lost: tuple[str, ...]

    def proves(self, name: str) -> bool:
        """Whether the hashes from the commit down say what this head holds under `name`."""
        return not (self.lost and name_digits(name).startswith(self.lost))

    def lacks(self, name: str, dot: str, base: Entry) -> bool:
        """Whether this head provably knew of a write and held it no more."""
        return covers(self.ctx, dot) and self.proves(name) and dot not in self.differs.get(name, base)


class SalvageChange(msgspec.Struct, frozen=True):
    """What a salvage does to one entry: the values to write under own dots, each with the dot that it had, and the dots of the
    base to delete."""

    name: str
    taken: tuple[tuple[str, Value], ...]
    gone: tuple[str, ...]


def salvage(base: Mapping[str, Entry], base_ctx: Ctx, parts: Sequence[DamagedHead]) -> list[SalvageChange]:
    """What the damaged heads `parts` prove beyond the base, which is the join of all heads that are whole.

    Taken is a value that the base never heard of, unless another damaged head provably replaced it; gone is a dot of the
    base that a damaged head provably replaced or deleted. `base` must hold the entries that any part names. A text that
    stands here already, or that a text here replaced, is not taken again, so salvaging twice does nothing.
    """
    names = sorted({name for part in parts for name in part.differs})
    found = [_one(name, base.get(name, {}), base_ctx, parts) for name in names]
    return [change for change in found if change.taken or change.gone]


def _one(name: str, base: Entry, base_ctx: Ctx, parts: Sequence[DamagedHead]) -> SalvageChange:
    gone = tuple(dot for dot in base if any(part.lacks(name, dot, base) for part in parts))
    kept = [value for dot, value in base.items() if dot not in gone]
    news: dict[str, Value] = {}
    for part in parts:
        for dot, value in part.differs.get(name, {}).items():
            if dot not in base and not covers(base_ctx, dot):
                news.setdefault(dot, value)
    taken = tuple(
        (dot, value)
        for dot, value in sorted(news.items())
        if not any(part.lacks(name, dot, base) for part in parts) and not is_known_text(value, kept)
    )
    return SalvageChange(name, taken, gone)


class RewrittenEntry(msgspec.Struct, frozen=True):
    """An entry after a salvage. `n` is the last counter that was used; `back` says whether a value came back, `crowded` whether
    one found no room."""

    entry: Entry
    n: int
    back: bool
    crowded: bool


def rewrite(entry: Entry, change: SalvageChange, dev: str, n: int, mine: IsMine) -> RewrittenEntry:
    """`entry` with a change made in the name of device `dev`, which counted to `n` so far; new values are unsigned.

    Each keeps its body, clock and bases, and `of` says whose word it is. A fifth value of `dev` is left out.
    """
    result = delete(entry, change.gone)
    back = crowded = False
    for value in unsigned_copies(change.name, list(change.taken), mine):
        if is_known_text(value, result.values()):
            continue
        try:
            result = write(result, (), make_dot(dev, n + 1), value)
        except LimitError:
            crowded = True
            continue
        n += 1
        back = True
    return RewrittenEntry(result, n, back, crowded)


def is_known_text(value: Value, kept: Iterable[Value]) -> bool:
    """Whether one of these values has the same text (or is a wish to forget, as this one is), or replaced this text."""
    for other in kept:
        if (value.body, value.kind) == (other.body, other.kind):
            return True
        if value.body is not None and hash32(value.body) in other.b:
            return True
    return False
