/** Judges the vectors in a page: tests/web/test_vectors.py calls this in each browser. */

import { fromHex } from '../src/core/bytes.ts'
import { EpochKey, ObjectType } from '../src/core/sealed.ts'
import { onThisThread } from '../src/device/offloading.ts'
import { Helpers } from '../src/worker/offloading.ts'
import { type Finding, judged } from './judges.ts'
import type { Rows } from './judging.ts'

/**
 * What another worker says that works beside this thread, and what this thread says: of each signature of the vectors, repeated until they are many, and of objects of which
 * each third was changed. `script`: of the worker. -> how many were asked of each kind, and what differed.
 */
export async function besideAt(where: string, script: string): Promise<{ asked: number; differ: string[] }> {
  const rows = (await (await fetch(`${where}/ed25519.json`)).json()).signatures as Rows[]
  const signed = Array.from({ length: 700 }, (_, i) => rows[i % rows.length]).map((row: Rows) => ({ key: row.public as string, message: fromHex(row.message), signature: fromHex(row.signature) }))
  const key = new EpochKey(1, new Uint8Array(32).fill(5), new Uint8Array(16).fill(6))
  const objects = Array.from({ length: 700 }, (_, i) => {
    const object = key.seal(ObjectType.memory, `m${i}`, `Text ${i}. `.repeat(i))
    if (i % 3 === 0) object[object.length - 1]! ^= 1
    return { key, type: ObjectType.memory, ctx: `m${i}`, object }
  })
  const helpers = new Helpers(() => new Worker(script, { type: 'module' }))
  helpers.start()
  const [checked, opened] = await Promise.all([helpers.checkAll(signed), helpers.openAll(objects)])
  helpers.stop()
  const differ: string[] = []
  const here = await onThisThread.checkAll(signed)
  signed.forEach((_, i) => checked[i] === here[i] && here[i] === rows[i % rows.length].valid || differ.push(`signature ${i}`))
  const openedHere = await onThisThread.openAll(objects)
  openedHere.forEach((one, i) => JSON.stringify(one && [...one.data]) === JSON.stringify(opened[i] && [...opened[i].data]) && one?.hash === opened[i]?.hash && (one === null) === (i % 3 === 0) || differ.push(`object ${i}`))
  return { asked: checked.length + opened.length, differ }
}

/** What was found in each file of the folder that is served at `where`. */
export async function judgedAt(where: string): Promise<Finding[]> {
  const found: Finding[] = []
  for await (const one of judged(async (name) => (await fetch(`${where}/${name}.json`)).json())) found.push(one)
  return found
}
