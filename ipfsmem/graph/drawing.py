"""Renders a graph as GraphML, as Mermaid, and as a page with a drawing that needs no network.

Names and texts are escaped, so that none closes a tag, opens a script or ends a line. Invisible characters are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import cos, pi, sin
from typing import Final, Literal

from ipfsmem.bundle.fence import clean_text
from ipfsmem.graph.entity import Entity
from ipfsmem.graph.graph import Relation

_NO_XML: Final = dict.fromkeys((0xFFFE, 0xFFFF), "\ufffd")
Format = Literal["graphml", "mermaid", "html"]
FORMATS: Final[tuple[Format, ...]] = ("graphml", "mermaid", "html")


def drawn(format: Format, entities: Sequence[Entity], relations: Sequence[Relation]) -> str:
    """Return the graph in one of the formats."""
    return {"graphml": graphml, "mermaid": mermaid, "html": page}[format](entities, relations)


def graphml(entities: Sequence[Entity], relations: Sequence[Relation]) -> str:
    """Return GraphML, for Gephi, yEd, NetworkX and others."""
    keys = "".join(
        f'  <key id="{name}" for="{what}" attr.name="{name}" attr.type="string"/>\n'
        for what, name in (("node", "name"), ("node", "kind"), ("node", "observations"), ("edge", "type"))
    )
    nodes = "".join(
        f'    <node id="{escape(one.key)}"><data key="name">{_xml(one.name)}</data><data key="kind">{_xml(one.kind)}</data>'
        f'<data key="observations">{_xml("; ".join(one.observations))}</data></node>\n'
        for one in entities
    )
    edges = "".join(
        f'    <edge source="{escape(one.begin)}" target="{escape(one.end)}"><data key="type">{_xml(one.type)}</data></edge>\n'
        for one in relations
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        f'{keys}  <graph edgedefault="directed">\n{nodes}{edges}  </graph>\n</graphml>\n'
    )


def mermaid(entities: Sequence[Entity], relations: Sequence[Relation]) -> str:
    """Return a Mermaid flow chart, which many editors draw."""
    number = {one.key: n for n, one in enumerate(entities)}
    nodes = [f'  n{number[one.key]}["{_mermaid(one.name)}"]' for one in entities]
    edges = [f'  n{number[one.begin]} -->|"{_mermaid(one.type)}"| n{number[one.end]}' for one in relations]
    return "\n".join(["flowchart LR", *nodes, *edges, ""])


def page(entities: Sequence[Entity], relations: Sequence[Relation]) -> str:
    """Return a page with the entities in a ring and their relations as lines. It runs no script and makes no request."""
    ring = max(160, 22 * len(entities) / pi)
    middle = ring + 170
    at = {
        one.key: (
            middle + ring * cos(2 * pi * n / len(entities)),
            middle + ring * sin(2 * pi * n / len(entities)),
        )
        for n, one in enumerate(entities)
    }
    lines = []
    for edge in relations:
        (x, y), (u, v) = at[edge.begin], at[edge.end]
        label = f"{edge.begin} {edge.type} {edge.end}"
        lines.append(
            f'<line x1="{x:.0f}" y1="{y:.0f}" x2="{u:.0f}" y2="{v:.0f}"><title>{_xml(label)}</title></line>'
            f'<text class="type" x="{(x + u) / 2:.0f}" y="{(y + v) / 2:.0f}">{_xml(edge.type)}</text>'
        )
    points = []
    for one in entities:
        x, y = at[one.key]
        about = _xml("\n".join((f"{one.name} ({one.kind})", *one.observations[:20])))
        points.append(
            f'<g><title>{about}</title><circle cx="{x:.0f}" cy="{y:.0f}" r="6"/>'
            f'<text x="{x + 9:.0f}" y="{y + 4:.0f}">{_xml(one.name[:40])}</text></g>'
        )
    size = f"{2 * middle:.0f}"
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Graph</title>\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        "<style>body{font:14px system-ui;margin:0;background:#fff;color:#111}line{stroke:#99a}circle{fill:#36c}"
        "text{font:12px system-ui;fill:#111}.type{fill:#667;font-size:10px;text-anchor:middle}"
        "@media(prefers-color-scheme:dark){body{background:#111;color:#eee}text{fill:#eee}.type{fill:#aab}}</style>\n"
        f'<svg viewBox="0 0 {size} {size}" width="{size}" height="{size}" role="img" aria-label="Graph">\n'
        + "\n".join((*lines, *points))
        + "\n</svg></html>\n"
    )


def _xml(text: str) -> str:
    """Return text for XML, without control characters and the two noncharacters."""
    return escape(clean_text(text).translate(_NO_XML))


def _mermaid(text: str) -> str:
    """Escape a text within quotation marks: characters with a meaning in Mermaid become numeric entities."""
    one_line = " ".join(clean_text(text).split())[:80]
    return "".join(c if c.isalnum() or c in " _-.,:" else f"#{ord(c)};" for c in one_line)
