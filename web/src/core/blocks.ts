/** Blocks at hand, each checked against its CID, and the folders and files that they make (FORMAT.md 6): UnixFS over dag-pb, read only. */

import { type Bytes, fromHex, join, need } from './bytes.ts'
import { asVersion1, cidOfHash, DAG_PB, isBlockOf, parseCid, RAW } from './cid.ts'
import { type PbLink, readNode, readUnixFS, type UnixFS, UnixFSType } from './dagpb.ts'

const MOST_BLOCK = 2 << 20
/** Nodes between the root of a file or folder and its leaves. */
const MOST_DEPTH = 32

type Node = UnixFS & { readonly links: readonly PbLink[] }

function unixfs(block: Bytes): Node {
  const { links, data } = readNode(block)
  need(data !== null, 'format', 'no UnixFS message')
  const it = readUnixFS(data)
  need(it.type !== UnixFSType.symlink && it.type !== UnixFSType.metadata, 'format', 'a symbolic link or something unknown')
  return { ...it, links }
}

export class Blocks {
  readonly #held = new Map<string, Bytes>()

  /** CIDs of what is here, as version 1. */
  cids(): IterableIterator<string> {
    return this.#held.keys()
  }

  get isEmpty(): boolean {
    return this.#held.size === 0
  }

  add(cid: string, data: Bytes): void {
    this.#held.set(asVersion1(parseCid(cid)).text, data)
  }

  remove(cid: string): void {
    this.#held.delete(asVersion1(parseCid(cid)).text)
  }

  /** The bytes behind a CID of version 1 as they were added, unchecked; null when they are not here. */
  peek(cid: string): Bytes | null {
    return this.#held.get(cid) ?? null
  }

  /** The bytes behind a CID; refused as `missing` when they are not here or are others. */
  get(cidText: string): { codec: number; data: Bytes } {
    const cid = asVersion1(parseCid(cidText))
    const data = this.#held.get(cid.text)
    need(data !== undefined, 'missing', `${cidText} is nowhere`)
    need(data.length <= MOST_BLOCK && isBlockOf(cid, data), 'missing', `${cidText} is damaged`)
    return { codec: cid.codec, data }
  }

  /** An object by the hash of its bytes alone. */
  object(hash: string): Bytes {
    return this.get(cidOfHash(RAW, fromHex(hash, 32)).text).data
  }

  /** The names of a folder with their CIDs, or null when the CID is no folder. */
  folder(cidText: string): Map<string, string> | null {
    const { codec, data } = this.get(cidText)
    if (codec !== DAG_PB) return null
    const node = unixfs(data)
    const found: [string, string][] = []
    if (node.type === UnixFSType.folder) found.push(...node.links.map((link): [string, string] => [link.name, asVersion1(link.cid).text]))
    else if (node.type === UnixFSType.shard) this.#shard(node, found, 0)
    else return null
    const out = new Map(found)
    need(out.size === found.length, 'format', 'a name twice in a folder')
    return out
  }

  #shard(node: Node, found: [string, string][], depth: number): void {
    need(node.fanout !== null && node.fanout > 0n && node.fanout <= 1024n && depth < MOST_DEPTH, 'format', 'a shard of another form')
    const digits = Number(node.fanout - 1n).toString(16).length
    for (const link of node.links) {
      need(link.name.length >= digits, 'format', 'a link of a shard without its place')
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

  /** The CID at a path below a folder; null when no such name stands there. */
  at(root: string, path: string): string | null {
    let here: string | null = root
    for (const part of path.split('/')) {
      here = this.folder(here)?.get(part) ?? null
      if (here === null) return null
    }
    return here
  }

  /** The file at a path; refused as `missing` when it cannot be had. */
  read(root: string, path: string): Bytes {
    const cid = this.at(root, path)
    need(cid !== null, 'missing', `no ${path} under ${root}`)
    return this.file(cid)
  }
}
