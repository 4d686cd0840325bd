/**
 * What dreams did in one scope, as the timeline tells it, and taking one back. What a dream only proposes is on the device that dreamed,
 * and nowhere else.
 *
 * A text comes back where nobody wrote since, from a published version that this device keeps; never what somebody forgot after the dream,
 * nor what went together with it, as its sentences may stand there.
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

/** The newest dreams, of which any can be taken back. */
const KEPT = 8

/** One memory that a dream changed: the hash of its new text, null where it was taken away, and those of the texts before by their dots. */
type Done = { readonly key: string; readonly body: string | null; readonly before: readonly (readonly [dot: string, body: string])[] }
type Dreamt = { readonly id: string; readonly event: TimelineEvent; readonly by: string; readonly done: readonly Done[]; readonly together: readonly (readonly string[])[] | null }
/** A text that comes back, and under whose word. */
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

  /** The dreams of this person's devices, the last first. */
  list(): Dream[] {
    return this.#all().map((one, n) => {
      const isUndone = this.#isUndone(one.id)
      const device = splitOwnId(one.event.id)?.device ?? ''
      const back = isUndone || n >= KEPT ? 0 : one.done.filter(each => Array.isArray(this.#fate(one, each, this.shown.replica.entry(this.#name(each))))).length
      const keys = (isGone: boolean): string[] => one.done.filter(each => (each.body === null) === isGone).map(each => each.key)
      return { id: one.id, scope: this.scope, at: instant(one.event.ts) ?? 0, by: one.by, device, label: this.shown.label(device), written: keys(false), removed: keys(true), undone: isUndone, back }
    })
  }

  /** Write back what a dream replaced, where nobody wrote since, in a write. One event says so. */
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
      // The dream made it.
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

  /** What comes back of a memory, or why nothing does. */
  #fate(dreamt: Dreamt, one: Done, here: Readonly<Record<string, Value>>): Fate {
    const bodies = [...new Set(Object.values(here).map(value => value.body))]
    if (one.body === null ? bodies.length > 0 : bodies.length !== 1 || bodies[0] !== one.body) return 'changed'
    // A dream leaves parts of sessions alone: an event that says otherwise would bring back imported messages, or take their mark away.
    if (mayBePart(one.key) || this.#isForgotten(dreamt, one.key)) return 'lost'
    const found: Before[] = []
    for (const [dot, body] of one.before) {
      const text = this.#before(this.#name(one), dot, body)
      if (text === null) return 'lost'
      found.push(text)
    }
    return found
  }

  /** Whether somebody forgot a memory since, or one that was changed or gone by together with it. */
  #isForgotten({ event, together }: Dreamt, key: string): boolean {
    const since = this.#events.slice(this.#events.indexOf(event) + 1).flatMap(one => (one.type === 'forgot' && typeof one['key'] === 'string' ? [one['key']] : []))
    if (together === null) return since.length > 0
    const keys = new Set([key, ...together.filter(all => all.includes(key)).flat()])
    return since.some(one => keys.has(one)) || [...keys].some(one => this.shown.view(entryName(one, this.scope)).forgotten)
  }

  /** A text that stood under a dot, from the newest version that has it. */
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

/** What an event says of a dream; null where it says none: any program may note one of that type. */
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
