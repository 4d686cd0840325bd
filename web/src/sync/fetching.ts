/** Trees brought here block by block, each checked; from whichever reader gives them. */

import { type Blocks, textOf } from '../core/blocks.ts'
import { type Bytes, need, unlessRefused } from '../core/bytes.ts'
import { DAG_PB, isBlockOf, parseCid } from '../core/cid.ts'
import { ProviderError, type Reader } from './provider.ts'

const MOST_BLOCK = 2 << 20
const AT_ONCE = 500
/** Blocks with which a device knows who belongs to a memory, and little of what is in it: the rest comes in one answer where somebody gives that. */
const FEW = 64
const MOST_BLOCKS = 1_000_000
/** What shows whose version a root is: its ring, its commit, the records of an anchor. */
const SHOWING = /^(keyring\.json|head\.ipm|.+\.ipns)$/
/** Bytes that may be brought to show it of all roots of a list, and blocks that are asked for together. */
const MOST_SHOWING = 64 << 20
const SHOWING_AT_ONCE = 16

/** What became of an attempt to bring trees here. */
export type Fetched = {
  /** Blocks that nobody gave: nodes, and raw blocks. */
  readonly missingNodes: readonly string[]
  readonly missingRaw: readonly string[]
  /** Readers that did not answer; what is missing may be there. */
  readonly silent: readonly ProviderError[]
  readonly brought: readonly string[]
}

/** Bring all below some roots here. `whole`: CIDs below which nothing is missing; it grows by the roots that are whole now. */
export async function fetchTrees(roots: readonly string[], blocks: Blocks, readers: readonly Reader[], whole: Set<string>): Promise<Fetched> {
  const seen = new Set<string>()
  const silent = new Map<string, ProviderError>()
  const missingNodes: string[] = []
  const missingRaw: string[] = []
  const brought: string[] = []
  let next = roots.filter(root => !whole.has(root))
  const asked = next
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
  if (missingNodes.length + missingRaw.length === 0) for (const root of asked) whole.add(root)
  return { missingNodes, missingRaw, silent: [...silent.values()], brought }
}

/** Bring here what shows whose versions some roots are, and no more: who lists them may be anybody. */
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

/** A tree in one answer of the first that gives it; only blocks that one before them links to are taken. */
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

/** Checked blocks from whoever has them; `silent` gets who did not answer. */
export async function fetchBlocks(cids: readonly string[], readers: readonly Reader[], silent: Map<string, ProviderError>): Promise<Map<string, Bytes>> {
  const found = new Map<string, Bytes>()
  for (const reader of readers) {
    const wanted = cids.filter(cid => !found.has(cid))
    for (let at = 0; at < wanted.length && !silent.has(reader.name); at += AT_ONCE) {
      try {
        const part = wanted.slice(at, at + AT_ONCE)
        const given = await reader.blocks(part)
        for (const cid of part) {
          const data = given.get(cid)
          if (data !== undefined && data.length <= MOST_BLOCK && isBlockOf(parseCid(cid), data)) found.set(cid, data)
        }
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error
        silent.set(reader.name, error)
      }
    }
  }
  return found
}

/** Everything below a root that is here, itself included. `holes` gets what it names and is not here. */
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
