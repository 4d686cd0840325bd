/**
 * A shared folder of packs, pins and records, as written by any number of devices, and the files to add (FORMAT.md 7.2). Pure functions on
 * bytes by path; garbage collection and the order of writes are not here.
 */

import { type Bytes, canonical, compareBytes, fields, fromHex, fromUtf8, hex, isWhole, join, need, number, parseJson, sha256, uint32, unlessRefused, utf8 } from './bytes.ts'
import { readCar, soundBlock, writeCar } from './car.ts'
import { asVersion1, isBlockOf, parseCid, size as sizeAt } from './cid.ts'
import { newestRecord, readRecord } from './ipns.ts'

export type Files = ReadonlyMap<string, Bytes>

export const PACK = /^packs\/([0-9a-f]{64})\.car$/
export const PIN = /^pins\/([0-9A-Za-z]+)\.([0-9a-f]{16})\.json$/
export const PIN_LIST = /^pins\/[0-9a-f]{64}\.pins$/
/** Names next to a file, and copies of one that keeps its name. */
const NO_STAND_IN = /^pins\/\._|:|conflict/i
const LIST_WITHIN = /(?<![0-9a-f])([0-9a-f]{64})\.pins/
const PIN_WITHIN = /(?<![0-9A-Za-z])([0-9A-Za-z]+)\.(?:[0-9a-f]{16}(?![0-9a-f])|[^/]*json$)/
export const RECORD = /^names\/(k[0-9a-z]{61})\.([0-9a-f]{16})\.ipns-record$/
const HEAD = utf8('ipmidx1\n')
/** Magic prefix of an index whose pack had more than the sound blocks that it names. */
const HEAD_OF_SOME = utf8('ipmidx1-')
const ROW = 44
const COUNTS = 256
const BEFORE_CRC = 8 + 8 + 4 + 4 * COUNTS
const BEFORE_ROWS = BEFORE_CRC + 4
const LEAST_BLOCK = 35
/** Bytes of the shortest section: the identity CID of an empty block. */
const LEAST_SECTION = 4
export const MOST_BLOCK = 2 << 20
export const MOST_PIN = 4096
const MOST_PIN_NAME = 255
export const MOST_LIST = 16 << 20
export const MOST_RECORD = 10 << 10
const MOST_LOST = 50_000

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => Array.from({ length: 8 }).reduce<number>(value => (value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1), byte))

/** CRC-32 as in zlib. */
export function crc32(data: Bytes): number {
  let value = 0xffffffff
  for (const byte of data) value = (TABLE[(value ^ byte) & 255] as number) ^ (value >>> 8)
  return (value ^ 0xffffffff) >>> 0
}

/** The position of a block in its pack. */
export type Place = { readonly at: number; readonly length: number }
type Pack = { readonly name: string; readonly data: Bytes; readonly going: boolean; readonly lost: ReadonlySet<string>; readonly places: ReadonlyMap<string, Place>; found?: ReadonlyMap<string, Place> }

/** Tell whether an index fits a pack of `size` bytes. */
export function indexFits(index: Bytes, size: number): boolean {
  const head = index.subarray(0, 8)
  if (index.length < BEFORE_ROWS || (compareBytes(head, HEAD) !== 0 && compareBytes(head, HEAD_OF_SOME) !== 0)) return false
  const rows = uint32(index, 16)
  const counts = Array.from({ length: COUNTS }, (_, n) => uint32(index, 20 + 4 * n))
  const isGrowing = counts.every((count, n) => count >= (counts[n - 1] ?? 0))
  const fits = index.length === BEFORE_ROWS + ROW * rows && uint32(index, 8) * 2 ** 32 + uint32(index, 12) === size && isGrowing && counts.at(-1) === rows && size >= LEAST_BLOCK * rows
  return fits && crc32(join(index.subarray(0, BEFORE_CRC), index.subarray(BEFORE_ROWS))) === uint32(index, BEFORE_CRC)
}

const placeAt = (index: Bytes, row: number): Place => ({ at: uint32(index, row + 32) * 2 ** 32 + uint32(index, row + 36), length: uint32(index, row + 40) })

/** Return the position of a block in an index that fits, by its digest; null if it is not named. The index stays bytes: it may be large. */
export function placeIn(index: Bytes, digest: string): Place | null {
  const wanted = fromHex(digest)
  const first = wanted[0] as number
  let [low, high] = [first === 0 ? 0 : uint32(index, 20 + 4 * (first - 1)), uint32(index, 20 + 4 * first)]
  while (low < high) {
    const middle = (low + high) >>> 1
    const row = BEFORE_ROWS + ROW * middle
    const order = compareBytes(index.subarray(row, row + 32), wanted)
    if (order === 0) return placeAt(index, row)
    if (order < 0) low = middle + 1
    else high = middle
  }
  return null
}

/** Return the positions in an index by digest, if it fits its pack; else null. */
function readIndex(index: Bytes, pack: Bytes): Map<string, Place> | null {
  if (!indexFits(index, pack.length)) return null
  const out = new Map<string, Place>()
  for (let row = BEFORE_ROWS; row < index.length; row += ROW) out.set(hex(index.subarray(row, row + 32)), placeAt(index, row))
  return out
}

/** Return the sound blocks of a pack by digest, found by scanning it. */
export function lookedThrough(pack: Bytes): Map<string, Place> {
  const out = new Map<string, Place>()
  const [length, start] = unlessRefused(() => sizeAt(pack, 0)) ?? [pack.length, 0]
  if (unlessRefused(() => readCar(pack.subarray(0, start + length))) === null) return out
  for (let at = start + length; at < pack.length; ) {
    const first = pack[at] as number
    const section = first < 128 ? (at + 1 + first <= pack.length ? ([first, at + 1] as const) : null) : unlessRefused(() => sizeAt(pack, at))
    if (section === null) break
    const [bytes, from] = section
    const data = bytes < LEAST_SECTION ? null : soundBlock(pack.subarray(from, from + bytes))
    if (data !== null) out.set(hex(sha256(data)), { at: from + bytes - data.length, length: data.length })
    at = from + bytes
  }
  return out
}

export type Pin = { readonly cid: string; readonly created: number; readonly name: string }

/** The content of a folder. It is untrusted: everything is checked or ignored. */
export class SharedFolder {
  readonly #packs: readonly Pack[]

  /** `now`: milliseconds since 1970, the time of a pin whose file is damaged, since its own is unknown. */
  constructor(
    readonly files: Files,
    readonly now = Number.MAX_SAFE_INTEGER
  ) {
    this.#packs = [...files].flatMap(([path, data]): Pack[] => {
      const name = PACK.exec(path)?.[1]
      if (name === undefined) return []
      const index = files.get(`packs/${name}.idx`)
            const places = (index === undefined ? null : readIndex(index, data)) ?? lookedThrough(data)
      return [{ name, data, going: files.has(`packs/${name}.going`), lost: lostIn(files.get(`packs/${name}.lost`) ?? new Uint8Array()), places }]
    })
  }

  /** Tell whether a block is stored: an index names it, its pack is not to be removed, and it is not noted as lost there. */
  has(cid: string): boolean {
    const digest = digestOf(cid)
    return this.#packs.some(pack => !pack.going && !pack.lost.has(digest) && pack.places.has(digest))
  }

  /** Return a sound block from any pack, also one to be removed; null if absent. */
  block(cid: string): Bytes | null {
    const digest = digestOf(cid)
    const named = asVersion1(parseCid(cid))
    const within = (pack: Pack, place: Place | undefined): Bytes | null => {
      const data = place === undefined || place.length > MOST_BLOCK ? null : pack.data.slice(place.at, place.at + place.length)
      return data !== null && isBlockOf(named, data) ? data : null
    }
    for (const pack of this.#packs) {
      const found = within(pack, pack.places.get(digest))
      if (found !== null) return found
    }
    // An index may be false, or of another pack.
    for (const pack of this.#packs) {
      pack.found ??= lookedThrough(pack.data)
      const found = within(pack, pack.found.get(digest))
      if (found !== null) return found
    }
    return null
  }

  /** Sizes by name of the files that determine the content: packs that are not to be removed, with their notes, and pin files. */
  listing(): Map<string, number> {
    const packs = this.#packs.filter(pack => !pack.going).map(({ name, data }): [string, number] => [`${name}.car`, data.length + (this.files.get(`packs/${name}.lost`)?.length ?? 0)])
    return new Map([...packs, ...[...this.files].filter(([path]) => /^pins\/[^./][^/]*$/.test(path)).map(([path, data]): [string, number] => [path, data.length])])
  }

  /** The pins under a name, newest first; of two files for one pin the earlier is valid. */
  pins(name: string): Pin[] {
    const found = new Map<string, Pin>()
    for (const pin of this.#pinsUnder(name)) {
      const held = found.get(pin.cid)
      if (held === undefined || pin.created < held.created) found.set(pin.cid, pin)
    }
    return [...found.values()].sort((a, b) => b.created - a.created || (a.cid < b.cid ? 1 : -1))
  }

  *#pinsUnder(name: string): Generator<Pin> {
    for (const [path, data] of this.files) {
      const [, named, tag] = PIN.exec(path) ?? []
      if (named !== undefined) {
        if (tag !== tagOf(name)) continue
        const pin = data.length <= MOST_PIN ? unlessRefused(() => readPin(data)) : null
        const cid = unlessRefused(() => parseCid(named).text)
        // A damaged file is identified by its name.
        if (pin === null && cid !== null) yield { cid, created: this.now, name }
        else if (pin?.cid === named && pin.name === name) yield pin
      } else if (PIN_LIST.test(path) && data.length <= MOST_LIST) {
        for (const line of linesOf(data)) {
          const pin = unlessRefused(() => readPin(line))
          if (pin?.name === name) yield pin
        }
      }
    }
  }

  /** The greatest record that a name signed; null if absent. */
  async record(name: string): Promise<Bytes | null> {
    const all = [...this.files].filter(([path, data]) => {
      const [, of, tag] = RECORD.exec(path) ?? []
      return of === name && data.length <= MOST_RECORD && tagOf(data) === tag
    })
    const read = await Promise.all(all.map(([, data]) => readRecord(name, data).catch(() => null)))
    const signed = read.filter(one => one !== null)
    return signed.length === 0 ? null : newestRecord(signed).bytes
  }
}

/** Whether a name, such as a hidden file's, stands for a list or a pin with `tag` that is not there. `known`: paths of whole lists, and roots. */
export function standsForPins(path: string, tag: string, known: ReadonlySet<string>): boolean {
  if (NO_STAND_IN.test(path)) return false
  const list = LIST_WITHIN.exec(path)?.[1]
  if (list !== undefined && !PIN_LIST.test(path)) return !known.has(`pins/${list}.pins`)
  if (!path.includes(`.${tag}.json`) || PIN.test(path)) return false
  const named = PIN_WITHIN.exec(path.slice('pins/'.length))?.[1]
  const root = named === undefined ? null : unlessRefused(() => parseCid(named).text)
  return root !== null && !known.has(root)
}

/** Return the digests of the blocks that a `.lost` file notes; lines that are no CID are ignored. */
export function lostIn(data: Bytes): Set<string> {
  const lost = new Set<string>()
  for (const line of linesOf(data)) {
    if (lost.size >= MOST_LOST) break
    const digest = line.length === 0 ? null : unlessRefused(() => digestOf(fromUtf8(line)))
    if (digest !== null) lost.add(digest)
  }
  return lost
}

export const digestOf = (cid: string): string => hex(asVersion1(parseCid(cid)).multihash.subarray(2))
export const tagOf = (data: Bytes | string): string => hex(sha256(data)).slice(0, 16)

/** The lines of a list: sync programs may change line ends. */
export function* linesOf(data: Bytes): Generator<Bytes> {
  let start = 0
  for (let at = 0; at <= data.length; at++) {
    if (at < data.length && data[at] !== 10 && data[at] !== 13) continue
    yield data.subarray(start, at)
    start = at + 1
  }
}

/** Parse a pin in any JSON formatting. */
export function readPin(data: Bytes): Pin {
  const { cid, created, name, v } = fields(parseJson(fromUtf8(data)), ['cid', 'created', 'name', 'v'])
  need(v === 1 && typeof cid === 'string' && isWhole(created) && typeof name === 'string' && name.isWellFormed(), 'format', 'not a pin')
  need([...name].length <= MOST_PIN_NAME, 'limit', 'a name of more than 255 characters')
  return { cid: parseCid(cid).text, created, name }
}

/** Make a pack of blocks and its index. `root`: any CID, without meaning here. */
export function packFiles(root: string, blocks: readonly (readonly [cid: string, data: Bytes])[]): Map<string, Bytes> {
  const pack = writeCar({ roots: [root], blocks })
  const name = hex(sha256(pack))
  const rows = [...lookedThrough(pack)].sort(([a], [b]) => (a < b ? -1 : 1))
  const counts = Array.from({ length: COUNTS }, (_, byte) => number(rows.filter(([digest]) => Number.parseInt(digest.slice(0, 2), 16) <= byte).length, 4))
  const head = join(HEAD, number(pack.length, 8), number(rows.length, 4), ...counts)
  const body = join(...rows.map(([digest, { at, length }]) => join(fromHex(digest), number(at, 8), number(length, 4))))
  return new Map([
    [`packs/${name}.car`, pack],
    [`packs/${name}.idx`, join(head, number(crc32(join(head, body)), 4), body)]
  ])
}

/** The file of one pin. */
export const pinFile = ({ cid, created, name }: Pin): [path: string, data: Bytes] => [`pins/${cid}.${tagOf(name)}.json`, utf8(canonical({ cid, created, name, v: 1 }))]

/** The file of a record. */
export const recordFile = (name: string, record: Bytes): [path: string, data: Bytes] => [`names/${name}.${tagOf(record)}.ipns-record`, record]
