/**
 * What a device shows of its vault: readings, lists, conflicts, events, scopes. Nothing is written here, and results are cached while their
 * input is unchanged.
 */

import { byCodePoints, type Bytes, fromUtf8, hex, sha256, unlessRefused, utf8 } from '../core/bytes.ts'
import { type Card, cardOf, readOrder, redirects, writeTarget } from '../core/cards.ts'
import { clockMs } from '../core/clock.ts'
import { isKey, isScope } from '../core/keys.ts'
import { fieldOf, type MemoryFile, parseFile, readTags } from '../core/memory_file.ts'
import { isSessionPart } from '../core/sessions.ts'
import { type Entry, type EntryName, readName, type Value } from '../core/state.ts'
import { type TimelineEvent, instant, timelineOf } from '../core/timeline.ts'
import type { Copy as ViewCopy } from '../core/view.ts'
import { fetcherOf, isOwnWord, type ShownView } from '../core/views.ts'
import type { Copy, Listed, Reading, Scope, Scopes, Token, Conflict } from '../results.ts'
import { needText } from './arguments.ts'
import { MemoryError } from './errors.ts'
import type { Replica } from './replica.ts'

export type Filters = { readonly type?: string | undefined; readonly tag?: string | undefined; readonly since?: string | undefined; readonly sessions?: boolean }

export class Shown {
  readonly #names = new Map<string, EntryName>()
  readonly #listed = new WeakMap<ShownView, Listed & { readonly part: boolean }>()
  #cards: { revision: number; onward: ReadonlyMap<string, string> } | null = null

  constructor(readonly replica: Replica) {}

  view(name: string): ShownView {
    return this.replica.view(name)
  }

  /** The memories of some scopes, or of all: name, scope and key of their entries. */
  *memories(scopes: readonly string[] | null): Generator<{ name: string; scope: string; key: string }> {
    for (const name of this.replica.entries.keys()) {
      if (!name.startsWith('m/')) continue
      let said = this.#names.get(name)
      if (said === undefined) this.#names.set(name, (said = readName(name)))
      if (said.kind === 'm' && (scopes === null || scopes.includes(said.scope))) yield { name, scope: said.scope, key: said.key }
    }
  }

  isForgotten(scope: string): boolean {
    return scope !== '' && Object.values(this.replica.entry(`c/${scope}`)).some(value => value.kind === 'forgotten')
  }

  /** The scopes to read, in order of precedence. */
  stack(scopes: Scopes): string[] {
    const named = typeof scopes === 'string' ? [scopes] : scopes
    for (const scope of named) checkScope(scope)
    const found = named.flatMap(scope => (scope === '' ? [] : readOrder(scope, this.#onward)))
    return [...new Set(typeof scopes === 'string' && scopes !== '' ? found : [...found, ''])]
  }

  /** The scope that receives a new write for this one. */
  target(scope: string): string {
    return scope === '' ? '' : writeTarget(scope, this.#onward)
  }

  get #onward(): ReadonlyMap<string, string> {
    if (this.#cards?.revision !== this.replica.revision) this.#cards = { revision: this.replica.revision, onward: redirects(new Map(this.#allCards())) }
    return this.#cards.onward
  }

  *#allCards(): Generator<[string, Card]> {
    for (const [name, entry] of this.replica.entries) {
      if (!name.startsWith('c/')) continue
      const { card } = cardOf(entry, fetcherOf(name, entry, this.replica.opened))
      if (card !== null) yield [name.slice(2), card]
    }
  }

  label(device: string): string {
    const { ring } = this.replica
    const family = ring?.said.families.get(device) ?? device
    return ring?.said.members.get(family)?.label ?? ring?.said.members.get(device)?.label ?? device
  }

  /** Device labels by id, with the id where two devices have the same label. */
  names(): Map<string, string> {
    const { ring, device } = this.replica
    const labels = [...(ring?.said.members.keys() ?? [])].map((id): [string, string] => [id, this.label(id)])
    const times = new Map<string, number>()
    for (const [, label] of labels) times.set(label, (times.get(label) ?? 0) + 1)
    const named = labels.map(([id, label]): [string, string] => [id, times.get(label) === 1 || label === '' ? label : `${label} (${id})`])
    return new Map([[device.id, device.label], ...named])
  }

  writerOf(entry: Entry, view: { readonly dots: readonly string[]; readonly notFetched: readonly string[] }): { device: string; at: number; h: string } {
    const dots = view.dots.length > 0 ? view.dots : view.notFetched
    const newest = dots.reduce<[string, Value] | null>((best, dot) => {
      const value = entry[dot]
      return value !== undefined && (best === null || value.h > best[1].h) ? [dot, value] : best
    }, null)
    return newest === null ? { device: '', at: 0, h: '' } : { device: newest[0].slice(0, 16), at: clockMs(newest[1].h), h: newest[1].h }
  }

  /** Return one memory as shown in the first scope that has it, an own one before a pending one; null if absent. */
  read(key: string, scopes: readonly string[]): Reading | null {
    let others: Reading | null = null
    for (const scope of scopes) {
      const found = this.readIn(key, scope)
      if (found?.own === true) return found
      others ??= found
    }
    return others
  }

  readIn(key: string, scope: string): Reading | null {
    const name = entryName(key, scope)
    if (this.isForgotten(scope)) return null
    const view = this.view(name)
    if (view.shown === null) {
      if (view.notFetched.length > 0) throw notFetched(name)
      return null
    }
    return this.reading(key, scope, this.replica.entry(name), view)
  }

  reading(key: string, scope: string, entry: Entry, view: ShownView): Reading {
    const { device, at } = this.writerOf(entry, view)
    const copies = [...view.conflicts, ...(view.own ? view.others : [])].flatMap(one => one.file ?? [])
    const parts = textParts(view.shown as Bytes)
    return { ...parts, key, scope, token: view.dots, seen: tokenHash(view.dots), merged: view.merged, conflicts: copies, device, label: this.label(device), at, own: view.own }
  }

  /**
   * Return all shown memories, by key. `scopes`: those to read, each key from the first that has it; null: each of all scopes separately.
   */
  list(scopes: readonly string[] | null, { type, tag, since, sessions = false }: Filters = {}): (Listed & { readonly part: boolean })[] {
    const from = since === undefined ? null : instant(since)
    if (since !== undefined && from === null) throw new MemoryError('usage', `${since} is not a date`, 'For instance 2026-11-22 or 2026-11-22T17:30:00Z.')
    const isGone = new Map<string, boolean>()
    const found = new Map<string, { place: number; listed: Listed & { part: boolean } }>()
    for (const { name, scope, key } of this.memories(scopes)) {
      let gone = isGone.get(scope)
      if (gone === undefined) isGone.set(scope, (gone = this.isForgotten(scope)))
      const listed = gone ? null : this.listed(name, scope, key)
      if (listed === null) continue
      const place = scopes === null ? 0 : scopes.indexOf(scope)
      const before = found.get(scopes === null ? name : key)
      if (before === undefined || (listed.own && !before.listed.own) || (listed.own === before.listed.own && place < before.place)) {
        found.set(scopes === null ? name : key, { place, listed })
      }
    }
    const out: (Listed & { readonly part: boolean })[] = []
    for (const { listed } of found.values()) {
      if (listed.part && !sessions) continue
      if ((type !== undefined && listed.type !== type) || (tag !== undefined && !listed.tags.includes(tag))) continue
      if (from === null || listed.at >= from) out.push(listed)
    }
    return out.sort((a, b) => byCodePoints(a.key, b.key) || byCodePoints(a.scope, b.scope))
  }

  listed(name: string, scope: string, key: string): (Listed & { readonly part: boolean }) | null {
    const view = this.view(name)
    if (view.shown === null && view.notFetched.length === 0) return null
    const held = this.#listed.get(view)
    if (held !== undefined) return held
    const file = view.shown === null ? { fields: [['description', 'not fetched'] as const], body: '' } : headOf(view.shown)
    const { device, at } = this.writerOf(this.replica.entry(name), view)
    const made = {
      key,
      scope,
      name: fieldOf(file, 'name') || key,
      description: fieldOf(file, 'description'),
      type: fieldOf(file, 'type'),
      tags: readTags(fieldOf(file, 'tags')),
      created: fieldOf(file, 'created'),
      updated: fieldOf(file, 'updated'),
      device,
      label: this.label(device),
      at,
      merged: view.merged,
      conflicts: view.conflicts.length + (view.own ? view.others.length : 0),
      own: view.own,
      here: view.shown !== null,
      part: isSessionPart(key, fieldOf(file, 'type'), fieldOf(file, 'session'))
    }
    this.#listed.set(view, made)
    return made
  }

  /** Return the memories with alternatives, of one scope or of all. In a forgotten scope nothing is shown, and every text is listed. */
  conflicts(scope: string | null): Conflict[] {
    const out: Conflict[] = []
    for (const { name, scope: there, key } of this.memories(scope === null ? null : [scope])) {
      const view = this.view(name)
      if (view.conflicts.length + view.hidden.length + view.others.length + view.unheeded.length > 0) out.push(this.conflictOf(key, there, name, view))
    }
    return out.sort((a, b) => byCodePoints(a.scope, b.scope) || byCodePoints(a.key, b.key))
  }

  conflictOf(key: string, scope: string, name: string, view: ShownView): Conflict {
    const entry = this.replica.entry(name)
    const all = [...view.conflicts, ...view.hidden, ...view.others]
    // If no text is own, the first of all is shown, and has no copy of itself.
    const copies = all.filter(one => view.own || !one.dots.every(dot => view.dots.includes(dot))).flatMap(one => this.#copy(key, scope, name, one))
    const shown = view.shown === null ? null : this.reading(key, scope, entry, view)
    const token = [...new Set([...view.dots, ...view.unheeded, ...copies.flatMap(one => one.token)])].filter(dot => Object.hasOwn(entry, dot))
    return { key, scope, shown, copies, token, seen: tokenHash(token), forgotten: view.forgotten }
  }

  #copy(key: string, scope: string, name: string, copy: ViewCopy): Copy[] {
    const entry = this.replica.entry(name)
    const data = fetcherOf(name, entry, this.replica.opened)(copy.body)
    if (data === null) return []
    const isOwn = isOwnWord(this.replica.isMine)
    const own = copy.dots.some(dot => entry[dot] !== undefined && isOwn(dot, entry[dot]))
    const { device, at } = this.writerOf(entry, { dots: copy.dots, notFetched: [] })
    const file = copy.file ?? `${key} (${copy.body.slice(0, 16)})`
    return [{ ...textParts(data), key, scope, file, token: copy.dots, seen: tokenHash(copy.dots), device, label: this.label(device), at, own }]
  }

  /** Events of one scope in order. `byMine`: only those added by this person's devices. */
  events(scope: string, byMine = false): TimelineEvent[] {
    const segments: { dev: string; data: Bytes }[] = []
    for (const [name, entry] of this.replica.entries) {
      if (!name.startsWith('t/')) continue
      const said = readName(name)
      if (said.kind !== 't' || said.scope !== scope || (byMine && !this.replica.isMine(said.dev))) continue
      const fetch = fetcherOf(name, entry, this.replica.opened)
      for (const value of Object.values(entry)) segments.push({ dev: said.dev, data: fetch(value.body ?? '') ?? new Uint8Array() })
    }
    return timelineOf(segments)
  }

  /** The scopes that have a card and are not forgotten. */
  scopes(): Scope[] {
    const counts = new Map<string, number>()
    for (const one of this.list(null)) counts.set(one.scope, (counts.get(one.scope) ?? 0) + 1)
    const out = [...this.#allCards()].map(([token, card]): Scope => ({ token, title: card.title, kind: card.kind, ids: card.ids, into: card.into, memories: counts.get(token) ?? 0 }))
    return out.sort((a, b) => byCodePoints(a.token, b.token))
  }
}

/** 16 hex digits that identify a token, whatever the order of its dots. */
export const tokenHash = (token: Token): string => hex(sha256(utf8([...new Set(token)].sort(byCodePoints).join('\n')))).slice(0, 16)

export const notFetched = (name: string): MemoryError => new MemoryError('not found', `${name.slice(2)} is known but its text is not fetched yet`, 'Try again after a sync.')

export function checkScope(scope: string): void {
  if (scope !== '' && !isScope(scope)) throw new MemoryError('usage', `${scope} is not a scope name`, 'Small letters, digits, - and _, at most 64.')
}

export function entryName(key: string, scope: string): string {
  needText('key', key)
  if (!isKey(key)) throw new MemoryError('usage', `${key} is not a valid key`, 'Small letters, digits, - and _, at most 64.')
  checkScope(scope)
  return scope === '' ? `m/${key}` : `m/${scope}/${key}`
}

export const headOf = (data: Bytes): MemoryFile => unlessRefused(() => parseFile(data)) ?? { fields: [], body: '' }

/** Header and body, as far as they can be read: a text of others may be anything. */
export const readableFile = (data: Bytes): MemoryFile => unlessRefused(() => parseFile(data)) ?? { fields: [], body: new TextDecoder().decode(data) }

function textParts(data: Bytes): { text: string; body: string; fields: Record<string, string> } {
  const text = unlessRefused(() => fromUtf8(data)) ?? new TextDecoder().decode(data)
  const file = readableFile(data)
  return { text, body: file.body, fields: Object.fromEntries(file.fields) }
}
