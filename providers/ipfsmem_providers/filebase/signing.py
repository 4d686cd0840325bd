"""Signatures of S3 requests (SigV4) by botocore's signer, which is imported when the first request is signed.

Bodies are signed too, because their hash is known before they are sent. This module sends nothing.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from typing import Any, Final

from ipfsmem.errors import ConfigError

EMPTY: Final = hashlib.sha256(b"").hexdigest()
#: The only region of Filebase.
_REGION: Final = "us-east-1"


def check_installed() -> None:
    """Raise ConfigError naming the extra when botocore is missing. Imports nothing."""
    if importlib.util.find_spec("botocore") is None:
        raise ConfigError(
            "signing for S3 needs botocore, which is not installed",
            hint="Install it in the same environment: pip install botocore. FILEBASE_VIA=rpc works without it.",
        )


class RequestSigner:
    """Signs requests with one access key."""

    def __init__(self, key: str, secret: str) -> None:
        """`key`, `secret`: an access key of the account. Imports nothing yet."""
        self._key = key
        self._secret = secret
        self._parts: Any = None

    def headers(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, payload: str = EMPTY
    ) -> dict[str, str]:
        """Return `headers` with the signature added. `url` must be encoded; `payload`: SHA-256 of the body in hex."""
        credentials, auth, request_of = self._load()
        request = request_of(method=method, url=url, headers=dict(headers or {}))
        auth(credentials, payload, _REGION).add_auth(request)
        return {name: str(value) for name, value in request.headers.items()}

    def _load(self) -> Any:
        if self._parts is None:
            from botocore.auth import S3SigV4Auth
            from botocore.awsrequest import AWSRequest
            from botocore.credentials import Credentials

            class Auth(S3SigV4Auth):  # type: ignore[misc]
                def __init__(self, credentials: Any, payload: str, region: str) -> None:
                    super().__init__(credentials, "s3", region)
                    self._given = payload

                def payload(self, request: Any) -> str:
                    return self._given

            self._parts = (Credentials(self._key, self._secret), Auth, AWSRequest)
        return self._parts
