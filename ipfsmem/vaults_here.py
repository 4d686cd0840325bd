"""The copies of vaults on this device: a list of them, and the removal of one.

A removal touches nothing at a provider or on another device. In the vault's folder it deletes only files that this program makes:
folders of plain files, and what somebody put there, stay.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ipfsmem.config import CONFIG_FILE, is_namespace
from ipfsmem.device.atomic_files import make_directory, storage_errors
from ipfsmem.device.database_file import DATABASE, DATABASE_FILES
from ipfsmem.device.identity import KEY_FILE, passphrase_protected
from ipfsmem.device.replica import read_config
from ipfsmem.errors import ChangedError, ConfigError, IpfsmemError, NotFoundError, UsageError
from ipfsmem.parts.versions import is_unpublished
from ipfsmem.results import VaultHere
from ipfsmem.sync.presence import Presence
from ipfsmem.sync.progress import Progress, no_progress
from ipfsmem.vault.unlocking import lock_device, lock_lost_devices, unlocked_until
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

#: The files that this program makes in a vault's folder.
_OURS: Final = re.compile(
    r"(\w+\.)*lock|operations|(hooks|background|syncing|dream|shown|tokens)\.json|background\.again|dream\.abort"
    r"|recall[\w.-]*\.(image|vectors|whole|uses)|state-left-[0-9a-f]{16}\.db(-wal|-shm)?|\..+\.[0-9a-f]{16}\.tmp|open-\d+\.html"
)
#: Where a vault's folder is while it is deleted: no vault has such a name.
_AWAY: Final = ".removed-{name}-{random}"


class Remains(msgspec.Struct, frozen=True):
    """What there is of a vault next to this device's copy. `lost`: what would be nowhere any more, in words; `presence`: what was found
    at each provider."""

    published: bool
    lost: list[str]
    presence: list[Presence]
    folders: list[str]
    with_phrase: str
    with_wallet: str


def vaults_here(home: Path) -> list[VaultHere]:
    """The vaults on this device, by name; also those that cannot be read, with the reason. Nothing is opened. Raises StorageError."""
    found = []
    with storage_errors(home, "list"):
        folders = sorted(one for one in home.iterdir() if is_namespace(one.name)) if home.is_dir() else []
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
        found.append(
            VaultHere(
                name=folder.name,
                folder=str(folder),
                mode=config.mode if config is not None else None,
                label=config.label if config is not None else "",
                providers=list(config.providers) if config is not None else [],
                vault_id=vault.tag if vault is not None else "",
                wallet=(vault.address or "") if vault is not None else "",
                protected=protected,
                unlocked_until=until,
                problem=problem,
            )
        )
    return found


async def what_remains(memory: Memory, progress: Progress = no_progress) -> Remains:
    """Ask each provider whether it has all that a new device would need, and who could open it."""
    inside = memory.replica.folder
    folders = [
        one.path
        for one in memory.folders.list()
        if inside is None or not Path(one.path).is_relative_to(inside)
    ]
    if not memory.mode.published:
        held = count(memory.status().memories, "memory", "memories")
        return Remains(False, [f"it is published nowhere ({held})"], [], folders, "", "")
    lost = []
    try:
        memory.folders.last_look()
    except IpfsmemError as error:
        lost.append(str(error))
    if is_unpublished(memory.replica):
        lost.append("changes here are not published")
    presence: list[Presence] = []
    try:
        presence = await memory.providers.check(progress=progress)
    except IpfsmemError as error:
        lost.append(str(error))
    whole = [
        one for one in presence if one.state == "ok" and not _is_inside(one.provider, memory.replica.folder)
    ]
    if not whole:
        lost.append("no provider was found to have all of it")
    sheet = memory.members.recovery_sheet()
    others = [one for one in memory.members.list() if one.kind == "device" and one.id != memory.device]
    if not (sheet.with_words or sheet.with_wallet or others):
        lost.append("no recovery phrase, wallet or other device opens it")
    return Remains(True, lost, presence, folders, sheet.with_words, sheet.with_wallet)


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
    if os.name == "nt":  # which renames no folder of which a file is open: so nobody else has one open
        memory.close()
        return delete_folder(folder, plain_files=plain_files)
    with contextlib.suppress(_MovedAway), memory.replica.transaction():
        # Nobody writes now. Whoever wants to next finds the folder gone, and says so.
        if not force and is_unpublished(memory.replica):
            raise ChangedError(
                "somebody wrote meanwhile what is not published: nothing was deleted",
                hint=f"Publish it: ipfsmem sync. Then once more: ipfsmem vault remove {memory.namespace}.",
            )
        away = _move_away(folder)
        raise _MovedAway
    memory.close()
    left = _delete(away, folder, plain_files=plain_files)
    lock_lost_devices()
    return left


class _MovedAway(Exception):
    """Ends the transaction without a write."""


def delete_folder(folder: Path, *, plain_files: bool = False) -> list[str]:
    """Delete the copy of a vault that is not opened; what stays. Raises NotFoundError, StorageError."""
    if not holds_vault(folder):
        raise NotFoundError(f"there is no vault in {folder}")
    refuse_link(folder)
    with contextlib.suppress(NotFoundError, ConfigError):  # of a vault without its settings
        lock_device(folder)
    return _delete(_move_away(folder), folder, plain_files=plain_files)


def holds_vault(folder: Path) -> bool:
    """Whether there is a vault, or a part of one, in a folder."""
    return any(os.path.lexists(folder / name) for name in (CONFIG_FILE, DATABASE, KEY_FILE))


def refuse_link(folder: Path) -> None:
    """Raises UsageError for a link, or for a folder that is not a vault's alone."""
    if folder.is_symlink():
        raise UsageError(
            f"{folder} is a link, and may be somebody else's folder too",
            hint=f"Remove the link yourself, and what is in {os.path.realpath(folder)}.",
        )


def finish_earlier(home: Path) -> None:
    """Delete what an interrupted removal left."""
    for away in home.glob(_AWAY.format(name="*", random="*")):
        name = away.name.removeprefix(".removed-").rpartition("-")[0]
        _delete(away, home / name)


def _move_away(folder: Path) -> Path:
    away = folder.with_name(_AWAY.format(name=folder.name, random=secrets.token_hex(8)))
    with storage_errors(folder, "remove"):
        folder.rename(away)
    return away


def _delete(away: Path, folder: Path, *, plain_files: bool = False) -> list[str]:
    """Delete what is ours; the rest goes back to its place, and is named."""
    with storage_errors(away, "remove"):
        for path in sorted(away.iterdir()):
            if path.name in (CONFIG_FILE, *DATABASE_FILES, KEY_FILE) or _OURS.fullmatch(path.name):
                path.unlink(missing_ok=True)
            elif plain_files and path.name == "memory" and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
        left = sorted(away.iterdir())
        if left:
            make_directory(folder)
        for path in left:
            path.rename(folder / path.name)
        with contextlib.suppress(FileNotFoundError):  # another removal finished this one
            away.rmdir()
    return [str(folder / path.name) for path in left]


def _is_inside(provider: str, folder: Path | None) -> bool:
    """Whether a provider is a folder inside the copy that would go."""
    kind, _, path = provider.partition(":")
    return (
        folder is not None and kind == "directory" and Path(path).resolve().is_relative_to(folder.resolve())
    )
