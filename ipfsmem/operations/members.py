"""The operations on the devices, wallets and recovery phrases with access to a vault: list, revoke, rename, rotate, a new
recovery phrase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta
from msgspec.structs import replace

from ipfsmem.answer import Answer
from ipfsmem.errors import (
    FormatError,
    IpfsmemError,
    NotFoundError,
    OpenError,
    ProviderError,
    SignatureError,
    UsageError,
)
from ipfsmem.operation import Cli, Items, OnProgress, View, operation

if TYPE_CHECKING:
    from ipfsmem.results import NewRecoveryWords
    from ipfsmem.sync.progress import Progress
    from ipfsmem.sync.removals import Removal
    from ipfsmem.sync.report import SyncReport
    from ipfsmem.vault.recovery import NewWords

#: Types of results, imported when an interface shows them.
LATE = {
    "NewRecoveryWords": "ipfsmem.results",
    "NewWords": "ipfsmem.vault.recovery",
    "Removal": "ipfsmem.sync.removals",
    "SyncReport": "ipfsmem.sync.report",
}
#: Errors of a pull caused by published data.
_PUBLISHED: Final = (FormatError, NotFoundError, OpenError, SignatureError)


class Member(Answer, frozen=True, kw_only=True):
    """One id of a member. `family`: first id of its device; `sign`, `box`: public keys in hex."""

    id: str
    role: str
    label: str
    kind: str
    family: str
    this_device: bool
    sign: str
    box: str
    #: Whether it has been a member since the vault was created.
    root: bool
    #: When this device first saw its last version; None if it is not known to have published.
    heard: int | None


class SealingKey(Answer, frozen=True, kw_only=True):
    """The current encryption key: its number and its name."""

    epoch: int
    ek: str


class MemberList(Items[Member], frozen=True, kw_only=True):
    """The members of a vault, revoked members, and the current encryption key. `reason`: why there is no key.
    It is a sequence of its `members`."""

    members: tuple[Member, ...]
    revoked: list[str]
    removed: list[Removal]
    seals: SealingKey | None
    reason: str


@operation(
    name="members.list",
    summary="List the members",
    right="read",
    about="memory",
    command="member list",
    http="GET /v1/members",
)
def list_(view: View) -> MemberList:
    """List the members that this device knows: founding members first, then by role and label.

    All ids of a device have the label under which it was added.
    """
    from ipfsmem.device.tables import heads
    from ipfsmem.memories.writers import members_of
    from ipfsmem.sync.removals import removals

    replica = view.opened.replica
    ring, last_seen = replica.ring, heads.last_seen(replica.db.connection)
    order = {"admin": 0, "writer": 1, "reader": 2}
    members = sorted(members_of(replica), key=lambda one: (one.rank, order[one.role], one.label, one.id))
    roots = ring.view.rights.root_ids if ring is not None else frozenset()
    sealing = ring.view.sealing if ring is not None else None
    return MemberList(
        members=tuple(
            Member(
                id=one.id,
                role=one.role,
                label=one.label,
                kind=one.kind,
                family=one.family,
                this_device=one.id == view.opened.device,
                sign=one.sign.hex(),
                box=one.box.hex(),
                root=one.id in roots,
                heard=last_seen.get(one.id),
            )
            for one in members
        ),
        revoked=sorted(ring.view.revoked) if ring is not None else [],
        removed=removals(ring),
        seals=SealingKey(epoch=sealing.epoch, ek=sealing.id) if sealing else None,
        reason=ring.view.reason if ring is not None else "",
    )


@operation(
    name="members.revoke",
    summary="Revoke a member",
    right="admin",
    about="memory",
    raises=(
        "UsageError: `member` is this device.",
        "MembershipError: the owner's keys are not loaded, or these may not revoke `member`.",
        "ProviderError: no provider was reachable; the hint says if the revoke is made and unpublished.",
    ),
    audit="keys revoke",
    command="member revoke",
    destructive=True,
)
async def revoke(
    view: View,
    member: Annotated[
        str,
        Meta(description="An id of the member; all ids of its device are revoked."),
        Cli(metavar="DEVICE"),
    ],
    *,
    cascade: Annotated[
        bool,
        Meta(
            description="Also undo what this member added and revoked, if it is a recovery phrase or another wallet."
        ),
        Cli(help="Also undo what DEVICE added and revoked, if it is a recovery phrase or another wallet."),
    ] = False,
    progress: OnProgress = None,
) -> SyncReport:
    """Revoke a member, and encrypt new texts with a new key.

    A revoked device keeps the texts that it has, and cannot read new ones. Versions of other devices are merged
    first, and the revoke is published; unusable data at a provider does not prevent it.
    """
    from ipfsmem.causal.clock import next_hlc
    from ipfsmem.ring import operations
    from ipfsmem.ring.statements import member_id
    from ipfsmem.sync.removals import called, removal_key, removals
    from ipfsmem.sync.revoke_notices import words_of_revoke, words_of_what_stands

    replica = view.opened.replica
    root = view.syncing.require_root()
    _refuse_itself(view, member)
    failed: IpfsmemError | None = None
    before: SyncReport | None = None
    try:
        before = await view.syncing.sync(progress=progress)
    except _PUBLISHED as error:
        failed = error  # the member to be revoked may have caused it
    _refuse_itself(view, member)
    with replica.transaction():
        ring = replica.ring
        if ring is None and failed is not None:
            raise failed
        assert ring is not None
        frame = replica.store.frame
        ek = None if ring.plain else replica.environment.random(32)
        at = next_hlc(frame.hlc, replica.environment.now())
        family = ring.view.ids_of(ring.view.family_of(member))
        labels = [p.label for one in family if (p := ring.view.members.get(one))]
        grown = operations.revoke(ring, root.admin, member, at=at, counters=frame.ctx, ek=ek, cascade=cascade)
        replica.set_ring(grown)
        # This command's report has it; other devices report it at their next sync.
        target = grown.view.family_of(member)
        replica.note_shown(removal_key(target, member_id(root.admin_public)))
    enrolled = operations.members_admitted_by(ring, member)
    report = await publish_statement(view, "the revoke", progress, before)
    if failed is not None:
        report.say(
            "not-pulled",
            f"the latest versions of others could not be merged before the revoke ({failed}), so it is based on the local "
            "ones. Later texts of the revoked device wait for your decision: ipfsmem conflicts",
        )
    report.say("revoked", words_of_revoke(labels, family, plain=ring.plain))
    stay = {one: label for one, label in enrolled.items() if one in grown.view.members}
    label_of = {one.id: one.label for one in removals(ring) if not one.lasting and target in one.by}
    still = {one: label for one, label in label_of.items() if one in grown.view.revoked_by}
    if stay or still:
        report.say("stands", words_of_what_stands(stay, still, target))
    if gone := {one: label for one, label in enrolled.items() if one not in stay}:
        report.say("fell", f"also revoked, because only it had added them: {called(gone)}")
    if back := {one: label for one, label in label_of.items() if one in grown.view.members}:
        report.say(
            "back",
            f"members again, because only it had revoked them: {called(back)}. Each continues with its next sync. To revoke one "
            "again, for example a lost device: ipfsmem member revoke ID",
        )
    return report


def _refuse_itself(view: View, member: str) -> None:
    """Refuse a device that revokes itself: it would create the new key, and so know it."""
    ring = view.opened.replica.ring
    if ring is not None and ring.view.family_of(member) == ring.view.family_of(view.opened.device):
        raise UsageError(
            f"{member} is this device, and a device cannot revoke itself, because it would know the new key",
            hint=f"On another device of this memory: ipfsmem member revoke {ring.view.family_of(member)} --wallet FILE "
            "(in Python: unlock(), then members.revoke()).",
        )


async def publish_statement(
    view: View, what: str, progress: Progress | None, before: SyncReport | None
) -> SyncReport:
    """Publish the last statement of the key ring; the report includes the sync `before` it. The error of a failure states
    that the statement is stored on this device and unpublished."""
    try:
        report = await view.syncing.sync(progress=progress)
        report.after(before)
        return report
    except (ProviderError, *_PUBLISHED) as error:
        view.opened.when_changed()
        error.hint = f"{what[:1].upper()}{what[1:]} is created on this device and not published yet. Publish it with: ipfsmem sync"
        raise


@operation(
    name="members.rename",
    summary="Change a member's label",
    right="admin",
    about="memory",
    raises=(
        "MembershipError: the owner's keys are not loaded, or these may not rename `member`.",
        "FormatError: `label` is invalid.",
    ),
    audit="keys label",
    command="member rename",
    idempotent=True,
)
async def rename(
    view: View,
    member: Annotated[str, Meta(description="An id of the member."), Cli(metavar="DEVICE")],
    label: Annotated[str, Meta(description="Its label, for people.")],
    *,
    progress: OnProgress = None,
) -> SyncReport:
    """Change the label of a device, wallet or recovery phrase, on every device."""
    from ipfsmem.causal.clock import next_hlc
    from ipfsmem.ring import operations
    from ipfsmem.sync.removals import whose_word
    from ipfsmem.sync.revoke_notices import words_of_label

    replica = view.opened.replica
    root = view.syncing.require_root()
    before = await view.syncing.sync(progress=progress)
    with replica.transaction():
        ring = replica.ring
        assert ring is not None
        at = next_hlc(replica.store.frame.hlc, replica.environment.now())
        grown = operations.relabel(ring, root.admin, member, label, since=at)
        replica.set_ring(grown)
        family = grown.view.family_of(member)
        was, now = ring.view.members[family], grown.view.members[family]
        mine = family == grown.view.family_of(view.opened.device)
    if mine:  # for a later enrolment of this device
        replica.save_config(replace(replica.config, label=label))
    report = await publish_statement(view, "the label", progress, before)
    report.say("label", words_of_label(was, now, whose_word(ring, was.by)))
    return report


@operation(
    name="members.rotate",
    summary="Encrypt new texts with a new key",
    right="admin",
    about="memory",
    raises=("MembershipError: the owner's keys are not loaded.",),
    audit="keys rotate",
    command="member rotate",
)
async def rotate(view: View, *, progress: OnProgress = None) -> SyncReport:
    """Encrypt new texts with a new key. Existing texts keep their key."""
    from ipfsmem.ring import operations

    replica = view.opened.replica
    root = view.syncing.require_root()
    before = await view.syncing.sync(progress=progress)
    with replica.transaction():
        ring = replica.ring
        assert ring is not None
        ring = operations.rotate(ring, root.admin, replica.environment.random(32))
        replica.set_ring(ring)
    report = await publish_statement(view, "the new key", progress, before)
    key = ring.view.sealing
    if key is not None and not report.blocked:
        report.say(
            "rotated",
            f"new texts are encrypted with key no. {key.epoch}; other devices use it from their next sync on. "
            "Earlier texts keep their key, and anyone who has it can read them",
        )
    return report


@operation(
    name="members.new_words",
    summary="Create a new recovery phrase",
    right="admin",
    about="memory",
    raises=(
        "MembershipError: the owner's keys are not loaded, or these may not add a recovery phrase.",
        "WrongWalletError: the loaded keys are of another vault.",
        "ProviderError: no provider was reachable; nothing was created.",
    ),
    audit="keys words",
    command="key phrase",
)
async def new_words(view: View, *, progress: OnProgress = None) -> NewWords:
    """Create a new recovery phrase of 24 words, and publish its membership.

    Show it once, and `revoke` older ones only afterwards, and only if `problem` is empty. Once it is a member, an error
    of a provider is not raised but in `problem`, and the next sync publishes it.
    """
    from ipfsmem.ring.statements import member_id
    from ipfsmem.vault.recovery import (
        NewWords,
        enrol_words,
        refuse_who_cannot_enrol,
        why_words_may_fail,
        words_of,
    )
    from ipfsmem.wallet.recovery_words import to_words
    from ipfsmem.wallet.root_keys import RootKeys

    replica, syncing = view.opened.replica, view.syncing
    root = syncing.require_root()
    refuse_who_cannot_enrol(replica.ring, root)
    before = await syncing.sync(progress=progress)
    refuse_who_cannot_enrol(replica.ring, root)
    older = words_of(replica.ring)
    secret = replica.environment.random(32)
    words = RootKeys.from_recovery(secret)
    label = enrol_words(replica, root, words)
    report, vault = None, replica.config.vault
    assert vault is not None
    try:
        report = await syncing.sync(progress=progress)
        report.after(before)
        problem = await why_words_may_fail(
            words,
            vault.tag,
            syncing.published_at().open,
            report.notices,
            replica.environment,
            sealed=view.opened.mode.sealed,
        )
    except IpfsmemError as error:
        view.opened.when_changed()
        problem = str(error)
        report = report or before
    return NewWords(member_id(words.admin_public), label, to_words(secret), older, problem, report)


@new_words.answers_with
def phrase_shown(phrase: NewWords) -> NewRecoveryWords:
    """Return the phrase with its warnings."""
    from ipfsmem.results import NewRecoveryWords

    return NewRecoveryWords.of(phrase, ())
