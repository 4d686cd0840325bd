"""Recovery phrases equal the vectors; mistyped ones name the wrong word."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.errors import ConfigError, FormatError, UsageError
from ipfsmem.wallet import recovery_words

V = json.loads((Path(__file__).parents[3] / "fixtures/vectors/recovery.json").read_text())


def test_recovery_phrase_equals_the_example_of_the_format():
    assert " ".join(recovery_words.to_words(b"\x02" * 32)) == (
        "acoustic avoid letter advice cage absurd amount doctor acoustic avoid letter advice cage absurd amount"
        " doctor acoustic avoid letter advice cage absurd amount exchange"
    )


@pytest.mark.parametrize("row", V["recovery"])
def test_recovery_phrases_equal_the_vectors(row):
    assert " ".join(recovery_words.to_words(bytes.fromhex(row["secret"]))) == row["words"]
    assert recovery_words.from_words(row["words"]).hex() == row["secret"]


@pytest.mark.parametrize("text", V["same_secret"]["texts"])
def test_phrase_is_read_despite_case_numbers_and_spaces(text):
    assert recovery_words.from_words(text).hex() == V["same_secret"]["secret"]


@pytest.mark.parametrize("row", V["refused"], ids=lambda row: row["name"])
def test_invalid_phrase_names_the_wrong_word(row):
    with pytest.raises(FormatError) as caught:
        recovery_words.from_words(row["text"])
    if row["position"]:
        wrong = row["text"].split()[row["position"] - 1]
        assert f"recovery word {row['position']}, {wrong!r}" in str(caught.value)


def test_mistyped_word_gets_a_suggestion():
    with pytest.raises(FormatError, match="perhaps 'acoustic'"):
        recovery_words.from_words("acustic")


def test_long_text_is_refused_quickly():
    with pytest.raises(FormatError, match="200000 words in the recovery phrase"):
        recovery_words.from_words("abandon " * 200_000)


@settings(max_examples=40, deadline=None)
@given(st.binary(min_size=32, max_size=32))
def test_round_trip_equals_eth_account(secret):
    from eth_account.hdaccount import Mnemonic

    said = recovery_words.to_words(secret)
    assert " ".join(said) == Mnemonic().to_mnemonic(secret)
    assert recovery_words.from_words(" ".join(said)) == secret


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_secret_of_wrong_size_is_refused(size):
    with pytest.raises(UsageError):
        recovery_words.to_words(bytes(size))


def test_word_list_of_another_language_is_refused(tmp_path, monkeypatch):
    class Spec:
        submodule_search_locations = (str(tmp_path),)

    recovery_words.word_list.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: Spec)
    with pytest.raises(ConfigError, match="cannot be read"):
        recovery_words.word_list()
    folder = tmp_path / "hdaccount" / "wordlist"
    folder.mkdir(parents=True)
    (folder / "english.txt").write_text("abandon\n")
    with pytest.raises(ConfigError, match="not the English list"):
        recovery_words.word_list()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="not installed"):
        recovery_words.word_list()


def test_ethereum_library_is_not_imported():
    program = (
        "import sys; from ipfsmem.seal import objects, secret_file;"
        "from ipfsmem.wallet import message, recovery_words, root_keys, signers;"
        "recovery_words.to_words(bytes(32));"
        "print([m for m in sys.modules if m.split('.')[0] in ('eth_account', 'eth_keys', 'eth_keyfile', 'eth_utils')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
