"""`ipfsmem key sheet`: its contents restore the vault, and it has no secret."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest

from ipfsmem.vault import sheet
from ipfsmem.vault.sheet import NEEDS, without_secrets
from tests.support.cli_lab import KEY, Cli, pipe

DOCS = Path(__file__).parents[2] / "docs"


def commands(page: str) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in page.splitlines() if line.startswith("    ipfsmem ")]


def test_key_sheet_recovers_the_vault(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = bare.ok("init", "-n", "alex", "--unprotected-keys", "--json", "--key-number", "7", key=KEY).json
    bare.ok("write", "tone", "-n", "alex", "--body", "direct")
    bare.ok("sync", "-n", "alex")
    page = bare.ok("key", "sheet", "-n", "alex").out
    status = bare.ok("status", "-n", "alex", "--json").json
    for fact in (
        status["root"],
        status["vault"]["tag"],
        status["vault"]["address"],
        "ipfsmem-",
        "k51",
        str(stick),
    ):
        assert fact in page
    assert page.count("_______________") == 24 and len(page.splitlines()) <= 60
    assert max(map(len, page.splitlines())) <= 80 or str(stick) in max(page.splitlines(), key=len)
    by_words, by_wallet = commands(page)
    monkeypatch.delenv("IPFSMEM_PROVIDER")
    other = Cli(tmp_path / "words", monkeypatch)
    other.ok(*by_words, "--unprotected-keys", stdin=" ".join(words["recovery_words"]).encode())
    assert other.ok("read", "tone", "-n", "alex", "--body").out == "direct\n"
    # A keystore file represents any wallet.
    at = by_wallet.index("--wallet")
    assert by_wallet[at + 1] == "FILE"
    third = Cli(tmp_path / "wallet", monkeypatch)
    said = third.ok(*by_wallet[:at], *by_wallet[at + 2 :], "--unprotected-keys", "--json", key=KEY).json
    assert said["status"]["vault"]["tag"] == status["vault"]["tag"] and said["status"]["memories"]
    # A vault restored by words alone does not know the wallet's address, only that a wallet exists.
    assert "this device does not know its address" in other.ok("key", "sheet", "-n", "alex").out


@pytest.mark.parametrize("how", ["words", "wallet"])
def test_key_sheet_root_restores_a_vault_whose_names_are_lost(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    made = bare.ok("init", "--unprotected-keys", "--json", key=KEY).json
    bare.ok("write", "tone", "--body", "direct")
    bare.ok("sync")
    sheet = bare.ok("key", "sheet", "--json").json
    for folder in ("names", "pins"):
        for file in (stick / folder).iterdir():
            file.unlink()
    other = Cli(tmp_path / "other", monkeypatch)
    words = " ".join(made["recovery_words"]).encode()
    other.fails(43, "recover", "--unprotected-keys", stdin=words)
    found = ["--root", sheet["root"], "--unprotected-keys"]
    if how == "words":
        said = other.ok("recover", *found, stdin=words).out
        assert sheet["vault_tag"] in said
    else:
        other.fails(2, "init", "--no-wallet", *found)
        wrong = other("init", *found, "--key-number", "2", key=KEY)
        assert wrong.code == 24 and not list(other.home.glob("*/ipfsmem.json"))
        assert other.ok("init", *found, "--json", key=KEY).json["restored"]
    assert other.ok("read", "tone", "--body").out == "direct\n"
    # The vault is at the same provider with new names, and the first device finds the other.
    other.ok("write", "role", "--body", "back")
    other.ok("sync")
    bare.ok("sync")
    bare.ok("sync")
    assert bare.ok("read", "role", "--body").out == "back\n"


def test_key_sheet_names_signature_passphrase_and_other_vaults(sealed: Cli, stick: Path) -> None:
    sealed.ok(
        "init", "-n", "deep", "--vault", "work", "--unprotected-keys", "--json",
        "--signature-passphrase-fd", str(pipe("hush hush hush")), key=KEY,
    )  # fmt: skip
    result = sealed.ok("key", "sheet", "-n", "deep")
    assert (
        "--vault deep --wallet FILE --wallet-vault work --signature-passphrase --provider"
        in " ".join(result.out.split())
        and "hush" not in result.out
    )


def test_key_sheet_is_written_as_json_and_to_a_file(sealed: Cli, tmp_path: Path) -> None:
    found = sealed.ok("key", "sheet", "--json").json
    assert found["with_words"].startswith("ipfsmem recover --provider ") and found["words"][0]["root"]
    assert (
        found["root"] == sealed.ok("status", "--json").json["root"]
        and found["published_at"] <= found["made_at"]
    )
    where = tmp_path / "sheet.txt"
    assert "print it" in sealed.ok("key", "sheet", "--output", str(where)).out
    printed = sealed.ok("key", "sheet").out
    assert where.read_text().splitlines()[3:] == printed.splitlines()[3:]
    assert sealed.ok("key", "sheet", "--output", str(where), "--overwrite", "--json").json == {
        "path": str(where)
    }
    assert '"vault_tag"' in where.read_text()


def test_key_sheet_has_no_token_key_or_passphrase(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {
        "PINATA_JWT": "jwt-canary-1", "PINATA_GATEWAY_TOKEN": "gateway-canary-2", "FILEBASE_KEY": "key-canary-3",
        "FILEBASE_SECRET": "secret-canary-4", "PEER_TOKEN": "peer-canary-5", "W3UP_PROOF": "proof-canary-6",
        "W3UP_PRINCIPAL": "principal-canary-7", "PINNING_SERVICE_TOKEN": "psa-canary-8",
        "KUBO_RPC_AUTH": "kubo-canary-9", "IPFSMEM_PASSPHRASE": "device-canary-10",
        "IPFSMEM_WALLET_PASSPHRASE": "wallet-canary-11", "W3UP_SERVICE_DID": "did:web:canary-12.example",
    }  # fmt: skip
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    settings = tmp_path / "settings.toml"
    settings.write_text('[providers.filebase]\nfilebase_gateway_token = "file-canary-13"\n')
    monkeypatch.setenv("IPFSMEM_CONFIG", str(settings))
    words = bare.ok("init", "--json", key=KEY).json["recovery_words"]
    specs = [
        str(stick), "pinata:x.mypinata.cloud", "filebase:bucket", "peer:https://me:url-canary-14@peer.example/",
        "kubo:http://127.0.0.1:5001", "pinning_service:https://psa.example/psa-canary-8/v1?token=query-canary-15",
        "web3storage:https://up.example", "gateway:https://a.example,https://u:p-canary-16@b.example",
    ]  # fmt: skip
    config = bare.home / "default" / "ipfsmem.json"
    loaded = json.loads(config.read_text())
    loaded["providers"] = specs
    config.write_text(json.dumps(loaded))
    for page in (bare.ok("key", "sheet").out, bare.ok("key", "sheet", "--json").out):
        assert not re.findall(r"\S*canary\S*", page)
        assert " ".join(words[:3]) not in page and KEY not in page
        for name in (*(n for n in secrets if not n.startswith("IPFSMEM_")), "FILEBASE_GATEWAY_TOKEN"):
            assert name in page
        for kept in (
            "x.mypinata.cloud",
            "filebase:bucket",
            "peer.example",
            "b.example",
            "psa.example",
            "up.example",
        ):
            assert kept in page
    assert "IPFSMEM_" not in bare.ok("key", "sheet").out


def test_key_sheet_warns_that_nothing_is_published(bare: Cli) -> None:
    bare.ok("init", "--unprotected-keys", "--no-wallet", "--json")
    page = bare.ok("key", "sheet").out
    assert (
        "ONLY ON THIS DEVICE" in page
        and "nothing is published yet" in page
        and "wallet          none" in page
    )
    assert len(commands(page)) == 1


def test_key_sheet_of_a_vault_without_a_phrase_says_so(bare: Cli, stick: Path) -> None:
    bare.ok("init", "--unprotected-keys", "--no-recovery", key=KEY)
    page = bare.ok("key", "sheet").out
    assert "_____" not in page and "This vault has no recovery phrase" in page and len(commands(page)) == 1


def test_key_sheet_of_a_local_vault_suggests_an_export(cli: Cli) -> None:
    assert "ipfsmem export" in cli.fails(2, "key", "sheet").err


def test_key_sheet_of_a_public_vault_has_its_recover_command(bare: Cli, stick: Path) -> None:
    bare.ok("init", "--mode", "ipfs", "--yes-public", "--json", key=KEY)
    page = bare.ok("key", "sheet").out
    assert "recover --mode ipfs --wallet FILE" in page and "add --root" in page


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("peer:https://a:b@host/x", "peer:https://...@host/x"),
        (
            "gateway:https://a,https://t@b/?k=v,https://c#d",
            "gateway:https://a,https://...@b/...,https://c...",
        ),
        ("/media/a?b#c@d", "/media/a?b#c@d"),
        ("pinata:gate.example", "pinata:gate.example"),
        ("peer:https://host/sesame-1/", "peer:https://host/.../"),
        ("bucket:https://host/box/mem", "bucket:https://host/box/mem"),
    ],
)
def test_key_sheet_removes_secrets_from_addresses(spec: str, shown: str) -> None:
    assert without_secrets(spec, ["sesame-1", "x"]) == shown


def test_key_sheet_names_the_settings_of_each_bucket_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "BUCKET_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    for spec, needs in (
        ("bucket:s3://box/mem", {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"}),
        ("bucket:https://host/box", {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"}),
        ("bucket:gs://box", set(NEEDS["bucket:gs"])),
        ("bucket:https://me.blob.core.windows.net/box", set(NEEDS["bucket:az"])),
        ("bucket:https://[", {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"}),
    ):
        place = sheet._place(spec, None, None, None, {})
        assert set(place.settings) == needs and place.provider == spec, spec


def test_key_sheet_names_the_settings_of_the_providers_page() -> None:
    rows = re.findall(
        r"^\| `(bucket:\w+|\w+)[^|]*\| ([^|]*) \|",
        (DOCS / "reference" / "providers.md").read_text("utf-8"),
        re.M,
    )
    told = {kind: tuple(sorted(re.findall(r"`([A-Z][A-Z0-9_]+)`", needs))) for kind, needs in rows}
    gateways = {"pinning_service": ("PINNING_SERVICE_GATEWAY",)}  # it is in the last column of that table
    for kind, names in NEEDS.items():
        assert tuple(sorted({*told[kind], *gateways.get(kind, ())})) == names
    assert {kind for kind, names in told.items() if names} == set(NEEDS)
