"""Interpret a server's answer to an IPNS lookup: a record, "no record", or an unrelated answer.

Portals, proxies and wrong addresses answer too. If that were "no such name", a device would continue with an old state
as if it were the newest. So only these answers mean "no record":

| server | no record of a name | source |
|---|---|---|
| ours (`ipfsmem serve peer`) | 404, JSON `{"error":{"reason":"NOT_FOUND",...}}` | http/guard.py |
| delegated routing | 200 with text that says "not found"; 404, once mandatory | IPIP-0513 (17 Dec 2025) and the specification before it |
| boxo 0.43, delegated-ipfs.dev | 200, text, "delegate error: routing: not found" | routing/http/server |
| Helia | 200, text, "Record not found" | its routing server |
| trustless gateway | 404; boxo has 500, "routing: not found", reported unchanged | gateway/errors.go |

By IPIP-0513 a 200 with any other content type means "no record", and servers from before it answer any 404. Portals, proxies
and web servers at a wrong address answer the same way. So only an answer whose text mentions a record is accepted, and a 404 without a body, as in the older specification.
"""

from __future__ import annotations

import re
from typing import Final

from ipfsmem_providers.http.answer import Answer
from ipfsmem_providers.http.client import Http

RECORD_TYPE: Final = "application/vnd.ipfs.ipns-record"
#: Statuses besides 2xx that `record_in` reads.
STATUSES: Final = frozenset((404,))
#: Texts of servers without a record. "Not found" alone is not enough: any web server uses it.
_NO_RECORD: Final = re.compile(
    r"\b(?:routing: not found|(?:record|name) (?:was |is )?not found|no (?:such )?record|could not resolve name)\b"
)


def record_in(answer: Answer, http: Http, *, ours: bool = False) -> bytes | None:
    """Return the record in an answer, unchecked; None when the server reports that it has no record of the name.

    `ours`: the server is `ipfsmem serve peer`. Raises ProviderUnavailable for any other answer.
    """
    if answer.status == 200 and answer.content_type == RECORD_TYPE:
        return answer.body
    if _is_said_by_ours(answer) if ours else _is_said(answer):
        return None
    raise http.unavailable(
        f"{http.service} answered {answer.status} with something that is not a name record ({answer.content_type or 'no content type'}): check the address, and whether a captive portal answers"
    )


def _is_said_by_ours(answer: Answer) -> bool:
    return answer.status == 404 and answer.reason.code == "NOT_FOUND"


def _is_said(answer: Answer) -> bool:
    words = answer.text.strip().lower()
    if "html" in answer.content_type or words.startswith("<"):
        return False
    if not words:
        return answer.status == 404
    return _is_said_by_ours(answer) or _NO_RECORD.search(words) is not None
