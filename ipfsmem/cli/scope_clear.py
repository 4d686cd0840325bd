"""`ipfsmem scope clear`: all memories or sessions of one scope forgotten, after a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.errors import ChangedError, IncompleteError, UsageError
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memories.memory_reader import MemorySummary
    from ipfsmem.memory import Memory


@cli_command("clear", scoped=True, shows=True, short_help="Forget all memories or sessions of a scope")
@click.option("--memories-only", is_flag=True, help="Keep the sessions.")
@click.option("--sessions-only", is_flag=True, help="Keep the memories.")
@click.option("--reason", default="", help="Reason, recorded in the timeline.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(
    context: CommandContext, memories_only: bool, sessions_only: bool, reason: str, yes: bool
) -> None:
    """Forget all memories and sessions of one scope, on every device: the default scope unless --scope is
    given.

    This includes memories that are hidden here and deleted ones that could be restored. Writes made
    while the command waits for an answer, pending texts, the timeline and other scopes are kept.
    `ipfsmem export` makes a copy first.
    """
    from ipfsmem.cli import secret_input
    from ipfsmem.cli.consent import confirm

    if memories_only and sessions_only:
        raise UsageError("--memories-only and --sessions-only exclude each other")
    with context.memory() as memory:
        texts = {} if sessions_only else _texts(memory)
        names = [] if memories_only else [one.session for one in memory.sessions.known()]
        sessions = {name: memory.sessions.seen(name) for name in names}
        contents = f"{count(len(texts), 'memory', 'memories')} and {count(len(sessions), 'session')}"
        if (texts or sessions) and not yes:
            of_scope = f"of the scope {context.scope}, " if context.scope else ""
            if not secret_input.can_ask():
                raise UsageError(f"this forgets {contents}, {of_scope}on every device", hint="Confirm: --yes")
            confirm(f"Forget {contents}, {of_scope}on every device?", "not forgotten")
        remaining = _forget(memory, texts, sessions, reason)
        notice = when_others_learn(memory.mode)
    if context.json:
        from ipfsmem.results import Cleared

        context.emit(Cleared(memories=len(texts), sessions=len(sessions), left=remaining))
    elif not texts and not sessions:
        click.echo("Nothing to forget.")
    else:
        click.echo(f"Forgotten here: {contents}{f' but {len(remaining)}' if remaining else ''}{notice}.")
    if remaining:
        raise IncompleteError(
            f"these changed meanwhile and are kept: {', '.join(remaining[:5])}",
            hint="Review them, then run again: ipfsmem scope clear",
        )


def _texts(memory: Memory) -> dict[str, str]:
    """The person's own memories by key, with the hash of what is shown: also those that are hidden on this device, and, with none, those whose
    text is not on this device, or that were deleted and could come back."""
    hashes = {one.key: _sha256(memory, one) for one in memory.list(hidden=True) if one.own}
    return hashes | {one.key: "" for one in memory.facts.history() if one.key not in hashes}


def _sha256(memory: Memory, one: MemorySummary) -> str:
    """Of what is shown; a list does not know it of a text that is joined of several."""
    if not one.fetched:
        return ""
    shown = None if one.sha256 else memory.read(one.key, counts=False)
    return one.sha256 or (shown.sha256 if shown is not None else "")


def _forget(memory: Memory, texts: dict[str, str], sessions: dict[str, str], reason: str) -> list[str]:
    """Forget what is as it was; what is not, by key and name."""
    remaining = []
    for key, sha256 in texts.items():
        try:
            memory.forget(key, reason=reason, if_match=sha256)
        except ChangedError:
            remaining.append(key)
    for name, seen in sessions.items():
        try:
            memory.sessions.forget(name, reason=reason, seen=seen)
        except ChangedError:
            remaining.append(name)
    return remaining
