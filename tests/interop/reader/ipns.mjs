// IPNS records (FORMAT.md 7; field numbers from https://specs.ipfs.tech/ipns/ipns-record/): reading and comparing.

import { fromUtf8, greatest, hex, join, need, refuse, same } from './bytes.mjs'
import { keyOfName, parseCbor, parseCid, protobuf } from './content.mjs'
import { verify } from './keys.mjs'

const MOST = 10 << 10
const MOST_NUMBER = 2n ** 63n - 1n
const TIME = /^(\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,9}))?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/** What a record says when the key of `name` signed it; refused otherwise. Time is not looked at. */
export function readRecord(name, record) {
  need(record.length <= MOST, 'limit', 'a record of more than 10 KiB')
  const found = {}
  for (const [number, wire, value] of protobuf(record)) {
    need(found[number] === undefined, 'format', 'a field twice')
    const numeric = [3, 5, 6].includes(number)
    need(number > 9 || wire === (numeric ? 0 : 2), 'format', 'a field of another type')
    found[number] = value
  }
  const { 1: value, 2: signature1, 3: type, 4: validity, 5: sequence, 6: ttl, 7: publicKey, 8: signature, 9: data } = found
  need(signature !== undefined && data !== undefined, 'format', 'no signature of version 2')
  const key = keyOfName(name)
  if (publicKey !== undefined) need(same(publicKey, join([8, 1, 18, 32], key)), 'signature', "another name's key")
  need(verify(key, join('ipns-signature:', data), signature), 'signature', 'a wrong signature')
  const said = parseCbor(data)
  need(said instanceof Map, 'format', 'no map')
  for (const field of ['Value', 'Validity']) need(Buffer.isBuffer(said.get(field)), 'format', `no ${field}`)
  for (const field of ['Sequence', 'TTL', 'ValidityType']) {
    const number = said.get(field)
    need(typeof number === 'bigint' && number >= 0n && number <= MOST_NUMBER, 'format', `no ${field}`)
  }
  need(said.get('ValidityType') === 0n, 'format', 'another kind of validity')
  const old = (field, fallback) => (value !== undefined || signature1 !== undefined ? (field ?? fallback) : field)
  const agree = (field, fallback, signed) => {
    const here = old(field, fallback)
    if (here === undefined) return
    need(Buffer.isBuffer(here) ? same(here, signed) : here === signed, 'format', 'fields of version 1 say something else')
  }
  const none = Buffer.alloc(0)
  agree(value, none, said.get('Value'))
  agree(validity, none, said.get('Validity'))
  agree(type, 0n, said.get('ValidityType'))
  agree(sequence, 0n, said.get('Sequence'))
  agree(ttl, 0n, said.get('TTL'))
  return {
    value: fromUtf8(said.get('Value')),
    sequence: said.get('Sequence'),
    validity: instant(fromUtf8(said.get('Validity'))),
    ttl: said.get('TTL'),
    bytes: record
  }
}

/** Nanoseconds since 1970. */
function instant(text) {
  const [, whole, fraction = '', zone] = TIME.exec(text) ?? refuse('format', 'not an instant')
  const clock = Date.parse(`${whole}Z`)
  need(!Number.isNaN(clock) && new Date(clock).toISOString().startsWith(whole), 'format', 'not an instant')
  return BigInt(Date.parse(`${whole}${zone}`)) * 1000000n + BigInt(fraction.padEnd(9, '0'))
}

/** Of valid records of one name the one that counts. */
export const newest = records => greatest(records, one => [one.sequence, one.validity, hex(one.bytes)])

/** Where a record leads: {cid} or {name}, or null. */
export function target(record) {
  const [, kind, rest] = /^\/(ipfs|ipns)\/([^/]+)$/.exec(record.value) ?? []
  if (kind === 'ipns') {
    keyOfName(rest)
    return { name: rest }
  }
  return kind ? { cid: parseCid(rest).text } : null
}
