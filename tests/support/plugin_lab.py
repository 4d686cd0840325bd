"""Plugins that are really installed: a package with its metadata in a folder on `sys.path`, as pip leaves it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import NamedTuple

import pytest


class Lab(NamedTuple):
    """Where packages are installed, and the settings file."""

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
        """Name them in the settings file. A call has a minute, so that a loaded machine never ends one, unless `more` says less."""
        limit = "" if "seconds" in more else "seconds = 60\n"
        self.settings.write_text(f'[plugins]\non = "{", ".join(names)}"\n{limit}{more}')


def plugin_lab(base: Path, patch: pytest.MonkeyPatch) -> Lab:
    """A lab with nothing installed and nothing switched on."""
    folder, settings = base / "site", base / "settings.toml"
    folder.mkdir()
    settings.write_text("")
    patch.syspath_prepend(str(folder))
    patch.setenv("IPFSMEM_CONFIG", str(settings))
    return Lab(folder, settings, patch)
