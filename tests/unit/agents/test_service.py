"""The user's service: files that each system's own reader accepts; installed, inspected and removed."""

from __future__ import annotations

import plistlib
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ipfsmem.agents.service import Manager, install, state, uninstall
from ipfsmem.agents.service_texts import Service, launchd_agent, systemd_unit, systemd_word, windows_task
from ipfsmem.errors import IncompleteError, NotFoundError, UsageError
from tests.interop.counterparts import missing
from tests.support.hints import Refused
from tests.support.patience import PATIENCE

STRANGE = '/home/ju rgen\'s "ä" 100% $HOME \\x/ipfsmem; & <b>'
SERVICE = Service("ipfsmem-default", "default", (STRANGE, "sync", "--every", "5m", "--home", "/100%/a b"))


class Said:
    """A service manager that accepts every command and records it."""

    def __init__(self, code: int = 0, text: str = "") -> None:
        self.code, self.text = code, text
        self.ran: list[list[str]] = []

    def __call__(self, words: Sequence[str]) -> tuple[int, str]:
        self.ran.append(list(words))
        return self.code, self.text


def manager(base: Path, system: str, run: Said) -> Manager:
    environment = {"USERDOMAIN": "WORK", "USERNAME": "jürgen"}
    (base / "home").mkdir(exist_ok=True)
    return Manager(base / "user", base / "home", environment, system, run)


def unquoted(line: str) -> list[str]:
    """Parse a command line as systemd.service(5) does, for words in double quotes."""
    words, at = [], 0
    while at < len(line):
        assert line[at] == '"'
        at, word = at + 1, ""
        while line[at] != '"':
            if line[at] == "\\" or line[at : at + 2] in ("%%", "$$"):
                at += 1
            else:
                assert line[at] not in "%$"
            word, at = word + line[at], at + 1
        words.append(word)
        at += 2
    return words


def test_systemd_parses_the_service_arguments_unchanged() -> None:
    line = next(line for line in systemd_unit(SERVICE).splitlines() if line.startswith("ExecStart="))
    shell = ["/bin/sh", "-c", 'exec "$0" "$@"']  # systemd does not accept a program with quotes in its name
    assert unquoted(line.removeprefix("ExecStart=")) == [*shell, *SERVICE.words]
    plain = Service("x", "x", ("/home/j\u00fc rgen/100%/ipfsmem", "sync"))
    assert 'ExecStart="/home/j\u00fc rgen/100%%/ipfsmem" "sync"\n' in systemd_unit(plain)


def test_systemd_analyze_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        missing("systemd-analyze is not installed")
    folder = tmp_path / "100% $x \"q\" 'a' ä"
    folder.mkdir()
    program = folder / "ipfsmem"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "ipfsmem-default.service"
    unit.write_text(
        systemd_unit(Service("ipfsmem-default", "default", (str(program), "sync", "--home", "/100%")))
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert "ipfsmem-default" not in done.stderr, done.stderr


def test_launchd_parses_the_service_arguments_unchanged() -> None:
    read = plistlib.loads(launchd_agent(SERVICE))
    assert read["ProgramArguments"] == list(SERVICE.words)
    assert read["RunAtLoad"] is read["KeepAlive"] is True
    assert read["ProcessType"] == "Background"


def test_windows_parses_the_service_arguments_unchanged() -> None:
    data = windows_task(SERVICE, "WORK\\jürgen")
    task = ElementTree.fromstring(data.decode("utf-16").partition("\n")[2])
    names = {"t": "http://schemas.microsoft.com/windows/2004/02/mit/task"}
    assert task.findtext("t:Actions/t:Exec/t:Command", namespaces=names) == STRANGE
    arguments = task.findtext("t:Actions/t:Exec/t:Arguments", namespaces=names)
    assert arguments == 'sync --every 5m --home "/100%/a b"'
    assert task.findtext("t:Triggers/t:LogonTrigger/t:UserId", namespaces=names) == "WORK\\jürgen"
    assert task.findtext("t:Principals/t:Principal/t:RunLevel", namespaces=names) == "LeastPrivilege"


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_service_installed_twice_and_removed_leaves_no_files(tmp_path: Path, system: str) -> None:
    run = Said()
    here = manager(tmp_path, system, run)
    before = sorted(tmp_path.rglob("*"))
    assert install(here, SERVICE, dry_run=True).changed
    assert uninstall_refused(here)
    assert not run.ran
    assert sorted(tmp_path.rglob("*")) == before
    first = install(here, SERVICE)
    assert first.changed
    assert [shlex.join(words) for words in run.ran] == first.commands
    assert not install(here, SERVICE).changed
    changed = Service(SERVICE.name, "default", (STRANGE, "sync", "--every", "1.5h", *SERVICE.words[4:]))
    assert install(here, changed).changed
    assert "1.5h" in install(here, changed).text
    uninstall(here, SERVICE, dry_run=True)
    assert here.file(SERVICE.name).exists()
    uninstall(here, SERVICE)
    left = [path for path in sorted(tmp_path.rglob("*")) if path not in before]
    assert all(path.is_dir() and path.name in ("user", "Library", "LaunchAgents", ".config") for path in left)
    assert uninstall_refused(here)


def uninstall_refused(here: Manager) -> bool:
    with pytest.raises(NotFoundError, match="there is no service"):
        uninstall(here, SERVICE)
    return True


def test_unreachable_service_manager_is_reported_with_the_commands(tmp_path: Path) -> None:
    here = manager(tmp_path, "linux", Said(1, "Failed to connect to bus"))
    with pytest.raises(IncompleteError, match="Failed to connect to bus") as told:
        install(here, SERVICE)
    assert (
        "systemctl --user daemon-reload && systemctl --user enable --now ipfsmem-default" in told.value.hint
    )
    assert here.file(SERVICE.name).exists()
    found = state(here, SERVICE.name, tmp_path)
    assert found.running is None
    assert found.said == "Failed to connect to bus"
    with pytest.raises(IncompleteError, match="may still run"):
        uninstall(here, SERVICE)
    assert here.file(SERVICE.name).exists(), "else nobody would end it any more"
    with pytest.raises(IncompleteError, match="may still run"):
        uninstall(here, SERVICE, force=True)
    assert not here.file(SERVICE.name).exists()


@pytest.mark.parametrize(
    ("system", "code", "said", "running"),
    [
        ("linux", 0, "active", True),
        ("linux", 3, "inactive", False),
        ("linux", 3, "activating", False),  # it waits a minute, as for keys
        ("linux", 1, "Failed to connect to bus: No medium found", None),
        ("linux", 127, "No such file or directory: 'systemctl'", None),
        ("darwin", 0, "gui/501/ipfsmem-default = {\n\tstate = running\n\tpid = 1", True),
        ("darwin", 0, "gui/501/ipfsmem-default = {\n\tstate = not running\n", False),
        ("darwin", 0, "gui/501/ipfsmem-default = {\n\tstate = spawn scheduled\n", False),
        ("darwin", 113, 'Could not find service "ipfsmem-default" in domain for user gui: 501', False),
        ("darwin", 125, "Domain does not support specified action", None),
        ("win32", 0, "\nFolder: \\\nTaskName:  \\ipfsmem-default\nStatus:   Running\n", True),
        ("win32", 0, "\nFolder: \\\nTaskName:  \\ipfsmem-default\nStatus:   Ready\n", False),
        ("win32", 0, "\nOrdner: \\\nStatus:   Wird ausgef\u00fchrt\n", None),
        ("win32", 1, "ERROR: The system cannot find the file specified.", False),
        ("win32", 1, "ERROR: Access is denied.", None),
    ],
)
def test_running_state_is_that_of_the_service_manager(
    tmp_path: Path, system: str, code: int, said: str, running: bool | None
) -> None:
    here = manager(tmp_path, system, Said(code, said))
    assert state(here, SERVICE.name, tmp_path).running is running
    assert state(here, SERVICE.name, tmp_path).file is None


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_foreign_or_changed_service_file_is_unchanged_without_force(tmp_path: Path, system: str) -> None:
    """Also one of another vault with the same service name."""
    run = Said()
    here = manager(tmp_path, system, run)
    install(here, SERVICE)
    file = here.file(SERVICE.name)
    ours = file.read_bytes()
    other = Service(SERVICE.name, "default", (*SERVICE.words[:-1], "/another/home"))
    run.ran.clear()
    for there in (b"mine\n", ours + b"\n", ours[:40] + b"x" + ours[41:], b"", here.text(other)):
        file.write_bytes(there)
        for attempt in (install, uninstall):
            with Refused("Check it. To replace or remove it, add --force."):
                attempt(here, SERVICE)
            assert file.read_bytes() == there and not run.ran
    assert install(here, SERVICE, force=True).changed
    assert file.read_bytes() == ours
    file.write_bytes(b"mine\n")
    uninstall(here, SERVICE, force=True)
    assert not file.exists()


@pytest.mark.parametrize("word", ["a\nb", "a\0b", "\x7f", "\udcff"])
def test_service_file_with_invalid_character_is_refused(tmp_path: Path, word: str) -> None:
    run = Said()
    with pytest.raises(UsageError, match="a character that is not allowed"):
        install(manager(tmp_path, "linux", run), Service("x", "x", ("/bin/true", word)))
    assert not run.ran


def test_vaults_in_other_homes_have_separate_services(tmp_path: Path) -> None:
    here = manager(tmp_path, "linux", Said())
    assert here.name("default", tmp_path / "home") == "ipfsmem-default"
    assert here.name("default", tmp_path / "usual") != here.name("work", tmp_path / "usual")
    assert here.name("default", tmp_path / "usual").startswith("ipfsmem-default-")


def test_systemd_argument_is_quoted() -> None:
    assert systemd_word("a b") == '"a b"'
    assert systemd_word('%"$\\') == '"%%\\"$$\\\\"'
