"""`ipfsmem key phrase`: create a new recovery phrase."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.derived import call, run_coroutine
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import provider_option
from ipfsmem.cli.printing import clean, style
from ipfsmem.cli.sync_cmd import notice_line, print_report
from ipfsmem.cli.wallets import as_owner, root_options
from ipfsmem.cli.words_prompt import require_output, show_words, words_unprinted
from ipfsmem.errors import IncompleteError, ProviderUnavailable
from ipfsmem.operations.members import new_words
from ipfsmem.wording import count

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ipfsmem.memory import Memory
    from ipfsmem.sync.progress import Progress
    from ipfsmem.sync.report import SyncReport
    from ipfsmem.vault.recovery import NewWords, Words

#: Message if its words could not be shown.
_MADE = "the new recovery phrase is created, and the older ones still work"


@cli_command("phrase", short_help="Create a new recovery phrase")
@click.option(
    "--revoke-old/--keep-old",
    default=None,
    help="Whether to revoke phrases that this command created before (on a terminal, the command asks; default: keep).",
)
@provider_option("Provider", of_vault=True)
@root_options
def command(context: CommandContext, revoke_old: bool | None, **owner_options: Any) -> None:
    """Create a new recovery phrase of 24 words and show it once.

    This requires the wallet, the recovery phrase of `init`, or the device of a vault without a wallet.
    Older phrases are revoked only after the new one is published everywhere and shown. The recovery
    phrase of `init` cannot be revoked.
    """
    require_output("the words")
    with as_owner(context, owner_options) as memory:
        phrase: NewWords = call(new_words, context, memory, {})
        old = [one for one in phrase.older if not one.root]
        if context.json:
            from ipfsmem.results import NewRecoveryWords

            going = old if revoke_old and not phrase.problem else []
            # They must be printed before any other phrase is revoked.
            with words_unprinted(_MADE):
                context.emit(NewRecoveryWords.of(phrase, going))
        else:
            _show(phrase, memory)
            going = [] if phrase.problem else _agreed(old, revoke_old)
        if phrase.problem and revoke_old:
            raise ProviderUnavailable(
                f"the older recovery phrases still work, and the new one may not work everywhere yet: {phrase.problem}",
                hint="Run: ipfsmem sync. Then revoke the older ones: ipfsmem member revoke ID.",
            )
        unplaced = [
            report for report in _revoke(memory, going, context) if report.blocked or report.not_placed
        ]
    if not context.json:
        _tell_what_stays(phrase, old, going)
    if phrase.problem:
        raise IncompleteError(
            f"the new recovery phrase is created, and may not work everywhere yet: {phrase.problem}",
            hint="Publish it: ipfsmem sync",
        )
    if unplaced:
        click.get_current_context().exit(max(report.exit_code for report in unplaced))


def _show(phrase: NewWords, memory: Memory) -> None:
    """Show the phrase. A person who interrupts the question after it is told that this phrase works, and how to revoke it."""
    with words_unprinted(_MADE):
        try:
            show_words(phrase.words, memory)
        except click.Abort:
            message = f"The recovery phrase shown is created: {phrase.label} ({phrase.id}). The older ones still work."
            if phrase.problem:
                message += advice(" It works on new devices after the next sync: ipfsmem sync.")
            click.echo(message + advice(f" To revoke it: ipfsmem member revoke {phrase.id}"), err=True)
            raise
        click.echo(f"Its label is {phrase.label} ({phrase.id}).")
    if phrase.problem:
        click.echo(
            style("not published everywhere yet: ", fg="yellow")
            + advice(f"{phrase.problem}. The recovery phrase works from the next sync on: ipfsmem sync"),
            err=True,
        )
    if phrase.report is not None and phrase.report.notices:
        print_report(phrase.report)


def _agreed(old: list[Words], revoke_old: bool | None) -> list[Words]:
    """Return the older phrases to revoke."""
    if not old or revoke_old is False:
        return []
    if revoke_old is None:
        if not secret_input.can_ask():
            return []
        labels = ", ".join(clean(one.label) for one in old)
        if not click.confirm(f"Revoke the older recovery phrases ({labels})?", default=True, err=True):
            return []
    return old


def _revoked(memory: Memory, member: str, meter: Progress) -> Coroutine[Any, Any, SyncReport]:
    return memory.members.revoke(member, progress=meter)


def _revoke(memory: Memory, going: list[Words], context: CommandContext) -> list[SyncReport]:
    """Revoke these phrases, print each as soon as it is done, and return the reports of the syncs."""
    reports = []
    for one in going:
        report = run_coroutine(context, functools.partial(_revoked, memory, one.id))
        reports.append(report)
        # The line below names the revoked phrase, by label.
        report.notices = [notice for notice in report.notices if notice.kind != "revoked"]
        if context.json:
            # The JSON answer was printed before; further results of the revocation go to stderr.
            for notice in report.notices:
                click.echo(notice_line(notice), err=True)
        elif report.notices:
            print_report(report)
        if report.blocked or report.not_placed:
            click.echo(
                style("not published everywhere yet: ", fg="yellow")
                + advice(
                    f"the revocation of {clean(one.label)} ({one.id}). The next sync retries: ipfsmem sync"
                ),
                err=True,
            )
        if not context.json:
            click.echo(f"Revoked: {clean(one.label)} ({one.id}).")
    return reports


def _tell_what_stays(phrase: NewWords, old: list[Words], going: list[Words]) -> None:
    stays = [one for one in old if one not in going]
    if stays:
        click.echo(
            f"{count(len(stays), 'older recovery phrase')} still work"
            + ("s" if len(stays) == 1 else "")
            + advice(f". To revoke: {'; '.join(f'ipfsmem member revoke {one.id}' for one in stays)}"),
            err=True,
        )
    if any(one.root for one in phrase.older):
        from ipfsmem.results import FIRST_WORDS_STAY

        click.echo(style("note: ", fg="yellow") + FIRST_WORDS_STAY, err=True)
    click.echo(style(advice("Print the recovery sheet too: ipfsmem key sheet"), dim=True), err=True)
