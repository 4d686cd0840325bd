"""Writes fixtures/vectors/graph.json: relations in texts of memories, and queries. Run it from the
checkout after a change of the rules: `python -m tests.unit.graph.make_graph_vectors`; a test compares."""

from __future__ import annotations

import json
import tempfile
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from ipfsmem.bundle.links import folded, links
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.bundle.value_file import memory_key, value_file
from ipfsmem.graph.entity import entity_of, relation_type
from ipfsmem.memory import Memory
from ipfsmem.operations.graph.relations import Subgraph

TARGET = Path(__file__).parents[3] / "fixtures" / "vectors" / "graph.json"
ABOUT = (
    "The graph of memories: of every face, and no part of the format. 'links': what those of a text name. 'same': whether two names mean the "
    "same. 'types': of a relation, as it is written and in its one form. 'entities': what a memory file is in the graph. 'graphs': files by "
    "key, all relations of those, what is listed, and what is asked: the entities 'around' one, what has some 'words', and 'found' by what is said."
)
LINKS = [
    "", "none", "[[acme]]", "see [[Acme Ltd]] and [[acme|words]], [[a#part]] [[b|c#d]]", "[[ ]] [[a\nb]] [[]] [[[x]]]", "[words](acme.md) [w](./b-1.md) [w](c.md#part)",
    "[w](../a.md) [w](sub/a.md) [w](A.md) [w](a.md?x) [w](d.md#a b) [w](d.md#a\u3000b) [w](d.md#a(b)", f"[[{'x' * 200}]] [[{'y' * 201}]] [[{chr(0x1F600) * 200}]]",
    "[[\ufeffa\u00a0]] [[\x1cb\x85]]", "[[a]][[b]] ![[c]] [[d]]] [[e|]] [[|f]] [[#g]] [[h#]]", "[[a|b\nc]] x](x.md)",
]  # fmt: skip
NAMES = [
    "Stra\u00dfe", "STRASSE", "stra\u1e9ee", " Stra\u00dfe\u2003", "\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03cc\u03c2", "\u03bf\u03b4\u03bf\u03c2", "\u03bf\u03b4\u03bf\u03c3", "\u0130", "i\u0307", "\u0131", "i", "I",
    "\ufb01n", "fin", "\u13a0", "\uab70", "a\ufeffb", "a b", "a\x1fb", "A\x85 B", "\u01c5", "\u01c6", "\u017f", "s",
]  # fmt: skip
TYPES = [
    "works at",
    " *Works  At*: ",
    "_",
    "**",
    "",
    "`is in`",
    "\u03a3\u03a3",
    "x" * 70,
    "\U0001f600" * 65,
    "a\u00a0b\x1cc",
    "\ufeffa",
]
FILES = {
    "plain": "Only prose, with [[Ada]] and [words](acme.md).\nAnd [[Ada]] again.\n",
    "listed": "---\nname: Ada\ncategory: person\ntype: reference\ntags: [entity, x]\n---\n\n- born in 1815\n* likes   sums \n-no item\n - no item\n-\n- \n+ no item\n",
    "typed": "- works at [[acme]]\n- works at: [[Acme]].\n- *Knows* [[Bo|the other]]\n- a: b: [[c]]\n- [[alone]]\n- works at [[acme]] today\n- is [[one]] and [[two]]\n",
    "below": "- before: Acme\nRelations:\n\n- works at: Acme\n- is in: [[oslo#centre]] and more\n- no colon\n- empty:\n- a [b]: c\n- note: x|y#z\n\tRelations: \n- second: Osl\u00f8\nprose ends it\n- after: Acme\n",
    "white": "-\u00a0no item\n-  \u2003said\u2003\n- \x1c\n- a\u2028b\n- c\rd\n\u3000Relations:\u3000\n- x: \u3000y\n- x:\u3000y\n",
    "long": "- " + "x" * 65 + ": [[a]]\n- " + "\U0001f600" * 64 + ": [[b]]\n- t [[" + "\U0001f600" * 200 + "]]\n- t [[" + "y" * 201 + "]]\n",
    "many": " ".join(f"[[n{n}]]" for n in range(1_100)) + "\n",
    "empty": "---\nname: Nothing\n---\n",
}  # fmt: skip


def entity(name: str, kind: str, *lines: str, tags: str = "[entity]") -> str:
    return (
        f"---\nname: {name}\ntype: reference\ncategory: {kind}\ntags: {tags}\n---\n\n"
        + "\n".join(lines)
        + "\n"
    )


def drawn(seed: int, many: int, edges: int) -> dict[str, str]:
    """Return a graph with cycles; half of the names differ from those in links."""
    random, lines = Random(seed), {n: [f"- says {n % 7}"] for n in range(many)}
    for _ in range(edges):
        begin, end = random.randrange(many), random.randrange(many)
        to = f"n{end}" if random.random() < 0.5 else f"Name {end % (many - 5)}"
        lines[begin].append(f"- {random.choice(('knows', 'is part of'))} [[{to}]]")
    return {f"n{n}": entity(f"name {n % (many - 5)}", f"kind{n % 3}", *said) for n, said in lines.items()}


GRAPHS: list[tuple[str, dict[str, str], list[tuple[str, int, int]], list[tuple[str, int]], list[str]]] = [
    ("nothing", {}, [], [("x", 10)], ["x"]),
    ("three that go round, one alone, one that only links, one that nothing joins", {
        "ada": entity("Ada", "person", "- works at [[Acme]]", "- was born early"), "acme": entity("Acme", "company", "- is in [[oslo]]"), "oslo": entity("Oslo", "city", "- has [[ADA]]"),
        "alone": entity("Alone", "thing"), "note": "See [[Oslo]].\n", "prose": "No link at all.\n", "dead": "Leads [[nowhere]].\n", "self": "I mean [[self]].\n",
    }, [("Ada", 0, 100), ("ada", 1, 100), ("ADA", 2, 100), ("oslo", 20, 100), ("oslo", 20, 2), ("alone", 3, 10)],
     [("ada", 10), ("compan", 10), ("born early", 10), ("", 10), ("?!", 10), ("o", 1), ("link", 10)], ["ada", " Oslo ", "ACME", "nowhere", ""]),
    ("of one name the first by key is meant, and a key goes before a name", {
        "b": entity("Same", "thing", "- to [[a]]"), "a": entity("same", "thing"), "c": entity("C", "thing", "- to [[SAME]]", "- to [[b]]"), "same": entity("Other", "thing", "- to [[other]]"),
    }, [("a", 1, 10), ("b", 1, 10), ("Same", 1, 10), ("same", 1, 10)], [("same", 10)], ["Same", "same", "b", "OTHER"]),
    ("values belong to their keys alone, in whatever form they were kept", {
        "ada": entity("Ada", "person", "- works at [[Acme]]", "- likes [[nearly]]"), memory_key("acme"): value_file("acme", "- is in [[Ada]]", {}).decode(),
        "acme": "---\nname: Acme\ntags: [entity, key-value]\n---\n\n- is in [[Ada]]\n", "old": "---\nname: Old\ncategory: kv\nsource: librefang:agent\n---\n\nSee [[Ada]].\n",
        "wide": f"---\nvalue_key: {'é' * 128}\n---\n\nSee [[Ada]].\n", "wider": f"---\nvalue_key: {'é' * 129}\n---\n\nSee [[Ada]].\n",
        "nearly": "---\nname: Nearly\ncategory: kv\nsource: other\n---\n\nSee [[Ada]].\n", "quiet": "---\ntags: [entity]\n---\n\n- knows [[Ada]]\n",
        "my_key-1a2b3c4d": "---\nname: my key\ntags: [key-value]\n---\n\nSee [[Ada]].\n",
    }, [("ada", 2, 100), ("ada", 2, 2)], [("acme", 10), ("ada", 10), ("e", 10)], ["acme", "Acme", "old", "nearly", "wide", "wider", "my key"]),
    ("many that go round", drawn(3, 40, 90), [("n7", depth, most) for depth, most in ((1, 100), (2, 7), (3, 30), (20, 1_000))], [("says 3", 100), ("kind1 4", 3)], ["Name 3", "n39", "name 34"]),
]  # fmt: skip


def part(found: Subgraph) -> dict[str, Any]:
    edges = [[one.begin, one.type, one.end] for one in found.edges]
    return {"keys": [one.key for one in found.nodes], "edges": edges, "more": found.more}


def build() -> dict[str, Any]:
    """The whole file."""
    entities = []
    for key, text in FILES.items():
        one = entity_of(key, parse_memory(text.encode()))
        said = {"name": one.name, "kind": one.kind, "observations": list(one.observations), "made": one.made}
        entities.append({"key": key, "file": text, **said, "out": [[out.type, out.to] for out in one.out]})
    graphs = []
    for name, files, around, words, found in GRAPHS:
        with (
            tempfile.TemporaryDirectory() as folder,
            Memory.load("x", mode="none", home=Path(folder)) as memory,
        ):
            for key, text in files.items():
                memory.write_text(key, text.encode())
            graph, shown = memory.graph, msgspec.to_builtins
            nodes = {one: graph.get(one) for one in found}
            graphs.append({
                "name": name,
                "files": files,
                "relations": [[one.begin, one.type, one.end] for one in graph.relations()],
                "listed": [shown(one) for one in graph.list()],
                "around": [{"entity": said, "depth": depth, "most": most, **part(graph.around(said, depth, limit=most))} for said, depth, most in around],
                "words": [{"words": said, "most": most, "keys": [one.key for one in graph.search(said, limit=most)] if said else []} for said, most in words],
                "found": [{"said": said, "key": None if one is None else one.key} for said, one in nodes.items()],
            })  # fmt: skip
    return {
        "about": ABOUT,
        "links": [{"text": text, "to": [one.to for one in links(text)]} for text in LINKS],
        "same": [{"names": [a, b], "same": folded(a) == folded(b)} for a, b in combinations(NAMES, 2)],
        "types": [{"said": said, "type": relation_type(said)} for said in TYPES],
        "entities": entities,
        "graphs": graphs,
    }


def text(data: dict[str, Any]) -> str:
    """The file for these contents."""
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(build()), "utf-8")
