"""`ipfsmem session`: conversations on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.cli import secret_input
from ipfsmem.memory import Memory
from tests.support.cli_lab import Cli


def lines(*items: dict[str, Any]) -> bytes:
    return "\n".join(map(json.dumps, items)).encode()


def turns(number: int, since: int = 0) -> list[dict[str, Any]]:
    return [
        {"role": role, "content": f"{what} {n}"}
        for n in range(since, since + number)
        for role, what in (("user", "question"), ("assistant", "answer"))
    ]


def test_session_is_created_read_searched_and_deleted(cli: Cli) -> None:
    assert cli.ok("session", "list").out == ""
    name = cli.ok("session", "create", "--title", "The boat").out.strip()
    added = cli.ok("session", "add", name, stdin=lines({"role": "system", "content": "Be kind."}, *turns(2)))
    assert added.out == f"5 messages added to {name}.\n"
    assert cli.ok("session", "resume").json["items"] == turns(2)
    assert cli.ok("session", "resume", name, "--last", "2").json["items"] == turns(1, 1)
    info = cli.ok("session", "info", name, "--json").json
    assert (info["title"], info["messages"], info["devices"], info["preview"]) == (
        "The boat",
        5,
        1,
        "answer 1",
    )
    page = cli.ok("session", "export", name).out
    assert page.startswith("# The boat\n\n## System, 20") and "> question 1\n" in page
    (found,) = cli.ok("session", "search", "answer 0", "--limit", "1", "--json").json["hits"]
    assert (found["session"], found["role"], found["text"]) == (name, "assistant", "answer 0")
    # The export can be imported.
    copy = cli.ok("session", "export", name, "--format", "json").out.encode()
    cli.ok("session", "add", "copy", stdin=copy)
    again = cli.ok("session", "export", "copy", "--format", "json", "--json").json
    assert (again["session"], again["format"]) == ("copy", "json")
    assert json.loads(again["text"]) == json.loads(copy)
    refused = cli.fails(2, "session", "delete", name)
    assert "with 5 messages, on every device" in refused.err and "--yes" in refused.err
    gone = cli.ok("session", "delete", name, "--yes", "--reason", "done").out
    assert gone.startswith(f"The session {name} is forgotten here with 5 messages")
    assert [one["session"] for one in cli.ok("session", "list", "--json").json["sessions"]] == ["copy"]
    cli.fails(4, "session", "info", name)
    assert "forgot" in cli.ok("timeline", "show").out


def test_session_list_shows_recent_sessions_and_keeps_the_others(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        cli.ok("session", "add", f"s{number}", stdin=lines(*turns(1)))
    shown = cli.ok("session", "list")
    assert [line.split("\t")[0] for line in shown.out.splitlines()] == [f"s{n}" for n in range(11, 1, -1)]
    assert "2 older sessions not shown" in shown.err and "session list --all" in shown.err
    assert len(cli.ok("session", "list", "--all", "--json").json["sessions"]) == 12
    assert cli.ok("session", "resume", "s0").json["items"] == turns(1)
    settings = tmp_path / "settings.toml"
    settings.write_text("[sessions]\nshown = 3\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(settings))
    assert len(cli.ok("session", "list", "--json").json["sessions"]) == 3
    settings.write_text("[sessions]\nshown = 0\n")
    assert "sessions" in cli.fails(3, "session", "list").err


def test_session_compact_shortens_one_or_all_due_sessions(cli: Cli) -> None:
    cli.ok("session", "add", "long", stdin=lines(*turns(45)))
    cli.ok("session", "add", "short", stdin=lines(*turns(12)))
    status = {one["session"]: one for one in cli.ok("session", "status", "--json").json["sessions"]}
    assert (status["long"]["due"], status["short"]["due"]) == (70, 0)
    assert cli.ok("session", "status").out.splitlines() == ["short\t24\t0\t0", "long\t90\t0\t70"]
    assert cli.ok("session", "compact", "--all").out == "long: 70 messages summarised.\n"
    assert cli.ok("session", "compact", "--all").out == "No session is long enough to be compacted.\n"
    assert cli.ok("session", "compact", "short", "--json").json == {
        "sessions": [{"session": "short", "covered": 4}],
        "problems": [],
    }
    first, *rest = cli.ok("session", "resume", "long").json["items"]
    assert "question 0" in first["content"] and rest == turns(9, 36)
    assert len(cli.ok("session", "export", "long", "--format", "json").json) == 90
    assert cli.ok("session", "search", "question 3", "--json").json["hits"][0]["text"] == "question 3"
    assert "summary of" in cli.ok("session", "info", "long").out


def test_session_belongs_to_its_scope(cli: Cli) -> None:
    cli.ok("session", "add", "chat", "--scope", "work", stdin=lines(*turns(1)))
    assert cli.ok("session", "list").out == "" and cli.ok("session", "search", "question").out == ""
    assert cli.ok("session", "resume", "--scope", "work").json["items"] == turns(1)
    cli.fails(4, "session", "resume")


def test_session_output_has_no_terminal_controls(cli: Cli) -> None:
    said = {"role": "user", "content": "\x1b[2Jgone \u202eback"}
    cli.ok("session", "add", "chat", stdin=lines(said))
    for command in (["list"], ["info", "chat"], ["search", "gone"], ["resume"]):
        shown = cli.ok("session", *command).out
        assert "\x1b" not in shown and "\u202e" not in shown, command
    assert cli.ok("session", "resume").json["items"] == [said]


def test_session_add_without_roles_recognises_speakers(cli: Cli) -> None:
    said = [{"speaker": "Ana", "text": "I keep an otter."}, {"name": "Bob", "content": "I keep a heron."}]
    added = cli.ok("session", "add", "chat", stdin=json.dumps(said).encode())
    assert "2 messages added" in added.out and "recall does not find" not in added.err
    found = {one["text"] for one in cli.ok("recall", "keep", "--kind", "message", "--json").json["moments"]}
    assert found == {"Ana: I keep an otter.", "Bob: I keep a heron."}
    assert "Ana: I keep an otter." in cli.ok("context", "--query", "who keeps an otter").out


def test_session_add_reports_messages_that_recall_cannot_find(cli: Cli) -> None:
    said = [{"role": "user", "content": "x"}, {"role": "narrator", "content": "y"}, {"a": 1}]
    added = cli.ok("session", "add", "chat", stdin=json.dumps(said).encode())
    assert "3 messages added" in added.out
    assert "2 of them have no known role and text" in added.err
    assert len(json.loads(cli.ok("session", "export", "chat", "--format", "json").out)) == 3


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (b"", "has no messages"),
        (b"[]", "has no messages"),
        (b'{"a": 1}\n[2]', "message 2 is not a JSON object"),
        (b"[1, 2]", "message 1 is not a JSON object"),
        (b"{", "neither a JSON list nor a JSON object on each line"),
        (b"\xff\xfe", "neither a JSON list nor a JSON object on each line"),
        (b'{"a": NaN}', "neither a JSON list nor a JSON object on each line"),
        (b"[" * 100_000, "neither a JSON list nor a JSON object on each line"),
    ],
)
def test_session_add_refuses_invalid_messages_and_adds_nothing(cli: Cli, given: bytes, why: str) -> None:
    assert why in cli.fails(2, "session", "add", "chat", stdin=given).err
    assert cli.ok("session", "list").out == ""


def test_scope_clear_asks_and_leaves_other_scopes_and_kinds(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.ok("scope", "clear").out == "Nothing to forget.\n"
    for scope in ([], ["--scope", "work"]):
        cli.ok("write", "tone", "--body", "Be brief.", *scope)
        cli.ok("fact", "add", "User likes tea", *scope)
        cli.ok("session", "add", "chat", *scope, stdin=lines(*turns(2)))
    refused = cli.fails(2, "scope", "clear")
    assert "this forgets 2 memories and 1 session, on every device" in refused.err and "--yes" in refused.err
    assert len(cli.ok("list", "--json").json["memories"]) == 2
    monkeypatch.setattr(secret_input, "can_ask", lambda: True)
    assert "1 session" in cli.ok("scope", "clear", "--sessions-only", "--yes").out
    assert cli.ok("session", "list").out == "" and len(cli.ok("list", "--json").json["memories"]) == 2
    cli.ok("session", "add", "chat", stdin=lines(*turns(1)))
    asked = cli("scope", "clear", "--memories-only", stdin=b"no\n")
    assert asked.code == 8 and "Forget 2 memories and 0 sessions, on every device?" in asked.err
    assert len(cli.ok("list", "--json").json["memories"]) == 2
    assert cli.ok("scope", "clear", "--memories-only", stdin=b"yes\n").out.startswith(
        "Forgotten here: 2 memories"
    )
    assert cli.ok("list", "--json").json["memories"] == [] and cli.ok("session", "resume", "chat").json[
        "items"
    ] == turns(1)
    assert cli.ok("fact", "history", "--json").json == {"facts": []}
    # Another scope is unchanged.
    assert len(cli.ok("list", "--scope", "work", "--json").json["memories"]) == 2
    done = cli.ok("scope", "clear", "--scope", "work", "--yes", "--json").json
    assert (done["memories"], done["sessions"], done["left"]) == (2, 1, [])
    assert cli.ok("session", "list", "--scope", "work").out == ""


def test_scope_clear_forgets_hidden_memories_and_deleted_facts(cli: Cli) -> None:
    for key in ("tone", "shy"):
        cli.ok("write", key, "--body", f"The {key} of it.")
    cli.ok("hide", "shy")
    key = cli.ok("fact", "add", "User likes zebras", "--json").json["fact"]["key"]
    cli.ok("fact", "delete", key)
    assert cli.ok("scope", "clear", "--yes").out.startswith("Forgotten here: 3 memories and 0 sessions")
    assert cli.ok("list", "--hidden").out == "" == cli.ok("fact", "history").out
    for gone in ("tone", "shy"):
        cli.fails(4, "read", gone)
    assert cli.ok("scope", "clear", "--yes").out == "Nothing to forget.\n"


def test_fact_written_during_the_clear_question_remains(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [
        cli.ok("fact", "add", said, "--json").json["fact"]["key"]
        for said in ("User likes zebras", "Lunch is at noon")
    ]
    for key in keys:
        cli.ok("fact", "delete", key)
    cli.ok("write", "tone", "--body", "Be brief.")

    def write_meanwhile(*_: object, **__: object) -> bool:
        with Memory.load(home=cli.home) as memory:
            memory.facts.restore(keys[0])
            memory.write("tone", "Be very brief.")
        return True

    monkeypatch.setattr(secret_input, "can_ask", lambda: True)
    monkeypatch.setattr("click.confirm", write_meanwhile)
    done = cli("scope", "clear")
    assert done.code == 7 and all(key in done.err for key in ("tone", keys[0])), done
    assert "zebras" in cli.ok("read", keys[0]).out and "very" in cli.ok("read", "tone").out
    assert cli.ok("fact", "history").out == ""


def lose_text(cli: Cli, key: str) -> None:
    """Delete the text of a memory from disk, but not its entry."""
    with Memory.load(home=cli.home) as memory, memory.replica.transaction():
        memory.replica.store.checkpoint(folders=False)
        (value,) = memory.replica.store.entry(f"m/{key}").values()
        assert value.loc is not None
        memory.replica.db.connection.execute(
            "DELETE FROM blocks WHERE digest=?", (bytes.fromhex(value.loc.sha),)
        )


def test_scope_clear_forgets_a_text_missing_on_this_device(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "Be brief.")
    lose_text(cli, "tone")
    assert not cli.ok("list", "--json").json["memories"][0]["fetched"]
    assert cli.ok("scope", "clear", "--yes").out.startswith("Forgotten here: 1 memory")
    assert cli.ok("list", "--json").json["memories"] == []


def test_clear_forgets_hidden_memory_and_edited_fact_with_lost_texts(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "Be brief.")
    cli.ok("write", "music", "--body", "Fugues.")
    cli.ok("hide", "tone")
    key = cli.ok("fact", "add", "User likes zebras", "--json").json["fact"]["key"]
    cli.ok("fact", "edit", key, "User likes lions")
    lose_text(cli, "tone")
    lose_text(cli, key)
    assert "tone" in cli.ok("list", "--hidden").out
    assert cli.ok("fact", "history").out == ""
    assert cli.ok("scope", "clear", "--yes").out.startswith("Forgotten here: 3 memories")
    assert cli.ok("list", "--json").json["memories"] == [] and cli.ok("list", "--hidden").out == ""
    assert cli.ok("fact", "history").out == ""


def test_session_list_is_complete_while_earlier_text_of_a_fact_is_lost(sealed: Cli, second: Cli) -> None:
    """A fact with a lost text is not a session; a session with a lost part is still named."""
    fact = sealed.ok("fact", "add", "User likes zebras", "--json").json["fact"]["key"]
    sealed.ok("fact", "edit", fact, "User likes lions")
    sealed.ok("session", "add", "boat", stdin=lines(*turns(1)))
    sealed.ok("session", "add", "sea", stdin=lines(*turns(1)))
    for device in (sealed, second):
        device.ok("sync")
    second.ok("session", "add", "boat", stdin=lines(*turns(1, 1)))
    for device in (second, sealed):
        device.ok("sync")
    with Memory.load(home=sealed.home) as memory:
        parts = [name.removeprefix("m/") for name in memory.replica.store.names() if "/session-" in name]
        own = memory.device
    lose_text(sealed, next(key for key in parts if "ipfsmem_history" in key))
    listed = sealed.ok("session", "list", "--all", "--json").json["sessions"]
    assert sorted(one["session"] for one in listed) == ["boat", "sea"]
    lose_text(sealed, next(key for key in parts if key.startswith("session-boat-") and own not in key))
    assert "question 0" in sealed.ok("session", "export", "sea").out
    assert "the session boat" in sealed.fails(4, "session", "list").err
    lose_text(sealed, next(key for key in parts if key.startswith("session-sea-")))
    assert "session-sea-" in sealed.fails(4, "session", "list").err


def test_scope_clear_forgets_a_merged_text(sealed: Cli, second: Cli) -> None:
    sealed.ok("write", "tone", "--body", "One.\n\nTwo.\n\nThree.")
    sealed.ok("sync")
    second.ok("sync")
    sealed.ok("write", "tone", "--body", "First.\n\nTwo.\n\nThree.")
    second.ok("write", "tone", "--body", "One.\n\nTwo.\n\nThird.")
    for device in (sealed, second, sealed):
        device.ok("sync")
    assert sealed.ok("list", "--json").json["memories"][0]["merged"]
    assert sealed.ok("scope", "clear", "--yes").out.startswith("Forgotten here: 1 memory")
    assert sealed.ok("list", "--json").json["memories"] == []


def test_deleted_fact_can_be_forgotten(cli: Cli) -> None:
    key = cli.ok("fact", "add", "User likes zebras", "--json").json["fact"]["key"]
    cli.ok("fact", "delete", key)
    assert "zebras" in cli.ok("fact", "history").out
    cli.ok("forget", key)
    assert cli.ok("fact", "history").out == ""
    cli.fails(4, "fact", "history", key)  # like a fact that never existed
    cli.fails(4, "forget", key)


def test_damaged_session_is_listed_and_can_be_deleted(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[sessions]\nhere_only = true\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    for name in ("sound", "torn", "worn"):
        cli.ok("session", "add", name, stdin=lines(*turns(2)))
    with Memory.load(home=cli.home) as memory, memory.replica.transaction():
        db = memory.replica.db.connection
        _, torn, worn = db.execute("SELECT mark FROM sessions_here WHERE n = 0 ORDER BY rowid").fetchall()
        for (mark,), n in ((torn, 0), (worn, 3)):
            db.execute("UPDATE sessions_here SET row = x'00' WHERE mark = ? AND n = ?", (mark, n))
    for command in (["list"], ["status"], ["search", turns(1)[0]["content"]], ["compact", "--all"]):
        for form in ([], ["--json"]):
            said = cli("session", *command, *form)
            listed = said.out
            if form:
                listed = str(said.json["hits" if command[0] == "search" else "sessions"])
                assert [one["session"] for one in said.json["problems"]] == ["worn", "torn"]
            assert (
                said.code == 30
                and ("sound" in listed or (command[0] == "compact" and not form))
                and "torn" not in listed
            ), said
            for name in ("torn", "worn"):
                assert f"the session '{name}' differs from the written one" in said.err
            assert "ipfsmem session delete SESSION" in said.err
    assert "messages that cannot be read" in cli.ok("session", "delete", "torn", "--yes").out
    assert cli.ok("session", "delete", "worn", "--yes", "--json").json["messages"] is None
    assert [one["session"] for one in cli.ok("session", "list", "--json").json["sessions"]] == ["sound"]
    cli.fails(4, "session", "delete", "torn", "--yes")
