"""Installed plugins: a package with metadata in a folder on `sys.path`, as pip installs it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import NamedTuple

import pytest


class Lab(NamedTuple):
    """The folder of installed packages, and the settings file."""

    folder: Path
    settings: Path
    patch: pytest.MonkeyPatch

    def install(
        self,
        name: str,
        code: str,
        *,
        package: str = "",
        value: str = "Plugin",
        group: str = "ipfsmem.plugins",
    ) -> None:
        """A package with one plugin; `code` is its module."""
        package = package or f"{name}_package"
        (self.folder / f"{package}.py").write_text(code, "utf-8")
        info = self.folder / f"{package}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {package}:{value}\n")
        importlib.invalidate_caches()

    def switch_on(self, *names: str, more: str = "") -> None:
        """Enable plugins in the settings file. A call may take a minute, which a loaded machine never
        exceeds, unless `more` sets less."""
        limit = "" if "seconds" in more else "seconds = 60\n"
        self.settings.write_text(f'[plugins]\non = "{", ".join(names)}"\n{limit}{more}')


def plugin_lab(base: Path, patch: pytest.MonkeyPatch) -> Lab:
    """Return a lab with nothing installed or enabled."""
    folder, settings = base / "site", base / "settings.toml"
    folder.mkdir()
    settings.write_text("")
    patch.syspath_prepend(str(folder))
    patch.setenv("IPFSMEM_CONFIG", str(settings))
    return Lab(folder, settings, patch)
