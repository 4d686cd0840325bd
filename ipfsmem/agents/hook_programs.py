"""Parse the hook input of agents' programs, and format the output that each understands. Pure: no disk, no clock.

By their documents as of November 2026: Claude Code ("Hooks reference", code.claude.com), Codex ("Hooks",
developers.openai.com, and its schemas in codex-rs/hooks/schema), Gemini CLI ("Hooks reference",
docs/hooks/reference.md), Cursor ("Hooks", cursor.com), VS Code ("Agent hooks: reference", code.visualstudio.com).
Output that a program is not known to understand is not printed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from ipfsmem.lazy_pattern import lazy_pattern

Event = Literal["session-start", "prompt", "stop", "session-end", "pre-compact"]
EVENTS: Final[tuple[Event, ...]] = ("session-start", "prompt", "stop", "session-end", "pre-compact")
#: Maximum bytes read of hook input; a prompt may be long.
MAX_INPUT: Final = 4 * 1024 * 1024

#: Maximum digits of a number that is parsed; no field used by a hook has more.
_DIGITS: Final = 30
_GIVEN: Final = lazy_pattern(r"<hook_context>.*?</hook_context>", re.DOTALL)
#: The events after which a program accepts a text for the model: our name to its name.
_NAMES: Final[dict[str, dict[str, str]]] = {
    "claude-code": {"session-start": "SessionStart", "prompt": "UserPromptSubmit"},
    "codex": {"session-start": "SessionStart", "prompt": "UserPromptSubmit"},
    "gemini": {"session-start": "SessionStart", "prompt": "BeforeAgent"},
    "vscode": {"session-start": "SessionStart"},
    "qwen-code": {"session-start": "SessionStart", "prompt": "UserPromptSubmit"},
}
#: Programs that show a person a line of a hook at the start of a session.
_SHOW_LINES: Final = frozenset(["claude-code", "codex", "gemini", "vscode", "qwen-code"])
#: Programs that run no hook at the start of an unattended session: the first prompt replaces it.
WITHOUT_START: Final = frozenset(["qwen-code"])
_CURSOR: Final = "cursor"
PROGRAMS: Final = (*_NAMES, _CURSOR)


class HookInput(NamedTuple):
    """The input of a hook."""

    #: The working folder of the agent, empty if unknown.
    folder: str = ""
    #: The program's id of the session, empty if unknown.
    session_id: str = ""
    #: The person's prompt, after the event `prompt`.
    prompt: str = ""
    #: True if the session continues with its earlier context, neither compacted nor cleared.
    resumed: bool = False
    #: True if the event only announces a possible compaction: Gemini CLI sends `PreCompress` before each call of its model.
    may_compact: bool = False
    #: The file of the conversation, empty if unknown.
    transcript: str = ""
    #: Why the input is unreadable, empty if it was read.
    unreadable: str = ""

    @property
    def session(self) -> str:
        """A hash of the session id, empty without one."""
        from hashlib import sha256  # not for a hook that only starts a sync

        return sha256(self.session_id.encode("utf-8", "replace")).hexdigest()[:16] if self.session_id else ""


def parse_hook_input(data: bytes, environment: Mapping[str, str]) -> HookInput:
    """Parse the hook input of a program from standard input or its environment. Invalid input only sets `unreadable`."""
    fields: Any = {}
    unreadable = ""
    if data.strip():
        try:
            fields = _read(data)
        except ValueError as error:
            too_long = f"it is longer than {MAX_INPUT >> 20} MiB"
            unreadable = too_long if len(data) >= MAX_INPUT else str(error)
        if not isinstance(fields, dict):
            fields, unreadable = {}, "it is not a JSON object"
    roots = fields.get("workspace_roots")
    folders = [fields.get("cwd"), *(roots[:1] if isinstance(roots, list) else [])]
    folders += [
        environment.get(name) for name in ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CURSOR_PROJECT_DIR")
    ]
    folder = next((one for one in folders if isinstance(one, str) and _is_path(one)), "")
    ids = (fields.get(name) for name in ("session_id", "sessionId", "conversation_id"))
    session = next((str(one) for one in ids if _is_id(one)), "")
    prompt, transcript = fields.get("prompt"), fields.get("transcript_path")
    return HookInput(
        folder=folder,
        session_id=session,
        prompt=strip_hook_output(prompt) if isinstance(prompt, str) else "",
        resumed=fields.get("source") == "resume",
        may_compact=fields.get("hook_event_name") == "PreCompress" and fields.get("trigger") == "auto",
        transcript=transcript if isinstance(transcript, str) and _is_path(transcript) else "",
        unreadable=unreadable,
    )


def _is_id(value: object) -> bool:
    """Tell whether a value is a session id: a text, or a number."""
    return bool(value) if isinstance(value, str) else isinstance(value, int) and not isinstance(value, bool)


def strip_hook_output(prompt: str) -> str:
    """Strip the earlier hook output that Gemini CLI wraps around a prompt."""
    if "<hook_context>" not in prompt:
        return prompt
    # No block begins after the last end; a search for it would scan the rest of the text.
    until = prompt.rfind("</hook_context>") + len("</hook_context>")
    return (_GIVEN.sub("", prompt[:until]) + prompt[until:]).strip()


def is_whole(data: bytes) -> bool:
    """Tell whether this is the complete input of a program."""
    try:
        _read(data)
    except ValueError:
        return False
    return True


def _read(data: bytes) -> Any:
    """Parse JSON as programs write it: UTF-8, or UTF-16 from PowerShell pipes, with or without a byte order mark, with control
    characters, lone surrogates, very long numbers, and a further value after it. Raises ValueError.

    A hook that only starts a sync loads only Python's own parser; one that reads memories has msgspec, which is strict, and
    loads the other for input that msgspec refuses.
    """
    encoding = "utf-8"
    if data[:1] > b"\x7f" or b"\0" in data[:4]:
        from json import detect_encoding

        encoding = detect_encoding(data)
    text = data.decode(encoding, "replace")
    parsed = _read_with_msgspec(text) if "msgspec" in sys.modules else None
    if parsed is None:
        from json import JSONDecoder

        try:
            parsed, _ = JSONDecoder(strict=False, parse_int=_number).raw_decode(text.lstrip())
        except RecursionError:
            parsed = _read_deep(text)
    if not isinstance(parsed, dict):
        return parsed
    return {
        name: value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if isinstance(value, str) and not value.isascii()
        else value
        for name, value in parsed.items()
    }


def _number(digits: str) -> int | str:
    """Return a number, a very long one as text: Python refuses to parse thousands of digits."""
    return int(digits) if len(digits) <= _DIGITS else digits


def _read_with_msgspec(text: str) -> Any:
    """Parse JSON; None if msgspec refuses it."""
    import msgspec

    from ipfsmem.canonical import read_json

    try:
        return read_json(text)
    except msgspec.DecodeError:
        return None


def _read_deep(text: str) -> Any:
    """Parse JSON nested deeper than Python's parser allows. Raises ValueError."""
    import msgspec

    from ipfsmem.canonical import read_json

    try:
        return read_json(text)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None


def _is_path(text: str) -> bool:
    return 0 < len(text) <= 4096 and "\0" not in text and Path(text).is_absolute()


def takes_context(program: str, event: str) -> bool:
    """Tell whether a program accepts a text for the model after this event."""
    return event in _NAMES.get(program, {}) or (program == _CURSOR and event == "session-start")


def shows_lines(program: str) -> bool:
    """Tell whether a program shows a person a hook's line at the start of a session."""
    return program in _SHOW_LINES


def answer(program: str, event: str, *, context: str = "", line: str = "") -> bytes:
    """Return the output for a program: a text for the model, a line for the person; empty if it accepts neither."""
    reply: dict[str, Any] = {}
    if context and program == _CURSOR and event == "session-start":
        reply["additional_context"] = context
    elif context and (name := _NAMES.get(program, {}).get(event)):
        reply["hookSpecificOutput"] = {"hookEventName": name, "additionalContext": context}
    if line and event == "session-start" and shows_lines(program):
        reply["systemMessage"] = line
    if not reply:
        return b""
    from ipfsmem.canonical import write_json  # not for a hook without output

    return write_json(reply) + b"\n"
