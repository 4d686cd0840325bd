"""Encode, decode and merge scope cards: title, kind, project ids and redirect of a scope (format section 5.1).

A card is the body of an entry `c/<scope>`. Concurrent cards merge without a base: the ids are united, every other
field comes from the greatest sibling.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from ipfsmem.bundle.keys import is_scope
from ipfsmem.causal.value import FORGOTTEN, Entry
from ipfsmem.causal.view import Bodies, siblings
from ipfsmem.errors import FormatError, LimitError
from ipfsmem.lazy_pattern import lazy_pattern
from ipfsmem.ring.statements import check_label

#: Maximum bytes of a card, ids in a card, and redirects (`into`) followed (format section 5.1).
MAX_CARD = 4 * 1024
MAX_IDS = 64
#: Maximum number of sibling cards over which the ids of one scope are spread.
_MAX_CARDS = 16
MAX_STEPS = 8
#: Maximum number of scopes in a vault, forgotten ones excluded. Enforced for a new scope, never for a join
#: (format section 8).
MAX_SCOPES = 4_096

Kind = Literal["user", "workspace", "agent"]
_ID = lazy_pattern(r"[0-9a-f]{32}")
_HOST = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+"
_REMOTE = lazy_pattern(_HOST + r"(?:/[^/\s?#@:\x00-\x1f\x7f-\x9f]+)+")
_PART = lazy_pattern(r"[^/\x00-\x1f\x7f-\x9f]+")

#: Identifies a project: `("id", 32 hex)` or `("remote", host and path, path inside the repository)`.
ProjectId = tuple[str, ...]


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields of a card, in the order of canonical JSON."""

    ids: tuple[ProjectId, ...] = ()
    into: str | None = None
    kind: Kind = "workspace"
    title: str
    v: Literal[1] = 1


_encode = msgspec.json.Encoder(order="deterministic").encode


@functools.cache
def _decoder() -> msgspec.json.Decoder[Card]:
    """Return the decoder, built on first use because most calls need none."""
    return msgspec.json.Decoder(Card)


def write_card(card: Card) -> bytes:
    """Encode a card with its ids sorted. Raises FormatError, LimitError beyond 64 ids or 4 KiB."""
    card = msgspec.structs.replace(card, ids=tuple(sorted(set(card.ids))))
    _check(card)
    data = _encode(card)
    if len(data) > MAX_CARD:
        raise LimitError(f"the card of a scope would have {len(data)} bytes, at most {MAX_CARD} are allowed")
    return data


def fits_one_card(card: Card) -> bool:
    """Tell whether the ids of `card` fit into one card."""
    try:
        write_card(card)
    except LimitError:
        return False
    return True


def plan_card_write(card: Card, siblings_: Mapping[str, Card]) -> tuple[Card, frozenset[str]]:
    """Return the card to write and the dots of the sibling cards to keep, so that a scope reads as `card`.

    If all ids fit into one card, no sibling is kept. Otherwise siblings whose ids are all in `card` are kept, in
    order, until the remaining ids fit: a scope has the ids of all its sibling cards.
    """
    staying: list[str] = []
    left = set(card.ids)
    for dot, sibling in siblings_.items():
        if fits_one_card(msgspec.structs.replace(card, ids=tuple(left))):
            break
        if left.intersection(sibling.ids) and set(sibling.ids) <= set(card.ids):
            staying.append(dot)
            left -= set(sibling.ids)
    return msgspec.structs.replace(card, ids=tuple(sorted(left))), frozenset(staying)


def split_card(card: Card) -> list[Card]:
    """Split a card into cards whose ids fit. Raises FormatError, or LimitError beyond 16 × 64 ids."""
    if len(card.ids) > MAX_IDS * _MAX_CARDS:
        raise LimitError(f"a scope has {len(card.ids)} ids, at most {MAX_IDS * _MAX_CARDS} are allowed")
    cards = [msgspec.structs.replace(card, ids=())]
    for ident in sorted(set(card.ids)):
        more = msgspec.structs.replace(card, ids=(*cards[-1].ids, ident))
        if fits_one_card(more):
            cards[-1] = more
        else:
            cards.append(msgspec.structs.replace(card, ids=(ident,)))
    for one in cards:
        write_card(one)
    return cards


def parse_card(data: bytes) -> Card:
    """Decode a card. Raises FormatError, LimitError."""
    if len(data) > MAX_CARD:
        raise LimitError(f"a card has {len(data)} bytes, at most {MAX_CARD} are allowed")
    try:
        card = _decoder().decode(data)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise FormatError(f"a card is malformed: {error}") from None
    if _encode(card) != data:
        raise FormatError("a card is not canonical JSON")
    _check(card)
    if list(card.ids) != sorted(set(card.ids)):
        raise FormatError("the ids of a card are not sorted, or one is repeated")
    return card


def _check(card: Card) -> None:
    if len(card.ids) > MAX_IDS:
        raise LimitError(f"a card has {len(card.ids)} ids, at most {MAX_IDS} are allowed")
    for ident in card.ids:
        if not _ident_ok(ident):
            # The message omits the remote: a malformed one may contain a password.
            raise FormatError("an id on a card is neither 32 hex digits nor the name of a remote")
    if card.into is not None and not is_scope(card.into):
        raise FormatError(f"a card says into {card.into!r}, which is not a scope")
    check_label(card.title, "the title of a scope")


def _ident_ok(ident: ProjectId) -> bool:
    if len(ident) == 2 and ident[0] == "id":
        return _ID.fullmatch(ident[1]) is not None
    if len(ident) == 3 and ident[0] == "remote":
        parts = ident[2].split("/") if ident[2] else []
        return (
            _REMOTE.fullmatch(ident[1]) is not None
            and ident[1] == ident[1].lower()
            and not ident[1].endswith(".git")
            and all(_PART.fullmatch(part) and part not in (".", "..") for part in parts)
        )
    return False


def view_card(entry: Entry, bodies: Bodies) -> Card | None:
    """Merge the sibling cards of an entry into one; None if the scope is forgotten or no sibling is readable.

    The ids are those of all siblings and can be more than 64; kind, title and `into` come from the greatest (HLC,
    device, body). Malformed siblings and siblings whose body is not available are skipped.
    """
    if any(value.kind == FORGOTTEN for value in entry.values()):
        return None
    cards: list[Card] = []
    for sibling in siblings(entry):
        data = bodies(sibling.body)
        if data is None:
            continue
        try:
            cards.append(parse_card(data))
        except (FormatError, LimitError):
            continue
    if not cards:
        return None
    ids = {ident for card in cards for ident in card.ids}
    return msgspec.structs.replace(cards[0], ids=tuple(sorted(ids)))


def is_forgotten(entry: Entry) -> bool:
    """Tell whether the scope of this card is forgotten."""
    return any(value.kind == FORGOTTEN for value in entry.values())


def redirects(cards: Mapping[str, Card]) -> dict[str, str]:
    """Map each scope whose card has an `into` to that target. `cards`: the cards of all scopes that are not
    forgotten.

    An `into` that names an unknown scope is ignored. In each cycle, the `into` of the least token is ignored.
    """
    onward = {
        scope: card.into
        for scope, card in sorted(cards.items())
        if card.into is not None and card.into in cards
    }
    done: set[str] = set()
    for start in sorted(onward):
        path: dict[str, None] = {}  # iterative: a chain can be as long as the number of scopes
        at: str | None = start
        while at is not None and at not in done and at not in path:
            path[at] = None
            at = onward.get(at)
        if at is not None and at in path:
            way = list(path)
            del onward[min(way[way.index(at) :])]
        done.update(path)
    return onward


def write_target(scope: str, onward: Mapping[str, str]) -> str:
    """Return the scope that receives new writes for `scope`: at most 8 steps along `onward` (see `redirects`)."""
    for _ in range(MAX_STEPS):
        if scope not in onward:
            break
        scope = onward[scope]
    return scope


def read_order(scope: str, onward: Mapping[str, str]) -> list[str]:
    """Return the scopes to read for `scope`, in order of precedence: itself, then the scopes that redirect to it, by
    token, each followed by the scopes that redirect to that one; at most 8 steps away."""
    into: dict[str, list[str]] = {}
    for source, there in sorted(onward.items()):
        into.setdefault(there, []).append(source)
    order: list[str] = []

    def add(one: str, steps: int) -> None:
        order.append(one)
        if steps < MAX_STEPS:
            for source in into.get(one, ()):
                add(source, steps + 1)

    add(scope, 0)
    return order


def find_project(cards: Mapping[str, Card], idents: Iterable[ProjectId]) -> list[str]:
    """Return the scopes whose card has one of these ids, by token."""
    wanted = set(idents)
    return sorted(scope for scope, card in cards.items() if wanted & set(card.ids))
