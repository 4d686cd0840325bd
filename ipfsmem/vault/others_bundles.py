"""Read a bundle that someone else published in the clear: by CID, by IPNS name, or from a web server.

Ours of mode `ipfs` and the original's layout (`manifest.json` next to `memory/*.md`) are both a folder of
Markdown files and a timeline. Content from a CID is checked against it; its author is unknown, so it is never
merged automatically. Nothing is written; limits for strangers apply.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote, urlsplit

import msgspec

from ipfsmem import config as configuration
from ipfsmem.bundle.blob import Blob, read_blob
from ipfsmem.bundle.keys import INDEX_FILE, is_scope
from ipfsmem.bundle.memory_file import MAX_FILE
from ipfsmem.canonical import read_json
from ipfsmem.causal.cards import MAX_SCOPES
from ipfsmem.config import expanded
from ipfsmem.content.car import read_car
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.content.fetch import Fetch, drive, drive_async
from ipfsmem.content.limits import BLOCK_MAX, STRANGER_LIMITS
from ipfsmem.content.reader import Reader
from ipfsmem.device.atomic_files import storage_errors
from ipfsmem.device.database import Database
from ipfsmem.errors import (
    ConfigError,
    FormatError,
    IpfsmemError,
    LimitError,
    NotFoundError,
    ProviderError,
    ProviderUnavailable,
    SealError,
    UsageError,
)
from ipfsmem.memories.bundle_tree import MAX_STRANGER_EVENTS, Room, collect_files
from ipfsmem.memories.containers import is_car, is_zip, opened
from ipfsmem.memories.importing import read_path
from ipfsmem.provider.contract import FileReader, Provider, open_provider, open_reader
from ipfsmem.published.ipns_record import IpnsRecord, canonical_name, record_order, verify_record
from ipfsmem.sync.fetch import Fetcher
from ipfsmem.sync.names import target

#: Maximum number of chained names; of files of one web bundle; of concurrent requests.
MAX_HOPS = 8
WEB_FILES = 1_000
_AT_ONCE = 8
_MANIFEST = "manifest.json"
#: Marks an encrypted bundle in the original's manifest.
_ENCRYPTED = "encrypted-ipfs"
_SOURCES = (
    "Give an address (bafy..., ipfs://..., or a name, k51...), the URL of a gateway or of a manifest.json, "
    "a folder of memory files, an export, or a CAR file."
)
_link = re.compile(r"\]\(([^()\s]{1,300}\.md)\)").finditer
_gateway_url = re.compile(r"(https?://[^/?#]+)/(ipfs|ipns)/([^/?#]+)(/[^?#]*)?$").fullmatch
_host_url = re.compile(r"(https?)://([a-z0-9]{46,})\.(ipfs|ipns)\.([^/?#]+)(/[^?#]*)?$").fullmatch


class OthersBundle(msgspec.Struct, frozen=True):
    """A bundle as read: the request, the root that answered (None from a web server), its content."""

    source: str
    root: str | None
    blob: Blob
    #: The other scopes of a root of ours, by their tokens there.
    scopes: dict[str, Blob] = {}


class Source(msgspec.Struct, frozen=True):
    """A parsed source: a CID or IPNS name with a path, or the URL of a folder. `gateway`: the origin of a
    gateway URL."""

    kind: Literal["cid", "name", "url"]
    value: str
    path: tuple[str, ...] = ()
    gateway: str | None = None


def parse_source(text: str) -> Source:
    """Parse a source named by a user or manifest. Raises UsageError.

    `<cid>`, `ipfs://<cid>`, `/ipfs/<cid>`, the same with `ipns` and a `k51...` name, each with a path;
    gateway URLs of both forms; any other http(s) URL is a folder on a web server, or the manifest.json in it.
    """
    source = text.strip()
    if match := _gateway_url(source):
        return _content(match[2], match[3], match[4] or "", match[1])
    if match := _host_url(source):
        return _content(match[3], match[2], match[5] or "", f"{match[1]}://{match[4]}")
    if source.startswith(("http://", "https://")):
        try:
            parts = urlsplit(source)
            usable = bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise UsageError(
                "not a usable URL",
                hint="Give the address of a web server: https://host/path.",
            )
        if parts.query or parts.fragment:
            raise UsageError("the URL of a vault must not contain ? or #")
        base = source.removesuffix(_MANIFEST)
        return Source("url", base if base.endswith("/") else base + "/")
    for space in ("ipfs", "ipns"):
        for start in (f"{space}://", f"/{space}/"):
            if source.startswith(start):
                value, _, path = source[len(start) :].partition("/")
                return _content(space, value, path)
    value, _, path = source.partition("/")
    return _content("ipns" if value.startswith(("k51", "k2")) else "ipfs", value, path)


def _content(space: str, value: str, path: str, gateway: str | None = None) -> Source:
    parts = [unquote(part) for part in path.split("/") if part]
    if parts and parts[-1] == _MANIFEST:
        parts.pop()
    try:
        if space == "ipfs":
            return Source("cid", str(parse_cid(value)), tuple(parts), gateway)
        return Source("name", canonical_name(value), tuple(parts), gateway)
    except IpfsmemError:
        shown = f"{value}/{path}" if path else value
        raise UsageError(
            f"{shown[:80]!r} is not an IPFS address, and no file of that name exists", hint=_SOURCES
        ) from None


async def read_others_bundle(source: str, providers: Sequence[Provider], *, now_ms: int) -> OthersBundle:
    """Read a whole bundle. The source's own gateway is asked last, at a public address only.

    Raises UsageError, ConfigError, NotFoundError, FormatError, LimitError, ProviderError.
    """
    try:
        return await _read_source(source, providers, now_ms)
    except ProviderUnavailable as error:
        # The original hint is about the user's own vault.
        raise ProviderUnavailable(
            str(error), hint="Try again later, or another provider: --provider (in Python: provider=)."
        ) from None


async def _read_source(source: str, providers: Sequence[Provider], now_ms: int) -> OthersBundle:
    try:
        wanted = parse_source(source)
    except UsageError:
        path = expanded(source)
        if not path.exists():
            raise
        return await asyncio.to_thread(read_on_disk, source, path)
    if wanted.kind == "url":
        reader = open_reader(configuration.settings().providers.get("web"))
        try:
            return OthersBundle(source, None, await _read_web(reader, wanted.value))
        finally:
            await reader.close()
    named = [open_provider(f"gateway:{wanted.gateway}", {"public_only": True})] if wanted.gateway else []
    providers = [*providers, *named]
    if not providers:
        raise ConfigError(
            "no provider is set to read it from",
            hint="Name a provider, for instance --provider gateway:https://trustless-gateway.link (in Python: provider=), or a folder that has it.",
        )
    problems: list[str] = []
    try:
        with contextlib.closing(Database(None)) as database:
            fetcher = Fetcher(database, providers)
            if wanted.kind == "name":
                root = await _follow(wanted.value, providers, now_ms, problems)
            else:
                root = parse_cid(wanted.value)
            try:
                reading = _read_root(Reader(STRANGER_LIMITS), root, wanted.path)
                blob, scopes = await drive_async(reading, fetcher.get)
            except NotFoundError as error:
                wrong = next(iter(fetcher.refused.values()), "")
                raise NotFoundError(
                    f"{error}" + (f" ({wrong})" if wrong else ""),
                    hint="Try another provider: --provider gateway:https://... (in Python: provider=), or the folder that has it.",
                ) from None
    finally:
        for provider in named:
            await provider.close()
    all_problems = (
        *problems,
        *blob.problems,
        *(problem for one in scopes.values() for problem in one.problems),
    )
    return OthersBundle(source, str(root), msgspec.structs.replace(blob, problems=all_problems), scopes)


# -- files on this disk --------------------------------------------------------------------------------------------


def read_on_disk(source: str, path: Path) -> OthersBundle:
    """Read a folder or zip of memory files, an export, or a CAR file with a public vault.

    Raises UsageError for a provider's folder, NotFoundError, FormatError, LimitError, StorageError.
    """
    if (path / "packs").is_dir() and (path / "names").is_dir():
        raise UsageError(
            f"{path} is a provider's folder, which may hold many memories",
            hint="Name one: ipfsmem open ADDRESS --provider FOLDER",
        )
    whole = Path(os.path.realpath(path))  # a symlink that the user names is theirs; a pipe is not waited for
    with storage_errors(path, "read"):
        head = b""
        if not path.is_dir():
            with opened(whole) as file:
                head = file.read(16)
    if not is_car(head):
        if head and not is_zip(head) and path.suffix not in (".md", ".json") and head[:1] not in (b"{", b"-"):
            raise FormatError(f"{path} is not a memory file, export, zip or CAR file", hint=_SOURCES)
        parts = read_path(path)
        if not any(part.blob.files for part in parts.values()):
            raise FormatError(f"there are no memories in {path}")
        rest = {scope: part.blob for scope, part in parts.items() if scope}
        return OthersBundle(source, None, parts[""].blob if "" in parts else Blob({}, []), rest)
    with storage_errors(path, "read"), opened(whole) as file:
        car = read_car(file, STRANGER_LIMITS)
        blocks = dict(car)
    if len(car.roots) != 1:
        raise FormatError(f"{path} holds {len(car.roots)} trees; exactly one is supported")
    reading = _read_root(Reader(STRANGER_LIMITS), car.roots[0], ())
    blob, scopes = drive(reading, lambda cids: {cid: blocks[cid] for cid in cids if cid in blocks})
    return OthersBundle(source, str(car.roots[0]), blob, scopes)


# -- names ---------------------------------------------------------------------------------------------------------


async def _follow(name: str, providers: Sequence[Provider], now_ms: int, problems: list[str]) -> CID:
    """Return the root that a name leads to."""
    first = name
    for _ in range(MAX_HOPS):
        record = await _record(name, providers)
        if record.has_expired(now_ms * 1_000_000):
            problems.append(f"the record of {name} has expired: this may be an old state")
        leads = target(record)
        if isinstance(leads, CID):
            return leads
        name = leads
    raise FormatError(f"{first} points only to other names")


async def _record(name: str, providers: Sequence[Provider]) -> IpnsRecord:
    best: IpnsRecord | None = None
    failures: list[ProviderError] = []
    channels = [provider for provider in providers if provider.capabilities.names]
    for provider in channels:
        try:
            encoded = await provider.get_name(name)
            record = verify_record(name, encoded) if encoded is not None else None
        except ProviderError as error:
            failures.append(error)
            continue
        except (FormatError, SealError):
            continue  # a provider can only withhold
        if record is not None and (best is None or record_order(record) > record_order(best)):
            best = record
    if best is not None:
        return best
    if failures and len(failures) == len(channels):
        raise failures[0]
    raise NotFoundError(
        f"no provider knows the name {name}",
        hint="Try another provider, one that keeps names: --provider (in Python: provider=).",
    )


# -- trees ---------------------------------------------------------------------------------------------------------


def _read_root(reader: Reader, root: CID, path: Sequence[str]) -> Fetch[tuple[Blob, dict[str, Blob]]]:
    """Read a bundle, and the other scopes of a root of ours."""
    entry = yield from reader.resolve(root, path)
    if not entry.is_dir:
        return read_blob((yield from reader.read_file(entry.cid))), {}
    folder = entry.cid
    names = {link.name: link.cid for link in (yield from reader.list_directory(folder))}
    if "keyring.json" in names and "memory" not in names:
        raise FormatError(
            f"{root} is an encrypted vault: only its members can read it",
            hint="With its wallet: ipfsmem init --wallet ... With its recovery phrase: ipfsmem recover.",
        )
    problems: list[str] = []
    if _MANIFEST in names:
        manifest = yield from reader.read_file(names[_MANIFEST], max_bytes=BLOCK_MAX)
        _check_manifest(manifest, problems)
    others: dict[str, CID] = {}
    if "memory" in names:
        if "scopes" in names:
            listed = yield from reader.list_directory(names["scopes"])
            others = {link.name: link.cid for link in listed}
            if len(others) > MAX_SCOPES:
                raise LimitError(f"the memory has {len(others):,} scopes, at most {MAX_SCOPES:,} are allowed")
        folder = (yield from reader.resolve(folder, ("memory",))).cid
        names = {link.name: link.cid for link in (yield from reader.list_directory(folder))}
    if not others and not any(_of_a_base(name) for name in names):
        raise FormatError(f"{root} is a folder without memories: no memory/*.md")
    scopes: dict[str, Blob] = {}
    room = Room(MAX_STRANGER_EVENTS)
    for scope, inner in sorted(others.items()):
        if not is_scope(scope):
            problems.append(f"the folder scopes/{ascii(scope)[1:-1]} was left out: it is not a valid scope")
            continue
        base = (yield from reader.resolve(inner, ("memory",))).cid
        inside = {link.name: link.cid for link in (yield from reader.list_directory(base))}
        scopes[scope] = yield from _read_base(reader, inside, f"{scope}/", room)
    blob = yield from _read_base(reader, names, "", room)
    return msgspec.structs.replace(blob, problems=(*problems, *blob.problems)), scopes


def _of_a_base(name: str) -> bool:
    return name.endswith(".md") or name == "timeline"


def _read_base(reader: Reader, names: Mapping[str, CID], where: str, room: Room) -> Fetch[Blob]:
    """Read texts and events of one folder `memory/`, within the `room` its neighbours left; `where` prefixes
    names left out."""
    texts = {name: cid for name, cid in names.items() if name.endswith(".md") and name != INDEX_FILE}
    problems: list[str] = []
    files = yield from _small_files(reader, texts, MAX_FILE, problems)
    days: dict[str, bytes] = {}
    if "timeline" in names:
        listed = yield from reader.list_directory(names["timeline"])
        lines = {link.name: link.cid for link in listed if link.name.endswith(".jsonl")}
        days = yield from _small_files(reader, lines, STRANGER_LIMITS.file_bytes, problems)
    blob = collect_files(sorted(files.items()), sorted(days.items()), problems, room)
    return msgspec.structs.replace(blob, problems=tuple(where + problem for problem in blob.problems))


def _small_files(
    reader: Reader, wanted: Mapping[str, CID], most: int, problems: list[str]
) -> Fetch[dict[str, bytes]]:
    """Read the files that can be part of a bundle and report the others. Missing blocks and exceeded limits
    are errors."""
    plain = {name: cid for name, cid in wanted.items() if _is_raw(cid)}
    blocks = yield from reader.get(plain.values())
    files = {name: blocks[cid] for name, cid in plain.items()}
    for name, cid in wanted.items():
        if name in plain:
            continue
        try:
            files[name] = yield from reader.read_file(cid, max_bytes=most)
        except FormatError as error:
            if isinstance(error, LimitError) and reader.total_bytes > reader.limits.total_bytes:
                raise
            problems.append(f"{name} was left out: {error}")
    for name in [name for name, data in files.items() if len(data) > most]:
        problems.append(f"{name} was left out: it has {len(files.pop(name)):,} bytes")
    return files


def _is_raw(cid: CID) -> bool:
    return cid.codec == 0x55


# -- web servers ---------------------------------------------------------------------------------------------------


class _Memory(msgspec.Struct):
    mode: Any = None


class _Manifest(msgspec.Struct):
    memory: Any = None


def _check_manifest(data: bytes, problems: list[str]) -> None:
    """Refuse an encrypted bundle of the original; ignore anything else in a manifest."""
    try:
        memory = msgspec.convert(read_json(data, type=_Manifest).memory or {}, _Memory)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        problems.append("manifest.json was not read: it is not JSON of that shape")
        return
    if memory.mode == _ENCRYPTED:
        raise FormatError(
            "this memory is encrypted by the program that wrote it, and cannot be read without it"
        )


async def _read_web(reader: FileReader, base: str) -> Blob:
    """Read the original's layout (three.ws): a web server lists nothing, so its MEMORY.md names the files."""
    problems: list[str] = []
    manifest = await reader.get(base + _MANIFEST, max_bytes=BLOCK_MAX)
    if manifest is not None:
        _check_manifest(manifest, problems)
    index = await reader.get(f"{base}memory/{INDEX_FILE}", max_bytes=BLOCK_MAX)
    if index is None:
        raise NotFoundError(f"memory/{INDEX_FILE} is missing next to {base}", hint="Check the URL.")
    names = _linked(index.decode("utf-8", "replace"), problems)
    files: dict[str, bytes] = {}
    total = [len(index)]

    async def one(name: str) -> None:
        try:
            data = await reader.get(f"{base}memory/{quote(name)}", max_bytes=MAX_FILE)
        except ProviderError as error:
            problems.append(f"{name} was left out: {error}")
            return
        if data is None:
            problems.append(f"{name} was left out: it does not exist")
            return
        total[0] += len(data)
        if total[0] > STRANGER_LIMITS.total_bytes:
            raise LimitError(f"the memory at {base} has more than {STRANGER_LIMITS.total_bytes} bytes")
        files[name] = data

    await _each(names, one)
    if names and not files:
        raise NotFoundError(f"none of the {len(names)} files at {base} could be read: {problems[-1]}")
    return collect_files(sorted(files.items()), [], sorted(problems))


async def _each(names: Sequence[str], work: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    queue = iter(names)

    async def worker() -> None:
        for name in queue:
            await work(name)

    workers = [asyncio.ensure_future(worker()) for _ in range(min(_AT_ONCE, len(names)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for each in workers:
            each.cancel()


def _linked(index: str, problems: list[str]) -> list[str]:
    """Return file names linked from an index: no paths, so that nothing outside the folder is requested."""
    names: dict[str, None] = {}
    for match in _link(index):
        name = unquote(match[1]).removeprefix("./")
        if "/" in name or "\\" in name or name.startswith(".") or ":" in name:
            problems.append(f"the link {name[:80]!r} in {INDEX_FILE} was left out: it points elsewhere")
        elif name != INDEX_FILE:
            names[name] = None
    if len(names) > WEB_FILES:
        raise LimitError(
            f"the index names {len(names):,} files, at most {WEB_FILES:,} are read from a web server"
        )
    return list(names)
