"""A local Apache with a test's configuration on a free port of 127.0.0.1."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.interop.counterparts import missing
from tests.support.patience import PATIENCE
from tests.support.ports import free_port

MODULES = Path("/usr/lib/apache2/modules")


def apache_folder(folder: Path, stack: ExitStack) -> Path:
    """Return a folder that Apache's workers may enter: `folder`, or another one if they run as another
    user."""
    if os.geteuid() != 0:
        return folder
    made = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    made.chmod(0o755)
    return made


def give(folder: Path) -> None:
    """Let Apache's workers write in a folder."""
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "nobody", str(folder)], check=True)


def apache(folder: Path, stack: ExitStack, modules: Sequence[str], lines: Sequence[str]) -> str:
    """Start the server and return its URL; the caller waits until it answers."""
    program = shutil.which("apache2", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None or not all((MODULES / f"mod_{name}.so").exists() for name in modules):
        missing("apache2 is not installed")
    port = free_port()
    config = [f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in modules]
    config += [
        f"ServerRoot {folder}", f"PidFile {folder}/pid", f"ErrorLog {folder}/errors", f"Listen 127.0.0.1:{port}", "ServerName localhost",
        *lines,
    ]  # fmt: skip
    if os.geteuid() == 0:
        config += ["User nobody", "Group nogroup"]
    (folder / "apache.conf").write_text("\n".join(config) + "\n")
    server = subprocess.Popen([program, "-f", folder / "apache.conf", "-D", "FOREGROUND"])
    stack.callback(_end(server))
    return f"http://127.0.0.1:{port}"


def _end(server: subprocess.Popen[bytes]) -> Callable[[], None]:
    def end() -> None:
        server.terminate()
        server.wait(PATIENCE)

    return end
