"""A vault with a linked folder of plain files and a manual clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ipfsmem.device.identity import Device, new_device
from ipfsmem.device.replica import Environment
from ipfsmem.files.working_copy import WorkingCopy
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from ipfsmem.ring.operations import enrol, enrollee_of
from ipfsmem.testing import SeededRandom
from ipfsmem.vault.home import Home
from ipfsmem.vault.owner import stored_root

if TYPE_CHECKING:
    from ipfsmem.device.writing import Writing

START_MS = 1_776_000_000_000


class Clock:
    """Milliseconds since 1970, advanced by hand."""

    def __init__(self) -> None:
        self.ms = START_MS

    def __call__(self) -> int:
        return self.ms

    def advance(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


#: A plain and a sealed vault: the rules of a linked folder apply to both.
MODES: tuple[ModeName, ...] = ("local", "encrypted-ipfs")


class Lab:
    """One vault with its own folder, or with an existing one (`adopt`)."""

    def __init__(self, base: Path, *, adopt: bool = False, seed: int = 0, mode: ModeName = "local") -> None:
        self.mode: ModeName = mode
        self.clock = Clock()
        self.environment = Environment(self.clock, SeededRandom(seed))
        self.home = base / "home"
        self.dir = base / "agent" if adopt else self.home / "x" / "memory"
        self.adopt = adopt
        self._other: Device | None = None
        self.memory: Memory = None  # type: ignore[assignment]

    def start(self) -> Memory:
        chosen = self.dir if self.adopt else None
        home = Home(folder=self.home, environment=self.environment)
        self.memory = Memory.create("x", self.mode, home=home, memory_dir=chosen, passphrase=False)
        if not self.adopt and not self.memory.mode.own_folder:
            self.memory.folders.attach(self.dir)
        return self.memory

    def again(self) -> Memory:
        """Close and reopen, as the next process would."""
        self.memory.close()
        return self.reopen()

    def reopen(self) -> Memory:
        self.memory = Memory.load("x", home=Home(folder=self.home, environment=self.environment))
        return self.memory

    @property
    def copy(self) -> WorkingCopy:
        """Return the linked folder at `dir`."""
        files = self.memory._open.files
        assert files is not None
        return next(copy for copy in files.all() if copy.folder.path == self.dir)

    def look(self) -> None:
        self.memory.folders.scan()
        self.memory.folders.render()

    def files(self) -> dict[str, bytes]:
        """Return all files in the folder except hidden ones."""
        return {
            path.relative_to(self.dir).as_posix(): path.read_bytes()
            for path in self.dir.rglob("*")
            if path.is_file() and not path.relative_to(self.dir).parts[0].startswith(".")
        }

    def texts(self) -> set[bytes]:
        """Return every text in the state, shown or not."""
        store = self.memory.replica.store
        with self.memory.replica.reading():
            return {
                body
                for key, entry in store.memories()
                for value in entry.values()
                if (body := store.body(f"m/{key}", value)) is not None
            }

    def sibling(self, key: str, data: bytes) -> None:
        """Add a text of another device, concurrent with the present one."""
        from ipfsmem.device.writing import writing

        with writing(self.memory.replica) as change:
            change.put(f"m/{key}", data, ())
        self.memory.folders.render()

    def remote(self, key: str, data: bytes, replaces: tuple[str, ...]) -> None:
        """Join a text of another device that has seen `replaces`."""
        with self._on_phone() as change:
            change.put(f"m/{key}", data, replaces)

    def remote_forget(self, key: str, replaces: tuple[str, ...]) -> None:
        """Join a forget of another device that has seen `replaces`."""
        with self._on_phone() as change:
            change.forget(f"m/{key}", replaces)

    @contextmanager
    def _on_phone(self) -> Iterator[Writing]:
        from ipfsmem.device.writing import writing

        replica = self.memory.replica
        mine, replica.device = replica.device, self._phone()
        try:
            with writing(replica) as change:
                yield change
        finally:
            replica.device = mine

    def _phone(self) -> Device:
        """Return the other device of the same person."""
        if self._other is None:
            self._other = new_device(self.environment.random)
            replica = self.memory.replica
            root = stored_root(replica)
            if root is not None and replica.ring is not None:
                public = enrollee_of(self._other.signer, self._other.box_public, "phone", replica.ring.vault)
                since = replica.store.frame.hlc
                with replica.transaction():
                    replica.set_ring(enrol(replica.ring, root.admin, public, "writer", since=since))
        return self._other
