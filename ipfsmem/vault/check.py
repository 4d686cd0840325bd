"""Examine a vault on this device for `ipfsmem check`; each finding has its meaning and next step.

Nothing is written. Codes of findings are stable. `error`: data is lost or unusable. `warn`: the user should act.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

import msgspec

from ipfsmem.causal.clock import FAR_AHEAD_MS, ZERO, hlc_ms
from ipfsmem.causal.value import check_entry, verify_value
from ipfsmem.device.connection import DAMAGED_HINT
from ipfsmem.device.database_file import DATABASE
from ipfsmem.device.identity import KEY_FILE
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import DamagedStateError, locations
from ipfsmem.device.tables import blocks, reports
from ipfsmem.errors import IpfsmemError, StorageError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_reader import from_plain_files
from ipfsmem.sync.report import MOST_NAMED, UNLOCK
from ipfsmem.sync.revoke_notices import way_back
from ipfsmem.wording import count

#: After a finding with this code the next sync looks for parts of the state.
STATE_DAMAGED = "state-damaged"
Level = Literal["ok", "warn", "error"]
#: A clock this far behind this device's own writes already dates them wrongly, in milliseconds.
CLOCK_BEHIND = 10 * 60 * 1000


class Finding(msgspec.Struct, frozen=True):
    """The result of one check."""

    level: Level
    code: str
    text: str
    hint: str = ""


def examine(replica: Replica, memories: MemoryStore, protected: bool) -> list[Finding]:
    """Run every check; one that cannot run is itself a finding."""
    findings: list[Finding] = []
    with replica.reading():
        clocks: dict[str, str] = {}
        for check in (
            _files(replica, protected),
            _database(replica),
            _blocks(replica),
            _state(replica, clocks),
            _clock(replica, clocks),
            _ring(replica),
            _conflicts(memories),
            _index(memories),
            _reports(replica),
        ):
            try:
                findings += check
            except IpfsmemError as error:
                findings.append(Finding("error", "unreadable", str(error), error.hint))
    return list(dict.fromkeys(findings))


def _files(replica: Replica, protected: bool) -> Iterator[Finding]:
    folder = replica.folder
    if folder is None:
        yield Finding("ok", "nothing-on-disk", "mode none keeps nothing on disk")
        return
    if os.name == "posix":
        for path in (folder / KEY_FILE, folder / DATABASE):
            mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0
            if mode & 0o077:
                yield Finding(
                    "warn",
                    "permissions",
                    f"{path} can be read by others",
                    f"Run: chmod 600 {shlex.quote(str(path))}",
                )
    if replica.config.mode.sealed and not protected:
        yield Finding(
            "warn",
            "unprotected-keys",
            "this device's keys are on the disk without a passphrase: anyone who copies this folder can read the vault",
            "Set one: ipfsmem key passphrase",
        )
    if replica.was_moved():
        yield Finding(
            "warn",
            "moved",
            "these files were copied or restored",
            "Run: ipfsmem sync. It gives this device a new id.",
        )
    yield Finding("ok", "files", f"{folder}")


def _clock(replica: Replica, clocks: dict[str, str]) -> Iterator[Finding]:
    """Compare the clock values of this device and others with the system clock. `clocks`: the last one of
    each device."""
    now, own = replica.environment.now(), replica.device.id
    last = hlc_ms(replica.store.frame.hlc)
    others = {device: hlc_ms(h) for device, h in clocks.items() if device != own and h > ZERO}
    ahead = {device: ms for device, ms in others.items() if ms > now + FAR_AHEAD_MS}
    if last > now + CLOCK_BEHIND:
        here = (
            f"the last write of this device is dated {_day(last)}, and this machine's clock says {_day(now)}"
        )
        if last <= now + FAR_AHEAD_MS:
            yield Finding(
                "warn",
                "clock",
                f"{here}: one of them is wrong",
                "Set the clock, or wait until it has caught up.",
            )
        elif ahead and len(ahead) == len(others):
            yield Finding(
                "warn",
                "clock",
                f"{here}; writes of other devices have such dates too ({_day(max(ahead.values()))}): this machine's clock is behind",
                "Set it.",
            )
        else:
            fits = max((ms for ms in others.values() if ms <= now + FAR_AHEAD_MS), default=None)
            why = (
                f"; the last writes of others ({_day(fits)}) fit the clock, so it was wrong before"
                if fits
                else ""
            )
            yield Finding(
                "warn",
                "clock",
                f"{here}{why}: in a conflict, texts of this device win over those of others",
                "If this machine's clock is right now: ipfsmem vault check --clock-is-right. Otherwise set it.",
            )
        return
    for device, ms in sorted(ahead.items()):
        person = replica.ring.view.members.get(device) if replica.ring is not None else None
        name = f"{person.label} ({device})" if person is not None else device
        yield Finding(
            "warn",
            "clock-of",
            f"texts of {name} are dated up to {_day(ms)}, and this machine's clock says {_day(now)}: one of the clocks is wrong. In a conflict such a text wins until it is overwritten",
            "If this machine's clock is right, on that device: ipfsmem vault check.",
        )


def _day(ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return "a time beyond the year 9999"


def _database(replica: Replica) -> Iterator[Finding]:
    try:
        verdict = replica.db.verdict()
    except StorageError as error:
        verdict = str(error)
    if verdict != "ok":
        yield Finding(
            "error",
            "database",
            f"{replica.db.path} is damaged: {verdict}",
            DAMAGED_HINT,
        )
    else:
        yield Finding("ok", "database", f"{replica.db.path} is sound")


def _blocks(replica: Replica) -> Iterator[Finding]:
    bad = count = 0
    for digest, data in blocks.rows(replica.db.connection):
        count += 1
        bad += not replica.db.is_sound(digest, data)
    if bad:
        yield Finding(
            "error",
            "blocks",
            f"{bad} of {count} parts are damaged",
            from_plain_files(replica) or "Run: ipfsmem sync, then check again.",
        )
    else:
        yield Finding("ok", "blocks", f"{count} parts are intact")


def _state(replica: Replica, clocks: dict[str, str]) -> Iterator[Finding]:
    """Check the state; store the last clock value of each device in `clocks`."""
    store, ring, vault = replica.store, replica.ring, replica.vault_tag
    entries = missing = unsigned = 0
    damaged = store.damaged_nodes()
    if damaged:
        yield Finding(
            "error",
            STATE_DAMAGED,
            f"{len(damaged)} {'part' if len(damaged) == 1 else 'parts'} of the state cannot be read, so memories are missing: "
            + ", ".join(prefix or "top" for prefix, _ in damaged[:MOST_NAMED]),
            DAMAGED_HINT if replica.config.mode.only_here else DamagedStateError.hint,
        )
    for name, entry in store.readable_entries():
        entries += 1
        check_entry(name, entry, published=False)
        for dot, value in entry.items():
            clocks[dot[:16]] = max(clocks.get(dot[:16], ""), value.h)
        missing += sum(not replica.db.has_block(bytes.fromhex(loc.sha)) for loc in locations(entry))
        if ring is not None and vault is not None:
            for dot, value in entry.items():
                keys = ring.view.keys_of.get(dot[:16], ())
                unsigned += bool(value.s) and not any(verify_value(k, name, dot, value, vault) for k in keys)
    if missing:
        yield Finding(
            "warn",
            "not-fetched",
            f"{missing} known texts are not on this device",
            from_plain_files(replica) or "Run: ipfsmem sync.",
        )
    if unsigned:
        yield Finding(
            "error",
            "signatures",
            f"{unsigned} texts are not signed by their stated device",
        )
    yield Finding("ok", "state", f"{entries} memories and pieces of the timeline can be read")


def _ring(replica: Replica) -> Iterator[Finding]:
    ring = replica.ring
    if replica.config.vault is None:
        return
    if ring is None:
        yield Finding("error", "members", "this vault has no list of members", f"Run: {UNLOCK}")
        return
    if ring.view.is_revoked(replica.device.id):
        yield Finding("error", "revoked", f"this device ({replica.device.id}) was revoked", way_back(replica))
        return
    if replica.device.id not in ring.view.members:
        yield Finding(
            "error",
            "not-a-member",
            f"this device ({replica.device.id}) is not a member",
            f"Run: {UNLOCK}",
        )
    if not ring.plain and ring.view.sealing is None:
        yield Finding("error", "no-key", ring.view.reason, f"Run: {UNLOCK}")
    if len(ring.view.roots) < 2:
        yield Finding(
            "warn", "no-recovery", "this vault has no recovery phrase: without the wallet it is lost"
        )
    yield Finding(
        "ok",
        "members",
        f"{len(ring.view.members)} members, {len(ring.keys)} encryption {'key' if len(ring.keys) == 1 else 'keys'}",
    )


def _conflicts(memories: MemoryStore) -> Iterator[Finding]:
    conflicts = memories.conflicts_everywhere()
    if conflicts:
        keys = ", ".join(conflicts[:5])
        yield Finding(
            "warn",
            "conflicts",
            f"{len(conflicts)} {'memory has' if len(conflicts) == 1 else 'memories have'} conflicts: {keys}",
            "See: ipfsmem conflicts.",
        )


def _index(memories: MemoryStore) -> Iterator[Finding]:
    """Check the stored recall index against its texts."""
    from ipfsmem.memories.search_index import unlike_the_texts

    unlike = unlike_the_texts((memories,))
    if unlike:
        yield Finding(
            "error",
            "index",
            f"the search index differs from {count(len(unlike), 'text', 'texts')}: "
            + ", ".join(unlike[:MOST_NAMED]),
            "Rebuild it: ipfsmem index rebuild",
        )
    elif unlike is not None:
        yield Finding("ok", "index", "the search index matches the texts")


def _reports(replica: Replica) -> Iterator[Finding]:
    for row in reports.newest(replica.db.connection, 5):
        yield Finding("warn", row.kind, row.text)
