"""The sync interval that providers serve without charge."""

from __future__ import annotations

import pytest
from ipfsmem_providers.bucket import BucketProvider

from ipfsmem.provider.contract import Provider
from ipfsmem.sync.interval import free_interval
from ipfsmem.testing import SimCloud, SimProvider

KEYS = {"aws_access_key_id": "x", "aws_secret_access_key": "y"}
R2 = "https://0123456789abcdef0123456789abcdef.r2.cloudflarestorage.com/mem"
B2 = "https://s3.us-west-004.backblazeb2.com/mem"
TIGRIS = "https://t3.storage.dev/mem"
AWS = "s3://mem"
OWN = "http://127.0.0.1:9000/mem"


def at(*addresses: str) -> list[Provider]:
    return [BucketProvider(address, KEYS) for address in addresses]


@pytest.mark.parametrize(
    ("addresses", "devices", "minutes", "cost"),
    [
        ([OWN], 50, 5, 0),
        ([R2], 1, 5, 0),
        ([R2], 57, 5, 0),
        ([R2], 58, 10, 0),
        ([B2], 4, 5, 0),
        ([B2], 5, 10, 0),
        ([B2], 8, 10, 0),
        ([B2], 12, 15, 0),
        ([TIGRIS], 1, 10, 0),
        ([R2, B2, OWN], 5, 10, 0),
        ([AWS], 1, 30, 0.0072),
        ([AWS], 2, 60, 0.0072),
        ([AWS], 10, 60, 0.036),
        (["https://mem.s3.eu-central-1.amazonaws.com"], 1, 30, 0.0072),
        ([R2, AWS], 1, 30, 0.0072),
    ],
)
def test_interval_is_the_shortest_free_one(
    addresses: list[str], devices: int, minutes: int, cost: float
) -> None:
    found = free_interval(at(*addresses), devices)
    assert (found.seconds, round(found.cost, 6)) == (minutes * 60, cost)
    assert found.devices == devices


def test_providers_with_prices_are_named() -> None:
    found = free_interval([*at(OWN, B2), SimProvider(SimCloud())], 1)
    assert found.metered == [f"bucket:{B2}"] and found.seconds == 300
    assert free_interval([], 1).metered == []


def test_host_with_a_vendor_like_suffix_has_no_price() -> None:
    assert (
        free_interval(
            at("https://notbackblazeb2.com/mem", "https://backblazeb2.com.example.com/mem"), 1
        ).metered
        == []
    )
