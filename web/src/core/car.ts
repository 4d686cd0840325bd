/** CAR files of version 1 (FORMAT.md 6), read and written whole. */

import { type Bytes, join, need, Refused, unlessRefused, utf8 } from './bytes.ts'
import { Link, parseCbor } from './cbor.ts'
import { cidBytes, isBlockOf, parseCid, readCid, size, toVarint } from './cid.ts'

const MOST_HEADER = 8192
const MOST_SECTION = (2 << 20) + 200

/** CIDs and bytes of the blocks, in order, each checked. The bytes are copies: a view would keep the whole file in memory. */
export type Car = { readonly roots: readonly string[]; readonly blocks: readonly (readonly [cid: string, data: Bytes])[] }

/** `damaged`: receives the CIDs of blocks that do not match, and an empty text for a truncated file; without it such a file is refused. */
export function readCar(data: Bytes, damaged: string[] | null = null): Car {
  const [length, start] = size(data, 0)
  need(length > 0 && length <= MOST_HEADER, 'format', 'not a CAR')
  const header = parseCbor(data.subarray(start, start + length))
  need(header instanceof Map && header.size === 2 && header.get('version') === 1n, 'format', 'not a CAR of version 1')
  const roots = header.get('roots')
  need(Array.isArray(roots) && roots.every(one => one instanceof Link), 'format', 'not a list of roots')
  const blocks: [string, Bytes][] = []
  for (let at = start + length; at < data.length; ) {
    try {
      const [bytes, from] = size(data, at)
      need(bytes > 0 && bytes <= MOST_SECTION && (damaged === null || from + bytes <= data.length), 'format', 'an empty or too large section')
      const section = data.subarray(from, from + bytes)
      at = from + bytes
      const [cid, end] = readCid(section)
      const block = section.slice(end)
      const isSound = block.length <= 2 << 20 && isBlockOf(cid, block)
      need(isSound || damaged !== null, 'format', 'a block that is not what its CID says')
      if (isSound) blocks.push([cid.text, block])
      else damaged?.push(cid.text)
    } catch (error) {
      if (damaged === null || !(error instanceof Refused)) throw error
      damaged.push('')
      break
    }
  }
  return { roots: (roots as Link[]).map(one => one.cid.text), blocks }
}

/**
 * Tell whether a section may begin with a CID of a known hash: appended bytes may be anything, and an exception costs more than this check.
 */
function beginsCid(section: Bytes): boolean {
  if (section[0] === 0x12) return section[1] === 0x20 && section.length >= 34
  let at = 1
  const next = (): number => {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = section[at++] ?? 255
      value += (byte & 127) * 2 ** shift
      if (byte < 128) return value
    }
    return -1
  }
  const [codec, hash, length] = [next(), next(), next()]
  return section[0] === 1 && codec >= 0 && (hash === 0x12 || hash === 0) && length >= 0 && at + length <= section.length
}

/** Return the block in a section of a CAR, as a view; null if it does not match its CID. */
export function soundBlock(section: Bytes): Bytes | null {
  if (section.length > MOST_SECTION || !beginsCid(section)) return null
  const read = unlessRefused(() => readCid(section))
  if (read === null) return null
  const block = section.subarray(read[1])
  return block.length <= 2 << 20 && isBlockOf(read[0], block) ? block : null
}

/** Write a CAR of blocks in the given order. */
export function writeCar({ roots, blocks }: Car): Bytes {
  const links = roots.map(root => {
    const bytes = join([0], cidBytes(parseCid(root)))
    return join([0xd8, 42, 0x58, bytes.length], bytes)
  })
  need(roots.length < 24, 'limit', 'too many roots')
  const header = join([0xa2, 0x65], utf8('roots'), [0x80 | roots.length], ...links, [0x67], utf8('version'), [1])
  const section = (bytes: Bytes): Bytes => join(toVarint(bytes.length), bytes)
  return join(section(header), ...blocks.map(([cid, data]) => section(join(cidBytes(parseCid(cid)), data))))
}
