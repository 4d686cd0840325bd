/** Cards of scopes: their title and their projects (FORMAT.md 5.1). */

import { byCodePoints, type Bytes, canonical, fields, isHex, type Json, need, parseCanonical, unlessRefused } from './bytes.ts'
import { isScope } from './keys.ts'
import type { Entry } from './state.ts'
import { isLabel } from './unseen.ts'
import { type Fetch, siblings } from './view.ts'

const MOST_CARD = 4096
const MOST_IDS = 64
const CONTROL = /[\x00-\x1f\x7f-\x9f]/
const LABEL = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?'
/**
 * A host with a dot, and path segments without white space (U+0085 is a control character) and without characters that have a meaning in a
 * URL.
 */
const REMOTE = new RegExp(
  `^${LABEL}(?:\\.${LABEL})+(?:/[^/?#@:\\x00-\\x20\\x7f-\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+)+(?![^])`
)

export type ProjectId = readonly string[]
export type Card = {
  readonly ids: readonly ProjectId[]
  readonly into: string | null
  readonly kind: 'user' | 'workspace' | 'agent'
  readonly title: string
  readonly v: 1
}

export function parseCard(data: Bytes): Card {
  need(data.length <= MOST_CARD, 'limit', 'a card of more than 4 KiB')
  const card = fields(parseCanonical(data), ['ids', 'into', 'kind', 'title', 'v'])
  need(card.v === 1 && ['user', 'workspace', 'agent'].includes(card.kind as string) && isLabel(card.title), 'format', 'not a card')
  need(card.into === null || (typeof card.into === 'string' && isScope(card.into)), 'format', 'leads to no scope')
  const { ids } = card
  need(Array.isArray(ids) && ids.length <= MOST_IDS && ids.every(isProjectId), 'format', 'not a list of ids')
  ids.forEach((one, i) => need(i === 0 || compareIds(ids[i - 1] as string[], one as string[]) < 0, 'format', 'ids out of order'))
  return card as unknown as Card
}

function isProjectId(one: Json): boolean {
  if (!Array.isArray(one)) return false
  const [kind, place, path] = one
  if (kind === 'id') return one.length === 2 && isHex(place, 16)
  if (kind !== 'remote' || one.length !== 3 || typeof place !== 'string' || typeof path !== 'string') return false
  const isRemote = REMOTE.test(place) && place === place.toLowerCase() && !place.endsWith('.git')
  return isRemote && (path === '' || path.split('/').every(part => !['', '.', '..'].includes(part) && !CONTROL.test(part)))
}

export function compareIds(a: readonly string[], b: readonly string[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return byCodePoints(a[i] as string, b[i] as string)
  return a.length - b.length
}

/** The card of a scope, from all its siblings. */
export function cardOf(entry: Entry, fetch: Fetch): { card: Card | null; forgotten: boolean } {
  const all = siblings(entry)
  const forgotten = all.some(one => one.body === '')
  const cards = all.flatMap(one => {
    const data = one.body === '' ? null : fetch(one.body)
    const card = data && unlessRefused(() => parseCard(data))
    return card ? [card] : []
  })
  const [first] = cards
  if (forgotten || first === undefined) return { card: null, forgotten }
  const ids = new Map(cards.flatMap(card => card.ids).map(one => [canonical(one), one]))
  return { card: { ...first, ids: [...ids.values()].sort(compareIds) }, forgotten }
}

const MOST_STEPS = 8

/**
 * Map each scope whose card has an `into` to that target; in each cycle, the `into` of the least token is ignored. `cards`: of all scopes
 * that are not forgotten.
 */
export function redirects(cards: ReadonlyMap<string, Pick<Card, 'into'>>): Map<string, string> {
  const onward = new Map<string, string>()
  for (const scope of [...cards.keys()].sort(byCodePoints)) {
    const into = cards.get(scope)?.into ?? null
    if (into !== null && cards.has(into)) onward.set(scope, into)
  }
  const done = new Set<string>()
  for (const start of [...onward.keys()]) {
    const path: string[] = []
    let at: string | undefined = start
    while (at !== undefined && !done.has(at) && !path.includes(at)) {
      path.push(at)
      at = onward.get(at)
    }
    if (at !== undefined && path.includes(at)) onward.delete(path.slice(path.indexOf(at)).reduce((a, b) => (byCodePoints(a, b) < 0 ? a : b)))
    for (const one of path) done.add(one)
  }
  return onward
}

/** Return the scope that receives new writes for `scope`: at most 8 steps. */
export function writeTarget(scope: string, onward: ReadonlyMap<string, string>): string {
  let at = scope
  for (let steps = 0; steps < MOST_STEPS; steps++) at = onward.get(at) ?? at
  return at
}

/**
 * Return the scopes to read for `scope`, in order of precedence: itself, then those that redirect to it, by token, each followed by those
 * that redirect to it; at most 8 steps away.
 */
export function readOrder(scope: string, onward: ReadonlyMap<string, string>): string[] {
  const sources = [...onward].sort(([a], [b]) => byCodePoints(a, b))
  const add = (one: string, steps: number): string[] => [
    one,
    ...(steps < MOST_STEPS ? sources.filter(([, into]) => into === one).flatMap(([source]) => add(source, steps + 1)) : [])
  ]
  return add(scope, 0)
}
