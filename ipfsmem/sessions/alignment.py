"""Finds which messages of a program's history are stored already, by their content, ids and order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ipfsmem.sessions.messages import Item, read_message
from ipfsmem.sessions.notices import NOTICES

#: Fields of a PydanticAI message that its framework changes when it merges or replays requests.
_BOOKKEEPING: Final = frozenset(
    {"parts", "instructions", "timestamp", "run_id", "conversation_id", "metadata", "state"}
)
#: Minimum matching messages after a kept request when the middle of its turn was cut.
_TAIL: Final = 2


class Atom(NamedTuple):
    """The smallest unit that is compared: a message, or one part of a PydanticAI request, since that framework merges requests."""

    key: str
    #: Whether this device stored it.
    own: bool = True
    is_request: bool = False


def atoms(item: Item, own: bool = True) -> list[Atom]:
    """Return the atoms of one message, at least one."""
    parts = item.get("parts")
    if item.get("kind") != "request" or not isinstance(parts, list) or not parts:
        fields = {
            name: value
            for name, value in item.items()
            if name not in ("run_id", "conversation_id", "metadata")
        }
        return [Atom(_key(fields), own, read_message(item).is_request)]
    own_fields = {name: value for name, value in item.items() if name not in _BOOKKEEPING}
    return [
        Atom(
            _key({**own_fields, "parts": [part]}),
            own,
            read_message({**own_fields, "parts": [part]}).is_request,
        )
        for part in parts
    ]


def all_atoms(items: Iterable[tuple[Item, bool]]) -> list[Atom]:
    """Return the atoms of messages in order, each with whether this device stored it."""
    return [atom for item, own in items for atom in atoms(item, own)]


def stored_atoms(stored: Sequence[Atom], received: Sequence[Atom]) -> int:
    """Return the greatest number of atoms at the beginning of `received` that are stored already.

    `received` may begin later than `stored`, and may lack additions of other devices. A first request may precede the end of its
    turn. Equal messages are distinguished only by their order.
    """
    mine = [atom for atom in stored if atom.own]
    last_own = next((place for place in range(len(stored), 0, -1) if stored[place - 1].own), 0)
    stored_count = max(
        _overlap(stored, received), _overlap(mine, received), _overlap(stored[:last_own], received)
    )
    if len(received) > stored_count and mine:
        stored_count = max(stored_count, _whole(stored, received, stored_count))
    if not stored_count and received and received[0].is_request:
        tail = max(_overlap(stored, received[1:]), _overlap(mine, received[1:]))
        if tail >= _TAIL and received[0].key in {atom.key for atom in stored}:
            return tail + 1
    return stored_count


def starts_with(received: Sequence[Atom], known: Sequence[Atom]) -> bool:
    """Return whether `received` begins with `known`."""
    return len(known) <= len(received) and all(a.key == b.key for a, b in zip(known, received, strict=False))


def items_from(items: Sequence[Item], place: int) -> list[dict[str, Any]]:
    """Return the items from an atom on; a request that is divided there keeps its later parts."""
    remaining: list[dict[str, Any]] = []
    for item in items:
        number = len(atoms(item))
        if place <= 0:
            remaining.append(dict(item))
        elif place < number:
            remaining.append({**item, "parts": item["parts"][place:]})
        place -= number
    return remaining


def without_summary(items: Sequence[Item], summaries: frozenset[str]) -> list[dict[str, Any]]:
    """Return the items without a leading summary, and without notices, that the session itself added."""
    items = without_notices(items)
    if not items or not summaries:
        return [dict(item) for item in items]
    first, rest = items[0], [dict(item) for item in items[1:]]
    if read_message(first).text in summaries:
        return rest
    parts = first.get("parts") if first.get("kind") == "request" else None
    if isinstance(parts, list) and read_message({**first, "parts": parts[:1]}).text in summaries:
        return [{**first, "parts": parts[1:]}, *rest]
    return [dict(first), *rest]


def without_notices(items: Sequence[Item]) -> list[Item]:
    """Return the items without notices. Stored items with the text of a notice are removed too, because they cannot be
    distinguished. A program's framework may have merged a notice and the next message into one request."""
    cleaned: list[Item] = []
    for item in items:
        parts = item.get("parts")
        if item.get("kind") == "request" and isinstance(parts, list):
            left = [
                part for part in parts if not (isinstance(part, Mapping) and _is_notice(part.get("content")))
            ]
            if len(left) < len(parts):
                cleaned += [{**item, "parts": left}] if left else []
                continue
        elif _is_notice(item.get("content")):
            continue
        cleaned.append(item)
    return cleaned


def _is_notice(content: object) -> bool:
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], Mapping):
        content = content[0].get("text")
    return isinstance(content, str) and content in NOTICES


def _overlap(stored: Sequence[Atom], received: Sequence[Atom]) -> int:
    """Return the greatest number of atoms that are both the last of `stored` and the first of `received`."""
    if not stored or not received:
        return 0
    # The failure function of Knuth, Morris and Pratt, for linear time.
    keys = [atom.key for atom in received]
    back = [0] * len(keys)
    fit = 0
    for place in range(1, len(keys)):
        while fit and keys[place] != keys[fit]:
            fit = back[fit - 1]
        fit += keys[place] == keys[fit]
        back[place] = fit
    fit = 0
    for number, atom in enumerate(stored):
        while fit and (fit == len(keys) or keys[fit] != atom.key):
            fit = back[fit - 1]
        fit += keys[fit] == atom.key
        if fit == len(keys) and number + 1 < len(stored):
            fit = back[fit - 1]
    return fit


def _whole(stored: Sequence[Atom], received: Sequence[Atom], least: int) -> int:
    """Return the greatest number of atoms at the beginning of `received` that contain everything this device stored, with or
    without additions of other devices in between; 0 if there are none."""
    own = sum(atom.own for atom in stored)
    place, matched, best = 0, 0, 0
    for atom in stored:
        if place < len(received) and received[place].key == atom.key:
            place += 1
            matched += atom.own
            if matched == own:
                best = place
        elif atom.own:
            return 0
    return best if best > least else 0


def _key(item: Mapping[str, Any]) -> str:
    return json.dumps(item, sort_keys=True, separators=(",", ":"), default=str)
