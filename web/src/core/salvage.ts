/**
 * What can be brought back of states of which only a part can be read (FORMAT.md 7.1): changes that the device which salvages then
 * makes in its own name. Nothing here reads a node, signs or publishes.
 */

import { byCodePoints, hex, sha256 } from './bytes.ts'
import { type Entry, readDot, type Value } from './state.ts'

/** What can be read of one damaged head, whose commit was verified. */
export type DamagedHead = {
  /** Its counters. */
  readonly counters: ReadonlyMap<string, number>
  /** Every entry of a proved leaf that is not as in the base; empty for one that provably is not there. */
  readonly differs: ReadonlyMap<string, Entry>
  /** Prefixes of labels below which nothing is proved. */
  readonly lost: readonly string[]
}

/** What a salvage does to one entry: dots to write again under own ones, and dots of the base that go. */
export type SalvageChange = { readonly name: string; readonly taken: readonly string[]; readonly gone: readonly string[] }

const covers = (counters: ReadonlyMap<string, number>, dot: string): boolean => {
  const { dev, n } = readDot(dot)
  return (counters.get(dev) ?? 0) >= n
}

const proves = (part: DamagedHead, name: string): boolean => {
  const label = hex(sha256(name))
  return !part.lost.some(prefix => label.startsWith(prefix))
}

/** Whether a head provably knew of a write and held it no more. */
const lacks = (part: DamagedHead, name: string, dot: string, base: Entry): boolean =>
  covers(part.counters, dot) && proves(part, name) && !Object.hasOwn(part.differs.get(name) ?? base, dot)

/** Whether one of these has the same text, or is a wish to forget as this one is, or replaced this text. */
const isKnown = (value: Value, kept: readonly Value[]): boolean =>
  kept.some(other => (other.body === value.body && other.kind === value.kind) || (value.body !== null && other.b.includes(value.body.slice(0, 32))))

/** What damaged heads prove beyond the base, which is the join of all heads that are whole. Doing it twice does nothing. */
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
