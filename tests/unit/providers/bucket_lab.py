"""A bucket at the tests' small S3 or at a running server, opened as another device would."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from ipfsmem_providers.bucket import BucketProvider

from tests.servers import s3
from tests.servers.threaded import serve


class Bucket:
    """One bucket at an S3 server."""

    def __init__(self, url: str, server: Any, prefix: str = "mem") -> None:
        self.url, self.server, self.prefix = url, server, prefix
        self.settings: dict[str, Any] = {
            "aws_access_key_id": s3.KEY,
            "aws_secret_access_key": s3.SECRET,
        }

    @property
    def spec(self) -> str:
        """The address after the kind."""
        return f"{self.url}/{s3.BUCKET}/{self.prefix}"

    def open(self, *, clock: Callable[[], int] = time.time_ns, **settings: Any) -> BucketProvider:
        """Open the provider again."""
        return BucketProvider(self.spec, {**self.settings, **settings}, clock=clock)


@contextlib.contextmanager
def bucket() -> Iterator[Bucket]:
    """A new bucket at the small S3."""
    server = s3.SmallS3()
    with serve(server.bucket_app) as url:
        yield Bucket(url, server)
