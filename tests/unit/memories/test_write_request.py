"""Checks before a write in every interface, and how a text is recognised as a body or a whole file."""

from __future__ import annotations

from typing import Any

import pytest

from ipfsmem.errors import FormatError, UsageError
from ipfsmem.memories.write_request import WriteRequest

FILE = b"---\nname: Tone\n---\n\nDirect.\n"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "nothing to write"),
        ({"text": b" \n"}, "empty"),
        ({"text": b"x", "if_match": "ab", "must_be_new": True}, "cannot require both"),
        ({"text": b"x", "whole": True, "name": "N"}, "whole file"),
        ({"whole": True, "name": "N"}, "whole file"),
        ({"text": FILE, "name": "N"}, "header of its own"),
        ({"text": b"x", "type": "user", "fields": {"type": "project"}}, "given twice"),
        ({"text": b"x", "tags": ("a",), "fields": {"tags": "[b]"}}, "given twice"),
        ({"fields": {"type": "nonsense"}}, "is not a valid type"),
        ({"fields": {"decay": "tomorrow"}}, "is not a valid decay"),
        ({"fields": {"expires": "tomorrow"}}, "must be a date"),
    ],
)
def test_invalid_write_request_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        WriteRequest(**asked).check()


@pytest.mark.parametrize(
    "asked",
    [
        {"text": b"", "empty_ok": True},
        {"text": b"x", "name": "N", "must_be_new": True},
        {"text": FILE, "whole": False, "name": "N"},
        {"fields": {"type": "", "decay": "30d", "expires": "2026-11-22T17:30:00Z", "own": "anything"}},
    ],
)
def test_valid_write_request_is_accepted(asked: dict[str, Any]) -> None:
    WriteRequest(**asked).check()


def test_text_with_header_is_a_whole_file_unless_declared_a_body() -> None:
    assert WriteRequest(text=FILE).file == FILE
    assert WriteRequest(text=FILE, whole=False).file is None
    assert WriteRequest(text=b"plain").file is None and WriteRequest(text=b"plain").body == "plain"
    assert WriteRequest(text=b"plain", whole=True).file == b"plain"


def test_write_request_expects_the_hash_or_no_text() -> None:
    assert [WriteRequest(if_match="ab").expected, WriteRequest(must_be_new=True).expected] == ["ab", ""]
    assert WriteRequest().expected is None


def test_body_that_is_not_text_names_the_byte() -> None:
    with pytest.raises(FormatError, match="byte 3"):
        assert WriteRequest(text=b"ab\xff").body
