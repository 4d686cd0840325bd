"""Lock the newest versions of the agent programs: `python tests/interop/programs/bump.py`.

The lock file omits optional packages: the programs run without them, and a registry that lacks one for
another system would fail `npm ci`. `KEPT` keeps its version."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: A name of ours, and the suffix of the program's version.
SUFFIXES = {"codex": "-linux-x64"}
KEPT = ("claude-code-pinned",)
#: Programs whose newest version needs a newer Node than the tests have: the last supported version.
HELD_BACK = {"@qwen-code/qwen-code": "0.15.10"}


def newest(name: str, wanted: str) -> str:
    """Return the entry of a program in package.json."""
    if name in KEPT:
        return wanted
    package = wanted.removeprefix("npm:").rpartition("@")[0] if wanted.startswith("npm:") else name
    version = HELD_BACK.get(package) or npm("view", package, "version").strip()
    found = version.removesuffix(SUFFIXES.get(name, "")) + SUFFIXES.get(name, "")
    return f"npm:{package}@{found}" if wanted.startswith("npm:") else found


def without_optional(lock: dict[str, Any]) -> dict[str, Any]:
    """Return a lock file without optional packages."""
    packages = {}
    for path, one in lock["packages"].items():
        if not (one.get("optional") or one.get("devOptional")):
            packages[path] = {key: value for key, value in one.items() if key != "optionalDependencies"}
    return {**lock, "packages": packages}


def npm(*arguments: str) -> str:
    return subprocess.run(["npm", *arguments], cwd=HERE, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> int:
    manifest = HERE / "package.json"
    said = json.loads(manifest.read_text("utf-8"))
    said["dependencies"] = {name: newest(name, wanted) for name, wanted in said["dependencies"].items()}
    manifest.write_text(json.dumps(said, indent=2) + "\n", "utf-8")
    npm("install", "--package-lock-only", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund")
    lock = HERE / "package-lock.json"
    lock.write_text(
        json.dumps(without_optional(json.loads(lock.read_text("utf-8"))), indent=2) + "\n", "utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
