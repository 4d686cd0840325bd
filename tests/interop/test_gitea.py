"""The git provider at Gitea over HTTP: tokens, a protected branch, forbidden force pushes, the contract and each illness."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ipfsmem_providers.git import GitProvider

from ipfsmem.content.tree import BuiltTree, build_tree
from ipfsmem.errors import ProviderError, ProviderRefused
from ipfsmem.provider.contract import Provider
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.interop.gitea import Gitea, gitea
from tests.servers.faults import Faults
from tests.servers.relay import relay
from tests.servers.threaded import serve
from tests.support.device_lab import load
from tests.unit.providers import test_contract_of_all as contract
from tests.unit.providers.sick_lab import ILLNESSES, Bench
from tests.unit.providers.test_sick_providers import tells_the_truth

pytestmark = pytest.mark.interop
WALLET = Unlock(RawKeySigner(bytes(31) + b"\x2e"))
_names = itertools.count()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gitea]:
    with gitea(tmp_path_factory.mktemp("gitea")) as running:
        yield running


@contextmanager
def repository(host: Gitea, folder: Path) -> Iterator[Bench]:
    """A new repository behind a relay for faults."""
    faults, caches = Faults(), itertools.count()
    url = host.repository(f"vault{next(_names)}")
    with serve(relay(host.url, faults)) as at:
        yield Bench(
            "git-gitea",
            faults,
            lambda settings: GitProvider(
                url.replace(host.url, at),
                {"git_cache": folder / f"cache{next(caches)}", "git_token": host.token, **settings},
            ),
        )


@pytest.fixture
def at(host: Gitea, tmp_path: Path) -> Iterator[Bench]:
    with repository(host, tmp_path) as made:
        yield made


for _name, _law in vars(contract).items():
    if _name.startswith("test_") and "at" in _law.__annotations__:
        globals()[_name] = _law


@pytest.mark.parametrize("illness", ILLNESSES, ids=lambda illness: illness.__name__)
def test_each_call_ends_with_correct_data_or_a_provider_error(
    illness: Callable[[Faults], None], host: Gitea, tmp_path: Path
) -> None:
    tells_the_truth(lambda folder: repository(host, folder), illness, tmp_path)


def open_at(host: Gitea, name: str, cache: Path, *, ref: str = "", **settings: object) -> GitProvider:
    """Open a repository without the relay, as on another device."""
    url = f"{host.url}/me/{name}.git{ref}"
    return GitProvider(url, {"git_cache": cache, "git_token": host.token, **settings})


async def published(provider: Provider, text: str) -> BuiltTree:
    made = build_tree({"a.md": text.encode() * 99})
    await provider.put_car(made.cid, made.blocks, name="n")
    await provider.pin(made.cid, "n")
    return made


@pytest.mark.parametrize("ref", ["", "#refs/ipfsmem/main"])
def test_two_devices_share_a_vault(host: Gitea, ref: str, tmp_path: Path) -> None:
    host.repository(name := f"vault{next(_names)}")
    a = load(tmp_path, "a", [open_at(host, name, tmp_path / "1", ref=ref)], wallet=WALLET)
    a.write("note", "from a")
    asyncio.run(a.sync())
    b = load(tmp_path, "b", [open_at(host, name, tmp_path / "2", ref=ref)], wallet=WALLET)
    assert b.read("note").file.body == "from a"  # type: ignore[union-attr]
    b.write("note", "from b")
    asyncio.run(b.sync())
    asyncio.run(a.sync())
    assert a.read("note").file.body == "from b"  # type: ignore[union-attr]
    assert [one["name"] for one in host.ask("GET", f"repos/me/{name}/branches") or []] == (
        [] if ref else ["ipfsmem"]
    )


@pytest.mark.parametrize("forbidden", [False, True])
def test_history_is_replaced_where_force_pushes_are_allowed(
    host: Gitea, forbidden: bool, tmp_path: Path
) -> None:
    host.repository(name := f"vault{next(_names)}")
    if forbidden:
        host.protect(name, "ipfsmem")

    async def body() -> None:
        one, two = (open_at(host, name, tmp_path / cache, git_squash=4) for cache in ("1", "2"))
        made = [await published((one, two)[turn % 2], str(turn)) for turn in range(11)]
        third = open_at(host, name, tmp_path / "3")
        assert {pin.cid for pin in await third.pins("n")} == {each.cid for each in made}
        for each in made:
            assert await third.get_blocks([cid for cid, _ in each.blocks]) == dict(each.blocks)
        for provider in (one, two, third):
            await provider.close()

    asyncio.run(body())
    commits = len(host.ask("GET", f"repos/me/{name}/commits?sha=ipfsmem&limit=50&stat=false"))
    assert commits >= 11 if forbidden else commits < 4


def test_protected_branch_is_explained(host: Gitea, tmp_path: Path) -> None:
    host.repository(name := f"vault{next(_names)}")
    host.protect(name, "ipfsmem", enable_push=False)
    provider = open_at(host, name, tmp_path / "cache")
    with pytest.raises(ProviderRefused, match="the host's rules forbid pushes to this branch") as raised:
        asyncio.run(published(provider, "x"))
    assert "Exempt the branch from the rules" in raised.value.hint
    asyncio.run(published(open_at(host, name, tmp_path / "other", ref="#other"), "x"))


def test_token_without_rights_is_explained(host: Gitea, tmp_path: Path) -> None:
    host.repository(name := f"vault{next(_names)}")
    asyncio.run(published(open_at(host, name, tmp_path / "well"), "x"))
    reads = open_at(host, name, tmp_path / "reads", git_token=host.new_token("read:repository"))
    assert len(asyncio.run(reads.pins("n"))) == 1
    unknown = open_at(host, name, tmp_path / "unknown", git_token="0" * 40)
    for provider in (reads, unknown):
        with pytest.raises(
            ProviderRefused, match=r"refuses access|may read this repository and not write"
        ) as raised:
            asyncio.run(published(provider, "y"))
        assert host.token not in str(raised.value) + raised.value.hint
    missing = open_at(host, "nothing", tmp_path / "missing")
    with pytest.raises(ProviderError, match="there is no such repository"):
        asyncio.run(missing.pins("n"))
