"""Hold one open vault on this device: its folder, configuration, secrets, database and state.

Clock and randomness are arguments.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from datetime import UTC, date, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ipfsmem.config import CONFIG_FILE, LocalVaultConfig, parse_local_vault, render_local_vault
from ipfsmem.device.atomic_files import make_directory, read_file, write_atomic
from ipfsmem.device.caches import Caches
from ipfsmem.device.codec import Codec
from ipfsmem.device.database import Database
from ipfsmem.device.identity import Device, open_row, place, seal_row
from ipfsmem.device.state import DamagedStateError, StateStore
from ipfsmem.device.tables import meta
from ipfsmem.device.wall_clock import now_ms
from ipfsmem.errors import ConfigError, IpfsmemError, NotFoundError, UsageError
from ipfsmem.ring.keyring import Ring
from ipfsmem.seal.objects import epoch_key
from ipfsmem.wording import local_day

if TYPE_CHECKING:
    from ipfsmem.device.unlocked import LockWatch

Now = Callable[[], int]
Random = Callable[[int], bytes]


class Environment:
    """The clock (milliseconds since 1970 UTC) and randomness (n -> n bytes) from outside."""

    def __init__(self, now: Now = now_ms, random: Random = os.urandom) -> None:
        self.now = now
        self.random = random

    def today(self, zone: tzinfo | None = None) -> date:
        """Return the current day in `zone`, None for that of the person at this machine (`TZ`). If the clock is outside the
        calendar, the nearest day of the calendar."""
        return local_day(self.now(), zone) or (date.min if self.now() < 0 else date.max)

    def utc_today(self) -> date:
        """Return the current UTC day, for counts by day on all devices."""
        return local_day(self.now(), UTC) or (date.min if self.now() < 0 else date.max)


class Replica:
    """An open vault. `folder` is None in mode `none`, which keeps everything in this process."""

    def __init__(
        self,
        folder: Path | None,
        config: LocalVaultConfig,
        device: Device,
        codec: Codec,
        environment: Environment,
        *,
        make: bool = True,
        db: Database | None = None,
    ) -> None:
        """`make` as for `Database`; `db`: an open one, which this one closes."""
        self.folder = folder
        self.config = config
        self.device = self._first_device = device
        self.codec = codec
        self.environment = environment
        self.db = db or Database(folder, make=make)
        self.ring: Ring | None = None
        self._ring_dump = b""
        #: Id of the root or admin key that is unlocked, otherwise "". Before this device is enrolled, it names the device's
        #: owner.
        self.enroller = ""
        self._mine: tuple[Ring, str, frozenset[str]] | None = None
        #: Caches of data on the disk, valid until another process commits or a transaction here fails.
        self.caches = Caches()
        #: Checks the session of a part that a transaction, a `Writing`, is about to change; its result is called at the end
        #: (`memories/part_guard.py`).
        self.watch_part: Callable[[Any, str], Callable[[], None] | None] | None = None
        #: Messages to the user about values that joins omitted because of a limit, since this vault was opened.
        self.left_out: list[str] = []
        #: Messages about data that could not be read from the damaged database of which this is a copy.
        self.lost: tuple[str, ...] = ()
        #: If the ring was lost: the ids that certainly belong to this person; otherwise None.
        self.own_without_ring: frozenset[str] | None = None
        #: The reason why this vault is read-only; "" if it may be written.
        self.read_only = ""
        #: Whether it was opened with an agent key: it is in this process only, is read, and publishes nothing.
        self.as_agent = False
        #: The watch over keys that were taken unlocked; None if they came with the passphrase, or had none.
        self.lock_watch: LockWatch | None = None
        try:
            # In one snapshot, as another process may be writing now.
            with self.db.snapshot():
                self._load_secrets()
                self.store = StateStore(self.db, codec)
        except BaseException:
            self.db.close()
            raise

    @property
    def first_device(self) -> Device:
        """This device with the keys of its key file, whatever id it has taken since."""
        return self._first_device

    @property
    def vault_tag(self) -> bytes | None:
        """The 16-byte vault tag, which is part of every signature; None in modes without a ring."""
        return bytes.fromhex(self.config.vault.tag) if self.config.vault else None

    def is_mine(self, device: str) -> bool:
        """Return whether a device id belongs to the person whose device this is. In a vault without a ring all do."""
        ring = self.ring
        if ring is None:
            return self.own_without_ring is None or device in self.own_without_ring
        cached = self._mine
        if cached is None or cached[0] is not ring or cached[1] != self.device.id:
            cached = self._mine = (ring, self.device.id, self._ids_of_mine(ring))
        return device in cached[2]

    def _ids_of_mine(self, ring: Ring) -> frozenset[str]:
        owners = ring.view.owners
        # A device that is not enrolled yet will belong to the person whose key is unlocked.
        mine = owners.get(self.device.id) or owners.get(self.enrolled().id) or owners.get(self.enroller)
        same = (device for device, whose in owners.items() if whose == mine)
        return frozenset({self.device.id, *(same if mine else ())})

    def refuse_read_only(self) -> None:
        """Raise UsageError if the vault was opened read-only."""
        if self.read_only:
            hint = (
                "Write on a device that has the vault, or where it can be unlocked."
                if self.as_agent
                else None
            )
            raise UsageError(f"{self.read_only} is open for reading only", hint=hint)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold a write transaction. The store is read again first if another process has written."""
        # Held until a failure is recorded: a waiting thread must not start with state that was rolled back.
        with self.db.lock:
            try:
                with self.db.transaction():
                    self._refresh()
                    yield
            except BaseException as error:
                # Also if it is the COMMIT that fails.
                self.store.mark_outdated()
                self._note_damage(error)
                raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Hold a snapshot for reads: the state of the last commit."""
        try:
            with self.db.snapshot():
                self._refresh()
                yield
        except DamagedStateError as error:
            self._note_damage(error)
            raise

    def _note_damage(self, error: BaseException) -> None:
        """Record that a part of the state is damaged here, so that the next sync of any process restores it from elsewhere."""
        if isinstance(error, DamagedStateError) and not self.db.connection.in_transaction:
            with contextlib.suppress(IpfsmemError), self.db.transaction():
                self.db.set_meta(meta.DAMAGED_STATE, b"1")

    def _refresh(self) -> None:
        if self.store.outdated():
            self.caches.clear()
            self._load_secrets()
            self.store.refresh()

    def _load_secrets(self) -> None:
        """Read the ring and, if this device has taken a new id, its keys: rows under the device's own key."""
        stored = self.db.get_meta(meta.RING)
        if stored is not None:
            data = open_row(self.device.row_key, stored)
            if data != self._ring_dump:
                self._ring_dump = data
                self.ring = Ring.restore(data)
                self.codec.use_ring(self.ring)
        elif self.ring is not None:
            # The ring was set in a transaction that failed, so it is not on the disk.
            self.ring, self._ring_dump = None, b""
        seed = self.db.get_meta(meta.SIGN)
        first = self._first_device
        self.device = first if seed is None else first.with_keys(open_row(first.row_key, seed))

    def set_ring(self, ring: Ring) -> None:
        """Store a ring (inside a transaction). A ring only grows: join it with the one before first."""
        if ring is self.ring:
            return
        before, self.ring = self.ring, ring
        self._ring_dump = ring.dump()
        self.db.set_meta(
            meta.RING, seal_row(self.device.row_key, self._ring_dump, self.environment.random(24))
        )
        if before is not None and not set(before.keys) <= set(ring.keys):
            # Texts may be sealed under keys that the ring no longer names.
            self.db.set_meta(meta.STRAY, b"1")
        self.codec.use_ring(ring)

    def enrolled(self) -> Device:
        """Return this device with its enrolled keys, which sign its successors."""
        seed = self.db.get_meta(meta.ENROLLED)
        return self.device.with_keys(open_row(self.device.row_key, seed)) if seed else self.device

    def set_enrolled(self, enrolled: Device) -> None:
        """Store the enrolled keys (inside a transaction)."""
        keys = enrolled.sign_seed + enrolled.box_secret
        same = enrolled.id == self.device.id
        row = b"" if same else seal_row(self.device.row_key, keys, self.environment.random(24))
        self.db.set_meta(meta.ENROLLED, row)

    def set_device(self, device: Device, *, former: Device | None = None) -> None:
        """Continue under another id (inside a transaction), so that its keys become durable together with the values that they
        sign.

        `former`: this device under its old id, whose name is still published until others know the new one.
        """
        self.device = device
        keys = device.sign_seed + device.box_secret
        self.db.set_meta(meta.SIGN, seal_row(device.row_key, keys, self.environment.random(24)))
        if former is not None:
            self.db.set_meta(
                meta.FORMER, seal_row(device.row_key, former.sign_seed, self.environment.random(24))
            )

    def former_device(self) -> Device | None:
        """Return this device under its previous id until others are known to know the new one; then None."""
        seed = self.db.get_meta(meta.FORMER)
        return self.device.with_keys(open_row(self.device.row_key, seed)) if seed else None

    def forget_former_device(self) -> None:
        """Record that others know the new id (inside a transaction)."""
        if self.db.get_meta(meta.FORMER):
            self.db.set_meta(meta.FORMER, b"")

    def notices_shown(self) -> set[str]:
        """Return notices that are shown only once: hashes of revocations that ended with their author, and roots that were joined
        in part."""
        stored = self.db.get_meta(meta.NOTICES_SHOWN)
        return set(msgspec.json.decode(stored, type=list[str])) if stored else set()

    def note_shown(self, *more: str) -> None:
        """Record notices as shown (inside a transaction)."""
        self.db.set_meta(meta.NOTICES_SHOWN, msgspec.json.encode(sorted(self.notices_shown().union(more))))

    def was_moved(self) -> bool:
        """Return whether the files are in another location than this device left them: a copy, or a restored backup."""
        if self.folder is None:
            return False
        if meta.is_changed(
            self.db.connection, meta.PLACE
        ):  # unknown; the only effect of a wrong True is a new id
            return True
        stored = self.db.get_meta(meta.PLACE)
        return stored is not None and stored.decode() != place(self.db.path)

    def note_place(self) -> None:
        """Record the location of these files (inside a transaction)."""
        if self.folder is not None:
            self.db.set_meta(meta.PLACE, place(self.db.path).encode())

    def save_config(self, config: LocalVaultConfig) -> None:
        """Change `ipfsmem.json`. Raises UsageError if the vault was opened read-only."""
        self.refuse_read_only()
        self.config = config
        if self.folder is not None:
            write_config(self.folder, config)

    def close(self) -> None:
        """Close the files."""
        self.db.close()

    def forget_keys(self) -> None:
        """Drop the keys of a vault that is closed because it was locked: nothing here holds one afterwards."""
        self.device = self._first_device = self.device.without_secrets()
        self.ring, self._ring_dump, self._mine = None, b"", None
        self.codec.forget_keys()
        epoch_key.cache_clear()


def read_config(folder: Path) -> LocalVaultConfig | None:
    """Return the configuration of the vault in `folder`, None if absent."""
    data = read_file(folder / CONFIG_FILE, 64 * 1024)
    return None if data is None else parse_local_vault(data, folder / CONFIG_FILE)


def require_config(folder: Path) -> LocalVaultConfig:
    """Return the configuration of the vault in `folder`. Raises NotFoundError, ConfigError."""
    config = read_config(folder)
    if config is None:
        raise NotFoundError(
            f"there is no vault in {folder}",
            hint="Create one with: ipfsmem init. Or check --home and --vault (in Python: home= and vault=).",
        )
    return config


def write_config(folder: Path, config: LocalVaultConfig) -> None:
    """Write `ipfsmem.json`, creating the folder (mode 0700)."""
    make_directory(folder)
    write_atomic(folder / CONFIG_FILE, render_local_vault(config))


def claim_folder(folder: Path) -> None:
    """Refuse a folder that already holds a vault. Raises ConfigError."""
    if read_config(folder) is not None:
        raise ConfigError(
            f"there is already a vault in {folder}",
            hint="Use it, or choose another --vault or --home (in Python: vault= or home=).",
        )
