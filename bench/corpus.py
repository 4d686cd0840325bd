"""Memories from a seed: the same files on every machine, in sizes of real notes.

File sizes are log-normal with a median of 850 bytes, names and texts are made of words."""

from __future__ import annotations

import math
import random
from pathlib import Path

SEED = 20_260_414
MEDIAN = 850
SIGMA = 0.9
LONGEST = 64 * 1024
TYPES = ("user", "feedback", "project", "reference")


def corpus(count: int, seed: int = SEED) -> dict[str, bytes]:
    """Return `count` memory files by key."""
    rng = random.Random(seed)
    words = [_word(rng) for _ in range(5_000)]
    # Slices of one long text: fast, and no two files are alike.
    pool = " ".join(rng.choices(words, weights=[1 / (i + 10) for i in range(5_000)], k=300_000))
    files: dict[str, bytes] = {}
    for i in range(count):
        size = min(LONGEST, int(MEDIAN * math.exp(rng.gauss(0, SIGMA))))
        files[f"{TYPES[i % 4]}_{words[i % 5_000]}_{i:06d}"] = _memory(rng, i, pool, words, size)
    return files


def changed(text: bytes, turn: int) -> bytes:
    """Return the same memory after an edit."""
    return text + f"\nEdited for the {turn}th time.\n".encode()


def write_folder(files: dict[str, bytes], folder: Path) -> Path:
    """Write the corpus as a flat folder of Markdown files."""
    folder.mkdir(parents=True)
    for key, data in files.items():
        (folder / f"{key}.md").write_bytes(data)
    return folder


def _memory(rng: random.Random, i: int, pool: str, words: list[str], size: int) -> bytes:
    head = (
        f"---\nname: {words[i * 7 % 5_000].title()} {i}\n"
        f"description: {' '.join(rng.sample(words, 6))}\ntype: {TYPES[i % 4]}\n"
        f"created: 2026-0{1 + i % 9}-1{i % 9}\nupdated: 2026-0{1 + i % 9}-2{i % 9}\n---\n\n"
    )
    start = rng.randrange(len(pool) - LONGEST)
    body = pool[start : start + max(20, size - len(head))].strip()
    lines = [body[at : at + 90].strip() for at in range(0, len(body), 90)]
    return (head + "\n".join(line for line in lines if line) + "\n").encode()


def _word(rng: random.Random) -> str:
    return "".join(
        rng.choice("bcdfghklmnprstvw") + rng.choice("aeiou") for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))
    )
