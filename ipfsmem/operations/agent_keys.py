"""The operations on agent keys, strings that open a vault in a container: new, list, renew, revoke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from ipfsmem.answer import Answer
from ipfsmem.errors import ConfigError, IpfsmemError, MembershipError, NotFoundError, UsageError
from ipfsmem.lazy_pattern import lazy_pattern
from ipfsmem.operation import Cli, Except, Items, OnProgress, View, operation

if TYPE_CHECKING:
    from ipfsmem.device.replica import Replica
    from ipfsmem.sync.agent_cards import Agent, State
    from ipfsmem.sync.report import SyncReport
    from ipfsmem.wallet.agent_key import AgentKey, KeyProvider

#: Types of results, imported when an interface shows them.
LATE = {"State": "ipfsmem.sync.agent_cards", "SyncReport": "ipfsmem.sync.report"}
_DURATION = lazy_pattern(r"([1-9][0-9]{0,4})([hdw])")
_HOURS: Final = {"h": 1, "d": 24, "w": 168}
#: Longest validity, in hours.
_MOST_HOURS: Final = 366 * 24
#: Roles whose writes need the mailbox.
_LATER: Final = ("writer", "append", "drop")

Name = Annotated[str, Meta(description="Name of the agent key."), Cli(metavar="NAME")]
Expires = Annotated[
    str,
    Meta(description="How long it is valid from now on: a number of hours, days or weeks (12h, 30d, 4w)."),
    Cli(metavar="TIME", help="How long it is valid from now on: hours, days or weeks (12h, 30d, 4w)."),
]


class AgentInfo(Answer, frozen=True, kw_only=True):
    """An agent key of a vault, without its secret. `expires`: its end in milliseconds since 1970 UTC; None if no card describes it."""

    id: str
    name: str
    role: str
    state: State
    expires: int | None


class AgentList(Items[AgentInfo], frozen=True, kw_only=True):
    """The agent keys of a vault. It is a sequence of its `agents`."""

    agents: tuple[AgentInfo, ...]


class NewAgentKey(Answer, frozen=True, kw_only=True):
    """A new agent key; `key` is its secret string, returned only once.

    `opens`: what its holder can read. `providers`: addresses in the key, and `credentials`: those of them for which it
    has credentials. `problem`: why it may not open the vault yet; empty if a trial opened it.
    """

    SAID_ONCE = ("key",)

    key: str
    id: str
    name: str
    role: str
    expires: int
    opens: str
    providers: list[str]
    credentials: list[str]
    warnings: list[str]
    problem: str
    sync: SyncReport


@operation(
    name="agents.new",
    summary="Create an agent key and show it once",
    right="admin",
    about="memory",
    raises=(
        "UsageError: the name is invalid or in use, the time is invalid, the role is not available, or the vault is not encrypted.",
        "ConfigError: the vault has no provider, or a credential is not one of its provider.",
        "MembershipError: the owner's keys are not loaded, or the owner's wallet did not add this device.",
        "ProviderError: no provider was reachable.",
    ),
    audit="agent new",
    command="agent new",
)
async def new(
    view: View,
    name: Name,
    *,
    role: Annotated[str, Meta(description="Rights of its holder: reader."), Cli(metavar="ROLE")] = "reader",
    expires: Expires = "30d",
    credentials: Annotated[
        dict[str, dict[str, str]] | None,
        Meta(description="Credentials to put into the key, by kind of provider and name of the setting."),
        Except(("cli",)),
    ] = None,
    progress: OnProgress = None,
) -> NewAgentKey:
    """Create an agent key: one string that opens this vault in a container, to read.

    Whoever has the string reads everything in the vault until the key is revoked. It has the addresses of the
    vault's providers, and only the credentials that are passed: never those of this device. It is tried before it
    is returned.
    """
    from ipfsmem.bundle.program_events import is_agent_name
    from ipfsmem.operations.members import publish_statement
    from ipfsmem.sync.agent_cards import agents_of, enrol_agent
    from ipfsmem.wallet.agent_key import AgentKey, render_key

    opened = view.opened
    replica = opened.replica
    if not opened.mode.sealed:
        raise UsageError(
            f"a vault in mode {opened.mode} has no agent keys",
            hint="Only a vault in mode encrypted-ipfs has them.",
        )
    if not is_agent_name(name):
        raise UsageError(
            f"{name[:60]!r} is not a valid name of an agent key",
            hint="A name is 1 to 32 characters of a-z, 0-9 and -, starting with a letter or digit, for instance web.",
        )
    if role in _LATER:
        raise UsageError(
            f"agent keys cannot write yet, so the role {role} is not available", hint="Use: reader."
        )
    if role != "reader":
        raise UsageError(f"unknown role {role[:60]!r}", hint="Use: reader.")
    hours = _hours(expires)
    root = view.syncing.require_root()
    providers = _providers(replica, credentials or {})
    _refuse_used(agents_of(replica), name, replica.environment.now())
    before = await view.syncing.sync(progress=progress)
    ring = replica.ring
    vault = replica.config.vault
    assert ring is not None and vault is not None
    now = replica.environment.now()
    _refuse_used(agents_of(replica), name, now)
    end = now + hours * 3_600_000
    seed = replica.environment.random(32)
    public = bytes.fromhex(vault.admin), bytes.fromhex(vault.anchor)

    def key(counter: int) -> AgentKey:
        return AgentKey(
            seed=seed, root=public[0], anchor=public[1], providers=providers, least=(opened.device, counter)
        )

    render_key(key(2**53 - 1))  # before anything is made
    enrol_agent(replica, root, key(1), name, end)
    try:
        report = await publish_statement(view, "the agent key", progress, before)
        unpublished = "it is not published yet" if report.blocked else ""
    except IpfsmemError as error:  # the member is in the ring: without its string, nobody could use the key
        report, unpublished = before, f"it is not published yet: {error}"
    made = key(replica.store.frame.ctx[opened.device])
    text = render_key(made)
    return NewAgentKey(
        key=text,
        id=made.id,
        name=name,
        role=role,
        expires=end,
        opens=f"everything in the vault {opened.vault_name}, in all scopes",
        providers=[_shown(one) for one in providers],
        credentials=[_shown(one) for one in providers if one.credentials],
        warnings=_warnings(providers),
        problem=unpublished or await _why_it_fails(text, replica),
        sync=report,
    )


@operation(
    name="agents.list",
    summary="List agent keys, without their secrets",
    right="read",
    about="memory",
    command="agent list",
    http="GET /v1/agents",
)
def list_(view: View) -> AgentList:
    """List the agent keys of this vault that this device knows: valid and expired ones, then revoked ones."""
    from ipfsmem.sync.agent_cards import agents_of

    replica = view.opened.replica
    now = replica.environment.now()
    return AgentList(
        agents=tuple(
            AgentInfo(
                id=one.id,
                name=one.name,
                role=one.card.role if one.card is not None else "reader",
                state=one.state(now),
                expires=one.card.expires if one.card is not None else None,
            )
            for one in agents_of(replica)
        )
    )


@operation(
    name="agents.renew",
    summary="Extend an agent key, which stays the same string",
    right="admin",
    about="memory",
    raises=(
        "NotFoundError: no agent key has this name or id.",
        "MembershipError: it is revoked, or its new end would not be valid.",
        "ProviderError: no provider was reachable.",
    ),
    audit="agent renew",
    command="agent renew",
)
async def renew(
    view: View,
    name: Annotated[str, Meta(description="Name or id of the agent key."), Cli(metavar="NAME")],
    *,
    expires: Expires = "30d",
    progress: OnProgress = None,
) -> SyncReport:
    """Extend an agent key, or end it earlier. Its string stays the same, also where it expired, until it is revoked."""
    from ipfsmem.operations.members import publish_statement
    from ipfsmem.sync.agent_cards import write_card

    replica = view.opened.replica
    hours = _hours(expires)
    before = None
    try:
        one = _named(replica, name)
    except NotFoundError:
        before = await view.syncing.sync(progress=progress)  # another device may have created it since
        one = _named(replica, name)
    _refuse_renewal(one)
    card = one.card  # before a sync with the owner's keys, which revokes an expired key
    end = replica.environment.now() + hours * 3_600_000
    with replica.transaction():
        write_card(
            replica,
            one.id,
            one.name if card is None else card.name,
            "reader" if card is None else card.role,
            () if card is None else card.scopes,
            end,
        )
    report = await publish_statement(view, "the new end of the agent key", progress, before)
    _refuse_renewal(_named(replica, one.id))  # another device may have revoked it since
    return report


@operation(
    name="agents.revoke",
    summary="Revoke an agent key",
    right="admin",
    about="memory",
    raises=(
        "NotFoundError: no agent key has this name or id.",
        "MembershipError: the owner's keys are not loaded, or it is revoked already.",
        "ProviderError: no provider was reachable; the hint says if the revoke is made and unpublished.",
    ),
    audit="agent revoke",
    command="agent revoke",
    destructive=True,
)
async def revoke(
    view: View,
    name: Annotated[str, Meta(description="Name or id of the agent key."), Cli(metavar="NAME")],
    *,
    progress: OnProgress = None,
) -> SyncReport:
    """Revoke an agent key, and encrypt new texts with a new key.

    Its holder keeps the texts that it read, and cannot read new ones. Also revoke its credentials at the provider.
    """
    from ipfsmem.operations.members import revoke as revoke_member

    view.syncing.require_root()
    replica = view.opened.replica
    try:
        one = _named(replica, name)
    except NotFoundError:
        await view.syncing.sync(progress=progress)  # another device may have created it since
        one = _named(replica, name)
    if one.revoked:
        raise MembershipError(f"the agent key {one.name} is revoked already")
    return await revoke_member.work(view, one.id, progress=progress)


def _named(replica: Replica, name: str) -> Agent:
    from ipfsmem.sync.agent_cards import agents_of

    agents = agents_of(replica)
    found = [one for one in agents if name in (one.id, one.name)]
    members = [one for one in found if not one.revoked] or found[:1]
    if not members:
        raise NotFoundError(f"unknown agent key {name[:60]!r}", hint="See: ipfsmem agent list.")
    if len(members) > 1:
        raise UsageError(
            f"{len(members)} agent keys have the name {name!r}: {', '.join(one.id for one in members)}",
            hint="Pass the id instead.",
        )
    return members[0]


def _refuse_renewal(agent: Agent) -> None:
    if agent.revoked:
        raise MembershipError(
            f"the agent key {agent.name} is revoked, and cannot be extended",
            hint="Create another one: ipfsmem agent new NAME",
        )


def _refuse_used(agents: list[Agent], name: str, now: int) -> None:
    """Refuse the name of a key that still opens the vault: `revoke` and `renew` name one by it."""
    if any(one.name == name and not one.revoked for one in agents):
        raise UsageError(
            f"there is already an agent key {name}",
            hint=f"Choose another name, extend it with: ipfsmem agent renew {name}, or revoke it: ipfsmem agent revoke {name}",
        )


def _hours(text: str) -> int:
    match = _DURATION.fullmatch(text)
    hours = int(match[1]) * _HOURS[match[2]] if match is not None else 0
    if not 1 <= hours <= _MOST_HOURS:
        raise UsageError(
            f"an agent key is valid for 1 hour to 366 days (got {text[:60]!r})",
            hint="Give a number of hours, days or weeks, for instance: 12h, 30d, 4w.",
        )
    return hours


def _providers(replica: Replica, credentials: dict[str, dict[str, str]]) -> tuple[KeyProvider, ...]:
    """Return the providers of a key. Raises ConfigError without one, and for credentials that no key may have."""
    from ipfsmem.config import settings
    from ipfsmem.provider.choice import specs_of
    from ipfsmem.wallet.agent_key import CREDENTIALS, MAX_PROVIDERS, KeyProvider

    usual = settings().provider
    specs = replica.config.providers or ((usual,) if usual else ())
    if not specs:
        raise ConfigError("no provider is set", hint="Store one: ipfsmem provider add SPEC")
    specs = specs_of(list(specs))[:MAX_PROVIDERS]
    kinds = {_kind(spec) for spec in specs}
    for kind, names in credentials.items():
        if kind not in kinds:
            raise ConfigError(
                f"credentials for {kind[:60]!r}, which is not the kind of a provider of this vault",
                hint=f"Kinds of its providers: {', '.join(sorted(kinds))}.",
            )
        allowed = CREDENTIALS.get(kind, frozenset())
        wrong = sorted(str(name) for name in names if name not in allowed)
        if wrong:
            raise ConfigError(
                f"{wrong[0][:60]!r} is not a credential of {kind}",
                hint=f"Credentials of {kind}: {', '.join(sorted(allowed)) or 'none'}.",
            )
    return tuple(KeyProvider(spec, dict(credentials.get(_kind(spec), {}))) for spec in specs)


def _kind(spec: str) -> str:
    """Return the kind of a provider; that of a folder's path is `directory`."""
    from ipfsmem.wallet.agent_key import CREDENTIALS

    kind, colon, _ = spec.partition(":")
    return kind if colon or kind in CREDENTIALS else "directory"


def _shown(provider: KeyProvider) -> str:
    from ipfsmem.provider.contract import shown_spec

    return shown_spec(provider.spec)


def _warnings(providers: tuple[KeyProvider, ...]) -> list[str]:
    from ipfsmem.wallet.agent_key import CREDENTIALS

    found = []
    for one in providers:
        kind = _kind(one.spec)
        if kind == "directory":
            found.append(f"{_shown(one)} is a folder: the key works only where it is mounted at this path")
        elif kind in CREDENTIALS and not one.credentials:
            found.append(
                f"the key has no credentials for {_shown(one)}: set them in the container's environment, or create the key with "
                "--provider-credentials FILE (in Python: credentials=)"
            )
        elif one.credentials:
            found.append(
                f"the key has credentials for {_shown(one)}: they should allow reading only, as its holder can use them"
            )
    return found


async def _why_it_fails(text: str, replica: Replica) -> str:
    """Open the vault with only the key, like a container; return why that fails, or ""."""
    from ipfsmem.open_vault.by_key import open_by_key

    try:
        result = await open_by_key(text, "trial", environment=replica.environment)
    except IpfsmemError as error:
        return f"a trial with only the key did not open the vault: {error}"
    result.close()
    return ""
