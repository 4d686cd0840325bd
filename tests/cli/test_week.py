"""The commands of docs/guides/week.md print the documented output, and both devices end with the same texts."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def make_week(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    return import_module("make_week")


def test_guide_of_a_week_shows_the_printed_output(make_week: ModuleType, tmp_path: Path) -> None:
    page = make_week.TARGET.read_text("utf-8")
    with make_week.week(tmp_path) as played:
        now = make_week.play(page, played)
        assert now == page, "run: python docs/make_week.py"
        # Only the undo that kept one text did less than was asked.
        assert [code for code in played.codes if code] == [7]
        laptop, desktop = (
            {
                key: played.ask(device, "read", key, "--json")["sha256"]
                for key in [one["key"] for one in played.ask(device, "list", "--json")["memories"]]
            }
            for device in ("laptop", "desktop")
        )
        assert laptop == desktop and {"till", "flyer", "opening"} <= laptop.keys() and "cash" not in laptop
        events = [
            played.ask(device, "timeline", "show", "--json")["events"] for device in ("laptop", "desktop")
        ]
        assert events[0] == events[1]
        kinds = [one["type"] for one in events[0]]
        assert (kinds.count("dream"), kinds.count("dream_undone"), kinds.count("usage")) == (4, 2, 2)
        for device in ("laptop", "desktop"):
            assert played.ask(device, "conflicts", "--json")["conflicts"] == []
            assert len(played.ask(device, "session", "resume", "planning", "--json")["items"]) == 5
