"""Find Claude Code's memory folders of projects ("auto memory"), and the projects that it knows on this device.

By its documentation (code.claude.com, "How Claude remembers your project" and "Settings", November 2026):
`projects/<name>/memory/` in its configuration folder, named after the first working tree of the repository, else
after the folder; `autoMemoryDirectory` in its settings moves it. The form of the name and the path of the known
projects are undocumented; both follow versions 2.1.59 to 2.1.219.
"""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.config import expanded, user_home
from ipfsmem.device.atomic_files import read_file, storage_errors
from ipfsmem.errors import FormatError, UsageError
from ipfsmem.files.projects import Project
from ipfsmem.files.repositories import find_repository

#: Longer names are cut, and have a suffix that only the program can compute.
MAX_NAME = 200
#: Maximum bytes of a settings file, and of the program's state file.
_MAX_SETTINGS = 1024 * 1024
_MAX_STATE = 64 * 1024 * 1024
#: Bytes of a transcript read to find its folder.
_TRANSCRIPT = 64 * 1024
_SETTING = "autoMemoryDirectory"
_MANAGED = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
    Path("C:/Program Files/ClaudeCode/managed-settings.json"),
)


class ClaudeHome(msgspec.Struct, frozen=True):
    """The configuration of Claude Code on this device."""

    #: Its configuration folder.
    folder: Path
    #: The file with its known projects.
    state: Path

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> ClaudeHome:
        """Return the configuration in CLAUDE_CONFIG_DIR, else in the user's home."""
        if chosen := environment.get("CLAUDE_CONFIG_DIR"):
            folder = expanded(chosen)
            return cls(folder, folder / ".claude.json")
        home = user_home()
        return cls(home / ".claude", home / ".claude.json")


class MemoryPlace(msgspec.Struct, frozen=True):
    """The folder of a project's memories."""

    path: Path
    #: The settings file that names it; None for the default folder.
    named_in: Path | None = None


def project_name(folder: str) -> str:
    """Return the name of a project's folder in `projects/`, from its path. Names of over 200 characters have a suffix that only
    the program can compute."""
    path = unicodedata.normalize("NFC", folder)
    return "".join(
        letter if letter.isascii() and letter.isalnum() else "-" * (2 if ord(letter) > 0xFFFF else 1)
        for letter in path
    )


def memory_place(claude: ClaudeHome, project: Project) -> MemoryPlace:
    """Return the memory folder of a project, which may be missing. Raises UsageError if it is unknown or shared by all
    projects, StorageError."""
    chosen = _chosen(claude, project)
    if chosen is not None:
        return chosen
    if project.part:
        raise UsageError(
            f"Claude Code keeps one memory for all of {project.repository.root if project.repository else project.folder}, none for {project.part}",
            hint="Connect the whole repository: leave --part out (in Python: part=False).",
        )
    projects = claude.folder / "projects"
    name = project_name(str(project.folder))
    if len(name) <= MAX_NAME:
        return MemoryPlace(projects / name / "memory")
    begin = name[:MAX_NAME] + "-"
    with storage_errors(projects, "look into"):
        folders = sorted(one for one in _folders(projects) if one.name.startswith(begin))
    if len(folders) != 1:
        raise UsageError(
            f"the Claude Code folder of {project.folder} is unknown: its path is too long",
            hint="Run Claude Code there once. Or link its memory folder: ipfsmem folder attach DIR --scope NAME",
        )
    return MemoryPlace(folders[0] / "memory")


def known_projects(claude: ClaudeHome) -> list[Path]:
    """Return the existing folders in which Claude Code was used, sorted by path."""
    paths: set[str] = set()
    with_state = _object(claude.state, _MAX_STATE).get("projects")
    if isinstance(with_state, dict):
        paths |= {path for path in with_state if isinstance(path, str)}
    for folder in _folders(claude.folder / "projects"):
        with contextlib.suppress(OSError, ValueError):  # a broken entry does not affect the others
            if (folder / "memory").is_dir() and (path := _written_in(folder)):
                paths.add(path)
    return sorted(path for path in map(Path, paths) if _may_be_there(path))


def _may_be_there(path: Path) -> bool:
    """Return False for a missing or an invalid path; a folder that cannot be examined may exist."""
    try:
        return path.is_absolute() and path.is_dir()
    except OSError:
        return True
    except ValueError:
        return False


def memory_files(folder: Path) -> int:
    """Return the number of memory files in a folder; 0 if it is missing."""
    try:
        with os.scandir(folder) as entries:
            return sum(
                one.name.endswith(".md")
                and not one.name.startswith(".")
                and one.is_file(follow_symlinks=False)
                for one in entries
            )
    except OSError:
        return 0


def _chosen(claude: ClaudeHome, project: Project) -> MemoryPlace | None:
    """Return the folder named in the settings, in order of precedence."""
    own = project.folder / ".claude"
    shared = own / "settings.json"
    for file in (*_MANAGED, own / "settings.local.json", shared, claude.folder / "settings.json"):
        setting = _object(file, _MAX_SETTINGS).get(_SETTING)
        if not isinstance(setting, str) or not setting.strip():
            continue
        path = expanded(setting)
        if not path.is_absolute():
            continue  # as the program does
        if file == shared:
            raise UsageError(
                f"{file} moves Claude Code's memory of this project to {path}, and anyone with write access to the repository can have written that",
                hint=f"If this is intended, link it: ipfsmem folder attach {path} --scope NAME",
            )
        if file != own / "settings.local.json":
            raise UsageError(
                f"{file} lets Claude Code keep the memories of all projects in one folder, {path}",
                hint=f"Link that folder: ipfsmem folder attach {path}",
            )
        return MemoryPlace(path, file)
    return None


def _object(file: Path, limit: int) -> dict[str, object]:
    """Return a JSON file, with or without comments and trailing commas; empty if it is missing. Raises UsageError for invalid
    JSON, StorageError."""
    data = read_file(os.path.realpath(file), limit)
    if data is None:
        return {}
    try:
        parsed = read_json(data.removeprefix(b"\xef\xbb\xbf"))
    except msgspec.DecodeError:
        parsed = _as_people_write(file, data)
    return parsed if isinstance(parsed, dict) else {}


def _as_people_write(file: Path, data: bytes) -> object:
    from ipfsmem.agents import json_text  # here: a hook reads plain JSON only

    try:
        node = json_text.read(data.decode("utf-8-sig"))
    except (FormatError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not JSON: {error}", hint="Fix that file, then try again.") from None
    return None if node is None else json_text.value_of(node)


def _folders(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            yield from (Path(one.path) for one in entries if one.is_dir(follow_symlinks=False))
    except OSError:
        return


def _written_in(folder: Path) -> str:
    """Return the folder in which the sessions of an entry of `projects/` ran, by its transcripts; empty if none names it, or if
    it belongs to another entry."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(one.name for one in entries if one.name.endswith(".jsonl"))
    except OSError:
        return ""
    for name in names[:5]:
        path = _said_in(folder / name)
        if path and (project_name(path) == folder.name or _begins_at(path) == folder.name):
            return path
    return ""


def _begins_at(path: str) -> str:
    repository = find_repository(Path(os.path.realpath(path)))
    return "" if repository is None else project_name(str(repository.root))


def _said_in(transcript: Path) -> str:
    try:
        with transcript.open("rb") as file:
            lines = file.read(_TRANSCRIPT).split(b"\n")[:-1]
    except OSError:
        return ""
    for line in lines:
        try:
            parsed = read_json(line)
        except msgspec.DecodeError:
            continue
        if (
            isinstance(parsed, dict)
            and isinstance(path := parsed.get("cwd"), str)
            and Path(path).is_absolute()
        ):
            return path
    return ""
