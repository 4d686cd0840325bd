"""Runs the `git` program without prompts, hooks or other programs than those that reach a host, within bounds.

Knows no repository layout. Methods block; long ones report progress by `heartbeat`.
"""

from __future__ import annotations

import contextlib
import os
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

#: Variables of git that a user sets to reach hosts; all others are removed.
_PASSED: Final = frozenset((
    "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_PROXY_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT",
    "GIT_SSL_KEY", "GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
))  # fmt: skip
_SSH: Final = "ssh -oBatchMode=yes -oConnectTimeout=15 -oServerAliveInterval=15 -oServerAliveCountMax=3"
_CONFIG: Final = {
    "advice.fetchShowForcedUpdates": "false",
    "core.bigFileThreshold": "512",  # sealed blocks have no deltas
    "core.compression": "1",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "fetch.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",
    "fetch.writeCommitGraph": "false",
    "gc.auto": "0",
    "http.lowSpeedLimit": "100",
    "http.lowSpeedTime": "60",
    "http.postBuffer": "33554432",
    "maintenance.auto": "false",
    "pack.window": "8",
    "protocol.version": "2",
    "push.default": "nothing",
    "push.gpgSign": "false",
    "push.recurseSubmodules": "no",
    "submodule.recurse": "false",
}
#: A repository at a path runs git here: without its hooks, and without the programs that its configuration names.
_SERVED: Final = (
    "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true -c receive.autogc=false {}"
)
#: Gives GIT_TOKEN to the address's origin; the token is in no argument, which every user of a machine can list.
_ANSWER: Final = (
    '!f() { test "$1" = get && echo username=x-access-token && echo "password=$IPFSMEM_GIT_ANSWER"; }; f'
)
#: Bytes of an answer that are kept; a longer one ends the command.
_OUT_MAX: Final = 64 * 1024 * 1024
_ERR_MAX: Final = 8 * 1024 * 1024
_ERR_KEPT: Final = 16 * 1024
_STEP: Final = 0.02
#: A transfer may last this many seconds, and one more for each of these bytes.
_LONG: Final = 600.0
_SLOWEST: Final = 8 * 1024


class Finished(NamedTuple):
    """A finished command."""

    code: int
    out: bytes
    err: str


class LocalFailure(Exception):
    """A command that used only this device failed: the cache repository is damaged or in the way."""


class GitProgram:
    """The program, for one address."""

    def __init__(
        self,
        address: GitAddress,
        where: str,
        *,
        token: str,
        stall: float,
        heartbeat: Callable[[], None],
    ) -> None:
        """`where`: the provider's name. `stall`: seconds without progress after which a transfer is ended.

        Raises ConfigError without the program.
        """
        found = shutil.which("git")
        if found is None:
            raise ConfigError("the git program is not installed", hint="Install git: https://git-scm.com")
        self._git, self._address, self._where = found, address, where
        self._stall, self._heartbeat = stall, heartbeat
        self._token = token
        self._ssh: str | None = None

    def local(
        self,
        folder: Path,
        *args: str,
        data: bytes | None = None,
        check: bool = True,
        out_max: int = _OUT_MAX,
    ) -> Finished:
        """Run a command that needs no host. Raises LocalFailure when it fails, unless `check` is off."""
        done = self._run(folder, args, data, {}, lambda: 0, out_max)
        if check and done.code:
            raise LocalFailure(f"git {args[0]}: {done.err.strip()[-300:]}")
        return done

    def remote(self, folder: Path, *args: str, objects: Path | None = None, bytes_max: int = 0) -> Finished:
        """Run a command that connects to the host; its outcome is in the result.

        `objects`: a folder that takes what is received, of at most `bytes_max` bytes. Raises
        ProviderUnavailable when the host is silent, ProviderRefused when it sends more than that.
        """
        more = self._connecting(folder)
        if objects is not None:
            more["GIT_OBJECT_DIRECTORY"] = str(objects)
            more["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(folder / "objects")
        served = self._address.kind == "file"
        program = {"fetch": "upload-pack", "push": "receive-pack"}[args[0]]
        options = [f"--{program}={_SERVED.format(program)}"] if served else []

        def received() -> int:
            total = _bytes_in(objects) if objects is not None else 0
            if objects is not None and total > bytes_max:
                raise ProviderRefused(
                    f"{self._where} sent more than {bytes_max:,} bytes, so nothing was kept",
                    hint="If the memory is that large, free space on this device.",
                )
            return total

        return self._run(folder, [args[0], *options, *args[1:]], None, more, received, _OUT_MAX)

    def setting(self, name: str) -> str:
        """Return a value of the user's own configuration; empty when it is not set."""
        done = self._run(Path(os.devnull), ["config", "--get", name], None, {}, lambda: 0, _OUT_MAX)
        return done.out.decode(errors="replace").strip()

    def _connecting(self, folder: Path) -> dict[str, str]:
        if self._address.kind == "ssh":
            if self._ssh is None:
                own = os.environ.get("GIT_SSH_COMMAND") or self.setting("core.sshCommand")
                self._ssh = "" if os.environ.get("GIT_SSH") and not own else own or _SSH
                if self._ssh.split(" ")[0].rpartition("/")[2] == "ssh" and "BatchMode" not in self._ssh:
                    self._ssh += " -oBatchMode=yes"
            return {"GIT_SSH_COMMAND": self._ssh} if self._ssh else {}
        if self._token and self._address.kind in ("https", "http"):
            return {"IPFSMEM_GIT_ANSWER": self._token}
        return {}

    def _environment(self, folder: Path, more: Mapping[str, str]) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GIT_", "IPFSMEM_", "SSH_ASKPASS")) or name in _PASSED
        }
        config = [*_CONFIG.items()]
        if "IPFSMEM_GIT_ANSWER" in more:
            origin = "/".join(self._address.url.split("/")[:3])
            config += [("credential.helper", ""), (f"credential.{origin}.helper", _ANSWER)]
        given = {"GIT_CONFIG_COUNT": str(len(config))}
        for number, (name, value) in enumerate(config):
            given |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        if folder != Path(os.devnull):
            given["GIT_DIR"] = str(folder)
        return {
            **kept,
            **given,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS_REQUIRE": "never",
            "GCM_INTERACTIVE": "never",
            "GIT_ALLOW_PROTOCOL": self._address.kind,
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
            **more,
        }

    def _run(
        self,
        folder: Path,
        args: Sequence[str],
        data: bytes | None,
        more: Mapping[str, str],
        received: Callable[[], int],
        out_max: int,
    ) -> Finished:
        try:
            process = subprocess.Popen(
                [self._git, *args],
                stdin=subprocess.DEVNULL if data is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment(folder, more),
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
            self._wait(process, out, err, received)
        finally:
            _end(process)
            threads[0].join(5)
            threads[1].join(0.5)  # a shared ssh connection that stays open holds this pipe
            for pipe in (process.stdout, process.stderr):
                if pipe is not None and not any(thread.is_alive() for thread in threads):
                    pipe.close()
        return Finished(process.returncode, bytes(out.data), err.data.decode(errors="replace"))

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        out: _Kept,
        err: _Kept,
        received: Callable[[], int],
    ) -> None:
        began = last = time.monotonic()
        before, pause = -1, _STEP / 8
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(pause)
                received()
                return
            pause = min(pause * 1.5, 0.25)
            now = time.monotonic()
            moved = received() + out.total + err.total
            if out.over or err.over:
                raise ProviderRefused(f"{self._where} answered without an end")
            if moved != before:
                before, last = moved, now
                self._heartbeat()
            if now - last > self._stall or now - began > _LONG + moved / _SLOWEST:
                raise ProviderUnavailable(
                    f"{self._where} did not answer within {now - last:.0f} s",
                    hint="Try again when it answers.",
                )


class _Kept:
    """What a program writes to one pipe: at most `most` bytes, of which the `last` are kept."""

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
    """End a program that still runs, with all that it started."""
    if process.poll() is not None:
        return
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _bytes_in(folder: Path) -> int:
    total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(at, name)).st_size  # noqa: PTH116, PTH118
    return total
