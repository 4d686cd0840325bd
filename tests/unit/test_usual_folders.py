"""Default folders of settings and vaults: those of the package platformdirs, without its cost on Linux."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import platformdirs
import pytest

from ipfsmem import config

VARIABLES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the variables are those of Linux")
@pytest.mark.parametrize(
    "given", [*product((None, "", "relative", "/absolute", "/with space/.."), repeat=len(VARIABLES))]
)
def test_default_folders_equal_those_of_platformdirs(
    monkeypatch: pytest.MonkeyPatch, given: tuple[str | None, ...]
) -> None:
    for name, value in zip(VARIABLES, given, strict=True):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    monkeypatch.delenv("IPFSMEM_HOME", raising=False)
    assert config.home(None, config.Settings()) == Path(platformdirs.user_data_dir("ipfsmem"))
    assert config.usual_settings_file() == Path(platformdirs.user_config_dir("ipfsmem")) / "config.toml"
