"""The answers of a memory as values: what `--json` prints, field for field.

Some operations return them. Others return values that the next call takes up again, such as a reading with its bytes; for
these there is a class here whose `of` takes such a value.
Every face shows these and makes no shape of its own: JSON is their encoding by msgspec, in the order of the fields. They are
frozen and are built by field names. Moments are milliseconds since 1970 (UTC), spans are seconds, sizes are bytes, and a
hash is 64 hex digits, unless a field says otherwise. What a lower room returns and is right as it stands (a sync's report,
a provider's presence, a working copy's facts) is passed on and not repeated here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ipfsmem.answer import Answer as Answer
from ipfsmem.bundle.program_events import FurtherVault
from ipfsmem.causal.cards import Card
from ipfsmem.config import VaultConfig
from ipfsmem.content.cid import ipns_name
from ipfsmem.device.collection import Collected
from ipfsmem.errors import DamagedError, IncompleteError, IpfsmemError
from ipfsmem.files.exporting import LeftOut
from ipfsmem.files.working_copies import FolderFacts
from ipfsmem.mode import Mode
from ipfsmem.provider.abilities import good_for, limits
from ipfsmem.provider.contract import Capabilities
from ipfsmem.provider.opening import NotOpened
from ipfsmem.provider.probe import Step
from ipfsmem.published.history import LogEntry
from ipfsmem.ring.authority import RingMember
from ipfsmem.ring.keyring import Ring
from ipfsmem.sync.collection import Collection
from ipfsmem.sync.deletion_holds import Guarded
from ipfsmem.sync.moving import Moved
from ipfsmem.sync.presence import Presence
from ipfsmem.sync.removals import Removal
from ipfsmem.sync.report import SyncReport
from ipfsmem.sync.retention import Verdict
from ipfsmem.sync.salvage import Salvageable, Salvaged
from ipfsmem.vault.check import Finding
from ipfsmem.vault.recovery import NewWords, Words
from ipfsmem.wallet.root_keys import RootKeys
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.device.operations import Operation


def shown_text(data: bytes | None) -> str | None:
    """A stored text for people and programs: what is no UTF-8 is replaced. None where there is no text."""
    return None if data is None else data.decode("utf-8", "replace")


# -- memories ------------------------------------------------------------------------------------------------


class HelpText(Answer, frozen=True, kw_only=True):
    """The help about a topic."""

    topic: str
    text: str


class Version(Answer, frozen=True, kw_only=True):
    """The version of ipfsmem."""

    version: str


class Difference(Answer, frozen=True, kw_only=True):
    """One memory that two states show differently; a side is None where the memory is not there."""

    key: str
    change: Literal["added", "removed", "changed"]
    before: str | None
    after: str | None


class PublishedVersion(Answer, frozen=True, kw_only=True):
    """A published version that this device knows: its address, its number at its device, when it was first seen here."""

    root: str
    device: str
    c: int
    at_ms: int
    #: The hash of its commit.
    commit: str
    #: Whether this device made it.
    own: bool
    #: What the device is called.
    label: str

    @classmethod
    def of(cls, entry: LogEntry, labels: dict[str, str]) -> PublishedVersion:
        """What was noted of it; `labels` are by device."""
        return cls(**msgspec.structs.asdict(entry), label=labels.get(entry.device, ""))


# -- a memory and its scopes ---------------------------------------------------------------------------------


class ScopeCounts(Answer, frozen=True, kw_only=True):
    """How much is in one scope; "" is the nameless one."""

    scope: str
    memories: int
    events: int
    conflicts: int
    not_fetched: int


class Status(Answer, frozen=True, kw_only=True):
    """What a person asks a memory first. Counts are of all scopes."""

    namespace: str
    mode: Mode
    folder: str | None
    device: str
    memories: int
    events: int
    conflicts: int
    not_fetched: int
    #: Whether something here is published nowhere yet.
    unpublished: bool
    #: The address of the version published last.
    root: str | None
    providers: list[str]
    vault: VaultConfig | None
    members: list[str]
    #: What a person should know: files left alone, missing, not there; late values; what waits for an answer.
    notices: list[str]
    #: Where the plain files are.
    files: list[FolderFacts]
    #: When the name record was put that waits longest to be put again; None when none was.
    names_put: int | None
    #: What is known of the copy at each provider that something is published at.
    presence: list[Presence]
    #: The same counts for each scope, the nameless one first; empty where there is no other.
    scopes: list[ScopeCounts]
    #: Who was removed, and by whom.
    removed: list[Removal]
    #: Until when this device's keys are unlocked; None: they are not, or are under no passphrase.
    unlocked_until: int | None
    #: Memories that this device leaves out of its lists and answers.
    hidden: int = 0
    #: When a dream last ended well on this device, and when one last failed; 0 for never.
    dreamed: int = 0
    dream_failed: int = 0
    #: What is published nowhere yet, in words: "changes", "a change of the members".
    waiting: list[str] = msgspec.field(default_factory=list)

    @property
    def remarks(self) -> list[str]:
        """What a person should know about the places where the plain files lie."""
        return [text for folder in self.files for text in folder.remarks]


class VaultHere(Answer, frozen=True, kw_only=True):
    """The copy of a vault on this device. `mode` None: it cannot be read, for the reason in `problem`. `label`: what other devices call this
    one. `protected`: its keys are under a passphrase; `unlocked_until`: they are open for now."""

    name: str
    folder: str
    mode: Mode | None
    label: str
    providers: list[str]
    vault_id: str
    wallet: str
    protected: bool
    unlocked_until: int | None
    problem: str


class VaultRemoved(Answer, frozen=True, kw_only=True):
    """A vault whose copy on this device was deleted: what was found at each provider before, the commands that bring it back ("" for none),
    and what stays on this disk: in its folder, and linked folders."""

    name: str
    remains: list[Presence]
    with_phrase: str
    with_wallet: str
    left: list[str]
    folders: list[str]


class KeysUnlocked(Answer, frozen=True, kw_only=True):
    """Until when this device's keys are unlocked for every program of this user."""

    until: int


class KeysLocked(Answer, frozen=True, kw_only=True):
    """This device's keys are locked. `was_unlocked`: something was taken away. `lost`: also what was held for memories that are not in
    these folders any more."""

    was_unlocked: bool
    lost: list[str]


class ServiceChanged(Answer, frozen=True, kw_only=True):
    """A service that was installed or taken back, or would be."""

    name: str
    #: The file that tells the system's manager of services, and what stands in it; empty when it is removed.
    file: str
    text: str
    #: Whether the file was not so before.
    changed: bool
    #: What is run, as lines for a shell.
    commands: list[str]


class ServiceState(Answer, frozen=True, kw_only=True):
    """Whether a service is there and runs, and how its syncs went."""

    name: str
    #: None: it is not installed.
    file: str | None
    #: None: it is not known, for the manager of services was not reached or did not say.
    running: bool | None
    #: What the system's manager of services said.
    said: str
    #: When one of its syncs last worked, and since when none has, with the error of the last.
    worked: int | None
    failing: int | None
    failure: str


class ProjectFacts(Answer, frozen=True, kw_only=True):
    """A project that is connected, or would be."""

    folder: str
    #: Where the program keeps what it remembers of it; empty for a program that keeps nothing.
    memory_folder: str
    scope: str
    new_scope: bool
    #: Why it is this scope.
    why: str
    #: Memory files that lay there.
    files: int
    connected_before: bool


class ProjectLeft(Answer, frozen=True, kw_only=True):
    """A project that was not connected with the others; `error` is empty when there was nothing to adopt."""

    folder: str
    error: str
    hint: str


class ProjectsConnected(Answer, frozen=True, kw_only=True):
    """What connecting projects did, or with `dry_run` would do."""

    projects: list[ProjectFacts]
    left: list[ProjectLeft]
    dry_run: bool


class ProjectsDisconnected(Answer, frozen=True, kw_only=True):
    """Projects that were let go of, or with `dry_run` would be."""

    folders: list[str]
    dry_run: bool


class ScopeLine(Answer, frozen=True, kw_only=True):
    """One scope in a list. `card` None: it is forgotten, or its card is not fetched."""

    scope: str
    memories: int
    card: Card | None


class ScopeFacts(Answer, frozen=True, kw_only=True):
    """One scope, and how much is in it."""

    scope: str
    forgotten: bool
    memories: int
    events: int
    card: Card | None


class ScopeCard(Answer, frozen=True, kw_only=True):
    """A scope that was made, or changed."""

    scope: str
    card: Card | None


class ScopeTitle(Answer, frozen=True, kw_only=True):
    """What people call a scope now."""

    scope: str
    title: str


class ScopeForgotten(Answer, frozen=True, kw_only=True):
    """A scope that is forgotten, with so many memories; of these `never_synced` are in no version, so nothing can restore them."""

    scope: str
    forgotten: int
    never_synced: int = 0


class ScopeRestored(Answer, frozen=True, kw_only=True):
    """What came back with a scope; `not_fetched` texts are not kept on this device, so they did not."""

    scope: str
    memories: int
    events: int
    not_fetched: int


class Examined(Answer, frozen=True, kw_only=True):
    """What a look at everything on this device found. `errors`: how many findings are."""

    findings: list[Finding]
    errors: int
    #: Plain files that were written again, and how far the clock of writes went back.
    restored_files: int
    clock_back_ms: int


# -- in and out ----------------------------------------------------------------------------------------------


class Exported(Answer, frozen=True, kw_only=True):
    """How many files were written, what was left out, and of a CAR its root."""

    files: int
    left_out: LeftOut
    root: str | None = None


class FileWritten(Answer, frozen=True, kw_only=True):
    """A file or folder that was written: how many bytes or files, and of a CAR its root."""

    path: str
    files: int | UnsetType = UNSET
    root: str | UnsetType = UNSET
    bytes: int | UnsetType = UNSET


class Opened(Answer, frozen=True, kw_only=True):
    """A foreign bundle: what was asked for, the root CID that answered (None for plain files of a web server), and
    what was left out and why."""

    source: str
    root: str | None
    problems: list[str]


class BundleWritten(Answer, frozen=True, kw_only=True):
    """A foreign bundle that was written to a file: its bytes, and what is known of where it came from (`Opened`)."""

    path: str
    bytes: int
    root: str | None
    problems: list[str]


class Packed(Answer, frozen=True, kw_only=True):
    """The root CID of a file or folder; `bytes` are those of its files, `car_bytes` None when no CAR was written."""

    cid: str
    files: int
    folders: int
    bytes: int
    car_bytes: int | None


class FolderDetached(Answer, frozen=True, kw_only=True):
    """A folder that is not a working copy any more, the files that came out of what was set aside, and the files whose last edits were
    not taken in, each with the reason."""

    path: str
    detached: bool = True
    brought_out: list[str]
    left_alone: list[str]

    def raise_if_incomplete(self) -> None:
        """Raise IncompleteError when a last edit was not taken in."""
        if self.left_alone:
            raise IncompleteError(
                "the folder is unlinked, but these edits were not imported: " + "; ".join(self.left_alone),
                hint="The files stay as they are: fix them, then link the folder again or import them.",
            )


class FolderPaused(Answer, frozen=True, kw_only=True):
    """A working copy that nothing is taken from and nothing written to."""

    path: str
    paused: bool = True


class FolderAccepted(Answer, frozen=True, kw_only=True):
    """A working copy whose texts count as they stand."""

    path: str
    accepted: bool = True


class FolderPutBack(Answer, frozen=True, kw_only=True):
    """A working copy in which so many files were written as they are remembered."""

    path: str
    put_back: int


# -- members and keys ----------------------------------------------------------------------------------------


class Member(Answer, frozen=True, kw_only=True):
    """One id of a member. `family` is the id that its device had first; `sign` and `box` are public keys in hex."""

    id: str
    role: str
    label: str
    kind: str
    family: str
    this_device: bool
    sign: str
    box: str
    #: Whether it belongs to the memory from its beginning.
    root: bool
    #: When this device was shown the last version that it published; None where it published nothing yet, or nothing that is known here.
    heard: int | None


class SealingKey(Answer, frozen=True, kw_only=True):
    """The current encryption key: its number and its name."""

    epoch: int
    ek: str


class MemberList(Answer, frozen=True, kw_only=True):
    """Who belongs to a memory, who was revoked, and the current encryption key; `reason` says why there is none."""

    members: list[Member]
    revoked: list[str]
    removed: list[Removal]
    seals: SealingKey | None
    reason: str

    @classmethod
    def of(
        cls,
        ring: Ring | None,
        members: Sequence[RingMember],
        removed: list[Removal],
        device: str,
        heard: Mapping[str, int],
    ) -> MemberList:
        """The members seen from `device`, which `heard` of them then: roots first, then by role and label."""
        order = {"admin": 0, "writer": 1, "reader": 2}
        members = sorted(members, key=lambda one: (one.rank, order[one.role], one.label, one.id))
        roots = ring.view.rights.root_ids if ring is not None else frozenset()
        sealing = ring.view.sealing if ring is not None else None
        return cls(
            members=[
                Member(
                    id=one.id,
                    role=one.role,
                    label=one.label,
                    kind=one.kind,
                    family=one.family,
                    this_device=one.id == device,
                    sign=one.sign.hex(),
                    box=one.box.hex(),
                    root=one.id in roots,
                    heard=heard.get(one.id),
                )
                for one in members
            ],
            revoked=sorted(ring.view.revoked) if ring is not None else [],
            removed=removed,
            seals=SealingKey(epoch=sealing.epoch, ek=sealing.id) if sealing else None,
            reason=ring.view.reason if ring is not None else "",
        )


#: Said wherever new recovery words are shown.
WORDS_SHOWN_ONCE = "The recovery phrase is shown only once. Whoever has it can read and change this vault."
#: What nobody can change about the words of `init`; docs/CLI.md says how to move.
FIRST_WORDS_STAY = (
    "The recovery phrase of init cannot be revoked and keeps working. If somebody may have it, move to a new vault: ipfsmem init --vault NEW (with a wallet also --key-number 2), then "
    "export and import."
)


class NewRecoveryWords(Answer, frozen=True, kw_only=True):
    """New recovery words, said this once. `older` worked before them; `revoking` are the ids of those that go now."""

    SAID_ONCE = ("recovery_words",)

    recovery_words: list[str]
    id: str
    label: str
    #: Whether it is certain that they are published everywhere.
    published: bool
    older: list[Words]
    revoking: list[str]
    warnings: list[str]
    sync: SyncReport | None

    @classmethod
    def of(cls, made: NewWords, going: Sequence[Words]) -> NewRecoveryWords:
        """What `memory.members.new_words` made; `going` are the older words that are revoked next."""
        warnings = [
            WORDS_SHOWN_ONCE,
            f"Not published everywhere yet: {made.problem}" if made.problem else "",
            FIRST_WORDS_STAY if any(one.root for one in made.older) else "",
        ]
        return cls(
            recovery_words=made.words,
            id=made.id,
            label=made.label,
            published=not made.problem,
            older=made.older,
            revoking=[one.id for one in going],
            warnings=[text for text in warnings if text],
            sync=made.report,
        )


class KeysProtected(Answer, frozen=True, kw_only=True):
    """Whether this device's keys are under a passphrase now."""

    protected: bool


class WalletKeys(Answer, frozen=True, kw_only=True):
    """The public values of a wallet's vault (format section 2.3), in hex."""

    address: str
    vault: str
    key_number: int
    message_sha256: str
    admin_public: str
    head_public: str
    box_public: str
    check: str
    vault_tag: str
    #: That of the vault in mode `ipfs`.
    plain_vault_tag: str
    ipns_name: str

    @classmethod
    def of(
        cls, root: RootKeys, *, address: str, vault: str, key_number: int, message_sha256: str
    ) -> WalletKeys:
        """What may be known of root keys."""
        return cls(
            address=address,
            vault=vault,
            key_number=key_number,
            message_sha256=message_sha256,
            admin_public=root.admin_public.hex(),
            head_public=root.head_public.hex(),
            box_public=root.box_public.hex(),
            check=(root.check or b"").hex(),
            vault_tag=root.vault_tag.hex(),
            plain_vault_tag=root.tag(plain=True).hex(),
            ipns_name=ipns_name(root.head_public),
        )


# -- providers -----------------------------------------------------------------------------------------------


class ProviderInfo(Answer, frozen=True, kw_only=True):
    """A provider of a memory: how it was named, what it can do (in words: `can`, `limits`), the root placed there last
    and when.

    `problem`: why it cannot be opened, such as a token that is not set; nothing is known of what it can do then, and
    `capabilities` has nothing.
    """

    spec: str
    kind: str
    name: str
    capabilities: Capabilities
    can: str
    limits: list[str]
    root: str | None
    at: int | None
    problem: str

    @classmethod
    def of(
        cls,
        spec: str,
        name: str,
        capabilities: Capabilities,
        *,
        root: str | None,
        at: int | None,
    ) -> ProviderInfo:
        """One that is open, with what its capabilities are in words."""
        return cls(
            spec=spec,
            kind=name.partition(":")[0],
            name=name,
            capabilities=capabilities,
            can=good_for(capabilities),
            limits=limits(capabilities),
            root=root,
            at=at,
            problem="",
        )

    @classmethod
    def of_not_opened(cls, one: NotOpened, *, root: str | None, at: int | None) -> ProviderInfo:
        """One that cannot be opened now."""
        return cls(
            spec=one.spec,
            kind=one.spec.partition(":")[0],
            name=one.spec,
            capabilities=Capabilities(put=False, keeps_root=False, durable=False),
            can="",
            limits=[],
            root=root,
            at=at,
            problem=one.problem,
        )


class ProviderTried(Answer, frozen=True, kw_only=True):
    """What a provider really does; `failed` counts broken promises."""

    provider: str
    steps: list[Step]
    failed: int


class ProvidersChecked(Answer, frozen=True, kw_only=True):
    """Whether everything that lives is at each provider; `missing` parts are not, where nothing waits to be served."""

    providers: list[Presence]
    missing: int

    @classmethod
    def of(cls, found: list[Presence]) -> ProvidersChecked:
        """What `memory.providers.check` found."""
        return cls(providers=found, missing=sum(one.missing for one in found if one.state != "waiting"))

    def raise_if_unknown(self) -> None:
        """Raises IncompleteError when it is not known of some provider whether everything is there."""
        if not self.providers:
            raise IncompleteError(
                "no provider of this vault stores blocks",
                hint="Choose one that does: ipfsmem provider add SPEC",
            )
        unknown = [one for one in self.providers if one.state in ("unchecked", "waiting")]
        if unknown:
            error = IncompleteError(
                f"it is unknown whether everything is at {', '.join(one.provider for one in unknown)}",
                hint="Check again later: ipfsmem provider check",
            )
            error.hint = next((one.hint for one in unknown if one.hint), error.hint)
            raise error


class MovedTo(Answer, frozen=True, kw_only=True):
    """What a move brought to the new provider, and where the memory is published now."""

    moved: Moved
    providers: list[str]

    def raise_if_incomplete(self, target: str) -> None:
        """Raises IncompleteError when something did not come along, or a place that was left does not say where it went."""
        moved = self.moved
        problems = [
            f"{count(len(moved.incomplete), 'version')} could not be copied completely"
            if moved.incomplete
            else "",
            f"{', '.join(moved.no_forwarding_at)} could not record it" if moved.no_forwarding_at else "",
        ]
        if any(problems):
            raise IncompleteError(
                f"it publishes at {target} now, but {' and '.join(filter(None, problems))}",
                hint="On a device that still publishes at the old place: ipfsmem provider add SPEC"
                if moved.no_forwarding_at
                else "Run on a device that has the missing data: ipfsmem sync",
            )


class SearchIndexStatus(Answer, frozen=True, kw_only=True):
    """The index that recall keeps for the next process."""

    #: Whether one is kept for the nameless scope, of how many memories, and how many changed since.
    kept: bool
    memories: int
    behind: int
    #: Memories whose texts are not on this device, so that nothing can be found in them.
    not_fetched: int
    #: Indexes that are kept, those of stacks with other scopes among them, and their bytes together.
    files: int
    bytes: int
    #: What is wrong with one of them, or with the model; the next recall makes it anew, or tries again.
    problem: str
    #: The model by which recall goes too, "" for none; how many texts have a vector of it, and how many are still to get one.
    model: str = ""
    vectors: int = 0
    without_vector: int = 0


class SettingShown(Answer, frozen=True, kw_only=True):
    """A setting: its value and default (None: nothing is said), the unit of its number, `source` (`file`, `default`, or the name of an
    environment variable), what it is for and what it takes, in words."""

    name: str
    value: str | int | float | bool | None
    default: str | int | float | bool | None
    unit: str
    source: str
    about: str
    takes: str


class SettingChanged(Answer, frozen=True, kw_only=True):
    """A setting as it counts now, the file that it was written into, and whether that says anything else than before."""

    file: str
    changed: bool
    setting: SettingShown


class SettingsFile(Answer, frozen=True, kw_only=True):
    """A settings file: who names it, whether it is there, and whether it is the one that counts."""

    path: str
    by: str
    there: bool
    counts: bool


class Vacuumed(Answer, frozen=True, kw_only=True):
    """What compacting freed: the bytes of each file before and after, and of all together."""

    before: dict[str, int]
    after: dict[str, int]
    freed: int


class Cleaned(Answer, frozen=True, kw_only=True):
    """What went because it was older than `older_than` seconds, or with `dry_run` would: files with their bytes, operations of the list,
    and notices of earlier syncs."""

    dry_run: bool
    older_than: float
    files: dict[str, int]
    bytes: int
    operations: int
    notices: int


class Compacted(Answer, frozen=True, kw_only=True):
    """What compacting a vault freed, or with `dry_run` would, by part: `versions`, `leftovers` and `files`, None where it was not asked,
    or not done. `problems`: why a part was not done; `hint`: what to do about the first."""

    dry_run: bool
    versions: Collecting | None
    leftovers: Cleaned | None
    files: Vacuumed | None
    problems: dict[str, str]
    hint: str

    def raise_if_incomplete(self) -> None:
        """Raises IncompleteError when a part was not done, or a provider did not do its share."""
        if self.problems:
            raise IncompleteError(
                "not everything was compacted: "
                + "; ".join(f"{part}: {problem}" for part, problem in self.problems.items()),
                hint=self.hint,
            )
        if self.versions is not None:
            self.versions.raise_if_incomplete()


class OperationLine(Answer, frozen=True, kw_only=True):
    """Something that was done with a memory on this device: what, by the word of the command line; the scope and the key or name that it
    was about; by which `face` (`python`, `cli`, `http`, `mcp`, `hook`) and for whom (a client's name, the id of a token); `outcome` is ""
    where it went well, else the kind of the error."""

    at: int
    operation: str
    scope: str
    key: str
    face: str
    by: str
    outcome: str

    @classmethod
    def of(cls, one: Operation) -> OperationLine:
        """The same, with names for its fields."""
        return cls(**msgspec.structs.asdict(one))


class Collecting(Answer, frozen=True, kw_only=True):
    """What a collection let go, or with `dry_run` would: a verdict for each root, at each provider and here; bytes that are
    free at providers, and why one failed; the roots that are guarded."""

    dry_run: bool
    providers: dict[str, list[Verdict]]
    here: list[Verdict]
    blocks: Collected
    freed: dict[str, int]
    problems: dict[str, str]
    guards: list[Guarded]

    @classmethod
    def of(cls, done: Collection, *, dry_run: bool) -> Collecting:
        """What was collected."""
        return cls(dry_run=dry_run, **msgspec.structs.asdict(done))

    def raise_if_incomplete(self) -> None:
        """Raises IncompleteError when a provider failed."""
        if self.problems:
            raise IncompleteError(
                f"some data could not be deleted: {count(len(self.problems), 'provider')} failed",
                hint="Try again later: ipfsmem vault compact",
            )


class Salvage(Answer, frozen=True, kw_only=True):
    """What can be read of damaged heads, what was brought back (None when only looked at), and the sync around it."""

    dry_run: bool
    found: Salvageable
    done: Salvaged | None
    report: SyncReport = msgspec.field(name="sync")

    @property
    def unopened(self) -> int:
        """How many damaged versions cannot be opened at all, so that nothing in them can be listed."""
        return self.report.damaged - len(self.found.heads)

    @property
    def exit_code(self) -> int:
        """What the sync around it ends with; of what is damaged `raise_if_damaged` judges."""
        return msgspec.structs.replace(self.report, damaged=0).exit_code

    def raise_if_damaged(self) -> None:
        """Raises DamagedError while something cannot be read, and IncompleteError for texts that had no room."""
        found, done = self.found, self.done
        if found.lost or found.unread:
            parts = count(found.lost + len(found.unread), "part")
            more = count(self.unopened, "version more", "versions more")
            raise DamagedError(
                f"at least {parts} of {count(len(found.heads), 'version')} cannot be read"
                + (f", and {more} cannot be opened at all" if self.unopened > 0 else ""),
                hint="Restore the listed texts: ipfsmem vault repair"
                if done is None
                else _MERGE_FIRST
                if done.crowded
                else "Run on a device that has everything: ipfsmem sync",
            )
        if done is not None and done.crowded:
            raise IncompleteError(
                f"{count(len(done.crowded), 'text')} did not fit next to the four texts there",
                hint=_MERGE_FIRST,
            )
        if self.unopened > 0:
            raise DamagedError(
                f"{count(self.unopened, 'version')} that other devices published cannot be opened here: a part is at no provider. The next sync of its device uploads it; it is ignored once that device is revoked"
            )


#: For texts that were left out because four are there.
_MERGE_FIRST = "Merge those first (ipfsmem conflicts), then: ipfsmem vault repair"


# -- beginnings, and work that goes on ------------------------------------------------------------------------


class Forked(Answer, frozen=True, kw_only=True):
    """The memory `namespace` that was made with all of `forked`: how many memories it has, and how many of them are others' word."""

    namespace: str
    forked: str
    memories: int
    pending: int


class Begun(Answer, frozen=True, kw_only=True):
    """A memory that was made, or with `restored` brought back: whose it is, and what its owner must keep.

    `recovery_words` are said this once; `keystore` is the wallet's file when a wallet was made.
    """

    SAID_ONCE = ("recovery_words",)

    namespace: str
    mode: str
    restored: bool
    folder: str | None
    device: str
    memories: int
    events: int
    root: str | None
    address: str | None
    vault: str | None
    vault_tag: str | None
    keystore: str | None
    recovery_words: list[str] | None
    warnings: list[str]
    #: Further vaults of the wallet: those that the restored one lists, or its first one where another was created.
    vaults: list[FurtherVault]
    sync: SyncReport | None

    @classmethod
    def of(
        cls,
        status: Status,
        *,
        restored: bool,
        keystore: str | None,
        recovery_words: list[str] | None,
        unlisted: str,
        vaults: list[FurtherVault],
        sync: SyncReport | None,
    ) -> Begun:
        """A memory as its status describes it just after. `unlisted`: why the wallet's first vault does not list this one."""
        vault = status.vault
        warnings = [
            unlisted,
            WORDS_SHOWN_ONCE if recovery_words else "",
            "The keystore file is the wallet. Keep a copy of the file and its passphrase elsewhere."
            if keystore
            else "",
            *status.remarks,
        ]
        return cls(
            namespace=status.namespace,
            mode=status.mode,
            restored=restored,
            folder=status.folder,
            device=status.device,
            memories=status.memories,
            events=status.events,
            root=status.root,
            address=vault.address if vault else None,
            vault=vault.name if vault else None,
            vault_tag=vault.tag if vault else None,
            keystore=keystore,
            recovery_words=recovery_words,
            warnings=[text for text in warnings if text],
            vaults=vaults,
            sync=sync,
        )


class Recovered(Answer, frozen=True, kw_only=True):
    """A memory that came back, the sync that brought it, further vaults of its wallet, and what its owner should know."""

    status: Status
    sync: SyncReport | None
    vaults: list[FurtherVault]
    warnings: list[str]


class Failure(Answer, frozen=True, kw_only=True):
    """An error: its class, what happened, what to do next, and what a command ends with."""

    kind: str
    message: str
    hint: str
    exit_code: int

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """An error of ours as it is; any other is a fault of ipfsmem itself."""
        if isinstance(error, IpfsmemError):
            return cls(kind=error.kind, message=str(error), hint=error.hint, exit_code=error.exit_code)
        text = f"unexpected {type(error).__name__}: {error}"
        return cls(kind="Unexpected", message=text, hint="", exit_code=70)


class Failed(Answer, frozen=True, kw_only=True):
    """What stands on standard error when a command failed."""

    error: Failure


class SyncAttempt(Answer, frozen=True, kw_only=True):
    """One of the syncs that go on: its report or its failure, and in how many seconds the next one comes."""

    at: int
    report: SyncReport | UnsetType = UNSET
    error: Failure | UnsetType = UNSET
    again_in: float | None


class ServingMemory(Answer, frozen=True, kw_only=True):
    """Where a server for MCP or the HTTP API listens on this machine; `token` only where it was made now."""

    SAID_ONCE = ("token",)

    url: str
    token: str | UnsetType = UNSET


class ServingPage(Answer, frozen=True, kw_only=True):
    """Where the page of a memory is on this machine, and the link that opens it once."""

    SAID_ONCE = ("link",)

    url: str
    link: str


class Serving(Answer, frozen=True, kw_only=True):
    """Where a folder is served, whether it may be written with the token, and where the pinning service is."""

    SAID_ONCE = ("token",)

    url: str
    writes: bool
    psa: str | None
    #: A token that was made just now, said this once.
    token: str | UnsetType = UNSET


class FileEdit(Answer, frozen=True, kw_only=True):
    """What `connect` or `disconnect` does to one file of a program: what goes and what comes, with the lines that they begin on."""

    path: str
    made: bool
    removed: bool
    difference: str


class Connected(Answer, frozen=True, kw_only=True):
    """What `connect` or `disconnect` comes to. `connected`: whether the program is, afterwards; `written` False: nothing was
    written, in a dry run or because nothing was to be done."""

    program: str
    connected: bool
    written: bool
    #: Only files that change.
    files: tuple[FileEdit, ...]
    notes: tuple[str, ...]


class Snippet(Answer, frozen=True, kw_only=True):
    """What a file of a program needs, for a person who writes it by hand."""

    path: str
    text: str


class ProgramState(Answer, frozen=True, kw_only=True):
    """One program: whether it is here, and whether it is connected, since when."""

    program: str
    title: str
    here: bool
    connected: bool
    since: int | None
    #: What was written and is gone or says something else now.
    changed: tuple[str, ...]
    files: tuple[str, ...]
    #: Why it cannot be said, or what stands in the way; empty when nothing does.
    problem: str


# -- sessions ------------------------------------------------------------------------------------------------


class Cleared(Answer, frozen=True, kw_only=True):
    """How many memories and sessions were to be forgotten, and the keys and names of those that somebody wrote meanwhile, which stay."""

    memories: int
    sessions: int
    left: list[str]
