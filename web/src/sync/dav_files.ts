/** The files of a folder at a WebDAV server: lists, whole files and parts of them, and files put without overwriting anything. */

import { type Bytes, compareBytes, fromUtf8, hex, sha256 } from '../core/bytes.ts'
import { type DavEntry, parseListing, pathOf } from './dav_listing.ts'
import { type Fetch, Http } from './http.ts'
import { ProviderError } from './provider.ts'

/** Milliseconds for which a list is used again: a sync asks for the same one several times. */
const LIST_MS = 2000
const MOST_LISTING = 64 << 20
/** Milliseconds that a list may take. */
const WITHIN_MS = 600_000
/** Milliseconds within which a file that was put before need not be put again. */
const CLOSE_MS = 3_600_000
const PLACINGS = 4
/** Milliseconds within which a rename without an answer may be carried out. */
const IN_DOUBT_MS = 600_000
/** Bytes that a file may have grown since it was listed. */
const GROWN = 64 << 10
const TEMPORARY = '.new-'
const HIDDEN = '.hidden-'
const PROPFIND = '<?xml version="1.0" encoding="utf-8"?>\n<propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getlastmodified/></prop></propfind>'
const UNREACHED = ': it is unreachable, or does not allow pages of this origin (CORS)'
const VERBS = { GET: 'read', PUT: 'store', MOVE: 'rename', DELETE: 'delete', MKCOL: 'create', PROPFIND: 'list' } as const

export type Folder = 'packs' | 'pins' | 'names' | 'small'
export type FileInfo = { readonly size: number; readonly modified: number | null }
/** Files by path, paths of entries that cannot be read, and the time of the list by the clock of `performance`. */
export type Listing = { readonly files: ReadonlyMap<string, FileInfo>; readonly others: ReadonlySet<string>; readonly at: number }
type Sent = { readonly headers?: Readonly<Record<string, string>>; readonly body?: Bytes | string; readonly allow?: readonly number[]; readonly within?: number }

export class DavFiles {
  readonly #http: Http
  readonly #lists = new Map<Folder, { readonly at: number; readonly listing: Promise<Listing> }>()
  /** Folders that were there: one that is gone then is not an empty one. */
  readonly #seen = new Set<Folder>()
  /** Files that this session hid and did not remove; `hash`: of the file that took the name; `at`: when a rename was in doubt. */
  readonly #left = new Map<string, { readonly path: string; readonly size: number; readonly hash: string; readonly at: number }>()
  /** Whether the target of a rename has a host: a server behind a TLS proxy may refuse the scheme that it does not see. */
  #hasFullTarget = true

  /** `url`: of the folder, with a slash at its end. `account`: `user:password`, or null. `chance`: random bytes. */
  constructor(
    readonly name: string,
    readonly url: URL,
    account: string | null,
    fetch: Fetch,
    readonly chance: (size: number) => Bytes
  ) {
    const basic = account === null ? null : btoa(String.fromCharCode(...new TextEncoder().encode(account)))
    this.#http = new Http(name, fetch, basic === null ? {} : { Authorization: `Basic ${basic}` }, UNREACHED)
  }

  /** List a folder; an absent one is empty, as it is made with its first file. */
  list(folder: Folder): Promise<Listing> {
    const known = this.#lists.get(folder)
    if (known !== undefined && performance.now() - known.at < LIST_MS) return known.listing
    const at = performance.now()
    const listing = this.#listNow(folder, at)
    this.#lists.set(folder, { at, listing })
    listing.catch(() => this.#lists.get(folder)?.listing === listing && this.#lists.delete(folder))
    return listing
  }

  /** List a folder anew when it is used next. */
  forgetList(folder: Folder): void {
    this.#lists.delete(folder)
  }

  /** Read a whole file of a listed size; null if it is gone, or of another size. */
  async read(path: string, size: number): Promise<Bytes | null> {
    const answer = await this.#ask('GET', path, { allow: [404, 410] })
    if (!answer.ok) return null
    const data = await this.#http.bytes(answer, size + GROWN)
    return data.length === size ? data : null
  }

  /** Read a part of a file of a listed size, or the whole file from a server without ranges; null if it is gone, or of another size. */
  async part(path: string, start: number, end: number, size: number): Promise<{ readonly start: number; readonly data: Bytes } | null> {
    const answer = await this.#ask('GET', path, { allow: [404, 410, 416], headers: { Range: `bytes=${start}-${end - 1}` } })
    if (answer.status !== 200 && answer.status !== 206) return null
    const isPart = answer.status === 206
    const data = await this.#http.bytes(answer, isPart ? end - start : size)
    return data.length === (isPart ? end - start : size) ? { start: isPart ? start : 0, data } : null
  }

  /** What has a path; null without anything. */
  async entry(path: string): Promise<DavEntry | null> {
    const entries = await this.#propfind(path, 0)
    const [entry, ...more] = entries ?? []
    if (entry === undefined || entry.status === 404 || entry.status === 410) return null
    if (more.length > 0 || entry.status !== 200 || entry.path.at(-1) !== path.split('/').at(-1)) throw this.failed(`answered about something else than ${path}`)
    return entry
  }

  /**
   * Put a file under a temporary name, and give it its own without overwriting anything. `mayStay`: whether a file of the same name and size
   * that was put within the hour makes it needless; null if only one of the same bytes does.
   */
  async put(path: string, data: Bytes, mayStay: (() => Promise<boolean>) | null = null): Promise<void> {
    const [folder = ''] = path.split('/')
    const temporary = `${folder}/${TEMPORARY}${hex(this.chance(12))}`
    try {
      const sent = { headers: { 'Content-Type': 'application/octet-stream' }, body: data }
      const answer = await this.#ask('PUT', temporary, { ...sent, allow: [404, 409] })
      if (!answer.ok) {
        if (this.#seen.has(folder as Folder)) throw this.failed(`folder ${folder} is gone; sync again in a while`)
        const made = await this.#ask('MKCOL', `${folder}/`, { allow: [403, 405, 423] })
        // Apache and rclone refuse so to create a folder that another request creates at the same moment.
        if (made.status === 403 || made.status === 423) await this.#ask('MKCOL', `${folder}/`, { allow: [405] })
        await this.#ask('PUT', temporary, sent)
      }
      await this.#removeLeft(folder).catch(() => undefined)
      await this.#place(temporary, path, data, mayStay)
    } catch (error) {
      // It would stay for a day, as after a crash.
      await this.delete(temporary).catch(() => undefined)
      throw error
    } finally {
      this.#lists.delete(folder as Folder)
    }
  }

  /** Delete a file; the server would remove a folder with all that is in it. */
  async delete(path: string): Promise<void> {
    const entry = await this.entry(path)
    if (entry !== null && !entry.isFolder) await this.#ask('DELETE', path, { allow: [404, 410] })
  }

  failed(what: string): ProviderError {
    return new ProviderError(this.name, false, `${this.name} ${what}`)
  }

  #ask(method: keyof typeof VERBS, path: string, { body, ...sent }: Sent = {}): Promise<Response> {
    return this.#http.ask(this.#at(path), { method, ...sent, what: `${VERBS[method]} ${path === '' ? 'the folder' : path}`, ...(body === undefined ? {} : { body }) })
  }

  #at(path: string): string {
    return this.url.href + path.split('/').map(encodeURIComponent).join('/')
  }

  async #listNow(folder: Folder, at: number): Promise<Listing> {
    const entries = await this.#propfind(`${folder}/`, 1)
    if (entries === null) {
      if (this.#seen.has(folder)) throw this.failed(`folder ${folder} is gone; sync again in a while`)
      const [above] = (await this.#propfind('', 0)) ?? []
      if (above?.isFolder !== true) throw this.failed('the folder is not there; create it at the server first, or correct the address')
      return { files: new Map(), others: new Set(), at }
    }
    const files = new Map<string, FileInfo>()
    const others = new Set<string>()
    let isHere = false
    const own = [...pathOf(this.url.href), folder].join('/')
    for (const { path, status, isFolder, size, modified } of entries) {
      const [name = '', parent] = [path.at(-1), path.at(-2)]
      const isSelf = path.join('/') === own
      // A proxy may have changed the path above the folder.
      if (isSelf || (parent !== folder && name === folder)) {
        if (status !== 200 || !isFolder) throw this.failed(`answered ${status} for the folder ${folder}`)
        isHere = true
      } else if (parent !== folder) throw this.failed(`lists another folder instead of ${folder}`)
      else if (status === 404 || status === 410 || name.includes('/') || name === '.' || name === '..') continue
      else if (status !== 200 || isFolder || size === null) others.add(`${folder}/${name}`)
      else files.set(`${folder}/${name}`, { size, modified })
    }
    if (!isHere) throw this.failed(`lists files without their folder ${folder}`)
    this.#seen.add(folder)
    return { files, others: new Set([...others].filter(path => !files.has(path))), at }
  }

  async #propfind(path: string, depth: 0 | 1): Promise<DavEntry[] | null> {
    const headers = { Depth: String(depth), 'Content-Type': 'application/xml; charset=utf-8' }
    const answer = await this.#ask('PROPFIND', path, { headers, body: PROPFIND, allow: [404, 410], within: WITHIN_MS })
    if (!answer.ok) return null
    if (answer.status !== 207) throw this.failed(`answered ${answer.status} without a list of files; the address must be that of a WebDAV folder`)
    const data = await this.#http.bytes(answer, MOST_LISTING)
    try {
      return parseListing(fromUtf8(data))
    } catch (error) {
      throw this.failed(`sent an unusable list of files: ${error instanceof Error ? error.message : error}`)
    }
  }

  /** Rename a file to its name. A file of that name is hidden first, as by a collection, and removed afterwards. */
  async #place(temporary: string, path: string, data: Bytes, mayStay: (() => Promise<boolean>) | null): Promise<void> {
    const [folder = '', name = ''] = path.split('/')
    // A name for each attempt: one that is carried out late hides nothing that is removed.
    const hidden: string[] = []
    const inDoubt: string[] = []
    const stands = async (): Promise<boolean> => (await this.entry(path))?.size === data.length
    const changed = (): ProviderError => this.failed(`changed while ${path} was stored; sync again`)
    try {
      let attempt = 0
      for (; attempt < PLACINGS; attempt++) {
        if (await this.#move(temporary, path, data.length)) {
          // Some servers accept a file and keep nothing of it.
          if (!(await stands())) throw this.failed(`did not store ${path}, which it accepted`)
          break
        }
        const [kept, own] = [await this.entry(path), await this.entry(temporary)]
        if (own === null) {
          if (kept?.isFolder !== false || kept.size !== data.length) throw changed()
          break
        }
        if (kept === null) continue
        if (kept.isFolder) await this.#move(path, `${path.replaceAll('.', '-')}.aside-${hex(this.chance(4))}`)
        else if (kept.size === own.size && (mayStay === null ? await this.#isSame(path, data) : isClose(kept, own) && (await mayStay()))) {
          await this.delete(temporary)
          break
        } else {
          const aside = `${folder}/${HIDDEN}${hex(this.chance(8))}-${name}`
          hidden.push(aside)
          if (!(await this.#hide(path, aside))) inDoubt.push(aside)
        }
      }
      if (attempt === PLACINGS) throw changed()
      // A rename in doubt may be carried out later, and would hide the new file: its name must be taken by then.
      for (const aside of inDoubt) await this.#take(aside, data)
      if (hidden.length > 0 && !(await this.#isSame(path, data))) throw changed()
      for (const aside of hidden) if (inDoubt.includes(aside) || !(await this.#remove(aside))) this.#left.set(aside, { path, size: data.length, hash: hex(sha256(data)), at: inDoubt.includes(aside) ? performance.now() : Number.NEGATIVE_INFINITY })
      // A repeated rename may have hidden the new file as soon as the name was free.
      if (hidden.length > 0 && !(await stands())) throw changed()
    } catch (error) {
      // The newest first: an older one may be damaged.
      for (const aside of hidden.reverse()) await this.#move(aside, path).catch(() => undefined)
      throw error
    }
  }

  /** Put a file under a name that no other has, without overwriting one that gets it meanwhile. */
  async #take(path: string, data: Bytes): Promise<void> {
    if ((await this.entry(path)) !== null) return
    const temporary = `${path.split('/')[0]}/${TEMPORARY}${hex(this.chance(12))}`
    try {
      await this.#ask('PUT', temporary, { body: data })
      if (await this.#move(temporary, path, data.length)) return
    } catch (error) {
      await this.delete(temporary).catch(() => undefined)
      throw error
    }
    await this.delete(temporary).catch(() => undefined)
  }

  /** Hide a file, by one request. False if it is not known whether that was carried out, or will be. */
  async #hide(path: string, aside: string): Promise<boolean> {
    let answer: Response
    try {
      answer = await this.#askToMove(path, aside, this.#hasFullTarget)
    } catch (error) {
      if (!(error instanceof ProviderError) || error.refused) throw error
      return false
    }
    if (answer.ok || answer.status === 502) return answer.status === 201 || answer.status === 204
    if ((await this.entry(path)) !== null) throw new ProviderError(this.name, true, `${this.name} answered ${answer.status} when asked to rename ${path}`)
    return true
  }

  /** Remove files of a folder that this session hid, where a sound file has the name. */
  async #removeLeft(folder: string): Promise<void> {
    for (const [aside, { path, size, hash, at }] of [...this.#left]) {
      if (!aside.startsWith(`${folder}/`) || performance.now() - at < IN_DOUBT_MS) continue
      const there = await this.read(path, size)
      if (there === null || hex(sha256(there)) !== hash) continue
      if (await this.#remove(aside)) this.#left.delete(aside)
      if ((await this.entry(path)) === null) await this.#move(aside, path)
    }
  }

  async #isSame(path: string, data: Bytes): Promise<boolean> {
    const there = await this.read(path, data.length)
    return there !== null && compareBytes(there, data) === 0
  }

  /** Rename, never over another file; false if the new name is taken or there was nothing. `size`: by which the file is recognised there. */
  async #move(path: string, to: string, size: number | null = null): Promise<boolean> {
    let answer = await this.#askToMove(path, to, this.#hasFullTarget)
    if (answer.status === 502) {
      answer = await this.#askToMove(path, to, !this.#hasFullTarget)
      if (answer.status !== 502) this.#hasFullTarget = !this.#hasFullTarget
    }
    if (answer.status === 201 || answer.status === 204) return true
    if (answer.status === 412) return false
    if (answer.ok) throw this.failed(`could not rename ${path} completely; sync again`)
    if ((await this.entry(path)) !== null) throw new ProviderError(this.name, answer.status !== 502, `${this.name} answered ${answer.status} when asked to rename ${path}`)
    // It is not there any more: an earlier attempt was carried out and not answered, or another device was faster.
    const there = size === null ? null : await this.entry(to)
    return there !== null && !there.isFolder && there.size === size
  }

  #askToMove(path: string, to: string, isFull: boolean): Promise<Response> {
    const target = this.#at(to)
    const headers = { Destination: isFull ? target : target.slice(this.url.origin.length), Overwrite: 'F' }
    return this.#ask('MOVE', path, { headers, allow: [403, 404, 409, 410, 412, 502] })
  }

  /**
   * Delete a hidden file under another name: browsers repeat requests, and by then a repeated MOVE may have hidden another file. False if it is
   * still hidden.
   */
  async #remove(path: string): Promise<boolean> {
    const own = `${path.split('/')[0]}/${TEMPORARY}${hex(this.chance(12))}`
    try {
      if (!(await this.#move(path, own))) return (await this.entry(path)) === null
    } catch {
      return false
    }
    await this.delete(own).catch(() => undefined)
    return true
  }
}

/** Whether a file was put within the hour before another one, by the clock of the server. */
const isClose = (kept: DavEntry, own: DavEntry): boolean => kept.modified !== null && own.modified !== null && own.modified >= kept.modified && own.modified - kept.modified <= CLOSE_MS
