/**
 * Salvage of partly readable states (FORMAT.md 7.1): changes that the salvaging device makes in its own name. Nothing here reads a node,
 * signs or publishes.
 */

import { byCodePoints, hex, sha256 } from './bytes.ts'
import { type Entry, readDot, type Value } from './state.ts'

/** The readable part of one damaged head, whose commit was verified. */
export type DamagedHead = {
  /** Its counters. */
  readonly counters: ReadonlyMap<string, number>
  /** Every entry of a proved leaf that differs from the base; empty if proved absent. */
  readonly differs: ReadonlyMap<string, Entry>
  /** Label prefixes below which nothing is proved. */
  readonly lost: readonly string[]
}

/** The salvage of one entry: dots to write again under own ones, and dots of the base to delete. */
export type SalvageChange = { readonly name: string; readonly taken: readonly string[]; readonly gone: readonly string[] }

const covers = (counters: ReadonlyMap<string, number>, dot: string): boolean => {
  const { dev, n } = readDot(dot)
  return (counters.get(dev) ?? 0) >= n
}

const proves = (part: DamagedHead, name: string): boolean => {
  const label = hex(sha256(name))
  return !part.lost.some(prefix => label.startsWith(prefix))
}

/** Tell whether a head provably knew a write and no longer held it. */
const lacks = (part: DamagedHead, name: string, dot: string, base: Entry): boolean =>
  covers(part.counters, dot) && proves(part, name) && !Object.hasOwn(part.differs.get(name) ?? base, dot)

/** Tell whether one of these values has the same text (or is also a forget), or replaced this text. */
const isKnown = (value: Value, kept: readonly Value[]): boolean =>
  kept.some(other => (other.body === value.body && other.kind === value.kind) || (value.body !== null && other.b.includes(value.body.slice(0, 32))))

/** Return what damaged heads prove beyond the base, the join of all intact heads. It is idempotent. */
export function salvaged(base: ReadonlyMap<string, Entry>, counters: ReadonlyMap<string, number>, parts: readonly DamagedHead[]): SalvageChange[] {
  const names = [...new Set(parts.flatMap(part => [...part.differs.keys()]))].sort(byCodePoints)
  return names
    .map((name): SalvageChange => {
      const here = base.get(name) ?? {}
      const isGone = (dot: string): boolean => parts.some(part => lacks(part, name, dot, here))
      const gone = Object.keys(here).filter(isGone)
      const kept = Object.entries(here).flatMap(([dot, value]) => (gone.includes(dot) ? [] : [value]))
      const news = new Map<string, Value>()
      for (const part of parts) {
        for (const [dot, value] of Object.entries(part.differs.get(name) ?? {})) {
          if (!Object.hasOwn(here, dot) && !covers(counters, dot) && !news.has(dot)) news.set(dot, value)
        }
      }
      const taken = [...news].filter(([dot, value]) => !isGone(dot) && !isKnown(value, kept)).map(([dot]) => dot)
      return { name, taken: taken.sort(byCodePoints), gone: gone.sort(byCodePoints) }
    })
    .filter(change => change.taken.length > 0 || change.gone.length > 0)
}
