"""Devices that are killed before and after each request to a bucket, and devices that publish to it
concurrently. The server keeps running."""

from __future__ import annotations

import hashlib
import io
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ipfsmem.content.car import read_car
from tests.faults.test_directory_crash import SCRIPT, nothing_lost, read_while_they_publish, start
from tests.servers import s3
from tests.support.effort import THOROUGH
from tests.unit.providers.bucket_lab import Bucket, bucket

#: Kills itself at its n-th change of the bucket: before the request is sent, or after it was answered.
KILLED = """
import os, runpy, signal, sys
import obstore
left = {step}
def counted(real):
    def call(*args, **kwargs):
        global left
        left -= 1
        if left < 0 and {before}:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(*args, **kwargs)
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer
    return call
for name in ("put", "delete"):
    setattr(obstore, name, counted(getattr(obstore, name)))
sys.argv = ["writer", {spec!r}, "late", "20", "2"]
runpy.run_path({script!r}, run_name="__main__")
"""


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.SECRET)
    with bucket() as made:
        yield made


def check(at: Bucket, acknowledged: dict[str, int]) -> None:
    """Check as for a folder, and that every object in the bucket matched its name at all times."""
    nothing_lost(at.open, acknowledged)
    for key, (body, _, _) in at.server.objects.items():
        if key.endswith(".car"):
            assert key.rpartition("/")[2] == f"{hashlib.sha256(body).hexdigest()}.car"
            assert list(read_car(io.BytesIO(body)))


def spec(at: Bucket) -> str:
    return f"bucket:{at.spec}"


@pytest.mark.parametrize("step", range(30) if THOROUGH else range(0, 30, 6))
def test_device_killed_at_any_bucket_request_loses_nothing(at: Bucket, step: int) -> None:
    acknowledged = {}
    for before in (True, False):
        device = f"late-{before}"
        program = KILLED.format(step=step, before=before, spec=spec(at), script=str(SCRIPT))
        program = program.replace('"late"', repr(device))
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False)
        assert done.returncode == -signal.SIGKILL
        acknowledged[device] = len(done.stdout.split())
        check(at, acknowledged)
    again = start(spec(at), device, 6, 2)
    out, _ = again.communicate()
    assert len(out.split()) == 6
    check(at, {**acknowledged, device: max(6, acknowledged[device])})


def test_concurrent_devices_lose_nothing(at: Bucket) -> None:
    """Three processes publish and merge while this one reads every acknowledged text."""
    publishes = 24 if THOROUGH else 8
    processes = {name: start(spec(at), name, publishes, 3) for name in ("a", "b", "c")}
    read_while_they_publish(at.open(), processes, publishes)
    check(at, dict.fromkeys(processes, publishes))
    assert sum("/names/" in key for key in at.server.objects) == 1
