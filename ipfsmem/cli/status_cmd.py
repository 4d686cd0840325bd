"""`ipfsmem status`: the state of a vault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli import public_address
from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.printing import clean, facts, moment, style
from ipfsmem.mode import Mode
from ipfsmem.operations.status import status
from ipfsmem.wording import count

#: Maximum number of scopes listed.
MOST = 5

if TYPE_CHECKING:
    from ipfsmem.files.working_copies import FolderFacts
    from ipfsmem.results import ScopeCounts, Status
    from ipfsmem.sync.presence import Presence

#: Readers of each mode, shown at `init` and here (SECURITY.md has details).
READERS = {
    Mode.NONE: "nobody: nothing leaves this process or is stored",
    Mode.LOCAL: "whoever can read this disk; nothing leaves it",
    Mode.IPFS: "everyone: published unencrypted, permanently",
    Mode.ENCRYPTED_IPFS: "your devices, your wallet and your recovery phrase; the provider sees sizes and times",
}


def when_others_learn(mode: Mode) -> str:
    """Return the words after "forgotten here": when other devices get it, in published modes."""
    return "; other devices get it after the next sync" if mode.published else ""


def _files(facts: FolderFacts) -> str:
    """Return a folder of plain files and its state."""
    whose = f"  (scope {clean(facts.scope)})" if facts.scope else ""
    state = (
        ""
        if facts.state == "ok"
        else "  " + style(advice(f"({facts.state}: ipfsmem folder list)"), fg="yellow")
    )
    return clean(facts.path) + whose + state


def _readers(state: Status) -> str:
    """Return who can read it: files of an encrypted vault are plain in a linked folder."""
    there = "; the files below: whoever can read this disk" if state.mode.sealed and state.files else ""
    return READERS[state.mode] + there


def _copy(one: Presence) -> str:
    """Return the state of the copy at one provider."""
    checked = f", checked {moment(one.at)}" if one.at else ""
    if one.paused_until is not None:
        checked += f"; asked to wait until {moment(one.paused_until)}"
    if one.state == "ok":
        return f"{clean(one.provider)}: all {one.total:,} parts are there{checked}"
    more = advice("  (ipfsmem provider check)") if one.state in ("missing", "stopped") else ""
    return f"{clean(one.provider)}: " + style(clean(one.text), fg="yellow") + checked + more


def _scopes(counts: list[ScopeCounts]) -> str:
    """Return the number of memories by scope, the largest first."""
    if not counts:
        return ""
    scopes = sorted(counts[1:], key=lambda one: (-one.memories, one.scope))
    first = ", ".join(f"{one.memories:,} in {one.scope}" for one in scopes[:MOST])
    more = (
        advice(f" and {len(scopes) - MOST:,} more scopes (ipfsmem scope list)") if len(scopes) > MOST else ""
    )
    return f"{counts[0].memories:,} in the default scope, {first}{more}"


def _unlocked(until: int | None) -> str:
    """Return until when this user's programs need no passphrase."""
    return "" if until is None else f"until {moment(until)}, for all your programs (ipfsmem lock ends it)"


def _members(state: Status) -> str:
    """Return the number of members, and of removed ones."""
    out = f", {len(state.removed)} removed" if state.removed else ""
    return count(len(state.members), "member") + out + advice(" (ipfsmem member list)")


def _waiting(changes: list[str]) -> str:
    """Return the unpublished data."""
    if not changes:
        return "no unpublished changes"
    text = " and ".join(changes).removeprefix("a ")
    return style(advice(f"unpublished {text}; run ipfsmem sync"), fg="yellow")


def _dreams(state: Status) -> str:
    """Return the last dreams' results here; empty before the first."""
    worked = f"the last on {moment(state.dreamed)}" if state.dreamed else ""
    failed = f"one failed on {moment(state.dream_failed)}" if state.dream_failed else ""
    text = "; ".join(filter(None, (worked, failed)))
    return text and text + advice(" (ipfsmem dream status)")


def _show(context: CommandContext, state: Status, arguments: Arguments) -> None:
    notes = []
    if state.conflicts:
        notes.append(style(advice(f"{state.conflicts} with conflicts (ipfsmem conflicts)"), fg="yellow"))
    if state.not_fetched:
        notes.append(style(advice(f"{state.not_fetched} not on this device yet (ipfsmem sync)"), fg="yellow"))
    vault = state.vault
    wallet = ""
    if vault is not None:
        owner = vault.address or "none: the recovery phrase opens it"
        wallet = f"{owner}, vault {vault.name!r}, key number {vault.key_number}" if vault.address else owner
    published = "" if vault is None else state.root or "nothing yet"
    if vault is not None:
        published += f"  ({_waiting(state.waiting)})"
    click.echo(f"{style(clean(state.vault_name), bold=True)}, mode {state.mode}")
    facts(
        [
            ("memories", ", ".join([f"{state.memories:,}", *notes])),
            ("events", f"{state.events:,}"),
            ("scopes", _scopes(state.scopes)),
            ("dreams", _dreams(state)),
            ("published", published),
            ("address", public_address.address(state)),
            ("open it by", clean(public_address.way_in(state))),
            ("provider", clean(", ".join(state.providers)) or ("none chosen" if vault else "")),
            *(("copy", _copy(one)) for one in state.presence),
            ("names", f"published {moment(state.names_put)} (oldest)" if state.names_put else ""),
            ("readers", _readers(state)),
            ("wallet", wallet),
            ("vault id", vault.tag if vault else ""),
            (
                "members",
                _members(state) if state.members else "",
            ),
            ("device", state.device),
            ("unlocked", advice(_unlocked(state.unlocked_until))),
            ("folder", clean(state.folder or "")),
            *(("files", _files(one)) for one in state.files),
        ]
    )
    for notice in state.notices:
        click.echo(style("note: ", fg="yellow") + advice(notice))


command = operation_command("status", status, _show, reads=False)
