"""A provider that answers late: the versions of many devices are requested concurrently."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.testing.simulator import SimProvider
from tests.support import virtual_time
from tests.support.device_lab import Lab


class Far:
    """Counts rounds: concurrent calls are one round."""

    def __init__(self, provider: SimProvider, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rounds = 0
        self._answer: asyncio.Future[None] | None = None
        enter = provider._enter

        async def late(call: str, able: bool = True) -> int:
            if self._answer is None:
                loop = asyncio.get_running_loop()
                self._answer = loop.create_future()
                loop.call_later(0.02, self._arrive)
                self.rounds += 1
            await self._answer
            return await enter(call, able)

        monkeypatch.setattr(provider, "_enter", late)

    def _arrive(self) -> None:
        assert self._answer is not None
        self._answer.set_result(None)
        self._answer = None


def _rounds(folder: Path, others: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return the rounds of a pull of concurrent writes of `others` devices, and the number of looked-up
    names."""
    lab = Lab(folder)
    try:
        a = lab.create("a")
        lab.sync(a)
        devices = [lab.restore(f"device {n}") for n in range(others)]
        lab.settle(a, *devices)
        for n, device in enumerate(devices):
            device.write(f"note_{n}", f"of device {n}")
        for device in devices:
            lab.sync(device)
        provider = lab.provider("a")
        before = len(provider.calls)
        far = Far(provider, monkeypatch)
        virtual_time.run(a.sync())
        assert len(a.list()) == others
        return far.rounds, provider.calls[before:].count("get_name")
    finally:
        lab.close()


def test_rounds_of_a_pull_do_not_grow_with_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, names = _rounds(tmp_path / "few", 2, monkeypatch)
    many, more = _rounds(tmp_path / "many", 8, monkeypatch)
    assert more == names + 6
    assert many <= few
