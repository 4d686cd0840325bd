"""Secrets as people write them, in several languages and file types, and texts that look similar."""

from __future__ import annotations

import pytest

from ipfsmem.bundle.secrets import find_secrets, redact

_WORD = "La4Sz8k" + "aQ7"
_HEX = "6259bebd2fa58805" + "87061ce693671412"
_LETTERS = "flIsohpI" + "AqjU"


@pytest.mark.parametrize(
    "text",
    [
        f"hasło do wifi to {_WORD}",
        f"lösenord: {_WORD}",
        f"şifre: {_WORD}",
        f"mật khẩu: {_WORD}",
        f"la password è {_WORD}",
        f"密码是 {_WORD}",
        f"パスワードは{_WORD}",
        f"سجل كلمة المرور: {_WORD}",
        f"| wifi password | {_WORD} |",
        f"**Password:** `{_WORD}`",
        f"- Password - {_WORD}",
        f"login bob pw {_WORD}",
        f"user: bob / pass: {_WORD}",
        f"creds: admin / {_WORD}",
        f"admin:{_WORD}@192.168.1.1",
        f"the API key for weather is {_HEX}",
        f"use the token {_HEX} for it",
        f"Authorization: Token {_HEX}",
        f"define('DB_PASSWORD', '{_WORD}');",
        f'<add key="DbPassword" value="{_WORD}" />',
        f"- name: DB_PASSWORD\n  value: {_WORD}",
        f"<key>api_secret</key>\n<string>{_HEX}</string>",
        f"docker login -u me -p {_WORD} registry.example.com",
        f"openssl enc -aes-256-cbc -pass pass:{_WORD} -in a",
        f"smbclient //s/x -U 'bob%{_WORD}'",
        f"ConvertTo-SecureString '{_WORD}' -AsPlainText",
        f"https://{_HEX}@github.com/a/b",
        "WIFI:T:WPA;S:home;P:Cbo6Zn" + "aQ7;;",
        "TOTP seed: RD4CC5H6OSVVONNS" + "BOLBR3XERFHZY2OD",
        "bank pin: 73920",
    ],
)
def test_secret_in_peoples_words_is_found_and_removed(text: str) -> None:
    found = find_secrets(text)
    assert len(found) == 1, found
    assert not any(secret in redact(text) for secret in (_WORD, _HEX, "73920", "RD4CC5", "Cbo6Zn"))


@pytest.mark.parametrize(
    "text",
    [
        "password reset email goes to alice2@example.com",
        "token ERC721Enumerable contract",
        "the token is 0x6B175474E89094C44Da98b954EedeAC495271d0F",
        "| secret | k8s/prod/db |",
        "| password | string | required |",
        "const ok = password || isStrongPassword2(password)",
        "mountain pass - Stelvio2757m",
        "密码是必须的",
        "パスワードは8文字以上",
        "hasło musi mieć 12 znaków",
        "docker login -u alice registry.example.com",
        "docker run -p 8080:8080 image",
        "mailto:alice2@example.com",
        "Authorization: Bearer YOUR_ACCESS_TOKEN_HERE",
        "GPIO pin 4",
        "did:key:z6MkRg9W2hc6QKAPrMMpTYfsu1A9EzQFSNR9dVeda3iefvvG",
        "https://my-organisation-name@dev.azure.com/my-organisation-name/p/_git/r",
    ],
)
def test_text_about_secrets_without_one_is_not_flagged(text: str) -> None:
    assert not find_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "pin for the LED: 1024",
        "Pin for LED 2: 1024",
        "pin 13: 1024",
        "the pin of the sensor: 4711 is wired",
        "the pin of the motor is 2048",
        "Analog pin: 1023",
        "the PWM pin for pump two: 1500",
        "GPIO pin is 1024",
    ],
)
def test_pin_of_a_circuit_is_not_flagged(text: str) -> None:
    assert not find_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "my pin for the door: 4711",
        "The pin of my phone is 4711",
        "the pin for the sensor hub app: 4711",
        "PIN for the LED sign in the lobby: 4711",
        "Pin für die Karte: 4711",
        "PIN: 4711",
        "pin: 4711",
        "Pincode for the garage: 4711",
    ],
)
def test_pin_that_is_typed_in_is_found(text: str) -> None:
    assert find_secrets(text) and "4711" not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "unzip -P Kestrel88x a.jar",
        "exec sp_addlogin 'alex', 'kestrelhouse', 'shop'",
    ],
)
def test_keyword_followed_by_a_longer_word_is_found(text: str) -> None:
    assert find_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "metamask pk SECRET (test account)",
        "Metamask PK: SECRET",
        "my Solana pk is SECRET",
        "pk of the metamask wallet: SECRET",
        "pk for my burner wallet SECRET",
        "sepolia pk=0xSECRET",
    ],
)
def test_key_of_a_wallet_called_pk_is_found(text: str) -> None:
    text = text.replace("SECRET", 2 * _HEX)
    assert find_secrets(text) and _HEX not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "the verifier pk SECRET is in the repository",
        "row pk SECRET was deleted",
        "the pk of the peer: SECRET",
        "metamask block SECRET",
    ],
)
def test_hexadecimal_number_called_pk_outside_wallets_is_not_flagged(text: str) -> None:
    assert not find_secrets(text.replace("SECRET", 2 * _HEX))


@pytest.mark.parametrize(
    "text",
    [
        "My login at the bank portal is 48812, pin 4711",
        "credit card in the drawer (pin 4711)",
        "login 48812 and pin 4711.",
        "safe in the cellar with pin 4711",
        "bank pin 4711",
        "code pin 4711",
    ],
)
def test_pin_that_follows_without_a_sign_is_found(text: str) -> None:
    assert find_secrets(text) and "4711" not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "join #ops and pin 2026 goals to the top",
        "the connector has 40 contacts, pin 1200-1300 is unused",
        "open the board, pin 4711px wide",
        "pin 4711 on the map",
        "gpio, pin 17",
    ],
)
def test_number_after_pin_in_another_sense_is_not_flagged(text: str) -> None:
    assert not find_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        f"le mot de passe du NAS est {_LETTERS}",
        f"the password of the backup is {_LETTERS}.",
        f"Passwort für den Router: {_LETTERS}",
        f"PGPASSWORD={_LETTERS} psql -h db",
        "the passphrase of the backup disk: correct-horse-KGVz-staple-CDU",
        "| prod | admin | cYpIf#f" + "RWGp! |  (password)",
        "| prod | Kestrel88x" + "q9 | (Password)",
        "cYpIf#f" + "RWGp! (password)",
    ],
)
def test_password_of_letters_is_found(text: str) -> None:
    assert find_secrets(text) and not any(
        part in redact(text) for part in (_LETTERS, "RWGp", "KGVz", "Kestrel")
    )


@pytest.mark.parametrize(
    "text",
    [
        "the password is PostgreSQL's own",
        "the password manager is OnePassword",
        "the password check is isStrongEnough",
        "the password is alphanumeric",
        "the password store is GoPass",
        "das Passwort ist Kleinschreibung",
        "the password for the wiki: see-the-page-of-ops",
        "| name | string | (password)",
        "| OAuth2Login | enabled | (password)",
        "sign in with bob1985 (password) or by mail",
        "Release v2.3.1beta2 (password)",
    ],
)
def test_words_near_a_password_are_not_flagged(text: str) -> None:
    assert not find_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD=${DB_PASSWORD:?missing}",
        'password: "${DB_PASSWORD:?set it first!}"',
        "DB_PASSWORD=${DB_PASSWORD:-changeme}",
        "DB_PASSWORD=${DB_PASSWORD-changeme}",
        "DB_PASSWORD=${DB_PASSWORD:-$OTHER}",
        "DB_PASSWORD=${DB_PASSWORD:=postgres}",
        "API_TOKEN=${API_TOKEN:?API_TOKEN is required}",
        "ARGS=${API_TOKEN:+--token=$API_TOKEN}",
        "${APP_SECRET?no_secret_given_v2}",
        "AKIAIOSFODNN7EXAMPLE is the key in the documentation",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ],
)
def test_reference_and_key_of_documentation_are_not_flagged(text: str) -> None:
    assert not find_secrets(text)


@pytest.mark.parametrize(
    "text", [f"DB_PASSWORD=${{DB_PASSWORD:-{_WORD}}}", f"X=${{API_TOKEN:-{_HEX}}}"]
)  # fmt: skip
def test_default_of_a_reference_that_is_a_secret_is_found(text: str) -> None:
    assert find_secrets(text) and not any(part in redact(text) for part in (_WORD, _HEX))
