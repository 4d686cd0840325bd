/** Shared folders: what is read in them, and what a device writes (FORMAT.md 7.2). */

import { base64url, type Bytes, fromBase64url } from '../src/core/bytes.ts'
import { readCar } from '../src/core/car.ts'
import { packFiles, pinFile, recordFile, SharedFolder } from '../src/core/folder.ts'
import type { Judge, Rows } from './judging.ts'

const filesIn = (row: Rows): Map<string, Bytes> => new Map(Object.entries(row.files as Record<string, string>).map(([path, data]) => [path, fromBase64url(data)]))

async function read(files: Map<string, Bytes>, asked: Rows): Promise<unknown> {
  const folder = new SharedFolder(files, asked.now)
  const blocks = (asked.blocks as string[]).flatMap(cid => {
    const data = folder.block(cid)
    return data === null ? [] : [[cid, base64url(data)]]
  })
  const names = await Promise.all((asked.names as string[]).map(async name => [name, await folder.record(name)] as const))
  return {
    blocks: Object.fromEntries(blocks),
    has: (asked.blocks as string[]).filter(cid => folder.has(cid)).sort(),
    listing: Object.fromEntries(folder.listing()),
    names: Object.fromEntries(names.flatMap(([name, record]) => (record === null ? [] : [[name, base64url(record)]]))),
    pins: Object.fromEntries((asked.pins as string[]).map(name => [name, folder.pins(name).map(pin => [pin.cid, pin.created])]))
  }
}

export const folders: Judge = async (all, court) => {
  for (const row of all.cases) {
    const files = filesIn(row)
    court.same(await read(files, all.asked), row.expect, row.name)
    court.same(await read(new Map([...files].reverse()), all.asked), row.expect, `${row.name}, listed the other way`)
  }
  // What a device writes, file by file.
  const files = filesIn(all.cases[0])
  const folder = new SharedFolder(files)
  for (const [path, data] of files) {
    if (path.endsWith('.car')) {
      const { roots, blocks } = readCar(data)
      const made = packFiles(roots[0] as string, blocks)
      court.same([...made.keys()], [path, path.replace('.car', '.idx')], path)
      for (const [name, bytes] of made) court.same(bytes, files.get(name), name)
    }
    const pin = all.asked.pins.flatMap((name: string) => folder.pins(name)).find((one: Rows) => path.includes(one.cid))
    if (path.startsWith('pins/')) court.same(pinFile(pin), [path, data], path)
    if (path.startsWith('names/')) court.same(recordFile(all.asked.names[0], data), [path, data], path)
  }
}
