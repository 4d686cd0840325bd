/** Another ipfsmem that serves its blocks (`ipfsmem serve peer`): read without a token, written with one. */

import { type Bytes, isObject, Refused } from '../core/bytes.ts'
import { readCar, writeCar } from '../core/car.ts'
import { type Fetch, Http } from './http.ts'
import { loadedLater } from './loaded_later.ts'
import { type Block, type BlockStore, type NameServer, type Provider, ProviderError, UNREAD } from './provider.ts'

const MOST_ASKED = 500
const MOST_RECORD = 10 << 10
const RECORD_TYPE = 'application/vnd.ipfs.ipns-record'

/** `url`: of the server, without a final slash. */
export function peer(url: string, token: string | null, fetch: Fetch): Provider {
  const base = url.replace(/\/+$/, '')
  const name = `peer:${base}`
  const http = new Http(name, fetch, token === null ? {} : { Authorization: `Bearer ${token}` })
  const json = async (path: string, value: unknown, what: string): Promise<Record<string, unknown>> => {
    const body = JSON.stringify(value)
    const answer = await http.ask(`${base}${path}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body, what })
    return answerOf(name, await http.text(answer))
  }

  const reader = {
    name,
    async blocks(cids: readonly string[]): Promise<ReadonlyMap<string, Bytes>> {
      const found = new Map<string, Bytes>()
      for (let at = 0; at < cids.length; at += MOST_ASKED) {
        const body = JSON.stringify({ cids: cids.slice(at, at + MOST_ASKED) })
        const answer = await http.ask(`${base}/blocks`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body, what: 'get blocks' })
        for (const [cid, data] of blocksOf(name, await http.bytes(answer))) found.set(cid, data)
      }
      return found
    }
  }
  const names: NameServer = {
    name,
    async record(ipns) {
      const answer = await http.ask(`${base}/routing/v1/ipns/${ipns}`, { headers: { Accept: RECORD_TYPE }, allow: [404], what: 'tell where a name leads' })
      if (answer.status !== 404) return http.bytes(answer, MOST_RECORD)
      // Only a server of ours answers in this form; any other page is not an answer.
      const said = answerOf(name, await http.text(answer))
      if (isObject(said.error) && said.error.reason === 'NOT_FOUND') return null
      throw new ProviderError(name, false, `${name} does not keep names: is there an ipfsmem server at that address?`)
    },
    ...(token === null
      ? {}
      : {
          async putRecord(ipns: string, record: Bytes) {
            await http.ask(`${base}/routing/v1/ipns/${ipns}`, { method: 'PUT', headers: { 'Content-Type': RECORD_TYPE }, body: record, what: 'take a name' })
          }
        })
  }
  const store: BlockStore = {
    ...reader,
    async has(cids) {
      const found = new Set<string>()
      for (let at = 0; at < cids.length; at += MOST_ASKED) {
        const { cids: there } = await json('/has', { cids: cids.slice(at, at + MOST_ASKED) }, 'list the stored blocks')
        if (Array.isArray(there)) for (const cid of there) found.add(String(cid))
      }
      return found
    },
    async put(root, blocks: readonly Block[], pinName) {
      const query = new URLSearchParams({ root, name: pinName })
      const body = writeCar({ roots: [root], blocks })
      const answer = await http.ask(`${base}/car?${query}`, { method: 'POST', headers: { 'Content-Type': 'application/vnd.ipld.car' }, body, what: 'store blocks' })
      const { root: answered } = answerOf(name, await http.text(answer))
      if (answered !== root) throw new ProviderError(name, true, `${name} answered ${answered} for a CAR of ${root}`)
    },
    async pin(root, pinName) {
      await json('/pins', { cid: root, name: pinName }, 'pin')
    }
  }
  const { small } = loadedLater(name, async () => ({ name, small: (await import('./peer_small.ts')).peerSmall(name, base, http) }), { small: true })
  return {
    name,
    reader,
    names,
    ...(small ? { small } : {}),
    ...(token === null ? {} : { store }),
    async pins(pinName) {
      const query = new URLSearchParams({ name: pinName })
      const answer = await http.ask(`${base}/pins?${query}`, { what: 'list pins' })
      const { pins, unread } = answerOf(name, await http.text(answer))
      const all: readonly unknown[] = Array.isArray(pins) ? pins : [null]
      const isWhole = all.every(one => isObject(one) && typeof one['name'] === 'string') && (unread === undefined || (Array.isArray(unread) && unread.length === 0))
      const named = all.flatMap(one => (isObject(one) && one['name'] === pinName ? String(one['cid']) : []))
      return isWhole ? named : [...named, UNREAD]
    }
  }
}

export function answerOf(name: string, text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return value
  } catch {
    // reported below
  }
  throw new ProviderError(name, false, `${name} returned an unknown answer: is there an ipfsmem server at that address?`)
}

export function blocksOf(name: string, car: Bytes): readonly Block[] {
  try {
    return readCar(car).blocks
  } catch (error) {
    if (error instanceof Refused) throw new ProviderError(name, true, `${name} returned an invalid CAR: ${error.message}`)
    throw error
  }
}
