"""Storage on this computer that a vault can use: folders that a program syncs, drives and network shares, a git host with an
account, a remote of rclone, a bucket.

Reads settings of other programs and the table of mounts, runs no program and sends nothing. It does not look into the shares and
drives of that table, as one whose server is down blocks. A setting that cannot be read offers nothing.
"""

from __future__ import annotations

import configparser
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from xml.etree import ElementTree

from ipfsmem.device.atomic_files import read_file
from ipfsmem.errors import StorageError
from ipfsmem.files.surroundings import git_folder

#: The folder of a vault inside a synced folder or drive.
FOLDER = "ipfsmem"
#: Maximum size in bytes of a setting that is read.
_MAX_SETTINGS = 1024 * 1024
#: Maximum offers of one program or kind.
_MAX_OFFERS = 4
#: Folders that programs sync, in your home directory.
_IN_HOME = (
    ("iCloud Drive", "Library/Mobile Documents/com~apple~CloudDocs"),
    ("iCloud Drive", "iCloudDrive"),
    ("Dropbox", "Dropbox"),
    ("Dropbox", "Library/CloudStorage/Dropbox*"),
    ("OneDrive", "OneDrive"),
    ("OneDrive", "OneDrive - *"),
    ("OneDrive", "Library/CloudStorage/OneDrive-*"),
    ("Google Drive", "Google Drive/My Drive"),
    ("Google Drive", "Library/CloudStorage/GoogleDrive-*/My Drive"),
    ("Nextcloud", "Nextcloud"),
    ("ownCloud", "ownCloud"),
)
_ONEDRIVE = ("OneDrive", "OneDriveConsumer", "OneDriveCommercial")
_SYNCTHING = (
    ".local/state/syncthing/config.xml",
    ".config/syncthing/config.xml",
    "Library/Application Support/Syncthing/config.xml",
    "AppData/Local/Syncthing/config.xml",
)
#: File systems of network shares.
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afpfs", "fuse.sshfs", "davfs", "fuse.davfs2"})
#: Where desktops mount drives: a name of the user, then one of the drive.
_DRIVES = re.compile(r"/(?:run/)?media/[^/]+/[^/]+")
_ESCAPED = re.compile(r"\\([0-7]{3})")
#: A remote of rclone, or its type.
_RCLONE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_GH_HOST = re.compile(r"([A-Za-z0-9.-]+):\s*")
_GH_VALUE = re.compile(r" {4}(user|git_protocol): *\"?([A-Za-z0-9_-]+)\"?\s*")
#: A repository at a host, without a password; what comes before its name.
_REMOTE = re.compile(
    r"(?P<start>(?:https://|ssh://(?:[\w.-]+@)?)[\w.-]+(?::\d+)?/(?:(?!\.)[\w.~-]+/)*|[\w.-]+@[\w.-]+:(?:(?!\.)[\w.~-]+/)*)(?!\.)[\w.~-]+/?"
)


class StorageOffer(NamedTuple):
    """One place for a vault."""

    #: The text shown to the user.
    text: str
    #: The spec of the provider; with `asks`, "{}" stands for the answer.
    spec: str
    #: The question that completes the spec, or "".
    asks: str = ""
    #: Whether the spec is a folder, to be created in one that exists.
    is_folder: bool = False


class Computer(NamedTuple):
    """The properties of this computer from which offers are derived."""

    home: Path
    #: The folder in which the command runs.
    folder: Path
    environment: Mapping[str, str]
    #: The text of /proc/self/mounts, "" where there is none.
    mounts: str
    #: Tell whether a program is installed, and whether a module of Python is.
    has_program: Callable[[str], bool]
    has_module: Callable[[str], bool]


def storage_offers(computer: Computer) -> list[StorageOffer]:
    """Return the places that this computer has, each once: synced folders, git hosts, remotes of rclone, a bucket, drives."""
    every = (
        _synced_folders(computer), _git_hosts(computer), _rclone(computer), _bucket(computer), _mounts(computer.mounts),
    )  # fmt: skip
    offers, of_kind = dict[str, StorageOffer](), Counter[str]()
    for offer in chain(*every):
        kind = offer.text.partition(":")[0]
        if offer.spec not in offers and of_kind[kind] < _MAX_OFFERS:
            offers[offer.spec] = offer
            of_kind[kind] += 1
    return list(offers.values())


def _read(path: Path) -> str:
    """Return the text of a file of settings; "" if it is missing or unreadable."""
    try:
        data = read_file(path, _MAX_SETTINGS)
    except (StorageError, OSError, ValueError):
        return ""
    return (data or b"").decode("utf-8-sig", "replace")


# -- folders -------------------------------------------------------------------------------------------------------


def _synced_folders(computer: Computer) -> Iterator[StorageOffer]:
    for program, path in _named_folders(computer):
        try:
            there = path.is_absolute() and path.is_dir()
        except (OSError, ValueError):
            continue
        if there:
            yield StorageOffer(f"{program}: {path / FOLDER}", str(path / FOLDER), is_folder=True)


def _named_folders(computer: Computer) -> Iterator[tuple[str, Path]]:
    """Yield folders that settings name, then usual ones, each with its program. They may be missing."""
    home, environment = computer.home, computer.environment
    for info in (home / ".dropbox/info.json", home / "AppData/Local/Dropbox/info.json"):
        for path in _dropbox(_read(info)):
            yield "Dropbox", Path(path)
    for name in _ONEDRIVE:
        if environment.get(name):
            yield "OneDrive", Path(environment[name])
    for config in _SYNCTHING:
        for path in _syncthing(_read(home / config)):
            yield "Syncthing", home / path[2:] if path.startswith("~/") else Path(path)
    for path in _nextcloud(_read(home / ".config/Nextcloud/nextcloud.cfg")):
        yield "Nextcloud", Path(path)
    for program, pattern in _IN_HOME:
        try:
            paths = sorted(home.glob(pattern))
        except OSError:
            continue
        for place in paths:
            yield program, place


def _dropbox(text: str) -> list[str]:
    """Return the folders of `info.json`: of the personal account and of the company's."""
    try:
        accounts = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return []
    if not isinstance(accounts, dict):
        return []
    paths = [account.get("path") for account in accounts.values() if isinstance(account, dict)]
    return [path for path in paths if isinstance(path, str) and path]


def _syncthing(text: str) -> list[str]:
    """Return the folders of `config.xml` that this device sends, except paused ones."""
    if "<!DOCTYPE" in text:  # entities can expand to any size; Syncthing writes none
        return []
    try:
        folders = ElementTree.fromstring(text or "<a/>").findall("folder")  # noqa: S314
    except (ElementTree.ParseError, ValueError):
        return []
    return [
        folder.get("path", "")
        for folder in folders
        if folder.get("type", "sendreceive") == "sendreceive" and folder.findtext("paused") != "true"
    ]


def _nextcloud(text: str) -> list[str]:
    return [
        value.strip()
        for name, _, value in (line.partition("=") for line in text.splitlines())
        if name.endswith("localPath")
    ]


def _mounts(table: str) -> Iterator[StorageOffer]:
    """Yield the network shares and drives in the table of mounts that are mounted writable."""
    for line in table.splitlines():
        fields = [_ESCAPED.sub(lambda code: chr(int(code[1], 8)), field) for field in line.split(" ")]
        if len(fields) < 4 or "ro" in fields[3].split(",") or not fields[1].isprintable():
            continue
        path = PurePosixPath(fields[1]) / FOLDER
        if fields[2] in _NETWORK:
            yield StorageOffer(f"network share: {path}", str(path), is_folder=True)
        elif _DRIVES.fullmatch(fields[1]):
            yield StorageOffer(f"drive: {path}", str(path), is_folder=True)


# -- git and buckets -----------------------------------------------------------------------------------------------


def _git_hosts(computer: Computer) -> Iterator[StorageOffer]:
    """Yield the hosts at which this user has repositories: the accounts of `gh`, and the remote of the work tree here."""
    if not computer.has_program("git"):
        return
    for host, user, protocol in _gh_accounts(computer):
        start = f"git@{host}:{user}/" if protocol == "ssh" else f"https://{host}/{user}/"
        create = f", created with: gh repo create {user}/NAME --private"
        yield StorageOffer(
            f"git: a private repository of {user} at {host}{create}",
            f"git:{start}{{}}.git",
            asks="Repository",
        )
    for url in _remotes(computer.folder):
        if remote := _REMOTE.fullmatch(url):
            start = remote["start"]
            yield StorageOffer(
                f"git: another private repository at {start}, for this vault alone",
                f"git:{start}{{}}.git",
                asks="Repository",
            )


def _gh_accounts(computer: Computer) -> list[tuple[str, str, str]]:
    """Return host, user and protocol of each active account in the settings of `gh`."""
    environment = computer.environment
    folder = (
        environment.get("GH_CONFIG_DIR")
        or (environment.get("XDG_CONFIG_HOME") and f"{environment['XDG_CONFIG_HOME']}/gh")
        or (environment.get("APPDATA") and f"{environment['APPDATA']}/GitHub CLI")
        or computer.home / ".config/gh"
    )
    accounts: dict[str, dict[str, str]] = {}
    values: dict[str, str] = {}
    for line in _read(Path(folder) / "hosts.yml").splitlines():
        if host := _GH_HOST.fullmatch(line):
            values = accounts.setdefault(host[1], {})
        elif value := _GH_VALUE.fullmatch(line):
            values[value[1]] = value[2]
    return [
        (host, one["user"], one.get("git_protocol", "https"))
        for host, one in accounts.items()
        if "user" in one
    ]


def _remotes(folder: Path) -> list[str]:
    """Return the addresses of the remotes of the git work tree around a folder."""
    repository = git_folder(folder)
    if repository is None:
        return []
    urls, in_remote = list[str](), False
    for line in map(str.strip, _read(repository[1] / "config").splitlines()):
        if line.startswith("["):
            in_remote = line.startswith("[remote ")
        elif in_remote and line.partition("=")[0].strip() == "url":
            urls.append(line.partition("=")[2].strip())
    return urls


def _rclone(computer: Computer) -> Iterator[StorageOffer]:
    """Yield the remotes in the configuration of rclone, unless that is encrypted."""
    if not computer.has_program("rclone"):
        return
    environment = computer.environment
    above = environment.get("XDG_CONFIG_HOME") or environment.get("APPDATA") or computer.home / ".config"
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, default_section="")
    try:
        parser.read_string(_read(Path(environment.get("RCLONE_CONFIG") or Path(above, "rclone/rclone.conf"))))
    except (configparser.Error, AttributeError):
        return
    for name in parser.sections():
        kind = parser.get(name, "type", fallback="") or ""
        if _RCLONE_NAME.fullmatch(name) and _RCLONE_NAME.fullmatch(kind):
            yield StorageOffer(
                f"rclone: a folder at {name} ({kind}), created with: rclone mkdir {name}:FOLDER",
                f"rclone:{name}:{{}}",
                asks="Folder",
            )


def _bucket(computer: Computer) -> Iterator[StorageOffer]:
    """Yield a bucket if there are keys for one: those of the environment, or of the profile of the AWS tools."""
    environment = computer.environment
    if not computer.has_module("obstore"):
        return
    keys = "the keys in AWS_ACCESS_KEY_ID" if environment.get("AWS_ACCESS_KEY_ID") else _aws_profile(computer)
    if keys:
        yield StorageOffer(f"bucket: one that {keys} may use", f"bucket:s3://{{}}/{FOLDER}", asks="Bucket")


def _aws_profile(computer: Computer) -> str:
    """Return the profile that this process would use, if it has keys; else ""."""
    environment = computer.environment
    name = environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE") or "default"
    file = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE") or computer.home / ".aws/credentials")
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, default_section="")
    try:
        parser.read_string(_read(file))
    except (configparser.Error, AttributeError):  # a value below a name without one
        return ""
    return f"the AWS profile {name}" if parser.has_option(name, "aws_access_key_id") else ""
