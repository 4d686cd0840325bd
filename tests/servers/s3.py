"""A small S3 in memory with real signatures, and only what the tested providers need.

It stores, reads (ranges too), lists and deletes; botocore's own code checks every signature."""

from __future__ import annotations

import hashlib
import re
import time
from datetime import UTC, datetime
from email.utils import format_datetime
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote
from xml.sax.saxutils import escape

from aiohttp import web

from tests.servers.faults import Faults

KEY, SECRET, BUCKET = "FILEBASEKEY123456789", "filebase-secret-of-the-tests", "memories"
#: Maximum clock error of a signer in seconds (S3, "Signature calculations").
_SKEW = 15 * 60
_BEGAN = datetime(2026, 11, 1, tzinfo=UTC).timestamp()


class SmallS3:
    """One account with one bucket."""

    def __init__(self, *, signed: bool = True) -> None:
        """`signed`: every request must be."""
        self.signed = signed
        self.faults = Faults()
        self.objects: dict[str, tuple[bytes, str, dict[str, str]]] = {}  # body, time and metadata by key
        self.page = 1000
        self.lists = 0  # pages of lists so far
        self.sorts = True  # a directory bucket of AWS lists in any order
        self.ahead = 0.0  # seconds by which the service's clock is ahead of this machine's
        self.policy: dict[str, Any] | None = None  # the key's IAM policy; None: all rights
        self._ticks = 0
        #: Seconds since 1970 at which an object is stored.
        self.clock = self._tick

    def _tick(self) -> float:
        self._ticks += 1
        return _BEGAN + self._ticks

    def bucket_app(self) -> web.Application:
        """The application, with S3 alone."""
        app = web.Application(middlewares=[self.faults.middleware], client_max_size=1 << 30)

        async def answer(request: web.Request) -> web.StreamResponse:
            return self.own(request, await request.read())

        app.router.add_route("*", "/{bucket}{key:/?.*}", answer)
        return app

    def own(self, request: web.Request, body: bytes) -> web.Response:
        """A small S3 with real signatures."""
        if self.signed:
            check_signature(request, body, now=time.time() + self.ahead)
        bucket, key = request.match_info["bucket"], unquote(request.match_info["key"].lstrip("/"))
        if bucket != BUCKET:
            raise xml_error(404, "NoSuchBucket", "The specified bucket does not exist")
        if request.method == "GET" and not key:
            self._require("s3:ListBucket", "", request.query.get("prefix"))
            return self._listing(request)
        self._require(f"s3:{request.method.capitalize()}Object", f"/{key}")
        if request.method == "PUT":
            now = datetime.fromtimestamp(self.clock(), UTC)
            about = {k.lower(): v for k, v in request.headers.items() if k.lower().startswith("x-amz-meta-")}
            self.objects[key] = (body, now.isoformat(timespec="milliseconds").replace("+00:00", "Z"), about)
            return web.Response(headers={"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
        if request.method == "DELETE":
            self.objects.pop(key, None)
            return web.Response(status=204)
        if key not in self.objects:
            self._require("s3:ListBucket", "")  # like AWS, which reveals absence only to those that may list
            raise xml_error(404, "NoSuchKey", "The specified key does not exist.")
        data, when, about = self.objects[key]
        headers = {
            **about, "ETag": f'"{hashlib.md5(data).hexdigest()}"', "Accept-Ranges": "bytes",
            "Last-Modified": format_datetime(datetime.fromisoformat(when), usegmt=True),
        }  # fmt: skip
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", ""))
        if asked is None:
            return web.Response(body=b"" if request.method == "HEAD" else data, headers=headers)
        start, end = int(asked[1]), min(int(asked[2]) + 1, len(data))
        if start >= len(data):
            raise xml_error(416, "InvalidRange", "The requested range is not satisfiable")
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
        return web.Response(status=206, body=data[start:end], headers=headers)

    def _require(self, action: str, resource: str, prefix: str | None = None) -> None:
        """Refuse what `policy` does not allow, as IAM reads it: `*` is any text, and a missing prefix is
        like an empty one."""
        if self.policy is None:
            return
        for one in self.policy["Statement"]:
            likes = one.get("Condition", {}).get("StringLike", {}).get("s3:prefix")
            if (
                one["Effect"] == "Allow"
                and action in one["Action"]
                and any(fnmatchcase(f"arn:aws:s3:::{BUCKET}{resource}", like) for like in one["Resource"])
                and (
                    likes is None or (prefix is not None and any(fnmatchcase(prefix, like) for like in likes))
                )
            ):
                return
        raise xml_error(403, "AccessDenied", "Access Denied")

    def _listing(self, request: web.Request) -> web.Response:
        query = request.query
        self.lists += 1
        keys = [key for key in self.objects if key.startswith(query.get("prefix", ""))]
        if self.sorts:
            keys.sort()
        start = int(query.get("continuation-token") or 0)
        part = keys[start : start + self.page]
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{self.objects[key][1]}</LastModified>"
            f"<ETag>&quot;{hashlib.md5(self.objects[key][0]).hexdigest()}&quot;</ETag><Size>{len(self.objects[key][0])}</Size></Contents>"
            for key in part
        )
        more = start + self.page < len(keys)
        token = f"<NextContinuationToken>{start + self.page}</NextContinuationToken>" if more else ""
        text = (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{rows}</ListBucketResult>"
        )
        return web.Response(text=text, content_type="application/xml")


def check_signature(request: web.Request, body: bytes, now: float) -> None:
    """Raise the S3 error for a request that is not signed with the key, by botocore's own code, or not at
    about the time `now` (seconds since 1970)."""
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    given = request.headers.get("Authorization", "")
    if not given.startswith("AWS4-HMAC-SHA256 "):
        raise xml_error(403, "AccessDenied", "Access Denied")
    parts = dict(item.strip().split("=", 1) for item in given.partition(" ")[2].split(","))
    if not parts["Credential"].startswith(f"{KEY}/"):
        raise xml_error(403, "InvalidAccessKeyId", "The key does not exist in our records.")
    declared = request.headers.get("x-amz-content-sha256", "")
    if declared != hashlib.sha256(body).hexdigest():
        raise xml_error(400, "XAmzContentSHA256Mismatch", "The body has another hash")
    signed = {name: request.headers[name] for name in parts["SignedHeaders"].split(";")}
    url = f"http://{request.host}{request.raw_path}"
    copy = AWSRequest(method=request.method, url=url, headers=signed)
    copy.context["timestamp"] = request.headers["X-Amz-Date"]
    signed_at = datetime.strptime(request.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    if abs(signed_at.timestamp() - now) > _SKEW:
        raise xml_error(
            403,
            "RequestTimeTooSkewed",
            "The difference between the request time and the current time is too large.",
        )
    signer = S3SigV4Auth(Credentials(KEY, SECRET), "s3", "us-east-1")
    if (
        signer.signature(signer.string_to_sign(copy, signer.canonical_request(copy)), copy)
        != parts["Signature"]
    ):
        raise xml_error(403, "SignatureDoesNotMatch", "The request signature does not match.")


def xml_error(status: int, code: str, message: str) -> web.HTTPException:
    kinds: dict[int, type[web.HTTPException]] = {
        400: web.HTTPBadRequest, 403: web.HTTPForbidden, 404: web.HTTPNotFound,
        416: web.HTTPRequestRangeNotSatisfiable,
    }  # fmt: skip
    text = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>'
    return kinds[status](text=text, content_type="application/xml")
