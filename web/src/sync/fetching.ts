/** Fetch trees block by block from any reader; each block is checked. */

import { type Blocks, textOf } from '../core/blocks.ts'
import { type Bytes, hex, need, unlessRefused } from '../core/bytes.ts'
import { DAG_PB, isBlockOf, parseCid } from '../core/cid.ts'
import { ProviderError, type Reader } from './provider.ts'

const MOST_BLOCK = 2 << 20
const AT_ONCE = 500
/**
 * Number of blocks that identify the members of a vault and little of its content: the rest comes in one answer, if a reader offers that.
 */
const FEW = 64
const MOST_BLOCKS = 1_000_000
/** Files that show whose version a root is: its ring, its commit, the records of an anchor. */
const SHOWING = /^(keyring\.json|head\.ipm|.+\.ipns)$/
/** Maximum bytes fetched to identify all roots of a list, and number of blocks per request. */
const MOST_SHOWING = 64 << 20
const SHOWING_AT_ONCE = 16

/** The result of fetching trees. */
export type Fetched = {
  /** Blocks that no reader returned: nodes, and raw blocks. */
  readonly missingNodes: readonly string[]
  readonly missingRaw: readonly string[]
  /** Readers that did not answer; they may have the missing blocks. */
  readonly silent: readonly ProviderError[]
  readonly brought: readonly string[]
}

/** Fetch everything below some roots. `whole`: CIDs below which no block is missing; roots that are complete now are added. */
export async function fetchTrees(roots: readonly string[], blocks: Blocks, readers: readonly Reader[], whole: Set<string>): Promise<Fetched> {
  const seen = new Set<string>()
  const silent = new Map<string, ProviderError>()
  const missingNodes: string[] = []
  const missingRaw: string[] = []
  const brought: string[] = []
  let next = roots.filter(root => !whole.has(root))
  const requested = next
  for (const root of next) if (blocks.peek(root) === null && blocks.size < FEW) brought.push(...(await wholeTree(root, blocks, readers, silent)))
  while (next.length > 0) {
    const below: string[] = []
    const wanted: string[] = []
    for (const cid of next) {
      if (seen.has(cid)) continue
      seen.add(cid)
      need(seen.size <= MOST_BLOCKS, 'limit', 'a tree of more than a million blocks')
      if (blocks.peek(cid) === null) wanted.push(cid)
      else below.push(...blocks.links(cid))
    }
    const found = await fetchBlocks(wanted, readers, silent)
    for (const cid of wanted) {
      const data = found.get(cid)
      if (data === undefined) {
        if (parseCid(cid).codec === DAG_PB) missingNodes.push(cid)
        else missingRaw.push(cid)
        continue
      }
      blocks.add(cid, data, true)
      brought.push(cid)
      below.push(...blocks.links(cid))
    }
    next = below.filter(cid => !seen.has(cid) && !whole.has(cid))
  }
  if (missingNodes.length + missingRaw.length === 0) for (const root of requested) whole.add(root)
  return { missingNodes, missingRaw, silent: [...silent.values()], brought }
}

/** Fetch only what identifies some roots: anyone may have listed them. */
export async function fetchTops(roots: readonly string[], blocks: Blocks, readers: readonly Reader[]): Promise<Pick<Fetched, 'silent' | 'brought'>> {
  const silent = new Map<string, ProviderError>()
  const brought: string[] = []
  const seen = new Set<string>()
  let size = 0
  const bring = async (cids: readonly string[]): Promise<readonly string[]> => {
    const news = [...new Set(cids)].filter(cid => !seen.has(cid))
    const wanted = news.filter(cid => blocks.peek(cid) === null)
    for (let at = 0; at < wanted.length && size < MOST_SHOWING; at += SHOWING_AT_ONCE) {
      for (const [cid, data] of await fetchBlocks(wanted.slice(at, at + SHOWING_AT_ONCE), readers, silent)) {
        blocks.add(cid, data)
        brought.push(cid)
        size += data.length
      }
    }
    for (const cid of news) seen.add(cid)
    return news
  }
  const folders = await bring(roots)
  const inside = folders.map(root => unlessRefused(() => blocks.folder(root)) ?? new Map<string, string>())
  let next = inside.flatMap(files => [...files].flatMap(([name, cid]) => (SHOWING.test(name) ? [cid] : [])))
  while (next.length > 0) next = (await bring(next)).flatMap(cid => blocks.links(cid))
  return { silent: [...silent.values()], brought }
}

/** Fetch a tree in one answer from the first reader that offers it; only blocks linked from earlier ones are accepted. */
async function wholeTree(root: string, blocks: Blocks, readers: readonly Reader[], silent: Map<string, ProviderError>): Promise<string[]> {
  for (const reader of readers) {
    if (reader.tree === undefined || silent.has(reader.name)) continue
    try {
      const wanted = new Set([root])
      const taken: string[] = []
      for (const [cid, data] of await reader.tree(root)) {
        const one = textOf(cid)
        if (!wanted.has(one)) continue
        blocks.add(one, data)
        taken.push(one)
        for (const link of blocks.links(one)) wanted.add(link)
      }
      if (taken.length > 0) return taken
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      silent.set(reader.name, error)
    }
  }
  return []
}

/** Fetch checked blocks from any reader; `silent` receives those that did not answer, or only in part. */
export async function fetchBlocks(cids: readonly string[], readers: readonly Reader[], silent: Map<string, ProviderError>): Promise<Map<string, Bytes>> {
  const found = new Map<string, Bytes>()
  const isSilent = (reader: Reader): boolean => silent.has(reader.name) && silent.get(reader.name)?.found === undefined
  // Packs hold blocks by digest: one part of each pack has those of one request.
  const sorted = cids.length <= AT_ONCE ? cids : cids.map(cid => [hex(parseCid(cid).multihash), cid] as const).sort(([a], [b]) => (a < b ? -1 : 1)).map(([, cid]) => cid)
  for (const reader of readers) {
    const wanted = sorted.filter(cid => !found.has(cid))
    for (let at = 0; at < wanted.length && !isSilent(reader); at += AT_ONCE) {
      const part = wanted.slice(at, at + AT_ONCE)
      let received: ReadonlyMap<string, Bytes>
      try {
        received = await reader.blocks(part)
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error
        silent.set(reader.name, error)
        received = error.found ?? new Map()
      }
      for (const cid of part) {
        const data = received.get(cid)
        if (data !== undefined && data.length <= MOST_BLOCK && isBlockOf(parseCid(cid), data)) found.set(cid, data)
      }
    }
  }
  return found
}

/** Return everything below a root that is here, the root included. `holes` receives what is named and not here. */
export function treeOf(root: string, blocks: Blocks, without: ReadonlySet<string> = new Set(), holes = new Set<string>()): Set<string> {
  const out = new Set<string>()
  const left = [root]
  for (let cid = left.pop(); cid !== undefined; cid = left.pop()) {
    if (out.has(cid) || without.has(cid)) continue
    if (blocks.peek(cid) === null) {
      holes.add(cid)
      continue
    }
    out.add(cid)
    left.push(...blocks.links(cid))
  }
  return out
}
