"""Renders a session for people: its title, a preview, and a Markdown transcript."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ipfsmem.sessions.compaction import SessionTranscript
from ipfsmem.sessions.messages import read_message
from ipfsmem.wording import count

#: Maximum characters of a preview, and of a default title.
PREVIEW: Final = 80
UNTITLED: Final = "Untitled"
#: The label of an imported message, or a session with such messages.
PENDING: Final = "imported, not approved"
_WHO: Final = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "System"}


def title_of(session: SessionTranscript) -> str:
    """Return the title, else the beginning of the first request, else `Untitled`."""
    if session.title:
        return session.title
    for entry in session.messages:
        message = read_message(entry.item)
        if message.is_request and message.text.strip():
            return shortened(message.text)
    return UNTITLED


def preview_of(session: SessionTranscript) -> str:
    """Return the beginning of the last message of a user or a model."""
    for entry in reversed(session.messages):
        message = read_message(entry.item)
        if message.role in ("user", "assistant") and message.text.strip():
            return shortened(message.text)
    return ""


def shortened(text: str) -> str:
    """Return the first 80 characters of a text in one line."""
    line = " ".join(text.split())
    return line if len(line) <= PREVIEW else f"{line[: PREVIEW - 1].rstrip()}…"


def as_markdown(session: SessionTranscript, moment: Callable[[int], str]) -> str:
    """Return all messages, each under its speaker and time (`moment` formats milliseconds since 1970 as a date); the summary
    comes last.

    Messages are quoted line by line, so no text of a message becomes a heading of the page.
    """
    pieces = [f"# {title_of(session)}"]
    for entry in session.messages:
        message = read_message(entry.item)
        called = f" (calls {', '.join(message.tools)})" if message.tools else ""
        named = f" {message.speaker}" if message.speaker else ""
        pending = f" ({PENDING})" if entry.place in session.pending else ""
        pieces.append(
            f"## {_WHO.get(message.role, 'Other')}{named}, {moment(entry.place[0])}{called}{pending}"
        )
        if message.text:
            pieces.append(_quoted(message.text))
    if session.summary is not None:
        covered = session.summary.messages
        pending = f" ({PENDING})" if session.summary_pending else ""
        pieces.append(f"## Summary of {count(covered, 'message')}, by {session.summary.by}{pending}")
        pieces.append(_quoted(session.summary.text))
    return "\n\n".join(pieces) + "\n"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
