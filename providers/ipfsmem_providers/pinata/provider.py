"""The `pinata` provider: Pinata's public IPFS, by its v3 API or the legacy one.

    pinata[:<gateway host>]
    PINATA_JWT             the key, eyJ...; needs the scopes org:files:read and org:files:write (legacy: see below)
    PINATA_GATEWAY         the account's own gateway, such as name.mypinata.cloud; or as above
    PINATA_GATEWAY_TOKEN   for it, when it asks for one
    PINATA_UPLOAD          auto (a CAR, or a folder where the plan takes no CARs), car, folder; auto goes on as the last
                           upload was made, so say car once when the plan was changed for one that takes them. A folder
                           goes by the legacy API where the key is for both, as the documents say, else by v3
    PINATA_API             v3, or legacy for keys of that kind (scopes pinFileToIPFS, pinByHash, pinList, unpin)
    PINATA_PATIENCE        seconds to wait while a CAR or a pin is processed (180)
    PINATA_API_URL, PINATA_UPLOAD_URL      other hosts
    gateways (a setting)   more gateways to read from, asked after the dedicated one

Settings of the same names in lower case override the environment.

A CAR keeps our tree, so any other root is an error. A folder gets Pinata's own, undocumented layout: it returns its own
root, names point at that, and readers accept it (the format allows any layout). Every publish sends the whole tree
once: presence of blocks cannot be queried, and a small CAR probes whether the plan accepts CARs (plan.py). A folder's
contents are compared with what was sent (folder_check.py). One root has one entry with one name; our root is its
keyvalue, so that an upload whose answer was lost is found instead of repeated. Names (IPNS) are not kept here; pins are
found by name on any device.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.errors import ConfigError, FormatError, ProviderRefused
from ipfsmem.provider.contract import Block, Capabilities, Pin, with_pins
from ipfsmem_providers.gateways.own_gateway import OwnGateway
from ipfsmem_providers.http.body import Body, SpooledCar
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.http.pages import ListGaps, Unread
from ipfsmem_providers.http.polling import Polling
from ipfsmem_providers.http.tokens import token_for
from ipfsmem_providers.pinata import api as pinata_api
from ipfsmem_providers.pinata import folder_check
from ipfsmem_providers.pinata import plan as pinata_plan
from ipfsmem_providers.pinata import tus as pinata_tus
from ipfsmem_providers.pinata.api import ONE_REQUEST, Api, ListedFile, NoCars, NoScopes
from ipfsmem_providers.pinata.car_files import CarFiles
from ipfsmem_providers.pinata.legacy import Legacy
from ipfsmem_providers.settings import choice, required, seconds, setting
from ipfsmem_providers.small_pins import PinnedSmallObjects

#: Keyvalue for our root when Pinata made another one.
ROOT_KEY: Final = "ipfsmem_root"
#: Requests per minute of the free plan; overridden by `per_minute` in the settings.
_PER_MINUTE: Final = 60
_PATIENCE: Final = 180.0
_OURS: Final = "ipfsmem-"
_FAILED: Final = frozenset(("expired", "over_free_limit", "over_max_size", "invalid_object", "bad_host_node"))
_RECENT: Final = 64
_TOKEN_HEADER: Final = "x-pinata-gateway-token"  # noqa: S105 - a header's name
_log = logging.getLogger("ipfsmem.providers")


class PinataProvider(PinnedSmallObjects):
    """An account at Pinata as a provider. See ipfsmem.provider.contract for the methods."""

    def __init__(self, rest: str = "", settings: Mapping[str, Any] | None = None) -> None:
        """`rest` is the host of the dedicated gateway. No network access. ConfigError for unusable settings."""
        settings = settings or {}
        jwt = required(
            settings, "PINATA_JWT", "Make a key at app.pinata.cloud, API Keys, and set PINATA_JWT to its JWT."
        )
        self._legacy_mode = choice(settings, "PINATA_API", ("v3", "legacy")) == "legacy"
        self._upload = choice(settings, "PINATA_UPLOAD", ("auto", "car", "folder"))
        if self._legacy_mode and self._upload == "car":
            raise ConfigError(
                "the legacy API accepts no CARs", hint="PINATA_UPLOAD=folder, or PINATA_API=v3."
            )
        api = setting(settings, "PINATA_API_URL", "https://api.pinata.cloud").rstrip("/").removesuffix("/v3")
        uploads = setting(settings, "PINATA_UPLOAD_URL", "https://uploads.pinata.cloud").rstrip("/")
        self._patience = seconds(settings, "PINATA_PATIENCE", _PATIENCE)
        self._http = Http(
            "pinata",
            trusted=[api, uploads],
            auth={"Authorization": f"Bearer {jwt}"},
            settings=settings,
            per_minute=_PER_MINUTE,
        )
        self._api = Api(self._http, api, uploads.removesuffix("/v3"))
        self._legacy = Legacy(self._api, api)

        def url_of(rest: str) -> str:
            gateway = rest.strip() or setting(settings, "PINATA_GATEWAY")
            return f"https://{gateway}" if gateway and "://" not in gateway else gateway

        gateway = url_of(rest)
        token = token_for(
            settings, "PINATA_GATEWAY_TOKEN", gateway, kind="pinata", url_of=url_of,
            url_setting="PINATA_GATEWAY",
        )  # fmt: skip
        self._reader = OwnGateway(
            "pinata",
            gateway,
            settings.get("gateways") or (),
            headers={_TOKEN_HEADER: token} if token else None,
            settings={key: value for key, value in settings.items() if key != "per_minute"},
            rooted=True,  # dedicated gateways are, unless an access control opens them
        )
        #: Whether the plan accepts CARs; None until known.
        self._cars: bool | None = None if self._upload == "auto" else self._upload == "car"
        if self._legacy_mode:
            self._cars = False
        #: Whether folders go by the legacy API; None until that is known.
        self._legacy_folders: bool | None = None
        #: Recent uploads that may not be in the list yet: (root, name) -> pin.
        self._recent: dict[tuple[CID, str], Pin] = {}
        self._gaps = ListGaps(self._http.redact)
        reads = self._reader.reads
        self._capabilities = Capabilities(
            keeps_root=self._upload == "car", blocks=reads, dag=reads, pin=True, list=True, unpin=True,
            raw=self._reader.reads_own, small=reads,
        )  # fmt: skip

    @property
    def name(self) -> str:
        """Return `pinata`; the key determines the account."""
        return "pinata"

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities: keeps our root only with CARs; reads only with a gateway."""
        return self._capabilities

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Upload the tree as a CAR, or as a folder of files if CARs are not accepted."""
        with await SpooledCar.write(root, blocks) as car:
            if self._legacy_mode:
                return await self._put_legacy(root, car, name)
            there = await self._placed(root, name)
            if there is not None:
                answered = await self._settled(there, root, name)
                if answered is not None and await self._is_ours(there, answered, root, car, name):
                    return answered
            if self._cars is None and pinata_plan.SMALL < car.size <= ONE_REQUEST:
                self._cars = await pinata_plan.accepts_cars(
                    self._api
                )  # a larger one is refused before it is sent
            if self._cars is not False:
                try:
                    answered = await self._put_car(root, car, name)
                except NoCars as error:
                    if self._upload == "car":
                        raise
                    self._cars = False
                    _log.info("%s; sending folders from now on", error)
                else:
                    self._cars = True
                    return answered
            return await self._put_folder(root, car, name)

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks from the provider's gateway, then from others."""
        self._can_read()
        return await self._reader.get_blocks(cids)

    async def read_stored(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks from the provider's gateway alone."""
        return await self._reader.own_blocks(cids)

    async def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Yield checked blocks of a tree."""
        self._can_read()
        async for block in self._reader.get_dag(root):
            yield block

    async def pin(self, root: CID, name: str) -> Pin:
        """Return the entry of an upload, else a request to fetch the root from the network, waited for."""
        recent = self._recent.get((root, name))
        if recent is not None:
            return recent
        return await (self._pin_legacy(root, name) if self._legacy_mode else self._pin(root, name))

    async def pins(self, name: str) -> list[Pin]:
        """Return pins with this name, newest first."""
        pin_list: list[Pin] = []
        unread = Unread()
        with with_pins(pin_list):
            if self._legacy_mode:
                async for row in self._legacy.rows(unread, **{"metadata[name]": name}):
                    if row.name == name:
                        at = row.date_pinned
                        pin_list += _pin(row.ipfs_pin_hash, name, row.ipfs_pin_hash, at, unread.entries)
            else:
                async for file in self._api.files(unread, name=name):
                    if file.name == name and not file.pending:
                        pin_list += _pin(file.cid, name, file.id, file.created_at, unread.entries)
        self._gaps.note(name, unread.entries, hidden=unread.hidden)
        pin_list.sort(key=lambda pin: pin.created, reverse=True)
        self._reader.note_pins(pin.cid for pin in pin_list)
        return pin_list

    def unread(self) -> list[str]:
        """See `Unreading`."""
        return self._gaps.unread()

    async def unpin(self, pin: Pin) -> None:
        """Delete the file entry (v3, by its id) or unpin the CID (legacy)."""
        if pin.handle:
            await self._drop(pin.handle)

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()
        await self._reader.close()

    # -- uploads, v3 ---------------------------------------------------------------------------------------------

    async def _placed(self, root: CID, name: str) -> ListedFile | None:
        """Return the entry of an earlier upload of the same tree under the same name, or of this very root."""
        for filters in ({}, {"cidPending": "true"}):
            if filters and self._cars is False:
                break  # only CARs are processed later
            async for file in self._api.files(name=name, **filters):
                if file.name != name:
                    continue
                if file.cid == str(root):  # also a root made by Pinata, adopted from another device
                    return file
                if self._cars is None:  # the newest comes first
                    self._cars = pinata_plan.sent_as_car(file)
                if self._legacy_folders is None:
                    self._legacy_folders = pinata_plan.sent_by_legacy_api(file)
                if (file.keyvalues or {}).get(ROOT_KEY) != str(root):
                    continue
                if self._upload != "car" or file.pending or pinata_plan.sent_as_car(file):
                    return file
        return None

    async def _put_car(self, root: CID, car: SpooledCar, name: str) -> CID:
        keyvalues = {ROOT_KEY: str(root), pinata_plan.UPLOAD_KIND_KEY: pinata_plan.CAR}
        if car.size <= ONE_REQUEST:
            file = await self._api.upload([(f"{name}.car", car)], name, keyvalues, car=True)
        else:
            metadata = {
                "filename": name, "filetype": car.content_type, "network": pinata_api.NETWORK, "car": "true",
                "cid_version": "v1", "keyvalues": msgspec.json.encode(keyvalues).decode(),
            }  # fmt: skip
            await pinata_tus.send(self._api, car, metadata)
            file = await self._listed(root, name)
        answered = await self._settled(file, root, name)
        if answered is None:
            raise NoCars("pinata accepted the CAR and dropped it without an error")
        if answered != root:
            await self._drop(file.id)
            raise ProviderRefused(
                f"pinata answered root {answered} for a CAR whose root is {root}",
                hint="Nothing points to the other root. PINATA_UPLOAD=folder takes Pinata's own layout.",
            )
        return root

    async def _listed(self, root: CID, name: str) -> ListedFile:
        """Return the entry that a finished upload made whose answer names no id."""
        polling = Polling(self._http.timing, self._patience)
        while True:
            file = await self._placed(root, name)
            if file is not None:
                return file
            await self._wait(polling, "pinata does not list the upload yet")

    async def _put_folder(self, root: CID, car: SpooledCar, name: str) -> CID:
        parts = await _parts(root, car, name)
        file = await self._folder_by_legacy(parts, root, name) or await self._folder_by_v3(parts, root, name)
        answered = await self._settled(file, None, name)
        if answered is None:
            raise self._http.unavailable("pinata accepted the folder and dropped it without an error")
        wrong = await folder_check.difference(self._reader, answered, parts, file.number_of_files)
        if wrong:
            await self._drop(file.id)
            raise ProviderRefused(
                f"pinata answered root {answered}, {wrong}", hint=f"Nothing points to it. {folder_check.HINT}"
            )
        return answered

    async def _folder_by_legacy(
        self, parts: list[tuple[str, Body]], root: CID, name: str
    ) -> ListedFile | None:
        """Return the way that the documents name for folders; None for a key that is not for it."""
        if self._legacy_folders is None:
            self._legacy_folders = await self._legacy.takes_key()
        if not self._legacy_folders:
            return None
        keyvalues = {ROOT_KEY: str(root), pinata_plan.UPLOAD_KIND_KEY: pinata_plan.LEGACY_FOLDER}
        try:
            done = await self._legacy.upload(parts, name, keyvalues)
        except NoScopes:
            self._legacy_folders = False
            return None
        if done.id is None:
            return await self._listed(root, name)
        return ListedFile(
            done.id, done.ipfs_hash, done.name, done.created_at, keyvalues, done.number_of_files
        )

    async def _folder_by_v3(self, parts: list[tuple[str, Body]], root: CID, name: str) -> ListedFile:
        size = sum(body.size for _, body in parts)
        if size > ONE_REQUEST:
            raise ProviderRefused(
                f"pinata accepts folders up to {ONE_REQUEST} bytes in one request, this one has {size}",
                hint="A plan that accepts CARs has no such limit, nor does the legacy API (PINATA_API=legacy).",
            )
        keyvalues = {ROOT_KEY: str(root), pinata_plan.UPLOAD_KIND_KEY: pinata_plan.FOLDER}
        try:
            return await self._api.upload(parts, name, keyvalues, car=False)
        except ProviderRefused as error:
            error.hint = error.hint or folder_check.HINT
            raise

    async def _is_ours(self, file: ListedFile, answered: CID, root: CID, car: SpooledCar, name: str) -> bool:
        """Return whether an earlier upload is our root, or with folders probably holds our tree; remove one
        that does not."""
        if answered == root:
            return True
        if self._upload == "car":
            wrong = f"a CAR whose root is {root}"
        else:
            parts = await _parts(root, car, name)
            wrong = await folder_check.difference(self._reader, answered, parts, file.number_of_files)
        if wrong:
            _log.warning("pinata has an earlier upload %s, %s; it is sent again", answered, wrong)
            await self._drop(file.id)
        return not wrong

    async def _drop(self, handle: str) -> None:
        """Remove a pin by its handle: an entry by id, with the legacy API a pin by CID."""
        self._recent = {key: pin for key, pin in self._recent.items() if pin.handle != handle}
        await (self._legacy.unpin(handle) if self._legacy_mode else self._api.delete(handle))

    async def _settled(self, file: ListedFile, root: CID | None, name: str) -> CID | None:
        """Return the CID of an entry once it has one, listed under `name`; None when the entry is gone."""
        polling = Polling(self._http.timing, self._patience)
        while file.pending:
            await self._wait(polling, f"pinata is still processing the upload of {root or name}")
            again = await self._api.file(file.id)
            if again is None:
                return None
            file = again
        if file.name is not None and file.name != name:  # the same content was there under another name
            await self._take_name(file.name, name, str(file.cid), file.id)
        answered = _cid(file.cid)
        self._remember(Pin(answered, name, file.id, pinata_api.milliseconds(file.created_at)))
        return answered

    async def _take_name(self, there: str, name: str, cid: str, file_id: str) -> None:
        """Rename an entry, which has one name, if the user had renamed it; never another vault's."""
        if there.startswith(_OURS):
            raise ProviderRefused(f"pinata keeps one name for a root, and {cid} has the name {there} there")
        if self._legacy_mode:
            await self._legacy.rename(cid, name)
        else:
            await self._api.rename(file_id, name)

    # -- pins ----------------------------------------------------------------------------------------------------

    async def _pin(self, root: CID, name: str) -> Pin:
        is_requested = False
        polling = Polling(self._http.timing, self._patience)
        while True:
            async for file in self._api.files(cid=str(root)):
                if file.cid != str(root):
                    continue
                if file.name != name:
                    await self._take_name(file.name or "", name, str(root), file.id)
                pin = Pin(root, name, file.id, pinata_api.milliseconds(file.created_at))
                self._remember(pin)
                return pin
            jobs = await self._api.jobs(str(root))
            statuses = [job.status or "" for job in jobs]
            if statuses and all(status in _FAILED for status in statuses):
                if is_requested:
                    raise ProviderRefused(f"pinata could not pin {root}: {', '.join(sorted(set(statuses)))}")
                statuses = []
            if not statuses and not is_requested:
                await self._api.pin_by_cid(str(root), name, {ROOT_KEY: str(root)})
                is_requested = True
            await self._wait(polling, f"pinata is still looking for {root}")

    async def _pin_legacy(self, root: CID, name: str) -> Pin:
        is_requested = False
        polling = Polling(self._http.timing, self._patience)
        while True:
            async for row in self._legacy.rows(hashContains=str(root)):
                if row.ipfs_pin_hash != str(root):
                    continue
                if row.name != name:
                    await self._take_name(row.name, name, str(root), "")
                return self._remember_legacy(root, name, row.date_pinned)
            if not is_requested:
                await self._legacy.pin(str(root), name)
                is_requested = True
            await self._wait(polling, f"pinata is still looking for {root}")

    async def _put_legacy(self, root: CID, car: SpooledCar, name: str) -> CID:
        async for row in self._legacy.rows(**{"metadata[name]": name}):
            if row.name == name and str(root) in (row.ipfs_pin_hash, row.keyvalues.get(ROOT_KEY)):
                there = _cid(row.ipfs_pin_hash)
                if there != root:
                    parts = await _parts(root, car, name)
                    if await folder_check.difference(self._reader, there, parts, row.number_of_files):
                        await self._drop(str(there))
                        continue
                self._remember_legacy(there, name, row.date_pinned)
                return there
        parts = await _parts(root, car, name)
        done = await self._legacy.upload(parts, name, {ROOT_KEY: str(root)})
        answered = _cid(done.ipfs_hash)
        wrong = await folder_check.difference(self._reader, answered, parts, done.number_of_files)
        if wrong:
            await self._drop(str(answered))
            raise ProviderRefused(f"pinata answered root {answered}, {wrong}", hint="Nothing points to it.")
        if done.name is not None:  # the same content was there under another name
            if done.name != name:
                await self._take_name(done.name, name, str(answered), "")
            self._remember_legacy(answered, name, done.created_at)
        return answered

    async def _wait(self, polling: Polling, what: str) -> None:
        """Wait until the next look is due. ProviderUnavailable when patience ends."""
        if not await polling.pause():
            raise self._http.unavailable(f"{what} after {polling.waited:.0f} s; it goes on there")

    def _remember(self, pin: Pin) -> None:
        self._recent[pin.cid, pin.name] = pin
        while len(self._recent) > _RECENT:
            self._recent.pop(next(iter(self._recent)))

    def _remember_legacy(self, root: CID, name: str, created: str | None) -> Pin:
        pin = Pin(root, name, str(root), pinata_api.milliseconds(created))
        self._remember(pin)
        return pin

    def _can_read(self) -> None:
        if not self._reader.reads:
            raise ProviderRefused(
                "pinata cannot be read from: no gateway is named",
                hint="pinata:<your gateway>.mypinata.cloud, or PINATA_GATEWAY.",
            )


async def _parts(root: CID, car: SpooledCar, name: str) -> list[tuple[str, Body]]:
    """Return the tree as parts of a folder upload, or one file."""
    files = await (await CarFiles.of(car, root)).files()
    return [(f"{name}/{path}" if path else name, file) for path, file in files]


def _pin(cid: str | None, name: str, handle: str, created: str | None, unread: list[str]) -> list[Pin]:
    """Return one pin, or none for an entry with an invalid CID, which is added to `unread`."""
    try:
        return [Pin(parse_cid(cid or ""), name, handle, pinata_api.milliseconds(created))]
    except FormatError:
        unread.append(handle)
        return []


def _cid(text: str | None) -> CID:
    try:
        return parse_cid(text or "")
    except FormatError as error:
        raise ProviderRefused(f"pinata returned an invalid root CID: {error}") from None
