"""Filebase: our provider and the service's own client at one stand-in, with a real S3 server that checks
signatures."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from ipfsmem.errors import ProviderRefused
from tests.interop.counterparts import need_program, npm_folder
from tests.interop.seaweed import seaweed
from tests.servers import filebase
from tests.unit.providers.services_lab import FILES, Account, account, files_under, tree

pytestmark = pytest.mark.interop
NAME = "ipfsmem-0123456789abcdef"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with seaweed(tmp_path_factory.mktemp("seaweed"), filebase.KEY, filebase.SECRET) as server:
        asyncio.run(server.make_bucket(filebase.BUCKET))
        yield server.url


@pytest.fixture
def at(s3: str) -> Iterator[Account]:
    with account("filebase-s3", s3) as made:
        yield made


def test_real_s3_server_accepts_our_signatures(at: Account) -> None:
    async def body() -> None:
        roots = []
        for number in range(3):
            made = tree(head_ipm=b"%d" % number)
            roots.append(await at.open().put_car(made.cid, made.blocks, name=NAME))
            await asyncio.sleep(1.1)  # its times have whole seconds
        pins = await at.open().pins(NAME)
        assert [pin.cid for pin in pins] == roots[::-1]
        assert await at.open().pins("ipfsmem") == []
        assert await files_under(at.open(), roots[1]) == {**FILES, "head.ipm": b"1"}
        for pin in pins:
            await at.open().unpin(pin)
            await at.open().unpin(pin)
        assert await at.open().pins(NAME) == []

    asyncio.run(body())


@pytest.mark.parametrize("name", ["with space", "ümlaut+plus&amp", "a/b=c~d", "percent%2F"])
def test_names_with_special_characters_are_signed_as_sent(at: Account, name: str) -> None:
    async def body() -> None:
        made = tree()
        await at.open().put_car(made.cid, made.blocks, name=name)
        [pin] = await at.open().pins(name)
        await at.open().unpin(pin)
        assert await at.open().pins(name) == []

    asyncio.run(body())


def test_real_s3_server_refuses_a_wrong_secret(at: Account) -> None:
    with pytest.raises(ProviderRefused, match=r"SignatureDoesNotMatch|AccessDenied"):
        asyncio.run(at.open(filebase_secret="wrong secret").pins(NAME))
    with pytest.raises(ProviderRefused):
        asyncio.run(at.open(filebase_secret="wrong secret").put_car(tree().cid, tree().blocks, name=NAME))
    with pytest.raises(ProviderRefused, match=r"NoSuchBucket|no bucket|AccessDenied"):
        asyncio.run(at.open(rest="nobody-has-this").pins(NAME))


@pytest.mark.parametrize("real", [True, False])
def test_official_filebase_client_gets_the_expected_answers(
    real: bool, request: pytest.FixtureRequest
) -> None:
    script = npm_folder("filebase_sdk") / "drive.mjs"
    upstream = request.getfixturevalue("s3") if real else ""
    with account("filebase-s3", upstream) as at:
        environment = {
            **os.environ, "NODE_ENV": "test", "TEST_S3_ENDPOINT": at.url, "TEST_NAME_ENDPOINT": at.url,
            "TEST_GW_ENDPOINT": at.url,
        }  # fmt: skip
        done = subprocess.run(
            [need_program("node"), str(script), filebase.KEY, filebase.SECRET, filebase.BUCKET, at.url],
            env=environment, capture_output=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        out = json.loads(done.stdout.decode().splitlines()[-1])
    assert out["folder"] == out["expected"] and out["object"] == out["got"]
    assert sorted(out["listed"]) == ["folder", "greeting.txt"] and out["after"] == ["folder"]
    assert out["pin"]["cid"] == out["folder"] and out["pin"]["name"] == "pinned"
    assert out["pinned"] == ["pinned"] and out["status"] == "pinned"
    assert out["replaced"] == out["object"] and out["unpinned"] is True and out["gone"] is False
    assert out["name"]["label"] == "label" and out["moved"] is True and out["value"] == out["object"]
    assert out["names"] == ["label"] and out["nameDeleted"] is True and out["noName"] is False
    assert out["deleted"] is True
    assert out["refused"] in ("SignatureDoesNotMatch", "AccessDenied")
    assert "token" in out["unauthorized"]
