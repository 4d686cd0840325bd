/**
 * A Pinata account, written from a page by its v3 API: versions as CARs, which requires a plan that accepts CARs, and lists of them by
 * name.
 *
 * It stores no names and is not read here: names go to a router, and blocks come from gateways. Every upload is a whole tree, since the API
 * cannot tell which blocks are stored. The key is sent only to Pinata's two hosts.
 */

import { isObject } from '../core/bytes.ts'
import { writeCar } from '../core/car.ts'
import { type Fetch, Http } from './http.ts'
import { type BlockStore, type Provider, ProviderError, UNREAD } from './provider.ts'

const API = 'https://api.pinata.cloud/v3/files/public'
const UPLOADS = 'https://uploads.pinata.cloud/v3/files'
/** Maximum pages of one list. */
const MOST_PAGES = 100
/** Maximum bytes of one request; larger ones require another protocol. */
const MOST = 94_371_840
const PENDING = 'pending'
/** Number of checks of an upload that is being processed, and milliseconds between two. */
const LOOKS = 90
const REST = 2000
const PAGE = 100

type Entry = { readonly id: string; readonly cid: string; readonly name: string }

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** `jwt`: a key with the scopes org:files:read and org:files:write. */
export function pinata(jwt: string, fetch: Fetch, rest: (ms: number) => Promise<void> = ms => new Promise(done => setTimeout(done, ms))): Provider {
  const name = 'pinata'
  const http = new Http(name, fetch, { Authorization: `Bearer ${jwt}` })

  const json = async (answer: Response): Promise<Record<string, unknown>> => {
    const said = parsed(await http.text(answer))
    const data = isObject(said) ? said['data'] : null
    if (!isObject(data)) throw new ProviderError(name, false, 'pinata answered something else than its documents say')
    return data
  }
  const entryOf = (value: unknown): Entry | null =>
    isObject(value) && typeof value['id'] === 'string' && (value['cid'] == null || typeof value['cid'] === 'string') ? { id: value['id'], cid: typeof value['cid'] === 'string' ? value['cid'] : PENDING, name: typeof value['name'] === 'string' ? value['name'] : '' } : null
  /** List the entries, newest first. Entries that the service does not filter are removed here. */
  const listed = async (by: { readonly name?: string; readonly cid?: string }): Promise<Entry[]> => {
    const unread = (one: unknown): Entry => ({ id: '', cid: UNREAD, name: isObject(one) && typeof one['name'] === 'string' ? one['name'] : (by.name ?? '') })
    const all: Entry[] = []
    const tokens = new Set<unknown>()
    for (let pageToken: unknown = ''; pageToken !== null; ) {
      tokens.add(pageToken)
      const query = new URLSearchParams({ order: 'DESC', limit: String(PAGE), ...by, ...(pageToken === '' ? {} : { pageToken: String(pageToken) }) })
      try {
        const { files, next_page_token: next } = await json(await http.ask(`${API}?${query}`, { what: 'list what it keeps' }))
        all.push(...(Array.isArray(files) ? files : files == null ? [] : [null]).map(one => entryOf(one) ?? unread(one)))
        pageToken = next === '' ? null : (next ?? null)
      } catch (error) {
        // Of the versions under a name the newest come first.
        if (!(error instanceof ProviderError) || by.name === undefined || all.length === 0) throw error
        pageToken = 0
      }
      if (by.cid !== undefined && all.some(one => one.cid === by.cid)) break
      if (pageToken === null || (typeof pageToken === 'string' && !tokens.has(pageToken) && tokens.size < MOST_PAGES)) continue
      all.push(unread(null))
      break
    }
    return all.filter(one => (by.name === undefined || one.name === by.name) && (by.cid === undefined || one.cid === by.cid))
  }
  const drop = (id: string): Promise<Response> => http.ask(`${API}/${encodeURIComponent(id)}`, { method: 'DELETE', allow: [404], what: 'release a version' })
  /** Return the CID of an upload once it is processed. */
  const settled = async (entry: Entry): Promise<string> => {
    let { cid } = entry
    for (let look = 0; cid === PENDING && look < LOOKS; look++) {
      await rest(REST)
      const answer = await http.ask(`${API}/${encodeURIComponent(entry.id)}`, { allow: [404], what: 'look at an upload' })
      if (answer.status === 404) throw new ProviderError(name, true, 'pinata took the upload and dropped it without a word')
      cid = entryOf(await json(answer))?.cid ?? PENDING
    }
    if (cid === PENDING) throw new ProviderError(name, false, 'pinata is still processing the upload; the next sync looks again')
    return cid
  }

  const store: BlockStore = {
    name,
    takesTrees: true,
    blocks: async () => new Map(),
    async has(cids) {
      const [root] = cids
      // Known only for roots.
      if (cids.length !== 1 || root === undefined) return new Set()
      return new Set((await listed({ cid: root })).map(one => one.cid))
    },
    async put(root, blocks, pinName) {
      const car = writeCar({ roots: [root], blocks })
      if (car.length > MOST) throw new ProviderError(name, true, `pinata takes ${MOST} bytes in one request, this version has ${car.length}: publish it once from a machine with ipfsmem`)
      const body = new FormData()
      const fields = { network: 'public', name: pinName, keyvalues: JSON.stringify({ ipfsmem_root: root, ipfsmem_how: 'car' }), cid_version: 'v1', car: 'true' }
      for (const [field, value] of Object.entries(fields)) body.set(field, value)
      body.set('file', new Blob([car as BlobPart], { type: 'application/vnd.ipld.car' }), `${pinName}.car`)
      const entry = entryOf(await json(await http.ask(UPLOADS, { method: 'POST', body, what: 'store a version (a CAR takes a paid plan)' })))
      if (entry === null) throw new ProviderError(name, false, 'pinata did not say what became of the upload')
      const cid = await settled(entry)
      if (cid === root) return
      await drop(entry.id)
      throw new ProviderError(name, true, `pinata stored ${root} as ${cid}; nothing refers to it`)
    },
    async pin(root) {
      if ((await listed({ cid: root })).length === 0) throw new ProviderError(name, false, 'pinata does not list the version yet')
    }
  }
  return { name, store, pins: async pinName => (await listed({ name: pinName })).map(one => one.cid).filter(cid => cid !== PENDING) }
}
