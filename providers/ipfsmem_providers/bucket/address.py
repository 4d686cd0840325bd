"""Addresses and credentials of buckets: from a spec and settings to a store of obstore.

    s3://<bucket>[/<prefix>]                           AWS, or the server that AWS_ENDPOINT_URL_S3 names
    https://<host>/<bucket>[/<prefix>]                 any server that speaks S3: R2, B2, MinIO, ...
    https://<bucket>.<host>[/<prefix>]                 the same, at AWS and other vendors whose hosts are known
    gs://<bucket>[/<prefix>]                           Google Cloud Storage
    az://<container>[/<prefix>]                        Azure, with AZURE_STORAGE_ACCOUNT_NAME
    https://<account>.blob.core.windows.net/<container>[/<prefix>]

Credentials are settings named like the environment variables of each vendor's own tools, in lower case, or those
variables, or a profile of the AWS tools (aws_profile.py). No spec, error or provider name contains them. obstore is imported when a store is made.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from ipfsmem.errors import ConfigError
from ipfsmem_providers.bucket.aws_profile import Profile, profile
from ipfsmem_providers.settings import choice, setting

if TYPE_CHECKING:
    from obstore.store import AzureStore, ClientConfig, GCSStore, S3Store

_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,220}")
_PREFIX: Final = re.compile(r"[A-Za-z0-9._-]+")
_EXAMPLE: Final = (
    "For instance bucket:s3://my-bucket/memories, bucket:https://s3.example.com/my-bucket/memories, bucket:gs://my-bucket "
    "or bucket:az://my-container."
)
_AZURE: Final = ".blob.core.windows.net"
#: Host names of S3 servers that contain their region.
_REGION: Final = re.compile(r"s3[.-]([a-z0-9]+(?:-[a-z0-9]+){1,3})\.[a-z0-9.-]+\.[a-z]+")
_R2: Final = ".r2.cloudflarestorage.com"
#: A bucket's own host name, as consoles show it: the bucket, and the server that also has it in the path.
_VIRTUAL: Final = re.compile(
    r"(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])\."
    r"(?P<host>s3(?!-website|-accelerate)(?:[.-](?:dualstack\.)?[a-z0-9-]+)?\.amazonaws\.com(?:\.cn)?"
    r"|[0-9a-f]{32}(?:\.[a-z]+)?\.r2\.cloudflarestorage\.com"
    r"|s3\.[a-z0-9-]+\.backblazeb2\.com"
    r"|s3(?:\.[a-z0-9-]+)?\.wasabisys\.com"
    r"|s3\.[a-z0-9-]+\.scw\.cloud"
    r"|[a-z]{3}\d\.digitaloceanspaces\.com"
    r"|[a-z]{3}\d\.your-objectstorage\.com)"
)
#: Environment variables of credentials: all of one group must be set.
_KEYS: Final = {
    "s3": (
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"),
        ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI",),
    ),
    "gs": (
        ("GOOGLE_APPLICATION_CREDENTIALS",),
        ("GOOGLE_SERVICE_ACCOUNT",),
        ("GOOGLE_SERVICE_ACCOUNT_PATH",),
        ("GOOGLE_SERVICE_ACCOUNT_KEY",),
    ),
    "az": (
        ("AZURE_STORAGE_ACCOUNT_KEY",),
        ("AZURE_STORAGE_SAS_TOKEN",),
        ("AZURE_STORAGE_TOKEN",),
        ("AZURE_STORAGE_CLIENT_ID", "AZURE_STORAGE_CLIENT_SECRET", "AZURE_STORAGE_TENANT_ID"),
        ("AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"),
        ("AZURE_FEDERATED_TOKEN_FILE",),
        ("AZURE_USE_AZURE_CLI",),
    ),
}
#: More variables that the settings may hold.
_MORE: Final = {
    "s3": ("AWS_SESSION_TOKEN", "AWS_REGION"),
    "gs": (),
    "az": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ENDPOINT", "AZURE_STORAGE_USE_EMULATOR"),
}
#: Hosts of AWS, and of the credentials of its machines and containers.
_AWS_HOSTS: Final = (
    "amazonaws.com", "amazonaws.com.cn", "169.254.169.254", "fd00:ec2::254", "169.254.170.2", "169.254.170.23", "fd00:ec2::23",
)  # fmt: skip
_ADC: Final = ".config/gcloud/application_default_credentials.json"


class Address(NamedTuple):
    """A bucket, and the prefix of our keys in it."""

    scheme: str  #: s3, gs or az: the protocol
    bucket: str
    prefix: str  #: without slashes at its ends; "" for the whole bucket
    endpoint: str  #: URL of the server; "" if not in the address

    def __str__(self) -> str:
        path = f"{self.bucket}{self.prefix and '/'}{self.prefix}"
        return f"{self.endpoint}/{path}" if self.endpoint else f"{self.scheme}://{path}"


class Patience(NamedTuple):
    """Time-outs of one request, in seconds."""

    connect: float
    silent: float  #: without a byte
    total: float


def parse(rest: str) -> Address:
    """Return the address in a spec, without `bucket:`. ConfigError for anything else."""
    try:
        url = urlsplit(rest)
        odd = url.username is not None or bool(url.query) or bool(url.fragment) or not url.hostname
        scheme, host, endpoint = url.scheme, url.netloc, ""
        parts = url.path.strip("/").split("/") if url.path.strip("/") else []
        if scheme in ("http", "https"):
            odd = odd or url.port == 0
            endpoint = f"{scheme}://{host.lower()}"
            azure = (url.hostname or "").endswith(_AZURE)
            # Azure may send a token, unlike S3, so only over https; and the account is read from the host's name, so no port.
            odd = odd or (azure and (scheme == "http" or url.port is not None))
            scheme = "az" if azure else "s3"
            virtual = _VIRTUAL.fullmatch(url.hostname or "") if url.port is None else None
            if virtual is not None:
                endpoint, host = f"{url.scheme}://{virtual['host']}", virtual["bucket"]
            else:
                host = parts.pop(0) if parts else ""
    except ValueError:
        scheme, odd = "", True
    if odd or scheme not in _KEYS or not _BUCKET.fullmatch(host):
        raise ConfigError(f"{_shown(rest)} is not the address of a bucket", hint=_EXAMPLE)
    for part in parts:
        if not _PREFIX.fullmatch(part) or part in (".", ".."):
            raise ConfigError(
                f"the part {part!r} of {rest!r} cannot be in the names of objects",
                hint="Use letters, digits, dots, hyphens and underscores between the slashes.",
            )
    return Address(scheme, host, "/".join(parts), endpoint)


def _shown(rest: str) -> str:
    """Return the spec as written, unless it may hold a secret."""
    return "the given address" if any(char in rest for char in "?@#") else repr(rest)


def check_installed() -> None:
    """Raise ConfigError naming the extra when obstore is missing. Imports nothing."""
    if importlib.util.find_spec("obstore") is None:
        raise ConfigError(
            "buckets need obstore, which is not installed", hint="Install it: pip install 'ipfsmem[bucket]'."
        )


def credentials(address: Address, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the keys and endpoints in the settings, by the vendor's variables in lower case; obstore reads
    the environment itself.

    ConfigError when neither has credentials. The metadata service of the vendor's cloud is asked for them
    only when BUCKET_CREDENTIALS is `instance`: on any other machine that request would wait for an answer
    that never comes.
    """
    groups = _KEYS[address.scheme]
    names = {name for group in groups for name in group} | set(_MORE[address.scheme])
    from_settings = {
        name.lower(): text for name in names if (text := str(settings.get(name.lower()) or "").strip())
    }
    account = address.endpoint or setting(settings, "AZURE_STORAGE_ACCOUNT_NAME") or _emulated(settings)
    if address.scheme == "az" and not account:
        raise ConfigError(
            f"the storage account of {address} is not known",
            hint=f"Write bucket:https://<storage account>{_AZURE}/{address.bucket}, or set AZURE_STORAGE_ACCOUNT_NAME.",
        )
    own = choice(settings, "BUCKET_CREDENTIALS", ("environment", "instance")) == "instance"
    if own or _emulated(settings) or any(all(setting(settings, name) for name in group) for group in groups):
        return from_settings
    if address.scheme == "gs" and (Path.home() / _ADC).is_file():
        return from_settings
    if chosen := _profile(address, settings):
        token = {"aws_session_token": chosen.token} if chosen.token else {}
        region = {"aws_region": chosen.region} if chosen.region and not _has_region(settings) else {}
        return {
            **from_settings,
            "aws_access_key_id": chosen.key,
            "aws_secret_access_key": chosen.secret,
            **token,
            **region,
        }
    more = ", or name a profile of ~/.aws with AWS_PROFILE" if address.scheme == "s3" else ""
    raise ConfigError(
        f"no credentials for {address}: {' and '.join(groups[0])} {'are' if len(groups[0]) > 1 else 'is'} not set",
        hint=f"Set them in the environment, by the names of the vendor's own tools{more}. BUCKET_CREDENTIALS=instance asks the cloud "
        "that this machine runs in.",
    )


def _profile(address: Address, settings: Mapping[str, Any]) -> Profile | None:
    """Return the profile of the AWS tools that an S3 bucket uses; None when its credentials are elsewhere."""
    own = choice(settings, "BUCKET_CREDENTIALS", ("environment", "instance")) == "instance"
    has_keys = any(all(setting(settings, name) for name in group) for group in _KEYS["s3"])
    if address.scheme != "s3" or own or has_keys:
        return None
    variables = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    return profile(
        settings, _endpoint(address, settings) or next(filter(None, map(os.environ.get, variables)), "")
    )


def _endpoint(address: Address, settings: Mapping[str, Any]) -> str:
    """Return the server that the address or the settings name; "" for AWS, or the environment's or a profile's."""
    return address.endpoint or setting(settings, "BUCKET_ENDPOINT")


def _has_region(settings: Mapping[str, Any]) -> bool:
    return bool(setting(settings, "AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"))


def server(address: Address, settings: Mapping[str, Any]) -> str:
    """Return the URL of an S3 bucket's server; "" for AWS, or the server that AWS's variables name."""
    if endpoint := _endpoint(address, settings):
        return endpoint
    chosen = _profile(address, settings)
    variable = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return chosen.endpoint if chosen is not None and not variable else ""


def secrets(address: Address, settings: Mapping[str, Any]) -> list[str]:
    """Return texts that no error may repeat: keys, secrets, tokens."""
    names = {name for group in _KEYS[address.scheme] for name in group} | set(_MORE[address.scheme])
    hidden = ("KEY", "SECRET", "TOKEN")
    values = [setting(settings, name) for name in names if any(part in name for part in hidden)]
    of_profile = _profile(address, settings)
    values += [of_profile.key, of_profile.secret, of_profile.token] if of_profile is not None else []
    return [text for text in values if text]


def store(
    address: Address, settings: Mapping[str, Any], patience: Patience, proxy: str = ""
) -> S3Store | GCSStore | AzureStore:
    """Return an obstore store without automatic retries; `proxy`: the URL for its requests.

    ConfigError for settings that obstore refuses.
    """
    from obstore.exceptions import BaseError
    from obstore.store import AzureStore, GCSStore, S3Store

    config: dict[str, Any] = credentials(address, settings)
    client: ClientConfig = {
        # The user chose the URL; S3 keys only sign, and are not sent. obstore follows redirects: https must
        # not lead to http, used by services of this machine and its network.
        "allow_http": not address.endpoint.startswith("https:"),
        "connect_timeout": timedelta(seconds=patience.connect),
        "read_timeout": timedelta(seconds=patience.silent),
        "timeout": timedelta(seconds=patience.total),
        "user_agent": "ipfsmem",
    }
    if proxy:
        # With HTTP/2 the gate could not tell where an answer begins.
        client |= {"proxy_url": proxy, "http1_only": True}
    options: dict[str, Any] = {
        "prefix": address.prefix or None,
        "client_options": client,
        "retry_config": {"max_retries": 0, "retry_timeout": timedelta(seconds=patience.total)},
    }
    try:
        if address.scheme == "s3":
            endpoint = server(address, settings)
            if endpoint:
                config |= {"endpoint": endpoint, "aws_endpoint_url_s3": endpoint}
            region = setting(settings, "BUCKET_REGION") or _region(endpoint)
            if region:
                config.pop("aws_region", None)  # obstore refuses one option under two names
                config["region"] = region
            # Not every S3 server can delete many objects in one request.
            config["disable_bulk_delete"] = True
            return S3Store(address.bucket, config=config, **options)  # type: ignore[arg-type]
        if address.scheme == "gs":
            return GCSStore(address.bucket, config=config, **options)  # type: ignore[arg-type]
        if address.endpoint:
            account = address.endpoint.partition("://")[2].removesuffix(_AZURE)
            config["azure_storage_account_name"] = account
        return AzureStore(address.bucket, config=config, **options)  # type: ignore[arg-type]
    except (BaseError, ValueError, TypeError) as error:
        reason = type(error).__name__
    # Outside `except`: obstore's error may repeat secrets.
    begins = {"s3": "AWS_", "gs": "GOOGLE_", "az": "AZURE_"}[address.scheme]
    raise ConfigError(
        f"the settings for {address} cannot be used ({reason})",
        hint=f"Look at the variables of the environment that begin with {begins}.",
    )


def places(address: Address, settings: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the hosts and ports that requests of an S3 store may reach: the server, AWS, and those in the
    environment; empty for other stores (any).

    obstore follows redirects with the session token, which it sends in an AWS header.
    """
    if address.scheme != "s3":
        return []
    endpoint = server(address, settings)
    endpoints = (text for name, text in os.environ.items() if name.startswith("AWS_"))
    addresses = [(host, port) for host in _AWS_HOSTS for port in (80, 443)]
    for text in (endpoint, *endpoints):
        if text.startswith("http"):
            with contextlib.suppress(ValueError):  # an invalid address leads nowhere
                url = urlsplit(text)
                if url.hostname:
                    addresses.append((url.hostname, url.port or (443 if url.scheme == "https" else 80)))
    return addresses


def _emulated(settings: Mapping[str, Any]) -> bool:
    return setting(settings, "AZURE_STORAGE_USE_EMULATOR").lower() in ("1", "true", "yes", "on")


def _region(endpoint: str) -> str:
    """Return the region in a server's host name; "" without one."""
    host = urlsplit(endpoint).hostname or ""
    if host.endswith(_R2):
        return "auto"
    match = _REGION.fullmatch(host)
    return match[1] if match else ""
