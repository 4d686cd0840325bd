"""The format of output: JSON, sizes, short CIDs, tables, progress. Plain text unless it goes to a terminal.

All text of a memory or a provider passes through `clean` before a terminal, so that no stored text can control it. Nothing here
decides which text is printed.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ipfsmem.cli.light_imports import load_click

# C0 and C1 controls, and bidirectional controls.
_UNSAFE = dict.fromkeys(
    [
        *range(0x20),
        *range(0x7F, 0xA0),
        0x061C,
        *range(0x200E, 0x2010),
        *range(0x2028, 0x202F),
        *range(0x2066, 0x206A),
        0xFEFF,
    ],
    "�",
)
#: The same for JSON, with invisible characters; JSON escapes them, so that programs read the stored text. Outside of strings
#: JSON has only line ends of them.
_UNSAFE_JSON = "[\x7f-\xa0\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
_UNSAFE_LINES = {code: mark for code, mark in _UNSAFE.items() if code not in (0x0A, 0x09)}


def clean(text: str) -> str:
    """Return text that cannot move a cursor, colour a screen or begin a line."""
    return _without_invisible(text.replace("\n", " ").replace("\t", " ").translate(_UNSAFE))


def clean_lines(text: str) -> str:
    """Return the same for a text of several lines."""
    return _without_invisible(text.translate(_UNSAFE_LINES))


def _without_invisible(text: str) -> str:
    """Replace each run of invisible characters by a mark. Joiners that scripts and emoji need are kept."""
    if text.isascii():
        return text
    from ipfsmem.invisible_characters import INVISIBLE

    def shown(match: re.Match[str]) -> str:
        begin, end = match.span()
        joins = match[0] in ("\u200c", "\u200d") and begin > 0 and end < len(text)
        return match[0] if joins and not (text[begin - 1].isascii() or text[end].isascii()) else "\ufffd"

    return INVISIBLE.sub(shown, text)


def data_of(event: Mapping[str, Any]) -> str:
    """Return the fields of an event except time, type and id, on one line."""
    import msgspec

    return "  ".join(
        f"{name}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for name, value in event.items()
        if name not in ("ts", "type", "id")
    )


def to_json(value: Any) -> str:
    """Return JSON, indented by two spaces, non-ASCII verbatim, except invisible characters and those that control a terminal."""
    import msgspec

    from ipfsmem.canonical import write_json

    text = msgspec.json.format(write_json(value), indent=2).decode()
    return re.sub(_UNSAFE_JSON, _escaped, text)


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Do as `click.echo`. Click itself, which takes long to import, prints colours, to a terminal, and where not UTF-8 is written."""
    stream = sys.stderr if err else sys.stdout
    if "\x1b" in text or is_terminal(stream) or not is_utf8(stream):
        load_click()
        import click

        click.echo(text, err=err, nl=nl)
        return
    stream.write(f"{text}\n" if nl else text)
    stream.flush()


def is_utf8(stream: Any) -> bool:
    """Tell whether a stream writes every character, as UTF-8."""
    return str(getattr(stream, "encoding", None)).lower().replace("-", "") == "utf8"


def write_bytes(data: bytes) -> None:
    """Write all bytes to stdout: with PYTHONUNBUFFERED one write may write only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()


def is_terminal(stream: Any = None) -> bool:
    """Tell whether a stream (default: stdout) is a terminal."""
    stream = sys.stdout if stream is None else stream
    return bool(stream.isatty())


def style(text: str, **how: Any) -> str:
    """Return coloured text, plain if NO_COLOR is set. click strips colours without a terminal."""
    if os.environ.get("NO_COLOR"):
        return text
    load_click()
    import click

    return click.style(text, **how)


def size(count: int) -> str:
    """Return a number of bytes in powers of 1,000, for people."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.5 or unit == "TB":
            return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"
    raise AssertionError


def seconds(value: float) -> str:
    """Return a duration."""
    return f"{value * 1000:.0f} ms" if value < 0.9995 else f"{value:.1f} s"


def moment(ms: int | None) -> str:
    """Return milliseconds since 1970 UTC as date and time in this machine's time zone; empty for None."""
    from ipfsmem.wording import local_moment

    return local_moment(ms)


def local_text(ts: str) -> str:
    """Return an ISO 8601 time in this machine's time zone, with its offset; any other text unchanged."""
    from ipfsmem.wording import local_iso

    return local_iso(ts)


def short(cid: str) -> str:
    """Shorten a CID, IPNS name, hash or address for people."""
    return cid if len(cid) <= 20 else f"{cid[:12]}…{cid[-6:]}"


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    styles: Sequence[str] = (),
    shrink: Sequence[int] = (-1,),
    nothing: str = "",
) -> None:
    """Print columns for a person; for a program one line per row, separated by tabs, without headings.

    Without rows a person gets `nothing`, on stderr, and no headings. In a narrow window the columns in `shrink` give way; the
    others keep up to 28 characters.
    """
    cleaned = [[clean(cell) for cell in row] for row in rows]
    if not is_terminal():
        for row in cleaned:
            echo("\t".join(row))
        return
    if not cleaned:
        if nothing:
            echo(nothing, err=True)
        return
    from rich.cells import cell_len

    shown = [[*headings], *cleaned]
    widths = [max(cell_len(row[place]) for row in shown) for place in range(len(headings))]
    giving = sorted({place % len(headings) for place in shrink})
    import shutil

    _fit(widths, giving, shutil.get_terminal_size().columns)
    for number, row in enumerate(shown):
        cells = [
            _cell(text, width, "dim" if not number else styles[place] if place < len(styles) else "")
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
            if width
        ]
        echo("  ".join(cells).rstrip())


def _fit(widths: list[int], giving: Sequence[int], window: int) -> None:
    """Narrow columns until they fit into the window: first those not in `giving`, to 28 characters, then the widest in `giving`,
    one character at a time."""
    over = sum(widths) + 2 * (sum(map(bool, widths)) - 1) - window
    for place, width in enumerate(widths):
        if over > 0 and place not in giving and width > 28:
            widths[place] -= min(over, width - 28)
            over -= width - widths[place]
    while over > 0 and max(widths[place] for place in giving) > 4:
        widest = max(giving, key=lambda place: widths[place])
        widths[widest] -= 1
        over -= 1


def _cell(text: str, width: int, how: str) -> str:
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) > width:
        text = set_cell_size(text, width - 1).rstrip() + "…"
    padding = " " * (width - cell_len(text))
    styles = {"bold": {"bold": True}, "dim": {"dim": True}}
    return (style(text, **styles.get(how, {"fg": how})) if how and text else text) + padding


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Print two columns: a word and its text. Lines without a text are omitted."""
    shown = [(word, text) for word, text in pairs if text]
    width = max((len(word) for word, _ in shown), default=0)
    for word, text in shown:
        echo(f"{style(word.ljust(width), dim=True)}  {text}")


class Meter:
    """Progress on stderr if that is a terminal; else silent. A `Progress` for all functions that accept one."""

    def __init__(self, *, silent: bool = False) -> None:
        self._shown = not silent and is_terminal(sys.stderr)
        self._width = 0
        self._last = 0.0
        self._started = time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._shown or now - self._last < 0.1 or now - self._started < 0.3:
            return
        self._last = now
        text = (
            f"{clean(what)} {done:,} of {total:,}"
            if total
            else f"{clean(what)} {done:,}"
            if done
            else clean(what)
        )
        echo("\r" + text.ljust(self._width), err=True, nl=False)
        self._width = len(text)

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._width:
            echo("\r" + " " * self._width + "\r", err=True, nl=False)


def earlier(rows: Iterable[tuple[str, int, str, str]], first: str, last: str, nothing: str) -> None:
    """Print earlier texts of a fact or a value: a number or key, its end (milliseconds), what replaced it, and the text."""
    table(
        (first, "until (UTC)", "", last),
        [(name, moment(until), why, text) for name, until, why, text in rows],
        styles=("bold", "dim", "", ""),
        shrink=(3,),
        nothing=nothing,
    )
