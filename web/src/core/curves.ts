/**
 * Keys and what they do: HKDF, Ed25519 with libsodium's verdict (FORMAT.md 2.4), X25519 and libsodium's sealed boxes.
 *
 * Everything here takes raw keys. Those that a browser keeps where no script reads them are the store's business.
 */

import { xsalsa20poly1305, hsalsa } from '@noble/ciphers/salsa.js'
import { ed25519, x25519 } from '@noble/curves/ed25519.js'
import { blake2b } from '@noble/hashes/blake2.js'
import { expand as nobleExpand, extract as nobleExtract } from '@noble/hashes/hkdf.js'
import { sha256 as hash } from '@noble/hashes/sha2.js'
import { asBytes, type Bytes, hex, join, sha256, utf8 } from './bytes.ts'

export const extract = (salt: string | Bytes, ikm: Bytes): Bytes => nobleExtract(hash, ikm, asBytes(salt))
export const expand = (prk: Bytes, info: string | Bytes, size: number): Bytes => nobleExpand(hash, prk, asBytes(info), size)

// --- Ed25519 ---

export const signingPublic = (seed: Bytes): Bytes => ed25519.getPublicKey(seed)
export const sign = (seed: Bytes, message: Bytes): Bytes => ed25519.sign(message, seed)

/** The short name of a device: the start of the hash of its signing key. */
export const idOf = (publicKey: Bytes): string => hex(sha256(publicKey)).slice(0, 16)

const P = 2n ** 255n - 19n
const SMALL_Y = new Set([
  0n,
  1n,
  P - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  P - 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n
])
const yOf = (point: Bytes): bigint => BigInt(`0x${hex(point.slice().reverse())}`) & (2n ** 255n - 1n)
const isSmall = (point: Bytes): boolean => SMALL_Y.has(yOf(point) % P)

type Asked = { readonly key: Bytes; readonly message: Bytes; readonly signature: Bytes }

/** The equation alone, by the platform where it has Ed25519 and in JavaScript else. */
async function equation({ key, message, signature }: Asked): Promise<boolean> {
  if (!(await hasEd25519())) return ed25519.verify(signature, message, key, { zip215: false })
  const imported = await publicKey(key)
  if (imported === null) return false
  return crypto.subtle.verify('Ed25519', imported, signature as BufferSource, message as BufferSource)
}

let ed25519Native: Promise<boolean> | undefined
const hasEd25519 = (): Promise<boolean> =>
  (ed25519Native ??= crypto.subtle.importKey('raw', signingPublic(new Uint8Array(32)) as BufferSource, 'Ed25519', false, ['verify']).then(
    () => true,
    () => false
  ))

const MOST_IMPORTED = 4096
const imported = new Map<string, Promise<CryptoKey | null>>()

function publicKey(key: Bytes): Promise<CryptoKey | null> {
  const name = hex(key)
  let found = imported.get(name)
  if (found === undefined) {
    if (imported.size >= MOST_IMPORTED) imported.clear()
    found = crypto.subtle.importKey('raw', key as BufferSource, 'Ed25519', false, ['verify']).catch(() => null)
    imported.set(name, found)
  }
  return found
}

/** libsodium's verdict: the equation without cofactor, S below L, A canonical, and neither A nor R of small order. */
export async function verify(key: Bytes, message: Bytes, signature: Bytes): Promise<boolean> {
  if (key.length !== 32 || signature.length !== 64) return false
  if (yOf(key) >= P || isSmall(key) || isSmall(signature.subarray(0, 32))) return false
  return equation({ key, message, signature })
}

const MOST_JUDGED = 4096
const judged = new Map<string, boolean>()

/** Whether a key that a statement brings is canonical and in the prime-order subgroup. */
export function isSigningKey(key: Bytes): boolean {
  const text = hex(key)
  let good = judged.get(text)
  if (good === undefined) {
    if (judged.size >= MOST_JUDGED) judged.clear()
    good = isGoodPoint(key)
    judged.set(text, good)
  }
  return good
}

function isGoodPoint(key: Bytes): boolean {
  try {
    const point = ed25519.Point.fromBytes(key)
    return point.isTorsionFree() && !point.is0() && hex(point.toBytes()) === hex(key)
  } catch {
    return false
  }
}

// --- X25519 and libsodium's sealed boxes ---

export const boxPublic = (secret: Bytes): Bytes => x25519.getPublicKey(secret)

/** Box keys of small order are refused: with one the shared secret is all zeros. */
export function isBoxKey(key: Bytes): boolean {
  try {
    return x25519.scalarMult(new Uint8Array(32).fill(1), key).some(byte => byte !== 0)
  } catch {
    return false
  }
}

/** Words of 32 bits, little-endian as ciphers read them, whatever the machine has. */
function words(bytes: Bytes): Uint32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Uint32Array.from({ length: bytes.length / 4 }, (_, i) => view.getUint32(4 * i, true))
}

const SIGMA = words(utf8('expand 32-byte k'))

function boxKey(shared: Bytes): Bytes {
  const out = new Uint32Array(8)
  hsalsa(SIGMA, words(shared), new Uint32Array(4), out)
  const key = new Uint8Array(32)
  const view = new DataView(key.buffer)
  out.forEach((word, i) => view.setUint32(4 * i, word, true))
  return key
}

const boxNonce = (ephemeral: Bytes, own: Bytes): Bytes => blake2b(join(ephemeral, own), { dkLen: 24 })

/** What a sealed box holds, or null when it does not open with this secret. */
export function openBox(sealed: Bytes, secret: Bytes): Bytes | null {
  const ephemeral = sealed.slice(0, 32)
  try {
    const shared = x25519.getSharedSecret(secret, ephemeral)
    return xsalsa20poly1305(boxKey(shared), boxNonce(ephemeral, boxPublic(secret))).decrypt(sealed.slice(32))
  } catch {
    return null
  }
}

/** A secret box key that may be where no script reads it: all that is asked of it is what it shares with another key. */
export type BoxKey = {
  readonly public: Bytes
  /** What X25519 gives with another public key; null for one of small order. */
  readonly shared: (other: Bytes) => Promise<Bytes | null>
}

/** A key that signs, and may be where no script reads it. */
export type Signer = { readonly public: Bytes; readonly sign: (message: Bytes) => Promise<Bytes> }

/** The box key of 32 secret bytes. */
export const boxKeyOf = (secret: Bytes): BoxKey => ({
  public: boxPublic(secret),
  shared: async other => {
    try {
      return x25519.getSharedSecret(secret, other)
    } catch {
      return null
    }
  }
})

/** The signing key of 32 secret bytes. */
export const signerOf = (seed: Bytes): Signer => ({ public: signingPublic(seed), sign: async message => sign(seed, message) })

/** What a sealed box holds, or null when it does not open with this key. */
export async function openBoxWith(sealed: Bytes, key: BoxKey): Promise<Bytes | null> {
  const ephemeral = sealed.slice(0, 32)
  const shared = await key.shared(ephemeral)
  if (shared === null || shared.every(byte => byte === 0)) return null
  try {
    return xsalsa20poly1305(boxKey(shared), boxNonce(ephemeral, key.public)).decrypt(sealed.slice(32))
  } catch {
    return null
  }
}

/** A sealed box to a public key; `ephemeral` is a secret of 32 random bytes that nobody keeps. */
export function sealBox(text: Bytes, to: Bytes, ephemeral: Bytes): Bytes {
  const own = boxPublic(ephemeral)
  const shared = x25519.getSharedSecret(ephemeral, to)
  return join(own, xsalsa20poly1305(boxKey(shared), boxNonce(own, to)).encrypt(text))
}
