"""The two events with a meaning in the format: a vault moved to another provider, and a further vault was
made (section 1.4).

They are ordinary events: sealed, signed with their segment, joined without conflicts. They inform the user;
no reader opens a provider or vault automatically.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ipfsmem.bundle.timeline import normal_ts, split_own_id
from ipfsmem.errors import UsageError
from ipfsmem.lazy_pattern import lazy_pattern

#: Reserved prefix of these events' types.
PREFIX: Final = "ipfsmem-"
MOVED: Final = "ipfsmem-moved"
VAULT: Final = "ipfsmem-vault"
#: A device's daily record of the memories it used, and how often.
USED: Final = "used"
#: Maximum characters of a provider's spec, and number of providers left in one move.
MAX_SPEC: Final = 512
MAX_LEFT: Final = 16

_LABEL = lazy_pattern(r"[a-z0-9][a-z0-9-]{0,31}")
_ADDRESS = lazy_pattern(r"0x[0-9a-f]{40}")
_CONTROL = lazy_pattern("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Move(msgspec.Struct, frozen=True):
    """A forwarding record: the device `by` published at `left`, and since `at` (UTC, as in 1.4) at `to`."""

    id: str
    by: str
    at: str
    left: tuple[str, ...]
    to: str


class FurtherVault(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """Another vault of a wallet: the label and key number in the signed text, and its address."""

    name: str
    key_number: int
    address: str


def check_kind(kind: str) -> None:
    """Refuse these reserved types for other events. Raises UsageError."""
    if kind.startswith(PREFIX):
        raise UsageError(
            f"events of type {kind!r} are the program's own",
            hint=f"Choose a type that does not begin with {PREFIX}",
        )


def is_use(event: Mapping[str, Any]) -> bool:
    """Tell whether an event only records which memories a device used, and is irrelevant to a timeline search."""
    return event.get("type") == USED and event.keys() == {"ts", "type", "id", "counts"}


def moved_data(specs: tuple[str, ...], to: str) -> dict[str, Any]:
    """Return the data of a new event of type MOVED."""
    return {"from": list(specs[:MAX_LEFT]), "to": to}


def vault_data(vault: FurtherVault) -> dict[str, Any]:
    """Return the data of a new event of type VAULT."""
    return {"address": vault.address, "key_number": vault.key_number, "name": vault.name}


def read_move(event: Mapping[str, Any]) -> Move | None:
    """Return an event's forwarding record; None when it has none or it is invalid.

    Valid only under an own id, which an event has only in its writer's segment.
    """
    by = _own_writer(event, MOVED, {"from", "to"})
    if by is None:
        return None
    specs, to = event["from"], event["to"]
    if not isinstance(specs, list) or len(specs) > MAX_LEFT or not all(_is_spec(one) for one in (*specs, to)):
        return None
    return Move(event["id"], by, normal_ts(event["ts"]), tuple(specs), to)


def read_vault(event: Mapping[str, Any]) -> FurtherVault | None:
    """Return the further vault that an event names, or None."""
    if _own_writer(event, VAULT, {"address", "key_number", "name"}) is None:
        return None
    name, number, address = event["name"], event["key_number"], event["address"]
    if (
        not isinstance(name, str)
        or not _LABEL.fullmatch(name)
        or not isinstance(address, str)
        or not _ADDRESS.fullmatch(address)
    ):
        return None
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= 2**31 - 1:
        return None
    return FurtherVault(name=name, key_number=number, address=address)


def newer_move(one: Move | None, other: Move | None) -> Move | None:
    """Return the winning forwarding record: the greater (instant, id)."""
    moves = [move for move in (one, other) if move is not None]
    return max(moves, key=lambda move: (move.at, move.id), default=None)


def _own_writer(event: Mapping[str, Any], kind: str, names: set[str]) -> str | None:
    """Return the device under whose own id an event of this type was written, if it has exactly these names."""
    if event.get("type") != kind or event.keys() != {"ts", "type", "id"} | names:
        return None
    claimed = split_own_id(str(event["id"]))
    return claimed[0] if claimed is not None else None


def _is_spec(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= MAX_SPEC and not _CONTROL.search(text)
