"""Paths of vaults on this device, by name, without reading settings: the part of `config.py` that a hook needs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from ipfsmem.errors import ConfigError

DEFAULT_VAULT: Final = "default"
#: Environment variable with an agent key: a process that has it opens that key's vault, and touches no home.
KEY_VARIABLE: Final = "IPFSMEM_KEY"
#: Lock file in the folder of a vault, held by the process that computes embeddings.
VECTORS_LOCK: Final = "vectors.lock"
#: Lock file of the background sync.
BACKGROUND_LOCK: Final = "background.lock"
_FIRST: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_LATER: Final = _FIRST | {"_", "-"}

#: The XDG variable of settings and data on Linux, and the default folder below the home.
_XDG: Final = {"config": ("XDG_CONFIG_HOME", ".config"), "data": ("XDG_DATA_HOME", ".local/share")}


def is_name(s: str) -> bool:
    """Tell whether `s` has the form of keys, scopes and vault names: `[a-z0-9][a-z0-9_-]{0,63}`."""
    # Without a pattern, which every command would compile.
    return 0 < len(s) <= 64 and s[0] in _FIRST and _LATER.issuperset(s)


def platform_folder(kind: str) -> Path:
    """Return our folder for settings ("config") or data on this system. Raises RuntimeError if it names no home."""
    if sys.platform == "linux" and "ANDROID_ROOT" not in os.environ:
        variable, usual = _XDG[kind]
        path, home = os.environ.get(variable, ""), os.environ.get("HOME", "")
        if os.path.isabs(path):  # noqa: PTH117 - a path that is empty is none
            return Path(path) / "ipfsmem"
        if os.path.isabs(home):  # noqa: PTH117
            return Path(home) / usual / "ipfsmem"
    import platformdirs  # 6 ms, needed on other systems only

    return Path(
        platformdirs.user_config_dir("ipfsmem") if kind == "config" else platformdirs.user_data_dir("ipfsmem")
    )


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path with a leading `~` or `~NAME` expanded. Raises ConfigError if the system names no home."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise no_home(f"{os.fspath(path)} cannot be found: ") from None


def agent_key_text() -> str:
    """Return the agent key in the environment; empty without one."""
    return os.environ.get(KEY_VARIABLE, "").strip()


def no_home(why: str = "") -> ConfigError:
    """Return the error for a system that names no home folder."""
    return ConfigError(
        f"{why}the system names no home folder for this user",
        hint="Set HOME to an absolute path, or pass --home DIR (in Python: home=).",
    )


def is_vault_name(name: str) -> bool:
    """Tell whether a text is a valid vault name."""
    return is_name(name)


def vault_folder(home: Path, vault_name: str) -> Path:
    """Return the directory of one vault. Raises ConfigError for an invalid name."""
    if not is_name(vault_name):
        raise ConfigError(
            f"{vault_name!r} is not a valid vault name",
            hint="A vault name is 1 to 64 characters of a-z, 0-9, _ and -, starting with a letter or digit.",
        )
    return home / vault_name
