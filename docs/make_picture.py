"""Draw docs/terminal.svg: the session of README.md as it stands there, in a window of its own colours. A test compares.

It is one picture for light and dark pages: the window has its own ground, and a border that both show.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
TARGET = HERE / "terminal.svg"
#: Width of a letter, height of a line, margins; in pixels, for letters of 14.
LETTER, LINE, LEFT, TOP = 8.43, 21, 24, 58
COLUMNS = 92
#: Ground, border, and what stands on it.
GROUND, BORDER, TEXT, DIM, PROMPT, BACK = "#161b22", "#6e7681", "#e6edf3", "#9aa4af", "#7ee787", "#79c0ff"


def session() -> str:
    """The block of README.md behind `<!-- test: session -->`."""
    found = re.search(
        r"<!-- test: session -->\n```console\n(.*?)```", (HERE.parent / "README.md").read_text("utf-8"), re.S
    )
    assert found is not None
    return found[1]


def text() -> str:
    """The whole picture."""
    lines = session().rstrip("\n").splitlines()
    width, height = round(2 * LEFT + COLUMNS * LETTER), TOP + LINE * len(lines) + 14
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-labelledby="title">',
        '<title id="title">A memory is made on one device and comes back on another with the wallet alone</title>',
        f'<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10" fill="{GROUND}" stroke="{BORDER}"/>',
        *(f'<circle cx="{24 + 20 * n}" cy="22" r="6" fill="{c}"/>' for n, c in enumerate(("#ff7b72", "#e3b341", "#7ee787"))),
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14" '
        'xml:space="preserve">',
    ]  # fmt: skip
    for number, line in enumerate(lines):
        y = TOP + LINE * number
        if line.startswith("$ "):
            drawn.append(
                f'<text x="{LEFT}" y="{y}" fill="{PROMPT}">$ <tspan fill="{TEXT}" font-weight="bold">{escape(line[2:])}</tspan></text>'
            )
        else:
            colour = DIM if line.startswith(("#", "...")) else BACK if "Restored" in line else TEXT
            drawn.append(f'<text x="{LEFT}" y="{y}" fill="{colour}">{escape(line)}</text>')
    return "\n".join([*drawn, "</g>", "</svg>", ""])


if __name__ == "__main__":
    TARGET.write_text(text(), "utf-8")
