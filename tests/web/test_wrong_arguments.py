"""The browser client's calls with invalid arguments raise a typed error with a message, and change
nothing."""

from __future__ import annotations

from typing import Any

import pytest

from ipfsmem.memory import Memory
from tests.support.web_lab import PEER_TOKEN, ClientError, WebDevice, by_wallet, root_of, web_client

BLOB = {"version": "memory/0.1", "index": "", "files": {"a.md": "---\nname: A\n---\n\nx"}, "timeline": []}


def refused(web: WebDevice, method: str, *given: Any) -> str:
    with pytest.raises(ClientError) as error:
        getattr(web, method)(*given)
    assert error.value.kind == "usage", error.value
    return str(error.value)


def test_wrong_arguments_are_typed_errors_and_change_nothing(url: str, memory: Memory) -> None:
    root_of(memory)
    with web_client() as client:
        web = client.open("wrong", url, **by_wallet(), token=PEER_TOKEN)
        before = (web.list(), web.timeline())
        for method, given, said in (
            ("write", ["k", 7], "body must be an object (got a number)"),
            ("write", ["k", ["x"]], "body must be an object (got an array)"),
            ("write", ["k", None], "nothing to write"),
            ("write", ["k", {"body": {"a": 1}}], "body must be a string (got an object)"),
            ("write", ["k", "x", {"type": 5}], "options of write.type must be a string"),
            ("write", ["k", "x", {"tags": "a"}], "tags must be an array of strings"),
            ("write", ["k", "x", {"fields": {"source": 1}}], "fields.source must be a string"),
            ("write", [None, "x"], "key must be a string (got null)"),
            ("writeText", ["k", {"name": "x"}], "text must be a string (got an object)"),
            ("read", [None], "key must be a string (got null)"),
            ("recall", [{"query": "x"}], "query must be a string (got an object)"),
            ("context", [{"query": 5}], "query must be a string (got a number)"),
            ("note", [{"type": "x"}], "type must be a string (got an object)"),
            ("note", ["said", "text"], "data must be an object (got a string)"),
            ("import", [7], "the export must be an object (got a number)"),
            ("import", [BLOB, {"strategy": "bogus"}], 'strategy must be "merge" or "replace" (got "bogus")'),
            ("importFiles", [{"a.md": 1}], "files.a.md must be a string (got a number)"),
            ("importFiles", [{}, {"strategy": None}], "strategy must be"),
        ):  # fmt: skip
            assert said in refused(web, method, *given), (method, given)
        assert (web.list(), web.timeline()) == before


def test_json_of_another_program_is_not_an_export(url: str, memory: Memory) -> None:
    root_of(memory)
    with web_client() as client:
        web = client.open("others", url, **by_wallet(), token=PEER_TOKEN)
        for given in ({}, {"memories": [{"memory": "Likes tea"}]}, "{}"):
            with pytest.raises(ClientError, match="this is not an export of a memory") as error:
                getattr(web, "import")(given)
            assert error.value.kind == "format"
        getattr(web, "import")({"files": {}})


def test_object_is_imported_and_written_like_its_text(url: str, memory: Memory) -> None:
    root_of(memory)
    with web_client() as client:
        web = client.open("objects", url, **by_wallet(), token=PEER_TOKEN)
        fields = {"name": "Tone", "description": "d", "type": "feedback", "body": "Be brief."}
        assert web.write("feedback_tone", fields)["body"] == "Be brief."
        shown = web.read("feedback_tone")
        assert (shown["fields"]["name"], shown["fields"]["type"]) == ("Tone", "feedback")
        getattr(web, "import")(BLOB)
        assert web.read("a")["body"] == "x"
