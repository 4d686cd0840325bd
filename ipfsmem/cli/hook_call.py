"""A hook as `connect` writes it into a program's settings, run without the command line, which loads slower than most hooks
run. Any other call of `hook`, and every invalid one, is left to `cli/app.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ipfsmem.cli import flush_output
from ipfsmem.locations import DEFAULT_VAULT, KEY_VARIABLE, expanded, platform_folder

_EVENTS: Final = frozenset(["session-start", "prompt", "stop", "session-end", "pre-compact"])
#: Events that read a memory.
_READING: Final = ("session-start", "prompt")
_OPTIONS: Final = {
    "--program": "program",
    "--vault": "vault_name",
    "--namespace": "vault_name",
    "-n": "vault_name",
    "--home": "home",
}
#: The event, the program, the vault and the home of a hook call.
HookCall = tuple[str, str, str, Path]
#: With one of these, there are settings to read.
_SETTINGS: Final = ("IPFSMEM_CONFIG", "IPFSMEM_EMBEDDINGS", "IPFSMEM_NAMESPACE")


def plain_call(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> HookCall | None:
    """Return the hook call of these arguments, None if only the command line can parse them."""
    if len(arguments) % 2 or arguments[:1] != ["hook"] or arguments[1] not in _EVENTS:
        return None
    if None in (sys.stdin, sys.stdout, sys.stderr) or environment.get("IPFSMEM_DEBUG"):
        return None
    if environment.get(KEY_VARIABLE):
        return None
    options: dict[str, str] = {}
    for option, value in zip(arguments[2::2], arguments[3::2], strict=True):
        name = _OPTIONS.get(option, "")
        if not name or name in options or not value.strip() or value.startswith("-"):
            return None
        options[name] = value
    vault_name, home = options.get("vault_name"), options.get("home")
    try:
        if (vault_name is None or home is None) and _has_settings(environment):
            from ipfsmem.cli.light_imports import load_msgspec

            load_msgspec()
            from ipfsmem.config import chosen_vault, settings

            config = settings(environment)
            vault_name, home = chosen_vault(vault_name, config, environment), home or config.home
        vault_name = vault_name or environment.get("IPFSMEM_VAULT") or DEFAULT_VAULT
        home = home or environment.get("IPFSMEM_HOME")
        place = expanded(home) if home else platform_folder("data")
    except Exception:
        return None  # the command line reports it
    return arguments[1], options.get("program", ""), vault_name, place


def _has_settings(environment: Mapping[str, str]) -> bool:
    if any(environment.get(name) for name in _SETTINGS):
        return True
    try:
        (platform_folder("config") / "config.toml").stat()
    except FileNotFoundError:
        return False
    return True


def run_plain(call: HookCall) -> int:
    """Run the hook; 0, whatever happens."""
    from ipfsmem.ending_signals import ended_as_by_ctrl_c

    with ended_as_by_ctrl_c():
        try:
            wrong = run(*call, passphrase=os.environ.get("IPFSMEM_PASSPHRASE") or None)
        except KeyboardInterrupt:
            wrong = "interrupted; nothing that was acknowledged is lost"
    if wrong:
        _say(wrong)
    flush_output()
    return 0


def _say(wrong: str) -> None:
    try:
        sys.stderr.write(f"ipfsmem: {wrong}\n")
    except OSError:
        pass  # stderr is closed


def run(event: str, program: str, vault_name: str, home: Path, *, passphrase: str | None) -> str:
    """Run a hook on this process's standard streams. Return its error, empty on success."""
    if event in _READING:
        from ipfsmem.cli.light_imports import load_msgspec

        load_msgspec()
    from ipfsmem.agents import hooks
    from ipfsmem.device.wall_clock import now_ms

    def start_sync(vault_name: str, home: Path, folder: str) -> None:
        from ipfsmem.agents import background_start  # a prompt starts none

        background_start.start(vault_name, home, folder, passphrase=passphrase)

    return hooks.run_hook(
        event,
        program,
        vault_name,
        home,
        stdin=sys.stdin.buffer,
        stdout=sys.stdout.buffer,
        now=now_ms,
        start_sync=start_sync,
        passphrase=passphrase,
        give_up=lambda: os._exit(0),
    )
