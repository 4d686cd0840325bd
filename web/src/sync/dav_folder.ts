/**
 * The files of a shared folder at a WebDAV server (FORMAT.md 7.5). It stores and reads; it merges no packs and removes only lesser name
 * records and unfinished files of its own.
 *
 * Files are immutable and named by their content, so what was read once stays in memory for as long as it is listed.
 */

import { type Bytes, compareBytes, fromUtf8, hex } from '../core/bytes.ts'
import { isBlockOf, parseCid } from '../core/cid.ts'
import { digestOf, lookedThrough, lostIn, MOST_BLOCK, MOST_LIST, MOST_PIN, MOST_RECORD, PACK, packFiles, PIN, PIN_LIST, type Place, pinFile, readIndex, recordFile, SharedFolder, tagOf } from '../core/folder.ts'
import type { Environment } from '../device/device.ts'
import { type DavEntry, parseListing, pathOf } from './dav_listing.ts'
import { type Fetch, Http } from './http.ts'
import { type Block, type Provider, ProviderError, UNREAD } from './provider.ts'

/** Milliseconds for which a list is used again: a sync asks for the same one several times. */
const LIST_MS = 2000
const MOST_LISTING = 64 << 20
const MOST_INDEX = 64 << 20
const MOST_LOST_FILE = 8 << 20
/** Bytes of small files that are read at once. */
const MOST_SMALL = 256 << 20
/** Bytes of a pack that this client writes. */
const PACK_SIZE = 16 << 20
/** Bytes of packs that are read whole because little of them is not needed, or because they are small. */
const WHOLE_ALWAYS = 1 << 20
const WHOLE_MOST = 64 << 20
/** Bytes of packs without a usable index that are looked through. */
const MOST_SCANNED = 256 << 20
/** Bytes between two wanted blocks that are read along. */
const GAP = 64 << 10
const AT_ONCE = 6
/** Milliseconds within which a pack that was put before need not be put again. */
const CLOSE_MS = 3_600_000
const PLACINGS = 4
const TEMPORARY = '.new-'
const PROPFIND = '<?xml version="1.0" encoding="utf-8"?>\n<propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getlastmodified/></prop></propfind>'
const UNREACHED = ': it is unreachable, or does not allow pages of this origin (CORS)'

type Folder = 'packs' | 'pins' | 'names'
/** Sizes of files by path, and paths of entries that cannot be read. */
type Listing = { readonly files: ReadonlyMap<string, number>; readonly others: ReadonlySet<string> }
type Pack = { readonly path: string; readonly size: number; readonly isGoing: boolean; readonly lost: ReadonlySet<string>; readonly places: ReadonlyMap<string, Place> | null }

/** `url`: of the folder, with a slash at its end. `account`: `user:password`, or null. */
export function davFolder(name: string, url: URL, account: string | null, fetch: Fetch, environment: Environment): Provider {
  const folder = new DavFolder(name, url, account, fetch, environment)
  const reader = { name, blocks: (cids: readonly string[]) => folder.blocks(cids) }
  return {
    name,
    reader,
    names: { name, record: one => folder.record(one), putRecord: (one, record) => folder.putRecord(one, record) },
    store: { ...reader, has: cids => folder.has(cids), put: (root, blocks) => folder.put(root, blocks), pin: (root, pinName) => folder.pin(root, pinName) },
    pins: pinName => folder.pins(pinName)
  }
}

class DavFolder {
  readonly #http: Http
  readonly #lists = new Map<Folder, { readonly at: number; readonly listing: Promise<Listing> }>()
  /** Folders that were there: one that is gone then is not an empty one. */
  readonly #seen = new Set<Folder>()
  /** Content of small files by path and size; null if it could not be read. */
  #files = new Map<string, Promise<Bytes | null>>()
  #indexes = new Map<string, ReadonlyMap<string, Place> | null>()
  /** Packs that were read whole, the oldest first, and bytes requested of the others. */
  readonly #whole = new Map<string, Bytes>()
  readonly #requested = new Map<string, number>()
  /** Packs whose index named something that is not there, and the blocks of packs that were looked through. */
  readonly #false = new Set<string>()
  readonly #scans = new Map<string, ReadonlyMap<string, Place>>()
  #scanned = 0
  /** Whether the target of a rename has a host: a server behind a TLS proxy may refuse the scheme that it does not see. */
  #hasFullTarget = true

  constructor(
    readonly name: string,
    readonly url: URL,
    account: string | null,
    fetch: Fetch,
    readonly environment: Environment
  ) {
    const basic = account === null ? null : btoa(String.fromCharCode(...new TextEncoder().encode(account)))
    this.#http = new Http(name, fetch, basic === null ? {} : { Authorization: `Basic ${basic}` }, UNREACHED)
  }

  // -- the parts of a provider

  async blocks(cids: readonly string[]): Promise<ReadonlyMap<string, Bytes>> {
    const found = new Map<string, Bytes>()
    const left = (): string[] => cids.filter(cid => !found.has(cid))
    let failed: ProviderError | null = null
    const from = async (pack: Pack, take: (pack: Pack, cids: readonly string[], found: Map<string, Bytes>) => Promise<void>): Promise<void> => {
      const wanted = left()
      if (wanted.length === 0) return
      try {
        await take.call(this, pack, wanted, found)
      } catch (error) {
        // One pack that cannot be read does not cost the others.
        if (!(error instanceof ProviderError)) throw error
        failed = error
      }
    }
    // Another device may have merged packs since they were listed.
    for (let attempt = 0; attempt < 2; attempt++) {
      const packs = await this.#packs()
      for (const pack of packs) await from(pack, this.#take)
      for (const pack of packs) if (pack.places === null || this.#false.has(pack.path)) await from(pack, this.#scan)
      if (left().length === 0 || this.#lists.has('packs')) break
    }
    if (failed !== null && found.size === 0) throw failed
    return found
  }

  async has(cids: readonly string[]): Promise<ReadonlySet<string>> {
    const packs = (await this.#packs(true)).filter(pack => !pack.isGoing && !this.#false.has(pack.path))
    return new Set(
      cids.filter(cid => {
        const digest = digestOf(cid)
        return packs.some(pack => pack.places?.has(digest) === true && !pack.lost.has(digest))
      })
    )
  }

  async put(root: string, blocks: readonly Block[]): Promise<void> {
    let part: Block[] = []
    let size = 0
    for (const block of [...blocks, null]) {
      if (part.length > 0 && (block === null || size + block[1].length > PACK_SIZE)) {
        await this.#putPack(packFiles(root, part))
        part = []
        size = 0
      }
      if (block === null) break
      part.push(block)
      size += block[1].length
    }
  }

  async pin(root: string, pinName: string): Promise<void> {
    if ((await this.pins(pinName)).includes(root)) return
    await this.#put(...pinFile({ cid: root, created: this.environment.now(), name: pinName }))
  }

  /** The roots under a name, newest first. A list that cannot be read may hold others. */
  async pins(pinName: string): Promise<readonly string[]> {
    const { files, others } = await this.#list('pins')
    const wanted = [...files].filter(([path]) => PIN_LIST.test(path) || PIN.exec(path)?.[2] === tagOf(pinName))
    const read = await this.#readAll(wanted, path => (PIN_LIST.test(path) ? MOST_LIST : MOST_PIN))
    const unread = [...wanted.map(([path]) => path).filter(path => PIN_LIST.test(path) && !read.has(path)), ...[...others].filter(path => PIN_LIST.test(path) || PIN.exec(path)?.[2] === tagOf(pinName))]
    return [...new SharedFolder(read, this.environment.now()).pins(pinName).map(pin => pin.cid), ...unread.map(() => UNREAD)]
  }

  async record(name: string): Promise<Bytes | null> {
    return new SharedFolder(await this.#records(name)).record(name)
  }

  async putRecord(name: string, record: Bytes): Promise<void> {
    const [path, data] = recordFile(name, record)
    const others = await this.#records(name)
    if (!others.has(path)) await this.#put(path, data)
    const newest = await new SharedFolder(new Map([...others, [path, data]])).record(name)
    if (newest === null || hex(newest) !== hex(record)) return
    // Lesser records only: one that cannot be read here may be a greater one.
    for (const [other, old] of others) if (other !== path && (await new SharedFolder(new Map([[other, old]])).record(name)) !== null) await this.#delete(other)
    this.#lists.delete('names')
  }

  async #records(name: string): Promise<ReadonlyMap<string, Bytes>> {
    const { files } = await this.#list('names')
    return this.#readAll(
      [...files].filter(([path]) => path.startsWith(`names/${name}.`)),
      () => MOST_RECORD
    )
  }

  // -- packs

  /** The packs that are there, those that stay first, with their indexes. `withLost`: and with the blocks that were found damaged. */
  async #packs(withLost = false): Promise<readonly Pack[]> {
    const { files } = await this.#list('packs')
    const there = [...files].filter(([path]) => PACK.test(path))
    const partOf = (path: string, kind: string): [string, number] | null => {
      const part = path.replace(/\.car$/, kind)
      return files.has(part) ? [part, files.get(part) as number] : null
    }
    const small = await this.#readAll(
      there.flatMap(([path]) => [partOf(path, '.idx'), withLost ? partOf(path, '.lost') : null].filter(one => one !== null)),
      path => (path.endsWith('.idx') ? MOST_INDEX : MOST_LOST_FILE),
      path => !this.#indexes.has(indexKey(path, files))
    )
    const kept = new Map<string, ReadonlyMap<string, Place> | null>()
    const packs = there.map(([path, size]): Pack => {
      const index = partOf(path, '.idx')
      const key = indexKey(path.replace(/\.car$/, '.idx'), files)
      const data = index === null ? undefined : small.get(index[0])
      const places = this.#indexes.get(key) ?? (data === undefined ? null : readIndex(data, size))
      if (places !== null) kept.set(key, places)
      return { path, size, isGoing: partOf(path, '.going') !== null, lost: lostIn(small.get(path.replace(/\.car$/, '.lost')) ?? new Uint8Array()), places }
    })
    this.#indexes = kept
    for (const path of [...this.#whole.keys()]) if (!files.has(path)) this.#whole.delete(path)
    return packs.sort((a, b) => Number(a.isGoing) - Number(b.isGoing))
  }

  /** Add the blocks of a pack that its index names. One with a false index is looked through later. */
  async #take(pack: Pack, cids: readonly string[], found: Map<string, Bytes>): Promise<void> {
    const wanted = cids.flatMap(cid => {
      const place = pack.places?.get(digestOf(cid))
      return place === undefined || place.length > MOST_BLOCK || place.at + place.length > pack.size ? [] : [{ cid, ...place }]
    })
    if (wanted.length === 0) return
    wanted.sort((a, b) => a.at - b.at)
    const requested = (this.#requested.get(pack.path) ?? 0) + wanted.reduce((sum, one) => sum + one.length, 0)
    this.#requested.set(pack.path, requested)
    const isWhole = this.#whole.has(pack.path) || pack.size <= WHOLE_ALWAYS || (pack.size <= WHOLE_MOST && requested * 4 >= pack.size)
    const spans = isWhole ? [wanted] : spansOf(wanted)
    for (const span of spans) {
      const start = isWhole ? 0 : (span[0] as Place).at
      const last = span.at(-1) as Place
      const data = isWhole ? await this.#wholePack(pack) : await this.#range(pack, start, last.at + last.length)
      if (data === null) return
      for (const { cid, at, length } of span) {
        const block = data.slice(at - start, at - start + length)
        if (isBlockOf(parseCid(cid), block)) found.set(cid, block)
        else this.#false.add(pack.path)
      }
    }
  }

  /** Add the sound blocks of a pack without a usable index. */
  async #scan(pack: Pack, cids: readonly string[], found: Map<string, Bytes>): Promise<void> {
    let places = this.#scans.get(pack.path)
    if (places !== undefined && !cids.some(cid => places?.has(digestOf(cid)))) return
    if (places === undefined) {
      if (pack.size > WHOLE_MOST || this.#scanned + pack.size > MOST_SCANNED) return
      this.#scanned += pack.size
    }
    const data = await this.#wholePack(pack)
    if (data === null) return
    this.#scans.set(pack.path, (places ??= lookedThrough(data)))
    for (const cid of cids) {
      const place = places.get(digestOf(cid))
      if (place !== undefined) found.set(cid, data.slice(place.at, place.at + place.length))
    }
  }

  async #wholePack(pack: Pack): Promise<Bytes | null> {
    const held = this.#whole.get(pack.path)
    if (held !== undefined) return held
    const data = await this.#read(pack.path, pack.size, WHOLE_MOST)
    if (data === null) {
      this.#lists.delete('packs')
      return null
    }
    this.#whole.set(pack.path, data)
    let size = [...this.#whole.values()].reduce((sum, one) => sum + one.length, 0)
    for (const [path, one] of this.#whole) {
      if (size <= WHOLE_MOST) break
      this.#whole.delete(path)
      size -= one.length
    }
    return data
  }

  async #range(pack: Pack, start: number, end: number): Promise<Bytes | null> {
    const answer = await this.#ask('GET', pack.path, { allow: [404, 410, 416], headers: { Range: `bytes=${start}-${end - 1}` } })
    if (answer.status === 206) {
      const data = await this.#http.bytes(answer, end - start)
      return data.length === end - start ? data : null
    }
    if (answer.status === 200) return (await this.#http.bytes(answer, pack.size)).slice(start, end)
    this.#lists.delete('packs')
    return null
  }

  async #putPack(files: ReadonlyMap<string, Bytes>): Promise<void> {
    // The index is in place before its pack.
    for (const [path, data] of [...files].reverse()) await this.#put(path, data)
    const pack = [...files.keys()].find(path => PACK.test(path)) as string
    // These blocks are stored again, so what was noted of their pack is over.
    for (const kind of ['.going', '.lost']) {
      const note = pack.replace(/\.car$/, kind)
      if ((await this.#entry(note)) !== null) await this.#delete(note)
    }
    this.#lists.delete('packs')
  }

  // -- files

  /** Read small files side by side; those that are gone, too large or of another size than listed are left out. */
  async #readAll(files: readonly (readonly [path: string, size: number])[], most: (path: string) => number, isWanted: (path: string) => boolean = () => true): Promise<Map<string, Bytes>> {
    const read = new Map<string, Bytes>()
    const left = files.filter(([path, size]) => size <= most(path) && isWanted(path))
    if (left.reduce((sum, [, size]) => sum + size, 0) > MOST_SMALL) throw this.#failed('lists more than can be read')
    const work = async (): Promise<void> => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) {
        const [path, size] = next
        const key = `${path} ${size}`
        const reading = this.#files.get(key) ?? this.#read(path, size, most(path))
        // Indexes are kept parsed, and a note of lost blocks may be replaced by another one.
        if (!path.startsWith('packs/')) this.#files.set(key, reading)
        const data = await reading.catch((error: unknown) => {
          this.#files.delete(key)
          throw error
        })
        if (data === null) this.#files.delete(key)
        else read.set(path, data)
      }
    }
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, left.length) }, work))
    return read
  }

  /** Read a whole file; null if it is gone, or not of the listed size. */
  async #read(path: string, size: number, most: number): Promise<Bytes | null> {
    const answer = await this.#ask('GET', path, { allow: [404, 410] })
    if (!answer.ok) return null
    const data = await this.#http.bytes(answer, Math.min(most, size))
    return data.length === size ? data : null
  }

  #ask(method: string, path: string, { headers = {}, body, allow = [] }: { readonly headers?: Readonly<Record<string, string>>; readonly body?: Bytes | string; readonly allow?: readonly number[] } = {}): Promise<Response> {
    const what = { GET: 'read', PUT: 'store', MOVE: 'rename', DELETE: 'delete', MKCOL: 'create', PROPFIND: 'list' }[method] as string
    return this.#http.ask(this.#at(path), { method, headers, allow, what: `${what} ${path === '' ? 'the folder' : path}`, ...(body === undefined ? {} : { body }) })
  }

  #at(path: string): string {
    return this.url.href + path.split('/').map(encodeURIComponent).join('/')
  }

  /** List a folder; an absent one is empty, as it is made with its first file. */
  #list(folder: Folder): Promise<Listing> {
    const known = this.#lists.get(folder)
    if (known !== undefined && performance.now() - known.at < LIST_MS) return known.listing
    const listing = this.#listNow(folder)
    this.#lists.set(folder, { at: performance.now(), listing })
    listing.catch(() => this.#lists.delete(folder))
    return listing
  }

  async #listNow(folder: Folder): Promise<Listing> {
    const entries = await this.#propfind(`${folder}/`, 1)
    if (entries === null) {
      if (this.#seen.has(folder)) throw this.#failed(`folder ${folder} is gone; sync again in a while`)
      const [above] = (await this.#propfind('', 0)) ?? []
      if (above?.isFolder !== true) throw this.#failed('the folder is not there; create it at the server first, or correct the address')
      return { files: new Map(), others: new Set() }
    }
    const files = new Map<string, number>()
    const others = new Set<string>()
    let isHere = false
    const own = [...pathOf(this.url.href), folder].join('/')
    for (const { path, status, isFolder, size } of entries) {
      const [name = '', parent] = [path.at(-1), path.at(-2)]
      const isSelf = path.join('/') === own
      // A proxy may have changed the path above the folder.
      if (isSelf || (parent !== folder && name === folder)) {
        if (status !== 200 || !isFolder) throw this.#failed(`answered ${status} for the folder ${folder}`)
        isHere = true
      } else if (parent !== folder) throw this.#failed(`lists another folder instead of ${folder}`)
      else if (status === 404 || status === 410 || name.includes('/') || name === '.' || name === '..') continue
      else if (status !== 200 || isFolder || size === null) others.add(`${folder}/${name}`)
      else files.set(`${folder}/${name}`, size)
    }
    if (!isHere) throw this.#failed(`lists files without their folder ${folder}`)
    this.#seen.add(folder)
    for (const key of this.#files.keys()) if (key.startsWith(`${folder}/`) && !files.has(key.slice(0, key.lastIndexOf(' ')))) this.#files.delete(key)
    return { files, others: new Set([...others].filter(path => !files.has(path))) }
  }

  async #propfind(path: string, depth: 0 | 1): Promise<DavEntry[] | null> {
    const answer = await this.#ask('PROPFIND', path, { headers: { Depth: String(depth), 'Content-Type': 'application/xml; charset=utf-8' }, body: PROPFIND, allow: [404, 410] })
    if (!answer.ok) return null
    if (answer.status !== 207) throw this.#failed(`answered ${answer.status} without a list of files; the address must be that of a WebDAV folder`)
    const data = await this.#http.bytes(answer, MOST_LISTING)
    try {
      return parseListing(fromUtf8(data))
    } catch (error) {
      throw this.#failed(`sent an unusable list of files: ${error instanceof Error ? error.message : error}`)
    }
  }

  /** What has a path; null without anything. */
  async #entry(path: string): Promise<DavEntry | null> {
    const entries = await this.#propfind(path, 0)
    const [entry, ...more] = entries ?? []
    if (entry === undefined || entry.status === 404 || entry.status === 410) return null
    if (more.length > 0 || entry.status !== 200 || entry.path.at(-1) !== path.split('/').at(-1)) throw this.#failed(`answered about something else than ${path}`)
    return entry
  }

  /** Put a file under a temporary name, and give it its own without overwriting anything. */
  async #put(path: string, data: Bytes): Promise<void> {
    const [folder = '', name = ''] = path.split('/')
    const temporary = `${folder}/${TEMPORARY}${hex(this.environment.chance(12))}`
    try {
      const sent = { headers: { 'Content-Type': 'application/octet-stream' }, body: data }
      const answer = await this.#ask('PUT', temporary, { ...sent, allow: [404, 409] })
      if (!answer.ok) {
        if (this.#seen.has(folder as Folder)) throw this.#failed(`folder ${folder} is gone; sync again in a while`)
        await this.#ask('MKCOL', `${folder}/`, { allow: [405] })
        await this.#ask('PUT', temporary, sent)
      }
      await this.#place(temporary, path, `${folder}/${TEMPORARY}${name}`, data)
    } catch (error) {
      // It would stay for a day, as after a crash.
      await this.#delete(temporary).catch(() => undefined)
      throw error
    } finally {
      this.#lists.delete(folder as Folder)
    }
  }

  /** Rename a file to its name. A file of that name is hidden first, as by a collection, and removed afterwards. */
  async #place(temporary: string, path: string, hidden: string, data: Bytes): Promise<void> {
    const isPack = PACK.test(path)
    let hides = false
    try {
      let attempt = 0
      for (; attempt < PLACINGS; attempt++) {
        if (await this.#move(temporary, path, data.length)) break
        const [kept, own] = [await this.#entry(path), await this.#entry(temporary)]
        if (own === null) {
          if (kept?.isFolder !== false || kept.size !== data.length) throw this.#failed(`changed while ${path} was stored; sync again`)
          break
        }
        if (kept === null) continue
        if (kept.isFolder) await this.#move(path, `${path.replaceAll('.', '-')}.aside-${hex(this.environment.chance(4))}`)
        else if (await this.#mayStay(path, kept, own, isPack ? null : data)) {
          await this.#delete(temporary)
          break
        } else {
          hides = true
          await this.#hide(path, hidden)
        }
      }
      const there = attempt === PLACINGS || hides ? await this.#entry(path) : null
      if (attempt === PLACINGS || (hides && there?.size !== data.length)) throw this.#failed(`changed while ${path} was stored; sync again`)
    } catch (error) {
      if (hides) await this.#move(hidden, path).catch(() => undefined)
      throw error
    }
    if (hides) await this.#remove(hidden).catch(() => undefined)
  }

  /** Whether a file makes a new one of its name needless: one of the same bytes, or a pack that was put within the hour and lost nothing. */
  async #mayStay(path: string, kept: DavEntry, own: DavEntry, data: Bytes | null): Promise<boolean> {
    if (kept.size === null || kept.size !== own.size) return false
    if (data !== null) {
      const there = await this.#read(path, data.length, data.length)
      return there !== null && compareBytes(there, data) === 0
    }
    const age = kept.modified === null || own.modified === null ? -1 : own.modified - kept.modified
    return age >= 0 && age <= CLOSE_MS && (await this.#entry(path.replace(/\.car$/, '.lost'))) === null
  }

  async #hide(path: string, hidden: string): Promise<void> {
    // A file in both places is a leftover: as long as it is hidden, nobody can hide the other one.
    if ((await this.#move(path, hidden)) || (await this.#entry(path)) === null) return
    await this.#remove(hidden)
    await this.#move(path, hidden)
  }

  /** Rename, never over another file; false if the new name is taken or there was nothing. `size`: by which the file is recognised there. */
  async #move(path: string, to: string, size: number | null = null): Promise<boolean> {
    const ask = (isFull: boolean): Promise<Response> => {
      const target = this.#at(to)
      return this.#ask('MOVE', path, { headers: { Destination: isFull ? target : target.slice(this.url.origin.length), Overwrite: 'F' }, allow: [403, 404, 409, 410, 412, 502] })
    }
    let answer = await ask(this.#hasFullTarget)
    if (answer.status === 502) {
      answer = await ask(!this.#hasFullTarget)
      if (answer.status !== 502) this.#hasFullTarget = !this.#hasFullTarget
    }
    if (answer.status === 201 || answer.status === 204) return true
    if (answer.status === 412) return false
    if (answer.ok) throw this.#failed(`could not rename ${path} completely; sync again`)
    // Nothing was moved, or an earlier attempt was carried out and not answered.
    const there = size === null ? null : await this.#entry(to)
    if (there !== null && !there.isFolder && there.size === size) return true
    if ((await this.#entry(path)) !== null) throw new ProviderError(this.name, true, `${this.name} answered ${answer.status} when asked to rename ${path}`)
    return false
  }

  /** Delete a file; the server would remove a folder with all that is in it. */
  async #delete(path: string): Promise<void> {
    const entry = await this.#entry(path)
    if (entry !== null && !entry.isFolder) await this.#ask('DELETE', path, { allow: [404, 410] })
  }

  /** Delete a hidden file under a name of its own: browsers repeat a DELETE, and by then another file may have that name. */
  async #remove(path: string): Promise<void> {
    const own = `${path.split('/')[0]}/${TEMPORARY}${hex(this.environment.chance(12))}`
    if (await this.#move(path, own)) await this.#delete(own)
  }

  #failed(what: string): ProviderError {
    return new ProviderError(this.name, false, `${this.name} ${what}`)
  }
}

/** An index is known by its name, its size, and that of its pack. */
const indexKey = (path: string, files: ReadonlyMap<string, number>): string => `${path} ${files.get(path)} ${files.get(path.replace(/\.idx$/, '.car'))}`

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
