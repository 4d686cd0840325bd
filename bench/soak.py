"""Long proofs by name: `python -m bench.soak NAME [--seed N] [--count N] [--seconds N]`.

Each draws its steps from a seed, prints its progress and a table, and ends with 1 if anything did not hold, with 2 if a program that
it compares with is missing. The tests run each one in a short form.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

import pytest

#: Module of each proof; it has `run(seed, count, seconds) -> int`, the exit code. `count` or `seconds` 0: no limit of that kind.
PROOFS = {
    "git": "bench.soak_git",
    "handles": "bench.soak_handles",
    "mailbox": "bench.soak_mailbox",
    "mutants": "bench.soak_mutants",
    "parsers": "bench.soak_parsers",
    "vaults": "bench.soak_vaults",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one proof. Returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("name", choices=sorted(PROOFS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000, help="cases to draw (0: until the time is up)")
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after so long (0: no limit)")
    parser.add_argument("--json", action="store_true", help="print one JSON object (mutants only)")
    asked = parser.parse_args(arguments)
    if not asked.count and not asked.seconds:
        parser.error("give --count or --seconds")
    if asked.json and asked.name != "mutants":
        parser.error("only mutants has --json")
    os.environ.setdefault(
        "IPFSMEM_REQUIRE_COUNTERPARTS", "1"
    )  # a proof builds the browser client that it compares with
    try:
        proof = importlib.import_module(PROOFS[asked.name])
        more = {"as_json": True} if asked.json else {}
        code: int = proof.run(asked.seed, asked.count, asked.seconds, **more)
    except pytest.fail.Exception as error:
        print(error.msg, file=sys.stderr)
        return 2
    return code


if __name__ == "__main__":
    sys.exit(main())
