/** The views of a joined state: each memory for all and for one person, the cards of scopes, and the events of each scope (FORMAT.md 5). */

import { type Bytes, compare, hex, sha256 } from './bytes.ts'
import { type Card, cardOf } from './cards.ts'
import { type Entry, type Location, readName, type State, type Value } from './state.ts'
import { type TimelineEvent, timelineOf } from './timeline.ts'
import { copiesOf, type Fetch, type FetchBase, type OwnView, ownViewOf, type View, viewOf } from './view.ts'

/** The plain bytes at a location of an entry, or null: not here, of another size, or they do not open. */
export type Opened = (name: string, loc: Location) => Bytes | null

/** Tells whether a device id belongs to the reader's person. */
export type IsMine = (id: string) => boolean

/** Tell whether a value is the reader's own text (5.2). */
export const isOwnWord =
  (isMine: IsMine) =>
  (dot: string, value: Value): boolean =>
    isMine(dot.slice(0, 16)) && (value.of === undefined || (value.of !== 'foreign' && isMine(value.of)))

/** A memory's views, for any reader and for this one, with its texts by the hash of their bytes. */
export type MemoryView = { readonly scope: string; readonly key: string; readonly all: View; readonly own: OwnView; readonly text: Fetch }

export type Views = {
  readonly cards: ReadonlyMap<string, { card: Card | null; forgotten: boolean }>
  /** By `key` or `scope/key`. */
  readonly memories: ReadonlyMap<string, MemoryView>
  readonly events: ReadonlyMap<string, readonly TimelineEvent[]>
}

const hashes = new WeakMap<Bytes, string>()

/** The cached hash of immutable bytes. */
export function bodyHash(data: Bytes): string {
  let hash = hashes.get(data)
  if (hash === undefined) hashes.set(data, (hash = hex(sha256(data))))
  return hash
}

/** Cache the hash of bytes that was computed elsewhere. */
export const noteHash = (data: Bytes, hash: string): void => void hashes.set(data, hash)

/** The texts of an entry by the hash of their bytes. */
export function fetcherOf(name: string, entry: Entry, opened: Opened): Fetch {
  return body => {
    for (const value of Object.values(entry)) {
      const data = value.body === body && value.loc !== undefined ? opened(name, value.loc) : null
      if (data !== null && bodyHash(data) === body) return data
    }
    return null
  }
}

/** The text on which a value is based. */
export const baseFetcher =
  (name: string, opened: Opened): FetchBase =>
  value =>
    value.base === undefined ? null : opened(name, value.base)

/** One memory for all and for the reader. */
export function memoryView(name: string, entry: Entry, isMine: IsMine, opened: Opened): MemoryView {
  const said = readName(name)
  const key = said.kind === 'm' ? said.key : ''
  const [fetch, base] = [fetcherOf(name, entry, opened), baseFetcher(name, opened)]
  const all = viewOf(key, entry, fetch, base)
  return { scope: said.scope, key, all, own: ownViewOf(key, entry, isOwnWord(isMine), fetch, base), text: fetch }
}

/** The view shown to a reader: of the own texts, or of all if none is own. Then `own` is false, and all are pending. */
export type ShownView = OwnView & { readonly own: boolean }

export function shownView(key: string, name: string, entry: Entry, isMine: IsMine, opened: Opened): ShownView {
  const [fetch, base] = [fetcherOf(name, entry, opened), baseFetcher(name, opened)]
  const isOwn = isOwnWord(isMine)
  const owned = Object.entries(entry).map(([dot, value]) => isOwn(dot, value))
  if (owned.includes(true) && owned.includes(false)) return { ...ownViewOf(key, entry, isOwn, fetch, base), own: true }
  const all = { ...viewOf(key, entry, fetch, base), others: [], unheeded: [], own: true }
  return all.forgotten || owned.length === 0 || owned.includes(true) ? all : { ...all, own: false, conflicts: [], hidden: [], others: copiesOf(key, entry) }
}

export function viewsOf(state: State, isMine: IsMine, opened: Opened): Views {
  const cards = new Map<string, { card: Card | null; forgotten: boolean }>()
  const memories = new Map<string, MemoryView>()
  const segments = new Map<string, { dev: string; data: Bytes }[]>()
  for (const [name, entry] of [...state.entries].sort((a, b) => compare([a[0]], [b[0]]))) {
    const said = readName(name)
    if (said.kind === 'c') cards.set(said.scope, cardOf(entry, fetcherOf(name, entry, opened)))
    else if (said.kind === 'm') memories.set(said.ctx, memoryView(name, entry, isMine, opened))
    else {
      const fetch = fetcherOf(name, entry, opened)
      const texts = Object.values(entry).map(value => ({ dev: said.dev, data: fetch(value.body ?? '') ?? new Uint8Array() }))
      segments.set(said.scope, [...(segments.get(said.scope) ?? []), ...texts])
    }
  }
  // The events of a forgotten scope are hidden with it, and shown again when it is restored.
  const open = [...segments].filter(([scope]) => cards.get(scope)?.forgotten !== true)
  return { cards, memories, events: new Map(open.map(([scope, all]) => [scope, timelineOf(all)])) }
}
