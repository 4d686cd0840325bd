/** Folders too large for one block: the UnixFS HAMT with murmur3 (FORMAT.md 6). Made whole; and the position of a name. */

import { type Bytes, need, number, utf8 } from './bytes.ts'
import { type PbLink, type Put, putNode, type Target, UnixFSType, writeUnixFS } from './dagpb.ts'

const FANOUT = 256
/** The multihash code of murmur3-x64-64. */
export const MURMUR3 = 0x22n
const MASK = (1n << 64n) - 1n
const [C1, C2] = [0x87c37b91114253d5n, 0x4cf5ad432745937fn]

const rotated = (value: bigint, by: bigint): bigint => ((value << by) | (value >> (64n - by))) & MASK
const mixed = (start: bigint): bigint => {
  let value = start
  value = ((value ^ (value >> 33n)) * 0xff51afd7ed558ccdn) & MASK
  value = ((value ^ (value >> 33n)) * 0xc4ceb9fe1a85ec53n) & MASK
  return value ^ (value >> 33n)
}

function littleEndian(data: Bytes): bigint {
  let value = 0n
  for (let i = data.length - 1; i >= 0; i--) value = (value << 8n) | BigInt(data[i] as number)
  return value
}

/** The first 64 bits of murmur3 x64 128 with seed 0. */
export function murmur3(data: Bytes): bigint {
  let [h1, h2] = [0n, 0n]
  const first = (k: bigint): bigint => (rotated((k * C1) & MASK, 31n) * C2) & MASK
  const second = (k: bigint): bigint => (rotated((k * C2) & MASK, 33n) * C1) & MASK
  const whole = data.length & ~15
  for (let at = 0; at < whole; at += 16) {
    h1 ^= first(littleEndian(data.subarray(at, at + 8)))
    h1 = ((rotated(h1, 27n) + h2) * 5n + 0x52dce729n) & MASK
    h2 ^= second(littleEndian(data.subarray(at + 8, at + 16)))
    h2 = ((rotated(h2, 31n) + h1) * 5n + 0x38495ab5n) & MASK
  }
  const tail = data.subarray(whole)
  if (tail.length > 8) h2 ^= second(littleEndian(tail.subarray(8)))
  if (tail.length > 0) h1 ^= first(littleEndian(tail.subarray(0, 8)))
  h1 ^= BigInt(data.length)
  h2 ^= BigInt(data.length)
  h1 = (h1 + h2) & MASK
  h2 = (h2 + h1) & MASK
  ;[h1, h2] = [mixed(h1), mixed(h2)]
  return (h1 + h2) & MASK
}

/** The hash that positions a name: eight bytes, one slot per level. */
const placeOf = (name: string): Bytes => number(murmur3(utf8(name)), 8)

/** Make a sharded folder of these links. Refused if two names share all 64 bits. */
export function shardedFolder(links: readonly PbLink[], put: Put): Target {
  type Placed = { readonly place: Bytes; readonly link: PbLink }
  const shard = (all: readonly Placed[], level: number): Target => {
    need(level < 8, 'format', 'two names share all bits of their hash')
    const slots = new Map<number, Placed[]>()
    for (const one of all) {
      const slot = one.place[level] as number
      const some = slots.get(slot)
      if (some === undefined) slots.set(slot, [one])
      else some.push(one)
    }
    const bits = [...slots.keys()].reduce((sum, slot) => sum | (1n << BigInt(slot)), 0n)
    const below = [...slots].map(([slot, some]): PbLink => {
      const label = slot.toString(16).toUpperCase().padStart(2, '0')
      const [only] = some
      if (some.length === 1 && only !== undefined) return { ...only.link, name: label + only.link.name }
      return { name: label, ...shard(some, level + 1) }
    })
    const data = number(bits, Math.ceil(bits.toString(2).length / 8))
    return putNode(below, writeUnixFS({ type: UnixFSType.shard, data, hashType: MURMUR3, fanout: BigInt(FANOUT) }), put)
  }
  return shard(links.map(link => ({ place: placeOf(link.name), link })), 0)
}
