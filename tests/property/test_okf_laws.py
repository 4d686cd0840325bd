"""Laws of the Open Knowledge Format: writing, reading and writing again gives the same bytes, and every
key survives."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ipfsmem.bundle import header
from ipfsmem.bundle.keys import key_of_foreign_name
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.errors import LimitError
from ipfsmem.exchange import okf
from ipfsmem.exchange.importing import gather
from ipfsmem.exchange.places import Files
from tests.support.effort import cases

SPICE = "-?:,[]{}#&*!|>'\"%@` \n\r\t\\\x00\x85\u2028\ufeffaé🙂0"
text = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.text(st.sampled_from(SPICE), max_size=12),
                 st.sampled_from(["true", "5", "-0", "1.50", "2026-09-23", '{"a":1}', '["x"]', '{"a": 1}', "null", "~", "Yes"]))  # fmt: skip
names = st.one_of(
    st.sampled_from([*header.KNOWN, "title", "okf_name", "ipfsmem_title", "stale_after", "sources", "metadata", "okf_expires", "comment"]),
    text,
)  # fmt: skip
keys = st.sampled_from(["tone", "index", "log", "a-b", "index_", key_of_foreign_name("Notes/My file.md").key])
events = st.lists(
    st.fixed_dictionaries(
        {"ts": st.sampled_from(["2026-04-14", "2026-04-14T12:00:00Z"]), "type": st.sampled_from(["waved", "okf-log", "a`b"]), "text": text}
    ),
    max_size=3,
)  # fmt: skip
quick = settings(max_examples=cases(60, 1500), deadline=None)


def as_files(bundle: dict[str, bytes]) -> Files:
    return Files("bundle", False, tuple(bundle), bundle.__getitem__)


def read_back(bundle: dict[str, bytes]) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
    found = gather(okf.read(as_files(bundle)), "okf")
    assert not found.problems
    texts = {key_of_foreign_name(one.file_name).key: one.render() for one in found.records}
    assert len(texts) == len(found.records)
    return texts, found.events.get("", [])


def is_date(text: str) -> bool:
    try:
        return re.fullmatch(r"[0-9]{4}(-[0-9]{2}){2}", text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


@quick
@example({"tone": ({"agent_name": "0", "stale_after": "2026-09-23"}, "")}, [])
@example({"tone": ({"created": "0000-00-00", "stale_after": "2026-02-30"}, "")}, [])
@given(
    st.dictionaries(keys, st.tuples(st.dictionaries(names, text, max_size=5), text), min_size=1, max_size=3),
    events,
)
def test_okf_file_round_trips(memories: Any, happened: Any) -> None:
    texts = {}
    for key, (fields, body) in memories.items():
        if key.startswith("notes_"):
            fields = {**fields, "origin_name": "Notes/My file.md"}
        texts[key] = render_memory(MemoryFile().with_fields(fields, body))
    bundle = okf.write_bundle(texts, [{**event, "id": "x"} for event in happened])
    try:
        back, again = read_back(bundle)
    except LimitError:
        return
    assert back.keys() == texts.keys()
    assert okf.write_bundle(back, again) == bundle
    for key, data in back.items():
        before, after = parse_memory(texts[key]), parse_memory(data)
        assert after.body == before.body
        kept = {**before.fields, "type": before.type or okf.NO_TYPE}
        if "expires" not in kept and is_date(kept.get("stale_after", "")):
            kept["expires"] = kept.pop("stale_after")
        assert after.fields == kept
    for path, data in bundle.items():
        if path not in ("index.md", "log.md"):
            found = yaml.load(data.decode().split("---\n")[1], Loader=yaml.SafeLoader)
            assert isinstance(found["type"], str) and found["type"]
