/**
 * The texts that one memory has had: in the state, and in the published versions that this device keeps. A version is a whole
 * state, so an older text is there as long as one that holds it is kept. Nothing here fetches or writes.
 */

import { unlessRefused } from '../core/bytes.ts'
import type { Bytes } from '../core/bytes.ts'
import { clockMs, CLOCK_ZERO } from '../core/clock.ts'
import { fetcherOf, isOwnWord } from '../core/views.ts'
import { entryIn } from '../core/vault.ts'
import type { Entry } from '../core/state.ts'
import type { History, Past, Version } from '../results.ts'
import { MemoryError } from './errors.ts'
import type { KnownRoot } from './replica.ts'
import { entryName, type Shown } from './shown.ts'
import { authorOf } from '../core/successors.ts'

const LEAST_DIGITS = 8

/** A text of the past, and the `of` under which it is written anew. */
export type PastText = { readonly data: Bytes; readonly of: string }

/** Every text that this device can find under a key, each once. */
export function historyOf(shown: Shown, key: string, scope: string): History {
  const { replica } = shown
  const name = entryName(key, scope)
  const here = replica.entry(name)
  const bodies = new Set(shown.view(name).dots.flatMap(dot => (here[dot] === undefined ? [] : [here[dot].body])))
  const isOwn = isOwnWord(replica.isMine)
  const found = new Map<string, Version>()
  let gone = 0
  for (const { root, entry } of statesOf(shown, name)) {
    if (entry === null) {
      gone++
      continue
    }
    for (const [dot, value] of Object.entries(entry)) {
      const mark = value.body ?? dot
      const known = found.get(mark)
      if (known !== undefined) {
        if (known.root === null && root !== null) found.set(mark, { ...known, root })
        continue
      }
      const stands = Object.hasOwn(here, dot) || (value.body !== null && Object.values(here).some(other => other.body === value.body))
      const data = value.body === null ? null : fetcherOf(name, { [dot]: value }, replica.opened)(value.body)
      const device = dot.slice(0, 16)
      found.set(mark, {
        sha256: value.body,
        at: value.h === CLOCK_ZERO ? null : clockMs(value.h),
        device,
        label: shown.label(device),
        root,
        now: stands ? (bodies.has(value.body) ? 'shown' : 'beside') : '',
        size: data?.length ?? null,
        own: isOwn(dot, value)
      })
    }
  }
  if (found.size === 0) throw new MemoryError('not found', `no text of ${key} is known on this device`)
  const newest = (a: Version, b: Version): number => (b.at ?? 0) - (a.at ?? 0) || (a.device < b.device ? 1 : a.device > b.device ? -1 : 0)
  return { key, versions: [...found.values()].sort(newest), gone }
}

/** Refuse where a memory has a text now. */
export function needNotShown(shown: Shown, key: string, scope: string): void {
  if (shown.view(entryName(key, scope)).shown !== null) throw new MemoryError('changed', `${key} is not what was read: it has a text now`, 'Read it again.')
}

/** A text of the past: what a version shows, or the text whose SHA-256 begins so. */
export function pastText(shown: Shown, key: string, scope: string, which: Past): PastText {
  const { replica } = shown
  const name = entryName(key, scope)
  if (!('text' in which)) {
    const known = knownRoot(shown, which.root)
    const entry = entryAt(shown, name, known)
    if (entry === null) throw new MemoryError('not found', `version ${known.root} is not kept on this device`)
    const view = replica.viewOfSome(name, entry)
    if (view.shown === null) throw new MemoryError('not found', `${key} ${Object.keys(entry).length > 0 ? 'is forgotten in' : 'is not in'} version ${known.root}`)
    const [dot] = view.dots
    const value = entry[dot ?? '']
    return { data: view.shown, of: view.own || dot === undefined || value === undefined ? '' : authorOf(dot, value, replica.isMine) }
  }
  const digits = which.text.toLowerCase()
  if (digits.length < LEAST_DIGITS) throw new MemoryError('usage', `a text is named by at least ${LEAST_DIGITS} digits of its SHA-256`)
  const only = which.root === undefined ? null : knownRoot(shown, which.root).root
  const found = new Map<string, PastText>()
  for (const { root, entry } of statesOf(shown, name)) {
    if (entry === null || (only !== null && root !== only)) continue
    for (const [dot, value] of Object.entries(entry)) {
      if (value.body?.startsWith(digits) !== true || found.has(value.body)) continue
      const data = fetcherOf(name, { [dot]: value }, replica.opened)(value.body)
      if (data !== null) found.set(value.body, { data, of: authorOf(dot, value, replica.isMine) })
    }
  }
  if (found.size > 1) throw new MemoryError('usage', `${found.size} texts of ${key} begin with ${which.text}`, 'Give more of the SHA-256.')
  const [text] = found.values()
  if (text === undefined) throw new MemoryError('not found', `${key} has no text ${which.text} on this device`, 'See its history.')
  return text
}

/** The entry now, then in each known version, newest first; null where that is not kept here. */
export function* statesOf(shown: Shown, name: string): Generator<{ root: string | null; entry: Entry | null }> {
  yield { root: null, entry: shown.replica.entry(name) }
  for (const one of [...shown.replica.kept.log].reverse()) yield { root: one.root, entry: entryAt(shown, name, one) }
}

function entryAt({ replica }: Shown, name: string, { root, state, ek }: KnownRoot): Entry | null {
  const key = replica.ring?.readable.find(one => one.id === ek)
  return key === undefined ? null : unlessRefused(() => entryIn(replica.blocks, root, state, key, name))
}

function knownRoot({ replica }: Shown, text: string): KnownRoot {
  const found = text === '' ? [] : replica.kept.log.filter(one => one.root.startsWith(text))
  if (found.length > 1) throw new MemoryError('usage', `${text} is the beginning of ${found.length} known versions`, 'Give more of it.')
  const [one] = found
  if (one === undefined) throw new MemoryError('not found', `no version ${text} is known on this device`)
  return one
}

