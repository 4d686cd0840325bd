"""All scopes as plain files by the browser client: the same tree as Python's, byte for byte, and imported
again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.memory import Memory
from tests.support.web_lab import PEER_TOKEN, Client, ClientError, by_wallet, root_of, web_client


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with web_client() as started:
        yield started


def files_in(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_exported_tree_equals_that_of_python_and_is_imported_by_both(
    client: Client, url: str, memory: Memory, tmp_path: Path
) -> None:
    web = client.open("exporter", url, **by_wallet(), token=PEER_TOKEN)
    memory.scope("old").write("rule", "From the old one.", type="project", tags=["a b", "c"])
    memory.scopes.redirect("old", "shop")
    memory.write("gone", "Forgotten here.")
    root_of(memory)
    web.sync()
    web.write("menu", "Soup")  # concurrent writes: one is shown, the other is an alternative
    memory.write("menu", "Salad")
    memory.forget("gone")
    web.write("gone", "Wanted after all.")
    web.note("clicked", {"n": 1.5})
    web.sync()
    root_of(memory)
    web.sync()
    memory.bundles.export_folder(tmp_path / "python")
    ours = files_in(tmp_path / "python")
    assert web.exportFiles() == ours
    assert {path.split("/")[0] for path in ours} == {"memory", "scope.json", "scopes"}
    # The alternative, and the text behind the forget.
    assert {path.partition(".")[0] for path in ours if ".conflict-" in path} == {"memory/gone", "memory/menu"}

    # Into the same vault again: nothing is new, but a user must confirm that it is the same.
    with pytest.raises(ClientError, match="the import has one of this name"):
        web.importFiles(ours)
    again = web.importFiles(ours, {"same": True})
    assert (again["added"], again["kept"], again["events"], again["problems"]) == (0, 0, 0, [])

    # Into a new vault, and from there into Python's again: the texts, scopes and cards are the original ones.
    client.ask({"do": "open", "as": "fresh", "label": "fresh", "url": url, "token": PEER_TOKEN, "create": True, "recovery": True})  # fmt: skip
    fresh = client.device("fresh")
    taken = fresh.importFiles(ours)
    assert taken["problems"] == [] and taken["added"] >= 4
    theirs = fresh.exportFiles()
    without_events = {path: text for path, text in ours.items() if "/timeline/" not in path}
    assert {path: text for path, text in theirs.items() if "/timeline/" not in path} == without_events
    assert sum(text.count("\n") for path, text in theirs.items() if "/timeline/" in path) == sum(
        text.count("\n") for path, text in ours.items() if "/timeline/" in path
    )
    for path, text in theirs.items():
        (tmp_path / "web" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "web" / path).write_text(text, "utf-8")
    with Memory.create("other", "local", home=tmp_path / "other") as other:
        other.bundles.import_(tmp_path / "web")
        there = other.scope("old").read("rule")
        assert there is not None and there.file.body == "From the old one."
        assert set(other.scopes.names()) == {"old", "shop"}
        assert [one.key for one in other.conflicts()] == ["gone", "menu"] and other.read("gone") is None
