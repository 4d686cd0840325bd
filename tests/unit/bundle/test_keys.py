"""Keys and file names against the shared vectors."""

import json
from pathlib import Path

import pytest

from ipfsmem.bundle import keys
from ipfsmem.errors import FormatError, KeyNameError

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures/vectors/keys.json").read_text("utf-8"))


@pytest.mark.parametrize("key", VECTORS["valid"])
def test_valid_keys_are_accepted(key):
    assert keys.is_key(key)
    assert keys.check_key(key) == key
    assert keys.file_name(key) == f"{key}.md"


@pytest.mark.parametrize("key", VECTORS["invalid"])
def test_invalid_keys_are_refused(key):
    assert not keys.is_key(key)
    for refuse in (keys.check_key, keys.file_name):
        with pytest.raises(KeyNameError) as caught:
            refuse(key)
        assert ascii(key)[:70].rstrip("'") in str(caught.value)


@pytest.mark.parametrize("case", VECTORS["foreign"], ids=lambda c: ascii(c["name"])[:30])
def test_foreign_names_become_the_keys_of_the_vectors(case):
    assert keys.key_of_foreign_name(case["name"]) == (case["key"], case["origin_name"])
    assert keys.is_key(case["key"])


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Überraschung Nr 1.md", "berraschung_nr_1-f95dc973"),
        ("日本.md", "x-a9748821"),
        ("MEMORY.md", "memory-fe1ee863"),
    ],
)
def test_keys_of_foreign_names_equal_known_values(name, key):
    assert keys.key_of_foreign_name(name) == (key, name)


@pytest.mark.parametrize("case", VECTORS["conflict_names"], ids=lambda c: c["name"])
def test_conflict_file_names_are_split_and_joined(case):
    split = keys.split_conflict_name(case["name"])
    assert (split or (None, None)) == (case["key"], case["hash"])
    if split:
        assert keys.conflict_file_name(split[0], split[1] + "f" * 56) == case["name"]


def test_conflict_file_name_refuses_an_invalid_hash():
    with pytest.raises(FormatError):
        keys.conflict_file_name("tone", "../../..")
    with pytest.raises(KeyNameError):
        keys.conflict_file_name("../tone", "0" * 64)


def test_name_that_is_not_unicode_is_refused():
    with pytest.raises(FormatError, match=r"\\ud800"):
        keys.key_of_foreign_name("\ud800.md")


def test_long_invalid_key_is_shortened_in_the_message():
    with pytest.raises(KeyNameError) as caught:
        keys.check_key("x" * 10_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("token", VECTORS["scopes"])
def test_valid_scope_tokens_are_accepted(token):
    assert keys.is_scope(token)
    assert keys.check_scope(token) == token


@pytest.mark.parametrize("token", VECTORS["no_scopes"])
def test_invalid_scope_tokens_are_refused(token):
    """`2026-04-14` is the name of a day."""
    assert not keys.is_scope(token)
    with pytest.raises(KeyNameError, match="scope") as caught:
        keys.check_scope(token)
    assert "scope" in caught.value.hint
