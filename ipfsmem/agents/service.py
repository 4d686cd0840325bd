"""A service of this user that runs `ipfsmem sync --every`: install it in the system's service manager, query it, remove it.

`agents/service_texts.py` makes the texts. One file is written, and the manager started; uninstalling undoes both. Without a
reachable manager (a container, a login without one) the file is written, and the remaining commands are shown.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from ipfsmem.agents.service_texts import (
    ANY_TIME,
    Service,
    checked,
    commands,
    file_of,
    launchd_agent,
    service_state,
    systemd_unit,
    windows_task,
)
from ipfsmem.device.agent_notes import syncing_notes
from ipfsmem.device.atomic_files import make_directory, read_file, storage_errors, write_atomic
from ipfsmem.errors import ConfigError, IncompleteError, NotFoundError
from ipfsmem.results import ServiceChanged, ServiceState

_MAX = 64 * 1024
_TIMEOUT_S = 60.0
#: The exit code of a missing or unresponsive program.
NO_PROGRAM = 127

#: Runs a command, and returns its exit code and output. Code 127: the program is missing.
Run = Callable[[Sequence[str]], tuple[int, str]]


def run_command(words: Sequence[str]) -> tuple[int, str]:
    """Run a command of the service manager."""
    try:
        done = subprocess.run(
            words, capture_output=True, timeout=_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return NO_PROGRAM, str(error)
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace").strip()


class Manager(msgspec.Struct, frozen=True):
    """The system's service manager, for one user."""

    user: Path
    #: The folder of the vaults of this device.
    home: Path
    environment: Mapping[str, str]
    system: str = sys.platform
    run: Run = run_command

    def name(self, vault_name: str, usual_home: Path) -> str:
        """Return the service name of a vault; a home other than the default adds a suffix."""
        here = os.path.realpath(self.home)
        end = "" if here == os.path.realpath(usual_home) else "-" + sha256(os.fsencode(here)).hexdigest()[:8]
        return f"ipfsmem-{vault_name}{end}"

    def file(self, name: str) -> Path:
        """Return the path of the service file."""
        if self.system == "win32":
            return self.home / f"{name}.xml"
        return file_of(self.system, self.user, self.environment.get("XDG_CONFIG_HOME"), name)

    def text(self, service: Service) -> bytes:
        """Return the content of the service file. Raises UsageError for words that it cannot contain."""
        checked(service)
        if self.system == "darwin":
            return launchd_agent(service)
        if self.system == "win32":
            domain = self.environment.get("USERDOMAIN", "")
            user = self.environment.get("USERNAME", "")
            return windows_task(service, f"{domain}\\{user}" if domain else user)
        return systemd_unit(service).encode()

    def steps(self, name: str) -> dict[str, list[Sequence[str]]]:
        """Return the commands that start, query and stop the service."""
        return commands(self.system, self.file(name), name, os.getuid() if hasattr(os, "getuid") else 0)


def install(
    manager: Manager, service: Service, *, dry_run: bool = False, force: bool = False
) -> ServiceChanged:
    """Write the file and start the service, now and at each login. Idempotent. `force`: also replace a changed or unknown file.

    Raises UsageError for words that the file cannot contain, ConfigError for a changed or unknown file, StorageError,
    IncompleteError if the manager failed: then the file is written, and the hint has the remaining commands.
    """
    file, text = manager.file(service.name), manager.text(service)
    before = read_file(file, _MAX)
    if not force:
        _refuse_others(manager, service, file, before)
    steps = manager.steps(service.name)
    steps_to_run = steps["begin"] if before in (None, text) else steps["restart"]
    if not dry_run:
        if before != text:
            _make_folders(file.parent)
            write_atomic(file, text)
        _carry_out(manager, steps_to_run, f"{file} is written, but the service does not run yet")
    return ServiceChanged(
        name=service.name,
        file=str(file),
        text=text.decode("utf-16" if manager.system == "win32" else "utf-8"),
        changed=before != text,
        commands=[shlex.join(step) for step in steps_to_run],
    )


def _refuse_others(manager: Manager, service: Service, file: Path, there: bytes | None) -> None:
    """Raise ConfigError for a file that differs from the one for this service, at any interval."""
    if there is None:
        return
    text = manager.text(service.at_any_time())
    mark = ANY_TIME.encode("utf-16-le" if manager.system == "win32" else "utf-8")
    before, _, after = text.partition(mark)
    time = there[len(before) : len(there) - len(after)].replace(b"\0", b"")
    if not (
        there.startswith(before) and there.endswith(after) and re.fullmatch(rb"[0-9.]{1,12}[smhd]?", time)
    ):
        raise ConfigError(
            f"{file} is not the file for this vault: it was changed, or the program was installed elsewhere at that time",
            hint="Check it. To replace or remove it, add --force.",
        )


def uninstall(
    manager: Manager, service: Service, *, dry_run: bool = False, force: bool = False
) -> ServiceChanged:
    """Stop the service and remove its file. `force`: also a changed or unknown file, and also if the manager fails.

    Raises NotFoundError if it is not installed, ConfigError for a changed or unknown file, StorageError, IncompleteError if the
    manager failed: then the file stays, unless `force`.
    """
    name = service.name
    file = manager.file(name)
    if not os.path.lexists(file):
        raise NotFoundError(f"there is no service {name} on this device", hint="See: ipfsmem service status")
    if not force:
        _refuse_others(manager, service, file, read_file(file, _MAX))
    steps = manager.steps(name)
    if not dry_run:
        failed = _first_failure(manager, steps["end"])
        if failed is not None and not force:
            raise _not_told(
                f"{file} still exists (--force removes it anyway), and the service may still run",
                failed,
                steps["end"],
            )
        with storage_errors(file, "remove"):
            file.unlink(missing_ok=True)
        _remove_empty(file.parent)
        if failed is None:
            failed = _first_failure(manager, steps["after"])
        if failed is not None:
            raise _not_told(f"{file} is removed, but the service may still run", failed, steps["end"])
    return ServiceChanged(
        name=name,
        file=str(file),
        text="",
        changed=True,
        commands=[shlex.join(step) for step in (*steps["end"], *steps["after"])],
    )


def state(manager: Manager, name: str, place: Path) -> ServiceState:
    """Return the state of the service, and the result of its syncs. `place`: the folder of the vault."""
    file = manager.file(name)
    there = os.path.lexists(file)
    (look,) = manager.steps(name)["look"]
    running, text = service_state(manager.system, *manager.run(look))
    notes = syncing_notes(place)
    return ServiceState(
        name=name,
        file=str(file) if there else None,
        running=running,
        said=text,
        worked=notes.worked or None,
        failing=notes.failing or None,
        failure=notes.failure,
    )


def _carry_out(manager: Manager, steps: Sequence[Sequence[str]], otherwise: str) -> None:
    failed = _first_failure(manager, steps)
    if failed is not None:
        raise _not_told(otherwise, failed, steps)


def _first_failure(manager: Manager, steps: Sequence[Sequence[str]]) -> str | None:
    for step in steps:
        code, output = manager.run(step)
        if code and not _was_not_there(step, code, output):
            return output.splitlines()[0] if output else f"{step[0]} ended with {code}"
    return None


def _was_not_there(step: Sequence[str], code: int, output: str) -> bool:
    """Tell whether a stop failed only because nothing ran."""
    return (
        (step[1] == "bootout" and ("No such process" in output or "Could not find" in output))
        or (step[1] == "/End" and code != NO_PROGRAM)
        or "reset-failed" in step
        or (step[1] == "/Delete" and "cannot find" in output)
    )


def _not_told(what: str, output: str, steps: Sequence[Sequence[str]]) -> IncompleteError:
    run = " && ".join(shlex.join(step) for step in steps)
    return IncompleteError(
        f"{what}: the system's service manager failed ({output})",
        hint=f"In a login session of this user, run: {run}",
    )


def _make_folders(folder: Path) -> None:
    make_directory(folder)


def _remove_empty(folder: Path) -> None:
    """Remove the folders that were created for the file, if they are empty."""
    with contextlib.suppress(OSError):
        (folder / "default.target.wants").rmdir()
    for one in (folder, folder.parent):
        with contextlib.suppress(OSError):
            if one.name in ("user", "systemd"):
                one.rmdir()
