"""Creates vaults, restores them from a provider, and reads foreign bundles: `Memory.create`, `recover`, `open_foreign`, and
`load` of a vault that is not on this device. A failure leaves nothing on the disk."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem import config as configuration
from ipfsmem.config import LocalVaultConfig, Settings, VaultConfig
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.device.creation import folder_claimed, mark_as_memory, remove_unfinished_memory
from ipfsmem.device.local_vaults import FIRST, refuse_shared, vault_label
from ipfsmem.device.replica import Environment, Replica, claim_folder
from ipfsmem.errors import ConfigError, NoVaultError, UsageError, WrongWalletError
from ipfsmem.files.attaching import plain_files_at
from ipfsmem.in_thread import in_thread
from ipfsmem.memories.bundle_tree import BundleScope
from ipfsmem.memories.importing import import_files
from ipfsmem.mode import Mode, ModeName, mode_named
from ipfsmem.open_vault.handle import VaultHandle
from ipfsmem.open_vault.opening import LoadRequest, OpeningDetails, OpenResult, ProviderConnection
from ipfsmem.provider.choice import ProviderChoice, each_of, specs_of
from ipfsmem.provider.contract import Provider
from ipfsmem.provider.opening import ProviderPool
from ipfsmem.results import Opened
from ipfsmem.sync.company import Company
from ipfsmem.sync.progress import no_progress
from ipfsmem.vault.creating import begin_replica, create_replica, scratch_replica
from ipfsmem.vault.finding import find_vault, vault_of_root
from ipfsmem.vault.home import DevicePassphrase, Home, HomeChoice
from ipfsmem.vault.others_bundles import read_others_bundle
from ipfsmem.vault.owner import OwnerKey, Unlock, check_protection, owner_key
from ipfsmem.vault.vaults import list_in_default_vault
from ipfsmem.wallet.passphrases import require_strong
from ipfsmem.wallet.recovery_words import to_words
from ipfsmem.wallet.root_keys import RootKeys


class _Plan(msgspec.Struct, frozen=True):
    """The checked properties of a vault to be created."""

    vault_name: str
    mode: Mode
    home: Home
    known: Settings
    #: The vault's folder, checked to be free.
    folder: Path
    #: The folder of its plain files, as `ipfsmem.json` names it.
    plain_folder: str | None
    provider: ProviderChoice
    passphrase: str | None
    public_ok: bool

    @classmethod
    def of(
        cls,
        vault_name: str | None,
        mode: Mode,
        *,
        provider: ProviderChoice,
        passphrase: DevicePassphrase,
        home: HomeChoice,
        memory_dir: str | Path | None,
        public_ok: bool,
    ) -> _Plan:
        """Check the arguments. Raises ConfigError and UsageError."""
        here, config = Home.of(home), configuration.settings()
        check_protection(mode, passphrase)
        name = configuration.chosen_vault(vault_name, config)
        folder = configuration.vault_folder(here.path(config), name)
        claim_folder(folder)
        plain_folder = plain_files_at(mode, memory_dir)
        return cls(name, mode, here, config, folder, plain_folder, provider, passphrase or None, public_ok)

    @property
    def environment(self) -> Environment:
        return self.home.environment

    def config(self, vault: VaultConfig | None) -> LocalVaultConfig:
        """Return the content of `ipfsmem.json`."""
        return LocalVaultConfig(
            self.mode,
            self.home.device_label(self.known),
            providers=specs_of(self.provider),
            vault=vault,
            memory_dir=self.plain_folder,
            public=self.public_ok and self.mode.public,
        )

    def named(self, unlock: Unlock) -> Unlock:
        """Return a wallet with the label of the vault of this name."""
        return unlock.for_vault_called(vault_label(self.folder.parent, self.folder.name, unlock.vault))

    def list_in_default_vault(self, vault: VaultConfig) -> str:
        """List this vault in the wallet's vault `default` on this device; return why it was not, empty if it was."""
        return list_in_default_vault(
            self.folder.parent, self.vault_name, vault, self.passphrase, self.environment
        )


def make_here(request: LoadRequest) -> OpenResult | None:
    """Create a vault that needs no provider; None if a provider must be searched first."""
    loaded = configuration.settings()
    name, mode, home = request.name(loaded), request.known_mode, request.home
    if mode is None or mode.published:
        return None
    if mode.on_disk:
        return create(name, mode, provider=request.provider or loaded.provider, home=home)
    config = LocalVaultConfig(Mode.NONE, home.label or mode)
    result = _open_result(VaultHandle(name, create_replica(None, config, home.environment, passphrase=None)))
    result.connection.syncing.pool.home = home.path(loaded) if home.folder is not None else None
    return result


def create(
    vault_name: str | None,
    mode: Mode | ModeName,
    *,
    provider: ProviderChoice = None,
    unlock: OwnerKey | None = None,
    recovery: bool = True,
    passphrase: DevicePassphrase = None,
    home: HomeChoice = None,
    memory_dir: str | Path | None = None,
    public_ok: bool = False,
) -> OpenResult:
    """Create an empty vault: see `Memory.create`."""
    chosen = mode_named(mode)
    if not chosen.on_disk:
        raise UsageError(f"mode {mode!r} cannot be created", hint="local, ipfs or encrypted-ipfs.")
    key = None if unlock is None else owner_key(unlock)
    plan = _Plan.of(
        vault_name,
        chosen,
        provider=provider,
        passphrase=passphrase,
        home=home,
        memory_dir=memory_dir,
        public_ok=public_ok,
    )
    pool = ProviderPool(plan.folder.parent)
    opened = pool.open_all(each_of(provider))
    try:
        new = _new_vault(key, plan, recovery) if chosen.published else _NewVault()
        replica = create_replica(
            plan.folder,
            plan.config(new.vault),
            plan.environment,
            passphrase=plan.passphrase,
            root=new.root,
            recovery=RootKeys.from_recovery(new.words) if new.words is not None else None,
            root_secret=new.secret,
        )
    except BaseException:
        pool.close()
        raise
    result = _open_result(VaultHandle(plan.vault_name, replica))
    result.connection.syncing.hold(pool, opened, new.root)
    if new.words is not None:
        result.details.recovery_words = to_words(new.words)
    try:
        result.opened.begin_files()
    except BaseException:
        # Its recovery phrase was not shown, and it has only texts of the folder.
        result.opened.give_up_files()
        result.close()
        remove_unfinished_memory(plan.folder)
        raise
    if new.vault is not None:
        result.details.unlisted = plan.list_in_default_vault(new.vault)
    return result


class _NewVault(msgspec.Struct, frozen=True):
    """The keys of a vault to be created; all None in mode `local`."""

    root: RootKeys | None = None
    #: What this device pins of it.
    vault: VaultConfig | None = None
    #: The secret that the root is derived from; this device must store it if there is no wallet.
    secret: bytes | None = None
    #: The secret that the recovery phrase encodes.
    words: bytes | None = None

    def __repr__(self) -> str:
        return "_NewVault()"


def _new_vault(key: Unlock | RootKeys | None, plan: _Plan, recovery: bool) -> _NewVault:
    """Return the keys of a new vault. Raises UsageError, ConfigError if another vault on this device is the same one."""
    plain = not plan.mode.sealed
    secret = None
    if isinstance(key, Unlock):
        key = plan.named(key)
        if key.passphrase is not None:
            require_strong(key.passphrase, "the signature passphrase")
        root = key.root(twice=True)
        vault = key.config(root, plain=plain)
    else:
        if key is None:
            secret = plan.environment.random(64)
            key = RootKeys.from_random(secret, FIRST, 1)
        root = key
        if root.kind == "recovery":
            raise UsageError("a recovery phrase cannot create a vault, only restore one")
        vault = VaultConfig(
            tag=root.tag(plain=plain).hex(),
            name=FIRST,
            key_number=1,
            address=None,
            admin=root.admin_public.hex(),
            anchor=root.head_public.hex(),
        )
    refuse_shared(plan.folder.parent, plan.vault_name, vault)
    return _NewVault(root, vault, secret, plan.environment.random(32) if recovery else None)


async def recover(
    vault_name: str | None,
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
) -> OpenResult:
    """Restore a vault from its provider: see `Memory.recover`."""
    if not each_of(provider):
        raise ConfigError(
            "no provider to search",
            hint="Name the provider: --provider (in Python: provider=).",
        )
    chosen = mode_named(mode)
    if not chosen.published:
        raise UsageError(f"a vault in mode {mode} is never published", hint="ipfs or encrypted-ipfs.")
    key = owner_key(unlock)
    plan = _Plan.of(
        vault_name,
        chosen,
        provider=provider,
        passphrase=passphrase,
        home=home,
        memory_dir=memory_dir,
        public_ok=public_ok,
    )
    named_root = None if root_cid is None else parse_cid(root_cid)
    pool = ProviderPool(plan.folder.parent)
    opened = pool.open_all(each_of(provider))
    try:
        root, vault, finders = await _search(key, plan, opened, named_root)
    except BaseException:
        await pool.aclose()
        raise
    with folder_claimed(plan.folder):
        begin = functools.partial(
            begin_replica, plan.folder, plan.config(vault), plan.environment, passphrase=plan.passphrase
        )
        try:
            replica = await in_thread(begin, _remove_begun)
        except BaseException:
            await pool.aclose()
            raise
        result = _open_result(VaultHandle(plan.vault_name, replica))
        syncing = result.connection.syncing
        syncing.hold(pool, opened, root)
        try:
            result.details.restored = await syncing.bring_back(
                root,
                plan.home.progress or no_progress,
                named_root=named_root,
                damaged_ok=damaged_ok,
                finders=finders,
            )
            # Only now: an interrupted restore starts over, and is never mistaken for an empty vault.
            mark_as_memory(replica)
        except BaseException:
            result.opened.give_up_files()
            await syncing.aclose()
            result.close()
            remove_unfinished_memory(plan.folder)
            raise
    result.details.unlisted = plan.list_in_default_vault(vault)
    return result


async def _search(
    key: Unlock | RootKeys, plan: _Plan, providers: list[Provider], named_root: CID | None
) -> tuple[RootKeys, VaultConfig, Company]:
    """Return the owner's root keys, the vault found at the providers, and the company that found it. Raises ConfigError if another
    vault_name here has that vault."""
    with contextlib.closing(scratch_replica(plan.environment)) as scratch:
        company = Company(scratch, providers, plan.home.progress or no_progress)

        async def look(key: Unlock | RootKeys) -> tuple[RootKeys, VaultConfig]:
            sealed = plan.mode.sealed
            root = await asyncio.to_thread(key.root, twice=False) if isinstance(key, Unlock) else key
            if named_root is None:
                vault = await find_vault(root, company.members, scratch, sealed=sealed)
            else:
                vault = await vault_of_root(root, named_root, company.members, scratch, sealed=sealed)
            if isinstance(key, Unlock) and vault.admin == root.admin_public.hex():
                vault = key.config(root, plain=not sealed)
            return root, vault

        async with company.detecting_unresponsive():
            if isinstance(key, Unlock):
                root, vault = await _first_found(key, plan, look, any_of_both=named_root is not None)
            else:
                root, vault = await look(key)
    refuse_shared(plan.folder.parent, plan.vault_name, vault)
    return root, vault, company


async def _first_found(
    key: Unlock,
    plan: _Plan,
    look: Callable[[Unlock], Awaitable[tuple[RootKeys, VaultConfig]]],
    *,
    any_of_both: bool,
) -> tuple[RootKeys, VaultConfig]:
    """Search for the wallet's vault of this name; if it certainly does not exist, for the wallet's first vault,
    which is then restored under that name. `any_of_both`: a version of either vault was named. Raises NoVaultError,
    ProviderError."""
    *earlier_keys, last = key.searched(plan.folder.parent, plan.folder.name)
    for one in earlier_keys:
        try:
            return await look(one)
        except WrongWalletError:
            if not any_of_both:
                raise
        except NoVaultError as error:
            if error.doubt:
                error.hint = (
                    "Try again later, or with another provider. If it is the first vault of the wallet: "
                    f"ipfsmem recover --vault {plan.vault_name} --wallet-vault {FIRST} with the same wallet "
                    f"(in Python: Unlock(vault={FIRST!r}))."
                )
                raise
    return await look(last)


async def restore_here(request: LoadRequest) -> OpenResult:
    """Restore the vault of a `request` from its provider; else create one, if agreed."""
    config = configuration.settings()
    name, spec, mode = request.name(config), request.provider or config.provider, request.known_mode
    assert mode is not None
    if request.unlock is None:
        raise ConfigError(
            f"there is no vault {name} on this device, and no wallet or recovery phrase to restore it was given",
            hint="Pass the wallet or the recovery phrase, or create a new vault with: ipfsmem init.",
        )
    how: dict[str, Any] = {
        "provider": spec,
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


async def open_foreign(
    source: str, *, provider: ProviderChoice, environment: Environment | None
) -> OpenResult:
    """Read a public bundle in this process only: see `Memory.open_foreign`."""
    environment = environment or Environment()
    specs = each_of(provider) or each_of(configuration.settings().provider)
    pool = ProviderPool(configuration.home(None))
    try:
        foreign = await read_others_bundle(source, pool.open_all(specs), now_ms=environment.now())
    finally:
        await pool.aclose()
    result = _open_result(VaultHandle(configuration.DEFAULT_VAULT, scratch_replica(environment)))
    parts = {scope: BundleScope(blob) for scope, blob in {"": foreign.blob, **foreign.scopes}.items()}
    problems = list(dict.fromkeys(import_files(result.opened.memories, parts).problems))
    result.details.opened = Opened(source=foreign.source, root=foreign.root, problems=problems)
    result.opened.replica.read_only = foreign.source
    return result


def _open_result(opened: VaultHandle) -> OpenResult:
    return OpenResult(opened, ProviderConnection(opened), OpeningDetails())


def _take_back(result: OpenResult) -> None:
    """Remove a vault that was just created and never shown, with its recovery phrase."""
    folder = result.opened.replica.folder
    result.close()
    if folder is not None:
        remove_unfinished_memory(folder)


def _remove_begun(replica: Replica) -> None:
    replica.close()
    if replica.folder is not None:
        remove_unfinished_memory(replica.folder)
