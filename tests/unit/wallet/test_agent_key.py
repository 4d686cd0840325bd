"""The string of an agent key: what is accepted, what is refused, and that nothing of it is shown."""

from __future__ import annotations

import json
import re
import string
from typing import Any

import pytest

from ipfsmem.bundle.secrets import find_secrets, redact
from ipfsmem.errors import FormatError, IpfsmemError, LimitError
from ipfsmem.wallet.agent_key import PREFIX, AgentKey, KeyProvider, parse_key, render_key
from tests.unit.wallet.make_agent_key_vectors import BUCKET, KEYS, OUT, PEER, key_of, refused

FILE: dict[str, Any] = json.loads(OUT.read_text("utf-8"))


@pytest.mark.parametrize("row", FILE["keys"], ids=lambda row: row["name"])
def test_string_reads_as_the_vector_says(row: dict[str, Any]) -> None:
    key = parse_key(row["text"])
    assert [[one.spec, dict(one.credentials)] for one in key.providers] == row["providers"]
    assert (key.root.hex(), key.anchor.hex(), [*key.least]) == (row["root"], row["anchor"], row["least"])
    assert (key.vault.hex(), key.id) == (row["vault"], row["id"])
    assert key.signer.public.hex() == row["sign_public"] and key.box_public.hex() == row["box_public"]
    assert parse_key(f" \n{row['text']}\n") == key


@pytest.mark.parametrize("row", FILE["refused"], ids=lambda row: row["name"])
def test_refused_string_raises_the_error_of_the_vector(row: dict[str, str]) -> None:
    with pytest.raises(FormatError) as caught:
        parse_key(row["text"])
    assert isinstance(caught.value, LimitError) is (row["error"] == "limit")
    assert not shows_part(f"{caught.value} {caught.value.hint}", row["text"])


def test_vectors_have_the_rows_of_their_module() -> None:
    assert [row["name"] for row in FILE["refused"]] == [row["name"] for row in refused()]
    assert [row["name"] for row in FILE["keys"]] == [name for name, _ in KEYS]
    assert [parse_key(row["text"]) for row in FILE["keys"]] == [key for _, key in KEYS]


@pytest.mark.parametrize("key", [key for _, key in KEYS])
def test_written_string_reads_as_the_same_key(key: AgentKey) -> None:
    text = render_key(key)
    assert parse_key(text) == key
    assert re.fullmatch(r"ipfsmem_ak1_[0-9A-Za-z]+", text)


def test_no_single_wrong_character_is_accepted() -> None:
    text = render_key(PEER)
    for at in range(len(text)):
        for char in string.ascii_letters + string.digits + "_- é":
            if char != text[at]:
                with pytest.raises(FormatError):
                    parse_key(text[:at] + char + text[at + 1 :])
    for end in range(len(text)):
        with pytest.raises(FormatError):
            parse_key(text[:end])


def test_string_with_most_providers_is_written_or_refused() -> None:
    providers = [KeyProvider(f"peer:https://{n}.example", {"peer_token": "t" * 2_048}) for n in range(8)]
    with pytest.raises(LimitError):
        render_key(key_of("long", *providers))
    assert (
        len(parse_key(render_key(key_of("eight", *(KeyProvider(f"/m/{n}") for n in range(8))))).providers)
        == 8
    )


@pytest.mark.parametrize(
    "provider",
    [
        KeyProvider(""),
        KeyProvider("/m\n"),
        KeyProvider("kubo", {"kubo_rpc_url": "http://127.0.0.1"}),
        KeyProvider("peer:https://x", {"peer_token": ""}),
    ],
)
def test_key_that_nobody_could_read_is_not_written(provider: KeyProvider) -> None:
    with pytest.raises(FormatError):
        render_key(key_of("wrong", provider))


@pytest.mark.parametrize("before", ["export IPFSMEM_KEY=", "the key is ", "- IPFSMEM_KEY: '", ""])
@pytest.mark.parametrize("key", [key for _, key in KEYS])
def test_agent_key_is_found_as_a_secret(key: AgentKey, before: str) -> None:
    text = render_key(key)
    assert [before + text][0][find_secrets(before + text)[0].start :].startswith(text)
    assert not shows_part(redact(f"{before}{text}'\nafter"), text)


def test_agent_key_shows_no_secret() -> None:
    key = key_of("bucket", KeyProvider("bucket:s3://team/v", BUCKET))
    shown = f"{key!r} {key} {key.providers!r} {[*key.__rich_repr__()]}"
    assert key.id in shown
    assert "example" not in shown and key.seed.hex() not in shown and repr(key.seed) not in shown


def shows_part(message: str, text: str) -> bool:
    """Whether a message has 12 characters of a string that follow each other, other than its prefix."""
    body = text.strip().removeprefix(PREFIX)
    return any(body[at : at + 12] in message for at in range(len(body) - 11))


def test_parts_of_a_string_are_recognised_in_a_message() -> None:
    text = render_key(PEER)
    assert shows_part(f"refused: {text[20:40]}", text)
    assert not shows_part("refused", text)
    assert issubclass(FormatError, IpfsmemError)
