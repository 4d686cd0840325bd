/** Cards of scopes: what people call them, and which projects they are of (FORMAT.md 5.1). */

import { byCodePoints, type Bytes, canonical, fields, isHex, type Json, need, parseCanonical, unlessRefused } from './bytes.ts'
import { isScope } from './keys.ts'
import type { Entry } from './state.ts'
import { isLabel } from './unseen.ts'
import { type Fetch, siblings } from './view.ts'

const MOST_CARD = 4096
const MOST_IDS = 64

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
  const [host = '', ...parts] = place.split('/')
  const isRemote = place === place.toLowerCase() && host.includes('.') && parts.length > 0 && !parts.includes('') && !/[@:?#\s]|\.git$/.test(place)
  return isRemote && (path === '' || path.split('/').every(part => !['', '.', '..'].includes(part)))
}

function compareIds(a: readonly string[], b: readonly string[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return byCodePoints(a[i] as string, b[i] as string)
  return a.length - b.length
}

/** The card of a scope, of all its siblings together. */
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
