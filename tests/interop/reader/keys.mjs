// Curves, and from a wallet's key or the recovery words to the keys of a vault (FORMAT.md 2).

import { createHmac, createPublicKey, verify as opensslVerify } from 'node:crypto'
import { hsalsa, xsalsa20poly1305 } from '@noble/ciphers/salsa'
import { ed25519, x25519 } from '@noble/curves/ed25519'
import { secp256k1 } from '@noble/curves/secp256k1'
import { blake2b } from '@noble/hashes/blake2'
import { argon2id } from '@noble/hashes/argon2'
import { keccak_256 } from '@noble/hashes/sha3'
import { mnemonicToEntropy } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english'
import { hex, join, len, need, number, refuse, same, sha256, utf8 } from './bytes.mjs'

const hmac = (key, data) => createHmac('sha256', key).update(data).digest()
export const extract = (salt, ikm) => hmac(salt, ikm)

export function expand(prk, info, size) {
  let out = Buffer.alloc(0)
  for (let block = Buffer.alloc(0), n = 1; out.length < size; n++) {
    block = hmac(prk, join(block, info, [n]))
    out = join(out, block)
  }
  return out.subarray(0, size)
}

// --- 2.1, 2.2 ---

export const request = (address, vault, keyNumber) =>
  `ipfsmem memory key request, version 1

Signing this text creates the secret keys of an encrypted agent memory.
It is not a login and not a payment. It costs nothing.
Anyone who obtains this signature can read and change that memory.
Sign it only inside an ipfsmem program that you started yourself.
If a website that you do not run asks for it, refuse.

Account: 0x${address}
Vault: ${vault}
Key number: ${keyNumber}`

/** The address of a public key, and the r | s of a message signed with EIP-191, s in its lower half. */
export function walletSignature(privateKey, message) {
  const point = secp256k1.getPublicKey(privateKey, false)
  const text = utf8(message)
  const digest = keccak_256(join(`\x19Ethereum Signed Message:\n${text.length}`, text))
  const signed = secp256k1.sign(digest, privateKey, { lowS: true, prehash: false })
  return Buffer.from(signed.toCompactRawBytes())
}

export const addressOf = privateKey => hex(keccak_256(secp256k1.getPublicKey(privateKey, false).slice(1)).slice(12))

// --- 2.3 ---

function rootKeys(label, check) {
  const adminSeed = label('admin', 32)
  return {
    adminSeed,
    admin: Buffer.from(ed25519.getPublicKey(adminSeed)),
    head: Buffer.from(ed25519.getPublicKey(label('head', 32))),
    boxSecret: label('box', 32),
    check: check ? hex(label('check', 32).subarray(0, 8)) : undefined
  }
}

export function keysOfSecret(secret, address, vault, keyNumber, passphrase = null) {
  let P = Buffer.alloc(0)
  if (passphrase !== null) {
    need(passphrase !== '' && passphrase.isWellFormed(), 'passphrase')
    const salt = sha256(join('ipfsmem/v1/pp', Buffer.from(address, 'hex'), vault)).subarray(0, 16)
    P = Buffer.from(argon2id(utf8(passphrase.normalize('NFKC')), salt, { t: 3, m: 65536, p: 1, dkLen: 32 }))
  }
  const prk = extract('ipfsmem/v1/wallet-root', join(secret, P))
  const tail = join([0], Buffer.from(address, 'hex'), len(16, vault), number(keyNumber, 4))
  return rootKeys((label, size) => expand(prk, join('ipfsmem/v1/', label, tail), size), true)
}

/** Of a wallet's private key (64 hex digits). */
export function keysOfWallet({ private_key: privateKey, vault, key_number: keyNumber }) {
  const address = addressOf(privateKey)
  return keysOfSecret(walletSignature(privateKey, request(address, vault, keyNumber)), address, vault, keyNumber)
}

/** Of 24 recovery words. */
export function keysOfWords(words) {
  let secret
  try {
    secret = mnemonicToEntropy(words.trim().toLowerCase().split(/\s+/).join(' '), wordlist)
  } catch {
    refuse('words')
  }
  need(secret.length === 32, 'words')
  const prk = extract('ipfsmem/v1/recovery', secret)
  return rootKeys((label, size) => expand(prk, join('ipfsmem/v1/', label), size), false)
}

/** The vault that has this first root, sealed or plain. */
export const vaultTag = (admin, plain) =>
  sha256(join(plain ? 'ipfsmem/v1/plain-vault' : 'ipfsmem/v1/vault', [0], admin)).subarray(0, 16)

export const idOf = sign => hex(sha256(sign)).slice(0, 16)
export const boxPublic = secret => Buffer.from(x25519.getPublicKey(secret))

// --- 2.4 ---

const SMALL_Y = new Set([
  0n,
  1n,
  2n ** 255n - 20n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  2n ** 255n - 19n - 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n
])
const P25519 = 2n ** 255n - 19n
const yOf = point => BigInt(`0x${hex(Buffer.from(point).reverse())}`) & (2n ** 255n - 1n)
const smallOrder = point => SMALL_Y.has(yOf(point) % P25519)
const SPKI = Buffer.from('302a300506032b6570032100', 'hex')

/** libsodium's verdict: OpenSSL's equation, and neither A nor R of small order, A canonical. */
export function verify(publicKey, message, signature) {
  if (publicKey.length !== 32 || signature.length !== 64) return false
  if (yOf(publicKey) >= P25519 || smallOrder(publicKey) || smallOrder(signature.subarray(0, 32))) return false
  const key = createPublicKey({ key: join(SPKI, publicKey), format: 'der', type: 'spki' })
  return opensslVerify(null, message, key, signature)
}

const goodKeys = new Map()

/** A key that a statement brings: canonical and in the prime-order subgroup. */
export function isSigningKey(publicKey) {
  const text = hex(publicKey)
  if (!goodKeys.has(text)) {
    let good = false
    try {
      const point = ed25519.ExtendedPoint.fromHex(text)
      good = point.isTorsionFree() && !point.is0() && hex(point.toRawBytes()) === text
    } catch {}
    goodKeys.set(text, good)
  }
  return goodKeys.get(text)
}

/** Box keys of small order are refused: with one the shared secret is all zeros. */
export function isBoxKey(publicKey) {
  try {
    return !same(Buffer.from(x25519.scalarMult(Buffer.alloc(32, 1), publicKey)), Buffer.alloc(32))
  } catch {
    return false
  }
}

// --- libsodium's crypto_box_seal, opened ---

const words32 = bytes => new Uint32Array(new Uint8Array(bytes).buffer)
const SIGMA = words32(utf8('expand 32-byte k'))

/** The text of a sealed box, or null. */
export function openBox(sealed, secret) {
  const ephemeral = sealed.subarray(0, 32)
  const own = boxPublic(secret)
  let shared
  try {
    shared = x25519.getSharedSecret(secret, ephemeral)
  } catch {
    return null
  }
  const key = new Uint32Array(8)
  hsalsa(SIGMA, words32(shared), new Uint32Array(4), key)
  const nonce = blake2b(join(ephemeral, own), { dkLen: 24 })
  try {
    return Buffer.from(xsalsa20poly1305(new Uint8Array(key.buffer), nonce).decrypt(sealed.subarray(32)))
  } catch {
    return null
  }
}
