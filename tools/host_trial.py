"""Try a provider at a real host once: python tools/host_trial.py SPEC [--memories N] [--large MIB] [--rounds N]

Three devices in a temporary folder share a new vault at SPEC, by the commands of ipfsmem, each a process of its own. Prints a
Markdown table of what was checked; ends with 1 if anything did not hold. docs/internals/host-trial.md describes it.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import secrets
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ipfsmem.errors import IpfsmemError
from ipfsmem.provider.contract import require_address, shown_spec

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

#: Characters of one large memory; incompressible, so that packs are large.
_LARGE: Final = 100_000
#: Steps of `provider test` whose text is reported because it differs by host.
_TOLD: Final = ("host", "overall")
#: Programs whose versions a report names.
_PROGRAMS: Final = {"git": "git", "sftp": "ssh", "rclone": "rclone"}


class Failed(Exception):
    """A command failed. `out`: its output."""

    def __init__(self, text: str, out: str = "") -> None:
        super().__init__(text)
        self.out = out


class Row(NamedTuple):
    """One line of the table."""

    check: str
    held: bool
    seconds: float
    text: str


class Device:
    """One device: a home folder, and the commands that run in it."""

    def __init__(self, home: Path, spec: str, passphrase: str) -> None:
        self.home, self._spec = home, spec
        self._environment = {
            **os.environ,
            "IPFSMEM_HOME": str(home),
            "IPFSMEM_PASSPHRASE": passphrase,
            "IPFSMEM_PROVIDER": spec,
        }

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start a command of ipfsmem that prints JSON."""
        return subprocess.Popen(
            [sys.executable, "-m", "ipfsmem", *args, "--json"],
            env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *args: str) -> Any:
        """Run a command, and return its JSON. Raises Failed."""
        return finished(self.start(*args), args[0])

    def write(self, bodies: dict[str, str]) -> None:
        """Write memories, without network access."""
        with warnings.catch_warnings(), self._open() as memory:
            warnings.simplefilter("ignore")  # advice about random texts
            for key, body in bodies.items():
                memory.write(key, body)

    def bodies(self) -> dict[str, str]:
        """Return the texts of the local memories by key."""
        with self._open() as memory:
            found = {one.key: memory.read(one.key) for one in memory.list()}
            return {key: text.file.body for key, text in found.items() if text is not None}

    def _open(self) -> Memory:
        from ipfsmem.memory import Memory

        return Memory.load(home=self.home, passphrase=self._environment["IPFSMEM_PASSPHRASE"])


def finished(process: subprocess.Popen[str], what: str) -> Any:
    """Wait for a command, and return its JSON. Raises Failed with its error and the next step."""
    out, err = process.communicate()
    if process.returncode:
        said = err[err.find("{\n") :] if "{\n" in err else ""
        try:
            error = json.loads(said)["error"]
            text = f"{error['message']} {error['hint']}".strip()
        except (ValueError, KeyError, TypeError):
            text = err.strip()[-400:]
        raise Failed(f"{what} ended with {process.returncode}: {text}", out)
    return json.loads(out)


def all_finished(processes: Sequence[subprocess.Popen[str]], what: str) -> None:
    """Wait for every command. Raises Failed for the first that failed."""
    failures = []
    for process in processes:
        try:
            finished(process, what)
        except Failed as error:
            failures.append(error)
    if failures:
        raise failures[0]


class Trial:
    """The checks of one provider, in order."""

    def __init__(self, folder: Path, spec: str, *, memories: int, large: int, rounds: int) -> None:
        passphrase = secrets.token_urlsafe(18)
        self.a, self.b, self.c = (
            Device(folder / name, spec, passphrase) for name in ("laptop", "phone", "tablet")
        )
        self._wallet, self._spec = str(folder / "wallet.json"), spec
        self._memories, self._large, self._rounds = memories, large, rounds
        self._written: dict[str, str] = {}
        self.rows: list[Row] = []
        #: Whether something was stored at the provider.
        self.stored = False

    def run(self) -> bool:
        """Run every check; those that depend on a failed one are skipped. Return whether all held."""
        if not self._row("provider test", self._test):
            return False
        if self._spec.startswith("git:") and "#" not in self._spec:
            self._row("provider test with #refs/ipfsmem/trial", self._test_ref)
        if not self._row("create a vault", self._create):
            return False
        steps: Sequence[tuple[str, Callable[[], str]]] = (
            (f"first publish of {self._memories:,} memories", self._first),
            ("publish one change", self._change),
            ("sync without changes", self._idle),
            ("restore on a second device", self._restore),
            (f"two devices at once, {self._rounds} times", self._race),
            (f"publish {self._large} MiB of large memories", self._big),
            ("read every block back", self._check),
            ("compact", self._compact),
            ("restore on a third device", self._restore_again),
        )
        held = [self._row(name, work) for name, work in steps]
        return all(held)

    def _row(self, name: str, work: Callable[[], str]) -> bool:
        began = time.monotonic()
        try:
            text, held = work(), True
        except (Failed, IpfsmemError, OSError, ValueError, KeyError) as error:
            text, held = str(error) or type(error).__name__, False
        self.rows.append(Row(name, held, time.monotonic() - began, text))
        print(f"{'ok    ' if held else 'FAILED'} {self.rows[-1].seconds:7.1f} s  {name}  {text}", file=sys.stderr, flush=True)  # fmt: skip
        return held

    def _test(self, spec: str = "") -> str:
        try:
            tried = self.a.run("provider", "test", spec or self._spec)
        except Failed as error:
            steps = json.loads(error.out)["steps"] if error.out.strip() else []
            self.stored |= any(one["outcome"] == "ok" for one in steps)
            raise
        self.stored = True
        steps = [one for one in tried["steps"] if one["outcome"] == "ok"]
        return "; ".join([f"{len(steps)} steps", *(one["text"] for one in steps if one["what"] in _TOLD)])

    def _test_ref(self) -> str:
        return self._test(f"{self._spec}#refs/ipfsmem/trial")

    def _create(self) -> str:
        self.a.run("init", "--new-wallet", self._wallet, "--label", "laptop", "--no-recovery")
        return ""

    def _write(self, device: Device, bodies: dict[str, str]) -> None:
        device.write(bodies)
        self._written |= bodies

    def _sync(self, device: Device) -> str:
        report = device.run("sync")["report"]
        return f"{report['bytes_sent']:,} bytes sent, {report['bytes_received']:,} received"

    def _first(self) -> str:
        self._write(self.a, {f"first-{number}": f"Memory {number}: {secrets.token_hex(400)}" for number in range(self._memories)})  # fmt: skip
        return self._sync(self.a)

    def _change(self) -> str:
        self._write(self.a, {"change": secrets.token_hex(400)})
        return self._sync(self.a)

    def _idle(self) -> str:
        report = self.a.run("sync")["report"]
        if report["published"] or report["bytes_sent"]:
            raise Failed(f"a sync without changes sent {report['bytes_sent']:,} bytes")
        return f"{report['bytes_received']:,} bytes received"

    def _restore(self) -> str:
        return self._restore_on(self.b)

    def _restore_again(self) -> str:
        return self._restore_on(self.c)

    def _restore_on(self, device: Device) -> str:
        device.run("recover", "--wallet", self._wallet, "--label", device.home.name)
        return self._compare(device)

    def _race(self) -> str:
        for number in range(self._rounds):
            both = (self.a, self.b)
            for device in both:
                self._write(device, {f"race-{number}-{device.home.name}": secrets.token_hex(200)})
            all_finished([device.start("sync") for device in both], "sync at the same time as another device")
        for device in (self.a, self.b, self.a):
            device.run("sync")
        self._compare(self.a)
        return self._compare(self.b)

    def _big(self) -> str:
        count = max(1, self._large * 1024 * 1024 // _LARGE)
        bodies = {f"large-{number}": secrets.token_urlsafe(_LARGE * 3 // 4) for number in range(count)}
        self._write(self.a, bodies)
        return self._sync(self.a)

    def _compare(self, device: Device) -> str:
        there = device.bodies()
        if lost := sorted(key for key, body in self._written.items() if there.get(key) != body):
            raise Failed(
                f"{len(lost)} of {len(self._written)} memories are lost or changed, for instance {lost[0]}"
            )
        return f"{len(there):,} memories"

    def _check(self) -> str:
        checked = self.a.run("provider", "check", "--full")
        return "; ".join(f"{one['state']}, {one['read']:,} of {one['total']:,} blocks" for one in checked["providers"])  # fmt: skip

    def _compact(self) -> str:
        self.a.run("vault", "compact")
        self.a.run("sync")
        return self._compare(self.a)


def versions(spec: str) -> str:
    """Return the versions that a report names."""
    found = [f"ipfsmem {importlib.metadata.version('ipfsmem')}", f"Python {platform.python_version()}", platform.system()]  # fmt: skip
    if program := _PROGRAMS.get(spec.partition(":")[0]):
        try:
            asked = subprocess.run([program, "-V" if program == "ssh" else "version"], capture_output=True, text=True, check=False)  # fmt: skip
        except OSError:
            found.append(f"{program} is not installed")
        else:
            found.append((asked.stdout or asked.stderr).partition("\n")[0])
    return ", ".join(found)


def table(spec: str, rows: Sequence[Row]) -> str:
    """Return the report as Markdown, without the address."""
    lines = [f"{spec.partition(':')[0]}, {datetime.now(UTC):%d %B %Y}: {versions(spec)}", "", "| check | held | seconds | |", "| --- | --- | --- | --- |"]  # fmt: skip
    for row in rows:
        text = row.text.replace("|", "\\|")
        lines.append(f"| {row.check} | {'yes' if row.held else '**no**'} | {row.seconds:.1f} | {text} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Try one provider. Returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "spec", help="a new, empty folder, bucket prefix or private repository, for this trial alone"
    )
    parser.add_argument("--memories", type=int, default=500)
    parser.add_argument("--large", type=int, default=20, metavar="MIB")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args(arguments)
    try:
        require_address(asked.spec)
    except IpfsmemError as error:
        print(f"{error}\n{error.hint}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        trial = Trial(Path(folder), asked.spec, memories=asked.memories, large=asked.large, rounds=asked.rounds)  # fmt: skip
        held = trial.run()
    print(table(asked.spec, trial.rows))
    if trial.stored:
        print(f"\nDelete the data of the trial at {shown_spec(asked.spec)} by hand.", file=sys.stderr)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
