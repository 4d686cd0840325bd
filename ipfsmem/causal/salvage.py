"""Salvage the readable part of damaged heads (format section 7.1).

A damaged head has a verified commit but unreadable nodes. It is never joined: its ctx also covers the lost nodes, so
a join would delete their contents everywhere. Instead, the salvaging device writes the changes that the readable
nodes prove. Pure.
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
    """The readable part of one damaged head.

    `differs`: every entry of a proved leaf that differs from the base; `{}` if the entry is proved absent. `lost`:
    the prefixes below which nothing is proved. Everywhere else the head equals the base.
    """

    ctx: Ctx
    differs: Mapping[str, Entry]
    lost: tuple[str, ...]

    def proves(self, name: str) -> bool:
        """Tell whether the hashes from the commit down prove the content of this head under `name`."""
        return not (self.lost and name_digits(name).startswith(self.lost))

    def lacks(self, name: str, dot: str, base: Entry) -> bool:
        """Tell whether this head provably knew a write and replaced or deleted it."""
        return covers(self.ctx, dot) and self.proves(name) and dot not in self.differs.get(name, base)


class SalvageChange(msgspec.Struct, frozen=True):
    """The salvage of one entry. `taken`: values to write under new dots, each with its old dot. `gone`: dots of the
    base to delete."""

    name: str
    taken: tuple[tuple[str, Value], ...]
    gone: tuple[str, ...]


def salvage(base: Mapping[str, Entry], base_ctx: Ctx, parts: Sequence[DamagedHead]) -> list[SalvageChange]:
    """Return the changes that the damaged heads `parts` prove in addition to `base`, the join of all intact heads.

    A value that the base never saw is restored, unless another damaged head provably replaced it; a dot of the base
    that a damaged head provably replaced or deleted is removed. `base` must contain every entry that a part names. A
    text that the base has or replaced is not restored, so salvage is idempotent.
    """
    names = sorted({name for part in parts for name in part.differs})
    changes = [_salvage_entry(name, base.get(name, {}), base_ctx, parts) for name in names]
    return [change for change in changes if change.taken or change.gone]


def _salvage_entry(name: str, base: Entry, base_ctx: Ctx, parts: Sequence[DamagedHead]) -> SalvageChange:
    gone = tuple(dot for dot in base if any(part.lacks(name, dot, base) for part in parts))
    remaining = [value for dot, value in base.items() if dot not in gone]
    news: dict[str, Value] = {}
    for part in parts:
        for dot, value in part.differs.get(name, {}).items():
            if dot not in base and not covers(base_ctx, dot):
                news.setdefault(dot, value)
    restored = tuple(
        (dot, value)
        for dot, value in sorted(news.items())
        if not any(part.lacks(name, dot, base) for part in parts) and not is_known_text(value, remaining)
    )
    return SalvageChange(name, restored, gone)


class RewrittenEntry(msgspec.Struct, frozen=True):
    """An entry after a salvage. `n`: the last counter used. `back`: a value was restored. `crowded`: a value did not
    fit."""

    entry: Entry
    n: int
    back: bool
    crowded: bool


def rewrite(entry: Entry, change: SalvageChange, dev: str, n: int, mine: IsMine) -> RewrittenEntry:
    """Apply `change` to `entry` as device `dev`, whose last counter is `n`. New values are unsigned.

    Each value keeps its body, clock and bases and names its author. A fifth value of `dev` is omitted.
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


def is_known_text(value: Value, values: Iterable[Value]) -> bool:
    """Tell whether one of `values` has the same text (or is FORGOTTEN too), or replaced the text of `value`."""
    for other in values:
        if (value.body, value.kind) == (other.body, other.kind):
            return True
        if value.body is not None and hash32(value.body) in other.b:
            return True
    return False
