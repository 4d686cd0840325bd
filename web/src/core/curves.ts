/**
 * Keys and what they do: HKDF, Ed25519 with libsodium's verdict (FORMAT.md 2.4), X25519 and libsodium's sealed boxes.
 *
 * Everything here takes raw keys. Those that a browser keeps where no script reads them are the store's business.
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

/** The short name of a device: the start of the hash of its signing key. */
export const idOf = (publicKey: Bytes): string => hex(sha256(publicKey)).slice(0, 16)

const P = 2n ** 255n - 19n
const MASK = 2n ** 255n - 1n

/** A number below 2^255 that stands for each of these modulo p: 0 and 1 can be written in two ways. */
const written = (residues: readonly bigint[]): string[] => residues.flatMap(one => (one + P <= MASK ? [one, one + P] : [one])).map(one => hex(number(one, 32).reverse()))

/** The y of points of small order, however they are written, by the hex of 32 bytes without the sign. */
const SMALL_Y = new Set(written([0n, 1n, P - 1n, 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n, P - 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n]))
/** The same of u on the curve of box keys, and on its twist. */
const SMALL_U = new Set(written([0n, 1n, P - 1n, 325606250916557431795983626356110631294008115727848805560023387167927233504n, 39382357235489614581723060781553021112529911719440698176882885853963445705823n]))
/** What bytes of one of them begin with: few others do, and these few are looked at whole. */
const beginnings = (all: ReadonlySet<string>): ReadonlySet<number> => new Set([...all].map(one => Number.parseInt(one.slice(0, 4), 16)))
const SMALL_BEGIN = { y: beginnings(SMALL_Y), u: beginnings(SMALL_U) }

function isSmall(point: Bytes, all: ReadonlySet<string>, begin: ReadonlySet<number>): boolean {
  if (!begin.has(((point[0] as number) << 8) | (point[1] as number))) return false
  const unsigned = point.slice(0, 32)
  unsigned[31] = (point[31] as number) & 127
  return all.has(hex(unsigned))
}

/** Whether y is below p: of what is not, all bytes but the first and last are 255. */
const isCanonical = (point: Bytes): boolean => (point[0] as number) < 0xed || ((point[31] as number) & 127) !== 127 || point.subarray(1, 31).some(byte => byte !== 255)

/** Whether a signature over a message is of one key; at once where it can only be wrong. */
type Verify = (message: Bytes, signature: Bytes) => boolean | Promise<boolean>

let ed25519Native: Promise<boolean> | undefined
const hasEd25519 = (): Promise<boolean> =>
  (ed25519Native ??= crypto.subtle.importKey('raw', signingPublic(new Uint8Array(32)) as BufferSource, 'Ed25519', false, ['verify']).then(
    () => true,
    () => false
  ))

/** The equation alone, by the platform where it has Ed25519 and in JavaScript else; null where the platform knows no such key. */
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

/** What verifies signatures of a key, given in hex: a state has thousands of a few keys. */
function verifierOf(key: string): Promise<Verify> {
  let found = verifiers.get(key)
  if (found === undefined) {
    if (verifiers.size >= MOST_VERIFIERS) verifiers.clear()
    verifiers.set(key, (found = verdictOf(fromHex(key))))
  }
  return found
}

export const verify = async (key: Bytes, message: Bytes, signature: Bytes): Promise<boolean> => (await verifierOf(hex(key)))(message, signature)

/** A signature to be checked; `key` in hex. */
export type Signed = { readonly key: string; readonly message: Bytes; readonly signature: Bytes }
/** The verdicts on many signatures, in their order. */
export type CheckAll = (all: readonly Signed[]) => Promise<readonly boolean[]>

export async function checkAll(all: readonly Signed[]): Promise<readonly boolean[]> {
  const ways = new Map<string, Verify>()
  for (const { key } of all) if (!ways.has(key)) ways.set(key, await verifierOf(key))
  return Promise.all(all.map(({ key, message, signature }) => (ways.get(key) as Verify)(message, signature)))
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
export const isBoxKey = (key: Bytes): boolean => key.length === 32 && !isSmall(key, SMALL_U, SMALL_BEGIN.u)

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

const boxNonce = (ephemeral: Bytes, own: Bytes): Bytes => blake2b(new Uint8Array(), 24, ephemeral, own)

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
