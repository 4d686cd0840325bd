"""Record the behaviour of this program, or compare it with the record: `python -m bench.oracles compare|record [PART...]`.

`compare` prints each difference from `bench/oracles/recorded`, and ends with 1 if a deterministic part differs. Of `lines`, `work` and
`times`, which vary from run to run, it prints changes by more than a tenth, which do not change the exit code.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from bench.oracles import costs, seeds, shapes
from bench.oracles.comparing import MEASURED, as_text, differences

FOLDER: Final = Path(__file__).parent / "recorded"
PARTS: Final[Mapping[str, Callable[[], Any]]] = {
    "commands": shapes.commands,
    "help": shapes.helps,
    "openapi": shapes.routes,
    "tools": shapes.tools,
    "vaults": seeds.vaults,
    "vectors": seeds.vectors,
    "retrieval": seeds.retrieval,
    "modules": costs.modules,
    "lines": costs.lines,
    "work": costs.work,
    "times": costs.times,
}


def main(arguments: list[str] | None = None) -> int:
    """Run `compare` or `record`; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.oracles", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("what", choices=("compare", "record"))
    parser.add_argument(
        "part", nargs="*", choices=[*PARTS, []], help="parts to compare or record; default: all"
    )
    given = parser.parse_args(arguments)
    differs = False
    for name in given.part or PARTS:
        now = json.loads(as_text(PARTS[name]()))
        file = FOLDER / f"{name}.json"
        if given.what == "record":
            FOLDER.mkdir(exist_ok=True)
            file.write_text(as_text(now), "utf-8")
            continue
        found = differences(name, json.loads(file.read_text("utf-8")), now)
        print("\n".join(found) if found else f"{name}: as recorded", flush=True)
        differs |= bool(found) and name not in MEASURED
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
