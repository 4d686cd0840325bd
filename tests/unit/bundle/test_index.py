"""The generated index against the shared vectors and a real Markdown parser."""

import json
from pathlib import Path

import pytest

from ipfsmem.bundle.index import IndexItem, cap_index, render_index
from ipfsmem.errors import FormatError

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures/vectors/index.json").read_text("utf-8"))


def items(case, name):
    return [IndexItem(**item) for item in case[name]]


@pytest.mark.parametrize("case", VECTORS["render"], ids=lambda c: c["about"])
def test_rendered_index_equals_the_vectors(case):
    assert render_index(items(case, "items"), items(case, "attention")) == case["text"]


@pytest.mark.parametrize("case", VECTORS["bad"])
def test_foreign_names_are_escaped_in_the_index(case):
    with pytest.raises(FormatError):
        render_index(items(case, "items"), items(case, "attention"))


@pytest.mark.parametrize("case", VECTORS["cap"]["cases"])
def test_shortened_index_equals_the_vectors(case):
    text = VECTORS["cap"]["text"]
    capped = cap_index(text, case["relevance"], case["max_lines"], case["max_bytes"])
    assert capped == case["capped"]
    if case["max_bytes"] and capped != text:
        assert capped.count("\n") <= case["max_lines"]
        assert len(capped.encode()) <= case["max_bytes"]


def test_order_of_the_input_does_not_matter():
    given = [IndexItem(f"k{n}", type=("user", "project")[n % 2]) for n in range(20)]
    assert render_index(given) == render_index(reversed(given))


def test_default_caps_keep_the_most_relevant():
    given = [IndexItem(f"k{n:04d}", "N" * 50, "d" * 100, "user") for n in range(1000)]
    text = render_index(given)
    capped = cap_index(text, ["k0999", "k0500"])
    assert "(k0999.md)" in capped and "(k0500.md)" in capped
    shown = capped.count("\n- ")
    assert capped.endswith(f"\n({1000 - shown} more not shown)\n")
    assert len(capped.encode()) <= 25 * 1024 and capped.count("\n") <= 200
    assert all(line in text.split("\n") for line in capped.split("\n")[:-2])


def test_key_is_found_after_a_name_with_special_characters():
    tricky = IndexItem("z", "x](b.md) \\", "[y](c.md)", "user")
    text = render_index([tricky, *(IndexItem(key, type="user") for key in "bcd")])
    capped = cap_index(text, ["z"], max_lines=6)
    assert [line[-20:] for line in text.split("\n") if line in capped and line[:1] == "-"] == [
        text.split("\n")[6][-20:]
    ]
    assert "(z.md)" in capped and capped.endswith("(3 more not shown)\n")


def test_every_index_line_is_one_link_for_a_markdown_parser():
    import markdown_it  # a dependency of rich

    nasty = [
        "`a",
        "b` <i>",
        "<a](x.md)",
        "![x](y)",
        "[x]: y",
        "&#93;](z.md)",
        "\\",
        "a\\]",
        "*a **b",
        "http://x.y",
        "</b>",
    ]
    given = [
        IndexItem(f"k{n}", name, other, "user")
        for n, (name, other) in enumerate((a, b) for a in nasty for b in nasty)
    ]
    tokens = markdown_it.MarkdownIt("commonmark").parse(render_index(given))
    lines = [t for t in tokens if t.type == "inline" and t.level > 1]
    assert len(lines) == len(given)
    for line in lines:
        links = [t for t in line.children if t.type == "link_open"]
        assert len(links) == 1
        assert line.children[0].type == "link_open"
        assert links[0].attrs["href"].endswith(".md")
        assert not any(t.type in ("html_inline", "image", "softbreak") for t in line.children)
