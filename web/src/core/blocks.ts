/** Blocks in memory, each checked against its CID, and their folders and files (FORMAT.md 6): UnixFS over dag-pb, read-only. */

import { type Bytes, join, need, unlessRefused } from './bytes.ts'
import { asVersion1, type Cid, DAG_PB, isBlockOf, parseCid, RAW, rawCid } from './cid.ts'
import { type PbLink, readNode, readUnixFS, type UnixFS, UnixFSType } from './dagpb.ts'

const MOST_BLOCK = 2 << 20
/** Maximum number of nodes between the root of a file or folder and its leaves. */
const MOST_DEPTH = 32

type Node = UnixFS & { readonly links: readonly PbLink[] }

function unixfs(block: Bytes): Node {
  const { links, data } = readNode(block)
  need(data !== null, 'format', 'no UnixFS message')
  const it = readUnixFS(data)
  need(it.type !== UnixFSType.symlink && it.type !== UnixFSType.metadata, 'format', 'a symbolic link or something unknown')
  return { ...it, links }
}

/** Cached facts about a block, computed once, since its bytes do not change. */
type Held = { readonly data: Bytes; cid: Cid | null; isSound: boolean | null; links: readonly string[] | null; folder: ReadonlyMap<string, string> | null | undefined }

/** The form of nearly all CIDs of blocks; such a text is the only one for its CID. */
const USUAL = /^baf(?:ybei|krei)[a-z2-7]{52}$/
const USUAL_RAW = 'bafkrei'

export class Blocks {
  readonly #held = new Map<string, Held>()

  /** CIDs of the blocks here, as version 1. */
  cids(): IterableIterator<string> {
    return this.#held.keys()
  }

  get size(): number {
    return this.#held.size
  }

  /** `isSound`: the bytes were already checked against the CID. */
  add(cid: string, data: Bytes, isSound: true | null = null): void {
    const name = textOf(cid)
    if (this.#held.get(name)?.data !== data) this.#held.set(name, { data, cid: null, isSound, links: null, folder: undefined })
  }

  remove(cid: string): void {
    this.#held.delete(textOf(cid))
  }

  /** The bytes of a CID of version 1 as they were added, unchecked; null if absent. */
  peek(cid: string): Bytes | null {
    return this.#held.get(cid)?.data ?? null
  }

  /** CIDs linked from a block, as version 1, if it is a dag-pb node and here. */
  links(cid: string): readonly string[] {
    if (cid.startsWith(USUAL_RAW)) return []
    const held = this.#held.get(cid)
    if (held === undefined) return []
    held.links ??= linksOf(cid, held.data)
    return held.links
  }

  /** The bytes of a CID; refused as `missing` if absent or damaged. */
  get(cidText: string): { codec: number; data: Bytes } {
    const held = this.#held.get(textOf(cidText))
    need(held !== undefined, 'missing', `${cidText} is nowhere`)
    held.cid ??= asVersion1(parseCid(cidText))
    held.isSound ??= held.data.length <= MOST_BLOCK && isBlockOf(held.cid, held.data)
    need(held.isSound, 'missing', `${cidText} is damaged`)
    return { codec: held.cid.codec, data: held.data }
  }

  /** An object by the hash of its bytes. */
  object(hash: string): Bytes {
    return this.get(rawCid(hash).text).data
  }

  /** The same unchecked, for sealed objects, which are authenticated when opened; refused as `missing`. */
  sealedObject(hash: string): Bytes {
    const data = this.peek(rawCid(hash).text)
    need(data !== null, 'missing', `the object ${hash} is nowhere`)
    return data
  }

  /**
   * The names of a folder with their CIDs; null if the CID is not a folder. A sharded folder is read again each time, since its parts may
   * have changed.
   */
  folder(cidText: string): ReadonlyMap<string, string> | null {
    const { codec, data } = this.get(cidText)
    if (codec !== DAG_PB) return null
    const held = this.#held.get(textOf(cidText)) as Held
    if (held.folder !== undefined) return held.folder
    const node = unixfs(data)
    const found: [string, string][] = []
    if (node.type === UnixFSType.folder) found.push(...node.links.map((link): [string, string] => [link.name, asVersion1(link.cid).text]))
    else if (node.type === UnixFSType.shard) this.#shard(node, found, 0)
    else return (held.folder = null)
    const out = new Map(found)
    need(out.size === found.length, 'format', 'a name twice in a folder')
    if (node.type === UnixFSType.folder) held.folder = out
    return out
  }

  #shard(node: Node, found: [string, string][], depth: number): void {
    need(node.fanout !== null && node.fanout > 0n && node.fanout <= 1024n && depth < MOST_DEPTH, 'format', 'a shard of another form')
    const digits = Number(node.fanout - 1n).toString(16).length
    for (const link of node.links) {
      need(link.name.length >= digits, 'format', 'a link of a shard without its prefix')
      const cid = asVersion1(link.cid).text
      if (link.name.length > digits) found.push([link.name.slice(digits), cid])
      else this.#shard(unixfs(this.get(cid).data), found, depth + 1)
    }
  }

  /** The bytes of a file. */
  file(cidText: string, depth = 0): Bytes {
    const { codec, data } = this.get(cidText)
    if (codec === RAW) return data
    const node = unixfs(data)
    need((node.type === UnixFSType.file || node.type === UnixFSType.raw) && depth < MOST_DEPTH, 'format', 'not a file')
    need(node.blocksizes.length === node.links.length, 'format', 'sizes and links differ')
    return join(node.data ?? [], ...node.links.map(link => this.file(asVersion1(link.cid).text, depth + 1)))
  }

  /** The CID at a path below a folder; null if absent. */
  at(root: string, path: string): string | null {
    let here: string | null = root
    for (const part of path.split('/')) {
      here = this.folder(here)?.get(part) ?? null
      if (here === null) return null
    }
    return here
  }

  /** The file at a path; refused as `missing` if unavailable. */
  read(root: string, path: string): Bytes {
    const cid = this.at(root, path)
    need(cid !== null, 'missing', `no ${path} under ${root}`)
    return this.file(cid)
  }
}

/** A CID as version 1. */
export const textOf = (cid: string): string => (USUAL.test(cid) ? cid : asVersion1(parseCid(cid)).text)

/** CIDs linked from a block, if it is a dag-pb node. */
export function linksOf(cid: string, data: Bytes): readonly string[] {
  if (parseCid(cid).codec !== DAG_PB) return []
  return unlessRefused(() => readNode(data).links.map(link => asVersion1(link.cid).text)) ?? []
}
