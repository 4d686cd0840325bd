"""`ipfsmem init`: a memory on this device, new or brought back by the wallet that has one already."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli import init_questions, secret_input
from ipfsmem.cli.context import (
    CommandContext,
    agrees_to_publish,
    cli_command,
    label_option,
    not_empty,
    provider_option,
    root_option,
)
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.printing import Meter, clean, count, facts, style
from ipfsmem.cli.status_cmd import READERS
from ipfsmem.cli.sync_cmd import tell
from ipfsmem.cli.wallets import Wallet, default_keystore, wallet_options
from ipfsmem.cli.words_prompt import require_output, show_words, words_unprinted
from ipfsmem.errors import NoVaultError, PublicError, SecretsError
from ipfsmem.mode import Mode
from ipfsmem.vault.beginning import (
    Choices,
    Owner,
    make_wallet,
    not_made,
    nothing_made,
    part_only,
    publish_made,
)

if TYPE_CHECKING:
    from ipfsmem.bundle.program_events import FurtherVault
    from ipfsmem.config import VaultConfig
    from ipfsmem.memory import Memory
    from ipfsmem.results import Status
    from ipfsmem.sync.report import SyncReport
    from ipfsmem.vault.opening import Unlock


_WORDS = "its recovery words"
#: Said where its words could not be shown.
_MADE = "the memory is made, on this device alone until ipfsmem sync"


@cli_command("init")
@click.option(
    "--mode",
    type=click.Choice([Mode.ENCRYPTED_IPFS.value, Mode.LOCAL.value, Mode.IPFS.value]),
    default=Mode.ENCRYPTED_IPFS.value,
    show_default=True,
    help="Who may read it: encrypted-ipfs only you, local whoever reads this disk, ipfs everyone.",
)
@provider_option("Where it is kept")
@click.option(
    "--new-wallet",
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="Make a new wallet: an encrypted keystore file (default: wallet.json in the home).",
)
@click.option(
    "--no-wallet", is_flag=True, help="No wallet: the vault's keys stay on this device, and in the words."
)
@wallet_options
@click.option(
    "--no-recovery", is_flag=True, help="Make no recovery words. Then only the wallet brings it back."
)
@root_option
@click.option(
    "--create",
    is_flag=True,
    help="Make a new memory where none of this wallet is found, without asking, also where that is not certain.",
)
@click.option("--unprotected-keys", is_flag=True, help="Keep this device's keys without a passphrase.")
@click.option("--yes-public", is_flag=True, help="Mode ipfs: yes, everyone may read it, for good.")
@click.option(
    "--memory-dir",
    callback=not_empty,
    metavar="DIR",
    help="Where the plain files are (modes local and ipfs).",
)
@label_option
def command(
    context: CommandContext,
    mode: str,
    provider: tuple[str, ...],
    new_wallet: str | None,
    no_wallet: bool,
    wallet: Wallet,
    no_recovery: bool,
    root: str | None,
    create: bool,
    unprotected_keys: bool,
    yes_public: bool,
    memory_dir: str | None,
    label: str | None,
) -> None:
    """Make a memory on this device.

    When the wallet already has one at the provider, that one is brought back instead; when the provider cannot be
    opened or reached, nothing is made. Where it cannot be known for certain that the wallet has none there, a new one
    takes --create (a terminal asks). To bring one back and never make one: ipfsmem recover --wallet FILE.

    A new encrypted memory comes with 24 recovery words: write them down. On a terminal it asks for what it was not told.
    """
    from ipfsmem.config import settings
    from ipfsmem.device.replica import claim_folder

    claim_folder(context.folder)
    chosen = Mode(mode)
    where = provider or settings().provider
    if secret_input.can_ask() and not context.json:
        told = init_questions.complete(
            init_questions.Choice(_named_mode(chosen), where or (), new_wallet, no_wallet, wallet),
            default_keystore(context.home),
        )
        where, new_wallet, no_wallet, wallet = told.provider, told.new_wallet, told.no_wallet, told.wallet
        chosen = told.mode or chosen
    if not chosen.published:
        where = provider  # what the environment names is for others
    Choices(
        mode=chosen,
        owners=_owners(wallet, new_wallet, no_wallet),
        provider=bool(where),
        recovery=not no_recovery,
        memory_dir=memory_dir is not None,
        root=root is not None,
    ).check()
    worded = chosen.published and not no_recovery
    if worded and not wallet.named:
        require_output(_WORDS)
    if not context.json:
        click.echo(f"Mode {chosen}. Who can read it: {READERS[chosen]}.", err=True)
    if where and not wallet.named:
        # Before a passphrase is thought of and typed, and before a wallet is made; with one that exists the look for its
        # memory does the same.
        _reach(context, where)
    passphrase = device_passphrase(context, chosen, unprotected_keys) if chosen.published else None
    made: dict[str, Any] = {
        "home": context.home,
        "label": label,
        "provider": where,
        "passphrase": passphrase,
        "memory_dir": memory_dir,
        "public_ok": yes_public,
        "unprotected_keys": unprotected_keys,
    }
    unlock, keystore = (
        _unlock(context, new_wallet, no_wallet, wallet, passphrase) if chosen.published else (None, None)
    )
    found = None
    if unlock is not None and keystore is None:
        found = _find(context, chosen, unlock, made, root, create)
    restored = found is not None
    if worded and not restored:
        require_output(_WORDS)
    with contextlib.closing(
        found or _create(context, chosen, made, unlock=unlock, recovery=not no_recovery)
    ) as memory:
        report, words = memory.restored, memory.recovery_words
        failure: BaseException | None = None
        if memory.recovery_words and not context.json:
            _show_words(memory.recovery_words)
        if restored:
            report = publish_restored(memory, context, yes_public)
        elif where:
            report, failure = _publish(memory, context, yes_public)
        status = memory.status()
        part = part_only(memory.restored)
        failure = failure or part
        if context.json:
            from ipfsmem.results import Begun

            with words_unprinted(_MADE) if words else contextlib.nullcontext():
                context.emit(
                    Begun.of(
                        status,
                        restored=restored,
                        keystore=str(keystore) if keystore else None,
                        recovery_words=words,
                        warnings=[*_warnings(words, keystore, memory.unlisted), *_remarks(status)],
                        vaults=memory.vaults.list() if restored else [],
                        sync=report,
                    )
                )
            if failure is not None:
                raise failure
            end_restored(report)
            return
        if restored:
            what = "A part of it is back" if part is not None else "It is back"
            said = f"This wallet has a memory there. {what}: {count(status.memories, 'memory')}, {count(status.events, 'event')}."
        else:
            said = "Made a new memory" + (": this wallet had none there." if unlock and not keystore else ".")
        click.echo(style(said, bold=True))
        facts(
            [
                ("namespace", context.namespace),
                ("folder", clean(status.folder or "")),
                ("device", status.device),
                ("wallet", status.vault.address or "none" if status.vault else ""),
                ("vault", vault_shown(status.vault)),
                (
                    "keystore",
                    f"{keystore}  (your wallet: keep a copy of this file elsewhere{_opens(wallet, passphrase)})"
                    if keystore
                    else "",
                ),
                ("provider", clean(", ".join(status.providers))),
                ("published", status.root or ""),
            ]
        )
        for text in _remarks(status):
            click.echo(style("note: ", fg="yellow") + advice(text))
        if report is not None and report.notices:
            tell(report)
        tell_of_vaults(memory.unlisted, memory.vaults.list() if restored else [])
        if failure is not None:
            raise failure
        end_restored(report)
        click.echo(style(advice("Next: ipfsmem write KEY --body TEXT"), dim=True), err=True)


def _show_words(words: list[str]) -> None:
    """Show them; who stops at the question after them is told how it stands: the memory is made, and they are its words."""
    try:
        with words_unprinted(_MADE):
            show_words(words)
    except click.Abort:
        click.echo(
            advice(
                "The memory is made, on this device alone until: ipfsmem sync. These words belong to it; for others: "
                "ipfsmem keys words."
            ),
            err=True,
        )
        raise


def _opens(wallet: Wallet, passphrase: str | None) -> str:
    """Which passphrase a new wallet is under, where nobody was asked for one of its own."""
    own = secret_input.given(wallet.passphrase_fd, "IPFSMEM_WALLET_PASSPHRASE")
    return "" if own or passphrase is None else "; this device's passphrase opens it"


def _named_mode(mode: Mode) -> Mode | None:
    """The mode when this call names one; the default is no choice of anybody's."""
    source = click.get_current_context().get_parameter_source("mode")
    return None if source is click.core.ParameterSource.DEFAULT else mode


def _remarks(status: Status) -> list[str]:
    """What a person should know about the places where the plain files lie."""
    return [text for folder in status.files for text in folder.remarks]


def _owners(wallet: Wallet, new_wallet: str | None, no_wallet: bool) -> tuple[Owner, ...]:
    """Every way in which the options say whose the memory is."""
    said: dict[Owner, bool] = {
        "wallet": wallet.named,
        "new wallet": new_wallet is not None,
        "no wallet": no_wallet,
    }
    return tuple(owner for owner, named in said.items() if named)


def device_passphrase(context: CommandContext, mode: Mode, unprotected: bool) -> str | None:
    """The passphrase for the keys of a new device: given, asked for, or refused where there must be one."""
    found = context.passphrase_given()
    if unprotected:
        return None
    if found is None and mode.sealed and secret_input.can_ask():
        click.echo("This device's keys are kept under a passphrase. It never leaves this device.", err=True)
        found = secret_input.ask("passphrase for this device", twice=True)
    if found is None and mode.sealed:
        from ipfsmem.vault.opening import check_protection

        check_protection(mode, passphrase=None, unprotected=False)
    return found


def _unlock(
    context: CommandContext, new_wallet: str | None, no_wallet: bool, wallet: Wallet, passphrase: str | None
) -> tuple[Unlock | None, Path | None]:
    """The wallet, and the keystore file when it was made just now."""
    if no_wallet:
        return None, None
    if new_wallet is None:
        return wallet.unlock(passphrase), None
    path = Path(new_wallet).expanduser() if new_wallet else default_keystore(context.home)
    signer = make_wallet(path, wallet.keystore_passphrase(passphrase, new=True), secrets.token_bytes)
    return wallet.unlock_with(signer), path


def _reach(context: CommandContext, where: tuple[str, ...] | str) -> None:
    """Open the providers and ask them for something. Raises ConfigError, ProviderError; nothing was made then."""
    from ipfsmem.memory import Memory

    with nothing_made():
        asyncio.run(Memory.reach(where, home=context.home))


def _find(
    context: CommandContext, mode: Mode, unlock: Unlock, made: dict[str, Any], root: str | None, create: bool
) -> Memory | None:
    """The wallet's memory when the provider has one. Any doubt is an error: a second memory is never made by mistake."""
    from ipfsmem.memory import Memory

    try:
        with nothing_made(), Meter(silent=context.json) as meter:
            return asyncio.run(
                Memory.recover(
                    context.namespace, mode=mode, unlock=unlock, root_cid=root, progress=meter, **made
                )
            )
    except NoVaultError as error:
        if root is not None:
            raise
        if not create and not _may_create(error):
            raise not_made(error) from None
        return None


def _may_create(error: NoVaultError) -> bool:
    """Whether a wallet that has no memory there is to get one: asked for, and where nobody can say only when that is certain."""
    if not secret_input.can_ask():
        return not error.doubt
    click.echo(f"{clean(str(error))}.", err=True)
    return bool(click.confirm("Make a new one?", default=not error.doubt, err=True))


def _create(context: CommandContext, mode: Mode, made: dict[str, Any], **more: Any) -> Memory:
    from ipfsmem.memory import Memory

    return Memory.create(context.namespace, mode, **made, **more)


def vault_shown(vault: VaultConfig | None) -> str:
    """Which vault of the wallet it is, where that is not the first one."""
    if vault is None or vault.address is None or (vault.name, vault.key_number) == ("default", 1):
        return ""
    return f"{vault.name}, key number {vault.key_number}"


def publish_restored(memory: Memory, context: CommandContext, yes_public: bool) -> SyncReport | None:
    """Publish a plain memory that was brought back, once somebody here has agreed to that; the report of the last sync."""
    context.note_left_out(memory)
    if not memory.mode.public or memory.replica.config.public:
        return memory.restored
    if not agrees_to_publish(memory, yes_public):
        _not_public()
        return memory.restored
    with Meter(silent=context.json) as meter:
        return asyncio.run(memory.sync(public_ok=True, progress=meter))


def end_restored(report: SyncReport | None) -> None:
    """End with the code of what was out of reach while a memory was brought back, or of texts that could not be had: nobody
    looks a second time by themselves."""
    if report is not None and (report.unread or report.not_fetched):
        click.get_current_context().exit(report.exit_code)


def _not_public() -> None:
    click.echo(
        style("not published: ", fg="yellow")
        + advice("everyone could read it, for good. When that is meant: ipfsmem sync --yes-public"),
        err=True,
    )


def _publish(
    memory: Memory, context: CommandContext, yes_public: bool
) -> tuple[SyncReport | None, BaseException | None]:
    """Put the new ring where the wallet will look for it; and what kept it from there, to be raised in the end.

    The memory is made by then and the words exist nowhere else, so whatever happens here they are shown first.
    """
    try:
        public_ok = agrees_to_publish(memory, yes_public)
        with Meter(silent=context.json) as meter:
            return asyncio.run(publish_made(memory.sync(public_ok=public_ok, progress=meter))), None
    except SecretsError as error:
        return None, error
    except PublicError:
        _not_public()
        return None, None
    except (Exception, KeyboardInterrupt) as error:
        return None, error


def tell_of_vaults(unlisted: str, vaults: list[FurtherVault]) -> None:
    """Say that the wallet's first vault does not list this one; and which further ones it lists, when it was brought back."""
    if unlisted:
        click.echo(style("not listed: ", fg="yellow") + advice(unlisted), err=True)
    for one in vaults:
        number = f" --key-number {one.key_number}" if one.key_number > 1 else ""
        click.echo(
            advice(
                f"This wallet has a further vault: {one.name}. To bring it back: "
                f"ipfsmem recover -n {one.name} --vault {one.name}{number} --wallet FILE"
            ),
            err=True,
        )


def _warnings(words: list[str] | None, keystore: Path | None, unlisted: str) -> list[str]:
    said = [unlisted] if unlisted else []
    if words:
        said.append("The recovery words are shown this once. Who has them can read and change this memory.")
    if keystore:
        said.append("The keystore file is the wallet. Keep a copy of it and of its passphrase elsewhere.")
    return said
