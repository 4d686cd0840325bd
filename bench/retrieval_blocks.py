"""Whether a context block contains the evidence: `python -m bench.retrieval_blocks [--report] [PATH...]`.

Each collection is a memory on a disk: entries of a conversation are messages of sessions, others are memory files. A question is
answered where a line or a memory of the block says what one of its relevant entries says, so a passage of a long answer counts only
where it is that passage which holds the answer, where the set names it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import NamedTuple, get_args

from bench.report import machine
from bench.retrieval_set import synthetic, to_tune_on
from bench.retrieval_sets import SetError, read
from bench.retrieval_talk import Collection, Question
from ipfsmem.bundle.fence import unquote
from ipfsmem.memories.context_layouts import Layout
from ipfsmem.memory import Memory

#: Prefix of a line of a message.
_head = re.compile(r"^(?:\d{4}-\d\d-\d\d \d\d:\d\d )?[^:]{1,80}: ").sub
_KEY = re.compile(r'<memory key="([^"]+)"')


class Row(NamedTuple):
    """One query and layout."""

    kind: str
    talk: str
    layout: str
    any: bool
    share: float
    tokens: int
    seconds: float


def fill(memory: Memory, collection: Collection) -> dict[str, str]:
    """Write a collection into a memory and return the keys of its memory files, by entry id."""
    keys = {}
    groups = defaultdict(list)
    for number, one in enumerate(collection.documents):
        if one.group and not one.memory:
            said = f"{one.header}: {one.text}" if one.header else one.text
            role = "assistant" if one.id in _answers(collection) else "user"
            item = {"role": role, "content": said}
            if one.at is not None:
                at = datetime(one.at.year, one.at.month, one.at.day, 12, tzinfo=UTC)
                item["ts"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
            groups[one.group].append(item)
        else:
            keys[one.id] = f"entry_{number}"
            memory.write(f"entry_{number}", one.text, description=one.header)
    for group, items in groups.items():
        memory.sessions.add(group, items)
    return keys


def _answers(collection: Collection) -> frozenset[str]:
    """Return the ids of an agent's answers: of each exchange all but the first entry."""
    met, found = set[str](), set[str]()
    for id, exchange in collection.exchanges.items():
        if exchange in met:
            found.add(id)
        met.add(exchange)
    return frozenset(found)


def ask(
    memory: Memory,
    collection: Collection,
    keys: Mapping[str, str],
    layouts: Sequence[Layout],
    *,
    by_meaning: bool = True,
) -> Iterable[Row]:
    """Run every query in every layout. `by_meaning`: False as in a program's hook."""
    texts = {one.id: " ".join(f"{one.header}: {one.text}".split()) for one in collection.documents}
    files = {one.id for one in collection.documents if one.id in keys}
    for question in collection.questions:
        for layout in layouts:
            began = perf_counter()
            block = memory.context(question.text, layout=layout, deliver=False, by_meaning=by_meaning)
            took = perf_counter() - began
            there = [id for id in question.relevant if _stands(block.text, texts[id], keys.get(id), question)]
            about = (
                "memory files"
                if files.issuperset(question.relevant)
                else "agents' talk"
                if collection.exchanges
                else "chats"
            )
            share = len(there) / len(question.relevant)
            yield Row(question.kind, about, layout, bool(there), share, block.tokens, took)


def _stands(block: str, text: str, key: str | None, question: Question) -> bool:
    """Return whether a block has an entry: its memory, or a line with its text or a passage of it, with
    the answer where known."""
    if key is not None:
        return key in _KEY.findall(block)
    _, _, said = block.partition("<memory-said>\n")
    for line in unquote(said.partition("</memory-said>")[0]).split("\n"):
        shown = _head("", line, 1).removeprefix("… ").removesuffix(" …").strip()
        cut = "… " in line or line.endswith(" …")
        if shown and (shown in text if cut else text.endswith(shown)):
            return (
                not (cut and question.answer)
                or question.answer.casefold() in shown.casefold()
                or (question.answer.casefold() not in text.casefold())
            )
    return False


def table(rows: Sequence[Row]) -> list[str]:
    """Return the figures as Markdown: by layout and subject, then by kind in the layout `ranked`."""
    lines = [
        "| layout | about | questions | any evidence | share of evidence | tokens | ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for layout in get_args(Layout):
        for about in ("chats", "agents' talk", "memory files"):
            some = [row for row in rows if (row.layout, row.talk) == (layout, about)]
            if some:
                cells = [layout, about, str(len(some)), f"{fmean(row.any for row in some):.3f}"]
                cells += [
                    f"{fmean(row.share for row in some):.3f}",
                    f"{median(row.tokens for row in some):,.0f}",
                ]
                lines.append(
                    "| " + " | ".join([*cells, f"{median(row.seconds for row in some) * 1000:.1f}"]) + " |"
                )
    lines += ["", "| kind, layout `ranked` | about | questions | any evidence |", "|---|---|---|---|"]
    ranked = [row for row in rows if row.layout == "ranked"]
    for kind, about in sorted({(row.kind, row.talk) for row in ranked}):
        some = [row for row in ranked if (row.kind, row.talk) == (kind, about)]
        lines.append(f"| {kind} | {about} | {len(some)} | {fmean(row.any for row in some):.3f} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the evaluation and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path, help="sets of others, as `bench.retrieval` reads them")
    parser.add_argument(
        "--report", action="store_true", help="also the half of the made set that recall is not tuned on"
    )
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="only each N-th question of a collection"
    )
    parser.add_argument("--layout", choices=get_args(Layout), action="append", help="only these layouts")
    parser.add_argument(
        "--hook", action="store_true", help="ask as the hook of a program does: only what certainly matches"
    )
    given = parser.parse_args(arguments)
    try:
        sets = [one for path in given.paths for one in read(path)[0]] or (
            synthetic() if given.report else to_tune_on()
        )
    except SetError as error:
        print(error, file=sys.stderr)
        return 2
    rows: list[Row] = []
    for collection in sets:
        with Memory.load("blocks", "none") as memory:
            keys = fill(memory, collection)
            some = collection._replace(questions=collection.questions[:: given.every])
            layouts = given.layout or get_args(Layout)
            rows += ask(memory, some, keys, layouts, by_meaning=not given.hook)
    print("\n".join([machine(), "", *table(rows)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
