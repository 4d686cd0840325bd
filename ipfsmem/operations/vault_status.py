"""The state of all scopes, without the network: the operation `status`."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

from ipfsmem.device.agent_notes import background_notes, hook_notes, syncing_notes
from ipfsmem.device.dream_notes import DreamNotes, dream_notes
from ipfsmem.device.hidden import Hidden
from ipfsmem.device.project_folders import connected_folders, unconnected_folders
from ipfsmem.device.recall_image import image_notice
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta
from ipfsmem.memories.after_revoke import late_writes
from ipfsmem.memories.writers import members_of
from ipfsmem.open_vault.handle import VaultHandle
from ipfsmem.open_vault.providers import provider_names
from ipfsmem.open_vault.scopes import MemoryScopes
from ipfsmem.open_vault.syncing import Syncing
from ipfsmem.open_vault.versions import unpublished_kinds
from ipfsmem.operations.hidden import hidden_here
from ipfsmem.provider.opening import Providers
from ipfsmem.results import Status
from ipfsmem.sync.agent_cards import notices_of_agents
from ipfsmem.sync.collection import superseded
from ipfsmem.sync.forwarding import describe_move, unanswered_move
from ipfsmem.sync.names import oldest_put, warning_of_forgotten_names
from ipfsmem.sync.presence import Presence, describe_copy
from ipfsmem.sync.removals import removals, removed_by_admins
from ipfsmem.sync.revoke_notices import words_of_revoked
from ipfsmem.vault.unlocking import unlocked_until
from ipfsmem.wording import count

#: So many roots that could go are worth a word in `status`.
TELL_SUPERSEDED = 50


_UNCONFIRMED = "the recovery phrase is not confirmed: if you did not write it down, create a new one with ipfsmem key phrase"


def status_of(opened: VaultHandle, syncing: Syncing) -> Status:
    """Return counts and state of all scopes."""
    replica = opened.replica
    opened.ingest_edits()
    counts = MemoryScopes(opened).counts()
    root = replica.db.get_meta(meta.ROOT)
    places = syncing.places
    # What could not be opened may keep names or a list: then nothing is said of what is forgotten.
    is_published = opened.mode.published and not places.not_opened
    forgotten = warning_of_forgotten_names(replica, places.open) if is_published else ""
    folder = replica.folder
    waiting = unpublished_kinds(replica) if opened.mode.published else []
    hidden = hidden_here(opened)
    dreams = DreamNotes() if folder is None else dream_notes(folder)
    return Status(
        vault_name=opened.vault_name,
        mode=opened.mode,
        folder=str(folder) if folder else None,
        device=opened.device,
        memories=sum(one.memories for one in counts),
        events=sum(one.events for one in counts),
        conflicts=sum(one.conflicts for one in counts),
        not_fetched=sum(one.not_fetched for one in counts),
        unpublished=bool(waiting),
        waiting=waiting,
        root=root.decode() if root else None,
        providers=provider_names(replica, syncing),
        vault=replica.config.vault,
        members=[f"{p.id} {p.role} {p.label}" for p in members_of(replica)],
        notices=[
            *(opened.files.notices() if opened.files is not None else []),
            *_beside_agents(folder),
            *_unconnected(replica),
            *_late_notices(replica),
            *_revoked_notices(opened),
            *(one.error().in_a_line() for one in places.not_opened),
            *([forgotten] if forgotten else []),
            *([describe_move(replica, move)] if (move := unanswered_move(replica)) is not None else []),
            *_superseded(replica),
            *notices_of_agents(replica),
            *opened.meaning().notices(),
            *([image] if (image := image_notice(replica)) else []),
            *_hidden_notice(hidden),
            *([_UNCONFIRMED] if replica.db.get_meta(meta.UNCONFIRMED_WORDS) is not None else []),
        ],
        hidden=len(hidden),
        dreamed=dreams.worked,
        dream_failed=dreams.failed,
        files=opened.files.folders() if opened.files is not None else [],
        names_put=oldest_put(replica, places.open),
        presence=_presence(replica, places),
        scopes=counts if len(counts) > 1 else [],
        removed=removals(replica.ring),
        unlocked_until=None if folder is None else unlocked_until(folder, replica.environment),
    )


def _hidden_notice(rows: list[Hidden]) -> list[str]:
    scopes = sorted({one.scope for one in rows} - {""})
    if not rows:
        return []
    in_scopes = f" (in {', '.join(scopes[:5])} too)" if scopes else ""
    return [f"{count(len(rows), 'memory')} hidden on this device{in_scopes}: ipfsmem list --hidden"]


def _presence(replica: Replica, places: Providers) -> list[Presence]:
    if not replica.config.mode.published:
        return []
    return [
        describe_copy(replica, provider)
        for provider in places.open
        if provider.capabilities.put or provider.capabilities.pin
    ]


def _superseded(replica: Replica) -> list[str]:
    number = superseded(replica) if replica.config.mode.published else 0
    if number < TELL_SUPERSEDED:
        return []
    return [
        f"{number:,} old versions use space here and at the provider: delete them with ipfsmem vault compact, or automatically once a day: ipfsmem vault compact --daily"
    ]


def _beside_agents(folder: Path | None) -> list[str]:
    """Return the errors of hooks and of syncs that they started."""
    if folder is None:
        return []
    hooks, background, syncing = hook_notes(folder), background_notes(folder), syncing_notes(folder)
    notices: list[str] = []
    if hooks.locked:
        notices.append(
            f"an agent's program found the vault locked at {_moment(hooks.locked)} and got no memories: ipfsmem unlock"
        )
    if hooks.failed:
        notices.append(f"a hook of an agent's program failed at {_moment(hooks.failed)} ({hooks.failure})")
    if background.failing:
        notices.append(
            f"syncs of agents have been failing since {_moment(background.failing)} ({background.failure}): ipfsmem sync shows why"
        )
    if syncing.failing:
        notices.append(
            f"automatic sync has been failing since {_moment(syncing.failing)} ({syncing.failure}): ipfsmem sync shows why"
        )
    return notices


def _unconnected(replica: Replica) -> list[str]:
    """Return notices on projects whose agents get no memories, as they are not connected."""
    return [
        f"an agent works in {path}, which is not connected to a project: ipfsmem connect claude-code --project {shlex.quote(path)}"
        for path in unconnected_folders(replica)
    ] + [
        f"{row.path} was moved, and the folder where {program} now keeps its memory is not confirmed ({path or 'unknown'}): "
        f"ipfsmem connect claude-code --project {shlex.quote(row.path)}"
        for row in connected_folders(replica)
        for program, path in row.unagreed.items()
    ]


def _late_notices(replica: Replica) -> list[str]:
    late = late_writes(replica)
    if not late:
        return []
    members = ", ".join(sorted({value.member for value in late}))
    return [
        f"{len(late)} value{'s' if len(late) > 1 else ''} of revoked {members} arrived after the revocation: review "
        "them with ipfsmem conflicts"
    ]


def _revoked_notices(opened: VaultHandle) -> list[str]:
    """Return a notice that this device was removed, else on removals by a recovery phrase or another wallet, which can be undone, until a
    person has seen them."""
    return [words_of_revoked(opened.replica)] if opened.is_revoked else removed_by_admins(opened.replica.ring)


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
