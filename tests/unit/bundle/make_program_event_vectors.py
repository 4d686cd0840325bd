"""Writes fixtures/vectors/program_events.json: events of the three types with a meaning in format section
1.4, and their results. Run it from the checkout after a change of the format; a test compares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem.bundle.program_events import read_agent, read_move, read_vault

TARGET = Path(__file__).parents[3] / "fixtures" / "vectors" / "program_events.json"
ABOUT = (
    "Events with a meaning, format section 1.4. 'rows': an event as it stands in its writer's segment, and what it comes to: "
    "'move' {at, by, id, left, to} for a forwarding record that counts, 'vault' {address, key_number, name} for a further "
    "vault, both null for what is an event like any other. 'newest': forwarding records of several devices, and the id of "
    "the one that counts. 'agents': an event, and the 'agent' {agent, at, by, expires, id, name, role, scopes} that it "
    "describes, null for an event like any other."
)
DEV = "00aabbccddeeff11"
OTHER = "11bbccddeeff0022"
ADDRESS = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"


def moved(**over: Any) -> dict[str, Any]:
    event = {
        "ts": "2026-04-14T12:03:12.000Z",
        "type": "ipfsmem-moved",
        "id": f"{DEV}-7",
        "from": ["/media/stick"],
        "to": "pinata",
    }
    return {name: value for name, value in {**event, **over}.items() if value is not None}


def vault(**over: Any) -> dict[str, Any]:
    event = {
        "ts": "2026-04-14T12:03:12.000Z",
        "type": "ipfsmem-vault",
        "id": f"{DEV}-8",
        "address": ADDRESS,
        "key_number": 1,
        "name": "work",
    }
    return {name: value for name, value in {**event, **over}.items() if value is not None}


def agent(**over: Any) -> dict[str, Any]:
    event = {
        "ts": "2026-04-14T12:03:12.000Z",
        "type": "ipfsmem-agent",
        "id": f"{DEV}-9",
        "agent": "2233445566778899",
        "expires": 1_800_000_000_000,
        "name": "web",
        "role": "reader",
        "scopes": [],
    }
    return {name: value for name, value in {**event, **over}.items() if value is not None}


AGENTS = [
    agent(),
    agent(ts="2026-04-14T14:03:12+02:00", name="a" * 32, expires=1),
    agent(role="writer", scopes=["acme-api", "notes"]),
    agent(role="append", scopes=[f"s{n:02}" for n in range(16)]),
    agent(role="drop", scopes=["inbox"], expires=2**53 - 1),
    agent(role="admin"),
    agent(role=["reader"]),
    agent(name="Web"),
    agent(name="-web"),
    agent(name="a" * 33),
    agent(name=""),
    agent(agent="2233445566778899aa"),
    agent(agent="223344556677889G"),
    agent(expires=0),
    agent(expires=True),
    agent(expires=1.5),
    agent(expires="1800000000000"),
    agent(scopes=["notes", "acme-api"]),
    agent(scopes=["notes", "notes"]),
    agent(scopes=["Notes"]),
    agent(scopes="notes"),
    agent(scopes=[f"s{n:02}" for n in range(17)]),
    agent(scopes=None),
    agent(why="more"),
    agent(id="0123456789abcdef"),
    agent(type="agent"),
]
EVENTS = [
    moved(),
    moved(ts="2026-04-14T14:03:12+02:00"),
    moved(**{"from": ["/media/stick", "kubo:http://127.0.0.1:5001"], "to": "directory"}),
    moved(**{"from": [f"p{n}" for n in range(16)]}),
    moved(to="x" * 512),
    moved(to="Ordner \u00fc"),
    moved(type="moved"),
    moved(id="0123456789abcdef"),
    moved(id=f"{DEV}-0"),
    moved(to=""),
    moved(to="x" * 513),
    moved(to="a\nb"),
    moved(to="a\u0085b"),
    moved(to=5),
    moved(**{"from": "/media/stick"}),
    moved(**{"from": [5]}),
    moved(**{"from": [f"p{n}" for n in range(17)]}),
    moved(why="more"),
    moved(to=None),
    vault(),
    vault(key_number=2**31 - 1, name="a" * 32),
    vault(name="Work"),
    vault(name="-work"),
    vault(name="a" * 33),
    vault(key_number=0),
    vault(key_number=2**31),
    vault(key_number=True),
    vault(key_number=1.5),
    vault(address=ADDRESS.upper()),
    vault(address=ADDRESS[:-1]),
    vault(address=None),
    vault(id="0123456789abcdef"),
]
NEWEST = [
    [moved(), moved(ts="2026-04-14T14:03:13+02:00", id=f"{OTHER}-1")],
    [moved(), moved(id=f"{OTHER}-1")],
    [moved(ts="2026-04-15"), moved(id=f"{OTHER}-1")],
]


def vectors() -> dict[str, Any]:
    """The whole file."""
    from ipfsmem.bundle.program_events import newer_move

    newest = []
    for events in NEWEST:
        counts = None
        for event in events:
            counts = newer_move(counts, read_move(event))
        newest.append({"events": events, "id": counts.id if counts else None})
    rows = [
        {
            "event": event,
            "move": msgspec.to_builtins(read_move(event)),
            "vault": msgspec.to_builtins(read_vault(event)),
        }
        for event in EVENTS
    ]
    agents = [{"event": event, "agent": msgspec.to_builtins(read_agent(event))} for event in AGENTS]
    return {"about": ABOUT, "rows": rows, "newest": newest, "agents": agents}


def text() -> str:
    """The bytes of the file."""
    return json.dumps(vectors(), indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), "utf-8")
