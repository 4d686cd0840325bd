"""The browser client, a second implementation in TypeScript, sees what this program sees: every vector, and rings of attackers.

Its reader was written from docs/FORMAT.md alone. Where the two disagree, one of them is wrong, or the document says too little.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web

from ipfsmem.ring.statements import envelope
from tests.interop.counterparts import built_web, need_program, run
from tests.servers.threaded import serve
from tests.support.browsers import BROWSERS, browser
from tests.support.effort import cases
from tests.support.ring_lab import Attacker
from tests.support.ring_vectors import full_join_rows, rings, view_of

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"
#: Blocks of w3up services are the business of a provider, and no part of the format; the client reads no mailbox and no agent keys yet.
NOT_OF_THE_CLIENT = {"agent_keys.json", "mailbox.json", "ucan.json"}


def judged(folder: Path, *names: str) -> dict[str, dict[str, Any]]:
    """What the client says of the vectors in a folder, by file."""
    lines = run([need_program("node"), built_web() / "node.js", folder, *names]).splitlines()
    return {one["file"]: one for one in map(json.loads, lines)}


@pytest.fixture(scope="module")
def in_node() -> dict[str, dict[str, Any]]:
    return judged(VECTORS)


@pytest.mark.parametrize("file", sorted(path.name for path in VECTORS.glob("*.json")))
def test_client_agrees_with_the_vectors_in_node(file: str, in_node: dict[str, dict[str, Any]]) -> None:
    if file in NOT_OF_THE_CLIENT:
        assert file not in in_node
    else:
        assert in_node[file]["fails"] == [] and in_node[file]["rows"] > 0


def served() -> web.Application:
    """An empty page, the client that was built, and the vectors."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>vectors</title>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    app.router.add_static("/built", built_web())
    app.router.add_static("/vectors", VECTORS)
    return app


async def judged_in(name: str, url: str) -> tuple[str, list[dict[str, Any]]]:
    async with browser(name) as page:
        await page.goto(url)
        found = await page.evaluate("import('/built/browser.js').then((built) => built.judgedAt('/vectors'))")
        return await page.evaluate("navigator.userAgent"), found


@pytest.mark.slow
@pytest.mark.parametrize("name", BROWSERS)
def test_client_agrees_with_the_vectors_in_a_browser(name: str, in_node: dict[str, dict[str, Any]]) -> None:
    """Each row of each file, as in Node: the engines' own cryptography, numbers, texts and order of names."""
    with serve(served) as url:
        agent, found = asyncio.run(judged_in(name, url))
    assert name in agent.lower().replace("headlesschrome", "chromium")
    assert [one for one in found if one["fails"]] == []
    assert {one["file"]: one["rows"] for one in found} == {file: one["rows"] for file, one in in_node.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROWSERS)
@pytest.mark.parametrize("script", ["page_worker.js", "no_such_worker.js"])
def test_worker_decides_like_the_main_thread(name: str, script: str) -> None:
    """Signatures and objects by the hundred, good and bad, also where no further worker starts."""

    async def compared(url: str) -> Any:
        async with browser(name) as page:
            await page.goto(url)
            asked = (
                f"import('/built/browser.js').then(built => built.besideAt('/vectors', '/built/{script}'))"
            )
            return await page.evaluate(asked)

    built_web()  # without it this test is skipped, here and not in the thread that serves
    with serve(served) as url:
        assert asyncio.run(compared(url)) == {"asked": 1400, "differ": []}


def test_client_evaluates_rings_of_attackers_like_python(tmp_path: Path) -> None:
    """Members, families, persons and keys, for random subsets of statements."""
    built_web()
    statements: dict[str, Any] = {}
    evaluations = []
    for seed in range(1, 1 + cases(2, 40)):
        attacker, random = Attacker(seed), Random(seed)
        for size in (5, 15, 15, 40, 40, 40, 100, 100):
            chosen = random.sample(range(len(attacker.heap)), size)
            ring = attacker.ring(chosen, random.choice([1, 2, 3]))
            said = [attacker.heap[n] for n in chosen] + list(
                attacker.genesis if len(ring.view.roots) == 3 else ()
            )
            said += [st for st in ring.statements if st not in said]
            for st in said:
                statements[st.hash] = {"k": envelope(st).k, "s": envelope(st).s}
            evaluations.append(
                {
                    "name": f"seed {seed}, {size} statements",
                    "statements": [st.hash for st in said],
                    "view": view_of(ring),
                }
            )
    known = json.loads((VECTORS / "ring.json").read_text("utf-8"))
    none: dict[str, Any] = {
        "parties": [],
        "rings": [],
        "joins": [],
        "refused_joins": [],
        "refused_keyrings": [],
    }
    (tmp_path / "ring.json").write_text(
        json.dumps({**known, **none, "statements": statements, "evaluations": evaluations}), "utf-8"
    )
    found = judged(tmp_path, "ring")["ring.json"]
    assert found["fails"] == [] and found["rows"] > len(evaluations)


def test_client_refuses_joins_of_rings_over_each_limit(tmp_path: Path) -> None:
    built_web()
    known = json.loads((VECTORS / "ring.json").read_text("utf-8"))
    rows = full_join_rows(rings()["new vault: wallet, recovery words, laptop"])
    none: dict[str, Any] = {"rings": [], "joins": [], "evaluations": [], "refused_keyrings": []}
    (tmp_path / "ring.json").write_text(json.dumps({**known, **none, "refused_joins": rows}), "utf-8")
    found = judged(tmp_path, "ring")["ring.json"]
    assert found["fails"] == [] and found["rows"] >= len(rows) == 3
