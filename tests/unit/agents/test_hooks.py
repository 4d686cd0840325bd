"""A hook prints local texts, starts a background sync, and never disturbs the agent."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ipfsmem.memories.context
from ipfsmem.agents import background_start, background_sync, hooks
from ipfsmem.agents.adoption import carry_out, plan_project
from ipfsmem.agents.projects import bind, choose_scope, find_connected
from ipfsmem.agents.session_text import TOOLS
from ipfsmem.device import agent_notes
from ipfsmem.device.agent_notes import (
    MAX_SESSIONS,
    background_notes,
    hook_notes,
    note_background,
    note_hook,
)
from ipfsmem.device.lock import file_lock
from ipfsmem.device.project_folders import follow_program
from ipfsmem.errors import StorageError
from ipfsmem.files.projects import project_at
from ipfsmem.memories.meaning import Meaning
from ipfsmem.memory import Memory
from ipfsmem.tools.toolset import toolset
from tests.support.agents_lab import Claude, repository, worktree
from tests.support.patience import PATIENCE

HOUR = 3_600_000
bytes_io = io.BytesIO


class Hooks:
    """A vault in mode `local`, and the hooks of programs on it."""

    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.place = self.home / "default"
        self.ms = 1_776_000_000_000
        self.started: list[str] = []
        self.gave_up = 0
        #: Set when the hook's time was over.
        self.over = threading.Event()
        self.wrong = ""
        with Memory.create("default", "local", home=self.home) as memory:
            memory.write("who", "Everybody's: Alex works on firmware.", description="who Alex is")

    def start_sync(self, vault_name: str, home: Path, folder: str) -> None:
        self.started.append(folder)

    def give_up(self) -> None:
        self.gave_up += 1
        self.over.set()

    def __call__(
        self, event: str, folder: Path | str, *, program: str = "claude-code", session: str = "s"
    ) -> Any:
        """Run a hook; return its output as JSON."""
        said = json.dumps({"cwd": str(folder), "session_id": session}).encode()
        return self.given(event, said, program)

    def given(self, event: str, said: bytes, program: str = "claude-code") -> Any:
        out = io.BytesIO()
        self.ms += 1000
        self.wrong = hooks.run_hook(
            event,
            program,
            "default",
            self.home,
            stdin=io.BytesIO(said),
            stdout=out,
            now=lambda: self.ms,
            start_sync=self.start_sync,
            environment={},
            give_up=self.give_up,
        )
        return json.loads(out.getvalue()) if out.getvalue() else None

    def context(self, event: str, folder: Path, **named: str) -> str:
        """Return the text for the model."""
        said = self(event, folder, **named)
        return "" if said is None else str(said.get("hookSpecificOutput", {}).get("additionalContext", ""))

    def line(self, folder: Path, session: str = "s") -> str:
        """Return the line for the user at the start of a session."""
        said = self("session-start", folder, session=session)
        return "" if said is None else str(said.get("systemMessage", ""))

    def open(self) -> Memory:
        return Memory.load("default", home=self.home)


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hooks:
    """Without a time limit, for loaded machines; a separate test covers the limit."""
    monkeypatch.setattr(hooks, "BOUNDS", {"session-start": 60.0})
    monkeypatch.setattr(hooks, "_BOUND", 60.0)
    return Hooks(tmp_path)


def connect(hook: Hooks, folder: Path) -> str:
    with hook.open() as memory:
        project = project_at(folder)
        scope = bind(memory, project, choose_scope(memory, project)).scope
        memory.scope(scope).write("deploy", "Deploy with make ship.", description="how to deploy")
    return scope


def test_session_start_delivers_default_scope_and_project_texts(hook: Hooks, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    other = repository(tmp_path / "other", "https://github.com/b/other")
    connect(hook, root)
    given = hook.context("session-start", root)
    assert "who Alex is" in given
    assert "how to deploy" in given
    elsewhere = hook.context("session-start", other)
    assert "who Alex is" in elsewhere
    assert "how to deploy" not in elsewhere
    assert hook.started == [str(root), str(other)]
    assert not hook.wrong


def test_archive_with_our_remote_receives_no_project_texts(hook: Hooks, tmp_path: Path) -> None:
    connect(hook, repository(tmp_path / "api"))
    assert "how to deploy" not in hook.context("session-start", repository(tmp_path / "archive"))


def test_memory_read_by_claude_itself_is_not_delivered_twice(hook: Hooks, tmp_path: Path) -> None:
    root, claude = repository(tmp_path / "api"), Claude(tmp_path / "me")
    claude.remembers(root, "deploy", "Deploy with make ship.", "how to deploy")
    with hook.open() as memory:
        carry_out(memory, plan_project(memory, claude.home, root))
    assert "how to deploy" not in hook.context("session-start", root)
    assert "who Alex is" in hook.context("session-start", root)
    assert "how to deploy" in hook.context("session-start", root, program="codex")


@pytest.mark.parametrize("own", [False, True])
def test_extra_worktree_with_own_folder_gets_the_project(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    root, claude = repository(tmp_path / "api"), Claude(tmp_path / "me")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(claude.folder))
    claude.remembers(root, "deploy", "Deploy with make ship.", "how to deploy")
    tree = worktree(root, tmp_path / "feature")
    if own:
        claude.remembers(tree, "login", "Login uses JWT.", "how to log in")
    with hook.open() as memory:
        carry_out(memory, plan_project(memory, claude.home, root))
    (tree / "sub").mkdir()
    for folder in (tree, tree / "sub"):
        assert ("how to deploy" in hook.context("session-start", folder)) is own
    assert "how to deploy" not in hook.context("session-start", root)


@pytest.mark.parametrize(
    ("before", "inside"),
    [(b"", "\\ud83d"), (b"\xef\xbb\xbf", ""), (b"\xef\xbb\xbf", "\\udca9"), (b"", "\xff")],
)
def test_cut_emoji_and_byte_order_mark_lose_no_input(
    hook: Hooks, tmp_path: Path, before: bytes, inside: str
) -> None:
    root = repository(tmp_path / "api")
    connect(hook, root)
    said = f'{{"session_id": "s", "cwd": "{root}", "title": "half {inside}", "prompt": "how do I deploy with ship {inside}"}}'
    data = before + said.encode("latin-1")
    assert "how to deploy" in str(hook.given("session-start", data))
    assert "Deploy with make ship." in str(hook.given("prompt", data))
    assert not hook.wrong


def test_input_in_utf16_is_read(hook: Hooks, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    connect(hook, root)
    said = f'{{"session_id": "s", "cwd": "{root}"}}'
    assert "how to deploy" in str(hook.given("session-start", said.encode("utf-16")))


def test_hook_input_that_is_not_json_is_reported(hook: Hooks) -> None:
    assert "who Alex is" in str(hook.given("session-start", b'{"cwd": "/work'))
    assert "unreadable hook input" in hook.wrong
    assert "unreadable hook input" in hook_notes(hook.place).failure
    assert hook.given("session-start", b"") and not hook.wrong


def test_first_prompt_of_qwen_code_delivers_the_session_start(hook: Hooks, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    connect(hook, root)
    first = asks(hook, root, "what is the weather like", program="qwen-code")
    assert "who Alex is" in first and "how to deploy" in first
    assert not asks(hook, root, "what is the weather like", program="qwen-code")
    hook("session-start", root, program="qwen-code", session="watched")
    assert not asks(hook, root, "what is the weather like", program="qwen-code", session="watched")


def test_session_start_says_how_to_connect_a_project(hook: Hooks, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    assert f"ipfsmem connect claude-code --project {root}" in hook.line(root)
    connect(hook, root)
    assert not hook.line(root)
    (tmp_path / "plain").mkdir()
    assert not hook.line(tmp_path / "plain")


def test_new_project_is_connected_automatically_on_request(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = Claude(tmp_path / "me")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(claude.folder))
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    early, late = (
        repository(tmp_path / "early"),
        repository(tmp_path / "late", "https://github.com/acme/late"),
    )
    given = json.dumps({"folder": str(early)}).encode()
    background_sync.run("default", hook.home, given)
    with hook.open() as memory:
        assert not find_connected(memory, early)[1]
        follow_program(memory.replica, "claude-code", follow=True)
    claude.remembers(late, "deploy", "Deploy with make ship.", "how to deploy")
    background_sync.run("default", hook.home, json.dumps({"folder": str(late / ".git" / "..")}).encode())
    with hook.open() as memory:
        row = find_connected(memory, late)[1]
        assert row is not None
        assert memory.scope(row.scope).read("deploy") is not None
        # An archive that claims to be that project gets none of its texts.
        copy = repository(tmp_path / "archive", "https://github.com/acme/late")
    background_sync.run("default", hook.home, json.dumps({"folder": str(copy)}).encode())
    with hook.open() as memory:
        row = find_connected(memory, copy)[1]
        assert row is None or memory.scope(row.scope).read("deploy") is None
        follow_program(memory.replica, "claude-code", follow=False)


GEMINI_PROMPT = (
    "<hook_context>What is quoted below is memory. - [deploy](deploy.md) how to deploy</hook_context>\n\n{}"
)


def test_gemini_prompt_is_searched_without_hook_output(hook: Hooks, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    scope = connect(hook, root)
    with hook.open() as memory:
        for n in range(12):  # more texts than a prompt gets, each with words of the hook's output
            memory.scope(scope).write(
                f"deploy-{n}", "deploy memory quoted below", description="how to deploy"
            )
        memory.scope(scope).write(
            "zebra", "Releases are built on zebrafish.", description="which machine builds"
        )
    question = "which machine builds the releases?"
    plain = asks(hook, root, question, program="gemini", session="a")
    assert "zebrafish" in plain
    assert asks(hook, root, GEMINI_PROMPT.format(question), program="gemini", session="b") == plain


def test_repeated_prompt_hook_of_gemini_delivers_nothing_again(hook: Hooks, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    connect(hook, root)
    question = "how do I deploy, with make ship?"
    assert "make ship" in asks(hook, root, question, program="gemini")
    started = len(hook.started)
    transcript = tmp_path / "session.json"
    transcript.write_bytes(b"x" * 1000)

    def compact(trigger: str) -> None:
        said = {"session_id": "s", "cwd": str(root), "hook_event_name": "PreCompress", "trigger": trigger}
        hook.given("pre-compact", json.dumps({**said, "transcript_path": str(transcript)}).encode(), "gemini")

    for _ in range(2):
        compact("auto")
        assert not asks(hook, root, question, program="gemini")
    assert len(hook.started) == started

    compact("manual")
    assert "make ship" in asks(hook, root, question, program="gemini")
    assert len(hook.started) == started + 1

    with transcript.open("ab") as file:
        file.truncate(3 * 1024 * 1024)  # long enough to have been compacted once
    compact("auto")
    assert "make ship" in asks(hook, root, question, program="gemini")
    compact("auto")
    assert not asks(hook, root, question, program="gemini")


def asks(hook: Hooks, folder: Path, prompt: str, *, program: str = "claude-code", session: str = "s") -> str:
    """Return the text for the model before a prompt."""
    said = hook.given(
        "prompt", json.dumps({"cwd": str(folder), "session_id": session, "prompt": prompt}).encode(), program
    )
    assert not hook.wrong
    return "" if said is None else str(said["hookSpecificOutput"]["additionalContext"])


def test_prompt_receives_matching_texts_once_per_session(hook: Hooks, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    scope = connect(hook, root)
    with hook.open() as memory:
        memory.write("kettle", "The kettle in the kitchen boils by itself.", description="kitchen")
        memory.scope("elsewhere").write("deploy", "Somebody else's deploy goes by ship.")
    hook("session-start", root)
    assert asks(hook, root, "ok") == asks(hook, root, "yes, go on please") == ""
    assert asks(hook, root, "what colour is the sky over Lisbon?") == ""
    first = asks(hook, root, "How do we deploy this service with make?")
    assert "Deploy with make ship." in first and "kettle" not in first and "Somebody" not in first
    assert "> " in first and len(first.encode()) <= 1500
    assert asks(hook, root, "So how do we deploy this service with make?") == ""
    assert "make ship" in asks(hook, root, "How do we deploy this service?", session="another")
    assert "boils" in asks(hook, root, "Who boils the kettle in the kitchen? And deploy the service then.")
    with hook.open() as memory:
        memory.scope(scope).write("deploy", "Deploy with make sail.")
    assert "make sail" in asks(hook, root, "How do we deploy this service with make?")
    assert "ship" not in (hook.place / "shown.json").read_text()


def test_prompt_does_not_wait_for_an_embedding_model(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(Meaning, "ask", lambda *_: asked.append(1))
    root = repository(tmp_path / "api")
    connect(hook, root)
    hook("session-start", root)
    assert "make ship" in asks(hook, root, "How do we deploy this service with make?") and not asked


@pytest.mark.parametrize("how", ["compact", "clear", "startup", "pre-compact"])
def test_compacted_context_is_delivered_again(hook: Hooks, tmp_path: Path, how: str) -> None:
    root = repository(tmp_path / "api")
    connect(hook, root)
    asks(hook, root, "how to deploy with make")
    said = {"cwd": str(root), "session_id": "s", "source": "resume"}
    hook.given("session-start", json.dumps(said).encode())
    assert asks(hook, root, "how to deploy with make") == ""
    if how == "pre-compact":
        hook("pre-compact", root)
    else:
        hook.given("session-start", json.dumps({**said, "source": how}).encode())
    assert "make ship" in asks(hook, root, "how to deploy with make")


def test_session_context_stays_fixed_and_its_writes_appear_in_next_session(
    hook: Hooks, tmp_path: Path
) -> None:
    """The context in the prompt stays that of the session's start, as in AGH."""
    root = repository(tmp_path / "api")
    scope = connect(hook, root)
    begun = hook.context("session-start", root)
    with hook.open() as memory:
        memory.scope(scope).write("ferry", "The ferry leaves at nine.", description="when the ferry leaves")
        memory.scope(scope).forget("deploy")
    assert asks(hook, root, "What colour is the sky over Lisbon?") == "", "nothing is added by itself"
    assert "at nine" in asks(hook, root, "So when does the ferry leave?"), "who asks for it is given it"
    assert asks(hook, root, "When does the ferry leave?") == "", "once"
    following = hook.context("session-start", root, session="the next")
    assert "when the ferry leaves" in following and "how to deploy" not in following
    assert "how to deploy" in begun and "ferry" not in begun


def test_long_prompt_is_searched_at_its_beginning_and_end(hook: Hooks, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    connect(hook, root)
    pasted = "Traceback line of nothing. " * 20_000
    assert "make ship" in asks(hook, root, f"{pasted} So how do I deploy it with make?")
    assert "make ship" in asks(hook, root, f"How do I deploy this with make? {pasted}", session="t")


def test_programs_without_prompt_output_open_no_vault(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Memory, "load", lambda *_, **__: pytest.fail("opened"))
    for program in ("cursor", "vscode", "unknown"):
        said = {"cwd": str(tmp_path), "session_id": "s", "prompt": "how to deploy with make"}
        assert hook.given("prompt", json.dumps(said).encode(), program) is None
        assert not hook.wrong


def note_service(folder: Path, brought: int) -> None:
    """Record a sync as `sync --every` does."""
    (folder / "syncing.json").write_text(json.dumps({"brought": brought}))


@pytest.mark.parametrize("note", [note_background, note_service])
def test_pulled_text_is_delivered_from_the_next_prompt_and_once(
    hook: Hooks, tmp_path: Path, note: Callable[..., None]
) -> None:
    root = repository(tmp_path / "api")
    scope = connect(hook, root)
    hook("session-start", root)
    assert hook("prompt", root) is None
    with hook.open() as memory:
        memory.scope(scope).write("news", "x", description="came from the phone")
    note(hook.place, brought=hook.ms + 500)
    assert "came from the phone" in hook.context("prompt", root)
    assert hook("prompt", root) is None
    assert hook("prompt", root, session="began before hooks were there") is None
    assert len(hook.started) == 1  # a prompt starts no sync


def test_sync_after_the_clock_was_set_back_is_delivered_by_next_prompt(hook: Hooks, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    scope = connect(hook, root)
    hook("session-start", root)
    hook.ms -= 8 * HOUR  # the clock was ahead when the session began
    with hook.open() as memory:
        memory.scope(scope).write("news", "x", description="came from the phone")
    note_background(hook.place, brought=hook.ms + 500)
    assert "came from the phone" in hook.context("prompt", root)
    assert hook("prompt", root) is None


def test_delivered_memory_is_not_delivered_again_to_the_session(hook: Hooks, tmp_path: Path) -> None:
    """A sync may change only events or another project."""
    root = repository(tmp_path / "api")
    scope = connect(hook, root)
    begun = hook.context("session-start", root)
    with hook.open() as memory:
        memory.note("came", what="from the phone")
        memory.scope("elsewhere").write("news", "x")
    note_background(hook.place, brought=hook.ms + 500)
    assert hook("prompt", root) is None
    with hook.open() as memory:
        memory.scope(scope).write("news", "x", description="came from the phone")
    note_background(hook.place, brought=hook.ms + 1_000)
    assert "came from the phone" in hook.context("prompt", root)
    note_background(hook.place, brought=hook.ms + 2_000)
    assert hook("prompt", root) is None
    with hook.open() as memory:
        memory.scope(scope).forget("news")
    assert (
        hook.context("session-start", root) == begun
    )  # after compaction or a new start everything is delivered again
    assert "phone" not in (hook.place / "hooks.json").read_text()


@pytest.mark.parametrize("event", ["session-start", "prompt"])
@pytest.mark.parametrize("too_late", [False, True])
def test_undelivered_answer_is_delivered_by_the_next_hook(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: str, too_late: bool
) -> None:
    """The pipe is closed, or the time is over before the output."""

    class Gone(io.BytesIO):
        def write(self, _: Any) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    def slow(self: hooks.Hook, folder: str) -> Any:
        found = look(self, folder)
        assert hook.over.wait(PATIENCE)
        return found

    look = hooks.Hook._look
    if event == "prompt":
        hook("session-start", tmp_path)
        with hook.open() as memory:
            memory.write("news", "x", description="came from the phone")
        note_background(hook.place, brought=hook.ms + 500)
    with monkeypatch.context() as patch:
        if too_late:
            patch.setattr(hooks, "BOUNDS", {})
            patch.setattr(hooks, "_BOUND", 0.05)
            patch.setattr(hooks.Hook, "_look", slow)
        else:
            patch.setattr(io, "BytesIO", lambda *given: Gone() if not given else bytes_io(*given))
        assert hook(event, tmp_path) is None
    assert ("came from the phone" if event == "prompt" else "who Alex is") in hook.context("prompt", tmp_path)
    assert hook("prompt", tmp_path) is None


@pytest.mark.parametrize("event", ["stop", "session-end", "pre-compact"])
def test_end_of_a_turn_starts_a_sync_and_prints_nothing(hook: Hooks, tmp_path: Path, event: str) -> None:
    assert hook(event, tmp_path) is None
    assert hook.started == [str(tmp_path)]


def test_locked_vault_is_reported_to_the_user_and_recorded(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipfsmem.device.identity import load_device, save_device

    save_device(hook.place, load_device(hook.place, None), "correct horse battery", os.urandom)
    monkeypatch.delenv("IPFSMEM_PASSPHRASE", raising=False)
    said = hook("session-start", tmp_path)
    assert said == {
        "systemMessage": "ipfsmem, memory default: it is locked, so no memories are included: ipfsmem unlock"
    }
    assert hook_notes(hook.place).locked
    save_device(hook.place, load_device(hook.place, "correct horse battery"), None, os.urandom)
    with hook.open() as memory:
        assert any("locked" in notice for notice in memory.status().notices)
    assert hook.line(tmp_path) == ""
    assert not hook_notes(hook.place).locked


def test_session_started_locked_gets_context_after_unlock(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipfsmem.device.identity import load_device, save_device

    save_device(hook.place, load_device(hook.place, None), "correct horse battery", os.urandom)
    monkeypatch.delenv("IPFSMEM_PASSPHRASE", raising=False)
    hook("session-start", tmp_path)
    assert hook("prompt", tmp_path) is None
    assert not hook.wrong
    save_device(hook.place, load_device(hook.place, "correct horse battery"), None, os.urandom)
    assert "who Alex is" in hook.context("prompt", tmp_path)
    assert hook("prompt", tmp_path) is None


def test_sync_that_cannot_start_does_not_suppress_the_context(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(hook, "start_sync", fails)
    assert "who Alex is" in hook.context("session-start", tmp_path)
    assert hook_notes(hook.place).failure == "BlockingIOError"


def test_outage_is_reported_after_an_hour_and_a_paused_folder_at_once(hook: Hooks, tmp_path: Path) -> None:
    root, claude = repository(tmp_path / "api"), Claude(tmp_path / "me")
    folder = claude.remembers(root, "deploy", "x").parent
    with hook.open() as memory:
        carry_out(memory, plan_project(memory, claude.home, root))
    note_background(hook.place, failing=hook.ms, failure="ProviderUnavailable")
    assert hook.line(root) == ""
    hook.ms += 26 * HOUR
    assert "not synced for 26 h (ProviderUnavailable)" in hook.line(root)
    with hook.open() as memory:
        assert any("ProviderUnavailable" in notice for notice in memory.status().notices)
        memory.folders.pause(folder)
    line = hook.line(root)
    assert f"{folder} is paused" in line
    assert "\n" not in line


@pytest.mark.parametrize("said", [b"", b"\xff\xfe", b"{", b"[]" * 1000, b'{"cwd":"/gone/for/good"}'])
def test_invalid_hook_input_causes_no_error(hook: Hooks, said: bytes) -> None:
    for event in ("session-start", "prompt", "stop", "no-such-event", ""):
        hook.given(event, said)
    assert hook.given("session-start", said) is not None


def test_unreadable_folder_does_not_suppress_the_context(hook: Hooks, tmp_path: Path) -> None:
    """Such as one on an unavailable share or with an impossible name."""
    assert "who Alex is" in hook.context("session-start", tmp_path / ("a" * 3_000))
    assert not hook.wrong


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use is not removed there")
def test_removed_working_folder_does_not_suppress_the_context(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "worktree"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    said = hook.given("session-start", b'{"session_id":"s"}')
    assert "who Alex is" in said["hookSpecificOutput"]["additionalContext"]
    hook.given("stop", b'{"session_id":"s"}')
    assert not hook.wrong and hook.started == ["", ""]


def test_hook_without_a_vault_starts_nothing(hook: Hooks, tmp_path: Path) -> None:
    hook.home = tmp_path / "nothing"
    assert hook("session-start", tmp_path) is None
    assert hook("stop", tmp_path) is None
    assert not hook.started
    assert not hook.home.exists()


def test_internal_error_is_recorded_and_shown_by_status(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise StorageError("the disk said something secret")

    with monkeypatch.context() as patch:
        patch.setattr(Memory, "load", fails)
        patch.setattr(Memory, "load_damaged", fails)
        assert hook("session-start", tmp_path) is None
    assert "secret" in hook.wrong
    assert hook.started == [str(tmp_path)]
    assert "secret" not in (hook.place / "hooks.json").read_text()
    with hook.open() as memory:
        assert any("StorageError" in notice for notice in memory.status().notices)
    hook("session-start", tmp_path)
    with hook.open() as memory:
        assert not any("StorageError" in notice for notice in memory.status().notices)


def test_slow_hook_ends_at_its_time_limit(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(hooks.BOUNDS, "session-start", 0.1)
    monkeypatch.setattr(Memory, "load", lambda *_, **__: hook.over.wait(PATIENCE))
    hook("session-start", tmp_path)
    assert hook.gave_up == 1
    assert hook_notes(hook.place).failure
    assert set(hook.started) == {str(tmp_path)}  # this creates the index for prompts in this folder


def test_open_input_pipe_is_not_awaited(hook: Hooks, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, json.dumps({"cwd": str(tmp_path)}).encode())
    out = io.BytesIO()
    with os.fdopen(read, "rb") as stdin:
        hooks.run_hook(
            "stop",
            "claude-code",
            "default",
            hook.home,
            stdin=stdin,
            stdout=out,
            now=lambda: hook.ms,
            start_sync=hook.start_sync,
            give_up=hook.give_up,
        )
    os.close(write)
    assert hook.started == [str(tmp_path)]


def test_notes_drop_the_oldest_sessions_and_survive_damage(hook: Hooks) -> None:
    for number in range(MAX_SESSIONS + 5):
        note_hook(hook.place, session=f"{number:016x}", at=number)
    sessions = hook_notes(hook.place).sessions
    assert len(sessions) == MAX_SESSIONS
    assert min(sessions.values()) == 5
    for file in ("hooks.json", "background.json"):
        (hook.place / file).write_bytes(b"\xff not JSON")
    assert not hook_notes(hook.place).sessions
    assert not background_notes(hook.place).tried


# -- background syncs -------------------------------------------------------------------------------------------------


def sync(hook: Hooks, folder: Path | str = "") -> None:
    background_sync.run("default", hook.home, json.dumps({"folder": str(folder)}).encode())


@pytest.mark.skipif(not hasattr(os, "getpriority"), reason="priorities of processes are Unix's")
def test_background_sync_lowers_its_priority_and_foreground_sync_does_not(
    hook: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    theirs: list[int] = []
    popen = subprocess.Popen

    def sleeping(_words: list[str], **how: Any) -> subprocess.Popen[bytes]:
        return popen([sys.executable, "-c", "import sys; sys.stdin.read()"], **how)

    def seen(which: int, pid: int, priority: int) -> None:
        set_priority(which, pid, priority)
        theirs.append(os.getpriority(os.PRIO_PROCESS, pid))

    set_priority = os.setpriority
    monkeypatch.setattr(subprocess, "Popen", sleeping)
    monkeypatch.setattr(os, "setpriority", seen)
    background_start.start("default", hook.home, "", passphrase=None)
    sync(hook)
    assert theirs == [10]
    assert os.getpriority(os.PRIO_PROCESS, 0) == ours


def test_prompt_hook_does_not_examine_linked_folders(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    looked: list[Path] = []
    monkeypatch.setattr("ipfsmem.files.surroundings.remarks", lambda path: looked.append(path) or [])
    said = json.dumps({"cwd": str(project), "session_id": "s", "prompt": "Who works on firmware?"}).encode()
    assert "Alex works on firmware." in json.dumps(hook.given("prompt", said))
    assert hook("session-start", project) and looked == []
    with Memory.load("default", home=hook.home) as memory:
        assert [one.path for one in memory.folders.list()] == memory.folders.paths() != []
    assert looked != []


def test_background_sync_with_relative_paths_finds_home_and_settings(
    hook: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[str, str, str]] = []
    popen = subprocess.Popen

    def seen(words: list[str], **how: Any) -> subprocess.Popen[bytes]:
        begun.append((words[-1], str(how["cwd"]), (how.get("env") or os.environ)["IPFSMEM_CONFIG"]))
        return popen([sys.executable, "-c", "import sys; sys.stdin.read()"], **how)

    monkeypatch.chdir(hook.home.parent)
    monkeypatch.setenv("IPFSMEM_CONFIG", "settings.toml")
    monkeypatch.setattr(subprocess, "Popen", seen)
    background_start.start("default", Path(hook.home.name), "", passphrase=None)
    there = str(Path(hook.home.name).absolute())
    assert begun == [(there, there, str(Path("settings.toml").absolute()))]


def test_background_sync_builds_the_index_that_prompts_have_no_time_for(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ipfsmem.memories.context, "_MAX_INDEXED_BYTES", 4)  # as if there were thousands
    root = repository(tmp_path / "api")
    scope = connect(hook, root)
    said = [{"role": "user", "content": f"the heron number {n} nests by the weir"} for n in range(120)]
    with hook.open() as memory:
        for n in range(10):
            memory.scope(scope).sessions.add(f"talk {n}", said[12 * n : 12 * n + 12])
    hook("session-start", root)
    assert "number 77" not in asks(hook, root, "which heron was number 77 by the weir")
    sync(hook, root)
    assert "number 77" in asks(hook, root, "which heron was number 77 by the weir")


def heron(n: int) -> dict[str, str]:
    return {"role": "user", "content": f"the heron number {n} nests by the weir"}


QUESTION = "which heron was number 77 by the weir"


@pytest.mark.parametrize("kind", ["memories", "messages"])
def test_prompt_without_an_index_starts_its_creation(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(ipfsmem.memories.context, "_MAX_INDEXED_BYTES", 2_000)  # as on a slow machine
    root = repository(tmp_path / "api")
    scope = connect(hook, root)
    with hook.open() as memory:
        there = memory.scope(scope)
        for n in range(76, 86):
            if kind == "memories":
                there.write(f"heron-{n}", heron(n)["content"], type="project")
            else:
                there.sessions.add(f"talk {n}", [heron(n)] * 3)
    hook("session-start", root)
    hook.started.clear()
    assert "number 77" not in asks(hook, root, QUESTION)
    assert hook.started == [str(root)]
    sync(hook, root)
    hook.started.clear()
    assert "number 77" in asks(hook, root, QUESTION)
    assert hook.started == []


def test_prompt_with_an_outdated_index_starts_its_update(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too few changes for an automatic save, and too many for a prompt."""
    monkeypatch.setattr(ipfsmem.memories.context, "_MAX_INDEXED_BYTES", 2_000)
    root = repository(tmp_path / "api")
    scope = connect(hook, root)
    for first in (60, 70):
        with hook.open() as memory:
            for n in range(first, first + 10):
                memory.scope(scope).write(f"heron-{n}", heron(n)["content"], type="project")
        if first == 60:
            sync(hook, root)
    hook("session-start", root)
    hook.started.clear()
    assert "number 77" not in asks(hook, root, QUESTION) and hook.started == [str(root)]
    sync(hook, root)
    assert "number 77" in asks(hook, root, QUESTION) and hook.started == [str(root)]


def test_index_for_prompts_is_built_before_a_sync_that_fails(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ipfsmem.memories.context, "_MAX_INDEXED_BYTES", 2_000)

    async def fails(_: Memory) -> None:
        raise StorageError("no provider answers")

    monkeypatch.setattr(Memory, "sync", fails)
    hook.home = tmp_path / "published"
    store = str(tmp_path / "store")
    with Memory.create(
        "default", "encrypted-ipfs", provider=store, passphrase=False, home=hook.home
    ) as memory:
        for n in range(70, 80):
            memory.write(f"heron-{n}", heron(n)["content"], type="project")
    assert asks(hook, tmp_path, QUESTION) == ""
    sync(hook, tmp_path)
    assert background_notes(hook.home / "default").failing
    assert "number 77" in asks(hook, tmp_path, QUESTION)


def test_prompt_hook_with_read_only_vault_answers_without_an_index(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ipfsmem.memories.context, "_MAX_INDEXED_BYTES", 0)
    load = Memory.load

    def read_only(*args: Any, **named: Any) -> Memory:
        memory = load(*args, **named)
        memory.replica.read_only = "this memory"
        return memory

    with hook.open() as memory:
        memory.write("heron-77", heron(77)["content"], type="project")
    assert asks(hook, tmp_path, QUESTION) == ""
    monkeypatch.setattr(Memory, "load", read_only)
    hook.started.clear()
    assert "number 77" in asks(hook, tmp_path, QUESTION) and hook.started == []


def test_background_sync_ingests_agent_edits_and_names_unconnected_folder(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, claude = repository(tmp_path / "api"), Claude(tmp_path / "me")
    with hook.open() as memory:
        row = carry_out(memory, plan_project(memory, claude.home, root))
    claude.remembers(root, "deploy", "x")
    other = repository(tmp_path / "other", "https://github.com/b/other")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    sync(hook, tmp_path / "me")  # it cannot be connected: it contains everything of the user
    sync(hook, other)
    assert background_notes(hook.place).worked
    with hook.open() as memory:
        assert memory.scope(row.scope).read("deploy") is not None
        named = [notice for notice in memory.status().notices if "is not connected to a project" in notice]
        assert len(named) == 1 and str(other) in named[0]
        assert find_connected(memory, other)[1] is None


def test_background_sync_follows_a_moved_project(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, claude = repository(tmp_path / "api"), Claude(tmp_path / "me")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(claude.folder))
    claude.remembers(root, "deploy", "x", "how to deploy")
    with hook.open() as memory:
        carry_out(memory, plan_project(memory, claude.home, root))
    moved = root.rename(tmp_path / "renamed")
    assert "how to deploy" in hook.context("session-start", moved)  # its new folder is not linked yet
    sync(hook, moved)
    assert (claude.used_in(moved) / "deploy.md").exists()
    assert "how to deploy" not in hook.context("session-start", moved)


def test_outage_is_recorded_from_its_beginning(hook: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise StorageError("x")

    with monkeypatch.context() as patch:
        patch.setattr(Memory, "aload", fails)
        sync(hook)
        first = background_notes(hook.place)
        time.sleep(0.005)
        sync(hook)
    second = background_notes(hook.place)
    assert first.failing == second.failing != 0
    assert second.tried > first.tried
    sync(hook)
    assert not background_notes(hook.place).failing


def test_outage_noted_by_a_clock_ahead_begins_when_the_clock_is_right(
    hook: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "api")
    note_background(hook.place, failing=hook.ms + 9_000 * HOUR, failure="StorageError")
    monkeypatch.setattr(agent_notes, "now_ms", lambda: hook.ms)
    agent_notes.note_attempt(hook.place, StorageError("x"))
    hook.ms += 26 * HOUR
    assert "not synced for 26 h (StorageError)" in hook.line(root)


def test_background_sync_runs_alone_and_repeats_for_later_requests(hook: Hooks) -> None:
    with file_lock(hook.place / "background.lock"):
        sync(hook)
    assert not background_notes(hook.place).tried
    assert (hook.place / "background.again").exists()
    sync(hook)
    assert background_notes(hook.place).worked
    assert not (hook.place / "background.again").exists()


def test_consecutive_background_syncs_are_limited(hook: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    """For any number of hooks meanwhile."""
    done = []

    def once(*_: object) -> None:
        done.append(1)
        if len(done) < 9:
            (hook.place / "background.again").touch()

    monkeypatch.setattr(background_sync, "_once", once)
    sync(hook)
    assert len(done) == 3


def test_session_start_names_everyday_tools_and_links_to_no_file(hook: Hooks, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    connect(hook, root)
    with hook.open() as memory:
        memory.write("named", "x", name="A [b] name", description="of a thing")
    given = hook.context("session-start", root, program="codex")
    assert "\n> - deploy" in given
    assert "\n> - named: A \\[b\\] name — of a thing" in given
    assert ".md" not in given
    offered = [one.name for one in toolset(hook.open)]
    assert len(offered) == 6
    for name in offered:
        assert name in TOOLS
    assert given.rstrip().endswith(TOOLS.rstrip())


def test_prompt_with_a_cut_text_names_the_tool_that_reads_it(hook: Hooks) -> None:
    with hook.open() as memory:
        memory.write("long", "how to ship the firmware\n" + "line of a long text\n" * 2_000)
        memory.write("short", "the colour of the firmware logo is blue")
    for prompt, names in (("how do I ship the firmware", True), ("which colour has the logo", False)):
        said = json.dumps({"cwd": str(hook.home), "session_id": prompt, "prompt": prompt}).encode()
        assert ("read_memory" in str(hook.given("prompt", said))) is names
