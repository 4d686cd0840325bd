"""The list of pin requests: stored in files, shared by servers, robust against invalid files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ipfsmem.errors import StorageError
from ipfsmem.http.psa_requests import PINNED, QUEUED, PinRequests

CID = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"


@pytest.fixture(params=["memory", "folder"])
def requests(request: pytest.FixtureRequest, tmp_path: Path) -> PinRequests:
    return PinRequests(tmp_path / "psa" if request.param == "folder" else None)


def test_requests_are_listed_newest_first_with_distinct_times(requests: PinRequests) -> None:
    made = [requests.add(CID, f"n{n}", [], {}, now) for n, now in enumerate((5, 5, 3, 90))]
    assert [each.created for each in made] == [5, 6, 7, 90]
    assert requests.all() == made[::-1]
    assert [requests.get(each.id) for each in made] == made


def test_pin_request_is_changed_and_removed(requests: PinRequests) -> None:
    import msgspec

    made = requests.add(CID, "n", ["/ip4/127.0.0.1/tcp/9"], {"a": "b"}, 1)
    pinned = msgspec.structs.replace(made, status=PINNED, handle="h")
    requests.change(pinned)
    assert requests.all() == [pinned] == [requests.get(made.id)]
    requests.drop(made.id)
    requests.drop(made.id)
    requests.change(pinned)  # it was dropped while its blocks were checked
    assert requests.all() == [] and requests.get(made.id) is None


def test_another_server_sees_requests_at_once(tmp_path: Path) -> None:
    import msgspec

    one, two = PinRequests(tmp_path / "psa"), PinRequests(tmp_path / "psa")
    assert one.all() == two.all() == [] and not (tmp_path / "psa").exists(), (
        "nothing is made before it is needed"
    )
    made = one.add(CID, "n", [], {"x": "ü"}, 1)
    assert two.get(made.id) == made and two.all() == [made]
    pinned = msgspec.structs.replace(made, status=PINNED, handle="h")
    two.change(pinned)
    assert one.get(made.id) == pinned and one.all() == [pinned]
    later = two.add(CID, "m", [], {}, 1)
    assert later.created == 2 and one.all() == [later, pinned]
    one.drop(made.id)
    assert two.get(made.id) is None and two.all() == [later]
    assert PinRequests(tmp_path / "psa").all() == [later]


@pytest.mark.parametrize("id_", ["", "../../x", "x" * 32, "0" * 31, "0" * 32, "A" * 32, "\0"])
def test_request_id_is_never_used_as_a_path(requests: PinRequests, id_: str) -> None:
    assert requests.get(id_) is None
    requests.drop(id_)


def test_invalid_files_in_the_folder_are_skipped(tmp_path: Path) -> None:
    folder = tmp_path / "psa"
    requests = PinRequests(folder)
    made = requests.add(CID, "n", [], {}, 1)
    good = (folder / f"{made.id}.json").read_bytes()
    rubbish = {
        "0" * 32: b"", "1" * 32: b"{", "2" * 32: b"[" * 100_000, "3" * 32: good, "4" * 32: b"\xff",
        "5" * 32: good.replace(made.id.encode(), b"5" * 32).replace(CID.encode(), b"no"),
        "6" * 32: good.replace(made.id.encode(), b"6" * 32).replace(b'"queued"', b'"gone"'),
        "7" * 32: good.replace(made.id.encode(), b"7" * 32) + b" " * (2 << 20),
    }  # fmt: skip
    for name, data in rubbish.items():
        (folder / f"{name}.json").write_bytes(data)
    (folder / "readme.txt").write_text("x")
    (folder / f"{'8' * 32}.json").mkdir()
    os.symlink(folder / f"{made.id}.json", folder / f"{'9' * 32}.json")
    for each in (requests, PinRequests(folder)):
        assert each.all() == [made]
        assert [each.get(name) for name in rubbish] == [None] * len(rubbish)
    # A file that a sync program truncated and completes later is valid again.
    (folder / f"{made.id}.json").write_bytes(good[:9])
    assert requests.all() == []
    (folder / f"{made.id}.json").write_bytes(good)
    assert requests.all() == [made] and json.loads(good)["status"] == QUEUED


def test_failing_disk_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    requests = PinRequests(tmp_path / "file")
    with pytest.raises(StorageError):
        requests.add(CID, "n", [], {}, 1)
    with pytest.raises(StorageError, match="cannot be listed"):
        requests.all()
