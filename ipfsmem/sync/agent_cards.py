"""Agent keys of a vault: their members in the ring, and their cards, events that say what each may do and until when
(format sections 1.4, 4.1)."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from ipfsmem.bundle.program_events import AGENT, AgentCard, agent_data, read_agent
from ipfsmem.causal.clock import next_hlc
from ipfsmem.device.events import Timeline
from ipfsmem.device.replica import Replica
from ipfsmem.errors import MembershipError
from ipfsmem.ring import operations
from ipfsmem.ring.authority import RANK_ROOT, RingMember
from ipfsmem.ring.keyring import Ring
from ipfsmem.wallet.agent_key import AgentKey
from ipfsmem.wallet.root_keys import RootKeys
from ipfsmem.wording import local_day

#: Milliseconds before the end of a key from which `status` warns.
WARN_BEFORE: Final = 7 * 86_400_000

#: What to do when a key opens nothing any more.
_ASK: Final = "Ask its owner for another key: ipfsmem agent new NAME"

State = Literal["valid", "expired", "revoked", "undescribed"]


class Agent(msgspec.Struct, frozen=True):
    """An agent key that this vault knows: the id of its member, its believed card, and whether the member was removed."""

    id: str
    label: str
    card: AgentCard | None
    revoked: bool

    @property
    def name(self) -> str:
        """Return its name, else the label in the ring."""
        return self.card.name if self.card is not None else self.label

    def state(self, now: int) -> State:
        """Return whether it is valid at `now`, in milliseconds since 1970 UTC; `undescribed` without a card that is believed."""
        if self.revoked:
            return "revoked"
        if self.card is None:
            return "undescribed"
        return "expired" if now >= self.card.expires else "valid"


def believed_cards(replica: Replica) -> dict[str, AgentCard]:
    """Return the valid card of each agent by its id, of those that a device of the agent's person wrote whom a root enrolled."""
    ring = replica.ring
    if ring is None:
        return {}
    valid: dict[str, AgentCard] = {}
    for event in Timeline(replica).events():
        card = read_agent(event)
        if card is None or not _is_believed(ring, card):
            continue
        before = valid.get(card.agent)
        if before is None or _order(before) < _order(card):
            valid[card.agent] = card
    return valid


def _order(card: AgentCard) -> tuple[str | int, int, str]:
    """Return what orders cards of one agent: the instant, then the number in the id, which is not padded."""
    number = card.id.rpartition("-")[2]
    return card.at, int(number) if number.isdecimal() else 0, card.id


def _is_believed(ring: Ring, card: AgentCard) -> bool:
    view = ring.view
    writer = view.members.get(card.by)
    if writer is None or writer.kind == "agent" or view.rank_of(card.by) != RANK_ROOT:
        return False
    owner = view.owners.get(card.agent)
    return owner is not None and view.owners.get(card.by) == owner


def agents_of(replica: Replica) -> list[Agent]:
    """Return the agent keys of this vault, members and removed ones with a card, by name."""
    ring = replica.ring
    if ring is None:
        return []
    members = {one.id: one for one in ring.view.members.values() if is_agent(one)}
    if not members and not ring.view.revoked:
        return []  # the timeline, which can be long, is read only where an agent is or was
    cards = believed_cards(replica)
    found = [Agent(one.id, one.label, cards.get(one.id), False) for one in members.values()]
    found += [
        Agent(id_, card.name, card, True)
        for id_, card in cards.items()
        if id_ not in members and ring.view.is_revoked(id_)
    ]
    return sorted(found, key=lambda one: (one.revoked, one.name, one.id))


def is_agent(member: RingMember) -> bool:
    """Tell whether a member is the agent of an agent key: enrolled as one, to read only or through a mailbox."""
    return member.kind == "agent" and member.family == member.id and member.role != "admin"


def enrol_agent(replica: Replica, root: RootKeys, key: AgentKey, name: str, expires: int) -> None:
    """Enrol the member of a new key as a reader, and write its card. Raises MembershipError, LimitError."""
    with replica.transaction():
        ring = replica.ring
        assert ring is not None
        public = operations.enrollee_of(key.signer, key.box_public, name, ring.vault, kind="agent")
        since = next_hlc(replica.store.frame.hlc, replica.environment.now())
        replica.set_ring(operations.enrol(ring, root.admin, public, "reader", since=since))
        write_card(replica, key.id, name, "reader", (), expires)


def revoke_expired(replica: Replica, ring: Ring, root: RootKeys) -> tuple[Ring, list[str]]:
    """Return a ring in which expired agents are revoked, and their names (inside a transaction). An admin unlock runs it after
    it joined all heads."""
    now, frame = replica.environment.now(), replica.store.frame
    names = []
    for one in agents_of(replica):
        if one.state(now) == "expired":
            at = next_hlc(frame.hlc, now)
            ek = replica.environment.random(32)
            ring = operations.revoke(ring, root.admin, one.id, at=at, counters=frame.ctx, ek=ek)
            names.append(one.name)
    return ring, names


def write_card(
    replica: Replica, agent: str, name: str, role: str, scopes: tuple[str, ...], expires: int
) -> None:
    """Write the card of an agent; it replaces an earlier one (inside a transaction).

    Raises MembershipError if the card would not be valid: this device was added by another device instead of the
    owner's wallet, or an earlier card is from a clock that is ahead.
    """
    Timeline(replica).note(AGENT, agent_data(agent, name, role, scopes, expires))
    card = believed_cards(replica).get(agent)
    if card is not None and card.by == replica.device.id and card.expires == expires:
        return
    ring = replica.ring
    if card is not None and ring is not None and ring.view.rank_of(replica.device.id) == RANK_ROOT:
        raise MembershipError(
            f"the agent key {name} cannot be changed: a device whose clock is ahead wrote its current end",
            hint=f"Revoke it: ipfsmem agent revoke {name}",
        )
    raise MembershipError(
        f"the agent key {name} needs a device that the owner's wallet added, and this device was added in another way",
        hint="Run the command on a device that was added with the wallet.",
    )


def refuse_revoked(replica: Replica) -> None:
    """Raise MembershipError if the ring that was found removed this agent."""
    ring = replica.ring
    if ring is not None and ring.view.is_revoked(replica.device.id):
        raise MembershipError("this agent key was revoked", hint=_ASK)


def refuse_expired(replica: Replica) -> None:
    """Raise MembershipError if no card of this agent says that its key is still valid."""
    id_ = replica.device.id
    card = believed_cards(replica).get(id_)
    if card is None:
        raise MembershipError(
            "this agent key has no valid end: the device that set it was revoked, or was not added by the owner",
            hint=f"Its owner can extend it, and its text stays the same: ipfsmem agent renew {id_}",
        )
    if replica.environment.now() >= card.expires:
        raise MembershipError(
            f"the agent key {card.name} expired on {_day(card.expires)}",
            hint=f"Its owner can extend it, and its text stays the same: ipfsmem agent renew {card.name}",
        )


def notices_of_agents(replica: Replica) -> list[str]:
    """Return what `status` says of agent keys that end soon or have expired; of an agent, what its key is."""
    now = replica.environment.now()
    if replica.as_agent:
        card = believed_cards(replica).get(replica.device.id)
        ends = "" if card is None else f" {card.name}, valid until {_day(card.expires)}"
        return [f"opened with the agent key{ends}: for reading only, in this process"]
    notices = []
    for one in agents_of(replica):
        if one.state(now) == "undescribed":
            notices.append(
                f"the agent key {one.name} has no valid end and opens nothing: ipfsmem agent renew {one.id}"
            )
        elif one.state(now) == "expired" and one.card is not None:
            notices.append(
                f"the agent key {one.name} expired on {_day(one.card.expires)}, and is revoked at the next unlock: ipfsmem agent renew {one.name}"
            )
        elif one.state(now) == "valid" and one.card is not None and one.card.expires - now <= WARN_BEFORE:
            notices.append(
                f"the agent key {one.name} expires on {_day(one.card.expires)}: ipfsmem agent renew {one.name}"
            )
    return notices


def _day(ms: int) -> str:
    day = local_day(ms, None)
    return "a later day" if day is None else day.isoformat()
