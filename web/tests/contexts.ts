/** What recall finds and what a model is given, of a memory that is made here at told moments. */

import { sha256, utf8 } from '../src/core/bytes.ts'
import { newRecoveryWords } from '../src/core/wallet.ts'
import { volatileDevice } from '../src/device/device.ts'
import { MemoryError } from '../src/device/errors.ts'
import { Memory } from '../src/memory.ts'
import { VolatileStorage } from '../src/store/device_storage.ts'
import type { Judge } from './judging.ts'

export const contexts: Judge = async (all, court) => {
  let now = all.writes[0].at as number
  let drawn = 0
  const chance = (size: number): Uint8Array => Uint8Array.from({ length: size }, (_, n) => sha256(utf8(`context ${drawn++}`))[n % 32] as number)
  const world = { now: () => now, chance }
  const memory = await Memory.create({ device: await volatileDevice(world, all.label), storage: new VolatileStorage(), environment: world, root: null, recovery: newRecoveryWords(chance).keys })
  for (const { at, scope, key, text, type, data } of all.writes) {
    now = at
    if (key !== undefined) await memory.writeText(key.replace(all.device, memory.device.id), text.replaceAll(all.device, memory.device.id), { scope })
    else await memory.note(type, data, { scope })
  }
  now = all.now
  for (const { query, scope, hits } of all.found) {
    const found = memory.recall(query, { scope, limit: 20 }).hits
    court.same(found.map(({ reading, score }) => [reading.scope, reading.key, Math.round(score * 1e9) / 1e9]), hits, `${query} in ${scope}`)
  }
  for (const { query, kind, scope, searched, moments } of all.said) {
    const found = memory.recall(query, { scope, kind, limit: 40 })
    const said = found.moments.map(({ place, moment, score }) => [place, moment.kind, moment.type, moment.at, score, moment.own])
    const what = `${query} among ${kind} in ${scope}`
    const rows = (all: readonly (readonly unknown[])[]): unknown[] => all.map(one => one.filter((_, n) => n !== 4))
    court.same([found.searched, rows(said)], [searched, rows(moments)], what)
    court.same(said.every(([, , , , score], n) => Math.abs((score as number) - moments[n]?.[4]) <= 1e-8), true, `scores of ${what}`)
  }
  for (const { query, how, searched, rows } of all.asked) {
    const what = `${query} with ${JSON.stringify(how)}`
    try {
      const found = memory.recall(query, how)
      const hits = [
        ...found.hits.map(({ place, reading, score }): [number, string, string, number] => [place, 'memory', reading.key, score]),
        ...found.moments.map(({ place, moment, score }): [number, string, string, number] => [place, moment.kind, moment.type, score])
      ].sort(([a], [b]) => a - b)
      court.same([found.searched, hits.map(one => one.slice(0, 3))], [searched, rows.map((one: unknown[]) => one.slice(0, 3))], what)
      court.same(hits.every(([, , , score], n) => Math.abs(score - rows[n]?.[3]) <= 1e-8), true, `scores of ${what}`)
    } catch (error) {
      if (!(error instanceof MemoryError) || error.kind !== 'usage') throw error
      court.same(null, searched, what)
    }
  }
  for (const { query, scope, layout, max_tokens: most, ...block } of all.blocks) {
    const made = memory.context({ query, scope, layout, preview: true, ...(most === null ? {} : { maxTokens: most }) })
    const { leftOut, text, ...rest } = made
    court.same({ ...rest, left_out: leftOut, text: text.replaceAll(memory.device.id, all.device) }, block, `${layout} of ${query} in ${scope}, ${most}`)
  }
}
