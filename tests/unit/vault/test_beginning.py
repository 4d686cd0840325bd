"""Creating a vault from Python: refusals before anything is created, and the state after an error."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.errors import (
    ConfigError,
    NoVaultError,
    PassphraseError,
    ProviderRefused,
    ProviderUnavailable,
    PublicError,
    SecretsError,
    StorageError,
    UsageError,
)
from ipfsmem.mode import Mode
from ipfsmem.sync.report import SyncReport
from ipfsmem.vault.beginning import (
    Choices,
    explaining_nothing_was_made,
    incomplete_restore_error,
    make_wallet,
    no_memory_error,
    publish_new_memory,
)
from ipfsmem.wallet.signers import KeystoreSigner

PASSPHRASE = "nine green bottles on the wall"


def choices(mode: Mode, *owners: Any, **other: bool) -> Choices:
    given = {"provider": False, "recovery": True, "root": False, **other}
    return Choices(mode=mode, owners=owners, **given)


SEALED, LOCAL, PUBLIC = Mode.ENCRYPTED_IPFS, Mode.LOCAL, Mode.IPFS


@pytest.mark.parametrize(
    "fit",
    [
        choices(LOCAL),
        choices(SEALED, "no wallet"),
        choices(SEALED, "wallet", provider=True, recovery=False),
        choices(SEALED, "wallet", provider=True, root=True),
        choices(PUBLIC, "new wallet", provider=True),
    ],
)
def test_valid_choices_are_accepted(fit: Choices) -> None:
    fit.check()


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (choices(LOCAL, provider=True), UsageError, "a vault in mode local is never published"),
        (choices(LOCAL, "wallet"), UsageError, "a vault in mode local has no wallet"),
        (choices(LOCAL, root=True), UsageError, "requires the wallet"),
        (choices(SEALED, "no wallet", root=True), UsageError, "requires the wallet"),
        (choices(SEALED, provider=True), UsageError, "choose an owner for this vault"),
        (choices(SEALED, "wallet", "no wallet", provider=True), UsageError, "choose an owner"),
        (
            choices(SEALED, "no wallet", recovery=False),
            UsageError,
            "nothing could restore this vault",
        ),
        (choices(SEALED, "wallet"), ConfigError, "no provider is set"),
        (choices(PUBLIC, "new wallet"), ConfigError, "no provider is set"),
    ],
)
def test_contradicting_choices_are_refused(wrong: Choices, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        wrong.check()


def test_new_wallet_file_opens_again_and_is_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "new" / "wallet.json"
    made = make_wallet(file, PASSPHRASE, lambda size: bytes(size - 1) + b"\x07")
    assert KeystoreSigner(file, PASSPHRASE).address == made.address
    before = file.read_bytes()
    with pytest.raises(StorageError, match="is not overwritten"):
        make_wallet(file, PASSPHRASE, lambda size: bytes(size - 1) + b"\x08")
    assert file.read_bytes() == before
    with pytest.raises(PassphraseError):
        make_wallet(tmp_path / "other.json", "1234", lambda size: bytes(size - 1) + b"\x08")
    assert not (tmp_path / "other.json").exists()


def test_provider_failing_during_search_says_that_nothing_was_made() -> None:
    for error, said in (
        (ProviderUnavailable("it is down"), "Try again when the provider can be reached."),
        (ProviderRefused("no", hint="Give a token."), "Give a token."),
    ):
        with pytest.raises(type(error)) as caught, explaining_nothing_was_made():
            raise error
        assert caught.value.hint == f"Nothing was created on this device. {said}"
    missing = NoVaultError("none there")
    with pytest.raises(NoVaultError) as none, explaining_nothing_was_made():
        raise missing
    assert "Nothing was created" not in none.value.hint
    assert (
        no_memory_error(missing).hint.startswith("Nothing was created on this device.")
        and no_memory_error(missing) is missing
    )


def test_failed_first_publish_says_that_the_vault_exists() -> None:
    async def sync(error: Exception | None) -> SyncReport:
        if error is not None:
            raise error
        return report

    report = SyncReport()
    assert asyncio.run(publish_new_memory(sync(None))) is report
    for error, hint in (
        (ProviderUnavailable("it is down"), "When the provider can be reached: ipfsmem sync."),
        (ProviderRefused("no", hint="Give a token."), "Give a token. Then publish it with: ipfsmem sync."),
        (SecretsError("a key", hint="Then: ipfsmem sync"), "Then: ipfsmem sync"),
    ):
        with pytest.raises(type(error), match="created on this device, but not published yet") as caught:
            asyncio.run(publish_new_memory(sync(error)))
        assert caught.value.hint == hint
    with pytest.raises(PublicError, match=r"^nobody agreed$"):
        asyncio.run(publish_new_memory(sync(PublicError("nobody agreed"))))


def test_partial_restore_is_reported_at_the_end() -> None:
    assert incomplete_restore_error(None) is None and incomplete_restore_error(SyncReport()) is None
    report = SyncReport()
    for damaged, said in ((1, "1 published state"), (1200, "1,200 published states")):
        report.damaged = damaged
        assert str(incomplete_restore_error(report)) == f"restored in part: {said} cannot be read completely"
