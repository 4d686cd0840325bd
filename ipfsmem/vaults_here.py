"""The copies of vaults on this device: a list of them, and the removal of one.

A removal touches nothing at a provider or on another device. In the vault's folder it deletes only files that this program makes:
folders of plain files, and what somebody put there, stay.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ipfsmem.config import CONFIG_FILE, is_vault_name
from ipfsmem.device.atomic_files import storage_errors
from ipfsmem.device.database_file import DATABASE, DATABASE_FILES
from ipfsmem.device.identity import KEY_FILE, passphrase_protected
from ipfsmem.device.replica import read_config
from ipfsmem.errors import ChangedError, ConfigError, IpfsmemError, NotFoundError, UsageError
from ipfsmem.memories.sessions_here import named_sessions_here
from ipfsmem.open_vault.versions import are_members_unpublished, is_unpublished
from ipfsmem.provider.contract import shown_spec
from ipfsmem.results import VaultHere
from ipfsmem.sync.presence import Presence
from ipfsmem.sync.progress import Progress, no_progress
from ipfsmem.vault.unlocking import lock_device, lock_lost_devices, unlocked_until
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.device.replica import Replica
    from ipfsmem.memory import Memory

#: The files that this program makes in a vault's folder.
_OURS: Final = re.compile(
    r"(\w+\.)*lock|operations|(hooks|background|syncing|dream|shown|tokens)\.json|background\.again|dream\.abort"
    r"|recall[\w.-]*\.(image|vectors|whole|uses)|state-left-[0-9a-f]{16}\.db(-wal|-shm)?|\..+\.[0-9a-f]{16}\.tmp|open-\d+\.html"
)
#: Where a vault's folder is while it is deleted: no vault has such a name.
_AWAY: Final = ".removed-{name}-{random}"
_MOVED: Final = re.compile(r"\.removed-(.+)-[0-9a-f]{16}")
#: The files of ours in a folder of plain files that show no text.
_MARKS: Final = ((".ipfsmem", "marker"), (".ipfsmem", ".gitignore"))


class Remains(msgspec.Struct, frozen=True):
    """Copies of a vault other than the one on this device. `lost`: data that would be lost, in words; `presence`: state of each provider."""

    published: bool
    lost: list[str]
    presence: list[Presence]
    folders: list[str]
    with_phrase: str
    with_wallet: str


def vaults_here(home: Path) -> list[VaultHere]:
    """The vaults on this device, by name; also those that cannot be read, with the reason; then those of which a removal was
    interrupted. Nothing is opened. Raises StorageError."""
    vaults = []
    with storage_errors(home, "list"):
        folders = sorted(one for one in home.iterdir() if is_vault_name(one.name)) if home.is_dir() else []
    for folder in filter(holds_vault, folders):
        problem, config, protected, until = "", None, False, None
        try:
            config = read_config(folder)
            if config is None:
                problem = f"{CONFIG_FILE} is missing"
            protected = passphrase_protected(folder)
            until = unlocked_until(folder) if protected else None
        except IpfsmemError as error:
            problem = str(error)
        vault = config.vault if config is not None else None
        vaults.append(
            VaultHere(
                name=folder.name,
                folder=str(folder),
                mode=config.mode if config is not None else None,
                label=config.label if config is not None else "",
                providers=[*map(shown_spec, config.providers)] if config is not None else [],
                vault_id=vault.tag if vault is not None else "",
                wallet=(vault.address or "") if vault is not None else "",
                protected=protected,
                unlocked_until=until,
                problem=problem,
            )
        )
    vaults += [
        VaultHere(
            name=name,
            folder=str(away),
            mode=None,
            label="",
            providers=[],
            vault_id="",
            wallet="",
            protected=False,
            unlocked_until=None,
            problem=f"its removal was interrupted; finish it: ipfsmem vault remove {name}",
        )
        for away, name in _interrupted(home)
    ]
    return vaults


async def what_remains(memory: Memory, progress: Progress = no_progress) -> Remains:
    """Ask each provider whether it has all that a new device would need, and who could open it."""
    inside = memory.replica.folder
    folders = [
        one.path
        for one in memory.folders.list()
        if inside is None or not Path(one.path).is_relative_to(inside)
    ]
    if not memory.mode.published:
        memories = count(memory.status().memories, "memory", "memories")
        return Remains(False, [f"it is published nowhere ({memories})"], [], folders, "", "")
    lost = []
    try:
        memory.folders.last_look()
    except IpfsmemError as error:
        lost.append(str(error))
    lost += _only_here(memory.replica)
    presence: list[Presence] = []
    leading: list[str] = []
    try:
        presence = [*await memory.providers.check(progress=progress)]
        leading = await memory.providers.leading(progress)
    except IpfsmemError as error:
        lost.append(str(error))
    inside = memory.replica.folder
    if not any(one.state == "ok" and not _is_inside(one.provider, inside) for one in presence):
        lost.append("no provider was found to have the whole vault")
    if not any(not _is_inside(one, inside) for one in leading):
        lost.append(
            "no provider leads a new device to it: the address in `ipfsmem key sheet` would be the only way"
        )
    sheet = memory.members.recovery_sheet()
    others = [one for one in memory.members.list() if one.kind == "device" and one.id != memory.device]
    if not (sheet.with_words or sheet.with_wallet or others):
        lost.append("no recovery phrase, wallet or other device opens it")
    return Remains(True, lost, presence, folders, sheet.with_words, sheet.with_wallet)


def _only_here(replica: Replica) -> list[str]:
    """Describe the data that no published version has."""
    reasons = []
    if is_unpublished(replica):
        reasons.append("changes here are not published")
    if are_members_unpublished(replica):
        reasons.append("a change of the members is not published")
    with replica.reading():
        sessions = named_sessions_here(replica)
    if sessions:
        reasons.append(f"{count(len(sessions), 'session')} on this device only, which no sync publishes")
    return reasons


def refuse_loss(remains: Remains, name: str) -> None:
    """Raises UsageError when something would be lost."""
    if remains.lost:
        first = "Publish it: ipfsmem sync." if remains.published else "Make a copy: ipfsmem export --dir DIR."
        raise UsageError(
            f"this device has the only copy of something: {'; '.join(remains.lost)}",
            hint=f"{first} To delete it all the same: ipfsmem vault remove {name} --force.",
        )


def remove_copy(memory: Memory, *, force: bool = False, plain_files: bool = False) -> list[str]:
    """Delete the copy of an open vault, which is closed then; what stays in its folder. Raises ChangedError when somebody wrote what is not
    published, unless `force`; StorageError. Then nothing was deleted."""
    folder = memory.replica.folder
    if folder is None:
        raise UsageError("a memory in mode none has no copy on this device")
    refuse_link(folder)
    shown: dict[str, bytes] = {}
    if plain_files and (files := memory._view().opened.files) is not None:
        files.scan()  # so that edits since the last look keep the vault
        shown = files.own_files()
    if os.name == "nt":  # which renames no folder of which a file is open: so nobody else has one open
        memory.close()
        return delete_folder(folder, plain_files=plain_files, shown=shown)
    with contextlib.suppress(_MovedAway), memory.replica.transaction():
        # Nobody writes now. Whoever wants to next finds the folder gone, and says so.
        if not force and _only_here(memory.replica):
            raise ChangedError(
                "a text was written meanwhile that is not published: nothing was deleted",
                hint=f"Publish it: ipfsmem sync. Then once more: ipfsmem vault remove {memory.vault}.",
            )
        away = _move_away(folder)
        raise _MovedAway
    memory.close()
    remaining = _delete(away, folder, plain_files=plain_files, shown=shown)
    lock_lost_devices()
    return remaining


class _MovedAway(Exception):
    """Ends the transaction without a write."""


def delete_folder(
    folder: Path, *, plain_files: bool = False, shown: Mapping[str, bytes] | None = None
) -> list[str]:
    """Delete the copy of a vault that is not opened; what stays. `shown` as for `_delete`. Raises NotFoundError, StorageError."""
    if not holds_vault(folder):
        raise NotFoundError(f"there is no vault in {folder}")
    refuse_link(folder)
    with contextlib.suppress(NotFoundError, ConfigError):  # of a vault without its settings
        lock_device(folder)
    return _delete(_move_away(folder), folder, plain_files=plain_files, shown=shown)


def holds_vault(folder: Path) -> bool:
    """Tell whether a folder has a vault, or a part of one."""
    return any(os.path.lexists(folder / name) for name in (CONFIG_FILE, DATABASE, KEY_FILE))


def refuse_link(folder: Path) -> None:
    """Raises UsageError for a link, or for a folder that is not a vault's alone."""
    if folder.is_symlink():
        raise UsageError(
            f"{folder} is a link, and may be somebody else's folder too",
            hint=f"Remove the link yourself, and the content of {os.path.realpath(folder)}.",
        )


def finish_earlier(home: Path, vault_name: str, *, plain_files: bool = False) -> list[str] | None:
    """Delete what interrupted removals left; what stays of the vault `vault_name`, None when none of it was interrupted.

    `plain_files`: of that vault too. Raises StorageError.
    """
    remaining: list[str] | None = None
    for away, name in _interrupted(home):
        stays = _delete(away, home / name, plain_files=plain_files and name == vault_name)
        if name == vault_name:
            remaining = [*(remaining or []), *stays]
    return remaining


def leaves_plain_files(home: Path, name: str) -> bool:
    """Tell whether an interrupted removal of a vault has its folder of plain files, which is deleted by name alone."""
    return any(of == name and (away / "memory").is_dir() for away, of in _interrupted(home))


def _interrupted(home: Path) -> list[tuple[Path, str]]:
    """The folders of interrupted removals, each with the name of its vault."""
    matches = (
        (away, _MOVED.fullmatch(away.name)) for away in sorted(home.glob(".removed-*")) if away.is_dir()
    )
    return [(away, match[1]) for away, match in matches if match is not None and is_vault_name(match[1])]


def _move_away(folder: Path) -> Path:
    away = folder.with_name(_AWAY.format(name=folder.name, random=secrets.token_hex(8)))
    with storage_errors(folder, "remove"):
        folder.rename(away)
    return away


def _delete(
    away: Path, folder: Path, *, plain_files: bool = False, shown: Mapping[str, bytes] | None = None
) -> list[str]:
    """Delete what is ours; the rest goes back to its place, or next to it where there is another vault by now, and is named.

    `shown`: the SHA-256 of the plain files that show a text of the vault; None: it is not known which do.
    """
    # Another removal may finish this one.
    with storage_errors(away, "remove"), contextlib.suppress(FileNotFoundError):
        for path in sorted(away.iterdir()):
            if path.is_dir() and not path.is_symlink():
                if plain_files and path.name == "memory":
                    _delete_plain(path, shown)
            elif path.name in (CONFIG_FILE, *DATABASE_FILES, KEY_FILE) or _OURS.fullmatch(path.name):
                path.unlink(missing_ok=True)
        remaining = sorted(path.name for path in away.iterdir())
        if not remaining:
            away.rmdir()
            return []
        if os.path.lexists(folder):
            folder = folder.with_name(away.name.removeprefix("."))
        away.rename(folder)
        return [str(folder / name) for name in remaining]
    return []


def _delete_plain(folder: Path, shown: Mapping[str, bytes] | None) -> None:
    """Delete the plain files that show a text of the vault, and what this program put next to them; folders that are empty then."""
    for name, folders, files in os.walk(folder, topdown=False):
        for file in files:
            path = Path(name, file)
            place = path.relative_to(folder)
            if path.is_symlink():
                continue
            if place.parts in _MARKS or (
                path.suffix == ".md"
                if shown is None
                else shown.get(place.as_posix()) == sha256(path.read_bytes()).digest()
            ):
                path.unlink(missing_ok=True)
        for each in (Path(name, one) for one in folders):
            if not each.is_symlink() and not any(each.iterdir()):
                each.rmdir()
    if not any(folder.iterdir()):
        folder.rmdir()


def _is_inside(provider: str, folder: Path | None) -> bool:
    """Tell whether a provider is a folder inside the copy to be deleted."""
    kind, _, path = provider.partition(":")
    return (
        folder is not None and kind == "directory" and Path(path).resolve().is_relative_to(folder.resolve())
    )
