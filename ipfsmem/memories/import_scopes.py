"""Maps the scopes of a bundle to scopes of this vault (format section 1.6); a person decides where a token already exists.

Scopes of another person's bundle are never merged because of an equal token. The whole mapping is made or refused before the first
write.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ipfsmem.bundle.keys import check_scope
from ipfsmem.causal.cards import MAX_SCOPES
from ipfsmem.errors import LimitError, NotFoundError, UsageError

_NAMED = 10


def assign(
    theirs: Collection[str],
    maps: Mapping[str, str],
    *,
    live: Collection[str],
    own: Collection[str],
    forgotten: Collection[str],
    same: bool,
) -> dict[str, str]:
    """Return the scope of this vault for each scope of a bundle. The default scope "" is mapped to itself unless `maps` has another
    scope for it.

    `live` and `forgotten`: the tokens of this vault; `own`: the tokens in `live` that this device created; `same`: whether the
    bundle is a backup of this vault, in which equal tokens are the same scope. Raises UsageError, KeyNameError, NotFoundError for a
    forgotten scope, LimitError.
    """
    for source, target in maps.items():
        if source not in theirs:
            raise UsageError(f"there is no {_called(source)} in the import", hint=f"It has: {_list(theirs)}.")
        if target:
            check_scope(target)
    chosen = {scope: maps.get(scope, scope) for scope in sorted(theirs)}
    for scope, here in chosen.items():
        if here in forgotten:
            raise NotFoundError(
                f"the scope {here} is forgotten here, so nothing can be put there",
                hint=f"Restore it first: ipfsmem scope restore {here}. Or import it elsewhere: --map {scope}=NAME.",
            )
    existing = [scope for scope in chosen if scope and scope not in maps and scope in live]
    if existing and not same:
        first = existing[0]
        raise UsageError(
            f"there is {_list(existing)} here already, and the import has scopes of these names"
            if len(existing) > 1
            else f"there is a scope {first} here already, and the import has one of this name",
            hint=f"Merge it: --map {first}={first}. Keep it separate: --map {first}={_free(first, live)}. For a backup of this vault: --from-backup (in Python: maps=, same=True).",
        )
    by_target: dict[str, list[str]] = {}
    for scope, here in chosen.items():
        by_target.setdefault(here, []).append(scope)
    for here, sources in by_target.items():
        if len(sources) > 1:
            raise UsageError(
                f"{_list(sources)} cannot all become the {_called(here)}: that would mix them",
                hint=f"Give each a name of its own, for instance --map {sources[-1]}={_free(sources[-1] or 'self', live)} (in Python: maps=).",
            )
    new = {here for here in by_target if here} - set(live)
    if len(own) + len(new) > MAX_SCOPES:
        raise LimitError(
            f"with these {len(new):,} there would be {len(own) + len(new):,} scopes of this device, at most {MAX_SCOPES:,} are allowed",
            hint="Forget unneeded ones: ipfsmem scope forget SCOPE",
        )
    return chosen


def _called(scope: str) -> str:
    return f"scope {ascii(scope)[1:-1][:80]}" if scope else "default scope"


def _list(scopes: Collection[str]) -> str:
    names = [scope or "the default scope" for scope in sorted(scopes)]
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _free(scope: str, used: Collection[str]) -> str:
    """Return a free token similar to this one."""
    number = 2
    while (candidate := f"{scope[:60]}-{number}") in used:
        number += 1
    return candidate
