"""`memory.status()`: the state of all scopes, without the network."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

from ipfsmem.device.agent_notes import background_notes, hook_notes, syncing_notes
from ipfsmem.device.dream_notes import DreamNotes, dream_notes
from ipfsmem.device.project_folders import connected_folders, unconnected_folders
from ipfsmem.device.recall_image import image_notice
from ipfsmem.device.tables import meta
from ipfsmem.memories.writers import members_of
from ipfsmem.parts.folders import MemoryFolders
from ipfsmem.parts.hidden import hidden_here
from ipfsmem.parts.members import MemoryMembers
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.scopes import MemoryScopes
from ipfsmem.parts.syncing import Syncing
from ipfsmem.parts.vault_handle import VaultHandle
from ipfsmem.parts.versions import what_waits
from ipfsmem.provider.contract import shown_spec
from ipfsmem.results import Status
from ipfsmem.sync.collection import superseded
from ipfsmem.sync.forwarding import describe_move, unanswered_move
from ipfsmem.sync.names import oldest_put, warning_of_forgotten_names
from ipfsmem.sync.presence import Presence, describe_copy
from ipfsmem.sync.removals import removed_by_admins
from ipfsmem.sync.revoke_notices import words_of_revoked
from ipfsmem.vault.unlocking import unlocked_until
from ipfsmem.wording import count

#: So many roots that could go are worth a word in `status`.
TELL_SUPERSEDED = 50


_UNCONFIRMED = "the recovery phrase is not confirmed: if you did not write it down, create a new one with ipfsmem key phrase"


class MemoryStatus(MemoryPart):
    """Combines the states of the parts of an open vault."""

    def __init__(
        self,
        opened: VaultHandle,
        syncing: Syncing,
        scopes: MemoryScopes,
        members: MemoryMembers,
        folders: MemoryFolders,
    ) -> None:
        super().__init__(opened)
        self._syncing = syncing
        self._scopes = scopes
        self._members = members
        self._folders = folders

    def status(self) -> Status:
        """Return counts and state."""
        self._open.ingest_edits()
        counts = self._scopes.counts()
        root = self._replica.db.get_meta(meta.ROOT)
        places = self._syncing.places
        # What could not be opened may keep names or a list: then nothing is said of what is forgotten.
        told = self._open.mode.published and not places.not_opened
        forgotten = warning_of_forgotten_names(self._replica, places.open) if told else ""
        folder = self._replica.folder
        waiting = what_waits(self._replica) if self._open.mode.published else []
        dreams = DreamNotes() if folder is None else dream_notes(folder)
        return Status(
            namespace=self._open.namespace,
            mode=self._open.mode,
            folder=str(folder) if folder else None,
            device=self._open.device,
            memories=sum(one.memories for one in counts),
            events=sum(one.events for one in counts),
            conflicts=sum(one.conflicts for one in counts),
            not_fetched=sum(one.not_fetched for one in counts),
            unpublished=bool(waiting),
            waiting=waiting,
            root=root.decode() if root else None,
            providers=[*map(shown_spec, self._replica.config.providers)]
            or [provider.name for provider in places.open],
            vault=self._replica.config.vault,
            members=[f"{p.id} {p.role} {p.label}" for p in members_of(self._replica)],
            notices=[
                *(self._open.files.notices() if self._open.files is not None else []),
                *self._beside_agents(),
                *self._unconnected(),
                *self._late_notices(),
                *self._revoked_notices(),
                *(one.error().in_a_line() for one in places.not_opened),
                *([forgotten] if forgotten else []),
                *(
                    [describe_move(self._replica, move)]
                    if (move := unanswered_move(self._replica)) is not None
                    else []
                ),
                *self._superseded(),
                *self._open.meaning().notices(),
                *([image] if (image := image_notice(self._replica)) else []),
                *self._hidden_notice(),
                *([_UNCONFIRMED] if self._members.words_unconfirmed() else []),
            ],
            hidden=len(hidden_here(self._open)),
            dreamed=dreams.worked,
            dream_failed=dreams.failed,
            files=self._folders.list(),
            names_put=oldest_put(self._replica, places.open),
            presence=self._presence(),
            scopes=counts if len(counts) > 1 else [],
            removed=self._members.removed(),
            unlocked_until=self._unlocked_until(),
        )

    def _hidden_notice(self) -> list[str]:
        found = hidden_here(self._open)
        scopes = sorted({one.scope for one in found} - {""})
        if not found:
            return []
        where = f" (in {', '.join(scopes[:5])} too)" if scopes else ""
        return [f"{count(len(found), 'memory')} hidden on this device{where}: ipfsmem list --hidden"]

    def _unlocked_until(self) -> int | None:
        folder = self._replica.folder
        return unlocked_until(folder, self._replica.world) if folder is not None else None

    def _presence(self) -> list[Presence]:
        if not self._open.mode.published:
            return []
        return [
            describe_copy(self._replica, provider)
            for provider in self._syncing.places.open
            if provider.capabilities.put or provider.capabilities.pin
        ]

    def _superseded(self) -> list[str]:
        found = superseded(self._replica) if self._open.mode.published else 0
        if found < TELL_SUPERSEDED:
            return []
        return [
            f"{found:,} old versions use space here and at the provider: delete them with ipfsmem vault compact, or automatically once a day: ipfsmem vault compact --daily"
        ]

    def _beside_agents(self) -> list[str]:
        """Return the errors of hooks and of syncs that they started."""
        folder = self._replica.folder
        if folder is None:
            return []
        hooks, background, syncing = hook_notes(folder), background_notes(folder), syncing_notes(folder)
        said: list[str] = []
        if hooks.locked:
            said.append(
                f"an agent's program found the vault locked at {_moment(hooks.locked)} and got no memories: ipfsmem unlock"
            )
        if hooks.failed:
            said.append(f"a hook of an agent's program failed at {_moment(hooks.failed)} ({hooks.failure})")
        if background.failing:
            said.append(
                f"syncs of agents have been failing since {_moment(background.failing)} ({background.failure}): ipfsmem sync shows why"
            )
        if syncing.failing:
            said.append(
                f"automatic sync has been failing since {_moment(syncing.failing)} ({syncing.failure}): ipfsmem sync shows why"
            )
        return said

    def _unconnected(self) -> list[str]:
        """Return notices on projects whose agents get no memories, as they are not connected."""
        return [
            f"an agent works in {path}, which is not connected to a project: ipfsmem connect claude-code --project {shlex.quote(path)}"
            for path in unconnected_folders(self._replica)
        ] + [
            f"{row.path} was moved, and nobody agreed to the folder that {program} keeps its memory in now, {path or 'which cannot be told'}: "
            f"ipfsmem connect claude-code --project {shlex.quote(row.path)}"
            for row in connected_folders(self._replica)
            for program, path in row.unagreed.items()
        ]

    def _late_notices(self) -> list[str]:
        late = self._members.late_writes()
        if not late:
            return []
        members = ", ".join(sorted({value.member for value in late}))
        return [
            f"{len(late)} value{'s' if len(late) > 1 else ''} of revoked {members} came after the revoke: look at "
            "them with ipfsmem conflicts"
        ]

    def _revoked_notices(self) -> list[str]:
        """Return a notice that this device was removed, else on removals by a recovery phrase or another wallet, which can be undone, until a
        person has seen them."""
        return (
            [words_of_revoked(self._replica)]
            if self._open.is_revoked
            else removed_by_admins(self._replica.ring)
        )


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
