/**
 * A shared folder at a WebDAV server (FORMAT.md 7.5). It stores and reads; it merges no packs and removes only lesser name records and
 * unfinished files of its own.
 *
 * What was read once stays in memory for as long as it is listed in the same version. A file that cannot be read costs no other one, and is
 * told.
 */

import { type Bytes, hex, need, same, sha256, unlessRefused } from '../core/bytes.ts'
import { isBlockOf, parseCid } from '../core/cid.ts'
import { digestOf, indexFits, linesOf, lookedThrough, lostIn, MOST_BLOCK, MOST_LIST, MOST_PIN, MOST_RECORD, PACK, packFiles, PIN, PIN_LIST, type Place, pinFile, placeIn, RECORD, readPin, recordFile, SharedFolder, standsForPins, tagOf } from '../core/folder.ts'
import { isSmall, needBoxes, needSmallNames, smallFile, smallOfFile, usedSmall } from '../core/small_objects.ts'
import type { Environment } from '../device/device.ts'
import { DavFiles, type FileInfo, type Listing } from './dav_files.ts'
import type { Fetch } from './http.ts'
import { type Block, type Provider, ProviderError, UNREAD } from './provider.ts'

const MOST_INDEX = 16 << 20
const MOST_LOST_FILE = 8 << 20
/** Bytes of small files that are read or kept at once. */
const MOST_SMALL = 64 << 20
/** Bytes of a pack that this client writes. */
const PACK_SIZE = 16 << 20
/** Packs of so few bytes are read whole, others in parts, and whole once a quarter of them was wanted. */
const WHOLE_ALWAYS = 1 << 20
/** Bytes of packs that are kept whole. */
const WHOLE_MOST = 64 << 20
/** Bytes of packs without a usable index that one call looks through. */
const MOST_SCANNED = 256 << 20
/** Bytes between two wanted blocks that are read along. */
const GAP = 64 << 10
const AT_ONCE = 6
const PACKS_AT_ONCE = 3
/** Lists of a folder that are tried when listed files are gone: another device merges. */
const LISTS = 4
/** Milliseconds for which a pack that could not be read is left alone. */
const LEFT_ALONE_MS = 60_000
/** Milliseconds after which a pack with other bytes than its name says is read again. */
const UNPROVED_MS = 600_000

/** `lost`: digests of its damaged blocks; null if they are unknown. */
type Pack = { readonly key: string; readonly path: string; readonly size: number; readonly isGoing: boolean; readonly lost: ReadonlySet<string> | null; readonly index: Bytes | null }
type Wanted = Place & { readonly cid: string }
type Small = { readonly read: ReadonlyMap<string, Bytes>; readonly gone: readonly string[]; readonly unread: readonly string[]; readonly error: ProviderError | null }

/** `url`: of the folder, with a slash at its end. `account`: `user:password`, or null. */
export function davFolder(name: string, url: URL, account: string | null, fetch: Fetch, environment: Environment): Provider {
  const folder = new DavFolder(new DavFiles(name, url, account, fetch, environment.chance), environment)
  const reader = { name, blocks: (cids: readonly string[]) => folder.blocks(cids) }
  return {
    name,
    reader,
    names: { name, record: (one, say) => folder.record(one, say), putRecord: (one, record) => folder.putRecord(one, record) },
    store: { ...reader, has: cids => folder.has(cids), put: (root, blocks) => folder.put(root, blocks), pin: (root, pinName) => folder.pin(root, pinName) },
    pins: pinName => folder.pins(pinName),
    small: { list: boxes => folder.listSmall(boxes), get: names => folder.getSmall(names), put: (one, data) => folder.putSmall(one, data), remove: names => folder.removeSmall(names) }
  }
}

class DavFolder {
  /** Bytes of pins and records that their names prove, by path, size and date. */
  readonly #small = new Map<string, Bytes>()
  /** By `Pack.key`: indexes that fit, packs read whole (the one used last at the end), blocks of packs that were looked through. */
  readonly #indexes = new Map<string, Bytes>()
  readonly #whole = new Map<string, Bytes>()
  readonly #scans = new Map<string, ReadonlyMap<string, Place>>()
  /** Bytes requested of packs that were read in parts, and when packs were read that their names do not prove. */
  readonly #requested = new Map<string, number>()
  readonly #unproved = new Map<string, number>()
  /** Packs whose index names something that is not there. */
  readonly #false = new Set<string>()
  /** When an index could not be read, by path, size and date. */
  readonly #indexFailures = new Map<string, number>()
  readonly #failures = new Map<string, { readonly at: number; readonly error: ProviderError }>()

  constructor(
    readonly files: DavFiles,
    readonly environment: Environment
  ) {}

  #byKey(): readonly (Map<string, unknown> | Set<string>)[] {
    return [this.#indexes, this.#whole, this.#scans, this.#requested, this.#unproved, this.#false, this.#failures]
  }

  // -- blocks

  async blocks(cids: readonly string[]): Promise<ReadonlyMap<string, Bytes>> {
    const began = performance.now()
    const found = new Map<string, Bytes>()
    let failed: ProviderError | null = null
    for (let attempt = 0; attempt < 2; attempt++) {
      const { packs, at, isWhole, unread } = await this.#packs()
      const taken = await this.#takeAll(packs, cids, found)
      failed = taken.failed ?? (taken.isGone || unread ? this.files.failed('lists packs that cannot be read') : null)
      // Another device may have stored or merged packs since they were listed.
      if (cids.every(cid => found.has(cid)) || (at >= began && isWhole && !taken.isGone)) break
      this.files.forgetList('packs')
    }
    if (failed === null || cids.every(cid => found.has(cid))) return found
    // A server that does not answer is not asked for the rest.
    throw found.size === 0 && !failed.refused ? failed : new ProviderError(failed.provider, failed.refused, failed.message, found)
  }

  async has(cids: readonly string[]): Promise<ReadonlySet<string>> {
    const { packs } = await this.#packs(true)
    const sound = packs.filter(pack => !pack.isGoing && !this.#false.has(pack.key))
    return new Set(
      cids.filter(cid => {
        const digest = digestOf(cid)
        return sound.some(pack => pack.index !== null && pack.lost?.has(digest) === false && placeIn(pack.index, digest) !== null)
      })
    )
  }

  async put(root: string, blocks: readonly Block[]): Promise<void> {
    let part: Block[] = []
    let size = 0
    for (const block of [...blocks, null]) {
      if (part.length > 0 && (block === null || size + block[1].length > PACK_SIZE)) {
        // Readers ask for blocks by digest.
        await this.#putPack(packFiles(root, [...part].sort(([a], [b]) => (digestOf(a) < digestOf(b) ? -1 : 1))))
        part = []
        size = 0
      }
      if (block === null) break
      part.push(block)
      size += block[1].length
    }
  }

  // -- pins and names

  async pin(root: string, pinName: string): Promise<void> {
    if (await this.#isPinned(root, pinName)) return
    await this.files.put(...pinFile({ cid: root, created: this.environment.now(), name: pinName }))
  }

  /** Whether a file holds a pin now: one that was read before may be lost by now, though it is listed. */
  async #isPinned(root: string, pinName: string): Promise<boolean> {
    const { read, unread } = await this.#pinFiles(pinName)
    for (const [path, data] of read) {
      if (!new SharedFolder(new Map([[path, data]]), this.environment.now()).pins(pinName).some(pin => pin.cid === root)) continue
      const there = await this.files.read(path, data.length).catch(unlessAnswered)
      if (there !== null && isProved(path, there)) return true
      for (const key of [...this.#small.keys()]) if (key.startsWith(`${path} `)) this.#small.delete(key)
    }
    // Something else than a file has the name of the pin.
    const { others } = await this.files.list('pins')
    return unread.some(path => others.has(path) && PIN.exec(path)?.[1] === root)
  }

  /** The roots under a name, newest first. A list that cannot be read may hold others. */
  async pins(pinName: string): Promise<readonly string[]> {
    const { read, unread } = await this.#pinFiles(pinName)
    // The root in the name of a single pin that cannot be read is pinned.
    const single = unread.filter(path => !PIN_LIST.test(path)).map(path => [path, new Uint8Array()] as const)
    const found = new SharedFolder(new Map([...read, ...single]), this.environment.now()).pins(pinName)
    const damaged = [...read].filter(([path, data]) => PIN_LIST.test(path) && !isProved(path, data) && !areLinesPins(data))
    const { files, others } = await this.files.list('pins')
    const known = new Set([...found.map(pin => pin.cid), ...[...read].filter(([path, data]) => PIN_LIST.test(path) && isProved(path, data)).map(([path]) => path)])
    const absent = [...files.keys(), ...others].filter(path => standsForPins(path, tagOf(pinName), known))
    return [...found.map(pin => pin.cid), ...[...unread.filter(path => PIN_LIST.test(path)), ...damaged, ...absent].map(() => UNREAD)]
  }

  #pinFiles(pinName: string): Promise<Small> {
    const isWanted = (path: string): boolean => PIN_LIST.test(path) || PIN.exec(path)?.[2] === tagOf(pinName)
    return this.#readListed('pins', isWanted, path => (PIN_LIST.test(path) ? MOST_LIST : MOST_PIN))
  }

  async record(name: string, say: (text: string) => void): Promise<Bytes | null> {
    const { read, unread } = await this.#records(name)
    if (unread.length > 0) say(`${this.files.name}: ${unread.length === 1 ? 'a record of a name' : `${unread.length} records of a name`} cannot be read; a newer version may be there`)
    const record = await new SharedFolder(read).record(name)
    if (record === null && unread.length > 0) throw this.files.failed('lists records of a name that cannot be read')
    return record
  }

  async putRecord(name: string, record: Bytes): Promise<void> {
    const [path, data] = recordFile(name, record)
    const { read } = await this.#records(name)
    const newest = await new SharedFolder(new Map([...read, [path, data]])).record(name)
    if (newest === null || !same(newest, record)) return
    // What was read before may be gone by now, though it is listed.
    const there = read.has(path) ? await this.files.read(path, data.length) : null
    if (there === null || !same(there, data)) {
      await this.files.put(path, data)
      const stored = await this.files.read(path, data.length)
      if (stored === null || !same(stored, data)) throw this.files.failed('did not store a record that it accepted')
    }
    // Lesser records only: one that cannot be read here may be a greater one.
    for (const [other, old] of read) if (other !== path && (await new SharedFolder(new Map([[other, old]])).record(name)) !== null) await this.files.delete(other)
    this.files.forgetList('names')
  }

  #records(name: string): Promise<Small> {
    const isWanted = (path: string): boolean => RECORD.exec(path)?.[1] === name
    return this.#readListed('names', isWanted, () => MOST_RECORD)
  }

  // -- small objects

  async listSmall(boxes: readonly string[]): Promise<ReadonlyMap<string, number>> {
    needBoxes(boxes)
    if (boxes.length === 0) return new Map()
    const { files } = await this.files.list('small')
    return usedSmall([...files].map(([path, { size }]) => [smallOfFile(path), size] as const), boxes)
  }

  async getSmall(names: readonly string[]): Promise<ReadonlyMap<string, Bytes>> {
    needSmallNames(names)
    const listed = await this.listSmall([...new Set(names.map(name => name.split('/')[0] as string))])
    const found = new Map<string, Bytes>()
    let failed: ProviderError | null = null
    await sideBySide([...new Set(names)].filter(name => listed.has(name)), AT_ONCE, async name => {
      try {
        const data = await this.files.read(smallFile(name), listed.get(name) as number)
        if (data !== null && isSmall(name, data)) found.set(name, data)
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error
        // One that is refused does not hide the others; after an outage it is unknown what is there.
        if (!error.refused || failed === null) failed = error
      }
    })
    const problem = failed as ProviderError | null
    if (problem !== null && (!problem.refused || found.size === 0)) throw problem
    return found
  }

  async putSmall(name: string, data: Bytes): Promise<void> {
    need(isSmall(name, data), 'format', 'that is not a small object')
    await this.files.put(smallFile(name), data)
  }

  async removeSmall(names: readonly string[]): Promise<void> {
    needSmallNames(names)
    for (const name of names) await this.files.delete(smallFile(name))
    this.files.forgetList('small')
  }

  // -- packs

  /**
   * The packs that are there, those that stay first, with their indexes. `withLost`: and with the blocks that were found damaged. `at`: when
   * they were listed; `isWhole`: whether all listed indexes were there; `unread`: whether something with the name of a pack cannot be read.
   */
  async #packs(withLost = false): Promise<{ readonly packs: readonly Pack[]; readonly at: number; readonly isWhole: boolean; readonly unread: boolean }> {
    const { files, others, at } = await this.files.list('packs')
    const there = [...files].filter(([path]) => PACK.test(path))
    const partOf = (path: string, kind: string): string => path.replace(/\.car$/, kind)
    const versionOf = (path: string): string => `${files.get(path)?.size} ${files.get(path)?.modified}`
    const keyOf = (path: string): string => `${path} ${versionOf(path)} ${versionOf(partOf(path, '.idx'))}`
    const wanted = there.flatMap(([path]) => [...(this.#indexes.has(keyOf(path)) ? [] : [partOf(path, '.idx')]), ...(withLost ? [partOf(path, '.lost')] : [])]).filter(path => files.has(path))
    const isLeftAlone = (path: string): boolean => performance.now() - (this.#indexFailures.get(`${path} ${versionOf(path)}`) ?? Number.NEGATIVE_INFINITY) < LEFT_ALONE_MS
    const small = await this.#readAll(
      wanted.filter(path => !isLeftAlone(path)),
      files,
      path => (path.endsWith('.idx') ? MOST_INDEX : MOST_LOST_FILE)
    )
    for (const path of small.unread) if (path.endsWith('.idx')) this.#indexFailures.set(`${path} ${versionOf(path)}`, performance.now())
    let kept = [...this.#indexes.values()].reduce((sum, one) => sum + one.length, 0)
    const packs = there.map(([path, { size }]): Pack => {
      const key = keyOf(path)
      const [note, index] = [partOf(path, '.lost'), this.#indexes.get(key) ?? small.read.get(partOf(path, '.idx'))]
      const isUsable = index !== undefined && (this.#indexes.has(key) || (kept + index.length <= MOST_SMALL && indexFits(index, size)))
      if (isUsable && !this.#indexes.has(key)) {
        this.#indexes.set(key, index)
        kept += index.length
      }
      const noted = small.read.get(note)
      const lost = noted !== undefined ? lostIn(noted) : files.has(note) || others.has(note) ? null : new Set<string>()
      return { key, path, size, isGoing: files.has(partOf(path, '.going')) || others.has(partOf(path, '.going')), lost, index: isUsable ? index : null }
    })
    if (small.error !== null && packs.every(pack => pack.index === null)) throw small.error
    const keys = new Set(packs.map(pack => pack.key))
    // They may have been read wrongly.
    for (const [key, when] of [...this.#unproved]) if (performance.now() - when > UNPROVED_MS) for (const by of [this.#whole, this.#scans, this.#false, this.#unproved]) by.delete(key)
    for (const by of this.#byKey()) for (const key of [...by.keys()]) if (!keys.has(key)) by.delete(key)
    return { packs: packs.sort((a, b) => Number(a.isGoing) - Number(b.isGoing)), at, isWhole: small.gone.length === 0, unread: [...others].some(path => PACK.test(path)) }
  }

  /** Add the blocks that these packs hold. One pack that cannot be read does not cost the others. */
  async #takeAll(packs: readonly Pack[], cids: readonly string[], found: Map<string, Bytes>): Promise<{ readonly failed: ProviderError | null; readonly isGone: boolean }> {
    let failed: ProviderError | null = null
    let isGone = false
    const guarded = async (pack: Pack, work: () => Promise<boolean>): Promise<void> => {
      // Each request to a server that does not answer takes its whole time.
      if (failed !== null && !failed.refused) return
      try {
        if (!(await work())) isGone = true
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error
        failed = error
        this.#failures.set(pack.key, { at: performance.now(), error })
      }
    }
    const isLeftAlone = (pack: Pack): boolean => {
      const failure = this.#failures.get(pack.key)
      if (failure === undefined || performance.now() - failure.at > LEFT_ALONE_MS) return false
      failed ??= failure.error
      return true
    }
    const tried = new Set<string>()
    for (;;) {
      const plan = new Map<Pack, Wanted[]>()
      for (const cid of cids) {
        if (found.has(cid)) continue
        const digest = digestOf(cid)
        for (const pack of packs) {
          const place = pack.index === null || tried.has(`${pack.key} ${cid}`) ? null : placeIn(pack.index, digest)
          if (place === null || isLeftAlone(pack)) continue
          tried.add(`${pack.key} ${cid}`)
          if (place.length > MOST_BLOCK || place.at + place.length > pack.size) continue
          plan.set(pack, [...(plan.get(pack) ?? []), { cid, ...place }])
          break
        }
      }
      if (plan.size === 0) break
      await sideBySide([...plan], PACKS_AT_ONCE, ([pack, wanted]) => guarded(pack, () => this.#take(pack, wanted, found)))
    }
    let scanned = 0
    for (const pack of packs) {
      const left = cids.filter(cid => !found.has(cid))
      if (left.length === 0) break
      if ((pack.index !== null && !this.#false.has(pack.key)) || isLeftAlone(pack)) continue
      if (!this.#scans.has(pack.key)) {
        if (pack.size > WHOLE_MOST || scanned + pack.size > MOST_SCANNED) {
          failed ??= this.files.failed(`holds a pack of ${pack.size} bytes without a usable index, which is too large to be read here`)
          continue
        }
        scanned += pack.size
      }
      await guarded(pack, () => this.#scan(pack, left, found))
    }
    return { failed, isGone }
  }

  /** Add blocks that the index of a pack names. False if it is gone. */
  async #take(pack: Pack, wanted: Wanted[], found: Map<string, Bytes>): Promise<boolean> {
    wanted.sort((a, b) => a.at - b.at)
    const requested = (this.#requested.get(pack.key) ?? 0) + wanted.reduce((sum, one) => sum + one.length, 0)
    this.#requested.set(pack.key, requested)
    const isWhole = this.#whole.has(pack.key) || pack.size <= WHOLE_ALWAYS || (pack.size <= WHOLE_MOST && requested * 4 >= pack.size)
    const whole = isWhole ? await this.#wholePack(pack) : null
    if (isWhole && whole === null) return false
    let held = whole === null ? null : { start: 0, data: whole }
    for (const span of whole === null ? spansOf(wanted) : [wanted]) {
      const [first, last] = [span[0] as Place, span.at(-1) as Place]
      const end = last.at + last.length
      // A server without ranges sent all of it.
      if (held === null || held.start > first.at || held.start + held.data.length < end) held = await this.files.part(pack.path, first.at, end, pack.size)
      if (held === null) return false
      for (const { cid, at, length } of span) {
        const block = held.data.slice(at - held.start, at - held.start + length)
        if (isBlockOf(parseCid(cid), block)) found.set(cid, block)
        else {
          this.#false.add(pack.key)
          this.#unproved.set(pack.key, this.#unproved.get(pack.key) ?? performance.now())
        }
      }
    }
    return true
  }

  /** Add the sound blocks of a pack without a usable index. False if it is gone. */
  async #scan(pack: Pack, cids: readonly string[], found: Map<string, Bytes>): Promise<boolean> {
    const known = this.#scans.get(pack.key)
    if (known !== undefined && !cids.some(cid => known.has(digestOf(cid)))) return true
    const data = await this.#wholePack(pack)
    if (data === null) return false
    const places = known ?? lookedThrough(data)
    this.#scans.set(pack.key, places)
    for (const cid of cids) {
      const place = places.get(digestOf(cid))
      const block = place === undefined ? null : data.slice(place.at, place.at + place.length)
      if (block !== null && isBlockOf(parseCid(cid), block)) found.set(cid, block)
    }
    return true
  }

  async #wholePack(pack: Pack): Promise<Bytes | null> {
    const data = this.#whole.get(pack.key) ?? (await this.files.read(pack.path, pack.size))
    if (data === null) return null
    if (!this.#whole.has(pack.key) && hex(sha256(data)) !== PACK.exec(pack.path)?.[1]) this.#unproved.set(pack.key, performance.now())
    this.#whole.delete(pack.key)
    this.#whole.set(pack.key, data)
    let size = [...this.#whole.values()].reduce((sum, one) => sum + one.length, 0)
    for (const [key, one] of [...this.#whole]) {
      if (size <= WHOLE_MOST) break
      this.#whole.delete(key)
      this.#requested.delete(key)
      size -= one.length
    }
    return data
  }

  async #putPack(files: ReadonlyMap<string, Bytes>): Promise<void> {
    const path = [...files.keys()].find(one => PACK.test(one)) as string
    const note = path.replace(/\.car$/, '.lost')
    const isSound = async (): Promise<boolean> => ![...this.#false].some(key => key.startsWith(`${path} `)) && (await this.files.entry(note)) === null
    // The index is in place before its pack.
    for (const [one, data] of [...files].reverse()) await this.files.put(one, data, one === path ? isSound : null)
    for (const by of this.#byKey()) for (const key of [...by.keys()]) if (key.startsWith(`${path} `)) by.delete(key)
    // These blocks are stored again, so what was noted of their pack is over.
    for (const one of [path.replace(/\.car$/, '.going'), note]) if ((await this.files.entry(one)) !== null) await this.files.delete(one)
    this.files.forgetList('packs')
  }

  // -- small files

  /** Read listed files whose names prove their bytes. Those that are gone are listed again; `unread`: those that cannot be read. */
  async #readListed(folder: 'pins' | 'names', isWanted: (path: string) => boolean, most: (path: string) => number): Promise<Small> {
    for (let attempt = 1; ; attempt++) {
      const { files, others } = await this.files.list(folder)
      const keyOf = (path: string): string => `${path} ${files.get(path)?.size} ${files.get(path)?.modified}`
      const keys = new Set([...files.keys()].map(keyOf))
      for (const key of [...this.#small.keys()]) if (key.startsWith(`${folder}/`) && !keys.has(key)) this.#small.delete(key)
      const wanted = [...files.keys()].filter(isWanted)
      const known = wanted.flatMap(path => (this.#small.has(keyOf(path)) ? [[path, this.#small.get(keyOf(path)) as Bytes] as const] : []))
      const small = await this.#readAll(
        wanted.filter(path => !this.#small.has(keyOf(path))),
        files,
        most
      )
      if (small.gone.length > 0 && attempt < LISTS) {
        this.files.forgetList(folder)
        continue
      }
      for (const [path, data] of small.read) if (isProved(path, data)) this.#small.set(keyOf(path), data)
      const read = new Map([...known, ...small.read])
      if (small.error !== null && read.size === 0) throw small.error
      const unproved = folder === 'names' ? [...small.read].filter(([path, data]) => !isProved(path, data)).map(([path]) => path) : []
      for (const path of unproved) read.delete(path)
      return { ...small, read, unread: [...small.unread, ...small.gone, ...unproved, ...[...others].filter(isWanted)] }
    }
  }

  /** Read whole files side by side. `gone`: those that are not there in the listed size; `error`: of one that could not be read. */
  async #readAll(paths: readonly string[], files: Listing['files'], most: (path: string) => number): Promise<Small> {
    const read = new Map<string, Bytes>()
    const gone: string[] = []
    const unread: string[] = []
    let error: ProviderError | null = null
    let size = 0
    await sideBySide(paths, AT_ONCE, async path => {
      const file = files.get(path) as FileInfo
      size += file.size
      if (file.size > most(path) || size > MOST_SMALL) return void unread.push(path)
      try {
        const data = await this.files.read(path, file.size)
        if (data === null) gone.push(path)
        else read.set(path, data)
      } catch (problem) {
        if (!(problem instanceof ProviderError)) throw problem
        unread.push(path)
        error = problem
      }
    })
    return { read, gone, unread, error }
  }
}

/** Whether the name of a record or pin proves its bytes. */
function isProved(path: string, data: Bytes): boolean {
  const [, , tag] = RECORD.exec(path) ?? []
  if (tag !== undefined) return tagOf(data) === tag
  if (PIN_LIST.test(path)) return path.includes(hex(sha256(data)))
  const pin = unlessRefused(() => readPin(data))
  const [, cid, pinTag] = PIN.exec(path) ?? []
  return pin !== null && pin.cid === cid && tagOf(pin.name) === pinTag
}

/** A file that a provider does not send is not there. */
function unlessAnswered(error: unknown): null {
  if (error instanceof ProviderError) return null
  throw error
}

/** Whether each line of a list is a pin. */
function areLinesPins(data: Bytes): boolean {
  return [...linesOf(data)].every(line => line.length === 0 || unlessRefused(() => readPin(line)) !== null)
}

/** Do work on all items, so many at once. */
async function sideBySide<Item>(items: readonly Item[], most: number, work: (item: Item) => Promise<void>): Promise<void> {
  const left = [...items].reverse()
  const worker = async (): Promise<void> => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, worker))
}

/** Group places that are close together. */
function spansOf<T extends Place>(places: readonly T[]): T[][] {
  const spans: T[][] = []
  for (const place of places) {
    const before = spans.at(-1)?.at(-1)
    if (before !== undefined && place.at - (before.at + before.length) <= GAP) spans.at(-1)?.push(place)
    else spans.push([place])
  }
  return spans
}
