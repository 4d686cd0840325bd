/** CAR files of version 1 (FORMAT.md 6), read and written whole. */

import { type Bytes, join, need, Refused, utf8 } from './bytes.ts'
import { Link, parseCbor } from './cbor.ts'
import { cidBytes, isBlockOf, parseCid, readCid, size, toVarint } from './cid.ts'

const MOST_HEADER = 8192
const MOST_SECTION = (2 << 20) + 200

/** CIDs and bytes of the blocks, in order and each checked. The bytes are copies: a view would keep the whole file with each. */
export type Car = { readonly roots: readonly string[]; readonly blocks: readonly (readonly [cid: string, data: Bytes])[] }

/** `damaged`: gets the CIDs of blocks that are not what they say, and an empty text where the file breaks off; without it such a file is refused. */
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

/** A CAR of blocks in the order given. */
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
