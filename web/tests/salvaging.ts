/** What damaged heads prove (FORMAT.md 7.1). */

import { type DamagedHead, salvaged } from '../src/core/salvage.ts'
import type { Judge, Rows } from './judging.ts'

const map = <T>(object: Record<string, T>): Map<string, T> => new Map(Object.entries(object))

export const salvage: Judge = (all, court) => {
  for (const row of all.rows) {
    const parts = row.parts.map((part: Rows): DamagedHead => ({ counters: map(part.ctx), differs: map(part.differs), lost: part.lost }))
    const wanted = row.changes.map((one: Rows) => ({ name: one.name, taken: [...one.taken].sort(), gone: [...one.gone].sort() }))
    court.same(salvaged(map(row.base), map(row.ctx), parts), wanted, row.about)
  }
}
