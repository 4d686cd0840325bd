/** CIDs and nodes (FORMAT.md 6). */

import { fromHex, hex } from '../src/core/bytes.ts'
import { cidBytes, cidFromBytes, cidOf, DAG_PB, ipnsName, keyOfName, parseCid } from '../src/core/cid.ts'
import { readNode, readUnixFS, writeNode, writeUnixFS } from '../src/core/dagpb.ts'
import type { Judge, Rows } from './judging.ts'

export const cids: Judge = (all, court) => {
  for (const row of all.valid) {
    const cid = parseCid(row.text)
    court.same([cid.version, cid.codec, hex(cid.multihash), hex(cidBytes(cid))], [row.version, row.codec, row.multihash, row.bytes], row.about)
    court.same(cidFromBytes(fromHex(row.bytes)), cid, row.about)
  }
  for (const row of all.same_cid) court.same(hex(cidBytes(parseCid(row.text))), all.valid[0].bytes, row.base)
  for (const row of all.refused_text) court.refuses(() => parseCid(row.text), row.about)
  for (const row of all.refused_bytes) court.refuses(() => cidFromBytes(fromHex(row.bytes)), row.about)
  for (const row of all.ipns_names) {
    court.same([ipnsName(fromHex(row.ed25519_public)), hex(keyOfName(row.name))], [row.name, row.ed25519_public], row.name)
  }
  for (const row of all.refused_ipns_names) court.refuses(() => keyOfName(row.name), row.about)
}

const bytes = (text: string | null) => (text === null ? null : fromHex(text))
const linksOf = (row: Rows) => row.links.map((one: Rows) => ({ name: one.name, size: BigInt(one.tsize), cid: parseCid(one.cid) }))
const big = (value: number | null | undefined) => (value ? BigInt(value) : null)

export const dagpb: Judge = (all, court) => {
  for (const row of all.valid) {
    const node = { links: linksOf(row), data: bytes(row.data) }
    court.same(hex(writeNode(node)), row.block, row.about)
    court.same(cidOf(DAG_PB, fromHex(row.block)).text, row.cid, row.about)
    court.same(hex(writeNode(readNode(fromHex(row.block)))), row.block, row.about)
  }
  for (const row of all.accepted) court.same(readNode(fromHex(row.block)), { links: linksOf(row), data: bytes(row.data) }, row.about)
  for (const row of all.refused) court.refuses(() => readNode(fromHex(row.block)), row.about)
  for (const row of [...all.unixfs, ...all.unixfs_accepted]) {
    const it = readUnixFS(fromHex(row.message))
    const got = [it.type, it.data && hex(it.data), it.filesize, it.blocksizes, it.hashType ?? 0n, it.fanout ?? 0n]
    const wanted = [row.type, row.data || null, row.filesize === null ? null : BigInt(row.filesize), row.blocksizes.map(BigInt)]
    court.same(got, [...wanted, BigInt(row.hash_type ?? 0), BigInt(row.fanout ?? 0)], row.about)
  }
  for (const row of all.unixfs) {
    const it = {
      type: row.type,
      data: bytes(row.data || null),
      filesize: row.filesize === null ? null : BigInt(row.filesize),
      blocksizes: row.blocksizes.map(BigInt),
      hashType: big(row.hash_type),
      fanout: big(row.fanout)
    }
    court.same(hex(writeUnixFS(it)), row.message, row.about)
  }
  for (const row of all.unixfs_refused) court.refuses(() => readUnixFS(fromHex(row.message)), row.about)
}
