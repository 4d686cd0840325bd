"""Compare the stages of `.ci/run`: `python -m tests.support.stages` ends with 1 if a test is in none of them.

It collects the README's test command and the run at length, which excludes what the first passed, and
assumes that all of it passed. Run it with the extras installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support import passed_before


def collected(profile: str, passed: Path | None = None) -> set[str]:
    """Return the ids that a run of all tests has."""
    environment = {**os.environ, "HYPOTHESIS_PROFILE": profile}
    environment |= {passed_before.SKIP: str(passed)} if passed else {}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-o",
        "addopts=--import-mode=importlib",
    ]
    lines = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {line for line in lines if "::" in line}


def main() -> int:
    """Print the number of tests per stage, and the tests in no stage."""
    first, everything = collected("dev"), collected("ci")
    with tempfile.TemporaryDirectory() as folder:
        passed = Path(folder) / "passed"
        passed.write_text("".join(f"{one}\n" for one in sorted(first)), encoding="utf-8")
        second = collected("ci", passed)
    neither = sorted(everything - second - first)
    print(
        f"README's command: {len(first)}; at length: {len(second)}, of which {len(second - first)} only there"
    )
    print(f"in no stage: {len(neither)}", *neither, sep="\n")
    return 1 if neither or not first or not second - first else 0


if __name__ == "__main__":
    sys.exit(main())
