"""`Memory`: the one façade. It is made of parts, each with its own methods; the everyday ones stand on it directly.

Here memories are made, opened, restored and forked, and nothing else is done: what a method does stands in `parts`.
Coroutines are the only ones that touch a provider, and `load` where a memory has to be brought back.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import msgspec

from ipfsmem import config as configuration
from ipfsmem.bundle.keys import check_scope, is_key
from ipfsmem.config import NamespaceConfig, VaultConfig
from ipfsmem.content.cid import parse_cid
from ipfsmem.device.creation import folder_claimed, mark_as_memory, remove_unfinished_memory
from ipfsmem.device.namespaces import FIRST, refuse_shared, vault_label
from ipfsmem.device.replica import Replica, World, claim_folder
from ipfsmem.device.tables import meta
from ipfsmem.errors import ConfigError, NoVaultError, UsageError
from ipfsmem.files.attaching import plain_files_at
from ipfsmem.memories.bundle_tree import Part
from ipfsmem.memories.importing import import_files
from ipfsmem.memories.memories import NotHereError
from ipfsmem.memories.stacks import Stack
from ipfsmem.mode import Mode, ModeName, mode_named
from ipfsmem.parts.bundles import MemoryBundles
from ipfsmem.parts.folders import MemoryFolders
from ipfsmem.parts.lock_watching import lock_watch as watch_lock
from ipfsmem.parts.maintenance import MemoryMaintenance
from ipfsmem.parts.members import MemoryMembers
from ipfsmem.parts.open_memory import OpenMemory
from ipfsmem.parts.part import refuse_wrong_calls
from ipfsmem.parts.providers import MemoryProviders
from ipfsmem.parts.scopes import MemoryScopes
from ipfsmem.parts.sessions import MemorySessions
from ipfsmem.parts.status import MemoryStatus
from ipfsmem.parts.syncing import ProviderChoice, Syncing, each_of, specs_of
from ipfsmem.parts.texts import MemoryTexts
from ipfsmem.parts.timeline import MemoryTimeline
from ipfsmem.parts.vaults import MemoryVaults
from ipfsmem.parts.versions import MemoryVersions
from ipfsmem.provider.opening import ProviderPool
from ipfsmem.results import Opened, Status
from ipfsmem.sync.background import Told
from ipfsmem.sync.report import SyncReport
from ipfsmem.vault.finding import check_reachable, find_vault, vault_of_root
from ipfsmem.vault.home import Home, HomeChoice
from ipfsmem.vault.opening import (
    DevicePassphrase,
    OwnerKey,
    Unlock,
    begin_replica,
    check_protection,
    create_replica,
    open_damaged,
    open_replica,
    owner_key,
    scratch_replica,
)
from ipfsmem.vault.others_bundles import read_others_bundle
from ipfsmem.vault.vaults import list_in_first
from ipfsmem.wallet.passphrases import require_strong
from ipfsmem.wallet.recovery_words import to_words
from ipfsmem.wallet.root_keys import RootKeys

T = TypeVar("T")
P = ParamSpec("P")


class Origin(msgspec.Struct):
    """How an open memory came to be here; all of it empty for one that was here already."""

    #: Where a foreign bundle came from.
    opened: Opened | None = None
    #: What the sync did that brought it back.
    restored: SyncReport | None = None
    #: The 24 recovery words of a vault made just now; shown once, kept nowhere.
    recovery_words: list[str] | None = None
    #: Why the wallet's vault `default` on this device does not list the vault that was made or brought back just now;
    #: empty when it does, or when there is nothing to list.
    unlisted: str = ""

    def __repr__(self) -> str:
        return "Origin()"


def _of_texts(method: Callable[Concatenate[MemoryTexts, P], T]) -> Callable[Concatenate[Memory, P], T]:
    """A method of the texts, as one of the memory."""

    @functools.wraps(method)
    def call(self: Memory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(self._texts, *args, **kwargs)

    vars(call)["handed_on"] = True
    return call


def _of_syncing(method: Callable[Concatenate[Syncing, P], T]) -> Callable[Concatenate[Memory, P], T]:
    """A method of the syncing, as one of the memory."""

    @functools.wraps(method)
    def call(self: Memory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(self._syncing, *args, **kwargs)

    vars(call)["handed_on"] = True
    return call


class _Wish(msgspec.Struct, frozen=True):
    """What `load` was asked for."""

    namespace: str | None
    mode: Mode | ModeName | None
    provider: ProviderChoice
    unlock: OwnerKey | None
    passphrase: DevicePassphrase
    home: Home
    create: bool
    public_ok: bool

    def __repr__(self) -> str:
        return f"_Wish({self.namespace!r}, {self.mode!r})"

    @property
    def known_mode(self) -> Mode | None:
        """The mode, None when nobody has said one. Raises UsageError for a word that is none."""
        return mode_named(self.mode) if self.mode is not None else None

    def name(self, known: configuration.Settings) -> str:
        """The namespace, by the settings when none was named."""
        return self.namespace or known.namespace or configuration.DEFAULT_NAMESPACE


class Memory:
    """One agent's memory on this device. Make one with `create`, open one with `load`; close it when done.

    `memory.scope(token)` is one scope of it, with the same methods. What is about one part of a memory has that part's
    name: `timeline`, `sessions`, `versions`, `bundles`, `scopes`, `folders`, `members`, `providers`, `vaults`, `maintenance`.
    """

    def __init__(
        self,
        opened: OpenMemory,
        *,
        syncing: Syncing | None = None,
        scope: str | None = None,
        origin: Origin | None = None,
    ) -> None:
        """Use `create` or `load`. `scope`: the one that was chosen, which somebody else opened and closes with `syncing`."""
        self._open = opened
        self._borrowed = syncing is not None
        self._syncing = syncing or Syncing(opened)
        self._origin = origin or Origin()
        chosen = scope or ""
        self._texts = MemoryTexts(opened, chosen)
        #: What happened: events added and read.
        self.timeline = MemoryTimeline(opened, chosen)
        #: Conversations, item by item.
        self.sessions = MemorySessions(opened, chosen)
        #: Published versions, and the texts that a memory has had.
        self.versions = MemoryVersions(opened, chosen)
        #: What goes out and comes in as files.
        self.bundles = MemoryBundles(opened, scope)
        #: The scopes of this vault.
        self.scopes = MemoryScopes(opened)
        #: The working copies of this memory on this device.
        self.folders = MemoryFolders(opened)
        #: Who belongs to this memory.
        self.members = MemoryMembers(opened, self._syncing)
        #: Where it is published.
        self.providers = MemoryProviders(opened, self._syncing)
        #: Further vaults of this memory's wallet.
        self.vaults = MemoryVaults(opened)
        #: Old versions let go, damage looked for and mended, this device's passphrase.
        self.maintenance = MemoryMaintenance(opened, self._syncing)

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
        return self._texts.scope

    def status(self) -> Status:
        """Counts and state of all scopes, local."""
        return MemoryStatus(self._open, self._syncing, self.scopes, self.members, self.folders).status()

    # -- everyday: texts, events, syncs ----------------------------------------------------------------------

    write = _of_texts(MemoryTexts.write)
    write_text = _of_texts(MemoryTexts.write_text)
    read = _of_texts(MemoryTexts.read)
    read_conflict = _of_texts(MemoryTexts.read_conflict)
    list = _of_texts(MemoryTexts.list)
    index = _of_texts(MemoryTexts.index)
    recall = _of_texts(MemoryTexts.recall)
    context = _of_texts(MemoryTexts.context)
    forget = _of_texts(MemoryTexts.forget)
    conflicts = _of_texts(MemoryTexts.conflicts)
    resolve = _of_texts(MemoryTexts.resolve)
    promote = _of_texts(MemoryTexts.promote)
    promote_all = _of_texts(MemoryTexts.promote_all)
    candidates = _of_texts(MemoryTexts.candidates)
    undo = _of_texts(MemoryTexts.undo)
    files = _of_texts(MemoryTexts.files)

    unlock = _of_syncing(Syncing.unlock)
    lock = _of_syncing(Syncing.lock)
    sync = _of_syncing(Syncing.sync)
    flush = _of_syncing(Syncing.flush)

    @property
    def unlocked(self) -> bool:
        """Whether the wallet or recovery root is held."""
        return self._syncing.root is not None

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
        scope = f", scope {self._texts.scope}" if self._texts.scope else ""
        closed = ", closed" if self._open.closed else ""
        return f"<Memory {self.namespace}, {self.mode}{scope}{closed}>"

    def note(self, kind: str, /, **data: Any) -> dict[str, Any]:
        """Append an event to the timeline, durable when this returns: `timeline.add`."""
        return self.timeline.add(kind, **data)

    @contextlib.asynccontextmanager
    async def autosync(
        self,
        *,
        idle: float = 30.0,
        most: float = 600.0,
        every: float | None = 300.0,
        public_ok: bool = False,
        allow: Iterable[str] = (),
        told: Told | None = None,
    ) -> AsyncIterator[Self]:
        """Keep in sync while the block runs; see `Syncing.autosync`."""
        work = self._syncing.autosync(
            idle=idle, most=most, every=every, public_ok=public_ok, allow=allow, told=told
        )
        async with work:
            yield self

    @contextlib.asynccontextmanager
    async def lock_watch(self) -> AsyncIterator[asyncio.Event]:
        """For a program that runs for long: while the block runs, keys that were unlocked are dropped within a second of `lock`, or
        of the end of their time, and the event is set. Every call raises PassphraseError from then on; `load` opens the memory
        anew once it is unlocked again. `autosync` has this in it. With a passphrase the event is never set.
        """
        locked = asyncio.Event()
        async with watch_lock(self._open, locked.set):
            yield locked

    # -- scopes ----------------------------------------------------------------------------------------------

    def scope(self, token: str) -> Memory:
        """The memories and events of one scope (format section 5.1; "" is the nameless one), with the same methods.

        It is made by its first write. What turned out to be this scope (`into` on its card) is read below it, and where it
        turned out to be another itself, what is written here goes there; each answer says in which scope it stands. It lives
        as long as this memory, and closing it closes nothing. What is about the whole vault (sync, members, providers) is
        this memory's. Raises KeyNameError.
        """
        return Memory(self._open, syncing=self._syncing, scope=token, origin=self._origin)

    def stack(self, *tokens: str) -> Stack:
        """Several scopes read as one: these, the first before the next, each with what turned out to be it, and then what
        is everybody's (the nameless scope). Each answer says in which it stands; nothing is written through it. Raises
        KeyNameError.
        """
        self._open.look()
        scopes, memories = self._open.scopes, self._open.memories
        named = [scope for token in tokens for scope in (scopes.stack(check_scope(token)) if token else [])]
        return Stack([memories.in_scope(scope) for scope in (*named, "")])

    # -- closing ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of files, secrets and the providers that were opened here from their specs.

        In a running event loop connections end when the loop comes to it; `aclose`, or `async with`, waits for that.
        """
        if not self._borrowed:
            self._syncing.close()
            self._open.close()

    async def aclose(self) -> None:
        """`close`, and the connections of this event loop are closed when it returns."""
        if not self._borrowed:
            await self._syncing.aclose()
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
        wish = _Wish(namespace, mode, provider, unlock, passphrase, Home.of(home), create, public_ok)
        opened = cls._opened(wish)
        return opened if opened is not None else _run(cls._brought(wish))

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
        wish = _Wish(namespace, mode, provider, unlock, passphrase, Home.of(home), create, public_ok)
        opened = await _in_thread(functools.partial(cls._opened, wish), _close_opened)
        return opened if opened is not None else await cls._brought(wish)

    @classmethod
    def _opened(cls, wish: _Wish) -> Memory | None:
        """The memory that is on this device; None when it has to be brought here."""
        known = configuration.settings()
        name, mode, home = wish.name(known), wish.known_mode, wish.home
        if mode is not None and not mode.on_disk:
            config = NamespaceConfig(Mode.NONE, home.label or mode)
            memory = cls(OpenMemory(name, create_replica(None, config, home.world, passphrase=None)))
            memory._syncing.pool.home = home.path(known) if home.folder is not None else None
            return memory
        folder = configuration.namespace_folder(home.path(known), name)
        if mode is not None and not has_memory(folder):
            if mode.published:
                return None
            return cls.create(name, mode, provider=wish.provider or known.provider, home=home)
        memory = cls(OpenMemory(name, open_replica(folder, wish.passphrase or None, home.world)))
        try:
            if mode not in (None, memory.mode):
                raise ConfigError(f"the memory {name} is in mode {memory.mode}, not {mode}")
            syncing = memory._syncing
            if wish.provider:
                syncing.use(wish.provider)
            else:
                syncing.places = syncing.pool.open(each_of(memory.replica.config.providers or known.provider))
            if wish.unlock is not None:
                memory.unlock(wish.unlock)
            memory._open.begin_files()
        except BaseException:
            memory.close()
            raise
        return memory

    @classmethod
    async def _brought(cls, wish: _Wish) -> Memory:
        """The owner's memory, brought here from its provider; else a new one, when that was agreed to."""
        known = configuration.settings()
        name, where, mode = wish.name(known), wish.provider or known.provider, wish.known_mode
        assert mode is not None
        if wish.unlock is None:
            raise ConfigError(
                f"there is no memory {name} on this device, and nothing to unlock one with",
                hint="Give the wallet or the recovery words, or make a new memory with: ipfsmem init.",
            )
        how: dict[str, Any] = {
            "provider": where,
            "unlock": wish.unlock,
            "mode": mode,
            "passphrase": wish.passphrase,
            "home": wish.home,
            "public_ok": wish.public_ok,
        }
        try:
            return await cls.recover(name, **how)
        except NoVaultError as error:
            if not wish.create or error.doubt:
                raise
        return await _in_thread(functools.partial(cls.create, name, **how), _take_back)

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
        known = configuration.settings()
        namespace = namespace or known.namespace or configuration.DEFAULT_NAMESPACE
        here = Home.of(home)
        world = here.world
        chosen = mode_named(mode)
        if not chosen.on_disk:
            raise UsageError(f"mode {mode!r} cannot be created", hint="local, ipfs or encrypted-ipfs.")
        check_protection(chosen, passphrase)
        key = None if unlock is None else owner_key(unlock)
        folder = configuration.namespace_folder(here.path(known), namespace)
        claim_folder(folder)
        plain_folder = plain_files_at(chosen, memory_dir)
        pool = ProviderPool(folder.parent)
        opened = pool.open_all(each_of(provider))
        root: RootKeys | None = None
        vault: VaultConfig | None = None
        secret: bytes | None = None
        words: bytes | None = None
        try:
            if chosen.published:
                if isinstance(key, Unlock):
                    key = _named(key, folder)
                    if key.passphrase is not None:
                        require_strong(key.passphrase, "the signature passphrase")
                root, vault, secret = _new_root(key, world, plain=not chosen.sealed)
                refuse_shared(folder.parent, namespace, vault)
                words = world.random(32) if recovery else None
            made = NamespaceConfig(
                chosen,
                here.device_label(known),
                providers=specs_of(provider),
                vault=vault,
                memory_dir=plain_folder,
                public=public_ok and chosen.public,
            )
            replica = create_replica(
                folder,
                made,
                world,
                passphrase=passphrase or None,
                root=root,
                recovery=RootKeys.from_recovery(words) if words is not None else None,
                root_secret=secret,
            )
        except BaseException:
            pool.close()
            raise
        memory = cls(OpenMemory(namespace, replica))
        memory._syncing.hold(pool, opened, root)
        if words is not None:
            memory._origin.recovery_words = to_words(words)
        try:
            memory._open.begin_files()
        except BaseException:
            # Nobody has seen its words, and nothing is in it that does not stand in the folder.
            memory._open.give_up_files()
            memory.close()
            remove_unfinished_memory(folder)
            raise
        if vault is not None:
            memory._origin.unlisted = list_in_first(
                folder.parent, namespace, vault, passphrase or None, world
            )
        return memory

    @staticmethod
    async def reach(provider: ProviderChoice, *, home: str | Path | None = None) -> None:
        """Open providers and ask each for something, so that a mistyped one shows before a memory is made there.

        Raises ConfigError, ProviderError. Whether uploads are taken only an upload shows: `providers.test`.
        """
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
        known = configuration.settings()
        namespace = namespace or known.namespace or configuration.DEFAULT_NAMESPACE
        here = Home.of(home)
        world = here.world
        if not provider:
            raise ConfigError(
                "no provider to look at",
                hint="Say where the memory is kept: --provider (in Python: provider=).",
            )
        chosen = mode_named(mode)
        if not chosen.published:
            raise UsageError(f"a memory in mode {mode} is not kept elsewhere", hint="ipfs or encrypted-ipfs.")
        check_protection(chosen, passphrase)
        sealed = chosen.sealed
        key = owner_key(unlock)
        folder = configuration.namespace_folder(here.path(known), namespace)
        claim_folder(folder)
        plain_folder = plain_files_at(chosen, memory_dir)
        if isinstance(key, Unlock):
            key = _named(key, folder)
        given = None if root_cid is None else parse_cid(root_cid)
        pool = ProviderPool(folder.parent)
        opened = pool.open_all(each_of(provider))
        scratch = scratch_replica(world)
        try:
            root = await asyncio.to_thread(key.root, twice=False) if isinstance(key, Unlock) else key
            if given is None:
                vault = await find_vault(root, opened, scratch, sealed=sealed)
            else:
                vault = await vault_of_root(root, given, opened, scratch, sealed=sealed)
            if isinstance(key, Unlock) and vault.admin == root.admin_public.hex():
                vault = key.config(root, plain=not sealed)
            refuse_shared(folder.parent, namespace, vault)
        except BaseException:
            await pool.aclose()
            raise
        finally:
            scratch.close()
        made = NamespaceConfig(
            chosen,
            here.device_label(known),
            providers=specs_of(provider),
            vault=vault,
            memory_dir=plain_folder,
            public=public_ok and not sealed,
        )
        with folder_claimed(folder):
            begin = functools.partial(begin_replica, folder, made, world, passphrase=passphrase or None)
            try:
                replica = await _in_thread(begin, _remove_begun)
            except BaseException:
                await pool.aclose()
                raise
            memory = cls(OpenMemory(namespace, replica))
            memory._syncing.hold(pool, opened, root)
            try:
                memory._origin.restored = await memory._syncing.bring_back(
                    root, here.progress, named_root=given, damaged_ok=damaged_ok
                )
                # Only now: a restore that is cut off is begun again, and never taken for an empty memory.
                mark_as_memory(replica)
            except BaseException:
                memory._open.give_up_files()
                await memory.aclose()
                remove_unfinished_memory(folder)
                raise
        memory._origin.unlisted = list_in_first(folder.parent, namespace, vault, passphrase or None, world)
        return memory

    @classmethod
    async def open_foreign(
        cls, source: str, *, provider: ProviderChoice = None, world: World | None = None
    ) -> Memory:
        """Read somebody's public bundle, ours or that of the original, without writing anything to the disk.

        `source`: a CID, an IPNS name, a path or URL of either, the URL of a `manifest.json`; or a folder, an export or a CAR
        file on this disk. Who wrote it is not known; `opened` says where it came from.

        `provider` None: those of the settings. Within the limits for strangers (64 MiB, 20,000 blocks). Raises
        NotFoundError, FormatError, LimitError, ProviderError, ConfigError when there is nothing to read through.
        """
        world = world or World()
        given = provider or configuration.settings().provider
        pool = ProviderPool(configuration.home(None))
        try:
            foreign = await read_others_bundle(source, pool.open_all(each_of(given)), now_ms=world.now())
        finally:
            await pool.aclose()
        memory = cls(OpenMemory(configuration.DEFAULT_NAMESPACE, scratch_replica(world)))
        parts = {scope: Part(blob) for scope, blob in {"": foreign.blob, **foreign.scopes}.items()}
        problems = list(dict.fromkeys(import_files(memory._open.memories, parts).problems))
        memory._origin.opened = Opened(source=foreign.source, root=foreign.root, problems=problems)
        memory.replica.read_only = foreign.source
        return memory

    @classmethod
    def load_damaged(
        cls, namespace: str | None = None, *, passphrase: str | None = None, home: HomeChoice = None
    ) -> Memory:
        """What can still be read of the memory of `namespace` when its database is damaged, to be read and exported only.

        Nothing is written to the disk. `replica.lost` names what cannot be read, and each export names it as left out. Raises
        NotFoundError, PassphraseError, StorageError when nothing can be read.
        """
        known, place = configuration.settings(), Home.of(home)
        name = namespace or known.namespace or configuration.DEFAULT_NAMESPACE
        folder = configuration.namespace_folder(place.path(known), name)
        return cls(OpenMemory(name, open_damaged(folder, passphrase, place.world)))

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


refuse_wrong_calls(Memory, {"close", "aclose"})


def has_memory(folder: Path) -> bool:
    """Whether a memory is in this folder."""
    return (folder / configuration.CONFIG_FILE).exists()


async def _in_thread(work: Callable[[], T], undo: Callable[[T], None]) -> T:
    """What `work` returns, done in a thread. A thread cannot be stopped: when its caller is cancelled, its end is waited for and
    `undo` takes back what it made, before the caller gives up what it holds."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled() and task.exception() is None:
            undo(task.result())
        raise


def _close_opened(memory: Memory | None) -> None:
    if memory is not None:
        memory.close()


def _take_back(memory: Memory) -> None:
    """Remove a memory that was made just now and that nobody was shown, with the words that nobody was shown."""
    folder = memory.replica.folder
    memory.close()
    if folder is not None:
        remove_unfinished_memory(folder)


def _remove_begun(replica: Replica) -> None:
    replica.close()
    if replica.folder is not None:
        remove_unfinished_memory(replica.folder)


def _named(unlock: Unlock, folder: Path) -> Unlock:
    """A wallet with the label of the vault that the namespace in `folder` is to hold."""
    return unlock.named(vault_label(folder.parent, folder.name, unlock.vault))


def _new_root(
    unlock: Unlock | RootKeys | None, world: World, *, plain: bool
) -> tuple[RootKeys, VaultConfig, bytes | None]:
    """The root of a new vault, what to pin of it, and without a wallet the secret that this device must keep."""
    if isinstance(unlock, Unlock):
        root = unlock.root(twice=True)
        return root, unlock.config(root, plain=plain), None
    secret = None
    if unlock is None:
        secret = world.random(64)
        unlock = RootKeys.from_random(secret, FIRST, 1)
    root = unlock
    if root.kind == "recovery":
        raise UsageError("recovery words cannot make a memory, only bring one back")
    made = VaultConfig(
        tag=root.tag(plain=plain).hex(),
        name=FIRST,
        key_number=1,
        address=None,
        admin=root.admin_public.hex(),
        anchor=root.head_public.hex(),
    )
    return root, made, secret


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from synchronous code, also when this thread already runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    result: list[T] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            result.append(asyncio.run(work))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]
