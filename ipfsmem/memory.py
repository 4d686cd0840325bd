"""`Memory`: the one façade. It is made of parts, each with its own methods; the everyday ones stand on it directly.

Nothing is done here: what a method does stands in `parts`, and what a read or a write of one memory does not need is imported
when it is asked for. Coroutines are the only ones that touch a provider, and `load` where a memory has to be brought back.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from ipfsmem import config as configuration
from ipfsmem.bundle.keys import check_scope, is_key
from ipfsmem.device.replica import Environment, Replica
from ipfsmem.memories.memories import MemoryStore, NotHereError
from ipfsmem.memories.memory_records import MemoryRecord, Seen
from ipfsmem.methods import MemoryMethods
from ipfsmem.mode import Mode, ModeName
from ipfsmem.parts.opening import Connection, LoadRequest, OpenResult, Origin, open_here
from ipfsmem.parts.part import validated
from ipfsmem.parts.vault_handle import VaultHandle
from ipfsmem.vault.home import Home, HomeChoice

if TYPE_CHECKING:
    import asyncio

    from ipfsmem.groups import Facts, Graph, Hidden, MemoryStack, Sessions, Usage, Values
    from ipfsmem.memories.context import ContextBlock, Readiness
    from ipfsmem.operation import View
    from ipfsmem.parts.bundles import MemoryBundles
    from ipfsmem.parts.dreams import MemoryDreams
    from ipfsmem.parts.folders import MemoryFolders
    from ipfsmem.parts.maintenance import MemoryMaintenance
    from ipfsmem.parts.members import MemoryMembers
    from ipfsmem.parts.operations import MemoryOperations
    from ipfsmem.parts.plugins import MemoryPlugins
    from ipfsmem.parts.providers import MemoryProviders
    from ipfsmem.parts.scopes import MemoryScopes
    from ipfsmem.parts.syncing import Syncing
    from ipfsmem.parts.timeline import MemoryTimeline
    from ipfsmem.parts.vaults import MemoryVaults
    from ipfsmem.parts.versions import MemoryVersions
    from ipfsmem.provider.choice import ProviderChoice
    from ipfsmem.results import Opened, Status
    from ipfsmem.sync.background import OnAttempt
    from ipfsmem.sync.progress import Progress
    from ipfsmem.sync.report import SyncReport
    from ipfsmem.vault.check import Finding
    from ipfsmem.vault.owner import DevicePassphrase, OwnerKey

#: Types of arguments that few calls give.
IMPORTED_LATE = {
    "ContextBlock": "ipfsmem.memories.context",
    "DevicePassphrase": "ipfsmem.vault.owner",
    "OwnerKey": "ipfsmem.vault.owner",
    "ProviderChoice": "ipfsmem.provider.choice",
}

T = TypeVar("T")
P = ParamSpec("P")


def _handed_on(method: Callable[P, T]) -> Callable[P, T]:
    """A method that does nothing but call that of a part, which refuses wrong calls itself."""
    vars(method)["handed_on"] = True
    return method


class Memory(MemoryMethods):
    """One agent's memory on this device. Make one with `create`, open one with `load`; close it when done.

    `memory.scope(token)` is one scope of it, with the same methods. What is about one part of a memory has that part's
    name: `timeline`, `sessions`, `facts`, `values`, `hidden`, `graph`, `usage`, `dreams`, `plugins`, `versions`, `bundles`, `scopes`, `folders`, `members`,
    `providers`, `vaults`, `maintenance`, `operations`.
    """

    def __init__(self, made: OpenResult, *, scope: str | None = None) -> None:
        """Use `create` or `load`. `scope`: the one that was chosen, of a memory which somebody else opened and closes."""
        self._made = made
        self._open = made.opened
        self._origin = made.origin
        self._chosen = scope
        #: The memories of exactly this scope, without the plain files.
        self._memories: MemoryStore = made.opened.memories.in_scope(scope or "")

    @functools.cached_property
    def timeline(self) -> MemoryTimeline:
        """What happened: events added and read."""
        from ipfsmem.parts.timeline import MemoryTimeline

        return MemoryTimeline(self._open, self._chosen or "")

    @functools.cached_property
    def sessions(self) -> Sessions:
        """Conversations, item by item."""
        from ipfsmem.groups import Sessions

        return Sessions(self._open, self._chosen or "")

    @functools.cached_property
    def dreams(self) -> MemoryDreams:
        """What a look through all memories would tidy up."""
        from ipfsmem.parts.dreams import MemoryDreams

        return MemoryDreams(self._open, self._chosen or "")

    @functools.cached_property
    def facts(self) -> Facts:
        """Facts, procedures and episodes, each with a category."""
        from ipfsmem.groups import Facts

        return Facts(self._open, self._chosen or "")

    @functools.cached_property
    def values(self) -> Values:
        """Values under free keys."""
        from ipfsmem.groups import Values

        return Values(self._open, self._chosen or "")

    @functools.cached_property
    def graph(self) -> Graph:
        """What stands in relation to what."""
        from ipfsmem.groups import Graph

        return Graph(self._open, self._chosen or "")

    @functools.cached_property
    def plugins(self) -> MemoryPlugins:
        """Memories of other programs that are asked beside this one."""
        from ipfsmem.parts.plugins import MemoryPlugins

        return MemoryPlugins(self._open)

    @functools.cached_property
    def usage(self) -> Usage:
        """What models were used for and what it cost."""
        from ipfsmem.groups import Usage

        return Usage(self._open, self._chosen or "")

    @functools.cached_property
    def operations(self) -> MemoryOperations:
        """What was done with this memory on this device."""
        from ipfsmem.parts.operations import MemoryOperations

        return MemoryOperations(self._open)

    @functools.cached_property
    def hidden(self) -> Hidden:
        """What this device leaves out of its lists and answers."""
        from ipfsmem.groups import Hidden

        return Hidden(self._open, self._chosen or "")

    @functools.cached_property
    def versions(self) -> MemoryVersions:
        """Published versions, and the texts that a memory has had."""
        from ipfsmem.parts.versions import MemoryVersions

        return MemoryVersions(self._open, self._chosen or "")

    @functools.cached_property
    def bundles(self) -> MemoryBundles:
        """What goes out and comes in as files."""
        from ipfsmem.parts.bundles import MemoryBundles

        return MemoryBundles(self._open, self._chosen)

    @functools.cached_property
    def scopes(self) -> MemoryScopes:
        """The scopes of this vault."""
        from ipfsmem.parts.scopes import MemoryScopes

        return MemoryScopes(self._open)

    @functools.cached_property
    def folders(self) -> MemoryFolders:
        """The working copies of this memory on this device."""
        from ipfsmem.parts.folders import MemoryFolders

        return MemoryFolders(self._open)

    @functools.cached_property
    def members(self) -> MemoryMembers:
        """Who belongs to this memory."""
        from ipfsmem.parts.members import MemoryMembers

        return MemoryMembers(self._open, self._syncing)

    @functools.cached_property
    def providers(self) -> MemoryProviders:
        """Where it is published."""
        from ipfsmem.parts.providers import MemoryProviders

        return MemoryProviders(self._open, self._syncing)

    @functools.cached_property
    def vaults(self) -> MemoryVaults:
        """Further vaults of this memory's wallet."""
        from ipfsmem.parts.vaults import MemoryVaults

        return MemoryVaults(self._open)

    @functools.cached_property
    def maintenance(self) -> MemoryMaintenance:
        """Old versions let go, damage looked for and mended, this device's passphrase."""
        from ipfsmem.parts.maintenance import MemoryMaintenance

        return MemoryMaintenance(self._open, self._syncing)

    def _view(self) -> View:
        from ipfsmem.operation import View

        return View(self._open, self._memories.scope)

    @property
    def _syncing(self) -> Syncing:
        return self._made.connection.syncing

    # -- facts -----------------------------------------------------------------------------------------------

    @property
    def namespace(self) -> str:
        """Its name on this device."""
        return self._open.namespace

    @property
    def replica(self) -> Replica:
        """What lies on this device's disk, for programs that know its rooms."""
        return self._open.replica

    @property
    def mode(self) -> Mode:
        """`none`, `local`, `ipfs` or `encrypted-ipfs`, and what that means."""
        return self._open.mode

    @property
    def device(self) -> str:
        """The id under which this device writes."""
        return self._open.device

    @property
    def opened(self) -> Opened | None:
        """Where a foreign bundle came from; None for a memory of one's own."""
        return self._origin.opened

    @property
    def restored(self) -> SyncReport | None:
        """What the sync that restored this memory did; None for one that was here already."""
        return self._origin.restored

    @property
    def recovery_words(self) -> list[str] | None:
        """The 24 recovery words of a vault made just now; shown once, kept nowhere."""
        return self._origin.recovery_words

    @property
    def unlisted(self) -> str:
        """Why the wallet's vault `default` on this device does not list the vault that was made or brought back just now;
        empty when it does, or when there is nothing to list."""
        return self._origin.unlisted

    @property
    def in_scope(self) -> str:
        """The token of the scope that this is; "" is the nameless one."""
        return self._memories.scope

    def status(self) -> Status:
        """Counts and state of all scopes, local."""
        from ipfsmem.parts.status import MemoryStatus

        return MemoryStatus(self._open, self._syncing, self.scopes, self.members, self.folders).status()

    @_handed_on
    def check(self) -> list[Finding]:
        """Look at everything on this device: parts and hashes, signatures, members, the index of recall beside the texts, the clock. What
        is wrong and what to do."""
        return self.maintenance.check()

    # -- everyday: texts, events, syncs ----------------------------------------------------------------------

    def write_text(
        self, key: str, data: bytes, *, seen: Seen | None = None, if_match: str | None = None
    ) -> MemoryRecord:
        """`write` with the whole file, header and all: exactly these bytes."""
        return self.write(key, text=data, seen=seen, if_match=if_match)

    def index(self) -> str:
        """The text of MEMORY.md."""
        self._open.ingest_edits()
        return self._memories.index()

    def files(self) -> dict[str, bytes]:
        """Every memory that is shown, by key."""
        self._open.ingest_edits()
        with self.replica.reading():
            return {view.key: view.data for _, view in self._memories.views() if view.data is not None}

    def readiness(self) -> Readiness:
        """Whether the layout `turn` finds something, and everything, without the time that a large index takes to make."""
        from ipfsmem.memories.context import readiness
        from ipfsmem.operations.context import context_sources

        return readiness(context_sources(self._view()))

    def make_ready(self) -> None:
        """Make and write the index that the layout `turn` is looked up in by who has no time to make it, where it is missing and long.
        Raises StorageError."""
        from ipfsmem.memories.context import make_ready
        from ipfsmem.operations.context import context_sources

        make_ready(context_sources(self._view()))

    def mark_delivered(self, block: ContextBlock, session: str = "") -> None:
        """Record that a model got a block that was made with `deliver=False`: it counts as use, and is not given to that session again."""
        from ipfsmem.memories.context import count_shown

        count_shown(self._memories, block)
        if session:
            self._open.shown.note(session, block.marks)

    def reset_context(self, session: str) -> None:
        """Record that a session has nothing of what `context` gave it any more: it was compacted, or cleared."""
        self._open.shown.forget(session)

    @_handed_on
    def unlock(self, unlock: OwnerKey | None = None) -> None:
        """Hold the wallet's or recovery root until `close`: for enrolling, rotating, revoking, moving the anchor.

        None takes the root that this device keeps of a vault without a wallet. Raises WrongWalletError when this memory
        belongs to another wallet, MembershipError when nothing is kept.
        """
        self._syncing.unlock(unlock)

    def lock(self) -> None:
        """Let go of the root that `unlock` holds."""
        if self._made.connection.begun is not None:
            self._syncing.lock()

    @property
    def unlocked(self) -> bool:
        """Whether the wallet or recovery root is held."""
        begun = self._made.connection.begun
        return begun is not None and begun.root is not None

    @_handed_on
    async def sync(
        self,
        provider: ProviderChoice = None,
        *,
        public_ok: bool = False,
        allow: Iterable[str] = (),
        car: str | Path | None = None,
        progress: Progress | None = None,
    ) -> SyncReport:
        """Pull what others published, join it, publish what is new. Raises ProviderError; nothing local is lost.

        `car`: a file with a version that another device of this memory saved, as it could send it nowhere; it is taken in like one that a
        provider has. Raises FormatError or StorageError for what is none; of one that cannot be used the report says so (`not_used`).

        In mode `ipfs` everything published is public for good. `public_ok` agrees to that, once; without it the first
        sync raises PublicError. What looks like a secret raises SecretsError unless its place (a memory's key, or
        `timeline/<day>`) is in `allow`; what others published was joined by then. In mode `encrypted-ipfs` it is a notice.
        """
        return await self._syncing.sync(
            provider, public_ok=public_ok, allow=allow, car=car, progress=progress
        )

    @_handed_on
    async def flush(self) -> SyncReport | None:
        """Publish now what is waiting; None when nothing is. In `autosync` also tries again what failed there for good,
        so that it is raised."""
        return await self._syncing.flush()

    def __contains__(self, key: object) -> bool:
        """Whether a memory of this key is shown here, or would be if its text were not missing on this device."""
        try:
            return isinstance(key, str) and is_key(key) and self.read(key) is not None
        except NotHereError:
            return True

    def __len__(self) -> int:
        """How many memories `list` has."""
        return len(self.list())

    def __iter__(self) -> Iterator[str]:
        """The keys of what `list` has."""
        return iter([one.key for one in self.list()])

    def __bool__(self) -> bool:
        """An empty memory is one too."""
        return True

    def __repr__(self) -> str:
        scope = f", scope {self.in_scope}" if self.in_scope else ""
        closed = ", closed" if self._open.closed else ""
        return f"<Memory {self.namespace}, {self.mode}{scope}{closed}>"

    def note(self, kind: str, /, **data: Any) -> dict[str, Any]:
        """Append an event to the timeline, durable when this returns: `timeline.add`."""
        return self.timeline.add(kind, **data)

    @_handed_on
    @contextlib.asynccontextmanager
    async def autosync(
        self,
        *,
        idle: float = 30.0,
        most: float = 600.0,
        every: float | None = 300.0,
        public_ok: bool = False,
        allow: Iterable[str] = (),
        on_attempt: OnAttempt | None = None,
    ) -> AsyncIterator[Self]:
        """Keep in sync while the block runs; see `Syncing.autosync`."""
        work = self._syncing.autosync(
            idle=idle, most=most, every=every, public_ok=public_ok, allow=allow, on_attempt=on_attempt
        )
        async with work:
            yield self

    @contextlib.asynccontextmanager
    async def lock_watch(self) -> AsyncIterator[asyncio.Event]:
        """For a program that runs for long: while the block runs, keys that were unlocked are dropped within a second of `lock`, or
        of the end of their time, and the event is set. Every call raises PassphraseError from then on; `load` opens the memory
        anew once it is unlocked again. `autosync` has this in it. With a passphrase the event is never set.
        """
        import asyncio

        from ipfsmem.parts.lock_watching import lock_watch

        locked = asyncio.Event()
        async with lock_watch(self._open, locked.set):
            yield locked

    # -- scopes ----------------------------------------------------------------------------------------------

    def scope(self, token: str) -> Memory:
        """The memories and events of one scope (format section 5.1; "" is the nameless one), with the same methods.

        It is made by its first write. What turned out to be this scope (`into` on its card) is read below it, and where it
        turned out to be another itself, what is written here goes there; each answer says in which scope it stands. It lives
        as long as this memory, and closing it closes nothing. What is about the whole vault (sync, members, providers) is
        this memory's. Raises KeyNameError.
        """
        return Memory(self._made, scope=token)

    def stack(self, *tokens: str) -> MemoryStack:
        """Several scopes read as one: these, the first before the next, each with what turned out to be it, and then what
        is everybody's (the nameless scope). Each answer says in which it stands; nothing is written through it. Raises
        KeyNameError.
        """
        from ipfsmem.groups import MemoryStack

        self._open.ingest_edits()
        order = self._open.read_order
        named = [scope for token in tokens if token for scope in order(check_scope(token))]
        return MemoryStack(self._open, dict.fromkeys((*named, "")))

    # -- closing ---------------------------------------------------------------------------------------------

    @_handed_on  # as the vectors under way are waited for without holding what they are kept with
    def close(self) -> None:
        """Let go of files, secrets and the providers that were opened here from their specs.

        In a running event loop connections end when the loop comes to it; `aclose`, or `async with`, waits for that.
        """
        if self._chosen is None:
            self._open.end_meaning()
            self._open.end_plugins()
            with self._open.lock:
                self._made.close()

    async def aclose(self) -> None:
        """`close`, and the connections of this event loop are closed when it returns."""
        begun = self._made.connection.begun
        if self._chosen is None and begun is not None:
            await begun.aclose()
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    # -- making and opening ----------------------------------------------------------------------------------

    @classmethod
    def load(
        cls,
        namespace: str | None = None,
        mode: Mode | ModeName | None = None,
        *,
        provider: ProviderChoice = None,
        unlock: OwnerKey | None = None,
        passphrase: DevicePassphrase = None,
        home: HomeChoice = None,
        create: bool = False,
        public_ok: bool = False,
    ) -> Memory:
        """Open the memory of `namespace` on this device.

        When there is none here, `mode` says what to do: `none` and `local` make an empty one; the modes with a vault
        look for the wallet's memory at the provider and bring it back (the only load that uses the network), and
        with `create` make a new one where there is certainly none. `passphrase` protects this device's keys (False: they
        have none, and the disk is trusted). `public_ok` agrees that what is brought back or made in mode `ipfs` is
        published in the clear. In a running event loop everything else waits meanwhile: there use `aload`.

        Raises NotFoundError, NoVaultError (its `doubt` says why one may be there all the same), OtherKindError when a
        vault of the other mode stands there, PassphraseError, WrongWalletError, ConfigError, UsageError.
        """
        request = LoadRequest(namespace, mode, provider, unlock, passphrase, Home.of(home), create, public_ok)
        here = open_here(request)
        if here is None:
            from ipfsmem.in_thread import run_to_end
            from ipfsmem.parts.making import bring_here, make_here

            here = make_here(request) or run_to_end(bring_here(request))
        return cls(here)

    @classmethod
    async def aload(
        cls,
        namespace: str | None = None,
        mode: Mode | ModeName | None = None,
        *,
        provider: ProviderChoice = None,
        unlock: OwnerKey | None = None,
        passphrase: DevicePassphrase = None,
        home: HomeChoice = None,
        create: bool = False,
        public_ok: bool = False,
    ) -> Memory:
        """`load` for a program with an event loop, which goes on meanwhile: keys are derived and files are opened in a thread."""
        request = LoadRequest(namespace, mode, provider, unlock, passphrase, Home.of(home), create, public_ok)
        from ipfsmem.in_thread import in_thread
        from ipfsmem.parts.making import bring_here, make_here

        here = await in_thread(lambda: open_here(request) or make_here(request), _close)
        return cls(here if here is not None else await bring_here(request))

    @classmethod
    def create(
        cls,
        namespace: str | None = None,
        mode: Mode | ModeName = "local",
        *,
        provider: ProviderChoice = None,
        unlock: OwnerKey | None = None,
        recovery: bool = True,
        passphrase: DevicePassphrase = None,
        home: HomeChoice = None,
        memory_dir: str | Path | None = None,
        public_ok: bool = False,
    ) -> Memory:
        """Make a new, empty memory. Does not look whether the wallet has one already: `load(create=True)` does.

        `public_ok` agrees for mode `ipfs` that everything in it is published in the clear; else the first sync asks.

        In the modes with a vault the wallet signs twice, and unless `recovery` is False 24 words are drawn, to be
        found once in `recovery_words`. Without `unlock` the vault belongs to this device alone. Raises ConfigError when
        a provider cannot be opened or another namespace holds that vault, before anything is made.
        """
        from ipfsmem.parts.making import create

        made = create(
            namespace,
            mode,
            provider=provider,
            unlock=unlock,
            recovery=recovery,
            passphrase=passphrase,
            home=home,
            memory_dir=memory_dir,
            public_ok=public_ok,
        )
        return cls(made)

    @staticmethod
    async def reach(provider: ProviderChoice, *, home: str | Path | None = None) -> None:
        """Open providers and ask each for something, so that a mistyped one shows before a memory is made there.

        Raises ConfigError, ProviderError. Whether uploads are taken only an upload shows: `providers.test`.
        """
        from ipfsmem.provider.choice import each_of
        from ipfsmem.provider.opening import ProviderPool
        from ipfsmem.vault.finding import check_reachable

        pool = ProviderPool(configuration.home(home))
        try:
            await check_reachable(pool.open_all(each_of(provider)))
        finally:
            await pool.aclose()

    @classmethod
    async def recover(
        cls,
        namespace: str | None = None,
        *,
        provider: ProviderChoice,
        unlock: OwnerKey,
        mode: Mode | ModeName = "encrypted-ipfs",
        passphrase: DevicePassphrase = None,
        home: HomeChoice = None,
        memory_dir: str | Path | None = None,
        root_cid: str | None = None,
        public_ok: bool = False,
        damaged_ok: bool = False,
    ) -> Memory:
        """Bring a memory back on a device that has nothing but the wallet or the recovery words, and enrol the device.

        `mode` is the kind that was made; a vault of the other kind is refused (OtherKindError), so that nobody turns a
        sealed memory into a public one. In mode `ipfs` nothing is published before somebody agrees on this device:
        `public_ok`, or the first sync. `root_cid`: a root of it that was written down, where no name or list leads to
        one. A provider that can only be read is enough: a notice in `restored` says what waits. Raises NoVaultError when
        none is found, DamagedError when nothing of it can be read whole; nothing is left on the disk then. `damaged_ok`
        makes the memory here all the same, so that `salvage` can bring back what can be read.
        """
        from ipfsmem.parts.making import recover

        made = await recover(
            namespace,
            provider=provider,
            unlock=unlock,
            mode=mode,
            passphrase=passphrase,
            home=home,
            memory_dir=memory_dir,
            root_cid=root_cid,
            public_ok=public_ok,
            damaged_ok=damaged_ok,
        )
        return cls(made)

    @classmethod
    async def open_foreign(
        cls, source: str, *, provider: ProviderChoice = None, world: Environment | None = None
    ) -> Memory:
        """Read somebody's public bundle, ours or that of the original, without writing anything to the disk.

        `source`: a CID, an IPNS name, a path or URL of either, the URL of a `manifest.json`; or a folder, an export or a CAR
        file on this disk. Who wrote it is not known; `opened` says where it came from.

        `provider` None: those of the settings. Within the limits for strangers (64 MiB, 20,000 blocks). Raises
        NotFoundError, FormatError, LimitError, ProviderError, ConfigError when there is nothing to read through.
        """
        from ipfsmem.parts.making import open_foreign

        return cls(await open_foreign(source, provider=provider, world=world))

    @classmethod
    def load_damaged(
        cls, namespace: str | None = None, *, passphrase: str | None = None, home: HomeChoice = None
    ) -> Memory:
        """What can still be read of the memory of `namespace` when its database is damaged, to be read and exported only.

        Nothing is written to the disk. `replica.lost` names what cannot be read, and each export names it as left out. Raises
        NotFoundError, PassphraseError, StorageError when nothing can be read.
        """
        from ipfsmem.vault.opening import open_damaged

        known, place = configuration.settings(), Home.of(home)
        name = namespace or known.namespace or configuration.DEFAULT_NAMESPACE
        folder = configuration.namespace_folder(place.path(known), name)
        opened = VaultHandle(name, open_damaged(folder, passphrase, place.world))
        return cls(OpenResult(opened, Connection(opened), Origin()))

    def fork(
        self,
        namespace: str,
        *,
        mode: Mode | ModeName = "local",
        home: HomeChoice = None,
        partial: bool = False,
        **options: Any,
    ) -> Memory:
        """A new memory of its own with everything in this one, or in the one scope that was chosen, conflicts too; its last
        event says where it came from.

        What is others' word here is so there, and all of a bundle that was opened to be read. Raises IncompleteError, and
        makes nothing, when something is not on this device and `partial` is not given.
        """
        import msgspec

        from ipfsmem.device.tables import meta
        from ipfsmem.memories.importing import import_files

        found, left = self.bundles.whole()
        crowded = tuple(file for part in found for file in part.without_room())
        msgspec.structs.replace(left, copies=(*left.copies, *crowded)).refuse(partial)
        if not isinstance(home, Home):
            here = self.replica.folder.parent if self.replica.folder else None
            home = Home(folder=home if home is not None else here, world=self.replica.world)
        other = Memory.create(namespace, mode, home=home, **options)
        parts = {part.scope: part.part() for part in found}
        import_files(other._open.memories, parts, foreign=bool(self.replica.read_only))
        root = self.replica.db.get_meta(meta.ROOT)
        lineage = {"from": self.namespace, **({"root": root.decode()} if root else {})}
        other.note("forked", **lineage)
        return other


validated(Memory, {"close", "aclose"})


def _close(made: OpenResult | None) -> None:
    if made is not None:
        made.close()
