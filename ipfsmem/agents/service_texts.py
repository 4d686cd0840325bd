"""The files for the system's service manager: a systemd unit, a launchd agent, a Windows task. Pure functions.

Sources (November 2026): systemd.unit(5), systemd.service(5), systemd.exec(5) of systemd 252 to 258; launchd.plist(5) of macOS;
"Task Scheduler Schema" of Microsoft. The restrictions of a unit do not cover folders: vaults may be anywhere, also on other
disks.
"""

from __future__ import annotations

import plistlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import msgspec

from ipfsmem.errors import UsageError

#: Seconds before the system restarts it, for example while the keys are locked.
AGAIN: Final = 60


#: Placeholder for the interval of a service, to compare texts at any interval.
ANY_TIME: Final = "@every@"


class Service(msgspec.Struct, frozen=True):
    """A service that keeps one vault in sync."""

    #: Its name on this system.
    name: str
    #: The display name of the vault.
    memory: str
    #: The program and its arguments.
    words: tuple[str, ...]

    def at_any_time(self) -> Service:
        """Return this service with a placeholder for its interval."""
        before = ("", *self.words)
        words = tuple(
            ANY_TIME if last == "--every" else word for last, word in zip(before, self.words, strict=False)
        )
        return msgspec.structs.replace(self, words=words)


def checked(service: Service) -> Service:
    """Return the service. Raises UsageError for a word that no system accepts."""
    for word in service.words:
        if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in word) or not _is_unicode(word):
            raise UsageError(
                f"a service file cannot contain {word!r}: it has a character that is not allowed there",
                hint="Keep the memory in a folder without such a character: --home DIR (in Python: home=).",
            )
    return service


def _is_unicode(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def systemd_unit(service: Service) -> str:
    """Return the unit for the user's systemd."""
    return f"""# Written by: ipfsmem service install. Remove it with: ipfsmem service uninstall
[Unit]
Description=Keeps the memory {service.memory.replace("%", "%%")} in sync (ipfsmem)
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={" ".join(map(systemd_word, _startable(service.words)))}
Environment=PYTHONUNBUFFERED=1
Restart=always
RestartSec={AGAIN}
Nice=10
IOSchedulingClass=idle
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK

[Install]
WantedBy=default.target
"""


def _startable(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words, run by a shell if systemd does not accept the program's name."""
    return ("/bin/sh", "-c", 'exec "$0" "$@"', *words) if set(words[0]) & set("\"'\\$") else words


def systemd_word(word: str) -> str:
    """Return a quoted word of a command line: `%` begins a specifier there, `$` a variable."""
    for letter, written in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        word = word.replace(letter, written)
    return f'"{word}"'


def launchd_agent(service: Service) -> bytes:
    """Return the agent for launchd."""
    return plistlib.dumps(
        {
            "Label": service.name,
            "ProgramArguments": list(service.words),
            "EnvironmentVariables": {"PYTHONUNBUFFERED": "1"},
            "RunAtLoad": True,
            "KeepAlive": True,
            "ThrottleInterval": AGAIN,
            "ProcessType": "Background",
            "LowPriorityIO": True,
            "Nice": 10,
            "Umask": 0o077,
            "StandardOutPath": "/dev/null",
            "StandardErrorPath": "/dev/null",
        }
    )


def windows_task(service: Service, user: str) -> bytes:
    """Return the task for Windows, for `schtasks /Create /XML`. `user`: `DOMAIN\\name`."""
    task = ElementTree.Element(
        "Task", version="1.2", xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task"
    )
    _add(task, "RegistrationInfo", ("Description", f"Keeps the memory {service.memory} in sync (ipfsmem)"))
    trigger = ElementTree.SubElement(ElementTree.SubElement(task, "Triggers"), "LogonTrigger")
    _fill(trigger, ("Enabled", "true"), ("UserId", user))
    principal = ElementTree.SubElement(ElementTree.SubElement(task, "Principals"), "Principal", id="Author")
    _fill(principal, ("UserId", user), ("LogonType", "InteractiveToken"), ("RunLevel", "LeastPrivilege"))
    settings = _add(
        task,
        "Settings",
        ("MultipleInstancesPolicy", "IgnoreNew"),
        ("DisallowStartIfOnBatteries", "false"),
        ("StopIfGoingOnBatteries", "false"),
        ("ExecutionTimeLimit", "PT0S"),
        ("Hidden", "true"),
        ("Priority", "7"),
    )
    _add(settings, "RestartOnFailure", ("Interval", f"PT{AGAIN // 60}M"), ("Count", "999"))
    run = ElementTree.SubElement(ElementTree.SubElement(task, "Actions", Context="Author"), "Exec")
    _fill(run, ("Command", service.words[0]), ("Arguments", subprocess.list2cmdline(service.words[1:])))
    return b"\xff\xfe" + (
        '<?xml version="1.0" encoding="UTF-16"?>\n' + ElementTree.tostring(task, "unicode")
    ).encode("utf-16-le")


def _add(above: ElementTree.Element, name: str, *parts: tuple[str, str]) -> ElementTree.Element:
    element = ElementTree.SubElement(above, name)
    _fill(element, *parts)
    return element


def _fill(element: ElementTree.Element, *parts: tuple[str, str]) -> None:
    for name, text in parts:
        ElementTree.SubElement(element, name).text = text


def file_of(system: str, user: Path, environment_config: str | None, name: str) -> Path:
    """Return the path of the service file. Raises UsageError on Windows."""
    if system == "darwin":
        return user / "Library" / "LaunchAgents" / f"{name}.plist"
    if system == "win32":
        raise UsageError("Windows keeps its tasks itself")
    config = Path(environment_config) if environment_config else user / ".config"
    return config / "systemd" / "user" / f"{name}.service"


def commands(system: str, file: Path, name: str, uid: int) -> dict[str, list[Sequence[str]]]:
    """Return the commands that start, query and stop the service, by system."""
    if system == "darwin":
        return {
            "begin": [("launchctl", "bootstrap", f"gui/{uid}", str(file))],
            "restart": [
                ("launchctl", "bootout", f"gui/{uid}/{name}"),
                ("launchctl", "bootstrap", f"gui/{uid}", str(file)),
            ],
            "look": [("launchctl", "print", f"gui/{uid}/{name}")],
            "end": [("launchctl", "bootout", f"gui/{uid}/{name}")],
            "after": [],
        }
    if system == "win32":
        return {
            "begin": [
                ("schtasks", "/Create", "/TN", name, "/XML", str(file), "/F"),
                ("schtasks", "/Run", "/TN", name),
            ],
            "restart": [
                ("schtasks", "/End", "/TN", name),
                ("schtasks", "/Create", "/TN", name, "/XML", str(file), "/F"),
                ("schtasks", "/Run", "/TN", name),
            ],
            "look": [("schtasks", "/Query", "/TN", name, "/FO", "LIST")],
            "end": [("schtasks", "/End", "/TN", name), ("schtasks", "/Delete", "/TN", name, "/F")],
            "after": [],
        }
    user = ("systemctl", "--user")
    return {
        "begin": [(*user, "daemon-reload"), (*user, "enable", "--now", f"{name}.service")],
        "restart": [
            (*user, "daemon-reload"),
            (*user, "enable", f"{name}.service"),
            (*user, "restart", f"{name}.service"),
        ],
        "look": [(*user, "is-active", f"{name}.service")],
        "end": [(*user, "disable", "--now", f"{name}.service")],
        # Its exit code may not be 0, and a failed unit would stay listed.
        "after": [(*user, "daemon-reload"), (*user, "reset-failed", f"{name}.service")],
    }


#: States of a systemd user unit that does not run.
_IDLE: Final = frozenset(("inactive", "failed", "activating", "deactivating", "maintenance", "unknown"))


def service_state(system: str, code: int, output: str) -> tuple[bool | None, str]:
    """Tell whether a service runs, from the output of the service manager, and return its word for the state. None: the manager
    was not reached, or used unknown words (schtasks uses the system's language)."""
    first = next(iter(output.splitlines()), "")
    if system == "darwin":
        if code:
            return (False, "") if "Could not find" in output else (None, first)
        state = next((line.split("=", 1)[1].strip() for line in output.splitlines() if "state =" in line), "")
        return state == "running" if state else None, state
    if system == "win32":
        if code:
            return (False, "") if "cannot find" in output else (None, first)
        lines = (line.partition(":") for line in output.splitlines())
        state = next((value.strip() for name, _, value in lines if name.strip() == "Status"), "")
        return {"Running": True, "Ready": False, "Disabled": False, "Queued": False}.get(state), state
    if code == 0:
        return True, first
    return (False, first) if first in _IDLE else (None, first)
