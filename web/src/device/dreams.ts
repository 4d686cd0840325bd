/**
 * The dreams of one scope, as recorded in the timeline, and undoing one. A proposal is only on the device that made it.
 *
 * A text is restored if it was not overwritten since, from a published version kept on this device; never one forgotten after the dream,
 * nor memories changed together with it, since they may contain its sentences.
 */

import { type Bytes, byCodePoints, isHex, isObject, unlessRefused } from '../core/bytes.ts'
import { isKey } from '../core/keys.ts'
import { readDot, type Value } from '../core/state.ts'
import { authorOf } from '../core/successors.ts'
import { instant, splitOwnId, type TimelineEvent } from '../core/timeline.ts'
import { fetcherOf } from '../core/views.ts'
import type { Dream, Undoing } from '../results.ts'
import { MemoryError } from './errors.ts'
import { statesOf } from './past.ts'
import { mayBePart } from './sessions.ts'
import { entryName, type Shown } from './shown.ts'
import type { Writing } from './writing.ts'

/** Number of newest dreams that can be undone. */
const KEPT = 8

/** One memory that a dream changed: the hash of its new text, null if removed, and those of the earlier texts by their dots. */
type Done = { readonly key: string; readonly body: string | null; readonly before: readonly (readonly [dot: string, body: string])[] }
type Dreamt = { readonly id: string; readonly event: TimelineEvent; readonly by: string; readonly done: readonly Done[]; readonly together: readonly (readonly string[])[] | null }
/** A text to restore, and its author. */
type Before = { readonly data: Bytes; readonly of: string }
type Fate = 'changed' | 'lost' | readonly Before[]

export class Dreams {
  readonly #events: readonly TimelineEvent[]

  constructor(
    readonly shown: Shown,
    readonly scope: string
  ) {
    this.#events = shown.isForgotten(scope) ? [] : shown.events(scope, true).filter(one => splitOwnId(one.id) !== null)
  }

  /** List the dreams of this person's devices, last first. */
  list(): Dream[] {
    return this.#all().map((one, n) => {
      const isUndone = this.#isUndone(one.id)
      const device = splitOwnId(one.event.id)?.device ?? ''
      const back = isUndone || n >= KEPT ? 0 : one.done.filter(each => Array.isArray(this.#fate(one, each, this.shown.replica.entry(this.#name(each))))).length
      const keys = (isGone: boolean): string[] => one.done.filter(each => (each.body === null) === isGone).map(each => each.key)
      return { id: one.id, scope: this.scope, at: instant(one.event.ts) ?? 0, by: one.by, device, label: this.shown.label(device), written: keys(false), removed: keys(true), undone: isUndone, back }
    })
  }

  /** Restore the texts that a dream replaced, unless overwritten since, in a write. One event records it. */
  async undo(change: Writing, id: string): Promise<Undoing> {
    const dreamt = this.#all().slice(0, KEPT).find(one => one.id === id && !this.#isUndone(id))
    if (dreamt === undefined) throw new MemoryError('not found', `there is no dream ${id.slice(0, 60)} to undo`, 'The history of a memory has its older texts.')
    const [back, changed, lost]: [string[], string[], string[]] = [[], [], []]
    for (const one of dreamt.done) {
      const name = this.#name(one)
      const here = change.entry(name)
      const fate = this.#fate(dreamt, one, here)
      if (fate === 'changed' || fate === 'lost') {
        ;(fate === 'lost' ? lost : changed).push(one.key)
        continue
      }
      for (const { data, of } of fate) await change.put(name, data, Object.keys(here), { of, promoted: of === '' })
      // The dream created it.
      if (fate.length === 0) change.remove(name, Object.keys(here))
      back.push(one.key)
    }
    if (back.length > 0) await change.note('dream_undone', { dream: id, back: back.length, changed: changed.length, lost: lost.length }, this.scope)
    return { id, scope: this.scope, back, changed, lost }
  }

  #all(): Dreamt[] {
    const found = new Map<string, Dreamt>()
    for (const event of this.#events) {
      const one = event.type === 'dream' ? dreamIn(event) : null
      if (one !== null && !found.has(one.id)) found.set(one.id, one)
    }
    return [...found.values()].reverse()
  }

  #isUndone(id: string): boolean {
    return this.#events.some(one => one.type === 'dream_undone' && one['dream'] === id)
  }

  #name(one: Done): string {
    return entryName(one.key, this.scope)
  }

  /** Return what to restore of a memory, or why nothing. */
  #fate(dreamt: Dreamt, one: Done, here: Readonly<Record<string, Value>>): Fate {
    const bodies = [...new Set(Object.values(here).map(value => value.body))]
    if (one.body === null ? bodies.length > 0 : bodies.length !== 1 || bodies[0] !== one.body) return 'changed'
    // Dreams leave parts of sessions alone: an event that names one could restore imported messages as approved, or remove their mark.
    if (mayBePart(one.key) || this.#isForgotten(dreamt, one.key)) return 'lost'
    const found: Before[] = []
    for (const [dot, body] of one.before) {
      const text = this.#before(this.#name(one), dot, body)
      if (text === null) return 'lost'
      found.push(text)
    }
    return found
  }

  /** Tell whether a memory was forgotten since, or one that was changed or used together with it. */
  #isForgotten({ event, together }: Dreamt, key: string): boolean {
    const since = this.#events.slice(this.#events.indexOf(event) + 1).flatMap(one => (one.type === 'forgot' && typeof one['key'] === 'string' ? [one['key']] : []))
    if (together === null) return since.length > 0
    const keys = new Set([key, ...together.filter(all => all.includes(key)).flat()])
    return since.some(one => keys.has(one)) || [...keys].some(one => this.shown.view(entryName(one, this.scope)).forgotten)
  }

  /** Return an earlier text under a dot, from the newest version that has it. */
  #before(name: string, dot: string, body: string): Before | null {
    const { replica } = this.shown
    for (const { entry } of statesOf(this.shown, name)) {
      const value = entry?.[dot]
      if (value?.body !== body) continue
      const data = fetcherOf(name, { [dot]: value }, replica.opened)(body)
      if (data !== null) return { data, of: authorOf(dot, value, replica.isMine) }
    }
    return null
  }
}

/** Parse the event of a dream; null for any other, since any program may add events of that type. */
function dreamIn(event: TimelineEvent): Dreamt | null {
  const { dream: id, by, written, removed, together } = event
  if (typeof id !== 'string' || id === '' || typeof by !== 'string' || !Array.isArray(written) || !Array.isArray(removed)) return null
  const done = [...written.map(one => doneIn(one, true)), ...removed.map(one => doneIn(one, false))]
  if (done.length === 0 || done.includes(null)) return null
  const isListed = Array.isArray(together) && together.every(all => Array.isArray(all) && all.every(key => typeof key === 'string' && isKey(key)))
  return { id, event, by, done: (done as Done[]).sort((a, b) => byCodePoints(a.key, b.key)), together: isListed ? (together as string[][]) : null }
}

function doneIn(row: unknown, isWritten: boolean): Done | null {
  if (!isObject(row)) return null
  const { key, text, replaced } = row
  if (typeof key !== 'string' || !isKey(key) || !isObject(replaced) || (isWritten && !isHex(text, 32))) return null
  const before = Object.entries(replaced)
  if (!before.every(([dot, body]) => unlessRefused(() => readDot(dot)) !== null && isHex(body, 32))) return null
  return { key, body: isWritten ? (text as string) : null, before: before as [string, string][] }
}
