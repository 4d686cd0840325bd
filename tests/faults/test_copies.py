"""A home that was copied or restored from a backup: both copies continue, and every text of both reaches
all devices."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.faults.fault_lab import ROOT, Lab, closing, converge, lacks, merged, stay_in_place, sync, texts


@pytest.mark.slow
@pytest.mark.parametrize("published_before", [False, True], ids=["never-published", "published"])
@pytest.mark.parametrize("noticed", [False, True], ids=["by-pair", "by-place"])
def test_two_copies_of_a_home_lose_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published_before: bool, noticed: bool
) -> None:
    stay_in_place(monkeypatch)
    lab = Lab(tmp_path / "lab")
    with closing(lab.create("a")) as (a,):
        if published_before:
            sync(a)
        for i in range(70):
            a.write(f"k{i}", f"text {i}")
        a.note("began")
        if published_before:
            sync(a)
        a.write("late", "not published yet")
        a.note("went-on")
    shutil.copytree(lab.home("a"), lab.home("copy"))
    with closing(lab.open("a"), lab.open("copy")) as (a, copy):
        old = a.device
        a.write("k0", "of a")
        a.write("both", "same name, a")
        a.note("said", who="a")
        copy.write("k1", "of the copy")
        copy.write("both", "same name, copy")
        copy.note("said", who="copy")
        wanted = merged(texts(a), texts(copy))
        wanted["k0"], wanted["k1"] = {"of a"}, {"of the copy"}
        sync(a)
        if noticed:
            monkeypatch.setattr("ipfsmem.device.replica.place", lambda path: "there")
        copy.unlock(ROOT)
        report = sync(copy)
        monkeypatch.setattr("ipfsmem.device.replica.place", lambda path: "here")
        assert report.new_identity
        assert copy.device != old == a.device
        converge(a, copy)
        assert not lacks(texts(a), wanted)
        lines = sorted((e["type"], e.get("who", "")) for e in a.timeline.read())
        assert {("began", ""), ("went-on", ""), ("said", "a"), ("said", "copy")} <= set(lines)


def test_home_restored_from_an_old_backup_gets_a_new_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stay_in_place(monkeypatch)
    lab = Lab(tmp_path / "lab")
    with closing(lab.create("a")) as (a,):
        a.write("one", "first")
        sync(a)
    shutil.copytree(lab.home("a"), lab.folder / "backup")
    with closing(lab.open("a")) as (a,):
        a.write("one", "second")
        a.write("two", "new")
        a.note("since")
        sync(a)
    shutil.rmtree(lab.home("a"))
    shutil.copytree(lab.folder / "backup", lab.home("a"))
    with closing(lab.open("a")) as (a,):
        a.write("three", "after the restore")
        a.note("again")
        a.unlock(ROOT)
        assert sync(a).new_identity
        # No record shows that both copies had "first", so it remains next to its replacement: twice, never
        # lost.
        assert texts(a) == {"one": {"first", "second"}, "two": {"new"}, "three": {"after the restore"}}
        assert {e["type"] for e in a.timeline.read()} == {"since", "again"}
        with closing(lab.restore("b")) as (b,):
            converge(a, b)
            assert texts(b) == texts(a)
