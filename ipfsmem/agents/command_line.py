"""Determine and check the command by which other programs start ipfsmem.

Programs with a window are started without the PATH of a shell, so the command is an absolute path. Links are not
resolved: `~/.local/bin/ipfsmem`, created by pipx and `uv tool`, still leads to the program after an upgrade. A
program in a cache (`uvx`, `pipx run`) disappears when the cache is cleaned, and is refused.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec

from ipfsmem import config as configuration
from ipfsmem.errors import ConfigError, UsageError

#: Caches in which `uvx` and `pipx run` store programs.
_CACHES: Final = (("uv", "archive-v0"), ("uv", "environments-v2"), ("pipx", ".cache"), (".cache", "pipx"))
_PATIENCE: Final = 30.0


class Launch(msgspec.Struct, frozen=True):
    """The words that start ipfsmem, and the options that select a vault other than the default."""

    words: tuple[str, ...]
    memory: tuple[str, ...] = ()

    def server(self) -> tuple[str, ...]:
        """Return the command of the MCP server."""
        return (*self.words, "serve", "mcp", "--sync", *self.memory)

    def hook(self, event: str, program: str) -> str:
        """Return the command of a hook, as a shell line."""
        mark = hook_mark(event, program).split()
        return _line((*self.words, *mark, *self.memory))


def hook_mark(event: str, program: str) -> str:
    """Return the words that identify the command of a hook as ours."""
    return f"hook {event} --program {program}"


def launch(vault_name: str, home: Path, environment: Mapping[str, str] | None = None) -> Launch:
    """Return the command that starts this ipfsmem for a vault. Raises ConfigError if it does not start, UsageError without the
    extra."""
    words = program_words(os.environ if environment is None else environment)
    if importlib.util.find_spec("mcp") is None:
        raise UsageError(
            "the server for programs needs the package mcp, which is not installed here",
            hint="Install it as you installed ipfsmem: pip install 'ipfsmem[mcp]', uv tool install 'ipfsmem[mcp]' or "
            "pipx inject ipfsmem mcp; from a checkout '.[mcp]'.",
        )
    check_words(words)
    return Launch(words, which_memory(vault_name, home))


def program_words(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words that start this ipfsmem. Raises ConfigError for a program in a cache."""
    name = "ipfsmem.exe" if os.name == "nt" else "ipfsmem"
    called = Path(sys.argv[0])
    sibling = Path(sys.executable).with_name(name)
    on_path = shutil.which("ipfsmem", path=environment.get("PATH"))
    tried = [called] if called.name.lower() in ("ipfsmem", "ipfsmem.exe") else []
    tried.append(sibling)
    if on_path and Path(on_path).is_absolute():  # a PATH with "." in it depends on the working directory
        tried.append(Path(on_path))
    cached = False
    for path in tried:
        if not path.is_file() or not os.access(path, os.X_OK):
            continue
        where = Path(os.path.abspath(path))  # noqa: PTH100 - a link stays one
        if _is_cached(where):
            cached = True
            continue
        return (where.as_posix(),)
    if cached:
        raise ConfigError(
            "this program runs from a cache that may be cleaned, and programs could then not start it",
            hint="Install it, then connect with that one: uv tool install 'ipfsmem[mcp]', or pipx install 'ipfsmem[mcp]'.",
        )
    # -P: it starts in the folder of a project, where nothing may shadow our modules.
    return (Path(sys.executable).as_posix(), "-P", "-m", "ipfsmem")


def _is_cached(path: Path) -> bool:
    """Tell whether a path, or the target of a link, is in a cache of `uvx` or `pipx run`."""
    ways = (path.parts, Path(os.path.realpath(path)).parts)
    return any(pair in _CACHES for parts in ways for pair in pairwise(parts))


def check_words(words: tuple[str, ...]) -> None:
    """Raise ConfigError unless the command prints the version."""
    try:
        done = subprocess.run([*words, "--version"], capture_output=True, timeout=_PATIENCE, check=False)
        output = done.stdout.decode("utf-8", "replace").strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        output, done = str(error), None
    if done is None or done.returncode or not output.startswith("ipfsmem "):
        raise ConfigError(
            f"{_line(words)} --version has an unexpected answer: {output[:200] or 'it prints nothing'}",
            hint="Reinstall it, then try again.",
        )


def usual_home() -> Path:
    """Return the default home for a program without this shell's environment variables."""
    plain = configuration.settings({})
    if plain.home is None and os.environ.get("XDG_DATA_HOME") and sys.platform not in ("darwin", "win32"):
        return configuration.user_home() / ".local" / "share" / "ipfsmem"
    return configuration.home(None, plain)


def which_memory(vault_name: str, home: Path) -> tuple[str, ...]:
    """Return --vault and --home, if a program without this shell's environment variables would find another vault."""
    plain = configuration.settings({})
    words: tuple[str, ...] = ()
    if vault_name != (plain.vault or configuration.DEFAULT_VAULT):
        words += ("--vault", vault_name)
    usual = configuration.home(None, plain)
    if os.environ.get("XDG_DATA_HOME") or Path(os.path.abspath(home)) != usual:  # noqa: PTH100
        words += ("--home", Path(os.path.abspath(home)).as_posix())  # noqa: PTH100
    return words


def _line(words: tuple[str, ...]) -> str:
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
