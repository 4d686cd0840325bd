"""The common contract for the network providers at real servers, with each fault of such a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.interop.real_servers import KINDS, Servers
from tests.servers.faults import Faults
from tests.support.effort import THOROUGH
from tests.unit.providers import test_contract_of_all as contract
from tests.unit.providers.sftp_lab import SSH_ILLNESSES
from tests.unit.providers.sick_lab import ILLNESSES, Bench, cut, late
from tests.unit.providers.test_sick_providers import serves_another, tells_the_truth

pytestmark = pytest.mark.interop
#: In a thorough run all pairs, with git a quarter, in which each fault occurs.
PAIRS: list[tuple[str, Callable[[Any], None]]] = [
    (kind, illness)
    for row, kind in enumerate(KINDS)
    for column, illness in enumerate(SSH_ILLNESSES if kind.startswith("sftp") else ILLNESSES)
    if (THOROUGH and not kind.startswith("git")) or (row + column) % 4 == 0
]
#: Faults with late or partial answers of the server itself; others are the same at each server
#: (test_sick_providers.py), so a short run omits them.
HALF_WELL = [pair for pair in PAIRS if pair[1] in (late, cut, *SSH_ILLNESSES)]


def parameters(pairs: list[tuple[str, Callable[[Any], None]]]) -> pytest.MarkDecorator:
    ids = [f"{kind}-{illness.__name__}" for kind, illness in pairs]
    return pytest.mark.parametrize(("kind", "illness"), pairs, ids=ids)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(tmp_path_factory.mktemp("servers"), stack)


@pytest.fixture(params=KINDS)
def at(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Bench]:
    with servers.bench(request.param, tmp_path) as made:
        yield made


for _name, _law in vars(contract).items():
    if _name.startswith("test_") and "at" in _law.__annotations__:
        globals()[_name] = _law


@parameters(PAIRS if THOROUGH else HALF_WELL)
def test_each_call_ends_with_correct_data_or_a_provider_error(
    kind: str, illness: Callable[[Faults], None], servers: Servers, tmp_path: Path
) -> None:
    tells_the_truth(partial(servers.bench, kind), illness, tmp_path)


@parameters(HALF_WELL)
def test_provider_next_to_a_faulty_server_is_fully_synced(
    kind: str, illness: Callable[[Faults], None], servers: Servers, tmp_path: Path
) -> None:
    serves_another(partial(servers.bench, kind), illness, tmp_path)
