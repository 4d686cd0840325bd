"""`ipfsmem demo` passes on the sample and on other texts, and reports a claim that does not hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipfsmem import demo
from ipfsmem.cli import app
from ipfsmem.memory import Memory
from tests.support.cli_lab import Cli
from tests.support.device_lab import delete


@pytest.fixture
def few(tmp_path: Path) -> str:
    """A small vault of the user's own."""
    files = {f"note_{n}.md": f"---\nname: Note {n}\n---\n\nPersonal sentence number {n}.\n" for n in range(6)}
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"version": "memory/0.1", "files": files}))
    return str(path)


def test_every_claim_of_the_demo_holds_on_the_sample(bare: Cli) -> None:
    result = bare.ok("demo")
    lines = result.out.splitlines()
    steps = [line for line in lines if line[:2].strip().isdigit()]
    assert len(steps) == 12 and all(line[3] == "✓" for line in steps)
    roots = [line.split()[2] for line in lines if line.startswith(("   A has  ", "   B has  "))]
    assert len(roots) == 2 and roots[0] == roots[1] and roots[0].startswith("bafy") and len(roots[0]) == 59
    assert "claims held." in lines[-1] and "204 memories, 510 events" in result.out
    assert max(map(len, lines)) <= 80, "every row wrapped"
    assert not bare.home.exists()


def test_demo_in_its_own_process_prints_only_its_steps(few: str, tmp_path: Path) -> None:
    cheap = "import sys; from ipfsmem.cli import main; from tests.support import passphrase_cost as cost; cost.make_cheap(); sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", cheap, "demo", "--from", few],
        capture_output=True, text=True, cwd=tmp_path, timeout=120, check=True, env=environment,
    )  # fmt: skip
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line[:2].strip() for line in lines[:12]] == [str(n) for n in range(1, 13)] and not lines[12]


def test_demo_as_json_runs_on_given_texts(bare: Cli, few: str) -> None:
    found = bare.ok("demo", "--from", few, "--json").json
    assert found["held"] and found["claims"] >= 30 and found["folder"] is None
    assert found["roots"]["A"] == found["roots"]["B"]
    by_title = {step["title"]: step for step in found["steps"]}
    assert by_title["A imports texts"]["facts"]["memories"] == 6
    damage = by_title["A syncs, a byte flips"]["facts"]
    assert damage["block"] in damage["refusal"][0]
    assert by_title["Nobody can read it"]["facts"]["words"] >= 8


@pytest.mark.parametrize("texts", [{}, {"one.md": "x\n"}, {"a.md": "", "b.md": "---\nname: B\n---\n"}])
def test_demo_runs_on_empty_or_tiny_input(bare: Cli, tmp_path: Path, texts: dict[str, str]) -> None:
    (tmp_path / "little.json").write_text(json.dumps({"version": "memory/0.1", "files": texts}))
    assert bare.ok("demo", "--from", str(tmp_path / "little.json"), "--json").json["held"]


def test_demo_runs_on_a_folder_of_files(bare: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "claude"
    folder.mkdir()
    for n in range(7):
        (folder / f"Some Note {n}.md").write_text(f"# Überschrift {n}\n\nKörper mit Umlauten, Nummer {n}.\n")
    (folder / "broken.md").write_bytes(b"\xff\xfe")
    found = bare.ok("demo", "--from", str(folder), "--json").json
    assert found["held"] and found["steps"][2]["facts"]["memories"] == 7
    assert len(found["steps"][2]["facts"]["problems"]) == 1


def test_demo_keep_leaves_both_devices(
    bare: Cli, few: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "kept"
    assert str(place) in bare.ok("demo", "--from", few, "--keep", "--dir", str(place)).out
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", demo.PASSPHRASE)
    for device in "ab":
        shown = Cli(place / device, monkeypatch).ok("list", "--namespace", demo.VAULT_NAME).out
        assert len(shown.splitlines()) == 5  # six, one of them forgotten
    bare.fails(2, "demo", "--keep", "--dir", str(place))
    bare.fails(2, "demo", "--dir", str(tmp_path / "x"))
    bare.fails(4, "demo", "--from", str(tmp_path / "missing"))


Breaker = Callable[[pytest.MonkeyPatch], None]


def _no_damage(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(demo.DamagedByte, "flip", lambda self: None)


def _not_repaired(patch: pytest.MonkeyPatch) -> None:
    flip, calls = demo.DamagedByte.flip, []

    def once(self: demo.DamagedByte) -> None:
        calls.append(1)
        if len(calls) == 1:
            flip(self)

    patch.setattr(demo.DamagedByte, "flip", once)


def _before(patch: pytest.MonkeyPatch, step: str, meddle: Callable[[demo.Demo], Any]) -> None:
    real = getattr(demo.Demo, step)

    def wrapped(self: demo.Demo) -> Any:
        meddle(self)
        return real(self)

    patch.setattr(demo.Demo, step, wrapped)


def _leak_a_word(patch: pytest.MonkeyPatch) -> None:
    _before(
        patch, "_search_for_plaintext", lambda d: (d.provider / "packs" / "x").write_bytes(b"\0Personal\0")
    )


def _leak_a_file_name(patch: pytest.MonkeyPatch) -> None:
    _before(patch, "_search_for_plaintext", lambda d: (d.provider / "sentence.txt").touch())


def _leak_on_a_device(patch: pytest.MonkeyPatch) -> None:
    _before(
        patch, "_search_for_plaintext", lambda d: (d.home_b / "x").write_text("Personal sentence number 3.")
    )


def _lose_a_text(patch: pytest.MonkeyPatch) -> None:
    _before(patch, "_compare_devices", lambda d: delete(d._b, d.only_a))


def _lose_the_conflict(patch: pytest.MonkeyPatch) -> None:
    _before(patch, "_sync_both", lambda d: d._b.resolve(d.clash, seen=d._b.conflicts()[0]))


def _change_after_the_last_sync(patch: pytest.MonkeyPatch) -> None:
    _before(patch, "_compare_devices", lambda d: d._a.note("late"))


def _another_wallet(patch: pytest.MonkeyPatch) -> None:
    def swap(d: demo.Demo) -> None:
        (d.home_a / "wallet.json").unlink()
        demo.create_keystore(d.home_a / "wallet.json", demo.PASSPHRASE, b"\x07" * 32)

    _before(patch, "_recover_on_b", swap)


def _open_to_all(patch: pytest.MonkeyPatch) -> None:
    create = Memory.create.__func__  # type: ignore[attr-defined]
    patch.setattr(
        Memory,
        "create",
        classmethod(lambda cls, name, mode, **more: create(cls, name, "ipfs", public_ok=True, **more)),
    )


@pytest.mark.parametrize(
    "break_it",
    [
        _no_damage, _not_repaired, _leak_a_word, _leak_a_file_name, _leak_on_a_device, _lose_a_text,
        _lose_the_conflict, _change_after_the_last_sync, _another_wallet, _open_to_all,
    ],
)  # fmt: skip
def test_false_claim_is_shown_and_sets_the_exit_code(
    bare: Cli, few: str, monkeypatch: pytest.MonkeyPatch, break_it: Breaker
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        result = bare("demo", "--from", few)
        assert result.code == 1, result
        assert "✗ failed: " in result.out and " failed." in result.out
        assert "Traceback" not in result.err


def test_false_claim_is_reported_as_json(bare: Cli, few: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _leak_a_word(monkeypatch)
    result = bare("demo", "--from", few, "--json")
    assert result.code == 1 and result.json["held"] is False
    assert [step["held"] for step in result.json["steps"]] == [True] * 11 + [False]


def test_packaged_sample_equals_the_source_texts() -> None:
    import importlib.util

    root = Path(app.__file__).parents[2]
    spec = importlib.util.spec_from_file_location(
        "make_sample", root / "fixtures" / "sample" / "make_sample.py"
    )
    assert spec is not None and spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert maker.sample() == maker.TARGET.read_bytes()
