"""Groups of methods on a whole vault, such as `memory.members`: the declared operations, and methods for programs alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ipfsmem.answer import Answer
from ipfsmem.errors import IncompleteError, IpfsmemError, NotFoundError, UsageError
from ipfsmem.methods import (
    MaintenanceMethods,
    MemberMethods,
    OperationMethods,
    ProviderMethods,
    SettingMethods,
    VaultMethods,
)
from ipfsmem.operation import View
from ipfsmem.operations.gc import each_name
from ipfsmem.operations.maintenance import Cleaned, Vacuumed, cleanup, could_free
from ipfsmem.parts.maintenance import MemoryMaintenance
from ipfsmem.parts.members import MemoryMembers
from ipfsmem.parts.operations import MemoryOperations
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.providers import MemoryProviders
from ipfsmem.parts.syncing import Syncing
from ipfsmem.parts.vault_handle import VaultHandle
from ipfsmem.results import Collecting
from ipfsmem.sync.progress import Progress, no_progress
from ipfsmem.sync.retention import KEEP_DAYS, KEEP_ROOTS

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


class Operations(OperationMethods, MemoryOperations):
    """The audit log of this device."""

    def _view(self) -> View:
        return View(self._open, "")


class Members(MemberMethods, MemoryMembers):
    """The members of a vault."""

    def _view(self) -> View:
        return View(self._open, "", syncing=lambda: self._syncing)


class Providers(ProviderMethods, MemoryProviders):
    """The providers of a vault."""

    def _view(self) -> View:
        return View(self._open, "", syncing=lambda: self._syncing)


class Vaults(VaultMethods, MemoryPart):
    """The further vaults of a wallet."""

    def _view(self) -> View:
        return View(self._open, "")


class Settings(SettingMethods, MemoryPart):
    """The settings of this user, for all vaults."""

    def _view(self) -> View:
        return View(self._open, "")


class Maintenance(MaintenanceMethods, MemoryMaintenance):
    """Occasional maintenance of an open vault."""

    def __init__(self, opened: VaultHandle, syncing: Syncing) -> None:
        super().__init__(opened)
        self._syncing = syncing

    def _view(self) -> View:
        return View(self._open, "", syncing=lambda: self._syncing)

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
