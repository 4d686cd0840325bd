/** What is found among entries that stand together, and what speaks for each. */

import { type Limits, Ranking } from '../src/recall/ranking.ts'
import type { Judge } from './judging.ts'

/** More than sums of the same numbers in another order differ by. */
const ROUNDING = 1e-9

export const rankings: Judge = (all, court) => {
  for (const { name, limits, documents, questions } of all.sets) {
    const [most, best, groups] = limits as [number, number, number]
    const ranking = new Ranking(documents, new WeakMap(), { all: most, best, groups } satisfies Limits)
    for (const { query, only, hits } of questions) {
      const what = `${query} in ${name}${only === null ? '' : ', of some'}`
      const found = ranking.rank(query, all.today, null, only === null ? null : id => only.includes(id))
      court.same(found.map(hit => hit.id), hits.map(([id]: [string]) => id), what)
      for (const [n, [id, parts]] of (hits as [string, Record<string, number>][]).entries()) {
        const { parts: ours = {}, score = NaN } = found[n] ?? {}
        court.same(Object.keys(ours).sort(), Object.keys(parts).sort(), `parts of ${id}, ${what}`)
        const apart = Object.entries(parts).filter(([part, value]) => !(Math.abs(value - (ours as Record<string, number>)[part]!) <= ROUNDING))
        court.same(apart, [], `${id}, ${what}, ${JSON.stringify(ours)}`)
        court.same(Math.abs(score - Object.values(parts).reduce((sum, one) => sum + one, 0)) <= ROUNDING, true, `score of ${id}, ${what}`)
      }
    }
  }
}
