"""`ipfsmem init`: create a vault on this device, or restore the one of a wallet."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.consent import agrees_to_publish, warned_of
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.folder_attach_cmd import ask_before_making
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.init_questions import InitRequest, ask_for_the_rest
from ipfsmem.cli.new_memory import (
    bring_back,
    device_passphrase,
    end,
    files_left_alone,
    memory_request_options,
    print_remarks,
    print_vaults,
    publish_restored,
    say_not_public,
    vault_text,
    what_came_back,
)
from ipfsmem.cli.printing import Meter, clean, facts, style
from ipfsmem.cli.status_cmd import READERS
from ipfsmem.cli.sync_cmd import print_report
from ipfsmem.cli.wallets import Wallet, default_keystore
from ipfsmem.cli.words_prompt import require_output, show_words, words_unprinted
from ipfsmem.config import expanded
from ipfsmem.errors import (
    IpfsmemError,
    NoVaultError,
    OtherKindError,
    PublicError,
    SecretsError,
    StorageError,
    UsageError,
)
from ipfsmem.mode import Mode
from ipfsmem.open_vault.audit import acting_as
from ipfsmem.vault.beginning import (
    explaining_nothing_was_made,
    incomplete_restore_error,
    make_wallet,
    no_memory_error,
    publish_new_memory,
)

if TYPE_CHECKING:
    from ipfsmem.bundle.program_events import FurtherVault
    from ipfsmem.memory import Memory
    from ipfsmem.sync.report import SyncReport
    from ipfsmem.vault.owner import Unlock


_WORDS = "its recovery phrase"
#: Message if its words could not be shown.
_MADE = "the vault is created, on this device only until ipfsmem sync"


@cli_command("init")
@click.option(
    "--new-wallet",
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="Create a wallet: an encrypted keystore file (default: wallet.json in the --home folder).",
)
@click.option(
    "--no-wallet",
    is_flag=True,
    help="Use no wallet: the vault's keys are on this device and in the recovery phrase.",
)
@click.option(
    "--no-recovery", is_flag=True, help="Create no recovery phrase. Then only the wallet opens the vault."
)
@click.option(
    "--create",
    is_flag=True,
    help="Create a vault without asking if no vault for this wallet is found, even if one might exist.",
)
@memory_request_options(
    InitRequest,
    (Mode.ENCRYPTED_IPFS, Mode.LOCAL, Mode.IPFS),
    mode_help="Readers of the vault: only you (encrypted-ipfs), anyone with access to this disk (local), or everyone (ipfs)",
    provider_help="Provider",
)
@acting_as("cli")
def command(context: CommandContext, request: InitRequest) -> None:
    """Create a vault on this device, or restore the vault that the wallet already has.

    If the provider already holds a vault for this wallet, `init` restores it. If the provider cannot be
    opened or reached, nothing is created. If it is uncertain whether the wallet has a vault there,
    creating one requires --create; on a terminal, `init` asks instead.

    To restore a vault but never create one, use `ipfsmem recover --wallet FILE`.

    A new encrypted vault comes with a recovery phrase of 24 words: write it down. On a terminal, `init`
    asks for missing options.
    """
    from ipfsmem.device.replica import claim_folder

    claim_folder(context.folder)
    if secret_input.can_ask() and not context.json:
        request = ask_for_the_rest(request, default_keystore(context.home))
    request.check()
    ask_before_making(request.memory_dir)
    if provider := warned_of([request.where] if isinstance(request.where, str) else request.where):
        request = replace(request, provider=provider)
    with _created(request.new_folder, context.folder):
        _init(context, request)


def _init(context: CommandContext, request: InitRequest) -> None:
    makes_words = request.kind.published and not request.no_recovery
    if makes_words and not request.wallet.named:
        require_output(_WORDS)
    if not context.json:
        click.echo(f"Mode {request.kind}. Readers: {READERS[request.kind]}.", err=True)
    if request.where and not request.wallet.named:
        # Before a passphrase is typed, and before a wallet is created; with an existing wallet the search for its vault does
        # the same.
        _reach(context, request.where)
    passphrase = device_passphrase(context, request) if request.kind.published else None
    settings = request.settings(context, passphrase)
    unlock, keystore = _owner_keys(context, request, passphrase)
    with _wallet_for(context.folder, keystore, unlock):
        existing: Memory | None = None
        others: list[FurtherVault] = []
        if unlock is not None and keystore is None:
            first = unlock.first_elsewhere(context.home, context.vault_name)
            if request.root is not None:
                existing = bring_back(context, settings, unlock, request.root)
            elif first is None:
                existing = _find(context, request, settings, unlock)
            else:
                named_unlock = next(iter(unlock.searched(context.home, context.vault_name)[:-1]), None)
                existing = (
                    _find_named(context, request, settings, named_unlock)
                    if named_unlock is not None
                    else None
                )
                if existing is None:
                    others, unlock = _beside_first_vault(context, request, unlock, first, named_unlock)
        if makes_words and existing is None:
            require_output(_WORDS)
        made_or_found = existing or _create(request, settings, unlock)
    with contextlib.closing(made_or_found) as memory:
        if existing is not None:
            report = publish_restored(memory, context, request.yes_public)
            error: BaseException | None = incomplete_restore_error(memory.restored)
        else:
            report, error = _show_words_and_publish(memory, context, request)
        opens = _opens(request.wallet, passphrase) if keystore else ""
        vaults = [*memory.vaults.list()] if existing is not None else others
        result = _Result(memory, existing is not None, report, keystore, opens, vaults)
        _print_json(context, result) if context.json else _print_text(result)
        incomplete = files_left_alone(memory)
    end(report, error or incomplete)
    if not context.json:
        step = "ipfsmem list" if existing is not None else "ipfsmem write KEY --body TEXT"
        click.echo(style(advice(f"Next: {step}"), dim=True), err=True)


def _reach(context: CommandContext, providers: tuple[str, ...] | str) -> None:
    """Open the providers and send them a request. Raises ConfigError, ProviderError; nothing was created then."""
    from ipfsmem.memory import Memory

    with explaining_nothing_was_made():
        asyncio.run(Memory.reach(providers, home=context.home))


def _owner_keys(
    context: CommandContext, request: InitRequest, passphrase: str | None
) -> tuple[Unlock | None, Path | None]:
    """Return the wallet, if any, and the path of a keystore file created by this call."""
    from ipfsmem.device.local_vaults import vault_label
    from ipfsmem.files.attaching import plain_files_at
    from ipfsmem.wallet.message import check_vault
    from ipfsmem.wallet.passphrases import require_strong

    if request.no_wallet or not request.kind.published:
        return None, None
    if request.new_wallet is None:
        return request.wallet.unlock(passphrase), None
    path = expanded(request.new_wallet) if request.new_wallet else default_keystore(context.home)
    keystore_passphrase = request.wallet.keystore_passphrase(passphrase, new=True)
    # All checks precede the creation of a wallet, which could belong to no vault.
    check_vault(vault_label(context.folder.parent, context.folder.name, request.wallet.vault))
    signature_passphrase = request.wallet.given_signature_passphrase()
    if signature_passphrase is not None:
        require_strong(signature_passphrase, "the signature passphrase")
    plain_files_at(request.kind, request.memory_dir)
    signer = make_wallet(path, keystore_passphrase, secrets.token_bytes)
    return request.wallet.unlock_with(signer, signature_passphrase), path


@contextlib.contextmanager
def _created(folder: Path | None, vault: Path) -> Iterator[None]:
    """Create the folder of a provider, and delete it again if no vault was created in `vault` and it is empty."""
    from ipfsmem.device.replica import read_config

    if folder is None or folder.is_dir():
        yield
        return
    try:
        folder.mkdir()
    except OSError as error:
        raise StorageError(
            f"the folder {folder} cannot be created ({error.strerror}); nothing was created"
        ) from None
    try:
        yield
    except BaseException:
        with contextlib.suppress(IpfsmemError, OSError):
            if read_config(vault) is None:
                folder.rmdir()
        raise


@contextlib.contextmanager
def _wallet_for(folder: Path, keystore: Path | None, unlock: Unlock | None) -> Iterator[None]:
    """Delete a new wallet if no vault could be created for it: the next attempt creates another. A vault that another process
    created meanwhile is not its vault."""
    from ipfsmem.device.replica import read_config

    try:
        yield
    except BaseException:
        if keystore is not None and unlock is not None:
            with contextlib.suppress(IpfsmemError, OSError):
                config = read_config(folder)
                vault = config.vault if config is not None else None
                if vault is None or vault.address != f"0x{unlock.signer.address.hex()}":
                    keystore.unlink()
        raise


def _find(
    context: CommandContext, request: InitRequest, settings: dict[str, Any], unlock: Unlock
) -> Memory | None:
    """Return the wallet's vault if the provider has one. Any doubt is an error: a second vault is never created by mistake."""
    try:
        return bring_back(context, settings, unlock)
    except NoVaultError as error:
        if not request.create and not _may_create(error):
            raise no_memory_error(error) from None
        return None


def _find_named(
    context: CommandContext, request: InitRequest, settings: dict[str, Any], named_unlock: Unlock
) -> Memory | None:
    """Return the wallet's vault of the name in --vault, if it has one."""
    try:
        return bring_back(context, settings, named_unlock)
    except NoVaultError as error:
        if error.doubt and not request.create:
            raise no_memory_error(error) from None
        return None


def _beside_first_vault(
    context: CommandContext, request: InitRequest, unlock: Unlock, first: Unlock, named_unlock: Unlock | None
) -> tuple[list[FurtherVault], Unlock]:
    """Return the wallet's vault `default`, if it has one elsewhere, and the keys of the vault to create. The first one is not
    restored here under another name. Another device may know it by that name, so another vault is created only on request:
    by --create, or by a --mode that the first one does not have. `first`, `named_unlock`: the keys of the vault `default`, and of
    the one that --vault names; None for a name that no wallet's vault can have."""
    from ipfsmem.bundle.program_events import FurtherVault
    from ipfsmem.device.local_vaults import FIRST, local_vaults
    from ipfsmem.vault.finding import require_vault
    from ipfsmem.vault.home import Home

    name = context.vault_name
    with explaining_nothing_was_made(), Meter(silent=context.json) as meter:
        home = Home(folder=context.home, progress=meter)
        try:
            vault = asyncio.run(require_vault(first, request.where, home, sealed=request.kind.sealed))
        except NoVaultError as error:
            if not request.create and not _may_create(error):
                raise no_memory_error(error) from None
            return [], (named_unlock or unlock) if error.doubt else unlock
        except OtherKindError:
            if request.mode is None and not request.create:
                raise
            if named_unlock is None:
                raise UsageError(
                    f"{name!r} cannot be the name of another vault for this wallet",
                    hint="Name the vault: --wallet-vault NAME (in Python: Unlock(vault=NAME)).",
                ) from None
            another = NoVaultError(
                f"this wallet has no vault {name} there, and its vault {FIRST} has another mode"
            )
            if not (request.create or _may_create(another)):
                raise no_memory_error(another) from None
        else:
            if any(one.vault and one.vault.tag == vault.tag for one in local_vaults(context.home).values()):
                return [], unlock  # the recovery phrase restored it here
            may_be_it = NoVaultError(
                f"this wallet has no vault {name} there, but a vault {FIRST}, which another device may have under that name",
                doubt="it may have another name here",
            )
            if named_unlock is None:
                may_be_it.hint = (
                    f"Nothing was created on this device. If it is that vault: ipfsmem recover --vault {name} with the same wallet. "
                    f"For a separate vault: ipfsmem init --vault {name} --wallet-vault NAME."
                )
                raise may_be_it
            if not (request.create or _may_create(may_be_it)):
                may_be_it.hint = (
                    f"Nothing was created on this device. If it is that vault: ipfsmem recover --vault {name} with the same wallet. "
                    "For a separate vault: --create."
                )
                raise may_be_it
    first_vault = FurtherVault(
        name=FIRST, key_number=first.key_number or 1, address=f"0x{unlock.signer.address.hex()}"
    )
    return [first_vault], named_unlock


def _may_create(error: NoVaultError) -> bool:
    """Tell whether to create a vault for a wallet without one: by an answer, and without a terminal only if its absence is
    certain."""
    if not secret_input.can_ask():
        return not error.doubt
    click.echo(f"{clean(str(error))}.", err=True)
    return bool(click.confirm("Create a new one?", default=not error.doubt, err=True))


def _create(request: InitRequest, settings: dict[str, Any], unlock: Unlock | None) -> Memory:
    from ipfsmem.memory import Memory

    return Memory.create(**settings, unlock=unlock, recovery=not request.no_recovery)


def _show_words_and_publish(
    memory: Memory, context: CommandContext, request: InitRequest
) -> tuple[SyncReport | None, BaseException | None]:
    """Publish a new vault where the wallet will search for it. Return also the error that prevented it, to be raised at the
    end.

    The recovery phrase exists nowhere else, so it is shown first, whatever happens then (with --json in the answer).
    """
    if memory.recovery_words and not context.json:
        _show_words(memory.recovery_words, memory)
    if not request.where:
        return None, None
    try:
        public_ok = agrees_to_publish(memory, request.yes_public)
        with Meter(silent=context.json) as meter:
            return asyncio.run(publish_new_memory(memory.sync(public_ok=public_ok, progress=meter))), None
    except SecretsError as error:
        return None, error
    except PublicError:
        say_not_public()
        return None, None
    except (Exception, KeyboardInterrupt) as error:
        return None, error


def _show_words(words: list[str], memory: Memory) -> None:
    """Show the phrase. A person who interrupts the question after it is told that the vault is created, with this phrase."""
    try:
        with words_unprinted(_MADE):
            show_words(words, memory)
    except click.Abort:
        click.echo(
            advice(
                "The vault is created, on this device only until: ipfsmem sync. The words shown are its recovery phrase; for a new one: "
                "ipfsmem key phrase."
            ),
            err=True,
        )
        raise


class _Result(NamedTuple):
    """The vault that is on this device now, and its origin."""

    memory: Memory
    restored: bool
    #: Report of its last sync.
    report: SyncReport | None
    #: The file of a wallet created by this call, and the passphrase that opens it, unless it has its own.
    keystore: Path | None
    opened_by: str
    #: Other vaults of its wallet.
    vaults: list[FurtherVault]


def _print_json(context: CommandContext, result: _Result) -> None:
    from ipfsmem.results import Begun

    memory = result.memory
    words = memory.recovery_words
    with words_unprinted(_MADE) if words else contextlib.nullcontext():
        context.emit(
            Begun.of(
                memory.status(),
                restored=result.restored,
                keystore=str(result.keystore) if result.keystore else None,
                recovery_words=words,
                unlisted=memory.unlisted,
                vaults=result.vaults,
                sync=result.report,
            )
        )


def _print_text(result: _Result) -> None:
    memory, status = result.memory, result.memory.status()
    address = status.vault.address if status.vault else None
    if result.restored:
        headline = f"Found this wallet's vault. {what_came_back(status, memory.restored)}"
    elif result.vaults:
        headline = f"Created a new vault, {status.vault_name}: this wallet had no vault of this name there."
    else:
        headline = "Created a new vault" + (
            ": this wallet had no vault there." if address and not result.keystore else "."
        )
    click.echo(style(headline, bold=True))
    keep = f"  (your wallet: keep a copy of this file elsewhere{result.opened_by})"
    facts(
        [
            ("vault", status.vault_name),
            ("folder", clean(status.folder or "")),
            ("device", status.device),
            ("wallet", address or "none" if status.vault else ""),
            ("wallet vault", vault_text(status)),
            ("keystore", f"{result.keystore}{keep}" if result.keystore else ""),
            ("provider", clean(", ".join(status.providers))),
            ("published", status.root or ""),
        ]
    )
    print_remarks(status)
    if result.report is not None and result.report.notices:
        print_report(result.report)
    print_vaults(memory.unlisted, result.vaults)


def _opens(wallet: Wallet, passphrase: str | None) -> str:
    """Return which passphrase protects a new wallet, if no own one was requested."""
    own = secret_input.from_fd_or_environment(wallet.passphrase_fd, "IPFSMEM_WALLET_PASSPHRASE")
    return "" if own or passphrase is None else "; this device's passphrase opens it"
