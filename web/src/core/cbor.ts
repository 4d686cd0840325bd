/** DAG-CBOR for IPNS records and CAR headers: shortest lengths, text names, each once; links as CIDs. */

import { type Bytes, fromUtf8, hex, need, refuse } from './bytes.ts'
import { type Cid, cidFromBytes } from './cid.ts'

export class Link {
  constructor(readonly cid: Cid) {}
}

export type Cbor = bigint | number | boolean | null | string | Bytes | Link | Cbor[] | Map<string, Cbor>

const MOST_DEPTH = 32

/** Decode one value without trailing bytes. Integers are bigints, other numbers doubles. */
export function parseCbor(data: Bytes): Cbor {
  let at = 0
  function head(): [major: number, value: bigint] {
    const first = data[at++]
    need(first !== undefined, 'format', 'cut off')
    const major = first >> 5
    const info = first & 31
    if (major === 7 || info < 24) return [major, BigInt(info)]
    need(info < 28, 'format', 'an indefinite length')
    const size = 1 << (info - 24)
    need(at + size <= data.length, 'format', 'cut off')
    const value = BigInt(`0x${hex(data.subarray(at, at + size))}`)
    need(value >= (size === 1 ? 24n : 1n << BigInt(4 * size)), 'format', 'a number not in its shortest form')
    at += size
    return [major, value]
  }
  function bytes(size: bigint): Bytes {
    need(size <= BigInt(data.length - at), 'format', 'cut off')
    at += Number(size)
    return data.slice(at - Number(size), at)
  }
  function value(depth: number): Cbor {
    need(depth < MOST_DEPTH, 'format', 'nested too deep')
    const [major, size] = head()
    switch (major) {
      case 0:
        return size
      case 1:
        return -1n - size
      case 2:
        return bytes(size)
      case 3:
        return fromUtf8(bytes(size))
      case 4:
        need(size <= BigInt(data.length - at), 'format', 'cut off')
        return Array.from({ length: Number(size) }, () => value(depth + 1))
      case 5:
        return map(size, depth)
      case 6: {
        need(size === 42n, 'format', 'an unknown tag')
        const link = value(depth + 1)
        need(link instanceof Uint8Array && link[0] === 0, 'format', 'not a link')
        return new Link(cidFromBytes(link.subarray(1)))
      }
      default:
        return simple(size)
    }
  }
  function map(size: bigint, depth: number): Map<string, Cbor> {
    const out = new Map<string, Cbor>()
    for (let n = 0n; n < size; n++) {
      const name = value(depth + 1)
      need(typeof name === 'string' && !out.has(name), 'format', 'a name that is not text, or occurs twice')
      out.set(name, value(depth + 1))
    }
    return out
  }
  function simple(size: bigint): boolean | number | null {
    if (size === 20n) return false
    if (size === 21n) return true
    if (size === 22n) return null
    if (size !== 27n) return refuse('format', 'no value of DAG-CBOR')
    const double = new DataView(bytes(8n).buffer).getFloat64(0)
    need(Number.isFinite(double), 'format', 'no finite number')
    return double
  }
  const out = value(0)
  need(at === data.length, 'format', 'bytes after the value')
  return out
}
