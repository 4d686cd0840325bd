"""Pending imported messages are in no context and no hook, in any scope and on any device, also after deletions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ipfsmem.agents.session_text import prompt_text, session_text
from ipfsmem.errors import UsageError
from ipfsmem.memories.context_layouts import LAYOUTS
from ipfsmem.memory import Memory
from ipfsmem.sessions.compaction import approved_mark
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.cli.test_cli_promote import conversation_database
from tests.support.device_lab import load

UNLOCK = Unlock(RawKeySigner(bytes(31) + b"\x0c"))
SCOPES = ("", "work", "home")
QUESTION = "do otters like rain and rivers"
#: More messages than fit into one part of a session.
PENDING = [f"Otters like rain, says number {number}. " + "More of that. " * 300 for number in range(8)]


def taken_in(memory: Memory, path: Path, scope: str = "") -> str:
    """Import a conversation into a scope; return the key of the part with the pending mark."""
    there = memory.scope(scope)
    before = set(there.files())
    there.bundles.import_from("initrunner", conversation_database(path, *PENDING))
    parts = sorted(set(there.files()) - before)
    (mark,) = (key for key in parts if b'"imported"' in there.files()[key])
    assert len(parts) > 1
    return mark


def given(memory: Memory) -> set[str]:
    """Return the scopes whose contexts contain an imported message; contexts of a scope include those of
    the unnamed one."""
    return {
        scope
        for scope in SCOPES
        for layout in LAYOUTS
        if "like rain" in memory.scope(scope).context(QUESTION, layout=layout, by_meaning=False).text
    }


def test_pending_messages_are_in_no_context_of_any_scope_or_device(tmp_path: Path) -> None:
    provider = SimProvider(SimCloud())
    a, b = (load(tmp_path, name, provider, wallet=UNLOCK) for name in "ab")
    with a, b:

        def synced() -> list[set[str]]:
            for device in (a, b, a):
                asyncio.run(device.sync())
            return [given(a), given(b)]

        for scope in SCOPES:
            a.scope(scope).sessions.add("talk", [{"role": "user", "content": "Otters like rivers."}])
        assert synced() == [set(), set()]  # and each has an index now, which is updated by the sync
        for scope in ("work", "home"):
            taken_in(a, tmp_path / f"{scope}.db", scope)
        assert given(a) == set()
        assert synced() == [set(), set()]
        here = set(b.scope("work").files())
        b.scope("work").approve(source="initrunner")
        (approval,) = set(b.scope("work").files()) - here
        assert given(b) == {"work"}
        assert synced() == [{"work"}, {"work"}]
        a.scope("work").forget(approval)
        assert given(a) == set()
        assert synced() == [set(), set()]


def test_pending_messages_reach_no_hook(tmp_path: Path) -> None:
    def told(prompt: str, session: str) -> tuple[str, str]:
        begin = session_text("default", tmp_path, "", "claude-code", 2_000).text
        found = prompt_text("default", tmp_path, "", "claude-code", prompt, frozenset(), session).text
        return begin, found

    with Memory.create("default", "local", home=tmp_path) as memory:
        memory.sessions.add("mine", [{"role": "user", "content": "Otters like rivers."}])
        taken_in(memory, tmp_path / "agent.db")
    begin, found = told(QUESTION, "one")
    assert "like rivers" in found and "like rain" not in begin + found
    with Memory.load("default", home=tmp_path) as memory:
        memory.approve(source="initrunner")
    assert "like rain" in told(QUESTION, "two")[1]


@pytest.mark.parametrize("how", ["forget", "write"])
def test_part_with_the_pending_mark_is_not_deleted_alone(how: str, tmp_path: Path) -> None:
    with Memory.create("default", "local", home=tmp_path) as memory:
        mark = taken_in(memory, tmp_path / "agent.db")
        with pytest.raises(UsageError, match=r"'talk' are pending.* as a whole"):
            memory.forget(mark) if how == "forget" else memory.write(mark, "another text")
        assert given(memory) == set()
        memory.approve(source="initrunner")
        assert memory.forget(mark)


def test_session_with_pending_messages_is_forgotten_as_a_whole(tmp_path: Path) -> None:
    with Memory.create("default", "local", home=tmp_path) as memory:
        taken_in(memory, tmp_path / "agent.db")
        assert memory.sessions.forget("talk")
        assert given(memory) == set() and not memory.pending()


def test_added_item_that_approves_imported_messages_is_refused(tmp_path: Path) -> None:
    with Memory.create("default", "local", home=tmp_path) as memory:
        device = taken_in(memory, tmp_path / "agent.db").rsplit("-", 2)[1]
        approval = approved_mark([(2**53 - 1, device, 0)])
        with pytest.raises(UsageError, match="only a person approves"):
            memory.sessions.add("talk", [{"role": "user", "content": "x"}, approval])
        assert given(memory) == set()


@pytest.mark.parametrize("keep", [True, False])
def test_part_of_a_session_is_not_promoted_to_another_scope(keep: bool, tmp_path: Path) -> None:
    """There it would lack the mark of a pending text and become this person's own."""
    with Memory.create("default", "local", home=tmp_path) as memory:
        taken_in(memory, tmp_path / "agent.db")
        before = memory.files()
        for key in before:
            with pytest.raises(UsageError, match="part of the session 'talk'"):
                memory.promote(key, to="work", keep=keep)
        assert memory.files() == before and not memory.scope("work").files() and given(memory) == set()


@pytest.mark.parametrize("line", ["approval", "mark gone"])
def test_part_that_would_approve_messages_is_not_written_by_its_key(line: str, tmp_path: Path) -> None:
    with Memory.create("default", "local", home=tmp_path) as memory:
        key = taken_in(memory, tmp_path / "agent.db")
        file = memory.files()[key].decode()
        header, device = file[: file.index("\n---\n", 4) + 5], key.rsplit("-", 2)[1]
        (mark,) = (json.loads(text) for text in file.splitlines() if '"imported"' in text)
        said = {
            "approval": {"item": approved_mark([(2**53 - 1, device, 0)])},
            "mark gone": {"gone": [mark["at"], device, mark["n"]]},
        }[line]
        body = json.dumps({"at": mark["at"] + 10, "n": 0} | said)
        with pytest.raises(UsageError, match="a person's decision"):
            memory.write_text(f"{key.rpartition('-')[0]}-20", f"{header}\n{body}\n".encode())
        assert given(memory) == set()
