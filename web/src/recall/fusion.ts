/** Merge the hits of several phrasings of one question into one list. */

import { byCodePoints } from '../core/bytes.ts'
import type { Ranked } from './ranking.ts'

/** Scores are compared to nine decimal places, so that the best hits of two phrasings tie. */
const DIGITS = 1e9

const worth = (hit: Ranked): number => Math.round(hit.score * DIGITS)
const partsOf = (hit: Ranked): [string, number][] => (Object.entries(hit.parts) as [string, number][]).sort(([a], [b]) => byCodePoints(a, b))

/** Tell whether a hit ranks below another: by its score, then by its parts, in the order of their names. */
function isLess(one: Ranked, other: Ranked): boolean {
  if (worth(one) !== worth(other)) return worth(one) < worth(other)
  const [ours, theirs] = [partsOf(one), partsOf(other)]
  for (const [n, [name, value]] of ours.entries()) {
    const [named, counts] = theirs[n] ?? ['', 0]
    if (name !== named) return byCodePoints(name, named) < 0
    if (value !== counts) return value < counts
  }
  return ours.length < theirs.length
}

/**
 * Merge lists, each best first; ties by id. A hit has its score relative to the best of the list in which that is highest; the best scores
 * 1. The order of the lists does not matter.
 */
export function fused(lists: readonly (readonly Ranked[])[]): Ranked[] {
  const found = new Map<string, Ranked>()
  for (const hits of lists) {
    const best = hits[0]?.score ?? 0
    const top = best > 0 ? best : 1
    for (const { id, parts } of hits) {
      const shares = Object.entries(parts).map(([part, value]): [string, number] => [part, (value as number) / top])
      const hit: Ranked = { id, score: shares.reduce((sum, [, share]) => sum + share, 0), parts: Object.fromEntries(shares) }
      const held = found.get(id)
      if (held === undefined || isLess(held, hit)) found.set(id, hit)
    }
  }
  return [...found.values()].sort((a, b) => worth(b) - worth(a) || byCodePoints(a.id, b.id))
}
