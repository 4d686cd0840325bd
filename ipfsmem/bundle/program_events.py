"""Write and read the events that the format defines: a move to another provider, a further vault (section 1.4).

They are ordinary events: sealed, signed with their segment, joined without conflicts. Readers only show them to the
user, and never open a provider or vault automatically.
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
#: Type of a device's daily record of the memories that it used, with counts.
USED: Final = "used"
#: Maximum characters of a provider's spec, and maximum number of former providers in one move.
MAX_SPEC: Final = 512
MAX_LEFT: Final = 16

_LABEL = lazy_pattern(r"[a-z0-9][a-z0-9-]{0,31}")
_ADDRESS = lazy_pattern(r"0x[0-9a-f]{40}")
_CONTROL = lazy_pattern("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Move(msgspec.Struct, frozen=True):
    """A forwarding record: device `by` published at the providers `left`, and since `at` (UTC, as in 1.4) at `to`."""

    id: str
    by: str
    at: str
    left: tuple[str, ...]
    to: str


class FurtherVault(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """Another vault of a wallet: the label and key number in the signed text, and the vault's address."""

    name: str
    key_number: int
    address: str


def check_kind(kind: str) -> None:
    """Refuse a type with the reserved prefix. Raises UsageError."""
    if kind.startswith(PREFIX):
        raise UsageError(
            f"events of type {kind!r} are the program's own",
            hint=f"Choose a type that does not begin with {PREFIX}",
        )


def is_use(event: Mapping[str, Any]) -> bool:
    """Tell whether an event is a record of used memories, which a timeline search ignores."""
    return event.get("type") == USED and event.keys() == {"ts", "type", "id", "counts"}


def moved_data(specs: tuple[str, ...], to: str) -> dict[str, Any]:
    """Return the data of a new event of type MOVED."""
    return {"from": list(specs[:MAX_LEFT]), "to": to}


def vault_data(vault: FurtherVault) -> dict[str, Any]:
    """Return the data of a new event of type VAULT."""
    return {"address": vault.address, "key_number": vault.key_number, "name": vault.name}


def read_move(event: Mapping[str, Any]) -> Move | None:
    """Return an event's forwarding record; None if it has none or an invalid one.

    A record is valid only under the id of its writer, which an event has only in its writer's segment.
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
    """Return the forwarding record with the greater (instant, id)."""
    moves = [move for move in (one, other) if move is not None]
    return max(moves, key=lambda move: (move.at, move.id), default=None)


def _own_writer(event: Mapping[str, Any], kind: str, names: set[str]) -> str | None:
    """Return the device in an event's id, if the event has this type and exactly these fields; else None."""
    if event.get("type") != kind or event.keys() != {"ts", "type", "id"} | names:
        return None
    claimed = split_own_id(str(event["id"]))
    return claimed[0] if claimed is not None else None


def _is_spec(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= MAX_SPEC and not _CONTROL.search(text)
