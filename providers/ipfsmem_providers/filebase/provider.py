"""The `filebase` provider: a bucket at Filebase, by S3 or by its node's RPC.

    filebase:<bucket>
    FILEBASE_KEY, FILEBASE_SECRET   the account's access key
    FILEBASE_BUCKET                 the bucket, when it is not named above; an IPFS bucket
    FILEBASE_VIA                    s3 (default; needs the extra `filebase` for its signer), or rpc
    FILEBASE_PARTIAL=1              with rpc: send only blocks that are new since the last publish (see below)
    FILEBASE_ALIAS                  a label at Filebase Names that points at the newest root, for browsing
    FILEBASE_GATEWAY, FILEBASE_GATEWAY_TOKEN   a dedicated gateway; by default https://ipfs.filebase.io
    FILEBASE_PATIENCE               seconds to wait for a CID or a pin (90)
    FILEBASE_S3_URL, FILEBASE_RPC_URL, FILEBASE_API_URL   other hosts; documents name https://s3.filebase.io for S3 too
    gateways (a setting)            more gateways to read from, asked afterwards

Settings of the same names in lower case override the environment.

With S3 a publish is always one CAR with the whole tree: each object is imported separately, and deleting an old
object to unpin it removes blocks that only its CAR had. So a CAR with only new blocks would be unsafe.
With RPC (`dag/import`) blocks go into one node's store, and a root is pinned with everything below it, whatever its
origin. So a CAR with only new blocks works while earlier roots are still pinned there; otherwise the import fails.
Since presence of blocks cannot be queried, this requires FILEBASE_PARTIAL. Both keep our root; an answer with another
root, or none, is an error.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final

from ipfsmem.content.cid import CID
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused
from ipfsmem.provider.contract import Block, Capabilities, Pin, unsupported
from ipfsmem_providers.filebase.rpc import NameLabel, Rpc, bucket_token, names_token
from ipfsmem_providers.filebase.s3 import Bucket
from ipfsmem_providers.filebase.signing import RequestSigner, check_installed
from ipfsmem_providers.gateways.own_gateway import OwnGateway
from ipfsmem_providers.http.body import SpooledCar
from ipfsmem_providers.http.client import Http, urls_of
from ipfsmem_providers.settings import choice, required, seconds, setting
from ipfsmem_providers.small_pins import PREFIX as SMALL_PREFIX
from ipfsmem_providers.small_pins import PinnedSmallObjects

_PATIENCE: Final = 90.0
_TOKEN_HEADER: Final = "x-filebase-gateway-token"  # noqa: S105 - a header's name
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
_ON: Final = frozenset(("1", "true", "yes", "on"))
_log = logging.getLogger("ipfsmem.providers")


class FilebaseProvider(PinnedSmallObjects):
    """A bucket as a provider. See ipfsmem.provider.contract for the methods."""

    def __init__(self, rest: str = "", settings: Mapping[str, Any] | None = None) -> None:
        """`rest` is the bucket. No network access. ConfigError for unusable settings."""
        settings = settings or {}
        hint = "Make an access key at console.filebase.com and set FILEBASE_KEY and FILEBASE_SECRET."
        key, secret = required(settings, "FILEBASE_KEY", hint), required(settings, "FILEBASE_SECRET", hint)
        self._bucket_name = rest.strip() or required(
            settings, "FILEBASE_BUCKET", "For instance filebase:my-memory"
        )
        if not _BUCKET.fullmatch(self._bucket_name):
            raise ConfigError(f"{self._bucket_name!r} is not a bucket name")
        self._via = choice(settings, "FILEBASE_VIA", ("s3", "rpc"))
        if self._via == "s3":
            check_installed()
        s3 = _url(settings, "FILEBASE_S3_URL", "https://s3.filebase.com")
        rpc = _url(settings, "FILEBASE_RPC_URL", "https://rpc.filebase.io")
        api = _url(settings, "FILEBASE_API_URL", "https://api.filebase.io")
        patience = seconds(settings, "FILEBASE_PATIENCE", _PATIENCE)
        secrets = (secret, bucket_token(key, secret, self._bucket_name), names_token(key, secret))
        self._https = [
            Http("filebase", trusted=[s3], secrets=secrets, settings=settings),
            Http(
                "filebase", trusted=[rpc, api], auth=_bearer(secrets[1]), secrets=secrets, settings=settings
            ),
            Http("filebase", trusted=[api], auth=_bearer(secrets[2]), secrets=secrets, settings=settings),
        ]
        self._bucket = Bucket(self._https[0], RequestSigner(key, secret), s3, self._bucket_name, patience)
        self._rpc = Rpc(self._https[1], rpc, api, patience)
        label = setting(settings, "FILEBASE_ALIAS")
        self._alias = NameLabel(self._https[2], api, label) if label else None
        token = setting(settings, "FILEBASE_GATEWAY_TOKEN")
        self._reader = OwnGateway(
            "filebase",
            setting(settings, "FILEBASE_GATEWAY", "https://ipfs.filebase.io"),
            settings.get("gateways") or (),
            headers={_TOKEN_HEADER: token} if token else None,
            settings=settings,
        )
        by_rpc = self._via == "rpc"
        partial = by_rpc and setting(settings, "FILEBASE_PARTIAL").lower() in _ON
        self._capabilities = Capabilities(
            partial_car=partial, blocks=True, dag=True, pin=by_rpc, list=True, unpin=True,
            raw=self._reader.reads_own, listing=not by_rpc, small=True,
        )  # fmt: skip

    @property
    def name(self) -> str:
        """Return `filebase:` and the bucket."""
        return f"filebase:{self._bucket_name}"

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities: with S3 only an upload pins, with RPC a root can be pinned later."""
        return self._capabilities

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Send one CAR. Returns `root`, or raises."""
        with await SpooledCar.write(root, blocks) as car:
            if self._via == "rpc":
                answered = await self._rpc.put(root, car)
            else:
                answered = await self._bucket.put(root, car, name)
        if self._alias is not None:
            try:
                await self._alias.point(answered)
            except ProviderError as error:  # the vault is published without it
                _log.warning("Filebase alias not updated: %s", error)
        return answered

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks from the provider's gateway, then from others."""
        return await self._reader.get_blocks(cids)

    async def read_stored(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks from the provider's gateway alone."""
        return await self._reader.own_blocks(cids)

    async def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Yield checked blocks of a tree."""
        async for block in self._reader.get_dag(root):
            yield block

    async def pin(self, root: CID, name: str) -> Pin:
        """Pin through the Pinning Service API; with S3 only an upload pins."""
        if self._via != "rpc":
            raise ProviderRefused(
                f"{self.name} cannot pin this root: over S3 it pins only what it uploads",
                hint="Set FILEBASE_VIA=rpc to pin roots that are on the network.",
            )
        return await self._rpc.pin(root, name)

    async def pins(self, name: str) -> list[Pin]:
        """Return pins with this name, newest first."""
        pin_list = await (self._rpc.pins(name) if self._via == "rpc" else self._bucket.pins(name))
        self._reader.note_pins(pin.cid for pin in pin_list)
        return pin_list

    def unread(self) -> list[str]:
        """See `Unreading`."""
        return self._rpc.unread() if self._via == "rpc" else self._bucket.gaps.unread()

    async def listing(self) -> dict[str, int]:
        """Return the CARs in the bucket and their sizes, without small objects, which come and go."""
        if self._via == "rpc":
            raise unsupported(self, "list what it stores")
        found = await self._bucket.listing()
        return {key: size for key, size in found.items() if f"/{SMALL_PREFIX}" not in key}

    async def unpin(self, pin: Pin) -> None:
        """Delete the object (S3) or the pin (RPC)."""
        if not pin.handle:
            return
        await (self._rpc.unpin(pin) if self._via == "rpc" else self._bucket.delete(pin.handle))

    async def close(self) -> None:
        """Close connections."""
        for http in self._https:
            await http.close()
        await self._reader.close()


def _url(settings: Mapping[str, Any], name: str, default: str) -> str:
    return urls_of([setting(settings, name, default)], name)[0]


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
