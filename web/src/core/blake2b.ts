/**
 * BLAKE2b (RFC 7693), keyed or not: it derives the nonce of every sealed object (FORMAT.md 3), and that of a sealed box.
 *
 * Unrolled, since a loop over an array of words takes two and a half times as long, and opening a vault of thousands depends on it. The
 * tests compare it with noble's.
 */

import type { Bytes } from './bytes.ts'

const BLOCK = 128
const TOP = 2 ** 32
const IV = Int32Array.of(0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a, 0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19)
/** The order of a block's words in each round, in two halves. */
const ORDER = Uint8Array.from('0123456789abcdefea489fd61c02b753b8c052fdae3671947931dcbe265a40f8905724afe1bc683d2c6a0b834d75fe19c51fed4a0763928bdb7ec13950f4862a6fe9b308c2d714a5a2847615fb9e3cd00123456789abcdefea489fd61c02b753', digit => 2 * Number.parseInt(digit, 16))
const IS_LITTLE = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1

/** Swap the bytes of words on big-endian machines. */
function turned<T extends Int32Array | Uint32Array>(words: T): T {
  if (IS_LITTLE) return words
  const view = new DataView(words.buffer)
  words.forEach((word, at) => view.setUint32(4 * at, word, true))
  return words
}

/** Return `size` bytes of the hash of the concatenated parts. `key`: at most 64 bytes, empty for none. */
export function blake2b(key: Bytes, size: number, ...parts: readonly Bytes[]): Bytes {
  let at = key.length > 0 ? BLOCK : 0
  const length = at + parts.reduce((sum, part) => sum + part.length, 0)
  const bytes = new Uint8Array(Math.max(1, Math.ceil(length / BLOCK)) * BLOCK)
  bytes.set(key)
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  const words = turned(new Uint32Array(bytes.buffer))
  const state = IV.slice()
  state[0]! ^= 0x01010000 ^ (key.length << 8) ^ size
  for (let end = BLOCK; end < length; end += BLOCK) mix(state, words, end - BLOCK, end, 0)
  mix(state, words, bytes.length - BLOCK, length, -1)
  return new Uint8Array(turned(state).buffer, 0, size)
}

/** Compress one block at `from`. `read`: bytes read including it; `last`: -1 for the last block, else 0. */
function mix(h: Int32Array, m: Uint32Array, from: number, read: number, last: number): void {
  const [s, o] = [ORDER, from / 4]
  let [t, w, x] = [0, 0, 0]
  let a0l = h[0]!, a0h = h[1]!, a1l = h[2]!, a1h = h[3]!, a2l = h[4]!, a2h = h[5]!, a3l = h[6]!, a3h = h[7]!
  let b0l = h[8]!, b0h = h[9]!, b1l = h[10]!, b1h = h[11]!, b2l = h[12]!, b2h = h[13]!, b3l = h[14]!, b3h = h[15]!
  let c0l = IV[0]!, c0h = IV[1]!, c1l = IV[2]!, c1h = IV[3]!, c2l = IV[4]!, c2h = IV[5]!, c3l = IV[6]!, c3h = IV[7]!
  let d0l = IV[8]!, d0h = IV[9]!, d1l = IV[10]!, d1h = IV[11]!, d2l = IV[12]!, d2h = IV[13]!, d3l = IV[14]!, d3h = IV[15]!
  d0l ^= read
  d2l ^= last
  d2h ^= last
  for (let j = 0; j < s.length; ) {
    x = o + s[j++]!; t = (a0l >>> 0) + (b0l >>> 0) + m[x]!; a0h = (a0h + b0h + m[x + 1]! + ((t / TOP) | 0)) | 0; a0l = t | 0; w = d0l ^ a0l; d0l = d0h ^ a0h; d0h = w
    t = (c0l >>> 0) + (d0l >>> 0); c0h = (c0h + d0h + ((t / TOP) | 0)) | 0; c0l = t | 0; w = b0l ^ c0l; t = b0h ^ c0h; b0l = (w >>> 24) | (t << 8); b0h = (t >>> 24) | (w << 8)
    x = o + s[j++]!; t = (a0l >>> 0) + (b0l >>> 0) + m[x]!; a0h = (a0h + b0h + m[x + 1]! + ((t / TOP) | 0)) | 0; a0l = t | 0; w = d0l ^ a0l; t = d0h ^ a0h; d0l = (w >>> 16) | (t << 16); d0h = (t >>> 16) | (w << 16)
    t = (c0l >>> 0) + (d0l >>> 0); c0h = (c0h + d0h + ((t / TOP) | 0)) | 0; c0l = t | 0; w = b0l ^ c0l; t = b0h ^ c0h; b0l = (w << 1) | (t >>> 31); b0h = (t << 1) | (w >>> 31)
    x = o + s[j++]!; t = (a1l >>> 0) + (b1l >>> 0) + m[x]!; a1h = (a1h + b1h + m[x + 1]! + ((t / TOP) | 0)) | 0; a1l = t | 0; w = d1l ^ a1l; d1l = d1h ^ a1h; d1h = w
    t = (c1l >>> 0) + (d1l >>> 0); c1h = (c1h + d1h + ((t / TOP) | 0)) | 0; c1l = t | 0; w = b1l ^ c1l; t = b1h ^ c1h; b1l = (w >>> 24) | (t << 8); b1h = (t >>> 24) | (w << 8)
    x = o + s[j++]!; t = (a1l >>> 0) + (b1l >>> 0) + m[x]!; a1h = (a1h + b1h + m[x + 1]! + ((t / TOP) | 0)) | 0; a1l = t | 0; w = d1l ^ a1l; t = d1h ^ a1h; d1l = (w >>> 16) | (t << 16); d1h = (t >>> 16) | (w << 16)
    t = (c1l >>> 0) + (d1l >>> 0); c1h = (c1h + d1h + ((t / TOP) | 0)) | 0; c1l = t | 0; w = b1l ^ c1l; t = b1h ^ c1h; b1l = (w << 1) | (t >>> 31); b1h = (t << 1) | (w >>> 31)
    x = o + s[j++]!; t = (a2l >>> 0) + (b2l >>> 0) + m[x]!; a2h = (a2h + b2h + m[x + 1]! + ((t / TOP) | 0)) | 0; a2l = t | 0; w = d2l ^ a2l; d2l = d2h ^ a2h; d2h = w
    t = (c2l >>> 0) + (d2l >>> 0); c2h = (c2h + d2h + ((t / TOP) | 0)) | 0; c2l = t | 0; w = b2l ^ c2l; t = b2h ^ c2h; b2l = (w >>> 24) | (t << 8); b2h = (t >>> 24) | (w << 8)
    x = o + s[j++]!; t = (a2l >>> 0) + (b2l >>> 0) + m[x]!; a2h = (a2h + b2h + m[x + 1]! + ((t / TOP) | 0)) | 0; a2l = t | 0; w = d2l ^ a2l; t = d2h ^ a2h; d2l = (w >>> 16) | (t << 16); d2h = (t >>> 16) | (w << 16)
    t = (c2l >>> 0) + (d2l >>> 0); c2h = (c2h + d2h + ((t / TOP) | 0)) | 0; c2l = t | 0; w = b2l ^ c2l; t = b2h ^ c2h; b2l = (w << 1) | (t >>> 31); b2h = (t << 1) | (w >>> 31)
    x = o + s[j++]!; t = (a3l >>> 0) + (b3l >>> 0) + m[x]!; a3h = (a3h + b3h + m[x + 1]! + ((t / TOP) | 0)) | 0; a3l = t | 0; w = d3l ^ a3l; d3l = d3h ^ a3h; d3h = w
    t = (c3l >>> 0) + (d3l >>> 0); c3h = (c3h + d3h + ((t / TOP) | 0)) | 0; c3l = t | 0; w = b3l ^ c3l; t = b3h ^ c3h; b3l = (w >>> 24) | (t << 8); b3h = (t >>> 24) | (w << 8)
    x = o + s[j++]!; t = (a3l >>> 0) + (b3l >>> 0) + m[x]!; a3h = (a3h + b3h + m[x + 1]! + ((t / TOP) | 0)) | 0; a3l = t | 0; w = d3l ^ a3l; t = d3h ^ a3h; d3l = (w >>> 16) | (t << 16); d3h = (t >>> 16) | (w << 16)
    t = (c3l >>> 0) + (d3l >>> 0); c3h = (c3h + d3h + ((t / TOP) | 0)) | 0; c3l = t | 0; w = b3l ^ c3l; t = b3h ^ c3h; b3l = (w << 1) | (t >>> 31); b3h = (t << 1) | (w >>> 31)
    x = o + s[j++]!; t = (a0l >>> 0) + (b1l >>> 0) + m[x]!; a0h = (a0h + b1h + m[x + 1]! + ((t / TOP) | 0)) | 0; a0l = t | 0; w = d3l ^ a0l; d3l = d3h ^ a0h; d3h = w
    t = (c2l >>> 0) + (d3l >>> 0); c2h = (c2h + d3h + ((t / TOP) | 0)) | 0; c2l = t | 0; w = b1l ^ c2l; t = b1h ^ c2h; b1l = (w >>> 24) | (t << 8); b1h = (t >>> 24) | (w << 8)
    x = o + s[j++]!; t = (a0l >>> 0) + (b1l >>> 0) + m[x]!; a0h = (a0h + b1h + m[x + 1]! + ((t / TOP) | 0)) | 0; a0l = t | 0; w = d3l ^ a0l; t = d3h ^ a0h; d3l = (w >>> 16) | (t << 16); d3h = (t >>> 16) | (w << 16)
    t = (c2l >>> 0) + (d3l >>> 0); c2h = (c2h + d3h + ((t / TOP) | 0)) | 0; c2l = t | 0; w = b1l ^ c2l; t = b1h ^ c2h; b1l = (w << 1) | (t >>> 31); b1h = (t << 1) | (w >>> 31)
    x = o + s[j++]!; t = (a1l >>> 0) + (b2l >>> 0) + m[x]!; a1h = (a1h + b2h + m[x + 1]! + ((t / TOP) | 0)) | 0; a1l = t | 0; w = d0l ^ a1l; d0l = d0h ^ a1h; d0h = w
    t = (c3l >>> 0) + (d0l >>> 0); c3h = (c3h + d0h + ((t / TOP) | 0)) | 0; c3l = t | 0; w = b2l ^ c3l; t = b2h ^ c3h; b2l = (w >>> 24) | (t << 8); b2h = (t >>> 24) | (w << 8)
    x = o + s[j++]!; t = (a1l >>> 0) + (b2l >>> 0) + m[x]!; a1h = (a1h + b2h + m[x + 1]! + ((t / TOP) | 0)) | 0; a1l = t | 0; w = d0l ^ a1l; t = d0h ^ a1h; d0l = (w >>> 16) | (t << 16); d0h = (t >>> 16) | (w << 16)
    t = (c3l >>> 0) + (d0l >>> 0); c3h = (c3h + d0h + ((t / TOP) | 0)) | 0; c3l = t | 0; w = b2l ^ c3l; t = b2h ^ c3h; b2l = (w << 1) | (t >>> 31); b2h = (t << 1) | (w >>> 31)
    x = o + s[j++]!; t = (a2l >>> 0) + (b3l >>> 0) + m[x]!; a2h = (a2h + b3h + m[x + 1]! + ((t / TOP) | 0)) | 0; a2l = t | 0; w = d1l ^ a2l; d1l = d1h ^ a2h; d1h = w
    t = (c0l >>> 0) + (d1l >>> 0); c0h = (c0h + d1h + ((t / TOP) | 0)) | 0; c0l = t | 0; w = b3l ^ c0l; t = b3h ^ c0h; b3l = (w >>> 24) | (t << 8); b3h = (t >>> 24) | (w << 8)
    x = o + s[j++]!; t = (a2l >>> 0) + (b3l >>> 0) + m[x]!; a2h = (a2h + b3h + m[x + 1]! + ((t / TOP) | 0)) | 0; a2l = t | 0; w = d1l ^ a2l; t = d1h ^ a2h; d1l = (w >>> 16) | (t << 16); d1h = (t >>> 16) | (w << 16)
    t = (c0l >>> 0) + (d1l >>> 0); c0h = (c0h + d1h + ((t / TOP) | 0)) | 0; c0l = t | 0; w = b3l ^ c0l; t = b3h ^ c0h; b3l = (w << 1) | (t >>> 31); b3h = (t << 1) | (w >>> 31)
    x = o + s[j++]!; t = (a3l >>> 0) + (b0l >>> 0) + m[x]!; a3h = (a3h + b0h + m[x + 1]! + ((t / TOP) | 0)) | 0; a3l = t | 0; w = d2l ^ a3l; d2l = d2h ^ a3h; d2h = w
    t = (c1l >>> 0) + (d2l >>> 0); c1h = (c1h + d2h + ((t / TOP) | 0)) | 0; c1l = t | 0; w = b0l ^ c1l; t = b0h ^ c1h; b0l = (w >>> 24) | (t << 8); b0h = (t >>> 24) | (w << 8)
    x = o + s[j++]!; t = (a3l >>> 0) + (b0l >>> 0) + m[x]!; a3h = (a3h + b0h + m[x + 1]! + ((t / TOP) | 0)) | 0; a3l = t | 0; w = d2l ^ a3l; t = d2h ^ a3h; d2l = (w >>> 16) | (t << 16); d2h = (t >>> 16) | (w << 16)
    t = (c1l >>> 0) + (d2l >>> 0); c1h = (c1h + d2h + ((t / TOP) | 0)) | 0; c1l = t | 0; w = b0l ^ c1l; t = b0h ^ c1h; b0l = (w << 1) | (t >>> 31); b0h = (t << 1) | (w >>> 31)
  }
  h[0]! ^= a0l ^ c0l; h[1]! ^= a0h ^ c0h; h[8]! ^= b0l ^ d0l; h[9]! ^= b0h ^ d0h
  h[2]! ^= a1l ^ c1l; h[3]! ^= a1h ^ c1h; h[10]! ^= b1l ^ d1l; h[11]! ^= b1h ^ d1h
  h[4]! ^= a2l ^ c2l; h[5]! ^= a2h ^ c2h; h[12]! ^= b2l ^ d2l; h[13]! ^= b2h ^ d2h
  h[6]! ^= a3l ^ c3l; h[7]! ^= a3h ^ c3h; h[14]! ^= b3l ^ d3l; h[15]! ^= b3h ^ d3h
}
