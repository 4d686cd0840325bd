"""Facts, the graph and usage: the waiting time of an agent that remembers a sentence, queries relations,
and sums costs."""

from __future__ import annotations

import json
import random
import time
from statistics import median as middle

from bench.context import Context
from bench.measure import fsync_once, median
from bench.process import VAULT_NAME, unlock

#: Budgets of a path, and of an entity's neighbourhood to depth 3, at 10,000 entities.
GRAPH_BUDGET = 0.02
#: More entities or uses take minutes to create.
_MOST = 10_000
_TREES = 8


def graph(ctx: Context) -> None:
    """Measure as many entities as the size, each related to four others, in an encrypted vault."""
    from ipfsmem.memory import Memory

    if ctx.size > _MOST:
        return
    home, chance = ctx.fresh("graph"), random.Random(ctx.size)
    folder = ctx.fresh("graph-files") / "memory"
    folder.mkdir()
    for number in range(ctx.size):
        others = (chance.randrange(ctx.size) for _ in range(4))
        relations = "".join(f"- knows: [[e{other:05}]]\n" for other in others)
        text = f"---\nname: Entity {number}\ntype: reference\ntags: [entity]\ncategory: person\n---\n\n- is number {number}\n\nRelations:\n\n{relations}"
        (folder / f"e{number:05}.md").write_text(text)
    last = f"e{ctx.size - 1:05}"
    with Memory.create(VAULT_NAME, "encrypted-ipfs", unlock=unlock(), passphrase=False, home=home) as memory:
        memory.bundles.import_(folder.parent)
    for name, note in (
        ("a", "without a stored graph"),
        ("a later", "with the graph stored by an earlier process"),
    ):
        with Memory.load(VAULT_NAME, unlock=unlock(), passphrase=False, home=home) as memory:
            memory.list()  # the vault is open; the graph is not
            started = time.perf_counter()
            memory.graph.path("e00000", last)
            took = time.perf_counter() - started
            ctx.add(f"graph: first path query in {name} process", took, note=note)
    with Memory.load(VAULT_NAME, unlock=unlock(), passphrase=False, home=home) as memory:
        ways = [f"e{chance.randrange(ctx.size):05}" for _ in range(50)]
        memory.graph.path("e00000", last)
        each = iter(ways * 10)
        runs = ctx.runs(50)
        ctx.add(
            "graph: path",
            median(lambda: memory.graph.path("e00000", next(each)), runs),
            runs=runs,
            budget_seconds=GRAPH_BUDGET,
        )
        ctx.add(
            "graph: around, depth 3",
            median(lambda: memory.graph.around(next(each), 3, limit=1_000), runs),
            runs=runs,
            budget_seconds=GRAPH_BUDGET,
        )
        started = time.perf_counter()
        memory.graph.relate("e00000", "likes", "e00002")
        ctx.add("graph: add a relation between two entities", time.perf_counter() - started)
        ctx.add(
            "graph: path after a change", median(lambda: memory.graph.path("e00000", last), 1, warm=False)
        )


def facts(ctx: Context) -> None:
    """Measure a new fact next to as many as the size."""
    from ipfsmem.memory import Memory

    if ctx.size > _MOST:
        return
    home, chance = ctx.fresh("facts"), random.Random(ctx.size)
    words = sorted({word for text in list(ctx.files.values())[:50] for word in text.decode().split()})

    def sentence() -> str:
        return "The user said " + " ".join(chance.choices(words, k=8))

    with Memory.create(VAULT_NAME, "encrypted-ipfs", unlock=unlock(), passphrase=False, home=home) as memory:
        files = {
            f"fact_{number:016x}.md": f"---\nname: Fact\ntype: reference\ncategory: general\n---\n\n{sentence()}\n"
            for number in range(ctx.size)
        }
        blob = {"version": "memory/0.1", "index": "", "files": files, "timeline": []}
        memory.bundles.import_(json.dumps(blob))
        for _ in range(5):  # this many are added before the words of all are cached
            memory.facts.add(sentence())
        disk, own = [], []
        for _ in range(30):
            started = time.perf_counter()
            fsync_once(home, b"x" * 400)
            disk.append(time.perf_counter() - started)
            said = sentence()
            started = time.perf_counter()
            memory.facts.add(said)
            own.append(time.perf_counter() - started)
        by = "a model" if memory.status().notices else "words"
        ctx.add(
            "fact: remember",
            middle(own),
            runs=30,
            note=f"similar facts found by {by}; one fsync took {middle(disk) * 1000:.2f} ms",
        )
        ctx.add("fact: list", median(memory.facts.list, ctx.runs(9)), runs=ctx.runs(9))


def usage(ctx: Context) -> None:
    """Measure the sum of as many uses as the size."""
    from ipfsmem.memory import Memory

    if ctx.size > _MOST:
        return
    home = ctx.fresh("usage")
    with Memory.create(VAULT_NAME, "encrypted-ipfs", unlock=unlock(), passphrase=False, home=home) as memory:
        own = []
        for number in range(ctx.size):
            started = time.perf_counter()
            memory.usage.add(
                provider="p", model=f"m{number % 5}", input_tokens=100, output_tokens=9, cost_usd=0.001
            )
            own.append(time.perf_counter() - started)
        ctx.add("usage: record one call", middle(own[-50:]), runs=50)
        ctx.add("usage: sums by model", median(lambda: memory.usage.totals("model"), 3), runs=3)
