/**
 * Bytes and text in canonical form, canonical JSON, and the one error for refusals (FORMAT.md, Notation and 6).
 *
 * Independent of memories and platforms: uses only what browsers, workers and Node share.
 */

import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js'

export type Bytes = Uint8Array
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** Kinds of refusals, for error texts and for the vectors. */
export type RefusalKind =
  | 'format'
  | 'limit'
  | 'signature'
  | 'member'
  | 'open'
  | 'missing'
  | 'damaged'
  | 'held'
  | 'vault'
  | 'passphrase'
  | 'words'
  | 'none'
  | 'other kind'

/** Refused by the format: nothing of the input is used. */
export class Refused extends Error {
  constructor(
    readonly kind: RefusalKind,
    message: string = kind
  ) {
    super(message)
    this.name = 'Refused'
  }
}

export function refuse(kind: RefusalKind, message?: string): never {
  throw new Refused(kind, message)
}

export function need(condition: boolean, kind: RefusalKind, message?: string): asserts condition {
  if (!condition) refuse(kind, message)
}

/** Return the result of `read()`, or null if it is refused; other errors are bugs and pass through. */
export function unlessRefused<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof Refused) return null
    throw error
  }
}

// --- bytes ---

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Characters up to which a loop is faster than the platform's encoder. */
const SHORT = 64

/** UTF-8 of well-formed text. */
export function utf8(text: string): Bytes {
  if (text.length > SHORT) return encoder.encode(text)
  const out = new Uint8Array(text.length)
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit > 127) return encoder.encode(text)
    out[i] = unit
  }
  return out
}

export function fromUtf8(data: Bytes): string {
  try {
    return decoder.decode(data)
  } catch {
    return refuse('format', 'not UTF-8')
  }
}

/** Length of a text in UTF-8 bytes. */
export const byteLength = (text: string): number => (/^[\x00-\x7f]*$/.test(text) ? text.length : encoder.encode(text).length)

export const asBytes = (part: string | Bytes | readonly number[]): Bytes =>
  typeof part === 'string' ? utf8(part) : part instanceof Uint8Array ? part : Uint8Array.from(part)

/** Concatenate the parts; text as UTF-8. */
export function join(...parts: (string | Bytes | readonly number[])[]): Bytes {
  const all = parts.map(asBytes)
  const out = new Uint8Array(all.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of all) {
    out.set(part, at)
    at += part.length
  }
  return out
}

/** Compare bytes: less than 0, 0, or greater. */
export function compareBytes(a: Bytes, b: Bytes): number {
  const size = Math.min(a.length, b.length)
  for (let i = 0; i < size; i++) if (a[i] !== b[i]) return (a[i] as number) - (b[i] as number)
  return a.length - b.length
}

/** Tell whether two byte strings are equal. Not for secrets: see `sameSecret`. */
export const same = (a: Bytes, b: Bytes): boolean => a.length === b.length && compareBytes(a, b) === 0

/** Tell whether two byte strings are equal, in a time that depends only on their length. */
export function sameSecret(a: Bytes, b: Bytes): boolean {
  let different = a.length ^ b.length
  for (let i = 0; i < a.length; i++) different |= (a[i] as number) ^ (b[i] ?? 0)
  return different === 0
}

export const sha256 = (data: Bytes | string): Bytes => nobleSha256(asBytes(data))

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Lower-case hex. */
export function hex(data: Bytes): string {
  let out = ''
  for (const byte of data) out += HEX[byte]
  return out
}

/** Tell whether this is the hex of `bytes` bytes. */
export const isHex = (text: unknown, bytes: number): text is string =>
  typeof text === 'string' && text.length === 2 * bytes && /^[0-9a-f]*$/.test(text)

/** Decode hex, of exactly `bytes` bytes if given. */
export function fromHex(text: unknown, bytes?: number): Bytes {
  const size = bytes ?? (typeof text === 'string' ? text.length / 2 : -1)
  need(isHex(text, size), 'format', 'not hex of the right length')
  const out = new Uint8Array(size)
  const digit = (at: number): number => text.charCodeAt(at) - (text.charCodeAt(at) < 58 ? 48 : 87)
  for (let i = 0; i < size; i++) out[i] = (digit(2 * i) << 4) | digit(2 * i + 1)
  return out
}

const DIGITS64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** The value of each character below 128; 64 for others than digits. */
const VALUES64 = Uint8Array.from({ length: 128 }, (_, code) => (DIGITS64.indexOf(String.fromCharCode(code)) + 65) % 65)

/** base64url without padding. */
export function base64url(data: Bytes): string {
  let out = ''
  for (let i = 0; i < data.length; i += 3) {
    const [a, b, c] = [data[i] as number, data[i + 1] ?? 0, data[i + 2] ?? 0]
    const digits = [a >> 2, ((a & 3) << 4) | (b >> 4), ((b & 15) << 2) | (c >> 6), c & 63]
    out += digits.slice(0, Math.min(4, data.length - i + 1)).map(digit => DIGITS64[digit]).join('')
  }
  return out
}

/** Decode base64url without padding; non-canonical spellings are refused. */
export function fromBase64url(text: unknown, bytes?: number): Bytes {
  need(typeof text === 'string' && text.length % 4 !== 1, 'format', 'not base64url')
  const size = Math.floor((text.length * 3) / 4)
  need(bytes === undefined || size === bytes, 'format', 'another length')
  const out = new Uint8Array(size)
  let value = 0
  let bits = 0
  let at = 0
  for (let i = 0; i < text.length; i++) {
    const digit = VALUES64[text.charCodeAt(i)] ?? 64
    need(digit < 64, 'format', 'not base64url')
    value = ((value << 6) | digit) & 0xffff
    bits += 6
    if (bits >= 8) out[at++] = (value >> (bits -= 8)) & 255
  }
  need((value & ((1 << bits) - 1)) === 0, 'format', 'not base64url in its one form')
  return out
}

/** Encode an integer big-endian in `bytes` bytes. */
export function number(value: number | bigint, bytes: number): Bytes {
  const out = new Uint8Array(bytes)
  let rest = BigInt(value)
  for (let i = bytes - 1; i >= 0; i--, rest >>= 8n) out[i] = Number(rest & 255n)
  return out
}

/** The four bytes at `at` as an integer. */
export const uint32 = (data: Bytes, at = 0): number =>
  new DataView(data.buffer, data.byteOffset, data.byteLength).getUint32(at)

/** The length of x as an integer of `bits` bits, followed by x. */
export function len(bits: 16 | 32, x: string | Bytes): Bytes {
  const data = asBytes(x)
  return join(number(data.length, bits / 8), data)
}

// --- order ---

const isHalf = (unit: number): boolean => unit >= 0xd800 && unit < 0xe000

/** Compare by Unicode code points, the order of the format; JavaScript compares UTF-16 units. */
export function byCodePoints(a: string, b: string): number {
  const size = Math.min(a.length, b.length)
  for (let i = 0; i < size; i++) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (left === right) continue
    if (!isHalf(left) && !isHalf(right)) return left - right
    // Of two pairs with equal first halves the second halves differ.
    const at = i > 0 && isHalf(a.charCodeAt(i - 1)) && a.codePointAt(i - 1) !== b.codePointAt(i - 1) ? i - 1 : i
    return (a.codePointAt(at) as number) - (b.codePointAt(at) as number)
  }
  return a.length - b.length
}

export type Part = number | bigint | string

/** Compare part by part. */
export function compare(a: readonly Part[], b: readonly Part[]): number {
  for (let i = 0; i < a.length; i++) {
    const [left, right] = [a[i] as Part, b[i] as Part]
    if (left === right) continue
    if (typeof left === 'string') return byCodePoints(left, right as string)
    return left < (right as number | bigint) ? -1 : 1
  }
  return 0
}

/** The greatest of one item or more. */
export const greatest = <T>(items: readonly T[], by: (item: T) => readonly Part[]): T =>
  items.reduce((best, one) => (compare(by(one), by(best)) > 0 ? one : best))

/** Require a list of texts, sorted and without repeats. */
export function sortedTexts(list: unknown, most = Infinity): string[] {
  need(Array.isArray(list) && list.length <= most, 'format', 'not a list, or too long')
  list.forEach((one: unknown, i) => {
    need(typeof one === 'string', 'format', 'not text')
    need(i === 0 || byCodePoints(list[i - 1] as string, one) < 0, 'format', 'not sorted, or a repeat')
  })
  return list as string[]
}

// --- JSON ---

/** The longest prefix of a text in whole characters with at most `bytes` bytes. */
export function beginning(text: string, bytes: number): string {
  const data = utf8(text)
  if (data.length <= bytes) return text
  let end = Math.max(0, bytes)
  while (end > 0 && ((data[end] as number) & 0xc0) === 0x80) end--
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(data.subarray(0, end))
}

/** RFC 8785: names by UTF-16 units, numbers and text as JavaScript writes them. */
export function canonical(value: unknown): string {
  return isSorted(value) ? JSON.stringify(value) : sortedJson(value)
}

/** Tell whether JavaScript writes a value canonically: the names of each object in it are sorted. */
function isSorted(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return value !== undefined
  if (Array.isArray(value)) return value.every(isSorted)
  let last = ''
  for (const name of Object.keys(value)) {
    if (name < last || !isSorted((value as Record<string, unknown>)[name])) return false
    last = name
  }
  return true
}

function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value !== null && typeof value === 'object') {
    const object = value as Record<string, unknown>
    const names = Object.keys(object).sort()
    return `{${names.map(name => `${JSON.stringify(name)}:${canonical(object[name])}`).join(',')}}`
  }
  return JSON.stringify(value)
}

/** Decode any JSON. */
export function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return refuse('format', 'not JSON')
  }
}

/**
 * Decode canonical JSON of the format's structures; repeated names and other spellings are refused, since they differ when encoded again.
 * `write`: an equivalent encoder, which may cache parts.
 */
export function parseCanonical(data: Bytes | string, write: (value: Json) => string = canonical): Json {
  const text = typeof data === 'string' ? data : fromUtf8(data)
  const value = parseJson(text)
  check(value, 0)
  need(text.isWellFormed() && write(value) === text, 'format', 'not canonical JSON')
  need(!text.includes('\\ud') || isWellFormed(value), 'format', 'text that is not Unicode')
  return value
}

/** Tell whether no text in a value has a lone surrogate. */
function isWellFormed(value: Json): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  return value === null || typeof value !== 'object' || Object.values(value).every(isWellFormed)
}

function check(value: Json, depth: number): void {
  need(depth < 64, 'format', 'nested too deep')
  if (typeof value === 'number') need(Number.isSafeInteger(value), 'format', 'not a whole number within 2^53-1')
  if (value === null || typeof value !== 'object') return
  for (const [name, inner] of Object.entries(value)) {
    need(Array.isArray(value) || /^[\x00-\x7f]*$/.test(name), 'format', 'a name that is not ASCII')
    check(inner, depth + 1)
  }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** Require an object with exactly these names, and optionally some of `optional`. */
export function fields(value: unknown, names: readonly string[], optional: readonly string[] = []): Record<string, Json> {
  need(isObject(value), 'format', 'not an object')
  for (const name of names) need(Object.hasOwn(value, name), 'format', `no field ${name}`)
  for (const name of Object.keys(value)) {
    need(names.includes(name) || optional.includes(name), 'format', `unknown field ${name}`)
  }
  return value as Record<string, Json>
}

/** Require an object with any names. */
export const anyFields = (value: unknown): Record<string, Json> => {
  need(isObject(value), 'format', 'not an object')
  return value as Record<string, Json>
}

export const isWhole = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
