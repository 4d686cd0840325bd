"""Reading an untrusted text takes linear time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest

from ipfsmem.agents.hook_programs import strip_hook_output
from ipfsmem.bundle.front_matter import front_matter
from ipfsmem.bundle.index_block import typed_text
from ipfsmem.causal.merge_links import merge_index
from ipfsmem.errors import FormatError
from ipfsmem.exchange.json_input import read_values


def typed(text: str) -> str:
    return typed_text(text, lambda key: False)


def merged(text: str) -> bytes | None:
    lists = (f"- [a](a.md)\n{text}{more}\n".encode() for more in ("", "y", "z"))
    return merge_index(*lists)


def values(text: str) -> list[object]:
    with contextlib.suppress(FormatError):
        return [*read_values(text.encode(), "it")]
    return []


@pytest.mark.parametrize(
    ("read", "begin", "more"),
    [
        (front_matter, '{"', '\\"'),
        (typed, "- [](", ".md"),
        (typed, "- [](", " "),
        (merged, "- ", " "),
        (strip_hook_output, "", "<hook_context>"),
        (values, '{"a": 1}\n{"', '\\"'),
        (values, "", "x[\n"),
    ],
    ids=["json", "link", "spaces-of-link", "spaces-of-item", "context", "string-of-line", "lists-of-lines"],
)
def test_unfinished_text_is_read_in_linear_time(read: Callable[[str], object], begin: str, more: str) -> None:
    def seconds(count: int) -> float:
        text = begin + more * count + "x"
        start = time.process_time()
        read(text)
        return time.process_time() - start

    assert seconds(16_000) < 40 * max(seconds(2_000), 0.002)
