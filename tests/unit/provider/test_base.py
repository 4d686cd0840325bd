"""The base class of all providers: methods that are not overridden are refused and are not capabilities."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.content.cid import raw_cid
from ipfsmem.errors import ProviderRefused
from ipfsmem.provider.base import ProviderBase
from ipfsmem.provider.contract import Capabilities, Pin, Provider
from tests.unit.providers.sick_lab import KINDS, bench

CID = raw_cid(bytes(32))
CALLS: dict[str, Callable[[Provider], Coroutine[Any, Any, Any]]] = {
    "put_car": lambda one: one.put_car(CID, [], name="n"),
    "has": lambda one: one.has([CID]),
    "get_blocks": lambda one: one.get_blocks([CID]),
    "get_dag": lambda one: _first(one),
    "pin": lambda one: one.pin(CID, "n"),
    "pins": lambda one: one.pins("n"),
    "unpin": lambda one: one.unpin(Pin(CID, "n", "", 0)),
    "put_name": lambda one: one.put_name("k", b""),
    "get_name": lambda one: one.get_name("k"),
}
#: The capability that declares a call.
CAPABILITY_OF_CALL = {
    "put_car": "put", "has": "has", "get_blocks": "blocks", "get_dag": "dag", "pin": "pin", "pins": "list", "unpin": "unpin",
    "put_name": "names",
}  # fmt: skip


async def _first(one: Provider) -> None:
    async for _ in one.get_dag(CID):
        pass


class Nothing(ProviderBase):
    """A provider that does nothing."""

    @property
    def name(self) -> str:
        """Implemented because the contract requires it."""
        return "nothing"

    @property
    def capabilities(self) -> Capabilities:
        """No capabilities."""
        return Capabilities(put=False)


@pytest.mark.parametrize("call", CALLS)
def test_unsupported_method_raises_provider_refused(call: str) -> None:
    with pytest.raises(ProviderRefused, match=r"^nothing cannot [a-z ]{3,}$"):
        asyncio.run(CALLS[call](Nothing()))


def test_base_provider_implements_the_contract_and_closes() -> None:
    one = Nothing()
    assert isinstance(one, Provider)
    asyncio.run(one.close())
    asyncio.run(one.close())


def test_provider_without_a_name_or_capabilities_is_refused() -> None:
    with pytest.raises(TypeError, match=r"capabilities.*name"):
        ProviderBase()  # type: ignore[abstract]


@pytest.mark.parametrize("kind", KINDS)
def test_declared_capabilities_of_a_provider_are_its_own_methods(kind: str, tmp_path: Path) -> None:
    with bench(kind, tmp_path) as at:
        provider = at.open()
        assert isinstance(provider, ProviderBase)
        for call, capability in CAPABILITY_OF_CALL.items():
            if getattr(provider.capabilities, capability):
                assert getattr(type(provider), call) is not getattr(ProviderBase, call), f"{kind}: {call}"
