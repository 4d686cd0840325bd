"""The secret scanner: required findings, harmless texts, and no secret in its output. Samples are assembled at run
time, so that no other scanner reports this file."""

import base64
import hashlib
import random

import pytest

from ipfsmem.bundle import secrets
from tests.support.costs import cost

RANDOM = base64.b64encode(hashlib.sha512(b"x").digest()).decode().rstrip("=")
ALNUM = "".join(c for c in RANDOM if c.isalnum())
LEGAL = "legal winner thank year wave sausage worth useful legal winner thank yellow"
LETTER = "letter advice cage absurd amount doctor acoustic bless"
SAMPLES = [
    ("AWS access key", "AKIA" + "ABCDEFGHIJ234567"),
    ("GitHub token", "ghp_" + ALNUM[:36]),
    ("GitHub token", "github_pat_" + ALNUM[:40]),
    ("GitLab token", "glpat-" + ALNUM[:20]),
    ("Anthropic key", "sk-ant-" + "api03-" + ALNUM[:40]),
    ("OpenAI key", "sk-" + "proj-" + ALNUM[:40]),
    ("Stripe key", "sk_live_" + ALNUM[:24]),
    ("Slack token", "xoxb-" + "123456789012-" + ALNUM[:20]),
    ("Google API key", "AIza" + ALNUM[:35]),
    ("Hugging Face token", "hf_" + ALNUM[:34]),
    ("npm token", "npm_" + ALNUM[:36]),
    ("PyPI token", "pypi-" + (ALNUM * 2)[:60]),
    ("SendGrid key", "SG." + ALNUM[:22] + "." + ALNUM[:43]),
    (
        "age secret key",
        "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" + "QPZRY9X8GF2TVDW0S3JN54KHCE",
    ),
    ("JWT", "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + ALNUM[:43]),
    ("private key (PEM)", "-----BEGIN EC PRIVATE" + " KEY-----\nMHcCAQ\n-----END EC PRIVATE KEY-----"),
    ("password in a URL", "postgres://bob:" + "hunter2" + "@db.example/x"),
    ("private key (hex)", "private key: 0x" + "ab" * 32),
    ("assigned secret", "password = " + "correct-horse-9"),
    ("random token", RANDOM[:64]),
    ("recovery phrase (12 words)", LEGAL),
    ("recovery phrase (12 words)", "\n".join(f"{n + 1}. {w.title()}" for n, w in enumerate(LEGAL.split()))),
    ("recovery phrase (24 words)", "letter advice cage absurd amount doctor acoustic avoid " * 2 + LETTER),
    ("recovery phrase (12 words)", f"wallet seed {LEGAL}"),
]
HARMLESS = [
    "",
    "User prefers direct critique over encouragement-first framing.",
    "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
    "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPbdG",
    "94344f0f97a9ab77f58b0554ee841905cb62a4d54eece4467db9015d983e9f24",
    "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
    "see https://docs.example.org/guides/getting-started-with-the-memory-format#headers",
    "never store the password; ask for the secret: a human types it",
    "risk-management-and-other-long-slugs-without-any-number sk-learn-is-a-library",
    "abandon " * 12,
    "legal winner thank year wave sausage worth useful legal winner thank",
    "src/ipfsmem/bundle/memory_file/tests/and/a/very/long/path/to/some/file",
    "123e4567-e89b-12d3-a456-426614174000",
]


@pytest.mark.parametrize(("kind", "secret"), SAMPLES, ids=[f"{n}-{k}" for n, (k, _) in enumerate(SAMPLES)])
def test_secret_of_each_kind_is_found(kind, secret):
    text = f"first line\nsecond: {secret} and on\n"
    (found,) = secrets.find_secrets(text)
    assert found.kind == kind
    assert found.line == 2
    core = secret.split()[-1] if kind != "private key (PEM)" else "MHcCAQ"
    assert core not in repr(found) and core not in str(found)
    assert core not in secrets.redact(text)
    assert secrets.redact(text).startswith("first line\nsecond: ")
    assert secrets.find_secrets(secrets.redact(text)) == []


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_is_not_flagged(text):
    assert secrets.find_secrets(text) == []
    assert secrets.redact(text) == text


def test_several_secrets_are_found_in_order_with_their_lines():
    text = f"a\n{SAMPLES[0][1]}\n\n{LEGAL}\n{SAMPLES[14][1]}\n{SAMPLES[0][1]}"
    assert [(f.line, f.kind) for f in secrets.find_secrets(text)] == [
        (2, "AWS access key"),
        (4, "recovery phrase (12 words)"),
        (5, "JWT"),
        (6, "AWS access key"),
    ]
    assert secrets.redact(text).count("[removed: ") == 4


def test_reading_the_word_list_does_not_import_the_wallet():
    import subprocess
    import sys

    code = (
        "import sys; from ipfsmem.bundle import secrets; "
        f"assert secrets.find_secrets({LEGAL!r}); assert 'eth_account' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "pwd:",
        "://a:",
        "aA0",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        "-eyJaaaa",
        "-eyJaaaaaaaaaaaa.aaaaaaaaa",
        "eyJaaaaaaaa.",
        "SG.aaaaaaaaaaaaaaaaaaaa",
        "-sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "xoxb-",
        "-pypi-a",
        "a.b-c+d",
        "http://a:b",
        "password = ",
        "key secret ",
        "private key ",
        "-----BEGIN " + "PRIVATE KEY",
        "-----BEGIN PRIVATE KEY-----\n-",
        "abandon ",
        "zoo. ",
        "Aa1+/=_-",
        " ",
        "a",
        "zoo zoo zoo zoo zoo zoo zoo zoo of" + " " * 90,
        "recovery code 2fa ",
        "door code of a ",
        "Zz1!z-",
        "password for a b ",
        "password (x) : 'a ",
        "| password |\n",
        "seed phrase is zoo ",
        "$6$aaaaaaaaaaaaaaaaaaa ",
        "bob@a.b:",
        "admin is the password ",
        "identified by '",
        "passphrase: aa bb ",
        "master key: zoo",
        "cookie: session=",
        "echo a | --password-stdin ",
        "snmp-server community ",
        "mysql -p ",
        "variable token {default",
        '<password a="b"',
        "密码是",
    ],
)
def test_scan_time_is_linear_in_the_length(part):
    """Growth is measured, not seconds."""
    small, large = (part * (size // len(part)) for size in (10_000, 80_000))
    most = 8 * 3 * max(cost(lambda: secrets.find_secrets(small)), 0.002)
    assert cost(lambda: secrets.find_secrets(large), most) < most


def test_word_search_is_the_same_with_and_without_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    roots = list(secrets._SOUGHT._by_root)
    words = [
        *roots,
        *(b"x" + root + b"y" for root in roots),
        *(root[:-1] for root in roots),
        b"music",
        b"tone",
    ]
    one_by_one, by_pattern = (secrets._HintSearch(secrets._HINTS, secrets._STEMS) for _ in range(2))
    found = [one_by_one._find_in_word(word) for word in words[: one_by_one._MAX_SINGLE_SEARCHES]]
    assert "search" not in vars(one_by_one._root)  # no pattern was compiled
    monkeypatch.setattr(secrets._HintSearch, "_MAX_SINGLE_SEARCHES", 0)
    assert [by_pattern._find_in_word(word) for word in words] == found + [
        one_by_one._find_in_word(word) for word in words[len(found) :]
    ]
    assert "search" in vars(by_pattern._root) and any(sure or rest for sure, rest in found)


def test_prefix_search_is_the_same_with_and_without_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, known = random.Random(5), [*secrets._KNOWN]
    one_by_one, by_pattern = (secrets._Prefixes(known) for _ in range(2))
    cases = []
    for _ in range(4_000):
        parts = (
            rng.choice(known) if rng.random() < 0.25 else rng.choice("aAz09-_.%$:~/ \nsgxpk\u00e9'")
            for _ in range(8)
        )
        text = "".join(parts)
        text = text[: len(text) - rng.randrange(3)]
        at = rng.randrange(len(text) + 1)
        cases.append((text, at, rng.randint(at, len(text))))
    with monkeypatch.context() as within:
        within.setattr(secrets._Prefixes, "_MAX_SINGLE_SEARCHES", len(cases))
        found = [one_by_one.find(*case) for case in cases]
        assert "search" not in vars(one_by_one._all)  # no pattern was compiled
    monkeypatch.setattr(secrets._Prefixes, "_MAX_SINGLE_SEARCHES", 0)
    assert [by_pattern.find(*case) for case in cases] == found
    assert len({case[0][span[0] : span[1]] for case, span in zip(cases, found, strict=True) if span}) > 100


def test_long_run_is_searched_with_the_pattern() -> None:
    prefixes = secrets._Prefixes(["sk-"])
    long = "/a" * secrets._Prefixes._MAX_SINGLE_RUN + "/sk-"
    assert prefixes.find(long, 0, len(long)) == (len(long) - 3, len(long))
    assert "search" in vars(prefixes._all) and "finditer" not in vars(prefixes._first)
