"""A foreign public bundle read by CID, by name or from a web server; nothing is written, nothing trusted."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.content.cid import CID, ipns_name, parse_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import (
    BlockError,
    ConfigError,
    FormatError,
    IpfsmemError,
    LimitError,
    NotFoundError,
    ProviderRefused,
    ProviderUnavailable,
    StorageError,
    UsageError,
)
from ipfsmem.memory import Memory
from ipfsmem.published.ipns_record import make_record
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.testing.simulator import FULL
from ipfsmem.vault import others_bundles
from ipfsmem.vault.others_bundles import parse_source
from tests.servers import gateway_of
from tests.servers.threaded import serve
from tests.support.hints import Refused
from tests.unit.published.test_plain_layout import WALLET

BUNDLE = Path(__file__).parents[3] / "fixtures" / "three-ws" / "ipfs" / "bundle"
FILES = {p.relative_to(BUNDLE).as_posix(): p.read_bytes() for p in BUNDLE.rglob("*") if p.is_file()}
KEYS = {"feedback_tone", "project_launch", "reference_drive", "user_role"}
SEED = b"\x31" * 32
OWN = (
    "Addresses of this machine and its network, and unusual ports, are only used when you configure them yourself, for"
    " instance with --provider gateway:URL (in Python: provider=)."
)
NAME = ipns_name(Signer25519(SEED).public)


@pytest.fixture
def cloud() -> SimCloud:
    return SimCloud()


def publish(cloud: SimCloud, files: dict[str, bytes]) -> CID:
    tree = build_tree(files)
    asyncio.run(SimProvider(cloud).put_car(tree.cid, tree.blocks, name="x"))
    return tree.cid


def opened(cloud: SimCloud, source: object) -> Memory:
    return asyncio.run(Memory.open_foreign(str(source), provider=SimProvider(cloud)))


def test_bundle_of_the_original_layout_is_read_by_cid(cloud: SimCloud, tmp_path: Path) -> None:
    root = publish(cloud, FILES)
    for source in (root, f"ipfs://{root}", f"/ipfs/{root}/manifest.json", f"{root}/memory"):
        with opened(cloud, source) as memory:
            assert memory.files() == {key: FILES[f"memory/{key}.md"] for key in KEYS}
            assert len(memory.timeline.read()) == FILES["memory/timeline/2026-04-14.jsonl"].count(b"\n")
            assert memory.opened is not None
            assert (memory.opened.root, memory.opened.problems) == (str(root), [])


def test_public_vault_with_conflicts_is_read(cloud: SimCloud, tmp_path: Path) -> None:
    a = Memory.create(
        "x", "ipfs", provider=SimProvider(cloud), unlock=WALLET, home=tmp_path / "a", public_ok=True
    )
    a.write("tone", "old")
    asyncio.run(a.sync())
    b = Memory.load("x", "ipfs", provider=SimProvider(cloud), unlock=WALLET, home=tmp_path / "b")
    a.write("tone", "from a")
    b.write("tone", "from b")
    b.note("said", text="hello")
    asyncio.run(a.sync())
    report = asyncio.run(b.sync(public_ok=True))
    with opened(cloud, report.root) as memory:
        assert memory.files() == b.files()
        (copy,) = memory.conflicts()[0].files
        assert (copy,) == b.conflicts()[0].files
        assert memory.read("tone", alternative=copy).data == b.read("tone", alternative=copy).data
        assert [event["type"] for event in memory.timeline.read()] == ["said"]
    # By the device's name, too.
    with opened(cloud, ipns_name(b.replica.device.sign_public)) as memory:
        assert memory.files() == b.files()
    for each in (a, b):
        each.close()


def test_reading_a_bundle_writes_nothing(
    cloud: SimCloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPFSMEM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    memory = opened(cloud, publish(cloud, FILES))
    for attempt in (
        lambda: memory.write("tone", "mine"),
        lambda: memory.write_text("tone", b"mine"),
        lambda: memory.note("seen"),
        lambda: memory.forget("user_role"),
        lambda: memory.resolve("user_role", keep=True, seen=()),
        lambda: memory.bundles.import_(b'{"version":"memory/0.1","files":{"a.md":"x"},"timeline":[]}'),
    ):
        with pytest.raises(UsageError, match="open for reading only"):
            attempt()
    assert set(memory.files()) == KEYS
    report = asyncio.run(memory.sync())
    assert report.root is None
    memory.close()
    assert list(tmp_path.iterdir()) == []


def test_bundle_is_imported_as_pending_texts(cloud: SimCloud, tmp_path: Path) -> None:
    with opened(cloud, publish(cloud, FILES)) as memory, memory.fork("mine", home=tmp_path) as own:
        assert own.files() == memory.files()
        own.write("more", "now it can be written")


def test_name_is_resolved_and_reported_as_expired(cloud: SimCloud) -> None:
    root = publish(cloud, FILES)
    provider = SimProvider(cloud)
    other = b"\x32" * 32
    asyncio.run(
        provider.put_name(NAME, make_record(SEED, f"/ipns/{ipns_name(Signer25519(other).public)}", 1, 10**18))
    )
    asyncio.run(
        provider.put_name(
            ipns_name(Signer25519(other).public), make_record(other, f"/ipfs/{root}", 1, 10**19)
        )
    )
    with opened(cloud, f"ipns://{NAME}") as memory:
        assert set(memory.files()) == KEYS
        assert memory.opened is not None
        assert memory.opened.problems == [f"the record of {NAME} has expired: this may be an old state"]
    with pytest.raises(NotFoundError, match="no provider knows the name"):
        opened(cloud, ipns_name(Signer25519(b"\x33" * 32).public))


def test_name_known_to_another_provider_is_found(cloud: SimCloud) -> None:
    root = publish(cloud, FILES)
    nameless = SimProvider(cloud, capabilities=msgspec.structs.replace(FULL, names=False))
    asyncio.run(SimProvider(cloud).put_name(NAME, make_record(SEED, f"/ipfs/{root}", 1, 10**19)))
    with Refused("Try another provider, one that keeps names: --provider (in Python: provider=)."):
        asyncio.run(Memory.open_foreign(NAME, provider=nameless))
    with asyncio.run(Memory.open_foreign(NAME, provider=SimProvider(cloud))) as memory:
        assert set(memory.files()) == KEYS


def test_circular_names_are_refused(cloud: SimCloud) -> None:
    asyncio.run(SimProvider(cloud).put_name(NAME, make_record(SEED, f"/ipns/{NAME}", 1, 10**19)))
    with pytest.raises(FormatError, match="points only to other names"):
        opened(cloud, NAME)


def test_encrypted_vault_is_not_treated_as_empty(cloud: SimCloud, tmp_path: Path) -> None:
    with Memory.create("x", "encrypted-ipfs", provider=SimProvider(cloud), unlock=WALLET, passphrase=False, home=tmp_path) as memory:  # fmt: skip
        report = asyncio.run(memory.sync())
    with pytest.raises(FormatError, match="encrypted vault"):
        opened(cloud, report.root)
    manifest = json.dumps({"memory": {"mode": "encrypted-ipfs"}}).encode()
    with pytest.raises(FormatError, match="encrypted by the program"):
        opened(cloud, publish(cloud, {"manifest.json": manifest, "memory/MEMORY.md": b"x"}))


def test_export_file_is_read_by_its_cid(cloud: SimCloud) -> None:
    tree = build_tree({"e.json": b'{"version":"memory/0.1","files":{"tone.md":"direct\\n"},"timeline":[]}'})
    asyncio.run(SimProvider(cloud).put_car(tree.cid, tree.blocks, name="x"))
    with opened(cloud, f"{tree.cid}/e.json") as memory:
        assert memory.files() == {"tone": b"direct\n"}


@pytest.mark.parametrize("name", ["hello.txt", "memory/none.txt"])
def test_root_that_is_not_a_bundle_is_refused(cloud: SimCloud, name: str) -> None:
    with pytest.raises(FormatError):
        opened(cloud, publish(cloud, {name: b"x"}))


@pytest.mark.slow
@pytest.mark.parametrize(("count", "size"), [(20_001, 4), (70, 1 << 20)], ids=["too many", "too large"])
def test_bundle_over_the_limits_is_refused(cloud: SimCloud, count: int, size: int) -> None:
    with pytest.raises(LimitError):
        opened(cloud, publish(cloud, {f"memory/k{n}.md": b"%04d" % n * (size // 4) for n in range(count)}))


def test_invalid_files_of_a_bundle_are_named_and_the_rest_is_read(cloud: SimCloud) -> None:
    root = publish(
        cloud,
        {"memory/good.md": b"text\n", "memory/huge.md": b"x" * 1_100_000, "memory/bytes.md": b"\xff\xfe",
         "memory/Nice Name.md": b"other\n", "memory/sub/deep.md": b"not looked at", "manifest.json": b"[1, 2]"},
    )  # fmt: skip
    with opened(cloud, root) as memory:
        assert memory.opened is not None
        keys = set(memory.files())
        assert "good" in keys and any(key.startswith("nice_name-") for key in keys) and "huge" not in keys
        said = " ".join(memory.opened.problems)
        assert "huge.md was left out" in said and "bytes" in said and "manifest.json was not read" in said


def test_missing_or_wrong_block_is_an_error(cloud: SimCloud) -> None:
    root = publish(cloud, FILES)
    provider = SimProvider(cloud)
    (leaf,) = [cid for cid, _ in build_tree({"x": FILES["memory/user_role.md"]}).blocks if cid.codec == 0x55]
    provider.faults.drop.add(leaf)
    with pytest.raises(NotFoundError, match=str(leaf)):
        asyncio.run(Memory.open_foreign(str(root), provider=provider))
    provider.faults.drop.clear()
    cloud.blocks = {cid: (b"other" if cid == leaf else data) for cid, data in cloud.blocks.items()}
    with pytest.raises((NotFoundError, BlockError), match="does not match"):
        asyncio.run(Memory.open_foreign(str(root), provider=provider))


def test_outage_error_does_not_mention_an_own_vault(cloud: SimCloud) -> None:
    root = publish(cloud, FILES)
    provider = SimProvider(cloud)
    provider.faults.offline = True
    with pytest.raises(ProviderUnavailable) as caught:
        asyncio.run(Memory.open_foreign(str(root), provider=provider))
    assert "on this device" not in caught.value.hint and "--provider" in caught.value.hint


def test_reading_requires_a_provider_or_gateway(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IPFSMEM_CONFIG", os.devnull)
    monkeypatch.delenv("IPFSMEM_PROVIDER", raising=False)
    with pytest.raises(ConfigError, match="read it from"):
        asyncio.run(Memory.open_foreign(str(build_tree(FILES).cid)))


@pytest.mark.parametrize(
    ("text", "kind", "path", "gateway"),
    [
        ("{cid}", "cid", (), None),
        ("{cid}/a/manifest.json", "cid", ("a",), None),
        ("ipfs://{cid}/a%20b/", "cid", ("a b",), None),
        ("https://gw.example/ipfs/{cid}/manifest.json", "cid", (), "https://gw.example"),
        ("https://{cid}.ipfs.gw.example:8443/x", "cid", ("x",), "https://gw.example:8443"),
        ("{name}", "name", (), None),
        ("ipns://{name}/a", "name", ("a",), None),
        ("https://{name}.ipns.gw.example", "name", (), "https://gw.example"),
        ("https://example.com/agent/manifest.json", "url", (), None),
        ("http://example.com/agent", "url", (), None),
    ],
)
def test_source_is_parsed(text: str, kind: str, path: tuple[str, ...], gateway: str | None) -> None:
    found = parse_source(text.format(cid=build_tree(FILES).cid, name=NAME))
    assert (found.kind, found.path, found.gateway) == (kind, path, gateway)
    if kind == "url":
        assert found.value in ("https://example.com/agent/", "http://example.com/agent/")


@pytest.mark.parametrize(
    "text",
    ["", "tone", "ipfs://", "ipns://docs.ipfs.tech", "https://x/ipfs/nothing", "https://x/m.json?a=b", "k51x",
     "file:///etc/passwd", "\ud800", "ftp://x/y"],
)  # fmt: skip
def test_invalid_source_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_source(text)


# -- web servers ---------------------------------------------------------------------------------------------------


class Site:
    """A web server with files that records its requests."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.asked: list[str] = []

    def app(self) -> web.Application:
        async def answer(request: web.Request) -> web.Response:
            self.asked.append(request.path)
            data = self.files.get(request.path.removeprefix("/agent/"))
            return web.Response(body=data) if data is not None else web.Response(status=404)

        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        return app


@pytest.fixture
def site() -> Site:
    return Site(dict(FILES))


@pytest.fixture
def url(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return its URL; the settings permit this machine."""
    with serve(site.app) as base:
        config = tmp_path / "config.toml"
        config.write_text(f'[providers.web]\ntrusted = ["{base}"]\n')
        monkeypatch.setenv("IPFSMEM_CONFIG", str(config))
        yield f"{base}/agent/"


def test_bundle_of_the_original_layout_is_read_from_a_web_server(site: Site, url: str) -> None:
    for source in (url, f"{url}manifest.json", url.rstrip("/")):
        with asyncio.run(Memory.open_foreign(source)) as memory:
            assert memory.files() == {key: FILES[f"memory/{key}.md"] for key in KEYS}
            assert memory.opened is not None and memory.opened.root is None


def test_unreachable_url_has_a_hint_that_works(site: Site, url: str) -> None:
    with Refused("Give the address of a web server: https://host/path."):
        asyncio.run(Memory.open_foreign("https://:443/agent/"))
    with Refused("Check the URL."):
        asyncio.run(Memory.open_foreign(f"{url}elsewhere/"))
    with asyncio.run(Memory.open_foreign(url)) as memory:
        assert set(memory.files()) == KEYS


def test_missing_entry_points_suggest_a_new_installation(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, Refused("Install ipfsmem again."):
        patch.setattr("importlib.metadata.entry_points", lambda **given: [])
        asyncio.run(Memory.open_foreign(url))
    with asyncio.run(Memory.open_foreign(url)) as memory:
        assert set(memory.files()) == KEYS


def test_configured_private_address_is_requested(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tree = build_tree(FILES)
    monkeypatch.setenv("IPFSMEM_CONFIG", os.devnull)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await gateway_of.answer(request, dict(tree.blocks), roots=lambda: {tree.cid}, rooted=False)

    def app() -> web.Application:
        made = web.Application()
        made.router.add_get("/ipfs/{tail:.+}", answer)
        return made

    with serve(app) as base:
        with Refused(OWN):  # for its port
            asyncio.run(Memory.open_foreign(f"{base}/ipfs/{tree.cid}"))
        with Refused(OWN):  # for its address
            asyncio.run(Memory.open_foreign(f"http://127.0.0.1/ipfs/{tree.cid}"))
        with asyncio.run(Memory.open_foreign(str(tree.cid), provider=f"gateway:{base}")) as memory:
            assert set(memory.files()) == KEYS


def test_index_links_to_other_places_are_not_followed(site: Site, url: str) -> None:
    site.files["memory/MEMORY.md"] = (
        b"- [a](user_role.md)\n- [b](../secret.md) [c](http://127.0.0.1/x.md) [d](/etc/x.md)\n"
        b"- [e](..%2fsecret.md) [f](gone.md) [g](.hidden.md)\n"
    )
    with asyncio.run(Memory.open_foreign(url)) as memory:
        assert set(memory.files()) == {"user_role"}
        assert memory.opened is not None
        # Four links that lead elsewhere, one of them written in two ways, and the missing file.
        assert len(memory.opened.problems) == 5
        assert (
            "the link '../secret.md' in MEMORY.md was left out: it points elsewhere" in memory.opened.problems
        )
    assert {path for path in site.asked if path.endswith(".md")} == {
        f"/agent/memory/{name}.md" for name in ("MEMORY", "user_role", "gone")
    }


def test_server_without_a_bundle_is_an_error(site: Site, url: str) -> None:
    del site.files["memory/MEMORY.md"]
    with pytest.raises(NotFoundError, match=r"MEMORY\.md"):
        asyncio.run(Memory.open_foreign(url))
    site.files["memory/MEMORY.md"] = b"".join(b"[x](k%d.md)\n" % n for n in range(1_001))
    with pytest.raises(LimitError, match="1,001"):
        asyncio.run(Memory.open_foreign(url))
    site.files["memory/MEMORY.md"] = b"[x](k.md)"
    with pytest.raises(NotFoundError, match="none of the 1"):
        asyncio.run(Memory.open_foreign(url))


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "localhost", "169.254.169.254", "10.0.0.1", "[::1]", "0.0.0.0"]
)
def test_foreign_url_does_not_reach_this_machine(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("IPFSMEM_CONFIG", os.devnull)
    monkeypatch.delenv("IPFSMEM_PROVIDER", raising=False)
    cid = build_tree(FILES).cid
    for source in (f"http://{address}:8080/agent/manifest.json", f"http://{address}:8080/ipfs/{cid}"):
        with pytest.raises(ProviderRefused):
            asyncio.run(Memory.open_foreign(source))


def test_own_provider_is_asked_before_the_gateway_of_a_url(cloud: SimCloud) -> None:
    root = publish(cloud, FILES)
    with opened(cloud, f"http://127.0.0.1:8080/ipfs/{root}/manifest.json") as memory:
        assert set(memory.files()) == KEYS
    with pytest.raises(ProviderRefused):
        opened(SimCloud(), f"http://127.0.0.1:8080/ipfs/{root}/manifest.json")


def test_bundle_in_a_local_folder_is_read(tmp_path: Path) -> None:
    tree = build_tree(FILES)
    (tmp_path / "stick").mkdir()
    asyncio.run(DirectoryProvider(tmp_path / "stick").put_car(tree.cid, tree.blocks, name="x"))
    with asyncio.run(Memory.open_foreign(str(tree.cid), provider=str(tmp_path / "stick"))) as memory:
        assert set(memory.files()) == KEYS
    shutil.rmtree(tmp_path / "stick")
    with pytest.raises(IpfsmemError):
        asyncio.run(
            Memory.open_foreign(str(parse_cid(str(tree.cid))), provider=f"directory:{tmp_path / 'stick'}")
        )


def test_lines_of_all_scopes_share_one_limit(cloud: SimCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is lower than that of an import."""
    monkeypatch.setattr(others_bundles, "MAX_STRANGER_EVENTS", 3)
    tree = {"memory/a.md": b"a", "memory/timeline/2026-01-01.jsonl": b"0\n1\n", "scopes/s/memory/b.md": b"b"}
    assert opened(cloud, publish(cloud, tree | {"scopes/s/memory/timeline/2026-01-01.jsonl": b"2\n"}))
    with pytest.raises(LimitError, match="more than 3 different lines"):
        opened(cloud, publish(cloud, tree | {"scopes/s/memory/timeline/2026-01-01.jsonl": b"2\n3\n"}))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_named_pipe_is_not_awaited(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "memory.md")
    with pytest.raises(StorageError, match="is not a file"):
        opened(SimCloud(), tmp_path / "memory.md")
