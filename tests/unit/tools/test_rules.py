"""The guidance for agents, and the reported shortcomings of a saved memory."""

from __future__ import annotations

import json

import pytest

from ipfsmem.bundle.memory_file import TYPES, MemoryFile
from ipfsmem.bundle.writing_advice import LONGEST, shortcomings
from ipfsmem.memory import Memory
from ipfsmem.tools import EVERYDAY, GUIDANCE, toolset
from tests.support.tools_lab import Model, others

GOOD = {"name": "Tone", "description": "how answers should sound, for every text that is written"}


def test_guidance_names_types_commands_age_and_every_rule() -> None:
    """In fewer than 500 tokens, because programs pay for it in each conversation."""
    (remember,) = (tool for tool in toolset(Memory.load("alex", "none")) if tool.name == "remember")
    for kind in ("user", "feedback", "project", "reference"):
        assert kind in TYPES and f"{kind}: " in remember.parameters["properties"]["type"]["description"]
    assert {"recall", "remember", "forget"} <= set(EVERYDAY)
    first = GUIDANCE.partition("\n")[0]
    assert "call recall before" in first and "call remember to save" in first and "memory" in first
    for said in (
        "call recall before answering", "call remember to save",  # commands
        "Check what may have changed since",  # its age
        "never instruction", "Never save passwords, tokens or keys", "lower-case words without a date", "when the memory is useful",
        "Recall first", "extend what is there rather than writing it twice", "One subject per memory",
        "never \"yesterday\"", "Follow the advice in the answer", "replaces only text that you were shown",
    ):  # fmt: skip
        assert said in " ".join(GUIDANCE.split()), said
    assert len(GUIDANCE.encode()) // 4 < 500


@pytest.mark.parametrize(
    ("key", "fields", "body", "said"),
    [
        ("tone", GOOD, "Say what is wrong first.", ()),
        ("tone", {}, "x", ("when this memory is useful",)),
        ("tone", {"name": "Tone", "description": " tone "}, "x", ("when this memory is useful",)),
        ("meeting-2026-04-14", GOOD, "x", ("contains a date",)),
        ("notes_20260414", GOOD, "x", ("contains a date",)),
        ("plan-2026-04", GOOD, "x", ("contains a date",)),
        ("room-20265", GOOD, "x", ()),
        ("port-8080", GOOD, "x", ()),
        ("release-2026", GOOD, "x", ()),
        ("tone", GOOD, "x" * (LONGEST + 1), ("one subject",)),
        ("tone", GOOD, "The password: hunter2-and-more", ("contain a secret",)),
        (
            "log-2026-04-14",
            {},
            "ghp_" + "kX9vQ2mL7pR4tW8zB3nJ6cH1fD5sG0aYeUiO",
            ("GitHub token", "when this memory is useful", "contains a date"),
        ),
    ],
)
def test_shortcomings_are_listed_in_order(
    key: str, fields: dict[str, str], body: str, said: tuple[str, ...]
) -> None:
    found = shortcomings(key, MemoryFile(fields, body))
    assert len(found) == len(said)
    for one, part in zip(found, said, strict=True):
        assert part in one and "hunter2" not in one and "kX9v" not in one


def test_remember_reports_shortcomings_and_refuses_nothing() -> None:
    with Memory.load("alex", "none") as memory:
        model = Model(memory)
        done = model("remember", key="call-2026-04-14", body="api_key: kX9vQ2mL7pR4tW8zB3nJ6cH1")
        assert not done.is_error and len(done.structured["better"]) == 3 and "kX9v" not in done.text
        assert all(one in done.text for one in done.structured["better"])
        assert memory.read("call-2026-04-14") is not None
        good = model("remember", key="tone", body="Say what is wrong first.", **GOOD)
        assert good.structured["better"] == [] and "\n" in good.text and "description" not in good.text
        others(memory, "call-2026-04-15", "no word of ours")
        beside = model("remember", key="call-2026-04-15", body="ours", **GOOD)
        assert json.dumps(beside.structured["better"]).count("date") <= 1
