"""Pinata's own client with the stand-in, so that the stand-in follows the service and not our provider."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ipfsmem.content.car import car_bytes
from tests.interop.counterparts import need_program, npm_folder, run
from tests.servers import pinata
from tests.unit.providers.services_lab import account, files_under, tree

pytestmark = pytest.mark.interop


def test_official_pinata_client_gets_the_expected_answers(tmp_path: Path) -> None:
    script = npm_folder("pinata_sdk") / "drive.mjs"
    made = tree()
    car = tmp_path / "tree.car"
    car.write_bytes(car_bytes([made.cid], made.blocks))
    with account("pinata-car") as at:
        at.server.rooted = False
        keys = f"{pinata.V3_KEY},{pinata.LEGACY_KEY}"
        out = json.loads(
            run([need_program("node"), script, at.url, keys, pinata.GATEWAY_TOKEN, car, str(made.cid)])
        )
        assert "Congratulations" in out["auth"]["message"]
        assert out["file"]["name"] == "greeting" and out["file"]["keyvalues"] == {"kind": "note"}
        assert (out["file"]["network"], out["hidden"]) == ("public", "private")
        assert out["json"]["name"] == "data"
        assert out["car"] == str(made.cid)
        assert out["large"]["size"] == 95_000_000 and len(at.server.uploads) == 1
        assert out["folder"]["cid"].startswith("bafy") and out["folder"]["number_of_files"] == 2
        assert [file["id"] for file in out["byName"]] == [out["file"]["id"]]
        assert out["byKeyvalue"] == ["greeting"] and out["byCid"] == ["tree"] and out["first"] == ["greeting"]
        assert out["all"] == 5
        assert out["one"]["cid"] == out["file"]["cid"] and out["renamed"] == "salute"
        assert out["job"]["cid"] == "bafkqaaa" and out["queue"] == ["searching"]
        assert out["read"] == 5
        assert len(out["deleted"]) == 2 and out["after"] == 0
        assert "401" in json.dumps(out["unknown"]) or "INVALID_CREDENTIALS" in out["unknown"]["text"]
        assert "NO_SCOPES_FOUND" in out["scopeless"]["text"]
        # Our provider lists and reads the client's uploads, so both speak to the same server.
        [pin] = asyncio.run(at.open().pins("tree"))
        assert pin.cid == made.cid
        assert len(asyncio.run(files_under(at.open(), made.cid))) == 6
