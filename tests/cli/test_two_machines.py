"""The script `docs/two_machines.py`: its claims hold, and its texts are plain only in the agents' own
folders."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from ipfsmem.device.replica import Environment
from ipfsmem.files.working_copy import QUIET
from tests.support.extras import need_extra


def the_play() -> ModuleType:
    spec = spec_from_file_location("two_machines", Path(__file__).parents[2] / "docs" / "two_machines.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_script_ends_with_equal_folders_and_detects_plain_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need_extra("mcp", "mcp")  # connect writes no entry for a server that cannot start
    play = the_play()
    desktop, laptop = play.play(tmp_path)
    assert desktop.memories() == laptop.memories()
    assert "# Both folders are equal" in capsys.readouterr().out
    now, random = Environment().now, Environment().random
    monkeypatch.setattr(Environment.__init__, "__defaults__", (lambda: now() + 2 * QUIET, random))
    play.settle(desktop, laptop)
    assert desktop.texts() == laptop.texts()
    lines = desktop.texts()["MEMORY.md"]
    assert all(f"]({key}.md)" in lines for key in ("deploy", "desk", "lap", "role"))
    assert {"deploy.md", "desk.md", "lap.md", "role.md"} <= desktop.texts().keys()
    (desktop.home / "note").write_text("firmware")  # the search finds a plain word
    with pytest.raises(AssertionError, match="firmware"):
        play.look_for_words(tmp_path, (desktop, laptop))
