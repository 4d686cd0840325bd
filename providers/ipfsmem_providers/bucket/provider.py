"""The `bucket` provider: S3 (AWS, R2, B2, MinIO, ...), Google Cloud Storage, or Azure.

    bucket:s3://<bucket>[/<prefix>]                    AWS
    bucket:https://<host>/<bucket>[/<prefix>]          any server that speaks S3; also https://<bucket>.<host>
    bucket:gs://<bucket>[/<prefix>]                    Google Cloud Storage
    bucket:az://<container>[/<prefix>]                 Azure; or https://<account>.blob.core.windows.net/<container>

    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE, AWS_ENDPOINT_URL_S3, ...    as in AWS's own tools
    GOOGLE_APPLICATION_CREDENTIALS, ...                                                as in Google's
    AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY, ...                         as in Azure's
    BUCKET_ENDPOINT, BUCKET_REGION    a server for s3://, and its region; they override AWS_...
    BUCKET_CREDENTIALS=instance       ask the metadata service of this machine's cloud for credentials

Settings of the same names in lower case override the environment. It needs the extra `bucket` (obstore).

The store must put an object whole or not at all, and must read and list it from then on; all of these vendors promise that.
The key must be allowed to put, read, list and delete. Conditional puts are not used, as not every server honours
them. Which object has which key is in layout.py.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ipfsmem.errors import ConfigError, ProviderUnavailable
from ipfsmem_providers.bucket.address import Address, check_installed, parse
from ipfsmem_providers.bucket.layout import (
    PACK_BYTES,
    BucketCollector,
    BucketNameRecords,
    BucketObjectStore,
    BucketPacks,
    BucketPins,
    BucketSmallFiles,
)
from ipfsmem_providers.bucket.objects import Objects
from ipfsmem_providers.bucket.prices import idle_cost
from ipfsmem_providers.packs.blocking_work import BlockingWork
from ipfsmem_providers.packs.collection import Collector
from ipfsmem_providers.packs.provider import PackedStore

T = TypeVar("T")


class BucketProvider(PackedStore):
    """A bucket as a provider. See ipfsmem.provider.contract for the methods."""

    pack_bytes = PACK_BYTES

    def __init__(
        self,
        rest: str,
        settings: Mapping[str, Any] | None = None,
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """`rest`: the address. `clock` returns nanoseconds since 1970 UTC. No network access.

        ConfigError for a bad address, and without credentials or obstore.
        """
        address = parse(rest)
        check_installed()
        self.objects = Objects(address, settings or {})
        packs, pins, names, small = (
            BucketObjectStore(self.objects, kind, clock) for kind in ("packs", "pins", "names", "small")
        )
        self._bucket_packs, self._packs_store = BucketPacks(packs, clock), packs
        self._bucket_names = BucketNameRecords(names, clock)
        super().__init__(
            self._bucket_packs,
            BucketPins(pins, lambda: clock() // 1_000_000),
            self._bucket_names,
            BucketSmallFiles(small),
            # Requests have their own time-outs; this bounds an endless list of empty pages, which obstore skips.
            BlockingWork(self.objects.where, self.objects.light),
            clock,
        )
        self.step_seconds = self.objects.heavy

    @staticmethod
    def policy(rest: str) -> dict[str, Any]:
        """Return the access policy with the least rights for an address. No network access and no credentials."""
        return policy(parse(rest))

    def idle_cost(self, syncs: float) -> float:
        """See `Metered`."""
        return idle_cost(self.objects.scheme, self.objects.server, syncs)

    @property
    def name(self) -> str:
        """Return `bucket:` and the address."""
        return self.objects.where

    def begin_snapshot(self, cache: bytes) -> None:
        """See `Snapshots`. The cache has name records."""
        self._bucket_names.load(cache)
        self._packs_store.wants_all = not cache
        self.objects.begin_snapshot()

    def end_snapshot(self) -> bytes:
        """See `Snapshots`."""
        self.objects.drop_snapshot()
        return self._bucket_names.dump()

    async def close(self) -> None:
        """Close connections."""
        self.objects.close()

    def _checked(self, work: Callable[..., T], *args: object) -> T:
        try:
            return work(*args)
        except FileNotFoundError:  # another device has just removed something
            raise ProviderUnavailable(f"{self.name} changed during the read", hint="Sync again.") from None

    def _collector(self, now: int) -> Collector:
        return BucketCollector(self._bucket_packs, self._packs_store, now)


def policy(address: Address) -> dict[str, Any]:
    """Return a policy of AWS IAM for one bucket and prefix; MinIO, Wasabi and others accept it too.

    ConfigError for services that have none.
    """
    host = urlsplit(address.endpoint).hostname or ""
    other = f"{address} is not limited by a policy of AWS IAM"
    if host.endswith(".r2.cloudflarestorage.com"):
        raise ConfigError(
            other,
            hint="Create an API token of R2 with the permission Object Read & Write for this bucket only.",
        )
    if host.endswith(".backblazeb2.com"):
        raise ConfigError(
            other,
            hint="Create an application key of B2 for this bucket and the name prefix, with listFiles, readFiles, writeFiles, "
            "deleteFiles.",
        )
    if address.scheme == "gs":
        raise ConfigError(
            other, hint="Grant the role Storage Object User (roles/storage.objectUser) on this bucket only."
        )
    if address.scheme == "az":
        raise ConfigError(
            other, hint="Create a SAS token for this container only, with read, write, delete and list."
        )
    bucket = f"arn:{_partition(host)}:s3:::{address.bucket}"
    below = f"{address.prefix}/*" if address.prefix else "*"
    listing: dict[str, Any] = {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": [bucket]}
    if address.prefix:
        listing["Condition"] = {"StringLike": {"s3:prefix": [below]}}
    objects = {
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
        "Resource": [f"{bucket}/{below}"],
    }
    return {"Version": "2012-10-17", "Statement": [listing, objects]}


def _partition(host: str) -> str:
    if host.endswith(".amazonaws.com.cn"):
        return "aws-cn"
    return "aws-us-gov" if re.search(r"\bus-gov-[a-z]+-\d\.amazonaws\.com$", host) else "aws"
