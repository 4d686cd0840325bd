"""Pinata: plans, key scopes, CARs processed later, TUS uploads, lost answers, its gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from ipfsmem_providers.pinata import provider as module
from ipfsmem_providers.pinata import tus as pinata_tus
from ipfsmem_providers.pinata.plan import UPLOAD_KIND_KEY
from ipfsmem_providers.pinata.provider import ROOT_KEY, PinataProvider

from ipfsmem.content.car import car_bytes
from ipfsmem.content.cid import CID
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.reader import Reader
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import open_provider
from tests.servers import pinata
from tests.unit.providers.services_lab import FILES, Account, account, files_under, tree

NAME = "ipfsmem-0123456789abcdef"


@pytest.fixture
def at() -> Iterator[Account]:
    with account("pinata-car") as made:
        yield made


@pytest.fixture(params=["pinata-free", "pinata-field"])
def free(request: pytest.FixtureRequest) -> Iterator[Account]:
    """A plan without CARs, with a key for both generations, and with one for v3 alone where v3 takes folders."""
    with account(request.param) as made:
        yield made


def folder_uploads(at: Account) -> str:
    """Return the request that sends a folder."""
    return "POST /v3/files" if at.kind == "pinata-field" else "POST /pinning/pinFileToIPFS"


def put(at: Account, **settings: Any) -> Any:
    return asyncio.run(at.open(**settings).put_car(tree().cid, tree().blocks, name=NAME))


def refused(at: Account, kind: type[ProviderError] = ProviderRefused, **settings: Any) -> ProviderError:
    with pytest.raises(kind) as caught:
        put(at, **settings)
    return caught.value


def test_pinata_settings_are_read_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PINATA_JWT", raising=False)
    with pytest.raises(ConfigError, match="PINATA_JWT"):
        open_provider("pinata")
    monkeypatch.setenv("PINATA_JWT", pinata.V3_KEY)
    assert isinstance(open_provider("pinata"), PinataProvider)
    assert not open_provider("pinata").capabilities.blocks
    assert open_provider("pinata:name.mypinata.cloud").capabilities.blocks
    assert open_provider("pinata", {"gateways": ["https://trustless-gateway.link"]}).capabilities.dag
    for bad in (
        {"pinata_api": "v4"}, {"pinata_upload": "torrent"}, {"pinata_api": "legacy", "pinata_upload": "car"},
        {"pinata_patience": "soon"}, {"pinata_api_url": "ftp://x"}, {"pinata_gateway": "http://"},
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            open_provider("pinata", bad)


def test_uploads_are_public_and_labelled(at: Account) -> None:
    put(at)
    [entry] = at.server.files.values()
    assert (entry["network"], entry["name"]) == ("public", NAME)
    assert entry["keyvalues"] == {ROOT_KEY: str(tree().cid), UPLOAD_KIND_KEY: "car"}


def test_plan_without_cars_uploads_folders(free: Account) -> None:
    provider = free.open()

    async def body() -> None:
        for made in (tree(), tree(head_ipm=b"2")):
            answered = await provider.put_car(made.cid, made.blocks, name=NAME)
            assert answered != made.cid
        uploads = [line for line in free.server.seen if line in ("POST /v3/files", folder_uploads(free))]
        assert len(uploads) == 3  # a CAR is tried once
        assert {entry["number_of_files"] for entry in free.server.files.values()} == {len(FILES)}

    asyncio.run(body())


@pytest.mark.parametrize("legacy", [False, True], ids=["v3", "legacy"])
@pytest.mark.parametrize("folders", ["first", "uncounted", "refused"])
def test_folder_stored_as_one_file_is_refused_and_removed(folders: str, legacy: bool) -> None:
    """The stored tree is compared with the sent one."""
    if legacy and folders == "refused":
        pytest.skip("the legacy API takes folders")
    with account("pinata-legacy" if legacy else "pinata-field") as at:
        at.server.folders = folders
        for _ in range(2):  # the remains of an earlier attempt do not count as the upload
            error = refused(at)
            if not legacy:
                assert "PINATA_API=legacy" in error.hint
        assert at.server.files == {}
        assert asyncio.run(at.open().pins(NAME)) == []


def test_folders_are_uploaded_by_the_documented_endpoint() -> None:
    """The V3 endpoint does not support folders; the legacy one needs a key for both generations."""
    with account("pinata-free") as at:
        assert at.server.folders == "refused"
        root = put(at)
        assert sum(line == "POST /pinning/pinFileToIPFS" for line in at.server.seen) == 1
        assert put(at) == root  # found again, although its answer came from another API generation
        assert sum(line == "POST /pinning/pinFileToIPFS" for line in at.server.seen) == 1
        [pin] = asyncio.run(at.open().pins(NAME))
        assert (pin.cid, pin.handle) == (root, next(iter(at.server.files)))
        asyncio.run(at.open().unpin(pin))
        assert at.server.files == {}
        told = refused(at, pinata_jwt=pinata.V3_KEY)
        assert "does not support folder uploads" in str(told) and "PINATA_API=legacy" in str(told.hint)


def test_earlier_upload_is_verified_before_reuse(free: Account) -> None:
    """Its label alone proves nothing."""
    now, free.server.folders = free.server.folders, "first"
    files = [(f"{NAME}/{path}", data) for path, data in FILES.items()]
    fields = {"network": "public", "name": NAME, "keyvalues": json.dumps({ROOT_KEY: str(tree().cid)})}
    bad = free.server._add(fields, files)
    free.server.folders = now
    root = put(free)
    assert [entry["cid"] for entry in free.server.files.values()] == [str(root)] != [bad["cid"]]


@pytest.mark.parametrize("spoilt", ["o/3/ab.ipm", "o/b/large.ipm", "head.ipm", "s/top.ipm"])
def test_folder_with_a_changed_file_is_refused(spoilt: str, free: Account) -> None:
    """A sample of the files is read back: the first, the last and the largest."""
    real = free.server._layout
    free.server._layout = lambda files: real([(p, b"other" if p.endswith(spoilt) else d) for p, d in files])
    if spoilt == "o/3/ab.ipm":
        assert put(free)  # in the middle: a sample is not a proof, readers check every byte
        return
    refused(free)
    assert free.server.files == {}


def size() -> int:
    """Return the size in bytes of the CAR of a small root."""
    return len(car_bytes([tree().cid], tree().blocks))


def read_back(root: object) -> list[str]:
    """Return the requests that check whether a folder was stored."""
    return [
        f"GET /ipfs/{root}",
        *(f"GET /ipfs/{root}/{path}" for path in ("head.ipm", "s/top.ipm", "o/b/large.ipm")),
    ]


def test_plan_is_probed_with_a_small_car_and_the_tree_sent_once(free: Account) -> None:
    put(free)
    question, folder = free.server.sizes
    assert question < 2_000 and 0 < folder - sum(map(len, FILES.values())) < 4_000
    assert [line.split("?")[0] for line in free.server.seen] == [
        "GET /v3/files/public", "GET /v3/files/public",  # does it exist, is it being processed
        "POST /v3/files", "GET /data/pinList",  # does the plan accept CARs, is the key one of the legacy API too
        folder_uploads(free), *read_back(next(iter(free.server.files.values()))["cid"]),
    ]  # fmt: skip
    # The next process reads from the list of files how the last one was sent.
    free.server.seen.clear()
    made = tree(head_ipm=b"2")
    root = asyncio.run(free.open().put_car(made.cid, made.blocks, name=NAME))
    assert len(free.server.sizes) == 3
    seen = [line.split("?")[0] for line in free.server.seen]
    assert seen == ["GET /v3/files/public", folder_uploads(free), *read_back(root)]


def test_plan_with_cars_is_probed_once(at: Account) -> None:
    assert put(at, pinata_upload="auto") == tree().cid
    question, car = at.server.sizes
    assert question < 2_000 and size() < car < size() + 2_000
    [entry] = at.server.files.values()  # the probe was deleted
    assert entry["cid"] == str(tree().cid)
    made = tree(head_ipm=b"2")
    assert asyncio.run(at.open(pinata_upload="auto").put_car(made.cid, made.blocks, name=NAME)) == made.cid
    assert len(at.server.sizes) == 3 and sum("DELETE" in line for line in at.server.seen) == 1


def test_probe_that_cannot_be_deleted_is_left(at: Account) -> None:
    at.server.faults.answer("DELETE", "/v3/files/public/", 403, '{"error":{"reason":"NO"}}')
    assert put(at, pinata_upload="auto") == tree().cid
    assert [entry["name"] for entry in at.server.files.values()] == ["ipfsmem-probe", NAME]
    assert [pin.cid for pin in asyncio.run(at.open().pins(NAME))] == [tree().cid]


@pytest.mark.parametrize("paid", [False, True])
def test_small_tree_is_its_own_probe(paid: bool, free: Account) -> None:
    free.server.paid = paid
    made = build_tree({"head.ipm": b"head"})

    async def body() -> None:
        provider = free.open()
        assert (await provider.put_car(made.cid, made.blocks, name=NAME) == made.cid) == paid
        assert len(free.server.sizes) == (1 if paid else 2)
        await provider.put_car(tree().cid, tree().blocks, name=NAME)
        assert len(free.server.sizes) == (2 if paid else 3)

    asyncio.run(body())


def test_changed_plan_is_probed_again(free: Account) -> None:
    def how() -> list[str]:
        return [entry["keyvalues"][UPLOAD_KIND_KEY] for entry in free.server.files.values()]

    async def publish(head: bytes, **settings: Any) -> None:
        made = tree(head_ipm=head)
        await free.open(**settings).put_car(made.cid, made.blocks, name=NAME)

    asyncio.run(publish(b"1"))
    free.server.paid = True
    asyncio.run(publish(b"2"))
    folder = "folder" if free.kind == "pinata-field" else "legacy folder"
    assert how() == [folder, folder]  # as the last one was
    asyncio.run(publish(b"3", pinata_upload="car"))
    asyncio.run(publish(b"4"))
    assert how() == [folder, folder, "car", "car"]
    free.server.paid = False
    asyncio.run(publish(b"5"))
    asyncio.run(publish(b"6"))
    assert how()[4:] == [folder, folder]
    assert len(free.server.sizes) == 8  # one lookup at the beginning, one refused CAR


def test_forced_car_upload_on_a_plan_without_cars_is_refused(free: Account) -> None:
    assert "paid plan" in str(refused(free, pinata_upload="car"))
    assert free.server.files == {}


@pytest.mark.parametrize("key", [pinata.LEGACY_KEY, pinata.BARE_KEY])
def test_key_without_scopes_is_explained(at: Account, key: str) -> None:
    error = refused(at, pinata_jwt=key)
    assert "org:files:read" in str(error) and "NO_SCOPES_FOUND" in str(error)
    assert "testAuthentication" in str(error.hint) and "PINATA_API=legacy" in str(error.hint)
    at.server.faults.answer("GET", "/v3/files/public$", 200, '{"data":{"files":[]}}', times=-1)
    assert "org:files:write" in str(refused(at, pinata_jwt=key))


def test_v3_key_at_the_legacy_api_is_explained() -> None:
    with account("pinata-legacy") as at:
        at.settings["pinata_jwt"] = pinata.V3_KEY
        error = refused(at)
        assert "pinList" in str(error) and "legacy" in str(error.hint)


def test_wrong_or_revoked_key_is_refused(at: Account) -> None:
    error = refused(at, pinata_jwt="eyJwrong.wrong.wrong")
    assert "does not know this key" in str(error) and "eyJ" in str(error.hint)
    assert "wrong.wrong" not in str(error)
    at.server.faults.answer("GET", "/v3/files", 403, '{"error":{"reason":"API_KEY_REVOKED"}}')
    assert "revoked" in str(refused(at))


def test_car_processed_later_is_awaited(at: Account) -> None:
    at.server.pending = 3
    assert put(at) == tree().cid
    assert len(at.work.pauses) == 3


def test_upload_after_a_timeout_is_found_by_the_next_attempt(at: Account) -> None:
    at.server.pending = 1_000
    error = refused(at, ProviderUnavailable, pinata_patience=20)
    assert "still processing" in str(error)
    assert sum(at.work.pauses) >= 20
    assert asyncio.run(at.open().pins(NAME)) == []  # it is listed only once it exists
    for entry in at.server.files.values():
        entry["_looks"] = 1
    assert put(at) == tree().cid
    assert at.server.seen.count("POST /v3/files") == 1


def test_car_that_disappears_is_an_error(at: Account, free: Account) -> None:
    for server in (at.server, free.server):
        server.pending, server.lost, server.paid = 1, True, True
    assert "dropped" in str(refused(at))
    free.server.faults.clear()
    assert put(free) != tree().cid  # the folder after it
    [entry] = free.server.files.values()
    assert entry["number_of_files"] == len(FILES)


@pytest.mark.parametrize("kind", ["pinata-car", "pinata-free"])
def test_another_root_is_an_error_that_shows_both_roots(kind: str) -> None:
    with account(kind) as at:
        at.server.paid = True
        at.server.wrong_root = other = tree(head_ipm=b"other").cid
        error = refused(at)
        assert str(other) in str(error) and str(tree().cid) in str(error)
        assert at.server.files == {}  # and it is removed from the list


@pytest.mark.parametrize("kind", ["pinata-car", "pinata-free", "pinata-legacy"])
def test_upload_whose_answer_was_lost_is_found_again(kind: str) -> None:
    with account(kind) as at:
        put(at)
        uploads = [line for line in at.server.seen if line.startswith("POST")]
        again = put(at)
        assert [line for line in at.server.seen if line.startswith("POST")] == uploads
        assert [pin.cid for pin in asyncio.run(at.open().pins(NAME))] == [again]


def test_pin_list_is_read_completely_and_filtered_locally(at: Account) -> None:
    at.server.page, at.server.ignores_filters = 3, True

    async def body() -> None:
        provider = at.open()
        for number in range(8):
            made = tree(head_ipm=b"%d" % number)
            await provider.put_car(made.cid, made.blocks, name=NAME if number % 2 else "ipfsmem-other")
        found = await at.open().pins(NAME)
        assert [pin.cid for pin in found] == [tree(head_ipm=b"%d" % n).cid for n in (7, 5, 3, 1)]

    asyncio.run(body())


@pytest.mark.parametrize("files", ["", '{"id":"1","cid":"bafkqaaa","name":"x"}'])
def test_list_that_repeats_a_page_is_unread(at: Account, files: str) -> None:
    page = f'{{"data":{{"files":[{files}],"next_page_token":"again"}}}}'
    at.server.faults.answer("GET", "/v3/files/public$", 200, page, times=-1)
    with pytest.raises(ProviderRefused, match="pinata repeats the pages of its list, so the rest is unread"):
        asyncio.run(at.open().pins(NAME))
    assert at.server.faults.hits == 2


def test_legacy_list_that_ignores_offsets_is_unread() -> None:
    rows = json.dumps({"rows": [{"ipfs_pin_hash": "bafkqaaa", "id": str(number)} for number in range(1_000)]})
    with account("pinata-legacy") as at:
        at.server.faults.answer("GET", "/data/pinList", 200, rows, times=-1)
        with pytest.raises(ProviderRefused, match="repeats the pages"):
            asyncio.run(at.open().pins(NAME))
        assert at.server.faults.hits == 4


def test_legacy_lists_stay_within_thirty_requests_a_minute() -> None:
    """Requests below `/data/` have a limit of their own in every plan."""
    with account("pinata-legacy") as at:

        async def body() -> None:
            provider = at.open(per_minute=500)
            for _ in range(100):
                await provider.pins(NAME)

        asyncio.run(body())
        assert len(at.server.seen) == 100
        assert 2.5 * 60 <= sum(at.work.pauses) <= 4 * 60


def test_rate_limit_of_the_free_plan_is_respected(at: Account) -> None:
    at.server.per_minute = 60
    made = at.settings.pop("per_minute")

    async def body() -> None:
        provider = at.open()
        for _ in range(150):
            await provider.pins(NAME)

    asyncio.run(body())
    at.settings["per_minute"] = made
    assert len(at.server.seen) == 150


def test_false_pin_list_entries_are_ignored(at: Account) -> None:
    rows = (
        '{"data":{"files":[{"id":"1","cid":"not a cid","name":"%s"},{"id":"2","cid":"pending","name":"%s"},'
        '{"id":"3","cid":null,"name":"%s"},{"id":"4","cid":"bafkqaaa","name":"%s","created_at":"yesterday"},'
        '{"id":"4","cid":"bafkqaaa","name":"%s"}]}}' % ((NAME,) * 5)
    )
    at.server.faults.answer("GET", "/v3/files/public$", 200, rows)
    [pin] = asyncio.run(at.open().pins(NAME))
    assert (str(pin.cid), pin.handle, pin.created) == ("bafkqaaa", "4", 0)


@pytest.mark.parametrize("legacy", [False, True])
def test_root_published_elsewhere_is_pinned(legacy: bool) -> None:
    with account("pinata-legacy" if legacy else "pinata-car") as at:
        at.server.network_blocks = dict(tree().blocks)

        async def body() -> None:
            pin = await at.open().pin(tree().cid, NAME)
            assert await at.open().pins(NAME) == [pin]
            assert await files_under(at.open(), tree().cid) == FILES
            assert await at.open().pin(tree().cid, NAME) == pin

        asyncio.run(body())


def test_root_that_nobody_has_is_an_error(at: Account) -> None:
    with pytest.raises(ProviderUnavailable, match="still looking"):
        asyncio.run(at.open(pinata_patience=30).pin(tree().cid, NAME))
    with pytest.raises(ProviderUnavailable):
        asyncio.run(at.open(pinata_patience=30).pin(tree().cid, NAME))
    assert len(at.server.jobs) == 1  # requested once
    for job in at.server.jobs.values():
        job["status"] = "over_free_limit"
    at.server.faults.answer("POST", "pin_by_cid", 200, '{"data":{"id":"x"}}')
    with pytest.raises(ProviderRefused, match="over_free_limit"):
        asyncio.run(at.open(pinata_patience=30).pin(tree().cid, NAME))


def test_root_pinned_under_one_name_is_refused_under_another(at: Account) -> None:
    put(at)
    [entry] = at.server.files.values()
    entry["name"] = "renamed by hand"
    assert asyncio.run(at.open().pin(tree().cid, NAME)).name == NAME
    assert entry["name"] == NAME
    entry["name"] = "ipfsmem-another-vault"
    with pytest.raises(ProviderRefused, match="ipfsmem-another-vault"):
        asyncio.run(at.open().pin(tree().cid, NAME))
    assert entry["name"] == "ipfsmem-another-vault"


def test_deleted_file_is_not_a_pin(at: Account) -> None:
    at.server.wrong_root = other = tree(head_ipm=b"other").cid

    async def body() -> None:
        provider = at.open(pinata_patience=1)
        with pytest.raises(ProviderRefused):
            await provider.put_car(tree().cid, tree().blocks, name=NAME)
        with pytest.raises(ProviderUnavailable, match="still looking"):
            await provider.pin(other, NAME)

    asyncio.run(body())
    assert at.server.files == {}


def test_earlier_car_with_another_root_is_not_reused(at: Account) -> None:
    at.server.pending = 1_000
    refused(at, ProviderUnavailable, pinata_patience=20)
    [waiting] = at.server.files.values()
    waiting["number_of_files"] = len(FILES)  # the number of files in the CAR
    waiting["_looks"] = 1
    other = waiting["_later"] = str(
        at.server._layout([(f"{NAME}/{path}", data) for path, data in FILES.items()])
    )
    at.server.pending = 0
    assert put(at) == tree().cid
    assert [entry["cid"] for entry in at.server.files.values()] == [str(tree().cid)] and other != str(
        tree().cid
    )


def test_pin_after_an_upload_requests_no_list() -> None:
    """The list of the legacy API may lag behind the upload."""
    with account("pinata-legacy") as at:

        async def body() -> None:
            provider = at.open()
            root = await provider.put_car(tree().cid, tree().blocks, name=NAME)
            before = len(at.server.seen)
            pin = await provider.pin(root, NAME)
            assert at.server.seen[before:] == []
            assert await provider.pins(NAME) == [pin]
            await provider.unpin(pin)
            with pytest.raises(ProviderUnavailable):
                at.server.blocks.clear()
                await at.open(pinata_patience=1).pin(root, NAME)

        asyncio.run(body())


def test_manual_legacy_upload_gets_the_vault_name() -> None:
    with account("pinata-legacy") as at:
        put(at)
        [entry] = at.server.files.values()
        entry["name"], entry["keyvalues"] = "by hand", {}

        async def body() -> None:
            provider = at.open()
            root = await provider.put_car(tree().cid, tree().blocks, name=NAME)
            assert await provider.pins(NAME) == [await provider.pin(root, NAME)]
            entry["name"] = "ipfsmem-another-vault"
            with pytest.raises(ProviderRefused, match="ipfsmem-another-vault"):
                await at.open().put_car(tree().cid, tree().blocks, name=NAME)

        asyncio.run(body())


def test_unpin_uses_the_file_id(at: Account) -> None:
    put(at)
    [pin] = asyncio.run(at.open().pins(NAME))
    assert pin.handle in at.server.files
    asyncio.run(at.open().unpin(pin))
    assert at.server.files == {}


# -- TUS -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def tus(at: Account, monkeypatch: pytest.MonkeyPatch) -> Account:
    monkeypatch.setattr(module, "ONE_REQUEST", 1_000_000)
    monkeypatch.setattr("ipfsmem_providers.pinata.api.ONE_REQUEST", 1_000_000)
    monkeypatch.setattr(pinata_tus, "CHUNK", 700_000)
    return at


@pytest.mark.parametrize("pending", [0, 2])
def test_large_cars_are_uploaded_by_tus(tus: Account, pending: int) -> None:
    tus.server.pending = pending
    assert put(tus) == tree().cid
    [upload] = tus.server.uploads.values()
    assert upload["fields"]["network"] == "public" and upload["fields"]["car"] == "true"
    assert upload["length"] == len(upload["data"]) > 1_000_000
    assert [pin.cid for pin in asyncio.run(tus.open().pins(NAME))] == [tree().cid]


def test_interrupted_tus_upload_continues(tus: Account) -> None:
    """Some bytes arrive and are stored, then the connection breaks."""
    kept = 0

    async def fault(request: web.Request) -> web.StreamResponse:
        """Some bytes arrive and stay, then the connection is gone."""
        nonlocal kept
        [upload] = tus.server.uploads.values()
        while kept < 400_000:
            piece = await request.content.readany()
            kept += len(piece)
            upload["data"] += piece
        assert request.transport is not None
        request.transport.abort()
        raise ConnectionResetError

    tus.server.faults.add("PATCH", "/tus/", fault)
    tus.server.faults.answer("PATCH", "/tus/", 500, times=2)
    assert put(tus) == tree().cid
    [upload] = tus.server.uploads.values()
    assert len(upload["data"]) == upload["length"]


def test_tus_upload_with_a_lost_last_answer_succeeds(tus: Account) -> None:
    original = tus.server.tus_patch

    async def fault(request: web.Request) -> web.StreamResponse:
        await original(request)
        assert request.transport is not None
        request.transport.abort()
        raise ConnectionResetError

    tus.server.faults.add("PATCH", "/tus/", fault, times=-1)
    assert put(tus) == tree().cid


@pytest.mark.parametrize("pending", [0, 2])
def test_large_car_with_another_root_is_refused_at_once(tus: Account, pending: int) -> None:
    tus.server.pending = pending
    tus.server.wrong_root = other = tree(head_ipm=b"other").cid
    error = refused(tus)
    assert str(other) in str(error) and sum(tus.work.pauses) < 1
    assert tus.server.files == {}


def test_failing_tus_upload_is_given_up(tus: Account) -> None:
    tus.server.faults.answer("PATCH", "/tus/", 503, times=-1)
    refused(tus, ProviderUnavailable)
    assert tus.server.faults.hits == 5
    tus.server.faults.clear()
    tus.server.faults.answer("PATCH", "/tus/", 413, times=-1)
    refused(tus)


def test_tus_upload_on_a_plan_without_cars_is_refused(tus: Account) -> None:
    tus.server.paid = False
    assert "paid plan" in str(refused(tus))
    error = refused(tus, pinata_upload="auto")  # and the folder is too large for one request
    assert "1000000 bytes" in str(error) and "legacy" in str(error.hint)


def test_token_is_not_sent_to_another_upload_host(tus: Account) -> None:
    for location in ("https://evil.example/upload", "//evil.example/x", ""):
        tus.server.faults.answer("POST", "/v3/files$", 201, Location=location)
        assert "configured hosts" in str(refused(tus))


# -- reading -------------------------------------------------------------------------------------------------------


def wide() -> Any:
    """A root with a sharded folder, and files of several blocks."""
    return build_tree({f"memory/{'x' * 200}{number:05}.md": b"%d" % number for number in range(1_200)})


def test_dedicated_gateway_is_read_by_paths(at: Account) -> None:
    made = wide()

    async def body() -> None:
        await at.open().put_car(made.cid, made.blocks, name=NAME)
        provider = at.open()

        async def get(cids: list[CID]) -> dict[CID, bytes]:
            return await provider.get_blocks(cids)

        paths = await drive_async(Reader().walk(made.cid), get)
        assert len(paths) == 1_200
        wanted = [f"memory/{'x' * 200}{number:05}.md" for number in range(0, 1_200, 40)]
        files = await drive_async(Reader().read_files(paths[path] for path in wanted), get)
        assert [files[paths[path]] for path in wanted] == [b"%d" % number for number in range(0, 1_200, 40)]

    asyncio.run(body())
    asked = [line for line in at.server.seen if "format=" in line]
    assert sum("format=car" in line for line in asked) <= 3  # shards of one level are requested together
    assert len(asked) < 1 + 1 + 256 + 2 * 30


@pytest.mark.parametrize("rooted", [True, False])
def test_paths_are_requested_before_cids(rooted: bool, at: Account) -> None:
    """Dedicated gateways refuse an inner block by its CID; open ones also serve it by its path."""
    at.server.rooted = rooted

    async def body() -> None:
        await at.open().put_car(tree().cid, tree().blocks, name=NAME)
        at.server.seen.clear()
        assert await files_under(at.open(), tree().cid) == FILES

    asyncio.run(body())
    asked = [line for line in at.server.seen if line.startswith("GET /ipfs/")]
    assert asked[0].startswith(f"GET /ipfs/{tree().cid}?")
    assert all(line.startswith(f"GET /ipfs/{tree().cid}/") for line in asked[1:])
    assert (
        len(asked) == len(set(asked)) == 1 + 4 + 6 + 1
    )  # the root, folders, files, and the chunks of a large one


@pytest.mark.parametrize("kind", ["pinata-car", "filebase-s3"])
def test_root_unpinned_while_reading_is_replaced_by_its_successor(kind: str) -> None:
    with account(kind) as at:
        at.server.rooted = True
        one, two = tree(), tree(head_ipm=b"two", keyring_json=b"{2}")

        async def body() -> None:
            writer, reader = at.open(), at.open()
            await writer.put_car(one.cid, one.blocks, name=NAME)
            top = decode_node((await reader.get_blocks([one.cid]))[one.cid])
            folder = next(link.cid for link in top.links if link.name == "o")
            assert folder in await reader.get_blocks([folder])
            await writer.put_car(two.cid, two.blocks, name=NAME)
            [old] = [pin for pin in await writer.pins(NAME) if pin.cid == one.cid]
            await writer.unpin(old)
            assert two.cid in await reader.get_blocks([two.cid])
            rest = [cid for cid, _ in two.blocks if cid not in (two.cid, folder)]
            while rest:  # as far as known paths lead
                found = await reader.get_blocks(rest)
                assert found and all(dict(two.blocks)[cid] == data for cid, data in found.items())
                rest = [cid for cid in rest if cid not in found]

        asyncio.run(body())


def test_block_at_another_path_under_the_successor_is_found(at: Account) -> None:
    one, two = build_tree({"keyring.json": b"ring"}), build_tree({"memory/.ipfsmem/keyring.json": b"ring"})

    async def body() -> None:
        writer, reader = at.open(), at.open()
        await writer.put_car(one.cid, one.blocks, name=NAME)
        assert len(await reader.get_blocks([one.cid])) == 1
        await writer.put_car(two.cid, two.blocks, name=NAME)
        await writer.unpin((await writer.pins(NAME))[-1])

        async def get(cids: list[CID]) -> dict[CID, bytes]:
            return await reader.get_blocks(cids)

        assert await drive_async(Reader().read_tree(two.cid), get) == {
            "memory/.ipfsmem/keyring.json": b"ring"
        }

    asyncio.run(body())


def test_other_gateways_receive_no_token(at: Account) -> None:
    put(at)
    with account("filebase-s3") as other:
        asyncio.run(other.open().put_car(tree().cid, tree().blocks, name=NAME))
        seen: list[Any] = []

        async def look(request: web.Request) -> web.StreamResponse:
            seen.append(dict(request.headers))
            found: web.Response = await other.server.gateway(request)
            return found

        other.server.faults.add("GET", "/ipfs/", look, times=-1)
        at.server.faults.answer("GET", "/ipfs/", 503, times=-1)
        found = asyncio.run(files_under(at.open(gateways=[other.url]), tree().cid))
        assert found == FILES and seen
        assert pinata.GATEWAY_TOKEN not in str(seen) and pinata.V3_KEY not in str(seen)


def test_gateway_without_its_token_is_explained(at: Account) -> None:
    put(at)
    with pytest.raises(ProviderRefused, match="401"):
        asyncio.run(at.open(pinata_gateway_token="").get_blocks([tree().cid]))


def test_without_a_gateway_reading_is_refused(at: Account) -> None:
    provider = at.open(pinata_gateway="")
    assert not provider.capabilities.blocks and not provider.capabilities.dag
    with pytest.raises(ProviderRefused, match="no gateway"):
        asyncio.run(provider.get_blocks([tree().cid]))
