"""A user's folder with settings of programs, which are connected and disconnected there."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.connecting import plan_connect, plan_disconnect
from ipfsmem.agents.programs import program_named
from ipfsmem.agents.programs.program import Surroundings
from ipfsmem.results import Connected

HERE = Path(__file__).parent
LAUNCH = Launch(("/usr/local/bin/ipfsmem",), ("--home", "/memories"))
#: 23 November 2026.
NOW = 1_795_392_000_000


class Machine:
    """One user on one machine."""

    def __init__(self, base: Path, system: str = "linux", **environment: str) -> None:
        self.user, self.home = base / "user", base / "memories"
        self.user.mkdir()
        self.around = Surroundings(
            user=self.user, environment={"PATH": str(base / "bin"), **environment}, system=system
        )

    def put(self, path: str, data: bytes | str, mode: int = 0o644) -> Path:
        file = self.user / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        file.chmod(mode)
        return file

    def plan(self, name: str, launch: Launch = LAUNCH, *, replace: bool = False):
        return plan_connect(self.home, self.around, program_named(name), launch, now=NOW, replace=replace)

    def connect(self, name: str, launch: Launch = LAUNCH, *, replace: bool = False) -> Connected:
        plan = self.plan(name, launch, replace=replace)
        plan.carry_out()
        return plan.answer(written=plan.changes)

    def disconnect(self, name: str, *, replace: bool = False) -> Connected:
        plan = plan_disconnect(self.home, self.around, program_named(name), replace=replace)
        plan.carry_out()
        return plan.answer(written=plan.changes)

    def files(self, name: str) -> list[Path]:
        return [file.path for file in program_named(name).files(self.around, LAUNCH)]

    def snapshot(self) -> dict[str, object]:
        """Return everything in the user's folder: contents of files, targets of links, and permissions."""
        return {
            str(path.relative_to(self.user)): (
                str(path.readlink()) if path.is_symlink() else path.stat().st_mode,
                path.read_bytes() if path.is_file() else b"",
            )
            for path in sorted(self.user.rglob("*"))
        }

    def with_variable(self, **environment: str) -> None:
        self.around = msgspec.structs.replace(
            self.around, environment={**self.around.environment, **environment}
        )
