"""Read the root, name and project id of a git repository from its files.

No program is run, no include is read and no link is followed, since a repository may come from an untrusted archive.
Nothing in it connects a project: a person does (`agents/projects.py`).
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from ipfsmem.bundle.projects import remote_name
from ipfsmem.device.atomic_files import read_file, storage_errors
from ipfsmem.errors import StorageError, UsageError
from ipfsmem.file_durability import flush_to_disk
from ipfsmem.lazy_pattern import lazy_pattern

#: Maximum bytes of a configuration and of a pointer file; longer ones are not read.
MAX_CONFIG = 256 * 1024
_MAX_POINTER = 4 * 1024
#: Maximum parent folders that are searched for a repository.
_MAX_STEPS = 64
#: No two parts of it can match the same spaces: a repository may be crafted to cost time.
_SECTION = lazy_pattern(r'\[\s*([A-Za-z0-9.-]+)(?:\s*"((?:[^"\\\n]|\\.)*)")?\s*\]')
_VARIABLE = lazy_pattern(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=(.*))?\Z", re.DOTALL)
_ID = lazy_pattern(r"[0-9a-f]{32}")
#: The exact bytes that `give_id` writes and `remove_id` removes.
_WRITTEN = "[ipfsmem]\n\tproject = {}\n"


class Repository(msgspec.Struct, frozen=True):
    """A repository as far as its own files prove it."""

    #: The folder of its first working tree: all other working trees are the same project.
    root: Path
    #: The examined working tree: `root`, or another one of the same repository.
    tree: Path
    #: Its own configuration, which is not tracked; None if it may not belong to this folder.
    config: Path | None
    #: The inode of its `.git`.
    inode: int
    #: Host and path of the remote `origin`, in the format's form; empty without a usable one.
    remote: str
    #: The 32 hex digits that this program wrote into its configuration; empty without.
    id: str


def find_repository(folder: Path) -> Repository | None:
    """Return the repository that contains a folder, or None. `folder`: absolute, without links.

    Raises nothing for a broken or hostile one: then the repository begins here, without metadata.
    """
    for place in (folder, *folder.parents)[:_MAX_STEPS]:
        with contextlib.suppress(OSError, ValueError):
            return _read(place, (place / ".git").lstat())
    return None


def give_id(repository: Repository, id: str) -> None:
    """Write the id of a project into the repository's own configuration, as git itself does: a lock file, and a rename.

    Raises UsageError if git is writing or there is no such configuration, StorageError.
    """
    _rewrite(
        repository,
        lambda text: text + ("" if not text or text.endswith("\n") else "\n") + _WRITTEN.format(id),
    )


def remove_id(repository: Repository) -> bool:
    """Remove what `give_id` wrote; False, without changes, if it was modified."""
    if not repository.id:
        return False
    written = _WRITTEN.format(repository.id)
    return _rewrite(repository, lambda text: text.replace(written, "", 1))


def _rewrite(repository: Repository, change: Callable[[str], str]) -> bool:
    config = repository.config
    if config is None:
        raise UsageError(f"{repository.root} has no configuration of its own in which an id could stand")
    if not config.is_file():
        raise StorageError(f"{config} cannot be read")
    lock = config.with_name(config.name + ".lock")
    with storage_errors(config, "write"):
        try:
            fd = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IMODE(config.stat().st_mode))
        except FileExistsError:
            raise UsageError(
                f"{lock} is there: git is changing that configuration, or was stopped while it did",
                hint="Try again when it is done. When no git runs, remove that file.",
            ) from None
        try:
            with os.fdopen(fd, "wb") as file:
                # Read under the lock: git's last write must not be overwritten.
                data = _bytes(config, MAX_CONFIG)
                if data is None:
                    raise StorageError(f"{config} cannot be read")
                text = data.decode("utf-8", "surrogateescape")
                changed = change(text).encode("utf-8", "surrogateescape")
                if changed == data:
                    lock.unlink()
                    return False
                file.write(changed)
                file.flush()
                flush_to_disk(file.fileno())
            lock.replace(config)
        except BaseException:
            with contextlib.suppress(OSError):
                lock.unlink()
            raise
    return True


def _read(place: Path, status: os.stat_result) -> Repository:
    mark = place / ".git"
    if stat.S_ISDIR(status.st_mode):
        return _of(place, place, mark / "config", status.st_ino)
    if stat.S_ISREG(status.st_mode) and (there := _pointer(mark, "gitdir:")) is not None:
        return _pointed(place, mark, there, status.st_ino)
    return Repository(place, place, None, status.st_ino, "", "")


def _pointed(place: Path, mark: Path, there: Path, inode: int) -> Repository:
    """Return the repository of a `.git` that is a file: valid only if its target points back, as git wrote both. Otherwise any
    folder could claim to be a part of another's repository."""
    common = _pointer(there / "commondir")
    if common is not None:
        back = _pointer(there / "gitdir")
        if back is not None and there.parent == common / "worktrees" and _same(back, mark):
            root = common.parent if common.name == ".git" else common
            return _of(root, place, common / "config", common.lstat().st_ino)
    else:
        config = there / "config"
        tree = _first(_variables(config), "core", "", "worktree")
        if tree and _same(there / tree, place):
            return _of(place, place, config, inode)
    return Repository(place, place, None, inode, "", "")


def _of(root: Path, tree: Path, config: Path, inode: int) -> Repository:
    variables = list(_variables(config))
    url = _first(variables, "remote", "origin", "url")
    id = _first(variables, "ipfsmem", "", "project")
    return Repository(
        root,
        tree,
        config if config.is_file() and not config.is_symlink() else None,
        inode,
        remote_name(url) or "",
        id if _ID.fullmatch(id) else "",
    )


def _pointer(path: Path, word: str = "") -> Path | None:
    """Return the absolute path in a small file, without links; None if it has none."""
    data = _bytes(path, _MAX_POINTER)
    if data is None:
        return None
    text = os.fsdecode(data).rstrip("\r\n")
    if not text.startswith(word) or "\0" in text or "\n" in text:
        return None
    try:
        return Path(os.path.realpath(path.parent / text.removeprefix(word).strip()))
    except (OSError, ValueError):
        return None


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _bytes(path: Path, limit: int) -> bytes | None:
    try:
        return read_file(path, limit)
    except StorageError:
        return None


def _first(variables: Iterable[tuple[str, str, str, str]], section: str, part: str, name: str) -> str:
    return next((value for *where, value in variables if where == [section, part, name]), "")


def _variables(config: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield section, subsection, name and value of each variable (git-config, "CONFIGURATION FILE"). Includes are not read."""
    data = _bytes(config, MAX_CONFIG)
    if data is None:
        return
    text = data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    section = part = ""
    for line in _lines(text):
        rest = line.lstrip()
        if match := _SECTION.match(rest):
            section, _, old_part = match[1].lower().partition(".")
            part = old_part if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
            rest = rest[match.end() :]
        if section and rest[:1] not in ("#", ";") and (match := _VARIABLE.match(rest)):
            yield section, part, match[1].lower(), _value(match[2] or "")


def _lines(text: str) -> Iterator[str]:
    """Yield the lines, joined at a trailing backslash."""
    pending = ""
    for line in text.split("\n"):
        ends = len(line) - len(line.rstrip("\\"))
        if ends % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _value(text: str) -> str:
    """Return a value without its quotes, escapes and comment."""
    made: list[str] = []
    verbatim_end = 0  # spaces within quotes stay
    quoted, letters = False, iter(text.lstrip())
    for letter in letters:
        if letter == "\\":
            letter = {"n": "\n", "t": "\t", "b": "\b"}.get(following := next(letters, ""), following)
            made.append(letter)
            verbatim_end = len(made)
        elif letter == '"':
            quoted = not quoted
            verbatim_end = len(made)
        elif letter in "#;" and not quoted:
            break
        else:
            made.append(letter)
            if quoted:
                verbatim_end = len(made)
    whole = "".join(made)
    return (whole[:verbatim_end] + whole[verbatim_end:].rstrip()) if verbatim_end else whole.rstrip()
