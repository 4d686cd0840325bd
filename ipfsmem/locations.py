"""Where a memory lies on this device, by its name, without a look into any settings: what a hook needs of `config.py`, in a fraction
of the time."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from ipfsmem.errors import ConfigError
from ipfsmem.lazy_pattern import lazy_pattern

DEFAULT_NAMESPACE: Final = "default"
#: In the folder of a vault: held by the process that makes vectors.
VECTORS_LOCK: Final = "vectors.lock"
#: The same for the background sync.
BACKGROUND_LOCK: Final = "background.lock"
_is_namespace = lazy_pattern(r"[a-z0-9][a-z0-9_-]{0,63}").fullmatch

#: Where Linux has settings and data: the variable of the XDG Base Directory Specification, and the folder of the home without it.
_XDG: Final = {"config": ("XDG_CONFIG_HOME", ".config"), "data": ("XDG_DATA_HOME", ".local/share")}


def platform_folder(kind: str) -> Path:
    """Our folder where this system has settings ("config") or data. Raises RuntimeError where it names no home."""
    if sys.platform == "linux" and "ANDROID_ROOT" not in os.environ:
        variable, usual = _XDG[kind]
        named, home = os.environ.get(variable, ""), os.environ.get("HOME", "")
        if os.path.isabs(named):  # noqa: PTH117 - a path that is empty is none
            return Path(named) / "ipfsmem"
        if os.path.isabs(home):  # noqa: PTH117
            return Path(home) / usual / "ipfsmem"
    import platformdirs  # 6 ms, for what no two systems but Linux have in common

    return Path(
        platformdirs.user_config_dir("ipfsmem") if kind == "config" else platformdirs.user_data_dir("ipfsmem")
    )


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path with the home that `~` or `~NAME` at its beginning means. Raises ConfigError where the system names none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise no_home(f"{os.fspath(path)} cannot be found: ") from None


def no_home(why: str = "") -> ConfigError:
    """The error of a system that names no home."""
    return ConfigError(
        f"{why}the system names no home folder for this user",
        hint="Set HOME to an absolute path, or pass --home DIR (in Python: home=).",
    )


def is_namespace(name: str) -> bool:
    """Whether this can be the name of a memory on this device."""
    return bool(_is_namespace(name))


def namespace_folder(home: Path, namespace: str) -> Path:
    """The directory of one memory. Raises ConfigError for a name that cannot be one."""
    if not _is_namespace(namespace):
        raise ConfigError(
            f"{namespace!r} is not a valid vault name",
            hint="A vault name is 1 to 64 characters of a-z, 0-9, _ and -, starting with a letter or digit.",
        )
    return home / namespace
