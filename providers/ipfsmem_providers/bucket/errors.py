"""obstore's errors as ProviderError, in plain language.

obstore reports status and body of an answer only inside its error text, among addresses and more; only the
server's own code and sentence are shown.
"""

from __future__ import annotations

import re
from typing import Final

from ipfsmem.errors import ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem_providers.bucket.gate import DRIPPING, ELSEWHERE, ENDLESS
from ipfsmem_providers.http.errors import PAUSE, Reason, Redactor, is_unavailable, reason_of

_STATUS: Final = re.compile(r"non-2xx status code: (\d{3})[^:\n]{0,60}(?:: )?")
_DEBUG: Final = "\n\nDebug source:"
#: Characters of an error's text that are read.
_READ_MAX: Final = 64 * 1024
_NO_BUCKET: Final = frozenset(
    ("NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted", "NoSuchContainer")
)
_CLOCK: Final = frozenset(("RequestTimeTooSkewed", "RequestExpired"))
_KEY: Final = frozenset(
    (
        "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "TokenRefreshRequired",
        "AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation", "Unauthorized",
    )
)  # fmt: skip
_REGION: Final = frozenset(
    ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "TemporaryRedirect")
)  # fmt: skip
_FULL: Final = frozenset(("QuotaExceeded", "EntityTooLarge", "AccountQuotaExceeded", "XMinioStorageFull"))


class NoAnswer(ProviderUnavailable):
    """The server accepted no connection, or sent nothing or too little, until the time-out."""


class BehindTheEnd(EOFError):
    """The range that was asked for starts at the end of the object or behind it."""


class NotAllowed(ProviderRefused):
    """The key may not do what was asked; or the object does not exist, and the key may not list all of the bucket."""


class NoSuchObject(FileNotFoundError):
    """The object does not exist."""


def provider_error(
    error: BaseException, where: str, what: str, redact: Redactor, *, ranged: bool = False
) -> ProviderError | NoSuchObject | BehindTheEnd:
    """Convert obstore's error. `where`: the bucket. `what`: a verb phrase for the request ("list objects").

    `ranged`: it asked for parts of an object. Raise the result outside `except`: obstore's own error may show
    secrets.
    """
    text = str(error)[:_READ_MAX]
    message, _, debug = text.partition(_DEBUG)
    match = _STATUS.search(message)
    status = int(match[1]) if match else 0
    reason = reason_of(message[match.end() :].encode(), redact) if match else Reason()
    if not match and ("TimedOut" in debug or "kind: Timeout" in debug):
        return NoAnswer(f"{where} does not answer: no data when asked to {what}")
    if type(error).__name__ == "InvalidPathError":
        return ProviderRefused(f"{where} has an object with an invalid name")
    if not match and "Connect" in debug:
        return _no_connection(where)
    if status == 416 and ranged:
        return BehindTheEnd(f"{where} has less of that object")
    if isinstance(error, FileNotFoundError) and (status, reason.code) in ((0, ""), (404, "")):
        return NoSuchObject(f"{where} has no such object")
    if isinstance(error, FileNotFoundError) and not _no_bucket(reason):
        return NoSuchObject(f"{where} has no such object")
    return _failed(status, reason, message, where, what)


def gate_error(problem: str, where: str, what: str) -> ProviderError:
    """Return the error for a request that the gate (gate.py) ended."""
    if problem == ENDLESS:
        return ProviderRefused(f"{where} sent an endless answer when asked to {what}")
    if problem == DRIPPING:
        return NoAnswer(f"{where} does not answer to {what}: its answer comes too slowly")
    if problem == ELSEWHERE:
        return ProviderRefused(
            f"{where} redirects to another host or port when asked to {what}; the redirect was not followed",
            hint="Name the host and port that have the bucket, and its region (BUCKET_REGION).",
        )
    return _no_connection(where)


def _no_connection(where: str) -> ProviderError:
    return ProviderUnavailable(
        f"no connection to {where}",
        hint="Check that this device is online, and that the server's name is correct.",
    )


def _failed(status: int, reason: Reason, message: str, where: str, what: str) -> ProviderError:
    code = f" ({reason})" if str(reason) else f" ({status})" if status else ""
    if _no_bucket(reason) or (status == 404):
        return ProviderRefused(
            f"unknown bucket {where}{code}",
            hint="Create it in the vendor's console, or correct the name of the bucket or its server.",
        )
    if reason.code in _CLOCK or "too skewed" in reason.text.lower():
        return ProviderRefused(
            f"{where} rejects this device's signatures, because its clock is wrong{code}",
            hint="Set this device's clock: it may be off by at most 15 minutes.",
        )
    if reason.code in _REGION or status in (301, 307, 308) or "incorrectly configured region" in message:
        return ProviderRefused(
            f"{where} is in another region, or at another endpoint{code}",
            hint="Set AWS_REGION (or BUCKET_REGION) to the bucket's region, for instance eu-central-1.",
        )
    if reason.code in _KEY or status == 401:
        return ProviderRefused(
            f"{where} rejects the key: it is unknown, of another account, or expired{code}",
            hint="Check the credentials in the environment, and that they are for this endpoint.",
        )
    if reason.code in _FULL:
        return ProviderRefused(
            f"{where} has no space left{code}", hint="Free space there, or raise its quota."
        )
    if status == 403:
        return NotAllowed(
            f"{where} does not allow the key to {what}{code}",
            hint="The key needs to read, write, list and delete objects in this bucket. Without permission to list, some servers answer the same for a missing bucket.",
        )
    if status == 0 or is_unavailable(status):
        failed = ProviderUnavailable(f"{where} failed to {what}{code}")
        failed.again_after = PAUSE if status == 429 or reason.code == "SlowDown" else None
        return failed
    return ProviderRefused(f"{where} refused to {what}{code}")


def _no_bucket(reason: Reason) -> bool:
    return reason.code in _NO_BUCKET or "bucket does not exist" in reason.text
