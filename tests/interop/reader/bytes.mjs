// Bytes and text in their one form, canonical JSON, and the one kind of error that means "refused" (FORMAT.md, Notation and 6).
// Never reads a file and knows nothing of memories.

import { createHash } from 'node:crypto'

/** Something that the format refuses. `kind` is a word for the class of it, for comparing with the vectors. */
export class Refused extends Error {
  constructor(kind, message) {
    super(message ?? kind)
    this.kind = kind
  }
}

export const refuse = (kind, message) => {
  throw new Refused(kind, message)
}

export const need = (condition, kind, message) => condition || refuse(kind, message)

/** Of `read()` what it gives, or null where the format refuses it; other errors are faults of this program. */
export function unlessRefused(read) {
  try {
    return read()
  } catch (error) {
    if (error instanceof Refused) return null
    throw error
  }
}

export const sha256 = data => createHash('sha256').update(data).digest()
export const hex = data => Buffer.from(data).toString('hex')
export const utf8 = text => Buffer.from(text, 'utf8')
export const join = (...parts) => Buffer.concat(parts.map(part => (typeof part === 'string' ? utf8(part) : Buffer.from(part))))
export const same = (a, b) => Buffer.compare(a, b) === 0
export const isHex = (text, bytes) => typeof text === 'string' && text.length === 2 * bytes && /^[0-9a-f]*$/.test(text)

export function fromHex(text, bytes) {
  need(isHex(text, bytes), 'format', 'not hex of the right length')
  return Buffer.from(text, 'hex')
}

/** base64url without padding; another spelling of the same bytes is refused. */
export function fromB64(text, bytes) {
  need(typeof text === 'string', 'format', 'not text')
  const data = Buffer.from(text, 'base64url')
  need(data.toString('base64url') === text, 'format', 'not base64url in its one form')
  need(bytes === undefined || data.length === bytes, 'format', 'another length')
  return data
}

export function fromUtf8(data) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data)
  } catch {
    return refuse('format', 'not UTF-8')
  }
}

/** Big-endian integer of `bytes` bytes. */
export function number(value, bytes) {
  const out = Buffer.alloc(bytes)
  let rest = BigInt(value)
  for (let i = bytes - 1; i >= 0; i--, rest >>= 8n) out[i] = Number(rest & 255n)
  return out
}

/** The length of x as an integer of `bits` bits, followed by x. */
export const len = (bits, x) => join(number(Buffer.byteLength(x), bits / 8), x)

/** By Unicode code points, as the format sorts text; JavaScript's own order is by UTF-16 units. */
export function byCodePoints(a, b) {
  const left = [...a]
  const right = [...b]
  for (let i = 0; i < left.length && i < right.length; i++) {
    if (left[i] !== right[i]) return left[i].codePointAt(0) - right[i].codePointAt(0)
  }
  return left.length - right.length
}

/** Greater, less or the same, part by part: numbers, big integers or text. */
export function compare(a, b) {
  for (let i = 0; i < a.length; i++) {
    if (a[i] === b[i]) continue
    if (typeof a[i] === 'string') return byCodePoints(a[i], b[i])
    return a[i] < b[i] ? -1 : 1
  }
  return 0
}

export const greatest = (items, by) => items.reduce((best, one) => (compare(by(one), by(best)) > 0 ? one : best))

/** Text lists that must be sorted and without repeats. */
export function sortedTexts(list, most = Infinity) {
  need(Array.isArray(list) && list.length <= most, 'format', 'not a list, or too long')
  list.forEach((one, i) => {
    need(typeof one === 'string', 'format', 'not text')
    need(i === 0 || byCodePoints(list[i - 1], one) < 0, 'format', 'not sorted, or a repeat')
  })
  return list
}

/** RFC 8785: names by UTF-16 units, numbers and text as JSON.stringify writes them. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value !== null && typeof value === 'object') {
    const names = Object.keys(value).sort()
    return `{${names.map(name => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`
  }
  return JSON.stringify(value)
}

/** Canonical JSON of our own structures, decoded; doubled names and any other spelling differ after re-encoding. */
export function parseCanonical(data) {
  const text = typeof data === 'string' ? data : fromUtf8(data)
  let value
  try {
    value = JSON.parse(text)
  } catch {
    refuse('format', 'not JSON')
  }
  check(value, 0)
  need(text.isWellFormed() && canonical(value) === text, 'format', 'not canonical JSON')
  return value
}

function check(value, depth) {
  need(depth < 64, 'format', 'nested too deep')
  if (typeof value === 'number') need(Number.isSafeInteger(value), 'format', 'not a whole number within 2^53-1')
  if (value === null || typeof value !== 'object') return
  for (const [name, inner] of Object.entries(value)) {
    need(Array.isArray(value) || /^[\x00-\x7f]*$/.test(name), 'format', 'a name that is not ASCII')
    check(inner, depth + 1)
  }
}

/** An object with exactly these names, and perhaps some of `optional`. */
export function fields(value, names, optional = []) {
  need(value !== null && typeof value === 'object' && !Array.isArray(value), 'format', 'not an object')
  for (const name of names) need(Object.hasOwn(value, name), 'format', `no field ${name}`)
  for (const name of Object.keys(value)) need(names.includes(name) || optional.includes(name), 'format', `unknown field ${name}`)
  return value
}
