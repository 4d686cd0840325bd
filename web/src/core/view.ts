/** The text shown under one key, for all readers and for one person (FORMAT.md 5 and 5.2). */

import { type Bytes, compare, hex, type Part, sha256 } from './bytes.ts'
import { conflictName } from './keys.ts'
import { merge3 } from './merge3.ts'
import { type Entry, readDot, type Value } from './state.ts'

type Said = Value & { readonly dot: string; readonly dev: string; readonly n: number }
/** Dots of one body; forgotten ones have the body "". */
export type Sibling = { readonly body: string; readonly h: string; readonly dev: string; readonly n: number; readonly values: readonly Said[] }

/** An alternative to the shown text. `file` is null if another copy has that name. */
export type Copy = { readonly file: string | null; readonly body: string; readonly dots: readonly string[] }

export type View = {
  readonly shown: Bytes | null
  readonly merged: boolean
  readonly forgotten: boolean
  /** The dots that a write replaces. */
  readonly dots: readonly string[]
  readonly conflicts: readonly Copy[]
  /** Texts hidden by a forget. */
  readonly hidden: readonly Copy[]
  readonly notFetched: readonly string[]
}

/** A view for one reader: only own values are valid, with others' texts listed separately. */
export type OwnView = View & {
  readonly others: readonly Copy[]
  /** Dots of others' forgets. */
  readonly unheeded: readonly string[]
}

/** The bytes with this SHA-256, or null if unavailable. */
export type Fetch = (body: string) => Bytes | null
/** The bytes at the base of a value. */
export type FetchBase = (value: Value) => Bytes | null

const clockOrder = (one: Said): Part[] => [one.h, one.dev, one.n]
const short = (hash: string): string => hash.slice(0, 32)

/** The siblings of an entry, greatest first. */
export function siblings(entry: Entry): Sibling[] {
  const groups = new Map<string, Said[]>()
  for (const [text, value] of Object.entries(entry)) {
    const dot = readDot(text)
    const body = value.body ?? ''
    groups.set(body, [...(groups.get(body) ?? []), { ...value, dot: text, dev: dot.dev, n: dot.n }])
  }
  const all = [...groups].map(([body, values]): Sibling => {
    values.sort((a, b) => -compare(clockOrder(a), clockOrder(b)))
    const { h, dev, n } = values[0] as Said
    return { body, h, dev, n, values }
  })
  return all.sort((a, b) => -compare([a.h, a.dev, a.body], [b.h, b.dev, b.body]))
}

const dotsOf = (all: readonly Sibling[]): string[] => all.flatMap(one => one.values.map(value => value.dot))

function copies(key: string, list: readonly Sibling[]): Copy[] {
  const files = new Set<string>()
  return list.map(one => {
    const name = conflictName(key, one.body)
    const file = files.has(name) ? null : name
    files.add(name)
    return { file, body: one.body, dots: dotsOf([one]) }
  })
}

/** All texts of an entry, greatest first. */
export const copiesOf = (key: string, entry: Entry): Copy[] => copies(key, siblings(entry).filter(one => one.body !== ''))

const EMPTY: View = { shown: null, merged: false, forgotten: false, dots: [], conflicts: [], hidden: [], notFetched: [] }

/** The view of one key, for any reader. */
export function viewOf(key: string, entry: Entry, fetch: Fetch, fetchBase: FetchBase = () => null): View {
  const [dot, ...more] = Object.keys(entry)
  const body = more.length > 0 || dot === undefined ? null : (entry[dot]?.body ?? null)
  if (dot !== undefined && body !== null) {
    // The usual case: one text.
    const shown = fetch(body)
    return { ...EMPTY, shown, dots: shown === null ? [] : [dot], notFetched: shown === null ? [dot] : [] }
  }
  const all = siblings(entry)
  const [first] = all
  if (first === undefined) return EMPTY
  const forgotten = all.filter(one => one.body === '')
  if (forgotten.length > 0) {
    return { ...EMPTY, forgotten: true, dots: dotsOf(forgotten), hidden: copies(key, all.filter(one => one.body !== '')) }
  }
  const texts = all.map(one => fetch(one.body))
  const notFetched = dotsOf(all.filter((_, i) => texts[i] === null))
  const merged = all.length > 1 && notFetched.length === 0 ? mergeAll(all, texts as Bytes[], fetchBase) : null
  if (merged !== null) return { ...EMPTY, shown: merged, merged: true, dots: dotsOf(all) }
  const shown = texts[0] ?? null
  return { ...EMPTY, shown, dots: shown === null ? [] : dotsOf([first]), conflicts: copies(key, all.slice(1)), notFetched }
}

/** Merge all texts on their newest common base, or null. */
function mergeAll(all: readonly Sibling[], texts: readonly Bytes[], fetchBase: FetchBase): Bytes | null {
  const lists = all.map(one => [...new Set([short(one.body), ...one.values.flatMap(value => value.b)])])
  const isAtHand = (hash: string): boolean => all.some(one => short(one.body) === hash || one.values.some(value => value.b[0] === hash))
  const base = lists[0]?.find(hash => lists.every(list => list.includes(hash)) && isAtHand(hash))
  if (base === undefined) return null
  let old = texts[all.findIndex(one => short(one.body) === base)] ?? null
  for (const value of all.flatMap(one => one.values)) {
    if (old !== null) break
    const found: Bytes | null = value.b[0] === base ? fetchBase(value) : null
    if (found !== null && hex(sha256(found)).startsWith(base)) old = found
  }
  if (old === null) return null
  const start = old
  return texts.slice(0, -1).reduceRight<Bytes | null>((done, text) => done && merge3(start, done, text), texts.at(-1) ?? null)
}

/** The view of a reader for whom only `isOwn` values are valid. */
export function ownViewOf(key: string, entry: Entry, isOwn: (dot: string, value: Value) => boolean, fetch: Fetch, fetchBase: FetchBase = () => null): OwnView {
  const split = (wanted: boolean): Entry => Object.fromEntries(Object.entries(entry).filter(([dot, value]) => isOwn(dot, value) === wanted))
  const [mine, theirs] = [split(true), siblings(split(false))]
  const own = viewOf(key, mine, fetch, fetchBase)
  const bodies = new Set(Object.values(mine).map(value => value.body))
  const foreign = theirs.filter(one => !bodies.has(one.body))
  const alike = theirs.filter(one => one.body !== '' && own.dots.some(dot => entry[dot]?.body === one.body))
  return {
    ...own,
    dots: [...own.dots, ...dotsOf(alike)],
    others: foreign.filter(one => one.body !== '').map(one => ({ file: conflictName(key, one.body), body: one.body, dots: dotsOf([one]) })),
    unheeded: dotsOf(foreign.filter(one => one.body === ''))
  }
}
