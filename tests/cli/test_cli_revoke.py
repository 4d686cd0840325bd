"""`ipfsmem member revoke`: its output, its refusals, and a revoked device with its texts."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.cli_lab import KEY, Cli


@pytest.fixture
def revoked(sealed: Cli, second: Cli) -> tuple[Cli, Cli]:
    """A second device that wrote a text and was revoked by the first before it published it."""
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    second.ok("sync")
    second.ok("write", "own", "--body", "never sent")
    sealed.ok("member", "revoke", "second", key=KEY)
    return sealed, second


def test_revoke_explains_its_effects(sealed: Cli, second: Cli) -> None:
    sealed.ok("sync")
    said = sealed.ok("member", "revoke", "second", "--json", key=KEY).json
    (told,) = [one["text"] for one in said["notices"] if one["kind"] == "revoked"]
    assert re.match(r"removed second \([0-9a-f]{16}\): other devices ignore its future writes", told)
    assert "but nothing later" in told and "may still read what others write before their next sync" in told
    assert "rotate the tokens and passwords" in told and "the provider stays" in told


def test_revoke_reports_truly_when_other_devices_change_keys(
    sealed: Cli, second: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device writes under the old key until its next sync."""
    third = Cli(tmp_path / "third", monkeypatch)
    third.ok("init", "--unprotected-keys", "--label", "third", key=KEY)
    sealed.ok("sync")
    before = third.ok("member", "list", "--json").json["seals"]["ek"]
    sealed.ok("member", "revoke", "second", key=KEY)
    assert third.ok("member", "list", "--json").json["seals"]["ek"] == before
    third.ok("sync")
    assert (
        third.ok("member", "list", "--json").json["seals"]["ek"]
        == sealed.ok("member", "list", "--json").json["seals"]["ek"]
        != before
    )


def test_devices_with_equal_labels_are_listed_with_their_ids(
    sealed: Cli, second: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    third = Cli(tmp_path / "third", monkeypatch)
    third.ok("init", "--unprotected-keys", "--label", "second", key=KEY)
    sealed.ok("sync")
    members = sealed.ok("member", "list", "--json").json["members"]
    ids = [m["id"] for m in members if m["label"] == "second"]
    refused = sealed.fails(2, "member", "revoke", "second", key=KEY).err
    assert len(ids) == 2 and all(f"second ({one})" in refused for one in ids)
    third.ok("write", "tone", "--body", "direct")
    third.ok("sync")
    (me,) = (m["id"] for m in third.ok("member", "list", "--json").json["members"] if m["this_device"])
    assert f"from second ({me})" in sealed.ok("sync").out
    sealed.ok("member", "revoke", me, key=KEY)
    second.ok("write", "tone2", "--body", "direct")
    second.ok("sync")
    said = sealed.ok("sync").out
    assert "from second" in said and "second (" not in said


def test_revoke_by_label_like_an_id_prefix_does_not_match_the_id(sealed: Cli, second: Cli) -> None:
    sealed.ok("sync")
    ids = {m["label"]: m["id"] for m in sealed.ok("member", "list", "--json").json["members"]}
    sealed.ok("member", "rename", "second", ids["first"][:4], key=KEY)
    refused = sealed.fails(2, "member", "revoke", ids["first"][:4], key=KEY).err
    assert ids["first"] in refused and ids["second"] in refused and "Pass the whole id." in refused
    sealed.fails(2, "member", "revoke", "", key=KEY)
    sealed.ok("member", "revoke", ids["second"], key=KEY)


@pytest.mark.parametrize("how", ["label", "id"])
def test_device_cannot_revoke_itself(sealed: Cli, second: Cli, how: str) -> None:
    (me,) = (m["id"] for m in sealed.ok("member", "list", "--json").json["members"] if m["this_device"])
    before = sealed.ok("status", "--json").json["root"]
    refused = sealed.fails(2, "member", "revoke", "first" if how == "label" else me, key=KEY)
    assert sealed.ok("status", "--json").json["root"] == before
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    hint = re.search(
        r"On another device of this memory: ipfsmem (member revoke \w+) --wallet FILE", refused.err
    )
    assert hint, refused
    second.ok(*shlex.split(hint[1]), key=KEY)
    assert sealed("sync").code == 27


def test_root_member_cannot_be_revoked(sealed: Cli) -> None:
    for label in ("wallet", "recovery words"):
        sealed.fails(26, "member", "revoke", label, key=KEY)


def test_revoked_device_reports_its_revocation_at_the_next_sync(revoked: tuple[Cli, Cli]) -> None:
    """The new key's statement is public (format section 4), so the device needs no key to see it."""
    _, second = revoked
    said = second("sync")
    assert said.code == 27 and "was revoked: other devices ignore its writes" in said.out
    assert "Never published from here: own." in said.out and "member admit" not in said.out
    told = second.ok("status", "--json").json["notices"]
    assert len([text for text in told if "was revoked" in text]) == 1
    found = second("vault", "check", "--json")
    assert found.code == 1
    assert [f["code"] for f in found.json["findings"] if f["level"] == "error"] == ["revoked"]
    for command in ("admit", "rotate"):
        refused = second.fails(26, "member", command, key=KEY)
        assert "was revoked permanently" in refused.err and "ipfsmem export --dir DIR" in refused.err


def test_printed_advice_moves_the_texts_of_a_revoked_device(revoked: tuple[Cli, Cli], tmp_path: Path) -> None:
    """Every printed step is run in order."""
    first, second = revoked
    advice = second("sync").out
    out, moved = tmp_path / "taken along", tmp_path / "moved away"
    steps = re.findall(r"ipfsmem ((?:export|init|import)[^;.,)\n]*)", advice)
    assert [step.split()[0] for step in steps] == ["export", "init", "import"], advice
    folder = re.search(r"move (\S+) away", advice)
    assert folder and Path(folder[1]) == second.home / "default"

    def run(step: str, **extra: str) -> None:
        words = [str(out) if word == "DIR" else word for word in shlex.split(step)]
        if "--wallet" in words:  # these tests pipe in the wallet
            words = [*words[: words.index("--wallet")], "--unprotected-keys"]
        second.ok(*words, **extra)

    run(steps[0])
    shutil.move(folder[1], moved)
    run(steps[1], key=KEY)
    run(steps[2])
    second.ok("sync")
    first.ok("sync")
    assert first.ok("read", "own", "--body").out == "never sent\n"
    assert first.ok("conflicts", "--json").json["conflicts"] == []
    assert (
        second.ok("member", "list", "--json").json["seals"]
        == first.ok("member", "list", "--json").json["seals"]
    )


def test_unpublished_revoke_is_reported_as_an_error(
    sealed: Cli, second: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipfsmem_providers.directory import DirectoryProvider

    from ipfsmem.errors import ProviderUnavailable

    sealed.ok("sync")
    syncs = []

    async def gone(self: DirectoryProvider, *given: object, **more: object) -> object:
        syncs.append(given)
        raise ProviderUnavailable("the stick was pulled out")

    with monkeypatch.context() as patch:
        patch.setattr(DirectoryProvider, "put_car", gone)
        refused = sealed.fails(41, "member", "revoke", "second", key=KEY)
    assert syncs and "Publish it with: ipfsmem sync" in refused.err
    second.ok("sync")
    sealed.ok("sync")
    assert second("sync").code == 27
