"""Letta's agent file `.af`: the memory blocks of its agents. Messages are one event per agent: their number, and first and last
time.

Both forms are read: {agents, groups, blocks, ...} as servers since 2025 write it, and the single agent with `core_memory` from
before. System prompts, tools and environment variables are not memories, and are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ipfsmem.bundle.timeline import normal_ts
from ipfsmem.errors import FormatError
from ipfsmem.exchange.json_input import read_json
from ipfsmem.exchange.lenient import Fields, date_of, items_of
from ipfsmem.exchange.places import Files, each_file
from ipfsmem.exchange.records import Happened, ImportRecord, Item, Problem, Skipped, one_line, records_of

#: Maximum named agents of a block.
_OWNERS = 20


def read(files: Files) -> Iterator[Item]:
    """Yield the blocks of every agent file in a place."""
    yield from each_file(files, files.ending(".af", ".json"), _agent_file)


def _agent_file(file: str, data: bytes) -> Iterator[Item]:
    content = read_json(data, file)
    if not isinstance(content, dict) or not ({"blocks", "agents", "core_memory"} & content.keys()):
        raise FormatError(f"{file} is not an agent file of Letta")
    if "core_memory" in content:
        content = {"agents": [{**content, "memory_blocks": content["core_memory"]}]}
    agents: list[dict[str, Any]] = []
    for number, one in enumerate(items_of(content.get("agents")), 1):
        if isinstance(one, dict):
            agents.append(one)
        elif one:
            yield Problem(f"agent in {file}, number {number}", "it is not a JSON object")
    owned = _owners(agents)
    blocks = [(owned.get(_id(one), ""), one) for one in items_of(content.get("blocks"))]
    for agent in agents:
        blocks += [(_name(agent), one) for one in items_of(agent.get("memory_blocks"))]
    yield from records_of(blocks, f"block in {file}, number", lambda at, one: _block(at, one[1], one[0]))
    for agent in agents:
        yield from _messages(agent)


def _owners(agents: list[dict[str, Any]]) -> dict[str, str]:
    """Return the agents that a block belongs to, by its id in the file; several names together."""
    owned: dict[str, dict[str, None]] = {}
    for agent in agents:
        name = _name(agent)
        idents = agent.get("block_ids")
        for ident in idents if isinstance(idents, list) else ():
            if isinstance(ident, str) and len(names := owned.setdefault(ident, {})) < _OWNERS:
                names[name] = None
    return {ident: one_line(", ".join(names), 300) for ident, names in owned.items()}


def _id(block: object) -> str:
    id_value = block.get("id") if isinstance(block, dict) else None
    return id_value if isinstance(id_value, str) else ""


def _name(agent: Mapping[str, Any]) -> str:
    return one_line(Fields(agent).text("name"), 200)


def _block(place: str, value: Any, agent: str) -> ImportRecord | Skipped:
    fields = Fields(value, "value")
    text, label = fields.body("value", "value"), fields.text("label")
    if not text.strip():
        return Skipped("an empty block")
    return ImportRecord(
        where=place,
        text=text,
        ident=f"{agent}\n{label}",
        name=label or agent,
        description=fields.text("description"),
        type="user" if label == "human" else "reference",
        source=f"letta:{label}"[:300],
        fields={"agent_name": agent},
        extra=fields.rest(fields.mapping("metadata", "metadata_")),
    )


def _messages(agent: Mapping[str, Any]) -> Iterator[Item]:
    messages = items_of(agent.get("messages"))
    dates = (date_of(one.get("created_at")) for one in messages if isinstance(one, dict))
    times = sorted(filter(None, dates), key=normal_ts)
    if times:
        data = {"agent": _name(agent), "messages": len(messages), "until": times[-1]}
        yield Happened({"ts": times[0], "type": "conversation", "source": "letta", **data})
