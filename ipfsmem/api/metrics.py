"""The metrics of the HTTP API, in the text format of OpenMetrics 1.0. Pure; they contain no data of a memory, not even its
name."""

from __future__ import annotations

from collections import Counter
from typing import Final

CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
#: Upper bounds of response times, in seconds.
_BOUNDS: Final = (0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0)


class Metrics:
    """Counters since the server started."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._within: Counter[float] = Counter()
        self._seconds = 0.0
        self._count = 0
        #: Open streams of changes.
        self.listeners = 0

    def add(self, route: str, status: int, seconds: float) -> None:
        """Count one answer of a route."""
        self._requests[route, status] += 1
        self._seconds += seconds
        self._count += 1
        for bound in _BOUNDS:
            if seconds <= bound:
                self._within[bound] += 1

    def text(self, *, memories: int, locked: int) -> str:
        """Return all metrics. `locked` of the served `memories` are locked."""
        lines = [
            "# TYPE ipfsmem_http_requests counter",
            "# HELP ipfsmem_http_requests Requests by route and status.",
            *(
                f'ipfsmem_http_requests_total{{route="{route}",status="{status}"}} {number}'
                for (route, status), number in sorted(self._requests.items())
            ),
            "# TYPE ipfsmem_http_request_seconds histogram",
            "# UNIT ipfsmem_http_request_seconds seconds",
            "# HELP ipfsmem_http_request_seconds Duration of requests, without streams of changes.",
            *(
                f'ipfsmem_http_request_seconds_bucket{{le="{bound}"}} {self._within[bound]}'
                for bound in _BOUNDS
            ),
            f'ipfsmem_http_request_seconds_bucket{{le="+Inf"}} {self._count}',
            f"ipfsmem_http_request_seconds_count {self._count}",
            f"ipfsmem_http_request_seconds_sum {self._seconds:.6f}",
            "# TYPE ipfsmem_listeners gauge",
            "# HELP ipfsmem_listeners Open streams of changes.",
            f"ipfsmem_listeners {self.listeners}",
            "# TYPE ipfsmem_memories gauge",
            "# HELP ipfsmem_memories Vaults that are served.",
            f"ipfsmem_memories {memories}",
            "# TYPE ipfsmem_memories_locked gauge",
            "# HELP ipfsmem_memories_locked Served vaults whose keys are locked.",
            f"ipfsmem_memories_locked {locked}",
            "# EOF",
        ]
        return "\n".join([*lines, ""])
