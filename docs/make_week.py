"""Write docs/guides/week.md: a week of an agent's life on two devices, played by the commands, and what they printed. A test compares.

The clock is one that only this module moves, and what is drawn at random follows from seeds, so each run prints the same. Everything
else is real: two homes, a wallet, and a folder as the provider between them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from ipfsmem.device.replica import Environment
from ipfsmem.testing.clock import MockClock, SeededRandom
from tests.support.cli_lab import KEY, Cli
from tests.support.device_lab import no_chance_in_boxes

TARGET: Final = Path(__file__).with_name("guides") / "week.md"
SAMPLE: Final = Path(__file__).parents[1] / "ipfsmem" / "data" / "sample.json"
_DAY: Final = re.compile(r"## \w+, (\d{4}-\d\d-\d\d)$")
_COMMAND: Final = re.compile(r"(?P<device>laptop|desktop|client)[$>] (?P<line>.+)")
_SEEN: Final = re.compile(r"--seen ([0-9a-f]+)")
#: What comes of the machine and its libraries, and of keys that nobody can choose.
_VARIES: Final = re.compile(
    r"\b\d[\d.,]* (?:bytes|kB|MB|m?s(?:\.$)?)(?!\w)|\bbafy[a-z2-7]{50,}|\b[0-9a-f]{16}\b"
)


class Week:
    """The devices by name, the clock that both read, and the page as far as it is written."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.clock = MockClock()
        self._patch = patch
        self._devices = {name: Cli(folder / name, patch) for name in ("laptop", "desktop")}
        self._commands = 0
        self.codes: list[int] = []

    def run(self, device: str, line: str) -> str:
        """What a command prints, one minute after the one before. A line that begins with `echo` gives it its input."""
        self.clock.advance(60)
        self._commands += 1
        said, _, command = line.rpartition(" | ")
        stdin = "\n".join(shlex.split(said)[1:]).encode() + b"\n" if said else b""
        arguments = shlex.split(command)[1:]
        wallet = arguments[0] == "init" and "local" not in arguments
        with self._world(f"{device} {self._commands}", "" if "local" in arguments else "stick"):
            done = self._devices[device](*arguments, stdin=stdin, key=KEY if wallet else "")
        self.codes.append(done.code)
        return done.out + done.err + (f"(exit code {done.code})\n" if done.code else "")

    @contextmanager
    def _world(self, seed: str, provider: str = "stick") -> Iterator[None]:
        with self._patch.context() as patch:
            patch.setattr(Environment.__init__, "__defaults__", (lambda: self.clock.ms, SeededRandom(seed)))
            patch.setenv("IPFSMEM_PROVIDER", provider)
            yield

    def ask(self, device: str, *arguments: str) -> Any:
        """What a command says as JSON, at this moment of the week."""
        with self._world(f"{device} is asked"):
            return self._devices[device].ok(*arguments).json

    def morning(self, day: date) -> None:
        """Let time pass until eight o'clock of a day."""
        then = datetime(day.year, day.month, day.day, 8, tzinfo=UTC)
        self.clock.advance((then - self.clock.now).total_seconds())


@contextmanager
def week(folder: Path) -> Iterator[Week]:
    """A week that nothing was done in, with all its files in a folder that is empty."""
    with pytest.MonkeyPatch.context() as patch, no_chance_in_boxes():
        (folder / "stick").mkdir()
        shutil.copy(SAMPLE, folder)
        patch.chdir(folder)
        patch.setenv("IPFSMEM_CONFIG", os.devnull)
        patch.setenv("IPFSMEM_EMBEDDINGS", "off")
        yield Week(folder, patch)


def play(page: str, played: Week) -> str:
    """The page with what its commands print by now."""
    written: list[str] = []
    inside, seen = False, ""
    for line in page.splitlines():
        fence = line.startswith("```")
        inside ^= fence
        command = _COMMAND.match(line) if inside else None
        if inside and not fence and command is None:
            continue  # what was printed the last time
        written.append(line)
        if day := _DAY.match(line):
            played.morning(date.fromisoformat(day[1]))
        if command is not None:
            out = played.run(command["device"], command["line"].replace("SEEN", seen))
            seen = found[-1] if (found := _SEEN.findall(out)) else seen
            written += [
                _VARIES.sub("...", one.rstrip().replace(str(played.folder), "~")) for one in out.splitlines()
            ]
    return "\n".join(written) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as base, week(Path(base)) as played:
        TARGET.write_text(play(TARGET.read_text("utf-8"), played), "utf-8")
