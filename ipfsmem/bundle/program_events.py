"""Write and read the events that the format defines: a move to another provider, a further vault, the card of an agent key
(section 1.4).

They are ordinary events: sealed, signed with their segment, joined without conflicts. Readers only show them to the
user, and never open a provider or vault automatically.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ipfsmem.bundle.keys import is_scope
from ipfsmem.bundle.timeline import normal_ts, split_own_id
from ipfsmem.errors import UsageError
from ipfsmem.lazy_pattern import lazy_pattern

#: Reserved prefix of these events' types.
PREFIX: Final = "ipfsmem-"
MOVED: Final = "ipfsmem-moved"
VAULT: Final = "ipfsmem-vault"
AGENT: Final = "ipfsmem-agent"
#: Roles of agent keys.
ROLES: Final = ("reader", "writer", "append", "drop")
#: Type of a device's daily record of the memories that it used, with counts.
USED: Final = "used"
#: Maximum characters of a provider's spec, and maximum number of former providers in one move.
MAX_SPEC: Final = 512
MAX_LEFT: Final = 16
#: Maximum number of scopes of an agent key.
MAX_SCOPES: Final = 16

_LABEL = lazy_pattern(r"[a-z0-9][a-z0-9-]{0,31}")
_ADDRESS = lazy_pattern(r"0x[0-9a-f]{40}")
_NAME = lazy_pattern(r"[a-z0-9][a-z0-9-]{0,31}")
_ID = lazy_pattern(r"[0-9a-f]{16}")
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


class AgentCard(msgspec.Struct, frozen=True, kw_only=True):
    """A description of an agent key, written by the device `by` at `at` (UTC, as in 1.4).

    `agent`: the id of its member. `scopes`: those that it may write; empty for a reader. `expires`: when it is no longer
    valid, in milliseconds since 1970 UTC.
    """

    id: str
    by: str
    at: str
    agent: str
    name: str
    role: str
    scopes: tuple[str, ...]
    expires: int


def is_agent_name(text: str) -> bool:
    """Tell whether a text is a valid name of an agent key: 1 to 32 characters of a-z, 0-9 and -, not beginning with -."""
    return bool(_NAME.fullmatch(text))


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


def is_for_programs(event: Mapping[str, Any]) -> bool:
    """Tell whether an event is for programs only, so that searches and contexts omit it."""
    return is_use(event) or read_agent(event) is not None


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


def agent_data(agent: str, name: str, role: str, scopes: tuple[str, ...], expires: int) -> dict[str, Any]:
    """Return the data of a new event of type AGENT."""
    return {"agent": agent, "expires": expires, "name": name, "role": role, "scopes": sorted(scopes)}


def read_agent(event: Mapping[str, Any]) -> AgentCard | None:
    """Return the description of an agent key that an event has, or None."""
    by = _own_writer(event, AGENT, {"agent", "expires", "name", "role", "scopes"})
    if by is None:
        return None
    agent, name, role, scopes, expires = (
        event[one] for one in ("agent", "name", "role", "scopes", "expires")
    )
    if (
        not isinstance(agent, str)
        or not _ID.fullmatch(agent)
        or not isinstance(name, str)
        or not is_agent_name(name)
    ):
        return None
    if role not in ROLES or not isinstance(expires, int) or isinstance(expires, bool) or expires < 1:
        return None
    if not isinstance(scopes, list) or len(scopes) > MAX_SCOPES or not all(_is_scope(one) for one in scopes):
        return None
    if scopes != sorted({*scopes}):
        return None
    return AgentCard(
        id=event["id"],
        by=by,
        at=normal_ts(event["ts"]),
        agent=agent,
        name=name,
        role=role,
        scopes=(*scopes,),
        expires=expires,
    )


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


def _is_scope(text: object) -> bool:
    return isinstance(text, str) and is_scope(text)
