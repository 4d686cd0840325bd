"""`Memory`, the public class: everyday methods, and one attribute for each group of methods.

Methods only call `operations` and `parts`, which are imported on first use. Only coroutines use the network, except `load` of a
vault that is not on this device.
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
from ipfsmem.errors import UsageError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_reader import NotHereError
from ipfsmem.memories.memory_records import MemoryRecord, Seen
from ipfsmem.methods import MemoryMethods
from ipfsmem.mode import Mode, ModeName
from ipfsmem.open_vault.handle import VaultHandle
from ipfsmem.open_vault.method_group import validated
from ipfsmem.open_vault.opening import LoadRequest, OpeningDetails, OpenResult, ProviderConnection, open_here
from ipfsmem.vault.home import DevicePassphrase, Home, HomeChoice

if TYPE_CHECKING:
    import asyncio

    from ipfsmem.groups import (
        Bundles,
        Dreams,
        Facts,
        Graph,
        Hidden,
        MemoryStack,
        MemoryTimeline,
        Scopes,
        Sessions,
        Usage,
        Values,
    )
    from ipfsmem.linked_folders import Folders
    from ipfsmem.memories.context import ContextBlock, Readiness
    from ipfsmem.open_vault.plugins import MemoryPlugins
    from ipfsmem.open_vault.syncing import Syncing
    from ipfsmem.open_vault.versions import MemoryVersions
    from ipfsmem.operation import View
    from ipfsmem.provider.choice import ProviderChoice
    from ipfsmem.results import Opened
    from ipfsmem.sync.background import OnAttempt
    from ipfsmem.sync.report import SyncReport
    from ipfsmem.upkeep import Agents, Maintenance, Members, Operations, Providers, Settings, Vaults
    from ipfsmem.vault.owner import OwnerKey
else:  # a read does not import them: what uses such an argument checks it
    ContextBlock = OwnerKey = ProviderChoice = object
    OnAttempt = Callable

T = TypeVar("T")
P = ParamSpec("P")


def _handed_on(method: Callable[P, T]) -> Callable[P, T]:
    """Mark a method that only calls a method of a part, which checks its arguments."""
    vars(method)["handed_on"] = True
    return method


class Memory(MemoryMethods):
    """A vault on this device. Create one with `create`, open one with `load`; close it after use.

    `memory.scope(token)` returns one scope of it, with the same methods. Methods for one subject are in a group:
    `timeline`, `sessions`, `facts`, `values`, `hidden`, `graph`, `usage`, `dreams`, `plugins`, `versions`, `bundles`, `scopes`, `folders`, `members`,
    `agents`, `providers`, `vaults`, `settings`, `maintenance`, `operations`.
    """

    def __init__(self, result: OpenResult, *, scope: str | None = None) -> None:
        """Use `create` or `load`. `scope`: a scope of a vault that another object opened and closes."""
        self._result = result
        self._open = result.opened
        self._details = result.details
        self._chosen = scope
        #: The memories of this scope alone, without linked folders.
        self._memories: MemoryStore = result.opened.memories.in_scope(scope or "")

    @functools.cached_property
    def timeline(self) -> MemoryTimeline:
        """What happened: events added and read."""
        from ipfsmem.groups import MemoryTimeline

        return MemoryTimeline(self._open, self._chosen or "")

    @functools.cached_property
    def sessions(self) -> Sessions:
        """Sessions: conversations and their messages."""
        from ipfsmem.groups import Sessions

        return Sessions(self._open, self._chosen or "")

    @functools.cached_property
    def dreams(self) -> Dreams:
        """Proposals to tidy up the memories, applied and undone."""
        from ipfsmem.groups import Dreams

        return Dreams(self._open, self._chosen or "")

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
        """Entities and relations between them."""
        from ipfsmem.groups import Graph

        return Graph(self._open, self._chosen or "")

    @functools.cached_property
    def plugins(self) -> MemoryPlugins:
        """Other memory systems that recall asks as well."""
        from ipfsmem.open_vault.plugins import MemoryPlugins

        return MemoryPlugins(self._open)

    @functools.cached_property
    def usage(self) -> Usage:
        """Use of models, its cost, and budgets."""
        from ipfsmem.groups import Usage

        return Usage(self._open, self._chosen or "")

    @functools.cached_property
    def operations(self) -> Operations:
        """The audit log of this device."""
        from ipfsmem.upkeep import Operations

        return Operations(self._open)

    @functools.cached_property
    def hidden(self) -> Hidden:
        """Memories that this device hides from lists and answers."""
        from ipfsmem.groups import Hidden

        return Hidden(self._open, self._chosen or "")

    @functools.cached_property
    def versions(self) -> MemoryVersions:
        """Published versions, and their differences."""
        from ipfsmem.open_vault.versions import MemoryVersions

        return MemoryVersions(self._open)

    @functools.cached_property
    def bundles(self) -> Bundles:
        """Import and export of files."""
        from ipfsmem.groups import Bundles

        return Bundles(self._open, self._chosen)

    @functools.cached_property
    def scopes(self) -> Scopes:
        """The scopes of this vault."""
        from ipfsmem.groups import Scopes

        return Scopes(self._open)

    @functools.cached_property
    def folders(self) -> Folders:
        """The linked folders of this vault on this device."""
        from ipfsmem.linked_folders import Folders

        return Folders(self._open)

    @functools.cached_property
    def members(self) -> Members:
        """The members of this vault."""
        from ipfsmem.upkeep import Members

        return Members(self._open, self._syncing)

    @functools.cached_property
    def agents(self) -> Agents:
        """The agent keys of this vault, which open it in containers."""
        from ipfsmem.upkeep import Agents

        return Agents(self._open, self._syncing)

    @functools.cached_property
    def providers(self) -> Providers:
        """The providers of this vault."""
        from ipfsmem.upkeep import Providers

        return Providers(self._open, self._syncing)

    @functools.cached_property
    def vaults(self) -> Vaults:
        """Further vaults of the wallet."""
        from ipfsmem.upkeep import Vaults

        return Vaults(self._open)

    @functools.cached_property
    def settings(self) -> Settings:
        """The settings of this user."""
        from ipfsmem.upkeep import Settings

        return Settings(self._open)

    @functools.cached_property
    def maintenance(self) -> Maintenance:
        """Deletion of old versions, repair, the index, and this device's passphrase."""
        from ipfsmem.upkeep import Maintenance

        return Maintenance(self._open, self._syncing)

    def _view(self) -> View:
        from ipfsmem.operation import View

        return View(self._open, self._memories.scope, syncing=lambda: self._syncing, named=self._chosen)

    @property
    def _syncing(self) -> Syncing:
        return self._result.connection.syncing

    # -- facts -----------------------------------------------------------------------------------------------

    @property
    def vault(self) -> str:
        """Name of the vault on this device."""
        return self._open.vault_name

    @property
    def vault_name(self) -> str:
        """Former name of `vault`."""
        return self.vault

    @property
    def replica(self) -> Replica:
        """The replica on this device's disk, for internal use."""
        return self._open.replica

    @property
    def mode(self) -> Mode:
        """Mode: `none`, `local`, `ipfs` or `encrypted-ipfs`."""
        return self._open.mode

    @property
    def device(self) -> str:
        """Id of this device as a writer."""
        return self._open.device

    @property
    def opened(self) -> Opened | None:
        """Source of a foreign bundle; None for an own vault."""
        return self._details.opened

    @property
    def restored(self) -> SyncReport | None:
        """Report of the sync that brought this vault back; None if it was on this device."""
        return self._details.restored

    @property
    def recovery_words(self) -> list[str] | None:
        """The recovery phrase of a vault that was just created, as 24 words; it is stored nowhere."""
        return self._details.recovery_words

    @property
    def unlisted(self) -> str:
        """Why the wallet's vault `default` on this device does not list the vault that was just created or restored;
        empty if it does, or need not."""
        return self._details.unlisted

    @property
    def in_scope(self) -> str:
        """Token of this scope; "" is the unnamed scope."""
        return self._memories.scope

    # -- everyday: texts, events, syncs ----------------------------------------------------------------------

    def write_text(
        self, key: str, data: bytes, *, seen: Seen | None = None, if_match: str | None = None
    ) -> MemoryRecord:
        """Write a whole file with its header, byte for byte; else as `write`."""
        return self.write(key, text=data, seen=seen, if_match=if_match)

    def index(self) -> str:
        """Return the text of MEMORY.md."""
        self._open.ingest_edits()
        return self._memories.index()

    def files(self) -> dict[str, bytes]:
        """Return the file of each visible memory, by key."""
        self._open.ingest_edits()
        with self.replica.reading():
            return {view.key: view.data for _, view in self._memories.views() if view.data is not None}

    def readiness(self) -> Readiness:
        """Tell whether the layout `turn` can answer, and from all data, without building a large index first."""
        from ipfsmem.memories.context import readiness
        from ipfsmem.operations.context import context_sources

        return readiness(context_sources(self._view()))

    def make_ready(self) -> None:
        """Build and store the index for the layout `turn`, if it is missing and takes long to build. Raises StorageError."""
        from ipfsmem.memories.context import make_ready
        from ipfsmem.operations.context import context_sources

        make_ready(context_sources(self._view()))

    def mark_delivered(self, block: ContextBlock, session: str = "") -> None:
        """Record that a model received a block made with `deliver=False`, as use, so that `session` does not receive its parts again."""
        from ipfsmem.memories.context import ContextBlock, count_shown

        if not isinstance(block, ContextBlock):
            raise UsageError(f"mark_delivered: block is a ContextBlock, not {type(block).__name__}")
        count_shown(self._memories, block)
        if session:
            self._open.shown.note(session, block.marks)

    def reset_context(self, session: str) -> None:
        """Record that a session lost its context blocks, as it was compacted or cleared."""
        self._open.shown.forget(session)

    @_handed_on
    def unlock(self, unlock: OwnerKey | None = None) -> None:
        """Keep the root keys of the wallet or recovery phrase in memory until `close`, to add, rotate and revoke keys.

        None: the root keys that this device stores of a vault without a wallet. Raises WrongWalletError for another wallet,
        MembershipError if no root keys are stored.
        """
        self._syncing.unlock(unlock)

    def lock(self) -> None:
        """Drop the root keys that `unlock` loaded."""
        if self._result.connection.begun is not None:
            self._syncing.lock()

    @property
    def unlocked(self) -> bool:
        """Whether root keys are loaded."""
        begun = self._result.connection.begun
        return begun is not None and begun.root is not None

    async def flush(self) -> SyncReport | None:
        """Publish pending changes now; None without any. During `autosync` also retry what failed there permanently, and raise its error."""
        syncing = self._syncing
        if syncing.background is not None:
            return await syncing.flush()
        self._open.scan()
        return await self.sync() if syncing.unpublished() else None

    def __contains__(self, key: object) -> bool:
        """Tell whether a memory of this key is visible, also if its text is not on this device."""
        try:
            return isinstance(key, str) and is_key(key) and self.read(key) is not None
        except NotHereError:
            return True

    def __len__(self) -> int:
        """Return the number of memories in `list`."""
        return len(self.list())

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys in `list`."""
        return iter([one.key for one in self.list()])

    def __bool__(self) -> bool:
        """Return True, also for an empty vault."""
        return True

    def __repr__(self) -> str:
        scope = f", scope {self.in_scope}" if self.in_scope else ""
        closed = ", closed" if self._open.closed else ""
        return f"<Memory {self.vault}, {self.mode}{scope}{closed}>"

    def note(self, kind: str, /, **data: Any) -> dict[str, Any]:
        """Add an event to the timeline, as `timeline.add` with these fields."""
        from ipfsmem.operations.timeline import add

        return add.run(self._view(), {"type": kind, "data": data})

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
        """Sync in the background while the block runs; see `Syncing.autosync`."""
        work = self._syncing.autosync(
            idle=idle, most=most, every=every, public_ok=public_ok, allow=allow, on_attempt=on_attempt
        )
        async with work:
            yield self

    @contextlib.asynccontextmanager
    async def lock_watch(self) -> AsyncIterator[asyncio.Event]:
        """Drop unlocked keys within a second of `ipfsmem lock`, or of their expiry, while the block runs, and set the event.

        Every call raises PassphraseError afterwards; `load` the vault again once it is unlocked. `autosync` includes this. The
        event is never set for a vault that was loaded with its passphrase.
        """
        import asyncio

        from ipfsmem.open_vault.lock_watching import lock_watch

        locked = asyncio.Event()
        async with lock_watch(self._open, locked.set):
            yield locked

    # -- scopes ----------------------------------------------------------------------------------------------

    def scope(self, token: str) -> Memory:
        """Return one scope (format section 5.1; "" is the unnamed one), with the same methods.

        The first write creates it. Scopes that were merged into this one (`into` on their cards) are read with it, and if this one
        was merged into another, writes go there; each answer names its scope. It is usable while this object is open; closing it
        has no effect. Sync, members and providers are those of the vault. Raises KeyNameError.
        """
        return Memory(self._result, scope=token)

    def stack(self, *tokens: str) -> MemoryStack:
        """Return several scopes as one, read-only: these in order of precedence, each with the scopes merged into it, then the
        unnamed scope. Each answer names its scope. Raises KeyNameError.
        """
        from ipfsmem.groups import MemoryStack

        self._open.ingest_edits()
        order = self._open.read_order
        scopes = [scope for token in tokens if token for scope in order(check_scope(token))]
        return MemoryStack(self._open, dict.fromkeys((*scopes, "")))

    # -- closing ---------------------------------------------------------------------------------------------

    @_handed_on  # waits for running embedding without the lock that it needs
    def close(self) -> None:
        """Close files, drop secrets, and close the providers that were opened by their specs.

        In a running event loop connections close later; `aclose`, or `async with`, waits for that.
        """
        if self._chosen is None:
            self._open.end_meaning()
            self._open.end_plugins()
            with self._open.lock:
                self._result.close()

    async def aclose(self) -> None:
        """Do `close`, and wait until the connections of this event loop are closed."""
        begun = self._result.connection.begun
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
        vault: str | None = None,
        mode: Mode | ModeName | None = None,
        *,
        provider: ProviderChoice = None,
        unlock: OwnerKey | None = None,
        passphrase: DevicePassphrase = None,
        home: HomeChoice = None,
        create: bool = False,
        public_ok: bool = False,
    ) -> Memory:
        """Open a vault on this device by its name, `vault`.

        If it is not on this device, `mode` decides: `none` and `local` create an empty one. The published modes search the
        provider for the wallet's vault of that name, then for its vault `default`, and bring it back (the only load that uses the
        network); with `create` they create one if there is certainly none. `passphrase` protects this device's keys (False: no
        passphrase, the disk is trusted). `public_ok` agrees that a vault in mode `ipfs` is published unencrypted. It blocks a
        running event loop: use `aload` there.

        With an agent key in IPFSMEM_KEY, and without `mode`, `provider`, `unlock` and `home`, the vault of that key is opened from
        its providers, to read, in this process only.

        Raises NotFoundError, NoVaultError (`doubt`: why one may exist all the same), OtherKindError for a vault of
        the other mode, PassphraseError, WrongWalletError, ConfigError, UsageError.
        """
        request = LoadRequest(vault, mode, provider, unlock, passphrase, Home.of(home), create, public_ok)
        if key := request.agent_key:
            from ipfsmem.in_thread import run_to_end
            from ipfsmem.open_vault.by_key import open_by_key

            return cls(
                run_to_end(
                    open_by_key(
                        key, vault or configuration.DEFAULT_VAULT, environment=request.home.environment
                    )
                )
            )
        here = open_here(request)
        if here is None:
            from ipfsmem.in_thread import run_to_end
            from ipfsmem.open_vault.creating import make_here, restore_here

            here = make_here(request) or run_to_end(restore_here(request))
        return cls(here)

    @classmethod
    async def aload(
        cls,
        vault: str | None = None,
        mode: Mode | ModeName | None = None,
        *,
        provider: ProviderChoice = None,
        unlock: OwnerKey | None = None,
        passphrase: DevicePassphrase = None,
        home: HomeChoice = None,
        create: bool = False,
        public_ok: bool = False,
    ) -> Memory:
        """Do `load` without blocking the event loop: keys are derived and files opened in a thread."""
        request = LoadRequest(vault, mode, provider, unlock, passphrase, Home.of(home), create, public_ok)
        if key := request.agent_key:
            from ipfsmem.open_vault.by_key import open_by_key

            return cls(
                await open_by_key(
                    key, vault or configuration.DEFAULT_VAULT, environment=request.home.environment
                )
            )
        from ipfsmem.in_thread import in_thread
        from ipfsmem.open_vault.creating import make_here, restore_here

        here = await in_thread(lambda: open_here(request) or make_here(request), _close)
        return cls(here if here is not None else await restore_here(request))

    @classmethod
    def create(
        cls,
        vault: str | None = None,
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
        """Create an empty vault, without searching for one that the wallet has: `load(create=True)` does.

        `public_ok` agrees for mode `ipfs` that all data is published unencrypted; else the first sync asks.

        In published modes the wallet signs twice, and unless `recovery` is False a recovery phrase is created
        (`recovery_words`). Without `unlock` this device alone holds the root keys. Raises ConfigError if a provider cannot be
        opened or another vault on this device is the same one; nothing was created then.
        """
        from ipfsmem.open_vault.creating import create

        result = create(
            vault,
            mode,
            provider=provider,
            unlock=unlock,
            recovery=recovery,
            passphrase=passphrase,
            home=home,
            memory_dir=memory_dir,
            public_ok=public_ok,
        )
        return cls(result)

    @staticmethod
    async def reach(provider: ProviderChoice, *, home: str | Path | None = None) -> None:
        """Open providers and send each a request, to find a mistyped one before a vault is created there.

        Raises ConfigError, ProviderError. Only an upload shows if uploads are accepted: `providers.test`.
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
        vault: str | None = None,
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
        """Bring a vault back by its wallet or recovery phrase, and add this device as a member.

        A wallet's vault is searched by its name, `vault`, then as `default`. `mode`: mode of the vault; one of the other mode
        raises OtherKindError, so that an encrypted vault is never published unencrypted. In mode `ipfs` nothing is published
        before `public_ok` or the first sync agrees to it. `root_cid`: a version to start from, if no name or pin leads to
        one. A read-only provider suffices; a notice in `restored` names what could not be published. Raises NoVaultError if
        none is found, DamagedError if no version is readable whole; nothing remains on the disk then. `damaged_ok`
        continues all the same, so that `salvage` can restore the readable parts.
        """
        from ipfsmem.open_vault.creating import recover

        result = await recover(
            vault,
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
        return cls(result)

    @classmethod
    async def open_foreign(
        cls, source: str, *, provider: ProviderChoice = None, environment: Environment | None = None
    ) -> Memory:
        """Read a public bundle, of ipfsmem or of the original implementation, without writing to the disk.

        `source`: a CID, an IPNS name, a path or URL of either, the URL of a `manifest.json`; or a folder, an export or a CAR
        file on this disk. Its author is unknown; `opened` has the source.

        `provider` None: those of the settings. At most 64 MiB and 20,000 blocks. Raises NotFoundError, FormatError,
        LimitError, ProviderError, ConfigError without a provider to read from.
        """
        from ipfsmem.open_vault.creating import open_foreign

        return cls(await open_foreign(source, provider=provider, environment=environment))

    @classmethod
    def load_damaged(
        cls, vault: str | None = None, *, passphrase: str | None = None, home: HomeChoice = None
    ) -> Memory:
        """Open the readable parts of a vault with a damaged database, to read and export them.

        Nothing is written to the disk. `replica.lost` lists unreadable parts, and each export names them as omitted. Raises
        NotFoundError, PassphraseError, StorageError if nothing is readable.
        """
        from ipfsmem.vault.opening import open_damaged

        config, place = configuration.settings(), Home.of(home)
        name = configuration.chosen_vault(vault, config)
        folder = configuration.vault_folder(place.path(config), name)
        opened = VaultHandle(name, open_damaged(folder, passphrase, place.environment))
        return cls(OpenResult(opened, ProviderConnection(opened), OpeningDetails()))

    def fork(
        self,
        vault: str,
        *,
        mode: Mode | ModeName = "local",
        home: HomeChoice = None,
        partial: bool = False,
        **options: Any,
    ) -> Memory:
        """Create a vault as a copy of this one, or of the chosen scope, with its conflicts; its last event names the source.

        Pending texts stay pending, and all texts of a foreign bundle are pending. Raises IncompleteError, and creates
        nothing, if texts are not on this device, unless `partial` is given.
        """
        import msgspec

        from ipfsmem.device.tables import meta
        from ipfsmem.memories.importing import import_files
        from ipfsmem.operations.bundles.content import whole_of

        contents, left_out = whole_of(self._view())
        crowded = tuple(file for part in contents for file in part.without_room())
        msgspec.structs.replace(left_out, copies=(*left_out.copies, *crowded)).refuse(partial)
        if not isinstance(home, Home):
            here = self.replica.folder.parent if self.replica.folder else None
            home = Home(folder=home if home is not None else here, environment=self.replica.environment)
        other = Memory.create(vault, mode, home=home, **options)
        parts = {part.scope: part.part() for part in contents}
        import_files(other._open.memories, parts, foreign=bool(self.replica.read_only))
        root = self.replica.db.get_meta(meta.ROOT)
        lineage = {"from": self.vault, **({"root": root.decode()} if root else {})}
        other.note("forked", **lineage)
        return other


validated(Memory, {"close", "aclose"})


def _close(result: OpenResult | None) -> None:
    if result is not None:
        result.close()
