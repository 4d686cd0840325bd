"""Sections 2 and 3 of docs/FORMAT.md: the keys of a wallet or of recovery words, and sealed objects."""

from __future__ import annotations

import hmac
import re
import zlib
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, NamedTuple

import nacl.bindings
import nacl.exceptions

from tests.support.plain.texts import Refused

RING, COMMIT, MEMORY, SEGMENT, NODE, CARD = 1, 2, 3, 4, 7, 8


def extract(salt: bytes, secret: bytes) -> bytes:
    return hmac.digest(salt, secret, "sha256")


def expand(prk: bytes, info: bytes, size: int) -> bytes:
    made, block = b"", b""
    while len(made) < size:
        block = hmac.digest(prk, block + info + bytes([len(made) // 32 + 1]), "sha256")
        made += block
    return made[:size]


class Keys(NamedTuple):
    """The root keys of a wallet, a secret or a set of words."""

    admin: bytes  # public
    head: bytes  # public: the anchor
    box_secret: bytes
    box: bytes


def _keys(label_key: Any) -> Keys:
    admin, head = (
        nacl.bindings.crypto_sign_seed_keypair(label_key(label))[0] for label in (b"admin", b"head")
    )
    secret = label_key(b"box")
    return Keys(admin, head, secret, nacl.bindings.crypto_scalarmult_base(secret))


def _wallet_keys(secret: bytes, address: bytes, vault: str, number: int) -> Keys:
    prk = extract(b"ipfsmem/v1/wallet-root", secret)
    info = b"\0" + address + len(vault).to_bytes(2, "big") + vault.encode() + number.to_bytes(4, "big")
    return _keys(lambda label: expand(prk, b"ipfsmem/v1/" + label + info, 32))


def keys_of(opened_by: dict[str, Any]) -> Keys:
    if "words" in opened_by:
        prk = extract(b"ipfsmem/v1/recovery", words_secret(opened_by["words"]))
        return _keys(lambda label: expand(prk, b"ipfsmem/v1/" + label, 32))
    if "secret" in opened_by:
        return _wallet_keys(bytes.fromhex(opened_by["secret"]), bytes(20), "default", 1)
    wallet = opened_by["wallet"]
    import eth_account  # takes most of a second
    import eth_account.messages

    account = eth_account.Account.from_key(wallet["private_key"])
    text = _MESSAGE.format(account.address.lower(), wallet["vault"], wallet["key_number"])
    signature = account.sign_message(eth_account.messages.encode_defunct(text=text)).signature
    return _wallet_keys(
        bytes(signature[:64]), bytes.fromhex(account.address[2:]), wallet["vault"], wallet["key_number"]
    )


_MESSAGE = """ipfsmem memory key request, version 1

Signing this text creates the secret keys of an encrypted agent memory.
It is not a login and not a payment. It costs nothing.
Anyone who obtains this signature can read and change that memory.
Sign it only inside an ipfsmem program that you started yourself.
If a website that you do not run asks for it, refuse.

Account: {}
Vault: {}
Key number: {}"""


def words_secret(words: str) -> bytes:
    """Return the 32 bytes of 24 BIP-39 words."""
    import eth_account.hdaccount

    (listed,) = Path(eth_account.hdaccount.__file__).parent.rglob("english.txt")
    numbers = {word: n for n, word in enumerate(listed.read_text("utf-8").split())}
    total = 0
    for word in words.lower().split():
        total = total << 11 | numbers[word]
    secret, check = (total >> 8).to_bytes(32, "big"), total & 255
    if sha256(secret).digest()[0] != check:
        raise Refused("the words have another checksum")
    return secret


def vault_tag(first_root: bytes, kind: str) -> bytes:
    domain = b"ipfsmem/v1/vault" if kind == "sealed" else b"ipfsmem/v1/plain-vault"
    return sha256(domain + b"\0" + first_root).digest()[:16]


class EpochKey(NamedTuple):
    epoch: int
    key: bytes
    id: str


def epoch_key(tag: bytes, epoch: int, key: bytes) -> EpochKey:
    made = expand(extract(tag, key), b"ipfsmem/v1/ek-id\0" + epoch.to_bytes(4, "big"), 8)
    return EpochKey(epoch, key, made.hex())


def pad(length: int) -> int:
    if length <= 8192:
        return max(512, 1 << (length - 1).bit_length())
    e = length.bit_length() - 1
    step = 1 << (e - e.bit_length())
    return -(-length // step) * step


def open_object(data: bytes, tag: bytes, ek: EpochKey, kind: int, ctx: str) -> bytes:
    """Return the payload of a sealed object."""
    if len(data) > 1 << 20 or data[:4] != b"IPM1":
        raise Refused("no sealed object")
    epoch = ek.epoch.to_bytes(4, "big")
    aad = b"IPM1" + bytes([kind, 1]) + epoch + tag + len(ctx.encode()).to_bytes(2, "big") + ctx.encode()
    prk = extract(tag, ek.key)
    enc = expand(prk, b"ipfsmem/v1/obj-enc\0" + epoch + bytes([kind]), 32)
    non = expand(prk, b"ipfsmem/v1/obj-nonce\0" + epoch + bytes([kind]), 32)
    try:
        plain = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(data[28:], aad, data[4:28], enc)
    except (nacl.exceptions.CryptoError, ValueError) as error:
        raise Refused("does not open") from error
    if blake2b(len(aad).to_bytes(4, "big") + aad + plain, key=non, digest_size=24).digest() != data[4:28]:
        raise Refused("another nonce")
    if len(plain) < 4:
        raise Refused("too short")
    size = int.from_bytes(plain[:4], "big")
    packed, size = size >> 31 and kind == MEMORY, size & 0x7FFFFFFF if kind == MEMORY else size
    if len(plain) != pad(4 + size) or plain[4 + size :].strip(b"\0") or size + 4 > len(plain):
        raise Refused("another length")
    payload = plain[4 : 4 + size]
    return _inflated(payload, len(plain)) if packed else payload


def _inflated(stream: bytes, bucket: int) -> bytes:
    inflater = zlib.decompressobj(-15)
    try:
        made = inflater.decompress(stream, 983_041)
    except zlib.error as error:
        raise Refused("no deflate stream") from error
    if not inflater.eof or inflater.unused_data or len(made) > 983_040 or bucket >= pad(4 + len(made)):
        raise Refused("a stream that does not count")
    return made


def open_slot(slot: bytes, tag: bytes, box: bytes, secret: bytes) -> EpochKey | None:
    try:
        plain = nacl.bindings.crypto_box_seal_open(slot, box, secret)
    except (nacl.exceptions.CryptoError, ValueError):
        return None
    if len(plain) != 56 or plain[:20] != b"IPMK" + tag:
        return None
    return epoch_key(tag, int.from_bytes(plain[20:24], "big"), plain[24:])


def is_proper_key(text: object) -> bool:
    """Return whether a text is 64 hex digits of a canonical Ed25519 key in the prime-order subgroup."""
    return (
        isinstance(text, str)
        and re.fullmatch("[0-9a-f]{64}", text) is not None
        and nacl.bindings.crypto_core_ed25519_is_valid_point(bytes.fromhex(text))
    )


def is_box_key(text: object) -> bool:
    if not isinstance(text, str) or not re.fullmatch("[0-9a-f]{64}", text):
        return False
    try:
        nacl.bindings.crypto_scalarmult(b"\1" * 32, bytes.fromhex(text))
    except (nacl.exceptions.CryptoError, RuntimeError):
        return False
    return True
