"""Writes the seal vectors under fixtures/vectors: wallet, derivation, objects, recovery, ed25519.

Run it only when the format changes: `python tests/unit/seal/make_vectors.py`. Tests compare values of the
format with its text, never with this script. Signatures come from eth-account or from the curve arithmetic
below, not from the code under test; verdicts on Ed25519 are libsodium's. The sealed box of `boxes` is
random: a new run changes it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from eth_account import Account
from eth_account.messages import encode_defunct
from eth_keys.datatypes import PrivateKey
from nacl import bindings, exceptions

from ipfsmem.seal import objects, primitives
from ipfsmem.wallet import message, recovery_words, root_keys

OUT = Path(__file__).parents[3] / "fixtures" / "vectors"
HARDHAT = [
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
]
N = message.ORDER
TAG = bytes.fromhex("3973bff87388964db243992eeb7c6506")
EK = bytes(range(32))

# Edwards curve 25519, affine, slow and simple.
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int]


def add(a: Point, b: Point) -> Point:
    k = D * a[0] * b[0] * a[1] * b[1] % P
    return (
        (a[0] * b[1] + b[0] * a[1]) * pow(1 + k, -1, P) % P,
        (a[1] * b[1] + a[0] * b[0]) * pow(1 - k, -1, P) % P,
    )


def mul(n: int, point: Point) -> Point:
    out = (0, 1)
    while n:
        if n & 1:
            out = add(out, point)
        point = add(point, point)
        n >>= 1
    return out


def x_of(y: int) -> int | None:
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return None if (x * x - square) % P else x


def enc(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


_by = 4 * pow(5, -1, P) % P
_bx = x_of(_by) or 0
BASE: Point = (_bx if _bx % 2 == 0 else P - _bx, _by)


def order_eight() -> Point:
    y = 2
    while True:
        x = x_of(y)
        if x is not None and mul(4, t := mul(L, (x, y))) != (0, 1):
            return t
        y += 1


SMALL = [mul(i, order_eight()) for i in range(8)]
NONCANONICAL_SMALL = [(y + P | sign << 255).to_bytes(32, "little") for y in (0, 1) for sign in (0, 1)] + [
    (1 | 1 << 255).to_bytes(32, "little"),
    (P - 1 | 1 << 255).to_bytes(32, "little"),
]


def challenge(r: bytes, a: bytes, message: bytes) -> int:
    return int.from_bytes(hashlib.sha512(r + a + message).digest(), "little") % L


def le(n: int) -> bytes:
    return n.to_bytes(32, "little")


def save(name: str, value: dict[str, Any]) -> None:
    (OUT / f"{name}.json").write_text(json.dumps(value, indent=1, ensure_ascii=True) + "\n")


def personal_sign(key: str, text: bytes) -> bytes:
    return bytes(Account.sign_message(encode_defunct(primitive=text), key).signature)


def other_nonce(key: str, text: bytes, k: int) -> bytes:
    """Return a valid low-s signature with another nonce than RFC 6979's, as hedged and threshold signers
    make it."""
    z = int.from_bytes(message.signing_hash(text), "big")
    point = PrivateKey(k.to_bytes(32, "big")).public_key.to_bytes()
    r, parity = int.from_bytes(point[:32], "big") % N, point[63] & 1
    s = pow(k, -1, N) * (z + r * int(key, 16)) % N
    if s > N // 2:
        s, parity = N - s, 1 - parity
    return r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes((27 + parity,))


def make_wallet() -> None:
    account = bytes.fromhex(Account.from_key(HARDHAT[0]).address[2:])
    second = bytes.fromhex(Account.from_key(HARDHAT[1]).address[2:])
    requests = []
    for address, vault, number in [
        (account, "default", 1),
        (account, "default", 2),
        (second, "a", 2147483647),
        (second, "0-work-and-a-name-of-32-letters-", 10),
    ]:
        text = message.key_request(address, vault, number)
        requests.append(
            {
                "address": address.hex(),
                "vault": vault,
                "key_number": number,
                "text": text.decode(),
                "bytes": len(text),
                "sha256": hashlib.sha256(text).hexdigest(),
                "eip191_keccak256": message.signing_hash(text).hex(),
            }
        )
    bad = [
        {"vault": v, "key_number": n}
        for v, n in [
            ("", 1),
            ("-a", 1),
            ("Default", 1),
            ("a_b", 1),
            ("a" * 33, 1),
            ("a\n", 1),
            ("é", 1),
            ("a b", 1),
            ("default", 0),
            ("default", -1),
            ("default", 2147483648),
        ]
    ]
    text = message.key_request(account, "default", 1)
    sig = personal_sign(HARDHAT[0], text)
    r, s, v = sig[:32], int.from_bytes(sig[32:64], "big"), sig[64]
    # A signature with the other parity, so that both values of v occur.
    n = 2
    while True:
        other_text = message.key_request(account, "default", n)
        other = personal_sign(HARDHAT[0], other_text)
        if other[64] != v:
            break
        n += 1
    high = (N - s).to_bytes(32, "big")
    good = [
        ("as signed", text, sig),
        ("v counted from 0", text, sig[:64] + bytes((v - 27,))),
        ("high s with the other parity is the same signature", text, r + high + bytes((55 - v,))),
        ("high s, v counted from 0", text, r + high + bytes((28 - v,))),
        ("the other parity as signed", other_text, other),
        ("the other parity, v counted from 0", other_text, other[:64] + bytes((other[64] - 27,))),
    ]
    zero, order, big = bytes(32), N.to_bytes(32, "big"), b"\xff" * 32
    no_point = next(
        x
        for x in range(1, 99)
        if pow(pow(x, 3, 2**256 - 2**32 - 977) + 7, (2**256 - 2**32 - 978) // 2, 2**256 - 2**32 - 977) != 1
    )
    erc6492 = b"\0" * 96 + sig + b"\0" * 31 + bytes.fromhex("6492") * 16
    compact = r + (s | (v - 27) << 255).to_bytes(32, "big")
    refused = [
        ("empty", sig[:0], "SignerError"),
        ("64 bytes, r and s only", sig[:64], "SignerError"),
        ("64 bytes, ERC-2098", compact, "SignerError"),
        ("66 bytes, trailing type byte", sig + b"\x01", "SignerError"),
        ("two signatures of a Safe", sig + sig, "SignerError"),
        ("ERC-1271 blob of 96 bytes", bytes(31) + b"\x20" + bytes(64), "SignerError"),
        ("ERC-6492 wrapper", erc6492, "SignerError"),
        *(
            (f"v is {x}", sig[:64] + bytes((x,)), "SignerError")
            for x in (2, 3, 26, 29, 31, 32, 35, 37, 38, 54, 55, 255)
        ),
        ("r is 0", zero + sig[32:], "SignerError"),
        ("s is 0", r + zero + sig[64:], "SignerError"),
        ("r is n", order + sig[32:], "SignerError"),
        ("s is n", r + order + sig[64:], "SignerError"),
        ("r is n + 1", (N + 1).to_bytes(32, "big") + sig[32:], "SignerError"),
        ("r is 2^256 - 1", big + sig[32:], "SignerError"),
        ("s is 2^256 - 1", r + big + sig[64:], "SignerError"),
        ("all zero", bytes(65), "SignerError"),
        ("r is not on the curve", no_point.to_bytes(32, "big") + sig[32:], "SignerError"),
        ("wrong parity", sig[:64] + bytes((55 - v,)), "WrongWalletError"),
        ("high s without flipping the parity", r + high + sig[64:], "WrongWalletError"),
        ("another account", personal_sign(HARDHAT[1], text), "WrongWalletError"),
        ("another text", personal_sign(HARDHAT[0], text + b"\n"), "WrongWalletError"),
        ("not personal_sign: the bare Keccak-256 of the text", bare(HARDHAT[0], text), "WrongWalletError"),
    ]
    hedged = other_nonce(HARDHAT[0], text, 0x1234567890ABCDEF)
    save(
        "wallet",
        {
            "about": "Format 2.1 and 2.2. Keys are the public Hardhat keys. Signatures are over key_requests[0].text"
            " of the account named unless text is given. Hex without 0x.",
            "private_keys": HARDHAT,
            "key_requests": requests,
            "refused_requests": bad,
            "accepted": [
                {
                    "name": n,
                    "address": account.hex(),
                    "text": t.decode(),
                    "signature": x.hex(),
                    "rs": (x[:32] + low(x)).hex(),
                }
                for n, t, x in good
            ],
            "refused": [
                {"name": n, "address": account.hex(), "text": text.decode(), "signature": x.hex(), "error": e}
                for n, x, e in refused
            ],
            "signed_twice": [
                {"name": "the same twice", "answers": [sig.hex(), sig.hex()], "accepted": True},
                {"name": "one in high s", "answers": [sig.hex(), good[2][2].hex()], "accepted": True},
                {
                    "name": "another nonce, valid both times",
                    "answers": [sig.hex(), hedged.hex()],
                    "accepted": False,
                },
                {"name": "another nonce first", "answers": [hedged.hex(), sig.hex()], "accepted": False},
            ],
            "signature_texts": {
                "accepted": [
                    {"text": "0x" + sig.hex(), "signature": sig.hex()},
                    {"text": "0X" + sig.hex().upper(), "signature": sig.hex()},
                    {"text": " " + sig.hex() + "\n", "signature": sig.hex()},
                ],
                "refused": [
                    "0x" + sig.hex()[:-1],
                    "0x0x" + sig.hex(),
                    "not hex",
                    "0x ab cd",
                    sig.hex()[:-1] + "g",
                ],
            },
        },
    )


def bare(key: str, text: bytes) -> bytes:
    from eth_hash.auto import keccak

    raw = PrivateKey(bytes.fromhex(key)).sign_msg_hash(keccak(text)).to_bytes()
    return raw[:64] + bytes((27 + raw[64],))


def low(sig: bytes) -> bytes:
    s = int.from_bytes(sig[32:64], "big")
    return min(s, N - s).to_bytes(32, "big")


def tree(keys: root_keys.RootKeys) -> dict[str, Any]:
    out = {
        "admin_seed": keys.admin_seed.hex(),
        "admin_public": keys.admin_public.hex(),
        "head_seed": keys.head_seed.hex(),
        "head_public": keys.head_public.hex(),
        "box_secret": keys.box_secret.hex(),
        "box_public": keys.box_public.hex(),
    }
    if keys.check is not None:
        out |= {
            "check": keys.check.hex(),
            "vault_tag": keys.vault_tag.hex(),
            "plain_vault_tag": keys.tag(plain=True).hex(),
        }
    return out


def make_derivation() -> None:
    account = bytes.fromhex(Account.from_key(HARDHAT[0]).address[2:])
    rows = []
    for vault, number, phrase in [
        ("default", 1, None),
        ("default", 2, None),
        ("work", 1, None),
        ("a" * 32, 2147483647, None),
        ("default", 1, "correct horse battery staple"),
        ("default", 1, "pass"),
        ("default", 1, "\uff50\uff41\uff53\uff53"),
        ("default", 1, "caf\u00e9"),
        ("default", 1, "cafe\u0301"),
        ("default", 1, " "),
    ]:
        sig = personal_sign(HARDHAT[0], message.key_request(account, vault, number))
        rs = sig[:32] + low(sig)
        keys = root_keys.RootKeys.from_signature(rs, account, vault, number, phrase)
        rows.append(
            {
                "address": account.hex(),
                "vault": vault,
                "key_number": number,
                "rs": rs.hex(),
                "passphrase": phrase,
            }
            | tree(keys)
        )
    save(
        "derivation",
        {
            "about": "Format 2.3. Passphrases are NFKC before use; null is none. Hex.",
            "wallet": rows,
            "walletless": [
                {"secret": (b * 64).hex(), "vault": v, "key_number": n}
                | tree(root_keys.RootKeys.from_random(b * 64, v, n))
                for b, v, n in [(b"\x03", "default", 1), (b"\x03", "default", 7), (b"\xfe", "notes-2", 1)]
            ],
            "refused_passphrases": ["", "\ud800"],
        },
    )


def make_recovery() -> None:
    secrets = [b"\x02" * 32, bytes(32), b"\xff" * 32, bytes(range(32))]
    spoken = recovery_words.to_words(b"\x02" * 32)
    text = " ".join(spoken)
    save(
        "recovery",
        {
            "about": "Format 2.3, recovery: BIP-39 English words of 32 bytes, and the keys of that secret.",
            "recovery": [
                {"secret": s.hex(), "words": " ".join(recovery_words.to_words(s))}
                | tree(root_keys.RootKeys.from_recovery(s))
                for s in secrets
            ],
            "same_secret": {
                "secret": (b"\x02" * 32).hex(),
                "texts": [
                    text.upper(),
                    "  " + "   ".join(spoken) + "\n",
                    "\t".join(spoken),
                    "\r\n".join(spoken),
                    text.title(),
                ],
            },
            "refused": [
                {"name": "no words", "text": "", "position": None},
                {"name": "23 words", "text": " ".join(spoken[:-1]), "position": None},
                {"name": "25 words", "text": text + " acoustic", "position": None},
                {"name": "a valid phrase of 12 words", "text": "abandon " * 11 + "about", "position": None},
                {"name": "checksum", "text": " ".join([*spoken[:-1], "acoustic"]), "position": None},
                {
                    "name": "two words swapped",
                    "text": " ".join([spoken[1], spoken[0], *spoken[2:]]),
                    "position": None,
                },
                {"name": "first word unknown", "text": " ".join(["acustic", *spoken[1:]]), "position": 1},
                {
                    "name": "fifth word unknown",
                    "text": " ".join([*spoken[:4], "cages", *spoken[5:]]),
                    "position": 5,
                },
                {
                    "name": "last word unknown",
                    "text": " ".join([*spoken[:-1], "exchang\u00e9"]),
                    "position": 24,
                },
                {"name": "cut to four letters", "text": " ".join(["acou", *spoken[1:]]), "position": 1},
            ],
        },
    )


def make_objects() -> None:
    def payload(spec: dict[str, Any]) -> bytes:
        return spec["text"].encode() * spec.get("times", 1)

    rows = []
    for kind, epoch, ctx, spec in [
        (3, 1, "feedback_tone", {"text": "User prefers direct critique.\n"}),
        (3, 1, "feedback_tone", {"text": "a", "times": 20000}),
        (4, 2, "2026-04-14/00aabbccddeeff11/0", {"text": ""}),
        (1, 1, "", {"text": '{"eks":[],"st":[]}'}),
        (2, 7, "", {"text": "x", "times": 300}),
        (6, 0, "", {"text": "{}"}),
        (7, 1, "", {"text": '{"e":{}}'}),
        (7, 1, "0f", {"text": '{"e":{}}'}),
        (3, 4294967295, "a" * 64, {"text": "\u00fcber \u65e5\u672c\n"}),
        *((3, 1, "size", {"text": "s", "times": n}) for n in (507, 508, 509, 1020, 1021, 8188, 8189, 65536)),
        (3, 1, "size", {"text": "s", "times": 983040}),
    ]:
        sealer = objects.Sealer(objects.epoch_key(epoch, EK, TAG), TAG)
        sealed = sealer.seal(kind, ctx, payload(spec))
        row = {"type": kind, "epoch": epoch, "ctx": ctx, "payload": spec, "size": len(sealed)}
        row["sha256"] = hashlib.sha256(sealed).hexdigest()
        if len(sealed) <= 1100:
            row["object"] = sealed.hex()
        rows.append(row)

    good = objects.Sealer(objects.epoch_key(1, EK, TAG), TAG)
    obj = good.seal(3, "feedback_tone", b"User prefers direct critique.\n")
    prk = primitives.hkdf_extract(TAG, EK)

    def forge(text: bytes, *, nonce: bytes | None = None, magic: bytes = b"IPM1") -> bytes:
        """Seal a wrong text, or with a chosen nonce, under the right keys, as only a member could."""
        key = objects.ObjectKey(prk, 3, 1, TAG)
        aad = key.aad(b"feedback_tone")
        nonce = nonce or key.nonce(aad, text)
        return magic + nonce + bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(text, aad, nonce, key.enc)

    def text(data: bytes, size: int | None = None, bucket: int = 512) -> bytes:
        head = (len(data) if size is None else size).to_bytes(4, "big")
        return (head + data).ljust(bucket, b"\0")

    right = {"type": 3, "epoch": 1, "ctx": "feedback_tone", "vault_tag": TAG.hex(), "ek": EK.hex()}
    refused = [
        ({}, "empty", b""),
        ({}, "magic alone", b"IPM1"),
        ({}, "another magic", b"IPM2" + obj[4:]),
        ({}, "cut by a byte", obj[:-1]),
        ({}, "cut to magic, nonce and a tag", obj[:44]),
        ({}, "cut inside the tag", obj[:40]),
        ({}, "cut to magic and nonce", obj[:28]),
        ({}, "cut inside the nonce", obj[:20]),
        ({}, "a byte more", obj + b"\0"),
        ({}, "first nonce bit", flip(obj, 4)),
        ({}, "first text bit", flip(obj, 28)),
        ({}, "last tag bit", flip(obj, len(obj) - 1)),
        ({"type": 4}, "opened as a timeline segment", obj),
        ({"ctx": "feedback_tune"}, "opened under another name", obj),
        ({"ctx": ""}, "opened without a name", obj),
        ({"epoch": 2}, "opened in another epoch", obj),
        ({"vault_tag": bytes(16).hex()}, "opened in another vault", obj),
        ({"ek": bytes(32).hex()}, "opened with another key", obj),
        ({}, "sealed with right keys: bucket 1024 where 512 is right", forge(text(b"hi", bucket=1024))),
        ({}, "sealed with right keys: bucket 513", forge(text(b"hi", bucket=513))),
        ({}, "sealed with right keys: last padding byte not zero", forge(text(b"hi")[:-1] + b"\1")),
        ({}, "sealed with right keys: first padding byte not zero", forge(text(b"hi!", size=2))),
        ({}, "sealed with right keys: length beyond the text", forge(text(b"hi", size=509))),
        ({}, "sealed with right keys: length 2^32 - 1", forge(text(b"hi", size=2**32 - 1))),
        ({}, "sealed with right keys: no padding at all", forge(text(b"hi", bucket=0))),
        ({}, "sealed with right keys: shorter than the length field", forge(b"\0\0\0")),
        ({}, "sealed with right keys: nothing", forge(b"")),
        ({}, "sealed with right keys: a nonce that is not the hash", forge(text(b"hi"), nonce=b"\7" * 24)),
    ]
    box_secret = b"\x05" * 32
    box_public = primitives.x25519_public(box_secret)
    slot = b"IPMK" + TAG + (1).to_bytes(4, "big") + EK
    sealed_box = primitives.box_seal(slot, box_public)
    sizes = [
        0,
        1,
        511,
        512,
        513,
        1024,
        1025,
        4097,
        8192,
        8193,
        8704,
        8705,
        9216,
        16384,
        16385,
        20004,
        32769,
        65537,
        983044,
        1048576,
    ]
    save(
        "objects",
        {
            "about": "Format 3. ek and vault_tag hold unless a row brings its own; payload = text repeated `times`,"
            " in UTF-8. Every row of `refused` gives the one error. Rows named 'sealed with right keys' pass the AEAD.",
            "ek": EK.hex(),
            "vault_tag": TAG.hex(),
            "ek_ids": [
                {"epoch": n, "ek": ek.hex(), "vault_tag": tag.hex(), "id": objects.ek_id(n, ek, tag)}
                for n, ek, tag in [
                    (1, EK, TAG),
                    (2, EK, TAG),
                    (4294967295, EK, TAG),
                    (1, EK, bytes(16)),
                    (1, bytes(32), TAG),
                ]
            ],
            "largest_payload": 1032188,
            "pad": [[n, objects.padded_size(n)] for n in sizes],
            "sealed": rows,
            "refused": [
                right | change | {"name": name, "object": data.hex()} for change, name, data in refused
            ],
            "boxes": [
                {
                    "name": "a slot of the ring",
                    "secret": box_secret.hex(),
                    "public": box_public.hex(),
                    "box": sealed_box.hex(),
                    "opens": slot.hex(),
                },
                {
                    "name": "another key",
                    "secret": (b"\6" * 32).hex(),
                    "public": primitives.x25519_public(b"\6" * 32).hex(),
                    "box": sealed_box.hex(),
                    "opens": None,
                },
                {
                    "name": "last bit",
                    "secret": box_secret.hex(),
                    "public": box_public.hex(),
                    "box": flip(sealed_box, 103).hex(),
                    "opens": None,
                },
                {
                    "name": "ephemeral key of small order",
                    "secret": box_secret.hex(),
                    "public": box_public.hex(),
                    "box": (bytes(32) + sealed_box[32:]).hex(),
                    "opens": None,
                },
                {
                    "name": "too short",
                    "secret": box_secret.hex(),
                    "public": box_public.hex(),
                    "box": sealed_box[:47].hex(),
                    "opens": None,
                },
            ],
        },
    )


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]


def libsodium(public: bytes, message: bytes, signature: bytes) -> bool:
    try:
        bindings.crypto_sign_open(signature + message, public)
    except exceptions.BadSignatureError:
        return False
    return True


def make_ed25519() -> None:
    seed = b"\1" * 32
    digest = hashlib.sha512(seed).digest()
    a = int.from_bytes(digest[:32], "little") & (1 << 254) - 8 | 1 << 254
    point = mul(a, BASE)
    public, secret = bindings.crypto_sign_seed_keypair(seed)
    assert enc(point) == public
    message = b"ipfsmem"
    good = bindings.crypto_sign(message, secret)[:64]
    s = int.from_bytes(good[32:], "little")
    rows: list[dict[str, Any]] = []

    def row(category: str, name: str, key: bytes, text: bytes, signature: bytes) -> None:
        rows.append(
            {
                "category": category,
                "name": name,
                "public": key.hex(),
                "message": text.hex(),
                "signature": signature.hex(),
                "valid": libsodium(key, text, signature),
            }
        )

    row("plain", "good", public, message, good)
    row("plain", "good, empty message", public, b"", bindings.crypto_sign(b"", secret)[:64])
    row("plain", "another message", public, message + b"!", good)
    row("plain", "another key", bindings.crypto_sign_seed_keypair(b"\2" * 32)[0], message, good)
    row("plain", "a bit of R", public, message, flip(good, 0))
    row("plain", "a bit of S", public, message, flip(good, 32))
    row("plain", "all zero", public, message, bytes(64))
    row("S", "S + L", public, message, good[:32] + le(s + L))
    row("S", "S + 2 L", public, message, good[:32] + le(s + 2 * L))
    row("S", "S + 15 L", public, message, good[:32] + le((s + 15 * L) % 2**256))
    row("S", "S = L with R the identity", public, message, enc((0, 1)) + le(L))
    row("S", "top bit of S", public, message, good[:63] + bytes((good[63] | 0x80,)))

    encodings = [enc(p) for p in SMALL] + NONCANONICAL_SMALL
    names = [f"{i} T8" for i in range(8)] + [
        "0 + p",
        "0 + p, sign",
        "1 + p",
        "1 + p, sign",
        "1, sign",
        "-1, sign",
    ]
    for name, tiny in zip(names, encodings, strict=True):
        row(
            "small order A",
            f"A = {name}, zero signature with R the identity",
            tiny,
            message,
            enc((0, 1)) + bytes(32),
        )
        # R = rB, S = r: valid without cofactor exactly if the challenge is a multiple of A's order.
        r = next(r for r in range(1, 999) if challenge(enc(mul(r, BASE)), tiny, message) % 8 == 0)
        row("small order A", f"A = {name}, equation holds", tiny, message, enc(mul(r, BASE)) + le(r))
        # S = ka: valid without cofactor for the identity, with cofactor for all.
        row(
            "small order R",
            f"R = {name}",
            public,
            message,
            tiny + le(challenge(tiny, public, message) * a % L),
        )
    for i in range(1, 8):
        mixed = enc(add(point, SMALL[i]))
        for wanted, label in ((0, "holds without cofactor"), (1, "holds only with cofactor")):
            r = next(r for r in range(1, 999) if challenge(enc(mul(r, BASE)), mixed, message) % 8 == wanted)
            big_r = enc(mul(r, BASE))
            row(
                "mixed order A",
                f"A + {i} T8, {label}",
                mixed,
                message,
                big_r + le((r + challenge(big_r, mixed, message) * a) % L),
            )
        big_r = enc(add(mul(77, BASE), SMALL[i]))
        row(
            "mixed order R",
            f"R + {i} T8, holds only with cofactor",
            public,
            message,
            big_r + le((77 + challenge(big_r, public, message) * a) % L),
        )
        # R has the torsion of kA: the equation is valid without cofactor.
        j, big_r = next(
            (j, e)
            for r in range(1, 999)
            for j in range(1, 8)
            if (j + challenge(e := enc(add(mul(r, BASE), SMALL[j])), mixed, message) * i) % 8 == 0
            and (found := r)
        )
        row(
            "mixed order both",
            f"A + {i} T8, R + {j} T8, holds without cofactor",
            mixed,
            message,
            big_r + le((found + challenge(big_r, mixed, message) * a) % L),
        )
    for y in range(2, 19):
        if x_of(y) is None:
            continue
        row("noncanonical A", f"y = {y} + p", le(y + P), message, good)
        row("noncanonical R", f"y = {y} + p", public, message, le(y + P) + good[32:])
    no_point = next(y for y in range(2, 99) if x_of(y) is None)
    row("not a point", f"A: y = {no_point}", le(no_point), message, good)
    row("not a point", f"R: y = {no_point}", public, message, le(no_point) + good[32:])

    keys = [{"name": "good", "public": public.hex(), "ok": True}]
    keys += [{"name": n, "public": e.hex(), "ok": False} for n, e in zip(names, encodings, strict=True)]
    keys += [
        {"name": f"A + {i} T8", "public": enc(add(point, SMALL[i])).hex(), "ok": False} for i in range(1, 8)
    ]
    keys += [
        {"name": f"y = {y} + p", "public": le(y + P).hex(), "ok": False} for y in range(2, 19) if x_of(y)
    ]
    keys += [{"name": "not a point", "public": le(no_point).hex(), "ok": False}]
    keys += [{"name": "31 bytes", "public": public[:31].hex(), "ok": False}]
    keys += [{"name": "33 bytes", "public": (public + b"\0").hex(), "ok": False}]

    q = 2**255 - 19
    low8 = [
        0,
        1,
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
        q - 1,
        q,
        q + 1,
    ]
    box_keys = [{"name": "good", "public": primitives.x25519_public(b"\5" * 32).hex(), "ok": True}]
    for u in low8:
        box_keys.append({"name": f"small order u = {u}", "public": le(u).hex(), "ok": False})
        box_keys.append(
            {"name": f"small order u = {u}, top bit", "public": le(u | 1 << 255).hex(), "ok": False}
        )
    save(
        "ed25519",
        {
            "about": "Format 2.4. `valid` is libsodium's verdict, which every implementation must give: no cofactor,"
            " S below L, canonical A and R, neither of small order. T8 is a point of order 8. `keys` are asked once,"
            " when a statement brings them: canonical, in the prime-order subgroup. `box_keys` are X25519.",
            "seeds": [
                {
                    "seed": seed.hex(),
                    "public": public.hex(),
                    "message": message.hex(),
                    "signature": good.hex(),
                }
            ],
            "signatures": rows,
            "keys": keys,
            "box_keys": box_keys,
        },
    )


if __name__ == "__main__":
    make_wallet()
    make_derivation()
    make_recovery()
    make_objects()
    make_ed25519()
