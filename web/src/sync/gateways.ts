/** Trustless gateways, which return blocks by CID, and delegated routing, which resolves names: enough for a page to read a vault. */

import { type Bytes, Refused } from '../core/bytes.ts'
import { readCar } from '../core/car.ts'
import { type Fetch, Http } from './http.ts'
import { type NameServer, type Provider, ProviderError, type Reader } from './provider.ts'

const RAW = 'application/vnd.ipld.raw'
const CAR = 'application/vnd.ipld.car'
const RECORD = 'application/vnd.ipfs.ipns-record'
const AT_ONCE = 8
const MOST_BLOCK = 2 << 20
const MOST_RECORD = 10 << 10
/** Statuses of a gateway that does not have a block, or did not find it in time. */
const NOT_HERE = [404, 410, 412, 451, 504]

/** A trustless gateway. `url`: without a final slash. */
export function gateway(url: string, fetch: Fetch): Provider {
  const base = url.replace(/\/+$/, '')
  const name = `gateway:${base}`
  const http = new Http(name, fetch)
  /** Set to false once it sends more than a tree may have. */
  let givesTrees = true
  const reader: Reader = {
    name,
    async blocks(cids) {
      const found = new Map<string, Bytes>()
      let failed: unknown = null
      const left = [...cids]
      const work = async (): Promise<void> => {
        for (let cid = left.pop(); cid !== undefined && failed === null; cid = left.pop()) {
          try {
            const answer = await http.ask(`${base}/ipfs/${cid}?format=raw`, { headers: { Accept: RAW }, allow: NOT_HERE, what: 'get a block' })
            if (answer.ok) found.set(cid, await http.bytes(answer, MOST_BLOCK))
          } catch (error) {
            failed = error
          }
        }
      }
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, cids.length) }, work))
      if (failed !== null && found.size === 0) throw failed
      return found
    },
    async tree(root) {
      if (!givesTrees) return []
      const answer = await http.ask(`${base}/ipfs/${root}?format=car&dag-scope=all`, { headers: { Accept: CAR }, allow: NOT_HERE, what: 'get a tree' })
      if (!answer.ok) return []
      try {
        return readCar(await http.bytes(answer)).blocks
      } catch (error) {
        // A gateway may end a response early; missing blocks are requested one by one.
        if (error instanceof ProviderError) givesTrees &&= !error.refused
        if (error instanceof Refused || error instanceof ProviderError) return []
        throw error
      }
    }
  }
  return { name, reader }
}

/** A delegated router (HTTP Routing v1): reads names, and puts records, which carry their own proof. */
export function router(url: string, fetch: Fetch): Provider {
  const base = url.replace(/\/+$/, '')
  const name = `routing:${base}`
  const http = new Http(name, fetch)
  const names: NameServer = {
    name,
    async record(ipns) {
      const answer = await http.ask(`${base}/routing/v1/ipns/${ipns}`, { headers: { Accept: RECORD }, allow: [404], what: 'tell where a name leads' })
      const type = (answer.headers.get('Content-Type') ?? '').split(';')[0]?.trim()
      if (answer.status === 200 && type === RECORD) return http.bytes(answer, MOST_RECORD)
      const said = (await http.beginning(answer)).slice(0, 1000)
      // "Not found" requires a server's own statement: plain text, or 404. An HTML page is a portal's or another server's, and not an
      // answer.
      const isPage = type === 'text/html' || /^\s*</.test(said)
      if (!isPage && (answer.status === 404 || /not found/i.test(said))) return null
      throw new ProviderError(name, false, `${name} answered something else than where a name leads: is there a router at that address?`)
    },
    async putRecord(ipns, record) {
      await http.ask(`${base}/routing/v1/ipns/${ipns}`, { method: 'PUT', headers: { 'Content-Type': RECORD }, body: record, what: 'take a name' })
    }
  }
  return { name, names }
}
