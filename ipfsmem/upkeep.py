"""Groups of methods on a whole vault, such as `memory.members`: the declared operations, and methods for programs alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from ipfsmem import config as configuration
from ipfsmem.answer import Answer
from ipfsmem.bundle.program_events import Move
from ipfsmem.config import RetentionRule
from ipfsmem.device.tables import meta
from ipfsmem.errors import IncompleteError, IpfsmemError, NotFoundError, UsageError
from ipfsmem.memories.after_revoke import Late, late_writes
from ipfsmem.methods import (
    AgentMethods,
    MaintenanceMethods,
    MemberMethods,
    OperationMethods,
    ProviderMethods,
    SettingMethods,
    VaultMethods,
)
from ipfsmem.open_vault.audit import note, operation_counts
from ipfsmem.open_vault.handle import VaultHandle
from ipfsmem.open_vault.method_group import MethodGroup
from ipfsmem.open_vault.providers import providers_in_use
from ipfsmem.open_vault.syncing import Syncing
from ipfsmem.operation import View
from ipfsmem.operations.gc import each_name
from ipfsmem.operations.maintenance import Cleaned, Vacuumed, cleanup, could_free
from ipfsmem.provider.contract import Provider, access_policy
from ipfsmem.provider.opening import Providers as OpenProviders
from ipfsmem.results import Collecting
from ipfsmem.sync.engine import leading
from ipfsmem.sync.forwarding import unanswered_move
from ipfsmem.sync.interval import SyncInterval, free_interval
from ipfsmem.sync.names import member_names
from ipfsmem.sync.progress import Progress, no_progress
from ipfsmem.sync.removals import Removal, removals
from ipfsmem.sync.retention import KEEP_DAYS, KEEP_ROOTS
from ipfsmem.vault.sheet import RecoverySheet, make_sheet

#: The parts of `compact`, in order.
PARTS: Final = ("versions", "leftovers", "files")
#: Default minimum age in seconds of leftovers to delete: as many days as versions are kept.
OLD: Final = KEEP_DAYS * 86_400.0


class Compacted(Answer, frozen=True, kw_only=True):
    """The result of compacting a vault by part, or with `dry_run` the expected one. `versions`, `leftovers`, `files` None: not requested, or
    failed. `problems`: why parts failed; `hint`: next step for the first."""

    dry_run: bool
    versions: Collecting | None
    leftovers: Cleaned | None
    files: Vacuumed | None
    problems: dict[str, str]
    hint: str

    def raise_if_incomplete(self) -> None:
        """Raise IncompleteError if a part failed, also at a provider."""
        if self.problems:
            raise IncompleteError(
                "not everything was compacted: "
                + "; ".join(f"{part}: {problem}" for part, problem in self.problems.items()),
                hint=self.hint,
            )
        if self.versions is not None:
            self.versions.raise_if_incomplete()


class Operations(OperationMethods, MethodGroup):
    """The audit log of this device, limited by the setting `operations.kept`. It has no text of a memory."""

    def _view(self) -> View:
        return View(self._open, "")

    def add(self, operation: str, about: str = "") -> None:
        """Record an operation of an interface that no part records, such as the creation of a token; `about`: its name."""
        note(self._open, operation, "", about, "")

    def counts(self) -> dict[str, int]:
        """Return the number of entries of each operation, most frequent first."""
        return operation_counts(self._open)


class Members(MemberMethods, MethodGroup):
    """The members of a vault."""

    def __init__(self, opened: VaultHandle, syncing: Syncing) -> None:
        super().__init__(opened)
        self._syncing = syncing

    def _view(self) -> View:
        return View(self._open, "", syncing=lambda: self._syncing)

    def note_words(self, *, confirmed: bool) -> None:
        """Record whether the recovery phrase shown last was confirmed by typing some of its words; `status` says if not."""
        name = meta.UNCONFIRMED_WORDS
        with self._replica.transaction():
            if confirmed:
                meta.forget(self._replica.db.connection, [name])
            else:
                self._replica.db.set_meta(name, b"1")

    def is_revoked(self) -> bool:
        """Tell whether this device is known to be revoked."""
        return self._open.is_revoked

    def late_writes(self) -> list[Late]:
        """Return writes of revoked members beyond those accepted at their revocation, for review (format section 4)."""
        return late_writes(self._replica)

    def removed(self) -> list[Removal]:
        """Return the removed members that a root had added, and who removed them."""
        return removals(self._replica.ring)

    def recovery_sheet(self) -> RecoverySheet:
        """Return a text to print that explains how to recover this vault. It has no secret; needs no network.

        Raises UsageError in a mode without a vault.
        """
        vault = self._replica.config.vault
        if vault is None:
            raise UsageError(
                f"a vault in mode {self._open.mode} is never published, so it has no recovery sheet",
                hint="Keep a copy: ipfsmem export --out FILE.",
            )
        places = [(info.spec, info.root, info.at) for info in providers_in_use(self._replica, self._syncing)]
        return make_sheet(
            self._open.vault_name, self._replica, vault, places, configuration.settings().providers
        )


class Agents(AgentMethods, MethodGroup):
    """The agent keys of a vault."""

    def __init__(self, opened: VaultHandle, syncing: Syncing) -> None:
        super().__init__(opened)
        self._syncing = syncing

    def _view(self) -> View:
        return View(self._open, "", syncing=lambda: self._syncing)


class Providers(ProviderMethods, MethodGroup):
    """The providers of a vault."""

    def __init__(self, opened: VaultHandle, syncing: Syncing) -> None:
        super().__init__(opened)
        self._syncing = syncing

    def _view(self) -> View:
        return View(self._open, "", syncing=lambda: self._syncing)

    @property
    def in_use(self) -> list[Provider]:
        """Return the open providers."""
        return self._syncing.places.open

    def use(self, providers: Sequence[Provider]) -> None:
        """Publish at these providers while this vault is open; its configuration does not change."""
        self._syncing.places = OpenProviders((*providers,))

    def free_interval(self) -> SyncInterval:
        """Return the shortest interval of syncs that is free of charge at all providers, for all devices together; else a cheap one."""
        return free_interval(self._syncing.places.open, max(1, len(member_names(self._replica))))

    def policy(self, spec: str) -> dict[str, Any]:
        """Return the least-rights access policy of a bucket as JSON. ConfigError for providers without one."""
        return access_policy(spec)

    def moved(self) -> Move | None:
        """Return an unanswered move by another device; None without one."""
        return unanswered_move(self._replica)

    async def leading(self, progress: Progress = no_progress) -> list[str]:
        """Return the names of the providers that lead a new device to the version published last, by a list of pins, or by the names
        of the anchor and of this device. Providers that do not answer are omitted."""
        return await leading(self._replica, self._syncing.published_at().open, progress=progress)


class Vaults(VaultMethods, MethodGroup):
    """The further vaults of a wallet."""

    def _view(self) -> View:
        return View(self._open, "")


class Settings(SettingMethods, MethodGroup):
    """The settings of this user, for all vaults."""

    def _view(self) -> View:
        return View(self._open, "")


class Maintenance(MaintenanceMethods, MethodGroup):
    """Occasional maintenance of an open vault."""

    def __init__(self, opened: VaultHandle, syncing: Syncing) -> None:
        super().__init__(opened)
        self._syncing = syncing

    def _view(self) -> View:
        return View(self._open, "", syncing=lambda: self._syncing)

    def gc_daily(self, keep: RetentionRule | None) -> None:
        """Let superseded roots go once a day, with a sync, and keep what `keep` says; None: only `gc` lets go."""
        self._replica.save_config(msgspec.structs.replace(self._replica.config, collect=keep))

    async def compact(
        self,
        *,
        only: Iterable[str] = (),
        dry_run: bool = False,
        older_than: float | None = None,
        keep_roots: int = KEEP_ROOTS,
        keep_days: int = KEEP_DAYS,
        drop_guarded: str | Iterable[str] = (),
        progress: Progress = no_progress,
    ) -> Compacted:
        """Do `gc`, `cleanup` and `vacuum` in this order, or the parts in `only` (of `PARTS`). A part that fails does not prevent the others.

        `older_than`: seconds, of `cleanup` (90 days unless given). An unpublished vault has no versions. Raises the error of the first
        part that fails if no part was done, and UsageError or NotFoundError at once; other errors are in `problems`.
        """
        only = each_name(only)
        parts = [part for part in PARTS if part in only] or [*PARTS]
        if unknown := {*only} - {*PARTS}:
            raise UsageError(f"{min(unknown)!r} is not a part; parts: {', '.join(PARTS)}")
        if older_than is not None and (problem := cleanup.parameter("older_than").problem(older_than)):
            raise UsageError(f"compact: older_than {problem}")
        if not only and not self._open.mode.published:
            parts.remove("versions")
        versions = leftovers = files = None
        failed: dict[str, IpfsmemError] = {}
        for part in parts:
            try:
                if part == "versions":
                    versions = await self.gc(
                        dry_run=dry_run,
                        keep_roots=keep_roots,
                        keep_days=keep_days,
                        drop_guarded=drop_guarded,
                        progress=progress,
                    )
                elif part == "leftovers":
                    leftovers = self.cleanup(OLD if older_than is None else older_than, dry_run=dry_run)
                else:
                    files = could_free(self._replica) if dry_run else self.vacuum()
            except (UsageError, NotFoundError):
                raise
            except IpfsmemError as error:
                failed[part] = error
        if failed and not (versions or leftovers or files):
            raise next(iter(failed.values()))
        return Compacted(
            dry_run=dry_run,
            versions=versions,
            leftovers=leftovers,
            files=files,
            problems={part: str(error) for part, error in failed.items()},
            hint=next((error.hint for error in failed.values() if error.hint), ""),
        )
