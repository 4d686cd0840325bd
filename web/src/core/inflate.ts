/**
 * One raw deflate stream (RFC 1951), complete and without trailing bytes, with the verdict that FORMAT.md 3 requires of every reader.
 *
 * Own code, because browsers differ in accepting bytes after a stream, and fast libraries accept invalid streams. zlib's verdict is the
 * reference.
 */

import { type Bytes, need, refuse } from './bytes.ts'

const MOST_BITS = 15
const LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258]
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0]
const DISTANCES = [
  1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289,
  16385, 24577
]
const DISTANCE_BITS = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13]
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

/** Bits of a table lookup. */
const FAST_BITS = 9

/** A Huffman code: number of codes of each length, their symbols in order, and a table of short codes. */
type Code = {
  readonly counts: Uint16Array
  readonly symbols: Uint16Array
  /** Sixteen times the symbol, plus the length of its code; 0 if the next bits begin a longer code, or none. */
  readonly fast: Uint16Array
}

/**
 * Make a code from the lengths of its symbols; 0 is none. Refused if over-subscribed, or incomplete except as `allow` permits: one code of
 * one bit, or none at all.
 */
function codeOf(lengths: ArrayLike<number>, allow: 'complete' | 'one' | 'one or none'): Code {
  const counts = new Uint16Array(MOST_BITS + 1)
  for (let i = 0; i < lengths.length; i++) counts[lengths[i] as number] = (counts[lengths[i] as number] as number) + 1
  counts[0] = 0
  let left = 1
  let used = 0
  for (let bits = 1; bits <= MOST_BITS; bits++) {
    left = left * 2 - (counts[bits] as number)
    used += counts[bits] as number
    need(left >= 0, 'open')
  }
  if (left > 0) need((used === 1 && counts[1] === 1 && allow !== 'complete') || (used === 0 && allow === 'one or none'), 'open')
  const starts = new Uint16Array(MOST_BITS + 2)
  for (let bits = 1; bits <= MOST_BITS; bits++) starts[bits + 1] = (starts[bits] as number) + (counts[bits] as number)
  const symbols = new Uint16Array(lengths.length)
  for (let i = 0; i < lengths.length; i++) {
    const bits = lengths[i] as number
    if (bits !== 0) symbols[(starts[bits] = (starts[bits] as number) + 1) - 1] = i
  }
  return { counts, symbols, fast: shortCodes(counts, symbols) }
}

function shortCodes(counts: Uint16Array, symbols: Uint16Array): Uint16Array {
  const fast = new Uint16Array(1 << FAST_BITS)
  let code = 0
  let index = 0
  for (let length = 1; length <= FAST_BITS; length++, code <<= 1) {
    for (let n = 0; n < (counts[length] as number); n++, code++, index++) {
      // Codes arrive most significant bit first, and so are reversed in the table.
      let reversed = 0
      for (let bit = 0; bit < length; bit++) reversed |= ((code >> bit) & 1) << (length - 1 - bit)
      for (let at = reversed; at < fast.length; at += 1 << length) fast[at] = ((symbols[index] as number) << 4) | length
    }
  }
  return fast
}

const FIXED_LITERALS = codeOf(
  Uint8Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8)),
  'complete'
)
const FIXED_DISTANCES = codeOf(new Uint8Array(32).fill(5), 'complete')

/** Inflate a stream of at most `most` bytes; otherwise refused (`open`). */
export function inflate(stream: Bytes, most: number): Bytes {
  let at = 0
  let held = 0
  let heldBits = 0
  let out = new Uint8Array(Math.min(most, Math.max(1024, stream.length * 4)))
  let size = 0

  function bits(count: number): number {
    while (heldBits < count) {
      need(at < stream.length, 'open')
      held |= (stream[at++] as number) << heldBits
      heldBits += 8
    }
    const value = held & ((1 << count) - 1)
    held >>>= count
    heldBits -= count
    return value
  }

  function symbol({ counts, symbols, fast }: Code): number {
    while (heldBits < FAST_BITS && at < stream.length) {
      held |= (stream[at++] as number) << heldBits
      heldBits += 8
    }
    const found = fast[held & (fast.length - 1)] as number
    const length = found & 15
    if (length > 0 && length <= heldBits) {
      held >>>= length
      heldBits -= length
      return found >> 4
    }
    let code = 0
    let first = 0
    let index = 0
    for (let length = 1; length <= MOST_BITS; length++) {
      code |= bits(1)
      const count = counts[length] as number
      if (code - count < first) return symbols[index + code - first] as number
      index += count
      first = (first + count) << 1
      code <<= 1
    }
    return refuse('open')
  }

  /** Discard the remaining bits of a byte, and return whole bytes that were read ahead. */
  function giveBack(): void {
    at -= heldBits >> 3
    held = 0
    heldBits = 0
  }

  function room(more: number): void {
    need(size + more <= most, 'open')
    if (size + more <= out.length) return
    const longer = new Uint8Array(Math.min(most, Math.max(out.length * 2, size + more)))
    longer.set(out.subarray(0, size))
    out = longer
  }

  function stored(): void {
    giveBack()
    need(at + 4 <= stream.length, 'open')
    const length = (stream[at] as number) | ((stream[at + 1] as number) << 8)
    const complement = (stream[at + 2] as number) | ((stream[at + 3] as number) << 8)
    at += 4
    need((length ^ 0xffff) === complement && at + length <= stream.length, 'open')
    room(length)
    out.set(stream.subarray(at, at + length), size)
    at += length
    size += length
  }

  function codes(): [literals: Code, distances: Code] {
    const literals = bits(5) + 257
    const distances = bits(5) + 1
    const codeLengths = bits(4) + 4
    need(literals <= 286 && distances <= 30, 'open')
    const ofLengths = new Uint8Array(19)
    for (let i = 0; i < codeLengths; i++) ofLengths[ORDER[i] as number] = bits(3)
    const code = codeOf(ofLengths, 'complete')
    const lengths = new Uint8Array(literals + distances)
    for (let i = 0; i < lengths.length; ) {
      const said = symbol(code)
      if (said < 16) {
        lengths[i++] = said
        continue
      }
      need(said !== 16 || i > 0, 'open')
      const value = said === 16 ? (lengths[i - 1] as number) : 0
      const times = said === 16 ? 3 + bits(2) : said === 17 ? 3 + bits(3) : 11 + bits(7)
      need(i + times <= lengths.length, 'open')
      lengths.fill(value, i, i + times)
      i += times
    }
    need(lengths[256] !== 0, 'open')
    return [codeOf(lengths.subarray(0, literals), 'one'), codeOf(lengths.subarray(literals), 'one or none')]
  }

  function compressed(literals: Code, distances: Code): void {
    for (;;) {
      const said = symbol(literals)
      if (said === 256) return
      if (said < 256) {
        room(1)
        out[size++] = said
        continue
      }
      need(said < 286, 'open')
      const length = (LENGTHS[said - 257] as number) + bits(LENGTH_BITS[said - 257] as number)
      const far = symbol(distances)
      need(far < 30, 'open')
      const distance = (DISTANCES[far] as number) + bits(DISTANCE_BITS[far] as number)
      need(distance <= size, 'open')
      room(length)
      for (let i = 0; i < length; i++, size++) out[size] = out[size - distance] as number
    }
  }

  for (let last = 0; last === 0; ) {
    last = bits(1)
    const kind = bits(2)
    if (kind === 0) stored()
    else if (kind === 1) compressed(FIXED_LITERALS, FIXED_DISTANCES)
    else if (kind === 2) compressed(...codes())
    else refuse('open')
  }
  giveBack()
  need(at === stream.length, 'open')
  return out.slice(0, size)
}
