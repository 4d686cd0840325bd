"""The access policy of AWS IAM with the least rights that a device needs at a bucket."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from ipfsmem.errors import ConfigError
from ipfsmem_providers.bucket.address import Address


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
