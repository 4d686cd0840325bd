"""Addresses as consoles show them, and profiles of the AWS tools."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from ipfsmem_providers.bucket import BucketProvider
from ipfsmem_providers.bucket.address import Patience, credentials, parse, places, secrets, store

from ipfsmem.errors import ConfigError
from ipfsmem.provider.contract import open_provider
from tests.servers import s3
from tests.support.hints import Refused
from tests.unit.providers.bucket_lab import bucket
from tests.unit.providers.test_bucket import bare

assert bare  # a fixture
ACCOUNT = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like `~/.aws`."""
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = DEFAULTKEY\naws_secret_access_key = d/e+f%a=\n"
        "[temporary]\naws_access_key_id=TEMPKEY\naws_secret_access_key=temporary\naws_session_token=a-token\n"
        "[r2]\naws_access_key_id=R2KEY\naws_secret_access_key=of-r2\n"
    )
    (tmp_path / "config").write_text(
        "[default]\nregion = eu-central-1\ns3 =\n  addressing_style = path\n\n"
        f"[profile r2]\nregion = auto\nendpoint_url = https://{ACCOUNT}.r2.cloudflarestorage.com\n"
        "[profile company]\nsso_session = work\n[sso-session work]\nsso_region = eu-west-1\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("rest", "address"),
    [
        ("https://mem.s3.eu-central-1.amazonaws.com/a/b", "https://s3.eu-central-1.amazonaws.com/mem/a/b"),
        ("https://my.mem.s3.amazonaws.com", "https://s3.amazonaws.com/my.mem"),
        ("https://mem.s3-eu-west-1.amazonaws.com", "https://s3-eu-west-1.amazonaws.com/mem"),
        (
            "https://mem.s3.dualstack.eu-west-1.amazonaws.com/",
            "https://s3.dualstack.eu-west-1.amazonaws.com/mem",
        ),
        ("https://mem.s3.cn-north-1.amazonaws.com.cn/x", "https://s3.cn-north-1.amazonaws.com.cn/mem/x"),
        (
            f"https://Mem.{ACCOUNT}.eu.r2.cloudflarestorage.com/x",
            f"https://{ACCOUNT}.eu.r2.cloudflarestorage.com/mem/x",
        ),
        (
            "https://mem.s3.eu-central-003.backblazeb2.com/x",
            "https://s3.eu-central-003.backblazeb2.com/mem/x",
        ),
        ("https://mem.s3.wasabisys.com", "https://s3.wasabisys.com/mem"),
        ("https://mem.s3.eu-central-1.wasabisys.com", "https://s3.eu-central-1.wasabisys.com/mem"),
        ("https://mem.s3.fr-par.scw.cloud/x", "https://s3.fr-par.scw.cloud/mem/x"),
        ("https://mem.fra1.digitaloceanspaces.com/x", "https://fra1.digitaloceanspaces.com/mem/x"),
        ("https://mem.fsn1.your-objectstorage.com/x", "https://fsn1.your-objectstorage.com/mem/x"),
    ],
)
def test_address_with_bucket_in_host_is_that_with_bucket_in_path(rest: str, address: str) -> None:
    assert str(parse(rest)) == address
    assert parse(rest) == parse(address)


@pytest.mark.parametrize(
    "rest",
    [
        "https://s3.eu-central-1.amazonaws.com/mem/x",
        "https://s3.dualstack.eu-west-1.amazonaws.com/mem/x",
        f"https://{ACCOUNT}.r2.cloudflarestorage.com/mem/x",
        "https://fra1.digitaloceanspaces.com/mem/x",
        "https://mem.s3.example.com/mem/x",
        "https://mem.s3.amazonaws.com.example.com/mem/x",
        "https://mem.s3.eu-central-1.amazonaws.com:8443/mem/x",
        "https://cache.fra1.cdn.digitaloceanspaces.com/mem/x",
    ],
)
def test_address_with_bucket_in_path_is_unchanged(rest: str) -> None:
    address = parse(rest)
    assert (address.bucket, address.prefix, str(address)) == ("mem", "x", rest)


def test_region_of_a_bucket_in_the_host_is_found() -> None:
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "y"}
    for rest, region in (
        ("https://mem.s3.eu-central-1.amazonaws.com", "eu-central-1"),
        ("https://mem.s3.us-west-004.backblazeb2.com", "us-west-004"),
        (f"https://mem.{ACCOUNT}.r2.cloudflarestorage.com", "auto"),
    ):
        assert store(parse(rest), keys, Patience(1, 1, 1)).config["region"] == region


def test_default_profile_is_used_for_aws_only(aws: Path) -> None:
    expected = {
        "aws_access_key_id": "DEFAULTKEY", "aws_secret_access_key": "d/e+f%a=", "aws_region": "eu-central-1",
    }  # fmt: skip
    assert credentials(parse("s3://mem"), {}) == expected
    assert credentials(parse("https://mem.s3.eu-central-1.amazonaws.com"), {}) == expected
    for other in ("https://s3.example.com/mem", "https://amazonaws.com.example.com/mem"):
        with pytest.raises(ConfigError, match="no credentials for"):
            credentials(parse(other), {})


def test_default_profile_is_not_used_for_a_server_of_the_environment(
    aws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://s3.example.com")
    with pytest.raises(ConfigError, match="no credentials for"):
        credentials(parse("s3://mem"), {})


def test_keys_of_the_environment_precede_profiles(aws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ENVKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-env")
    monkeypatch.setenv("AWS_PROFILE", "unknown")
    assert credentials(parse("s3://mem"), {}) == {}  # obstore reads the environment itself
    assert "of-env" in secrets(parse("s3://mem"), {})


def test_named_profile_has_its_server_and_region(aws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "r2")
    made = store(parse("s3://mem"), {}, Patience(1, 1, 1))
    assert made.config["region"] == "auto"
    host = f"{ACCOUNT}.r2.cloudflarestorage.com"
    assert made.config["endpoint"] == f"https://{host}"
    assert (host, 443) in places(parse("s3://mem"), {})
    monkeypatch.setenv("AWS_REGION", "weur")
    assert "aws_region" not in credentials(parse("s3://mem"), {})


def test_profile_of_the_settings_precedes_that_of_the_environment(
    aws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "default")
    assert credentials(parse("s3://mem"), {"aws_profile": "r2"})["aws_access_key_id"] == "R2KEY"


def test_session_token_of_a_profile_is_sent_to_its_server_only(aws: Path) -> None:
    named = {"aws_profile": "temporary"}
    assert credentials(parse("s3://mem"), named)["aws_session_token"] == "a-token"
    with Refused("Set AWS_PROFILE to a profile with endpoint_url, or with lasting keys of that service."):
        open_provider("bucket:https://s3.example.com/mem", named)
    assert (
        credentials(parse("https://s3.example.com/mem"), {"aws_profile": "default"})["aws_access_key_id"]
        == "DEFAULTKEY"
    )


def test_profile_without_keys_names_the_command_that_exports_them(aws: Path) -> None:
    with Refused(
        "Put the keys that AWS makes for it into the environment; this prints them: aws configure export-credentials"
    ):
        open_provider("bucket:s3://mem", {"aws_profile": "company"})


def test_unknown_profile_is_named(aws: Path) -> None:
    with pytest.raises(ConfigError, match="'nobody' is not in"):
        open_provider("bucket:s3://mem", {"aws_profile": "nobody"})
    with Refused("Set AWS_PROFILE to one of: aws configure list-profiles"):
        open_provider("bucket:s3://mem", {"aws_profile": "nobody"})


def test_region_of_the_settings_and_of_the_host_are_one_option() -> None:
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "y", "aws_region": "us-east-2"}
    made = store(parse("https://s3.eu-central-1.amazonaws.com/mem"), keys, Patience(1, 1, 1))
    assert made.config["region"] == "eu-central-1"


@pytest.mark.parametrize(
    "text",
    [b"aws_secret_access_key = without-section\n", b"[default\nx = a-secret\n", b"\xff\xfe\x00a-secret"],
)
def test_unreadable_profiles_are_named_without_their_text(aws: Path, text: bytes) -> None:
    right = (aws / "credentials").read_bytes()
    (aws / "credentials").write_bytes(text)
    with Refused("Correct that file, or name another one with VALUE."):
        open_provider("bucket:s3://mem")
    with pytest.raises(ConfigError) as caught:
        open_provider("bucket:s3://mem")
    said = caught.value.diagnostics() + str(caught.value) + str(caught.value.__context__)
    assert "secret" not in said.replace("AWS_SHARED_CREDENTIALS_FILE", "") and "cannot be read" in said
    (aws / "credentials").write_bytes(right)
    assert open_provider("bucket:s3://mem").name == "bucket:s3://mem"


def test_bucket_with_a_profile_works(aws: Path) -> None:
    with bucket() as at:
        (aws / "credentials").write_text(
            f"[tests]\naws_access_key_id={s3.KEY}\naws_secret_access_key={s3.SECRET}\n[wrong]\naws_access_key_id={s3.KEY}\n"
            "aws_secret_access_key=wrong-and-secret\n"
        )
        (aws / "config").write_text(f"[profile tests]\nendpoint_url={at.url}\n")

        async def pins(rest: str, profile: str) -> int:
            provider = BucketProvider(rest, {"aws_profile": profile})
            try:
                return len(await provider.pins("ipfsmem-0"))
            finally:
                await provider.close()

        assert asyncio.run(pins(at.spec, "tests")) == 0
        assert asyncio.run(pins(f"s3://{s3.BUCKET}/mem", "tests")) == 0
        with pytest.raises(Exception, match="rejects the key") as caught:
            asyncio.run(pins(at.spec, "wrong"))
        assert "wrong-and-secret" not in str(caught.value)
