"""Several devices on one simulated provider, for the traces and the state machine: real vaults,
deterministic.

Time is a MockClock, randomness a seed per device. A home can be saved, put back (like a virtual machine
that is reset to a snapshot) or copied. `Forger` publishes invalid data with the real keys of a member.
Contains no tests."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TypeVar
from weakref import WeakKeyDictionary

import msgspec
from ipfsmem_providers.directory import DirectoryProvider
from nacl import bindings

from ipfsmem.causal.entries import memory_entry, segment_entry
from ipfsmem.causal.value import LIVE, DeviceCounter, Entry, Loc, Value, dot, sign_seen, sign_value
from ipfsmem.content.cid import CID, ipns_name, parse_cid
from ipfsmem.device.replica import Environment
from ipfsmem.device.scopes import known_scopes
from ipfsmem.device.state import StateHeader
from ipfsmem.device.writing import writing
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from ipfsmem.provider.contract import Provider
from ipfsmem.published.ipns_record import parse_record
from ipfsmem.published.layout import SealedLayout
from ipfsmem.ring import operations
from ipfsmem.sync.commits import prepare
from ipfsmem.sync.names import DEVICE_LIFE_MS, Names, pin_name
from ipfsmem.sync.report import Notices, SyncReport
from ipfsmem.sync.sending import new_blocks, send
from ipfsmem.testing.clock import MockClock, SeededRandom
from ipfsmem.testing.simulator import FULL, SimCloud, SimProvider
from ipfsmem.vault.home import Home
from ipfsmem.vault.owner import Unlock
from ipfsmem.vault.recovery import NewWords
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.support import prepared

VAULT_NAME = "alex"
ROOT = RootKeys.from_random(b"\x03" * 64, "default", 1)
#: The files of a vault's SQLite database; a snapshot includes all of them.
_FILES = ("ipfsmem.json", "device.key", "state.db", "state.db-wal", "state.db-shm")


#: A line that is too long for an event, and a short one.
TOO_LONG = '{"ts":"2026-01-01","type":"t","x":"' + "y" * 70_000 + '"}'
SHORT = '{"id":"1","ts":"2026-01-01","type":"s"}'
#: One connection per device, for data that is published without its knowledge.
_CONNECTIONS: WeakKeyDictionary[Memory, SimProvider] = WeakKeyDictionary()


@contextlib.contextmanager
def no_chance_in_boxes():  # type: ignore[no-untyped-def]
    """Draw the ephemeral keys of libsodium's sealed boxes from a seed, so that CIDs and their order are
    the same in each run."""
    random, drawn = SeededRandom("boxes"), bindings.crypto_box_seal

    def seal(data: bytes, public: bytes) -> bytes:
        secret = random(32)
        mine = bindings.crypto_scalarmult_base(secret)
        nonce = blake2b(mine + public, digest_size=24).digest()
        return mine + bindings.crypto_box(data, nonce, public, secret)

    bindings.crypto_box_seal = seal
    try:
        yield
    finally:
        bindings.crypto_box_seal = drawn


class Lab:
    """Several devices, one cloud, one clock."""

    #: The mode of the vault; a vault in mode `ipfs` is agreed to be public.
    mode: ModeName = "encrypted-ipfs"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = MockClock()
        self.cloud = SimCloud()
        self.providers: dict[str, SimProvider] = {}
        self.devices: dict[str, Memory] = {}
        self._runs: dict[str, int] = {}
        #: Seconds by which a device's clock is ahead of the others.
        self.skew: dict[str, float] = {}

    # -- devices ---------------------------------------------------------------------------------------------------

    def provider(self, name: str) -> SimProvider:
        """Return this device's connection to the provider."""
        if name not in self.providers:
            self.providers[name] = SimProvider(
                self.cloud, clock=self.clock, random=SeededRandom(f"provider {name}"), capabilities=FULL
            )
        return self.providers[name]

    def channels(self, name: str) -> Provider | list[Provider]:
        """Return the connection or connections that a vault of this device is opened with."""
        return self.provider(name)

    def environment(self, name: str) -> Environment:
        """Return the clock, and randomness that differs for each opening of a vault."""
        self._runs[name] = self._runs.get(name, 0) + 1
        return Environment(
            lambda: self.clock.ms + round(self.skew.get(name, 0) * 1000),
            SeededRandom(f"{name} {self._runs[name]}"),
        )

    def home(self, name: str) -> Path:
        """Return the device's home folder."""
        return self.folder / name

    def create(self, name: str, *, unlock: RootKeys | None = ROOT, recovery: bool = False) -> Memory:
        """Create the vault on this device."""
        memory = Memory.create(
            VAULT_NAME,
            self.mode,
            provider=self.channels(name),
            unlock=unlock,
            recovery=recovery,
            passphrase=False,
            home=Home(folder=self.home(name), label=name, environment=self.environment(name)),
            memory_dir=self.memory_dir(name),
            public_ok=self.mode == "ipfs",
        )
        return self._keep(name, memory)

    def memory_dir(self, name: str) -> Path | None:
        """Return the folder of a device's plain files, in a mode that has some; None: next to its state."""
        return None

    def restore(
        self, name: str, *, unlock: RootKeys = ROOT, hold: bool = False, damaged_ok: bool = False
    ) -> Memory:
        """Restore the vault to a device that has only the root key; `hold`: the device stays unlocked."""
        return self._restored(name, asyncio.run(self._recover(name, unlock, damaged_ok)), hold)

    def restore_at_once(self, *names: str) -> list[Memory]:
        """Restore on several devices concurrently, with their calls interleaved."""

        async def all_of_them() -> list[Memory]:
            return await asyncio.gather(*(self._recover(name, ROOT, False) for name in names))

        found = asyncio.run(all_of_them())
        return [self._restored(name, memory, False) for name, memory in zip(names, found, strict=True)]

    async def _recover(self, name: str, unlock: RootKeys, damaged_ok: bool) -> Memory:
        return await Memory.recover(
            VAULT_NAME,
            provider=self.channels(name),
            unlock=unlock,
            mode=self.mode,
            passphrase=False,
            home=Home(folder=self.home(name), label=name, environment=self.environment(name)),
            memory_dir=self.memory_dir(name),
            public_ok=self.mode == "ipfs",
            damaged_ok=damaged_ok,
        )

    def _restored(self, name: str, memory: Memory, hold: bool) -> Memory:
        if not hold:
            memory.lock()
        return self._keep(name, memory)

    def open(self, name: str, *, unlock: RootKeys | None = None) -> Memory:
        """Open the vault in a device's home."""
        memory = Memory.load(
            VAULT_NAME,
            provider=self.channels(name),
            unlock=unlock,
            home=Home(folder=self.home(name), environment=self.environment(name)),
        )
        return self._keep(name, memory)

    def _keep(self, name: str, memory: Memory) -> Memory:
        self.devices[name] = memory
        _CONNECTIONS[memory] = self.provider(name)
        return memory

    def three(self) -> tuple[Memory, Memory, Memory]:
        """Return devices A, B and C of one vault, in sync; only A holds the root key."""
        a, b, c = begun(self, Lab._three, "a", "b", "c")
        return a, b, c

    def _three(self) -> tuple[Memory, Memory, Memory]:
        a = self.create("a")
        self.sync(a)
        b, c = self.restore("b"), self.restore("c")
        self.settle(a, b, c)
        return a, b, c

    def close(self) -> None:
        """Close all files."""
        for memory in self.devices.values():
            memory.close()

    def is_new(self) -> bool:
        """Return whether nothing was done or set since the lab was made."""
        fresh = Lab(self.folder)
        return not (self.devices or self.providers or self._runs or self.skew or self.cloud.blocks) and (
            self.clock.ns == fresh.clock.ns
        )

    def take_over(self, other: Lab) -> None:
        """Take over the state of another lab, except open vaults."""
        shutil.copytree(other.folder, self.folder, dirs_exist_ok=True)
        for name in other._runs:
            prepared.settle(self.home(name) / VAULT_NAME, {str(other.folder): str(self.folder)})
        self.clock.ns, self._runs = other.clock.ns, dict(other._runs)
        self.cloud.blocks.update(other.cloud.blocks)
        self.cloud.pins += other.cloud.pins
        self.cloud.names.update({name: list(records) for name, records in other.cloud.names.items()})
        self.cloud._handles = other.cloud._handles

    # -- snapshots -------------------------------------------------------------------------------------------------

    def save(self, name: str, to: str) -> None:
        """Copy a device's files as they are now."""
        memory = self.devices.get(name)
        if memory is not None:
            memory.replica.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        target = self.folder / f"saved-{to}"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.home(name) / VAULT_NAME, target)

    def put_back(self, name: str, saved: str, *, unlock: RootKeys | None = None) -> Memory:
        """Replace a device's files with saved ones in the same place, undetectably."""
        self.devices[name].close()
        here, source = self.home(name) / VAULT_NAME, self.folder / f"saved-{saved}"
        for file in _FILES:
            if (source / file).exists():
                with (here / file).open("r+b" if (here / file).exists() else "wb") as out:
                    out.write((source / file).read_bytes())
                    out.truncate()
            else:
                (here / file).unlink(missing_ok=True)
        return self.open(name, unlock=unlock)

    def copy_to(
        self, saved: str, name: str, *, hidden: bool = False, unlock: RootKeys | None = None
    ) -> Memory:
        """Copy the saved files to another machine. `hidden`: it believes to be the first one, like a
        cloned machine."""
        shutil.copytree(self.folder / f"saved-{saved}", self.home(name) / VAULT_NAME)
        memory = self.open(name, unlock=unlock)
        if hidden:
            with memory.replica.transaction():
                memory.replica.note_place()
        return memory

    # -- syncing ---------------------------------------------------------------------------------------------------

    def sync(self, memory: Memory) -> SyncReport:
        """Sync one second after the last sync."""
        self.clock.advance(1)
        return asyncio.run(memory.sync())

    def settle(self, *memories: Memory, rounds: int = 12) -> int:
        """Sync all devices until nothing changes; return the number of rounds."""
        for n in range(rounds):
            before = self._shown(memories)
            reports = [self.sync(memory) for memory in memories]
            after = self._shown(memories)
            if before == after and not any(r.published or (r.adopted and r.entries_changed) for r in reports):
                return n
        raise AssertionError(f"no rest after {rounds} rounds: {[m.versions.list()[:2] for m in memories]}")

    def _shown(self, memories: Sequence[Memory]) -> object:
        """Return what others can see of a round: roots, counters and records (an unlock may change only an
        anchor)."""
        roots = [(m.replica.db.get_meta("root"), m.replica.store.frame.ctx) for m in memories]
        return roots, self.greatest()

    def rest(self, *memories: Memory, rounds: int = 2, whole: bool = True) -> None:
        """Check that settled devices upload nothing, however often they sync: no block, root, record or
        pin. After half a day they publish the same again, because networks forget; unless `whole`, they
        may then have found missing data."""
        for _ in range(rounds):
            for memory in memories:
                before, root = self.there(), memory.status().root
                report = self.sync(memory)
                assert (report.root or root, report.published, report.bytes_sent) == (root, False, 0), report
                assert self.there() == before, report
        if not whole:
            return
        before = self.greatest()
        self.clock.advance(13 * 3600)
        for memory in memories:
            root = memory.status().root
            report = self.sync(memory)
            assert (report.root or root, report.published) == (root, False), report
        assert self.greatest() == before

    def there(self) -> object:
        """Return everything that the provider stores."""
        cloud = self.cloud
        return len(cloud.blocks), list(cloud.pins), {name: list(kept) for name, kept in cloud.names.items()}

    def greatest(self) -> dict[str, bytes]:
        """Return the last record of each name."""
        return {name: records[-1] for name, records in self.cloud.names.items()}

    def record_root(self, key: bytes) -> CID:
        """Return the root that the name of an Ed25519 key points at now."""
        value = parse_record(self.cloud.names[ipns_name(key)][-1]).value
        return parse_cid(value.removeprefix("/ipfs/"))


class FolderLab(Lab):
    """Devices on one folder each; devices may see different folders."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.use: dict[str, str] = {}

    def at(self, name: str) -> Path:
        folder = self.folder / self.use.get(name, "p")
        folder.mkdir(exist_ok=True)
        return folder

    def provider(self, name: str) -> Provider:  # type: ignore[override]
        return DirectoryProvider(self.at(name), clock=lambda: self.clock.ms * 1_000_000)

    def there(self) -> object:
        files = [file for file in self.folder.glob("p*/**/*") if file.is_file()]
        return {file: sha256(file.read_bytes()).digest() for file in files}

    def greatest(self) -> dict[str, bytes]:
        return {str(file): file.read_bytes() for file in self.folder.glob("p*/names/*") if file.is_file()}

    def meet(self, *names: str) -> None:
        """Copy missing files between the folders and change none, as a folder sync program does."""
        for source in names:
            for target in names:
                for file in (self.folder / source).rglob("*"):
                    there = self.folder / target / file.relative_to(self.folder / source)
                    if file.is_file() and not there.exists():
                        there.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy2(file, there)


def restore(
    home: Path,
    name: str,
    provider: Provider,
    unlock: RootKeys,
    mode: str = "encrypted-ipfs",
    root: str | None = None,
) -> Memory:
    """Restore vault `m` to a device of this name with a root key, from `root` if no other path leads to
    it."""
    return asyncio.run(
        Memory.recover(
            "m",
            mode=mode,
            provider=provider,
            unlock=unlock,
            passphrase=False,
            root_cid=root,
            public_ok=True,
            home=home / name,
        )
    )


def load(home: Path, name: str, provider: Provider | list[str | Provider], *, wallet: Unlock) -> Memory:
    """Open, restore or create vault `m` of a wallet on a device of this name."""
    return Memory.load(
        "m",
        "encrypted-ipfs",
        provider=provider,
        unlock=wallet,
        passphrase=False,
        home=Home(folder=home / name, label=name),
        create=True,
    )


def same(*memories: Memory) -> None:
    """Check that all show the same and have the same root."""
    first = memories[0]
    for other in memories[1:]:
        assert other.files() == first.files()
        assert other.timeline.read() == first.timeline.read()
        assert other.conflicts() == first.conflicts()
        assert other.status().root == first.status().root


def body(memory: Memory, key: str) -> str | None:
    """Return the shown text of a memory without its header."""
    reading = memory.read(key)
    return None if reading is None else reading.file.body.rstrip("\n")


def text_of(data: bytes) -> str:
    """Return the text of a memory file without its header."""
    return data.decode().partition("\n---\n\n")[2].rstrip("\n")


def texts(memory: Memory, scope: str = "") -> dict[str, set[str]]:
    """Return every text that a device holds in a scope, including siblings and hidden texts: key -> bodies
    without header."""
    found: dict[str, set[str]] = {}
    for key, data in _bodies(memory, scope):
        found.setdefault(key, set()).add(text_of(data))
    return found


def _bodies(memory: Memory, scope: str) -> list[tuple[str, bytes]]:
    """Return keys and whole files, including siblings and hidden texts."""
    with memory.replica.reading():
        store = memory.replica.store
        found = [
            (key, store.body(memory_entry(key, scope), value))
            for key, entry in store.memories(scope)
            for value in entry.values()
        ]
    return [(key, data) for key, data in found if data is not None]


def all_texts(memory: Memory) -> set[str]:
    """Return the texts of all scopes without keys."""
    return set().union(*(found for scope in _scopes(memory) for found in texts(memory, scope).values()))


def whole_texts(memory: Memory) -> set[bytes]:
    """Return the whole files of all scopes, with headers."""
    return {data for scope in _scopes(memory) for _, data in _bodies(memory, scope)}


def _scopes(memory: Memory) -> list[str]:
    with memory.replica.reading():
        return ["", *known_scopes(memory.replica.store)]


def events(memory: Memory) -> list[str]:
    """Return the types of all events, sorted."""
    return sorted(event["type"] for event in memory.timeline.read())


def delete(memory: Memory, key: str, scope: str = "", *, seen: tuple[str, ...] | None = None) -> bool:
    """Delete the shown value (or `seen`) without a trace, which no command does; other siblings stay."""
    memories = MemoryStore(memory.replica, scope)
    name = memories.checked_name(key)
    with writing(memory.replica) as change:
        entry = change.entry(name)
        replaces = memories.view(key, entry).dots if seen is None else seen
        if not set(replaces) & entry.keys():
            return False
        change.remove(name, replaces)
        return True


def new_words(memory: Memory) -> tuple[NewWords, RootKeys]:
    """Make new recovery words with the wallet on this device and lock it again; return their keys."""
    memory.unlock(ROOT)
    made = asyncio.run(memory.members.new_words())
    memory.lock()
    return made, RootKeys.from_recovery(from_words(" ".join(made.words)))


def of_another(a: Memory, b: Memory) -> None:
    """Declare with the wallet on a's device that b's device belongs to another person."""
    with a.replica.transaction():
        ring, device = a.replica.ring, b.replica.device
        assert ring is not None
        stated = operations.enrollee_of(device.signer, device.box_public, "b", ring.vault)
        person = operations.new_person(ring.vault, device.sign_public)
        since = f"{int(a.replica.store.frame.hlc, 16) + 1:016x}"
        a.replica.set_ring(operations.enrol(ring, ROOT.admin, stated, "writer", since=since, person=person))


def kinds(report: SyncReport) -> set[str]:
    """Return the kinds of notices in a sync report."""
    return {notice.kind for notice in report.notices}


def says(report: SyncReport, kind: str) -> str:
    """Return the text of all notices of one kind."""
    return "\n".join(
        f"{notice.text} {notice.detail}".strip() for notice in report.notices if notice.kind == kind
    )


def pair(memory: Memory, device: str) -> DeviceCounter:
    """Return the known pair of a device."""
    return memory.replica.store.frame.seen[device]


class Forger:
    """A dishonest member with a real replica and real keys that puts arbitrary data into its state."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.replica = memory.replica
        assert self.replica.vault_tag is not None
        self.vault = self.replica.vault_tag

    def value(
        self,
        name: str,
        under: str,
        text: str,
        *,
        h: str = "0" * 16,
        loc: Loc | None = None,
        n_b: tuple[str, ...] = (),
    ) -> tuple[Value, tuple[bytes, bytes]]:
        """Return a value for the dot `under`, signed with this member's key, and its sealed block."""
        data = text.encode()
        ek, stored = self.replica.codec.seal_body(name, data)
        digest = sha256(stored)
        made = Value(
            b=n_b,
            body=sha256(data).hexdigest(),
            h=h,
            kind=LIVE,
            loc=loc or Loc(ek, digest.hexdigest(), len(stored)),
        )
        signed = sign_value(self.replica.device.signer, name, under, made, self.vault)
        return signed, (digest.digest(), stored)

    def next_dot(self) -> str:
        """Return an unused dot of its own."""
        return dot(self.replica.device.id, self.replica.store.frame.ctx.get(self.replica.device.id, 0) + 1)

    def seen(self, device: str, n: int) -> DeviceCounter:
        """Return a pair, signed by this member, that claims a counter of `device`."""
        return sign_seen(self.replica.device.signer, self.vault, device, n, "ab" * 8)

    def put(
        self,
        changes: Mapping[str, Entry],
        *,
        ctx: Mapping[str, int] | None = None,
        seen: Mapping[str, DeviceCounter] | None = None,
        blocks: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Make this the state without any check."""
        with self.replica.transaction():
            frame = self.replica.store.frame
            self.replica.store.apply(
                changes,
                StateHeader({**frame.ctx, **(ctx or {})}, {**frame.seen, **(seen or {})}, frame.hlc),
                blocks,
            )

    def put_segment(self, day: str, text: str, scope: str = "") -> None:
        """Put a piece of the timeline with any content into the state."""
        under = self.next_dot()
        segment = segment_entry(day, self.replica.device.id, 0, scope)
        value, block = self.value(segment, under, text)
        self.put({segment: {under: value}}, ctx={self.replica.device.id: int(under[17:])}, blocks=[block])

    def change(self, name: str, change: Callable[[Entry], Entry]) -> None:
        """Change one entry without any check."""
        with self.replica.reading():
            entry = self.replica.store.entry(name)
        self.put({name: change(entry)})

    def publish(self, provider: Provider | None = None) -> CID:
        """Publish the state without joining anything; return the root. None: at the provider of its lab."""
        asyncio.run(self._publish(provider or _CONNECTIONS[self.memory]))
        status = self.memory.status().root
        assert status is not None
        return parse_cid(status)

    async def _publish(self, provider: Provider) -> None:
        replica = self.replica
        names, device = Names(replica, [provider], Notices()), self.replica.device
        name = ipns_name(device.sign_public)
        await names.read(name)
        with replica.transaction():
            ready = prepare(replica, SealedLayout(), [], [])
        await send(
            replica,
            provider,
            ready.root,
            list(new_blocks(replica.db, ready.root, ())),
            pin_name(ROOT.head_public),
        )
        names.sign(device.sign_seed, device.sign_public, f"/ipfs/{ready.root}", DEVICE_LIFE_MS)
        await names.put([name])
        commit = ready.commit.commit
        with replica.transaction():
            names.keep()
            replica.db.set_meta("root", str(ready.root).encode())
            replica.db.connection.execute(
                "INSERT OR REPLACE INTO heads VALUES (?,?,?,?,?,?)",
                (str(ready.root), commit.dev, commit.c, ready.commit.digest, replica.environment.now(), b""),
            )


def replaced(value: Value, **fields: object) -> Value:
    """Return a value with other fields and the old signature."""
    return msgspec.structs.replace(value, **fields)


L = TypeVar("L", bound=Lab)
#: Labs with a common starting state, by kind and by the function that made it.
_BEGUN: dict[tuple[type[Lab], object], Lab] = {}


def prepare_lab(kind: type[L], make: Callable[[L], object]) -> None:
    """Run `make` in a lab of this kind once per run; `begun` copies the result. Only before any test has
    patched anything."""
    if (kind, make) not in _BEGUN:
        lab = kind(Path(tempfile.mkdtemp(prefix="lab-")))
        make(lab)
        lab.close()
        _BEGUN[kind, make] = lab


def begun(lab: L, make: Callable[[L], Sequence[Memory]], *names: str) -> Sequence[Memory]:
    """Return the vaults that `make` returns, on devices of these names; the first holds the root key. A
    prepared lab is copied and its vaults are opened."""
    ready = _BEGUN.get((type(lab), make))
    if ready is None or not lab.is_new():
        return make(lab)
    lab.take_over(ready)
    return [lab.open(name, unlock=ROOT if name == names[0] else None) for name in names]


@contextlib.contextmanager
def lab_in(folder: Path):  # type: ignore[no-untyped-def]
    """Yield a lab and close its files."""
    lab = Lab(folder)
    try:
        yield lab
    finally:
        lab.close()
