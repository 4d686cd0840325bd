"""What a server said of a name over HTTP: its record, that it has none, or nothing at all, because something else answered.

A portal, a proxy or a wrong address answers too. Who took that for "no such name" would go on with an old state and call it
the newest, so only a server's own word counts as that:

| server | has none of a name | source |
|---|---|---|
| ours (`ipfsmem serve`) | 404, JSON `{"error":{"reason":"NOT_FOUND",...}}` | http/guard.py |
| delegated routing | 200 with text that says "not found"; 404, once said to be a must | IPIP-0513 (17 Dec 2025) and the specification before it |
| boxo 0.43, delegated-ipfs.dev | 200, text, "delegate error: routing: not found" | routing/http/server |
| Helia | 200, text, "Record not found" | its routing server |
| trustless gateway | 404; boxo has 500, "routing: not found", which is said as it stands | gateway/errors.go |

IPIP-0513 takes 200 with any other type for "no record", and servers of before it a 404 of any form. Portals, proxies and web
servers at a wrong address answer just so, each in its own words; so here only an answer that speaks of a record
counts, and a 404 without a word, which the older specification asks for.
"""

from __future__ import annotations

import re
from typing import Final

from ipfsmem_providers.http.answer import Answer
from ipfsmem_providers.http.client import Http

RECORD_TYPE: Final = "application/vnd.ipfs.ipns-record"
#: Statuses that are looked at here; any other is a failure like everywhere.
STATUSES: Final = frozenset((404,))
#: How a server says that it knows no record, whatever its programmers wrote around it. "Not found" alone any web server
#: says, of any address.
_NO_RECORD: Final = re.compile(
    r"\b(?:routing: not found|(?:record|name) (?:was |is )?not found|no (?:such )?record|could not resolve name)\b"
)


def record_in(answer: Answer, http: Http, *, ours: bool = False) -> bytes | None:
    """The record that an answer holds, unchecked; None when that server says that it has none of that name.

    `ours`: it is a server of this program. Raises ProviderUnavailable for everything else.
    """
    if answer.status == 200 and answer.content_type == RECORD_TYPE:
        return answer.body
    if _is_said_by_ours(answer) if ours else _is_said(answer):
        return None
    raise http.unavailable(
        f"{http.service} answered {answer.status} with something that is no record of a name "
        f"({answer.content_type or 'no content type'}): is that address right, or does a portal answer in its place?"
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
