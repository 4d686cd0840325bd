"""Creates a database of the current version for tests of later versions: `python -m
tests.support.schema_fixture`.

One sealed vault that has published, joined and received data, and one with plain files. Fixtures never
change: a later version of the tables gets its own folder, and tests open all."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

from ipfsmem.device.tables import schema
from ipfsmem.memory import Memory
from tests.support.device_lab import VAULT_NAME, Lab, no_chance_in_boxes

FIXTURES = Path(__file__).parents[2] / "fixtures" / "databases"
#: Files of a vault in a fixture; the database is compressed.
FILES = ("ipfsmem.json", "device.key")
TEXTS = {f"note_{n:02}": f"Text {n}.\n\nIt was written by device a." for n in range(6)}


def sealed(folder: Path) -> Path:
    """Create a device that wrote, published, joined a concurrent write, and has unpublished writes."""
    lab = Lab(folder)
    a = lab.create("a", recovery=True)
    for key, text in TEXTS.items():
        a.write(key, text)
    a.note("remark", text="before the first publish")
    lab.sync(a)
    b = lab.restore("b")
    b.write("note_00", "Text 0, as b says it.")
    a.write("note_00", "Text 0, as a says it.")
    b.write("of_b", "b alone wrote this.")
    lab.sync(b)
    lab.sync(a)
    a.forget("note_01")
    a.write("waiting", "Not published yet.")
    lab.close()
    return lab.home("a") / VAULT_NAME


def plain(folder: Path) -> Path:
    """Create a device without a vault whose plain files include an edited and a replaced one."""
    memory = Memory.create(VAULT_NAME, "local", home=folder / "home", passphrase=False)
    for key, text in TEXTS.items():
        memory.write(key, text)
    file = folder / "home" / VAULT_NAME / "memory" / "note_02.md"
    file.write_text(file.read_text("utf-8") + "\nA line by hand.\n", "utf-8")
    memory.read("note_02")
    memory.write("note_03", "Text 3, once more.")
    memory.close()
    return folder / "home" / VAULT_NAME


def keep(name: str, made: Path) -> None:
    """Store the files of a vault as fixtures of the current version."""
    into = FIXTURES / f"schema-{schema.VERSION}" / name
    into.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        (into / file).write_bytes((made / file).read_bytes())
    (into / "state.db.gz").write_bytes(gzip.compress((made / "state.db").read_bytes(), 9, mtime=0))


def versions() -> list[int]:
    """Return the versions that have a fixture."""
    return sorted(int(path.name.removeprefix("schema-")) for path in FIXTURES.iterdir())


def unpack(version: int, name: str, into: Path) -> None:
    """Unpack a vault as its device had it."""
    found = FIXTURES / f"schema-{version}" / name
    into.mkdir(parents=True)
    for file in FILES:
        (into / file).write_bytes((found / file).read_bytes())
    (into / "state.db").write_bytes(gzip.decompress((found / "state.db.gz").read_bytes()))


def main() -> None:
    """Write both."""
    with tempfile.TemporaryDirectory() as folder, no_chance_in_boxes():
        for name, make in (("sealed", sealed), ("plain", plain)):
            keep(name, make(Path(folder) / name))
    print(json.dumps(versions()))


if __name__ == "__main__":
    main()
