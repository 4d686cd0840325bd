"""Answers of operations that no declaration has yet: the objects that `--json` prints, field for field.

Each interface encodes them by msgspec, in the order of the fields. Times are milliseconds since 1970 (UTC), durations seconds,
sizes bytes, and hashes 64 hex digits, unless a field says otherwise. An operation that returns a value with bytes or open
files has a class here whose `of` converts that value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from ipfsmem.answer import Answer as Answer
from ipfsmem.bundle.program_events import FurtherVault
from ipfsmem.config import VaultConfig
from ipfsmem.content.cid import ipns_name
from ipfsmem.device.collection import Collected
from ipfsmem.errors import DamagedError, IncompleteError, IpfsmemError
from ipfsmem.files.working_copies import FolderFacts
from ipfsmem.mode import Mode
from ipfsmem.provider.abilities import good_for, limits
from ipfsmem.provider.contract import Capabilities
from ipfsmem.provider.opening import NotOpened
from ipfsmem.published.history import LogEntry
from ipfsmem.sync.collection import Collection
from ipfsmem.sync.deletion_holds import Guarded
from ipfsmem.sync.presence import Presence
from ipfsmem.sync.removals import Removal
from ipfsmem.sync.report import SyncReport
from ipfsmem.sync.retention import Verdict
from ipfsmem.sync.salvage import Salvageable, Salvaged
from ipfsmem.vault.recovery import NewWords, Words
from ipfsmem.wallet.root_keys import RootKeys
from ipfsmem.wording import count


def shown_text(data: bytes | None) -> str | None:
    """Decode a stored text; invalid UTF-8 is replaced. None for None."""
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
    """A memory that differs between two states; None: absent from that state."""

    key: str
    change: Literal["added", "removed", "changed"]
    before: str | None
    after: str | None


class PublishedVersion(Answer, frozen=True, kw_only=True):
    """A published version that this device knows. `c`: its number at its device; `at_ms`: when this device first saw it."""

    root: str
    device: str
    c: int
    at_ms: int
    #: The hash of its commit.
    commit: str
    #: Whether this device published it.
    own: bool
    #: Label of the device.
    label: str

    @classmethod
    def of(cls, entry: LogEntry, labels: dict[str, str]) -> PublishedVersion:
        """Convert a log entry; `labels` maps devices to labels."""
        return cls(**msgspec.structs.asdict(entry), label=labels.get(entry.device, ""))


# -- a memory and its scopes ---------------------------------------------------------------------------------


class ScopeCounts(Answer, frozen=True, kw_only=True):
    """The counts of one scope; "" is the unnamed scope."""

    scope: str
    memories: int
    events: int
    conflicts: int
    not_fetched: int


class Status(Answer, frozen=True, kw_only=True):
    """The state of a vault. Counts include all scopes."""

    vault_name: str
    mode: Mode
    folder: str | None
    device: str
    memories: int
    events: int
    conflicts: int
    not_fetched: int
    #: Whether this device has unpublished changes.
    unpublished: bool
    #: Root CID of the version published last.
    root: str | None
    providers: list[str]
    vault: VaultConfig | None
    members: list[str]
    #: Notices: skipped, missing or unfetched files, late values, pending questions.
    notices: list[str]
    #: Folders of plain files.
    files: list[FolderFacts]
    #: Time of the oldest name record published; None without one.
    names_put: int | None
    #: State of the copy at each provider with published data.
    presence: list[Presence]
    #: Counts of each scope, the unnamed one first; empty if it is the only one.
    scopes: list[ScopeCounts]
    #: Members who were removed, and by whom.
    removed: list[Removal]
    #: End of the time for which this device's keys are unlocked; None: locked, or without a passphrase.
    unlocked_until: int | None
    #: Number of memories hidden on this device.
    hidden: int = 0
    #: Times of the last dream that succeeded and of the last that failed on this device; 0: never.
    dreamed: int = 0
    dream_failed: int = 0
    #: Unpublished data in words: "changes", "a change of the members".
    waiting: list[str] = msgspec.field(default_factory=list)

    @property
    def remarks(self) -> list[str]:
        """Remarks on the folders of plain files."""
        return [text for folder in self.files for text in folder.remarks]


class VaultHere(Answer, frozen=True, kw_only=True):
    """The copy of a vault on this device. `mode` None: unreadable, for the reason in `problem`. `label`: name of this device on other
    devices. `protected`: a passphrase protects its keys; `unlocked_until`: end of the time for which they are unlocked."""

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
    """A vault whose copy on this device was deleted: its state at each provider before, the commands that restore it ("" for none), files
    that remain in its folder, and linked folders."""

    name: str
    remains: list[Presence]
    with_phrase: str
    with_wallet: str
    left: list[str]
    folders: list[str]


class KeysUnlocked(Answer, frozen=True, kw_only=True):
    """This device's keys are unlocked for every program of this user until a time."""

    until: int


class KeysLocked(Answer, frozen=True, kw_only=True):
    """This device's keys are locked. `was_unlocked`: keys were unlocked before. `lost`: folders of vaults that no longer exist and whose
    keys were removed, too."""

    was_unlocked: bool
    lost: list[str]


class ServiceChanged(Answer, frozen=True, kw_only=True):
    """A service that was installed or removed, or with a dry run would be."""

    name: str
    #: The unit file for the service manager, and its text; empty on removal.
    file: str
    text: str
    #: Whether the file was different before.
    changed: bool
    #: Commands that are run, as shell lines.
    commands: list[str]


class ServiceState(Answer, frozen=True, kw_only=True):
    """The state of a service, and the results of its syncs."""

    name: str
    #: The unit file; None: not installed.
    file: str | None
    #: None: unknown, as the service manager could not be asked.
    running: bool | None
    #: Output of the service manager.
    said: str
    #: Time of the last successful sync, time since which syncs fail, and the last error.
    worked: int | None
    failing: int | None
    failure: str


class ProjectFacts(Answer, frozen=True, kw_only=True):
    """A project that was connected, or with a dry run would be."""

    folder: str
    #: The program's own memory folder of the project; empty if the program has none.
    memory_folder: str
    scope: str
    new_scope: bool
    #: Reason for the scope.
    why: str
    #: Number of memory files found.
    files: int
    connected_before: bool


class ProjectLeft(Answer, frozen=True, kw_only=True):
    """A project that was not connected; `error` is empty if it had no memory files."""

    folder: str
    error: str
    hint: str


class ProjectsConnected(Answer, frozen=True, kw_only=True):
    """Projects that were connected and skipped, or with `dry_run` would be."""

    projects: list[ProjectFacts]
    left: list[ProjectLeft]
    dry_run: bool


class ProjectsDisconnected(Answer, frozen=True, kw_only=True):
    """Projects that were disconnected, or with `dry_run` would be."""

    folders: list[str]
    dry_run: bool


# -- in and out ----------------------------------------------------------------------------------------------


class FileWritten(Answer, frozen=True, kw_only=True):
    """A file or folder that was written: its bytes or files, and the root CID of a CAR."""

    path: str
    files: int | UnsetType = UNSET
    root: str | UnsetType = UNSET
    bytes: int | UnsetType = UNSET


class Opened(Answer, frozen=True, kw_only=True):
    """A foreign bundle: its source, its root CID (None for plain files of a web server), and why parts were omitted."""

    source: str
    root: str | None
    problems: list[str]


class BundleWritten(Answer, frozen=True, kw_only=True):
    """A foreign bundle that was written to a file; `root` and `problems` as in `Opened`."""

    path: str
    bytes: int
    root: str | None
    problems: list[str]


class Packed(Answer, frozen=True, kw_only=True):
    """The root CID of a file or folder. `bytes`: size of its files; `car_bytes` None: no CAR was written."""

    cid: str
    files: int
    folders: int
    bytes: int
    car_bytes: int | None


# -- members and keys ----------------------------------------------------------------------------------------


#: Printed with each new recovery phrase.
WORDS_SHOWN_ONCE = "The recovery phrase is shown only once. Whoever has it can read and change this vault."
#: The phrase of `init` cannot be revoked; docs/reference/cli.md explains how to move to another vault.
FIRST_WORDS_STAY = (
    "The recovery phrase of init cannot be revoked and keeps working. If somebody may have it, move to a new vault: ipfsmem init --vault NEW (with a wallet also --key-number 2), then "
    "export and import."
)


class NewRecoveryWords(Answer, frozen=True, kw_only=True):
    """A new recovery phrase, returned only once. `older`: earlier phrases; `revoking`: ids of those that are revoked now."""

    SAID_ONCE = ("recovery_words",)

    recovery_words: list[str]
    id: str
    label: str
    #: Whether it is known to be published at all providers.
    published: bool
    older: list[Words]
    revoking: list[str]
    warnings: list[str]
    sync: SyncReport | None

    @classmethod
    def of(cls, phrase: NewWords, going: Sequence[Words]) -> NewRecoveryWords:
        """Convert the result of `memory.members.new_words`; `going`: older phrases to be revoked."""
        warnings = [
            WORDS_SHOWN_ONCE,
            f"Not published everywhere yet: {phrase.problem}" if phrase.problem else "",
            FIRST_WORDS_STAY if any(one.root for one in phrase.older) else "",
        ]
        return cls(
            recovery_words=phrase.words,
            id=phrase.id,
            label=phrase.label,
            published=not phrase.problem,
            older=phrase.older,
            revoking=[one.id for one in going],
            warnings=[text for text in warnings if text],
            sync=phrase.report,
        )


class KeysProtected(Answer, frozen=True, kw_only=True):
    """Whether a passphrase protects this device's keys."""

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
    #: Tag of the vault in mode `ipfs`.
    plain_vault_tag: str
    ipns_name: str

    @classmethod
    def of(
        cls, root: RootKeys, *, address: str, vault: str, key_number: int, message_sha256: str
    ) -> WalletKeys:
        """Return the public values of root keys."""
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
    """A provider of a vault: its capabilities (in words: `can`, `limits`), the root published there last, and when.

    `problem`: why it cannot be opened, such as a missing token; `capabilities` is empty then.
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
        """Describe an open provider."""
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
        """Describe a provider that cannot be opened."""
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


class Collecting(Answer, frozen=True, kw_only=True):
    """The result of deleting old versions, or with `dry_run` the expected one: a verdict for each root at each provider and on this device,
    bytes freed at providers, failures with the next step, and guarded roots."""

    dry_run: bool
    providers: dict[str, list[Verdict]]
    here: list[Verdict]
    blocks: Collected
    freed: dict[str, int]
    problems: dict[str, str]
    guards: list[Guarded]
    hint: str

    @classmethod
    def of(cls, done: Collection, *, dry_run: bool) -> Collecting:
        """Convert a collection."""
        return cls(dry_run=dry_run, **msgspec.structs.asdict(done))

    def raise_if_incomplete(self) -> None:
        """Raise IncompleteError if a provider failed."""
        if self.problems:
            raise IncompleteError(
                f"some data could not be deleted: {count(len(self.problems), 'provider')} failed",
                hint=self.hint,
            )


class Salvage(Answer, frozen=True, kw_only=True):
    """The readable parts of damaged heads, the restored ones (None in a dry run), and the sync before."""

    dry_run: bool
    found: Salvageable
    done: Salvaged | None
    report: SyncReport = msgspec.field(name="sync")

    @property
    def unopened(self) -> int:
        """Number of damaged versions that cannot be opened, and so are not listed."""
        return self.report.damaged - len(self.found.heads)

    @property
    def exit_code(self) -> int:
        """Exit code of the sync without damage, which `raise_if_damaged` reports."""
        return msgspec.structs.replace(self.report, damaged=0).exit_code

    def raise_if_damaged(self) -> None:
        """Raise DamagedError while parts are unreadable, and IncompleteError for texts that exceed the limit of alternatives."""
        damage, done = self.found, self.done
        if damage.lost or damage.unread:
            parts = count(damage.lost + len(damage.unread), "part")
            more = count(self.unopened, "version more", "versions more")
            raise DamagedError(
                f"at least {parts} of {count(len(damage.heads), 'version')} cannot be read"
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


#: Hint for texts beyond the limit of four alternatives.
_MERGE_FIRST = "Merge those first (ipfsmem conflicts), then: ipfsmem vault repair"


# -- new vaults, and running servers ---------------------------------------------------------------------------


class Forked(Answer, frozen=True, kw_only=True):
    """A vault `vault_name` that was created as a copy of `forked`: its number of memories, and of pending ones."""

    vault_name: str
    forked: str
    memories: int
    pending: int


class Begun(Answer, frozen=True, kw_only=True):
    """A vault that was created or, with `restored`, restored.

    `recovery_words`: the recovery phrase, returned only once; `keystore`: file of a wallet that was created.
    """

    SAID_ONCE = ("recovery_words",)

    vault_name: str
    mode: str
    restored: bool
    folder: str | None
    device: str
    memories: int
    events: int
    root: str | None
    address: str | None
    wallet_vault: str | None
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
        """Describe a vault by its status. `unlisted`: why the wallet's first vault does not list this one."""
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
            vault_name=status.vault_name,
            mode=status.mode,
            restored=restored,
            folder=status.folder,
            device=status.device,
            memories=status.memories,
            events=status.events,
            root=status.root,
            address=vault.address if vault else None,
            wallet_vault=vault.name if vault else None,
            vault_tag=vault.tag if vault else None,
            keystore=keystore,
            recovery_words=recovery_words,
            warnings=[text for text in warnings if text],
            vaults=vaults,
            sync=sync,
        )


class Recovered(Answer, frozen=True, kw_only=True):
    """A vault that was restored, the sync, further vaults of its wallet, and warnings for its owner."""

    status: Status
    sync: SyncReport | None
    vaults: list[FurtherVault]
    warnings: list[str]


class Failure(Answer, frozen=True, kw_only=True):
    """An error: its class, message, next step, and exit code of a command."""

    kind: str
    message: str
    hint: str
    exit_code: int

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Convert an exception; one of another library is a bug of ipfsmem."""
        if isinstance(error, IpfsmemError):
            return cls(kind=error.kind, message=str(error), hint=error.hint, exit_code=error.exit_code)
        text = f"unexpected {type(error).__name__}: {error}"
        return cls(kind="Unexpected", message=text, hint="", exit_code=70)


class Failed(Answer, frozen=True, kw_only=True):
    """The error that a failed command prints on standard error."""

    error: Failure


class SyncAttempt(Answer, frozen=True, kw_only=True):
    """One of the repeated syncs: its report or error, and the seconds until the next one."""

    at: int
    report: SyncReport | UnsetType = UNSET
    error: Failure | UnsetType = UNSET
    again_in: float | None


class ServingMemory(Answer, frozen=True, kw_only=True):
    """The address of an MCP or HTTP server on this machine; `token` only if it was created now."""

    SAID_ONCE = ("token",)

    url: str
    token: str | UnsetType = UNSET


class ServingPage(Answer, frozen=True, kw_only=True):
    """The address of the page on this machine, and a link that opens it once."""

    SAID_ONCE = ("link",)

    url: str
    link: str


class Serving(Answer, frozen=True, kw_only=True):
    """The address of a served folder, whether the token permits writes, and the address of its pinning service."""

    SAID_ONCE = ("token",)

    url: str
    writes: bool
    psa: str | None
    #: A token that was created now, returned only once.
    token: str | UnsetType = UNSET


class FileEdit(Answer, frozen=True, kw_only=True):
    """The change of one file by `connect` or `disconnect`, as a difference with line numbers."""

    path: str
    made: bool
    removed: bool
    difference: str


class Connected(Answer, frozen=True, kw_only=True):
    """The result of `connect` or `disconnect`. `connected`: state of the program afterwards; `written` False: nothing was written, in a
    dry run or without a change."""

    program: str
    connected: bool
    written: bool
    #: Only files that change.
    files: tuple[FileEdit, ...]
    notes: tuple[str, ...]


class Snippet(Answer, frozen=True, kw_only=True):
    """The text for a program's file, to be added by hand."""

    path: str
    text: str


class ProgramState(Answer, frozen=True, kw_only=True):
    """A program: whether it is installed, whether it is connected, and since when."""

    program: str
    title: str
    here: bool
    connected: bool
    since: int | None
    #: Entries that were written and are missing or different now.
    changed: tuple[str, ...]
    files: tuple[str, ...]
    #: Why the state is unknown, or what prevents a connection; empty without a problem.
    problem: str


# -- sessions ------------------------------------------------------------------------------------------------


class Cleared(Answer, frozen=True, kw_only=True):
    """Numbers of memories and sessions that were deleted. `left`: keys and names of those that changed meanwhile and remain."""

    memories: int
    sessions: int
    left: list[str]
