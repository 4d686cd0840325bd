"""The helper that builds counterparts: skips without them, fails where they are required, caches whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop import counterparts


def test_missing_program_skips_or_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("IPFSMEM_REQUIRE_COUNTERPARTS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="go is not installed"):
        counterparts.gopeer("cid", ".")
    monkeypatch.setenv("IPFSMEM_REQUIRE_COUNTERPARTS", "1")
    with pytest.raises(pytest.fail.Exception, match="node is not installed"):
        counterparts.node("cid.mjs", ".")


def test_cache_is_built_once_and_only_completely(tmp_path: Path) -> None:
    calls = []

    def make(target: Path) -> None:
        calls.append(target)
        (target / "built").write_text("x")
        if len(calls) == 1:
            raise AssertionError("build failed")

    with pytest.raises(AssertionError, match="build failed"):
        counterparts.cached("thing", "key", make, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".thing.lock"]
    for _ in range(2):
        assert (counterparts.cached("thing", "key", make, tmp_path) / "built").read_text() == "x"
    assert len(calls) == 2 and sorted(path.name for path in tmp_path.iterdir()) == [
        ".thing.lock",
        "thing-key",
    ]


def test_key_follows_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    before = counterparts.content_key([tmp_path / "a"])
    (tmp_path / "a").write_text("2")
    assert counterparts.content_key([tmp_path / "a"]) != before


def test_failing_program_is_quoted() -> None:
    with pytest.raises(AssertionError, match=r"no such|cannot access|No such"):
        counterparts.run(["ls", "/nowhere/at/all"])
