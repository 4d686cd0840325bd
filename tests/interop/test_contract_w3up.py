"""The common contract for `web3storage` at the w3up service's own server code."""

from __future__ import annotations

import pytest

from tests.interop.test_w3up import server, space  # noqa: F401
from tests.interop.w3up_lab import Space
from tests.servers.faults import Faults
from tests.unit.providers import test_contract_of_all as contract
from tests.unit.providers.sick_lab import Bench

pytestmark = pytest.mark.interop


@pytest.fixture
def at(space: Space) -> Bench:  # noqa: F811
    return Bench("web3storage", Faults(), lambda _: space.open())


for _name, _law in vars(contract).items():
    if _name.startswith("test_") and "at" in _law.__annotations__:
        globals()[_name] = _law
