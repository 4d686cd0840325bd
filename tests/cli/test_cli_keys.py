"""`ipfsmem member` and `ipfsmem key`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli_lab import KEY, Cli

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"


def test_member_list_shows_members_and_the_sealing_key(sealed: Cli, second: Cli) -> None:
    sealed.ok("sync")
    found = sealed.ok("member", "list", "--json").json
    assert sorted(m["label"] for m in found["members"]) == ["first", "recovery words", "second", "wallet"]
    assert [m["label"] for m in found["members"] if m["this_device"]] == ["first"]
    assert sorted(m["label"] for m in found["members"] if m["root"]) == ["recovery words", "wallet"]
    assert found["seals"]["epoch"] == 1 and found["revoked"] == []
    lines = sealed.ok("member", "list").out.splitlines()
    assert len(lines) == 4 and any("\tthis device" in line for line in lines)


def test_revoked_device_cannot_sync(sealed: Cli, second: Cli) -> None:
    sealed.fails(2, "member", "revoke", "second")
    sealed.fails(2, "member", "revoke", "nobody", key=KEY)
    sealed.ok("member", "revoke", "second", key=KEY)
    found = sealed.ok("member", "list", "--json").json
    assert "second" not in [m["label"] for m in found["members"]] and len(found["revoked"]) == 1
    assert found["seals"]["epoch"] == 2
    sealed.ok("write", "secret", "--body", "not for second")
    sealed.ok("sync")
    second("sync")
    assert "secret" not in second.ok("list").out


def test_member_rotate_starts_a_new_key_epoch(sealed: Cli, second: Cli) -> None:
    before = sealed.ok("member", "list", "--json").json["seals"]
    sealed.ok("member", "rotate", key=KEY)
    after = sealed.ok("member", "list", "--json").json["seals"]
    assert after["epoch"] == before["epoch"] + 1 and after["ek"] != before["ek"]
    sealed.ok("member", "admit", key=KEY)
    sealed.ok("write", "tone", "--body", "x")
    sealed.ok("sync")
    second.ok("sync")
    assert second.ok("read", "tone", "--body").out == "x\n"


def test_member_list_of_a_local_vault_is_empty_and_explained(cli: Cli) -> None:
    assert cli.ok("member", "list", "--json").json["members"] == []
    assert "a mode without members and keys" in cli.ok("member", "list").err


def test_key_derive_prints_the_known_values(bare: Cli) -> None:
    found = bare.ok("key", "derive", "--json", stdin=f"0x{KEY}\n".encode()).json
    assert found == {
        "address": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
        "vault": "default",
        "key_number": 1,
        "message_sha256": "94344f0f97a9ab77f58b0554ee841905cb62a4d54eece4467db9015d983e9f24",
        "admin_public": "f35735900859a4ad182aa6e8852722c266f6188ba6ccd6c33dbbe36aef6671e7",
        "head_public": "a011fc2b40496ea03980f4883b74dcdcae1db1ef91dfec5bf4e7048030cbded9",
        "box_public": "fa807d595bf506efa6e1ef5cec93d74eef8757ac349990e9f4342e64939f7b7d",
        "check": "dcade9376024a26b",
        "vault_tag": "3973bff87388964db243992eeb7c6506",
        "plain_vault_tag": "3917eeda997d4077b7d1051d46a7239b",
        "ipns_name": found["ipns_name"],
    }
    assert found["ipns_name"].startswith("k51qzi5uqu5d")
    for line in bare.ok("key", "derive", stdin=KEY.encode()).out.splitlines():
        name, value = line.split()
        assert str(found[name]) == value


def test_key_derive_refuses_invalid_keys_and_numbers(bare: Cli) -> None:
    bare.fails(10, "key", "derive", stdin=b"")
    bare.fails(10, "key", "derive", stdin=b"12 34")
    assert bare.fails(2, "key", "derive", stdin=b"0" * 64).err.startswith("ipfsmem: ")
    bare.fails(2, "key", "derive", "--vault", "Not A Label", stdin=KEY.encode())
    for number in ("0", str(2**31)):
        for words in (("key", "derive"), ("key", "vaults", "--add", "bob")):
            assert "--key-number" in bare.fails(2, *words, "--key-number", number, stdin=KEY.encode()).err
    assert json.loads((VECTORS / "derivation.json").read_text())
