/**
 * Keys and their operations: HKDF, Ed25519 with libsodium's verdict (FORMAT.md 2.4), X25519 and libsodium's sealed boxes.
 *
 * Everything here uses raw keys. Keys that no script can read are handled by the store.
 */

import { xsalsa20poly1305, hsalsa } from '@noble/ciphers/salsa.js'
import { ed25519, x25519 } from '@noble/curves/ed25519.js'
import { expand as nobleExpand, extract as nobleExtract } from '@noble/hashes/hkdf.js'
import { sha256 as hash } from '@noble/hashes/sha2.js'
import { blake2b } from './blake2b.ts'
import { asBytes, type Bytes, fromHex, hex, join, number, sha256, utf8 } from './bytes.ts'

export const extract = (salt: string | Bytes, ikm: Bytes): Bytes => nobleExtract(hash, ikm, asBytes(salt))
export const expand = (prk: Bytes, info: string | Bytes, size: number): Bytes => nobleExpand(hash, prk, asBytes(info), size)

// --- Ed25519 ---

export const signingPublic = (seed: Bytes): Bytes => ed25519.getPublicKey(seed)
export const sign = (seed: Bytes, message: Bytes): Bytes => ed25519.sign(message, seed)

/** The id of a device: the first digits of the hash of its signing key. */
export const idOf = (publicKey: Bytes): string => hex(sha256(publicKey)).slice(0, 16)

const P = 2n ** 255n - 19n
const MASK = 2n ** 255n - 1n

/** All encodings below 2^255 of these residues modulo p: 0 and 1 have two. */
const written = (residues: readonly bigint[]): string[] => residues.flatMap(one => (one + P <= MASK ? [one, one + P] : [one])).map(one => hex(number(one, 32).reverse()))

/** The y of points of small order in all encodings, by the hex of 32 bytes without the sign. */
const SMALL_Y = new Set(written([0n, 1n, P - 1n, 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n, P - 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n]))
/** The same for u on the curve of box keys, and on its twist. */
const SMALL_U = new Set(written([0n, 1n, P - 1n, 325606250916557431795983626356110631294008115727848805560023387167927233504n, 39382357235489614581723060781553021112529911719440698176882885853963445705823n]))
/** Their first bytes: few other keys begin so, and only these are compared in full. */
const beginnings = (all: ReadonlySet<string>): ReadonlySet<number> => new Set([...all].map(one => Number.parseInt(one.slice(0, 4), 16)))
const SMALL_BEGIN = { y: beginnings(SMALL_Y), u: beginnings(SMALL_U) }

function isSmall(point: Bytes, all: ReadonlySet<string>, begin: ReadonlySet<number>): boolean {
  if (!begin.has(((point[0] as number) << 8) | (point[1] as number))) return false
  const unsigned = point.slice(0, 32)
  unsigned[31] = (point[31] as number) & 127
  return all.has(hex(unsigned))
}

/** Tell whether y is below p: otherwise all bytes but the first and last are 255. */
const isCanonical = (point: Bytes): boolean => (point[0] as number) < 0xed || ((point[31] as number) & 127) !== 127 || point.subarray(1, 31).some(byte => byte !== 255)

/** Tell whether a key signed a message; synchronously if it cannot have. */
type Verify = (message: Bytes, signature: Bytes) => boolean | Promise<boolean>

let ed25519Native: Promise<boolean> | undefined
const hasEd25519 = (): Promise<boolean> =>
  (ed25519Native ??= crypto.subtle.importKey('raw', signingPublic(new Uint8Array(32)) as BufferSource, 'Ed25519', false, ['verify']).then(
    () => true,
    () => false
  ))

/** Check the equation alone, by the platform if it has Ed25519, else in JavaScript; null if the platform rejects the key. */
async function equationOf(key: Bytes): Promise<Verify | null> {
  if (!(await hasEd25519())) return (message, signature) => ed25519.verify(signature, message, key, { zip215: false })
  const native = await crypto.subtle.importKey('raw', key as BufferSource, 'Ed25519', false, ['verify']).catch(() => null)
  return native && ((message, signature) => crypto.subtle.verify('Ed25519', native, signature as BufferSource, message as BufferSource))
}

/** libsodium's verdict: the equation without cofactor, S below L, A canonical, and neither A nor R of small order. */
async function verdictOf(key: Bytes): Promise<Verify> {
  const holds = key.length !== 32 || !isCanonical(key) || isSmall(key, SMALL_Y, SMALL_BEGIN.y) ? null : await equationOf(key)
  return holds === null ? () => false : (message, signature) => signature.length === 64 && !isSmall(signature, SMALL_Y, SMALL_BEGIN.y) && holds(message, signature)
}

const MOST_VERIFIERS = 4096
const verifiers = new Map<string, Promise<Verify>>()

/** Return the verifier of a key, given in hex: a state has thousands of signatures of a few keys. */
function verifierOf(key: string): Promise<Verify> {
  let found = verifiers.get(key)
  if (found === undefined) {
    if (verifiers.size >= MOST_VERIFIERS) verifiers.clear()
    verifiers.set(key, (found = verdictOf(fromHex(key))))
  }
  return found
}

export const verify = async (key: Bytes, message: Bytes, signature: Bytes): Promise<boolean> => (await verifierOf(hex(key)))(message, signature)

/** A signature to check; `key` in hex. */
export type Signed = { readonly key: string; readonly message: Bytes; readonly signature: Bytes }
/** Check many signatures; results in their order. */
export type CheckAll = (all: readonly Signed[]) => Promise<readonly boolean[]>

export async function checkAll(all: readonly Signed[]): Promise<readonly boolean[]> {
  const ways = new Map<string, Verify>()
  for (const { key } of all) if (!ways.has(key)) ways.set(key, await verifierOf(key))
  return Promise.all(all.map(({ key, message, signature }) => (ways.get(key) as Verify)(message, signature)))
}

const MOST_JUDGED = 4096
const judged = new Map<string, boolean>()

/** Tell whether a key in a statement is canonical and in the prime-order subgroup. */
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

/** Box keys of small order are refused: their shared secret is all zeros. */
export const isBoxKey = (key: Bytes): boolean => key.length === 32 && !isSmall(key, SMALL_U, SMALL_BEGIN.u)

/** 32-bit words, little-endian as ciphers read them, on any machine. */
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

const boxNonce = (ephemeral: Bytes, own: Bytes): Bytes => blake2b(new Uint8Array(), 24, ephemeral, own)

/** Open a sealed box; null if it does not open with this secret. */
export function openBox(sealed: Bytes, secret: Bytes): Bytes | null {
  const ephemeral = sealed.slice(0, 32)
  try {
    const shared = x25519.getSharedSecret(secret, ephemeral)
    return xsalsa20poly1305(boxKey(shared), boxNonce(ephemeral, boxPublic(secret))).decrypt(sealed.slice(32))
  } catch {
    return null
  }
}

/** A secret box key, possibly unreadable for scripts: only its shared secret with another key is requested. */
export type BoxKey = {
  readonly public: Bytes
  /** The X25519 shared secret with another public key; null for one of small order. */
  readonly shared: (other: Bytes) => Promise<Bytes | null>
}

/** A signing key, possibly unreadable for scripts. */
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

/** Open a sealed box; null if it does not open with this key. */
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

/** Seal a box to a public key; `ephemeral`: a secret of 32 random bytes, to be discarded. */
export function sealBox(text: Bytes, to: Bytes, ephemeral: Bytes): Bytes {
  const own = boxPublic(ephemeral)
  const shared = x25519.getSharedSecret(ephemeral, to)
  return join(own, xsalsa20poly1305(boxKey(shared), boxNonce(own, to)).encrypt(text))
}
