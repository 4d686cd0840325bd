"""`memory.maintenance`: letting go of old versions, looking for damage, bringing back what can be read, this device's passphrase."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final, Literal

import msgspec

from ipfsmem.causal.clock import corrected_hlc, hlc_ms
from ipfsmem.config import RetentionRule, settings
from ipfsmem.device.identity import change_passphrase, passphrase_protected
from ipfsmem.device.state import StateHeader
from ipfsmem.device.tables import meta
from ipfsmem.errors import ConfigError, IncompleteError, IpfsmemError, StorageError, UsageError
from ipfsmem.mode import Mode
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.syncing import Syncing, followed_by
from ipfsmem.parts.vault_handle import VaultHandle
from ipfsmem.results import Collecting, Salvage
from ipfsmem.sync.collection import Rules
from ipfsmem.sync.engine import collect, salvage
from ipfsmem.sync.local_repair import miss
from ipfsmem.sync.progress import Progress, no_progress
from ipfsmem.sync.retention import KEEP_DAYS, KEEP_ROOTS
from ipfsmem.vault.check import STATE_DAMAGED, Finding, examine
from ipfsmem.vault.owner import check_protection
from ipfsmem.vault.unlocking import lock_device

#: Kinds of operations that `check` counts by name.
_NAMED: Final = 8


class MemoryMaintenance(MemoryPart):
    """What an open memory needs now and then."""

    def __init__(self, opened: VaultHandle, syncing: Syncing) -> None:
        super().__init__(opened)
        self._syncing = syncing
        self._memories = opened.memories

    async def salvage(
        self,
        *,
        dry_run: bool = False,
        pick: Iterable[str] = (),
        public_ok: bool = False,
        allow: Iterable[str] = (),
        progress: Progress = no_progress,
    ) -> Salvage:
        """Bring back what can be read of damaged heads, in this device's own name, and publish it.

        What the hashes under a head's commit prove comes back by itself. `pick` are entry names of `found.loose`: texts
        that their devices signed, but of which no hash proves that they were the latest. `dry_run` changes nothing here.
        Raises what `sync` raises.
        """
        places = self._syncing.published_at()
        layout = None
        if not dry_run:
            self._syncing.agree(public_ok)
            layout = self._syncing.layout(self._syncing.secret_check(allow))
        before = dict(self._replica.store.frame.ctx)
        self._open.scan()
        with followed_by(self._open.render, partial(self._syncing.erase_forgotten, before)):
            found, done, report = await salvage(
                self._replica,
                places.open,
                layout,
                picked=frozenset(pick),
                not_opened=places.not_opened,
                root=self._syncing.root,
                progress=progress,
            )
        report.conflicts = len(self._memories.conflicts())
        return Salvage(dry_run=dry_run, found=found, done=done, report=report)

    async def gc(
        self,
        *,
        dry_run: bool = False,
        keep_roots: int = KEEP_ROOTS,
        keep_days: int = KEEP_DAYS,
        drop_guarded: str | Iterable[str] = (),
        progress: Progress = no_progress,
    ) -> Collecting:
        """Unpin superseded roots and drop blocks that only they needed; says for each root why it stays or goes.

        `drop_guarded`: these mass deletes were right, so the root before each may go like any other, now or when its time
        comes: each named by that root, or by the device (label or id) in whose published state it came, or "all". Raises
        NotFoundError for what names none, before anything goes.
        """
        rules = Rules(dry_run, keep_roots, keep_days, each_name(drop_guarded))
        places = self._syncing.published_at()
        done = await collect(self._replica, places.open, rules, progress, not_opened=places.not_opened)
        if not dry_run:
            from ipfsmem.memories.kept_vectors import erase_forgotten

            erase_forgotten(self._memories)
        return Collecting.of(done, dry_run=dry_run)

    def gc_daily(self, keep: RetentionRule | None) -> None:
        """Let superseded roots go once a day, with a sync, and keep what `keep` says; None: only `gc` lets go."""
        self._replica.save_config(msgspec.structs.replace(self._replica.config, collect=keep))

    def check(self) -> list[Finding]:
        """Look at everything on this device and say what is wrong and what to do."""
        found = examine(self._replica, self._memories, passphrase_protected(self._replica.folder))
        found += [self._done_here(), self._for_agents(), *self._kept_of_dreams()]
        codes = {finding.code for finding in found}
        if codes & {"not-fetched", STATE_DAMAGED}:
            with self._replica.transaction():
                if "not-fetched" in codes:
                    miss(self._replica.db)
                if STATE_DAMAGED in codes:
                    self._replica.db.set_meta(meta.DAMAGED_STATE, b"1")
        return found

    def _done_here(self) -> Finding:
        """How often what was done here, as far as the list of operations goes back."""
        from ipfsmem.parts.operations import MemoryOperations

        try:
            counted = MemoryOperations(self._open).counts()
        except StorageError as error:
            return Finding("error", "operations", str(error), error.hint)
        named = ", ".join(f"{number:,} {name}" for name, number in [*counted.items()][:_NAMED])
        more = f" and {len(counted) - _NAMED} more kinds" if len(counted) > _NAMED else ""
        return Finding("ok", "operations", f"operations noted here: {named or 'none'}{more}")

    def _for_agents(self) -> Finding:
        """Whether agents have anything of it, and whether a dream begins by itself."""
        from ipfsmem.parts.dreams import waits_for

        try:
            allowed = settings().agents.enabled
            waits = waits_for(self._open)
        except ConfigError as error:
            return Finding("error", "settings", str(error), error.hint)
        except IpfsmemError:
            waits = "the memory cannot be read"  # said above
        agents = "agents are switched on" if allowed else "agents are switched off in the settings"
        return Finding(
            "ok",
            "agents",
            f"{agents}; {f'no automatic dream: {waits}' if waits else 'a dream is due'}",
        )

    def _kept_of_dreams(self) -> list[Finding]:
        """Whether the last dreams can be taken back."""
        if not meta.is_changed(self._replica.db.connection, meta.DREAMS):
            return []
        text = "the record of the last dreams here is damaged, so they cannot be undone"
        return [Finding("warn", "dreams-damaged", text)]

    def trust_clock(self) -> int:
        """Date new writes by this machine's clock again, though this device once wrote far in its future; by how many
        milliseconds it went back. What was written keeps its date, and goes before others' until it is written over.

        Raises UsageError when nothing is more than a day ahead: time catches up with that.
        """
        with self._replica.transaction():
            frame = self._replica.store.frame
            right = corrected_hlc(frame.hlc, self._replica.world.now())
            if right is None:
                raise UsageError(
                    "this device's writes are dated at most a day ahead of this machine's clock: nothing has to be put right",
                    hint="If the clock is behind, set it.",
                )
            self._replica.store.apply({}, StateHeader(frame.ctx, frame.seen, right))
        return hlc_ms(frame.hlc) - hlc_ms(right)

    def change_passphrase(self, new: str | Literal[False], old: str | None = None) -> None:
        """Put this device's keys under another passphrase. `old` is the present one, None when they have none.

        `new` False leaves them without one. Nothing else changes, on no other device. A copy of the key
        file that somebody kept still opens with the old one. Raises PassphraseError when `old` is wrong or `new` too
        easy, UsageError in a mode without such keys, StorageError: then the old one still holds. What was unlocked is locked then;
        IncompleteError when not all of that went away: the new one holds.
        """
        folder = self._replica.folder
        if not self._open.mode.published or folder is None:
            raise UsageError(
                f"a vault in mode {self._open.mode} has no keys to protect: whoever can read this disk can read it"
            )
        check_protection(Mode.ENCRYPTED_IPFS, new)
        change_passphrase(folder, old, new or None, self._replica.world.random)
        try:
            lock_device(folder)
        except StorageError as error:
            raise IncompleteError(f"the passphrase was changed, but {error}", hint=error.hint) from error


def each_name(given: Iterable[str]) -> tuple[str, ...]:
    """Names that may be given as one text."""
    return (given,) if isinstance(given, str) else tuple(given)
