"""Scope cards, redirects and project tokens equal the shared vectors (format section 5.1)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipfsmem.bundle.keys import is_scope
from ipfsmem.bundle.projects import random_token, remote_name, scope_token, slug
from ipfsmem.causal.cards import (
    Card,
    find_project,
    is_forgotten,
    parse_card,
    read_order,
    redirects,
    view_card,
    write_card,
    write_target,
)
from ipfsmem.causal.value import Entry
from ipfsmem.errors import FormatError, LimitError, UsageError

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures" / "vectors" / "scopes.json").read_text("utf-8"))


@pytest.mark.parametrize("case", VECTORS["cards"], ids=lambda c: c["json"][:60])
def test_card_round_trips(case: Any) -> None:
    data = case["json"].encode()
    assert write_card(parse_card(data)) == data


@pytest.mark.parametrize("case", VECTORS["refused_cards"], ids=lambda c: c["why"])
def test_invalid_card_is_refused_without_repeating_it(case: Any) -> None:
    """A remote may contain a password."""
    with pytest.raises((FormatError, LimitError)) as caught:
        parse_card(case["json"].encode())
    assert "token=x" not in str(caught.value) and "me@" not in str(caught.value)


def test_card_size_is_limited() -> None:
    with pytest.raises(LimitError, match="4096"):
        parse_card(b" " * 4097)
    remotes = tuple(("remote", f"example.com/{n:064d}", "x" * 64) for n in range(60))
    with pytest.raises(LimitError, match="4096"):
        write_card(Card(title="a", ids=remotes))
    with pytest.raises(LimitError, match="64 are allowed"):
        write_card(Card(title="a", ids=tuple(("id", f"{n:032x}") for n in range(65))))


@pytest.mark.parametrize("case", VECTORS["merges"]["cases"], ids=lambda c: c["why"])
def test_merged_cards_equal_the_vectors(case: Any) -> None:
    texts = {body: text.encode() for body, text in VECTORS["merges"]["texts"].items()}
    entry = msgspec.convert(case["entry"], Entry)
    for order in (list(entry), list(reversed(entry))):
        shuffled = {dot: entry[dot] for dot in order}
        card = view_card(shuffled, texts.get)
        assert (None if card is None else write_card(card).decode()) == case["card"]
        assert is_forgotten(shuffled) == case["forgotten"]


@pytest.mark.parametrize("case", VECTORS["into"], ids=lambda c: c["why"])
def test_redirects_equal_the_vectors(case: Any) -> None:
    cards = {scope: Card(title="x", into=there) for scope, there in case["into"].items()}
    onward = redirects(cards)
    assert onward == case["followed"] == redirects(dict(reversed(cards.items())))
    assert {scope: write_target(scope, onward) for scope in cards} == case["target"]
    assert {scope: read_order(scope, onward) for scope in cards} == case["stack"]


@pytest.mark.parametrize("case", VECTORS["projects"]["remotes"], ids=lambda c: c["url"])
def test_remote_names_omit_credentials(case: Any) -> None:
    assert remote_name(case["url"]) == case["remote"]
    assert "secret" not in (case["remote"] or "") and "token" not in (case["remote"] or "")
    if case["remote"] is not None:
        card = Card(title="x", ids=(("remote", case["remote"], ""),))
        assert parse_card(write_card(card)) == card


@pytest.mark.parametrize("case", VECTORS["projects"]["tokens"], ids=lambda c: c["token"])
def test_project_tokens_equal_the_vectors(case: Any) -> None:
    token = scope_token(bytes.fromhex(case["vault"]), case["remote"], case["path"])
    assert token == case["token"] and is_scope(token)


@pytest.mark.parametrize("case", VECTORS["projects"]["slugs"], ids=lambda c: c["name"][:20])
def test_slugs_equal_the_vectors(case: Any) -> None:
    assert slug(case["name"]) == case["slug"]
    token = random_token(case["name"], bytes(6))
    assert token == case["slug"] + "-000000000000" and is_scope(token)


def test_equal_projects_are_recognised_as_in_the_vectors() -> None:
    """The same project on two devices, offline, at other paths: one token; `work/api` of two customers:
    two; forks with different `origin`: two scopes; the digits depend on the vault."""
    tag, other = bytes(16), b"\x01" * 16

    def token(url: str, vault: bytes = tag, path: str = "") -> str:
        remote = remote_name(url)
        assert remote is not None
        return scope_token(vault, remote, path)

    home = token("git@github.com:acme/api.git")
    assert home == token("https://me:secret@github.com/Acme/api") and home.startswith("api-")
    assert home != token("git@github.com:acme/api.git", other)
    assert home != token("https://github.com/fork/api.git")
    assert token("https://git.one.example/work/api") != token("https://git.two.example/work/api")
    assert home != token("git@github.com:acme/api.git", path="packages/core")
    # The length separates the parts.
    assert scope_token(tag, "example.com/ab", "c") != scope_token(tag, "example.com/a", "bc")
    with pytest.raises(UsageError):
        scope_token(b"", "example.com/a")
    with pytest.raises(UsageError):
        random_token("a", b"")


def test_project_is_found_only_by_an_exact_id_of_its_card() -> None:
    cards = {
        "b": Card(title="b", ids=(("remote", "github.com/a/b", ""),)),
        "a": Card(title="a", ids=(("id", "0" * 32), ("remote", "github.com/a/b", "core"))),
    }
    assert find_project(cards, [("remote", "github.com/a/b", "")]) == ["b"]
    assert find_project(cards, [("remote", "github.com/a/b", ""), ("id", "0" * 32)]) == ["a", "b"]
    assert find_project(cards, [("remote", "github.com/a", "")]) == []


def test_redirect_chain_is_resolved_in_linear_time() -> None:
    many = 20_000
    cards = {f"s{n:05}": Card(title="t", into=f"s{(n + 1) % many:05}") for n in range(many)}
    started = time.process_time()
    onward = redirects(cards)
    assert time.process_time() - started < 1
    assert len(onward) == many - 1 and "s00000" not in onward
