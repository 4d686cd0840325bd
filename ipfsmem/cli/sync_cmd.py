"""`ipfsmem sync`: pull, merge and publish, and print the result in one paragraph; with `--every` repeatedly."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

import click

from ipfsmem.cli import public_address
from ipfsmem.cli.consent import agrees_to_publish, public_option
from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import duration, provider_option
from ipfsmem.cli.printing import clean, moment, seconds, size, style
from ipfsmem.cli.wallets import Wallet, wallet_options
from ipfsmem.config import expanded
from ipfsmem.device.agent_notes import note_syncing
from ipfsmem.ending_signals import ending_signals
from ipfsmem.errors import IpfsmemError, PassphraseError, ProviderUnavailable, UsageError
from ipfsmem.operations.sync import sync
from ipfsmem.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ipfsmem.memory import Memory
    from ipfsmem.results import Failure
    from ipfsmem.sync.background import Attempt
    from ipfsmem.sync.report import Notice, SyncReport

#: Seconds from a change here, or a failure, to the next sync, unless `--every` is less.
IDLE = 30.0
#: Maximum scopes with changes that are listed.
MOST_SCOPES = 5
#: `--every` without a time.
_AUTOMATIC = "auto"
#: Maximum memories that a sync lists.
_SHOWN = 5
#: How the notice of an outage ends.
_TRIES_AGAIN = "; the next sync tries again"
#: Titles of notices that differ from their kinds.
_TITLES = {
    "head-refused": "not used",
    "bad-block": "not used",
    "bad-record": "not used",
    "in-part": "left out",
    "equivocation": "contradiction",
    "fork-joined": "two copies",
    "orphan": "taken over",
    "channel-down": "not reached",
    "provider-down": "not reached",
    "provider-paused": "left out",
    "record-unread": "not read",
    "provider-refused": "refused",
    "not-opened": "not used",
    "cannot-publish": "not published",
    "not-a-writer": "not published",
    "not-published": "not published",
    "not-served-yet": "not there yet",
    "left-out": "left out",
    "mailbox": "agents",
    "crowded": "left out",
    "ring-filling": "almost full",
    "mass-delete": "many deletes",
    "revoke-dropped": "not removed",
    "names-damaged": "damaged",
    "dreams-damaged": "damaged",
    "marks-damaged": "damaged",
    "enrolled": "new device",
    "revoked": "removed",
    "fell": "removed",
    "back": "members again",
    "stands": "still holds",
    "rotated": "new key",
    "unlock": "note",
    "identity": "note",
    "pins": "note",
    "names-left": "not asked",
    "anchor-unread": "not read",
    "not-pulled": "not pulled",
    "not-enrolled": "no room",
    "guard": "note",
    "stale": "note",
    "expired": "note",
}


def _every(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Return seconds; 0 for a free interval."""
    return 0.0 if text == _AUTOMATIC else duration(ctx, param, text)


def _ask(context: CommandContext, arguments: Arguments) -> None:
    if arguments["every"] is not None and arguments["wallet"].named:
        raise UsageError(
            "--every accepts no wallet, which would stay unlocked for hours",
            hint="Run once: ipfsmem member admit. Then: ipfsmem sync --every TIME.",
        )
    if arguments["car"] is not None:
        if arguments["every"] is not None:
            raise UsageError(
                "--car excludes --every",
                hint="ipfsmem sync --car FILE, then: ipfsmem sync --every TIME.",
            )
        arguments["car"] = expanded(arguments["car"])


@contextlib.contextmanager
def _opened(context: CommandContext, arguments: Arguments) -> Iterator[Memory]:
    wallet: Wallet = arguments["wallet"]
    unlock = wallet.unlock(context.passphrase_from_fd_or_environment()) if wallet.named else None
    with (
        _noted(context, arguments["every"]),
        context.memory(provider=arguments.pop("provider"), unlock=unlock) as memory,
    ):
        yield memory


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> SyncReport:
    arguments["public_ok"] = agrees_to_publish(memory, arguments["yes_public"])
    if (every := arguments["every"]) is not None:
        every = every or _free_interval(memory)
        lines = _AttemptPrinter(context, memory)
        with contextlib.suppress(KeyboardInterrupt):  # if signals cannot be handled in a loop
            asyncio.run(_keep_in_sync(memory, every, arguments["public_ok"], arguments["allow"], lines))
        click.get_current_context().exit(lines.exit_code)
    report: SyncReport = call(sync, context, memory, arguments)
    # Only a public vault has an address, and a status counts all memories for it.
    arguments["shown"] = public_address.lines(memory.status()) if memory.mode.public else []
    return report


def _show(context: CommandContext, report: SyncReport, arguments: Arguments) -> None:
    print_report(report)
    for line in arguments["shown"]:
        click.echo(line)


_NOTES = """\
With a wallet, `sync` also adds this device and gives keys to new members, as `ipfsmem member admit` does.

With --every, `sync` runs until Ctrl-C, SIGTERM or SIGHUP. Without TIME, it chooses and prints the
shortest interval, from 5 minutes to an hour, that is free at every provider (else one for at most a
cent a month, else an hour).

`sync --every` prints one line for each sync that changed something, retries after outages, and
publishes pending changes before it ends.

Exit codes: `ipfsmem help exit-codes`."""

command = operation_command(
    "sync",
    sync,
    _show,
    run=_run,
    ask=_ask,
    opens=_opened,
    end=lambda context, report, arguments: click.get_current_context().exit(report.exit_code),
    options=[
        click.Option(
            ["--every"],
            callback=_every,
            is_flag=False,
            flag_value=_AUTOMATIC,
            metavar="[TIME]",
            help="Keep running and sync at this interval: 30s, 5m, 1h; without TIME at a free or cheap one.",
        )
    ],
    shared=(provider_option("Provider", of_vault=True), public_option, wallet_options),
    notes=_NOTES,
)


def _free_interval(memory: Memory) -> float:
    """Choose an interval in seconds, and print the reason."""
    interval = memory.providers.free_interval()
    devices = count(interval.devices, "device")
    if not interval.metered:
        why = "no provider here is known to charge for requests"
    elif interval.cost:
        why = f"about ${max(interval.cost, 0.01):.2f} a month for {devices} at {' and '.join(map(clean, interval.metered))}"
    else:
        why = f"free for {devices} at {' and '.join(map(clean, interval.metered))}"
    click.echo(f"Syncing every {interval.seconds // 60} minutes: {why}.", err=True)
    return float(interval.seconds)


@contextlib.contextmanager
def _noted(context: CommandContext, every: float | None) -> Iterator[None]:
    """Record also that a repeated sync could not begin: its output may be unread."""
    try:
        yield
    except IpfsmemError as error:
        if every is not None:
            note_syncing(context.folder, error)
        raise


async def _keep_in_sync(
    memory: Memory, every: float, public_ok: bool, allow: tuple[str, ...], lines: _AttemptPrinter
) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    handled: list[signal.Signals] = []

    def end() -> None:
        # A second Ctrl-C ends it at once. Other signals may be sent twice, as by `timeout`, while data is published.
        if signal.SIGINT in handled:
            handled.remove(signal.SIGINT)
            loop.remove_signal_handler(signal.SIGINT)
        ended.set()

    def print_attempt(attempt: Attempt) -> None:
        try:
            lines.print_attempt(attempt)
        except BaseException:
            ended.set()  # the output is closed
            raise
        if isinstance(attempt.error, PassphraseError):
            ended.set()  # the keys are locked: the end of the block reports it

    for number in ending_signals():
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, end)
            handled.append(number)
    try:
        async with memory.autosync(
            idle=min(IDLE, every), every=every, public_ok=public_ok, allow=allow, on_attempt=print_attempt
        ):
            dreams = asyncio.create_task(_dream_when_due(memory, every))
            await ended.wait()
            dreams.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await dreams
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


async def _dream_when_due(memory: Memory, every: float) -> None:
    """Run automatic dreams when due, also while no agent's program ends a turn."""
    from ipfsmem.agents.background_sync import dream_if_due
    from ipfsmem.in_thread import in_thread

    while True:
        await asyncio.sleep(every)
        await in_thread(lambda: dream_if_due(memory))


class _AttemptPrinter:
    """Prints the results of repeated syncs, and each problem when it is new."""

    def __init__(self, context: CommandContext, memory: Memory) -> None:
        self._json = context.json
        self._folder = context.folder
        self._now = memory.replica.environment.now
        self._first = True
        self._notices: list[Notice] = []
        self._problem = ""
        #: The exit code of the command by the last successful sync.
        self.exit_code = 0

    def print_attempt(self, attempt: Attempt) -> None:
        note_syncing(self._folder, attempt.error, brought=attempt.brought)
        if attempt.report is not None:
            self.exit_code = attempt.report.exit_code
        if self._json:
            click.echo(self._as_json(attempt))
        elif attempt.report is not None:
            self._worked(attempt.report)
        elif attempt.error is not None:
            self._failed(attempt.error, attempt)
        self._first = False

    def _worked(self, report: SyncReport) -> None:
        if self._first or self._problem or _did_something(report):
            self._line(paragraph(report))
        for line in notice_lines([one for one in report.notices if one not in self._notices]):
            self._line(line)
        self._notices, self._problem = list(report.notices), ""

    def _failed(self, error: Exception, attempt: Attempt) -> None:
        failure = _failure(error)
        outcome = "not reached" if isinstance(error, ProviderUnavailable) else "failed"
        text = f"{outcome}: {clean(failure.message)}"
        new = text != self._problem
        if not new and not attempt.passes:
            return
        again = f"; next try in {attempt.again_in:,.0f} s" if attempt.again_in is not None else ""
        self._line(style(text, fg="yellow") + again, err=True)
        if new and failure.hint:
            self._line(advice(failure.hint), err=True)
        self._problem = text

    def _line(self, text: str, *, err: bool = False) -> None:
        click.echo(f"{moment(self._now())}  {' '.join(text.split())}", err=err)

    def _as_json(self, attempt: Attempt) -> str:
        from msgspec import UNSET
        from msgspec.json import encode

        from ipfsmem.results import SyncAttempt

        row = SyncAttempt(
            at=self._now(),
            report=UNSET if attempt.report is None else attempt.report,
            error=UNSET if attempt.error is None else _failure(attempt.error),
            again_in=attempt.again_in,
        )
        return encode(row).decode()


def _did_something(report: SyncReport) -> bool:
    return bool(report.entries_changed or report.published or report.new_identity or report.blocks_sent)


def _failure(error: Exception) -> Failure:
    """Return the error in the form printed everywhere."""
    import msgspec

    from ipfsmem.results import Failure

    failure = Failure.of(error)
    return msgspec.structs.replace(failure, hint=advice(failure.hint))


def print_report(report: SyncReport, *, err: bool = False) -> None:
    """Print a report in words, each notice on its own line. `err`: to standard error."""
    click.echo(paragraph(report), err=err)
    for line in notice_lines(report.notices):
        click.echo(line, err=err)


def notice_lines(notices: Sequence[Notice]) -> list[str]:
    """Return notices as lines for a person, each once. A provider that could be neither read nor published to for one reason has
    one line."""
    import msgspec

    replacements: dict[Notice, Notice | None] = {}
    for down in notices:
        start = f"not published at {down.provider}: "
        if down.kind != "provider-down" or not down.provider or not down.text.startswith(start):
            continue
        reason = down.text.removeprefix(start).removesuffix(_TRIES_AGAIN)
        reads = [one for one in notices if one.kind == "channel-down" and reason in one.text]
        if reads:
            replacements |= dict.fromkeys(reads)
            consequence = "its new texts were not read, and new texts of this device were not published there"
            replacements[down] = msgspec.structs.replace(down, text=f"{reason}: {consequence}{_TRIES_AGAIN}")
    shown = [replacements.get(one, one) for one in notices]
    return [
        *dict.fromkeys(notice_line(one) for one in shown if one is not None)
    ]  # two may differ only in details


def notice_line(notice: Notice) -> str:
    """Return a notice as a line for a person."""
    return style(f"{_TITLES.get(notice.kind, notice.kind)}: ", fg="yellow") + advice(notice.text)


def _scopes_text(report: SyncReport) -> str:
    """Return the changed scopes, unless only the unnamed one."""
    if not set(report.changed_in) - {""}:
        return ""
    most = sorted(report.changed_in.items(), key=lambda one: (-one[1], one[0]))
    parts = [f"{number:,} in {scope or 'none'}" for scope, number in most[:MOST_SCOPES]]
    rest = len(most) - MOST_SCOPES
    return f" ({', '.join(parts)}{f' and {rest:,} more scopes' if rest > 0 else ''})"


def paragraph(report: SyncReport) -> str:
    """Return the result of a sync, in one paragraph."""
    sentences: list[str] = []
    missed = bool(
        report.not_placed or report.unread or any(one.kind == "channel-down" for one in report.notices)
    )
    if report.entries_changed:
        sentences.append(
            f"{count(report.entries_changed, 'change')}{_scopes_text(report)}{_from(report)} ({size(report.bytes_received)})."
        )
    else:
        sentences.append(f"Nothing new from {'the providers that answered' if missed else 'other devices'}.")
    if report.conflicts:
        sentences.append(advice(f"{count(report.conflicts, 'conflict')} to resolve (ipfsmem conflicts)."))
    if report.not_fetched:
        sentences.append(f"{count(report.not_fetched, 'text')} could not be fetched yet.")
    if report.published:
        sentences.append(f"Published: {size(report.bytes_sent)} sent.")
    elif report.blocks_sent:
        up_to_date = "" if report.exit_code or missed else "Up to date: "
        sentences.append(f"{up_to_date}{size(report.bytes_sent)} uploaded that a provider lacked.")
    elif report.root:
        sentences.append("Nothing to publish." if report.exit_code or missed else "Up to date.")
    else:
        sentences.append("Nothing was published.")
    sentences.append(f"{seconds(report.seconds)}.")
    return " ".join(sentences)


def _from(report: SyncReport) -> str:
    """Return sources and memories of received changes: ` from phone: tone, music (removed)`."""
    names = [
        clean(f"{memory.scope}/{memory.key}" if memory.scope else memory.key)
        + (" (removed)" if kind == "removed" else "")
        for memory, kind in report.changes.kinds.items()
    ]
    if len(names) > _SHOWN or report.changes.unnamed:
        names = [*names[:_SHOWN], "and more"]
    return (f" from {', '.join(map(clean, report.sources))}" if report.sources else "") + (
        f": {', '.join(names)}" if names else ""
    )
