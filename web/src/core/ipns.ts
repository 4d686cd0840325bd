/** IPNS records (FORMAT.md 7; field numbers from https://specs.ipfs.tech/ipns/ipns-record/): made, read and compared. Time is passed in. */

import { type Bytes, fromUtf8, greatest, hex, join, need, refuse, same, utf8 } from './bytes.ts'
import { parseCbor } from './cbor.ts'
import { ipnsName, keyOfName, parseCid, toVarint } from './cid.ts'
import { type Signer, verify } from './curves.ts'
import { protobuf } from './dagpb.ts'

const MOST_RECORD = 10 << 10
const MOST_NUMBER = 2n ** 63n - 1n
/** The ends of the calendar, also after the offset. */
const [YEAR_1, YEAR_10000] = [Date.parse('0001-01-01T00:00:00Z'), 253_402_300_800_000]
const TIME = /^(\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,9}))?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$(?![^])/

export type IpnsRecord = {
  readonly value: string
  readonly sequence: bigint
  /** Nanoseconds since 1970. */
  readonly validUntil: bigint
  readonly ttlNs: bigint
  readonly bytes: Bytes
}

/** Parse a record signed by the key of `name`; refused otherwise. Its expiry is not checked. */
export async function readRecord(name: string, record: Bytes): Promise<IpnsRecord> {
  need(record.length <= MOST_RECORD, 'limit', 'a record of more than 10 KiB')
  const found = new Map<number, bigint | Bytes>()
  for (const [number, wire, value] of protobuf(record)) {
    // Unknown fields may have any number.
    if (number > 9) continue
    need(number > 0 && !found.has(number), 'format', 'a field twice, or none')
    need(wire === ([3, 5, 6].includes(number) ? 0 : 2), 'format', 'a field of another type')
    found.set(number, value)
  }
  const [signature, data] = [found.get(8), found.get(9)]
  need(signature instanceof Uint8Array && data instanceof Uint8Array, 'format', 'no signature of version 2')
  const key = keyOfName(name)
  const publicKey = found.get(7)
  if (publicKey !== undefined) need(same(publicKey as Bytes, join([8, 1, 18, 32], key)), 'signature', "another name's key")
  need(await verify(key, join('ipns-signature:', data), signature), 'signature', 'a wrong signature')
  const said = parseCbor(data)
  need(said instanceof Map, 'format', 'no map')
  const bytesOf = (field: string): Bytes => {
    const value = said.get(field)
    return value instanceof Uint8Array ? value : refuse('format', `no ${field}`)
  }
  const numberOf = (field: string): bigint => {
    const value = said.get(field)
    return typeof value === 'bigint' && value >= 0n && value <= MOST_NUMBER ? value : refuse('format', `no ${field}`)
  }
  const [value, validity] = [bytesOf('Value'), bytesOf('Validity')]
  const [sequence, ttlNs, kind] = [numberOf('Sequence'), numberOf('TTL'), numberOf('ValidityType')]
  need(kind === 0n, 'format', 'another kind of validity')
  // A record with one of these two has all fields of version 1; omitted ones are empty or 0.
  const isOld = found.has(1) || found.has(2)
  const agree = (number: number, signed: bigint | Bytes): void => {
    const here = found.get(number) ?? (isOld ? (typeof signed === 'bigint' ? 0n : new Uint8Array()) : undefined)
    if (here === undefined) return
    const isSame = here instanceof Uint8Array ? signed instanceof Uint8Array && same(here, signed) : here === signed
    need(isSame, 'format', 'fields of version 1 say something else')
  }
  agree(1, value)
  agree(4, validity)
  agree(3, kind)
  agree(5, sequence)
  agree(6, ttlNs)
  return { value: fromUtf8(value), sequence, validUntil: nanoseconds(fromUtf8(validity)), ttlNs, bytes: record }
}

function nanoseconds(text: string): bigint {
  const [, whole, fraction = '', zone] = TIME.exec(text) ?? refuse('format', 'not an instant')
  const clock = Date.parse(`${whole}Z`)
  need(!Number.isNaN(clock) && new Date(clock).toISOString().startsWith(whole as string), 'format', 'not an instant')
  const ms = Date.parse(`${whole}${zone}`)
  need(ms >= YEAR_1 && ms < YEAR_10000, 'format', 'not an instant')
  return BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, '0'))
}

/** Return the newest of valid records of one name. */
export const newestRecord = (records: readonly IpnsRecord[]): IpnsRecord => greatest(records, one => [one.sequence, one.validUntil, hex(one.bytes)])

export type Target = { readonly cid: string; readonly name: null } | { readonly cid: null; readonly name: string }

/** Return the target of a record: a root or another name; null if neither. */
export function targetOf(record: IpnsRecord): Target | null {
  const [, kind, rest = ''] = /^\/(ipfs|ipns)\/([^/]+)$(?![^])/.exec(record.value) ?? []
  // In any base: records are stored under the canonical spelling of a name.
  if (kind === 'ipns') return { cid: null, name: ipnsName(keyOfName(rest)) }
  return kind === undefined ? null : { cid: parseCid(rest).text, name: null }
}

export type NewRecord = { readonly value: string; readonly sequence: bigint; readonly validUntil: string; readonly ttlNs: bigint }

const cborHead = (major: number, value: bigint): Bytes => {
  if (value < 24n) return Uint8Array.of((major << 5) | Number(value))
  const size = value < 256n ? 1 : value < 65_536n ? 2 : value < 2n ** 32n ? 4 : 8
  const out = new Uint8Array(1 + size)
  out[0] = (major << 5) | (24 + Math.log2(size))
  for (let i = size, rest = value; i > 0; i--, rest >>= 8n) out[i] = Number(rest & 255n)
  return out
}

/** The signed map: DAG-CBOR, names by length. */
function signedData(said: NewRecord): Bytes {
  const text = (name: string): Bytes => join(cborHead(3, BigInt(name.length)), name)
  const bytes = (value: string): Bytes => join(cborHead(2, BigInt(utf8(value).length)), value)
  return join(
    [0xa5],
    text('TTL'),
    cborHead(0, said.ttlNs),
    text('Value'),
    bytes(said.value),
    text('Sequence'),
    cborHead(0, said.sequence),
    text('Validity'),
    bytes(said.validUntil),
    text('ValidityType'),
    [0]
  )
}

/** Make a record with the fields of both versions. `validUntil` is RFC 3339. */
export async function makeRecord(signer: Signer, said: NewRecord): Promise<Bytes> {
  const data = signedData(said)
  const field = (number: number, value: Bytes): Bytes => join([number * 8 + 2], toVarint(value.length), value)
  const numeric = (number: number, value: bigint): Bytes => join([number * 8], toVarint(value))
  return join(
    field(1, utf8(said.value)),
    field(2, await signer.sign(join(said.value, said.validUntil, 'EOL'))),
    numeric(3, 0n),
    field(4, utf8(said.validUntil)),
    numeric(5, said.sequence),
    numeric(6, said.ttlNs),
    field(8, await signer.sign(join('ipns-signature:', data))),
    field(9, data)
  )
}

