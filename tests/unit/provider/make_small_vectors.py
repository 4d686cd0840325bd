"""Writes fixtures/vectors/small_objects.json: boxes, names, contents and lists of small objects.

Run it only when a rule changes: `python -m tests.unit.provider.make_small_vectors`.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from ipfsmem.provider.small_objects import is_small, listed, parse_small_name, small_box

OUT = Path(__file__).parents[3] / "fixtures" / "vectors" / "small_objects.json"
BOX = small_box(bytes(32))
DATA = b"an object"
DIGEST = sha256(DATA).hexdigest()


def boxes() -> list[dict[str, str]]:
    """Boxes of vaults."""
    return [{"anchor": one.hex(), "box": small_box(one)} for one in (bytes(32), bytes(range(32)))]


def names() -> list[dict[str, Any]]:
    """Names, and other texts; `null` is refused."""
    texts = [
        f"{BOX}/a.{DIGEST}",
        f"{BOX}/0-a.b.c-.{DIGEST}",
        f"{BOX[:16]}/{'a' * 64}.{DIGEST}",
        f"{BOX}/{DIGEST}.{DIGEST}",
        f"{BOX}/{'a' * 65}.{DIGEST}",
        f"{BOX[:15]}/a.{DIGEST}",
        f"{BOX}0/a.{DIGEST}",
        f"{BOX}/{DIGEST}",
        f"{BOX}/.{DIGEST}",
        f"{BOX}/a..b.{DIGEST}",
        f"{BOX}/a/b.{DIGEST}",
        f"{BOX}/A.{DIGEST}",
        f"{BOX}/a_b.{DIGEST}",
        f"{BOX}/a.{DIGEST.upper()}",
        f"{BOX}/a.{DIGEST}\n",
        f"{BOX}/a.{DIGEST[:-1]}",
        f"{BOX}.a.{DIGEST}",
        f"../{BOX}/a.{DIGEST}",
        "",
    ]
    return [
        {"name": one, "parts": list(parsed) if (parsed := parse_small_name(one)) else None} for one in texts
    ]


def contents() -> list[dict[str, Any]]:
    """Bytes under a name. `times`: number of repetitions of `data`."""
    rows: list[tuple[str, bytes, int]] = [
        (DIGEST, DATA, 1),
        (DIGEST, b"another object", 1),
        (sha256(b"").hexdigest(), b"", 1),
        (sha256(bytes(1 << 20)).hexdigest(), b"\0", 1 << 20),
        (sha256(bytes((1 << 20) + 1)).hexdigest(), b"\0", (1 << 20) + 1),
    ]
    return [
        {"name": (name := f"{BOX}/a.{digest}"), "data": data.hex(), "times": times, "sound": is_small(name, data * times)}
        for digest, data, times in rows
    ]  # fmt: skip


def lists() -> list[dict[str, Any]]:
    """Lists of a provider, and what is used of them."""
    other = small_box(b"o" * 32)
    rows = [
        ("sizes", [BOX], {f"{BOX}/{size}.{DIGEST}": size for size in (0, 1, 9, 1 << 20, (1 << 20) + 1)}),
        ("another box", [BOX], {f"{BOX}/a.{DIGEST}": 9, f"{other}/a.{DIGEST}": 9, f"{BOX}/b": 9}),
        ("two boxes", [other, BOX], {f"{BOX}/a.{DIGEST}": 9, f"{other}/a.{DIGEST}": 9}),
        ("no box", [], {f"{BOX}/a.{DIGEST}": 9}),
    ]
    return [
        {"about": about, "boxes": asked, "shown": shown, "used": listed(shown.items(), asked)}
        for about, asked, shown in rows
    ]


def build() -> dict[str, Any]:
    """The whole file."""
    name = f"{BOX}/a.b.{DIGEST}"
    return {
        "about": "Small objects, format section 7.8. `boxes`: of vaults, by the public key of the anchor (hex). `names`: box, label and digest, or "
        "null. `contents`: whether `data` (hex, repeated `times`) is the object of that name. `lists`: of `shown` (bytes by name) what is "
        "`used` for `boxes`. `files`: where the object `name` is in a folder and in a bucket.",
        "boxes": boxes(),
        "contents": contents(),
        "files": {"name": name, "folder": f"small/{name.replace('/', '.', 1)}", "bucket": f"small/{name}"},
        "lists": lists(),
        "names": names(),
    }


def text(data: dict[str, Any]) -> str:
    """The file for these contents."""
    return json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    OUT.write_text(text(build()), "utf-8")
