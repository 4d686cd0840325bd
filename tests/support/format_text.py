"""The text of the format: docs/FORMAT.md and its chapters, in order, as one text."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
INDEX = DOCS / "FORMAT.md"
CHAPTERS = sorted((DOCS / "format").glob("*.md"))
FORMAT = "\n".join(path.read_text("utf-8") for path in [INDEX, *CHAPTERS])


def headings(text: str) -> list[str]:
    """The numbers of the sections whose headings are in `text`."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return re.findall(r"^#+ (\d[\d.]*?)\.? ", prose, re.M)
