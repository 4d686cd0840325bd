"""Every provider with a server that can run here, and the faults of that server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from aiohttp import web
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.gateways import Gateways
from ipfsmem_providers.http.policy import Retry, Timeouts
from ipfsmem_providers.kubo import KuboProvider
from ipfsmem_providers.peer import PeerProvider
from ipfsmem_providers.pinning_service import PinningServiceProvider
from ipfsmem_providers.routing import RoutingProvider

from ipfsmem.http import blocks as serving
from ipfsmem.http import psa
from ipfsmem.provider.contract import Provider
from ipfsmem.testing import SimCloud, SimProvider
from tests.servers.faults import Faults
from tests.servers.kubo import FakeKubo
from tests.servers.threaded import serve
from tests.support.effort import THOROUGH, each_once
from tests.unit.providers.bucket_lab import bucket
from tests.unit.providers.dav_lab import dav
from tests.unit.providers.git_lab import Repository, git_over_http
from tests.unit.providers.rclone_lab import rclone_over_dav
from tests.unit.providers.services_lab import account
from tests.unit.providers.sftp_lab import SSH_ILLNESSES, sftp, ssh_cut, ssh_never

TOKEN = "a token of these tests"
#: A hundredth of the production values: 60 s of silence, 5 s of a late answer.
LIMITS = Timeouts(stall=0.6, little=0.05, connect=0.5)
#: Maximum cost of one faulty provider for a sync, in these seconds: its one timeout, late answers until it is
#: skipped, and the work of the sync on a slow machine.
BOUND = 4.0
KINDS = (
    "directory", "bucket", "peer", "kubo", "kubo-old", "pinata-car", "pinata-free", "pinata-legacy", "filebase-s3", "filebase-rpc",
    "pinning_service", "gateway", "routing", "git", "git-http", "webdav", "sftp",
    "rclone",
)  # fmt: skip
OVER_HTTP = tuple(kind for kind in KINDS if kind not in ("directory", "git", "sftp"))


class Bench:
    """One provider's server; `open` opens the provider again, as another device would."""

    def __init__(
        self,
        kind: str,
        faults: Any,
        make: Callable[[dict[str, Any]], Provider],
        store: Provider | None = None,
    ) -> None:
        """`faults`: what an illness changes. `store`: where the server stores data, if the provider
        accepts no uploads or no names."""
        self.kind = kind
        self.faults = faults
        self._make = make
        #: Timeout of the provider: as in production, until the test marks it as faulty.
        self.limits = Timeouts()
        self._store = store

    def filler(self) -> Provider:
        """What fills the server: the provider, or the store behind it."""
        return self._store or self.open()

    def open(self, **more: Any) -> Provider:
        """Open the provider again."""
        settings = {
            "retry": Retry(attempts=2, first=0.01, most=0.02, patience=0.5),
            "timeouts": self.limits,
            **more,
        }
        return self._make(settings)


@contextlib.contextmanager
def bench(kind: str, folder: Path) -> Iterator[Bench]:
    """One of KINDS without a fault."""
    faults = Faults()

    def sickly(app: web.Application) -> web.Application:
        app.middlewares.insert(0, faults.middleware)
        return app

    if kind == "directory":
        yield Bench(kind, faults, lambda _: DirectoryProvider(folder, {"create": True}))
    elif kind == "git":
        yield Bench(kind, faults, Repository(folder).open)
    elif kind == "git-http":
        with git_over_http(folder, [faults.middleware]) as repository:
            yield Bench(kind, faults, repository.open)
    elif kind == "webdav":
        with dav(folder) as folder_there:
            yield Bench(kind, folder_there.server.faults, folder_there.open)
    elif kind == "rclone":
        with rclone_over_dav(folder) as (at_remote, behind_it):
            yield Bench(kind, behind_it.server.faults, at_remote.open)
    elif kind == "sftp":
        with sftp(folder) as at_server:
            yield Bench(kind, at_server.connection, at_server.open)
    elif kind == "bucket":
        with bucket() as at:
            yield Bench(kind, at.server.faults, lambda settings: at.open(**settings))
    elif kind in ("peer", "gateway", "routing"):
        store = DirectoryProvider(folder, {"create": True})
        with serve(lambda: sickly(serving.app(store, token=TOKEN))) as url:
            makers: dict[str, Callable[[dict[str, Any]], Provider]] = {
                "peer": lambda settings: PeerProvider(url, {"peer_token": TOKEN, **settings}),
                "gateway": lambda settings: Gateways(url, settings),
                "routing": lambda settings: RoutingProvider(url, settings),
            }
            yield Bench(kind, faults, makers[kind], None if kind == "peer" else store)
    elif kind in ("kubo", "kubo-old"):
        kubo = FakeKubo("0.43.1" if kind == "kubo" else "0.30.0")
        with serve(kubo.app) as url:
            yield Bench(
                kind, kubo.faults, lambda settings: KuboProvider(url, {"kubo_patience": "1", **settings})
            )
    elif kind == "pinning_service":
        behind = SimProvider(SimCloud())
        with serve(lambda: sickly(psa.app(behind, token=TOKEN))) as url:
            given = {"pinning_service_token": TOKEN, "pinning_service_patience": "0"}
            yield Bench(
                kind, faults, lambda settings: PinningServiceProvider(url, {**given, **settings}), behind
            )
    else:
        with account(kind) as its:
            yield Bench(kind, its.server.faults, lambda settings: its.open(**settings))


# -- faults -----------------------------------------------------------------------------------------------------------


def never(faults: Faults) -> None:
    """Accepts every request and never answers."""

    async def fault(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        raise AssertionError

    faults.add("*", ".*", fault, times=-1)


def late(faults: Faults) -> None:
    """Answers correctly, but just before the timeout: after 50 s in production."""
    faults.delay = 0.5


def page(faults: Faults) -> None:
    """Answers everything with 200 and a page of a proxy."""
    faults.answer(
        "*", ".*", 200, "<html><title>503 Service Unavailable</title></html>", times=-1, kind="text/html"
    )


def nothing(faults: Faults) -> None:
    """Answers with 200 and an empty body."""
    faults.answer("*", ".*", 200, "", times=-1, kind="application/octet-stream")


def cut(faults: Faults) -> None:
    """Sends half of each body, then breaks the connection."""
    faults.cuts = True


def broken(faults: Faults) -> None:
    """Always answers 500."""
    faults.answer("*", ".*", 500, '{"error":{"reason":"INTERNAL_ERROR"}}', times=-1)


def busy_in_seconds(faults: Faults) -> None:
    """Answers 429 with a pause that is too long to wait."""
    faults.answer("*", ".*", 429, "", times=-1, Retry_After="3600")


def busy_until(faults: Faults) -> None:
    """Answers 429 with a date of a clock five hours ahead."""
    when = format_datetime(datetime.now(UTC) + timedelta(hours=5), usegmt=True)
    faults.answer("*", ".*", 429, "", times=-1, Retry_After=when)


def busy_until_yesterday(faults: Faults) -> None:
    """Answers 429 with a date of a clock five hours behind: retry at once."""
    when = format_datetime(datetime.now(UTC) - timedelta(hours=5), usegmt=True)
    faults.answer("*", ".*", 429, "", times=-1, Retry_After=when)


def closed(faults: Faults) -> None:
    """Answers 403 to everything, as for a closed account."""
    faults.answer("*", ".*", 403, '{"error":{"reason":"ACCOUNT_CLOSED"}}', times=-1)


ILLNESSES: tuple[Callable[[Faults], None], ...] = (
    never, late, page, nothing, cut, broken, busy_in_seconds, busy_until, busy_until_yesterday, closed,
)  # fmt: skip

#: Each fault at each provider over HTTP; in a short run, and with git always, a quarter of the pairs, which
#: include each provider and each fault.
PAIRS: list[tuple[str, Callable[[Any], None]]] = [
    (kind, illness)
    for row, kind in enumerate(OVER_HTTP)
    for column, illness in enumerate(ILLNESSES)
    if (THOROUGH and kind != "git-http") or (row + column) % 4 == 0
]
PAIRS += [("sftp", illness) for illness in SSH_ILLNESSES]
if not THOROUGH:  # two seconds per call; test_git.py has one such call
    PAIRS = [pair for pair in PAIRS if pair != ("git-http", never)]
#: Fewer pairs for a test whose cases cost six times as much: a short run has each provider once, and each
#: fault over HTTP.
FEW_PAIRS = PAIRS if THOROUGH else [*each_once(OVER_HTTP, ILLNESSES), ("sftp", ssh_never), ("sftp", ssh_cut)]
