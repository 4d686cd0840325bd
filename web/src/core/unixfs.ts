/** Make files and folders as UnixFS blocks (FORMAT.md 6, the profile `unixfs-v1-2025`), bottom up. `blocks.ts` reads them. */

import { type Bytes, compareBytes, utf8 } from './bytes.ts'
import { cidOf, cidOfHash, RAW } from './cid.ts'
import { type Put, putNode, type Target, UnixFSType, writeNode, writeUnixFS } from './dagpb.ts'
import { shardedFolder } from './hamt.ts'

const CHUNK = 1 << 20
const WIDTH = 1024
/** A folder whose block is longer is sharded. */
const MOST_FOLDER = 262_144

/** Make a file of these bytes. One of at most one chunk is a raw block. */
export function putFile(data: Bytes, put: Put): Target {
  const leaves: { to: Target; bytes: bigint }[] = []
  for (let at = 0; at === 0 || at < data.length; at += CHUNK) {
    const chunk = data.slice(at, at + CHUNK)
    const cid = cidOf(RAW, chunk)
    put(cid.text, chunk)
    leaves.push({ to: { cid, size: BigInt(chunk.length) }, bytes: BigInt(chunk.length) })
  }
  let level = leaves
  while (level.length > 1) {
    const above: typeof leaves = []
    for (let at = 0; at < level.length; at += WIDTH) {
      const some = level.slice(at, at + WIDTH)
      const bytes = some.reduce((sum, one) => sum + one.bytes, 0n)
      const message = writeUnixFS({ type: UnixFSType.file, filesize: bytes, blocksizes: some.map(one => one.bytes) })
      above.push({ to: putNode(some.map(one => ({ name: '', ...one.to })), message, put), bytes })
    }
    level = above
  }
  return (level[0] as (typeof leaves)[number]).to
}

/** Make a folder of these names and links. */
export function putFolder(names: ReadonlyMap<string, Target>, put: Put): Target {
  const links = [...names].map(([name, to]) => ({ name, ...to })).sort((a, b) => compareBytes(utf8(a.name), utf8(b.name)))
  const message = writeUnixFS({ type: UnixFSType.folder })
  const block = writeNode({ links, data: message })
  return block.length > MOST_FOLDER ? shardedFolder(links, put) : putNode(links, message, put)
}

/** A link to a block known by its hash: one raw block. */
export const rawTarget = (hash: Bytes, size: number): Target => ({ cid: cidOfHash(RAW, hash), size: BigInt(size) })

/** Caches the links to folders made before, by path and content. */
export type KnownFolders = { folder(path: string, what: string, make: () => Target): Target }
const NONE_KNOWN: KnownFolders = { folder: (_path, _what, make) => make() }

/** Make a tree of files by path. */
export function putTree(files: ReadonlyMap<string, Target>, put: Put, folders: readonly string[] = [], known = NONE_KNOWN): Target {
  type Folder = Map<string, Folder | Target>
  const top: Folder = new Map()
  const folderAt = (parts: readonly string[]): Folder =>
    parts.reduce<Folder>((here, part) => {
      const next = here.get(part) ?? new Map()
      here.set(part, next)
      return next as Folder
    }, top)
  for (const path of folders) folderAt(path.split('/'))
  for (const [path, to] of files) {
    const parts = path.split('/')
    folderAt(parts.slice(0, -1)).set(parts.at(-1) as string, to)
  }
  const make = (folder: Folder, path: string): Target => {
    const names = new Map([...folder].map(([name, inner]): [string, Target] => [name, inner instanceof Map ? make(inner, `${path}/${name}`) : inner]))
    const what = [...names].map(([name, to]) => `${name} ${to.cid.text} ${to.size}`).join()
    return known.folder(path, what, () => putFolder(names, put))
  }
  return make(top, '')
}

/** Make the folder with only `keyring.json`: the value of an anchor. */
export function keyringFolder(keyring: Bytes, put: Put = () => undefined): { cid: string; block: Bytes } {
  let block: Bytes = new Uint8Array()
  const to = putFolder(new Map([['keyring.json', putFile(keyring, put)]]), (cid, data) => {
    block = data
    put(cid, data)
  })
  return { cid: to.cid.text, block }
}
