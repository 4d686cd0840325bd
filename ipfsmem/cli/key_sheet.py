"""`ipfsmem key sheet`: one page to print, with the data that restores a vault. It contains no secrets."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.new_file import new_file, refuse_existing
from ipfsmem.cli.options import not_empty, overwrite_option
from ipfsmem.cli.printing import clean, moment, to_json
from ipfsmem.config import expanded
from ipfsmem.errors import UsageError

if TYPE_CHECKING:
    from ipfsmem.vault.sheet import RecoverySheet, SheetProvider

_WIDTH = 78


@cli_command("sheet", short_help="Print the recovery sheet")
@click.option(
    "--output", callback=not_empty, metavar="FILE", help="File for the sheet (default: standard output)."
)
@overwrite_option
def command(context: CommandContext, output: str | None, overwrite: bool) -> None:
    """Print the recovery sheet: names, newest version, providers, and the commands that restore this
    vault.

    It contains no secrets; it has space to write the 24 words by hand. Print it again after a change of
    provider or recovery phrase.
    """
    if overwrite and output is None:
        raise UsageError("--overwrite requires --output")
    if output is not None and not overwrite:
        refuse_existing(output)
    with context.memory() as memory:
        sheet = memory.members.recovery_sheet()
    text = to_json(sheet) if context.json else page(sheet)
    if output is None:
        click.echo(text)
        return
    path = expanded(output)
    with new_file(str(path), mode=0o600, overwrite=overwrite) as file:
        file.write(f"{text}\n".encode())
    if context.json:
        from ipfsmem.results import FileWritten

        context.emit(FileWritten(path=str(path)))
    else:
        click.echo(f"{clean(str(path))}: print it, and write the 24 words on it by hand.")


def page(sheet: RecoverySheet) -> str:
    """Return the sheet as plain text."""
    return "\n".join(
        [
            f"RECOVERY SHEET of the vault {sheet.vault_name!r}".replace("'", '"'),
            f"printed {_day(sheet.made_at)} by the device {clean(sheet.device)!r}".replace("'", '"'),
            "",
            *_wrap(
                f"This page and the 24 words below{', or the wallet,' if sheet.wallet else ''} restore the vault on a new device. Without the "
                "words, this page is not a secret. With them, anyone who reads it can read and change the vault: keep "
                "it as you would keep money."
            ),
            "",
            *_facts(sheet),
            "",
            "PROVIDERS",
            *_providers(sheet),
            "",
            "TO BRING IT BACK",
            *_wrap(
                "Install ipfsmem (Python 3.11 or newer; see its README), set the settings named above, then run:"
            ),
            *_ways(sheet),
            *_last_resort(sheet),
            *_further(sheet),
            "",
            *_words(sheet),
        ]
    )


def _facts(sheet: RecoverySheet) -> list[str]:
    wallet = sheet.address or ("yes, but this device does not know its address" if sheet.wallet else "none")
    vault = sheet.vault_tag
    if sheet.wallet_vault and sheet.wallet:
        vault += f"  (name {sheet.wallet_vault}, key number {sheet.key_number})"
    published = _day(sheet.published_at) if sheet.published_at else ""
    rows = [
        ("mode", sheet.mode),
        ("vault id", vault),
        ("wallet", wallet),
        ("begins at", sheet.anchor),
        ("listed as", sheet.pin_name),
        (
            "newest version",
            sheet.root or "nothing is published yet: ipfsmem sync, then print this page again",
        ),
        ("published", published),
    ]
    return [f"{word:<16}{clean(text)}" for word, text in rows if text]


def _providers(sheet: RecoverySheet) -> list[str]:
    if not sheet.providers:
        return [
            *_wrap(
                "ONLY ON THIS DEVICE: no provider is set (ipfsmem provider add), so this page cannot restore the vault."
            )
        ]
    return [line for one in sheet.providers for line in _provider(one, sheet)]


def _provider(place: SheetProvider, sheet: RecoverySheet) -> list[str]:
    lines = [f"- {clean(place.provider)}"]
    if place.hidden:
        lines.append("    (... replaces a part that may be a secret)")
    if place.settings:
        lines += textwrap.wrap(
            "settings: " + ", ".join(map(clean, place.settings)),
            _WIDTH,
            initial_indent="    ",
            subsequent_indent="    ",
        )
    if place.root:
        lines.append(f"    version there: {clean(place.root)}")
    if place.at is None and sheet.root:
        lines.append("    this device published nothing there")
    return lines


def _ways(sheet: RecoverySheet) -> list[str]:
    lines = []
    if sheet.with_words:
        lines += ["  with the recovery phrase:", f"    {clean(sheet.with_words)}"]
    if sheet.with_wallet:
        lines += [
            "  with the wallet (FILE is its keystore; or --mnemonic):",
            f"    {clean(sheet.with_wallet)}",
        ]
    return lines or ["  Not possible: this vault has no recovery phrase and no wallet (ipfsmem key phrase)."]


def _last_resort(sheet: RecoverySheet) -> list[str]:
    if not sheet.root:
        return []
    return _wrap(
        "If this finds no vault, names and lists are lost: add --root and the newest version. Any provider that still "
        "has it will do, a public gateway too (--provider gateway:https://...) next to one that accepts uploads."
    )


def _further(sheet: RecoverySheet) -> list[str]:
    if not sheet.vaults:
        return []
    lines = [
        "",
        "FURTHER VAULTS OF THIS WALLET",
        *_wrap("Each needs one more signature, and has a sheet of its own."),
    ]
    for one in sheet.vaults:
        lines += [f"  {one.name}:", f"    {clean(one.with_wallet)}"]
    return lines


def _words(sheet: RecoverySheet) -> list[str]:
    if not sheet.words:
        return ["THE 24 WORDS", "This vault has no recovery phrase. Create one: ipfsmem key phrase"]
    labels = "; ".join(clean(one.label) + (" (of init)" if one.root else "") for one in sheet.words)
    lines = [
        "THE 24 WORDS (by hand; never in a file or a photograph)",
        *_wrap(f"Valid recovery phrases: {labels}."),
        "",
    ]
    for start in range(1, 25, 4):
        lines += ["  ".join(f"{n:>2} _______________" for n in range(start, start + 4)), ""]
    return lines[:-1]


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH)


def _day(ms: int) -> str:
    return moment(ms)[:16]
