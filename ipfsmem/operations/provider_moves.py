"""The operations that publish a vault at another provider: move it there, and follow another device that moved it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ipfsmem.answer import Answer
from ipfsmem.errors import (
    ConfigError,
    IncompleteError,
    NotFoundError,
    ProviderError,
    ProviderUnavailable,
    UsageError,
)
from ipfsmem.operation import Cli, Except, OnProgress, View, operation
from ipfsmem.sync.retention import KEEP_DAYS, KEEP_ROOTS
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.bundle.program_events import Move
    from ipfsmem.provider.contract import Provider
    from ipfsmem.published.layout import Layout
    from ipfsmem.sync.moving import Moved
    from ipfsmem.sync.progress import Progress
    from ipfsmem.sync.report import SyncReport

#: Types of parameters and results, imported when an interface needs them.
LATE = {
    "Moved": "ipfsmem.sync.moving",
    "Provider": "ipfsmem.provider.contract",
    "SyncReport": "ipfsmem.sync.report",
}
PublicOk = Annotated[
    bool,
    Meta(description="Mode ipfs: agree, once, that everyone can read published data, permanently."),
    Except(("cli",)),
]
Allow = Annotated[
    Iterable[str],
    Meta(description="Memories (or `timeline/DAY`) to publish although they look like secrets."),
    Cli(
        metavar="KEY",
        help="Publish this memory (or timeline/DAY) although it looks like it contains a secret.",
    ),
]


class MovedTo(Answer, frozen=True, kw_only=True):
    """A move to another provider, and the providers of the vault now. `warning`: the risks of storing the vault there; "" without one."""

    moved: Moved
    providers: tuple[str, ...]
    warning: str

    def raise_if_incomplete(self, target: str) -> None:
        """Raise IncompleteError if a version was not copied whole, or an old provider does not record the new one."""
        moved = self.moved
        problems = [
            f"{count(len(moved.incomplete), 'version')} could not be copied completely"
            if moved.incomplete
            else "",
            f"{', '.join(moved.no_forwarding_at)} could not record it" if moved.no_forwarding_at else "",
            f"{count(moved.small_objects_left, 'small object')} could not be copied"
            if moved.small_objects_left
            else "",
            f"{', '.join(moved.small_unlisted)} did not list all small objects"
            if moved.small_unlisted
            else "",
        ]
        if any(problems):
            raise IncompleteError(
                f"it publishes at {target} now, but {' and '.join(filter(None, problems))}",
                hint="On a device that still publishes at the old provider: ipfsmem provider add SPEC"
                if moved.no_forwarding_at
                else "Run on a device that has the missing data: ipfsmem sync"
                if moved.incomplete
                else "Add the old provider, then move again: ipfsmem provider add SPEC",
            )


class Followed(Answer, frozen=True, kw_only=True):
    """The providers of the vault after another device moved it. `report`: the sync with its new provider; None if this device stays.
    `warning`: the risks of storing the vault there; "" without one."""

    report: SyncReport | None
    providers: tuple[str, ...]
    warning: str


@operation(
    name="providers.move",
    summary="Move to another provider, after checking all data there",
    right="admin",
    about="memory",
    raises=(
        "ConfigError: `source` is not a provider of the vault, or `target` cannot be opened.",
        "UsageError: `source` and `target` are the same.",
        "ProviderError: the newest version could not be copied; nothing is changed then.",
        "PublicError: mode ipfs without `public_ok`.",
        "SecretsError: mode ipfs, and a text looks like a secret.",
    ),
    audit="providers move",
    command="vault move",
)
async def move(
    view: View,
    target: Annotated[str | Provider, Meta(description="The provider to publish at.")],
    *,
    source: Annotated[
        str | None,
        Meta(description="Leave only this provider (default: all others)."),
        Cli(name="from", metavar="SPEC"),
    ] = None,
    keep_roots: Annotated[
        int, Meta(ge=1, description="Copy the newest N versions."), Cli(metavar="N")
    ] = KEEP_ROOTS,
    keep_days: Annotated[
        int, Meta(ge=1, description="Keep one version a week of each device for N days."), Cli(metavar="N")
    ] = KEEP_DAYS,
    public_ok: PublicOk = False,
    allow: Allow = (),
    progress: OnProgress = None,
) -> MovedTo:
    """Copy all live data to `target`, check it there, and publish there from then on.

    Nothing is deleted at the old provider; an interrupted move can be run again.
    """
    from ipfsmem.device.tables import placed
    from ipfsmem.open_vault.providers import name_of, provider_names, remember_providers
    from ipfsmem.provider.contract import lasting_spec, spec_warning
    from ipfsmem.provider.opening import Providers
    from ipfsmem.sync import engine
    from ipfsmem.sync.progress import no_progress

    replica, syncing, shows = view.opened.replica, view.syncing, progress or no_progress
    if source is not None:
        _check_source(view, source, target)
    old = syncing.published_at()
    syncing.agree(public_ok)
    view.opened.scan()
    (opened,) = syncing.pool.open_all([target])
    layout = syncing.layout(syncing.secret_check(allow))
    moved = await engine.move(
        replica,
        old.open,
        layout,
        opened,
        keep_roots=keep_roots,
        keep_days=keep_days,
        not_opened=old.not_opened,
        root=syncing.root,
        progress=shows,
    )
    before = [*replica.config.providers]
    if isinstance(target, str):
        old_specs = (source, lasting_spec(source or ""))
        stay = [spec for spec in before if source is not None and spec not in old_specs]
        remember_providers(replica, [*stay, target])
        syncing.places = syncing.pool.open([*stay, target])
        gone = [spec for spec in before if spec not in replica.config.providers]
    else:
        syncing.places = Providers((opened,))
        gone = before
    left_behind = [name_of(one) for one in old.each if one not in syncing.places.each]
    if left_behind:
        to = lasting_spec(target) if isinstance(target, str) else target.name
        report = await _leave_word(view, old.open, opened, gone or left_behind, to, layout, shows)
        last = report.root if report is not None else None
        notified = placed.providers_of(replica.db.connection, last) if last is not None else set()
        moved = msgspec.structs.replace(
            moved,
            roots=[*moved.roots, *([last] if last is not None and last not in moved.roots else [])],
            forwarding_at=[name for name in left_behind if name in notified],
            no_forwarding_at=[name for name in left_behind if name not in notified],
        )
    warning = spec_warning(target) if isinstance(target, str) else ""
    return MovedTo(moved=moved, providers=tuple(provider_names(replica, syncing)), warning=warning)


def _check_source(view: View, source: str, target: str | Provider) -> None:
    from ipfsmem.provider.contract import lasting_spec, shown_spec

    specs = [*view.opened.replica.config.providers] or [one.name for one in view.syncing.places.open]
    if source not in specs and lasting_spec(source) not in specs:
        raise ConfigError(
            f"{shown_spec(source)} is not a provider of this vault",
            hint=f"Its providers: {', '.join(map(shown_spec, specs)) or 'none'}. Or move without --from, to leave all of them (in Python: source=None).",
        )
    if isinstance(target, str) and lasting_spec(source) == lasting_spec(target):
        raise UsageError("the source and the target are the same provider")


async def _leave_word(
    view: View,
    old: list[Provider],
    new: Provider,
    left_specs: list[str],
    to: str,
    layout: Layout,
    progress: Progress,
) -> SyncReport | None:
    """Publish a forwarding record with the last root at the old and the new providers; None if none accepted it."""
    from ipfsmem.bundle.program_events import MOVED, moved_data
    from ipfsmem.sync import engine

    opened = view.opened
    opened.timeline("").note(
        MOVED, moved_data(tuple(shown(view, one) for one in left_specs), shown(view, to))
    )
    opened.scan()
    everywhere = [*(provider for provider in old if provider is not new), new]
    try:
        return await engine.sync(
            opened.replica, everywhere, layout, root=view.syncing.root, progress=progress
        )
    except ProviderError:
        return None  # everything is at the new provider by now; the next sync publishes this there
    finally:
        opened.render()


def shown(view: View, spec: str) -> str:
    """Return a spec for the timeline: without secrets, and in a public vault without paths of this device."""
    from ipfsmem import config as configuration
    from ipfsmem.bundle.program_events import MAX_SPEC
    from ipfsmem.vault.sheet import public_spec

    folder = Path(spec).is_absolute() or spec.startswith("directory:")
    if view.opened.mode.public and folder:
        return "directory"
    return public_spec(spec, configuration.settings().providers)[:MAX_SPEC]


@operation(
    name="providers.follow",
    summary="Follow another device to its new provider",
    right="admin",
    about="memory",
    raises=(
        "NotFoundError: no device has moved the vault, or the provider does not have it.",
        "UsageError: `decline` with `spec`.",
        "ConfigError: the provider cannot be opened.",
        "ProviderError: the provider does not answer.",
        "IncompleteError: the provider did not accept new data.",
        "PublicError: mode ipfs without `public_ok`.",
        "SecretsError: mode ipfs, and a text looks like a secret.",
    ),
    audit="providers follow",
    command="provider follow",
)
async def follow(
    view: View,
    spec: Annotated[
        str | None, Meta(description="The provider on this device (default: as the other device calls it).")
    ] = None,
    *,
    decline: Annotated[
        bool, Meta(description="Keep publishing here, and do not ask about this move again.")
    ] = False,
    public_ok: PublicOk = False,
    allow: Allow = (),
    progress: OnProgress = None,
) -> Followed:
    """Publish at the providers to which another device moved this vault, and leave those that it left.

    Pass `spec` if the provider has another name on this machine. It must already have this vault.
    Nothing changes until this vault was read from it and a sync with the old and new providers
    succeeded.
    """
    from ipfsmem.open_vault.providers import provider_names
    from ipfsmem.provider.contract import lasting_spec, require_address, spec_warning
    from ipfsmem.sync import engine
    from ipfsmem.sync.forwarding import note_answer, unanswered_move
    from ipfsmem.sync.progress import no_progress

    replica, syncing, shows = view.opened.replica, view.syncing, progress or no_progress
    if decline and spec is not None:
        raise UsageError("decline excludes spec")
    places = syncing.places if decline else syncing.published_at()
    announced = unanswered_move(replica)
    if announced is None:
        raise NotFoundError(
            "no device has moved this vault",
            hint="" if decline else "To publish elsewhere: ipfsmem vault move.",
        )
    if decline:
        with replica.transaction():
            note_answer(replica, announced)
        return Followed(report=None, providers=tuple(provider_names(replica, syncing)), warning="")
    syncing.agree(public_ok)
    require_address(spec or announced.to)
    chosen = lasting_spec(spec or announced.to)
    try:
        (opened,) = syncing.pool.open_all([chosen])
        await engine.look_there(replica, opened, root=syncing.root, progress=shows)
    except (ConfigError, ProviderUnavailable) as error:
        if spec is None:
            error.hint = f"{error.hint} If it has another name here: ipfsmem provider follow SPEC.".lstrip()
        raise
    view.opened.scan()
    everywhere = [*(provider for provider in places.open if provider is not opened), opened]
    layout = syncing.layout(syncing.secret_check(allow))
    try:
        report = await engine.sync(
            replica,
            everywhere,
            layout,
            not_opened=places.not_opened,
            root=syncing.root,
            progress=shows,
        )
    finally:
        view.opened.render()
    if report.blocked or opened.name in report.not_placed:
        why = (n.text for n in report.notices if n.kind == report.blocked or opened.name in n.text)
        raise IncompleteError(
            f"{opened.name} does not have everything of this vault yet, so this device still publishes at its old providers: "
            f"{next(why, 'it could not be asked')}",
            hint="When it accepts uploads again: ipfsmem provider follow",
        )
    _move_to(view, chosen, announced)
    names = provider_names(replica, syncing)
    return Followed(report=report, providers=tuple(names), warning=spec_warning(chosen))


def _move_to(view: View, spec: str, announced: Move) -> None:
    """Make this the provider to publish at, in place of those that were left."""
    from ipfsmem.open_vault.providers import remember_providers
    from ipfsmem.sync.forwarding import note_answer

    replica, syncing = view.opened.replica, view.syncing
    specs = [*replica.config.providers]
    stay = [one for one in specs if shown(view, one) not in announced.left]
    if len(specs) == 1:
        stay = []  # the only provider of this device, under any name
    remember_providers(replica, [*(one for one in stay if one != spec), spec])
    syncing.places = syncing.pool.open(replica.config.providers)
    with replica.transaction():
        note_answer(replica, announced)
