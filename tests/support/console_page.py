"""Extracts and runs the console blocks of documentation pages, and compares their output."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support import forked_program

#: A command and its expected output lines; `...` in them matches any text.
Step = tuple[str, list[str]]
#: The program as users start it; slower than a call of `forks`.
PROGRAM = f"{sys.executable} -m ipfsmem.cli"


def blocks(page: str) -> Iterator[list[Step]]:
    """Yield the steps of each console block."""
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        steps: list[Step] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
        yield steps


@contextlib.contextmanager
def forks(folder: Path) -> Iterator[str]:
    """Yield a shell command that calls an already started program."""
    path = folder / "wire"
    with subprocess.Popen(
        [sys.executable, forked_program.__file__, str(path)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield f"{sys.executable} -I -S {forked_program.__file__} {path}"
        process.kill()


def play(steps: Sequence[Step], folder: Path, program: str) -> None:
    """Run all commands in one shell and compare the output of each; each must exit with 0."""
    script = "".join(f'{command}\necho "@@ $?"\n' for command, _ in steps)
    bin_, place = folder / "bin", folder / "place"
    bin_.mkdir()
    place.mkdir()
    for name, run in (("ipfsmem", program), ("python", sys.executable)):
        (bin_ / name).write_text(f'#!/bin/sh\nexec {run} "$@"\n')
        (bin_ / name).chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("IPFSMEM_")}
    done = subprocess.run(
        ["bash", "-c", f"exec 2>&1\n{script}"], cwd=place, capture_output=True, timeout=600,
        env={**environment, "PATH": f"{bin_}:{environment['PATH']}", "HOME": str(folder),
             "IPFSMEM_CONFIG": os.devnull, "IPFSMEM_EMBEDDINGS": "off"},
    )  # fmt: skip
    said = re.split(r"@@ (\d+)\n", done.stdout.decode())
    assert len(said) == 2 * len(steps) + 1, done.stdout.decode()[-2000:]
    for (command, wanted), output, code in zip(steps, said[::2], said[1::2], strict=False):
        assert code == "0", f"{command}\n{output}"
        pattern = re.escape("\n".join(wanted)).replace(r"\.\.\.", r"[\s\S]*?")
        assert re.fullmatch(pattern + r"\s*", output), f"{command}\n{output}\n-- is not --\n" + "\n".join(
            wanted
        )
