/**
 * The join of two states (FORMAT.md 5): commutative, associative, idempotent; a value disappears only if the device that replaced it had
 * been shown it.
 */

import { byCodePoints, canonical, compare, need, type Part, refuse } from './bytes.ts'
import type { Admission } from './authority.ts'
import { type Entry, type Location, readDot, type Seen, type State, type Value } from './state.ts'

/** Maximum values of an entry after a join. */
const MOST_VALUES = 800

/** The rules that need objects and the ring. */
export type Judgement = {
  /** Tell whether the object at a location is the expected one. */
  readonly passes: (name: string, value: Value, field: 'loc' | 'base', loc: Location) => boolean
  /** If both pass, the greater stays. */
  readonly order: (loc: Location) => readonly Part[]
  readonly admissionOf: (dev: string) => Admission
}

const identity = (value: Value): string => canonical({ b: value.b, body: value.body, h: value.h, kind: value.kind, of: value.of ?? null })

/** Return one of two values under one dot. */
function oneOf(name: string, mine: Value, theirs: Value, judge: Judgement): Value {
  let out = mine
  if (byCodePoints(theirs.s ?? '', mine.s ?? '') > 0) out = { ...out, s: theirs.s as string }
  for (const field of ['loc', 'base'] as const) {
    const [own, other] = [mine[field], theirs[field]]
    if (other === undefined || canonical(other) === canonical(own ?? null)) continue
    if (own === undefined) out = { ...out, [field]: other }
    else if (judge.passes(name, theirs, field, other)) {
      const isLess = judge.passes(name, mine, field, own) && compare(judge.order(other), judge.order(own)) <= 0
      if (!isLess) out = { ...out, [field]: other }
    }
  }
  return out
}

/**
 * Return the values of an entry that fit: first the newest of each device admitted by a root, then of each admitting member in turn, its
 * devices' newest first, then the greater (clock, dot).
 */
export function fitting(entry: Entry, admissionOf: (dev: string) => Admission, most = MOST_VALUES): Entry {
  const newest = Object.entries(entry)
    .map(([text, value]) => ({ text, dot: readDot(text), h: value.h }))
    .sort((a, b) => -compare([a.h, a.dot.dev, a.dot.n], [b.h, b.dot.dev, b.dot.n]))
  if (newest.length <= most) return entry
  const written = new Map<string, number>()
  const shares = new Map<string, { rank: number; by: string; values: { text: string; at: [number, number] }[] }>()
  const order: { text: string; place: Part[] }[] = []
  for (const [at, { text, dot }] of newest.entries()) {
    const before = written.get(dot.dev) ?? 0
    written.set(dot.dev, before + 1)
    const [rank, by] = admissionOf(dot.dev)
    if (rank === 0 && before === 0) {
      order.push({ text, place: [-1, 0, '', at] })
      continue
    }
    const share = shares.get(`${rank} ${by}`) ?? { rank, by, values: [] }
    share.values.push({ text, at: [before, at] })
    shares.set(`${rank} ${by}`, share)
  }
  for (const { rank, by, values } of shares.values()) {
    values.sort((a, b) => compare(a.at, b.at)).forEach(({ text }, turn) => order.push({ text, place: [turn, rank, by, 0] }))
  }
  order.sort((a, b) => compare(a.place, b.place))
  return Object.fromEntries(order.slice(0, most).map(({ text }) => [text, entry[text] as Value]))
}

/** Require that no dot and no pair has two meanings; refused as `held`. */
function checkAgreement(a: State, b: State): void {
  // Each state alone was checked on arrival.
  if (a.entries.size === 0 || b.entries.size === 0) return
  const places = new Map<string, readonly [name: string, value: Value]>()
  for (const state of [a, b]) {
    for (const [name, entry] of state.entries) {
      if (state === b && a.entries.get(name) === entry) continue
      for (const dot of Object.keys(entry)) {
        const value = entry[dot] as Value
        const held = places.get(dot)
        if (held === undefined) places.set(dot, [name, value])
        else need(held[0] === name && (held[1] === value || identity(held[1]) === identity(value)), 'held', `${dot} says two things`)
      }
    }
  }
}

function joinSeen(a: ReadonlyMap<string, Seen>, b: ReadonlyMap<string, Seen>): Map<string, Seen> {
  const out = new Map(a)
  for (const [dev, pair] of b) {
    const here = out.get(dev)
    if (here === undefined || here.n < pair.n) out.set(dev, pair)
    else if (here.n === pair.n) {
      if (here.r !== pair.r) refuse('held', `${dev} drew two numbers at ${pair.n}`)
      if (byCodePoints(pair.s ?? '', here.s ?? '') > 0) out.set(dev, pair)
    }
  }
  return out
}

const isSame = (a: Entry, b: Entry): boolean => {
  const dots = Object.keys(a)
  return dots.length === Object.keys(b).length && dots.every(dot => a[dot] === b[dot])
}

/** Join two states; refused as `held` if one dot or one pair has two meanings. */
export function joinStates(a: State, b: State, judge: Judgement): State {
  checkAgreement(a, b)
  const seen = joinSeen(a.seen, b.seen)
  const covers = (state: State, dotText: string): boolean => {
    const [dev, n] = dotText.split('-')
    return (state.seen.get(dev as string)?.n ?? 0) >= Number(n)
  }
  const entries = new Map<string, Entry>()
  for (const name of new Set([...a.entries.keys(), ...b.entries.keys()])) {
    const [mine, theirs] = [a.entries.get(name) ?? {}, b.entries.get(name) ?? {}]
    if (mine === theirs) {
      entries.set(name, mine)
      continue
    }
    const kept: Record<string, Value> = {}
    for (const dot of new Set([...Object.keys(mine), ...Object.keys(theirs)])) {
      const [own, other] = [mine[dot], theirs[dot]]
      if (own !== undefined && other !== undefined) kept[dot] = oneOf(name, own, other, judge)
      else if (own !== undefined && !covers(b, dot)) kept[dot] = own
      else if (other !== undefined && !covers(a, dot)) kept[dot] = other
    }
    const stays = fitting(kept, judge.admissionOf)
    // Unchanged entries stay the same object, so that they are not processed again.
    const same = [mine, theirs].find(one => isSame(one, stays))
    if (Object.keys(stays).length > 0) entries.set(name, same ?? stays)
  }
  return { entries, seen }
}
