"""Python and two devices of the browser client write, forget, note and sync in any order, and end with the
same root and texts."""

from __future__ import annotations

import contextlib
from random import Random
from typing import Any

import pytest

from ipfsmem.errors import LimitError
from ipfsmem.memory import Memory
from tests.support.effort import cases
from tests.support.web_lab import PEER_TOKEN, ClientError, WebDevice, root_of, web_client, words_of

pytestmark = pytest.mark.slow

KEYS = [f"k{n}" for n in range(5)]


def in_python(memory: Memory, act: float, key: str, body: str, step: int) -> None:
    if act < 0.5:
        with contextlib.suppress(LimitError):  # a fifth text of this device next to others' texts
            memory.write(key, body)
    elif act < 0.6:
        memory.forget(key)
    elif act < 0.7:
        memory.note("step", n=step)
    else:
        root_of(memory)


def in_typescript(device: WebDevice, act: float, key: str, body: str, step: int) -> None:
    try:
        if act < 0.5:
            device.write(key, body)
        elif act < 0.6:
            device.forget(key)
        elif act < 0.7:
            device.note("step", {"n": step})
        else:
            device.sync()
    except ClientError as error:
        assert error.kind == "limit", error


def shown(memory: Memory) -> tuple[Any, ...]:
    readings = (memory.read(key) for key in KEYS)
    return (
        [one.file.body if one is not None else None for one in readings],
        [(one.key, len(one.copies)) for one in memory.conflicts()],
        [event["id"] for event in memory.timeline.read()],
    )


def shown_there(device: WebDevice) -> tuple[Any, ...]:
    readings = (device.read(key) for key in KEYS)
    return (
        [one["body"] if one is not None else None for one in readings],
        [(one["key"], len(one["copies"])) for one in device.conflicts()],
        [event["id"] for event in device.timeline()],
    )


@pytest.mark.parametrize("seed", range(cases(1, 10)))
def test_random_operations_of_three_devices_converge(seed: int, url: str, memory: Memory) -> None:
    random = Random(seed)
    with web_client() as client:
        words = words_of(memory)
        devices = [client.open(f"device {n}", url, words=words, token=PEER_TOKEN) for n in range(2)]
        for step in range(40):
            act, key = random.random(), random.choice(KEYS)
            body = "\n".join(random.choices("abcd", k=random.randrange(1, 6)))
            who = random.choice([None, *devices])
            if who is None:
                in_python(memory, act, key, body, step)
            else:
                in_typescript(who, act, key, body, step)
        for _ in range(3):
            for device in devices:
                device.sync()
            root_of(memory)
        assert {root_of(memory)} == {device.sync()["root"] for device in devices}
        for device in devices:
            assert shown_there(device) == shown(memory)
