// cid.mjs PATH: root CID of a file or folder under the profile unixfs-v1-2025, by the JavaScript importer.
import { createReadStream } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { importer } from 'ipfs-unixfs-importer'

// The importer only writes blocks while it builds a tree, so they need not be kept.
const store = { put: async (cid) => cid }

async function * entries (path, at) {
  const info = await lstat(path)
  if (info.isFile()) {
    yield { path: at, content: createReadStream(path) }
    return
  }
  yield { path: at }
  for (const name of (await readdir(path)).sort()) {
    yield * entries(join(path, name), `${at}/${name}`)
  }
}

const path = process.argv[2]
let root
for await (const entry of importer(entries(path, 'root'), store, { profile: 'unixfs-v1-2025' })) {
  if (entry.path === 'root') root = entry.cid
}
console.log(String(root))
