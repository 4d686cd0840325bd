// readcar.mjs CAR: every file and folder of the tree in a CAR, as JSON [path, SHA-256 of the content or null], sorted.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { CarBlockIterator } from '@ipld/car/iterator'
import { MemoryBlockstore } from 'blockstore-core'
import { exporter, recursive } from 'ipfs-unixfs-exporter'
import { sha256 } from 'multiformats/hashes/sha2'

const store = new MemoryBlockstore()
const car = await CarBlockIterator.fromIterable(createReadStream(process.argv[2]))
const roots = await car.getRoots()
if (roots.length !== 1) throw new Error(`${roots.length} roots`)
for await (const { cid, bytes } of car) {
  const digest = await sha256.digest(bytes)
  if (Buffer.compare(digest.bytes, cid.multihash.bytes) !== 0) throw new Error(`${cid} does not match`)
  await store.put(cid, bytes)
}
const root = String(roots[0])
const rows = []
for await (const entry of recursive(roots[0], store)) {
  const path = entry.path.slice(root.length + 1)
  const file = await exporter(entry.cid, store)
  if (file.type === 'directory') {
    rows.push([path, null])
    continue
  }
  const hash = createHash('sha256')
  for await (const chunk of file.content()) hash.update(chunk)
  rows.push([path, hash.digest('hex')])
}
rows.sort((a, b) => Buffer.compare(Buffer.from(a[0]), Buffer.from(b[0])))
console.log(JSON.stringify({ root, rows }))
