"""`ipfsmem key phrase`: a new recovery phrase; older ones are revoked afterwards and on request."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest

from ipfsmem.cli import words_prompt
from tests.support.cli_lab import KEY, OTHER_KEY, Cli, Result, pipe


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes further devices."""
    return lambda name: Cli(tmp_path / name, monkeypatch)


def recover(cli: Cli, words: list[str]) -> Result:
    return cli("recover", "--unprotected-keys", stdin=" ".join(words).encode())


def shown(text: str) -> list[str]:
    """Return the words of the human-readable output."""
    return [word for _, word in sorted((int(n), w) for n, w in re.findall(r"(\d+) ([a-z]{3,8})\b", text))]


def labels(cli: Cli) -> list[str]:
    members = cli.ok("member", "list", "--json").json["members"]
    return sorted(m["label"][:14] for m in members if m["label"].startswith("recovery"))


def test_new_recovery_phrase_restores_the_vault(sealed: Cli, device: Any) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    result = sealed.ok("key", "phrase", key=KEY)
    words = shown(result.out)
    assert len(words) == 24 and "cannot be revoked" in result.err
    other = device("other")
    assert "Restored: 1 memory" in recover(other, words).out
    assert other.ok("read", "tone", "--body").out == "direct\n"


def test_older_recovery_phrases_remain_without_revoke_old(sealed: Cli, device: Any) -> None:
    first = sealed.ok("key", "phrase", "--json", key=KEY).json
    assert first["published"] and first["revoking"] == [] and [o["root"] for o in first["older"]] == [True]
    kept = sealed.ok("key", "phrase", key=KEY)
    assert f"ipfsmem member revoke {first['id']}" in kept.err
    assert sealed.ok("key", "phrase", "--keep-old", "--json", key=KEY).json["revoking"] == []
    assert recover(device("b"), first["recovery_words"]).code == 0
    assert labels(sealed) == ["recovery words"] * 4


def test_interrupted_command_names_the_phrase_that_it_showed(
    sealed: Cli, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise click.Abort

    with monkeypatch.context() as patch:
        patch.setattr(words_prompt.secret_input, "can_ask", lambda: True)
        patch.setattr(click, "prompt", interrupt)
        done = sealed("key", "phrase", key=KEY)
    assert done.code == 130
    (made,) = re.findall(r"To revoke it: (ipfsmem member revoke [0-9a-f]{16})$", done.err, re.MULTILINE)
    assert recover(device("other"), shown(done.out)).code == 0
    sealed.ok("sync")
    sealed.ok(*made.split()[1:], key=KEY)
    assert "was revoked" in recover(device("late"), shown(done.out)).err


def test_recover_with_a_revoked_phrase_says_that_it_was_revoked(sealed: Cli, device: Any) -> None:
    first = sealed.ok("key", "phrase", "--json", key=KEY).json
    result = sealed.ok("key", "phrase", "--revoke-old", key=KEY)
    assert f"({first['id']})" in result.out.splitlines()[-1] and result.out.index("24 ") < result.out.index(
        "Revoked"
    )
    other = device("other")
    refused = recover(other, first["recovery_words"])
    assert refused.code == 24 and "this recovery phrase was revoked" in refused.err and refused.out == ""
    assert not other.home.exists() or not list(other.home.iterdir())
    assert recover(other, shown(result.out)).code == 0
    text = " ".join(first["recovery_words"])
    assert "revoked" in sealed.fails(24, "member", "admit", "--words-fd", str(pipe(text))).err
    # Earlier phrases are revoked together.
    third = sealed.ok("key", "phrase", "--json", "--revoke-old", key=KEY).json
    assert len(third["revoking"]) == 1 and labels(sealed) == ["recovery words"] * 2


def test_key_phrase_requires_the_wallet(sealed: Cli, device: Any) -> None:
    sealed.fails(2, "key", "phrase")
    sealed.fails(24, "key", "phrase", key=OTHER_KEY)
    made = sealed.ok("key", "phrase", "--json", key=KEY).json
    later = str(pipe(" ".join(made["recovery_words"])))
    assert "came later" in sealed.fails(26, "key", "phrase", "--words-fd", later).err
    stranger = str(pipe(" ".join(["abandon"] * 23 + ["art"])))
    assert "does not belong" in sealed.fails(26, "key", "phrase", "--words-fd", stranger).err
    assert labels(sealed) == ["recovery words"] * 2


def test_recovery_phrase_can_create_another_one(bare: Cli, stick: Path, device: Any) -> None:
    words = bare.ok("init", "--unprotected-keys", "--json", key=KEY).json["recovery_words"]
    other = device("other")
    recover(other, words)
    made = other.ok("key", "phrase", "--json", "--words-fd", str(pipe(" ".join(words)))).json
    assert recover(device("third"), made["recovery_words"]).code == 0


def test_device_with_the_root_key_needs_no_wallet_for_a_phrase(bare: Cli, stick: Path, device: Any) -> None:
    bare.ok("init", "--unprotected-keys", "--no-wallet", "--json")
    words = bare.ok("key", "phrase", "--json").json["recovery_words"]
    other = device("other")
    assert recover(other, words).code == 0
    other.fails(2, "key", "phrase")
    bare.ok("member", "rotate")
    bare.fails(24, "key", "phrase", key=KEY)


def test_key_phrase_of_a_local_or_unpublished_vault_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "has no members" in cli.fails(2, "key", "phrase", key=KEY).err
    lone = Cli(tmp_path / "lone", monkeypatch)
    lone.ok("init", "--unprotected-keys", "--no-wallet", "--json")
    assert "no provider" in lone.fails(3, "key", "phrase").err


def test_key_phrase_without_its_provider_changes_nothing(sealed: Cli, stick: Path) -> None:
    before = labels(sealed)
    stick.rename(stick.with_name("away"))
    result = sealed("key", "phrase", "--revoke-old", key=KEY)
    assert result.code == 41 and result.out == "" and "Traceback" not in result.err
    assert labels(sealed) == before


def test_key_phrase_with_one_of_two_providers_revokes_nothing(
    sealed: Cli, stick: Path, tmp_path: Path, device: Any
) -> None:
    """The shown phrase is valid; the exit code reports the missing provider."""
    other = tmp_path / "other stick"
    other.mkdir()
    sealed.ok("provider", "add", str(stick))
    sealed.ok("provider", "add", str(other))
    first = sealed.ok("key", "phrase", "--json", key=KEY).json
    other.rename(tmp_path / "away")
    result = sealed("key", "phrase", "--revoke-old", "--json", key=KEY)
    assert result.code == 41 and "the older recovery phrases still work" in result.error["message"]
    assert (
        not result.json["published"] and result.json["revoking"] == [] and len(result.json["warnings"]) == 3
    )
    text = sealed("key", "phrase", key=KEY)
    assert text.code == 7 and "Publish it: ipfsmem sync" in text.err
    assert len(shown(text.out)) == 24 and "not published everywhere yet" in text.err
    (tmp_path / "away").rename(other)
    sealed.ok("sync")
    for number, words in enumerate((first["recovery_words"], result.json["recovery_words"], shown(text.out))):
        new = device(f"new{number}")
        assert (
            new(
                "recover", "--unprotected-keys", "--provider", str(other), stdin=" ".join(words).encode()
            ).code
            == 0
        )


def test_failed_revoke_still_shows_the_new_phrase(sealed: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from ipfsmem.errors import ProviderUnavailable
    from ipfsmem.upkeep import Members

    sealed.ok("key", "phrase", "--json", key=KEY)

    async def down(self: Members, member: str, **more: Any) -> None:
        raise ProviderUnavailable("gone just now")

    monkeypatch.setattr(Members, "revoke", down)
    for more in (["--json"], []):
        result = sealed("key", "phrase", "--revoke-old", *more, key=KEY)
        assert result.code == 41 and "gone just now" in result.err
        assert len(result.json["recovery_words"] if more else shown(result.out)) == 24


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_partly_published_revoke_of_a_phrase_exits_with_7(
    sealed: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: list[str]
) -> None:
    """The old phrase still works at the other provider."""
    from ipfsmem.upkeep import Members

    other = tmp_path / "other stick"
    other.mkdir()
    sealed.ok("provider", "add", str(stick))
    sealed.ok("provider", "add", str(other))
    first = sealed.ok("key", "phrase", "--json", key=KEY).json
    revoke = Members.revoke

    async def revoke_with_one_away(self: Members, member: str, **more: Any) -> Any:
        other.rename(tmp_path / "away")
        return await revoke(self, member, **more)

    monkeypatch.setattr(Members, "revoke", revoke_with_one_away)
    done = sealed("key", "phrase", "--revoke-old", *as_json, key=KEY)
    assert done.code == 7 and "not published everywhere yet" in done.err
    assert as_json or ("Revoked: recovery words" in done.out and first["id"] in done.out)


@pytest.mark.parametrize("answer", ["y", "", "n"])
def test_key_phrase_on_a_terminal_asks_before_revoking(
    bare: Cli, stick: Path, device: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    bare.ok("init", "--unprotected-keys", "--no-wallet", "--json")
    old = bare.ok("key", "phrase", "--json").json
    controlling, terminal = pty.openpty()
    environment = {**os.environ, "IPFSMEM_HOME": str(bare.home), "TERM": "dumb"}
    child = subprocess.Popen(
        [sys.executable, "-m", "ipfsmem.cli", "key", "phrase"],
        stdin=terminal, stdout=terminal, stderr=terminal, env=environment, close_fds=True,
    )  # fmt: skip
    os.close(terminal)
    text, answered, ends = "", 0, time.monotonic() + 60
    while time.monotonic() < ends:
        if not select.select([controlling], [], [], 0.5)[0]:
            continue
        try:
            data = os.read(controlling, 65536)
        except OSError:
            break
        if not data:
            break
        text += data.decode()
        asked = [int(n) for n in re.findall(r"Word (\d+): ", text)]
        if len(asked) > answered and text.endswith(": "):
            words = shown(text.split("Word ")[0])
            assert len(words) == 24, repr(text)
            os.write(controlling, f"{words[asked[-1] - 1]}\n".encode())
            answered = len(asked)
        elif answered == 3 and text.rstrip().endswith("[Y/n]:"):
            os.write(controlling, f"{answer}\n".encode())
            answered += 1
    assert child.wait(60) == 0, text
    os.close(controlling)
    assert "Revoke the older recovery phrases (recovery words of " in text
    refused = recover(device("old"), old["recovery_words"])
    assert refused.code == (0 if answer == "n" else 24), refused
    assert recover(device("new"), shown(text.split("Word ")[0])).code == 0


def test_devices_admitted_by_a_revoked_phrase_are_named_and_revocable(sealed: Cli, device: Any) -> None:
    words = sealed.ok("key", "phrase", "--json", key=KEY).json
    theirs = device("theirs")
    assert recover(theirs, words["recovery_words"]).code == 0
    sealed.ok("sync")
    (found,) = (
        m
        for m in sealed.ok("member", "list", "--json").json["members"]
        if m["id"] == theirs.ok("status", "--json").json["device"]
    )
    said = sealed.ok("member", "revoke", words["id"], key=KEY)
    told = " ".join(said.out.split() + said.err.split())
    assert f"still members, added by it: {found['label']} ({found['id']})" in told
    assert found["id"] in [m["id"] for m in sealed.ok("member", "list", "--json").json["members"]]
    (hint,) = re.findall(r"ipfsmem (member revoke [0-9a-f]{16} --cascade)", told)
    gone = sealed.ok(*hint.split(), key=KEY)
    assert f"also revoked, because only it had added them: {found['label']}" in " ".join(gone.out.split())
    assert found["id"] not in [m["id"] for m in sealed.ok("member", "list", "--json").json["members"]]
    sealed.ok("write", "after", "--body", "not for them")
    sealed.ok("sync")
    theirs("sync")
    assert theirs("read", "after").code == 4


def test_device_labelled_like_a_revoked_phrase_is_not_revoked(sealed: Cli, device: Any) -> None:
    words = sealed.ok("key", "phrase", "--json", key=KEY).json
    for label in (words["id"], "another"):
        said = " ".join(words["recovery_words"]).encode()
        device(label).ok("recover", "--unprotected-keys", "--label", label, stdin=said)
    sealed.ok("sync")
    sealed.ok("member", "revoke", words["id"], key=KEY)
    sealed.ok("member", "revoke", words["id"], "--cascade", key=KEY)
    labels = [member["label"] for member in sealed.ok("member", "list", "--json").json["members"]]
    assert words["id"] not in labels and "another" not in labels
