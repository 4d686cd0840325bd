"""The service under a real user manager: systemd starts it, it syncs, it is stopped, and nothing remains.

The manager runs in its own mount namespace, because systemd requires a booted machine; that needs root and
Linux."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ipfsmem.device.agent_notes import syncing_notes
from ipfsmem.memory import Memory
from tests.interop.counterparts import missing

_SYSTEMD = next(
    (path for path in (Path("/usr/lib/systemd/systemd"), Path("/lib/systemd/systemd")) if path.exists()), None
)
_PLAY = """
mount -t tmpfs none /run/systemd && mkdir -p /run/systemd/system || exit 77
{systemd} --user >"$BASE/systemd.log" 2>&1 &
manager=$!
trap 'kill $manager; wait $manager' EXIT
for i in $(seq 300); do systemctl --user is-system-running >/dev/null 2>&1 && break; sleep 0.1; done
systemctl --user is-system-running || exit 77
set -e
{ipfsmem} service install --every 1s
{ipfsmem} service install --every 1s
for i in $(seq 1500); do test -e "$IPFSMEM_HOME/default/syncing.json" && break; sleep 0.1; done
{ipfsmem} service status
systemctl --user show -p ActiveState -p SubState -p Nice -p NRestarts ipfsmem-default* | cat
{ipfsmem} service uninstall
systemctl --user list-units --all --no-legend 'ipfsmem*' | cat
echo ended
"""


def test_systemd_service_syncs_and_is_removed_completely(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if _SYSTEMD is None or shutil.which("unshare") is None or sys.platform != "linux" or os.geteuid() != 0:
        missing("a user manager of systemd needs Linux, root and unshare here")
    base = tmp_path / 'a 100% "home" ä'
    home, settings = base / "memories", base / "settings"
    runtime = tmp_path_factory.mktemp("run")  # short: the path of a socket has at most 107 bytes
    runtime.chmod(0o700)
    (base / "stick").mkdir(parents=True)
    settings.mkdir(parents=True, mode=0o700)
    with Memory.create(
        "default", "encrypted-ipfs", provider=str(base / "stick"), passphrase=False, home=home
    ) as memory:
        memory.write("who", "x")
    ipfsmem = shlex.join([sys.executable, "-m", "ipfsmem"])
    play = _PLAY.format(systemd=shlex.quote(str(_SYSTEMD)), ipfsmem=ipfsmem)
    environment = {
        **os.environ,
        "BASE": str(base),
        "HOME": str(base),
        "XDG_RUNTIME_DIR": str(runtime),
        "XDG_CONFIG_HOME": str(settings),
        "IPFSMEM_HOME": str(home),
    }
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", play],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,  # the service has a low priority, and other tests may use every core
        check=False,
    )
    if done.returncode == 77:
        missing(f"no user manager of systemd can be had here: {done.stdout}{done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("ended"), done.stdout
    assert "was already installed" in done.stdout
    assert re.search(r"^runs +yes$", done.stdout, re.MULTILINE), done.stdout
    assert "ActiveState=active" in done.stdout
    assert syncing_notes(home / "default").worked
    assert done.stdout.partition("is removed.\n")[2] == "ended\n"
    assert not list(settings.rglob("*ipfsmem*"))
    with Memory.load("default", home=home) as memory:
        assert not memory.status().unpublished
