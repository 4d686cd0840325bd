"""The `bucket` provider: object storage of S3's kind (AWS, R2, B2, MinIO, ...), of Google Cloud, or of Azure.

    bucket:s3://<bucket>[/<prefix>]                    AWS
    bucket:https://<host>/<bucket>[/<prefix>]          any server that speaks S3
    bucket:gs://<bucket>[/<prefix>]                    Google Cloud Storage
    bucket:az://<container>[/<prefix>]                 Azure; or https://<account>.blob.core.windows.net/<container>

    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL_S3, ...     as AWS's own tools take them
    GOOGLE_APPLICATION_CREDENTIALS, ...                                                as Google's do
    AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY, ...                         as Azure's do
    BUCKET_ENDPOINT, BUCKET_REGION    a server for s3://, and its region, before what AWS_... say
    BUCKET_CREDENTIALS=instance       ask the machine's own cloud for credentials

Settings of the same names in lower case win over the environment. It needs the extra `bucket` (obstore).

Of the store it needs that a put is whole or not there, that what was put is read and listed from then on (all of these
promise it), and that the key may put, read, list and delete. It asks for no put that depends on what is there: where that
exists it does not hold everywhere. What lies where is in layout.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ipfsmem.errors import ProviderUnavailable
from ipfsmem_providers.bucket.address import check_installed, parse
from ipfsmem_providers.bucket.layout import (
    PACK_BYTES,
    BucketCollector,
    BucketPacks,
    BucketPins,
    BucketRecords,
    BucketShelf,
)
from ipfsmem_providers.bucket.objects import Objects
from ipfsmem_providers.packs.blocking_work import Waiting
from ipfsmem_providers.packs.collection import Collector
from ipfsmem_providers.packs.provider import PackedStore

T = TypeVar("T")


class BucketProvider(PackedStore):
    """A bucket as a provider. See ipfsmem.provider.contract for what the methods promise."""

    pack_bytes = PACK_BYTES

    def __init__(
        self,
        rest: str,
        settings: Mapping[str, Any] | None = None,
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """`rest` is the address. No network is touched. `clock` gives nanoseconds since 1970 UTC. ConfigError for an
        address that is none, without credentials, and without obstore."""
        address = parse(rest)
        check_installed()
        self.objects = Objects(address, settings or {})
        packs, pins, names = (BucketShelf(self.objects, kind, clock) for kind in ("packs", "pins", "names"))
        self._bucket_packs, self._packs_shelf = BucketPacks(packs, clock), packs
        super().__init__(
            self._bucket_packs,
            BucketPins(pins, lambda: clock() // 1_000_000),
            BucketRecords(names),
            # Each request has its bound. This one is for a list of empty pages without end, which obstore passes over by itself.
            Waiting(self.objects.where, self.objects.light),
            clock,
        )
        self.step_seconds = self.objects.heavy

    @property
    def name(self) -> str:
        """`bucket:` and the address."""
        return self.objects.where

    def _checked(self, work: Callable[..., T], *args: object) -> T:
        try:
            return work(*args)
        except FileNotFoundError:  # others took something away at this moment
            raise ProviderUnavailable(f"{self.name} changed while it was read", hint="Sync again.") from None

    def _collector(self, now: int) -> Collector:
        return BucketCollector(self._bucket_packs, self._packs_shelf, now)
