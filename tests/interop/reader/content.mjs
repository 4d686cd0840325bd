// Content addressing as far as a reader needs it (FORMAT.md 6): CIDs, CAR version 1, dag-pb and UnixFS folders and files.
// A `Blocks` is whatever is at hand; bytes count only when they have the hash of the CID that they were asked for by.

import { fromUtf8, hex, join, need, refuse, same, sha256 } from './bytes.mjs'

export const RAW = 0x55
const DAG_PB = 0x70
const MOST_BLOCK = 2 << 20
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
const BASE36 = '0123456789abcdefghijklmnopqrstuvwxyz'

export function base32(data) {
  let out = ''
  let value = 0
  let bits = 0
  for (const byte of data) {
    value = ((value << 8) | byte) & 0xffff
    for (bits += 8; bits >= 5; bits -= 5) out += BASE32[(value >> (bits - 5)) & 31]
  }
  return bits ? out + BASE32[(value << (5 - bits)) & 31] : out
}

export function fromBase32(text) {
  const out = []
  let value = 0
  let bits = 0
  for (const letter of text) {
    const digit = BASE32.indexOf(letter)
    need(digit >= 0, 'format', 'not base32')
    value = ((value << 5) | digit) & 0xfff
    if ((bits += 5) >= 8) out.push((value >> (bits -= 8)) & 255)
  }
  need(base32(out) === text, 'format', 'not base32 in its one form')
  return Buffer.from(out)
}

/** Numbers of protobuf and multiformats: shortest form, at most 63 bits. */
export function varint(data, at) {
  let value = 0n
  for (let i = 0; i < 9; i++) {
    need(at + i < data.length, 'format', 'cut off')
    const byte = data[at + i]
    value |= BigInt(byte & 127) << BigInt(7 * i)
    if (byte < 128) {
      need(i === 0 || byte !== 0, 'format', 'a number not in its shortest form')
      return [Number(value), at + i + 1, value]
    }
  }
  return refuse('format', 'a number of more than 63 bits')
}

const SHA256 = Buffer.from([0x12, 0x20])

/** Of a CID in bytes at `at`: its text, codec and hash, and where it ends. Only sha2-256 is known here. */
export function readCid(data, at = 0) {
  const start = at
  let codec = DAG_PB
  if (!same(data.subarray(at, at + 2), SHA256)) {
    let version
    ;[version, at] = varint(data, at)
    need(version === 1, 'format', 'not a CID')
    ;[codec, at] = varint(data, at)
  }
  need(same(data.subarray(at, at + 2), SHA256) && data.length >= at + 34, 'format', 'not a sha2-256 CID')
  const hash = data.subarray(at + 2, at + 34)
  const version1 = join([1], codec < 128 ? [codec] : data.subarray(start + 1, at), SHA256, hash)
  return { text: `b${base32(version1)}`, codec, hash: hex(hash), end: at + 34 }
}

export const cidOf = (codec, data) => readCid(join([1, codec], SHA256, sha256(data))).text

export function parseCid(text) {
  need(typeof text === 'string' && text.startsWith('b'), 'format', 'not a CID in base32')
  const data = fromBase32(text.slice(1))
  const cid = readCid(data)
  need(cid.end === data.length, 'format', 'bytes after a CID')
  return cid
}

/** The IPNS name of an Ed25519 key: base36 of an identity CID of codec libp2p-key. */
export function ipnsName(publicKey) {
  let value = BigInt(`0x${hex(join([1, 0x72, 0, 0x24, 8, 1, 0x12, 0x20], publicKey))}`)
  let out = ''
  for (; value; value /= 36n) out = BASE36[Number(value % 36n)] + out
  return `k${out}`
}

export function keyOfName(name) {
  need(/^k[0-9a-z]{61}$/.test(name), 'format', 'not an IPNS name')
  let value = 0n
  for (const letter of name.slice(1)) value = value * 36n + BigInt(BASE36.indexOf(letter))
  const data = Buffer.from(value.toString(16).padStart(80, '0'), 'hex')
  const publicKey = data.subarray(data.length - 32)
  need(ipnsName(publicKey) === name, 'format', 'not an IPNS name')
  return publicKey
}

// --- DAG-CBOR, small: shortest heads, text keys, each once ---

export function parseCbor(data) {
  let at = 0
  function head() {
    need(at < data.length, 'format', 'cut off')
    const first = data[at++]
    const major = first >> 5
    const info = first & 31
    if (major === 7) return [major, info]
    if (info < 24) return [major, BigInt(info)]
    need(info < 28, 'format', 'an indefinite length')
    const size = 1 << (info - 24)
    need(at + size <= data.length, 'format', 'cut off')
    const value = BigInt(`0x${hex(data.subarray(at, at + size))}`)
    need(value >= (size === 1 ? 24n : 1n << BigInt(4 * size)), 'format', 'a number not in its shortest form')
    at += size
    return [major, value]
  }
  function bytes(size) {
    need(size <= BigInt(data.length - at), 'format', 'cut off')
    at += Number(size)
    return data.subarray(at - Number(size), at)
  }
  function value(depth) {
    need(depth < 32, 'format', 'nested too deep')
    const [major, size] = head()
    if (major === 0) return size
    if (major === 1) return -1n - size
    if (major === 2) return Buffer.from(bytes(size))
    if (major === 3) return fromUtf8(bytes(size))
    if (major === 4) {
      need(size <= BigInt(data.length - at), 'format', 'cut off')
      return Array.from({ length: Number(size) }, () => value(depth + 1))
    }
    if (major === 5) {
      const out = new Map()
      for (let n = 0n; n < size; n++) {
        const key = value(depth + 1)
        need(typeof key === 'string' && !out.has(key), 'format', 'a key that is no text, or twice')
        out.set(key, value(depth + 1))
      }
      return out
    }
    if (major === 6) {
      need(size === 42n, 'format', 'an unknown tag')
      const link = value(depth + 1)
      need(Buffer.isBuffer(link) && link[0] === 0, 'format', 'not a link')
      return { link: readCid(link, 1) }
    }
    if (size === 20) return false
    if (size === 21) return true
    if (size === 22) return null
    need(size === 27, 'format', 'no value of DAG-CBOR')
    const double = bytes(8n).readDoubleBE()
    need(Number.isFinite(double), 'format', 'no finite number')
    return double
  }
  const out = value(0)
  need(at === data.length, 'format', 'bytes after the value')
  return out
}

// --- protobuf ---

/** [number, wire type, value] of each field; values of type 0 as big integers, of type 2 as bytes. */
export function protobuf(data) {
  const out = []
  for (let at = 0; at < data.length; ) {
    let key, value, size
    ;[key, at] = varint(data, at)
    const wire = key & 7
    if (wire === 0) [, at, value] = varint(data, at)
    else {
      need(wire === 2, 'format', 'an unknown wire type')
      ;[size, at] = varint(data, at)
      need(at + size <= data.length, 'format', 'cut off')
      value = data.subarray(at, at + size)
      at += size
    }
    out.push([Math.floor(key / 8), wire, value])
  }
  return out
}

/** By number, each at most once and of the wire type that `known` says. */
function message(data, known, repeated = []) {
  const out = {}
  for (const [number, wire, value] of protobuf(data)) {
    need(known[number] === wire, 'format', 'an unknown field')
    if (repeated.includes(number)) (out[number] ??= []).push(value)
    else {
      need(out[number] === undefined, 'format', 'a field twice')
      out[number] = value
    }
  }
  return out
}

function dagPb(block) {
  const node = message(block, { 1: 2, 2: 2 }, [2])
  const links = (node[2] ?? []).map(raw => {
    const link = message(raw, { 1: 2, 2: 2, 3: 0 })
    need(link[1] !== undefined, 'format', 'a link without a CID')
    const cid = readCid(link[1])
    need(cid.end === link[1].length, 'format', 'bytes after a CID')
    return { name: fromUtf8(link[2] ?? Buffer.alloc(0)), cid: cid.text }
  })
  return { links, data: node[1] }
}

const FOLDER = 1n
const FILE = 2n
const RAW_FILE = 0n
const HAMT = 5n

function unixfs(block) {
  const { links, data } = dagPb(block)
  need(data !== undefined, 'format', 'no UnixFS message')
  const it = message(data, { 1: 0, 2: 2, 3: 0, 4: 0, 5: 0, 6: 0, 7: 0, 8: 2 }, [4])
  need([FOLDER, FILE, RAW_FILE, HAMT].includes(it[1]), 'format', 'a symlink or something unknown')
  return { kind: it[1], data: it[2] ?? Buffer.alloc(0), sizes: it[4] ?? [], fanout: it[6], links }
}

/** Blocks by CID, checked as they come in. */
export class Blocks {
  constructor() {
    this.held = new Map()
  }

  add(cidText, data) {
    this.held.set(parseCid(cidText).text, data)
  }

  /** The bytes behind a CID; Refused of kind `missing` when they are not here or do not have its hash. */
  get(cidText) {
    const cid = parseCid(cidText)
    const data = this.held.get(cid.text)
    need(data !== undefined, 'missing', `${cidText} is nowhere`)
    need(data.length <= MOST_BLOCK && hex(sha256(data)) === cid.hash, 'missing', `${cidText} is damaged`)
    return { codec: cid.codec, data }
  }

  /** An object by the hash of its bytes alone. */
  object(hash) {
    return this.get(`b${base32(join([1, RAW], SHA256, Buffer.from(hash, 'hex')))}`).data
  }

  /** The names of a folder with their CIDs, or null when the CID is no folder. */
  folder(cidText) {
    const { codec, data } = this.get(cidText)
    if (codec !== DAG_PB) return null
    const node = unixfs(data)
    if (node.kind === FOLDER) return entries(node.links.map(link => [link.name, link.cid]))
    if (node.kind !== HAMT) return null
    const digits = Number(node.fanout - 1n).toString(16).length
    const found = []
    const shard = links => {
      for (const link of links) {
        need(link.name.length >= digits, 'format', 'a link of a shard without its place')
        if (link.name.length > digits) found.push([link.name.slice(digits), link.cid])
        else shard(unixfs(this.get(link.cid).data).links)
      }
    }
    shard(node.links)
    return entries(found)
  }

  /** The bytes of a file. */
  file(cidText) {
    const { codec, data } = this.get(cidText)
    if (codec === RAW) return data
    const node = unixfs(data)
    need(node.kind === FILE || node.kind === RAW_FILE, 'format', 'not a file')
    need(node.sizes.length === node.links.length, 'format', 'sizes and links differ')
    return join(node.data, ...node.links.map(link => this.file(link.cid)))
  }

  /** The CID at a path below a folder; undefined when no such name stands there. */
  at(root, path) {
    let here = root
    for (const part of path.split('/')) {
      here = this.folder(here)?.get(part)
      if (here === undefined) return undefined
    }
    return here
  }

  /** The file at a path; Refused of kind `missing` when it cannot be had. */
  read(root, path) {
    const cid = this.at(root, path)
    need(cid !== undefined, 'missing', `no ${path} under ${root}`)
    return this.file(cid)
  }
}

function entries(pairs) {
  const out = new Map(pairs)
  need(out.size === pairs.length, 'format', 'a name twice in a folder')
  return out
}

/** All blocks of a CAR into `blocks`, each checked; its root. */
export function readCar(data, blocks) {
  let [size, at] = varint(data, 0)
  need(size > 0 && size <= 8192 && at + size <= data.length, 'format', 'not a CAR')
  const header = parseCbor(data.subarray(at, at + size))
  need(header instanceof Map && header.size === 2 && header.get('version') === 1n, 'format', 'not a CAR of version 1')
  const roots = header.get('roots')
  need(Array.isArray(roots) && roots.length === 1 && roots[0]?.link?.text, 'format', 'not one root')
  for (at += size; at < data.length; at += size) {
    ;[size, at] = varint(data, at)
    need(size > 0 && at + size <= data.length, 'format', 'an empty or cut section')
    const section = data.subarray(at, at + size)
    const cid = readCid(section)
    const block = section.subarray(cid.end)
    need(hex(sha256(block)) === cid.hash, 'format', 'a block that is not what its CID says')
    blocks.add(cid.text, block)
  }
  return roots[0].link.text
}

/** A folder that holds nothing but `keyring.json` (at most 1 MiB): what the value of an anchor names. */
export function folderBlock(keyring) {
  const file = join([0x0a, 36], [1, RAW], SHA256, sha256(keyring), field(2, Buffer.from('keyring.json')), [0x18], toVarint(keyring.length))
  return join(field(2, file), [0x0a, 2, 8, 1])
}

export const folderOfOne = keyring => cidOf(DAG_PB, folderBlock(keyring))

const field = (number, value) => join([number * 8 + 2], toVarint(value.length), value)

function toVarint(value) {
  const out = []
  for (; value > 127; value = Math.floor(value / 128)) out.push((value % 128) + 128)
  return [...out, value]
}
