/** CIDs, the varints in them and in protobuf, and IPNS names (FORMAT.md 6 and 7). Bytes can be checked only against sha2-256. */

import { type Bytes, fromHex, hex, join, need, refuse, same, sha256 } from './bytes.ts'

export const RAW = 0x55
export const DAG_PB = 0x70
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
const BASE36 = '0123456789abcdefghijklmnopqrstuvwxyz'
const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const SHA256 = Uint8Array.of(0x12, 0x20)

export type Cid = {
  readonly version: 0 | 1
  readonly codec: number
  /** Code and length of a hash, and its digest. */
  readonly multihash: Bytes
  /** In base32, or base58btc for version 0. */
  readonly text: string
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** Bases whose digits are bits: by multibase prefix the alphabet, and the bits of a digit. */
const BIT_BASES: Readonly<Record<string, readonly [alphabet: string, bits: number]>> = {
  '0': ['01', 1],
  '7': ['01234567', 3],
  b: [BASE32, 5],
  f: ['0123456789abcdef', 4],
  h: ['ybndrfg8ejkmcpqxot1uwisza345h769', 5],
  m: [`${LETTERS}+/`, 6],
  u: [`${LETTERS}-_`, 6],
  v: ['0123456789abcdefghijklmnopqrstuv', 5]
}
/** Bases that encode one large number. */
const NUMBER_BASES: Readonly<Record<string, string>> = {
  '9': '0123456789',
  k: BASE36,
  z: BASE58,
  Z: '123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ'
}
/** Bases with padding: the same one without, and the digits of a group. */
const PADDED: Readonly<Record<string, readonly [base: string, group: number]>> = { c: ['b', 8], t: ['v', 8], M: ['m', 4], U: ['u', 4] }

function toBits(data: Bytes, [alphabet, per]: readonly [string, number]): string {
  let out = ''
  let value = 0
  let bits = 0
  for (const byte of data) {
    value = ((value << 8) | byte) & 0xffff
    for (bits += 8; bits >= per; bits -= per) out += alphabet[(value >> (bits - per)) & ((1 << per) - 1)]
  }
  return bits ? out + alphabet[(value << (per - bits)) & ((1 << per) - 1)] : out
}

function fromBits(text: string, base: readonly [string, number]): Bytes {
  const out: number[] = []
  let value = 0
  let bits = 0
  for (const letter of text) {
    const digit = base[0].indexOf(letter)
    need(digit >= 0, 'format', 'an invalid digit')
    value = ((value << base[1]) | digit) & 0xffff
    bits += base[1]
    if (bits >= 8) out.push((value >> (bits -= 8)) & 255)
  }
  const data = Uint8Array.from(out)
  need(toBits(data, base) === text, 'format', 'not in the one form of its base')
  return data
}

function toNumber(data: Bytes, alphabet: string): string {
  const zeros = data.findIndex(byte => byte !== 0)
  let value = data.length ? BigInt(`0x${hex(data)}`) : 0n
  let out = ''
  for (const base = BigInt(alphabet.length); value; value /= base) out = (alphabet[Number(value % base)] as string) + out
  return (alphabet[0] as string).repeat(zeros < 0 ? data.length : zeros) + out
}

function fromNumber(text: string, alphabet: string): Bytes {
  need(text.length <= MOST_LETTERS, 'limit', 'too long for a CID')
  let value = 0n
  for (const letter of text) {
    const digit = alphabet.indexOf(letter)
    need(digit >= 0, 'format', 'an invalid digit')
    value = value * BigInt(alphabet.length) + BigInt(digit)
  }
  const zeros = [...text].findIndex(letter => letter !== alphabet[0])
  const digits = value.toString(16)
  const rest = value ? fromHex(digits.length % 2 ? `0${digits}` : digits) : new Uint8Array()
  return join(new Uint8Array(zeros < 0 ? text.length : zeros), rest)
}

export const base32 = (data: Bytes): string => toBits(data, [BASE32, 5])

/** CIDs by their bytes in hex: a vault names the same ones again and again. */
const known = new Map<string, Cid>()
const MOST_KNOWN = 100_000

function remembered(key: string, make: () => Cid): Cid {
  let cid = known.get(key)
  if (cid === undefined) {
    if (known.size >= MOST_KNOWN) known.clear()
    known.set(key, (cid = make()))
  }
  return cid
}

/** Decode a varint at `at`, in its shortest form and of at most 63 bits, and return its end. */
export function varint(data: Bytes, at: number): [value: bigint, end: number] {
  let value = 0n
  for (let i = 0; i < 9; i++) {
    const byte = data[at + i]
    need(byte !== undefined, 'format', 'cut off')
    value |= BigInt(byte & 127) << BigInt(7 * i)
    if (byte < 128) {
      need(i === 0 || byte !== 0, 'format', 'a number not in its shortest form')
      return [value, at + i + 1]
    }
  }
  return refuse('format', 'a number of more than 63 bits')
}

/** Decode a varint that counts bytes of `data`, so it is at most their length. */
export function size(data: Bytes, at: number): [value: number, end: number] {
  const [value, end] = varint(data, at)
  need(value <= BigInt(data.length - end), 'format', 'cut off')
  return [Number(value), end]
}

export function toVarint(value: number | bigint): Bytes {
  const out: number[] = []
  let rest = BigInt(value)
  for (; rest > 127n; rest >>= 7n) out.push(Number(rest & 127n) | 128)
  return Uint8Array.from([...out, Number(rest)])
}

const MOST_DIGEST = 64

/** Decode the CID at `at`, and return its end. */
export function readCid(data: Bytes, at = 0): [cid: Cid, end: number] {
  if (same(data.subarray(at, at + 2), SHA256)) {
    need(data.length >= at + 34, 'format', 'cut off')
    const multihash = data.slice(at, at + 34)
    return [{ version: 0, codec: DAG_PB, multihash, text: toNumber(multihash, BASE58) }, at + 34]
  }
  // The usual form: version 1, one byte of codec, sha2-256.
  if (data[at] === 1 && (data[at + 1] === RAW || data[at + 1] === DAG_PB) && data[at + 2] === 0x12 && data[at + 3] === 0x20 && data.length >= at + 36) {
    const codec = data[at + 1] as number
    const multihash = data.slice(at + 2, at + 36)
    return [remembered(hex(data.subarray(at + 1, at + 36)), () => cidOfMultihash(codec, multihash)), at + 36]
  }
  const [version, afterVersion] = varint(data, at)
  need(version === 1n, 'format', 'not a CID')
  const [codec, start] = varint(data, afterVersion)
  const [hash, afterHash] = varint(data, start)
  const [length, begin] = size(data, afterHash)
  need(codec <= 0xffffffffn && length <= MOST_DIGEST && (hash !== 0x12n || length === 32), 'format', 'not a CID')
  return [cidOfMultihash(Number(codec), data.slice(start, begin + length)), begin + length]
}

const cidOfMultihash = (codec: number, multihash: Bytes): Cid => ({
  version: 1,
  codec,
  multihash,
  text: `b${base32(join([1], toVarint(codec), multihash))}`
})

/** The CID of a raw block by its SHA-256 in hex. */
export const rawCid = (hash: string): Cid => remembered(`551220${hash}`, () => cidOfMultihash(RAW, join(SHA256, fromHex(hash, 32))))

/** The CID of bytes with this SHA-256. */
export const cidOfHash = (codec: number, hash: Bytes): Cid => cidOfMultihash(codec, join(SHA256, hash))

export const cidOf = (codec: number, data: Bytes): Cid => cidOfHash(codec, sha256(data))

/** Tell whether a CID names these bytes; false for an unknown hash function. */
export const isBlockOf = (cid: Cid, data: Bytes): boolean =>
  cid.multihash[0] === 0 ? same(cid.multihash.subarray(2), data) : same(cid.multihash.subarray(0, 2), SHA256) && same(cid.multihash.subarray(2), sha256(data))

/** The same CID in version 1. */
export const asVersion1 = (cid: Cid): Cid => (cid.version === 1 ? cid : cidOfMultihash(cid.codec, cid.multihash))

/** Decode a CID without trailing bytes. */
export function cidFromBytes(data: Bytes): Cid {
  const [cid, end] = readCid(data)
  need(end === data.length, 'format', 'bytes after a CID')
  return cid
}

export const cidBytes = (cid: Cid): Bytes =>
  cid.version === 0 ? cid.multihash : join([1], toVarint(cid.codec), cid.multihash)

const MOST_LETTERS = 512

/** Decode a CID as text, in any multibase of FORMAT.md 7. */
export function parseCid(text: unknown): Cid {
  need(typeof text === 'string' && text.length <= MOST_LETTERS, 'format', 'not a CID')
  if (text.length === 46 && text.startsWith('Qm')) return cidFromBytes(fromNumber(text, BASE58))
  const prefix = text.slice(0, 1)
  const lower = prefix.toLowerCase()
  const isUpper = prefix !== lower && ['b', 'c', 'f', 'k', 't', 'v'].includes(lower)
  need(!isUpper || text === text.toUpperCase(), 'format', 'small and capital letters in one CID')
  const letter = isUpper ? lower : prefix
  const [base, group] = PADDED[letter] ?? [letter, 1]
  const whole = isUpper ? text.slice(1).toLowerCase() : text.slice(1)
  const digits = group > 1 ? whole.replace(/=+$/, '') : whole
  need(whole.length === Math.ceil(digits.length / group) * group, 'format', 'of another length than its padding says')
  const bits = BIT_BASES[base]
  const alphabet = NUMBER_BASES[base]
  need(bits !== undefined || alphabet !== undefined, 'format', 'of an unknown base')
  const cid = cidFromBytes(bits ? fromBits(digits, bits) : fromNumber(digits, alphabet as string))
  need(cid.version === 1, 'format', 'version 0 has no base')
  return cid
}

const LIBP2P_KEY = Uint8Array.of(1, 0x72, 0, 0x24, 8, 1, 0x12, 0x20)

/** The IPNS name of an Ed25519 key: base36 of an identity CID of codec libp2p-key. */
export const ipnsName = (publicKey: Bytes): string => `k${toNumber(join(LIBP2P_KEY, publicKey), BASE36)}`

/** The key of an IPNS name. */
export function keyOfName(name: string): Bytes {
  const data = cidBytes(parseCid(name))
  need(data.length === 40 && same(data.subarray(0, 8), LIBP2P_KEY), 'format', 'not an IPNS name')
  return data.slice(8)
}
