"""The command line of the bench: which sizes and cases to run, then the table and RESULTS.md."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import msgspec
from rich.console import Console

from bench import (
    agents,
    api,
    backup,
    browser,
    context_blocks,
    dreams,
    latency,
    life,
    local,
    neighbours,
    network,
    peers,
    recall,
    sessions,
    shares,
    syncing,
)
from bench.context import Context
from bench.measure import Row, process
from bench.report import markdown, tables

CASES = {
    "start": local.start,
    "pack": local.pack,
    "seal": local.seal,
    "join": local.join,
    "writes": local.writes,
    "publish": syncing.publish,
    "exchange": syncing.exchange,
    "presence": syncing.presence,
    "backup": backup.backup,
    "shares": shares.shares,
    "recall": recall.recall,
    "sessions": sessions.sessions,
    "context": context_blocks.context_blocks,
    "dreams": dreams.dreams,
    "graph": life.graph,
    "facts": life.facts,
    "usage": life.usage,
    "peers": peers.peers,
    "api": api.api,
    "agents": agents.agents,
    "latency": latency.latency,
    "network": network.network,
    "neighbours": neighbours.neighbours,
    "browser": browser.browser,
}
#: Cases that run on request only: they start servers and browsers, take minutes, or need a third-party
#: program. `network` writes RESULTS_NETWORK.md.
ASKED = {"latency", "network", "neighbours", "peers", "browser"}
#: Cases whose result is the same at every size, and the size at which they run.
ONCE = {"start", "backup", "shares", "network", "neighbours"}
RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures ipfsmem.")
    parser.add_argument("--sizes", default="100,1000,10000,100000", help="numbers of memories")
    parser.add_argument(
        "--quick", action="store_true", help="100 and 1,000 memories, few repeats; writes no RESULTS.md"
    )
    parser.add_argument(
        "--only", action="append", choices=sorted(CASES), help="only this case (may be repeated)"
    )
    parser.add_argument("--json", type=Path, help="also write all numbers here")
    parser.add_argument("--work", type=Path, help="where to work; a temporary directory when not given")
    parser.add_argument(
        "--again", type=Path, help="measure nothing: show and write the numbers in this --json file"
    )
    parser.add_argument(
        "--write",
        type=Path,
        metavar="FILE",
        help="also write the tables here, such as bench/RESULTS_RECALL.md",
    )
    parser.add_argument(
        "--initrunner",
        type=Path,
        metavar="PYTHON",
        help="a Python with initrunner==1.0.0, for the case peers",
    )
    parser.add_argument(
        "--mcp-memory",
        type=Path,
        metavar="FILE",
        help="dist/index.js of @modelcontextprotocol/server-memory, for the case peers",
    )
    given = parser.parse_args()
    if given.again:
        _show(
            Console(), msgspec.json.decode(given.again.read_bytes(), type=list[Row]), given.write or RESULTS
        )
        return
    sizes = [100, 1_000] if given.quick else sorted(int(size) for size in given.sizes.split(","))
    console = Console()
    process([sys.executable, "-c", "pass"])  # the launcher must start while this process is small
    work = Path(tempfile.mkdtemp(prefix="ipfsmem-bench-", dir=given.work))
    rows: list[Row] = []
    once = max([size for size in sizes if size <= 10_000], default=sizes[0])
    try:
        for size in sizes:
            ctx = Context(
                size,
                work,
                quick=given.quick,
                say=lambda line: console.print(line, style="dim", highlight=False),
            )
            ctx.initrunner, ctx.mcp_memory = given.initrunner, given.mcp_memory
            for name, case in CASES.items():
                if (name not in given.only if given.only else name in ASKED) or (
                    name in ONCE and size != once
                ):
                    continue
                case(ctx)
                # Results are kept even if a later case fails.
                if given.json:
                    given.json.write_bytes(
                        msgspec.json.format(msgspec.json.encode([*rows, *ctx.rows])) + b"\n"
                    )
            rows += ctx.rows
            shutil.rmtree(ctx.work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    _show(console, rows, given.write or (None if given.quick or given.only else RESULTS))


def _show(console: Console, rows: list[Row], write: Path | None) -> None:
    for table in tables(rows):
        console.print(table)
    if write is not None:
        write.write_text(markdown(rows), "utf-8")
    missed = [row for row in rows if not all(row.verdicts())]
    for row in missed:
        console.print(f"over budget: {row.name} at {row.size:,}", style="bold red")


if __name__ == "__main__":
    main()
