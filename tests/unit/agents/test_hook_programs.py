"""Input of programs' hooks, and the output for each program: only fields that it understands."""

from __future__ import annotations

import json

import pytest

from ipfsmem.agents.hook_programs import EVENTS, MAX_INPUT, PROGRAMS, answer, parse_hook_input

SAID = {
    "claude-code": {
        "session_id": "a",
        "cwd": "/work/api",
        "hook_event_name": "SessionStart",
        "source": "startup",
    },
    "codex": {"session_id": "a", "cwd": "/work/api", "hook_event_name": "SessionStart", "model": "m"},
    "gemini": {"session_id": "a", "cwd": "/work/api", "hook_event_name": "SessionStart", "timestamp": "t"},
    "qwen-code": {"session_id": "a", "cwd": "/work/api", "hook_event_name": "UserPromptSubmit"},
    "cursor": {
        "conversation_id": "a",
        "workspace_roots": ["/work/api", "/other"],
        "hook_event_name": "sessionStart",
    },
    "vscode": {"sessionId": "a", "cwd": "/work/api", "hookEventName": "SessionStart"},
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_hook_input_of_each_program_has_folder_and_session(program: str) -> None:
    said = parse_hook_input(json.dumps(SAID[program]).encode(), {})
    assert said.folder == "/work/api"
    assert len(said.session) == 16
    asked = parse_hook_input(json.dumps({**SAID[program], "prompt": "x" * 100_000}).encode(), {})
    assert (asked.folder, asked.session, len(asked.prompt)) == (said.folder, said.session, 100_000)
    assert parse_hook_input(json.dumps({**SAID[program], "prompt": ["x"]}).encode(), {}) == said
    numbered = {name: 12 if "id" in name.lower() else value for name, value in SAID[program].items()}
    assert parse_hook_input(json.dumps(numbered).encode(), {}).session_id == "12"
    cut = json.dumps({**SAID[program], "prompt": "x" * MAX_INPUT}).encode()[:MAX_INPUT]
    assert parse_hook_input(cut, {}).unreadable == "it is longer than 4 MiB"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"nul",
        b'{"cwd": 1, "session_id": []}',
        b'{"cwd": "relative"}',
        b'{"cwd": "/a\\u0000b"}',
        b'{"cwd": "/' + b"x" * 5000 + b'"}',
        b'{"workspace_roots": {}}',
        b'{"a":' * 5000,
    ],
)
def test_invalid_hook_input_has_no_folder_and_session(data: bytes) -> None:
    said = parse_hook_input(data, {})
    assert (said.folder, said.session) == ("", "")
    assert parse_hook_input(data, {"CLAUDE_PROJECT_DIR": "/work"}).folder == "/work"


@pytest.mark.parametrize(
    "data",
    [
        b'{"session_id": "a", "prompt": "two\nlines"}',
        b'{"session_id": "a", "prompt": "two\\nlines", "count": ' + b"9" * 5000 + b"}",
        b'{"session_id": "a", "prompt": "two\\nlines"}\n{"next": 1}',
        '{"session_id": "a", "prompt": "two\\nlines"}'.encode("utf-16-le"),
        '{"session_id": "a", "prompt": "two\\nlines"}'.encode("utf-16-be"),
    ],
    ids=["raw newline", "long number", "further object", "UTF-16", "UTF-16, big-endian"],
)
def test_prompt_in_unusual_json_is_read(data: bytes) -> None:
    said = parse_hook_input(data, {})
    assert (said.session_id, said.prompt, said.unreadable) == ("a", "two\nlines", "")


def test_hook_output_has_the_form_that_each_program_documents() -> None:
    assert json.loads(answer("claude-code", "session-start", context="t", line="l")) == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "t"},
        "systemMessage": "l",
    }
    assert json.loads(answer("codex", "prompt", context="t")) == {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "t"}
    }
    assert json.loads(answer("gemini", "prompt", context="t")) == {
        "hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "t"}
    }
    assert json.loads(answer("cursor", "session-start", context="t", line="l")) == {"additional_context": "t"}
    assert answer("cursor", "prompt", context="t") == b""  # Cursor accepts no context before a prompt
    assert answer("vscode", "prompt", context="t") == b""


@pytest.mark.parametrize("event", EVENTS)
def test_hook_answers_nothing_to_unknown_program_or_unsupported_event(event: str) -> None:
    assert answer("", event, context="t", line="l") == b""
    assert answer("someone", event, context="t", line="l") == b""
    for program in PROGRAMS:
        assert answer(program, event) == b""
        if event not in ("session-start", "prompt"):
            assert answer(program, event, context="t", line="l") == b""
