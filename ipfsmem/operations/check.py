"""The operation `check`: all data on this device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ipfsmem.operation import Items, View, operation

if TYPE_CHECKING:
    from ipfsmem.device.replica import Replica
    from ipfsmem.open_vault.handle import VaultHandle
    from ipfsmem.vault.check import Finding

#: Types of results, imported when an interface shows them.
LATE = {"Finding": "ipfsmem.vault.check"}

#: Kinds of operations that are counted by name.
_NAMED: Final = 8


class Examined(Items["Finding"], frozen=True, kw_only=True):
    """The findings of a check of this device, a sequence of them. `errors`: number of findings that are errors."""

    findings: tuple[Finding, ...]
    errors: int
    #: Number of plain files that were rewritten, and by how much the clock of writes was set back.
    restored_files: int
    clock_back_ms: int


@operation(
    summary="Check this device's copy",
    right="read",
    about="memory",
    command="vault check",
    http="GET /v1/check",
    ingests=False,
)
def check(view: View) -> Examined:
    """Check this device's copy: database, blocks, signatures, keys, files and clock.

    Each finding has its reason and the next step.
    """
    from ipfsmem.device.identity import passphrase_protected
    from ipfsmem.device.tables import meta
    from ipfsmem.sync.local_repair import note_missing_text
    from ipfsmem.vault.check import STATE_DAMAGED, examine

    opened, replica = view.opened, view.opened.replica
    findings = examine(replica, opened.memories, passphrase_protected(replica.folder))
    findings += [_counted(opened), _for_agents(opened), *_undo_of_dreams(replica)]
    codes = {finding.code for finding in findings}
    if codes & {"not-fetched", STATE_DAMAGED}:
        with replica.transaction():
            if "not-fetched" in codes:
                note_missing_text(replica.db)
            if STATE_DAMAGED in codes:
                replica.db.set_meta(meta.DAMAGED_STATE, b"1")
    errors = sum(one.level == "error" for one in findings)
    return Examined(findings=tuple(findings), errors=errors, restored_files=0, clock_back_ms=0)


def _counted(opened: VaultHandle) -> Finding:
    """Return the number of operations of each kind in the audit log."""
    from ipfsmem.errors import StorageError
    from ipfsmem.open_vault.audit import operation_counts
    from ipfsmem.vault.check import Finding

    try:
        counted = operation_counts(opened)
    except StorageError as error:
        return Finding("error", "operations", str(error), error.hint)
    text = ", ".join(f"{number:,} {name}" for name, number in [*counted.items()][:_NAMED])
    more = f" and {len(counted) - _NAMED} more kinds" if len(counted) > _NAMED else ""
    return Finding("ok", "operations", f"operations noted here: {text or 'none'}{more}")


def _for_agents(opened: VaultHandle) -> Finding:
    """Return whether agents are switched on, and whether an automatic dream is due."""
    from ipfsmem.config import settings
    from ipfsmem.errors import ConfigError, IpfsmemError
    from ipfsmem.operations.dream_runs import waits_for
    from ipfsmem.vault.check import Finding

    try:
        allowed = settings().agents.enabled
        waits = waits_for(opened)
    except ConfigError as error:
        return Finding("error", "settings", str(error), error.hint)
    except IpfsmemError:
        waits = "the memory cannot be read"  # an earlier finding has the reason
    agents = "agents are switched on" if allowed else "agents are switched off in the settings"
    return Finding(
        "ok",
        "agents",
        f"{agents}; {f'no automatic dream: {waits}' if waits else 'a dream is due'}",
    )


def _undo_of_dreams(replica: Replica) -> list[Finding]:
    """Return a warning if the last dreams cannot be undone."""
    from ipfsmem.device.tables import meta
    from ipfsmem.vault.check import Finding

    if not meta.is_changed(replica.db.connection, meta.DREAMS):
        return []
    text = "the record of the last dreams here is damaged, so they cannot be undone"
    return [Finding("warn", "dreams-damaged", text)]
