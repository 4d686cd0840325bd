"""Named pins at a Kubo node, which has one name per root and no times.

A pin's name is a list of entries, `<name>@<milliseconds>`, separated by commas, so that a root can have
several names, each with its time. Other text in a pin's name is preserved, and a pin to which somebody else gave exactly our name is
valid, without a time. A pin without a name when ours was added keeps an empty entry in front, so that it
remains when that of ipfsmem is removed. js-ipfs stores the same text in a pin's metadata.

Nodes before Kubo 0.35, and js-ipfs, cannot rename a pin: it is removed and re-created. Meanwhile a folder with the root
is pinned (a holder): otherwise a garbage collection or a crash in between would lose the tree and the names that others
gave it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.content.dagpb import BlockLink
from ipfsmem.content.unixfs import Directory, directory
from ipfsmem.errors import FormatError, ProviderError, ProviderRefused
from ipfsmem.provider.contract import Pin
from ipfsmem_providers.http.body import Multipart, SpooledCar
from ipfsmem_providers.http.pages import ENTRIES_MAX, ListGaps, readable
from ipfsmem_providers.http.policy import REST_AFTER_STALL
from ipfsmem_providers.kubo.rpc import CommandFailed, KuboRpc

#: Maximum bytes of a pin name in Kubo.
_NAME_MAX: Final = 255
_LIST_MAX: Final = 256 * 1024 * 1024
#: A node that does not know `stream` lists all pins in one line.
_LINE_MAX: Final = 8 * 1024 * 1024
#: Attempts to name a pin while others do the same.
_TRIES: Final = 3
#: Since this version of Kubo a second `pin/add` renames a pin.
_RENAMES: Final = (0, 35)
_META: Final = "ipfsmem"
#: Prefix of a holder's name; the text of the pin that it replaces follows.
_HOLDS: Final = f"{_META} holds:"
_ENTRY: Final = re.compile(r"([^@,]*)@(\d{1,15})")
_PLAIN: Final = " !\"#$&'()*+-./:;<=>?[\\]^_`{|}~"


class _Line(msgspec.Struct):
    """A line of `pin/ls`: one pin with `stream`, all of them without; nodes that do not know `stream` ignore it."""

    cid: Any = msgspec.field(name="Cid", default="")
    name: Any = msgspec.field(name="Name", default="")
    metadata: Any = msgspec.field(name="Metadata", default=None)
    keys: dict[str, msgspec.Raw] | None = msgspec.field(name="Keys", default=None)

    @property
    def text(self) -> str:
        """Return its name, or the equivalent in js-ipfs."""
        label = self.metadata.get(_META) if isinstance(self.metadata, dict) else None
        return next((one for one in (self.name, label) if one and isinstance(one, str)), "")


def _entries(line: msgspec.Raw, unread: list[str]) -> Iterator[tuple[str, _Line]]:
    """Yield the pins in a line with the texts of their CIDs. Those that cannot be read go to `unread`."""
    for whole in readable([line], _Line, "", (), unread):
        if whole.keys is None:
            yield str(whole.cid), whole
        for text, raw in (whole.keys or {}).items():
            for entry in readable([raw], _Line, "", (), unread):
                yield text, entry


class KuboPins:
    """The recursive pins of one node."""

    def __init__(self, rpc: KuboRpc, patience: float) -> None:
        """`patience`: seconds that a pin may take."""
        self._rpc = rpc
        self._patience = patience
        #: Pins under our names whose CIDs cannot be read.
        self.gaps = ListGaps(rpc.http.redact)
        #: Seconds that listings took which failed, since one succeeded, and until when that is remembered.
        self._wasted = self._wasted_until = 0.0

    async def text_of(self, root: CID) -> str | None:
        """Return the entries of a pinned root, None when it is not pinned."""
        params = {"arg": str(root), "type": "recursive", "names": "true"}
        try:
            answer = await self._rpc.call("pin/ls", params, what="look at a pin")
        except CommandFailed as error:
            if error.absent:
                return None
            raise
        text = "".join(entry.text for _, entry in _entries(answer.decode(msgspec.Raw), []))
        if text or await self._rpc.is_js():
            return text
        # Before 0.37 a question about one pin is answered without its name.
        listed = await self._all("", root)
        if root not in listed:  # a list that broke off says so in a trailer
            raise self._rpc.http.unavailable(f"kubo pins {root}, and its list of pins lacks it")
        return listed[root]

    async def name_at_once(self, root: CID, name: str, now: int) -> None:
        """Pin a root under one more name, without looking whether the node took it: `add` does, afterwards."""
        before = await self.text_of(root)
        if before is None or _time(before, name) is None:
            await self._set(root, _more(root, before, name, now))

    async def add(self, root: CID, name: str, now: int) -> Pin:
        """Return the pin of a root under a name; `now` (milliseconds) is its time if it is made."""
        return (await self._add(root, name, now))[0]

    async def replace(self, root: CID, name: str, now: int, old: Iterable[Pin]) -> Pin:
        """Do `add`, then remove the name from the `old` pins."""
        new, listed = await self._add(root, name, now)
        for pin in old:
            if pin.cid != root:
                await self._take_off(pin, listed.get(pin.cid, ""))
        return new

    async def _add(self, root: CID, name: str, now: int) -> tuple[Pin, dict[CID, str]]:
        """Return the pin, and what the node lists under that name."""
        pin, listed = await self._find(root, name)
        if pin is not None:
            return pin, listed
        before = await self.text_of(root)
        await self._set(root, _more(root, before, name, now))
        made, listed = await self._find(root, name)
        for _ in range(_TRIES):
            before = "" if made is not None else await self.text_of(root)
            if made is not None or before is None:
                break
            # Older nodes keep the first name, js-ipfs the first metadata; or somebody else named it concurrently.
            text = before if _time(before, name) is not None else _more(root, before, name, now)
            if await self._rpc.at_least(*_RENAMES):
                await self._set(root, text)
            else:
                await self._replace(root, text)
            made, listed = await self._find(root, name)
        if made is None and not await self._rpc.is_js() and not await self._rpc.at_least(0, 29):
            raise ProviderRefused(
                f"{await self._rpc.version()} does not keep the names of pins",
                hint="Pins have names since Kubo 0.29. Update the node.",
            )
        if made is None and before == "":
            raise ProviderRefused(
                f"the node at {self._rpc.http.redact(self._rpc.url)} pins {root} without telling the pin's name",
                hint="IPFS Cluster's proxy is such a node. Name the RPC of a Kubo itself, as kubo:http://127.0.0.1:5001.",
            )
        if made is None:
            raise self._rpc.http.unavailable(
                f"kubo: somebody else pinned or unpinned {root} at the same time"
            )
        return made, listed

    async def named(self, name: str) -> list[Pin]:
        """Return pins with exactly this name, newest first."""
        listed: dict[CID, str] = {}
        try:
            await self._all(name, into=listed)
        except ProviderError as error:
            error.pins = _pins(listed, name)
            raise
        return _pins(listed, name)

    async def beginning_with(self, prefix: str) -> list[Pin]:
        """Return the pins under all names that begin with `prefix`, in any order."""
        listed = await self._all(prefix)
        return [
            Pin(root, unquote(name), str(root), int(match[2]))
            for root, text in listed.items()
            for entry in _split(text)
            if (match := _ENTRY.fullmatch(entry)) and (name := match[1]).startswith(_quoted(prefix))
        ]

    async def drop(self, pin: Pin) -> None:
        """Take one name off a root, and the pin with its last name. Not there any more is success."""
        _, listed = await self._find(pin.cid, pin.name)
        await self._take_off(pin, listed.get(pin.cid, ""))

    async def _take_off(self, pin: Pin, text: str) -> None:
        """`text`: the entries of the root as listed."""
        if _time(text, pin.name) is None:
            return
        quoted = _quoted(pin.name)
        rest = [entry for entry in _split(text) if entry != pin.name and _name(entry) != quoted]
        if not rest:
            await self._remove(pin.cid)
            return
        await self._set(pin.cid, _join(rest))
        if _time((await self._all(pin.name)).get(pin.cid, ""), pin.name) is not None:
            await self._replace(pin.cid, _join(rest))

    async def _replace(self, root: CID, text: str) -> None:
        """Change a pin's text by removing and re-creating it, while a holder with the text in its name is pinned."""
        holder = _holder(root)
        label = f"{_HOLDS}{_quoted(text)}"
        with await SpooledCar.write(holder.cid, holder.blocks) as car:
            form = Multipart().file("file", "holder.car", car, car.content_type)
            await self._rpc.call("dag/import", {"pin-roots": "false"}, body=form, what="import a CAR")
        await self._set(holder.cid, label if len(label.encode()) <= _NAME_MAX else "")
        await self._remove(root)
        await self._set(root, text)
        await self._remove(holder.cid)

    async def _put_back(self, root: CID, text: str) -> None:
        """Finish an interrupted `_replace`, with the entries that the root got since."""
        names = {_name(entry) for entry in _split(text)}
        now = await self.text_of(root)
        entries = [entry for entry in _split(now or "") if _name(entry) not in names]
        if now is None:
            await self._set(root, text)
            await self._remove(_holder(root).cid)
        else:
            await self._replace(root, _join([*_split(text), *entries]))

    async def _find(self, root: CID, name: str) -> tuple[Pin | None, dict[CID, str]]:
        """Return the pin of a root under a name, and all that the node lists under that name."""
        holder = _holder(root).cid
        listed = await self._all(name, root, holder)
        if holder in listed:  # an earlier `_replace` was cut off
            await self._put_back(root, unquote(listed[holder].removeprefix(_HOLDS)))
            listed = await self._all(name, root, holder)
        created = _time(listed.get(root, ""), name)
        return (None if created is None else Pin(root, name, str(root), created)), listed

    async def _set(self, root: CID, text: str) -> None:
        """Pin a root with this text as its name. The node fetches missing blocks within the patience."""
        params = {"arg": str(root), "name": text, "timeout": f"{max(1, int(self._patience))}s"}
        if await self._rpc.is_js():
            params["metadata"] = msgspec.json.encode({_META: text}).decode()
        answer = await self._rpc.call("pin/add", params, what="pin", stall=self._patience + 30)
        for line in answer.body.splitlines():
            self._rpc.refuse_failure(line, "pin")

    async def _remove(self, root: CID) -> None:
        try:
            await self._rpc.call("pin/rm", {"arg": str(root)}, what="unpin")
        except CommandFailed as error:
            if not error.absent and await self.text_of(root) is not None:
                raise

    async def _all(self, name: str, *roots: CID, into: dict[CID, str] | None = None) -> dict[CID, str]:
        """Return `_listed`, added to `into` as they are read; with other providers, all failing listings share one time limit: an endless list
        progresses, and each name is looked up in one."""
        texts = {} if into is None else into
        http = self._rpc.http
        most, now = http.listing_seconds, http.timing.now
        if most is None:
            await self._listed(name, roots, texts)
            return texts
        if now() >= self._wasted_until:
            self._wasted = 0.0
        problem: ProviderError = http.unavailable(f"kubo: the list of pins did not end within {most:.0f} s")
        if self._wasted >= most:
            raise problem
        began = now()
        try:
            async with asyncio.timeout(most - self._wasted):
                await self._listed(name, roots, texts)
        except TimeoutError:
            pass
        except ProviderError as error:
            problem = error
        else:
            self._wasted = 0.0
            return texts
        self._wasted += now() - began
        self._wasted_until = now() + REST_AFTER_STALL
        raise problem

    async def _listed(self, name: str, roots: Collection[CID], texts: dict[CID, str]) -> None:
        """Add to `texts` the names of recursive pins that contain `name`, and of `roots`.

        A node that fails in the middle of a stream says so in a trailer, so a list of pins by name is asked for
        whole, and streamed where that fails, or is too long for a line of a node that cannot filter.
        """
        if (
            not name or await self._rpc.is_js()
        ):  # js-ipfs ignores the name, and collects a whole list for long
            unread = await self._read_list(name, roots, texts, stream=True)
            if name:
                self.gaps.note(name, unread)
            return
        lost: ProviderError | None = None
        try:
            unread = await self._read_list(name, roots, texts, stream=False)
        except (CommandFailed, ProviderRefused) as error:
            lost = error
            unread = await self._read_list(name, roots, texts, stream=True)
        if isinstance(lost, CommandFailed):
            raise lost
        self.gaps.note(name, unread, more=lost is not None)

    async def _read_list(
        self, name: str, roots: Collection[CID], texts: dict[CID, str], *, stream: bool
    ) -> list[str]:
        """Do `_listed` with one request, and return the pins under our names that cannot be read.

        Uses no more memory than our own pins need, and a line: a node may have very many others. Nodes that can filter
        omit them.
        """
        params = {"type": "recursive", "names": "true", "stream": "true" if stream else "false"}
        quoted = _quoted(name)
        if name:
            params["name"] = quoted
        unread: list[str] = []
        lines = self._rpc.lines(
            "pin/ls", msgspec.Raw, params, what="list pins", max_bytes=_LIST_MAX, max_line=_LINE_MAX
        )
        async for line in lines:
            for text, entry in _entries(line, unread):
                label = entry.text
                ours = bool(name) and quoted in label
                if not ours and not roots:
                    continue
                try:
                    cid = parse_cid(text)
                except FormatError:
                    if ours and _time(label, name) is not None:
                        unread.append(text)
                    continue
                if ours or cid in roots:
                    texts[cid] = label
            if len(texts) > ENTRIES_MAX:
                raise ProviderRefused(f"kubo lists more than {ENTRIES_MAX:,} pins named {name!r}")
        return unread


def _pins(listed: Mapping[CID, str], name: str) -> list[Pin]:
    """Return the pins with exactly this name, newest first."""
    times = ((root, _time(text, name)) for root, text in listed.items())
    pins = [Pin(root, name, str(root), created) for root, created in times if created is not None]
    return sorted(pins, key=lambda pin: (-pin.created, pin.handle))


def _holder(root: CID) -> Directory:
    """Return a folder with nothing but the root in it: while it is pinned, so is all below the root."""
    return directory([BlockLink("root", root, 0)])


def _quoted(name: str) -> str:
    """Return a name as used in an entry: without separators."""
    return quote(name, safe=_PLAIN)


def _split(text: str) -> list[str]:
    return text.split(",") if text else []


def _join(entries: list[str]) -> str:
    return ",".join(entries)


def _more(root: CID, before: str | None, name: str, now: int) -> str:
    entries = [] if before is None else _split(before) or [""]
    text = _join([*entries, f"{_quoted(name)}@{now}"])
    if len(text.encode()) > _NAME_MAX:
        raise ProviderRefused(f"{root} has too many names at this node to add {name!r}")
    return text


def _name(entry: str) -> str | None:
    match = _ENTRY.fullmatch(entry)
    return match[1] if match else None


def _time(text: str, name: str) -> int | None:
    """Return when a name was given; 0 if by somebody else; None if absent."""
    quoted = _quoted(name)
    for entry in _split(text):
        match = _ENTRY.fullmatch(entry)
        if match and match[1] == quoted:
            return int(match[2])
        if entry == name:
            return 0
    return None
