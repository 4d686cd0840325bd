/**
 * Earlier texts of one memory: in the state, and in the published versions kept on this device. A version is a whole state, so an earlier
 * text exists as long as one version with it is kept. Nothing is fetched or written here.
 */

import { anyFields, type Bytes, fields, hex, isHex, isObject, need, parseCanonical, sha256, unlessRefused } from '../core/bytes.ts'
import type { Blocks } from '../core/blocks.ts'
import { clockMs, CLOCK_ZERO } from '../core/clock.ts'
import { fetcherOf, isOwnWord } from '../core/views.ts'
import { type EpochKey, ObjectType } from '../core/sealed.ts'
import { nodePath, readTree } from '../core/tree.ts'
import type { Entry } from '../core/state.ts'
import type { History, Past, Version } from '../results.ts'
import { MemoryError } from './errors.ts'
import type { KnownRoot } from './replica.ts'
import { mayBePart, Sessions, unapprovedIn } from './sessions.ts'
import { entryName, type Shown } from './shown.ts'
import { authorOf } from '../core/successors.ts'

const LEAST_DIGITS = 8
/** The entry name of a session's part: its session, its device, its number. */
const PLACE = /^(m\/(?:[^/]+\/)?session-.+)-([0-9a-f]{16})-(0|[1-9][0-9]{0,5})$/

/** An earlier text, and the `of` with which it is written again. */
export type PastText = { readonly data: Bytes; readonly of: string }

/** Return every text under a key that this device can find, each once. */
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

/**
 * Return an earlier text that may be restored: refused if a memory has a text now though nothing was shown (`isNothing`), and for a part of
 * a session that alone would approve imported messages.
 */
export function textToRestore(shown: Shown, key: string, scope: string, which: Past, isNothing: boolean): PastText {
  const found = pastText(shown, key, scope, which)
  if (isNothing) needNotShown(shown, key, scope)
  if (found.of === '' && mayBePart(key)) new Sessions(shown, scope).needRestorable(key, found.data, pendingThen(shown, key, scope, found.data))
  return found
}

/** Refuse if a memory has a text now. */
function needNotShown(shown: Shown, key: string, scope: string): void {
  if (shown.view(entryName(key, scope)).shown !== null) throw new MemoryError('changed', `${key} changed since it was read: it has a text now`, 'Read it again.')
}

/** Return an earlier text: that of a version, or the one whose SHA-256 begins so. */
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
  if (digits.length < LEAST_DIGITS) throw new MemoryError('usage', `pass at least ${LEAST_DIGITS} digits of the SHA-256`)
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
  if (found.size > 1) throw new MemoryError('usage', `${found.size} texts of ${key} begin with ${which.text}`, 'Pass more digits of the SHA-256.')
  const [text] = found.values()
  if (text === undefined) throw new MemoryError('not found', `${key} has no text ${which.text} on this device`, 'See its history.')
  return text
}

/** Yield the entry now, then in each known version, newest first; null for a version not kept here. */
export function* statesOf(shown: Shown, name: string): Generator<{ root: string | null; entry: Entry | null }> {
  yield { root: null, entry: shown.replica.entry(name) }
  for (const one of [...shown.replica.kept.log].reverse()) yield { root: one.root, entry: entryAt(shown, name, one) }
}

function entryAt({ replica }: Shown, name: string, { root, state, ek }: KnownRoot): Entry | null {
  const key = replica.ring?.readable.find(one => one.id === ek)
  return key === undefined ? null : unlessRefused(() => entryBelow(state, name, nodesOf(replica.blocks, root, key)))
}

/** Return the JSON of a node of a sealed version. Refused if it is not here, or does not match its hash. */
const nodesOf =
  (blocks: Blocks, root: string, key: EpochKey) =>
  (prefix: string, hash: string): Bytes => {
    const text = key.open(ObjectType.node, prefix, blocks.read(root, `${nodePath(prefix)}.ipm`))
    need(hex(sha256(text)) === hash, 'damaged', 'a part of the state is another one')
    return text
  }

/** Return the entry of a name below a digest; {} if absent. `read` returns the JSON of the node with a hash. */
function entryBelow(digest: string, name: string, read: (prefix: string, hash: string) => Bytes): Entry {
  const label = hex(sha256(name))
  let [prefix, hash] = ['', digest]
  for (;;) {
    const node = parseCanonical(read(prefix, hash))
    if (isObject(node) && Object.hasOwn(node, 'e')) {
      const inside = anyFields(fields(node, ['e']).e)
      return Object.hasOwn(inside, name) ? (inside[name] as unknown as Entry) : {}
    }
    const below = anyFields(fields(node, ['n']).n)
    const digit = label[prefix.length] ?? ''
    need(prefix.length < label.length && (!Object.hasOwn(below, digit) || isHex(below[digit], 32)), 'format', 'not a child')
    if (!Object.hasOwn(below, digit)) return {}
    ;[prefix, hash] = [prefix + digit, below[digit] as string]
  }
}

/**
 * Return the positions of pending imports of a session's part in the states that contain this text of it: the smallest set, published
 * states first. Null if none of them is kept here with all later parts of its device.
 */
function pendingThen(shown: Shown, key: string, scope: string, data: Bytes): ReadonlySet<string> | null {
  const name = entryName(key, scope)
  const body = hex(sha256(data))
  const least = (all: readonly (ReadonlySet<string> | null)[]): ReadonlySet<string> | null => all.reduce((a, b) => (a === null || (b !== null && b.size < a.size) ? b : a), null)
  const foundIn = (state: ReadonlyMap<string, Entry> | null): ReadonlySet<string> | null => {
    const isThere = state !== null && Object.values(state.get(name) ?? {}).some(value => value.body === body)
    const parts = isThere ? partsBeside(shown, state, name) : null
    return parts && unapprovedIn([[key, data], ...parts])
  }
  const published = least([...shown.replica.kept.log].reverse().map(one => foundIn(stateAt(shown, one))))
  return published ?? foundIn(shown.replica.entries)
}

/** Return all entries of a version; null if it is not kept here. */
function stateAt({ replica }: Shown, { root, state, ek }: KnownRoot): ReadonlyMap<string, Entry> | null {
  const key = replica.ring?.readable.find(one => one.id === ek)
  return key === undefined ? null : unlessRefused(() => readTree(state, nodesOf(replica.blocks, root, key)) as Map<string, Entry>)
}

/** Return the own texts, by key, of the other parts of a session in a state; null if a later part of the same device is not kept here. */
function partsBeside({ replica }: Shown, state: ReadonlyMap<string, Entry>, name: string): [key: string, data: Bytes][] | null {
  const isOwn = isOwnWord(replica.isMine)
  const found: [string, Bytes][] = []
  const [, session, device, number] = PLACE.exec(name) as unknown as string[]
  for (const [other, entry] of state) {
    const [, of, by, at] = other === name ? [] : (PLACE.exec(other) ?? [])
    if (of !== session) continue
    for (const [dot, value] of Object.entries(entry)) {
      if (value.body === null || !isOwn(dot, value)) continue
      const data = fetcherOf(other, { [dot]: value }, replica.opened)(value.body)
      if (data !== null) found.push([other.slice(other.lastIndexOf('/') + 1), data])
      else if (by === device && Number(at) > Number(number)) return null
    }
  }
  return found
}

function knownRoot({ replica }: Shown, text: string): KnownRoot {
  const found = text === '' ? [] : replica.kept.log.filter(one => one.root.startsWith(text))
  if (found.length > 1) throw new MemoryError('usage', `${text} is a prefix of ${found.length} known versions`, 'Pass a longer prefix.')
  const [one] = found
  if (one === undefined) throw new MemoryError('not found', `no version ${text} is known on this device`)
  return one
}

