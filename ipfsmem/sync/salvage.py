"""Salvage what is readable of damaged heads, in this device's name, at the user's request (format section 7.1).

A damaged head has a verified commit but unavailable state nodes; it is never joined. Its readable nodes are
read concurrently, evaluated by `causal.salvage`, and written in one transaction. Leaves below a lost node
have no proof, but their values are signed: they are listed and written only when picked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256

import msgspec

from ipfsmem.bundle.timeline import segment_lines
from ipfsmem.causal import state
from ipfsmem.causal.entries import segment_name
from ipfsmem.causal.salvage import DamagedHead, SalvageChange, is_known_text, rewrite, salvage
from ipfsmem.causal.state import Ctx, counts_of, covers, delete
from ipfsmem.causal.tree import StateTree, diff_steps, parse_node
from ipfsmem.causal.value import Entry, Value, check_entry, decode_entry, verify_value
from ipfsmem.content.cid import CID
from ipfsmem.content.fetch import Fetch
from ipfsmem.content.reader import Reader
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import StateHeader
from ipfsmem.device.writing import sign_entry
from ipfsmem.errors import IpfsmemError, NotFoundError, ProviderError
from ipfsmem.published.root_reader import MAX_NODE
from ipfsmem.published.root_verification import Head
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.identity import append_new_lines
from ipfsmem.sync.join_head import checked, fetch_objects
from ipfsmem.sync.refusal_reasons import reason


class Loose(msgspec.Struct, frozen=True):
    """A signed value in a leaf that no hash from the commit down proves."""

    name: str
    dot: str
    value: Value


class Damaged(msgspec.Struct, frozen=True):
    """The readable part of one damaged head: proved entries that differ from ours, and loose values."""

    head: Head
    part: DamagedHead
    loose: tuple[Loose, ...]


class Salvageable(msgspec.Struct, frozen=True):
    """The preview of a salvage.

    `changes` are proved; `loose` would be written only when picked by name; `unread` are values (entry name,
    dot) with unavailable text; `lost`: number of unreadable parts of the damaged heads.
    """

    heads: tuple[str, ...]
    changes: tuple[SalvageChange, ...]
    loose: tuple[Loose, ...]
    unread: tuple[tuple[str, str], ...]
    lost: int


class Salvaged(msgspec.Struct, frozen=True):
    """The result of a salvage, by entry names: those restored (`back`), those from which replaced values were
    removed (`gone`), and those without room (`crowded`)."""

    back: tuple[str, ...]
    gone: tuple[str, ...]
    crowded: tuple[str, ...]


async def find_salvageable(run: SyncContext, heads: Sequence[Head]) -> Salvageable:
    """Read what is readable of these damaged heads and fetch the texts to be restored; nothing is changed.

    Raises ProviderError if a provider that may have missing parts is down: the result would be unknown.
    """
    with run.replica.transaction():
        run.replica.store.checkpoint(folders=True)
        tree = run.replica.store.tree
    damaged: list[Damaged] = []
    for head in heads:
        try:
            damaged.append(await _read(run, head, tree))
        except ProviderError:
            raise
        except IpfsmemError as error:
            run.notices.say(
                "head-refused",
                f"nothing could be restored of version {head.root}: {reason(error)}",
                f"head {head.root} was not salvaged: {error}",
            )
    store = run.replica.store
    names = {name for one in damaged for name in one.part.differs}
    changes = salvage(
        {name: store.entry(name) for name in names}, store.frame.ctx, [one.part for one in damaged]
    )
    loose = list(dict.fromkeys(value for one in damaged for value in _fresh(run.replica, one)))
    rows = [item for change in changes for item in ((change.name, *pair) for pair in change.taken)]
    rows += [(one.name, one.dot, one.value) for one in loose]
    await fetch_objects(
        [state.EntryDifference(name, {}, {text: value}) for name, text, value in rows],
        run.replica,
        run.fetcher,
        run.progress,
    )
    with run.replica.transaction():
        run.fetcher.keep()
    unread = {(name, text) for name, text, value in rows if not _readable(run.replica, name, value)}
    return Salvageable(
        tuple(str(one.head.root) for one in damaged),
        tuple(_without(change, unread) for change in changes),
        tuple(one for one in loose if (one.name, one.dot) not in unread),
        tuple(sorted(unread)),
        sum(len(one.part.lost) for one in damaged),
    )


def bring_back(replica: Replica, salvageable: Salvageable, picked: Collection[str] = ()) -> Salvaged:
    """Write what was found (inside a transaction), and the loose values under the entry names `picked`.

    A fifth text of this device in one entry is omitted and named: retry it after the others were read and merged.
    """
    loose: dict[str, list[tuple[str, Value]]] = {}
    for one in salvageable.loose:
        if one.name in picked:
            loose.setdefault(one.name, []).append((one.dot, one.value))
    changes = [
        *salvageable.changes,
        *(SalvageChange(name, tuple(values), ()) for name, values in loose.items()),
    ]
    back: set[str] = set()
    gone: set[str] = set()
    crowded: set[str] = set()
    lines: dict[str, list[tuple[str, bytes]]] = {}
    for change in changes:
        if segment_name(change.name) is not None:
            lines[change.name] = _segment(replica, change, gone)
        else:
            _entry(replica, change, back, gone, crowded)
    fresh = set(append_new_lines(replica, [line for some in lines.values() for line in some]))
    back.update(name for name, some in lines.items() if not fresh.isdisjoint(some))
    return Salvaged(tuple(sorted(back)), tuple(sorted(gone)), tuple(sorted(crowded)))


def _entry(
    replica: Replica, change: SalvageChange, back: set[str], gone: set[str], crowded: set[str]
) -> None:
    store, dev = replica.store, replica.device.id
    before, frame = store.entry(change.name), store.frame
    rewritten = rewrite(before, change, dev, frame.ctx.get(dev, 0), replica.is_mine)
    if rewritten.crowded:
        crowded.add(change.name)
    if rewritten.back:
        back.add(change.name)
    if rewritten.entry == before:
        return
    if not before.keys() <= rewritten.entry.keys():
        gone.add(change.name)
    ctx = {**frame.ctx, dev: rewritten.n} if rewritten.n else frame.ctx
    signed = sign_entry(replica, change.name, rewritten.entry)
    store.apply({change.name: signed}, StateHeader(ctx, frame.seen, frame.hlc))


def _segment(replica: Replica, change: SalvageChange, gone: set[str]) -> list[tuple[str, bytes]]:
    """Return the missing lines of a segment with their scopes, for our own segments: only its device may
    write a segment."""
    store = replica.store
    parsed = segment_name(change.name)
    assert parsed is not None
    if change.taken:
        return [
            (parsed.scope, line)
            for _, value in change.taken
            for line in segment_lines(store.body(change.name, value) or b"")
        ]
    # Trimmed: nothing replaces it.
    store.apply({change.name: delete(store.entry(change.name), change.gone)}, store.frame)
    gone.add(change.name)
    return []


def _without(change: SalvageChange, unread: Collection[tuple[str, str]]) -> SalvageChange:
    pairs = tuple(item for item in change.taken if (change.name, item[0]) not in unread)
    # The replacement of our text is lost: then ours is the best available.
    return SalvageChange(change.name, pairs, change.gone if len(pairs) == len(change.taken) else ())


def _readable(replica: Replica, name: str, value: Value) -> bool:
    return value.body is None or replica.store.body(name, value) is not None


def _fresh(replica: Replica, one: Damaged) -> list[Loose]:
    store = replica.store
    ctx: Ctx = store.frame.ctx
    return [
        value
        for value in one.loose
        if not covers(ctx, value.dot) and not is_known_text(value.value, store.entry(value.name).values())
    ]


# -- reading -------------------------------------------------------------------------------------------------------


async def _read(run: SyncContext, head: Head, tree: StateTree) -> Damaged:
    lost: list[str] = []
    commit = head.commit.commit
    folders: dict[str, CID] = {} if head.state is None else {"": head.state}
    steps = diff_steps(tree, bytes.fromhex(commit.state), lost)
    try:
        prefixes = [prefix for prefix, _ in next(steps)]
        while True:
            run.progress("reading the damaged versions", len(folders), 0)
            texts = await _nodes(run, head, folders, prefixes)
            prefixes = [prefix for prefix, _ in steps.send([texts.get(prefix) for prefix in prefixes])]
    except StopIteration as end:
        differences = end.value
    changes = checked(differences, head, run.replica, run.progress)
    part = DamagedHead(
        counts_of(head.ctx), {change.name: change.theirs for change in changes}, tuple(sorted(lost))
    )
    loose: list[Loose] = []
    todo = [prefix + digit for prefix in lost if prefix in folders for digit in "0123456789abcdef"]
    while todo:
        texts = await _nodes(run, head, folders, todo)
        for prefix, text in texts.items():
            loose += _signed(run.replica, prefix, text)
        todo = [prefix + digit for prefix in todo if prefix in folders for digit in "0123456789abcdef"]
    return Damaged(head, part, tuple(loose))


async def _nodes(
    run: SyncContext, head: Head, folders: dict[str, CID], prefixes: Sequence[str]
) -> Mapping[str, bytes]:
    """Return the readable ones of these nodes, opened; add their children's folders to `folders`."""
    codec, ek = run.replica.codec, head.commit.commit.ek
    reads = {
        prefix: _read_node(Reader(), folders[prefix[:-1]], prefix, codec.extension)
        for prefix in prefixes
        if prefix[:-1] in folders
    }
    opened: dict[str, bytes] = {}

    def use(prefix: str, read: tuple[bytes | None, CID | None]) -> IpfsmemError | None:
        stored, folder = read
        if folder is not None and prefix:
            folders[prefix] = folder
        if stored is None:
            return NotFoundError(f"state node {prefix or 'top'} is missing")
        try:
            opened[prefix] = codec.open_node(prefix, ek, stored)
        except IpfsmemError as error:
            return error
        return None

    for error in (await run.fetcher.side_by_side(reads, use)).values():
        if isinstance(error, ProviderError):
            raise error
    return opened


def _read_node(
    reader: Reader, folder: CID, prefix: str, extension: str
) -> Fetch[tuple[bytes | None, CID | None]]:
    """Return the stored bytes of one node, None if absent, and its children's folder."""
    name = prefix[-1] if prefix else "top"
    links = {link.name: link.cid for link in (yield from reader.list_directory(folder))}
    below = links.get(name) if prefix else folder
    file = links.get(name + extension)
    if file is None:
        return None, below
    answer = yield [file]
    data = answer.get(file)
    if data is None:
        return None, below
    stored = yield from reader.read_file(file, max_bytes=MAX_NODE)
    return stored, below


def _signed(replica: Replica, prefix: str, text: bytes) -> list[Loose]:
    """Return the signed values of an unproved leaf."""
    assert replica.ring is not None and replica.vault_tag is not None
    keys, vault = replica.ring.view.keys_of, replica.vault_tag
    try:
        node = parse_node(prefix, text, sha256(text).digest())
    except IpfsmemError:
        return []
    signed: list[Loose] = []
    for name, raw in (node.entries or {}).items():
        try:
            entry: Entry = decode_entry(name, raw)
            check_entry(name, entry)
        except IpfsmemError:
            continue
        signed += [
            Loose(name, text_dot, value)
            for text_dot, value in entry.items()
            if any(verify_value(key, name, text_dot, value, vault) for key in keys.get(text_dot[:16], ()))
        ]
    return signed
