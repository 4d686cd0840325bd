"""Making a memory, bringing one back from a provider, and reading somebody's bundle: what `Memory.create`, `recover`,
`open_foreign` and a `load` of what is not here do. Nothing is left on the disk when one of them fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ipfsmem import config as configuration
from ipfsmem.config import NamespaceConfig, VaultConfig
from ipfsmem.content.cid import parse_cid
from ipfsmem.device.creation import folder_claimed, mark_as_memory, remove_unfinished_memory
from ipfsmem.device.namespaces import FIRST, refuse_shared, vault_label
from ipfsmem.device.replica import Replica, World, claim_folder
from ipfsmem.errors import ConfigError, NoVaultError, UsageError
from ipfsmem.files.attaching import plain_files_at
from ipfsmem.memories.bundle_tree import Part
from ipfsmem.memories.importing import import_files
from ipfsmem.mode import Mode, ModeName, mode_named
from ipfsmem.parts.open_memory import OpenMemory
from ipfsmem.parts.opening import Connection, LoadRequest, Made, Origin
from ipfsmem.provider.choice import ProviderChoice, each_of, specs_of
from ipfsmem.provider.opening import ProviderPool
from ipfsmem.results import Opened
from ipfsmem.vault.creating import begin_replica, create_replica, scratch_replica
from ipfsmem.vault.finding import find_vault, vault_of_root
from ipfsmem.vault.home import Home, HomeChoice
from ipfsmem.vault.others_bundles import read_others_bundle
from ipfsmem.vault.owner import DevicePassphrase, OwnerKey, Unlock, check_protection, owner_key
from ipfsmem.vault.vaults import list_in_default_vault
from ipfsmem.wallet.passphrases import require_strong
from ipfsmem.wallet.recovery_words import to_words
from ipfsmem.wallet.root_keys import RootKeys

T = TypeVar("T")


def keep_in_process(name: str, mode: Mode, home: Home, folder: Path | None) -> Made:
    """A memory in mode `none`, which lives as long as this process. `folder`: where providers are looked up."""
    config = NamespaceConfig(Mode.NONE, home.label or mode)
    made = _made(OpenMemory(name, create_replica(None, config, home.world, passphrase=None)))
    made.connection.syncing.pool.home = folder
    return made


def create(
    namespace: str | None,
    mode: Mode | ModeName,
    *,
    provider: ProviderChoice = None,
    unlock: OwnerKey | None = None,
    recovery: bool = True,
    passphrase: DevicePassphrase = None,
    home: HomeChoice = None,
    memory_dir: str | Path | None = None,
    public_ok: bool = False,
) -> Made:
    """A new, empty memory: see `Memory.create`."""
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
        config = NamespaceConfig(
            chosen,
            here.device_label(known),
            providers=specs_of(provider),
            vault=vault,
            memory_dir=plain_folder,
            public=public_ok and chosen.public,
        )
        replica = create_replica(
            folder,
            config,
            world,
            passphrase=passphrase or None,
            root=root,
            recovery=RootKeys.from_recovery(words) if words is not None else None,
            root_secret=secret,
        )
    except BaseException:
        pool.close()
        raise
    made = _made(OpenMemory(namespace, replica))
    made.connection.syncing.hold(pool, opened, root)
    if words is not None:
        made.origin.recovery_words = to_words(words)
    try:
        made.opened.begin_files()
    except BaseException:
        # Nobody has seen its words, and nothing is in it that does not stand in the folder.
        made.opened.give_up_files()
        made.close()
        remove_unfinished_memory(folder)
        raise
    if vault is not None:
        made.origin.unlisted = list_in_default_vault(
            folder.parent, namespace, vault, passphrase or None, world
        )
    return made


async def recover(
    namespace: str | None,
    *,
    provider: ProviderChoice,
    unlock: OwnerKey,
    mode: Mode | ModeName,
    passphrase: DevicePassphrase = None,
    home: HomeChoice = None,
    memory_dir: str | Path | None = None,
    root_cid: str | None = None,
    public_ok: bool = False,
    damaged_ok: bool = False,
) -> Made:
    """A memory that is kept elsewhere, brought to this device: see `Memory.recover`."""
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
    config = NamespaceConfig(
        chosen,
        here.device_label(known),
        providers=specs_of(provider),
        vault=vault,
        memory_dir=plain_folder,
        public=public_ok and not sealed,
    )
    with folder_claimed(folder):
        begin = functools.partial(begin_replica, folder, config, world, passphrase=passphrase or None)
        try:
            replica = await in_thread(begin, _remove_begun)
        except BaseException:
            await pool.aclose()
            raise
        made = _made(OpenMemory(namespace, replica))
        syncing = made.connection.syncing
        syncing.hold(pool, opened, root)
        try:
            made.origin.restored = await syncing.bring_back(
                root, here.progress, named_root=given, damaged_ok=damaged_ok
            )
            # Only now: a restore that is cut off is begun again, and never taken for an empty memory.
            mark_as_memory(replica)
        except BaseException:
            made.opened.give_up_files()
            await syncing.aclose()
            made.close()
            remove_unfinished_memory(folder)
            raise
    made.origin.unlisted = list_in_default_vault(folder.parent, namespace, vault, passphrase or None, world)
    return made


async def bring_here(request: LoadRequest) -> Made:
    """The owner's memory that `request` names, from its provider; else a new one, when that was agreed to."""
    known = configuration.settings()
    name, where, mode = request.name(known), request.provider or known.provider, request.known_mode
    assert mode is not None
    if request.unlock is None:
        raise ConfigError(
            f"there is no memory {name} on this device, and nothing to unlock one with",
            hint="Give the wallet or the recovery words, or make a new memory with: ipfsmem init.",
        )
    how: dict[str, Any] = {
        "provider": where,
        "unlock": request.unlock,
        "mode": mode,
        "passphrase": request.passphrase,
        "home": request.home,
        "public_ok": request.public_ok,
    }
    try:
        return await recover(name, **how)
    except NoVaultError as error:
        if not request.create or error.doubt:
            raise
    return await in_thread(functools.partial(create, name, **how), _take_back)


async def open_foreign(source: str, *, provider: ProviderChoice, world: World | None) -> Made:
    """Somebody's public bundle, in this process only: see `Memory.open_foreign`."""
    world = world or World()
    given = provider or configuration.settings().provider
    pool = ProviderPool(configuration.home(None))
    try:
        foreign = await read_others_bundle(source, pool.open_all(each_of(given)), now_ms=world.now())
    finally:
        await pool.aclose()
    made = _made(OpenMemory(configuration.DEFAULT_NAMESPACE, scratch_replica(world)))
    parts = {scope: Part(blob) for scope, blob in {"": foreign.blob, **foreign.scopes}.items()}
    problems = list(dict.fromkeys(import_files(made.opened.memories, parts).problems))
    made.origin.opened = Opened(source=foreign.source, root=foreign.root, problems=problems)
    made.opened.replica.read_only = foreign.source
    return made


async def in_thread(work: Callable[[], T], undo: Callable[[T], None]) -> T:
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


def _made(opened: OpenMemory) -> Made:
    return Made(opened, Connection(opened), Origin())


def _take_back(made: Made) -> None:
    """Remove a memory that was made just now and that nobody was shown, with the words that nobody was shown."""
    folder = made.opened.replica.folder
    made.close()
    if folder is not None:
        remove_unfinished_memory(folder)


def _remove_begun(replica: Replica) -> None:
    replica.close()
    if replica.folder is not None:
        remove_unfinished_memory(replica.folder)


def _named(unlock: Unlock, folder: Path) -> Unlock:
    """A wallet with the label of the vault that the namespace in `folder` is to hold."""
    return unlock.for_vault_called(vault_label(folder.parent, folder.name, unlock.vault))


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
    vault = VaultConfig(
        tag=root.tag(plain=plain).hex(),
        name=FIRST,
        key_number=1,
        address=None,
        admin=root.admin_public.hex(),
        anchor=root.head_public.hex(),
    )
    return root, vault, secret
