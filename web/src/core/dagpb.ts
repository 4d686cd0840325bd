/** Protobuf, dag-pb nodes and UnixFS messages, read and written (FORMAT.md 6). */

import { type Bytes, compareBytes, fromUtf8, join, need, utf8 } from './bytes.ts'
import { type Cid, cidBytes, cidFromBytes, cidOf, DAG_PB, size, toVarint, varint } from './cid.ts'

type Field = readonly [number: number, wire: number, value: bigint | Bytes]

/** The fields of a message in order: wire type 0 as bigints, type 2 as bytes. */
export function protobuf(data: Bytes): Field[] {
  const out: Field[] = []
  for (let at = 0; at < data.length; ) {
    const [key, afterKey] = varint(data, at)
    const [number, wire] = [Number(key >> 3n), Number(key & 7n)]
    if (wire === 0) {
      const [value, end] = varint(data, afterKey)
      out.push([number, wire, value])
      at = end
    } else {
      need(wire === 2, 'format', 'an unknown wire type')
      const [length, start] = size(data, afterKey)
      out.push([number, wire, data.slice(start, start + length)])
      at = start + length
    }
  }
  return out
}

const field = (number: number, value: Bytes): Bytes => join([number * 8 + 2], toVarint(value.length), value)
const numeric = (number: number, value: number | bigint): Bytes => join([number * 8], toVarint(value))

export type PbLink = { readonly name: string; readonly size: bigint; readonly cid: Cid }
export type PbNode = { readonly links: readonly PbLink[]; readonly data: Bytes | null }

/** Decode a dag-pb node. A repeated, misplaced or unknown field is refused; links may be in any order. */
export function readNode(block: Bytes): PbNode {
  const links: PbLink[] = []
  let data: Bytes | null = null
  const all = protobuf(block)
  for (const [at, [number, wire, value]] of all.entries()) {
    need(wire === 2 && (number === 1 || number === 2), 'format', 'an unknown field')
    if (number === 1) {
      need(data === null && (at === 0 || at === all.length - 1), 'format', 'data twice, or between links')
      data = value as Bytes
    } else {
      links.push(readLink(value as Bytes))
    }
  }
  return { links, data }
}

function readLink(raw: Bytes): PbLink {
  const found = new Map<number, bigint | Bytes>()
  let last = 0
  for (const [number, wire, value] of protobuf(raw)) {
    need(number > last && number <= 3 && wire === (number === 3 ? 0 : 2), 'format', 'an unknown field, or a field out of order')
    last = number
    found.set(number, value)
  }
  need(found.has(1), 'format', 'a link without a CID')
  return {
    name: fromUtf8((found.get(2) as Bytes | undefined) ?? new Uint8Array()),
    size: (found.get(3) as bigint | undefined) ?? 0n,
    cid: cidFromBytes(found.get(1) as Bytes)
  }
}

/** Encode a node: links first, by their names as bytes. */
export function writeNode(node: PbNode): Bytes {
  const links = node.links
    .map(link => ({ link, name: utf8(link.name) }))
    .sort((a, b) => compareBytes(a.name, b.name))
    .map(({ link, name }) => field(2, join(field(1, cidBytes(link.cid)), field(2, name), numeric(3, link.size))))
  return join(...links, node.data === null ? [] : field(1, node.data))
}

export const UnixFSType = { raw: 0, folder: 1, file: 2, metadata: 3, symlink: 4, shard: 5 } as const

export type UnixFS = {
  readonly type: number
  readonly data: Bytes | null
  readonly filesize: bigint | null
  readonly blocksizes: readonly bigint[]
  readonly hashType: bigint | null
  readonly fanout: bigint | null
}

const EMPTY: UnixFS = { type: 0, data: null, filesize: null, blocksizes: [], hashType: null, fanout: null }

/** Decode a UnixFS message: the type of a dag-pb node. Mode and time are ignored. */
export function readUnixFS(message: Bytes): UnixFS {
  const found = new Map<number, bigint | Bytes>()
  const blocksizes: bigint[] = []
  for (const [number, wire, value] of protobuf(message)) {
    if (number === 4 && wire === 2) {
      blocksizes.push(...packed(value as Bytes))
      continue
    }
    const isBytes = number === 2 || number === 8
    need(number >= 1 && number <= 8 && wire === (isBytes ? 2 : 0), 'format', 'an unknown field')
    if (number === 4) blocksizes.push(value as bigint)
    else {
      need(!found.has(number), 'format', 'a field twice')
      found.set(number, value)
    }
  }
  const type = found.get(1) as bigint | undefined
  need(type !== undefined && type <= 5n, 'format', 'of an unknown type')
  return {
    type: Number(type),
    data: (found.get(2) as Bytes | undefined) ?? null,
    filesize: (found.get(3) as bigint | undefined) ?? null,
    blocksizes,
    hashType: (found.get(5) as bigint | undefined) ?? null,
    fanout: (found.get(6) as bigint | undefined) ?? null
  }
}

/** Decode packed numbers, as newer protobuf writers encode them. */
function packed(data: Bytes): bigint[] {
  const out: bigint[] = []
  for (let at = 0; at < data.length; ) {
    const [value, end] = varint(data, at)
    out.push(value)
    at = end
  }
  return out
}

export function writeUnixFS(said: Partial<UnixFS> & { type: number }): Bytes {
  const it = { ...EMPTY, ...said }
  const optional = (number: number, value: bigint | null): Bytes => (value === null ? new Uint8Array() : numeric(number, value))
  return join(
    numeric(1, it.type),
    it.data === null ? [] : field(2, it.data),
    optional(3, it.filesize),
    ...it.blocksizes.map(one => numeric(4, one)),
    optional(5, it.hashType),
    optional(6, it.fanout)
  )
}

/** The content of a link: a CID, and the bytes of all blocks below. */
export type Target = { readonly cid: Cid; readonly size: bigint }
/** Receives made blocks. */
export type Put = (cid: string, block: Bytes) => void

/** Make a node with a message; returns the link to it. */
export function putNode(links: readonly PbLink[], message: Bytes, put: Put): Target {
  const block = writeNode({ links, data: message })
  const cid = cidOf(DAG_PB, block)
  put(cid.text, block)
  return { cid, size: BigInt(block.length) + links.reduce((sum, one) => sum + one.size, 0n) }
}
