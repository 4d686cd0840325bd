"""Two events that the format gives a meaning: a memory went to another provider, and a further vault was made
(format section 1.4).

They are events like any other, so they are sealed, signed with their segment, and joined without a conflict. What they
say is for a person: nothing here, and nothing that reads it, opens a provider or a vault by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ipfsmem.bundle.timeline import normal_ts, split_own_id
from ipfsmem.errors import UsageError
from ipfsmem.lazy_pattern import lazy_pattern

#: No other event's type begins so.
PREFIX: Final = "ipfsmem-"
MOVED: Final = "ipfsmem-moved"
VAULT: Final = "ipfsmem-vault"
#: What a device says once a day: which memories it used, and how often.
USED: Final = "used"
#: Characters of a provider's spec, and how many places one move leaves.
MAX_SPEC: Final = 512
MAX_LEFT: Final = 16

_is_label = lazy_pattern(r"[a-z0-9][a-z0-9-]{0,31}").fullmatch
_is_address = lazy_pattern(r"0x[0-9a-f]{40}").fullmatch
_CONTROL = lazy_pattern("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Move(msgspec.Struct, frozen=True):
    """A forwarding record: the device `by` published at `left`, and since `at` (UTC, as in 1.4) at `to`."""

    id: str
    by: str
    at: str
    left: tuple[str, ...]
    to: str


class FurtherVault(msgspec.Struct, frozen=True, order=True):
    """Another vault of a wallet: the label and key number in the text that it signs, and its address."""

    name: str
    key_number: int
    address: str


def check_kind(kind: str) -> None:
    """Refuse the types of these events for what others note. Raises UsageError."""
    if kind.startswith(PREFIX):
        raise UsageError(
            f"events of type {kind!r} are the program's own",
            hint=f"Choose a type that does not begin with {PREFIX}",
        )


def is_use(event: Mapping[str, Any]) -> bool:
    """Whether an event says only which memories a device used, and is of no use to who looks for what happened."""
    return event.get("type") == USED and event.keys() == {"ts", "type", "id", "counts"}


def moved_data(left: tuple[str, ...], to: str) -> dict[str, Any]:
    """The data of a new event of type MOVED."""
    return {"from": list(left[:MAX_LEFT]), "to": to}


def vault_data(vault: FurtherVault) -> dict[str, Any]:
    """The data of a new event of type VAULT."""
    return {"address": vault.address, "key_number": vault.key_number, "name": vault.name}


def read_move(event: Mapping[str, Any]) -> Move | None:
    """The forwarding record that an event is; None when it is none, or not one that counts: it must stand under an own id,
    which an event has only in its writer's segment."""
    by = _own_writer(event, MOVED, {"from", "to"})
    if by is None:
        return None
    left, to = event["from"], event["to"]
    if not isinstance(left, list) or len(left) > MAX_LEFT or not all(_is_spec(one) for one in (*left, to)):
        return None
    return Move(event["id"], by, normal_ts(event["ts"]), tuple(left), to)


def read_vault(event: Mapping[str, Any]) -> FurtherVault | None:
    """The further vault that an event names, None when it names none."""
    if _own_writer(event, VAULT, {"address", "key_number", "name"}) is None:
        return None
    name, number, address = event["name"], event["key_number"], event["address"]
    if (
        not isinstance(name, str)
        or not _is_label(name)
        or not isinstance(address, str)
        or not _is_address(address)
    ):
        return None
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= 2**31 - 1:
        return None
    return FurtherVault(name, number, address)


def newer_move(one: Move | None, other: Move | None) -> Move | None:
    """Which of two forwarding records counts: the greater (instant, id)."""
    found = [move for move in (one, other) if move is not None]
    return max(found, key=lambda move: (move.at, move.id), default=None)


def _own_writer(event: Mapping[str, Any], kind: str, names: set[str]) -> str | None:
    """The device under whose own id an event of this type stands, when it has these names and no others."""
    if event.get("type") != kind or event.keys() != {"ts", "type", "id"} | names:
        return None
    claimed = split_own_id(str(event["id"]))
    return claimed[0] if claimed is not None else None


def _is_spec(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= MAX_SPEC and not _CONTROL.search(text)
