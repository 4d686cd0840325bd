"""Runs the `git` program without prompts, hooks or helper programs except those for connections, within limits of time and memory.

Methods block; long ones report progress by `heartbeat` and end when their task is cancelled. A program that is ended early is ended
together with its child processes before the method returns.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Final, NamedTuple

from ipfsmem.errors import ConfigError, ProviderRefused, ProviderUnavailable
from ipfsmem_providers.git.address import GitAddress
from ipfsmem_providers.git.errors import OLD_HINT, last_line
from ipfsmem_providers.http.policy import SLOWEST
from ipfsmem_providers.packs.blocking_work import is_cancelled
from ipfsmem_providers.request_log import logged

#: Variables of git that a user sets to reach hosts; all others are removed.
_PASSED: Final = frozenset((
    "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY", "GIT_EXEC_PATH",
))  # fmt: skip
#: Variables with the location of the user's configuration, which is read once; git gets only the settings below.
_CONFIG_FILES: Final = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
_USER_SETTINGS: Final = re.compile(r"(credential|http)\..+|core\.sshcommand|ssh\.variant|safe\.directory")
_SSH: Final = "ssh -oBatchMode=yes -oConnectTimeout=15 -oServerAliveInterval=15 -oServerAliveCountMax=3"
_NOWHERE: Final = "/dev/null"  # git's own name for it, also on Windows
_CONFIG: Final = {
    "advice.fetchShowForcedUpdates": "false",
    "core.alternateRefsCommand": "true",
    "core.bigFileThreshold": "512",  # sealed blocks have no deltas
    "core.compression": "1",
    "core.deltaBaseCacheLimit": "32m",
    "core.fsmonitor": "false",
    "core.hooksPath": _NOWHERE,
    "core.packedGitLimit": "256m",
    "core.packedGitWindowSize": "16m",
    "fetch.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",
    "fetch.writeCommitGraph": "false",
    "gc.auto": "0",
    "http.lowSpeedLimit": "100",
    "http.lowSpeedTime": "60",
    "http.postBuffer": "33554432",
    "maintenance.auto": "false",
    "pack.threads": "1",
    "pack.window": "8",
    "pack.windowMemory": "32m",
    "protocol.ext.allow": "never",
    "protocol.version": "2",
    "push.default": "nothing",
    "push.gpgSign": "false",
    "push.recurseSubmodules": "no",
    "receive.denyCurrentBranch": "refuse",
    "submodule.recurse": "false",
    "transfer.bundleURI": "false",
}
#: For a repository at a path, git serves it on this device: without its hooks, without programs in its configuration, and without
#: fetching missing objects.
_SERVED: Final = (
    "GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true "
    "-c core.fsmonitor=false -c core.sshCommand=false -c gc.auto=0 -c maintenance.auto=false -c protocol.ext.allow=never "
    "-c receive.autogc=false -c receive.denyCurrentBranch=refuse -c core.fsync=committed -c core.fsyncMethod=fsync{more} {program}"
)
#: Bytes of one allocation by git, and KiB of a program's writable memory, where the system limits that.
_ALLOCATION: Final = "512m"
_MEMORY: Final = 2 * 1024 * 1024
#: Limits the memory of a program and of all that it starts.
_LIMITED: Final = 'ulimit -d "$0" 2>/dev/null; exec "$@"'
#: A credential helper that returns GIT_TOKEN to the origin of the address. The token is not an argument, because every user of a
#: machine can list arguments.
_ANSWER: Final = (
    '!f() { test "$1" = get && echo username=x-access-token && echo "password=$IPFSMEM_GIT_ANSWER"; }; f'
)
#: Bytes of an answer that are kept; a longer one ends the command.
_OUT_MAX: Final = 64 * 1024 * 1024
_ERR_MAX: Final = 8 * 1024 * 1024
_ERR_KEPT: Final = 16 * 1024
_STEP: Final = 0.02
#: Steps to wait for a terminated program to remove its lock files, and for the child processes of a killed program to end.
_ENDING_STEPS: Final = 50
_GONE_STEPS: Final = 100
#: Older versions do not read the configuration from the environment, or also read the user's.
_OLDEST: Final = (2, 32)
#: Older versions do not have `core.fsync`, and flush only packs of the received objects.
_FSYNC: Final = (2, 36)
_VERSION: Final = re.compile(rb"git version ([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")
#: A transfer may last this many seconds, and one more for each of these bytes.
_LONG: Final = 600.0
_SLOWEST: Final = 8 * 1024
#: Seconds of a command that uses only this device.
_LOCAL: Final = 900.0


class Finished(NamedTuple):
    """A finished command."""

    code: int
    out: bytes
    err: str


class LocalFailure(Exception):
    """A command failed because of this device: the cache repository is damaged or in the way."""

    def __init__(self, message: str, *, connected: bool = False) -> None:
        """`connected`: the command spoke to a repository elsewhere, which may be what is damaged."""
        super().__init__(message)
        self.connected = connected


class GitProgram:
    """The program, for one address."""

    def __init__(
        self,
        address: GitAddress,
        where: str,
        *,
        token: str,
        stall: float,
        push_stall: float,
        heartbeat: Callable[[], None],
    ) -> None:
        """`where`: the provider's name. `stall`: seconds without progress after which a transfer is ended; `push_stall`
        for one that sends.

        Raises ConfigError without the program.
        """
        executable = find_git()
        if not executable:
            raise ConfigError("the git program is not installed", hint="Install git: https://git-scm.com")
        self._git, self._address, self._where = executable, address, where
        self._stall, self._push_stall, self._heartbeat = stall, push_stall, heartbeat
        self._token = token
        self._user: list[tuple[str, str]] | None = None

    @functools.cached_property
    def _version(self) -> tuple[int, int]:
        """Return the version of the program, asked once. Raises ProviderRefused when it is too old or does not work."""
        code, out, err = _answer_of(self._git, "version")
        if code or not (match := _VERSION.match(out)):
            raise ProviderRefused(
                f"the git program {self._git} does not work ({last_line(err or out.decode(errors='replace'))})",
                hint="Install git: https://git-scm.com",
            )
        version = int(match[1]), int(match[2])
        if version < _OLDEST:
            raise ProviderRefused(f"git {version[0]}.{version[1]} is too old", hint=OLD_HINT)
        return version

    def local(
        self,
        folder: Path,
        *args: str,
        data: bytes | None = None,
        check: bool = True,
        out_max: int = _OUT_MAX,
    ) -> Finished:
        """Run a command that needs no host. Raises LocalFailure when it fails, unless `check` is off.

        ProviderUnavailable when it does not end, or is ended by the system.
        """
        done = self._run(args, data, self._environment(folder, {}), out_max=out_max)
        if done.code < 0:
            raise ProviderUnavailable(
                f"{self._where}: git {args[0]} was ended by the system", hint="Sync again in a while."
            )
        if check and done.code:
            raise LocalFailure(f"git {args[0]}: {done.err.strip()[-300:]}")
        return done

    def remote(
        self,
        folder: Path,
        *args: str,
        objects: Path | None = None,
        bytes_max: int = 0,
        sent: int | None = None,
    ) -> Finished:
        """Run a command that connects to the host; its outcome is in the result.

        `objects`: a folder for received objects, of at most `bytes_max` bytes. `sent`: number of bytes that a push sends, whose
        progress git does not report. Raises ProviderUnavailable if the host is silent, ProviderRefused if it sends more than
        `bytes_max`.
        """
        more = {}
        if objects is not None:
            more["GIT_OBJECT_DIRECTORY"] = str(objects)
            more["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(folder / "objects")
        settings = self._user_settings()
        options = []
        if self._address.kind == "file":
            more_settings = [
                f"safe.directory={value}" for name, value in settings if name == "safe.directory"
            ]
            if self._version < _FSYNC:
                more_settings.append("receive.unpackLimit=1")
            flags = "".join(f" -c {shlex.quote(one)}" for one in more_settings)
            program = {"fetch": "upload-pack", "push": "receive-pack"}[args[0]]
            options = [f"--{program}={_SERVED.format(program=program, more=flags)}"]

        def received() -> int:
            total = _bytes_in(objects) if objects is not None else 0
            if objects is not None and total > bytes_max:
                raise ProviderRefused(
                    f"{self._where} sent more than {bytes_max:,} bytes, so nothing was kept",
                    hint="If the memory is that large, free space on this device.",
                )
            return total

        environment = self._environment(folder, {**more, **self._ssh(settings)}, settings)
        stall = self._stall if sent is None else self._push_stall + sent / SLOWEST
        with logged(self._where, args[0]) as outcome:
            done = self._run(
                [args[0], *options, *args[1:]], None, environment, received=received, stall=stall
            )
            if done.code:
                outcome.text = f"code {done.code}"
        return done

    def _user_settings(self) -> list[tuple[str, str]]:
        """Return the settings for connections in the user's configuration, read once. Other settings are ignored: `insteadOf` would
        change the address, and hooks and monitors are programs."""
        if self._user is None:
            environment = {**user_environment(), "GIT_DIR": _NOWHERE}
            listed = self._run(["config", "--list", "-z"], None, environment)
            if listed.code:
                raise ProviderUnavailable(
                    f"{self._where}: git cannot read its configuration ({last_line(listed.err)})",
                    hint="Try again, or run: git ls-remote ADDRESS",
                )
            pairs = [
                entry.partition("\n") for entry in listed.out.decode(errors="replace").split("\0") if entry
            ]
            self._user = [
                (name, value if mark else "true")
                for name, mark, value in pairs
                if _USER_SETTINGS.fullmatch(name)
            ]
        return self._user

    def _ssh(self, settings: Sequence[tuple[str, str]]) -> dict[str, str]:
        if self._address.kind != "ssh":
            return {}
        own = os.environ.get("GIT_SSH_COMMAND") or dict(settings).get("core.sshcommand", "")
        command = "" if os.environ.get("GIT_SSH") and not own else own or _SSH
        if command.split(" ")[0].rpartition("/")[2] == "ssh" and "BatchMode" not in command:
            command += " -oBatchMode=yes"
        return {"GIT_SSH_COMMAND": command} if command else {}

    def _environment(
        self, folder: Path, more: Mapping[str, str], settings: Sequence[tuple[str, str]] | None = None
    ) -> dict[str, str]:
        """Return the environment; `settings` of the user for a command that connects."""
        config = [*(settings or ()), *_CONFIG.items()]
        answer = {}
        if settings is not None and self._token and self._address.kind in ("https", "http"):
            origin = "/".join(self._address.url.split("/")[:3])
            config += [("credential.helper", ""), (f"credential.{origin}.helper", _ANSWER)]
            answer["IPFSMEM_GIT_ANSWER"] = self._token
        variables = {"GIT_CONFIG_COUNT": str(len(config))}
        for number, (name, value) in enumerate(config):
            variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return {
            **_inherited(),
            **variables,
            **answer,
            "GIT_ALLOC_LIMIT": _ALLOCATION,
            "GIT_ALLOW_PROTOCOL": self._address.kind,
            "GIT_ASKPASS": "",
            "GIT_CONFIG_GLOBAL": _NOWHERE,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_DIR": str(folder),
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GCM_INTERACTIVE": "never",
            "LC_ALL": "C",
            "SSH_ASKPASS_REQUIRE": "never",
            **more,
        }

    def _run(
        self,
        args: Sequence[str],
        data: bytes | None,
        environment: Mapping[str, str],
        *,
        received: Callable[[], int] | None = None,
        out_max: int = _OUT_MAX,
        stall: float = 0.0,
    ) -> Finished:
        """Run a command. For a command that connects, `received` returns the number of received bytes, and `stall` is the maximum
        of seconds without any."""
        self._version  # noqa: B018 - an old one would ignore the environment
        limited = ["/bin/sh", "-c", _LIMITED, str(_MEMORY)] if os.name == "posix" else []
        try:
            process = subprocess.Popen(
                [*limited, self._git, *args],
                stdin=subprocess.DEVNULL if data is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=os.path.sep,
                start_new_session=True,  # no terminal that could be asked
            )
        except OSError as error:
            raise ProviderUnavailable(
                f"the git program cannot be started: {error.strerror or error}"
            ) from None
        out, err = _Kept(out_max), _Kept(_ERR_MAX, last=_ERR_KEPT)
        threads = [
            threading.Thread(target=out.read, args=(process.stdout,), daemon=True),
            threading.Thread(target=err.read, args=(process.stderr,), daemon=True),
        ]
        if data is not None:
            threads.append(threading.Thread(target=_feed, args=(process.stdin, data), daemon=True))
        for thread in threads:
            thread.start()
        try:
            self._wait(process, args[0], out, err, received, stall)
        finally:
            _end(process)
            threads[0].join(5)
            # A shared ssh connection that stays open holds this pipe; only after a failure is its text needed.
            threads[1].join(5.0 if process.returncode else 0.5)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None and not any(thread.is_alive() for thread in threads):
                    pipe.close()
        if out.over or err.over:
            raise self._endless()
        stderr = err.data.decode(errors="replace")
        return Finished(
            process.returncode, bytes(out.data), stderr.replace(self._token, "***") if self._token else stderr
        )

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        what: str,
        out: _Kept,
        err: _Kept,
        received: Callable[[], int] | None,
        stall: float,
    ) -> None:
        began = last = time.monotonic()
        before, pause = -1, _STEP / 8
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(pause)
                if received is not None:
                    received()
                return
            pause = min(pause * 1.5, 0.25)
            now = time.monotonic()
            if is_cancelled():
                raise ProviderUnavailable(f"{self._where}: cancelled")
            if out.over or err.over:
                raise self._endless()
            if received is None:
                self._heartbeat()
                if now - began > _LOCAL:
                    raise ProviderUnavailable(
                        f"{self._where}: git {what} did not end within {_LOCAL:.0f} s on this device",
                        hint="Sync again in a while.",
                    )
                continue
            moved = received() + out.total + err.total
            if moved != before:
                before, last = moved, now
            self._heartbeat()  # its own limit ends it
            if now - last > stall or now - began > _LONG + stall + moved / _SLOWEST:
                raise ProviderUnavailable(
                    f"{self._where} did not answer within {now - last:.0f} s",
                    hint="Sync again in a while.",
                )

    def _endless(self) -> ProviderRefused:
        return ProviderRefused(f"{self._where} answered without an end")


def find_git() -> str:
    """Return the path of the program, or "". A program in the working directory is not trusted."""
    path = shutil.which("git")
    return path if path is not None and Path(path).is_absolute() else ""


def _answer_of(program: str, *args: str) -> tuple[int, bytes, str]:
    """Return the exit code, output and errors of a command that uses no repository."""
    try:
        done = subprocess.run(
            [program, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, env=_inherited(),
            cwd=os.path.sep, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProviderUnavailable(f"the git program cannot be started: {error}") from None
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def user_environment() -> dict[str, str]:
    """Return an environment for git with the user's configuration, and messages in English."""
    files = {name: os.environ[name] for name in _CONFIG_FILES if name in os.environ}
    return {**_inherited(), **files, "LC_ALL": "C"}


def _inherited() -> dict[str, str]:
    """Return this process's environment without variables that change the behaviour of git."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "IPFSMEM_", "SSH_ASKPASS")) or name in _PASSED
    }


class _Kept:
    """The output of a program on one pipe: at most `most` bytes, of which the `last` are kept."""

    def __init__(self, most: int, *, last: int | None = None) -> None:
        self._most, self._last = most, last
        self.data = bytearray()
        self.total = 0
        self.over = False

    def read(self, pipe: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while piece := os.read(pipe.fileno(), 1 << 16):
                self.total += len(piece)
                if self.total > self._most:
                    self.over = True
                    return
                self.data += piece
                if self._last is not None and len(self.data) > 2 * self._last:
                    del self.data[: -self._last]


def _feed(pipe: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(OSError, ValueError), pipe:
        pipe.write(data)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a running program and its child processes. It gets time to remove its lock files: a lock in a repository at a path would
    block every later push."""
    if process.poll() is not None:
        return
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)
            for _ in range(_ENDING_STEPS):
                process.poll()
                os.killpg(process.pid, 0)
                time.sleep(_STEP)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for _ in range(_GONE_STEPS):  # until the others are gone too, or nobody collects them
                os.killpg(process.pid, 0)
                time.sleep(_STEP)
    else:  # without the programs that it started, kill would leave those
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, check=False)
    process.kill()
    process.wait()


def _bytes_in(folder: Path) -> int:
    total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(at, name)).st_size  # noqa: PTH116, PTH118
    return total
