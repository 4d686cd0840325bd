"""The operation `sessions.info`: title, size and dates of a session, without its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ipfsmem.operation import View, operation
from ipfsmem.operations.sessions.stored import SessionName, sessions_of, to_cover, told_if_there
from ipfsmem.sessions.compaction import SessionTranscript
from ipfsmem.sessions.messages import read_message
from ipfsmem.sessions.transcript import preview_of, title_of

if TYPE_CHECKING:
    from ipfsmem.memories.sessions_here import AllSessions


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One session. `began` and `changed`: times of its first and last item, None without items. `tokens`: estimated tokens
    of all messages. `covered`: number of messages in the summary; `due`: number that an automatic summary would add now.
    `own`: false if a message is pending, that is, imported and not approved. `summary_own`: false if the summary covers a
    pending message, or was imported and not approved. `here`: whether it is stored, wholly or partly, on this device only.
    `seen` identifies its current contents."""

    session: str
    title: str
    preview: str
    messages: int
    tokens: int
    devices: int
    began: int | None
    changed: int | None
    covered: int
    due: int
    summary: str
    summary_by: str
    own: bool
    summary_own: bool
    here: bool
    seen: str

    @classmethod
    def of(
        cls, session: str, transcript: SessionTranscript, due: int = 0, *, here: bool = False, seen: str = ""
    ) -> SessionInfo:
        """Return the information on a session."""
        from ipfsmem.memories.context import tokens_of

        places = [entry.place for entry in transcript.messages]
        return cls(
            session=session,
            title=title_of(transcript),
            preview=preview_of(transcript),
            messages=len(places),
            tokens=sum(tokens_of(read_message(entry.item).text) for entry in transcript.messages),
            devices=len({device for _, device, _ in places}),
            began=places[0][0] if places else None,
            changed=places[-1][0] if places else None,
            covered=len(transcript.messages) - len(transcript.after),
            due=due,
            summary=transcript.summary.text if transcript.summary is not None else "",
            summary_by=transcript.summary.by if transcript.summary is not None else "",
            own=not transcript.pending,
            summary_own=not transcript.summary_pending,
            here=here,
            seen=seen,
        )


@operation(
    summary="Show a session",
    right="read",
    about="target",
    raises=(
        "UsageError: `session` is not a valid name.",
        "NotFoundError: a part is not on this device yet.",
        "StorageError: it is damaged.",
    ),
    absent="there is no session {session}",
    http="GET /v1/sessions/{session}",
)
def info(view: View, session: SessionName) -> SessionInfo | None:
    """Show the title, size, dates and summary of a session.

    Fails if the session does not exist (in Python: returns None). `due`: number of messages that an
    automatic summary would cover now.
    """
    view.opened.ingest_edits()
    return info_of(sessions_of(view), session)


def info_of(sessions: AllSessions, session: str) -> SessionInfo | None:
    """Return the information on one session; None if it does not exist. Raises StorageError."""
    from ipfsmem.config import settings

    seen = sessions.seen(session)  # before the read: later messages must not count as shown
    transcript = told_if_there(sessions, session)
    if transcript is None:
        return None
    return SessionInfo.of(
        session,
        transcript,
        to_cover(transcript, settings().sessions, now=False),
        here=sessions.is_here(session),
        seen=seen,
    )
