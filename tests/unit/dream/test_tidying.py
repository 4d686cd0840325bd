"""Proposals of a dream without a model: changes that lose no sentence, and lists for the user to decide on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ipfsmem.bundle.links import is_index_line, links, retarget_links
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory
from ipfsmem.dream.gates import Gates, closed
from ipfsmem.dream.proposal import MOST_CHANGES, Note, Proposal
from ipfsmem.dream.tidying import doubtful, tidy

TEA = "The user drinks green tea every morning. They never add sugar to it."


def note(key: str, body: str, worth: float = 0.5, expired: bool = False, **fields: str) -> Note:
    return Note(key=key, file=MemoryFile({"type": "user", **fields}, body), priority=worth, expired=expired)


def once(proposal: Proposal) -> bool:
    """Return whether each memory is changed by at most one step."""
    keys = [change.key for step in proposal.steps for change in step.changes]
    return len(keys) == len(set(keys))


def gone(proposal: Proposal) -> set[str]:
    return {change.key for step in proposal.steps for change in step.changes if change.text is None}


def texts(proposal: Proposal) -> dict[str, MemoryFile]:
    return {
        change.key: parse_memory(change.text.encode())
        for step in proposal.steps
        for change in step.changes
        if change.text is not None
    }


def found(proposal: Proposal) -> set[tuple[str, str, str]]:
    return {(one.kind, one.key, one.other) for one in proposal.found}


def test_equal_text_with_fewer_fields_is_removed() -> None:
    made = tidy([note("a", TEA), note("b", TEA, description="What they drink")])
    assert gone(made) == {"a"}
    assert made.steps[0].why == "b contains everything that a says" and made.steps[0].keys == ("a", "b")


def test_text_contained_in_another_is_removed_and_links_are_redirected() -> None:
    longer = f"{TEA} In the afternoon they drink coffee, and water in between."
    made = tidy(
        [
            note("short", TEA, tags="[tea]", important="true"),
            note("long", longer),
            note("see", "Look at [[short]] and [it](short.md)."),
        ]
    )
    assert gone(made) == {"short"}
    assert texts(made)["long"].tags == ("tea",) and texts(made)["long"].important
    assert texts(made)["see"].body == "Look at [[long]] and [it](long.md)."
    assert not made.found


def test_equal_texts_of_two_types_are_merged_within_each_type() -> None:
    made = tidy(
        [
            note(key, TEA, type=type)
            for key, type in zip("abcd", ("user", "project", "project", "user"), strict=True)
        ]
    )
    assert len(gone(made)) == 2 and len(gone(made) & {"a", "d"}) == 1


def test_equal_texts_with_two_descriptions_are_merged_within_each() -> None:
    made = tidy(
        [
            note(key, TEA, description=text)
            for key, text in zip("abcd", ("At home", "Away", "At home", "Away"), strict=True)
        ]
    )
    assert len(gone(made)) == 2 and len(gone(made) & {"a", "c"}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (note("a", TEA), note("b", TEA.replace("never add", "add"))),
        (note("a", TEA, description="Only at home"), note("b", TEA, description="Only on journeys")),
        (note("a", TEA, type="user"), note("b", TEA, type="feedback")),
        (note("a", TEA, expires="2027-01-01"), note("b", TEA)),
        (note("a", TEA, name="Of Anna"), note("b", TEA, name="Of Ben")),
        (
            note("a", "The user drinks green tea."),
            note("b", "It is wrong that the user drinks green tea, as was said."),
        ),
        (note("a", "The port of the server is 8080 now"), note("b", "The port of the server is 80 80 now")),
        (note("a", "Use C for the firmware of it"), note("b", "Use C++ for the firmware of it")),
        (note("a", "Ask the US team first, please"), note("b", "Ask the us team first, please")),
    ],
    ids=[
        "negated",
        "descriptions",
        "types",
        "until when",
        "names",
        "in a sentence",
        "numbers",
        "signs",
        "case",
    ],
)
def test_texts_that_may_differ_in_meaning_remain(one: Note, other: Note) -> None:
    assert not tidy([one, other]).steps


def test_two_reasons_to_change_one_memory_make_one_step() -> None:
    other = "The user drives a red car to work. It has four doors."
    stay = [note("a", TEA, important="true"), note("c", other, important="true")]
    made = tidy([*stay, note("b", TEA), note("d", other), note("see", "[[b]], [[d]]")])
    (step,) = made.steps
    assert step.why == "a contains everything that b says; c contains everything that d says"
    assert texts(made)["see"].body == "[[a]], [[c]]"


def test_possible_contradiction_is_listed_with_its_difference() -> None:
    plain = "The user wants long answers with many examples in each review of the code"
    made = tidy([note("a", plain), note("b", plain.replace("wants", "does not want"))])
    (one,) = made.found
    assert (one.kind, one.key, one.other, one.detail) == (
        "contradiction",
        "a",
        "b",
        "only one of them says not",
    )
    port = "The staging server of the shop listens on port 8443 behind the proxy of the company"
    made = tidy([note("a", port), note("b", port.replace("8443", "9443"))])
    assert [one.detail for one in made.found] == ["one says 8443, the other 9443"]


def test_entities_with_the_same_relations_stay_separate() -> None:
    said = "## Relations\n\n- works_on: [[tidewatch]]\n- lives_in: [[osen]]"
    made = tidy([note(key, said, name=key.title(), tags="[entity]") for key in ("yuki", "lukasz")])
    assert made.steps == () and not [one for one in made.found if one.kind == "alike"]


@pytest.mark.parametrize(
    ("ended", "written", "gap"),
    [
        ("2026-06-01", (), None),
        ("2026-06-01", ("2026-07-01",), None),
        ("2026-06-01", ("2026-05-20", "2026-06-19"), None),
        ("2026-06-01", ("2026-05-20", "2026-06-20"), ("2026-05-20", "2026-06-20")),
        ("2026-06-01", ("2026-01-01",), ("2026-01-01", "2036-01-01")),
        ("2026-06-01", ("2026-05-30", "2035-12-30", "2026-01-01"), ("2026-05-30", "2035-12-30")),
        ("2026-06-01", ("2026-06-01", "2026-06-02", "2035-12-30"), None),
    ],
)
def test_expiry_day_in_a_gap_of_writing_is_doubtful(
    ended: str, written: tuple[str, ...], gap: tuple[str, str] | None
) -> None:
    day = date.fromisoformat
    wanted = None if gap is None else (day(gap[0]), day(gap[1]))
    assert doubtful(day(ended), map(day, written), day("2036-01-01")) == wanted


def test_doubtfully_expired_memory_is_listed_and_tidied_like_any_other() -> None:
    held = structs.replace(
        note("lease", "Of [[boat]]. See [[offer]].", expires="2027-01-01"), doubtful="who knows"
    )
    made = tidy((held, note("offer", "Half", expired=True, expires="2026-01-31"), note("boat", "Is blue")))
    assert [(step.changes[0].key, step.asks) for step in made.steps] == [("offer", False), ("lease", True)]
    assert made.steps[1].why == "lease was valid until 2027-01-01, as it states; who knows"
    assert [(one.kind, one.other) for one in made.found] == [("broken-link", "offer")]
    twice = structs.replace(held, key="lease_too")
    made = tidy((held, twice, note("boat", "Is blue"), note("offer", "Half")))
    assert len(made.steps) == 1 and not made.steps[0].asks, "it says the same, and goes into the other"


def test_expired_memory_is_removed_and_a_faded_one_listed() -> None:
    made = tidy(
        [
            note("offer", "Half the price", expired=True, expires="2026-01-31"),
            note("old", "Once they skied", 0.02),
        ]
    )
    assert gone(made) == {"offer"} and found(made) == {("faded", "old", "")}
    assert made.steps[0].why == "offer was valid until 2026-01-31, as it states"


def test_broken_links_and_stale_index_lines_are_listed() -> None:
    made = tidy(
        [
            note(
                "a",
                "See [[b]], [[nowhere]], [[other#part]] and [[in_a_scope|it]]; [file](sub/x.md), [[Not a key]]",
            ),
            note("b", "- [Gone](gone.md) - it went\n- [A](a.md) - here"),
        ],
        elsewhere={"in_a_scope"},
        index_key="b",
    )
    assert found(made) == {
        ("broken-link", "a", "nowhere"),
        ("broken-link", "a", "other"),
        ("stale-line", "b", "gone"),
    }
    assert next(one for one in made.found if one.kind == "stale-line").detail == "- [Gone](gone.md) - it went"


def test_dream_changes_at_most_its_limit_and_counts_the_rest() -> None:
    many = [
        note(f"{name}{n}", f"Fact number {n} about the house") for n in range(MOST_CHANGES) for name in "ab"
    ]
    made = tidy([*many, *(note(f"c{n}", f"Fact number {n} about the house") for n in range(5))])
    assert made.changes <= MOST_CHANGES and made.changes + made.left == MOST_CHANGES + 5


_body = st.lists(
    st.sampled_from(
        ["Tea is good.", "Tea is not good.", "Use port 80.", "See [[a]].", "See [[d]]", "line\nline"]
    ),
    max_size=4,
).map(" ".join)
_notes = st.dictionaries(
    st.sampled_from("abcdefg"),
    st.builds(
        lambda body, type, description, important: (
            note("x", body, type=type, description=description, important=important).file
        ),
        _body,
        st.sampled_from(["user", "project"]),
        st.sampled_from(["", "Tea is good.", "of tea"]),
        st.sampled_from(["", "true"]),
    ),
).map(lambda made: [Note(key=key, file=file) for key, file in made.items()])


@given(_notes)
def test_dreams_lose_no_sentence_and_end(notes: list[Note]) -> None:
    """A second dream changes nothing, unless the first redirected links, which can make two texts equal."""
    files, redirected = {one.key: one.file for one in notes}, True
    for _ in range(len(notes) + 1):
        made = tidy([Note(key=key, file=file) for key, file in files.items()])
        if not made.steps:
            break
        assert redirected and once(made) and gone(made)
        after = files | texts(made)
        for key in gone(made):
            del after[key]
        assert _sentences(files.values()) <= _sentences(after.values())
        assert any(one.important for one in after.values()) == any(one.important for one in files.values())
        assert {link.to for file in after.values() for link in links(file.body)} <= after.keys() | {
            link.to for one in files.values() for link in links(one.body)
        } - gone(made)
        redirected = any(after[key].body != files[key].body for key in after)
        files = after
    else:
        pytest.fail("dreams never end")


def _sentences(files: Iterable[MemoryFile]) -> set[tuple[str, str]]:
    """Return type and text of each sentence, with all links redirected to one memory."""
    return {
        (file.type, " ".join(sentence.split()).rstrip("."))
        for file in files
        for text in (file.body, file.description)
        for sentence in retarget_links(text, dict.fromkeys("abcdefg", "a")).replace("\n", ". ").split(". ")
        if sentence.strip()
    }


def test_paraphrases_found_by_a_model_are_listed_and_remain() -> None:
    notes = [
        note("a", TEA),
        note("b", "In the morning there is a cup of sencha."),
        note("c", TEA),
        note("d", "Other."),
    ]
    made = tidy(notes, meant=[("a", "b", 0.951), ("a", "c", 1.0), ("b", "gone", 0.9)])
    assert len(gone(made)) == 1
    stays = "a" if gone(made) == {"c"} else "c"
    again = tidy([one for one in notes if one.key not in gone(made)], meant=[(stays, "b", 0.951)])
    assert not again.steps
    (alike,) = again.found
    assert (alike.kind, {alike.key, alike.other}) == ("alike", {stays, "b"})
    assert alike.detail == "they have a similar meaning (cosine 0.95)"


def test_relative_day_words_get_the_date_of_their_writing() -> None:
    body = (
        "They moved Yesterday, and the fair is next week (in May).\n> yesterday they said\n```\nlast week\n```\n"
        "Yesterday's news. It was 3 days ago; the last Friday, last week of May.\nRun `make tomorrow` tomorrow.\nSee you tomorrow"
    )
    day = {"created": "2026-01-05T08:00:00Z", "updated": "2026-01-05"}
    made = tidy(
        [
            note("a", body, **day),
            note("b", "Tomorrow.", created="2026-01-05", updated="2026-01-09"),
            note("c", "Tomorrow.x"),
        ]
    )
    (step,) = made.steps
    assert step.why == "a says yesterday, 3 days ago, tomorrow, and was written on 2026-01-05"
    text = texts(made)["a"].body
    assert text == (
        "They moved Yesterday (as of 2026-01-05), and the fair is next week (in May).\n> yesterday they said\n```\nlast week\n```\n"
        "Yesterday's news. It was 3 days ago (as of 2026-01-05); the last Friday, last week of May.\nRun `make tomorrow` tomorrow.\n"
        "See you tomorrow (as of 2026-01-05)"
    )
    assert not tidy([note("a", text, **day)]).steps, "once is enough"


def test_merged_text_is_not_dated_in_the_same_dream() -> None:
    day = {"created": "2026-01-05", "updated": "2026-01-05"}
    made = tidy(
        [
            note("a", "It was yesterday in the garden.", **day),
            note("b", "It was yesterday in the garden.", **day),
        ]
    )
    assert len(made.steps) == 1 and len(gone(made)) == 1 and once(made)


def test_link_by_name_is_resolved_as_in_the_graph() -> None:
    longer = f"{TEA} In the afternoon they drink coffee."
    made = tidy(
        [
            note("short", TEA, name="Green tea"),
            note("long", longer, name="What they drink, green tea"),
            note("see", "Look at [[green  Tea]], [[Green tea|this]] and [[short]]. Not [[Another thing]]."),
            note("lower", "See [[acme]] and [[nobody]]."),
            note("acme_corp", "A company.", name="Acme"),
        ]
    )
    assert gone(made) == {"short"}
    assert (
        texts(made)["see"].body
        == "Look at [[long|green  Tea]], [[long|this]] and [[long]]. Not [[Another thing]]."
    )
    assert found(made) == {("broken-link", "lower", "nobody")}


def test_link_by_name_is_unchanged_if_the_remaining_text_has_it() -> None:
    made = tidy(
        [
            note("a", TEA, name="Tea"),
            note("b", TEA, name="Tea", description="What they drink"),
            note("see", "Look at [[tea]], [[b]] and [[b]]."),
        ]
    )
    assert gone(made) == {"a"} and "see" not in texts(made)


def test_links_are_found_with_their_line() -> None:
    text = "one [[a]] two\n- [x](./b.md#c) end [[c|C]] [y](https://h/d.md) [[e"
    assert [(one.to, is_index_line(one.line)) for one in links(text)] == [
        ("a", False),
        ("b", True),
        ("c", True),
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"enabled": False}, "the settings do not allow it"),
        ({"chosen": False}, "it is off for this vault on this device"),
        ({"last": 99_000_000}, "the last dream was 0.3 h ago; the minimum interval is 24 h"),
        ({"sessions": 2}, "2 of 3 sessions were written to since the last dream"),
        ({}, ""),
        ({"last": 200_000_000}, ""),  # the clock was set back
    ],
)
def test_automatic_dream_starts_only_if_all_conditions_hold(given: dict[str, int], said: str) -> None:
    usual = {"enabled": True, "chosen": True, "now": 100_000_000, "last": 0, "sessions": 3}
    assert closed(Gates(), **{**usual, **given}) == said  # type: ignore[arg-type]


def test_links_of_one_long_line_are_read_in_linear_time() -> None:
    found = list(links("[[a]]" * 200_000 + "\n- [b](b.md)\n[[c]]"))
    assert len(found) == 200_002 and max(len(one.line) for one in found) == 400
    assert [(one.to, one.line) for one in found[-2:]] == [("b", "- [b](b.md)"), ("c", "[[c]]")]
